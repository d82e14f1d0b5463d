"""What classifiers trained by noisy gradient descent share: instalments, charge, training, what is published."""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d, validate_data

from skdp._averaging import Averaging
from skdp._checkpoint import Checkpoint
from skdp._config import report_leak
from skdp._optimizers import Optimizer, Vector
from skdp._plan import DPSGDPlan, noise_multiplier_for
from skdp._progress import StepProgress
from skdp._random import SecretStream
from skdp._sampling import Sampling
from skdp._training import run_dpsgd
from skdp._validation import check_count, check_real
from skdp.accounting import DpEvent
from skdp.base import Budget, PrivateEstimator, StepPlan, distinct_classes, encode_labels


class Labels(NamedTuple):
    """The classes, what each row has to be given, and the number of outputs that this takes.

    Targets are numbers of classes, of shape (n,), or one column of 0 and 1 a label, of shape (n, n_outputs).
    """

    classes: NDArray[Any]
    targets: NDArray[Any]
    n_outputs: int

    @property
    def multilabel(self) -> bool:
        return self.targets.ndim == 2


class Run(NamedTuple):
    """A plan and the public constants that a run of it needs beside."""

    plan: DPSGDPlan
    shape: Any
    radius: float
    learning_rate: float
    optimizer: Optimizer
    averaging: Averaging


