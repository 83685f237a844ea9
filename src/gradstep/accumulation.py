"""One update from several microbatches, with the denominator of all of them."""

import itertools
import math
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, SupportsFloat, SupportsIndex, TypeVar

import torch
from torch import Tensor
from torch.nn import Module
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from ._arguments import Nonfinite, at_least_zero, integer_from
from ._ranks import Ranks, Tails
from .clipping import clip_grad_norm_
from .objectives import CrossEntropy, Objective
from .records import Update

__all__ = ["updates", "windows"]

T = TypeVar("T")
WITHOUT_AUTOCAST = nullcontext()


def windows(iterable: Iterable[T], k: SupportsIndex) -> Iterator[list[T]]:
    """Group microbatches into accumulation windows of `k`; the last one may be shorter.

    It is lazy: a window is taken from `iterable` when it is asked for, and nothing beyond
    it, so that a data cursor between two windows stands exactly at the boundary.

    Args:
        iterable: Microbatches, of any kind and any or no length.
        k: The number of microbatches in a window, at least 1.

    Returns:
        An iterator over lists of `k` items, the tail flushed as a list of fewer.

    Raises:
        TypeError: `k` is not an integer, or `iterable` cannot be iterated.
        ValueError: `k` is less than 1.

    Examples:
        >>> import gradstep
        >>> list(gradstep.windows("abcde", 2))
        [['a', 'b'], ['c', 'd'], ['e']]
    """
    length = integer_from(1, "k", k)
    try:
        iterator = iter(iterable)
    except TypeError:
        raise TypeError(
            f"iterable (the batches of updates) must be iterable, got {iterable!r:.60} of type "
            f"{type(iterable).__name__}. Pass a loader or a list of microbatches."
        ) from None
    return iter(lambda: list(itertools.islice(iterator, length)), [])


def updates(
    model: Module,
    batches: Iterable[Any],
    optimizer: Optimizer,
    scheduler: LRScheduler | None = None,
    *,
    accumulation_steps: SupportsIndex,
    objective: Objective | None = None,
    max_norm: SupportsFloat = 1.0,
    scaler: torch.amp.GradScaler | None = None,
    autocast: torch.dtype | None = None,
    tails: Tails = "raise",
) -> Iterator[Update]:
    """Train for one pass over `batches`, one update for each window, and report each.

    A generator: each `next` performs one update. `list(updates(...))` is an epoch; a
    progress bar can wrap it; whoever stops between two records leaves everything at a
    window boundary. For each window

    1. the denominators of all its microbatches, on all ranks, are added up, before the first
       forward;
    2. each microbatch adds its loss sum, divided by that total, to the gradients, which the
       ranks reduce once, in the backward pass of the last one;
    3. the complete gradient is unscaled once, measured, and clipped once;
    4. the optimizer steps, or the scaler skips it, and the scaler updates;
    5. gradients are set to `None`, and the scheduler follows an accepted update.

    The model may be wrapped by `DistributedDataParallel`, or sharded by `fully_shard` with its
    gradient divide factor left as it is. Each rank then makes the same call with its own batches,
    and targets, mean loss, norm and decision are those of all ranks together. The layers may be
    split by `parallelize_module` (tensor parallelism), with `fully_shard` over another dimension
    of the mesh or without. Ranks that hold parts of one layer pass the same batches, which count
    once: a fingerprint tells where they differ. Dropout and plain parameters have to be the same
    on them, which is not checked.

    Apart from what the model does, and an all-gather for a sharded norm over each dimension of
    its mesh, a window takes two all-gathers of a few numbers over gloo, and the call one more at
    its end. A wait for another rank ends at the time limit that `init_process_group` was given.

    Args:
        model: Any module; in training mode if it should be.
        batches: Microbatches, on the model's device, as `objective` takes them; by default
            pairs `(inputs, targets)`. Any iterable, with or without a length.
        optimizer: Its parameters are the ones that are clipped, together.
        scheduler: Advances once for each accepted update.
        accumulation_steps: Microbatches in a window, at least 1. The tail is flushed with
            its own denominator.
        objective: An additive loss; `CrossEntropy()` when `None`.
        max_norm: As for [`clip_grad_norm_`][gradstep.clip_grad_norm_]; `float("inf")` only
            measures.
        scaler: For float16 autocast. A disabled scaler is no scaler.
        autocast: The dtype of an autocast region around forward and loss.
        tails: What happens where ranks have unequal numbers of microbatches in a window, or of
            windows. `"raise"`: the same error on every rank, before the first forward.
            `"empty"`: short ranks repeat their latest microbatch with a loss of zero, so that
            the update is that of all data; its forward passes still draw random numbers and
            move running statistics.

    Yields:
        An [`Update`][gradstep.Update] for each window; its `microbatches` are those of this
        rank, without empty ones.

    Raises:
        TypeError: `accumulation_steps` is not an integer, `max_norm` is not a number, `scheduler`
            needs a metric, or the model is a `FullyShardedDataParallel`.
        ValueError: `accumulation_steps` is less than 1, `max_norm` is negative or NaN, `tails`
            is unknown, a window has no supervised target on any rank, or a loss sum is not one
            number. On all ranks alike: their microbatches differ in number and `tails` is
            `"raise"`, or their loss scales differ; tensor-parallel ranks have other microbatches; a
            parameter is outside of the wrapper, or parts of the model are wrapped over other ranks
            than the rest.
        FloatingPointError: A loss is not finite; or a gradient is not, and no scaler is
            there to skip the step; or skipped steps have brought the loss scale to 0.
        RuntimeError: No parameter of the optimizer received a gradient; or another rank failed,
            was killed, left the loop or came too late, which the message tells.

    Each error of a window names the window, and where there is one the microbatch.
    Parameters, moments, scheduler and scaler are then as before that window, and no gradient
    is pending; only where `optimizer.step()` itself raised, what it changed stays. After an error
    of one rank alone, all processes have to start again.

    Examples:
        >>> import torch, gradstep
        >>> model = torch.nn.Linear(4, 3)
        >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> rows, targets = torch.randn(7, 4), torch.tensor([0, 1, -100, 2, 0, -100, 1])
        >>> batches = zip(rows.split(2), targets.split(2))
        >>> for update in gradstep.updates(model, batches, optimizer, accumulation_steps=3):
        ...     print(update.window, update.microbatches, update.targets)
        0 3 4
        1 1 1

    Source:
        The order is that of "Automatic Mixed Precision examples" in PyTorch's documentation;
        the denominator is derived in the lesson's section 4.
    """
    length = integer_from(1, "accumulation_steps", accumulation_steps)
    bound = at_least_zero("max_norm", max_norm)
    objective = CrossEntropy() if objective is None else objective
    _refuse_others(model, optimizer, objective, scheduler, scaler, autocast)
    scaler = scaler if scaler is not None and scaler.is_enabled() else None
    if tails not in ("raise", "empty"):
        raise ValueError(f"tails must be 'raise' or 'empty', got {tails!r}.")
    grouped = windows(batches, length)
    return _updates(model, grouped, optimizer, scheduler, objective, bound, scaler, autocast, tails)


