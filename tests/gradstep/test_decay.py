"""Decay factors against the product itself, exact arithmetic, and a real AdamW."""

import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from gradstep.decay import decay_factor, matching_decay

# a rate times a decay stays below 0.5: nearer to 1 a rounding of the decay shows in the factor
RATES = st.lists(st.just(0.0) | st.floats(1e-12, 0.5), min_size=1, max_size=30)
DECAYS = st.floats(1e-9, 0.99)

ORIGINAL = 0.999**100


def test_factor_of_a_constant_rate_is_a_power() -> None:
    assert decay_factor([0.01] * 100, 0.1) == pytest.approx(ORIGINAL, rel=1e-14)


def test_half_as_many_updates_need_about_twice_the_decay() -> None:
    assert decay_factor([0.01] * 50, 0.2) == pytest.approx(ORIGINAL, abs=1e-4)


def test_half_the_updates_with_half_the_decay_shrink_far_less() -> None:
    assert decay_factor([0.01] * 50, 0.05) > ORIGINAL + 0.05
    # a quarter of the exponent, to the second order of the terms
    assert math.log(decay_factor([0.01] * 50, 0.05)) == pytest.approx(
        math.log(ORIGINAL) / 4, rel=1e-3
    )


def test_log_of_the_factor_is_about_the_sum_of_the_terms() -> None:
    assert math.log(decay_factor([0.01] * 100, 0.1)) == pytest.approx(-0.01 * 0.1 * 100, abs=1e-4)


@given(RATES, DECAYS)
def test_factor_equals_the_exact_product(rates: list[float], decay: float) -> None:
    exact = math.prod((1 - Fraction(rate * decay) for rate in rates), start=Fraction(1))
    # the exponent is below 30 * log(2) = 21, so rounding it moves the factor by 21 * 1.1e-16
    assert decay_factor(rates, decay) == pytest.approx(float(exact), rel=1e-14)


def test_factor_of_a_million_tiny_terms_keeps_its_digits() -> None:
    # 1e-7: near 1 a factor is a multiple of 1.1e-16, so 1 - factor has 8 digits. 1 - 1e-14 is
    # off by 8e-18, and a million of them multiplied by 8e-12, which is 8e-4 of the answer
    rates, exact = [1e-12] * 1_000_000, -math.expm1(1_000_000 * math.log1p(-1e-14))
    assert 1 - decay_factor(iter(rates), 0.01) == pytest.approx(exact, rel=1e-7)
    assert 1 - math.prod(1 - rate * 0.01 for rate in rates) != pytest.approx(exact, rel=1e-7)


def test_factor_too_small_for_a_float_is_zero() -> None:
    assert decay_factor([0.5] * 2000, 1.0) == 0.0


def test_rates_may_come_from_any_iterable() -> None:
    expected = decay_factor([0.25, 0.5], 0.5)
    for rates in (
        iter([0.25, 0.5]),
        (0.25, 0.5),
        torch.tensor([0.25, 0.5]),
        {0: 0.25, 1: 0.5}.values(),
    ):
        assert decay_factor(rates, torch.tensor(0.5)) == expected
    assert decay_factor([], 0.1) == 1.0


@given(RATES, DECAYS, RATES)
def test_matching_decay_leaves_the_same_factor(
    rates: list[float], decay: float, new_rates: list[float]
) -> None:
    assume(any(rates) and any(new_rates))
    target = decay_factor(rates, decay)
    assume(target > 1e-300)  # below, a factor has no digits to compare
    try:
        found = matching_decay(rates, decay, new_rates)
    except ValueError:
        # then even the largest decay below 1 / max(new_rates) leaves more
        assert decay_factor(new_rates, (1 - 1e-15) / max(new_rates)) > target
        return
    assert found > 0
    # the factor moves by 1 / (1 - x) times the error of x, the term of the largest rate
    conditioning = 1 / (1 - max(new_rates) * found)
    assume(conditioning < 1e4)
    # log(factor) is -700 at most; a few roundings of 1.1e-16 each
    assert decay_factor(new_rates, found) == pytest.approx(target, rel=1e-12 * conditioning)


@given(RATES, st.floats(1e-6, 0.9), st.floats(1e-6, 0.9))
def test_matching_decay_grows_with_the_decay(rates: list[float], one: float, other: float) -> None:
    assume(any(rates))
    smaller, larger = sorted((one, other))
    new_rates = [*rates, max(rates)]
    # 1e-14: both are roots to a few roundings
    assert matching_decay(rates, smaller, new_rates) <= (1 + 1e-14) * matching_decay(
        rates, larger, new_rates
    )


@given(RATES, DECAYS)
def test_matching_decay_of_the_same_rates_is_the_decay(rates: list[float], decay: float) -> None:
    assume(any(rates))
    assert matching_decay(rates, decay, rates) == pytest.approx(decay, rel=1e-12)


