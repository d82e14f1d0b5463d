"""What every private estimator inherits: checks of the budget, the charge, the published cost."""

import math

import numpy as np
import pytest
from combinations import over_combinations, over_rows

from skdp import DPPCA, AddRemove, DPLogisticRegression, DPMLPClassifier, PrivacyAccountant, PrivacyLeakWarning
from skdp._checks.parameters import adjacency_of, public_n, stated_adjacency
from skdp.accounting import GaussianDpEvent, SelfComposedDpEvent, compose, get_epsilon
from skdp.base import PrivateEstimator
from skdp.base.budget import Budget, Release, cost_of, read_budget, releases_of, root_stream
from skdp.mechanisms.sampling import FullBatch, PoissonSampling
from skdp.mechanisms.second_moments import MomentSum
from skdp.model_selection import DPGridSearchCV
from skdp.pipeline import PrivatePipeline

STEP = GaussianDpEvent(5.0)


class Newcomer(PrivateEstimator):
    """The least that a private estimator is."""

    def __init__(
        self,
        *,
        epsilon=1.0,
        delta=1e-5,
        noise_multiplier=None,
        adjacency=None,
        accountant=None,
        lot_size=None,
        sampling_rate=None,
        random_state=None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.noise_multiplier = noise_multiplier
        self.adjacency = adjacency
        self.accountant = accountant
        self.lot_size = lot_size
        self.sampling_rate = sampling_rate
        self.random_state = random_state


# --- the budget -------------------------------------------------------------------------------------------------------


@over_rows("given", [{"noise_multiplier": 1.0}, {"epsilon": None}])
def test_epsilon_or_noise_multiplier(given):
    with pytest.raises(ValueError, match=r"Exactly one of .*epsilon=.* and noise_multiplier="):
        read_budget(Newcomer(**given))


@over_combinations(1, name=["epsilon", "noise_multiplier", "delta"], bad=[0, -1, math.nan, math.inf, "1", True])
def test_numbers_of_the_budget(name, bad):
    assert read_budget(Newcomer(epsilon=2)) == Budget(2.0, None, 1e-5, None, "zero_out")
    parameters = {"epsilon": None, name: bad} if name == "noise_multiplier" else {name: bad}
    with pytest.raises(ValueError, match=rf"^`{name}` must be a num[^\n]*, got "):
        read_budget(Newcomer(**parameters))


def test_every_adjacency_has_a_name():
    for stated, name in (
        (None, "zero_out"),
        ("zero_out", "zero_out"),
        ("replace_one", "replace_one"),
        (AddRemove(9), "add_remove"),
    ):
        model = Newcomer(adjacency=stated)
        assert (stated_adjacency(model), adjacency_of(model)) == (stated or "zero_out", name)
    for bad in ("swap", 3, ["zero_out"]):
        with pytest.raises(ValueError, match=r"must be 'zero_out', 'replace_one' or skdp\.AddRemove"):
            adjacency_of(Newcomer(adjacency=bad))
    for bad in (0, -1, 2.5, "many", None):
        with pytest.raises(ValueError, match="AddRemove: `n_public` must be a positive integer, got"):
            AddRemove(bad)


# --- public n and the sampling ----------------------------------------------------------------------------------------


def test_rules_use_the_public_number_of_rows():
    assert public_n(Newcomer(), 70) == 70
    assert public_n(Newcomer(adjacency=AddRemove(100)), 70) == 100
    with pytest.raises(ValueError, match=r"adjacency='add_remove'.*Set adjacency=skdp\.AddRemove") as caught:
        public_n(Newcomer(adjacency="add_remove"), 70)
    assert "70" not in str(caught.value)  # the number is private there


def test_sampling_that_was_asked_for():
    assert Newcomer()._chosen_sampling(50) is None
    assert Newcomer(sampling_rate=0.2)._chosen_sampling(50) == PoissonSampling(0.2)
    assert Newcomer(lot_size=5)._chosen_sampling(50) == PoissonSampling(0.1)
    assert Newcomer(lot_size=2.5)._chosen_sampling(50) == PoissonSampling(0.05)
    assert Newcomer(lot_size=50)._chosen_sampling(50) == FullBatch()
    assert Newcomer(sampling_rate=1.0)._chosen_sampling(50) == FullBatch()


@over_rows("bad", [{"lot_size": 50.01}, {"lot_size": -1}, {"sampling_rate": 1.01}, {"sampling_rate": 0}])
def test_no_lot_is_capped_in_silence(bad):
    (name,) = bad
    with pytest.raises(ValueError, match=f"^`{name}` must be"):
        Newcomer(**bad)._chosen_sampling(50)


# --- the charge -------------------------------------------------------------------------------------------------------


# --- the cost --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["pld", "rdp"])
@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
def test_the_price_covers_earlier_events(method, adjacency):
    estimator = Newcomer(accountant=PrivacyAccountant(method=method), adjacency=adjacency, delta=1e-5)
    first = (Release(STEP, adjacency),)
    estimator._set_cost(cost_of(read_budget(estimator), STEP), first)
    assert estimator.privacy_event_ == STEP
    assert releases_of(estimator) == first
    assert estimator.delta_ == 1e-5
    one = estimator.epsilon_
    assert one == get_epsilon(STEP, 1e-5, method=method, adjacency=adjacency)
    estimator.delta = 1e-6
    cost = cost_of(read_budget(estimator), compose([estimator.privacy_event_, SelfComposedDpEvent(STEP, 3)]))
    estimator._set_cost(cost, (*first, Release(SelfComposedDpEvent(STEP, 3), adjacency)))
    assert estimator.privacy_event_ == compose([STEP] * 4)
    assert estimator.delta_ == 1e-6
    assert estimator.epsilon_ == get_epsilon(compose([STEP] * 4), 1e-6, method=method, adjacency=adjacency) > one


def test_a_seed_is_a_leak_and_no_seed_is_a_fresh_key():
    with pytest.warns(PrivacyLeakWarning, match="random_state=4 makes the noise reproducible"):
        one = root_stream(Newcomer(random_state=4))
    with pytest.warns(PrivacyLeakWarning):
        two = root_stream(Newcomer(random_state=4))
    np.testing.assert_array_equal(one.words(8), two.words(8))
    assert not np.any(root_stream(Newcomer()).words(8) == root_stream(Newcomer()).words(8))


# --- memory that runs out after the charge ----------------------------------------------------------------------------

X = np.random.default_rng(0).uniform(-1, 1, (400, 5))
Y = (X[:, 0] > 0).astype(int)
N_HUGE = 2**47  # doubles, for which no machine has addresses


@pytest.fixture
def hungry_sums(monkeypatch):
    """Sums of second moments that need more memory than there is, but for a few rows."""
    add = MomentSum.add

    def hungry_add(self, rows, *weights):
        if len(rows) > 100:
            np.empty(N_HUGE)
        add(self, rows, *weights)

    monkeypatch.setattr(MomentSum, "add", hungry_add)


class HungryClassifier(DPLogisticRegression):
    """A classifier that needs more memory than there is, but for a few rows."""

    def _make_progress(self, run):
        if run.n_public > 100:
            np.empty(N_HUGE)
        return super()._make_progress(run)


@pytest.mark.parametrize(
    ("make", "rows"),
    [
        (lambda ledger: DPMLPClassifier((2**44,), classes=[0, 1], max_iter=1, accountant=ledger), X),
        (lambda ledger: DPPCA(2, accountant=ledger, adjacency=AddRemove(400)), (part for part in [X])),
        (lambda ledger: make_private([DPPCA(2, accountant=ledger)]), X),
        (lambda ledger: make_private([HungryClassifier(classes=[0, 1], accountant=ledger)]), X),
        (lambda ledger: DPGridSearchCV(HungryClassifier(classes=[0, 1], accountant=ledger), {"alpha": [0.1, 1.0]}), X),
    ],
    ids=["network", "blocks", "transformer in a pipeline", "pipeline", "search"],
)
def test_memory_that_runs_out_says_that_the_charge_stands_and_nothing_of_sizes(make, rows, hungry_sums):
    """NumPy's error names the shape of the array, which may be that of a lot."""
    ledger = PrivacyAccountant()
    with pytest.raises(MemoryError) as caught:
        make(ledger).fit(rows, Y)
    assert str(caught.value) == (
        "Memory ran out after the budget was charged for this fit. "
        "Provide more memory, or use a smaller model or smaller lots."
    )
    assert caught.value.__context__ is None
    assert len(ledger.history) == 1


def make_private(steps):
    return PrivatePipeline([(f"step{number}", step) for number, step in enumerate(steps)])
