"""Averages of iterates: against their plain formulas, and after an interrupt."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from combinations import over_rows

from skdp._training.averaging import ema_average, last_iterate, tail_average

PLAIN = {
    "last": (lambda n_steps: last_iterate(), lambda iterates, n_steps: iterates[-1]),
    "tail": (tail_average, reference.tail_mean),
    "ema": (ema_average, reference.ema),
}


def iterates_of(n, dtype=np.float64, seed=0):
    return list(np.random.default_rng(seed).normal(size=(n, 3)).cumsum(axis=0).astype(dtype))


def average_of(averaging, start, iterates):
    state = averaging.init(start)
    for step, theta in enumerate(iterates):
        state = averaging.update(step, theta, state)
    return averaging.result(iterates[-1] if iterates else start, state)


@over_rows("n_steps", [1, 2, 7, 10, 11, 40, 301])
@over_rows("kind", PLAIN)
def test_average_is_that_of_the_plain_formula(kind, n_steps):
    """After all steps, and wherever an interrupt cuts them short: also before the tail begins."""
    make, plain = PLAIN[kind]
    iterates = iterates_of(n_steps)
    for n_done in {1, n_steps // 2, n_steps // 2 + 1, n_steps} - {0}:
        found = average_of(make(n_steps), np.ones(3), iterates[:n_done])
        np.testing.assert_allclose(found, plain(iterates[:n_done], n_steps), rtol=0, atol=1e-12 * n_steps)


@over_rows("kind", PLAIN)
def test_without_a_step_the_start_is_kept(kind):
    """An interrupt in the first step of an instalment may not wipe out the instalments before it."""
    start = np.array([3.0, -1.0, 2.0])
    np.testing.assert_array_equal(average_of(PLAIN[kind][0](20), start, []), start)


@over_rows("kind", PLAIN)
def test_average_of_equal_iterates_is_that_iterate(kind):
    """Weights sum to one at every step, also in float32."""
    for dtype, tolerance in ((np.float32, 3e-5), (np.float64, 1e-13)):  # 100 roundings of at most 3 ulp each
        iterates = [np.full(3, 5.0, dtype)] * 100
        for n_done in (1, 49, 51, 100):
            found = average_of(PLAIN[kind][0](100), np.zeros(3, dtype), iterates[:n_done])
            assert found.dtype == dtype
            np.testing.assert_allclose(found, 5.0, rtol=tolerance)


def test_tail_by_hand():
    """Of 5 steps the last three, of 1 the one."""
    iterates = [np.array([float(k)]) for k in (1, 2, 30, 40, 50)]
    assert average_of(tail_average(5), np.zeros(1), iterates) == pytest.approx(40.0)
    assert average_of(tail_average(5), np.zeros(1), iterates[:2]) == 2.0
    assert average_of(tail_average(1), np.zeros(1), iterates[:1]) == 1.0


def test_ema_by_hand():
    """Of 20 steps the memory is 2, so the decay is 1/2: (4 + 2/2 + 1/4) / (7/4) = 3."""
    iterates = [np.array([float(k)]) for k in (1, 2, 4)]
    assert average_of(ema_average(20), np.zeros(1), iterates) == pytest.approx(3.0, rel=1e-15)
    assert average_of(ema_average(10), np.zeros(1), iterates) == 4.0  # a memory of one step is the last iterate
    assert average_of(ema_average(3), np.zeros(1), iterates) == 4.0


@pytest.mark.parametrize("kind", PLAIN)
def test_averaging_leaves_iterates_alone(kind):
    iterates = iterates_of(6)
    before = [theta.copy() for theta in iterates]
    average_of(PLAIN[kind][0](6), np.ones(3), iterates)
    np.testing.assert_array_equal(iterates, before)
