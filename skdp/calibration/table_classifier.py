"""What classifiers share that follow from a noisy table of scores: one plan for a fit and for the table."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from skdp._checks.arithmetic import silent_arithmetic
from skdp._checks.default_delta import check_delta, delta_for
from skdp._checks.leak_setting import report_leak, silence
from skdp._checks.leaks import CLASSES_READ, begin_record, note_leaks
from skdp._checks.parameters import WrongTypeError, absolute_path, check_choice, check_count, check_real
from skdp._checks.protocols import is_private
from skdp._checks.row_traits import first_row, indexable, take_rows
from skdp._checks.rows import check_labels, classes_of, table_shape, without_labels
from skdp._checks.sources import refuse_rows_elsewhere
from skdp._checks.units import ROW, Units, take_unit
from skdp._checks.weights import WeightReader, check_weights
from skdp._fit.conductor import PhasedFit, conduct
from skdp._fit.fit import units_of
from skdp._fit.payment import Payment
from skdp._fit.private_step import private_steps
from skdp._fit.releases import copy_to_fit, ids_of, new_release
from skdp._guard.foreign_parameters import refuse_foreign, refuse_foreign_in_init
from skdp._guard.public_rules import takes_any_types
from skdp._guard.public_steps import check_types
from skdp._typing import Doubles
from skdp.accounting import ADJACENCIES, DpEvent, WorstOfDpEvent, resolve_accountant
from skdp.accounting.calibration.noise import calibrate_to
from skdp.accounting.targets import Risk, target_of
from skdp.base import JointPrice, check_whole_budget, root_stream
from skdp.evaluation.counted import RowsOfCounts
from skdp.evaluation.private_evaluation import PrivateEvaluation
from skdp.evaluation.scored_rows import score_of_two
from skdp.model_selection.candidates import (
    FitPlan,
    fit_plans,
    make_candidate,
    private_template,
    seen_by_the_user,
    with_public_rows,
)
from skdp.model_selection.parts import draw_by_number, n_tested
from skdp.pipeline import PrivatePipeline, weighted_steps

_ROOM = 0.99
"""Part of epsilon, or of mu, that a table beside a fit costs: the worst of two may be priced a little above either."""


def _inner_of(estimator: Any) -> Any:
    """The model that is fitted, or was."""
    return estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator


def inner_has(method: str) -> Any:
    return lambda self: hasattr(self.__dict__.get("estimator_", _inner_of(self.estimator)), method)


class TableClassifier(JointPrice, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Base of classifiers of two classes that follow from another one, and from one noisy table of its scores.

    Constructor parameters are public, arguments of `fit` are private. A subclass has the parameters ``estimator,
    epsilon, delta, risk, test_size, classes, weight_bound, adjacency, n_samples_public, n_groups_public, accountant,
    random_state``, and says by `_check_purpose` and `_follow` what follows from the table.

    Notes
    -----
    **Guarantees.**

    - With a fitted `estimator` the table alone is released, of all rows, and the price is that of the table.
    - With an unfitted one each row, or unit, is in the part that the estimator is fitted to or in the part whose scores
      are counted, and no record has a say in where any is.
    - `privacy_event_` is the worst of the fit and the table, charged once, before either reads a row.
    - What follows is a function of what was released and of public parameters.

    Proof of the price. Given the split, a record is in one part. In the part that is fitted to it enters through the
    fit alone, as the table is computed from what the fit released and from other rows; in the other part, through the
    table alone. So both together cost no more than the larger of the two for each split (`WorstOfDpEvent`), and a
    mixture over splits no more (joint convexity). The split is drawn by number, and a record that becomes null keeps
    its number. A unit that replaces another one need not: it can have another label, and more or fewer rows. But all
    splits are equally likely, so those of both tables can be matched: it takes the part of the unit that it replaces,
    and all others keep theirs (`skdp.model_selection.parts.draw_folds`). Under ``add_remove`` each unit has a coin of
    its own, and one that leaves moves none.
    """

    epsilon: float | None
    risk: Any
    _fitted_epsilon: float

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        refuse_foreign_in_init(cls)

    def set_params(self, **params: Any) -> Self:
        """Set the parameters of this classifier.

        Parameters
        ----------
        **params : dict of str to object
            Parameters of it, or of the estimator as ``estimator__parameter``. A path given as `accountant` is made
            absolute.

        Returns
        -------
        self : object
            The classifier itself.
        """
        refuse_foreign(type(self), params)
        if "accountant" in params:
            params["accountant"] = absolute_path(params["accountant"])
        super().set_params(**params)
        return self

    # --- what a subclass says ---

    def _check_purpose(self) -> None:
        """Refuse parameters of its own."""
        raise NotImplementedError(f"{type(self).__name__} does not check its parameters: write _check_purpose.")

    def _follow(self, evaluation: PrivateEvaluation) -> None:
        """Set what follows from a noisy table."""
        raise NotImplementedError(f"{type(self).__name__} does not say what follows: write _follow.")

    def _categories(self) -> Any:
        """Public subgroups that the table has apart, None without any."""
        return None

    def _subgroups_of(self, X: Any) -> Any:
        """Private labels of the subgroups of rows, None without any."""
        return None

    # --- the fit ---

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit the estimator if it is not fitted, release the table, and take from it what follows.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Private rows; other ones than those that a fitted estimator was fitted to.
        y : array-like of shape (n_samples,)
            Private labels.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Private weights, for fit and table alike.
        groups : array-like of shape (n_samples,), str or None, default=None
            Private label of the unit of each row, such as a person or a household, or the name of a column of `X`,
            which is no feature then. The guarantee is then for all rows of one label together, else for one row.

        Returns
        -------
        self : object
            Fitted classifier.

        Raises
        ------
        ValueError
            A parameter, the rows or the labels are invalid. Nothing was charged.
        BudgetExceededError
            The ceiling of the accountant does not admit the whole. Nothing was charged, and no row was read.
        """
        conduct(TableFit(self, X, y, sample_weight, groups))
        return self

    def _is_frozen(self) -> bool:
        return isinstance(self.estimator, FrozenEstimator)

    def _public_n(self, n: int) -> int:
        """The number of rows, or units, that rules may use."""
        is_row = self.__dict__.get("privacy_unit_", ROW) == ROW
        name, what = ("n_samples_public", "rows") if is_row else ("n_groups_public", "groups")
        given = getattr(self, name)
        if given is not None:
            return check_count(name, given, remedy="give a whole number above 0")
        if self.adjacency == "add_remove":
            raise ValueError(
                f"{name}=None with adjacency='add_remove': the number of {what} is private there, so give {name}, a "
                "round number near it, or use adjacency='zero_out'."
            )
        return n

    def _private_parts(self) -> list[Any]:
        inner = self.__dict__.get("estimator_")
        return [inner] if is_private(inner) or isinstance(inner, PrivatePipeline) else []

    @property
    def epsilon_(self) -> float:
        """Price of `privacy_event_` at `delta_`, in nats."""
        return self._fitted_epsilon if self.__dict__.get("delta_") == 0.0 else super().epsilon_

    # --- the fitted classifier ---

    def __sklearn_is_fitted__(self) -> bool:
        return "estimator_" in self.__dict__

    @property
    def classes_(self) -> NDArray[Any]:
        """Classes, that of the scores last."""
        return np.asarray(self._of_inner("classes_"))

    @property
    def n_features_in_(self) -> int:
        """Columns seen in ``fit``."""
        return int(self._of_inner("n_features_in_"))

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the columns seen in ``fit``, where they have names."""
        return np.asarray(self._of_inner("feature_names_in_"))

    def _of_inner(self, name: str) -> Any:
        if "estimator_" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no {name} before fit.")
        return getattr(self.estimator_, name)

    @silent_arithmetic
    def _scores(self, X: Any) -> Doubles:
        """Scores of the estimator, as they were counted."""
        check_is_fitted(self)
        return score_of_two(self.estimator_, without_labels(self, X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = _inner_of(self.estimator)
        tags.input_tags.sparse = hasattr(inner, "__sklearn_tags__") and get_tags(inner).input_tags.sparse
        tags.classifier_tags.multi_class = False
        tags.target_tags.required = True
        return tags


class _Rows(NamedTuple):
    """Checked private rows, with all that belongs to each."""

    X: Any
    y: NDArray[Any]
    weights: NDArray[np.float64] | None
    units: Units | None

    def take(self, rows: NDArray[np.intp]) -> _Rows:
        """Some of them. A weight of 0 is the least number above it: a fit would refuse nothing but zeros."""
        weights = None if self.weights is None else np.maximum(self.weights[rows], np.finfo(np.float64).tiny)
        return _Rows(take_rows(self.X, rows), self.y[rows], weights, self.units and self.units.take(rows))


class TableFit(PhasedFit):
    """The fit of a `TableClassifier`: one charge for the fit of its estimator, if it has one, and for the table."""

    work: TableClassifier
    _fitting: FitPlan | None = None
    _scale = 1.0

    def __init__(self, target: TableClassifier, X: Any, y: Any, sample_weight: Any, groups: Any) -> None:
        refuse_rows_elsewhere(type(target).__name__, X)
        super().__init__(target, copy_to_fit(target))
        self._X, self._y, self._given, self._groups = X, y, sample_weight, groups

    # --- before a row is read ---

    def plan(self) -> None:
        """See `PhasedFit`. Classes that no one named are read from the labels here."""
        work = self.work
        begin_record(work)
        self._check()
        self._stream = root_stream(work, "split and noise")
        self._X, self.units = units_of(work, self._X, self._groups, self.payment())
        self._X = indexable(self._X)
        n_rows, n_features = table_shape(self._X)
        n = n_rows if self.units is None else self.units.n_units
        self.n_public = n_public = work._public_n(n)
        if work._is_frozen():
            self._plan_table(work.classes, (n, n_features), n_public, 1.0)
            self.event, self.delta = self._table_plan.event, 0.0
        else:
            self._plan_both(n, n_public, n_features)

    def _plan_both(self, n: int, n_public: int, n_features: int) -> None:
        """Plan the fit to a part of the rows, and the table of the others."""
        work = self.work
        tested_public = n_tested(work.test_size, n_public, work.privacy_unit_)
        tested = tested_public if work.adjacency == "add_remove" else n_tested(work.test_size, n, work.privacy_unit_)
        made = self._candidate(n, n_public)
        self.delta = work.delta = delta_for(check_delta(work.delta), resolve_accountant(work.accountant), n_public)
        made.set_params(delta=self.delta)
        budget = target_of(work.epsilon, self.delta, work.risk)
        (fitting,) = fit_plans([{}], [made], n_public - tested_public, n_features, budget, self.delta)
        classes = private_steps(made.steps)[-1][1].estimator.classes
        self._plan_table(classes, (tested, n_features), tested_public, _ROOM)

        def event_at(scale: float) -> DpEvent:
            return WorstOfDpEvent((fitting.event(scale), self._table_plan.event))

        self._scale = calibrate_to(event_at, budget, adjacency=work.adjacency)
        self._fitting, self.event = fitting, event_at(self._scale)

    def _check(self) -> None:
        """Refuse parameters."""
        work = self.work
        if self._y is None:
            name = type(work).__name__
            raise ValueError(f"{name} requires y to be passed, but the target y is None: give labels.")
        check_whole_budget(work)
        check_delta(work.delta)
        check_choice("adjacency", work.adjacency, ADJACENCIES)
        check_real("test_size", work.test_size, above=0, below=1, remedy="choose a share of the rows, such as 0.25")
        WeightReader.of(work.weight_bound)
        work._check_purpose()
        resolve_accountant(work.accountant)
        inner = _inner_of(work.estimator)
        if not hasattr(inner, "predict_proba") and not hasattr(inner, "decision_function"):
            raise WrongTypeError(
                f"estimator is a {type(inner).__name__} without predict_proba and decision_function: give a "
                "classifier, or a fitted one as sklearn.frozen.FrozenEstimator(model)."
            )
        if work._is_frozen() and hasattr(inner, "fit"):
            check_is_fitted(inner)

    def _candidate(self, n: int, n_public: int) -> PrivatePipeline:
        """The estimator as a pipeline of private steps, with the terms of the whole."""
        work, X = self.work, self._X
        template = private_template(work.estimator, work.epsilon, work.delta, work.risk)
        for _, step in private_steps(template.steps):
            if step.adjacency != work.adjacency:
                raise ValueError(
                    f"adjacency={step.adjacency!r} of the estimator is not {work.adjacency!r}, that of the whole: give "
                    "both the same."
                )
            if step.accountant is not None:
                raise ValueError(
                    f"accountant of the estimator is not charged here: give it to {type(work).__name__}, and none to "
                    "the estimator."
                )
        template = with_public_rows(template._take_unit(work), n_public)
        if not is_private(template.steps[0][1]) and not takes_any_types(template.steps[0][1]):
            check_types(X)
        made = make_candidate(template, {}, X, n)
        last = private_steps(made.steps)[-1][1].estimator
        if "classes" not in last.get_params(deep=False):
            raise WrongTypeError(
                f"estimator ends in a {type(last).__name__}, which is no classifier: put one behind it."
            )
        classes = last.classes if work.classes is None else work.classes
        last.set_params(classes=self._named_classes() if classes is None else classes)
        for name in weighted_steps(made):
            dict(made.steps)[name].set_params(weight_bound=work.weight_bound)
        return made

    def _named_classes(self) -> list[Any]:
        """Classes that no one named: those of the labels, a leak."""
        report_leak(
            "classes=None: the classes were read from the labels, which is not paid for; name all classes that can "
            "occur, e.g. classes=[0, 1]."
        )
        note_leaks(self.work, CLASSES_READ)
        found: list[Any] = classes_of(check_labels(self._y, table_shape(self._X)[0])).tolist()
        return found

    def _plan_table(self, classes: Any, shape: tuple[int, int], n_public: int, share: float) -> None:
        """Plan the release of the table, of so many rows or units, and columns, at a share of the budget."""
        work = self.work
        model = _inner_of(work.estimator) if work._is_frozen() else None
        known = classes if classes is not None else getattr(model, "classes_", (0, 1))
        if len(known) != 2:
            raise ValueError(f"Only binary classification is supported. classes has {len(known)}: give a model of two.")
        self._table = PrivateEvaluation(
            model,
            **self._budget_of_table(share),
            classes=classes,
            categories=work._categories(),
            weight_bound=work.weight_bound,
            adjacency=work.adjacency,
            n_samples_public=n_public,
            n_groups_public=n_public,
        )
        take_unit(self._table, work)
        self._table._has_weights = self._given is not None
        terms = self._table._check_terms()._replace(stream=self._stream.spawn("table"))
        self._table_plan = self._table._plan_checked(terms, shape)

    def _budget_of_table(self, share: float) -> dict[str, Any]:
        """A share of the budget of the whole."""
        if self.work.risk is None:
            return {"epsilon": share * float(self.work.epsilon or 0.0)}
        whole = Risk.read(self.work.risk)
        return {"risk": whole.stated if share == 1.0 else whole.of_size(share * whole.mu).stated}

    # --- before the charge ---

    def payment(self) -> Payment:
        """See `PhasedFit`."""
        work = self.work
        names = ("epsilon" if work.risk is None else "risk", "delta", "test_size", "weight_bound")
        inner = _inner_of(work.estimator)
        kept = {name: getattr(work, name) for name in names} | {"estimator": type(inner).__name__}
        kept["seeded"] = work.random_state is not None
        if name := work.__dict__.get("_fitted_group_name"):
            kept["groups"] = name
        unit = work.__dict__.get("privacy_unit_", ROW)
        return Payment(resolve_accountant(work.accountant), type(work).__name__, work.adjacency, kept, unit)

    def read(self) -> None:
        """See `PhasedFit`."""
        n = table_shape(self._X)[0]
        weights = None if self._given is None else check_weights(self._given, n)
        labels = check_labels(self._y, n, classes=self._table.classes_)
        self._rows = _Rows(self._X, labels, weights, self.units)
        if self._fitting is None:
            self._table._check_rows(self._X)
        else:
            self._fitting.check_rows(self._X, labels, self.units, weights)
        self._counted = self._table._check_targets(
            labels, n, groups=self.units, sample_weight=weights, by=self.work._subgroups_of(self._X)
        )

    # --- after it ---

    def learn(self) -> str:
        """See `PhasedFit`. An interrupted fit has no result."""
        work, rows, counted = self.work, self._rows, self._counted
        fitted: Any = None
        if self._fitting is not None:
            held = self._held()
            with silence():
                fitted = self._fitted(rows.take(np.flatnonzero(~held)))
            self._table.model = fitted
            rows = rows.take(np.flatnonzero(held))
            counted = RowsOfCounts(*(each if each is None else each[held] for each in counted))  # type: ignore[arg-type]
        self._table._learn(self._table_plan, self._table._check_rows(rows.X), counted)
        work.estimator_ = _inner_of(work.estimator) if fitted is None else fitted
        work.evaluation_ = self._table
        work._follow(self._table)
        work.delta_, work.adjacency_ = self.delta, work.adjacency
        work._fitted_epsilon = self._table.epsilon_
        work._fitted_releases = (new_release(self.event, work.adjacency, work.privacy_unit_),)
        work._fitted_inside = ids_of(work._private_parts())
        return ""

    def _held(self) -> NDArray[np.bool_]:
        """Which rows are counted. Records have no say; under add_remove each unit has a coin of its own."""
        stream, share = self._stream.spawn("split"), self.work.test_size
        n = len(self._rows.y) if self.units is None else self.units.n_units
        if self.work.adjacency == "add_remove":
            held = stream.words(n) < np.uint64(share * 2.0**64)
        else:
            held = draw_by_number(stream, n, n_tested(share, n, self.work.privacy_unit_))
        return held if self.units is None else held[self.units.codes]

    def _fitted(self, part: _Rows) -> Any:
        """The estimator, fitted to a part of the rows."""
        assert self._fitting is not None
        stream = self._stream.spawn("seed")
        seed = None if self.work.random_state is None else int(stream.words(1)[0] >> np.uint64(2))
        like = first_row(self._X, len(self._rows.y))
        return seen_by_the_user(self._fitting.run(self._scale, seed, part.X, part.y, part.weights, part.units, like))


__all__ = ["TableClassifier", "TableFit", "inner_has"]
