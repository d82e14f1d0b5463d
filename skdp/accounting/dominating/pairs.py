"""Dominating pairs of events, for each adjacency and both directions of neighbours.

Where records may be missing (`add_remove` and `zero_out`), the first pair is that of a record that is there, the second
that of one that is not, and there is one pair where both have the same H. Where records are replaced, neighbours may be
exchanged, so there is always one.

*Poisson samples, a record replaced.* Given the other records of the sample, outputs are (1-q) M(S) + q M(S + x) and
(1-q) M(S) + q M(S + y). For additive noise with a log-concave law that is (1-q) F + q F(. - a) against (1-q) F + q F(.
+ a) at worst (`noise`). Of a statement about replaced records alone nothing is known of M(S) beside M(S + x), which
may show whether the record was drawn: what is left is that it was not with probability 1 - q
(`LossAtoms.drawn_unseen`). A mechanism that does show it attains that.

*Samples with replacement.* The record takes K of the m places, binomial with 1/n. Given K = k, neighbours are k-fold
neighbours: a shift is k times as long. With K > 0 in place of "in the sample", the proof for samples of fixed size in
`atoms` holds word by word, as the sum over k of P(K = k | K > 0) H_k(tau) bounds both terms: a sample with k copies of
x becomes one without by putting uniformly drawn other records in their places (Balle, Barthe & Gaboardi 2018, Theorem
10).

*Truncated samples.* Let J be the number of the others that are drawn, of n - 1, B the largest number that takes part.
If J < B, nothing is cut, with x or without: a Poisson sample. If J >= B, a uniformly drawn set T of B others takes
part, except with probability r = q E[B / (J + 1) | J >= B] = (B / n) P(Bin(n, q) > B) / P(J >= B), when x has the place
of a random z of T. T is uniform whatever J is, so by joint convexity over T and z neighbours are (1-r) N(0) + r N(x -
z) against N(0), or against (1-r) N(0) + r N(y - z), where y is another record or one that adds nothing: shifts of up to
2 C, for which the pair of replaced records serves. Which of both happened is not shown, so H is at most the mean, as in
dp-accounting (Ganesh, McKenna, Steinke & Chua 2025).

*The noisy maximum.* Let a noisy score be s_i + Z_i with independent Z_i whose hazard, density over survival function,
is at most h: h itself for the exponential law, at most h for Laplace's and Gumbel's of scale 1 / h. For a set S of
candidates let A be the largest noisy score within S and B that of the others: S is released if D = A - B > 0. The
density of A at x is the sum over i of (hazard of i) P(Z_i above, all others below), at most h P(exactly one is above)
<= h P(A > x), so the hazard of A is at most h, and so is that of B. Given B, then, the density of D at t is at most h
P(D > t), and given A at most h P(D < t). So as t grows u = P(D > t) falls no faster than by h min(u, 1 - u), which is
how it falls for a Laplace law of scale 1 / h. Neighbours move each score by at most C, so A - B by at most 2 C, or by C
if all move to the same side: what S keeps of its probability is at least what a tail of that Laplace law keeps when the
law moves as far, and tails are the best tests between two such laws. With h = epsilon / (2 C), or epsilon / C, H is at
most that of Laplace noise of scale 1 / epsilon and a shift of 1. Two candidates with exponential noise attain it, D
being Laplace itself.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import betainc

from skdp._typing import Doubles

from ..events.kinds import kind_of, sampled_form
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
from ..events.specifications import (
    DpEvent,
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    PoissonSampledDpEvent,
)
from .atoms import REVEALED, LossAtoms, mix
from .noise import (
    MOST_SPREAD,
    Parts,
    bounded_range,
    discrete_gaussian,
    discrete_laplace,
    gaussian_mixture,
    laplace,
    randomised_response,
    sampled_discrete_gaussian,
    sampled_discrete_laplace,
    sampled_laplace,
    statement,
)

__all__ = [
    "COPIES_TAIL", "Directions", "copies", "cut_share", "dominating", "fixed_gaussian", "pair_refusal",
]  # fmt: skip

Directions = tuple[LossAtoms, ...]

COPIES_TAIL = 1e-24
"""Of the number of copies of a record in a sample: what is beyond counts as revealed."""

_MOST_COPIES = 200


def pair_refusal(event: DpEvent) -> str | None:
    """Why an event has no pair, whatever the adjacency; None if it has one."""
    if isinstance(event, RandomAllocationDpEvent):
        return ""
    inner = event.event if isinstance(event, SampledWithReplacementDpEvent) else sampled_form(event)[2]
    if isinstance(inner, DiscreteGaussianDpEvent) and inner.standard_deviation > MOST_SPREAD:
        return f" with standard_deviation above {MOST_SPREAD:g}"
    return None


def _shares(event: MixtureOfGaussiansDpEvent, share: float = 1.0) -> Parts:
    """Probabilities and shifts in standard deviations; a record that is not drawn has a shift of 0."""
    total = math.fsum(event.sampling_probs)
    found: dict[float, float] = {0.0: 1.0 - share} if share < 1.0 else {}
    for shift, p in zip(event.sensitivities, event.sampling_probs, strict=True):
        at = shift / event.standard_deviation
        found[at] = found.get(at, 0.0) + share * p / total
    return tuple(sorted((p, c) for c, p in found.items() if p > 0.0))


def _shifted(event: DpEvent, change: int, order: float) -> LossAtoms:
    """Additive noise, and a shift of `change` times the bound on a record; symmetric."""
    if isinstance(event, GaussianDpEvent):
        return gaussian_mixture(((1.0, change / event.noise_multiplier),), order=order)
    if isinstance(event, LaplaceDpEvent):
        return laplace(change / event.noise_multiplier)
    if isinstance(event, DiscreteLaplaceDpEvent):
        return discrete_laplace(event.noise_parameter, change * event.sensitivity)
    assert isinstance(event, DiscreteGaussianDpEvent)
    return discrete_gaussian(event.standard_deviation, change * event.sensitivity, order)


def _stated(event: DpEvent) -> LossAtoms:
    """What is known of neighbours without any noise; symmetric."""
    if isinstance(event, EpsilonDeltaDpEvent):
        return statement(event.epsilon, event.delta)
    if isinstance(event, ExponentialMechanismDpEvent):
        return bounded_range(event.epsilon)
    if isinstance(event, ReportNoisyMaxDpEvent):
        return laplace(event.epsilon)
    assert isinstance(event, RandomizedResponseDpEvent)
    return randomised_response(event.noise_parameter, event.num_buckets)


def _replaced_in_poisson(event: DpEvent, share: float, order: float) -> LossAtoms:
    """Additive noise on a Poisson sample, a record replaced by another."""
    if isinstance(event, GaussianDpEvent):
        parts = ((1.0 - share, 0.0), (share, 1.0 / event.noise_multiplier))
        return gaussian_mixture(parts, parts, order)
    if isinstance(event, LaplaceDpEvent):
        return sampled_laplace(share, 1.0 / event.noise_multiplier)
    if isinstance(event, DiscreteLaplaceDpEvent):
        return sampled_discrete_laplace(share, event.noise_parameter, event.sensitivity)
    assert isinstance(event, DiscreteGaussianDpEvent)
    return sampled_discrete_gaussian(share, event.standard_deviation, event.sensitivity, order)


def copies(event: SampledWithReplacementDpEvent) -> tuple[Doubles, float, float]:
    """How often a record is in a sample that was drawn with replacement.

    Parameters
    ----------
    event : SampledWithReplacementDpEvent

    Returns
    -------
    mass : array
        Probabilities of 1, 2, .. copies, given that there is one.
    beyond : float
        Probability of more.
    drawn : float
        Probability that there is one.
    """
    places, rate = event.sample_size, 1.0 / event.source_dataset_size
    number = np.arange(1.0, min(places, _MOST_COPIES) + 1.0)
    # the coefficient as a product: log factorials of large numbers would cancel
    logs = np.cumsum(np.log((places - number + 1.0) / number)) + number * math.log(rate)
    logs += (places - number) * math.log1p(-rate) if rate < 1.0 else np.where(number == places, 0.0, -math.inf)
    drawn = -math.expm1(places * math.log1p(-rate)) if rate < 1.0 else 1.0
    mass = np.exp(logs) / drawn
    more = _at_least(int(number[-1]) + 1, places, rate) / drawn
    beyond = np.append(np.cumsum(mass[::-1])[::-1][1:], 0.0) + more
    last = int(np.argmax(beyond < COPIES_TAIL)) if beyond.min() < COPIES_TAIL else mass.size - 1
    return mass[: last + 1], max(float(beyond[last]), 0.0), drawn


def _with_replacement(event: SampledWithReplacementDpEvent, order: float) -> LossAtoms:
    """Return the number of copies of a record in the sample, if there is one, and the shift of that number."""
    mass, lost, drawn = copies(event)
    if lost >= 1.0 - 1e-9:
        return REVEALED.fixed_sample(drawn)
    parts = [(float(p), _shifted(event.event, 2 * (k + 1), order).thinned(8000)) for k, p in enumerate(mass)]
    mixed = mix(parts)
    lost = lost if order == 1.0 else 0.0  # of a Rényi divergence they are added in `rdp.others`
    whole = LossAtoms(mixed.loss, mixed.log_weight, mixed.infinite + lost, mixed.missing + lost)
    return whole.thinned().fixed_sample(drawn)


def _truncated(event: TruncatedSubsampledGaussianDpEvent, replace_one: bool, order: float) -> Directions:
    share = event.sampling_probability
    whole = PoissonSampledDpEvent(share, GaussianDpEvent(event.noise_multiplier))
    pairs = dominating(whole, replace_one, order)
    cut, replaced = cut_share(event)
    if cut == 0.0:
        return pairs
    half = GaussianDpEvent(max(event.noise_multiplier / 2.0, 1e-100))
    other = _replaced_in_poisson(half, replaced, order) if replaced < 1.0 else _shifted(half, 2, order)
    return tuple(mix([(1.0 - cut, pair), (cut, other)]) for pair in pairs)


def cut_share(event: TruncatedSubsampledGaussianDpEvent) -> tuple[float, float]:
    """How probable it is that the others fill the sample, and that the record then has a place in it."""
    share, most, n = event.sampling_probability, event.truncated_batch_size, event.dataset_size
    cut = _at_least(most, n - 1, share)
    if cut == 0.0:
        return 0.0, 0.0
    return cut, min(1.0, share, _at_least(most + 1, n, share) * most / cut / n)


def _at_least(k: int, n: int, share: float) -> float:
    """Probability that a binomial number is at least k, which is 1 or more."""
    return float(betainc(k, n - k + 1.0, share)) if k <= n else 0.0


@lru_cache(maxsize=256)
def fixed_gaussian(share: float, noise_multiplier: float) -> Directions:
    """The pair of a Gaussian release from a sample of fixed size, a record replaced."""
    return (gaussian_mixture(((1.0, 2.0 / noise_multiplier),)).fixed_sample(share),)


@lru_cache(maxsize=512)
def dominating(event: DpEvent, replace_one: bool, order: float = 1.0) -> Directions:
    """Pairs that dominate one release.

    Parameters
    ----------
    event : DpEvent
        In its simplest equal form, with a price under the adjacency.
    replace_one : bool
        Whether neighbours replace a record.
    order : float
        Rényi order that is to be read off, for which unbounded losses are followed further; 1 for none.

    Returns
    -------
    tuple of LossAtoms
        One for each direction of neighbours; one if both are the same.
    """
    if isinstance(event, SampledWithReplacementDpEvent):
        return (_with_replacement(event, order),)
    if isinstance(event, TruncatedSubsampledGaussianDpEvent):
        return _truncated(event, replace_one, order)
    kind, share, inner = sampled_form(event)
    if isinstance(inner, MixtureOfGaussiansDpEvent):
        parts = _shares(inner, share if kind == "poisson" else 1.0)
        if replace_one:
            both = gaussian_mixture(parts, parts, order)
            return (both.fixed_sample(share) if kind == "fixed" else both,)
        removed = gaussian_mixture(parts, order=order)
        return removed, removed.reversed()
    base = _shifted(inner, 2 if replace_one else 1, order) if kind_of(inner).pair == "noise" else _stated(inner)
    if kind == "all":
        return (base,)
    if kind == "fixed":
        return (base.fixed_sample(share),)
    if not replace_one:
        return base.sampled_with(share), base.sampled_without(share)
    if kind_of(inner).pair == "noise":
        return (_replaced_in_poisson(inner, share, order),)
    return (base.drawn_unseen(share),)
