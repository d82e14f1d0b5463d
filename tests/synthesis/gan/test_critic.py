"""Critics with a gradient penalty: gradients, their clip, and what one row can move."""

import numpy as np
import pytest
import reference
from combinations import over_rows

from skdp._dpsgd.loop import constant, momentum_sgd
from skdp._dpsgd.models.network import count_parameters, split_tables
from skdp._kernels import critic as kernel
from skdp.mechanisms.sampling import FullBatch, PoissonSampling
from skdp.mechanisms.streams import SecretStream
from skdp.synthesis.adversaries import GeneratorSteps, alternating
from skdp.synthesis.critic import CriticModel, CriticNetwork, Lot
from skdp.synthesis.generator import GeneratorNetwork, start_tables

WIDE = 1e9  # a clip that clips nothing


def networks(d=5, n_classes=3, hidden=(7, 6), penalty=10.0):
    return CriticNetwork(d, n_classes, hidden, penalty), GeneratorNetwork(4, n_classes, (8,), d)


def start(critic, generator, dtype=np.float64, seed=0, scale=1.0):
    theta = np.zeros(critic.n_parameters + count_parameters(generator.widths), dtype)
    stream = SecretStream.from_random_state(seed, "test")
    start_tables(split_tables(theta[: critic.n_parameters], critic.widths), stream.spawn("critic"))
    start_tables(split_tables(theta[critic.n_parameters :], generator.widths), stream.spawn("generator"))
    rng = np.random.default_rng(seed)
    for table in split_tables(theta[: critic.n_parameters], critic.widths):
        table[:] *= scale
        table[-1] = rng.normal(size=table.shape[1]) * 0.3
    return theta


def rows_of(n, d=5, n_classes=3, dtype=np.float64, seed=1):
    rng = np.random.default_rng(seed)
    return rng.uniform(0, 1, (n, d)).astype(dtype), rng.integers(0, max(n_classes, 1), n)


def model_of(X, codes, critic, generator, dtype=np.float64):
    d = X.shape[1]
    return CriticModel(X, codes, np.zeros(d), np.ones(d), critic, generator, dtype=dtype)


def lot_of(rows, step=0):
    root = SecretStream.from_random_state(5, "test")
    return Lot(np.asarray(rows, np.int64), root.spawn("noise", step), root.spawn("shares", step))


def made_up(model, theta, lot):
    """What a model makes up for a lot: rows, and their shares in the points between."""
    mix = model._fill_pairs(theta, lot)
    return model._pairs[: len(lot.rows), 0, : model.critic.n_features].copy(), mix


@over_rows("hidden", [(7,), (6, 5, 4)])
@over_rows("n_classes", [0, 3])
def test_the_gradient_is_that_of_the_loss(hidden, n_classes):
    """To 1e-7 of its length: differences of step 1e-5 in double precision are good to about 1e-9."""
    critic, generator = networks(n_classes=n_classes, hidden=hidden)
    X, codes = rows_of(6, n_classes=n_classes)
    theta = start(critic, generator)
    model = model_of(X, codes, critic, generator)
    for row in range(6):
        fakes, mix = made_up(model, theta, lot_of([row]))
        found = model.clipped_gradient_sum(theta, lot_of([row]), WIDE)
        label = 4.0 * np.eye(n_classes)[codes[row]] if n_classes else []
        tables = split_tables(theta[: critic.n_parameters], critic.widths)
        wanted = reference.critic_gradient(tables, 0.2, 10.0, 2 * X[row] - 1, fakes[0], mix[0], label)
        assert np.linalg.norm(found - wanted) < 1e-7 * np.linalg.norm(wanted)


# --- the clip ---------------------------------------------------------------------------------------------------------


def apart(model, theta, lot):
    """Gradients of the rows of a lot before the clip, one by one, with the same fakes and shares; shape (m, p)."""
    critic = model.critic
    fakes, mix = made_up(model, theta, lot)
    fill = CriticModel._fill_pairs

    def one(place):
        def filled(self, theta, lot):
            fill(self, theta, lot)
            self._pairs[:1, 0, : critic.n_features] = fakes[place]
            return mix[place : place + 1]

        model._fill_pairs = filled.__get__(model)
        try:
            return model.clipped_gradient_sum(theta, lot_of(lot.rows[place : place + 1]), WIDE)
        finally:
            del model._fill_pairs

    return np.array([one(place) for place in range(len(lot.rows))])


