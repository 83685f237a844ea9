"""How many bytes training holds before the first activation."""

import copy
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, SupportsIndex

import torch
from torch import Tensor
from torch.nn import Module, Parameter
from torch.optim import Adam, Optimizer

from ._arguments import integer_from

__all__ = ["StateBytes", "planned_state_bytes", "state_bytes"]


@dataclass(frozen=True)
class StateBytes:
    """Bytes of what lives from update to update, all alive at once after `backward()`.

    Activations, buffers, workspace and what an allocator reserves are not in it.

    Attributes:
        parameters: The parameters of the model, frozen ones too.
        gradients: One dense gradient for each parameter that is not frozen.
        moments: What the optimizer keeps for its parameters, but for its step counters.
        master_weights: Parameters of the optimizer that are not the model's own, as are
            float32 copies of half precision weights.
    """

    parameters: int
    gradients: int
    moments: int
    master_weights: int = 0

    @property
    def total(self) -> int:
        """The sum of all of them."""
        return self.parameters + self.gradients + self.moments + self.master_weights


def state_bytes(model: Module, optimizer: Optimizer) -> StateBytes:
    """Measure what a model and its optimizer hold, and predict what is not there yet.

    Before the first step the optimizer's state is predicted: its own `step` runs on copies
    that have shapes and dtypes but no memory, and nothing real changes. After the first step
    it is measured. So a model built under `torch.device("meta")` can be sized as well. A
    parameter that is used twice counts once; of a sharded one this rank's part counts.

    Args:
        model: The model, wrapped or not.
        optimizer: The optimizer of its parameters, of any class.

    Returns:
        The bytes, by kind.

    Raises:
        TypeError: `model` is no module, or `optimizer` no optimizer.
        ValueError: The state cannot be predicted; after one real step it can be measured.

    Examples:
        >>> import torch, gradstep
        >>> model = torch.nn.Linear(1000, 1000, bias=False)
        >>> optimizer = torch.optim.AdamW(model.parameters(), amsgrad=True)
        >>> gradstep.state_bytes(model, optimizer)
        StateBytes(parameters=4000000, gradients=4000000, moments=12000000, master_weights=0)

    Source:
        Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter
        models", 2020, section 3.1 (arXiv 1910.02054).
    """
    if not isinstance(model, Module):
        raise TypeError(f"model must be a torch.nn.Module, got a {type(model).__name__}.")
    if not isinstance(optimizer, Optimizer):
        raise TypeError(
            f"optimizer must be a torch optimizer, got {optimizer!r:.60} of type "
            f"{type(optimizer).__name__}. Build one, or use planned_state_bytes for a count."
        )
    own = {id(parameter): parameter for parameter in model.parameters()}
    return StateBytes(
        parameters=sum(map(_bytes, own.values())),
        gradients=sum(_gradient_bytes(p) for p in own.values() if p.requires_grad),
        moments=_moment_bytes(optimizer),
        master_weights=sum(_bytes(p) for p in _parameters(optimizer) if id(p) not in own),
    )


def planned_state_bytes(
    count: SupportsIndex,
    optimizer_class: type[Optimizer] = Adam,
    *,
    dtype: torch.dtype = torch.float32,
    master_dtype: torch.dtype | None = None,
    **options: Any,
) -> StateBytes:
    """Predict what training holds from a number of trainable parameters alone.

    They count as one flat tensor; where the state depends on shapes,
    [`state_bytes`][gradstep.state_bytes] needs the model.

    Args:
        count: The number of parameters, all of them trained.
        optimizer_class: The class of the optimizer.
        dtype: The dtype of the parameters and of their gradients.
        master_dtype: The dtype of a second copy of the weights, which the optimizer works on
            and its moments take the dtype of; `None` for no copy.
        **options: What `optimizer_class` takes besides parameters, as `momentum=0.9`.

    Returns:
        The bytes, by kind.

    Raises:
        TypeError: `count` is no integer.
        ValueError: `count` is negative, or the state cannot be predicted.

    Examples:
        >>> import gradstep
        >>> gradstep.planned_state_bytes(400_000_000).total / 1e9  # float32, Adam
        6.4

    Source:
        That of [`state_bytes`][gradstep.state_bytes].
    """
    entries = integer_from(0, "count", count)
    stored = Parameter(torch.empty(entries, dtype=dtype, device="meta"))
    worked_on = Parameter(torch.empty_like(stored, dtype=master_dtype or dtype))
    optimizer: Any = optimizer_class
    moments = _moment_bytes(optimizer([worked_on], **options))
    masters = _bytes(worked_on) if master_dtype else 0
    return StateBytes(_bytes(stored), _bytes(stored), moments, masters)


def _moment_bytes(optimizer: Optimizer) -> int:
    states = [optimizer.state.get(p, {}) for p in _parameters(optimizer)]
    if not all(states):
        rehearsed = _rehearsed_states(optimizer)
        states = [held or found for held, found in zip(states, rehearsed, strict=True)]
    return sum(_bytes(tensor) for state in states for tensor in _tensors(state))


def _rehearsed_states(optimizer: Optimizer) -> list[dict[str, Any]]:
    """The state of each parameter after a first step, in tensors without memory."""
    double = copy.copy(optimizer)
    double.state = defaultdict(dict)
    # the plain path: fused kernels and those for many tensors keep the same state
    plain = {"foreach": False, "fused": False, "capturable": False}
    double.param_groups = [
        {**group, **plain, "params": [_double(p) for p in group["params"]]}
        for group in optimizer.param_groups
    ]
    try:
        double.step()
    except Exception as error:
        if not optimizer.state:
            raise ValueError(
                f"the state of {type(optimizer).__name__} cannot be predicted from shapes and "
                f"dtypes ({type(error).__name__}: {error}). Call optimizer.step() once after a "
                "backward() of the real model; state_bytes(model, optimizer) then measures it."
            ) from error
        double.state.clear()  # it has stepped: what it holds is what it needs
    return [double.state[p] for p in _parameters(double)]


def _double(parameter: Tensor) -> Tensor:
    double = Parameter(torch.empty_like(_local(parameter), device="meta"))
    double.grad = torch.empty_like(double) if parameter.requires_grad else None
    return double


def _parameters(optimizer: Optimizer) -> list[Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def _tensors(value: object) -> Iterator[Tensor]:
    """The tensors of a state, but for step counters; some optimizers nest them."""
    if isinstance(value, dict):
        value = [entry for key, entry in value.items() if key != "step"]
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for entry in value:
            yield from _tensors(entry)


def _gradient_bytes(parameter: Tensor) -> int:
    # an older torch has no grad_dtype; its None lets the gradient arrive in any dtype
    allowed = getattr(parameter, "grad_dtype", None) or parameter.dtype
    return _local(parameter).numel() * allowed.itemsize


def _bytes(tensor: Tensor) -> int:
    return _local(tensor).nbytes


def _local(tensor: Tensor) -> Tensor:
    """The part of a sharded tensor that this rank holds; a plain one is all here."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor
