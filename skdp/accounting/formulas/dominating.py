"""Dominating pairs as weighted losses, and their subsampling.

A pair (P, Q) is represented by the distribution of its loss log(P / Q) under P. A loss l with mass w under P has mass w
e^-l under Q. With H(tau) = sup over events of P - tau Q, a pair dominates a mechanism if its H is at least that of the
outputs for any two neighbors. Adaptive composition preserves dominance (Zhu, Dong & Wang 2022, Theorem 10), and so does
each operation below, because every H of the result is a mixture of values of H of the inputs.

*Poisson sampling, a record removed* (P with the record, Q without it). Let S be the sample of the others, and M the
mechanism. Given S, the outputs are (1-q) M(S) + q M(S + x) and M(S), and for tau >= 1 - q

    H(tau) <= q H_M((tau - 1 + q) / q),

by joint convexity over S; below 1 - q both sides are 1 - tau. This is H of ((1-q) Q + q P, Q), whose loss is log(1 - q
+ q e^l) if that of (P, Q) is l. For an added record, the pair is exchanged.

*A sample of fixed size, a record replaced.* The sample contains the record with probability q. Let m0 be the output
distribution without the record in the sample, and m1 and m1' those with it. Neighbors have the distributions (1-q) m0 +
q m1 and (1-q) m0 + q m1'. For tau >= 1 and tau' = 1 + q (tau - 1), b = tau' / tau,

    H(tau') = q H(m1, (1-b) m0 + b m1'; tau) <= q (1-b) H(m1, m0; tau) + q b H(m1, m1'; tau) <= q H_M(tau)

(Balle, Barthe & Gaboardi 2018, Theorems 2 and 9). The last step couples the samples: replacing x by another
record drawn uniformly yields a sample without x. So for tau' >= 1 the pair of Poisson sampling is valid. Below 1 it is
mirrored, H(tau) = 1 - tau + tau H(1 / tau), because neighbors can be exchanged. H is convex at
1, where the slopes are -1 + H(1) + Q(l > 0) and -Q(l > 0): for a symmetric pair 2 Q(l > 0) + H_M(1) <= 1, and q only
lowers H(1).

*Invisible sampling*: with probability 1 - q the outputs of neighbors are equal, otherwise they follow the pair. By
joint convexity H(tau) <= (1-q) (1 - tau)_+ + q H_M(tau).

**Two densities** are converted to weighted losses by connect-the-dots on cells of the output.
A loss l within a cell between losses a and b is split between them with weight (1 - e^{a-l}) / (1 - e^{a-b}) on b,
which preserves the mass of both P and Q and dominates the exact pair (Doroshenko, Ghazi, Kamath, Kumar & Manurangsi
2022). The masses within a cell are computed by quadrature, with an error bound of `numeric.ERROR`.

**Noise mechanisms**, by the shift between neighbors in units of the noise; `LAWS` has a row for each event with a pair.

*Additive noise with a log-concave distribution* (Gaussian, Laplace, discrete Laplace and Gaussian, in one dimension).
The likelihood ratio of the shifted and the original distribution is increasing. By the Neyman-Pearson lemma, half-lines
(randomized at their end for discrete distributions) are the best tests of a shift of any sign and size. Let F be the
distribution, and A a set with the mass F(h) of a half-line h. Then F shifted by a >= 0 assigns at most as much mass to
A as to h, and F shifted by -b at least as much. Hence, for a mixture of shifts up to a_i to one side against shifts up
to b_j to the other, the pair sum_i p_i F(. - a_i), sum_j p_j F(. + b_j) dominates, for all shifts within these bounds:

    P(A) - tau Q(A) <= P(h) - tau Q(h).

*Many dimensions.* For the Gaussian, a shift of norm a is one-dimensional along the shift. For (discrete) Laplace noise
in each coordinate and shifts of L1 norm a, change one distribution to the other coordinate by coordinate. If the best
tests of two steps have power functions f and g (power as a function of size), the power of both steps is at most
g(f(.)), because the power of the first step is the size of the second (as for groups in Dong, Roth & Su 2022). In one
dimension the half-line attains this bound, so one coordinate with the sum of all shifts dominates.

**Events**, for each adjacency and both directions of neighbors.
Under `add_remove` and `zero_out`, the first pair is for a present record and the second for an absent one; there is one
pair if both have the same H. Under `replace_one` neighbors can be exchanged, so there is always one pair.

*Poisson samples, a record replaced.* Given the other records of the sample, outputs are (1-q) M(S) + q M(S + x) and
(1-q) M(S) + q M(S + y). For additive noise with a log-concave distribution, the worst case is (1-q) F + q F(. - a)
against (1-q) F + q F(. + a). For other mechanisms, such as a guarantee for replaced records only, M(S) is unrelated to
M(S + x) and can reveal whether the record was drawn. It was not drawn with probability 1 - q, which yields
`LossAtoms.drawn_unseen`. A mechanism that reveals it attains this bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from skdp.accounting.events.kinds import sampled_form
from skdp.accounting.events.specifications import (
    DiscreteGaussianDpEvent,
    DiscreteLaplaceDpEvent,
    DpEvent,
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    MixtureOfGaussiansDpEvent,
)
from skdp.accounting.formulas.gaussian import LOG_SQRT_2PI
from skdp.accounting.formulas.numeric import GAUSS_LEGENDRE, MOST, number_of_nodes, sampled_loss

_MOST = 20_000  # losses of integer noise


@dataclass(frozen=True, eq=False)
class LossAtoms:
    """A pair (P, Q) of distributions.

    Attributes
    ----------
    loss, log_weight : array
        Losses log(P / Q), increasing, and the log of the mass of P at each.
    infinite : float
        Mass of P outside the support of Q.
    missing : float
        Mass of Q outside the support of P.
    """

    loss: np.ndarray
    log_weight: np.ndarray
    infinite: float = 0.0
    missing: float = 0.0

    @classmethod
    def of(cls, loss: np.ndarray, log_weight: np.ndarray, infinite: float = 0.0, missing: float = 0.0) -> LossAtoms:
        """Sort losses and omit those without mass."""
        kept = np.flatnonzero(log_weight > -math.inf)
        order = kept[np.argsort(loss[kept], kind="stable")]
        return cls(loss[order], log_weight[order], infinite, missing)

    @property
    def most(self) -> float:
        """Largest finite loss, at least 0."""
        return max(0.0, float(self.loss[-1])) if self.loss.size else 0.0

    def profile(self, epsilon: float) -> float:
        """Return H(e^epsilon), the hockey-stick divergence at epsilon."""
        above = self.loss > epsilon
        inside = np.exp(self.log_weight[above]) @ -np.expm1(epsilon - self.loss[above])
        return self.infinite + float(inside)

    def reversed(self) -> LossAtoms:
        """Return the pair (Q, P)."""
        return LossAtoms(-self.loss[::-1], (self.log_weight - self.loss)[::-1], self.missing, self.infinite)

    def thinned(self) -> LossAtoms:
        """Return a dominating pair with at most about `_MOST` losses; losses in between are split as in `cells`."""
        if self.loss.size <= _MOST:
            return self
        places = np.append(np.arange(0, self.loss.size - 1, -(-self.loss.size // _MOST)), self.loss.size - 1)
        kept = self.loss[places]
        # including 0 and mirror images: positive losses remain positive, as `fixed_sample` requires
        kept = np.unique(np.concatenate([kept, -kept, [0.0]]))
        kept = kept[(kept >= self.loss[0]) & (kept <= self.loss[-1])]
        if kept.size == 1:
            total = float(np.logaddexp.reduce(self.log_weight))
            return LossAtoms(kept, np.array([total]), self.infinite, self.missing)
        cell = np.clip(np.searchsorted(kept, self.loss, side="right") - 1, 0, kept.size - 2)
        low, high = kept[cell], kept[cell + 1]
        share = np.clip(np.expm1(low - self.loss) / np.expm1(low - high), 0.0, 1.0)
        # the largest log weight of each cell, to avoid underflow
        top = np.full(kept.size - 1, -math.inf)
        np.maximum.at(top, cell, self.log_weight)
        weight = np.exp(self.log_weight - top[cell])
        with np.errstate(divide="ignore"):
            up = top + np.log(np.bincount(cell, weight * share, kept.size - 1))
            down = top + np.log(np.bincount(cell, weight * (1.0 - share), kept.size - 1))
        log_weight = np.logaddexp(np.append(down, -math.inf), np.append(-math.inf, up))
        return LossAtoms.of(kept, log_weight, self.infinite, self.missing)

    def sampled_with(self, q: float) -> LossAtoms:
        """Return ((1-q) Q + q P, Q), the pair for removing a record that is sampled with probability q."""
        sampled = sampled_loss(q, self.loss)
        loss, log_weight = sampled, self.log_weight + (sampled - self.loss)
        if self.missing > 0.0 and q < 1.0:
            rest = math.log1p(-q)
            loss, log_weight = np.append(loss, rest), np.append(log_weight, rest + math.log(self.missing))
        return LossAtoms.of(loss, log_weight, q * self.infinite, self.missing if q == 1.0 else 0.0)

    def sampled_without(self, q: float) -> LossAtoms:
        """Return (P, (1-q) P + q Q), the pair for adding a record that is sampled with probability q."""
        loss, log_weight = -sampled_loss(q, -self.loss), self.log_weight
        if q == 1.0 or self.infinite == 0.0:
            return LossAtoms.of(loss, log_weight, self.infinite, q * self.missing)
        every = np.append(loss, -math.log1p(-q)), np.append(log_weight, math.log(self.infinite))
        return LossAtoms.of(*every, 0.0, q * self.missing)

    def fixed_sample(self, q: float) -> LossAtoms:
        """Return the pair of a sample of fixed size; this symmetric pair is for a sample with the replaced record."""
        up = self.loss > 1e-12 * self.most  # where losses rise along a line, that at its middle is 0 but for rounding
        base, log_mass = self.loss[up], self.log_weight[up]
        loss = sampled_loss(q, base)
        higher, lower = log_mass + (loss - base), log_mass - base
        infinite = q * self.infinite
        rest = 1.0 - infinite - float(np.exp(higher).sum() + np.exp(lower).sum())
        if rest < -1e-9:
            raise ArithmeticError("Samples of fixed size require a symmetric pair. Please report this as a bug.")
        middle = math.log(rest) if rest > 0.0 else -math.inf
        every = np.concatenate([-loss, [0.0], loss]), np.concatenate([lower, [middle], higher])
        return LossAtoms.of(*every, infinite, infinite)

    def drawn_unseen(self, q: float) -> LossAtoms:
        """Return the pair of outputs that are equal with probability 1 - q, and otherwise follow this pair."""
        loss, log_weight = np.append(self.loss, 0.0), np.append(self.log_weight + math.log(q), math.log1p(-q))
        return LossAtoms.of(loss, log_weight, q * self.infinite, q * self.missing)


# A pair with infinite losses, for losses that are too large to compute.
REVEALED = LossAtoms(np.zeros(1), np.array([-700.0]), 1.0, 1.0)


class Tails(NamedTuple):
    """Masses of P and Q below and above the cells."""

    below: float = 0.0
    above: float = 0.0
    q_below: float = 0.0
    q_above: float = 0.0


Density = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def _log_sum(logs: np.ndarray) -> np.ndarray:
    """Return the log of the sum of e^logs over the last axis."""
    top = logs.max(axis=-1)
    safe = np.where(top > -math.inf, top, 0.0)
    with np.errstate(divide="ignore"):
        result: np.ndarray = safe + np.log(np.exp(logs - safe[..., None]).sum(axis=-1))
    return result


def _split(
    knots: np.ndarray, at_knots: np.ndarray, density: Density, slope: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the log masses that are assigned to the lower and the upper end of each cell."""
    half = 0.5 * np.diff(knots)[:, None]
    node, weight = GAUSS_LEGENDRE[number_of_nodes(float((half[:, 0] * slope).max()))]
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
    """Return the pair of two densities whose loss increases with the position.

    Parameters
    ----------
    knots : array
        Ends of the cells, increasing.
    density : callable
        Function of positions that returns the loss and the log density of P.
    slope : array or float
        Slope for each cell, see `numeric.nodes`, for the components of P and Q.
    tails : Tails
        Masses outside. The mass of P below is moved to the first knot; the mass above has infinite loss.
    extra : tuple of array, optional
        Losses with point masses, and the logs of the masses.

    Returns
    -------
    LossAtoms

    Raises
    ------
    ArithmeticError
        If cells are too wide for the error bound.
    """
    at_knots, slopes = np.maximum.accumulate(density(knots)[0]), np.broadcast_to(slope, knots.size - 1)
    if float((0.5 * np.diff(knots) * slopes).max()) > max(MOST.values()):
        raise ArithmeticError("The grid cells are too wide for the densities. Please report this as a bug.")
    parts, step = [], 1 << 14  # cells per batch, to limit memory
    for k in range(0, knots.size - 1, step):
        kept = slice(k, k + step + 1)
        parts.append(_split(knots[kept], at_knots[kept], density, slopes[k : k + step]))
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


