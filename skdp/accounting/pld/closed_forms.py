"""Closed forms and simple bounds of a composition, without numerical composition.

There are closed forms for one Gaussian, for repeated randomized response, and for one Poisson-sampled Gaussian:

*A record is removed or added.* With H the profile of the Gaussian by tau = e^epsilon, that of the pair "remove" is q
H((tau - 1 + q) / q) for tau >= 1 - q (Balle, Barthe & Gaboardi 2018, Theorem 2). For tau >= 1 that of "add" is no
larger: let h(a, b) be the supremum over events of a P - b Q. "Remove" has h(a + d, b + d) and "add" h(a, b), with a =
1 - tau (1 - q), b = tau q and d = (tau - 1) (1 - q), and at the best event A of the latter h(a + d, b + d) >= a P(A) -
b Q(A) + d (P(A) - Q(A)), where P(A) >= Q(A), as A is a half-line.

*A record is replaced.* At the point z where the loss of the pair "replace" is epsilon, with a = z - m, Mills' ratio R
and the normal density phi,

    delta = q phi(a) (u (R(a) - R(a + m)) + v (R(a) - R(a + 2 m))),

where u and v, which sum to 1, are the shares of (1-q) (tau - 1) phi(z) and of tau q phi(z + m) in their sum, which is
q phi(z - m). No term cancels.
"""

from __future__ import annotations

import math
import sys
from typing import NamedTuple

import numpy as np

from skdp.accounting.formulas.gaussian import (
    LOG_SQRT_2PI,
    gaussian_delta,
    gaussian_epsilon,
    mills_drop,
    randomized_response_delta,
    randomized_response_epsilon,
)
from skdp.accounting.formulas.numeric import bisect, sampled_loss
from skdp.accounting.pld.pairs import Pair, paired
from skdp.accounting.releases import Releases, SampledGaussian, Statement

# The bound ignores sampling for noise multipliers below 1 / MAX_SHIFT.
MAX_SHIFT = 1000.0
_STEEPEST = 1e14
_ROUNDING = 1e-14
_SAFE = 1e-11  # covers rounding of one sampled release


