"""Privacy events: frozen specifications of the uses of private data.

Names, fields and meaning are those of Google's dp-accounting, except for `DiscreteGaussianDpEvent` and
`WorstOfDpEvent`, which it does not have. In every event, `noise_multiplier` is the standard deviation of the noise (the
scale of Laplace noise) divided by C, where C bounds the contribution of ONE record for every adjacency. Replacing a
record (``replace_one``) changes a sum by up to 2 C, and the privacy cost accounts for this.

`EpsilonDeltaDpEvent` and `ZCDpEvent` state a guarantee for pairs of neighbors instead of the noise. The guarantee is
assumed to hold for the adjacency of the computation. `SampledWithoutReplacementDpEvent` requires ``replace_one``, under
which neighbors have the same number of records.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

import numpy as np

__all__ = [
    "ComposedDpEvent", "DiscreteGaussianDpEvent", "DiscreteLaplaceDpEvent", "DpEvent", "EpsilonDeltaDpEvent",
    "GaussianDpEvent", "LaplaceDpEvent", "MixtureOfGaussiansDpEvent", "NoOpDpEvent", "NonPrivateDpEvent",
    "PoissonSampledDpEvent", "RepeatAndSelectDpEvent", "SampledWithoutReplacementDpEvent", "SelfComposedDpEvent",
    "WorstOfDpEvent", "ZCDpEvent",
]  # fmt: skip

LEAST_NOISE, _MOST_NOISE = 1e-100, 1e100
MOST_SENSITIVE = 10**6
MOST_PARTS = 1000  # of a mixture
_MOST_COUNTED = 10**18
_OWN: set[type] = set()  # exact types of the supported events

# --- conversion and display of public values, also for other modules ---


def read_real(value: Any) -> float | None:
    """Return `value` as a float, inf if it overflows; None for booleans, strings and other non-real values."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    try:
        return float(value)
    except OverflowError:
        return -math.inf if value < 0 else math.inf


def read_whole(value: Any) -> int | None:
    """Return `value` as an int; None for booleans, floats and other non-integer types."""
    return None if isinstance(value, bool) or not isinstance(value, numbers.Integral) else int(value)


def show(value: Any) -> str:
    """Format a scalar in one line; show only the type of other values, which may be private rows."""
    if value is None or isinstance(value, str | numbers.Number | Decimal | np.generic):
        return " ".join(repr(value).split())
    return f"<{type(value).__name__}>"


# --- checks of fields ---


def _reject(event: object, name: str, value: object, constraint: str, error: type[Exception] = ValueError) -> Exception:
    return error(f"{type(event).__name__}: `{name}` must be {constraint}, got {show(value)}.")


def _set_real(event: object, name: str, fits: Callable[[float], bool], constraint: str) -> None:
    """Store a field as a float that satisfies `fits`; booleans, strings and NaN are rejected."""
    number = read_real(getattr(event, name))
    if number is None or not fits(number):
        raise _reject(event, name, getattr(event, name), constraint)
    object.__setattr__(event, name, number)


def _set_whole(event: object, name: str, least: int, most: int, constraint: str) -> None:
    """Store a field as an int within a range; booleans and floats are rejected."""
    number = read_whole(getattr(event, name))
    if number is None or not least <= number <= most:
        raise _reject(event, name, getattr(event, name), constraint)
    object.__setattr__(event, name, number)


def _inner_event(event: object, value: Any) -> DpEvent:
    """Return an event of the types in this module."""
    if not isinstance(value, DpEvent):
        raise _reject(event, "event", value, "a DpEvent such as GaussianDpEvent(1.0)", TypeError)
    return resolve(value)


def _read_events(event: object, value: Any) -> tuple[DpEvent, ...]:
    """Return an iterable of events as a tuple."""
    if isinstance(value, DpEvent) or not isinstance(value, Iterable):
        raise _reject(event, "events", value, "a tuple of DpEvents", TypeError)
    return tuple([each if type(each) in _OWN else _inner_event(event, each) for each in value])


