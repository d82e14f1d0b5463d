"""Validation of public parameters, including bounds of columns. Each error is one line with parameter and value."""

from __future__ import annotations

import functools
import math
import numbers
import os
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, ParamSpec, TypeVar

import numpy as np

from skdp.accounting import AddRemove, PrivacyAccountant, resolve_accountant
from skdp.accounting.events.specifications import read_real as read_real
from skdp.accounting.events.specifications import show as show
from skdp.accounting.methods import ADJACENCIES
from skdp.exceptions import REMOVED as REMOVED
from skdp.exceptions import reject_removed as reject_removed
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
    constraint: str,
) -> float:
    """Return `value` as a float if it is a finite real number within the bounds, else raise."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        _reject_type(name, value, constraint)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isfinite(number) and above < number < below and at_least <= number <= at_most:
        return number
    raise ValueError(f"`{name}` must be {constraint}, got {show(value)}.")


def check_data_norm(data_norm: Any) -> float | None:
    """Return `data_norm` if it is None or a number from 1e-30 to 1e30, else raise."""
    if data_norm is None:
        return None
    constraint = "a public number from 1e-30 to 1e30, or None"
    return check_real("data_norm", data_norm, at_least=1e-30, at_most=1e30, constraint=constraint)


def radius_of(model: Any, n_features: int) -> float:
    """Return the norm to which the rows of a fit are clipped: `data_norm`, or a public bound on what rows can have."""
    return check_data_norm(model.data_norm) or model._fitted_row_norm or math.sqrt(n_features)


def check_count(name: str, value: Any, *, at_least: int = 1, at_most: float = math.inf, constraint: str) -> int:
    """Return `value` as an int if it is an integer within the bounds, else raise."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        _reject_type(name, value, constraint)
    if at_least <= int(value) <= at_most:
        return int(value)
    raise ValueError(f"`{name}` must be {constraint}, got {show(value)}.")


def count_threads(n_jobs: Any) -> int:
    """Return the number of threads of `n_jobs` in the current joblib context, or reject it."""
    from joblib import effective_n_jobs

    if n_jobs is not None and (n_jobs != -1 or isinstance(n_jobs, bool)):
        constraint = "an integer number of threads, -1 for all cores, or None"
        negative = isinstance(n_jobs, int | np.integer) and n_jobs < 0
        check_count("n_jobs", -n_jobs if negative else n_jobs, constraint=constraint)
    return int(effective_n_jobs(n_jobs))


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return `value` if it is one of `choices`, else raise."""
    if isinstance(value, str) and value in choices:
        return value
    raise ValueError(f"`{name}` must be one of {', '.join(map(repr, choices))}, got {show(value)}.")


def check_switch(name: str, value: Any) -> bool:
    """Return `value` if it is True or False, else raise."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise ValueError(f"`{name}` must be True or False, got {show(value)}.")


_NOT_TAKEN = {
    "sample_weight": "does not support sample weights. Remove it, or use an estimator that supports them",
    "groups": "does not support groups. Remove it, or use an estimator that supports them",
}


def reject_fit_params(given: dict[str, Any], taker: str = "this step") -> None:
    """Reject ``fit`` parameters that an estimator does not support, by name; `taker` describes the estimator."""
    for name, value in given.items():
        if value is not None or name not in _NOT_TAKEN:
            why = _NOT_TAKEN.get(name, "does not accept it. Remove it")
            raise TypeError(f"fit got an unexpected parameter {name!r}: {taker} {why}.")


def _reject_type(name: str, value: Any, constraint: str) -> NoReturn:
    raise WrongTypeError(f"`{name}` must be {constraint}, got {show(value)} of type {type(value).__name__}.")


def absolute_path(value: Any) -> Any:
    """Make a path absolute, so that a later change of the working directory does not affect it."""
    if isinstance(value, str | os.PathLike) and value and not os.path.isabs(value):
        return os.path.abspath(value)
    return value


P = ParamSpec("P")
R = TypeVar("R")


