"""The benchmark of synthetic tables: the mechanisms written for a peer, and the processes that run peers."""

import sys
from pathlib import Path

import numpy as np
import pytest

from skdp.accounting import ZCDpEvent, get_epsilon

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import bench_synthesis  # noqa: E402
import environments  # noqa: E402
import synthesis_peers  # noqa: E402


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-5), (4.0, 1e-9)])
def test_peers_have_all_of_their_budget(epsilon, delta):
    """Rho by which mbi's mechanisms draw their noise costs epsilon, by our own cost of it."""
    rho = synthesis_peers.rho_of(epsilon, delta)
    assert get_epsilon(ZCDpEvent(rho), delta, method="rdp") == pytest.approx(epsilon, rel=2e-3)


def test_the_exponential_mechanism_draws_by_its_law():
    """At a false-alarm rate of 1e-6: the share of the better one of two is e / (1 + e) at two units apart."""
    rng = np.random.default_rng(0)
    chosen = [synthesis_peers.choose(np.array([0.0, 2.0]), 1.0, 1.0, rng) for _ in range(20_000)]
    share = np.e / (1 + np.e)
    assert abs(np.mean(chosen) - share) < 4.9 * (share * (1 - share) / 20_000) ** 0.5


@pytest.fixture(scope="module")
def codes():
    """Rows whose columns depend on each other, the label last."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, 2000)
    rows = np.column_stack([a, (a + rng.integers(0, 2, 2000)) % 3, a > 0]).astype(int)
    return bench_synthesis.Codes(rows[:1500], rows[1500:], [3, 3, 2])


def test_rows_are_judged(codes):
    tv2, tv3, logistic, boosted = [
        *bench_synthesis.errors(codes.train, codes),
        *bench_synthesis.judged(*codes[:1], codes),
    ]
    assert tv2 == tv3 == 0.0
    assert min(logistic, boosted) > 0.99
    shuffled = np.random.default_rng(0).permuted(codes.train, axis=0)
    assert bench_synthesis.errors(shuffled, codes)[0] > 0.2


def test_a_peer_that_fails_or_is_slow_has_no_figures(codes, capsys):
    name = "mbi 2.0.0, mst"
    assert bench_synthesis.peer(codes, sys.executable, name, 1.0, 300) is None
    assert "No module named 'mbi'" in capsys.readouterr().out
    assert bench_synthesis.peer(codes, sys.executable, name, 1.0, 0.01) is None
    assert "no fit after 0.01 s" in capsys.readouterr().out


def test_peers_are_named_by_the_versions_of_their_environments():
    for name in synthesis_peers.PEERS:
        library, version = name.split(",")[0].rsplit(" ", 1)
        home = "smartnoise" if library.startswith("smartnoise") else library
        assert f"{library}=={version}" in environments.requirements(home).read_text().splitlines()
