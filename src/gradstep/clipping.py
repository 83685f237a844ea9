"""Clip gradients by global norm or by value: torch's signatures, a firmer contract."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, SupportsFloat

import torch
from torch import Tensor

from ._arguments import Nonfinite, at_least_zero, divisor_from, nonfinite_policy, norm_order
from ._cpu import clip_norm_on_cpu, limit_on_cpu, measure_on_cpu
from ._device import clip_norm_on_device, clip_value_on_device, measure_on_device
from ._gradients import Parameters, given_gradients, gradients_of
from ._norms import clip_target

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

__all__ = ["clip_grad_norm_", "clip_grad_value_", "global_norm"]


@torch.no_grad()
def global_norm(
    tensors: Tensor | Iterable[Tensor | None],
    norm_type: SupportsFloat | str = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
    *,
    process_group: "ProcessGroup | None" = None,
) -> Tensor:
    """Measure the norm of all gradients read as one vector, and change nothing.

    The norm is right for every finite gradient: squares that overflow or underflow
    float32 are taken in float64, and half precision is widened first. It does not
    depend on how the entries are split into tensors, shards or ranks (relative error at
    most 1e-6).

    Args:
        tensors: Gradients of any shapes, or one of them. `None` entries are skipped and
            a tensor that is listed twice counts once. Dtypes may be mixed: float16,
            bfloat16, float32, float64, complex64, complex128, strided or sparse. DTensors as
            for [`clip_grad_norm_`][gradstep.clip_grad_norm_].
        norm_type: The p of the p-norm, greater than 0; `float("inf")` or `"inf"` for the
            largest magnitude.
        error_if_nonfinite: Raise where an entry is NaN or infinite.
        foreach: Accepted as torch accepts it; the result never depends on it.
        process_group: As for [`clip_grad_norm_`][gradstep.clip_grad_norm_].

    Returns:
        A float64 tensor without dimensions, on the device of the first gradient: 0 for
        no gradients, NaN or infinite where an entry is.

    Raises:
        TypeError: An entry is no tensor, or is a `Parameter` (its norm would be a weight
            norm), or has a dtype without a norm.
        ValueError: `norm_type` is 0, negative or NaN.
        NonfiniteGradientError: `error_if_nonfinite` and an entry is NaN or infinite.

    Examples:
        >>> import torch, gradstep
        >>> gradients = [torch.tensor([3.0]), None, torch.tensor([[4.0, 0.0]])]
        >>> gradstep.global_norm(gradients)
        tensor(5., dtype=torch.float64)
        >>> gradstep.global_norm([torch.full((4,), 1e20)])  # torch: inf
        tensor(2.0000e+20, dtype=torch.float64)

    Source:
        `torch.nn.utils.get_total_norm`, whose signature this is.
    """
    order = norm_order(norm_type)
    gradients = given_gradients(tensors)
    if gradients.sharded or process_group is not None:
        from ._sharded import norm_everywhere

        policy = nonfinite_policy("leave", error_if_nonfinite)
        return norm_everywhere(gradients, process_group, order, policy)
    if not gradients.on_cpu:
        norm = measure_on_device(gradients, order)
        if error_if_nonfinite and not norm.scale.isfinite():
            raise gradients.error()
        return norm.value
    measured = measure_on_cpu(gradients, order)
    if error_if_nonfinite and not measured.finite:
        raise gradients.error()
    return torch.full((), measured.value, dtype=torch.float64)


def clip_grad_norm_(
    parameters: Parameters,
    max_norm: SupportsFloat,
    norm_type: SupportsFloat | str = 2.0,
    error_if_nonfinite: bool | None = None,
    foreach: bool | None = None,
    *,
    nonfinite: Nonfinite = "raise",
    divide_by: SupportsFloat = 1.0,
    process_group: "ProcessGroup | None" = None,
) -> Tensor:
    """Scale all gradients in place by one factor, so that their norm is at most `max_norm`.

    1. The norm is that of [`global_norm`][gradstep.global_norm]: right for every finite
       gradient.
    2. At or below `max_norm` no bit changes and, on the CPU, nothing is written.
    3. Afterwards the norm is at most `max_norm` as the gradients are stored, tiny
       thresholds included, and a second call changes nothing.
    4. A NaN or an infinity is told from a norm that is merely large. No gradient is
       ever half-written.

    All of it holds across ranks. A DTensor counts as the gradient it stands for: `Shard`s
    of any size add up, copies count once, `Partial` summands are added first. Lists may mix
    meshes and plain gradients, which are taken to be the same on every rank. Each rank of a
    mesh makes the same call, gets the same norm and applies the same coefficient; a NaN on
    one rank raises on all. This takes one all-gather of a few numbers for each group of
    ranks (FSDP2 or tensor parallelism: one; both: two; one more for `process_group`) and an
    all-reduce for the `Partial` gradients of each group and dtype.

    On CUDA the default needs one synchronization, to know whether to raise;
    `nonfinite="leave"` needs none.

    Args:
        parameters: Parameters, or one of them, or `model.named_parameters()`, whose names
            then stand in messages. Those without a gradient do not take part; one that is
            listed twice counts once.
        max_norm: The largest norm allowed, at least 0; `float("inf")` only measures.
        norm_type: The p of the p-norm, greater than 0; `float("inf")` or `"inf"` for the
            largest magnitude.
        error_if_nonfinite: torch's name for the policy. When given it decides: `True` is
            `nonfinite="raise"`, `False` is `nonfinite="leave"`.
        foreach: Accepted as torch accepts it; the result never depends on it.
        nonfinite: What happens where an entry is NaN or infinite. `"raise"`: an error
            that names the parameter. `"leave"`: every gradient stays as it is, and the
            returned norm, NaN or infinite, reports it.
        divide_by: Divide the gradients by this first, at least 1: a loss scale, the
            denominator of a loss sum, or their product. Division and clipping share one
            write.
        process_group: Ranks that hold different parameters, such as the stages of a
            pipeline: their gradients are one vector. Every rank of it calls, also one
            without gradients. A parameter that several stages hold goes to one of them.

    Returns:
        The norm after division and before clipping: a float64 tensor without dimensions, on
        the device of the first gradient.

    Raises:
        TypeError: `parameters` holds something else than tensors, a gradient has a dtype
            without a norm, or a number was expected.
        ValueError: `max_norm` is negative or NaN; `norm_type` is 0, negative or NaN;
            `divide_by` is not a finite number of at least 1; a DTensor is `Partial` otherwise than
            by summands, or lies on ranks of `process_group`, or not on this one.
        NonfiniteGradientError: The policy is `"raise"` and an entry is NaN or infinite.

    Examples:
        >>> import torch, gradstep
        >>> weight = torch.nn.Parameter(torch.zeros(2))
        >>> weight.grad = torch.tensor([3.0, 4.0])
        >>> gradstep.clip_grad_norm_([weight], max_norm=1.0)
        tensor(5., dtype=torch.float64)
        >>> weight.grad
        tensor([0.6000, 0.8000])

    Source:
        Pascanu, Mikolov and Bengio, "On the difficulty of training recurrent neural
        networks", 2013, algorithm 1 (arXiv 1211.5063). The signature is that of
        `torch.nn.utils.clip_grad_norm_`.
    """
    bound = at_least_zero("max_norm", max_norm)
    order = norm_order(norm_type)
    policy = nonfinite_policy(nonfinite, error_if_nonfinite)
    divisor = divisor_from(divide_by)
    gradients = gradients_of(parameters)
    if gradients.sharded or process_group is not None:
        from ._sharded import clip_norm_everywhere

        return clip_norm_everywhere(gradients, process_group, bound, order, policy, divisor)
    if not gradients.on_cpu:
        return clip_norm_on_device(gradients, bound, order, policy, divisor)
    norm = measure_on_cpu(gradients, order).divided(divisor)
    if not norm.finite:
        if policy == "raise":
            raise gradients.error()
    elif norm.value > bound or divisor != 1:
        target = clip_target(bound, order, norm.entries, gradients.precision())
        clip_norm_on_cpu(gradients, norm, target, divisor)
    return torch.full((), norm.value, dtype=torch.float64)


def clip_grad_value_(
    parameters: Parameters,
    clip_value: SupportsFloat,
    foreach: bool | None = None,
    *,
    nonfinite: Nonfinite = "raise",
    process_group: "ProcessGroup | None" = None,
) -> None:
    """Limit every coordinate of every gradient in place to [-`clip_value`, `clip_value`].

    This bounds coordinates, not the norm, and can turn the gradient. Where no entry is
    beyond the limit nothing is written on the CPU. The limit holds as stored: where
    bfloat16 has no 0.1, the next smaller number is taken. Of a complex gradient the real
    and the imaginary parts are coordinates.

    Args:
        parameters: As for [`clip_grad_norm_`][gradstep.clip_grad_norm_].
        clip_value: The largest magnitude allowed, at least 0.
        foreach: Accepted as torch accepts it; the result never depends on it.
        nonfinite: What happens where an entry is NaN or infinite. `"raise"`: an error
            that names the parameter. `"leave"`: every gradient stays as it is.
        process_group: As for [`clip_grad_norm_`][gradstep.clip_grad_norm_]: the policy is
            then the same on all its ranks.

    Raises:
        TypeError: `parameters` holds something else than tensors, a gradient has a dtype
            without a norm, or a number was expected.
        ValueError: `clip_value` is negative or NaN.
        NonfiniteGradientError: The policy is `"raise"` and an entry is NaN or infinite.

    Examples:
        >>> import torch, gradstep
        >>> weight = torch.nn.Parameter(torch.zeros(2))
        >>> weight.grad = torch.tensor([0.5, -4.0])
        >>> gradstep.clip_grad_value_([weight], clip_value=1.0)
        >>> weight.grad
        tensor([ 0.5000, -1.0000])

    Source:
        `torch.nn.utils.clip_grad_value_`, whose signature this is.
    """
    bound = at_least_zero("clip_value", clip_value)
    policy = nonfinite_policy(nonfinite)
    gradients = gradients_of(parameters)
    if gradients.sharded or process_group is not None:
        from ._sharded import clip_value_everywhere

        return clip_value_everywhere(gradients, process_group, bound, policy)
    if not gradients.on_cpu:
        return clip_value_on_device(gradients, bound, policy)
    largest = measure_on_cpu(gradients, torch.inf, coordinatewise=True)
    if not largest.finite:
        if policy == "raise":
            raise gradients.error()
    elif largest.value > bound:
        limit_on_cpu(gradients, bound)
