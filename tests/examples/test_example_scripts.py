"""Examples run as a user runs them, at the CI size; `test_examples.py` has the demo."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from refused_runs import ends_of

from skdp.accounting import GaussianDpEvent

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = (
    "plot_adam_clipping.py", "plot_cifar10_abadi.py", "plot_generate_digits.py", "plot_mnist_abadi.py",
    "plot_mnist_scattering.py", "plot_mnist_sweeps.py", "plot_regression_housing.py", "plot_synthetic_census.py",
    "plot_trees_without_reading.py", "plot_wgan_sweeps.py",
)  # fmt: skip


def run(script, *arguments):
    """Run an example on a machine without the data folder."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for name in ("SKDP_DATA", "NUMBA_DISABLE_JIT"):
        environment.pop(name, None)
    command = [sys.executable, str(ROOT / "examples" / script), *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="module", params=SCRIPTS)
def quick(request, tmp_path_factory):
    picture = tmp_path_factory.mktemp("example") / "picture.png"
    done = run(request.param, "--quick", "--output", picture)
    assert done.returncode == 0, done.stderr
    said = re.sub(r".*QualityWarning: \d+ rows are few.*\n.*\n", "", done.stderr)  # as a quick run has few
    assert said == ""  # no warning of a leak, of a weak delta, of an old parameter
    return request.param, done.stdout, picture


def test_the_picture_is_drawn(quick):
    pytest.importorskip("matplotlib")
    _, output, picture = quick
    assert output.strip().endswith(f"Picture: {picture}")
    content = picture.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    assert len(content) > 20_000


def test_the_figures_are_plausible(quick):
    """Each example's own statement, as far as the quick size can show it."""
    {
        "plot_adam_clipping.py": adam_hardly_sees_the_clip,
        "plot_cifar10_abadi.py": budgets_are_met_near_the_plain_model,
        "plot_generate_digits.py": class_mixtures_make_the_best_digits,
        "plot_mnist_abadi.py": pld_is_below_moments_and_budgets_are_met,
        "plot_mnist_scattering.py": features_cost_nothing_and_help,
        "plot_mnist_sweeps.py": every_choice_was_swept,
        "plot_regression_housing.py": prices_are_learned_and_explained,
        "plot_synthetic_census.py": synthetic_people_are_like_real_ones,
        "plot_trees_without_reading.py": trees_cost_nothing_and_keep_up,
        "plot_wgan_sweeps.py": every_curve_was_drawn,
    }[quick[0]](quick[1])


def adam_hardly_sees_the_clip(output):
    apart = [float(value) for value in re.findall(r"two smallest C: ([\d.e+-]+)", output)]
    rows = re.findall(r"^(sgd|adam|adam, bias corrected) +([\d.e-]+) +([\d.]+) +([\d.]+) +([\d.]+)$", output, re.M)
    last = {(name, float(clip)): float(score) for name, clip, _, _, score in rows}
    assert len(apart) == 3
    assert len(last) == 12
    spread = {
        name: np.ptp([score for (solver, _), score in last.items() if solver == name]) for name in ("sgd", "adam")
    }
    assert spread["adam"] < 0.1 < spread["sgd"]


def class_mixtures_make_the_best_digits(output):
    rows = re.findall(r"^(class mixture|WGAN|table) +(1|10) +([\d.]+) +([\d.]+) +[\d.]+$", output, re.M)
    accuracies = {(name, int(epsilon)): float(accuracy) for name, epsilon, _, accuracy in rows}
    assert len(accuracies) == 6
    assert max(accuracies, key=accuracies.__getitem__) == ("class mixture", 10)
    assert accuracies["class mixture", 10] > 0.8


def pld_is_below_moments_and_budgets_are_met(output):
    prices = [list(map(float, found)) for found in re.findall(r"(\d+\.\d{3}) +(\d+\.\d{3})$", output, re.M)]
    assert len(prices) == 3
    assert all(pld < moments for moments, pld in prices)
    rows = re.findall(r"^ +([\d.]+) (defaults|best|straightened) +([\d.]+) \+/- [\d.]+ +([\d.]+)", output, re.M)
    assert len(rows) == 9
    for epsilon, _, accuracy, spent in rows:
        assert 0.999 * float(epsilon) <= float(spent) + 1e-4 <= float(epsilon) + 1e-4
        assert float(accuracy) > 30  # ten digits: chance is 10


