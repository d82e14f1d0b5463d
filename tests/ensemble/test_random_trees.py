"""`DPRandomTreesClassifier`: what is public of it, its steps against the plain reading, and its place among tools."""

import itertools
import json
import math
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import reference
from combinations import over_rows
from interrupts import interrupt_after
from replay import assert_all_else_is_equal, moves, recording, replay
from scipy import stats
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skdp import AddRemove, PrivacyAccountant, allocate_budget
from skdp._dpsgd.models.one_hot import OneHotModel
from skdp.accounting import flatten
from skdp.ensemble import DPRandomTreesClassifier, DPRandomTreesRegressor, PublicTreesEmbedding
from skdp.ensemble.marginal_counts import count_people
from skdp.ensemble.regressor import SUMS_SENSITIVITY, UNIT_SPREAD, sum_targets, units_of_targets
from skdp.exceptions import QualityWarning
from skdp.mechanisms import GaussianMechanism
from skdp.mechanisms.bounded_sum import column_sensitivity
from skdp.mechanisms.sampling import sampling_at
from skdp.preprocessing import TableSchema
from skdp.preprocessing.schema.blocks import Block

FALSE_ALARM = 1e-6
SCHEMA = {
    "age": (0, 100),
    "work": ["clerk", "cook", "smith"],
    "born": ("1970-01-01", "1975-01-01"),
    "rank": {"categories": [1, 2, 3, 4], "kind": "ordinal"},
}


def people(n=300, seed=0, n_classes=2):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.uniform(-5, 110, n)),
            "work": rng.choice(["clerk", "cook", "smith", "never heard of", None], n),
            "born": pd.to_datetime(rng.integers(0, 365 * 5, n) * 86400, unit="s"),
            "rank": rng.integers(1, 5, n),
        }
    )
    return X, ((X["age"].fillna(0) > 50) * 1 + (X["work"] == "cook")).to_numpy() % n_classes


def model_of(n_estimators=12, **own):
    defaults = {"n_estimators": n_estimators, "max_depth": 3, "schema": SCHEMA, "classes": [0, 1], "random_state": 5}
    return DPRandomTreesClassifier(**{**defaults, **own})


def widths_of(model):
    """Widths of the blocks of coefficients, from the names of the columns of the embedding."""
    names = model.embedding_.get_feature_names_out().tolist()
    keys = [name.rpartition("=" if "=" in name else "_")[0] for name in names]
    return [len(list(group)) for _, group in itertools.groupby(keys)]


def levels_of(model, X):
    """Levels of each block, from the transformer's sparse rows."""
    embedded = model.embedding_.transform(X)
    table = embedded.indices.reshape(len(X), -1)
    return table - np.cumsum([0, *widths_of(model)[:-1]])


def weights_of(model):
    """Of blocks and intercept, as they are documented: trees from a third to two thirds, an intercept of 0.2 beside."""
    widths, n_trees = widths_of(model), model.n_estimators
    n_plain = len(widths) - n_trees
    free = len(model.coef_) * (sum(widths[:n_plain]) + 1)
    rows = model._fitted_n_public * model.sampling_rate_
    signal = rows * math.sqrt(model.n_steps_ / free) / model.noise_multiplier_
    trees = 1 / 3 + 1 / 3 * np.clip(math.log(signal / 20) / math.log(3), 0, 1)
    blocks = np.repeat(np.sqrt([(1 - trees) / n_plain, trees / n_trees]), [n_plain, n_trees])
    return blocks, 0.2 if model.fit_intercept else 0.0


def plain_rows(model, X):
    """Projected rows of norm 1."""
    weights, intercept = weights_of(model)
    return np.array([reference.one_hot_row(each, widths_of(model), weights, intercept) for each in levels_of(model, X)])


def entries_of(model):
    """Entry of the block of each column in rows of norm 1, before the projection, and number of its levels."""
    (weights, intercept), widths = weights_of(model), np.array(widths_of(model))
    unit = 1.0 / math.sqrt(weights**2 @ (1.0 - 1.0 / widths) + intercept**2)
    return np.repeat(unit * weights, widths), np.repeat(widths, widths)


