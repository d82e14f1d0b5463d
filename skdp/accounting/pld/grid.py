"""Privacy loss distributions on a grid: connect-the-dots discretization, and composition by FFT.

A loss l between two labels e and e + h is split between them with weight (1 - e^{e-l}) / (1 - e^{-h}) on the upper one
(Doroshenko, Ghazi, Kamath, Kumar & Manurangsi 2022). This preserves the mass of both P and Q, and dominates the exact
pair.

The rounding error of an FFT is about 1e-16 of the largest value, while delta can be 1e-12 or less. Therefore each
distribution is first tilted by e^{theta l - K(theta)}, which centers the relevant losses, and the result is tilted
back. The effects of truncation, wrapping around and rounding are bounded. The bounds are added for an upper bound on
delta, and subtracted for a lower one (`lower_bounds`). The target error determines the width and length of the grid,
within a limit on the work.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp.accounting.formulas.numeric import log_sum
from skdp.accounting.pld.profiles import AnyPair
from skdp.accounting.pld.tilting import GridPlan

Spectrum = NDArray[np.complex128]

_UNIT = 2.3e-16
_DEEPEST = 600.0  # log of the largest factor of tilting back
_HEAVY = 0.9  # a label with this fraction of the mass is excluded from the transform
_FAINT = 80.0  # Fourier coefficients below e^-80 are taken as 0


class GridRelease(NamedTuple):
    """One type of release on the grid.

    Attributes
    ----------
    offset : float
        Loss of position 0.
    position : array
        Labels with mass, in grid widths from the offset.
    log_mass : array
        Log of the mass of P at each.
    spread : array
        For each label and the one above it, the sum of w s (1 - s) over the losses between them, with w
        the mass and s the fraction of the upper label: from it follows how far labels are from the truth.
    low : float
        Mass that the truncation moved to the second label.
    lost : float
        Mass sent to infinite loss.
    room : float
        By how much masses were raised, relative, and so losses per `min(1, rate + |loss|)`: see `numeric`.
    lift : float
        By how much a loss was raised, at most.
    """

    offset: float
    position: NDArray[np.int64]
    log_mass: np.ndarray
    spread: tuple[np.ndarray, np.ndarray]
    low: float
    lost: float
    room: float
    lift: float


def _on_grid(pair: AnyPair, span: tuple[float, float], h: float, offset: float) -> GridRelease:
    """Connect-the-dots discretization of a pair that dominates one release, including rounding."""
    atoms = pair.atoms_in_buckets(*span, h, offset)
    loss, weight = atoms.loss, np.exp(atoms.log_weight)
    lower = np.floor((loss - offset) / h)
    share = np.clip(np.expm1(lower * h + offset - loss) / math.expm1(-h), 0.0, 1.0)
    first = int(lower.min())
    slot = (lower - first).astype(np.int64)
    raised = weight * share
    mass = np.bincount(slot + 1, raised, minlength=int(slot.max()) + 2)
    mass += np.bincount(slot, weight - raised, minlength=mass.size)
    spread = np.bincount(slot, raised * (1.0 - share), minlength=mass.size)
    above: np.ndarray = spread.astype(np.float64)
    below: np.ndarray = np.concatenate([[0.0], above[:-1]])
    mass[1] += atoms.low  # all of it has losses below the first atom's, hence below this point
    kept = mass > 0.0
    position = np.flatnonzero(kept) + first
    lift = atoms.room * min(1.0, pair.rate + float(np.abs(loss).max()))
    return GridRelease(
        offset, position, np.log(mass[kept]), (below[kept], above[kept]), atoms.low, atoms.lost, atoms.room, lift
    )


def release_moment(release: GridRelease, theta: float, h: float) -> float:
    """Return log E_P[e^{theta l}] of one release, with the loss l above its offset.

    Parameters
    ----------
    release : GridRelease
    theta, h : float
        Order per nat, and the grid width.

    Returns
    -------
    float
    """
    return log_sum(release.log_mass + theta * h * release.position)


class Composed(NamedTuple):
    """Masses of the composed loss, scaled by e^{-log_scale}, and bounds on omitted masses.

    Attributes
    ----------
    loss : array
        The labels, increasing.
    mass : array
        Mass at each, at most `2 doubt untilt` and a factor 1 + slack above the truth and never below it.
    untilt : array
        What tilting back multiplied each mass by, or more where that is next to nothing.
    last : int
        Number of labels from the first up to where `untilt` is more.
    doubt, norm : float
        Bounds on the rounding of one tilted mass, and on the Euclidean norm of that of all.
    log_scale : float
        Log of the scale.
    lost : float
        Mass sent to infinite loss.
    slack : float
        Relative error of the masses.
    releases, plan : tuple of GridRelease, GridPlan
        What was composed, and on which grid: the mass above the window is there.
    floor : float
        Least epsilon that may be read: below the window, and where tilting back was capped, masses are too small.
    """

    loss: np.ndarray
    mass: np.ndarray
    untilt: np.ndarray
    last: int
    doubt: float
    norm: float
    log_scale: float
    lost: float
    slack: float
    releases: tuple[GridRelease, ...]
    plan: GridPlan
    floor: float

    @property
    def width(self) -> float:
        """Of a cell of the grid, in nats."""
        return self.plan.width

    @property
    def log_outside(self) -> float:
        """Return the log of a bound on the mass above the window."""
        return self.plan.log_outside


def releases_on_grid(plan: GridPlan) -> tuple[GridRelease, ...]:
    """Return each type of release of a composition on its grid."""
    tilt = plan.tilt
    found = zip(tilt.pairs, tilt.spans, plan.centers, strict=True)
    return tuple(_on_grid(pair, span, plan.width, offset) for pair, span, offset in found)


def compose_on_grid(plan: GridPlan, releases: tuple[GridRelease, ...] = ()) -> Composed:
    """Compose the tilted grid distributions by FFT powers, on a window below the upper bound.

    Parameters
    ----------
    plan : GridPlan
    releases : tuple of GridRelease
        Releases to compose, if not those of the plan.

    Returns
    -------
    Composed
    """
    tilt, h, extent, order, log_outside, _ = plan
    # the smallest 2^k, 3 2^k or 5 2^k that is long enough
    needed = extent / h + 32.0
    size = 1 << max(6, math.ceil(math.log2(max(needed, 2.0))))
    size = next((part for part in (size * 5 // 8, size * 3 // 4) if part >= needed), size)
    releases = releases or releases_on_grid(plan)
    counts = [pair.count for pair in tilt.pairs]
    base = math.fsum(count * release.offset for count, release in zip(counts, releases, strict=True))
    moments = [release_moment(release, tilt.theta, h) for release in releases]
    log_total = math.fsum(count * k for count, k in zip(counts, moments, strict=True))
    above = math.fsum(count * release_moment(each, order, h) for count, each in zip(counts, releases, strict=True))
    top = math.ceil((above - log_outside) / order / h)
    # transforms of the tilted masses, to the power of how often each release is made
    power = np.ones(size // 2 + 1, dtype=complex)
    start, apart = top - size + 1, 1.0
    for count, release, k in zip(counts, releases, moments, strict=True):
        tilted = np.exp(release.log_mass + tilt.theta * h * release.position - k)
        # the label that bears most of the mass if there is one, else the mean: phases of its multiples are small
        heaviest = int(np.argmax(tilted))
        is_heavy = tilted[heaviest] > _HEAVY
        center = int(release.position[heaviest]) if is_heavy else round(float(tilted @ release.position))
        start -= count * center
        spread = np.bincount((release.position - center) % size, tilted, minlength=size)
        power, share = _times_power(power, spread.astype(np.float64, copy=False), count)
        apart += count * share
    mass = np.roll(np.fft.irfft(power, size), -(start % size))
    loss = h * np.arange(top - size + 1, top + 1, dtype=float)
    # Scaled to 1 at the first label that counts at epsilon. What lies far below it is capped, and may not be read. Far
    # above it, where exponentials would underflow, masses are taken for larger than they are, as a mass of 0 would be
    # below the truth.
    first = min(int(np.searchsorted(loss, tilt.epsilon - base)), size - 1)
    middle = float(loss[first])
    exponent = -tilt.theta * (loss - middle)
    untilt = np.exp(np.clip(exponent, -_DEEPEST, _DEEPEST))
    # an offset is exact, count times an offset is rounded: labels are moved up by that
    loss += base + 4e-16 * sum(count * abs(release.offset) for count, release in zip(counts, releases, strict=True))
    slack = _UNIT * (8.0 * abs(log_total) + 8.0 * abs(tilt.theta * middle) + 50.0 * sum(counts) + size)
    # probability that any release sends its loss to infinity
    finite = sum(n * math.log1p(-min(each.lost, 1.0 - 1e-16)) for n, each in zip(counts, releases, strict=True))
    doubt, norm = _rounding(power, apart, size)
    mass = (np.maximum(mass, 0.0) + doubt) * untilt
    return Composed(
        loss,
        mass,
        untilt,
        int(np.count_nonzero(exponent > -_DEEPEST)),
        doubt,
        norm,
        log_total - tilt.theta * middle,
        -math.expm1(finite) * (1.0 + 1e-12),
        math.expm1(min(slack, 50.0)),
        releases,
        plan,
        float(loss[int(np.argmax(exponent <= _DEEPEST))]),
    )


def _times_power(power: Spectrum, spread: np.ndarray, count: int) -> tuple[Spectrum, float]:
    """`power` times the `count`-th power of a transform, and what its rounding is in proportion to.

    What falls below e^-80 becomes 0 and costs no logarithm. Where one label bears most of the mass x0, only the rest
    is transformed: log(x0 + F) = log(x0) + log1p(F / x0), and the rounding of F is in proportion to the rest.
    """
    first = float(spread[0])
    heavy = first > _HEAVY
    if heavy:
        spread[0] = 0.0
    spectrum = np.fft.rfft(spread)
    faint = math.exp(-2.0 * _FAINT / count)
    if heavy:
        part = spectrum / first
        size = part.real * (2.0 + part.real) + part.imag**2  # |1 + part|^2 - 1, and at least .64 - 1
        alive = np.flatnonzero((1.0 + size > faint) & (power != 0.0))
        part, size = part[alive], size[alive]
        logs = 0.5 * np.log1p(size) + 1j * np.arctan2(part.imag, 1.0 + part.real) + math.log(first)
    else:
        # Not by what is left of 1: that is -1 already for a coefficient of 1e-8, which is not faint.
        alive = np.flatnonzero((spectrum.real**2 + spectrum.imag**2 > faint) & (power != 0.0))
        logs = np.log(spectrum[alive])
    result = np.zeros_like(power)
    result[alive] = power[alive] * np.exp(count * logs)
    return result, min(float(spread.sum()) / first, 1.0) if heavy else 1.0


def _rounding(power: Spectrum, apart: float, size: int) -> tuple[float, float]:
    """Return bounds on the error of one composed tilted mass, and on the Euclidean norm of all errors.

    Each value of an FFT is off by at most c u log2(size) times the sum of what is transformed (a sum through log2(size)
    levels); its count-th power by count times that, where the power lives; the inverse is their mean, plus its own
    rounding. `apart` is 1 for the latter, and for each kind of release its count times that sum. The same of norms, as
    a transform but for a factor leaves them as they are.
    """
    unit = 4.0 * _UNIT * math.log2(size)
    each = np.abs(power)
    one = 2.0 * float(each.sum()) / size * unit * (apart + 1.0)
    norm = math.sqrt(2.0 * float(each @ each) / size) * unit * (apart + 1.0)
    return one + math.exp(-_FAINT), norm + math.exp(-_FAINT)


def deltas_of(found: Composed, epsilons: np.ndarray) -> np.ndarray:
    """Return upper bounds of delta at increasing epsilons, which are looser far from the center of the composition.

    Below the window, and where tilting back was capped, delta is 1.

    Parameters
    ----------
    found : Composed
    epsilons : array
        Rising.

    Returns
    -------
    array
    """
    loss, mass = found.loss, found.mass
    first = np.searchsorted(loss, epsilons, side="right")
    tail = np.append(np.cumsum(mass[::-1])[::-1], 0.0)[first]
    total = tail.copy()
    stretch = np.floor((epsilons - epsilons[0]) / 300.0)
    for part in (np.flatnonzero(stretch == k) for k in np.unique(stretch)):
        # e^{epsilon - loss} is omitted, and no more than that, where it is below e^-300: that is above the truth
        low, high = int(first[part[0]]), int(np.searchsorted(loss, epsilons[part[-1]] + 300.0))
        origin = float(epsilons[part[0]])
        weighted = np.append(np.cumsum((mass[low:high] * np.exp(origin - loss[low:high]))[::-1])[::-1], 0.0)
        total[part] -= np.exp(epsilons[part] - origin) * weighted[np.minimum(first[part], high) - low]
    # both sums are known to their length times the unit of rounding, and nearly cancel
    total = np.maximum(total, 0.0) + 4.0 * _UNIT * loss.size * tail
    with np.errstate(divide="ignore"):
        main = np.exp(np.minimum(found.log_scale + np.log(total * (1.0 + found.slack)), 0.0))
    result = np.minimum(main + math.exp(min(found.log_outside, 0.0)) + found.lost, 1.0)
    return np.where(epsilons < found.floor, 1.0, result)
