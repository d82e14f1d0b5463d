"""Discrete Gaussian noise on counts, drawn exactly, by whole numbers alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from skdp._checks.parameters import check_count, check_real
from skdp.accounting import DiscreteGaussianDpEvent, DiscreteLaplaceDpEvent, DpEvent, SelfComposedDpEvent
from skdp.mechanisms.gaussian import AdditiveMechanism, checked_value
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
        low, high = _RANGE
        s = check_real("standard_deviation", self.standard_deviation, at_least=low, at_most=high, remedy=remedy)
        k = check_count("n_counts", self.n_counts, remedy="give the number of counts that one record changes")
        vars(self).update(standard_deviation=s, n_counts=k)

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
        return checked_value(value, whole=True)

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


_LARGEST = 2**53
_MOST_STEPS = 1024


@dataclass(frozen=True)
class DiscreteLaplaceMechanism(AdditiveMechanism):
    """Discrete Laplace mechanism, which adds independent whole numbers to whole numbers and prices the release.

    Parameters
    ----------
    scale : Fraction
        Public scale b of the noise, whose masses are in proportion to ``exp(-|x| / b)``; above 0. Numerator and
        denominator are below 2**53.
    sensitivity : int, default=1
        Largest sum of the sizes (L1 norm) of what one record adds to the value; above 0.

    Notes
    -----
    **Guarantees.** The noise of every coordinate has exactly the law of its scale (Canonne, Kamath & Steinke 2020,
    algorithm 2): no floating-point number takes part in a draw. The event states that scale, or noise no larger. A
    release is private at ``sensitivity / scale``, with a delta of 0; at twice that under ``replace_one``. `release`
    charges the accountant before it draws noise, and nothing that it refuses is charged.

    Proof. The masses of two values that differ by (d_1, d_2, ...) differ by a factor of at most ``exp(sum |d_i| / b)``.
    Where one coordinate moves by D steps of a = 1 / b, delta is a convex function of e^epsilon, linear between the
    losses a (D - 2 j), j = 0, ..., D, where it is 1 - exp(-a j) for the nonnegative ones. k larger steps of a D / k, k
    a divisor of D, have some of these losses with the same deltas, so that their chords lie above. `event` states at
    most 1024 steps for this reason, which are priced at once.

    That `sensitivity` bounds what one record adds is the caller's promise.

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
            raise ValueError(f"scale={self.scale} is out of range: give a fraction above 0 of numbers below 2**53.")
        if not isinstance(self.sensitivity, int) or not 1 <= self.sensitivity <= _LARGEST:
            raise ValueError(f"sensitivity={self.sensitivity!r} is not valid: give a whole number from 1 to 2**53.")

    @classmethod
    def for_epsilon(cls, epsilon: float, sensitivity: int = 1) -> Self:
        """Return the mechanism of the least noise that costs epsilon, its scale being rounded up.

        Parameters
        ----------
        epsilon : float
            Price of a release under ``zero_out`` and ``add_remove``, in nats; from 1e-5 to 1e6.
        sensitivity : int, default=1
            L1 norm of what one record adds.

        Returns
        -------
        DiscreteLaplaceMechanism
        """
        remedy = "choose a number from 1e-5 to 1e6, such as 1.0"
        exact = sensitivity / Fraction(check_real("epsilon", epsilon, at_least=1e-5, at_most=1e6, remedy=remedy))
        denominator = 2 ** max(0, 40 - math.ceil(exact).bit_length())
        return cls(Fraction(math.ceil(exact * denominator), denominator), sensitivity)

    @property
    def event(self) -> DiscreteLaplaceDpEvent:
        """Event of one release."""
        steps = next(k for k in range(_MOST_STEPS, 0, -1) if self.sensitivity % k == 0)
        return DiscreteLaplaceDpEvent(_rounded_up(self.sensitivity / (steps * self.scale)), steps)

    @property
    def epsilon(self) -> float:
        """Price of a release with a delta of 0, in nats; twice that under ``replace_one``."""
        return _rounded_up(self.sensitivity / self.scale)

    @property
    def noise_multiplier(self) -> float:
        """Scale of the noise in units of the sensitivity."""
        return float(self.scale / self.sensitivity)

    @property
    def standard_deviation(self) -> float:
        """Standard deviation of the noise in each coordinate, in the units of the value."""
        return math.sqrt(0.5) / math.sinh(float(0.5 / self.scale)) if self.scale > Fraction(1, 1000) else 0.0

    def _checked(self, value: Any) -> _Whole:
        return checked_value(value, whole=True)

    def _add_noise(self, value: _Whole, stream: SecretStream) -> _Whole:
        """The only line of the library that adds discrete Laplace noise is here."""
        return value + discrete_laplace(stream, value.size, self.scale).reshape(value.shape)