def resolve(event: Any) -> DpEvent:
    """Return an event of the types in this module: the event itself, or the dominating event of a third-party event.

    The method ``__dominating_event__`` of a third-party class is called once (``docs/extending.md``). Afterwards the
    third-party event is not used, so its equality and hash have no effect. Events of this module resolve their parts
    when they are created. A subclass of an event of this module is a third-party event, too.

    Parameters
    ----------
    event : DpEvent
        Any event.

    Returns
    -------
    DpEvent
        Event whose exact type, and that of all its parts, is defined in this module.

    Raises
    ------
    TypeError
        If `event` is not an event, or is a third-party event without a dominating event.
    """
    if type(event) in _OWN:
        return cast(DpEvent, event)
    if not isinstance(event, DpEvent):
        raise TypeError(f"`event` must be a DpEvent such as GaussianDpEvent(1.0), got {show(event)}.")
    asked: Any = event
    try:
        for _ in range(50):  # events that refer to each other would loop forever
            answer = getattr(type(asked), "__dominating_event__", None)
            if answer is None:
                break
            asked = answer(asked)
            if type(asked) in _OWN:
                return cast(DpEvent, asked)
    except RecursionError:
        asked = event
    if asked is event and not hasattr(type(event), "__dominating_event__"):
        raise TypeError(
            f"event={type(event).__name__} is not supported by any accounting method. Use the events of "
            "skdp.accounting, or define `__dominating_event__` in its class."
        )
    raise TypeError(
        f"event={type(event).__name__}: `__dominating_event__` must return a composition of events of skdp.accounting, "
        f"got {type(asked).__name__}."
    )


def _set_noise(event: object, meaning: str) -> None:
    """Store a noise multiplier: a positive number whose square is a finite, non-zero double."""
    constraint = f"a number from 1e-100 to 1e100 ({meaning})"
    _set_real(event, "noise_multiplier", lambda number: LEAST_NOISE <= number <= _MOST_NOISE, constraint)


def _set_finite(event: object, name: str) -> None:
    _set_real(event, name, lambda number: 0.0 <= number < math.inf, "a finite number of at least 0")


def _set_between(event: object, name: str, low: float, high: float) -> None:
    _set_real(event, name, lambda number: low <= number <= high, f"a number from {low:g} to {high:g}")


def _numbers(event: object, name: str, value: Any) -> tuple[float, ...]:
    constraint = f"a tuple of 1 to {MOST_PARTS} finite numbers of at least 0"
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise _reject(event, name, value, constraint, TypeError)
    found: list[float] = []
    for each in value:
        number = read_real(each)
        if number is None or not 0.0 <= number < math.inf:
            raise _reject(event, name, each, constraint)
        found.append(number)
    if not 1 <= len(found) <= MOST_PARTS:
        raise _reject(event, name, value, constraint)
    return tuple(found)


@dataclass(frozen=True)
class DpEvent:
    """Base class of all privacy events."""


@dataclass(frozen=True)
class NoOpDpEvent(DpEvent):
    """Event without any release."""


@dataclass(frozen=True)
class NonPrivateDpEvent(DpEvent):
    """Release without any privacy guarantee: epsilon is infinite."""


@dataclass(frozen=True)
class GaussianDpEvent(DpEvent):
    """Gaussian mechanism: a sum over all records plus Gaussian noise.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise divided by C, the bound of one record's L2 norm; above 0.
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        if type(self.noise_multiplier) is not float or not LEAST_NOISE <= self.noise_multiplier <= _MOST_NOISE:
            _set_noise(self, "noise standard deviation / C")


@dataclass(frozen=True)
class LaplaceDpEvent(DpEvent):
    """Laplace mechanism: a sum over all records plus Laplace noise in every coordinate.

    Parameters
    ----------
    noise_multiplier : float
        Scale b of the noise (density ``exp(-|x| / b) / 2b``) divided by C, the bound of one record's L1 norm; above 0.
        Epsilon is 1 / noise_multiplier, and twice this value under "replace_one".
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        _set_noise(self, "noise scale b / C")


