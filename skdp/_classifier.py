"""Base of classifiers trained by noisy gradient descent: runs, charge, training and publication."""

from __future__ import annotations

import math
from copy import copy
from functools import partial
from typing import Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from skdp._config import report_leak
from skdp._fitting.callers import report_foreign_fit
from skdp._fitting.class_weight import class_weights
from skdp._fitting.leaks import CLASSES_READ, begin_record, note_leaks
from skdp._fitting.releases import Release, new_release, publish, releases_of
from skdp._fitting.rows import check_classes, check_labels, check_table, check_weights, encode_labels
from skdp._random import SecretStream
from skdp._sampling import Sampling
from skdp._training.averaging import Averaging
from skdp._training.checkpoint import Checkpoint
from skdp._training.loop import run_dpsgd
from skdp._training.optimizers import Optimizer, Vector
from skdp._training.plan import DPSGDPlan, calibrate_noise, event_of_steps
from skdp._training.progress import StepProgress
from skdp._training.run_lock import RunLock
from skdp._validation import check_count, check_real, show
from skdp.accounting import DpEvent, compose, resolve_accountant
from skdp.base import (
    Budget,
    FitTerms,
    Price,
    PrivateEstimator,
    StepPlan,
    public_shape,
    refuse_fit_params,
    warn_of_interrupt,
    warn_of_weak_delta,
)


class Outputs(NamedTuple):
    """Classes, number of outputs, and whether each output is a label of its own."""

    classes: NDArray[Any]
    n_outputs: int
    multilabel: bool = False

    @classmethod
    def of_classes(cls, classes: NDArray[Any]) -> Outputs:
        """Outputs of one class per row: one output for two classes, one per class for more."""
        return cls(classes, 1 if len(classes) == 2 else len(classes))


class Targets(NamedTuple):
    """Labels and weights of the rows, checked.

    `labels` holds numbers of classes, of shape (n,), or one column of 0 and 1 per label, of shape (n, n_outputs).
    """

    outputs: Outputs
    labels: NDArray[Any]
    weights: Any


class Run(NamedTuple):
    """A plan, and the other public constants that a run of it needs."""

    plan: DPSGDPlan
    shape: Any
    radius: float
    learning_rate: float
    optimizer: Optimizer
    averaging: Averaging


class Plan(NamedTuple):
    """Everything that is decided about a fit before its rows are read.

    `earlier` holds the releases of earlier runs, and `before` their steps and epochs, if the fit starts from them.
    """

    run: Run
    outputs: Outputs
    n_public: int
    stream: SecretStream
    price: Price
    earlier: tuple[Release, ...]
    before: tuple[int, int]
    checkpoint: Checkpoint | None
    warm: bool

    @property
    def event(self) -> DpEvent:
        return self.run.plan.event

    @property
    def note(self) -> str:
        """Note of the charge, by which a resumed run finds it."""
        return "" if self.checkpoint is None else f"checkpoint {self.checkpoint.receipt}"

    def release(self, adjacency: str) -> Release:
        """Release that the charge pays for; a run with a checkpoint keeps its id when it resumes."""
        if self.checkpoint is None:
            return new_release(self.event, adjacency)
        return Release(self.checkpoint.receipt, self.event, adjacency)


