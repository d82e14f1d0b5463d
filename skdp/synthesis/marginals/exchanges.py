"""How far a row that takes another's place moves tables: a maximum over the columns in which the two differ."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize

from skdp._typing import Doubles

_ROOM = 1e-9  # for the rounding of sums, eigenvalues and products
_FEW = 12  # columns whose differences are gone through


def farthest_exchange(levels: Sequence[int], sets: Sequence[tuple[int, ...]], weights: Sequence[float]) -> float:
    """Return a bound on half the squared change of weighted interactions, where one row takes another's place.

    Parameters
    ----------
    levels : sequence of int
        Number of levels of every column, 2 or more of those in sets.
    sets : sequence of tuple of int
        Columns of each set.
    weights : sequence of float
        Factor of the interactions of each set.

    Returns
    -------
    float
        The largest change, for up to 12 columns. Of more, near it, where sets have one or two columns, or three of
        which one is in all sets of three, and those of a size weigh the same.

    Notes
    -----
    **Guarantees.** No two rows change the interactions by a larger squared norm than twice the result.

    Proof. What a row adds to a set S is the tensor of `skdp.synthesis.marginals.contingency_tables.TableSums`. Half the
    squared distance of those of two rows is N_S less their scalar product: N_S - prod c_i, where N_S is the product of
    p_i = 1 - 1 / A_i, and c_i is p_i - x_i, with x_i = 1 if the rows differ in column i, and 0 if not. Of few columns
    the weighted sum is computed for all x. Of more it is bounded.

    - Each further difference makes the size of the scalar product no larger, as 1 - p_i <= p_i. It is negative for an
      odd number of differences. So it is at least the negative of that product with 1 - p_i in the place of one p_i,
      the smallest, and the half is at most the product of the others. This bounds sets that are taken one by one.
    - Let h be any column. For each x_h the weighted sum over sets of up to two columns beside h is a quadratic function
      of the other x: a constant, b'x and x'Qx, where the diagonal of Q is zero. Since x_i**2 = x_i, it equals
      x'(Q - v I) x + (b + v 1)'x at all corners of the cube. This is concave for the v that is taken, the largest
      eigenvalue of Q and more than its rounding. A concave function is nowhere above its tangent at any point, which is
      largest over the cube where each x_i is 0 or 1 by the sign of its slope. So there is a bound wherever the search
      for a good point ends.

    References
    ----------
    Hammer & Rubin (1970), "Some remarks on quadratic programming with 0-1 variables", for the shift of the diagonal.
    """
    p, given = 1.0 - 1.0 / np.asarray(levels, float), [*zip(sets, np.square(weights).tolist(), strict=True)]
    used = sorted({j for columns in sets for j in columns})
    if len(used) <= _FEW:
        return _over_all_differences(p, used, given) * (1.0 + _ROOM)
    common = _common_column(len(levels), given)
    large = [(columns, square) for columns, square in given if len(columns) - (common in columns) > 2]
    small = [(columns, square) for columns, square in given if len(columns) - (common in columns) <= 2]
    together = max(_largest_quadratic(p, small, common, state) for state in (0.0, 1.0))
    return (_one_by_one(p, large) + min(_one_by_one(p, small), together)) * (1.0 + _ROOM)


Weighed = Sequence[tuple[tuple[int, ...], float]]
"""Sets of columns, and the squares of their weights."""


def _one_by_one(p: Doubles, sets: Weighed) -> float:
    """Return the weighted sum of the largest that each set can have for itself."""
    return sum(square * math.prod(sorted(p[list(columns)])[1:]) for columns, square in sets if columns)


def _over_all_differences(p: Doubles, used: Sequence[int], sets: Weighed) -> float:
    """Return the largest weighted sum over all columns in which two rows may differ."""
    factors = np.tile(p, (1 << len(used), 1))
    factors[:, used] -= np.arange(len(factors))[:, None] >> np.arange(len(used)) & 1
    found = np.zeros(len(factors))
    for columns, square in sets:
        found += square * (np.prod(p[list(columns)]) - np.prod(factors[:, columns], axis=1))
    return float(found.max())


def _common_column(n_columns: int, sets: Weighed) -> int:
    """Return the column that is in all sets of three, or else, or of several, that whose sets weigh the most."""
    weight_of, triples = np.zeros(n_columns), [set(columns) for columns, _ in sets if len(columns) == 3]
    for columns, square in sets:
        weight_of[list(columns)] += square
    shared = set.intersection(*triples) if triples else set()
    return max(shared or range(n_columns), key=lambda j: float(weight_of[j]))


def _largest_quadratic(p: Doubles, sets: Weighed, common: int, state: float) -> float:
    """Return a bound on the weighted sum where rows differ in the common column, for a `state` of 1, or do not."""
    constant, linear, quadratic = 0.0, np.zeros(len(p)), np.zeros((len(p), len(p)))
    for columns, square in sets:
        rest = [j for j in columns if j != common]
        whole = square * (p[common] if len(rest) < len(columns) else 1.0)
        factor = whole - square * (state if len(rest) < len(columns) else 0.0)
        constant += (whole - factor) * math.prod(p[rest])
        if len(rest) == 1:
            linear[rest[0]] += factor
        elif rest:
            i, j = rest
            linear[i] += factor * p[j]
            linear[j] += factor * p[i]
            quadratic[i, j] -= factor / 2.0
            quadratic[j, i] -= factor / 2.0
    return constant + _largest_over_corners(linear, quadratic)


def _largest_over_corners(linear: Doubles, quadratic: Doubles) -> float:
    """Return a bound on b'x + x'Qx over all x of zeros and ones."""
    shift = float(np.linalg.eigvalsh(quadratic)[-1]) + _ROOM * float(np.abs(quadratic).sum(axis=1).max())
    slope, concave = linear + shift, quadratic - shift * np.eye(len(linear))

    def falling(x: Doubles) -> tuple[float, Doubles]:
        return -float(slope @ x + x @ concave @ x), -(slope + 2.0 * concave @ x)

    start, cube = np.full(len(linear), 0.5), [(0.0, 1.0)] * len(linear)
    x = minimize(falling, start, jac=True, method="L-BFGS-B", bounds=cube, options={"ftol": 1e-15, "gtol": 1e-8}).x
    value, gradient = falling(x)
    return -value + float(np.maximum(gradient * x, -gradient * (1.0 - x)).sum())
