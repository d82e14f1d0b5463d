"""Privacy filters, which admit adaptively chosen charges under a budget.

The epsilon of a jointly composed plan (PLD) is valid for a plan fixed before data are read. After outputs were seen,
the next charge can depend on them, so a theorem about *adaptively chosen* privacy parameters is required. A `Filter` is
such a theorem with a budget: it stops the run before the budget is exceeded. Two filters are used.

- Gaussian: a run of plain Gaussian releases in which the sum of mu^2 never exceeds B is sqrt(B)-GDP (Smith & Thakurta
  2022, fully adaptive Gaussian composition). So B = mu(epsilon, delta)^2 of the closed form is sound.
- Rényi: a run in which the sum of the Rényi divergences at ONE order, fixed in advance, never exceeds B is (order,
  B)-RDP (Feldman & Zrnic 2021). So B = epsilon minus the conversion term of that order is sound. The Rényi divergence
  of an event is the larger of both directions, so both are covered. Proof: let L be the ratio of the densities of the
  whole transcript, and rho_i the divergence of step i, which the past decides. Given the past, the i-th factor of
  L^order e^{-(order - 1) sum rho_i} has mean at most 1 under Q, so the product has as well. Because sum rho_i <= B on
  every transcript, E_Q[L^order] <= e^{(order - 1) B}.

**Failures.** An (epsilon_i, delta_i) event has no Rényi divergence. The outputs P and Q of such an event for two
neighbors are

    P = (1 - delta_i) P' + delta_i A,    Q = (1 - delta_i) Q' + delta_i B,    P' <= e^epsilon_i Q', Q' <= e^epsilon_i P'

(Kairouz, Oh & Viswanath 2017; Murtagh & Vadhan 2016). Proof, in densities: p0 = min(p, e^epsilon_i q) and q0 = min(q,
e^epsilon_i p) are within a factor e^epsilon_i of each other, and their masses are at least 1 - delta_i. Scale both so
that the smaller mass, say that of q0, is 1 - delta_i. Then p_t = t p0 + (1 - t) e^-epsilon_i q0 lies between
e^-epsilon_i q0 and p0, hence within e^epsilon_i of q0. Its mass increases from below 1 - delta_i (t = 0) to above
(t = 1), so it is 1 - delta_i for some t. The remainders of p and q are delta_i A and delta_i B.

So an event fails with probability delta_i and is pure otherwise. The filter also requires that the delta_i sum to at
most delta_F. Let P~, Q~ be the run with every (epsilon_i, delta_i) event replaced by its pure part; the Rényi filter
makes P~ and Q~ (epsilon, delta_R)-close. A failure occurs with probability E[1 - prod(1 - delta_i)] <= delta_F. A
transcript without failure has w = prod(1 - delta_i) times its density in the pure run. Charges depend on outputs only,
so w is a function of the transcript, the same for P and Q. Closeness holds for every function with values in [0, 1],
so

    P(S) <= delta_F + E_P~[w 1_S] <= delta_F + e^epsilon E_Q~[w 1_S] + delta_R <= e^epsilon Q(S) + delta_R + delta_F.

**Failures of trials.** Let a trial fail with probability at most delta_i, and let the number of trials be K, with mean
m and generating function phi. Some trial fails with probability 1 - phi(1 - delta_i) <= m delta_i, because phi is
convex with slope m at 1. This is the failure probability of the selection. Without a failure, the best trial has the
distribution of the best of K' pure trials, times phi(1 - delta_i). K' has the generating function phi((1 - delta_i) x)
/ phi(1 - delta_i), which belongs to the same family with 1 - gamma or, for Poisson, the mean multiplied by 1 - delta_i.
Its Rényi divergence, as bounded by `rdp.rdp`, is at most that with K, because the bound decreases with gamma and
increases with the mean. If the trials are of several kinds, all are assumed to fail as often as the worst.

This is an approximate-Rényi filter. The deltas add up as in the approximate-zCDP filter of Whitehouse, Ramdas, Rogers &
Wu 2023, but the proof uses only the argument above.

**The rule of admission** (`Rule`) is fixed by the first charge, which is public and was chosen before any output, and
is stored with it. The rule contains the filters, each with a fraction delta_k of delta, and a fraction delta_F for
failures, with a sum of at most delta. A charge is admitted if, with it, one of the filters holds for all charges. Proof
that the run is (epsilon, delta)-private: split a set S of transcripts into S_k, by the first filter k that holds at the
end. The sum over a prefix of the charges is not larger. So on S_k the run agrees with the run that ends before the
first charge that exceeds filter k. This run has the distributions P_k and Q_k and is covered by the theorem of the
filter. (Whether a charge is rejected depends on the charges only, so a rejection reveals nothing.) Hence

    P(S) = sum_k P_k(S_k) <= sum_k (e^epsilon Q_k(S_k) + delta_k) + delta_F = e^epsilon Q(S) + sum_k delta_k + delta_F.

Failures are counted once: by the argument above, P_k(S_k) is at most e^epsilon Q_k(S_k) + delta_k plus the probability
of S_k together with a failure. The S_k are disjoint, and on those of the Rényi filters the run agrees with the run that
stops before the delta_i sum to more than delta_F.

With "auto", the Gaussian filter has half of delta if the first charge is plain Gaussian; otherwise it is omitted, as it
could never hold. delta_F is a tenth of delta. It is larger if the first charge is a partition selection by threshold
(an event of epsilon 0), so that failures do not exhaust the budget before epsilon does. The Rényi filters have the
rest. Their orders are the one at which the first charge can be repeated most often and, if it differs much (as for a
search), that of Gaussian releases, which is also near that of sampled releases.

**The first plan** is admitted by its joint epsilon at the whole delta. If no filter holds with it, no further charge is
ever admitted, so the run *is* that plan. Which case applies is known before any output.

An increased budget was chosen after seeing outputs, so filters do not apply; see `balance`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

from skdp.accounting.formulas.gaussian import gaussian_mu
from skdp.accounting.rdp.rdp import ORDERS, rdp, rdp_rejection, renyi_epsilon_at
from skdp.accounting.releases import PlainNoise, Releases, without_failures

# Only the Gaussian filter: all charges, including the first, are plain Gaussian releases.
GAUSSIAN = "gaussian"

FAMILIES = ("auto", GAUSSIAN, "renyi")

# Families of earlier versions, and their replacements.
REMOVED_FAMILIES = {
    "gdp": "create the accountant with filter_family='gaussian'",
    "discrete": "use filter_family='auto', and noise='discrete' in each call",
}

# Fraction of delta for events with a failure probability, if there is a Rényi filter.
FAILURES = 0.1

# Largest such fraction, of the delta without the Gaussian filter's, if the first charge is a partition selection.
MOST_FAILURES = 0.5

# Charges and their numbers.
Counts = Sequence[tuple[Releases, int]]


def add_upwards(parts: Sequence[float]) -> float:
    """Return an upper bound of the sum of non-negative rounded products."""
    return math.fsum(parts) * (1.0 + 4e-16 * (len(parts) + 1))


# Another order is sufficient if it allows this fraction of the repetitions at the best order.
_NEARLY = 0.9

# A small plain Gaussian release; the order at which it can be repeated most often does not depend on its noise.
_SMALL = Releases(1e-8, gaussian=(PlainNoise(1e4, 1),))


def share(used: float, budget: float) -> float:
    """Return `used / budget`; despite rounding, it is at most 1 if and only if `used` is at most `budget`."""
    if budget <= 0.0:
        return math.inf
    return min(used / budget, 1.0) if used <= budget else max(used / budget, math.nextafter(1.0, 2.0))


def failures_of(charges: Iterable[tuple[Releases, int]]) -> float:
    """Return the sum of the failure probabilities of all charges, rounded up; a single one is exact."""
    counted: list[tuple[float, float]] = []
    for found, n in charges:
        counted += [(n * each.times, each.delta) for each in found.epsilon_delta if each.delta > 0.0]
        for each in found.selected:
            worst = max(failures_of([(run, 1)]) for run in each.runs)
            counted += [(n * each.times * each.mean, worst)] if worst > 0.0 else []
    return counted[0][1] if len(counted) == 1 and counted[0][0] == 1 else add_upwards([n * part for n, part in counted])


def _pure(found: Releases) -> Releases:
    """Return the releases with each (epsilon, delta) event replaced by its pure part, also in trials."""
    selected = (each._replace(runs=tuple(map(_pure, each.runs))) for each in found.selected)
    return replace(without_failures(found), selected=tuple(selected)) if found.selected else without_failures(found)


def _fails_by_thresholds(found: Releases) -> bool:
    """Return whether there are failure probabilities, all of them of events with epsilon 0 (thresholds)."""
    failing = [each.epsilon for each in found.epsilon_delta if each.delta > 0.0]
    trials = [run for each in found.selected for run in each.runs if failures_of([(run, 1)]) > 0.0]
    return bool(failing or trials) and not any(failing) and all(map(_fails_by_thresholds, trials))


@lru_cache(maxsize=1 << 14)
def _renyi_cost(found: Releases, order: float, replace_one: bool) -> float:
    return rdp(_pure(found), order, replace_one=replace_one)


@dataclass(frozen=True)
class Filter:
    """Privacy filter with an additive budget.

    Attributes
    ----------
    order : float or None
        Rényi order; None for the Gaussian filter.
    budget : float
        Upper bound of the sum of costs: mu^2, or Rényi divergence in nats.
    replace_one : bool
        Whether neighbors replace a record.
    failures : float
        Upper bound of the sum of failure probabilities.
    """

    order: float | None
    budget: float
    replace_one: bool
    failures: float = 0.0

    def covers(self, found: Releases) -> bool:
        """Return whether the theorem of the filter covers these releases."""
        if self.order is None:
            return found.plain
        return not found.non_private and rdp_rejection(_pure(found), replace_one=self.replace_one) is None

    def cost(self, found: Releases) -> float:
        """Return the cost of the releases; inf if the theorem does not cover them."""
        if not self.covers(found):
            return math.inf
        if self.order is None:
            return found.mu_squared * (4.0 if self.replace_one else 1.0)
        return _renyi_cost(found, self.order, self.replace_one)

    def load(self, charges: Counts) -> float:
        """Return the used fraction of the budget; at most 1 if the filter holds, inf if failures exceed their bound."""
        return share(total_cost(self, charges), self.budget) if failures_of(charges) <= self.failures else math.inf


def total_cost(limit: Filter, charges: Counts) -> float:
    """Return the cost of charges under a filter, rounded up.

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
    """Rule that admits charges after the first one, which fixes it; it is stored with it and never changes.

    Attributes
    ----------
    orders : tuple of float
        Orders of the Rényi filters.
    gaussian, renyi : float
        Delta of the Gaussian filter, and of all Rényi filters in equal parts; 0 without such filters.
    failures : float
        Delta for events with a failure probability, which only Rényi filters admit.
    """

    orders: tuple[float, ...]
    gaussian: float
    renyi: float
    failures: float

    @classmethod
    def read(cls, content: Any, delta: float | None) -> Rule:
        """Return a stored rule after checking it against the delta of the accountant."""
        if not isinstance(content, Mapping) or set(content) != {"orders", "gaussian", "renyi", "failures"}:
            raise ValueError(f"rule={content!r} is not a valid admission rule.")
        shares, orders = [content[name] for name in ("gaussian", "renyi", "failures")], content["orders"]
        known = all(isinstance(value, float | int) and 0.0 <= value < 1.0 for value in shares)
        known = known and isinstance(orders, list)
        known = known and all(isinstance(order, float | int) and 1.0 < order < math.inf for order in orders)
        if not known or delta is None or math.fsum(shares) > delta * (1.0 + 1e-12):
            raise ValueError(f"rule={dict(content)!r} is not consistent with the delta={delta!r} of the accountant.")
        return cls(tuple(float(order) for order in orders), *(float(value) for value in shares))

    def to_dict(self) -> dict[str, Any]:
        """Return the rule as a dictionary, as used in JSON and in the file."""
        return {**asdict(self), "orders": list(self.orders)}

    def filters(self, epsilon: float, replace_one: bool) -> tuple[Filter, ...]:
        """Return the filters, each of which guarantees `epsilon` at its fraction of delta."""
        return _filters(self, epsilon, replace_one)

    def load(self, charges: Counts, epsilon: float, replace_one: bool) -> float:
        """Return the smallest load of the filters; at most 1 if one of them holds for all charges."""
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
    """Return the order that allows most repetitions; None if no Rényi divergence is within the budget."""
    if not Filter(2.0, 0.0, replace_one).covers(found):
        return None
    best, chosen = 0.0, None
    for order in ORDERS:
        cost = _renyi_cost(found, order, replace_one)
        often = _repeats(found, order, epsilon, delta, replace_one)
        if often > best:
            best, chosen = often, order
        if cost > epsilon + 1.0 - math.log1p(-1.0 / order):
            break
    return chosen


