"""Dominating pairs of noise mechanisms, by the shift between neighbours in units of the noise.

`LAWS` has a row for each event that has a pair.

*Additive noise with a log-concave law* (Gaussian, Laplace, discrete Laplace and Gaussian, in one dimension). The
likelihood ratio of the law and the same law shifted rises along the line. So by Neyman and Pearson's lemma half-lines,
with a coin at their end where the law is discrete, are the best tests of a shift, the same for shifts of either sign
and any size. With F the law, for a set A of mass F(h) for some half-line h: F shifted by a >= 0 gives A at most the
mass that it gives h, and shifted by -b at least. Hence for a mixture of shifts up to a_i to the one side against
shifts up to b_j to the other the pair sum_i p_i F(. - a_i), sum_j p_j F(. + b_j) dominates, whatever the shifts are
within these bounds:

    P(A) - tau Q(A) <= P(h) - tau Q(h).

*Many dimensions.* For the Gaussian, shifts of norm a are one dimension along the shift. For (discrete) Laplace noise
on each coordinate and shifts of L1 norm a, go from the one law to the other coordinate by coordinate: if the best
tests of two steps have power functions g and f (power as a function of size), the power of both together is at most
g(f(.)), as the power of the first step is the size of the second (as for groups in Dong, Roth & Su 2022). In one
dimension that is attained, by the half-line itself: so one coordinate with the sum of all shifts dominates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from ..events.noise_events import DiscreteGaussianDpEvent, DiscreteLaplaceDpEvent, MixtureOfGaussiansDpEvent
from ..events.specifications import DpEvent, EpsilonDeltaDpEvent, GaussianDpEvent, LaplaceDpEvent
from ..formulas.numeric import sampled_loss
from .atoms import REVEALED, LossAtoms, Tails, connect

REACH = 38.0  # standard deviations: beyond them a Gaussian has 3e-316
_FURTHER = 14.0  # beyond where an integrand of a Rényi divergence has its peak
_WIDTH, _RELATIVE = 0.01, 0.1  # of a cell: in standard deviations, and in nats
_MOST_CELLS = 1 << 17
_MOST_INTEGERS = 1 << 23
_MOST_FAR = 1 << 24  # integers on which Gaussian noise is laid; beyond, all counts as revealed
_MOST_SHIFT, _MOST_LOSS = 8.0e2, 1.0e9  # in standard deviations, and in nats: beyond, all counts as revealed
_LONG = 1.0e3  # shift in units of Laplace noise
_OUTSIDE = 1e-300  # above the mass of integers that are left out
_DEEP = 160.0  # nats below the top of a bounded loss, with a density below e^-80: taken together
_CELLS = 4000
MOST_SPREAD = 2.0e4
"""Standard deviation of integer noise up to which its values are added up one by one."""

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)

Parts = tuple[tuple[float, float], ...]
Directions = tuple[LossAtoms, ...]


def _log_mixture(parts: Parts, z: np.ndarray) -> np.ndarray:
    """log sum p e^{c z - c^2/2}, to full relative accuracy near 0 and without overflow."""
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
    """sum p N(c, 1) against sum p N(-c, 1), in one dimension.

    Parameters
    ----------
    plus, minus : tuple of (float, float)
        Probabilities, which sum to 1, and shifts of at least 0, in standard deviations.
    order : float
        Rényi order that is to be read off, to which places are covered; 1 for none.

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
        return log_p - _log_mixture(minus, -z), log_p - 0.5 * z * z - _LOG_SQRT_2PI

    def outside(parts: Parts, sign: float) -> tuple[float, float]:
        below = math.fsum(p * float(ndtr(bottom - sign * c)) for p, c in parts)
        return below, math.fsum(p * float(ndtr(sign * c - top)) for p, c in parts)

    below, above = outside(plus, 1.0)
    slope = np.maximum(np.abs(knots[:-1]), np.abs(knots[1:])) + (max(right, left) + 3.0)
    return connect(knots, density, slope, Tails(below, above, *outside(minus, -1.0)))


