"""The accountant: nothing lost, nothing above the ceiling, whatever is done to the object."""

from __future__ import annotations

import copy
import math
import multiprocessing
import pickle
import re

import numpy as np
import pytest
from combinations import over_rows
from ledger_files import FIT, GAUSS, STEP, exhaust, in_threads

from skdp.accounting import (
    Charge,
    ComposedDpEvent,
    DiscreteGaussianDpEvent,
    DiscreteLaplaceDpEvent,
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    PrivacyAccountant,
    SelfComposedDpEvent,
    ZCDpEvent,
    calibrate_noise_multiplier,
    compose,
    get_delta,
    get_epsilon,
)
from skdp.accounting.formulas.gaussian import gaussian_mu
from skdp.accounting.rdp.sampled import log_moment
from skdp.exceptions import AccountantDetachedError, BudgetExceededError


def test_an_empty_accountant_costs_nothing():
    accountant = PrivacyAccountant()
    assert accountant.get_epsilon(1e-5) == 0.0
    assert accountant.get_delta(0.5) == 0.0
    assert accountant.history == ()
    assert accountant.event == NoOpDpEvent()
    assert accountant.remaining() == accountant.remaining(FIT) == math.inf
    assert (accountant.epsilon, accountant.delta, accountant.adjacency) == (None, None, None)


def test_spending_composes_jointly():
    accountant = PrivacyAccountant()
    accountant.spend(FIT, "first")
    accountant.spend(FIT, "second")
    accountant.spend(GAUSS)
    joint = ComposedDpEvent((SelfComposedDpEvent(STEP, 400), GAUSS))
    assert accountant.get_epsilon(1e-5) == get_epsilon(joint, 1e-5)
    assert accountant.get_epsilon(1e-5, method="rdp") == get_epsilon(joint, 1e-5, method="rdp")
    assert accountant.get_delta(1.0) == get_delta(joint, 1.0)
    assert accountant.get_epsilon(1e-5) < 2 * get_epsilon(FIT, 1e-5)
    assert accountant.history[0] == Charge(FIT, "first", "zero_out")
    assert accountant.event == compose([FIT, FIT, GAUSS])
    with pytest.raises(ValueError, match="delta=None"):
        accountant.get_epsilon()


def test_reading_has_no_effect():
    accountant = PrivacyAccountant(2.0, 1e-5)
    accountant.spend(FIT)
    before = pickle.dumps(accountant)
    for _ in range(3):
        repr(accountant)
        accountant.get_epsilon()
        accountant.get_delta(1.0)
        accountant.remaining()
        accountant.remaining(GAUSS)
        _ = accountant.history, accountant.event, accountant.epsilon, accountant.adjacency
    assert pickle.dumps(accountant) == before
    with pytest.raises(AttributeError):
        accountant.epsilon = 5.0


def test_non_private_is_told_and_refused_under_a_ceiling():
    accountant = PrivacyAccountant()
    accountant.spend(NonPrivateDpEvent())
    assert accountant.get_epsilon(1e-5) == math.inf
    for first in (FIT, GAUSS, None):
        limited = PrivacyAccountant(5.0, 1e-5)
        if first is not None:
            limited.spend(first)
        with pytest.raises(BudgetExceededError):
            limited.spend(NonPrivateDpEvent())
        assert limited.remaining(NonPrivateDpEvent()) == 0


# --- the object survives what scikit-learn and Python do to it (property 17) --------------------------------


def test_clone_and_copies_are_the_same_account():
    sklearn_base = pytest.importorskip("sklearn.base")
    accountant = PrivacyAccountant()
    copies = [sklearn_base.clone(accountant), copy.copy(accountant), copy.deepcopy({"a": accountant})["a"]]
    for each in copies:
        each.spend(FIT)
    assert accountant.get_epsilon(1e-5) == get_epsilon(SelfComposedDpEvent(FIT, 3), 1e-5)


def test_pickled_copy_reads_and_refuses_to_spend():
    accountant = PrivacyAccountant(2.0, 1e-5)
    accountant.spend(FIT, "fit")
    detached = pickle.loads(pickle.dumps(accountant))
    assert detached.history == accountant.history
    assert detached.get_epsilon() == accountant.get_epsilon()
    assert detached.remaining(FIT) == accountant.remaining(FIT)
    assert "detached" in repr(detached)
    with pytest.raises(AccountantDetachedError, match="n_jobs=1") as error:
        detached.spend(FIT)
    assert "\n" not in str(error.value)
    accountant.spend(FIT)
    assert len(detached.history) == 1
    with pytest.raises(AccountantDetachedError):
        pickle.loads(pickle.dumps(detached)).spend(FIT)


