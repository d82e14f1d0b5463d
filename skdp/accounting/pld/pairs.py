"""Dominating pairs of releases and their privacy losses.

The pairs of the (Poisson-sampled) Gaussian are in units of the noise: z = x / sigma, m = 1 / sigma, and

    remove   P = (1-q) N(0,1) + q N(m,1)   Q = N(0,1)
    add      P = N(0,1)                    Q = (1-q) N(0,1) + q N(-m,1)   (z mirrored: the loss increases)
    replace  P = (1-q) N(0,1) + q N(m,1)   Q = (1-q) N(0,1) + q N(-m,1)

With q = 1 the first is the plain Gaussian. The loss log(P/Q) increases with z in all three. The first two are those of
Zhu, Dong & Wang 2022, the third is dp-accounting's `REPLACE_ONE`. One proof shows that they dominate. Let the record x
be replaced by y, both of norm at most m, or 0 for an absent record. Given the sample of the other records, the outputs
are, up to a common shift, (1-q) N(0, I) + q N(x, I) and (1-q) N(0, I) + q N(y, I). Hockey-stick divergences are jointly
convex, so the worst case is one such sample. For a set A with Phi(t) = N(0, I)(A), the Neyman-Pearson lemma implies
N(x, I)(A) <= Phi(t + |x|) and N(y, I)(A) >= Phi(t - |y|). Hence, for every tau >= 0,

    P'(A) - tau Q'(A) <= (1-q) (1-tau) Phi(t) + q Phi(t + |x|) - tau q Phi(t - |y|),

which increases with |x| and |y|, and with both at their bounds is P - tau Q of the half-line above -t in the pair.

For all other releases, the position is the loss itself:

- Laplace of scale b for a shift of 1 (Dong, Roth & Su 2022, Section 2; e = 1/b): under P the loss is e
  with probability 1/2, -e with e^{-e}/2, and has density e^{(l - e)/2} / 4 between.
- (epsilon, delta): the worst mechanism with this guarantee has infinite loss with probability delta, otherwise loss
  epsilon with probability e^epsilon / (1 + e^epsilon), else -epsilon (Kairouz, Oh & Viswanath 2017). Its composition
  bounds that of every such mechanism.
- Weighted losses: all events with a pair in `dominating`.

Proof for (epsilon, delta). Let H(tau) = sup over A of P(A) - tau Q(A) for a pair that is (epsilon, delta)-private both
ways, and R(tau) the same of the pair above. Beyond e^epsilon, H falls and is at most delta = R. As H(tau) = 1 - tau +
tau H'(1 / tau), H' that of the exchanged pair, H(tau) <= 1 - tau + tau delta = R(tau) up to e^-epsilon. Between the two
H is convex, so below its chord, and R is straight, as no loss lies there. So H <= R: the pair dominates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from skdp.accounting.formulas.dominating import Directions, LossAtoms, dominating, fixed_gaussian, statement
from skdp.accounting.formulas.gaussian import LOG_SQRT_2PI, mixture_loss
from skdp.accounting.formulas.numeric import ERROR, GAUSS_LEGENDRE, nodes, rounding
from skdp.accounting.releases import Releases

_DEEP = 160.0  # losses this far below the top have a density below e^-80 and are merged
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(4)


class Atoms(NamedTuple):
    """A weighted set of losses: `loss` increases, `log_weight` is the log of its probability under P.

    `low` is the mass under P below the first loss, `lost` the mass above the last. `room` is by how much masses,
    relative, and losses are raised (`lift`); it is 0 where atoms only serve to find out where to look.
    """

    loss: np.ndarray
    log_weight: np.ndarray
    low: float
    lost: float
    room: float = 0.0

    def lift(self, error: float, rate: float) -> Atoms:
        """Atoms that dominate these, whatever was rounded: with an error as in `numeric`, at a sampling rate."""
        room = 2.0 * error
        loss = self.loss + room * np.minimum(1.0, rate + np.abs(self.loss))
        return Atoms(loss, self.log_weight + math.log1p(room), self.low, self.lost, self.room + room)


def _mixture_place(q: float, m: float, loss: np.ndarray) -> np.ndarray:
    """Return the z at which `mixture_loss` is `loss`; -inf below its infimum log(1 - q)."""
    if q == 1.0:
        return loss / m + 0.5 * m
    with np.errstate(divide="ignore", invalid="ignore"):
        near = np.log1p(np.maximum(np.expm1(np.minimum(loss, 30.0)) / q, -1.0))
        far = loss - math.log(q) + np.log1p((q - 1.0) * np.exp(-np.maximum(loss, 30.0)))
    return np.where(loss <= 30.0, near, far) / m + 0.5 * m


@dataclass(frozen=True)
class Pair:
    """A pair of distributions, one direction of one release.

    Attributes
    ----------
    kind : {"remove", "add", "replace"}
    q : float
        Sampling probability in (0, 1].
    m : float
        Shift in units of the noise: 1 / noise_multiplier.
    count : int
        Number of repetitions.
    """

    kind: str
    q: float
    m: float
    count: int
    size = 0.0

    def loss(self, z: np.ndarray) -> np.ndarray:
        """Privacy loss at `z`, increasing."""
        if self.kind == "remove":
            return mixture_loss(self.q, self.m, z)
        mirrored = mixture_loss(self.q, self.m, -z)
        return -mirrored if self.kind == "add" else mixture_loss(self.q, self.m, z) - mirrored

    def place(self, loss: np.ndarray) -> np.ndarray:
        """The z with that loss, infinite where the loss cannot be reached."""
        if self.kind == "remove":
            return _mixture_place(self.q, self.m, loss)
        if self.kind == "add":
            return -_mixture_place(self.q, self.m, -loss)
        if self.q == 1.0:
            return loss / (2.0 * self.m)
        size = np.abs(loss)
        with np.errstate(divide="ignore"):
            # e^{z m} = e^{l/2} (w + sqrt(1 + w^2)), w = (1-q) sinh(l/2) e^{m^2/2} / q, for l >= 0
            log_sinh = 0.5 * size + np.log(-np.expm1(-size)) - math.log(2.0)
        log_w = math.log1p(-self.q) - math.log(self.q) + 0.5 * self.m**2 + log_sinh
        # asinh(w) without overflow
        asinh = np.where(log_w > 300.0, log_w + math.log(2.0), np.arcsinh(np.exp(np.minimum(log_w, 300.0))))
        return np.sign(loss) * (0.5 * size + asinh) / self.m

    @property
    def rate(self) -> float:
        """Sampling probability of a record."""
        return self.q

    @property
    def symmetric(self) -> bool:
        """Whether both directions of neighbors have this pair."""
        return self.q == 1.0 or self.kind == "replace"

    @property
    def infinite(self) -> float:
        """Mass of P at infinite loss."""
        return 0.0

    @property
    def variation(self) -> float:
        """Bound on the total variation: q times the Gaussian's, by joint convexity."""
        shift = 2.0 * self.m if self.kind == "replace" else self.m
        return self.q * math.erf(shift / math.sqrt(8.0)) * (1.0 + 1e-13)

    def raise_span(self, span: tuple[float, float], loss: float) -> tuple[float, float]:
        """Return `span` without the positions whose loss is below `loss`."""
        low = float(self.place(np.array([loss]))[0])
        return max(span[0], min(low, span[1] - 1e-3 * (span[1] - span[0]))), span[1]

    def tails(self, low: float, high: float) -> tuple[float, float]:
        """Mass of P below `low` and above `high`."""
        below, above = float(ndtr(low)), float(ndtr(-high))
        if self.kind == "add":
            return below, above
        shift = (float(ndtr(low - self.m)), float(ndtr(self.m - high)))
        return (1.0 - self.q) * below + self.q * shift[0], (1.0 - self.q) * above + self.q * shift[1]

    def above(self, span: tuple[float, float]) -> tuple[float, float]:
        """Mass of P above the span, and a bound on that of Q."""
        high = span[1]
        other = high + self.m if self.kind == "replace" and self.q == 1.0 else high
        return self.tails(*span)[1], float(ndtr(-other))

    def span(self, log_low: float, log_lost: float, log_other: float) -> tuple[float, float]:
        """Range of z outside which P has at most e^{log_low} below; above it P has e^{log_lost} or Q has e^{log_other}.

        Q is a mixture of N(0, 1) and of what lies below it, so its tail is no larger than that of N(0, 1).
        """
        rest = math.log1p(-self.q) if self.q < 1.0 else -math.inf

        def reach(log_share: float, log_mass: float) -> float:
            return math.sqrt(2.0 * max(0.0, log_share + math.log(2.0) - log_mass))

        other = reach(0.0, log_other) - (self.m if self.kind == "replace" and self.q == 1.0 else 0.0)
        if self.kind == "add":
            return -reach(0.0, log_low), min(reach(0.0, log_lost), other)
        low = min(-reach(rest, log_low) if rest > log_low else self.m, self.m - reach(math.log(self.q), log_low))
        high = max(reach(rest, log_lost), self.m + reach(math.log(self.q), log_lost))
        return low, max(min(high, other), low + 1e-3)

    def _knots(self, low: float, high: float) -> np.ndarray:
        """Return points between which moments are smooth enough for four Gauss nodes."""
        points = [np.linspace(low, high, max(8, int((high - low) * 8.0)) + 1)]
        if self.q < 1.0:
            # where the two parts of the mixture are equal, the loss turns from flat to slope m
            turn = 0.5 * self.m + (math.log1p(-self.q) - math.log(self.q)) / self.m
            bend = np.linspace(-36.0, 36.0, 145) / self.m
            for center in {"remove": (turn,), "add": (-turn,), "replace": (-turn, turn)}[self.kind]:
                points.append(center + bend)
        joined = np.concatenate(points)
        return np.unique(joined[(joined >= low) & (joined <= high)])

    def _atoms(self, z: np.ndarray, weight: np.ndarray, low: float, high: float) -> Atoms:
        loss = self.loss(z)
        base = -0.5 * z * z - LOG_SQRT_2PI
        if self.kind == "remove":
            base = base + loss
        elif self.kind == "replace":
            base = base + mixture_loss(self.q, self.m, z)
        below, above = self.tails(low, high)
        return Atoms(loss, base + np.log(weight), below, above)

    def atoms(self, low: float, high: float) -> Atoms:
        """The pair on [low, high] as some hundreds of weighted losses: for moments, not for bounds.

        Parameters
        ----------
        low, high : float
            Range of z.

        Returns
        -------
        Atoms
            Moments are accurate to about 1e-10.
        """
        knots = self._knots(low, high)
        half = 0.5 * np.diff(knots)[:, None]
        return self._atoms((knots[:-1, None] + half * (_NODES + 1.0)).ravel(), (half * _WEIGHTS).ravel(), low, high)

    def atoms_in_buckets(self, low: float, high: float, width: float, offset: float = 0.0) -> Atoms:
        """The same for bounds, with knots also where the loss is `offset` and a multiple of `width`.

        No quadrature interval then crosses a grid point, so that splitting each atom between its two grid
        neighbors is as accurate as splitting the exact mass between them. `P` and `Q` are mixtures of normal densities
        whose centers are at most `m` from 0.
        """
        ends = (self.loss(np.array([low, high])) - offset) / width
        crossings = self.place(np.arange(math.floor(ends[0]) + 1, math.ceil(ends[1])) * width + offset)
        crossings = crossings[(crossings > low) & (crossings < high)]
        knots = np.union1d(np.linspace(low, high, 65), crossings)
        z, weight = nodes(knots, np.maximum(np.abs(knots[:-1]), np.abs(knots[1:])) + (self.m + 3.0))
        atoms = self._atoms(z, weight, low, high)
        size = self.m * (max(abs(low), abs(high)) + self.m)
        least, loss = float(atoms.log_weight.min()), float(np.abs(atoms.loss).max())
        return atoms.lift(ERROR + rounding(least, loss, size), self.q)


