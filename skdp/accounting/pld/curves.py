"""The privacy profile of a composition, read off at all epsilons, by each method."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from skdp._typing import Doubles

from .bounded import AnyPair
from .grid import WORK, Composed, deltas_of, solve
from .tilting import Tilt, ceiling, deviation, find_tilt

__all__ = ["Curve", "compose_curve"]

_LEAST_LOOK = 1 << 18  # work of one look, if there are many
_LEAST_EPSILON = 1e-9  # shortest profile
_STRIDE = 2.8  # between looks at one profile, in standard deviations: rounding spoils what is further off

Curve = tuple[float, Callable[[Doubles], Doubles]]  # the epsilon to read it up to, and delta at epsilons


def _look(tilt: Tilt, least: float, error: float, work: int) -> Composed:
    """`solve` for one of several looks that are kept: without what only a lower bound needs."""
    look = solve(tilt, least, error, work=work)
    return look._replace(untilt=look.untilt[:0], releases=())


def compose_curve(directed: list[tuple[AnyPair, ...]], log_floor: float, accuracy: float, work: int) -> Curve:
    """Profile of a composition, from looks at several places: every one is a bound everywhere.

    Parameters
    ----------
    directed : list of tuple of pairs
        One tuple for each direction.
    log_floor : float
        Log of the delta down to which the profile is followed.
    accuracy : float
        Relative error of epsilon aimed at.
    work : int
        Bound on all looks together, as in `solve`.

    Returns
    -------
    tuple of float and callable
        The epsilon up to which to read the profile, and delta at an array of epsilons.
    """
    by_direction: list[list[Composed]] = []
    reach = math.sqrt(-2.0 * log_floor)
    steps, top = max(2, math.ceil(reach / _STRIDE)), 0.0
    each = min(WORK, max(work // (steps * len(directed)), _LEAST_LOOK))
    for pairs in directed:
        if any(pair.infinite >= 1.0 for pair in pairs):
            return 0.0, lambda at: np.ones(at.shape)
        tilt, last = find_tilt(pairs, None, 0.0), 0.0
        looks = [_look(tilt, 0.0, accuracy * deviation(tilt), each)]
        for k in range(2, steps + 1):
            tilt = find_tilt(pairs, -0.5 * (reach * k / steps) ** 2)
            looks.append(_look(tilt, 0.8 * last, accuracy * max(tilt.epsilon, _LEAST_EPSILON), each))
            last = max(tilt.epsilon, 0.0)
        last = max(last, min(ceiling(tilt), 2.0 * last))
        by_direction.append(looks)
        top = max(top, last)

    def read(epsilons: Doubles) -> Doubles:
        lowest = [np.min([deltas_of(look, epsilons) for look in part], axis=0) for part in by_direction]
        result: Doubles = np.max(lowest, axis=0)
        return result

    return top, read
