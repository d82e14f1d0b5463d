"""Filters, the rule of a ledger, and the odometer: kinds mix, deltas add up, and no run passes what is promised."""

import functools
import itertools
import json
import math
import os
import pickle
import re

import numpy as np
import pytest
from combinations import over_rows
from ledger_files import FIT, GAUSS, exhaust

from skdp.accounting import (
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    PoissonSampledDpEvent,
    PrivacyAccountant,
    RepeatAndSelectDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
    ZCDpEvent,
    calibrate_jointly,
    calibrate_noise_multiplier,
    compose,
    get_delta,
    get_epsilon,
)
from skdp.accounting.formulas.gaussian import gaussian_mu
from skdp.accounting.formulas.selection_law import NumberOfTrials
from skdp.accounting.ledger import balance, file_log
from skdp.accounting.ledger.filters import FAILURES, MOST_FAILURES, Filter, Rule, failures_of, rule_for, total_cost
from skdp.accounting.rdp.rdp import renyi_epsilon_at
from skdp.accounting.releases import releases
from skdp.exceptions import AccountantDetachedError, BudgetExceededError, BudgetFileError

LOGISTIC = SelfComposedDpEvent(GaussianDpEvent(60.0), 100)
NETWORK = SelfComposedDpEvent(PoissonSampledDpEvent(0.02, GaussianDpEvent(2.0)), 300)
SEARCH = RepeatAndSelectDpEvent(
    compose([SelfComposedDpEvent(PoissonSampledDpEvent(0.02, GaussianDpEvent(4.0)), 100), GaussianDpEvent(30.0)]),
    5.0,
    1.0,
)
COUNTS = LaplaceDpEvent(20.0)
THRESHOLD = EpsilonDeltaDpEvent(0.05, 1e-7)
KINDS = (LOGISTIC, NETWORK, SEARCH, COUNTS, THRESHOLD)
FIXED_SIZE = SampledWithoutReplacementDpEvent(1000, 10, GaussianDpEvent(4.0))
FAILING = PoissonSampledDpEvent(0.1, EpsilonDeltaDpEvent(0.2, 1e-9))


def rejected(accountant, event, match, **options):
    """The message of a rejection: one line, the same from `check`, and nothing charged."""
    before = accountant.to_json()
    with pytest.raises(BudgetExceededError, match=match) as error:
        accountant.spend(event, **options)
    with pytest.raises(BudgetExceededError) as checked:
        accountant.check(event, **options)
    assert str(checked.value) == str(error.value)
    assert accountant.to_json() == before
    text = str(error.value)
    assert "\n" not in text
    assert text.endswith(".")
    return text


# --- kinds mix ----------------------------------------------------------------------------------------------


@over_rows(
    ("events", "adjacency"),
    [
        *((order, "zero_out") for order in itertools.islice(itertools.permutations(KINDS), 0, None, 40)),
        ((LOGISTIC, NETWORK, FIXED_SIZE, SEARCH, COUNTS, THRESHOLD), "replace_one"),
    ],
)
def test_kinds_mix_in_any_order(events, adjacency):
    accountant = PrivacyAccountant(8.0, 1e-5)
    for event in events:
        accountant.spend(event, adjacency=adjacency)
    rule = accountant.history[0].rule
    assert {charge.rule for charge in accountant.history[1:]} == {None}
    assert accountant.spent <= 8.0
    assert 0.0 < accountant.remaining() < 8.0
    assert accountant.remaining(NETWORK) > 0
    # the whole run is within the budget at the stored order, with the stored shares
    part = rule.renyi / len(rule.orders)
    filters = {order: Filter(order, 0.0, adjacency == "replace_one") for order in rule.orders}
    totals = {order: sum(each.cost(releases(event)) for event in events) for order, each in filters.items()}
    assert min(renyi_epsilon_at(order, total, part) for order, total in totals.items()) <= 8.0
    assert rule.gaussian + rule.renyi + rule.failures <= 1e-5 * (1.0 + 1e-12)


