"""Images of any layout as planes of floats in [0, 1]."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from skdp._checks.numbers import reject_not_finite
from skdp._checks.parameters import read_real, show

_SEED = 0  # public: there is nothing to hide


def dead_leaves(n: int, shape: tuple[int, int], n_channels: int) -> np.ndarray:
    """Simulate images from the dead leaves model: overlapping discs of random position, size and color.

    Edges occur at all scales, as in photographs (Ruderman 1997; Lee, Mumford & Huang 2001): radii are log-uniform, from
    one pixel to 0.7 of the longer side. The channels of a disc share most of their level.

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
    for _ in range(60):
        radii = largest ** rng.random((n, 1, 1))
        centers = [rng.random((n, 1, 1)) * (size + 2 * radii) - radii for size in shape]
        levels = rng.random((n, 1)) + 0.15 * rng.normal(size=(n, n_channels))
        distance = np.hypot(rows[:, None] - centers[0], columns - centers[1])
        cover = np.clip(radii - distance + 0.5, 0.0, 1.0).astype(np.float32)[:, None]  # a soft edge of a pixel
        images += cover * (np.clip(levels, 0.0, 1.0).astype(np.float32)[..., None, None] - images)
    return images


def pen_strokes(n: int, shape: tuple[int, int], n_channels: int) -> np.ndarray:
    """Simulate images of one to three white strokes on black: arcs of parabolas in the middle of the image.

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
            # The parabola through three places; its points are less than a pixel apart at 32 pixels.
            (start, middle, end), t = places, np.linspace(0.0, 1.0, 40)[:, None]
            y, x = ((1 - t) * (1 - 2 * t) * start + 4 * t * (1 - t) * middle + t * (2 * t - 1) * end).T
            square = (rows - y)[:, None] ** 2 + (columns - x)[None] ** 2
            distance = np.minimum(distance, np.sqrt(square.min(axis=2)))
        image[:] = np.clip(radius - distance + 0.5, 0.0, 1.0)
    return images


PUBLIC_IMAGES = {"photographs": dead_leaves, "drawings": pen_strokes}


_MOST_CHANNELS = 4
_LEAST_WIDTH, _FARTHEST_END = 1e-30, 1e30
"""Of a range of pixels, so that float32 holds pixels, their differences and the scale."""


class ImageLayout(NamedTuple):
    """Layout of an image: its shape, and which axis has the channels, if any."""

    shape: tuple[int, ...]
    axis: int | None

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        height, width = (n for axis, n in enumerate(self.shape) if axis != self.axis)
        return height, width

    @property
    def n_channels(self) -> int:
        """Number of planes of an image."""
        return 1 if self.axis is None else self.shape[self.axis]

    def planes(self, rows: np.ndarray) -> np.ndarray:
        """Return rows as planes, a view of shape (n, channels, height, width)."""
        images = rows.reshape(len(rows), *self.shape)
        return images[:, None] if self.axis is None else np.moveaxis(images, 1 + self.axis, 1)


def layout_of(image_shape: Any, table_shape: tuple[int, ...]) -> ImageLayout:
    """Return the layout from the parameters and the shape of a table.

    Parameters
    ----------
    image_shape : tuple of int or None
        Shape of an image. None uses the shape of the table, and square images for rows of pixels.
    table_shape : tuple of int
        (n, pixels), (n, height, width) or with the channels first or last.

    Returns
    -------
    ImageLayout

    Raises
    ------
    ValueError
        The shape is not that of an image, has ambiguous channels, or does not match the table.
    """
    found = table_shape[1:]
    if len(found) not in (1, 2, 3):
        raise ValueError(
            "X must have the shape (n, pixels), (n, height, width) or (n, height, width, channels), got "
            f"{len(table_shape)} dimensions."
        )
    shape = _public_shape(image_shape, found)
    if math.prod(found) != math.prod(shape) or (len(found) > 1 and found != shape):
        raise ValueError(
            f"X must have images of shape {_text(shape)}, got {_text(found)}. Set `image_shape` to the shape of one "
            "image."
        )
    if len(shape) == 2:
        return ImageLayout(shape, None)
    axes = [axis for axis in (0, 2) if shape[axis] <= _MOST_CHANNELS]
    if len(axes) != 1:
        why = "neither the first nor the last" if not axes else "both the first and the last"
        raise ValueError(
            f"The channels of image_shape={_text(shape)} are ambiguous: {why} number can be the number of channels (1 "
            f"to {_MOST_CHANNELS}). Pass (height, width), (height, width, channels) or (channels, height, width)."
        )
    return ImageLayout(shape, axes[0])


def _public_shape(image_shape: Any, found: tuple[int, ...]) -> tuple[int, ...]:
    if image_shape is None:
        side = math.isqrt(found[0])
        if len(found) > 1:
            return found
        if side * side == found[0]:
            return side, side
        raise ValueError(
            f"`image_shape` must be set, because {found[0]} pixels are not a square image with one channel. Pass "
            "(height, width) or (height, width, channels)."
        )
    whole = isinstance(image_shape, tuple | list) and all(
        isinstance(n, int | np.integer) and not isinstance(n, bool) and n >= 1 for n in image_shape
    )
    if not whole or len(image_shape) not in (2, 3):
        shown = _text(image_shape) if whole else show(image_shape)
        raise ValueError(
            f"`image_shape` must be (height, width) or (height, width, channels), such as (32, 32, 3), got {shown}."
        )
    return tuple(map(int, image_shape))


def _text(shape: Any) -> str:
    return f"({', '.join(map(str, shape))})"


def range_of(value_range: Any, dtype: np.dtype[Any]) -> tuple[float, float]:
    """Return the public range of pixels: the parameter, otherwise 0 to 255 for uint8 and 0 to 1 for floats.

    Raises
    ------
    ValueError
        The parameter is not a valid range, or is None for integers other than uint8.
    """
    if value_range is None:
        if dtype == np.uint8:
            return 0.0, 255.0
        if dtype.kind == "f":
            return 0.0, 1.0
        raise ValueError(
            f"`value_range` must be set, because pixels of type {dtype} have no public range. Pass it, such as (0, "
            "255), or convert X to uint8 or to floats from 0 to 1."
        )
    found = [read_real(each) for each in value_range] if isinstance(value_range, tuple | list) else []
    low, high = [math.nan if each is None else each for each in found] if len(found) == 2 else [math.nan, math.nan]
    if not (high - low >= _LEAST_WIDTH and max(abs(low), abs(high)) <= _FARTHEST_END):
        raise ValueError(
            f"`value_range` must be a pair (low, high), such as (0, 255), of width at least {_LEAST_WIDTH:g} and "
            f"within {_FARTHEST_END:g}, got {show(value_range)}."
        )
    return low, high


def check_pixels(pixels: np.ndarray, ends: tuple[float, float], *, asked: bool) -> None:
    """Raise an error for NaN or pixels outside of the range. The message contains no pixel.

    Parameters
    ----------
    pixels : ndarray
    ends : (float, float)
    asked : bool
        Whether the range is the parameter, and not derived from the type.
    """
    if pixels.dtype == np.uint8 and ends[0] <= 0.0 and ends[1] >= 255.0:
        return
    low, high = pixels.min(), pixels.max()  # NaN if there is one
    if not (math.isfinite(low) and math.isfinite(high)):
        reject_not_finite("X", nan=bool(np.isnan(pixels).any()))
    if low < ends[0] or high > ends[1]:
        where = (
            f"value_range=({ends[0]:g}, {ends[1]:g})"
            if asked
            else f"[{ends[0]:g}, {ends[1]:g}], the range for this type"
        )
        raise ValueError(f"X has pixels outside of {where}. Set `value_range` to the public range of a pixel.")
