"""Private choice among candidates: a search whose epsilon is that of the whole search."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdp._config import report_leak
from skdp._random import SecretStream
from skdp._validation import check_choice, check_count, check_real
from skdp.accounting import (
    DpEvent,
    GaussianDpEvent,
    NumberOfTries,
    PrivacyAccountant,
    WorstOfDpEvent,
    calibrate_jointly,
    calibrate_noise_multiplier,
    calibrate_selection,
    compose,
    get_epsilon,
)
from skdp.base import PrivateEstimator, StepPlan
from skdp.mechanisms import GaussianMechanism
from skdp.pipeline import Allocation, PrivatePipeline, allocate_budget, table_shape

STRATEGIES = ("random_stopping", "compose")
MOST_TRIES = 10
"""Expected number of tries if nothing is said: more cost more, and the tenth seldom beats the first nine."""
REFIT_SHARE = 0.5
"""Part of the budget's mu**2 that goes to the final fit on all rows."""
LOSS_BOUND = 5.0
"""Where a row's log-loss is cut off: at a probability of 0.7 % for what is true."""


@dataclass(frozen=True)
class PrivateScore:
    """A score that is a mean over rows of bounded contributions, so that one row moves it by a known amount.

    Parameters
    ----------
    name : str
    contributions : callable
        ``contributions(estimator, X, y)`` gives one number a row, of shape (n,), in [0, `bound`], that depends on this
        row and the estimator alone. What lies outside is cut off.
    bound : float
        Above 0.
    greater_is_better : bool, default=True
        If not, the score is the mean times -1.

    Notes
    -----
    **Guarantees.** One row moves the sum of contributions by at most `bound`; exchanged for another, by no more either.
    """

    name: str
    contributions: Callable[[Any, Any, Any], NDArray[Any]]
    bound: float
    greater_is_better: bool = True

    def sensitivity(self, adjacency: str) -> float:
        """What the noise is relative to: an exchange is priced as a move by twice this."""
        return 0.5 * self.bound if adjacency == "replace_one" else self.bound

    def total(self, estimator: Any, X: Any, y: Any) -> float:
        """Sum of the contributions, each within its bound; one that is not a number counts as 0."""
        found = np.asarray(self.contributions(estimator, X, y), dtype=np.float64)
        if found.shape != (len(y),):
            raise ValueError(
                f"scoring={self.name!r} gave shape {found.shape} for {len(y)} rows: give one number a row."
            )
        return float(np.clip(np.nan_to_num(found, nan=0.0), 0.0, self.bound).sum())


def _hits(estimator: Any, X: Any, y: Any) -> NDArray[np.float64]:
    return (estimator.predict(X) == y).astype(np.float64)


def _log_losses(estimator: Any, X: Any, y: Any) -> NDArray[np.float64]:
    chances = estimator.predict_proba(X)[np.arange(len(y)), np.searchsorted(estimator.classes_, y)]
    return -np.log(np.maximum(chances, math.exp(-LOSS_BOUND)))


SCORES = {
    "accuracy": PrivateScore("accuracy", _hits, 1.0),
    "neg_log_loss": PrivateScore("neg_log_loss", _log_losses, LOSS_BOUND, greater_is_better=False),
}


class _FitPlan(NamedTuple):
    """A fit of a candidate: its parameters, the estimator that has them, and the noise of each private step.

    The noise is for a fit that costs as much as the others that it is compared with; all are scaled alike.
    """

    parameters: dict[str, Any]
    estimator: Any
    steps: list[StepPlan]
    noises: tuple[float, ...]

    def event(self, scale: float) -> DpEvent:
        return compose(step.event_at(scale * sigma) for step, sigma in zip(self.steps, self.noises, strict=True))

    def fitted(self, scale: float, delta: float, seed: int | None, X: Any, y: Any) -> Any:
        """The estimator, fitted with its noise times `scale`."""
        estimator = clone(self.estimator)
        for number, part in enumerate(_private_parts(estimator)):
            part.set_params(random_state=None if seed is None else seed + number)
        event = self.event(scale)
        noises = tuple(scale * sigma for sigma in self.noises)
        if isinstance(estimator, PrivatePipeline):
            estimator.set_params(delta=delta)
            estimator._fit_allotted(Allocation(self.steps, noises, event), X, y)
        else:
            fixed = self.steps[0].parameters
            estimator.set_params(**fixed, epsilon=None, noise_multiplier=noises[0], delta=delta).fit(X, y)
        spent = compose(part.privacy_event_ for part in _private_parts(estimator))
        if spent != event:
            raise RuntimeError(f"spent {spent!r} where {event!r} was planned: please report this as a bug.")
        return estimator