# --- steps ------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("steps_alone")
@over_rows("n_classes", [2, 3])
@over_rows("fit_intercept", [False, True])
def test_one_step_is_the_clipped_mean_gradient(n_classes, fit_intercept):
    """Under a public number of 1,000 rows, whatever was drawn; the first gradient is that at scores of 0."""
    X, y = people(40, n_classes=n_classes)
    model = model_of(
        classes=range(n_classes), epsilon=None, noise_multiplier=1e-3, adjacency=AddRemove(1000),
        max_iter=1, momentum=0.0, learning_rate=1.0, max_grad_norm=0.3, average=False, fit_intercept=fit_intercept,
    ).fit(X, y)  # fmt: skip
    rows, n_outputs = plain_rows(model, X), len(model.coef_)
    theta = np.zeros(n_outputs * rows.shape[1])
    plain = reference.one_hot_clipped_gradients(rows, y, np.ones(40), theta, n_outputs, 0.3, "logistic", 0.0)
    table = -plain.sum(axis=0).reshape(n_outputs, -1) / 1000
    noise = 1e-3 * 0.3 / 1000
    expected = table[:, : model.coef_.shape[1]] * entries_of(model)[0]
    np.testing.assert_allclose(model.coef_, expected, rtol=0, atol=7 * noise)
    if fit_intercept:
        np.testing.assert_allclose(model.intercept_, table[:, -1] * rows[0, -1], rtol=0, atol=7 * noise)


RUNS = {
    "penalty": {"alpha": 0.5, "max_iter": 40},
    "last iterate": {"average": False, "max_iter": 40},
    "lots": {"sampling_rate": 0.3, "max_iter": 7},
    "one step": {"max_iter": 1},
    "add_remove": {"adjacency": AddRemove(80), "fit_intercept": False, "max_iter": 40},
    "replace_one": {"adjacency": "replace_one", "learning_rate": 3.0, "max_grad_norm": 0.1, "max_iter": 40},
}


def is_explained(model):
    """Whether coefficients are normals of that spread, less the mean of each block: k - 1 of k are free."""
    widths = np.repeat(widths_of(model), widths_of(model))
    spread = stats.chi2(len(model.coef_) * (len(widths) - len(widths_of(model))))
    square = float(np.sum((model.coef_ / model.coef_noise_) ** 2 * (1.0 - 1.0 / widths)))
    return spread.ppf(FALSE_ALARM / 2) < square < spread.isf(FALSE_ALARM / 2)


def null_fit(model, n_classes=2):
    X, y = people(60, n_classes=n_classes)
    nothing = np.zeros(60)
    nothing[0] = 1e-30  # not all may be muted
    return model, X, y, nothing


@over_rows("run, n_classes", [*((run, 2) for run in RUNS), ("penalty", 3)])
def test_spread_of_a_fit_to_null_records_is_that_of_the_price(run, n_classes):
    model, X, y, nothing = null_fit(model_of(60, classes=range(n_classes), **RUNS[run]), n_classes)
    model.fit(X, y, nothing)
    assert model.coef_noise_.shape == model.coef_.shape
    assert is_explained(model)


@over_rows("steps", [{"max_iter": 1}, {"max_iter": 40}])
def test_the_stated_spread_is_that_of_sigma_and_clip(steps):
    """T independent noises of sigma C / L each, times the step: not only what `coef_noise_` says of it."""
    own = {"average": False, "momentum": 0.0, "learning_rate": 1.0, **steps}
    model, X, y, nothing = null_fit(model_of(60, **own))
    model.fit(X, y, nothing)
    mechanism = GaussianMechanism(model.noise_multiplier_, model.max_grad_norm_)
    each = mechanism.standard_deviation / 60 * math.sqrt(model.n_steps_)
    entries, widths = entries_of(model)
    np.testing.assert_allclose(model.coef_noise_[0], each * entries * np.sqrt(1 - 1 / widths), rtol=1e-12)


def test_instalments_have_noise_of_their_own():
    model, X, y, nothing = null_fit(model_of(60, max_iter=20, epsilon=20.0))  # at 1 coefficients are shrunk
    first = model.fit(X, y, nothing).coef_noise_.copy()
    one = model.coef_.copy()
    model.partial_fit(X, y, sample_weight=nothing)  # of the same seed
    np.testing.assert_allclose(model.coef_noise_, math.sqrt(2.0) * first, rtol=0.01)  # without class counts now
    assert is_explained(model)
    correlation = np.corrcoef(one[0], (model.coef_ - one)[0])[0, 1]
    assert abs(correlation) < stats.norm.isf(FALSE_ALARM / 2) / math.sqrt(one.size - len(widths_of(model)))


@pytest.mark.usefixtures("steps_alone")
@over_rows("n_steps", [1, 33])
def test_an_interrupted_fit_keeps_its_charge_and_the_model_of_the_steps_done(n_steps):
    X, y = people()
    accountant = PrivacyAccountant()
    model = model_of(max_iter=40, accountant=accountant, average=False, random_state=7)
    interrupt_after(model, n_steps)
    model.fit(X, y)
    (charge,) = accountant.history
    assert charge.event == model.privacy_event_
    assert model.n_steps_ == n_steps
    if n_steps == 33:
        # The plan of so many steps has other noise: the same noise, learning rate and clip are given. The counts have
        # other noise all the same, of which the same trees grow with this seed.
        given = {
            "epsilon": None, "noise_multiplier": model.noise_multiplier_, "max_grad_norm": model.max_grad_norm_,
            "learning_rate": model.learning_rate_,
        }  # fmt: skip
        alone = model_of(max_iter=33, average=False, random_state=7, **given).fit(X, y)
        np.testing.assert_array_equal(alone.coef_, model.coef_)
    assert len(model.predict(X)) == len(X)


