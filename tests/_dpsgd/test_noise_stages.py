"""How noise is spread over steps: the stages, their cost, and that fits draw just what the event lists."""

import math

import numpy as np
import pytest
from combinations import over_rows
from sklearn.pipeline import make_pipeline

from skdp import (
    BudgetExceededError,
    DPLogisticRegression,
    DPMLPClassifier,
    DPStandardScaler,
    PrivacyAccountant,
    allocate_budget,
)
from skdp._dpsgd.loop import ema_average, tail_average
from skdp._dpsgd.plan import DPSGDPlan, Stage, event_of_steps, falling_noise
from skdp.accounting import GaussianDpEvent, SelfComposedDpEvent, flatten, get_epsilon
from skdp.ensemble import DPRandomTreesClassifier
from skdp.mechanisms import GaussianMechanism
from skdp.mechanisms.sampling import FullBatch, PoissonSampling


@over_rows("n_steps", [1, 2, 7, 200, 1234])
@over_rows("average", [tail_average, ema_average])
def test_stages_cost_what_constant_noise_does(average, n_steps):
    """Full-batch Gaussian steps cost as one of mu**2 = sum 1 / sigma**2, so the sum of n / factor**2 is T."""
    stages = falling_noise(average(n_steps).kept())
    assert sum(each.n_steps for each in stages) == n_steps
    assert math.fsum(each.n_steps / each.factor**2 for each in stages) == pytest.approx(n_steps, rel=1e-13)
    factors = [each.factor for each in stages]
    assert factors == sorted(factors)
    assert len(stages) <= 10
    falling, constant = (event_of_steps(FullBatch(), n_steps, 30.0, each) for each in (stages, ()))
    assert get_epsilon(falling, 1e-6) == pytest.approx(get_epsilon(constant, 1e-6), rel=1e-9)


def test_steps_and_their_event():
    plan = DPSGDPlan(FullBatch(), 0.5, 20.0, 5, 100.0, (Stage(3, 0.5), Stage(2, 2.0)))
    assert [each.noise_multiplier for each in plan.mechanisms] == [10.0, 10.0, 10.0, 40.0, 40.0]
    assert {each.sensitivity for each in plan.mechanisms} == {0.5}
    events = [event_of_steps(plan.sampling, n, 20.0, plan.stages) for n in (1, 3, 4, 5)]
    found = [[(each.event.noise_multiplier, each.count) for each in parts(event)] for event in events]
    assert found == [[(10.0, 1)], [(10.0, 3)], [(10.0, 3), (40.0, 1)], [(10.0, 3), (40.0, 2)]]
    assert plan.event == events[-1]
    sampling = PoissonSampling(0.1)
    assert event_of_steps(sampling, 7, 2.0) == SelfComposedDpEvent(sampling.event(GaussianDpEvent(2.0)), 7)


def parts(event):
    """Self-compositions that an event is made of, in order."""
    if hasattr(event, "events"):
        return [part for each in event.events for part in parts(each)]
    return [event if isinstance(event, SelfComposedDpEvent) else SelfComposedDpEvent(event, 1)]


# --- fits ---

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (300, 3))
y = (X[:, 0] > 0).astype(int)
NAMED = {"classes": [0, 1], "random_state": 0}


def models():
    return {
        "linear": DPLogisticRegression(**NAMED),
        "trees": DPRandomTreesClassifier(5, 2, bounds=(-1, 1), **NAMED),
        "replaced": DPLogisticRegression(adjacency="replace_one", **NAMED),
        "pipeline": allocate_budget(
            make_pipeline(DPStandardScaler(bounds=(-1, 1)), DPLogisticRegression(**NAMED)), epsilon=1.0
        ),
    }


@pytest.mark.parametrize("name", models())
def test_fits_draw_the_noise_that_their_event_lists(name, released):
    model = models()[name].fit(X, y)
    listed = [(each.event.noise_multiplier, each.count) for each in parts(model.privacy_event_)]
    expected = [GaussianMechanism(noise, 1.0).standard_deviation for noise, count in listed for _ in range(count)]
    noises = (mechanism.standard_deviation / mechanism.sensitivity for _, mechanism in released)
    counts, *found, offset = noises  # both are listed first
    for beside in (counts, offset):
        expected.remove(min(expected, key=lambda noise: abs(noise - beside)))
    assert found == pytest.approx(expected, rel=1e-14)
    assert len(set(expected)) > 4
    assert 0.999 < model.epsilon_ <= 1.0


def test_noise_is_constant_where_it_is_given_or_rows_are_sampled_or_nothing_is_averaged():
    for parameters in ({"epsilon": None, "noise_multiplier": 50.0}, {"sampling_rate": 0.5}, {"average": False}):
        event = DPLogisticRegression(**NAMED, **parameters).fit(X, y).privacy_event_
        assert len(set(flatten(event))) == 2  # of all steps, and of class counts and offset
    event = DPMLPClassifier((3,), solver="adam", **NAMED).fit(X, y).privacy_event_  # which subtracts its variance
    assert len(set(flatten(event))) == 2


def test_run_of_very_many_steps_is_priced_at_once():
    """Its noise is constant, and no array of its steps is made."""
    model = DPLogisticRegression(classes=[0, 1], max_iter=10**11, accountant=PrivacyAccountant(0.1, 1e-5))
    with pytest.raises(BudgetExceededError):
        model.fit(X, y)
