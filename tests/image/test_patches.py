"""Random filters of whitened patches: their values, rows that follow one image alone, and what is refused."""

from __future__ import annotations

import math
import pickle
import warnings

import numpy as np
import pytest
import reference
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline, make_union
from threadpoolctl import threadpool_limits

from skdp import DPLogisticRegression, PrivacyAccountant, allocate_budget, check_pipeline
from skdp.image import PatchTransformer, ScatteringTransformer
from skdp.image.public_images import PUBLIC_IMAGES

RNG = np.random.default_rng(0)
GREY = RNG.integers(0, 256, (7, 12, 9), dtype=np.uint8)
COLOURED = RNG.integers(0, 256, (5, 12, 8, 3), dtype=np.uint8)
GAP = np.where(np.arange(7 * 12 * 9).reshape(7, 12, 9) == 77, np.nan, 0.25)


def small(**changes):
    return PatchTransformer(**{"n_filters": 5, "patch_size": 4, **changes})


def plain_rows(images, transformer):
    """Rows of images of shape (n, channels, height, width) with pixels from 0 to 1, patch by patch."""
    made = transformer._fitted_features
    rows = []
    for image in images:
        views = (image, image[..., ::-1]) if transformer.symmetric else (image,)
        terms = made._filters, made._offset, made._threshold, transformer.patch_size, transformer.stride
        row = sum(reference.patch_features(view, *terms) for view in views).ravel()
        row -= row.mean()
        rows.append(row * math.sqrt(len(row)) / np.linalg.norm(row))
    return np.array(rows)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize(("size", "stride"), [(4, 2), (3, 1), (5, 3)])
def test_rows_are_those_of_the_plain_reading(size, stride, symmetric):
    transformer = small(patch_size=size, stride=stride, symmetric=symmetric).fit(COLOURED)
    expected = plain_rows(np.moveaxis(COLOURED, 3, 1) / 255, transformer)
    np.testing.assert_allclose(transformer.transform(COLOURED), expected, rtol=0, atol=1e-4)  # float32, norm 6.3
    grey = small(patch_size=size, stride=stride, symmetric=symmetric).fit(GREY)
    np.testing.assert_allclose(grey.transform(GREY), plain_rows(GREY[:, None] / 255, grey), rtol=0, atol=1e-4)


@pytest.mark.parametrize("kind", PUBLIC_IMAGES)
def test_filters_are_white_on_made_up_patches(kind):
    """Whitened patches of the made-up images have a variance below 1 in each direction, and near it in most."""
    images = np.zeros((1, 32, 32, 3), np.uint8)
    made = small(public_images=kind, n_filters=60, patch_size=3).fit(images)._fitted_features
    patches = made._patches(PUBLIC_IMAGES[kind](400, (32, 32), 3)).reshape(-1, 27).astype(float)
    responses = patches @ made._filters.astype(float) - made._offset
    assert abs(responses.mean(axis=0)).max() < 1e-4
    variances = responses.var(axis=0)
    assert 0.02 < variances.min() <= variances.max() <= 1.0 + 1e-4
    assert made._threshold == pytest.approx(0.5 * math.sqrt(variances.mean()), rel=1e-4)


