"""The noise that runs is the noise that is charged."""

import math

import numpy as np
import pytest
from combinations import combined
from guarantee_cases import FALSE_ALARM, seeded
from scipy import stats

from skdp import AddRemove
from skdp._dpsgd.loop import constant, last_iterate, momentum_sgd, run_dpsgd
from skdp._dpsgd.models.linear import Model
from skdp._dpsgd.plan import DPSGDPlan
from skdp.accounting import GaussianDpEvent, PoissonSampledDpEvent, PrivacyAccountant, SelfComposedDpEvent, flatten
from skdp.mechanisms import GaussianMechanism
from skdp.mechanisms.sampling import FullBatch, PoissonSampling
from skdp.mechanisms.streams import SecretStream

# --- the noise that ran is the noise that was charged (properties 2, 11, 13) -----------------------------------------


def priced_steps(event):
    """Noise multiplier, sampling rate and number of the steps that an event is made of."""
    step, count = max(flatten(event).items(), key=lambda each: each[1])  # fewer are released beside them
    if isinstance(step, PoissonSampledDpEvent):
        return step.event.noise_multiplier, step.sampling_probability, count
    return step.noise_multiplier, 1.0, count


NULL_RUNS = {
    "full": (400, {"max_iter": 20}),
    "Poisson": (400, {"sampling_rate": 0.25, "max_iter": 5}),
    "mostly empty lots": (400, {"sampling_rate": 0.002, "max_iter": 1}),
    "lot_size": (400, {"lot_size": 7.0, "max_iter": 1}),
    "given noise": (400, {"epsilon": None, "noise_multiplier": 0.7, "max_iter": 20}),
    "add_remove": (1000, {"adjacency": AddRemove(1000), "lot_size": 50, "max_iter": 1}),
    "replace_one": (400, {"adjacency": "replace_one", "max_iter": 20}),
    "clip given": (400, {"max_grad_norm": 7.5, "max_iter": 20}),
    "rdp": (400, {"accountant": PrivacyAccountant(method="rdp"), "sampling_rate": 0.25, "max_iter": 5}),
}


@pytest.mark.usefixtures("steps_alone")
@combined(n_classes=[2, 3], dtype=[np.float32, np.float64], run=NULL_RUNS)
def test_spread_of_the_release_on_null_records_is_that_of_the_price(draw, run, n_classes, dtype):
    """Without signal theta is the sum of T noises, each divided by L: p numbers of variance T (eta sigma C / L)^2."""
    n_public, parameters = NULL_RUNS[run]
    X, y = draw(400, d=150, n_classes=n_classes)
    nothing = np.zeros(400, dtype)
    nothing[0] = 1e-30  # not all may be muted
    model = seeded(n_classes, average=False, momentum=0.0, learning_rate=1.0, random_state=11, **parameters)
    model.fit(X.astype(dtype), y, nothing)
    sigma, q, n_steps = priced_steps(model.privacy_event_)
    assert (sigma, q, n_steps) == (model.noise_multiplier_, model.sampling_rate_, model.n_steps_)
    unit = 1.0 / math.sqrt(150 + 1)
    theta = np.hstack([model.coef_, model.intercept_[:, None]]).ravel() / unit
    variance = n_steps * (sigma * model.max_grad_norm_ / (q * n_public)) ** 2
    spread = stats.chi2(theta.size)
    assert spread.ppf(FALSE_ALARM / 2) < theta @ theta / variance < spread.isf(FALSE_ALARM / 2)
    assert abs(theta.sum()) / math.sqrt(variance * theta.size) < stats.norm.isf(FALSE_ALARM / 2)


@pytest.mark.usefixtures("steps_alone")
def test_every_step_adds_noise_of_its_own(draw, monkeypatch):
    """Products of independent noises, divided by the norm of the earlier ones, are normal; false alarms at 1e-6."""
    noises = []
    release = GaussianMechanism.release

    def recorded(mechanism, value, stream):
        noisy = release(mechanism, value, stream)
        noises.append((noisy - value) / mechanism.standard_deviation)  # which grows over the steps
        return noisy

    monkeypatch.setattr(GaussianMechanism, "release", recorded)
    X, y = draw(60, d=30)
    seeded(max_iter=300).fit(X, y)
    table = np.array(noises)
    assert table.shape == (300, 31)
    bound = stats.norm.isf(FALSE_ALARM / (2 * 299 * 2))
    lagged = [abs(np.sum(table[k:] * table[:-k])) / np.linalg.norm(table[:-k]) for k in range(1, 300)]
    assert max(lagged) < bound
    assert stats.kstest(table.ravel(), "norm").pvalue > FALSE_ALARM


