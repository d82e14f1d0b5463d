"""Searches in one dimension: ends that were seen to hold, brackets that close, moves that stay bounded."""

from __future__ import annotations

import math

import pytest
from combinations import over_rows
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp.accounting.formulas.numeric import bisect, least_delta

PLACES = st.floats(-1e3, 1e3)


@given(place=PLACES, low=st.floats(1e-3, 1e3), high=st.floats(1e-3, 1e3))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_bisection_ends_at_neighbouring_doubles(place, low, high):
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


@over_rows(("widths", "width"), [({"absolute": 1e-3}, 1e-3), ({"relative": 1e-3}, 7.5e-3)])
def test_bisection_stops_at_the_width_asked_for(widths, width):
    below, above = bisect(lambda x: x < 7.5, 0.0, 10.0, **widths)
    assert below < 7.5 <= above
    assert 0.4 * width < above - below <= width


def test_bisection_across_the_whole_range_of_doubles():
    below, above = bisect(lambda x: x < 5e-324, 0.0, 1e308)
    assert (below, above) == (0.0, 5e-324)


def test_delta_is_found_from_above():
    def epsilon_at(delta):
        return -math.log(delta)

    assert least_delta(epsilon_at, 5.0) == pytest.approx(math.exp(-5.0), rel=2e-6)
    assert epsilon_at(least_delta(epsilon_at, 5.0)) <= 5.0
    assert least_delta(lambda delta: math.inf, 5.0) == 1.0
    assert least_delta(lambda delta: 0.0, 5.0) == pytest.approx(1e-300, rel=1e-9)
