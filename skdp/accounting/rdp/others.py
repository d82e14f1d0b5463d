"""Rényi divergences of releases that have a dominating pair, and of those that have a formula of their own.

*From a pair* (`dominating`): log E_Q[(P / Q)^alpha] over its weighted losses, the larger of both directions. A pair
that dominates in every hockey-stick divergence does so in Rényi's, whose moments are mixtures of them. Unbounded
losses are followed to 14 standard deviations beyond the peak of the integrand; what is left out is below e^-90 of the
whole.

*Discrete Gaussian*: alpha shift^2 / (2 s^2), as of the continuous one (Canonne, Kamath & Steinke 2020; restated and
proved here). For a shift of d, E_Q[(P/Q)^alpha] is e^{alpha (alpha-1) d^2 / (2 s^2)} times the sum of e^{-(x - alpha
d)^2 / (2 s^2)} over whole x, by that of e^{-x^2 / (2 s^2)}. The latter is the larger: as a function of the centre the
sum is a Fourier series with coefficients above 0 (Poisson), largest at whole numbers.

*Bounded range*: with the loss in [t - epsilon, t], K(alpha) = log E_Q[(P/Q)^alpha] is 0 at 0 and 1, and its second
derivative is the variance of the loss under a tilted law, at most epsilon^2 / 4. So K(alpha) <= epsilon^2 alpha
(alpha-1) / 8 (Cesar & Rogers 2021). And x^alpha is convex, so K is largest where the loss is at either end: with s =
e^t, r = e^-((alpha-1) epsilon), c = 1 - e^-epsilon,

    e^K = s^{alpha-1} (a - b s),  a = (1 - r e^-epsilon) / c,  b = e^-epsilon (1 - r) / c,

which is largest at s = (alpha - 1) a / (alpha b). The lesser of both bounds is taken.

*More copies of a record than the pair of a sample with replacement holds*, k of them with a share t_k of all samples
with the record: of each loss l > 0 of their pair, of weight w, the sample has the losses s = log(1 - q + q e^l) and -s,
of which Q has w e^-l and w e^{s-l}. With f(r) = r^alpha - 1 - alpha (r - 1), f(e^-s) <= alpha - 1, and f(e^s) <=
(1 - q + q e^l)^alpha is at most 1 - q + q e^{alpha l} and at most 2^{alpha-1} (1 + q^alpha e^{alpha l}), both by
convexity. So with K_k that of a k-fold shift they add at most t_k (alpha + 1 + g), g the lesser of q e^{K_k(alpha)} and
2^{alpha-1} (1 + q^alpha e^{K_k(alpha)}). That there are at least k has a chance of e^{k-m} (m / k)^k at most
(Chernoff), for a mean of m.

*Truncated samples*: the mean of both parts of its pair, of `sampled`.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from skdp._typing import Doubles

from ..dominating.atoms import LossAtoms
from ..dominating.pairs import (
    COPIES_TAIL,
    copies,
    cut_share,
    dominating,
    pair_refusal,
)
from ..events.kinds import adjacency_refusal, name_of, sampled_form
from ..events.noise_events import (
    DiscreteGaussianDpEvent,
    DiscreteLaplaceDpEvent,
    ExponentialMechanismDpEvent,
    MixtureOfGaussiansDpEvent,
    RandomizedResponseDpEvent,
    ReportNoisyMaxDpEvent,
)
from ..events.sampling_events import (
    RandomAllocationDpEvent,
    SampledWithReplacementDpEvent,
    TruncatedSubsampledGaussianDpEvent,
)
from ..events.specifications import DpEvent, EpsilonDeltaDpEvent, GaussianDpEvent, LaplaceDpEvent
from .allocation import allocation_rdp
from .sampled import log1p_exp, log_excess, log_moment

__all__ = ["other_rdp", "other_refusal"]

_FARTHEST = 128.0  # standard deviations that an order moves a loss by, at most
_OUTSIDE = 1.001e-300  # mass of noise that is left out, at most
_ONE_BY_ONE = 1000  # numbers of copies; more are taken together
_UP = 1.0 + 1e-10

_BOUNDED = (
    LaplaceDpEvent,
    DiscreteLaplaceDpEvent,
    EpsilonDeltaDpEvent,
    ExponentialMechanismDpEvent,
    RandomizedResponseDpEvent,
    ReportNoisyMaxDpEvent,
)


def other_refusal(event: DpEvent, replace_one: bool) -> Exception | None:
    """Why an event has no Rényi divergence here, without a remedy; None if it has one."""
    reason = adjacency_refusal(event, replace_one)
    return _event_refusal(event) or (None if reason is None else ValueError(f"{name_of(event)} has a price {reason}"))


def _event_refusal(event: DpEvent) -> Exception | None:
    """The same, whatever the adjacency."""
    inner = sampled_form(event)[2]
    if isinstance(inner, EpsilonDeltaDpEvent) and inner.delta > 0.0:
        return TypeError(f"event={name_of(event)} with delta > 0 has no Rényi divergence")
    by_formula = isinstance(event, (RandomAllocationDpEvent, DiscreteGaussianDpEvent))
    wide = None if by_formula else pair_refusal(event)
    return None if wide is None else TypeError(f"event={name_of(event)}{wide} has no Rényi divergence here")


def _log_moment_of(atoms: LossAtoms, alpha: float, more: float) -> float:
    """log E_Q[(P / Q)^alpha]: E - 1 is the mean under Q of non-negative terms. `more` is the log of what is added."""
    logs = log_excess(alpha, atoms.loss) + (atoms.log_weight - atoms.loss)
    top = float(logs.max(initial=-math.inf))
    total = top + math.log(float(np.exp(logs - top).sum())) if top > -math.inf else -math.inf
    if atoms.missing > 0.0:  # where P has nothing the term is alpha - 1
        total = float(np.logaddexp(total, math.log(atoms.missing) + math.log(alpha - 1.0)))
    return log1p_exp(float(np.logaddexp(total, more)))


def _log_moments_of_noise(event: DpEvent, alpha: float, times: Doubles) -> Doubles:
    """Bounds on log E_Q[(P / Q)^alpha] of additive noise, for `times` the bound on a record."""
    if isinstance(event, GaussianDpEvent):
        return 0.5 * alpha * (alpha - 1.0) * (times / event.noise_multiplier) ** 2
    if isinstance(event, DiscreteGaussianDpEvent):
        return 0.5 * alpha * (alpha - 1.0) * (times * event.sensitivity / event.standard_deviation) ** 2
    if isinstance(event, DiscreteLaplaceDpEvent):
        return (alpha - 1.0) * event.noise_parameter * event.sensitivity * times
    assert isinstance(event, LaplaceDpEvent)
    return (alpha - 1.0) / event.noise_multiplier * times


def _of_more_copies(event: SampledWithReplacementDpEvent, alpha: float) -> float:
    """Log of what more copies of a record than the pair holds add to E_Q[(P / Q)^alpha] - 1, at most."""
    mass, lost, drawn = copies(event)
    places, first = event.sample_size, mass.size + 1
    if first > places:
        return -math.inf
    if lost > COPIES_TAIL:
        return math.inf
    each = np.arange(first, min(places, first + _ONE_BY_ONE) + 1.0)
    start = np.unique(np.concatenate([each, np.ceil(np.geomspace(first, places, _ONE_BY_ONE))]))
    start = start[(start >= first) & (start <= places)]
    end = np.append(start[1:] - 1.0, places)
    mean = places / event.source_dataset_size
    log_share = start * np.log(mean / start) + start - mean - math.log(drawn)
    log_q, moments = math.log(drawn), _log_moments_of_noise(event.event, alpha, 2.0 * end)
    both = np.logaddexp(0.0, alpha * log_q + moments) + (alpha - 1.0) * math.log(2.0)
    added = np.logaddexp(math.log(alpha + 1.0), np.minimum(log_q + moments, both))
    return float(np.logaddexp.reduce(log_share + added))


def _shift(event: DpEvent) -> float:
    """How far one order moves the loss of a release, in standard deviations of noise; 0 of those with bounded loss.

    Of any other, whose losses nobody has said how to follow, inf: it has no divergence, and none that is too small.
    """
    if isinstance(event, SampledWithReplacementDpEvent):
        return 2.0 * event.sample_size * _shift(event.event)
    inner = sampled_form(event)[2]
    if isinstance(inner, GaussianDpEvent):
        return 2.0 / inner.noise_multiplier
    if isinstance(inner, MixtureOfGaussiansDpEvent):
        return 2.0 * max(inner.sensitivities) / inner.standard_deviation
    if isinstance(inner, DiscreteGaussianDpEvent):
        return 2.0 * inner.sensitivity / inner.standard_deviation
    return 0.0 if isinstance(inner, _BOUNDED) else math.inf


@lru_cache(maxsize=1 << 13)
def _by_pair(event: DpEvent, alpha: float, replace_one: bool) -> float:
    shift, order, more = _shift(event), 1.0, -math.inf
    if shift > 0.0:
        if (alpha - 1.0) * shift > _FARTHEST:
            return math.inf
        order = max(2.0, 1.0 + 2.0 ** math.ceil(math.log2(alpha - 1.0)))  # so that few grids are laid
    if isinstance(event, SampledWithReplacementDpEvent):
        order, more = max(order, 2.0), _of_more_copies(event, alpha)
    pairs = dominating(event, replace_one, order)
    # infinite loss has no divergence, but for what is so far out of unbounded noise that it does not count
    if max(pair.infinite for pair in pairs) > (_OUTSIDE if shift > 0.0 else 0.0):
        return math.inf
    return max(_log_moment_of(pair, alpha, more) for pair in pairs) / (alpha - 1.0)


def _bounded_range(alpha: float, epsilon: float) -> float:
    """Of losses in a range of `epsilon`."""
    by_variance = 0.125 * alpha * epsilon * epsilon
    if epsilon < 1e-3 or epsilon > 600.0:  # the other bound is as large, and cancels, or overflows
        return min(by_variance, epsilon)
    # the best s is (alpha - 1) a / (alpha b), where a - b s is a / alpha
    a = -math.expm1(-alpha * epsilon) / -math.expm1(-epsilon)
    b = math.exp(-epsilon) * -math.expm1(-(alpha - 1.0) * epsilon) / -math.expm1(-epsilon)
    best, log_rest = math.log((alpha - 1.0) * a / (alpha * b)), math.log(a / alpha)
    value = best + log_rest / (alpha - 1.0)
    rounding = 2e-15 * (1.0 + abs(best) + (1.0 + abs(log_rest)) / (alpha - 1.0))
    return min(by_variance, value + rounding, epsilon)


def _truncated(event: TruncatedSubsampledGaussianDpEvent, alpha: float, replace_one: bool) -> float:
    share, noise = event.sampling_probability, event.noise_multiplier
    whole = log_moment(alpha, share, noise, replace_one=replace_one)
    cut, replaced = cut_share(event)
    if cut == 0.0:
        return whole / (alpha - 1.0)
    other = log_moment(alpha, replaced, noise / 2.0, replace_one=True) if replaced > 0.0 else 0.0
    if max(whole, other) < 600.0:
        return math.log1p((1.0 - cut) * math.expm1(whole) + cut * math.expm1(other)) / (alpha - 1.0)
    return max(whole, other) / (alpha - 1.0)


def other_rdp(event: DpEvent, alpha: float, replace_one: bool) -> float:
    """Rényi divergence of one release.

    Parameters
    ----------
    event : DpEvent
        In its simplest equal form, with a Rényi divergence.
    alpha : float
        Order, above 1.
    replace_one : bool
        Whether neighbours replace a record.

    Returns
    -------
    float
        In nats, rounded up; inf where the order is too large for it to be computed.
    """
    if isinstance(event, RandomAllocationDpEvent):
        return allocation_rdp(alpha, event.noise_multiplier, event.num_steps)
    if isinstance(event, DiscreteGaussianDpEvent):
        shift = (2.0 if replace_one else 1.0) * event.sensitivity / event.standard_deviation
        return 0.5 * alpha * shift * shift
    if isinstance(event, ExponentialMechanismDpEvent):
        return _bounded_range(alpha, event.epsilon)
    if isinstance(event, TruncatedSubsampledGaussianDpEvent):
        return _truncated(event, alpha, replace_one) * _UP
    return _by_pair(event, alpha, replace_one) * _UP
