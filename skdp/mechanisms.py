"""Mechanisms: what adds noise also says what the noise is worth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skdp._random import SecretStream
from skdp.accounting import GaussianDpEvent


@dataclass(frozen=True)
class GaussianMechanism:
    """Gaussian mechanism, which adds independent normal noise to a vector and prices the release.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation sigma of the noise, divided by `sensitivity`.
    sensitivity : float
        Largest Euclidean norm C of what one record adds to the value.

    Notes
    -----
    **Guarantees.** The standard deviation of every coordinate is `noise_multiplier` times `sensitivity`. The event
    states the same `noise_multiplier`. (Dwork & Roth 2014, appendix A; priced exactly by Balle & Wang 2018.)
    """

    noise_multiplier: float
    sensitivity: float

    @property
    def event(self) -> GaussianDpEvent:
        """Event of one release."""
        return GaussianDpEvent(self.noise_multiplier)

    @property
    def standard_deviation(self) -> float:
        """Standard deviation of the noise in each coordinate."""
        return self.noise_multiplier * self.sensitivity

    def release(self, value: NDArray[np.float64], stream: SecretStream) -> NDArray[np.float64]:
        """Add noise to a value.

        Parameters
        ----------
        value : ndarray of shape (p,)
            Exact value.
        stream : SecretStream
            Source of the noise.

        Returns
        -------
        ndarray of shape (p,)
            Noisy value.
        """
        noisy = stream.normal(value.size).astype(np.float64, copy=False)
        noisy *= self.standard_deviation
        noisy += value
        return noisy


__all__ = ["GaussianMechanism"]
