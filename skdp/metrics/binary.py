"""Metrics of binary classifiers, from counts of scores in bins.

A histogram has the shape (n_tables, 2, n_bins): negatives, then positives, in bins of equal width on the scale of
`skdp.metrics.scored_rows`. Metrics are sums over finer bins, into which `refined` spreads the counts.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from skdp._checks.parameters import check_count, check_real
from skdp.base.estimates import Estimate, EstimatedCurve
from skdp.metrics.replicates import Metric, TableEstimates, sides
from skdp.metrics.scored_rows import FARTHEST, logits_at, places_of, scores_at

_FINE = 512
_POINTS = 16  # of a finer bin, for the mean of a logarithm
_FEW = 3.0  # rows; fewer do not show how the log-odds of bins differ


def refined(tables: np.ndarray, tied_at: float = 0.5, share: np.ndarray | None = None) -> np.ndarray:
    """Spread counts over finer bins by a linear density within each bin, with the slope of the neighboring counts.

    Without slopes the AUROC is too low by about the square of the bin width, for any n. Tied scores, for example of a
    tree, are in one finer bin.

    Parameters
    ----------
    tables : ndarray of shape (n_tables, 2, n_bins)
    tied_at : float
        Position of tied scores within their bin, from 0 to 1.
    share : ndarray of shape (n_tables, 1, n_bins) or None
        Fraction of each bin that is tied. If None, `tied_share` is used.

    Returns
    -------
    ndarray of shape (n_tables, 2, n_bins * k)
    """
    n_bins = tables.shape[-1]
    parts = max(2, _FINE // n_bins)
    tied = tables * (tied_share(tables) if share is None else share)
    rest = tables - tied
    rise = np.gradient(rest, axis=-1) if n_bins > 1 else np.zeros_like(rest)
    rise = np.clip(rise, -2.0 * rest, 2.0 * rest)  # densities are not negative
    places = (np.arange(parts) + 0.5) / parts - 0.5
    fine = np.maximum((rest[..., None] + rise[..., None] * places) / parts, 0.0)  # rounding
    fine[..., min(int(tied_at * parts), parts - 1)] += tied
    return fine.reshape(*tables.shape[:-1], n_bins * parts)


def tied_share(tables: np.ndarray) -> np.ndarray:
    """Fraction of tied scores in each bin, of shape (n_tables, 1, n_bins).

    With a continuous distribution, a bin rarely has more than twice the scores of either neighbor. The rows beyond
    twice the count of the smaller neighbor count as tied.
    """
    both = tables.sum(axis=-2, keepdims=True)
    padded = np.concatenate([both[..., 1:2], both, both[..., -2:-1]], axis=-1)
    least = np.minimum(padded[..., :-2], padded[..., 2:])
    return np.maximum(1.0 - 2.0 * least / np.maximum(both, 1e-9), 0.0)


def ranges(n_bins: int) -> np.ndarray:
    """Ranges of the log-odds of the scores of bins."""
    return np.diff(logits_at(np.arange(n_bins + 1) / n_bins))


def centers(n_bins: int) -> np.ndarray:
    """Scores in the middles of bins."""
    return scores_at((np.arange(n_bins) + 0.5) / n_bins)


def roc_auc(tables: np.ndarray) -> np.ndarray:
    """Probability that a positive has a higher score than a negative; 1/2 if a class is empty."""
    fine = refined(tables)
    negatives, positives = fine[:, 0], fine[:, 1]
    below = np.cumsum(negatives, axis=-1) - 0.5 * negatives
    return ratio((positives * below).sum(-1), positives.sum(-1) * negatives.sum(-1), 0.5)


def auc_within_bins(tables: np.ndarray, side: int) -> np.ndarray:
    """The smallest AUROC (side -1), or the largest (1), by the order of rows within bins.

    Scores that count as tied may be spread over their bin; the AUROC then rises by a twelfth of the range of log-odds.
    Narrow bins make this less likely. If the log-odds of the classes change by w from bin to bin, a linear density has
    an error of about w^2 / 48.
    """
    negatives, positives = tables[:, 0], tables[:, 1]
    pairs = negatives.sum(-1) * positives.sum(-1)
    wide, tied = ranges(tables.shape[-1]), tied_share(tables)[:, 0]
    wide[0], tied[:, 0] = 4.0, 1.0  # scores below 2^-53 are in the first bin, whatever they are
    rise = np.minimum(wide, 4.0) * np.minimum(wide, 1.0) / 12.0 * tied if side > 0 else 0.0
    room = negatives * positives * (rise + _change_of_odds(tables) ** 2 / 48.0)
    return roc_auc(tables) + side * ratio(room.sum(-1), pairs, 0.0)


def _change_of_odds(tables: np.ndarray) -> np.ndarray:
    """Change of the log-odds of the classes from bin to bin, of shape (n_tables, n_bins), at most 4."""
    totals = np.maximum(tables.sum(-1, keepdims=True), 1e-9)
    few = _FEW * totals / np.minimum(totals[:, :1], totals[:, 1:])
    odds = np.diff(np.log(tables + few), axis=1)[:, 0]
    return np.clip(np.gradient(odds, axis=-1), -4.0, 4.0)


def brier_score(tables: np.ndarray, tied_at: float = 0.5) -> np.ndarray:
    """Mean squared difference between score and class."""
    fine = refined(tables, tied_at)
    at = centers(fine.shape[-1])
    return ratio(fine[:, 0] @ at**2 + fine[:, 1] @ (1.0 - at) ** 2, fine.sum((-2, -1)), 0.25)


def log_loss(tables: np.ndarray, tied_at: float = 0.5) -> np.ndarray:
    """Mean negative logarithm of the probability of the true class."""
    fine = refined(tables, tied_at)
    negative, positive = losses(fine.shape[-1])
    return ratio(fine[:, 1] @ positive + fine[:, 0] @ negative, fine.sum((-2, -1)), np.log(2.0))


def losses(n_bins: int) -> np.ndarray:
    """Mean negative logarithm, over each bin, of the probability of the first class and of the second."""
    z = logits_at((np.arange(n_bins * _POINTS) + 0.5) / (n_bins * _POINTS))
    return np.logaddexp(0.0, np.stack([z, -z])).reshape(2, n_bins, _POINTS).mean(-1)


def above(tables: np.ndarray, thresholds: np.ndarray, loose_at: float | None = None) -> np.ndarray:
    """Counts of each class at or above the positions of thresholds, of shape (n_tables, 2, n_thresholds).

    With `loose_at` 0 or 1 they are the extremes that the bins do not resolve: at one end of the bin lie the tied scores
    or, if more, half of the rows for each unit of log-odds in the range of the bin.
    """
    if loose_at is None:
        return _above(refined(tables), thresholds)
    loose = np.minimum(ranges(tables.shape[-1]), 1.0) / 2.0
    tied = tables * np.maximum(tied_share(tables), loose)
    spread = refined(tables - tied, share=np.zeros(1))
    return _above(spread, thresholds) + _above(tied, thresholds, np.floor if loose_at else np.ceil)


def _above(counts: np.ndarray, thresholds: np.ndarray, part_of: Any = np.positive) -> np.ndarray:
    """Counts at or above the positions of thresholds: all rows of higher bins, and a part of its own bin."""
    upward = np.concatenate([np.zeros((*counts.shape[:-1], 1)), np.cumsum(counts, axis=-1)], axis=-1)
    place = np.clip(np.asarray(thresholds, np.float64), 0.0, 1.0) * counts.shape[-1]
    left = np.minimum(place.astype(np.int64), counts.shape[-1] - 1)
    return np.asarray(upward[..., -1:] - (upward[..., left] + part_of(place - left) * counts[..., left]))


def confusion(tables: np.ndarray, thresholds: np.ndarray, loose_at: float | None = None) -> np.ndarray:
    """Counts of shape (n_tables, 4, n_thresholds): true negatives, false positives, false negatives, true positives."""
    predicted, totals = above(tables, thresholds, loose_at), tables.sum(-1)[..., None]
    others = totals - predicted
    return np.stack([others[:, 0], predicted[:, 0], others[:, 1], predicted[:, 1]], axis=1)


def accuracy(tables: np.ndarray, thresholds: np.ndarray, loose_at: float | None = None) -> np.ndarray:
    """Fraction of correct predictions."""
    tn, fp, fn, tp = np.moveaxis(confusion(tables, thresholds, loose_at), 1, 0)
    return ratio(tn + tp, tn + fp + fn + tp, 0.5)


def precision(tables: np.ndarray, thresholds: np.ndarray, loose_at: float | None = None) -> np.ndarray:
    """Fraction of positives among positive predictions; the prevalence if there is none."""
    predicted, share = above(tables, thresholds, loose_at), positive_rate(tables)
    return ratio(predicted[:, 1], predicted.sum(1), share[:, None])


def recall(tables: np.ndarray, thresholds: np.ndarray, loose_at: float | None = None) -> np.ndarray:
    """Fraction of positives that are predicted positive."""
    return rates(tables, thresholds, loose_at)[:, 1]


def f1(tables: np.ndarray, thresholds: np.ndarray, loose_at: float | None = None) -> np.ndarray:
    """Harmonic mean of precision and recall."""
    _, fp, fn, tp = np.moveaxis(confusion(tables, thresholds, loose_at), 1, 0)
    return ratio(2.0 * tp, 2.0 * tp + fp + fn, 0.0)


def positive_rate(tables: np.ndarray) -> np.ndarray:
    """Prevalence of the positive class."""
    totals = tables.sum(-1)
    return ratio(totals[:, 1], totals.sum(-1), 0.5)


def rates(tables: np.ndarray, thresholds: np.ndarray, loose_at: float | None = None) -> np.ndarray:
    """Fractions of negatives and of positives at or above thresholds, of shape (n_tables, 2, n_thresholds)."""
    thresholds = np.asarray(thresholds, np.float64)
    found = ratio(above(tables, thresholds, loose_at), tables.sum(-1)[..., None], 1.0 - np.clip(thresholds, 0.0, 1.0))
    return np.minimum(found, 1.0)  # rounding


def average_precision(tables: np.ndarray, side: int = 0) -> np.ndarray:
    """Mean of the precision over the recall, from the highest score down.

    Tied scores are one step, as in scikit-learn. With a side of -1 or 1 it is the smallest, or the largest, by the
    order of rows within bins, which matters most in the first bins: see `auc_within_bins`.
    """
    fine = refined(tables)[..., ::-1]
    held = np.cumsum(fine, axis=-1)
    # halves: half of the positives of a cell come before the others
    halves = held - 0.5 * fine
    at = ratio(halves[:, 1], halves.sum(1), 0.0)
    n_bins = tables.shape[-1]
    cells = slice((fine.shape[-1] // n_bins - 1) // 2, None, fine.shape[-1] // n_bins)  # of tied scores
    at_ends, at_middles = ratio(held[:, 1, cells], held[..., cells].sum(1), 0.0), at[:, cells]
    steps = tied_share(tables)[:, 0, ::-1] * (at_ends - at_middles)
    if side > 0:
        steps = steps * (1.0 - np.minimum(ranges(n_bins), 1.0)[::-1])
    if side:
        both, change = tables.sum(1)[:, ::-1], np.abs(_change_of_odds(tables)[:, ::-1])
        change[:, 0] *= 2.0  # the first bin holds all scores beyond, and has a neighbor on one side only
        part = ratio(both, np.cumsum(both, axis=-1), 0.0)  # of all rows down to a bin
        steps = steps + side * at_middles * (1.0 - at_middles) * change * (part / 2.0 + change / 16.0)
    return ratio((at * fine[:, 1]).sum(-1) + (steps * tables[:, 1, ::-1]).sum(-1), fine[:, 1].sum(-1), 0.0)


def calibration(tables: np.ndarray, n_groups: int) -> np.ndarray:
    """Fraction of positives, and mean score, in groups of neighboring bins: of shape (n_tables, 2, n_groups)."""
    fine = refined(tables)
    n_cells = fine.shape[-1]
    member = np.arange(n_cells)[:, None] * n_groups // n_cells == np.arange(n_groups)
    both = fine.sum(1)
    held, middle = both @ member, centers(n_groups)
    share = ratio(fine[:, 1] @ member, held, positive_rate(tables)[:, None])
    return np.stack([share, ratio(both @ (member * centers(n_cells)[:, None]), held, middle)], axis=1)


def lift(tables: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Fraction of positives at or above thresholds, divided by the prevalence."""
    return ratio(precision(tables, thresholds), positive_rate(tables)[:, None], 1.0)


