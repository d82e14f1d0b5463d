"""The page on extending skdp: its own code runs, and what it shows is private as it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import make_pipeline

from skdp import BudgetExceededError, DPGridSearchCV, DPLogisticRegression, PrivacyAccountant, allocate_budget
from skdp.accounting import (
    DpEvent,
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    PoissonSampledDpEvent,
    RepeatAndSelectDpEvent,
    SelfComposedDpEvent,
    WorstOfDpEvent,
    compose,
    get_delta,
    get_epsilon,
)
from skdp.accounting.releases import releases

ROOT = Path(__file__).resolve().parents[1]
BLOCKS = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / "extending.md").read_text(), re.MULTILINE | re.DOTALL)
RNG = np.random.default_rng(0)
Y = RNG.integers(0, 2, 300)
X = RNG.normal(size=(300, 3)) / 4 + np.where(Y[:, None] == 1, 0.3, -0.3)


@pytest.fixture(scope="module")
def page():
    """The names that the page defines."""
    module = sys.modules["page"] = types.ModuleType("page")
    exec("\n".join(BLOCKS), vars(module))
    yield vars(module)
    del sys.modules["page"]


def test_the_page_runs_in_a_folder_of_its_own(tmp_path):
    assert len(BLOCKS) == 4
    (tmp_path / "page.py").write_text("\n".join(BLOCKS))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "page.py"], cwd=tmp_path, env=environment, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


# --- the estimator ----------------------------------------------------------------------------------------------------


def centroid(page, **parameters):
    return page["DPNearestCentroid"]([0, 1], **parameters)


def test_the_estimator_charges_before_it_learns_and_once(page):
    accountant = PrivacyAccountant(1.0, 1e-5)
    model = centroid(page, accountant=accountant).fit(X, Y)
    assert [charge.event for charge in accountant.history] == [model.privacy_event_]
    refused = centroid(page, accountant=accountant)
    with pytest.raises(BudgetExceededError):
        refused.fit(X, Y)
    assert not hasattr(refused, "centroids_")


@pytest.mark.parametrize("spoil", [lambda X, y: (X * np.nan, y), lambda X, y: (X, y + 5), lambda X, y: (X, y[:-1])])
def test_a_refusal_costs_nothing_and_is_recorded(page, spoil):
    accountant = PrivacyAccountant(1.0, 1e-5)
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        centroid(page, accountant=accountant).fit(*spoil(X, Y))
    assert [entry.kind for entry in accountant.entries] == ["refusal"]


def test_one_row_moves_the_sums_by_at_most_the_sensitivity(page, monkeypatch):
    """Whatever the row is: another one, none, or one of another class."""
    seen = []
    plan = type(centroid(page)._plan_release(centroid(page)._check_terms(), 1.0))
    monkeypatch.setattr(plan, "release", lambda self, value: seen.append((value.copy(), self)) or value)
    others = [X, X.copy(), X.copy()]
    others[1][7], others[2][7] = [1e6, -1e6, 3.0], [0.0, 0.0, 0.0]
    labels = [Y, Y, np.where(np.arange(300) == 7, 1 - Y, Y)]
    for rows, answers in zip(others, labels, strict=True):
        centroid(page).fit(rows, answers)
    (first, planned), *rest = seen
    for moved, _ in rest:
        assert np.linalg.norm(moved - first) <= 2.0 * planned.mechanism.sensitivity
    centroid(page).fit(np.delete(X, 7, axis=0), np.delete(Y, 7))
    assert np.linalg.norm(seen[-1][0] - first) <= planned.mechanism.sensitivity


def test_pipelines_and_searches_fit_it(page):
    accountant = PrivacyAccountant(3.0, 1e-5)
    pipe = make_pipeline(centroid(page, accountant=accountant))
    budgeted = allocate_budget(pipe, 1.0, 1e-5).fit(X, Y)
    assert 0.99 < budgeted.epsilon_ <= 1.0
    search = DPGridSearchCV(centroid(page, accountant=accountant), {"data_norm": [0.5, 1.0]}, epsilon=1.0, delta=1e-5)
    search.fit(X, Y)
    assert search.epsilon_ <= 1.0
    assert len(accountant.history) == 2
    assert search.predict(X).shape == (300,)


class Adapted(BaseEstimator):
    """A step that pipelines fit without a base class of skdp: another's, held inside."""

    def __init__(self, inner):
        self.inner = inner

    def fit(self, X, y):
        self.inner_ = clone(self.inner).fit(X, y)
        return self

    def predict(self, X):
        return self.inner_.predict(X)

    @property
    def privacy_event_(self):
        return self.inner_.privacy_event_

    def __private_step__(self):
        return _AdaptedStep(self)


