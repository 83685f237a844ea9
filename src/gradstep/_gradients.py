"""From what a caller passes as parameters to the gradients behind it, each one once."""

import itertools
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ._arguments import NonfiniteGradientError
from ._norms import CHUNK, Array, Precision, by_size, large_blocks

Parameters = Tensor | Iterable[Tensor] | Iterable[tuple[str, Tensor]]

PRECISIONS = {
    torch.float16: torch.finfo(torch.float16),
    torch.bfloat16: torch.finfo(torch.bfloat16),
    torch.float32: torch.finfo(torch.float32),
    torch.float64: torch.finfo(torch.float64),
    torch.complex64: torch.finfo(torch.float32),
    torch.complex128: torch.finfo(torch.float64),
}
EXPECTED = {Tensor, torch.nn.Parameter}  # so that the others alone are looked at
HALF = (torch.float16, torch.bfloat16)  # precisions that NumPy lacks or is slow in


class Gradients(NamedTuple):
    """Gradients, each one once, and what the caller passed, for messages."""

    tensors: list[Tensor]
    dtypes: set[torch.dtype]
    on_cpu: bool
    plain: bool  # all of them are dense, real and contiguous, so that none needs another view
    source: Sequence[Any]
    sharded: bool  # some are DTensors, which hold their entries on several ranks

    def precision(self) -> Precision:
        """How coarsely they are stored."""
        return Precision.coarsest(PRECISIONS[dtype] for dtype in self.dtypes)

    def called(self, gradient: Tensor) -> str:
        """A gradient as a message calls it."""
        for index, entry in enumerate(self.source):
            name, owner = _named(index, entry)
            if owner is gradient:
                return f"gradient {name}"
            kept = owner is not None and (owner.is_leaf or owner.retains_grad)
            if kept and owner.grad is gradient:
                return f"the gradient of parameter {name}"
        raise AssertionError("a gradient that the caller did not pass")

    def error(self) -> NonfiniteGradientError:
        """The error that names the first gradient with a NaN or an infinity."""
        for gradient in self.tensors:
            found = nonfinite_entries(gradient)
            if found:
                return nonfinite_error(f"{self.called(gradient)} {found}")
        raise AssertionError("the norm says nonfinite, every entry is finite")


def nonfinite_entries(gradient: Tensor) -> str | None:
    """What a message says of the NaN and infinite entries of a tensor; None without any."""
    values = entries(gradient)
    wrong = values[~torch.isfinite(values)]
    if not wrong.numel():
        return None
    count = f"{wrong.numel()} of {values.numel()} entries"
    return f"is not finite: {count}, the first is {wrong[0].item()}"


def nonfinite_error(fault: str) -> NonfiniteGradientError:
    """The error for a gradient that is not finite."""
    return NonfiniteGradientError(
        f"{fault}. No gradient was changed. Look at the loss and the data of this window; or pass "
        "nonfinite='leave' and skip the update when the returned norm is not finite."
    )


def gradients_of(parameters: Parameters) -> Gradients:
    """The gradients of `parameters`; one that is listed or shared twice counts once."""
    source = _listed("parameters", parameters, "model.parameters()")
    if not source and isinstance(parameters, Iterator):
        warnings.warn(
            "parameters is an iterator with nothing left, so nothing is clipped. Pass a list, or "
            "call model.parameters() again.",
            stacklevel=3,  # the caller of the public function
        )
    owners, kinds = source, set(map(type, source))
    if tuple in kinds:
        owners = [_named(index, entry)[1] for index, entry in enumerate(source)]
        kinds = set(map(type, owners))
    _refuse_others("parameters", owners, kinds, "model.parameters()")
    # the one loop over all parameters: many small ones are a case that counts
    return _checked([g for owner in owners if (g := owner.grad) is not None], source)


def given_gradients(tensors: Tensor | Iterable[Tensor | None]) -> Gradients:
    """Gradients passed as tensors; a tensor listed twice counts once, None not at all."""
    cure = "[p.grad for p in model.parameters()]"
    source = _listed("tensors", tensors, cure)
    present = [tensor for tensor in source if tensor is not None]
    kinds = set(map(type, present))
    _refuse_others("tensors", present, kinds, cure)
    if torch.nn.Parameter in kinds:
        raise TypeError(
            "tensors must be gradients, got a Parameter, whose norm would be a weight norm. "
            f"Pass {cure}, or p.detach() where the weight norm is meant."
        )
    return _checked(present, source)


def _listed(argument: str, given: object, cure: str) -> list[Any]:
    if isinstance(given, Tensor):
        return [given]
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(
            f"{argument} must be a tensor or an iterable of tensors, got a "
            f"{type(given).__name__}. Pass {cure}."
        )
    return list(given)


def _named(index: int, entry: Any) -> tuple[str, Any]:
    """What `named_parameters()` yields; any other entry is named by its place."""
    pair = type(entry) is tuple and len(entry) == 2
    return entry if pair else (f"number {index}", entry)


