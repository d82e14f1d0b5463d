"""The plan: clip, noise, sampling and price, joined once."""

from __future__ import annotations

import dataclasses
from functools import partial

import pytest
from combinations import over_rows

from skdp._training.plan import DPSGDPlan, event_of_steps
from skdp.accounting import (
    GaussianDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    calibrate_noise_multiplier,
    get_epsilon,
)
from skdp.mechanisms import GaussianMechanism
from skdp.mechanisms.sampling import FullBatch, PoissonSampling

PLAN = DPSGDPlan(PoissonSampling(0.02), max_grad_norm=0.25, noise_multiplier=1.5, n_steps=30, expected_lot_size=20.0)


def test_event_states_the_noise_the_rate_and_the_steps_of_the_plan():
    assert PLAN.event == SelfComposedDpEvent(PoissonSampledDpEvent(0.02, GaussianDpEvent(1.5)), 30)


def test_full_batch_event_is_a_plain_gaussian():
    """Property 12."""
    plan = dataclasses.replace(PLAN, sampling=FullBatch())
    assert plan.event == SelfComposedDpEvent(GaussianDpEvent(1.5), 30)


def test_mechanism_is_that_of_the_event():
    """Principle 2: one object makes the noise, sigma C and room for rounding, and its price, sigma."""
    assert PLAN.mechanism.sensitivity == PLAN.max_grad_norm
    assert PLAN.mechanism == GaussianMechanism(1.5, 0.25)
    assert PLAN.mechanism.event == PLAN.event.event.event


def test_event_of_the_first_steps():
    assert PLAN.event_of(7) == SelfComposedDpEvent(PLAN.event.event, 7)
    assert PLAN.event_of(30) == PLAN.event


def test_price_depends_on_neither_clip_nor_lot():
    other = dataclasses.replace(PLAN, max_grad_norm=9.0, expected_lot_size=1.0)
    assert other.event == PLAN.event


def test_plan_is_frozen_and_hashable():
    with pytest.raises(dataclasses.FrozenInstanceError):
        PLAN.n_steps = 10
    assert hash(PLAN) == hash(dataclasses.replace(PLAN))


@over_rows("adjacency", ["zero_out", "add_remove", "replace_one"])
@over_rows("sampling", [FullBatch(), PoissonSampling(0.1)])
def test_noise_for_a_budget_costs_the_budget(sampling, adjacency):
    """The plan that runs at the noise that was solved for costs at most epsilon, and hardly less (property 14)."""
    event_at = partial(event_of_steps, sampling, 20)
    sigma = calibrate_noise_multiplier(event_at, 1.0, 1e-5, adjacency=adjacency)
    plan = DPSGDPlan(sampling, 0.3, sigma, 20, 50.0)
    price = get_epsilon(plan.event, 1e-5, adjacency=adjacency)
    assert 0.999 <= price <= 1.0


def test_noise_for_a_budget_knows_adjacency_and_accounting():
    def noise(**changes):
        event_at = partial(event_of_steps, PoissonSampling(0.1), 20)
        return calibrate_noise_multiplier(event_at, 1.0, 1e-5, **changes)

    assert noise(adjacency="replace_one") > 1.2 * noise()
    assert noise(adjacency="add_remove") == noise()
    assert noise(method="rdp") > noise()
