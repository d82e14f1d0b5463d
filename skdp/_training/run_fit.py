"""The fit of one run, which may start from the current parameters, resume from a file, and read a source of rows."""

from __future__ import annotations

from typing import Any, TypeVar

from skdp._checks.leaks import begin_record, note_leaks
from skdp._checks.notices import tell_now
from skdp._checks.rows import check_schema
from skdp._checks.sources import RowSource, is_elsewhere, refuse_rows_elsewhere, source_to_fit
from skdp._checks.weights import warn_of_no_bound
from skdp._fit.conductor import PhasedFit, conduct, public_shape
from skdp._fit.fit import units_of
from skdp._fit.releases import copy_to_fit
from skdp._training.run import Plan, Targets
from skdp._training.run_lock import RunLock
from skdp.accounting import resolve_accountant
from skdp.exceptions import BudgetExceededError

Fitted = TypeVar("Fitted")


class RunFit(PhasedFit):
    """One run of a `GradientEstimator`.

    Parameters
    ----------
    target : GradientEstimator
    X, y, sample_weight, groups : object
        Rows, targets, weights and labels of units; private.
    named : object
        What the call itself says of the outputs; public.
    warm : bool
        Whether the run starts from the current parameters.
    """

    _plan: Plan

    def __init__(self, target: Any, X: Any, y: Any, sample_weight: Any, groups: Any, *, named: Any, warm: bool) -> None:
        super().__init__(target, copy_to_fit(target, keep_learned=True))
        self._task = self.work._task()
        self._X, self._y, self._weights, self._groups = X, y, sample_weight, groups
        self._named, self._warm = named, warm

    def plan(self) -> None:
        """See `PhasedFit`. Outputs that no one named are read from the targets first."""
        work, warm = self.work, self._warm
        self._terms = work._check_terms()
        if warm:  # the state depends on earlier runs too
            now = work._fitted_leaks
            begin_record(work, self.target.__dict__.get("_fitted_leaks"))
            note_leaks(work, *now)
        warn_of_no_bound(work.weight_bound, self._weights)
        self._source = self._find_source()
        rows, self.units = units_of(work, self._X if self._source is None else self._source, self._groups)
        if self._source is None:
            self._X = rows
        if warm:
            self._refuse_other_units()
        if self.units is not None and work._check_merge_equal_rows() is True:
            raise ValueError("merge_equal_rows=True with groups, whose rows are not merged: choose 'auto' or False.")
        self._outputs = self._task.resolve(None if self._source else self._y, self._named, warm=warm)
        work._note_rows(rows)
        if self._source is not None:
            check_schema(work, self._source.like(), reset=not warm)
        shape = rows.shape if isinstance(rows, RowSource) else public_shape(rows)
        if self._outputs is not None and shape is not None and not (warm and shape[1] != work.n_features_in_):
            self._plan_for(shape, self._outputs)

    def _refuse_other_units(self) -> None:
        """Refuse a run for rows after one for groups, the other way round, and groups by another column."""
        earlier, now = self.target.privacy_unit_, self.work.privacy_unit_
        if earlier != now:
            raise ValueError(
                f"earlier runs were private for a {earlier}, and this one would be for a {now}: give groups to all "
                "runs or to none, or start again with fit and warm_start=False."
            )
        names = [each.__dict__.get("_fitted_group_name") for each in (self.target, self.work)]
        if all(names) and names[0] != names[1]:
            raise ValueError(
                f"groups={names[1]!r} differs from the {names[0]!r} of earlier runs, and two kinds of groups have no "
                "joint price: give the same column to all runs, or start again with fit and warm_start=False."
            )
        if names[0]:
            self.work._fitted_group_name = names[0]

    def _find_source(self) -> RowSource | None:
        """Return the source of rows that are not in memory, which are read after the charge; None for all others."""
        work, task = self.work, self._task
        if not work._streams:
            refuse_rows_elsewhere(type(work).__name__, self._X)
            return None
        if not is_elsewhere(self._X, self._y):
            return None  # before the outputs are looked at, which rows in memory may decide
        are_named = self._warm or self._named is not None or task.named() is not None
        source = source_to_fit(
            self._X, self._y, self._weights, self._groups, task.parameter, are_named=are_named,
            n_samples_public=work.n_samples_public,
        )  # fmt: skip
        if source is not None and getattr(work, "inference", False):
            raise ValueError(
                "inference=True with rows that are not in memory, which are read once: use inference=False, or give "
                "the rows as an array."
            )
        if source is not None and work._check_merge_equal_rows() is True:
            raise ValueError(
                "merge_equal_rows=True with rows that are not in memory, which are not merged: choose 'auto' or False."
            )
        return source

    def _plan_for(self, shape: tuple[int, int], outputs: Any) -> None:
        shape = shape if self.units is None else (self.units.n_units, shape[1])
        self._plan = self.work._plan_next_run(self._terms, shape, outputs, warm=self._warm)
        self.event, self.delta, self.n_public = self._plan.event, self._plan.price.delta, self._plan.n_public

    def read(self) -> None:
        """See `PhasedFit`. A source is read, and refused, after the charge."""
        if self._source is not None:
            self._rows, self._targets = self._source, Targets(self._outputs, None, 1.0)
            return
        self._rows = self.work._check_rows(self._X, reset=not self._warm)
        targets = self._task.encode(self._y, self._weights, self._rows.shape[0], self._outputs)
        self._targets = targets._replace(units=self.units)

    def plan_read(self) -> None:
        """See `PhasedFit`."""
        self._plan_for(self._rows.shape, self._targets.outputs)

    def prepare(self) -> None:
        """See `PhasedFit`. The file of the run, with the initial state, is written before the charge."""
        plan, rows = self._plan, self._rows
        if not self._warm:
            tell_now(self.work, self.work._weak_signal(plan.run, plan.n_public, rows.shape[1]))
        if plan.checkpoint is not None:
            plan.checkpoint.check_run((plan.n_public, *rows.shape[1:], str(rows.dtype)))
            plan.checkpoint.check_bought(plan.bought_first, plan.purchases)
            self.work._begin_file(plan, rows.dtype)

    def is_paid(self) -> bool:
        """See `PhasedFit`: whether the run resumes from a file, and this ledger already holds its charge."""
        plan, accountant = self._plan, resolve_accountant(self.work.accountant)
        if accountant is None or plan.checkpoint is None or not plan.checkpoint.begun:
            return False
        return any(charge.note == plan.note and charge.event == plan.event for charge in accountant.history)

    def charge(self) -> None:
        """See `PhasedFit`."""
        try:
            self.payment().charge(self._plan.event, self._plan.note)
        except BudgetExceededError:  # others charged since the ledger was asked
            if self._plan.checkpoint is not None:
                self._plan.checkpoint.discard()
            raise

    def learn(self) -> str:
        """See `PhasedFit`."""
        interrupted: str = self.work._learn(self._plan, self._rows, self._targets)
        return interrupted

    def finish(self) -> None:
        """See `PhasedFit`. An interrupted run keeps its checkpoint, from which the next fit resumes."""
        if self._plan.checkpoint is not None:
            self._plan.checkpoint.finish()


def fit_run(model: Fitted, X: Any, y: Any, sample_weight: Any, groups: Any, *, named: Any = None, warm: bool) -> Fitted:
    """Fit a model by one run, under the lock of its checkpoint if it has one."""
    fit = RunFit(model, X, y, sample_weight, groups, named=named, warm=warm)
    if fit.work.checkpoint is None:
        conduct(fit)
        return model
    with RunLock(fit.work.checkpoint) as lock:
        lock.take()
        conduct(fit)
    return model


__all__ = ["RunFit", "fit_run"]
