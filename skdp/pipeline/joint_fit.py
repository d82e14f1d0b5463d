"""Joint fit of the steps of a private pipeline, with the noise that is allotted to each private step."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable
from copy import copy
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from skdp._checks.groups import ROW
from skdp._checks.leaks import note_leaks
from skdp._checks.notices import repeat_notices
from skdp._checks.numbers import float_of
from skdp._checks.parameters import check_delta, is_private, stated_adjacency
from skdp._checks.rows import column_names, row_indicators_of, row_norm_of, table_shape, take_rows, with_row_norm
from skdp.accounting import DpEvent, compose, get_epsilon
from skdp.accounting.calibration import calibrate_jointly_to
from skdp.base import public_steps
from skdp.base.budget import Release, ids_of, read_epsilon
from skdp.base.estimator import PrivateEstimator
from skdp.base.fit import publish
from skdp.base.pipeline_issues import check_structure
from skdp.base.private_step import PrivateStep, StepPlan, private_steps, step_of, traits_of
from skdp.base.row_wise import RowWiseError

_MADE_UP = 12  # rows of a rehearsal


class Allocation(NamedTuple):
    """Plans of the private steps, in order, and the noise multiplier of each."""

    plans: list[StepPlan]
    noises: tuple[float, ...]

    @property
    def events(self) -> list[DpEvent]:
        """The event of each step."""
        return [plan.event_at(sigma) for plan, sigma in zip(self.plans, self.noises, strict=True)]

    @property
    def event(self) -> DpEvent:
        """Composed event of all private steps."""
        return compose(self.events)

    def scaled(self, scale: float) -> Allocation:
        """Return the same plans with all noise multiplied by `scale`."""
        return Allocation(self.plans, tuple(scale * sigma for sigma in self.noises))


class JointFit:
    """A fit through all its phases. The methods must be called in this order.

    Parameters
    ----------
    steps : iterable of (str, estimator)
        Private and stateless steps, which are copied.
    allocation : Allocation
    delta : float
    fit_params : dict of str to dict or None
        Parameters of ``fit`` by step name.
    seed : int or None
        Seed of all private steps; None keeps their own.
    units : Units or None
        Groups of the rows, for all private steps.

    Attributes
    ----------
    steps : list of (str, estimator)
        The copies, fitted by `learn`.
    """

    def __init__(
        self,
        steps: Iterable[tuple[str, Any]],
        allocation: Allocation,
        delta: float,
        fit_params: dict[str, dict[str, Any]] | None = None,
        seed: int | None = None,
        units: Any = None,
    ) -> None:
        self._units = units
        self._fit_params, self._allocation, self._delta = fit_params or {}, allocation, delta
        self._private: dict[str, PrivateStep] = {}
        self.steps: list[tuple[str, Any]] = []
        allotted = zip(allocation.plans, allocation.noises, strict=True)
        for name, step in steps:
            if is_private(step):
                self._private[name] = step_of(step).allot(*next(allotted), delta)
                copied = self._private[name].estimator
                if seed is not None:
                    copied.set_params(random_state=seed)
            else:
                copied = clone(step, safe=False)
            self.steps.append((name, copied))
        for number, private in enumerate(self._private.values()):
            private.begin(number)
        self._first = next(i for i, (name, _) in enumerate(self.steps) if name in self._private)

    @property
    def event(self) -> DpEvent:
        """Composed event of the fitted steps."""
        return compose(private.estimator.privacy_event_ for private in self._private.values())

    def check_parameters(self, n_samples: int, n_features: int | None = None) -> None:
        """Reject invalid parameters before a row is read; only a first step knows the width of the table."""
        self._check_sparse()
        self._check_places()
        for number, (name, _) in enumerate(self.steps):
            if name in self._private:
                self._private[name].check_parameters(n_samples, n_features if number == 0 else None)

    def _check_sparse(self) -> None:
        """Reject a step that accepts no sparse rows after one that may return them."""
        giving = remedy = ""
        for number, (name, step) in enumerate(self.steps):
            if giving and not public_steps.takes_sparse(step):
                raise ValueError(
                    f"Step {name!r} ({type(step).__name__}) does not accept sparse rows, which step {giving!r} may "
                    f"return. Set {giving}__{remedy}."
                )
            if name in self._private:
                estimator = self._private[name].estimator
                giving = name if traits_of(estimator).gives_sparse_rows else ""
                remedy = "sparse_output=False" if hasattr(estimator, "sparse_output") else "encode='ordinal'"
                if giving and public_steps.output_of(estimator) != "default" and step is not self.steps[-1][1]:
                    raise ValueError(
                        f"Step {name!r} returns sparse rows, which a data frame output cannot hold. Set "
                        f"{name}__{remedy}, or set_output(transform='default')."
                    )
            elif number > self._first and getattr(step, "sparse_output", False):
                giving, remedy = name, "sparse_output=False"

    def _check_places(self) -> None:
        """Reject a step that requires rows of one kind after one that may return others after the charge."""
        chooser = None  # the last private step that chose the width by what it released
        for (before_name, before), (name, step) in itertools.pairwise(self.steps[self._first :]):
            private = self._private.get(before_name)
            if private is not None and not private.width_is_public:
                chooser = before
            elif private is not None and traits_of(before).sets_width:
                chooser = None
            for giver in (before, chooser):
                find_fault = traits_of(step).fault_behind
                fault = find_fault(giver) if find_fault is not None and giver is not None else ""
                if fault:
                    raise ValueError(f"Step {name!r}: {fault}")

    def prepare(self, X: Any, y: Any, like: Any = None) -> None:
        """Run the leading stateless steps, and check all that can be checked of rows and labels.

        scikit-learn's steps reject a table without rows, such as a part that coins left empty. They are given `like`
        then, a row that they have taken before the charge, and what they make of it goes again.
        """
        self._n_rows, self._y = table_shape(X)[0], y
        if self._n_rows == 0 and like is not None:
            X = like
        self._n = self._n_rows if self._units is None else self._units.n_units
        self._tell_of_the_whole()
        name = self.steps[self._first][0]
        first, public, are_checked = self._private[name], self.steps[: self._first], False
        for leading, step in public:
            if not are_checked and not public_steps.takes_any_types(step):
                shifts = first.adjacency == "add_remove" or self._units is not None
                public_steps.check_types(
                    X, double=shifts and any(public_steps.rounds_by_place(step) for _, step in public)
                )
                are_checked = True
            X = run_publicly(leading, step, X, y, self._fit_params.get(leading, {}))
        self._rows = X if self._n_rows else take_rows(X, np.empty(0, np.intp))
        self._checked = first.check_rows(self._rows)
        if self._checked.shape[0] != self._n_rows:
            raise ValueError(
                f"Step {name!r} receives a different number of rows than the input. Leading steps must return one row "
                "per input row."
            )
        first.check_parameters(self._n, self._checked.shape[1])
        self._rehearse(self._checked.shape[1])
        for name, private in self._private.items():
            units = {} if self._units is None else {"groups": self._units}
            private.check_targets(y, self._n_rows, **self._fit_params.get(name, {}), **units)

    def _tell_of_the_whole(self) -> None:
        """Tell the steps that follow a rule in them the public number of rows and the cost of the whole."""
        following = [note for _, step in self.steps if (note := traits_of(step).note_whole) is not None]
        if not following:
            return
        first = next(iter(self._private.values()))
        epsilon = get_epsilon(self._allocation.event, self._delta, adjacency=first.adjacency)
        for note in following:
            note(first.public_n_samples(self._n), epsilon)

    def _rehearse(self, width: int) -> None:
        """Run what stands behind the first private step on simulated rows: it must not fail after the charge.

        Not behind a step that chooses its width by what it releases; a last step that is private takes any width, but
        for parameters that list columns.
        """
        behind = self.steps[self._first :]
        last = behind[-1][1]
        any_width = is_private(last) and not hasattr(last, "transform") and not hasattr(last, "bounds")
        if len(behind) == 1 or (len(behind) == 2 and any_width):
            return
        rows: Any = np.random.default_rng(0).uniform(-1.0, 1.0, (_MADE_UP, width))
        for number, (name, step) in enumerate(behind):
            private = self._private.get(name)
            if private is None:
                rows = rehearse(name, step, rows)
                continue
            private.check_parameters(self._n, table_shape(rows)[1])
            if number == len(behind) - 1 or not private.width_is_public:
                if number:
                    private.check_made_up(rows)
                return
            rows = zero_wild_rows(self._handed_on(name, private.rehearse(rows, self._n), _MADE_UP))

    def _handed_on(self, name: str, rows: Any, n: int) -> Any:
        """What a private step gives to the next one: a row for each row."""
        if table_shape(rows)[0] != n:
            raise ValueError(f"Step {name!r} must return one row per input row.")
        return rows

    def _fit_for(self, number: int, rows: Any) -> Any:
        """Rows for a step, with NaN and infinity as zeros, unless NaN is a missing value of encoded columns."""
        private = self._private.get(self.steps[number][0])
        return rows if private is not None and traits_of(private.estimator).takes_codes else zero_wild_rows(rows)

    def learn(
        self, timed: Callable[[int, str], contextlib.AbstractContextManager[None]] | None = None
    ) -> tuple[Any, str]:
        """Fit the first private step and all later ones; return the last rows, and where an interrupt ended a step."""
        rows, last, interrupted = self._rows, len(self.steps) - 1, ""
        for number, (name, step) in enumerate(self.steps[self._first :], self._first):
            with contextlib.nullcontext() if timed is None else timed(number, name):
                private = self._private.get(name)
                if private is not None:
                    checked = self._checked if number == self._first else private.check_rows(rows, are_raw=False)
                    interrupted = private.learn(checked, self._n) or interrupted
                    if number < last:
                        rows = self._fit_for(number + 1, self._handed_on(name, step.transform(rows), self._n_rows))
                else:
                    made = run_after_the_charge(name, step, rows, self._y, self._fit_params.get(name, {}))
                    rows = made if number < last else rows
        return rows, interrupted


def run_publicly(name: str, step: Any, X: Any, y: Any, params: dict[str, Any]) -> Any:
    """Transform rows by a stateless step, without showing the message of an error."""
    if public_steps.passes_rows(step):
        return X
    # Raised outside of the handler, so that no error that may show a cell is chained to it.
    rejected, made = "", None
    try:
        with public_steps.quietly():
            made = step.fit_transform(X, y, **params)
    except RowWiseError as error:
        rejected = str(error)
    except Exception as error:  # its message, and its context, may show a cell
        rejected = (
            f"{type(step).__name__} raised {type(error).__name__} for the rows. Fit the step alone to see the error, "
            "and let it accept all values, such as unknown categories and missing values."
        )
        if public_steps.takes_any_types(step) and isinstance(error, TypeError | ValueError):
            rejected = str(error)
    if rejected:
        raise ValueError(f"Step {name!r}: {rejected}")
    repeat_notices(step)
    if table_shape(made)[0] != table_shape(X)[0]:
        raise ValueError(f"Step {name!r} ({type(step).__name__}) must return one row per input row.")
    return made


def run_after_the_charge(name: str, step: Any, X: Any, y: Any, params: dict[str, Any]) -> Any:
    """Transform rows by a stateless step after a private one, where an error would be an unaccounted query.

    scikit-learn's own check for NaN is skipped. A row whose output has NaN, infinity or values that are not numeric
    becomes a row of zeros, which depends on that row only. An empty table, which scikit-learn rejects, gets a row of
    zeros for the step, which is then removed.
    """
    is_empty = table_shape(X)[0] == 0
    with config_context(assume_finite=True):
        made = zero_wild_rows(run_publicly(name, step, _zero_row_like(X) if is_empty else X, y, params))
    return take_rows(made, np.empty(0, np.intp)) if is_empty else made


def _zero_row_like(X: Any) -> Any:
    """A row of zeros with the columns and the types of a table of numbers."""
    if hasattr(X, "iloc"):
        return _taken_or_zero(X, np.array([-1]))
    if column_names(X) is not None:
        return type(X)({name: np.zeros(1) for name in X.columns}).cast(X.schema)
    made = type(X)((1, X.shape[1]), dtype=X.dtype) if sp.issparse(X) else np.zeros((1, *X.shape[1:]), X.dtype)
    return with_row_norm(made, row_norm_of(X))


def rehearse(name: str, step: Any, X: Any) -> Any:
    """Transform simulated rows by a stateless step before the charge. The message of an error may be shown."""
    if public_steps.passes_rows(step):
        return X
    try:
        with public_steps.quietly(), config_context(assume_finite=True):
            made = step.fit_transform(X, None)
            # Whether the next step can read cells without a type of their own would depend on the rows.
            if np.dtype(object) in (list(made.dtypes) if hasattr(made, "iloc") else [getattr(made, "dtype", None)]):
                raise TypeError("the output has dtype object, but the next step requires numbers or strings")
            return zero_wild_rows(made)
    except Exception as error:
        reason = " ".join(str(error).split())
        raise ValueError(
            f"Step {name!r} ({type(step).__name__}) fails on simulated rows of the expected width "
            f"({type(error).__name__}: {reason}). Fix the step: after a private step it runs when the budget is "
            "already charged."
        ) from None


def zero_wild_rows(made: Any) -> Any:
    """Replace rows with NaN, infinity or values that are not numeric by rows of zeros."""
    traits = row_norm_of(made), row_indicators_of(made)  # hold for what is zeroed too
    return with_row_norm(_zero_wild(made), *traits)


def _zero_wild(made: Any) -> Any:
    if sp.issparse(made):
        made = made.tocsr(copy=True)
        wild = ~np.isfinite(made.data)
        if wild.any():
            rows = np.repeat(np.arange(made.shape[0]), np.diff(made.indptr))
            made.data[np.isin(rows, rows[wild])] = 0.0
        return made
    made = _without_objects(made)
    rows = _find_wild_rows(made)  # decided row by row, so no row depends on another
    if not rows.any():
        return made
    if isinstance(made, np.ndarray):
        return np.where(rows.reshape(-1, *[1] * (made.ndim - 1)), made.dtype.type(0), made)
    places = np.arange(len(rows))
    if hasattr(made, "iloc"):
        return _taken_or_zero(made, np.where(rows, -1, places)).set_axis(made.index)
    return made.vstack(_zero_row_like(made))[np.where(rows, len(rows), places)]


def _taken_or_zero(frame: Any, places: np.ndarray) -> Any:
    """Rows of a frame of pandas at these places, rows of zeros for -1; as objects, for which pandas has no warning."""
    return frame.astype(object).reset_index(drop=True).reindex(places, fill_value=0).astype(frame.dtypes)


def _without_objects(made: Any) -> Any:
    """Cells that are objects as doubles, each by itself; NaN where it is no number."""
    if isinstance(made, np.ndarray) and made.dtype == object:
        return np.frompyfunc(float_of, 1, 1)(made).astype(np.float64)
    if hasattr(made, "iloc") and np.dtype(object) in list(made.dtypes):
        places = [place for place, dtype in enumerate(made.dtypes) if dtype == np.dtype(object)]
        made = made.copy(deep=False)
        for place in places:
            made.isetitem(place, _without_objects(made.iloc[:, place].to_numpy()))
    return made


def _find_wild_rows(made: Any) -> np.ndarray:
    """Rows of an array or a frame of numbers that hold NaN, infinity or a missing value."""
    values = np.asarray(made)
    if values.dtype.kind == "f":
        return ~np.isfinite(values).all(axis=tuple(range(1, values.ndim)))
    wild = np.zeros(len(values), bool)
    if values.dtype.kind == "O" and column_names(made) is not None:  # columns have types of their own
        for column in made.columns:
            wild |= _find_wild_cells(made[column])
    return wild


def _find_wild_cells(column: Any) -> np.ndarray:
    gaps = np.array(column.isna() if hasattr(column, "isna") else column.is_null(), bool)
    cells = np.array(column, object)
    cells[gaps] = 0
    try:
        return gaps | ~np.isfinite(cells.astype(np.float64))
    except (TypeError, ValueError):  # texts
        return gaps


# --- the budget of a pipeline ---


def reject_findings(pipeline: Any) -> None:
    """Reject a pipeline that cannot have a joint budget, with all its issues."""
    if not isinstance(pipeline, Pipeline):
        raise TypeError(f"`pipeline` must be a sklearn.pipeline.Pipeline, got {type(pipeline).__name__}.")
    check_structure(pipeline)
    charged, faults = False, []
    for name, step in pipeline.steps:
        if is_private(step):
            if not isinstance(step, PrivateEstimator):  # which keeps the cost of a step after another fit
                raise ValueError(
                    f"Step {name!r} ({type(step).__name__}) defines __private_step__ and must be a subclass of "
                    "skdp.base.PrivateEstimator (see docs/extending.md)."
                )
            _reject_overrides(name, step)
            charged = True
            continue
        found, end = list(public_steps.find_faults(step, name)), " instead."
        if not found and charged:
            found, end = list(public_steps.value_rejections(step, name)), "."
        faults += [f"Step {path!r}: {kind} {reads}. Use {remedy}{end}" for path, kind, reads, remedy in found]
    if faults:
        raise ValueError(" ".join(faults))


def _reject_overrides(name: str, step: Any) -> None:
    """A pipeline runs ``fit`` in several passes: what an override adds to one of ours would run in each of them."""
    for method in ("fit", "transform", "fit_transform", "partial_fit"):
        owners = [cls for cls in type(step).__mro__ if method in vars(cls)]
        ours = [cls.__module__.partition(".")[0] == "skdp" for cls in owners]
        if any(ours) and not ours[0]:
            raise ValueError(
                f"Step {name!r} ({type(step).__name__}) overrides {method} of an skdp class, but a private pipeline "
                "runs this method in several passes. Use the class it inherits from."
            )


def check_budget(pipeline: Any) -> None:
    """Reject a private pipeline that cannot be fitted, as far as this is known before there are rows."""
    reject_findings(pipeline)
    read_epsilon(pipeline.epsilon)
    check_delta(pipeline.delta)
    for parameter in ("memory", "transform_input"):
        if getattr(pipeline, parameter) is not None:
            raise ValueError(f"`{parameter}` must be None in a private pipeline, got {getattr(pipeline, parameter)!r}.")
    # Nothing else may see rows.
    for part in (pipeline, *pipeline.get_params().values()):
        if getattr(part, "__dict__", {}).get("_skl_callbacks"):  # of scikit-learn 1.9
            raise ValueError(
                f"The callbacks of {type(part).__name__} would see private rows and count the trials of a search. "
                "Remove them with set_callbacks()."
            )
    steps = private_steps(pipeline.steps)
    if not steps:
        raise ValueError("The pipeline must contain a private step that can use the budget.")
    pipeline._check_fractions([name for name, _ in steps])
    # Each fit of a step is new, to rows that earlier steps made.
    for name, step in steps:
        if getattr(step.estimator, "warm_start", False):
            raise ValueError(
                f"Step {name!r}: warm_start must be False in a private pipeline, because earlier steps are fitted "
                "again."
            )
        if (path := getattr(step.estimator, "checkpoint", None)) is not None:  # of rows that earlier steps once gave
            raise ValueError(f"Step {name!r}: checkpoint must be None in a private pipeline, got {path!r}.")
    # All steps have one accountant and one neighboring relation.
    ledgers = [step.accountant for _, step in steps if step.accountant is not None]
    ledger = next(iter(ledgers), None)
    for parameter, values in (
        ("accountant", {ledger.identity for ledger in ledgers}),
        ("adjacency", {stated_adjacency(step.estimator, ledger) for _, step in steps}),
    ):
        if len(values) > 1:
            raise ValueError(
                f"`{parameter}` must be the same for all steps, got different values in {[n for n, _ in steps]}."
            )


def weighted_steps(pipeline: Any) -> list[str]:
    """Return the names of the private steps whose ``fit`` supports sample weights."""
    return [name for name, step in private_steps(pipeline.steps) if has_fit_parameter(step.estimator, "sample_weight")]


def public_rows_of(pipeline: Any, n_samples: int) -> int:
    """Return the number of rows that defaults may use, which is the same for all steps."""
    return private_steps(pipeline.steps)[0][1].public_n_samples(n_samples)


def noises_of(pipeline: Any, plans: list[StepPlan], target: Any) -> tuple[float, ...]:
    """Return the noise multiplier of each private step, at which all together meet the target."""
    steps = private_steps(pipeline.steps)
    fractions = pipeline._check_fractions([name for name, _ in steps])
    events = [plan.event_at for plan in plans]
    return calibrate_jointly_to(events, target, list(fractions.values()), adjacency=steps[0][1].adjacency)


def take_fit(pipeline: Any, fit: JointFit, event: Any) -> None:
    """Give a pipeline the steps of a fit, with its own parameters, and the composed `event` of all."""
    if fit.event != event:
        raise RuntimeError(f"The fit spent {fit.event!r}, but {event!r} was planned. Please report this as a bug.")
    adjacency = private_steps(pipeline.steps)[0][1].adjacency
    pipeline.steps = merge_steps(pipeline.steps, fit.steps)
    pipeline._fitted_releases = (Release(event, adjacency, pipeline.__dict__.get("privacy_unit_", ROW)),)
    pipeline._fitted_inside = ids_of(pipeline._private_parts())
    note_leaks(pipeline)
    pipeline.delta_, pipeline.adjacency_ = pipeline.delta, adjacency


def merge_steps(
    steps: list[tuple[str, Any]], fitted: list[tuple[str, Any]], *, copied: bool = False
) -> list[tuple[str, Any]]:
    """Return the fitted steps; private ones get the parameters of `steps` or of copies of them."""
    merged = []
    for (name, own), (_, learned) in zip(steps, fitted, strict=True):
        if not is_private(own):
            merged.append((name, learned))
            continue
        merged.append((name, copy(own) if copied else own))
        publish(merged[-1][1], learned)
    return merged
