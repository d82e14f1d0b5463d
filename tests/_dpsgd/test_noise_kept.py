"""`coef_noise_`: the spread that noise alone gives to a coefficient."""

import math

import numpy as np
import pytest
from combinations import over_rows
from interrupts import interrupt_after
from scipy import stats

from skdp import DPLogisticRegression

FALSE_ALARM = 1e-6
D = 3000


def null_records():
    """Rows of zeros: every gradient of a coefficient is 0."""
    return np.zeros((50, D)), np.arange(50) % 2


def is_explained(model):
    """Whether the coefficients are so many normals of this spread."""
    spread = stats.chi2(model.coef_.size)
    square = float(np.sum((model.coef_ / model.coef_noise_) ** 2))
    return spread.ppf(FALSE_ALARM / 2) < square < spread.isf(FALSE_ALARM / 2)


def model_of(**own):
    return DPLogisticRegression(**{"classes": [0, 1], "random_state": 5, "max_iter": 40, "data_norm": 2.0, **own})


RUNS = {
    "default, three classes": {"max_iter": None, "classes": [0, 1, 2]},
    "last iterate": {"average": False},
    "long momentum": {"momentum": 0.99},
    "penalty": {"alpha": 0.5},
    "large penalty, last iterate": {"alpha": 50.0, "average": False},
    "lots": {"sampling_rate": 0.3, "max_iter": 7},
    "rate and clip given": {"learning_rate": 3.0, "max_grad_norm": 0.1},
}


@over_rows("own", RUNS.values())
def test_spread_on_null_records(own):
    model = model_of(**own).fit(*null_records())
    assert model.coef_noise_.shape == model.coef_.shape
    assert np.all(model.coef_noise_ == model.coef_noise_[0, 0])
    assert is_explained(model)


@over_rows("alpha", [0.0, 1.0])
def test_instalments_add_their_noise(alpha):
    model = model_of(alpha=alpha).fit(*null_records())
    first = model.coef_noise_[0, 0]
    model.set_params(random_state=6).partial_fit(*null_records())
    assert is_explained(model)
    second = model.coef_noise_[0, 0]
    if alpha == 0.0:
        assert second == pytest.approx(math.sqrt(2.0) * first, rel=1e-12)
    else:
        assert first < second < math.sqrt(2.0) * first
    model.set_params(random_state=7, data_norm=9.0, epsilon=0.3).partial_fit(*null_records())  # another scale of rows
    assert is_explained(model)


@over_rows("n_steps", [1, 21])
def test_coef_noise_interrupted_run(n_steps):
    interrupt_after(model := model_of(), n_steps)
    assert model.fit(*null_records()).n_steps_ == n_steps
    assert is_explained(model)


def test_coef_noise_resumed_fit_counts_start_once(tmp_path):
    interrupt_after(model := model_of(checkpoint=tmp_path / "run.npz", warm_start=True, max_iter=30), 15)
    model.fit(*null_records()).fit(*null_records())
    before = model.coef_noise_[0, 0]
    interrupt_after(model, 15)
    assert model.set_params(random_state=6).fit(*null_records()).n_steps_ == 45
    assert model.fit(*null_records()).n_steps_ == 60
    assert model.coef_noise_[0, 0] == pytest.approx(math.sqrt(2.0) * before, rel=1e-12)
    assert is_explained(model)
