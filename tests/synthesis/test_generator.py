"""The contract of generators: shares of labels, samples, and their place in pipelines."""

import warnings

import numpy as np
import pandas as pd
import pytest
from combinations import over_rows
from replay import recording
from sklearn.pipeline import make_pipeline

import skdp

CLASSES, COLUMNS = ["a", "b", "c"], ["one", "two", "three", "four"]
GIVEN = {"bounds": (-1.0, 1.0), "classes": CLASSES, "random_state": 0, "delta": 1e-5}
GAN = {"critic_layer_sizes": 9, "generator_layer_sizes": 8, "n_latent": 3, "max_iter": 3, "sampling_rate": 0.25}
MADE = {
    "class mixture": (skdp.DPClassMixtureGenerator, {"n_components": 1}),
    "synthesizer": (skdp.DPMarginalSynthesizer, {"n_components": 8, "max_iter": 5, "n_bins": 5, "triples": False}),
    "WGAN": (skdp.DPWGAN, {**GAN, "epsilon": 20.0}),
}


def make(name, **parameters):
    kind, own = MADE[name]
    return kind(**{**GIVEN, **own, **parameters})


def rows(n, seed=0):
    return (pd.DataFrame(np.random.default_rng(seed).uniform(-1.0, 1.0, (n, 4)), columns=COLUMNS),)


def labelled(n, seed=0):
    return *rows(n, seed), np.random.default_rng(seed + 100).choice(CLASSES, n)


by_name = pytest.mark.parametrize("name", ["class mixture", "synthesizer", "WGAN"])


def fitted(name, **parameters):
    return make(name, **parameters).fit(*labelled(60))


@over_rows("shares", ["estimate", "uniform", [0.5, 0.3, 0.2]])
@by_name
def test_samples_have_the_shares_of_the_fit_whatever_becomes_of_the_parameters(name, shares):
    """Shares that were not estimated are not there, and others may be of other classes."""
    model = fitted(name, class_prevalences=shares)
    expected = model.sample(200, random_state=0)[1]
    for changed in ("estimate", "uniform", [0, 0, 1], [0.5]):
        model.set_params(class_prevalences=changed, classes=[7])
        np.testing.assert_array_equal(model.sample(200, random_state=0)[1], expected)


@by_name
def test_samples_of_none_of_many_and_of_a_seed(name):
    """Samples of two seeds differ unless one class alone is left: 15 rows are six standard deviations (1e-9)."""
    model = fitted(name, epsilon=20.0)
    X, y = model.sample(0)
    assert (X.shape, y.shape) == ((0, 4), (0,))
    one, other = (model.sample(2_000, random_state=5) for _ in range(2))
    for made, again in zip(one, other, strict=True):
        np.testing.assert_array_equal(made, again)
    assert not np.array_equal(model.sample(2_000, random_state=6)[0], one[0])
    blocks = list(model.sample_blocks(1000, 300, random_state=0))
    assert [len(block) for block, _ in blocks] == [len(each) for _, each in blocks] == [300, 300, 300, 100]
    assert list(model.sample_blocks(0)) == []
    assert len(next(model.sample_blocks(10**12, 10))[0]) == 10
    for bad in (-1, 1.5, "3", True):
        with pytest.raises(ValueError, match="`n_samples` must be"):
            model.sample(bad)
    for state in (np.random.default_rng(0), np.random.RandomState(0), None):
        assert len(model.sample(3, random_state=state)[0]) == 3
    with pytest.raises(ValueError, match="`random_state` must be"):
        model.sample(3, random_state="x")
    plain = make(name).fit(*rows(60))
    assert plain.sample(7).shape == (7, 4)
    assert not hasattr(plain, "classes_")


@by_name
def test_the_draws_of_samples_have_no_part_in_the_noise_of_the_fit(name):
    """Nothing is released by them; that another fit has other noise is tested for all fits."""
    model = fitted(name, random_state=None)
    with recording([]) as releases:
        model.sample(10, random_state=0)
    assert releases == []


@by_name
def test_classes_are_read_with_a_warning_only(name):
    X, y = labelled(60)
    with pytest.warns(skdp.PrivacyLeakWarning, match="`classes` was not set"):
        model = make(name, classes=None, random_state=None).fit(X, y)
    assert list(model.classes_) == CLASSES
    with warnings.catch_warnings(action="error"):
        model = make(name, classes=None, random_state=None).fit(X)
    assert not hasattr(model, "classes_")


@by_name
def test_it_takes_its_place_in_a_pipeline_with_one_budget(name):
    pipe = make_pipeline(skdp.DPStandardScaler(bounds=(-1.0, 1.0)), make(name, bounds=(-3.0, 3.0)))
    pipe = skdp.allocate_budget(pipe, epsilon=3.0, delta=1e-5).fit(*labelled(400))
    assert 2.99 < pipe.epsilon_ <= 3.0
    made, labels = pipe[-1].sample(10, random_state=0)
    assert (made.shape, labels.shape) == ((10, 4), (10,))
    assert type(pipe[-1]).__name__ in str(skdp.privacy_report(fitted(name, random_state=None)))
