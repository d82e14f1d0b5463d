"""Settings of NumPy's arithmetic while private rows are read."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")


def silent_arithmetic(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function that reads private rows neither warn nor fail because of ``numpy.seterr``.

    A user may have asked NumPy to warn of underflow, or to raise an error. A denormal number in one row would then
    decide whether a fit ends with an error, after its charge.
    """

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)

    return run