def test_filters_follow_the_seed():
    rows = [small(random_state=seed).fit_transform(GREY) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(rows[0], rows[1])
    assert abs(rows[0] - rows[2]).max() > 0.1


# --- one image, one row ---


@pytest.mark.parametrize("parameters", [{"symmetric": True}, {"stride": 1, "n_filters": 1}, {"patch_size": 2}])
@pytest.mark.parametrize("images", [GREY, COLOURED, GREY[:, :6, :7]], ids=["grey", "coloured", "small"])
def test_an_image_alone_is_the_image_among_others(images, parameters):
    """In every bit, whatever its place, and with any number of threads."""
    transformer = small(**parameters).fit(images)
    rows = transformer.transform(images)
    for i, image in enumerate(images):
        np.testing.assert_array_equal(transformer.transform(image[None])[0], rows[i])
    np.testing.assert_array_equal(transformer.transform(images[::-1]), rows[::-1])
    np.testing.assert_array_equal(clone(transformer).set_params(n_jobs=2).fit_transform(images), rows)
    with threadpool_limits(2):
        np.testing.assert_array_equal(transformer.transform(images), rows)


def test_one_image_changes_its_own_row_and_nothing_else():
    changed = COLOURED.copy()
    changed[2] = 255 - changed[2] // 2
    before, after = small().fit(COLOURED), small().fit(changed)
    a, b = before.transform(COLOURED), after.transform(changed)
    np.testing.assert_array_equal(np.delete(a, 2, axis=0), np.delete(b, 2, axis=0))
    assert not np.array_equal(a[2], b[2])
    assert pickle.dumps(before) == pickle.dumps(after)


def test_a_fit_reads_no_pixel_and_costs_nothing():
    fitted = small().fit(GAP)
    assert pickle.dumps(fitted) == pickle.dumps(small().fit(0.5 * np.ones((3, 12, 9))))
    assert (fitted.epsilon_, fitted.delta_) == (0.0, 0.0)
    assert (fitted.image_shape_, fitted.maps_shape_) == ((12, 9), (10, 2, 2))
    assert fitted.n_features_in_ == 108


@pytest.mark.parametrize("images", [GREY, COLOURED], ids=["grey", "coloured"])
def test_rows_have_one_norm(images):
    rows = small().fit_transform(images)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), math.sqrt(rows.shape[1]), rtol=1e-5)


def test_an_image_without_contrast_is_a_row_of_zeros():
    images = np.concatenate([GREY[:1], np.zeros_like(GREY[:1]), np.full_like(GREY[:1], 200)])
    rows = small().fit_transform(images)
    assert rows[0].any()
    assert not rows[1:].any()


def test_small_pixels_raise_nothing_whatever_numpy_is_told():
    """An error of arithmetic would tell of the image that has them."""
    images = np.zeros((2, 12, 9))
    images[1, 3, 4], images[1, 5, 5] = 1e-42, 1e-310
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = small().fit_transform(images)
    np.testing.assert_allclose(rows[1], rows[0], atol=1e-6)


# --- in pipelines ---


def digits():
    X, y = load_digits(return_X_y=True)
    return X.astype(np.uint8), y


def both():
    return make_union(
        ScatteringTransformer(J=1, value_range=(0, 16)), small(n_filters=20, stride=1, value_range=(0, 16))
    )


def test_it_is_a_step_that_reads_nothing():
    model = DPLogisticRegression(classes=range(10))
    assert check_pipeline(make_pipeline(small(value_range=(0, 16)), model)) == []
    assert check_pipeline(make_pipeline(both(), model)) == []


def test_a_budget_goes_to_the_private_step_alone():
    X, y = digits()
    accountant = PrivacyAccountant(1.0, 1e-5)
    pipeline = make_pipeline(both(), DPLogisticRegression(classes=range(10), accountant=accountant))
    fitted = allocate_budget(pipeline, 1.0, 1e-5).fit(X, y)
    assert 0.999 <= fitted.epsilon_ <= 1.0
    assert len(accountant.history) == 1
    rows = fitted[0].transform(X)
    assert fitted[-1].data_norm_ == pytest.approx(math.sqrt(9 * 16 + 160))
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), math.sqrt(9 * 16 + 160), rtol=1e-5)
    assert fitted.score(X, y) > 0.8


@pytest.mark.parametrize(
    ("parameters", "images", "message"),
    [
        ({}, GREY / 128, r"outside of 0 to 1"),
        ({"value_range": (0, 100)}, GREY, r"outside of value_range=\(0, 100\)"),
        ({}, GAP, r"contains NaN"),
        ({"n_filters": 0}, GREY, r"n_filters=0"),
        ({"patch_size": 10}, GREY, r"patch_size=10 is too large for images of 12 x 9 pixels"),
        ({"stride": 2.5}, GREY, r"stride=2.5"),
        ({"random_state": None}, GREY, r"random_state=None"),
        ({"symmetric": 1}, GREY, r"symmetric=1"),
    ],
)
def test_what_is_refused_is_refused_by_one_line_without_a_pixel(parameters, images, message):
    with pytest.raises(ValueError, match=message) as caught:
        small(**parameters).fit_transform(images)
    assert "\n" not in str(caught.value)
    assert "0.25" not in str(caught.value)
