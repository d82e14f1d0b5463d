"""Figures of two classes: what follows from one noisy table."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from skdp._checks.parameters import check_count, check_real
from skdp.evaluation import binary_metrics
from skdp.evaluation.estimates import Estimate, EstimatedCurve
from skdp.evaluation.figures import TableFigures, sides
from skdp.evaluation.replicates import Metric
from skdp.evaluation.scale import FARTHEST, places_of, scores_at


class BinaryFigures(TableFigures):
    """Figures of two classes, all from one noisy table: none costs anything, however many are asked for."""

    _summary = "roc_auc", "average_precision", "accuracy", "brier_score", "log_loss", "positive_rate"

    # --- of all thresholds together ---

    @property
    def roc_auc(self) -> Estimate:
        """Area under the ROC curve, with linear densities of scores within bins."""
        metric, ends = binary_metrics.roc_auc, sides(binary_metrics.auc_within_bins, side=(-1, 1))
        return self._hidden_if_few(self._spanning(self._share(metric), metric, ends))

    @property
    def average_precision(self) -> Estimate:
        """Mean precision over the recall, where tied scores are one step of the recall, as in scikit-learn."""
        metric = binary_metrics.average_precision
        found, whole = self._without_tails(metric, 1.0), self._share(metric).value
        ends = [*sides(metric, side=(-1, 1)), lambda tables: metric(tables) + whole - found.value]  # with all bins
        return self._hidden_if_few(self._spanning(found, metric, ends))

    @property
    def brier_score(self) -> Estimate:
        """Mean squared distance between score and class."""
        metric = binary_metrics.brier_score
        return self._spanning(self._share(metric), metric, sides(metric, tied_at=(0.0, 1.0)))

    @property
    def log_loss(self) -> Estimate:
        """Mean negative logarithm, in nats, of the probability of what is true; scores of a bin are spread over it."""
        metric = binary_metrics.log_loss
        found, ends = self._without_tails(metric, FARTHEST), sides(metric, tied_at=(0.0, 1.0))
        return self._hidden_if_few(self._spanning(found, metric, ends, most=FARTHEST), most=FARTHEST)

    @property
    def positive_rate(self) -> Estimate:
        """Share of the second class."""
        return self._share(binary_metrics.positive_rate)

    # --- at a threshold ---

    def accuracy(self, threshold: float = 0.5) -> Estimate:
        """Share of right predictions, the second class being predicted from `threshold` on.

        Parameters
        ----------
        threshold : float, default=0.5
            In [0, 1].

        Returns
        -------
        Estimate
        """
        return self._at(binary_metrics.accuracy, threshold)

    def precision(self, threshold: float = 0.5) -> Estimate:
        """Share of the second class among what is predicted to be of it. See `accuracy`.

        Parameters
        ----------
        threshold : float, default=0.5

        Returns
        -------
        Estimate
        """
        return self._hidden_if_few(self._at(binary_metrics.precision, threshold))

    def recall(self, threshold: float = 0.5) -> Estimate:
        """Share of the second class that is predicted to be of it. See `accuracy`.

        Parameters
        ----------
        threshold : float, default=0.5

        Returns
        -------
        Estimate
        """
        return self._hidden_if_few(self._at(binary_metrics.recall, threshold))

    def f1(self, threshold: float = 0.5) -> Estimate:
        """Harmonic mean of precision and recall. See `accuracy`.

        Parameters
        ----------
        threshold : float, default=0.5

        Returns
        -------
        Estimate
        """
        return self._hidden_if_few(self._at(binary_metrics.f1, threshold))

    def confusion_matrix(self, threshold: float = 0.5) -> Estimate:
        """Counts by class and prediction. See `accuracy`.

        Parameters
        ----------
        threshold : float, default=0.5

        Returns
        -------
        Estimate
            Of arrays of shape (2, 2): rows are classes, columns predictions. Counts are in rows, or units, and parts of
            them.
        """

        at = places_of(checked_threshold(threshold))

        def counts(tables: np.ndarray) -> np.ndarray:
            return binary_metrics.confusion(tables, at).reshape(-1, 2, 2)

        return self.estimate(counts, 0.0)

    # --- curves ---

    def roc_curve(self) -> EstimatedCurve:
        """Share of true positives against that of false ones.

        Returns
        -------
        EstimatedCurve
            From (0, 0) to (1, 1), with a band for the share of true positives where that of false ones is `x`.
        """
        at = self._edges()
        x = binary_metrics.rates(self._fitted_tables.released, at)[0, 0]
        upward = 1e-12 * np.arange(len(at))  # where many points lie above each other, each keeps its own place

        def at_x(tables: np.ndarray) -> np.ndarray:
            return np.array([np.interp(x + upward, a + upward, b) for a, b in binary_metrics.rates(tables, at)])

        return self._band(x, at, at_x, 1.0)

    def precision_recall_curve(self) -> EstimatedCurve:
        """Precision against recall.

        Returns
        -------
        EstimatedCurve
            From high thresholds to low ones, with a band for the precision at each threshold.
        """
        at = self._edges()
        x = binary_metrics.recall(self._fitted_tables.released, at)[0]
        return self._band(x, at, partial(binary_metrics.precision, thresholds=at), 1.0)

    def calibration_curve(self, n_bins: int = 8) -> EstimatedCurve:
        """Share of the second class against the mean score, in groups of neighboring bins.

        Parameters
        ----------
        n_bins : int, default=8
            Number of points.

        Returns
        -------
        EstimatedCurve
            With the lower edges of the bins as thresholds.
        """
        n = check_count("n_bins", n_bins, remedy="choose a whole number above 0, such as 8")
        metric = partial(binary_metrics.calibration, n_groups=n)
        x = metric(self._fitted_tables.released)[0, 1]
        return self._band(x, np.arange(n) / n, lambda tables: metric(tables)[:, 0], 1.0)

    def lift_curve(self) -> EstimatedCurve:
        """Lift, how much more often the second class is found than by chance, against the share that is predicted.

        Returns
        -------
        EstimatedCurve
        """
        at = self._edges()
        released = self._fitted_tables.released
        x = binary_metrics.above(released, at)[0].sum(0) / max(float(released.sum()), 1e-9)
        return self._band(x, at, partial(binary_metrics.lift, thresholds=at), np.inf)

    # --- decisions ---

    def best_threshold(self, false_positive: float = 1.0, false_negative: float = 1.0) -> Estimate:
        """Threshold of the least mean cost.

        Parameters
        ----------
        false_positive, false_negative : float, default=1.0
            Costs of either mistake, 0 or above.

        Returns
        -------
        Estimate
            Of the threshold, which is the edge of a bin.
        """
        remedy = "give a cost of 0 or above"
        costs = [check_real("cost", each, at_least=0, remedy=remedy) for each in (false_positive, false_negative)]
        at = self._edges()[::-1]
        scores = scores_at(at)
        return self._share(lambda tables: scores[np.argmin(binary_metrics.cost(tables, at, *costs), axis=-1)])

    def conformal_quantile(self, alpha: float = 0.1) -> Estimate:
        """Quantile q for prediction sets that hold the true class of 1 - alpha of all rows: those with 1 - p <= q.

        `high` in the place of the value allows for the noise and for the draw of the rows.

        Parameters
        ----------
        alpha : float, default=0.1
            Share of rows whose class may be left out, in (0, 1).

        Returns
        -------
        Estimate
        """
        share = check_real("alpha", alpha, above=0, below=1, remedy="choose a share, such as 0.1")
        return self._share(partial(binary_metrics.conformal_quantile, alpha=share))

    # --- small parts ---

    def _edges(self) -> np.ndarray:
        """Places of the edges of the bins, falling."""
        n_bins = self._fitted_tables.released.shape[-1]
        return np.arange(n_bins, -1, -1) / n_bins

    def _at(self, metric: Any, threshold: float) -> Estimate:
        at = places_of(checked_threshold(threshold))

        def at_threshold(tables: np.ndarray, loose_at: float | None = None) -> np.ndarray:
            return np.asarray(metric(tables, at, loose_at)[..., 0])

        return self._spanning(self._share(at_threshold), at_threshold, sides(at_threshold, loose_at=(0.0, 1.0)))

    def _without_tails(self, metric: Metric, most: float) -> Estimate:
        """Estimate a figure in which far bins weigh much, without those that hold noise alone."""
        tables = self._fitted_tables.gathered or self._fitted_tables
        return tables.estimate(metric, float(self.level), 0.0, most)

    def _band(self, x: np.ndarray, thresholds: np.ndarray, metric: Metric, high: float) -> EstimatedCurve:
        found: Any = self.estimate(metric, 0.0, high)  # of arrays
        return EstimatedCurve(x, found.value, found.low, found.high, scores_at(thresholds))


def checked_threshold(threshold: float) -> np.ndarray:
    """A threshold as an array, or a refusal."""
    remedy = "choose a score from 0 to 1, such as 0.5"
    return np.array([check_real("threshold", threshold, at_least=0, at_most=1, remedy=remedy)])
