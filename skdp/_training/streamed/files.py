"""Files under a fit: which ones a path names, and whether they are what they were when the fit began."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")  # of two letters at least: one may be a drive
_PATTERN = re.compile(r"[*?\[]")
_NO_DATA = (".", "_")  # how names begin in folders that other programs keep for themselves


class FileState(NamedTuple):
    """What changes with a file, by its entry in a folder.

    Whoever puts a file of equal size and time in the place of another gives it another number, and whoever writes to
    one and puts its time back changes the time of its entry.
    """

    size: int
    written: int
    changed: int
    number: int
    device: int


def state_of(path: Any) -> FileState | None:
    """Return the state of a regular file; None if it is gone, or another thing."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return FileState(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev)


def files_of(X: Any) -> list[str]:
    """Return the files that a path names, or each of several, in the order in which they are read.

    Parameters
    ----------
    X : str, path-like, or list or tuple of these
        A file, a folder, or files. Of a folder all files are named, in all folders below it, but for names that begin
        with a dot or an underscore.

    Raises
    ------
    ValueError, OSError
        In one line: a URL, what is not there, and what is neither a file nor a folder, such as a pipe.
    """
    if not isinstance(X, list | tuple):
        path = os.path.abspath(_local(X))
        return sorted(_files_below(path, set())) if os.path.isdir(path) else [_regular(path)]
    if not X:
        raise ValueError("X is empty and names no file: give paths of Parquet files.")
    return [_regular(_local(each)) for each in X]


def _local(path: Any) -> str:
    if not isinstance(path, str | bytes | os.PathLike):
        raise TypeError(f"X has a {type(path).__name__} where a path is needed: give paths of Parquet files.")
    name = os.fsdecode(path)
    if found := _URL.match(name):
        raise ValueError(
            f"X is a URL of {found[1]}, where a path names files on this machine: give a pyarrow.dataset.dataset of "
            "it, or a copy."
        )
    return name


def _regular(path: str) -> str:
    """Return the path of a regular file, or refuse it."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        _refuse_missing(path, error)
    if stat.S_ISDIR(mode):
        raise ValueError(f"X has the folder {path!r} in a list: give its files, or the folder alone.")
    if not stat.S_ISREG(mode):
        raise ValueError(f"{path!r} is a pipe, a socket or a device, which cannot be read twice: give a file.")
    return path


def _refuse_missing(path: str, error: OSError) -> NoReturn:
    is_pattern = isinstance(error, FileNotFoundError) and _PATTERN.search(path)
    remedy = "patterns are not expanded, so give sorted(glob.glob(...))" if is_pattern else "give a file that is there"
    raise type(error)(f"{path!r} cannot be read ({error.strerror}): {remedy}.") from None


def _files_below(folder: str, seen: set[tuple[int, int]]) -> Iterator[str]:
    """Iterate over the files of a folder, and refuse a folder that is linked twice, whose rows would count twice."""
    try:
        found = os.stat(folder)
        entries = sorted(os.listdir(folder))
    except OSError as error:
        _refuse_missing(folder, error)
    if (found.st_dev, found.st_ino) in seen:
        raise ValueError(f"the folder {folder!r} is there twice by a link, so its rows would count twice: name files.")
    seen.add((found.st_dev, found.st_ino))
    for name in entries:
        path = os.path.join(folder, name)
        if name.startswith(_NO_DATA):
            continue
        if os.path.isdir(path):
            yield from _files_below(path, seen)
        else:
            yield _regular(path)
