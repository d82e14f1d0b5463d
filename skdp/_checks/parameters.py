"""Checks of public parameters. Each error message is one line with the parameter, its value and a remedy."""

from __future__ import annotations

import math
import numbers
import os
from decimal import Decimal
from typing import Any, NoReturn

import numpy as np

from skdp.accounting.events.specifications import read_real as read_real  # accounting stands alone
from skdp.exceptions import REMOVED as REMOVED
from skdp.exceptions import refuse_removed as refuse_removed
from skdp.exceptions import without_removed as without_removed


class WrongTypeError(TypeError, ValueError):
    """A parameter has the wrong type. Also a `ValueError`, like scikit-learn's own error for parameters."""


def check_real(
    name: str,
    value: Any,
    *,
    above: float = -math.inf,
    at_least: float = -math.inf,
    below: float = math.inf,
    at_most: float = math.inf,
    remedy: str,
) -> float:
    """Return `value` as a float if it is a finite real number within the bounds, else raise."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        _refuse_type(name, value, remedy)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isfinite(number) and above < number < below and at_least <= number <= at_most:
        return number
    raise ValueError(f"{name}={show(value)} is out of range: {remedy}.")


def check_count(name: str, value: Any, *, at_least: int = 1, remedy: str) -> int:
    """Return `value` as an int if it is an integer of at least `at_least`, else raise."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        _refuse_type(name, value, remedy)
    if int(value) >= at_least:
        return int(value)
    raise ValueError(f"{name}={show(value)} is out of range: {remedy}.")


def count_threads(n_jobs: Any) -> int:
    """Return the number of threads that `n_jobs` means in joblib's present context, or refuse it."""
    from joblib import effective_n_jobs

    if n_jobs is not None and (n_jobs != -1 or isinstance(n_jobs, bool)):
        remedy = "choose a whole number of threads, -1 for all cores, or None"
        negative = isinstance(n_jobs, int | np.integer) and n_jobs < 0
        check_count("n_jobs", -n_jobs if negative else n_jobs, remedy=remedy)
    return int(effective_n_jobs(n_jobs))


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return `value` if it is one of `choices`, else raise."""
    if isinstance(value, str) and value in choices:
        return value
    raise ValueError(f"{name}={show(value)} is not known: use one of {', '.join(map(repr, choices))}.")


def check_switch(name: str, value: Any) -> bool:
    """Return `value` if it is True or False, else raise."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise ValueError(f"{name}={show(value)} is neither True nor False: choose one of them.")


_NOT_TAKEN = {
    "sample_weight": "counts all rows alike: leave it out, or use an estimator that takes weights",
    "groups": "knows no groups of rows: leave it out, or use an estimator that takes them",
}


def reject_fit_params(given: dict[str, Any], taker: str = "this step") -> None:
    """Refuse parameters of ``fit`` that an estimator does not take, by their names; `taker` is what it is called."""
    for name, value in given.items():
        if value is not None or name not in _NOT_TAKEN:
            why = _NOT_TAKEN.get(name, "does not take it: leave it out")
            raise TypeError(f"fit got the parameter {name!r}, and {taker} {why}.")


def show(value: Any) -> str:
    """Format `value` in one line; only its type if it is not a scalar, as it may be private rows passed by mistake."""
    if value is None or isinstance(value, str | numbers.Number | Decimal | np.generic):
        return " ".join(repr(value).split())
    return f"<{type(value).__name__}>"


def _refuse_type(name: str, value: Any, remedy: str) -> NoReturn:
    raise WrongTypeError(f"{name}={show(value)} is of the wrong type, {type(value).__name__}: {remedy}.")


def absolute_path(value: Any) -> Any:
    """Make a path absolute, so that a later change of the working directory does not change its meaning."""
    if isinstance(value, str | os.PathLike) and value and not os.path.isabs(value):
        return os.path.abspath(value)
    return value
