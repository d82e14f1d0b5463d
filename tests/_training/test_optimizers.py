"""Optimisers: post-processing of noisy gradients by public constants."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from combinations import over_combinations, over_rows

from skdp._training.optimizers import adam, constant, cosine_decay, linear_decay, momentum_sgd


def run(optimizer, theta, gradients):
    state = optimizer.init(theta)
    for gradient in gradients:
        theta, state = optimizer.update(gradient, state, theta)
    return theta


def test_momentum_by_hand():
    """v = 0.75 v + 0.25 g: 1, 1.75 (after g = 4, 4), theta = -2 (1 + 1.75)."""
    theta = run(momentum_sgd(constant(2.0), 0.75), np.zeros(1), [np.array([4.0])] * 2)
    np.testing.assert_allclose(theta, [-5.5], rtol=1e-15)


def test_penalty_moves_the_update_by_a_term_without_data():
    """Property 7: the penalised step is the plain one times a public factor, whatever the gradient."""
    theta = np.array([1.0, -2.0, 3.0])
    factor = 1.0 / (1.0 + 0.1 * np.array([4.0, 4.0, 0.0]))
    for gradient in (np.zeros(3), np.array([1.0, 2.0, -5.0]), np.full(3, 1e6)):
        plain = run(momentum_sgd(constant(0.1), 0.0), theta, [gradient])
        penalised = run(momentum_sgd(constant(0.1), 0.0, np.array([4.0, 4.0, 0.0])), theta, [gradient])
        np.testing.assert_allclose(penalised, plain * factor, rtol=1e-14)


@over_rows("alpha", [1e3, 1e12, 1e300])
def test_penalty_is_stable_however_large(alpha):
    optimizer = momentum_sgd(constant(10.0), 0.9, alpha)
    theta = np.ones(2)
    state = optimizer.init(theta)
    for _ in range(50):
        theta, state = optimizer.update(np.ones(2), state, theta)
        assert np.all(np.abs(theta) <= 1.0)
    assert np.all(np.abs(theta) < 1e-2)


def test_update_leaves_its_arguments_alone():
    optimizer, theta, gradient = momentum_sgd(constant(0.1), 0.9, 0.5), np.ones(3), np.ones(3)
    state = optimizer.init(theta)
    optimizer.update(gradient, state, theta)
    for vector, value in ((theta, 1.0), (gradient, 1.0), (state[0], 0.0)):
        assert np.all(vector == value)


def test_update_is_linear_in_the_gradients():
    """Noise of mean zero stays so: a run on a sum of gradients is the sum of the runs (from zero)."""
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 10, 4))
    optimizer = momentum_sgd(constant(0.3), 0.8, np.array([0.0, 1.0, 2.0, 3.0]))
    apart = run(optimizer, np.zeros(4), first) + run(optimizer, np.zeros(4), second)
    np.testing.assert_allclose(run(optimizer, np.zeros(4), first + second), apart, rtol=0, atol=1e-13)


# --- schedules ---


def test_linear_decay_at_first_middle_last_and_beyond():
    """Abadi et al. (2016), section 5.2: from 0.1 to 0.052 in 10 epochs (of 100 steps here), then 0.052."""
    rate = linear_decay(0.1, 0.052, 1000)
    for step, expected in ((0, 0.1), (250, 0.088), (500, 0.076), (999, 0.052048), (1000, 0.052), (10**6, 0.052)):
        assert rate(step) == pytest.approx(expected, rel=1e-14)


def test_cosine_decay_at_first_middle_last_and_beyond():
    rate = cosine_decay(2.0, 0.5, 300)
    for step, expected in ((0, 2.0), (100, 1.625), (150, 1.25), (200, 0.875), (300, 0.5), (301, 0.5), (10**6, 0.5)):
        assert rate(step) == pytest.approx(expected, rel=1e-14)


def test_schedules_may_rise_and_may_be_shorter_than_a_step():
    assert linear_decay(1.0, 3.0, 4)(1) == pytest.approx(1.5)
    for schedule in (linear_decay, cosine_decay):
        rate = schedule(2.0, 1.0, 0.25)
        assert (rate(0), rate(1)) == (2.0, 1.0)


# --- Adam ---

ADAMS = {
    "Adam": {},
    "penalised": {"penalty": np.array([0.0, 1.0, 5.0])},
}


@over_combinations(dtype=[np.float32, np.float64], kind=ADAMS)
@over_rows(("beta_1", "beta_2"), [(0.9, 0.999), (0.0, 0.5), (0.5, 0.0)])
def test_adam_is_that_of_the_plain_formulas(beta_1, beta_2, kind, dtype):
    """Every iterate, with a schedule; in float32 to 40 steps of a few roundings of numbers below 10."""
    rng = np.random.default_rng(0)
    gradients, theta = rng.normal(size=(40, 3)), rng.normal(size=3).astype(dtype)
    schedule = linear_decay(0.1, 0.01, 30)
    options = {"beta_1": beta_1, "beta_2": beta_2, "adam_epsilon": 1e-3, **ADAMS[kind]}
    expected = reference.adam(theta.astype(float), gradients, [schedule(k) for k in range(40)], **options)
    optimizer = adam(schedule, *(options.pop(name) for name in ("beta_1", "beta_2", "adam_epsilon")), **options)
    state = optimizer.init(theta)
    for gradient, iterate in zip(gradients, expected, strict=True):
        theta, state = optimizer.update(gradient, state, theta)
        np.testing.assert_allclose(theta, iterate, rtol=0, atol=40 * 10 * float(np.finfo(dtype).eps))


def test_first_step_of_adam_is_the_sign_of_the_gradient():
    theta = run(adam(constant(0.1), 0.9, 0.999, 0.0), np.zeros(3), [np.array([1e-9, -3.0, 1e9])])
    np.testing.assert_allclose(theta, [-0.1, 0.1, -0.1], rtol=1e-12)


def test_adam_does_not_depend_on_gradient_scale():
    """Schwabedal et al. (2020): with a vanishing adam_epsilon the clip cancels, noise included."""
    gradients = np.random.default_rng(1).normal(size=(30, 4))
    found = []
    for scale in (1.0, 0.1, 1e-6):
        optimizer = adam(constant(0.1), 0.9, 0.99, 0.0)
        found.append(run(optimizer, np.ones(4), gradients * scale))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-11)
    np.testing.assert_allclose(found[2], found[0], rtol=1e-9)
    felt = [run(adam(constant(0.1), 0.9, 0.99, 0.1), np.ones(4), gradients * scale) for scale in (1.0, 0.1)]
    assert np.abs(felt[0] - felt[1]).max() > 0.1


@over_rows("make", [momentum_sgd, adam])
def test_parameters_keep_their_dtype(make):
    """Gradients are float64, as noise is; parameters stay as they came."""
    options = (0.9,) if make is momentum_sgd else (0.9, 0.99, 1e-8)
    for dtype in (np.float32, np.float64):
        for penalty in (0.0, np.ones(3)):
            theta = run(make(constant(0.1), *options, penalty=penalty), np.ones(3, dtype), [np.ones(3)] * 2)
            assert theta.dtype == dtype


def test_plain_step():
    theta = run(momentum_sgd(constant(0.5), 0.0), np.array([1.0, 2.0]), [np.array([4.0, -2.0])])
    np.testing.assert_allclose(theta, [-1.0, 3.0], rtol=1e-15)


def test_momentum_is_dampened():
    """Of a constant gradient the velocity tends to the gradient itself, so the step length means one thing."""
    optimizer = momentum_sgd(constant(1.0), 0.9)
    theta, state = np.zeros(3), optimizer.init(np.zeros(3))
    for _ in range(400):
        last = theta
        theta, state = optimizer.update(np.ones(3), state, theta)
    np.testing.assert_allclose(last - theta, 1.0, rtol=1e-12)


def test_penalty_finds_the_minimum_of_a_penalised_quadratic():
    """min (theta - 3)**2 / 2 + alpha theta**2 / 2 is at 3 / (1 + alpha); a fixed point of the implicit step."""
    for alpha in (0.5, 2.0):
        optimizer = momentum_sgd(constant(0.1), 0.5, alpha)
        theta, state = np.zeros(1), optimizer.init(np.zeros(1))
        for _ in range(2_000):
            theta, state = optimizer.update(theta - 3.0, state, theta)
        np.testing.assert_allclose(theta, 3.0 / (1.0 + alpha), rtol=1e-12)


def test_no_penalty_is_no_penalty():
    theta, gradient = np.array([1.0, -2.0]), np.array([0.3, 0.4])
    for penalty in (0.0, np.zeros(2)):
        np.testing.assert_array_equal(
            run(momentum_sgd(constant(0.1), 0.5, penalty), theta, [gradient] * 3),
            run(momentum_sgd(constant(0.1), 0.5), theta, [gradient] * 3),
        )


def test_constant_is_constant():
    assert {constant(0.3)(step) for step in (0, 1, 10**6)} == {0.3}


def test_updates_of_adam_leave_their_arguments_alone():
    optimizer, theta, gradient = adam(constant(0.1), 0.9, 0.99, 1e-8, penalty=0.5), np.ones(3), np.ones(3)
    state = optimizer.init(theta)
    optimizer.update(gradient, state, theta)
    for vector, value in ((theta, 1.0), (gradient, 1.0), (state[0], 0.0), (state[1], 0.0)):
        assert np.all(vector == value)
