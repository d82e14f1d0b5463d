"""Budgets of estimators, pipelines and searches that are stated as what an attacker may gain."""

import types

import numpy as np
import pandas as pd
import pytest
from combinations import over_rows
from scipy.stats import norm
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline

import skdp
from skdp import Risk
from skdp.accounting import GaussianDpEvent, PrivacyAccountant, PrivacyProfile
from skdp.model_selection import DPGridSearchCV, cross_validate
from skdp.naive_bayes import DPGaussianNB
from skdp.preprocessing import dp_bounds
from skdp.report import privacy_report

RISK = Risk(advantage=0.1)
X = np.random.default_rng(0).uniform(-1.0, 1.0, (600, 3))
Y = (X[:, 0] > 0.0).astype(int)
SCORES = 0.5 * (X[:, 0] + 1.0)


def advantage_of(model):
    return PrivacyProfile(model.privacy_event_, adjacency=model.adjacency_).advantage()


def logistic(**parameters):
    return skdp.DPLogisticRegression(**{"classes": [0, 1], "max_iter": 5, **parameters})


@pytest.fixture(scope="module")
def model():
    return logistic(epsilon=RISK).fit(X, Y)


def evaluated(**given):
    return skdp.evaluate(None, SCORES, Y, epsilon=RISK, **given)


def bounds_of_columns():
    ledger = PrivacyAccountant()
    dp_bounds(X, epsilon=RISK, accountant=ledger)
    return types.SimpleNamespace(privacy_event_=ledger.event, adjacency_="zero_out")


