"""Examples run whole, as a notebook of one cell does: there is no `__file__`, and arguments are those of the kernel."""

from __future__ import annotations

import contextlib
import io
import re
import sys
import warnings
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("plot_*.py"))


class Run(NamedTuple):
    """What a reader sees: text, warnings, and pictures as bytes of PNG files."""

    name: str
    text: str
    warnings: list[str]
    pictures: list[bytes]
    folder: Path
    names: dict[str, Any]


def run(script: Path, folder: Path) -> Run:
    """Run a script as a cell in a folder."""
    plt = pytest.importorskip("matplotlib.pyplot")
    pictures, names = [], {"__name__": "__main__"}

    def show() -> None:
        for number in plt.get_fignums():
            file = io.BytesIO()
            plt.figure(number).savefig(file, format="png")
            pictures.append(file.getvalue())
        plt.close("all")

    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as text:
        patch.delenv("SKDP_DATA", raising=False)
        patch.setattr(sys, "argv", ["ipykernel_launcher.py", "-f", "kernel.json"])
        patch.setattr(plt, "show", show)
        patch.chdir(folder)
        plt.switch_backend("agg")
        plt.close("all")  # of other tests
        with warnings.catch_warnings(record=True, action="default") as said:
            warnings.simplefilter("ignore", ResourceWarning)  # of what other tests left
            exec(compile(script.read_text(encoding="utf-8"), script.name, "exec"), names)
        show()
    return Run(script.name, text.getvalue(), [str(each.message) for each in said], pictures, folder, names)


@pytest.fixture(scope="module", params=EXAMPLES, ids=lambda script: script.stem)
def notebook(request, tmp_path_factory):
    return run(request.param, tmp_path_factory.mktemp("notebook"))


def test_it_runs_whole_and_shows_what_it_says(notebook):
    """No warning of a leak, of a weak delta, of an old parameter; small digits are few rows, as skdp says."""
    few = {"plot_mnist_abadi.py", "plot_cifar10_abadi.py"}
    said = [each for each in notebook.warnings if not each.startswith("Classes ")]  # noise decides at epsilon 0.1
    assert all("rows are too few for" in each for each in said), said
    assert (said == []) == (notebook.name not in few)
    if notebook.name != "plot_table_to_report.py":
        assert notebook.pictures
        assert all(len(each) > 10_000 for each in notebook.pictures)
    {
        "plot_budget_and_coefficients.py": a_ledger_composes_and_coefficients_stand_out,
        "plot_census_pums.py": the_demo_says_what_privacy_costs,
        "plot_cifar10_abadi.py": budgets_are_met_near_the_plain_model,
        "plot_generate_digits.py": class_mixtures_make_the_best_digits,
        "plot_grid_search_budget.py": searches_cost_what_they_say_and_the_plain_one_does_not,
        "plot_mnist_scattering.py": features_cost_nothing_and_help,
        "plot_regression_housing.py": prices_are_learned_and_explained,
        "plot_synthetic_census.py": synthetic_people_are_like_real_ones,
        "plot_table_to_report.py": the_report_is_a_page,
        "plot_random_trees.py": trees_cost_nothing_and_see_more,
    }.get(notebook.name, lambda ran: None)(notebook)


def a_ledger_composes_and_coefficients_stand_out(ran):
    assert "PrivacyAccountant, 3 charges" in ran.text
    assert float(re.search(r"^spent: epsilon=([\d.]+)", ran.text, re.M)[1]) < 1.8  # less than the sum of costs
    assert re.search(r"more than two standard deviations of the noise: \w+", ran.text)


def the_demo_says_what_privacy_costs(ran):
    """At 24,000 people epsilon 8 is some .0003 from the plain model, and trees .045 ahead with a spread of .001."""
    rows = dict(re.findall(r"^(\S.*?) +[\d.]+ +[\d.]+ \+/- [\d.]+ +(-?[\d.]+)$", ran.text, re.M))
    assert list(rows) == ["0.1", "0.5", "1", "4", "8", "1, trees", "1, households"]
    assert abs(float(rows["8"])) < 0.01
    assert abs(float(rows["1, households"])) < 0.03
    assert float(rows["1, trees"]) < -0.02
    for name, private in ran.names["models"].items():
        assert private[0].epsilon == float(name.partition(",")[0])
    joint = float(re.search(r"All 30 person-level fits: epsilon ([\d.]+) under composition", ran.text)[1])
    assert 8 * 5**0.5 < joint < 5 * (0.1 + 0.5 + 1 + 4 + 8 + 1)  # full batches: sums of squares add up, and more
    assert "The privacy unit is one person (one row), except in the row" in ran.text


