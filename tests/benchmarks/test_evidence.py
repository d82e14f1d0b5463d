"""Evidence from outside the project: the score of NIST, the groups of the wage regressions, and the page's tables."""

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import bench_kmarginal  # noqa: E402
import bench_wages  # noqa: E402
import evidence_report  # noqa: E402


def test_evidence_tables_are_those_of_the_results():
    text = (BENCHMARKS / "README.md").read_text(encoding="utf-8")
    assert evidence_report.filled(text) == text
    for name, table in evidence_report.blocks():
        assert f"<!-- evidence_report.py: {name}, begin -->\n\n{table}\n\n" in text


def test_k_marginal_is_the_score_of_sdnist():
    rng = np.random.default_rng(0)
    real, made = rng.integers(0, 4, (300, 3)), rng.integers(0, 3, (200, 3))
    distances = []
    for a, b in itertools.combinations(range(3), 2):
        tables = [np.histogram2d(rows[:, a], rows[:, b], bins=range(5))[0] / len(rows) for rows in (real, made)]
        distances.append(np.abs(tables[0] - tables[1]).sum())
    assert bench_kmarginal.k_marginal(real, made) == pytest.approx(500 * (2 - np.mean(distances)))


def test_percentile_bins_hold_a_twentieth_each():
    edges = bench_kmarginal.percentile_bins(np.repeat(np.arange(100), 5))
    counts = np.bincount(np.searchsorted(edges, np.arange(100)))
    assert len(counts) == 20
    assert counts.max() <= 6


def test_interval_overlap_is_the_mean_share_of_both():
    assert evidence_report.overlap(0.0, 2.0, 1.0, 2.0) == pytest.approx(0.75)
    assert evidence_report.overlap(0.0, 1.0, 2.0, 3.0) == 0.0


def test_agreement_counts_signs_and_significance():
    plain = {"coef": [1.0, 0.1], "low": [0.5, -0.4], "high": [1.5, 0.6]}
    private = {"coef": [[1.0, 0.8], [-1.0, 0.1]], "low": [[0.5, 0.3], [None, -0.4]], "high": [[1.5, 1.3], [None, 0.6]]}
    shares = evidence_report.agreement(plain, private)
    assert shares[:5] == ["75%", "50%", "50%", "0%", "50%"]


def test_wage_groups_are_merged_completely():
    assert sorted(map(int, bench_wages.merged(bench_wages.SECTORS, " "))) == list(range(19))
    assert set(bench_wages.merged(bench_wages.COARSE, ", ")) == set(bench_wages.OCCUPATIONS.values())
