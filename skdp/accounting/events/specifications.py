"""Privacy events: what was done to the data, as frozen specifications without behavior.

Names, fields and meaning are those of Google's dp-accounting, except for `DiscreteGaussianDpEvent` and
`WorstOfDpEvent`, which it does not have. In every event `noise_multiplier` is the standard deviation of the noise
divided by C, where C bounds the contribution of ONE record, whatever the adjacency: `replace_one` changes a sum by 2 C,
and the privacy cost accounts for it.

`EpsilonDeltaDpEvent` and `ZCDpEvent` are statements about pairs of neighbours instead of about noise. They are
taken to hold for the adjacency under which they are priced, and are priced as they stand.
`SampledWithoutReplacementDpEvent` has a price under `replace_one` alone, the relation under which the number of
records is the same on both sides.
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
_OWN: set[type] = set()  # the types that are priced, by exact type

# --- how public values are read and shown, here and wherever else parameters are checked ---


def read_real(value: Any) -> float | None:
    """`value` as a float, inf beyond all doubles; None if it is no real number, as a boolean or a string is not."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    try:
        return float(value)
    except OverflowError:
        return -math.inf if value < 0 else math.inf


def read_whole(value: Any) -> int | None:
    """`value` as an int; None if it is no whole number by type, as a boolean or a float is not."""
    return None if isinstance(value, bool) or not isinstance(value, numbers.Integral) else int(value)


def show(value: Any) -> str:
    """Format `value` in one line; only its type if it is not a scalar, as it may be private rows passed by mistake."""
    if value is None or isinstance(value, str | numbers.Number | Decimal | np.generic):
        return " ".join(repr(value).split())
    return f"<{type(value).__name__}>"


# --- checks of fields ---


def _refuse(event: object, name: str, value: object, remedy: str, error: type[Exception] = ValueError) -> Exception:
    return error(f"{type(event).__name__}: {name}={show(value)} is not valid; {remedy}.")


def _set_real(event: object, name: str, fits: Callable[[float], bool], remedy: str) -> None:
    """Keep a field as a float that fits; booleans and strings are refused, as is NaN, which passes no comparison."""
    number = read_real(getattr(event, name))
    if number is None or not fits(number):
        raise _refuse(event, name, getattr(event, name), remedy)
    object.__setattr__(event, name, number)


def _set_whole(event: object, name: str, least: int, most: int, remedy: str) -> None:
    """Keep a field as an int within a range; booleans and floats are refused."""
    number = read_whole(getattr(event, name))
    if number is None or not least <= number <= most:
        raise _refuse(event, name, getattr(event, name), remedy)
    object.__setattr__(event, name, number)


def _inner_event(event: object, value: Any) -> DpEvent:
    """An event, of this module's own types."""
    if not isinstance(value, DpEvent):
        raise _refuse(event, "event", value, "give a DpEvent such as GaussianDpEvent(1.0)", TypeError)
    return resolve(value)


def _read_events(event: object, value: Any) -> tuple[DpEvent, ...]:
    """An iterable of events as a tuple."""
    if isinstance(value, DpEvent) or not isinstance(value, Iterable):
        raise _refuse(event, "events", value, "give a tuple of DpEvents", TypeError)
    return tuple([each if type(each) in _OWN else _inner_event(event, each) for each in value])


def resolve(event: Any) -> DpEvent:
    """An event of this package's own types: itself, or what a third party's event says dominates it.

    A third party's event is asked once, by ``__dominating_event__`` of its class (``docs/extending.md``), and is then
    neither compared, hashed, kept nor priced: what its class says of equality is of no effect. Events of this module
    resolve what they are made of when they are made. A subclass of one of them is a third party's event too.

    Parameters
    ----------
    event : DpEvent
        Any event.

    Returns
    -------
    DpEvent
        Of a type in this module, by exact type, as are all events that it is made of.

    Raises
    ------
    TypeError
        `event` is no event, or is a third party's and names none that dominates it.
    """
    if type(event) in _OWN:
        return cast(DpEvent, event)
    if not isinstance(event, DpEvent):
        raise TypeError(f"event={show(event)} is not a DpEvent; give an event such as GaussianDpEvent(1.0).")
    asked: Any = event
    try:
        for _ in range(50):  # events that name each other would go on forever
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
            f"event={type(event).__name__} has no price here by any method; use the events of skdp.accounting, or let "
            "its class return what dominates it from __dominating_event__."
        )
    raise TypeError(
        f"event={type(event).__name__}: __dominating_event__ leads to a {type(asked).__name__}; return a composition "
        "of events of skdp.accounting."
    )


def _set_noise(event: object, value: Any, meaning: str) -> None:
    """Store a noise multiplier: a number above 0, and neither so small nor so large that its square has no double."""
    number = value if type(value) is float else read_real(value)
    if number is None or not LEAST_NOISE <= number <= _MOST_NOISE:
        remedy = f"give a number from 1e-100 to 1e100 ({meaning})"
        raise _refuse(event, "noise_multiplier", value, remedy)
    object.__setattr__(event, "noise_multiplier", number)


def _set_finite(event: object, name: str) -> None:
    _set_real(event, name, lambda number: 0.0 <= number < math.inf, "give a finite number of 0 or more")


def _set_between(event: object, name: str, low: float, high: float) -> None:
    _set_real(event, name, lambda number: low <= number <= high, f"give a number from {low:g} to {high:g}")


def _numbers(event: object, name: str, value: Any) -> tuple[float, ...]:
    remedy = f"give a tuple of 1 to {MOST_PARTS} finite numbers of 0 or more"
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise _refuse(event, name, value, remedy, TypeError)
    found: list[float] = []
    for each in value:
        number = read_real(each)
        if number is None or not 0.0 <= number < math.inf:
            raise _refuse(event, name, each, remedy)
        found.append(number)
    if not 1 <= len(found) <= MOST_PARTS:
        raise _refuse(event, name, value, remedy)
    return tuple(found)


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
        if type(self.noise_multiplier) is not float or not LEAST_NOISE <= self.noise_multiplier <= _MOST_NOISE:
            _set_noise(self, self.noise_multiplier, "noise standard deviation / C")


@dataclass(frozen=True)
class LaplaceDpEvent(DpEvent):
    """Laplace noise was added to every coordinate of a sum over all records.

    Parameters
    ----------
    noise_multiplier : float
        Scale b of the noise (density ``exp(-|x| / b) / 2b``) divided by the bound C on the L1 norm of one record's
        contribution; above 0. The release is (1 / noise_multiplier)-private, and twice that under `replace_one`.
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        _set_noise(self, self.noise_multiplier, "noise scale b / C")


@dataclass(frozen=True)
class DiscreteLaplaceDpEvent(DpEvent):
    """Discrete Laplace noise was added to every coordinate of a sum of integers over all records.

    Parameters
    ----------
    noise_parameter : float
        The a of the masses ``tanh(a / 2) exp(-a |x|)`` of an integer x; from 1e-9 to 1e9.
    sensitivity : int
        Bound on the L1 norm of one record's contribution, at most 10^6; twice that is priced under `replace_one`.
    """

    noise_parameter: float
    sensitivity: int

    def __post_init__(self) -> None:
        _set_between(self, "noise_parameter", 1e-9, 1e9)
        _set_whole(self, "sensitivity", 0, MOST_SENSITIVE, f"give a whole number from 0 to {MOST_SENSITIVE}")


@dataclass(frozen=True)
class DiscreteGaussianDpEvent(DpEvent):
    """Discrete Gaussian noise was added to one sum of integers over all records (Canonne, Kamath & Steinke 2020).

    Of a vector with noise on each coordinate ``ZCDpEvent(norm**2 / (2 * standard_deviation**2))`` holds.

    Parameters
    ----------
    standard_deviation : float
        The s of the masses of an integer x, in proportion to ``exp(-x**2 / (2 s**2))``; from 0.01 to 1e9.
    sensitivity : int
        Bound on one record's contribution, at most 10^6; twice that is priced under `replace_one`.
    """

    standard_deviation: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        _set_between(self, "standard_deviation", 0.01, 1e9)
        _set_whole(self, "sensitivity", 0, MOST_SENSITIVE, f"give a whole number from 0 to {MOST_SENSITIVE}")


@dataclass(frozen=True)
class MixtureOfGaussiansDpEvent(DpEvent):
    """Gaussian noise was added to a sum in which a record has one of several sensitivities, drawn at random.

    Parameters
    ----------
    standard_deviation : float
        Of the noise; above 0.
    sensitivities : tuple of float
        Bounds on the norm of one record's contribution; finite, at least 0. Any iterable, kept as a tuple.
    sampling_probs : tuple of float
        Their probabilities, which sum to 1.
    """

    standard_deviation: float
    sensitivities: tuple[float, ...]
    sampling_probs: tuple[float, ...]

    def __post_init__(self) -> None:
        _set_between(self, "standard_deviation", 1e-100, 1e100)
        shifts = _numbers(self, "sensitivities", self.sensitivities)
        shares = _numbers(self, "sampling_probs", self.sampling_probs)
        if len(shifts) != len(shares):
            raise _refuse(self, "sampling_probs", len(shares), f"give a tuple of {len(shifts)} probabilities")
        if abs(math.fsum(shares) - 1.0) > 1e-9:
            raise _refuse(self, "sampling_probs", math.fsum(shares), "give a tuple of probabilities that sum to 1")
        object.__setattr__(self, "sensitivities", shifts)
        object.__setattr__(self, "sampling_probs", shares)


@dataclass(frozen=True)
class EpsilonDeltaDpEvent(DpEvent):
    """Something was released of which only (epsilon, delta)-privacy is known.

    Parameters
    ----------
    epsilon : float
        Finite, at least 0, in nats.
    delta : float
        In [0, 1). 0 is pure differential privacy.
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        _set_finite(self, "epsilon")
        _set_real(self, "delta", lambda delta: 0.0 <= delta < 1.0, "give a number of 0 or more and below 1")


