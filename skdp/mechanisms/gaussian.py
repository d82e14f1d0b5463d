"""Normal noise, and what it is worth."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._checks.parameters import check_real
from skdp._kernels.bits import scale_and_add
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
    **Guarantees.** The standard deviation of every coordinate is `noise_multiplier` times `sensitivity`. The event
    states the same `noise_multiplier`. (Dwork & Roth 2014, appendix A; priced exactly by Balle & Wang 2018.) `release`
    charges the accountant before it draws noise, and nothing that it refuses is charged.

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
        if not sys.float_info.min <= noise * sensitivity < math.inf:
            raise ValueError(
                f"noise_multiplier={noise!r}, sensitivity={sensitivity!r}: no double holds their product, the standard "
                "deviation of the noise; scale the value."
            )
        object.__setattr__(self, "noise_multiplier", noise)
        object.__setattr__(self, "sensitivity", sensitivity)

    @property
    def event(self) -> GaussianDpEvent:
        """Event of one release."""
        return GaussianDpEvent(self.noise_multiplier)

    @property
    def standard_deviation(self) -> float:
        """Standard deviation of the noise in each coordinate, in the units of the value."""
        return self.noise_multiplier * self.sensitivity

    def _checked(self, value: Any) -> NDArray[np.float64]:
        return finite_value(value)

    def _add_noise(self, value: NDArray[np.float64], stream: SecretStream) -> NDArray[np.float64]:
        """The only line of the library that adds normal noise is here."""
        noisy: Any = stream.normal(value.size)
        scale_and_add(noisy, self.standard_deviation, value.ravel())
        return noisy if value.ndim == 1 else noisy.reshape(value.shape)


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
