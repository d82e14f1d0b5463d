"""Second moments of rows in the unit ball, as one vector that a mechanism can release."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from skdp._blas import single_threaded_blas
from skdp._kernels.gram import add_lower_triangle, rows_into_ball

Doubles = NDArray[np.float64]

BLOCK_ROWS: dict[type, int] = {np.float32: 512, np.float64: 2048}
"""Rows of one product. More rows need more noise for rounding in float32 (here 1.6 %); fewer rows take longer."""

_MAX_PARTS = 8
_MAX_PART_VALUES = 1 << 22  # numbers in the sums of all parts
_BLOCKS_AT_ONCE = 256  # of all parts: an interrupt waits for no more


class Sharing(Protocol):
    """Threads that share tasks, such as `skdp._training.threads.Crew`."""

    def share(self, run: Callable[[Any], None], tasks: Iterable[Any], size: int) -> None:
        """Call `run` with each of the tasks, of `size` multiplications in all."""


def mean_weight(share: float) -> float:
    """Return the factor w of the sum of rows for which a row in the unit ball spends `share` of mu**2 on that sum."""
    return math.sqrt(share / (1.0 - share))


def sensitivity(weight: float, adjacency: str) -> float:
    """Return the largest norm of what one row of the unit ball adds to (sum of x x', weight * sum of x).

    The norm is Euclidean (Frobenius). ``replace_one`` is priced at twice the result, which is therefore half the
    diameter of the set of such vectors. The proofs are in the notes of `skdp.decomposition.DPPCA`; the one for
    ``replace_one`` requires weight**2 <= 2.
    """
    if adjacency == "replace_one":
        return (1.0 + weight**2 / 2.0) / math.sqrt(2.0)
    return math.sqrt(1.0 + weight**2)


class UnitBall(NamedTuple):
    """Map of rows into the unit ball: ``(x - center) / max(radius, |x - center|)``, zero if that norm is not finite.

    Parameters
    ----------
    center : ndarray of shape (d,), float64
        Public.
    radius : float
        Public. If 0, every row except zero is scaled to norm 1.
    """

    center: Doubles
    radius: float

    def bring_in(self, X: NDArray[Any], rows: NDArray[np.floating]) -> None:
        """Write the rows of X to `rows`, a C-ordered array of float32 or float64."""
        if X.dtype != rows.dtype or not (X.flags.c_contiguous and X.flags.writeable):  # compiled for few types
            np.copyto(rows, X)
            X = rows
        rows_into_ball(np.asarray(X), self.center.astype(rows.dtype), self.radius, rows)


class Moments(NamedTuple):
    """Lower triangle of a sum of x x', of shape (d, d), and sum of x, of shape (d,)."""

    gram: Doubles
    total: Doubles


class _Part(NamedTuple):
    """Lower triangle of a sum of x x', packed row by row, and sum of x."""

    triangle: Doubles
    total: Doubles


class MomentSum:
    """Sum of x x' and weighted sum of x over rows mapped into a ball, computed block by block.

    Parameters
    ----------
    ball : UnitBall
        Map of rows into the unit ball.
    weight : float
        Weight w of the sum of x. If 0, that sum is left out.
    by_position : bool
        Whether all other rows of a neighbour keep their places (zero_out, replace_one). float32 rows may then be
        multiplied in float32. Under add_remove a row that leaves shifts all following rows, and all rounding errors.
    crew : Sharing or None
        Threads that share the blocks. The result does not depend on them.

    Notes
    -----
    **Guarantees.** A row changes `isometric` by at most `sensitivity`, rounding within a block included, and not at all
    if it holds NaN or infinity. The Euclidean norm of `isometric`, but for a factor that depends on dtype and width, is
    the Frobenius norm of the sums.

    Proof. A symmetric matrix has as many degrees of freedom as its lower triangle. With the entries off the diagonal
    multiplied by sqrt(2), the Euclidean norm of the triangle is the Frobenius norm of the matrix. In arithmetic of unit
    roundoff u the error of a sum of b products is, for any order of its terms, at most u times the magnitudes of the
    products and of all partial sums as computed (Higham 2002, 4.2). BLAS adds the rows of a block in one order for all
    entries, so partial sums are matrices. Their Frobenius norm is at most the number of their terms, times 1 + gamma
    for their own errors, gamma = b u / (1 - b u). Over all partial sums these numbers add up to at most
    b (b + 1) / 2 - 1. So the error of a block is at most u (b (b + 1) / 2 + b) (1 + gamma), and that of two
    neighbouring blocks twice that, relative to one row; likewise for the sum of x. A row mapped into the ball lies in
    it up to theta = 4 u + d 2**-52. `isometric` is divided by `rounding`, which is (1 + the error of two blocks) times
    (1 + theta)**2, and `moments` multiplies by it again. Blocks are added in float64, whose rounding is not in the
    price (``docs/pitfalls.md``).
    """

    def __init__(self, ball: UnitBall, weight: float, *, by_position: bool, crew: Sharing | None = None) -> None:
        d = len(ball.center)
        self.ball, self.weight = ball, weight
        self.n_rows = 0
        self._by_position, self._crew = by_position, crew
        # Threads never write to the same sums. The parts follow from public sizes, so threads change no bit.
        triangle = d * (d + 1) // 2
        self._parts = [_Part(np.zeros(triangle), np.zeros(d)) for _ in range(_n_parts(triangle))]
        self._scratch: dict[type, list[tuple[Any, Any]]] = {}

    def add(self, X: NDArray[Any]) -> None:
        """Add rows, of shape (m, d) and any real dtype."""
        dtype = np.float32 if self._by_position and np.can_cast(X.dtype, np.float32) else np.float64
        step = BLOCK_ROWS[dtype]
        scratch = self._scratch.setdefault(dtype, [])
        for start in range(0, len(X), step * _BLOCKS_AT_ONCE):
            rows = X[start : start + step * _BLOCKS_AT_ONCE]
            spans = _spans(len(rows), step, len(self._parts))

            def add_span(number: int, rows: NDArray[Any] = rows, spans: list[tuple[int, int]] = spans) -> None:
                room = scratch.pop() if scratch else self._room(dtype)
                for block in range(*spans[number], step):
                    stop = min(block + step, spans[number][1])
                    self._add_block(rows[block:stop], room, self._parts[number])
                scratch.append(room)

            self._share(add_span, len(spans), rows.size * rows.shape[1])
        self.n_rows += len(X)

    def merge(self, other: MomentSum) -> None:
        """Add the sum over other rows, whose blocks are not those of this one."""
        for mine, its in zip(self._parts, other._parts, strict=True):
            mine.triangle[:] += its.triangle
            mine.total[:] += its.total
        self.n_rows += other.n_rows
        for dtype in other._scratch:
            self._scratch.setdefault(dtype, [])

    def __getstate__(self) -> dict[str, Any]:
        # Buffers hold rows, which nobody is sent.
        return {**self.__dict__, "_scratch": {dtype: [] for dtype in self._scratch}, "_crew": None}

    def _share(self, add_span: Callable[[int], None], n_spans: int, size: int) -> None:
        if self._crew is None or n_spans < _MAX_PARTS:
            for number in range(n_spans):
                add_span(number)
            return
        with single_threaded_blas():
            self._crew.share(add_span, range(n_spans), size)

    def _room(self, dtype: type) -> tuple[Any, Any]:
        """Room for the rows of a block and for their product."""
        d = len(self.ball.center)
        return np.empty((BLOCK_ROWS[dtype], d), dtype), np.empty((d, d), dtype)

    def _add_block(self, block: NDArray[Any], room: tuple[Any, Any], part: _Part) -> None:
        rows, product = room[0][: len(block)], room[1]
        self.ball.bring_in(block, rows)
        np.matmul(rows.T, rows, out=product)  # by SYRK, as NumPy sees that the factors are one array
        add_lower_triangle(product, part.triangle)
        if self.weight:
            part.total[:] += rows.sum(axis=0)

    def _sum_of_parts(self) -> _Part:
        """The sums over all parts, in their order."""
        triangle, total = self._parts[0].triangle.copy(), self._parts[0].total.copy()
        for part in self._parts[1:]:
            triangle += part.triangle
            total += part.total
        return _Part(triangle, total)

    @property
    def rounding(self) -> float:
        """Factor by which rounding may lengthen what a row changes. It depends on dtype and width only."""
        dtype = np.float32 if np.float32 in self._scratch else np.float64
        roundoff, b = 2.0**-24 if dtype is np.float32 else 2.0**-53, BLOCK_ROWS[dtype]
        gamma = b * roundoff / (1.0 - b * roundoff)
        theta = 4.0 * roundoff + len(self.ball.center) * 2.0**-52
        return (1.0 + theta) ** 2 * (1.0 + 2.0 * roundoff * (b * (b + 1) / 2 + b) * (1.0 + gamma))

    @property
    def isometric(self) -> Doubles:
        """The sums as a vector, which one row changes by at most `sensitivity`."""
        # Entries off the diagonal occur twice in the matrix, hence sqrt(2) in a norm of squares.
        triangle, total = self._sum_of_parts()
        triangle *= math.sqrt(2.0) / self.rounding
        triangle[_diagonal(len(total))] /= math.sqrt(2.0)
        if not self.weight:
            return triangle
        return np.concatenate([triangle, total * (self.weight / self.rounding)])

    def moments(self, released: Doubles) -> Moments:
        """Convert a vector such as `isometric`, exact or noisy, back to sums."""
        d = len(self.ball.center)
        triangle = released[: d * (d + 1) // 2] * (self.rounding / math.sqrt(2.0))
        triangle[_diagonal(d)] *= math.sqrt(2.0)
        gram = np.zeros((d, d))
        gram[np.tri(d, dtype=bool)] = triangle
        total = released[len(triangle) :] * (self.rounding / self.weight) if self.weight else np.zeros(d)
        return Moments(gram, total)


def _n_parts(size: int) -> int:
    """Number of parts into which sums of `size` numbers are split."""
    return max(1, min(_MAX_PARTS, _MAX_PART_VALUES // size))


def _spans(n: int, step: int, n_parts: int) -> list[tuple[int, int]]:
    """Cut n rows, in blocks of `step`, into spans for the parts: one if there are few blocks."""
    n_blocks = -(-n // step)
    n_spans = n_parts if n_blocks >= 2 * n_parts else 1
    ends = [n_blocks * number // n_spans * step for number in range(n_spans)] + [n]
    return list(pairwise(ends))


def _diagonal(d: int) -> NDArray[np.int64]:
    """Return the positions of the diagonal of a (d, d) matrix in its lower triangle, stored row by row."""
    i = np.arange(d)
    return i * (i + 3) // 2
