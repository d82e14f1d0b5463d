"""Rényi divergences of compositions, and their conversion to (epsilon, delta).

The divergence of one release is in `mechanisms`. The divergence of a composition is the sum over its releases, for each
order (Mironov 2017, Proposition 1).

Results are rounded up. A divergence is a sum of positive terms with relative errors below 1e-12 (integrals over up to
2^16 nodes; binomial sums are rounded up). For cancellation in a conversion, four units in the last place of each part
are added.
"""

from __future__ import annotations

import bisect
import math
import sys
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from skdp.accounting.formulas.selection_law import NumberOfTrials
from skdp.accounting.rdp.mechanisms import (
    laplace_rdp,
    log_moment,
    log_poisson_delta,
    other_rdp,
    other_rejection,
    pure_rdp,
    without_replacement_rdp,
)
from skdp.accounting.releases import Releases, Runs, without_failures

_UP = 1.0 + 1e-11
_ROUNDED = 1.0 + 1e-12  # of sums of positive terms
_FEW_UNITS = 9e-16
ORDERS = tuple(1.0 + 10.0 ** (k / 12.0) for k in range(-24, 109))


def rdp_rejection(found: Releases, *, replace_one: bool = False) -> Exception | None:
    """Return why a composition has no Rényi divergence, without a remedy; None if it has one."""
    if any(statement.delta > 0.0 for statement in found.epsilon_delta):
        return TypeError("event=EpsilonDeltaDpEvent with delta > 0 has no Rényi divergence")
    rejected = (other_rejection(each.event) for each in found.paired)
    runs = (run for selection in found.selected for run in selection.runs)
    within = (rdp_rejection(run, replace_one=replace_one) for run in runs)
    return next(filter(None, (*rejected, found.adjacency_rejection(replace_one), *within)), None)


def rdp(found: Releases, alpha: float, *, replace_one: bool = False) -> float:
    """Return the Rényi divergence of order `alpha` of a composition, the sum over its releases.

    Parameters
    ----------
    found : Releases
    alpha : float
        Order, above 1.
    replace_one : bool
        Whether neighbors replace a record, which doubles a plain Gaussian's shift and halves a Laplace scale.

    Returns
    -------
    float
        In nats, rounded up.
    """
    if found.non_private:
        return math.inf
    rejection = rdp_rejection(found, replace_one=replace_one)
    if rejection is not None:
        raise type(rejection)(f"{rejection}. Use method='pld' if it supports the event.")
    change = 2.0 if replace_one else 1.0
    total = 0.5 * alpha * change * change * found.mu_squared
    for rate, noise, count in found.sampled:
        total += count * log_moment(alpha, rate, noise, replace_one=replace_one) / (alpha - 1.0)
    for noise, count in found.laplace:
        total += count * laplace_rdp(alpha, change / noise)
    for statement in found.epsilon_delta:
        total += statement.times * pure_rdp(alpha, statement.epsilon)
    total += found.zcdp.xi + found.zcdp.rho * alpha
    for share, noise, count in found.without_replacement:
        total += count * without_replacement_rdp(alpha, share, change / noise)
    for event, count in found.paired:
        total += count * other_rdp(event, alpha, replace_one)
    for runs, trials, count in found.selected:
        one = _worst(runs, alpha, replace_one) if trials is None else _selection_cost(runs, alpha, trials, replace_one)
        total += count * one
    return total * _UP


_CELLS = 2000  # of probabilities
# Orders of one run, from which bounds for every order of the selection are computed.
_DENSE = 1.0 + 10.0 ** (np.arange(-96, 289) / 48.0)


def _worst(runs: Runs, alpha: float, replace_one: bool) -> float:
    """Return the largest Rényi divergence of several compositions."""
    return max(rdp(run, alpha, replace_one=replace_one) for run in runs)


@lru_cache(maxsize=256)
def _at_dense_orders(runs: Runs, replace_one: bool) -> np.ndarray:
    """Return Rényi divergences of one trial at the orders `_DENSE`."""
    return np.array([_worst(runs, float(alpha), replace_one) for alpha in _DENSE])


