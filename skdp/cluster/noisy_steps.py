"""NoisyVector steps of Lloyd's algorithm."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from skdp.cluster.rows import NoisyVector, SharedNoise, WeightedRows, counts_by_group, nearest, sums_by_group, within

STEP_RADIUS = 2.0
"""Root mean squared distances from its center at which the offset of a row is clipped."""

_LEAST_SQUARE = 2.0**-4
"""Of the mean squared distance in radii, so that a radius falls to half of it at most in one step."""

_ROWS = 8192


class Clusters(NamedTuple):
    """Centers in the cube, noisy counts of the rows nearest to each, and the sum of their squared distances."""

    centers: np.ndarray
    counts: np.ndarray
    inertia: float


class StepParts(NamedTuple):
    """Parts of the mu**2 of a step: counts of the clusters, sums of offsets, and the sum of squared distances."""

    counts: float
    sums: float
    squares: float


def step_parts(adjacency: str) -> StepParts:
    """Parts that add up to 1. Under ``replace_one`` counts and squares are free, see `step_sensitivity`."""
    return StepParts(1 / 3, 1 / 3, 1 / 3) if adjacency == "replace_one" else StepParts(0.25, 0.70, 0.05)


def step_sensitivity(adjacency: str) -> float:
    """Largest norm of what one row adds to a step, or half of the largest change by a row that is exchanged.

    A row whose offset v is in the unit ball adds a w to a count, b w v to a sum and e w |v|**2 to another one, where
    a**2 + b**2 + e**2 = 1 and w is a weight in [0, 1]: the norm is 1 at most.

    Under ``replace_one`` a, b and e are equal. The change is convex in each of two weights, so it is largest where they
    are 0 or 1. If one is 0, the square of its norm is 3 b**2 at most. Of two rows in different clusters, with s and t
    for their squared norms, it is 2 a**2 + b**2 (s + t) + e**2 (s - t)**2, which is convex in s and t and largest at
    corners, where it is 4 b**2. Of two rows in one cluster, with p for the sum of their norms, it is at most
    b**2 p**2 + e**2 p**2 (2 - p)**2 with p <= 2, as the norms differ by 2 - p at most. That is at most 4 b**2, since
    p**2 (2 - p) <= 32 / 27 < 2 + p. The root of 4 b**2 is priced for twice the sensitivity, which therefore is b: sums
    have the noise that they would have alone.
    """
    return math.sqrt(step_parts(adjacency).sums) if adjacency == "replace_one" else 1.0


def run_steps(
    rows: WeightedRows,
    centers: np.ndarray,
    radius: float,
    n_steps: int,
    adjacency: str,
    releases: SharedNoise,
    share: float,
) -> Clusters:
    """Move centers by noisy means of the rows nearest to each, `n_steps` times.

    Notes
    -----
    **Guarantees.** The rows have a say by `n_steps` Gaussian releases, of equal parts of the share.

    Proof. Which center is nearest to a row follows from the row and from earlier releases. Offsets from it are scaled
    into the unit ball of a radius that earlier releases decide, so `step_sensitivity` bounds what a row changes; both
    of its bounds are convex in what rows add, so they hold for averages of rows, which units of several rows add.
    """
    k, d = centers.shape
    counts, inertia, parts = np.ones(k), 0.0, step_parts(adjacency)
    for step in range(n_steps):
        exact = sum_rows(rows, centers, radius, parts)
        noisy = releases.release(share / n_steps, exact, step_sensitivity(adjacency), "step", step)
        counts, moves, square = _read(noisy, k, radius, parts)
        total = float(counts.sum())
        inertia = square * radius**2 * total
        centers = np.clip(centers + moves, -1.0, 1.0)
        radius = min(STEP_RADIUS * radius * math.sqrt(max(square, _LEAST_SQUARE)), 2.0 * math.sqrt(d))
    return Clusters(centers, counts, inertia)


def sum_rows(rows: WeightedRows, centers: np.ndarray, radius: float, parts: StepParts) -> np.ndarray:
    """What the rows add up to: k counts, k sums of d numbers, and the sum of squares."""
    k, d = centers.shape
    counts, sums, squares = np.zeros(k), np.zeros((k, d)), 0.0
    for start in range(0, len(rows.values), _ROWS):
        values, weights = rows.values[start : start + _ROWS], rows.weights[start : start + _ROWS]
        codes = nearest(values, centers)
        offsets, lengths = within(values - centers[codes], radius)
        counts += counts_by_group(codes, k, weights)
        sums += sums_by_group(codes, k, offsets, weights)
        squares += float(weights @ lengths)
    of_counts, of_sums, of_squares = np.sqrt(parts)
    return np.concatenate([of_counts * counts, of_sums * sums.ravel(), [of_squares * squares]])


def _read(noisy: NoisyVector, k: int, radius: float, parts: StepParts) -> tuple[np.ndarray, np.ndarray, float]:
    """Return counts, moves of the centers, shrunk by their noise, and the mean squared distance in radii."""
    of_counts, of_sums, of_squares = np.sqrt(parts)
    counts = np.maximum(noisy.value[:k] / of_counts, max(1.0, noisy.deviation / of_counts))
    sums = noisy.value[k:-1].reshape(k, -1) / of_sums
    of_noise = sums.shape[1] * noisy.deviation**2 / parts.sums  # expected squared norm of the noise of a sum
    squares = np.maximum(np.einsum("ij,ij->i", sums, sums), 1e-300)
    shrunk = np.maximum(1.0 - of_noise / squares, 0.0)[:, None]
    square = float(np.clip(noisy.value[-1] / (of_squares * counts.sum()), 0.0, 1.0))
    return counts, radius * shrunk * sums / counts[:, None], square
