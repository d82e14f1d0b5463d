"""What many columns tell only together: parities of the halves of their levels, and what the label has to do with them.

The levels of each column are cut into two halves. The parity of some columns is the product of their signs, 1 for the
one half and -1 for the other. A table of the label by four or five columns has too many cells for its noise; their
parity is one number a class, and there are few enough sets of columns to release those of all together.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from skdp._typing import Doubles
from skdp.synthesis.marginals.contingency_tables import cells_of

MOST_HALVES = 1 << 22
"""Halves of all columns by the label: the largest table from which parities are counted."""
LARGEST_ORDER = 6
"""Most columns of a parity, the label among them."""
LEAST_PARITY = 0.35
"""Parities are worth their noise where one would be seen that is further from what is expected, as a share of rows."""
MOST_PARITIES = 64
"""Those furthest from what is expected that a model is fitted to."""
FALSE_ALARMS = 1e-3
"""Probability that one is taken for more than noise in a fit where all are as expected."""

_ROWS = 1 << 16

ParitySets = tuple[NDArray[np.intp], ...]
"""Positions of columns, ascending, of shape (n_sets, size): sets of one size in one array."""


class Parities(NamedTuple):
    """Parities that a model is fitted to.

    Attributes
    ----------
    signs : tuple of ndarray of shape (A_j,)
        The half of each level of each column but the label, 1 or -1.
    sets : list of tuple of int
        Positions of their columns.
    values : ndarray of shape (n_sets, n_classes)
        As shares of the rows, centred over the classes if there are any.
    """

    signs: tuple[Doubles, ...]
    sets: list[tuple[int, ...]]
    values: Doubles


class ParitySums(NamedTuple):
    """Parities that are released together.

    Attributes
    ----------
    signs : tuple of ndarray of shape (A_j,)
        The half of each level of each column but the label, 1 or -1.
    sets : tuple of ndarray of shape (n_sets, size)
        Positions of columns.
    n_classes : int
        Classes of the label, the last column; 1 if there is none.
    with_total : bool
        Whether the sum of the weights of rows comes first.

    Notes
    -----
    **Guarantees.** A row changes `vector` by at most `sensitivity` in Euclidean norm.

    Proof. For each of M sets a row adds its parity, 1 or -1, times the unit vector of its class, centred over the C
    classes, which has a squared norm of 1 - 1 / C; without classes it adds its parity alone, of norm 1. With the total
    it adds 1 more. So all that it adds has a squared norm of M (1 - 1 / C), or M, and that one, whatever its levels.
    What two rows add differs by at most twice as much, and the price under ``replace_one`` is for twice the
    sensitivity. A row of weight v in [0, 1] adds v times as much, and one of weight 0 nothing. So rows whose weights
    sum to c add c times as much at most.

    Counts are whole numbers below 2**53, or multiples of 2**-24 below 2**29, so their sums and differences are exact.
    Centring is rounded in float64, for which the noise has room.
    """

    signs: tuple[Doubles, ...]
    sets: ParitySets
    n_classes: int
    with_total: bool = False

    def sensitivity(self) -> float:
        """Return the largest norm of what one row adds; half of the largest change under ``replace_one``."""
        return math.sqrt(_n_sets(self.sets) * _squared_norm(self.n_classes) + self.with_total)

    def vector(self, codes: Sequence[NDArray[np.int32]], shares: Doubles | None = None) -> Doubles:
        """Return the parities of all sets, by class; `shares` are weights of rows in [0, 1]."""
        d = len(self.signs)
        counts = self._counts(codes, shares)
        parities = walsh(counts.reshape([2] * d + [self.n_classes])).reshape(-1, self.n_classes)
        places = np.concatenate([(1 << (d - 1 - each)).sum(axis=1) for each in self.sets])
        found = _centred(parities[places]).ravel()
        return np.concatenate([[counts.sum()], found]) if self.with_total else found

    def _counts(self, codes: Sequence[NDArray[np.int32]], shares: Doubles | None) -> Doubles:
        """Return how many rows have each combination of halves, and of the class."""
        d = len(self.signs)
        halves = [(signs < 0).astype(np.int32) for signs in self.signs]
        levels = [2] * d + [self.n_classes] * (len(codes) - d)
        counts = np.zeros(math.prod(levels))
        for start in range(0, len(codes[0]), _ROWS):
            part = slice(start, start + _ROWS)
            bits = [half[column[part]] for half, column in zip(halves, codes, strict=False)]
            cells = cells_of([*bits, *(column[part] for column in codes[d:])], tuple(range(len(codes))), levels)
            counts += np.bincount(cells, None if shares is None else shares[part], minlength=len(counts))
        return counts

    def expected(self, columns: Sequence[Doubles]) -> Doubles:
        """Return the parities of a mixture of equal components, as shares of the rows, of shape (n_sets, n_classes).

        `columns` are the probabilities of the levels in each component.
        """
        signs = np.column_stack([shares @ of_one for shares, of_one in zip(columns, self.signs, strict=False)])
        classes = _centred(columns[-1]) if self.n_classes > 1 else np.ones((len(signs), 1))
        found = []
        for each in self.sets:
            products = signs[:, each[:, 0]]
            for column in each.T[1:]:
                products = products * signs[:, column]
            found.append(products.T @ classes / len(signs))
        return np.concatenate(found)

    def unexpected(self, released: Doubles, n: float, deviation: float, expected: Doubles) -> Parities:
        """Return the parities that are further from those expected than noise and chance would be, the furthest first.

        Chance is that of n rows which are drawn independently: each adds 1 / C to the variance in each dimension.
        `deviation` is that of the noise, and `n` the sum of the weights of rows, unless the total was released.
        """
        if self.with_total:
            n, released = min(max(float(released[0]), deviation, 1.0), n), released[1:]
        noisy = _centred(released.reshape(expected.shape)) / n
        lengths = np.sqrt(((noisy - expected) ** 2).sum(axis=1))
        chance = 1.0 / math.sqrt(self.n_classes * n)
        limit = math.hypot(deviation / n, chance) * _largest_noise(len(lengths), self.n_classes)
        order = np.argsort(-lengths, kind="stable")[: min(MOST_PARITIES, int((lengths > limit).sum()))]
        listed = [tuple(each) for group in self.sets for each in group.tolist()]
        return Parities(self.signs, [listed[k] for k in order], noisy[order])


def parity_sets(levels: Sequence[int], n_classes: int, least: int) -> list[NDArray[np.intp]]:
    """Return the sets of columns of two levels or more, of `least` columns and more; none where there are too many."""
    columns = [j for j, size in enumerate(levels) if size > 1]
    if len(levels) > math.log2(MOST_HALVES / n_classes):
        return []
    sizes = range(least, LARGEST_ORDER + (n_classes == 1))
    found = [np.array(list(itertools.combinations(columns, size)), np.intp) for size in sizes if size <= len(columns)]
    return found


def worth_their_noise(sets: Sequence[NDArray[np.intp]], n_classes: int, noise: float) -> ParitySets:
    """Return the sets of the smaller sizes, as long as a parity would be seen in their noise, by public numbers.

    `noise` is the standard deviation of a release of sensitivity one, relative to the number of rows.
    """
    for k in range(len(sets), 0, -1):
        n_sets = _n_sets(sets[:k])
        if noise * math.sqrt(n_sets * _squared_norm(n_classes)) * _largest_noise(n_sets, n_classes) <= LEAST_PARITY:
            return tuple(sets[:k])
    return ()


def halves_of(ones: Sequence[Doubles]) -> tuple[Doubles, ...]:
    """Return signs of the levels of each column, cut in their order where the noisy share is nearest to a half."""
    cuts = [int(np.abs(np.cumsum(one)[:-1] - 0.5).argmin()) if len(one) > 1 else 0 for one in ones]
    return tuple(np.where(np.arange(len(one)) <= cut, 1.0, -1.0) for one, cut in zip(ones, cuts, strict=True))


def walsh(table: Doubles) -> Doubles:
    """Return the sum and the difference along every axis but the last, each of which has two entries."""
    for axis in range(table.ndim - 1):
        first, second = np.split(table, 2, axis=axis)
        table = np.concatenate([first + second, first - second], axis=axis)
    return table


def _centred(values: Doubles) -> Doubles:
    return values - values.mean(axis=1, keepdims=True) if values.shape[1] > 1 else values


def _n_sets(sets: Sequence[NDArray[np.intp]]) -> int:
    return sum(map(len, sets))


def _squared_norm(n_classes: int) -> float:
    return 1.0 - 1.0 / n_classes if n_classes > 1 else 1.0


def _largest_noise(n_sets: int, n_classes: int) -> float:
    """Return a length that none of so many noises has, in deviations, but for `FALSE_ALARMS`."""
    return float(stats.chi.isf(FALSE_ALARMS / n_sets, max(n_classes - 1, 1)))


__all__ = [
    "LARGEST_ORDER",
    "MOST_HALVES",
    "Parities",
    "ParitySets",
    "ParitySums",
    "halves_of",
    "parity_sets",
    "walsh",
    "worth_their_noise",
]
