"""`cross_validate`: one fit for each fold, and one noisy histogram of the out-of-fold scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import is_regressor

from skdp._checks.leaks import note_leaks, silence
from skdp._checks.parameters import check_count, check_real, silent_arithmetic, with_n_public, without_removed
from skdp._checks.rows import check_classes, take_rows
from skdp.accounting import DpEvent, GaussianDpEvent, compose, get_epsilon
from skdp.accounting.calibration import calibrate_to
from skdp.accounting.statements.targets import EpsilonTarget, target_of
from skdp.metrics.histogram_evaluation import CountedEvaluation, CountingPlan, RowsOfCounts
from skdp.metrics.private_evaluation import kind_of, n_columns
from skdp.metrics.scored_rows import ScoredRows
from skdp.model_selection.candidates import fit_plans, make_candidate, private_template, seen_by_the_user, worst_of
from skdp.model_selection.private_split import draw_folds, size_of_fold
from skdp.model_selection.whole_fit import PartRows, WholeFit, last_of, share_of_budget
from skdp.pipeline.private_pipeline import PrivatePipeline


@without_removed
def cross_validate(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    epsilon: Any = None,
    delta: float | str = "auto",
    cv: int = 5,
    score_fraction: float = 0.2,
    groups: Any = None,
    sample_weight: Any = None,
    one_vs_rest: bool = False,
    level: float = 0.95,
    return_estimator: bool = False,
    random_state: Any = None,
) -> dict[str, Any]:
    """Evaluate an estimator by cross-validation under one privacy budget.

    For each fold, the estimator is fitted to all other folds and scored on this fold.

    Parameters
    ----------
    estimator : private estimator or Pipeline
        Estimator to fit `cv` times. Its own budget and seed are ignored. If it has an accountant, the accountant is
        charged once, for all fits and scores.
    X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
        Private rows.
    y : array-like of shape (n_samples,) or (n_samples, n_labels)
        Private labels or targets. Multilabel targets must be 0 or 1.
    epsilon : float or Risk, default=None
        Privacy budget of all fits and scores together. A number, or a bound on membership-inference risk such as
        ``skdp.Risk(advantage=0.1)`` (``docs/membership_inference.md``).
    delta : float or "auto", default="auto"
        The delta of the (epsilon, delta) guarantee. See `skdp.DPLogisticRegression` for "auto".
    cv : int, default=5
        Number of folds. The fold of a row depends on its index and a secret key; with ``skdp.AddRemove`` it is drawn
        independently. Folds are not stratified, because labels are private.
    score_fraction : float, default=0.2
        Fraction of epsilon for the scores, in (0, 1). If `epsilon` is a risk, it is the fraction of mu. The noise of
        the fits is then the smallest for which fits and scores are within the budget.
    groups : array-like of shape (n_samples,), str or None, default=None
        Private group identifier of each row, or the name of a column of `X`, which is then not a feature. If set, the
        guarantee is for all rows of one group, which are in one fold and count once.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Private weights for fits and scores, clipped to the `weight_bound` of the estimator and divided by it.
    one_vs_rest : bool, default=False
        Whether to release the scores of each class of a multiclass classifier as well, for ``test_roc_auc`` and other
        means over the classes, and metrics of each class against all others. See `skdp.evaluate`.
    level : float, default=0.95
        Confidence level of the intervals of the evaluation.
    return_estimator : bool, default=False
        Whether to return the fitted estimators, at no additional privacy cost.
    random_state : int, RandomState or Generator instance or None, default=None
        Source of folds and noise. None draws a fresh secret key from the operating system. Any other value makes the
        result reproducible and issues a `PrivacyLeakWarning`.

    Returns
    -------
    scores : dict

        - ``test_...``, ndarrays of shape (cv,): noisy metrics of each fold, such as ``test_roc_auc`` and
          ``test_accuracy``, or ``test_r2`` for regressors;
        - ``test_score``: accuracy or R^2, as in the ``score`` method of the estimator;
        - ``evaluation``: the `skdp.metrics.PrivateEvaluation` of all folds together (or its multiclass, multilabel or
          regression counterpart), with intervals and the guarantee of the whole cross-validation;
        - ``estimator``: list of the fitted estimators, if `return_estimator` is True.

        Fit times are not returned, because they depend on the rows.

    Raises
    ------
    ValueError
        A parameter, the rows or the labels are invalid. No budget was consumed.
    BudgetExceededError
        The budget of the accountant does not permit the cross-validation. No budget was consumed, and no row was read.

    See Also
    --------
    skdp.evaluate : Evaluate a model on rows that it was not fitted to.
    private_train_test_split : Split a data set into a training part and a test part with one accountant each.

    Notes
    -----
    The metrics of `evaluation` describe models that are fitted to part of the rows with part of the budget. With a
    small budget they are far below the score of a final model, which is fitted to all rows with the whole budget: ROC
    AUC 0.59 instead of 0.77 for 2,000 simulated records at epsilon 0.3. Intervals account for the privacy noise and for
    sampling of the test rows; the models are taken as fixed.

    **Guarantees.** All fits and all scores together are (`epsilon`, `delta`)-differentially private for one row, or for
    one group, if `classes` of the estimator is set and `random_state` is None. The fits are accounted for by sequential
    composition. The scores of all folds together have the privacy cost of one fold.

    Proof. The fold of a row is a function of its index and of a key, or is drawn independently; all rows of a group are
    in one fold. The fold therefore does not depend on any record. A group that replaces another one can have another
    index, but folds of both tables can be matched so that it takes the fold of that group. For given folds, take a row
    of fold j. The fit that leaves fold j out does not read it. The other `cv` - 1 fits read it, and each may depend on
    the ones before it (adaptive composition). Given all fitted models, the scores are one histogram with a part for
    each fold. The row is counted in the part of fold j alone, as in one evaluation. So a row of fold j is covered by
    the composition of `cv` - 1 fits and one histogram, and the event is the worst case over j. A mixture over folds
    costs no more (joint convexity), and the output is a function of all models and metrics.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLogisticRegression
    >>> from skdp.model_selection import cross_validate
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(5000, 3))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> scores = cross_validate(DPLogisticRegression(classes=[0, 1]), X, y, epsilon=4.0, delta=1e-6, cv=3)
    >>> scores["test_score"].shape
    (3,)
    >>> round(scores["evaluation"].roc_auc.value)
    1
    """
    found = CrossValidation(estimator, epsilon, delta, cv, score_fraction, one_vs_rest, level, random_state)
    found.fit(X, y, sample_weight, groups)
    by_fold = [each.summary() for each in found.evaluation_._parts()]
    scores = {f"test_{name}": np.array([float(each[name].value) for each in by_fold]) for name in by_fold[0]}
    whole = {"test_score": scores["test_r2" if is_regressor(estimator) else "test_accuracy"], **scores}
    whole["evaluation"] = found.evaluation_
    return {**whole, "estimator": found.estimators_} if return_estimator else whole


class OutOfFoldScores:
    """Scores of the rows of each fold by the model that was fitted to the other folds.

    Parameters
    ----------
    models : list of estimator
        One for each fold.
    X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
    folds : ndarray of shape (n_rows,)
    score : callable
        Maps a model and rows to one number per row, or to several.
    width : tuple of int
        Shape of the score of a row, as for `ScoredRows`.
    """

    def __init__(
        self, models: list[Any], X: Any, folds: np.ndarray, score: Callable[[Any, Any], np.ndarray],
        width: tuple[int, ...],
    ) -> None:  # fmt: skip
        self._models, self._X, self._folds, self._score, self._width = models, X, folds, score, width

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Generate indices of rows and their scores."""
        for fold, model in enumerate(self._models):
            rows = np.flatnonzero(self._folds == fold)
            for block, scores in ScoredRows(model, take_rows(self._X, rows), self._score, self._width).blocks():
                yield rows[block], scores


