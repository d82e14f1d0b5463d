"""The contract that fits with few releases sign, whatever they learn. A newcomer is one more line of `FITS`.

Estimators by gradient descent sign it in `test_guarantees_charges.py` and `test_guarantees_neighbours.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from guarantee_cases import PUBLISHED, UNDOCUMENTED
from replay import assert_all_else_is_equal, recording, replay, run

from skdp import (
    DPPCA,
    DPWGAN,
    BudgetExceededError,
    DPClassMixtureGenerator,
    DPGaussianNB,
    DPLinearRegression,
    DPMarginalSynthesizer,
    DPRidge,
    PrivacyAccountant,
)
from skdp.accounting import GaussianDpEvent, get_epsilon

pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyLeakWarning")  # a replay needs a seed

CLASSES, COLUMNS = ["a", "b", "c"], ["one", "two", "three", "four"]
BOUNDS = {"bounds": (-1.0, 1.0)}
SMALL = {"n_components": 8, "max_iter": 5, "n_bins": 5}
GAN = {"critic_layer_sizes": 9, "generator_layer_sizes": 8, "n_latent": 3, "max_iter": 3, "sampling_rate": 0.25}


def rows(n, seed=0):
    return (pd.DataFrame(np.random.default_rng(seed).uniform(-1.0, 1.0, (n, 4)), columns=COLUMNS),)


def labelled(n, seed=0):
    return *rows(n, seed), np.random.default_rng(seed + 100).choice(CLASSES, n)


def with_targets(n, seed=0):
    (X,) = rows(n, seed)
    return X, np.clip(X.to_numpy() @ [2.0, -1.0, 0.0, 0.5], -3, 5)


class Case(NamedTuple):
    """An estimator, what is given to its fit, where it first adds up rows, and settings that fit in another way."""

    estimator: Callable
    given: dict
    draw: Callable
    sums: str
    settings: tuple = ({},)


SUM_OF_MOMENTS = "skdp.linear_model.normal_equations.SumOfRows.add"
COUNTS = "skdp.synthesis.marginals.contingency_tables.count"
SCALED = "skdp.synthesis.class_mixture.row_blocks.Box.scale"
MIXTURES = ({"n_components": 1}, {"n_components": 2})
QUIET = {"epsilon": None, "noise_multiplier": 1e-3}
LEAST_SQUARES = {"y_bounds": (-3.0, 5.0)}, with_targets, SUM_OF_MOMENTS, ({}, {"fit_intercept": False}, QUIET)
WITH_CLASSES = {"classes": CLASSES, **BOUNDS}
FITS = {
    "naive Bayes": Case(DPGaussianNB, WITH_CLASSES, labelled, "skdp.naive_bayes.sum_of_rows", ({}, QUIET)),
    "least squares": Case(DPLinearRegression, *LEAST_SQUARES),
    "ridge": Case(DPRidge, *LEAST_SQUARES),
    "components": Case(
        DPPCA, {}, rows, "skdp.decomposition.MomentSum.add",
        ({}, {"n_components": "auto", "normalize": True, "whiten": True}, {"center": False},
         {"n_components": 1, **QUIET}),
    ),
    "class mixture": Case(DPClassMixtureGenerator, {"n_directions": 4, **WITH_CLASSES}, labelled, SCALED, MIXTURES),
    "mixture": Case(DPClassMixtureGenerator, {"n_directions": 4, **BOUNDS}, rows, SCALED, MIXTURES),
    "synthesizer": Case(
        DPMarginalSynthesizer, {**SMALL, **WITH_CLASSES}, labelled, COUNTS,
        ({"triples": False}, {"triples": True}, {"pairs": "select", "epsilon": 50.0}),
    ),
    "synthesizer of rows": Case(DPMarginalSynthesizer, {**SMALL, **BOUNDS}, rows, COUNTS),
    "WGAN": Case(
        DPWGAN, {**GAN, **WITH_CLASSES}, labelled, "skdp.synthesis.gan.critic.CriticModel.clipped_gradient_sum",
        ({"epsilon": 20.0}, {"epsilon": 20.0, "label_shares": "uniform"}),
    ),
}  # fmt: skip
by_name = pytest.mark.parametrize("name", FITS)
SETTINGS = [(name, setting) for name, case in FITS.items() for setting in case.settings]
in_each_setting = pytest.mark.parametrize(("name", "setting"), SETTINGS, ids=str)


def make(name, **parameters):
    case = FITS[name]
    return case.estimator(**{"random_state": 0, "delta": 1e-5, **case.given, **case.settings[0], **parameters})


def published(model):
    return {each for each in PUBLISHED[type(model)] if hasattr(model, each)} - {"n_features_in_", "feature_names_in_"}


@by_name
def test_nothing_is_summed_above_the_ceiling(name, monkeypatch):
    monkeypatch.setattr(FITS[name].sums, lambda *given, **named: pytest.fail("rows were summed"))
    accountant = PrivacyAccountant(epsilon=0.5, delta=1e-5)
    model = make(name, accountant=accountant)
    with recording([]) as releases, pytest.raises(BudgetExceededError):
        model.fit(*FITS[name].draw(60))
    assert releases == []
    assert accountant.history == ()
    assert published(model) == set()


@by_name
def test_the_charge_stands_before_the_rows_are_summed(name, monkeypatch):
    def fail(*given, **named):
        raise RuntimeError("a fault in the middle")

    monkeypatch.setattr(FITS[name].sums, fail)
    accountant = PrivacyAccountant()
    model = make(name, accountant=accountant)
    with pytest.raises(RuntimeError, match="in the middle"):
        model.fit(*FITS[name].draw(60))
    assert [entry.label for entry in accountant.history] == [type(model).__name__]
    assert published(model) == set()


@in_each_setting
def test_every_release_of_every_fit_has_noise_of_its_own(name, setting):
    drawn = []
    for _ in range(2):
        with recording([]) as releases:
            make(name, random_state=None, **setting).fit(*FITS[name].draw(60))
        assert releases
        noise = [(each.noisy - each.exact).ravel()[:3] / each.sensitivity for each in releases]
        drawn += np.concatenate(noise).round(9).tolist()
    assert len(set(drawn)) == len(drawn)


@by_name
def test_a_seed_repeats_a_fit(name):
    one, other = (run(lambda data: make(name).fit(*data), FITS[name].draw(60)) for _ in range(2))
    assert_all_else_is_equal(one, other)


OF_GIVEN_EPSILON = [each for each in SETTINGS if each[0] != "WGAN" and each[1].get("epsilon", 1.0)]


@pytest.mark.parametrize(("name", "setting"), OF_GIVEN_EPSILON, ids=str)
def test_replace_one_is_priced_at_twice_the_sensitivity(name, setting):
    """The halved sensitivity stands on this."""
    model = make(name, adjacency="replace_one", **setting).fit(*FITS[name].draw(60))
    expected = get_epsilon(GaussianDpEvent(model.noise_multiplier_ / 2), 1e-5)
    assert model.epsilon_ == pytest.approx(expected, rel=1e-6)
    assert model.epsilon_ <= setting.get("epsilon", 1.0)


@pytest.mark.parametrize("one_more", [False, True])
@in_each_setting
def test_all_that_is_fitted_follows_from_the_releases(name, setting, one_more):
    """Property 23: other rows, labels and targets, and one more under add_remove; the same releases, the same state."""
    parameters = {"adjacency": "add_remove", "n_samples_public": 100} if one_more else {}
    draw, model = FITS[name].draw, make(name, **setting, **parameters)
    one, other = replay(lambda data: model.fit(*data), draw(60), draw(60 + one_more, seed=1))
    assert len(one.releases) == len(other.releases) > 0
    assert_all_else_is_equal(one, other)


@in_each_setting
def test_fit_publishes_what_is_on_the_list(name, setting):
    model = make(name, accountant=PrivacyAccountant(), **setting).fit(*FITS[name].draw(60))
    of_labels = {"classes_", "label_shares_"} if FITS[name].draw is rows else set()
    expected = (PUBLISHED[type(model)].keys() | UNDOCUMENTED[type(model)].keys()) - of_labels - {"_fitted_group_name"}
    assert vars(model).keys() - model.get_params().keys() == expected