@dataclass(frozen=True)
class DiscreteLaplaceDpEvent(DpEvent):
    """Discrete Laplace mechanism: an integer-valued sum over all records plus noise in every coordinate.

    Parameters
    ----------
    noise_parameter : float
        Parameter a of the probabilities ``tanh(a / 2) exp(-a |x|)`` of the integers x; from 1e-9 to 1e9.
    sensitivity : int
        Bound of one record's L1 norm, at most 10^6. Under "replace_one" the sensitivity is twice this value.
    """

    noise_parameter: float
    sensitivity: int

    def __post_init__(self) -> None:
        _set_between(self, "noise_parameter", 1e-9, 1e9)
        _set_whole(self, "sensitivity", 0, MOST_SENSITIVE, f"an integer from 0 to {MOST_SENSITIVE}")


@dataclass(frozen=True)
class DiscreteGaussianDpEvent(DpEvent):
    """Discrete Gaussian mechanism for one integer-valued sum (Canonne, Kamath & Steinke 2020).

    For a vector with noise in each coordinate, use ``ZCDpEvent(norm**2 / (2 * standard_deviation**2))``.

    Parameters
    ----------
    standard_deviation : float
        Parameter s of the probabilities of the integers x, proportional to ``exp(-x**2 / (2 s**2))``; from 0.01 to 1e9.
    sensitivity : int
        Bound of one record's absolute value, at most 10^6. Under "replace_one" the sensitivity is twice this value.
    """

    standard_deviation: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        _set_between(self, "standard_deviation", 0.01, 1e9)
        _set_whole(self, "sensitivity", 0, MOST_SENSITIVE, f"an integer from 0 to {MOST_SENSITIVE}")


@dataclass(frozen=True)
class MixtureOfGaussiansDpEvent(DpEvent):
    """Gaussian mechanism with a random sensitivity of each record.

    Parameters
    ----------
    standard_deviation : float
        Standard deviation of the noise; above 0.
    sensitivities : tuple of float
        Possible bounds of one record's L2 norm; finite, at least 0. Any iterable, stored as a tuple.
    sampling_probs : tuple of float
        Probabilities of the sensitivities, which sum to 1.
    """

    standard_deviation: float
    sensitivities: tuple[float, ...]
    sampling_probs: tuple[float, ...]

    def __post_init__(self) -> None:
        _set_between(self, "standard_deviation", 1e-100, 1e100)
        shifts = _numbers(self, "sensitivities", self.sensitivities)
        shares = _numbers(self, "sampling_probs", self.sampling_probs)
        if len(shifts) != len(shares):
            raise _reject(self, "sampling_probs", len(shares), f"a tuple of {len(shifts)} probabilities")
        if abs(math.fsum(shares) - 1.0) > 1e-9:
            raise _reject(self, "sampling_probs", math.fsum(shares), "a tuple of probabilities that sum to 1")
        object.__setattr__(self, "sensitivities", shifts)
        object.__setattr__(self, "sampling_probs", shares)


