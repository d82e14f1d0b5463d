"""From noisy interactions to tables of probabilities: post-processing by the public size of the noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from skdp._typing import Doubles
from skdp.synthesis.marginals.column_levels import Exclusion
from skdp.synthesis.marginals.contingency_tables import ColumnSet, Interaction, centred


class TargetTables(NamedTuple):
    """Tables that a model is fitted to, as shares of the rows.

    Attributes
    ----------
    ones : list of ndarray
        Probabilities of the levels of each column.
    pairs : dict of (int, int) to ndarray of shape (A_i, A_j)
    triples : dict of (int, int, int) to ndarray of shape (A_i, A_j, A_label)
    parities : tuple of tuple of int
        Columns whose parity is fitted too, the label among them.
    noisy : mapping of tuple of int to Interaction
        What they are made of.
    """

    ones: list[Doubles]
    pairs: dict[ColumnSet, Doubles]
    triples: dict[ColumnSet, Doubles]
    parities: tuple[ColumnSet, ...] = ()
    noisy: Mapping[ColumnSet, Interaction] = {}


def targets_of(
    levels: Sequence[int], noisy: Mapping[ColumnSet, Interaction], exclusions: Sequence[Exclusion] = ()
) -> TargetTables:
    """Return tables that agree with one another, from noisy interactions.

    Probabilities of a column are projected onto the simplex. An interaction of two columns is released relative to
    uniform columns. What it has beyond independent ones is shrunk, and so is that of three beyond the independence of
    two columns given the third. Combinations of two columns that cannot occur become zero.
    """
    ones = [
        onto_simplex(1.0 / size + (noisy[(j,)].values if (j,) in noisy else np.zeros(size)))
        for j, size in enumerate(levels)
    ]
    pairs: dict[ColumnSet, Doubles] = {}
    triples: dict[ColumnSet, Doubles] = {}
    for columns, found in noisy.items():
        if len(columns) == 2:
            i, j = columns
            independent = np.outer(ones[i], ones[j])
            pairs[columns] = independent + shrunk_matrix(found.values - centred(independent), found.deviation)
    for columns, found in noisy.items():
        if len(columns) == 3:
            triples[columns] = _triple(columns, found, ones, pairs)
    for each in exclusions:
        if each.columns in pairs or each.columns[::-1] in pairs:
            turned = each.columns not in pairs
            key, (first, second) = (each.columns[::-1], each.levels[::-1]) if turned else (each.columns, each.levels)
            pairs[key] = np.where(np.outer(first, second), 0.0, pairs[key])
    return TargetTables(ones, pairs, triples, noisy=dict(noisy))


def _triple(columns: ColumnSet, found: Interaction, ones: list[Doubles], pairs: Mapping[ColumnSet, Doubles]) -> Doubles:
    """Return the table of two columns and the label: what its pairs say, and the shrunk interaction of all three."""
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
    expected = centred(given_label)
    return of_pairs + expected + shrunk(found.values - expected, found.deviation)


def shrunk(interaction: Doubles, deviation: float) -> Doubles:
    """Return an interaction by the factor of James and Stein (positive part), for noise of a public deviation.

    Centred noise has (A - 1)(B - 1)... degrees of freedom.
    """
    noise = deviation**2 * math.prod(size - 1 for size in interaction.shape)
    found = float((interaction**2).sum())
    return interaction * max(0.0, 1.0 - noise / found) if found > 0 else interaction


def shrunk_matrix(interaction: Doubles, deviation: float) -> Doubles:
    """Return an interaction of two columns with its singular values shrunk, for noise of a public deviation.

    The optimal shrinkage in squared error for a matrix of low rank in white noise, which centred noise is in the space
    of centred matrices (Gavish & Donoho 2017, "Optimal shrinkage of singular values", Frobenius loss). With one
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


def onto_simplex(values: Doubles) -> Doubles:
    """Return the nearest probabilities in Euclidean distance (Held, Wolfe & Crowder 1974)."""
    ordered = np.sort(values)[::-1]
    excess = np.cumsum(ordered) - 1.0
    k = int(np.nonzero(ordered * np.arange(1, len(values) + 1) > excess)[0][-1])
    return np.maximum(values - excess[k] / (k + 1), 0.0)


__all__ = ["TargetTables", "onto_simplex", "shrunk", "shrunk_matrix", "targets_of"]
