"""Linear models of rows that are stored by columns and used once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._checks.rows import check_finite
from skdp._kernels import columns as kernel
from skdp._kernels.linear import N_FACTS, add_all_columns, several_outputs
from skdp._training.models.bound_rows import Model
from skdp._training.models.linear import LinearGeometry

MOST_PARAMETERS = 2048
"""Parameters up to which a tile of rows stays in cache, and products are too small for BLAS."""


_BLOCK_ROWS = 1 << 13  # of which all that is known beside their features stays in cache between two kernels


class ColumnModel(Model):
    """Rows, labels and weights of a linear classifier, for one sum over all of them.

    Parameters
    ----------
    X : ndarray of shape (n, d), float32 or float64, Fortran order
    labels : ndarray of shape (n,)
        Numbers of the classes, from 0.
    weights : ndarray of shape (n,) or float
        In [0, 1]. They multiply clipped gradients; 0 makes a row a null record.
    n_outputs : int
        1 for the logistic loss (two classes), else the number of classes.
    geometry : LinearGeometry
    names : list of str or None
        Names of the columns, for refusals.

    Notes
    -----
    **Guarantees.** As of `skdp._training.models.linear.LinearModel`: a row adds at most C (1 + 8 u), and exactly
    nothing if its weight is 0. A row that holds NaN or infinity is refused.

    Proof. As there, with u = 2**-53: it remains to show that the length of a row as computed is at least its norm
    ``|u|``. A root of d squares has a relative error of at most (d / 2 + 3) u, divided by the largest number or not.
    The product with the scale has u, and the root of its square plus that of the intercept 3 u more: of these squares
    that of the intercept, if there is one, is a normal number, so that one that underflows beside it is less than u of
    the sum. All this is less than half of the 2 (d + K + 16) u by which the length is then taken longer, which leaves
    room for the norm of K residuals and the clip factor. The length is a double and not rounded to the dtype of X.
    """

    def __init__(
        self,
        X: Any,
        labels: Any,
        weights: NDArray[np.floating] | float,
        n_outputs: int,
        geometry: LinearGeometry,
        names: list[str] | None = None,
    ) -> None:
        self.n_rows, self.n_features = X.shape
        self.n_outputs, self.geometry, self._names = n_outputs, geometry, names
        self._X, self._labels = np.ascontiguousarray(X.T), labels
        self._weights = np.atleast_1d(np.asarray(weights, X.dtype))

    def clipped_gradient_sum(self, theta: np.ndarray, rows: None, max_norm: float) -> NDArray[np.float64]:
        """Sum of clipped gradients over all rows, of shape (p,): an output's weights, then its intercept."""
        if rows is not None:
            raise ValueError("rows are some of them, and a model of columns adds up all: give None.")
        table, geometry, dtype = theta.reshape(self.n_outputs, -1), self.geometry, self._X.dtype
        total = np.zeros((self.n_outputs, self.n_features + 1))
        weights = np.ascontiguousarray(table[:, : self.n_features], dtype)
        bias = table[:, -1].astype(np.float64) if geometry.icpt else np.zeros(self.n_outputs)
        room = 1.0 + (self.n_features + self.n_outputs + 16) * 2.0**-52
        public = geometry.radius, geometry.unit, geometry.icpt, float(np.finfo(dtype).tiny), room
        several = several_outputs(self.n_outputs)
        step, n_null = min(self.n_rows, _BLOCK_ROWS), 0
        facts = np.empty((N_FACTS, step))
        for low in range(0, self.n_rows, step or 1):
            m = min(step, self.n_rows - low)
            n_null += kernel.facts_by_columns(self._X, low, m, self._labels, self._weights, *public, *facts)
            add_all_columns(
                self._X, low, facts, None, None, several, weights, bias, max_norm, geometry.icpt, 0, m, total
            )
        if n_null:  # NaN and infinity, or a norm beyond the largest number
            check_finite(self._X.T, self._names)
        return (total if geometry.icpt else total[:, :-1]).ravel()
