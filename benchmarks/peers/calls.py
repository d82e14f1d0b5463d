"""Calls of skdp that are no steps, for `compare.py`: fits of small tables, costs, a charge."""

from __future__ import annotations

import itertools
import os
import tempfile
from typing import Any

import numpy as np

from peers.registry import contestant


def table(n: int, d: int = 11) -> tuple[Any, Any]:
    generator = np.random.default_rng(0)
    X = generator.uniform(-1.0, 1.0, (n, d)).astype(np.float32)
    return X, (X[:, 0] + 0.3 * generator.standard_normal(n) > 0).astype(int)


@contestant("fit of DPLogisticRegression, 2,000 x 11", "calls", role="ours")
def fit_logistic(*_: Any) -> Any:
    from skdp import DPLogisticRegression

    X, y = table(2_000)
    return lambda: DPLogisticRegression(epsilon=1.0, delta=1e-5, classes=[0, 1]).fit(X, y)


@contestant("fit of DPMLPClassifier, 2,000 x 11", "calls", role="ours")
def fit_network(*_: Any) -> Any:
    from skdp import DPMLPClassifier

    X, y = table(2_000)
    return lambda: DPMLPClassifier((16,), epsilon=1.0, delta=1e-5, classes=[0, 1]).fit(X, y)


@contestant("fit of DPPCA, 20,000 x 50", "calls", role="ours")
def fit_pca(*_: Any) -> Any:
    from skdp import DPPCA

    X, _ = table(20_000, 50)
    return lambda: DPPCA(5, epsilon=1.0, delta=1e-5).fit(X)


@contestant("fit of DPGridSearchCV, 3 candidates, 2,000 x 11", "calls", role="ours")
def fit_search(*_: Any) -> Any:
    from skdp import DPGridSearchCV, DPLogisticRegression

    X, y = table(2_000)
    grid = {"learning_rate": [0.5, 1.0, 2.0]}
    return lambda: DPGridSearchCV(DPLogisticRegression(classes=[0, 1]), grid, epsilon=1.0, delta=1e-5).fit(X, y)


@contestant("epsilon of 1,000 DP-SGD steps", "calls", role="ours")
def price_of_dp_sgd(*_: Any) -> Any:
    from skdp.accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent, get_epsilon

    calls = itertools.count()  # costs are cached: each is another one

    def cost() -> float:
        step = PoissonSampledDpEvent(0.01, GaussianDpEvent(1.1 + 1e-4 * next(calls)))
        return get_epsilon(SelfComposedDpEvent(step, 1_000), 1e-5)

    return cost


@contestant("epsilon of a mixed composition", "calls", role="ours")
def price_of_a_mixture(*_: Any) -> Any:
    from skdp.accounting import (
        ComposedDpEvent,
        GaussianDpEvent,
        LaplaceDpEvent,
        PoissonSampledDpEvent,
        SelfComposedDpEvent,
        get_epsilon,
    )

    calls = itertools.count()

    def cost() -> float:
        step = PoissonSampledDpEvent(0.02, GaussianDpEvent(1.3 + 1e-4 * next(calls)))
        parts = [SelfComposedDpEvent(step, 300), GaussianDpEvent(8.0), SelfComposedDpEvent(LaplaceDpEvent(20.0), 4)]
        return get_epsilon(ComposedDpEvent(parts), 1e-6)

    return cost


@contestant("calibration of the noise of DP-SGD", "calls", role="ours")
def calibration(*_: Any) -> Any:
    from skdp.accounting import (
        GaussianDpEvent,
        PoissonSampledDpEvent,
        SelfComposedDpEvent,
        calibrate_noise_multiplier,
    )

    calls = itertools.count()

    def solve() -> float:
        rate = 0.01 + 1e-5 * next(calls)
        return calibrate_noise_multiplier(
            lambda noise: SelfComposedDpEvent(PoissonSampledDpEvent(rate, GaussianDpEvent(noise)), 500), 1.0, 1e-5
        )

    return solve


@contestant("a charge in a file", "calls", role="ours")
def charge_in_a_file(*_: Any) -> Any:
    from skdp import PrivacyAccountant
    from skdp.accounting import GaussianDpEvent

    accountant = PrivacyAccountant(1e3, 1e-5, path=os.path.join(tempfile.mkdtemp(), "compare.budget"))
    return lambda: accountant.spend(GaussianDpEvent(200.0))
