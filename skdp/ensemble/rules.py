"""Default parameters of private models of random trees: rules in public quantities only.

They were chosen on rows outside the held-out fifths of four tables, whole and cut to 2,000 and 6,000 rows
(`benchmarks/README.md`).
"""

from __future__ import annotations

import math

from skdp._sampling import Sampling, sampling_at

N_STEPS = 100
AFFORDABLE = 2e10  # lookups of a fit, some seconds of one core
SMALLEST_LOT = 4096

TREES_SHARE = 2.0 / 3.0
"""Share of the trees in the squared norm of a row without its intercept; the plain columns have the rest."""

INTERCEPT = 0.2
"""Entry of the intercept where the rest of a row has norm 1."""

LOW_CLIP, HIGH_CLIP = 0.35, 0.7
LOW_STEP, HIGH_STEP = 1.4, 0.7
LOW_SIGNAL, HIGH_SIGNAL = 50.0, 300.0  # of steps and clips
LARGEST_STEP = 200.0


def default_sampling(n: int, n_entries: int, n_steps: int) -> Sampling:
    """The full batch where it is affordable, else lots of an eighth of the rows, 4,096 at least.

    A row costs a lookup for each of its entries, however many levels and leaves there are.
    """
    if n * n_entries * n_steps <= AFFORDABLE or n <= SMALLEST_LOT:
        return sampling_at(1.0)
    return sampling_at(max(SMALLEST_LOT / n, 1.0 / 8.0))


def default_max_grad_norm(signal: float) -> float:
    """A small clip where noise dominates, a large one where the bias of clipping does: C from 0.35 to 0.7."""
    return LOW_CLIP + (HIGH_CLIP - LOW_CLIP) * _rise(signal, LOW_SIGNAL, HIGH_SIGNAL)


def default_learning_rate(
    noise_multiplier: float, max_grad_norm: float, lot_size: float, n_steps: int, signal: float
) -> float:
    """eta = s L / (sigma C sqrt(T)), which fixes how far noise alone carries the parameters; eta C is at most 200.

    s falls with the logarithm of the signal of the plain columns.
    """
    length = LOW_STEP + (HIGH_STEP - LOW_STEP) * _rise(signal, LOW_SIGNAL, HIGH_SIGNAL)
    return min(length * lot_size / (noise_multiplier * math.sqrt(n_steps)), LARGEST_STEP) / max_grad_norm


def _rise(signal: float, low: float, high: float) -> float:
    """Return 0 below `low`, 1 above `high`, and what is linear in the logarithm between them."""
    return min(1.0, max(0.0, math.log(max(signal, 1e-300) / low) / math.log(high / low)))


__all__ = [
    "INTERCEPT",
    "N_STEPS",
    "TREES_SHARE",
    "default_learning_rate",
    "default_max_grad_norm",
    "default_sampling",
]
