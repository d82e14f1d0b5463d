"""`DPWGAN`: what a fit releases and what it costs, what one row can move, what it keeps, and what it rejects."""

import math

import numpy as np
import pytest
from combinations import crossed, over_rows
from rejections import assert_rejected
from relations import with_n_public
from replay import assert_all_else_is_equal, moves, recording, replay
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from skdp import DPPCA, AddRemove, DPOneHotEncoder, DPStandardScaler, PrivacyAccountant, allocate_budget
from skdp.accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent, compose, get_epsilon
from skdp.exceptions import FitInterruptedWarning
from skdp.synthesis import DPWGAN, adversaries
from skdp.synthesis.critic import CriticModel
from skdp.synthesis.wgan import COUNT_NOISE

ADJACENCIES = ["zero_out", "add_remove", "replace_one"]
FAST = {"critic_layer_sizes": (9, 7), "generator_layer_sizes": 8, "n_latent": 3, "max_iter": 3}


def rows_of(n=80, d=4, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return np.clip(rng.normal(y[:, None] - 1.0, 0.4, (n, d)), -2, 2).astype(dtype), y


def wgan(**parameters):
    given = {"bounds": (-2.0, 2.0), "classes": [0, 1, 2], "random_state": 0, "sampling_rate": 0.25, "epsilon": 20.0}
    return DPWGAN(**{**given, **FAST, **parameters})


# --- one row ---------------------------------------------------------------------------------------------------------


CRITICS = {"dense": {}, "convolutional": {"image_shape": (2, 2), "capacity": 2}}


@over_rows(
    "critic, with_labels, adjacency, rate",
    crossed(3, critic=CRITICS, labels=[False, True], adjacency=["add_remove", "replace_one"], rate=[0.25, 1.0]),
)
def test_one_row_moves_each_release_by_its_sensitivity_and_nothing_else(critic, with_labels, adjacency, rate):
    """With the outputs of all mechanisms frozen. The row is the last: all others keep their places without it.

    Under add_remove rows are computed in double precision, and sums are divided by the public number of rows.
    """
    X, y = rows_of()
    other, other_y = X[:-1], y[:-1]
    if adjacency == "replace_one":
        other, other_y = X.copy(), y.copy()
        other[-1], other_y[-1] = 1e30, (y[-1] + 1) % 3
    model = wgan(adjacency=with_n_public(adjacency, 80), sampling_rate=rate, **CRITICS[critic])
    rows = [(x, labels if with_labels else None) for x, labels in ((X, y), (other, other_y))]
    first, second = replay(lambda given: clone(model).fit(*given), *rows)
    assert len(first.releases) == math.ceil(3 / rate) + with_labels
    factor, room = 2.0 if adjacency == "replace_one" else 1.0, 1e-12
    # The row was in some lot; two rows may pull in nearly the same direction.
    assert (0.05 if adjacency == "replace_one" else 0.9) < max(moves(first, second)) <= factor * (1 + room)
    assert_all_else_is_equal(first, second)


@over_rows("shares", ["estimate", "uniform", [1.0, 2.0, 1.0]])
@over_rows("adjacency", ADJACENCIES)
def test_the_price_is_that_of_counts_and_steps(adjacency, shares):
    X, y = rows_of()
    model = wgan(adjacency=with_n_public(adjacency, 80), class_prevalences=shares, delta=1e-5).fit(X, y)
    sigma = model.noise_multiplier_
    event = SelfComposedDpEvent(PoissonSampledDpEvent(0.25, GaussianDpEvent(sigma)), 12)
    if shares == "estimate":
        event = compose([GaussianDpEvent(COUNT_NOISE * sigma), event])
    assert model.privacy_event_ == event
    assert model.epsilon_ == pytest.approx(get_epsilon(event, 1e-5, adjacency=adjacency))
    assert 19.9 < model.epsilon_ <= 20.0


def test_estimated_shares_are_near_those_of_the_rows():
    """Noise of 10 sigma on 3 counts of 4,000 rows: a standard deviation of .003."""
    rng = np.random.default_rng(0)
    y = rng.choice(3, 4000, p=[0.6, 0.3, 0.1])
    X = rng.uniform(-2, 2, (4000, 2)).astype(np.float32)
    model = wgan(epsilon=None, noise_multiplier=1.0, max_iter=1).fit(X, y)
    np.testing.assert_allclose(model.class_prevalences_, np.bincount(y) / 4000, atol=0.018)
    assert model.class_prevalences_.sum() == pytest.approx(1)


# --- what it learns --------------------------------------------------------------------------------------------------


def test_it_learns_where_the_classes_are():
    """With little noise: nine in ten of two blobs at (-1, 1) and (1, -1) come back on the side of their label.

    In 9 of 16 fits the means are right too. Even if this is so in 3 of 10 alone, all of 40 fits miss them with a
    chance of 1e-6.
    """
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 1000)
    X = rng.normal(0, 0.2, (1000, 2)) + np.where(y[:, None] == 1, [1.0, -1.0], [-1.0, 1.0])

    def learns(seed):
        model = DPWGAN(
            (-2, 2), classes=[0, 1], epsilon=None, noise_multiplier=0.01, max_grad_norm=1.0, lot_size=200,
            max_iter=1000, critic_layer_sizes=32, generator_layer_sizes=32, n_latent=8, random_state=seed,
        ).fit(X, y)  # fmt: skip
        made, labels = model.sample(2000, random_state=0)
        means = [made[labels == label].mean(axis=0) for label in (0, 1)]
        is_right = np.allclose(means, [[-1.0, 1.0], [1.0, -1.0]], rtol=0.0, atol=0.25)
        return is_right and np.mean((made[:, 0] > made[:, 1]) == (labels == 1)) > 0.9

    assert any(learns(seed) for seed in range(1, 41))


