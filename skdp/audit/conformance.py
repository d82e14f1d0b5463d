"""Conformance checks of the charge: the budget is checked before rows are read, and the charge precedes releases."""

from __future__ import annotations

import copy
import gc
import json
import os
import pathlib
import pickle
import tempfile
import threading
import types
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import SkipTestWarning

from skdp._checks.leaks import config_context
from skdp.accounting import AddRemove, PrivacyAccountant, get_epsilon
from skdp.audit import checking, conformance_releases
from skdp.audit.checking import CheckedEstimator, Inapplicable, answers, demand, learned, rejection
from skdp.audit.replay import LEAST_DELTA, event_of, least_epsilon
from skdp.audit.subjects import parts_of, recorded_fit
from skdp.base.private_step import PrivateStep
from skdp.exceptions import BudgetExceededError, PrivacyLeakWarning
from skdp.mechanisms.release_log import Transcript, running
from skdp.mechanisms.streams import SecretStream


def check_budget_is_checked_before_rows_are_read(subject: CheckedEstimator) -> None:
    """A fit above the budget is rejected before a value is read, and publishes and releases nothing."""
    ledger = PrivacyAccountant(1e-9, 1e-30)
    model, transcript = subject.make(ledger), Transcript()
    X = checking.Sealed(subject.table.X)
    y = None if subject.table.y is None else checking.Sealed(np.asarray(subject.table.y))
    with running(transcript):
        error = rejection(lambda: model.fit(X, y))
    remedy = "Plan from the shape of X, and check the budget before X or y is read"
    demand(
        not X.was_read and not (y is not None and y.was_read), "fit reads the data before the budget is checked", remedy
    )
    demand(isinstance(error, BudgetExceededError), f"a fit above the budget raises {type(error).__name__}", remedy)
    demand(not ledger.history, "a rejected fit is charged", remedy)
    demand(not any(track.releases for track in transcript.tracks), "a rejected fit releases something", remedy)
    demand(not learned(model), "a rejected fit publishes something", remedy)


def check_charge_precedes_releases(subject: CheckedEstimator) -> None:
    """A single charge, of the whole privacy cost, is recorded before the first release."""
    ledger, found = PrivacyAccountant(), []
    model = subject.make(ledger)
    recorded_fit(model, subject.table, checking.transcript_that_calls(lambda: found.append(len(ledger.history))))
    remedy = "Draw all noise by mechanisms with the stream of the fit, after a single charge for the whole fit"
    if model.epsilon_ == 0.0 and not found:
        raise Inapplicable("it reads no data as configured")
    demand(bool(found), "no release uses a mechanism", remedy)
    demand(
        set(found) == {1}, f"the number of charges is {min(found)} at one release and {max(found)} at another", remedy
    )
    demand(len(ledger.history) == 1, f"a fit makes {len(ledger.history)} charges", remedy)
    charge = ledger.history[0]
    demand(
        charge.event == model.privacy_event_,
        "the charged event is not privacy_event_",
        "Charge the event that is published",
    )
    demand(
        charge.adjacency == model.adjacency_,
        "the charge has a different neighboring relation",
        "Charge under adjacency_",
    )


def check_cost_is_that_of_the_event(subject: CheckedEstimator) -> None:
    """`epsilon_` is the privacy cost of `privacy_event_`, and at most the parameter `epsilon`."""
    model = subject.fit(subject.table).model
    delta = max(model.delta_, LEAST_DELTA)
    cost = get_epsilon(model.privacy_event_, delta, adjacency=model.adjacency_)
    demand(
        abs(cost - model.epsilon_) <= (1e-9 if delta == model.delta_ else checking.RELATIVE_ERROR) * cost,
        f"epsilon_={model.epsilon_!r}, but privacy_event_ costs {cost!r}",
        "Publish the privacy cost through the fit object, which takes it from the plan",
    )
    asked = getattr(model, "epsilon", None)
    is_met = not isinstance(asked, float | int) or model.epsilon_ <= asked
    demand(is_met, f"epsilon_={model.epsilon_!r} exceeds epsilon", "Add more noise")


