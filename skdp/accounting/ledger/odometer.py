"""An odometer: what a run has cost so far, valid however its charges were chosen and its end was decided.

A privacy odometer (Rogers, Roth, Ullman & Vadhan 2016) is made of privacy filters (Lécuyer 2021; Feldman & Zrnic
2021); this is restated and proved here. Fix in advance, as functions of delta alone, countably many filters k,
each with a budget, an epsilon_k and a share delta_k, the shares summing to delta. Let K be the filter that
is reported, picked from those whose budget the run has not passed, by any rule that looks at the charges
only. On {K = k} the run is its own truncation by filter k, which is (epsilon_k, delta_k)-private, so

    P(E) = sum_k P(E, K = k) <= sum_k (e^{epsilon_k} Q(E, K = k) + delta_k) = E_Q[e^{epsilon_K}; E] + delta

for every event E of the transcript: the reported epsilon_K holds for the run that really happened. The
filters are

- the first plan alone, with its joint price (chosen before any output; nothing else was charged);
- Gaussian filters: sum of mu^2 at most B (Smith & Thakurta 2022), B on a geometric grid;
- Rényi filters: sum of divergences of one order at most B (Feldman & Zrnic 2021, proved in `filters`), for a grid
  of orders and, for each, of B around the conversion term log(1/delta) / (order - 1).

Of each family the least epsilon_k among all budgets not passed is reported: shares are largest in the middle of a grid,
so a greater budget can have the lesser epsilon. What is reported then never falls when something is charged.

A share of delta is kept for events with a failure probability: Rényi filters hold for the run without failures, and
are reported only while the failure probabilities sum to that share at most, which bounds the chance of any failure
together with any report (the argument of `filters`). The share is `FAILURES`, or that of the ledger's rule if it is
larger; the other shares are then smaller in proportion. The rule was fixed by the first charge, before any output, so
all filters still are fixed in advance.

After a budget was raised, this figure decides: a charge is admitted while the figure with it is within the new
budget, and the figure is what is guaranteed. The statement above holds for every way to choose charges, raises
included, as the filters depend on delta alone, the ledger's, named at its creation. That is why delta itself cannot be
raised: a delta chosen after seeing outputs is none of those for which the shares were fixed. The budget's own promise
was (epsilon, delta) for a run that is not raised; a reader who relies on both, each where it applies, pays delta
twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from ..formulas.gaussian import gaussian_epsilon
from ..rdp.rdp import renyi_epsilon_at
from .filters import FAILURES, Counts, Filter, failures_of, total_cost

_FIRST, _GAUSSIAN, _RENYI = 0.25, 0.25, 0.5 - FAILURES  # shares of delta; FAILURES is the fourth
_ORDERS = tuple(1.0 + 1.5**k for k in range(-4, 16))
_RATIO = 1.15  # between neighbouring budgets
_TURN = -40
_SQUARES = math.pi**2 / 3.0 - 1.0  # sum of 1 / (1 + |k|)^2 over all whole k


def _share(k: int) -> float:
    """Share of budget k among all whole numbers."""
    return 1.0 / ((1 + abs(k)) ** 2 * _SQUARES)


def _step(value: float, centre: float) -> int:
    """The least k with centre ratio^k >= value."""
    k = math.ceil(math.log(value / centre) / math.log(_RATIO))
    return k if centre * _RATIO**k >= value else k + 1


@lru_cache(maxsize=1 << 14)
def _gaussian_at(k: int, delta: float) -> float:
    return gaussian_epsilon(delta * _GAUSSIAN * _share(k), math.sqrt(_RATIO**k) * (1.0 + 1e-15))


def _gaussian(spent: float, delta: float) -> float:
    k = _step(spent, 1.0)
    # below the turn each price is below the next: shares fall more slowly than sizes
    return min(_gaussian_at(j, delta) for j in (k, *range(max(k, _TURN), 1)))


@lru_cache(maxsize=1 << 14)
def _renyi_from(k: int, order: float, delta: float) -> float:
    """The least of the prices of budgets k, k + 1, ...; from 0 on they rise."""
    centre, shared = -math.log(delta) / (order - 1.0), delta * _RENYI / len(_ORDERS)
    prices = (renyi_epsilon_at(order, centre * _RATIO**j, shared * _share(j)) for j in range(k, max(k, 0) + 1))
    return max(0.0, min(prices))


def _renyi(spent: float, order: float, delta: float) -> float:
    centre = -math.log(delta) / (order - 1.0)
    return _renyi_from(_step(max(spent, 1e-6 * centre), centre), order, delta)


def odometer_epsilon(
    charges: Counts,
    first: Callable[[float], float] | None,
    delta: float,
    replace_one: bool,
    failures: float = FAILURES,
) -> float:
    """Epsilon of a run so far, at a delta that was named in advance.

    Parameters
    ----------
    charges : sequence of (Releases, count)
        All of them; at least one.
    first : callable or None
        Price of the run at a delta if it consists of its first plan alone, else None.
    delta : float
        In (0, 1).
    replace_one : bool
        Whether neighbours replace a record.
    failures : float
        Share of delta for failures, from `FAILURES` to below 1; fixed before any output.

    Returns
    -------
    float
        In nats; inf where no theorem covers the charges.
    """
    room, delta = failures * delta, delta * ((1.0 - failures) / (1.0 - FAILURES))
    found = [first(delta * _FIRST)] if first is not None else []
    gaussian = total_cost(Filter(None, math.inf, replace_one), charges)
    if 0.0 < gaussian < math.inf:
        found.append(_gaussian(gaussian, delta))
    for order in _ORDERS if failures_of(charges) <= room else ():
        total = total_cost(Filter(order, math.inf, replace_one), charges)
        if total < math.inf:
            found.append(_renyi(total, order, delta))
    return min(found, default=math.inf)
