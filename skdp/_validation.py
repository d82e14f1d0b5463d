"""Checks of public parameters; each failure is one line with the parameter, the value and the remedy."""

from __future__ import annotations

import math
import os
from typing import Any, NoReturn

from skdp.accounting.events import read_real, read_whole, show


class WrongTypeError(TypeError, ValueError):
    """A parameter of a type that it cannot have. Also a `ValueError`, as scikit-learn's own error for parameters is."""


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
    number = read_real(value)
    if number is None:
        _refuse_type(name, value, remedy)
    if math.isfinite(number) and above < number < below and at_least <= number <= at_most:
        return number
    raise ValueError(f"{name}={show(value)} is out of range: {remedy}.")


def check_count(name: str, value: Any, *, at_least: int = 1, remedy: str) -> int:
    """`value` as an int, if it is a whole number of at least `at_least`."""
    number = read_whole(value)
    if number is None:
        _refuse_type(name, value, remedy)
    if number >= at_least:
        return number
    raise ValueError(f"{name}={show(value)} is out of range: {remedy}.")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """`value`, if it is one of `choices`."""
    if isinstance(value, str) and value in choices:
        return value
    raise ValueError(f"{name}={show(value)} is not known: use one of {', '.join(map(repr, choices))}.")


def _refuse_type(name: str, value: Any, remedy: str) -> NoReturn:
    raise WrongTypeError(f"{name}={show(value)} is of the wrong type, {type(value).__name__}: {remedy}.")


def absolute_path(value: Any) -> Any:
    """A path, made absolute where it is given, so that a later change of folder does not change its meaning."""
    if isinstance(value, str | os.PathLike) and value and not os.path.isabs(value):
        return os.path.abspath(value)
    return value
