"""What is done to one image alone before and after scattering: colours, groups of equal weight, whitening, and norm."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from skdp.image.scattering import Path

_OPPONENTS = np.array([[1.0, 1.0, 1.0], [1.0, 0.0, -1.0], [1.0, -2.0, 1.0]])
_OPPONENTS /= np.linalg.norm(_OPPONENTS, axis=1, keepdims=True)
_NO_CONTRAST = 1e-6
"""Deviation of a group, for pixels from 0 to 1, below which it is rounding: a constant image has some 1e-8."""
RIDGE = 1.0
"""Added to the variances that whitening divides by, in units of their mean. On CIFAR-10 at epsilon 3 (single runs), .1
and 1 are the same within a point, and groups without whitening 2 points below."""


def in_opponent_colours(planes: NDArray[np.float32]) -> NDArray[np.float32]:
    """Turn red, green and blue to brightness, red against blue, and both against green: a rotation of the colours.

    Parameters
    ----------
    planes : ndarray of shape (n, 3, height, width)

    Returns
    -------
    ndarray of the same shape
    """
    made = np.empty_like(planes)
    for colour, weights in enumerate(_OPPONENTS.astype(np.float32)):
        made[:, colour] = sum(weight * planes[:, k] for k, weight in enumerate(weights))  # not BLAS: pixel by pixel
    return made


def groups_of(paths: list[Path]) -> list[NDArray[np.intp]]:
    """Return the places of the coefficients of one order and the same scales, group by group."""
    scales = [path.scales for path in paths]
    return [np.flatnonzero([each == group for each in scales]) for group in dict.fromkeys(scales)]


def standardize(maps: NDArray[np.float32], groups: list[NDArray[np.intp]]) -> None:
    """Bring each group of the coefficients of a channel of an image to mean 0 and variance 1, in place.

    Parameters
    ----------
    maps : ndarray of shape (n_images, n_channels, n_paths, size)
    groups : list of ndarray
        Without any contrast, a group becomes zeros.
    """
    for channel in maps.reshape(-1, *maps.shape[2:]):
        for places in groups:
            group = channel[places]
            group -= group.mean(dtype=np.float64).astype(np.float32)
            deviation = math.sqrt(np.square(group, dtype=np.float64).mean())
            channel[places] = group * np.float32(1.0 / deviation) if deviation > _NO_CONTRAST else 0.0


def bring_to_norm(rows: NDArray[np.float32]) -> None:
    """Multiply each row in place so that its norm is sqrt(n_features); zeros stay zeros."""
    for row in rows:
        norm = math.sqrt(np.square(row, dtype=np.float64).sum())
        if norm > 0.0:
            row *= np.float32(math.sqrt(len(row)) / norm)


def inverse_root(covariance: NDArray[np.float64], ridge: float) -> NDArray[np.float64]:
    """Return ``(S + ridge v I) ** -.5`` for a covariance S, v being the mean variance."""
    variances, axes = np.linalg.eigh(covariance)
    scales = (np.maximum(variances, 0.0) + ridge * variances.mean()) ** -0.5
    return (axes * scales) @ axes.T


class Whitening(NamedTuple):
    """What turns the maps of an image to maps of mean 0 that hardly depend on one another, place by place.

    Parameters
    ----------
    mean : ndarray of shape (n_maps, 1)
    matrix : ndarray of shape (n_maps, n_maps)
    """

    mean: NDArray[np.float32]
    matrix: NDArray[np.float32]

    @classmethod
    def learn(cls, maps: NDArray[np.float32]) -> Self:
        """Learn it from the maps of public images: with the covariance S of a place, ``(S + c I) ** -.5``.

        Parameters
        ----------
        maps : ndarray of shape (n_images, n_maps, size)
        """
        values = maps.transpose(1, 0, 2).reshape(maps.shape[1], -1).astype(np.float64)
        mean = values.mean(axis=1, keepdims=True)
        covariance = np.cov(values, bias=True).reshape(len(values), -1)
        return cls(mean.astype(np.float32), inverse_root(covariance, RIDGE).astype(np.float32))

    def apply(self, maps: NDArray[np.float32]) -> None:
        """Whiten maps of shape (n_images, n_maps, size) in place, each image by a product of its own."""
        for image in maps:
            image[:] = self.matrix @ (image - self.mean)
