"""Base classes of private estimators: parameters, privacy attributes and diagrams."""

from __future__ import annotations

import functools
import html
import inspect
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass, field
from numbers import Real
from typing import Any, NoReturn, Self, TypeVar, cast, dataclass_transform

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from skdp._checks.groups import GROUP, ROW
from skdp._checks.leaks import SEED, UNKNOWN, leaks_of
from skdp._checks.notices import note_notice, raw_columns_notice
from skdp._checks.parameters import REMOVED, absolute_path, adjacency_of, check_real, reject_removed
from skdp._checks.rows import row_form_of, row_norm_of
from skdp.accounting import DpEvent, compose, get_epsilon
from skdp.accounting.ledger.report import caption_of, to_digits
from skdp.base.budget import PrivacyCost, Release, releases_of
from skdp.base.fit import PUBLICATION, unit_of
from skdp.base.foreign_fits import Watched
from skdp.base.private_step import PrivateStep, StepPlan, StepTraits, traits_of
from skdp.base.saved_state import PlainState
from skdp.mechanisms.sampling import Sampling, sampling_at

_PAGE = "See the migration guide (docs/migrating.md)"
_STOPPING = (
    "A stopping rule that reads the data in every step would consume budget. Set `max_iter` if the estimator has it"
)
_FOLDS = "The test rows are set aside once; see `test_size`"
_ONE_METHOD = "skdp has one training algorithm, for which the privacy cost is known. Remove the parameter"

REPLACEMENTS = {
    "C": "Use `alpha`, about 1 / (C * n_samples)",
    "penalty": "The penalty is L2. Set its strength with `alpha`",
    "l1_ratio": "The penalty is L2. Set its strength with `alpha`",
    **dict.fromkeys(["tol", "early_stopping", "n_iter_no_change", "validation_fraction", "max_fun"], _STOPPING),
    **dict.fromkeys(["cv", "return_train_score", "error_score", "pre_dispatch"], _FOLDS),
    **dict.fromkeys(["solver", "dual", "multi_class", "svd_solver", "iterated_power", "n_oversamples"], _ONE_METHOD),
    **dict.fromkeys(["power_iteration_normalizer", "power_t", "nesterovs_momentum"], _ONE_METHOD),
    "intercept_scaling": "Scale the columns with public bounds; `data_norm` bounds the norm of the rows",
    "shuffle": "Each step samples the rows at random; see `sampling_rate`",
    "epochs": "Use `max_iter`",
    "accountant": "Set it on the private estimator or pipeline that is fitted or searched",
    **dict.fromkeys(["copy", "copy_X", "copy_x"], "The input is never modified"),
    **dict.fromkeys(
        ["init", "n_init", "algorithm"],
        "The initial centers are computed from noisy counts, with a fraction of the budget",
    ),
    **dict.fromkeys(
        ["max_samples", "max_features", "bootstrap"], "The trees are data-independent, and every tree uses all rows"
    ),
    "warm_start": "Each fit is a separate release with its own privacy cost",
    "verbose": "Progress messages could reveal private data",
    "max_iter": "The model is computed from a single release, without iterations",
    "n_jobs": "The model is computed from a single release, in one process",
    "positive": "The noise makes coefficients positive or negative",
    "priors": "The priors are noisy class proportions; `class_prior_` can be changed after the fit",
    "var_smoothing": "Variances have a lower bound that follows from the noise",
}


def reject_foreign(cls: type, names: Iterable[str]) -> None:
    """Raise a TypeError for a name in the tables that is not a parameter of the class."""
    for name in names:
        if (name in REMOVED or name in REPLACEMENTS) and name not in inspect.signature(cls).parameters:
            reject_removed(cls, [name])
            raise TypeError(f"{cls.__name__} has no parameter {name!r}. {REPLACEMENTS[name]}. {_PAGE}.")


