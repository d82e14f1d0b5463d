"""Checks of public parameters; each failure is one line with the parameter, the value and the remedy."""

from __future__ import annotations

import math
import numbers
from typing import Any


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
    """`value` as a float, if it is a finite real number within the bounds."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        number = _to_float(value)
        if math.isfinite(number) and above < number < below and at_least <= number <= at_most:
            return number
    raise ValueError(f"{name}={value!r} is out of range: {remedy}.")


def _to_float(value: numbers.Real) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def check_count(name: str, value: Any, *, at_least: int = 1, remedy: str) -> int:
    """`value` as an int, if it is a whole number of at least `at_least`."""
    if isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= at_least:
        return int(value)
    raise ValueError(f"{name}={value!r} is out of range: {remedy}.")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """`value`, if it is one of `choices`."""
    if isinstance(value, str) and value in choices:
        return value
    raise ValueError(f"{name}={value!r} is not known: use one of {', '.join(map(repr, choices))}.")