def check_releases_cost_what_is_charged(subject: CheckedEstimator) -> None:
    """The privacy cost of all recorded releases is at most `epsilon_`."""
    for adjacency in ("zero_out", "replace_one", AddRemove(subject.table.X.shape[0])):
        fitted = subject.fit(subject.table, None, **dict.fromkeys(subject.places("adjacency"), adjacency))
        parts = parts_of(fitted)
        if parts.given:
            raise Inapplicable("the privacy cost of a choice among trials has no event to compare with")
        ones = [np.ones(len(track.releases)) for track in fitted.tracks]
        event = event_of(fitted, parts.whole, ones, 1.0)
        cost = least_epsilon(event, fitted.model.delta_, fitted.model.adjacency_)
        demand(
            cost <= fitted.model.epsilon_ * (1.0 + checking.RELATIVE_ERROR),
            f"the releases cost {cost:.6g} under {adjacency!r}, but epsilon_ is {fitted.model.epsilon_:.6g}",
            "Release with the mechanism whose event is charged, charge all releases, and compute their cost under "
            "`adjacency`",
        )


def check_charge_survives_failures(subject: CheckedEstimator) -> None:
    """After an error during a fit the charge is kept, nothing new is published, and an earlier fit is unchanged."""
    remedy = "Set attributes with publish of the fit object, and charge before the first release"
    for error in (MemoryError, KeyboardInterrupt):
        for fitted_before in (False, True):
            ledger = PrivacyAccountant()
            model = subject.make(ledger)
            if fitted_before:
                recorded_fit(model, subject.table, Transcript())
            before, charges, failed = learned(model), len(ledger.history), False

            def fail(error: type[BaseException] = error) -> None:
                raise error("planted")

            try:
                recorded_fit(model, subject.table, checking.transcript_that_calls(fail))
            except error:
                failed = True
            if not failed and learned(model) == before:
                raise Inapplicable("it releases nothing as configured")
            demand(len(ledger.history) == charges + 1, f"{error.__name__} during a fit removes its charge", remedy)
            if failed:
                now = learned(model)
                changed = [name for name in {**before, **now} if before.get(name) != now.get(name)]
                demand(not changed, f"{error.__name__} during a fit changes {', '.join(changed)}", remedy)
            else:
                demand("epsilon_" in learned(model), "an interrupted fit has no epsilon_", remedy)


def check_copies_charge_the_same_ledger(subject: CheckedEstimator) -> None:
    """Clones, copies and pickles charge the same accountant, or cannot be fitted."""
    table = subject.table
    remedy = "Store `accountant` unchanged in __init__ (absolute_path of it), and return it from get_params"
    with tempfile.TemporaryDirectory() as folder:
        kept = PrivacyAccountant(1e6, 1e-3, path=pathlib.Path(folder) / "ledger.budget")
        for ledger in (PrivacyAccountant(), kept):
            model = subject.make(ledger)
            for copied in (clone, copy.copy, copy.deepcopy, _pickled):
                before = len(ledger.history)
                error = rejection(partial(_fit_copy, copied, model, table))
                charged = len(ledger.history) - before
                what = f"{copied.__name__.strip('_')} of an estimator"
                demand(
                    error is not None or charged == 1, f"{what} is fitted, but its accountant is not charged", remedy
                )
                demand(
                    error is None or copied is _pickled,
                    f"{what} cannot be fitted ({type(error).__name__})",
                    "Store every parameter unchanged in __init__",
                )
    fitted = recorded_fit(subject.make(), table, Transcript()).model
    demand(
        learned(_pickled(fitted)) == learned(fitted),
        "a pickled estimator differs from the original",
        "Pickle all fitted attributes",
    )


