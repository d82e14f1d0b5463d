"""Protocol by which pipelines and searches fit private estimators and allot their noise.

A private step has a method ``__private_step__`` that returns a `PrivateStep`, or another object with its methods. This
method is the only difference from a stateless step (docs/extending.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np
from sklearn.base import clone

from skdp._checks.frames import types_of
from skdp._checks.groups import take_unit
from skdp._checks.notices import note_notice, tell_now
from skdp._checks.parameters import adjacency_of, is_private, public_n, settle_adjacency
from skdp._checks.rows import row_form_of, table_shape
from skdp.accounting import DpEvent, PrivacyAccountant, resolve_accountant
from skdp.base.fit import BEGUN, CHARGED, ENDED, PLANNED, READ, Fit, Paused


class StepPlan(NamedTuple):
    """Privacy cost of a fit as a function of its noise multiplier, and the parameters that give this cost.

    `row_form` is the public form of the rows for which the fit was planned, None for rows without one.
    """

    event_at: Callable[[float], DpEvent]
    parameters: dict[str, Any]
    row_form: Any = None


class StepFit(Fit):
    """Fit of a step that a pipeline or a search runs up to a stage, or completely, and accounts for.

    Data that one pass has read are kept for the next pass, so that nothing is read, or reported, twice.

    Attributes
    ----------
    are_raw : bool
        Whether the rows come from the user or from stateless steps, so that a quality warning may apply.
    interrupted : str
        Where an interrupt ended the fit early, or "".
    """

    is_whole = False

    def __init__(self, estimator: Any, number: int, row_form: Any = None, rehearsal: bool = False) -> None:
        # Steps of one class and one seed have independent noise by their numbers.
        super().__init__(estimator, ("step of a pipeline", number), *[("rehearsal", 0)] * rehearsal)
        take_unit(self.model, estimator)
        self._row_form, self._is_rehearsal, self.n_features = row_form, rehearsal, None
        if rehearsal:
            self._stream.track = None  # nothing that is simulated is a release, and an audit counts those of each step
        self._kept: list[Any] = []
        self._kept_first: Any = None  # of what is read before the plan
        self.are_raw, self.interrupted = True, ""

    def run(self, until: str, X: Any, n: int, shape: tuple[int, int | None], y: Any = None, **params: Any) -> Any:
        """Run ``fit`` of the estimator up to a stage, or to its end; `n` is the number of rows or groups.

        Return the validated rows, or the fitted estimator at the end.
        """
        self._until, self._given, self.precedes_charge = until, (X, n, shape), until != "publish"
        self._stage, self._released, self._n_reads = BEGUN, {}, 0
        self.estimator._allotted_fit = self
        try:
            # `read_shape` has the rows: they are in memory, maps included.
            fitted = self.estimator.fit(None, y, **params)
        except Paused:
            return self._kept[0] if self._kept else None
        finally:
            self.estimator.__dict__.pop("_allotted_fit", None)
        if self.precedes_charge:
            raise RuntimeError(
                f"fit of {type(fitted).__name__} continued before the budget was charged. It must not catch "
                "BaseException."
            )
        return fitted

    def read_shape(self, X: Any, groups: Any) -> None:
        """See `Fit`: rows and groups are those of the pipeline, which has read them."""
        self.rows, n, (self.n_rows, self.n_features) = self._given
        self.units = groups
        if self.rows is not None and (not self._kept or self._kept[0] is None):  # they were not read yet
            self.model._note_rows(self.rows, self.are_raw)
            if self._row_form is not None and row_form_of(self.rows) != self._row_form:
                raise ValueError(
                    "The rows do not have the form that the previous step should return. Please report this."
                )
            self.model._note_row_form(self._row_form)  # the planned one, as it may determine the cost
        self._settle(n)

    def read_before_plan(self, reader: Any, *given: Any) -> Any:
        if self._until in ("charge", "publish") and self._kept_first is None:
            self._kept_first = reader(*given)
        return self._kept_first

    def warn(self, notice: str) -> None:
        """See `Fit`: if the width is known only after the charge, a warning waits for the end."""
        if not self._is_rehearsal:
            (note_notice if self._until == "publish" else tell_now)(self.model, notice)

    def _admit(self) -> None:
        """See `Fit`: the budget of the whole is checked instead."""

    def read(self, reader: Any, *given: Any, **how: Any) -> Any:
        """See `Fit`. The rows are read first, and are None until they exist."""
        self._advance(READ, PLANNED, READ)
        place = self._n_reads
        self._n_reads += 1
        if self._until == "read" or (self._until == "targets" and place > 0):
            self._pause()
        if place == len(self._kept):
            self._kept.append(None)
        elif self._kept[place] is not None:
            return self._kept[place]
        if place > 0 or self.rows is not None:
            self._kept[place] = reader(*given, **how)
        return self._kept[place]

    def charge(self) -> None:
        """See `Fit`: the whole is charged before the last pass."""
        self._advance(CHARGED, PLANNED, READ)
        if self.precedes_charge:
            self._pause()

    def _pause(self) -> NoReturn:
        """End a pass. A ``fit`` that catches this exception cannot continue."""
        self._stage = ENDED
        raise Paused

    def _tell(self, interrupted: str) -> None:
        """See `Fit`: the whole issues warnings."""
        self.interrupted = interrupted


class PrivateStep:
    """A private estimator in the fit of a pipeline or a search: its privacy cost, then the stages of its fit, in order.

    Only ``fit``, `_plan_step` and ``transform`` of the estimator are called.

    Parameters
    ----------
    estimator : PrivateEstimator
        It is changed by `set_params`, `begin` and later stages.
    """

    maker: Any = None
    """The stateless step that is given the table itself, and gives its rows to this one; None for any other place."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        self._row_form: Any = None
        self._params: dict[str, Any] = {}
        self._y: Any = None

    # --- what is public of it ---

    @property
    def adjacency(self) -> str:
        """Neighboring relation, which is the same for all steps of a pipeline."""
        return adjacency_of(self.estimator)

    @property
    def accountant(self) -> PrivacyAccountant | None:
        """Accountant of the estimator."""
        return resolve_accountant(self.estimator.accountant)

    @property
    def width_is_public(self) -> bool:
        """Whether the number of output columns is known before the fit."""
        return traits_of(self.estimator).width_is_public

    def public_n_samples(self, n_samples: int) -> int:
        """Return the number of rows, or of groups, that defaults may use."""
        return int(public_n(self.estimator, n_samples))

    def note_unit(self, whole: Any) -> None:
        """Take the privacy unit of the whole in which the step is fitted."""
        take_unit(self.estimator, whole)

    def plan(self, n_samples: int, n_features: int, delta: float) -> StepPlan:
        """Return the privacy cost of a fit to a table of this shape; `delta` is that of the whole."""
        planned = copy(self.estimator).set_params(delta=delta)
        settle_adjacency(planned)
        planned._noise_is_allotted = True
        form = traits_of(self.maker).row_form
        planned._note_row_form(None if form is None else form(n_features))
        plan: StepPlan = planned._plan_step(n_samples, n_features)
        return plan

    def allot(self, plan: StepPlan, noise_multiplier: float, delta: float) -> Self:
        """Return a step whose estimator has this noise and no accountant, so that its fit costs as planned."""
        noise = {"epsilon": None, "noise_multiplier": noise_multiplier, "delta": delta, "accountant": None}
        made = type(self)(clone(self.estimator).set_params(**plan.parameters, **noise))
        made._row_form = plan.row_form
        made.estimator._noise_is_allotted = True
        made.note_unit(self.estimator)
        return made

    # --- the stages of its fit ---

    def begin(self, number: int) -> None:
        """Reject invalid parameters without knowing the table; `number` is the position among the private steps.

        Steps of the same class and seed have independent noise because of their numbers.
        """
        self._number, self._fit = number, StepFit(self.estimator, number, self._row_form)

    def check_parameters(self, n_samples: int, n_features: int | None) -> None:
        """Run ``fit`` up to its first access to rows; a width of None is not known yet."""
        self._fit.run("read", None, n_samples, (n_samples, n_features))

    def check_rows(self, X: Any, are_raw: bool = True) -> Any:
        """Run ``fit`` up to its first access to labels, and return the validated rows.

        `are_raw` states that the rows come from the user or from stateless steps, so that a quality warning may apply.
        Output rows of a private step are read by `learn`.
        """
        self._rows, self._fit.are_raw = X, are_raw
        if not are_raw:
            return X
        n, d = table_shape(X)
        return self._fit.run("targets", X, n, (n, d))

    def check_targets(self, y: Any, n_samples: int, **fit_params: Any) -> None:
        """Run ``fit`` up to the charge."""
        self._y, self._params = y, fit_params
        units = fit_params.get("groups")
        n, shape = n_samples if units is None else units.n_units, (n_samples, self._fit.n_features)
        self._fit.run("charge", None, n, shape, y, **fit_params)

    def check_made_up(self, rows: Any) -> tuple[Any, Any]:
        """Return the fit of a copy, and simulated rows as it reads them; reject objects where numbers are needed."""
        stand_in = clone(self.estimator)
        take_unit(stand_in, self.estimator)
        fit = StepFit(stand_in, self._number, rehearsal=True)
        fit.are_raw = False
        checked = fit.run("targets", rows, self.public_n_samples(len(rows)), table_shape(rows))
        # Any cell of an object could turn out to be no number.
        holds_objects = any(getattr(dtype, "kind", "") == "O" for dtype in types_of(rows))
        if holds_objects and isinstance(checked, np.ndarray) and checked.dtype.kind != "O":
            raise ValueError(
                "X contains Python objects, but numbers are required. The previous step must return numbers."
            )
        return fit, checked

    def rehearse(self, rows: Any, n_samples: int) -> Any:
        """Return simulated rows, transformed by a copy that is fitted to them with separate randomness."""
        fit, _ = self.check_made_up(rows)
        return fit.run("publish", rows, n_samples, table_shape(rows)).transform(rows)

    def learn(self, rows: Any, n_samples: int) -> str:
        """Run the whole ``fit``; return where an interrupt ended it early, or ""."""
        self._fit.run("publish", self._rows, n_samples, table_shape(self._rows), self._y, **self._params)
        return self._fit.interrupted

    def set_cost(self, cost: Any, releases: tuple[Any, ...]) -> None:
        """Set the privacy cost of the fitted estimator within a whole, such as a search."""
        self.estimator._set_cost(cost, releases)


