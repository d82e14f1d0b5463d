"""Targets of estimators trained with DP-SGD, and base classes of classifiers and regressors with their predictions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin, RegressorMixin

from skdp._checks import targets
from skdp._checks.leaks import report_classes_read
from skdp._checks.notices import LEAST_SIGNAL, LEAST_SIGNAL_OF_NUMBERS
from skdp._checks.parameters import check_choice, silent_arithmetic
from skdp._checks.rows import check_classes, check_labels, check_targets, classes_of, encode_labels
from skdp._checks.weights import WeightReader, class_weights
from skdp._dpsgd.defaults import NetworkRule
from skdp._dpsgd.estimator import GradientEstimator
from skdp._dpsgd.mean_correction import ClassMeans, CountMean, Means, OutcomeCounts, TargetMean
from skdp._dpsgd.solver import Targets, fit_run


class Target(Protocol):
    """Prediction task: names of the outputs, conversion of targets for the loss, and published attributes.

    Outputs are described by a public value with `n_outputs`, the number of outputs.

    Parameters
    ----------
    weights : WeightReader
        Reader of the sample weights.
    """

    weights: WeightReader

    parameter: ClassVar[str] = ""  # of an estimator, that names the outputs
    least_signal: ClassVar[float] = LEAST_SIGNAL  # below it rows are few
    fits_means: ClassVar[bool] = (
        True  # whether the loss is least where the mean of the predictions is that of the targets
    )
    starts_at_counts: ClassVar[bool] = False  # whether a first run starts at the log-odds of classes, by `counts`

    @property
    def named(self) -> Any:
        """Outputs named by the constructor, or None if they have to be read from the targets."""

    def assumed(self) -> Any:
        """Return the outputs for planning if none are named and no target was read."""

    def n_of_step(self) -> int:
        """Return the number of outputs for which the sampling of a pipeline step is chosen."""

    def resolve(self, y: Any, given: Any, fitted: Any) -> Any:
        """Return the public outputs, or None if they have to be read from the targets.

        `given` are the outputs that the call names, and `fitted` is the estimator of earlier runs, None in the first
        run. Only the shape of `y` is read.
        """

    def report_read(self, model: Any) -> None:
        """Report and record that an estimator reads the outputs from the targets."""

    def loss_of(self, outputs: Any) -> tuple[str, float]:
        """Return the name of the loss of the outputs, and its limit if it has one."""

    def means(self, outputs: Any) -> Means:
        """Return the privately estimated means of targets and predictions, if `fits_means`."""

    def encode(self, y: Any, sample_weight: Any, n_samples: int, outputs: Any) -> Targets:
        """Return the targets in the form that the loss requires; `outputs` of None are read from them."""

    def reader(self, outputs: Any) -> Callable[[Any, Any, int], tuple[Any, Any]]:
        """Return a reader of the targets and weights of a block of rows. It can be pickled."""

    def describe(self, outputs: Any) -> dict[str, str]:
        """Return the facts about the outputs that a checkpoint records."""

    def learned(self, outputs: Any) -> dict[str, Any]:
        """Return the attributes of a fitted estimator that describe the outputs."""


class RegressionLoss(NamedTuple):
    """Properties of a regression loss. Its derivative is in `skdp._kernels.losses`.

    Attributes
    ----------
    rule : NetworkRule
        Defaults of networks.
    limit : float
        Bound of the derivative for targets from -1 to 1. For counts, bound of the counts.
    fits_means : bool
        As for `Target`.
    are_counts : bool
        Whether targets are counts, and scores are the logarithms of their means.
    """

    rule: NetworkRule
    limit: float = math.inf
    fits_means: bool = True
    are_counts: bool = False


REGRESSION_LOSSES = {
    "squared_error": RegressionLoss(NetworkRule(3.0, 0.5, 0.3, 5.0)),
    # The Huber loss fits something between mean and median. Its line begins at the limit.
    "huber": RegressionLoss(NetworkRule(3.0, 0.2, 0.3, 5.0), limit=0.1, fits_means=False),
    "poisson": RegressionLoss(NetworkRule(3.0, 2.0, 0.3, 5.0), are_counts=True),
}
"""By the name in `skdp._kernels.losses`. Rules were chosen on four fifths each of California housing, elevators and
wine quality, and on simulated counts.