class Bounded:
    """Losses between two ends, which are followed as a whole; both directions are the same."""

    symmetric = True
    atoms: Callable[[float, float], Atoms]
    """The pair as weighted losses, for moments; a method of each subclass."""

    def above(self, span: tuple[float, float]) -> tuple[float, float]:
        """Return 0: no finite loss lies above the span."""
        return 0.0, 0.0

    def raise_span(self, span: tuple[float, float], loss: float) -> tuple[float, float]:
        """Return `span` unchanged."""
        return span

    def atoms_in_buckets(self, low: float, high: float, width: float, offset: float = 0.0) -> Atoms:
        """Return the same losses, as there is nothing to integrate."""
        return self.atoms(low, high)


class _OfSize(Bounded):
    """Losses from -size to size."""

    size: float

    @property
    def rate(self) -> float:
        """Largest loss."""
        return self.size

    def span(self, log_low: float, log_lost: float, log_other: float) -> tuple[float, float]:
        """Range of the finite loss."""
        return -self.size, self.size


@dataclass(frozen=True)
class LaplacePair(_OfSize):
    """Laplace noise.

    Attributes
    ----------
    size : float
        Largest loss: shift divided by the noise's scale, above 0.
    count : int
        Number of repetitions.
    """

    size: float
    count: int
    infinite = 0.0

    @property
    def variation(self) -> float:
        """Total variation of the pair."""
        return -math.expm1(-0.5 * self.size) * (1.0 + 1e-13)

    def _atoms(self, knots: np.ndarray) -> Atoms:
        half = 0.5 * np.diff(knots)[:, None]
        # of densities e^{l/2} and e^{-l/2} in cells of up to a quarter: far below `ERROR`, and below that times `size`
        node, weight = GAUSS_LEGENDRE[5]
        loss = (knots[:-1, None] + half * (node + 1.0)).ravel()
        with np.errstate(divide="ignore"):
            log_weight = np.log((half * weight).ravel()) + 0.5 * (loss - self.size) - math.log(4.0)
        keep = log_weight > -math.inf
        loss, log_weight = loss[keep], log_weight[keep]
        # both ends have masses of their own; if the lower one is omitted, so is what lies below the first knot
        low = 0.5 * math.exp(0.5 * (float(knots[0]) - self.size)) if knots[0] > -self.size else 0.0
        ends = [] if low > 0.0 else [-self.size]
        loss = np.concatenate([ends, loss, [self.size]])
        log_weight = np.concatenate([[end - math.log(2.0) for end in ends], log_weight, [-math.log(2.0)]])
        error = ERROR + rounding(-min(self.size, _DEEP) - 40.0, self.size)
        return Atoms(loss, log_weight, low, 0.0).lift(error, self.rate)

    def _knots(self) -> np.ndarray:
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
class ResponsePair(_OfSize):
    """Randomized response with a probability of infinite loss.

    Attributes
    ----------
    size : float
        Epsilon, at least 0.
    infinite : float
        Delta: mass of P at infinite loss, in [0, 1).
    count : int
        Number of repetitions.
    """

    size: float
    infinite: float
    count: int

    @property
    def variation(self) -> float:
        """Total variation of the pair."""
        return (self.infinite + (1.0 - self.infinite) * math.tanh(0.5 * self.size)) * (1.0 + 1e-13)

    def atoms(self, low: float, high: float) -> Atoms:
        """Both finite losses."""
        pair = statement(self.size, self.infinite)
        atoms = Atoms(pair.loss, pair.log_weight, 0.0, self.infinite)
        return atoms.lift(rounding(-self.size, self.size), self.rate) if self.size > 0.0 else atoms