def test_the_papers_accuracy_is_drawn_over_its_own_digits_alone(tmp_path):
    """The quick size has other digits, or fewer epochs: the paper's line would be no bar for them."""
    pytest.importorskip("matplotlib")
    example = runpy.run_path(str(ROOT / "examples" / "plot_mnist_abadi.py"))
    event = GaussianDpEvent(4.0)
    logs = [[example["Epoch"](number, 90.0, 80.0 + number, event) for number in (1, 2)] for _ in range(3)]
    for quick in (True, False):
        figure = example["draw"](logs, "title", quick, tmp_path / "picture.png")
        published = [line for ax in figure.axes for line in ax.get_lines() if line.get_label() == "test, as published"]
        assert len(published) == (0 if quick else 3)
        assert figure.get_suptitle() == "title"


def budgets_are_met_near_the_plain_model(output):
    """297 test digits: a standard error of 1.5 points; at epsilon 8 the fit loses some 2."""
    rows = re.findall(r"^ +([\d.]+) +([\d.]+) \+/- [\d.]+ +- +([\d.]+) +[\d.]+$", output, re.M)
    assert [epsilon for epsilon, *_ in rows] == ["2", "3", "4", "8"]
    for epsilon, _, spent in rows:
        assert 0.999 * float(epsilon) <= float(spent) + 1e-4 <= float(epsilon) + 1e-4
    (plain,) = re.findall(r"^non-private +([\d.]+)$", output, re.M)
    assert float(rows[-1][1]) > float(plain) - 10


def features_cost_nothing_and_help(output):
    assert "check_pipeline finds 0 steps that read rows without paying" in output
    rows = re.findall(r"^ +([\d.]+) (scattering|pixels) +([\d.]+) \+/- [\d.]+ +- +([\d.]+)", output, re.M)
    assert len(rows) == 6
    for epsilon, _, accuracy, spent in rows:
        assert 0.999 * float(epsilon) <= float(spent) + 1e-4 <= float(epsilon) + 1e-4
        assert float(accuracy) > 50  # ten digits: chance is 10
    (plain,) = re.findall(r"^non-private scattering +([\d.]+)$", output, re.M)
    assert float(plain) > 90


def every_choice_was_swept(output):
    rows = re.findall(r"^ *(\w+) +([\d.]+): +([\d.]+) %", output, re.M)
    assert {name for name, _, _ in rows} == {"components", "hidden", "lot", "step", "clip", "epochs"}
    assert len(rows) == 12


def every_curve_was_drawn(output):
    """More epochs and less noise cost more; the quick size is too small to compare the scores."""
    rows = re.findall(r"^ *([\d.]+) +([\d.]+) +(\d+) +(\d+) +([\d.]+|-) +([\d.]+)$", output, re.M)
    assert len(rows) == 10
    prices = {tuple(map(float, row[:4])): float(row[4]) for row in rows if row[4] != "-"}
    assert len(prices) == 8
    assert prices[1, 0.5, 32, 10] < prices[1, 0.5, 32, 40] == prices[0.1, 0.5, 32, 40] == prices[1, 0.5, 16, 40]
    assert prices[1, 1, 32, 40] < prices[1, 0.5, 32, 40]
    assert all(1 <= float(row[5]) <= 10 for row in rows)
    assert output.count("best first:") == 3
    assert float(re.search(r"right on ([\d.]+) %", output)[1]) > 80


def trees_cost_nothing_and_keep_up(output):
    """At 4,800 made-up people a mean of two fits has a spread of .005 at epsilon 0.5: .03 is no matter of luck."""
    assert "Trees of two columns: epsilon 0. No row was read." in output
    rows = re.findall(r"^ +([\d.]+) +(0\.\d+) \+/- 0\.\d+ +(0\.\d+) \+/- 0\.\d+ +(-?0\.\d+)$", output, re.M)
    assert [epsilon for epsilon, *_ in rows] == ["0.5", "4"]
    for _, logistic, trees, gain in rows:
        assert 0.6 < float(logistic) < 0.8
        assert float(trees) > float(logistic) - 0.03
        assert float(gain) == pytest.approx(float(trees) - float(logistic), abs=2e-4)
    assert 4 * 2 < float(re.search(r"all 8 together cost epsilon ([\d.]+\d)", output)[1]) < 2 * 2 * (0.5 + 4)
    shares = re.findall(r"(\w+) (\d+)%", re.search(r"^Importances.*$", output, re.M)[0])
    assert len(shares) == 5
    assert sum(int(share) for _, share in shares) <= 102
    assert "made-up people" in output


