"""A dominating pair as weighted losses, and what sampling makes of one.

A pair (P, Q) is kept as the law of its loss log(P / Q) under P. What lies at a loss l with mass w under P has mass w
e^-l under Q. With H(tau) = sup over events of P - tau Q, a pair dominates a mechanism if its H is nowhere smaller than
that of any two neighbours' outputs. That is preserved by adaptive composition (Zhu, Dong & Wang 2022, Theorem 10), and
so is each operation below: every H of the result is a mixture of values of H of what it is made of.

*Poisson sampling, a record removed* (P with the record, Q without it). Let the others' sample be S, and M the
mechanism. Given S, the outputs are (1-q) M(S) + q M(S + x) and M(S), and for tau >= 1 - q

    H(tau) <= q H_M((tau - 1 + q) / q),

by joint convexity over S; below 1 - q both sides are 1 - tau. That is H of ((1-q) Q + q P, Q), whose loss is
log(1 - q + q e^l) where that of (P, Q) is l. A record that is added is the same pair in the other order.

*A sample of fixed size, a record replaced.* The record is in the sample with probability q. With m0 the law of outputs
given that it is not, m1 and m1' given that it is, neighbours are (1-q) m0 + q m1 and (1-q) m0 + q m1'. For tau >= 1 and
tau' = 1 + q (tau - 1), b = tau' / tau,

    H(tau') = q H(m1, (1-b) m0 + b m1'; tau) <= q (1-b) H(m1, m0; tau) + q b H(m1, m1'; tau) <= q H_M(tau)

(Balle, Barthe & Gaboardi 2018, Theorems 2 and 9). In the last step samples are coupled: a sample with x becomes one
without it by putting a uniformly drawn other record in its place. So for tau' >= 1 the pair of Poisson sampling
serves, and below 1 it is mirrored, H(tau) = 1 - tau + tau H(1 / tau), as neighbours may be exchanged. H is convex at
1, where the slopes are -1 + H(1) + Q(l > 0) and -Q(l > 0): for a symmetric pair 2 Q(l > 0) + H_M(1) <= 1, and q only
lowers H(1).

*Drawn or not, unseen*: with probability 1 - q the outputs of neighbours are the same, else those of the pair. By joint
convexity H(tau) <= (1-q) (1 - tau)_+ + q H_M(tau).

**Two densities** become weighted losses by connect-the-dots on cells of the place where the output lies.
A loss l within a cell between losses a and b is split between them with weight (1 - e^{a-l}) / (1 - e^{a-b}) on b,
which conserves the mass of both P and Q and dominates the exact pair (Doroshenko, Ghazi, Kamath, Kumar & Manurangsi
2022). Masses within a cell are those of a quadrature, whose error is bounded by `quadrature.ERROR`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..formulas.numeric import sampled_loss
from ..formulas.quadrature import MOST, number_of_nodes, rule

_MOST = 20_000  # losses of integer noise


@dataclass(frozen=True, eq=False)
class LossAtoms:
    """A pair (P, Q) of distributions.

    Attributes
    ----------
    loss : array
        Losses log(P / Q), rising.
    log_weight : array
        Log of the mass of P at each.
    infinite : float
        Mass of P where Q has none.
    missing : float
        Mass of Q where P has none.
    """

    loss: np.ndarray
    log_weight: np.ndarray
    infinite: float = 0.0
    missing: float = 0.0

    @classmethod
    def of(cls, loss: np.ndarray, log_weight: np.ndarray, infinite: float = 0.0, missing: float = 0.0) -> LossAtoms:
        """Sort losses, and leave out what has no mass."""
        kept = np.flatnonzero(log_weight > -math.inf)
        order = kept[np.argsort(loss[kept], kind="stable")]
        return cls(loss[order], log_weight[order], infinite, missing)

    @property
    def most(self) -> float:
        """The largest finite loss, at least 0."""
        return max(0.0, float(self.loss[-1])) if self.loss.size else 0.0

    def profile(self, epsilon: float) -> float:
        """H(e^epsilon): the mass of P that is above e^epsilon times that of Q."""
        above = self.loss > epsilon
        inside = np.exp(self.log_weight[above]) @ -np.expm1(epsilon - self.loss[above])
        return self.infinite + float(inside)

    def reversed(self) -> LossAtoms:
        """The pair (Q, P)."""
        return LossAtoms(-self.loss[::-1], (self.log_weight - self.loss)[::-1], self.missing, self.infinite)

    def thinned(self) -> LossAtoms:
        """A pair of at most about `_MOST` losses that dominates this one: those between are split as in `cells`."""
        if self.loss.size <= _MOST:
            return self
        places = np.append(np.arange(0, self.loss.size - 1, -(-self.loss.size // _MOST)), self.loss.size - 1)
        kept = self.loss[places]
        # 0 and mirror images too: what is above 0 stays there, as `fixed_sample` needs
        kept = np.unique(np.concatenate([kept, -kept, [0.0]]))
        kept = kept[(kept >= self.loss[0]) & (kept <= self.loss[-1])]
        if kept.size == 1:
            total = float(np.logaddexp.reduce(self.log_weight))
            return LossAtoms(kept, np.array([total]), self.infinite, self.missing)
        cell = np.clip(np.searchsorted(kept, self.loss, side="right") - 1, 0, kept.size - 2)
        low, high = kept[cell], kept[cell + 1]
        share = np.clip(np.expm1(low - self.loss) / np.expm1(low - high), 0.0, 1.0)
        # the greatest log weight of each cell, so that no weight is lost to underflow
        top = np.full(kept.size - 1, -math.inf)
        np.maximum.at(top, cell, self.log_weight)
        weight = np.exp(self.log_weight - top[cell])
        with np.errstate(divide="ignore"):
            up = top + np.log(np.bincount(cell, weight * share, kept.size - 1))
            down = top + np.log(np.bincount(cell, weight * (1.0 - share), kept.size - 1))
        log_weight = np.logaddexp(np.append(down, -math.inf), np.append(-math.inf, up))
        return LossAtoms.of(kept, log_weight, self.infinite, self.missing)

    def sampled_with(self, q: float) -> LossAtoms:
        """((1-q) Q + q P, Q): a record that takes part with probability q is removed."""
        sampled = sampled_loss(q, self.loss)
        loss, log_weight = sampled, self.log_weight + (sampled - self.loss)
        if self.missing > 0.0 and q < 1.0:
            rest = math.log1p(-q)
            loss, log_weight = np.append(loss, rest), np.append(log_weight, rest + math.log(self.missing))
        return LossAtoms.of(loss, log_weight, q * self.infinite, self.missing if q == 1.0 else 0.0)

    def sampled_without(self, q: float) -> LossAtoms:
        """(P, (1-q) P + q Q): a record that takes part with probability q is added."""
        loss, log_weight = -sampled_loss(q, -self.loss), self.log_weight
        if q == 1.0 or self.infinite == 0.0:
            return LossAtoms.of(loss, log_weight, self.infinite, q * self.missing)
        every = np.append(loss, -math.log1p(-q)), np.append(log_weight, math.log(self.infinite))
        return LossAtoms.of(*every, 0.0, q * self.missing)

    def fixed_sample(self, q: float) -> LossAtoms:
        """The pair of a sample of fixed size, of which this symmetric pair is one with the replaced record in it."""
        up = self.loss > 1e-12 * self.most  # where losses rise along a line, that at its middle is 0 but for rounding
        base, log_mass = self.loss[up], self.log_weight[up]
        loss = sampled_loss(q, base)
        higher, lower = log_mass + (loss - base), log_mass - base
        infinite = q * self.infinite
        rest = 1.0 - infinite - float(np.exp(higher).sum() + np.exp(lower).sum())
        if rest < -1e-9:
            raise ArithmeticError("a pair that is not symmetric has no sample of fixed size; report this as an error")
        middle = math.log(rest) if rest > 0.0 else -math.inf
        every = np.concatenate([-loss, [0.0], loss]), np.concatenate([lower, [middle], higher])
        return LossAtoms.of(*every, infinite, infinite)

    def drawn_unseen(self, q: float) -> LossAtoms:
        """Outputs that are the same with probability 1 - q, and else those of this pair."""
        loss, log_weight = np.append(self.loss, 0.0), np.append(self.log_weight + math.log(q), math.log1p(-q))
        return LossAtoms.of(loss, log_weight, q * self.infinite, q * self.missing)


REVEALED = LossAtoms(np.zeros(1), np.array([-700.0]), 1.0, 1.0)
"""A pair of which each output tells all: for losses so large that nothing else is worth being computed."""


_PART = 1 << 14  # cells at a time: memory stays small


class Tails(NamedTuple):
    """Masses outside the cells: of P below and above them, and of Q."""

    below: float = 0.0
    above: float = 0.0
    q_below: float = 0.0
    q_above: float = 0.0


Density = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def _log_sum(logs: np.ndarray) -> np.ndarray:
    """Log of the sum of e^logs over the last axis."""
    top = logs.max(axis=-1)
    safe = np.where(top > -math.inf, top, 0.0)
    with np.errstate(divide="ignore"):
        result: np.ndarray = safe + np.log(np.exp(logs - safe[..., None]).sum(axis=-1))
    return result


def _split(
    knots: np.ndarray, at_knots: np.ndarray, density: Density, slope: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """For each cell the log mass that goes to its lower and to its upper end."""
    half = 0.5 * np.diff(knots)[:, None]
    node, weight = rule(number_of_nodes(float((half[:, 0] * slope).max())))
    loss, log_density = density(knots[:-1, None] + half * (node + 1.0))
    low, high = at_knots[:-1, None], at_knots[1:, None]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        share = np.where(high > low, np.expm1(low - loss) / np.expm1(low - high), 1.0)
        share = np.clip(share, 0.0, 1.0)
        log_mass = log_density + np.log(half * weight)
        return _log_sum(log_mass + np.log1p(-share)), _log_sum(log_mass + np.log(share))


def connect(
    knots: np.ndarray,
    density: Density,
    slope: np.ndarray | float,
    tails: Tails,
    extra: tuple[np.ndarray, np.ndarray] | None = None,
) -> LossAtoms:
    """The pair of two densities, of which the loss rises with the place.

    Parameters
    ----------
    knots : array
        Ends of the cells, rising.
    density : callable
        Of places, of any shape: the loss there, and the log of the density of P.
    slope : array or float
        Of each cell, as `quadrature.nodes` takes it, for the densities of which P and Q are mixtures.
    tails : Tails
        What lies outside. The mass of P below is moved up to the first knot, that above is lost.
    extra : tuple of array, optional
        Losses with masses of their own, and the logs of these.

    Returns
    -------
    LossAtoms

    Raises
    ------
    ArithmeticError
        If cells are too wide for a bound on the error.
    """
    at_knots, slopes = np.maximum.accumulate(density(knots)[0]), np.broadcast_to(slope, knots.size - 1)
    if float((0.5 * np.diff(knots) * slopes).max()) > max(MOST.values()):
        raise ArithmeticError("cells are too wide for the densities in them; report this as an error")
    parts = []
    for k in range(0, knots.size - 1, _PART):
        kept = slice(k, k + _PART + 1)
        parts.append(_split(knots[kept], at_knots[kept], density, slopes[k : k + _PART]))
    down, up = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    log_weight = np.logaddexp(np.append(down, -math.inf), np.append(-math.inf, up))
    if tails.below > 0.0:
        log_weight[0] = np.logaddexp(log_weight[0], math.log(tails.below))
    loss = at_knots
    if extra:
        loss, log_weight = np.append(loss, extra[0]), np.append(log_weight, extra[1])
    missing = tails.q_above
    if tails.q_below > 0.0:
        moved = math.log(tails.below) - at_knots[0] if tails.below > 0.0 else -math.inf
        missing += max(0.0, tails.q_below - math.exp(min(moved, 0.0)))
    return LossAtoms.of(loss, log_weight, tails.above, missing)
