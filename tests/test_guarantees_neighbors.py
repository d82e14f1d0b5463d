"""Change one row, watch the output: what the docstrings promise, held to the word.

A *replay* fits on D and on a neighbor D' with the same seed. What the first run released is handed to the second in
place of its own releases, so that both see the same history; then what went into each release may differ by the
declared sensitivity, and nothing else may differ at all (`replay.py`).
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from combinations import combined
from guarantee_cases import ESTIMATORS, FULL, POISSON, PUBLISHED, REGRESSORS, assert_same_value, released, seeded
from replay import assert_all_else_is_equal, moves, replay

from skdp import AddRemove, DPMLPClassifier, PrivacyAccountant, PrivacyLeakWarning, config_context
from skdp._kernels import tiles
from skdp.ensemble import PublicTreesEmbedding


def fitted(n_classes=2, kind="linear", **parameters):
    """A fit of one of `ESTIMATORS` to rows, targets and maybe weights, for `replay`."""
    return lambda data: seeded(n_classes, kind, **parameters).fit(*data)


def moves_of_steps(one, other, most=1.0):
    """How far each step moved, in clips. No release moves by more than `most` sensitivities, and nothing else moves."""
    found = moves(one, other)
    assert max(found) <= most * (1 + 1e-6)
    assert_all_else_is_equal(one, other)
    sensitivities = [each.sensitivity for each in one.releases]
    clip = max(sensitivities, key=sensitivities.count)  # that of the steps, which are the most
    return [move for move, sensitivity in zip(found, sensitivities, strict=True) if sensitivity == clip]


class Neighbors(NamedTuple):
    """Rows, and the number of the one that a neighbor mutes, with the weight that it has before."""

    X: np.ndarray
    y: np.ndarray
    row: int
    weight: float = 1.0


def only_record_of_a_class(X, y):
    y = np.where(y == 0, 1, y)
    y[7] = 0
    return Neighbors(X, y, 7)


def holder_of_a_maximum(X, y):
    X[11, 2] = 5.0
    return Neighbors(X, y, 11)


def the_one_value_in_a_constant_column(X, y):
    X[:, 1] = 0.0
    X[3, 1] = -1.0
    return Neighbors(X, y, 3)


def one_of_two_equal_rows(X, y):
    X[5], y[5] = X[6], y[6]
    return Neighbors(X, y, 5)


def row_of_enormous_norm(X, y):
    X[0] *= 1e9
    return Neighbors(X, y, 0)


def row_whose_norm_overflows(X, y):
    X[0] = np.finfo(X.dtype).max
    return Neighbors(X, y, 0)


def row_of_zeros(X, y):
    X[2] = 0.0
    return Neighbors(X, y, 2)


def row_of_enormous_weight(X, y):
    return Neighbors(X, y, 9, weight=1e6)


def last_row(X, y):
    return Neighbors(X, y, len(X) - 1)


KINDS = [
    only_record_of_a_class, holder_of_a_maximum, the_one_value_in_a_constant_column, one_of_two_equal_rows,
    row_of_enormous_norm, row_whose_norm_overflows, row_of_zeros, row_of_enormous_weight, last_row,
]  # fmt: skip


def embedded(X):
    """Rows of trees, which carry their form."""
    return PublicTreesEmbedding(9, 3, bounds=(-1.0, 1.0), random_state=0).fit_transform(X)


FORMS = [
    ("linear", np.asarray, 3, FULL),
    ("linear", np.asarray, 2, POISSON),
    ("linear", np.asarray, 2, {**FULL, "fit_intercept": False, "max_grad_norm": 0.05}),
    ("linear", sp.csr_array, 3, {**FULL, "max_grad_norm": 2.0, "data_norm": 0.5}),
    (
        "linear", sp.csr_array, 2,
        {"adjacency": AddRemove(64), "alpha": 0.1, "average": False, **FULL},
    ),
    ("linear", embedded, 2, {**FULL, "class_weight": {0: 3.0}}),
    (
        "linear", embedded, 2,
        {"adjacency": AddRemove(64), "alpha": 0.1, "average": False, **FULL},
    ),
    ("network", np.asarray, 2, {**FULL, "class_weight": {0: 0.5, 1: 3.0}}),
    ("network", np.asarray, 3, {**POISSON, "clipping": "automatic", "solver": "adam"}),
    ("network", np.asarray, 3, {"clipping": "per_layer", "max_grad_norm": (0.1, 0.3), "activation": "tanh"}),
    ("network", sp.csr_array, 3, {"activation": "logistic", "max_grad_norm": 20.0, "batch_size": 7}),
    (
        "network", sp.csr_array, 2,
        {"adjacency": AddRemove(64), "alpha": 0.1, "average": "tail", **FULL},
    ),
    ("trees regression", np.asarray, 3, {**POISSON, "fit_intercept": False}),
    ("trees regression", pd.DataFrame, 3, {**FULL, "max_grad_norm": 0.2}),
    ("trees", pd.DataFrame, 2, {**POISSON, "trees_random_state": 1}),
    ("trees", np.asarray, 2, {**FULL, "fit_intercept": False, "max_grad_norm": 0.05, "max_depth": 1, "n_bins": 300}),
    (
        "trees", np.asarray, 2,
        {"adjacency": AddRemove(64), "alpha": 0.1, "average": False, **FULL},
    ),
    ("regression", np.asarray, 3, {**POISSON, "loss": "huber", "clipping": "automatic"}),
    ("regression", sp.csr_array, 3, {**FULL, "loss": "poisson", "data_norm": 0.5, "max_grad_norm": 2.0}),
    ("regression", sp.csr_array, 3, {**FULL, "y_bounds": (-1.0, 0.5), "clipping": "per_layer"}),
]  # fmt: skip


def muted(case, to_X):
    """D, where the row has its weight, and D', where it is the null record."""
    weights = np.ones(len(case.y))
    weights[case.row] = case.weight
    without = weights.copy()
    without[case.row] = 0.0
    X = to_X(case.X)
    return (X, case.y, weights), (X, case.y, without)


