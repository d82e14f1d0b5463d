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