def _rounded_up(exact: Fraction) -> float:
    """The least double that is no less."""
    found = float(exact)
    return found if Fraction(found) >= exact else math.nextafter(found, math.inf)


# --- exact draws: Canonne, Kamath & Steinke 2020, algorithms 1 and 2 ---


def discrete_laplace(stream: SecretStream, size: int, scale: Fraction) -> _Whole:
    """Draw whole numbers with masses in proportion to ``exp(-|x| / scale)`` (algorithm 2).

    With t / s the scale, U + t V is geometric: U below t is accepted with probability exp(-U / t), and V counts trials
    of probability exp(-1). The quotient by s, with a sign, is the draw; one of the two zeros is rejected. U + t V is
    below 2**63 for t below 2**53 and V below 1024; a V beyond has a probability of exp(-1024), and is refused.
    """
    t, s = scale.as_integer_ratio()
    found = np.empty(size, np.int64)
    missing = np.arange(size)
    while missing.size:
        below = _uniform(stream, t, missing.size)
        kept = exp_trials(stream, below.size, _shares_of(stream, below, t))
        trials = trials_before_a_failure(stream, int(kept.sum()))
        if trials.size and trials.max() >= 1024:
            raise OverflowError("a draw of noise beyond 1024 scales: release again.")
        sizes = (below[kept] + t * trials) // s
        negative = stream.words(sizes.size) >> np.uint64(63) == 1
        good = ~(negative & (sizes == 0))
        drawn = missing[kept]
        found[drawn[good]] = np.where(negative, -sizes, sizes)[good]
        missing = np.concatenate([missing[~kept], drawn[~good]])
    return found


def _uniform(stream: SecretStream, n: int, size: int) -> _Whole:
    """Whole numbers from 0 below n, by rejection of leading bits of words."""
    bits = (n - 1).bit_length()
    found = np.empty(size, np.int64)
    missing = np.arange(size)
    while missing.size:
        # two shifts, as a word cannot be shifted by all of its bits
        drawn = (stream.words(missing.size) >> np.uint64(1) >> np.uint64(63 - bits)).astype(np.int64)
        found[missing] = drawn
        missing = missing[drawn >= n]
    return found


def exp_trials(stream: SecretStream, size: int, passes: Callable[[_Whole], NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """Trials of probability exp(-g), g in [0, 1] being the probability that `passes` has (algorithm 1).

    Trials of probability g / k, for k = 1, 2, ..., go on until one fails, and it is the first, third, ... with
    probability 1 - g + g^2 / 2! - ... A trial of g / k is one of g, which `passes` makes of each place that it is
    given, and one of 1 / k.
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
    """Trials whose probabilities are these numerators over one denominator."""
    return lambda going: _uniform(stream, denominator, going.size) < numerators[going]


def trials_before_a_failure(stream: SecretStream, size: int) -> _Whole:
    """How many trials of probability exp(-1) succeed before one fails."""
    counts, going = np.zeros(size, np.int64), np.arange(size)
    while going.size:
        going = going[exp_trials(stream, going.size, lambda places: np.ones(places.size, bool))]
        counts[going] += 1
    return counts
