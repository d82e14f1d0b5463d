"""The loop: what it releases is what its plan prices.

Runs are judged from outside, by the parameters that come back, and by a stream that keeps a record of what was drawn
from it. Statistical tests have a false-alarm rate of 1e-6 and fixed keys.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest
import reference
from combinations import over_rows
from scipy.stats import chi2, norm

from skdp._training.averaging import last_iterate, tail_average
from skdp._training.loop import run_dpsgd
from skdp._training.models.linear import LinearGeometry, LinearModel
from skdp._training.optimizers import constant, momentum_sgd
from skdp._training.plan import DPSGDPlan
from skdp.accounting import PoissonSampledDpEvent
from skdp.mechanisms.gaussian import grid_and_scale
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


def model_of(X, labels, weights, *, sampling, cls=LinearModel, n_outputs=1):
    return cls(X, labels, weights, n_outputs, LinearGeometry(1.5, True), by_lot=sampling != FullBatch())


def run(
    X,
    labels,
    weights,
    plan,
    optimizer=PLAIN_STEP,
    *,
    source=None,
    average=False,
    on_step=lambda n_done: None,
    **options,
):
    model = model_of(X, labels, weights, sampling=plan.sampling, **options)
    theta = np.zeros(model.n_parameters)
    averaging = tail_average(plan.n_steps) if average else last_iterate()
    return run_dpsgd(model, plan, optimizer, theta, source or stream(), averaging=averaging, on_step=on_step)


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
    grid, scale = grid_and_scale(plan.mechanism.standard_deviation)
    expected = reference.dpsgd(
        X, labels, weights, n_outputs, reference.Scaling(1.5, True),
        lots=everyone if sampling == FullBatch() else source.drawn("rows"), noises=source.drawn("normal"),
        max_norm=0.3, noise_std=grid * scale, grid=grid, divisor=60 * sampling.rate, learning_rate=3.0, momentum=0.8,
        penalty=penalty, average=average,
    )  # fmt: skip
    assert n_done == 25
    np.testing.assert_allclose(theta, expected, rtol=0, atol=1e-9 * max(1.0, np.abs(expected).max()))


def test_a_run_starts_from_its_theta():
    X, labels, weights = people()
    plan = DPSGDPlan(FullBatch(), 0.3, 1.0, 1, 60.0)
    model = model_of(X, labels, 0 * weights, sampling=FullBatch())
    start = np.arange(5.0)
    theta, _ = run_dpsgd(
        model, plan, PLAIN_STEP, start, stream(), averaging=last_iterate(), on_step=lambda n_done: None
    )
    from_zero, _ = run(X, labels, 0 * weights, plan)
    np.testing.assert_allclose(theta - start, from_zero, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(start, np.arange(5.0))


# --- properties 2 and 13: the noise that ran is the noise that was priced ---


@over_rows("rate", [1.0, 0.3])
@over_rows("n_steps", [1, 7])
@over_rows("lot_size", [1.0, 10.0, 1000.0])
def test_spread_on_null_records_is_that_of_the_event(lot_size, n_steps, rate):
    """sigma C / L a step, sigma and T read from the event: the sum of T updates has variance T (sigma C / L)**2."""
    d, max_norm = 3_000, 0.25
    sampling = FullBatch() if rate == 1.0 else PoissonSampling(rate)
    plan = DPSGDPlan(sampling, max_norm, 1.9, n_steps, lot_size)
    source = stream(f"null {lot_size} {n_steps} {rate}")
    theta, n_done = run(np.ones((5, d)), np.arange(5) % 2, np.zeros(5), plan, source=source)
    step, count = plan.event.event, plan.event.count
    if rate < 1.0:
        assert step.sampling_probability == rate
        step = step.event
    assert n_done == count
    score = np.sum((theta / (step.noise_multiplier * max_norm / lot_size)) ** 2) / count
    assert chi2.isf(1 - FALSE_ALARM / 2, d + 1) < score < chi2.isf(FALSE_ALARM / 2, d + 1)


def test_an_empty_lot_moves_the_parameters_by_noise_alone():
    """Property 11: a step without rows is a step; its update is sigma C z / L."""
    X, labels, weights = people(30)
    plan = DPSGDPlan(PoissonSampling(1e-9), 0.3, 2.0, 1, 10.0)
    source = stream()
    theta, n_done = run(X, labels, weights, plan, source=source)
    assert n_done == 1
    assert len(source.drawn("rows")[0]) == 0
    deviation = plan.mechanism.standard_deviation
    np.testing.assert_allclose(theta, -deviation / 10.0 * source.drawn("normal")[0], rtol=0, atol=deviation * 2.0**-26)


def test_sampling_and_noise_come_from_streams_of_their_own():
    """Property 8: no key makes both lots and noise, and neither is the root's."""
    X, labels, weights = people(50)
    source = stream()
    run(X, labels, weights, DPSGDPlan(PoissonSampling(0.4), 0.3, 1.0, 5, 20.0), source=source)
    assert source.keys("rows")
    assert source.keys("normal")
    assert not source.keys("rows") & source.keys("normal")
    assert source._key not in source.keys("rows") | source.keys("normal")


