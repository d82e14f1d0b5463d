"""Convolutional critics: gradients, their clip, and what one row can move."""

import numpy as np
import pytest
import reference
from combinations import over_rows

from skdp._dpsgd.models.network import count_parameters, split_tables
from skdp._kernels import critic as kernel
from skdp.mechanisms.streams import SecretStream
from skdp.synthesis.adversaries import ConvolutionalCritic, ConvolutionalModel
from skdp.synthesis.critic import Lot
from skdp.synthesis.generator import GeneratorNetwork, start_tables

WIDE = 1e9  # a clip that clips nothing
SHAPE = (7, 6)


def networks(n_classes=3, capacity=2, shape=SHAPE):
    d = shape[0] * shape[1]
    return (
        ConvolutionalCritic(shape, n_classes, capacity, 10.0),
        GeneratorNetwork(4, n_classes, (8,), d),
    )


def start(critic, generator, dtype=np.float64):
    theta = np.zeros(critic.n_parameters + count_parameters(generator.widths), dtype)
    stream = SecretStream.from_random_state(0, "test")
    start_tables(critic.tables(theta[: critic.n_parameters]), stream.spawn("critic"))
    start_tables(split_tables(theta[critic.n_parameters :], generator.widths), stream.spawn("generator"))
    rng = np.random.default_rng(0)
    for table in critic.tables(theta[: critic.n_parameters]):
        table[-1] = rng.normal(size=table.shape[1]) * 0.3
    return theta


def rows_of(n, d=42, dtype=np.float64):
    rng = np.random.default_rng(1)
    return rng.uniform(0, 1, (n, d)).astype(dtype), rng.integers(0, 3, n)


def model_of(X, codes, critic, generator, dtype=np.float64):
    d = X.shape[1]
    return ConvolutionalModel(X, codes, np.zeros(d), np.ones(d), critic, generator, dtype=dtype)


def lot_of(rows, step=0):
    root = SecretStream.from_random_state(5, "test")
    return Lot(np.asarray(rows, np.int64), root.spawn("noise", step), root.spawn("shares", step))


@over_rows("n_classes", [0, 3])
def test_the_gradient_is_that_of_the_loss(n_classes):
    """Along 20 directions, to 1e-6 of its length: g and the direction are differenced in double precision."""
    critic, generator = networks(n_classes)
    X, codes = rows_of(4)
    theta = start(critic, generator)
    model = model_of(X, codes, critic, generator)
    mix = model._fill_pairs(theta, lot_of([2]))
    fake, real, share = model._pairs[0, 0, :42].copy(), model._pairs[0, 1, :42].copy(), mix[0]
    found = model.clipped_gradient_sum(theta, lot_of([2]), WIDE)
    code = codes[2] if n_classes else None

    def score(parameters, row):
        return reference.convolution_score(critic.tables(parameters), 0.2, 4.0, row.reshape(SHAPE), code)

    def loss(parameters):
        between, steps = share * real + (1 - share) * fake, 1e-4 * np.eye(42)
        g = [(score(parameters, between + step) - score(parameters, between - step)) / 2e-4 for step in steps]
        return score(parameters, fake) - score(parameters, real) + 10.0 * (np.linalg.norm(g) - 1.0) ** 2

    rng, of_critic = np.random.default_rng(2), theta[: critic.n_parameters]
    for _ in range(5):
        step = rng.normal(size=len(of_critic))
        step *= 1e-4 / np.linalg.norm(step)
        wanted = (loss(of_critic + step) - loss(of_critic - step)) / 2
        assert abs(found @ step - wanted) < 1e-6 * np.linalg.norm(found) * np.linalg.norm(step)


def test_the_gradient_by_the_features_is_that_of_the_score():
    critic, generator = networks()
    X, codes = rows_of(20)
    of_critic = start(critic, generator)[: critic.n_parameters]
    found = critic.by_features(of_critic, X, codes)
    tables = critic.tables(of_critic)
    for row in (0, 17):
        for j in range(0, 42, 5):
            sides = []
            for step in (1e-5, -1e-5):
                image = X[row].copy()
                image[j] += step
                sides.append(reference.convolution_score(tables, 0.2, 4.0, image.reshape(SHAPE), codes[row]))
            assert found[row, j] == pytest.approx((sides[0] - sides[1]) / 2e-5, abs=1e-7)


