"""Scattering: its mathematics, values of another implementation, images of any layout, and what is rejected."""

import errno
import math
import os
import pathlib
import resource
import warnings

import numpy as np
import pandas as pd
import pytest
import reference
from combinations import combined

from skdp._dpsgd.models.linear import LinearGeometry
from skdp._dpsgd.models.linear_layouts import WideLinearModel
from skdp.image import ScatteringTransformer
from skdp.image.features import Scattering
from skdp.image.reading import PUBLIC_IMAGES

GOLDEN = np.load(pathlib.Path(__file__).parents[1] / "golden" / "scattering.npz", allow_pickle=False)
CASES = {"mnist": (2, 8), "cifar": (2, 8), "odd": (3, 4), "one": (1, 6)}
RNG = np.random.default_rng(0)
GRAY = RNG.integers(0, 256, (7, 12, 9), dtype=np.uint8)
COLORED = RNG.integers(0, 256, (5, 12, 8, 3), dtype=np.uint8)


def coefficients(planes, n_scales, n_angles, max_order=2):
    """Coefficients of planes, as the engine writes them."""
    scattering = Scattering(planes.shape[1:], n_scales, n_angles, max_order)
    made = np.full((len(planes), len(scattering.scales), *scattering.map_shape), np.nan, np.float32)
    scattering.transform(np.asarray(planes, np.float32), made)
    return made


def plain(**changes):
    return ScatteringTransformer(**{"colors": "given", "normalization": None, **changes})


# --- the transform ---


@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_kymatio(name):
    """Up to its pi of 3.1415, which divides every filter: a coefficient of order m has m + 1 of them."""
    (n_scales, n_angles), images = CASES[name], GOLDEN[f"{name}_images"]
    made = coefficients(images / np.float32(255), n_scales, n_angles)
    orders = [len(scales) for scales in Scattering(images.shape[1:], n_scales, n_angles, 2).scales]
    expected = GOLDEN[name] * (3.1415 / math.pi) ** (np.array(orders) + 1)[:, None, None]
    np.testing.assert_allclose(made, expected, rtol=0, atol=2e-6 * expected.max())  # filters and FFTs of float32


@pytest.mark.parametrize(("shape", "n_scales", "n_angles", "max_order"), [
    ((8, 11), 2, 3, 2), ((9, 8), 3, 2, 2), ((7, 8), 2, 5, 1),
])  # fmt: skip
def test_values_are_those_of_the_plain_reading(shape, n_scales, n_angles, max_order):
    planes = np.random.default_rng(1).uniform(size=(2, *shape))
    made = coefficients(planes, n_scales, n_angles, max_order)
    expected = [reference.scattering(plane, n_scales, n_angles, max_order) for plane in planes]
    np.testing.assert_allclose(made, expected, rtol=0, atol=1e-6)  # float32, of values up to 1


# --- rows ---


def test_layouts_of_one_image_give_one_row():
    rows = plain().fit_transform(COLORED)
    first = np.ascontiguousarray(np.moveaxis(COLORED, 3, 1))
    flat = plain(image_shape=(12, 8, 3))
    for transformer, images in (
        (plain(), first), (flat, COLORED.reshape(5, -1)), (flat, COLORED),
        (plain(image_shape=(3, 12, 8)), first.reshape(5, -1)), (flat, pd.DataFrame(COLORED.reshape(5, -1))),
        (flat, np.asfortranarray(COLORED.reshape(5, -1))),
    ):  # fmt: skip
        np.testing.assert_array_equal(transformer.fit_transform(images), rows)
    squares = GRAY[:, :9, :9]
    expected = plain().fit_transform(squares)
    np.testing.assert_array_equal(plain().fit_transform(squares.reshape(7, 81)), expected)
    np.testing.assert_array_equal(plain().fit_transform(squares[..., None]), expected)


def test_coefficients_are_those_of_planes():
    """Channel by channel; opponent colors are a rotation."""
    made = plain().fit_transform(COLORED).reshape(5, 3, 81, 3, 2)
    planes = np.moveaxis(COLORED, 3, 1).reshape(15, 12, 8) / np.float32(255)
    np.testing.assert_allclose(made.reshape(15, 81, 3, 2), coefficients(planes, 2, 8), rtol=0, atol=1e-6)
    turned = plain(colors="opponent").fit_transform(COLORED).reshape(5, 3, 81, 3, 2)
    means, colors = made[:, :, 0], turned[:, :, 0]
    np.testing.assert_allclose(np.square(means).sum(axis=1), np.square(colors).sum(axis=1), rtol=1e-5)
    np.testing.assert_allclose(colors[:, 0], means.sum(axis=1) / math.sqrt(3), atol=1e-6)
    np.testing.assert_allclose(colors[:, 1], (means[:, 0] - means[:, 2]) / math.sqrt(2), atol=1e-6)


