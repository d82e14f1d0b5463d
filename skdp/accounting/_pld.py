"""Composition of privacy loss distributions: a tight upper bound on epsilon and delta.

Each release's loss is put on a uniform grid by connect-the-dots (Doroshenko, Ghazi, Kamath, Kumar &
Manurangsi 2022): a loss l between grid points e and e + h is split between them with weight
(1 - e^{e-l}) / (1 - e^{-h}) on the upper one. That conserves the mass of both P and Q and dominates the
exact pair. The grid distributions are then composed by FFT.

An FFT knows sums only to about 1e-16 of the largest, while delta may be 1e-12 or less. So each
distribution is first tilted by e^{theta l - K(theta)} with the Chernoff-optimal theta, which moves the
losses that matter to the centre, and the result is tilted back. What is cut off, what can wrap around
and what rounding can do is bounded and added to delta.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._composition import Releases
from ._gaussian import gaussian_delta, gaussian_epsilon
from ._pairs import Floats, Pair
from ._tilting import OUTSIDE, Tilt, deviation, find_tilt, width_for, window

__all__ = ["FINE", "pld_delta", "pld_epsilon"]

Spectrum = NDArray[np.complex128]

# Losses of noise multipliers below 1/_MAX_SHIFT are priced without the help of sampling: still a bound.
_MAX_SHIFT = 1000.0
FINE, _COARSE = 2e-6, 3e-5  # relative error of epsilon aimed at, and accepted before the grid grows further
_ROUGH = 1e-3  # accuracy at which the second direction is first looked at
_PREFERRED, _LARGEST = 1 << 18, 1 << 21  # grid points
_UNIT = 2.3e-16


class _Step(NamedTuple):
    """One release on the grid: position of each point in grid widths, log of its mass, mass sent to infinite loss."""

    position: NDArray[np.int64]
    log_mass: Floats
    lost: float


def _on_grid(pair: Pair, span: tuple[float, float], h: float) -> _Step:
    """Connect-the-dots discretisation of one release."""
    atoms = pair.atoms_in_buckets(*span, h)
    weight = np.exp(atoms.log_weight)
    weight *= (1.0 - atoms.low - atoms.lost) / weight.sum()
    lower = np.floor(atoms.loss / h)
    upper_share = np.clip(np.expm1(lower * h - atoms.loss) / math.expm1(-h), 0.0, 1.0)
    first = int(lower.min())
    slot = (lower - first).astype(np.int64)
    mass = np.bincount(slot + 1, weight * upper_share, minlength=int(slot.max()) + 2)
    mass += np.bincount(slot, weight * (1.0 - upper_share), minlength=mass.size)
    mass[1] += atoms.low  # all of it has losses below the first atom's, hence below this point
    kept = mass > 0.0
    return _Step(np.flatnonzero(kept) + first, np.log(mass[kept]), atoms.lost)


def _step_moment(step: _Step, theta: float, h: float) -> float:
    logs = step.log_mass + theta * h * step.position
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))


def _good_size(least: float) -> int:
    """Smallest 2^k, 3 2^k or 5 2^k of at least `least`."""
    size = 1 << max(6, math.ceil(math.log2(max(least, 2.0))))
    return next((part for part in (size * 5 // 8, size * 3 // 4) if part >= least), size)


class _Composed(NamedTuple):
    """Masses of the composed loss at `loss` (rising), scaled by e^{-log_scale}, and what was left out."""

    loss: Floats
    mass: Floats
    log_scale: float
    log_outside: float  # log of the mass above the window
    lost: float
    slack: float  # relative error of the masses


def _compose(tilt: Tilt, h: float, size: int, order: float) -> _Composed:
    """FFT powers of the tilted grid distributions on a window of `size` points below the upper bound."""
    steps = [_on_grid(pair, span, h) for pair, span in zip(tilt.pairs, tilt.spans, strict=True)]
    moments = [_step_moment(step, tilt.theta, h) for step in steps]
    log_total = sum(pair.count * k for pair, k in zip(tilt.pairs, moments, strict=True))
    above = sum(pair.count * _step_moment(step, order, h) for pair, step in zip(tilt.pairs, steps, strict=True))
    log_outside = tilt.log_delta + OUTSIDE
    top = math.ceil((above - log_outside) / order / h)
    power = np.ones(size // 2 + 1, dtype=complex)
    start = top - size + 1
    for pair, step, k in zip(tilt.pairs, steps, moments, strict=True):
        tilted = np.exp(step.log_mass + tilt.theta * h * step.position - k)
        # indices relative to the mean keep the phases small, so that their multiples stay accurate
        centre = round(float(tilted @ step.position))
        start -= pair.count * centre
        spectrum = np.fft.rfft(np.bincount((step.position - centre) % size, tilted, minlength=size))
        power = _times_power(power, spectrum, pair.count)
    mass = np.roll(np.fft.irfft(power, size), -(start % size))
    loss = h * np.arange(top - size + 1, top + 1, dtype=float)
    # scaled to 1 at epsilon: what underflows far above it, or is capped far below, does not matter there
    centre_loss = min(max(tilt.epsilon, float(loss[0])), float(loss[-1]))
    log_scale = log_total - tilt.theta * centre_loss
    with np.errstate(over="ignore"):
        untilt = np.exp(np.minimum(-tilt.theta * (loss - centre_loss), 700.0))
    count = sum(pair.count for pair in tilt.pairs)
    slack = _UNIT * (8.0 * abs(log_total) + 8.0 * abs(tilt.theta * centre_loss) + 50.0 * count + size)
    lost = sum(pair.count * step.lost for pair, step in zip(tilt.pairs, steps, strict=True))
    mass = (np.maximum(mass, 0.0) + _rounding(power, count, size)) * untilt
    return _Composed(loss, mass, log_scale, log_outside, lost, math.expm1(min(slack, 50.0)))


def _times_power(power: Spectrum, spectrum: Spectrum, count: int) -> Spectrum:
    """`power` times `spectrum` to the `count`; what falls below e^-80 becomes 0 and costs no logarithm."""
    size = spectrum.real**2 + spectrum.imag**2
    alive = np.flatnonzero((size > math.exp(-160.0 / count)) & (power != 0.0))
    result = np.zeros_like(power)
    result[alive] = power[alive] * np.exp(count * np.log(spectrum[alive]))
    return result


def _rounding(power: Spectrum, count: int, size: int) -> float:
    """Bound on the error of one composed tilted mass.

    Each value of an FFT of probabilities is off by at most c u log2(size) (a sum through log2(size)
    levels); its count-th power by count times that, where the power lives; the inverse is their mean,
    plus its own rounding.
    """
    unit = 4.0 * _UNIT * math.log2(size)
    return 2.0 * float(np.abs(power).sum()) / size * unit * (count + 1.0)


def _delta_of(found: _Composed, epsilon: float) -> float:
    """Delta at `epsilon`, with everything left out added."""
    at = int(np.searchsorted(found.loss, epsilon, side="right"))
    loss, mass = found.loss[at:], found.mass[at:]
    total = float(mass @ -np.expm1(epsilon - loss)) * (1.0 + found.slack)
    log_main = found.log_scale + math.log(total) if total > 0.0 else -math.inf
    parts = math.exp(min(log_main, 0.0)), math.exp(min(found.log_outside, 0.0)), found.lost
    return min(1.0, sum(parts))


def _epsilon_of(found: _Composed, delta: float) -> float:
    """Smallest epsilon at `delta`: the linear equation in e^epsilon within one grid cell."""
    left = delta - found.lost - math.exp(min(found.log_outside, 0.0))
    if left <= 0.0:
        return math.inf
    goal = math.exp(min(math.log(left) - found.log_scale, 700.0)) / (1.0 + found.slack)
    tail = np.cumsum(found.mass[::-1])[::-1]  # mass at and above each point: delta(epsilon) is below it
    high = int(np.searchsorted(-tail, -goal, side="left"))
    if high == 0:
        return float(found.loss[0])
    if high == tail.size:
        return float(found.loss[-1])
    # delta(l - 1) >= (1 - 1/e) tail(l): the solution lies above the last l with that much, less 1
    low = int(np.searchsorted(-tail, -goal / 0.63, side="right")) - 1
    low = max(0, int(np.searchsorted(found.loss, found.loss[max(low, 0)] - 1.01)) - 1)
    if found.loss[high] - found.loss[low] > 500.0:
        return float(found.loss[high])
    origin = found.loss[low]
    weighted = np.cumsum((found.mass[low:] * np.exp(origin - found.loss[low:]))[::-1])[::-1]
    inside = slice(low, high + 1)
    growth = np.exp(found.loss[inside] - origin)
    # delta just below point j is tail_j - e^{epsilon - l_j} weighted_j, at the point itself with epsilon = l_j
    at_point = tail[inside] - growth * weighted[: high + 1 - low]
    cell = int(np.searchsorted(-at_point, -goal, side="left"))
    if cell == 0:
        return float(found.loss[low])
    share = (tail[low + cell] - goal) / (growth[cell] * weighted[cell])
    below, above = float(found.loss[low + cell - 1]), float(found.loss[low + cell])
    if share <= 0.0:
        return below
    return min(max(float(found.loss[low + cell]) + math.log(share), below), above)


def _solve(tilt: Tilt, least: float, error: float, widest: float = math.inf) -> _Composed:
    """Choose grid and window for one direction, and compose it.

    Parameters
    ----------
    tilt : Tilt
    least : float
        Loss below which nothing will be read, in nats.
    error : float
        Error of epsilon aimed at.
    widest : float
        Bound on the grid's width.
    """
    bottom, top, order = window(tilt, least)
    extent = (top - bottom) * 1.01
    reach = max(float(np.ptp(atoms.loss)) for atoms in tilt.atoms)
    h = width_for(tilt, error)
    if extent / h > _PREFERRED:
        h = max(width_for(tilt, max(error, _COARSE * tilt.epsilon)), min(h, extent / _PREFERRED))
    # grid positions must stay exact in doubles
    largest = max(float(np.abs(atoms.loss[[0, -1]]).max()) for atoms in tilt.atoms)
    h = max(min(h, max(widest, extent / _PREFERRED)), extent / (_LARGEST - 64), reach / _LARGEST, 1e-11 * largest)
    return _compose(tilt, h, _good_size(extent / h + 32.0), order)


def _directions(found: Releases, replace: bool) -> list[tuple[Pair, ...]]:
    """The pairs to compose: one list for each direction."""
    sampled = [(q, 1.0 / s, count) for q, s, count in found.sampled]
    gaussian = found.mu_squared + sum(count * m * m for _, m, count in sampled if m > _MAX_SHIFT)
    gaussian = math.sqrt(gaussian) * (2.0 if replace else 1.0)
    result = []
    for kind in ("replace",) if replace else ("remove", "add"):
        pairs = [Pair(kind, q, m, count) for q, m, count in sampled if m <= _MAX_SHIFT]
        if gaussian > 0.0:
            pairs.append(Pair("remove", 1.0, gaussian, 1))
        result.append(tuple(pairs))
    return result


def _unsampled(found: Releases, replace: bool) -> float:
    """Mean shift of all releases without sampling: plain Gaussian, and never cheaper (joint convexity)."""
    total = found.mu_squared + sum(count / s**2 for _, s, count in found.sampled)
    return math.sqrt(total) * (2.0 if replace else 1.0)


def _total_variation(pairs: tuple[Pair, ...]) -> float:
    """Bound on delta at epsilon 0: the sum of the total variations, each at most q times the Gaussian's."""
    each = (p.count * p.q * math.erf((2.0 if p.kind == "replace" else 1.0) * p.m / math.sqrt(8.0)) for p in pairs)
    return sum(each) * (1.0 + 1e-12)


