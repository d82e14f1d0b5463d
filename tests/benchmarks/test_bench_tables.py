"""The benchmark over all tables: what is public of them, the fifth that is held out, the runs and the page.

Tests of the tables need the data sets, which ``SKDP_DATA`` names.
"""

import importlib.util
import itertools
import json
import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skdp.ensemble import PublicTreesEmbedding
from skdp.preprocessing import DPTableVectorizer, TableSchema

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def module(name):
    """A script of the benchmarks, which are no package."""
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    made = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


tables = module("benchmark_tables")
references = module("references")
contestants = module("contestants")
tables_report = module("tables_report")
bench_tables = module("bench_tables")
SIZES = {
    "adult": 32_561, "fulton": 25_766, "fulton_employed": 25_766, "colorado": 31_306, "credit": 30_000,
    "adult_weighted": 32_561, "fulton_status": 25_766, "colorado_status": 31_306,
    "housing": 20_640, "wine": 6_497, "elevators": 16_499,
    **{f"fulton_{target}": 25_766 for target in ("income", "log_income", "age", "educ")},
    **{f"california_{target}": 10_000 for target in ("income", "log_income", "age", "educ")},
}  # fmt: skip


@pytest.fixture(scope="module")
def data():
    folder = os.environ.get("SKDP_DATA")
    if not folder:
        pytest.skip("SKDP_DATA is not set: the folder of the public data sets (pums_fulton_ga.csv.gz ...)")
    return folder


@pytest.fixture(scope="module", params=SIZES)
def named(request, data):
    return request.param, tables.load(request.param, data)


@pytest.mark.parametrize("name", SIZES)
def test_the_held_out_fifth_is_the_seeded_draw(name):
    assert set(SIZES) == set(tables.TABLES)
    rows = tables.held_out(name)
    np.testing.assert_array_equal(rows, tables.draw_held_out(SIZES[name]))
    assert len(np.unique(rows)) == SIZES[name] // 5
    assert rows.max() < SIZES[name]


def test_sizes_and_labels(named):
    name, table = named
    assert table.X.shape == (SIZES[name], len(table.schema))
    assert table.y.shape == (SIZES[name],)
    if table.is_regression:
        low, high = table.y_bounds
        assert np.mean((table.y < low) | (table.y > high)) < 0.06  # houses are capped at a dollar above
    else:
        several = {"fulton_status": 3, "colorado_status": 5}
        assert set(table.y) == set(table.classes) == set(range(several.get(name, 2)))
    assert (table.weights is not None) == (table.weight_bound is not None) == (name == "adult_weighted")
    if table.weights is not None:
        assert table.weights.shape == table.y.shape
        assert 0 < np.mean(table.weights > table.weight_bound) < 0.02


def test_the_schema_is_complete_and_names_every_category(named):
    _, table = named
    assert TableSchema(table.schema).is_complete
    vectorizer = DPTableVectorizer(table.schema).fit(table.X)
    rows = vectorizer.transform(table.X)
    assert vectorizer.epsilon_ == 0.0
    others = [i for i, each in enumerate(vectorizer.get_feature_names_out()) if each.endswith("=other")]
    assert not rows[:, others].sum()
    for column, entry in TableSchema(table.schema).items():
        kind, values = tables.read_entry(table.schema[column])
        assert kind == (entry.kind if entry.kind != "flag" else "category")
        if kind == "number":
            assert tuple(values) == entry.bounds
        else:
            assert tuple(map(str, values)) == (entry.categories or ("0", "1"))
    trees = PublicTreesEmbedding(4, schema=table.schema, random_state=0).fit(table.X)
    assert trees.transform(table.X.head(100)).shape[0] == 100


# --- Runs -------------------------------------------------------------------------------------------------------------


def test_splits_are_those_of_their_protocol():
    n, held = SIZES["wine"], set(tables.held_out("wine"))
    for protocol, whole in (("splits", set(range(n))), ("dev", set(range(n)) - held), ("held-out", set(range(n)))):
        train, test = contestants.split("wine", n, protocol, 0)
        assert not set(train) & set(test)
        assert set(train) | set(test) == whole
        assert len(test) == len(whole) // 5
        again = contestants.split("wine", n, protocol, 1)[1]
        assert (set(again) == set(test)) == (protocol == "held-out")
    assert set(test) == held


@pytest.mark.parametrize("is_regression", [False, True])
def test_ours_and_models_without_privacy_on_a_table_made_up(is_regression):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.uniform(-1, 1, 2000), "b": rng.integers(0, 2, 2000), "c": rng.choice([*"xyz"], 2000)})
    y = X["a"] + (X["c"] == "x") > 0
    label = (None, (0, 1)) if is_regression else ([0, 1], None)
    table = tables.Table(X, y.to_numpy(int), {"a": (-1, 1), "b": "flag", "c": [*"xyz"]}, *label, 1e-5)
    for name, model in contestants.MODELS.items():
        if model.takes(table) and model.home == "here":
            scaled = DPTableVectorizer(table.schema, numbers=model.numbers, sparse_output=False)
            rows = scaled.fit_transform(X) if model.is_encoded else X
            fitted = model.make(table, 4.0).fit(rows[:1500], table.y[:1500])
            found = contestants.score(table, fitted, rows[1500:], table.y[1500:])
            assert found["score"] > (0.5 - 1e-9 if name == "share" else 0.3 if is_regression else 0.9), name
            assert is_regression or (found["log_loss"] < 0.7 and len(found["curve"][0]) == 10)