def test_shares_of_delta_are_spent_once():
    """Half for each filter where both can hold; what fails is taken from the Rényi filter's half."""
    for first, gaussian, failures in (
        (GAUSS, 0.5e-5, FAILURES * 1e-5),
        (FIT, 0.0, FAILURES * 1e-5),
        (estimated(0.5, 1e-6), 0.0, MOST_FAILURES * 1e-5),
    ):
        rule = rule_for(releases(first), 2.0, 1e-5, False, "auto")
        assert rule.gaussian == gaussian
        assert rule.failures == failures
        assert rule.gaussian + rule.renyi + rule.failures == pytest.approx(1e-5, rel=1e-12)
    limit, other = rule_for(releases(GAUSS), 2.0, 1e-5, False, "auto").filters(2.0, False)
    assert limit == Filter(None, gaussian_mu(2.0, 0.5e-5) ** 2, False)
    assert other.budget == 2.0 - renyi_epsilon_at(other.order, 0.0, 0.4e-5)
    assert rule_for(releases(GAUSS), 2.0, 1e-5, False, "gaussian") == Rule((), 1e-5, 0.0, 0.0)
    two = rule_for(releases(SEARCH), 6.0, 1e-5, False, "auto")
    assert len(two.orders) == 2
    for order, each in zip(two.orders, two.filters(6.0, False), strict=True):
        assert each.budget == 6.0 - renyi_epsilon_at(order, 0.0, 0.45e-5)


def test_failures_of_repeated_selections_add_up():
    """Each of 4 selections, charged twice, makes 3 runs on average."""
    search = RepeatAndSelectDpEvent(EpsilonDeltaDpEvent(0.1, 1e-7), 3.0, 1.0)
    assert failures_of([(releases(SelfComposedDpEvent(search, 4)), 2)]) == pytest.approx(24e-7, rel=1e-12)


# --- the theorem, on runs whose probabilities are known -----------------------------------------------------


def optimal_delta(epsilon, delta, choose, steps):
    """The exact delta at `epsilon` of an adaptive run of (e, d)-events, each the worst of its kind.

    Outcomes of one event under two neighbors: told all (d), or randomized response. `choose` picks the next (e, d)
    from the outcomes so far, or None.
    """
    total, stack = 0.0, [((), 1.0, 1.0)]
    while stack:
        outcomes, p, q = stack.pop()
        chosen = choose(outcomes) if len(outcomes) < steps else None
        if chosen is None:
            total += max(0.0, p - math.exp(epsilon) * q)
            continue
        e, d = chosen
        high = (1.0 - d) / (1.0 + math.exp(-e))
        low = (1.0 - d) - high
        for outcome, here, there in (("told", d, 0.0), ("up", high, low), ("down", low, high)):
            stack.append(((*outcomes, outcome), p * here, q * there))
    return total


@over_rows("seed", range(2))
def test_adaptive_runs_of_failing_events_stay_within_delta(seed):
    """Every outcome enumerated: the analyst asks for more after each outcome that went its way, until rejected."""
    rng = np.random.default_rng(seed)
    epsilon, delta, steps = 1.5, 0.2, 5
    menu = [(float(e), float(d)) for e, d in zip(rng.uniform(0.05, 0.6, 4), rng.uniform(0.0, 0.008, 4), strict=True)]

    def choose(outcomes):
        accountant = PrivacyAccountant(epsilon, delta)
        for k in range(len(outcomes) + 1):
            bold = 0 if k == 0 else (2 * (outcomes[k - 1] == "up") + (outcomes[k - 1] == "told")) % 4
            for e, d in (*menu[bold:], (0.02, 0.001)):
                event = EpsilonDeltaDpEvent(e, d)
                try:
                    accountant.check(event)
                except BudgetExceededError:
                    continue
                if k == len(outcomes):
                    return e, d
                accountant.spend(event)
                break
            else:
                return None
        return None

    found = optimal_delta(epsilon, delta, choose, steps)
    assert 0.0 < found <= delta