class FoldsPlan(NamedTuple):
    """The plan before a row is read: the fit that leaves each fold out, with its noise times `scale`."""

    fits: list[Any]  # of `FitPlan`
    evaluation: CountedEvaluation
    counting: CountingPlan
    scale: float
    event: DpEvent


@dataclass
class CrossValidation:
    """The fit of `cross_validate`, which documents the parameters.

    Attributes
    ----------
    evaluation_ : CountedEvaluation
        Of all folds together.
    estimators_ : list of estimator
        The fitted models, one for each fold.
    """

    estimator: Any
    epsilon: Any
    delta: Any
    cv: Any
    score_fraction: Any
    one_vs_rest: Any
    level: Any
    random_state: Any

    _public_name = "cross_validate"
    _fitted_leaks = ()

    @silent_arithmetic
    def fit(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> Self:
        """Fit the estimator without each fold, and count the scores of this fold."""
        fit = WholeFit(self, "folds and noise")
        fit.check(y)
        model = fit.model
        check_count("cv", model.cv, at_least=2, constraint="an integer of at least 2, such as 5")
        check_real(
            "score_fraction", model.score_fraction, above=0, below=1, constraint="a number in (0, 1), such as 0.2"
        )
        template = private_template(model.estimator, model.epsilon, model.delta)
        fit.read_shape(X, groups, template)
        plan = model._plan(fit, template, y, sample_weight)
        estimator = type(model.estimator).__name__
        fit.keep("epsilon", "cv", "score_fraction", delta=fit.delta, estimator=estimator)
        fit.plan_at(fit.cost_of(plan.event))

        rows = fit.read(model._read_parts, fit, plan)
        given = {"y": rows.y, "sample_weight": rows.given_weights, "by": None}
        counted = fit.read(plan.evaluation._read_counted, fit.n_rows, fit.units, given)
        fit.charge()

        fit.learn(model._learn, fit, plan, rows, counted)
        return fit.publish()

    def _private_parts(self) -> list[Any]:
        return []  # diagnostics of fits and models about their rows are not published

    # --- before a row is read ---

    def _plan(self, fit: WholeFit, template: PrivatePipeline, y: Any, sample_weight: Any) -> FoldsPlan:
        """Plan the fits and the histogram of scores."""
        if self.cv > fit.n:
            raise ValueError(f"`cv` must be at most the number of rows or groups ({fit.n}), got {self.cv}.")
        budget = target_of(self.epsilon, fit.delta)
        # Start with its fraction of mu**2; the noise of all fits is scaled together later.
        epsilon = get_epsilon(GaussianDpEvent(math.sqrt(self.cv - 1) / budget.mu), fit.delta)
        template.set_params(epsilon=epsilon, delta=fit.delta)
        made = make_candidate(template, {}, fit.rows, fit.n_units)
        fit.settle_candidates([made], y, sample_weight, "a cross-validation")
        evaluation = self._new_evaluation(fit, made, y)
        counting = evaluation._plan_inside(self, y, sample_weight, fit.n_units)
        sizes = [fit.n - size_of_fold(fit.n, self.cv, fold) for fold in range(self.cv)]
        target = EpsilonTarget(epsilon, fit.delta)
        plans = {size: fit_plans([{}], [made], size, fit.n_features, target, fit.delta)[0] for size in set(sizes)}
        fits = [plans[size] for size in sizes]

        def event_at(scale: float) -> DpEvent:
            """Return the event for the worst row: all fits except one, and one histogram of scores."""
            each = [fit.event(scale) for fit in fits]
            return worst_of([compose([*each[:j], *each[j + 1 :], counting.cost.event]) for j in range(self.cv)])

        scale = calibrate_to(event_at, budget, adjacency=fit.adjacency)
        return FoldsPlan(fits, evaluation, counting, scale, event_at(scale))

    def _new_evaluation(self, fit: WholeFit, made: PrivatePipeline, y: Any) -> CountedEvaluation:
        """Return the evaluation of all folds, with its fraction of the budget."""
        last = last_of(made)
        classes = getattr(last, "classes", None)
        y_bounds = getattr(last, "y_bounds", None) if is_regressor(last) else None
        n_labels = n_columns(y)
        if classes is not None and n_labels == 1:
            classes = check_classes("classes", classes)  # in the order of the columns of scores
        kind = kind_of(None, classes, y_bounds, n_labels=n_labels, one_vs_rest=self.one_vs_rest)
        estimator = seen_by_the_user(made)
        if not any(hasattr(estimator, each) for each in kind._methods):
            raise ValueError(
                f"`estimator` must be a classifier or a regressor with {' or '.join(kind._methods)}, got "
                f"{type(estimator).__name__}."
            )
        evaluation = kind(
            None,
            epsilon=share_of_budget(self.epsilon, self.score_fraction),
            classes=classes,
            y_bounds=y_bounds,
            weight_bound=fit.weight_bound,
            level=self.level,
            adjacency=with_n_public(fit.adjacency, fit.n),
            random_state=self.random_state,
        )
        evaluation._n_folds = self.cv
        return evaluation

    # --- before the charge ---

    def _read_parts(self, fit: WholeFit, plan: FoldsPlan) -> PartRows:
        rows = fit.read_parts()
        for each in {each.n: each for each in plan.fits}.values():
            each.check_rows(rows.X, rows.y, rows.units)
        return rows

    # --- after the charge ---

    def _learn(self, fit: WholeFit, plan: FoldsPlan, rows: PartRows, counted: RowsOfCounts) -> None:
        """Fit the models, and release the histogram of their scores."""
        folds, evaluation = draw_folds(fit.spawn("folds"), fit.n_units, self.cv, fit.adjacency), plan.evaluation
        with silence():  # warnings of a fit or a model may depend on its rows
            parts = [rows.of_units(folds != fold) for fold in range(self.cv)]
            self.estimators_ = [
                plan.fits[fold].model(plan.scale, fit.seed(fold), part, fit.accountant)
                for fold, part in enumerate(parts)
            ]
            of_rows = folds if fit.units is None else folds[fit.units.codes]
            scores = OutOfFoldScores(self.estimators_, rows.X, of_rows, evaluation._score, evaluation._width())
            evaluation._release(plan.counting, scores, counted._replace(subgroups=of_rows), fit.spawn("counts"))
        note_leaks(evaluation, *self._fitted_leaks)
        evaluation._fitted_n_public = fit.n
        evaluation._set_cost(fit.cost, fit.releases)
        self.evaluation_ = evaluation
