"""Figures that follow from one noisy table: what those of all kinds of targets share."""

from __future__ import annotations

import math
from functools import partial
from statistics import NormalDist
from typing import Any

import numpy as np

from skdp.accounting.ledger.html import html_table
from skdp.evaluation.estimates import Estimate
from skdp.evaluation.replicates import Metric, Replicates

ENOUGH_CASES = 7.0
"""Standard deviations of the noise of a class's number of rows, below which intervals are the whole range."""


class TableFigures:
    """Figures that all follow from one noisy table: none costs anything, however many are asked for."""

    _summary: tuple[str, ...] = ()
    level: float  # of the intervals
    _fitted_tables: Replicates

    def __init__(self, tables: Replicates, level: float, **facts: Any) -> None:
        """Figures of a part of all rows, such as a subgroup; `facts` are what they need beside its tables."""
        self._fitted_tables, self.level = tables, level
        vars(self).update(facts)

    def estimate(self, metric: Metric, low: float = -np.inf, high: float = np.inf) -> Estimate:
        """Estimate any figure of a table.

        Parameters
        ----------
        metric : callable
            Maps tables of shape (n_tables, ...) to one number a table, or to one array a table. Of two classes they
            have the shape (n_tables, 2, n_bins): negatives and then positives, in bins of the score.
        low, high : float
            Bounds of the figure.

        Returns
        -------
        Estimate
            Of numbers, or of arrays.
        """
        return self._fitted_tables.estimate(metric, float(self.level), low, high)

    def _share(self, metric: Metric) -> Estimate:
        return self.estimate(metric, 0.0, 1.0)

    def _spanning(
        self, found: Estimate, metric: Metric, ends: list[Metric], least: float = 0.0, most: float = 1.0
    ) -> Estimate:
        """Widen an interval by what the places of rows within bins may change, which the table does not tell.

        With d the difference that `ends` make, an end is z sqrt(s^2 + d^2) away where it was z s, or z s + d where that
        is less: an error of at most d, beside a normal one, is covered as often as stated.
        """
        z, released = NormalDist().inv_cdf(0.5 + float(self.level) / 2), self._fitted_tables.released
        moved = [float(each(released)[0] - metric(released)[0]) for each in ends]

        def away(distance: float, d: float) -> float:
            return min(math.hypot(distance, z * d), distance + d)

        low = found.value - away(found.value - found.low, -min(0.0, *moved))
        high = found.value + away(found.high - found.value, max(0.0, *moved))
        return found._replace(low=max(low, least), high=min(high, most))

    def _hidden_if_few(self, found: Estimate, least: float = 0.0, most: float = 1.0) -> Estimate:
        """Replace the interval by the whole range where the rarer class is hardly more than the noise."""
        tables = self._fitted_tables
        few = tables.released.sum(-1) < ENOUGH_CASES * np.sqrt(tables.variance.sum(-1))
        return found._replace(low=least, high=most) if few.any() else found

    # --- forms ---

    def summary(self) -> dict[str, Estimate]:
        """Return the usual figures by name.

        Returns
        -------
        dict of str to Estimate
        """
        found = {name: getattr(self, name) for name in self._summary}
        return {name: each() if callable(each) else each for name, each in found.items()}

    def __str__(self) -> str:
        lines = [f"{name.replace('_', ' '):18} {each.with_notes(estimand='')}" for name, each in self.summary().items()]
        return "\n".join([*lines, *filter(None, [self._fitted_tables.estimand])])

    def _figures_as_html(self) -> str:
        found, estimand = self.summary().items(), self._fitted_tables.estimand
        rows = [(name.replace("_", " "), f"{x.value:.4g}", f"{x.low:.4g} to {x.high:.4g}") for name, x in found]
        table = html_table(("", "value", f"{self.level:.0%} interval"), rows)
        return table + (estimand and f"<p>{estimand}</p>")


def sides(metric: Any, **sides: tuple[Any, Any]) -> list[Metric]:
    """The metric at either of two values of a parameter, extremes of what bins do not resolve."""
    return [partial(metric, **{name: side}) for name, pair in sides.items() for side in pair]