# --- what decides is told, and holds ------------------------------------------------------------------------


@over_rows(
    ("shape", "raised"),
    [
        (lambda s: SelfComposedDpEvent(PoissonSampledDpEvent(0.02, GaussianDpEvent(s)), 300), False),
        (
            lambda s: compose(
                [GaussianDpEvent(3.0 * s), SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(s)), 99)]
            ),
            True,
        ),
    ],
)
def test_a_fit_of_what_is_affordable_is_admitted_and_no_larger_one(shape, raised):
    accountant = PrivacyAccountant(2.0, 1e-5)
    accountant.spend(LOGISTIC)
    accountant.spend(shape(calibrate_noise_multiplier(shape, 0.5, 1e-5)))
    if raised:
        accountant.increase_budget(3.5)
    delta = 1e-6
    left = accountant.affordable(shape(1.0), delta=delta).epsilon
    assert left > 0.1
    accountant.check(shape(calibrate_noise_multiplier(shape, left, delta)))
    too_much = shape(calibrate_noise_multiplier(shape, left * 1.2, delta))
    text = rejected(accountant, too_much, "Privacy budget exceeded", parameters={"delta": delta})
    needs, told, at = re.search(r"requires epsilon=(\S+), but (\S+) remains \(delta=(\S+)\)", text).groups()
    assert float(at) == delta
    assert float(needs) == pytest.approx(left * 1.2, rel=0.02)
    assert float(told) == pytest.approx(left, rel=0.01)
    assert f"Lower `epsilon` to {told}, or" in text
    assert accountant.remaining() == pytest.approx(accountant.affordable(shape(7.0)).epsilon, rel=3e-3)


def test_no_more_releases_than_can_be_priced():
    """Each charge has a privacy cost; together they are too many for any method."""
    accountant = PrivacyAccountant(5.0, 1e-5)
    half = SelfComposedDpEvent(GaussianDpEvent(1e9), 6 * 10**11)
    accountant.spend(half)
    assert accountant.remaining(half) == 0
    for call in (accountant.check, accountant.spend):
        with pytest.raises(ValueError, match=r"make more than 1e\+12 releases"):
            call(half)
    assert 0.0 < accountant.get_epsilon(1e-5) < math.inf


# --- a raised budget ---------------------------------------------------------------------------------------


def test_a_raised_ceiling_is_held_by_the_odometer():
    accountant = PrivacyAccountant(1.0, 1e-5)
    accountant.spend(NETWORK)
    accountant.increase_budget(2.0, note="agreed")
    assert (accountant.epsilon, accountant.delta) == (2.0, 1e-5)
    assert accountant.spent == accountant.get_epsilon(adaptive=True)
    small = SelfComposedDpEvent(PoissonSampledDpEvent(0.02, GaussianDpEvent(4.0)), 30)
    exhaust(accountant, small)
    assert 1.5 < accountant.spent <= 2.0


def test_increase_that_is_not_valid_raises():
    accountant = PrivacyAccountant(2.0, 1e-5)
    for event in (NETWORK, FIT, NETWORK):
        accountant.spend(event)
    figure = accountant.get_epsilon(adaptive=True)
    assert figure > 2.0
    for arguments, named in (
        ((2.0,), "must exceed the present budget"),
        ((math.inf,), "`epsilon` must be a finite number"),
        ((0.999 * figure,), "is too small.* Set epsilon="),
    ):
        with pytest.raises(ValueError, match=named):
            accountant.increase_budget(*arguments)
    with pytest.raises(ValueError, match=r"`delta` of a budget cannot be changed from 1e-05, got 0\.0001"):
        accountant.increase_budget(5.0, delta=1e-4)
    with pytest.raises(ValueError, match="cannot be increased"):
        PrivacyAccountant().increase_budget(5.0)
    assert len(accountant.entries) == 3
    accountant.increase_budget(5.0, delta=1e-5)


