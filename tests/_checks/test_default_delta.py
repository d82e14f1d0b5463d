"""``delta="auto"``: the rule, who decides where several could, and that no row has a say."""

import warnings

import numpy as np
import pytest
from combinations import over_rows
from sklearn.pipeline import make_pipeline

from skdp import (
    DPPCA,
    AddRemove,
    DPGridSearchCV,
    DPLogisticRegression,
    DPMLPClassifier,
    PrivacyAccountant,
    allocate_budget,
)
from skdp._checks.parameters import check_delta, default_delta
from skdp.accounting import get_epsilon

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(10_001, 3))
Y = (X[:, 0] > 0).astype(int)


def logistic(**own):
    return DPLogisticRegression(classes=[0, 1], max_iter=2, **own)


def network(**own):
    return DPMLPClassifier((2,), classes=[0, 1], sampling_rate=0.5, max_iter=1, **own)


def pipeline(*, accountant=None, adjacency=None, **own):
    steps = {"accountant": accountant, "adjacency": adjacency}
    return allocate_budget(make_pipeline(DPPCA(2, **steps), logistic(**steps)), 1.0, **own)


def search(cls, *, accountant=None, adjacency=None, **own):
    inner = logistic(accountant=accountant, adjacency=adjacency)
    return cls(inner, {"alpha": [0.0, 0.1]}, **own)


MAKERS = {
    "logistic": logistic,
    "network": network,
    "pca": DPPCA,
    "pipeline": pipeline,
    "grid": lambda **own: search(DPGridSearchCV, **own),
}
made = over_rows("make", MAKERS.values())


# --- the rule ---------------------------------------------------------------------------------------------------------


@over_rows(
    ("n", "delta"),
    [
        (1, 1e-5), (10_000, 1e-5), (10_001, 1e-6), (100_000, 1e-6), (10**9 + 1, 1e-11),
    ],
)  # fmt: skip
def test_the_rule(n, delta):
    assert default_delta(n) == delta


def test_the_rule_does_not_increase_and_stays_well_below_one_record():
    numbers = sorted({*range(1, 2000), *(10**k + j for k in range(3, 15) for j in (-1, 0, 1)), 123_456_789})
    deltas = [default_delta(n) for n in numbers]
    assert deltas == sorted(deltas, reverse=True)
    assert all(10 * delta * n < 1 + 1e-9 for n, delta in zip(numbers, deltas, strict=True))


@over_rows("bad", ["auto ", "1e-5", 0, 1, -0.1, np.nan, None, True])
def test_what_is_no_delta_is_rejected(bad):
    with pytest.raises(
        ValueError, match=r"^`delta` must be a number in \(0, 1\), well below 1/n, or 'auto', got .*\.$"
    ):
        check_delta(bad)


# --- every estimator --------------------------------------------------------------------------------------------------


@made
@over_rows(("n", "delta"), [(10_000, 1e-5), (10_001, 1e-6)])
def test_each_follows_the_rule_and_no_row(make, n, delta):
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="delta")
        model = make().fit(X[:n], Y[:n])
    assert model.delta_ == delta
    assert model.epsilon_ == pytest.approx(get_epsilon(model.privacy_event_, delta), rel=1e-12)
    assert 0.99 < model.epsilon_ <= 1.0
    assert model.get_params()["delta"] == "auto"


@made
def test_each_takes_the_delta_of_its_ledger_and_writes_down_the_number(make):
    ledger = PrivacyAccountant(epsilon=3.0, delta=1e-8)
    assert make(accountant=ledger).fit(X[:300], Y[:300]).delta_ == 1e-8
    assert ledger.history[-1].parameters["delta"] == 1e-8
    assert make(accountant=ledger, delta=1e-7).fit(X[:300], Y[:300]).delta_ == 1e-7
    unlimited = PrivacyAccountant()
    assert make(accountant=unlimited).fit(X[:300], Y[:300]).delta_ == 1e-5
    assert unlimited.history[-1].parameters["delta"] == 1e-5


@made
def test_under_add_remove_the_number_of_rows_has_no_say(make):
    """Neighbors on either side of the rule's edge: 10,000 rows and 10,001."""
    with_one_more, without = (make(adjacency=AddRemove(5000)).fit(X[:n], Y[:n]) for n in (10_001, 10_000))
    assert with_one_more.delta_ == without.delta_ == 1e-5
    assert make(adjacency=AddRemove(200_000)).fit(X[:300], Y[:300]).delta_ == 1e-7


@over_rows("make", [logistic, network])
def test_instalments_keep_the_first_delta(make):
    model = make().fit(X, Y)
    assert model.delta_ == 1e-6
    model.set_params(accountant=PrivacyAccountant(epsilon=9.0, delta=1e-9)).partial_fit(X[:200], Y[:200])
    assert model.delta_ == 1e-6
    assert model.epsilon_ == get_epsilon(model.privacy_event_, 1e-6)
    warm = model.set_params(warm_start=True).fit(X[:200], Y[:200])
    assert warm.delta_ == 1e-6
    assert model.set_params(delta=1e-4).fit(X[:200], Y[:200]).delta_ == 1e-4
    assert model.set_params(warm_start=False, delta="auto", accountant=None).fit(X[:200], Y[:200]).delta_ == 1e-5


def test_an_iterator_needs_to_be_told():
    """Its rows are not counted before it ends, and the charge comes before that."""
    ledger = PrivacyAccountant()
    with pytest.raises(ValueError, match=r"^delta='auto' requires a known number of rows.*AddRemove"):
        DPPCA(2, accountant=ledger).fit(iter([X]))
    assert ledger.history == ()
    assert DPPCA(2, adjacency=AddRemove(10_001)).fit(iter([X])).delta_ == 1e-6
    assert DPPCA(2, delta=1e-6).fit(iter([X])).delta_ == 1e-6
    assert DPPCA(2, accountant=PrivacyAccountant(3.0, 1e-7)).fit(iter([X])).delta_ == 1e-7


def test_a_search_counts_all_rows_and_a_step_the_whole():
    found = search(DPGridSearchCV).fit(X, Y)  # 8,001 rows train
    assert found.delta_ == found.best_estimator_.delta_ == 1e-6
    whole = pipeline().fit(X, Y)
    assert {step.delta_ for _, step in whole.steps} == {1e-6}