def reject_foreign_in_init(cls: type) -> None:
    """Let the constructor of a class reject such names; its signature stays."""
    init = vars(cls).get("__init__")
    if init is None:
        return

    @functools.wraps(init)
    def checked(self: Any, *args: Any, **kwargs: Any) -> None:
        reject_foreign(cls, kwargs)  # a subclass may hide what this one has
        init(self, *args, **kwargs)

    cls.__init__ = checked  # type: ignore[misc]


class UseFunction:
    """Attribute that raises an AttributeError with the function to use instead."""

    def __init__(self, function: str) -> None:
        self._function = function

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        raise AttributeError(f"{owner.__name__} has no method {self._name!r}. Use {self._function}(model).")


class Diagram:
    """Mixin for HTML diagrams, to place before ``BaseEstimator`` among the base classes."""

    privacy_report = UseFunction("skdp.privacy_report")
    to_onnx = UseFunction("skdp.export.to_onnx")

    @property
    def _repr_html_(self) -> Callable[[], str]:
        """Return a function that draws the diagram, or raise AttributeError if diagrams are switched off."""
        diagram = cast("Callable[[], str]", cast(Any, super())._repr_html_)

        def draw() -> str:
            try:
                return epsilon_caption(self) + diagram()
            except ValueError:  # a diagram lists fitted attributes, and a joint epsilon may not exist
                return f"{epsilon_caption(self)}<pre>{html.escape(repr(self))}</pre>"

        return draw

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = {"text/plain": repr(self)}
        if hasattr(self, "_repr_html_"):
            bundle["text/html"] = self._repr_html_()
        return bundle


def epsilon_caption(model: Any) -> str:
    """Return the privacy cost of the current state in one line, or "" before a fit."""
    try:
        epsilon, delta, adjacency = model.epsilon_, model.delta_, model.adjacency_
    except (AttributeError, NotFittedError):
        return ""
    except (TypeError, ValueError):  # parts that have no joint epsilon
        return caption_of("The parts have no joint epsilon. Fit the whole again.", warns=True)
    leaks = leaks_of(model)
    unit = getattr(model, "privacy_unit_", "row")
    text = f"\u03b5 = {to_digits(epsilon, 5, up=True)} at \u03b4 = {delta:g} for one {unit} ({adjacency})"
    if any(leak.kind == SEED for leak in leaks):
        text += "; not valid against anyone who knows the seed"
    if any(leak.kind not in (SEED, UNKNOWN) for leak in leaks):
        text += "; some data were read outside this guarantee, see skdp.privacy_report"
    return caption_of(text, warns=";" in text)


Made = TypeVar("Made")


@dataclass_transform(eq_default=False, field_specifiers=(field,))
def with_parameters(cls: type[Made]) -> type[Made]:
    """Give an estimator a constructor for its annotated parameters, which stores them and rejects foreign names."""
    made = dataclass(eq=False, repr=False)(cls)
    reject_foreign_in_init(made)
    return made


