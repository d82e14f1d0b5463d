"""Dominating pairs of events, for each adjacency and both directions of neighbours.

Where records may be missing (`add_remove` and `zero_out`), the first pair is that of a record that is there, the second
that of one that is not, and there is one pair where both have the same H. Where records are replaced, neighbours may be
exchanged, so there is always one.

*Poisson samples, a record replaced.* Given the other records of the sample, outputs are (1-q) M(S) + q M(S + x) and
(1-q) M(S) + q M(S + y). For additive noise with a log-concave law that is (1-q) F + q F(. - a) against (1-q) F + q F(.
+ a) at worst (`noise`). Of a statement about replaced records alone nothing is known of M(S) beside M(S + x), which
may show whether the record was drawn: what is left is that it was not with probability 1 - q
(`LossAtoms.drawn_unseen`). A mechanism that does show it attains that.
"""

from __future__ import annotations

import math
from functools import lru_cache

from ..events.kinds import sampled_form
from ..events.noise_events import DiscreteGaussianDpEvent, DiscreteLaplaceDpEvent, MixtureOfGaussiansDpEvent
from ..events.specifications import DpEvent, EpsilonDeltaDpEvent, GaussianDpEvent, LaplaceDpEvent
from . import noise
from .atoms import LossAtoms

Directions = tuple[LossAtoms, ...]


def pair_refusal(event: DpEvent) -> str | None:
    """Why an event has no pair, whatever the adjacency; None if it has one."""
    inner = sampled_form(event)[2]
    if isinstance(inner, DiscreteGaussianDpEvent) and inner.standard_deviation > noise.MOST_SPREAD:
        return f" with standard_deviation above {noise.MOST_SPREAD:g}"
    return None


def _shares(event: MixtureOfGaussiansDpEvent, share: float = 1.0) -> noise.Parts:
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
        return noise.gaussian_mixture(((1.0, change / event.noise_multiplier),), order=order)
    if isinstance(event, LaplaceDpEvent):
        return noise.laplace(change / event.noise_multiplier)
    if isinstance(event, DiscreteLaplaceDpEvent):
        return noise.discrete_laplace(event.noise_parameter, change * event.sensitivity)
    assert isinstance(event, DiscreteGaussianDpEvent)
    return noise.discrete_gaussian(event.standard_deviation, change * event.sensitivity, order)


def _replaced_in_poisson(event: DpEvent, share: float, order: float) -> LossAtoms:
    """Additive noise on a Poisson sample, a record replaced by another."""
    if isinstance(event, GaussianDpEvent):
        parts = ((1.0 - share, 0.0), (share, 1.0 / event.noise_multiplier))
        return noise.gaussian_mixture(parts, parts, order)
    if isinstance(event, LaplaceDpEvent):
        return noise.sampled_laplace(share, 1.0 / event.noise_multiplier)
    if isinstance(event, DiscreteLaplaceDpEvent):
        return noise.sampled_discrete_laplace(share, event.noise_parameter, event.sensitivity)
    assert isinstance(event, DiscreteGaussianDpEvent)
    return noise.sampled_discrete_gaussian(share, event.standard_deviation, event.sensitivity, order)


@lru_cache(maxsize=256)
def fixed_gaussian(share: float, noise_multiplier: float) -> Directions:
    """The pair of a Gaussian release from a sample of fixed size, a record replaced."""
    return (noise.gaussian_mixture(((1.0, 2.0 / noise_multiplier),)).fixed_sample(share),)


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
    kind, share, inner = sampled_form(event)
    if isinstance(inner, MixtureOfGaussiansDpEvent):
        parts = _shares(inner, share if kind == "poisson" else 1.0)
        if replace_one:
            both = noise.gaussian_mixture(parts, parts, order)
            return (both.fixed_sample(share) if kind == "fixed" else both,)
        removed = noise.gaussian_mixture(parts, order=order)
        return removed, removed.reversed()
    if isinstance(inner, EpsilonDeltaDpEvent):
        base = noise.statement(inner.epsilon, inner.delta)
    else:
        base = _shifted(inner, 2 if replace_one else 1, order)
    if kind == "all":
        return (base,)
    if kind == "fixed":
        return (base.fixed_sample(share),)
    if not replace_one:
        return base.sampled_with(share), base.sampled_without(share)
    if isinstance(inner, EpsilonDeltaDpEvent):
        return (base.drawn_unseen(share),)
    return (_replaced_in_poisson(inner, share, order),)