class WitnessModel(LinearModel):
    """Writes down the rows that it is asked for."""

    asked: list

    def clipped_gradient_sum(self, theta, rows, max_norm):
        self.asked = [*getattr(self, "asked", []), rows]
        return super().clipped_gradient_sum(theta, rows, max_norm)


@over_rows("rate", [0.02, 0.3, 1.0])
def test_rows_that_are_summed_are_a_sample_at_the_rate_of_the_event(rate):
    """Property 10, end to end: over 400 steps the rows summed have the mean and the spread of Binomial(n, q)."""
    X, labels, weights = people(200)
    sampling = FullBatch() if rate == 1.0 else PoissonSampling(rate)
    plan = DPSGDPlan(sampling, 0.3, 1.0, 400, 200 * rate)
    model = model_of(X, labels, weights, sampling=sampling, cls=WitnessModel)
    run_dpsgd(model, plan, PLAIN_STEP, np.zeros(5), stream(), averaging=last_iterate(), on_step=lambda n_done: None)
    if rate == 1.0:
        assert all(rows is None for rows in model.asked)
        return
    step = plan.event.event
    assert isinstance(step, PoissonSampledDpEvent)
    sizes, q = np.array([len(rows) for rows in model.asked]), step.sampling_probability
    scale = math.sqrt(200 * q * (1 - q))
    assert abs(sizes.mean() - 200 * q) < norm.isf(FALSE_ALARM / 2) * scale / math.sqrt(400)
    # Pearson's index of dispersion: sum (N - n q)**2 / (n q (1 - q)) is chi-square in the normal limit, with a
    # variance of 2 + (1 - 6 q (1 - q)) / (n q (1 - q)) a step, 2.23 at q = 0.02
    assert abs(np.sum((sizes - 200 * q) ** 2) / scale**2 - 400) < norm.isf(FALSE_ALARM / 2) * math.sqrt(400 * 2.23)


# --- property 13 and the guarantee: neighbours under frozen randomness ---


@over_rows("sampling", [FullBatch(), PoissonSampling(0.4)])
def test_a_neighbour_moves_a_step_by_at_most_the_clip_over_the_lot(sampling):
    """One record made void, same stream: one update moves by at most C / L, by nothing when it is not in the lot.

    The five noisy sums are rounded to the grid of the release after the noise was added.
    """
    X, labels, weights = people(40)
    X[3] *= 1e9
    for lot_size in (1.0, 16.0, 1000.0):
        plan = DPSGDPlan(sampling, 0.3, 1.0, 1, lot_size)
        source = stream(f"neighbour {lot_size}")
        theta, _ = run(X, labels, weights, plan, source=source)
        most = 0.3 * (1 + 1e-9) + math.sqrt(5) * grid_and_scale(plan.mechanism.standard_deviation)[0]
        lot = np.arange(40) if sampling == FullBatch() else source.drawn("rows")[0]
        for place in range(40):
            void = weights.copy()
            void[place] = 0.0
            moved = np.linalg.norm(run(X, labels, void, plan, source=stream(f"neighbour {lot_size}"))[0] - theta)
            if place in lot:
                assert 0.0 < moved <= most / lot_size
            else:
                assert moved == 0.0