REACH = 38.0  # standard deviations: beyond them a Gaussian has 3e-316
_FURTHER = 14.0  # beyond the peak of an integrand of a Rényi divergence
_WIDTH, _RELATIVE = 0.01, 0.1  # of a cell: in standard deviations, and in nats
_MOST_CELLS = 1 << 17
_MOST_FAR = 1 << 24  # range of integers for Gaussian noise; beyond, the loss is treated as infinite
_MOST_SHIFT, _MOST_LOSS = 8.0e2, 1.0e9  # in standard deviations, and in nats; beyond, the loss is treated as infinite
_OUTSIDE = 1e-300  # above the mass of integers that are omitted
_DEEP = 160.0  # nats below the top of a bounded loss: densities below e^-80 are merged
_CELLS = 4000
# Largest standard deviation of integer-valued noise whose values are summed one by one.
MOST_SPREAD = 2.0e4


Parts = tuple[tuple[float, float], ...]
Directions = tuple[LossAtoms, ...]


def _log_mixture(parts: Parts, z: np.ndarray) -> np.ndarray:
    """Return log sum p e^{c z - c^2/2}, accurate near 0 and without overflow."""
    if len(parts) == 1:
        ((_, shift),) = parts
        return shift * z - 0.5 * shift * shift
    exponents = [(p, c * z - 0.5 * c * c) for p, c in parts]
    top = np.max([y for _, y in exponents], axis=0)
    near, far = np.zeros_like(z), np.zeros_like(z)
    for p, y in exponents:
        near += p * np.expm1(np.minimum(y, 30.0))
        far += p * np.exp(y - top)
    small = (near > -0.5) & (top < 30.0)
    return np.where(small, np.log1p(np.where(small, near, 0.0)), top + np.log(far))