@over_rows(
    "fit",
    [
        lambda: logistic(epsilon=RISK, sampling_rate=0.2).fit(X, Y),
        lambda: DPGaussianNB(epsilon=RISK, classes=[0, 1], bounds=(-1, 1)).fit(X, Y),
        lambda: skdp.DPPCA(2, epsilon=RISK).fit(X, Y),
        lambda: skdp.DPCalibratedClassifier(logistic(), epsilon=RISK).fit(X, Y),
        lambda: skdp.DPThresholdClassifier(FrozenEstimator(logistic(epsilon=RISK).fit(X, Y)), epsilon=RISK).fit(X, Y),
        lambda: evaluated(noise="gaussian", delta="auto", adjacency="replace_one"),
        lambda: evaluated(groups=np.arange(600) // 2),
        bounds_of_columns,
    ],
)
def test_fit_with_risk_lands_just_below_it(fit):
    assert 0.0999 <= advantage_of(fit()) <= 0.1


def test_a_pipeline_lands_below_the_risk_as_a_whole():
    whole = make_pipeline(skdp.DPPCA(2, center=False), logistic())
    fitted = skdp.allocate_budget(whole, epsilon=RISK, fractions={"dppca": 0.3}).fit(X, Y)
    assert 0.0999 <= advantage_of(fitted) <= 0.1


def test_a_search_lands_below_the_risk_as_a_whole():
    search = DPGridSearchCV(logistic(), {"alpha": [0.0, 0.1]}, epsilon=Risk(advantage=0.2)).fit(X, Y)
    assert 0.1998 <= advantage_of(search) <= 0.2


def test_a_tabular_pipeline_lands_below_the_risk():
    schema = {f"x{j}": (-1, 1) for j in range(3)}
    given = {"epsilon": Risk(tpr=0.04, fpr=0.01)}
    fitted = skdp.tabular_pipeline(schema=schema, classes=[0, 1], **given).fit(pd.DataFrame(X, columns=[*schema]), Y)
    assert 0.04 * 0.999 <= PrivacyProfile(fitted.privacy_event_).true_positive_rate(0.01) <= 0.04


def test_a_cross_validation_lands_below_the_risk_as_a_whole():
    ledger = PrivacyAccountant()
    found = cross_validate(logistic(accountant=ledger), X, Y, epsilon=Risk(advantage=0.3), cv=2)["evaluation"]
    assert 0.2997 <= advantage_of(found) <= 0.3
    assert PrivacyProfile(ledger.event).advantage() == advantage_of(found)
    assert found.epsilon.advantage == pytest.approx(advantage_of_share(0.3, 0.2), rel=1e-6)


def advantage_of_share(advantage, share):
    """The advantage of a Gaussian of a share of the mu of another one."""
    return 2.0 * norm.cdf(share * norm.ppf(0.5 * (1.0 + advantage))) - 1.0


@over_rows(
    "call",
    [
        lambda epsilon: skdp.evaluate(None, SCORES, Y, epsilon=epsilon),
        lambda epsilon: cross_validate(logistic(), X, Y, epsilon=epsilon),
        lambda epsilon: skdp.allocate_budget(make_pipeline(logistic()), epsilon),
        lambda epsilon: DPGridSearchCV(logistic(), {"alpha": [0.0]}, epsilon=epsilon).fit(X, Y),
        lambda epsilon: skdp.DPCalibratedClassifier(logistic(), epsilon=epsilon).fit(X, Y),
    ],
)
def test_epsilon_neither_number_nor_risk_raises(call):
    for epsilon in (None, {"advantage": 0.1}):
        with pytest.raises(ValueError, match=r"`epsilon` must be .* or skdp\.Risk.*, got"):
            call(epsilon)


def test_a_fit_by_risk_is_charged_under_a_ceiling_of_either_kind():
    ledger = PrivacyAccountant(2.0, 1e-6)
    logistic(epsilon=RISK, accountant=ledger).fit(X, Y)
    assert 0.0 < ledger.spent <= 2.0
    ledger = PrivacyAccountant(epsilon=Risk(advantage=0.15), delta=1e-6, filter_family="gaussian")
    logistic(epsilon=RISK, accountant=ledger).fit(X, Y)
    with pytest.raises(skdp.BudgetExceededError):
        logistic(epsilon=Risk(advantage=0.13), accountant=ledger).fit(X, Y)
    logistic(epsilon=Risk(advantage=0.1), accountant=ledger).fit(X, Y)
    assert PrivacyProfile(ledger.event).advantage() <= 0.15


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"noise_multiplier": 2.0, "epsilon": RISK}, "Exactly one of .*epsilon=Risk.advantage=0.1.*"),
        ({"epsilon": {"advantage": 0.1}}, "`epsilon` must be a number .*, got <dict>"),
    ],
)
def test_a_budget_is_stated_once_and_rejected_before_a_charge(parameters, said):
    ledger = PrivacyAccountant()
    with pytest.raises(ValueError, match=said):
        logistic(accountant=ledger, **parameters).fit(X, Y)
    assert not ledger.history


def test_a_report_has_what_attackers_gain_beside_epsilon(model):
    facts = privacy_report(model).to_dict()["guarantee"]
    profile = PrivacyProfile(model.privacy_event_)
    assert facts["advantage"] == profile.advantage()
    assert facts["mu"] == profile.mu()
    assert facts["tpr_at_1_percent_fpr"] == profile.true_positive_rate(0.01)
    assert facts["tpr_at_01_percent_fpr"] == profile.true_positive_rate(0.001)
    text = str(privacy_report(model))
    assert "at most 10.000%" in text
    assert "most 19 of 1,000 rows that" in " ".join(text.split())


def test_of_a_thousand_people_as_many_are_drawn_as_are_named(model):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    from skdp.plotting import RiskDisplay

    display = RiskDisplay.from_estimator(model)
    assert (display.by_chance, display.with_release, display.right_guesses) == (10, 19, 550)
    assert [len(each.get_offsets()) for each in display.people_] == [10, 9, 981]
    assert "10 are then detected by chance, and at most 19 with" in display.text_
    nothing = RiskDisplay.from_event(GaussianDpEvent(1e6), fpr=0.001, ax=display.ax_)
    assert [len(each.get_offsets()) for each in nothing.people_] == [1, 1, 998]
    pyplot.close("all")