def silent_arithmetic(function: Callable[P, R]) -> Callable[P, R]:
    """Disable floating-point warnings and errors in a function that reads private rows, despite ``numpy.seterr``.

    Otherwise a denormal number in one row could end a fit with an error after its charge.
    """

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)

    return run


def check_delta(delta: Any) -> float | None:
    """Return a number in (0, 1), or None for "auto", whose number is found once the number of rows is known."""
    if isinstance(delta, str) and delta == "auto":
        return None
    return check_real("delta", delta, above=0, below=1, constraint="a number in (0, 1), well below 1/n, or 'auto'")


def default_delta(n_samples: int) -> float:
    """Return 1e-5, or 1 / (10 n) rounded down to a power of ten if that is less.

    Publishing one record of n, drawn at random, satisfies a delta of 1/n, so delta must be well below that (Dwork &
    Roth 2014, section 2.3; NIST SP 800-226). Here it is at most a tenth of it.

    Parameters
    ----------
    n_samples : int
        Public number of rows, at least 1.

    Returns
    -------
    delta : float
        Power of ten, at most 1e-5, with ``delta * n_samples <= 0.1``. It does not increase with `n_samples`.

    Raises
    ------
    ValueError
        `n_samples` is 0, so it is not known yet.
    """
    if n_samples < 1:
        raise ValueError(
            "delta='auto' requires a known number of rows, but X has no rows or is an iterator. Set "
            "adjacency=skdp.AddRemove(n_public=...), or set `delta` to a number well below 1/n."
        )
    digits = len(str(10 * n_samples - 1))  # least k with 10 n <= 10**k, in whole numbers: logarithms are rounded
    return float(f"1e-{max(5, digits)}")  # 1e-5 is the common choice for tables of up to 10,000 rows


def delta_for(delta: float | None, accountant: PrivacyAccountant | None, n_samples: int) -> float:
    """Return the delta of a fit: `delta` if it is set, otherwise that of the accountant or the default."""
    if delta is not None:
        return delta
    if accountant is not None and accountant.delta is not None:
        return accountant.delta
    return default_delta(n_samples)


def is_private(step: Any) -> bool:
    """Return whether a step accounts for the data it reads; if ``__private_step__`` returns None, it reads none."""
    return hasattr(type(step), "__private_step__") and step.__private_step__() is not None


def last_step(model: Any) -> Any:
    """Return the last step of a pipeline, fitted where it is, and any other estimator as it is."""
    return model.steps[-1][1] if hasattr(model, "steps") else model


def stated_adjacency(model: Any, accountant: PrivacyAccountant | None = None) -> str | AddRemove:
    """Return the neighboring relation that the parameter of an estimator states, or reject it.

    None is the relation of the accountant, by default that of the estimator, otherwise zero-out.
    """
    given = model.adjacency
    if given is None:
        if accountant is None and model.accountant is not None:
            accountant = resolve_accountant(model.accountant)
        given = (accountant and accountant.adjacency) or "zero_out"
    if isinstance(given, AddRemove):
        return given
    if isinstance(given, str) and given == "add_remove":
        if "_n_public" in vars(model):  # in a copy made for a fit
            return AddRemove(model._n_public)
        raise ValueError(
            "adjacency='add_remove' requires a public number of records, because the number of rows or "
            "groups is private. Set adjacency=skdp.AddRemove(n_public=...), with a rounded public number."
        )
    if isinstance(given, str) and given in ADJACENCIES:
        return given
    raise ValueError(
        f"`adjacency` must be 'zero_out', 'replace_one' or skdp.AddRemove(n_public=...), got {show(given)}."
    )


def settle_adjacency(model: Any) -> None:
    """Set the name of the neighboring relation and the public number of records on a copy made for a fit."""
    stated = stated_adjacency(model)
    if isinstance(stated, AddRemove):
        model._n_public = stated.n_public
    model.adjacency = name_of_relation(stated)


