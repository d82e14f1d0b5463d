"""The benchmark over all tables: what is public of them, the fifth that is held out, the runs and the page.

Tests of the tables need the data sets, which ``SKDP_DATA`` names.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

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


def test_every_task_has_its_models():
    for name in ("classes", "numbers"):
        table = tables.Table(None, None, {}, [0, 1] if name == "classes" else None, None, 1e-5)
        taken = {model for model, each in contestants.MODELS.items() if each.takes(table)}
        of_classes = {"logistic", "share", "ObjectivePerturbation", "ObjectivePerturbation, bins", "DoubleNoiseNewton"}
        of_numbers = {"ridge", "trees", "BoostedAdaSSP"}
        assert taken == set(contestants.MODELS) - (of_numbers if name == "classes" else of_classes)
    several = tables.Table(None, None, {}, [0, 1, 2], None, 1e-5)
    weighted = tables.Table(None, None, {}, [0, 1], None, 1e-5, np.ones(3), 1.0)
    assert [contestants.MODELS["DP-EBM"].takes(table) for table in (several, weighted)] == [False, True]
    assert [contestants.MODELS["diffprivlib"].takes(table) for table in (several, weighted)] == [True, False]
    assert list(tables_report.NAMES) == list(contestants.MODELS)
    assert set(tables_report.LEGEND) < set(tables_report.COLOURS) < set(tables_report.NAMES)
    assert list(tables_report.TITLES) == list(SIZES)


def test_lists_are_those_of_the_schema(named):
    """What DP-EBM is told in full holds every cell, and what it is told without lists has none of them."""
    _, table = named
    for column, entry in table.schema.items():
        kind, _ = tables.read_entry(entry)
        if kind != "number":
            found = contestants.listed(entry)
            assert len(set(found)) == len(found)
            assert set(table.X[column].astype(str)) <= set(found)


def test_dp_xgboost_is_given_codes_within_its_bounds():
    rows = pd.DataFrame({"a": [0.5, 9.0, np.nan], "b": [1, 0, 1], "c": ["y", "?", "x"]})
    table = tables.Table(rows, None, {"a": (-1, 1), "b": "flag", "c": [*"xyz"]}, None, (2.0, 6.0), 1e-5)
    codes = contestants.MODELS["dp-xgboost"].make(table, 1.0)
    assert codes[0].transform(rows).tolist() == [[0.5, 1, 1], [1.0, 0, -1], [-1.0, 1, 0]]
    assert codes[1].bounds == {"feature_min": [-1, -1, -1], "feature_max": [1, 1, 2]}
    assert (codes[1].middle, codes[1].half, codes[1].start) == (4.0, 2.0, 0.0)


def test_our_rows_are_told_what_they_say():
    rows = pd.DataFrame({"a": [0.1, 0.9], "b": [0, 1], "c": ["x", "y"], "d": [1, 3]})
    schema = {"a": (-1, 1), "b": "flag", "c": [*"xyz"], "d": {"kind": "ordinal", "categories": [1, 2, 3]}}
    table = tables.Table(rows, np.array([0, 1]), schema, [0, 1], None, 1e-5)

    def told(model):
        return contestants.MODELS[model].make(table, 1.0)["vectorizer"].schema

    assert told("default") == schema
    assert told("default, no lists") == {"a": (-1, 1), "b": "category", "c": "category", "d": (1, 3)}
    assert told("default, no schema") is None


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


def test_beliefs_of_weighted_rows_are_those_of_rows_repeated():
    rng = np.random.default_rng(0)
    y, probability, weights = rng.integers(0, 2, 500), rng.uniform(0.05, 0.95, 500), rng.integers(1, 5, 500)
    found = contestants.beliefs(y, probability, weights.astype(float))
    repeated = contestants.beliefs(np.repeat(y, weights), np.repeat(probability, weights))
    for name in ("log_loss", "brier", "ratio"):
        assert found[name] == pytest.approx(repeated[name], rel=1e-12)
    assert found["ratio"] != pytest.approx(contestants.beliefs(y, probability)["ratio"], rel=1e-4)


class Known:
    """Says what it was made with."""

    def __init__(self, probabilities):
        self.probabilities = probabilities

    def predict_proba(self, X):
        return self.probabilities


def test_several_classes_are_scored_one_against_the_others():
    y = np.repeat([0, 1, 2], [60, 30, 10])
    rng = np.random.default_rng(1)
    probabilities = rng.dirichlet([1.0, 1.0, 1.0], 100)
    table = tables.Table(None, y, {}, [0, 1, 2], None, 1e-5)
    found = contestants.score(table, Known(probabilities), None, y)
    ranks = [roc_auc_score(y == c, probabilities[:, c]) for c in range(3)]
    assert found["score"] == pytest.approx(np.mean(ranks), rel=1e-12)
    assert found["log_loss"] == pytest.approx(-np.mean(np.log(probabilities[np.arange(100), y])), rel=1e-12)
    assert found["brier"] == pytest.approx(np.mean(((probabilities - np.eye(3)[y]) ** 2).sum(axis=1)), rel=1e-12)
    assert found["ratio"] == pytest.approx(probabilities[:, 2].mean() / 0.1, rel=1e-12)  # of the rarest


def test_weights_reach_the_model_and_the_score(monkeypatch):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.uniform(-1, 1, 2000), "b": rng.integers(0, 2, 2000)})
    y = (rng.random(2000) < 0.3).astype(int)
    weights = np.where(y == 1, 90.0, 10.0)
    table = tables.Table(X, y, {"a": (-1, 1), "b": "flag"}, [0, 1], None, 1e-5, weights, 100.0)
    monkeypatch.setattr(contestants, "load", lambda name, folder: table)
    monkeypatch.setattr(contestants, "split", lambda *given: (np.arange(1500), np.arange(1500, 2000)))
    for name in ("default", "logistic", "linear, not private", "boosted trees, not private", "share"):
        found = contestants.Worker("made up", name, "").fit("splits", 8.0, 0)
        assert found["ratio"] == pytest.approx(1.0, abs=0.1), name  # without weights it would be .4


def test_a_class_is_thinned_to_its_share():
    y = np.repeat([0, 1], [900, 600])
    rows = np.arange(0, 1500, 2)
    found = contestants.thinned(rows, y, 0.1, 3)
    assert set(found) <= set(rows)
    assert (y[found] == 0).sum() == 450
    assert (y[found] == 1).sum() == 50
    assert (np.diff(found) > 0).all()
    assert (found == contestants.thinned(rows, y, 0.1, 3)).all()


def run(data, tmp_path, repeats, *models, more=()):
    command = [sys.executable, str(BENCHMARKS / "bench_tables.py"), "--data", data, "--dev", str(repeats)]
    command += ["--tables", "wine:500", "--epsilons", "8", "--results", str(tmp_path), "--ebm", sys.executable]
    return subprocess.run([*command, *more, "--models", *models], capture_output=True, text=True, timeout=600)


def test_an_interrupted_run_goes_on(data, tmp_path):
    def fit(repeats):
        done = run(data, tmp_path, repeats, "ridge", "logistic")
        assert done.returncode == 0, done.stderr
        results = json.loads((tmp_path / "dev.json").read_text())
        assert list(results) == ["wine:500/ridge/8"]
        return done.stdout.splitlines(), results["wine:500/ridge/8"]

    printed, first = fit(1)
    assert [line[:18] for line in printed] == ["wine:500/ridge/8 0"]
    printed, second = fit(3)
    assert [line[:18] for line in printed] == ["wine:500/ridge/8 1", "wine:500/ridge/8 2"]
    assert second["score"][0] == first["score"][0]
    assert len(second["score"]) == len(second["seconds"]) == 3
    assert max(second["score"]) < 1
    assert second["first"] > second["seconds"][1]
    assert fit(3)[0] == []


def test_an_untimed_run_keeps_no_times(data, tmp_path):
    assert run(data, tmp_path, 1, "ridge", more=["--untimed"]).returncode == 0
    entry = json.loads((tmp_path / "dev.json").read_text())["wine:500/ridge/8"]
    assert entry["seconds"] == []
    assert len(entry["score"]) == 1
    assert "first" not in entry


def test_a_failed_fit_is_told_and_not_noted(data, tmp_path):
    done = run(data, tmp_path, 1, "DP-EBM")
    assert done.returncode == 1
    assert "ModuleNotFoundError: No module named 'interpret'" in done.stderr
    assert not (tmp_path / "dev.json").exists()


# --- The page ---------------------------------------------------------------------------------------------------------

RESULTS = {
    "wine/ridge/1": {"score": [0.25, 0.35], "seconds": [1.0, 2.0], "first": 4.0},
    "wine/ridge/8": {"score": [0.5, 0.5], "seconds": [1.0, 3.0]},
    "wine/diffprivlib/8": {"score": [-30.0, 0.5], "seconds": [1.0, 3.0], "first": 2.0},
    "wine/DP-EBM/8": {"score": [0.4, 0.6], "seconds": [1.0, 3.0], "first": 2.0},
    "wine/DP-EBM, lists/8": {"score": [0.45, 0.54, 0.9], "seconds": []},  # the third split is easy
    "wine/boosted trees, not private/-": {"score": [0.625], "seconds": [1.0], "first": 1.5},
}


def test_the_table_of_results_made_up():
    text = tables_report.markdown(RESULTS, "splits")
    assert text.splitlines()[2:] == [
        "| Wine, red and white: quality (R²) | 1 | 8 | s a fit |",
        "|---|---|---|---|",
        "| `DPRidge` (2 fits) | **.300** ± .071 | **.500** ± .000 | 1.50 (4.0) |",
        "| DP-EBM (2 fits) |  | **.500** ± .141 | 2.00 (2.0) |",
        "| - with lists of categories |  | .630 ± .238 |  |",
        "| diffprivlib (pure epsilon) (2 fits) |  | below 0 | 2.00 (2.0) |",
        "| boosted trees, not private | .625 | .625 | 1.00 (1.5) |",
    ]
    assert text.startswith("Random 80/20 splits of all rows, the same for all models: mean ± standard deviation of 3.")
    assert tables_report.markdown({}, "splits") == ""


@pytest.mark.parametrize("model", [each for each in tables_report.NAMES if contestants.MODELS[each].is_private])
def test_whoever_wins_is_bold(model):
    """Ours or not: the one mean above all others, at 8, and nobody else there."""
    best = RESULTS | {f"wine/{model}/8": {"score": [0.75, 0.75], "seconds": []}}
    rows = tables_report.markdown(best, "splits").splitlines()[4:]
    won = [row.split(" | ")[0].removeprefix("| ") for row in rows if "**" in row.split(" | ")[2]]
    assert [name.removesuffix(" (2 fits)") for name in won] == [tables_report.NAMES[model]]


def test_the_table_of_probabilities_made_up():
    loss = {"score": [0.8], "brier": [0.1], "ratio": [0.5], "ece": [-0.0012], "curve": [[[0.1], [0.2]]], "seconds": []}
    results = {
        "adult/default/1": loss | {"log_loss": [0.3, 0.4]}, "adult/network/1": loss | {"log_loss": [0.4]},
        "adult/share/-": loss | {"log_loss": [0.5]}, "wine/ridge/1": {"score": [0.3], "seconds": []},
    }  # fmt: skip
    assert tables_report.probabilities(results).splitlines() == [
        "| Adult: income above 50,000 dollars | log loss at 0.1 | log loss at 1 | log loss at 4 | Brier at 1 | "
        "ratio at 0.1 | ratio at 1 | ratio at 4 | calibration error at 1 |",
        "|---|---|---|---|---|---|---|---|---|",
        "| `tabular_pipeline()` |  | **.350** |  | .100 |  | .500 |  | -.001 |",
        "| `DPMLPClassifier`, `DPMLPRegressor` |  | .400 |  | .100 |  | .500 |  | -.001 |",
        "| share of the class, not private | .500 | .500 | .500 | .100 | .500 | .500 | .500 | -.001 |",
    ]
    assert tables_report.probabilities({"wine/ridge/1": {"score": [0.3], "seconds": []}}) == ""


def test_paired_differences():
    assert tables_report.paired(RESULTS, "ridge", "DP-EBM") == "wine                8   0.0000 +- 0.1000 of 2"
    ahead = {"wine/a/1": {"score": [0.1, 0.1]}, "wine/b/1": {"score": [0.2, 0.2]}}
    assert tables_report.paired(ahead, "a", "b") == "wine                1  -0.1000 +- 0.0000 of 2 <"
    assert tables_report.paired(ahead, "b", "a") == "wine                1   0.1000 +- 0.0000 of 2"


def test_the_page_is_what_the_results_give():
    page = (BENCHMARKS.parent / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert page == tables_report.replaced(page, tables_report.section(BENCHMARKS / "results"))
    assert (BENCHMARKS.parent / "docs" / tables_report.PICTURE).stat().st_size > 10_000


def test_figures_on_other_pages_are_those_of_the_results():
    """The tables of which_estimator.md: means of the splits."""
    results = json.loads((BENCHMARKS / "results" / "splits.json").read_text())
    page = (BENCHMARKS.parent / "docs" / "which_estimator.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| ")]
    classes, numbers = "fulton_employed fulton credit colorado adult", "fulton_income fulton_age california_income"
    for first, names, models, budgets in (
        ("Fulton (25,766 people), who is employed", classes, "logistic default", "0.1 0.5 1 4"),
        (
            "Fulton (25,766 people), income: trees", f"{numbers} california_educ housing wine", "default network ridge",
            "0.1 1 4",
        ),
        ("elevators (16,499 rows, all numbers): trees", "elevators", "trees default ridge", "0.1 1 4"),
    ):  # fmt: skip
        start = next(i for i, row in enumerate(rows) if row[0].startswith(first))
        for row, (name, model) in zip(rows[start:], itertools.product(names.split(), models.split()), strict=False):
            means = [np.mean(results[f"{name}/{model}/{epsilon}"]["score"]) for epsilon in budgets.split()]
            assert row[1:] == ["below 0" if each < 0 else f"{each:.3f}".removeprefix("0") for each in means], row[0]


def test_the_picture_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    tables_report.draw(RESULTS, tmp_path / "tables.png")
    assert (tmp_path / "tables.png").stat().st_size > 5_000
    made_up = {"adult/default/1": {"curve": [[[0.1, 0.9], [0.2, 0.8]]] * 2}}
    tables_report.draw_curves(made_up, tmp_path / "curves.png")
    assert (tmp_path / "curves.png").stat().st_size > 5_000