# --- one row ----------------------------------------------------------------------------------------------------------


ROW = {
    "an unknown word": {"work": "a word that is nowhere else"},
    "gaps": {"age": np.nan, "work": None, "born": pd.NaT, "rank": 9},
    "out of bounds": {"age": 1e300, "born": pd.Timestamp("2200-01-01")},
    "infinity": {"age": np.inf},
}


@over_rows(
    "name, own",
    [*((name, {}) for name in ROW), ("gaps", {"sampling_rate": 0.5, "max_iter": 5}), ("gaps", {"classes": [0, 1, 2]})],
)
def test_a_muted_row_of_a_raw_table_moves_releases_by_the_clip(name, own):
    """And a row that is exchanged by twice that; nothing else differs, warnings and trees included."""
    X, y = people()
    X.loc[7, list(ROW[name])] = list(ROW[name].values())
    whole, without, other = np.ones(len(X)), np.ones(len(X)), X.copy()
    without[7] = 0.0
    other.iloc[7] = X.iloc[8]
    model = model_of(**{"max_iter": 20, "weight_bound": 1.0, **own})
    for neighbor, factor in (((X, y, without), 1.0), ((other, y, whole), 2.0)):
        one, two = replay(lambda rows: clone(model).fit(*rows), (X, y, whole), neighbor)
        counts, *rest = moves(one, two)
        assert counts == (1.0 if factor == 1.0 else 0.0)  # the exchanged row has the same class
        assert 0.0 < max(rest) <= factor * (1 + 1e-9)
        assert_all_else_is_equal(one, two)


def test_trees_follow_from_noisy_counts_and_what_is_public():
    X, y = people()
    other = people(50, seed=9)[0].iloc[::-1].reset_index(drop=True)
    model = model_of(trees_random_state=3).fit(X, y)
    marginals = model.embedding_.marginals
    alone = PublicTreesEmbedding(12, 3, schema=SCHEMA, random_state=3, marginals=marginals).fit(other)
    assert alone.schema_ == model.embedding_.schema_
    for name, each in vars(alone._fitted_trees).items():
        np.testing.assert_array_equal(each, getattr(model.embedding_._fitted_trees, name), err_msg=name)
    assert [len(marginals[name]) for name in SCHEMA] == [33, 5, 33, 6]
    assert all(sum(each) == pytest.approx(1.0) and min(each) > 0 for each in marginals.values())
    shuffled = model_of(trees_random_state=3).fit(X[["rank", "born", "age", "work"]], y)
    np.testing.assert_array_equal(shuffled.coef_, model.coef_)  # the order of columns has no say
    assert not np.array_equal(model_of(trees_random_state=4).fit(X, y).coef_, model.coef_)


def test_neither_seed_follows_from_the_other():
    X, y = people()
    models, runs = [], []
    for trees, seed in ((0, 5), (1, 5), (0, 6), (5, 5)):
        with recording([]) as releases:
            models.append(model_of(trees_random_state=trees, random_state=seed, max_iter=5).fit(X, y))
        runs.append([each.noise for each in releases])
    same, other, fresh, another = (np.concatenate([each.ravel() for each in noises]) for noises in runs)
    grid = 2.0**-26 * np.abs(same).max()  # values are rounded to one that is no wider
    np.testing.assert_allclose(same, other, rtol=0, atol=grid)  # the trees have no say in the noise
    np.testing.assert_allclose(same, another, rtol=0, atol=grid)
    assert np.abs(same - fresh).max() > 1.0 / len(X)
    assert models[0].embedding_.seed_ == models[2].embedding_.seed_ == 0
    assert models[0].embedding_.marginals == models[1].embedding_.marginals != models[2].embedding_.marginals
    # Nor is the generator of the trees that of the noise.
    rng = np.random.default_rng(5)
    drawn = rng.normal(size=runs[3][1].size) * models[3].noise_multiplier_ * models[3].max_grad_norm_
    assert abs(np.corrcoef(drawn, runs[3][1])[0, 1]) < stats.norm.isf(FALSE_ALARM / 2) / math.sqrt(drawn.size)


# --- what is published of the model -----------------------------------------------------------------------------------


