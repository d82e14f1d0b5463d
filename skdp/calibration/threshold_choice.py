"""Thresholds for a purpose, from counts of scores of either class, for each subgroup."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skdp._typing import Doubles
from skdp.evaluation.binary_metrics import above
from skdp.evaluation.scale import scores_at

RATES = "selection_rate", "true_positive_rate", "false_positive_rate"
_N_RATES = 201


class Purpose(NamedTuple):
    """What thresholds are for.

    Attributes
    ----------
    cost : ndarray of shape (2, 2)
        Of a row by its class and what is predicted.
    min_precision, min_recall : float or None
        Least of either.
    equal_rates : str or None
        One of `RATES`, which subgroups have in common.
    """

    cost: Doubles
    min_precision: float | None
    min_recall: float | None
    equal_rates: str | None


def choose_thresholds(tables: Doubles, purpose: Purpose) -> Doubles:
    """Return the threshold of each subgroup.

    Among all candidates that keep the least precision and recall the one of least cost is taken; where none does, the
    one that comes closest.

    Parameters
    ----------
    tables : ndarray of shape (n_subgroups, 2, n_bins)
        Counts of negatives and positives, 0 or above.
    purpose : Purpose

    Returns
    -------
    ndarray of shape (n_subgroups,)
        In [0, 1]. Without `equal_rates` all of them are the same.
    """
    candidates = _candidates(tables, purpose.equal_rates)
    predicted = np.stack([above(table[None], at)[0] for table, at in zip(tables, candidates, strict=True)]).sum(0)
    negatives, positives = tables.sum((0, 2))
    false, true = predicted
    cost = purpose.cost
    costs = cost[0, 0] * (negatives - false) + cost[0, 1] * false + cost[1, 0] * (positives - true) + cost[1, 1] * true
    missing = np.maximum(
        _short_of(purpose.min_precision, true, true + false), _short_of(purpose.min_recall, true, positives)
    )
    kept = missing <= max(float(missing.min()), 1e-12)
    return scores_at(candidates[:, np.argmin(np.where(kept, costs, np.inf))])


def _candidates(tables: Doubles, rate: str | None) -> Doubles:
    """Places of thresholds to choose from, of shape (n_subgroups, n_candidates), from high to low ones."""
    n_bins = tables.shape[-1]
    edges = np.arange(n_bins, -1, -1) / n_bins
    if rate is None:
        return np.broadcast_to(edges, (len(tables), len(edges)))
    wanted = np.linspace(0.0, 1.0, _N_RATES)
    return np.array([_thresholds_at(table, rate, edges, wanted) for table in tables])


def _thresholds_at(table: Doubles, rate: str, edges: Doubles, wanted: Doubles) -> Doubles:
    """Places of thresholds at which a subgroup has the wanted rates; evenly spread ones where it has no rows."""
    negatives, positives = above(table[None], edges)[0]
    counts = {"selection_rate": negatives + positives, "true_positive_rate": positives}.get(rate, negatives)
    if counts[-1] <= 0:
        return 1.0 - wanted
    rates = np.maximum.accumulate(counts / counts[-1])
    upward = 1e-12 * np.arange(len(edges))  # the highest of the thresholds of one rate
    return np.interp(wanted, rates + upward, edges)


def _short_of(least: float | None, counts: Doubles, of: Doubles) -> Doubles:
    """By how much a share falls short; a share of nobody does not."""
    if least is None:
        return np.zeros(np.shape(counts))
    of = np.broadcast_to(of, np.shape(counts))
    shares = np.divide(counts, of, out=np.ones(np.shape(counts)), where=of > 1e-9)
    return np.maximum(least - shares, 0.0)
