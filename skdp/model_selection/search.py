"""The body of a private search: charge, split, tries, choice, refit, and what is published."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_regressor
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdp._checks.default_delta import check_delta, delta_for
from skdp._checks.leak_setting import silence
from skdp._checks.leaks import CLASSES_READ, begin_record, note_leaks
from skdp._checks.parameters import check_choice, check_real
from skdp._checks.protocols import is_private
from skdp._checks.row_traits import indexable
from skdp._checks.rows import number_of_columns, table_shape
from skdp._checks.sources import refuse_rows_elsewhere
from skdp._checks.units import ROW
from skdp._checks.weights import check_weights
from skdp._fit.conductor import PhasedFit, conduct
from skdp._fit.fit import units_of
from skdp._fit.payment import Payment
from skdp._fit.private_step import private_steps, step_of
from skdp._fit.releases import copy_to_fit, new_release
from skdp._guard.foreign_parameters import refuse_foreign, refuse_foreign_in_init
from skdp._guard.public_rules import takes_any_types
from skdp._guard.public_steps import check_types
from skdp.accounting import DpEvent, get_epsilon
from skdp.accounting.targets import Risk
from skdp.base import JointPrice, Price, check_whole_budget, root_stream
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.streams import SecretStream
from skdp.model_selection.candidates import (
    FitPlan,
    make_candidate,
    private_template,
    refuse_terms_of_the_budget,
    seen_by_the_user,
)
from skdp.model_selection.part_rows import (
    PartRows,
    PartWeights,
    check_bounds_are_given,
    checked_labels,
    common_weight_reader,
    last_of,
    name_classes,
)
from skdp.model_selection.parts import draw_by_number, n_tested
from skdp.model_selection.scores import PrivateScore, name_of_score, score_of
from skdp.model_selection.search_plan import SearchPlan, SearchTerms, check_rows, plan_search
from skdp.model_selection.table_scores import TableScore
from skdp.pipeline import PrivatePipeline, public_rows_of

STRATEGIES = ("random_stopping", "compose")


class _Tried(NamedTuple):
    """A candidate's number, the estimator as fitted to the part that trains, and its noisy score."""

    number: int
    estimator: PrivatePipeline
    score: float


def _best_has(method: str) -> Callable[[Any], bool]:
    return lambda self: hasattr(getattr(self, "best_estimator_", self.estimator), method)


