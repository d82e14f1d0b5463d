"""Matrix products in tiles: against the plain reading, bit by bit at any place, and at their edges."""

import itertools

import numpy as np
import reference
from combinations import over_combinations, over_rows

from skdp._kernels import tiles

DTYPES = [np.float32, np.float64]
SHAPES = [(1, 1, 1), (7, 5, 3), (6, 12, 16), (13, 20, 33), (129, 9, 40), (300, 70, 2)]


def rows_of(m, width, dtype, *, seed=0, multiple=tiles.ROWS):
    """Random rows with room for tiles at the edges, which hold NaN: what is beyond an edge is not read."""
    room = np.full((-(-m // multiple) * multiple, tiles.room_for(width, dtype)), np.nan, dtype)
    room[:m, :width] = np.random.default_rng(seed).normal(size=(m, width))
    return room


def packed(table):
    panel = tiles.panel_width(table.dtype)
    found = np.full((-(-table.shape[1] // panel) * len(table), panel), np.nan, table.dtype)
    tiles.pack(table, found)
    return found


@over_rows("dtype", DTYPES)
@over_rows(("m", "depth", "width"), SHAPES)
def test_products_are_those_of_the_plain_reading(m, depth, width, dtype):
    """An error of u times the terms so far for each of `depth` additions; what follows the edges is not read."""
    rows, table = rows_of(m, depth, dtype), np.random.default_rng(1).normal(size=(depth, width)).astype(dtype)
    for right in (table, np.asfortranarray(table)):
        out = np.full((len(rows), tiles.room_for(width, dtype)), np.nan, dtype)
        tiles.multiply(rows, packed(right), depth, width, out)
        bound = np.abs(rows[:m, :depth]).astype(float) @ np.abs(table).astype(float) * depth * np.finfo(dtype).eps
        assert np.all(np.abs(out[:m, :width] - reference.product(rows[:m, :depth], table)) <= bound)


@over_combinations(dtype=DTYPES, transposed=[False, True])
@over_rows(("m", "height", "width"), SHAPES)
def test_sums_of_outer_products_are_those_of_the_plain_reading(m, height, width, transposed, dtype):
    """All of the table at once and cut into rectangles, added to what was there."""
    left, right = rows_of(m, height, dtype)[:m], rows_of(m, width, dtype, seed=1)[:m]
    expected = 1.0 + reference.summed_outer_products(left[:, :height], right[:, :width])
    for rows, columns in (([(0, height)], [(0, width)]), (cut(height, 6), cut(width, tiles.panel_width(dtype)))):
        total = np.ones((width, height) if transposed else (height, width))
        for tall in rows:
            for wide in columns:
                tiles.add_outer_products(left, right, tall, wide, transposed, total)
        atol = 4.0 * m * min(m, reference.SUMMED_BLOCK) * float(np.finfo(dtype).eps)
        np.testing.assert_allclose(total.T if transposed else total, expected, rtol=0, atol=atol)


def cut(length, step):
    return [(start, min(start + step, length)) for start in range(0, length, step)]


@over_rows("dtype", DTYPES)
def test_bits_of_a_product_do_not_depend_on_the_place_of_the_row(dtype):
    """Nor on its neighbors, NaN among them: the roundings of an element are those of its own row and column."""
    depth, width = 37, 45
    table = np.random.default_rng(1).normal(size=(depth, width)).astype(dtype)
    row = np.random.default_rng(2).normal(size=depth).astype(dtype)
    found = []
    for place in (0, 1, 4, 5, 6, 17):
        for others in (0.0, 1.0, np.nan, np.inf):
            rows = np.full((18, tiles.room_for(depth, dtype)), others, dtype)
            rows[place, :depth] = row
            out = np.empty((18, tiles.room_for(width, dtype)), dtype)
            tiles.multiply(rows, packed(table), depth, width, out)
            found.append(out[place, :width].tobytes())
    assert len(set(found)) == 1


@over_rows("transposed", [False, True])
def test_sums_of_blocks_are_double_precision(transposed):
    """2**24 + 1 is no float32: a block of rows that sum to 1 is lost in the sum with the block of 2**24 otherwise.

    Blocks are `SUMMED_BLOCK` rows: one row more would be in the block of the large one.
    """
    block = reference.SUMMED_BLOCK
    values = np.concatenate([[2.0**24], np.zeros(block - 1), np.full(10 * block, 1.0 / block)]).astype("f4")
    left = np.zeros((len(values), tiles.room_for(1, "f4")), "f4")
    left[:, 0] = values
    right = np.zeros_like(left)
    right[:, 0] = 1.0
    total = np.zeros((1, 1))
    tiles.add_outer_products(left, right, (0, 1), (0, 1), transposed, total)
    assert total[0, 0] == 2.0**24 + 10


@over_rows("dtype", DTYPES)
@over_rows("rectified", [False, True])
def test_layers_follow_one_another(rectified, dtype):
    widths = (5, 7, 33, 2)
    tables = [
        np.random.default_rng(k).normal(size=(a + 1, b)).astype(dtype)
        for k, (a, b) in enumerate(itertools.pairwise(widths))
    ]
    inputs = tuple(rows_of(8, width + 1, dtype, seed=width) for width in widths[:-1])
    inputs[0][:8, 5] = 1.0
    scores = np.full((12, tiles.room_for(2, dtype)), np.nan, dtype)
    expected = np.asarray(inputs[0][:8, :6], float)
    tiles.forward(inputs, tuple(map(packed, tables)), np.array(widths), rectified, scores, 0, 12)
    for table, found in zip(tables, (*inputs[1:], scores), strict=True):
        expected = expected @ table.astype(float)
        if found is not scores:
            expected = np.hstack([np.maximum(expected, 0.0) if rectified else expected, np.ones((8, 1))])
        np.testing.assert_allclose(
            found[:8, : expected.shape[1]], expected, rtol=0, atol=1e3 * float(np.finfo(dtype).eps)
        )


@over_rows("rectified", [False, True])
def test_a_lost_value_stays_lost(rectified):
    inputs = tuple(np.zeros((6, tiles.room_for(2, "f8"))) for _ in range(2))
    inputs[0][0, :2] = np.nan, 1.0
    table, scores = np.ones((2, 1)), np.zeros((6, tiles.room_for(1, "f8")))
    tiles.forward(inputs, (packed(table), packed(table)), np.array([1, 1, 1]), rectified, scores, 0, 6)
    assert np.isnan(inputs[1][0, 0])
    assert inputs[1][0, 1] == 1.0
    assert np.isnan(scores[0, 0])


@over_rows("dtype", DTYPES)
@over_rows("width", [1, 33, 785, 1024])
def test_rows_have_room_for_tiles_and_lie_on_lines_of_their_own(width, dtype):
    room, panel = tiles.room_for(width, dtype), tiles.panel_width(dtype)
    assert room >= -(-width // panel) * panel
    assert room >= -(-width // tiles.ROWS) * tiles.ROWS
    lines, rest = divmod(room * np.dtype(dtype).itemsize, 64)
    assert (rest, lines % 2) == (0, 1)


@over_rows("across", [False, True])
@over_rows("n_vectors", [1, 2])
@over_rows("dtype", DTYPES)
def test_tiles_that_are_not_compiled_compute_the_same(n_vectors, across, dtype):
    left, right = rows_of(12, 12, dtype), rows_of(12, 40, dtype, seed=1)
    plain, out = tiles._plain_tile(n_vectors, across=across), np.ones((6, 40), dtype)
    plain(left, 6, right, 2, 3, 5, out, 0, 1)
    width = n_vectors * tiles.panel_width(dtype) // 2
    rows = left[3:8, 6:12].T if across else left[6:12, :5]
    expected = rows.astype(float) @ right[3:8, 2 : 2 + width] + across
    np.testing.assert_allclose(out[:, 1 : 1 + width], expected, rtol=0, atol=100 * float(np.finfo(dtype).eps))