def synthetic_people_are_like_real_ones(output):
    """Of 2,800 made-up people; other people of the same kind differ by .025 in pairs."""
    spent = float(re.search(r"^Price: epsilon ([\d.]+) at delta 1e-05", output, re.M)[1])
    assert 0.99 < spent <= 1.0
    errors = [
        list(map(float, row)) for row in re.findall(r"people[a-z ]* +(0\.\d+) +(0\.\d+) +(0\.\d+)$", output, re.M)
    ]
    assert len(errors) == 2
    assert errors[0][1] < 0.06
    scores = [float(score) for score in re.findall(r"(?:\)|people|epsilon) {3,}(0\.\d{3})$", output, re.M)]
    assert len(scores) == 3
    assert scores[1] > scores[0] - 0.06
    assert abs(float(re.search(r"advantage (-?[\d.]+\d)", output)[1])) < 0.12
    assert "made-up people" in output


def prices_are_learned_and_explained(output):
    rows = re.findall(r"^ +([\d.]+) +([\d.-]+) \+/- ([\d.]+)$", output, re.M)
    assert [float(epsilon) for epsilon, _, _ in rows[:1] + rows[-1:]] in ([0.1, 4.0], [0.1, 10.0])
    scores = [float(score) for _, score, _ in rows]
    (plain,) = re.findall(r"^linear model, not private ([\d.]+)$", output, re.M)
    assert 0.4 < scores[0] < scores[-1]
    assert scores[-1] > float(plain) - 0.02  # .01 to .02 above it on made-up districts, .07 on the real ones
    told = re.findall(r"^ *(\S.*?) +(-?[\d,]+) \+/- +([\d,]+)$", output, re.M)
    coef = {name: [float(each.replace(",", "")) for each in pair] for name, *pair in told}
    assert len(coef) == 14
    assert coef["median_income"][0] > 100_000 > 5 * coef["median_income"][1]
    assert coef["ocean_proximity=ISLAND"][1] > 1.5 * coef["ocean_proximity=INLAND"][1]
    assert "epsilon 1.00 at delta 1e-06" in output


def test_the_regression_example_takes_the_real_table(tmp_path):
    data = os.environ.get("SKDP_DATA")
    if data is None:
        pytest.skip("SKDP_DATA is not set: the folder of the public data sets (california_housing.csv.gz ...)")
    done = run("plot_regression_housing.py", "--data", data, "--output", tmp_path / "picture.png")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("California, 1990")
    prices_are_learned_and_explained(done.stdout)


@pytest.fixture(scope="module")
def refused(tmp_path_factory):
    """Ends of runs with a picture in a folder that is not there, and of those with data that are not there."""
    picture = tmp_path_factory.mktemp("refused") / "nowhere" / "picture.png"
    pictures = [(script, "--quick", "--output", picture) for script in SCRIPTS]
    paths = [(script, "--data", "no/such/mnist.npz") for script in SCRIPTS[1:]]
    ends = ends_of(pictures + paths, SKDP_DATA=None)
    return {(run[0], run[1]): end for run, end in zip(pictures + paths, ends, strict=True)}


@pytest.mark.parametrize("script", SCRIPTS)
def test_picture_that_cannot_be_written_is_refused_before_the_work(script, refused):
    done = refused[script, "--quick"]
    assert done.returncode != 0
    (line,) = done.stderr.strip().splitlines()
    assert script in line
    assert "nowhere" in line


@pytest.mark.parametrize("script", SCRIPTS[1:])
def test_a_wrong_path_gives_one_line(script, refused):
    done = refused[script, "--data"]
    assert done.returncode != 0
    (line,) = done.stderr.strip().splitlines()
    assert "no/such/mnist.npz" in line
