"""Mechanisms with integer-valued noise, which is sampled exactly in integer arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from skdp._checks.parameters import check_count, check_real
from skdp.accounting import DiscreteGaussianDpEvent, DiscreteLaplaceDpEvent, DpEvent, SelfComposedDpEvent
from skdp.mechanisms.gaussian import AdditiveMechanism
from skdp.mechanisms.streams import SecretStream

_Whole = NDArray[np.int64]

_RANGE = 0.01, 2e4
"""Range of the standard deviation that the accountant supports."""


@dataclass(frozen=True)
class DiscreteGaussianMechanism(AdditiveMechanism):
    """Discrete Gaussian mechanism, which adds independent integer-valued noise to counts.

    The caller must ensure that one record changes at most `n_counts` counts by 1 each. Non-integer weights and groups
    of several rows violate this condition.

    Parameters
    ----------
    standard_deviation : float
        Parameter s of the noise, whose probabilities are proportional to ``exp(-x**2 / (2 s**2))``; from 0.01 to 2e4.
    n_counts : int, default=1
        Largest number k of counts that one record changes, each by at most 1.

    Notes
    -----
    **Guarantees.** The noise of every count has exactly the discrete Gaussian distribution (Canonne, Kamath & Steinke
    2020, algorithm 3), because sampling uses integer arithmetic only. The event has the same s. The accountant is
    charged before noise is drawn, and a rejected value is not charged. Every integer is a possible output.

    Proof. Adding or removing a record changes at most k counts by 1 each. The noise is independent, so the release is a
    composition of k releases of one count with sensitivity 1. Under ``replace_one``, a record leaves k counts and is
    added to k others. Pair each count that decreases by 1 with one that increases by 1, with noise X and Y. The
    likelihood ratio depends only on X - Y, shifted by 2. This is post-processing of one count with noise X that is
    shifted by 2, because -Y is independent. So k counts that change by 2, as the event is accounted for there, are an
    upper bound. Under ``replace_one`` the noise is larger than necessary, by a factor of at most sqrt(2).

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.mechanisms import DiscreteGaussianMechanism
    >>> mechanism = DiscreteGaussianMechanism(4.5)
    >>> mechanism.event
    DiscreteGaussianDpEvent(standard_deviation=4.5, sensitivity=1)
    >>> mechanism.release(np.array([130, 7, 0])).dtype
    dtype('int64')
    """

    standard_deviation: float
    n_counts: int = 1
    is_whole: ClassVar[bool] = True

    def __post_init__(self) -> None:
        constraint = "a number from 0.01 to 2e4"
        low, high = _RANGE
        s = check_real("standard_deviation", self.standard_deviation, at_least=low, at_most=high, constraint=constraint)
        k = check_count(
            "n_counts", self.n_counts, constraint="a positive integer, the number of counts that one record changes"
        )
        vars(self).update(standard_deviation=s, n_counts=k)

    @classmethod
    def near(cls, noise_multiplier: float, n_counts: int) -> DiscreteGaussianMechanism:
        """Return the mechanism with the nearest supported noise multiplier, for searches over noise multipliers.

        Parameters
        ----------
        noise_multiplier : float
            Standard deviation divided by the square root of `n_counts`. The standard deviation is clipped to the range
            from 0.01 to 2e4.
        n_counts : int
            Largest number of counts that one record changes.

        Returns
        -------
        DiscreteGaussianMechanism
            Mechanism with this noise multiplier.
        """
        s = min(max(noise_multiplier * math.sqrt(n_counts), _RANGE[0]), _RANGE[1])
        return cls(s, n_counts)

    @property
    def event(self) -> DpEvent:
        """Privacy event of one release."""
        one = DiscreteGaussianDpEvent(self.standard_deviation)
        return one if self.n_counts == 1 else SelfComposedDpEvent(one, self.n_counts)

    @property
    def sensitivity(self) -> float:
        """Largest Euclidean norm of one record's contribution."""
        return math.sqrt(self.n_counts)

    @property
    def noise_multiplier(self) -> float:
        """Standard deviation of the noise divided by the sensitivity."""
        return self.standard_deviation / self.sensitivity

    def _add_noise(self, value: _Whole, stream: SecretStream) -> _Whole:
        """Add noise. Only this line of the library adds discrete Gaussian noise."""
        return value + discrete_gaussian(stream, value.size, self.standard_deviation).reshape(value.shape)


def discrete_gaussian(stream: SecretStream, size: int, standard_deviation: float) -> _Whole:
    """Draw integers with probabilities proportional to ``exp(-x**2 / (2 s**2))`` (algorithm 3).

    A discrete Laplace number y of scale t, the smallest integer above s, is accepted with probability
    ``exp(-(|y| - s**2 / t)**2 / (2 s**2))``. The exponent is a fraction, because s is a double. It is computed once for
    each value of y.
    """
    exact = Fraction(standard_deviation)
    t = math.floor(exact) + 1
    found = np.empty(size, np.int64)
    missing = np.arange(size)
    while missing.size:
        drawn = discrete_laplace(stream, missing.size, Fraction(t))
        sizes, which = np.unique(np.abs(drawn), return_inverse=True)
        exponents = [(y - exact**2 / t) ** 2 / (2 * exact**2) for y in sizes.tolist()]
        kept = _exp_of_fractions(stream, exponents, which)
        found[missing[kept]] = drawn[kept]
        missing = missing[~kept]
    return found