def step_of(estimator: Any) -> PrivateStep:
    """Return the private step of an estimator."""
    step: PrivateStep = estimator.__private_step__()
    return step


def private_steps(steps: Iterable[tuple[str, Any]]) -> list[tuple[str, PrivateStep]]:
    """Return the private ones among named steps, in order."""
    named = list(steps)
    found = [(name, step_of(step)) for name, step in named if is_private(step)]
    if len(named) > 1 and [is_private(step) for _, step in named[:2]] == [False, True]:
        found[0][1].maker = named[0][1]
    return found


@dataclass(frozen=True)
class StepTraits:
    """Facts about a step that follow from its constructor parameters, returned by its method ``__step_traits__``.

    Attributes
    ----------
    width_is_public : bool, default=True
        Whether the number of output columns is known before the fit.
    sets_width : bool, default=False
        Whether the number of output columns does not depend on the number of input columns.
    gives_sparse_rows : bool, default=False
        Whether the output may be sparse.
    gives_codes : bool, default=False
        Whether the output is ordinal-encoded columns with their public schema.
    gives_norms : bool, default=False
        Whether output arrays carry a bound on the norm of their rows. Data frames cannot.
    takes_codes : bool, default=False
        Whether the input must be such ordinal-encoded columns, with NaN for missing values. For all other steps after a
        private one, NaN and infinity are set to zero.
    fault_behind : callable or None, default=None
        ``fault_behind(before)`` returns an error message if this step might reject the output of the step `before`,
        which would happen after the charge; otherwise "". The pipeline is then rejected with this message.
    row_form : callable or None, default=None
        ``row_form(n_features)`` returns the public form of the output for an input with `n_features` columns, or None.
    note_whole : callable or None, default=None
        ``note_whole(n_public, epsilon)`` is called before the fit with the public number of rows and the privacy budget
        of the whole pipeline, for defaults that depend on them.
    fraction : float or None, default=None
        Default fraction of the squared mu of the budget for a transformer; None for the common default.
    """

    width_is_public: bool = True
    sets_width: bool = False
    gives_sparse_rows: bool = False
    gives_codes: bool = False
    gives_norms: bool = False
    takes_codes: bool = False
    fault_behind: Callable[[Any], str] | None = None
    row_form: Callable[[int], Any] | None = None
    note_whole: Callable[[int, float], None] | None = None
    fraction: float | None = None


def traits_of(step: Any) -> StepTraits:
    """Return the traits of a step, or the defaults if it does not define any."""
    tell = getattr(step, "__step_traits__", None)
    return tell() if callable(tell) else StepTraits()
