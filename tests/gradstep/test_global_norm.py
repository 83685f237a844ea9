"""`global_norm` against exact arithmetic."""

import math
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import gradstep

from . import oracle

FLOAT64_MAX = Decimal("1.797693134862315e308")


def relative_error(measured: Tensor, exact: Decimal) -> float:
    return abs(float(Decimal(measured.item()) / exact - 1)) if exact else measured.item()


@given(oracle.gradients())
def test_norm_is_right_for_every_finite_gradient(tensors: list[Tensor]) -> None:
    exact = oracle.norm(tensors)
    measured = gradstep.global_norm(tensors)
    assert measured.dtype == torch.float64
    if measured == math.inf:
        assert exact >= FLOAT64_MAX
    elif exact > Decimal("1e-300"):  # below, float64 itself has fewer digits
        assert relative_error(measured, exact) < 1e-6


@pytest.mark.parametrize(
    ("entry", "count", "dtype"),
    [
        (1e20, 4, torch.float32),
        (3e38, 1000, torch.float32),
        (1e-23, 4, torch.float32),
        (1e-40, 700, torch.float32),
        (300.0, 60_000, torch.float16),
        (6e-8, 70_000, torch.float16),
        (1e300, 5, torch.float64),
        (1e-300, 5, torch.float64),
        (0.01, 100_001, torch.float32),
        (3e38, 100_001, torch.float32),
        (1e-23, 100_001, torch.float32),
        (1e-160, 100_001, torch.float64),
        (0.01, 262_144, torch.float32),
        (0.01, 10_000_000, torch.float32),
        (0.01, 1_000_000, torch.bfloat16),
    ],
)
def test_norm_of_equal_entries_is_right_where_float32_squares_are_not(
    entry: float, count: int, dtype: torch.dtype
) -> None:
    tensor = torch.full((count,), entry, dtype=dtype)
    assert relative_error(gradstep.global_norm(tensor), oracle.norm([tensor])) < 1e-6


def test_norm_where_torch_is_wrong_by_more_than_the_tolerance() -> None:
    # the tolerance of the tests above can fail: torch's function fails it
    tensor = torch.full((10_000_000,), 0.01)
    wrong = torch.nn.utils.get_total_norm([tensor])
    assert relative_error(wrong, oracle.norm([tensor])) > 1e-3


@given(oracle.gradients(), st.floats(0, 1))
def test_norm_does_not_depend_on_the_split(tensors: list[Tensor], where: float) -> None:
    pieces = [p for t in tensors for p in t.tensor_split([int(where * t.numel())])]
    whole, split = gradstep.global_norm(tensors), gradstep.global_norm(pieces)
    assert whole == split or math.isclose(whole.item(), split.item(), rel_tol=1e-6)


@pytest.mark.parametrize("order", [0.5, 1, 1.5, 2, 3, 7.5, math.inf, "inf"])
@pytest.mark.parametrize("dtype", [*oracle.DTYPES, torch.complex64, torch.complex128])
def test_norm_of_any_order_agrees_with_torch_in_float64(
    order: float | str, dtype: torch.dtype
) -> None:
    torch.manual_seed(0)
    wide = torch.complex128 if dtype.is_complex else torch.float64
    tensors = [torch.randn(30, 40, dtype=wide).to(dtype) for _ in range(3)]
    joined = torch.cat([tensor.flatten().to(wide) for tensor in tensors])
    expected = torch.linalg.vector_norm(joined, float(order))
    torch.testing.assert_close(gradstep.global_norm(tensors, order), expected, rtol=1e-6, atol=0)


@pytest.mark.parametrize("order", [1, 2, 3, math.inf])
def test_norm_of_large_and_tiny_entries_is_right_for_every_order(order: float) -> None:
    unit = torch.tensor([0.5, -0.25, 0.125, 1.0])
    expected = torch.linalg.vector_norm(unit.double(), order).item()
    for scale in (2.0**126, 2.0**-140):
        measured = gradstep.global_norm(unit * scale, order).item()
        assert measured == pytest.approx(expected * scale, rel=1e-12)


GRID = torch.arange(1.0, 60_001.0).reshape(200, 300)
LAYOUTS: dict[str, Callable[[], Tensor]] = {
    "transposed": lambda: GRID.t(),
    "sliced": lambda: GRID.repeat(2, 2)[::2, ::2],
    "expanded": lambda: torch.full((1, 1), 2.0).expand(200, 300),
    "0-d": lambda: torch.tensor(3.0),
    "half, transposed": lambda: GRID.to(torch.bfloat16).t(),
    "needs a gradient itself": lambda: GRID.clone().requires_grad_(),
    "negative view": lambda: torch.complex(GRID, GRID).conj().imag,
    "conjugate view": lambda: torch.complex(GRID, GRID).conj(),
    "sparse, an index stored twice": lambda: torch.sparse_coo_tensor(
        [[1, 1, 3]], torch.ones(3, 2), (5, 2), check_invariants=True
    ),
    "sparse rows": lambda: torch.eye(5).to_sparse_csr(),
}


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
@pytest.mark.parametrize("name", LAYOUTS)
def test_norm_of_any_layout_is_that_of_its_dense_copy(name: str) -> None:
    tensor = LAYOUTS[name]()
    dense = tensor.detach().to_dense().resolve_conj().resolve_neg().contiguous()
    expected = torch.linalg.vector_norm(dense.to(torch.complex128)).item()
    assert gradstep.global_norm(tensor).item() == pytest.approx(expected, rel=1e-6)


def test_norm_of_nothing_is_zero() -> None:
    nothings = (
        [],
        [None],
        [torch.zeros(0)],
        [torch.zeros(3, 0), None],
        iter(()),
        [-torch.zeros(3)],
    )
    for nothing in nothings:
        norm = gradstep.global_norm(nothing).item()
        assert (norm, math.copysign(1, norm)) == (0, 1)


def test_norm_takes_one_tensor_a_generator_and_a_repeated_tensor_once() -> None:
    three, four = torch.tensor([3.0]), torch.tensor([[4.0]])
    assert gradstep.global_norm(three) == 3
    assert gradstep.global_norm(g for g in (three, None, four)) == 5
    assert gradstep.global_norm([three, four, three]) == 5


@pytest.mark.parametrize("order", [1, 2, math.inf])
def test_norm_reports_what_is_not_finite(order: float) -> None:
    inf, nan = torch.tensor([math.inf, 1.0]), torch.tensor([math.nan])
    assert gradstep.global_norm([inf], order) == math.inf
    assert gradstep.global_norm([-inf], order) == math.inf
    for mixed in ([nan, inf], [inf, nan], [torch.ones(70_000), nan]):
        assert gradstep.global_norm(mixed, order).isnan()


def test_norm_raises_for_what_is_not_finite_only_when_asked() -> None:
    # two floats beyond the range of float64 squares are finite all the same
    large = torch.tensor([1e300, 1e300], dtype=torch.float64)
    assert gradstep.global_norm(large, error_if_nonfinite=True) == pytest.approx(np.sqrt(2) * 1e300)
    message = r"gradient number 1 is not finite: 1 of 2 entries, the first is nan"
    with pytest.raises(gradstep.NonfiniteGradientError, match=message):
        gradstep.global_norm([large, torch.tensor([1.0, math.nan])], error_if_nonfinite=True)


def test_norm_refuses_parameters_because_it_would_measure_weights() -> None:
    with pytest.raises(TypeError, match=r"got a Parameter.*p\.grad for p in model\.parameters"):
        gradstep.global_norm(torch.nn.Linear(2, 2).parameters())
