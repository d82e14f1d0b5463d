"""Averages of iterates: against their plain formulas, and after an interrupt."""

import numpy as np
import reference
from combinations import over_rows

from skdp._dpsgd.loop import ema_average, last_iterate, tail_average

PLAIN = {
    "last": (lambda n_steps: last_iterate(), lambda iterates, n_steps: iterates[-1]),
    "tail": (tail_average, reference.tail_mean),
    "ema": (ema_average, reference.ema),
}


def iterates_of(n):
    return list(np.random.default_rng(0).normal(size=(n, 3)).cumsum(axis=0))


def average_of(averaging, start, iterates):
    state = averaging.init(start)
    for step, theta in enumerate(iterates):
        state = averaging.update(step, theta, state)
    return averaging.result(iterates[-1] if iterates else start, state)


@over_rows("n_steps", [1, 2, 7, 11, 40])
@over_rows("kind", PLAIN)
def test_average_is_that_of_the_plain_formula(kind, n_steps):
    """After all steps, and wherever an interrupt cuts them short: also before the tail begins."""
    make, plain = PLAIN[kind]
    iterates = iterates_of(n_steps)
    given = [theta.copy() for theta in iterates]
    for n_done in {1, n_steps // 2, n_steps // 2 + 1, n_steps} - {0}:
        found = average_of(make(n_steps), np.ones(3), iterates[:n_done])
        np.testing.assert_allclose(found, plain(given[:n_done], n_steps), rtol=0, atol=1e-12 * n_steps)
    np.testing.assert_array_equal(iterates, given)


@over_rows("kind", PLAIN)
def test_without_a_step_the_start_is_kept(kind):
    """An interrupt in the first step of an instalment may not wipe out the instalments before it."""
    start = np.array([3.0, -1.0, 2.0])
    np.testing.assert_array_equal(average_of(PLAIN[kind][0](20), start, []), start)
