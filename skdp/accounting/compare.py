"""All methods side by side on one event."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from .events.specifications import DpEvent
from .methods import APPROXIMATIONS, METHODS, check_delta, explain_refusal, get_epsilon

__all__ = ["compare_accountants"]

_NOTES = {
    "pld": "privacy loss distributions; the figure to report",
    "rdp": "Rényi divergences, best order",
    "moments": "as published in 2016: whole orders up to 32, older conversion",
    "optimal_exact": "each step as a statement; equal steps composed exactly",
    "optimal": "each step as a statement; closed-form bound of Kairouz, Oh & Viswanath",
    "strong": "each step as a statement; Dwork, Rothblum & Vadhan",
    "naive": "sums of epsilons and of deltas",
    "moments_asymptotic": "not a guarantee: leading term of the log moment, remainder left out",
    "gdp": "not a guarantee: central limit approximation, can be too small",
    "strong_2016": "not a guarantee: as published in 2016, beyond the range of its formulas",
}


def compare_accountants(
    event: DpEvent, delta: float, *, adjacency: str = "zero_out", methods: Iterable[str] | None = None
) -> Any:
    """Epsilon of one event by every method.

    Parameters
    ----------
    event : DpEvent
        Event to price.
    delta : float
        In (0, 1).
    adjacency : {"zero_out", "add_remove", "replace_one"}
    methods : iterable of str, optional
        Some of the methods instead of all.

    Returns
    -------
    pandas.DataFrame
        Columns `method`, `epsilon`, `guarantee` (False for figures that are not bounds) and `note`. A method
        that cannot price the event has epsilon NaN and its reason as the note.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("compare_accountants needs pandas; run `pip install pandas`.") from error
    delta, rows = check_delta(delta), []
    for method in METHODS + APPROXIMATIONS if methods is None else tuple(methods):
        reason = explain_refusal(event, method, adjacency)
        epsilon = get_epsilon(event, delta, method=method, adjacency=adjacency) if reason is None else math.nan
        rows.append((method, epsilon, method in METHODS, str(reason or _NOTES[method])))
    return pd.DataFrame(rows, columns=["method", "epsilon", "guarantee", "note"])
