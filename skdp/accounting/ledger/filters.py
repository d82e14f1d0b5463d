"""Privacy filters: which further charges a budget admits when they are chosen after seeing outputs.

A price that is composed jointly (PLD) holds for a plan fixed before data are read. Once outputs have been
seen, the next charge may depend on them, and a theorem about *adaptively chosen* privacy parameters is
needed. A `Filter` is such a theorem with a budget: it stops the run before the budget is passed. Two are used.

- Gaussian: a run of plain Gaussian releases in which the sum of mu^2 never passes B is sqrt(B)-GDP (Smith &
  Thakurta 2022, fully adaptive Gaussian composition), so B = mu(epsilon, delta)^2 of the closed form is sound.
- Rényi: a run in which the sum of the Rényi divergences at ONE order, fixed in advance, never passes B is
  (order, B)-RDP (Feldman & Zrnic 2021), so B = epsilon less the conversion term of that order is sound. Both
  directions of neighbours are covered, as a Rényi price is the larger of the two. Restated and proved here: let L be
  the ratio of the densities of the whole transcript and rho_i the divergence of step i, which the past decides. Given
  the past, the i-th factor of L^order e^{-(order - 1) sum rho_i} has mean 1 at most under Q, so the whole has; and
  sum rho_i <= B on every transcript, hence E_Q[L^order] <= e^{(order - 1) B}.

**Failures.** An (epsilon_i, delta_i) event has no Rényi divergence. Neighbours' outputs P and Q of such an event are

    P = (1 - delta_i) P' + delta_i A,    Q = (1 - delta_i) Q' + delta_i B,    P' <= e^epsilon_i Q', Q' <= e^epsilon_i P'

(Kairouz, Oh & Viswanath 2017; Murtagh & Vadhan 2016). Restated and proved here, in densities: p0 = min(p, e^epsilon_i
q) and q0 = min(q, e^epsilon_i p) are within e^epsilon_i of each other, of masses of at least 1 - delta_i. Scale both so
that the lesser mass, say that of q0, is 1 - delta_i. Then p_t = t p0 + (1 - t) e^-epsilon_i q0 lies between
e^-epsilon_i q0 and p0, hence within e^epsilon_i of q0, and its mass runs from below 1 - delta_i (t = 0) to above
(t = 1): some t gives 1 - delta_i. What is left of p and q is delta_i A and delta_i B.

So an event fails with probability delta_i and is pure otherwise. Let the filter also demand that the delta_i sum to at
most delta_F, and let P~, Q~ be the run with every (epsilon_i, delta_i) event replaced by its pure part; its Rényi
filter makes P~ and Q~ (epsilon, delta_R)-close. A failure happens with probability E[1 - prod(1 - delta_i)] <= delta_F,
and a transcript without failure has w = prod(1 - delta_i) times its density in the pure run, where w is a function of
the transcript, the same for P and Q, as charges are chosen by outputs alone. As closeness holds for every function
with values in [0, 1], not for sets alone,

    P(S) <= delta_F + E_P~[w 1_S] <= delta_F + e^epsilon E_Q~[w 1_S] + delta_R <= e^epsilon Q(S) + delta_R + delta_F.

**Failures of trials.** If a trial fails with probability delta_i at most and K of them are made, of mean m, one of them
fails with probability 1 - phi(1 - delta_i) <= m delta_i, phi the generating function of K (it is convex, with slope m
at 1). That is the failure probability of the selection. Where no try fails, the best of them has the law of the best of
K' pure trials, times phi(1 - delta_i): K' has the generating function phi((1 - delta_i) x) / phi(1 - delta_i), which is
that of the same family with 1 - gamma or, for Poisson, the mean multiplied by 1 - delta_i. Its Rényi price is no larger
than with K, as `rdp.rdp` bounds it, since that falls with gamma and rises with the mean. If trials are of several
kinds, whoever fails less often is taken to fail as often as the worst.

This is an approximate-Rényi filter, as the approximate-zCDP filter of Whitehouse, Ramdas, Rogers & Wu 2023, whose
deltas add up alike; the argument above is all that is used.

**The rule of a ledger** (`Rule`) is fixed by its first charge, which was chosen before any output and is public, and is
stored with it: the filters, each with a share delta_k of delta, and a share delta_F for failures, all of which sum to
delta at most. A charge is admitted if, with it, one of the filters holds for all charges. Proof that the run is
(epsilon, delta)-private: split a set S of transcripts into S_k, by the first filter k that holds at the end. A sum over
the charges of a prefix is no larger, so on S_k the run agrees with the one that ends before the first charge that
breaks filter k, whose laws are P_k and Q_k and whom that filter's theorem covers. (What the ledger refuses is no charge
and shows nothing: whether it does depends on charges alone.) Hence

    P(S) = sum_k P_k(S_k) <= sum_k (e^epsilon Q_k(S_k) + delta_k) + delta_F = e^epsilon Q(S) + sum_k delta_k + delta_F.

Failures are counted once: by the argument above P_k(S_k) is at most e^epsilon Q_k(S_k) + delta_k plus the probability
of S_k together with a failure; the S_k are disjoint, and on all those of Rényi filters the run agrees with the one that
stops before the delta_i sum to more than delta_F.

With "auto", the Gaussian filter has half of delta if the first charge is plain Gaussian, else there is none, as it
could never hold. A tenth of delta is delta_F; more, if the first charge names categories by a threshold (an event of
epsilon 0), so that its failures do not end what epsilon still admits. The Rényi filters have the rest. Their orders are
that at which the first charge can be repeated most often, and that of Gaussian releases, near which sampled ones lie,
where the two differ much, as for a search.

**The first plan** is admitted by its joint price at the whole delta. If no filter holds with it, nothing further is
admitted, ever: the run *is* that plan. Which of the two is the case is known before any output.

A raised budget was chosen after seeing outputs and is no filter; see `balance`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

from skdp.accounting.formulas.gaussian import gaussian_mu
from skdp.accounting.rdp.rdp import ORDERS, rdp, rdp_refusal, renyi_epsilon_at
from skdp.accounting.releases import PlainNoise, Releases, without_failures

# The Gaussian filter alone: all charges are plain Gaussian releases, the first one included.
GAUSSIAN = "gaussian"

FAMILIES = ("auto", GAUSSIAN, "renyi")

# Families of earlier versions, and what replaces them.
REMOVED_FAMILIES = {
    "gdp": "create the accountant with filter_family='gaussian'",
    "discrete": "use filter_family='auto', and noise='discrete' in each call",
}

# Share of delta that is kept for events with a failure probability, wherever a Rényi filter governs.
FAILURES = 0.1

# Most that a rule keeps for them, of what is not the Gaussian filter's, if the first charge has a threshold.
MOST_FAILURES = 0.5

# Charges and how often each was made.
Counts = Sequence[tuple[Releases, int]]


def add_upwards(parts: Sequence[float]) -> float:
    """Sum of numbers of at least 0, each of them a product that was rounded; never below the true sum."""
    return math.fsum(parts) * (1.0 + 4e-16 * (len(parts) + 1))


# Of the repetitions at the best order, what another order has to allow to serve as well.
_NEARLY = 0.9

# A small plain Gaussian release; the order at which it can be repeated most often does not depend on its noise.
_SMALL = Releases(1e-8, gaussian=(PlainNoise(1e4, 1),))


def share(used: float, budget: float) -> float:
    """`used / budget`, which is at most 1 if and only if `used` is at most `budget`, rounding or not."""
    if budget <= 0.0:
        return math.inf
    return min(used / budget, 1.0) if used <= budget else max(used / budget, math.nextafter(1.0, 2.0))


def failures_of(charges: Iterable[tuple[Releases, int]]) -> float:
    """Failure probabilities of all charges, added and rounded up; a single one is as it was stated."""
    counted: list[tuple[float, float]] = []
    for found, n in charges:
        counted += [(n * each.times, each.delta) for each in found.epsilon_delta if each.delta > 0.0]
        for each in found.selected:
            worst = max(failures_of([(run, 1)]) for run in each.runs)
            counted += [(n * each.times * each.mean, worst)] if worst > 0.0 else []
    return counted[0][1] if len(counted) == 1 and counted[0][0] == 1 else add_upwards([n * part for n, part in counted])


def _pure(found: Releases) -> Releases:
    """The releases with each (epsilon, delta) event replaced by its pure part, in trials too."""
    selected = (each._replace(runs=tuple(map(_pure, each.runs))) for each in found.selected)
    return replace(without_failures(found), selected=tuple(selected)) if found.selected else without_failures(found)


def _fails_by_thresholds(found: Releases) -> bool:
    """Whether something can fail, and all that can is of epsilon 0: a threshold, whose failures are all it costs."""
    failing = [each.epsilon for each in found.epsilon_delta if each.delta > 0.0]
    trials = [run for each in found.selected for run in each.runs if failures_of([(run, 1)]) > 0.0]
    return bool(failing or trials) and not any(failing) and all(map(_fails_by_thresholds, trials))


@lru_cache(maxsize=1 << 14)
def _renyi_cost(found: Releases, order: float, replace_one: bool) -> float:
    return rdp(_pure(found), order, replace_one=replace_one)


@dataclass(frozen=True)
class Filter:
    """A budget that adds up.

    Attributes
    ----------
    order : float or None
        Rényi order; None for the Gaussian filter.
    budget : float
        Most that the costs may sum to: mu^2, or Rényi divergence in nats.
    replace_one : bool
        Whether neighbours replace a record.
    failures : float
        Most that the failure probabilities may sum to.
    """

    order: float | None
    budget: float
    replace_one: bool
    failures: float = 0.0

    def covers(self, found: Releases) -> bool:
        """Whether the filter's theorem speaks about these releases."""
        if self.order is None:
            return found.plain
        return not found.non_private and rdp_refusal(_pure(found), replace_one=self.replace_one) is None

    def cost(self, found: Releases) -> float:
        """What the releases take from the budget; inf if no theorem speaks about them."""
        if not self.covers(found):
            return math.inf
        if self.order is None:
            return found.mu_squared * (4.0 if self.replace_one else 1.0)
        return _renyi_cost(found, self.order, self.replace_one)

    def load(self, charges: Counts) -> float:
        """Share of the budget that these charges take; at most 1 if the filter holds, inf if they fail too often."""
        return share(total_cost(self, charges), self.budget) if failures_of(charges) <= self.failures else math.inf


