"""Features of images from pixel planes, each computed from one image alone."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.fft

from skdp._kernels import fixed_features as kernel
from skdp.image.reading import PUBLIC_IMAGES

_COPIES = 2  # of the grid on each side, over which an envelope is summed
_BANDWIDTH, _FREQUENCY, _SLANT = 0.8, 0.75 * math.pi, 4.0


class Scattering:
    """Scattering transform of planes of one shape.

    Parameters
    ----------
    shape : (int, int)
        Height and width of a plane. Both are at least ``2**n_scales``.
    n_scales, n_angles, max_order : int
        J, L, and 1 or 2.

    Attributes
    ----------
    shape : (int, int)
        Height and width of a plane.
    scales : list of tuple of int
        Scales of the wavelets of each coefficient, in order: the mean, without a wavelet; first order by scale and
        angle; second order by scale and angle of the first wavelet, then of the second, which is coarser.
    map_shape : (int, int)
        Height and width of the maps of coefficients, those of a plane over ``2**n_scales``, rounded down.
    """

    def __init__(self, shape: tuple[int, int], n_scales: int, n_angles: int, max_order: int) -> None:
        self.shape, self.n_scales, self.n_angles, self.max_order = shape, n_scales, n_angles, max_order
        unit = 1 << n_scales
        padded = tuple(((n + unit) // unit + 1) * unit for n in shape)
        self._grid: tuple[int, int] = (padded[0], padded[1])
        # Points of the padded sides are those of the plane, mirrored at its ends.
        before = [(size - n) // 2 for n, size in zip(shape, self._grid, strict=True)]
        ends = zip(shape, self._grid, before, strict=True)
        self._places = [np.pad(np.arange(n), (first, size - n - first), mode="reflect") for n, size, first in ends]
        self.map_shape = (padded[0] // unit - 2, padded[1] // unit - 2)
        waves = np.repeat(range(n_scales), n_angles).tolist()  # each scale at each angle
        self.scales: list[tuple[int, ...]] = [(), *((j,) for j in waves)]
        if max_order > 1:
            self.scales += [(j, k) for j in waves for k in waves if k > j]
        # Filters of planes that were halved so many times.
        self._smoothing = []
        for times in range(n_scales):
            rows, columns = (_smoothing(n, n_scales, times).astype(np.float32) for n in self._grid)
            self._smoothing.append((rows, np.ascontiguousarray(columns.T)))
        self._filters = {
            (j, times): self._make_filters(j, times) for j in range(n_scales) for times in (range(j) if j else [0])
        }

    def _make_filters(self, j: int, times: int) -> np.ndarray:
        """Wavelets of scale j for planes that were halved, over the square of the step that they are sampled at."""
        made = [_halved(_morlet(self._grid, j, angle, self.n_angles), times) for angle in range(self.n_angles)]
        sampled = np.repeat(np.array(made) / 4.0 ** (j - times), 2, axis=2).astype(np.float32)
        return _folds(sampled, 1 << (j - times))

    def transform(self, planes: np.ndarray, out: np.ndarray) -> None:
        """Write the coefficients of planes.

        Parameters
        ----------
        planes : ndarray of shape (n_planes, height, width)
        out : ndarray of shape (n_planes, n_paths, *map_shape)
            C-contiguous.
        """
        # NumPy gathers with the planes last; products of one plane alone would round in another order then.
        padded = np.ascontiguousarray(planes[:, self._places[0][:, None], self._places[1]])
        self._smooth(padded[:, None], 0, out, 0)
        spectra = _spectra(padded)
        n_angles, place = self.n_angles, 1 + self.n_scales * self.n_angles
        for j in range(self.n_scales):
            moduli = self._moduli(spectra, j, 0)
            self._smooth(moduli, j, out, 1 + j * n_angles)
            if self.max_order < 2 or j + 1 == self.n_scales:
                continue
            coarser = _spectra(moduli.reshape(-1, *moduli.shape[2:]))
            span = (self.n_scales - j - 1) * n_angles  # second wavelets of one first wavelet
            for j2 in range(j + 1, self.n_scales):
                second = self._moduli(coarser, j2, j)
                second = second.reshape(len(planes), n_angles, n_angles, *second.shape[2:])
                for angle in range(n_angles):
                    first = place + angle * span + (j2 - j - 1) * n_angles
                    self._smooth(second[:, angle], j2, out, first)
            place += n_angles * span

    def _moduli(self, spectra: np.ndarray, j: int, times: int) -> np.ndarray:
        """Modulus of the wavelet transform at scale j of planes that were halved before, halved to j times."""
        step = 1 << (j - times)
        n, height, width = spectra.shape
        made = np.empty((n, self.n_angles, height // step, width // step), np.complex64)
        filters = self._filters[j, times]
        products = made.view(np.float32).reshape(n, self.n_angles, -1)
        kernel.filter_spectra(_folds(spectra.view(np.float32), step), filters, products)
        waves = np.ascontiguousarray(scipy.fft.ifft2(made, overwrite_x=True))
        moduli = np.empty(waves.shape, np.float32)
        kernel.write_modulus(waves.view(np.float32).ravel(), moduli.ravel())
        return moduli

    def _smooth(self, planes: np.ndarray, times: int, out: np.ndarray, first: int) -> None:
        """Write the local means of planes to the paths from `first` on. Each plane has a product of its own."""
        rows, columns = self._smoothing[times]
        np.matmul(rows @ planes, columns, out=out[:, first : first + planes.shape[1]])


def _folds(values: np.ndarray, step: int) -> np.ndarray:
    """Cut height and width into `step` parts each: parts that lie on one another after sampling, one after the other.

    Parameters
    ----------
    values : ndarray of shape (n, height, 2 * width)
    step : int

    Returns
    -------
    ndarray of shape (n, step ** 2, 2 * height * width // step ** 2)
    """
    n, height, width = values.shape
    parts = values.reshape(n, step, height // step, step, width // step).swapaxes(2, 3)
    return np.ascontiguousarray(parts).reshape(n, step * step, -1)


def _spectra(planes: np.ndarray) -> Any:
    return np.ascontiguousarray(scipy.fft.fft2(planes))


# --- Morlet wavelets and the Gaussian low-pass, on a periodic grid ---


def _morlet(shape: tuple[int, int], j: int, angle: int, n_angles: int) -> np.ndarray:
    """Return the Fourier transform of a Morlet wavelet, periodic on a grid.

    In space it is ``g(u) (exp(i xi . u) - beta)``. The envelope g is a Gaussian of standard deviation ``0.8 * 2**j``
    along the wave and L / 4 times that across it, of mass 1; \\|xi\\| is ``3 pi / 4 / 2**j``; beta makes the mean zero.
    These are the constants of Bruna & Mallat (2013).

    Parameters
    ----------
    shape : (int, int)
        Grid.
    j : int
        Scale.
    angle : int
        The wave goes in the direction ``(L / 2 - 1 - angle) * pi / L``, rounded down for an odd L.
    n_angles : int
        L.

    Returns
    -------
    ndarray of `shape`
        It is real, as the wavelet at -u is its own conjugate.
    """
    theta = (n_angles // 2 - 1 - angle) * math.pi / n_angles
    sigma, slant = _BANDWIDTH * 2**j, _SLANT / n_angles
    u, v = np.meshgrid(*(np.arange(-_COPIES * n, (_COPIES + 1) * n) for n in shape), indexing="ij")
    along = u * math.cos(theta) + v * math.sin(theta)
    across = v * math.cos(theta) - u * math.sin(theta)
    envelope = np.exp(-(along**2 + (slant * across) ** 2) / (2 * sigma**2)) * slant / (2 * math.pi * sigma**2)
    wave = _fold(envelope * np.exp(1j * _FREQUENCY / 2**j * along), shape)
    bump = _fold(envelope, shape)
    return np.fft.fft2(wave - wave.sum() / bump.sum() * bump).real


def _fold(values: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Sum the copies of the grid."""
    copies = 2 * _COPIES + 1
    return values.reshape(copies, shape[0], copies, shape[1]).sum(axis=(0, 2))


def _halved(spectrum: np.ndarray, times: int) -> np.ndarray:
    """Keep the lowest frequencies of a spectrum on each axis: the filter on a grid of every ``2**times``-th point."""
    for axis, n in enumerate(spectrum.shape):
        kept = n >> times
        places = np.r_[np.arange(kept // 2), np.arange(n - (kept - kept // 2), n)]
        spectrum = np.take(spectrum, places, axis=axis)
    return spectrum


def _smoothing(n: int, n_scales: int, times: int) -> np.ndarray:
    """Return the matrix that smooths ``n >> times`` points and keeps those that belong to the image.

    Parameters
    ----------
    n : int
        Points of the padded side, a multiple of ``2**J``.
    n_scales : int
        J.
    times : int
        How many times the points were halved before.

    Returns
    -------
    ndarray of shape (n / 2**J - 2, n >> times)
        One point on each side, of the padding, is left out.
    """
    # The Gaussian of deviation ``.8 * 2**(J - 1)`` and mass 1, periodic on n points.
    sigma = _BANDWIDTH * 2 ** (n_scales - 1)
    u = np.arange(-_COPIES * n, (_COPIES + 1) * n)
    bump = np.exp(-(u**2) / (2 * sigma**2)) / (math.sqrt(2 * math.pi) * sigma)
    spectrum = np.fft.fft(bump.reshape(-1, n).sum(axis=0)).real
    kernel = np.fft.ifft(_halved(spectrum, times)).real
    points = n >> times
    step = 1 << (n_scales - times)
    centers = np.arange(1, (n >> n_scales) - 1) * step
    return kernel[(centers[:, None] - np.arange(points)) % points]


_OPPONENTS = np.array([[1.0, 1.0, 1.0], [1.0, 0.0, -1.0], [1.0, -2.0, 1.0]])
_OPPONENTS /= np.linalg.norm(_OPPONENTS, axis=1, keepdims=True)


def in_opponent_colors(planes: np.ndarray) -> np.ndarray:
    """Convert RGB to brightness, red-blue and green-magenta contrast: a rotation of the colors.

    Parameters
    ----------
    planes : ndarray of shape (n, 3, height, width)

    Returns
    -------
    ndarray of the same shape
    """
    made = np.empty_like(planes)
    for color, weights in enumerate(_OPPONENTS.astype(np.float32)):
        made[:, color] = sum(weight * planes[:, k] for k, weight in enumerate(weights))  # not BLAS: pixel by pixel
    return made


def standardize(maps: np.ndarray, groups: list[np.ndarray]) -> None:
    """Standardize each group of coefficients of a channel of an image in place.

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
            # Pixels are from 0 to 1; below, it is rounding: a constant image has some 1e-8.
            channel[places] = group * np.float32(1.0 / deviation) if deviation > 1e-6 else 0.0


def bring_to_norm(rows: np.ndarray) -> None:
    """Scale each row in place to norm sqrt(n_features); zero rows are unchanged."""
    for row in rows:
        norm = math.sqrt(np.square(row, dtype=np.float64).sum())
        if norm > 0.0:
            row *= np.float32(math.sqrt(len(row)) / norm)


def inverse_root(covariance: np.ndarray, ridge: float) -> np.ndarray:
    """Return ``(S + ridge v I) ** -.5`` for a covariance S, v being the mean variance."""
    variances, axes = np.linalg.eigh(covariance)
    scales = (np.maximum(variances, 0.0) + ridge * variances.mean()) ** -0.5
    return (axes * scales) @ axes.T


class Whitening(NamedTuple):
    """Whitening of the maps of an image at each position.

    Parameters
    ----------
    mean : ndarray of shape (n_maps, 1)
    matrix : ndarray of shape (n_maps, n_maps)
    """

    mean: np.ndarray
    matrix: np.ndarray

    @classmethod
    def learn(cls, maps: np.ndarray) -> Self:
        """Learn the whitening from maps of public images: with the covariance S at a position, ``(S + c I) ** -.5``.

        Parameters
        ----------
        maps : ndarray of shape (n_images, n_maps, size)
        """
        values = maps.transpose(1, 0, 2).reshape(maps.shape[1], -1).astype(np.float64)
        mean = values.mean(axis=1, keepdims=True)
        covariance = np.cov(values, bias=True).reshape(len(values), -1)
        # On CIFAR-10 at epsilon 3 (single runs), ridges of 0.1 and 1 are the same within a point.
        return cls(mean.astype(np.float32), inverse_root(covariance, 1.0).astype(np.float32))

    def apply(self, maps: np.ndarray) -> None:
        """Whiten maps of shape (n_images, n_maps, size) in place, each image separately."""
        for image in maps:
            image[:] = self.matrix @ (image - self.mean)


_N_PUBLIC = 400


class ImageFeatures:
    """Scattering features of images of one shape.

    Parameters
    ----------
    scattering : Scattering
    n_channels : int
        Number of planes of an image.
    colors : bool
        Whether three channels are converted to opponent colors.
    normalization : {"whitened", "groups", None}
    public_images : {"photographs", "drawings"}
        Simulated images from which whitening is learned.
    symmetric : bool
        Whether an image and its mirror image have the same features.
    """

    def __init__(
        self,
        scattering: Scattering,
        n_channels: int,
        *,
        colors: bool,
        normalization: str | None,
        public_images: str,
        symmetric: bool,
    ) -> None:
        self._scattering, self._n_channels = scattering, n_channels
        self._colors = colors and n_channels == 3
        self._normalization, self._symmetric = normalization, symmetric
        # Places of the coefficients of one order and the same scales, group by group.
        scales = scattering.scales
        self._groups = [np.flatnonzero([each == group for each in scales]) for group in dict.fromkeys(scales)]
        height, width = scattering.map_shape
        self._size = height * width
        self.maps_shape = (n_channels * len(scattering.scales), height, -(-width // 2) if symmetric else width)
        self._whitening: Whitening | None = None
        if normalization == "whitened":  # learned from simulated images
            images = PUBLIC_IMAGES[public_images](_N_PUBLIC, scattering.shape, n_channels)
            maps = np.concatenate([self._maps(images[start : start + 2]) for start in range(0, len(images), 2)])
            self._whitening = Whitening.learn(maps.reshape(len(maps), -1, self._size))

    def write(self, planes: np.ndarray, out: np.ndarray) -> None:
        """Write the rows of images.

        Parameters
        ----------
        planes : ndarray of shape (n, n_channels, height, width)
            Pixels from 0 to 1.
        out : ndarray of shape (n, n_features)
        """
        maps = self._maps(planes)
        if self._symmetric:
            kept = self.maps_shape[2]
            mirrored = self._maps(planes[..., ::-1])
            maps = 0.5 * (maps[..., :kept] + mirrored[..., :kept])
        out[:] = maps.reshape(len(out), -1)
        if self._normalization is not None:
            bring_to_norm(out)

    def _maps(self, planes: np.ndarray) -> np.ndarray:
        """Normalized maps of images, of shape (n, n_maps, height, width)."""
        n, scattering = len(planes), self._scattering
        if self._colors:
            planes = in_opponent_colors(planes)
        made = np.empty((n * self._n_channels, len(scattering.scales), *scattering.map_shape), np.float32)
        scattering.transform(planes.reshape(-1, *planes.shape[2:]), made)
        if self._normalization is not None:
            standardize(made.reshape(n, self._n_channels, len(scattering.scales), self._size), self._groups)
        maps = made.reshape(n, -1, *scattering.map_shape)
        if self._whitening is not None:
            self._whitening.apply(maps.reshape(n, -1, self._size))
        return maps


class PatchFeatures:
    """Scattering features of images of one shape.

    Parameters
    ----------
    shape : (int, int, int)
        Channels, height and width of an image.
    n_filters, patch_size, stride : int
    public_images : {"photographs", "drawings"}
        Simulated images from which whitening is learned.
    symmetric : bool
        Whether an image and its mirror image have the same features.
    seed : int
        Public seed of the filters.
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        *,
        n_filters: int,
        patch_size: int,
        stride: int,
        public_images: str,
        symmetric: bool,
        seed: int,
    ) -> None:
        self._patch_size, self._stride, self._symmetric = patch_size, stride, symmetric
        self.maps_shape = (2 * n_filters, 2, 2)
        n_channels, *sides = shape
        height, width = (min(side, max(32, 2 * patch_size)) for side in sides)  # larger ones have much the same patches
        made = self._patches(PUBLIC_IMAGES[public_images](_N_PUBLIC, (height, width), n_channels))
        patches = made.reshape(-1, made.shape[-1]).astype(np.float64)
        mean = patches.mean(axis=0)
        covariance = np.cov(patches.T, bias=True)
        drawn = np.random.default_rng(seed).normal(size=(len(mean), n_filters))
        filters = inverse_root(covariance, 0.1) @ (drawn / np.linalg.norm(drawn, axis=0))
        self._filters, self._offset = filters.astype(np.float32), (mean @ filters).astype(np.float32)
        deviation = np.sqrt(np.einsum("ij,ij->j", filters, covariance @ filters).mean())
        self._threshold = np.float32(0.5 * deviation)

    def write(self, planes: np.ndarray, out: np.ndarray) -> None:
        """Write the rows of images.

        Parameters
        ----------
        planes : ndarray of shape (n, n_channels, height, width)
            Pixels from 0 to 1.
        out : ndarray of shape (n, n_features)
        """
        self._respond(planes, out)
        if self._symmetric:
            mirrored = np.empty_like(out)
            self._respond(planes[..., ::-1], mirrored)
            out += mirrored
        out -= out.mean(axis=1, keepdims=True)
        bring_to_norm(out)

    def _respond(self, planes: np.ndarray, out: np.ndarray) -> None:
        """Write the means over quarters of what exceeds the threshold, above and below."""
        patches = self._patches(planes)
        n, rows, columns, size = patches.shape
        responses = np.matmul(patches.reshape(n, rows * columns, size), self._filters)  # each image by its own product
        responses -= self._offset
        responses = responses.reshape(n, rows, columns, -1)
        means = out.reshape(n, 2, -1, 2, 2)
        for sign, signed in enumerate((responses, -responses)):
            excess = np.maximum(signed - self._threshold, np.float32(0.0))
            for i, top in enumerate(_halves(rows)):
                for j, left in enumerate(_halves(columns)):
                    means[:, sign, :, i, j] = excess[:, top, left].mean(axis=(1, 2))

    def _patches(self, planes: np.ndarray) -> np.ndarray:
        """Patches of images, of shape (n, rows, columns, size): each of mean 0, and of variance 1 if it has any."""
        size, stride = self._patch_size, self._stride
        windows = np.lib.stride_tricks.sliding_window_view(planes, (size, size), axis=(2, 3))[:, :, ::stride, ::stride]
        n, n_channels, rows, columns = windows.shape[:4]
        patches = windows.transpose(0, 2, 3, 1, 4, 5).reshape(n, rows, columns, n_channels * size * size)
        patches = patches - patches.mean(axis=-1, keepdims=True)
        variance = np.square(patches).mean(axis=-1, keepdims=True)
        patches /= np.sqrt(variance + np.float32(0.003))  # those of little contrast are mostly noise
        return patches


def _halves(n: int) -> tuple[slice, slice]:
    """The first and the last half of places, which share the one in the middle if their number is odd."""
    return slice(0, (n + 1) // 2), slice(n // 2, n)
