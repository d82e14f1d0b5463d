"""Made-up images, whose statistics are much like those of photographs or of drawings: discs, and strokes of a pen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_DISCS = 60
_SEED = 0  # public: there is nothing to hide


def dead_leaves(n: int, shape: tuple[int, int], n_channels: int) -> NDArray[np.float32]:
    """Draw images from the dead leaves model: discs of random place, size and colour, one on the other.

    Edges are spread over all scales, as in photographs (Ruderman 1997; Lee, Mumford & Huang 2001): logarithms of radii
    are uniform, from a pixel to .7 of the longer side. Channels of a disc share most of their level.

    Parameters
    ----------
    n : int
        Number of images.
    shape : (int, int)
        Height and width.
    n_channels : int

    Returns
    -------
    ndarray of shape (n, n_channels, height, width)
        Pixels from 0 to 1. They are the same at each call.
    """
    rng = np.random.default_rng(_SEED)
    rows, columns = (np.arange(size, dtype=np.float32) for size in shape)
    images = np.empty((n, n_channels, *shape), np.float32)
    images[:] = rng.random((n, 1, 1, 1))
    largest = 0.7 * max(shape)
    for _ in range(_DISCS):
        radii = largest ** rng.random((n, 1, 1))
        centres = [rng.random((n, 1, 1)) * (size + 2 * radii) - radii for size in shape]
        levels = rng.random((n, 1)) + 0.15 * rng.normal(size=(n, n_channels))
        distance = np.hypot(rows[:, None] - centres[0], columns - centres[1])
        cover = np.clip(radii - distance + 0.5, 0.0, 1.0).astype(np.float32)[:, None]  # a soft edge of a pixel
        images += cover * (np.clip(levels, 0.0, 1.0).astype(np.float32)[..., None, None] - images)
    return images


_POINTS = np.linspace(0.0, 1.0, 40)[:, None]  # of a stroke, less than a pixel apart at 32 pixels


def pen_strokes(n: int, shape: tuple[int, int], n_channels: int) -> NDArray[np.float32]:
    """Draw images of one to three white strokes on black: arcs of parabolas, in the middle of the image.

    Parameters
    ----------
    n : int
        Number of images.
    shape : (int, int)
        Height and width.
    n_channels : int
        All channels are the same.

    Returns
    -------
    ndarray of shape (n, n_channels, height, width)
        Pixels from 0 to 1. They are the same at each call.
    """
    rng = np.random.default_rng(_SEED)
    rows, columns = (np.arange(size, dtype=np.float32)[:, None] for size in shape)
    images = np.empty((n, n_channels, *shape), np.float32)
    for image in images:
        radius = min(shape) * rng.uniform(0.03, 0.06)
        distance = np.full(shape, np.inf)
        for _ in range(rng.integers(1, 4)):
            places = np.array([rng.uniform(0.2, 0.8, 3) * shape[0], rng.uniform(0.25, 0.75, 3) * shape[1]]).T
            y, x = _arc(*places).T
            square = (rows - y)[:, None] ** 2 + (columns - x)[None] ** 2
            distance = np.minimum(distance, np.sqrt(square.min(axis=2)))
        image[:] = np.clip(radius - distance + 0.5, 0.0, 1.0)
    return images


def _arc(start: NDArray[np.float64], middle: NDArray[np.float64], end: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points of the parabola that passes through three points."""
    t = _POINTS
    return (1 - t) * (1 - 2 * t) * start + 4 * t * (1 - t) * middle + t * (2 * t - 1) * end


PUBLIC_IMAGES = {"photographs": dead_leaves, "drawings": pen_strokes}
