"""What a release is for groups of several records, where that is an event again; `kinds` says which of these holds.

Neighbours of a group of k differ in k records. A sum moves by at most k C, so noise counts as divided by k (of the
Gaussian, the Laplace, both discrete ones and the nodes of a tree). On a Poisson sample each of the k is drawn on its
own: the shift is as long as the number of those that are, binomial, in norm, and by the proof in `dominating.noise`
the mixture over that number dominates, which is `MixtureOfGaussiansDpEvent`, but for numbers with a probability below
1e-300, which are left out. Ranges of losses add up along a chain of neighbours, and so do pure epsilons; of (epsilon,
delta) follows delta (1 + e^epsilon + .. + e^((k-1) epsilon)), of rho zero-concentrated k^2 rho. Each of k randomised
responses is its own. Compositions, selections and the worst of several hold for any relation between data sets, so they
are made of what their parts are.

*k^2 rho* is Bun & Steinke's (2016), restated and proved here. With a = (k alpha - 1) / (k - 1), p = a / alpha and 1 / p
+ 1 / p' = 1, P^alpha Q^(1-alpha) is the product of P^alpha R^((1-a)/p) and R^((a-1)/p) Q^(1-alpha). Hölder's inequality
with p and p' makes of it, after division by alpha - 1,

    D_alpha(P, Q) <= k alpha / (k alpha - 1) D_a(P, R) + D_(k alpha)(R, Q).

If R differs from P in k - 1 records and from Q in one, the first term is (k-1) k rho alpha at most, by induction, and
the second k rho alpha: in all k^2 rho alpha.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import gammaln

from .noise_events import MixtureOfGaussiansDpEvent
from .specifications import (
    DpEvent,
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    NonPrivateDpEvent,
    PoissonSampledDpEvent,
)

MOST_IN_GROUP = 1000
"""Most records of a group: beyond, a binomial mixture has too many parts."""

_MOST_SENSITIVE = 10**6
_MOST_PARTS = 1000
_FAINT = 1e-300
_LEAST_NOISE = 1e-100


def noise_of_group(event: Any, k: int) -> DpEvent:
    """A sum moves k times as far; without a guarantee where so little noise has no event."""
    noise = event.noise_multiplier / k
    if noise < _LEAST_NOISE:
        return NonPrivateDpEvent()
    return replace(event, noise_multiplier=noise)


def integers_of_group(event: Any, k: int) -> DpEvent | None:
    """The same of a sum of integers."""
    moved = event.sensitivity * k
    return replace(event, sensitivity=moved) if moved <= _MOST_SENSITIVE else None


def statement_of_group(event: EpsilonDeltaDpEvent, k: int) -> DpEvent:
    """What follows along a chain of k neighbours."""
    if event.delta == 0.0:
        return EpsilonDeltaDpEvent(k * event.epsilon, 0.0)
    if event.epsilon * k > 700.0:
        return NonPrivateDpEvent()
    delta = event.delta * math.fsum(math.exp(i * event.epsilon) for i in range(k)) * (1.0 + 1e-14)
    return EpsilonDeltaDpEvent(k * event.epsilon, delta) if delta < 1.0 else NonPrivateDpEvent()


def _mixture(noise: float, parts: dict[float, float]) -> DpEvent:
    kept = {shift: p for shift, p in sorted(parts.items()) if p > _FAINT}
    return MixtureOfGaussiansDpEvent(noise, tuple(kept), tuple(kept.values()))


def sample_of_group(event: PoissonSampledDpEvent, k: int) -> DpEvent | None:
    """The number of records of the group in the sample, of a share above 0 and below 1, is binomial."""
    q, inner = event.sampling_probability, event.event
    if not isinstance(inner, GaussianDpEvent):
        return None
    j = np.arange(k + 1.0)
    logs = gammaln(k + 1.0) - gammaln(j + 1.0) - gammaln(k - j + 1.0) + j * math.log(q) + (k - j) * math.log1p(-q)
    return _mixture(inner.noise_multiplier, dict(enumerate(np.exp(logs).tolist())))


def mixture_of_group(event: MixtureOfGaussiansDpEvent, k: int) -> DpEvent | None:
    """The sum of the sensitivities of k records, each drawn on its own."""
    total = {0.0: 1.0}
    for _ in range(k):
        grown: dict[float, float] = {}
        for shift, p in total.items():
            for more, q in zip(event.sensitivities, event.sampling_probs, strict=True):
                at = shift + more
                grown[at] = grown.get(at, 0.0) + p * q
        if len(grown) > _MOST_PARTS:
            return None
        total = grown
    return _mixture(event.standard_deviation, total)