def _largest_gain(trials: NumberOfTrials, orders: np.ndarray, values: np.ndarray) -> float:
    """Return a bound on log phi'(u) / phi'(v), with u, v the probabilities of no better trial under two neighbors.

    For an event of probability t under one neighbor and w under the other, Hölder's inequality gives, for every order,

        w <= (t e^R(alpha))^(1 - 1/alpha),

    which is the lemma of Theorem 2 of Papernot & Steinke 2022 (the theorem uses one order for all t). Here the event is
    that a trial is better than the output.

    Parameters
    ----------
    trials : NumberOfTrials
    orders, values : ndarray
        Orders, and the Rényi divergences of one trial there, the larger of both directions.

    Returns
    -------
    float
        In nats, at least 0: the largest over cells of t = 1 - u of log phi'(1 - t) at the lower end, less
        log phi'(1 - w) for the largest w at the upper end.
    """
    if trials.mean == 1.0 and not trials.poisson:
        return 0.0
    t = trials.chances(_CELLS)
    kept = np.isfinite(values)
    share = 1.0 - 1.0 / orders[kept]
    with np.errstate(divide="ignore"):
        log_w = np.min(share[:, None] * (np.log(t) + values[kept, None]), axis=0, initial=0.0)
    # Pinsker; the divergence of the first order is at least Kullback & Leibler's
    w = np.minimum(np.exp(log_w), t + math.sqrt(0.5 * max(float(values[0]), 0.0)))
    w = np.minimum(w * _ROUNDED, 1.0)
    with np.errstate(divide="ignore"):
        ahead = np.log(trials.slope(t[:-1])) - np.log(np.maximum(trials.slope(w[1:]), 1e-300))
    return max(0.0, float(ahead.max())) * _ROUNDED


@lru_cache(maxsize=256)
def _selection_constant(runs: Runs, trials: NumberOfTrials, replace_one: bool) -> float:
    """Return the additional cost of a selection: the smaller of `_largest_gain` and Papernot & Steinke's Theorem 2."""
    gain = _largest_gain(trials, _DENSE, _at_dense_orders(runs, replace_one))
    if trials.poisson:
        return gain
    log_gamma = math.log(trials.gamma)

    def kept(alpha: float) -> float:
        return (1.0 - 1.0 / alpha) * _worst(runs, alpha, replace_one)

    return min(gain, (1.0 + trials.shape) * _least(lambda alpha: kept(alpha) - log_gamma / alpha, kept))


def _selected_at(runs: Runs, alpha: float, trials: NumberOfTrials, replace_one: bool) -> float:
    """Return the Rényi divergence of the best of several trials at one order."""
    added = _selection_constant(runs, trials, replace_one)
    if trials.poisson:  # Theorem 6
        theorem = trials.mean * math.exp(log_poisson_delta(alpha, _DENSE, _at_dense_orders(runs, replace_one)))
        added = min(added, theorem)
    return _worst(runs, alpha, replace_one) + math.log(trials.mean) / (alpha - 1.0) + added


@lru_cache(maxsize=256)
def _selected_from(runs: Runs, trials: NumberOfTrials, replace_one: bool) -> np.ndarray:
    """Return the minimum over each of `ORDERS` and larger ones, as divergences increase with the order."""
    costs = np.array([_selected_at(runs, alpha, trials, replace_one) for alpha in ORDERS])
    return np.minimum.accumulate(costs[::-1])[::-1]


def _selection_cost(runs: Runs, alpha: float, trials: NumberOfTrials, replace_one: bool) -> float:
    """Return the Rényi divergence of the best of a random number of trials (Papernot & Steinke 2022).

    With y of density Q(y) in one trial and u the probability that a trial is not better, the best has density
    Q(y) phi'(u), phi the generating function of the number (`trials`). So with v as u under the neighbor,

        E[(Q phi'(u) / Q' phi'(v))^(alpha - 1)] <= m e^((alpha - 1) c) E_Q[(Q / Q')^(alpha - 1)],

    where c is the largest log phi'(u) / phi'(v). The divergence is that of one trial plus c plus log m / (alpha - 1).
    Theorem 2 bounds c by one order; `_largest_gain` uses all orders. For Poisson, c = m (u - v) is m times the total
    variation; Theorem 6 has m times a smaller delta.

    Parameters
    ----------
    runs : tuple of Releases
        Trial of each type.
    alpha : float
        Order, above 1.
    trials : NumberOfTrials
    replace_one : bool
        Whether neighbors replace a record.

    Returns
    -------
    float
        In nats.
    """
    at = _selected_at(runs, alpha, trials, replace_one)
    above = bisect.bisect_left(ORDERS, alpha)
    return at if above == len(ORDERS) else min(at, float(_selected_from(runs, trials, replace_one)[above]))


