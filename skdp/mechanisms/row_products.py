"""Inner products of rows whose last bits depend on no other row."""

from __future__ import annotations

import numpy as np

_COLUMNS = 8192


def row_products(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Inner products of each row with a row of `others`, or with `others` itself if it is a vector.

    Each result is that of the row alone, to the last bit. NumPy adds up to 8,192 products of a row at once, and splits
    longer rows where the place of the row among others decides. So longer rows are split here.
    """
    how = "ij,j->i" if others.ndim == 1 else "ij,ij->i"
    starts = range(0, max(rows.shape[1], 1), _COLUMNS)
    return sum(np.einsum(how, rows[:, k : k + _COLUMNS], others[..., k : k + _COLUMNS]) for k in starts)


__all__ = ["row_products"]