@dataclass(frozen=True, eq=False)
class AtomsPair(Bounded):
    """A pair of weighted losses, one direction of one release.

    Attributes
    ----------
    pair : LossAtoms
    count : int
        Number of repetitions.
    symmetric : bool
        Whether both directions of neighbors have this pair.
    """

    pair: LossAtoms
    count: int
    symmetric: bool
    rate = 1.0
    size = 0.0

    @property
    def infinite(self) -> float:
        """Mass of P at infinite loss."""
        return self.pair.infinite

    @property
    def variation(self) -> float:
        """Total variation of the pair."""
        return min(self.pair.profile(0.0) * (1.0 + 1e-12), 1.0)  # covers rounding and the error of a quadrature

    @cached_property
    def raised(self) -> tuple[np.ndarray, np.ndarray]:
        """Losses and masses, raised by as much as makes up for rounding."""
        atoms = self.atoms(float(self.pair.loss[0]), float(self.pair.loss[-1]))
        return atoms.loss, np.exp(atoms.log_weight)

    @cached_property
    def _log_tails(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Log of the mass of P below each loss and above it, and of that of Q above it."""
        log_p, log_q = self.pair.log_weight, self.pair.log_weight - self.pair.loss
        below = np.logaddexp.accumulate(log_p)
        above, other = (np.logaddexp.accumulate(logs[::-1])[::-1] for logs in (log_p, log_q))
        nothing = -math.inf
        return np.append(nothing, below[:-1]), np.append(above[1:], nothing), np.append(other[1:], nothing)

    def span(self, log_low: float, log_lost: float, log_other: float = -math.inf) -> tuple[float, float]:
        """Range of the loss outside which P has e^{log_low} below, and above P has e^{log_lost} or Q e^{log_other}."""
        below, above, other = self._log_tails
        first = int(np.searchsorted(below, log_low, side="right")) - 1
        last = min(
            int(np.searchsorted(-above, -log_lost, side="left")), int(np.searchsorted(-other, -log_other, side="left"))
        )
        first, last = max(first, 0), min(last, above.size - 1)
        return float(self.pair.loss[first]), float(self.pair.loss[max(first, last)])

    def above(self, span: tuple[float, float]) -> tuple[float, float]:
        """Finite mass of P above the span, and that of Q."""
        last = int(np.searchsorted(self.pair.loss, span[1], side="right")) - 1
        _, above, other = self._log_tails
        return math.exp(float(above[last])), math.exp(float(other[last]))

    def raise_span(self, span: tuple[float, float], loss: float) -> tuple[float, float]:
        """`span` without losses below the last that is at most `loss`, to which those are raised."""
        last = int(np.searchsorted(self.pair.loss, loss, side="right")) - 1
        return max(span[0], min(float(self.pair.loss[max(last, 0)]), span[1])), span[1]

    def atoms(self, low: float, high: float) -> Atoms:
        """The losses from `low` to `high`; those below are raised to the first."""
        first = int(np.searchsorted(self.pair.loss, low, side="left"))
        last = int(np.searchsorted(self.pair.loss, high, side="right"))
        first = min(first, last - 1)
        below, above, _ = self._log_tails
        lost = self.pair.infinite + math.exp(float(above[last - 1]))
        weight = self.pair.log_weight[first:last].copy()
        weight[0] = np.logaddexp(weight[0], below[first])
        loss = self.pair.loss[first:last]
        error = ERROR + rounding(float(weight.min()), float(np.abs(loss).max()))
        return Atoms(loss, weight, 0.0, lost).lift(error, self.rate)


def paired(found: Releases, replace_one: bool) -> list[tuple[Directions, int]]:
    """Return the pairs of releases with weighted losses, and their numbers of repetitions."""
    every = [(dominating(each.event, replace_one), each.times) for each in found.paired]
    return every + [(fixed_gaussian(share, noise), count) for share, noise, count in found.without_replacement]


def atoms_pairs(found: Releases, replace_one: bool) -> tuple[list[AtomsPair], list[AtomsPair]]:
    """Return these pairs for composition, for each direction of neighbors."""
    directed: tuple[list[AtomsPair], list[AtomsPair]] = ([], [])
    for pairs, count in paired(found, replace_one):
        for direction in (0, 1):
            directed[direction].append(AtomsPair(pairs[direction % len(pairs)], count, len(pairs) == 1))
    return directed