def budgets_are_met_near_the_plain_model(ran):
    """297 test digits: a standard error of 1.5 points; at epsilon 8 the fit loses some 2."""
    rows = re.findall(r"^epsilon ([\d.]+): accuracy ([\d.]+)% \(without privacy: ([\d.]+)%\)$", ran.text, re.M)
    assert [float(spent) for spent, _, _ in rows] == [0.5, 1, 2, 8]
    assert float(rows[0][1]) < float(rows[-1][1])  # 73 and 93 on average, with standard deviations below 3
    assert float(rows[-1][1]) > float(rows[-1][2]) - 10


def class_mixtures_make_the_best_digits(ran):
    rows = {
        name: float(share) for name, share in re.findall(r"^(\w.*?) +accuracy on real digits: ([\d.]+)", ran.text, re.M)
    }
    assert len(rows) == 7
    del rows["real"]
    assert max(rows, key=rows.__getitem__) == "class mixture, 10"
    assert rows["class mixture, 10"] > 0.8


def searches_cost_what_they_say_and_the_plain_one_does_not(ran):
    costs = dict(re.findall(r"^(\S.*?) +epsilon ([\d.]+), AUROC 0", ran.text, re.M))
    assert list(costs) == ["GridSearchCV", "DPGridSearchCV", "DPGridSearchCV, compose", "default, untuned"]
    for name, cost in costs.items():
        assert float(cost) > 10 if name == "GridSearchCV" else 0.999 <= float(cost) <= 1
    assert "GridSearchCV: 121 fits, reported epsilon 1.000" in ran.text
    all_fits, least = re.search(r"under composition: ([\d.]+), at least ([\d.]+) for each record", ran.text).groups()
    assert 10 < float(least) < float(all_fits)


def features_cost_nothing_and_help(ran):
    assert "check_pipeline reports 0 issues." in ran.text
    scores = ran.names["scores"]
    assert min(min(each) for each in scores.values()) > 40  # ten digits: chance is 10
    # 5 more on average, with a standard deviation of 2.6 over fits: a false alarm has a probability of 2e-7.
    assert np.mean(scores["scattering"]) > np.mean(scores["pixels"]) - 8


def prices_are_learned_and_explained(ran):
    display, ridge, names = ran.names["display"], ran.names["ridge"], list(ran.names["names"])
    assert 0.4 < np.mean(display.scores[0]) < np.mean(display.scores[-1])
    assert display.baseline_score - 0.03 < np.mean(display.scores[-1]) < display.baseline_score + 0.01
    income, island = names.index("median_income"), names.index("ocean_proximity=ISLAND")
    assert ridge.coef_[income] > 100_000 > 5 * ridge.coef_std_[income]
    assert ridge.coef_std_[island] > 1.5 * ridge.coef_std_[names.index("ocean_proximity=INLAND")]
    assert ridge.epsilon_ <= 1


def synthetic_people_are_like_real_ones(ran):
    """Of 8,400 simulated records."""
    spent = float(re.search(r"^Row-level guarantee: epsilon ([\d.]+) at delta 1e-06", ran.text, re.M)[1])
    assert 0.99 < spent <= 1.0
    assert float(re.search(r"^mean over pairs +(0\.\d+)", ran.text, re.M)[1]) < 0.05
    real, made, directly = ran.names["scores"].values()
    assert min(made, directly) > real - 0.06


def the_report_is_a_page(ran):
    assert re.search(r"^AUROC 0\.[678]\d+, 95% CI \[0\.\d+, 0\.\d+\]; total epsilon 1\.00$", ran.text, re.M)
    assert "the guess is right with probability at most" in " ".join(ran.text.split())
    ran.names["report"].to_html(ran.folder / "report.html")
    page = (ran.folder / "report.html").read_text(encoding="utf-8")
    HTMLParser().feed(page)
    assert page.startswith("<!DOCTYPE html>")
    assert "Privacy report" in page


def trees_cost_nothing_and_see_more(ran):
    """Trees are about 0.012 ahead at epsilon 4; the mean of three fits has a standard deviation of 0.001."""
    assert "Data-independent trees: epsilon 0" in ran.text
    logistic, trees = (each.mean(axis=1) for each in ran.names["scores"].values())
    assert 0.6 < min(logistic) <= max(logistic) < 0.8
    assert trees[-1] > logistic[-1] - 0.005
    shares = [int(each) for each in re.findall(r"\w+ (\d+)%", re.search(r"^Importances.*$", ran.text, re.M)[0])]
    assert len(shares) == 5
    assert sum(shares) <= 102