@dataclass(frozen=True)
class EpsilonDeltaDpEvent(DpEvent):
    """Release with a known (epsilon, delta) guarantee.

    Parameters
    ----------
    epsilon : float
        Finite epsilon in nats, at least 0.
    delta : float
        Delta in [0, 1); 0 for pure differential privacy.
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        _set_finite(self, "epsilon")
        _set_real(self, "delta", lambda delta: 0.0 <= delta < 1.0, "a number of at least 0 and below 1")


@dataclass(frozen=True)
class ZCDpEvent(DpEvent):
    """Release with a known guarantee of zero-concentrated differential privacy (Bun & Steinke 2016).

    Parameters
    ----------
    rho, xi : float
        The Rényi divergence of each order alpha above 1 is at most xi + rho * alpha. Both are finite and at least 0.
    """

    rho: float
    xi: float = 0.0

    def __post_init__(self) -> None:
        _set_finite(self, "rho")
        _set_finite(self, "xi")


@dataclass(frozen=True)
class PoissonSampledDpEvent(DpEvent):
    """Event on a Poisson sample, which contains each record independently.

    Parameters
    ----------
    sampling_probability : float
        Probability in [0, 1] that the sample contains a record.
    event : DpEvent
        Event applied to the sample.
    """

    sampling_probability: float
    event: DpEvent

    def __post_init__(self) -> None:
        _set_real(self, "sampling_probability", lambda share: 0.0 <= share <= 1.0, "a probability between 0 and 1")
        object.__setattr__(self, "event", _inner_event(self, self.event))


@dataclass(frozen=True)
class SampledWithoutReplacementDpEvent(DpEvent):
    """Event on a uniformly random sample of fixed size.

    It requires the adjacency "replace_one".

    Parameters
    ----------
    source_dataset_size : int
        Public number of records; at least 1.
    sample_size : int
        Number of records in the sample, at most `source_dataset_size`.
    event : DpEvent
        Event applied to the sample.
    """

    source_dataset_size: int
    sample_size: int
    event: DpEvent

    def __post_init__(self) -> None:
        _set_whole(self, "source_dataset_size", 1, _MOST_COUNTED, "an integer of at least 1")
        size = self.source_dataset_size
        _set_whole(self, "sample_size", 0, size, f"an integer from 0 to source_dataset_size={size}")
        object.__setattr__(self, "event", _inner_event(self, self.event))


@dataclass(frozen=True)
class RepeatAndSelectDpEvent(DpEvent):
    """Best output of a random number of repetitions of an event.

    The number of repetitions is drawn independently of the data and kept secret (Papernot & Steinke 2022).

    Parameters
    ----------
    event : DpEvent
        Event of one run, including its score.
    mean : float
        Expected number of runs; from 1 to 1e12.
    shape : float
        Distribution of the number of runs: 0 for logarithmic, 1 for geometric, infinity for Poisson. Any other positive
        value is the shape of a truncated negative binomial distribution.
    """

    event: DpEvent
    mean: float
    shape: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "event", _inner_event(self, self.event))
        constraint = "a number from 1 to 1e12 (expected number of runs)"
        _set_real(self, "mean", lambda mean: 1.0 <= mean <= 1e12, constraint)
        constraint = "a number of at least 0 (0 logarithmic, 1 geometric, inf Poisson)"
        _set_real(self, "shape", lambda shape: shape >= 0.0, constraint)


@dataclass(frozen=True)
class SelfComposedDpEvent(DpEvent):
    """Repetition of one event with independent randomness.

    Parameters
    ----------
    event : DpEvent
        Event of one repetition.
    count : int
        Number of repetitions, at least 0. Accounting methods support up to 10^12 repetitions of a release in total.
    """

    event: DpEvent
    count: int

    def __post_init__(self) -> None:
        if type(self.event) not in _OWN:
            object.__setattr__(self, "event", _inner_event(self, self.event))
        if type(self.count) is not int or not 0 <= self.count <= _MOST_COUNTED:  # runs make many of these
            _set_whole(self, "count", 0, _MOST_COUNTED, "an integer from 0 to 10^18 (10^12 for accounting)")


@dataclass(frozen=True)
class ComposedDpEvent(DpEvent):
    """Composition of several events with independent randomness.

    Parameters
    ----------
    events : tuple of DpEvent
        Any iterable of events; it is stored as a tuple, so that the event can be hashed.
    """

    events: tuple[DpEvent, ...]

    def __post_init__(self) -> None:
        if type(self.events) is not tuple or not _OWN.issuperset(map(type, self.events)):
            object.__setattr__(self, "events", _read_events(self, self.events))


@dataclass(frozen=True)
class WorstOfDpEvent(DpEvent):
    """One of several events, drawn at random or fixed in advance, independently of the data.

    It describes a trial of a search over candidates with different events. The privacy cost is that of the pointwise
    largest Rényi curve or privacy profile. dp-accounting does not have this event.

    Parameters
    ----------
    events : tuple of DpEvent
        At least one event. Any iterable, stored as a tuple.
    """

    events: tuple[DpEvent, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", _read_events(self, self.events))
        if not self.events:
            raise _reject(self, "events", self.events, "a tuple of at least one event")


_OWN.update(each for each in list(vars().values()) if isinstance(each, type) and issubclass(each, DpEvent))
