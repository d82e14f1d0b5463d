"""Units of the targets of a regressor, bought: their mean and their spread, so that one clip suits all targets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp._random import SecretStream
from skdp.accounting import DpEvent, GaussianDpEvent
from skdp.mechanisms import GaussianMechanism
from skdp.preprocessing.purchase import noise_ratio

UNITS_SHARE = 0.02
"""Part of mu^2 of a fit that mean and spread get. The steps then have 1 % less of mu."""

UNIT_SPREAD = 0.45
"""Standard deviation of targets in the units that clip and steps are rules for (`skdp._training.one_hot_defaults`)."""

_ENOUGH = 8.0
"""Standard deviations of the noise that the number of rows exceeds, if mean and spread are to be used at all."""

_LEAST = 1e-3


class TargetUnits(NamedTuple):
    """An affine map of targets that lie between -1 and 1: (y - center) / unit."""

    center: float = 0.0
    unit: float = 1.0


@dataclass(frozen=True)
class TargetPurchase:
    """What buys the mean and the spread of targets beside the steps of a fit. All of its fields are public.

    Parameters
    ----------
    adjacency : {"zero_out", "add_remove", "replace_one"}
    ratio : float
        Noise multiplier of the purchase, divided by that of the steps.

    Notes
    -----
    **Guarantees.** A row of weight w in [0, 1] and target y in [-1, 1] adds (w, w y, w y^2), whose norm is at most
    sqrt(3); a row of weight 0, the null record, adds nothing. The sums are released once, with Gaussian noise, at the
    price of `event_at`, which is part of the event of the fit. What follows sees the targets' scale through them alone.
    """

    adjacency: str
    ratio: float

    @classmethod
    def beside_steps(cls, adjacency: str, rate: float, n_steps: int) -> TargetPurchase:
        """A purchase of `UNITS_SHARE` of mu^2 beside steps, see `skdp.preprocessing.purchase.noise_ratio`."""
        return cls(adjacency, noise_ratio(UNITS_SHARE, rate, n_steps))

    def event_at(self, noise_multiplier: float) -> DpEvent:
        """What the sums cost where the steps have this noise multiplier."""
        return GaussianDpEvent(self.ratio * noise_multiplier)

    def _mechanism(self, noise_multiplier: float) -> GaussianMechanism:
        return GaussianMechanism(self.ratio * noise_multiplier, math.sqrt(3.0))

    def buy(
        self, values: NDArray[np.float64], weights: NDArray[np.float64], noise_multiplier: float, stream: SecretStream
    ) -> list[float]:
        """Release the sums of weights, of weighted targets and of their squares.

        Parameters
        ----------
        values, weights : ndarray of shape (n,)
            Private: targets, which are cut to [-1, 1], and weights in [0, 1].
        noise_multiplier : float
            As of `event_at`, whose event was charged.
        stream : SecretStream
            Of this release alone.

        Returns
        -------
        list of float
        """
        values = np.clip(values, -1.0, 1.0)  # bounds that are neighbours among doubles have rounded ends
        sums = np.array([weights.sum(), weights @ values, weights @ values**2])
        return self._mechanism(noise_multiplier).release(sums, stream).tolist()

    def units(self, sums: list[float], noise_multiplier: float, *, fit_intercept: bool) -> TargetUnits:
        """Return the units in which targets have the mean 0 and the standard deviation `UNIT_SPREAD`, from noisy sums.

        The error of the variance is added to it: too large a spread is a small loss, too small a one a bias. Without an
        intercept nothing makes up for a mean that is subtracted.
        """
        deviation = self._mechanism(noise_multiplier).standard_deviation
        total, first, second = sums
        if total < _ENOUGH * deviation:
            return TargetUnits()
        center = min(max(first / total, -1.0), 1.0) if fit_intercept else 0.0
        variance = max((second - 2.0 * center * first) / total + center**2, 0.0)
        error = deviation / total * math.sqrt(1.0 + 4.0 * center**2 + center**4)
        return TargetUnits(center, max(math.sqrt(min(variance + error, 1.0)), _LEAST) / UNIT_SPREAD)


__all__ = ["UNITS_SHARE", "UNIT_SPREAD", "TargetPurchase", "TargetUnits"]