def name_of_relation(stated: str | AddRemove) -> str:
    """Return the name of a neighboring relation."""
    return "add_remove" if isinstance(stated, AddRemove) else stated


def with_n_public(adjacency: str, n: Any) -> str | AddRemove:
    """Return a neighboring relation by name, as a parameter of a fit to `n` public records."""
    return AddRemove(n) if adjacency == "add_remove" else adjacency


def adjacency_of(model: Any) -> str:
    """Return the name of the neighboring relation of an estimator."""
    return name_of_relation(stated_adjacency(model))


def public_n(model: Any, n: int) -> int:
    """Return the number of rows, or of groups, that defaults may use: under add_remove the actual number is private."""
    stated = stated_adjacency(model)
    return stated.n_public if isinstance(stated, AddRemove) else int(vars(model).get("_n_public", n))


def number_is_private(reader: Any) -> bool:
    """Return whether the number of records is private to an estimator; False for any other object."""
    adjacency = getattr(reader, "adjacency", None)
    return isinstance(adjacency, AddRemove) or (isinstance(adjacency, str) and adjacency == "add_remove")


Bounds = tuple[float, float] | None
"""Of a column of numbers; None where they are estimated."""


_LARGEST = 1e150
"""Size of a bound: its square has a double, as has that of the inverse of the least width."""


def check_bounds(bounds: Any) -> Bounds | list[Bounds]:
    """Return one pair for all columns, a list with a pair or None per column, or None to estimate the bounds."""
    if bounds is None:
        return None
    given = bounds.tolist() if isinstance(bounds, np.ndarray) else bounds
    if not isinstance(given, Sequence) or isinstance(given, str | bytes) or not given:
        raise ValueError(
            "`bounds` must be a pair (low, high), a list with one pair or None per column, or None, got "
            f"{show(bounds)}."
        )
    if read_real(given[0]) is not None:
        return _pair(given)
    return [None if each is None else _pair(each) for each in given]


def _pair(value: Any) -> tuple[float, float]:
    pair = [read_real(each) for each in value] if isinstance(value, list | tuple) else []
    low, high = pair if len(pair) == 2 else (None, None)
    if low is not None and high is not None and max(-low, high) <= _LARGEST and high - low >= 1.0 / _LARGEST:
        return low, high
    shown = " ".join(repr(value).split()) if isinstance(value, list | tuple) and len(value) <= 4 else show(value)
    raise ValueError(f"`bounds` must be a pair (low, high) of public numbers up to 1e150 with low < high, got {shown}.")


def bounds_of_columns(bounds: Any, n_features: int | None) -> tuple[Bounds, ...]:
    """Return the public bounds of each column, None for columns without; for an unknown width, of any column."""
    if n_features is None:
        return bounds_of_any_width(bounds)
    found = check_bounds(bounds)
    if not isinstance(found, list):
        return (found,) * n_features
    if len(found) != n_features:
        raise ValueError(
            f"`bounds` has {len(found)} entries, but X has {n_features} columns. Pass one pair per column, or a "
            "single pair (low, high)."
        )
    return tuple(found)


def public_bounds(bounds: Any, n_features: int | None) -> np.ndarray:
    """Return the bounds of all columns, of shape (n_features, 2), or reject bounds that leave out a column.

    For an unknown number of columns, the bounds of one column that represents all.
    """
    found = check_bounds(bounds)
    if found is None or (isinstance(found, list) and None in found):
        raise ValueError(
            f"`bounds` must be a pair (low, high), or a list with one pair for every column, got {show(bounds)}."
        )
    if n_features is None:
        return np.array([(-1.0, 1.0)])
    return np.array(bounds_of_columns(bounds, n_features), np.float64)


def bounds_of_any_width(bounds: Any) -> tuple[Bounds, ...]:
    """Return bounds of one column that represents all: estimating them has the same rounds and privacy cost."""
    found = check_bounds(bounds)
    listed = found if isinstance(found, list) else [found]
    return (None,) if any(each is None for each in listed) else ((0.0, 1.0),)
