"""Privacy profiles of selections and groups, and the dominating pair of a profile on a grid.

A profile is delta(epsilon). With tau = e^epsilon, H(tau) = sup over events of P - tau Q is convex and decreasing, and
equals 1 - tau + tau H'(1/tau), where H' belongs to the exchanged pair. Here every profile is the maximum over both
directions.

*Selection.* One trial has distribution Q over outputs in order of their scores; ties are broken by an independent
uniform number. With u the probability that a trial is not better than y, the best of K trials has density Q(y) phi'(u),
phi the generating function of K (no trial is the same output under both neighbors). With ' for the neighbor, the
output's

    H_A(tau) = sum over y of (Q(y) phi'(u) - tau Q'(y) phi'(u'))_+  <=  E_Q'[tau S(Q / Q' / tau)],
    S(x) = sup over (u, u') of (x phi'(u) - phi'(u'))_+ ,

the supremum taken over all (u, u') that the profile of one trial allows. S is convex, is 0 up to some e^{-c_max} and
has slopes up to m = E[K]; so it is a sum of J_k (x - e^{-c_k})_+ with sum J_k = m, and

    delta_A(epsilon) <= sum over k of J_k delta(epsilon - c_k).

This follows Koskela, Redberg & Wang 2024, whose bound m delta(epsilon - c_max) puts all J at the largest c. The bound
is nearly attained by an order of scores in which u - u' accumulates below a small set of outputs with the largest
losses. With t = 1 - u and w = 1 - u', the profile implies w <= e^epsilon t + delta(epsilon) for all epsilon of either
sign, a piecewise linear bound.

*A pair.* Between points of the grid a convex H lies below its chords, so the lower convex hull of upper bounds is one
itself (Doroshenko, Ghazi, Kamath, Kumar & Manurangsi 2022); its slopes rise at each point by the mass of Q' there.

*Groups.* With D_k the profile for groups of k, and a chain of neighbors P, R, Q, of which R differs from P in i
records and from Q in j,

    P - e^x Q = (P - e^a R) + e^a (R - e^{x-a} Q)  gives  D_{i+j}(x) <= D_i(a) + e^a D_j(x - a)

for every a. The least over a from 0 to x is taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from skdp.accounting.formulas.selection_law import NumberOfTrials
from skdp.accounting.pld.pairs import Atoms, AtomsPair, Bounded, LaplacePair, Pair, ResponsePair

_SAFE = 1.0 + 1e-10  # covers rounding
_POINTS = 400  # of the profile of a chain


class Profile(NamedTuple):
    """Upper bounds of delta at increasing epsilons, the first 0, for both directions of neighbors."""

    loss: np.ndarray
    delta: np.ndarray


def _boundary(width: float, delta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Largest w for each t: lines w = alpha t + beta, and the t from 0 to 1 between which each is used.

    Whichever line is used where, it is a bound: rounding of the knots does no harm.
    """
    up = width * np.arange(delta.size)
    kept = up < 600.0
    up, delta = up[kept], delta[kept]
    alpha = np.concatenate([np.exp(up[::-1]), np.exp(-up[1:])])
    beta = np.concatenate([delta[::-1], -np.expm1(-up[1:]) + delta[1:] * np.exp(-up[1:])])
    knots = np.diff(beta) / -np.diff(alpha)
    knots = np.maximum.accumulate(np.clip(knots, 0.0, 1.0))
    return alpha, beta, np.concatenate([[0.0], knots, [1.0]])


