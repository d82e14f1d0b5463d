"""Numba's `njit` with a disk cache that works on a read-only install too, in a folder that nobody else can write to.

Numba keeps machine code in the folder of the package or in the user's cache directory, and refuses to define a function
where it can write to neither (containers, a home that is missing). There the cache is a private folder under the
temporary directory, or else there is none: each process compiles what it uses, and says in one line what would help.

Whoever can write to a cache makes its readers run their code. A folder that Numba chose outside of the package is
therefore used only if neither it, nor a folder or link on the way to it, nor a file in it could be changed by another
user: Numba makes files that everybody can write to where the user's mask says so. The folder of the package is used
unless somebody could write to a file in it who cannot write to the sources. A folder that the user chose, by
``NUMBA_CACHE_DIR``, is used as it is.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import stat
import sys
import tempfile
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
from numba.core import event

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH

_KEPT = "SKDP_COMPILES"
_ANEW = "SKDP_COMPILES_ANEW"
# What is said once, by the variable in the environment that tells that it was.
_LINES = {
    _KEPT: (
        "skdp: compiling for this processor, which takes some seconds at the first use of each kernel; the result is "
        "kept on disk. `python -m skdp.warm_up` compiles all kernels beforehand."
    ),
    _ANEW: (
        "skdp: each process compiles anew, for up to half a minute, since there is no folder for compiled code that "
        "only you can write to: set NUMBA_CACHE_DIR to one."
    ),
}

_lock = threading.Lock()


def njit(function: Any) -> Any:
    """Return a kernel compiled by `numba.njit`, with a cache in a safe place, or with none.

    Kernels are called from Python and from kernels, those with a leading underscore from kernels alone. The entries for
    C, and for Python, that Numba would compile beside have no use.
    """
    options = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    # of kernels that are called from kernels alone: a tenth of a first fit is entries for Python
    options["no_cpython_wrapper"] = function.__name__.startswith("_")
    kernel = numba.njit(**options)(function)
    if kernel is function:  # as with NUMBA_DISABLE_JIT
        return kernel
    with _lock:  # on what Numba's setting says: to enable a cache in a folder changes it for a moment
        is_kept = _enable(kernel) and _is_trusted(kernel)
        if not is_kept:
            folder = private_folder()
            is_kept = folder is not None and _enable(kernel, folder)
    kernel = kernel if is_kept else numba.njit(**options)(function)
    _Teller.of_this_process().kernels[kernel] = _KEPT if is_kept else _ANEW
    return kernel


class _Teller(event.Listener):
    """Says that a kernel is compiled, at the first one, and that machine code is not kept, at the first in vain.

    Numba tells of a kernel only where its cache has none. What is said is no warning: one that is an error would end a
    fit that was charged. Processes that are started afterwards, such as workers, find in their environment that it was
    said.
    """

    kernels: dict[Any, str]

    @classmethod
    @functools.cache
    def of_this_process(cls) -> _Teller:
        teller = cls()
        teller.kernels = {}
        event.register("numba:compile", teller)
        return teller

    def on_start(self, compiled: Any) -> None:
        told = self.kernels.get(compiled.data["dispatcher"], "")
        if told and not os.environ.get(told):
            os.environ[told] = "1"
            with contextlib.suppress(Exception):  # no standard error, or one that is closed
                print(_LINES[told], file=sys.stderr, flush=True)

    def on_end(self, compiled: Any) -> None:
        pass


def text_of(*modules: ModuleType) -> str:
    """Return a digest of the source files of modules whose kernels are called by one of another file.

    It belongs in the closure of the caller, which is part of the key of Numba's cache: otherwise the caller's machine
    code, which holds that of the others, would outlive a change of theirs.
    """
    try:
        texts = [Path(str(module.__file__)).read_bytes() for module in modules]
    except OSError:  # without sources: nothing is found in the cache
        return os.urandom(16).hex()
    return hashlib.sha256(b"\0".join(texts)).hexdigest()


def _enable(kernel: Any, folder: str = "") -> bool:
    """Have Numba choose a place for the cache, or use a folder; return whether there is one."""
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = folder or before
    try:
        kernel.enable_caching()
        os.makedirs(str(kernel.stats.cache_path), exist_ok=True)  # which Numba omits for code in a zip file
    except (RuntimeError, OSError):  # "no locator available": it can write nowhere
        return False
    finally:
        numba.config.CACHE_DIR = before
    # a folder that cannot be written to at the first call must not end a fit that was charged
    kernel._cache._guard_against_spurious_io_errors = functools.partial(contextlib.suppress, OSError)
    return True


def _is_trusted(kernel: Any) -> bool:
    place = str(kernel.stats.cache_path)
    if numba.config.CACHE_DIR:
        return True
    if Path(__file__).parent in Path(place).parents:
        return _files_are_closed(place, os.stat(__file__).st_mode)
    return is_private(place) and _files_are_closed(place)


@functools.cache
def private_folder() -> str | None:
    """Return a folder of this user under the temporary directory, made if need be, or None if there is no safe one.

    Nobody else can enter it, so what Numba makes in it is safe whatever its mode.
    """
    if not hasattr(os, "getuid"):  # without owners and modes nothing can be said of a folder
        return None
    try:
        folder = os.path.join(tempfile.gettempdir(), f"skdp-{os.getuid()}")
        with contextlib.suppress(FileExistsError):  # ours, or somebody else's who knew its name
            os.mkdir(folder, 0o700)
        found = os.lstat(folder)  # one look for all: what is not ours may be another thing at the next
    except OSError:
        return None
    is_closed = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & _OTHERS
    return folder if is_closed and is_private(folder) else None  # and ours cannot be replaced where this holds


@functools.cache
def is_private(folder: str) -> bool:
    """Whether only this user and the superuser can change what is in a folder, or put another one in its place."""
    if not hasattr(os, "getuid"):
        return True
    try:
        target = os.lstat(os.path.realpath(folder))
        return stat.S_ISDIR(target.st_mode) and _is_ours(target) and all(map(_is_kept, _way(folder)))
    except OSError:
        return False


def _way(folder: str) -> set[str]:
    """A folder, all above it, and those of the links among them."""
    found: set[str] = set()
    left = [os.path.abspath(folder)]
    while left:
        path = left.pop()
        if path not in found:
            found.add(path)
            left.append(os.path.dirname(path))
            if os.path.islink(path):
                left.append(os.path.join(os.path.dirname(path), os.readlink(path)))
    return found


def _is_kept(path: str) -> bool:
    """Whether nobody else can replace a link, or what is ours in a folder; in a sticky one (/tmp) they cannot."""
    found = os.lstat(path)
    is_safe = stat.S_ISLNK(found.st_mode) or found.st_mode & stat.S_ISVTX
    return _is_ours(found, ignored=_OTHERS_WRITE if is_safe else 0)


def _is_ours(found: os.stat_result, *, ignored: int = 0) -> bool:
    """Whether nobody else can write to what was found, but for the modes that are ignored."""
    return found.st_uid in (0, os.getuid()) and not found.st_mode & _OTHERS_WRITE & ~ignored


@functools.cache
def _files_are_closed(folder: str, mode: int | None = None) -> bool:
    """Whether nobody else can write to a file in a folder, or nobody who cannot write to a file of this mode."""
    if not hasattr(os, "getuid"):
        return True
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):  # of another process, which gave it its name meanwhile
                    found.append(entry.stat(follow_symlinks=False))
    except OSError:
        return False
    if mode is None:
        return all(map(_is_ours, found))
    return not any(each.st_mode & _OTHERS_WRITE & ~mode for each in found)