# --- the sentences ---------------------------------------------------------------------------------------------------


def test_noise_of_a_release_has_the_stated_standard_deviation():
    mechanism = GaussianMechanism(noise_multiplier=1.7, sensitivity=0.3)
    value = np.linspace(-5, 5, 100_000)
    noise = mechanism.release(value, SecretStream.from_random_state(0, "test")) - value
    spread = stats.chi2(noise.size)
    square = noise @ noise / (1.7 * 0.3) ** 2
    assert spread.ppf(FALSE_ALARM / 2) < square < spread.isf(FALSE_ALARM / 2)
    halves = [half @ half / (1.7 * 0.3) ** 2 for half in (noise[::2], noise[1::2])]  # every coordinate, not on average
    assert all(stats.chi2(50_000).ppf(FALSE_ALARM / 2) < h < stats.chi2(50_000).isf(FALSE_ALARM / 2) for h in halves)


def test_a_mechanism_states_the_noise_it_adds():
    assert GaussianMechanism(1.7, 0.3).event == GaussianDpEvent(1.7)


class CountingModel(Model):
    """A model of its own kind, to see what the loop asks of one: unit gradients along the first axis."""

    n_rows = 50

    def __init__(self):
        self.asked = []

    def clipped_gradient_sum(self, theta, rows, max_norm):
        self.asked.append((rows, max_norm))
        return np.array([min(1.0, max_norm) * (self.n_rows if rows is None else len(rows)), 0.0])


@pytest.mark.parametrize("sampling", [FullBatch(), PoissonSampling(0.3), PoissonSampling(0.001)], ids=str)
def test_a_run_is_the_composition_that_the_plan_prices(sampling, monkeypatch):
    """Draws, clipped sums, releases and divisions: as many as the event has, and each by the plan's own object."""
    draws, released, updates = [], [], []
    rows_of, release = type(sampling).rows, GaussianMechanism.release
    monkeypatch.setattr(
        type(sampling), "rows", lambda self, *arguments: draws.append(self) or rows_of(self, *arguments)
    )
    monkeypatch.setattr(
        GaussianMechanism, "release", lambda self, *arguments: released.append(self) or release(self, *arguments)
    )
    plan = DPSGDPlan(sampling, max_grad_norm=0.5, noise_multiplier=1e-9, n_steps=40, expected_lot_size=8.0)
    optimizer, model = momentum_sgd(constant(1.0), 0.0), CountingModel()

    def update(gradient, *arguments):
        updates.append(gradient)
        return optimizer.update(gradient, *arguments)

    watched = optimizer._replace(update=update)
    stream = SecretStream.from_random_state(0, "test")
    run_dpsgd(model, plan, watched, np.zeros(2), stream, averaging=last_iterate(), on_step=lambda n_done: None)
    assert len(draws) == len(model.asked) == len(released) == len(updates) == 40
    assert set(draws) == {sampling}
    assert set(released) == set(plan.mechanisms) == {GaussianMechanism(1e-9, 0.5)}
    assert {max_norm for _, max_norm in model.asked} == {0.5}
    sizes = [50 if rows is None else len(rows) for rows, _ in model.asked]
    np.testing.assert_allclose([g[0] for g in updates], [0.5 * size / 8.0 for size in sizes], atol=1e-8)
    step = GaussianDpEvent(1e-9)
    step = step if isinstance(sampling, FullBatch) else PoissonSampledDpEvent(sampling.rate, step)
    assert plan.event == SelfComposedDpEvent(step, 40)


def test_sums_are_divided_by_the_public_number_of_rows(draw):
    """Forty rows under a public number of 1,000: the step is by 40 / 1000 of the mean gradient, whatever was drawn."""
    X, y = draw(40)
    model = seeded(
        epsilon=None, noise_multiplier=1e-3, adjacency=AddRemove(1000), max_iter=1, momentum=0.0,
        learning_rate=1.0, max_grad_norm=10.0, average=False, fit_intercept=False,
    ).fit(X, y)  # fmt: skip
    unit = 1.0 / math.sqrt(4.0)
    expected = -(unit**2) * ((0.5 - y) @ X) / 1000  # gradients in scaled rows, coefficients of the user's
    noise = unit * 1e-3 * 10.0 / 1000
    np.testing.assert_allclose(model.coef_[0], expected, atol=6 * noise, rtol=0)  # 4 normals beyond 6 sd: 8e-9
