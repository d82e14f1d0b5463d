"""Rows that repeat: equal rows, targets and weights are found in one pass before the first step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp._dpsgd.models.linear import Model
from skdp._dpsgd.models.one_hot import OneHotRows
from skdp._kernels import grouping as kernel
from skdp.mechanisms.sampling import Sampling
from skdp.mechanisms.streams import SecretStream

_ROWS_A_GROUP = 8  # of a lot
_WORDS_READ = 1 << 25
_WORDS, _ROWS = 1 << 16, 4096  # of a block, which stays in cache

_WordRows = NDArray[np.uint32]


class Groups(NamedTuple):
    """Groups of equal rows: the number of the first row of each, ascending, and how many rows it represents."""

    first: NDArray[np.int64]
    copies: NDArray[np.int64]


def most_groups(lot_size: float, n_rows: int, n_read: int, width: float) -> float:
    """Most groups among the first `n_read` rows of a table, of this many words on average.

    An eighth of a lot, and of the rows that were read, or would be by 2**25 words: where hardly a row repeats, the
    search reads no more than that.
    """
    if lot_size == math.inf:
        return math.inf
    judged = max(n_read, min(n_rows, _WORDS_READ / width))
    return min(lot_size, judged) / _ROWS_A_GROUP


def find_groups(rows: Any, values: Any, weights: Any, lot_size: float) -> Groups | None:
    """Find the groups of rows that are equal in every bit, target and weight included.

    Parameters
    ----------
    rows : ndarray, CSR matrix or OneHotRows of n rows
        In CSR matrices indices count in their order, and stored zeros count.
    values : ndarray of shape (n,) or (n, n_outputs)
        Targets.
    weights : ndarray of shape (n,), or float
    lot_size : float
        Expected rows of a lot, infinity for no limit.

    Returns
    -------
    Groups or None
        None if there are more groups than `most_groups`.

    Notes
    -----
    The time is linear in the entries of the rows that are read. Beside a block of rows, what is in memory are the
    distinct rows. The keys of the hash are drawn from the operating system, so that not even who knows the seed of a
    run can choose rows that share a bucket. The groups do not depend on the keys.
    """
    blocks, longest = _blocks(rows, _tails(values, weights))
    keys = SecretStream.from_random_state(None, "keys of a hash").words(longest + 1)
    state = _Found(keys, np.int32 if len(values) < 2**31 else np.int64)
    n_read = 0
    for packed, ends in blocks:
        state.add(packed, ends, n_read)
        n_read += len(ends) - 1
        if state.n_groups > most_groups(lot_size, len(values), n_read, ends[-1] / (len(ends) - 1)):
            return None
    return Groups(state.first[: state.n_groups].copy(), state.copies[: state.n_groups].copy())


def taken(rows: Any, numbers: NDArray[np.int64], dtype: Any) -> Any:
    """Return some of the rows, as rows of this dtype."""
    if isinstance(rows, OneHotRows):
        return OneHotRows(rows.blocks, np.ascontiguousarray(rows.codes[:, numbers]), rows.n_features)
    return rows[numbers].astype(dtype, copy=False)


class _Found:
    """The groups so far, in arrays that grow; `numbers` is a dtype for numbers of groups."""

    def __init__(self, keys: NDArray[np.uint64], numbers: Any) -> None:
        self._keys, self.n_groups = keys, 0
        self.first, self.copies = np.empty(0, np.int64), np.empty(0, np.int64)
        self._hashes, self._kept = np.empty(0, np.uint32), np.empty(0, np.uint32)
        self._kept_ends = np.zeros(1, np.int64)
        self._heads, self._following = np.full(1024, -1, numbers), np.empty(0, numbers)

    def add(self, packed: _WordRows, ends: NDArray[np.int64], first_row: int) -> None:
        """Add a block of rows, of which the first is number `first_row` of the table."""
        m = len(ends) - 1
        room = self.n_groups + m
        self.first, self.copies, self._following, self._hashes = (
            _grown(each, self.n_groups, room) for each in (self.first, self.copies, self._following, self._hashes)
        )
        self._kept_ends = _grown(self._kept_ends, self.n_groups + 1, room + 1)
        kept = int(self._kept_ends[self.n_groups])
        self._kept = _grown(self._kept, kept, kept + int(ends[-1]))
        hashes = np.empty(m, np.uint32)
        kernel.hash_rows(packed, ends, self._keys, hashes)
        self.n_groups = kernel.add_rows(
            packed, ends, hashes, first_row, self.n_groups, self._heads, self._following, self._hashes, self._kept,
            self._kept_ends, self.first, self.copies,
        )  # fmt: skip
        if 2 * self.n_groups > len(self._heads):
            self._heads = np.empty(1 << (4 * self.n_groups).bit_length(), self._heads.dtype)
            kernel.chain(self._heads, self._following, self._hashes[: self.n_groups])


def _grown(values: np.ndarray, used: int, room: int) -> np.ndarray:
    """Return an array with the values that are used and room for more: twice as large where it has to grow."""
    if room <= len(values):
        return values
    larger = np.empty(max(room, 2 * len(values)), values.dtype)
    larger[:used] = values[:used]
    return larger


def _as_words(values: np.ndarray) -> _WordRows:
    """View numbers of 4 or 8 bytes, a row each, as words."""
    width = math.prod(values.shape[1:]) * values.itemsize // 4  # named, as there may be no numbers to tell it from
    return np.ascontiguousarray(values).ravel().view(np.uint32).reshape(len(values), width)


def _tails(values: np.ndarray, weights: Any) -> list[_WordRows]:
    """_WordRows of targets and weights; one weight for all rows distinguishes none."""
    return [_as_words(each) for each in (values, weights) if isinstance(each, np.ndarray) and each.ndim]


def _blocks(rows: Any, tails: list[_WordRows]) -> tuple[Iterator[tuple[_WordRows, NDArray[np.int64]]], int]:
    """Return the rows as blocks of words, with where each row starts and ends, and the number of words of the longest.

    A block is valid until the next one is drawn.
    """
    if isinstance(rows, OneHotRows):
        return _word_blocks(rows.codes, tails)
    if isinstance(rows, np.ndarray):
        return _word_blocks(None, [_as_words(rows), *tails])
    return _sparse_blocks(rows, np.hstack(tails) if len(tails) > 1 else tails[0])


def _word_blocks(codes: Any, parts: list[_WordRows]) -> tuple[Iterator[tuple[_WordRows, NDArray[np.int64]]], int]:
    """Return blocks of the codes of rows, if there are any, and of words behind them."""
    n_words = 0 if codes is None else -(-len(codes) * codes.itemsize // 4)  # the rest of the last one is 0
    n, width = len(parts[0]), n_words + sum(part.shape[1] for part in parts)

    def blocks() -> Iterator[tuple[_WordRows, NDArray[np.int64]]]:
        room = np.zeros((_block_rows(width), width), np.uint32)
        for start in range(0, n, len(room)):
            block, place = room[: n - start], n_words
            if codes is not None:
                block.view(codes.dtype)[:, : len(codes)] = codes[:, start : start + len(block)].T
            for part in parts:
                block[:, place : place + part.shape[1]] = part[start : start + len(block)]
                place += part.shape[1]
            yield block.ravel(), np.arange(0, block.size + 1, width)

    return blocks(), width


def _sparse_blocks(X: Any, tails: _WordRows) -> tuple[Iterator[tuple[_WordRows, NDArray[np.int64]]], int]:
    data, indices = _as_words(X.data), _as_words(X.indices)
    of_entry = data.shape[1] + indices.shape[1]
    longest = int(np.diff(X.indptr).max(initial=0)) * of_entry + 1 + tails.shape[1]
    step = _block_rows(longest)

    def blocks() -> Iterator[tuple[_WordRows, NDArray[np.int64]]]:
        for start in range(0, len(tails), step):
            tail = tails[start : start + step]
            n_entries = int(X.indptr[start + len(tail)] - X.indptr[start])
            packed = np.empty(n_entries * of_entry + len(tail) * (1 + tails.shape[1]), np.uint32)
            ends = np.empty(len(tail) + 1, np.int64)
            kernel.pack_sparse(data, indices, X.indptr, start, tail, packed, ends)
            yield packed, ends

    return blocks(), longest


def _block_rows(width: int) -> int:
    return max(1, min(_ROWS, _WORDS // width))


# --- models of rows that repeat ---

_Counts = NDArray[np.float64]


class GroupedModel(Model):
    """A model of distinct rows, and how often each occurs.

    A lot is the numbers of the distinct rows in it, None for all of them, and how many copies of each it holds.

    Parameters
    ----------
    make : callable
        Makes the model of the distinct rows, with float64 sums (see below), of rows, targets and weights.
    groups : Groups
    rows : ndarray, CSR matrix or OneHotRows
        The distinct rows.
    values, weights : ndarray
        Targets and weights of all rows.

    Notes
    -----
    **Guarantees.** Up to rounding, a step has the very distribution that it has on all rows.

    Proof. Poisson sampling draws each of the m copies of a row independently with probability q, so that the number of
    copies in a lot is Binomial(m, q), independently of other rows (`skdp._kernels.bits` for how exactly). The sum
    of clipped gradients depends on the lot through these numbers alone. In a full batch they are the m themselves.
    Number of rows and divisor are those of all rows. So a row changes the sum by at most C: a table with one copy less
    of a row has a lot with at most one copy less.

    Rounding. Counts multiply clipped gradients in float64, as do sums. With m copies of a row, its clipped gradient g,
    of norm at most C, enters as m g, within 2 u m C for u = 2**-53. So the products for m and for m - 1 copies differ
    by at most C (1 + 4 m u), which for 10**9 copies is C (1 + 5e-7). A sum over k groups of n rows has k - 1 additions,
    each wrong by at most u n C: less than the n - 1 of the sum over all rows. For this, g must not depend on which
    other rows there are but by float64 rounding, since all m copies repeat its error: models in float32 whose products
    depend on the place of a row are grouped in float64.
    """

    def __init__(
        self, make: Callable[[Any, Any, Any], Any], groups: Groups, rows: Any, values: np.ndarray, weights: Any
    ) -> None:
        weights = weights[groups.first] if isinstance(weights, np.ndarray) else weights
        self._model, self._copies = make(rows, values[groups.first], weights), groups.copies
        self.n_rows = int(groups.copies.sum())
        self._sampling: Sampling | None = None
        self._draw: Callable[[SecretStream], _Counts]

    def draw_lot(self, sampling: Sampling, stream: SecretStream, step: int) -> tuple[NDArray[np.int64] | None, _Counts]:
        """See `Model`. A stream of the step has all draws: how many there are would tell of the rows."""
        if sampling != self._sampling:
            self._sampling, self._draw = sampling, sampling.counter(self._copies)
        counts = self._draw(stream.spawn("step", step))
        if sampling.rate == 1.0:
            return None, counts
        rows = np.flatnonzero(counts)
        return rows, counts[rows]

    def clipped_gradient_sum(self, theta: np.ndarray, rows: Any, max_norm: float) -> NDArray[np.float64]:
        """See `Model`; `rows` is what `draw_lot` returns."""
        numbers, counts = rows
        found: NDArray[np.float64] = self._model.clipped_gradient_sum(
            theta.astype(np.float64, copy=False), numbers, max_norm, counts
        )
        return found

    def close(self) -> None:
        self._model.close()