def total_cost(limit: Filter, charges: Counts) -> float:
    """What charges take from a filter, rounded up.

    Parameters
    ----------
    limit : Filter
    charges : sequence of (Releases, count)

    Returns
    -------
    float
    """
    parts = []
    for found, count in charges:
        cost = limit.cost(found)
        if cost == math.inf:
            return math.inf
        parts.append(count * cost)
    return add_upwards(parts)


@dataclass(frozen=True)
class Rule:
    """How a ledger admits charges after its first one; fixed by that one, stored with it, and never changed.

    Attributes
    ----------
    orders : tuple of float
        Of the Rényi filters.
    gaussian, renyi : float
        Delta of the Gaussian filter, and of the Rényi filters in equal parts; 0 where there is none.
    failures : float
        Delta kept for events with a failure probability, which the Rényi filters alone admit.
    """

    orders: tuple[float, ...]
    gaussian: float
    renyi: float
    failures: float

    @classmethod
    def read(cls, content: Any, delta: float | None) -> Rule:
        """A stored rule by the names of its fields, checked against the delta of its ledger."""
        if not isinstance(content, Mapping) or set(content) != {"orders", "gaussian", "renyi", "failures"}:
            raise ValueError(f"rule={content!r} is not the rule of a ledger.")
        shares, orders = [content[name] for name in ("gaussian", "renyi", "failures")], content["orders"]
        known = all(isinstance(value, float | int) and 0.0 <= value < 1.0 for value in shares)
        known = known and isinstance(orders, list)
        known = known and all(isinstance(order, float | int) and 1.0 < order < math.inf for order in orders)
        if not known or delta is None or math.fsum(shares) > delta * (1.0 + 1e-12):
            raise ValueError(f"rule={dict(content)!r} does not fit the ledger's delta={delta!r}.")
        return cls(tuple(float(order) for order in orders), *(float(value) for value in shares))

    def to_dict(self) -> dict[str, Any]:
        """The rule by the names that the JSON and the file give its fields."""
        return {**asdict(self), "orders": list(self.orders)}

    def filters(self, epsilon: float, replace_one: bool) -> tuple[Filter, ...]:
        """The filters, each of which proves `epsilon` at its share of delta."""
        return _filters(self, epsilon, replace_one)

    def load(self, charges: Counts, epsilon: float, replace_one: bool) -> float:
        """The least load of the filters; at most 1 if one of them holds for all these charges."""
        return min((limit.load(charges) for limit in self.filters(epsilon, replace_one)), default=math.inf)