class PrivateSearch(JointPrice, MetaEstimatorMixin, BaseEstimator):
    """What the searches share. Subclasses have the constructor parameters ``estimator, epsilon, delta, strategy,
    n_tries, scoring, refit, test_size, n_jobs, random_state, verbose``, and say by `_candidates` what is searched."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        refuse_foreign_in_init(cls)

    def set_params(self, **params: Any) -> Self:
        """Set the parameters of this search.

        Parameters
        ----------
        **params : dict of str to object
            Parameters of the search, or of the estimator as ``estimator__parameter``.

        Returns
        -------
        self : object
            The search itself.
        """
        refuse_foreign(type(self), params)
        super().set_params(**params)
        return self

    def _candidates(self, stream: SecretStream) -> list[dict[str, Any]]:
        """Parameters of all candidates, found without the data."""
        raise NotImplementedError

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
            The ceiling of the accountant does not admit the search. Nothing was charged, and no row was read.
        """
        conduct(SearchFit(self, X, y, sample_weight, groups))
        return self

    # --- checks, all before the charge ---

    def _check(self, X: Any, y: Any) -> tuple[SearchTerms, PrivatePipeline]:
        """The terms, whose delta is settled when the number of units is known, and what candidates are made from."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None: give labels.")
        check_whole_budget(self)
        delta: Any = check_delta(self.delta)
        check_real("test_size", self.test_size, above=0, below=1, remedy="choose a share of the rows, such as 0.2")
        check_choice("strategy", self.strategy, STRATEGIES)
        n_tries = self.n_tries
        if not (isinstance(n_tries, str) and n_tries == "auto"):
            remedy = "choose a number from 1 to 1000, or 'auto'"
            n_tries = check_real("n_tries", n_tries, at_least=1, at_most=1000, remedy=remedy)
        template = private_template(self.estimator, self.epsilon, self.delta, self.risk)
        self._check_scoring(seen_by_the_user(template), X, y)
        adjacency = private_steps(template.steps)[0][1].adjacency
        terms = (self.epsilon, delta, adjacency, self.strategy, n_tries, bool(self.refit))
        return SearchTerms(*terms, None if self.risk is None else Risk.read(self.risk)), template

    def _check_scoring(self, estimator: Any, X: Any, y: Any) -> None:
        """Refuse what a try could not be scored with."""
        name = name_of_score(self.scoring, regressor=is_regressor(estimator))
        if isinstance(self.scoring, PrivateScore | TableScore):
            self._check_table_score(estimator)
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

    def _check_table_score(self, estimator: Any) -> None:
        """Refuse an estimator that gives no scores of classes where a table of them is made."""
        if isinstance(self.scoring, TableScore) and not (
            hasattr(estimator, "predict_proba") or hasattr(estimator, "decision_function")
        ):
            raise ValueError(
                f"estimator is a {type(estimator).__name__} without predict_proba or decision_function, which "
                f"scoring={self.scoring.name!r} needs: put a classifier behind it."
            )

    def _checked_candidates(self, stream: SecretStream) -> list[dict[str, Any]]:
        grid = self._candidates(stream)
        if not grid:
            raise ValueError("the search has no candidate: give a grid with at least one value a parameter.")
        refuse_terms_of_the_budget(grid)
        return grid

    def _n_scored(self, n: int) -> int:
        return n_tested(self.test_size, n, getattr(self, "privacy_unit_", ROW))

    def _kept(self, plan: SearchPlan, terms: SearchTerms) -> dict[str, Any]:
        """What the ledger keeps with the charge: public parameters alone."""
        names = ("strategy", "n_tries", "refit", "test_size", "epsilon")
        kept = {name: getattr(self, name) for name in names} | {"delta": terms.delta}
        if self.risk is not None:
            kept["risk"] = dict(self.risk)
        score = self.scorer_.name
        kept["seeded"] = self.random_state is not None
        return kept | {"estimator": type(self.estimator).__name__, "scoring": score, "n_candidates": len(plan.tried)}

    # --- the search ---

    def _try_and_refit(
        self, plan: SearchPlan, terms: SearchTerms, n: int, rows: PartRows, stream: SecretStream
    ) -> tuple[list[_Tried], _Tried | None, Any]:
        """What was tried, the best of it, and what was fitted to all rows."""
        with _nothing_said():
            tried = [] if len(plan.tried) == 1 else self._try_all(plan, n, rows, stream)
            best = max(tried, key=lambda each: each.score, default=None)
            return tried, best, self._final(plan, terms, best, rows, stream)

    def _try_all(self, plan: SearchPlan, n: int, rows: PartRows, stream: SecretStream) -> list[_Tried]:
        """Train and score. The number of tries is a secret, so nothing is shown until the best is chosen."""
        numbers = self._numbers(plan, stream.spawn("tries"))
        scored = self._split(rows.n_units, stream.spawn("split"), plan.adjacency)
        parts = rows.of_units(~scored), rows.of_units(scored)
        score = self.scorer_
        shown = self.verbose if plan.tries is None else 0
        totals = Parallel(n_jobs=self.n_jobs, verbose=shown)(
            delayed(_fit_and_total)(plan.tried[number], plan.scale, self._seed(stream, i), score, os.getpid(), *parts)
            for i, number in enumerate(numbers)
        )
        mechanism = GaussianMechanism(plan.score_noise, score.sensitivity)
        noisy = mechanism.release(np.array([total for _, total in totals]), stream.spawn("scores"))
        n_scored = self._n_scored(n)
        return [
            _Tried(number, estimator, float(score.value(total, n_scored)))
            for number, (estimator, _), total in zip(numbers, totals, noisy, strict=True)
        ]

    def _numbers(self, plan: SearchPlan, stream: SecretStream) -> list[int]:
        """The candidates to try: each one once, or as many as the law says, each drawn at random."""
        if plan.tries is None:
            return list(range(len(plan.tried)))
        count = plan.tries.draw([int(word) for word in stream.words(2)])
        return [int(word) * len(plan.tried) >> 64 for word in stream.words(count)]

    def _split(self, n: int, stream: SecretStream, adjacency: str) -> NDArray[np.bool_]:
        """Which units score. Targets have no say; under add_remove each has a coin: one that leaves moves no other."""
        if adjacency == "add_remove":
            return stream.words(n) < np.uint64(self.test_size * 2.0**64)
        return draw_by_number(stream, n, self._n_scored(n))

    def _final(
        self, plan: SearchPlan, terms: SearchTerms, best: _Tried | None, rows: PartRows, stream: SecretStream
    ) -> Any:
        """The winner, on all rows if `refit` is set; the only candidate; the default, if none was tried."""
        if best is not None and not terms.refit:
            return best.estimator
        alone = len(plan.tried) == 1
        final = plan.finals[0 if alone or best is None else best.number + 1]
        return final.run(plan.scale, self._seed(stream, -1), rows)

    def _seed(self, stream: SecretStream, number: int) -> int | None:
        return None if self.random_state is None else int(stream.spawn("seed", number).words(1)[0] >> np.uint64(2))

    # --- what is published ---

    def _take(self, fitted: PrivatePipeline, template: PrivatePipeline, event: DpEvent, terms: SearchTerms) -> None:
        """Take over the winner, with the accountant that it came with and the price of the whole search."""
        owners = [step.estimator for _, step in private_steps(template.steps)]
        given = next((own.accountant for own in owners if own.accountant is not None), None)
        for _, step in private_steps(fitted.steps):
            step.estimator.set_params(accountant=given)
        estimator = seen_by_the_user(fitted)
        paid = (new_release(event, terms.adjacency, self.privacy_unit_),)
        if is_private(estimator):
            epsilon = get_epsilon(event, terms.delta, adjacency=terms.adjacency)
            step_of(estimator).set_price(Price(event, epsilon, terms.delta), paid)
        estimator._fitted_releases, estimator._fitted_n_public = paid, self._fitted_n_public
        if name := self.__dict__.get("_fitted_group_name"):
            estimator._fitted_group_name = name
        note_leaks(estimator, *self._fitted_leaks)
        self._fitted_releases, self.best_estimator_ = paid, estimator
        self.delta_, self.adjacency_ = terms.delta, terms.adjacency

    def _note(self, plan: SearchPlan, n: int, best: _Tried | None, tried: list[_Tried]) -> None:
        grid = [each.parameters for each in plan.tried]
        self._fitted_n_public, self._fitted_tuning = n, plan.tuning
        alone = len(grid) == 1
        self.score_noise_ = math.inf
        if not alone:
            mechanism = GaussianMechanism(plan.score_noise, self.scorer_.sensitivity)
            self.score_noise_ = mechanism.standard_deviation / self._n_scored(n)
        self.best_index_ = 0 if alone else -1 if best is None else best.number
        self.best_params_ = grid[self.best_index_] if self.best_index_ >= 0 else {}
        self.best_score_ = math.nan if best is None else best.score
        scores = np.full(len(grid), math.nan)
        for each in tried if plan.tries is None else filter(None, [best]):
            scores[each.number] = each.score
        self.cv_results_ = {"params": grid, "mean_test_score": scores}

    # --- the winner's attributes and methods ---

    @property
    def classes_(self) -> NDArray[Any]:
        """Classes of the best estimator."""
        return self._of_the_best("classes_")

    @property
    def n_features_in_(self) -> int:
        """Columns seen in ``fit``."""
        return int(self._of_the_best("n_features_in_"))

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the columns seen in ``fit``, where they have names."""
        return self._of_the_best("feature_names_in_")

    def _private_parts(self) -> list[Any]:
        return [self.best_estimator_] if "best_estimator_" in self.__dict__ else []

    def _of_the_best(self, name: str) -> Any:
        if "best_estimator_" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no {name} before fit.")
        return getattr(self.best_estimator_, name)

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
        return self.scorer_.value(self.scorer_.total(self.best_estimator_, X, y, weights), n)

    @available_if(_best_has("predict"))  # type: ignore[untyped-decorator]
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

    @available_if(_best_has("predict_proba"))  # type: ignore[untyped-decorator]
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

    @available_if(_best_has("predict_log_proba"))  # type: ignore[untyped-decorator]
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

    @available_if(_best_has("decision_function"))  # type: ignore[untyped-decorator]
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