@pytest.mark.parametrize("i", range(len(FORMS)), ids=[f"{f[0]}-{f[1].__name__}-{f[2:]}" for f in FORMS])
def test_muting_a_row_moves_releases_by_the_clip_and_nothing_else(draw, i):
    """Properties 5, 13 and 21: each form with three of the kinds, so that each estimator meets each kind."""
    estimator, to_X, n_classes, parameters = FORMS[i]
    for kind in KINDS[i % 3 :: 3]:
        X, y = draw(60, n_classes=n_classes)
        case = kind(X, y)
        fit = fitted(n_classes, estimator, **parameters)
        found = moves_of_steps(*replay(fit, *muted(case, to_X)))
        null = kind is row_whose_norm_overflows or (kind is row_of_zeros and not parameters.get("fit_intercept", True))
        of_levels = estimator.startswith("trees") or to_X is embedded  # rows of which none is zero or long
        if null and not of_levels:
            assert max(found) == 0.0, "such a row is a null record"
        else:
            assert max(found) > 0.01, "the row was there"
        if kind is row_of_enormous_weight:  # which is cut at 1, the bound by default
            case = case._replace(weight=1.0)
            assert found == moves_of_steps(*replay(fit, *muted(case, to_X)))


@pytest.mark.parametrize("parameters", [FULL, POISSON], ids=["full", "Poisson"])
def test_muting_a_row_in_single_precision(draw, parameters):
    # A sum of 60 float32 terms, none above C, is exact to 60 roundings of at most 60 C: worst case, Higham (2002, 4.2).
    rounding = 2 * 60 * 60 * np.finfo(np.float32).eps / 2
    for kind in KINDS:
        X, y = draw(60)
        case = kind(X.astype(np.float32), y)
        moves_of_steps(*replay(fitted(**parameters), *muted(case, np.asarray)), most=1 + rounding)


@pytest.mark.parametrize("estimator", ["network", "regression"])
@pytest.mark.parametrize("parameters", [{"clipping": "flat"}, {"clipping": "per_layer", **POISSON}])
def test_muting_a_row_in_single_precision_in_a_network(draw, parameters, estimator):
    """Whose sums are rounded, and whose clip leaves room for it: C is C here."""
    for kind in KINDS[estimator == "network" :: 2]:
        X, y = draw(60)
        case = kind(X.astype(np.float32), y)
        runs = replay(fitted(kind=estimator, **parameters), *muted(case, np.asarray))
        assert max(moves_of_steps(*runs)) <= 1.0, kind.__name__


