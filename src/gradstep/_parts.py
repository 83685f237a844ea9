"""The parts of a training state: what they are, what they hold, whether two agree."""

import collections
import copy
import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import Module
from torch.optim import Optimizer

PLAIN = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.Size)
TENSORS = (Tensor, torch.nn.Parameter, torch.nn.Buffer)
SEQUENCES = (list, tuple)
MAPPINGS = (dict, collections.OrderedDict, collections.Counter)


class Stateful(Protocol):
    """What can be a part: anything that gives its state and takes it back."""

    def state_dict(self) -> Any:
        """The state, as tensors, numbers, strings, and lists, tuples and dicts of them."""

    def load_state_dict(self, state_dict: Any, /) -> Any:
        """Continue from a state that `state_dict` returned."""


def checked_part(name: str, part: Any) -> Stateful:
    """`part`, or an error that names it."""
    missing = [m for m in ("state_dict", "load_state_dict") if not callable(getattr(part, m, None))]
    if missing:
        raise TypeError(
            f"{name} must have state_dict() and load_state_dict(), got {type(part).__name__} "
            f"without {' and '.join(missing)}. Give it the two methods, or leave it out if it has "
            "no state."
        )
    required = {"model": Module, "optimizer": Optimizer}.get(name)
    if required and not isinstance(part, required):
        raise TypeError(
            f"{name} must be a torch {required.__name__}, got {type(part).__name__}. Pass other "
            "parts under names of their own."
        )
    stateful: Stateful = part
    return stateful


def is_shard(value: Any) -> bool:
    """Whether this is a DTensor, of which each rank holds a part."""
    return isinstance(value, Tensor) and hasattr(type(value), "full_tensor")


def sharded(parts: Mapping[str, Stateful]) -> bool:
    """Whether a parameter of a model or of an optimizer is a DTensor."""
    models = (part for part in parts.values() if isinstance(part, Module))
    parameters = itertools.chain.from_iterable(model.parameters() for model in models)
    return any(map(is_shard, itertools.chain(parameters, (p for p, _ in optimized(parts)))))


def checked_state(name: str, part: Stateful, shards: bool = False) -> Any:
    """The state of a part, if it consists of data that is safe to load again."""
    state = part.state_dict()
    fault = next(_strangers(state, f"the state of {name}", shards), None)
    if fault:
        raise TypeError(
            f"{fault}, which a state file does not keep. Turn it into tensors, numbers, strings, "
            "or lists, tuples and dicts of them in its state_dict()."
        )
    return state


def _strangers(value: Any, place: str, shards: bool) -> Iterator[str]:
    kind = type(value)
    if kind in MAPPINGS:
        for key, entry in value.items():
            yield from _strangers(key, f"{place}, a key", shards)
            yield from _strangers(entry, f"{place}[{key!r}]", shards)
    elif kind in SEQUENCES:
        for index, entry in enumerate(value):
            yield from _strangers(entry, f"{place}[{index}]", shards)
    elif kind not in PLAIN + TENSORS and not (shards and is_shard(value)):
        yield f"{place} is of type {kind.__name__}"


def copied(value: Any) -> Any:
    """A copy that no later update can reach: in host memory, but for shards."""
    if is_shard(value):
        return value.detach().clone()
    if isinstance(value, Tensor):
        return value.detach().to("cpu", copy=True)
    if isinstance(value, dict):
        twin = copy.copy(value)  # keeps the type, and the metadata of a module's state
        for key, entry in value.items():
            twin[key] = copied(entry)
        return twin
    return type(value)(map(copied, value)) if type(value) in SEQUENCES else copy.deepcopy(value)


def difference(one: Any, other: Any, place: str) -> str | None:
    """The first place where two states differ in any bit; None where there is none."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return None if _same_tensor(one, other) else place
    if type(one) is not type(other):
        return place
    if isinstance(one, dict):
        if one.keys() != other.keys():
            return f"{place}, the keys"
        entries = ((key, one[key], other[key]) for key in one)
    elif isinstance(one, SEQUENCES):
        if len(one) != len(other):
            return f"{place}, the length"
        entries = ((i, *pair) for i, pair in enumerate(zip(one, other, strict=True)))
    else:
        both_nan = isinstance(one, float) and math.isnan(one) and math.isnan(other)
        return None if one == other or both_nan else place
    found = (difference(a, b, f"{place}[{key!r}]") for key, a, b in entries)
    return next((place for place in found if place), None)


def _same_tensor(one: Tensor, other: Tensor) -> bool:
    if is_shard(one) and is_shard(other):
        one, other = _shard(one), _shard(other)
    if (one.dtype, one.shape, one.layout) != (other.dtype, other.shape, other.layout):
        return False
    if one.layout is not torch.strided:
        one, other = one.to_dense(), other.to_dense()
    return torch.equal(_bytes(one), _bytes(other.to(one.device)))


def _shard(tensor: Any) -> Tensor:
    shard: Tensor = tensor.detach().to_local()
    return shard


def _bytes(tensor: Tensor) -> Tensor:
    # NaN differs from itself and -0.0 equals 0.0: bytes do neither
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)


def structure(parts: Mapping[str, Stateful]) -> dict[str, str]:
    """What must be the same in the run that saves and in the run that loads, by place."""
    found = {name: _kind(part) for name, part in parts.items()}
    for name, part in parts.items():
        if isinstance(part, Module):
            found |= {f"{name} {key}": _shape(entry) for key, entry in part.state_dict().items()}
    for place, (parameter, owner) in _by_place(parts):
        found[place] = f"{owner}, {_shape(parameter)}"
    found["number of CUDA devices"] = str(torch.cuda.device_count())
    return found


def optimized(parts: Mapping[str, Stateful]) -> list[tuple[Tensor, str]]:
    """All parameters of the optimizers, with their names in the models."""
    return [found for _, found in _by_place(parts)]


def _by_place(parts: Mapping[str, Stateful]) -> Iterator[tuple[str, tuple[Tensor, str]]]:
    owners = {
        id(parameter): f"{name} {key}"
        for name, part in parts.items()
        if isinstance(part, Module)
        for key, parameter in part.named_parameters()
    }
    for name, part in parts.items():
        if isinstance(part, Optimizer):
            for g, group in enumerate(part.param_groups):
                for i, parameter in enumerate(group["params"]):
                    owner = owners.get(id(parameter), "of no part")
                    yield f"{name} group {g} parameter {i}", (parameter, owner)


def _kind(part: Any) -> str:
    name = type(part).__name__
    bases = type(part).__bases__
    if bases[0].__name__ == "FSDPModule":  # fully_shard has put it before the model's own class
        name = bases[1].__name__
    if isinstance(part, torch.amp.GradScaler) and not part.is_enabled():
        return f"{name}, disabled"
    inner = getattr(part, "_schedulers", None)  # of SequentialLR and ChainedScheduler
    return f"{name} of {', '.join(map(_kind, inner))}" if inner else name


def _shape(entry: Any) -> str:
    return f"{entry.dtype} {list(entry.shape)}" if isinstance(entry, Tensor) else "extra state"
