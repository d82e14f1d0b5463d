"""Metrics of two classes, from counts of scores in bins.

A table has the shape (n_tables, 2, n_bins): negatives, then positives, in bins of equal width between 0 and 1. Metrics
are plain sums over finer bins, into which `refined` spreads the counts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skdp._typing import Doubles

_FINE = 512
_POINTS = 16  # of a finer bin, for the mean of a logarithm


class Scale(NamedTuple):
    """Where scores lie between 0 and 1, so that bins of equal width are fine where scores crowd.

    Attributes
    ----------
    odds : float
        A score with odds of 1 to `odds` lies in the middle.
    power : float
        Of the odds. Both are 1 where a score lies at its own place; below 1, the ends are stretched.
    """

    odds: float = 1.0
    power: float = 1.0

    def places(self, scores: Any) -> Doubles:
        """Places of scores, which are cut to [0, 1]; NaN is at 0."""
        p = np.clip(np.nan_to_num(np.asarray(scores, np.float64)), 0.0, 1.0)
        return _share_of(self.odds**self.power * p**self.power, (1.0 - p) ** self.power)

    def scores(self, places: Any) -> Doubles:
        """Scores at places."""
        t = np.asarray(places, np.float64)
        return _share_of(t ** (1.0 / self.power) / self.odds, (1.0 - t) ** (1.0 / self.power))


def _share_of(first: Doubles, second: Doubles) -> Doubles:
    found: Doubles = first / (first + second)
    return found


PLAIN = Scale()


def refined(tables: Doubles) -> Doubles:
    """Spread counts over finer bins by a linear density within each bin, with the slope of its neighbours' counts.

    Without slopes the AUROC is too low by about the square of the width of a bin, whatever n is.

    Parameters
    ----------
    tables : ndarray of shape (n_tables, 2, n_bins)

    Returns
    -------
    ndarray of shape (n_tables, 2, n_bins * k)
    """
    n_bins = tables.shape[-1]
    parts = max(2, _FINE // n_bins)
    rise = np.gradient(tables, axis=-1) if n_bins > 1 else np.zeros_like(tables)
    rise = np.clip(rise, -2.0 * tables, 2.0 * tables)  # densities are not negative
    places = (np.arange(parts) + 0.5) / parts - 0.5
    fine = (tables[..., None] + rise[..., None] * places) / parts
    return np.maximum(fine, 0.0).reshape(*tables.shape[:-1], n_bins * parts)  # rounding


def centres(n_bins: int, scale: Scale = PLAIN) -> Doubles:
    """Scores in the middles of bins."""
    return scale.scores((np.arange(n_bins) + 0.5) / n_bins)


def roc_auc(tables: Doubles) -> Doubles:
    """Probability that a positive has a higher score than a negative; 1/2 where a class is empty."""
    fine = refined(tables)
    negatives, positives = fine[:, 0], fine[:, 1]
    below = np.cumsum(negatives, axis=-1) - 0.5 * negatives
    return _ratio((positives * below).sum(-1), positives.sum(-1) * negatives.sum(-1), 0.5)


def brier_score(tables: Doubles, scale: Scale = PLAIN) -> Doubles:
    """Mean squared distance between score and class."""
    fine = refined(tables)
    at = centres(fine.shape[-1], scale)
    return _ratio(fine[:, 0] @ at**2 + fine[:, 1] @ (1.0 - at) ** 2, fine.sum((-2, -1)), 0.25)


def log_loss(tables: Doubles, scale: Scale = PLAIN) -> Doubles:
    """Mean negative logarithm of the probability of what is true."""
    fine = refined(tables)
    negative, positive = losses(fine.shape[-1], scale)
    return _ratio(fine[:, 1] @ positive + fine[:, 0] @ negative, fine.sum((-2, -1)), np.log(2.0))


def losses(n_bins: int, scale: Scale = PLAIN) -> Doubles:
    """Mean negative logarithm, over each bin, of the probability of the first class and of the second."""
    at = centres(n_bins * _POINTS, scale)
    return -np.log(np.stack([1.0 - at, at])).reshape(2, n_bins, _POINTS).mean(-1)


def above(tables: Doubles, thresholds: Doubles) -> Doubles:
    """Counts of each class with scores at or above thresholds, of shape (n_tables, 2, n_thresholds)."""
    fine = refined(tables)
    upward = np.concatenate([np.zeros((*fine.shape[:-1], 1)), np.cumsum(fine, axis=-1)], axis=-1)
    place = np.clip(np.asarray(thresholds, np.float64), 0.0, 1.0) * fine.shape[-1]
    left = np.minimum(place.astype(np.int64), fine.shape[-1] - 1)
    below = upward[..., left] + (place - left) * fine[..., left]
    return upward[..., -1:] - below


def confusion(tables: Doubles, thresholds: Doubles) -> Doubles:
    """Counts of shape (n_tables, 4, n_thresholds): true negatives, false positives, false negatives, true positives."""
    predicted, totals = above(tables, thresholds), tables.sum(-1)[..., None]
    return np.stack(
        [totals[:, 0] - predicted[:, 0], predicted[:, 0], totals[:, 1] - predicted[:, 1], predicted[:, 1]], axis=1
    )


def accuracy(tables: Doubles, thresholds: Doubles) -> Doubles:
    """Share of right predictions."""
    tn, fp, fn, tp = np.moveaxis(confusion(tables, thresholds), 1, 0)
    return _ratio(tn + tp, tn + fp + fn + tp, 0.5)


def precision(tables: Doubles, thresholds: Doubles) -> Doubles:
    """Share of positives among what is predicted to be one; the share among all where nothing is."""
    predicted, share = above(tables, thresholds), positive_rate(tables)
    return _ratio(predicted[:, 1], predicted.sum(1), share[:, None])


def recall(tables: Doubles, thresholds: Doubles) -> Doubles:
    """Share of positives that are predicted to be one."""
    return rates(tables, thresholds)[:, 1]


def f1(tables: Doubles, thresholds: Doubles) -> Doubles:
    """Harmonic mean of precision and recall."""
    _, fp, fn, tp = np.moveaxis(confusion(tables, thresholds), 1, 0)
    return _ratio(2.0 * tp, 2.0 * tp + fp + fn, 0.0)


def positive_rate(tables: Doubles) -> Doubles:
    """Share of positives among all."""
    totals = tables.sum(-1)
    return _ratio(totals[:, 1], totals.sum(-1), 0.5)


def rates(tables: Doubles, thresholds: Doubles) -> Doubles:
    """Shares of negatives and of positives at or above thresholds, of shape (n_tables, 2, n_thresholds)."""
    thresholds = np.asarray(thresholds, np.float64)
    return _ratio(above(tables, thresholds), tables.sum(-1)[..., None], 1.0 - np.clip(thresholds, 0.0, 1.0))


def average_precision(tables: Doubles) -> Doubles:
    """Mean of the precision over the recall, from the highest score down."""
    fine = refined(tables)[..., ::-1]
    negatives, positives = fine[:, 0], fine[:, 1]
    # halves: half of the positives of a cell come before the others
    true, false = np.cumsum(positives, -1) - 0.5 * positives, np.cumsum(negatives, -1) - 0.5 * negatives
    at = _ratio(true, true + false, 0.0)
    return _ratio((at * positives).sum(-1), positives.sum(-1), 0.0)


def calibration(tables: Doubles, n_groups: int, scale: Scale = PLAIN) -> Doubles:
    """Share of positives, and mean score, in groups of neighbouring bins: of shape (n_tables, 2, n_groups)."""
    fine = refined(tables)
    n_cells = fine.shape[-1]
    group = np.minimum((centres(n_cells) * n_groups).astype(np.int64), n_groups - 1)
    member = (group[:, None] == np.arange(n_groups)).astype(np.float64)
    both = fine.sum(1)
    held, middle = both @ member, centres(n_groups, scale)
    share = _ratio(fine[:, 1] @ member, held, positive_rate(tables)[:, None])
    return np.stack([share, _ratio(both @ (member * centres(n_cells, scale)[:, None]), held, middle)], axis=1)


def lift(tables: Doubles, thresholds: Doubles) -> Doubles:
    """Share of positives at or above thresholds, divided by the share among all."""
    return _ratio(precision(tables, thresholds), positive_rate(tables)[:, None], 1.0)


def cost(tables: Doubles, thresholds: Doubles, false_positive: float, false_negative: float) -> Doubles:
    """Mean cost of a row."""
    _, fp, fn, _ = np.moveaxis(confusion(tables, thresholds), 1, 0)
    return _ratio(false_positive * fp + false_negative * fn, tables.sum((-2, -1))[:, None], 0.0)


def conformal_quantile(tables: Doubles, alpha: float, scale: Scale = PLAIN) -> Doubles:
    """Quantile of order ceil((n + 1) (1 - alpha)) / n of 1 - p, p being the probability of what is true, 1 beyond."""
    fine = refined(tables)
    edges = scale.scores(np.arange(fine.shape[-1] + 1) / fine.shape[-1])
    farthest = np.concatenate([edges[1:], 1.0 - edges[:-1]])  # of a cell of negatives, or of positives
    nearest_first = np.argsort(farthest, kind="stable")
    distances = np.cumsum(fine.reshape(len(fine), -1)[:, nearest_first], axis=-1)
    n = distances[:, -1]
    order = np.ceil((n + 1.0) * (1.0 - alpha))
    reached = distances >= np.minimum(order, n)[:, None]
    found = farthest[nearest_first][np.argmax(reached, axis=-1)]
    return np.where((order <= n) & (n > 0), found, 1.0)


def _ratio(above: Doubles, below: Doubles, otherwise: Any) -> Doubles:
    out = np.broadcast_to(np.asarray(otherwise, np.float64), np.shape(above)).copy()
    return np.divide(
        above, np.broadcast_to(below, np.shape(above)), out=out, where=np.broadcast_to(below, np.shape(above)) > 0
    )