def test_odometer_rises_with_the_privacy_loss():
    """Each family's epsilon rises with the privacy loss, and covers it."""
    delta = 1e-8
    spent = np.geomspace(1e-9, 1e3, 60)
    for order in balance._ORDERS:
        found = [balance._renyi(x, order, delta) for x in spent]
        assert found == sorted(found)
        least = [renyi_epsilon_at(order, x, delta * balance._RENYI) for x in spent]
        assert all(x <= figure for x, figure in zip(least, found, strict=True))
    found = [balance._gaussian(x, delta) for x in spent]
    assert found == sorted(found)
    assert all(get_epsilon(GaussianDpEvent(x**-0.5), delta) <= figure for x, figure in zip(spent, found, strict=True))


def test_the_odometer_covers_failures_within_its_share():
    accountant = PrivacyAccountant()
    accountant.spend(FIT)
    accountant.spend(EpsilonDeltaDpEvent(0.1, 0.5e-6))
    assert accountant.get_epsilon(1e-5, adaptive=True) < 4.0
    assert accountant.get_epsilon(1e-6, adaptive=True) == math.inf
    assert balance._FIRST + balance._GAUSSIAN + balance._RENYI + FAILURES == 1.0


# --- fits that estimate categories: Gaussian releases with a threshold's delta ---


@functools.cache
def estimated(epsilon, threshold, delta=1e-5):
    """A query of categories followed by gradient descent, calibrated together."""

    def query(sigma):
        return compose([SelfComposedDpEvent(GaussianDpEvent(sigma), 3), EpsilonDeltaDpEvent(0.0, threshold)])

    def descent(sigma):
        return SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(sigma)), 1000)

    noises = calibrate_jointly([query, descent], epsilon, delta, [0.15, 0.85])
    return compose([query(noises[0]), descent(noises[1])])


def test_fits_that_estimate_categories_repeat_within_epsilon():
    threshold = 1e-6
    fit = estimated(0.5, threshold)
    accountant = PrivacyAccountant(1.5, 1e-5)
    accountant.spend(fit)
    rule = accountant.history[0].rule
    assert rule.gaussian + rule.renyi + rule.failures <= 1e-5 * (1.0 + 1e-12)
    assert 1 <= accountant.remaining(fit) < 50
    count = 1 + exhaust(accountant, fit)
    assert count * threshold <= rule.failures <= 0.5e-5
    charges = [(releases(fit), count)]
    (order,) = rule.orders
    total = total_cost(Filter(order, math.inf, False), charges)
    assert renyi_epsilon_at(order, total, rule.renyi) <= 1.5
    assert accountant.get_delta(1.5) <= 1e-5
    assert math.isfinite(accountant.get_epsilon(1e-5, adaptive=True))


def test_a_rejection_for_failures_names_the_delta_that_is_admitted():
    accountant = PrivacyAccountant(3.0, 1e-5)
    accountant.spend(NETWORK)
    text = rejected(accountant, estimated(0.4, 2e-6), "requires delta=2e-06 .* but 1e-06 remains")
    assert "Lower its delta to 1e-06" in text
    accountant.check(estimated(0.4, 1e-6))


def best_of(law, scores, phi):
    """The law of the best of K trials with this law of one, by score; phi the generating function of K."""
    order = np.argsort(scores)
    upto = np.cumsum(law[order])
    found = np.empty_like(law)
    found[order] = np.diff(phi(np.concatenate([[0.0], upto])))
    return found


