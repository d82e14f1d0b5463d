"""The body of a private search: charge, split, tries, choice, refit, and what is published."""

from __future__ import annotations

import contextlib
import math
import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from skdp._candidates import (
    FitPlan,
    candidate,
    private_parts,
    private_template,
    refuse_terms_of_the_budget,
)
from skdp._config import report_leak
from skdp._random import SecretStream
from skdp._scores import PrivateScore, score_of
from skdp._search_plan import SearchPlan, Terms, plan_search
from skdp._validation import check_choice, check_real
from skdp.accounting import get_epsilon
from skdp.base import encode_labels, report_unpaid_scores
from skdp.mechanisms import GaussianMechanism
from skdp.pipeline import table_shape

STRATEGIES = ("random_stopping", "compose")


class _Tried(NamedTuple):
    """A candidate's number, the estimator as fitted to the part that trains, and its noisy score."""

    number: int
    estimator: Any
    score: float


def _best_has(method: str) -> Callable[[Any], bool]:
    return lambda self: hasattr(getattr(self, "best_estimator_", self.estimator), method)


class PrivateSearch(MetaEstimatorMixin, BaseEstimator):
    """What the searches share. Subclasses have the constructor parameters ``estimator, epsilon, delta, strategy,
    n_tries, scoring, refit, test_size, n_jobs, random_state, verbose``, and say by `_candidates` what is searched."""

    def _candidates(self, stream: SecretStream) -> list[dict[str, Any]]:
        """Parameters of all candidates, found without the data."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any) -> Self:
        """Choose a candidate under the budget, and fit it to all rows if `refit` is set.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Private.
        y : array-like of shape (n_samples,)
            Private labels.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            A parameter is not usable; nothing was charged. Or the rows are refused by a candidate; the charge stays.
        BudgetExceededError
            The accountant's ceiling does not allow the search; nothing was charged, and no row was read.
        """
        terms, template, accountant = self._check(y)
        stream, X = self._root_stream(), _rows_of(X)
        n_samples, n_features = table_shape(X)
        n = private_parts(template)[0]._public_n_samples(n_samples)
        grid = self._checked_candidates(stream)
        made = [candidate(template, parameters, accountant) for parameters in ({}, *grid)]
        _name_classes(made, y)
        plan = plan_search(grid, made, (n - self._n_scored(n), n, n_features), terms)
        epsilon = get_epsilon(plan.event, terms.delta, adjacency=terms.adjacency)  # without a price: refused here
        private_parts(template)[0]._warn_of_weak_delta(terms.delta, n)
        self._charge(plan, terms, accountant)

        y = _labels_of(y, X, made[0])
        with _nothing_said():
            tried = [] if len(grid) == 1 else self._try_all(plan, terms, n, X, y, stream)
            best = max(tried, key=lambda each: each.score, default=None)
            estimator = self._final(plan, terms, best, X, y, stream)
        for part in private_parts(estimator):
            part.set_params(accountant=accountant)
        estimator.privacy_event_, estimator.epsilon_, estimator.delta_ = plan.event, epsilon, terms.delta
        self.privacy_event_, self.epsilon_, self.delta_ = plan.event, epsilon, terms.delta
        self.adjacency_, self.best_estimator_ = terms.adjacency, estimator
        self._publish(plan, n, best, tried)
        return self

    # --- checks, all before the charge ---

    def _check(self, y: Any) -> tuple[Terms, Any, Any]:
        """The terms, the estimator that candidates are made from, and its accountant."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None: give labels.")
        epsilon = check_real("epsilon", self.epsilon, above=0, remedy="choose a number above 0, such as 1.0")
        delta = check_real("delta", self.delta, above=0, below=1, remedy="choose a number in (0, 1), well below 1/n")
        check_real("test_size", self.test_size, above=0, below=1, remedy="choose a share of the rows, such as 0.2")
        check_choice("strategy", self.strategy, STRATEGIES)
        n_tries = self.n_tries
        if not (isinstance(n_tries, str) and n_tries == "auto"):
            remedy = "choose a number from 1 to 1000, or 'auto'"
            n_tries = check_real("n_tries", n_tries, at_least=1, at_most=1000, remedy=remedy)
        score_of(self.scoring)
        template = private_template(self.estimator, epsilon, delta)
        parts = private_parts(template)
        accountant = next((part.accountant for part in parts if part.accountant is not None), None)
        terms = Terms(epsilon, delta, parts[0].adjacency, self.strategy, n_tries, bool(self.refit))
        return terms, template, accountant

    def _checked_candidates(self, stream: SecretStream) -> list[dict[str, Any]]:
        grid = self._candidates(stream)
        if not grid:
            raise ValueError("the search has no candidate: give a grid with at least one value a parameter.")
        refuse_terms_of_the_budget(grid)
        return grid

    def _root_stream(self) -> SecretStream:
        stream = SecretStream.from_random_state(self.random_state)
        if self.random_state is not None:
            report_leak(
                f"random_state={self.random_state!r} makes split, noise and number of tries reproducible, so the "
                "guarantee does not hold against whoever knows it: use random_state=None.",
                stacklevel=4,
            )
        return stream

    def _n_scored(self, n: int) -> int:
        n_scored = round(self.test_size * n)
        if not 0 < n_scored < n:
            raise ValueError(
                f"test_size={self.test_size!r} leaves no row to train or to score of n_samples={n}: "
                "choose another share, or give more rows."
            )
        return n_scored

    def _charge(self, plan: SearchPlan, terms: Terms, accountant: Any) -> None:
        """Everything, once, with public parameters alone, before a row is read."""
        report_unpaid_scores()
        if accountant is None:
            return
        names = ("strategy", "n_tries", "refit", "test_size", "epsilon", "delta")
        kept = {name: getattr(self, name) for name in names}
        score = score_of(self.scoring).name
        kept |= {"estimator": type(self.estimator).__name__, "scoring": score, "n_candidates": len(plan.tried)}
        accountant.spend(plan.event, type(self).__name__, adjacency=terms.adjacency, parameters=kept)

    # --- the search ---

    def _try_all(
        self, plan: SearchPlan, terms: Terms, n: int, X: Any, y: NDArray[Any], stream: SecretStream
    ) -> list[_Tried]:
        """Train and score; how many, nobody is to know, so nothing is said until the best is chosen."""
        numbers = self._numbers(plan, stream.spawn("tries"))
        scored = self._split(len(y), stream.spawn("split"), terms.adjacency)
        train, test = np.flatnonzero(~scored), np.flatnonzero(scored)
        data = _take(X, train), y[train], _take(X, test), y[test]
        score = score_of(self.scoring)
        shown = self.verbose if plan.tries is None else 0
        totals = Parallel(n_jobs=self.n_jobs, verbose=shown)(
            delayed(_fit_and_total)(
                plan.tried[number], plan.scale, terms.delta, self._seed(stream, i), score, os.getpid(), *data
            )
            for i, number in enumerate(numbers)
        )
        mechanism = GaussianMechanism(plan.score_noise, score.sensitivity)
        noisy = mechanism.release(np.array([total for _, total in totals]), stream.spawn("scores"))
        n_scored = self._n_scored(n)
        return [
            _Tried(number, estimator, score.value(float(total), n_scored))
            for number, (estimator, _), total in zip(numbers, totals, noisy, strict=True)
        ]

    def _numbers(self, plan: SearchPlan, stream: SecretStream) -> list[int]:
        """The candidates to try: each one once, or as many as the law says, each drawn at random."""
        if plan.tries is None:
            return list(range(len(plan.tried)))
        count = plan.tries.draw([int(word) for word in stream.words(2)])
        return [int(word) * len(plan.tried) >> 64 for word in stream.words(count)]

    def _split(self, n: int, stream: SecretStream, adjacency: str) -> NDArray[np.bool_]:
        """Which rows score. Labels have no say; under add_remove a row has a coin: one that leaves moves no other."""
        keys = stream.words(n)
        if adjacency == "add_remove":
            return keys < np.uint64(self.test_size * 2.0**64)
        scored = np.zeros(n, bool)
        scored[np.argsort(keys, kind="stable")[: self._n_scored(n)]] = True
        return scored

    def _final(
        self, plan: SearchPlan, terms: Terms, best: _Tried | None, X: Any, y: NDArray[Any], stream: SecretStream
    ) -> Any:
        """The winner, on all rows if `refit` is set; the only candidate; the default, if none was tried."""
        if best is not None and not terms.refit:
            return best.estimator
        alone = len(plan.tried) == 1
        final = plan.finals[0 if alone or best is None else best.number + 1]
        return final.fitted(plan.scale, terms.delta, self._seed(stream, -1), X, y)

    def _seed(self, stream: SecretStream, number: int) -> int | None:
        return None if self.random_state is None else int(stream.spawn("seed", number).words(1)[0] >> np.uint64(2))

    # --- what is published ---

    def _publish(self, plan: SearchPlan, n: int, best: _Tried | None, tried: list[_Tried]) -> None:
        grid, score = [each.parameters for each in plan.tried], score_of(self.scoring)
        alone = len(grid) == 1
        self.best_index_ = 0 if alone else -1 if best is None else best.number
        self.best_params_ = grid[self.best_index_] if self.best_index_ >= 0 else {}
        self.best_score_ = math.nan if best is None else best.score
        self.score_noise_ = plan.score_noise * score.sensitivity / self._n_scored(n)
        scores = np.full(len(grid), math.nan)
        for each in tried if plan.tries is None else filter(None, [best]):
            scores[each.number] = each.score
        self.cv_results_ = {"params": grid, "mean_test_score": scores}
        self.scorer_ = score

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

    def _of_the_best(self, name: str) -> Any:
        if "best_estimator_" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no {name} before fit.")
        return getattr(self.best_estimator_, name)

    def score(self, X: Any, y: Any) -> float:
        """The score that `scoring` names, exact, on rows that are nobody's secret: nothing is charged."""
        check_is_fitted(self, "best_estimator_")
        X, y = _rows_of(X), np.asarray(y)
        return self.scorer_.value(self.scorer_.total(self.best_estimator_, X, y), max(1, len(y)))

    @available_if(_best_has("predict"))  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> Any:
        """Labels by the best estimator."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X)

    @available_if(_best_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Probabilities by the best estimator."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_proba(X)

    @available_if(_best_has("predict_log_proba"))  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the probabilities by the best estimator."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_log_proba(X)

    @available_if(_best_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Any:
        """Scores of the classes by the best estimator."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.decision_function(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = inner.classifier_tags
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.target_tags.required = True
        return tags


