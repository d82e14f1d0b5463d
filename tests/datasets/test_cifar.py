"""CIFAR-10 from files of three forms: shapes, order, one line for what is damaged, and no pickle that runs code."""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import struct
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from skdp.datasets import cifar, load_cifar10

RECORDS = 10_000
NAMES = (*(f"data_batch_{part}" for part in range(1, 6)), "test_batch")
RNG = np.random.default_rng(0)
PLANES = RNG.integers(0, 256, (6, 3, 32, 32), dtype=np.uint8)  # the first image of each part
LABELS = RNG.integers(0, 10, 6)


def differences(planes):
    """The inverse of what the README of the archives says."""
    made = planes.copy()
    made[:, 0] -= made[:, 1]
    made[:, 2] -= made[:, 1]
    for axis in (2, 3):
        made = np.diff(made, axis=axis, prepend=np.uint8(0))
    return made


def write_binary(folder):
    for name, planes, label in zip(NAMES, PLANES, LABELS, strict=True):
        with (folder / f"{name}.bin").open("wb") as file:  # zeros that take no room
            file.write(struct.pack("B", label) + planes.tobytes())
            file.truncate(RECORDS * 3073)


def write_pickles(folder, n_parts=6):
    for name, planes, label in zip(NAMES[:n_parts], PLANES, LABELS, strict=False):
        pixels = np.zeros((RECORDS, 3072), np.uint8)
        pixels[0] = planes.ravel()
        labels = [int(label), *[0] * (RECORDS - 1)]
        part = {b"data": pixels, b"labels": labels, b"batch_label": b"a part", b"filenames": [b"a.png"]}
        (folder / name).write_bytes(pickle.dumps(part, protocol=2))


def write_archives(folder, n_parts=6):
    names = (*(f"cifar10_train_{part}" for part in range(1, 6)), "cifar10_test1000")
    for name, planes, label in zip(names[:n_parts], PLANES, LABELS, strict=False):
        np.savez(folder / f"{name}.npz", x_diff=differences(planes[None]), y=np.array([label], np.uint8))


FORMS = {"binary": (write_binary, RECORDS), "pickles": (write_pickles, RECORDS), "archives": (write_archives, 1)}


@pytest.mark.parametrize("form", FORMS)
def test_images_labels_and_classes(form, tmp_path):
    write, n = FORMS[form]
    write(tmp_path)
    found = load_cifar10(tmp_path)
    assert found.data.shape == (5 * n, 3072)
    assert found.test_data.shape == (n, 3072)
    assert (found.data.dtype, found.target.dtype) == (np.uint8, np.int64)
    firsts = np.moveaxis(PLANES, 1, 3)
    np.testing.assert_array_equal(found.images[::n], firsts[:5])
    np.testing.assert_array_equal(found.test_images[0], firsts[5])
    np.testing.assert_array_equal(found.data.reshape(-1, 32, 32, 3), found.images)
    np.testing.assert_array_equal(found.target[::n], LABELS[:5])
    assert found.test_target[0] == LABELS[5]
    assert found.classes == tuple(range(10))
    assert found.target_names[6] == "frog"


def test_the_real_files():
    folder = os.environ.get("SKDP_DATA")
    if folder is None:
        pytest.skip("SKDP_DATA is not set: the made-up files of the other tests serve")
    found = load_cifar10(folder)
    assert found.images.shape == (50_000, 32, 32, 3)
    assert found.test_images.shape == (1_000, 32, 32, 3)
    digest = "fc115a3de050d667b88cbd5b0b9612ebf996c54230fe7758f3a14bb5af9a1c27"  # of the source's first part
    assert hashlib.sha256(found.images[:10_000].tobytes()).hexdigest() == digest
    np.testing.assert_array_equal(np.bincount(found.target), 10 * [5_000])


def truncate(path, size):
    with path.open("r+b") as file:
        file.truncate(size)


@pytest.mark.parametrize("cut", [0, 1, 100, 3073 * 9_999])
def test_a_truncated_binary_file(cut, tmp_path):
    write_binary(tmp_path)
    truncate(tmp_path / "data_batch_2.bin", cut)
    with pytest.raises(ValueError, match=r"data_batch_2\.bin.*truncated.*get the file again"):
        load_cifar10(tmp_path)


@pytest.mark.parametrize(("write", "name"), [(write_pickles, "data_batch_1"), (write_archives, "cifar10_train_1.npz")])
def test_a_truncated_pickle_or_archive(write, name, tmp_path):
    write(tmp_path, 1)
    whole = (tmp_path / name).read_bytes()
    for cut in (0, 1, 20, len(whole) // 2, len(whole) - 1):
        (tmp_path / name).write_bytes(whole[:cut])
        with pytest.raises(ValueError, match="is truncated or no") as caught:
            load_cifar10(tmp_path)
        assert "\n" not in str(caught.value)
        assert name in str(caught.value)


class Runs:
    """What a pickle must not do."""

    def __reduce__(self):
        return os.mkdir, (str(Runs.folder),)


@pytest.mark.parametrize("place", ["whole", "data", "inside"])
def test_a_pickle_that_would_run_code_runs_none(place, tmp_path):
    Runs.folder = tmp_path / "made"
    boxed = np.empty((RECORDS, 3072), object) if place == "inside" else None
    if boxed is not None:
        boxed[0, 0] = Runs()
    parts = {"whole": Runs(), "data": {b"data": Runs(), b"labels": []}, "inside": {b"data": boxed, b"labels": []}}
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps(parts[place], protocol=2))
    with pytest.raises(ValueError, match=r"data_batch_1.*it holds \w+\.mkdir") as caught:
        load_cifar10(tmp_path)
    assert "\n" not in str(caught.value)
    assert not Runs.folder.exists()