class PrivateEstimator(Watched, Diagram, PlainState, BaseEstimator):
    """Base class of private estimators.

    Subclasses have the constructor parameters ``epsilon, delta, noise_multiplier, adjacency, accountant,
    random_state``. Constructor parameters are public, arguments of ``fit`` are private. A subclass implements ``fit``
    with a fit object (`begin`), and `_plan_step`, which pipelines and searches use (``docs/extending.md``).

    Notes
    -----
    **Guarantees.**

    - Parameters and the budget are checked before a row is read; rows in memory are checked before the charge; the
      budget is charged before training reads a row. A fit that fails or is interrupted later keeps its charge.
    - ``fit`` works on a copy and publishes the result in one assignment: after an error or an interrupt at any line,
      the estimator has either its old or its new state, each with the matching privacy cost.
    - `epsilon_` is the composed privacy cost of every event on which the fitted state depends, `privacy_event_`, at
      `delta_`.
    - ``delta="auto"`` is the delta of the accountant, or a function of the public number of rows. Under ``add_remove``
      this number is the `n_public` of `skdp.AddRemove`. The delta does not increase with the number of rows, and stays
      the same in all incremental fits.
    - Apart from noisy parameters, ``fit`` publishes only functions of constructor parameters, of public shape and names
      (including the number of rows, except under ``add_remove``) and of the classes.
    """

    delta: Any  # a number or "auto"; in the copy that a fit works on, a number
    accountant: Any
    _public_name = ""  # of the function that fits this estimator; "": it is public itself, by the name of its class
    _fitted_row_norm: float | None = None
    _noise_is_allotted = False  # whether a pipeline chose `noise_multiplier`, as a share of its budget

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        reject_foreign_in_init(cls)

    def __post_init__(self) -> None:
        """Make a path of the accountant absolute, for estimators with annotated parameters (`with_parameters`)."""
        if self.accountant is not None:
            self.accountant = absolute_path(self.accountant)

    # --- what a subclass says ---

    def _plan_step(self, n_samples: int, n_features: int) -> StepPlan:
        """Return the privacy cost of a fit to a table of this shape at any noise multiplier.

        Pipelines and searches call it. `delta` is then the delta of the whole, a number, so that a step can use a part
        of it.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must implement _plan_step, which states the privacy cost of a fit."
        )

    def _note_rows(self, X: Any, are_raw: bool = True) -> None:
        """Keep public facts that come with the rows: a bound on their norm is a default of `data_norm`.

        If the rows may be raw, warn about a data frame without a vectorizer. After a private step it is too late for a
        warning.
        """
        self.__dict__.pop("_fitted_row_norm", None)
        if (norm := row_norm_of(X)) is not None:
            self._fitted_row_norm = norm
        elif are_raw and hasattr(X, "columns") and (assumed := self._left_to_assume()):
            note_notice(self, raw_columns_notice(assumed))
        self._note_row_form(row_form_of(X))

    def _left_to_assume(self) -> str:
        """Return the parameter without which columns are assumed to lie in [-1, 1], or "" if it is set or not required.

        Used for data frames only, because arrays may already be scaled.
        """
        return "data_norm" if getattr(self, "data_norm", 0.0) is None and not getattr(self, "normalize", False) else ""

    def _note_row_form(self, form: Any) -> None:
        """Keep the public form of the rows (None if they have none) where it affects the fit."""

    def __private_step__(self) -> PrivateStep | None:
        """Return this estimator as a step of a pipeline or a search; None if it reads no private rows."""
        return PrivateStep(self)

    def set_params(self, **params: Any) -> Self:
        """Set the parameters of this estimator.

        Parameters
        ----------
        **params : dict of str to object
            Parameters of the estimator. A path given as `accountant` is made absolute.

        Returns
        -------
        self : object
            The estimator itself.
        """
        reject_foreign(type(self), params)
        if "accountant" in params:
            params["accountant"] = absolute_path(params["accountant"])
        with PUBLICATION:
            return super().set_params(**params)

    # --- the budget ---

    def _chosen_sampling(self, n: int) -> Sampling | None:
        """Return the sampling set by `lot_size` or `sampling_rate`, or None if neither is set."""
        if self.lot_size is not None and self.sampling_rate is not None:
            raise ValueError(
                f"At most one of `lot_size` and `sampling_rate` can be set, got lot_size={self.lot_size!r} and "
                f"sampling_rate={self.sampling_rate!r}."
            )
        if self.sampling_rate is not None:
            constraint = "a probability from 1e-9 to 1 (1 is the full batch)"
            return sampling_at(
                check_real("sampling_rate", self.sampling_rate, at_least=1e-9, at_most=1, constraint=constraint)
            )
        if self.lot_size is not None:
            what = self._units_in_words()
            constraint = f"a number from 1 to {n}, the expected number of {what} per step"
            return sampling_at(check_real("lot_size", self.lot_size, at_least=1, at_most=n, constraint=constraint) / n)
        return None

    # --- charge, cost, publication ---

    def _unit(self) -> str:
        """Return the privacy unit of the fit: a row, or a group of rows."""
        return unit_of(self)

    def _units_in_words(self) -> str:
        return "rows" if self._unit() == ROW else "groups"

    def _shifts_rows(self) -> bool:
        """Return whether a neighboring table may have another number of rows, which shifts the positions of others."""
        return bool(adjacency_of(self) == "add_remove" or self._unit() == GROUP)

    def _public_parameters(self) -> dict[str, Any]:
        """Return the parameters that affect the result, without the secret seed."""
        left_out = ("accountant", "checkpoint", "n_jobs", "random_state", "verbose")
        return {name: value for name, value in self.get_params(deep=False).items() if name not in left_out}

    def _set_cost(self, cost: PrivacyCost, releases: tuple[Release, ...] | None = None) -> None:
        """Set the privacy cost of the learned state and its releases; by default a new release."""
        self.privacy_unit_ = self._unit()
        self.adjacency_ = adjacency_of(self)
        releases = (Release(cost.event, self.adjacency_, self.privacy_unit_),) if releases is None else releases
        self.privacy_event_, self.epsilon_, self.delta_ = cost
        self._fitted_releases = releases

    def _private_parts(self) -> list[Any]:
        """Return the private estimators that this one consists of."""
        return []

    def __step_traits__(self) -> StepTraits:
        """Return the traits that a pipeline needs before this estimator is fitted (`StepTraits`)."""
        return StepTraits(fault_behind=self._fault_of_lists)

    def _fault_of_lists(self, before: Any) -> str:
        """Return an error message for a parameter with one entry per column if a step estimates their number."""
        names = []
        for name in ("bounds", "categories"):
            value: Any = getattr(self, name, None)
            is_list = isinstance(value, list | tuple | np.ndarray)
            if is_list and not isinstance(next(iter(value), ""), str | Real):  # of something for each column
                names.append(name)
        if not names or traits_of(before).width_is_public:
            return ""
        return (
            f"`{names[0]}` is a list with one entry per column, but the number of columns is chosen by the previous "
            "step. Pass a single value for all columns."
        )


@with_parameters
class BudgetedEstimator(PrivateEstimator):
    """Base class of private estimators with the usual privacy parameters; their classes document them."""

    _: KW_ONLY
    epsilon: Any = 1.0
    delta: float | str = "auto"
    noise_multiplier: float | None = None
    adjacency: Any = None
    accountant: Any = None
    random_state: Any = None


class JointPrivacyCost(Watched, Diagram, PlainState):
    """Composed privacy cost of an object with private parts, computed from their current state."""

    delta_: float
    adjacency_: str

    def _private_parts(self) -> list[Any]:
        """Return the private estimators that this object consists of."""
        raise NotImplementedError(f"{type(self).__name__} must implement _private_parts.")

    @property
    def privacy_event_(self) -> DpEvent:
        """Composition of the events of all fits on which the current state depends."""
        found = releases_of(self)
        if not found:
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet. Call fit first.")
        others = {release.adjacency for release in found} - {self.adjacency_}
        if others:
            raise ValueError(
                f"A part was fitted with adjacency={others.pop()!r} and the whole with {self.adjacency_!r}. Costs "
                "under different neighboring relations cannot be composed. Fit the whole again."
            )
        if len({release.unit for release in found}) > 1:
            raise ValueError(
                "Either a part or the whole was fitted with groups, but not both. Row-level and group-level costs "
                "cannot be composed. Fit the whole again."
            )
        return compose(release.event for release in found)

    @property
    def epsilon_(self) -> float:
        """Composed privacy cost of `privacy_event_` at `delta_`, in nats."""
        return get_epsilon(self.privacy_event_, self.delta_, adjacency=self.adjacency_)