def _updates(
    model: Module,
    windows: Iterable[list[Any]],
    optimizer: Optimizer,
    scheduler: LRScheduler | None,
    objective: Objective,
    max_norm: float,
    scaler: torch.amp.GradScaler | None,
    autocast: torch.dtype | None,
    tails: Tails,
) -> Iterator[Update]:
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    with Ranks(model, objective, scaler, tails) as ranks:
        # --8<-- [start:loop]
        for window in ranks.in_step(windows):  # targets counted, on all ranks
            parameters = _parameters(optimizer)
            _forget_gradients(parameters)
            loss_sums: list[Tensor] = []
            try:
                for microbatch, divisor, last in window.contributions:
                    with ranks.synchronize(last):  # around forward and backward
                        with _autocast(optimizer, autocast):
                            loss_sum = objective(model, microbatch)
                        loss_sums.append(loss_sum.detach())
                        if last:
                            ranks.meet(loss_sums, window)  # or all raise: before the reduction
                        # the divisor: the window's targets over the number of ranks
                        derivative = _derivative(loss_sum, divisor)
                        scaled = derivative if scaler is None else scaler.scale(derivative)
                        loss_sum.backward(scaled)
                mean_loss = ranks.total(loss_sums, window) / window.targets

                if scaler is not None:
                    scaler.unscale_(optimizer)  # once, when the gradient is complete
                policy: Nonfinite = "raise" if scaler is None else "leave"
                complete = _with_gradients(parameters, names)
                norm = clip_grad_norm_(complete, max_norm, nonfinite=policy).item()
                scale = _live_scale(scaler, window.index)
                rate = float(optimizer.param_groups[0]["lr"])
                accepted = _step(optimizer, scaler, scale, norm)
            except BaseException as error:
                _abandon(error, window.index, len(loss_sums), optimizer, scaler)
                raise

            _forget_gradients(parameters)  # after a skipped step they still hold infinity
            if accepted and scheduler is not None:
                scheduler.step()
            # --8<-- [end:loop]
            yield Update(
                window=window.index,
                microbatches=window.microbatches,
                targets=window.targets,
                mean_loss=mean_loss,
                pre_clip_norm=norm,
                clip_coefficient=_coefficient(norm, max_norm),
                learning_rate=rate,
                accepted=accepted,
            )


