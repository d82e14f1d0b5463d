"""Default parameters of linear models over one-hot rows of random trees: rules in public quantities only.

They were chosen on rows outside the held-out fifths of four tables, whole and cut to 2,000 and 6,000 rows
(`benchmarks/README.md`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from skdp._training.defaults import TABLE_CLIP, TWO_CLASSES_CLIP
from skdp._training.plan import DPSGDPlan

TREES_STEPS = 100
AFFORDABLE_LOOKUPS = 2e10  # of a fit, some seconds of one core; a row costs one for each of its entries

TREES_SHARE = 1.0 / 3.0, 2.0 / 3.0
"""Share of the trees in the squared norm of a row without its intercept; the plain columns have the rest. Where noise
rules, the plain columns, which are fewer, are learned first."""
FEWEST_SIGNAL, ENOUGH_SIGNAL = 20.0, 60.0

ENTRY_OF_INTERCEPT = 0.2
"""Entry of the intercept where the rest of a row has norm 1."""

WEAK_SIGNAL, STRONG_SIGNAL = 50.0, 300.0


class LossRule(NamedTuple):
    """Clips and steps of a loss, from the signal of the plain columns (`skdp._training.defaults.signal_of`).

    Pairs are values at a low and at a high signal; between `WEAK_SIGNAL` and `STRONG_SIGNAL` they are linear in its
    logarithm.

    Attributes
    ----------
    clip : (float, float)
        C: where targets are numbers a small clip if noise dominates, a large one if the bias of clipping does.
    step : (float, float)
        s in eta = s L / (sigma C sqrt(T)), which fixes how far noise alone carries the parameters.
    largest_step : float
        eta C is at most this.
    """

    clip: tuple[float, float]
    step: tuple[float, float]
    largest_step: float

    def max_grad_norm(self, signal: float) -> float:
        """C."""
        return _between(self.clip, signal, WEAK_SIGNAL, STRONG_SIGNAL)

    def learning_rate(self, plan: DPSGDPlan, signal: float) -> float:
        """eta."""
        by_noise = plan.expected_lot_size / (plan.noise_multiplier * math.sqrt(plan.n_steps))
        length = _between(self.step, signal, WEAK_SIGNAL, STRONG_SIGNAL)
        return min(length * by_noise, self.largest_step) / plan.max_grad_norm


RULES = {
    "logistic": LossRule(clip=(TWO_CLASSES_CLIP,) * 2, step=(1.4, 0.7), largest_step=200.0),
    "softmax": LossRule(clip=(TABLE_CLIP,) * 2, step=(1.4, 0.7), largest_step=200.0),
    "squared_error": LossRule(clip=(0.5, 0.5), step=(0.15, 0.2), largest_step=12.0),
}
"""By the loss. Targets of squared loss are in [-1, 1]; it is steeper than logistic loss, and its scores are not turned
into odds."""


def trees_share(signal: float) -> float:
    """Share of the trees, from the least to the largest between `FEWEST_SIGNAL` and `ENOUGH_SIGNAL`."""
    return _between(TREES_SHARE, signal, FEWEST_SIGNAL, ENOUGH_SIGNAL)


def _between(ends: tuple[float, float], signal: float, low: float, high: float) -> float:
    """What is linear in the logarithm of the signal between `low` and `high`, and one of the ends beyond."""
    share = math.log(max(signal, 1e-300) / low) / math.log(high / low)
    return ends[0] + (ends[1] - ends[0]) * min(1.0, max(0.0, share))


__all__ = [
    "AFFORDABLE_LOOKUPS",
    "ENTRY_OF_INTERCEPT",
    "RULES",
    "TREES_SHARE",
    "TREES_STEPS",
    "LossRule",
    "trees_share",
]