class GradientClassifier(ClassifierMixin, PrivateEstimator):
    """Base class of classifiers trained by DP-SGD.

    Subclasses have the constructor parameters of `PrivateEstimator` and ``checkpoint, classes, data_norm,
    max_grad_norm, lot_size, sampling_rate, max_iter, warm_start, verbose``, and say by the methods below what it is
    that is trained.
    """

    n_steps_: int
    n_iter_: int
    _takes_labels = False  # several labels a row, as columns of y

    # --- what a subclass says ---

    def _sampling_and_steps(self, n: int, n_features: int, n_outputs: int) -> tuple[Sampling, int]:
        """How rows will be drawn, and how often; `n` is the public number of rows."""
        raise NotImplementedError

    def _plan_run(self, budget: Budget, n: int, n_features: int, labels: Labels) -> Run:
        """All that is decided before the data are read; `n` is the public number of rows."""
        raise NotImplementedError

    def _start(self, run: Run, labels: Labels, dtype: Any, stream: SecretStream, *, go_on: bool) -> Vector:
        """The parameters to start from: the present ones if `go_on`."""
        raise NotImplementedError

    def _bind(self, X: Any, labels: Labels, weights: Any, run: Run) -> Any:
        """A context manager that gives the model of these rows."""
        raise NotImplementedError

    def _publish_parameters(self, theta: Vector, labels: Labels, run: Run) -> None:
        raise NotImplementedError

    def _scores(self, X: Any) -> NDArray[np.floating]:
        """Scores of the outputs, of shape (n_samples, n_outputs)."""
        raise NotImplementedError

    def _check_label_columns(self, y: Any, classes: Any, *, go_on: bool) -> Labels:
        """Several labels a row, where `_takes_labels`."""
        raise NotImplementedError

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Private. float32 stays float32; C-ordered arrays and CSR matrices are used without a copy.
        y : array-like of shape (n_samples,)
            Private labels.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Private, not negative. A weight multiplies its row's gradient before the clip, so it can mute a row but
            not raise it above the clip. 0 makes the row a null record.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            A parameter or the input is not usable; nothing was charged.
        BudgetExceededError
            The accountant's ceiling does not allow the fit; nothing was charged, and the rows were not trained on.
        """
        go_on = bool(self.warm_start) and self._has_instalment()
        return self._fit_instalment(X, y, sample_weight, self.classes, go_on=go_on)

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, classes: Any = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit one more instalment: all the steps of a ``fit``, from the present coefficients, at its full price.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : sequence or None, default=None
            All classes that can occur; needed at the first call unless the constructor names them.
        sample_weight : array-like of shape (n_samples,) or None, default=None

        Returns
        -------
        self
            Whose `epsilon_` prices all instalments jointly, as if each had seen the same people.
        """
        go_on = self._has_instalment()
        if classes is None:
            classes = self.classes
        if classes is None and not go_on:
            raise ValueError(
                "classes=None at the first call of partial_fit: name all classes that can occur, here or in the "
                "constructor."
            )
        return self._fit_instalment(X, y, sample_weight, classes, go_on=go_on)

    def _has_instalment(self) -> bool:
        return hasattr(self, "n_steps_")

    def _fit_instalment(self, X: Any, y: Any, sample_weight: Any, classes: Any, *, go_on: bool) -> Self:
        with self._schema_kept_on_failure():
            n_done, n_steps = self._charge_and_train(X, y, sample_weight, classes, go_on=go_on)
        if n_done < n_steps:
            warnings.warn(
                f"fit was interrupted after {n_done} of {n_steps} steps: the model of those steps is kept, and so is "
                "the full charge.",
                UserWarning,
                stacklevel=3,
            )
        return self

    def _charge_and_train(self, X: Any, y: Any, sample_weight: Any, classes: Any, *, go_on: bool) -> tuple[int, int]:
        budget = self._check_budget()
        if go_on and self.adjacency != self.adjacency_:
            raise ValueError(
                f"adjacency={self.adjacency!r} differs from the {self.adjacency_!r} of earlier instalments, and two "
                "kinds of neighbours have no joint price: use the same, or start again with fit and warm_start=False."
            )
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], order="C",
            multi_output=self._takes_labels, reset=not go_on,
        )  # fmt: skip
        X = without_duplicates(X)
        weights = self._check_weights(sample_weight, X)
        labels = self._check_labels(y, classes, go_on=go_on)
        n_public = self._public_n_samples(X.shape[0])
        run = self._plan_run(budget, n_public, X.shape[1], labels)
        self._warn_of_weak_delta(budget.delta, n_public)
        stream = self._root_stream().spawn("from step", self.n_steps_ if go_on else 0)
        theta = self._start(run, labels, X.dtype, stream, go_on=go_on)
        earlier = self.privacy_event_ if go_on else None
        price = self._price(run.plan.event, earlier, budget.delta)  # a run without a price is refused here

        checkpoint = self._checkpoint(run, labels, (n_public, *X.shape[1:], str(X.dtype)), go_on=go_on)

        self._charge_once(run.plan.event, checkpoint)
        progress = self._progress(run.plan, earlier, budget.delta)
        theta, n_done = self._train((X, labels, weights, run), theta, stream, progress, checkpoint)
        self._publish_price(price)  # before the coefficients: they may never stand beside a price that is too low
        self._publish(theta, labels, run, n_done, go_on=go_on)
        if checkpoint is not None and n_done == run.plan.n_steps:
            checkpoint.finish()
        return n_done, run.plan.n_steps

    def _checkpoint(self, run: Run, labels: Labels, table: tuple[Any, ...], *, go_on: bool) -> Checkpoint | None:
        """The file that this run is kept in, if one was asked for; `table` is what is public of the rows."""
        if self.checkpoint is None:
            return None
        seeded = isinstance(self.random_state, int | np.integer)
        described = {
            **{name: repr(value) for name, value in self._public_parameters().items()},
            "estimator": type(self).__name__, "table": repr(table), "classes": repr(labels.classes.tolist()),
            "random_state": int(self.random_state) if seeded else None, "privacy_event": repr(run.plan.event),
            "earlier steps": self.n_steps_ if go_on else 0,
        }  # fmt: skip
        return Checkpoint(self.checkpoint, described, run.plan.n_steps, seeded=seeded)

    def _charge_once(self, event: DpEvent, checkpoint: Checkpoint | None) -> None:
        """Charge, unless the run goes on from a file and this very bill holds its charge already."""
        if checkpoint is None:
            return self._charge(event)
        note = f"checkpoint {checkpoint.receipt}"
        held = () if self.accountant is None or not checkpoint.begun else self.accountant.history
        if not any(charge.note == note and charge.event == event for charge in held):
            self._charge(event, note)
        return None

    def _train(
        self,
        bound: tuple[Any, Labels, Any, Run],
        theta: Vector,
        stream: SecretStream,
        progress: StepProgress | None,
        checkpoint: Checkpoint | None,
    ) -> tuple[Vector, int]:
        """The parameters after the plan, or after the steps done when it was interrupted, and the number of steps."""
        run = bound[-1]
        try:
            with self._bind(*bound) as model:
                return run_dpsgd(
                    model, run.plan, run.optimizer, theta, stream,
                    averaging=run.averaging, on_step=progress or _ignore, checkpoint=checkpoint,
                )  # fmt: skip
        except KeyboardInterrupt:
            return theta, 0
        finally:
            if progress is not None:
                progress.close()

    # --- checks, all before the charge ---

    def _check_weights(self, sample_weight: Any, X: Any) -> Any:
        if sample_weight is None:
            return 1.0
        weights = check_array(
            sample_weight, ensure_2d=False, dtype=X.dtype, input_name="sample_weight", ensure_min_samples=0
        )
        if weights.ndim == 0:
            weights = np.full(X.shape[0], weights)
        if weights.shape != (X.shape[0],):
            raise ValueError(
                f"sample_weight has shape {weights.shape} where X has {X.shape[0]} rows: give one weight a row, "
                "in one dimension."
            )
        if weights.min() < 0:
            raise ValueError("sample_weight has negative entries: weights are 0 (no influence) or above.")
        if weights.max() == 0:
            raise ValueError("sample_weight is zero for every row: give at least one row a weight above 0.")
        return weights

    def _check_labels(self, y: Any, classes: Any, *, go_on: bool) -> Labels:
        if self._takes_labels and np.ndim(y) == 2 and np.shape(y)[1] > 1:
            return self._check_label_columns(y, classes, go_on=go_on)
        y = column_or_1d(y, warn=True)
        values = self._class_values(y, classes, go_on=go_on)
        return Labels(values, encode_labels(y, values), 1 if len(values) == 2 else len(values))

    def _class_values(self, y: NDArray[Any], classes: Any, *, go_on: bool) -> NDArray[Any]:
        if go_on:
            if classes is not None and not np.array_equal(distinct_classes("classes", classes), self.classes_):
                raise ValueError(
                    f"classes={classes!r} differs from the {self.classes_.tolist()!r} of earlier instalments: use the "
                    "same, or start again with fit and warm_start=False."
                )
            return self.classes_
        if classes is not None:
            return distinct_classes("classes", classes)
        check_classification_targets(y)  # its warnings depend on y, which is not paid for either
        values = np.unique(y)
        if len(values) < 2:
            raise ValueError(
                "y holds one class only and classes=None: name all classes that can occur, e.g. classes=[0, 1]."
            )
        report_leak(
            "classes=None: the classes were read from the labels, which is not paid for; name all classes that "
            "can occur, e.g. classes=[0, 1].",
            stacklevel=7,
        )
        return values

    def _check_radius(self, n_features: int) -> float:
        """The norm to which rows are clipped."""
        if self.data_norm is None:
            return math.sqrt(n_features)
        remedy = "choose a public bound from 1e-30 to 1e30, or None"
        return check_real("data_norm", self.data_norm, at_least=1e-30, at_most=1e30, remedy=remedy)

    def _check_clip(self) -> float | None:
        """`max_grad_norm`, or None for the rule."""
        if isinstance(self.max_grad_norm, str) and self.max_grad_norm == "auto":
            return None
        remedy = "choose a number from 1e-30 to 1e30, or 'auto'"
        return check_real("max_grad_norm", self.max_grad_norm, at_least=1e-30, at_most=1e30, remedy=remedy)

    def _plan_step(self, n_samples: int, n_features: int) -> StepPlan:
        """See `PrivateEstimator`. The sampling is fixed, as the rule for it may look at the final number of columns."""
        n = self._public_n_samples(n_samples)
        n_outputs = 1 if self.classes is None else len(distinct_classes("classes", self.classes))
        sampling, n_steps = self._sampling_and_steps(n, n_features, n_outputs)
        fixed = {"lot_size": None, "sampling_rate": sampling.rate}
        return StepPlan(lambda sigma: DPSGDPlan(sampling, 1.0, sigma, n_steps, 1.0).event, fixed)

    def _noise(self, budget: Budget, sampling: Sampling, n_steps: int) -> float:
        """The noise multiplier that was given, or the one that spends epsilon."""
        if budget.noise_multiplier is not None:
            return budget.noise_multiplier
        if budget.epsilon is None:
            raise ValueError("epsilon=None, noise_multiplier=None: set exactly one of them.")
        return noise_multiplier_for(
            sampling, n_steps, budget.epsilon, budget.delta, accounting=self.accounting, adjacency=self.adjacency
        )

    def _check_max_iter(self) -> int:
        return check_count("max_iter", self.max_iter, remedy="choose a whole number of epochs, or None for the rule")

    def _progress(self, plan: DPSGDPlan, earlier: DpEvent | None, delta: float) -> StepProgress | None:
        if not self.verbose:
            return None

        def epsilon_of(n_steps: int) -> float:
            return self._price(plan.event_of(n_steps), earlier, delta).epsilon

        return StepProgress(plan.n_steps, epsilon_of)

    # --- what is published ---

    def _publish(self, theta: Vector, labels: Labels, run: Run, n_done: int, *, go_on: bool) -> None:
        plan = run.plan
        self._publish_parameters(theta, labels, run)
        self.classes_ = labels.classes
        self.noise_multiplier_ = plan.noise_multiplier
        self.sampling_rate_ = plan.sampling.rate
        self.max_grad_norm_ = plan.max_grad_norm
        self.data_norm_ = run.radius
        self.n_iter_ = math.ceil(n_done * plan.sampling.rate - 1e-9) + (self.n_iter_ if go_on else 0)
        self.n_steps_ = n_done + (self.n_steps_ if go_on else 0)

    # --- predictions ---

    def predict_proba(self, X: ArrayLike) -> NDArray[np.floating]:
        """Probabilities of the classes, of shape (n_samples, n_classes), in the order of `classes_`."""
        scores = self._checked_scores(X)
        if self._outputs_are_labels(scores):
            return expit(scores)
        return softmax(scores, axis=1) if scores.shape[1] > 1 else np.hstack([expit(-scores), expit(scores)])

    def predict_log_proba(self, X: ArrayLike) -> NDArray[np.floating]:
        """Logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The most probable class of each row, of shape (n_samples,)."""
        scores = self._checked_scores(X)
        if self._outputs_are_labels(scores):
            return (scores > 0).astype(np.intp)
        winners = (scores[:, 0] > 0).astype(np.intp) if scores.shape[1] == 1 else scores.argmax(axis=1)
        return self.classes_[winners]

    def _checked_scores(self, X: Any) -> NDArray[np.floating]:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], order="C", reset=False)
        return self._scores(without_duplicates(X))

    def _outputs_are_labels(self, scores: NDArray[np.floating]) -> bool:
        """Whether each output is a label of its own, not one class of several."""
        return False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def without_duplicates(X: Any) -> Any:
    """X with each entry of a sparse row stored once, so that a row's norm is that of its entries."""
    if not sp.issparse(X):
        return X
    X = sp.csr_matrix((X.data, X.indices, X.indptr), X.shape)  # forgets what X believes of its own format
    if not X.has_canonical_format:
        X = X.copy()  # the user's own matrix stays as it is
        X.sum_duplicates()
        if not np.isfinite(X.data).all():
            raise ValueError(
                "X contains infinity: entries that a sparse row stores more than once add up beyond range."
            )
    return X


def _ignore(n_done: int) -> None:
    """What a step's observer does when nobody watches."""


__all__ = ["GradientClassifier", "Labels", "Run", "without_duplicates"]
