"""Events of noise mechanisms other than the Gaussian and the Laplace, as frozen specifications.

`DiscreteGaussianDpEvent`, `ExponentialMechanismDpEvent` and `ReportNoisyMaxDpEvent` are ours; the names, fields and
meaning of the others are those of Google's dp-accounting.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .specifications import DpEvent, own, real_field, refuse_field, set_finite, set_noise, whole_field

__all__ = [
    "DiscreteGaussianDpEvent",
    "DiscreteLaplaceDpEvent",
    "ExponentialMechanismDpEvent",
    "MixtureOfGaussiansDpEvent",
    "RandomizedResponseDpEvent",
    "ReportNoisyMaxDpEvent",
    "SingleEpochTreeAggregationDpEvent",
]

_MOST_SENSITIVE = 10**6
_MOST_PARTS = 1000


def _set_sensitivity(event: object, value: Any) -> None:
    remedy = f"give a whole number from 0 to {_MOST_SENSITIVE}"
    number = whole_field(event, "sensitivity", value, remedy)
    if number > _MOST_SENSITIVE:
        raise ValueError(refuse_field(event, "sensitivity", value, remedy))
    object.__setattr__(event, "sensitivity", number)


def _set_between(event: object, name: str, value: Any, low: float, high: float) -> None:
    remedy = f"give a number from {low:g} to {high:g}"
    number = real_field(event, name, value, remedy)
    if not low <= number <= high:
        raise ValueError(refuse_field(event, name, value, remedy))
    object.__setattr__(event, name, number)


def _numbers(event: object, name: str, value: Any) -> tuple[float, ...]:
    remedy = f"give a tuple of 1 to {_MOST_PARTS} finite numbers of 0 or more"
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(refuse_field(event, name, value, remedy))
    numbers = tuple(real_field(event, name, each, remedy) for each in value)
    if not 1 <= len(numbers) <= _MOST_PARTS or not all(0.0 <= each < math.inf for each in numbers):
        raise ValueError(refuse_field(event, name, value, remedy))
    return numbers


@own
@dataclass(frozen=True)
class RandomizedResponseDpEvent(DpEvent):
    """One of several buckets was shown: mostly the true one, with some probability any of them.

    It has a price under `replace_one` alone: what stands in place of a record that is not there is not known.

    Parameters
    ----------
    noise_parameter : float
        Probability in [0, 1] that a uniformly drawn bucket is shown in place of the true one (which it may be).
    num_buckets : int
        1 or more.
    """

    noise_parameter: float
    num_buckets: int

    def __post_init__(self) -> None:
        _set_between(self, "noise_parameter", self.noise_parameter, 0.0, 1.0)
        remedy = "give a whole number of 1 or more"
        buckets = whole_field(self, "num_buckets", self.num_buckets, remedy)
        if buckets == 0:
            raise ValueError(refuse_field(self, "num_buckets", buckets, remedy))
        object.__setattr__(self, "num_buckets", buckets)


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
        _set_between(self, "noise_parameter", self.noise_parameter, 1e-9, 1e9)
        _set_sensitivity(self, self.sensitivity)


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
        _set_between(self, "standard_deviation", self.standard_deviation, 0.01, 1e9)
        _set_sensitivity(self, self.sensitivity)


@own
@dataclass(frozen=True)
class ExponentialMechanismDpEvent(DpEvent):
    """The exponential mechanism, or whatever else has losses within a range of `epsilon` (Durfee & Rogers 2019).

    Drawing an output with probability in proportion to ``exp(epsilon * score / (2 * sensitivity))`` has such a range;
    if a record moves all scores to the same side, ``exp(epsilon * score / sensitivity)`` has it too.

    Parameters
    ----------
    epsilon : float
        Width of the range of losses, finite, at least 0, in nats; for neighbours of the adjacency under which the event
        is priced.
    """

    epsilon: float

    def __post_init__(self) -> None:
        set_finite(self, "epsilon", self.epsilon)


@own
@dataclass(frozen=True)
class ReportNoisyMaxDpEvent(DpEvent):
    """The candidate with the largest noisy score was released: permute-and-flip, and all of its family.

    Noise is exponential, of the two-sided exponential (Laplace) or the Gumbel law, of scale ``2 * sensitivity /
    epsilon``; if a record moves all scores to the same side, of half that scale. With exponential noise it is the
    permute-and-flip mechanism (McKenna & Sheldon 2020; Ding et al. 2021). It costs no more than Laplace noise of scale
    1 / epsilon on a number that a record moves by 1, and as much if there are two candidates and the noise is
    exponential; `dominating.pairs` has the proof. With Gumbel noise it is the exponential mechanism, of which
    `ExponentialMechanismDpEvent` knows more.

    Parameters
    ----------
    epsilon : float
        Largest loss, finite, at least 0, in nats; for neighbours of the adjacency under which the event is priced.
    """

    epsilon: float

    def __post_init__(self) -> None:
        set_finite(self, "epsilon", self.epsilon)


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
        _set_between(self, "standard_deviation", self.standard_deviation, 1e-100, 1e100)
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


@own
@dataclass(frozen=True)
class SingleEpochTreeAggregationDpEvent(DpEvent):
    """Sums of the prefixes of a stream from noisy nodes of binary trees (Kairouz et al. 2021, Appendix D).

    Each record takes part in one step of all trees together, which does not depend on other records. It lies below one
    node of each height, so at most ceil(log2(n + 1)) nodes of a tree of n steps move with it. Nodes come out one after
    the other, each with Gaussian noise: all of them are that many Gaussian releases, and nodes that do not move are
    free.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise of a node divided by the bound on one record's contribution; above 0.
    step_counts : int or tuple of int
        Number of steps of each tree, one number for a single tree.
    """

    noise_multiplier: float
    step_counts: int | tuple[int, ...]

    def __post_init__(self) -> None:
        set_noise(self, self.noise_multiplier, "noise standard deviation of a node / C")
        remedy = "give a whole number of 1 or more, or several"
        given = self.step_counts if isinstance(self.step_counts, list | tuple) else (self.step_counts,)
        counts = tuple(whole_field(self, "step_counts", each, remedy) for each in given)
        if not counts or min(counts) < 1:
            raise ValueError(refuse_field(self, "step_counts", self.step_counts, remedy))
        object.__setattr__(self, "step_counts", counts if isinstance(self.step_counts, list | tuple) else counts[0])

    @property
    def height(self) -> int:
        """Most nodes that move with one record."""
        counts = self.step_counts if isinstance(self.step_counts, tuple) else (self.step_counts,)
        return max(counts).bit_length()
