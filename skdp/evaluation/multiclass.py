"""`MulticlassEvaluation`: how good a model of several classes is on private rows, from one noisy confusion matrix."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from skdp._checks.cells import values_of
from skdp._checks.rows import check_labels, encode_labels, is_continuous
from skdp.evaluation.counted import CountedEvaluation
from skdp.evaluation.estimates import Estimate
from skdp.evaluation.figures import TableFigures
from skdp.evaluation.replicates import Metric


class ConfusionFigures(TableFigures):
    """Figures of several classes, all from one noisy confusion matrix: none costs anything."""

    _summary: tuple[str, ...] = ("accuracy", "balanced_accuracy", "macro_f1")

    @property
    def accuracy(self) -> Estimate:
        """Share of right predictions."""
        return self._of_confusion(lambda tables: _ratio(_right(tables).sum(-1), tables.sum((-2, -1))))

    @property
    def balanced_accuracy(self) -> Estimate:
        """Mean recall of the classes."""
        return self._of_confusion(lambda tables: _recalls(tables).mean(-1))

    @property
    def macro_f1(self) -> Estimate:
        """Mean over the classes of the harmonic mean of precision and recall."""
        return self._of_confusion(lambda tables: _f1(tables).mean(-1))

    @property
    def recall(self) -> Estimate:
        """Of each class: share of its rows that are predicted to be of it; arrays of shape (n_classes,)."""
        return self._of_confusion(_recalls)

    @property
    def precision(self) -> Estimate:
        """Of each class: share of its rows among what is predicted to be of it; arrays of shape (n_classes,)."""
        return self._of_confusion(lambda tables: _recalls(np.swapaxes(tables, 1, 2)))

    @property
    def class_prevalences(self) -> Estimate:
        """Shares of the classes, arrays of shape (n_classes,)."""
        return self._of_confusion(lambda tables: _ratio(tables.sum(-1), tables.sum((-2, -1))[:, None]))

    @property
    def confusion_matrix(self) -> Estimate:
        """Counts by class and prediction, in rows or units; arrays of shape (n_classes, n_classes)."""
        return self._of_confusion(lambda tables: tables, np.inf)

    def _of_confusion(self, metric: Metric, high: float = 1.0) -> Estimate:
        """A figure of the first columns of the table, one for each class that may be predicted."""
        return self.estimate(lambda tables: metric(tables[..., : tables.shape[-2]]), 0.0, high)


class MulticlassEvaluation(CountedEvaluation, ConfusionFigures):
    """Figures of a model of several classes on private rows, all from one noisy table.

    `skdp.evaluate` makes one.

    Attributes
    ----------
    epsilon_, delta_ : float
        Price of all figures together.
    privacy_event_ : DpEvent
        What was released.
    privacy_unit_ : {"row", "group"}
        What the price is for.
    classes_ : ndarray of shape (n_classes,)
        Classes.
    noisy_counts_ : ndarray of shape (n_subgroups, n_classes, n_classes)
        Released counts by class and prediction, as they were drawn: some may be negative.
    noise_deviation_ : float
        Standard deviation of the noise of a count.
    n_bins_ : int
        Number of classes.

    See Also
    --------
    skdp.evaluate : Make one.
    """

    _methods: ClassVar[tuple[str, ...]] = ("predict",)
    _part = ConfusionFigures

    def _number_of_bins(self, strength: float) -> int:
        """See `CountedEvaluation`: a column for each class that may be predicted."""
        if self.n_bins != "auto":
            raise ValueError(
                f"n_bins={self.n_bins!r} with more than two classes, whose predictions have no bins: leave it out, or "
                "give one_vs_rest=True."
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
        """See `CountedEvaluation`: the number of the class that is predicted."""
        return self._numbers(model.predict(rows))

    def _numbers(self, labels: Any) -> np.ndarray:
        found = check_labels(labels, len(labels), classes=self.classes_)
        return encode_labels(found, self.classes_, "X").astype(np.float64)

    def _bins_of(self, scores: np.ndarray, n_bins: int) -> NDArray[np.int64]:
        """See `CountedEvaluation`: a row that the model refuses counts as predicted to be of the first class."""
        return np.nan_to_num(scores).astype(np.int64)


def _right(tables: np.ndarray) -> np.ndarray:
    return np.diagonal(tables, axis1=-2, axis2=-1)


def _recalls(tables: np.ndarray) -> np.ndarray:
    return _ratio(_right(tables), tables.sum(-1))


def _f1(tables: np.ndarray) -> np.ndarray:
    return _ratio(2.0 * _right(tables), tables.sum(-1) + tables.sum(-2))


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Of counts; 0 where there are none."""
    below = np.broadcast_to(below, np.shape(above))
    return np.divide(above, below, out=np.zeros(np.shape(above)), where=below > 0)