def test_regulariser_is_outside_the_clip_and_has_no_noise():
    """Property 7: with a penalty, neighbours' updates differ by the same vector times a public factor."""
    X, labels, weights = people(40)
    void = weights.copy()
    void[5] = 0.0
    plan = DPSGDPlan(FullBatch(), 0.3, 1.0, 1, 40.0)
    penalty = np.array([2.0, 2.0, 2.0, 2.0, 0.0])
    moved = {}
    for alpha in (0.0, 1.0):
        optimizer = momentum_sgd(constant(5.0), 0.0, alpha * penalty)
        moved[alpha] = run(X, labels, weights, plan, optimizer)[0] - run(X, labels, void, plan, optimizer)[0]
    np.testing.assert_allclose(moved[1.0], moved[0.0] / (1.0 + 5.0 * penalty), rtol=0, atol=1e-13)


# --- what comes back ---


def test_average_is_that_of_the_second_half():
    """Of 7 steps the last four: iterates read from runs that are cut short by their plan."""
    X, labels, weights = people(40)
    plans = {steps: DPSGDPlan(PoissonSampling(0.4), 0.3, 1.0, steps, 16.0) for steps in range(1, 9)}
    iterates = {steps: run(X, labels, weights, plan)[0] for steps, plan in plans.items()}
    for steps, tail in ((1, [1]), (2, [2]), (7, [4, 5, 6, 7]), (8, [5, 6, 7, 8])):
        averaged, n_done = run(X, labels, weights, plans[steps], average=True)
        assert n_done == steps
        np.testing.assert_allclose(averaged, np.mean([iterates[k] for k in tail], axis=0), rtol=1e-12)


class InterruptedModel(LinearModel):
    """Its owner presses Ctrl-C while the sixth step is under way."""

    n_calls = 0

    def clipped_gradient_sum(self, theta, rows, max_norm):
        self.n_calls += 1
        if self.n_calls == 6:
            raise KeyboardInterrupt
        return super().clipped_gradient_sum(theta, rows, max_norm)


@over_rows(("n_steps", "average"), [(20, False), (20, True), (8, True)])
def test_interrupt_gives_the_steps_done(n_steps, average):
    """Five steps are kept: the fifth iterate, which of a plan of 8 is also the whole tail so far."""
    X, labels, weights = people(40)
    plan = DPSGDPlan(PoissonSampling(0.4), 0.3, 1.0, n_steps, 16.0)
    told = []
    theta, n_done = run(X, labels, weights, plan, average=average, on_step=told.append, cls=InterruptedModel)
    assert n_done == 5
    assert told == [1, 2, 3, 4, 5]
    fifth, _ = run(X, labels, weights, DPSGDPlan(PoissonSampling(0.4), 0.3, 1.0, 5, 16.0))
    np.testing.assert_allclose(theta, fifth, rtol=1e-12)


def test_interrupt_in_the_tail_averages_what_is_there():
    """Of a plan of 8 steps the tail begins with step 5; interrupted in step 8, it is the mean of steps 5, 6 and 7."""
    X, labels, weights = people(40)

    def interrupt(n_done):
        if n_done == 7:
            raise KeyboardInterrupt

    plan = DPSGDPlan(FullBatch(), 0.3, 1.0, 8, 40.0)
    theta, n_done = run(X, labels, weights, plan, average=True, on_step=interrupt)
    iterates = [run(X, labels, weights, DPSGDPlan(FullBatch(), 0.3, 1.0, k, 40.0))[0] for k in (5, 6, 7)]
    assert n_done == 7
    np.testing.assert_allclose(theta, np.mean(iterates, axis=0), rtol=1e-12)


