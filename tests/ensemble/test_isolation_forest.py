"""DPIsolationForest: what one row can move, what is made of the counts, and its place among scikit-learn's tools."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from combinations import over_rows
from rejections import assert_rejected
from relations import with_n_public
from replay import moves, replay
from sklearn.ensemble import IsolationForest
from sklearn.ensemble._iforest import _average_path_length
from sklearn.metrics import roc_auc_score

from skdp import DPIsolationForest
from skdp.ensemble.embedding import PublicTreesEmbedding
from skdp.ensemble.isolation_forest import (
    _boxes_of_nodes,
    _places,
    average_path_length,
    draw_leaves,
    path_lengths,
    weigh,
)

SCHEMA = {"age": (0.0, 100.0), "job": ["clerk", "nurse", "pilot", "smith"], "pay": (0.0, 10.0), "size": ["s", "m", "l"]}


def forest(*, adjacency=None, **parameters):
    given = {"n_estimators": 20, "max_leaf_nodes": 16, "bounds": (-1.0, 1.0), "random_state": 0, "delta": 1e-5}
    return DPIsolationForest(**{**given, **parameters}, adjacency=with_n_public(adjacency, 10_000))


def draw(n, n_outliers=0):
    rng = np.random.default_rng(0)
    return np.vstack([rng.normal(0.2, 0.08, (n - n_outliers, 3)).clip(-1, 1), rng.uniform(-1, 1, (n_outliers, 3))])


def table(n, gaps=0):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"age": rng.normal(40, 8, n), "job": rng.choice(["clerk", "nurse", "actor"], n, p=[0.7, 0.2, 0.1])}
    )
    frame["pay"], frame["size"] = rng.uniform(4, 6, n), rng.choice(["s", "m"], n)
    frame.loc[: gaps - 1, ["age", "job"]] = None
    return frame


@pytest.fixture(scope="module")
def fitted():
    return forest(n_estimators=50, max_leaf_nodes=64, random_state=None, contamination=0.05).fit(draw(5000, 250))


@pytest.fixture(scope="module")
def trees_of_table():
    """Trees with numbers and levels, their blocks, and the leaves of some rows."""
    frame = table(400)
    embedding = PublicTreesEmbedding(12, 6, max_leaf_nodes=24, schema=SCHEMA, random_state=1).fit(frame)
    codes = embedding._codes(frame)
    return embedding._fitted_trees, embedding._fitted_blocks, codes, embedding._encoder.leaves(codes)


# --- one row ----------------------------------------------------------------------------------------------------------


def test_a_row_that_is_added_and_rows_that_share_no_leaf_reach_the_sensitivity():
    X = np.vstack([draw(50), [[0.9, 0.9, 0.9]]])
    assert moves(*replay(forest().fit, X, X[:-1])) == [pytest.approx(1.0, rel=1e-9)]
    other = X.copy()
    other[-1] = -0.9  # far enough for some cut to part them
    model = forest(n_estimators=1, max_leaf_nodes=64, max_depth=20, adjacency="replace_one")
    assert moves(*replay(model.fit, X, other)) == [pytest.approx(2.0, rel=1e-9)]


def test_trees_are_those_of_the_public_seed_and_no_row_decides_them():
    one = forest().fit(draw(50)).embedding_
    other = forest(random_state=7, noise_multiplier=9.0, epsilon=None).fit(-draw(90)).embedding_
    alone = PublicTreesEmbedding(20, 10, max_leaf_nodes=16, bounds=(-1.0, 1.0), random_state=0).fit(draw(5))
    for each in (other, alone):
        np.testing.assert_array_equal(one._fitted_trees.threshold, each._fitted_trees.threshold)
        np.testing.assert_array_equal(one._fitted_trees.column, each._fitted_trees.column)


# --- what is made of the counts ---------------------------------------------------------------------------------------


def test_average_path_lengths_are_those_of_scikit_learn():
    counts = np.array([0, 1, 2, 3, 10, 256, 100_000])
    np.testing.assert_allclose(average_path_length(counts), _average_path_length(counts))
    assert average_path_length([-5.0, 1.5]).tolist() == [0.0, 0.5]
    assert (np.diff(average_path_length(np.linspace(-1, 50, 500))) >= 0).all()


def test_path_lengths_are_steps_from_the_root_and_the_rest_of_the_search(trees_of_table):
    trees = trees_of_table[0]
    counts = np.random.default_rng(0).uniform(-5, 50, (trees.n_trees, trees.n_leaves))
    found, seen = path_lengths(trees, counts), np.zeros(counts.shape, bool)
    for t in range(trees.n_trees):
        waiting = [(0, 0)]
        while waiting:
            node, depth = waiting.pop()
            left = int(trees.left[t, node])
            if left != node:
                waiting += [(left, depth + 1), (left + 1, depth + 1)]
                continue
            leaf = trees.leaf[t, node]
            seen[t, leaf] = True
            assert found[t, leaf] == pytest.approx(depth + average_path_length(counts[t, leaf]))
    assert seen.sum() > 12 * 20


def test_scores_follow_from_leaves_and_counts(fitted):
    X = draw(20, 10)
    leaves, counts = fitted.embedding_.apply(X), np.round(fitted.leaf_counts_, 6)  # millionths are left out
    assert counts.sum(axis=1).mean() == pytest.approx(fitted.n_rows_) == pytest.approx(5000, abs=500)
    lengths = path_lengths(fitted.embedding_._fitted_trees, counts)[np.arange(50), leaves].mean(axis=1)
    expected = -(2.0 ** (-lengths / average_path_length(round(fitted.n_rows_, 6))))
    np.testing.assert_allclose(fitted.score_samples(X), expected)
    np.testing.assert_allclose(fitted.decision_function(X), expected - fitted.offset_)
    np.testing.assert_array_equal(fitted.predict(X), np.where(expected < fitted.offset_, -1, 1))
    assert forest().fit(X).offset_ == -0.5
    assert not hasattr(fitted, "fit_predict")


def test_outliers_are_found_as_by_scikit_learn(fitted):
    X, is_outlier = draw(5000, 250), np.arange(5000) >= 4750
    peer = IsolationForest(n_estimators=50, random_state=0).fit(X)
    theirs = roc_auc_score(is_outlier, -peer.score_samples(X))
    assert roc_auc_score(is_outlier, -fitted.score_samples(X)) > theirs - 0.01
    assert 0.01 < (fitted.predict(X) == -1).mean() < 0.1
    assert fitted.epsilon_ <= 1.0


def test_a_node_sees_the_rows_that_reach_it(trees_of_table):
    """The box of its leaf holds each row, in each tree, and no other box of a leaf does."""
    trees, blocks, codes, leaves = trees_of_table
    for t in range(trees.n_trees):
        seen = _boxes_of_nodes(trees, blocks, t, _places(trees, blocks)[t])
        in_tree = np.arange(trees.left.shape[1]) <= 2 * trees.is_split[t].sum()
        for node in np.flatnonzero(in_tree & ~trees.is_split[t]):
            held = np.ones(len(leaves), bool)
            for j, (block, each) in enumerate(zip(blocks, codes, strict=True)):
                if block.is_line:
                    place = block.line.share_at(each)
                    held &= (place >= seen.low[node, j]) & ((place < seen.high[node, j]) | (seen.high[node, j] == 1.0))
                else:
                    held &= seen.levels[node, j][each]
            np.testing.assert_array_equal(held, leaves[:, t] == trees.leaf[t, node])


def test_people_who_are_drawn_and_weighed_fill_leaves_as_counts_say(trees_of_table):
    trees, blocks, _, leaves = trees_of_table
    counts = np.array([np.bincount(each, minlength=trees.n_leaves) for each in leaves.T]) * 100.0
    drawn = draw_leaves(trees, blocks, counts, 2000, np.random.default_rng(0))
    weights = weigh(drawn, counts, 1.0)
    assert weights.sum() == pytest.approx(1.0)
    for t in range(trees.n_trees):
        share = np.bincount(drawn[:, t], weights, minlength=trees.n_leaves)
        assert np.abs(share - counts[t] / counts[t].sum()).sum() / 2 < 0.1


@over_rows("epsilon", [0.01, 1.0])
def test_more_noise_than_rows_still_gives_scores(epsilon):
    model = forest(epsilon=epsilon, random_state=3, contamination=0.2).fit(draw(5))
    scores = model.score_samples(draw(30, 20))
    assert ((scores >= -1) & (scores <= 0)).all()
    assert -1 <= model.offset_ <= 0


def test_weights_and_units_are_what_is_counted():
    X = np.repeat([[-0.5, -0.5], [0.5, 0.5]], 500, axis=0)
    weights = np.repeat([4.0, 0.0], 500)
    one = forest(epsilon=20.0, weight_bound=4.0).fit(X, sample_weight=weights)
    assert one.n_rows_ == pytest.approx(2000, abs=100)
    assert one.score_samples([[-0.5, -0.5]]) > one.score_samples([[0.5, 0.5]]) + 0.1
    labels = np.concatenate([np.arange(500), 500 + np.arange(500) // 10])  # ten rows of a unit add what one adds
    of_groups = forest(epsilon=20.0).fit(X, groups=labels)
    assert of_groups.privacy_unit_ == "group"
    assert of_groups.n_rows_ == pytest.approx(550, abs=25)


# --- bad input --------------------------------------------------------------------------------------------------------

X_GOOD = draw(40)


@over_rows("kind", [sp.csr_array, sp.coo_array])
def test_sparse_rows_give_what_the_same_rows_give_as_an_array(fitted, kind):
    X = draw(300, 20)
    X[X < 0.2] = 0.0
    X[5, 1], X[6, 2] = np.nan, np.inf
    dense, sparse = (forest().fit(rows) for rows in (X, kind(X)))
    np.testing.assert_array_equal(sparse.leaf_counts_, dense.leaf_counts_)
    np.testing.assert_array_equal(sparse.score_samples(X), dense.score_samples(kind(X)))
    np.testing.assert_array_equal(fitted.predict(kind(X)), fitted.predict(X))


BAD_INPUT = [
    ({"max_depth": 2.5}, {}, ["`max_depth` must be"]),
    ({"contamination": 0.6}, {}, ["`contamination` must be", "'auto'"]),
    ({"contamination": "few"}, {}, ["`contamination` must be", "(0, 0.5]", "got 'few'"]),
    ({"trees_random_state": -1}, {}, ["`trees_random_state` must be"]),
    ({"bounds": [(0, 1)] * 2}, {}, ["`bounds` has 2 entries, but X has 3 columns"]),
    ({"bounds": None}, {}, ["`schema`, `bounds` and `categories` are None", "TableSchema"]),
    ({}, {"X": sp.csr_matrix(X_GOOD.astype(complex))}, ["Complex data not supported"]),
]


@over_rows("parameters, given, words", BAD_INPUT)
def test_bad_input_is_rejected_in_one_line_before_any_charge(parameters, given, words):
    assert_rejected(forest, parameters, {"X": X_GOOD, **given}, words, [str(X_GOOD[7, 1])])
