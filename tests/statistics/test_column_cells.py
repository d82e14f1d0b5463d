"""Columns as cells: which value lies where, and what is merged."""

import numpy as np
import pandas as pd
import pytest

from skdp._checks.table import Table
from skdp.preprocessing.schema.column import read_column
from skdp.statistics.cells import OTHER, ColumnCells, Merged


def cells_of(given, *, n_bins=64, is_whole=False):
    return ColumnCells.of("x", 0, read_column("x", given), n_bins, is_whole)


def codes_of(cells, values):
    return cells.codes(cells.read(Table(pd.DataFrame({"x": values}))))


@pytest.mark.parametrize("bounds", [(17, 90), (0, 1), (-3, 124), (0.5, 12.5)])
def test_whole_numbers_have_a_cell_each_where_there_are_few(bounds):
    cells = cells_of(bounds, is_whole=True)
    whole = np.arange(np.ceil(bounds[0]), np.floor(bounds[1]) + 1)
    np.testing.assert_array_equal(cells.left, whole)
    np.testing.assert_array_equal(cells.right, whole)
    np.testing.assert_array_equal(cells.middles, whole)
    np.testing.assert_array_equal(codes_of(cells, whole), np.arange(len(whole)))
    assert cells.labels == [f"{each:.6g}" for each in whole]


@pytest.mark.parametrize(
    "given",
    [
        (0, 99_999),
        {"bounds": (0, 99_999), "scale": "log"},
        {"edges": [0, 1, 17.5, 18, 40, 99.5]},
        (-(2**60), 2**60),
        (0.1, 0.4),
        (0.0, np.nextafter(0.0, 1.0)),
        (0, 1e300),
        ("1990-01-01", "2020-12-31"),
    ],
)
@pytest.mark.parametrize("is_whole", [False, True])
@pytest.mark.parametrize("n_bins", [1, 2, 3, 64])
def test_each_cell_holds_what_lies_between_its_ends(given, is_whole, n_bins):
    cells = cells_of(given, is_whole=is_whole, n_bins=n_bins)
    m = len(cells.left)
    assert m == len(cells.labels) == cells.size - 1 <= max(2 * n_bins, n_bins + 2, 5 + 2)
    assert (np.diff(cells.left) >= 0).all()
    assert (cells.left <= cells.right).all()
    assert (np.diff(cells.breaks) > 0).all()
    codes = cells.codes(np.concatenate([cells.right, [np.nan]]))
    np.testing.assert_array_equal(codes[[0, -2, -1]], [0, m - 1, m])
    assert cells.left[0] == cells.right[0]
    assert cells.left[-1] == cells.right[-1]
    middles = cells.middles[1:-1]
    np.testing.assert_array_equal(
        cells.codes(np.where(middles > cells.left[1:-1], middles, cells.left[1:-1]))[1:], np.arange(2, m - 1)
    )


@pytest.mark.parametrize("is_whole", [False, True])
def test_values_beyond_the_bounds_are_moved_to_cells_of_their_own(is_whole):
    cells = cells_of((0, 1000), is_whole=is_whole)
    found = codes_of(cells, [-np.inf, -5.0, 0.0, 1.0, 999.0, 1000.0, 1e9, np.inf, np.nan])
    last = cells.size - 2
    np.testing.assert_array_equal(found, [0, 0, 0, 1, last - 1, last, last, last, last + 1])


def test_levels_are_the_listed_ones_and_others():
    cells = cells_of(["b", "a"])
    assert cells.labels == ["b", "a", OTHER]
    np.testing.assert_array_equal(codes_of(cells, ["a", "b", "c", None]), [1, 0, 2, 3])
    assert cells_of("flag").labels == ["False", "True"]
    np.testing.assert_array_equal(codes_of(cells_of("flag"), [True, False, None]), [1, 0, 2])


def test_bins_are_merged_to_about_equal_shares():
    cells = cells_of((0, 9), is_whole=True)
    merged = Merged.bins(cells, np.array([4, 0, 0, 1, 1, 1, 1, 0, 0, 0.0]), 4)
    assert merged.labels == ["0", "1..4", "5..9"]
    np.testing.assert_array_equal(merged.places, [0, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3])
    assert Merged.bins(cells, np.zeros(10), 4).size == 2
