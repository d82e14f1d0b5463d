"""`get_epsilon` and `get_delta`: one event, one figure, by the method that is named."""

from __future__ import annotations

import math
import numbers
import sys
from functools import lru_cache
from typing import Any

from ._composition import Releases, releases
from ._pld import FINE, pld_delta, pld_epsilon
from ._rdp import rdp_delta, rdp_epsilon
from .events import DpEvent

__all__ = [
    "ADJACENCIES",
    "METHODS",
    "check_adjacency",
    "check_delta",
    "check_epsilon",
    "check_method",
    "get_delta",
    "get_epsilon",
    "rough_epsilon",
]

METHODS = ("pld", "rdp")
ADJACENCIES = ("zero_out", "add_remove", "replace_one")


def _is_real(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, numbers.Real) and not math.isnan(value)


def check_delta(delta: Any) -> float:
    """`delta` as a float in (0, 1), or a ValueError that says so."""
    if not _is_real(delta) or not 0.0 < delta < 1.0:
        raise ValueError(f"delta={delta!r} is not valid; give a number above 0 and below 1, such as 1e-5.")
    return float(delta)


def check_epsilon(epsilon: Any, *, positive: bool = False) -> float:
    """`epsilon` as a finite float of at least 0 (above 0 if `positive`), or a ValueError that says so."""
    if not _is_real(epsilon) or not 0.0 <= epsilon < math.inf or (positive and epsilon == 0.0):
        least = "above 0" if positive else "of 0 or more"
        raise ValueError(f"epsilon={epsilon!r} is not valid; give a finite number {least}.")
    return float(epsilon)


def check_adjacency(adjacency: Any) -> str:
    """`adjacency` if it is known, or a ValueError that lists what is."""
    if adjacency not in ADJACENCIES:
        raise ValueError(f"adjacency={adjacency!r} is not known; choose one of {', '.join(ADJACENCIES)}.")
    return str(adjacency)


def check_method(method: Any) -> str:
    """`method` if it is known, or a ValueError that lists what is."""
    if method not in METHODS:
        raise ValueError(f"method={method!r} is not known; choose one of {', '.join(METHODS)}.")
    return str(method)


@lru_cache(maxsize=4096)
def _epsilon(found: Releases, delta: float, method: str, replace: bool, accuracy: float | None = None) -> float:
    if method == "rdp":
        return rdp_epsilon(found, delta, doubled=replace)
    return pld_epsilon(found, delta, replace=replace, accuracy=accuracy or FINE)


def rough_epsilon(event: DpEvent, delta: float, *, method: str, adjacency: str) -> float:
    """`get_epsilon` to about one per cent above, in a fraction of the time; for searches."""
    found = releases(event)
    if found.empty or found.non_private:
        return get_epsilon(event, delta, method=method, adjacency=adjacency)
    return max(_epsilon(found, delta, method, adjacency == "replace_one", 1e-3), sys.float_info.min)


@lru_cache(maxsize=4096)
def _delta(found: Releases, epsilon: float, method: str, replace: bool) -> float:
    if method == "rdp":
        return rdp_delta(found, epsilon, doubled=replace)
    return pld_delta(found, epsilon, replace=replace)


def get_epsilon(event: DpEvent, delta: float, *, method: str = "pld", adjacency: str = "zero_out") -> float:
    """Epsilon that an event costs at `delta`: never below the truth.

    Parameters
    ----------
    event : DpEvent
    delta : float
        In (0, 1).
    method : {"pld", "rdp"}
        Privacy loss distributions (exact to about 1e-4 and better), or Rényi (looser).
    adjacency : {"zero_out", "add_remove", "replace_one"}
        What neighbours differ in. `zero_out` has the price of `add_remove`.

    Returns
    -------
    float
        In nats. 0.0 means that nothing was released: where delta alone covers a release, the smallest
        positive number is returned. inf for `NonPrivateDpEvent`.
    """
    delta, method, adjacency = check_delta(delta), check_method(method), check_adjacency(adjacency)
    found = releases(event)
    if found.empty:
        return 0.0
    if found.non_private:
        return math.inf
    return max(_epsilon(found, delta, method, adjacency == "replace_one"), sys.float_info.min)


def get_delta(event: DpEvent, epsilon: float, *, method: str = "pld", adjacency: str = "zero_out") -> float:
    """Delta that an event costs at `epsilon`: never below the truth.

    Parameters
    ----------
    event : DpEvent
    epsilon : float
        Finite, at least 0, in nats.
    method : {"pld", "rdp"}
    adjacency : {"zero_out", "add_remove", "replace_one"}

    Returns
    -------
    float
        In [0, 1]; 0.0 only for nothing, 1.0 for `NonPrivateDpEvent`.
    """
    epsilon, method, adjacency = check_epsilon(epsilon), check_method(method), check_adjacency(adjacency)
    found = releases(event)
    if found.empty:
        return 0.0
    if found.non_private:
        return 1.0
    return min(1.0, max(_delta(found, epsilon, method, adjacency == "replace_one"), sys.float_info.min))
