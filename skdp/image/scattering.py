"""Scattering of order 2: moduli of wavelet transforms of planes, one after the other, and their local means."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from skdp._kernels import scattering as kernel

_COPIES = 2  # of the grid on each side, over which an envelope is summed
_BANDWIDTH, _FREQUENCY, _SLANT = 0.8, 0.75 * math.pi, 4.0


class Path(NamedTuple):
    """Wavelets that a coefficient is made with: their scales and angles, none for the local mean of the image."""

    scales: tuple[int, ...]
    angles: tuple[int, ...]


class Scattering:
    """Scattering of planes of one shape.

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
    paths : list of Path
        In the order of the coefficients: the mean; first order by scale and angle; second order by scale and angle of
        the first wavelet, then of the second, which is coarser.
    map_shape : (int, int)
        Height and width of the maps of coefficients, those of a plane over ``2**n_scales``, rounded down.
    """

    def __init__(self, shape: tuple[int, int], n_scales: int, n_angles: int, max_order: int) -> None:
        self.shape, self.n_scales, self.n_angles, self.max_order = shape, n_scales, n_angles, max_order
        unit = 1 << n_scales
        padded = tuple(((n + unit) // unit + 1) * unit for n in shape)
        self._grid: tuple[int, int] = (padded[0], padded[1])
        self._places = [_reflected(n, size) for n, size in zip(shape, self._grid, strict=True)]
        self.map_shape = (padded[0] // unit - 2, padded[1] // unit - 2)
        self.paths = _paths(n_scales, n_angles, max_order)
        self._smoothing = [self._make_smoothing(times) for times in range(n_scales)]
        self._filters = {
            (j, times): self._make_filters(j, times) for j in range(n_scales) for times in (range(j) if j else [0])
        }

    def _make_smoothing(self, times: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        rows, columns = (_smoothing(n, self.n_scales, times).astype(np.float32) for n in self._grid)
        return rows, np.ascontiguousarray(columns.T)

    def _make_filters(self, j: int, times: int) -> NDArray[np.float32]:
        """Wavelets of scale j for planes that were halved, over the square of the step that they are sampled at."""
        made = [_halved(_morlet(self._grid, j, angle, self.n_angles), times) for angle in range(self.n_angles)]
        sampled = np.repeat(np.array(made) / 4.0 ** (j - times), 2, axis=2).astype(np.float32)
        return _folds(sampled, 1 << (j - times))

    def transform(self, planes: NDArray[np.float32], out: NDArray[np.float32]) -> None:
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

    def _moduli(self, spectra: NDArray[np.complex64], j: int, times: int) -> NDArray[np.float32]:
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

    def _smooth(self, planes: NDArray[np.float32], times: int, out: NDArray[np.float32], first: int) -> None:
        """Write the local means of planes to the paths from `first` on. Each plane has a product of its own."""
        rows, columns = self._smoothing[times]
        np.matmul(rows @ planes, columns, out=out[:, first : first + planes.shape[1]])


def _folds(values: NDArray[np.float32], step: int) -> NDArray[np.float32]:
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


def _spectra(planes: NDArray[np.float32]) -> Any:
    return np.ascontiguousarray(scipy.fft.fft2(planes))


def _reflected(n: int, padded: int) -> NDArray[np.intp]:
    """Places of a side that the points of the padded side are taken from, mirrored at its ends."""
    before = (padded - n) // 2
    return np.pad(np.arange(n), (before, padded - n - before), mode="reflect")


def _paths(n_scales: int, n_angles: int, max_order: int) -> list[Path]:
    waves = [(j, angle) for j in range(n_scales) for angle in range(n_angles)]
    made = [Path((), ()), *(Path((j,), (angle,)) for j, angle in waves)]
    if max_order > 1:
        made += [Path((j, k), (a, b)) for j, a in waves for k, b in waves if k > j]
    return made


# --- Morlet wavelets and the Gaussian low-pass, on a periodic grid ---


def _morlet(shape: tuple[int, int], j: int, angle: int, n_angles: int) -> NDArray[np.float64]:
    """Return the Fourier transform of a Morlet wavelet, periodic on a grid.

    In space it is ``g(u) (exp(i xi . u) - beta)``. The envelope g is a Gaussian of deviation ``.8 * 2**j`` along the
    wave and L / 4 times that across it, of mass 1; \\|xi\\| is ``3 pi / 4 / 2**j``; beta makes the mean zero. These are
    the constants of Bruna & Mallat (2013).

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


def _fold(values: NDArray[np.generic], shape: tuple[int, int]) -> NDArray[np.generic]:
    """Sum the copies of the grid."""
    copies = 2 * _COPIES + 1
    return values.reshape(copies, shape[0], copies, shape[1]).sum(axis=(0, 2))


def _low_pass(n: int, n_scales: int) -> NDArray[np.float64]:
    """Return the Fourier transform of the Gaussian of deviation ``.8 * 2**(J - 1)``, periodic on n points, of mass 1.

    The low-pass of two dimensions is a product of two of these.
    """
    sigma = _BANDWIDTH * 2 ** (n_scales - 1)
    u = np.arange(-_COPIES * n, (_COPIES + 1) * n)
    bump = np.exp(-(u**2) / (2 * sigma**2)) / (math.sqrt(2 * math.pi) * sigma)
    return np.fft.fft(bump.reshape(-1, n).sum(axis=0)).real


def _halved(spectrum: NDArray[np.float64], times: int) -> NDArray[np.float64]:
    """Keep the lowest frequencies of a spectrum on each axis: the filter on a grid of every ``2**times``-th point."""
    for axis, n in enumerate(spectrum.shape):
        kept = n >> times
        places = np.r_[np.arange(kept // 2), np.arange(n - (kept - kept // 2), n)]
        spectrum = np.take(spectrum, places, axis=axis)
    return spectrum


def _smoothing(n: int, n_scales: int, times: int) -> NDArray[np.float64]:
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
    kernel = np.fft.ifft(_halved(_low_pass(n, n_scales), times)).real
    points = n >> times
    step = 1 << (n_scales - times)
    centres = np.arange(1, (n >> n_scales) - 1) * step
    return kernel[(centres[:, None] - np.arange(points)) % points]