@over_rows("n_classes", [2, 3])
def test_scores_are_those_of_levels_and_leaves(n_classes):
    X, y = people(n_classes=n_classes)
    model = model_of(classes=range(n_classes), epsilon=20.0).fit(X, y)
    starts = np.cumsum([0, *widths_of(model)[:-1]])
    for start, width in zip(starts, widths_of(model), strict=True):
        np.testing.assert_allclose(model.coef_[:, start : start + width].sum(axis=1), 0.0, atol=1e-12)
    expected = np.array([model.coef_[:, starts + row].sum(axis=1) for row in levels_of(model, X)]) + model.intercept_
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores, expected[:, 0] if n_classes == 2 else expected, rtol=0, atol=1e-12)
    assert scores.shape == ((len(X),) if n_classes == 2 else (len(X), n_classes))
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(X), model.classes_[probabilities.argmax(axis=1)])
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), probabilities)
    assert model.score(X, y) > 0.8
    one = model.predict_proba(X.iloc[[11]])  # a row is scored for itself
    np.testing.assert_array_equal(one[0], probabilities[11])


def plain_importances(model):
    """Level by level and split by split, as the documentation says it."""
    embedding, n_features = model.embedding_, model.n_features_in_
    widths, trees = widths_of(model), embedding._fitted_trees
    blocks = embedding._fitted_blocks
    found = np.zeros(n_features)
    for c, noise in zip(model.coef_, model.coef_noise_, strict=True):
        start = 0
        for b, width in enumerate(widths):
            part, spread = c[start : start + width], noise[start : start + width]
            start += width
            if b < len(blocks):
                found[blocks[b].position] += np.mean(part**2) - np.mean(spread**2)
                continue
            leaf_noise = spread[0] ** 2 * width / (width - 1)  # of a leaf before the mean is taken away
            left = trees.left[b - len(blocks)]
            order = reference.leaves_from_left(left)

            def below(node, left=left, order=order):
                """Numbers of the leaves below a node."""
                if left[node] == node:
                    return [order.index(node)]
                return below(left[node]) + below(left[node] + 1)

            for node in np.flatnonzero(left != np.arange(len(left))):
                one, other = below(left[node]), below(left[node] + 1)
                weight = len(one) * len(other) / (len(one) + len(other)) / len(order)
                energy = (part[one].mean() - part[other].mean()) ** 2 - leaf_noise * (1 / len(one) + 1 / len(other))
                found[blocks[trees.column[b - len(blocks), node]].position] += weight * energy
    found = np.maximum(found, 0.0)
    return found / found.sum() if found.any() else found


@over_rows("n_classes", [2, 3])
def test_importances_follow_from_coefficients_and_what_is_public(n_classes):
    X, y = people(2000, n_classes=n_classes)
    model = model_of(40, classes=range(n_classes), epsilon=8.0).fit(X, y)
    found = model.feature_importances_
    np.testing.assert_allclose(found, plain_importances(model), rtol=1e-9, atol=1e-12)
    assert found.sum() == pytest.approx(1.0)
    assert min(found[0], found[1]) > max(found[2], found[3])  # age and work decide
    model.predict(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.feature_importances_, found)
    assert not any(isinstance(each, np.ndarray) and len(X) in each.shape for each in vars(again).values())


# --- tables -----------------------------------------------------------------------------------------------------------


def test_lost_columns_are_reported_by_noisy_counts():
    X, y = people(4_000)
    upper = X["work"].str.upper()
    lost = X.assign(born=X["born"].dt.strftime("%d.%m.%Y"), work=upper)
    model = model_of(epsilon=8.0, max_iter=2)
    with pytest.warns(QualityWarning, match=r"More than 90% of the cells of 'work', 'born' are missing, unreadable"):
        model.fit(lost, y)
    with warnings.catch_warnings(action="error", category=QualityWarning):
        model.fit(X.assign(work=upper.where(X.index % 4 > 0, X["work"])), y)  # 85% are lost, by those that were missing


BAD = {
    "missing column": (
        {},
        {"columns": ["age", "work"]},
        "`schema` declares 'born', 'rank', which X does not have: its columns are",
    ),
    "more columns": ({}, {"assign": {"more": 1}}, "`schema` does not declare 'more'"),
    "no schema": ({"schema": None}, {}, "`schema`, `bounds` and `categories` are None, and X does not carry one"),
    "words for a depth": ({"max_depth": "deep"}, {}, "got 'deep'"),
    "a generator": ({"trees_random_state": np.random.RandomState(0)}, {}, "trees_random_state"),
    "balanced": ({"class_weight": "balanced"}, {}, "class_weight='balanced'"),
    "an unknown label": ({}, {"label": 424242}, "labels that are not in classes"),
    "a cell that is a list": ({}, {"cell": ("work", [424242])}, "work"),
    "a complex column": ({}, {"assign": {"age": 424242j}}, "age"),
}