def _fit_copy(copied: Callable[[Any], Any], model: Any, table: Any) -> None:
    recorded_fit(copied(model), table, Transcript())


def _pickled(model: Any) -> Any:
    return pickle.loads(pickle.dumps(model))


def check_threads_have_charges_and_noise_of_their_own(subject: CheckedEstimator) -> None:
    """Fits of clones in several threads are charged separately, and share no noise."""
    ledger, start = PrivacyAccountant(), threading.Barrier(3)
    models = [subject.make(ledger) for _ in range(3)]

    def fit(model: Any) -> list[float]:
        start.wait()
        return _noise_of_a_fit(model, subject)

    with ThreadPoolExecutor(3) as pool, warnings.catch_warnings():
        drawn = list(pool.map(fit, models))
    remedy = "Take the stream and the charge from a fit object (skdp.base.begin)"
    charges = sum(model.epsilon_ > 0.0 for model in models)
    demand(len(ledger.history) == charges, f"{charges} fits in threads make {len(ledger.history)} charges", remedy)
    _no_noise_twice(drawn, "threads")


def check_processes_have_charges_and_noise_of_their_own(subject: CheckedEstimator) -> None:
    """A forked process charges the budget file of the accountant, and draws other noise than its parent."""
    if not hasattr(os, "fork"):
        raise Inapplicable("this system does not support fork")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "ledger.budget"
        model = subject.make(PrivacyAccountant(1e6, 1e-3, path=path))
        ours = _noise_of_a_fit(clone(model), subject)  # kernels are compiled before the fork
        reading, writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads that a child does not have
            child = os.fork()
        if child == 0:
            try:
                os.write(writing, json.dumps(_noise_of_a_fit(model, subject)).encode())
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            told = pipe.read()
        os.waitpid(child, 0)
        demand(bool(told), "a fit in a forked process fails", "Create no stream, pool or file before fit")
        theirs, again = json.loads(told), _noise_of_a_fit(model, subject)
        charges = len(PrivacyAccountant.open(path).history)
    remedy = "Keep the accountant unchanged, so that each process opens its file"
    demand(charges in (0, 3), f"3 fits in two processes make {charges} charges", remedy)
    _no_noise_twice([ours, theirs, again], "processes")


def _noise_of_a_fit(model: Any, subject: CheckedEstimator) -> list[float]:
    """Some of the noise of a fit, with secret streams. Whole numbers are taken together: single ones may be equal."""
    fitted = recorded_fit(model, subject.table, Transcript())
    some = [each for track in fitted.tracks for each in track.releases[:3]]
    normals = [float(x) for each in some if not each.is_whole for x in each.noise[:3].round(9)]
    return normals + [zlib.crc32((each.noisy - each.exact).tobytes()) for each in some if each.is_whole]


def _no_noise_twice(drawn: list[list[float]], what: str) -> None:
    together = [number for part in drawn for number in part]
    remedy = "Create a stream in each fit, and keep none on the estimator"
    demand(len(set(together)) == len(together), f"fits of several {what} share noise", remedy)


def check_no_stream_is_kept(subject: CheckedEstimator) -> None:
    """No object that is reachable from a fitted estimator contains the state of its noise."""
    model = recorded_fit(subject.make(), subject.table, Transcript()).model
    answers(model, subject.table.X)
    left, found = [model], set()
    while left:
        each = left.pop()
        if id(each) in found or isinstance(each, (type, types.ModuleType, types.FunctionType)):
            continue
        found.add(id(each))
        kept = isinstance(each, (SecretStream, np.random.Generator, np.random.RandomState))
        demand(
            not kept, "a fitted estimator holds a noise stream", "Keep no stream, because it allows removing the noise"
        )
        left += gc.get_referents(each)