@lru_cache(maxsize=256)
def laplace(size: float) -> LossAtoms:
    """Laplace noise and a shift of `size` times its scale (density and ends of the loss as in `pld.pairs`)."""
    if size > _MOST_LOSS:
        return REVEALED
    bottom = max(-size, size - _DEEP)
    knots = np.linspace(bottom, size, max(_CELLS, math.ceil((size - bottom) * 200.0)) + 1)

    def density(loss: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return loss, 0.5 * (loss - size) - math.log(4.0)

    below = 0.0
    ends = [(size, -math.log(2.0))]
    if bottom > -size:
        below = 0.5 * math.exp(0.5 * (bottom - size))
    else:
        ends.append((-size, -size - math.log(2.0)))
    extra = np.array([loss for loss, _ in ends]), np.array([mass for _, mass in ends])
    q_below = 1.0 - 0.5 * math.exp(-0.5 * (bottom + size)) if bottom > -size else 0.0  # the loss is mirrored under Q
    return connect(knots, density, 0.5, Tails(below=below, q_below=q_below), extra)


def statement(epsilon: float, delta: float) -> LossAtoms:
    """The most revealing of all (epsilon, delta)-private mechanisms; see `pld.bounded`, with proof."""
    rest = math.log1p(-delta)
    if epsilon == 0.0:
        return LossAtoms(np.zeros(1), np.array([rest]), delta, delta)
    upper = rest - math.log1p(math.exp(-epsilon))
    return LossAtoms(np.array([-epsilon, epsilon]), np.array([upper - epsilon, upper]), delta, delta)


@lru_cache(maxsize=256)
def discrete_laplace(a: float, shift: int) -> LossAtoms:
    """Integer noise with masses tanh(a/2) e^{-a|x|}, against the same shifted by `shift`.

    The loss is a `shift` at 0 and below, -a `shift` from `shift` on, and a (shift - 2 x) at x between.
    """
    end = -math.log1p(math.exp(-a))  # of the mass at 0 and below: 1 / (1 + e^-a)
    inner = np.arange(1.0, min(shift, 1 + math.ceil(800.0 / a), _MOST_INTEGERS))
    loss = np.concatenate([[a * shift, -a * shift], a * (shift - 2.0 * inner)])
    log_weight = np.concatenate([[end, end - a * shift], math.log(math.tanh(0.5 * a)) - a * inner])
    left = inner.size + 1
    if left < shift:  # the rest is deep down: moved up to the last value that was counted
        log_weight[-1] = np.logaddexp(log_weight[-1], end - a * left)
        log_weight[1] = -math.inf
        gone = -math.expm1(end - a * (shift - left + 1)) - math.exp(end - a * left - loss[-1])
        return LossAtoms.of(loss, log_weight, 0.0, max(0.0, gone)).thinned()
    return LossAtoms.of(loss, log_weight).thinned()


@lru_cache(maxsize=64)
def discrete_gaussian(spread: float, shift: int, order: float = 1.0) -> LossAtoms:
    """Integer noise with masses in proportion to e^{-x^2 / (2 spread^2)}, against the same shifted by `shift`.

    The loss at x is (shift^2 - 2 shift x) / (2 spread^2).

    Parameters
    ----------
    spread : float
        At most `MOST_SPREAD`.
    shift : int
    order : float
        As in `gaussian_mixture`.

    Returns
    -------
    LossAtoms
    """
    if 2.0 * (_reach(spread, shift, order) + shift) > _MOST_FAR:
        return REVEALED
    x, log_weight = _integer_gaussian(spread, shift, order)
    loss = shift * (shift - 2.0 * x) / (2.0 * spread * spread)
    return LossAtoms.of(loss, log_weight, _OUTSIDE, _OUTSIDE).thinned()


def _reach(spread: float, shift: int, order: float) -> int:
    """How far from 0 integers are followed, before any shift."""
    return math.ceil(max(REACH * spread, (order - 1.0) * 2.0 * shift + _FURTHER * spread)) + 1


def _integer_gaussian(spread: float, shift: int, order: float) -> tuple[np.ndarray, np.ndarray]:
    """Integers, `shift` more to the right, and their log masses."""
    reach = _reach(spread, shift, order)
    x = np.arange(-reach - shift, shift + reach + 1, dtype=np.float64)
    squares = -0.5 * (x / spread) ** 2
    return x, squares - math.log(float(np.exp(squares).sum()))


def _both_ways(q: float, log_mass: np.ndarray, ahead: np.ndarray, behind: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Losses, and log masses under P, of (1-q) F + q F(. - a) against (1-q) F + q F(. + a).

    `ahead` and `behind` are the logs of F(. - a) / F and of F(. + a) / F, `log_mass` that of F.
    """
    forwards = sampled_loss(q, ahead)
    return forwards - sampled_loss(q, behind), log_mass + forwards


@lru_cache(maxsize=256)
def sampled_discrete_gaussian(q: float, spread: float, shift: int, order: float = 1.0) -> LossAtoms:
    """`discrete_gaussian` on a Poisson sample, shifted to the one side against the other: a record is replaced."""
    if 2.0 * (_reach(spread, shift, order) + shift) > _MOST_FAR:
        return REVEALED
    x, log_mass = _integer_gaussian(spread, shift, order)
    ahead = shift * (2.0 * x - shift) / (2.0 * spread * spread)
    loss, log_weight = _both_ways(q, log_mass, ahead, ahead[::-1])
    return LossAtoms.of(loss, log_weight, _OUTSIDE, _OUTSIDE).thinned()


@lru_cache(maxsize=256)
def sampled_discrete_laplace(q: float, a: float, shift: int) -> LossAtoms:
    """`discrete_laplace` on a Poisson sample, shifted to the one side against the other: a record is replaced."""
    x = np.arange(-float(shift), shift + 1.0)  # each end represents all beyond
    log_mass = math.log(math.tanh(0.5 * a)) - a * np.abs(x)
    log_mass[[0, -1]] = -a * shift - math.log1p(math.exp(-a))
    ahead = a * (np.abs(x) - np.abs(x - shift))
    loss, log_weight = _both_ways(q, log_mass, ahead, ahead[::-1])
    return LossAtoms.of(loss, log_weight).thinned()


@lru_cache(maxsize=256)
def sampled_laplace(q: float, size: float) -> LossAtoms:
    """`laplace` on a Poisson sample, shifted to the one side against the other: a record is replaced.

    In units of the noise's scale; beyond the shifts the loss is the same everywhere. If they are long, sampling is
    taken to show, which is a bound by joint convexity.
    """
    if size > _LONG:
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
    """Sensitivities that are drawn at random, of records that take part with probability `share`: else they are 0."""
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
    """What dominates the releases of one type of event.

    Attributes
    ----------
    pairs : callable
        Of an event, a change and an order: the pairs where a record adds something and where it is missing, or the one
        pair where both have the same H, at `change` times the bound on a record (2 if it is replaced). Unbounded losses
        are followed as far as the Rényi order asks.
    order_shift : callable
        How far one Rényi order moves the loss, in standard deviations of noise; 0 where the loss is bounded. By default
        inf, as nobody has said how to follow it: then there is no Rényi divergence, and none that is too small.
    replaced : callable or None
        Of an event, a share and an order: the pair of a Poisson sample in which a record is replaced, by the proof for
        log-concave laws. None: `LossAtoms.drawn_unseen`, which holds for all.
    """

    pairs: Callable[[Any, int, float], Directions]
    order_shift: Callable[[Any], float] = lambda event: math.inf
    replaced: Callable[[Any, float, float], LossAtoms] | None = None


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
"""By the type of the event; a type without a row has no pair."""