@over_rows(
    "name, within", [*((name, "alone") for name in BAD), ("no schema", "pipeline"), ("an unknown label", "pipeline")]
)
def test_bad_input_is_rejected_in_one_line_before_any_charge(name, within):
    own, changes, message = BAD[name]
    X, y = people()
    accountant = PrivacyAccountant()
    X = X[changes.get("columns", list(X))].assign(**changes.get("assign", {}))
    y[3] = changes.get("label", y[3])
    if "cell" in changes:
        X[changes["cell"][0]] = X[changes["cell"][0]].astype(object)
        X.at[6, changes["cell"][0]] = changes["cell"][1]
    model = model_of(accountant=accountant, **own)
    whole = model if within == "alone" else allocate_budget(make_pipeline(model), 1.0)
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        whole.fit(X, y)
    assert "\n" not in str(caught.value)
    assert "424242" not in str(caught.value)
    assert accountant.history == ()
    assert caught.value.__context__ is None or "424242" not in str(caught.value.__context__)


@over_rows("other", [{"n_bins": 5}, {"trees_random_state": 1}, {"schema": dict(reversed(SCHEMA.items()))}])
def test_an_instalment_on_other_columns_is_rejected_before_its_charge(other):
    X, y = people()
    accountant = PrivacyAccountant()
    model = model_of(warm_start=True, accountant=accountant, max_iter=3).fit(X, y)
    before = model.coef_.copy(), model.epsilon_
    model.set_params(**other)
    for again in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match="The trees or the schema differ"):
            again(X, y)
    assert len(accountant.history) == 1
    np.testing.assert_array_equal(model.coef_, before[0])
    assert model.epsilon_ == before[1]
    model.set_params(warm_start=False).fit(X, y)
    assert len(accountant.history) == 2


# --- tools ------------------------------------------------------------------------------------------------------------


@over_rows("other, name", [({"schema": TableSchema({**SCHEMA, "age": (0, 50)})}, "schema"),
                           ({"trees_random_state": 1}, "trees_random_state")])  # fmt: skip
def test_a_checkpoint_of_other_trees_is_rejected_before_any_charge(other, name, tmp_path):
    X, y = people()
    accountant, path = PrivacyAccountant(), tmp_path / "run.npz"

    def make(**own):
        return model_of(checkpoint=path, accountant=accountant, max_iter=10, **{"schema": TableSchema(SCHEMA), **own})

    stopped = make()
    interrupt_after(stopped, 1)
    assert stopped.fit(X, y).n_steps_ == 1
    with pytest.raises(ValueError, match=f"belongs to another run .different {name}"):
        make(**other).fit(X, y)
    assert make().fit(X, y).n_steps_ == 10
    assert len(accountant.history) == 1


def test_noise_goes_along_the_directions_that_the_projection_removes(monkeypatch):
    """Noise that is projected, of a sum that is not, would leave there what rows say: parameters show noise there."""
    thetas, clipped_sum = [], OneHotModel.clipped_gradient_sum

    def watched(bound, theta, rows, max_norm):
        thetas.append(theta.copy())
        return clipped_sum(bound, theta, rows, max_norm)

    monkeypatch.setattr(OneHotModel, "clipped_gradient_sum", watched)
    X, y = people()
    model = model_of(300, max_iter=2, momentum=0.0, learning_rate=1.0).fit(X, y)
    table, widths = thetas[1].reshape(len(model.coef_), -1), np.array(widths_of(model))
    sums = np.add.reduceat(table[:, : widths.sum()], np.cumsum([0, *widths[:-1]]), axis=1)
    each = model.noise_multiplier_ * model.max_grad_norm_ / len(X)
    spread = stats.chi2(sums.size)
    square = float(np.sum(sums**2 / widths)) / each**2
    assert spread.ppf(FALSE_ALARM / 2) < square < spread.isf(FALSE_ALARM / 2)


# --- estimates before the first step -----------------------------------------------------------------------------


def numbers(n=4000, seed=0, spread=0.05):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 2))
    return X, 7.0 + 10.0 * spread * (X[:, 0] + rng.normal(0.0, 0.3, n))


def regressor_of(**own):
    return DPRandomTreesRegressor(**{"n_estimators": 20, "bounds": (-1, 1), "y_bounds": (0, 10), "delta": 1e-5, **own})