def test_beliefs_by_hand():
    """20 rows in ten bins of two: probabilities .25 and .75; shares are 0 in the first bin, 1 in the last, else .5."""
    probability = np.repeat([0.25, 0.75], 10)
    y = np.array([0, 0, *[0, 1] * 4, *[0, 1] * 4, 1, 1])
    found = contestants.beliefs(y, probability)
    wrong = (2 * 0.25 + 18 * 0.25) / 20
    draws = np.random.default_rng(0)
    by_chance = []
    for _ in range(50):
        labels = (draws.random(20) < probability).reshape(10, 2).mean(axis=1)
        by_chance.append(np.abs(labels - probability.reshape(10, 2).mean(axis=1)).mean())
    assert found["ece"] == pytest.approx(wrong - np.mean(by_chance), rel=1e-12)
    assert found["ratio"] == 1.0
    assert found["brier"] == pytest.approx(np.mean((probability - y) ** 2), rel=1e-12)
    assert found["log_loss"] == pytest.approx(
        -np.mean(np.log(np.where(y == 1, probability, 1 - probability))), rel=1e-9
    )
    assert found["curve"][0] == [0.25] * 5 + [0.75] * 5
    assert found["curve"][1] == [0.0, *[0.5] * 8, 1.0]


def test_weights_reach_the_model_and_the_score(monkeypatch):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.uniform(-1, 1, 2000), "b": rng.integers(0, 2, 2000)})
    y = (rng.random(2000) < 0.3).astype(int)
    weights = np.where(y == 1, 90.0, 10.0)
    table = tables.Table(X, y, {"a": (-1, 1), "b": "flag"}, [0, 1], None, 1e-5, weights, 100.0)
    monkeypatch.setattr(contestants, "load", lambda name, folder: table)
    monkeypatch.setattr(contestants, "split", lambda *given: (np.arange(1500), np.arange(1500, 2000)))
    for name in ("default", "logistic", "linear, not private", "boosted trees, not private", "share"):
        found = contestants.Worker("made up", name, "").fit("splits", 80.0, 0)
        assert found["ratio"] == pytest.approx(1.0, abs=0.1), name  # without weights it would be .4


# --- The page ---------------------------------------------------------------------------------------------------------

RESULTS = {
    "wine/ridge/1": {"score": [0.25, 0.35], "seconds": [1.0, 2.0], "first": 4.0},
    "wine/ridge/8": {"score": [0.5, 0.5], "seconds": [1.0, 3.0]},
    "wine/diffprivlib/8": {"score": [-30.0, 0.5], "seconds": [1.0, 3.0], "first": 2.0},
    "wine/DP-EBM/8": {"score": [0.4, 0.6], "seconds": [1.0, 3.0], "first": 2.0},
    "wine/DP-EBM, lists/8": {"score": [0.45, 0.54, 0.9], "seconds": []},  # the third split is easy
    "wine/boosted trees, not private/-": {"score": [0.625], "seconds": [1.0], "first": 1.5},
}


def test_the_page_is_what_the_results_give():
    page = (BENCHMARKS.parent / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert page == tables_report.replaced(page, tables_report.section(BENCHMARKS / "results"))
    assert (BENCHMARKS.parent / "docs" / tables_report.PICTURE).stat().st_size > 10_000


def test_figures_on_other_pages_are_those_of_the_results():
    """The tables of choosing_an_estimator.md: means of the splits."""
    results = json.loads((BENCHMARKS / "results" / "splits.json").read_text())
    page = (BENCHMARKS.parent / "docs" / "choosing_an_estimator.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| ")]
    regressors = "default network ridge"
    for first, names, models, budgets in (
        (
            "Fulton (25,766 records), employed", "fulton_employed fulton credit colorado adult", "logistic default",
            "0.1 0.5 1 4",
        ),
        ("Fulton (25,766 records), income", "fulton_income california_income", regressors, "0.1 1 4"),
        ("Elevators (16,499 records, all numeric)", "elevators", "trees default ridge", "0.1 1 4"),
    ):  # fmt: skip
        start = next(i for i, row in enumerate(rows) if row[0] == first)
        for row, (name, model) in zip(rows[start:], itertools.product(names.split(), models.split()), strict=False):
            means = [np.mean(results[f"{name}/{model}/{epsilon}"]["score"]) for epsilon in budgets.split()]
            assert row[2:] == [f"{each:.3f}" for each in means], row[:2]


def test_the_picture_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    tables_report.draw(RESULTS, tmp_path / "tables.png")
    assert (tmp_path / "tables.png").stat().st_size > 5_000
    made_up = {"adult/default/1": {"curve": [[[0.1, 0.9], [0.2, 0.8]]] * 2}}
    tables_report.draw_curves(made_up, tmp_path / "curves.png")
    assert (tmp_path / "curves.png").stat().st_size > 5_000
