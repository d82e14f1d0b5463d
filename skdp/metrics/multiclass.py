"""`MulticlassEvaluation`: evaluation of a multiclass classifier on private rows, from one noisy confusion matrix."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np

from skdp._checks.numbers import values_of
from skdp._checks.rows import check_labels, column_names, encode_labels, is_continuous, number_of_columns
from skdp.base.estimates import Estimate
from skdp.metrics import binary as binary_metrics
from skdp.metrics.binary import BinaryMetrics, checked_threshold, ratio
from skdp.metrics.histogram_evaluation import CountedEvaluation, CountingPlan, RowsOfCounts
from skdp.metrics.replicates import N_DRAWS, Metric, Replicates, TableEstimates, project, rows_like
from skdp.metrics.scored_rows import ScoredRows, bins_of, places_of, score_of_each, scores_given


class ConfusionMetrics(TableEstimates):
    """Metrics of a multiclass classifier, computed from one noisy confusion matrix at no additional privacy cost."""

    _summary: tuple[str, ...] = ("accuracy", "balanced_accuracy", "macro_f1")

    @property
    def accuracy(self) -> Estimate:
        """Fraction of correct predictions."""
        return self._of_confusion(lambda tables: ratio(_right(tables).sum(-1), tables.sum((-2, -1)), 0.0))

    @property
    def balanced_accuracy(self) -> Estimate:
        """Mean recall over the classes."""
        return self._of_confusion(lambda tables: _recalls(tables).mean(-1))

    @property
    def macro_f1(self) -> Estimate:
        """Mean F1 score over the classes."""
        return self._of_confusion(lambda tables: _f1(tables).mean(-1))

    @property
    def recall(self) -> Estimate:
        """Recall of each class, arrays of shape (n_classes,)."""
        return self._of_confusion(_recalls)

    @property
    def precision(self) -> Estimate:
        """Precision of each class, arrays of shape (n_classes,)."""
        return self._of_confusion(lambda tables: _recalls(np.swapaxes(tables, 1, 2)))

    @property
    def class_prevalences(self) -> Estimate:
        """Prevalence of each class, arrays of shape (n_classes,)."""
        return self._of_confusion(lambda tables: ratio(tables.sum(-1), tables.sum((-2, -1))[:, None], 0.0))

    @property
    def confusion_matrix(self) -> Estimate:
        """Number of rows (or groups) by true and predicted class, arrays of shape (n_classes, n_classes)."""
        return self._of_confusion(lambda tables: tables, np.inf)

    def _of_confusion(self, metric: Metric, high: float = 1.0) -> Estimate:
        """A metric of the first columns of the histogram, one for each predicted class."""
        return self.estimate(lambda tables: metric(tables[..., : tables.shape[-2]]), 0.0, high)


class MulticlassEvaluation(CountedEvaluation, ConfusionMetrics):
    """Evaluation of a multiclass classifier on private rows, computed from one noisy confusion matrix.

    `skdp.evaluate` creates it.

    Attributes
    ----------
    epsilon_, delta_ : float
        Guarantee of all metrics together.
    privacy_event_ : DpEvent
        Event of the release.
    privacy_unit_ : {"row", "group"}
        Privacy unit.
    classes_ : ndarray of shape (n_classes,)
        Classes.
    noisy_counts_ : ndarray of shape (n_subgroups, n_classes, n_classes)
        Released counts by true class and predicted class, before projection. They can be negative.
    noise_deviation_ : float
        Standard deviation of the noise of a count.
    n_bins_ : int
        Number of classes.

    See Also
    --------
    skdp.evaluate : Create an evaluation.
    """

    _methods: ClassVar[tuple[str, ...]] = ("predict",)
    _part = ConfusionMetrics

    def _number_of_bins(self, strength: float) -> int:
        """See `CountedEvaluation`: a column for each predicted class."""
        if self.n_bins != "auto":
            raise ValueError(
                f"`n_bins` must be 'auto' with more than two classes, got {self.n_bins!r}. Remove it, or set "
                "one_vs_rest=True."
            )
        return len(self.classes_)

    def _given(self, X: Any) -> np.ndarray:
        """See `CountedEvaluation`: predicted classes."""
        labels = values_of("X", X)
        if labels.size != len(labels) or is_continuous(labels):
            raise ValueError(
                f"X must hold one predicted class per row with model=None and {len(self.classes_)} classes, got scores "
                f"of shape {labels.shape}. Pass predicted classes, or one_vs_rest=True with one score for each class."
            )
        return self._numbers(labels.reshape(-1))[:, None]

    def _score(self, model: Any, rows: Any) -> np.ndarray:
        """See `CountedEvaluation`: the index of the predicted class."""
        return self._numbers(model.predict(rows))

    def _numbers(self, labels: Any) -> np.ndarray:
        found = check_labels(labels, len(labels), classes=self.classes_)
        return encode_labels(found, self.classes_, "X").astype(np.float64)

    def _bins_of(self, scores: np.ndarray, n_bins: int) -> np.ndarray:
        """See `CountedEvaluation`: the first class is the prediction if the model raises an error for a row."""
        return np.nan_to_num(scores).astype(np.int64)


def _right(tables: np.ndarray) -> np.ndarray:
    return np.diagonal(tables, axis1=-2, axis2=-1)


def _recalls(tables: np.ndarray) -> np.ndarray:
    return ratio(_right(tables), tables.sum(-1), 0.0)


def _f1(tables: np.ndarray) -> np.ndarray:
    return ratio(2.0 * _right(tables), tables.sum(-1) + tables.sum(-2), 0.0)


class MetricsOfEach(TableEstimates):
    """Metrics of each class or label, and their means, from one release at no additional privacy cost."""

    _fitted_names: list[Any]  # public names of the classes or labels
    _has_confusion: ClassVar[bool] = False  # whether tables begin with a confusion matrix

    @property
    def each(self) -> dict[Any, BinaryMetrics]:
        """Binary metrics of each class against all others, or of each label, by name."""

        def of_one(number: int) -> BinaryMetrics:
            return BinaryMetrics(self._fitted_tables.map(lambda each: self._counts(each)[:, number]), self.level)

        return {name: of_one(number) for number, name in enumerate(self._fitted_names)}

    @property
    def roc_auc(self) -> Estimate:
        """Mean area under the ROC curves."""
        return self._mean(binary_metrics.roc_auc)

    @property
    def average_precision(self) -> Estimate:
        """Mean average precision over classes or labels."""
        return self._mean(binary_metrics.average_precision)

    def _mean(self, metric: Metric, high: float = 1.0) -> Estimate:
        """The mean of a binary metric over all histograms."""

        def mean(tables: np.ndarray) -> np.ndarray:
            return np.mean(self._of_each(metric, tables), axis=0)

        return self._fitted_tables.estimate(mean, float(self.level), 0.0, high, self._deviation_of_mean(metric))

    def _of_each(self, metric: Metric, tables: np.ndarray) -> list[np.ndarray]:
        counts = self._counts(tables)
        return [metric(counts[:, number]) for number in range(counts.shape[1])]

    def _counts(self, tables: np.ndarray) -> np.ndarray:
        """Binary histograms, of shape (n_tables, n_names, 2, n_bins): columns after those of a confusion matrix."""
        first = tables.shape[-2] if self._has_confusion else 0
        return tables[..., first:].reshape(*tables.shape[:-1], 2, -1)

    def _deviation_of_mean(self, metric: Metric) -> float:
        """Bound on the standard deviation due to sampling of a mean over all histograms (Minkowski)."""
        return float(np.mean([found.std() for found in self._of_each(metric, self._fitted_tables.sampling)]))


class ClassMetrics(MetricsOfEach, ConfusionMetrics):
    """Metrics of a multiclass classifier from its scores.

    Notes
    -----
    The joint distribution of the scores of different classes is not released, so the standard deviation of a mean due
    to sampling is bounded: rows of different classes are sampled independently, and their scores change all metrics in
    the same direction (Minkowski). Intervals of means are conservative.
    """

    _has_confusion = True
    _summary = "accuracy", "balanced_accuracy", "macro_f1", "roc_auc", "average_precision", "brier_score", "log_loss"

    @property
    def brier_score(self) -> Estimate:
        """Mean squared difference between scores and class, summed over the classes; from 0 to 2."""
        return self._mean(lambda tables: len(self._fitted_names) * binary_metrics.brier_score(tables), 2.0)

    @property
    def log_loss(self) -> Estimate:
        """Mean negative logarithm, in nats, of the score of the true class."""

        def metric(tables: np.ndarray) -> np.ndarray:
            fine = binary_metrics.refined(self._counts(tables))[:, :, 1].sum(1)
            loss = fine @ binary_metrics.losses(fine.shape[-1])[1]
            return np.asarray(loss / np.maximum(fine.sum(-1), 1e-9))

        return self.estimate(metric, 0.0)

    def _deviation_of_mean(self, metric: Metric) -> float:
        tables, n_classes = self._fitted_tables, self._fitted_tables.released.shape[-2]
        n_bins = (tables.released.shape[-1] - n_classes) // 2
        own, others = (np.broadcast_to(tables.center, tables.sampling.shape).copy() for _ in range(2))
        own[..., -n_bins:] = tables.sampling[..., -n_bins:]
        others[..., :-n_bins] = tables.sampling[..., :-n_bins]
        by_own = np.mean(self._of_each(metric, own), axis=0).std()
        return float(by_own + np.mean([found.std() for found in self._of_each(metric, others)]))


class LabelMetrics(MetricsOfEach):
    """Metrics of a multilabel classifier.

    Notes
    -----
    The joint distribution of the labels is not released, so the standard deviation of a mean due to sampling is bounded
    by the mean of the standard deviations (Minkowski).
    """

    _summary = "roc_auc", "average_precision", "accuracy", "brier_score", "log_loss"

    @property
    def brier_score(self) -> Estimate:
        """Mean over labels of the mean squared difference between score and label."""
        return self._mean(binary_metrics.brier_score)

    @property
    def log_loss(self) -> Estimate:
        """Mean over labels of the mean negative logarithm, in nats, of the probability of the true label."""
        return self._mean(binary_metrics.log_loss, np.inf)

    def accuracy(self, threshold: float = 0.5) -> Estimate:
        """Fraction of correct labels, 1 minus the Hamming loss, at a threshold.

        Parameters
        ----------
        threshold : float, default=0.5
            Smallest score, in [0, 1], for which a label is predicted.

        Returns
        -------
        Estimate
            The fraction with an interval.
        """
        at = places_of(checked_threshold(threshold))
        return self._mean(lambda tables: binary_metrics.accuracy(tables, at)[:, 0])


class OfEach(CountedEvaluation):
    """Base of evaluations with several histograms: several scores per row, and fewer bins."""

    _methods: ClassVar[tuple[str, ...]] = ("predict_proba", "decision_function")
    _fitted_names: list[Any]

    def _width(self) -> tuple[int, ...]:
        return (len(self._fitted_names),)

    def _given(self, X: Any) -> np.ndarray:
        return scores_given(X, self._width()[0])

    def _score(self, model: Any, rows: Any) -> np.ndarray:
        return score_of_each(model, rows)

    def _default_bins(self, strength: float) -> int:
        """A power of two near 0.8 times the cube root of n epsilon of a histogram, from 8 to 64.

        Bins of the square root of the odds can be three times as wide as those of the score
        (`benchmarks/bench_evaluate.py`).
        """
        wanted = np.log2(max(0.8 * (strength / self._n_parts()) ** (1 / 3), 1.0))
        return int(np.clip(2 ** np.rint(wanted), 8, 64))

    def _facts_of_parts(self) -> dict[str, Any]:
        return {"_fitted_names": self._fitted_names}


class OneVsRestEvaluation(OfEach, ClassMetrics, MulticlassEvaluation):
    """Evaluation of a multiclass classifier on private rows from its scores.

    ``skdp.evaluate(..., one_vs_rest=True)`` creates it.

    Attributes
    ----------
    epsilon_, delta_ : float
        Guarantee of all metrics together.
    privacy_event_ : DpEvent
        Event of the release.
    privacy_unit_ : {"row", "group"}
        Privacy unit.
    classes_ : ndarray of shape (n_classes,)
        Classes.
    noisy_counts_ : ndarray of shape (n_subgroups, n_classes, n_classes + 2 * n_bins)
        Released counts, in rows or groups, before projection. They can be negative. Each class has the counts of its
        rows by predicted class, then the histogram of its score for rows of other classes, then that for its own rows.
    noise_deviation_ : float
        Standard deviation of the noise of a count, n_classes - 1 times as large for rows of other classes.
    n_bins_ : int
        Number of bins of a score.

    See Also
    --------
    skdp.evaluate : Create an evaluation.

    Notes
    -----
    **Guarantees.** One row, or one group, contributes at most 3 (n_classes - 1) units to all cells together. A unit is
    1, or ``GRID`` with weights or groups. That is the sensitivity of the release.

    Proof. A row of amount a (1 without weights and groups, otherwise at most ``GRID``, and at most ``GRID`` in sum over
    a group) is of one class and has one predicted class. It contributes (n_classes - 1) a to a cell of the confusion
    matrix, as much to the bin of its score for its own class, and a to a bin of each of the other n_classes - 1
    classes. Contributions are nonnegative, so they add up to 3 (n_classes - 1) a, and to 3 (n_classes - 1) units over a
    group. The Euclidean norm of the contribution of a row is at most (n_classes - 1) sqrt(2 + 1/(n_classes - 1)) a;
    that of a group is not larger by the triangle inequality. Two such vectors differ by at most sqrt(2) times it,
    because no value is negative. The accounting of Gaussian noise uses this bound.

    The confusion matrix has a third of the budget, and the scores have two thirds. The weights make the relative noise
    similar for the rows of a class and for the rows of all other classes.
    """

    _part = ClassMetrics

    def _check_targets_known(self) -> None:
        super()._check_targets_known()
        if len(self.classes_) < 3:
            raise ValueError("`one_vs_rest` must be False for binary classifiers, whose histogram has all metrics.")
        if self.classes is not None and list(self.classes) != self.classes_.tolist():
            raise ValueError("`classes` must be in ascending order, as must the columns of the scores. Sort both.")
        self._fitted_names = self.classes_.tolist()

    def _number_of_bins(self, strength: float) -> int:
        return CountedEvaluation._number_of_bins(self, strength)

    def _cells_of_row(self) -> int:
        return 3 * (len(self.classes_) - 1)

    def _norm_of_row(self) -> float:
        return float(np.nextafter(np.sqrt(2.0 + 1.0 / (len(self.classes_) - 1)) / 3.0, 1.0))

    def _share_of_table(self) -> float:
        """See `CountedEvaluation`: a third, for one of K classes; half of the rows for binary classifiers."""
        return 2.0 / (3.0 * len(self.classes_))

    def _count(self, rows: ScoredRows, targets: RowsOfCounts, n_bins: int) -> np.ndarray:
        """See `CountedEvaluation`: of shape (n_subgroups, n_classes, n_classes + 2 * n_bins)."""
        n = len(self.classes_)
        table = np.zeros((self._n_parts(), n, n + 2 * n_bins), np.int64)
        for block, scores in rows.blocks():
            y, amounts, group = targets.take(block)
            predicted = np.argmax(np.nan_to_num(scores, nan=-np.inf), axis=1)
            np.add.at(table, (group, y, predicted), (n - 1) * amounts)
            bins = bins_of(scores, n_bins)
            for k in range(n):
                own = y == k
                np.add.at(table[:, k], (group, n + n_bins * own + bins[:, k]), np.where(own, n - 1, 1) * amounts)
        return table

    def _replicates_of(self, noisy: np.ndarray, plan: CountingPlan) -> Replicates:
        n, n_bins, whole = len(self.classes_), plan.n_bins, self._whole(plan)
        unit = np.full(noisy.shape[-1], (n - 1.0) * whole)
        unit[n:-n_bins] = whole  # of rows of other classes
        self.noisy_counts_ = noisy / unit
        self.noise_deviation_ = plan.mechanism.standard_deviation / ((n - 1) * whole)
        projected = partial(_projected_classes, n_bins=n_bins, total=plan.total)
        drawn = partial(_classes_like, n_bins=n_bins)
        return Replicates.made(self.noisy_counts_, plan.mechanism, unit, projected, drawn, (0, n, n + n_bins))


class MultilabelEvaluation(OfEach, LabelMetrics):
    """Evaluation of a multilabel classifier on private rows from one noisy release. Created by `evaluate`.

    Attributes
    ----------
    epsilon_, delta_ : float
        Guarantee of all metrics together.
    privacy_event_ : DpEvent
        Event of the release.
    privacy_unit_ : {"row", "group"}
        Privacy unit.
    labels_ : list of length n_labels
        Names of the labels.
    noisy_counts_ : ndarray of shape (n_subgroups, n_labels, 2 * n_bins)
        Released counts, in rows or groups. Each label has the histogram of its score for rows without it, then that for
        rows with it.
    noise_deviation_ : float
        Standard deviation of the noise of a count.
    n_bins_ : int
        Number of bins of a score.

    See Also
    --------
    skdp.evaluate : Create an evaluation.

    Notes
    -----
    **Guarantees.** One row, or one group, contributes at most n_labels units to all cells together. A unit is 1, or
    ``GRID`` with weights or groups. That is the sensitivity of the release.

    Proof. A row of amount a contributes it to one cell of each label's histogram, because it has or does not have the
    label, and has one score for it. Contributions add up to n_labels a, and to n_labels units over a group. The
    Euclidean norm of the contribution of a row is sqrt(n_labels) a; that of a group is not larger. Two such vectors
    differ by at most sqrt(2) times it, because no value is negative. The accounting of Gaussian noise uses this bound.
    """

    _part = LabelMetrics
    labels_: list[Any]

    def _note_given(self, y: Any, sample_weight: Any) -> None:
        """See `CountedEvaluation`: the number of labels per row is public."""
        super()._note_given(y, sample_weight)
        self._n_labels = number_of_columns(y)
        self._named = column_names(y)

    def _check_targets_known(self) -> None:
        """See `CountedEvaluation`: names of the labels, and the public facts of the model."""
        found = [getattr(model, "classes_", None) for model in self._models()]
        of_labels = [list(each) for classes in found if isinstance(classes, list) for each in classes]
        if any(each not in ([0, 1], [False, True]) for each in of_labels):
            raise ValueError("`model` must be fitted to labels 0 and 1 for multilabel evaluation.")
        names = self.classes if self.classes is not None else self._named or range(self._n_labels)
        self.labels_ = list(names)
        if len(self.labels_) != self._n_labels:
            raise ValueError(
                f"`classes` must name {self._n_labels} labels, one per column of `y`, got {len(self.labels_)}."
            )
        self._fitted_names = self.labels_

    def _read_targets(self, y: Any, n_samples: int) -> np.ndarray:
        """See `CountedEvaluation`: 0 or 1, of shape (n_rows, n_labels)."""
        labels = check_labels(y, n_samples, columns=True)
        return np.column_stack([encode_labels(column, np.array([0, 1])) for column in labels.T])

    def _cells_of_row(self) -> int:
        return len(self.labels_)

    def _norm_of_row(self) -> float:
        return float(np.nextafter(len(self.labels_) ** -0.5, 1.0))

    def _share_of_table(self) -> float:
        return 1.0 / len(self.labels_)

    def _count(self, rows: ScoredRows, targets: RowsOfCounts, n_bins: int) -> np.ndarray:
        """See `CountedEvaluation`: of shape (n_subgroups, n_labels, 2 * n_bins)."""
        table = np.zeros((self._n_parts(), len(self.labels_), 2 * n_bins), np.int64)
        for block, scores in rows.blocks():
            y, amounts, group = targets.take(block)
            columns = n_bins * y + bins_of(scores, n_bins)
            for label in range(len(self.labels_)):
                np.add.at(table[:, label], (group, columns[:, label]), amounts)
        return table

    def _replicates_of(self, noisy: np.ndarray, plan: CountingPlan) -> Replicates:
        unit, starts = self._whole(plan), (0, plan.n_bins)
        projected = partial(_each_projected, total=plan.total)
        return Replicates.made(self.noisy_counts_, plan.mechanism, unit, projected, _each_like, starts)


def _each_projected(tables: np.ndarray, total: float | np.ndarray | None) -> np.ndarray:
    """Project the histograms of all labels, of shape (n_tables, n_subgroups, n_labels, n_cells), each to the total."""
    return np.stack([project(tables[:, :, k], total) for k in range(tables.shape[2])], axis=2)


def _each_like(released: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw rows for the histogram of each label independently."""
    return np.stack([rows_like(released[:, :, k], rng) for k in range(released.shape[2])], axis=2)