def test_groups_have_mean_0_variance_1_and_rows_one_norm():
    transformer = ScatteringTransformer(normalization="groups").fit(COLORED)
    rows = transformer.transform(COLORED)
    np.testing.assert_allclose(np.linalg.norm(rows.astype(float), axis=1), math.sqrt(rows.shape[1]), rtol=1e-6)
    maps = rows.reshape(5, 3, 81, 6).astype(float)
    for part in (slice(0, 1), slice(1, 9), slice(9, 17), slice(17, 81)):
        groups = maps[:, :, part].reshape(5, 3, -1)
        np.testing.assert_allclose(groups.mean(axis=2), 0, atol=1e-5)
        np.testing.assert_allclose(groups.var(axis=2), 1, rtol=1e-4)


@pytest.mark.parametrize("kind", PUBLIC_IMAGES)
def test_whitening_is_learned_from_made_up_images(kind):
    """The images of the fit play no part; maps of made-up images come out uncorrelated, those of groups do not."""
    transformer = ScatteringTransformer(public_images=kind).fit(GRAY)
    other = ScatteringTransformer(public_images=kind).fit(np.zeros((1, 12, 9)))
    np.testing.assert_array_equal(other.transform(GRAY), transformer.transform(GRAY))
    made_up = PUBLIC_IMAGES[kind](400, (12, 9), 1)[:, 0]
    np.testing.assert_array_equal(made_up, PUBLIC_IMAGES[kind](400, (12, 9), 1)[:, 0])
    assert 0 <= made_up.min() < made_up.max() <= 1

    def spread(normalization):
        rows = ScatteringTransformer(normalization=normalization, public_images=kind).fit_transform(made_up)
        maps = rows.reshape(400, 81, -1)
        variances = np.linalg.eigvalsh(np.cov(maps.transpose(1, 0, 2).reshape(81, -1)))
        return variances[-1] / variances.mean(), abs(maps.mean(axis=(0, 2))).max()

    largest, mean = spread("whitened")
    assert largest < 10.0
    assert mean < 0.2
    assert spread("groups")[0] > 2 * largest


@pytest.mark.parametrize("normalization", ["whitened", "groups", None])
def test_an_image_and_its_mirror_image_have_one_row(normalization):
    transformer = ScatteringTransformer(normalization=normalization, symmetric=True).fit(COLORED)
    rows, mirrored = transformer.transform(COLORED), transformer.transform(COLORED[:, :, ::-1])
    assert transformer.maps_shape_ == (243, 3, 1)
    assert transformer.transform(np.zeros((1, 12, 8, 3))).shape == rows[:1].shape
    if normalization is None:
        whole = [
            ScatteringTransformer(normalization=None).fit_transform(each) for each in (COLORED, COLORED[:, :, ::-1])
        ]
        mean = (whole[0] + whole[1]).reshape(5, 243, 3, 2)[..., :1] / 2
        np.testing.assert_allclose(rows, mean.reshape(5, -1), atol=1e-6)
    np.testing.assert_array_equal(rows, mirrored)


def test_a_file_holds_the_rows(tmp_path):
    transformer = ScatteringTransformer(n_jobs=2).fit(COLORED)
    np.save(tmp_path / "images.npy", COLORED)
    images = np.load(tmp_path / "images.npy", mmap_mode="r")
    made = transformer.transform_to(images, tmp_path / "rows.npy")
    assert isinstance(made, np.memmap)
    assert not made.flags.writeable
    np.testing.assert_array_equal(made, transformer.transform(COLORED))
    np.testing.assert_array_equal(np.load(tmp_path / "rows.npy"), made)


