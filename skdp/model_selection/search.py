"""Private search: charge, split, trials, selection, refit, and publication."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable
from dataclasses import KW_ONLY, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import is_regressor
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdp._checks.leaks import note_leaks, silence
from skdp._checks.parameters import check_choice, check_count, check_real, is_private
from skdp._checks.rows import indexable, number_of_columns
from skdp._checks.weights import check_weights
from skdp.base.estimator import with_parameters
from skdp.base.private_step import private_steps, step_of
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.streams import SecretStream
from skdp.model_selection import candidates
from skdp.model_selection.candidates import SearchPlan, make_candidate, private_template, seen_by_the_user
from skdp.model_selection.private_split import n_tested
from skdp.model_selection.scores import PrivateScore, TableScore, name_of_score, score_of
from skdp.model_selection.whole_fit import PartRows, ScoresOfPart, WholeFit, last_of, part_has
from skdp.pipeline.private_pipeline import PrivatePipeline


class _Tried(NamedTuple):
    """The index of a candidate, the estimator as fitted to the training part, and its noisy score."""

    number: int
    estimator: PrivatePipeline
    score: float


@with_parameters
class PrivateSearch(ScoresOfPart):
    """Base of the searches: their parameters and their fit. Subclasses define the candidates by `_candidates`."""

    estimator: Any
    _: KW_ONLY
    epsilon: Any = 1.0
    delta: float | str = "auto"
    strategy: str = "random_stopping"
    n_trials: float | str = "auto"
    scoring: Any = None
    refit: bool = True
    test_size: float = 0.2
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    scorer_: Any = field(init=False)
    _part_name = "best_estimator_"
    # Parameters of all candidates, found without the data: a method of each subclass.
    _candidates: ClassVar[Callable[[Any, SecretStream], list[dict[str, Any]]]]

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Select a candidate within the privacy budget, and fit it to all rows if `refit` is True.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Private rows.
        y : array-like of shape (n_samples,)
            Private labels or targets.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Private, nonnegative weights for fits and scores. They are clipped to the `weight_bound` of the estimator,
            which must be the same for all steps with weights, and divided by it. A score is then a weighted mean of
            contributions relative to the center of their range; smaller weights shrink it to the center.
        groups : array-like of shape (n_samples,), str or None, default=None
            Private group identifier of each row, such as a person or a household, or the name of a column of `X`, which
            is then not a feature. If set, the guarantee is for all rows of one group, otherwise for one row. All rows
            of a group are in the same part. A score is then the mean over groups: the centered contributions of the
            rows of a group are summed and clipped to the range of one row. The "accuracy" is the fraction of groups
            with more correct than wrong rows, where a tie counts as one half.

        Returns
        -------
        self : object
            Fitted search.

        Raises
        ------
        ValueError
            A parameter, the rows or the labels are invalid. No budget was consumed.
        BudgetExceededError
            The budget of the accountant does not permit the search. No budget was consumed, and no row was read.
        """
        fit = WholeFit(self, "split, noise and number of trials")
        fit.check(y)
        model = fit.model
        model._check_own_parameters()
        template = private_template(model.estimator, model.epsilon, model.delta)
        model._check_scoring(seen_by_the_user(template), X, y)
        fit.read_shape(X, groups, template)
        plan = model._plan(fit, template, y, sample_weight)
        fit.keep(
            "strategy", "n_trials", "refit", "test_size", "epsilon", delta=fit.delta,
            estimator=type(model.estimator).__name__, scoring=model.scorer_.name, n_candidates=len(plan.tried),
        )  # fmt: skip
        fit.plan_at(fit.cost_of(plan.event))

        rows = fit.read(model._read_parts, fit, plan)
        fit.charge()

        fit.learn(model._learn, fit, template, plan, rows)
        return fit.publish()

    # --- before a row is read ---

    def _check_own_parameters(self) -> None:
        """Check parameters."""
        check_real("test_size", self.test_size, above=0, below=1, constraint="a number in (0, 1), such as 0.2")
        check_choice("strategy", self.strategy, ("random_stopping", "compose"))
        if not (isinstance(self.n_trials, str) and self.n_trials == "auto"):
            constraint = "a number from 1 to 1000, or 'auto'"
            check_real("n_trials", self.n_trials, at_least=1, at_most=1000, constraint=constraint)

    def _check_scoring(self, estimator: Any, X: Any, y: Any) -> None:
        """Reject a score that the estimator cannot have."""
        name = name_of_score(self.scoring, regressor=is_regressor(estimator))
        if isinstance(self.scoring, PrivateScore | TableScore):
            scores = hasattr(estimator, "predict_proba") or hasattr(estimator, "decision_function")
            if isinstance(self.scoring, TableScore) and not scores:
                raise ValueError(
                    f"`estimator` must end in a classifier with predict_proba or decision_function for "
                    f"scoring={self.scoring.name!r}, got {type(estimator).__name__}."
                )
            if not hasattr(X, "shape"):  # a score that indexes columns of an array would fail after the charge
                raise ValueError(f"`X` must be an array or a frame for scoring={self.scoring.name!r}, got a list.")
            return
        needed = "predict_proba" if name == "neg_log_loss" else "predict"
        if not hasattr(estimator, needed):
            raise ValueError(
                f"`estimator` must end in a classifier with {needed} for scoring={name!r}, got "
                f"{type(estimator).__name__}. You can also use a skdp.model_selection.PrivateScore."
            )
        if name == "neg_log_loss" and number_of_columns(y) > 1:
            raise ValueError(
                "`y` must have one class per row for scoring='neg_log_loss'. For multilabel targets, use 'accuracy' or "
                "a skdp.model_selection.PrivateScore."
            )

    def _plan(self, fit: WholeFit, template: PrivatePipeline, y: Any, sample_weight: Any) -> SearchPlan:
        """Draw the candidates, which are public, and plan the fits, the selection and the scores."""
        template.set_params(delta=fit.delta)
        grid = self._candidates(fit.public_stream("settings"))
        if not grid:
            raise ValueError("The search must have at least one candidate. Add a value for each parameter of the grid.")
        candidates.reject_terms_of_the_budget(grid)
        made = [make_candidate(template, parameters, fit.rows, fit.n_units) for parameters in ({}, *grid)]
        fit.settle_candidates(made, y, sample_weight, "a search")
        sizes = fit.n - self._n_scored(fit.n), fit.n, fit.n_features
        terms = candidates.SearchTerms(
            self.epsilon, fit.delta, fit.adjacency, self.strategy, self.n_trials, bool(self.refit)
        )
        plan = candidates.plan_search(grid, made, sizes, terms)
        # All candidates are compared by one score, with the same public bound.
        self.scorer_, *others = (score_of(self.scoring, last_of(each)) for each in made[1:])
        if any(other != self.scorer_ for other in others):
            raise ValueError(f"`y_bounds` must be the same for all candidates with scoring={self.scorer_.name!r}.")
        return plan

    def _n_scored(self, n: int) -> int:
        return n_tested(self.test_size, n, self.privacy_unit_)

    # --- before the charge ---

    def _read_parts(self, fit: WholeFit, plan: SearchPlan) -> PartRows:
        rows = fit.read_parts()
        for each in plan.finals or plan.tried:  # an error about all rows must not depend on the trials
            each.check_rows(rows.X, rows.y, rows.units)
        return rows

    # --- the search ---

    def _learn(self, fit: WholeFit, template: PrivatePipeline, plan: SearchPlan, rows: PartRows) -> None:
        """Run the trials, select and fit the winner, and collect the results."""
        with silence():  # a warning of a trial would reveal the number of trials
            tried = [] if len(plan.tried) == 1 else self._try_all(fit, plan, rows)
            best = max(tried, key=lambda each: each.score, default=None)
            # The winner, on all rows if `refit` is set; the only candidate; the default, if there was no trial.
            if best is not None and not self.refit:
                fitted = best.estimator
            else:
                final = plan.finals[0 if len(plan.tried) == 1 or best is None else best.number + 1]
                fitted = final.run(plan.scale, fit.seed(-1), rows)
        self._note(plan, fit.n, best, tried)
        self._take(fit, fitted, template)

    def _try_all(self, fit: WholeFit, plan: SearchPlan, rows: PartRows) -> list[_Tried]:
        """Train and score. The number of trials is secret, so there is no output until the best is selected."""
        numbers = self._numbers(plan, fit.spawn("tries"))
        scored, score = fit.split(self.test_size), self.scorer_
        given = plan.scale, score, os.getpid(), rows.of_units(~scored), rows.of_units(scored)
        shown = self.verbose if plan.trials is None else 0
        totals = Parallel(n_jobs=self.n_jobs, verbose=shown)(
            [delayed(_fit_and_total)(plan.tried[number], fit.seed(i), *given) for i, number in enumerate(numbers)]
        )
        mechanism = GaussianMechanism(plan.score_noise, score.sensitivity)
        noisy = mechanism.release(np.array([total for _, total in totals]), fit.spawn("scores"))
        n_scored = self._n_scored(fit.n)
        return [
            _Tried(number, estimator, float(score.value(total, n_scored)))
            for number, (estimator, _), total in zip(numbers, totals, noisy, strict=True)
        ]

    def _numbers(self, plan: SearchPlan, stream: SecretStream) -> list[int]:
        """The candidates to try: each one once, or a random number of them, each drawn at random."""
        if plan.trials is None:
            return list(range(len(plan.tried)))
        count = plan.trials.draw([int(word) for word in stream.words(2)])
        return [int(word) * len(plan.tried) >> 64 for word in stream.words(count)]

    # --- published results ---

    def _take(self, fit: WholeFit, fitted: PrivatePipeline, template: PrivatePipeline) -> None:
        """Set the winner as the result, with the accountant of the estimator and the guarantee of the whole search."""
        owners = [step.estimator for _, step in private_steps(template.steps)]
        given = next((own.accountant for own in owners if own.accountant is not None), None)
        for _, step in private_steps(fitted.steps):
            step.estimator.set_params(accountant=given)
        estimator = seen_by_the_user(fitted)
        if is_private(estimator):
            step_of(estimator).set_cost(fit.cost, fit.releases)
        estimator._fitted_releases, estimator._fitted_n_public = fit.releases, fit.n
        if name := self.__dict__.get("_fitted_group_name"):
            estimator._fitted_group_name = name
        note_leaks(estimator, *self._fitted_leaks)
        self.best_estimator_ = estimator

    def _note(self, plan: SearchPlan, n: int, best: _Tried | None, tried: list[_Tried]) -> None:
        grid = [each.parameters for each in plan.tried]
        self._fitted_tuning = plan.tuning
        alone = len(grid) == 1
        self.score_noise_ = math.inf
        if not alone:
            mechanism = GaussianMechanism(plan.score_noise, self.scorer_.sensitivity)
            self.score_noise_ = mechanism.standard_deviation / self._n_scored(n)
        self.best_index_ = 0 if alone else -1 if best is None else best.number
        self.best_params_ = grid[self.best_index_] if self.best_index_ >= 0 else {}
        self.best_score_ = math.nan if best is None else best.score
        scores = np.full(len(grid), math.nan)
        for each in tried if plan.trials is None else filter(None, [best]):
            scores[each.number] = each.score
        self.cv_results_ = {"params": grid, "mean_test_score": scores}

    # --- the winner's attributes and methods ---

    def _private_parts(self) -> list[Any]:
        return [self.best_estimator_] if "best_estimator_" in self.__dict__ else []

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute the exact score of the best estimator on public rows.

        The score is the one of `scoring`. No budget is consumed, so the rows must be public.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Public rows.
        y : array-like of shape (n_samples,)
            Public labels or targets.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Public weights, for a weighted mean.

        Returns
        -------
        score : float
            Score, larger for a better model.
        """
        check_is_fitted(self, "best_estimator_")
        X, y = indexable(X), np.asarray(y)
        weights = None if sample_weight is None else check_weights(sample_weight, len(y))
        n = max(1, len(y)) if weights is None else float(np.sum(weights))
        return float(self.scorer_.value(self.scorer_.total(self.best_estimator_, X, y, weights), n))

    @available_if(part_has("predict"))  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> Any:
        """Predict with the best estimator.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            Predicted classes or targets.
        """
        return self._fitted_part().predict(X)

    @available_if(part_has("predict_log_proba"))  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Any:
        """Predict the logarithm of the probability of each class with the best estimator.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            Logarithms of the probabilities of ``predict_proba``.
        """
        return self._fitted_part().predict_log_proba(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.target_tags.required = True
        return tags


# --- private parts ---


def _fit_and_total(plan: Any, seed: int | None, scale: float, score: Any, searcher: int, *parts: PartRows) -> Any:
    """A fitted candidate and its exact total; the searching process adds the noise."""
    train, test = parts
    with silence() if os.getpid() != searcher else contextlib.nullcontext():
        fitted = plan.run(scale, seed, train)
        shares = test.weights and test.weights.shares
        return fitted, score.total_of_all(seen_by_the_user(fitted), test.X, test.y, shares, test.units)


@with_parameters
class DPGridSearchCV(PrivateSearch):
    """Differentially private grid search over hyperparameters.

    One total budget (`epsilon`, `delta`) covers the trials, their scores, the selection and the final fit. The noise of
    all of them is calibrated jointly. See ``docs/hyperparameter_tuning.md``.

    Parameters
    ----------
    estimator : private estimator or Pipeline
        Estimator to search over. A Pipeline of private steps has one joint budget per fit (see `skdp.allocate_budget`).
        Its own budget and seed are ignored. If it has an accountant, the accountant is charged once, for the whole
        search.
    param_grid : dict or list of dict
        Grid of parameters, as for ``sklearn.model_selection.GridSearchCV``. Budgets, seeds and classes cannot be
        searched.
    epsilon : float or Risk, default=1.0
        Privacy budget of one ``fit``, which is the whole search. A number, or a bound on membership-inference risk such
        as ``skdp.Risk(advantage=0.1)`` (``docs/membership_inference.md``).
    delta : float or "auto", default="auto"
        The delta of the (epsilon, delta) guarantee; it must be well below 1/n, where n is the public number of rows.
        "auto" uses the delta of the accountant if it has one. Otherwise it is 1e-5 for at most 10,000 rows and 1/(10n),
        rounded down to a power of ten, for more.
    strategy : {"random_stopping", "compose"}, default="random_stopping"
        How candidates are tried:

        - "random_stopping": a secret random number of candidates is tried, each drawn at random, and the best is kept
          (Papernot & Steinke 2022). The privacy cost is little more than that of one trial, for any number of
          candidates.
        - "compose": every candidate is tried once, and the budget covers all trials. All noisy scores are published.
    n_trials : float or "auto", default="auto"
        Expected number of trials with random stopping. "auto" is the number of candidates, at most 10. The number of
        trials has a geometric distribution with this mean. A logarithmic or Poisson distribution is used instead if it
        needs less noise for the same probability to try one of the best tenth of the candidates.
    scoring : str, PrivateScore, TableScore or None, default=None
        Score by which candidates are compared: "accuracy" (None) or "neg_log_loss" for classifiers,
        "neg_mean_absolute_error" (None) or "neg_mean_squared_error" for regressors. The log loss of a row is clipped to
        5, targets and errors to the public `y_bounds` of the regressor. Scores without bounded contributions of the
        rows, such as "r2", are rejected. For "roc_auc" and similar metrics use `make_private_scorer`.
    refit : bool, default=True
        Whether to fit the winner to all rows, with three quarters of the budget (in mu**2). If False, the winner as
        fitted to the training part is kept, and the trials have the whole budget.
    test_size : float, default=0.2
        Fraction of the rows for the scores of the candidates. The split depends on the number of rows and a secret seed
        only. There are no folds and no stratification.
    n_jobs : int or None, default=None
        Number of trials that run in parallel, as in joblib.
    random_state : int, RandomState or Generator instance or None, default=None
        Source of the split, the number of trials and the noise. None draws a fresh secret key from the operating
        system. Any other value makes the fit reproducible and issues a `PrivacyLeakWarning`, because the guarantee does
        not hold against anyone who knows the value.
    verbose : int, default=0
        Verbosity of joblib if ``strategy="compose"``. Ignored with random stopping, because progress would reveal the
        number of trials.

    Attributes
    ----------
    best_estimator_ : estimator
        Best estimator. Its `epsilon_` and `privacy_event_` are those of the whole search.
    best_params_ : dict
        Parameters of the winner. Empty if no candidate was tried, which is possible with the Poisson distribution: the
        estimator is then fitted with its own parameters.
    best_index_ : int
        Index of the winner in ``cv_results_["params"]``, or -1 if no candidate was tried.
    best_score_ : float
        Noisy score of the winner as fitted to the training part; NaN if there is none.
    score_noise_ : float
        Standard deviation of the noise in a score. For a `TableScore`, that of a count divided by the number of test
        rows.
    cv_results_ : dict
        Dictionary with ``params`` of all candidates and their ``mean_test_score``. With random stopping, the scores of
        all candidates except the winner are NaN, tried or not.
    scorer_ : PrivateScore or TableScore
        Score by which candidates were compared.
    epsilon_ : float
        Epsilon of the whole search at `delta_`, at most `epsilon`.
    delta_ : float
        Delta at which `epsilon_` is computed.
    adjacency_ : str
        Neighboring relation for which `epsilon_` holds.
    privacy_unit_ : {"row", "group"}
        Privacy unit: one row, or all rows of one group of `groups`.
    privacy_event_ : DpEvent
        Event of the whole search, from which `epsilon_` is computed.
    classes_ : ndarray of shape (n_classes,)
        Class labels of the best estimator. Defined only for classifiers.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of columns seen during ``fit``. Defined only if all column names of `X` are strings.

    See Also
    --------
    DPRandomizedSearchCV : Search over randomly drawn parameters.
    allocate_budget : One budget for a pipeline of private steps.

    Notes
    -----
    **Guarantees.**

    - ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row, including the selection and the final fit,
      if `classes` of the estimator is set and `random_state` is None.
    - A row is in the training part or in the test part, and labels do not change the part of any row.
    - With `groups`, all of this holds for all rows of one group. They are in one part, and their contributions to a
      score are clipped together to the range of one row.
    - Parameters of all candidates and the remaining budget are checked before a row is read. Rows and labels are
      checked, for all candidates alike, before the charge. The accountant is charged once, for the whole search.
    - With random stopping, no attribute, record of the accountant, warning or progress reveals the rejected candidates
      or the number of trials.
    - A search over one candidate has no selection and no score, and has the privacy cost of one fit.

    The time of ``fit`` reveals the number of trials and is not covered (see ``docs/limitations.md``).

    References
    ----------
    Papernot & Steinke (2022), "Hyperparameter tuning with Renyi differential privacy".

    Koskela, Redberg & Wang (2024), "Privacy profiles for private selection".

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPGridSearchCV, DPLogisticRegression
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(5000, 4))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> grid = {"max_grad_norm": [0.1, 0.5], "alpha": [0.0, 0.1]}
    >>> search = DPGridSearchCV(DPLogisticRegression(classes=[0, 1]), grid, epsilon=1.0).fit(X, y)
    >>> len(search.cv_results_["params"]), round(search.epsilon_, 1)
    (4, 1.0)
    """

    param_grid: Any

    def _candidates(self, stream: SecretStream) -> list[dict[str, Any]]:
        return list(ParameterGrid(self.param_grid))


@with_parameters
class DPRandomizedSearchCV(PrivateSearch):
    """Differentially private randomized search over hyperparameters.

    The candidates are `n_iter` settings, drawn before the data are read. The guarantees are those of `DPGridSearchCV`.
    See ``docs/hyperparameter_tuning.md``.

    Parameters
    ----------
    estimator : private estimator or Pipeline
        Estimator to search over. A Pipeline of private steps has one joint budget per fit (see `skdp.allocate_budget`).
        Its own budget and seed are ignored. If it has an accountant, the accountant is charged once, for the whole
        search.
    param_distributions : dict or list of dict
        Distributions of parameters, as for ``sklearn.model_selection.RandomizedSearchCV``. Budgets, seeds and classes
        cannot be searched.
    epsilon : float or Risk, default=1.0
        Privacy budget of one ``fit``, which is the whole search. A number, or a bound on membership-inference risk such
        as ``skdp.Risk(advantage=0.1)`` (``docs/membership_inference.md``).
    delta : float or "auto", default="auto"
        The delta of the (epsilon, delta) guarantee; it must be well below 1/n, where n is the public number of rows.
        "auto" uses the delta of the accountant if it has one. Otherwise it is 1e-5 for at most 10,000 rows and 1/(10n),
        rounded down to a power of ten, for more.
    strategy : {"random_stopping", "compose"}, default="random_stopping"
        How candidates are tried:

        - "random_stopping": a secret random number of candidates is tried, each drawn at random, and the best is kept
          (Papernot & Steinke 2022). The privacy cost is little more than that of one trial, for any number of
          candidates.
        - "compose": every candidate is tried once, and the budget covers all trials. All noisy scores are published.
    n_trials : float or "auto", default="auto"
        Expected number of trials with random stopping. "auto" is `n_iter`, at most 10. The number of trials has a
        geometric distribution with this mean. A logarithmic or Poisson distribution is used instead if it needs less
        noise for the same probability to try one of the best tenth of the candidates.
    scoring : str, PrivateScore, TableScore or None, default=None
        Score by which candidates are compared: "accuracy" (None) or "neg_log_loss" for classifiers,
        "neg_mean_absolute_error" (None) or "neg_mean_squared_error" for regressors. The log loss of a row is clipped to
        5, targets and errors to the public `y_bounds` of the regressor. Scores without bounded contributions of the
        rows, such as "r2", are rejected. For "roc_auc" and similar metrics use `make_private_scorer`.
    refit : bool, default=True
        Whether to fit the winner to all rows, with three quarters of the budget (in mu**2). If False, the winner as
        fitted to the training part is kept, and the trials have the whole budget.
    test_size : float, default=0.2
        Fraction of the rows for the scores of the candidates. The split depends on the number of rows and a secret seed
        only. There are no folds and no stratification.
    n_jobs : int or None, default=None
        Number of trials that run in parallel, as in joblib.
    random_state : int, RandomState or Generator instance or None, default=None
        Source of the split, the number of trials and the noise. None draws a fresh secret key from the operating
        system. Any other value makes the fit reproducible and issues a `PrivacyLeakWarning`, because the guarantee does
        not hold against anyone who knows the value.
    verbose : int, default=0
        Verbosity of joblib if ``strategy="compose"``. Ignored with random stopping, because progress would reveal the
        number of trials.
    n_iter : int, default=10
        Number of settings. All settings are published; with random stopping it remains secret which of them were tried.

    Attributes
    ----------
    best_estimator_ : estimator
        Best estimator. Its `epsilon_` and `privacy_event_` are those of the whole search.
    best_params_ : dict
        Parameters of the winner. Empty if no candidate was tried, which is possible with the Poisson distribution: the
        estimator is then fitted with its own parameters.
    best_index_ : int
        Index of the winner in ``cv_results_["params"]``, or -1 if no candidate was tried.
    best_score_ : float
        Noisy score of the winner as fitted to the training part; NaN if there is none.
    score_noise_ : float
        Standard deviation of the noise in a score. For a `TableScore`, that of a count divided by the number of test
        rows.
    cv_results_ : dict
        Dictionary with ``params`` of all candidates and their ``mean_test_score``. With random stopping, the scores of
        all candidates except the winner are NaN, tried or not.
    scorer_ : PrivateScore or TableScore
        Score by which candidates were compared.
    epsilon_ : float
        Epsilon of the whole search at `delta_`, at most `epsilon`.
    delta_ : float
        Delta at which `epsilon_` is computed.
    adjacency_ : str
        Neighboring relation for which `epsilon_` holds.
    privacy_unit_ : {"row", "group"}
        Privacy unit: one row, or all rows of one group of `groups`.
    privacy_event_ : DpEvent
        Event of the whole search, from which `epsilon_` is computed.
    classes_ : ndarray of shape (n_classes,)
        Class labels of the best estimator. Defined only for classifiers.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of columns seen during ``fit``. Defined only if all column names of `X` are strings.

    See Also
    --------
    DPGridSearchCV : Search over all points of a grid; its Notes list the guarantees.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import loguniform
    >>> from skdp import DPLogisticRegression, DPRandomizedSearchCV
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(5000, 4))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> model = DPLogisticRegression(classes=[0, 1])
    >>> search = DPRandomizedSearchCV(model, {"max_grad_norm": loguniform(0.05, 2.0)}, n_iter=4).fit(X, y)
    >>> len(search.cv_results_["params"])
    4
    """

    param_distributions: Any
    _: KW_ONLY
    n_iter: int = 10

    def _candidates(self, stream: SecretStream) -> list[dict[str, Any]]:
        n_iter = check_count("n_iter", self.n_iter, constraint="a positive integer")
        seed = int(stream.words(1)[0] >> np.uint64(32))
        return list(ParameterSampler(self.param_distributions, n_iter, random_state=seed))
