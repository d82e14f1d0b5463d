"""`compare`: difference of two binary classifiers on the same private rows, from one noisy histogram of score pairs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from skdp._checks.numbers import values_of
from skdp.base.estimates import Estimate
from skdp.metrics import binary as binary_metrics
from skdp.metrics.binary import BinaryMetrics, checked_threshold
from skdp.metrics.histogram_evaluation import CountedEvaluation
from skdp.metrics.replicates import Metric, TableEstimates, sides
from skdp.metrics.scored_rows import FARTHEST, ScoredRows, bins_of, scores_given


class ComparisonMetrics(TableEstimates):
    """Differences between two models, first minus second, computed from one noisy histogram."""

    _summary = "roc_auc", "average_precision", "accuracy", "brier_score", "log_loss"

    @property
    def roc_auc(self) -> Estimate:
        """Difference of the areas under the ROC curves."""
        return self._resolved(binary_metrics.roc_auc, sides(binary_metrics.auc_within_bins, side=(-1, 1)))

    @property
    def average_precision(self) -> Estimate:
        """Difference of the average precisions."""
        return self._resolved(metric := binary_metrics.average_precision, sides(metric, side=(-1, 1)))

    @property
    def brier_score(self) -> Estimate:
        """Difference of the Brier scores."""
        return self.difference(binary_metrics.brier_score)

    @property
    def log_loss(self) -> Estimate:
        """Difference of the log losses, in nats."""
        return self._resolved(metric := binary_metrics.log_loss, sides(metric, tied_at=(0.0, 1.0)), FARTHEST)

    def _resolved(self, metric: Metric, ends: list[Metric], most: float = 1.0) -> Estimate:
        """A difference with an interval that accounts for the bin width.

        The errors of both models mostly have the same sign, so the extremes are taken for one model at a time.
        """

        def between(first: Metric, second: Metric) -> Metric:
            return lambda tables: first(_of_model(tables, 0)) - second(_of_model(tables, 1))

        apart = [between(*pair) for end in ends for pair in ((end, metric), (metric, end))]
        found = self._spanning(between(metric, metric), apart, -most, most)
        return self._hidden_if_few(found, -most, most)

    def accuracy(self, threshold: float = 0.5) -> Estimate:
        """Difference of the accuracies at a threshold.

        Parameters
        ----------
        threshold : float, default=0.5
            Smallest score, in [0, 1], for which the positive class is predicted.

        Returns
        -------
        Estimate
            Accuracy of the first model minus that of the second, with an interval.
        """
        at = checked_threshold(threshold)
        return self.difference(lambda tables: binary_metrics.accuracy(tables, at)[..., 0])

    def difference(self, metric: Metric, most: float = 1.0) -> Estimate:
        """Estimate the difference of any metric.

        Parameters
        ----------
        metric : callable
            Maps histograms of shape (n_tables, 2, n_bins), negatives and then positives in bins of the score of one
            model, to one number for each histogram.
        most : float, default=1.0
            Largest absolute value of the difference.

        Returns
        -------
        Estimate
            Metric of the first model minus that of the second, with an interval.
        """
        return self.estimate(lambda each: metric(_of_model(each, 0)) - metric(_of_model(each, 1)), -most, most)

    @property
    def models(self) -> tuple[BinaryMetrics, BinaryMetrics]:
        """Metrics of each model, from wider bins than those of `evaluate`."""

        def of_one(number: int) -> BinaryMetrics:
            return BinaryMetrics(self._fitted_tables.map(partial(_of_model, number=number)), self.level)

        return of_one(0), of_one(1)


class PrivateComparison(CountedEvaluation, ComparisonMetrics):
    """Differences between two binary classifiers on the same private rows. Returned by `compare`.

    Attributes
    ----------
    epsilon_, delta_ : float
        Guarantee of all metrics together.
    privacy_event_ : DpEvent
        Event of the release.
    privacy_unit_ : {"row", "group"}
        Privacy unit.
    classes_ : ndarray of shape (2,)
        Negative class and positive class.
    noisy_counts_ : ndarray of shape (n_subgroups, 2, n_bins)
        Released counts, in rows or groups, before projection. They can be negative.
    noise_deviation_ : float
        Standard deviation of the noise of a count, in the same unit.
    n_bins_ : int
        Number of pairs of bins, the square of the number of bins for one score.

    See Also
    --------
    compare : Create a comparison.
    """

    _part = ComparisonMetrics

    def _models(self) -> tuple[Any, ...]:
        return () if self.model is None else self.model

    def _check_targets_known(self) -> None:
        """See `CountedEvaluation`: binary."""
        super()._check_targets_known()
        if len(self.classes_) != 2:
            raise ValueError(f"`classes` must have two classes, got {self.classes_.tolist()!r}. Use skdp.evaluate.")

    def _number_of_bins(self, strength: float) -> int:
        """See `CountedEvaluation`: of pairs of bins."""
        return super()._number_of_bins(strength) ** 2

    def _default_bins(self, strength: float) -> int:
        """Number of pairs of bins that balances the errors due to noise and due to the bin width.

        A power of two near 0.4 times the cube root of n epsilon of a subgroup, from 4 to 32.
        """
        wanted = np.log2(0.4 * (strength / self._n_parts()) ** (1 / 3))
        return int(2 ** np.clip(np.rint(wanted), 2, 5))

    def _given(self, X: Any) -> np.ndarray:
        """See `CountedEvaluation`: scores of both models."""
        scores = values_of("X", X)
        if scores.ndim != 2 or scores.shape[1] != 2:
            raise ValueError(f"`X` must have two scores per row if both models are None, got shape {scores.shape}.")
        return np.hstack([scores_given(column) for column in scores.T])

    def _read_scores(self, X: Any) -> Any:
        if self.model is None:
            return ScoredRows(None, self._given(X), width=(2,))
        return PairedScores(*(self._scored_by(each, X) for each in self.model))

    def _bins_of(self, scores: np.ndarray, n_bins: int) -> np.ndarray:
        """See `CountedEvaluation`: the pair of bins of a pair of scores."""
        bins = math.isqrt(n_bins)
        return bins_of(scores[:, 0], bins) * bins + bins_of(scores[:, 1], bins)

    def _public_parameters(self) -> dict[str, Any]:
        return {**super()._public_parameters(), "model": [type(each).__name__ for each in self._models()]}


class PairedScores:
    """Scores of the same rows by two models."""

    def __init__(self, first: ScoredRows, second: ScoredRows) -> None:
        self._first, self._second, self.shape = first, second, first.shape

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Generate slices of rows and their scores, of shape (n_rows, 2)."""
        for (rows, first), (_, second) in zip(self._first.blocks(), self._second.blocks(), strict=True):
            yield rows, np.column_stack([first, second])


