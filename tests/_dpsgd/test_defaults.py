"""Rules for what the user leaves open: by hand-computed values, and as functions of public numbers only."""

import numpy as np
import pytest

from skdp import DPLogisticRegression
from skdp._dpsgd import defaults as rule
from skdp.mechanisms.sampling import FullBatch, PoissonSampling
from skdp.preprocessing import DPTableVectorizer


def test_full_batch_where_it_is_affordable():
    """n p T up to 5e9: 10**6 rows of 12 parameters for 200 steps are 2.4e9, 10**7 rows are not."""
    assert rule.default_sampling(10**6, 12, 200) == FullBatch()
    assert rule.default_sampling(2_000_000, 12, 208) == FullBatch()  # 4.992e9
    assert rule.default_sampling(2_000_000, 12, 209) == PoissonSampling(1 / 8)  # 5.016e9
    assert rule.default_sampling(10**7, 12, 200) == PoissonSampling(1 / 8)


def test_the_clip_of_a_fit_is_that_of_its_classes():
    rows = np.random.default_rng(0).uniform(-1, 1, (60, 2))
    table = DPTableVectorizer({"x0": (-1, 1), "x1": (-1, 1)}, numbers="scale").fit_transform(rows)
    for X, n_classes, clip in ((rows, 2, 0.5), (table, 2, 0.5), (rows, 3, 0.25), (table, 3, 1.0)):
        model = DPLogisticRegression(classes=range(n_classes)).fit(X, np.arange(60) % n_classes)
        assert model.max_grad_norm_ == clip


def test_learning_rate_by_hand():
    """eta = 2 L / (sigma C sqrt(T)), and eta C at most 200."""
    assert rule.default_learning_rate(10.0, 0.5, 1_000.0, 100) == pytest.approx(40.0, rel=1e-14)
    assert rule.default_learning_rate(0.1, 0.5, 1_000.0, 100) == pytest.approx(400.0, rel=1e-14)  # 200 / C
    assert rule.default_learning_rate(1.0, 0.25, 1_000.0, 100) == pytest.approx(800.0, rel=1e-14)  # just reached