def cost(tables: np.ndarray, thresholds: np.ndarray, false_positive: float, false_negative: float) -> np.ndarray:
    """Mean cost of a row."""
    _, fp, fn, _ = np.moveaxis(confusion(tables, thresholds), 1, 0)
    return ratio(false_positive * fp + false_negative * fn, tables.sum((-2, -1))[:, None], 0.0)


def conformal_quantile(tables: np.ndarray, alpha: float) -> np.ndarray:
    """Quantile of order ceil((n + 1) (1 - alpha)) / n of 1 - p, p being the probability of the true class, or 1."""
    fine = refined(tables)
    edges = scores_at(np.arange(fine.shape[-1] + 1) / fine.shape[-1])
    farthest = np.concatenate([edges[1:], 1.0 - edges[:-1]])  # of a cell of negatives, or of positives
    nearest_first = np.argsort(farthest, kind="stable")
    distances = np.cumsum(fine.reshape(len(fine), -1)[:, nearest_first], axis=-1)
    n = distances[:, -1]
    order = np.ceil((n + 1.0) * (1.0 - alpha))
    reached = distances >= np.minimum(order, n)[:, None]
    found = farthest[nearest_first][np.argmax(reached, axis=-1)]
    return np.where((order <= n) & (n > 0), found, 1.0)