class _AdaptedStep:
    """The methods of `PrivateStep`, without its code."""

    def __init__(self, estimator):
        self.estimator, self.step = estimator, estimator.inner.__private_step__()
        self.adjacency, self.accountant, self.width_is_public = self.step.adjacency, self.step.accountant, True

    def public_n_samples(self, n_samples):
        return n_samples

    def plan(self, n_samples, n_features):
        return self.step.plan(n_samples, n_features)

    def allot(self, plan, noise_multiplier, delta):
        inner = clone(self.estimator.inner).set_params(
            **plan.parameters, epsilon=None, noise_multiplier=noise_multiplier, delta=delta, accountant=None
        )
        return _AdaptedStep(Adapted(inner))

    def begin(self):
        self.step.begin()

    def check_parameters(self, n_samples, n_features):
        self.step.check_parameters(n_samples, n_features)

    def check_rows(self, rows):
        return self.step.check_rows(rows)

    def check_targets(self, y, n_samples, **fit_params):
        self.step.check_targets(y, n_samples, **fit_params)

    def learn(self, rows, n_samples):
        interrupted = self.step.learn(rows, n_samples)
        self.estimator.inner_ = self.step.estimator
        return interrupted


def test_a_step_without_a_base_class_joins_by_the_protocol():
    accountant = PrivacyAccountant(3.0, 1e-5)
    step = Adapted(DPLogisticRegression(classes=[0, 1], accountant=accountant))
    pipe = allocate_budget(make_pipeline(step), 1.0, 1e-5).fit(X, Y)
    assert 0.99 < pipe.epsilon_ <= 1.0
    assert len(accountant.history) == 1
    assert np.mean(pipe.predict(X) == Y) > 0.8


# --- the event --------------------------------------------------------------------------------------------------------


def test_the_event_has_the_price_of_what_dominates_it(page):
    event = page["SparseVectorDpEvent"](0.1, 5)
    dominating = SelfComposedDpEvent(EpsilonDeltaDpEvent(0.1, 0.0), 5)
    for whole in (
        lambda one: one,
        lambda one: compose([one, GaussianDpEvent(3.0)]),
        lambda one: SelfComposedDpEvent(one, 3),
        lambda one: WorstOfDpEvent((one, GaussianDpEvent(3.0))),
        lambda one: RepeatAndSelectDpEvent(one, 3.0, 1.0),
    ):
        assert releases(whole(event)) == releases(whole(dominating))
        assert get_epsilon(whole(event), 1e-6) == get_epsilon(whole(dominating), 1e-6)
        assert get_delta(whole(event), 0.2) == get_delta(whole(dominating), 0.2)
    single = page["SparseVectorDpEvent"](0.1, 1)
    sampled = PoissonSampledDpEvent(0.2, single), PoissonSampledDpEvent(0.2, EpsilonDeltaDpEvent(0.1, 0.0))
    assert len({get_epsilon(each, 1e-6, method="naive") for each in sampled}) == 1


def test_the_event_is_charged_and_kept_in_a_file(page, tmp_path):
    event = page["SparseVectorDpEvent"](0.1, 3)
    memory, kept = PrivacyAccountant(5.0, 1e-6), PrivacyAccountant(5.0, 1e-6, path=tmp_path / "ledger")
    for accountant in (memory, kept):
        accountant.spend(event)
        accountant.spend(event)
    assert memory.get_epsilon(1e-6) == kept.get_epsilon(1e-6)
    assert PrivacyAccountant.open(tmp_path / "ledger").verify() == 2
    assert PrivacyAccountant.from_json(memory.to_json()).get_epsilon(1e-6) == memory.get_epsilon(1e-6)


def test_an_event_that_names_no_event_is_refused_by_name():
    class Strange(DpEvent):
        def __dominating_event__(self):
            return 0.5

    class Unknown(DpEvent):
        pass

    with pytest.raises(TypeError, match=r"^event=Strange: __dominating_event__ returned a float; return [^\n]*\.$"):
        get_epsilon(Strange(), 1e-6)
    with pytest.raises(TypeError, match=r"^event=Unknown has no price"):
        get_epsilon(Unknown(), 1e-6)
