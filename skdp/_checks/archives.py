"""Arrays of ``.npz`` files that anybody may have written."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # others may unpack a few bytes to gigabytes at a time
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def read_arrays(path: Path, names: Iterable[str] | None, most_bytes: int) -> list[np.ndarray] | None:
    """Return arrays of an archive, or None if one is missing, damaged, of objects, or larger than it should be.

    Parameters
    ----------
    path : Path
    names : iterable of str or None
        None is all, in their order.
    most_bytes : int
        Largest size of an array and its header, so that a small file does not fill the memory.
    """
    found = []
    try:
        with zipfile.ZipFile(path) as archive:  # and not `np.load`, which also takes what is no archive
            chosen = archive.namelist() if names is None else [f"{name}.npy" for name in names]
            for entry in [archive.getinfo(name) for name in chosen]:
                if entry.file_size > most_bytes or entry.compress_type not in _METHODS:
                    return None
                if entry.compress_size > path.stat().st_size:  # room is made for so many bytes before they are read
                    return None
                with archive.open(entry) as file:
                    found.append(_read_array(file, entry.file_size))
    except Exception:  # a damaged archive raises almost anything
        return None
    return found


def _read_array(file: IO[bytes], size: int) -> np.ndarray:
    """Read an array whose header agrees with its size: NumPy itself makes room for what the header says, and reads."""
    shape, by_columns, dtype = _HEADERS[npy.read_magic(file)](file)
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != size - file.tell():
        raise ValueError("an array of objects, or of another size")
    return np.frombuffer(bytearray(file.read()), dtype).reshape(shape, order="F" if by_columns else "C")
