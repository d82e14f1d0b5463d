"""How noise is spread over steps: the stages, their price, and that fits draw just what the event lists."""

from __future__ import annotations

import math

import numpy as np
import pytest
from combinations import over_rows
from sklearn.pipeline import make_pipeline

from skdp import DPLogisticRegression, DPMLPClassifier, DPStandardScaler, PrivacyAccountant, allocate_budget
from skdp._training.averaging import ema_average, last_iterate, tail_average
from skdp._training.noise_stages import Stage, falling_noise
from skdp._training.plan import DPSGDPlan, event_of_steps
from skdp.accounting import GaussianDpEvent, SelfComposedDpEvent, flatten, get_epsilon
from skdp.ensemble import DPRandomTreesClassifier
from skdp.mechanisms import GaussianMechanism
from skdp.mechanisms.sampling import FullBatch, PoissonSampling


def kept_by_impulse(averaging, n_steps):
    """What the result keeps of a move of 1 in each step."""
    found = []
    for step in range(n_steps):
        theta, state = np.zeros(1), averaging.init(np.zeros(1))
        for t in range(n_steps):
            theta = theta + (t == step)
            state = averaging.update(t, theta, state)
        found.append(float(averaging.result(theta, state)[0]))
    return found


@over_rows("n_steps", [1, 2, 7, 40])
@over_rows("average", [tail_average, ema_average])
def test_what_an_average_keeps_of_a_move(average, n_steps):
    averaging = average(n_steps)
    np.testing.assert_allclose(averaging.kept(), kept_by_impulse(averaging, n_steps), rtol=1e-12)


@over_rows("n_steps", [1, 2, 3, 10, 100, 200, 1234])
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


def test_shares_by_hand():
    """Eight steps of a tail average keep 1, 1, 1, 1, 1, .75, .5 and .25, with .05 more of 8.4 in all."""
    stages = falling_noise(tail_average(8).kept())
    expected = [(5, 1.05), (1, 0.8), (1, 0.55), (1, 0.3)]
    assert [each.n_steps for each in stages] == [n for n, _ in expected]
    mean = sum(n * share for n, share in expected) / 8
    np.testing.assert_allclose(
        [1 / each.factor**2 for each in stages], [share / mean for _, share in expected], rtol=1e-13
    )


def test_steps_and_their_event():
    plan = DPSGDPlan(FullBatch(), 0.5, 20.0, 5, 100.0, (Stage(3, 0.5), Stage(2, 2.0)))
    assert [plan.mechanism_at(step).noise_multiplier for step in range(5)] == [10.0, 10.0, 10.0, 40.0, 40.0]
    with pytest.raises(IndexError):
        plan.mechanism_at(5)
    assert {plan.mechanism_at(step).sensitivity for step in range(5)} == {0.5}
    found = [[(each.event.noise_multiplier, each.count) for each in parts(plan.event_of(n))] for n in (1, 3, 4, 5)]
    assert found == [[(10.0, 1)], [(10.0, 3)], [(10.0, 3), (40.0, 1)], [(10.0, 3), (40.0, 2)]]


def parts(event):
    """Self-compositions that an event is made of, in order."""
    if hasattr(event, "events"):
        return [part for each in event.events for part in parts(each)]
    return [event if isinstance(event, SelfComposedDpEvent) else SelfComposedDpEvent(event, 1)]


def test_constant_noise_is_one_self_composition():
    sampling = PoissonSampling(0.1)
    assert event_of_steps(sampling, 7, 2.0) == SelfComposedDpEvent(sampling.event(GaussianDpEvent(2.0)), 7)


def test_a_run_of_very_many_steps_has_constant_noise():
    """Of which no array is made: it is refused or priced at once, as before."""
    model = DPLogisticRegression(classes=[0, 1], max_iter=10**12)
    assert model._recipe(1).stages(FullBatch(), 10**12) == ()


# --- fits ---

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (300, 3))
y = (X[:, 0] > 0).astype(int)
NAMED = {"classes": [0, 1], "random_state": 0}


