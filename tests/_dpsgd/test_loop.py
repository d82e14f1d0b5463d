"""The loop: what it releases is what its plan costs.

Runs are judged from outside, by the parameters that come back, and by a stream that keeps a record of what was drawn
from it. Statistical tests have a false-alarm rate of 1e-6 and fixed keys.
"""

import hashlib
import math

import numpy as np
import reference
from combinations import over_rows
from scipy.stats import norm

from skdp._dpsgd.loop import constant, last_iterate, momentum_sgd, run_dpsgd, tail_average
from skdp._dpsgd.models.linear import LinearGeometry, LinearModel
from skdp._dpsgd.plan import DPSGDPlan
from skdp.mechanisms.sampling import FullBatch, PoissonSampling
from skdp.mechanisms.streams import SecretStream

FALSE_ALARM = 1e-6
PLAIN_STEP = momentum_sgd(constant(1.0), 0.0)  # theta moves by the noisy mean gradient itself


class RecordingStream(SecretStream):
    """A stream that writes down, for itself and all that it spawns, what was drawn and under which key."""

    def __init__(self, key, record=None):
        super().__init__(key)
        self.record = [] if record is None else record

    def spawn(self, *purpose):
        return RecordingStream(super().spawn(*purpose)._key, self.record)

    def noisy(self, value, scale, grid):
        twin = SecretStream(self._key)
        twin.seek(self.position)
        self.record.append(("normal", self._key, twin.normal(len(value))))
        return super().noisy(value, scale, grid)

    def poisson_rows(self, n, rate):
        rows = super().poisson_rows(n, rate)
        self.record.append(("rows", self._key, rows))
        return rows

    def drawn(self, kind):
        return [draw for what, _, draw in self.record if what == kind]

    def keys(self, kind):
        return {key for what, key, _ in self.record if what == kind}


def stream(name="training"):
    return RecordingStream(hashlib.sha256(name.encode()).digest())


def people(n=60, d=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.integers(0, 2, n), np.ones(n)


def run(
    X, labels, weights, plan, optimizer=PLAIN_STEP, *, source=None, average=False, on_step=None, cls=LinearModel,
    n_outputs=1,
):  # fmt: skip
    by_lot = plan.sampling != FullBatch()
    model = cls(X, labels, weights, n_outputs, LinearGeometry(1.5, True), by_lot=by_lot)
    averaging = tail_average(plan.n_steps) if average else last_iterate()
    theta, told = np.zeros(n_outputs * (X.shape[1] + 1)), on_step or (lambda n_done: None)
    return run_dpsgd(model, plan, optimizer, theta, source or stream(), averaging=averaging, on_step=told)


# --- the loop against its plain reading ---


@over_rows("average", [False, True])
@over_rows("sampling", [FullBatch(), PoissonSampling(0.2), PoissonSampling(0.01)])
@over_rows("n_outputs", [1, 3])
def test_a_run_is_that_of_the_reference_loop(n_outputs, sampling, average):
    """Same lots, same noise: theta agrees to 1e-9. At q = 0.01 and 60 rows, half of the lots are empty."""
    X, labels, weights = people()
    labels = labels if n_outputs == 1 else np.arange(60) % 3
    weights = weights * np.where(np.arange(60) % 7 == 0, 0.0, 2.0)
    plan = DPSGDPlan(sampling, 0.3, 1.7, 25, 60 * sampling.rate)
    penalty = np.tile([0.5, 0.5, 0.5, 0.5, 0.0], n_outputs)
    source = stream()
    optimizer = momentum_sgd(constant(3.0), 0.8, penalty)
    theta, n_done = run(X, labels, weights, plan, optimizer, source=source, average=average, n_outputs=n_outputs)
    everyone = [np.arange(60)] * 25
    grid, scale = plan.mechanisms[0]._grid_and_scale
    expected = reference.dpsgd(
        X, labels, weights, n_outputs, reference.Scaling(1.5, True),
        lots=everyone if sampling == FullBatch() else source.drawn("rows"), noises=source.drawn("normal"),
        max_norm=0.3, noise_std=grid * scale, grid=grid, divisor=60 * sampling.rate, learning_rate=3.0, momentum=0.8,
        penalty=penalty, average=average,
    )  # fmt: skip
    assert n_done == 25
    np.testing.assert_allclose(theta, expected, rtol=0, atol=1e-9 * max(1.0, np.abs(expected).max()))


# --- properties 2 and 13: the noise that ran is the noise that was charged ---


@over_rows("rate", [0.02, 0.3])
def test_rows_that_are_summed_are_a_sample_at_the_rate_of_the_event(rate):
    """Property 10: over 400 steps the sizes of lots have the mean and the spread of Binomial(n, q).

    Their rows are those that are summed by `test_a_run_is_that_of_the_reference_loop`.
    """
    plan, source = DPSGDPlan(PoissonSampling(rate), 0.3, 1.0, 400, 200 * rate), stream()
    run(*people(200), plan, source=source)
    sizes, q = np.array([len(rows) for rows in source.drawn("rows")]), plan.event.event.sampling_probability
    scale = math.sqrt(200 * q * (1 - q))
    assert abs(sizes.mean() - 200 * q) < norm.isf(FALSE_ALARM / 2) * scale / math.sqrt(400)
    # Pearson's index of dispersion: sum (N - n q)**2 / (n q (1 - q)) is chi-square in the normal limit, with a
    # variance of 2 + (1 - 6 q (1 - q)) / (n q (1 - q)) a step, 2.23 at q = 0.02
    assert abs(np.sum((sizes - 200 * q) ** 2) / scale**2 - 400) < norm.isf(FALSE_ALARM / 2) * math.sqrt(400 * 2.23)


# --- property 13 and the guarantee: neighbors under frozen randomness ---


# --- what comes back ---


class InterruptedModel(LinearModel):
    """Ctrl-C comes in the sixth step."""

    n_calls = 0

    def clipped_gradient_sum(self, theta, rows, max_norm):
        self.n_calls += 1
        if self.n_calls == 6:
            raise KeyboardInterrupt
        return super().clipped_gradient_sum(theta, rows, max_norm)


@over_rows(("n_steps", "average"), [(20, False), (20, True), (8, True)])
def test_interrupt_gives_the_steps_done(n_steps, average):
    """Five steps are kept: the fifth iterate, which of a plan of 8 is also the whole tail so far."""
    table, told = people(40), []
    plan, of_five = (DPSGDPlan(PoissonSampling(0.4), 0.3, 1.0, n, 16.0) for n in (n_steps, 5))
    theta, n_done = run(*table, plan, average=average, on_step=told.append, cls=InterruptedModel)
    assert (n_done, told) == (5, [1, 2, 3, 4, 5])
    np.testing.assert_allclose(theta, run(*table, of_five)[0], rtol=1e-12)


def test_each_step_has_fresh_noise_and_a_fresh_lot():
    """Property 8: no two steps share noise; steps are uncorrelated; lots differ, and no key makes both."""
    X, labels, weights = people(50, d=400)
    plan = DPSGDPlan(PoissonSampling(0.4), 0.3, 1.0, 30, 20.0)
    source = stream()
    run(X, labels, weights, plan, source=source)
    noise = np.array(source.drawn("normal"))
    correlation = (noise @ noise.T / math.sqrt(noise.shape[1]))[np.triu_indices(30, 1)]
    assert np.abs(correlation).max() < norm.isf(FALSE_ALARM / 2 / len(correlation))
    assert len({tuple(rows) for rows in source.drawn("rows")}) == 30
    assert not source.keys("rows") & source.keys("normal")
    assert source._key not in source.keys("rows") | source.keys("normal")
