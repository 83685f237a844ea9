"""The log keeps what clipping saw, and nothing that is not finite."""

import io
import json
import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gradstep import clip_grad_norm_, updates
from gradstep.norm_log import NormLog

NORMS = st.lists(st.floats(0) | st.just(math.nan), max_size=40)
SIZES = st.integers(1, 20)


def logged(norms: list[float], max_norm: float = math.inf, size: int = 1000) -> NormLog:
    log = NormLog(size)
    for norm in norms:
        log.add(norm, max_norm)
    return log


@given(NORMS, SIZES, st.floats(0, exclude_min=True))
def test_log_keeps_the_newest_finite_norms(norms: list[float], size: int, bound: float) -> None:
    log = logged(norms, bound, size)
    finite = [norm for norm in norms if math.isfinite(norm)]
    assert log.norms == finite[-size:]
    assert len(log) == len(log.norms) == len(log.clip_coefficients) <= size
    assert log.added == len(norms)
    assert log.nonfinite == len(norms) - len(finite)


@given(NORMS, st.floats(0))
def test_clipped_is_a_norm_above_the_bound(norms: list[float], bound: float) -> None:
    log = logged([*norms, 1.0, 0.0], bound)
    clipped = [norm > bound for norm in log.norms]
    assert log.clipped_share == sum(clipped) / len(clipped)
    assert [coefficient < 1 for coefficient in log.clip_coefficients] == clipped


@given(st.floats(0, exclude_min=True, allow_infinity=False))
def test_a_norm_just_above_the_bound_counts_as_clipped(bound: float) -> None:
    above = math.nextafter(bound, math.inf)
    log = logged([bound, above] if math.isfinite(above) else [bound], bound)
    assert log.clipped_share == (0.5 if math.isfinite(above) else 0)


@given(NORMS, st.floats(0, 1), st.floats(0))
def test_quantiles_are_finite_and_inside_the_log(norms: list[float], q: float, b: float) -> None:
    log = logged([*norms, 1.0], b)
    assert min(log.norms) <= log.norm_quantile(q) <= max(log.norms)
    assert 0 <= log.coefficient_quantile(0) <= log.coefficient_quantile(q) <= 1
    assert log.coefficient_quantile(0) == min(log.clip_coefficients)


def test_quantiles_equal_those_of_torch() -> None:
    torch.manual_seed(0)
    norms = torch.rand(101, dtype=torch.float64)
    log = logged(norms.tolist(), 0.3)
    shares = torch.tensor([0.0, 0.137, 0.5, 0.95, 1.0], dtype=torch.float64)
    # 1e-15: two ways to interpolate between two numbers below 1
    found = torch.tensor([log.norm_quantile(q) for q in shares], dtype=torch.float64)
    torch.testing.assert_close(found, norms.quantile(shares), rtol=0, atol=1e-15)
    found = torch.tensor([log.coefficient_quantile(q) for q in shares], dtype=torch.float64)
    expected = (0.3 / norms).clamp(max=1).quantile(shares)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-15)


def test_one_nan_would_spoil_a_plain_quantile() -> None:
    norms = [1.0, 2.0, math.nan, 3.0]
    assert math.isnan(torch.tensor(norms).quantile(0.5))
    assert logged(norms).norm_quantile(0.5) == 2.0


def test_norms_before_clipping_exceed_the_bound_and_those_after_are_pinned() -> None:
    torch.manual_seed(0)
    before, after, weight = NormLog(), NormLog(), torch.nn.Parameter(torch.zeros(4))
    for _ in range(50):
        weight.grad = 3 + torch.rand(4)
        before.add(clip_grad_norm_([weight], 1.0), max_norm=1.0)
        after.add(clip_grad_norm_([weight], 1.0), max_norm=1.0)
    assert before.norm_quantile(0) > 6
    assert before.clipped_share == 1
    # the clipped norm is at most the bound and short of it by float32 roundings
    assert 1 - 1e-6 < after.norm_quantile(0) <= after.norm_quantile(1) <= 1
    assert after.clipped_share == 0
    torch.testing.assert_close(
        torch.tensor(before.clip_coefficients), 1 / torch.tensor(before.norms)
    )


def test_a_training_run_can_be_logged() -> None:
    torch.manual_seed(0)
    model, log = torch.nn.Linear(4, 3), NormLog()
    batches = [(torch.randn(2, 4), torch.tensor([0, 2])) for _ in range(20)]
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    records = list(updates(model, batches, optimizer, accumulation_steps=2, max_norm=0.7))
    for update in records:
        log.add(update.pre_clip_norm, max_norm=0.7)
    assert len(log) == 10
    assert 0 < log.clipped_share < 1
    # the coefficient that was applied is short of the quotient by float32 roundings
    applied = torch.tensor([update.clip_coefficient for update in records])
    torch.testing.assert_close(torch.tensor(log.clip_coefficients), applied, rtol=1e-5, atol=0)


def test_without_a_bound_nothing_is_clipped() -> None:
    log = NormLog()
    log.add(1e30)
    assert (log.clipped_share, log.clip_coefficients) == (0, [1.0])


def test_a_bound_of_zero_clips_every_norm_but_zero() -> None:
    assert logged([0.0, 5.0], 0.0).clip_coefficients == [1.0, 0.0]


