"""Buffers that a forward pass moves, and recomputation without moving them again."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module

from ._random_state import random_state, set_random_state

__all__ = ["moving_buffers", "replay_buffers"]

Contexts = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]


def moving_buffers(module: Module, *args: Any, **kwargs: Any) -> list[str]:
    """Name the buffers that a forward pass changes: they would move twice if recomputed.

    It runs the module once, in the mode it is in, without gradients, and afterwards buffers
    and random generators are as before; state that is no registered buffer moves for real. So
    it also finds the buffers of classes that nobody has listed. What one input does not move,
    another might.

    Args:
        module: The module that you mean to checkpoint.
        *args: What its forward takes.
        **kwargs: What its forward takes by name.

    Returns:
        Their names, as in `module.named_buffers()`; empty where none moved.

    Raises:
        TypeError: `module` is no module.

    Examples:
        >>> import torch, gradstep
        >>> block = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3))
        >>> gradstep.moving_buffers(block, torch.randn(5, 3))
        ['1.running_mean', '1.running_var', '1.num_batches_tracked']
        >>> gradstep.moving_buffers(block.eval(), torch.randn(5, 3))
        []
    """
    _require_module(module)
    before, generators = dict(module.named_buffers()), random_state()
    try:
        with torch.no_grad(), _Replay(dict(_places((module,)))):
            module(*args, **kwargs)
            after = dict(module.named_buffers())
    finally:
        set_random_state(generators)
    return [name for name, buffer in before.items() if _moved(buffer, after.get(name))]


def replay_buffers(*modules: Module) -> Callable[[], Contexts]:
    """Make a `context_fn` for torch's `checkpoint` that lets buffers move once, not twice.

    Recomputation is a second forward pass: the running statistics of BatchNorm would move
    again, and spectral norm would take its power iteration from another place and so
    compute another function than forward did. Under this context recomputation sees copies
    of what forward found, and the buffers keep what forward left.

    It costs one copy of the buffers for each checkpointed call until that call is freed, and
    a second one while it is recomputed. State that is no registered buffer, as a counter in
    an attribute, is not seen. `torch.compile` accepts no such `context_fn`.

    Args:
        *modules: What the checkpointed function runs; their submodules are included.

    Returns:
        A `context_fn`, for any number of calls.

    Raises:
        TypeError: One of them is no module.

    Examples:
        >>> import torch, gradstep
        >>> from torch.utils.checkpoint import checkpoint
        >>> norm = torch.nn.BatchNorm1d(1)
        >>> x = torch.tensor([[0.0], [2.0], [10.0], [12.0]], requires_grad=True)
        >>> replay = gradstep.replay_buffers(norm)
        >>> checkpoint(norm, x, use_reentrant=False, context_fn=replay).sum().backward()
        >>> norm.num_batches_tracked, norm.running_mean  # without: 2 and 1.14
        (tensor(1), tensor([0.6000]))
    """
    for module in modules:
        _require_module(module)

    def context_fn() -> Contexts:
        found: dict[_Place, Tensor] = {}
        return _Record(modules, found), _Replay(found)

    return context_fn


Versions = dict[str, list[tuple[Tensor, int]]]  # the buffers of each module


def versions(layers: Iterable[tuple[int, Module]]) -> Versions:
    """Which buffers there are and how often each was written: no copy, no wait for a device.

    torch does not count what the kernel of BatchNorm writes, but BatchNorm has a counter.
    """
    return {
        f"layer {place} ({type(owner).__name__})": [
            (buffer, -1 if buffer.is_inference() else buffer._version)
            for buffer in owner.buffers(recurse=False)
        ]
        for number, layer in layers
        for place, owner in layer.named_modules(prefix=str(number))
    }


def moved_between(before: Versions, after: Versions) -> list[str]:
    """The modules of which a buffer was written or exchanged."""

    def stamps(buffers: list[tuple[Tensor, int]]) -> list[tuple[int, int]]:
        return [(id(buffer), version) for buffer, version in buffers]

    return [m for m, buffers in before.items() if stamps(buffers) != stamps(after.get(m, []))]


_Place = tuple[Module, str]  # a module and the name of one of its own buffers


class _Record(AbstractContextManager[None]):
    """Copies the buffers as forward finds them."""

    def __init__(self, modules: Iterable[Module], found: dict[_Place, Tensor]) -> None:
        self._modules, self._found = tuple(modules), found

    def __enter__(self) -> None:
        self._found.update(_copies(dict(_places(self._modules))))

    def __exit__(self, *_: object) -> None:
        pass


class _Replay(AbstractContextManager[None]):
    """Puts copies in the places of buffers, and afterwards what was there.

    Exchanged, not written: a write would mark the buffer as changed for the backward passes
    that have saved it. It can be entered again, as a graph that is retained needs.
    """

    def __init__(self, found: Mapping[_Place, Tensor]) -> None:
        self._found, self._present = found, list[dict[_Place, Tensor]]()

    def __enter__(self) -> None:
        self._present.append({place: getattr(*place) for place in self._found})
        _put(_copies(self._found))

    def __exit__(self, *_: object) -> None:
        _put(self._present.pop())


def _places(modules: Iterable[Module]) -> Iterator[tuple[_Place, Tensor]]:
    for module in modules:
        for owner in module.modules():
            for name, buffer in owner.named_buffers(recurse=False):
                yield (owner, name), buffer


def _copies(buffers: Mapping[_Place, Tensor]) -> dict[_Place, Tensor]:
    # a tensor in two places has one copy, so that it stays one
    made = {id(buffer): buffer.detach().clone() for buffer in buffers.values()}
    return {place: made[id(buffer)] for place, buffer in buffers.items()}


def _put(buffers: Mapping[_Place, Tensor]) -> None:
    for (owner, name), buffer in buffers.items():
        setattr(owner, name, buffer)


def _moved(before: Tensor, after: Tensor | None) -> bool:
    return after is None or before.dtype != after.dtype or not torch.equal(before, after)


def _require_module(module: object) -> None:
    if not isinstance(module, Module):
        raise TypeError(
            f"a torch.nn.Module was expected, got {module!r:.60} of type {type(module).__name__}. "
            "Pass the module whose buffers may move."
        )
