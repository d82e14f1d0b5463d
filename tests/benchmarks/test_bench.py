"""The harness of the benchmarks: what becomes of JSON lines, who takes part, and the process of a contestant."""

import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import bench  # noqa: E402
import environments  # noqa: E402
import speed_report  # noqa: E402
from peers.registry import CONTESTANTS, load_all  # noqa: E402
from peers.tasks import TASKS  # noqa: E402

load_all()


def turn(contestant, number, ms, task="108-256", **more):
    line = {"task": task, "contestant": contestant, "round": number, "ms": ms, "least_ms": ms, "steps": 9}
    return line | {"others": 0.0, "peak_mb": 120} | more


# --- the report ---


def test_the_page_shows_the_results():
    """No figure of the generated section is typed by hand."""
    if not bench.RESULTS.exists():
        pytest.skip("no results were kept")
    page = speed_report.PAGE.read_text(encoding="utf-8")
    assert speed_report.between(page, speed_report.section(bench.RESULTS)) == page


# --- the lines ---


def test_a_task_that_is_measured_again_replaces_its_lines(tmp_path):
    path = tmp_path / "results" / "speed.jsonl"
    bench.replace_lines(path, "a", None, [turn("skdp", 0, 1.0, "a"), turn("products", 0, 1.0, "a")])
    bench.replace_lines(path, "b", None, [turn("skdp", 0, 2.0, "b")])
    bench.replace_lines(path, "a", {"skdp"}, [turn("skdp", 0, 3.0, "a")])
    found = {(line["task"], line["contestant"]): line["ms"] for line in speed_report.read(path)}
    assert found == {("a", "products"): 1.0, ("b", "skdp"): 2.0, ("a", "skdp"): 3.0}
    bench.replace_lines(path, "a", None, [])
    assert {line["task"] for line in speed_report.read(path)} == {"b"}


# --- the process ---


def test_what_goes_wrong_is_reported(monkeypatch):
    unknown = CONTESTANTS["products"]._replace(module="peers.limits", name="nobody")
    worker = bench.Worker("normals", unknown, sys.executable, 1)
    assert worker.first(120.0)["error"].startswith("KeyError")
    worker.close()
    slow = bench.Worker("normals", CONTESTANTS["default_rng, float64"], sys.executable, 1)
    assert slow.first(0.0) == {"error": "no answer within 0 s"}


@pytest.mark.parametrize("key", [key for key, task in TASKS.items() if task.limit])
def test_the_limit_of_a_task_takes_part(key):
    assert CONTESTANTS[TASKS[key].limit].takes(key, TASKS[key])
    assert any(each.role == "ours" and each.takes(key, TASKS[key]) for each in CONTESTANTS.values())


def test_every_contestant_has_an_environment_and_a_task():
    for each in CONTESTANTS.values():
        assert each.home in {environments.HERE, *environments.names()}, each.name
        assert any(each.takes(key, task) for key, task in TASKS.items()), each.name
        assert each.role in speed_report.ROLES, each.name
