"""What can be said of a composition without composing it: a few numbers, and the bounds that follow from them."""

from __future__ import annotations

import math
from typing import NamedTuple

from ..dominating.pairs import Directions
from ..formulas.gaussian import gaussian_delta, gaussian_epsilon
from ..releases import Releases, SampledGaussian
from .discrete import paired

__all__ = ["MAX_SHIFT", "Simple"]

# Losses of noise multipliers below 1 / MAX_SHIFT are priced without the help of sampling: still a bound.
MAX_SHIFT = 1000.0
_STEEPEST = 1e14
_ROUNDING = 1e-14


class Simple(NamedTuple):
    """Numbers that are read off a composition of Gaussian, Laplace and (epsilon, delta) releases.

    Attributes
    ----------
    mu : float
        Mean shift of all Gaussian releases without sampling: never cheaper (joint convexity).
    pure : float
        Sum of the epsilons, or largest finite losses, of what is not Gaussian.
    revealed : float
        Probability that an (epsilon, delta) event, or a pair of infinite loss, reveals something outright.
    promised : float
        Sum of the deltas of these events, rounded up unless there is only one.
    closed : bool
        Whether one Gaussian, and what is revealed, are the whole answer: nothing else but Gaussians, unsampled or too
        loud for sampling to help, and (0, delta) events. With probability r such events reveal something outright, else
        they reveal nothing: the profile is r + (1 - r) times that of the Gaussian.
    steep : bool
        Whether losses are so large that doubles do not tell them apart: no grid, and simple bounds alone.
    """

    mu: float
    pure: float
    revealed: float
    promised: float
    closed: bool
    steep: bool

    @classmethod
    def of(cls, found: Releases, replace_one: bool) -> Simple:
        """The numbers of `found`; `replace_one` tells whether neighbours replace a record."""
        twice = 2.0 if replace_one else 1.0
        squares = found.mu_squared + sum(each.times / each.noise**2 for each in found.sampled)
        loud = found.mu_squared + sum(each.times / each.noise**2 for each in found.sampled if _is_loud(each))
        laplace = sum(each.times / each.noise for each in found.laplace) * twice
        weighted = [(*_statement(pairs), count) for pairs, count in paired(found, replace_one)]
        pure = laplace + sum(each.times * each.epsilon for each in found.epsilon_delta)
        pure = (pure + sum(count * most for most, _, count in weighted)) * (1.0 + 1e-13)
        shown = [(infinite, count) for _, infinite, count in weighted if infinite > 0.0]
        return cls(
            mu=math.sqrt(squares) * twice,
            pure=pure,
            revealed=_revealed(found, shown),
            promised=_promised(found) + sum(count * infinite for infinite, count in shown) * (1.0 + 1e-14),
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
        return (
            rest
            if self.revealed == 0.0
            else min(1.0, (self.revealed + (1.0 - self.revealed) * rest) * (1.0 + _ROUNDING))
        )

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


def _statement(pairs: Directions) -> tuple[float, float]:
    """The largest finite loss of a release, and the mass of infinite loss: an epsilon and a delta that hold."""
    return max(pair.most for pair in pairs), max(pair.infinite for pair in pairs)


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
    if any(each.delta >= 1.0 for each in found.epsilon_delta):
        return 1.0
    if _is_single(found):
        return found.epsilon_delta[0].delta
    return -math.expm1(sum(each.times * math.log1p(-each.delta) for each in found.epsilon_delta))


def _promised(found: Releases) -> float:
    total = sum(each.times * each.delta for each in found.epsilon_delta)
    return total * (1.0 if _is_single(found) else 1.0 + 1e-14)