class Addresses:
    """An array of objects whose addresses are bytes of the pickle."""

    def __reduce__(self):
        return np.ndarray, ((1,), "O", struct.pack("P", id(Witness.one)))


class Shaped:
    def __reduce__(self):
        return np.ndarray, (Addresses(),)


class Witness:
    """Says when somebody asks for it as a number."""

    asked = False

    def __index__(self):
        Witness.asked = True
        return 1


Witness.one = Witness()


def test_bytes_of_a_pickle_become_no_objects(tmp_path):
    """Or else whoever wrote the file would choose what is run."""
    part = {b"data": Shaped(), b"labels": []}
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps(part, protocol=2))
    with pytest.raises(ValueError, match=r"data_batch_1.*no pickle of 10,000 images"):
        load_cifar10(tmp_path)
    assert not Witness.asked


def test_lists_that_hold_one_another_are_not_unfolded(tmp_path, monkeypatch):
    """A list of ten of ten, nine times, is a pickle of some bytes and an array of ten thousand million numbers."""
    nested = [0] * 10
    for _ in range(9):
        nested = [nested] * 10
    monkeypatch.setattr(np, "asarray", lambda *args, **kwargs: pytest.fail("it was unfolded"))
    monkeypatch.setattr(np, "array", lambda given, *args: given and pytest.fail("it was unfolded"))
    for part in ({b"data": nested, b"labels": [0]}, {b"data": np.zeros((RECORDS, 3072), np.uint8), b"labels": nested}):
        (tmp_path / "data_batch_1").write_bytes(pickle.dumps(part, protocol=2))
        with pytest.raises(ValueError, match=r"data_batch_1.*no pickle of 10,000 images"):
            load_cifar10(tmp_path)


def long_text(letters):
    return b"X" + struct.pack("<I", len(letters)) + letters


ENCODE, LATIN1, HEX = b"c_codecs\nencode\nq\x00", b"X\x06\x00\x00\x00latin1", b"X\x03\x00\x00\x00hex"
GROWING = {
    "encoded again": b"](" + ENCODE + long_text(b"a" * 16) + b"q\x01h\x00h\x01" + LATIN1 + b"\x86Rq\x01"
    + 24 * (b"h\x00h\x01" + HEX + b"\x86Rq\x01") + b"e",
    "encoded often": b"](" + ENCODE + long_text(b"a" * 10**6) + b"q\x01" + 1000 * (b"h\x00h\x01" + LATIN1 + b"\x86R")
    + b"e",
    "a text as many arguments": b"](cnumpy\nndarray\nq\x00" + long_text(b"a" * 10**5) + b"q\x01"
    + 1000 * b"h\x00h\x01R" + b"e",
    "a place far out": b"K\x00r\xff\xff\xff\x7f",
    "a long text that is not there": b"\x8d" + struct.pack("<Q", 2**40),
    "long bytes that are not there": b"\x8e" + struct.pack("<Q", 2**40),
    "a tuple of tuples as a key": b"}K\x00" + b"".join(b"q%ch%c\x86" % (n, n) for n in range(60)) + b"K\x00s",
    "tuples in tuples as a key": b"}" + 300_000 * b"(" + 300_000 * b"t" + b"K\x00s",
    "lists in lists": 300_000 * b"](" + 300_000 * b"e",
    "a list that holds itself": b"]q\x00h\x00a",
    "two things on the stack": b"K\x00K\x00",
    "nothing on the stack": b"a",
}  # fmt: skip