def check_bad_parameters_are_rejected(subject: CheckedEstimator) -> None:
    """An invalid budget parameter is rejected by name, in one line, before a row is read, at no privacy cost."""
    own = subject.make().get_params(deep=False)
    for name, values in checking.BAD_PARAMETERS.items():
        for value in values if name in own else ():
            ledger, X = PrivacyAccountant(), checking.Sealed(subject.table.X)
            remedy = f"Reject {name}={value!r} with a one-line message that contains the name, before X is read"
            change = {"noise_multiplier": None} if name == "epsilon" and "noise_multiplier" in own else {}
            model = subject.make(ledger).set_params(**{name: value, **change})
            error = rejection(partial(model.fit, X, subject.table.y))
            demand(not X.was_read, f"fit reads X with {name}={value!r}", remedy)
            demand(isinstance(error, (ValueError, TypeError)), f"{name}={value!r} is not rejected", remedy)
            demand(
                name in str(error) and "\n" not in str(error),
                f"the message for {name}={value!r} does not contain the name in one line",
                remedy,
            )
            demand(not ledger.history, f"a fit with {name}={value!r} is charged", remedy)


def check_bad_rows_are_rejected(subject: CheckedEstimator) -> None:
    """Invalid rows and targets are rejected at no privacy cost, and no message shows a value."""
    given = subject.make().get_params(deep=True)
    n_is_private = any(isinstance(given[place], AddRemove) for place in subject.places("adjacency"))
    for what, has_to, table in checking.bad_tables(subject.table, n_is_private=n_is_private):
        ledger = PrivacyAccountant()
        model = subject.make(ledger)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            error = rejection(partial(recorded_fit, model, table, Transcript()))
        shown = checking.said_by(error) + " ".join(str(each.message) for each in caught)
        demand(
            not any(each in shown for each in checking.SHOWN),
            f"{what}: a message shows a private value",
            "Leave private values out of messages",
        )
        if error is None:
            demand(not has_to, f"{what} is not rejected", "Check rows with fit.read_rows and targets with fit.read")
            continue
        remedy = "Check rows and targets before the charge, and raise a ValueError or TypeError with a one-line message"
        demand(isinstance(error, (ValueError, TypeError)), f"{what}: {type(error).__name__} is raised", remedy)
        demand("\n" not in str(error), f"{what}: the message has several lines", remedy)
        demand(not ledger.history, f"{what}: the rejected fit is charged", remedy)
        demand(not learned(model), f"{what}: the rejected fit publishes something", remedy)


def check_a_rejection_leaves_the_estimator_whole(subject: CheckedEstimator) -> None:
    """A rejected fit does not change the results of an earlier one."""
    model = subject.make()
    recorded_fit(model, subject.table, Transcript())
    before = learned(model)
    wide = subject.table._replace(X=np.asarray(subject.table.X)[:, None, :])
    error = rejection(lambda: recorded_fit(model, wide, Transcript()))
    demand(error is not None, "three-dimensional rows are not rejected", "Check rows with fit.read_rows")
    demand(learned(model) == before, "a rejected fit changes a fitted estimator", "Publish only when the fit succeeds")


def check_labels_are_checked_without_rows(subject: CheckedEstimator) -> None:
    """A later step of a pipeline checks labels, weights and groups before it has rows."""
    private = getattr(subject.make(), "__private_step__", lambda: None)()
    if not isinstance(private, PrivateStep):
        raise Inapplicable("it uses no fit object")
    X, y, n_rows = subject.table.X, subject.table.y, len(subject.table.X)
    step = private.allot(private.plan(n_rows, np.shape(X)[1], 1e-5), 5.0, 1e-5)

    def run_to_the_charge() -> None:
        step.begin(1)
        step.check_parameters(n_rows, None)
        step.check_targets(y, n_rows)

    error = rejection(run_to_the_charge)
    what = "" if error is None else f"{type(error).__name__} is raised before there are rows: {error}"
    demand(error is None, what, "Between read_rows and charge use n_rows of the fit object, never the rows")