@dataclass(frozen=True)
class ZCDpEvent(DpEvent):
    """Something was released of which (xi, rho)-zero-concentrated privacy is known (Bun & Steinke 2016).

    Parameters
    ----------
    rho, xi : float
        The Rényi divergence of every order alpha above 1 is at most xi + rho alpha; both finite, at least 0.
    """

    rho: float
    xi: float = 0.0

    def __post_init__(self) -> None:
        _set_finite(self, "rho")
        _set_finite(self, "xi")


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
        _set_real(self, "sampling_probability", lambda share: 0.0 <= share <= 1.0, "give a probability between 0 and 1")
        object.__setattr__(self, "event", _inner_event(self, self.event))


@dataclass(frozen=True)
class SampledWithoutReplacementDpEvent(DpEvent):
    """An event applied to a uniformly random subset of fixed size.

    Parameters
    ----------
    source_dataset_size : int
        Number of records, public; 1 or more.
    sample_size : int
        Number of records in the subset, at most `source_dataset_size`.
    event : DpEvent
        What was done to the subset.
    """

    source_dataset_size: int
    sample_size: int
    event: DpEvent

    def __post_init__(self) -> None:
        _set_whole(self, "source_dataset_size", 1, _MOST_COUNTED, "give a whole number of 1 or more")
        size = self.source_dataset_size
        _set_whole(self, "sample_size", 0, size, f"give a whole number from 0 to source_dataset_size={size}")
        object.__setattr__(self, "event", _inner_event(self, self.event))


@dataclass(frozen=True)
class RepeatAndSelectDpEvent(DpEvent):
    """An event repeated a random number of times, of which only the best output was released.

    The number of runs is drawn independently of the data and never shown (Papernot & Steinke 2022).

    Parameters
    ----------
    event : DpEvent
        One run, its score included.
    mean : float
        Expected number of runs; from 1 to 1e12.
    shape : float
        Distribution of the number: truncated negative binomial of this shape, which is logarithmic for 0 and
        geometric for 1, and Poisson for infinity; at least 0.
    """

    event: DpEvent
    mean: float
    shape: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "event", _inner_event(self, self.event))
        remedy = "give a number from 1 to 1e12 (expected number of runs)"
        _set_real(self, "mean", lambda mean: 1.0 <= mean <= 1e12, remedy)
        remedy = "give a number of 0 or more (0 logarithmic, 1 geometric, inf Poisson)"
        _set_real(self, "shape", lambda shape: shape >= 0.0, remedy)


@dataclass(frozen=True)
class SelfComposedDpEvent(DpEvent):
    """The same event, `count` times, each with fresh randomness.

    Parameters
    ----------
    event : DpEvent
        Event of one repetition.
    count : int
        Number of repetitions, 0 or more. Of one release up to 10^12 are priced in all, the products of nested counts.
    """

    event: DpEvent
    count: int

    def __post_init__(self) -> None:
        if type(self.event) not in _OWN:
            object.__setattr__(self, "event", _inner_event(self, self.event))
        if type(self.count) is not int or not 0 <= self.count <= _MOST_COUNTED:  # runs make many of these
            _set_whole(self, "count", 0, _MOST_COUNTED, "give a whole number from 0 to 10^18 (to 10^12 for a price)")


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
        if type(self.events) is not tuple or not _OWN.issuperset(map(type, self.events)):
            object.__setattr__(self, "events", _read_events(self, self.events))


@dataclass(frozen=True)
class WorstOfDpEvent(DpEvent):
    """One of several events happened; which one was drawn at random or fixed beforehand, not chosen by the data.

    A trial of a search over unequal candidates. Priced at the pointwise largest Rényi curve or privacy profile: a
    mixture whose part is known costs the mean of its parts at most (dp-accounting has no such event).

    Parameters
    ----------
    events : tuple of DpEvent
        At least one; any iterable, kept as a tuple.
    """

    events: tuple[DpEvent, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", _read_events(self, self.events))
        if not self.events:
            raise _refuse(self, "events", self.events, "give at least one event")


_OWN.update(each for each in list(vars().values()) if isinstance(each, type) and issubclass(each, DpEvent))