@over_rows("adjacency", ["zero_out", "add_remove", "replace_one"])
def test_a_row_moves_the_counts_by_their_sensitivity_at_most(adjacency):
    """A row with another one in its place in all cells, weights from 0 to 1, and rows in odd places."""
    schema = TableSchema({**SCHEMA, "edges": {"edges": [0.0, 1.0, 100.0]}, "log": {"bounds": (0, 10), "scale": "log"}})
    blocks = [Block(name, j, column, "bins", 16) for j, (name, column) in enumerate(schema.items())]
    odd = [math.nan, math.inf, -math.inf, 1e300, -1e300, 0.0, 100.0, 99.999]
    rng, moved = np.random.default_rng(0), 0.0
    for value, weight in itertools.product(odd, (1.0, 0.3, 1e-300)):
        codes = [
            rng.uniform(0, 50, 30) if block.is_line else rng.integers(0, block.width, 30).astype(np.int32)
            for block in blocks
        ]
        weights = rng.uniform(0, 1, 30)
        weights[4] = weight
        other, without = [each.copy() for each in codes], weights.copy()
        for block, each in zip(blocks, other, strict=True):
            each[4] = value if block.is_line else (each[4] + 1) % block.width
        if adjacency != "replace_one":
            without[4], other = 0.0, codes
        sensitivity = column_sensitivity(len(blocks), adjacency)
        one, two = count_people(blocks, codes, weights), count_people(blocks, other, without)
        if adjacency == "replace_one":
            sensitivity *= 2.0
        moved = max(moved, np.linalg.norm(one - two) / sensitivity)
        assert one.sum() == pytest.approx(len(blocks) * weights.sum())
        assert np.linalg.norm(one - two) <= weight * sensitivity * (1 + 1e-9) + 1e-12
    assert moved == pytest.approx(1.0)


@over_rows("adjacency", ["zero_out", "replace_one"])
def test_a_row_moves_the_sums_of_targets_by_their_sensitivity_at_most(adjacency):
    rng, moved = np.random.default_rng(0), 0.0
    sensitivity = SUMS_SENSITIVITY * (2.0 if adjacency == "replace_one" else 1.0)
    for one, other, weight in itertools.product((-1.0, -0.4, 0.0, 1.0), (-1.0, 0.3, 1.0), (1.0, 0.2)):
        values, weights = rng.uniform(-1, 1, 20), rng.uniform(0, 1, 20)
        values[3], weights[3] = one, weight
        again, kept = values.copy(), weights.copy()
        again[3], kept[3] = other, weight if adjacency == "replace_one" else 0.0  # whatever a null record holds
        move = np.linalg.norm(sum_targets(values, weights) - sum_targets(again, kept))
        moved = max(moved, move)
        assert move <= sensitivity * (1 + 1e-9)
    assert moved > 0.5 * sensitivity


def test_units_are_mean_and_spread_of_the_targets():
    X, y = numbers(20_000)
    model = regressor_of(epsilon=8.0, random_state=0).fit(X, y)
    assert model.target_center_ == pytest.approx(y.mean(), abs=0.02)
    assert model.target_scale_ * 0.45 == pytest.approx(y.std(), rel=0.1)
    scores = model.embedding_._encoder.encode(model.embedding_._codes(X), X.shape[1])
    predicted = model.target_center_ + model.target_scale_ * model._scores(scores)[:, 0]
    np.testing.assert_allclose(model.predict(X), np.clip(predicted, 0, 10))
    without = regressor_of(epsilon=8.0, fit_intercept=False, random_state=0).fit(X, y)
    assert without.target_center_ == 0.0
    assert without.target_scale_ * 0.45 == pytest.approx(np.sqrt(np.mean(y**2)), rel=0.1)


def test_units_follow_from_the_noisy_sums():
    X, y = numbers(4000)
    model = regressor_of(max_iter=2, epsilon=8.0, random_state=0)
    with recording([]) as seen:
        model.fit(X, y)
    (sums,) = [each for each in seen if each.exact.shape == (3,)]
    cost = model._solver(model._target(), 1).beside_steps(sampling_at(1.0), 2)["targets"]
    mechanism = GaussianMechanism(cost * model.noise_multiplier_, SUMS_SENSITIVITY)
    (center, unit), _ = units_of_targets(sums.noisy, mechanism, fit_intercept=True)
    assert (model.target_center_, model.target_scale_) == (5.0 + 5.0 * center, 5.0 * unit)
    assert unit != 1.0


def test_wide_target_bounds_are_reported_by_noisy_sums():
    X, y = numbers(20_000)
    with pytest.warns(QualityWarning, match=r"`y_bounds` is so wide that the spread of the targets is not"):
        regressor_of(max_iter=2, y_bounds=(0, 1_000), random_state=0).fit(X, y)
    with warnings.catch_warnings(action="error", category=QualityWarning):
        regressor_of(max_iter=2, y_bounds=(5, 9), random_state=0).fit(X, y)


# --- estimates after the last step ------------------------------------------------------------------------------