def compare(
    first: Any, second: Any, X: Any, y: Any, *, epsilon: Any = None, groups: Any = None, sample_weight: Any = None,
    by: Any = None, **options: Any,
) -> PrivateComparison:  # fmt: skip
    """Compare two binary classifiers on the same private rows.

    The function releases one noisy two-dimensional histogram of the scores of both models for each class. The
    differences in ROC AUC, accuracy, Brier score and log loss follow from it. Each has a confidence interval that
    accounts for privacy noise and sampling. Because both models score the same rows, the interval of a difference is
    much narrower than with two separate evaluations.

    Parameters
    ----------
    first, second : estimator or None
        Fitted models, as for `evaluate`. If both are None, `X` contains the scores.
    X : table of shape (n_samples, n_features), or array-like of shape (n_samples, 2) of scores
        Private rows, or private scores of both models, as for `evaluate`.
    y : array-like of shape (n_samples,), or str
        Private labels, or the name of their column in `X`, as for `evaluate`.
    epsilon : float or Risk, default=None
        Privacy budget of all metrics together, in nats. A number, or a bound on membership-inference risk such as
        ``skdp.Risk(advantage=0.1)`` (``docs/membership_inference.md``).
    groups : array-like of shape (n_samples,), str or None, default=None
        Private group identifiers of the rows, as for `evaluate`.
    sample_weight : array-like of shape (n_samples,), str or None, default=None
        Private weights.
    by : array-like of shape (n_samples,), str or None, default=None
        Private subgroups, with `categories`.
    **options : dict
        Other parameters of `evaluate`, such as `accountant`, `classes`, `level` and `adjacency`. `n_bins` is the number
        of bins of each score; "auto" uses a power of two from 4 to 32.

    Returns
    -------
    PrivateComparison
        Differences with intervals, first model minus second model.

    Raises
    ------
    ValueError
        A parameter, label or weight is invalid. No budget was consumed.
    BudgetExceededError
        The budget of the accountant does not permit the release. No budget was consumed.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.metrics import compare
    >>> rng = np.random.default_rng(0)
    >>> better = rng.uniform(size=20_000)
    >>> labels = rng.uniform(size=20_000) < better
    >>> worse = 0.3 * better + 0.7 * rng.uniform(size=20_000)
    >>> comparison = compare(None, None, np.column_stack([better, worse]), labels, epsilon=1.0)
    >>> round(comparison.roc_auc.value, 1)
    0.2
    """
    if (first is None) != (second is None):
        raise ValueError("`first` and `second` must both be models, or both None with two scores per row in `X`.")
    if options.pop("y_bounds", None) is not None:
        raise ValueError("`y_bounds` is not supported by compare, which is for classifiers. Use skdp.evaluate.")
    models = None if first is None else (first, second)
    comparison = PrivateComparison(models, epsilon=epsilon, **options)
    return comparison.fit(X, y, groups=groups, sample_weight=sample_weight, by=by)


def _of_model(tables: np.ndarray, number: int) -> np.ndarray:
    """Histogram of the scores of one model, summed over the bins of the other."""
    bins = math.isqrt(tables.shape[-1])
    return tables.reshape(*tables.shape[:-1], bins, bins).sum(axis=-2 if number else -1)
