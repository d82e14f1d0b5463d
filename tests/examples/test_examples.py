"""The demo and other examples, run as a user runs it: in a process of its own, at the CI size."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from refused_runs import End, ends_of

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "examples" / "plot_census_pums.py"
NAMES = ("non-private", "0.1", "0.5", "1", "4", "8", "1, trees", "1, per household")
ROW = re.compile(
    r"^(?P<name>non-private|[\d.]+(?:, trees|, per household)?) +(?P<spent>-|\d+\.\d+) +(?P<auroc>\d\.\d+) \+/- "
    r"(?P<auroc_std>\d\.\d+) +(?P<lost>-?\d\.\d+) +(?P<accuracy>\d\.\d+) \+/- (?P<accuracy_std>\d\.\d+)$"
)


def run(
    *arguments: str | Path, first_on_path: Path | None = None, script: Path = SCRIPT
) -> subprocess.CompletedProcess[str]:
    """Run the demo with the checkout in front, and what `first_on_path` holds before that."""
    folders = [first_on_path, ROOT, os.environ.get("PYTHONPATH")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(str(folder) for folder in folders if folder)}
    environment.pop("NUMBA_DISABLE_JIT", None)  # The demo shows the compiled kernels; plain ones would take minutes.
    command = [sys.executable, str(script), *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)


def read_table(output: str) -> dict[str, dict[str, str]]:
    """Rows of the printed table by the name in their first column."""
    found = [match.groupdict() for line in output.splitlines() if (match := ROW.match(line))]
    return {row["name"]: row for row in found}


def one_line(end: End) -> str:
    """What a run that failed had to say, which has to be one line."""
    assert end.returncode != 0
    assert "Traceback" not in end.stderr
    (line,) = end.stderr.strip().splitlines()
    return line


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Output and picture of one quick run on made-up people."""
    picture = tmp_path_factory.mktemp("demo") / "picture.png"
    done = run("--quick", "--output", picture)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # No warning of a leak, of a weak delta, of an old parameter.
    return done.stdout, picture


