"""Random filters of whitened patches: their values, rows that follow one image alone, and what is rejected."""

import math

import numpy as np
import pytest
import reference

from skdp.image import PatchTransformer
from skdp.image.reading import PUBLIC_IMAGES

RNG = np.random.default_rng(0)
GRAY = RNG.integers(0, 256, (7, 12, 9), dtype=np.uint8)
COLORED = RNG.integers(0, 256, (5, 12, 8, 3), dtype=np.uint8)
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
    transformer = small(patch_size=size, stride=stride, symmetric=symmetric).fit(COLORED)
    expected = plain_rows(np.moveaxis(COLORED, 3, 1) / 255, transformer)
    np.testing.assert_allclose(transformer.transform(COLORED), expected, rtol=0, atol=1e-4)  # float32, norm 6.3
    gray = small(patch_size=size, stride=stride, symmetric=symmetric).fit(GRAY)
    np.testing.assert_allclose(gray.transform(GRAY), plain_rows(GRAY[:, None] / 255, gray), rtol=0, atol=1e-4)


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
    rows = [small(random_state=seed).fit_transform(GRAY) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(rows[0], rows[1])
    assert abs(rows[0] - rows[2]).max() > 0.1


# --- in pipelines ---


@pytest.mark.parametrize(
    ("parameters", "images", "message"),
    [
        ({}, GRAY / 128, r"outside of \[0, 1\]"),
        ({"value_range": (0, 100)}, GRAY, r"outside of value_range=\(0, 100\)"),
        ({}, GAP, r"contains NaN"),
        ({"n_filters": 0}, GRAY, r"`n_filters` must be"),
        ({"patch_size": 10}, GRAY, "`patch_size` must be at most 9 for images of 12 x 9 pixels"),
        ({"stride": 2.5}, GRAY, r"`stride` must be"),
        ({"random_state": None}, GRAY, r"`random_state` must be"),
        ({"symmetric": 1}, GRAY, r"`symmetric` must be"),
    ],
)
def test_what_is_rejected_is_rejected_by_one_line_without_a_pixel(parameters, images, message):
    with pytest.raises(ValueError, match=message) as caught:
        small(**parameters).fit_transform(images)
    assert "\n" not in str(caught.value)
    assert "0.25" not in str(caught.value)
