"""Searches in one dimension: ends that were seen to hold, brackets that close, moves that stay bounded."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp.accounting.formulas.numeric import Secant, bisect, least_delta, minimize

PLACES = st.floats(-1e3, 1e3)


@given(place=PLACES, low=st.floats(1e-3, 1e3), high=st.floats(1e-3, 1e3))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_bisection_ends_at_neighboring_doubles(place, low, high):
    looked_at = {}

    def is_below(x):
        looked_at[x] = x < place
        return looked_at[x]

    below, above = bisect(is_below, place - low, place + high)
    assert below < place <= above
    assert math.nextafter(below, math.inf) == above
    assert len(looked_at) < 1100
    assert looked_at.get(below, True)
    assert not looked_at.get(above, False)


def test_delta_is_found_from_above():
    def epsilon_at(delta):
        return -math.log(delta)

    assert least_delta(epsilon_at, 5.0) == pytest.approx(math.exp(-5.0), rel=2e-6)
    assert epsilon_at(least_delta(epsilon_at, 5.0)) <= 5.0
    assert least_delta(lambda delta: math.inf, 5.0) == 1.0
    assert least_delta(lambda delta: 0.0, 5.0) == pytest.approx(1e-300, rel=1e-9)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_secants_find_a_zero(sign):
    secant, at = Secant(3.0 * sign, 0.1, 8.0, 2.5), -4.0
    for _ in range(12):
        at += secant.move(at, sign * (math.sinh(at - 0.7) / 3.0 + at - 0.7))
    assert at == pytest.approx(0.7, abs=1e-9)


@pytest.mark.parametrize("center", [-3.0, 0.3, 5.0])
def test_the_least_value_is_one_that_was_seen(center):
    seen = []

    def objective(x):
        seen.append((x - center) ** 2 + 1.0)
        return seen[-1]

    found = minimize(objective, -4.0, 6.0)
    assert found == min(seen)
    assert found == pytest.approx(1.0, abs=1e-9)
    assert len(seen) == 24 + 2 + 30
    assert minimize(lambda x: math.inf, 0.0, 1.0) == math.inf
