"""How far a synthetic table is from the private one: what a row moves, the noise, figures and rejections."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from combinations import over_rows
from rejections import assert_rejected
from relations import with_n_public
from replay import recording
from scipy import stats

from skdp import PrivacyAccountant
from skdp.accounting import GaussianDpEvent
from skdp.mechanisms import GaussianMechanism
from skdp.synthesis import SynthesisEvaluation, evaluate_synthesis

FALSE_ALARM = 1e-6
SCHEMA = {
    "age": {"edges": [0, 20, 40, 65, 100]},
    "job": ["clerk", "nurse"],
    "pay": {"bounds": (0, 9), "missing_values": [None]},
}


def table(n, seed):
    rng = np.random.default_rng(seed)
    pay = np.where(rng.random(n) < 0.2, np.nan, rng.uniform(0, 9, n))
    return pd.DataFrame({"age": rng.integers(0, 100, n), "job": rng.choice(["clerk", "nurse"], n), "pay": pay})


SYNTHETIC = table(300, seed=9)


def total_variation(one, other):
    """Half the sum of the absolute differences between the proportions of rows in all cells."""
    proportions = [frame.value_counts(normalize=True) for frame in (one, other)]
    return 0.5 * proportions[0].sub(proportions[1], fill_value=0).abs().sum()


def quality(*, adjacency=None, **parameters):
    given = {"synthetic": SYNTHETIC, "schema": SCHEMA, "n_bins": 3, "random_state": 0}
    return SynthesisEvaluation(**{**given, **parameters}, adjacency=with_n_public(adjacency, 200))


@over_rows("with_units", [False, True])
@over_rows("adjacency", ["add_remove", "replace_one"])
def test_a_row_or_a_unit_moves_the_release_by_its_sensitivity_and_nothing_else(adjacency, with_units):
    """All rows of unit 7 are taken away, or exchanged for others; of rows that are no units, row 7."""
    rows, units = table(200, seed=1), np.arange(200) // 2
    gone = units == 7 if with_units else np.arange(200) == 7
    other = rows[~gone]
    if adjacency == "replace_one":
        other = rows.copy()
        other.loc[gone, ["age", "job", "pay"]] = [99, "nurse", np.nan]
        rows.loc[gone, ["age", "job", "pay"]] = [0, "clerk", 0.0]
    groups = [units, units if adjacency == "replace_one" else units[~gone]] if with_units else [None, None]
    relation = with_n_public(adjacency, 100 if with_units else 200)
    first: list = []
    runs, models = [], []
    for X, labels in zip((rows, other), groups, strict=True):
        with recording(first) as seen:
            models.append(quality(adjacency=relation, epsilon=5.0).fit(X, groups=labels))
        first = runs[0] if runs else seen
        runs.append(seen)
    (one,), (moved,) = runs
    assert one.sensitivity == moved.sensitivity == pytest.approx(math.sqrt(3))
    factor = 2.0 if adjacency == "replace_one" else 1.0
    distance = np.linalg.norm(one.exact - moved.exact)
    assert 0.2 * factor * one.sensitivity < distance <= factor * one.sensitivity * (1 + 1e-12)
    for name in ("error_", "pairs_", "chance_", "epsilon_", "delta_", "privacy_unit_"):
        assert getattr(models[0], name) == getattr(models[1], name)


def test_the_noise_is_as_priced():
    """Differences from the exact distances of many pairs, by the noise multiplier of the event."""
    rng = np.random.default_rng(2)
    made, rows = rng.integers(0, 2, (50, 30)), rng.integers(0, 2, (80, 30))
    schema = {f"x{j}": [0, 1] for j in range(30)}
    with recording([]) as seen:
        found = quality(synthetic=made, schema=schema, epsilon=3.0).fit(rows)
    (release,) = seen
    assert release.sensitivity == pytest.approx(math.sqrt(30 * 29 / 2))
    assert found.privacy_event_ == GaussianDpEvent(found.privacy_event_.noise_multiplier)
    noise = (release.noisy - release.exact) / release.sensitivity / found.privacy_event_.noise_multiplier
    low, high = stats.chi2.interval(1 - FALSE_ALARM, noise.size)
    assert low < np.sum(noise**2) < high
    (error,) = {each.standard_error for each in found.pairs_.values()}
    mechanism = GaussianMechanism(found.privacy_event_.noise_multiplier, release.sensitivity)
    assert error == pytest.approx(mechanism.standard_deviation / 160)


def test_figures_are_those_of_the_owner_up_to_noise():
    rows, accountant = table(2000, seed=3), PrivacyAccountant(epsilon=1.0, delta=1e-5)
    found = evaluate_synthesis(rows, SYNTHETIC, SCHEMA, n_bins=3, epsilon=1.0, delta=1e-6, accountant=accountant)
    assert [charge.event for charge in accountant.history] == [found.privacy_event_]
    binned = [
        frame.assign(age=np.digitize(frame["age"], [20, 40, 65]), pay=frame["pay"].floordiv(3).fillna(-1.0))
        for frame in (rows, SYNTHETIC)
    ]
    pairs = [("age", "job"), ("age", "pay"), ("job", "pay")]
    exact = [total_variation(*(frame[list(pair)] for frame in binned)) for pair in pairs]
    assert list(found.pairs_) == pairs
    for (pair, estimate), value in zip(found.pairs_.items(), exact, strict=True):
        assert abs(estimate.value - value) < 6 * estimate.standard_error, pair
        assert estimate.high - estimate.low == pytest.approx(2 * 1.96 * estimate.standard_error, rel=1e-3)
    assert abs(found.error_.value - np.mean(exact)) < 6 * found.error_.standard_error
    assert found.error_.standard_error == pytest.approx(estimate.standard_error / math.sqrt(3))
    worst = list(found.worst(2).values())
    assert len(worst) == 2
    assert worst[0].value >= worst[1].value
    for shown in (repr(found), found._repr_html_()):
        assert str(found.error_) in shown
        assert "95%" in shown


def test_chance_is_what_two_tables_of_one_distribution_have():
    rng = np.random.default_rng(4)
    rows = [rng.integers(0, 4, (1000, 4)) for _ in range(20)]
    schema = {f"x{j}": [0, 1, 2, 3] for j in range(4)}
    chance = quality(synthetic=rows[0], schema=schema).fit(rows[1]).chance_
    halves = zip(rows[::2], rows[1::2], strict=True)
    found = [
        total_variation(pd.DataFrame(one[:, pair]), pd.DataFrame(other[:, pair]))
        for one, other in halves
        for pair in map(list, itertools.combinations(range(4), 2))
    ]
    assert chance == pytest.approx(np.mean(found), rel=0.05)


BAD_INPUT = [
    ({"level": 1.0}, {}, ["`level` must be"]),
    ({"n_bins": 0}, {}, ["`n_bins` must be"]),
    ({"schema": {**SCHEMA, "pay": "number"}}, {}, ["must be complete"]),
    ({"schema": 3}, {}, ["schema"]),
    ({"synthetic": SYNTHETIC[:0]}, {}, ["0 sample"]),
    ({"synthetic": SYNTHETIC[["job", "age", "pay"]]}, {}, ["in the same order"]),
    (
        {},
        {"X": table(50, 0).assign(job="secret")},
        ["Column 'job'", "Column 'job' has categories that the schema does not list"],
    ),
]


@over_rows("parameters, given, words", BAD_INPUT)
def test_bad_input_is_rejected_in_one_line_before_any_charge(parameters, given, words):
    assert_rejected(quality, parameters, {"X": table(50, 0), **given}, words, ["secret"])
