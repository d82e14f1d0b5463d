"""Numba's `njit` with a disk cache that only the user can write to, also for read-only installations.

Numba stores machine code in the directory of the package or in the user's cache directory, and raises an error if it
can write to neither (containers, a missing home directory). In this case the cache is a private folder under the
temporary directory. If this is impossible, each process compiles its kernels and prints a remedy.

Users with write access to a cache can execute code in the processes that read it. Therefore a folder outside of the
package is used only if no other user can change it, a file in it, or a folder or link on its path. (Numba creates
world-writable files if the umask permits.) The folder of the package is used unless a user who cannot write to the
sources can write to a file in it. A folder in ``NUMBA_CACHE_DIR`` is always used.
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
# Messages that are printed once, by the environment variable that records this.
_LINES = {
    _KEPT: (
        "skdp: compiling for this processor, which takes a few seconds at the first use of each kernel. The result is "
        "cached on disk. Run `python -m skdp.warm_up` to compile in advance."
    ),
    _ANEW: (
        "skdp: each process compiles its code, for up to half a minute, because no cache directory is writable only by "
        "you. Set NUMBA_CACHE_DIR to such a directory."
    ),
}

_lock = threading.Lock()


def njit(function: Any) -> Any:
    """Return a kernel compiled by `numba.njit`, with a cache in a safe directory or without a cache.

    Kernels with a leading underscore are called only from other kernels. Unused wrappers for C and for Python are not
    compiled.
    """
    options = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    # compiling wrappers for Python takes a tenth of a first fit
    options["no_cpython_wrapper"] = function.__name__.startswith("_")
    kernel = numba.njit(**options)(function)
    if kernel is function:  # as with NUMBA_DISABLE_JIT
        return kernel
    with _lock:  # enabling a cache in a folder temporarily changes Numba's configuration
        is_kept = _enable(kernel) and _is_trusted(kernel)
        if not is_kept:
            folder = private_folder()
            is_kept = folder is not None and _enable(kernel, folder)
    kernel = kernel if is_kept else numba.njit(**options)(function)
    _Teller.of_this_process().kernels[kernel] = _KEPT if is_kept else _ANEW
    return kernel


class _Teller(event.Listener):
    """Prints a message when the first kernel is compiled, and when machine code is not cached.

    Numba reports a kernel only if it is not in the cache. The message is not a warning, because a warning that is
    turned into an error would end a charged fit. Processes that start later, such as workers, inherit the environment
    variable and do not repeat the message.
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
    """Return a digest of the source files of modules whose kernels are called from another file.

    It must be in the closure of the caller, which is part of the key of Numba's cache. Otherwise the cached machine
    code of the caller, which includes the called kernels, would not be updated after a change of these.
    """
    try:
        texts = [Path(str(module.__file__)).read_bytes() for module in modules]
    except OSError:  # without sources: nothing is found in the cache
        return os.urandom(16).hex()
    return hashlib.sha256(b"\0".join(texts)).hexdigest()


def _enable(kernel: Any, folder: str = "") -> bool:
    """Enable the cache in a given folder, or in one that Numba chooses; return whether it is available."""
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
    """Return a private folder of this user under the temporary directory, or None if there is no safe one.

    The folder is created if necessary. Other users cannot enter it, so files in it are safe for any mode.
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
    """Return whether only this user and the superuser can change the content of a folder, or replace it."""
    if not hasattr(os, "getuid"):
        return True
    try:
        target = os.lstat(os.path.realpath(folder))
        return stat.S_ISDIR(target.st_mode) and _is_ours(target) and all(map(_is_kept, _way(folder)))
    except OSError:
        return False


def _way(folder: str) -> set[str]:
    """Return a folder, its parents, and the targets of links among them with their parents."""
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
    """Return whether other users cannot replace a link or our entries of a folder, as in a sticky folder (/tmp)."""
    found = os.lstat(path)
    is_safe = stat.S_ISLNK(found.st_mode) or found.st_mode & stat.S_ISVTX
    return _is_ours(found, ignored=_OTHERS_WRITE if is_safe else 0)


def _is_ours(found: os.stat_result, *, ignored: int = 0) -> bool:
    """Return whether no other user has write access, except for the ignored mode bits."""
    return found.st_uid in (0, os.getuid()) and not found.st_mode & _OTHERS_WRITE & ~ignored


@functools.cache
def _files_are_closed(folder: str, mode: int | None = None) -> bool:
    """Return whether no other user can write to files in a folder, except users who can write to files of `mode`."""
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