@pytest.fixture(scope="module")
def extract(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small file in the layout of the Census 2000 extract."""
    pytest.importorskip("pandas")
    from skdp.datasets import make_census

    bunch = make_census(3_000, random_state=1, features="all", as_frame=True)
    path = tmp_path_factory.mktemp("data") / "extract.csv"
    bunch.data.drop(columns=["collegedegree", "blackfemale"], errors="ignore").assign(employed=bunch.target).to_csv(
        path, index=False
    )
    return path


def test_table_holds_a_line_for_each_model(quick):
    table = read_table(quick[0])
    assert tuple(table) == NAMES
    for row in table.values():
        assert 0.5 < float(row["auroc"]) < 1
        assert 0.5 < float(row["accuracy"]) < 1
        assert float(row["auroc_std"]) < 0.2
    assert float(table["non-private"]["auroc_std"]) == 0  # the baseline is fitted once
    assert float(table["0.1"]["auroc_std"]) > 0  # about .02; that of a large epsilon may be rounded to 0


def test_quality_of_the_table(quick):
    """At 6,000 people epsilon 8 is some .001 from the non-private model, so .03 is no matter of luck."""
    table = read_table(quick[0])
    best = float(table["non-private"]["auroc"])
    assert best > 0.7
    assert float(table["8"]["auroc"]) == pytest.approx(best, abs=0.03)
    assert best - float(table["8"]["auroc"]) == pytest.approx(float(table["8"]["lost"]), abs=2e-4)


def test_trees_see_what_the_logistic_regression_cannot(quick):
    """At 6,000 made-up people they are some .03 ahead of it without privacy, with a spread of .005."""
    assert float(read_table(quick[0])["1, trees"]["lost"]) < 0


def test_households_cost_little(quick):
    """Less than .001 on 6,000 made-up people, where the mean of three fits has a spread of .003."""
    table = read_table(quick[0])
    assert float(table["1, per household"]["auroc"]) == pytest.approx(float(table["1"]["auroc"]), abs=0.06)


def test_spent_is_at_most_the_budget(quick):
    table = read_table(quick[0])
    assert table["non-private"]["spent"] == "-"
    for name in NAMES[1:]:
        epsilon = float(name.partition(",")[0])
        assert 0.99 * epsilon < float(table[name]["spent"]) <= epsilon


def test_joint_price_is_that_of_all_fits_and_less_than_their_sum(quick):
    joint, total = re.search(r"epsilon\s([\d.]+) \(composed jointly.*plain sum is ([\d.]+)\)", quick[0]).groups()
    assert "All 18 private fits for people together" in " ".join(quick[0].split())
    assert 8 * 3**0.5 < float(joint) < float(total) == 43.8  # full batches: sums of squares add up, and more


def test_statements_of_what_is_protected(quick):
    text = " ".join(quick[0].split())
    assert "the unit of privacy is one person (one row), not a household" in text
    assert "The held-out fifth that scores the table is taken as public" in text
    assert "'not employed' includes people outside the labour force" in text
    assert "made-up people" in text


def test_picture_is_a_png_of_readable_size(quick):
    pytest.importorskip("matplotlib")
    content = quick[1].read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", content[16:24])
    assert (width, height) == (960, 660)
    assert len(content) > 20_000


def test_data_file_and_chosen_epsilons(extract, tmp_path):
    done = run("--data", extract, "--epsilons", "8", "2", "--output", tmp_path / "picture.png")
    assert done.returncode == 0, done.stderr
    assert tuple(read_table(done.stdout)) == ("non-private", "2", "8", "1, trees")
    assert "extract.csv" in done.stdout
    assert "Census 2000 PUMS" in done.stdout
    assert "3,000 people" in done.stdout
    assert "'not employed' includes people outside the labour force" in done.stdout


def test_without_matplotlib_the_remedy_is_named_before_the_work(tmp_path):
    (tmp_path / "matplotlib.py").write_text("raise ImportError('not here')\n")
    picture = tmp_path / "picture.png"
    done = run("--quick", "--output", picture, first_on_path=tmp_path)
    assert done.returncode != 0
    assert 'needs matplotlib; run `pip install "skdp[plot]"`' in done.stderr.strip().splitlines()[-1]
    assert done.stdout == ""
    assert not picture.exists()


@pytest.mark.parametrize("script", ["plot_census_pums.py", "plot_grid_search_budget.py"])
def test_mistakes_give_one_line_before_the_work(script, tmp_path):
    pytest.importorskip("pandas")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    wrong, other, nowhere, kind = map(
        one_line,
        ends_of(
            [
                (script, "--data", "no/such/file.csv"),
                (script, "--data", tmp_path / "other.csv"),
                (script, "--quick", "--output", tmp_path / "nowhere" / "picture.png"),
                (script, "--quick", "--output", tmp_path / "picture.txt"),
            ]
        ),
    )
    assert "no/such/file.csv" in wrong
    assert "no such file" in wrong
    assert "other.csv" in other
    assert "nowhere" in nowhere
    assert "picture.txt" in kind


# --- what a grid search costs ---

BUDGET = ROOT / "examples" / "plot_grid_search_budget.py"
WAY = re.compile(r"^(?P<name>\S.*?) +(?P<says>-|\d+\.\d+) +(?P<costs>-|\d+\.\d+) +(?P<auroc>\d\.\d+) \+/- \d\.\d+$")


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Output and picture of one quick run on made-up people."""
    picture = tmp_path_factory.mktemp("search") / "picture.png"
    done = run("--quick", "--output", picture, script=BUDGET)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout, picture


def test_searches_cost_what_they_say_and_the_plain_one_does_not(searched):
    ways = {match["name"]: match for line in searched[0].splitlines() if (match := WAY.match(line))}
    assert list(ways) == [
        "GridSearchCV", "DPGridSearchCV", "DPGridSearchCV, compose", "default, untuned", "non-private",
    ]  # fmt: skip
    for name, way in ways.items():
        assert 0.5 < float(way["auroc"]) < 1
        if name != "non-private":
            assert 0.999 <= float(way["says"]) <= 1
            assert (float(way["costs"]) > 10) == (name == "GridSearchCV")
            assert name == "GridSearchCV" or way["costs"] == way["says"]


def test_what_is_said_of_the_searches(searched):
    text = " ".join(searched[0].split())
    assert "40 candidates, epsilon 1" in text
    assert "GridSearchCV fits 121 times and prints the epsilon of the last fit" in text
    assert "exact scores that it chose by are not in that" in text
    costs, least = re.search(r"cost epsilon ([\d.]+), each .* so ([\d.]+) at the least", text).groups()
    assert 10 < float(least) < float(costs)
    assert "The default at the full budget needed no search" in text or "The search was worth its budget" in text
    assert "taken as public" in text


def test_picture_of_the_searches(searched):
    pytest.importorskip("matplotlib")
    content = searched[1].read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", content[16:24]) == (1500, 750)


# --- a ledger and coefficients ---


def test_ledger_and_coefficients(tmp_path):
    picture = tmp_path / "picture.png"
    done = run("--quick", "--output", picture, script=ROOT / "examples" / "plot_budget_and_coefficients.py")
    assert (done.returncode, done.stderr) == (0, "")
    assert "PrivacyAccountant, 3 charges" in done.stdout
    assert float(re.search(r"^spent: epsilon=([\d.]+)", done.stdout, re.M)[1]) < 1.8  # less than the sum of prices
    assert re.search(r"More than two standard deviations of the noise: \w+", done.stdout)
    content = picture.read_bytes()
    assert struct.unpack(">II", content[16:24]) == (1200, 440)
    assert len(content) > 20_000


# --- the README ---


def test_pictures_of_the_readme_are_small_and_can_be_drawn_again():
    text = (ROOT / "README.md").read_text()
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", text)
    assert len(pictures) == 2
    for picture in pictures:
        assert (ROOT / picture).stat().st_size < 100_000
        (script,) = re.findall(rf"^\$ python (examples/\S+) --output {re.escape(picture)}$", text, re.M)
        assert (ROOT / script).is_file()