@lru_cache(maxsize=256)
def _filters(rule: Rule, epsilon: float, replace_one: bool) -> tuple[Filter, ...]:
    found = []
    if rule.gaussian > 0.0:
        found.append(Filter(None, gaussian_mu(epsilon, rule.gaussian) ** 2, replace_one))
    for order in rule.orders:
        budget = epsilon - renyi_epsilon_at(order, 0.0, rule.renyi / len(rule.orders))
        found.append(Filter(order, budget, replace_one, rule.failures))
    return tuple(found)


def _best_order(found: Releases, epsilon: float, delta: float, replace_one: bool) -> float | None:
    """The order at which releases could be repeated most often; None where they have no Rényi price in the budget."""
    if not Filter(2.0, 0.0, replace_one).covers(found):
        return None
    best, chosen = 0.0, None
    for order in ORDERS:
        cost = _renyi_cost(found, order, replace_one)
        often = _often(cost, order, epsilon, delta)
        if often > best:
            best, chosen = often, order
        if cost > epsilon + 1.0 - math.log1p(-1.0 / order):
            break
    return chosen


def _repeats(found: Releases, order: float, epsilon: float, delta: float, replace_one: bool) -> float:
    """How often releases fit into the budget of one order; 0 where they have no price."""
    return _often(_renyi_cost(found, order, replace_one), order, epsilon, delta)


