"""Private linear models."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray

from skdp._classifier import GradientClassifier, Outputs, Run, Targets
from skdp._random import SecretStream
from skdp._sampling import Sampling
from skdp._training import defaults as rule
from skdp._training.averaging import last_iterate, tail_average
from skdp._training.linear import LinearGeometry, LinearModel, clipped_scores
from skdp._training.optimizers import Optimizer, Vector, constant, momentum_sgd
from skdp._training.plan import DPSGDPlan
from skdp._validation import absolute_path, check_count, check_real
from skdp.base import Budget


class DPLogisticRegression(GradientClassifier):
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
    accountant : PrivacyAccountant, str, path-like or None, default=None
        Shared ledger that every fit is charged to, before it reads the rows. A path names the file of one, which has to
        exist (``python -m skdp.budget create``) and is made absolute here.
    checkpoint : str, path-like or None, default=None
        File in which a run is kept while it lasts. A ``fit`` that was interrupted or killed goes on from it when it is
        called again with the same parameters and rows, and is not charged again to an accountant that holds its charge.
        It is removed when the run is complete. While a run lasts, another one on the same
        file is refused before any charge, by a lock on ``<checkpoint>.lock``.
    warm_start : bool, default=False
        Go on from the present coefficients. The ledger goes on too: `epsilon_` covers all instalments.
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
        checkpoint: Any = None,
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
        self.accountant = absolute_path(accountant)
        self.checkpoint = checkpoint
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # --- what is trained ---

    def _sampling_and_steps(self, n: int, n_features: int, n_outputs: int) -> tuple[Sampling, int]:
        epochs = None if self.max_iter is None else self._check_max_iter()
        n_parameters = n_outputs * (n_features + int(bool(self.fit_intercept)))
        sampling = self._chosen_sampling(n) or rule.default_sampling(n, n_parameters, epochs or rule.N_STEPS)
        return sampling, rule.N_STEPS if epochs is None else math.ceil(epochs / sampling.rate)

    def _plan_run(self, budget: Budget, n: int, n_features: int, outputs: Outputs) -> Run:
        geometry = LinearGeometry(self._check_radius(n_features), bool(self.fit_intercept))
        n_parameters = outputs.n_outputs * geometry.width(n_features)
        sampling, n_steps = self._sampling_and_steps(n, n_features, outputs.n_outputs)
        sigma = self._noise(budget, sampling, n_steps)
        lot_size = sampling.rate * n
        clip = self._check_clip()
        if clip is None:
            clip = rule.default_max_grad_norm(sigma, lot_size, n_steps, n_parameters)
        plan = DPSGDPlan(sampling, clip, sigma, n_steps, lot_size)
        learning_rate = self._step_length(plan)
        optimizer = self._optimizer(learning_rate, geometry, n_features, outputs.n_outputs)
        averaging = tail_average(n_steps) if self.average else last_iterate()
        self._check_n_jobs()
        return Run(plan, geometry, geometry.radius, learning_rate, optimizer, averaging)

    def _step_length(self, plan: DPSGDPlan) -> float:
        if isinstance(self.learning_rate, str) and self.learning_rate == "auto":
            return rule.default_learning_rate(
                plan.noise_multiplier, plan.max_grad_norm, plan.expected_lot_size, plan.n_steps
            )
        return check_real("learning_rate", self.learning_rate, above=0, remedy="choose a number above 0, or 'auto'")

    def _optimizer(self, learning_rate: float, geometry: LinearGeometry, n_features: int, n_outputs: int) -> Optimizer:
        momentum = check_real("momentum", self.momentum, at_least=0, below=1, remedy="choose a number in [0, 1)")
        alpha = check_real("alpha", self.alpha, at_least=0, remedy="choose 0 (no penalty) or a number above it")
        if alpha == 0.0:
            return momentum_sgd(constant(learning_rate), momentum)
        penalty = np.zeros((n_outputs, geometry.width(n_features)))
        penalty[:, :n_features] = alpha * geometry.unit**2  # the user's coefficients, as seen by scaled rows
        return momentum_sgd(constant(learning_rate), momentum, penalty.ravel())

    def _check_n_jobs(self) -> int:
        if self.n_jobs is None:
            return int(effective_n_jobs(None))
        if self.n_jobs != -1 or isinstance(self.n_jobs, bool):
            remedy = "choose a whole number of threads, -1 for all cores, or None"
            negative = isinstance(self.n_jobs, int | np.integer) and self.n_jobs < 0
            check_count("n_jobs", -self.n_jobs if negative else self.n_jobs, remedy=remedy)
        return int(effective_n_jobs(self.n_jobs))

    # --- parameters of scaled rows, and of the user's ---

    def _start(self, run: Run, outputs: Outputs, dtype: Any, stream: SecretStream, *, go_on: bool) -> Vector:
        geometry: LinearGeometry = run.shape
        if not go_on:
            return np.zeros(outputs.n_outputs * geometry.width(self.n_features_in_))
        columns = [self.coef_, self.intercept_[:, None]] if geometry.fit_intercept else [self.coef_]
        return np.hstack(columns).ravel() / geometry.unit

    def _bind(self, X: Any, targets: Targets, weights: Any, run: Run) -> LinearModel:
        by_lot = run.plan.sampling.rate < 1.0
        n_outputs, n_threads = targets.outputs.n_outputs, self._check_n_jobs()
        return LinearModel(X, targets.labels, weights, n_outputs, run.shape, by_lot=by_lot, n_threads=n_threads)

    def _set_parameters(self, theta: Vector, outputs: Outputs, run: Run) -> None:
        table = theta.reshape(outputs.n_outputs, -1) * run.shape.unit
        d = self.n_features_in_
        self.coef_ = table[:, :d].copy()
        self.intercept_ = table[:, d].copy() if run.shape.fit_intercept else np.zeros(outputs.n_outputs)
        self.learning_rate_ = run.learning_rate

    # --- predictions ---

    def _scores(self, X: Any) -> NDArray[np.floating]:
        return clipped_scores(X, self.data_norm_, self.coef_) + self.intercept_

    def decision_function(self, X: ArrayLike) -> NDArray[np.floating]:
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
        scores = self._checked_scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores
