"""The page on extending skdp: what its code shows is private as it says (`test_docs.py` runs every page)."""

import math
import sys

import numpy as np
import pages
import pytest
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline

from skdp import DPPCA, BudgetExceededError, DPGridSearchCV, DPLogisticRegression, PrivacyAccountant, allocate_budget
from skdp.accounting import (
    DpEvent,
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    NonPrivateDpEvent,
    PoissonSampledDpEvent,
    RepeatAndSelectDpEvent,
    SelfComposedDpEvent,
    WorstOfDpEvent,
    calibrate_noise_multiplier,
    compose,
    flatten,
    get_delta,
    get_epsilon,
    get_epsilon_bounds,
)
from skdp.accounting.releases import releases
from skdp.base import PrivateEstimator, StepPlan, begin, check_table
from skdp.mechanisms.bounded_sum import VectorQuery
from skdp.testing import check_private_estimator

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 2, 300)
X = RNG.normal(size=(300, 3)) / 4 + np.where(Y[:, None] == 1, 0.3, -0.3)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The names that the page defines."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("page"))
        yield pages.run_page("docs/extending.md", "extending")
    del sys.modules["extending"]


# --- the estimator ----------------------------------------------------------------------------------------------------


def centroid(page, **parameters):
    return page["DPNearestCentroid"]([0, 1], **{"delta": 1e-5, **parameters})


def test_a_search_rejects_weights_that_the_estimator_does_not_take(page):
    ledger = PrivacyAccountant()
    search = DPGridSearchCV(centroid(page, accountant=ledger), {"data_norm": [1.0, 2.0]})
    with pytest.raises(ValueError, match=r"\A`sample_weight` is not supported by DPNearestCentroid\. Remove it\.\Z"):
        search.fit(X, Y, sample_weight=np.ones(300))
    assert not ledger.history


@pytest.mark.parametrize("name", ["DPNearestCentroid", "DPChosenCentroid"])
def test_the_estimators_keep_the_promises_of_private_ones(page, name):
    statuses = {each["check_name"]: each["status"] for each in check_private_estimator(page[name]([0, 1]))}
    assert {check for check, status in statuses.items() if status != "passed"} == {
        "check_weights_move_releases_by_the_sensitivity"  # they take none
    }


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


class Stranger(BaseEstimator):
    """Something else that says that it is private."""

    def __init__(self, inner=None):
        self.inner = inner

    def fit(self, X, y):
        return self

    def __private_step__(self):
        return self.inner.__private_step__()


def test_a_step_that_only_says_that_it_is_private_is_rejected():
    """Its cost after a later fit could not be read."""
    pipe = make_pipeline(Stranger(DPLogisticRegression(classes=[0, 1])))
    with pytest.raises(
        ValueError, match=r"^Step 'stranger' \(Stranger\) defines __private_step__ and must be [^\n]*\.$"
    ):
        allocate_budget(pipe, 1.0, 1e-5)


class FirstColumn(VectorQuery):
    """Sum of the first column, clipped to [0, 1]."""

    row_limit, width = 1.0, 1

    def vectors(self, rows):
        return np.clip(rows[:, :1], 0.0, 1.0)


class Widths(PrivateEstimator):
    """Learns nothing that lasts but a sum, and a second attribute only where it is told to."""

    def __init__(self, extra=False, epsilon=1.0, delta=1e-5, noise_multiplier=None, adjacency=None,
                 accountant=None, random_state=None, shape=None):  # fmt: skip
        self.extra, self.epsilon, self.delta, self.noise_multiplier = extra, epsilon, delta, noise_multiplier
        self.adjacency, self.accountant = adjacency, accountant
        self.random_state, self.shape = random_state, shape

    def fit(self, X, y=None):
        fit = begin(self, X)
        fit.plan()
        rows = fit.read_rows(type(self).read_rows)
        fit.charge()
        learned = {"extra_": 1.0} if fit.model.extra else {}
        return fit.publish(sum_=fit.release(FirstColumn(), fit.model.used_rows(rows)).value, **learned)

    def _plan_step(self, n_samples, n_features):
        return StepPlan(GaussianDpEvent, {})

    def read_rows(self, X, *, reset):
        return check_table(self, X, reset=reset)

    def used_rows(self, rows):
        return rows

    def transform(self, X):
        made = np.array(X, float)
        if self.shape == "twice":
            return np.vstack([made, made])
        return np.log(made) if self.shape == "log" else made


def test_a_private_transformer_hands_on_one_row_for_each():
    accountant = PrivacyAccountant(5.0, 1e-5)
    pipe = make_pipeline(Widths(shape="twice", accountant=accountant), DPPCA(1, accountant=accountant), Widths())
    with pytest.raises(ValueError, match=r"^Step 'widths-1' must return one row per input row\.$"):
        allocate_budget(pipe, 1.0, 1e-5).fit(X)
    assert not accountant.history


def test_a_row_that_a_private_transformer_spoils_is_a_row_of_zeros():
    pipe = make_pipeline(Widths(shape="log"), DPLogisticRegression(classes=[0, 1]))
    with np.errstate(all="ignore"):
        assert allocate_budget(pipe, 1.0, 1e-5).fit(X, Y).epsilon_ <= 1.0


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


class Loud(DpEvent):
    """All are equal to each other, as it is no dataclass of its own."""

    def __init__(self, epsilon):
        self.epsilon = epsilon

    def __dominating_event__(self):
        return EpsilonDeltaDpEvent(self.epsilon, 0.0)


class Cheap(PoissonSampledDpEvent):
    """Says that it is sampled, and is not."""

    def __dominating_event__(self):
        return NonPrivateDpEvent()


def test_events_that_are_equal_by_their_class_have_prices_of_their_own(tmp_path):
    assert get_epsilon(Loud(0.1), 1e-9) < 0.11 < 9.9 < get_epsilon(Loud(10.0), 1e-9)
    assert calibrate_noise_multiplier(lambda sigma: Loud(1.0 / sigma), 0.5, 1e-9) == pytest.approx(2.0, rel=1e-3)
    for accountant in (PrivacyAccountant(1.0, 1e-9), PrivacyAccountant(1.0, 1e-9, path=tmp_path / "ledger")):
        accountant.spend(Loud(0.1))
        with pytest.raises(BudgetExceededError):
            accountant.spend(Loud(10.0))
        assert [charge.event for charge in accountant.history] == [EpsilonDeltaDpEvent(0.1, 0.0)]
    assert compose([Loud(0.1), Loud(10.0)]) == compose([EpsilonDeltaDpEvent(0.1, 0.0), EpsilonDeltaDpEvent(10.0, 0.0)])


@pytest.mark.parametrize(
    "whole",
    [
        lambda one: one,
        lambda one: SelfComposedDpEvent(one, 3),
        lambda one: WorstOfDpEvent((one, GaussianDpEvent(3.0))),
        lambda one: RepeatAndSelectDpEvent(one, 3.0, 1.0),
        lambda one: PoissonSampledDpEvent(0.5, one),
        lambda one: compose([one, one]),
    ],
)
def test_a_subclass_of_our_event_is_priced_by_what_it_says_and_not_as_its_base(whole):
    class Chain(DpEvent):
        def __dominating_event__(self):
            return Cheap(1e-6, GaussianDpEvent(9.0))

    for event in (Cheap(1e-6, GaussianDpEvent(9.0)), Chain()):
        assert get_epsilon(whole(event), 1e-6) == math.inf


def test_a_subclass_of_our_event_without_the_protocol_is_rejected():
    class Quiet(GaussianDpEvent):
        pass

    for use in (lambda event: get_epsilon(event, 1e-6), lambda event: compose([event]), flatten):
        with pytest.raises(TypeError, match=r"^event=Quiet is not supported"):
            use(Quiet(1.0))


def test_an_event_is_asked_once_for_each_charge():
    """One that changes its mind is charged as it was admitted."""

    class Fickle(DpEvent):
        answers = iter([EpsilonDeltaDpEvent(0.4, 0.0), EpsilonDeltaDpEvent(0.001, 0.0)])

        def __dominating_event__(self):
            return next(self.answers)

    accountant = PrivacyAccountant(1.0, 1e-6)
    accountant.spend(Fickle())
    assert accountant.history[0].event == EpsilonDeltaDpEvent(0.4, 0.0)
    assert PrivacyAccountant.from_json(accountant.to_json()).event == accountant.event


def test_a_chain_is_followed_and_a_circle_is_rejected():
    class Chain(DpEvent):
        def __dominating_event__(self):
            return Loud(0.3)

    class Circle(DpEvent):
        def __dominating_event__(self):
            return Circle()

    class Spiral(DpEvent):
        def __dominating_event__(self):
            return SelfComposedDpEvent(Spiral(), 2)

    accountant = PrivacyAccountant()
    accountant.spend(Chain())
    assert accountant.event == EpsilonDeltaDpEvent(0.3, 0.0)
    for event in (Circle(), Spiral()):
        with pytest.raises(TypeError, match=r"^event=(Circle|Spiral): `__dominating_event__` must return .* got "):
            get_epsilon(event, 1e-6)


def test_a_dominating_event_bounds_nothing_from_below():
    lower, upper = get_epsilon_bounds(Loud(0.3), 1e-6)
    assert (lower, upper) == (0.0, pytest.approx(0.3, abs=1e-5))


def test_an_event_that_names_no_event_is_rejected_by_name():
    class Strange(DpEvent):
        def __dominating_event__(self):
            return 0.5

    class Unknown(DpEvent):
        pass

    with pytest.raises(TypeError, match=r"^event=Strange: `__dominating_event__` must return [^\n]* got float\.$"):
        get_epsilon(Strange(), 1e-6)
    with pytest.raises(TypeError, match=r"^event=Unknown is not supported"):
        get_epsilon(Unknown(), 1e-6)
