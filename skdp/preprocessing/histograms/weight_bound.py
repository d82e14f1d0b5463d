"""A bound on weights of rows that is bought: a high quantile, by noisy counts, before a fit uses the weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from skdp._checks.parameters import refuse_fit_params
from skdp._checks.units import Units
from skdp._checks.weights import WeightReader, is_bought, read_weights, refuse_bought_bound, warn_of_no_bound
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


class RowWeights(NamedTuple):
    """Weights of the rows of a fit, private: shares of a public bound, and whether there are any.

    Where the bound is to be bought, `to_bound` has the weights as they are, and the shares are 1.0. `units` are those
    of the rows, if a row is not one of its own.
    """

    shares: Any = 1.0
    to_bound: Any = None
    are_given: bool = False
    units: Units | None = None

    def n_units(self, n_rows: int) -> int:
        """Return the number of units of so many rows, which is public where theirs may not be."""
        return n_rows if self.units is None else self.units.n_units

    @classmethod
    def made_up(cls, n_rows: int) -> RowWeights:
        """No weights, for a rehearsal, and equal ones if a bound is bought."""
        return cls(to_bound=np.ones(n_rows))


@dataclass(frozen=True)
class ReleaseWeights:
    """Weights of an estimator whose releases together cost as much as one Gaussian release.

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
        """What a fit of one release costs at a noise multiplier, with the bound if it is bought."""
        return self.event_beside(GaussianDpEvent)

    def event_beside(self, event_at: Callable[[float], DpEvent]) -> Callable[[float], DpEvent]:
        """What a fit costs whose own releases cost `event_at`, with the bound if it is bought."""
        purchase = self._purchase
        return event_at if purchase is None else partial(event_with, (purchase,), event_at)

    def read(self, fit_params: dict[str, Any], n_rows: int) -> RowWeights:
        """Check the weights among the parameters of a ``fit``, warn where they have no bound, and refuse all else."""
        others = dict(fit_params)
        sample_weight = others.pop("sample_weight", None)
        refuse_fit_params(others)
        warn_of_no_bound(self.weight_bound, sample_weight)
        return RowWeights(*read_weights(self.weight_bound, sample_weight, n_rows), sample_weight is not None)

    def read_of_units(self, fit_params: dict[str, Any], n_rows: int) -> RowWeights:
        """Do the same for an estimator that clips the sums of units, and keep these; for others `read` refuses them."""
        others = dict(fit_params)
        units = others.pop("groups", None)
        refuse_bought_bound(self.weight_bound, units)
        return self.read(others, n_rows)._replace(units=units)

    def shares(
        self, weights: RowWeights, noise_multiplier: float, n_public: int, stream: SecretStream
    ) -> tuple[float, Any]:
        """Return the bound, which is bought here if it is, and weights as shares of it.

        Parameters
        ----------
        weights : RowWeights
            Private.
        noise_multiplier : float
            As of `event_at`, whose event was charged.
        n_public : int
            Public number of rows.
        stream : SecretStream
            Of the purchase alone.
        """
        purchase = self._purchase
        if purchase is None:
            return WeightReader.of(self.weight_bound).bound, weights.shares
        bound = purchase.buy(weights.to_bound, noise_multiplier, n_public, stream)
        return bound, WeightReader(bound).shares(weights.to_bound)


__all__ = ["SHARE", "ReleaseWeights", "RowWeights", "WeightPurchase"]