@pytest.mark.compiled
@over_rows("dtype", [np.float32, np.float64])
def test_every_row_is_clipped_by_its_own_whole_norm(dtype):
    critic, generator = networks()
    X, codes = rows_of(40, dtype=dtype)
    theta = start(critic, generator, dtype)
    model = model_of(X, codes, critic, generator, dtype)
    gradients = []
    fill = model._fill_gradients

    def watched(*args):
        found = fill(*args)
        gradients.extend(found.astype(np.float64))
        return found

    model._fill_gradients = watched
    total = model.clipped_gradient_sum(theta, lot_of(range(40)), WIDE)
    np.testing.assert_allclose(total, np.sum(gradients, axis=0), rtol=1e-9, atol=1e-9)
    whole, norms = np.array(gradients), np.linalg.norm(gradients, axis=1)
    clip = float(np.median(norms))
    total = model.clipped_gradient_sum(theta, lot_of(range(40)), clip)
    wanted = (whole * np.minimum(1.0, clip / norms)[:, None]).sum(axis=0)
    np.testing.assert_allclose(total, wanted, rtol=0, atol=1e-8 * clip)


@pytest.mark.compiled
@over_rows("dtype", [np.float32, np.float64])
def test_a_row_that_is_exchanged_moves_the_sum_by_two_clips_and_one_that_is_muted_by_one(dtype):
    critic, generator = networks()
    X, codes = rows_of(50, dtype=dtype)
    theta = start(critic, generator, dtype)
    base = model_of(X, codes, critic, generator, dtype).clipped_gradient_sum(theta, lot_of(range(50)), 0.1)
    rng = np.random.default_rng(3)
    for place in (0, 20, 49):
        other, labels = X.copy(), codes.copy()
        other[place], labels[place] = rng.uniform(0, 1, 42), (codes[place] + 1) % 3
        found = model_of(other, labels, critic, generator, dtype).clipped_gradient_sum(theta, lot_of(range(50)), 0.1)
        assert 0 < np.linalg.norm(found - base) <= 0.2
        other[place] = np.nan
        sums = []
        for label in range(3):  # the label of a muted row moves no bit
            labels[place] = label
            model = model_of(other, labels, critic, generator, dtype)
            sums.append(model.clipped_gradient_sum(theta, lot_of(range(50)), 0.1))
        assert np.array_equal(sums[0], sums[1])
        assert np.array_equal(sums[0], sums[2])
        assert 0.09 < np.linalg.norm(sums[0] - base) <= 0.1


def test_rows_that_are_not_finite_add_exactly_nothing():
    critic, generator = networks()
    X, codes = rows_of(10)
    X[[0, 5], [0, 2]] = np.nan, np.inf
    theta = start(critic, generator)
    assert not model_of(X, codes, critic, generator).clipped_gradient_sum(theta, lot_of([0, 5]), 0.1).any()


@over_rows("width, dtype", [(1, np.float64), (3, np.float32), (4, np.float64), (11, np.float32)])
def test_clipped_rows_by_the_plain_reading(dtype, width):
    rng = np.random.default_rng(0)
    gradients = rng.normal(size=(9, width)).astype(dtype)
    gradients[3, 0], gradients[4, -1], gradients[5] = np.nan, np.inf, 1e-3
    total = np.ones(width)
    kernel.add_clipped(gradients, 0.5, 1e-30, total)
    wanted = np.ones(width)
    for row in gradients.astype(float)[[0, 1, 2, 5, 6, 7, 8]]:
        wanted += row * min(1.0, 0.5 / np.sqrt(np.sum(row * row)))
    np.testing.assert_allclose(total, wanted, rtol=1e-12)
