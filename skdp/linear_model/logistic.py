"""Private logistic regression."""

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

    The model minimizes the binary logistic loss for two classes and the multinomial loss for more than two. It is
    trained by noisy gradient descent (DP-SGD, Abadi et al. 2016): each step clips the gradient of every row, sums the
    clipped gradients and adds Gaussian noise to the sum. By default every step uses all rows, and the average of the
    last iterates is returned. The defaults depend on public quantities only (the number of rows and columns, epsilon
    and delta), so `epsilon` is often the only parameter to set.

    Rows are clipped to the public norm `data_norm`. Scale columns to [-1, 1] or [0, 1] by *public* bounds first: a
    column with values up to 90 would dominate the norm, and clipping would shrink all others.

    Rows of `skdp.PublicTreesEmbedding`, just as its ``transform`` returns them and with ``data_norm=None``,
    are trained on like those of `skdp.DPRandomTreesClassifier`: by lookups, with the defaults of that
    estimator but for the share of the trees, which is that of the rows. Slices and copies are rows like any other.

    Parameters
    ----------
    epsilon : float, Risk or None, default=1.0
        Privacy budget of one ``fit``, to which the noise is calibrated. A number, or a bound on the risk of membership
        inference such as ``skdp.Risk(advantage=0.1)`` (``docs/membership_inference.md``). Must be None if
        `noise_multiplier` is given.
    delta : float or "auto", default="auto"
        The delta of the (epsilon, delta) guarantee; it must be well below 1/n, where n is the public number of rows.
        "auto" uses the delta of the accountant if it has one. Otherwise it is 1e-5 for at most 10,000 rows and 1/(10n),
        rounded down to a power of ten, for more. Later instalments (`warm_start`, ``partial_fit``) keep the first.
    noise_multiplier : float or None, default=None
        Standard deviation of the noise of one step, divided by the clipping norm. If None, it is calibrated to
        `epsilon`.
    max_grad_norm : float or "auto", default="auto"
        Euclidean norm C to which the gradient of each row is clipped. Rows, including the 1 of the intercept, are
        scaled to norm at most 1, so gradients have norm at most 1 (sqrt(2) with more than two classes). With two
        classes a row is shortened by the factor that the longer of its gradients with either label needs, so that the
        clip is a weight of the row that no label changes, and moves no probability. If "auto", C is 1/2; with more
        classes it is 1 for rows of `skdp.preprocessing.DPTableVectorizer`, else chosen from public quantities.
    data_norm : float or None, default=None
        Public bound on the Euclidean norm of a row. Rows are clipped to it, in ``fit`` and in predictions. None uses
        the public norm of rows that `skdp.preprocessing.DPTableVectorizer` or `skdp.PublicTreesEmbedding` has
        transformed, and otherwise sqrt(n_features), which suits columns in [-1, 1] and reads no data.
    lot_size : float or None, default=None
        Expected number of rows in one step. Each row is drawn independently (Poisson sampling). This is a privacy
        parameter. If `lot_size` and `sampling_rate` are both None, all rows are used where that is affordable.
    sampling_rate : float or None, default=None
        `lot_size` as a fraction of the number of rows, in (0, 1]. Set at most one of the two.
    max_iter : int or None, default=None
        Number of epochs. If None, the run makes 200 steps, or 100 on rows of `skdp.PublicTreesEmbedding`.
    learning_rate : float or "auto", default="auto"
        Step size for the scaled rows and the mean gradient. If "auto", it is chosen from public quantities.
    momentum : float, default=0.9
        Momentum in [0, 1), with dampening: ``v = momentum * v + (1 - momentum) * gradient``.
    average : bool, default=True
        Whether to average the iterates of the second half of the steps. Averaging is post-processing and costs no
        privacy.
    alpha : float, default=0.0
        Strength of the L2 penalty ``alpha / 2 * ||coef_||**2``, which is added to the mean loss.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    classes : sequence or None, default=None
        All classes that can occur in `y`. If None, they are read from `y`; this is not covered by the guarantee, and a
        `PrivacyLeakWarning` is issued.
    class_weight : dict of class to float, or None, default=None
        Public weights of the classes; a class that is not named has weight 1. They are divided by the largest, so only
        their ratios count, and multiply clipped gradients, as weights of rows do. "balanced" would read the labels and
        is refused: give ``1 / share`` with public shares of the classes.
    weight_bound : float or None, default=None
        Public upper bound of `sample_weight`. Weights are clipped to it and divided by it. Choose the largest weight
        that can occur, or a value that few weights exceed: the effect of the noise grows with the bound divided by the
        mean weight. None is a bound of 1, and a fit with weights then warns that larger weights are clipped to it.
    rows_per_group : int or None, default=None
        With `groups`, the public maximum number k of rows per group. A group contributes at most as much as k rows of
        the largest norm: each row of a smaller group has full weight, the rows of a larger group share the weight of k
        rows, and the noise is k times larger. Choose a k that few groups exceed. None is 1. Requires
        ``inference=True``.
    adjacency : {"zero_out", "replace_one"}, AddRemove or None, default=None
        Neighboring relation: how two neighboring tables differ in one row, or in all rows of one group:

        - "zero_out": it is replaced by a zeroed-out record, which adds nothing to any sum. The number of rows is
          public.
        - "replace_one": it is replaced by another one. The number of rows is public.
        - ``skdp.AddRemove(n_public=10_000)``: it is added or removed. The number of rows is private, and every rule
          uses `n_public`, a public number near it.

        None uses the relation of `accountant`, otherwise "zero_out".
    accountant : PrivacyAccountant, str, path-like or None, default=None
        Accountant that records the privacy cost of each fit, before anything is learned from the rows, and rejects a
        fit that exceeds its budget. A path refers to an existing budget file (see ``python -m skdp.accounting create``)
        and is made absolute.
    inference : bool, default=False
        Whether to fit by Newton steps, and to buy what `summary` needs, for a tenth of mu**2. Then columns,
        times the number of classes less one, are 200 at most, rows are in memory, and parameters of gradient descent
        (`max_grad_norm`, `lot_size`, `sampling_rate`, `max_iter`, `learning_rate`, `momentum`, `average`, `alpha`,
        `checkpoint`, `warm_start`) are left as they are.
    checkpoint : str, path-like or None, default=None
        File that stores the state of the fit until it completes. An interrupted ``fit`` resumes from it when it is
        called again with the same parameters and rows, and an accountant that already recorded the fit is not charged
        again. The file is removed when the fit completes. While a fit uses the file, a lock on ``<checkpoint>.lock``
        rejects any other fit that uses it, before that fit is charged.
    warm_start : bool, default=False
        If True, ``fit`` starts from the current coefficients, and `epsilon_` covers all calls.
    merge_equal_rows : {"auto", True, False}, default="auto"
        Whether equal rows, with equal targets and weights, are found once and then computed once a step: the same
        mechanism in less time, except for rounding. "auto" does so where a lot is expected to have 4,096 rows or more
        and eight times as many as there are distinct ones. True does so in any case. How long a fit takes then depends
        on how rows repeat (see ``docs/limitations.md``).
    n_jobs : int or None, default=None
        Number of threads. The result does not depend on it. None means 1 unless in a ``joblib.parallel_config``
        context. -1 means using all processors. Models of many parameters, on dense rows, use at least as many threads
        as BLAS has.
    random_state : int, RandomState or Generator instance or None, default=None
        Source of sampling and noise. None draws a fresh secret key from the operating system. Any other value makes the
        fit reproducible and issues a `PrivacyLeakWarning`, because the guarantee does not hold against anyone who knows
        the value.
    verbose : int, default=0
        If 1, show a progress bar on standard error, with the epsilon of the steps so far.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients of the features, one row for two classes and one row per class for more. With `inference` and more
        than two classes those of the first class are 0, and the others are compared with it; so are intercepts. Where
        the columns of a table are too many, coefficients are shrunk (``docs/scaling_and_binning.md``).
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts, zero if ``fit_intercept=False``.
    coef_noise_ : ndarray of the shape of `coef_`
        Standard deviation that the noise alone gives to each coefficient, in the unit of `coef_`: exactly that of a fit
        to null records, which add nothing. It is computed from public quantities. Rows hold the noise back where they
        determine a coefficient, so it is usually less for those (``benchmarks/README.md``). With `inference` it is that
        of `summary`, which follows from what was released.
    classes_ : ndarray of shape (n_classes,)
        Class labels known to the classifier.
    weight_bound_ : float
        Bound by which weights were divided in the last run; 1.0 for ``weight_bound=None``.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of columns seen during ``fit``. Defined only if all column names of `X` are strings.
    epsilon_ : float
        Joint price, at `delta_`, of everything on which the fitted state depends: all calls of ``fit`` with
        `warm_start` and of ``partial_fit``. At most `epsilon` after a single fit.
    delta_ : float
        Delta at which `epsilon_` is computed.
    adjacency_ : str
        Neighbouring relation for which `epsilon_` holds.
    privacy_unit_ : {"row", "group"}
        What the guarantee is for: one row, or all rows with one label of `groups`.
    privacy_event_ : DpEvent
        Event that `epsilon_` is the price of.
    noise_multiplier_ : float
        Noise multiplier of the last run. Where all rows are used, `epsilon` is given and iterates are averaged, early
        steps have less noise and late ones more, as the average keeps little of these: it is then that of as many steps
        of constant noise and the same price. `privacy_event_` lists the noise of each step.
    sampling_rate_ : float
        Sampling rate of the last run.
    max_grad_norm_ : float
        Clipping norm of the last run.
    data_norm_ : float
        Bound to which rows were scaled down in the last run.
    learning_rate_ : float
        Step size of the last run.
    n_iter_ : int
        Number of epochs over all runs.
    n_steps_ : int
        Number of steps over all runs.

    See Also
    --------
    DPMLPClassifier : Neural network trained in the same way.
    skdp.DPRandomTreesClassifier : Logistic regression over trees, which has interactions of columns.
    DPGridSearchCV : Private choice of parameters.
    allocate_budget : One budget for a pipeline of private steps.

    Notes
    -----
    **Guarantees.**

    - ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `classes` is given and
      `random_state` is None.
    - One row moves the sum of a step by at most `max_grad_norm_`, whatever it and its weight contain.
    - Rows of `skdp.PublicTreesEmbedding` are compared with the public form that came along, one by one: a row
      of another form is a null row.
    - Sum and noise are divided by a public constant, the expected number of rows of a step.
    - With `groups` all of this holds for all rows of one label together: their clipped gradients are added up, and the
      sum is clipped to `max_grad_norm_` again. So are other sums over rows, each to what one row may add.
    - `intercept_` is that of the last step, moved by a function of sums over the rows, of probabilities and of what
      these lack, which are released once, with noise, after the last step.
    - A first run starts at scores that are a function of the counts of the classes, which are released once, with
      noise, before the first step. Counts and sums have 1 % of mu**2 of a fit to all rows each, sums without counts
      2 %, and are part of `privacy_event_`.
    - With `inference` one row moves the score and the curvature that a step releases, taken together, by a norm of 1 at
      most, whatever it and its weight contain; with `groups` all rows of a label move them by `max_grad_norm_` at
      most. Nothing is clipped, but longer rows are scaled down to `data_norm_`.
    - `accountant` is charged before the rows are read; an interrupted fit keeps its charge, and the model of the steps
      done.
    - Input that is refused (NaN, infinity, unknown labels, negative weights) is refused before any charge, or after it
      in the block that holds it if the rows are not in memory. Such a refusal depends on the data and is not covered.

    **Inference.** With ``inference=True`` the fit consists of eight Newton steps on all rows (five with 0.03 of their
    mu**2, then 0.05, 0.3 and 0.5) and of one more release, of the moments of scores. A step releases the sum of the
    scores (t - p) z and that of the curvatures p (1 - p) z z', z being the scaled row with its intercept, t the class
    and p its probability. With the curvature multiplied by sqrt(11), both together are a vector of norm 1 at most, so
    that the curvature costs nothing (`skdp.linear_model.likelihoods.Logistic` has the proof), and no clip bends the
    probabilities. The first step gives four times the coefficients of least squares, as from log-odds of 0; a step that
    went too far is taken back; the last two are pooled, each by its precision. Their noise is exactly known, and enters
    a sandwich with the moments of the scores, which assumes nothing of the probabilities and, with `groups`, does not
    take rows of one label to be independent. More than two classes have scores and curvatures of all classes, of the
    same norm with a factor of 2 (`skdp.linear_model.likelihoods.Multinomial`), begin with a step from equal
    probabilities, go further where the curvature fell on the way, and have a block of the table each, against the first
    class. Rows of one label are weighted by 1 over the sum of their lengths, where that exceeds 1: the weights do not
    depend on classes. A coefficient has no interval if the noise hides its direction, or if events are so rare along it
    that noise may have added them. No coefficient has one if the last two steps lead to different places, with fewer
    than 40 rows per coefficient that are not nearly certain, or if rows are clipped. Only released and public numbers
    decide. The two noises of a noisy step, of scores and of curvatures, are those of Ganesh et al. (2023).

    The guarantee covers the *values* released. It does not cover the time that a fit takes, nor the rounding of sums of
    more than 2^20 rows (see ``docs/limitations.md``).

    References
    ----------
    Abadi et al. (2016), "Deep learning with differential privacy".

    Bassily, Smith & Thakurta (2014), "Private empirical risk minimization", for averaging.

    Balle & Wang (2018), "Improving the Gaussian mechanism".

    Ganesh, Haghifam, Steinke & Thakurta (2023), "Faster differentially private convex optimization via second-order
    methods".

    Avella-Medina, Bradshaw & Loh (2023), "Differentially private inference via noisy optimization", for steps whose
    noise enters the errors.

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
            Private rows. float32 input is kept as float32. C-ordered arrays and CSR matrices are not copied. Rows that
            are not in memory, memory maps and `skdp.datasets.TableRows`, are taken too, and then the name of a column
            as `y` and as `sample_weight`.
        y : array-like of shape (n_samples,)
            Private labels.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Private, nonnegative weights, which are divided by `weight_bound` and cut at it. The gradient of a row is
            clipped first and then multiplied by the result, a number in [0, 1]: no weight raises a row above the
            clipping norm, and proportions are kept. A row of weight 0 is a null row.

        groups : array-like of shape (n_samples,), str or None, default=None
            Private label of the unit of each row, such as a person or a household, or the name of a column of `X`,
            which is no feature then. The guarantee is then for all rows of one label together, else for one row.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            A parameter or the input is invalid. Nothing was charged, unless the message says so: rows that are not in
            memory are read after the charge.
        BudgetExceededError
            The budget of the accountant does not admit the fit. Nothing was charged, and no step was made.
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
                f"rows_per_group={show(limit)} requires inference=True: set inference=True, or use rows_per_group=None."
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

    # --- what a coefficient is worth ---

    def _table_heads(self) -> tuple[str, str, Sequence[str]]:
        first, *others = map(str, self.classes_)
        of = f"the log-odds of class {others[0]}" if len(others) == 1 else f"log-odds against class {first}"
        return "Private logistic regression", of, others

    # --- predictions ---

    def _effect_rows(self, whole: Any) -> list[dict[str, Any]]:
        """What a report says of each column; `whole` is this model, or the pipeline that ends in it."""
        return report_rows(whole)

    def _scorer(self) -> Callable[[Any], np.ndarray]:
        return partial(clipped_scores, radius=self.data_norm_, coef=self.coef_, intercept=self.intercept_)

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Predict confidence scores for samples.

        The score of a sample is the log-odds of ``classes_[1]`` for two classes, and one score per class for more. Rows
        longer than `data_norm_` are scaled down to it, as in ``fit``. For all other rows the scores are ``X @ coef_.T +
        intercept_``.

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