def _projected_classes(tables: np.ndarray, n_bins: int, total: float | None) -> np.ndarray:
    """Project histograms of shape (n_tables, n_subgroups, n_classes, n_classes + 2 * n_bins).

    Each row is once in the confusion matrix and once among the scores for its own class; rows of other classes follow.
    """
    if total is None:
        return project(tables, None)
    n = tables.shape[2]
    confusion, others, own = np.split(tables, [n, n + n_bins], axis=-1)
    own = project(own, total)
    rest = np.maximum(total - own.sum((1, 3)), 1e-6)
    others = np.stack([project(others[:, :, k], rest[:, k, None]) for k in range(n)], axis=2)
    return np.concatenate([project(confusion, total), others, own], axis=-1)


def _classes_like(released: np.ndarray, rng: np.random.Generator, n_bins: int) -> np.ndarray:
    """Draw rows: by class and score for it first, then the scores of rows of other classes, for each class alone."""
    n = released.shape[2]
    confusion, others, own = np.split(released, [n, n + n_bins], axis=-1)
    drawn = rows_like(own, rng)
    counts = drawn.sum(-1)  # of each subgroup and class
    rest = np.rint(counts.sum(2, keepdims=True) - counts).astype(np.int64)
    held = others.sum(-1, keepdims=True)
    shares = np.divide(others, held, out=np.full(others.shape, 1.0 / n_bins), where=held > 0)[0]
    scored = rng.multinomial(rest, np.broadcast_to(shares, (N_DRAWS, *shares.shape))).astype(np.float64)
    return np.concatenate([rows_like(confusion, rng), scored, drawn], axis=-1)
