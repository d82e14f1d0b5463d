"""Examples with a command line, run as a user runs them; `test_notebooks.py` runs all of them without one."""

import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(script, *arguments):
    """Run an example on a machine without the data folder."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"}
    for name in ("SKDP_DATA", "NUMBA_DISABLE_JIT"):  # plain kernels would take minutes
        environment.pop(name, None)
    command = [sys.executable, str(ROOT / "examples" / script), *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The demo on a small file in the layout of the Census 2000 extract, and its picture."""
    pytest.importorskip("pandas")
    from skdp.datasets import make_census

    folder = tmp_path_factory.mktemp("data")
    # So many that no column seems to lie at one of its bounds by noise alone (6 standard deviations), which warns.
    people = make_census(12_000, random_state=1, features="all", as_frame=True)
    table = people.data.drop(columns=["collegedegree", "blackfemale"], errors="ignore").assign(employed=people.target)
    table.to_csv(folder / "extract.csv", index=False)
    picture = folder / "picture.png"
    done = run("plot_census_pums.py", "--data", folder / "extract.csv", "--epsilons", "8", "2", "--output", picture)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # no warning of a leak, of a weak delta, of an old parameter
    return done.stdout, picture


def test_the_demo_takes_a_file_and_budgets(demo):
    text, _ = demo
    assert re.findall(r"^(\S.*?) +[\d.]+ +[\d.]+ \+/- ", text, re.M) == ["2", "8", "1, trees"]
    assert "extract.csv" in text


def test_the_demo_draws_a_picture_of_readable_size(demo):
    content = demo[1].read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", content[16:24]) == (960, 660)
    assert len(content) > 20_000


def test_a_wrong_path_ends_in_the_line_that_names_it():
    done = run("plot_census_pums.py", "--data", "no/such/file.csv")
    assert done.returncode != 0
    assert "no/such/file.csv" in done.stderr.strip().splitlines()[-1]
    assert done.stdout == ""


def test_home_page_pictures_are_small_and_link_their_examples():
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    pictures = re.findall(r"^!\[[^]]+\]\((\S+)\)\n\n\[[^]]+\]\(auto_examples/(\w+)\)", text, re.M)
    assert len(pictures) == text.count("![") == 3
    for picture, script in pictures:
        assert (ROOT / "docs" / picture).stat().st_size < 100_000
        assert (ROOT / "examples" / f"{script}.py").is_file()


def test_budget_picture_has_fixed_size(tmp_path):
    done = run("plot_budget_and_coefficients.py", "--output", tmp_path / "picture.png")
    assert (done.returncode, done.stderr) == (0, "")
    assert struct.unpack(">II", (tmp_path / "picture.png").read_bytes()[16:24]) == (1200, 440)
