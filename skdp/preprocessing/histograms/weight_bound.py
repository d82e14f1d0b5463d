"""A bound on weights of rows that is bought: a high quantile, by noisy counts, before a fit uses the weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from skdp._checks.weights import WeightReader, is_bought
from skdp.accounting import DpEvent, GaussianDpEvent
from skdp.mechanisms.streams import SecretStream
from skdp.preprocessing.histograms.purchase import Purchase, event_with, noise_ratio

SHARE = 0.05
"""Part of mu^2 of a fit that the bound gets. The rest of the fit then has 2.5 % less of mu."""

_LEAST, _MOST = 1e-30, 1e30


@dataclass(frozen=True)
class WeightPurchase:
    """What buys a bound on weights beside the releases of a fit. All of its fields are public.

    Parameters
    ----------
    adjacency : {"zero_out", "add_remove", "replace_one"}
    ratio : float
        Noise multiplier of the purchase, divided by that of the fit's own releases.

    Notes
    -----
    **Guarantees.** The bound is a function of what a `skdp.preprocessing.histograms.purchase.Purchase` of one column
    releases, and of public numbers. What it costs is part of the event of the fit, which is charged before the weights
    are counted. A row of weight 0, the null record, is a gap there and adds nothing to any count; so one row changes
    the counts by no more than the sensitivity that `Purchase` proves. The sums of the fit are those of a fit whose
    public bound is the one that was bought (adaptive composition).
    """

    adjacency: str
    ratio: float

    @classmethod
    def beside_one_release(cls, adjacency: str) -> WeightPurchase:
        """A purchase of `SHARE` of mu^2 beside one Gaussian release."""
        return cls(adjacency, noise_ratio(SHARE))

    @classmethod
    def beside_steps(cls, adjacency: str, rate: float, n_steps: int) -> WeightPurchase:
        """A purchase of `SHARE` of mu^2 beside steps, see `skdp.preprocessing.histograms.purchase.noise_ratio`."""
        return cls(adjacency, noise_ratio(SHARE, rate, n_steps))

    @property
    def _purchase(self) -> Purchase:
        return Purchase(1, 0, 1, 1, self.adjacency, 0.0)

    def event_at(self, noise_multiplier: float) -> DpEvent:
        """What the bound costs where the fit's own releases have this noise multiplier."""
        return self._purchase.event_at(self.ratio * noise_multiplier)

    def buy(self, weights: Any, noise_multiplier: float, n_public: int, stream: SecretStream) -> float:
        """Release the bound, a number beyond which there are no more weights than noise could be.

        Parameters
        ----------
        weights : ndarray of shape (n,)
            Private, finite and nonnegative.
        noise_multiplier : float
            As of `event_at`, whose event was charged.
        n_public : int
            Public number of rows.
        stream : SecretStream
            Of this release alone.

        Returns
        -------
        float
            From 1e-30 to 1e30; 1.0 if nothing stands out of the noise.
        """
        counted = np.where(weights > 0.0, weights, np.nan)
        bought = self._purchase.release([counted], [], self.ratio * noise_multiplier, n_public, stream)
        return float(min(max(bought.bounds[0][1], _LEAST), _MOST))


@dataclass(frozen=True)
class ReleaseWeights:
    """Weights of an estimator that makes one Gaussian release.

    Parameters
    ----------
    weight_bound : float, "private" or None
        The parameter of the estimator.
    adjacency : {"zero_out", "add_remove", "replace_one"}
    """

    weight_bound: Any
    adjacency: str

    @property
    def _purchase(self) -> WeightPurchase | None:
        return WeightPurchase.beside_one_release(self.adjacency) if is_bought(self.weight_bound) else None

    @property
    def event_at(self) -> Callable[[float], DpEvent]:
        """What a fit costs at a noise multiplier: its release, and the bound if it is bought."""
        purchase = self._purchase
        return GaussianDpEvent if purchase is None else partial(event_with, (purchase,), GaussianDpEvent)

    def shares(
        self, weights: Any, to_bound: Any, noise_multiplier: float, n_public: int, stream: SecretStream
    ) -> tuple[float, Any]:
        """Return the bound, which is bought here if it is, and weights as shares of it.

        Parameters
        ----------
        weights, to_bound : ndarray of shape (n,), 1.0 or None
            Private, of `read_weights`.
        noise_multiplier : float
            As of `event_at`, whose event was charged.
        n_public : int
            Public number of rows.
        stream : SecretStream
            Of the purchase alone.
        """
        purchase, reader = self._purchase, WeightReader.of(self.weight_bound)
        if purchase is None:
            return reader.bound, weights
        bound = purchase.buy(to_bound, noise_multiplier, n_public, stream)
        return bound, WeightReader(bound).shares(to_bound)


__all__ = ["SHARE", "ReleaseWeights", "WeightPurchase"]
