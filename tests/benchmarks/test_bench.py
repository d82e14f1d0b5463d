"""The harness of the benchmarks: what becomes of JSON lines, who takes part, and the process of a contestant."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import bench  # noqa: E402
import environments  # noqa: E402
import profile_steps  # noqa: E402
import scaling  # noqa: E402
import speed_report  # noqa: E402
from peers.registry import CONTESTANTS, load_all  # noqa: E402
from peers.tasks import SCALING, TASKS, rows_of  # noqa: E402
from peers.worker import Turns  # noqa: E402

load_all()


def start(contestant, task="108-256", **more):
    line = {"task": task, "contestant": contestant, "first_s": 0.5, "rows_mb": 100, "peak_mb": 130, "versions": {}}
    return line | more


def turn(contestant, number, ms, task="108-256", **more):
    line = {"task": task, "contestant": contestant, "round": number, "ms": ms, "least_ms": ms, "steps": 9}
    return line | {"others": 0.0, "peak_mb": 120} | more


@pytest.fixture
def lines():
    """skdp in .15 ms, products in .05, PyTorch in .3, a private peer in .6, one that is not installed."""
    found = [
        start("skdp", machine={"cores": 2, "threads": 2, "architecture": "x"}, versions={"numpy": "2", "skdp": "0"}),
        start("products", versions={"numpy": "2"}),
        start("PyTorch", versions={"torch": "3", "numpy": "1"}),
        start("JAX vmap, Poisson sampling"),
        start("JAX vmap"),
        {"task": "108-256", "contestant": "Opacus, hooks", "error": "not installed"},
    ]
    for number, factor in enumerate((1.0, 9.0, 0.9)):
        found.append(turn("skdp", number, 0.15 * factor))
        found.append(turn("products", number, 0.05))
        found.append(turn("PyTorch", number, 0.3))
        found.append(turn("JAX vmap, Poisson sampling", number, 0.6))
        found.append(turn("JAX vmap", number, 0.1))
    return found


# --- the report ---


def test_figures_are_medians_of_rounds(lines):
    found = speed_report.collect(lines)["108-256"]
    assert found["skdp"].ms == pytest.approx(0.15)  # not moved by a round that was disturbed
    assert found["skdp"].rounds == pytest.approx((0.15, 1.35, 0.135))
    assert (found["skdp"].first_s, found["skdp"].extra_mb) == (0.5, 30)
    assert found["Opacus, hooks"] == ((), None, None, 0.0, "not installed")
    assert found["Opacus, hooks"].ms is None


def test_ratios_are_of_medians(lines):
    found = speed_report.collect(lines)["108-256"]
    assert speed_report.ratio(found["skdp"], found["products"]) == pytest.approx(3.0)
    assert speed_report.ratio(found["skdp"], found["Opacus, hooks"]) is None
    assert speed_report.ratio(found["skdp"], None) is None


def test_the_table_of_a_task(lines):
    text = speed_report.table("108-256", speed_report.collect(lines), CONTESTANTS)
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in text.split("\n")]
    assert [row[0] for row in rows[2:]] == [
        "products", "JAX vmap", "**skdp**", "PyTorch", "JAX vmap, Poisson sampling", "Opacus, hooks",
    ]  # fmt: skip
    assert rows[4] == ["**skdp**", "private", "yes", "150 us", "135 us to 1.35 ms", "3.00", "0.5 s", "30 MB"]
    assert rows[-1] == ["Opacus, hooks", "private", "no", "not installed", "", "", "", ""]
    assert {len(row) for row in rows} == {8}


def test_contestants_that_are_gone_are_left_out(lines):
    lines.append(turn("somebody who left", 0, 1.0))
    assert "somebody" not in speed_report.table("108-256", speed_report.collect(lines), CONTESTANTS)


def test_the_overview_compares_with_peers_that_do_the_same_work(lines):
    """JAX `vmap` on lots gathered beforehand was faster, but drew none."""
    row = speed_report.overview(speed_report.collect(lines), CONTESTANTS).split("\n")[2]
    cells = [cell.strip() for cell in row.split("|")[1:-1]]
    assert cells == [
        "108-64-2, lot 256", "50.0 us", "PyTorch: 300 us", "JAX vmap, Poisson sampling: 600 us", "150 us", "0.25",
        "at most 120 us", "150 us: **missed**",
    ]  # fmt: skip


@pytest.mark.parametrize(("ours", "verdict"), [(1.4, "1.40 x: reached"), (1.6, "1.60 x: **missed**")])
def test_targets_in_times_of_the_limit(ours, verdict):
    lines = [turn("products", 0, 1.0, "60-600"), turn("skdp", 0, ours, "60-600")]
    row = speed_report.overview(speed_report.collect(lines), CONTESTANTS).split("\n")[2]
    assert f"| at most 1.5 x products | {verdict} |" in row


def test_targets_in_times_of_the_idle_step():
    lines = [turn("skdp", 0, 2.0, "60-600"), turn("skdp", 0, 5.0, "60-600-busy")]
    rows = speed_report.overview(speed_report.collect(lines), CONTESTANTS).split("\n")
    assert "at most 1.5 x idle | 2.50 x: **missed** |" in rows[3]
    alone = speed_report.overview(speed_report.collect(lines[1:]), CONTESTANTS)
    assert "at most 1.5 x idle | not measured |" in alone


def test_a_machine_that_was_not_idle_is_told_of(lines):
    assert "not idle" not in speed_report.table("108-256", speed_report.collect(lines), CONTESTANTS)
    lines = [line | {"others": 0.8} if "others" in line else line for line in lines]
    assert "up to 0.8 cores" in speed_report.table("108-256", speed_report.collect(lines), CONTESTANTS)
    busy = [turn("skdp", 0, 1.0, "60-600-busy", others=1.1)]  # one was busy on purpose
    assert "not idle" not in speed_report.table("60-600-busy", speed_report.collect(busy), CONTESTANTS)


def test_versions_are_those_of_the_processes(lines):
    assert speed_report.setting(lines) == "2 cores (x), 2 threads; NumPy 1 and 2, PyTorch 3, skdp 0."


def test_the_caption_of_the_page_names_every_library_that_has_a_row():
    page = (BENCHMARKS / "README.md").read_text(encoding="utf-8")
    caption = page.split(speed_report.BEGIN)[1].split("\n")[2]
    for library in (
        "jax-privacy 2.",
        "JAX 0.",
        "Opacus 1.",
        "PyTorch 2.",
        "diffprivlib 0.",
        "scikit-learn 1.",
        "NumPy 2.",
    ):
        assert library in caption, library


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0.00712, "7.12 us"), (0.0441, "44.1 us"), (0.9991, "999 us"), (0.9996, "1.00 ms"), (37.04, "37.0 ms"),
     (999.4, "999 ms"), (1234.0, "1.23 s"), (123456.0, "123 s"), (None, "")],
)  # fmt: skip
def test_times_have_three_digits(ms, text):
    assert speed_report.time_text(ms) == text


def test_the_report_replaces_what_is_between_the_markers(lines, tmp_path, monkeypatch):
    results, page = tmp_path / "speed.jsonl", tmp_path / "README.md"
    results.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert speed_report.read(results) == lines
    page.write_text(f"before\n{speed_report.BEGIN}\nof an earlier run\n{speed_report.END}\nafter\n")
    monkeypatch.setattr(speed_report, "PAGE", page)
    speed_report.write(results)
    first = page.read_text()
    assert first.startswith(f"before\n{speed_report.BEGIN}\n")
    assert first.endswith(f"{speed_report.END}\nafter\n")
    assert "of an earlier run" not in first
    assert "| **skdp** | private | yes | 150 us |" in first
    speed_report.write(results)
    assert page.read_text() == first


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


def test_a_contestant_answers_from_its_own_process():
    worker = bench.Worker("normals", CONTESTANTS["skdp, secret, float64"], sys.executable, 1)
    try:
        first = worker.first(120.0)
        assert first["first_s"] > 0.0
        assert first["peak_mb"] >= first["rows_mb"] > 0.0
        assert set(first["versions"]) == {"python", "numpy", "scipy", "numba", "skdp"}
        line = worker.turn(0.02, 120.0)
        assert 0.0 < line["least_ms"] <= line["ms"] < 1e3
        assert line["steps"] >= 1
    finally:
        worker.close()


def test_what_goes_wrong_is_reported(monkeypatch):
    unknown = CONTESTANTS["products"]._replace(module="peers.limits", name="nobody")
    worker = bench.Worker("normals", unknown, sys.executable, 1)
    assert worker.first(120.0)["error"].startswith("KeyError")
    worker.close()
    slow = bench.Worker("normals", CONTESTANTS["default_rng, float64"], sys.executable, 1)
    assert slow.first(0.0) == {"error": "no answer within 0 s"}


def test_a_turn_makes_one_step_at_least():
    calls = []
    assert len(Turns(lambda: calls.append(1)).turn(0.0)) == len(calls) == 1
    assert len(Turns(lambda: calls.append(1)).turn(0.01)) > 1


@pytest.mark.parametrize("key", [key for key, task in TASKS.items() if task.limit])
def test_the_limit_of_a_task_takes_part(key):
    assert CONTESTANTS[TASKS[key].limit].takes(key, TASKS[key])
    assert any(each.role == "ours" and each.takes(key, TASKS[key]) for each in CONTESTANTS.values())


def test_every_contestant_has_an_environment_and_a_task():
    for each in CONTESTANTS.values():
        assert each.home in {environments.HERE, *environments.names()}, each.name
        assert any(each.takes(key, task) for key, task in TASKS.items()), each.name
        assert each.role in speed_report.ROLES, each.name


def test_rows_are_the_same_in_every_process():
    task = TASKS["108-256"]._replace(n=50)
    for first, second in zip(rows_of(task), rows_of(task), strict=True):
        np.testing.assert_array_equal(first, second)
    X, y = rows_of(task)
    assert (X.dtype, X.shape, set(np.unique(X))) == (np.float32, (50, 108), {0.0, 1.0})
    assert set(y) == {0, 1}
    X, y = rows_of(TASKS["784-2048"]._replace(n=500))
    assert set(y) == set(range(10))


def test_an_environment_is_made_anew_when_its_requirements_change(tmp_path, monkeypatch):
    folder, peers = tmp_path / "made", tmp_path / "peers"
    (folder / "torch" / "bin").mkdir(parents=True)
    (folder / "torch" / "bin" / "python").touch()
    peers.mkdir()
    (peers / "requirements-torch.txt").write_text("torch==1\n")
    monkeypatch.setattr(environments, "PEERS", peers)
    assert environments.names() == ["torch"]
    assert environments.python_of("torch", folder) is None
    (folder / "torch" / "requirements.sha256").write_text(environments._stamp("torch"))
    assert environments.python_of("torch", folder) == folder / "torch" / "bin" / "python"
    (peers / "requirements-torch.txt").write_text("torch==2\n")
    assert environments.python_of("torch", folder) is None
    assert environments.python_of(environments.HERE, folder) == Path(sys.executable)


# --- the profile ---


class Now:
    """A clock that goes on by what is spent."""

    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        return self.seconds

    def spend(self, seconds):
        self.seconds += seconds


def test_time_goes_to_the_function_that_spends_it_and_to_its_phase():
    now = Now()
    clock = profile_steps.Clock(now)
    product = clock.timed("numpy.matmul", lambda: now.spend(20.0))
    helper = clock.timed("_training.models.network.helper", lambda: now.spend(3.0))  # counts for its caller's phase

    def gather_then_multiply():
        now.spend(1.0)
        helper()
        product()

    step = clock.timed("_kernels.dense.gather_rows", gather_then_multiply)
    helper()  # without a caller: Python
    for _ in range(3):
        step()
        clock.tick()
    assert clock.per_step("own") == {
        "numpy.matmul": 20.0, "_training.models.network.helper": 3.0, "_kernels.dense.gather_rows": 1.0,
    }  # fmt: skip
    assert clock.per_step("phases") == {"products": 20.0, "gather": 4.0, "Python": 0.0}
    assert clock.steps[0]["phases"]["Python"] == 3.0
    assert clock.per_step("calls")["numpy.matmul"] == 1


def test_time_of_other_threads_is_kept_aside():
    now = Now()
    clock = profile_steps.Clock(now)
    call = clock.timed("_kernels.linear.add_all_rows", lambda: now.spend(7.0))
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    clock.tick()
    assert clock.per_step("own aside") == {"_kernels.linear.add_all_rows": 7.0}
    assert clock.per_step("phases aside") == {"fused kernel": 7.0}
    assert clock.per_step("own") == {}


@pytest.mark.parametrize(
    ("name", "phase"),
    [("_random.SecretStream.poisson_rows", "sampling"), ("_kernels.dense.gather_rows", "gather"),
     ("numpy.matmul", "products"), ("_kernels.dense.clip_factors", "clip"), ("numpy.einsum", "norms"),
     ("mechanisms.GaussianMechanism._add_noise", "noise"), ("_kernels.updates.momentum_update", "update"),
     ("_kernels.linear.add_some_rows", "fused kernel"), ("_random.SecretStream.words", ""),
     ("_training.models.linear.LinearModel.clipped_gradient_sum", "")],
)  # fmt: skip
def test_phases_are_told_by_names(name, phase):
    assert profile_steps.phase_of(name) == phase


def test_the_work_of_a_step_is_counted():
    flops, n_bytes = profile_steps.work_of(TASKS["60-600"])
    assert flops == 2 * 600 * (60 * 1000 * 2 + 1000 * 10 * 3)
    assert n_bytes == 4 * (600 * 60 + 6 * (61 * 1000 + 1001 * 10))


# --- scaling ---


def test_scaling_covers_three_decades():
    for series in scaling.SERIES:
        sizes = [int(key.split("/")[1]) for key in SCALING if key.split("/")[0] == series]
        assert sorted(sizes) == sizes
        assert sizes[-1] == 1000 * sizes[0]
        assert len(sizes) == 7


def test_epochs_are_counted_in_rows():
    lines = [{"task": "lots/10000", "contestant": "skdp", "threads": 1, "ms": ms} for ms in (0.1, 0.2, 9.0)]
    lines += [{"task": "lots/10000", "contestant": "X[idx]", "threads": 1, "ms": 0.1}]
    lines += [{"task": "lots/10000", "contestant": "skdp", "threads": 2, "error": "none"}]
    points = scaling.collect(lines)
    assert points == {
        ("lots", 10_000, False, 1): pytest.approx(0.2e-3 * 10_000 / 1024),
        ("lots", 10_000, True, 1): pytest.approx(0.1e-3 * 10_000 / 1024),
    }
    assert "| lots of 1,024, 11 columns | 10,000 rows | 1.95 ms | 2.00 |  |  |" in scaling.table(points)


def test_the_picture_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    points = {("width", w, is_limit, 1): w * 1e-5 for w in (10, 100) for is_limit in (True, False)}
    scaling.draw(points, tmp_path / "scaling.png")
    assert (tmp_path / "scaling.png").stat().st_size > 1000
    page = f"before\n{scaling.MARKERS[0]}\nof an earlier run\n{scaling.MARKERS[1]}\nafter\n"
    text = speed_report.between(page, scaling.section(points), scaling.MARKERS)
    assert "of an earlier run" not in text
    assert text.endswith(f"{scaling.MARKERS[1]}\nafter\n")