class Simple(NamedTuple):
    """Summary of a composition of Gaussian, Laplace and (epsilon, delta) releases.

    Attributes
    ----------
    mu : float
        Mean shift of all Gaussian releases without sampling, an upper bound (joint convexity).
    pure : float
        Sum of the epsilons, or largest finite losses, of all other releases.
    revealed : float
        Mass of infinite loss of (epsilon, delta) events and other pairs.
    promised : float
        Sum of the deltas of these events, rounded up if there are several.
    closed : bool
        Whether a Gaussian release and the mass r of infinite loss determine the result: the composition has only
        Gaussian releases without sampling, or with so little noise that sampling is ignored, and (0, delta) events. The
        profile is r + (1 - r) times that of the Gaussian.
    steep : bool
        Whether losses are too large for doubles to resolve, so that only simple bounds apply.
    """

    mu: float
    pure: float
    revealed: float
    promised: float
    closed: bool
    steep: bool

    @classmethod
    def of(cls, found: Releases, replace_one: bool) -> Simple:
        """Return the summary of `found`; `replace_one` is True if neighbors replace a record."""
        twice = 2.0 if replace_one else 1.0
        squares = found.mu_squared + sum(each.times / each.noise**2 for each in found.sampled)
        loud = found.mu_squared + sum(each.times / each.noise**2 for each in found.sampled if _is_loud(each))
        laplace = sum(each.times / each.noise for each in found.laplace) * twice
        # the largest finite loss of a release, and the mass of infinite loss: an epsilon and a delta that hold
        weighted = [
            (max(pair.most for pair in pairs), max(pair.infinite for pair in pairs), count)
            for pairs, count in paired(found, replace_one)
        ]
        pure = laplace + sum(each.times * each.epsilon for each in found.epsilon_delta)
        pure = (pure + sum(count * most for most, _, count in weighted)) * (1.0 + 1e-13)
        promised = sum(each.times * each.delta for each in found.epsilon_delta)
        shown = [(infinite, count) for _, infinite, count in weighted if infinite > 0.0]
        return cls(
            mu=math.sqrt(squares) * twice,
            pure=pure,
            revealed=_revealed(found, shown),
            promised=promised * (1.0 if _is_single(found) else 1.0 + 1e-14)
            + sum(count * infinite for infinite, count in shown) * (1.0 + 1e-14),
            closed=_is_one_gaussian(found),
            steep=loud > _STEEPEST or pure > _STEEPEST,
        )

    def known_epsilon(self, delta: float) -> float | None:
        """Epsilon where it follows from these numbers, and nothing has to be composed; None elsewhere."""
        if self.closed and self.revealed == 0.0:
            return gaussian_epsilon(delta, self.mu)
        left = delta - self.revealed
        if left < 0.0 or (left == 0.0 and self.mu > 0.0):
            return math.inf
        if left == 0.0 or (self.mu == 0.0 and self.pure == 0.0):
            return self.pure
        if not self.closed:
            return None
        left = (left - _ROUNDING * self.revealed) * (1.0 - _ROUNDING) / (1.0 - self.revealed)
        return gaussian_epsilon(left, self.mu) if left > 0.0 else math.inf

    def closed_delta(self, epsilon: float) -> float:
        """Delta at `epsilon` where the answer is closed."""
        rest = gaussian_delta(epsilon, self.mu)
        if self.revealed == 0.0:
            return rest
        return min(1.0, (self.revealed + (1.0 - self.revealed) * rest) * (1.0 + _ROUNDING))

    def epsilon_at(self, delta: float) -> float:
        """Epsilon without sampling, the rest by basic composition."""
        if self.mu == 0.0 and delta >= self.revealed:
            return self.pure
        left = delta - self.promised
        if left < 0.0 or (left == 0.0 and self.mu > 0.0):
            return math.inf
        return (gaussian_epsilon(left, self.mu) if self.mu > 0.0 else 0.0) + self.pure

    def delta_at(self, epsilon: float) -> float:
        """Delta without sampling, the rest by basic composition."""
        left = epsilon - self.pure
        return self.promised + (gaussian_delta(left, self.mu) if left >= 0.0 else 1.0)


def _is_loud(release: SampledGaussian) -> bool:
    """Whether noise is so small that sampling is of no help."""
    return 1.0 / release.noise > MAX_SHIFT


def _is_single(found: Releases) -> bool:
    """Whether there is one (epsilon, delta) event, whose delta needs no arithmetic and so no rounding."""
    return [each.times for each in found.epsilon_delta] == [1]


def _is_one_gaussian(found: Releases) -> bool:
    if found.paired or found.without_replacement:
        return False
    if found.laplace or found.selected or any(each.epsilon > 0.0 for each in found.epsilon_delta):
        return False
    return all(each.rate == 1.0 for each in found.sampled) or all(_is_loud(each) for each in found.sampled)


def _revealed(found: Releases, shown: list[tuple[float, int]]) -> float:
    if shown:
        every = [*shown, *((each.delta, each.times) for each in found.epsilon_delta)]
        if any(delta >= 1.0 for delta, _ in every):
            return 1.0
        return -math.expm1(math.fsum(count * math.log1p(-delta) for delta, count in every)) * (1.0 + 1e-14)
    if _is_single(found):
        return found.epsilon_delta[0].delta
    return -math.expm1(sum(each.times * math.log1p(-each.delta) for each in found.epsilon_delta))


def _log_delta(pair: Pair, epsilon: float) -> float:
    """Log of delta of a pair "replace"."""
    z = float(pair.place(np.array([epsilon]))[0])
    a = z - pair.m
    if a < -30.0:  # nearly all that is sampled is distinguished
        return math.log(pair.q) + _SAFE
    v = math.exp(min(epsilon - 2.0 * pair.m * z, 0.0))
    drop = (1.0 - v) * mills_drop(a, pair.m) + v * mills_drop(a, 2.0 * pair.m)
    return math.log(pair.q) - 0.5 * a * a - LOG_SQRT_2PI + math.log(drop) + _SAFE if drop > 0.0 else -math.inf