def _epsilon_at(tilt: Tilt, error: float) -> float:
    """Epsilon of one direction at the tilt's delta, to about `error`."""
    delta = math.exp(tilt.log_delta)
    least = tilt.epsilon - 10.0 / tilt.theta
    epsilon = _epsilon_of(_solve(tilt, least, error), delta)
    if epsilon > max(least, 0.3 * tilt.epsilon):
        return epsilon
    # Few, rare, large losses: epsilon lies far below Chernoff's bound. Look again, further down and finer.
    finer = error * max(epsilon / tilt.epsilon, 0.01)
    return min(epsilon, _epsilon_of(_solve(tilt, 0.0, finer, max(epsilon, 1e-3 * tilt.epsilon) / 200.0), delta))


def pld_epsilon(found: Releases, delta: float, *, replace: bool = False, accuracy: float = FINE) -> float:
    """Epsilon at `delta`, an upper bound.

    Parameters
    ----------
    found : Releases
    delta : float
        In (0, 1).
    replace : bool
        Whether neighbours replace a record.
    accuracy : float
        Relative error aimed at; a coarser grid is quicker and stays an upper bound.

    Returns
    -------
    float
        In nats, at least 0.
    """
    directions = _directions(found, replace)
    simple = gaussian_epsilon(delta, _unsampled(found, replace))
    if all(pair.q == 1.0 for pair in directions[0]):
        return simple
    if _total_variation(directions[0]) <= delta:
        return 0.0
    worst = 0.0
    for pairs in directions:
        tilt = find_tilt(pairs, math.log(delta), 0.0)
        # Chernoff's bound and a rough look are upper bounds too, and the second direction is mostly well below
        if tilt.epsilon * (1.0 + 1e-6) <= worst or (worst > 0.0 and _epsilon_at(tilt, _ROUGH * worst) <= worst):
            continue
        worst = max(worst, _epsilon_at(tilt, accuracy * tilt.epsilon))
    return min(worst, simple)


