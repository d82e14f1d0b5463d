"""Products of CSR rows and tables in which the numbers of one column, one an output, lie side by side.

A non-zero entry then costs one cache line or two of the table, where a table by outputs costs one an output.
"""

from __future__ import annotations

import numpy as np

from skdp._kernels.caching import njit


@njit
def sparse_scores(data, indices, indptr, rows, start, table, scores):
    """Write X[rows[start:]] @ table to `scores`, or X[start:] @ table where `rows` is None.

    Parameters
    ----------
    data, indices, indptr : ndarray
        Of a CSR matrix X of shape (n, d) without duplicate entries.
    rows : ndarray of shape (k,), int64, or None
    start : int
    table : ndarray of shape (d, n_outputs), float64
    scores : ndarray of shape (m, n_outputs), float64
    """
    for i in range(len(scores)):
        row, each = start + i if rows is None else rows[start + i], scores[i]
        each[:] = 0.0
        for t in range(indptr[row], indptr[row + 1]):
            x, entry = np.float64(data[t]), table[indices[t]]
            for k in range(len(each)):
                each[k] += x * entry[k]


@njit
def add_sparse_products(data, indices, indptr, rows, start, coefs, total):
    """Add X[rows[start:]].T @ coefs to `total`, of shape (d, n_outputs); parameters as above, `coefs` as `scores`."""
    for i in range(len(coefs)):
        row, each = start + i if rows is None else rows[start + i], coefs[i]
        # Indices of a row are distinct (no duplicate entries), so the bound on the row's norm holds.
        for t in range(indptr[row], indptr[row + 1]):
            x, sums = np.float64(data[t]), total[indices[t]]
            for k in range(len(each)):
                sums[k] += x * each[k]