def spend_in_a_child(accountant, queue):
    try:
        accountant.spend(STEP)
    except Exception as error:
        queue.put(type(error).__name__)
    else:
        queue.put("spent")


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_cannot_spend():
    """Property 18: memory is copied by a fork, so what a child spent would be seen by nobody."""
    context = multiprocessing.get_context("fork")
    accountant, queue = PrivacyAccountant(8.0, 1e-5), context.Queue()
    child = context.Process(target=spend_in_a_child, args=(accountant, queue))
    child.start()
    assert queue.get(timeout=600) == "AccountantDetachedError"
    child.join()
    accountant.spend(STEP)
    assert len(accountant.history) == 1


# --- ceilings (property 18) -------------------------------------------------------------------------------


def test_first_plan_may_fill_the_ceiling():
    def plan(sigma):
        return SelfComposedDpEvent(PoissonSampledDpEvent(0.02, GaussianDpEvent(sigma)), 400)

    sigma = calibrate_noise_multiplier(plan, 1.0, 1e-5)
    accountant = PrivacyAccountant(1.0, 1e-5)
    assert accountant.remaining(plan(sigma)) == 1
    accountant.spend(plan(sigma))
    assert 0.999 < accountant.get_epsilon() <= 1.0
    # PLD admitted what the adaptive filter would not: nothing further is admitted, however small
    assert accountant.remaining() == accountant.affordable(FIT).epsilon == 0.0
    rare = PoissonSampledDpEvent(1e-9, GaussianDpEvent(100.0))
    for tiny in (rare, GaussianDpEvent(1e9), EpsilonDeltaDpEvent(0.0, 1e-12)):
        assert accountant.remaining(tiny) == 0
        with pytest.raises(BudgetExceededError, match="nothing was charged"):
            accountant.spend(tiny)
    accountant.spend(NoOpDpEvent())
    over = PrivacyAccountant(1.0, 1e-5)
    with pytest.raises(BudgetExceededError) as error:
        over.spend(plan(sigma * 0.99))
    assert over.history == ()
    assert all(word in str(error.value) for word in ("epsilon=1.0", "delta=1e-05", "lower epsilon to 1 "))
    assert "\n" not in str(error.value)


def test_gaussian_filter_is_the_sum_of_squares():
    accountant = PrivacyAccountant(1.0, 1e-5, filter_family="gaussian")
    budget = gaussian_mu(1.0, 1e-5) ** 2
    expected = math.floor(budget / (1 / 20.0**2))
    assert accountant.remaining(GAUSS) == expected
    accountant.spend(GAUSS)
    assert accountant.remaining(GAUSS) == expected - 1
    accountant.spend(GaussianDpEvent(15.0))
    left = accountant.remaining(GAUSS)
    assert exhaust(accountant, GAUSS) == left
    total = sum(1 / charge.event.noise_multiplier**2 for charge in accountant.history)
    assert total <= budget < total + 1 / 20.0**2
    assert accountant.get_epsilon() <= 1.0
    with pytest.raises(BudgetExceededError, match="of a kind that this ledger does not admit"):
        accountant.spend(STEP)


def test_gaussian_filter_under_replace_one_has_a_quarter():
    once, doubled = PrivacyAccountant(1.0, 1e-5), PrivacyAccountant(1.0, 1e-5)
    once.spend(GaussianDpEvent(500.0))
    doubled.spend(GaussianDpEvent(500.0), adjacency="replace_one")
    ratio = once.remaining(GaussianDpEvent(500.0)) / doubled.remaining(GaussianDpEvent(500.0))
    assert ratio == pytest.approx(4.0, rel=1e-3)


def test_renyi_filter_holds_at_one_fixed_order():
    accountant = PrivacyAccountant(2.0, 1e-5)
    accountant.spend(STEP)

    def governing():
        rule = accountant._log.read().balances[0].rule
        assert rule == accountant.history[0].rule
        (limit,) = rule.filters(2.0, False)
        return limit

    limit = governing()
    other = PoissonSampledDpEvent(0.3, GaussianDpEvent(9.0))
    for event in (SelfComposedDpEvent(STEP, 200), GaussianDpEvent(25.0), other):
        accountant.spend(event)
        assert governing() is limit
    exhaust(accountant, SelfComposedDpEvent(STEP, 20))
    alpha, total = limit.order, 0.0
    for charge in accountant.history:
        event, count = (
            (charge.event, 1)
            if not isinstance(charge.event, SelfComposedDpEvent)
            else (charge.event.event, charge.event.count)
        )
        if isinstance(event, GaussianDpEvent):
            total += count * alpha / (2 * event.noise_multiplier**2)
        else:
            inner = event.event.noise_multiplier
            total += count * log_moment(alpha, event.sampling_probability, inner) / (alpha - 1)
    conversion = math.log1p(-1 / alpha) - (math.log(0.9e-5) + math.log(alpha)) / (alpha - 1)
    assert total + conversion <= 2.0
    assert total + conversion > 1.9


