"""Optimisers: post-processing of noisy gradients by public constants."""

from __future__ import annotations

import numpy as np
import pytest

from skdp._optimizers import constant, momentum_sgd


def run(optimizer, theta, gradients):
    state = optimizer.init(theta)
    for gradient in gradients:
        theta, state = optimizer.update(gradient, state, theta)
    return theta


def test_plain_step():
    theta = run(momentum_sgd(constant(0.5), 0.0), np.array([1.0, 2.0]), [np.array([4.0, -2.0])])
    np.testing.assert_allclose(theta, [-1.0, 3.0], rtol=1e-15)


def test_momentum_by_hand():
    """v = 0.75 v + 0.25 g: 1, 1.75 (after g = 4, 4), theta = -2 (1 + 1.75)."""
    theta = run(momentum_sgd(constant(2.0), 0.75), np.zeros(1), [np.array([4.0])] * 2)
    np.testing.assert_allclose(theta, [-5.5], rtol=1e-15)


def test_momentum_is_dampened():
    """Of a constant gradient the velocity tends to the gradient itself, so the step length means one thing."""
    optimizer = momentum_sgd(constant(1.0), 0.9)
    theta, state = np.zeros(3), optimizer.init(np.zeros(3))
    for _ in range(400):
        last = theta
        theta, state = optimizer.update(np.ones(3), state, theta)
    np.testing.assert_allclose(last - theta, 1.0, rtol=1e-12)


def test_penalty_moves_the_update_by_a_term_without_data():
    """Property 7: the penalised step is the plain one times a public factor, whatever the gradient."""
    theta = np.array([1.0, -2.0, 3.0])
    factor = 1.0 / (1.0 + 0.1 * np.array([4.0, 4.0, 0.0]))
    for gradient in (np.zeros(3), np.array([1.0, 2.0, -5.0]), np.full(3, 1e6)):
        plain = run(momentum_sgd(constant(0.1), 0.0), theta, [gradient])
        penalised = run(momentum_sgd(constant(0.1), 0.0, np.array([4.0, 4.0, 0.0])), theta, [gradient])
        np.testing.assert_allclose(penalised, plain * factor, rtol=1e-14)


def test_penalty_finds_the_minimum_of_a_penalised_quadratic():
    """min (theta - 3)**2 / 2 + alpha theta**2 / 2 is at 3 / (1 + alpha); a fixed point of the implicit step."""
    for alpha in (0.5, 2.0):
        optimizer = momentum_sgd(constant(0.1), 0.5, alpha)
        theta, state = np.zeros(1), optimizer.init(np.zeros(1))
        for _ in range(2_000):
            theta, state = optimizer.update(theta - 3.0, state, theta)
        np.testing.assert_allclose(theta, 3.0 / (1.0 + alpha), rtol=1e-12)


@pytest.mark.parametrize("alpha", [1e3, 1e12, 1e300])
def test_penalty_is_stable_however_large(alpha):
    optimizer = momentum_sgd(constant(10.0), 0.9, alpha)
    theta = np.ones(2)
    state = optimizer.init(theta)
    for _ in range(50):
        theta, state = optimizer.update(np.ones(2), state, theta)
        assert np.all(np.abs(theta) <= 1.0)
    assert np.all(np.abs(theta) < 1e-2)


def test_no_penalty_is_no_penalty():
    theta, gradient = np.array([1.0, -2.0]), np.array([0.3, 0.4])
    for penalty in (0.0, np.zeros(2)):
        np.testing.assert_array_equal(
            run(momentum_sgd(constant(0.1), 0.5, penalty), theta, [gradient] * 3),
            run(momentum_sgd(constant(0.1), 0.5), theta, [gradient] * 3),
        )


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