def check_leaks_are_errors_in_strict_mode(subject: CheckedEstimator) -> None:
    """Under ``config_context(on_leak="raise")`` a known seed is rejected, at no privacy cost."""
    seeds = subject.places("random_state")
    if not seeds:
        raise Inapplicable("it has no random_state")
    ledger = PrivacyAccountant()
    model = subject.make(ledger, **dict.fromkeys(seeds, 0))
    with config_context(on_leak="raise"):
        error = rejection(lambda: model.fit(subject.table.X, subject.table.y))
    remedy = "Take the stream from a fit object (skdp.base.begin)"
    demand(isinstance(error, PrivacyLeakWarning), "a known seed is not an error with on_leak='raise'", remedy)
    demand(not ledger.history, "a fit that is rejected because of a leak is charged", remedy)


_ALL = tuple(
    function
    for names in (globals(), vars(conformance_releases))
    for name, function in sorted(names.items())
    if name.startswith("check_") and function.__module__ == names["__name__"]
)


class PrivateCheck:
    """A check, which is a function of an estimator.

    Parameters
    ----------
    function : callable
        Function of a `CheckedEstimator`.
    X, y : array-like or None, default=None
        Data that the estimator accepts.
    """

    def __init__(self, function: Callable[[CheckedEstimator], None], X: Any = None, y: Any = None) -> None:
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self._function, self._given = function, (X, y)

    def __call__(self, estimator: Any) -> None:
        """Check a clone of an estimator.

        Raises
        ------
        AssertionError
            A guarantee is violated. The message contains the class, the violation and the fix.
        Inapplicable
            The estimator does not support what the check tests.
        """
        subject = CheckedEstimator(estimator, *self._given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyLeakWarning)  # classes that are read: for a check of its own
            try:
                self._function(subject)
            except Inapplicable:
                raise
            except AssertionError as error:
                raise AssertionError(f"{subject.name}: {self.__name__}: {error}") from error
            except Exception as error:
                told = f"the fit raises {type(error).__name__}: {' '.join(str(error).split()).rstrip('.')}"
                remedy = "Fix this error, or pass X and y that the estimator accepts"
                raise AssertionError(f"{subject.name}: {self.__name__}: {told}. {remedy}.") from error


def private_checks(X: Any = None, y: Any = None) -> Iterator[PrivateCheck]:
    """Generate the checks that `check_private_estimator` runs.

    Parameters
    ----------
    X, y : array-like or None, default=None
        Public or simulated data that the estimators accept. None simulates data for each estimator.

    Yields
    ------
    callable
        Function of an estimator. Its `__name__` is the name of the check.

    Examples
    --------
    >>> from skdp.testing import private_checks
    >>> next(private_checks()).__name__
    'check_a_rejection_leaves_the_estimator_whole'
    """
    for function in _ALL:
        yield PrivateCheck(function, X, y)


