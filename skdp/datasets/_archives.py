"""Arrays of ``.npz`` files that anybody may have written."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # others may unpack a few bytes to gigabytes at a time


def read_arrays(path: Path, names: Iterable[str], most_bytes: int) -> list[NDArray[Any]] | None:
    """Return arrays of an archive, or None if one is missing, damaged, of objects, or larger than it should be.

    Parameters
    ----------
    path : Path
    names : iterable of str
    most_bytes : int
        Largest size of an array and its header, so that a small file does not fill the memory.
    """
    found = []
    try:
        with zipfile.ZipFile(path) as archive:  # and not `np.load`, which also takes what is no archive
            for entry in [archive.getinfo(f"{name}.npy") for name in names]:
                if entry.file_size > most_bytes or entry.compress_type not in _METHODS:
                    return None
                with archive.open(entry) as file:
                    found.append(np.lib.format.read_array(file, allow_pickle=False))
    except Exception:  # a damaged archive raises almost anything
        return None
    return found


__all__ = ["read_arrays"]
