"""Gradients summed in float32 for parameters that are stored in half precision."""

from collections.abc import Iterator
from typing import Any
from weakref import WeakSet

import torch
from torch import Tensor
from torch.optim import Optimizer

from ._gradients import HALF, entries

__all__ = ["accumulate_in_float32"]

_PREPARED: WeakSet[Optimizer] = WeakSet()  # their steps have the hooks


def accumulate_in_float32(optimizer: Optimizer) -> None:
    """Let the bfloat16 and float16 parameters of an optimizer sum their gradients in float32.

    A sum in bfloat16 ignores what is added to it once it is 256 times as large: after 1,024
    backward passes of 1, `.grad` holds 256. Call this once, before the first `backward()`;
    the loop stays as it is.

    1. `.grad` of such a parameter is float32 whenever you see it: to accumulate, unscale, clip
       and log. It takes 4 bytes an entry instead of 2.
    2. For the length of `optimizer.step()` the optimizer sees each gradient rounded once to the
       dtype of its parameter, in 2 more bytes an entry: Adam and the fused optimizers of torch
       refuse another dtype, and the moments keep the dtype that a resumed run gives them.
    3. `optimizer.step()` raises before it changes anything: a `RuntimeError` for a gradient
       that was accumulated in half precision after all, a `ValueError` for a closure (its
       `backward()` would be), an `OverflowError` for a sum that float16 cannot hold.

    Not cured: the gradient of one microbatch is still computed, and the weights and moments
    still kept, in half precision. Where that matters keep float32 parameters and run the
    forward pass under `torch.autocast(device, dtype=torch.bfloat16)`, whose gradients are
    float32 by themselves. Take that also for DDP and FSDP2: with torch 2.13 both fail in the
    first reduction. A deep copy of the model starts without the effect. Converting a model
    converts a pending gradient too, which the next step then refuses.

    Args:
        optimizer: Any optimizer with torch's step hooks. Parameters of another dtype are left
            alone. After `add_param_group`, or after a step that raised, call this again.

    Raises:
        TypeError: `optimizer` is no optimizer, or holds a sharded parameter.
        ValueError: A gradient has already been accumulated in half precision.
        NotImplementedError: This torch has no `Tensor.grad_dtype`.

    Examples:
        >>> import torch, gradstep
        >>> weight = torch.nn.Parameter(torch.zeros((), dtype=torch.bfloat16))
        >>> optimizer = torch.optim.AdamW([weight])
        >>> gradstep.accumulate_in_float32(optimizer)
        >>> for _ in range(1024):
        ...     weight.backward()
        >>> weight.grad
        tensor(1024.)
        >>> optimizer.step()

    Source:
        `torch.Tensor.grad_dtype`, pytorch/pytorch#164751.
    """
    if not isinstance(optimizer, Optimizer):
        raise TypeError(
            f"optimizer must be a torch optimizer, got {optimizer!r:.60} of type "
            f"{type(optimizer).__name__}. Build it first: its step has to round the gradients."
        )
    if not hasattr(Tensor, "grad_dtype"):
        raise NotImplementedError(
            f"torch {torch.__version__} has no Tensor.grad_dtype, which lets a gradient have "
            "another dtype than its parameter. Use a newer torch (2.13 has it), or float32 "
            "parameters and torch.autocast(device, dtype=torch.bfloat16)."
        )
    parameters = dict(_half_parameters(optimizer))
    for place, parameter in parameters.items():
        _refuse_late_or_sharded(place, parameter)
    for parameter in parameters.values():
        parameter.grad_dtype = torch.float32
    if optimizer not in _PREPARED:
        rounded = _RoundedStep()
        optimizer.register_step_pre_hook(rounded.begin)
        optimizer.register_step_post_hook(rounded.end)
        _PREPARED.add(optimizer)


class _RoundedStep:
    """Rounds the gradients before a step and puts the float32 ones back after it."""

    def __init__(self) -> None:
        self.exact: list[tuple[Tensor, Tensor]] = []

    def begin(self, optimizer: Optimizer, args: Any, kwargs: dict[str, Any]) -> None:
        _refuse_closure(kwargs.get("closure", args[1] if len(args) > 1 else None))
        found = [(place, p, p.grad) for place, p in _half_parameters(optimizer)]
        self.exact = [(p, gradient) for _, p, gradient in found if gradient is not None]
        rounded = [_rounded(place, p, g) for place, p, g in found if g is not None]
        for (parameter, _), gradient in zip(self.exact, rounded, strict=True):
            _replace_gradient(parameter, gradient)

    def end(self, optimizer: Optimizer, args: Any, kwargs: dict[str, Any]) -> None:
        for parameter, gradient in self.exact:
            _replace_gradient(parameter, gradient)
        self.exact = []


def _half_parameters(optimizer: Optimizer) -> Iterator[tuple[str, Tensor]]:
    """With the place of each, for messages."""
    for index, group in enumerate(optimizer.param_groups):
        for number, parameter in enumerate(group["params"]):
            if parameter.dtype in HALF:
                yield f"parameter {number} of group {index}", parameter


def _replace_gradient(parameter: Tensor, gradient: Tensor) -> None:
    parameter.grad = None  # torch changes grad_dtype only where no gradient contradicts it
    parameter.grad_dtype = gradient.dtype
    parameter.grad = gradient


def _rounded(place: str, parameter: Tensor, gradient: Tensor) -> Tensor:
    if gradient.dtype in HALF:
        raise RuntimeError(
            f"the gradient of {place} was accumulated in {gradient.dtype}, not in torch.float32: "
            "the parameter was added or converted later, or the previous step raised. Drop this "
            "window with zero_grad(), then call accumulate_in_float32(optimizer) again."
        )
    rounded = gradient.to(parameter.dtype)
    # only float16 has a smaller range than float32; the check makes an accelerator wait
    if parameter.dtype is torch.float16:
        exact = entries(gradient)
        if (exact.isfinite() & entries(rounded).isinf()).any():
            raise OverflowError(
                f"the gradient of {place} reaches {exact.abs().max().item():.3g}, and float16 "
                "ends at 65504. Unscale and clip before the step, or use bfloat16 parameters."
            )
    return rounded


def _refuse_late_or_sharded(place: str, parameter: Tensor) -> None:
    if hasattr(parameter, "full_tensor"):
        raise TypeError(
            f"{place} is sharded (a {type(parameter).__name__}), and FSDP2 reduces gradients in a "
            "dtype of its own. Use float32 parameters with fully_shard(model, mp_policy="
            "MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32))."
        )
    if parameter.grad is not None and parameter.grad.dtype in HALF:
        raise ValueError(
            f"{place} already has a gradient, summed in {parameter.grad.dtype}: its lost digits "
            "do not come back. Call accumulate_in_float32 before the first backward(), or after "
            "optimizer.zero_grad()."
        )


def _refuse_closure(closure: object) -> None:
    if closure is not None:
        raise ValueError(
            "step() must be called without a closure after accumulate_in_float32: a backward() "
            "inside the step would accumulate in half precision. Call the closure before it."
        )
