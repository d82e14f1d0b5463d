"""Tests by the sum of labels find no more than the best tests there are, and nearly as much."""

from __future__ import annotations

import math

import numpy as np
import pytest
from combinations import over_rows
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri
from scipy.stats import binom, norm

from skdp.accounting import (
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NoOpDpEvent,
    NumberOfTries,
    PoissonSampledDpEvent,
    RepeatAndSelectDpEvent,
    SelfComposedDpEvent,
    compose,
)
from skdp.accounting.pld.label_tests import errors_near
from skdp.accounting.releases import releases


def near(event, epsilon, delta=1e-6, finer=1, replace_one=False):
    """Errors of the tests of the first direction, without the one that rejects always."""
    type_1, found = errors_near(releases(event), replace_one, epsilon, delta, finer)[0]
    assert type_1[0] == pytest.approx(found[0], rel=1e-9)
    return type_1[1:], found[1:]


def check(type_1, found, best, loss, least=1e-9):
    """None finds more than the best test of its errors, and where these are of some size, nearly as much."""
    looked = np.flatnonzero((type_1 > least) & (type_1 < 0.3))
    looked = looked[:: max(1, looked.size // 60)]
    assert looked.size > 10
    exact = np.array([best(a) for a in type_1[looked]])
    assert np.all(found[looked] <= exact)
    gaps = (exact - found[looked]) / (exact - type_1[looked])
    assert np.median(gaps) <= loss


@over_rows("finer", [1, 8])
@over_rows(("rate", "noise"), [(1e-5, 0.6), (0.4, 3.0)])
def test_of_one_sampled_gaussian_the_best_test_is_a_threshold(rate, noise, finer):
    event, epsilon = PoissonSampledDpEvent(rate, GaussianDpEvent(noise)), rate * (math.exp(1.5 / noise) - 1.0)
    type_1, found = near(event, epsilon, rate * 0.1, finer)
    check(type_1, found, lambda a: (1.0 - rate) * a + rate * ndtr(ndtri(a) + 1.0 / noise), 3e-3)


def test_of_promises_and_noise_the_sum_of_losses_is_the_best_test():
    size, revealed, count, mu = 0.3, 1e-5, 4, 0.5
    parts = [GaussianDpEvent(1.0 / mu), SelfComposedDpEvent(EpsilonDeltaDpEvent(size, revealed), count)]
    type_1, found = near(compose(parts), 1.0, 0.02)
    kept, k = (1.0 - revealed) ** count, np.arange(count + 1)

    def share(t, sign):
        """Mass above a loss t, of P (sign 1) or Q."""
        weight = binom.pmf(k, count, 1.0 / (1.0 + math.exp(-sign * size)))
        return kept * float(weight @ norm.sf((t - (2 * k - count) * size) / mu - sign * mu / 2.0))

    def best(a):
        t = brentq(lambda t: share(t, -1) - a, -20.0, 20.0, xtol=1e-13)
        return 1.0 - kept + share(t, 1)

    check(type_1, found, best, 1e-4)


def test_of_a_selection_that_may_try_nothing_as_much_less_is_found():
    """If all scores are equal the best of some tries is one of them, and there is one with a known chance."""
    mu, mean = 0.7, 3.0
    tries = NumberOfTries(mean=mean, shape=math.inf)
    type_1, found = near(RepeatAndSelectDpEvent(GaussianDpEvent(1.0 / mu), mean, math.inf), 0.8, 0.05)
    sure = 1.0 - math.exp(-mean)
    assert tries.none == pytest.approx(1.0 - sure)
    kept = type_1 < 0.9 * sure
    check(type_1[kept], found[kept], lambda a: sure * norm.sf(norm.isf(a / sure) - mu), 1e-4)


def test_of_nothing_and_of_bounds_from_above_nothing_is_said():
    for event in (NoOpDpEvent(), PoissonSampledDpEvent(0.1, LaplaceDpEvent(1.0))):
        assert errors_near(releases(event), False, 0.1, 1e-3) == []
    (errors,) = errors_near(releases(EpsilonDeltaDpEvent(0.0, 0.01)), False, 0.1, 1e-3)
    assert errors.found.tolist() == pytest.approx([1.0, 0.01], rel=1e-9)
    assert errors.type_1.tolist() == [1.0, 0.0]
