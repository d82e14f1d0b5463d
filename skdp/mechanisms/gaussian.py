"""Normal noise, and what it is worth."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._checks.parameters import check_real
from skdp._kernels.bits import add_on_grid
from skdp.accounting import GaussianDpEvent
from skdp.mechanisms.additive import AdditiveMechanism
from skdp.mechanisms.streams import SecretStream


@dataclass(frozen=True)
class GaussianMechanism(AdditiveMechanism):
    """Gaussian mechanism, which adds independent normal noise to a number or an array and prices the release.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation sigma of the noise, divided by `sensitivity`. Above 0.
    sensitivity : float
        Largest Euclidean norm C of what one record adds to the value. Above 0, in the units of the value.

    Notes
    -----
    **Guarantees.** The standard deviation of every coordinate is `noise_multiplier` times `sensitivity`, or more by at
    most one part in 240. Where `noise_multiplier` times the square root of the number of coordinates is above 2**36, it
    is at most 3.001 times as large, and above 2**45 a release is refused. The event states the same `noise_multiplier`.
    (Dwork & Roth 2014, appendix A; priced exactly by Balle & Wang 2018.) What is released is the value on a public grid
    with ideal normal noise, rounded to the grid, so that the same numbers can come of every value. That value may be a
    sum of up to 2**20 records' contributions as doubles add them up, in any order. `release` charges the accountant
    before it draws noise, and nothing that it refuses is charged.

    Proof. Sums of doubles depend on their order, and all behind a record that leaves may round otherwise (Casacuberta
    et al. 2022). Let each of m contributions have a norm of at most C, and pass through at most h additions, each of
    which rounds its result by u = 2**-53 of it. Then a coordinate is wrong by at most 1.01 h u times the sum of the
    sizes that are added to it (Higham 2002, section 4.2), and these sums have a norm of at most m C. So two sums are
    further apart than C by at most 2.02 h m u C: in any order, where h < m, by 1.01 C / 2**12 for m up to 2**20, for
    which the noise has room. It has the same room for all h m up to 2**40, such as sums of blocks of 512 rows, which
    are added then, of up to 2**24 rows. Under ``replace_one`` all of this is doubled, as the sensitivity is.

    The step g of the grid is a power of two that follows from `noise_multiplier`, `sensitivity` and the number
    p of coordinates. The value is rounded to multiples of g, which adds sqrt(p) g to that; the noise is larger than
    sigma C by the factor of both, some .02 % as a rule. What is added is the whole number floor(s z + 1/2) of
    steps, s being the deviation in steps, and z a normal of infinitely many bits, of which as many are drawn as the
    rounding needs (`skdp.mechanisms.rounded_normals`). For a multiple v of g, v + g floor(s z + 1/2) is v + s g z,
    rounded to the grid: post-processing of the Gaussian mechanism, whose event it has. Doubles hold both summands
    exactly, and round their sum where it has more than 53 bits, which is post-processing too. So low bits tell nothing
    of the value, as they do where a double is added to a double (Mironov 2012).

    That `sensitivity` bounds what one record adds is the caller's promise: clip the records. A mean is released as a
    sum of clipped records, divided by a public number of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import PrivacyAccountant
    >>> from skdp.accounting import GaussianDpEvent, calibrate_noise_multiplier
    >>> from skdp.mechanisms import GaussianMechanism
    >>> ages = np.clip([41.0, 29.0, 57.0, 33.0], 0, 100)  # private; the bounds are public
    >>> accountant = PrivacyAccountant(epsilon=1.0, delta=1e-6)
    >>> sigma = calibrate_noise_multiplier(GaussianDpEvent, epsilon=0.5, delta=1e-6)
    >>> noisy = GaussianMechanism(sigma, sensitivity=100.0).release(ages.sum(), accountant=accountant)
    >>> mean = noisy / 4  # post-processing; the number of rows is public under zero_out
    >>> bool(accountant.get_epsilon(1e-6) <= 0.5)
    True
    """

    noise_multiplier: float
    sensitivity: float

    def __post_init__(self) -> None:
        # as doubles: in the arithmetic of what was given, a product could overflow to 0
        noise = GaussianDpEvent(self.noise_multiplier).noise_multiplier
        remedy = "give the norm that records are clipped to"
        sensitivity = check_real("sensitivity", self.sensitivity, above=0, remedy=remedy)
        if not _RANGE[0] <= noise * sensitivity <= _RANGE[1]:
            raise ValueError(
                f"noise_multiplier={noise!r}, sensitivity={sensitivity!r}: their product, the standard deviation of "
                "the noise, is not between 1e-288 and 1e298; scale the value."
            )
        object.__setattr__(self, "noise_multiplier", noise)
        object.__setattr__(self, "sensitivity", sensitivity)

    @property
    def event(self) -> GaussianDpEvent:
        """Event of one release."""
        return GaussianDpEvent(self.noise_multiplier)

    @property
    def standard_deviation(self) -> float:
        """Standard deviation of the noise in each coordinate, in the units of the value; grid and sums add to it."""
        return self.noise_multiplier * self.sensitivity

    def _checked(self, value: Any) -> NDArray[np.float64]:
        exact = finite_value(value)
        grid_and_scale(self.standard_deviation, self.sensitivity, exact.size)  # refuses before the charge
        return exact

    def _add_noise(self, value: NDArray[np.float64], stream: SecretStream) -> NDArray[np.float64]:
        """The only line of the library that adds normal noise is here."""
        grid, scale = grid_and_scale(self.standard_deviation, self.sensitivity, value.size)
        noisy: Any = stream.whole_normal(value.size, scale)
        add_on_grid(noisy, grid, value.ravel())
        return noisy if value.ndim == 1 else noisy.reshape(value.shape)


_RANGE = 2.0**-960, 2.0**990  # of the deviation of noise: what is made of it are normal doubles
_FINE = 2.0**-26  # part of the deviation that a step of the grid is at most
_ROOM = 2.0**-8  # part of the sensitivity that steps of all coordinates together are at most, while noise is in reach
_COARSE = 2.0**-44  # part of the deviation that a step is at most where noise is out of all reach
_MOST = 2.0**45  # noise multiplier times the root of the number of coordinates: beyond, the grid's room is the most
_SUMS = 1.01 * 2.0**-12  # part of the sensitivity by which two sums of doubles may be further apart
_LARGEST_SCALE = 2.0**46  # deviation in steps, up to which the kernel rounds


@functools.lru_cache(maxsize=256)  # a loop asks at each step, of few mechanisms
def grid_and_scale(standard_deviation: float, sensitivity: float, p: int) -> tuple[float, float]:
    """Step of the grid of a release, a power of two, and deviation of its noise in steps.

    Parameters
    ----------
    standard_deviation : float
        sigma C: that of the noise of a mechanism that rounds nothing.
    sensitivity : float
        C.
    p : int
        Number of coordinates. As the other two, it is public.

    Notes
    -----
    Rounding to a grid of step g moves a coordinate by at most g / 2. So two values that are C apart are at most
    C + sqrt(p) g apart on the grid, and the noise is larger than sigma C by the same factor. Where one record takes the
    place of another, each is that far at most from what all others add. The step is at most
    sigma C / 2**26 and C / (2**8 sqrt(p)), so that this factor is at most 1 + 2**-8, up to a sigma of 2**36 / sqrt(p).
    The kernel counts up to 2**46 steps a deviation: beyond, a step is at least sigma C / 2**45, and the factor at most
    1 + sigma sqrt(p) / 2**44. It is paid like any other: noise is larger by all that rounding can add. What sums round
    is added to the factor.
    """
    root = math.sqrt(max(p, 1))
    most = max(min(standard_deviation * _FINE, sensitivity * _ROOM / root), standard_deviation * _COARSE)
    grid = math.ldexp(0.5, math.frexp(most)[1])
    # the last factor is more than what this line rounds
    scale = standard_deviation * (1.0 + root * grid / sensitivity + _SUMS) * (1.0 + 2.0**-50) / grid
    if scale > _LARGEST_SCALE or root * standard_deviation > _MOST * sensitivity:
        raise ValueError(
            f"noise_multiplier={standard_deviation / sensitivity:g} is too large for {p} coordinates: give less than "
            "3e13 over the square root of their number."
        )
    return grid, scale


_EXACT = 2**53  # whole numbers up to here are doubles


def finite_value(value: Any) -> NDArray[np.float64]:
    """`value` as an array of float64, or a ValueError that says nothing of what is in it.

    Refused are masked arrays, whose hidden cells would be released, and whole numbers that a double would round.
    """
    try:
        exact = np.asarray(value)
        doubles = exact.astype(np.float64)
        usable = exact.dtype.kind in "buif" and not np.ma.isMaskedArray(value) and bool(np.isfinite(doubles).all())
        if exact.dtype.kind in "ui":
            usable = usable and bool((exact <= _EXACT).all() and (exact >= -_EXACT).all())
    except Exception:  # somebody's own array may raise anything, with values in its message
        usable = False
    if not usable:
        raise ValueError(
            "value holds what is no finite real number in double precision: give a float or an array of floats."
        ) from None
    return doubles


__all__ = ["GaussianMechanism"]
