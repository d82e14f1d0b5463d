"""Rows in groups, of which one may have many rows."""

import numpy as np

from skdp import DPPCA


class UnitRows:
    """Rows, targets, weights and group labels; the rows where `unit` is true are one group.

    Its rows are "any", "copies" of one row, or "opposite": copies of which half have the other target.
    """

    def __init__(self, labels, unit, rows="any", dtype=np.float64):
        rng, n = np.random.default_rng(0), len(labels)
        self.X, self.y = rng.uniform(-1, 1, (n, 4)).astype(dtype), rng.integers(0, 2, n)
        self.w, self.labels, self.unit = np.ones(n), labels, unit
        if rows != "any":
            self.X[unit], self.y[unit] = rng.uniform(0.5, 1, 4), 1
        if rows == "opposite":
            self.y[unit] = np.arange(unit.sum()) % 2

    def without_the_unit(self, *, altogether=False):
        """The same with one zeroed-out record in its place, or without it altogether."""
        other, kept = object.__new__(type(self)), ~self.unit
        kept[np.flatnonzero(self.unit)[0]] = not altogether
        vars(other).update(vars(self))
        other.X, other.y, other.labels = (each[kept] for each in (self.X, self.y, self.labels))
        other.w = np.where(self.unit[kept], 0.0, self.w[kept])
        return other

    def fit_in_memory(self, estimator):
        weights = {} if isinstance(estimator, DPPCA) else {"sample_weight": self.w}
        return estimator.fit(self.X, self.y, groups=self.labels, **weights)


N_OTHERS = 150


def rows_and_unit(size, rows, rng, n_columns=4):
    """X, y, weights and labels of the rows of other units, and then of `size` rows of one unit, as of `UnitRows`."""
    n = N_OTHERS + size
    X, y = rng.uniform(-1, 1, (n, n_columns)), rng.integers(0, 2, n)
    unit = slice(N_OTHERS, None)
    if rows != "any":
        X[unit], y[unit] = rng.uniform(0.5, 1, n_columns), 1
    if rows == "opposite":
        y[unit] = np.arange(size) % 2
    labels = np.concatenate([rng.integers(0, 90, N_OTHERS), np.full(size, 99)])
    return X, y, np.ones(n), labels


def without_the_unit(X, y, weights, labels):
    """The same with a null unit in its place: one row that counts for nothing."""
    kept = slice(0, N_OTHERS + 1)
    weights = weights[kept].copy()
    weights[-1] = 0.0
    return X[kept], y[kept], weights, labels[kept]
