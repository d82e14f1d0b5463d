"""Checks of charges: asked before a row is read, made before a release, kept whatever happens."""

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
from skdp.audit.checking import CheckedEstimator, Inapplicable, answers, demand, learned, refusal
from skdp.audit.replay import LEAST_DELTA, event_of, least_epsilon
from skdp.audit.subjects import heard_fit, parts_of
from skdp.base.private_step import PrivateStep
from skdp.exceptions import BudgetExceededError, PrivacyLeakWarning
from skdp.mechanisms.release_log import Tape, running
from skdp.mechanisms.streams import SecretStream


def check_ceiling_is_asked_before_rows_are_read(subject: CheckedEstimator) -> None:
    """A fit above the budget is refused without a look at a cell, and publishes and releases nothing."""
    ledger = PrivacyAccountant(1e-9, 1e-30)
    model, tape = subject.make(ledger), Tape()
    X, y = (
        checking.Sealed(subject.table.X),
        None if subject.table.y is None else checking.Sealed(np.asarray(subject.table.y)),
    )
    with running(tape):
        error = refusal(lambda: model.fit(X, y))
    mend = "Plan from the shape of X, and ask the accountant before anything reads X or y"
    demand(
        not X.was_read and not (y is not None and y.was_read), "fit reads before the accountant has admitted it", mend
    )
    demand(isinstance(error, BudgetExceededError), f"a fit above the budget ends with {type(error).__name__}", mend)
    demand(not ledger.history, "a fit that was refused is charged", mend)
    demand(not any(track.releases for track in tape.tracks), "a fit that was refused releases something", mend)
    demand(not learned(model), "a fit that was refused publishes something", mend)


def check_charge_precedes_releases(subject: CheckedEstimator) -> None:
    """One charge, of all that the fit costs, stands when the first value is released."""
    ledger, found = PrivacyAccountant(), []
    model = subject.make(ledger)
    heard_fit(model, subject.table, checking.tape_that_calls(lambda: found.append(len(ledger.history))))
    mend = "Draw all noise by mechanisms with the stream of the fit, after one charge of the whole"
    if model.epsilon_ == 0.0 and not found:
        raise Inapplicable("it buys nothing as it is set")
    demand(bool(found), "no release passes a mechanism", mend)
    demand(set(found) == {1}, f"{min(found)} charges stand at a release, and {max(found)} at another", mend)
    demand(len(ledger.history) == 1, f"a fit makes {len(ledger.history)} charges", mend)
    charge = ledger.history[0]
    demand(charge.event == model.privacy_event_, "what is charged is not privacy_event_", "Charge what is published")
    demand(charge.adjacency == model.adjacency_, "the charge is for other neighbours", "Charge under adjacency_")


def check_price_is_that_of_the_event(subject: CheckedEstimator) -> None:
    """`epsilon_` is the price of `privacy_event_`, and no more than the parameter `epsilon`."""
    model = subject.fit(subject.table).model
    delta = max(model.delta_, LEAST_DELTA)
    price = get_epsilon(model.privacy_event_, delta, adjacency=model.adjacency_)
    demand(
        abs(price - model.epsilon_) <= (1e-9 if delta == model.delta_ else checking.RELATIVE_ERROR) * price,
        f"epsilon_={model.epsilon_!r} and privacy_event_ costs {price!r}",
        "Publish the price by the fit object, which states that of its plan",
    )
    asked = getattr(model, "epsilon", None)
    is_met = not isinstance(asked, float | int) or model.epsilon_ <= asked
    demand(is_met, f"epsilon_={model.epsilon_!r} exceeds epsilon", "Add more noise")


