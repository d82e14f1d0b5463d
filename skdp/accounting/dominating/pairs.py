"""Dominating pairs of events, for each adjacency and both directions of neighbours.

Where records may be missing (`add_remove` and `zero_out`), the first pair is that of a record that is there, the second
that of one that is not, and there is one pair where both have the same H. Where records are replaced, neighbours may be
exchanged, so there is always one.

*Poisson samples, a record replaced.* Given the other records of the sample, outputs are (1-q) M(S) + q M(S + x) and
(1-q) M(S) + q M(S + y). For additive noise with a log-concave law that is (1-q) F + q F(. - a) against (1-q) F + q F(.
+ a) at worst (`noise`). Of any other, such as a statement about replaced records alone, nothing is known of M(S) beside
M(S + x), which may show whether the record was drawn: what is left is that it was not with probability 1 - q
(`LossAtoms.drawn_unseen`). A mechanism that does show it attains that.
"""

from __future__ import annotations

from functools import lru_cache

from ..events.kinds import sampled_form
from ..events.noise_events import DiscreteGaussianDpEvent, MixtureOfGaussiansDpEvent
from ..events.specifications import DpEvent
from . import noise
from .noise import Directions


def pair_refusal(event: DpEvent) -> str | None:
    """Why an event has no pair, whatever the adjacency; None if it has one."""
    inner = sampled_form(event)[2]
    if isinstance(inner, DiscreteGaussianDpEvent) and inner.standard_deviation > noise.MOST_SPREAD:
        return f" with standard_deviation above {noise.MOST_SPREAD:g}"
    return None


def has_pair(event: DpEvent) -> bool:
    """Whether a pair of an event, or of what is done to its sample, is known under one adjacency or another."""
    return type(sampled_form(event)[2]) in noise.LAWS


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
    law, change = noise.LAWS[type(inner)], 2 if replace_one else 1
    if kind == "poisson" and isinstance(inner, MixtureOfGaussiansDpEvent):
        return noise.mixture(inner, change, order, share)
    if kind == "poisson" and replace_one and law.replaced is not None:
        return (law.replaced(inner, share, order),)
    base = law.pairs(inner, change, order)
    if kind == "all":
        return base
    if kind == "fixed":
        return (base[0].fixed_sample(share),)
    if replace_one:
        return (base[0].drawn_unseen(share),)
    return base[0].sampled_with(share), base[-1].sampled_without(share)