def test_errors_are_those_of_the_published_model():
    """Without what they estimated: the intercept is that of the model before plus a function of the noisy sums."""
    X, y = numbers(400)
    model = regressor_of(max_iter=20, epsilon=8.0, random_state=0)
    with recording([]) as seen:
        model.fit(X, y)
    estimated = seen[-1]
    cost = model._solver(model._target(), 1).beside_steps(sampling_at(1.0), 20)["offset"]
    mechanism = GaussianMechanism(cost * model.noise_multiplier_, math.sqrt(2.0))
    means = replace(model._target(), units=model._fitted_units).means(None)
    assert means.largest == 5.0 * UNIT_SPREAD
    means = means.at_noise(mechanism.standard_deviation / 400)
    model.intercept_ = model.intercept_ - means.offset(estimated.noisy, mechanism.standard_deviation)
    errors = (y - model.predict(X)) / model.target_scale_ / means.largest
    assert means.largest < 5.0 * UNIT_SPREAD
    np.testing.assert_allclose(estimated.exact, [400.0, np.clip(errors, -1.0, 1.0).sum()], rtol=0, atol=1e-9)
    assert abs(estimated.exact[1]) > 1.0


def test_a_model_that_diverged_has_an_offset_that_no_row_decides():
    """Some leaves have infinite coefficients, and the sum of two such is NaN: of some rows, and not of others."""
    X, y = numbers(400)
    with recording([]) as releases:
        model = regressor_of(learning_rate=1e308, random_state=0).fit(X, y)
    offset = releases[-1].exact
    assert not np.isfinite(model.coef_).all()
    assert np.isfinite(offset).all()
    assert np.abs(offset[1]) <= offset[0] <= len(X)


@over_rows("make", [model_of, regressor_of])
def test_later_runs_keep_releases_beside_steps(make):
    X, y = numbers()
    y = y if make is regressor_of else (y > 7.0).astype(int)
    own = {} if make is regressor_of else {"schema": None, "bounds": (-1, 1)}
    accountant = PrivacyAccountant()
    model = make(accountant=accountant, max_iter=5, **own).fit(X, y)
    first = pickle.dumps(model.embedding_)
    model.partial_fit(X[:100], y[:100])
    model.set_params(warm_start=True).fit(X, y)
    assert pickle.dumps(model.embedding_) == first
    estimated, each_time = 2, 1  # class counts, or means and squares of targets, beside the trees
    charged = [sum(flatten(charge.event).values()) for charge in accountant.history]
    assert charged == [5 + estimated + each_time, 5 + each_time, 5 + each_time]
    fresh = model.set_params(warm_start=False, random_state=9).fit(X, y)
    assert pickle.dumps(fresh.embedding_) != first


@over_rows("make, seed, life", [(model_of, 5, "another process"), (regressor_of, None, "warm start")])
def test_resumed_run_has_releases_beside_steps(make, seed, life, tmp_path):
    """From its file: the trees and units of the first steps, and one charge."""
    X, y = numbers(400)
    y = y if make is regressor_of else (y > 7.0).astype(int)
    own = {} if make is regressor_of else {"schema": None, "bounds": (-1, 1)}
    accountant = PrivacyAccountant()
    own |= {"max_iter": 20, "accountant": accountant, "random_state": seed, "warm_start": life == "warm start"}
    model = make(checkpoint=tmp_path / "run", **own)
    interrupt_after(model, 7)
    model.fit(X, y)
    assert model.n_steps_ == 7
    resumed = model if life == "warm start" else make(checkpoint=tmp_path / "run", **own)
    before = pickle.dumps(model.embedding_), getattr(model, "target_scale_", None)
    resumed.fit(X, y)
    assert resumed.n_steps_ == 20
    assert (pickle.dumps(resumed.embedding_), getattr(resumed, "target_scale_", None)) == before
    assert len(accountant.history) == 1
    assert resumed.privacy_event_ == accountant.history[0].event
    if seed is not None:
        whole = make(**{**own, "accountant": None, "warm_start": False}).fit(X, y)
        np.testing.assert_array_equal(resumed.coef_, whole.coef_)


@over_rows("place", ["cast_weights", "run_dpsgd"])
def test_interrupt_before_the_first_step_leaves_one_release(place, tmp_path, monkeypatch):
    """What is published then is what the run that resumes has, as the file holds it."""
    X, y = numbers(400)
    accountant = PrivacyAccountant()
    own = {"max_iter": 20, "accountant": accountant, "checkpoint": tmp_path / "run"}

    def interrupted(*arguments, **keywords):
        raise KeyboardInterrupt

    begun = regressor_of(**own)
    with monkeypatch.context() as patch:
        patch.setattr(f"skdp._dpsgd.solver.{place}", interrupted)
        begun.fit(X, y)
    assert begun.n_steps_ == 0
    resumed = regressor_of(**own).fit(X, y)
    assert resumed.embedding_.marginals == begun.embedding_.marginals
    for name in ("target_center_", "target_scale_"):
        assert getattr(resumed, name) == getattr(begun, name)
    assert len(accountant.history) == 1


