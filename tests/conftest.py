"""What several test files share."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture(scope="session")
def draw():
    """A function that draws rows in [-1, 1] and labels 0, 1, ... of a (multinomial) logistic model."""

    def rows_and_labels(n=400, d=4, n_classes=2, seed=0):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1.0, 1.0, (n, d))
        truth = 3.0 * rng.standard_normal((n_classes, d))
        return X, np.argmax(X @ truth.T + rng.gumbel(size=(n, n_classes)), axis=1)

    return rows_and_labels