@over_rows(("mean", "shape"), [(3.0, 1.0), (8.0, 0.0), (5.0, math.inf)])
def test_failures_of_tries_cost_their_mean_number(mean, shape):
    """Exact laws of a search whose trials tell all with probability delta, else a noisy number of 41."""
    trials, delta, alpha, left = NumberOfTrials(mean, shape), 1e-3, 6.0, 1e-6
    k = np.arange(400)
    mass = trials.pmf(k)

    def phi(x):
        return (mass * x[:, None] ** k).sum(axis=1)

    at = np.arange(41.0)
    pure = [np.exp(-0.5 * ((at - center) / 20.0) ** 2) for center in (20.0, 21.0)]
    pure = [np.concatenate([law / law.sum(), [0.0, 0.0]]) for law in pure]
    one, two = ((1.0 - delta) * law + delta * np.eye(43)[place] for law, place in zip(pure, (41, 42), strict=True))
    scores = np.concatenate([np.random.default_rng(0).permutation(41), [41, 42]])  # telling all beats all else
    p, q = best_of(one, scores, phi), best_of(two, scores, phi)
    run = compose([ZCDpEvent(0.5 * 0.06**2), EpsilonDeltaDpEvent(0.0, delta)])  # more than the pure laws diverge
    order = np.concatenate([[1.1, 2.0], np.arange(3.0, 30.0)])
    assert all(np.log((pure[0][:41] ** a * pure[1][:41] ** (1 - a)).sum()) / (a - 1) <= 0.0018 * a for a in order)
    found = releases(RepeatAndSelectDpEvent(run, mean, shape))
    limit = Filter(alpha, math.inf, False)
    epsilon = renyi_epsilon_at(alpha, limit.cost(found), left)
    failing = failures_of([(found, 1)])
    assert failing == pytest.approx(mean * delta)
    assert failures_of([(found, 2)]) == pytest.approx(2.0 * mean * delta)
    worst = np.maximum(p - math.exp(epsilon) * q, 0.0).sum()
    assert delta < worst <= failing + left
    assert worst > 0.9 * (1.0 - phi(np.array([1.0 - delta]))[0])


def test_failures_inside_tries_have_no_price_by_renyi_outside_the_filters():
    """Where nothing is kept for them they must not be forgotten."""
    run = compose([GaussianDpEvent(30.0), EpsilonDeltaDpEvent(0.0, 1e-8)])
    search = compose([RepeatAndSelectDpEvent(run, 3.0, 1.0), EpsilonDeltaDpEvent(0.0, 1e-8)])
    with pytest.raises(TypeError):
        get_epsilon(search, 1e-5, method="rdp")


# --- kept entries -------------------------------------------------------------------------------------------


def with_everything(path=None):
    accountant = PrivacyAccountant(2.0, 1e-5, path=path)
    accountant.spend(GAUSS, "first", parameters={"epsilon": 0.3})
    assert accountant.record_rejection("DPPCA", note="NaN in a column")
    accountant.increase_budget(4.0, note="why")
    accountant.spend(FIT, "second")
    return accountant


def test_rejections_and_raises_are_entries_of_the_chain(tmp_path):
    accountant = with_everything(str(tmp_path / "a.budget"))
    assert accountant.verify() == 4
    file_log._STORES.clear()
    copies = [PrivacyAccountant.from_json(accountant.to_json()), pickle.loads(pickle.dumps(accountant))]
    copies.append(PrivacyAccountant.from_json(accountant.to_json(), resume=True, path=tmp_path / "moved.budget"))
    for each in (accountant, *copies):
        assert [entry.kind for entry in each.entries] == ["charge", "rejection", "raise", "charge"]
        assert [charge.label for charge in each.history] == ["first", "second"]
        assert each.epsilon == 4.0
        assert each.spent == accountant.spent
        assert each._log.read().balances[0].rule == accountant.history[0].rule
        assert each.get_epsilon() == get_epsilon(compose([GAUSS, FIT]), 1e-5)
    content = json.loads(accountant.to_json())
    content["charges"].pop(1)
    with pytest.raises(ValueError, match="Charge 2 of the log"):
        PrivacyAccountant.from_json(json.dumps(content))
    content = json.loads(accountant.to_json())
    content["charges"][0]["rule"]["renyi"] = 0.9e-5
    with pytest.raises(ValueError, match="is not consistent with the delta"):
        PrivacyAccountant.from_json(json.dumps(content))


