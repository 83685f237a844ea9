"""States with DTensors in them: taken apart for a file, and put together for this rank."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from ._parts import SEQUENCES, Stateful, is_shard
from ._state_file import TrainingStateError

SHARD = "a tensor in the shards"  # the only key of what stands for one


def apart(states: Mapping[str, Any], parts: Mapping[str, Stateful]) -> tuple[dict[str, Any], Any]:
    """The states without their shards, and the shards by their places."""
    shards: dict[str, Tensor] = {}
    plain = {name: _plain(state, name, shards) for name, state in states.items()}
    models = _models(parts)
    for place, shard in shards.items():
        model = _model(place, models)
        if model is None or model.shape != shard.shape:
            raise TypeError(
                f"{place} is a DTensor of shape {list(shard.shape)} without a parameter of this "
                "shape, so that no other number of ranks could lay it out. Keep it as a plain "
                "tensor."
            )
    return plain, shards


def put_together(
    plain: Mapping[str, Any], parts: Mapping[str, Stateful]
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The states with an empty shard of this rank wherever one is to be loaded, and those."""
    shards: dict[str, Tensor] = {}
    models = _models(parts)
    states = {name: _laid_out(state, models, shards) for name, state in plain.items()}
    return states, shards


def _models(parts: Mapping[str, Stateful]) -> dict[str, Tensor]:
    """What tells how a shard lies: the tensor at its place, or the parameter it belongs to."""
    found: dict[str, Tensor] = {}
    for name, part in parts.items():
        if isinstance(part, Optimizer):
            parameters = [p for group in part.param_groups for p in group["params"]]
            found |= {f"{name}/state/{i}": p for i, p in enumerate(parameters) if is_shard(p)}
        else:
            _plain(part.state_dict(), name, found)
    return found


def _model(place: str, models: Mapping[str, Tensor]) -> Tensor | None:
    return models.get(place, models.get(place.rpartition("/")[0]))


def _plain(state: Any, place: str, shards: dict[str, Tensor]) -> Any:
    if is_shard(state):
        shards[place] = state.detach()
        return {SHARD: (place, state.dtype, tuple(state.shape))}
    if isinstance(state, dict):
        twin = state.copy()
        twin.update({key: _plain(e, f"{place}/{key}", shards) for key, e in state.items()})
        return twin
    if type(state) in SEQUENCES:
        return type(state)(_plain(e, f"{place}/{i}", shards) for i, e in enumerate(state))
    return state


def _laid_out(state: Any, models: Mapping[str, Tensor], shards: dict[str, Tensor]) -> Any:
    if isinstance(state, dict) and state.keys() == {SHARD}:
        place, dtype, shape = state[SHARD]
        model = _model(place, models)
        if model is None or tuple(model.shape) != shape:
            here = "is not sharded" if model is None else f"has {list(model.shape)}"
            raise TrainingStateError(
                f"{place} is sharded with shape {list(shape)} in the file and {here} here. Shard "
                "what was sharded in the run that saved it. Nothing was changed."
            )
        shards[place] = torch.empty_like(model, dtype=dtype, requires_grad=False)
        return shards[place]
    if isinstance(state, dict):
        twin = state.copy()
        twin.update({key: _laid_out(e, models, shards) for key, e in state.items()})
        return twin
    if type(state) in SEQUENCES:
        return type(state)(_laid_out(e, models, shards) for e in state)
    return state
