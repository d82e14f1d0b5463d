"""How much more likely selection can make an output, from the Rényi divergences of one trial.

For an event of probability t under one neighbour and w under the other, Hölder's inequality gives, for every order,

    w <= (t e^R(alpha))^(1 - 1/alpha),

the lemma behind Theorem 2 of Papernot & Steinke 2022 (that Theorem then takes one order for every t). Here the event
is that a trial beats the output in hand.
"""

from __future__ import annotations

import math

import numpy as np

from skdp._typing import Doubles

from ..formulas.selection_law import NumberOfTrials

_CELLS = 2000
_SAFE = 1.0 + 1e-12


def largest_gain(trials: NumberOfTrials, orders: Doubles, values: Doubles) -> float:
    """Bound on log phi'(u) / phi'(v), u and v the chances under two neighbours that a trial is not better.

    Parameters
    ----------
    trials : NumberOfTrials
    orders, values : ndarray
        Orders, and the Rényi divergences of one trial there, the larger of both directions.

    Returns
    -------
    float
        In nats, at least 0: the largest over cells of t = 1 - u of log phi'(1 - t) at the lower end, less
        log phi'(1 - w) for the largest w at the upper end.
    """
    if trials.mean == 1.0 and not trials.poisson:
        return 0.0
    t = trials.chances(_CELLS)
    kept = np.isfinite(values)
    share = 1.0 - 1.0 / orders[kept]
    with np.errstate(divide="ignore"):
        log_w = np.min(share[:, None] * (np.log(t) + values[kept, None]), axis=0, initial=0.0)
    # Pinsker; the divergence of the first order is at least Kullback & Leibler's
    w = np.minimum(np.exp(log_w), t + math.sqrt(0.5 * max(float(values[0]), 0.0)))
    w = np.minimum(w * _SAFE, 1.0)
    with np.errstate(divide="ignore"):
        ahead = np.log(trials.slope(t[:-1])) - np.log(np.maximum(trials.slope(w[1:]), 1e-300))
    return max(0.0, float(ahead.max())) * _SAFE