def test_a_file_is_whole_or_not_there(tmp_path, monkeypatch):
    """It takes the place of another once it is complete, even of the one that images are read from."""
    path = tmp_path / "rows.npy"
    np.save(path, COLORED)
    transformer = ScatteringTransformer(normalization="groups").fit(COLORED)
    write = transformer._fitted_features.write

    def write_some(planes, out):
        if write_some.calls == 1:
            raise KeyboardInterrupt
        write_some.calls += 1
        write(planes, out)

    write_some.calls = 0
    monkeypatch.setattr(transformer._fitted_features, "write", write_some)
    with pytest.raises(KeyboardInterrupt):
        transformer.transform_to(COLORED, path)
    monkeypatch.undo()
    with pytest.raises(ValueError, match=r"outside of \[0, 1\]"):
        transformer.transform_to(COLORED + 0.5, path)
    np.testing.assert_array_equal(np.load(path), COLORED)
    assert [each.name for each in tmp_path.iterdir()] == ["rows.npy"]
    rows = transformer.transform_to(np.load(path, mmap_mode="r"), path)
    np.testing.assert_array_equal(rows, transformer.transform(COLORED))
    assert [each.name for each in tmp_path.iterdir()] == ["rows.npy"]


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_nobody_else_reads_the_file(tmp_path):
    path = tmp_path / "rows.npy"
    ScatteringTransformer(normalization="groups").fit(COLORED).transform_to(COLORED, path)
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("full", ["at the first byte", "under the map"])
def test_a_full_disk_is_an_error_that_names_the_file_and_leaves_it_as_it_was(tmp_path, monkeypatch, full):
    """Writing to a map beyond the room there is would kill the process: the room is taken first."""
    path, transformer = tmp_path / "rows.npy", ScatteringTransformer(normalization="groups").fit(COLORED)
    transformer.transform_to(COLORED, path)
    before, taken = path.read_bytes(), []

    def no_room(descriptor, start, size):
        taken.append((os.fstat(descriptor).st_size, start, size))
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", no_room)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        if full == "at the first byte":
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        with pytest.raises(
            OSError, match=r"^path='.*rows\.npy' could not be written \(.*\)\. Free disk space"
        ) as caught:
            transformer.transform_to(COLORED + 0.5, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.errno == (errno.EFBIG if full == "at the first byte" else errno.ENOSPC)
    assert taken == ([] if full == "at the first byte" else [(len(before), 0, len(before))])
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["rows.npy"]


@pytest.mark.parametrize(("kind", "ends"), [("f2", (0, 1e6)), ("f4", (-1e30, 1e30)), ("f8", (0, 1e-30))])
def test_ranges_that_a_type_just_holds(kind, ends):
    images = np.clip((ends[0] + GRAY / 255 * (ends[1] - ends[0])), -6e4, 6e4).astype(kind)
    with warnings.catch_warnings(action="error"):
        rows = plain(value_range=ends).fit_transform(images)
    expected = plain().fit_transform((images.astype(float) - ends[0]) / (ends[1] - ends[0]))
    np.testing.assert_allclose(rows, expected, rtol=0, atol=2e-6)


# --- in pipelines ---


def test_columns_have_names_of_the_class():
    transformer = ScatteringTransformer(J=1, L=2).fit(GRAY)
    names = transformer.get_feature_names_out()
    assert len(names) == transformer.transform(GRAY).shape[1]
    assert names[0] == "scatteringtransformer0"
    frame = transformer.set_output(transform="pandas").transform(GRAY)
    assert list(frame.columns) == list(names)


@pytest.mark.parametrize("symmetric", [False, True])
def test_one_image_with_its_mirror_image_moves_a_step_by_the_clip(symmetric):
    """Two views of an image are one row, whose gradient is clipped once; the null record is a row of weight 0."""
    transformer = ScatteringTransformer(symmetric=symmetric, J=1).fit(COLORED)
    theta = np.random.default_rng(7).normal(0.0, 3.0, 10 * (transformer.transform(COLORED).shape[1] + 1))
    geometry = LinearGeometry(math.sqrt(transformer.transform(COLORED).shape[1]), True)

    def summed(images, weights):
        rows = transformer.transform(images)
        model = WideLinearModel(rows, np.arange(5), weights, 10, geometry, dtype=np.float32)
        return model.clipped_gradient_sum(theta, None, 0.5)

    weights = np.ones(5, np.float32)
    muted = weights.copy()
    muted[2] = 0.0
    changed = COLORED.copy()
    moved = []
    for image in (COLORED[2], 0 * COLORED[2], np.where(np.arange(8)[:, None] % 2, 255, 0).astype(np.uint8)):
        changed[2] = image
        moved.append(np.linalg.norm(summed(changed, weights) - summed(changed, muted)))
    assert max(moved) <= 0.5
    assert max(moved) > 0.49  # gradients are longer than the clip


# --- lists ---


def in_lists(images):
    """Lists that hold the same images, as `tolist` and `list` make them."""
    rows = images.reshape(len(images), -1)
    return images.tolist(), rows.tolist(), list(images), [list(row) for row in rows]


@pytest.mark.parametrize("kind", [np.uint8, np.float64])
def test_images_in_lists_are_those_of_the_array(kind):
    images = GRAY if kind is np.uint8 else GRAY / kind(255)
    model = plain(image_shape=GRAY.shape[1:], value_range=(0, 255) if kind is np.uint8 else (0, 1))
    expected = model.fit_transform(images)
    for listed in in_lists(images):
        np.testing.assert_allclose(model.fit_transform(listed), expected, rtol=0, atol=1e-6)
    by_type = plain(image_shape=GRAY.shape[1:])
    for listed in in_lists(images)[2 if kind is np.uint8 else 0 :]:  # integers of Python have no range
        np.testing.assert_array_equal(by_type.fit_transform(listed), by_type.fit_transform(images))


@combined(
    pixel=[0, 1, True, np.float32(0.5), np.float64(0.5), np.int64(1), np.bool_(True)],
    kind=[int, float, np.float32, np.uint8],
    value_range=[None, (0, 200)],
)
def test_a_pixel_of_another_type_changes_no_other_image(value_range, kind, pixel):
    rows = [[kind(value) for value in row] for row in (GRAY % 2).reshape(len(GRAY), -1)]
    model = plain(image_shape=GRAY.shape[1:], value_range=value_range)
    expected = model.fit_transform(rows)
    rows[0][0] = pixel
    if kind is np.uint8:
        with pytest.raises(ValueError, match="Pass pixels as uint8"):
            model.fit_transform(rows)
    else:
        np.testing.assert_array_equal(model.fit_transform(rows)[1:], expected[1:])


# --- rejections ---

GAP = np.full((1, 8, 8), 0.25)
GAP[0, 3, 3] = np.nan


@pytest.mark.parametrize(
    ("parameters", "images", "message"),
    [
        ({}, GRAY.astype(float), r"outside of \[0, 1\], the range for this type. Set `value_range`"),
        ({}, -(GRAY / 255), r"outside of \[0, 1\]"),
        ({}, GRAY.astype(np.int64), r"`value_range` must be set, because pixels of type int64 have no public range"),
        ({"value_range": (0, 100)}, GRAY, r"outside of value_range=\(0, 100\)"),
        ({"value_range": "bytes"}, GRAY, r"`value_range` must be a pair .* got 'bytes'"),
        ({"value_range": (0, 10**400)}, GRAY, r"`value_range` must be a pair"),
        ({"value_range": (0, 1e-300)}, GRAY, r"`value_range` must be a pair.*at least 1e-30"),
        ({"value_range": np.array([0, 255])}, GRAY, r"`value_range` must be a pair .* got <ndarray>"),
        ({}, GAP, r"contains NaN"),
        ({}, np.where(np.isnan(GAP), -np.inf, GAP), r"infinity"),
        ({}, np.zeros((2, 10)), r"10 pixels are not a square image"),
        ({}, np.zeros((0, 8, 8)), r"at least one image"),
        ({}, np.zeros((1, 2, 3, 8, 8)), r"5 dimensions"),
        ({}, np.zeros((2, 8, 9, 10)), r"neither the first nor the last"),
        ({}, np.zeros((2, 3, 9, 3)), r"both the first and the last"),
        ({"image_shape": (8, 8, 3)}, np.zeros((2, 3, 8, 8)), r"of shape \(8, 8, 3\), got \(3, 8, 8\)"),
        ({"image_shape": 8}, np.zeros((2, 64)), r"`image_shape` must be .* got 8"),
        ({"J": 4}, GRAY, r"`J` must be at most 3 for images of 12 x 9 pixels, .*got 4"),
        ({"L": 2.5}, GRAY, "`L` must be a positive integer, such as 8"),
        ({"max_order": 3}, GRAY, "`max_order` must be 1 or 2"),
        ({"colors": "gray"}, GRAY, r"`colors` must be one of .*, got 'gray'"),
        ({"normalization": "l2"}, GRAY, r"`normalization` must be one of .*, got 'l2'"),
        ({"public_images": "icons"}, GRAY, r"`public_images` must be one of .*, got 'icons'"),
        ({"symmetric": "yes"}, GRAY, "`symmetric` must be True or False"),
        ({}, np.full((1, 4, 4), "0.5"), "X must have a numeric dtype"),
        ({}, [[[0.1, 0.2], [0.3]]], r"must be a numeric array"),
    ],
)
def test_what_is_rejected_is_rejected_by_one_line_without_a_pixel(parameters, images, message):
    with pytest.raises(ValueError, match=message) as caught:
        ScatteringTransformer(**parameters).fit_transform(images)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None
    for pixel in ("254", "0.25"):
        assert pixel not in str(caught.value)


def test_images_of_another_shape_than_at_the_fit_are_rejected():
    transformer = ScatteringTransformer(J=1).fit(GRAY)
    for images in (GRAY[:, :9], COLORED, np.zeros((2, 64))):
        with pytest.raises(ValueError, match="Set `image_shape`"):
            transformer.transform(images)
    with pytest.raises(ValueError, match="contains NaN"):
        transformer.transform(np.full((3, 12, 9), np.nan))
