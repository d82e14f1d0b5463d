"""Rules for what the user leaves open: by hand-computed values, and as functions of public numbers only."""

from __future__ import annotations

import inspect
import itertools
import math
import warnings

import numpy as np
import pytest
from combinations import over_rows

from skdp import DPLogisticRegression
from skdp._training import defaults as rule
from skdp.mechanisms.sampling import FullBatch, PoissonSampling
from skdp.preprocessing import DPTableVectorizer

PUBLIC = {"n", "n_parameters", "n_steps", "noise_multiplier", "lot_size", "max_grad_norm", "affordable"}


def test_rules_read_public_numbers_only():
    """No rule can see a row: every argument is a public number, by name and by type."""
    rules = [getattr(rule, name) for name in dir(rule) if name.startswith("default_")]
    assert len(rules) == 3
    for function in rules:
        for parameter in inspect.signature(function).parameters.values():
            assert parameter.name in PUBLIC
            assert parameter.annotation in ("int", "float")


def test_full_batch_where_it_is_affordable():
    """n p T up to 5e9: 10**6 rows of 12 parameters for 200 steps are 2.4e9, 10**7 rows are not."""
    assert rule.default_sampling(10**6, 12, 200) == FullBatch()
    assert rule.default_sampling(2_000_000, 12, 208) == FullBatch()  # 4.992e9
    assert rule.default_sampling(2_000_000, 12, 209) == PoissonSampling(1 / 8)  # 5.016e9
    assert rule.default_sampling(10**7, 12, 200) == PoissonSampling(1 / 8)


def test_lots_are_never_smaller_than_4096_rows():
    assert rule.default_sampling(4_096, 10**9, 200) == FullBatch()
    assert rule.default_sampling(8_192, 10**9, 200) == PoissonSampling(0.5)
    assert rule.default_sampling(10**6, 10**6, 200) == PoissonSampling(1 / 8)
    for n in (4_097, 10_000, 32_768, 32_769, 10**7):
        assert rule.default_sampling(n, 10**9, 200).rate * n >= 4_096 * (1 - 1e-12)


def test_rows_that_the_model_knows_nothing_of_are_just_not_shortened():
    """Of norm 1 and two classes, at a probability of 1/2."""
    assert rule.TWO_CLASSES_CLIP == 0.5


@over_rows(
    ("signal", "clip"),
    [(30.0, 0.25), (700.0, 0.7), (math.sqrt(30.0 * 700.0), 0.475), (1.0, 0.25), (1e-200, 0.25), (1e6, 0.7)],
)
def test_clip_by_hand(signal, clip):
    """s = L sqrt(T / p) / sigma; C goes from 0.25 at 30 to 0.7 at 700, linear in log s."""
    assert rule.default_max_grad_norm(1.0, signal, 50, 50) == pytest.approx(clip, rel=1e-12)
    assert rule.default_max_grad_norm(4.0, signal * 2, 100, 25) == pytest.approx(clip, rel=1e-12)


def test_clip_grows_with_the_signal():
    clips = [rule.default_max_grad_norm(1.0, lot, 200, 12) for lot in np.geomspace(1e-3, 1e6, 200)]
    assert all(low <= high for low, high in itertools.pairwise(clips))
    by_noise = [rule.default_max_grad_norm(sigma, 1_000.0, 200, 12) for sigma in np.geomspace(1e-3, 1e9, 200)]
    assert all(low >= high for low, high in itertools.pairwise(by_noise))
    assert {min(clips), min(by_noise)} == {0.25}
    assert {max(clips), max(by_noise)} == {0.7}


def test_the_clip_of_a_fit_is_that_of_its_classes():
    rows = np.random.default_rng(0).uniform(-1, 1, (60, 2))
    table = DPTableVectorizer({"x0": (-1, 1), "x1": (-1, 1)}, numbers="scale").fit_transform(rows)
    for X, n_classes, clip in ((rows, 2, 0.5), (table, 2, 0.5), (rows, 3, 0.25), (table, 3, 1.0)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = DPLogisticRegression(classes=range(n_classes)).fit(X, np.arange(60) % n_classes)
        assert model.max_grad_norm_ == clip


def test_signal_by_hand():
    """n=2,000 rows, 12 parameters, epsilon 1: one release would have sigma 3.73."""
    assert rule.signal_of(3.73 * math.sqrt(200), 2_000.0, 200, 12) == pytest.approx(154.8, abs=0.1)
    assert rule.signal_of(2.0, 100.0, 50, 2) == pytest.approx(250.0)


def test_learning_rate_by_hand():
    """eta = 2 L / (sigma C sqrt(T)), and eta C at most 200."""
    assert rule.default_learning_rate(10.0, 0.5, 1_000.0, 100) == pytest.approx(40.0, rel=1e-14)
    assert rule.default_learning_rate(0.1, 0.5, 1_000.0, 100) == pytest.approx(400.0, rel=1e-14)  # 200 / C
    assert rule.default_learning_rate(1.0, 0.25, 1_000.0, 100) == pytest.approx(800.0, rel=1e-14)  # just reached


def test_learning_rate_fixes_how_far_noise_carries():
    """Below the cap eta sigma C sqrt(T) / L, the noise's walk, is 2 whatever the rest; n and d do not enter."""
    for sigma, clip, lot, steps in itertools.product((50.0, 900.0), (0.25, 0.7), (100.0, 5_000.0), (50, 200)):
        rate = rule.default_learning_rate(sigma, clip, lot, steps)
        assert rate * clip <= 200.0 * (1 + 1e-15)
        if rate * clip < 200.0:
            assert rate * sigma * clip * math.sqrt(steps) / lot == pytest.approx(2.0, rel=1e-12)


def test_constants_are_those_of_the_documentation():
    assert rule.N_STEPS == 200
