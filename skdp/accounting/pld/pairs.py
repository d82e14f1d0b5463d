"""Dominating pairs of the (Poisson-sampled) Gaussian and their privacy loss on a quadrature.

Everything is in units of the noise: z = x / sigma, m = 1 / sigma, and the pairs are

    remove   P = (1-q) N(0,1) + q N(m,1)   Q = N(0,1)
    add      P = N(0,1)                    Q = (1-q) N(0,1) + q N(-m,1)   (z mirrored: the loss rises)
    replace  P = (1-q) N(0,1) + q N(m,1)   Q = (1-q) N(0,1) + q N(-m,1)

With q = 1 the first is the plain Gaussian. The loss log(P/Q) rises with z in all three. The first two are those of Zhu,
Dong & Wang 2022, the third is dp-accounting's `REPLACE_ONE`. That they dominate has one proof. Let the record x be
replaced by y, both of norm at most m, or 0 for one that is not there. Given which others take part, the outputs are,
but for a common shift, (1-q) N(0, I) + q N(x, I) and (1-q) N(0, I) + q N(y, I); hockey-stick divergences are
jointly convex, so one such choice is the worst. For a set A with Phi(t) = N(0, I)(A), Neyman and Pearson's lemma gives
N(x, I)(A) <= Phi(t + |x|) and N(y, I)(A) >= Phi(t - |y|). Hence, for every tau >= 0,

    P'(A) - tau Q'(A) <= (1-q) (1-tau) Phi(t) + q Phi(t + |x|) - tau q Phi(t - |y|),

which rises with |x| and |y|, and with both at their bounds is P - tau Q of the half-line above -t in the pair.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from skdp._typing import Doubles

from ..formulas.gaussian import mixture_loss
from ..formulas.quadrature import ERROR, lifted, nodes, rounding

__all__ = ["Atoms", "Pair"]

_CELLS = 64  # at least, in a quadrature
_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(4)


class Atoms(NamedTuple):
    """A weighted set of losses: `loss` rises, `log_weight` is the log of its probability under P.

    `low` is the mass under P below the first loss, `lost` the mass above the last. `room` is by how much masses,
    relative, and losses are raised (`lift`); it is 0 where atoms only serve to find out where to look.
    """

    loss: Doubles
    log_weight: Doubles
    low: float
    lost: float
    room: float = 0.0

    def lift(self, error: float, rate: float) -> Atoms:
        """Atoms that dominate these, whatever was rounded: with an error as in `quadrature`, at a sampling rate."""
        room = 2.0 * error
        return Atoms(
            lifted(self.loss, room, rate), self.log_weight + math.log1p(room), self.low, self.lost, self.room + room
        )


def _mixture_place(q: float, m: float, loss: Doubles) -> Doubles:
    """The z at which `mixture_loss` is `loss`; -inf below its infimum log(1 - q)."""
    if q == 1.0:
        return loss / m + 0.5 * m
    with np.errstate(divide="ignore", invalid="ignore"):
        near = np.log1p(np.maximum(np.expm1(np.minimum(loss, 30.0)) / q, -1.0))
        far = loss - math.log(q) + np.log1p((q - 1.0) * np.exp(-np.maximum(loss, 30.0)))
    place: Doubles = np.where(loss <= 30.0, near, far) / m + 0.5 * m
    return place


def _asinh_exp(log_y: Doubles) -> Doubles:
    """asinh(e^{log_y}) without overflow."""
    return np.where(log_y > 300.0, log_y + math.log(2.0), np.arcsinh(np.exp(np.minimum(log_y, 300.0))))


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
        How often the release is made.
    """

    kind: str
    q: float
    m: float
    count: int

    def loss(self, z: Doubles) -> Doubles:
        """Privacy loss at `z`, rising."""
        if self.kind == "remove":
            return mixture_loss(self.q, self.m, z)
        mirrored = mixture_loss(self.q, self.m, -z)
        return -mirrored if self.kind == "add" else mixture_loss(self.q, self.m, z) - mirrored

    def place(self, loss: Doubles) -> Doubles:
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
        place: Doubles = np.sign(loss) * (0.5 * size + _asinh_exp(log_w)) / self.m
        return place

    @property
    def rate(self) -> float:
        """Probability with which the record takes part."""
        return self.q

    @property
    def plain(self) -> bool:
        """Whether this is a Gaussian mechanism without sampling."""
        return self.q == 1.0

    @property
    def symmetric(self) -> bool:
        """Whether both directions of neighbours have this pair."""
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
        """`span` without the places whose loss is below `loss`."""
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
        other = high + self.m if self.kind == "replace" and self.plain else high
        return self.tails(*span)[1], float(ndtr(-other))

    def span(self, log_low: float, log_lost: float, log_other: float) -> tuple[float, float]:
        """Range of z outside which P has at most e^{log_low} below; above it P has e^{log_lost} or Q has e^{log_other}.

        Q is a mixture of N(0, 1) and of what lies below it, so its tail is no larger than that of N(0, 1).
        """
        rest = math.log1p(-self.q) if self.q < 1.0 else -math.inf

        def reach(log_share: float, log_mass: float) -> float:
            return math.sqrt(2.0 * max(0.0, log_share + math.log(2.0) - log_mass))

        other = reach(0.0, log_other) - (self.m if self.kind == "replace" and self.plain else 0.0)
        if self.kind == "add":
            return -reach(0.0, log_low), min(reach(0.0, log_lost), other)
        low = min(-reach(rest, log_low) if rest > log_low else self.m, self.m - reach(math.log(self.q), log_low))
        high = max(reach(rest, log_lost), self.m + reach(math.log(self.q), log_lost))
        return low, max(min(high, other), low + 1e-3)

    def _knots(self, low: float, high: float) -> Doubles:
        """Points between which moments are smooth enough for four Gauss nodes."""
        points = [np.linspace(low, high, max(8, int((high - low) * 8.0)) + 1)]
        if self.q < 1.0:
            # where the two parts of the mixture are equal, the loss turns from flat to slope m
            turn = 0.5 * self.m + (math.log1p(-self.q) - math.log(self.q)) / self.m
            bend = np.linspace(-36.0, 36.0, 145) / self.m
            for centre in {"remove": (turn,), "add": (-turn,), "replace": (-turn, turn)}[self.kind]:
                points.append(centre + bend)
        joined = np.concatenate(points)
        return np.unique(joined[(joined >= low) & (joined <= high)])

    def _atoms(self, z: Doubles, weight: Doubles, low: float, high: float) -> Atoms:
        loss = self.loss(z)
        base = -0.5 * z * z - _LOG_SQRT_2PI
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
        neighbours is as accurate as splitting the exact mass between them. `P` and `Q` are mixtures of normal densities
        whose centres are at most `m` from 0.
        """
        ends = (self.loss(np.array([low, high])) - offset) / width
        crossings = self.place(np.arange(math.floor(ends[0]) + 1, math.ceil(ends[1])) * width + offset)
        crossings = crossings[(crossings > low) & (crossings < high)]
        knots = np.union1d(np.linspace(low, high, _CELLS + 1), crossings)
        z, weight = nodes(knots, np.maximum(np.abs(knots[:-1]), np.abs(knots[1:])) + (self.m + 3.0))
        atoms = self._atoms(z, weight, low, high)
        size = self.m * (max(abs(low), abs(high)) + self.m)
        least, loss = float(atoms.log_weight.min()), float(np.abs(atoms.loss).max())
        return atoms.lift(ERROR + rounding(least, loss, size), self.q)