@pytest.mark.compiled
@over_rows("n_classes", [0, 3])
@over_rows("share", [0.1, 1.0, 3.0])
def test_every_row_is_clipped_by_its_own_whole_norm(share, n_classes):
    """At a clip below, among and above the norms of rows: the sum is that of gradients that are clipped one by one."""
    critic, generator = networks(n_classes=n_classes)
    X, codes = rows_of(200, n_classes=n_classes)
    theta = start(critic, generator)
    model = model_of(X, codes, critic, generator)
    lot = np.arange(3, 170)
    gradients = apart(model, theta, lot_of(lot))
    norms = np.linalg.norm(gradients, axis=1)
    clip = share * np.median(norms)
    bound = clip / model._slack
    wanted = (gradients * np.minimum(1.0, bound / norms)[:, None]).sum(axis=0)
    found = model.clipped_gradient_sum(theta, lot_of(lot), clip)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9 * clip)


@pytest.mark.compiled
@over_rows("dtype", [np.float32, np.float64])
@over_rows("scale", [1e-6, 1.0, 1e4, 1e12])
def test_no_row_is_longer_than_the_clip_and_many_are_as_long(scale, dtype):
    critic, generator = networks(d=40, hidden=(30, 20))
    X, codes = rows_of(60, 40, dtype=dtype)
    theta = start(critic, generator, dtype, scale=scale)
    model = model_of(X, codes, critic, generator, dtype)
    norms = [np.linalg.norm(model.clipped_gradient_sum(theta, lot_of([row], row), 0.1)) for row in range(60)]
    assert max(norms) <= 0.1
    if scale == 1.0:
        assert np.median(norms) > 0.1 * 0.98


@pytest.mark.compiled
@over_rows("dtype", [np.float32, np.float64])
def test_a_row_that_is_exchanged_moves_the_sum_by_two_clips_and_one_that_is_muted_by_one(dtype):
    """All other rows, and what is made up for them, are as they were: rounding included, in float32 too."""
    critic, generator = networks(d=30, hidden=(16, 12))
    X, codes = rows_of(300, 30, dtype=dtype)
    theta = start(critic, generator, dtype)
    lot = np.arange(0, 300, 2)
    base = model_of(X, codes, critic, generator, dtype).clipped_gradient_sum(theta, lot_of(lot), 0.1)
    rng = np.random.default_rng(3)
    moved = []
    for place in (0, 128, 298):
        other, labels = X.copy(), codes.copy()
        other[place], labels[place] = rng.uniform(0, 1, 30), (codes[place] + 1) % 3
        found = model_of(other, labels, critic, generator, dtype).clipped_gradient_sum(theta, lot_of(lot), 0.1)
        moved.append(np.linalg.norm(found - base))
        other[place] = np.nan
        found = model_of(other, labels, critic, generator, dtype).clipped_gradient_sum(theta, lot_of(lot), 0.1)
        assert 0.09 < np.linalg.norm(found - base) <= 0.1
    assert 0 < max(moved) <= 0.2


@pytest.mark.compiled
@over_rows("dtype", [np.float32, np.float64])
def test_the_label_of_a_row_is_in_its_own_gradient_alone(dtype):
    """A row that is muted has a label still, and something is made up for it: neither moves a bit of the others."""
    critic, generator = networks(d=30, hidden=(16, 12))
    X, codes = rows_of(100, 30, dtype=dtype)
    X[17] = np.nan
    theta = start(critic, generator, dtype)
    sums = []
    for label in range(3):
        codes[17] = label
        sums.append(model_of(X, codes, critic, generator, dtype).clipped_gradient_sum(theta, lot_of(range(100)), 0.1))
    assert np.array_equal(sums[0], sums[1])
    assert np.array_equal(sums[0], sums[2])


