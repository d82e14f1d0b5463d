"""Differentially private logistic regression."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, field
from functools import partial
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from skdp._checks.parameters import check_switch, show
from skdp._dpsgd.linear_solver import FormSolver, LinearSolver
from skdp._dpsgd.models.linear import clipped_scores
from skdp._dpsgd.models.one_hot import OneHotForm
from skdp._dpsgd.solver import fit_run
from skdp._dpsgd.targets import GradientClassifier
from skdp.base.estimator import with_parameters
from skdp.base.private_step import StepPlan
from skdp.inspection import report_rows
from skdp.linear_model.coefficient_table import HasCoefficientTable
from skdp.linear_model.newton import NewtonSolver


@with_parameters
class DPLogisticRegression(HasCoefficientTable, GradientClassifier):
    """Differentially private logistic regression classifier.

    The model is trained by noisy gradient descent (DP-SGD): each step clips the gradient of every row and adds Gaussian
    noise to their sum. By default, every step uses all rows.

    Scale the columns to [-1, 1] or [0, 1] by *public* bounds first, because rows are clipped to the norm `data_norm`.
    Rows of `skdp.PublicTreesEmbedding` are trained as in `skdp.DPRandomTreesClassifier`.

    Parameters
    ----------
    epsilon : float, Risk or None, default=1.0
        Privacy budget of one ``fit``: a number, or a `skdp.Risk`. Must be None if `noise_multiplier` is set.
    delta : float or "auto", default="auto"
        The delta of the (epsilon, delta) guarantee; it must be well below 1/n, where n is the public number of rows.
        "auto" uses the delta of the accountant if it has one. Otherwise it is 1e-5 for at most 10,000 rows and 1/(10n),
        rounded down to a power of ten, for more.
    noise_multiplier : float or None, default=None
        Standard deviation of the noise of one step, divided by the clipping norm. If None, it is calibrated to
        `epsilon`.
    max_grad_norm : float or "auto", default="auto"
        Euclidean norm to which the gradient of each row is clipped. "auto" is 1/2 for binary problems; for multiclass,
        it is 1 on rows of `skdp.preprocessing.DPTableVectorizer`, else a function of public quantities.
    data_norm : float or None, default=None
        Public bound on the Euclidean norm of a row. Rows are clipped to it, in ``fit`` and in predictions. None uses
        the public norm that `skdp.preprocessing.DPTableVectorizer` or `skdp.PublicTreesEmbedding` attaches to rows,
        otherwise sqrt(n_features), which suits columns in [-1, 1].
    lot_size : float or None, default=None
        Expected number of rows in one step. Each row is drawn independently (Poisson sampling). By default, all rows
        are used if affordable.
    sampling_rate : float or None, default=None
        `lot_size` as a fraction of the number of rows, in (0, 1]. Set at most one of the two.
    max_iter : int or None, default=None
        Number of epochs. None makes 200 steps, or 100 on rows of `skdp.PublicTreesEmbedding`.
    learning_rate : float or "auto", default="auto"
        Step size. "auto" computes it from public quantities.
    momentum : float, default=0.9
        Momentum in [0, 1), with dampening: ``v = momentum * v + (1 - momentum) * gradient``.
    average : bool, default=True
        Whether to average the iterates of the second half of the steps.
    alpha : float, default=0.0
        Strength of the L2 penalty ``alpha / 2 * ||coef_||**2``, which is added to the mean loss.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    classes : sequence or None, default=None
        All classes that can occur in `y`. If None, they are read from `y`; this is not covered by the guarantee, and a
        `PrivacyLeakWarning` is issued.
    class_weight : dict of class to float, or None, default=None
        Public weights of the classes; a class that is not named has weight 1. Only their ratios matter. "balanced"
        would read the labels and is rejected: pass ``1 / prevalence`` with public prevalences.
    weight_bound : float or None, default=None
        Public upper bound of `sample_weight`. Weights are clipped to it and divided by it. Choose the largest weight
        that can occur, or a value that few weights exceed: the effect of the noise grows with the bound divided by the
        mean weight. None is 1.
    rows_per_group : int or None, default=None
        With `groups` and ``inference=True``, the public maximum number k of rows per group. The rows of larger groups
        share the weight of k rows, and the noise is k times larger. None is 1.
    adjacency : {"zero_out", "replace_one"}, AddRemove or None, default=None
        Neighboring relation: how two neighboring tables differ in one row, or in all rows of one group:

        - "zero_out": it is zeroed out and adds nothing to any sum.
        - "replace_one": it is replaced by another one.
        - ``skdp.AddRemove(n_public=10_000)``: it is added or removed; every rule uses the public number `n_public`.

        None uses that of `accountant`, otherwise "zero_out".
    accountant : PrivacyAccountant, str, path-like or None, default=None
        Accountant that records the privacy cost of each fit, before anything is learned from the rows, and rejects a
        fit that exceeds its budget. A path refers to an existing budget file (see ``python -m skdp.accounting create``)
        and is made absolute.
    inference : bool, default=False
        Whether to fit by Newton steps and release the sums that `summary` requires, with 10% of mu squared. Requires
        rows in memory, at most 200 columns times (number of classes - 1), and defaults for gradient descent.
    checkpoint : str, path-like or None, default=None
        File that stores the state of the fit until it completes. An interrupted ``fit`` with the same parameters and
        rows resumes from it and is not charged again. A lock on ``<checkpoint>.lock`` rejects concurrent fits.
    warm_start : bool, default=False
        If True, ``fit`` starts from the current coefficients, and `epsilon_` covers all calls.
    merge_equal_rows : {"auto", True, False}, default="auto"
        Whether equal rows, with equal targets and weights, are found once and then computed once a step, which is
        faster. "auto" does so for large lots of mostly repeated rows. The run time then depends on them
        (``docs/limitations.md``).
    n_jobs : int or None, default=None
        Number of threads, as in scikit-learn. The result does not depend on it.
    random_state : int, RandomState or Generator instance or None, default=None
        Source of sampling and noise. None draws a fresh secret key from the operating system. Any other value makes the
        fit reproducible and issues a `PrivacyLeakWarning`, because the guarantee does not hold against anyone who knows
        the value.
    verbose : int, default=0
        If 1, show a progress bar with the current epsilon.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients; one row for binary problems. With `inference`, those of the first of several classes are 0.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts, zero if ``fit_intercept=False``.
    coef_noise_ : ndarray of the shape of `coef_`
        Standard deviation of each coefficient due to the noise.
    classes_ : ndarray of shape (n_classes,)
        Class labels known to the classifier.
    weight_bound_ : float
        Bound to which weights were clipped.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of columns seen during ``fit``, if all are strings.
    epsilon_ : float
        Privacy cost (epsilon at `delta_`) of all runs since the last fit from scratch.
    delta_ : float
        Delta at which `epsilon_` is computed.
    adjacency_ : str
        Neighboring relation for which `epsilon_` holds.
    privacy_unit_ : {"row", "group"}
        Privacy unit of the guarantee.
    privacy_event_ : DpEvent
        Privacy event from which `epsilon_` is computed.
    noise_multiplier_ : float
        Noise multiplier of the last run: that of constant noise with the same privacy cost.
    sampling_rate_ : float
        Sampling rate of the last run.
    max_grad_norm_ : float
        Clipping norm of the last run.
    data_norm_ : float
        Norm to which rows were clipped in the last run.
    learning_rate_ : float
        Step size of the last run.
    n_iter_ : int
        Number of epochs over all runs.
    n_steps_ : int
        Number of steps over all runs.

    See Also
    --------
    DPMLPClassifier : Neural network trained in the same way.
    skdp.DPRandomTreesClassifier : Logistic regression on random trees, with interactions between columns.
    DPGridSearchCV : Differentially private hyperparameter tuning.

    Notes
    -----
    **Guarantees.**

    - ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `classes` is set and
      `random_state` is None.
    - One row changes the sum of gradients of a step by at most `max_grad_norm_`. The noisy sum is divided by a public
      constant, the expected number of rows.
    - A row of `skdp.PublicTreesEmbedding` without the declared public layout counts as a zeroed-out record.
    - With `groups`, the guarantee holds for all rows of one group together: sums over a group are clipped to the
      contribution of one row.
    - Noisy class counts, released before the first step, set the starting point. Noisy sums, released after the last
      step, correct `intercept_`. Each has 1% of mu squared of a fit to all rows (2% for the sums without counts) and is
      part of `privacy_event_`.
    - With `inference`, one row changes the score and curvature of a step by a joint norm of at most 1, one group by at
      most `max_grad_norm_`. Gradients are not clipped.
    - The accountant is charged before the rows are read. An interrupted fit stays charged.
    - Errors for invalid input are raised before the charge, or after it if rows are not in memory. They depend on the
      data and are not covered.

    **Inference.** With ``inference=True``, the fit makes eight noisy Newton steps and one release for the standard
    errors of `summary`, which include the noise. Without valid intervals, `summary` states the reason
    (``docs/inference.md``).

    Run times and the rounding of sums of more than 2^20 rows are not covered (``docs/limitations.md``).

    References
    ----------
    Abadi et al. (2016), "Deep learning with differential privacy".

    Ganesh, Haghifam, Steinke & Thakurta (2023), "Faster differentially private convex optimization via second-order
    methods".

    Examples
    --------
    >>> from skdp import DPLogisticRegression
    >>> from skdp.datasets import make_census
    >>> census = make_census(20_000, random_state=0)
    >>> X = census.data / [high for _, high in census.bounds.values()]
    >>> model = DPLogisticRegression(epsilon=1.0, classes=census.classes).fit(X, census.target)
    >>> model.score(X, census.target)
    0.7...
    """

    _streams = True
    coef_: np.ndarray = field(init=False)
    intercept_: np.ndarray = field(init=False)
    _fitted_row_form = cast("OneHotForm | None", None)
    _fitted_form_of_coef = cast("OneHotForm | None", None)  # of the rows of all runs

    _: KW_ONLY
    epsilon: Any = 1.0
    delta: float | str = "auto"
    noise_multiplier: float | None = None
    max_grad_norm: float | str = "auto"
    data_norm: float | None = None
    lot_size: float | None = None
    sampling_rate: float | None = None
    max_iter: int | None = None
    learning_rate: float | str = "auto"
    momentum: float = 0.9
    average: bool = True
    alpha: float = 0.0
    fit_intercept: bool = True
    classes: Any = None
    class_weight: Any = None
    weight_bound: Any = None
    rows_per_group: int | None = None
    adjacency: Any = None
    accountant: Any = None
    inference: bool = False
    checkpoint: Any = None
    warm_start: bool = False
    merge_equal_rows: bool | str = "auto"
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: Any = None) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Private rows. float32 input is kept as float32. C-ordered arrays and CSR matrices are not copied. Memory
            maps and `skdp.datasets.TableRows` are read in chunks; `y` and `sample_weight` can then be column names.
        y : array-like of shape (n_samples,)
            Private labels.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Private, nonnegative weights. They are clipped to `weight_bound` and divided by it. The result, a number in
            [0, 1], multiplies the clipped gradient of the row, so no weight raises the sensitivity. A row of weight 0
            has no effect.

        groups : array-like of shape (n_samples,), str or None, default=None
            Private group identifier of each row, such as a person or household, or the name of a column of `X`, which
            is then not used as a feature. With `groups`, the guarantee holds for all rows of one group together,
            otherwise for one row.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            A parameter or the input is invalid. No budget is consumed, unless the message states it: rows that are not
            in memory are read after the charge.
        BudgetExceededError
            The fit exceeds the budget of the accountant. No budget is consumed.
        """
        return fit_run(self, X, y, sample_weight, groups, warm=bool(self.warm_start) and self._has_run())

    # --- how it learns: by the public form of its rows, where they carry one ---

    def _note_row_form(self, form: Any) -> None:
        self.__dict__.pop("_fitted_row_form", None)
        if type(form) is OneHotForm and self.data_norm is None:
            self._fitted_row_form = form

    def _solver(self, target: Any, n_features: int, *, anew: bool = True) -> LinearSolver | FormSolver | NewtonSolver:
        if check_switch("inference", self.inference):
            return NewtonSolver(self, target, anew=anew)
        if (limit := self.rows_per_group) is not None:
            raise ValueError(
                f"rows_per_group={show(limit)} requires inference=True. Set inference=True or rows_per_group=None."
            )
        form = self._fitted_row_form
        continues_without = not anew and self._fitted_form_of_coef is None
        if form is None or form.blocks.n_columns != n_features or continues_without:
            return LinearSolver(self, target, anew=anew)
        return FormSolver(self, target, form, anew=anew)

    def _lines_learned(self, coef: np.ndarray, intercept: np.ndarray, noise: np.ndarray) -> dict[str, Any]:
        first = ((int(len(coef) > 1), 0), (0, 0))  # 0 of the class that others are compared with
        constants = np.pad(intercept.sum(axis=1), first[0])
        return {"coef_": np.pad(coef, first), "intercept_": constants, "coef_noise_": np.pad(noise, first)}

    def _plan_step(self, n_samples: int, n_features: int) -> StepPlan:
        form = self._fitted_row_form
        plan = super()._plan_step(n_samples, n_features if form is None else form.blocks.n_columns)
        return plan._replace(row_form=form)

    # --- regression summary ---

    def _table_heads(self) -> tuple[str, str, Sequence[str]]:
        first, *others = map(str, self.classes_)
        of = f"the log-odds of class {others[0]}" if len(others) == 1 else f"log-odds against class {first}"
        return "Private logistic regression", of, others

    # --- predictions ---

    _effect_rows = staticmethod(report_rows)  # of a report, given this model or the pipeline that ends in it

    def _scorer(self) -> Callable[[Any], np.ndarray]:
        return partial(clipped_scores, radius=self.data_norm_, coef=self.coef_, intercept=self.intercept_)

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Predict confidence scores for samples.

        The score of a sample is the log-odds of ``classes_[1]`` for binary problems, and there is one score per class
        for multiclass problems. Rows are clipped to `data_norm_`, as in ``fit``. For rows within this norm, the scores
        are ``X @ coef_.T + intercept_``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Confidence scores.
        """
        scores = self._score_rows(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores
