"""Norms in exact arithmetic, and gradients to measure."""

from collections.abc import Iterable
from decimal import Decimal, localcontext
from fractions import Fraction

import torch
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import Parameter

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
# rows of 512, blocks of 16,384 and chunks of 65,536 entries each begin and end inside these
REPEATS = (1, 1, 1, 3, 700, 20_000)


def parameters_with(*gradients: Tensor | None) -> list[Parameter]:
    """Zero parameters that hold `gradients`."""
    parameters = []
    for gradient in gradients:
        like = torch.zeros(1) if gradient is None else gradient
        parameters.append(Parameter(torch.zeros(like.shape, dtype=like.dtype)))
        parameters[-1].grad = gradient
    return parameters


def square(tensors: Iterable[Tensor]) -> Fraction:
    """The sum of all squares, exactly."""
    total = Fraction(0)
    for tensor in tensors:
        values, counts = tensor.double().flatten().unique(return_counts=True)
        for value, count in zip(values.tolist(), counts.tolist(), strict=True):
            total += Fraction(value) ** 2 * count
    return total


def norm(tensors: Iterable[Tensor]) -> Decimal:
    """The L2 norm to forty digits."""
    total = square(tensors)
    with localcontext() as context:
        context.prec = 40
        return (Decimal(total.numerator) / Decimal(total.denominator)).sqrt()


def bits(tensor: Tensor) -> Tensor:
    """The stored bits, in which -0.0 is not 0.0 and NaN equals itself."""
    whole = {2: torch.int16, 4: torch.int32, 8: torch.int64}
    dense = tensor.to_dense() if tensor.layout is not torch.strided else tensor
    real = torch.view_as_real(dense.resolve_conj()) if dense.is_complex() else dense
    return real.contiguous().view(whole[real.element_size()])


@st.composite
def gradients(draw: st.DrawFn) -> list[Tensor]:
    """A few tensors of any finite entries, of one or several dtypes, short or long."""
    tensors = []
    for dtype in draw(st.lists(st.sampled_from(DTYPES), min_size=1, max_size=3)):
        largest = torch.finfo(dtype).max
        width = 64 if dtype is torch.float64 else 32
        number = st.floats(-largest, largest, width=width, allow_nan=False, allow_infinity=False)
        values = draw(st.lists(number, min_size=0, max_size=6))
        tensor = torch.tensor(values, dtype=torch.float64).to(dtype)
        tensors.append(tensor.repeat(draw(st.sampled_from(REPEATS))))
    return tensors
