"""`cross_validate`: fits to all folds but one, and one noisy table of how each scores the fold that it has not seen."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor

from skdp._checks.default_delta import check_delta, delta_for
from skdp._checks.leak_setting import silence
from skdp._checks.leaks import CLASSES_READ, note_leaks
from skdp._checks.parameters import check_count, check_real
from skdp._checks.protocols import is_private
from skdp._checks.row_traits import indexable, take_rows
from skdp._checks.rows import check_classes, table_shape
from skdp._checks.sources import refuse_rows_elsewhere
from skdp._checks.units import ROW, take_unit
from skdp._fit.conductor import PhasedFit, learn_under_charge
from skdp._fit.fit import units_of
from skdp._fit.payment import Payment
from skdp._fit.private_step import private_steps
from skdp._guard.public_rules import takes_any_types
from skdp._guard.public_steps import check_types
from skdp._typing import Doubles
from skdp.accounting import DpEvent, GaussianDpEvent, compose, get_epsilon
from skdp.accounting.calibration.noise import calibrate_to
from skdp.accounting.targets import EpsilonTarget, Risk, target_of
from skdp.base import Price, check_whole_budget
from skdp.evaluation.counted import CountedEvaluation
from skdp.evaluation.private_evaluation import kind_of, n_columns
from skdp.evaluation.scored_rows import ScoredRows
from skdp.model_selection.candidates import FitPlan, fit_plans, make_candidate, private_template, seen_by_the_user
from skdp.model_selection.part_rows import (
    PartRows,
    PartWeights,
    check_bounds_are_given,
    checked_labels,
    common_weight_reader,
    last_of,
    name_classes,
)
from skdp.model_selection.parts import draw_folds, size_of_fold
from skdp.model_selection.search_plan import worst_of
from skdp.pipeline import PrivatePipeline, public_rows_of

_WHAT = "a cross-validation"


def cross_validate(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    epsilon: float | None = None,
    delta: float | str = "auto",
    risk: Mapping[str, float] | None = None,
    cv: int = 5,
    score_share: float = 0.2,
    groups: Any = None,
    sample_weight: Any = None,
    one_vs_rest: bool = False,
    level: float = 0.95,
    return_estimator: bool = False,
    random_state: Any = None,
) -> dict[str, Any]:
    """Fit to all folds but one, and score that one, for each fold, under one budget.

    Parameters
    ----------
    estimator : private estimator or Pipeline
        Estimator to fit `cv` times. Its own budget and seed are not used. An accountant that it carries is charged
        once, for all fits and scores.
    X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
        Private rows.
    y : array-like of shape (n_samples,) or (n_samples, n_labels)
        Private labels or targets. Several labels a row are 0 or 1 each, for an estimator that takes them.
    epsilon : float or None, default=None
        Privacy budget of all fits and scores together. Exactly one of it and `risk` is given.
    delta : float or "auto", default="auto"
        Probability with which the guarantee may fail. See `skdp.DPLogisticRegression` for "auto".
    risk : dict or None, default=None
        Budget stated as what an attacker may gain, instead of `epsilon`: ``{"advantage": a}``, or ``{"tpr": t, "fpr":
        f}``. See ``docs/risk.md``.
    cv : int, default=5
        Number of folds. A row is in one by its number and a secret key, under ``adjacency="add_remove"`` by a coin,
        never by its label: there are no stratified folds.
    score_share : float, default=0.2
        Share of epsilon for the scores, or of mu where `risk` is given, in (0, 1). The noise of the fits is then the
        least at which fits and scores are within the budget together.
    groups : array-like of shape (n_samples,), str or None, default=None
        Private label of the unit of each row, or the name of a column of `X`, which is no feature then. The guarantee
        is then for all rows of one label together, which are in one fold and are counted once.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Private weights for fits and scores, divided by the `weight_bound` of the estimator and cut at it.
    one_vs_rest : bool, default=False
        Whether to count the scores of each of more than two classes as well, for ``test_roc_auc`` and other means over
        the classes, and figures of each against all others. See `skdp.evaluate`.
    level : float, default=0.95
        Probability with which an interval of the evaluation covers its figure.
    return_estimator : bool, default=False
        Whether the fitted estimators are returned too, which costs nothing more.
    random_state : int, RandomState or Generator instance or None, default=None
        Source of folds and noise. None draws a fresh secret key from the operating system. Any other value makes the
        result reproducible and issues a `PrivacyLeakWarning`.

    Returns
    -------
    scores : dict

        - ``test_...``, ndarrays of shape (cv,): noisy figures of each fold, such as ``test_roc_auc`` and
          ``test_accuracy``, or ``test_r2`` of regressors;
        - ``test_score``: accuracy or R^2, as the estimator's ``score`` has it;
        - ``evaluation``: the `skdp.evaluation.PrivateEvaluation` of all folds together, or that of more classes, of
          several labels or of a regressor, with intervals for the figures and the price of the whole;
        - ``estimator``: list of the fitted estimators, if `return_estimator` is set.

        There are no times: how long a fit takes depends on its rows.

    Raises
    ------
    ValueError
        A parameter, the rows or the labels are invalid. Nothing was charged.
    BudgetExceededError
        The ceiling of the accountant does not admit the whole. Nothing was charged, and no row was read.

    See Also
    --------
    skdp.evaluate : Score a model on rows that it was not fitted to.
    private_train_test_split : Two parts of a data set, one of which is charged for the fit and one for the score.

    Notes
    -----
    The figures of `evaluation` are of models that are fitted to a part of the rows, with a part of the budget. With a
    small budget they are far below the score of a final model, fitted to all rows with the whole budget: AUROC 0.59
    instead of 0.77 for 2,000 simulated records at epsilon 0.3. Printed figures state this. Intervals allow for noise
    and for the draw of the rows that are scored, and take the models as they are.

    **Guarantees.** All fits and all scores together are (`epsilon`, `delta`)-differentially private for one row, or for
    one unit, if the estimator names its classes and `random_state` is None. The fits are charged one after the other,
    never in parallel, and the scores of all folds at the price of one.

    Proof. The fold of a row is a function of its number and of a key, or a coin of its own, and that of a unit has all
    of its rows, so no record has a say in it. A unit that replaces another one can have another number, but folds of
    both tables can be matched so that it takes the fold of that unit (`skdp.model_selection.parts.draw_folds`). For
    given folds, take a row of fold j. The fit that leaves
    fold j out does not read it. The other `cv` - 1 fits read it, and each may depend on the ones before it (adaptive
    composition). Given all fitted models, the scores are one table with a part for each fold; the row is counted in the
    part of fold j alone, there as one evaluation counts it, so that the table moves by what that does
    (`skdp.evaluation.counted.CountedEvaluation`; with several cells a row, those of
    `skdp.evaluation.OneVsRestEvaluation` and `skdp.evaluation.MultilabelEvaluation`). So a row of fold j pays for `cv`
    - 1 fits and one table, and the event is the worst over j of these compositions. A mixture over folds costs no more
    (joint convexity), and whoever sees all models and figures sees a function of them.

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
    >>> scores["evaluation"].roc_auc.low > 0.8
    True
    """
    fit = FoldsFit(
        estimator, (X, y, sample_weight, groups), epsilon=epsilon, delta=delta, risk=risk, cv=cv,
        score_share=score_share, one_vs_rest=one_vs_rest, level=level, random_state=random_state,
    )  # fmt: skip
    learn_under_charge(fit)
    evaluation: Any = fit.work
    by_fold = [each.summary() for each in evaluation._parts()]
    scores = {f"test_{name}": np.array([float(each[name].value) for each in by_fold]) for name in by_fold[0]}
    found = {"test_score": scores["test_r2" if is_regressor(estimator) else "test_accuracy"], **scores}
    found["evaluation"] = evaluation
    return {**found, "estimator": fit.models} if return_estimator else found


class OutOfFoldScores:
    """Scores of the rows of each fold by the model that was fitted to the others.

    Parameters
    ----------
    models : list of estimator
        One for each fold.
    X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
    folds : ndarray of shape (n_rows,)
    score : callable
        Maps a model and rows to one number a row, or to one row of numbers.
    width : tuple of int
        Shape of what `score` says of a row, as of `ScoredRows`.
    """

    def __init__(
        self, models: list[Any], X: Any, folds: NDArray[np.int64], score: Callable[[Any, Any], Doubles],
        width: tuple[int, ...],
    ) -> None:  # fmt: skip
        self._models, self._X, self._folds, self._score, self._width = models, X, folds, score, width

    def blocks(self) -> Iterator[tuple[NDArray[np.intp], Doubles]]:
        """Generate numbers of rows and their scores."""
        for fold, model in enumerate(self._models):
            rows = np.flatnonzero(self._folds == fold)
            for block, scores in ScoredRows(model, take_rows(self._X, rows), self._score, self._width).blocks():
                yield rows[block], scores


class FoldsFit(PhasedFit):
    """All fits and the table of scores: one plan, one charge. See `cross_validate`.

    Attributes
    ----------
    work : CountedEvaluation
        Of all folds together.
    models : list of estimator
        The fitted models, one for each fold.
    """

    work: Any
    _labels: Any = None

    def __init__(
        self, estimator: Any, rows: tuple[Any, Any, Any, Any], *, epsilon: Any, delta: Any, risk: Any, cv: Any,
        score_share: Any, one_vs_rest: Any, level: Any, random_state: Any,
    ) -> None:  # fmt: skip
        refuse_rows_elsewhere(_WHAT, rows[0])
        super().__init__(estimator, None)
        self._X, self._y, self._given, self._groups = rows
        self.epsilon, self.risk = epsilon, risk
        check_whole_budget(self)
        self._delta: Any = check_delta(delta)
        self._cv = check_count("cv", cv, at_least=2, remedy="choose a number of folds from 2, such as 5")
        self._share = check_real("score_share", score_share, above=0, below=1, remedy="choose a share, such as 0.2")
        self._one_vs_rest, self._level, self._random_state = one_vs_rest, level, random_state

    def plan(self) -> None:
        """See `PhasedFit`. Classes that no one named are read from the labels here."""
        if self._y is None:
            raise ValueError(f"y=None with {_WHAT}, which scores the rows: give one label or target a row.")
        self._template = template = private_template(self.target, self.epsilon, self._delta, self.risk)
        self._accountant = template._payment().accountant
        self.adjacency = private_steps(template.steps)[0][1].adjacency
        n_rows, n_units, n_features = self._find_units(template)
        self.n_public = n = public_rows_of(template, n_units)
        if self._cv > n:
            raise ValueError(f"cv={self._cv} with {n} rows or units: choose fewer folds.")
        self.delta = delta_for(self._delta, self._accountant, n)
        self._budget = target_of(self.epsilon, self.delta, self.risk)
        template.set_params(epsilon=self._epsilon_of_a_fit(), delta=self.delta, risk=None)
        made = make_candidate(template, {}, self._X, n_units)
        check_bounds_are_given([made], _WHAT)
        self._reader = None if self._given is None else common_weight_reader([made], self._given, _WHAT)
        self._labels = name_classes([made], self._y, n_rows)
        self._last = last_of(made)
        self.work = evaluation = self._new_evaluation(made)
        terms = evaluation._check_terms()
        terms = terms._replace(stream=terms.stream.spawn("cross_validate"))
        note_leaks(evaluation, *([] if self._labels is None else [CLASSES_READ]))
        self._stream = terms.stream
        self._counting = evaluation._plan_checked(terms, (n_units, 1))
        self._fits = self._plan_fits(made, n, n_features)
        self._scale = calibrate_to(self._event_at, self._budget, adjacency=self.adjacency)
        self.event = self._event_at(self._scale)

    def _find_units(self, template: PrivatePipeline) -> tuple[int, int, int]:
        """Take the labels of units out of the table; the numbers of rows, of units and of columns."""
        self._X, self.units = units_of(template, self._X, self._groups, self.payment())
        template._note_unit()
        if not is_private(template.steps[0][1]) and not takes_any_types(template.steps[0][1]):
            check_types(self._X)
        self._X = indexable(self._X)
        n_rows, n_features = table_shape(self._X)
        return n_rows, n_rows if self.units is None else self.units.n_units, n_features

    def _epsilon_of_a_fit(self) -> float:
        """Epsilon at its share of mu**2, for a start: the noise of all fits is scaled together later."""
        return get_epsilon(GaussianDpEvent(math.sqrt(self._cv - 1) / self._budget.mu), self.delta)

    def _budget_of_scores(self) -> dict[str, Any]:
        """The share of the scores."""
        if self.risk is None:
            return {"epsilon": self._share * self.epsilon}
        return {"risk": Risk.read(self.risk).of_size(self._share * self._budget.mu).stated}

    def _new_evaluation(self, made: PrivatePipeline) -> CountedEvaluation:
        """The evaluation of all folds, at its share of epsilon."""
        classes, y_bounds = getattr(self._last, "classes", None), getattr(self._last, "y_bounds", None)
        if not is_regressor(self._last):
            y_bounds = None
        n_labels = n_columns(self._y)
        if classes is not None and n_labels == 1:
            classes = check_classes("classes", classes)  # in the order of the columns of scores
        kind = kind_of(None, classes, y_bounds, n_labels=n_labels, one_vs_rest=self._one_vs_rest)
        evaluation = kind(
            None,
            **self._budget_of_scores(),
            classes=classes,
            y_bounds=y_bounds,
            weight_bound=None if self._reader is None else self._reader.bound,
            level=self._level,
            adjacency=self.adjacency,
            n_samples_public=self.n_public,
            n_groups_public=self.n_public,
            random_state=self._random_state,
        )
        estimator = seen_by_the_user(made)
        if not any(hasattr(estimator, each) for each in kind._methods):
            raise ValueError(
                f"estimator is a {type(estimator).__name__} without {' or '.join(kind._methods)}: give a classifier or "
                "a regressor."
            )
        take_unit(evaluation, self._template)
        evaluation._note_targets(self._y)
        evaluation._n_folds, evaluation._has_weights = self._cv, self._given is not None
        return evaluation

    def _plan_fits(self, made: PrivatePipeline, n: int, n_features: int) -> list[FitPlan]:
        """The fit that leaves each fold out; folds may differ by a row, or unit, in size."""
        sizes = [n - size_of_fold(n, self._cv, fold) for fold in range(self._cv)]
        epsilon = self._epsilon_of_a_fit()
        plans = {
            size: fit_plans([{}], [made], size, n_features, EpsilonTarget(epsilon, self.delta), self.delta)[0]
            for size in dict.fromkeys(sizes)
        }
        return [plans[size] for size in sizes]

    def _event_at(self, scale: float) -> DpEvent:
        """What the worst row pays: all fits but that which leaves its fold out, and one table of scores."""
        fits = [fit.event(scale) for fit in self._fits]
        return worst_of([compose([*fits[:j], *fits[j + 1 :], self._counting.event]) for j in range(self._cv)])

    def payment(self) -> Payment:
        """See `PhasedFit`."""
        kept = {
            "estimator": type(self.target).__name__,
            **({"epsilon": self.epsilon} if self.risk is None else {"risk": dict(self.risk)}),
            "delta": getattr(self, "delta", self._delta),
            "cv": self._cv,
            "score_share": self._share,
            "seeded": self._random_state is not None,
        }
        if name := self._template.__dict__.get("_fitted_group_name"):
            kept["groups"] = name
        unit = self._template.__dict__.get("privacy_unit_", ROW)
        return Payment(self._accountant, "cross_validate", self.adjacency, kept, unit)

    def read(self) -> None:
        """See `PhasedFit`."""
        n_rows = table_shape(self._X)[0]
        if self._labels is None:
            self._labels = checked_labels(self._last, self._y, n_rows)
        for fit in {fit.n: fit for fit in self._fits}.values():
            fit.check_rows(self._X, self._labels, self.units)
        weights = None if self._reader is None else PartWeights.of(self._reader, self._given, n_rows)
        self._rows = PartRows(self._X, self._labels, weights, self.units)
        self._targets = self.work._check_targets(
            self._labels, n_rows, groups=self.units, sample_weight=self._given, by=None
        )

    def learn(self) -> str:
        """See `PhasedFit`. An interrupted cross-validation has no result."""
        folds = draw_folds(self._stream.spawn("folds"), self._rows.n_units, self._cv, self.adjacency)
        with silence():  # what a fit or a model would say of its rows
            self.models = [self._fitted(j, self._rows.of_units(folds != j)) for j in range(self._cv)]
            folds_of_rows = folds if self.units is None else folds[self.units.codes]
            scores = OutOfFoldScores(self.models, self._X, folds_of_rows, self.work._score, self.work._width())
            self.work._learn(self._counting, scores, self._targets._replace(subgroups=folds_of_rows))
        epsilon = get_epsilon(self.event, self.delta, adjacency=self.adjacency)
        self.work._set_price(Price(self.event, epsilon, self.delta))
        return ""

    def _fitted(self, fold: int, rows: PartRows) -> Any:
        """The model of all folds but one."""
        seeded = self._random_state is not None
        seed = int(self._stream.spawn("seed", fold).words(1)[0] >> np.uint64(2)) if seeded else None
        given = None if rows.weights is None else rows.weights.given
        model = self._fits[fold].run(self._scale, seed, rows.X, rows.y, given, rows.units, rows.like)
        for _, step in private_steps(model.steps):
            step.estimator.set_params(accountant=self._accountant)
        return seen_by_the_user(model)


__all__ = ["cross_validate"]
