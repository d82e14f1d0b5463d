"""Estimates of several synthetic tables as one: whether intervals hold, and what is rejected."""

import numpy as np
import pytest
from combinations import over_rows
from scipy import stats

from skdp.synthesis import combine_estimates

FALSE_ALARM = 1e-6


@over_rows("noise", [0.0, 2.0])
@over_rows("bias", [0.0, 1.5])
def test_intervals_hold_as_often_as_they_say_whatever_the_bias_of_fits_is(noise, bias):
    """Normal estimates: the fitted model is off by bias, sampling and noise, and so is each other one from it."""
    rng, k, m, own = np.random.default_rng(0), 20_000, 20, 1.0
    spread = np.sqrt(own + noise**2)
    fitted = bias + spread * rng.standard_normal(k)
    first = fitted + np.sqrt(own / m) * rng.standard_normal(k)
    others = fitted + bias + spread * rng.standard_normal((m, k)) + np.sqrt(own) * rng.standard_normal((m, k))
    variances = np.full((m + 1, k), own)
    variances[0] = own / m
    found = combine_estimates(np.vstack([first, others]), variances)
    held = int(((found.low <= 0.0) & (found.high >= 0.0)).sum())
    low, high = stats.binom.ppf([FALSE_ALARM, 1.0 - FALSE_ALARM], k, [0.945, 0.999 if bias else 0.985])
    assert low <= held <= high
    assert abs(found.estimate.mean()) < 5.0 * np.sqrt(np.mean(found.std_err**2) / k)


def test_the_variance_is_that_of_the_sources():
    estimates, variances = [2.0, 1.0, 3.0, 5.0], [0.01, 0.3, 0.5, 0.4]
    found = combine_estimates(estimates, variances)
    assert found.estimate == pytest.approx(2 * 2.0 - 3.0)
    between = (1 + 1 / 3) * 4.0  # and a bias of 1, which is less than its variance
    assert found.std_err**2 == pytest.approx(between - 0.4 + 0.04)
    assert found.df == pytest.approx(2 * ((between - 0.4 + 0.04) / between) ** 2)
    biased = combine_estimates([-2.0, 1.0, 3.0, 5.0], variances)
    assert biased.std_err**2 == pytest.approx(between - 0.4 + 0.04 + 5.0**2 - 4.0 / 3 - 0.01)
    reach = stats.t.isf(0.025, found.df) * found.std_err
    assert (found.low, found.high) == (pytest.approx(found.estimate - reach), pytest.approx(found.estimate + reach))
    wide = combine_estimates(estimates, variances, level=0.99)
    assert wide.low < found.low


def test_a_variance_that_comes_out_too_small_is_held_above_that_of_sampling():
    found = combine_estimates([1.0, 1.0, 1.0, 1.0], [0.01, 0.3, 0.5, 0.4])
    assert found.std_err**2 == pytest.approx(0.4 + 0.04)
    assert np.isfinite(found.low)


@over_rows(
    "estimates, variances, said",
    [
        ([1.0, 2.0], [1.0, 1.0], "at least 3"),
        ([1.0, 2.0, np.nan], [1.0, 1.0, 1.0], "must be an array of finite numbers"),
        ([1.0, 2.0, 3.0], [1.0, -1.0, 1.0], "nonnegative"),
    ],
)
def test_bad_estimates_are_rejected(estimates, variances, said):
    with pytest.raises(ValueError, match=said):
        combine_estimates(estimates, variances)