def check_releases_cost_what_is_charged(subject: CheckedEstimator) -> None:
    """All that was heard, priced as it was released, costs no more than `epsilon_`."""
    for adjacency in ("zero_out", "replace_one", AddRemove(subject.table.X.shape[0])):
        fitted = subject.fit(subject.table, None, **dict.fromkeys(subject.places("adjacency"), adjacency))
        parts = parts_of(fitted)
        if parts.given:
            raise Inapplicable("what a choice among trials costs is a theorem")
        ones = [np.ones(len(track.releases)) for track in fitted.tracks]
        event = event_of(fitted, parts.whole, ones, 1.0)
        cost = least_epsilon(event, fitted.model.delta_, fitted.model.adjacency_)
        demand(
            cost <= fitted.model.epsilon_ * (1.0 + checking.RELATIVE_ERROR),
            f"what was released costs {cost:.6g} under {adjacency!r}, and epsilon_ is {fitted.model.epsilon_:.6g}",
            "Release with the mechanism whose event is charged, charge all releases, and price them under adjacency",
        )


def check_charge_survives_failures(subject: CheckedEstimator) -> None:
    """After an error in the middle the charge stands, nothing new is published, and an earlier fit is whole."""
    mend = "Set attributes by publish of the fit object, and charge before a release"
    for error in (MemoryError, KeyboardInterrupt):
        for fitted_before in (False, True):
            ledger = PrivacyAccountant()
            model = subject.make(ledger)
            if fitted_before:
                heard_fit(model, subject.table, Tape())
            before, charges, failed = learned(model), len(ledger.history), False

            def fail(error: type[BaseException] = error) -> None:
                raise error("planted")

            try:
                heard_fit(model, subject.table, checking.tape_that_calls(fail))
            except error:
                failed = True
            if not failed and learned(model) == before:
                raise Inapplicable("it releases nothing as it is set")
            demand(
                len(ledger.history) == charges + 1, f"{error.__name__} in the middle of a fit undoes its charge", mend
            )
            if failed:
                now = learned(model)
                changed = [name for name in {**before, **now} if before.get(name) != now.get(name)]
                demand(not changed, f"{error.__name__} in the middle of a fit changes {', '.join(changed)}", mend)
            else:
                demand("epsilon_" in learned(model), "an interrupted fit states no epsilon_", mend)


def check_copies_charge_the_same_ledger(subject: CheckedEstimator) -> None:
    """Clones, copies and pickles charge the ledger that they were given, or refuse to fit."""
    table = subject.table
    mend = "Store accountant in __init__ as it is (absolute_path of it), and return it from get_params"
    with tempfile.TemporaryDirectory() as folder:
        kept = PrivacyAccountant(1e6, 1e-3, path=pathlib.Path(folder) / "ledger.budget")
        for ledger in (PrivacyAccountant(), kept):
            model = subject.make(ledger)
            for copied in (clone, copy.copy, copy.deepcopy, _pickled):
                before = len(ledger.history)
                error = refusal(partial(_fit_copy, copied, model, table))
                charged = len(ledger.history) - before
                what = f"{copied.__name__.strip('_')} of an estimator"
                demand(error is not None or charged == 1, f"{what} is fitted, and its ledger is not charged", mend)
                demand(
                    error is None or copied is _pickled,
                    f"{what} cannot be fitted ({type(error).__name__})",
                    "Store every parameter in __init__ as it is",
                )
    fitted = heard_fit(subject.make(), table, Tape()).model
    demand(
        learned(_pickled(fitted)) == learned(fitted), "a pickled estimator is another one", "Pickle all that is learned"
    )


def _fit_copy(copied: Callable[[Any], Any], model: Any, table: Any) -> None:
    heard_fit(copied(model), table, Tape())


def _pickled(model: Any) -> Any:
    return pickle.loads(pickle.dumps(model))


def check_threads_have_charges_and_noise_of_their_own(subject: CheckedEstimator) -> None:
    """Fits of clones in several threads are charged one by one, and share no noise."""
    ledger, start = PrivacyAccountant(), threading.Barrier(3)
    models = [subject.make(ledger) for _ in range(3)]

    def fit(model: Any) -> list[float]:
        start.wait()
        return _noise_of_a_fit(model, subject)

    with ThreadPoolExecutor(3) as pool, warnings.catch_warnings():
        drawn = list(pool.map(fit, models))
    mend = "Take stream and charge from a fit object (skdp.base.begin)"
    paid = sum(model.epsilon_ > 0.0 for model in models)
    demand(len(ledger.history) == paid, f"{paid} fits in threads make {len(ledger.history)} charges", mend)
    _no_noise_twice(drawn, "threads")


