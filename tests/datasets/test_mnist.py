"""MNIST from a file: shapes, scale, order, and one line for what is none."""

import io
import os
import zipfile
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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y_test": None}, "a .npz file without x_train"),
        ({"x_test": np.ones((10, 5))}, "28 x 28"),
        ({"x_test": PARTS["x_test"] / 255}, "of type uint8"),
        ({"y_test": PARTS["y_test"] + 1}, "digits from 0 to 9"),
        ({"y_train": PARTS["y_train"][:9]}, "one for each image"),
        ({"x_train": np.array([None])}, "a .npz file without x_train"),
    ],
)
def test_a_file_of_another_kind(changes, message, tmp_path):
    with pytest.raises(ValueError, match=message) as caught:
        load_mnist(written(tmp_path, **changes))
    assert "\n" not in str(caught.value)


def a_header(shape):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
    return file.getvalue()


def damaged():
    """Files that are no archives, or whose entries are damaged, encrypted, or much larger than the file."""
    whole = io.BytesIO()
    np.savez(whole, **PARTS)
    intact, array = whole.getvalue(), io.BytesIO()
    np.save(array, PARTS["x_train"])
    yield "text", b"digits"
    yield "array", array.getvalue()
    for cut in (0, len(intact) // 2):
        yield f"cut at {cut}", intact[:cut]
    yield "flipped", intact[:300] + bytes([intact[300] ^ 255]) + intact[301:]
    locked = bytearray(intact)
    locked[intact.find(b"PK\x01\x02") + 8] |= 1
    yield "encrypted", bytes(locked)
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):  # these unpack a few bytes to gigabytes at a time
        packed = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(intact)) as archive, zipfile.ZipFile(packed, "w", method) as other:
            for entry in archive.namelist():
                other.writestr(entry, archive.read(entry))
        yield f"packed by method {method}", packed.getvalue()
    for name, entry in (("header", b"\x93NUMPY\x01\x00\x30\x00" + b"(" * 48), ("huge", a_header((10**12, 28, 28)))):
        file = io.BytesIO(intact)
        with zipfile.ZipFile(file, "w") as archive:
            for field in PARTS:
                archive.writestr(f"{field}.npy", entry)
        yield name, file.getvalue()


DAMAGED = dict(damaged())


@pytest.mark.parametrize("kind", DAMAGED)
def test_what_is_no_archive(kind, tmp_path):
    path = tmp_path / "mnist.npz"
    path.write_bytes(DAMAGED[kind])
    with pytest.raises(ValueError, match=r"must be a valid \.npz file.*or a damaged one") as caught:
        load_mnist(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(FileNotFoundError, match="must be an existing"):
        load_mnist(tmp_path / "missing.npz")


def test_a_small_file_does_not_fill_the_memory(tmp_path, monkeypatch):
    path = tmp_path / "mnist.npz"
    np.savez_compressed(path, **{**PARTS, "x_train": np.zeros((400_000, 28, 28), np.uint8)})
    monkeypatch.setattr(np.lib.format, "read_array", lambda *args, **kwargs: pytest.fail("it was read"))
    with pytest.raises(ValueError, match="without x_train"):
        load_mnist(path)
