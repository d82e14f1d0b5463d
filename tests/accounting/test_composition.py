"""Naive, strong and optimal composition: the paper's figures, independent evaluations of the theorems, the order."""

from __future__ import annotations

import math

import pytest
from accounting_reference import dpsgd
from combinations import over_rows

from skdp.accounting import (
    ComposedDpEvent,
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    PoissonSampledDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
    get_delta,
    get_epsilon,
    get_epsilon_bounds,
)
from skdp.accounting.formulas.gaussian import randomized_response_epsilon

STATEMENTS = ("optimal_exact", "optimal", "strong", "naive")


def test_strong_2016_falls_below_the_truth():
    # one step of little noise: epsilon0 is far above 1 and linear amplification loses an exponential
    event = dpsgd(0.01, 0.3, 1)
    lower, _ = get_epsilon_bounds(event, 1e-5)
    assert lower > 10.0
    assert get_epsilon(event, 1e-5, method="strong_2016") < 0.7


def listed(epsilon: float, count: int, i: int) -> tuple[float, float]:
    """Corner i of the region of Kairouz, Oh & Viswanath, Theorem 3.3, by its printed sum."""
    terms = [
        math.comb(count, j) * (math.exp((count - j) * epsilon) - math.exp((count - 2 * i + j) * epsilon))
        for j in range(i)
    ]
    return (count - 2 * i) * epsilon, math.fsum(terms) / (1.0 + math.exp(epsilon)) ** count


@over_rows(("epsilon", "count"), [(0.1, 40), (0.5, 30), (2.0, 7)])
def test_randomized_response_meets_the_corners_of_the_theorem(epsilon, count):
    for i in range(1, count // 2 + 1):
        corner, delta = listed(epsilon, count, i)
        found = randomized_response_epsilon(epsilon, count, delta)
        assert corner <= found * (1.0 + 1e-12) + 1e-12
        assert found == pytest.approx(corner, rel=1e-7, abs=1e-7 * epsilon)


def test_strong_by_hand():
    # one statement, no delta to choose: the theorem as printed
    event = SelfComposedDpEvent(EpsilonDeltaDpEvent(0.1, 1e-9), 200)
    slack = 1e-5 - 200e-9
    expected = 200 * 0.1 * math.expm1(0.1) + math.sqrt(2 * 200 * math.log(1 / slack)) * 0.1
    assert get_epsilon(event, 1e-5, method="strong") == pytest.approx(expected, rel=3e-12)
    assert get_epsilon(event, 1e-5, method="naive") == pytest.approx(20.0, rel=3e-12)


def test_optimal_by_hand():
    event = ComposedDpEvent((SelfComposedDpEvent(EpsilonDeltaDpEvent(0.1, 0.0), 100), LaplaceDpEvent(2.0)))
    squares = 100 * 0.01 + 0.25
    mean = 100 * 0.1 * math.tanh(0.05) + 0.5 * math.tanh(0.25)
    expected = mean + math.sqrt(2 * squares * math.log(min(math.e + math.sqrt(squares) / 1e-6, 1e6)))
    assert get_epsilon(event, 1e-6, method="optimal") == pytest.approx(expected, rel=3e-12)


def test_amplification():
    sampled = PoissonSampledDpEvent(0.1, LaplaceDpEvent(1.0))
    assert get_epsilon(sampled, 1e-6, method="naive") == pytest.approx(math.log1p(0.1 * math.expm1(1.0)), rel=3e-12)
    fixed = SampledWithoutReplacementDpEvent(1000, 100, LaplaceDpEvent(1.0))
    value = get_epsilon(fixed, 1e-6, method="naive", adjacency="replace_one")
    assert value == pytest.approx(math.log1p(0.1 * math.expm1(2.0)), rel=3e-12)
    # one sampled Gaussian: nothing is composed, so the amplified statement stands by itself
    one = dpsgd(0.1, 1.0, 1)
    inner = get_epsilon(GaussianDpEvent(1.0), 1e-5)
    assert get_epsilon(one, 1e-6, method="naive") == pytest.approx(math.log1p(0.1 * math.expm1(inner)), rel=1e-9)


def test_nothing_holds_where_the_deltas_alone_exceed():
    event = SelfComposedDpEvent(EpsilonDeltaDpEvent(0.1, 1e-6), 100)
    for method in (*STATEMENTS, "rdp"):
        assert get_epsilon(event, 1e-5, method=method) == math.inf
        assert get_delta(event, 200.0, method=method) >= 0.99e-4
    large = SelfComposedDpEvent(EpsilonDeltaDpEvent(400.0, 0.0), 2)  # e^epsilon is beyond what the sums hold
    assert [get_epsilon(large, 1e-5, method=method) for method in ("strong", "optimal_exact")] == [math.inf] * 2