def test_muting_a_row_of_several_labels(draw):
    """The one record that has a label, and one that has all."""
    X, _ = draw(60)
    labels = np.zeros((60, 3), int)
    labels[4] = labels[5, 1] = 1
    for row in (4, 5, 6):
        data = muted(Neighbors(X, labels, row), np.asarray)
        assert max(moves_of_steps(*replay(fitted(classes=None, kind="network"), *data))) > 0.01


ROWS_OF = [(estimator, np.asarray) for estimator in ESTIMATORS]
ROWS_OF += [("linear", sp.csr_array), ("network", sp.csr_array), ("linear", embedded)]


@pytest.mark.parametrize(("estimator", "to_X"), ROWS_OF)
def test_removing_a_row_moves_releases_by_the_clip_and_nothing_else(draw, estimator, to_X):
    """Properties 13 and 21 for add_remove, where the number of rows is private too."""
    parameters = {"adjacency": AddRemove(50), "delta": 0.05, **FULL}
    for i, kind in enumerate(KINDS):
        n_classes = 2 + i % 2
        X, y = draw(60, n_classes=n_classes)
        case = kind(X, y)
        kept = np.arange(60) != case.row
        data, data_without = (to_X(case.X), case.y), (to_X(case.X[kept]), case.y[kept])
        one, other = replay(fitted(n_classes, estimator, **parameters), data, data_without)
        moves_of_steps(one, other)
        assert any("delta=0.05 is at least 1/n for n=50 rows" in message for _, message in one.messages)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_plan_and_price_under_add_remove_do_not_see_the_number_of_rows(draw, kind):
    """Poisson lots of another number of rows are other lots; the plan, the cost and what is published stand still."""
    X, y = draw(60)
    models = [
        seeded(kind=kind, adjacency=AddRemove(100), lot_size=10, max_iter=5).fit(X[:n], y[:n]) for n in (20, 59, 60)
    ]
    for model in models[1:]:
        for name in PUBLISHED[type(model)].keys() - released(model) - {"feature_names_in_"}:
            assert_same_value(name, getattr(models[0], name), getattr(model, name))


@combined(n_classes=[2, 3], parameters=[FULL, POISSON], estimator=ESTIMATORS)
def test_exchanging_a_row_moves_releases_by_twice_the_clip(draw, n_classes, parameters, estimator):
    parameters = {"adjacency": "replace_one", "max_grad_norm": 0.1, **parameters}
    for kind in KINDS[n_classes % 2 :: 2]:
        X, y = draw(60, n_classes=n_classes)
        case = kind(X, y)
        X_other, y_other = case.X.copy(), case.y.copy()
        X_other[case.row], y_other[case.row] = -1e3, (case.y[case.row] + 1) % n_classes
        runs = replay(fitted(n_classes, estimator, **parameters), (case.X, case.y), (X_other, y_other))
        assert max(moves_of_steps(*runs, most=2.0)) > 0.5, kind.__name__


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_row_opposed_to_exchange_reaches_twice_clip(draw, kind):
    """Half of a bound is not a bound: this pair reaches it."""
    X, y = draw(60)
    y_other = y.copy()
    y_other[4] = 1 - y[4]
    fit = fitted(kind=kind, adjacency="replace_one", max_grad_norm=0.05, **FULL)
    assert max(moves_of_steps(*replay(fit, (X, y), (X, y_other)), most=2.0)) == pytest.approx(2.0, rel=1e-6)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_copies_of_a_row_move_the_sum_by_so_many_clips(draw, kind):
    """Property 1: the clip is a row's, not the sum's; this is why a bootstrap is rejected."""
    X, y = draw(60)
    X[:20], y[:20] = X[0], y[0]
    weights = np.ones(60)
    weights[:20] = 0.0
    one, other = replay(fitted(kind=kind, max_grad_norm=0.05, **FULL), (X, y, np.ones(60)), (X, y, weights))
    first = [each.sensitivity for each in one.releases].index(0.05)  # of the steps
    assert moves(one, other)[first] == pytest.approx(20.0, rel=1e-6)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_rejections_that_lie_in_the_data_are_the_documented_ones(draw, kind):
    """The one live row muted, the one label of a class unread: these neighbors are told apart, and before a charge."""
    X, y = draw(60)
    accountant = PrivacyAccountant()
    alone = np.zeros(60)
    alone[3] = 1.0
    seeded(kind=kind, accountant=accountant).fit(X, y, alone)
    with pytest.raises(ValueError, match="`sample_weight` is zero for all rows"):
        seeded(kind=kind, accountant=accountant).fit(X, y, np.zeros(60))
    told = {"y_bounds": "bounds were read from `y`"} if kind in REGRESSORS else {"classes": "read from `y`"}
    for name, message in told.items():
        with config_context(on_leak="raise"), pytest.raises(PrivacyLeakWarning, match=message):
            seeded(kind=kind, **{name: None}, random_state=None, accountant=accountant).fit(X, y)
    assert len(accountant.history) == 1


