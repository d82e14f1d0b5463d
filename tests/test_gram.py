"""Second moments: rows that hold NaN or infinity. The rest is in `test_decomposition.py`, against the estimator."""

from __future__ import annotations

import numpy as np
import pytest
import reference

from skdp._gram import MomentSum, UnitBall

ROWS = 40


def sums_of(X, ball, weight):
    sums = MomentSum(ball, weight, by_position=True)
    sums.add(X)
    return sums


@pytest.mark.compiled  # whose arithmetic sets no flags of NumPy's
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("radius", [0.0, 1.5])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("d", [1, 4, 70])
def test_a_row_that_holds_nan_or_infinity_adds_exactly_nothing(d, centred, radius, dtype):
    """As if the center, which is nothing, stood in its place: no bit of the sums is another."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, d)).astype(dtype)
    ball = UnitBall(rng.normal(size=d) if centred else np.zeros(d), radius)
    ball = ball._replace(center=ball.center.astype(dtype).astype(float))
    void = X.copy()
    void[7] = ball.center
    others = sums_of(void, ball, 0.3).isometric
    for lost in (np.nan, np.inf, -np.inf):
        for columns in (slice(1), slice(d - 1, d), slice(None)):
            for rest in (X[7], ball.center):
                wild = X.copy()
                wild[7] = rest
                wild[7, columns] = lost
                with np.errstate(all="raise"):
                    np.testing.assert_array_equal(sums_of(wild, ball, 0.3).isometric, others)
                brought = np.full_like(wild, np.nan)
                ball.bring_in(wild, brought)
                assert np.all(brought[7] == 0.0)


def test_the_plain_reading_leaves_them_out_too():
    X = np.random.default_rng(1).normal(size=(ROWS, 4))
    X[3, 0], X[4, 1], X[5] = np.nan, np.inf, [0, 0, np.nan, 0]
    center = np.full(4, 0.25)
    found = sums_of(X, UnitBall(center, 1.5), 0.3)
    with np.errstate(invalid="ignore"):
        plain = reference.gram_release(X, center, 1.5, 0.3, np.zeros(14))
    np.testing.assert_allclose(found.isometric * found.rounding, plain, rtol=1e-12, atol=1e-12 * ROWS)
