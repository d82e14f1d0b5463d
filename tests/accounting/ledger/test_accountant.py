"""The accountant: nothing lost, nothing above the budget, whatever is done to the object."""

import copy
import math
import multiprocessing
import pickle

import numpy as np
import pytest
from combinations import over_rows
from ledger_files import FIT, GAUSS, STEP, exhaust, in_threads
from sklearn.base import clone

from skdp.accounting import (
    Charge,
    ComposedDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    PrivacyAccountant,
    SelfComposedDpEvent,
    calibrate_noise_multiplier,
    compose,
    get_delta,
    get_epsilon,
)
from skdp.accounting.formulas.gaussian import gaussian_mu
from skdp.accounting.rdp.mechanisms import log_moment
from skdp.exceptions import AccountantDetachedError, BudgetExceededError


def test_spending_composes_jointly():
    accountant = PrivacyAccountant()
    assert (accountant.get_epsilon(1e-5), accountant.get_delta(0.5), accountant.remaining()) == (0.0, 0.0, math.inf)
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
    with pytest.raises(ValueError, match="`delta` must be set"):
        accountant.get_epsilon()


def test_non_private_is_told_and_rejected_under_a_ceiling():
    accountant = PrivacyAccountant()
    accountant.spend(NonPrivateDpEvent())
    assert accountant.get_epsilon(1e-5) == math.inf
    limited = PrivacyAccountant(5.0, 1e-5)
    with pytest.raises(BudgetExceededError):
        limited.spend(NonPrivateDpEvent())
    assert limited.remaining(NonPrivateDpEvent()) == 0


# --- the object survives what scikit-learn and Python do to it (property 17) --------------------------------


def test_clone_and_copies_are_the_same_accountant():
    accountant = PrivacyAccountant()
    for each in (clone(accountant), copy.copy(accountant), copy.deepcopy({"a": accountant})["a"]):
        assert each is accountant


def test_pickled_copy_reads_and_rejects_to_spend():
    accountant = PrivacyAccountant(2.0, 1e-5)
    accountant.spend(FIT, "fit")
    detached = pickle.loads(pickle.dumps(accountant))
    assert detached.history == accountant.history
    assert "detached" in repr(detached)
    with pytest.raises(AccountantDetachedError, match="n_jobs=1") as error:
        detached.spend(FIT)
    assert "\n" not in str(error.value)


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


# --- budgets (property 18) -------------------------------------------------------------------------------


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
    tiny = PoissonSampledDpEvent(1e-9, GaussianDpEvent(100.0))
    assert accountant.remaining(tiny) == 0
    with pytest.raises(BudgetExceededError, match="No budget was consumed"):
        accountant.spend(tiny)
    accountant.spend(NoOpDpEvent())
    over = PrivacyAccountant(1.0, 1e-5)
    with pytest.raises(BudgetExceededError, match="Lower `epsilon` to 1,"):
        over.spend(plan(sigma * 0.99))
    assert over.history == ()


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


def test_gaussian_filter_under_replace_one_has_a_quarter():
    once, doubled = PrivacyAccountant(1.0, 1e-5), PrivacyAccountant(1.0, 1e-5)
    once.spend(GaussianDpEvent(500.0))
    doubled.spend(GaussianDpEvent(500.0), adjacency="replace_one")
    ratio = once.remaining(GaussianDpEvent(500.0)) / doubled.remaining(GaussianDpEvent(500.0))
    assert ratio == pytest.approx(4.0, rel=1e-3)


def test_renyi_filter_holds_at_one_fixed_order():
    accountant = PrivacyAccountant(2.0, 1e-5)
    accountant.spend(STEP)

    (limit,) = accountant.history[0].rule.filters(2.0, False)
    other = PoissonSampledDpEvent(0.3, GaussianDpEvent(9.0))
    for event in (SelfComposedDpEvent(STEP, 200), GaussianDpEvent(25.0), other):
        accountant.spend(event)
        assert accountant._log.read().balances[0].rule == accountant.history[0].rule
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
    with pytest.raises(ValueError, match="`method` must be None"):
        accountant.get_epsilon(1e-5, method="rdp", adaptive=True)
    accountant.spend(NonPrivateDpEvent())
    assert accountant.get_epsilon(1e-5, adaptive=True) == math.inf


def test_odometer_spends_each_delta_once():
    from skdp.accounting.ledger import balance

    shares = [balance._share(k) for k in range(-2000, 2001)]
    assert 0.999 < sum(shares) < 1.0
    assert balance._FIRST + balance._GAUSSIAN + balance._RENYI + balance.FAILURES == 1.0
    alone = PrivacyAccountant()
    alone.spend(FIT)
    assert alone.get_epsilon(1e-5, adaptive=True) <= get_epsilon(FIT, 0.25e-5)


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
    assert copied.to_json() == accountant.to_json()
    assert (copied.unit, copied.filter_family, copied.epsilon) == ("person", "renyi", 3.0)
    assert copied.get_epsilon(adaptive=True) == accountant.get_epsilon(adaptive=True)
    with pytest.raises(AccountantDetachedError, match="resume=True"):
        copied.spend(GAUSS)
    resumed = PrivacyAccountant.from_json(accountant.to_json(), resume=True)
    left = resumed.remaining(FIT)
    assert exhaust(resumed, FIT) == left


@over_rows(
    ("change", "named"),
    [
        (lambda text: "{", "must be JSON"),
        (lambda text: text.replace('"schema": 4', '"schema": 5'), "must have schema 4, got 5"),
        (lambda text: text.replace('"version": 2', '"version": 1'), "version=1 is not supported"),
        (lambda text: text.replace('"label": "counts"', '"label": "other"'), "Charge 2 of the log"),
        (lambda text: text.replace('"epsilon": 3.0', '"epsilon": 4.0'), "Charge 1 of the log"),
        (lambda text: text.replace('"head": "', '"head": "0'), "head="),
        (lambda text: text.replace('"unit": "person"', '"unit": null'), "'unit' is missing or invalid"),
        (lambda text: text.replace('"label": "counts"', '"label": null'), "missing or null field"),
        (lambda text: text.replace("GaussianDpEvent", "UniformDpEvent"), "UniformDpEvent"),
        (
            lambda text: text.replace('"noise_multiplier": 20.0', '"noise_multiplier": -1'),
            "`noise_multiplier` must be .* got -1",
        ),
    ],
)
def test_broken_logs_are_rejected_in_one_line(change, named):
    with pytest.raises(ValueError, match=named) as error:
        PrivacyAccountant.from_json(change(ledger().to_json()))
    assert "\n" not in str(error.value)


def test_the_table_and_the_page_show_what_was_spent_and_is_left():
    accountant = ledger()
    accountant.spend(GAUSS)
    text = str(accountant)
    assert f"spent: epsilon={accountant.get_epsilon():.6g} (composition of all charges)" in text
    assert "remaining: epsilon=" in text
    assert [line.split()[0] for line in text.splitlines() if line[0].isdigit()] == ["1", "2", "3-4", "5"]
    assert "adaptively" not in text
    assert all(word in text for word in ("person", "Poisson(0.01)", "3-4", "budget", "zero_out", "Laplace(50)"))
    page = accountant._repr_html_()
    assert "&lt;b&gt;of all" in page
    assert "<b>" not in page
    assert "remaining=" in repr(accountant)
    assert "delta=1e-06" in accountant.table(1e-6)
    unlimited = PrivacyAccountant()
    assert "requires a delta" in str(unlimited)
    unlimited.spend(GAUSS)
    assert "fully adaptive composition" in unlimited.table(1e-5)
