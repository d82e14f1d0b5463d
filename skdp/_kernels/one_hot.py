"""Scores and gradient sums of linear models over one-hot rows, by lookups in small tables.

A row is represented by one category number for each block of columns, with a public weight for each block. Consecutive
blocks with few categories share one code, so that a byte represents two trees of 16 leaves. A score is a sum of table
entries, one for each code. A gradient sum is a histogram of residuals for each code, whose marginals are the sums of
the blocks. The tables and histograms of a code fit in the first-level cache.

The scores are float64, and so are the sums (see `skdp._kernels.linear`).
"""

from __future__ import annotations

import numpy as np

from skdp._kernels.caching import njit


@njit
def write_tables(theta, widths, first_block, tables):
    """Write what each code adds to a score: the sum of the parameters of its levels.

    Parameters
    ----------
    theta : ndarray of shape (n_levels,), float64
        Parameters times weights of all levels of all blocks, one block after the other.
    widths : ndarray of shape (n_blocks,), int64
        Levels of each block.
    first_block : ndarray of shape (n_codes + 1,), int64
        Code g represents the blocks from ``first_block[g]`` to ``first_block[g + 1]``, the last of which changes
        fastest.
    tables : ndarray of shape (n_cells,), float64
        Written: the tables of all codes, one after the other.
    """
    level = cell = 0
    for g in range(len(first_block) - 1):
        n_cells = 1
        tables[cell] = 0.0
        for b in range(first_block[g], first_block[g + 1]):
            width = widths[b]
            for i in range(n_cells - 1, -1, -1):  # from the end, so that nothing is overwritten before it is read
                before = tables[cell + i]
                for j in range(width):
                    tables[cell + i * width + j] = before + theta[level + j]
            level += width
            n_cells *= width
        cell += n_cells