def test_a_convolutional_critic_learns_where_the_strokes_are():
    """With little noise: bright columns of images of 6 x 6 pixels come back where their labels say."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    images = rng.uniform(0, 0.2, (400, 6, 6)).astype(np.float32)
    images[y == 0, :, 1] += 0.7
    images[y == 1, :, 4] += 0.7
    model = DPWGAN(
        (0, 1), classes=[0, 1], image_shape=(6, 6), capacity=2, epsilon=None, noise_multiplier=0.01, max_grad_norm=1.0,
        lot_size=32, max_iter=50, generator_layer_sizes=32, n_latent=4, random_state=3,
    ).fit(images.reshape(400, 36), y)  # fmt: skip
    made, labels = model.sample(500, random_state=0)
    made = made.reshape(500, 6, 6).mean(axis=1)
    assert np.mean((made[:, 4] > made[:, 1]) == (labels == 1)) > 0.9


def test_critic_steps_follow_a_rule_in_the_noise():
    X, y = rows_of()
    assert wgan(epsilon=None, noise_multiplier=1.4).fit(X, y).critic_steps_ == 5
    assert wgan(epsilon=None, noise_multiplier=1.5).fit(X, y).critic_steps_ == 10
    assert wgan(critic_steps=3).fit(X, y).critic_steps_ == 3


# --- samples ---------------------------------------------------------------------------------------------------------


@over_rows("dtype", [np.float32, np.float64])
def test_samples_lie_in_the_bounds_and_have_the_type_of_the_rows(dtype):
    X, y = rows_of(dtype=dtype)
    bounds = [(-2, 2), (-1, 1), (0, 5), (-2.5, -2.25)]
    model = wgan(bounds=bounds).fit(X, y)
    made, labels = model.sample(300, random_state=1)
    assert made.dtype == dtype
    assert made.shape == (300, 4)
    assert set(labels) <= {0, 1, 2}
    low, high = np.array(bounds, dtype).T
    assert (made >= low).all()
    assert (made <= high).all()
    np.testing.assert_array_equal(model.bounds_, bounds)


# --- charges, rejections, and what is published ----------------------------------------------------------------------

GOOD, GOOD_Y = rows_of(20)


def test_parameters_decay():
    kept, shrunk = (wgan(weight_decay=decay, average=None).fit(GOOD) for decay in (0.0, 1e5))
    assert max(np.abs(each).max() for each in kept.coefs_) > 0.1
    # a step of Adam is no longer than its step size by much, and the next divides it by 201
    assert max(np.abs(each).max() for each in shrunk.coefs_ + shrunk.intercepts_) < 1e-3


BAD_INPUT = [
    ({"bounds": None}, {}, ["`bounds` must be a pair (low, high), or a list with one pair for every"]),
    ({"bounds": [(0, 1)]}, {}, ["`bounds` has 1 entries, but X has 4 columns"]),
    ({"critic_layer_sizes": ()}, {}, ["at least one hidden layer"]),
    ({"generator_layer_sizes": "wide"}, {}, ["`generator_layer_sizes` must be"]),
    ({"image_shape": (3, 3)}, {}, ["image_shape", "(3, 3)", "rows of 4 columns"]),
    ({"critic_steps": "many"}, {}, ["`critic_steps` must be"]),
    ({"gradient_penalty": -1}, {}, ["`gradient_penalty` must be"]),
    ({"average": "tail"}, {}, ["`average` must be"]),
    ({"class_prevalences": "counted"}, {"y": GOOD_Y}, ["class_prevalences", "'counted'"]),
    ({}, {"X": GOOD[:1]}, ["1 sample", "2 rows"]),
    ({}, {"X": GOOD[:2], "y": GOOD_Y[:2]}, ["at least one row per class (3)"]),
    ({"classes": [0, 1]}, {"y": GOOD_Y}, ["labels that are not in classes"]),
]


@over_rows("parameters, given, words", BAD_INPUT)
def test_bad_input_is_rejected_in_one_line_before_any_charge(parameters, given, words):
    assert_rejected(wgan, parameters, {"X": GOOD, **given}, words)


def test_an_interrupted_fit_keeps_its_charge_and_what_it_learned(monkeypatch):
    original, calls = CriticModel.clipped_gradient_sum, []

    def interrupted(self, *args):
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return original(self, *args)

    monkeypatch.setattr(CriticModel, "clipped_gradient_sum", interrupted)
    accountant = PrivacyAccountant()
    model = wgan(accountant=accountant)
    with pytest.warns(FitInterruptedWarning, match="after 4 of 12 steps"):
        model.fit(*rows_of())
    assert model.n_steps_ == 4
    assert model.privacy_event_ == accountant.history[0].event
    assert model.sample(3)[0].shape == (3, 4)


def test_one_column_is_a_table_too():
    """A rejection behind a step that estimates its width would come after the charge."""
    X = rows_of(40)[0][:, :1]
    assert wgan(bounds=(-2, 2)).fit(X).sample(3, 0).shape == (3, 1)
    behind = make_pipeline(DPStandardScaler(bounds=(-2.0, 2.0)), DPWGAN((-3.0, 3.0), **FAST))
    assert allocate_budget(behind, epsilon=3.0, delta=1e-5).fit(X)[-1].sample(3, 0).shape == (3, 1)


@over_rows("before", [Normalizer(), DPPCA(4)])
def test_images_may_stand_behind_steps_whose_width_is_known(before):
    X = np.random.default_rng(0).random((60, 4))
    fits, fails = (
        make_pipeline(before, DPWGAN((0, 1), image_shape=shape, capacity=2, **FAST)) for shape in ((2, 2), (3, 2))
    )
    assert allocate_budget(fits, epsilon=3.0, delta=1e-5).fit(X)[-1].n_features_in_ == 4
    with pytest.raises(ValueError, match=r"must be a shape of rows of 4 columns, got \(3, 2\)"):
        allocate_budget(fails, epsilon=3.0, delta=1e-5).fit(X)


@over_rows(
    "between, parameters",
    [
        (Normalizer(), {"bounds": [(0, 1)] * 5}),
        (DPStandardScaler(bounds=(0, 1)), {"bounds": (0, 1), "image_shape": (1, 1)}),
    ],
)
def test_estimated_width_is_kept_over_steps(between, parameters):
    accountant = PrivacyAccountant()
    X = np.random.default_rng(0).integers(0, 3, (200, 2)).astype(str)
    first = DPOneHotEncoder(sparse_output=False)
    steps = make_pipeline(first, clone(between), DPWGAN(accountant=accountant, **FAST, **parameters))
    with pytest.raises(ValueError, match=r"columns is chosen by the previous step|but the previous step sets it"):
        allocate_budget(steps, epsilon=3.0, delta=1e-5).fit(X)
    assert [entry for entry in accountant.history if entry.kind == "charge"] == []
    chosen = make_pipeline(first, DPPCA(3), DPWGAN([(0, 1)] * 3, **FAST))
    assert allocate_budget(chosen, epsilon=3.0, delta=1e-5).fit(X)[-1].n_features_in_ == 3


def test_sums_are_divided_by_the_expected_size_of_a_lot(monkeypatch):
    """Gradients that reach the optimizer are releases divided by one public number."""
    seen, original = [], adversaries.alternating

    def watched(*args):
        optimizer = original(*args)

        def update(gradient, state, theta):
            seen.append(gradient.copy())
            return optimizer.update(gradient, state, theta)

        return optimizer._replace(update=update)

    monkeypatch.setattr("skdp.synthesis.adversaries.alternating", watched)
    X, y = rows_of()
    for rows in (80, 75):
        seen.clear()
        with recording([]) as releases:
            wgan(class_prevalences="uniform", adjacency=AddRemove(80)).fit(X[:rows], y[:rows])
        assert len(seen) == 12
        for gradient, release in zip(seen, releases, strict=True):
            np.testing.assert_allclose(gradient, release.noisy / 20.0, rtol=1e-12)


def test_steps_of_the_generator_see_no_exact_count(monkeypatch):
    """They draw labels by the shares that samples are drawn by."""
    seen, original = [], adversaries.GeneratorSteps

    def watched(critic, generator, shares, *rest):
        seen.append(shares)
        return original(critic, generator, shares, *rest)

    monkeypatch.setattr(adversaries, "GeneratorSteps", watched)
    X, y = rows_of()
    for shares in ("estimate", "uniform", [1.0, 0.0, 3.0]):
        model = wgan(class_prevalences=shares).fit(X, y)
        np.testing.assert_array_equal(seen[-1], model.class_prevalences_)
        exact = np.bincount(y, minlength=3) / len(y)
        assert not np.isclose(model.class_prevalences_, exact, atol=1e-9).all()
    np.testing.assert_allclose(seen[1], [1 / 3] * 3)
    np.testing.assert_allclose(seen[2], [0.25, 0.0, 0.75])
    assert 2 not in set(wgan(class_prevalences=[1.0, 1.0, 0.0]).fit(X, y).sample(500, 0)[1])


@pytest.mark.parametrize(
    ("adjacency", "dtype"), [("zero_out", np.float32), ("add_remove", np.float64), ("replace_one", np.float32)]
)
def test_rows_that_shift_are_computed_in_double_precision(monkeypatch, adjacency, dtype):
    """A row that is removed moves all rows after it, and with them the rounding errors of their sums."""
    seen, original = [], CriticModel.clipped_gradient_sum

    def watched(self, theta, *args):
        seen.append((theta.dtype, self._pairs.dtype))
        return original(self, theta, *args)

    monkeypatch.setattr(CriticModel, "clipped_gradient_sum", watched)
    X, y = rows_of(dtype=np.float32)
    wgan(adjacency=with_n_public(adjacency, 80)).fit(X, y)
    dtype = np.dtype(np.float64 if adjacency == "add_remove" else np.float32)
    assert set(seen) == {(dtype, dtype)}


@pytest.mark.parametrize("parameters", [{"weight_decay": -1}, {"image_shape": (5, 1)}, {"n_latent": 0}], ids=str)
def test_bad_parameters_after_an_estimated_width_are_rejected_before_the_charge(parameters):
    accountant = PrivacyAccountant()
    before = DPOneHotEncoder(sparse_output=False, accountant=accountant)
    steps = make_pipeline(before, DPWGAN((0, 1), accountant=accountant, **{**FAST, **parameters}))
    with pytest.raises(ValueError, match=next(iter(parameters))):
        allocate_budget(steps, epsilon=3.0, delta=1e-5).fit(np.full((200, 1), "a", object))
    assert [entry for entry in accountant.history if entry.kind == "charge"] == []
