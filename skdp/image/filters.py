"""Morlet wavelets and the Gaussian low-pass of 2-D scattering, on a periodic grid."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

_COPIES = 2  # of the grid on each side, over which an envelope is summed
_BANDWIDTH, _FREQUENCY, _SLANT = 0.8, 0.75 * math.pi, 4.0


def morlet(shape: tuple[int, int], j: int, angle: int, n_angles: int) -> NDArray[np.float64]:
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


def low_pass(n: int, n_scales: int) -> NDArray[np.float64]:
    """Return the Fourier transform of the Gaussian of deviation ``.8 * 2**(J - 1)``, periodic on n points, of mass 1.

    The low-pass of two dimensions is a product of two of these.
    """
    sigma = _BANDWIDTH * 2 ** (n_scales - 1)
    u = np.arange(-_COPIES * n, (_COPIES + 1) * n)
    bump = np.exp(-(u**2) / (2 * sigma**2)) / (math.sqrt(2 * math.pi) * sigma)
    return np.fft.fft(bump.reshape(-1, n).sum(axis=0)).real


def halved(spectrum: NDArray[np.float64], times: int) -> NDArray[np.float64]:
    """Keep the lowest frequencies of a spectrum on each axis: the filter on a grid of every ``2**times``-th point."""
    for axis, n in enumerate(spectrum.shape):
        kept = n >> times
        places = np.r_[np.arange(kept // 2), np.arange(n - (kept - kept // 2), n)]
        spectrum = np.take(spectrum, places, axis=axis)
    return spectrum


def smoothing(n: int, n_scales: int, times: int) -> NDArray[np.float64]:
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
    kernel = np.fft.ifft(halved(low_pass(n, n_scales), times)).real
    points = n >> times
    step = 1 << (n_scales - times)
    centres = np.arange(1, (n >> n_scales) - 1) * step
    return kernel[(centres[:, None] - np.arange(points)) % points]
