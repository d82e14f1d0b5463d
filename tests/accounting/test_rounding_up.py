"""Every method that is a guarantee rounds up: its figure against the same formula in forty digits."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from combinations import over_rows
from mpmath import mp

from skdp.accounting import (
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    ZCDpEvent,
    get_delta,
    get_epsilon,
)
from skdp.accounting.rdp.rdp import rdp, renyi_epsilon_at
from skdp.accounting.releases import releases

ORDERS = (1.01, 1.3, 2.0, 5.7, 32.0, 400.0)


@pytest.fixture(autouse=True)
def forty_digits():
    with mp.workdps(40):
        yield


def exact_rdp(kind: str, alpha: float, a: float, b: float = 0.0) -> mpmath.mpf:
    """Rényi divergence of one release."""
    order, a_, b_ = mp.mpf(alpha), mp.mpf(a), mp.mpf(b)
    if kind == "gaussian":
        return order / (2 * a_**2)
    if kind == "zcdp":
        return a_ * order + b_
    x = (order - 1) * a_
    if kind == "laplace":
        up, down = order / (2 * order - 1), (order - 1) / (2 * order - 1)
        return mp.log(up * mp.exp(x) + down * mp.exp(-order * a_)) / (order - 1)
    if kind == "pure":
        p = 1 / (1 + mp.exp(-a_))
        return mp.log(p * mp.exp(x) + (1 - p) * mp.exp(-x)) / (order - 1)
    raise ValueError(kind)


def exact_sampled(alpha: int, q: float, sigma: float) -> mpmath.mpf:
    q_, m2 = mp.mpf(q), 1 / mp.mpf(sigma) ** 2
    total = mp.fsum(
        mp.binomial(alpha, k) * q_**k * (1 - q_) ** (alpha - k) * mp.exp(k * (k - 1) * m2 / 2) for k in range(alpha + 1)
    )
    return mp.log(total) / (alpha - 1)


def test_divergences_are_not_below_the_exact_ones():
    rng = np.random.default_rng(3)
    for _ in range(6):
        size = float(10 ** rng.uniform(-9, 2))
        for alpha in ORDERS:
            for kind, event in (
                ("gaussian", GaussianDpEvent(size)),
                ("zcdp", ZCDpEvent(size, size / 3)),
                ("laplace", LaplaceDpEvent(1.0 / size)),
                ("pure", EpsilonDeltaDpEvent(size, 0.0)),
            ):
                # a scale is what is stored: the loss of Laplace noise is its inverse
                argument = 1 / mp.mpf(1.0 / size) if kind == "laplace" else size
                exact = exact_rdp(kind, alpha, argument, size / 3)
                assert exact <= mp.mpf(rdp(releases(event), alpha)) <= exact * (1 + mp.mpf(10) ** -9)


@over_rows("alpha", [2, 17, 300])
@over_rows(("q", "sigma"), [(1e-6, 30.0), (0.01, 1.0), (0.3, 0.05), (0.9, 4.0)])
def test_sampled_divergences_are_not_below_the_exact_ones(alpha, q, sigma):
    exact = exact_sampled(alpha, q, sigma)
    value = mp.mpf(rdp(releases(PoissonSampledDpEvent(q, GaussianDpEvent(sigma))), float(alpha)))
    assert exact <= value <= exact * (1 + mp.mpf(10) ** -8)


def test_conversions_are_not_below_the_exact_ones():
    rng = np.random.default_rng(4)
    for _ in range(100):
        alpha, value = 1.0 + float(10 ** rng.uniform(-2, 9)), float(10 ** rng.uniform(-6, 3))
        delta = float(10 ** rng.uniform(-15, -0.01))
        a, d = mp.mpf(alpha), mp.mpf(delta)
        exact = mp.mpf(value) + mp.log(1 - 1 / a) - (mp.log(d) + mp.log(a)) / (a - 1)
        assert mp.mpf(renyi_epsilon_at(alpha, value, delta)) >= exact


def response_delta(epsilon0: float, count: int, epsilon: float) -> mpmath.mpf:
    """delta of `count` randomized responses at `epsilon`, by the binomial."""
    e, at = mp.mpf(epsilon0), mp.mpf(epsilon)
    p = 1 / (1 + mp.exp(-e))
    return mp.fsum(
        mp.binomial(count, k) * p**k * (1 - p) ** (count - k) * (1 - mp.exp(at - (2 * k - count) * e))
        for k in range(count + 1)
        if (2 * k - count) * e > at
    )


def test_repeated_randomized_response_is_not_below_the_exact_one():
    rng = np.random.default_rng(6)
    for _ in range(6):
        epsilon0, count = float(10 ** rng.uniform(-3, 1)), int(10 ** rng.uniform(0, 2.2))
        delta = float(10 ** rng.uniform(-14, -1))
        event = SelfComposedDpEvent(EpsilonDeltaDpEvent(epsilon0, 0.0), count)
        for method in ("optimal_exact", "optimal", "strong", "naive", "rdp", "moments"):
            value = get_epsilon(event, delta, method=method)
            assert math.isinf(value) or response_delta(epsilon0, count, value) <= mp.mpf(delta), (method, event, delta)
            found = get_delta(event, 0.7 * epsilon0 * count, method=method)
            assert mp.mpf(found) >= response_delta(epsilon0, count, 0.7 * epsilon0 * count), (method, event)


def test_sums_of_statements_are_not_below_the_exact_ones():
    for epsilon, delta, count in [(0.1, 0.0, 3), (1 / 3, 1e-7, 7), (0.7, 1e-9, 10**6), (1e-9, 1e-13, 10**9)]:
        event = SelfComposedDpEvent(EpsilonDeltaDpEvent(epsilon, delta), count)
        assert mp.mpf(get_epsilon(event, 0.01, method="naive")) >= count * mp.mpf(epsilon)
        if delta:  # a delta that is one unit short of the sum covers nothing
            assert get_epsilon(event, math.nextafter(count * delta, 0.0), method="naive") == math.inf


# --- exact composition of many steps ---------------------------------------------------------------------------