Input norms of 2, 3 and 5 gave the same R² within .01 from epsilon 1 on; at .1, 5 cost .05 on the smallest table.
Huber's derivatives are at most .1. Where counts are rare, a clip of .5 takes most of what they say: at a mean of .2 the
deviance explained was -.08 with .5, .115 with 2 and .107 with 4 (epsilon 1). The squared loss curves everywhere, so
that long steps do not settle: at epsilon 16, R² of .74 and .87 with at most 10 became .32 and .14 with 60; without
noise, 10 failed now and then on simulated rows, and 7 did not."""


class BoundedOutput(NamedTuple):
    """A single output with public bounds of its target."""

    bounds: targets.TargetBounds
    n_outputs: int = 1


@dataclass(frozen=True)
class BoundedRegression(Target):
    """Regression targets between public bounds. The parameters have the names of the estimator.

    `Targets` contains values of shape (n,), on the scale of `scale_of`: from -1 to 1 for "squared_error" and "huber".
    For "poisson", counts are divided by the square root r of the largest count, so that a score of 0 is a mean of r.
    """

    weights: WeightReader
    y_bounds: Any
    loss: Any = "squared_error"
    y_transform: Any = None

    parameter: ClassVar[str] = "y_bounds"
    least_signal: ClassVar[float] = LEAST_SIGNAL_OF_NUMBERS

    def loss_of(self, outputs: BoundedOutput) -> tuple[str, float]:
        known = self._known
        return self.loss, outputs.bounds[1] / self.scale_of(outputs.bounds).half if known.are_counts else known.limit

    @property
    def _known(self) -> RegressionLoss:
        """What is known of the loss, by a parameter that is checked here."""
        return REGRESSION_LOSSES[check_choice("loss", self.loss, tuple(REGRESSION_LOSSES))]

    @property
    def fits_means(self) -> bool:  # type: ignore[override]
        return self._known.fits_means

    def means(self, outputs: BoundedOutput) -> Means:
        return CountMean(self.loss_of(outputs)[1]) if self._known.are_counts else TargetMean()

    @property
    def fits_logarithms(self) -> bool:
        """Whether the logarithm of the targets is fitted, from a validated parameter."""
        return self.y_transform is not None

    def scale_of(self, bounds: targets.TargetBounds) -> targets.TargetScale:
        """Return the scale on which the model fits targets between `bounds`."""
        if self._known.are_counts:
            return targets.TargetScale(0.0, math.sqrt(bounds[1]))
        return targets.TargetScale.of(bounds, fit_intercept=True, is_log=self.fits_logarithms)

    @cached_property
    def named(self) -> BoundedOutput | None:
        bounds = targets.check_y_bounds(self.y_bounds)
        if targets.check_y_transform(self.y_transform, bounds) and self._known.are_counts:
            raise ValueError(
                f"y_transform='log' cannot be combined with loss={self.loss!r}, which already uses a logarithm. Set "
                "y_transform=None or another loss."
            )
        if bounds is None:
            return None
        self.check_bounds(*bounds)
        return BoundedOutput(bounds)

    def assumed(self) -> BoundedOutput:
        return BoundedOutput((-1.0, 1.0))

    def n_of_step(self) -> int:
        return 1

    def resolve(self, y: Any, given: Any, fitted: Any) -> BoundedOutput | None:
        outputs = self.named
        if fitted is not None:
            if outputs is not None and outputs.bounds != fitted.y_bounds_:
                raise ValueError(
                    f"y_bounds={self.y_bounds!r} differs from {fitted.y_bounds_!r} in earlier runs. Use the same "
                    "bounds, or start a new fit with warm_start=False."
                )
            if self.fits_logarithms != fitted._fitted_scale.is_log:
                raise ValueError(
                    f"y_transform={self.y_transform!r} differs from earlier runs. Use the same value, or start a new "
                    "fit with warm_start=False."
                )
            return BoundedOutput(fitted.y_bounds_)
        return outputs

    def report_read(self, model: Any) -> None:
        targets.report_bounds_read(model)

    def encode(self, y: Any, sample_weight: Any, n_samples: int, outputs: BoundedOutput | None) -> Targets:
        weights = self.weights.read(sample_weight, n_samples)
        values = check_targets(y, n_samples)
        if self._known.are_counts:
            targets.reject_negative(values)
            if outputs is None:
                outputs = BoundedOutput((0.0, max(1.0, float(values.max()))))
        values, bounds = targets.bring_into_bounds(values, None if outputs is None else outputs.bounds)
        scale = self.scale_of(bounds)
        return Targets(BoundedOutput(bounds), scale.scaled(values), weights)

    def reader(self, outputs: BoundedOutput) -> targets.TargetReader:
        scale = self.scale_of(outputs.bounds)
        return targets.TargetReader(outputs.bounds, scale, self.weights, self._known.are_counts)

    def check_bounds(self, low: float, high: float) -> None:
        """Reject bounds that do not fit the loss."""
        if self._known.are_counts and not (low >= 0.0 and high >= 1.0):
            raise ValueError(
                f"`y_bounds` must be (0, n) for loss={self.loss!r}, with n the largest count of interest, got "
                f"({low!r}, {high!r})."
            )

    def describe(self, outputs: BoundedOutput) -> dict[str, str]:
        found = {"y_bounds": repr(outputs.bounds)}
        return {**found, "y_transform": self.y_transform} if self.fits_logarithms else found

    def learned(self, outputs: BoundedOutput) -> dict[str, Any]:
        return {
            "y_bounds_": outputs.bounds, "_fitted_scale": self.scale_of(outputs.bounds), "_fitted_loss": self.loss,
        }  # fmt: skip


class GradientRegressor(RegressorMixin, GradientEstimator):
    """Base class of regressors trained with DP-SGD.

    Subclasses have the constructor parameters of `GradientEstimator`, ``y_bounds``, and ``loss, y_transform`` if there
    is a choice.
    """

    loss: Any = "squared_error"  # of those that have no choice
    y_transform: Any = None
    y_bounds_: targets.TargetBounds
    _fitted_scale: targets.TargetScale  # of the outputs, which parameters that are changed after a fit do not change
    _fitted_loss: str

    def _target(self) -> BoundedRegression:
        return BoundedRegression(WeightReader.of(self.weight_bound), self.y_bounds, self.loss, self.y_transform)

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: Any = None
    ) -> Self:
        """Continue training from the current coefficients, with the steps and the privacy cost of one ``fit``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Private rows.
        y : array-like of shape (n_samples,)
            Private targets. They are clipped to the bounds of earlier calls.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Private, nonnegative weights, as for ``fit``.
        groups : array-like of shape (n_samples,), str or None, default=None
            Private group identifiers, as for ``fit``. If a group appears in several calls, its privacy cost adds up.

        Returns
        -------
        self : object
            Fitted estimator. Its `epsilon_` is the composed privacy cost of all calls, as if they used the same
            records.
        """
        return fit_run(self, X, y, sample_weight, groups, warm=self._has_run())

    # --- predictions ---

    @silent_arithmetic
    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Predict the targets of rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to predict. Rows are clipped to norm `data_norm_`, as in ``fit``.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            Predicted targets, clipped to `y_bounds_`.
        """
        values = self._score_rows(X)[:, 0].astype(np.float64)
        scale = self._fitted_scale
        if REGRESSION_LOSSES[self._fitted_loss].are_counts:
            np.exp(values, out=values)  # infinity is above the bounds
        return np.clip(scale.restored(values), *self.y_bounds_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # noise decides the model of 200 rows
        return tags


class Outputs(NamedTuple):
    """Classes, the number of outputs, whether each output is a separate label, and class weights, if any."""

    classes: np.ndarray
    n_outputs: int
    multilabel: bool = False
    factors: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class ClassReader:
    """Class numbers and weights of a block of rows; `factors` are the public class weights, or None.

    The numbers are of any integer dtype.
    """

    classes: np.ndarray
    factors: NDArray[np.float64] | None
    read_weights: WeightReader

    def __call__(self, y: Any, sample_weight: Any, n_rows: int) -> tuple[np.ndarray, Any]:
        """Return class numbers and weights, or reject them."""
        weights = self.read_weights(sample_weight, n_rows, of_block=True)
        labels = check_labels(y, n_rows, classes=self.classes)
        coded: Any = None
        if len(self.classes) == 2 and self.classes.dtype.kind in "iu" and labels.dtype.kind in "biu":
            # Labels that are two whole numbers are coded in a pass or two.
            first, second = (labels == int(each) for each in self.classes)
            if np.count_nonzero(first) + np.count_nonzero(second) == len(labels):
                coded = second.view(np.int8)
        coded = encode_labels(labels, self.classes) if coded is None else coded
        return coded, weights if self.factors is None else weights * self.factors[coded]


@dataclass(frozen=True)
class Classification(Target):
    """Classes or labels. The parameters have the names of the estimator.

    `Targets` contains class numbers of shape (n,), or one column of 0 and 1 per label, of shape (n, n_outputs).
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
        """Return the class counts that are released before the first step."""
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
        if outputs.multilabel and not np.isin(labels, (0, 1)).all():
            raise ValueError(
                "y has several columns, so it must contain only 0 and 1 (one column per label). For a single "
                "multiclass target, pass a 1d array."
            )
        coded = labels.astype(np.float32) if outputs.multilabel else encode_labels(labels, outputs.classes)
        return Targets(outputs, coded, weights if outputs.factors is None else weights * outputs.factors[coded])

    def reader(self, outputs: Outputs) -> ClassReader:
        return ClassReader(outputs.classes, outputs.factors, self.weights)

    def resolve(self, y: Any, given: Any, fitted: Any) -> Outputs | None:
        named = self.named if given is None else self._outputs_of(check_classes("classes", given))
        if fitted is None:
            return named
        if named is not None and not np.array_equal(named.classes, fitted.classes_):
            raise ValueError(
                f"classes={named.classes.tolist()!r} differs from {fitted.classes_.tolist()!r} in earlier runs. Use "
                "the same classes, or start a new fit with warm_start=False."
            )
        return self._outputs_of(fitted.classes_)

    def report_read(self, model: Any) -> None:
        report_classes_read(model)


class GradientClassifier(ClassifierMixin, GradientEstimator):
    """Base class of classifiers trained with DP-SGD.

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
        """Continue training from the current coefficients, with the steps and the privacy cost of one ``fit``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Private rows.
        y : array-like of shape (n_samples,)
            Private labels.
        classes : sequence or None, default=None
            All possible classes. Required in the first call, unless the constructor names them.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Private, nonnegative weights, as for ``fit``.
        groups : array-like of shape (n_samples,), str or None, default=None
            Private group identifiers, as for ``fit``. If a group appears in several calls, its privacy cost adds up.

        Returns
        -------
        self : object
            Fitted estimator. Its `epsilon_` is the composed privacy cost of all calls, as if they used the same
            records.
        """
        warm = self._has_run()
        if classes is None and self.classes is None and not warm:
            raise ValueError(
                "`classes` must be set before the first call of partial_fit. Pass all possible classes to "
                "partial_fit or to the constructor."
            )
        return fit_run(self, X, y, sample_weight, groups, given=classes, warm=warm)

    # --- predictions ---

    @silent_arithmetic
    def predict_proba(self, X: ArrayLike) -> NDArray[np.floating]:
        """Predict the probability of each class.

        Gradient clipping biases the mean probability of a class. The bias is estimated privately after the last step
        and corrected in the intercepts, unless there are too few rows for this noise. Privacy noise makes probabilities
        vary from fit to fit, more so for few rows or a small epsilon. Class weights change the odds
        (``docs/calibration.md``).

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
            Logarithms of the output of ``predict_proba``.
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
            Predicted classes. For multilabel targets, 0 or 1 for each label.
        """
        scores = self._score_rows(X)
        if self._outputs_are_labels(scores):
            return (scores > 0).astype(np.intp)
        winners = (scores[:, 0] > 0).astype(np.intp) if scores.shape[1] == 1 else scores.argmax(axis=1)
        return self.classes_[winners]

    def _outputs_are_labels(self, scores: NDArray[np.floating]) -> bool:
        """Whether each output is a label of its own, and not one of several classes."""
        return False
