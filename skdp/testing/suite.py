"""`check_private_estimator` and `parametrize_with_private_checks`: all checks, for one estimator or for many."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from sklearn.exceptions import SkipTestWarning

from skdp.exceptions import PrivacyLeakWarning
from skdp.testing import charges, copies, refusals, releases
from skdp.testing.demands import Inapplicable
from skdp.testing.subjects import CheckedEstimator

_ALL = tuple(
    function
    for room in (charges, refusals, releases, copies)
    for name, function in sorted(vars(room).items())
    if name.startswith("check_") and function.__module__ == room.__name__
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
    'check_ceiling_is_asked_before_rows_are_read'
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
