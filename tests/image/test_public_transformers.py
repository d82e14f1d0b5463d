"""What both transformers of images promise: a fit reads no pixel, and a row follows from its image alone."""

import math
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline, make_union
from threadpoolctl import threadpool_limits

from skdp import DPPCA, DPLogisticRegression, PrivacyAccountant, allocate_budget, check_pipeline
from skdp.image import PatchTransformer, ScatteringTransformer

RNG = np.random.default_rng(0)
IMAGES = {
    "gray": RNG.integers(0, 256, (7, 12, 9), dtype=np.uint8),
    "colored": RNG.integers(0, 256, (5, 12, 8, 3), dtype=np.uint8),
    "small": RNG.integers(0, 256, (4, 6, 7), dtype=np.uint8),
}
COLORED = IMAGES["colored"]


def patches(**changes):
    return PatchTransformer(**{"n_filters": 5, "patch_size": 4, **changes})


MADE = {
    "scattering": ScatteringTransformer(),
    "scattering of groups": ScatteringTransformer(normalization="groups"),
    "scattering of given colors": ScatteringTransformer(colors="given", normalization=None),
    "scattering of mirror images": ScatteringTransformer(L=4, symmetric=True, public_images="drawings"),
    "patches": patches(),
    "one filter": patches(stride=1, n_filters=1),
    "patches of mirror images": patches(patch_size=2, symmetric=True),
}
each = pytest.mark.parametrize("name", MADE)


@each
@pytest.mark.parametrize("images", ["colored", "small"])
def test_an_image_alone_is_the_image_among_others(name, images):
    """In every bit, whatever its place, and with any number of threads."""
    transformer, images = clone(MADE[name]).fit(IMAGES[images]), IMAGES[images]
    rows = transformer.transform(images)
    for i, image in enumerate(images):
        np.testing.assert_array_equal(transformer.transform(image[None])[0], rows[i])
    np.testing.assert_array_equal(transformer.transform(images[::-1]), rows[::-1])
    np.testing.assert_array_equal(clone(transformer).set_params(n_jobs=2).fit_transform(images), rows)
    with threadpool_limits(2):
        np.testing.assert_array_equal(transformer.transform(images), rows)


@pytest.mark.parametrize("shape", [(12, 2), (3, 9)])
def test_images_as_thin_as_a_window_have_rows_of_their_own(shape):
    images = IMAGES["gray"][:, : shape[0], : shape[1]]
    transformer = ScatteringTransformer(J=1).fit(images)
    np.testing.assert_array_equal(transformer.transform(images[3:4])[0], transformer.transform(images)[3])


@each
def test_one_image_changes_its_own_row_and_nothing_else(name):
    changed = COLORED.copy()
    changed[2] = 255 - changed[2] // 2
    before, after = (clone(MADE[name]).fit(images) for images in (COLORED, changed))
    a, b = before.transform(COLORED), after.transform(changed)
    np.testing.assert_array_equal(np.delete(a, 2, axis=0), np.delete(b, 2, axis=0))
    assert not np.array_equal(a[2], b[2])
    assert pickle.dumps(before) == pickle.dumps(after)


@each
def test_a_fit_reads_no_pixel_and_costs_nothing(name):
    """Whatever the pixels are, gaps included: all that is kept of a fit is the same, bit by bit."""
    transformer = clone(MADE[name]).fit(COLORED)
    assert (transformer.epsilon_, transformer.delta_) == (0.0, 0.0)
    assert (transformer.image_shape_, transformer.n_features_in_) == ((12, 8, 3), 12 * 8 * 3)
    kept = pickle.dumps(transformer)
    for other in (COLORED[::-1], 0 * COLORED, 255 - 0 * COLORED, COLORED / 255):
        assert pickle.dumps(clone(MADE[name]).fit(other)) == kept
    for gap in (np.nan, -np.inf, 1e300):
        assert pickle.dumps(clone(MADE[name]).fit(np.full(COLORED.shape, gap))) == kept


@pytest.mark.parametrize("name", [name for name in MADE if "given" not in name])
def test_rows_have_one_norm(name):
    rows = clone(MADE[name]).fit_transform(COLORED)
    np.testing.assert_allclose(np.linalg.norm(rows.astype(float), axis=1), math.sqrt(rows.shape[1]), rtol=1e-5)


@pytest.mark.parametrize("name", ["scattering of groups", "patches"])
def test_an_image_without_contrast_is_a_row_of_zeros(name):
    for level in (0, 7, 255):
        assert not clone(MADE[name]).fit_transform(np.full((2, 12, 8, 3), level, np.uint8)).any()


@each
def test_small_pixels_raise_nothing_whatever_numpy_is_told(name):
    """An error of arithmetic would tell of the image that has them."""
    images = np.zeros((2, 12, 9))
    images[1, 3, 4], images[1, 5, 5] = 1e-42, 1e-310
    with np.errstate(all="raise"), warnings.catch_warnings(action="error"):
        rows = clone(MADE[name]).fit_transform(images)
    np.testing.assert_allclose(rows[1], rows[0], atol=1e-6)


def test_it_is_a_step_that_reads_nothing():
    model = DPLogisticRegression(classes=range(10))
    for transformer in MADE.values():
        assert check_pipeline(make_pipeline(transformer, model)) == []


def digits():
    X, y = load_digits(return_X_y=True)
    return X.astype(np.uint8), y


def test_a_budget_goes_to_the_private_step_alone():
    X, y = digits()
    accountant = PrivacyAccountant(1.0, 1e-5)
    both = make_union(
        ScatteringTransformer(J=1, value_range=(0, 16)), patches(n_filters=20, stride=1, value_range=(0, 16))
    )
    pipeline = make_pipeline(both, DPLogisticRegression(classes=range(10), max_iter=20, accountant=accountant))
    fitted = allocate_budget(pipeline, 1.0, 1e-5).fit(X, y)
    assert 0.999 <= fitted.epsilon_ <= 1.0
    assert len(accountant.history) == 1
    assert fitted[-1].data_norm_ == pytest.approx(math.sqrt(9 * 16 + 160))
    assert fitted.score(X, y) > 0.5
    alone = DPLogisticRegression(classes=range(10), max_iter=1).fit(both.transformer_list[0][1].fit_transform(X), y)
    assert alone.data_norm_ == pytest.approx(math.sqrt(9 * 16))


@pytest.mark.parametrize("transformer", [ScatteringTransformer(J=1), patches()])
def test_behind_a_private_step_it_is_rejected_before_the_charge(transformer):
    X, y = digits()
    accountant = PrivacyAccountant()
    model = DPLogisticRegression(classes=range(10), accountant=accountant)
    with pytest.raises(ValueError, match="must be the first step"):
        allocate_budget(make_pipeline(DPPCA(16, accountant=accountant), transformer, model), 1.0, 1e-5).fit(X, y)
    assert not accountant.history