def _refuse_others(argument: str, owners: list[Any], kinds: set[type], cure: str) -> None:
    if others := tuple(kind for kind in kinds - EXPECTED if not issubclass(kind, Tensor)):
        index, wrong = next((i, o) for i, o in enumerate(owners) if isinstance(o, others))
        raise TypeError(
            f"{argument} must hold tensors, got {wrong!r:.60} of type {type(wrong).__name__} at "
            f"index {index}. Pass {cure}."
        )


def _checked(tensors: list[Tensor], source: Sequence[Any]) -> Gradients:
    if len(set(map(id, tensors))) < len(tensors):
        tensors = list({id(tensor): tensor for tensor in tensors}.values())
    dtypes = {g.dtype for g in tensors}
    kinds = set(map(type, tensors))
    sharded = kinds != {Tensor} and any(hasattr(kind, "full_tensor") for kind in kinds)
    plain = not sharded and _contiguous(tensors) and not any(d.is_complex for d in dtypes)
    gradients = Gradients(tensors, dtypes, all(g.is_cpu for g in tensors), plain, source, sharded)
    for dtype in dtypes - PRECISIONS.keys():
        wrong = next(g for g in tensors if g.dtype is dtype)
        raise TypeError(
            f"{gradients.called(wrong)} has dtype {dtype}; supported are "
            f"{', '.join(str(known).removeprefix('torch.') for known in PRECISIONS)}. Convert it."
        )
    return gradients


def _contiguous(tensors: list[Tensor]) -> bool:
    try:
        return all(map(Tensor.is_contiguous, tensors))
    except RuntimeError:
        return False  # a compressed sparse tensor cannot be asked


def entries(gradient: Tensor) -> Tensor:
    """A dense tensor that holds the entries of `gradient`, sparse or not."""
    if gradient.layout is torch.strided:
        return gradient
    if gradient.layout is torch.sparse_coo:
        return gradient.coalesce().values()  # an index may be stored twice: summed first
    return gradient.values()


def real_entries(gradient: Tensor, order: float) -> Tensor:
    """Real numbers with the same p-norm as `gradient`."""
    values = entries(gradient)
    if not values.is_complex():
        return values
    return torch.view_as_real(values.resolve_conj()) if order == 2 else values.abs()


def writable(gradient: Tensor) -> Tensor:
    """The memory behind `gradient`, each place once: to scale it or to limit it both ways."""
    if gradient.layout is torch.sparse_coo and not gradient.is_coalesced():
        gradient.copy_(gradient.coalesce())
    values = entries(gradient)
    if values.is_conj():  # a lazy conjugate: kernels for many tensors want what it is a view of
        values = values.conj()
    if values.is_neg():
        values = torch._neg_view(values)
    # an expanded dimension has stride 0: all of it is one place
    return values[tuple(slice(0, 1 if s == 0 else None) for s in values.stride())]


def coordinates(gradients: Iterable[Tensor]) -> Iterator[Tensor]:
    """Real tensors that share the memory of `gradients`: of a complex one both parts."""
    for gradient in gradients:
        places = writable(gradient)
        yield from (places.real, places.imag) if places.is_complex() else (places,)


def at_most(bound: float, dtype: torch.dtype) -> float:
    """The largest number of `dtype` that is not above `bound`."""
    largest = torch.finfo(dtype).max
    if bound >= largest:
        return largest
    nearest = torch.tensor(bound, dtype=dtype)
    if nearest.item() > bound:
        nearest = nearest.nextafter(torch.zeros_like(nearest))
    return nearest.item()


def _arrays(tensors: list[Tensor]) -> list[Array]:
    try:
        return list(map(Tensor.numpy, tensors))
    except RuntimeError:  # one of them requires a gradient itself, or is lazily negative
        return [tensor.numpy(force=True) for tensor in tensors]


def cpu_blocks(gradients: list[Tensor], ready: bool) -> Iterator[list[Array]]:
    """The entries of real CPU tensors as `contiguous_blocks` gives them.

    `ready`: all of them are contiguous, and of a precision that NumPy is fast in.
    """
    large, batches = by_size(gradients, Tensor.numel)
    half: list[Tensor] = []
    if not ready:
        half = [gradient for gradient in large if gradient.dtype in HALF]
        large = [gradient for gradient in large if gradient.dtype not in HALF]
        yield from large_blocks(_arrays(large))
    elif large:
        yield _arrays(large)
    # torch gathers small tensors faster than NumPy, which would have to be handed each
    gathered = (torch.cat([g if g.ndim == 1 else g.reshape(-1) for g in b]) for b in batches)
    for flat in itertools.chain(half, gathered):
        if flat.dtype in HALF:
            for chunk in torch.split(flat.reshape(-1), CHUNK):
                yield [chunk.float().numpy(force=True)]
        else:
            yield [flat.numpy(force=True)]
