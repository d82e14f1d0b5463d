"""Trees that are drawn from public knowledge: what a node does, and rows as their leaves."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from combinations import over_rows
from reference import leaves_of_row, vectorized_row
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from tables import ESTIMATED, ROWS, SCHEMA, customers, labels
from unread import UnreadCell

from skdp import DPLogisticRegression, PrivacyAccountant, allocate_budget, check_pipeline, config_context
from skdp._checks.rows import row_norm_of
from skdp.ensemble import PublicTreesEmbedding, embedding
from skdp.ensemble.trees import LeafTables, draw_trees
from skdp.preprocessing import DPTableVectorizer, TableSchema
from skdp.preprocessing.schema.blocks import Block

FRAME = customers(200)
Y = labels(FRAME)
KEPT = [name for name, column in SCHEMA.items() if column.kind != "drop"]


def trees_of(n_estimators=20, **parameters):
    return PublicTreesEmbedding(n_estimators, **{"schema": SCHEMA, "random_state": 0, **parameters})


def classifier(**parameters):
    return DPLogisticRegression(**{"classes": [0, 1], "max_iter": 3, "delta": 1e-5, **parameters})


def blocks_of(schema):
    return [Block(name, j, column, "bins", 16) for j, (name, column) in enumerate(TableSchema(schema).items())]


def arrays_of(trees):
    return trees.column, trees.threshold, trees.gaps_right, trees.first_word, trees.words, trees.left


def same(one, two):
    """Whether two embeddings have the same trees."""
    pairs = zip(arrays_of(one._fitted_trees), arrays_of(two._fitted_trees), strict=True)
    return all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs)


def right_levels(trees, t, node, n_levels):
    first = int(trees.first_word[t, node])
    return {v for v in range(n_levels) if int(trees.words[first + v // 64]) >> v % 64 & 1}


# --- what a node does ---


def walk(trees, t, whole, split):
    """Call `split(node, column, views)` at each split from the root on; it returns what both children can see.

    Return what each leaf sees.
    """
    views, waiting, leaves = {0: whole}, [0], []
    while waiting:
        node = waiting.pop()
        left = int(trees.left[t, node])
        if left == node:
            leaves.append(views[node])
            continue
        views[left], views[left + 1] = split(node, int(trees.column[t, node]), views[node])
        waiting += [left, left + 1]
    return leaves


@over_rows("n_leaves, shares", [(2, None), (16, [None, np.eye(9)[3]]), (100, [np.arange(33.0) / 528, np.ones(9) / 9])])
def test_every_number_is_cut_inside_what_the_node_can_see(n_leaves, shares):
    blocks = blocks_of({"a": (0, 1), "b": (-5, 90)})
    trees = draw_trees(blocks, 50, n_leaves, 12, 3, shares)

    def split(node, j, view):
        low, high = view[j]
        cut = trees.threshold[t, node]
        assert low < cut < high
        return [{**view, j: side} for side in ((low, cut), (cut, high))]

    for t in range(50):
        assert len(walk(trees, t, {0: (0.0, 1.0), 1: (-5.0, 90.0)}, split)) == n_leaves


@over_rows("kind", ["category", "ordinal", "flag"])
@over_rows("n_listed", [0, 1, 3, 70])
def test_no_side_of_a_split_of_levels_is_empty(kind, n_listed):
    if kind == "flag":
        schema, width, n_split = {"a": "flag"}, 3, 2
    elif kind == "ordinal" and n_listed == 0:
        return  # an ordinal lists its levels
    else:
        schema = {"a": {"kind": kind, "categories": [f"v{i}" for i in range(n_listed)]}}
        width, n_split = n_listed + 2, max(n_listed, 2)
    trees = draw_trees(blocks_of(schema), 60, 16, 8, 5)
    sides = set()

    def split(node, j, seen):
        assert len(seen) > 1
        assert trees.first_word[t, node] > 0
        to_right = right_levels(trees, t, node, width)
        right = [level for level in seen if level in to_right]
        left = [level for level in seen if level not in to_right]
        assert left
        assert right
        if kind == "ordinal":
            assert max(left) < min(right)
        sides.add((width - 1 in to_right) if width > n_split else None)
        return left, right

    for t in range(60):
        leaves = walk(trees, t, list(range(n_split)), split)
        assert len(leaves) <= min(16, n_split)
        assert len(leaves) == 16 or all(len(seen) == 1 for seen in leaves)  # a tree ends where nothing can be split
    assert sides == ({True, False} if width > n_split else {None})  # gaps go to either side


def test_columns_are_picked_uniformly_and_low_ends_by_octaves():
    """Counts of 20,000 roots within 5 standard deviations: false alarms below 1e-6 for each of the five."""
    blocks = blocks_of({"a": (0, 1), "b": (0, 1), "c": ["x", "y", "z"], "d": "flag"})
    trees = draw_trees(blocks, 20_000, 2, 1, 7)
    column, cut = trees.column[:, 0], trees.threshold[:, 0]
    for j in range(4):
        assert abs(np.mean(column == j) - 0.25) < 5 * math.sqrt(0.25 * 0.75 / 20_000)
    lines = cut[column < 2]
    low = 0.5 * 2.0**-4 + 0.5 * 0.5  # below 2**-4: that share of the uniform half, and half of the octaves
    assert abs(np.mean(lines < 2.0**-4) - low) < 5 * math.sqrt(low * (1 - low) / len(lines))
    assert lines.min() > 0
    categories = [right_levels(trees, t, 0, 5) & {0, 1, 2} for t in np.flatnonzero(column == 2)]
    counts = [sum(each == side for each in categories) for side in ({0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2})]
    assert sum(counts) == len(categories)
    spread = 5 * math.sqrt(len(categories) * 5 / 36)
    assert max(abs(count - len(categories) / 6) for count in counts) < spread


# --- where people are ---


def test_the_node_in_which_most_people_are_expected_is_split_next():
    """Of two leaves more only the larger can have been split; shares are products over columns."""
    shares = [np.array([0.05, 0.1, 0.15, 0.7, 0.0]), np.array([0.6, 0.3, 0.1, 0.0, 0.0])]
    schema = {"a": (0, 1), "b": {"kind": "category", "categories": ["x", "y", "z"]}}
    below = np.concatenate([[0.0], np.cumsum(shares[0][:4])])
    for n_leaves in (3, 6, 12):
        trees = draw_trees(blocks_of(schema), 40, n_leaves, 20, 1, shares)
        before = draw_trees(blocks_of(schema), 40, n_leaves - 1, 20, 1, shares)  # the same trees for the first one
        t = 0

        def split(node, j, view, trees=trees):
            low, high, seen = view
            if j == 0:
                cut = trees.threshold[0, node]
                return (low, cut, seen), (cut, high, seen)
            right = right_levels(trees, 0, node, 5)
            return (low, high, [v for v in seen if v not in right]), (low, high, [v for v in seen if v in right])

        def mass(view):
            low, high, seen = view
            places = np.linspace(0, 1, 5)
            return float(np.diff(np.interp([low, high], places, below))[0] * sum(shares[1][v] for v in seen))

        few, many = ([*walk(each, t, (0.0, 1.0, [0, 1, 2]), split)] for each in (before, trees))
        (gone,) = [view for view in few if view not in many]
        can_be_split = [view for view in few if view[1] > view[0]]
        assert mass(gone) == pytest.approx(max(mass(view) for view in can_be_split))
        assert sum(mass(view) for view in many) == pytest.approx(1.0)


def test_half_of_the_thresholds_follow_the_people():
    """All people are in the third of four cells: false alarms below 1e-6."""
    trees = draw_trees(blocks_of({"a": (0, 1)}), 20_000, 2, 1, 1, [np.array([0.0, 0.0, 1.0, 0.0, 0.0])])
    cuts = trees.threshold[:, 0]
    octaves = 1.0 / 8.0  # of the 8, one from 1/2 to 1, uniform in the logarithm
    in_cell = 0.5 + 0.25 * 0.25 + 0.25 * octaves * math.log2(0.75 / 0.5)
    assert abs(np.mean((cuts >= 0.5) & (cuts < 0.75)) - in_cell) < 5 * math.sqrt(in_cell * (1 - in_cell) / 20_000)


def test_marginals_are_shares_by_name_and_those_left_out_are_even():
    job = [0.5, 0.2, 0.2, 0.05, 0.05]
    one = trees_of(marginals={"job": job}).fit(FRAME)
    assert same(one, trees_of(marginals={"job": (10 * np.array(job)).tolist()}).fit(FRAME))  # of any sum
    assert not same(one, trees_of().fit(FRAME))
    assert same(one, clone(one).fit(FRAME))
    assert one.epsilon_ == 0.0
    assert same(trees_of(marginals={"job": [1e308] * 5}).fit(FRAME), trees_of(marginals={"job": [1] * 5}).fit(FRAME))


@over_rows(
    "marginals, error, message",
    [
        ([1.0], TypeError, r"\A`marginals` must be a dict .*, got <list>\.\Z"),
        (
            {"nobody": [1.0, 2.0]},
            ValueError,
            r"\A`marginals` has columns that are not in the schema: 'nobody'\. Remove them\.\Z",
        ),
        (
            {"job": [1.0, 2.0]},
            ValueError,
            r"\A`marginals` of column 'job' must be 5 nonnegative numbers, not all 0\.\Z",
        ),
        ({"job": [math.nan] * 5}, ValueError, r"\A`marginals` of column 'job'"),
        ({"job": [0.0] * 5}, ValueError, r"\A`marginals` of column 'job'"),
        ({"job": "many"}, ValueError, r"\A`marginals` of column 'job'"),
        ({"age": [1.0]}, ValueError, r"\A`marginals` of column 'age' must be two or more nonnegative numbers"),
    ],
)
def test_bad_marginals_are_rejected_by_one_line(marginals, error, message):
    with pytest.raises(error, match=message):
        trees_of(marginals=marginals).fit(FRAME)


# --- the kernel and its plain reading ---


def drawn_codes(n=300):
    draw = np.random.default_rng(0)
    codes = np.column_stack([
        draw.uniform(0, 1, n), draw.normal(0, 3, n), draw.integers(0, 72, n), draw.integers(0, 3, n)
    ])  # fmt: skip
    codes[draw.random(n) < 0.2, 0] = math.nan
    codes[:3, 1] = math.inf, -math.inf, math.nan
    return codes


@over_rows("n_leaves, depth", [(2, 1), (32, 5), (100, 24)])
def test_leaves_are_those_of_the_plain_reading(n_leaves, depth):
    blocks = blocks_of({"a": (0, 1), "b": (-3, 3), "c": [f"v{i}" for i in range(70)], "d": "flag"})
    trees = draw_trees(blocks, 12, n_leaves, depth, 11)
    codes = drawn_codes()
    columns = [codes[:, 0], codes[:, 1], codes[:, 2].astype(np.int32), codes[:, 3].astype(np.int32)]
    found = np.full((len(codes), 12), -1, np.int32)
    trees.write_leaves(columns, 0, 0, found)
    np.testing.assert_array_equal(found, [leaves_of_row(row, *arrays_of(trees)) for row in codes])
    assert trees.depth.max() <= depth
    trees.write_leaves(columns, 100, n_leaves, found)
    expected = [np.array(leaves_of_row(row, *arrays_of(trees))) + 100 + n_leaves * np.arange(12) for row in codes]
    np.testing.assert_array_equal(found, expected)


@over_rows("n_leaves, depth", [(2, 1), (5, 8), (16, 8)])
def test_leaves_by_tables_are_those_of_the_walk(n_leaves, depth):
    blocks = blocks_of({"a": (0, 1), "b": (-3, 3), "c": [f"v{i}" for i in range(70)], "d": "flag"})
    trees = draw_trees(blocks, 40, n_leaves, depth, 11)
    codes = drawn_codes(700)
    for j in range(2):  # on the thresholds
        cuts = trees.threshold[trees.is_split & (trees.column == j)][:250]
        codes[100 : 100 + len(cuts), j] = cuts
    columns = [codes[:, 0], codes[:, 1], codes[:, 2].astype(np.int32), codes[:, 3].astype(np.int32)]
    for first, stride in ((0, 0), (100, n_leaves)):
        walked, found = (np.full((len(codes), 40), -1, np.int32) for _ in range(2))
        trees.write_leaves(columns, first, stride, walked)
        LeafTables(trees, blocks).write_leaves(columns, first, stride, found)
        np.testing.assert_array_equal(found, walked)


# --- rows ---


def test_a_row_is_its_plain_columns_and_its_leaves():
    made = trees_of().fit(FRAME)
    rows, leaves = made.transform(FRAME), made.apply(FRAME)
    plain = np.array([vectorized_row(row, SCHEMA.to_dict(), "bins", 16) for row in FRAME.to_dict("records")])
    one_hot = (leaves[:, :, None] == np.arange(16)).reshape(len(FRAME), -1)
    expected = np.hstack([plain * math.sqrt(1 / 18), one_hot * math.sqrt(2 / 60)])
    assert sp.issparse(rows)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows.toarray(), expected, rtol=2.0**-22)


def test_a_number_with_many_edges_has_finer_bins_beside_them():
    """Its bins and four times as many, each at its own level; 16 edges or none give no second block."""
    edges = list(range(0, 201, 10))
    schema = {"a": {"edges": edges}, "b": {"edges": [0, 1, 10]}, "c": (0, 1)}
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-5, 210, 500), rng.uniform(0, 10, 500), rng.uniform(0, 1, 500)])
    X[0, 0] = math.nan
    made = PublicTreesEmbedding(3, schema=schema, random_state=0).fit(pd.DataFrame(X, columns=[*"abc"]))
    rows = made.transform(pd.DataFrame(X, columns=[*"abc"])).toarray()
    plain = rows[:, : 21 + 3 + 17 + 81] > 0
    assert (plain.sum(axis=1) == 4).all()
    bins, finer = plain[:, :21].argmax(axis=1), plain[:, 21 + 3 + 17 :].argmax(axis=1)
    assert (bins[0], finer[0]) == (20, 80)  # a gap
    values = np.clip(X[1:, 0], 0, 199.999)
    np.testing.assert_array_equal(bins[1:], values // 10)
    np.testing.assert_array_equal(finer[1:], values // 2.5)
    names = made.get_feature_names_out()
    assert names[21 + 3 + 17] == "a=0..2.5"
    assert len(set(names)) == len(names) == rows.shape[1]
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, rtol=1e-6)


def test_the_pattern_of_a_row_does_not_depend_on_the_row():
    rows = trees_of().fit_transform(FRAME)
    assert rows.indices.dtype == rows.indptr.dtype == np.int32
    assert np.all(np.diff(rows.indptr) == 26)
    assert rows.has_canonical_format
    assert np.all(rows.data.reshape(-1, 26) == rows.data[:26])


@over_rows("n_estimators", [1, 7, 300])
def test_every_row_has_the_norm_1_and_none_is_longer(n_estimators):
    made = trees_of(n_estimators).fit(FRAME)
    rows = made.transform(FRAME).astype(np.float64)
    squares = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    assert made.row_norm_ == 1.0
    assert squares.max() <= 1.0
    assert math.sqrt(squares.min()) >= 1.0 - 2.0**-23


@over_rows("kind", ["polars", "arrow", "array", "list"])
def test_all_kinds_of_tables_give_the_same_rows(kind):
    expected = trees_of().fit_transform(FRAME).toarray()
    by_place = TableSchema({f"x{j}": SCHEMA[name] for j, name in enumerate(FRAME.columns)})
    cells = FRAME.astype(object).where(FRAME.notna(), None)
    table, schema = {
        "polars": lambda: (pl.from_pandas(FRAME), SCHEMA),
        "arrow": lambda: (pa.Table.from_pandas(FRAME), SCHEMA),
        "array": lambda: (cells.to_numpy(dtype=object), by_place),
        "list": lambda: (cells.to_numpy(dtype=object).tolist(), by_place),
    }[kind]()
    np.testing.assert_array_equal(trees_of(schema=schema).fit_transform(table).toarray(), expected)


def test_threads_and_blocks_change_nothing(monkeypatch):
    frame = customers(500)
    expected = trees_of().fit_transform(frame)
    monkeypatch.setattr(embedding, "_ROWS", 64)
    for n_jobs in (None, 2):
        made = trees_of(n_jobs=n_jobs).fit(frame)
        np.testing.assert_array_equal(made.transform(frame).toarray(), expected.toarray())
        np.testing.assert_array_equal(made.apply(frame), trees_of().fit(frame).apply(frame))


# --- the seed ---


def test_the_seed_is_public_and_gives_the_same_trees_again():
    for seed in (0, 5, 2**40, None, np.random.RandomState(3), np.random.default_rng(3)):
        made = trees_of(random_state=seed).fit(FRAME)
        assert isinstance(made.seed_, int)
        assert same(made, trees_of(random_state=made.seed_).fit(FRAME))
        if isinstance(seed, int):
            assert made.seed_ == seed
    assert not same(trees_of(random_state=1).fit(FRAME), trees_of(random_state=2).fit(FRAME))
    assert trees_of(random_state=None).fit(FRAME).seed_ != trees_of(random_state=None).fit(FRAME).seed_


# --- a public step: it reads no row, and treats rows one by one ---


def test_a_fit_reads_no_cell_and_costs_nothing():
    cells = np.empty((3, 2), dtype=object)
    cells.fill(UnreadCell())
    made = PublicTreesEmbedding(5, schema={"x0": (0, 1), "x1": ["a"]}).fit(cells)
    assert (made.epsilon_, made.delta_) == (0.0, 0.0)
    with pytest.raises(ValueError, match=r"^column 'x0' contains nested values"):
        made.transform(cells)


CHANGES = {
    "a gap": {"age": None},
    "an extreme number": {"income": -1e300},
    "a word that nobody else has": {"job": "secret"},
    "a date far away": {"since": ROWS[4]["since"]},
    "all gaps": dict.fromkeys(KEPT),
}


@over_rows("change", CHANGES)
def test_one_row_changes_its_own_row_and_nothing_else(change):
    rows = [{**row, "age": 40, "member": False} for row in ROWS[:1] * 8]
    other = [*rows[:5], {**rows[5], **CHANGES[change]}, *rows[6:]]
    one, two = customers(8, rows=rows), customers(8, rows=other)
    fits = [trees_of().fit(each) for each in (one, two)]
    assert same(*fits)
    assert fits[0].get_feature_names_out().tolist() == fits[1].get_feature_names_out().tolist()
    assert fits[0].schema_ == fits[1].schema_
    made, other_made = fits[0].transform(one).toarray(), fits[1].transform(two).toarray()
    kept = np.arange(8) != 5
    np.testing.assert_array_equal(made[kept], other_made[kept])
    assert np.any(made[5] != other_made[5])


def test_a_row_alone_is_the_row_among_others():
    made = trees_of().fit(FRAME)
    whole, leaves = made.transform(FRAME).toarray(), made.apply(FRAME)
    order = np.random.default_rng(0).permutation(len(FRAME))
    np.testing.assert_array_equal(made.transform(FRAME.iloc[order]).toarray(), whole[order])
    for i in range(20):
        np.testing.assert_array_equal(made.transform(FRAME.iloc[[i]]).toarray()[0], whole[i])
        np.testing.assert_array_equal(made.apply(FRAME.iloc[[i]])[0], leaves[i])


class Derived(PublicTreesEmbedding):
    """A class that might do anything."""


class OwnSchema(dict):
    """A mapping that might do anything."""


def test_what_might_be_handed_the_rows_is_not_on_the_list():
    changed = trees_of()
    changed.transform = changed.fit  # type: ignore[method-assign]
    for step in (Derived(schema=SCHEMA), changed, trees_of(schema=OwnSchema(age=(18, 90)))):
        with pytest.raises(ValueError, match="Step"):
            allocate_budget(make_pipeline(step, classifier()), 1.0, 1e-5)


def test_a_budget_goes_to_the_private_steps_alone():
    accountant = PrivacyAccountant(epsilon=1.0, delta=1e-5)
    for table in (FRAME, pl.from_pandas(FRAME)):
        pipe = make_pipeline(trees_of(), classifier(accountant=accountant if table is FRAME else None))
        pipe = allocate_budget(pipe, 1.0, 1e-5).fit(table, Y)
        assert pipe.epsilon_ <= 1.0
        assert pipe[-1].epsilon_ == pytest.approx(pipe.epsilon_)
        assert pipe[0].epsilon_ == 0.0
        assert pipe.predict(table).shape == (200,)
    assert len(accountant.history) == 1
    plain = allocate_budget(make_pipeline(DPTableVectorizer(SCHEMA), classifier()), 1.0, 1e-5).fit(FRAME, Y)
    assert pipe[-1].noise_multiplier_ == plain[-1].noise_multiplier_


# --- rejections ---

BAD = {
    "nothing known": ({"schema": None}, "`schema`, `bounds` or `categories` must be set"),
    "estimated": ({"schema": ESTIMATED}, "`schema` must declare bounds or categories of all columns"),
    "both": ({"bounds": (0, 1)}, "`bounds` must be None if `schema` is set"),
    "a column that is not there": (
        {"schema": {"height": (0, 2)}},
        "`schema` declares 'height', which X does not have: its columns are 'age',",
    ),
    "no trees": ({"n_estimators": 0}, "`n_estimators` must be .*, got 0"),
    "too many leaves": (
        {"max_leaf_nodes": 2**40, "max_depth": 99},
        "n_estimators=20 trees with max_leaf_nodes=1099511627776 have more than",
    ),
    "a negative seed": ({"random_state": -1}, "`random_state` must be .*, got -1"),
    "categories of another width": (
        {"schema": None, "categories": [["a"]]},
        "`categories` must be a list with a list of categories, or None, for each",
    ),
    "nothing of a column": (
        {"schema": None, "bounds": [None] * 7, "categories": [None] * 7},
        "Column 'age' must have bounds or categories",
    ),
}


@over_rows("name", BAD)
def test_a_bad_parameter_is_rejected_by_one_line(name):
    parameters, message = BAD[name]
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        trees_of(**parameters).fit(FRAME)
    assert "\n" not in str(caught.value)
    assert caught.value.__context__ is None


BAD_TABLES = {
    "nested cells": lambda: FRAME.assign(job=[["secret"]] * 200),
    "complex numbers": lambda: FRAME.assign(age=1j),
    "dates for numbers": lambda: FRAME.assign(age=pd.to_datetime("2001-02-03")),
    "a column too few": lambda: FRAME.drop(columns="age"),
    "other names": lambda: FRAME.rename(columns={"age": "years"}),
    "sparse rows": lambda: sp.csr_matrix(np.ones((3, 7))),
}


@over_rows("name", BAD_TABLES)
def test_a_bad_table_is_rejected_by_one_line_without_a_cell(name):
    made = trees_of(5).fit(FRAME)
    for use in (trees_of(5).fit_transform, made.transform, made.apply):
        with pytest.raises((ValueError, TypeError)) as caught:
            use(BAD_TABLES[name]())
        assert "secret" not in str(caught.value)
        assert name == "other names" or "\n" not in str(caught.value).strip()
        assert caught.value.__context__ is None


def test_trees_do_not_follow_the_rows():
    shifted = FRAME.assign(age=FRAME["age"] * 0 + 18, income=1.0, job="clerk").iloc[:3]
    assert same(trees_of().fit(FRAME), trees_of().fit(shifted))


def test_it_is_a_step_that_reads_nothing():
    with config_context(on_leak="raise"):
        assert check_pipeline(make_pipeline(trees_of(), classifier())) in (None, [], ())
        check_pipeline(make_pipeline(PublicTreesEmbedding(bounds=(0, 1)), classifier()))


def test_an_estimator_that_comes_next_uses_the_norm():
    assert row_norm_of(trees_of().fit_transform(FRAME)) == 1.0
    assert allocate_budget(make_pipeline(trees_of(), classifier()), 1.0, 1e-5).fit(FRAME, Y)[-1].data_norm_ == 1.0
