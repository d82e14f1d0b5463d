"""Private linear models."""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d, validate_data

from skdp import _defaults as rule
from skdp._config import report_leak
from skdp._models import LinearGeometry, LinearModel, clipped_scores
from skdp._optimizers import Optimizer, Vector, momentum_sgd
from skdp._plan import DPSGDPlan, noise_multiplier_for
from skdp._progress import StepProgress
from skdp._random import SecretStream
from skdp._training import run_dpsgd
from skdp._validation import check_count, check_real
from skdp.accounting import DpEvent
from skdp.base import PrivateEstimator, distinct_classes, encode_labels


class _Run(NamedTuple):
    """A plan and the public constants that a run of it needs beside."""

    plan: DPSGDPlan
    geometry: LinearGeometry
    learning_rate: float
    optimizer: Optimizer
    n_epochs: int


class DPLogisticRegression(ClassifierMixin, PrivateEstimator):
    """Logistic regression by noisy gradient descent, with differential privacy for each row.

    The binary logistic loss for two classes and the multinomial one for more. Every row's gradient is clipped, the
    clipped gradients are summed, Gaussian noise is added to the sum (DP-SGD, Abadi et al. 2016), by default over all
    rows at every step, and the average of the last iterates is kept. The defaults follow rules in public quantities
    (the number of rows and columns, epsilon, delta), so that `epsilon` is all that has to be chosen.

    Rows are clipped to the public norm `data_norm`. Scale columns to [-1, 1] or [0, 1] by *public* bounds before; one
    that ranges to 90 would drown the others in the clip.

    Parameters
    ----------
    epsilon : float or None, default=1.0
        The budget of one ``fit``; the noise is solved for. None if `noise_multiplier` is given.
    delta : float, default=1e-5
        Probability with which the guarantee may fail, well below 1/n.
    noise_multiplier : float or None, default=None
        Standard deviation of a step's noise divided by the clip. None: solved for `epsilon`.
    max_grad_norm : float or "auto", default="auto"
        C, the Euclidean norm to which each row's gradient is clipped, where rows (with the intercept's 1) are scaled
        to norm at most 1, so that gradients are no longer than 1 (sqrt(2) with more than two classes).
    data_norm : float or None, default=None
        Public bound on the Euclidean norm of a row; longer rows are scaled down to it, here and in predictions.
        None: sqrt(n_features), which is right for columns in [-1, 1] and reads nothing.
    lot_size : float or None, default=None
        Expected number of rows of a step, each row being drawn independently (Poisson sampling). A privacy parameter.
        None, like `sampling_rate`: all rows where affordable.
    sampling_rate : float or None, default=None
        `lot_size` as a share of the rows, in (0, 1].
    n_samples_public : int or None, default=None
        Public number of rows, used wherever a rule speaks of n. Required by ``adjacency="add_remove"``.
    max_iter : int or None, default=None
        Epochs. None: 200 steps.
    learning_rate : float or "auto", default="auto"
        Step length for scaled rows and the mean gradient.
    momentum : float, default=0.9
        In [0, 1), dampened: v = momentum * v + (1 - momentum) * gradient.
    average : bool, default=True
        Average the iterates of the second half of the steps; costs no privacy.
    alpha : float, default=0.0
        Weight of the penalty alpha / 2 * ||coef_||**2 on the mean loss.
    fit_intercept : bool, default=True
    classes : sequence or None, default=None
        All classes that can occur. None: read from y, unpaid, with a `PrivacyLeakWarning`.
    adjacency : {"zero_out", "add_remove", "replace_one"}, default="zero_out"
        What a neighbour differs in: one row made void (a row of weight 0; the number of rows is public), one row more
        or less, one row exchanged for another.
    accounting : {"pld", "rdp", "moments", "optimal_exact", "optimal", "strong", "naive"}, default="pld"
        Method that prices the run; ``docs/accounting.md`` tells them apart. The default is the tightest.
    accountant : PrivacyAccountant or None, default=None
        Shared bill that every fit is charged to, before it reads the rows.
    warm_start : bool, default=False
        Go on from the present coefficients. The bill goes on too: `epsilon_` covers all instalments.
    n_jobs : int or None, default=None
        Threads; changes no result. None means 1 unless in a ``joblib.parallel_config`` context, -1 all cores.
    random_state : int, RandomState or Generator instance or None, default=None
        None: noise from a fresh secret key. An int makes a run reproducible and its noise no secret.
    verbose : int, default=0
        1 shows a progress bar with the epsilon of the steps so far, on standard error.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only if X has string column names.
    epsilon_ : float
        Price at `delta_` of all that the fitted state depends on, earlier instalments of ``warm_start`` and
        ``partial_fit`` included. At most `epsilon` after a single fit.
    delta_ : float
    adjacency_ : str
        Kind of neighbours that `epsilon_` speaks of.
    privacy_event_ : DpEvent
        What `epsilon_` is the price of.
    noise_multiplier_, sampling_rate_, max_grad_norm_, data_norm_, learning_rate_ : float
        As used by the last instalment.
    n_iter_, n_steps_ : int
        Epochs and steps done in all.

    Notes
    -----
    **Guarantees.**

    - ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `classes` is given and
      `random_state` is None.
    - One row moves the sum of a step by at most `max_grad_norm_`, whatever it and its weight contain.
    - Sum and noise are divided by a public constant, the expected number of rows of a step.
    - `accountant` is charged before the rows are read; an interrupted fit keeps its charge, and the model of the
      steps done.
    - Input that is refused (NaN, infinity, unknown labels, negative weights) is refused before any charge. Such a
      refusal depends on the data and is not covered.

    Differences in the *values* released are covered; floating-point rounding of the noise and the time that a fit
    takes are not (see ``docs/pitfalls.md``).

    References
    ----------
    Abadi et al. (2016), "Deep learning with differential privacy". Bassily, Smith & Thakurta (2014), "Private
    empirical risk minimization", for averaging. Balle & Wang (2018), "Improving the Gaussian mechanism".

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLogisticRegression
    >>> from skdp.datasets import make_census
    >>> people = make_census(20_000, random_state=0)
    >>> low, high = np.array([people.bounds[name] for name in people.feature_names]).T
    >>> X = (people.data - low) / (high - low)
    >>> model = DPLogisticRegression(epsilon=1.0, classes=people.classes).fit(X, people.target)
    >>> bool(0.99 < model.epsilon_ <= 1.0)
    True
    """

    n_steps_: int
    n_iter_: int

    def __init__(
        self,
        *,
        epsilon: float | None = 1.0,
        delta: float = 1e-5,
        noise_multiplier: float | None = None,
        max_grad_norm: float | str = "auto",
        data_norm: float | None = None,
        lot_size: float | None = None,
        sampling_rate: float | None = None,
        n_samples_public: int | None = None,
        max_iter: int | None = None,
        learning_rate: float | str = "auto",
        momentum: float = 0.9,
        average: bool = True,
        alpha: float = 0.0,
        fit_intercept: bool = True,
        classes: Any = None,
        adjacency: str = "zero_out",
        accounting: str = "pld",
        accountant: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.noise_multiplier = noise_multiplier
        self.max_grad_norm = max_grad_norm
        self.data_norm = data_norm
        self.lot_size = lot_size
        self.sampling_rate = sampling_rate
        self.n_samples_public = n_samples_public
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.average = average
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.classes = classes
        self.adjacency = adjacency
        self.accounting = accounting
        self.accountant = accountant
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

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
        go_on = bool(self.warm_start) and hasattr(self, "coef_")
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
        go_on = hasattr(self, "coef_")
        if classes is None:
            classes = self.classes
        if classes is None and not go_on:
            raise ValueError(
                "classes=None at the first call of partial_fit: name all classes that can occur, here or in the "
                "constructor."
            )
        return self._fit_instalment(X, y, sample_weight, classes, go_on=go_on)

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
        n_threads = self._check_n_jobs()
        if go_on and self.adjacency != self.adjacency_:
            raise ValueError(
                f"adjacency={self.adjacency!r} differs from the {self.adjacency_!r} of earlier instalments, and two "
                "kinds of neighbours have no joint price: use the same, or start again with fit and warm_start=False."
            )
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], order="C", reset=not go_on
        )
        X = _without_duplicates(X)
        weights = self._check_weights(sample_weight, X)
        class_values, codes = self._check_labels(y, classes, go_on=go_on)
        n_outputs = 1 if len(class_values) == 2 else len(class_values)
        n_public = self._public_n_samples(X.shape[0])
        run = self._plan_run(budget, n_public, X.shape[1], n_outputs)
        self._warn_of_weak_delta(budget.delta, n_public)
        stream = self._root_stream().spawn("from step", self.n_steps_ if go_on else 0)
        earlier = self.privacy_event_ if go_on else None
        price = self._price(run.plan.event, earlier, budget.delta)  # a run without a price is refused here

        self._charge(run.plan.event)
        theta = self._theta(run.geometry) if go_on else np.zeros(n_outputs * run.geometry.width(X.shape[1]))
        progress = self._progress(run.plan, earlier, budget.delta)
        theta, n_done = self._train(run, (X, codes, weights, n_outputs), theta, stream, n_threads, progress)
        self._publish_price(price)  # before the coefficients: they may never stand beside a price that is too low
        self._publish(theta, n_outputs, class_values, run, n_done, go_on=go_on)
        return n_done, run.plan.n_steps

    def _train(
        self,
        run: _Run,
        rows: tuple[Any, NDArray[np.int64], Any, int],
        theta: Vector,
        stream: SecretStream,
        n_threads: int,
        progress: StepProgress | None,
    ) -> tuple[Vector, int]:
        """The parameters after the plan, or after the steps done when it was interrupted, and the number of steps."""
        by_lot = run.plan.sampling.rate < 1.0
        try:
            with LinearModel(*rows, run.geometry, by_lot=by_lot, n_threads=n_threads) as model:
                return run_dpsgd(
                    model, run.plan, run.optimizer, theta, stream,
                    average=bool(self.average), on_step=progress or _ignore,
                )  # fmt: skip
        except KeyboardInterrupt:
            return theta, 0
        finally:
            if progress is not None:
                progress.close()

    # --- checks, all before the charge ---

    def _check_n_jobs(self) -> int:
        if self.n_jobs is None:
            return int(effective_n_jobs(None))
        if self.n_jobs != -1 or isinstance(self.n_jobs, bool):
            remedy = "choose a whole number of threads, -1 for all cores, or None"
            negative = isinstance(self.n_jobs, int | np.integer) and self.n_jobs < 0
            check_count("n_jobs", -self.n_jobs if negative else self.n_jobs, remedy=remedy)
        return int(effective_n_jobs(self.n_jobs))

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

    def _check_labels(self, y: Any, classes: Any, *, go_on: bool) -> tuple[NDArray[Any], NDArray[np.int64]]:
        y = column_or_1d(y, warn=True)
        if go_on:
            if classes is not None and not np.array_equal(distinct_classes("classes", classes), self.classes_):
                raise ValueError(
                    f"classes={classes!r} differs from the {self.classes_.tolist()!r} of earlier instalments: use the "
                    "same, or start again with fit and warm_start=False."
                )
            return self.classes_, encode_labels(y, self.classes_)
        if classes is None:
            check_classification_targets(y)  # its warnings depend on y, which is not paid for either
            class_values = np.unique(y)
            if len(class_values) < 2:
                raise ValueError(
                    "y holds one class only and classes=None: name all classes that can occur, e.g. classes=[0, 1]."
                )
            report_leak(
                "classes=None: the classes were read from the labels, which is not paid for; name all classes that "
                "can occur, e.g. classes=[0, 1].",
                stacklevel=6,
            )
        else:
            class_values = distinct_classes("classes", classes)
        return class_values, encode_labels(y, class_values)

    # --- what is decided before the data are read ---

    def _plan_run(self, budget: Any, n: int, n_features: int, n_outputs: int) -> _Run:
        radius = math.sqrt(n_features)
        if self.data_norm is not None:
            remedy = "choose a public bound from 1e-30 to 1e30, or None"
            radius = check_real("data_norm", self.data_norm, at_least=1e-30, at_most=1e30, remedy=remedy)
        geometry = LinearGeometry(radius, bool(self.fit_intercept))
        n_parameters = n_outputs * geometry.width(n_features)
        sampling = self._chosen_sampling(n)
        if sampling is None:
            epochs = None if self.max_iter is None else self._check_max_iter()
            sampling = rule.default_sampling(n, n_parameters, epochs or rule.N_STEPS)
        n_steps = rule.N_STEPS if self.max_iter is None else math.ceil(self._check_max_iter() / sampling.rate)
        sigma = budget.noise_multiplier
        if sigma is None:
            sigma = noise_multiplier_for(
                sampling, n_steps, budget.epsilon, budget.delta, accounting=self.accounting, adjacency=self.adjacency
            )
        lot_size = sampling.rate * n
        clip = self._clip(sigma, lot_size, n_steps, n_parameters)
        plan = DPSGDPlan(sampling, clip, sigma, n_steps, lot_size)
        n_epochs = math.ceil(n_steps * sampling.rate - 1e-9)
        learning_rate = self._step_length(plan)
        optimizer = self._optimizer(learning_rate, geometry, n_features, n_outputs)
        return _Run(plan, geometry, learning_rate, optimizer, n_epochs)

    def _check_max_iter(self) -> int:
        return check_count("max_iter", self.max_iter, remedy="choose a whole number of epochs, or None for the rule")

    def _clip(self, sigma: float, lot_size: float, n_steps: int, n_parameters: int) -> float:
        if isinstance(self.max_grad_norm, str) and self.max_grad_norm == "auto":
            return rule.default_max_grad_norm(sigma, lot_size, n_steps, n_parameters)
        remedy = "choose a number from 1e-30 to 1e30, or 'auto'"
        return check_real("max_grad_norm", self.max_grad_norm, at_least=1e-30, at_most=1e30, remedy=remedy)

    def _step_length(self, plan: DPSGDPlan) -> float:
        if isinstance(self.learning_rate, str) and self.learning_rate == "auto":
            return rule.default_learning_rate(
                plan.noise_multiplier, plan.max_grad_norm, plan.expected_lot_size, plan.n_steps
            )
        return check_real("learning_rate", self.learning_rate, above=0, remedy="choose a number above 0, or 'auto'")

    def _optimizer(self, learning_rate: float, geometry: LinearGeometry, n_features: int, n_outputs: int) -> Optimizer:
        momentum = check_real("momentum", self.momentum, at_least=0, below=1, remedy="choose a number in [0, 1)")
        alpha = check_real("alpha", self.alpha, at_least=0, remedy="choose 0 (no penalty) or a number above it")
        penalty = np.zeros((n_outputs, geometry.width(n_features)))
        penalty[:, :n_features] = alpha * geometry.unit**2  # the user's coefficients, as seen by scaled rows
        return momentum_sgd(learning_rate, momentum, penalty.ravel())

    def _progress(self, plan: DPSGDPlan, earlier: DpEvent | None, delta: float) -> StepProgress | None:
        if not self.verbose:
            return None

        def epsilon_of(n_steps: int) -> float:
            return self._price(plan.event_of(n_steps), earlier, delta).epsilon

        return StepProgress(plan.n_steps, epsilon_of)

    # --- parameters of scaled rows, and of the user's ---

    def _theta(self, geometry: LinearGeometry) -> Vector:
        columns = [self.coef_, self.intercept_[:, None]] if geometry.fit_intercept else [self.coef_]
        return np.hstack(columns).ravel() / geometry.unit

    def _publish(
        self, theta: Vector, n_outputs: int, class_values: NDArray[Any], run: _Run, n_done: int, *, go_on: bool
    ) -> None:
        table = theta.reshape(n_outputs, -1) * run.geometry.unit
        d = self.n_features_in_
        self.coef_ = table[:, :d].copy()
        self.intercept_ = table[:, d].copy() if run.geometry.fit_intercept else np.zeros(n_outputs)
        self.classes_ = class_values
        self.noise_multiplier_ = run.plan.noise_multiplier
        self.sampling_rate_ = run.plan.sampling.rate
        self.max_grad_norm_ = run.plan.max_grad_norm
        self.learning_rate_ = run.learning_rate
        self.data_norm_ = run.geometry.radius
        self.n_steps_ = n_done + (self.n_steps_ if go_on else 0)
        epochs = run.n_epochs if n_done == run.plan.n_steps else math.ceil(n_done * run.plan.sampling.rate)
        self.n_iter_ = epochs + (self.n_iter_ if go_on else 0)

    # --- predictions ---

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Scores: the log-odds of ``classes_[1]``, or one column a class.

        Rows longer than `data_norm_` are scaled down to it, as they were in training; for all others this is
        ``X @ coef_.T + intercept_``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], order="C", reset=False)
        scores = clipped_scores(_without_duplicates(X), self.data_norm_, self.coef_) + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probabilities of the classes, of shape (n_samples, n_classes), in the order of `classes_`."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return softmax(scores, axis=1)

    def predict_log_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The most probable class of each row, of shape (n_samples,)."""
        scores = self.decision_function(X)
        winners = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[winners]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _without_duplicates(X: Any) -> Any:
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
