"""Second moments: rows that hold NaN or infinity. The rest is in `test_decomposition.py`, against the estimator."""

import numpy as np
import pytest
from combinations import over_combinations
from threadpoolctl import threadpool_info, threadpool_limits

from skdp._kernels import threads
from skdp._kernels.threads import WorkerPool, single_threaded_blas
from skdp.mechanisms.second_moments import BLOCK_ROWS, MomentSum, UnitBall

ROWS = 40


def sums_of(X, ball, weight):
    sums = MomentSum(ball, weight, by_position=True)
    sums.add(X)
    return sums


@over_combinations(dtype=[np.float32, np.float64], radius=[0.0, 1.5], centered=[False, True], d=[1, 4, 70])
@pytest.mark.compiled
def test_a_row_that_holds_nan_or_infinity_adds_exactly_nothing(d, centered, radius, dtype):
    """As if the center, which is nothing, stood in its place: no bit of the sums is another."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, d)).astype(dtype)
    ball = UnitBall(rng.normal(size=d) if centered else np.zeros(d), radius)
    ball = ball._replace(center=ball.center.astype(dtype).astype(float))
    void = X.copy()
    void[7] = ball.center
    others = sums_of(void, ball, 0.3).vector
    for lost in (np.nan, np.inf, -np.inf):
        for columns in (slice(1), slice(d - 1, d), slice(None)):
            for rest in (X[7], ball.center):
                wild = X.copy()
                wild[7] = rest
                wild[7, columns] = lost
                with np.errstate(all="raise"):
                    np.testing.assert_array_equal(sums_of(wild, ball, 0.3).vector, others)
                brought = np.full_like(wild, np.nan)
                ball.bring_in(wild, brought)
                assert np.all(brought[7] == 0.0)


class Backwards:
    """Shares tasks with nobody, and does the last one first."""

    def __init__(self):
        self.n_tasks = 0

    def share(self, run, tasks, size):
        for task in reversed(tasks):
            run(task)
            self.n_tasks += 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("d", "n_rectangles"), [(14, 3), (300, 10)])
def test_threads_change_no_bit(d, n_rectangles, dtype, monkeypatch):
    """The order of the parts and the sizes of the blocks do not matter, also with too few rows for threads."""
    monkeypatch.setattr(threads, "_SHARING_PAYS", 0)
    n = 35 * BLOCK_ROWS + 137
    X = np.random.default_rng(2).normal(size=(n, d)).astype(dtype)
    ball = UnitBall(np.full(d, 0.25), 2.0)

    def released(pool):
        sums = MomentSum(ball, 0.3, by_position=True, pool=pool)
        for start, stop in ((0, 100), (100, 100), (100, n)):
            sums.add(X[start:stop])
        assert sums.n_rows == n
        return sums.vector * sums.rounding

    alone, backwards = released(None), Backwards()
    np.testing.assert_array_equal(released(backwards), alone)
    assert backwards.n_tasks == 3 * (8 + n_rectangles)  # of 100 rows, of none, and of the others in two chunks
    for n_threads in (1, 2, 5):
        pool = WorkerPool(n_threads)
        for _ in range(3):
            np.testing.assert_array_equal(released(pool), alone)
        pool.close()
    inside = X - 0.25
    inside /= np.maximum(2.0, np.linalg.norm(inside, axis=1, keepdims=True))
    plain = inside.T.astype(np.float64) @ inside
    plain[~np.eye(d, dtype=bool)] *= np.sqrt(2.0)
    expected = np.append(plain[np.tri(d, dtype=bool)], 0.3 * inside.sum(axis=0, dtype=np.float64))
    np.testing.assert_allclose(alone, expected, rtol=1e-4 if dtype is np.float32 else 1e-11, atol=1e-7 * n)


def test_blas_has_one_thread_inside_and_its_own_after():
    def n_threads():
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    with threadpool_limits(limits=2, user_api="blas"):
        assert n_threads() == {2}
        with single_threaded_blas():
            assert n_threads() == {1}
        assert n_threads() == {2}
