"""Second moments of rows in the unit ball, as a vector that a mechanism can release."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.linalg import eigh, eigh_tridiagonal
from scipy.linalg.blas import dsymv

from skdp._checks.weights import weight_of_each
from skdp._kernels.sums import add_gram, add_rows, rows_into_ball
from skdp._kernels.threads import single_threaded_blas
from skdp._kernels.tiles import ROWS, SUMMED_ROWS, room_for
from skdp.mechanisms.bounded_sum import clip_factor, clip_groups, squares_of_products

BLOCK_ROWS = SUMMED_ROWS
"""Rows that are summed in their dtype. More rows would require more noise for float32 rounding (here 0.1%)."""

_CHUNK_ROWS, _CHUNK_VALUES = (16 * BLOCK_ROWS, 32 * BLOCK_ROWS), 1 << 20  # multiplied while in cache
_VECTOR_ROWS = 4096  # rows whose vectors are computed at a time
_SLICES = 8  # of a chunk, which threads map into the ball
_RECTANGLE_ROWS, _RECTANGLE_COLUMNS = 16 * ROWS, 256  # of the Gram matrix, so that sums fit in the cache of a core


def mean_weight(share: float) -> float:
    """Return the factor w of the sum of rows for which this sum has the fraction `share` of mu**2."""
    return math.sqrt(share / (1.0 - share))


def sensitivity(weight: float, adjacency: str) -> float:
    """Return the largest norm of the contribution of a row in the unit ball to (sum of x x', weight * sum of x).

    The norm is Euclidean (Frobenius). Under ``replace_one`` the accountant doubles the sensitivity, so the result is
    half the diameter of the set of contributions. The proofs are in the notes of `skdp.decomposition.DPPCA`; the proof
    for ``replace_one`` requires weight**2 <= 2.
    """
    if adjacency == "replace_one":
        return (1.0 + weight**2 / 2.0) / math.sqrt(2.0)
    return math.sqrt(1.0 + weight**2)


class UnitBall(NamedTuple):
    """Map of rows into the unit ball: ``(x - center) / max(radius, |x - center|)``, zero if that norm is not finite.

    Parameters
    ----------
    center : ndarray of shape (d,), float64
        Public center.
    radius : float
        Public radius. If 0, every non-zero row is scaled to norm 1.
    """

    center: np.ndarray
    radius: float

    def bring_in(self, X: np.ndarray, rows: np.ndarray) -> None:
        """Write the mapped rows of X to `rows`, a C-ordered float32 or float64 array, which can have more columns."""
        if X.dtype != rows.dtype or not (X.flags.c_contiguous and X.flags.writeable):  # compiled for few types
            np.copyto(rows[:, : X.shape[1]], X)
            X = rows
        rows_into_ball(np.asarray(X), self.center.astype(rows.dtype), self.radius, rows)


class Moments(NamedTuple):
    """Lower triangle of a sum of x x', of shape (d, d), and sum of x, of shape (d,)."""

    gram: np.ndarray
    total: np.ndarray


class MomentSum:
    """Sum of x x' and weighted sum of x over rows mapped into a ball, computed block by block.

    Parameters
    ----------
    ball : UnitBall
        Map of rows into the unit ball.
    weight : float
        Weight w of the sum of x. If 0, this sum is omitted.
    by_position : bool
        Whether all other rows of a neighbor keep their positions (zero_out, replace_one). float32 rows can then be
        multiplied in float32. Under add_remove a removed row shifts all later rows, and with them all rounding errors.
    pool : skdp._kernels.threads.WorkerPool or None
        Threads. The result does not depend on them.

    Notes
    -----
    **Guarantees.** A row changes `vector` by at most `sensitivity`, including rounding within a block. A row with NaN
    or infinity does not change it. The Euclidean norm of `vector` is the Frobenius norm of the sums, up to a factor
    that depends on dtype and width.

    Proof. A symmetric matrix has as many degrees of freedom as its lower triangle. If the entries off the diagonal are
    multiplied by sqrt(2), the Euclidean norm of the triangle is the Frobenius norm of the matrix. In arithmetic with
    unit roundoff u, the error of a sum of b products in any order is at most u times the magnitudes of the products and
    of all computed partial sums (Higham 2002, 4.2). Tiles add the rows of a block in the same order for all entries, so
    partial sums are matrices. Their Frobenius norm is at most the number of their terms times 1 + gamma, gamma = b u /
    (1 - b u). Over all partial sums these numbers add up to at most b (b + 1) / 2 - 1. So the error of a block is at
    most u (b (b + 1) / 2 + b) (1 + gamma), and that of two neighboring blocks twice as large, relative to one row. A
    mapped row lies in the ball up to theta = 4 u + d 2**-52. `vector` is divided by `rounding`, which is (1 + the error
    of two blocks) times (1 + theta)**2, and `read` multiplies by it again. Blocks, and all rows of the sum of x, are
    added in
    float64; the noise covers this rounding (`skdp.mechanisms.GaussianMechanism`)."""

    def __init__(self, ball: UnitBall, weight: float, *, by_position: bool, pool: Any = None) -> None:
        d = len(ball.center)
        self.ball, self.weight = ball, weight
        self.n_rows = 0
        self._by_position, self._pool = by_position, pool
        self._triangle, self._total = np.zeros(d * (d + 1) // 2), np.zeros(d)  # the triangle row by row
        least, most = _CHUNK_ROWS
        self._chunk_rows = max(least, min(most, _CHUNK_VALUES // d // BLOCK_ROWS * BLOCK_ROWS))
        # Rectangles of the lower triangle, several for each thread: first and last row, first and last column.
        high = min(_RECTANGLE_ROWS, max(ROWS, -(-d // _SLICES // ROWS) * ROWS))
        self._rectangles = [
            (top, min(top + high, d), first, min(first + _RECTANGLE_COLUMNS, top + high, d))
            for top in range(0, d, high)
            for first in range(0, min(top + high, d), _RECTANGLE_COLUMNS)
        ]
        self._rooms: dict[type, np.ndarray] = {}

    def add(self, X: np.ndarray, weights: float = 1.0) -> None:
        """Add rows of shape (m, d) and any real dtype, with weight 1."""
        dtype = np.float32 if self._by_position and np.can_cast(X.dtype, np.float32) else np.float64
        d = len(self.ball.center)
        room = self._rooms.get(dtype, np.empty((0, 0)))
        step = self._chunk_rows
        if len(room) < min(len(X), step):  # zeros: tiles read beyond the edge, and other values can be slow to multiply
            room = np.zeros((min(len(X), step), room_for(d, dtype)), dtype)
        self._rooms[dtype] = room
        for start in range(0, len(X), step):
            block = X[start : start + step]
            rows, part = room[: len(block)], -(-len(block) // _SLICES)
            slices = [slice(top, top + part) for top in range(0, len(rows), part)]
            # Mapping a number takes as long as several multiplications.
            self._share(partial(self._bring_in, block, rows), slices, rows.size * 64)
            # Threads never write to the same sums, and each sum is computed in one order.
            self._share(partial(self._add_rectangle, rows), self._rectangles, len(rows) * len(self._triangle))
        self.n_rows += len(X)

    def clip(self) -> None:
        """Clip the sums over all rows of one group to the largest norm of a row's contribution.

        Sums of x x' remain positive semidefinite.
        """
        factor = clip_factor(self.rounding * self.vector, math.hypot(1.0, self.weight))
        self._triangle *= factor
        self._total *= factor

    def merge(self, other: MomentSum) -> None:
        """Add the sum over other rows, which has its own blocks."""
        self._triangle += other._triangle
        self._total += other._total
        self.n_rows += other.n_rows
        for dtype in other._rooms:
            self._rooms.setdefault(dtype, np.empty((0, 0)))

    def __getstate__(self) -> dict[str, Any]:
        # Buffers hold private rows, which are not pickled.
        return {**self.__dict__, "_rooms": {dtype: np.empty((0, 0)) for dtype in self._rooms}, "_pool": None}

    def _share(self, run: Callable[[Any], None], tasks: list[Any], size: int) -> None:
        if self._pool is None:
            for task in tasks:
                run(task)
        else:
            self._pool.share(run, tasks, size)

    def _bring_in(self, block: np.ndarray, rows: np.ndarray, part: slice) -> None:
        self.ball.bring_in(block[part], rows[part])

    def _add_rectangle(self, rows: np.ndarray, rectangle: tuple[int, int, int, int]) -> None:
        add_gram(rows, rectangle, self._triangle)
        top, bottom, first, _ = rectangle
        if self.weight and first == 0:
            add_rows(rows, top, bottom, self._total)

    @property
    def rounding(self) -> float:
        """Factor by which rounding can increase the contribution of a row. It depends only on dtype and width."""
        roundoff, b = 2.0**-24 if np.float32 in self._rooms else 2.0**-53, BLOCK_ROWS
        gamma = b * roundoff / (1.0 - b * roundoff)
        theta = 4.0 * roundoff + len(self.ball.center) * 2.0**-52
        return (1.0 + theta) ** 2 * (1.0 + 2.0 * roundoff * (b * (b + 1) / 2 + b) * (1.0 + gamma))

    @property
    def vector(self) -> np.ndarray:
        """Sums as a vector, which one row changes by at most `sensitivity`."""
        # Entries off the diagonal occur twice in the matrix, hence sqrt(2) in a norm of squares.
        triangle = self._triangle * (math.sqrt(2.0) / self.rounding)
        i = np.arange(len(self._total))
        triangle[i * (i + 3) // 2] /= math.sqrt(2.0)  # the diagonal of a triangle that is stored row by row
        if not self.weight:
            return triangle
        return np.concatenate([triangle, self._total * (self.weight / self.rounding)])

    def read(self, released: np.ndarray) -> Moments:
        """Convert a vector such as `vector`, exact or noisy, back to sums."""
        d = len(self.ball.center)
        gram, first = np.zeros((d, d)), 0
        for row in range(d):  # without a copy of the triangle, which can be large
            np.multiply(released[first : first + row + 1], self.rounding / math.sqrt(2.0), out=gram[row, : row + 1])
            first += row + 1
        gram[np.diag_indices(d)] *= math.sqrt(2.0)
        total = released[first:] * (self.rounding / self.weight) if self.weight else np.zeros(d)
        return Moments(gram, total)


@dataclass(frozen=True, eq=False)
class BallMoments:
    """Query (`skdp.mechanisms.bounded_sum`) of sums of x x' and x over rows mapped into a ball, without weights.

    Parameters
    ----------
    ball : UnitBall
    weight : float
        Weight of the sum of x; 0 to omit it.
    by_position : bool
        See `MomentSum`.
    """

    ball: UnitBall
    weight: float
    by_position: bool

    def sensitivity(self, adjacency: str) -> float:
        """Return that of `MomentSum.vector`."""
        return sensitivity(self.weight, adjacency)

    def new_sum(self, adjacency: str, pool: Any = None) -> MomentSum:
        """Return an empty sum."""
        return MomentSum(self.ball, self.weight, by_position=self.by_position, pool=pool)


class ProductQuery(Protocol):
    """Base class of queries (`skdp.mechanisms.bounded_sum`) for sums of z z' over vectors z in the unit ball.

    Notes
    -----
    **Guarantees.** `sensitivity` is the largest norm of a record's contribution, or half of the largest change if it is
    replaced.

    Proof. For rows it is the sensitivity of `MomentSum` without a sum of z. The sums of two groups are positive
    semidefinite with Frobenius norms of at most 1 (`skdp.mechanisms.bounded_sum.clip_groups`). Their inner product is
    not negative, so they differ by at most sqrt(2), like two rows.
    """

    by_position: bool

    @property
    def width(self) -> int:
        """Length of z."""

    def vectors(self, rows: Any, *targets: Any) -> np.ndarray:
        """Return z of each row, of shape (m, width)."""

    def sensitivity(self, adjacency: str) -> float:
        """Return that of `MomentSum.vector`."""
        return sensitivity(0.0, adjacency)

    def clip_weights(self, weights: Any, units: Any, rows: Any, *targets: Any) -> np.ndarray:
        """Return weights that bound the contribution of each group like that of a row."""

        def chosen_vectors(chosen: np.ndarray) -> np.ndarray:
            return np.asarray(self.vectors(rows[chosen], *[target[chosen] for target in targets]), np.float64)

        each = weight_of_each(weights, rows.shape[0])
        return clip_groups(units, each, 1.0, squares=squares_of_products(units, chosen_vectors, self.width, each))

    def new_sum(self, adjacency: str, pool: Any = None) -> ProductSum:
        """Return an empty sum."""
        return ProductSum(self, pool)


class ProductSum(MomentSum):
    """Sum of w z z' over the vectors z of a `ProductQuery`, with weights w."""

    def __init__(self, query: ProductQuery, pool: Any = None) -> None:
        super().__init__(UnitBall(np.zeros(query.width), 1.0), 0.0, by_position=query.by_position, pool=pool)
        self._query = query

    def add(self, rows: Any, *targets_and_weights: Any, units: Any = None) -> None:
        """Add rows, with targets if the query has any, and weights in [0, 1]. Groups must be complete."""
        *targets, weights = targets_and_weights or (1.0,)
        if units is not None:
            weights = self._query.clip_weights(weights, units, rows, *targets)
        roots = np.sqrt(weights) if isinstance(weights, np.ndarray) else None
        for start in range(0, rows.shape[0], _VECTOR_ROWS):
            part = slice(start, start + _VECTOR_ROWS)
            z = self._query.vectors(rows[part], *[target[part] for target in targets])
            if roots is not None:  # after clipping: z is in the unit ball
                z *= roots[part, None].astype(z.dtype)
            super().add(z)


FEW_COLUMNS = 1024
"""Largest number of columns for which a decomposition is fast on one thread."""

_FEW_OF = 50  # Lanczos is used for up to 1/50 of the eigenvectors


def about_mean(
    mean: np.ndarray, gram: np.ndarray, edge: float, k: int, *, and_above: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Project the mean on the leading eigenvectors of `gram`, and decompose ``gram - mean mean'``.

    Parameters
    ----------
    mean : ndarray of shape (d,)
        Mean, which is projected on the eigenvectors with eigenvalues above `edge`, at least `k`; unchanged if `k` is d.
    gram : ndarray of shape (d, d), C-ordered
        Lower triangle of a symmetric matrix; zeros above.
    edge : float
    k : int
        Number of eigenvalues.
    and_above : bool
        Whether to return all eigenvalues above `edge` if these are more than `k`.

    Returns
    -------
    mean : ndarray of shape (d,)
    values : ndarray of shape (at least k,)
        Largest eigenvalues, in decreasing order.
    vectors : ndarray of shape (d, at least k)
    """
    d = len(mean)
    if k == d:
        values, vectors = eigh(gram - np.outer(mean, mean), subset_by_index=(0, d - 1))
    elif not mean.any():
        values, vectors = leading(gram, k, edge if and_above else np.inf)
    else:
        mean, values, vectors = _leading_about_mean(mean, gram, edge, k)
        largest = np.argsort(values)[-max(k, int(np.count_nonzero(values > edge)) if and_above else 0) :]
        values, vectors = values[largest], vectors[:, largest]
    return mean, values[::-1], vectors[:, ::-1]


def _leading_about_mean(
    mean: np.ndarray, gram: np.ndarray, edge: float, k: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the projected mean, and at least k eigenvalues with vectors, including all above the edge.

    The projected mean m lies in the span S of leading eigenvectors V of `gram`. So ``gram - m m'`` has the eigenvectors
    of the small matrix ``V' gram V - (V'm)(V'm)'`` in S, and those of `gram` in its complement. If S has more than k
    dimensions, the k-th largest eigenvalue of the small matrix is at least the next one of `gram` in S, and exceeds all
    in the complement (interlacing; Golub & Van Loan 2013, theorem 8.1.8). If S has k dimensions, one eigenvalue can
    fall below the first in the complement, which is therefore computed, too.
    """
    values, vectors = leading(gram, k + 1, edge)
    first = 0 if values[0] > edge else 1  # the signal excludes the next one
    signal = vectors[:, first:]
    along = signal.T @ mean
    inner, turn = eigh(np.diag(values[first:]) - np.outer(along, along))
    values = np.append(values[:first], inner)
    return signal @ along, values, np.hstack([vectors[:, :first], signal @ turn])


def leading(gram: np.ndarray, least: int, above: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the `least` largest eigenvalues in increasing order, or all above a threshold if more; and vectors.

    LAPACK tridiagonalizes the matrix, which takes as long for one eigenvector as for half of them. The Lanczos method
    finds a few eigenvectors of a large matrix. Whether it converges depends only on the matrix, which is public.

    Parameters
    ----------
    gram : ndarray of shape (d, d), C-ordered
        Lower triangle of a symmetric matrix; zeros above.
    least : int
    above : float

    Returns
    -------
    values : ndarray of shape (at least `least`,)
    vectors : ndarray of shape (d, at least `least`)
    """
    d, n_known = len(gram), 0
    if d > FEW_COLUMNS and least <= d // _FEW_OF:
        # Hundreds of memory-bound products; underflow to 0 is harmless.
        with single_threaded_blas(), np.errstate(under="ignore"):
            found, n_known = _few_leading(gram, least, above)
        if found is not None:
            return found
    if n_known < least:
        values, vectors = eigh(gram, subset_by_index=(d - least, d - 1))
        if values[0] <= above:
            return values, vectors
    return eigh(gram, subset_by_value=(above, np.inf))


def _few_leading(gram: np.ndarray, least: int, above: float) -> tuple[tuple[np.ndarray, np.ndarray] | None, int]:
    """Return the result of `leading` by the Lanczos method, or None, and a lower bound of the number above.

    Each basis vector is orthogonalized twice against all earlier ones, so the eigenvalues are found once each (Parlett
    1998, 6.9 and 13.8). The error of each eigenvalue is at most the norm of its residual (theorem 4.5.1).
    """
    d = len(gram)
    most, n_above, look = 256 + d // 16, 0, 16  # enough steps for several eigenvectors of pure noise
    basis, diagonal, beside = np.empty((most + 1, d)), np.zeros(most), np.zeros(most)
    start = np.random.default_rng(0).random(d) - 0.5
    basis[0] = start / np.linalg.norm(start)
    for m in range(1, most + 1):
        rest = dsymv(1.0, gram.T, basis[m - 1])
        diagonal[m - 1] = basis[m - 1] @ rest
        for _ in range(2):
            rest -= (basis[:m] @ rest) @ basis[:m]
        beside[m - 1] = np.linalg.norm(rest)
        if m >= look or m == most:
            look = m + max(8, m // 8)
            values, turn = eigh_tridiagonal(diagonal[:m], beside[: m - 1])
            n_above = int(np.count_nonzero(values > above))
            n = max(least, n_above)
            if n < m and _are_found(values, beside[m - 1] * np.abs(turn[-1]), n, above):
                return (values[-n:], basis[:m].T @ turn[:, -n:]), n_above
        if not beside[m - 1] > 0.0:  # the basis spans an invariant subspace
            break
        basis[m] = rest / beside[m - 1]
    return None, n_above


def _are_found(values: np.ndarray, left: np.ndarray, n: int, above: float) -> bool:
    """Return whether the n largest values are exact up to rounding, and the next one is on its side of `above`."""
    exact = left[-n:] <= 2.0**-50 * np.abs(values).max()
    return bool(exact.all()) and (values[-n] <= above or values[-n - 1] + left[-n - 1] <= above)
