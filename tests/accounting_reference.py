"""An oracle of another kind for accounting: a contour integral, no discretisation of the loss at all."""

from __future__ import annotations

import math

import numpy as np

from skdp.accounting import DpEvent, GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent


def dpsgd(q: float, sigma: float, steps: int) -> DpEvent:
    return SelfComposedDpEvent(PoissonSampledDpEvent(q, GaussianDpEvent(sigma)), steps)


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
