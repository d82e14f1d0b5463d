"""MNIST from a file: shapes, scale, order, and one line for what is none."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from skdp.datasets import load_mnist

RNG = np.random.default_rng(0)
PARTS = {
    "x_train": RNG.integers(0, 256, (30, 28, 28), dtype=np.uint8), "y_train": RNG.integers(0, 10, 30, dtype=np.uint8),
    "x_test": RNG.integers(0, 256, (10, 28, 28), dtype=np.uint8), "y_test": RNG.integers(0, 10, 10, dtype=np.uint8),
}  # fmt: skip


def written(tmp_path, **changes):
    path = tmp_path / "mnist.npz"
    np.savez(path, **{name: part for name, part in {**PARTS, **changes}.items() if part is not None})
    return path


def test_rows_labels_and_classes(tmp_path):
    digits = load_mnist(written(tmp_path))
    for data, target, part in ((digits.data, digits.target, "train"), (digits.test_data, digits.test_target, "test")):
        np.testing.assert_array_equal(data, PARTS[f"x_{part}"].reshape(-1, 784) / np.float32(255))
        np.testing.assert_array_equal(target, PARTS[f"y_{part}"])
        assert (data.dtype, target.dtype) == (np.float32, np.int64)
    assert digits.classes == tuple(range(10))


def test_the_real_file():
    folder = os.environ.get("SKDP_DATA")
    if folder is None:
        pytest.skip("SKDP_DATA is not set: the made-up file of the other tests serves")
    digits = load_mnist(Path(folder) / "mnist.npz")
    assert digits.data.shape == (60_000, 784)
    assert digits.test_data.shape == (10_000, 784)
    assert (digits.data.min(), digits.data.max()) == (0.0, 1.0)
    np.testing.assert_array_equal(digits.target[:10], [5, 0, 4, 1, 9, 2, 1, 3, 1, 4])
    assert np.median(np.linalg.norm(digits.data, axis=1)) == pytest.approx(9.2, abs=0.2)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"missing\.npz.*there is no such file"):
        load_mnist(tmp_path / "missing.npz")


@pytest.mark.parametrize(
    ("changes", "message"), [({"y_test": None}, "is no .npz with x_train"), ({"x_test": np.ones((10, 5))}, "28 x 28")]
)
def test_a_file_of_another_kind(changes, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        load_mnist(written(tmp_path, **changes))


def test_what_is_no_archive(tmp_path):
    path = tmp_path / "mnist.npz"
    path.write_text("digits")
    with pytest.raises(ValueError, match=r"is no \.npz"):
        load_mnist(path)