def renyi_epsilon_at(alpha: float, value: float, delta: float) -> float:
    """Return epsilon from one Rényi order (Canonne, Kamath & Steinke 2020, Proposition 12; Balle et al. 2020).

    Parameters
    ----------
    alpha : float
        Order, above 1.
    value : float
        Rényi divergence of that order, in nats.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        In nats, rounded up; may be negative, which means 0.
    """
    kept, share = math.log1p(-1.0 / alpha), (math.log(delta) + math.log(alpha)) / (alpha - 1.0)
    rounding = _FEW_UNITS * (value - kept + (math.log(alpha) - math.log(delta)) / (alpha - 1.0))
    return value + kept - share + rounding


def _least(objective: Callable[[float], float], floor: Callable[[float], float]) -> float:
    """Return the minimum over orders, by a scan until `floor` exceeds it and a golden-section search."""
    best, at, coarse = math.inf, 0, ORDERS[::2]
    for k, alpha in enumerate(coarse):
        value = objective(alpha)
        if value < best:
            best, at = value, k
        if floor(alpha) > best:
            break
    low, high = (math.log(coarse[min(max(k, 0), len(coarse) - 1)] - 1.0) for k in (at - 1, at + 1))
    # Unlike `minimize`, this does not reuse points between steps, which would change the last digits.
    golden = 0.5 * (math.sqrt(5.0) - 1.0)
    for _ in range(24):
        left, right = high - golden * (high - low), low + golden * (high - low)
        f_left, f_right = objective(1.0 + math.exp(left)), objective(1.0 + math.exp(right))
        best = min(best, f_left, f_right)
        low, high = (low, right) if f_left < f_right else (left, high)
    return best


def renyi_epsilon(found: Releases, delta: float, *, replace_one: bool = False) -> float:
    """Return epsilon at `delta` from the best Rényi order, for a composition without failure probabilities.

    Parameters
    ----------
    found : Releases
    delta : float
        In (0, 1).
    replace_one : bool
        Whether neighbors replace a record.

    Returns
    -------
    float
        In nats, at least 0.
    """
    return max(
        0.0,
        _least(
            lambda alpha: renyi_epsilon_at(alpha, rdp(found, alpha, replace_one=replace_one), delta),
            lambda alpha: rdp(found, alpha, replace_one=replace_one) + math.log1p(-1.0 / alpha),
        ),
    )


def renyi_delta(found: Releases, epsilon: float, *, replace_one: bool = False) -> float:
    """Return delta at `epsilon` from the best Rényi order: the same conversion, solved for delta.

    Parameters
    ----------
    found : Releases
    epsilon : float
        In nats, at least 0.
    replace_one : bool
        Whether neighbors replace a record.

    Returns
    -------
    float
        In [0, 1].
    """

    def log_delta(alpha: float) -> float:
        value, kept = rdp(found, alpha, replace_one=replace_one), math.log1p(-1.0 / alpha)
        rounding = _FEW_UNITS * ((alpha - 1.0) * (value + epsilon - kept) + math.log(alpha))
        return (alpha - 1.0) * (value - epsilon + kept) - math.log(alpha) + rounding

    def floor(alpha: float) -> float:
        return math.inf if rdp(found, alpha, replace_one=replace_one) > epsilon + 50.0 else -math.inf

    least = _least(log_delta, floor)
    return min(1.0, max(math.exp(min(least, 0.0)) * _UP, sys.float_info.min))


def _apart(found: Releases) -> tuple[Releases, float]:
    """Return a composition with pure (epsilon, 0) events, and the delta that this uses.

    An (epsilon, delta)-private release is dominated by one that is non-private with probability delta and
    epsilon-private otherwise (Kairouz, Oh & Viswanath 2017).
    """
    if not found.epsilon_delta:
        return found, 0.0
    taken = -math.expm1(math.fsum(each.times * math.log1p(-each.delta) for each in found.epsilon_delta)) * _ROUNDED
    return without_failures(found), taken


def rdp_epsilon(found: Releases, delta: float, *, replace_one: bool = False) -> float:
    """Return `renyi_epsilon` at the remaining delta after failures of (epsilon, delta) events."""
    pure, taken = _apart(found)
    left = (delta - taken) / (1.0 - taken) / _ROUNDED
    return renyi_epsilon(pure, left, replace_one=replace_one) if left > 0.0 else math.inf


def rdp_delta(found: Releases, epsilon: float, *, replace_one: bool = False) -> float:
    """Return `renyi_delta` including the failures of (epsilon, delta) events."""
    pure, taken = _apart(found)
    return taken + (1.0 - taken) * renyi_delta(pure, epsilon, replace_one=replace_one)
