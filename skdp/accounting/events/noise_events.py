"""Events of noise mechanisms other than the Gaussian and the Laplace, as frozen specifications.

`DiscreteGaussianDpEvent` is defined by skdp; the names, fields and meaning of the others are those of Google's
dp-accounting.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from skdp.accounting.events.specifications import DpEvent, own, read_real, refuse_field, set_real, set_whole

_MOST_SENSITIVE = 10**6
_MOST_PARTS = 1000


def _set_sensitivity(event: object) -> None:
    set_whole(event, "sensitivity", 0, _MOST_SENSITIVE, f"give a whole number from 0 to {_MOST_SENSITIVE}")


def _set_between(event: object, name: str, low: float, high: float) -> None:
    set_real(event, name, lambda number: low <= number <= high, f"give a number from {low:g} to {high:g}")


def _numbers(event: object, name: str, value: Any) -> tuple[float, ...]:
    remedy = f"give a tuple of 1 to {_MOST_PARTS} finite numbers of 0 or more"
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(refuse_field(event, name, value, remedy))
    found: list[float] = []
    for each in value:
        number = read_real(each)
        if number is None or not 0.0 <= number < math.inf:
            raise ValueError(refuse_field(event, name, each, remedy))
        found.append(number)
    if not 1 <= len(found) <= _MOST_PARTS:
        raise ValueError(refuse_field(event, name, value, remedy))
    return tuple(found)


@own
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
        _set_sensitivity(self)


@own
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
        _set_sensitivity(self)


@own
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
            raise ValueError(
                refuse_field(self, "sampling_probs", len(shares), f"give a tuple of {len(shifts)} probabilities")
            )
        if abs(math.fsum(shares) - 1.0) > 1e-9:
            raise ValueError(
                refuse_field(self, "sampling_probs", math.fsum(shares), "give a tuple of probabilities that sum to 1")
            )
        object.__setattr__(self, "sensitivities", shifts)
        object.__setattr__(self, "sampling_probs", shares)


__all__ = ["DiscreteGaussianDpEvent", "DiscreteLaplaceDpEvent", "MixtureOfGaussiansDpEvent"]