def rows_on_the_edge_of_rounding(n_blocks):
    """Float32 rows whose sums round differently when all of them shift by one place.

    Casacuberta et al. (2022), "Widespread underestimation of sensitivity in differentially private libraries", for
    sums in float32 by blocks of 512 rows. The last row is the one that leaves.
    """
    even = np.concatenate([np.full(255, 1.0), np.full(257, 2.0**-18 * 1.02 / 2)])
    odd = np.concatenate([np.zeros(511), [1.0]])
    return np.tile(np.concatenate([even, odd]), n_blocks // 2).astype(np.float32)[:, None]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_rounding_does_not_add_up_to_more_than_the_clip(n_jobs, exact):
    """All rows behind the one that leaves are summed in other blocks: the sum may still move by one clip only."""
    X = rows_on_the_edge_of_rounding(2048)
    for rows in (X, X[:-1]):
        seeded(
            epsilon=None, noise_multiplier=1.0, adjacency=AddRemove(10**4), max_iter=1,
            fit_intercept=False, max_grad_norm=0.5, n_jobs=n_jobs,
        ).fit(rows, np.zeros(len(rows), int))  # fmt: skip
    assert abs(exact[0] - exact[1])[0] <= 0.5 * (1 + 1e-6)


def test_rounding_in_a_network_does_not_add_up_to_more_than_the_clip(exact):
    """The first row leaves and 1,000,000 rows move up by one place: in float32 the blocks would make 2 C of it."""
    b = tiles.SUMMED_ROWS // 2
    small = 2.0**-24 * b * 1.02  # a little over half a unit in the last place of the sum of b rows
    pair = np.concatenate([np.ones(b), np.full(b, small), np.full(2 * b - 1, 1e-20), [1.0]])
    # Of gradients (1/2, 1/2, 1/2, 1/2) in the intercepts: of norm 1.
    weights = np.tile(pair, 2**18 // b).astype(np.float32)
    X, labels = np.zeros((len(weights), 2), np.float32), np.zeros((len(weights), 4), np.int8)
    for kept in (slice(None), slice(1, None)):
        DPMLPClassifier(
            (), classes=range(4), epsilon=None, noise_multiplier=1.0, delta=1e-9,
            adjacency=AddRemove(10**6), sampling_rate=1.0, max_iter=1, max_grad_norm=1.01,
        ).fit(X[kept], labels[kept], weights[kept])  # fmt: skip
    steps = [each for each in exact if each.shape == (12,)]
    moved = np.linalg.norm(steps[0] - steps[1])
    assert 0.99 < moved <= 1.01


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_one_more_class_among_the_labels_is_not_told(draw, kind):
    """scikit-learn warns when more than half of the labels differ; with `classes` given nobody must learn that."""
    X, _ = draw(40)
    y = np.arange(40) % 20
    for labels in (y, np.concatenate([[20], y[1:]])):
        with warnings.catch_warnings(action="error"):
            warnings.filterwarnings("ignore", message="40 rows are too few|Classes ")
            seeded(21, kind, random_state=None, delta=1e-3, max_iter=1).fit(X, labels)