def test_other_errors_are_not_swallowed():
    X, labels, weights = people(40)

    def fail(n_done):
        raise RuntimeError("of the observer")

    with pytest.raises(RuntimeError, match="of the observer"):
        run(X, labels, weights, DPSGDPlan(FullBatch(), 0.3, 1.0, 3, 40.0), on_step=fail)


def test_a_run_can_be_replayed():
    X, labels, weights = people()
    plan = DPSGDPlan(PoissonSampling(0.2), 0.3, 1.0, 10, 12.0)
    np.testing.assert_array_equal(run(X, labels, weights, plan)[0], run(X, labels, weights, plan)[0])
    assert not np.any(run(X, labels, weights, plan)[0] == run(X, labels, weights, plan, source=stream("other"))[0])


@pytest.mark.parametrize("sampling", [FullBatch(), PoissonSampling(0.3), PoissonSampling(0.001)])
def test_noise_is_drawn_once_a_step_also_for_an_empty_lot(sampling):
    """Property 11: as many draws of p normals as steps done, and as the event counts."""
    X, labels, weights = people(30)
    plan = DPSGDPlan(sampling, 0.3, 1.0, 40, 30 * sampling.rate)
    source = stream()
    _, n_done = run(X, labels, weights, plan, source=source)
    assert len(source.drawn("normal")) == n_done == plan.event.count == 40
    assert all(draw.shape == (5,) for draw in source.drawn("normal"))
    if sampling.rate == 0.001:
        assert sum(len(rows) == 0 for rows in source.drawn("rows")) > 30


def test_each_step_has_fresh_noise_and_a_fresh_lot():
    """Property 8: no two steps share noise; steps are uncorrelated; lots differ."""
    X, labels, weights = people(50, d=400)
    plan = DPSGDPlan(PoissonSampling(0.4), 0.3, 1.0, 30, 20.0)
    source = stream()
    run(X, labels, weights, plan, source=source)
    noise = np.array(source.drawn("normal"))
    correlation = (noise @ noise.T / math.sqrt(noise.shape[1]))[np.triu_indices(30, 1)]
    assert np.abs(correlation).max() < norm.isf(FALSE_ALARM / 2 / len(correlation))
    assert len({tuple(rows) for rows in source.drawn("rows")}) == 30


def test_full_batch_draws_no_lots():
    """Property 12: every row at every step."""
    X, labels, weights = people(50)
    source = stream()
    run(X, labels, weights, DPSGDPlan(FullBatch(), 0.3, 1.0, 5, 50.0), source=source)
    assert source.drawn("rows") == []


@pytest.mark.parametrize("sampling", [FullBatch(), PoissonSampling(0.4)])
def test_randomness_is_the_same_on_neighbours(sampling):
    """Lots, noise and steps read no row: the same draws whatever the data, so nothing else depends on them."""
    X, labels, weights = people(40)
    plan = DPSGDPlan(sampling, 0.3, 1.0, 6, 16.0)
    records = []
    for rows, marks in ((X, weights), (1e9 * X, weights), (X[::-1].copy(), 0 * weights)):
        source = stream()
        run(rows, labels, marks, plan, source=source)
        records.append([(what, key, draw.tolist()) for what, key, draw in source.record])
    assert records[0] == records[1] == records[2]


def test_on_step_is_told_of_every_step():
    X, labels, weights = people(40)
    told = []
    run(X, labels, weights, DPSGDPlan(FullBatch(), 0.3, 1.0, 6, 40.0), on_step=told.append)
    assert told == [1, 2, 3, 4, 5, 6]
