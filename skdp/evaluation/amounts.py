"""What a row adds to the count of its cell: one, or a part of one, in whole numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._checks.units import Units
from skdp._checks.weights import weight_of_each

GRID = 2**20
"""What a row of weight 1 adds where there are weights or units: parts of it are rounded down to whole numbers."""


def amounts_of(weights: Any, units: Units | None, n_rows: int) -> NDArray[np.int64]:
    """Return what each row adds to the count of its cell, from 0 to `GRID`.

    Parameters
    ----------
    weights : ndarray of shape (n_rows,) or 1.0
        Private: shares of a bound, in [0, 1].
    units : Units or None
        Private units of the rows.
    n_rows : int

    Notes
    -----
    **Guarantees.** What one row adds, or one unit over all of its rows, is at most `GRID` in sum, whatever cells it
    goes to. It depends on the weight of the row, or on those of its unit's rows, alone.

    Proof. A share in [0, 1] times `GRID`, rounded down, is a whole number from 0 to `GRID`. With K the sum of these
    over the rows of a unit, a row adds its number times `GRID` / max(K, `GRID`), rounded down: in sum at most min(K,
    `GRID`). All of it is arithmetic of whole numbers below 2**63 for units of fewer than 2**43 rows. Numbers that are
    added are not negative, so the sum of sizes is the sum.
    """
    shares = np.floor(weight_of_each(weights, n_rows) * GRID).astype(np.int64)
    if units is None:
        return shares
    sums = np.zeros(units.n_units, np.int64)
    np.add.at(sums, units.codes, shares)
    return shares * GRID // np.maximum(sums, GRID)[units.codes]