def ratio(above: np.ndarray, below: np.ndarray, otherwise: Any) -> np.ndarray:
    """Ratio of counts; `otherwise` for empty denominators."""
    below = np.broadcast_to(below, np.shape(above))
    return np.divide(above, below, out=np.full(below.shape, otherwise, np.float64), where=below > 0)


class BinaryMetrics(TableEstimates):
    """Metrics of a binary classifier, computed from one noisy histogram at no additional privacy cost."""

    _summary = "roc_auc", "average_precision", "accuracy", "brier_score", "log_loss", "positive_rate"

    # --- of all thresholds together ---

    @property
    def roc_auc(self) -> Estimate:
        """Area under the ROC curve, with linear densities of scores within bins."""
        return self._hidden_if_few(self._spanning(roc_auc, sides(auc_within_bins, side=(-1, 1))))

    @property
    def average_precision(self) -> Estimate:
        """Average precision; tied scores are one step of the recall, as in scikit-learn."""
        metric = average_precision
        found, whole = self._without_tails(metric, 1.0), self._share(metric).value
        ends = [*sides(metric, side=(-1, 1)), lambda tables: metric(tables) + whole - found.value]  # with all bins
        return self._hidden_if_few(self._spanning(metric, ends, found=found))

    @property
    def brier_score(self) -> Estimate:
        """Mean squared difference between score and class."""
        return self._spanning(brier_score, sides(brier_score, tied_at=(0.0, 1.0)))

    @property
    def log_loss(self) -> Estimate:
        """Mean negative logarithm, in nats, of the probability of the true class. Scores are spread over their bin."""
        found, ends = self._without_tails(log_loss, FARTHEST), sides(log_loss, tied_at=(0.0, 1.0))
        return self._hidden_if_few(self._spanning(log_loss, ends, most=FARTHEST, found=found), most=FARTHEST)

    @property
    def positive_rate(self) -> Estimate:
        """Prevalence of the positive class."""
        return self._share(positive_rate)

    # --- at a threshold ---

    def accuracy(self, threshold: float = 0.5) -> Estimate:
        """Accuracy at a threshold.

        Parameters
        ----------
        threshold : float, default=0.5
            Smallest score, in [0, 1], for which the positive class is predicted.

        Returns
        -------
        Estimate
            Fraction of correct predictions, with an interval.
        """
        return self._at(accuracy, threshold)

    def precision(self, threshold: float = 0.5) -> Estimate:
        """Precision at a threshold.

        Parameters
        ----------
        threshold : float, default=0.5
            Smallest score, in [0, 1], for which the positive class is predicted.

        Returns
        -------
        Estimate
            Fraction of positives among positive predictions, with an interval.
        """
        return self._hidden_if_few(self._at(precision, threshold))

    def recall(self, threshold: float = 0.5) -> Estimate:
        """Recall (sensitivity) at a threshold.

        Parameters
        ----------
        threshold : float, default=0.5
            Smallest score, in [0, 1], for which the positive class is predicted.

        Returns
        -------
        Estimate
            Fraction of positives that are predicted positive, with an interval.
        """
        return self._hidden_if_few(self._at(recall, threshold))

    def f1(self, threshold: float = 0.5) -> Estimate:
        """F1 score, the harmonic mean of precision and recall, at a threshold.

        Parameters
        ----------
        threshold : float, default=0.5
            Smallest score, in [0, 1], for which the positive class is predicted.

        Returns
        -------
        Estimate
            F1 score with an interval.
        """
        return self._hidden_if_few(self._at(f1, threshold))

    def confusion_matrix(self, threshold: float = 0.5) -> Estimate:
        """Confusion matrix at a threshold.

        Parameters
        ----------
        threshold : float, default=0.5
            Smallest score, in [0, 1], for which the positive class is predicted.

        Returns
        -------
        Estimate
            Arrays of shape (2, 2): rows are true classes, columns are predicted classes. Counts are in rows, or in
            groups if `groups` were set, and need not be integers.
        """

        at = places_of(checked_threshold(threshold))

        def counts(tables: np.ndarray) -> np.ndarray:
            return confusion(tables, at).reshape(-1, 2, 2)

        return self.estimate(counts, 0.0)

    # --- curves ---

    def roc_curve(self) -> EstimatedCurve:
        """True positive rate against false positive rate.

        Returns
        -------
        EstimatedCurve
            From (0, 0) to (1, 1), with a confidence band for the true positive rate at each false positive rate `x`.
        """
        at = self._edges()
        x = rates(self._fitted_tables.released, at)[0, 0]
        upward = 1e-12 * np.arange(len(at))  # points with the same x keep their order

        def at_x(tables: np.ndarray) -> np.ndarray:
            return np.array([np.interp(x + upward, a + upward, b) for a, b in rates(tables, at)])

        return self._band(x, at, at_x, 1.0)

    def precision_recall_curve(self) -> EstimatedCurve:
        """Precision against recall.

        Returns
        -------
        EstimatedCurve
            From high thresholds to low thresholds, with a confidence band for the precision at each threshold.
        """
        at = self._edges()
        x = recall(self._fitted_tables.released, at)[0]
        return self._band(x, at, partial(precision, thresholds=at), 1.0)

    def calibration_curve(self, n_bins: int = 8) -> EstimatedCurve:
        """Fraction of positives against the mean score, in groups of neighboring bins.

        Parameters
        ----------
        n_bins : int, default=8
            Number of points.

        Returns
        -------
        EstimatedCurve
            The thresholds are the lower edges of the bins.
        """
        n = check_count("n_bins", n_bins, constraint="a positive integer, such as 8")
        metric = partial(calibration, n_groups=n)
        x = metric(self._fitted_tables.released)[0, 1]
        return self._band(x, np.arange(n) / n, lambda tables: metric(tables)[:, 0], 1.0)

    def lift_curve(self) -> EstimatedCurve:
        """Lift against the fraction of positive predictions.

        The lift is the precision divided by the prevalence of the positive class.

        Returns
        -------
        EstimatedCurve
            Lift with a confidence band.
        """
        at = self._edges()
        released = self._fitted_tables.released
        x = above(released, at)[0].sum(0) / max(float(released.sum()), 1e-9)
        return self._band(x, at, partial(lift, thresholds=at), np.inf)

    # --- decisions ---

    def best_threshold(self, false_positive: float = 1.0, false_negative: float = 1.0) -> Estimate:
        """Threshold that minimizes the mean cost.

        Parameters
        ----------
        false_positive, false_negative : float, default=1.0
            Nonnegative cost of a false positive and of a false negative.

        Returns
        -------
        Estimate
            The threshold, which is the edge of a bin, with an interval.
        """
        constraint = "a nonnegative number"
        costs = [
            check_real("cost", each, at_least=0, constraint=constraint) for each in (false_positive, false_negative)
        ]
        scores = scores_at(at := self._edges()[::-1])
        return self._share(lambda tables: scores[np.argmin(cost(tables, at, *costs), axis=-1)])

    def conformal_quantile(self, alpha: float = 0.1) -> Estimate:
        """Conformal quantile q for prediction sets with coverage 1 - alpha.

        The prediction set of a row contains the classes with 1 - p <= q, where p is the predicted probability. Use
        `high` instead of `value` to account for the privacy noise and for sampling.

        Parameters
        ----------
        alpha : float, default=0.1
            Largest fraction of rows, in (0, 1), whose true class is outside the prediction set.

        Returns
        -------
        Estimate
            The quantile with an interval.
        """
        share = check_real("alpha", alpha, above=0, below=1, constraint="a number in (0, 1), such as 0.1")
        return self._share(partial(conformal_quantile, alpha=share))

    # --- private parts ---

    def _edges(self) -> np.ndarray:
        """Positions of the edges of the bins, in descending order."""
        n_bins = self._fitted_tables.released.shape[-1]
        return np.arange(n_bins, -1, -1) / n_bins

    def _at(self, metric: Any, threshold: float) -> Estimate:
        at = places_of(checked_threshold(threshold))

        def at_threshold(tables: np.ndarray, loose_at: float | None = None) -> np.ndarray:
            return np.asarray(metric(tables, at, loose_at)[..., 0])

        return self._spanning(at_threshold, sides(at_threshold, loose_at=(0.0, 1.0)))

    def _without_tails(self, metric: Metric, most: float) -> Estimate:
        """Estimate a metric in which far bins have large weight, without those that contain only noise."""
        tables = self._fitted_tables.gathered or self._fitted_tables
        return tables.estimate(metric, float(self.level), 0.0, most)

    def _band(self, x: np.ndarray, thresholds: np.ndarray, metric: Metric, high: float) -> EstimatedCurve:
        found: Any = self.estimate(metric, 0.0, high)  # of arrays
        return EstimatedCurve(x, found.value, found.low, found.high, scores_at(thresholds))


def checked_threshold(threshold: float) -> np.ndarray:
    """Return a threshold as an array, or raise an error."""
    constraint = "a number in [0, 1], such as 0.5"
    return np.array([check_real("threshold", threshold, at_least=0, at_most=1, constraint=constraint)])