# --- small parts ---


def _rows_of(X: Any) -> Any:
    """A table whose rows can be taken by number; no row is read of one that is a table already."""
    if hasattr(X, "tocsr"):
        return X.tocsr()
    return X if hasattr(X, "shape") else np.asarray(X)


def _name_classes(made: list[Any], y: Any) -> None:
    """Candidates train on a part of the rows, which need not hold every class: all of them are told the same."""
    last = [private_parts(each)[-1] for each in made]
    unnamed = [each for each in last if "classes" in each.get_params(deep=False) and each.classes is None]
    if not unnamed:
        return
    labels = np.asarray(y)
    if labels.ndim != 1 and labels.shape[1:] != (1,):
        return  # several labels a row, which name no classes
    check_classification_targets(labels)
    report_leak(
        "classes=None: the classes were read from the labels, which is not paid for; name all classes that can occur "
        "in the estimator, e.g. classes=[0, 1].",
        stacklevel=4,
    )
    for each in unnamed:
        each.set_params(classes=np.unique(labels).tolist())


def _labels_of(y: Any, X: Any, estimator: Any) -> NDArray[Any]:
    """The labels as an array, refused if one is no class, in whichever part it would have been."""
    labels, (n, _) = np.asarray(y), table_shape(X)
    if labels.shape[1:] == (1,):
        labels = column_or_1d(labels, warn=True)
    if len(labels) != n:
        raise ValueError(f"X has {n} rows and y has {len(labels)}: give one label a row.")
    classes = getattr(private_parts(estimator)[-1], "classes", None)
    if classes is not None and labels.ndim == 1:
        encode_labels(labels, np.unique(np.asarray(list(classes))))
    return labels


def _take(X: Any, rows: NDArray[np.intp]) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


@contextlib.contextmanager
def _nothing_said() -> Iterator[None]:
    """No warning of a try gets out, as it would count tries; but Ctrl-C in one of them ends the search."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", message="fit was interrupted")
        try:
            yield
        except UserWarning as told:
            if str(told).startswith("fit was interrupted"):
                raise KeyboardInterrupt from None
            raise


def _fit_and_total(
    plan: FitPlan, scale: float, delta: float, seed: int | None, score: PrivateScore, searcher: int, X: Any, y: Any,
    X_test: Any, y_test: Any,
) -> tuple[Any, float]:  # fmt: skip
    """A fitted candidate and its exact total, for the noise that the searching process adds."""
    with _nothing_said() if os.getpid() != searcher else contextlib.nullcontext():
        estimator = plan.fitted(scale, delta, seed, X, y)
        return estimator, score.total(estimator, X_test, y_test)


__all__ = ["STRATEGIES", "PrivateSearch"]