def _lines(trials: NumberOfTrials, width: float, delta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lines x a - b above all x phi'(u) - phi'(u'), as arrays a and b: S(x) is the largest, or 0.

    Along a piece b = phi'(u') is, as a function of a = phi'(u), concave or convex throughout (a power for Poisson; else
    (p a^{-1/r} + q)^{-r}, r = eta + 1). If concave, x a - b is largest at an end; if convex, it passes its ends by
    (s1 - s0)(a1 - a0) / 4 at most, s the slopes there.
    """
    alpha, beta, knots = _boundary(width, delta)
    t = np.array([knots[:-1], knots[1:]])
    w = alpha * t + beta
    a, b = trials.slope(t), trials.slope(w)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        slope = alpha * trials.bend(w) / trials.bend(t)
        gap = 0.25 * np.maximum(slope[0] - slope[1], 0.0)
        coarse = ~(gap < 0.5)  # then the two sides one by one: phi' is monotone
        lift = np.where(coarse, 0.0, gap) * (a[0] - a[1])
    low = np.where(coarse, b[1], b - lift)
    return a.ravel(), np.maximum(low, 0.0).ravel()


def _jumps(a: np.ndarray, b: np.ndarray, width: float, count: int, mean: float) -> np.ndarray:
    """J_k at c_k = k width, k = 0..count: S on these points, and straight between, which is above a convex S."""
    x = np.exp(-width * np.arange(count + 1))
    s = np.maximum((a[:, None] * x - b[:, None]).max(axis=0), 0.0)
    s[-1] = 0.0
    slopes = np.concatenate([[mean], np.diff(s) / np.diff(x), [0.0]])
    return np.maximum(-np.diff(slopes), 0.0)


def _most_shifted(base: Profile, trials: NumberOfTrials, largest: float) -> Profile:
    """m delta(epsilon - c) with one c: for profiles whose grid is too coarse or too short for more.

    S has slopes up to m and is 0 up to e^-c_max, so it is at most m (x - e^-c)_+ for every c of at least c_max:
    `largest`, as the profile allows, or what the distribution of the number of trials alone allows. Below c the profile
    is mirrored.
    """
    ends = np.array([0.0, 1.0])
    if trials.poisson:
        shift = trials.mean * min(1.0, float(base.delta[0]))  # u - u' is at most the total variation
    else:
        shift = -math.log(trials.slope(ends)[1] / trials.mean)
    # the logs of a and b are known to about the size of their exponents times the unit of rounding
    rounding = 1e-15 * (4.0 + (trials.mean if trials.poisson else 1.0 + trials.shape))
    shift = min(shift, largest + rounding) * _SAFE
    delta: np.ndarray = np.minimum(base.delta * (trials.mean * _SAFE), 1.0)
    below = trials.mean * (-math.expm1(-shift) + float(base.delta[0])) * _SAFE
    return Profile(np.concatenate([[0.0], base.loss + shift]), np.concatenate([[min(below, 1.0)], delta]))


def select_best(base: Profile, trials: NumberOfTrials) -> Profile:
    """Return the profile of the best of a random number of trials.

    Parameters
    ----------
    base : Profile
        Profile of one trial, on a grid of equal steps.
    trials : NumberOfTrials

    Returns
    -------
    Profile
    """
    if trials.mean == 1.0 and not trials.poisson:
        return base
    width, n = float(base.loss[1]), base.loss.size - 1
    a, b = _lines(trials, width, base.delta)
    # c_max = max log(a / b), infinite where b is nothing
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = float(np.where(a > 0.0, a / b, 0.0).max())
    shift = math.log(max(ratio, 1.0)) if ratio < math.inf else math.inf
    # if that moves the profile by more than 4 lengths of its grid, a simpler bound is taken
    if not shift < min(4 * n * width, 600.0):
        return _most_shifted(base, trials, shift)
    count = max(1, math.ceil(shift / width * _SAFE))
    jumps = _jumps(a, b, width, count, trials.mean)
    down = width * np.arange(count, 0, -1)
    mirrored = base.delta[np.minimum(np.arange(count, 0, -1), n)]
    before = -np.expm1(-down) + np.exp(-down) * mirrored
    after = np.full(count, base.delta[-1])
    delta: np.ndarray = np.convolve(np.concatenate([before, base.delta, after]), jumps, "valid") * _SAFE
    capped: np.ndarray = np.minimum(delta, 1.0)
    return Profile(np.linspace(0.0, width * (n + count), n + count + 1), capped)


def _rises(profile: Profile) -> tuple[np.ndarray, np.ndarray]:
    """Return tau times the slope of H to the left and right of each point; 0 beyond the last point."""
    step, fall = np.diff(profile.loss), np.diff(profile.delta)
    with np.errstate(over="ignore"):
        left, right = fall / -np.expm1(-step), fall / np.expm1(step)
    return np.concatenate([[-math.inf], left]), np.concatenate([right, [0.0]])


def _hull(profile: Profile) -> Profile:
    """Return the lower convex hull of H over tau."""
    left, right = _rises(profile)
    if bool(np.all(left <= right)):
        return profile
    loss, delta = profile.loss.tolist(), profile.delta.tolist()
    kept: list[int] = []
    for c in range(len(loss)):
        while len(kept) > 1:
            a, b = kept[-2:]
            before = (delta[b] - delta[a]) / -math.expm1(loss[a] - loss[b])
            if before <= (delta[c] - delta[b]) / math.expm1(min(loss[c] - loss[b], 700.0)):
                break
            kept.pop()
        kept.append(c)
    return Profile(profile.loss[kept], profile.delta[kept])


@dataclass(frozen=True, eq=False)
class ProfilePair(Bounded):
    """A pair that dominates all events with a given profile; both directions are equal.

    Attributes
    ----------
    profile : Profile
        Convex.
    count : int
        Number of repetitions.
    """

    profile: Profile
    count: int
    rate = 1.0
    size = 0.0

    @classmethod
    def of(cls, profile: Profile, count: int) -> ProfilePair:
        """Return the pair of a profile, which can be non-convex."""
        falling = np.minimum.accumulate(np.minimum(profile.delta, 1.0))
        return cls(_hull(Profile(profile.loss, falling)), count)

    @property
    def infinite(self) -> float:
        """Mass of P at infinite loss."""
        return float(self.profile.delta[-1])

    @property
    def variation(self) -> float:
        """Total variation of the pair."""
        return float(self.profile.delta[0]) * _SAFE

    def span(self, log_low: float, log_lost: float, log_other: float) -> tuple[float, float]:
        """Range of the finite loss."""
        return -float(self.profile.loss[-1]), float(self.profile.loss[-1])

    def atoms(self, low: float, high: float) -> Atoms:
        """Masses where the slope of H increases; those at -loss are e^-loss times those at loss.

        At tau below 1 H is mirrored. Where both branches would meet in a hollow, the chord from 1 / tau to tau
        takes its place, of slope -(1 - H(tau)) / (1 + tau).
        """
        loss, delta = self.profile
        left, right = _rises(self.profile)
        first = right + (1.0 - delta) / (1.0 + np.exp(-loss))
        start = int(np.argmax(first >= 0.0))
        mass = np.maximum(right - left, 0.0)[start:]
        mass[0] = first[start]
        up, mirrored = loss[start:], np.exp(-loss[start:]) * mass
        if start == 0:  # loss 0 is its own mirror image
            mass[0] *= 2.0
            mirrored = mirrored[1:]
        at = np.concatenate([-up[::-1][: mirrored.size], up])
        weight = np.concatenate([mirrored[::-1], mass])
        kept = weight > 0.0
        # the error of masses, which are differences of slopes, in proportion to what lies above them
        return Atoms(at[kept], np.log(weight[kept]), 0.0, self.infinite).lift(1e-12, self.rate)

    def epsilon_at(self, goal: float) -> float:
        """Return epsilon at which delta is `goal`; inf if it is never this small."""
        loss, delta = self.profile
        if delta[0] <= goal:
            return 0.0
        if delta[-1] > goal:
            return math.inf
        b = int(np.searchsorted(-delta, -goal, side="left"))
        share = (delta[b - 1] - goal) / (delta[b - 1] - delta[b])
        step = float(loss[b] - loss[b - 1])
        inside = math.log1p(share * math.expm1(step)) if step < 600.0 else step
        return float(loss[b - 1] + inside) * _SAFE

    def delta_at(self, epsilon: float) -> float:
        """Return delta at `epsilon`, at least 0."""
        loss, delta = self.profile
        b = int(np.searchsorted(loss, epsilon, side="right"))
        if b == loss.size:
            return float(delta[-1])
        step = float(loss[b] - loss[b - 1])
        share = math.expm1(epsilon - loss[b - 1]) / math.expm1(step) if step < 600.0 else 0.0
        return float(delta[b - 1] + share * (delta[b] - delta[b - 1])) * _SAFE


# A pair of distributions P and Q, one direction of one release. A *place* is where a loss lies: z of a Gaussian, the
# loss itself of all others. A *span* is a range of places.
AnyPair = Pair | LaplacePair | ResponsePair | AtomsPair | ProfilePair

# The pairs to compose, for each direction of neighbors; one if both are the same.
Directed = list[tuple[AnyPair, ...]]


def _join(first: ProfilePair, second: ProfilePair) -> ProfilePair:
    """Return the profile of a chain of two."""
    top = float(first.profile.loss[-1] + second.profile.loss[-1])
    grid = np.linspace(0.0, top, _POINTS + 1)
    a = np.linspace(0.0, float(first.profile.loss[-1]), _POINTS + 1)
    own = np.array([first.delta_at(float(x)) for x in a])
    best = np.ones(grid.size)
    for k, x in enumerate(grid):
        kept = a <= x
        # the delta at the point below is no smaller
        point = np.searchsorted(second.profile.loss, x - a[kept], side="right") - 1
        other = second.profile.delta[point]
        with np.errstate(over="ignore"):
            best[k] = min(1.0, float((own[kept] + np.exp(np.minimum(a[kept], 700.0)) * other).min()))
    return ProfilePair.of(Profile(grid, best), 1)


def group_profile(pair: ProfilePair, k: int) -> ProfilePair:
    """Return the profile for groups of k records from the profile for one record.

    Parameters
    ----------
    pair : ProfilePair
    k : int
        1 or more.

    Returns
    -------
    ProfilePair
    """
    result, power, left = None, pair, k
    while left:
        if left & 1:
            result = power if result is None else _join(result, power)
        left >>= 1
        power = _join(power, power) if left else power
    assert result is not None
    return result