def _exp_of_fractions(stream: SecretStream, exponents: list[Fraction], which: _Whole) -> NDArray[np.bool_]:
    """Draw Bernoulli variables with probability exp(-g) for non-negative fractions g.

    They succeed if one trial succeeds for the fractional part of g, and as many trials of probability exp(-1) as its
    integer part succeed before the first failure.
    """
    wholes = np.array([min(math.floor(g), 2**62) for g in exponents], np.int64)
    rests = [g % 1 for g in exponents]
    succeeded = exp_trials(stream, which.size, lambda going: below_fractions(stream, rests, which[going]))
    left = np.flatnonzero(succeeded & (wholes[which] > 0))
    succeeded[left] = trials_before_a_failure(stream, left.size) >= wholes[which[left]]
    return succeeded


def below_fractions(stream: SecretStream, fractions: list[Fraction], which: _Whole) -> NDArray[np.bool_]:
    """Draw Bernoulli variables with probability g for fractions g in [0, 1): whether a uniform number is below g.

    The first 64 bits are compared, and further bits if these are equal.
    """
    bits = np.array([math.floor(g * 2**64) for g in fractions], np.uint64)[which]
    words = stream.words(which.size)
    found = words < bits
    for i in np.flatnonzero(words == bits).tolist():
        found[i] = below_fractions(stream, [fractions[which[i]] * 2**64 % 1], np.zeros(1, np.int64))[0]
    return found


_LARGEST = 2**53
_MOST_STEPS = 1024


@dataclass(frozen=True)
class DiscreteLaplaceMechanism(AdditiveMechanism):
    """Discrete Laplace mechanism, which adds independent integer-valued noise to integers.

    The caller must ensure that `sensitivity` bounds the contribution of one record.

    Parameters
    ----------
    scale : Fraction
        Scale b of the noise, whose probabilities are proportional to ``exp(-|x| / b)``; above 0. Numerator and
        denominator must be below 2**53.
    sensitivity : int, default=1
        Largest L1 norm of one record's contribution to the value; above 0.

    Notes
    -----
    **Guarantees.** The noise of every coordinate has exactly the discrete Laplace distribution (Canonne, Kamath &
    Steinke 2020, algorithm 2), because sampling uses integer arithmetic only. The event has this scale, or smaller
    noise. A release has epsilon ``sensitivity / scale`` with delta 0, and twice this epsilon under ``replace_one``. The
    accountant is charged before noise is drawn, and a rejected value is not charged.

    Proof. The probabilities of an output for two values that differ by (d_1, d_2, ...) differ by a factor of at most
    ``exp(sum |d_i| / b)``. If one coordinate changes by D steps of a = 1 / b, delta is a convex function of e^epsilon.
    It is linear between the losses a (D - 2 j), j = 0, ..., D, where it is 1 - exp(-a j) for the non-negative ones.
    With k larger steps of a D / k, where k divides D, some of these losses occur with the same deltas, so their chords
    lie above. Therefore `event` has at most 1024 steps, whose privacy cost is fast to compute.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.mechanisms import DiscreteLaplaceMechanism
    >>> mechanism = DiscreteLaplaceMechanism.for_epsilon(0.5)
    >>> mechanism.scale, mechanism.event
    (Fraction(2, 1), DiscreteLaplaceDpEvent(noise_parameter=0.5, sensitivity=1))
    >>> mechanism.release(np.array([130, 7, 0])).dtype
    dtype('int64')
    """

    scale: Fraction
    sensitivity: int = 1
    norm_order: ClassVar[int] = 1
    is_whole: ClassVar[bool] = True

    def __post_init__(self) -> None:
        vars(self).update(scale=Fraction(self.scale))
        if self.scale <= 0 or max(self.scale.as_integer_ratio()) >= _LARGEST:
            raise ValueError(
                f"`scale` must be a positive fraction with numerator and denominator below 2**53, got {self.scale}."
            )
        if not isinstance(self.sensitivity, int) or not 1 <= self.sensitivity <= _LARGEST:
            raise ValueError(f"`sensitivity` must be an integer from 1 to 2**53, got {self.sensitivity!r}.")

    @classmethod
    def for_epsilon(cls, epsilon: float, sensitivity: int = 1) -> Self:
        """Return the mechanism with a given epsilon; its scale is rounded up.

        Parameters
        ----------
        epsilon : float
            Epsilon of a release under "zero_out" and "add_remove", in nats; from 1e-5 to 1e6.
        sensitivity : int, default=1
            Largest L1 norm of one record's contribution.

        Returns
        -------
        DiscreteLaplaceMechanism
            Mechanism with the smallest noise for this epsilon.
        """
        constraint = "a number from 1e-5 to 1e6, such as 1.0"
        exact = sensitivity / Fraction(
            check_real("epsilon", epsilon, at_least=1e-5, at_most=1e6, constraint=constraint)
        )
        denominator = 2 ** max(0, 40 - math.ceil(exact).bit_length())
        return cls(Fraction(math.ceil(exact * denominator), denominator), sensitivity)

    @property
    def event(self) -> DiscreteLaplaceDpEvent:
        """Privacy event of one release."""
        steps = next(k for k in range(_MOST_STEPS, 0, -1) if self.sensitivity % k == 0)
        return DiscreteLaplaceDpEvent(_rounded_up(self.sensitivity / (steps * self.scale)), steps)

    @property
    def epsilon(self) -> float:
        """Epsilon of a release with delta 0, in nats; it is twice as large under "replace_one"."""
        return _rounded_up(self.sensitivity / self.scale)

    @property
    def noise_multiplier(self) -> float:
        """Scale of the noise divided by the sensitivity."""
        return float(self.scale / self.sensitivity)

    @property
    def standard_deviation(self) -> float:
        """Standard deviation of the noise in each coordinate, in the units of the value."""
        return math.sqrt(0.5) / math.sinh(float(0.5 / self.scale)) if self.scale > Fraction(1, 1000) else 0.0

    def _add_noise(self, value: _Whole, stream: SecretStream) -> _Whole:
        """Add noise. Only this line of the library adds discrete Laplace noise."""
        return value + discrete_laplace(stream, value.size, self.scale).reshape(value.shape)


