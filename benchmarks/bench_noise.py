"""Time of noise that is rounded to a grid, per value and per step of a classifier.

Then discrete Gaussian noise beside noise on a grid.

    python benchmarks/bench_noise.py

Both take turns in one run, and the best of many rounds counts.
"""

from __future__ import annotations

import time

import numpy as np
from numba import njit

from skdp._dpsgd.loop import constant, last_iterate, momentum_sgd, run_dpsgd
from skdp._dpsgd.models.linear import LinearGeometry, LinearModel
from skdp._dpsgd.plan import DPSGDPlan
from skdp.mechanisms.discrete_noise import DiscreteGaussianMechanism
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.sampling import FullBatch, PoissonSampling
from skdp.mechanisms.streams import SecretStream

ROUNDS = 40
ON_GRID = GaussianMechanism._add_noise


@njit(error_model="numpy")
def scale_and_add(noise, scale, value):
    for i in range(len(noise)):
        noise[i] = noise[i] * scale + value[i]


def as_doubles(self, value, stream):
    noise = stream.normal(value.size)
    scale_and_add(noise, self.standard_deviation, value)
    return noise


def best_of_both(work, repeats):
    """Least seconds of both kinds of noise."""
    found = [float("inf")] * 2
    for _ in range(ROUNDS):
        for k, kind in enumerate((as_doubles, ON_GRID)):
            GaussianMechanism._add_noise = kind
            start = time.thread_time()
            for _ in range(repeats):
                work()
            found[k] = min(found[k], (time.thread_time() - start) / repeats)
    GaussianMechanism._add_noise = ON_GRID
    return found


def show(name, seconds, unit, factor):
    doubles, grid = (each * factor for each in seconds)
    print(f"{name:<44} {doubles:9.2f} {grid:9.2f} {unit}  x {grid / doubles:.3f}")


def measure_noise():
    stream, mechanism = SecretStream.from_random_state(None, "benchmark"), GaussianMechanism(1.3, 1.0)
    for p in (12, 500, 8_000, 100_000, 800_000):
        value = np.zeros(p)
        seconds = best_of_both(lambda value=value: mechanism.release(value, stream), max(1, 100_000 // p))
        show(f"noise of {p} coordinates", seconds, "ns/number", 1e9 / p)


def measure_steps():
    rng, n_steps = np.random.default_rng(0), 200
    for n, d, sampling in [(2_000, 11, FullBatch()), (50_000, 108, PoissonSampling(0.01)), (2_000, 784, FullBatch())]:
        model = LinearModel(
            rng.normal(size=(n, d)), rng.integers(0, 2, n), np.ones(n), 1, LinearGeometry(1.0, True),
            by_lot=sampling.rate < 1.0,
        )  # fmt: skip
        plan = DPSGDPlan(sampling, 1.0, 1.3, n_steps, n * sampling.rate)
        optimizer, theta = momentum_sgd(constant(0.5), 0.9), np.zeros(model.n_parameters)

        def fit(model=model, plan=plan, optimizer=optimizer, theta=theta):
            stream = SecretStream.from_random_state(None, "benchmark")
            run_dpsgd(model, plan, optimizer, theta, stream, averaging=last_iterate(), on_step=lambda n_done: None)

        show(f"a step: {n} rows, {d} columns, q = {sampling.rate}", best_of_both(fit, 1), "us/step", 1e6 / n_steps)


def measure_discrete():
    """Discrete Gaussian noise of whole numbers beside rounded normal noise of the same size, once for each table."""
    stream = SecretStream.from_random_state(None, "benchmark")
    for p, s in ((100, 4.5), (10_000, 4.5), (10_000, 400.0)):
        value, found = np.zeros(p, int), []
        for mechanism in (GaussianMechanism(s, 1.0), DiscreteGaussianMechanism(s)):
            seconds = []
            for _ in range(ROUNDS):
                start = time.thread_time()
                mechanism.release(value, stream)
                seconds.append(time.thread_time() - start)
            found.append(min(seconds))
        show(f"rounded beside discrete, {p} counts, deviation {s:g}", found, "ns/number", 1e9 / p)


if __name__ == "__main__":
    measure_noise()
    measure_discrete()
    measure_steps()
