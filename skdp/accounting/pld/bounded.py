"""Pairs of bounded privacy loss: Laplace noise, and randomised response for an (epsilon, delta) promise.

They share the interface of `_pairs.Pair`, with the loss itself as the place.

- Laplace of scale b for a shift of 1 (Dong, Roth & Su 2022, Section 2; e = 1/b): under P the loss is e
  with probability 1/2, -e with e^{-e}/2, and has density e^{(l - e)/2} / 4 between.
- (epsilon, delta): the most revealing mechanism with that promise has loss infinite with probability
  delta, otherwise epsilon with probability e^epsilon / (1 + e^epsilon), else -epsilon (Kairouz, Oh &
  Viswanath 2017, who found it). Its composition bounds that of every such mechanism.

Proof of the latter. Let H(tau) = sup over A of P(A) - tau Q(A) for a pair that is (epsilon, delta)-private both ways,
and R(tau) the same of the pair above. Beyond e^epsilon, H falls and is at most delta = R. As H(tau) = 1 - tau +
tau H'(1 / tau), H' that of the exchanged pair, H(tau) <= 1 - tau + tau delta = R(tau) up to e^-epsilon. Between the
two H is convex, so below its chord, and R is straight, as no loss lies there. So H <= R: the pair dominates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from skdp._typing import Doubles

from ..formulas.quadrature import ERROR, rounding, rule
from .discrete import AtomsPair
from .pairs import Atoms, Pair
from .profiles import ProfilePair

__all__ = ["AnyPair", "LaplacePair", "ResponsePair"]

_DEEP = 160.0  # losses this far below the top have a density below e^-80 and are taken together


@dataclass(frozen=True)
class LaplacePair:
    """Laplace noise; its two directions are the same.

    Attributes
    ----------
    size : float
        Largest loss: shift divided by the noise's scale, above 0.
    count : int
        How often the release is made.
    """

    size: float
    count: int
    plain = False
    symmetric = True
    infinite = 0.0

    @property
    def rate(self) -> float:
        """No loss is larger."""
        return self.size

    @property
    def error(self) -> float:
        """Of its atoms."""
        return ERROR + rounding(-min(self.size, _DEEP) - 40.0, self.size)

    @property
    def variation(self) -> float:
        """Total variation of the pair."""
        return -math.expm1(-0.5 * self.size) * (1.0 + 1e-13)

    def span(self, log_low: float, log_lost: float, log_other: float) -> tuple[float, float]:
        """Range of the loss; nothing lies outside."""
        return -self.size, self.size

    def above(self, span: tuple[float, float]) -> tuple[float, float]:
        """Nothing lies above the span."""
        return 0.0, 0.0

    def raise_span(self, span: tuple[float, float], loss: float) -> tuple[float, float]:
        """`span` as it is: there is little to be saved."""
        return span

    def _atoms(self, knots: Doubles) -> Atoms:
        half = 0.5 * np.diff(knots)[:, None]
        # of densities e^{l/2} and e^{-l/2} in cells of up to a quarter: far below `ERROR`, and below that times `size`
        node, weight = rule(5)
        loss = (knots[:-1, None] + half * (node + 1.0)).ravel()
        with np.errstate(divide="ignore"):
            log_weight = np.log((half * weight).ravel()) + 0.5 * (loss - self.size) - math.log(4.0)
        keep = log_weight > -math.inf
        loss, log_weight = loss[keep], log_weight[keep]
        low = 0.0
        if knots[0] > -self.size:
            low = 0.5 * math.exp(0.5 * (float(knots[0]) - self.size))
        else:
            loss = np.concatenate([[-self.size], loss])
            log_weight = np.concatenate([[-self.size - math.log(2.0)], log_weight])
        top, half_mass = np.array([self.size]), np.array([-math.log(2.0)])
        loss, log_weight = np.concatenate([loss, top]), np.concatenate([log_weight, half_mass])
        return Atoms(loss, log_weight, low, 0.0).lift(self.error, self.rate)

    def _knots(self) -> Doubles:
        bottom = max(-self.size, self.size - _DEEP)
        return np.linspace(bottom, self.size, max(8, math.ceil((self.size - bottom) * 4.0)) + 1)

    def atoms(self, low: float, high: float) -> Atoms:
        """The pair as weighted losses, for moments."""
        return self._atoms(self._knots())

    def atoms_in_buckets(self, low: float, high: float, width: float, offset: float = 0.0) -> Atoms:
        """The same, with knots also where the loss is `offset` and a multiple of `width`."""
        knots = self._knots()
        ends = (knots[[0, -1]] - offset) / width
        grid = np.arange(math.floor(ends[0]) + 1, math.ceil(ends[1])) * width + offset
        return self._atoms(np.union1d(knots, grid[(grid > knots[0]) & (grid < knots[-1])]))


@dataclass(frozen=True)
class ResponsePair:
    """Randomised response with a chance to reveal all; its two directions are the same.

    Attributes
    ----------
    size : float
        Epsilon, at least 0.
    infinite : float
        Delta: mass of P at infinite loss, in [0, 1).
    count : int
        How often the release is made.
    """

    size: float
    infinite: float
    count: int
    plain = False
    symmetric = True

    @property
    def rate(self) -> float:
        """No loss is larger."""
        return self.size

    @property
    def error(self) -> float:
        """Of its atoms."""
        return rounding(-self.size, self.size)

    @property
    def variation(self) -> float:
        """Total variation of the pair."""
        return (self.infinite + (1.0 - self.infinite) * math.tanh(0.5 * self.size)) * (1.0 + 1e-13)

    def span(self, log_low: float, log_lost: float, log_other: float) -> tuple[float, float]:
        """Range of the finite loss."""
        return -self.size, self.size

    def above(self, span: tuple[float, float]) -> tuple[float, float]:
        """Nothing lies above the span."""
        return 0.0, 0.0

    def raise_span(self, span: tuple[float, float], loss: float) -> tuple[float, float]:
        """`span` as it is."""
        return span

    def atoms(self, low: float, high: float) -> Atoms:
        """Both finite losses."""
        rest = math.log1p(-self.infinite)
        if self.size == 0.0:
            return Atoms(np.zeros(1), np.array([rest]), 0.0, self.infinite)
        upper = rest - math.log1p(math.exp(-self.size))
        loss, log_weight = np.array([-self.size, self.size]), np.array([upper - self.size, upper])
        return Atoms(loss, log_weight, 0.0, self.infinite).lift(self.error, self.rate)

    def atoms_in_buckets(self, low: float, high: float, width: float, offset: float = 0.0) -> Atoms:
        """The same, as there is nothing to integrate."""
        return self.atoms(low, high)


AnyPair = Pair | LaplacePair | ResponsePair | ProfilePair | AtomsPair
