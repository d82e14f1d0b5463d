"""What the next charge may cost: the price of the largest event of a shape that a ceiling admits."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from ..events.noise_events import (
    DiscreteGaussianDpEvent,
    DiscreteLaplaceDpEvent,
    ExponentialMechanismDpEvent,
    MixtureOfGaussiansDpEvent,
    RandomizedResponseDpEvent,
    SingleEpochTreeAggregationDpEvent,
)
from ..events.sampling_events import (
    RandomAllocationDpEvent,
    SampledWithReplacementDpEvent,
    TruncatedSubsampledGaussianDpEvent,
)
from ..events.specifications import (
    ComposedDpEvent,
    DpEvent,
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    PoissonSampledDpEvent,
    RepeatAndSelectDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
    WorstOfDpEvent,
    ZCDpEvent,
)
from .charges import joint_price
from .ledger import Ledger

__all__ = ["Affordable", "affordable", "largest_event", "scale_noise"]

_FURTHEST = 1e9  # factor on the noise that is tried
_NEAR = 1.001  # ratio at which the search stops
_AIM = 1.0004  # how far beyond a guess it looks, so that the bracket closes from both sides
_QUICK = 8  # steps


# The field that holds the noise, the power of it by which it grows, and its range.
_SCALED: dict[type[DpEvent], tuple[str, float, float, float]] = {
    GaussianDpEvent: ("noise_multiplier", 1.0, 1e-100, 1e100),
    LaplaceDpEvent: ("noise_multiplier", 1.0, 1e-100, 1e100),
    SingleEpochTreeAggregationDpEvent: ("noise_multiplier", 1.0, 1e-100, 1e100),
    TruncatedSubsampledGaussianDpEvent: ("noise_multiplier", 1.0, 1e-100, 1e100),
    RandomAllocationDpEvent: ("noise_multiplier", 1.0, 1e-100, 1e100),
    MixtureOfGaussiansDpEvent: ("standard_deviation", 1.0, 1e-100, 1e100),
    DiscreteGaussianDpEvent: ("standard_deviation", 1.0, 0.01, 1e9),
    DiscreteLaplaceDpEvent: ("noise_parameter", -1.0, 1e-9, 1e9),
    EpsilonDeltaDpEvent: ("epsilon", -1.0, 0.0, 1e300),
    ExponentialMechanismDpEvent: ("epsilon", -1.0, 0.0, 1e300),
}
_WRAPPING = (
    PoissonSampledDpEvent,
    SampledWithoutReplacementDpEvent,
    SampledWithReplacementDpEvent,
    RepeatAndSelectDpEvent,
    SelfComposedDpEvent,
)


class Affordable(NamedTuple):
    """What the next charge may cost.

    Attributes
    ----------
    epsilon : float
        In nats; 0.0 if nothing is left, inf without a ceiling.
    delta : float
        Failure probability that it may have, if it is one of known epsilon and delta.
    """

    epsilon: float
    delta: float


def scale_noise(event: DpEvent, factor: float) -> DpEvent:
    """The same event with `factor` times the noise, its sampling, counts and failure probabilities as they are.

    Parameters
    ----------
    event : DpEvent
    factor : float
        Above 0.

    Returns
    -------
    DpEvent
    """
    scaled = _SCALED.get(type(event))
    if scaled is not None:
        name, power, low, high = scaled
        value: float = getattr(event, name) * factor**power
        return replace(event, **{name: min(max(value, low), high)})
    if isinstance(event, RandomizedResponseDpEvent):
        # a lie is factor times as probable, as against the truth
        lie = event.noise_parameter * factor
        return replace(event, noise_parameter=lie / (1.0 - event.noise_parameter + lie))
    if isinstance(event, ZCDpEvent):
        return replace(event, rho=event.rho / factor**2, xi=event.xi / factor**2)
    if isinstance(event, ComposedDpEvent | WorstOfDpEvent):
        return replace(event, events=tuple(scale_noise(part, factor) for part in event.events))
    if isinstance(event, _WRAPPING):
        return replace(event, event=scale_noise(event.event, factor))
    return event


def _least_factor(load: Callable[[float], float], already: float) -> float | None:
    """The least factor whose load is at most 1, to `_NEAR` above; None if there is none.

    What is added to the load that is there `already` falls about as the square of the noise, which tells where to look
    next; after some steps the bracket is halved. (No `Secant`: a load is inf where no filter holds, and 0 has no log.)
    """
    if already > 1.0:
        return None
    low, high, at = 0.0, math.inf, 1.0
    for step in itertools.count():
        found = load(at)
        low, high = (low, at) if found <= 1.0 else (at, high)
        if high <= low * _NEAR or high < 1.0 / _FURTHEST:
            return high
        if low > _FURTHEST:
            return None
        ratio = max(found - already, 0.0) / max(1.0 - already, 1e-12)
        at *= min(max(math.sqrt(ratio), 0.25), 4.0) * (_AIM if found > 1.0 else 1.0 / _AIM)
        if not low < at < high or (step > _QUICK and 0.0 < low < high < math.inf):
            at = math.sqrt(low * high)
    raise AssertionError("unreachable")


def affordable(ledger: Ledger, event: DpEvent | None, delta: float | None, adjacency: str | None) -> Affordable:
    """What the next charge may cost under the ceiling.

    Parameters
    ----------
    ledger : Ledger
    event : DpEvent or None
        Its shape: how it samples and composes. None: that of the last charge that was no selection, or one Gaussian
        release.
    delta : float or None
        Delta of the epsilon that is returned; the ceiling's if None.
    adjacency : str or None

    Returns
    -------
    Affordable

    Raises
    ------
    ValueError
        If the ledger holds another adjacency, as for a charge.
    """
    if adjacency is not None:
        ledger.refuse_mixed(adjacency)
    if ledger.epsilon is None:
        return Affordable(math.inf, 1.0)
    delta, adjacency = delta or ledger.delta, adjacency or ledger.adjacency or "zero_out"
    if not ledger.counts and delta == ledger.delta and ledger.has_room(event or GaussianDpEvent(1.0)):
        return Affordable(ledger.epsilon, ledger.failures_left())
    largest = largest_event(ledger, event, adjacency)
    left = 0.0 if largest is None else joint_price(largest, delta, adjacency) * (1.0 - 1e-6)
    return Affordable(left if left > 1e-12 else 0.0, ledger.failures_left())


def largest_event(ledger: Ledger, shape: DpEvent | None, adjacency: str) -> DpEvent | None:
    """The event of this shape with the least noise that the ceiling admits next, or None; see `affordable`."""
    shape = shape or ledger.shape or GaussianDpEvent(1.0)
    if not ledger.has_room(shape):
        return None
    factor = _least_factor(lambda each: ledger.load(scale_noise(shape, each), adjacency), ledger.load_now(adjacency))
    return None if factor is None else scale_noise(shape, factor)