@over_rows("seed", range(2))
def test_no_sequence_ends_above_the_ceiling(seed):
    rng = np.random.default_rng(seed)
    epsilon = round(float(10 ** rng.uniform(-1, 1)), 2)
    accountant = PrivacyAccountant(epsilon, 1e-6)
    admitted = 0
    for _ in range(30):
        event = GaussianDpEvent(float(10 ** rng.uniform(0, 2.5)))
        if seed:
            event = SelfComposedDpEvent(
                PoissonSampledDpEvent(float(10 ** rng.uniform(-4, -1)), event), int(rng.integers(1, 50))
            )
        promised = accountant.remaining(event)
        try:
            accountant.spend(event)
        except BudgetExceededError:
            assert promised == 0
            continue
        assert promised >= 1
        admitted += 1
        for text in (str(accountant), repr(accountant), accountant._repr_html_()) if admitted % 5 == 1 else ():
            figures = [float(value) for value in re.findall(r"(?:epsilon|spent|left)=([0-9.e+-]+)", text)]
            assert max(figures) == epsilon  # what is shown does not contradict the ceiling either
    assert admitted > 2
    assert accountant.get_epsilon() == accountant.spent <= epsilon


def test_threads_cannot_pass_the_ceiling_together():
    accountant = PrivacyAccountant(1.0, 1e-5)
    event = GaussianDpEvent(60.0)
    promised = accountant.remaining(event)
    in_threads(lambda: exhaust(accountant, event))
    assert len(accountant.history) == promised
    assert accountant.get_epsilon() <= 1.0


# --- both figures, the family of the filter, and the ledger on paper ------------------------------------------


def test_adaptive_figure_stands_beside_the_joint_one():
    accountant = PrivacyAccountant()
    assert accountant.get_epsilon(1e-5, adaptive=True) == 0.0
    last = 0.0
    for event in (FIT, FIT, GAUSS, FIT):
        accountant.spend(event)
        joint, adaptive = accountant.get_epsilon(1e-5), accountant.get_epsilon(1e-5, adaptive=True)
        assert joint <= adaptive < 3.0 * joint
        assert adaptive >= last
        last = adaptive
    with pytest.raises(ValueError, match="no odometer"):
        accountant.get_epsilon(1e-5, method="rdp", adaptive=True)
    accountant.spend(NonPrivateDpEvent())
    assert accountant.get_epsilon(1e-5, adaptive=True) == math.inf


def test_odometer_spends_each_delta_once():
    from skdp.accounting.ledger import odometer as _odometer

    shares = [_odometer._share(k) for k in range(-2000, 2001)]
    assert 0.999 < sum(shares) < 1.0
    assert _odometer._FIRST + _odometer._GAUSSIAN + _odometer._RENYI + _odometer.FAILURES == 1.0
    # what is reported is the price of a budget that lies above what was spent
    for spent in (1e-9, 0.3, 1.0, 1.15, 7.7):
        k = _odometer._step(spent, 1.0)
        assert _odometer._RATIO**k >= spent > _odometer._RATIO ** (k - 1) * (1 - 1e-12)
    alone = PrivacyAccountant()
    alone.spend(FIT)
    assert alone.get_epsilon(1e-5, adaptive=True) <= get_epsilon(FIT, 0.25e-5)


@over_rows("ceiling", [(), (2.0, 1e-5)])
def test_a_ledger_may_ask_for_whole_numbers(ceiling):
    """Discrete noise on all records, alone, together or one of several kinds; all else is refused before the charge."""
    counted = DiscreteGaussianDpEvent(20.0)
    laplace = DiscreteLaplaceDpEvent(0.2, 1)
    accountant = PrivacyAccountant(*ceiling, filter_family="discrete")
    for event in (
        GAUSS,
        STEP,
        LaplaceDpEvent(5.0),
        ZCDpEvent(0.01),
        EpsilonDeltaDpEvent(0.1, 1e-9),
        PoissonSampledDpEvent(0.01, counted),
        ComposedDpEvent([counted, GAUSS]),
    ):
        for act in (accountant.check, accountant.spend):
            with pytest.raises(ValueError, match="not of noise in whole numbers alone"):
                act(event)
    assert not accountant.history
    for event in (laplace, SelfComposedDpEvent(counted, 2), ComposedDpEvent([counted, laplace])):
        accountant.spend(event)
    assert len(accountant.history) == 3
    again = PrivacyAccountant.from_json(accountant.to_json(), resume=True)
    assert again.filter_family == "discrete"
    with pytest.raises(ValueError, match="whole numbers"):
        again.spend(GAUSS)


