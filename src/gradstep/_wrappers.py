"""DDP and FSDP2: their process group, and when they reduce gradients."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from typing import Any

import torch.distributed as dist
from torch import Tensor
from torch.nn import Module
from torch.nn.parallel import DistributedDataParallel


class Wrappers:
    """The DDP or FSDP2 modules of a model, the model itself or parts of it; often none."""

    def __init__(self, model: Module) -> None:
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
        if self._ddp or self._fsdp:
            self._refuse_parameters_outside(model)

    @property
    def group(self) -> dist.ProcessGroup | None:
        """The ranks over which the wrapper averages; `None` for a plain model."""
        groups = [module.process_group for module in self._ddp]
        groups += [mesh.get_group() for mesh in self._meshes()]
        if any(group != groups[0] for group in groups):
            raise ValueError(
                "the model's parts are wrapped over different process groups, so there is no one "
                "number of ranks to divide by. Wrap all of them over one."
            )
        return groups[0] if groups else None

    def synchronize(self, last: bool) -> AbstractContextManager[None]:
        """Around forward *and* backward: gradients are reduced in the last pass of a window."""
        return self._synchronize(last) if self._ddp or self._fsdp else nullcontext()

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

    def _meshes(self) -> set[Any]:
        sharded = [p for module in self._fsdp for p in module.parameters()]
        meshes = {p.device_mesh for p in sharded if hasattr(p, "device_mesh")}
        if any(mesh.ndim != 1 for mesh in meshes):
            raise ValueError(
                f"fully_shard over a mesh of several dimensions is not supported, got {meshes}: "
                "which of them hold other data cannot be told. Use a mesh of one dimension."
            )
        return meshes

    def gradients_of_this_rank(self) -> list[Tensor]:
        """What backward passes without synchronization have left on this rank alone."""
        gradients = [p.grad for ddp in self._ddp for p in ddp.parameters()]
        for parameter in self._unsharded():
            gradients += [parameter.unsharded_accumulated_grad, parameter._unsharded_param.grad]
        return [gradient for gradient in gradients if gradient is not None]

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

    def _unsharded(self) -> Iterator[Any]:
        # torch has no public way to what FSDP2 has accumulated and not reduced
        groups = [g for m in self._fsdp for g in m._get_fsdp_state()._fsdp_param_groups]
        parameters = (parameter for group in groups for parameter in group.fsdp_params)
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