class SearchFit(PhasedFit):
    """The fit of a search: one charge for all tries, the choice and the refit."""

    work: PrivateSearch
    _labels: Any

    def __init__(self, target: PrivateSearch, X: Any, y: Any, sample_weight: Any, groups: Any) -> None:
        refuse_rows_elsewhere("a search", X)
        super().__init__(target, copy_to_fit(target))
        self._X, self._y, self._given, self._groups = X, y, sample_weight, groups
        self._kept: dict[str, Any] = {}

    def plan(self) -> None:
        """See `PhasedFit`. Classes that no one named are read from the labels here."""
        work, y = self.work, self._y
        begin_record(work)
        self._terms, self._template = work._check(self._X, y)
        template = self._template
        self._accountant = template._payment().accountant
        self._X, self.units = units_of(work, self._X, self._groups, self.payment())
        template._take_unit(work)
        if not is_private(template.steps[0][1]) and not takes_any_types(template.steps[0][1]):
            check_types(self._X)
        self._stream, self._X = root_stream(work, "split, noise and number of tries"), indexable(self._X)
        n_rows, n_features = table_shape(self._X)
        n_samples = n_rows if self.units is None else self.units.n_units
        self.n_public = n = public_rows_of(template, n_samples)
        self._terms = terms = self._terms._replace(delta=delta_for(self._terms.delta, self._accountant, n))
        template.set_params(delta=terms.delta)
        grid = work._checked_candidates(self._stream)
        made = [make_candidate(template, parameters, self._X, n_samples) for parameters in ({}, *grid)]
        check_bounds_are_given(made)
        self._last = last_of(made[0])
        self._reader = None if self._given is None else common_weight_reader(made, self._given)
        self._labels = name_classes(made, y, n_rows)
        note_leaks(work, *([] if self._labels is None else [CLASSES_READ]))
        self._plan = plan_search(grid, made, (n - work._n_scored(n), n, n_features), terms)
        work.scorer_ = _one_score(work.scoring, made[1:])
        self._kept = work._kept(self._plan, terms)
        if name := work.__dict__.get("_fitted_group_name"):
            self._kept["groups"] = name
        self.event, self.delta = self._plan.event, terms.delta
        get_epsilon(self.event, terms.delta, adjacency=terms.adjacency)  # without a price: refused here

    def payment(self) -> Payment:
        """See `PhasedFit`."""
        unit = self.work.__dict__.get("privacy_unit_", ROW)
        return Payment(self._accountant, type(self.target).__name__, self._terms.adjacency, self._kept, unit)

    def read(self) -> None:
        """See `PhasedFit`."""
        n_samples = table_shape(self._X)[0]
        if self._labels is None:
            self._labels = checked_labels(self._last, self._y, n_samples)
        check_rows(self._plan, self._X, self._labels, self.units)
        self._weights = None if self._reader is None else PartWeights.of(self._reader, self._given, n_samples)

    def learn(self) -> str:
        """See `PhasedFit`. An interrupted search has no result."""
        work, n = self.work, self.n_public
        rows = PartRows(self._X, self._labels, self._weights, self.units)
        tried, best, fitted = work._try_and_refit(self._plan, self._terms, n, rows, self._stream)
        work._note(self._plan, n, best, tried)
        work._take(fitted, self._template, self.event, self._terms)
        return ""


def _one_score(scoring: Any, made: list[PrivatePipeline]) -> PrivateScore | TableScore:
    """Return the score by which all candidates are compared, of a known and equal bound."""
    first, *others = (score_of(scoring, last_of(each)) for each in made)
    if any(other != first for other in others):
        raise ValueError(f"y_bounds differs between the candidates, and scoring={first.name!r} needs one: give one.")
    return first


@contextlib.contextmanager
def _nothing_said() -> Iterator[None]:
    """No warning of a try gets out, as it would count tries."""
    with silence():
        yield


def _fit_and_total(
    plan: FitPlan,
    scale: float,
    seed: int | None,
    score: PrivateScore | TableScore,
    searcher: int,
    train: PartRows,
    test: PartRows,
) -> tuple[PrivatePipeline, Any]:
    """A fitted candidate and its exact total, for the noise that the searching process adds."""
    with _nothing_said() if os.getpid() != searcher else contextlib.nullcontext():
        fitted = plan.run(scale, seed, train)
        shares = test.weights and test.weights.shares
        return fitted, score.total_of_all(seen_by_the_user(fitted), test.X, test.y, shares, test.units)


__all__ = ["STRATEGIES", "PrivateSearch"]
