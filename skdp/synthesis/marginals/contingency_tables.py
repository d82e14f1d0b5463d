"""Marginals by one, two or three columns, as one vector to release: only the interaction of each set of columns.

A two-way marginal of the columns i and j contains both one-way marginals and their interaction. Here each set of
columns has its interaction alone: the counts, centered along every axis. Nothing is released twice, and the
sensitivity is smaller.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from skdp._checks.groups import Units
from skdp._checks.weights import exactly_summable
from skdp.mechanisms.bounded_sum import centered, clip_groups, squares_of_counts

ColumnSet = tuple[int, ...]

TOTAL_SHARE = 0.02
"""Fraction of a release for the sum of the weights of rows, if it is part of it."""

_ROWS = 1 << 16


class TableSums(NamedTuple):
    """Sets of columns whose interactions are released together.

    Attributes
    ----------
    levels : tuple of int
        Number of levels of every column.
    sets : tuple of tuple of int
        Columns of each set, ascending. None of them has a single level. The empty set, if any, is the first: its table
        is one number, the sum of the weights of all rows.
    weights : tuple of float
        Factor of the interactions of each set in the vector.

    Notes
    -----
    **Guarantees.** A row changes `vector` by at most `sensitivity` in Euclidean norm.

    Proof. For a set of columns S with A_i levels, a row with levels a_i adds to the counts the product, over i in S, of
    unit vectors e(a_i). Centering along every axis makes it the product of u_i = e(a_i) - 1 / A_i, whose squared norm
    is 1 - 1 / A_i. So the row adds a tensor of squared norm N_S = prod (1 - 1 / A_i), for any levels, and to the vector
    one of squared norm sum w_S**2 N_S: its root is the sensitivity under ``zero_out`` and ``add_remove``.

    Under ``replace_one`` the accounting uses twice the sensitivity. `farthest_exchange` bounds half the squared
    distance between the contributions of two rows, so the sensitivity is the root of half of that. Two rows attain it
    for up to 12 columns.

    A row of weight v in [0, 1] adds v times as much, and a row of weight 0 nothing. The contribution of a row, and the
    difference between two rows, has a norm that is convex in each weight, so it is largest if both are 0 or 1: for two
    rows of weight 1 as above, and if one has weight 0, the contribution of the other one alone. The larger of both is
    accounted for. For the empty set N_S is 1, and two rows of weight 1 do not change it.

    Counts are integers below 2**53, or multiples of 2**-24 below 2**29, so their sums are exact. Centering is rounded
    in float64, which the noise covers (`skdp.mechanisms.GaussianMechanism`).

    References
    ----------
    Xiao, He, Zhang & Kifer (2023), "An optimal and scalable matrix mechanism for noisy marginals under convex loss
    functions", for the bases of interactions.
    """

    levels: tuple[int, ...]
    sets: tuple[ColumnSet, ...]
    weights: tuple[float, ...]

    def shape(self, columns: ColumnSet) -> tuple[int, ...]:
        """Return the numbers of levels of a set."""
        return tuple(self.levels[j] for j in columns)

    def sensitivity(self, adjacency: str) -> float:
        """Return the largest norm of the contribution of one row; half of the largest change under ``replace_one``."""
        squares = zip(self.sets, np.square(self.weights).tolist(), strict=True)
        added = sum(square * squared_norm(self.levels, columns) for columns, square in squares)
        if adjacency != "replace_one":
            return math.sqrt(added)
        return math.sqrt(max(2.0 * farthest_exchange(self.levels, self.sets, self.weights), added)) / 2.0

    def vector(self, codes: Sequence[np.ndarray], shares: np.ndarray | None = None) -> np.ndarray:
        """Return the weighted interactions of all sets, one after the other; `shares` are weights of rows in [0, 1]."""
        parts = [
            weight * centered(count(codes, columns, self.levels, shares)).ravel()
            for columns, weight in zip(self.sets, self.weights, strict=True)
        ]
        return np.concatenate(parts)

    def clip_units(self, units: Units, codes: Sequence[np.ndarray], shares: np.ndarray, reach: float) -> np.ndarray:
        """Return weights, such as `shares`, with which a group adds at most `reach` times a row to `vector`.

        Notes
        -----
        **Guarantees.** The rows of a group together change `vector` by at most `reach`, 1 or more, times the
        sensitivity of one row under ``zero_out``. A group of one row keeps its weight.

        Proof. Centering the counts of a group by a set S along an axis subtracts A_j times the square of its mean, so
        the squared norm is the sum over subsets T of S of that of the counts by T, times the product of -1 / A_j over
        the other columns. Counts by T have no more cells in a group than it has rows. Squares are increased by more
        than the rounding of all terms. Rounding fractions down, for exact sums, changes the sum of m rows by at most m
        2**-24 times the norm of a row; the limit is lowered by that.
        """
        # Units of one row need no clipping.
        sizes = np.bincount(units.codes, minlength=units.n_units)
        several = np.flatnonzero(sizes[units.codes] > 1)
        some, weights = Units(units.codes[several], units.n_units), shares[several]
        levels_of, squares = [each[several] for each in codes], np.zeros(units.n_units)
        # The squared norm of what each unit adds to `vector`, from those of its counts by all sets of columns.
        factors: dict[ColumnSet, float] = {}
        for columns, weight in zip(self.sets, self.weights, strict=True):
            for size in range(len(columns) + 1):
                for left in itertools.combinations(columns, size):
                    left_out = math.prod(-1.0 / self.levels[j] for j in columns if j not in left)
                    factors[left] = factors.get(left, 0.0) + weight**2 * left_out
        for columns, factor in factors.items():
            squares += factor * squares_of_counts(some, [cells_of(levels_of, columns, self.levels)], weights)
        # Raise them by more than their rounding, and clip.
        total, norm = np.bincount(units.codes, shares, minlength=units.n_units), self.sensitivity("zero_out")
        squares += sum(map(abs, factors.values())) * (len(factors) + 2.0 * sizes + 16.0) * 2.0**-52 * total**2
        kept = np.maximum(1.0 - sizes * 2.0**-24, 2.0**-24)
        return exactly_summable(clip_groups(units, shares, reach * norm * kept, norm, squares))

    def total(self, released: np.ndarray, n: float, deviation: float) -> float:
        """Return the noisy sum of the weights of rows, above its noise and at most n; n where it was not released."""
        if () not in self.sets:
            return n
        weight = self.weights[0]
        return min(max(float(released[0]) / weight, deviation / weight, 1.0), n)

    def interactions(self, released: np.ndarray, n: float, deviation: float) -> dict[ColumnSet, Interaction]:
        """Return the noisy interactions of each set of columns, relative to `n`, that of `total`.

        `deviation` is that of the vector's noise.
        """
        found, start = {}, 0
        for columns, weight in zip(self.sets, self.weights, strict=True):
            shape = self.shape(columns)
            part = released[start : start + math.prod(shape)].reshape(shape)
            if columns:
                found[columns] = Interaction(centered(part) / (weight * n), deviation / (weight * n))
            start += part.size
        return found


class Interaction(NamedTuple):
    """Noisy interaction of some columns, relative to the number of rows, and the standard deviation of its noise.

    The noise is that of a Gaussian tensor centered along every axis.
    """

    values: np.ndarray
    deviation: float


def weighted(
    levels: Sequence[int], groups: Iterable[tuple[Sequence[ColumnSet], float]], with_total: bool = False
) -> TableSums:
    """Return the sums for groups of sets, each with a fraction of the squared norm of a row's contribution.

    Within a group all weights are equal. Sets with a column of one level are omitted, because they carry no
    information. The fractions of the others are scaled to sum to one. With `with_total` the sum of the weights of rows
    is the first.
    """
    kept: list[tuple[list[ColumnSet], float]] = []
    for given, share in groups:
        sets = [columns for columns in given if all(levels[j] > 1 for j in columns)]
        if sets and share > 0:
            kept.append((sets, share))
    total = sum(share for _, share in kept)
    if with_total:
        kept.insert(0, ([()], (total or 1.0) * TOTAL_SHARE / (1.0 - TOTAL_SHARE)))
        total = sum(share for _, share in kept)
    found, weights = [], []
    for sets, share in kept:
        norm = sum(squared_norm(levels, columns) for columns in sets)
        found += sets
        weights += [math.sqrt(share / (total * norm))] * len(sets)
    return TableSums(tuple(levels), tuple(found), tuple(weights))


def squared_norm(levels: Sequence[int], columns: ColumnSet) -> float:
    """Return the squared norm of the contribution of a row to the interactions of a set."""
    return math.prod(1.0 - 1.0 / levels[j] for j in columns)


def count(
    codes: Sequence[np.ndarray], columns: ColumnSet, levels: Sequence[int], shares: np.ndarray | None = None
) -> np.ndarray:
    """Return how many rows, or which sum of their weights, have each combination of levels of some columns."""
    shape = tuple(levels[j] for j in columns)
    total = np.zeros(math.prod(shape))
    for start in range(0, len(codes[0]), _ROWS):
        part = slice(start, start + _ROWS)
        cells = cells_of([each[part] for each in codes], columns, levels)
        total += np.bincount(cells, None if shares is None else shares[part], minlength=len(total))
    return total.reshape(shape)


def cells_of(codes: Sequence[np.ndarray], columns: ColumnSet, levels: Sequence[int]) -> np.ndarray:
    """Return where each row is in the table of some columns, read row by row."""
    cells = np.zeros(len(codes[0]), np.intp)
    for j in columns:
        cells *= levels[j]
        cells += codes[j]
    return cells


# --- change of the vector when a row is replaced ---

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
        # Go through all sets of columns in which two rows may differ.
        factors = np.tile(p, (1 << len(used), 1))
        factors[:, used] -= np.arange(len(factors))[:, None] >> np.arange(len(used)) & 1
        halves = np.zeros(len(factors))
        for columns, square in given:
            halves += square * (np.prod(p[list(columns)]) - np.prod(factors[:, columns], axis=1))
        return float(halves.max()) * (1.0 + _ROOM)
    # The column that is in all sets of three, or else, or of several, that whose sets weigh the most.
    weight_of, triples = np.zeros(len(levels)), [set(columns) for columns, _ in given if len(columns) == 3]
    for columns, square in given:
        weight_of[list(columns)] += square
    shared = set.intersection(*triples) if triples else set()
    common = max(shared or range(len(levels)), key=lambda j: float(weight_of[j]))
    large = [(columns, square) for columns, square in given if len(columns) - (common in columns) > 2]
    small = [(columns, square) for columns, square in given if len(columns) - (common in columns) <= 2]
    together = max(_largest_quadratic(p, small, common, state) for state in (0.0, 1.0))
    return (_one_by_one(p, large) + min(_one_by_one(p, small), together)) * (1.0 + _ROOM)


Weighed = Sequence[tuple[tuple[int, ...], float]]
"""Sets of columns, and the squares of their weights."""


def _one_by_one(p: np.ndarray, sets: Weighed) -> float:
    """Return the weighted sum of the largest that each set can have for itself."""
    return sum(square * math.prod(sorted(p[list(columns)])[1:]) for columns, square in sets if columns)


def _largest_quadratic(p: np.ndarray, sets: Weighed, common: int, state: float) -> float:
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


def _largest_over_corners(linear: np.ndarray, quadratic: np.ndarray) -> float:
    """Return a bound on b'x + x'Qx over all x of zeros and ones."""
    shift = float(np.linalg.eigvalsh(quadratic)[-1]) + _ROOM * float(np.abs(quadratic).sum(axis=1).max())
    slope, concave = linear + shift, quadratic - shift * np.eye(len(linear))

    def falling(x: np.ndarray) -> tuple[float, np.ndarray]:
        return -float(slope @ x + x @ concave @ x), -(slope + 2.0 * concave @ x)

    start, cube = np.full(len(linear), 0.5), [(0.0, 1.0)] * len(linear)
    x = minimize(falling, start, jac=True, method="L-BFGS-B", bounds=cube, options={"ftol": 1e-15, "gtol": 1e-8}).x
    value, gradient = falling(x)
    return -value + float(np.maximum(gradient * x, -gradient * (1.0 - x)).sum())
