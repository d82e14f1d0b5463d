"""From noisy interactions to tables of probabilities: post-processing that uses the public size of the noise."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from skdp.mechanisms.bounded_sum import centered, onto_simplex
from skdp.synthesis.marginals.column_levels import Exclusion
from skdp.synthesis.marginals.contingency_tables import ColumnSet, Interaction, squared_norm

FIRST_BLOCK = 2
"""Directions of a column in the first block; each further one has twice as many."""
LARGEST_NOISE_OF_PAIRS, LEAST_PAIRS = 0.25, 2
"""Largest total variation distance due to noise, and smallest number of pairs per column, for main directions."""


class TargetTables(NamedTuple):
    """Tables that a model is fitted to, as probabilities.

    Attributes
    ----------
    ones : list of ndarray
        Probabilities of the levels of each column.
    pairs : dict of (int, int) to ndarray of shape (A_i, A_j)
    triples : dict of (int, int, int) to ndarray of shape (A_i, A_j, A_label)
    noisy : mapping of tuple of int to Interaction
        The interactions from which they are computed.
    """

    ones: list[np.ndarray]
    pairs: dict[ColumnSet, np.ndarray]
    triples: dict[ColumnSet, np.ndarray]
    noisy: Mapping[ColumnSet, Interaction] = {}


def targets_of(
    levels: Sequence[int], noisy: Mapping[ColumnSet, Interaction], exclusions: Sequence[Exclusion] = ()
) -> TargetTables:
    """Return consistent tables from noisy interactions.

    Probabilities of a column are projected onto the simplex. An interaction of two columns is released relative to
    uniform columns. Its difference from independence is shrunk, and so is that of three columns from conditional
    independence given the third: along the main directions of its columns in the other pairs, if these have little
    noise, otherwise by itself. Combinations of two columns that cannot occur become zero.
    """
    ones = [
        onto_simplex(1.0 / size + (noisy[(j,)].values if (j,) in noisy else np.zeros(size)))
        for j, size in enumerate(levels)
    ]
    pairs: dict[ColumnSet, np.ndarray] = {}
    triples: dict[ColumnSet, np.ndarray] = {}
    for columns, found in noisy.items():
        if len(columns) == 2:
            i, j = columns
            independent = np.outer(ones[i], ones[j])
            pairs[columns] = independent + shrunk_matrix(found.values - centered(independent), found.deviation)
    main = _MainDirections(ones, pairs) if _tell_directions(levels, noisy) else None
    if main is not None:
        pairs = {columns: main.pair(columns, noisy[columns]) for columns in pairs}
    for columns, found in noisy.items():
        if len(columns) == 3:
            triples[columns] = _triple(columns, found, ones, pairs, main)
    for each in exclusions:
        if each.columns in pairs or each.columns[::-1] in pairs:
            turned = each.columns not in pairs
            key, (first, second) = (each.columns[::-1], each.levels[::-1]) if turned else (each.columns, each.levels)
            pairs[key] = np.where(np.outer(first, second), 0.0, pairs[key])
    return TargetTables(ones, pairs, triples, noisy=dict(noisy))


def _tell_directions(levels: Sequence[int], noisy: Mapping[ColumnSet, Interaction]) -> bool:
    """Return whether there are many pairs with small noise, by its public size."""
    pairs = {columns: found for columns, found in noisy.items() if len(columns) == 2}
    if len(pairs) < LEAST_PAIRS * sum(size > 1 for size in levels):
        return False
    sizes = [
        found.values.size * found.deviation * math.sqrt(squared_norm(levels, columns))
        for columns, found in pairs.items()
    ]
    return 0.5 * math.sqrt(2.0 / math.pi) * float(np.mean(sizes)) <= LARGEST_NOISE_OF_PAIRS


class _MainDirections:
    """Directions of the levels of each column with the largest interactions, for shrinkage.

    Most of an interaction lies in few directions of each of its columns, and these are similar in all of its
    interactions. A pair is shrunk by those of the other pairs: in its own, its noise would look like a signal.
    """

    def __init__(self, ones: list[np.ndarray], pairs: Mapping[ColumnSet, np.ndarray]) -> None:
        self._ones = ones
        self._squares: list[dict[ColumnSet, np.ndarray]] = [{} for _ in ones]
        for columns, table in pairs.items():
            i, j = columns
            beyond = centered(table - np.outer(ones[i], ones[j]))
            self._squares[i][columns], self._squares[j][columns] = beyond @ beyond.T, beyond.T @ beyond
        self._of_all = [self._of_others(j, ()) for j in range(len(ones))]

    def _of_others(self, column: int, pair: ColumnSet) -> np.ndarray:
        """Return the directions of a column in all pairs but one."""
        size = len(self._ones[column])
        squares = (square for columns, square in self._squares[column].items() if columns != pair)
        return main_directions(sum(squares, start=np.zeros((size, size))))

    def pair(self, columns: ColumnSet, found: Interaction) -> np.ndarray:
        """Return the table of two columns."""
        i, j = columns
        independent = np.outer(self._ones[i], self._ones[j])
        others = [self._of_others(column, columns) for column in columns]
        return independent + shrunk_blocks(found.values - centered(independent), found.deviation, others)

    def shrunk(self, columns: ColumnSet, interaction: np.ndarray, deviation: float) -> np.ndarray:
        """Return an interaction that no direction is made of."""
        return shrunk_blocks(interaction, deviation, [self._of_all[column] for column in columns])


def _triple(
    columns: ColumnSet,
    found: Interaction,
    ones: list[np.ndarray],
    pairs: Mapping[ColumnSet, np.ndarray],
    main: _MainDirections | None,
) -> np.ndarray:
    """Return the table of two columns and the label: from its pairs, and the shrunk interaction of all three."""
    i, j, k = columns
    first, second, third = (len(ones[c]) for c in columns)
    both, with_i, with_j = pairs[(i, j)], pairs[(i, k)], pairs[(j, k)]
    of_pairs = (
        both[:, :, None] / third
        + with_i[:, None, :] / second
        + with_j[None, :, :] / first
        - ones[i][:, None, None] / (second * third)
        - ones[j][None, :, None] / (first * third)
        - ones[k][None, None, :] / (first * second)
        + 1.0 / (first * second * third)
    )
    given_label = with_i[:, None, :] * with_j[None, :, :] / np.maximum(ones[k], 1e-3)
    expected = centered(given_label)
    beyond = found.values - expected
    if main is None:
        return of_pairs + expected + shrunk(beyond, found.deviation)
    return of_pairs + expected + main.shrunk(columns, beyond, found.deviation)


def shrunk(interaction: np.ndarray, deviation: float) -> np.ndarray:
    """Return an interaction times the positive-part James-Stein factor, for noise of a public standard deviation.

    Centered noise has (A - 1)(B - 1)... degrees of freedom.
    """
    noise = deviation**2 * math.prod(size - 1 for size in interaction.shape)
    found = float((interaction**2).sum())
    return interaction * max(0.0, 1.0 - noise / found) if found > 0 else interaction


def shrunk_matrix(interaction: np.ndarray, deviation: float) -> np.ndarray:
    """Return an interaction of two columns with its singular values shrunk, for noise of a public deviation.

    The optimal shrinkage in squared error for a matrix of low rank in white noise, which centered noise is in the space
    of centered matrices (Gavish & Donoho 2017, "Optimal shrinkage of singular values", Frobenius loss). With one
    singular value it is James and Stein's factor that is taken.
    """
    sizes = [size - 1 for size in interaction.shape]
    if min(sizes) < 2 or deviation <= 0:
        return shrunk(interaction, deviation)
    shape = min(sizes) / max(sizes)
    scale = deviation * math.sqrt(max(sizes))
    left, values, right = np.linalg.svd(interaction, full_matrices=False)
    units = values / scale
    root = np.sqrt(np.maximum((units**2 - shape - 1.0) ** 2 - 4.0 * shape, 0.0))
    kept = np.where(units > 1.0 + math.sqrt(shape), root / np.maximum(units, 1.0), 0.0)
    return np.asarray((left * (kept * scale)) @ right)


def main_directions(square: np.ndarray) -> np.ndarray:
    """Return orthonormal directions in which a sum of squares of centered tables is largest, of shape (A - 1, A).

    They are an ordered basis of the vectors whose entries sum to zero.
    """
    size = len(square)
    centered_basis = np.linalg.qr(np.column_stack([np.ones(size), np.eye(size)[:, 1:]]))[0][:, 1:]
    _, vectors = np.linalg.eigh(centered_basis.T @ square @ centered_basis)
    return np.asarray((centered_basis @ vectors[:, ::-1]).T)


def shrunk_blocks(interaction: np.ndarray, deviation: float, directions: Sequence[np.ndarray]) -> np.ndarray:
    """Return an interaction that is shrunk block by block of ordered directions of its columns.

    White noise is white in any orthonormal directions, so each block has the factor of James and Stein for its own
    energy (block thresholding: Cai 1999, "Adaptive wavelet estimation: a block thresholding and oracle inequality
    approach"). `directions` are of shape (A_i - 1, A_i).
    """
    if deviation <= 0:
        return interaction
    kept = along(interaction, directions)
    for block in itertools.product(*(_blocks(len(each)) for each in directions)):
        part = kept[block]
        noise, energy = deviation**2 * part.size, float((part**2).sum())
        kept[block] = part * max(0.0, 1.0 - noise / energy) if energy > 0 else 0.0
    return along(kept, [each.T for each in directions])


def along(table: np.ndarray, directions: Sequence[np.ndarray]) -> np.ndarray:
    """Return a table with each axis multiplied by a matrix, of shape (new, old)."""
    for axis, matrix in enumerate(directions):
        table = np.moveaxis(np.tensordot(matrix, table, (1, axis)), 0, axis)
    return np.ascontiguousarray(table)


def _blocks(n_directions: int) -> list[slice]:
    """Return consecutive blocks, each of which has twice as many directions as the one before."""
    found, start, size = [], 0, FIRST_BLOCK
    while start < n_directions:
        found.append(slice(start, start + size))
        start, size = start + size, 2 * size
    return found
