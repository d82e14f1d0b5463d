"""The pair of two densities as weighted losses: connect-the-dots on cells of the place where the output lies.

A loss l within a cell between losses a and b is split between them with weight (1 - e^{a-l}) / (1 - e^{a-b}) on b,
which conserves the mass of both P and Q and dominates the exact pair (Doroshenko, Ghazi, Kamath, Kumar & Manurangsi
2022). Masses within a cell are those of a quadrature, whose error is bounded by `quadrature.ERROR`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from skdp._typing import Doubles

from ..formulas.quadrature import MOST, number_of_nodes, rule
from .atoms import LossAtoms

__all__ = ["Tails", "connect"]

_PART = 1 << 14  # cells at a time: memory stays small


class Tails(NamedTuple):
    """Masses outside the cells: of P below and above them, and of Q."""

    below: float = 0.0
    above: float = 0.0
    q_below: float = 0.0
    q_above: float = 0.0


Density = Callable[[Doubles], tuple[Doubles, Doubles]]


def _log_sum(logs: Doubles) -> Doubles:
    """Log of the sum of e^logs over the last axis."""
    top = logs.max(axis=-1)
    safe = np.where(top > -math.inf, top, 0.0)
    with np.errstate(divide="ignore"):
        result: Doubles = safe + np.log(np.exp(logs - safe[..., None]).sum(axis=-1))
    return result


def _split(knots: Doubles, at_knots: Doubles, density: Density, slope: Doubles) -> tuple[Doubles, Doubles]:
    """For each cell the log mass that goes to its lower and to its upper end."""
    half = 0.5 * np.diff(knots)[:, None]
    node, weight = rule(number_of_nodes(float((half[:, 0] * slope).max())))
    loss, log_density = density(knots[:-1, None] + half * (node + 1.0))
    low, high = at_knots[:-1, None], at_knots[1:, None]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        share = np.where(high > low, np.expm1(low - loss) / np.expm1(low - high), 1.0)
        share = np.clip(share, 0.0, 1.0)
        log_mass = log_density + np.log(half * weight)
        return _log_sum(log_mass + np.log1p(-share)), _log_sum(log_mass + np.log(share))


def connect(
    knots: Doubles, density: Density, slope: Doubles | float, tails: Tails, extra: tuple[Doubles, Doubles] | None = None
) -> LossAtoms:
    """The pair of two densities, of which the loss rises with the place.

    Parameters
    ----------
    knots : array
        Ends of the cells, rising.
    density : callable
        Of places, of any shape: the loss there, and the log of the density of P.
    slope : array or float
        Of each cell, as `quadrature.nodes` takes it, for the densities of which P and Q are mixtures.
    tails : Tails
        What lies outside. The mass of P below is moved up to the first knot, that above is lost.
    extra : tuple of array, optional
        Losses with masses of their own, and the logs of these.

    Returns
    -------
    LossAtoms

    Raises
    ------
    ArithmeticError
        If cells are too wide for a bound on the error.
    """
    at_knots, slopes = np.maximum.accumulate(density(knots)[0]), np.broadcast_to(slope, knots.size - 1)
    if float((0.5 * np.diff(knots) * slopes).max()) > max(MOST.values()):
        raise ArithmeticError("cells are too wide for the densities in them; report this as an error")
    parts = []
    for k in range(0, knots.size - 1, _PART):
        kept = slice(k, k + _PART + 1)
        parts.append(_split(knots[kept], at_knots[kept], density, slopes[k : k + _PART]))
    down, up = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    log_weight = np.logaddexp(np.append(down, -math.inf), np.append(-math.inf, up))
    if tails.below > 0.0:
        log_weight[0] = np.logaddexp(log_weight[0], math.log(tails.below))
    loss = at_knots
    if extra:
        loss, log_weight = np.append(loss, extra[0]), np.append(log_weight, extra[1])
    missing = tails.q_above
    if tails.q_below > 0.0:
        moved = math.log(tails.below) - at_knots[0] if tails.below > 0.0 else -math.inf
        missing += max(0.0, tails.q_below - math.exp(min(moved, 0.0)))
    return LossAtoms.of(loss, log_weight, tails.above, missing)
