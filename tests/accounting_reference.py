"""Oracles for accounting: mechanisms written out on small data sets, which give the true delta of two neighbors, and a
contour integral without any discretization of the loss.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from skdp.accounting import DpEvent, GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent


def dpsgd(q: float, sigma: float, steps: int) -> DpEvent:
    return SelfComposedDpEvent(PoissonSampledDpEvent(q, GaussianDpEvent(sigma)), steps)


# --- mechanisms written out -------------------------------------------------------------------------------------------

Z = np.linspace(-60.0, 60.0, 120_001)


def hockey(p, q, epsilon):
    """sum (p - e^epsilon q)_+, of masses."""
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def gauss(sigma):
    return lambda shift: np.exp(-0.5 * ((Z - shift) / sigma) ** 2) / sigma / math.sqrt(2 * math.pi) * (Z[1] - Z[0])


def poisson_outputs(law, records, q):
    """The law of the output of a sum over a Poisson sample of records that are numbers."""
    total = 0.0
    for drawn in itertools.product((0, 1), repeat=len(records)):
        share = math.prod(q if each else 1 - q for each in drawn)
        total = total + share * law(sum(r for r, each in zip(records, drawn, strict=True) if each))
    return total


def fixed_outputs(law, records, size):
    subsets = list(itertools.combinations(range(len(records)), size))
    return sum(law(sum(records[i] for i in subset)) for subset in subsets) / len(subsets)


# --- a contour integral -----------------------------------------------------------------------------------------------


def pair_losses(q: float, sigma: float, kind: str, step: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Density of P times the step, and the loss log(P/Q), on a grid of x."""
    step = step or sigma / 100
    x = np.arange(-13 * sigma - 1, 13 * sigma + 1, step)

    def mixture(shift: float) -> np.ndarray:
        return (
            np.logaddexp(math.log1p(-q), math.log(q) + (2 * x * shift - 1) / (2 * sigma**2))
            if q < 1
            else ((2 * x * shift - 1) / (2 * sigma**2))
        )

    base = -0.5 * (x / sigma) ** 2 - 0.5 * math.log(2 * math.pi) + math.log(step / sigma)
    if kind == "remove":
        return np.exp(base + mixture(1)), mixture(1)
    if kind == "add":
        return np.exp(base), -mixture(1)
    return np.exp(base + mixture(1)), mixture(1) - mixture(-1)


def contour_delta(parts: list[tuple[float, float, int]], epsilon: float, kind: str, theta: float) -> float:
    """delta(eps) = 1/(2 pi i) int e^{sum T K(z) - z eps} / (z (z + 1)) dz over Re z = theta (trapezoid)."""
    losses = [(*pair_losses(q, sigma, kind), count) for q, sigma, count in parts]
    scale = log_peak = 0.0
    for mass, loss, count in losses:
        weight = mass * np.exp(theta * loss)
        mean = weight @ loss / weight.sum()
        scale += count * float(weight @ (loss - mean) ** 2 / weight.sum())
        log_peak += count * math.log(weight.sum())
    t = np.arange(0, 8000) * (2 * math.pi / 60) / max(math.sqrt(scale), 1 / theta)
    total = np.zeros(t.size)
    for start in range(0, t.size, 200):
        z = theta + 1j * t[start : start + 200]
        power = np.ones(z.size, dtype=complex)
        for mass, loss, count in losses:
            tilted = mass * np.exp(theta * loss)
            power *= (np.exp(1j * np.outer(z.imag, loss)) @ (tilted / tilted.sum())) ** count
        total[start : start + 200] = (power * np.exp(-1j * z.imag * epsilon) / (z * (z + 1))).real
        if np.abs(power).max() < 1e-15:
            break
    else:
        raise AssertionError("the contour integral has not converged; choose a smoother case")
    total[0] /= 2
    return float(total.sum() * t[1] / math.pi * math.exp(log_peak - theta * epsilon))


def best_order(parts: list[tuple[float, float, int]], kind: str, delta: float = 0.0, epsilon: float = 0.0) -> float:
    """Order of Chernoff's bound on epsilon at `delta`, or on delta at `epsilon`: where the integral is tame."""
    losses = [(*pair_losses(q, sigma, kind), count) for q, sigma, count in parts]
    orders = np.geomspace(0.2, 300, 120)
    orders = orders[orders * max(float(x.max()) for _, x, _ in losses) < 600]
    moments = np.array([sum(c * math.log(m @ np.exp(o * x)) for m, x, c in losses) for o in orders])
    bounds = (moments - math.log(delta)) / orders if delta else moments - orders * epsilon
    return float(orders[int(np.argmin(bounds))])


SMOOTH = [
    ([(0.01, 1.1, 6_000)], 1e-5),
    ([(0.2, 5.0, 300)], 1e-12),
    ([(0.53, 33.6, 78_982)], 3.8e-11),
    ([(0.05, 2.0, 400), (0.01, 1.0, 3_000)], 1e-7),
    ([(0.02, 1.5, 2_000), (1.0, 5.0, 1)], 1e-6),
]
