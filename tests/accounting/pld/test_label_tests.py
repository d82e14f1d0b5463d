"""Tests by the sum of labels find no more than the best tests there are, and nearly as much."""

import math

import numpy as np
import pytest
from combinations import over_rows
from scipy.special import ndtr, ndtri

from skdp.accounting import GaussianDpEvent, PoissonSampledDpEvent
from skdp.accounting.pld.trade_off import errors_near
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
