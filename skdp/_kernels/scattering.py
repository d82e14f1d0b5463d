"""Passes of the scattering transform: products of spectra and filters, folded, and moduli.

Complex numbers are pairs of floats, so that the loops vectorise. Each plane is treated alone and in one order of
operations, whatever its place in the block.
"""

from __future__ import annotations

import math

from skdp._kernels.caching import njit


@njit
def _write_product(out, spectrum, weights):
    for j in range(len(out)):
        out[j] = spectrum[j] * weights[j]


@njit
def _add_product(out, spectrum, weights):
    for j in range(len(out)):
        out[j] += spectrum[j] * weights[j]


@njit
def filter_spectra(spectra, filters, out):
    """Multiply spectra by filters, and add up what falls on the same frequency where the result is sampled.

    Parameters
    ----------
    spectra : ndarray of shape (n_planes, n_folds, size)
        Real and imaginary parts side by side; frequencies that fall on one another have the same place in each fold.
    filters : ndarray of shape (n_filters, n_folds, size)
        Each number twice.
    out : ndarray of shape (n_planes, n_filters, size)
        Written to.
    """
    for plane in range(len(spectra)):
        for k in range(len(filters)):
            _write_product(out[plane, k], spectra[plane, 0], filters[k, 0])
            for fold in range(1, filters.shape[1]):
                _add_product(out[plane, k], spectra[plane, fold], filters[k, fold])


@njit
def write_modulus(parts, out):
    """Write the modulus of complex numbers; `parts` has their real and imaginary parts side by side."""
    for j in range(len(out)):
        real, imaginary = parts[2 * j], parts[2 * j + 1]
        out[j] = math.sqrt(real * real + imaginary * imaginary)
