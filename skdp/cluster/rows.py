"""Rows of a cube with weights, and the one way in which noise is added to what they sum up to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.row_products import row_products
from skdp.mechanisms.streams import SecretStream

_ROWS = 2048


@dataclass(frozen=True)
class Cube:
    """The public map of columns between bounds, of shape (d, 2), to [-1, 1]; what is beyond is moved to the bounds."""

    bounds: np.ndarray

    def bring_in(self, X: np.ndarray) -> np.ndarray:
        """Return rows in the cube."""
        low, high = self.bounds.T
        values = np.clip(np.asarray(X, np.float64), low, high)
        values -= low
        values /= 0.5 * high - 0.5 * low
        values -= 1.0
        return np.clip(values, -1.0, 1.0, out=values)

    def take_out(self, values: np.ndarray) -> np.ndarray:
        """Return rows of the cube in the units of their columns."""
        low, high = self.bounds.T
        return np.clip(low + (0.5 * high - 0.5 * low) * (values + 1.0), low, high)


@dataclass(frozen=True)
class SparseRows:
    """Sparse rows, of which those that are asked for are brought into the cube, to the last bit as those of an array.

    Zeros of a column need not be in the middle of its bounds, so rows of the cube are not sparse.
    """

    table: sp.csr_matrix
    cube: Cube

    def __getitem__(self, chosen: Any) -> np.ndarray:
        return self.cube.bring_in(self.table[chosen].toarray())

    def __len__(self) -> int:
        return int(self.table.shape[0])

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return len(self), int(self.table.shape[1])


CubeRows = np.ndarray | SparseRows
"""Rows in the cube, of which a slice or an array of numbers takes some as an array."""


class WeightedRows(NamedTuple):
    """Private rows in the cube [-1, 1]^d, with weights in [0, 1] whose sums are exact.

    Of a unit of several rows, the weights add up to 1 at most.
    """

    values: CubeRows
    weights: np.ndarray


class NoisyVector(NamedTuple):
    """A vector with noise, and the standard deviation of the noise of an entry."""

    value: np.ndarray
    deviation: float


@dataclass(frozen=True)
class SharedNoise:
    """Gaussian releases that together cost as much as one.

    Parameters
    ----------
    noise_multiplier : float
        Of one release with the whole budget.
    stream : SecretStream
        Of the noise.

    Notes
    -----
    **Guarantees.** `release` adds the noise of a share of mu**2: its event is that of `noise_multiplier` divided by the
    root of the share. Releases whose shares add up to 1 compose to one of `noise_multiplier`,
    also where what is released is chosen by earlier releases.

    Proof. The squares of their mu add up (Dong, Roth & Su 2022, corollary 2).
    """

    noise_multiplier: float
    stream: SecretStream

    def release(self, share: float, vector: np.ndarray, sensitivity: float, *purpose: str | int) -> NoisyVector:
        """Add the noise of a share of mu**2; `purpose` names the stream, and no two releases have the same."""
        mechanism = GaussianMechanism(self.noise_multiplier / math.sqrt(share), sensitivity)
        return NoisyVector(mechanism.release(vector, self.stream.spawn(*purpose)), mechanism.standard_deviation)


def within(offsets: np.ndarray, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """Scale vectors into the unit ball, ``v / max(radius, |v|)``, and return them with their squared norms.

    Notes
    -----
    **Guarantees.** No vector is longer than 1, rounding included, and none is more than 1 in its squared norm.

    Proof. The norm of d numbers as computed has a relative error of at most (d / 2 + 2) u, u = 2**-53, and a
    quotient one of u, which the radius makes up for.
    """
    radius *= 1.0 + (offsets.shape[1] + 16) * 2.0**-52
    squares = row_products(offsets, offsets)
    lengths = np.sqrt(squares) * (1.0 + (offsets.shape[1] + 16) * 2.0**-52)
    longest = np.maximum(lengths, radius)
    return offsets / longest[:, None], np.minimum(squares / longest**2, 1.0)


def sums_by_group(codes: NDArray[np.int64], n_groups: int, values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted sums of the rows of each group, of shape (n_groups, d)."""
    n = len(codes)
    chosen = sp.csr_array((weights, (codes, np.arange(n))), shape=(n_groups, n))
    return np.asarray(chosen @ values)


def counts_by_group(codes: NDArray[np.int64], n_groups: int, weights: np.ndarray) -> np.ndarray:
    """Sums of the weights of each group, of shape (n_groups,)."""
    return np.bincount(codes, weights, minlength=n_groups).astype(np.float64)


def squared_distances(values: CubeRows, centers: np.ndarray) -> np.ndarray:
    """Squared distances of rows to centers, of shape (n_rows, n_centers).

    Each row is treated alone, to the last bit: products of matrices round by the place of a row among others.
    """
    found = np.empty((len(values), len(centers)))
    for start in range(0, len(values), _ROWS):
        part = slice(start, start + _ROWS)
        some = values[part]
        for j, center in enumerate(centers):
            offsets = some - center
            found[part, j] = row_products(offsets, offsets)
    return found


def nearest(values: CubeRows, centers: np.ndarray) -> NDArray[np.int64]:
    """Return the number of the center that is nearest to each row."""
    return squared_distances(values, centers).argmin(axis=1)
