"""Discrete Gaussian noise on counts, drawn exactly, by whole numbers alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from skdp._checks.parameters import check_count, check_real
from skdp.accounting import DiscreteGaussianDpEvent, DpEvent, SelfComposedDpEvent
from skdp.mechanisms.additive import AdditiveMechanism
from skdp.mechanisms.discrete_laplace import discrete_laplace, exp_trials, trials_before_a_failure, whole_value
from skdp.mechanisms.streams import SecretStream

_Whole = NDArray[np.int64]

_RANGE = 0.01, 2e4
"""Of the standard deviation: what the accountant prices."""


@dataclass(frozen=True)
class DiscreteGaussianMechanism(AdditiveMechanism):
    """Discrete Gaussian mechanism, which adds independent whole numbers to counts and prices the release.

    Parameters
    ----------
    standard_deviation : float
        Public s of the noise, whose masses are in proportion to ``exp(-x**2 / (2 s**2))``; from 0.01 to 2e4.
    n_counts : int, default=1
        Most counts k that one record changes, each of them by 1 at most.

    Notes
    -----
    **Guarantees.** The noise of every count has exactly the law of s (Canonne, Kamath & Steinke 2020, algorithm 3): no
    floating-point number takes part in a draw. The event states that s. `release` charges the accountant
    before it draws noise, and nothing that it refuses is charged. Every whole number can come of every value.

    Proof. A record that is there or not moves k counts at most, by 1 each. Noise is independent, so the release is a
    composition of k releases of one count, each of sensitivity 1: no bound, but the very pair of laws, and a record
    that moves fewer counts is told apart no better. Under ``replace_one`` a record leaves k counts and adds to k
    others. Pair each count that loses 1 with one that gains 1: with noise X and Y, what is seen of the two depends on
    the record by X - Y alone, as the likelihood ratio is a function of it. X - Y, moved by 2, is X, moved by 2, and -Y,
    which is independent: post-processing of one count that moves by 2. So k counts that move by 2, which is how the
    event is priced there, tell no less. They tell more: the noise is larger there than it had to be, by a factor of at
    most sqrt(2).

    That a record changes `n_counts` counts by 1 is the caller's promise: neither weights that are no whole numbers nor
    units of several rows keep it.

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
        remedy = "choose a number from 0.01 to 2e4"
        s = check_real(
            "standard_deviation", self.standard_deviation, at_least=_RANGE[0], at_most=_RANGE[1], remedy=remedy
        )
        k = check_count("n_counts", self.n_counts, remedy="give the number of counts that one record changes")
        object.__setattr__(self, "standard_deviation", float(s))
        object.__setattr__(self, "n_counts", k)

    @classmethod
    def near(cls, noise_multiplier: float, n_counts: int) -> DiscreteGaussianMechanism:
        """Return the mechanism that comes nearest to a noise multiplier, for a search over all of them.

        Parameters
        ----------
        noise_multiplier : float
            Standard deviation s, divided by the root of `n_counts`; s is moved to the nearest one that has a price.
        n_counts : int
            Most counts that one record changes.

        Returns
        -------
        DiscreteGaussianMechanism
        """
        s = min(max(noise_multiplier * math.sqrt(n_counts), _RANGE[0]), _RANGE[1])
        return cls(s, n_counts)

    @property
    def event(self) -> DpEvent:
        """Event of one release."""
        one = DiscreteGaussianDpEvent(self.standard_deviation)
        return one if self.n_counts == 1 else SelfComposedDpEvent(one, self.n_counts)

    @property
    def sensitivity(self) -> float:
        """Euclidean norm of what one record adds."""
        return math.sqrt(self.n_counts)

    @property
    def noise_multiplier(self) -> float:
        """Standard deviation of the noise in units of the sensitivity."""
        return self.standard_deviation / self.sensitivity

    def _checked(self, value: Any) -> _Whole:
        return whole_value(value)

    def _add_noise(self, value: _Whole, stream: SecretStream) -> _Whole:
        """The only line of the library that adds discrete Gaussian noise is here."""
        return value + discrete_gaussian(stream, value.size, self.standard_deviation).reshape(value.shape)


def discrete_gaussian(stream: SecretStream, size: int, standard_deviation: float) -> _Whole:
    """Draw whole numbers with masses in proportion to ``exp(-x**2 / (2 s**2))`` (algorithm 3).

    A discrete Laplace number y of scale t, the least whole number above s, is kept with probability
    ``exp(-(|y| - s**2 / t)**2 / (2 s**2))``. The exponent is a fraction, as s is: a double. It is computed once for
    each size that occurs.
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
    """Trials of probability exp(-g), g being one of some nonnegative fractions.

    One for the part of g below 1; and of trials of probability exp(-1) as many as its whole part have to succeed before
    one fails.
    """
    wholes = np.array([min(math.floor(g), 2**62) for g in exponents], np.int64)
    rests = [g % 1 for g in exponents]
    succeeded = exp_trials(stream, which.size, lambda going: below_fractions(stream, rests, which[going]))
    left = np.flatnonzero(succeeded & (wholes[which] > 0))
    succeeded[left] = trials_before_a_failure(stream, left.size) >= wholes[which[left]]
    return succeeded


def below_fractions(stream: SecretStream, fractions: list[Fraction], which: _Whole) -> NDArray[np.bool_]:
    """Trials of probability g, one of some fractions in [0, 1): whether a uniform number is below it.

    The number is compared by its first 64 bits, and by further ones where these are those of g.
    """
    bits = np.array([math.floor(g * 2**64) for g in fractions], np.uint64)[which]
    words = stream.words(which.size)
    found = words < bits
    for i in np.flatnonzero(words == bits).tolist():
        found[i] = below_fractions(stream, [fractions[which[i]] * 2**64 % 1], np.zeros(1, np.int64))[0]
    return found


__all__ = ["DiscreteGaussianMechanism", "discrete_gaussian"]
