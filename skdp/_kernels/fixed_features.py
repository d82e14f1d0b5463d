"""Passes of the scattering transform: folded products of spectra and filters, and moduli.

Complex numbers are pairs of floats, so that the loops vectorize. Each plane is processed separately, with an order of
operations that does not depend on its position in the block.
"""

from __future__ import annotations

import math

import numpy as np

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


@njit
def write_leaves(numbers, levels, column, threshold, gaps_right, first_word, words, left, depth, leaf, stride, out):
    """Write the leaf of each row in each tree.

    The rows of a block take a step in a tree one after the other, without a branch: their chains of loads overlap.

    Parameters
    ----------
    numbers : ndarray of shape (d, n), float64
        NaN for a gap. Any number in columns of levels.
    levels : ndarray of shape (d, n), int32
        0 in columns of numbers.
    column : ndarray of shape (n_trees, n_nodes), int32
        Column that a node looks at.
    threshold : ndarray of shape (n_trees, n_nodes), float64
        Numbers from it on go to the right, none where it is NaN.
    gaps_right : ndarray of shape (n_trees, n_nodes), bool
        Whether NaN goes to the right.
    first_word : ndarray of shape (n_trees, n_nodes), int32
        Level v goes to the right if bit v % 64 of ``words[first_word + v // 64]`` is set.
    words : ndarray of uint64
        The first ones are 0, as many as any column has, for nodes that look at numbers and for leaves.
    left : ndarray of shape (n_trees, n_nodes), int32
        Left child of a node; the right one follows it. A leaf is its own left child, and nothing goes to the right.
    depth : ndarray of shape (n_trees,), int32
        Number of steps to the deepest leaf.
    leaf : ndarray of shape (n_trees, n_nodes), int32
        Number of a leaf, which is written.
    stride : int
        ``t * stride`` is added to the leaf of tree t.
    out : ndarray of shape (n, n_trees), int32
        Written.
    """
    n_rows = len(out)
    nodes = np.empty(n_rows, np.int64)
    for t in range(len(column)):
        columns, thresholds, gaps, places, lefts = column[t], threshold[t], gaps_right[t], first_word[t], left[t]
        nodes[:] = 0
        for _ in range(depth[t]):
            for i in range(n_rows):
                node = nodes[i]
                number, level = numbers[columns[node], i], levels[columns[node], i]
                bit = words[places[node] + (level >> 6)] >> np.uint64(level & 63) & np.uint64(1)
                right = (number >= thresholds[node]) | ((number != number) & gaps[node])
                nodes[i] = lefts[node] + (np.int64(right) | np.int64(bit))
        for i in range(n_rows):
            out[i, t] = leaf[t, nodes[i]] + t * stride