def _delta_at(pairs: tuple[Pair, ...], epsilon: float, accuracy: float) -> float:
    tilt = find_tilt(pairs, None, epsilon)
    # an error in epsilon moves delta by the slope of its logarithm: theta, but never less than 1 / deviation
    return _delta_of(_solve(tilt, epsilon, 10.0 * accuracy * min(1.0 / tilt.theta, deviation(tilt))), epsilon)


def pld_delta(found: Releases, epsilon: float, *, replace: bool = False, accuracy: float = FINE) -> float:
    """Delta at `epsilon`, an upper bound.

    Parameters
    ----------
    found : Releases
    epsilon : float
        In nats, at least 0.
    replace : bool
        Whether neighbours replace a record.
    accuracy : float
        Relative error aimed at.

    Returns
    -------
    float
        In [0, 1].
    """
    directions = _directions(found, replace)
    simple = gaussian_delta(epsilon, _unsampled(found, replace))
    if all(pair.q == 1.0 for pair in directions[0]):
        return simple
    worst = 0.0
    for pairs in directions:
        if worst == 0.0 or _delta_at(pairs, epsilon, _ROUGH) > worst:
            worst = max(worst, _delta_at(pairs, epsilon, accuracy))
    return min(worst, simple, _total_variation(directions[0]))
