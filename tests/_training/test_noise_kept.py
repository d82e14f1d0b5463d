"""`coef_noise_`: the spread that noise alone gives to a coefficient."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from combinations import over_rows
from scipy import stats

from skdp import DPLogisticRegression
from skdp._training.averaging import last_iterate, tail_average
from skdp._training.noise_kept import carried
from skdp._training.optimizers import constant, momentum_sgd

FALSE_ALARM = 1e-6
D = 3000

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyLeakWarning"),  # a replay needs a seed
    pytest.mark.filterwarnings("ignore:50 rows are few"),
]


def null_records(n=50, n_classes=2):
    """Rows of zeros: every gradient of a coefficient is 0."""
    return np.zeros((n, D)), np.arange(n) % n_classes


def is_explained(model):
    """Whether the coefficients are so many normals of this spread."""
    spread = stats.chi2(model.coef_.size)
    square = float(np.sum((model.coef_ / model.coef_noise_) ** 2))
    return spread.ppf(FALSE_ALARM / 2) < square < spread.isf(FALSE_ALARM / 2)


def model_of(**own):
    return DPLogisticRegression(**{"classes": [0, 1], "random_state": 5, "max_iter": 40, "data_norm": 2.0, **own})


RUNS = {
    "default": {"max_iter": None},
    "last iterate": {"average": False},
    "no momentum": {"momentum": 0.0},
    "long momentum": {"momentum": 0.99},
    "penalty": {"alpha": 0.5},
    "large penalty, last iterate": {"alpha": 50.0, "average": False},
    "lots": {"sampling_rate": 0.3, "max_iter": 7},
    "one step": {"max_iter": 1},
    "an odd number": {"max_iter": 3},
    "no intercept": {"fit_intercept": False},
    "rate and clip given": {"learning_rate": 3.0, "max_grad_norm": 0.1},
    "add_remove": {"adjacency": "add_remove", "n_samples_public": 80},
}


@over_rows("own", RUNS.values())
def test_spread_on_null_records(own):
    model = model_of(**own).fit(*null_records())
    assert model.coef_noise_.shape == model.coef_.shape
    assert np.all(model.coef_noise_ == model.coef_noise_[0, 0])
    assert is_explained(model)


def test_spread_of_several_classes():
    model = model_of(classes=[0, 1, 2]).fit(*null_records(n_classes=3))
    assert model.coef_noise_.shape == (3, D)
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


def interrupted_after(n_steps, **own):
    """A fit in which Ctrl-C comes after so many steps."""
    calls = itertools.count(1)

    def step(n_done):
        if next(calls) == n_steps:
            raise KeyboardInterrupt

    model = model_of(**own)
    model._make_progress = lambda plan: type("Bar", (), {"__call__": staticmethod(step), "close": lambda self: None})()
    return model


@pytest.mark.filterwarnings("ignore::skdp.exceptions.FitInterruptedWarning")
@over_rows("n_steps", [1, 20, 21, 33])
def test_an_interrupted_run(n_steps):
    model = interrupted_after(n_steps).fit(*null_records())
    assert model.n_steps_ == n_steps
    assert is_explained(model)


@pytest.mark.filterwarnings("ignore::skdp.exceptions.FitInterruptedWarning")
def test_a_resumed_instalment_counts_its_start_once(tmp_path):
    model = interrupted_after(15, checkpoint=tmp_path / "run.npz", warm_start=True, max_iter=30)
    del model._make_progress
    model.fit(*null_records())
    before = model.coef_noise_[0, 0]
    model._make_progress = interrupted_after(15)._make_progress
    model.set_params(random_state=6).fit(*null_records())
    assert model.n_steps_ == 45
    del model._make_progress
    model.fit(*null_records())
    assert model.n_steps_ == 60
    assert model.coef_noise_[0, 0] == pytest.approx(math.sqrt(2.0) * before, rel=1e-12)
    assert is_explained(model)


@over_rows("average", [False, True])
@over_rows("momentum", [0.0, 0.9])
@over_rows("penalty", [0.0, 0.7])
@over_rows("steady", [False, True])
def test_the_recursion_is_that_of_the_optimizer(average, momentum, penalty, steady):
    """Coordinate t gets a gradient of 1 at step t alone, and the last one starts from 1."""
    n, eta = 13, 0.3
    optimizer = momentum_sgd(constant(eta), momentum, penalty)
    averaging = tail_average(n) if average else last_iterate()
    theta = np.zeros(n + 1)
    theta[n] = 1.0
    state, mean = optimizer.init(theta), averaging.init(theta)
    for step in range(n):
        gradient = np.zeros(n + 1)
        gradient[step] = 1.0
        theta, state = optimizer.update(gradient, state, theta)
        mean = averaging.update(step, theta, mean)
    result = averaging.result(theta, mean)
    factors = np.ones(n) if steady else np.linspace(0.5, 3.0, n)
    found = carried(eta, momentum, penalty, n, n // 2 if average else n - 1, factors)
    assert found.start == pytest.approx(result[n], rel=1e-12)
    assert found.noise == pytest.approx(np.linalg.norm(result[:n] * factors), rel=1e-12)


def test_no_step_no_noise():
    assert carried(1.0, 0.9, 0.0, 0, -1, np.ones(1)) == (1.0, 0.0)


def test_it_is_a_function_of_public_quantities():
    """Other rows of the same number, under each adjacency."""
    rng = np.random.default_rng(0)
    for own in ({}, {"adjacency": "replace_one"}, {"adjacency": "add_remove", "n_samples_public": 300}):
        one, other = (
            DPLogisticRegression(classes=[0, 1], **own).fit(rng.normal(size=(n, 4)), np.arange(n) % 2).coef_noise_
            for n in ((300, 299) if own.get("adjacency") == "add_remove" else (300, 300))
        )
        np.testing.assert_array_equal(one, other)