def _refuse_others(
    model: Any, optimizer: Any, objective: Any, scheduler: Any, scaler: Any, autocast: Any
) -> None:
    """What type hints forbid, before the first window."""
    if not isinstance(model, Module):
        raise TypeError(f"model must be a torch.nn.Module, got {model!r:.60}.")
    if not hasattr(optimizer, "param_groups"):
        raise TypeError(f"optimizer must be a torch.optim.Optimizer, got {optimizer!r:.60}.")
    if not callable(getattr(objective, "denominator", None)):
        raise TypeError(
            f"objective must have a denominator, got {type(objective).__name__}. Use gradstep's "
            "CrossEntropy() or MeanSquaredError(), or Additive(loss_sum, count)."
        )
    if isinstance(scheduler, ReduceLROnPlateau):
        raise TypeError(
            "scheduler must advance by updates, got a ReduceLROnPlateau, which needs a metric. "
            "Step it yourself between two records."
        )
    if not isinstance(scaler, torch.amp.GradScaler | None):
        raise TypeError(f"scaler must be a torch.amp.GradScaler, got {scaler!r:.60}.")
    if not isinstance(autocast, torch.dtype | None):
        raise TypeError(
            f"autocast must be a torch.dtype, got {autocast!r:.60}. Use torch.bfloat16."
        )


def _derivative(loss_sum: Tensor, divisor: float) -> Tensor:
    """That of the loss, `loss_sum / divisor`, by `loss_sum`: where the backward pass starts.

    The gradients are those of `(loss_sum / divisor).backward()`, and two kernels are saved.
    """
    if loss_sum.numel() != 1:
        raise ValueError(
            f"objective must give a loss sum, which is one number, got a loss of shape "
            f"{tuple(loss_sum.shape)}. Add up its entries, with .sum()."
        )
    return torch.full_like(loss_sum, 1 / divisor)


def _coefficient(norm: float, max_norm: float) -> float:
    if not math.isfinite(norm):
        return math.nan
    return min(1.0, max_norm / norm) if norm else 1.0


def _live_scale(scaler: torch.amp.GradScaler | None, index: int) -> float:
    scale = 1.0 if scaler is None else scaler.get_scale()
    if scale == 0:
        raise FloatingPointError(
            f"the loss scale is 0 in window {index}: step after step was skipped, so the gradients "
            "are not finite at any scale. Look for a loss whose derivative does not exist."
        )
    return scale


def _step(
    optimizer: Optimizer, scaler: torch.amp.GradScaler | None, scale: float, norm: float
) -> bool:
    """Step, unless the scaler found infinities; only its scale tells whether it did."""
    if scaler is None:
        optimizer.step()
        return True
    if not math.isfinite(norm):  # which all ranks know; the scaler of one saw its shards alone
        for found in scaler._found_inf_per_device(optimizer).values():
            found.fill_(1)
    scaler.step(optimizer)
    scaler.update()
    return scaler.get_scale() >= scale


def _forget_gradients(parameters: list[Tensor]) -> None:
    """What `optimizer.zero_grad(set_to_none=True)` does, without its hooks: it is called twice."""
    for parameter in parameters:
        parameter.grad = None


def _with_gradients(parameters: list[Tensor], names: dict[int, str]) -> list[tuple[str, Tensor]]:
    """The parameters that have a gradient, with the model's names for them."""
    complete = [
        (names.get(id(p), "outside the model"), p) for p in parameters if p.grad is not None
    ]
    if not complete:
        raise RuntimeError(
            "no parameter of the optimizer received a gradient. Check requires_grad, and that the "
            "optimizer was given the parameters of this model."
        )
    return complete


def _parameters(optimizer: Optimizer) -> list[Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _autocast(optimizer: Optimizer, dtype: torch.dtype | None) -> AbstractContextManager[Any]:
    if dtype is None:
        return WITHOUT_AUTOCAST
    return torch.autocast(_parameters(optimizer)[0].device.type, dtype=dtype)


def _abandon(
    error: BaseException,
    window: int,
    done: int,
    optimizer: Optimizer,
    scaler: torch.amp.GradScaler | None,
) -> None:
    """Leave no trace of a window that failed before its step, and name it in the error."""
    error.add_note(f"in window {window} of updates(), {done} of its microbatches done")
    _forget_gradients(_parameters(optimizer))
    if scaler is not None:
        with suppress(AssertionError):  # torch's, where no loss was scaled yet
            scaler.update(scaler.get_scale())  # forget that this optimizer was unscaled