def check_processes_have_charges_and_noise_of_their_own(subject: CheckedEstimator) -> None:
    """A forked process charges the file of the ledger, and draws other noise than its parent."""
    if not hasattr(os, "fork"):
        raise Inapplicable("this system does not fork")
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
        demand(bool(told), "a fit in a forked process fails", "Make no stream, pool or file before fit")
        theirs, again = json.loads(told), _noise_of_a_fit(model, subject)
        charges = len(PrivacyAccountant.open(path).history)
    mend = "Keep the accountant as it is, so that each process opens its file"
    demand(charges in (0, 3), f"3 fits in two processes make {charges} charges", mend)
    _no_noise_twice([ours, theirs, again], "processes")


def _noise_of_a_fit(model: Any, subject: CheckedEstimator) -> list[float]:
    """Some of the noise of a fit, with secret streams. Whole numbers are taken together: single ones may be equal."""
    fitted = heard_fit(model, subject.table, Tape())
    some = [each for track in fitted.tracks for each in track.releases[:3]]
    normals = [float(x) for each in some if not each.is_whole for x in each.noise[:3].round(9)]
    return normals + [zlib.crc32((each.noisy - each.exact).tobytes()) for each in some if each.is_whole]


def _no_noise_twice(drawn: list[list[float]], what: str) -> None:
    together = [number for part in drawn for number in part]
    mend = "Make a stream in each fit, and keep none on the estimator"
    demand(len(set(together)) == len(together), f"fits of several {what} share noise", mend)


def check_no_stream_is_kept(subject: CheckedEstimator) -> None:
    """Nothing that can be reached from a fitted estimator holds the state of its noise."""
    model = heard_fit(subject.make(), subject.table, Tape()).model
    answers(model, subject.table.X)
    left, found = [model], set()
    while left:
        each = left.pop()
        if id(each) in found or isinstance(each, (type, types.ModuleType, types.FunctionType)):
            continue
        found.add(id(each))
        kept = isinstance(each, (SecretStream, np.random.Generator, np.random.RandomState))
        demand(not kept, "a fitted estimator holds a stream of noise", "Keep no stream: who has it takes the noise off")
        left += gc.get_referents(each)