ESTIMATED = {
    "one thing": ({"people": [1.0] * 66}, "lacks the releases made before its first step"),
    "no mapping": ([], "is not a checkpoint file"),
    "a text": ({"people": "many", "targets": [1.0, 2.0, 3.0]}, "is not a checkpoint file"),
    "no number": ({"people": [math.nan] * 66, "targets": [1.0, 2.0, 3.0]}, "is not a checkpoint file"),
    "too few": (
        {"people": [1.0] * 65, "targets": [1.0, 2.0, 3.0]},
        "The marginal counts do not match the columns: the checkpoint file was",
    ),
}


@over_rows("name", ESTIMATED)
def test_file_with_other_releases_is_rejected_by_one_line(name, tmp_path):
    X, y = numbers(400)
    path, (estimated, message) = tmp_path / "run.npz", ESTIMATED[name]
    path.unlink(missing_ok=True)
    own = {"max_iter": 20, "checkpoint": path, "accountant": PrivacyAccountant()}
    model = regressor_of(**own)
    interrupt_after(model, 7)
    model.fit(X, y)
    with np.load(path) as file:
        arrays = dict(file)
    header = json.loads(bytes(arrays["header"])) | {"noisy_sums": estimated}
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match=message) as rejection:
        regressor_of(**own).fit(X, y)
    assert "\n" not in str(rejection.value)
    assert len(own["accountant"].history) == 1


@over_rows("bounds", [(1.0, 1.0 + 2.0**-52), (1e16, 1e16 + 2.0), (0.0, 4e-300)])
def test_targets_between_neighboring_doubles_move_the_sums_by_their_sensitivity(bounds):
    """The middle of such bounds is one of them, so that a scaled target would be 2."""
    X, _ = numbers(60)
    y, weights = np.full(60, bounds[1]), np.ones(60)
    runs = []
    for weight in (1.0, 0.0):
        weights[3] = weight
        with recording([]) as releases:
            regressor_of(y_bounds=bounds, max_iter=1, random_state=0).fit(X, y, weights)
        runs.append([each.exact / each.sensitivity for each in releases])
    assert all(np.linalg.norm(a - b) <= 1 + 1e-9 for a, b in list(zip(*runs, strict=True))[:2])


@pytest.mark.parametrize("rate", [1.0, 0.1])
def test_releases_beside_steps_have_their_share_of_the_budget(rate):
    own = {"bounds": (-1, 1), "schema": None, "sampling_rate": rate}
    for model, shares in (
        (model_of(**own), [0.01, 0.01, 0.03]),
        (regressor_of(sampling_rate=rate), [0.02, 0.03, 0.02]),
    ):
        for release, share in zip(
            model._solver(model._target(), 1).beside_steps(sampling_at(rate), 50).values(), shares, strict=True
        ):
            estimated = release * 3.0
            assert estimated**-2 / (estimated**-2 + 50 * (rate / 3.0) ** 2) == pytest.approx(share)


def test_counts_and_sums_are_those_by_hand():
    """A row of weight 0 adds nothing to them, whatever it is."""
    weights = np.array([1.0, 0.25, 0.0, 0.5])
    schema = TableSchema({"x": (0, 32), "word": ["a", "b"]})
    blocks = [Block(name, j, column, "bins", 16) for j, (name, column) in enumerate(schema.items())]
    cells = np.zeros(33 + blocks[1].width)
    cells[[0, 5, 32, 33, 34]] = [1.0, 0.25, 0.5, 1.25, 0.5]
    codes = [np.array([0.5, 5.5, 9.5, np.nan]), np.array([0, 0, 1, 1], np.int32)]
    targets = np.array([1.0, -0.5, 1.0, -7.0])
    assert count_people(blocks, codes, weights).tolist() == cells.tolist()
    assert sum_targets(targets, weights).tolist() == [1.75, 0.375, 1.5625]


def test_the_scale_of_targets_is_that_of_the_fit():
    rng = np.random.default_rng(0)
    X, accountant = rng.uniform(-1.0, 1.0, (200, 2)), PrivacyAccountant()
    model = DPRandomTreesRegressor(3, 2, bounds=(-1, 1), y_bounds=(0, 10), max_iter=2, accountant=accountant)
    before = model.fit(X, 5.0 + X[:, 0]).predict(X)
    np.testing.assert_array_equal(model.set_params(fit_intercept=False, warm_start=True).predict(X), before)
    with pytest.raises(ValueError, match=r"\Afit_intercept=False differs from earlier runs.*warm_start=False\.\Z"):
        model.fit(X, X[:, 0])
    assert len(accountant.history) == 1


def test_units_are_those_of_the_bounds_where_noise_rules():
    X, y = numbers(60)
    model = regressor_of(epsilon=0.05, random_state=0).fit(X, y)
    assert (model.target_center_, model.target_scale_) == (5.0, 5.0)
