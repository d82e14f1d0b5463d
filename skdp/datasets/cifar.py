"""CIFAR-10 from files: the original binary ones, those for Python, and a smaller form of NumPy archives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from skdp._checks.archives import read_arrays
from skdp.datasets._pickles import Damaged, read_pickle

_SIDE, _COLOURS, _RECORDS = 32, 3, 10_000
_PLANES = (_COLOURS, _SIDE, _SIDE)
_PIXELS = _COLOURS * _SIDE * _SIDE
_MOST_BYTES = _RECORDS * _PIXELS + 4096  # of an array in an archive, and its header
_NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

_Part = tuple[NDArray[np.uint8], NDArray[np.int64]]


class _Form(NamedTuple):
    """A way in which the images are stored: names of the files, the test part last, and how one is read."""

    names: tuple[str, ...]
    read: Callable[[Path], _Part]


def load_cifar10(path: str | Path) -> Bunch:
    """Load the CIFAR-10 images of ten kinds of things (Krizhevsky 2009), in their original order.

    Parameters
    ----------
    path : str or Path
        Folder that holds one of these, all parts of it:

        - ``data_batch_1.bin`` to ``data_batch_5.bin`` and ``test_batch.bin``, the original binary version;
        - ``data_batch_1`` to ``data_batch_5`` and ``test_batch``, the original version for Python. These are pickles:
          nothing is built from them but arrays, lists, dictionaries and numbers;
        - ``cifar10_train_1.npz`` to ``cifar10_train_5.npz`` and ``cifar10_test1000.npz``, with labels ``y`` and images
          ``x_diff``: red and blue minus green, then differences down and across, modulo 256. The test part has the
          first 1,000 images.

    Returns
    -------
    bunch : sklearn.utils.Bunch
        Dictionary-like object with the following attributes.

        - ``data``, ``test_data``: uint8 arrays of shape (50000, 3072) and (10000, 3072), pixels from 0 to 255, row by
          row of the image, with red, green and blue side by side. The test part of the archives has 1,000 rows.
        - ``images``, ``test_images``: the same numbers, of shape (n, 32, 32, 3).
        - ``target``, ``test_target``: int64 arrays of labels.
        - ``classes``: the labels 0 to 9.
        - ``target_names``: the kinds.

    Raises
    ------
    FileNotFoundError
        There is no such folder, or a part is missing.
    ValueError
        A file is truncated, damaged or of another kind.

    See Also
    --------
    skdp.ScatteringTransformer : Features of images that read no other image.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise FileNotFoundError(f"path={str(path)!r}: there is no such folder; give the one that holds CIFAR-10.")
    form = next((form for form in _FORMS if (folder / form.names[0]).is_file()), None)
    if form is None:
        raise FileNotFoundError(
            f"path={str(path)!r} holds none of {', '.join(form.names[0] for form in _FORMS)}: give the folder of "
            "CIFAR-10's files."
        )
    parts = [_read(folder / name, form.read) for name in form.names]
    train = np.concatenate([planes for planes, _ in parts[:-1]])
    images, test_images = _channels_last(train), _channels_last(parts[-1][0])
    return Bunch(
        data=images.reshape(len(images), _PIXELS), target=np.concatenate([labels for _, labels in parts[:-1]]),
        test_data=test_images.reshape(len(test_images), _PIXELS), test_target=parts[-1][1],
        images=images, test_images=test_images, classes=tuple(range(10)), target_names=_NAMES,
    )  # fmt: skip


def _channels_last(planes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1))


def _read(path: Path, read: Callable[[Path], _Part]) -> _Part:
    """Read a part, and check that it is one."""
    if not path.is_file():
        raise FileNotFoundError(f"path={str(path)!r}: this part is missing; CIFAR-10 has five and a test part.")
    fault = ""
    try:
        planes, labels = read(path)
        if not (len(labels) and labels.min() >= 0 and labels.max() < len(_NAMES)):
            fault = "labels are not from 0 to 9"
    except Damaged as error:
        fault = str(error)
    if fault:
        raise ValueError(f"path={str(path)!r}: {fault}; get the file again.")
    return planes, labels


def _read_binary(path: Path) -> _Part:
    """Each record is a byte for the label, then 3 planes of 32 x 32 bytes."""
    size, length = path.stat().st_size, _RECORDS * (1 + _PIXELS)
    if size != length:
        raise Damaged(f"it has {size:,} bytes and not {length:,}, so it is truncated or no part of CIFAR-10")
    records = np.fromfile(path, np.uint8).reshape(_RECORDS, 1 + _PIXELS)
    return records[:, 1:].reshape(-1, *_PLANES), records[:, 0].astype(np.int64)


def _read_pickle(path: Path) -> _Part:
    """A dictionary with images of 3072 bytes and a list of labels, from Python 2."""
    found, intact = None, False
    try:
        found = read_pickle(path.read_bytes())
        found = {key.decode() if isinstance(key, bytes) else key: value for key, value in found.items()}
        pixels, given = found["data"].as_bytes(), found["labels"]
        intact = pixels.shape == (_RECORDS, _PIXELS) and isinstance(given, list) and len(given) == _RECORDS
        intact = intact and all(type(label) is int for label in given)
        labels = np.array(given if intact else [])
        intact = intact and labels.dtype.kind in "iu"
    except Damaged:
        raise
    except Exception:  # a damaged pickle raises almost anything
        intact = False
    if not intact:
        raise Damaged(f"it is truncated or no pickle of {_RECORDS:,} images and labels")
    return pixels.reshape(-1, *_PLANES), labels.astype(np.int64)


def _read_archive(path: Path) -> _Part:
    """See the README of the archives: the sums of differences, then green is added to red and blue."""
    found = read_arrays(path, ("x_diff", "y"), _MOST_BYTES)
    planes, labels = found or (np.zeros(0), np.zeros(0))
    intact = planes.dtype == np.uint8 and planes.shape[1:] == _PLANES and labels.dtype.kind in "iu"
    intact = intact and labels.shape == planes.shape[:1]
    if not intact:
        raise Damaged("it is truncated or no .npz with images x_diff of 3 x 32 x 32 and labels y")
    for place in range(1, _SIDE):  # `cumsum` takes several times as long
        planes[:, :, place] += planes[:, :, place - 1]
    for place in range(1, _SIDE):
        planes[..., place] += planes[..., place - 1]
    planes[:, 0] += planes[:, 1]
    planes[:, 2] += planes[:, 1]
    return planes.astype(np.uint8, copy=False), labels.astype(np.int64)


_TRAINING = [f"data_batch_{part}" for part in range(1, 6)]
_FORMS = (
    _Form((*(f"{name}.bin" for name in _TRAINING), "test_batch.bin"), _read_binary),
    _Form((*_TRAINING, "test_batch"), _read_pickle),
    _Form((*(f"cifar10_train_{part}.npz" for part in range(1, 6)), "cifar10_test1000.npz"), _read_archive),
)
