"""What columns do: equal to what predictions say, with the noise of the coefficients, and without a row."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest

from skdp import DPGaussianNB, DPLogisticRegression, DPRidge, PrivacyAccountant, privacy_report, tabular_pipeline
from skdp.ensemble import DPRandomTreesClassifier, DPRandomTreesRegressor
from skdp.inspection import centered_rows, column_effects, score_of

SCHEMA = {
    "age": (18, 90),
    "grade": {"kind": "ordinal", "categories": ["low", "middle", "high"]},
    "town": ["A", "B"],
    "owner": "flag",
}


def people(n=1500):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n).astype(float),
            "grade": rng.choice(["low", "middle", "high"], n),
            "town": rng.choice(["A", "B", "C"], n),
            "owner": rng.integers(0, 2, n).astype(bool),
        }
    )
    return table, (table["age"] + 20 * (table["grade"] == "high") + rng.normal(0, 10, n) > 55).astype(int)


@pytest.fixture(scope="module")
def fitted():
    table, y = people()
    given = {"schema": SCHEMA, "random_state": 0}
    pipelines = {
        "linear": tabular_pipeline(DPLogisticRegression(classes=[0, 1]), **given),
        "ridge": tabular_pipeline(DPRidge(), y_bounds=(-5, 6), epsilon=50.0, **given),
        "trees": tabular_pipeline(DPRandomTreesClassifier(20, classes=[0, 1]), epsilon=8.0, **given),
    }
    return {name: each.fit(table, y) for name, each in pipelines.items()}


def cell(effect, label):
    return effect.effect[effect.labels[0].index(label)]


@pytest.mark.parametrize(("name", "function"), [("linear", "decision_function"), ("ridge", "predict")])
def test_effects_of_a_linear_model_are_differences_of_its_scores(fitted, name, function):
    """Any other cells may be there: the curves add up."""
    model = fitted[name]
    effects = {each.names[0]: each for each in column_effects(model)}
    assert list(effects) == list(SCHEMA)
    row = pd.DataFrame({"age": [50.0], "grade": ["middle"], "town": ["B"], "owner": [True]})
    for column, one, other, labels in [
        ("grade", "low", "high", ("low", "high")), ("town", "A", "C", ("A", "other")),
        ("town", "A", None, ("A", "missing")), ("owner", True, False, ("true", "false")),
    ]:  # fmt: skip
        scores = [getattr(model, function)(row.assign(**{column: [value]}))[0] for value in (one, other)]
        found = [cell(effects[column], label) for label in labels]
        assert found[0] - found[1] == pytest.approx(scores[0] - scores[1], abs=1e-6)
    ages, curve = [float(each) for each in effects["age"].labels[0][:-1]], effects["age"].effect
    scores = np.array([getattr(model, function)(row.assign(age=[age]))[0] for age in ages])
    # Labels have three digits, so that the slope of a number is off by as much.
    assert np.allclose(np.diff(curve[:-1]), np.diff(scores), atol=2e-3 if name == "ridge" else 1e-6)
    assert effects["age"].n_ordered == (len(ages),)
    assert effects["town"].n_ordered == (0,)


def test_the_effect_of_trees_is_the_mean_score_over_public_rows(fitted):
    model = fitted["trees"]
    score = score_of(model)
    (grade,) = column_effects(model, features=["grade"])
    rows = np.column_stack(
        [block.as_doubles(codes) for block, codes in zip(model[-1].embedding_._fitted_blocks, score._rows, strict=True)]
    )
    means = []
    for level in (0.0, 1.0, 2.0, 3.0, np.nan):
        rows[:, 1] = level
        means.append(model[-1].decision_function(rows).mean())
    assert np.allclose(np.diff(grade.effect), np.diff(means), atol=1e-9)
    assert grade.effect @ score.cells(1).shares == pytest.approx(0.0, abs=1e-12)
    assert grade.labels == (("low", "middle", "high", "other", "missing"),)
    assert grade.unit == "log-odds of class 1"
    low, high, difference, noise = grade.difference
    assert high == "high"
    assert low in ("low", "middle")
    assert difference > noise > 0


@pytest.mark.parametrize("features", [["age"], [("age", "grade")]])
def test_noise_is_that_of_projected_coefficients(fitted, features):
    """By the covariance of noise that is projected block by block, written out."""
    model = fitted["trees"][-1]
    (effect,) = column_effects(fitted["trees"], features=features)
    widths, noise, start = model.embedding_._encoder.form.blocks.level_counts, model.coef_noise_[0], 0
    names = [features[0]] if isinstance(features[0], str) else features[0]
    score = score_of(fitted["trees"])
    rows = centered_rows(score, [list(SCHEMA).index(name) for name in names])[1].reshape(-1, len(noise))
    variance = np.zeros(len(rows))
    for width in widths.tolist():
        part, before = rows[:, start : start + width], noise[start] ** 2 / (1 - 1 / width)
        covariance = before * (np.eye(width) - 1 / width)
        assert np.allclose(np.diag(covariance), noise[start : start + width] ** 2)
        variance += np.einsum("ij,jk,ik->i", part, covariance, part)
        start += width
    assert np.allclose(effect.noise.ravel() ** 2, variance, rtol=1e-9)


def test_pairs_are_what_single_columns_leave():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (3000, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    model = DPRandomTreesClassifier(60, bounds=(-1, 1), classes=[0, 1], epsilon=20.0, random_state=0).fit(X, y)
    pair, alone = column_effects(model, features=[("x0", "x1"), "x0"])
    assert pair.effect.shape == (8, 8)
    corners = pair.effect[[0, -1, 0, -1], [0, -1, -1, 0]]
    assert (corners[:2] > 3 * pair.noise[0, 0]).all()
    assert (corners[2:] < -3 * pair.noise[0, 0]).all()
    assert np.ptp(alone.effect[:-1]) < np.ptp(pair.effect) / 3
    score = score_of(model)
    for k in (0, 1):
        cells = score.cells(k, 8).shares[:8]
        assert np.allclose(np.tensordot(cells / cells.sum(), pair.effect, (0, k)), 0.0, atol=1e-9)


def test_a_linear_model_has_no_pairs(fitted):
    (pair,) = column_effects(fitted["linear"], features=[("age", "town")])
    assert np.allclose(pair.effect, 0.0, atol=1e-12)


def test_targets_of_trees_are_in_their_own_unit():
    X = np.random.default_rng(2).uniform(0, 1, (2000, 1))
    model = DPRandomTreesRegressor(20, bounds=(0, 1), y_bounds=(0, 1000), epsilon=20.0, random_state=0)
    (effect,) = column_effects(model.fit(X, 1000 * X[:, 0]))
    ends = model.predict([[0.02], [0.98]])
    assert effect.effect[-2] - effect.effect[0] == pytest.approx(ends[1] - ends[0], rel=0.1)
    assert effect.unit == "target"


@pytest.mark.parametrize("name", ["linear", "ridge", "trees"])
def test_effects_read_no_row_and_cost_nothing(fitted, name):
    """A function of the fitted state: the same from a pickle, without a charge."""
    model = fitted[name]
    before = model.epsilon_, str(model.privacy_event_)
    there = column_effects(model)
    again = column_effects(pickle.loads(pickle.dumps(model)))
    assert all(np.array_equal(one.effect, other.effect) for one, other in zip(there, again, strict=True))
    assert (model.epsilon_, str(model.privacy_event_)) == before
    assert (there[0].noise is None) == (name == "ridge")


def test_several_classes_have_one_score_each():
    table, y = people()
    y = y + (table["town"] == "A")
    accountant = PrivacyAccountant(epsilon=5.0, delta=1e-5)
    model = tabular_pipeline(
        DPRandomTreesClassifier(10, classes=[0, 1, 2]), schema=SCHEMA, accountant=accountant, random_state=0
    ).fit(table, y)
    spent = accountant.remaining()
    (effect,) = column_effects(model, features=["town"], class_label=2)
    assert effect.unit == "score of 2"
    assert accountant.remaining() == spent
    with pytest.raises(ValueError, match="`class_label` must be one of the 3 classes in `classes_`, got None"):
        column_effects(model)
    assert privacy_report(model).to_dict()["effects"] == []


def bayes():
    X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    return DPGaussianNB(classes=[0, 1], bounds=(-1, 1), random_state=0).fit(X, (X[:, 0] > 0).astype(int))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda fitted: column_effects(bayes()), "not available for DPGaussianNB. Pass a fitted random trees model"),
        (lambda fitted: column_effects(fitted["linear"][-1]), "not available for DPLogisticRegression"),
        (
            lambda fitted: column_effects(fitted["trees"], features=["height"]),
            "`features` has 'height', which is not a column",
        ),
        (
            lambda fitted: column_effects(fitted["trees"], class_label=0),
            "`class_label` must be None or 1 for binary models",
        ),
        (lambda fitted: column_effects(fitted["ridge"], class_label=0), "`class_label` must be None for DPRidge"),
    ],
)
def test_what_has_no_effects_is_rejected(fitted, call, message):
    with pytest.raises(ValueError, match=message):
        call(fitted)


def test_rows_that_are_scaled_down_are_rejected():
    table, y = people(400)
    linear = DPLogisticRegression(classes=[0, 1], data_norm=0.5)
    model = tabular_pipeline(linear, schema=SCHEMA, random_state=0).fit(table, y)
    with pytest.raises(ValueError, match="`data_norm_` is below the norm of the rows"):
        column_effects(model)


def test_the_report_has_the_numbers(fitted):
    report = privacy_report(fitted["trees"])
    rows = report.to_dict()["effects"]
    assert {each["column"] for each in rows} == set(SCHEMA)
    assert [each["difference"] for each in rows] == sorted((each["difference"] for each in rows), reverse=True)
    by_name = {each.names[0]: each.difference for each in column_effects(fitted["trees"])}
    assert {each["column"]: (each["low"], each["high"], each["difference"], each["noise"]) for each in rows} == by_name
    assert "Effects of the columns" in str(report)
    assert json.loads(report.to_json())["effects"] == rows
    assert "not available" in str(privacy_report(fitted["ridge"]))
