"""The body of a private search: charge, split, trials, choice, refit, and what is published."""

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
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdp._checks.leaks import note_leaks, silence
from skdp._checks.parameters import check_choice, check_real
from skdp._checks.protocols import is_private
from skdp._checks.row_traits import indexable
from skdp._checks.rows import number_of_columns
from skdp._checks.weights import check_weights
from skdp._fit.private_step import private_steps, step_of
from skdp.base import with_parameters
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.streams import SecretStream
from skdp.model_selection.candidates import (
    FitPlan,
    make_candidate,
    private_template,
    refuse_terms_of_the_budget,
    seen_by_the_user,
)
from skdp.model_selection.parts import n_tested
from skdp.model_selection.scores import PrivateScore, TableScore, name_of_score, score_of
from skdp.model_selection.search_plan import SearchPlan, SearchTerms, check_rows, plan_search
from skdp.model_selection.whole_fit import PartRows, WholeEstimator, WholeFit, last_of, part_has
from skdp.pipeline import PrivatePipeline

STRATEGIES = ("random_stopping", "compose")


class _Tried(NamedTuple):
    """A candidate's number, the estimator as fitted to the part that trains, and its noisy score."""

    number: int
    estimator: PrivatePipeline
    score: float


@with_parameters
class PrivateSearch(WholeEstimator):
    """Base of the searches: their parameters and their fit. Subclasses say by `_candidates` what is searched."""

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
        """Choose a candidate under the budget, and fit it to all rows if `refit` is set.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Private rows.
        y : array-like of shape (n_samples,)
            Private labels or targets.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Private, nonnegative weights, for fits and scores alike. They are divided by the `weight_bound` of the
            estimator, one public number for all steps that take weights, and cut at it. A score is then the mean over
            rows of contributions that are counted from the middle of their range, times the result: the less weights
            are, the nearer it is to the middle.
        groups : array-like of shape (n_samples,), str or None, default=None
            Private label of the unit of each row, such as a person or a household, or the name of a column of `X`,
            which is no feature then. The guarantee is then for all rows of one label together, else for one row. A unit
            trains or scores as a whole. A score is then the mean over units: what the rows of a unit add, counted from
            the middle of the range of a row, is summed and cut off at the ends of that range. So "accuracy" is the
            share of units with more right rows than wrong ones, where a tie counts as one half.

        Returns
        -------
        self : object
            Fitted search.

        Raises
        ------
        ValueError
            A parameter, the rows or the labels are invalid. Nothing was charged.
        BudgetExceededError
            The budget of the accountant does not admit the search. Nothing was charged, and no row was read.
        """
        fit = WholeFit(self, "split, noise and number of trials")
        fit.check(y)
        model = fit.model
        model._check_own_parameters()
        template = private_template(model.estimator, model.epsilon, model.delta)
        model._check_scoring(seen_by_the_user(template), X, y)
        fit.read_shape(X, groups, template)
        plan = model._plan(fit, template, y, sample_weight)
        fit.keep(**model._public_parameters(plan, fit.delta))
        fit.plan_at(fit.priced(plan.event))

        rows = fit.read(model._read_parts, fit, plan)
        fit.charge()

        fit.learn(model._learn, fit, template, plan, rows)
        return fit.publish()

    # --- before a row is read ---

    def _check_own_parameters(self) -> None:
        """Reject parameters."""
        check_real("test_size", self.test_size, above=0, below=1, remedy="choose a share of the rows, such as 0.2")
        check_choice("strategy", self.strategy, STRATEGIES)
        if not (isinstance(self.n_trials, str) and self.n_trials == "auto"):
            remedy = "choose a number from 1 to 1000, or 'auto'"
            check_real("n_trials", self.n_trials, at_least=1, at_most=1000, remedy=remedy)

    def _check_scoring(self, estimator: Any, X: Any, y: Any) -> None:
        """Refuse what a trial could not be scored with."""
        name = name_of_score(self.scoring, regressor=is_regressor(estimator))
        if isinstance(self.scoring, PrivateScore | TableScore):
            scores = hasattr(estimator, "predict_proba") or hasattr(estimator, "decision_function")
            if isinstance(self.scoring, TableScore) and not scores:
                raise ValueError(
                    f"estimator is a {type(estimator).__name__} without predict_proba or decision_function, which "
                    f"scoring={self.scoring.name!r} needs: put a classifier behind it."
                )
            if not hasattr(X, "shape"):  # a score that takes columns of an array would fail after the charge
                raise ValueError(f"scoring={self.scoring.name!r} with X as a list of rows: give an array or a frame.")
            return
        needed = "predict_proba" if name == "neg_log_loss" else "predict"
        if not hasattr(estimator, needed):
            raise ValueError(
                f"estimator is a {type(estimator).__name__} without {needed}, which scoring={name!r} needs: put "
                "a classifier behind it, or give a skdp.model_selection.PrivateScore."
            )
        if name == "neg_log_loss" and number_of_columns(y) > 1:
            raise ValueError(
                "scoring='neg_log_loss' takes one class a row and y has several columns: use 'accuracy', or give a "
                "skdp.model_selection.PrivateScore."
            )

    def _plan(self, fit: WholeFit, template: PrivatePipeline, y: Any, sample_weight: Any) -> SearchPlan:
        """Draw the candidates, which are public, and plan the fits, the choice and the scores."""
        template.set_params(delta=fit.delta)
        grid = self._candidates(fit.public_stream("settings"))
        if not grid:
            raise ValueError("the search has no candidate: give a grid with at least one value a parameter.")
        refuse_terms_of_the_budget(grid)
        made = [make_candidate(template, parameters, fit.rows, fit.n_units) for parameters in ({}, *grid)]
        fit.settle_candidates(made, y, sample_weight, "a search")
        terms = (self.epsilon, fit.delta, fit.adjacency, self.strategy, self.n_trials, bool(self.refit))
        sizes = fit.n - self._n_scored(fit.n), fit.n, fit.n_features
        plan = plan_search(grid, made, sizes, SearchTerms(*terms))
        self.scorer_ = _one_score(self.scoring, made[1:])
        return plan

    def _n_scored(self, n: int) -> int:
        return n_tested(self.test_size, n, self.privacy_unit_)

    def _public_parameters(self, plan: SearchPlan, delta: float) -> dict[str, Any]:
        """What the accountant keeps with the charge."""
        names = ("strategy", "n_trials", "refit", "test_size", "epsilon")
        kept = {name: getattr(self, name) for name in names} | {"delta": delta}
        score = self.scorer_.name
        return kept | {"estimator": type(self.estimator).__name__, "scoring": score, "n_candidates": len(plan.tried)}

    # --- before the charge ---

    def _read_parts(self, fit: WholeFit, plan: SearchPlan) -> PartRows:
        rows = fit.read_parts()
        check_rows(plan, rows.X, rows.y, rows.units)
        return rows

    # --- the search ---

    def _learn(self, fit: WholeFit, template: PrivatePipeline, plan: SearchPlan, rows: PartRows) -> None:
        """Try, choose, fit the winner, and note what is published."""
        with silence():  # no warning of a trial gets out, as it would count trials
            tried = [] if len(plan.tried) == 1 else self._try_all(fit, plan, rows)
            best = max(tried, key=lambda each: each.score, default=None)
            fitted = self._final(fit, plan, best, rows)
        self._note(plan, fit.n, best, tried)
        self._take(fit, fitted, template)

    def _try_all(self, fit: WholeFit, plan: SearchPlan, rows: PartRows) -> list[_Tried]:
        """Train and score. The number of trials is a secret, so nothing is shown until the best is chosen."""
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
        """The candidates to try: each one once, or as many as the law says, each drawn at random."""
        if plan.trials is None:
            return list(range(len(plan.tried)))
        count = plan.trials.draw([int(word) for word in stream.words(2)])
        return [int(word) * len(plan.tried) >> 64 for word in stream.words(count)]

    def _final(self, fit: WholeFit, plan: SearchPlan, best: _Tried | None, rows: PartRows) -> Any:
        """The winner, on all rows if `refit` is set; the only candidate; the default, if none was tried."""
        if best is not None and not self.refit:
            return best.estimator
        alone = len(plan.tried) == 1
        final = plan.finals[0 if alone or best is None else best.number + 1]
        return final.run(plan.scale, fit.seed(-1), rows)

    # --- what is published ---

    def _take(self, fit: WholeFit, fitted: PrivatePipeline, template: PrivatePipeline) -> None:
        """Take over the winner, with the accountant that it came with and the price of the whole search."""
        owners = [step.estimator for _, step in private_steps(template.steps)]
        given = next((own.accountant for own in owners if own.accountant is not None), None)
        for _, step in private_steps(fitted.steps):
            step.estimator.set_params(accountant=given)
        estimator = seen_by_the_user(fitted)
        if is_private(estimator):
            step_of(estimator).set_price(fit.cost, fit.paid)
        estimator._fitted_releases, estimator._fitted_n_public = fit.paid, fit.n
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

        The score is the one that `scoring` names. Nothing is charged.

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
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X)

    @available_if(part_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Predict the probability of each class with the best estimator.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Probabilities, with classes in the order of `classes_`.
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_proba(X)

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
            Logarithms of what ``predict_proba`` returns.
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_log_proba(X)

    @available_if(part_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Any:
        """Predict confidence scores with the best estimator.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Confidence scores.
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.decision_function(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.target_tags.required = True
        return tags


# --- small parts ---


def _one_score(scoring: Any, made: list[PrivatePipeline]) -> PrivateScore | TableScore:
    """Return the score by which all candidates are compared, of a known and equal bound."""
    first, *others = (score_of(scoring, last_of(each)) for each in made)
    if any(other != first for other in others):
        raise ValueError(f"y_bounds differs between the candidates, and scoring={first.name!r} needs one: give one.")
    return first


def _fit_and_total(
    plan: FitPlan, seed: int | None, scale: float, score: PrivateScore | TableScore, searcher: int, train: PartRows,
    test: PartRows,
) -> tuple[PrivatePipeline, Any]:  # fmt: skip
    """A fitted candidate and its exact total, for the noise that the searching process adds."""
    with silence() if os.getpid() != searcher else contextlib.nullcontext():
        fitted = plan.run(scale, seed, train)
        shares = test.weights and test.weights.shares
        return fitted, score.total_of_all(seen_by_the_user(fitted), test.X, test.y, shares, test.units)