class _Search(NamedTuple):
    """All that is decided before the data are read. `tries` is None where every candidate is tried once."""

    tried: list[_FitPlan]
    finals: list[_FitPlan]
    score_noise: float
    scale: float
    tries: NumberOfTries | None
    event: DpEvent


class _Tried(NamedTuple):
    """A candidate's number, the estimator as fitted to the training part, and its noisy score."""

    index: int
    estimator: Any
    score: float


def _best_has(method: str) -> Callable[[Any], bool]:
    return lambda self: hasattr(getattr(self, "best_estimator_", self.estimator), method)


class _PrivateSearchCV(MetaEstimatorMixin, BaseEstimator):
    """What the searches share; a subclass says by `_candidates` what is searched."""

    def __init__(
        self,
        estimator: Any,
        *,
        epsilon: float,
        delta: float,
        strategy: str,
        n_tries: float | str,
        scoring: Any,
        refit: bool,
        test_size: float,
        n_jobs: int | None,
        random_state: Any,
        verbose: int,
    ) -> None:
        self.estimator = estimator
        self.epsilon = epsilon
        self.delta = delta
        self.strategy = strategy
        self.n_tries = n_tries
        self.scoring = scoring
        self.refit = refit
        self.test_size = test_size
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _candidates(self, stream: SecretStream) -> list[dict[str, Any]]:
        """Parameters of all candidates, found without the data."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any) -> Self:
        """Choose a candidate under the budget, and fit it to all rows if `refit` is set.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
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
        template, accountant = self._check()
        stream = self._root_stream()
        grid = self._candidates(stream)
        _refuse_budget_parameters(grid)
        X, y = _rows_of(X), np.asarray(y)
        self._set_classes(template, y)
        n_samples, n_features = table_shape(X)
        n_public = _private_parts(template)[0]._public_n_samples(n_samples)
        search = self._plan(template, grid, n_public, n_features)
        adjacency = _adjacency(template)
        epsilon = get_epsilon(search.event, self.delta, adjacency=adjacency)  # a search without a price is refused here

        if accountant is not None:
            accountant.spend(search.event, type(self).__name__, adjacency=adjacency)
        tried = [] if len(search.tried) < 2 else self._try_all(search, n_public, X, y, stream)
        best = max(tried, key=lambda each: each.score, default=None)
        estimator = (
            best.estimator if best is not None and not self.refit else self._fit_best(search, best, X, y, stream)
        )
        estimator.privacy_event_, estimator.epsilon_, estimator.delta_ = search.event, epsilon, self.delta
        self._publish(search, estimator, epsilon, adjacency, best, tried)
        return self

    # --- checks, all before the charge ---

    def _check(self) -> tuple[Any, PrivacyAccountant | None]:
        """The estimator that candidates are made from, without its accountant, and that accountant."""
        check_real("epsilon", self.epsilon, above=0, remedy="choose a number above 0, such as 1.0")
        check_real("delta", self.delta, above=0, below=1, remedy="choose a number in (0, 1), well below 1/n")
        check_real("test_size", self.test_size, above=0, below=1, remedy="choose a share of the rows, such as 0.2")
        check_choice("strategy", self.strategy, STRATEGIES)
        if self.n_tries != "auto":
            check_real("n_tries", self.n_tries, at_least=1, at_most=1000, remedy="choose a number from 1, or 'auto'")
        self._score()
        template = clone(self.estimator)
        if isinstance(template, Pipeline) and not isinstance(template, PrivatePipeline):
            template = allocate_budget(template, self.epsilon, self.delta)
        if not isinstance(template, PrivateEstimator | PrivatePipeline):
            raise ValueError(
                f"estimator={self.estimator!r} is neither a private estimator nor a Pipeline of them: use one of skdp, "
                "such as DPLogisticRegression."
            )
        parts = _private_parts(template)
        accountant = next((part.accountant for part in parts if part.accountant is not None), None)
        for part in parts:
            part.set_params(accountant=None)
        return template, accountant

    def _root_stream(self) -> SecretStream:
        if self.random_state is not None:
            report_leak(
                f"random_state={self.random_state!r} makes split, noise and number of tries reproducible, so the "
                "guarantee does not hold against whoever knows it: use random_state=None.",
                stacklevel=4,
            )
        return SecretStream.from_random_state(self.random_state)

    def _score(self) -> PrivateScore:
        if isinstance(self.scoring, PrivateScore):
            return self.scoring
        name = "accuracy" if self.scoring is None else self.scoring
        if isinstance(name, str) and name in SCORES:
            return SCORES[name]
        raise ValueError(
            f"scoring={self.scoring!r} has no private mechanism here (of roc_auc and the like a row is no bounded part): "
            f"choose one of {', '.join(SCORES)}, or give a PrivateScore."
        )

    def _set_classes(self, template: Any, y: NDArray[Any]) -> None:
        """Candidates are trained on a part of the rows, which need not hold every class: all of them know the same."""
        last = _private_parts(template)[-1]
        if "classes" in last.get_params(deep=False) and last.classes is None:
            report_leak(
                "classes=None: the classes were read from the labels, which is not paid for; name all classes that "
                "can occur in the estimator, e.g. classes=[0, 1].",
                stacklevel=4,
            )
            last.set_params(classes=np.unique(y).tolist())

    # --- what is decided before the data are read ---

    def _plan(self, template: Any, grid: list[dict[str, Any]], n: int, n_features: int) -> _Search:
        if len(grid) == 1:
            (only,) = self._fit_plans(template, grid, n, n_features, self.epsilon)
            return _Search([only], [only], math.inf, 1.0, None, only.event(1.0))
        shares = {"try": 1.0 - REFIT_SHARE, "refit": REFIT_SHARE} if self.refit else {"try": 1.0}
        of = {name: self._epsilon_of_share(share) for name, share in shares.items()}
        tried = self._fit_plans(template, grid, n - self._n_scored(n), n_features, of["try"])
        finals = self._fit_plans(template, [{}, *grid], n, n_features, of["refit"]) if self.refit else []
        score = _noise_of(GaussianDpEvent, of["try"], self.delta, _adjacency(template))

        def event_at(tries: NumberOfTries | None, scale: float) -> DpEvent:
            scored = GaussianDpEvent(scale * score)
            refit = [_worst_of([each.event(scale) for each in finals])] if finals else []
            if tries is not None:
                return compose([tries.event(_worst_of([*(each.event(scale) for each in tried), scored])), *refit])
            trained = compose(each.event(scale) for each in tried)
            return compose([_worst_of([trained, compose([scored] * len(tried))]), *refit])

        tries, scale = self._solved(event_at, len(grid), _adjacency(template))
        return _Search(tried, finals, scale * score, scale, tries, event_at(tries, scale))

    def _solved(
        self, event_at: Callable[[NumberOfTries | None, float], DpEvent], n_candidates: int, adjacency: str
    ) -> tuple[NumberOfTries | None, float]:
        """The law of the number of tries and the scale of all noise at which the search costs epsilon."""
        if self.strategy == "compose":

            def all_of_them(scale: float) -> DpEvent:
                return event_at(None, scale)

            return None, calibrate_noise_multiplier(all_of_them, self.epsilon, self.delta, adjacency=adjacency)
        expected = float(min(MOST_TRIES, n_candidates) if self.n_tries == "auto" else self.n_tries)
        shapes = (
            (0.0, 1.0, math.inf) if self.refit else (0.0, 1.0)
        )  # no try at all leaves the default model, which is then fitted
        found = calibrate_selection(
            event_at, expected, self.epsilon, self.delta, adjacency=adjacency, shapes=shapes
        )  # fmt: skip
        return found.tries, found.noise_multiplier

    def _epsilon_of_share(self, share: float) -> float:
        """Epsilon at this share of mu**2 of the whole budget, for a start: all noise is scaled together later."""
        mu = math.sqrt(share) / _noise_of(GaussianDpEvent, self.epsilon, self.delta, "zero_out")
        return get_epsilon(GaussianDpEvent(1.0 / mu), self.delta)

    def _fit_plans(
        self, template: Any, grid: list[dict[str, Any]], n: int, n_features: int, epsilon: float
    ) -> list[_FitPlan]:
        """Fits to n rows that cost epsilon each; candidates that are planned alike share their noise."""
        known: dict[Any, tuple[float, ...]] = {}
        made = []
        for parameters in grid:
            estimator = clone(template).set_params(**parameters)
            parts = _private_parts(estimator)
            for part in parts:
                if part.n_samples_public is not None or part.adjacency == "add_remove":
                    part.set_params(n_samples_public=n)
            steps = [part._plan_step(n, n_features) for part in parts]
            key = tuple(step.event_at(1.0) for step in steps)
            if key not in known:
                known[key] = _noises_of(estimator, steps, epsilon, self.delta)
            made.append(_FitPlan(parameters, estimator, steps, known[key]))
        return made

    def _n_scored(self, n: int) -> int:
        n_scored = round(self.test_size * n)
        if not 0 < n_scored < n:
            raise ValueError(
                f"test_size={self.test_size!r} leaves no row to train or to score of the {n} there are: choose another "
                "share, or give more rows."
            )
        return n_scored

    # --- the search ---

    def _try_all(self, search: _Search, n: int, X: Any, y: NDArray[Any], stream: SecretStream) -> list[_Tried]:
        """Train and score; how many, nobody is to know, so nothing is said until the best is chosen."""
        scored = self._split(n, len(y), stream.spawn("split"), _adjacency(search.tried[0].estimator))
        train, test = np.flatnonzero(~scored), np.flatnonzero(scored)
        score, adjacency = self._score(), _adjacency(search.tried[0].estimator)
        numbers = self._numbers(search, stream.spawn("tries"))
        seeds = [self._seed(stream, "try", i) for i in range(len(numbers))]
        data = _take(X, train), y[train], _take(X, test), y[test]
        totals = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit_and_total)(search.tried[number], search.scale, self.delta, seed, score, *data)
            for number, seed in zip(numbers, seeds, strict=True)
        )
        mechanism = GaussianMechanism(search.score_noise, score.sensitivity(adjacency))
        noise, sign = stream.spawn("scores"), 1.0 if score.greater_is_better else -1.0
        return [
            _Tried(number, estimator, sign * float(mechanism.release(np.array([total]), noise)[0]) / self._n_scored(n))
            for number, (estimator, total) in zip(numbers, totals, strict=True)
        ]

    def _numbers(self, search: _Search, stream: SecretStream) -> list[int]:
        """The candidates to try: each one once, or as many as the law says, each drawn at random."""
        if search.tries is None:
            return list(range(len(search.tried)))
        count = search.tries.draw([int(word) for word in stream.words(2)])
        return [int(word) * len(search.tried) >> 64 for word in stream.words(count)]

    def _split(self, n_public: int, n: int, stream: SecretStream, adjacency: str) -> NDArray[np.bool_]:
        """Which rows score. Labels have no say; a row that leaves moves no other, so under add_remove each has a coin."""
        keys = stream.words(n)
        if adjacency == "add_remove":
            return keys < np.uint64(self.test_size * 2.0**64)
        scored = np.zeros(n, bool)
        scored[np.argsort(keys, kind="stable")[: self._n_scored(n_public)]] = True
        return scored

    def _fit_best(self, search: _Search, best: _Tried | None, X: Any, y: NDArray[Any], stream: SecretStream) -> Any:
        """The winner on all rows; the only candidate, if there is one alone; the default, if none was tried."""
        if len(search.tried) == 1:
            plan = search.tried[0]
        else:
            plan = search.finals[0 if best is None else best.index + 1]
        return plan.fitted(search.scale, self.delta, self._seed(stream, "refit", 0), X, y)

    def _seed(self, stream: SecretStream, *purpose: str | int) -> int | None:
        return None if self.random_state is None else int(stream.spawn("seed", *purpose).words(1)[0] >> np.uint64(2))

    # --- what is published ---

    def _publish(
        self, search: _Search, estimator: Any, epsilon: float, adjacency: str, best: _Tried | None, tried: list[_Tried]
    ) -> None:
        self.privacy_event_, self.epsilon_, self.delta_, self.adjacency_ = search.event, epsilon, self.delta, adjacency
        self.best_estimator_ = estimator
        alone = len(search.tried) == 1
        self.best_index_ = 0 if alone else -1 if best is None else best.index
        self.best_params_ = search.tried[self.best_index_].parameters if self.best_index_ >= 0 else {}
        self.best_score_ = math.nan if best is None else best.score
        shown = tried if search.tries is None else [best] if best is not None else []
        scores = np.full(len(search.tried), math.nan)
        for each in shown:
            scores[each.index] = each.score
        self.cv_results_ = {"params": [each.parameters for each in search.tried], "mean_test_score": scores}
        self.scorer_ = self._score()

    # --- the winner's methods ---

    @property
    def classes_(self) -> NDArray[Any]:
        """Classes of the best estimator."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.classes_  # type: ignore[no-any-return]

    @property
    def n_features_in_(self) -> int:
        """Columns seen in ``fit``."""
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(f"{type(self).__name__} has no n_features_in_ before fit.")
        return int(self.best_estimator_.n_features_in_)

    def score(self, X: Any, y: Any) -> float:
        """Accuracy of the best estimator on rows that are nobody's secret: nothing is charged."""
        check_is_fitted(self, "best_estimator_")
        return float(self.best_estimator_.score(X, y))

    @available_if(_best_has("predict"))
    def predict(self, X: Any) -> Any:
        """Labels by the best estimator."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X)

    @available_if(_best_has("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Probabilities by the best estimator."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_proba(X)

    @available_if(_best_has("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the probabilities by the best estimator."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_log_proba(X)

    @available_if(_best_has("decision_function"))
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


_DOC = """{first}

    One total (`epsilon`, `delta`) covers everything: the tries, the choice, the scores and the final fit. The noise of
    all of them is solved for together.

    Parameters
    ----------
    estimator : private estimator or Pipeline
        What is searched over. A Pipeline of private steps gets one joint budget a fit (`skdp.allocate_budget`). An
        accountant that it carries is charged once, for the whole search.
    {space}
    epsilon, delta : float
        Budget of the search.
    strategy : {{"random_stopping", "compose"}}, default="random_stopping"
        "random_stopping": a secret random number of candidates, each drawn at random, is tried and the best is kept
        (Papernot & Steinke 2022). It costs little more than one try. "compose": every candidate is tried once, and all
        are paid for; all noisy scores can then be shown.
    n_tries : float or "auto", default="auto"
        Expected number of tries under random stopping. "auto": the number of candidates, 10 at most.
    scoring : {{"accuracy", "neg_log_loss"}}, PrivateScore or None, default=None
        None: accuracy. Log-losses of rows are cut off at 5. Scores of which a row is no bounded part, such as
        "roc_auc", are refused.
    refit : bool, default=True
        Fit the winner again to all rows, at half of the budget (in mu**2). False keeps the winner as it was trained on
        its part of the rows, and leaves the whole budget to the search.
    test_size : float, default=0.2
        Share of the rows that score. Which rows do is decided by their number and a secret seed alone.
    n_jobs : int or None, default=None
        Tries at a time, as in joblib.
    random_state : int or None, default=None
        None: fresh secret keys. An int makes the search reproducible and its noise no secret.
    verbose : int, default=0
        Has no effect under random stopping, whose progress would tell the number of tries.

    Attributes
    ----------
    best_estimator_ : estimator
        The winner; its `epsilon_` and `privacy_event_` are those of the whole search.
    best_params_ : dict
        Empty if no candidate was tried, which the Poisson law allows: the estimator is then fitted as it was given.
    best_index_ : int
        In ``cv_results_["params"]``; -1 if no candidate was tried.
    best_score_ : float
        Noisy score of the winner on the rows that score; NaN without one.
    cv_results_ : dict
        ``params`` of all candidates, and ``mean_test_score``: of the winner alone under random stopping (NaN for the
        others, tried or not), of all under "compose".
    scorer_ : PrivateScore
    epsilon_, delta_ : float
        Price of the whole search.
    adjacency_ : str
    privacy_event_ : DpEvent
    classes_ : ndarray
    n_features_in_ : int

    Notes
    -----
    **Guarantees.**

    - ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row, the choice included, if the estimator names
      its classes and `random_state` is None.
    - A row is in the part that trains or in the part that scores, so it costs the larger of the two.
    - The accountant is charged once, before the first row is read.
    - Under random stopping nothing is said of candidates that lost, nor of how many were tried: no attribute, no entry
      of the bill, no warning, no progress. How long ``fit`` takes does tell; it is not covered.
    - A search over one candidate skips choice and score and costs one fit.

    References
    ----------
    Papernot & Steinke (2022), "Hyperparameter tuning with Renyi differential privacy". Koskela, Redberg & Wang (2024),
    "Privacy profiles for private selection".
    """


class DPGridSearchCV(_PrivateSearchCV):
    __doc__ = _DOC.format(
        first="Private choice among the points of a grid.",
        space="""param_grid : dict or list of dict
        As for ``sklearn.model_selection.GridSearchCV``. Budgets and seeds cannot be searched.""",
    )

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        strategy: str = "random_stopping",
        n_tries: float | str = "auto",
        scoring: Any = None,
        refit: bool = True,
        test_size: float = 0.2,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            estimator, epsilon=epsilon, delta=delta, strategy=strategy, n_tries=n_tries, scoring=scoring, refit=refit,
            test_size=test_size, n_jobs=n_jobs, random_state=random_state, verbose=verbose,
        )  # fmt: skip
        self.param_grid = param_grid

    def _candidates(self, stream: SecretStream) -> list[dict[str, Any]]:
        return list(ParameterGrid(self.param_grid))


class DPRandomizedSearchCV(_PrivateSearchCV):
    __doc__ = _DOC.format(
        first="Private choice among settings that are drawn at random.",
        space="""param_distributions : dict or list of dict
        As for ``sklearn.model_selection.RandomizedSearchCV``. Budgets and seeds cannot be searched.
    n_iter : int, default=10
        Number of settings that are drawn, without the data, as candidates.""",
    )

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        n_iter: int = 10,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        strategy: str = "random_stopping",
        n_tries: float | str = "auto",
        scoring: Any = None,
        refit: bool = True,
        test_size: float = 0.2,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            estimator, epsilon=epsilon, delta=delta, strategy=strategy, n_tries=n_tries, scoring=scoring, refit=refit,
            test_size=test_size, n_jobs=n_jobs, random_state=random_state, verbose=verbose,
        )  # fmt: skip
        self.param_distributions = param_distributions
        self.n_iter = n_iter

    def _candidates(self, stream: SecretStream) -> list[dict[str, Any]]:
        n_iter = check_count("n_iter", self.n_iter, remedy="choose a whole number of settings")
        seed = int(stream.spawn("settings").words(1)[0] >> np.uint64(32))
        return list(ParameterSampler(self.param_distributions, n_iter, random_state=seed))


# --- small parts ---


def _private_parts(estimator: Any) -> list[Any]:
    if isinstance(estimator, PrivatePipeline):
        return [step for _, step in estimator._private_steps()]
    return [estimator]


def _adjacency(estimator: Any) -> str:
    return str(_private_parts(estimator)[0].adjacency)


def _refuse_budget_parameters(grid: list[dict[str, Any]]) -> None:
    for name in {name for each in grid for name in each}:
        if name.split("__")[-1] in _OF_THE_SEARCH:
            raise ValueError(
                f"parameter {name!r} cannot be searched: the budget and its terms are those of the search."
            )


_OF_THE_SEARCH = {
    "epsilon", "delta", "noise_multiplier", "accountant", "adjacency", "accounting", "random_state", "shares",
    "n_samples_public", "warm_start", "classes",
}  # fmt: skip


def _noise_of(event_at: Callable[[float], DpEvent], epsilon: float, delta: float, adjacency: str) -> float:
    return calibrate_noise_multiplier(event_at, epsilon, delta, adjacency=adjacency)


def _noises_of(estimator: Any, steps: list[StepPlan], epsilon: float, delta: float) -> tuple[float, ...]:
    """Noise of each private step at which a fit costs epsilon."""
    adjacency = _adjacency(estimator)
    if not isinstance(estimator, PrivatePipeline):
        return (_noise_of(steps[0].event_at, epsilon, delta, adjacency),)
    shares = estimator._check_shares([name for name, _ in estimator._private_steps()])
    return calibrate_jointly(
        [step.event_at for step in steps], epsilon, delta, list(shares.values()), adjacency=adjacency
    )


def _worst_of(events: list[DpEvent]) -> DpEvent:
    different = list(dict.fromkeys(events))
    return different[0] if len(different) == 1 else WorstOfDpEvent(different)


def _rows_of(X: Any) -> Any:
    """A table whose rows can be taken by number."""
    return X if hasattr(X, "shape") else np.asarray(X)


def _take(X: Any, rows: NDArray[np.intp]) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _fit_and_total(
    plan: _FitPlan, scale: float, delta: float, seed: int | None, score: PrivateScore, X: Any, y: Any, X_test: Any,
    y_test: Any,
) -> tuple[Any, float]:  # fmt: skip
    """A fitted candidate and its exact score, for the noise that the caller adds. No warning: it would count tries."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator = plan.fitted(scale, delta, seed, X, y)
        return estimator, score.total(estimator, X_test, y_test)