@njit
def add_margins(histograms, widths, first_block, sums):
    """Add up the cells of each code by the levels of its blocks: the reverse of `write_tables`."""
    level = cell = 0
    for g in range(len(first_block) - 1):
        n_cells = 1
        for b in range(first_block[g], first_block[g + 1]):
            n_cells *= widths[b]
        stride = n_cells
        for b in range(first_block[g], first_block[g + 1]):
            width = widths[b]
            stride //= width
            for i in range(n_cells):
                sums[level + i // stride % width] += histograms[cell + i]
            level += width
        cell += n_cells


@njit
def encode_rows(data, indices, indptr, weights, widths, first_block, codes, fits):
    """Write the codes of CSR rows, and which rows have the form that their codes say, decided row by row.

    Parameters
    ----------
    data, indices, indptr : ndarray
        Of the rows.
    weights : ndarray of shape (n_blocks,), float64
        What the one entry of each block has to be.
    widths, first_block : ndarray
        See `write_tables`.
    codes : ndarray of shape (n_codes, n), unsigned
        Written: 0 for rows without the form.
    fits : ndarray of shape (n,), bool
        Written.
    """
    n_blocks, n_codes = len(widths), len(first_block) - 1
    for i in range(len(indptr) - 1):
        start, column = indptr[i], 0
        fit = indptr[i + 1] - start == n_blocks
        if fit:
            for g in range(n_codes):
                code = 0
                for b in range(first_block[g], first_block[g + 1]):
                    width, level = widths[b], indices[start + b] - column
                    fit &= (level >= 0) & (level < width) & (data[start + b] == weights[b])
                    code = code * width + level
                    column += width
                codes[g, i] = code
        if not fit:
            for g in range(n_codes):
                codes[g, i] = 0
        fits[i] = fit


@njit
def take_rows(codes, rows, start, taken):
    """Copy the codes of ``rows[start:]``, as many as `taken` has room for, four codes at a time."""
    n_codes, m = taken.shape
    for g in range(0, n_codes - n_codes % 4, 4):
        c0, c1, c2, c3 = codes[g], codes[g + 1], codes[g + 2], codes[g + 3]
        t0, t1, t2, t3 = taken[g], taken[g + 1], taken[g + 2], taken[g + 3]
        for i in range(m):
            row = np.uint64(rows[start + i])  # no number of a row is negative, and so none is counted from the end
            t0[i] = c0[row]
            t1[i] = c1[row]
            t2[i] = c2[row]
            t3[i] = c3[row]
    for g in range(n_codes - n_codes % 4, n_codes):
        for i in range(m):
            taken[g, i] = codes[g, np.uint64(rows[start + i])]


@njit
def add_scores(codes, first_cell, tables, z):
    """Add what the codes of each row say to its score, four codes at a time.

    Parameters
    ----------
    codes : ndarray of shape (n_codes, m), unsigned
    first_cell : ndarray of shape (n_codes + 1,), int64
        Where the table of a code starts.
    tables : ndarray of shape (n_cells,), float64
        See `write_tables`.
    z : ndarray of shape (m,), float64
        Added to.
    """
    n_codes, m = codes.shape
    for g in range(0, n_codes - n_codes % 4, 4):
        c0, c1, c2, c3 = codes[g], codes[g + 1], codes[g + 2], codes[g + 3]
        t0, t1 = tables[first_cell[g] :], tables[first_cell[g + 1] :]
        t2, t3 = tables[first_cell[g + 2] :], tables[first_cell[g + 3] :]
        for i in range(m):
            z[i] += (t0[c0[i]] + t1[c1[i]]) + (t2[c2[i]] + t3[c3[i]])
    for g in range(n_codes - n_codes % 4, n_codes):
        c0, t0 = codes[g], tables[first_cell[g] :]
        for i in range(m):
            z[i] += t0[c0[i]]


@njit
def add_residuals(codes, first_cell, residuals, histograms):
    """Add the residual of each row to the cells of its codes, four codes at a time.

    Parameters
    ----------
    codes : ndarray of shape (n_codes, m), unsigned
    first_cell : ndarray of shape (n_codes + 1,), int64
        Where the histogram of a code starts.
    residuals : ndarray of shape (m,), float64
    histograms : ndarray of shape (n_cells,), float64
        Added to.
    """
    n_codes, m = codes.shape
    for g in range(0, n_codes - n_codes % 4, 4):
        c0, c1, c2, c3 = codes[g], codes[g + 1], codes[g + 2], codes[g + 3]
        h0, h1 = histograms[first_cell[g] :], histograms[first_cell[g + 1] :]
        h2, h3 = histograms[first_cell[g + 2] :], histograms[first_cell[g + 3] :]
        for i in range(m):
            r = residuals[i]
            h0[c0[i]] += r
            h1[c1[i]] += r
            h2[c2[i]] += r
            h3[c3[i]] += r
    for g in range(n_codes - n_codes % 4, n_codes):
        c0, h0 = codes[g], histograms[first_cell[g] :]
        for i in range(m):
            h0[c0[i]] += residuals[i]


@njit
def write_products(codes, first_block, widths, squares, icpt, starts, products):
    """Write the inner products of pairs of projected rows of each unit, in the order of `linear.unit_factors`.

    Two rows have ``square (1 - 1 / k)`` of a block of k levels in common if they have one level there, else ``-square /
    k``.

    Parameters
    ----------
    codes : ndarray of shape (n_codes, n), unsigned
    first_block, widths : ndarray
        See `write_tables`.
    squares : ndarray of shape (n_blocks,), float64
        Squared entry of each block.
    icpt : float
        Entry of the intercept.
    starts : ndarray of shape (k + 1,), int64
        Where the rows of each unit start.
    products : ndarray of float64
        Written.
    """
    apart = icpt * icpt
    for b in range(len(widths)):
        apart -= squares[b] / widths[b]
    t = 0
    for u in range(len(starts) - 1):
        for i in range(starts[u], starts[u + 1]):
            for j in range(starts[u], i):
                total = apart
                for g in range(len(first_block) - 1):
                    left, right = codes[g, i], codes[g, j]
                    if left == right:
                        for b in range(first_block[g], first_block[g + 1]):
                            total += squares[b]
                        continue
                    left, right = np.int64(left), np.int64(right)
                    for b in range(first_block[g + 1] - 1, first_block[g] - 1, -1):
                        if left % widths[b] == right % widths[b]:
                            total += squares[b]
                        left //= widths[b]
                        right //= widths[b]
                products[t] = total
                t += 1
