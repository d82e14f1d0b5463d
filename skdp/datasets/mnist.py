"""MNIST from a file or from OpenML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import fetch_openml
from sklearn.utils import Bunch

_PIXELS, _TRAINING = 28 * 28, 60_000
_FIELDS = ("x_train", "y_train", "x_test", "y_test")


def load_mnist(path: str | Path | None = None) -> Bunch:
    """Handwritten digits (LeCun et al. 1998), in the original order.

    Parameters
    ----------
    path : str or Path or None, default=None
        An ``.npz`` file with ``x_train``, ``y_train``, ``x_test`` and ``y_test``, as Keras distributes it. None:
        fetched from OpenML by ``sklearn.datasets.fetch_openml``, which keeps a copy.

    Returns
    -------
    bunch : sklearn.utils.Bunch
        ``data`` of shape (60000, 784) and ``test_data`` of shape (10000, 784), float32, pixels divided by their public
        maximum 255; ``target`` and ``test_target``, int64; ``classes``, the digits. A file may hold fewer images.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ValueError
        The file is not one of these.
    """
    images, labels, test_images, test_labels = _from_openml() if path is None else _from_file(Path(path))
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
            f"path={str(path)!r}: there is no such file; give an .npz of MNIST, or None to fetch it."
        )
    try:
        with np.load(path, allow_pickle=False) as file:
            parts = tuple(file[name] for name in _FIELDS)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(f"path={str(path)!r} is no .npz with {', '.join(_FIELDS)} ({error}).") from None
    if any(part.size != len(part) * _PIXELS for part in parts[::2]):
        raise ValueError(f"path={str(path)!r}: images are not of 28 x 28 pixels.")
    return parts


def _from_openml() -> tuple[Any, ...]:
    digits = fetch_openml("mnist_784", version=1, as_frame=False, parser="liac-arff")
    images, labels = digits.data, digits.target.astype(np.int64)
    return images[:_TRAINING], labels[:_TRAINING], images[_TRAINING:], labels[_TRAINING:]