def _sampled_epsilon(q: float, noise: float, delta: float, replace_one: bool) -> float:
    """Epsilon of one release at `delta`, rounded up.

    Parameters
    ----------
    q : float
        Sampling probability, below 1.
    noise : float
        Noise multiplier.
    delta : float
        In (0, 1).
    replace_one : bool
        Whether neighbors replace a record.

    Returns
    -------
    float
        In nats, at least 0.
    """
    m = 1.0 / noise
    if delta >= q:
        return 0.0
    if not replace_one:
        inner = gaussian_epsilon(delta / q * (1.0 - _SAFE), m)
        return float(sampled_loss(q, np.array([inner]))[0]) * (1.0 + _SAFE)
    pair, log_delta = Pair("replace", q, m, 1), math.log(delta)
    top = gaussian_epsilon(delta, 2.0 * m)
    if top == 0.0 or _log_delta(pair, 0.0) <= log_delta:
        return 0.0
    return bisect(lambda at: _log_delta(pair, at) > log_delta, 0.0, top, relative=1e-13)[1] * (1.0 + _SAFE)


def _sampled_delta(q: float, noise: float, epsilon: float, replace_one: bool) -> float:
    """Delta of one release at `epsilon`, rounded up; the arguments are those of `_sampled_epsilon`."""
    if replace_one:
        log_delta = _log_delta(Pair("replace", q, 1.0 / noise, 1), epsilon)
        return min(q, max(math.exp(log_delta), sys.float_info.min))
    if epsilon == 0.0:
        return q * gaussian_delta(0.0, 1.0 / noise)
    inner = float(np.logaddexp(0.0, epsilon + math.log(-math.expm1(-epsilon)) - math.log(q)))
    return q * gaussian_delta(inner * (1.0 - _SAFE), 1.0 / noise)


def _response_alone(found: Releases) -> Statement | None:
    """The one kind of (epsilon, delta) event if there is nothing else: a binomial sum, without a grid."""
    if found.kinds != ("epsilon_delta",) or len(found.epsilon_delta) > 1:
        return None
    (only,) = found.epsilon_delta
    return only if only.times <= 10**4 and only.epsilon < 300.0 else None  # more round more


def _sampled_alone(found: Releases) -> SampledGaussian | None:
    """The one sampled Gaussian release, if there is nothing else: a closed form."""
    if found.kinds != ("sampled",) or len(found.sampled) > 1:
        return None
    (only,) = found.sampled
    return only if only.times == 1 and only.rate < 1.0 and 1.0 / only.noise <= MAX_SHIFT else None


def closed_epsilon(found: Releases, simple: Simple, delta: float, replace_one: bool) -> float | None:
    """Epsilon of repeated randomized response, or of one sampled Gaussian, in closed form; None for anything else."""
    response, sampled = _response_alone(found), _sampled_alone(found)
    if sampled is not None:
        return min(_sampled_epsilon(sampled.rate, sampled.noise, delta, replace_one), simple.epsilon_at(delta))
    if response is None:
        return None
    left = (delta - simple.revealed * (1.0 + _ROUNDING)) / (1.0 - simple.revealed) * (1.0 - _ROUNDING)
    return randomized_response_epsilon(response.epsilon, response.times, left) if left > 0.0 else math.inf


def closed_delta(found: Releases, simple: Simple, epsilon: float, replace_one: bool) -> float | None:
    """Delta of the same; None for anything else."""
    response, sampled = _response_alone(found), _sampled_alone(found)
    if sampled is not None:
        return min(_sampled_delta(sampled.rate, sampled.noise, epsilon, replace_one), simple.delta_at(epsilon))
    if response is None:
        return None
    rest = randomized_response_delta(response.epsilon, response.times, epsilon)
    return min(1.0, (simple.revealed + (1.0 - simple.revealed) * rest) * (1.0 + _ROUNDING))
