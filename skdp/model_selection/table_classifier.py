"""Base of classifiers that are derived from a noisy histogram of scores: one plan for a fit and for the histogram."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from skdp._checks import parameters
from skdp._checks.leaks import note_leaks, report_classes_read, silence
from skdp._checks.rows import check_labels, classes_of, column_names, take_rows, without_labels
from skdp._checks.weights import WeightReader
from skdp.accounting import DpEvent, WorstOfDpEvent, resolve_accountant
from skdp.accounting.calibration import calibrate_to
from skdp.accounting.statements.targets import target_of
from skdp.base.budget import PrivacyCost, ids_of
from skdp.base.private_step import private_steps
from skdp.metrics.histogram_evaluation import CountingPlan, RowsOfCounts
from skdp.metrics.private_evaluation import PrivateEvaluation
from skdp.metrics.scored_rows import score_of_two
from skdp.model_selection import candidates, whole_fit
from skdp.model_selection.candidates import seen_by_the_user
from skdp.model_selection.private_split import n_tested
from skdp.model_selection.whole_fit import PartRows, WholeEstimator, WholeFit, inner_of, last_of
from skdp.pipeline.joint_fit import weighted_steps
from skdp.pipeline.private_pipeline import PrivatePipeline

_ROOM = 0.99
"""Reduction of epsilon, or of mu, of a histogram beside a fit: the worst of two can cost slightly more than each."""


class TablePlan(NamedTuple):
    """The plan of a fit and a histogram before a row is read: the noise of the fit, times `scale`.

    `fitting` is None if the estimator is fitted.
    """

    table: PrivateEvaluation
    counting: CountingPlan
    cost: PrivacyCost
    fitting: candidates.FitPlan | None = None
    scale: float = 1.0


class TableClassifier(ClassifierMixin, WholeEstimator):
    """Base of binary classifiers that are derived from another one and from one noisy histogram of its scores.

    Constructor parameters are public, arguments of `fit` are private. A subclass has the parameters ``estimator,
    epsilon, delta, test_size, classes, weight_bound, adjacency, accountant, random_state``, and defines the
    post-processing of the histogram by `_check_purpose` and `_follow`.

    Notes
    -----
    **Guarantees.**

    - With a fitted `estimator`, the histogram of all rows is the only release, and determines the privacy cost.
    - With an unfitted one, each row, or group, is in the part to which the estimator is fitted or in the part whose
      scores are counted, independent of all records.
    - `privacy_event_` is the worst of the fit and the histogram, charged once, before either reads a row.
    - The result is a function of the releases and of public parameters.

    Proof of the privacy cost. Given the split, a record is in one part. In the part of the fit it enters through the
    fit alone, because the histogram is computed from the released fit and from other rows; in the other part, through
    the histogram alone. So both together cost no more than the larger of the two for each split (`WorstOfDpEvent`), and
    a mixture over splits costs no more (joint convexity). The split is drawn by index, and a zeroed-out record keeps
    its index. A group that replaces another one need not: it can have another identifier, and more or fewer rows. But
    all splits are equally likely, so those of both tables can be matched: it takes the part of the group that it
    replaces, and all others keep theirs (`private_split.draw_folds`). Under ``add_remove`` the part of each group is
    drawn independently, and removing a group does not change the part of any other.
    """

    epsilon: float | None
    delta: Any
    _fitted_epsilon: float

    _part_name = "estimator_"
    accountant: Any
    categories: Any = None  # public subgroups with their own part of the histogram
    by: str | None = None  # column of their labels

    def __post_init__(self) -> None:
        self.accountant = parameters.absolute_path(self.accountant)

    # --- definitions of a subclass ---

    def _check_purpose(self) -> None:
        """Check parameters of the subclass."""
        raise NotImplementedError(f"{type(self).__name__} must implement _check_purpose.")

    def _follow(self, evaluation: PrivateEvaluation) -> None:
        """Set the results that are computed from a noisy histogram."""
        raise NotImplementedError(f"{type(self).__name__} must implement _follow.")

    # --- the fit ---

    @parameters.silent_arithmetic
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit the estimator if it is not fitted, release the histogram of scores, and post-process it.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Private rows. If the estimator is fitted, they must be other rows than its training rows.
        y : array-like of shape (n_samples,)
            Private labels.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Private weights for the fit and the histogram.
        groups : array-like of shape (n_samples,), str or None, default=None
            Private group identifier of each row, such as a person or a household, or the name of a column of `X`, which
            is then not a feature. If set, the guarantee is for all rows of one group, otherwise for one row.

        Returns
        -------
        self : object
            Fitted classifier.

        Raises
        ------
        ValueError
            A parameter, the rows or the labels are invalid. No budget was consumed.
        BudgetExceededError
            The budget of the accountant does not permit the fit. No budget was consumed, and no row was read.
        """
        fit = WholeFit(self, "split and noise")
        fit.check(y)
        model = fit.model
        model._check_own_parameters()
        fit.read_shape(X, groups)
        plan = model._plan(fit, y, sample_weight)
        estimator = type(inner_of(model.estimator)).__name__
        fit.keep("epsilon", "delta", "test_size", "weight_bound", estimator=estimator)
        fit.plan_at(plan.cost)

        rows = fit.read(model._read_parts, fit, plan, y, sample_weight)
        counted = fit.read(model._read_counted, plan, rows)
        fit.charge()

        fit.learn(model._learn, fit, plan, rows, counted)
        return fit.publish()

    # --- before a row is read ---

    def _check_own_parameters(self) -> None:
        """Check parameters."""
        constraint = "a number in (0, 1), such as 0.25"
        parameters.check_real("test_size", self.test_size, above=0, below=1, constraint=constraint)
        WeightReader.of(self.weight_bound)
        self._check_purpose()
        resolve_accountant(self.accountant)
        inner = inner_of(self.estimator)
        if not hasattr(inner, "predict_proba") and not hasattr(inner, "decision_function"):
            raise parameters.WrongTypeError(
                f"`estimator` must be a classifier with predict_proba or decision_function, got "
                f"{type(inner).__name__}. Pass a fitted classifier as sklearn.frozen.FrozenEstimator(model)."
            )
        if self._is_frozen() and hasattr(inner, "fit"):
            check_is_fitted(inner)

    def _is_frozen(self) -> bool:
        return isinstance(self.estimator, FrozenEstimator)

    def _plan(self, fit: WholeFit, y: Any, sample_weight: Any) -> TablePlan:
        """Plan the histogram, and the fit to the other rows if the estimator is not fitted."""
        if self._is_frozen():
            table = self._new_table(self.classes, fit.n, 1.0)
            counting = table._plan_inside(self, y, sample_weight, fit.n_units)
            return TablePlan(table, counting, counting.cost)
        self.delta = fit.delta
        made = self._candidate(fit, y)
        tested = n_tested(self.test_size, fit.n, self.privacy_unit_)
        budget = target_of(self.epsilon, fit.delta)
        (fitting,) = candidates.fit_plans([{}], [made], fit.n - tested, fit.n_features, budget, fit.delta)
        table = self._new_table(last_of(made).classes, tested, _ROOM)
        held = tested if self.adjacency == "add_remove" else n_tested(self.test_size, fit.n_units, self.privacy_unit_)
        counting = table._plan_inside(self, y, sample_weight, held)

        def event_at(scale: float) -> DpEvent:
            return WorstOfDpEvent((fitting.event(scale), counting.cost.event))

        scale = calibrate_to(event_at, budget, adjacency=self.adjacency)
        return TablePlan(table, counting, fit.cost_of(event_at(scale)), fitting, scale)

    def _candidate(self, fit: WholeFit, y: Any) -> PrivatePipeline:
        """Return the estimator as a pipeline of private steps, with the budget and adjacency of the whole fit."""
        adjacency = parameters.stated_adjacency(self)
        template = candidates.private_template(self.estimator, self.epsilon, fit.delta, adjacency)
        for _, step in private_steps(template.steps):
            if step.adjacency != self.adjacency:
                raise ValueError(
                    f"`adjacency` of the estimator must be None or {self.adjacency!r}, that of {type(self).__name__}, "
                    f"got {step.adjacency!r}."
                )
            if step.accountant is not None:
                raise ValueError(
                    f"`accountant` of the estimator must be None, because it is not charged. Set `accountant` of "
                    f"{type(self).__name__}."
                )
        # The candidate has the public numbers of all rows; those of its part follow from them.
        fit.adopt(template, fit.rows)
        whole = candidates.with_public_rows(template, fit.n)
        made = candidates.make_candidate(whole, {}, fit.rows, fit.n_units)
        last = last_of(made)
        if "classes" not in last.get_params(deep=False):
            raise parameters.WrongTypeError(
                f"`estimator` must end in a classifier, got a pipeline that ends in a {type(last).__name__}."
            )
        # Classes are set for the whole fit, or read once, with a warning.
        classes = last.classes if self.classes is None else self.classes
        if classes is None:
            report_classes_read(self)
            classes = fit.read_before_plan(_read_two_classes, y, fit.n_rows)
        last.set_params(classes=classes)
        for name in weighted_steps(made):
            dict(made.steps)[name].set_params(weight_bound=self.weight_bound)
        return made

    def _new_table(self, classes: Any, n_public: int, share: float) -> PrivateEvaluation:
        """Return the evaluation whose histogram is released with a fraction of the budget."""
        model = inner_of(self.estimator) if self._is_frozen() else None
        known = classes if classes is not None else getattr(model, "classes_", (0, 1))
        _check_two(known)
        return PrivateEvaluation(
            model,
            epsilon=whole_fit.share_of_budget(self.epsilon, share),
            classes=classes,
            categories=self.categories,
            weight_bound=self.weight_bound,
            adjacency=parameters.with_n_public(self.adjacency, n_public),
        )

    # --- before the charge ---

    def _read_parts(self, fit: WholeFit, plan: TablePlan, y: Any, sample_weight: Any) -> PartRows:
        reader = WeightReader.of(self.weight_bound)
        weights = None if sample_weight is None else whole_fit.PartWeights.of(reader, sample_weight, fit.n_rows)
        rows = PartRows(fit.rows, check_labels(y, fit.n_rows, classes=plan.table.classes_), weights, fit.units)
        if plan.fitting is None:
            plan.table._read_scores(rows.X)
        else:
            plan.fitting.check_rows(rows.X, rows.y, rows.units, rows.given_weights)
        return rows

    def _read_counted(self, plan: TablePlan, rows: PartRows) -> RowsOfCounts:
        given = {"y": rows.y, "sample_weight": rows.given_weights, "by": self._labels_of_subgroups(rows.X)}
        return plan.table._read_counted(len(rows.y), rows.units, given)

    # --- after the charge ---

    def _learn(self, fit: WholeFit, plan: TablePlan, rows: PartRows, counted: RowsOfCounts) -> None:
        """Fit the estimator if it is not fitted, release the histogram of the other rows, and set the results."""
        table, X, fitted = plan.table, rows.X, inner_of(self.estimator)
        if plan.fitting is not None:
            held = fit.split(self.test_size)
            with silence():
                fitted = seen_by_the_user(plan.fitting.run(plan.scale, fit.seed(), rows.of_units(~held)))
            places, table.model = rows.places(held), fitted
            X, counted = take_rows(X, places), counted.take(places)
        table._release(plan.counting, table._read_scores(X), counted, fit.spawn("table"))
        table._set_cost(plan.counting.cost)
        self.estimator_, self.evaluation_, self._fitted_epsilon = fitted, table, table.epsilon_
        self._follow(table)
        for part in (table, *self._private_parts()):
            note_leaks(part, *self._fitted_leaks)
        self._fitted_inside = ids_of(self._private_parts())

    def _private_parts(self) -> list[Any]:
        inner = self.__dict__.get("estimator_")
        return [inner] if parameters.is_private(inner) or isinstance(inner, PrivatePipeline) else []

    @property
    def epsilon_(self) -> float:
        """Epsilon of `privacy_event_` at `delta_`, in nats."""
        return self._fitted_epsilon if self.__dict__.get("delta_") == 0.0 else super().epsilon_

    # --- the fitted classifier ---

    def _labels_of_subgroups(self, X: Any) -> Any:
        """Private labels of the subgroups of rows, None without any."""
        if self.by is None:
            return None
        if self.by not in (column_names(X) or ()):
            raise ValueError(f"`by` must be the name of a column of X, got {self.by!r}.")
        return X[self.by]

    def __sklearn_is_fitted__(self) -> bool:
        return "estimator_" in self.__dict__

    @parameters.silent_arithmetic
    def _scores(self, X: Any) -> np.ndarray:
        """Scores of the estimator, as in the histogram."""
        check_is_fitted(self)
        return score_of_two(self.estimator_, without_labels(self, X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = inner_of(self.estimator)
        tags.input_tags.sparse = hasattr(inner, "__sklearn_tags__") and get_tags(inner).input_tags.sparse
        tags.classifier_tags.multi_class = False
        tags.target_tags.required = True
        return tags


def _check_two(classes: Any) -> None:
    if len(classes) != 2:
        raise ValueError(f"Only binary classification is supported. `classes` has {len(classes)} classes.")


def _read_two_classes(y: Any, n_rows: int) -> list[Any]:
    """Return the two classes of labels, or raise an error."""
    classes: list[Any] = classes_of(check_labels(y, n_rows)).tolist()
    _check_two(classes)
    return classes