def check_private_estimator(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    *,
    expected_failed_checks: Mapping[str, str] | None = None,
    on_fail: str | None = "raise",
) -> list[dict[str, Any]]:
    """Check that an estimator keeps the guarantees of private estimators.

    The checks fit clones of the estimator some hundreds of times to small tables, also in threads and in a forked
    process. The clones charge accountants of the checks, never the accountant of `estimator`.

    Parameters
    ----------
    estimator : object
        Private estimator, pipeline or search, including third-party estimators. Its parameters `classes`, `bounds`,
        `y_bounds` and `data_norm` determine the simulated data.
    X, y : array-like or None, default=None
        Data of shape (n_samples, n_features) and (n_samples,) that the estimator accepts. They must be public or
        simulated, because the checks read exact sums of them. None simulates data.
    expected_failed_checks : mapping of str to str or None, default=None
        Names of checks that may fail, and the reasons.
    on_fail : {"raise", "warn"} or None, default="raise"
        Whether an unexpected failure raises an error, issues a warning, or only appears in the result.

    Returns
    -------
    list of dict
        One entry per check, with `check_name`, `status` ("passed", "failed", "xfail" or "skipped") and `reason`: what
        is wrong and how to fix it, or why the check does not apply.

    Raises
    ------
    AssertionError
        A check failed, with ``on_fail="raise"``.
    TypeError
        The estimator has no `epsilon_`, so it is not private.
    ValueError
        A parameter is invalid.

    Notes
    -----
    Passing all checks is not a proof: the checks cover only the rows that they try. The noise test raises a false alarm
    in one of a million runs.

    Examples
    --------
    >>> from skdp import DPRidge
    >>> from skdp.testing import check_private_estimator
    >>> found = check_private_estimator(DPRidge(y_bounds=(0, 1)))
    >>> sorted({each["status"] for each in found})
    ['passed']
    """
    if on_fail not in ("raise", "warn", None):
        raise ValueError(f"`on_fail` must be 'raise', 'warn' or None, got {on_fail!r}.")
    expected = _expected(expected_failed_checks)
    CheckedEstimator(estimator, X, y)  # rejects what is no private estimator
    found = []
    for check in private_checks(X, y):
        status, reason = "passed", ""
        try:
            check(estimator)
        except Inapplicable as skipped:
            status, reason = "skipped", str(skipped)
        except AssertionError as error:
            is_expected = check.__name__ in expected
            status, reason = ("xfail", expected[check.__name__]) if is_expected else ("failed", str(error))
            if status == "failed" and on_fail == "raise":
                raise
            if status == "failed" and on_fail == "warn":
                warnings.warn(str(error), SkipTestWarning, stacklevel=2)
        found.append({"check_name": check.__name__, "status": status, "reason": reason})
    return found


def parametrize_with_private_checks(
    estimators: Iterable[Any],
    *,
    expected_failed_checks: Callable[[Any], Mapping[str, str]] | None = None,
    tables: Callable[[Any], tuple[Any, Any] | None] | None = None,
) -> Any:
    """Parametrize a pytest test with all checks for all estimators.

    Parameters
    ----------
    estimators : iterable of object
        Private estimators.
    expected_failed_checks : callable or None, default=None
        Function that takes an estimator and returns a mapping from names of failing checks to reasons. These checks are
        marked `xfail`.
    tables : callable or None, default=None
        Function that takes an estimator and returns public or simulated data (X, y) for it, or None to simulate data.

    Returns
    -------
    MarkDecorator
        Decorator for a test with the arguments `estimator` and `check`, which calls ``check(estimator)``.

    Examples
    --------
    >>> from skdp import DPRidge
    >>> from skdp.testing import parametrize_with_private_checks
    >>> @parametrize_with_private_checks([DPRidge(y_bounds=(0, 1))])
    ... def test_private_check(estimator, check):
    ...     check(estimator)
    """
    import pytest

    cases = []
    for estimator in estimators:
        expected = _expected(expected_failed_checks(estimator) if expected_failed_checks else None)
        given = (tables(estimator) if tables else None) or (None, None)
        for check in private_checks(*given):
            reason = expected.get(check.__name__)
            marks = [] if reason is None else [pytest.mark.xfail(reason=reason)]
            name = f"{type(estimator).__name__}-{check.__name__}"
            cases.append(pytest.param(estimator, check, marks=marks, id=name))
    return pytest.mark.parametrize(("estimator", "check"), cases)


def _expected(given: Mapping[str, str] | None) -> dict[str, str]:
    """Checks that may fail, or a `ValueError` for a name that is none."""
    names = {function.__name__ for function in _ALL}
    for name in given or {}:
        if name not in names:
            raise ValueError(
                f"`expected_failed_checks` contains {name!r}, which is not the name of a check. See "
                "skdp.testing.private_checks."
            )
    return dict(given or {})
