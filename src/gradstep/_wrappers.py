"""DDP, FSDP2 and tensor parallelism: which ranks train a model, and when they reduce gradients."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from typing import Any, NamedTuple

import torch.distributed as dist
from torch import Tensor
from torch.nn import Module
from torch.nn.parallel import DistributedDataParallel


class Team(NamedTuple):
    """The ranks that train one model."""

    ranks: list[int]  # all that have to stay in step
    data: list[int]  # those with other data, over which the wrapper averages; this one is there


class Wrappers:
    """The DDP or FSDP2 modules of a model, the model itself or parts of it; often none."""

    def __init__(self, model: Module) -> None:
        self._model = model
        # a process that never imported FSDP2 has no such module, and is spared its import
        fsdp: Any = getattr(sys.modules.get("torch.distributed.fsdp"), "FSDPModule", ())
        modules = list(model.modules()) if dist.is_available() and dist.is_initialized() else []
        self._ddp = [m for m in modules if isinstance(m, DistributedDataParallel)]
        self._fsdp: list[Any] = [m for m in modules if isinstance(m, fsdp)]
        if any(type(m).__name__ == "FullyShardedDataParallel" for m in modules):
            raise TypeError(
                "the model is wrapped by FullyShardedDataParallel, whose sharding is torch's first "
                "and not supported. Use torch.distributed.fsdp.fully_shard(model)."
            )
        if self.reduces:
            self._refuse_parameters_outside(model)

    @property
    def team(self) -> Team | None:
        """Who trains the model: data parallel by its wrapper, and parts of layers by its DTensors.

        `None` for a plain model. Ranks that hold parts of one layer see the same data.
        """
        data = [dist.get_process_group_ranks(module.process_group) for module in self._ddp]
        data += [_ranks_of(group.mesh_info.mesh) for group in self._param_groups()]
        if any(ranks != data[0] for ranks in data):
            raise ValueError(
                "the model's parts are wrapped over different process groups, so there is no one "
                "number of ranks to divide by. Wrap all of them over one."
            )
        tensors = [p.sharded_param for g in self._param_groups() for p in g.fsdp_params]
        tensors += list(self._model.parameters())
        meshes = {t.device_mesh for t in tensors if hasattr(t, "device_mesh")}
        parts = [_ranks_of(mesh) for mesh in meshes if mesh.get_coordinate() is not None]
        ranks = sorted({rank for some in data + parts for rank in some})
        return Team(ranks, data[0] if data else [dist.get_rank()]) if ranks else None

    @property
    def reduces(self) -> bool:
        """Whether gradients of other data come together, so that one spoils that of all ranks."""
        return bool(self._ddp or self._fsdp)

    def synchronize(self, last: bool) -> AbstractContextManager[None]:
        """Around forward *and* backward: gradients are reduced in the last pass of a window."""
        return self._synchronize(last) if self.reduces else nullcontext()

    @contextmanager
    def _synchronize(self, last: bool) -> Iterator[None]:
        with ExitStack() as stack:
            for module in self._fsdp:
                module.set_requires_gradient_sync(last, recurse=False)
            for ddp in [] if last else self._ddp:
                stack.enter_context(ddp.no_sync())
            try:
                yield
            except BaseException:
                self.forget()
                raise

    def gradients_of_this_rank(self) -> list[Tensor]:
        """What backward passes without synchronization have left on this rank alone."""
        gradients = [p.grad for ddp in self._ddp for p in ddp.parameters()]
        for parameter in self._unsharded():
            gradients += [parameter.unsharded_accumulated_grad, parameter._unsharded_param.grad]
        found = [gradient for gradient in gradients if gradient is not None]
        return [g.to_local() if hasattr(g, "to_local") else g for g in found]

    def forget(self) -> None:
        """Leave no gradient, not even those that FSDP2 keeps outside of `.grad`."""
        for module in self._fsdp:
            module.set_requires_gradient_sync(True, recurse=False)
        for parameter in self._unsharded():
            parameter.unsharded_accumulated_grad = parameter._unsharded_param.grad = None
        for ddp in self._ddp:
            ddp.zero_grad(set_to_none=True)
        for root in self._fsdp[:1]:  # modules() begins with it
            if hasattr(root, "reset_iter_state"):  # torch 2.13
                with suppress(RuntimeError):  # of a connection that was lost
                    root.reset_iter_state()

    def _param_groups(self) -> list[Any]:
        # torch has no public way to the mesh of FSDP2, nor to what it has not reduced yet
        return [g for m in self._fsdp for g in m._get_fsdp_state()._fsdp_param_groups]

    def _unsharded(self) -> Iterator[Any]:
        parameters = (p for group in self._param_groups() for p in group.fsdp_params)
        return (p for p in parameters if hasattr(p, "_unsharded_param"))  # it had a forward pass

    def _refuse_parameters_outside(self, model: Module) -> None:
        inside = {id(p) for module in self._ddp + self._fsdp for p in module.parameters()}
        for name, parameter in model.named_parameters():
            if parameter.requires_grad and id(parameter) not in inside:
                raise ValueError(
                    f"parameter {name} is outside of the model's wrapped parts, so the ranks would "
                    "never reduce its gradient. Wrap the whole model: "
                    "DistributedDataParallel(model), or fully_shard(model) after its parts."
                )


def _ranks_of(mesh: Any) -> list[int]:
    ranks: list[int] = mesh.mesh.flatten().tolist()
    return ranks