def models():
    return {
        "linear": DPLogisticRegression(**NAMED),
        "trees": DPRandomTreesClassifier(5, 2, bounds=(-1, 1), **NAMED),
        "network": DPMLPClassifier((3,), **NAMED),
        "replaced": DPLogisticRegression(adjacency="replace_one", **NAMED),
        "pipeline": allocate_budget(
            make_pipeline(DPStandardScaler(bounds=(-1, 1)), DPLogisticRegression(**NAMED)), epsilon=1.0
        ),
    }


@pytest.fixture
def drawn(monkeypatch):
    """Mechanisms of all noise, in the order of the draws."""
    found, add = [], GaussianMechanism._add_noise

    def watched(self, value, stream):
        found.append(self)
        return add(self, value, stream)

    monkeypatch.setattr(GaussianMechanism, "_add_noise", watched)
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", models())
def test_fits_draw_the_noise_that_their_event_lists(name, drawn):
    model = models()[name].fit(X, y)
    listed = [(each.event.noise_multiplier, each.count) for each in parts(model.privacy_event_)]
    expected = [GaussianMechanism(noise, 1.0).standard_deviation for noise, count in listed for _ in range(count)]
    counts, *found, offset = (each.standard_deviation / each.sensitivity for each in drawn)  # both are listed first
    for beside in (counts, offset):
        expected.remove(min(expected, key=lambda noise: abs(noise - beside)))
    assert found == pytest.approx(expected, rel=1e-14)
    assert len(set(expected)) > 4
    assert 0.999 < model.epsilon_ <= 1.0


@pytest.mark.filterwarnings("ignore")
def test_noise_is_constant_where_it_is_given_or_rows_are_sampled_or_nothing_is_averaged():
    for parameters in ({"epsilon": None, "noise_multiplier": 50.0}, {"sampling_rate": 0.5}, {"average": False}):
        event = DPLogisticRegression(**NAMED, **parameters).fit(X, y).privacy_event_
        assert len(set(flatten(event))) == 2  # of all steps, and of class counts and offset
    event = DPMLPClassifier((3,), solver="adam", **NAMED).fit(X, y).privacy_event_  # which subtracts its variance
    assert len(set(flatten(event))) == 2


def test_the_last_iterate_keeps_all():
    assert last_iterate().kept is None
    assert kept_by_impulse(last_iterate(), 5) == [1.0] * 5


@pytest.mark.filterwarnings("ignore")
def test_an_interrupted_run_resumes_with_the_noise_of_its_steps(tmp_path, drawn, monkeypatch):
    """Bit for bit the model of a run without interrupts, and one charge."""
    whole = DPLogisticRegression(**NAMED).fit(X, y)
    once = list(drawn)
    drawn.clear()
    accountant = PrivacyAccountant(epsilon=3.0, delta=1e-5)
    model = DPLogisticRegression(checkpoint=tmp_path / "run", accountant=accountant, **NAMED)
    add = GaussianMechanism._add_noise

    def stop(self, value, stream):
        if len(drawn) == 130:
            raise KeyboardInterrupt
        return add(self, value, stream)

    with monkeypatch.context() as patch:
        patch.setattr(GaussianMechanism, "_add_noise", stop)
        model.fit(X, y)
    assert len(drawn) == 1 + model.n_steps_ == 130  # class counts come first
    model.fit(X, y)
    assert drawn == once
    assert len(accountant.history) == 1
    np.testing.assert_array_equal(model.coef_, whole.coef_)


def test_progress_prices_early_steps_as_the_dear_ones():
    """Half of the steps of a tail average have well over half of mu**2."""
    n_steps = 100
    stages = falling_noise(tail_average(n_steps).kept())
    plan = DPSGDPlan(FullBatch(), 1.0, 30.0, n_steps, 1.0, stages)
    half = sum(each.count / each.event.noise_multiplier**2 for each in parts(plan.event_of(50)))
    levels = np.ceil(np.minimum(100, 200 - 2 * np.arange(100)) / 12.5) / 8 + 0.05
    assert half / (n_steps / 30.0**2) == pytest.approx(levels[:50].sum() / levels.sum(), rel=1e-12)
    assert half / (n_steps / 30.0**2) > 0.6