@over_rows("value", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_add_exactly_nothing(value):
    critic, generator = networks()
    X, codes = rows_of(70)
    X[[0, 5, 69], [0, 2, 4]] = value
    theta = start(critic, generator)
    model = model_of(X, codes, critic, generator)
    assert not model.clipped_gradient_sum(theta, lot_of([0, 5, 69]), 0.1).any()
    assert np.isfinite(model.clipped_gradient_sum(theta, lot_of(range(70)), 0.1)).all()


@over_rows("value", [np.nan, np.inf, 1e300])
def test_parameters_that_overflow_mute_every_row(value):
    critic, generator = networks()
    X, codes = rows_of(10)
    theta = start(critic, generator)
    for place in (0, -3):  # a parameter of each end of the network
        theta[: critic.n_parameters] = start(critic, generator)[: critic.n_parameters]
        theta[: critic.n_parameters][place] = value
        assert not model_of(X, codes, critic, generator).clipped_gradient_sum(theta, lot_of(range(10)), 0.1).any()


def test_products_that_cancel_are_clipped_by_the_sum_of_their_norms():
    """Their rounding errors do not cancel. Norms are 1, 1 and 1e-4; sums of norms 1, 6 and 1."""
    squares, lengths, factors = np.array([1.0, 1.0, 1e-8]), np.array([1.0, 36.0, 1.0]), np.empty(3)
    for bound, wanted in ((0.5, [0.5, 0.5, 1.0]), (1e-3, [1e-3, 1e-3, 8e-3])):
        assert not kernel.clip_factors(squares, lengths, bound, 8.0, 0.0, 1e-30, factors)
        np.testing.assert_allclose(factors, wanted, rtol=1e-12)


def test_no_row_is_longer_than_the_clip_where_products_of_weights_underflow():
    """Squares of 2.4e-23 are 0 in single precision, and their sum is 300 times what is left of it."""
    critic, generator = networks(d=784, n_classes=0, hidden=(1,))
    theta = start(critic, generator, np.float32)
    first, last = split_tables(theta[: critic.n_parameters], critic.widths)
    first[:-1], first[7], first[-1], last[:] = 2.4e-23, 3.2e-23, 0.0, [[1.0], [0.0]]
    X, codes = np.full((4, 784), 0.95, np.float32), np.zeros(0, np.int64)
    model = model_of(X, codes, critic, generator, np.float32)
    for row in range(4):
        assert np.linalg.norm(model.clipped_gradient_sum(theta, lot_of([row]), 1.0)) <= 1.0


def test_inputs_against_which_a_factor_may_round_to_nothing_mute_the_row():
    inputs, deltas = np.ones((3, 3, 2), np.float32), np.ones((3, 3, 1), np.float32)
    inputs[1, 1], inputs[2, 2] = 1e19, 1e21
    squares, lengths = np.zeros(3), np.zeros(3)
    kernel.add_grams(inputs, deltas, squares, lengths)
    assert np.array_equal(np.isinf(lengths), [False, False, True])


def test_factors_of_norms_that_are_out_of_range_are_zero():
    squares, factors = np.array([np.inf, np.nan, 1e70]), np.empty(3)
    assert kernel.clip_factors(squares, np.ones(3), 0.5, 8.0, 0.0, 1e-30, factors)
    np.testing.assert_array_equal(factors, 0.0)


@pytest.mark.compiled
def test_the_error_of_products_by_the_features_is_in_the_norm():
    """Against double precision, in which the same factors are multiplied: no norm in float32 is too short."""
    critic, generator = networks(d=700, hidden=(24, 16))
    X, codes = rows_of(64, 700, dtype=np.float32)
    theta = start(critic, generator, np.float32)
    exact = theta.astype(np.float64)
    clip = 1e-3
    single = model_of(X, codes, critic, generator, np.float32)
    double = model_of(X, codes, critic, generator, np.float64)
    for row in range(64):
        one = single.clipped_gradient_sum(theta, lot_of([row], row), clip)
        other = double.clipped_gradient_sum(exact, lot_of([row], row), clip)
        assert np.linalg.norm(one) <= clip / (single._slack - 2e-7 * 8)
        assert np.linalg.norm(one - other) < 0.02 * clip


# --- what is made up --------------------------------------------------------------------------------------------------


@over_rows("n_classes", [0, 3])
def test_what_is_made_up_for_a_row_depends_on_its_noise_and_label_alone(n_classes):
    _, generator = networks(n_classes=n_classes)
    rng = np.random.default_rng(0)
    theta = rng.normal(size=count_parameters(generator.widths))
    latent, codes = rng.normal(size=(20, 4)), rng.integers(0, 3, 20) if n_classes else None
    made = generator.rows(theta, latent, codes)
    assert made.shape == (20, 5)
    assert np.abs(made).max() <= 1
    latent[7] = 100.0
    if n_classes:
        codes[7] = (codes[7] + 1) % 3
    again = generator.rows(theta, latent, codes)
    others = np.arange(20) != 7
    assert np.array_equal(made[others], again[others])
    assert not np.array_equal(made[7], again[7])


@over_rows("n_classes", [0, 3])
def test_gradients_of_the_generator_are_those_of_differences(n_classes):
    """To 1e-7 of their length, that of a difference of 1e-6 in double precision being about 1e-9."""
    critic, generator = networks(n_classes=n_classes)
    theta = start(critic, generator)
    of_critic, of_generator = theta[: critic.n_parameters], theta[critic.n_parameters :]
    shares = np.array([0.2, 0.5, 0.3]) if n_classes else np.zeros(0)
    steps = GeneratorSteps(critic, generator, shares, 40, SecretStream.from_random_state(1, "test"))
    found = steps(of_critic, of_generator, 3)
    draws = SecretStream.from_random_state(1, "test").spawn("step", 3)
    latent = draws.normal(160).reshape(40, 4)
    codes = None
    if n_classes:
        codes = np.searchsorted([0.2, 0.7], (draws.words(40) >> np.uint64(11)) * 2.0**-53, "right")
    tables = split_tables(of_critic, critic.widths)

    def loss(parameters):
        rows = generator.rows(parameters, latent, codes)
        labels = 4.0 * np.eye(n_classes)[codes] if n_classes else np.zeros((40, 0))
        return -np.mean([reference.critic_score(tables, 0.2, *each) for each in zip(rows, labels, strict=True)])

    for place in range(0, len(of_generator), 7):
        step = np.zeros_like(of_generator)
        step[place] = 1e-6
        wanted = (loss(of_generator + step) - loss(of_generator - step)) / 2e-6
        assert abs(found[place] - wanted) < 1e-7 * np.linalg.norm(found)


def test_the_generator_steps_after_so_many_of_the_critic_and_reads_no_gradient_of_rows():
    calls = []

    def gradient_of(of_critic, of_generator, step):
        calls.append((step, of_critic.copy()))
        return np.ones_like(of_generator)

    plain = momentum_sgd(constant(0.5), 0.0)
    optimizer = alternating(plain, plain, 2, 3, gradient_of)
    theta = np.zeros(5)
    state = optimizer.init(theta)
    for _ in range(7):
        theta, state = optimizer.update(np.array([1.0, 2.0]), state, theta)
    assert [step for step, _ in calls] == [3, 6]
    np.testing.assert_allclose(calls[1][1], [-3.0, -6.0])
    np.testing.assert_allclose(theta, [-3.5, -7.0, -1.0, -1.0, -1.0])
    assert state.n_done == 7


@over_rows("sampling", [FullBatch(), PoissonSampling(0.3)])
def test_noise_of_fakes_differs_from_step_to_step_and_from_the_lots(sampling):
    critic, generator = networks()
    X, codes = rows_of(50)
    model = model_of(X, codes, critic, generator)
    stream = SecretStream.from_random_state(0, "test")
    lots = [model.draw_lot(sampling, stream, step) for step in range(2)]
    noise = [lot.noise.normal(10) for lot in lots]
    assert not np.isclose(noise[0], noise[1]).any()
    shares = [lot.shares.words(10) for lot in lots]
    assert not np.isin(shares[0], shares[1]).any()
    assert not np.isin(shares[0], stream.words(1000)).any()


# --- kernels, by the plain reading ------------------------------------------------------------------------------------


@over_rows("dtype", [np.float32, np.float64])
def test_pairs_by_the_plain_reading(dtype):
    rng = np.random.default_rng(0)
    X, codes = rng.uniform(-1, 8, (9, 4)).astype(dtype), rng.integers(0, 3, 9)
    low, high = np.array([0.0, -2.0, 1.0, 0.5]), np.array([1.0, 2.0, 9.0, 4.0])
    rows = np.array([1, 4, 8])
    pairs = np.full((3, 2, 8), 7.0, dtype)
    kernel.gather_pairs(X, rows, low, 2.0 / (high - low), codes, 4.0, pairs)
    for i, row in enumerate(rows):
        wanted = [min(max(2 * (float(X[row, j]) - low[j]) / (high[j] - low[j]) - 1, -1), 1) for j in range(4)]
        np.testing.assert_allclose(pairs[i, 1, :4], wanted, atol=4 * np.finfo(dtype).eps)
        for side in range(2):
            np.testing.assert_array_equal(pairs[i, side, 4:], [*(4.0 * (np.arange(3) == codes[row])), 1.0])
    assert (pairs[:, 0, :4] == 7.0).all()  # what is made up goes there