def test_matching_decay_of_the_lesson_is_near_twice_the_decay() -> None:
    found = matching_decay([0.01] * 100, 0.1, [0.01] * 50)
    assert found == pytest.approx(-math.expm1(math.log1p(-0.001) * 2) / 0.01, rel=1e-13)
    assert decay_factor([0.01] * 50, found) == pytest.approx(ORIGINAL, rel=1e-14)
    # the first-order answer is close and not exact
    assert abs(decay_factor([0.01] * 50, 0.2) - ORIGINAL) > 1e-6


def test_matching_decay_reaches_targets_near_the_edge() -> None:
    # one update has to do what 30 did: its term is within 1e-9 of 1
    rates, new_rates = [0.5] * 30, [0.1]
    found = matching_decay(rates, 1.0, new_rates)
    # 2 ** 30 times the rounding of the decay
    assert decay_factor(new_rates, found) == pytest.approx(0.5**30, rel=2.0**30 * 1e-15)


def test_matching_decay_of_no_decay_is_zero() -> None:
    assert matching_decay([0.1], 0.0, [0.2, 0.1]) == 0.0


def test_matching_decay_that_would_erase_the_weight_is_refused() -> None:
    message = r"new_rates must be able to shrink a weight to 9\.33e-302, got 1 rates up to 0\.1"
    with pytest.raises(ValueError, match=message):
        matching_decay([0.5] * 1000, 1.0, [0.1])


@pytest.mark.parametrize(
    ("rates", "new_rates", "message"),
    [
        ([], [0.1], "rates must hold a rate above 0, got 0 rates that add up to 0"),
        ([0.1], [], "new_rates must hold a rate above 0, got 0 rates"),
        ([0.0], [0.1], "rates must hold a rate above 0, got 1 rates"),
        ([0.1], [0.0, 0.0], "new_rates must hold a rate above 0, got 2 rates"),
    ],
)
def test_matching_decay_without_rates_is_refused(
    rates: list[float], new_rates: list[float], message: str
) -> None:
    with pytest.raises(ValueError, match=f"^{message}.*Pass the rate of every accepted update"):
        matching_decay(rates, 0.1, new_rates)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: decay_factor(0.01, 0.1), TypeError, "rates must be an iterable .* got 0.01 of"),
        (lambda: decay_factor("0.01", 0.1), TypeError, r"got '0\.01' of type str\. .* \[rate\] \*"),
        (lambda: decay_factor([0.1, None], 0.1), TypeError, r"rates\[1\] must be a number, got No"),
        (lambda: decay_factor([0.1, -0.1], 0.1), ValueError, r"rates\[1\] must be finite and at l"),
        (lambda: decay_factor([math.nan], 0.1), ValueError, r"rates\[0\] .* got nan\. Read it fro"),
        (lambda: decay_factor([0.1], -0.1), ValueError, r"decay must be finite .* got -0\.1"),
        (lambda: decay_factor([0.1], math.inf), ValueError, "decay must be finite .* got inf"),
        (lambda: decay_factor([0.1], "0.1"), TypeError, "decay must be a number, got '0.1'"),
        (
            lambda: decay_factor([0.1, 0.5], 2.0),
            ValueError,
            re.escape("decay must stay below 1 / 0.5, the largest rate, got 2: update 1 would"),
        ),
    ],
)
def test_bad_rates_and_decays_are_refused(
    call: Callable[[], Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        call()


def adamw(gradient: torch.Tensor | None, decay: float) -> tuple[torch.nn.Parameter, list[float]]:
    """A weight after 100 AdamW updates with that gradient, and the rates that were used."""
    weight = torch.nn.Parameter(torch.tensor([2.0, -3.0], dtype=torch.float64))
    optimizer = torch.optim.AdamW([weight], lr=0.05, weight_decay=decay)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.05, total_steps=101)
    rates = []
    for _ in range(100):
        weight.grad = gradient
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return weight, rates


def test_factor_is_what_adamw_leaves_under_zero_gradients() -> None:
    weight, rates = adamw(torch.zeros(2, dtype=torch.float64), 0.1)
    factor = decay_factor(rates, 0.1)
    assert factor < 0.85
    assert len(set(rates)) > 50
    # 100 float64 products, each rounded by 1.1e-16
    torch.testing.assert_close(
        weight.detach(), torch.tensor([2.0, -3.0], dtype=torch.float64) * factor, rtol=2e-14, atol=0
    )


def test_adamw_leaves_a_weight_without_gradient_alone() -> None:
    weight, rates = adamw(None, 0.1)
    assert weight.tolist() == [2.0, -3.0]
    assert decay_factor(rates, 0.1) < 0.85  # so the factor does not apply


def test_factor_is_not_the_trajectory_of_adamw() -> None:
    weight, rates = adamw(torch.tensor([1e-3, 1e-3], dtype=torch.float64), 0.1)
    assert weight[0].item() < 2.0 * decay_factor(rates, 0.1) - 0.5
