"""An odometer: what a run has cost so far, valid however its charges were chosen and its end was decided.

A privacy odometer (Rogers, Roth, Ullman & Vadhan 2016) is made of privacy filters (Lécuyer 2021, Section
4; Feldman & Zrnic 2021, Section 4). Fix in advance, as functions of delta alone, countably many filters k,
each with a budget, an epsilon_k and a share delta_k, the shares summing to delta. Let K be the filter that
is reported, picked from those whose budget the run has not passed, by any rule that looks at the charges
only. On {K = k} the run is its own truncation by filter k, which is (epsilon_k, delta_k)-private, so

    P(E) = sum_k P(E, K = k) <= sum_k (e^{epsilon_k} Q(E, K = k) + delta_k) = E_Q[e^{epsilon_K}; E] + delta

for every event E of the transcript: the reported epsilon_K holds for the run that really happened. The
filters are

- the first plan alone, with its joint price (chosen before any output; nothing else was charged);
- Gaussian filters: sum of mu^2 at most B (Smith & Thakurta 2022), B on a geometric grid;
- Rényi filters: sum of divergences of one order at most B (Feldman & Zrnic 2021, Theorem 3.1), for a grid
  of orders and, for each, of B around the conversion term log(1/delta) / (order - 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from ._composition import Releases
from ._filters import Filter
from ._gaussian import gaussian_epsilon
from ._rdp import renyi_epsilon_at

__all__ = ["odometer_epsilon", "rounded_up", "total_cost"]

_FIRST, _GAUSSIAN, _RENYI = 0.25, 0.25, 0.5  # shares of delta
_ORDERS = tuple(1.0 + 1.5**k for k in range(-4, 16))
_RATIO = 1.15  # between neighbouring budgets
_SQUARES = math.pi**2 / 3.0 - 1.0  # sum of 1 / (1 + |k|)^2 over all whole k

Costs = Callable[[Filter], float]


def _share(k: int) -> float:
    """Share of budget k among all whole numbers."""
    return 1.0 / ((1 + abs(k)) ** 2 * _SQUARES)


def _step(value: float, centre: float) -> int:
    """The least k with centre ratio^k >= value."""
    k = math.ceil(math.log(value / centre) / math.log(_RATIO))
    return k if centre * _RATIO**k >= value else k + 1


def _gaussian(spent: float, delta: float) -> float:
    k = _step(spent, 1.0)
    return gaussian_epsilon(delta * _GAUSSIAN * _share(k), math.sqrt(_RATIO**k) * (1.0 + 1e-15))


def _renyi(spent: float, order: float, delta: float) -> float:
    centre = -math.log(delta) / (order - 1.0)
    k = _step(spent, centre)
    share = delta * _RENYI / len(_ORDERS) * _share(k)
    return max(0.0, renyi_epsilon_at(order, centre * _RATIO**k, share))


def odometer_epsilon(spent: Costs, first: Callable[[float], float] | None, delta: float, doubled: bool) -> float:
    """Epsilon of a run so far, at a delta that was named in advance.

    Parameters
    ----------
    spent : callable
        `spent(filter)` is the sum of what all charges take from that filter, inf if it has no theorem.
    first : callable or None
        Price of the run at a delta if it consists of its first plan alone, else None.
    delta : float
        In (0, 1).
    doubled : bool
        Whether neighbours replace a record.

    Returns
    -------
    float
        In nats; inf where no theorem covers the charges.
    """
    found = [first(delta * _FIRST)] if first is not None else []
    gaussian = spent(Filter(None, math.inf, doubled))
    if 0.0 < gaussian < math.inf:
        found.append(_gaussian(gaussian, delta))
    for order in _ORDERS:
        total = spent(Filter(order, math.inf, doubled))
        if 0.0 < total < math.inf:
            found.append(_renyi(total, order, delta))
    return min(found, default=math.inf)


def total_cost(limit: Filter, charges: Iterable[tuple[Releases, int]]) -> float:
    """What charges take from a filter, rounded up.

    Parameters
    ----------
    limit : Filter
    charges : iterable of (Releases, count)

    Returns
    -------
    float
    """
    return rounded_up([count * limit.cost(found) for found, count in charges])


def rounded_up(parts: Sequence[float]) -> float:
    """Sum of numbers of at least 0, each of them a product that was rounded; never below the true sum."""
    return math.fsum(parts) * (1.0 + 4e-16 * (len(parts) + 1))
