"""Public bounds of columns, one pair for all or one for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skdp._checks.parameters import read_real, show

Bounds = tuple[float, float] | None
"""Of a column of numbers; None where they are estimated."""


_LARGEST = 1e150
"""Size of a bound: its square has a double, as has that of the inverse of the least width."""


def check_bounds(bounds: Any) -> Bounds | list[Bounds]:
    """One pair for all columns, a list with a pair or None for each, or None if bounds are estimated."""
    if bounds is None:
        return None
    given = bounds.tolist() if isinstance(bounds, np.ndarray) else bounds
    if not isinstance(given, Sequence) or isinstance(given, str | bytes) or not given:
        raise ValueError(f"bounds={show(bounds)} is not valid: give (low, high), a list with one a column, or None.")
    if read_real(given[0]) is not None:
        return _pair(given)
    return [None if each is None else _pair(each) for each in given]


def _pair(value: Any) -> tuple[float, float]:
    pair = [read_real(each) for each in value] if isinstance(value, list | tuple) else []
    if len(pair) == 2:
        low, high = pair
        if (
            low is not None
            and high is not None
            and -_LARGEST <= low < high <= _LARGEST
            and high - low >= 1.0 / _LARGEST
        ):
            return low, high
    shown = " ".join(repr(value).split()) if isinstance(value, list | tuple) and len(value) <= 4 else show(value)
    raise ValueError(f"bounds={shown} is not a range: give two public numbers up to 1e150, low below high.")


def bounds_of_columns(bounds: Any, n_features: int | None) -> tuple[Bounds, ...]:
    """Return the public bounds of each column, None where there are none; of an unknown number, those of any column."""
    if n_features is None:
        return bounds_of_any_width(bounds)
    found = check_bounds(bounds)
    if not isinstance(found, list):
        return (found,) * n_features
    if len(found) != n_features:
        raise ValueError(f"bounds has {len(found)} entries for {n_features} columns: give one a column, or one pair.")
    return tuple(found)


def public_bounds(bounds: Any, n_features: int | None) -> np.ndarray:
    """Return bounds of all columns, of shape (n_features, 2), or reject those that leave some out.

    Of an unknown number of columns, those of one that represents all.
    """
    found = check_bounds(bounds)
    if found is None or (isinstance(found, list) and None in found):
        raise ValueError(f"bounds={show(bounds)} leaves bounds out: give (low, high), or a list with one a column.")
    if n_features is None:
        return np.array([(-1.0, 1.0)])
    return np.array(bounds_of_columns(bounds, n_features), np.float64)


def bounds_of_any_width(bounds: Any) -> tuple[Bounds, ...]:
    """Bounds of one column that represents all: a purchase for it has the same rounds, and so the same price."""
    found = check_bounds(bounds)
    listed = found if isinstance(found, list) else [found]
    return (None,) if any(each is None for each in listed) else ((0.0, 1.0),)