def _rounded_up(exact: Fraction) -> float:
    """Return the smallest double that is at least `exact`."""
    found = float(exact)
    return found if Fraction(found) >= exact else math.nextafter(found, math.inf)


# --- exact draws: Canonne, Kamath & Steinke 2020, algorithms 1 and 2 ---


def discrete_laplace(stream: SecretStream, size: int, scale: Fraction) -> _Whole:
    """Draw integers with probabilities proportional to ``exp(-|x| / scale)`` (algorithm 2).

    If the scale is t / s, U + t V is geometric: U below t is accepted with probability exp(-U / t), and V counts trials
    of probability exp(-1). The result is the quotient by s with a random sign; one of the two zeros is rejected. U + t
    V is below 2**63 for t below 2**53 and V below 1024. A larger V has a probability of exp(-1024) and raises an error.
    """
    t, s = scale.as_integer_ratio()
    found = np.empty(size, np.int64)
    missing = np.arange(size)
    while missing.size:
        below = _uniform(stream, t, missing.size)
        kept = exp_trials(stream, below.size, _shares_of(stream, below, t))
        trials = trials_before_a_failure(stream, int(kept.sum()))
        if trials.size and trials.max() >= 1024:
            raise OverflowError("The noise exceeded 1024 times its scale. Repeat the release.")
        sizes = (below[kept] + t * trials) // s
        negative = stream.words(sizes.size) >> np.uint64(63) == 1
        good = ~(negative & (sizes == 0))
        drawn = missing[kept]
        found[drawn[good]] = np.where(negative, -sizes, sizes)[good]
        missing = np.concatenate([missing[~kept], drawn[~good]])
    return found


def _uniform(stream: SecretStream, n: int, size: int) -> _Whole:
    """Draw integers from 0 to n - 1, by rejection of the leading bits of words."""
    bits = (n - 1).bit_length()
    found = np.empty(size, np.int64)
    missing = np.arange(size)
    while missing.size:
        # two shifts, as a word cannot be shifted by all its bits
        drawn = (stream.words(missing.size) >> np.uint64(1) >> np.uint64(63 - bits)).astype(np.int64)
        found[missing] = drawn
        missing = missing[drawn >= n]
    return found


def exp_trials(stream: SecretStream, size: int, passes: Callable[[_Whole], NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """Draw Bernoulli variables with probability exp(-g), where `passes` draws ones with probability g (algorithm 1).

    Trials of probability g / k, for k = 1, 2, ..., are repeated until one fails. The failing trial is the first, third,
    ... with probability 1 - g + g^2 / 2! - ... A trial of probability g / k combines a trial by `passes` and a trial of
    probability 1 / k.
    """
    succeeded = np.ones(size, bool)
    going, k = np.arange(size), 1
    while going.size:
        passed = passes(going)
        passed &= _uniform(stream, k, going.size) == 0
        succeeded[going[~passed]] = k % 2 == 1
        going, k = going[passed], k + 1
    return succeeded


def _shares_of(stream: SecretStream, numerators: _Whole, denominator: int) -> Callable[[_Whole], NDArray[np.bool_]]:
    """Return a function that draws Bernoulli variables with probabilities `numerators` / `denominator`."""
    return lambda going: _uniform(stream, denominator, going.size) < numerators[going]


def trials_before_a_failure(stream: SecretStream, size: int) -> _Whole:
    """Draw the number of trials of probability exp(-1) that succeed before the first failure."""
    counts, going = np.zeros(size, np.int64), np.arange(size)
    while going.size:
        going = going[exp_trials(stream, going.size, lambda places: np.ones(places.size, bool))]
        counts[going] += 1
    return counts
