"""PLD costs and brackets against two other accountants, on drawn and on mixed compositions.

Judged against dp-accounting 0.6.0 (PLD, pessimistic): ours may lie above by 1e-3 relative and 1e-4 absolute,
and below by no more than what its grid is known to add.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from accounting_reference import dpsgd

from skdp.accounting import get_epsilon, get_epsilon_bounds


def drawn_cases(seed: int, number: int) -> list[tuple[float, float, int, float, str]]:
    """Cases whose epsilon is of interest and which dp-accounting computes in a second or so."""
    rng = np.random.default_rng(seed)
    cases: list[tuple[float, float, int, float, str]] = []
    while len(cases) < number:
        q = 1.0 if rng.random() < 0.1 else 10 ** rng.uniform(-5, 0)
        sigma, steps = 10 ** rng.uniform(math.log10(0.3), 2), int(10 ** rng.uniform(0, 5))
        delta, adjacency = 10 ** rng.uniform(-12, -4), "replace_one" if rng.random() < 0.25 else "add_remove"
        if 0.05 < get_epsilon(dpsgd(q, sigma, steps), delta, adjacency=adjacency) < 40:
            cases.append((q, sigma, steps, delta, adjacency))
    return cases


def check_against_dp_accounting(q, sigma, steps, delta, adjacency):
    import dp_accounting
    from dp_accounting.pld import privacy_loss_distribution as pld

    name = "REPLACE_ONE" if adjacency == "replace_one" else "ADD_OR_REMOVE_ONE"
    relation = getattr(dp_accounting.NeighboringRelation, name)
    ours = get_epsilon(dpsgd(q, sigma, steps), delta, adjacency=adjacency)
    width = 1e-4 if ours < 8 else 5e-4
    theirs = (
        pld.from_gaussian_mechanism(
            sigma, sampling_prob=q, value_discretization_interval=width, neighboring_relation=relation
        )
        .self_compose(steps)
        .get_epsilon_for_delta(delta)
    )
    # its own rounding of the FFT is of this order, relative to delta, and moves its figure either way
    slack = 3e-16 * steps / delta + 1e-15 * math.sqrt(steps) / delta
    assert ours <= theirs * (1.0 + 1e-3 + slack) + 1e-4, (ours, theirs)
    low, high = get_epsilon_bounds(dpsgd(q, sigma, steps), delta, adjacency=adjacency)
    assert high == ours
    assert low <= theirs * (1.0 + slack), (low, theirs)
    # theirs is an upper bound too: it lies above by what its grid adds to the variance, steps * width^2 / 6
    order = -2.0 * math.log(delta) / max(theirs, 1e-9)
    assert ours >= theirs * (1.0 - 1e-3 - slack) - 1e-4 - (1.0 + order) * steps * width**2 / 6, (ours, theirs)


def test_drawn_table_against_dp_accounting():
    pytest.importorskip("dp_accounting")
    for case in drawn_cases(seed=11, number=5):
        check_against_dp_accounting(*case)


def test_within_the_certified_interval_of_prv_accountant():
    q, sigma, steps, delta = 0.01, 1.1, 1_000, 1e-5
    prv = pytest.importorskip("prv_accountant")
    mechanism = prv.PoissonSubsampledGaussianMechanism(sampling_probability=q, noise_multiplier=sigma)
    accountant = prv.PRVAccountant(
        prvs=[mechanism], max_self_compositions=[steps], eps_error=0.02, delta_error=delta * 1e-3
    )
    low, _, high = accountant.compute_epsilon(delta, [steps])
    assert low <= get_epsilon(dpsgd(q, sigma, steps), delta) <= high + 1e-4
    ours = get_epsilon_bounds(dpsgd(q, sigma, steps), delta)
    assert max(low, ours[0]) <= min(high, ours[1])
    assert ours[1] - ours[0] < 0.1 * (high - low)
