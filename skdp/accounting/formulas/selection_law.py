"""Distribution of the number of trials under random stopping, and its sampling.

K is drawn independently of the data and kept secret (Papernot & Steinke 2022). The privacy cost depends only on the
derivative of its generating function phi(x) = E[x^K], a power or an exponential:

    truncated negative binomial, shape eta    phi'(x) = m (gamma / (1 - (1 - gamma) x))^(eta + 1)
    Poisson                                   phi'(x) = m e^(m (x - 1))

with m = phi'(1) the mean. eta = 0 is the logarithmic and eta = 1 the geometric distribution; only Poisson can be 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import betaln, gammaln

from skdp.accounting.events.specifications import DpEvent, RepeatAndSelectDpEvent, read_whole, show
from skdp.accounting.formulas.numeric import bisect

_DEEPEST = 100.0  # tails below e^-100 are omitted from the table, as 128 bits do not reach them
_MOST_DRAWN = 1e4  # largest expected number of trials, which limits the table


def _mean_of_runs(gamma: float, shape: float) -> float:
    """Mean of the truncated negative binomial (Papernot & Steinke 2022, Definition 1)."""
    x = -math.log(gamma)
    grown = math.expm1(x)  # 1 / gamma - 1
    if grown == 0.0:
        return 1.0
    if shape * x < 1e-12:
        return grown / x
    return shape * grown / -math.expm1(-shape * x)


@lru_cache(maxsize=1024)
def halting_probability(mean: float, shape: float) -> float:
    """Return the parameter gamma of the truncated negative binomial with a given mean, rounded down.

    Parameters
    ----------
    mean : float
        At least 1.
    shape : float
        At least 0, finite.

    Returns
    -------
    float
        Gamma in (0, 1]. A smaller gamma has a larger privacy cost, so rounding down is safe.
    """
    if mean == 1.0:
        return 1.0

    def is_below(log_inverse: float) -> bool:
        return _mean_of_runs(math.exp(-log_inverse), shape) < mean  # the mean increases with log(1 / gamma)

    low, high = 0.0, 1.0
    while is_below(high):
        low, high = high, 2.0 * high
    return math.exp(-bisect(is_below, low, high, relative=1e-14)[1])


@lru_cache(maxsize=16)
def _tables(trials: NumberOfTrials) -> tuple[np.ndarray, np.ndarray]:
    """Return P(K <= k) and P(K > k) for k = 0, 1, ..., each summed from its own end."""
    k = np.arange(trials._longest() + 1)
    mass = trials.pmf(k)
    return np.cumsum(mass), np.concatenate([np.cumsum(mass[:0:-1])[::-1], [0.0]])


@dataclass(frozen=True)
class NumberOfTrials:
    """Distribution of the number of trials of a private selection.

    The same object is used to draw the number and to compute the privacy cost.

    Parameters
    ----------
    mean : float
        Expected number of trials; from 1 to 1e12.
    shape : float
        Type of the distribution: 0 for logarithmic, 1 for geometric, infinity for Poisson. Any other positive value is
        the shape of a truncated negative binomial distribution.
    """

    mean: float
    shape: float

    def __post_init__(self) -> None:
        event = RepeatAndSelectDpEvent(DpEvent(), self.mean, self.shape)  # validates the ranges
        object.__setattr__(self, "mean", event.mean)
        object.__setattr__(self, "shape", event.shape)

    @property
    def poisson(self) -> bool:
        """Whether this is the Poisson distribution, the only one that can be 0."""
        return self.shape == math.inf

    @property
    def gamma(self) -> float:
        """Parameter of the truncated negative binomial, in (0, 1]."""
        return halting_probability(self.mean, self.shape)

    @property
    def none(self) -> float:
        """Probability of zero trials."""
        return math.exp(-self.mean) if self.poisson else 0.0

    def event(self, run: DpEvent) -> RepeatAndSelectDpEvent:
        """Return the event of releasing the best output of all runs.

        Parameters
        ----------
        run : DpEvent
            Event of one run, including its score.

        Returns
        -------
        RepeatAndSelectDpEvent
            Event of the whole selection.
        """
        return RepeatAndSelectDpEvent(run, self.mean, self.shape)

    def pmf(self, k: object) -> np.ndarray:
        """Compute the probability of `k` trials, elementwise.

        Parameters
        ----------
        k : array-like
            Numbers of trials.

        Returns
        -------
        ndarray
            Probabilities; 0 for negative and non-integer numbers.
        """
        k = np.asarray(k, dtype=np.float64)
        whole = (k >= (0.0 if self.poisson else 1.0)) & (k == np.floor(k))
        n = np.where(whole, k, 1.0)
        if self.poisson:
            logs = n * math.log(self.mean) - self.mean - gammaln(n + 1.0)
        elif self.mean == 1.0:
            logs = np.where(n == 1.0, 0.0, -np.inf)
        else:
            log_gamma = math.log(self.gamma)
            logs = n * math.log1p(-self.gamma) - np.log(n)
            if self.shape == 0.0:
                logs = logs - math.log(-log_gamma)
            else:  # Gamma(n + eta) / (n! Gamma(eta)) = 1 / (n B(n, eta))
                total = math.log(-math.expm1(self.shape * log_gamma))
                logs = logs + self.shape * log_gamma - betaln(n, self.shape) - total
        return np.where(whole, np.exp(logs), 0.0)

    def pgf(self, x: float) -> float:
        """Compute the generating function E[x^K].

        Parameters
        ----------
        x : float
            Argument in [0, 1].

        Returns
        -------
        float
            Value of phi(x).
        """
        if self.poisson:
            return math.exp(self.mean * (x - 1.0))
        if self.mean == 1.0:
            return x
        log_rest, log_gamma = math.log1p((self.gamma - 1.0) * x), math.log(self.gamma)
        if self.shape * -log_gamma < 1e-12:
            return log_rest / log_gamma
        return math.expm1(-self.shape * log_rest) / math.expm1(-self.shape * log_gamma)

    def slope(self, t: np.ndarray) -> np.ndarray:
        """Compute phi'(1 - t), which bounds the factor of an output's probability in the selection.

        Parameters
        ----------
        t : ndarray
            Probabilities of a better output in one trial, in [0, 1].

        Returns
        -------
        ndarray
            Derivatives, at most `mean`.
        """
        if self.poisson:
            return self.mean * np.exp(-self.mean * t)
        return self.mean * (1.0 + (1.0 / self.gamma - 1.0) * t) ** -(self.shape + 1.0)

    def bend(self, t: np.ndarray) -> np.ndarray:
        """Compute phi''(1 - t).

        Parameters
        ----------
        t : ndarray
            Probabilities of a better output in one trial, in [0, 1].

        Returns
        -------
        ndarray
            Second derivatives.
        """
        if self.poisson:
            return self.mean * self.slope(t)
        rise = 1.0 / self.gamma - 1.0
        return (self.shape + 1.0) * rise / (1.0 + rise * t) * self.slope(t)

    def chances(self, cells: int) -> np.ndarray:
        """Return probabilities t from 0 to 1 between which phi'(1 - t) changes by about the same factor.

        Parameters
        ----------
        cells : int
            Number of intervals.

        Returns
        -------
        ndarray of shape (cells + 1,)
            Increasing probabilities.
        """
        steps = np.linspace(0.0, 1.0, cells + 1)
        if self.poisson or self.mean == 1.0:
            return steps
        rise = 1.0 / self.gamma - 1.0
        result: np.ndarray = np.minimum(np.expm1(steps * math.log1p(rise)) / rise, 1.0)
        result[-1] = 1.0
        return result

    def _longest(self) -> int:
        """Return a number of trials that is exceeded with probability below e^-100, by a geometric bound."""
        k = math.ceil(4.0 * self.mean) + 64
        while True:
            if self.poisson:
                ratio = self.mean / (k + 1.0)
            else:
                ratio = max((k + self.shape) / (k + 1.0), 1.0) * (1.0 - self.gamma)
            if ratio < 1.0 and float(self.pmf(k)) < (1.0 - ratio) * math.exp(-_DEEPEST):
                return k
            k += k // 4

    def draw(self, words: Iterable[int]) -> int:
        """Draw the number of trials by inversion of the distribution function.

        Parameters
        ----------
        words : iterable of int
            Independent uniform 64-bit words from a secret source; two suffice. With n words, every probability has an
            error of at most 2^{-64 n} plus a relative rounding error of 1e-11. The tail is summed from its own end, so
            that rare large numbers keep their probability.

        Returns
        -------
        int
            Number of trials. Keep it secret, including the duration of the search, which reveals it.
        """
        if self.mean > _MOST_DRAWN:
            raise ValueError(f"`mean` must be at most {_MOST_DRAWN:g} to draw the number of trials, got {self.mean!r}.")
        value, bits = 0, 0
        for word in words:
            whole = read_whole(word)
            if whole is None or not 0 <= whole < 1 << 64:
                raise ValueError(f"`words` must be integers from 0 to 2^64 - 1, got {show(word)}.")
            value, bits = (value << 64) | whole, bits + 64
        if bits == 0:
            raise ValueError("`words` must have at least one 64-bit word, got ().")
        below, above = _tables(self)
        if value >> (bits - 1) == 0:
            return int(np.searchsorted(below, value / (1 << bits), side="right"))
        left = ((1 << bits) - value) / (1 << bits)  # at most half, to full relative accuracy
        return int(np.searchsorted(-above, -left, side="right"))
