"""Rényi divergences of releases that have a dominating pair, and of those that have a formula of their own.

*From a pair* (`dominating`): log E_Q[(P / Q)^alpha] over its weighted losses, the larger of both directions. A pair
that dominates in every hockey-stick divergence does so in Rényi's, whose moments are mixtures of them. Unbounded
losses are followed to 14 standard deviations beyond the peak of the integrand; what is left out is below e^-90 of the
whole.

*Discrete Gaussian*: alpha shift^2 / (2 s^2), as of the continuous one (Canonne, Kamath & Steinke 2020; restated and
proved here). For a shift of d, E_Q[(P/Q)^alpha] is e^{alpha (alpha-1) d^2 / (2 s^2)} times the sum of e^{-(x - alpha
d)^2 / (2 s^2)} over whole x, by that of e^{-x^2 / (2 s^2)}. The latter is the larger: as a function of the centre the
sum is a Fourier series with coefficients above 0 (Poisson), largest at whole numbers.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from ..dominating.atoms import LossAtoms
from ..dominating.noise import LAWS
from ..dominating.pairs import dominating, pair_refusal
from ..events.kinds import name_of, sampled_form
from ..events.noise_events import DiscreteGaussianDpEvent
from ..events.specifications import DpEvent, EpsilonDeltaDpEvent
from .sampled import log1p_exp, log_excess

_FARTHEST = 128.0  # standard deviations that an order moves a loss by, at most
_OUTSIDE = 1.001e-300  # mass of noise that is left out, at most
_UP = 1.0 + 1e-10


def other_refusal(event: DpEvent) -> Exception | None:
    """Why an event has no Rényi divergence here, whatever the adjacency, without a remedy; None if it has one."""
    inner = sampled_form(event)[2]
    if isinstance(inner, EpsilonDeltaDpEvent) and inner.delta > 0.0:
        return TypeError(f"event={name_of(event)} with delta > 0 has no Rényi divergence")
    wide = None if isinstance(event, DiscreteGaussianDpEvent) else pair_refusal(event)
    if wide is None and LAWS[type(inner)].order_shift(inner) == math.inf:
        wide = ""
    return None if wide is None else TypeError(f"event={name_of(event)}{wide} has no Rényi divergence here")


def _log_moment_of(atoms: LossAtoms, alpha: float) -> float:
    """log E_Q[(P / Q)^alpha]: E - 1 is the mean under Q of non-negative terms."""
    logs = log_excess(alpha, atoms.loss) + (atoms.log_weight - atoms.loss)
    top = float(logs.max(initial=-math.inf))
    total = top + math.log(float(np.exp(logs - top).sum())) if top > -math.inf else -math.inf
    if atoms.missing > 0.0:  # where P has nothing the term is alpha - 1
        total = float(np.logaddexp(total, math.log(atoms.missing) + math.log(alpha - 1.0)))
    return log1p_exp(total)


@lru_cache(maxsize=1 << 13)
def _by_pair(event: DpEvent, alpha: float, replace_one: bool) -> float:
    inner = sampled_form(event)[2]
    shift, order = LAWS[type(inner)].order_shift(inner), 1.0
    if shift > 0.0:
        if (alpha - 1.0) * shift > _FARTHEST:
            return math.inf
        order = max(2.0, 1.0 + 2.0 ** math.ceil(math.log2(alpha - 1.0)))  # so that few grids are laid
    pairs = dominating(event, replace_one, order)
    # infinite loss has no divergence, but for what is so far out of unbounded noise that it does not count
    if max(pair.infinite for pair in pairs) > (_OUTSIDE if shift > 0.0 else 0.0):
        return math.inf
    return max(_log_moment_of(pair, alpha) for pair in pairs) / (alpha - 1.0)


def other_rdp(event: DpEvent, alpha: float, replace_one: bool) -> float:
    """Rényi divergence of one release.

    Parameters
    ----------
    event : DpEvent
        In its simplest equal form, with a Rényi divergence.
    alpha : float
        Order, above 1.
    replace_one : bool
        Whether neighbours replace a record.

    Returns
    -------
    float
        In nats, rounded up; inf where the order is too large for it to be computed.
    """
    if isinstance(event, DiscreteGaussianDpEvent):
        shift = (2.0 if replace_one else 1.0) * event.sensitivity / event.standard_deviation
        return 0.5 * alpha * shift * shift
    return _by_pair(event, alpha, replace_one) * _UP