class GradientClassifier(ClassifierMixin, PrivateEstimator):
    """Base class of classifiers trained by DP-SGD.

    Subclasses have the constructor parameters of `PrivateEstimator` and ``checkpoint, classes, class_weight, data_norm,
    max_grad_norm, lot_size, sampling_rate, max_iter, warm_start, verbose``. They define the model by the methods below.
    """

    class_weight: Any = None  # also of estimators that were pickled before there was one

    n_steps_: int
    n_iter_: int
    _fitted_before: tuple[int, int]  # steps and epochs of all runs but the last
    _takes_labels = False  # several labels per row, as columns of y

    # --- methods of subclasses ---

    def _sampling_and_steps(self, n: int, n_features: int, n_outputs: int) -> tuple[Sampling, int]:
        """Return the sampling of rows and the number of steps; `n` is the public number of rows."""
        raise NotImplementedError

    def _plan_run(self, budget: Budget, n: int, n_features: int, outputs: Outputs) -> Run:
        """Decide everything that precedes reading the data; `n` is the public number of rows."""
        raise NotImplementedError

    def _warn_of_weak_signal(self, run: Run, n: int, n_features: int, outputs: Outputs) -> None:
        """Warn where noise decides much of the model, from public numbers alone."""

    def _start(self, run: Run, outputs: Outputs, dtype: Any, stream: SecretStream, *, warm: bool) -> Vector:
        """Return the initial parameters: the current ones if `warm`."""
        raise NotImplementedError

    def _bind(self, X: Any, targets: Targets, weights: Any, run: Run) -> Any:
        """Return a context manager that gives the model of these rows."""
        raise NotImplementedError

    def _set_parameters(self, theta: Vector, plan: Plan, n_done: int) -> None:
        """Publish the result of a run, of which `n_done` steps were made."""
        raise NotImplementedError

    def _scores(self, X: Any) -> NDArray[np.floating]:
        """Scores of the outputs, of shape (n_samples, n_outputs)."""
        raise NotImplementedError

    def _label_outputs(self, n_columns: int, classes: Any, *, warm: bool) -> Outputs:
        """Return the outputs for several labels per row, if `_takes_labels`."""
        raise NotImplementedError

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Private rows. float32 input is kept as float32. C-ordered arrays and CSR matrices are not copied.
        y : array-like of shape (n_samples,)
            Private labels.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Private, nonnegative weights. A weight multiplies the gradient of its row before it is clipped, so a large
            weight cannot raise a row above the clipping norm. A row of weight 0 is a null row.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            A parameter or the input is invalid. Nothing was charged.
        BudgetExceededError
            The ceiling of the accountant does not admit the fit. Nothing was charged, and no step was made.
        """
        return self._fit_run(X, y, sample_weight, warm=bool(self.warm_start) and self._has_run())

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, classes: Any = None, sample_weight: ArrayLike | None = None
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
        return self._fit_run(X, y, sample_weight, classes=classes, warm=warm)

    def _has_run(self) -> bool:
        return hasattr(self, "n_steps_")

    def _fit_run(self, X: Any, y: Any, sample_weight: Any, *, classes: Any = None, warm: bool) -> Self:
        """Fit a copy and publish what it learned, under the lock of the checkpoint."""
        work = copy(self)
        terms = work._check_terms()
        if warm:  # the state depends on earlier runs too
            now = work._fitted_leaks
            begin_record(work, self.__dict__.get("_fitted_leaks"))
            note_leaks(work, *now)
        with RunLock(work.checkpoint) as lock:
            lock.take()
            self._fit_and_publish(work, terms, X, y, sample_weight, classes=classes, warm=warm)
        return self

    def _fit_and_publish(
        self, work: Self, terms: FitTerms, X: Any, y: Any, sample_weight: Any, *, classes: Any, warm: bool
    ) -> None:
        """Go through the phases of a fit on `work`, and publish what it learned."""
        outputs = work._resolve_outputs(y, classes, warm=warm)
        work._note_row_norm(X)
        shape = public_shape(X)
        plan = None
        if outputs is not None and shape is not None and not (warm and shape[1] != work.n_features_in_):
            plan = work._plan_next_run(terms, shape, outputs, warm=warm)
            work._admit_once(plan)  # the ledger is asked before a row is read
        with work._payment().recording_refusals():
            rows = work._check_rows(X, warm=warm)
            targets = work._encode_targets(y, sample_weight, rows.shape[0], outputs)
        if plan is None:  # the classes are read from the labels
            plan = work._plan_next_run(terms, rows.shape, targets.outputs, warm=warm)
            work._admit_once(plan)
        warn_of_weak_delta(plan.price.delta, plan.n_public)
        if outputs is not None and not warm:  # the number of classes is private where it was read from the labels
            work._warn_of_weak_signal(plan.run, plan.n_public, rows.shape[1], plan.outputs)
        if plan.checkpoint is not None:
            plan.checkpoint.check_run((plan.n_public, *rows.shape[1:], str(rows.dtype)))
        work._charge_once(plan)
        interrupted = work._learn(plan, rows, targets)
        publish(self, work)
        # An interrupted run keeps its checkpoint, from which the next fit resumes.
        if interrupted:
            warn_of_interrupt(interrupted)
        elif plan.checkpoint is not None:
            plan.checkpoint.finish()

    # --- the phases ---

    def _check_targets(self, y: Any, n_samples: int, **fit_params: Any) -> Targets:
        """See `PrivateEstimator`."""
        sample_weight = fit_params.pop("sample_weight", None)
        refuse_fit_params(fit_params)
        return self._encode_targets(y, sample_weight, n_samples, self._resolve_outputs(y, None, warm=False))

    def _encode_targets(self, y: Any, sample_weight: Any, n_samples: int, outputs: Outputs | None) -> Targets:
        weights = check_weights(sample_weight, n_samples, np.float64)
        named = None if outputs is None else outputs.classes
        labels = check_labels(y, n_samples, classes=named, columns=self._takes_labels)
        if outputs is None:
            outputs = Outputs.of_classes(classes_of(labels))
        factors = self._class_factors(outputs)
        coded = label_columns(labels) if outputs.multilabel else encode_labels(labels, outputs.classes)
        return Targets(outputs, coded, weights if factors is None else weights * factors[coded])

    def _class_factors(self, outputs: Outputs) -> NDArray[np.float64] | None:
        """Return the factors of the classes, or refuse `class_weight`."""
        if outputs.multilabel and self.class_weight is not None:
            raise ValueError(
                f"class_weight={show(self.class_weight)} with several labels a row, of which none is its class: set "
                "class_weight=None, or give sample_weight."
            )
        return class_weights(self.class_weight, outputs.classes)

    def _resolve_outputs(self, y: Any, classes: Any, *, warm: bool) -> Outputs | None:
        """Return the public classes, or None if they have to be read from the labels."""
        given = self.classes if classes is None else classes
        n_columns = number_of_columns(y) if self._takes_labels else 1
        if n_columns > 1:
            return self._label_outputs(n_columns, given, warm=warm)
        if warm:
            if given is not None and not np.array_equal(check_classes("classes", given), self.classes_):
                raise ValueError(
                    f"classes={given!r} differs from the {self.classes_.tolist()!r} of earlier runs: use the "
                    "same, or start again with fit and warm_start=False."
                )
            return Outputs.of_classes(self.classes_)
        if given is not None:
            return Outputs.of_classes(check_classes("classes", given))
        report_leak(
            "classes=None: the classes were read from the labels, which is not paid for; name all classes that "
            "can occur, e.g. classes=[0, 1]."
        )
        note_leaks(self, CLASSES_READ)
        return None

    def _check_parameters(self, terms: FitTerms, n_samples: int, n_features: int | None) -> None:
        """See `PrivateEstimator`. Asked by pipelines and searches alone, whose runs have no file and no earlier run."""
        if self.checkpoint is not None or self.warm_start:
            raise ValueError(
                f"checkpoint={self.checkpoint!r}, warm_start={self.warm_start!r}: a pipeline or a search starts each "
                "fit anew; set checkpoint=None and warm_start=False."
            )
        classes = np.arange(2) if self.classes is None else check_classes("classes", self.classes)
        outputs, n = Outputs.of_classes(classes), self._public_n_samples(n_samples)
        if self.classes is not None:
            self._class_factors(outputs)
        run = self._plan_run(terms.budget, n, n_features or 1, outputs)
        if n_features is not None and self.classes is not None:
            self._warn_of_weak_signal(run, n, n_features, outputs)

    def _plan_fit(self, terms: FitTerms, n_samples: int, n_features: int, targets: Targets) -> Plan:
        """See `PrivateEstimator`."""
        return self._plan_next_run(terms, (n_samples, n_features), targets.outputs, warm=False)

    def _plan_next_run(self, terms: FitTerms, shape: tuple[int, int], outputs: Outputs, *, warm: bool) -> Plan:
        if warm and self.adjacency != self.adjacency_:
            raise ValueError(
                f"adjacency={self.adjacency!r} differs from the {self.adjacency_!r} of earlier runs, and two "
                "kinds of neighbours have no joint price: use the same, or start again with fit and warm_start=False."
            )
        terms = self._settle_delta(terms, shape[0], self.delta_ if warm else None)
        self._class_factors(outputs)
        n = self._public_n_samples(shape[0])
        run = self._plan_run(terms.budget, n, shape[1], outputs)
        earlier = releases_of(self) if warm else ()
        before = (self.n_steps_, self.n_iter_) if warm else (0, 0)
        checkpoint = self._make_checkpoint(run, outputs, earlier)
        if checkpoint is not None and checkpoint.continues(earlier):
            earlier, before = earlier[:-1], self._fitted_before  # the current state is of this run, interrupted
        if warm:
            self._check_present(run, outputs)
        paid = compose(release.event for release in earlier) if earlier else None
        price = self._price(run.plan.event, paid, self.delta)  # a run without a price is refused here
        stream = terms.stream.spawn("from step", before[0])
        return Plan(run, outputs, n, stream, price, earlier, before, checkpoint, warm)

    def _check_present(self, run: Run, outputs: Outputs) -> None:
        """Refuse a warm start if the current parameters do not fit the run."""

    def _check_rows(self, X: Any, *, warm: bool = False) -> Any:
        """See `PrivateEstimator`."""
        return check_table(self, X, reset=not warm, sparse=True)

    def _make_checkpoint(self, run: Run, outputs: Outputs, earlier: tuple[Release, ...]) -> Checkpoint | None:
        """Return the checkpoint of this run, if one was asked for."""
        if self.checkpoint is None:
            return None
        seeded = isinstance(self.random_state, int | np.integer)
        described = {
            **{name: repr(value) for name, value in self._public_parameters().items()},
            "estimator": type(self).__name__, "classes": repr(outputs.classes.tolist()),
            "random_state": int(self.random_state) if seeded else None, "privacy_event": repr(run.plan.event),
            **({"row_norm": self._fitted_row_norm} if self._fitted_row_norm else {}),
        }  # fmt: skip
        return Checkpoint(self.checkpoint, described, earlier, run.plan.n_steps, seeded=seeded)

    def _admit_once(self, plan: Plan) -> None:
        if self._is_charged(plan):
            note_leaks(self, *report_foreign_fit(self))
        else:
            self._admit(plan.event)

    def _charge_once(self, plan: Plan) -> None:
        """Charge, unless the run resumes from a file and this ledger already holds its charge."""
        if not self._is_charged(plan):
            self._payment().charge(plan.event, plan.note)

    def _is_charged(self, plan: Plan) -> bool:
        accountant = resolve_accountant(self.accountant)
        if accountant is None or plan.checkpoint is None or not plan.checkpoint.begun:
            return False
        return any(charge.note == plan.note and charge.event == plan.event for charge in accountant.history)

    def _learn(self, plan: Plan, rows: Any, targets: Targets) -> str:
        """See `PrivateEstimator`."""
        theta, n_done = self._train(plan, rows, targets)
        run, (steps, epochs) = plan.run, plan.before
        self._set_parameters(theta, plan, n_done)
        self.classes_ = plan.outputs.classes
        self.noise_multiplier_ = run.plan.noise_multiplier
        self.sampling_rate_ = run.plan.sampling.rate
        self.max_grad_norm_ = run.plan.max_grad_norm
        self.data_norm_ = run.radius
        self._fitted_before, self._fitted_n_public = plan.before, plan.n_public
        self.n_steps_ = n_done + steps
        # The small number undoes rounding: 20 steps at rate 0.05 are one epoch.
        self.n_iter_ = math.ceil(n_done * run.plan.sampling.rate - 1e-9) + epochs
        self._set_price(plan.price, (*plan.earlier, plan.release(self.adjacency)))
        return f"after {n_done} of {run.plan.n_steps} steps" if n_done < run.plan.n_steps else ""

    def _train(self, plan: Plan, rows: Any, targets: Targets) -> tuple[Vector, int]:
        """Run the plan; return the parameters and the number of steps done, fewer if it was interrupted."""
        run = plan.run
        theta = self._start(run, plan.outputs, rows.dtype, plan.stream, warm=plan.warm)
        progress = self._make_progress(plan)
        try:
            with self._bind(rows, targets, _cast_weights(targets.weights, rows.dtype), run) as model:
                return run_dpsgd(
                    model, run.plan, run.optimizer, theta, plan.stream,
                    averaging=run.averaging, on_step=progress or _ignore, checkpoint=plan.checkpoint,
                )  # fmt: skip
        except KeyboardInterrupt:  # before the first step
            return theta, 0
        finally:
            if progress is not None:
                progress.close()

    # --- checks of parameters ---

    def _check_radius(self, n_features: int) -> float:
        """Return the norm to which rows are clipped."""
        if self.data_norm is None:
            return self._fitted_row_norm or math.sqrt(n_features)
        remedy = "choose a public bound from 1e-30 to 1e30, or None"
        return check_real("data_norm", self.data_norm, at_least=1e-30, at_most=1e30, remedy=remedy)

    def _check_clip(self) -> float | None:
        """Return `max_grad_norm`, or None for the rule."""
        if isinstance(self.max_grad_norm, str) and self.max_grad_norm == "auto":
            return None
        remedy = "choose a number from 1e-30 to 1e30, or 'auto'"
        return check_real("max_grad_norm", self.max_grad_norm, at_least=1e-30, at_most=1e30, remedy=remedy)

    def _plan_step(self, n_samples: int, n_features: int) -> StepPlan:
        """See `PrivateEstimator`. The sampling is fixed, since its rule may depend on the final number of columns."""
        n = self._public_n_samples(n_samples)
        n_outputs = 1 if self.classes is None else len(check_classes("classes", self.classes))
        sampling, n_steps = self._sampling_and_steps(n, n_features, n_outputs)
        fixed = {"lot_size": None, "sampling_rate": sampling.rate}
        return StepPlan(partial(event_of_steps, sampling, n_steps), fixed)

    def _calibrate_noise(self, budget: Budget, sampling: Sampling, n_steps: int) -> float:
        """Return the given noise multiplier, or the one that spends epsilon."""
        if budget.noise_multiplier is not None:
            return budget.noise_multiplier
        epsilon, delta = cast(float, budget.epsilon), cast(float, budget.delta)  # given, and settled
        return calibrate_noise(sampling, n_steps, epsilon, delta, accounting=self.accounting, adjacency=self.adjacency)

    def _check_max_iter(self) -> int:
        return check_count("max_iter", self.max_iter, remedy="choose a whole number of epochs, or None for the rule")

    def _make_progress(self, plan: Plan) -> StepProgress | None:
        if not self.verbose:
            return None
        paid = compose(release.event for release in plan.earlier) if plan.earlier else None

        def epsilon_of(n_steps: int) -> float:
            return self._price(plan.run.plan.event_of(n_steps), paid, plan.price.delta).epsilon

        return StepProgress(plan.run.plan.n_steps, epsilon_of)

    # --- predictions ---

    def predict_proba(self, X: ArrayLike) -> NDArray[np.floating]:
        """Predict the probability of each class.

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
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
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

    def _score_rows(self, X: Any) -> NDArray[np.floating]:
        check_is_fitted(self)
        return self._scores(check_table(self, X, reset=False, sparse=True))

    def _outputs_are_labels(self, scores: NDArray[np.floating]) -> bool:
        """Whether each output is a label of its own, and not one of several classes."""
        return False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def classes_of(labels: NDArray[Any]) -> NDArray[Any]:
    """Distinct values of labels, at least two."""
    values = np.unique(labels)
    if len(values) < 2:
        raise ValueError(
            "y holds one class only and classes=None: name all classes that can occur, e.g. classes=[0, 1]."
        )
    return values


def label_columns(labels: NDArray[Any]) -> NDArray[np.float32]:
    """Convert several labels per row to numbers."""
    if not np.isin(labels, (0, 1)).all():
        raise ValueError("y has several columns with other values than 0 and 1: give one column of 0 and 1 a label.")
    return labels.astype(np.float32)


def number_of_columns(y: Any) -> int:
    """Number of labels per row, from the shape only."""
    shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    return int(shape[1]) if len(shape) == 2 else 1


def _cast_weights(weights: Any, dtype: Any) -> Any:
    """Cast weights to the dtype of the rows; a weight beyond its range becomes its largest number, as the clip acts."""
    if not isinstance(weights, np.ndarray):
        return weights
    return np.minimum(weights, np.finfo(dtype).max).astype(dtype)


def _ignore(n_done: int) -> None:
    """Observe a step without doing anything."""


__all__ = ["GradientClassifier", "Outputs", "Plan", "Run", "Targets", "classes_of"]