def check_bad_parameters_are_refused(subject: CheckedEstimator) -> None:
    """A bad parameter of the budget is refused by name, in one line, before a row is read, and costs nothing."""
    own = subject.make().get_params(deep=False)
    for name, values in checking.BAD_PARAMETERS.items():
        for value in values if name in own else ():
            ledger, X = PrivacyAccountant(), checking.Sealed(subject.table.X)
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
    for what, has_to, table in checking.bad_tables(subject.table, n_is_private=n_is_private):
        ledger = PrivacyAccountant()
        model = subject.make(ledger)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            error = refusal(partial(heard_fit, model, table, Tape()))
        shown = checking.said_by(error) + " ".join(str(each.message) for each in caught)
        demand(
            not any(each in shown for each in checking.SHOWN),
            f"{what}: a message shows a cell",
            "Leave values out of messages",
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


_ALL = tuple(
    function
    for names in (globals(), vars(conformance_releases))
    for name, function in sorted(names.items())
    if name.startswith("check_") and function.__module__ == names["__name__"]
)


class PrivateCheck:
    """One check, which takes an estimator.

    Parameters
    ----------
    function : callable
        Takes a `CheckedEstimator`.
    X, y : array-like or None, default=None
        Rows and targets that the estimator takes.
    """

    def __init__(self, function: Callable[[CheckedEstimator], None], X: Any = None, y: Any = None) -> None:
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self._function, self._given = function, (X, y)

    def __call__(self, estimator: Any) -> None:
        """Check a clone of an estimator.

        Raises
        ------
        AssertionError
            A promise is broken. The message names the class, what is wrong, and what to mend.
        Inapplicable
            The estimator does not offer what the check is about.
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
                told = f"it ends with {type(error).__name__}: {' '.join(str(error).split()).rstrip('.')}"
                mend = "Mend that first, or give X and y that the estimator takes"
                raise AssertionError(f"{subject.name}: {self.__name__}: {told}. {mend}.") from error


def private_checks(X: Any = None, y: Any = None) -> Iterator[PrivateCheck]:
    """Generate the checks that `check_private_estimator` makes.

    Parameters
    ----------
    X, y : array-like or None, default=None
        Rows and targets that the estimators take, public or made up. None makes some up for each estimator.

    Yields
    ------
    callable
        It takes an estimator, and has the name of the check as `__name__`.

    Examples
    --------
    >>> from skdp.testing import private_checks
    >>> next(private_checks()).__name__
    'check_a_refusal_leaves_the_estimator_whole'
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
    """Check that an estimator keeps the promises of private estimators.

    It is fitted some hundreds of times to small tables, in threads and in a forked process too; never by itself, but by
    clones, which are charged to ledgers of the checks.

    Parameters
    ----------
    estimator : object
        Private estimator, of any author; a pipeline or a search with one budget. Parameters say which tables it takes:
        `classes`, `bounds`, `y_bounds`, `data_norm`.
    X, y : array-like or None, default=None
        Rows, of shape (n_samples, n_features), and targets, of shape (n_samples,), that the estimator takes. They must
        be public or made up: exact sums of them are read, and nothing pays for that. None makes some up.
    expected_failed_checks : mapping of str to str or None, default=None
        Names of checks that may fail, and the reasons.
    on_fail : {"raise", "warn"} or None, default="raise"
        What becomes of the first check that fails and that is not expected to: its error is raised, or a warning is
        issued, or neither, for all of them.

    Returns
    -------
    list of dict
        For each check `check_name`, `status` ("passed", "failed", "xfail" or "skipped"), and `reason`, a str: what is
        wrong and what to mend, or why the check says nothing of this estimator.

    Raises
    ------
    AssertionError
        A check failed, with ``on_fail="raise"``.
    TypeError
        The estimator does not state its price.
    ValueError
        A parameter is bad.

    Notes
    -----
    That a check passes is no proof: a replay sees the rows that it tries. The test of noise raises a false alarm in one
    of a million runs.

    Examples
    --------
    >>> from skdp import DPRidge
    >>> from skdp.testing import check_private_estimator
    >>> found = check_private_estimator(DPRidge(y_bounds=(0, 1)))
    >>> sorted({each["status"] for each in found})
    ['passed']
    """
    if on_fail not in ("raise", "warn", None):
        raise ValueError(f"on_fail={on_fail!r} is not known: use 'raise', 'warn' or None.")
    expected = _expected(expected_failed_checks)
    CheckedEstimator(estimator, X, y)  # refuses what is no private estimator
    found = []
    for check in private_checks(X, y):
        status, reason = "passed", ""
        try:
            check(estimator)
        except Inapplicable as skipped:
            status, reason = "skipped", str(skipped)
        except AssertionError as error:
            status, reason = (
                ("xfail", expected[check.__name__]) if check.__name__ in expected else ("failed", str(error))
            )
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
    """Parametrize a test of pytest with all checks of all estimators.

    Parameters
    ----------
    estimators : iterable of object
        Private estimators.
    expected_failed_checks : callable or None, default=None
        Takes an estimator and returns a mapping of names of checks that fail to reasons. They are marked `xfail`.
    tables : callable or None, default=None
        Takes an estimator and returns rows and targets for it, public or made up, or None to make some up.

    Returns
    -------
    MarkDecorator
        For a test of `estimator` and `check`, which calls ``check(estimator)``.

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
                f"expected_failed_checks has {name!r}, which is no check: see skdp.testing.private_checks."
            )
    return dict(given or {})
