"""Checks of what a fit refuses: by name, in one line without a cell, before any charge."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np

from skdp._checks.leaks import config_context
from skdp._fit.private_step import PrivateStep
from skdp.accounting import AddRemove, PrivacyAccountant
from skdp.exceptions import PrivacyLeakWarning
from skdp.mechanisms.tape import Tape
from skdp.testing.demands import Inapplicable, demand
from skdp.testing.subjects import (
    CheckedEstimator,
    heard_fit,
    learned,
    refusal,
    said_by,
)
from skdp.testing.tables import BAD_PARAMETERS, SHOWN, Sealed, bad_tables


def check_bad_parameters_are_refused(subject: CheckedEstimator) -> None:
    """A bad parameter of the budget is refused by name, in one line, before a row is read, and costs nothing."""
    own = subject.make().get_params(deep=False)
    for name, values in BAD_PARAMETERS.items():
        for value in values if name in own else ():
            ledger, X = PrivacyAccountant(), Sealed(subject.table.X)
            mend = f"Refuse {name}={value!r} by name in one line, before X is read"
            change = {"noise_multiplier": None} if name == "epsilon" and "noise_multiplier" in own else {}
            model = subject.make(ledger).set_params(**{name: value, **change})
            error = refusal(partial(model.fit, X, subject.table.y))
            demand(not X.was_read, f"fit reads X with {name}={value!r}", mend)
            demand(isinstance(error, (ValueError, TypeError)), f"{name}={value!r} is not refused", mend)
            demand(name in str(error) and "\n" not in str(error), f"{name}={value!r} is not named in one line", mend)
            demand(not ledger.history, f"{name}={value!r} is charged", mend)


def check_bad_rows_are_refused(subject: CheckedEstimator) -> None:
    """Rows and targets that are refused cost nothing, and no message shows a cell."""
    given = subject.make().get_params(deep=True)
    n_is_private = any(isinstance(given[place], AddRemove) for place in subject.places("adjacency"))
    for what, has_to, table in bad_tables(subject.table, n_is_private=n_is_private):
        ledger = PrivacyAccountant()
        model = subject.make(ledger)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            error = refusal(partial(heard_fit, model, table, Tape()))
        shown = said_by(error) + " ".join(str(each.message) for each in caught)
        demand(
            not any(each in shown for each in SHOWN), f"{what}: a message shows a cell", "Leave values out of messages"
        )
        if error is None:
            demand(not has_to, f"{what}: it is not refused", "Check rows by fit.read_rows and targets by fit.read")
            continue
        mend = "Check rows and targets before the charge, and raise ValueError or TypeError with one line"
        demand(isinstance(error, (ValueError, TypeError)), f"{what}: {type(error).__name__} is raised", mend)
        demand("\n" not in str(error), f"{what}: the message has several lines", mend)
        demand(not ledger.history, f"{what}: the refusal is charged", mend)
        demand(not learned(model), f"{what}: a refused fit publishes something", mend)


def check_a_refusal_leaves_the_estimator_whole(subject: CheckedEstimator) -> None:
    """A fit that is refused changes nothing of what an earlier one published."""
    model = subject.make()
    heard_fit(model, subject.table, Tape())
    before = learned(model)
    wide = subject.table._replace(X=np.asarray(subject.table.X)[:, None, :])
    error = refusal(lambda: heard_fit(model, wide, Tape()))
    demand(error is not None, "rows of three dimensions are not refused", "Check rows by fit.read_rows")
    demand(learned(model) == before, "a refused fit changes a fitted estimator", "Publish on success alone")


def check_labels_are_checked_without_rows(subject: CheckedEstimator) -> None:
    """As a later step of a pipeline, it checks labels, weights and groups before it has rows."""
    private = getattr(subject.make(), "__private_step__", lambda: None)()
    if not isinstance(private, PrivateStep):
        raise Inapplicable("it asks no fit object")
    X, y, n_rows = subject.table.X, subject.table.y, len(subject.table.X)
    step = private.allot(private.plan(n_rows, np.shape(X)[1], 1e-5), 5.0, 1e-5)

    def run_to_the_charge() -> None:
        step.begin(1)
        step.check_parameters(n_rows, None)
        step.check_targets(y, n_rows)

    error = refusal(run_to_the_charge)
    what = "" if error is None else f"{type(error).__name__} is raised before there are rows: {error}"
    demand(error is None, what, "Between read_rows and charge use n_rows of the fit object, and never the rows")


def check_leaks_are_errors_in_strict_mode(subject: CheckedEstimator) -> None:
    """Under ``config_context(on_leak="raise")`` a known seed is refused, and costs nothing."""
    seeds = subject.places("random_state")
    if not seeds:
        raise Inapplicable("it has no random_state")
    ledger = PrivacyAccountant()
    model = subject.make(ledger, **dict.fromkeys(seeds, 0))
    with config_context(on_leak="raise"):
        error = refusal(lambda: model.fit(subject.table.X, subject.table.y))
    mend = "Take the stream from a fit object (skdp.base.begin)"
    demand(isinstance(error, PrivacyLeakWarning), "a known seed is no error in strict mode", mend)
    demand(not ledger.history, "a leak that is refused is charged", mend)
