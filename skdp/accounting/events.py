"""Privacy events: what was done to the data, as frozen specifications without behaviour.

Names, fields and meaning are those of Google's dp-accounting, so whoever knows them is at home. In every
event `noise_multiplier` is the standard deviation of the noise divided by C, where C bounds the
contribution of ONE record, whatever the adjacency: `replace_one` moves a sum by 2 C and is priced so.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

__all__ = [
    "ComposedDpEvent",
    "DpEvent",
    "GaussianDpEvent",
    "NoOpDpEvent",
    "NonPrivateDpEvent",
    "PoissonSampledDpEvent",
    "SelfComposedDpEvent",
]


def _refuse(event: object, name: str, value: object, remedy: str) -> str:
    return f"{type(event).__name__}: {name}={value!r} is not valid; {remedy}."


def _real(event: object, name: str, value: Any, remedy: str) -> float:
    """`value` as a float; booleans, strings and NaN are refused."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or math.isnan(value):
        raise ValueError(_refuse(event, name, value, remedy))
    return float(value)


def _check_event(event: object, value: Any) -> None:
    if not isinstance(value, DpEvent):
        raise TypeError(_refuse(event, "event", value, "give a DpEvent such as GaussianDpEvent(1.0)"))


@dataclass(frozen=True)
class DpEvent:
    """Base of all events: one use of the private data."""


@dataclass(frozen=True)
class NoOpDpEvent(DpEvent):
    """Nothing was released."""


@dataclass(frozen=True)
class NonPrivateDpEvent(DpEvent):
    """Something was released without any guarantee: epsilon is infinite."""


@dataclass(frozen=True)
class GaussianDpEvent(DpEvent):
    """Gaussian noise was added to a sum over all records.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise divided by the bound C on one record's contribution; above 0.
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        remedy = "give a finite number above 0 (noise standard deviation / C)"
        value = _real(self, "noise_multiplier", self.noise_multiplier, remedy)
        if not 0.0 < value < math.inf:
            raise ValueError(_refuse(self, "noise_multiplier", self.noise_multiplier, remedy))
        object.__setattr__(self, "noise_multiplier", value)


@dataclass(frozen=True)
class PoissonSampledDpEvent(DpEvent):
    """An event applied to a random subset, each record being in it independently.

    Parameters
    ----------
    sampling_probability : float
        Probability in [0, 1] that a record takes part.
    event : DpEvent
        What was done to the subset.
    """

    sampling_probability: float
    event: DpEvent

    def __post_init__(self) -> None:
        remedy = "give a probability between 0 and 1"
        value = _real(self, "sampling_probability", self.sampling_probability, remedy)
        if not 0.0 <= value <= 1.0:
            raise ValueError(_refuse(self, "sampling_probability", self.sampling_probability, remedy))
        _check_event(self, self.event)
        object.__setattr__(self, "sampling_probability", value)


@dataclass(frozen=True)
class SelfComposedDpEvent(DpEvent):
    """The same event, `count` times, each with fresh randomness.

    Parameters
    ----------
    event : DpEvent
    count : int
        Number of repetitions, 0 or more.
    """

    event: DpEvent
    count: int

    def __post_init__(self) -> None:
        _check_event(self, self.event)
        count: Any = self.count
        if isinstance(count, bool) or not isinstance(count, numbers.Integral) or count < 0:
            raise ValueError(_refuse(self, "count", count, "give a whole number of 0 or more"))
        object.__setattr__(self, "count", int(count))


@dataclass(frozen=True)
class ComposedDpEvent(DpEvent):
    """Several events, one after the other, each with fresh randomness.

    Parameters
    ----------
    events : tuple of DpEvent
        Any iterable of events; kept as a tuple so that the event can be hashed.
    """

    events: tuple[DpEvent, ...]

    def __post_init__(self) -> None:
        events: Any = self.events
        if isinstance(events, DpEvent) or not isinstance(events, Iterable):
            raise TypeError(_refuse(self, "events", events, "give a tuple of DpEvents"))
        events = tuple(events)
        for event in events:
            _check_event(self, event)
        object.__setattr__(self, "events", events)
