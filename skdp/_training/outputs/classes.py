"""Base of classifiers trained by noisy gradient descent: classes, their weights, and predictions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin

from skdp._checks.arithmetic import silent_arithmetic
from skdp._checks.leaks import report_classes_read
from skdp._checks.rows import check_classes, check_labels, classes_of, encode_labels
from skdp._checks.weights import WeightReader, class_weights
from skdp._training.estimator import GradientEstimator
from skdp._training.offset import ClassMeans, OutcomeCounts
from skdp._training.run import Targets
from skdp._training.run_fit import fit_run
from skdp._training.target import Target


class Outputs(NamedTuple):
    """Classes, number of outputs, whether each output is a label of its own, and the weights of classes, if any."""

    classes: np.ndarray
    n_outputs: int
    multilabel: bool = False
    factors: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class ClassReader:
    """Numbers of classes and weights of a block of rows; `factors` are the public weights of the classes, or None.

    The numbers are of any integer dtype.
    """

    classes: np.ndarray
    factors: NDArray[np.float64] | None
    read_weights: WeightReader

    def __call__(self, y: Any, sample_weight: Any, n_rows: int) -> tuple[np.ndarray, Any]:
        """Return numbers of classes and weights, or refuse them."""
        weights = self.read_weights(sample_weight, n_rows, of_block=True)
        labels = check_labels(y, n_rows, classes=self.classes)
        fast: np.ndarray | None = self._coded_fast(labels)
        coded = encode_labels(labels, self.classes) if fast is None else fast
        return coded, weights if self.factors is None else weights * self.factors[coded]

    def _coded_fast(self, labels: np.ndarray) -> NDArray[np.int8] | None:
        """Return the numbers of labels that are two whole numbers, in a pass or two, else None."""
        if len(self.classes) != 2 or self.classes.dtype.kind not in "iu" or labels.dtype.kind not in "biu":
            return None
        first, second = (labels == int(each) for each in self.classes)
        return second.view(np.int8) if np.count_nonzero(first) + np.count_nonzero(second) == len(labels) else None


@dataclass(frozen=True)
class Classification(Target):
    """Classes, or labels, by the parameters of these names.

    The values of its `Targets` are numbers of classes, of shape (n,), or one column of 0 and 1 per label, of shape
    (n, n_outputs).
    """

    weights: WeightReader
    classes: Any
    class_weight: Any = None

    parameter: ClassVar[str] = "classes"
    starts_at_counts: ClassVar[bool] = True
    takes_labels: ClassVar[bool] = False  # several labels per row, as columns of y

    @cached_property
    def named(self) -> Outputs | None:
        return None if self.classes is None else self._outputs_of(check_classes("classes", self.classes))

    def assumed(self) -> Outputs:
        return Outputs(np.arange(2), 1)

    def _outputs_of(self, classes: np.ndarray) -> Outputs:
        """Return the outputs for one class a row: one for two classes, one a class for more."""
        n_outputs = 1 if len(classes) == 2 else len(classes)
        factors = None if self.class_weight is None else class_weights(self.class_weight, classes)
        return Outputs(classes, n_outputs, factors=factors)

    def n_of_step(self) -> int:
        return 1 if self.named is None else len(self.named.classes)

    def loss_of(self, outputs: Outputs) -> tuple[str, float]:
        return ("softmax" if outputs.n_outputs > 1 and not outputs.multilabel else "logistic"), math.inf

    def means(self, outputs: Outputs) -> ClassMeans:
        return ClassMeans(outputs.n_outputs, outputs.multilabel)

    def counts(self, outputs: Outputs) -> OutcomeCounts:
        """Return what is counted before the first step."""
        return OutcomeCounts(outputs.n_outputs, outputs.multilabel)

    def describe(self, outputs: Outputs) -> dict[str, str]:
        return {"classes": repr(outputs.classes.tolist())}

    def learned(self, outputs: Outputs) -> dict[str, Any]:
        return {"classes_": outputs.classes}

    def encode(self, y: Any, sample_weight: Any, n_samples: int, outputs: Outputs | None) -> Targets:
        weights = self.weights.read(sample_weight, n_samples)
        classes = None if outputs is None else outputs.classes
        labels = check_labels(y, n_samples, classes=classes, columns=self.takes_labels)
        if outputs is None:
            outputs = self._outputs_of(classes_of(labels))
        coded = label_columns(labels) if outputs.multilabel else encode_labels(labels, outputs.classes)
        return Targets(outputs, coded, weights if outputs.factors is None else weights * outputs.factors[coded])

    def reader(self, outputs: Outputs) -> ClassReader:
        return ClassReader(outputs.classes, outputs.factors, self.weights)

    def resolve(self, y: Any, given: Any, fitted: Any) -> Outputs | None:
        named = self.named if given is None else self._outputs_of(check_classes("classes", given))
        if fitted is None:
            return named
        if named is not None and not np.array_equal(named.classes, fitted.classes_):
            raise ValueError(
                f"classes={named.classes.tolist()!r} differs from the {fitted.classes_.tolist()!r} of earlier runs: "
                "use the same, or start again with fit and warm_start=False."
            )
        return self._outputs_of(fitted.classes_)

    def report_read(self, model: Any) -> None:
        report_classes_read(model)


class GradientClassifier(ClassifierMixin, GradientEstimator):
    """Base class of classifiers trained by DP-SGD.

    Subclasses have the constructor parameters of `GradientEstimator` and ``classes, class_weight``.
    """

    def _target(self) -> Classification:
        return Classification(WeightReader.of(self.weight_bound), self.classes, self.class_weight)

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: Any = None,
        sample_weight: ArrayLike | None = None,
        groups: Any = None,
    ) -> Self:
        """Continue training from the current coefficients, for the steps and the price of one ``fit``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Private rows.
        y : array-like of shape (n_samples,)
            Private labels.
        classes : sequence or None, default=None
            All classes that can occur. Required in the first call, unless the constructor names them.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Private, nonnegative weights, as for ``fit``.
        groups : array-like of shape (n_samples,), str or None, default=None
            Private labels of units, as for ``fit``. A unit that comes back pays again.

        Returns
        -------
        self : object
            Fitted estimator. Its `epsilon_` prices all calls jointly, as if each of them had seen the same people.
        """
        warm = self._has_run()
        if classes is None and self.classes is None and not warm:
            raise ValueError(
                "classes=None at the first call of partial_fit: name all classes that can occur, here or in the "
                "constructor."
            )
        return fit_run(self, X, y, sample_weight, groups, given=classes, warm=warm)

    # --- predictions ---

    @silent_arithmetic
    def predict_proba(self, X: ArrayLike) -> NDArray[np.floating]:
        """Predict the probability of each class.

        Probabilities are those of the fitted model. What clipping takes from the mean probability of a class is bought
        after the last step and added to the intercepts, unless noise is as large. Noise makes them differ from fit to
        fit, the more the fewer rows and the smaller epsilon, and weights of classes change their odds
        (``docs/probabilities.md``).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Probabilities, with classes in the order of `classes_`.
        """
        scores = self._score_rows(X)
        if self._outputs_are_labels(scores):
            return expit(scores)
        return softmax(scores, axis=1) if scores.shape[1] > 1 else np.hstack([expit(-scores), expit(scores)])

    @silent_arithmetic
    def predict_log_proba(self, X: ArrayLike) -> NDArray[np.floating]:
        """Predict the logarithm of the probability of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            Logarithms of what ``predict_proba`` returns.
        """
        return np.log(self.predict_proba(X))

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Predict the most probable class of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Predicted classes; with several labels per row, 0 or 1 for each label.
        """
        scores = self._score_rows(X)
        if self._outputs_are_labels(scores):
            return (scores > 0).astype(np.intp)
        winners = (scores[:, 0] > 0).astype(np.intp) if scores.shape[1] == 1 else scores.argmax(axis=1)
        return self.classes_[winners]

    def _outputs_are_labels(self, scores: NDArray[np.floating]) -> bool:
        """Whether each output is a label of its own, and not one of several classes."""
        return False


def label_columns(labels: np.ndarray) -> NDArray[np.float32]:
    """Convert several labels per row to numbers."""
    if not np.isin(labels, (0, 1)).all():
        raise ValueError("y has several columns with other values than 0 and 1: give one column of 0 and 1 a label.")
    return labels.astype(np.float32)


__all__ = ["Classification", "GradientClassifier", "Outputs"]
