"""Inner products of rows, each of its own row alone."""

import numpy as np
from combinations import over_rows

from skdp.mechanisms.bounded_sum import row_products


@over_rows("width", [0, 1, 200, 8192, 8193, 9000, 20_000])
def test_row_products_do_not_depend_on_other_rows(width):
    """Bit for bit, for every run of neighboring rows; sums of NumPy differ from 8,193 columns on."""
    rng = np.random.default_rng(0)
    rows, vector = rng.normal(size=(7, width)), rng.normal(size=width)
    for others in (lambda part: rows[::-1][part], lambda part: vector):
        whole = row_products(rows, others(slice(None)))
        np.testing.assert_allclose(whole, (rows * others(slice(None))).sum(axis=1), rtol=1e-9, atol=1e-9)
        for start in range(7):
            for stop in range(start + 1, 8):
                part = slice(start, stop)
                np.testing.assert_array_equal(row_products(rows[part], others(part)), whole[part])
