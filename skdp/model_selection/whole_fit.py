"""One charge for fits of private estimators to parts of the rows, as searches, cross-validation and calibration make.

They share their checks, public numbers, parts of the rows and seeds, and the base of those that are estimators.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin

from skdp._checks.default_delta import check_delta, delta_for
from skdp._checks.leaks import CLASSES_READ, begin_record, note_leaks
from skdp._checks.parameters import absolute_path
from skdp._checks.protocols import is_private
from skdp._checks.row_traits import indexable
from skdp._checks.rows import table_shape
from skdp._checks.sources import refuse_rows_elsewhere
from skdp._fit.budget import public_n, root_stream, unit_of
from skdp._fit.fit import BEGUN, Fit, units_of
from skdp._fit.payment import Payment
from skdp._fit.private_step import private_steps
from skdp._fit.releases import copy_to_fit, new_release
from skdp._guard.foreign_parameters import refuse_foreign, refuse_foreign_in_init
from skdp._guard.public_rules import takes_any_types
from skdp._guard.public_steps import check_types
from skdp.accounting import DpEvent, get_epsilon, resolve_accountant
from skdp.accounting.targets import Risk
from skdp.base import JointPrice, Price, check_whole_budget
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
from skdp.pipeline import PrivatePipeline, public_rows_of


class WholeFit(Fit):
    """The fit of a whole: fits of private estimators to parts of the rows, and what is released of the other parts.

    Parameters
    ----------
    whole : object
        With the parameters `epsilon`, `delta`, `risk` and `random_state`.
    y : array-like
        Private labels or targets.
    drawn : str
        What is random, for the warning of a seed.

    Attributes
    ----------
    adjacency : str
    accountant : PrivacyAccountant or None
    delta : float
        Once the rows are taken.
    paid : tuple of Release
        The charge, once the fit is planned. What depends on it shares it.
    """

    n_features: int

    def __init__(self, whole: Any, y: Any, drawn: str) -> None:
        self.estimator, self.model = whole, copy_to_fit(whole)
        begin_record(self.model)
        self._stage, self._released = BEGUN, set()
        self._name = getattr(whole, "_public_name", "") or type(whole).__name__
        if y is None:
            raise ValueError(f"{self._name} requires y to be passed, but the target y is None: give labels.")
        check_whole_budget(self.model)
        check_delta(self.model.delta)
        self._y, self._drawn, self._kept = y, drawn, dict[str, Any]()

    def take(self, X: Any, groups: Any, template: PrivatePipeline | None = None) -> None:
        """Note what is public of the rows, and settle delta.

        `template` is what is fitted, where it has the accountant and the adjacency, and not the whole.
        """
        refuse_rows_elsewhere(self._name, X)
        model = self.model
        self._stream = root_stream(model, self._drawn)
        known = model if template is None else private_steps(template.steps)[0][1]
        self.adjacency: str = known.adjacency
        self.accountant = resolve_accountant(model.accountant) if template is None else template._payment().accountant
        X, self.units = units_of(model, X, groups, self._find_payment())
        if template is not None:
            self.adopt(template, X)
        self.rows = indexable(X)
        self.n_rows, self.n_features = table_shape(self.rows)
        self.n_units = n = self.n_rows if self.units is None else self.units.n_units
        self.n = public_n(model, n) if template is None else public_rows_of(template, n)
        self.delta = delta_for(check_delta(model.delta), self.accountant, self.n)

    def adopt(self, template: PrivatePipeline, X: Any) -> None:
        """Let a pipeline be private for what the whole is, and check the types of its rows."""
        first = template._take_unit(self.model).steps[0][1]
        if not is_private(first) and not takes_any_types(first):
            check_types(X)

    def settle_candidates(self, made: list[PrivatePipeline], sample_weight: Any, what: str) -> None:
        """Settle bounds, weights and classes, which all candidates share. Classes without names are read here."""
        check_bounds_are_given(made, what)
        self._sample_weight = sample_weight
        self._reader = None if sample_weight is None else common_weight_reader(made, sample_weight, what)
        self._labels, self._last = name_classes(made, self._y, self.n_rows), last_of(made[0])
        if self._labels is not None:
            note_leaks(self.model, CLASSES_READ)

    @property
    def weight_bound(self) -> float | None:
        """The bound of the weights that all candidates share; None without weights."""
        return None if self._reader is None else self._reader.bound

    # --- plan ---

    def priced(self, event: DpEvent) -> Price:
        """Return an event with its epsilon at the delta of the fit."""
        return Price(event, get_epsilon(event, self.delta, adjacency=self.adjacency), self.delta)

    def keep(self, **public: Any) -> None:
        """Note public parameters, which the accountant keeps with the charge."""
        self._kept = public
        self._payment = self._find_payment()

    def _find_payment(self) -> Payment:
        kept = {**self._kept, "seeded": self.model.random_state is not None}
        if name := self.model.__dict__.get("_fitted_group_name"):
            kept["groups"] = name
        return Payment(self.accountant, self._name, self.adjacency, kept, unit_of(self.model))

    def _admit(self) -> None:
        """See `Fit`."""
        super()._admit()
        self.paid = (new_release(self.price.event, self.adjacency, unit_of(self.model)),)

    # --- parts of the rows ---

    def read_parts(self) -> PartRows:
        """Return the rows with their labels and weights, checked."""
        labels = checked_labels(self._last, self._y, self.n_rows) if self._labels is None else self._labels
        given = None if self._reader is None else PartWeights.of(self._reader, self._sample_weight, self.n_rows)
        return PartRows(self.rows, labels, given, self.units)

    def split(self, test_size: float) -> NDArray[np.bool_]:
        """Mark the units that are scored. Records have no say; under add_remove each unit has a coin of its own."""
        stream = self.spawn("split")
        if self.adjacency == "add_remove":
            return stream.words(self.n_units) < np.uint64(test_size * 2.0**64)
        return draw_by_number(stream, self.n_units, n_tested(test_size, self.n_units, unit_of(self.model)))

    def seed(self, *number: int) -> int | None:
        """Return the seed of a fit, None where the whole has none."""
        stream = self.spawn("seed", *number)
        return None if self.model.random_state is None else int(stream.words(1)[0] >> np.uint64(2))

    # --- publish ---

    def _note_price(self) -> None:
        """See `Fit`: epsilon and event follow from the releases of the parts."""
        model = self.model
        model.delta_, model.adjacency_, model._fitted_releases = self.price.delta, self.adjacency, self.paid


def share_of_budget(whole: Any, share: float) -> dict[str, Any]:
    """Return the parameters that state a share of the budget of a whole, of its epsilon or of mu."""
    if whole.risk is None:
        return {"epsilon": share * float(whole.epsilon)}
    risk = Risk.read(whole.risk)
    return {"risk": risk.stated if share == 1.0 else risk.of_size(share * risk.mu).stated}


class WholeEstimator(JointPrice, MetaEstimatorMixin, BaseEstimator):
    """Base of estimators that are fitted as a whole, and predict by one of their parts."""

    _part_name: str  # of the attribute that holds that part

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        refuse_foreign_in_init(cls)

    def set_params(self, **params: Any) -> Self:
        """Set parameters.

        Parameters
        ----------
        **params : dict of str to object
            Parameters of this object, or of the estimator as ``estimator__parameter``. A path given as `accountant` is
            made absolute.

        Returns
        -------
        self : object
            The object itself.
        """
        refuse_foreign(type(self), params)
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
        """Columns seen in ``fit``."""
        return int(self._of_part("n_features_in_"))

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the columns seen in ``fit``, where they have names."""
        return np.asarray(self._of_part("feature_names_in_"))

    def _of_part(self, name: str) -> Any:
        if self._part_name not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no {name} before fit.")
        return getattr(self.__dict__[self._part_name], name)


__all__ = ["WholeEstimator", "WholeFit", "share_of_budget"]
