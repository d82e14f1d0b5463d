"""One charge for several fits to parts of the rows, for searches, cross-validation and calibration.

They share their checks, public numbers, parts of the rows and seeds, and a base class of estimators.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_regressor
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from skdp._checks.groups import Units
from skdp._checks.leaks import CLASSES_READ, note_leaks, report_leak
from skdp._checks.parameters import (
    absolute_path,
    check_delta,
    delta_for,
    is_private,
    public_n,
    settle_adjacency,
    silent_arithmetic,
)
from skdp._checks.rows import (
    check_labels,
    check_targets,
    classes_of,
    indexable,
    number_of_columns,
    table_shape,
    take_rows,
    without_labels,
)
from skdp._checks.sources import reject_rows_elsewhere
from skdp._checks.weights import WeightReader, check_weights, warn_of_no_bound
from skdp.accounting import DpEvent, get_epsilon, resolve_accountant
from skdp.accounting.statements.targets import Risk, RiskTarget
from skdp.base.budget import PrivacyCost, Release, read_epsilon, root_stream
from skdp.base.estimator import JointPrivacyCost, reject_foreign, reject_foreign_in_init
from skdp.base.fit import BEGUN, Account, Fit, copy_to_fit, recording_rejections, unit_of, units_of
from skdp.base.private_step import private_steps
from skdp.base.public_steps import check_types, takes_any_types
from skdp.mechanisms.streams import SecretStream
from skdp.model_selection.private_split import draw_tested
from skdp.pipeline.joint_fit import public_rows_of
from skdp.pipeline.private_pipeline import PrivatePipeline


class PartWeights(NamedTuple):
    """Weights of all rows, checked: as passed, and divided by their bound."""

    given: np.ndarray
    shares: np.ndarray

    @classmethod
    def of(cls, reader: WeightReader, sample_weight: Any, n_rows: int) -> PartWeights:
        """Read the weights, or raise an error."""
        weights = check_weights(sample_weight, n_rows)
        return cls(weights, reader.shares(weights))

    def take(self, rows: np.ndarray) -> PartWeights:
        """Weights of some rows; for training, 0 is replaced by the smallest positive number, which rounding removes.

        A trial would reject weights that are all 0, after the charge, and reveal that it was run.
        """
        return PartWeights(np.maximum(self.given[rows], np.finfo(np.float64).tiny), self.shares[rows])


class PartRows(NamedTuple):
    """Checked private rows, with the data of each; `like` is a part of the table."""

    X: Any
    y: np.ndarray
    weights: PartWeights | None
    units: Units | None
    like: Any = None

    @property
    def given_weights(self) -> np.ndarray | None:
        """Weights for training."""
        return None if self.weights is None else self.weights.given

    def places(self, marked: np.ndarray) -> np.ndarray:
        """Indices of all rows of the groups that are marked: no group is split."""
        return np.flatnonzero(marked if self.units is None else marked[self.units.codes])

    def of_units(self, marked: np.ndarray) -> PartRows:
        """All rows of the groups that are marked."""
        rows = self.places(marked)
        weights = None if self.weights is None else self.weights.take(rows)
        units = self.units and self.units.take(rows)
        first = take_rows(self.X, np.arange(min(1, len(self.y))))
        return PartRows(take_rows(self.X, rows), self.y[rows], weights, units, first)


def last_of(pipeline: PrivatePipeline) -> Any:
    """The last private estimator of a candidate, which uses the labels."""
    return private_steps(pipeline.steps)[-1][1].estimator


class WholeFit(Fit):
    """A fit with several parts: fits of private estimators to parts of the rows, and releases of the other parts.

    Parameters
    ----------
    whole : object
        With the parameters `delta` and `random_state`.
    drawn : str
        Name of the random quantities, for the warning about a seed.

    Attributes
    ----------
    adjacency : str
    accountant : PrivacyAccountant or None
    delta : float
        Set when the rows are read.
    releases : tuple of Release
        The charge, set when the fit is planned. All dependent results share it.
    """

    n_features: int

    def __init__(self, whole: Any, drawn: str) -> None:
        self.estimator, self.model = whole, copy_to_fit(whole)
        self.model._fitted_leaks = ()
        if hasattr(whole, "adjacency"):
            settle_adjacency(self.model)
        self._stage, self._released = BEGUN, {}
        self._name = getattr(whole, "_public_name", "") or type(whole).__name__
        self._drawn, self._kept = drawn, dict[str, Any]()

    def check(self, y: Any) -> None:
        """Reject missing labels, and a budget that is set twice or not at all."""
        if y is None:
            raise ValueError(f"{self._name} requires y to be passed, but the target y is None. Pass labels.")
        read_epsilon(self.model.epsilon)
        check_delta(self.model.delta)

    def read_shape(self, X: Any, groups: Any, template: PrivatePipeline | None = None) -> None:
        """Record the public facts about the rows, and set delta.

        `template` is the estimator if it has the accountant and the adjacency, instead of the whole.
        """
        reject_rows_elsewhere(self._name, X)
        model = self.model
        self._stream = root_stream(model, self._drawn)
        known = model if template is None else private_steps(template.steps)[0][1]
        self.adjacency: str = known.adjacency
        self.accountant = resolve_accountant(model.accountant) if template is None else template._account().accountant
        X, self.units = units_of(model, X, groups, self._find_account)
        if template is not None:
            self.adopt(template, X)
        with recording_rejections(self._find_account):
            self.rows = indexable(X)
            self.n_rows, self.n_features = table_shape(self.rows)
        self.n_units = n = self.n_rows if self.units is None else self.units.n_units
        self.n = public_n(model, n) if template is None else public_rows_of(template, n)
        self.delta = delta_for(check_delta(model.delta), self.accountant, self.n)
        self._account = self._find_account()

    def adopt(self, template: PrivatePipeline, X: Any) -> None:
        """Set the privacy unit of a pipeline to that of the whole, and check the types of its rows."""
        first = template._take_unit(self.model).steps[0][1]
        if not is_private(first) and not takes_any_types(first):
            check_types(X)

    def settle_candidates(self, made: list[PrivatePipeline], y: Any, sample_weight: Any, what: str) -> None:
        """Set bounds, weights and classes, which all candidates share. Unset classes are read here."""
        for each in map(last_of, made):  # regressors must not read bounds from the targets of each trial
            if "y_bounds" in each.get_params(deep=False) and each.y_bounds is None:
                raise ValueError(f"`y_bounds` must be set in {what}. Pass public bounds, e.g. y_bounds=(0, 100).")
        self._y, self._sample_weight = y, sample_weight
        self._reader = None if sample_weight is None else common_weight_reader(made, sample_weight, what)
        self._labels, self._last = self.read_before_plan(name_classes, made, self._y, self.n_rows), last_of(made[0])
        if self._labels is not None:
            note_leaks(self.model, CLASSES_READ)

    @property
    def weight_bound(self) -> float | None:
        """The common bound of the weights of all candidates; None without weights."""
        return None if self._reader is None else self._reader.bound

    # --- plan ---

    def cost_of(self, event: DpEvent) -> PrivacyCost:
        """Return an event with its epsilon at the delta of the fit."""
        return PrivacyCost(event, get_epsilon(event, self.delta, adjacency=self.adjacency), self.delta)

    def keep(self, *names: str, **public: Any) -> None:
        """Store parameters of the model and other public values, which the accountant records with the charge."""
        self._kept = {name: getattr(self.model, name) for name in names} | public
        self._account = self._find_account()

    def _find_account(self) -> Account:
        kept = {**self._kept, "seeded": self.model.random_state is not None}
        if name := self.model.__dict__.get("_fitted_group_name"):
            kept["groups"] = name
        return Account(self.accountant, self._name, self.adjacency, kept, unit_of(self.model))

    def _admit(self) -> None:
        super()._admit()
        self.releases = (Release(self.cost.event, self.adjacency, unit_of(self.model)),)

    def public_stream(self, what: str) -> SecretStream:
        """Return the stream of public random draws, made before a row is read."""
        return self._stream.spawn(what)

    # --- parts of the rows ---

    def read_parts(self) -> PartRows:
        """Return the rows with their labels and weights, checked."""
        labels, last = self._labels, self._last
        if labels is None and is_regressor(last):
            labels = check_targets(self._y, self.n_rows)
        elif labels is None:
            labels = check_labels(self._y, self.n_rows, classes=getattr(last, "classes", None), columns=True)
        given = None if self._reader is None else PartWeights.of(self._reader, self._sample_weight, self.n_rows)
        return PartRows(self.rows, labels, given, self.units)

    def split(self, test_size: float) -> np.ndarray:
        """Mark the test rows or groups."""
        unit = unit_of(self.model)
        return draw_tested(self.spawn("split"), self.n_units, test_size, self.adjacency, unit)

    def seed(self, *number: int) -> int | None:
        """Return the seed of a fit; None if the whole has none."""
        stream = self.spawn("seed", *number)
        return None if self.model.random_state is None else int(stream.words(1)[0] >> np.uint64(2))

    # --- publish ---

    def _note_cost(self) -> None:
        """See `Fit`: epsilon and event follow from the releases of the parts."""
        model = self.model
        model.delta_, model.adjacency_, model._fitted_releases = self.cost.delta, self.adjacency, self.releases


def common_weight_reader(made: list[PrivatePipeline], sample_weight: Any, what: str) -> WeightReader:
    """Return a reader of the weights by the common bound of all steps of all candidates, for the scores."""
    if not all(has_fit_parameter(last_of(each), "sample_weight") for each in made):
        raise ValueError(f"`sample_weight` is not supported by {type(last_of(made[0])).__name__}. Remove it.")
    weighted = [step.estimator for each in made for _, step in private_steps(each.steps)]
    weighted = [step for step in weighted if has_fit_parameter(step, "sample_weight")]
    bounds = [getattr(step, "weight_bound", None) for step in weighted]
    readers = [WeightReader.of(bound) for bound in bounds]
    faults = [reader != readers[-1] for reader in readers]
    if any(faults):
        at = faults.index(True)
        raise ValueError(
            f"`weight_bound` must be the same public bound for all private steps of all candidates in {what} with "
            f"weights, got {bounds[at]!r} for {type(weighted[at]).__name__}."
        )
    warn_of_no_bound(bounds[-1], sample_weight)
    return readers[-1]


def name_classes(made: list[PrivatePipeline], y: Any, n_samples: int) -> np.ndarray | None:
    """Set the same classes for all candidates, because the training part need not contain every class.

    Returns the labels if they had to be read.
    """
    last = [last_of(each) for each in made]
    unnamed = [each for each in last if "classes" in each.get_params(deep=False) and each.classes is None]
    if not unnamed or number_of_columns(y) > 1:
        return None
    report_leak(
        "`classes` was not set, so the classes were read from `y`. This is not covered by the privacy guarantee. Set "
        "`classes` of the estimator to all possible classes, e.g. classes=[0, 1]."
    )
    labels = check_labels(y, n_samples)
    for each in unnamed:
        each.set_params(classes=classes_of(labels).tolist())
    return labels


def share_of_budget(epsilon: Any, share: float) -> float | Risk:
    """Return a fraction of a budget: of its epsilon or, for a risk, of its mu."""
    if not isinstance(epsilon, Risk):
        return share * float(epsilon)
    target = RiskTarget.of(epsilon)
    return epsilon if share == 1.0 else target.of_size(share * target.mu).risk


def inner_of(estimator: Any) -> Any:
    """Return the model that is to be fitted, or is fitted."""
    return estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator


def part_has(method: str) -> Callable[[Any], bool]:
    """Condition that the fitted part of a `WholeEstimator`, or its unfitted estimator, has a method."""
    return lambda self: hasattr(self.__dict__.get(self._part_name, inner_of(self.estimator)), method)


class WholeEstimator(JointPrivacyCost, MetaEstimatorMixin, BaseEstimator):
    """Base of estimators with one charge for several fits, which predict by one of their parts."""

    _part_name: str  # of the attribute that holds that part

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        reject_foreign_in_init(cls)

    def set_params(self, **params: Any) -> Self:
        """Set parameters.

        Parameters
        ----------
        **params : dict of str to object
            Parameters of this object, or of the estimator as ``estimator__parameter``. A path passed as `accountant` is
            made absolute.

        Returns
        -------
        self : object
            The object itself.
        """
        reject_foreign(type(self), params)
        if "accountant" in params:
            params["accountant"] = absolute_path(params["accountant"])
        super().set_params(**params)
        return self

    @property
    def classes_(self) -> Any:
        """Classes, in the order of the columns of probabilities."""
        return self._of_part("classes_")

    @property
    def n_features_in_(self) -> int:
        """Number of columns seen during ``fit``."""
        return int(self._of_part("n_features_in_"))

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of columns seen during ``fit``, if all are strings."""
        return np.asarray(self._of_part("feature_names_in_"))

    def _fitted_part(self) -> Any:
        check_is_fitted(self, self._part_name)
        return getattr(self, self._part_name)

    def _of_part(self, name: str) -> Any:
        if self._part_name not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no {name} before fit.")
        return getattr(self.__dict__[self._part_name], name)


class ScoresOfPart(WholeEstimator):
    """Base of estimators with the scores of their part."""

    @available_if(part_has("predict_proba"))  # type: ignore[untyped-decorator]
    @silent_arithmetic
    def predict_proba(self, X: Any) -> Any:
        """Predict the probability of each class with the fitted estimator.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Probabilities, with classes in the order of `classes_`.
        """
        return self._fitted_part().predict_proba(without_labels(self, X))

    @available_if(part_has("decision_function"))  # type: ignore[untyped-decorator]
    @silent_arithmetic
    def decision_function(self, X: Any) -> Any:
        """Predict confidence scores with the fitted estimator.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Confidence scores.
        """
        return self._fitted_part().decision_function(without_labels(self, X))
