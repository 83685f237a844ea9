"""Activation checkpointing of a chain: recompute in backward what forward did not keep."""

import math
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint

from ._arguments import integer_from
from .buffers import moved_between, replay_buffers, versions

__all__ = ["best_segment", "checkpoint_chain", "segment_peak"]


def checkpoint_chain(
    layers: Iterable[Callable[[Any], Any]],
    x: Any,
    segment: int,
    *,
    preserve_rng_state: bool = True,
    preserve_buffers: bool = True,
) -> Any:
    """Run layers one after another, and keep for backward only the input of every segment.

    Backward runs each segment a second time, and so meets the activations that forward did
    not keep. Where every layer computes the same twice, outputs and gradients are those of
    the plain chain, bit for bit. The last segment is recomputed as well, so that what follows
    the chain does not share its peak with a segment. It is torch's `checkpoint` that does the
    work, always with `use_reentrant=False`.

    Args:
        layers: An `nn.Sequential`, or any modules or functions. Each takes what the one
            before it returned.
        x: The input of the first layer.
        segment: Layers in a segment, at least 1; the last may be shorter.
            [`best_segment`][gradstep.best_segment] suggests one for equal layers.
        preserve_rng_state: Recompute with the state that torch's generators had, so that
            dropout drops the same entries. Those of Python and NumPy are not kept.
        preserve_buffers: Recompute with the buffers that forward found and put the present
            ones back, so that running statistics move once:
            [`replay_buffers`][gradstep.replay_buffers], with its costs. Those of layers that are
            modules; a module that a function calls is not seen.

    Returns:
        What the last layer returned.

    Raises:
        TypeError: A layer cannot be called, or `segment` is no integer.
        ValueError: There is no layer, or `segment` is below 1.
        CheckpointError: From torch, in backward: a layer saved other tensors the second time.

    Warns:
        UserWarning: Without `preserve_buffers`, a segment that backward may recompute has moved
            buffers, as BatchNorm does in training; it names the modules. It goes by torch's count
            of writes, so a kernel that is not counted passes unseen, as `F.batch_norm` without
            a counter beside it; [`moving_buffers`][gradstep.moving_buffers] compares values.

    Examples:
        >>> import torch, gradstep
        >>> layers = [torch.nn.Linear(4, 4) for _ in range(9)]
        >>> rows = torch.ones(2, 4)
        >>> output = gradstep.checkpoint_chain(layers, rows, segment=3)
        >>> torch.equal(output, torch.nn.Sequential(*layers)(rows))
        True
        >>> output.sum().backward()  # runs each segment again

    Source:
        Chen, Xu, Zhang and Guestrin, "Training deep nets with sublinear memory cost", 2016,
        section 4 (arXiv 1604.06174).
    """
    chain = _chain(layers)
    size = integer_from(1, "segment", segment)
    guarded = not preserve_buffers and torch.is_grad_enabled() and not torch.compiler.is_compiling()
    moved: list[str] = []
    for start in range(0, len(chain), size):
        part = chain[start : start + size]
        places = [(n, layer) for n, layer in enumerate(part, start) if isinstance(layer, Module)]
        modules = [module for _, module in places]
        options: dict[str, Any] = {"preserve_rng_state": preserve_rng_state}
        # without buffers nothing is passed: torch.compile takes no other context_fn
        if preserve_buffers and any(True for module in modules for _ in module.buffers()):
            options["context_fn"] = replay_buffers(*modules)
        before = versions(places) if guarded else {}
        x = checkpoint(_composed(part), x, use_reentrant=False, **options)
        if before and _requires_grad(x):
            moved += moved_between(before, versions(places))
    if moved:
        _warn_of(moved)
    return x


def segment_peak(layer_count: int, segment: int) -> int:
    """Count the activations alive at the worst moment of a checkpointed chain: L/k + k.

    That moment comes when backward has recomputed the last segment: alive are the inputs of
    all L/k segments and the k activations of this one. An activation is what one layer keeps
    for backward, taken as equal for all layers. Parameters, gradients and the workspace of a
    kernel are not counted.

    Args:
        layer_count: The L layers of the chain, at least 1.
        segment: The k layers of a segment, at least 1.

    Returns:
        The number of activations; L/k is rounded up.

    Raises:
        TypeError: One of them is no integer.
        ValueError: One of them is below 1.

    Examples:
        >>> import gradstep
        >>> [gradstep.segment_peak(64, k) for k in (1, 2, 4, 8, 16, 32, 64)]
        [65, 34, 20, 16, 20, 34, 65]

    Source:
        Chen et al. 2016, section 4 (arXiv 1604.06174), whose k is the number of segments.
    """
    layers = integer_from(1, "layer_count", layer_count)
    size = min(integer_from(1, "segment", segment), layers)
    return math.ceil(layers / size) + size


def best_segment(layer_count: int) -> int:
    """Find the segment with the smallest [`segment_peak`][gradstep.segment_peak].

    It lies near the square root of the number of layers. Where several are equal, it is
    the longest.

    Args:
        layer_count: The layers of the chain, at least 1.

    Returns:
        The layers of a segment.

    Raises:
        TypeError: `layer_count` is no integer.
        ValueError: It is below 1.

    Examples:
        >>> import gradstep
        >>> gradstep.best_segment(64), gradstep.best_segment(10)
        (8, 5)
    """
    layers = integer_from(1, "layer_count", layer_count)
    return min(range(layers, 0, -1), key=lambda size: segment_peak(layers, size))


def _requires_grad(output: Any) -> bool:
    return any(leaf.requires_grad for leaf in tree_leaves(output) if isinstance(leaf, Tensor))


def _warn_of(moved: list[str]) -> None:
    rest = f" and {len(moved) - 3} more" if len(moved) > 3 else ""
    warnings.warn(
        f"forward moved buffers of {', '.join(moved[:3])}{rest}, and recomputation will move them "
        "a second time. Leave preserve_buffers=True (in your own call of checkpoint: "
        "context_fn=replay_buffers(module)), or put the modules in eval() if they must not move.",
        UserWarning,
        stacklevel=3,  # the call of checkpoint_chain
    )


def _composed(layers: list[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        for layer in layers:
            x = layer(x)
        return x

    return run


def _chain(layers: Iterable[Callable[[Any], Any]]) -> list[Callable[[Any], Any]]:
    if not isinstance(layers, Iterable):
        raise TypeError(
            f"layers must be layers one after another, got one {type(layers).__name__}. Pass an "
            "nn.Sequential or a list."
        )
    chain = list(layers)
    if not chain:
        raise ValueError("layers must hold at least one layer, got none.")
    for number, layer in enumerate(chain):
        if not callable(layer):
            raise TypeError(
                f"layers must be modules or functions, but layer {number} is {layer!r:.60} of "
                f"type {type(layer).__name__}. Pass an nn.Sequential or a list."
            )
    return chain
