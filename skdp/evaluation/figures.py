"""Figures that follow from one noisy table: what those of all kinds of targets share."""

from __future__ import annotations

import html
from typing import Any

import numpy as np

from skdp.evaluation.estimates import Estimate
from skdp.evaluation.replicates import Metric, Replicates


class TableFigures:
    """Figures that all follow from one noisy table: none costs anything, however many are asked for."""

    _summary: tuple[str, ...] = ()
    level: float  # of the intervals
    _fitted_tables: Replicates

    def estimate(self, metric: Metric, low: float = -np.inf, high: float = np.inf) -> Any:
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
        found: Estimate = self.estimate(metric, 0.0, 1.0)
        return found

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
        lines = [f"{name.replace('_', ' '):18} {each.with_estimand('')}" for name, each in self.summary().items()]
        return "\n".join([*lines, *filter(None, [self._fitted_tables.estimand])])

    def _figures_as_html(self) -> str:
        cells = (
            f"<tr><th>{html.escape(name.replace('_', ' '))}</th><td>{each.value:.4g}</td>"
            f"<td>{each.low:.4g} to {each.high:.4g}</td></tr>"
            for name, each in self.summary().items()
        )
        head = f"<tr><th></th><th>value</th><th>{self.level:.0%} interval</th></tr>"
        estimand = self._fitted_tables.estimand
        return f"<table>{head}{''.join(cells)}</table>" + (estimand and f"<p>{estimand}</p>")


class PartOfRows(TableFigures):
    """Figures of a part of all rows.

    Parameters
    ----------
    tables : Replicates
        Of the part.
    level : float
        Of the intervals.
    """

    def __init__(self, tables: Replicates, level: float) -> None:
        self._fitted_tables, self.level = tables, level


__all__ = ["PartOfRows", "TableFigures"]
