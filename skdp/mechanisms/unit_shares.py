"""Units of several rows in one release: shares by which their rows are multiplied, so that their sum is clipped as one.

A release adds up a vector of each row, of norm at most S. A unit adds the sum of those of its rows, which is clipped to
S, or to a multiple of it, by multiplying all of them by one number in [0, 1]: its share. So a release for units is the
release of weighted rows, with weights times shares.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from skdp._checks.units import Units
from skdp._typing import Doubles


def shares_of_units(units: Units, squares: Doubles, reach: Doubles, limit: float) -> Doubles:
    """Return the share of the rows of each unit, of shape (n_units,).

    Parameters
    ----------
    units : Units
    squares : ndarray of shape (n_units,)
        Squared norm of the sum of the weighted vectors of each unit.
    reach : ndarray of shape (n_units,)
        Sum of their norms, or of upper bounds on them.
    limit : float
        To which the sum of a unit is clipped.

    Notes
    -----
    **Guarantees.** The sum of the vectors of a unit, times their shares, has a norm of at most `limit`. A unit of one
    row, whose vector is no longer than `limit`, has a share of exactly 1.

    Proof. With V the true sum of a unit of m rows, of p <= 2**16 numbers, and A its reach, `squares` is within (p + m +
    8) u A**2 of \\|V\\|**2, u = 2**-53, and what is added is within (m + 4) u A of the share times V. The room that is
    added to `squares`, 16 (m + 2**13) u A**2, covers both (`skdp._training.models.unit_layout.unit_room`).
    """
    sizes = np.bincount(units.codes, minlength=units.n_units)
    shares = np.ones(units.n_units)
    with np.errstate(all="ignore"):
        norms = np.sqrt(np.maximum(squares, 0.0) + 16 * (sizes + 2**13) * 2.0**-53 * reach**2)
        np.divide(limit, norms, out=shares, where=(sizes > 1) & (norms > limit))
    return shares


def share_of_sum(total: Doubles, limit: float) -> float:
    """Return the share of a unit of which the sum was formed: times it, no sum is longer than `limit` (1 + 4 u).

    The norm of p numbers as computed has a relative error of at most (p / 2 + 2) u, u = 2**-53, which the room makes up
    for.
    """
    norm = float(np.linalg.norm(total)) * (1.0 + (total.size + 8) * 2.0**-52)
    return limit / norm if norm > limit else 1.0


def reach_of_units(units: Units, weights: Doubles, norm: float) -> Doubles:
    """Sum of the norms of the weighted vectors of each unit, where none is longer than `norm` before."""
    reach = np.zeros(units.n_units)
    np.add.at(reach, units.codes, weights)
    return norm * reach


def squares_of_counts(units: Units, columns: Iterable[NDArray[Any]], weights: Doubles) -> Doubles:
    """Squared norms of the sums of units whose rows have, in each column, their weight at one cell."""
    squares = np.zeros(units.n_units)
    for cells in columns:
        cells = np.asarray(cells, np.int64)
        shape = units.n_units, int(cells.max(initial=0)) + 1
        counted = sp.coo_matrix((weights, (units.codes, cells)), shape).tocsr()  # adds up what is in one place
        counted.data **= 2
        squares += np.asarray(counted.sum(axis=1)).ravel()
    return squares


def clip_counts(units: Units | None, columns: Sequence[NDArray[Any]], weights: Doubles) -> Doubles:
    """Return weights times the shares of rows that are counted in one cell of each column, clipped to the norm of one.

    Without units these are the weights.
    """
    if units is None:
        return weights
    norm = math.sqrt(len(columns))
    squares, reach = squares_of_counts(units, columns, weights), reach_of_units(units, weights, norm)
    return weights * shares_of_units(units, squares, reach, norm)[units.codes]


__all__ = [
    "clip_counts",
    "reach_of_units",
    "share_of_sum",
    "shares_of_units",
    "squares_of_counts",
]
