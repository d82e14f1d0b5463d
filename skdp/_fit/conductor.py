"""Fits in phases: DP-SGD and pipelines.

They differ in their phases (`PhasedFit`), never in the order of them. All other fits ask the object of
`skdp._fit.fit` in the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skdp._checks.arithmetic import silent_arithmetic
from skdp._checks.cells import shape_of
from skdp._checks.leaks import note_leaks
from skdp._checks.notices import tell_rest
from skdp._checks.sources import refuse_rows_elsewhere
from skdp._fit.fit import units_of, warn_of_interrupt, warn_of_weak_delta
from skdp._fit.payment import Payment, charged
from skdp._fit.releases import PUBLICATION, Learner, copy_to_fit, publish
from skdp._guard.foreign_fits import report_foreign_fit
from skdp._guard.totals import FitPrice


class PhasedFit:
    """One fit: phases that `conduct` calls once each, in the order in which they stand here.

    Attributes
    ----------
    target : object
        What is fitted.
    work : object
        A copy of it that learns, so that parameters that are set meanwhile change nothing.
    event : DpEvent
        What the fit costs. None until it is planned.
    delta : float
        That of the price, once the fit is planned.
    n_public : int or None
        Public number of rows, or of units, once the fit is planned. None if it is not known before the rows are read.
    units : Units, CountedUnits or None
        Of the rows, where labels of them were given.
    """

    event: Any = None
    delta: float
    n_public: Any = None
    units: Any = None

    def __init__(self, target: Any, work: Any) -> None:
        self.target, self.work = target, work

    def plan(self) -> None:
        """Refuse what can be refused without reading a row, and plan; `event` stays None if that takes the rows."""
        raise NotImplementedError

    def payment(self) -> Payment:
        """Where a planned fit is charged."""
        payment: Payment = self.work._payment()
        return payment

    def is_paid(self) -> bool:
        """Whether the charge was made before: by a run that stopped, from which this one resumes."""
        return False

    def read(self) -> None:
        """Check rows and targets. A refusal is recorded."""

    def plan_read(self) -> None:
        """Plan a fit that `plan` could not plan."""

    def prepare(self) -> None:
        """Do what else precedes the charge."""

    def charge(self) -> None:
        """Charge `event`, or raise and charge nothing."""
        self.payment().charge(self.event)

    def learn(self) -> str:
        """Train the copy; where an interrupt cut that short, or "" if none did."""
        raise NotImplementedError

    def parameters(self) -> dict[str, Any]:
        """Constructor parameters that are published with what was learned."""
        return {}

    def finish(self) -> None:
        """Do what follows the publication of a fit that was not interrupted."""


def conduct(fit: PhasedFit) -> None:
    """Fit and publish: what was learned is published in one assignment."""
    interrupted = learn_under_charge(fit)
    with PUBLICATION:
        publish(fit.target, fit.work, **fit.parameters())
    if interrupted:
        warn_of_interrupt(interrupted)
    else:
        fit.finish()
    tell_rest(fit.target)


@silent_arithmetic
def learn_under_charge(fit: PhasedFit) -> str:
    """Plan, admit, read, charge and learn; where an interrupt cut it short, or "" if none did.

    Notes
    -----
    **Guarantees.**

    - The accountant is asked before a row is read, wherever the price does not depend on what is read first: the
      number of units, the classes, the bounds of targets, or the shape of rows that show none.
    - The charge is made before training reads a row. Rows are checked before it, or read after it.
    - A refusal of rows is recorded. A fit that fails or is interrupted after the charge keeps it.
    """
    fit.plan()
    if fit.event is not None:
        _admit(fit)
    with fit.payment().recording_refusals():
        fit.read()
    if fit.event is None:
        fit.plan_read()
        _admit(fit)
    if fit.n_public is not None:
        warn_of_weak_delta(fit.delta, fit.n_public, fit.units is not None)
        fit.work._fitted_n_public = fit.n_public
    fit.prepare()
    if not fit.is_paid():
        fit.charge()
    return charged(fit.learn)


def _admit(fit: PhasedFit) -> None:
    """Report leaks, and raise what the charge would raise; nothing is charged."""
    if fit.is_paid():
        note_leaks(fit.work, *report_foreign_fit(fit.target))
        return
    payment = fit.payment()
    price = FitPrice(fit.event, fit.delta, payment.adjacency, payment.unit)
    note_leaks(fit.work, *report_foreign_fit(fit.target, price))
    payment.check(fit.event)


class EstimatorFit(PhasedFit):
    """The fit of a private estimator to rows in memory: its phases are methods of `PrivateEstimator`."""

    def __init__(self, target: Any, X: Any, y: Any, fit_params: dict[str, Any]) -> None:
        refuse_rows_elsewhere(type(target).__name__, X)
        super().__init__(target, copy_to_fit(target))
        self._X, self._y, self._fit_params = X, y, fit_params

    def plan(self) -> None:
        """See `PhasedFit`. Rows that show no shape are read first."""
        self._terms = self.work._check_terms()
        groups = self._fit_params.pop("groups", None)
        self._X, self.units = units_of(self.work, self._X, groups)
        if self.units is not None:
            self._fit_params["groups"] = self.units
        self.work._note_rows(self._X)
        if (shape := self._public_shape()) is not None:
            self._plan_for(shape)

    def _public_shape(self) -> tuple[int, int] | None:
        """Rows and columns, without reading a cell; None where they do not show."""
        return public_shape(self._X)

    def _plan_for(self, shape: tuple[int, int | None]) -> None:
        shape = shape if self.units is None else (self.units.n_units, shape[1])
        self._plan = self.work._plan_checked(self._terms, shape)
        self.event, self.delta = self._plan.event, self.work.delta
        self.n_public = self.work._public_n_samples(shape[0])

    def read(self) -> None:
        """See `PhasedFit`."""
        self._rows = self.work._check_rows(self._X)
        self._targets = self.work._check_targets(self._y, self._rows.shape[0], **self._fit_params)

    def plan_read(self) -> None:
        """See `PhasedFit`."""
        self._plan_for(self._rows.shape)

    def learn(self) -> str:
        """See `PhasedFit`."""
        interrupted: str = self.work._learn(self._plan, self._rows, self._targets)
        return interrupted


def fit_publicly(target: Learner, learn: Callable[[Learner], object]) -> Learner:
    """Fit what reads nothing private: `learn` sets the attributes of a copy, and they are published together."""
    work = copy_to_fit(target)
    learn(work)
    publish(target, work)
    return target


def public_shape(X: Any) -> tuple[int, int] | None:
    """Rows and columns of what looks like a table, without reading a cell; None for anything else."""
    try:
        n_samples, n_features = (int(size) for size in shape_of("X", X))
    except (TypeError, ValueError):
        return None
    return (n_samples, n_features) if n_samples > 0 and n_features > 0 else None


__all__ = [
    "EstimatorFit",
    "PhasedFit",
    "conduct",
    "fit_publicly",
    "learn_under_charge",
    "public_shape",
]