def ledger():
    accountant = PrivacyAccountant(3.0, 1e-5, unit="person", filter_family="renyi")
    accountant.spend(GAUSS, "PCA <b>of all</b>")
    accountant.spend(SelfComposedDpEvent(LaplaceDpEvent(50.0), 2), "counts")
    accountant.spend(FIT, "fit")
    accountant.spend(FIT, "fit")
    return accountant


def test_json_round_trip():
    accountant = ledger()
    copied = PrivacyAccountant.from_json(accountant.to_json())
    assert copied.history == accountant.history
    assert copied.event == accountant.event
    assert copied.to_json() == accountant.to_json()
    assert (copied.unit, copied.filter_family, copied.epsilon) == ("person", "renyi", 3.0)
    assert copied.get_epsilon() == accountant.get_epsilon()
    assert copied.get_epsilon(adaptive=True) == accountant.get_epsilon(adaptive=True)
    with pytest.raises(AccountantDetachedError, match="resume=True"):
        copied.spend(GAUSS)
    resumed = PrivacyAccountant.from_json(accountant.to_json(), resume=True)
    assert resumed.remaining(STEP) == accountant.remaining(STEP)
    left = resumed.remaining(FIT)
    assert exhaust(resumed, FIT) == left


@over_rows(
    ("change", "named"),
    [
        (lambda text: "{", "not JSON"),
        (lambda text: text.replace('"schema": 4', '"schema": 5'), "schema=5"),
        (lambda text: text.replace('"schema": 4', '"schema": 3'), "schema=3 is not known; give a log of schema 4"),
        (lambda text: text.replace('"version": 2', '"version": 1'), "version=1 is not known"),
        (lambda text: text.replace('"label": "counts"', '"label": "other"'), "charge 2 of the log"),
        (lambda text: text.replace('"epsilon": 3.0', '"epsilon": 4.0'), "charge 1 of the log"),
        (lambda text: text.replace('"head": "', '"head": "0'), "head="),
        (lambda text: text.replace('"note": ""', '"notes": ""'), "lacks a field"),
        (lambda text: text.replace("GaussianDpEvent", "UniformDpEvent"), "UniformDpEvent"),
        (lambda text: text.replace('"noise_multiplier": 20.0', '"noise_multiplier": -1'), "noise_multiplier=-1"),
        (lambda text: text.replace('"unit": "person"', '"unit": ""'), "unit"),
        (lambda text: text.replace('"charges"', '"costs"'), "charges"),
    ],
)
def test_broken_logs_are_refused_in_one_line(change, named):
    with pytest.raises(ValueError, match=named) as error:
        PrivacyAccountant.from_json(change(ledger().to_json()))
    assert "\n" not in str(error.value)


def test_the_table_and_the_page_show_what_was_spent_and_is_left():
    accountant = ledger()
    text = str(accountant)
    assert f"spent: epsilon={accountant.get_epsilon():.6g} (joint price" in text
    assert "left: epsilon=" in text
    assert "adaptively" not in text
    assert all(word in text for word in ("person", "Poisson(0.01)", "3-4", "ceiling", "zero_out", "Laplace(50)"))
    page = accountant._repr_html_()
    assert "&lt;b&gt;of all" in page
    assert "<b>" not in page
    assert "left=" in repr(accountant)
    assert "delta=1e-06" in accountant.table(1e-6)
    assert accountant.history[2].sampling == "Poisson(0.01)"
    assert accountant.history[0].unit == "person"
    assert "give a delta" in str(PrivacyAccountant())
    unlimited = PrivacyAccountant()
    unlimited.spend(GAUSS)
    assert "plans fixed in advance" in unlimited.table(1e-5)
    assert "charges chosen adaptively" in unlimited.table(1e-5)


def test_threads_lose_nothing():
    accountant = PrivacyAccountant()
    in_threads(lambda: [accountant.spend(STEP) for _ in range(250)])
    assert len(accountant.history) == 2000
    assert accountant.get_epsilon(1e-5) == get_epsilon(SelfComposedDpEvent(STEP, 2000), 1e-5)


def test_repr_is_of_help():
    accountant = PrivacyAccountant(1.0, 1e-5)
    accountant.spend(GAUSS)
    text = repr(accountant)
    assert all(word in text for word in ("epsilon=1", "delta=1e-05", "spent=", "charges=1", "zero_out"))
    assert repr(PrivacyAccountant()) == "PrivacyAccountant(charges=0)"


def test_families_of_one_filter():
    mixed = PrivacyAccountant(2.0, 1e-5, filter_family="renyi")
    mixed.spend(GAUSS)
    mixed.spend(STEP)
    mixed.spend(GAUSS)
    assert mixed.get_epsilon(method="rdp") <= 2.0
    assert mixed.remaining(STEP) > 0
    only = PrivacyAccountant(2.0, 1e-5, filter_family="gaussian")
    only.spend(STEP)
    assert only.remaining(STEP) == 0
