"""Bounds of columns that are bought beside the releases of a fit, where they are not public."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from skdp._checks.units import Units
from skdp._typing import Doubles
from skdp.accounting import DpEvent, compose
from skdp.mechanisms.streams import SecretStream
from skdp.preprocessing.histograms.purchase import Bounds, Purchase

BOUNDS_SHARE = 0.3
"""Share of mu^2 for bounds where some are bought."""


@dataclass(frozen=True)
class BoughtBounds:
    """Bounds of columns of numbers, some of which are bought.

    Parameters
    ----------
    bounds : tuple of ((float, float) or None)
        Public bounds of each column, None where they are bought.
    adjacency : {"zero_out", "add_remove", "replace_one"}

    Notes
    -----
    **Guarantees.** Bounds that are bought are a function of what a `skdp.preprocessing.histograms.purchase.Purchase`
    releases, and of public numbers, and what that costs is part of `event_beside`.
    """

    bounds: tuple[Bounds, ...]
    adjacency: str

    @property
    def _n_open(self) -> int:
        return sum(pair is None for pair in self.bounds)

    @property
    def _purchase(self) -> Purchase:
        return Purchase(self._n_open, 0, 1, 1, self.adjacency, 0.0)

    def noise_left(self, noise_multiplier: float) -> float:
        """Noise multiplier of all other releases of a fit that has `noise_multiplier` in all."""
        return noise_multiplier / math.sqrt(1.0 - BOUNDS_SHARE) if self._n_open else noise_multiplier

    def event_beside(self, event_at: Callable[[float], DpEvent]) -> Callable[[float], DpEvent]:
        """Return what a fit costs at a noise multiplier, whose other releases alone would cost `event_at` there."""
        if not self._n_open:
            return event_at
        return lambda noise: compose(
            [self._purchase.event_at(noise / math.sqrt(BOUNDS_SHARE)), event_at(self.noise_left(noise))]
        )

    def release(
        self,
        columns: list[Doubles],
        noise_multiplier: float,
        n_public: int,
        stream: SecretStream,
        weights: Any = 1.0,
        units: Units | None = None,
    ) -> list[tuple[float, float]]:
        """Return the bounds of each column.

        Parameters
        ----------
        columns : list of ndarray of shape (n,)
            Private, float64; NaN is a gap.
        noise_multiplier : float
            Of the whole fit, whose event was charged.
        n_public : int
        stream : SecretStream
            Of this purchase alone.
        weights : ndarray of shape (n,) or 1.0
            Private: `exactly_summable` numbers in [0, 1].
        units : Units or None
            Private, of the rows.
        """
        found: list[tuple[float, float]] = []
        if self._n_open:
            opened = [values for values, pair in zip(columns, self.bounds, strict=True) if pair is None]
            given = noise_multiplier / math.sqrt(BOUNDS_SHARE), n_public, stream, weights, units
            found = self._purchase.release(opened, [], *given).bounds
        return [found.pop(0) if pair is None else pair for pair in self.bounds]