def _often(cost: float, order: float, epsilon: float, delta: float) -> float:
    budget = epsilon - renyi_epsilon_at(order, 0.0, delta)
    return budget / cost if budget > 0.0 and 0.0 < cost < math.inf else 0.0


def _orders(first: Releases, epsilon: float, delta: float, replace_one: bool) -> tuple[float, ...]:
    """That of the first charge, that of Gaussian releases, or both where neither serves the other."""
    own, shared = (_best_order(found, epsilon, delta, replace_one) for found in (first, _SMALL))
    if own is None or shared is None:
        return () if own is None else (own,)

    def often(found: Releases, order: float) -> float:
        return _repeats(found, order, epsilon, delta, replace_one)

    if often(_SMALL, own) >= _NEARLY * often(_SMALL, shared) or often(first, shared) < 1.0:
        return (own,)
    return (shared,) if often(first, shared) >= _NEARLY * often(first, own) else (own, shared)


@lru_cache(maxsize=256)
def rule_for(first: Releases, epsilon: float, delta: float, replace_one: bool, family: str) -> Rule:
    """The rule of a ledger whose first charge is `first`.

    Parameters
    ----------
    first : Releases
    epsilon, delta : float
        The budget.
    replace_one : bool
        Whether neighbours replace a record.
    family : {"auto", "gaussian", "renyi"}
        Which filters there are: both, or one of them.

    Returns
    -------
    Rule
    """
    gaussian = 0.0
    if family != "renyi" and first.plain:
        gaussian = 0.5 * delta if family == "auto" else delta
    if family == GAUSSIAN:
        return Rule((), gaussian, 0.0, 0.0)
    # At least `FAILURES` of delta. If all that can fail is of epsilon 0, such as a threshold: enough to repeat the
    # first fit while epsilon lasts, up to `MOST_FAILURES` of what is not the Gaussian filter's.
    failures, most = FAILURES * delta, MOST_FAILURES * (delta - gaussian)
    rest = delta - gaussian - most
    order = _best_order(first, epsilon, rest, replace_one) if _fails_by_thresholds(first) else None
    if order is not None:
        often = math.ceil(_repeats(first, order, epsilon, rest, replace_one))
        failures = max(failures, min(most, failures_of([(first, often)]) * (1.0 + 1e-12)))
    renyi = delta - gaussian - failures
    return Rule(_orders(first, epsilon, renyi, replace_one), gaussian, renyi, failures)
