"""Default parameters, which depend on public quantities only: n, the numbers of parameters and steps, and the noise.

They were found on simulated data and checked on census data (`benchmarks/README.md`). Those of linear models over
one-hot rows of random trees were chosen on rows outside the held-out fifths of four tables, whole and cut to 2,000 and
6,000 rows.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from skdp._dpsgd.plan import DPSGDPlan
from skdp.mechanisms.sampling import Sampling, sampling_at

N_STEPS = 200
AFFORDABLE = 5e9  # multiplications of a fit, some seconds of one core
SMALLEST_LOT = 4096

TWO_CLASSES_CLIP = 0.5
"""C of linear models of two classes. Rows of norm 1 to which the model gives a probability of 1/2 are just not
shortened by it; a smaller C shortens all rows and acts as this one does. The clip does not look at labels there, so no
C has a bias to fear. At C = 1, AUROC was 0.002 to 0.006 lower at epsilon 0.2 and 0.001 to 0.005 at 1 (four tables), and
log loss as much higher."""
TABLE_CLIP = 1.0
"""C of more classes, where rows are those of a table, whose classes may be rare. Against 0.7, log loss of seven classes
of Adult fell by 0.002 to 0.014 at epsilon 1 and by 0.005 in the mean at 0.2, where accuracy fell by 0.003; at 1 it rose
by 0.001 (trees and linear models, two splits each)."""

STEP_LENGTH = 2.0
LARGEST_STEP = 200.0


def default_sampling(n: int, n_parameters: int, n_steps: int, affordable: float = AFFORDABLE) -> Sampling:
    """The full batch where it is affordable, else lots of an eighth of the rows, 4,096 at least."""
    if n * n_parameters * n_steps <= affordable or n <= SMALLEST_LOT:
        return sampling_at(1.0)
    return sampling_at(max(SMALLEST_LOT / n, 1.0 / 8.0))


def signal_of(noise_multiplier: float, lot_size: float, n_steps: int, n_parameters: int) -> float:
    """s = L sqrt(T) / (sigma sqrt(p)): rows over the noise of the whole run, per coordinate.

    At the full batch sigma / sqrt(T) is the noise multiplier of one release that costs the whole budget.
    """
    return lot_size * math.sqrt(n_steps / n_parameters) / noise_multiplier


ENOUGH_A_COLUMN = 10.0
"""Rows over the noise of the whole run, divided by the columns of a table, from which coefficients are kept as they
are. The noise of a score does not fall with the number of columns, but what each of them tells does. Of 600 columns,
10,500 rows and epsilon 1, the number is 4.7, and of 14 columns of Adult and 560 rows 11."""


def kept_of_coef(noise_multiplier: float, lot_size: float, n_steps: int, n_columns: float) -> float:
    """Factor of the coefficients of a classifier of one-hot rows: 1 for few columns, near 0 where noise decides all."""
    each = signal_of(noise_multiplier, lot_size, n_steps, 1) / (ENOUGH_A_COLUMN * n_columns)
    return min(1.0, each * each)


def default_max_grad_norm(noise_multiplier: float, lot_size: float, n_steps: int, n_parameters: int) -> float:
    """C of several classes: small where noise dominates, large where the bias of clipping does, from 0.25 to 0.7."""
    signal = signal_of(noise_multiplier, lot_size, n_steps, n_parameters)
    return _between((0.25, 0.7), signal, 30.0, 700.0)


def default_learning_rate(noise_multiplier: float, max_grad_norm: float, lot_size: float, n_steps: int) -> float:
    """eta = 2 L / (sigma C sqrt(T)), which fixes how far noise alone carries the parameters; eta C is at most 200."""
    by_noise = STEP_LENGTH * lot_size / (noise_multiplier * math.sqrt(n_steps))
    return min(by_noise, LARGEST_STEP) / max_grad_norm


INPUT_NORM = 8.0
"""Rows of norm `data_norm` enter the network with this norm. Unit rows starve the first layer: what it learns grows
with their length. On tables 5 and 10 gave the same mean AUROC within 0.001; on images 5 cost 0.5 points of accuracy."""
CHUNK_VALUES = 1 << 20
"""Size of a chunk at the widest layer: it stays in cache, and few calls are made."""

NETWORK_LOT = 4096
NETWORK_STEPS = 300
ADAM_STEP = 2e-3


class NetworkRule(NamedTuple):
    """Norm of rows at the input, clip C, length of steps and the largest product of C and the step size, if "auto"."""

    input_norm: float
    clip: float
    step_length: float
    largest_step: float


ONE_OUTPUT = NetworkRule(INPUT_NORM, 2.0, 0.2, 40.0)
"""Two classes, whose clip does not look at the label. On dev rows of four tables, C of 1, 2 and 4 gave the same AUROC
within 0.003 at epsilon 1; steps of 0.3 lost 0.001 to 0.004 of it on three of them, steps of 0.1 up to 0.011 on two."""
SEVERAL_OUTPUTS = NetworkRule(INPUT_NORM, 6.0, 0.3, 60.0)
"""Rows are clipped by the norm that the gradient of their own label has: the bias of a clip far below it shows in
probabilities. MNIST at epsilon 2 and C of 0.5, 2, 4 and 8: accuracy 0.925, 0.925, 0.930 and 0.927, log loss 0.43, 0.34,
0.29 and 0.27. Seven classes of Adult, some rare, at C of 0.5, 4 and 8: log loss 0.72, 0.53 and 0.48."""
TABLE_INPUT_NORM = 4.0
"""For rows that bring their exact norm along: others are mostly shorter than their bound. Where 4 replaced 8, AUROC at
epsilon 0.1, 1 and 4 changed by -0.003, -0.001 and +0.001 on Fulton, -0.001, +0.001 and +0.001 on Adult, and +0.010,
+0.013 and +0.009 on credit default (four fifths each); with 5, credit default gained half as much. With 32 units in
place of 100 it gained 0.015 more at epsilon 1, and Fulton lost 0.004."""


def network_sampling(n: int) -> Sampling:
    """Lots of 4,096 rows, or all of them: a fit's time does not grow with n.

    Lots of 8,192 rows gained nothing at the same budget and number of steps: where noise dominates, rows over the noise
    of the whole run, L / (sigma sqrt(T)), hardly depend on the lot.
    """
    return sampling_at(min(1.0, NETWORK_LOT / n))


def network_batch(widest: int) -> int:
    """Rows of a chunk, by the widest layer: from 512 to 4,096."""
    return max(512, min(4096, CHUNK_VALUES // widest))


def network_steps(n: int, sampling: Sampling) -> int:
    """300 steps, or more for lots smaller than the rule's own, so that the same number of rows is read."""
    return math.ceil(NETWORK_STEPS * max(1.0, min(n, NETWORK_LOT) / (sampling.rate * n)) - 1e-9)


def network_learning_rate(plan: DPSGDPlan, rule: NetworkRule) -> float:
    """eta = s L / (sigma C sqrt(T)), which fixes how far noise alone carries a weight; eta C has a bound.

    A weight's random walk of T noisy steps of constant length ends s from where it began (standard deviation). 0.3 is
    the size of an initial weight that has some twenty inputs.
    """
    by_noise = rule.step_length * plan.expected_lot_size / (plan.noise_multiplier * math.sqrt(plan.n_steps))
    return min(by_noise, rule.largest_step) / plan.max_grad_norm


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
    """Clips and steps of a loss, from the signal of the plain columns (`skdp._dpsgd.defaults.signal_of`).

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