def _repeats(found: Releases, order: float, epsilon: float, delta: float, replace_one: bool) -> float:
    """Return the number of repetitions within the budget of one order; 0 without a Rényi divergence."""
    cost = _renyi_cost(found, order, replace_one)
    budget = epsilon - renyi_epsilon_at(order, 0.0, delta)
    return budget / cost if budget > 0.0 and 0.0 < cost < math.inf else 0.0


def _orders(first: Releases, epsilon: float, delta: float, replace_one: bool) -> tuple[float, ...]:
    """Return the order of the first charge, of Gaussian releases, or both if neither order suffices."""
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
    """Return the admission rule that a first charge fixes.

    Parameters
    ----------
    first : Releases
    epsilon, delta : float
        The budget.
    replace_one : bool
        Whether neighbors replace a record.
    family : {"auto", "gaussian", "renyi"}
        Filter family.

    Returns
    -------
    Rule
    """
    gaussian = 0.0
    if family != "renyi" and first.plain:
        gaussian = 0.5 * delta if family == "auto" else delta
    if family == GAUSSIAN:
        return Rule((), gaussian, 0.0, 0.0)
    # At least `FAILURES` of delta. If only events of epsilon 0 can fail, such as thresholds: enough to repeat the first
    # fit until epsilon is exhausted, at most `MOST_FAILURES` of the delta without the Gaussian filter's.
    failures, most = FAILURES * delta, MOST_FAILURES * (delta - gaussian)
    rest = delta - gaussian - most
    order = _best_order(first, epsilon, rest, replace_one) if _fails_by_thresholds(first) else None
    if order is not None:
        often = math.ceil(_repeats(first, order, epsilon, rest, replace_one))
        failures = max(failures, min(most, failures_of([(first, often)]) * (1.0 + 1e-12)))
    renyi = delta - gaussian - failures
    return Rule(_orders(first, epsilon, renyi, replace_one), gaussian, renyi, failures)
