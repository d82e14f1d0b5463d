"""Sums over rows with classes, each with the most that one row moves it by.

What a row adds is multiplied by its weight v in [0, 1] after it was brought into a box or a ball. So rows add points of
the convex hull of zero and of what a row of weight 1 adds, and the weights of all rows of a unit, which add up to at
most 1 (`skdp.mechanisms.group_clip.clip_groups`), let a unit add such a point as well. The largest norm in a convex
hull, and the largest distance of two of its points, are reached at what it is the hull of: by a row of weight 1 and
none, or by two. In the proofs rows have a weight of 1 therefore. Under ``replace_one``, where twice the result is
priced, that is no less than what a row alone adds in each of them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from skdp._kernels.tiles import ROWS
from skdp._threads import WorkerPool
from skdp.mechanisms.second_moments import MomentSum, UnitBall
from skdp.synthesis.class_mixture.row_blocks import ClassRows, RowProduct

N_BINS, BINS_PER_OCTAVE = 64, 10
"""Bins of norms: the first ends at the longest that the bounds allow, the last but one begins at one that is 79 times
shorter, and all below is the last."""

ROUNDING = 1.0 + 2.0**-20
"""Rows are brought into a ball in float32 at least: their norms exceed its radius by less than this factor."""


COUNTED = 1.0 / 3.0
"""Factor of a weight in `total`, divided by the largest norm of a row: a tenth of what that release costs."""


def sensitivity_of_total(d: int, adjacency: str, *, with_weights: bool) -> float:
    """Return the largest contribution of a row of d columns in [-1/2, 1/2] to `total`.

    Its norm is R = sqrt(d) / 2, or R sqrt(1 + k**2) with its weight, k being `COUNTED`. Two rows have the same entry
    for the weight and differ by 2 R, which is no less than what one of them adds for k**2 <= 3. ``replace_one`` is
    priced for twice the result.
    """
    alone = not with_weights or adjacency == "replace_one"
    return math.sqrt(d) / 2.0 * (1.0 if alone else math.sqrt(1.0 + COUNTED**2))


def total(rows: ClassRows) -> np.ndarray:
    """Return the sum of the scaled rows, and where they have weights, these times a factor in one more entry."""
    found = np.zeros(d := rows.shape[1])
    for where, block in rows.residuals(np.zeros((1, d))):
        found += rows.weights[where] @ block[: where.stop - where.start, :d]
    return np.append(found, weight_in_total(d) * rows.weights.sum()) if rows.have_weights else found


def weight_in_total(d: int) -> float:
    """Return the factor of the weights of rows of d columns in `total`."""
    return COUNTED * math.sqrt(d) / 2.0


def sensitivity_of_counts(adjacency: str) -> float:
    """Return the contribution of a row to `counts`: 1 to one class and 1 to one bin.

    The norm is sqrt(2). A row that is exchanged moves four counts by one, a change of norm 2, for twice the result.
    """
    return 1.0 if adjacency == "replace_one" else math.sqrt(2.0)


def bin_edges(d: int) -> np.ndarray:
    """Return the upper ends of the bins of norms of d columns that are at most 1 long each."""
    return np.asarray(math.sqrt(d) * 2.0 ** ((np.arange(N_BINS) - N_BINS + 1) / BINS_PER_OCTAVE))


def counts(rows: ClassRows, n_classes: int, center: np.ndarray) -> np.ndarray:
    """Return the weights of the rows of each class, and those of rows whose distance from a center is in each bin."""
    found, edges = np.zeros(N_BINS), bin_edges(len(center))
    for where, norms in rows.norms(center[None]):
        bins = np.minimum(np.searchsorted(edges, norms), N_BINS - 1)
        found += np.bincount(bins, rows.weights[where], minlength=N_BINS)
    return np.concatenate([np.bincount(rows.codes, rows.weights, minlength=n_classes), found])


SENSITIVITY_OF_MEANS = ROUNDING
"""What a row of the unit ball adds to the sum of its class; two rows, of any classes, differ by twice that at most."""


def class_sums(rows: ClassRows, n_classes: int, center: np.ndarray, radius: float) -> np.ndarray:
    """Return the sums, of shape (n_classes, d), of rows less a center, in a ball, divided by its radius."""
    d = len(center)
    found, ball = np.zeros((n_classes, d)), UnitBall(np.zeros(d), radius)
    for where, block in rows.residuals(center[None]):
        part = block[: where.stop - where.start]
        ball.bring_in(part[:, :d], part)
        found += _chosen(rows.codes[where], n_classes, rows.weights[where]) @ part[:, :d]
    return found


def residual_moments(
    rows: ClassRows, centers: np.ndarray, radius: float, pool: WorkerPool, *, by_position: bool
) -> MomentSum:
    """Return the second moments of rows less the centers of their classes, of the ball of a radius.

    Rows with weights are multiplied by the roots of these in the unit ball, which leaves them there.
    """
    d = rows.shape[1]
    ball = UnitBall(np.zeros(d), radius)
    inner = UnitBall(np.zeros(d), 1.0) if rows.have_weights else ball
    found = MomentSum(inner, 0.0, by_position=by_position, pool=pool)
    for where, block in rows.residuals(centers):
        part = block[: where.stop - where.start, :d]
        if rows.have_weights:
            part = part.astype(np.float64)
            ball.bring_in(part, part)
            part *= np.sqrt(rows.weights[where, None])
        found.add(part)
    return found


def projected(rows: ClassRows, centers: np.ndarray, directions: np.ndarray, radius: float) -> NDArray[np.floating]:
    """Return coordinates along directions of shape (k, d), in the ball of a radius, and divided by it."""
    n, k = rows.shape[0], len(directions)
    table, found = RowProduct(directions.T, rows.dtype), np.empty((n, k), rows.dtype)
    ball = UnitBall(np.zeros(k), radius)
    for where, block in rows.residuals(centers):
        part = np.ascontiguousarray(table.multiply(block)[: where.stop - where.start])
        ball.bring_in(part, found[where])
    return found


class ClusterSums(NamedTuple):
    """Counts and sums of groups of rows in the unit ball, as a vector of (weight times count, sum) for each group.

    Attributes
    ----------
    weight : float

    Notes
    -----
    **Guarantees.** A row changes the vector by at most `sensitivity`.

    Proof. A row x is in one group, where it adds (w, x), of norm at most sqrt(1 + w**2). If it is exchanged for y in
    the same group, the change is that of the sum, at most 2; in two groups both norms count, and the change is at most
    sqrt(2 (1 + w**2)). ``replace_one`` is priced for twice the result.
    """

    weight: float

    def sensitivity(self, adjacency: str) -> float:
        """Return the most that one row changes the vector by, or half of it for a row that is exchanged."""
        both = 1.0 + self.weight**2
        return ROUNDING * (max(1.0, math.sqrt(both / 2.0)) if adjacency == "replace_one" else math.sqrt(both))

    def vector(
        self, points: NDArray[np.floating], groups: NDArray[np.int64], n_groups: int, weights: np.ndarray
    ) -> np.ndarray:
        """Return the vector of points of shape (n, k)."""
        found = np.empty((n_groups, 1 + points.shape[1]))
        found[:, 0] = self.weight * np.bincount(groups, weights, minlength=n_groups)
        found[:, 1:] = _chosen(groups, n_groups, weights) @ points
        return found.ravel()

    def read(self, released: np.ndarray, n_groups: int) -> tuple[np.ndarray, np.ndarray]:
        """Return counts and sums."""
        table = released.reshape(n_groups, -1)
        return table[:, 0] / self.weight, table[:, 1:]


class GroupMoments(NamedTuple):
    """Counts, sums and second moments of groups of rows in the unit ball, as one vector.

    Attributes
    ----------
    shares : tuple of float
        Of counts, sums and second moments in the squared norm of what a row adds; together 1.

    Notes
    -----
    **Guarantees.** A row changes the vector by at most `sensitivity`, but for the rounding of float64 sums.

    Proof. Let a, b and c be the roots of the shares. A row x is in one group, where it adds (a, b x, c x x'), with
    second moments in Frobenius norm: at most 1 for \\|x\\| <= 1. Exchanged for a row of another group, both count, and
    the change is at most sqrt(2). Exchanged for one of the same group, counts do not change, and the rest changes by at
    most sqrt(2) (c + b**2 / (2 c)) (`skdp.decomposition.DPPCA`, with w = b / c and b**2 <= 2 c**2). ``replace_one`` is
    priced for twice the result. `skdp.mechanisms.second_moments.MomentSum` has the rounding of rows that are brought
    into the ball.
    """

    shares: tuple[float, float, float]

    def sensitivity(self, adjacency: str) -> float:
        """Return the most that one row changes the vector by, or half of it for a row that is exchanged."""
        if adjacency != "replace_one":
            return ROUNDING
        _, of_sums, of_moments = self.shares
        within = math.sqrt(of_moments) + of_sums / (2.0 * math.sqrt(of_moments))
        return ROUNDING * max(1.0, within) / math.sqrt(2.0)

    def vector(
        self, points: NDArray[np.floating], groups: NDArray[np.int64], n_groups: int, weights: np.ndarray
    ) -> np.ndarray:
        """Return the vector of points of shape (n, k)."""
        a, b, c = np.sqrt(self.shares)
        order, parts = np.argsort(groups, kind="stable"), []
        totals = _chosen(groups, n_groups, weights) @ points
        counted, ends = np.bincount(groups, weights, n_groups), np.cumsum(np.bincount(groups, minlength=n_groups))
        for g, size in enumerate(np.diff(ends, prepend=0)):
            own, sums = order[ends[g] - size : ends[g]], self._sums(points.shape[1])
            sums.add(points[own].astype(np.float64) * np.sqrt(weights[own, None]))
            parts += [[a * counted[g]], c * sums.vector, b * totals[g]]
        return np.concatenate(parts)

    def read(self, released: np.ndarray, n_groups: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return counts, of shape (n_groups,), sums, of shape (n_groups, k), and symmetric second moments."""
        a, b, c = np.sqrt(self.shares)
        table, sums = released.reshape(n_groups, -1), self._sums(k)
        lower = [sums.read(row[1:-k] / c).gram for row in table]
        squares = np.array([each + np.tril(each, -1).T for each in lower])
        return table[:, 0] / a, table[:, -k:] / b, squares

    def _sums(self, k: int) -> MomentSum:
        """Rows of a group move up where one leaves, so they are summed in float64."""
        return MomentSum(UnitBall(np.zeros(k), 1.0), 0.0, by_position=False)


def nearest(points: NDArray[np.floating], codes: NDArray[np.int64], centers: NDArray[np.floating]) -> NDArray[np.int64]:
    """Return the group of each point: that of the nearest of the K centers of its class, of shape (C, K, k)."""
    n_classes, n_centers, _ = centers.shape
    found = np.zeros(len(points), np.int64)
    if n_centers == 1:
        return codes.copy()
    halves = 0.5 * (centers.astype(np.float64) ** 2).sum(axis=2)
    for c in range(n_classes):
        where = np.flatnonzero(codes == c)
        part = np.zeros((-(-len(where) // ROWS) * ROWS, points.shape[1]), points.dtype)
        part[: len(where)] = points[where]
        scores = RowProduct(centers[c].T, points.dtype).multiply(part)[: len(where)] - halves[c]
        found[where] = c * n_centers + scores.argmax(axis=1)
    return found


def _chosen(groups: NDArray[np.int64], n_groups: int, weights: np.ndarray) -> sp.csr_array:
    """Return the matrix that adds up weighted rows by groups."""
    places = np.arange(len(groups))
    return sp.csr_array((weights, (groups, places)), shape=(n_groups, len(groups)))