@given(NORMS, SIZES, SIZES, st.floats(0))
def test_state_survives_torch_save_and_json(
    norms: list[float], size: int, other_size: int, bound: float
) -> None:
    log = logged(norms, bound, size)
    buffer = io.BytesIO()
    torch.save(log.state_dict(), buffer)
    buffer.seek(0)
    for state in (
        torch.load(buffer, weights_only=True),
        json.loads(json.dumps(log.state_dict(), allow_nan=False)),
    ):
        loaded = NormLog(size)
        loaded.load_state_dict(state)
        assert loaded.state_dict() == log.state_dict()
        for norm in norms:
            loaded.add(norm, bound)
        continued = logged([*norms, *norms], bound, size)
        assert loaded.state_dict() == continued.state_dict()
        other = NormLog(other_size)
        other.load_state_dict(state)
        assert other.norms == log.norms[-other_size:]
        assert len(other.clip_coefficients) == len(other)


def test_a_state_shares_nothing_with_its_log() -> None:
    log = logged([1.0, 2.0])
    state = log.state_dict()
    log.add(3.0)
    assert state["norms"] == [1.0, 2.0]
    other = NormLog()
    other.load_state_dict(state)
    other.add(4.0)
    assert state["norms"] == [1.0, 2.0]


GOOD = {"added": 3, "nonfinite": 1, "norms": [1.0, 2.0], "clip_coefficients": [1.0, 0.5]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"norms": [1.0, math.nan]}, r"state_dict\['norms'\] must hold finite .* got nan at ind"),
        ({"norms": [math.inf, 1.0]}, r"state_dict\['norms'\] .* got inf at index 0\. Pass what"),
        ({"norms": [-1.0, 1.0]}, r"got -1\.0 at index 0"),
        ({"norms": [torch.tensor(1.0), 1.0]}, r"got tensor\(1\.\) at index 0"),
        ({"norms": None}, r"state_dict\['norms'\] must be a list, got a NoneType"),
        ({"clip_coefficients": [1.0, 1.5]}, r"\['clip_coefficients'\] .* from 0 to 1, got 1\.5"),
        ({"clip_coefficients": [1.0]}, "one clip coefficient for each norm .* 1 coefficients"),
        ({"added": 2}, "count both, got 2 norms, 2 coefficients, added 2, nonfinite 1"),
        ({"nonfinite": -1}, "nonfinite -1"),
        ({"added": "3"}, "added 3, nonfinite 1"),
        ({"size": 5}, "state_dict must have the keys added, nonfinite, norms, clip_coefficients"),
    ],
)
def test_a_state_that_no_log_wrote_is_refused(change: dict[str, Any], message: str) -> None:
    log = logged([7.0])
    before = log.state_dict()
    with pytest.raises(ValueError, match=message):
        log.load_state_dict(GOOD | change)
    assert log.state_dict() == before
    log.load_state_dict(GOOD)
    assert log.state_dict() == GOOD


@pytest.mark.parametrize("norms", [[], [math.nan, math.inf]])
def test_an_empty_log_has_no_quantiles(norms: list[float]) -> None:
    log = logged(norms)
    message = rf"no finite norm \({len(norms)} that were not finite.*Ask len\(log\) first"
    for ask in (
        lambda: log.norm_quantile(0.5),
        lambda: log.coefficient_quantile(0.5),
        lambda: log.clipped_share,
    ):
        with pytest.raises(ValueError, match=message):
            ask()
    assert not log  # nothing finite kept


@pytest.mark.parametrize(
    ("norm", "bound", "kind", "message"),
    [
        (None, 1.0, TypeError, "norm must be a number, got None of type NoneType"),
        ("1.0", 1.0, TypeError, "norm must be a number, got '1.0'"),
        (torch.ones(2), 1.0, TypeError, "norm must be a number"),
        (-1.0, 1.0, ValueError, r"norm must be at least 0, got -1\.0, which is no norm\. Add what"),
        (-math.inf, 1.0, ValueError, "norm must be at least 0, got -inf"),
        (1.0, math.nan, ValueError, "max_norm must be at least 0, got nan"),
        (1.0, -1.0, ValueError, "max_norm must be at least 0, got -1.0"),
        (1.0, None, TypeError, "max_norm must be a number, got None"),
    ],
)
def test_what_is_no_norm_is_refused_and_not_counted(
    norm: Any, bound: Any, kind: type[Exception], message: str
) -> None:
    log = NormLog()
    with pytest.raises(kind, match=message):
        log.add(norm, bound)
    assert log.added == 0


@pytest.mark.parametrize(
    ("size", "kind", "message"),
    [
        (0, ValueError, "size must be at least 1, got 0"),
        (1.5, TypeError, "size must be an integer, got 1.5 of type float"),
        (True, TypeError, "size must be an integer, got True"),
    ],
)
def test_sizes_without_room_are_refused(size: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        NormLog(size)


@pytest.mark.parametrize("q", [-0.1, 1.1, 95, math.nan])
def test_a_quantile_outside_zero_to_one_is_refused(q: float) -> None:
    with pytest.raises(ValueError, match=rf"q must be from 0 to 1, got {float(q)}.* pass 0\.95"):
        logged([1.0]).norm_quantile(q)