def test_a_rejection_is_recorded_whatever_the_ceiling(tmp_path):
    accountant = PrivacyAccountant(1.0, 1e-5)
    sigma = calibrate_noise_multiplier(GaussianDpEvent, 1.0, 1e-5)
    accountant.spend(GaussianDpEvent(sigma))
    for _ in range(3):
        assert accountant.record_rejection("DPPCA", adjacency="replace_one")
    assert len(accountant.entries) == 4
    assert accountant.adjacency == "zero_out"
    assert accountant.get_epsilon() == get_epsilon(GaussianDpEvent(sigma), 1e-5)
    assert pickle.loads(pickle.dumps(accountant)).record_rejection("DPPCA") is False
    path = str(tmp_path / "a.budget")
    in_file = PrivacyAccountant(1.0, 1e-5, path=path)
    os.unlink(path)
    assert in_file.record_rejection("DPPCA") is False


def test_check_writes_nothing_and_raises_like_spend(tmp_path):
    path = tmp_path / "a.budget"
    for accountant in (PrivacyAccountant(1.0, 1e-5, path=path), PrivacyAccountant(1.0, 1e-5)):
        accountant.spend(GAUSS)
        head = accountant.head
        accountant.check(GAUSS)
        for event, options in (
            (GaussianDpEvent(0.1), {}),
            (GAUSS, {"adjacency": "replace_one"}),
            (1.0, {}),
            (SampledWithoutReplacementDpEvent(9, 3, GAUSS), {}),
        ):
            errors = []
            for call in (accountant.check, accountant.spend):
                with pytest.raises((BudgetExceededError, TypeError, ValueError)) as error:
                    call(event, **options)
                errors.append((type(error.value), str(error.value)))
            assert errors[0] == errors[1]
        assert accountant.head == head
    with pytest.raises(AccountantDetachedError):
        pickle.loads(pickle.dumps(accountant)).check(GAUSS)
    handle = PrivacyAccountant.open(path)
    path.unlink()
    with pytest.raises(BudgetFileError):
        handle.check(GAUSS)


# --- charges that no method costs together -----------------------------------------------------------------


def test_charges_without_a_joint_price_are_rejected():
    accountant = PrivacyAccountant()
    accountant.spend(FIT)
    with pytest.raises(ValueError, match="requires adjacency='replace_one'"):
        accountant.spend(SampledWithoutReplacementDpEvent(1000, 10, GAUSS))
    accountant.spend(FAILING)
    with pytest.raises(ValueError, match=r"No accounting method covers event=.* composed with") as error:
        accountant.spend(ZCDpEvent(0.01))
    assert "\n" not in str(error.value)
    assert len(accountant.history) == 2
    assert accountant.get_epsilon(1e-5) == get_epsilon(compose([FIT, FAILING]), 1e-5, method="pld")


@over_rows(
    "rule",
    [
        {"orders": [5.0], "gaussian": 1e-5, "renyi": 1e-5, "failures": 0.0},
        {"orders": [1.0], "gaussian": 0.0, "renyi": 1e-5, "failures": 0.0},
        {"orders": [5.0], "gaussian": 0.0, "renyi": 1e-5},
        [5.0],
    ],
)
def test_a_rule_that_cannot_be_is_rejected(rule):
    with pytest.raises(ValueError, match="rule="):
        Rule.read(rule, 1e-5)


def test_a_rejection_before_the_first_charge_leaves_the_adjacency_open():
    accountant = PrivacyAccountant(3.0, 1e-5)
    accountant.record_rejection("DPPCA", adjacency="add_remove")
    accountant.spend(FIT, adjacency="replace_one")
    assert accountant.history[0].rule is not None


def test_delta_falls_back_as_epsilon_does():
    from skdp.accounting import ZCDpEvent

    accountant = PrivacyAccountant()
    accountant.spend(ZCDpEvent(0.1))
    assert accountant.get_delta(1.0) == get_delta(ZCDpEvent(0.1), 1.0, method="rdp")
    with pytest.raises(TypeError):
        accountant.get_delta(1.0, method="pld")
