"""MNIST from a file or from OpenML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import fetch_openml
from sklearn.utils import Bunch

from skdp._checks.sources import read_arrays

_PIXELS = 28 * 28
_MOST_BYTES = 2**28  # of an array in a file: several times that of the training images
_FIELDS = ("x_train", "y_train", "x_test", "y_test")


def load_mnist(path: str | Path | None = None) -> Bunch:
    """Load the MNIST images of handwritten digits (LeCun et al. 1998), in their original order.

    Parameters
    ----------
    path : str or Path or None, default=None
        File in ``.npz`` format with ``x_train``, ``y_train``, ``x_test`` and ``y_test``, as distributed by Keras. If
        None, the images are fetched from OpenML by ``sklearn.datasets.fetch_openml``, which caches them.

    Returns
    -------
    bunch : sklearn.utils.Bunch
        Dictionary-like object with the following attributes. A file can contain fewer images.

        - ``data``, ``test_data``: float32 arrays of shape (60000, 784) and (10000, 784), with pixels divided by their
          public maximum of 255.
        - ``target``, ``test_target``: int64 arrays of digits.
        - ``classes``: the digits 0 to 9.

    Raises
    ------
    FileNotFoundError
        The file does not exist.
    ValueError
        The file is truncated, damaged or of another type.
    """
    if path is None:
        digits = fetch_openml("mnist_784", version=1, as_frame=False, parser="liac-arff")
        images, test_images = np.split(digits.data, [60_000])
        labels, test_labels = np.split(digits.target.astype(np.int64), [60_000])
    else:
        images, labels, test_images, test_labels = _from_file(Path(path))
    return Bunch(
        data=_as_rows(images), target=labels.astype(np.int64),
        test_data=_as_rows(test_images), test_target=test_labels.astype(np.int64),
        classes=tuple(range(10)),
    )  # fmt: skip


def _as_rows(images: Any) -> Any:
    return images.reshape(len(images), _PIXELS).astype(np.float32) / np.float32(255)


def _from_file(path: Path) -> tuple[Any, ...]:
    if not path.is_file():
        raise FileNotFoundError(
            f"`path` must be an existing .npz file of MNIST, or None to download it, got {str(path)!r}."
        )
    parts = read_arrays(path, _FIELDS, _MOST_BYTES)
    fault = f"a .npz file without {', '.join(_FIELDS)}, or a damaged one" if parts is None else _fault_in(*parts)
    if parts is None or fault:
        raise ValueError(f"`path` must be a valid .npz file of MNIST, got {str(path)!r}, {fault}. Download it again.")
    return tuple(parts)


def _fault_in(*parts: np.ndarray) -> str:
    """Return the fault in images and labels; "" if there is none."""
    for images, labels in (parts[:2], parts[2:]):
        if images.ndim < 2 or images.size != len(images) * _PIXELS or images.dtype != np.uint8:
            return "with images that are not of 28 x 28 pixels of type uint8"
        if labels.shape != images.shape[:1] or labels.dtype.kind not in "iu" or not np.isin(labels, range(10)).all():
            return "with labels that are not digits from 0 to 9, one for each image"
    return ""