@lru_cache(maxsize=256)
def gaussian_mixture(plus: Parts, minus: Parts = ((1.0, 0.0),), order: float = 1.0) -> LossAtoms:
    """Return the pair of sum p N(c, 1) and sum p N(-c, 1), in one dimension.

    Parameters
    ----------
    plus, minus : tuple of (float, float)
        Probabilities, which sum to 1, and shifts of at least 0, in standard deviations.
    order : float
        Rényi order for which the range is extended; 1 for none.

    Returns
    -------
    LossAtoms
    """
    right, left = max(c for _, c in plus), max(c for _, c in minus)
    most = right + left
    if most > _MOST_SHIFT:
        return REVEALED
    top = max(right + REACH, (order - 1.0) * most + right + _FURTHER)
    bottom = min(-left - REACH, -(order - 1.0) * most - left - _FURTHER)
    width = min(_WIDTH, _RELATIVE / most) if most > 0.0 else _WIDTH
    cells = min(math.ceil((top - bottom) / width), _MOST_CELLS)
    knots = np.linspace(bottom, top, cells + 1)

    def density(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        log_p = _log_mixture(plus, z)
        return log_p - _log_mixture(minus, -z), log_p - 0.5 * z * z - LOG_SQRT_2PI

    def outside(parts: Parts, sign: float) -> tuple[float, float]:
        below = math.fsum(p * float(ndtr(bottom - sign * c)) for p, c in parts)
        return below, math.fsum(p * float(ndtr(sign * c - top)) for p, c in parts)

    below, above = outside(plus, 1.0)
    slope = np.maximum(np.abs(knots[:-1]), np.abs(knots[1:])) + (max(right, left) + 3.0)
    return connect(knots, density, slope, Tails(below, above, *outside(minus, -1.0)))


@lru_cache(maxsize=256)
def laplace(size: float) -> LossAtoms:
    """Return the pair of Laplace noise and a shift of `size` times its scale, see `pld.pairs`."""
    if size > _MOST_LOSS:
        return REVEALED
    bottom = max(-size, size - _DEEP)
    knots = np.linspace(bottom, size, max(_CELLS, math.ceil((size - bottom) * 200.0)) + 1)

    def density(loss: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return loss, 0.5 * (loss - size) - math.log(4.0)

    # both ends have masses of their own
    losses, masses, tails = [size, -size], [-math.log(2.0), -size - math.log(2.0)], Tails()
    if bottom > -size:  # the lower end is omitted; the loss is mirrored under Q
        q_below = 1.0 - 0.5 * math.exp(-0.5 * (bottom + size))
        losses, masses, tails = losses[:1], masses[:1], Tails(0.5 * math.exp(0.5 * (bottom - size)), q_below=q_below)
    return connect(knots, density, 0.5, tails, (np.array(losses), np.array(masses)))


def statement(epsilon: float, delta: float) -> LossAtoms:
    """Return the pair of the worst (epsilon, delta)-private mechanism; see `pld.pairs` for the proof."""
    rest = math.log1p(-delta)
    if epsilon == 0.0:
        return LossAtoms(np.zeros(1), np.array([rest]), delta, delta)
    upper = rest - math.log1p(math.exp(-epsilon))
    return LossAtoms(np.array([-epsilon, epsilon]), np.array([upper - epsilon, upper]), delta, delta)


@lru_cache(maxsize=256)
def discrete_laplace(a: float, shift: int) -> LossAtoms:
    """Return the pair of noise with probabilities tanh(a/2) e^{-a|x|} and the same noise shifted by `shift`.

    The loss is a `shift` at 0 and below, -a `shift` from `shift` on, and a (shift - 2 x) at x between.
    """
    end = -math.log1p(math.exp(-a))  # of the mass at 0 and below: 1 / (1 + e^-a)
    inner = np.arange(1.0, min(shift, 1 + math.ceil(800.0 / a), 1 << 23))
    loss = np.concatenate([[a * shift, -a * shift], a * (shift - 2.0 * inner)])
    log_weight = np.concatenate([[end, end - a * shift], math.log(math.tanh(0.5 * a)) - a * inner])
    left = inner.size + 1
    if left < shift:  # the rest is negligible and moved to the last value
        log_weight[-1] = np.logaddexp(log_weight[-1], end - a * left)
        log_weight[1] = -math.inf
        gone = -math.expm1(end - a * (shift - left + 1)) - math.exp(end - a * left - loss[-1])
        return LossAtoms.of(loss, log_weight, 0.0, max(0.0, gone)).thinned()
    return LossAtoms.of(loss, log_weight).thinned()


@lru_cache(maxsize=64)
def discrete_gaussian(spread: float, shift: int, order: float = 1.0) -> LossAtoms:
    """Return the pair of noise with probabilities proportional to e^{-x^2 / (2 spread^2)} and the shifted noise.

    The loss at x is (shift^2 - 2 shift x) / (2 spread^2). `spread` is at most `MOST_SPREAD`; `order` is as in
    `gaussian_mixture`.
    """
    if 2.0 * (_reach(spread, shift, order) + shift) > _MOST_FAR:
        return REVEALED
    x, log_weight = _integer_gaussian(spread, shift, order)
    loss = shift * (shift - 2.0 * x) / (2.0 * spread * spread)
    return LossAtoms.of(loss, log_weight, _OUTSIDE, _OUTSIDE).thinned()


def _reach(spread: float, shift: int, order: float) -> int:
    """Return the range of integers around 0, before any shift."""
    return math.ceil(max(REACH * spread, (order - 1.0) * 2.0 * shift + _FURTHER * spread)) + 1


def _integer_gaussian(spread: float, shift: int, order: float) -> tuple[np.ndarray, np.ndarray]:
    """Return integers, with `shift` more to the right, and their log probabilities."""
    reach = _reach(spread, shift, order)
    x = np.arange(-reach - shift, shift + reach + 1, dtype=np.float64)
    squares = -0.5 * (x / spread) ** 2
    return x, squares - math.log(float(np.exp(squares).sum()))


def _both_ways(q: float, log_mass: np.ndarray, ahead: np.ndarray, behind: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return losses, and log masses under P, of (1-q) F + q F(. - a) and (1-q) F + q F(. + a).

    `ahead` and `behind` are the logs of F(. - a) / F and of F(. + a) / F, `log_mass` that of F.
    """
    forwards = sampled_loss(q, ahead)
    return forwards - sampled_loss(q, behind), log_mass + forwards


@lru_cache(maxsize=256)
def sampled_discrete_gaussian(q: float, spread: float, shift: int, order: float = 1.0) -> LossAtoms:
    """Return the pair of `discrete_gaussian` on a Poisson sample for a replaced record (opposite shifts)."""
    if 2.0 * (_reach(spread, shift, order) + shift) > _MOST_FAR:
        return REVEALED
    x, log_mass = _integer_gaussian(spread, shift, order)
    ahead = shift * (2.0 * x - shift) / (2.0 * spread * spread)
    loss, log_weight = _both_ways(q, log_mass, ahead, ahead[::-1])
    return LossAtoms.of(loss, log_weight, _OUTSIDE, _OUTSIDE).thinned()


@lru_cache(maxsize=256)
def sampled_discrete_laplace(q: float, a: float, shift: int) -> LossAtoms:
    """Return the pair of `discrete_laplace` on a Poisson sample for a replaced record (opposite shifts)."""
    x = np.arange(-float(shift), shift + 1.0)  # each end represents all beyond
    log_mass = math.log(math.tanh(0.5 * a)) - a * np.abs(x)
    log_mass[[0, -1]] = -a * shift - math.log1p(math.exp(-a))
    ahead = a * (np.abs(x) - np.abs(x - shift))
    loss, log_weight = _both_ways(q, log_mass, ahead, ahead[::-1])
    return LossAtoms.of(loss, log_weight).thinned()


@lru_cache(maxsize=256)
def sampled_laplace(q: float, size: float) -> LossAtoms:
    """Return the pair of `laplace` on a Poisson sample for a replaced record (opposite shifts).

    Shifts are in units of the noise scale; beyond them the loss is constant. For large shifts, the sample is assumed to
    be visible, which is an upper bound by joint convexity.
    """
    if size > 1e3:
        return laplace(2.0 * size).drawn_unseen(q)
    cells = min(max(_CELLS, math.ceil(2.0 * size / _WIDTH)), _MOST_CELLS)
    knots = np.linspace(-size, size, cells + cells % 2 + 1)  # 0 is one: the density has an edge there

    def density(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        log_mass = -np.abs(z) - math.log(2.0)
        return _both_ways(q, log_mass, np.abs(z) - np.abs(z - size), np.abs(z) - np.abs(z + size))

    ends = np.array([-size, size])
    flat = np.full(2, -size - math.log(2.0))  # F beyond either shift
    return connect(knots, density, 1.0, Tails(), _both_ways(q, flat, ends, -ends))


def mixture(event: MixtureOfGaussiansDpEvent, change: int, order: float, share: float = 1.0) -> Directions:
    """Return the pair of random sensitivities of records that are sampled with probability `share`."""
    total = math.fsum(event.sampling_probs)
    found: dict[float, float] = {0.0: 1.0 - share} if share < 1.0 else {}
    for shift, p in zip(event.sensitivities, event.sampling_probs, strict=True):
        at = shift / event.standard_deviation
        found[at] = found.get(at, 0.0) + share * p / total
    parts = tuple(sorted((p, c) for c, p in found.items() if p > 0.0))
    if change == 2:
        return (gaussian_mixture(parts, parts, order),)
    removed = gaussian_mixture(parts, order=order)
    return removed, removed.reversed()


class Law(NamedTuple):
    """Dominating pairs of one type of event.

    Attributes
    ----------
    pairs : callable
        Function of an event, a change and an order that returns the pairs for removing and adding a record, or one pair
        if both have the same H. `change` is a multiple of the bound of a record (2 if it is replaced). The range of
        unbounded losses depends on the Rényi order.
    order_shift : callable
        Function that returns the shift of the loss for one Rényi order, in standard deviations of noise; 0 for bounded
        losses. The default, inf, means that there is no Rényi divergence.
    replaced : callable or None
        Function of an event, a rate and an order that returns the pair of a Poisson sample for a replaced record, by
        the proof for log-concave distributions. If None, `LossAtoms.drawn_unseen`, which always holds.
    """

    pairs: Callable[[Any, int, float], Directions]
    order_shift: Callable[[Any], float] = lambda event: math.inf
    replaced: Callable[[Any, float, float], LossAtoms] | None = None


# By type of event; types without a row have no pair.
LAWS: dict[type[DpEvent], Law] = {
    GaussianDpEvent: Law(
        lambda e, change, order: (gaussian_mixture(((1.0, change / e.noise_multiplier),), order=order),),
        lambda e: 2.0 / e.noise_multiplier,
        lambda e, share, order: gaussian_mixture(
            parts := ((1.0 - share, 0.0), (share, 1.0 / e.noise_multiplier)), parts, order
        ),
    ),
    LaplaceDpEvent: Law(
        lambda e, change, order: (laplace(change / e.noise_multiplier),),
        lambda e: 0.0,
        lambda e, share, order: sampled_laplace(share, 1.0 / e.noise_multiplier),
    ),
    EpsilonDeltaDpEvent: Law(lambda e, change, order: (statement(e.epsilon, e.delta),), lambda e: 0.0),
    DiscreteLaplaceDpEvent: Law(
        lambda e, change, order: (discrete_laplace(e.noise_parameter, change * e.sensitivity),),
        lambda e: 0.0,
        lambda e, share, order: sampled_discrete_laplace(share, e.noise_parameter, e.sensitivity),
    ),
    DiscreteGaussianDpEvent: Law(
        lambda e, change, order: (discrete_gaussian(e.standard_deviation, change * e.sensitivity, order),),
        lambda e: 2.0 * e.sensitivity / e.standard_deviation,
        lambda e, share, order: sampled_discrete_gaussian(share, e.standard_deviation, e.sensitivity, order),
    ),
    MixtureOfGaussiansDpEvent: Law(mixture, lambda e: 2.0 * max(e.sensitivities) / e.standard_deviation),
}


def pair_rejection(event: DpEvent) -> str | None:
    """Return why an event has no pair for any adjacency; None if it has one."""
    inner = sampled_form(event)[2]
    if isinstance(inner, DiscreteGaussianDpEvent) and inner.standard_deviation > MOST_SPREAD:
        return f" with standard_deviation above {MOST_SPREAD:g}"
    return None


def has_pair(event: DpEvent) -> bool:
    """Return whether an event, or the event on its sample, has a pair for some adjacency."""
    return type(sampled_form(event)[2]) in LAWS


@lru_cache(maxsize=256)
def fixed_gaussian(share: float, noise_multiplier: float) -> Directions:
    """Return the pair of a Gaussian release from a sample of fixed size, for a replaced record."""
    return (gaussian_mixture(((1.0, 2.0 / noise_multiplier),)).fixed_sample(share),)


@lru_cache(maxsize=512)
def dominating(event: DpEvent, replace_one: bool, order: float = 1.0) -> Directions:
    """Return the dominating pairs of one release.

    Parameters
    ----------
    event : DpEvent
        Simplified event that supports the adjacency.
    replace_one : bool
        Whether neighbors replace a record.
    order : float
        Rényi order for which the range of unbounded losses is extended; 1 for none.

    Returns
    -------
    tuple of LossAtoms
        One for each direction of neighbors; one if both are the same.
    """
    kind, share, inner = sampled_form(event)
    law, change = LAWS[type(inner)], 2 if replace_one else 1
    if kind == "poisson" and isinstance(inner, MixtureOfGaussiansDpEvent):
        return mixture(inner, change, order, share)
    if kind == "poisson" and replace_one and law.replaced is not None:
        return (law.replaced(inner, share, order),)
    base = law.pairs(inner, change, order)
    if kind == "all":
        return base
    if kind == "fixed":
        return (base[0].fixed_sample(share),)
    if replace_one:
        return (base[0].drawn_unseen(share),)
    return base[0].sampled_with(share), base[-1].sampled_without(share)
