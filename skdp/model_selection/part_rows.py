"""Rows of fits to parts of a table: what belongs to each row, and what is refused before any part is fitted."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor
from sklearn.utils.validation import has_fit_parameter

from skdp._checks.leak_setting import report_leak
from skdp._checks.row_traits import first_row, take_rows
from skdp._checks.rows import check_labels, check_targets, classes_of, number_of_columns
from skdp._checks.units import Units
from skdp._checks.weights import WeightReader, check_weights, warn_of_no_bound
from skdp._fit.private_step import private_steps
from skdp.pipeline import PrivatePipeline


class PartWeights(NamedTuple):
    """Weights of all rows as they were given, checked, and as shares of their bound."""

    given: NDArray[np.float64]
    shares: NDArray[np.float64]

    @classmethod
    def of(cls, reader: WeightReader, sample_weight: Any, n_rows: int) -> PartWeights:
        """Read the weights, or refuse them."""
        weights = check_weights(sample_weight, n_rows)
        return cls(weights, reader.shares(weights))

    def take(self, rows: NDArray[np.intp]) -> PartWeights:
        """Weights of some rows, 0 to train with as the least number above it: what a row then adds is lost in rounding.

        A try would refuse weights that are all 0, after the charge, and tell that it was made.
        """
        return PartWeights(np.maximum(self.given[rows], np.finfo(np.float64).tiny), self.shares[rows])


class PartRows(NamedTuple):
    """Checked private rows, with all that belongs to each; `like` is one of the table that they are a part of."""

    X: Any
    y: NDArray[Any]
    weights: PartWeights | None
    units: Units | None
    like: Any = None

    @property
    def n_units(self) -> int:
        """How many units there are, each row being one where no other are known."""
        return len(self.y) if self.units is None else self.units.n_units

    @property
    def given_weights(self) -> NDArray[np.float64] | None:
        """Weights to train with."""
        return None if self.weights is None else self.weights.given

    def places(self, marked: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Numbers of all rows of the units that are marked: no unit is split."""
        return np.flatnonzero(marked if self.units is None else marked[self.units.codes])

    def of_units(self, marked: NDArray[np.bool_]) -> PartRows:
        """All rows of the units that are marked."""
        rows = self.places(marked)
        weights = None if self.weights is None else self.weights.take(rows)
        units = self.units and self.units.take(rows)
        return PartRows(take_rows(self.X, rows), self.y[rows], weights, units, first_row(self.X, len(self.y)))


def common_weight_reader(made: list[PrivatePipeline], sample_weight: Any, what: str = "a search") -> WeightReader:
    """Return a reader of the weights by the bound that all steps of all candidates share, which scores need too."""
    if not all(has_fit_parameter(last_of(each), "sample_weight") for each in made):
        raise ValueError(f"sample_weight is not taken by {type(last_of(made[0])).__name__}: leave it out.")
    weighted = [step.estimator for each in made for _, step in private_steps(each.steps)]
    weighted = [step for step in weighted if has_fit_parameter(step, "sample_weight")]
    bounds = [getattr(step, "weight_bound", None) for step in weighted]
    readers = [WeightReader.of(bound) for bound in bounds]
    faults = [reader != readers[-1] for reader in readers]
    if any(faults):
        at = faults.index(True)
        raise ValueError(
            f"weight_bound={bounds[at]!r} of {type(weighted[at]).__name__} in {what} with weights, whose fits and "
            "scores need one public bound for all private steps of all candidates: give all of them one."
        )
    warn_of_no_bound(bounds[-1], sample_weight)
    return readers[-1]


def name_classes(made: list[PrivatePipeline], y: Any, n_samples: int) -> NDArray[Any] | None:
    """Give all candidates the same classes: the part of the rows that they train on need not hold every class.

    The labels, where they had to be read for that.
    """
    last = [last_of(each) for each in made]
    unnamed = [each for each in last if "classes" in each.get_params(deep=False) and each.classes is None]
    if not unnamed or number_of_columns(y) > 1:
        return None
    report_leak(
        "classes=None: the classes were read from the labels, which is not paid for; name all classes that can occur "
        "in the estimator, e.g. classes=[0, 1]."
    )
    labels = check_labels(y, n_samples)
    for each in unnamed:
        each.set_params(classes=classes_of(labels).tolist())
    return labels


def check_bounds_are_given(made: list[PrivatePipeline], what: str = "a search") -> None:
    """Refuse regressors that would read bounds of their own from the targets of each try."""
    for each in map(last_of, made):
        if "y_bounds" in each.get_params(deep=False) and each.y_bounds is None:
            raise ValueError(f"y_bounds=None in {what}: give public bounds on the targets, e.g. y_bounds=(0, 100).")


def checked_labels(last: Any, y: Any, n_samples: int) -> NDArray[Any]:
    """The labels or targets of the last private estimator, refused if they are unusable."""
    if is_regressor(last):
        return check_targets(y, n_samples)
    return check_labels(y, n_samples, classes=getattr(last, "classes", None), columns=True)


def last_of(pipeline: PrivatePipeline) -> Any:
    """The last private estimator of a candidate, which is the one that labels are for."""
    return private_steps(pipeline.steps)[-1][1].estimator


__all__ = [
    "PartRows",
    "PartWeights",
    "check_bounds_are_given",
    "checked_labels",
    "common_weight_reader",
    "last_of",
    "name_classes",
]