@pytest.mark.parametrize("kind", GROWING)
def test_a_small_pickle_makes_nothing_large(kind, tmp_path):
    """Neither memory nor time nor the depth of calls: what is built is no larger than the file."""
    raw = b"\x80\x02" + GROWING[kind] + b"."
    (tmp_path / "data_batch_1").write_bytes(raw)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"data_batch_1.*(no pickle of 10,000 images|it encodes text)"):
            load_cifar10(tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60 * len(raw) + 2**20


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
def test_pickles_of_all_protocols_of_the_time(protocol, tmp_path):
    write_pickles(tmp_path, 1)
    path = tmp_path / NAMES[0]
    path.write_bytes(pickle.dumps(pickle.loads(path.read_bytes()), protocol=protocol))
    planes, labels = cifar._read_pickle(path)
    np.testing.assert_array_equal(planes[0], PLANES[0])
    assert labels.tolist() == [LABELS[0], *[0] * (RECORDS - 1)]


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_archive_that_numpy_would_not_write(method, tmp_path):
    """These methods unpack a few bytes to gigabytes at a time, whatever size the archive states."""
    write_archives(tmp_path)
    path = tmp_path / "cifar10_train_1.npz"
    with np.load(path) as found, zipfile.ZipFile(tmp_path / "packed", "w", method) as archive:
        for name in found.files:
            made = io.BytesIO()
            np.save(made, found[name])
            archive.writestr(f"{name}.npy", made.getvalue())
    (tmp_path / "packed").replace(path)
    with pytest.raises(ValueError, match=r"cifar10_train_1\.npz.*is truncated or no \.npz"):
        load_cifar10(tmp_path)


def test_pickles_of_python_2(tmp_path):
    """Its strings are bytes here, and its arrays are those of a module that was renamed."""
    write_pickles(tmp_path)
    for name in NAMES[:2]:
        whole = pickle.loads((tmp_path / name).read_bytes())
        whole[b"data"] = np.array(whole[b"data"], order="F" if name == NAMES[0] else "C")
        stored = pickle.dumps(whole, protocol=2)
        stored = stored.replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
        assert stored.count(b"X\x02\x00\x00\x00u1") == 1
        (tmp_path / name).write_bytes(stored.replace(b"X\x02\x00\x00\x00u1", b"U\x02u1"))
    found = load_cifar10(tmp_path)
    np.testing.assert_array_equal(found.images[::RECORDS], np.moveaxis(PLANES, 1, 3)[:5])


@pytest.mark.parametrize(
    "part",
    [
        [1, 2], {b"data": np.zeros((3, 3072), np.uint8), b"labels": [0, 0, 0]}, {b"labels": [0]},
        {b"data": np.zeros((RECORDS, 3072), np.float32), b"labels": [0] * RECORDS},
        {b"data": np.zeros((RECORDS, 3072), np.uint8), b"labels": ["frog"] * RECORDS},
        {b"data": np.zeros((RECORDS, 3072), np.uint8), b"labels": [10**40] * RECORDS},
        {b"data": [[0] * 3072] * RECORDS, b"labels": [0] * RECORDS},
    ],
    ids=["list", "few", "no images", "floats", "names", "huge labels", "lists"],
)  # fmt: skip
def test_a_pickle_of_another_kind(part, tmp_path):
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps(part, protocol=2))
    with pytest.raises(ValueError, match=r"data_batch_1.*no pickle of 10,000 images"):
        load_cifar10(tmp_path)


@pytest.mark.parametrize(
    "part",
    [
        {"x_diff": np.zeros((1, 3, 32, 32)), "y": np.zeros(1, int)}, {"x_diff": np.zeros((1, 3, 32, 32), np.uint8)},
        {"x_diff": np.zeros((1, 32, 32, 3), np.uint8), "y": np.zeros(1, int)},
        {"x_diff": np.zeros((2, 3, 32, 32), np.uint8), "y": np.zeros(1, int)},
    ],
    ids=["floats", "no labels", "channels last", "too few labels"],
)  # fmt: skip
def test_an_archive_of_another_kind(part, tmp_path):
    write_archives(tmp_path)
    np.savez(tmp_path / "cifar10_test1000.npz", **part)
    with pytest.raises(ValueError, match=r"cifar10_test1000\.npz.*no \.npz with images x_diff"):
        load_cifar10(tmp_path)


def test_an_archive_that_is_an_array_or_larger_than_a_part(tmp_path):
    write_archives(tmp_path)
    path = tmp_path / "cifar10_train_2.npz"
    with path.open("wb") as file:
        np.save(file, PLANES)
    with pytest.raises(ValueError, match=r"cifar10_train_2\.npz.*is truncated or no \.npz"):
        load_cifar10(tmp_path)
    np.savez_compressed(path, x_diff=np.zeros((RECORDS + 2, 3, 32, 32), np.uint8), y=np.zeros(RECORDS + 2, np.uint8))
    with pytest.raises(ValueError, match=r"cifar10_train_2\.npz.*is truncated or no \.npz"):
        load_cifar10(tmp_path)


def test_labels_that_are_none(tmp_path):
    write_archives(tmp_path)
    for labels in ([10], [-1]):
        np.savez(tmp_path / "cifar10_train_5.npz", x_diff=differences(PLANES[:1]), y=np.array(labels))
        with pytest.raises(ValueError, match=r"cifar10_train_5\.npz.*labels are not from 0 to 9"):
            load_cifar10(tmp_path)


def test_what_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no such folder"):
        load_cifar10(tmp_path / "missing")
    with pytest.raises(FileNotFoundError, match=r"holds none of data_batch_1\.bin"):
        load_cifar10(tmp_path)
    write_archives(tmp_path)
    Path(tmp_path / "cifar10_train_3.npz").unlink()
    with pytest.raises(FileNotFoundError, match=r"cifar10_train_3\.npz.*is missing"):
        load_cifar10(str(tmp_path))
