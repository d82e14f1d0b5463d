"""Numba's `njit` with a disk cache that works on a read-only install too, in a folder that nobody else can write to.

Numba keeps machine code in the folder of the package or in the user's cache directory, and refuses to define a function
where it can write to neither (containers, a home that is missing). There the cache is a private folder under the
temporary directory, or else there is none, and each process compiles what it uses.

Whoever can write to a cache makes its readers run their code. A folder that Numba chose outside of the package is
therefore used only if neither it nor a folder above it could be changed by another user. A folder that the user chose,
by ``NUMBA_CACHE_DIR``, is used as it is, and so is that of the package, whose writers can change the sources as well.
"""

from __future__ import annotations

import contextlib
import functools
import os
import stat
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

_lock = threading.Lock()


def njit(**options: Any) -> Callable[[Any], Any]:
    """Return `numba.njit` with these options, but with a cache in a safe place, or with none."""
    cache = options.pop("cache", False)

    def define(function: Any) -> Any:
        kernel = numba.njit(**options)(function)
        if not cache or kernel is function:  # as with NUMBA_DISABLE_JIT
            return kernel
        if _enable(kernel) and _is_trusted(kernel):
            return kernel
        folder = private_folder()
        if folder is not None and _enable(kernel, folder):
            return kernel
        return numba.njit(**options)(function)

    return define


def _enable(kernel: Any, folder: str = "") -> bool:
    """Have Numba choose a place for the cache, or use a folder; return whether there is one."""
    with _lock:
        before = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = folder or before
        try:
            kernel.enable_caching()
        except RuntimeError:  # "no locator available": it can write nowhere
            return False
        finally:
            numba.config.CACHE_DIR = before
    return True


def _is_trusted(kernel: Any) -> bool:
    place = Path(kernel.stats.cache_path)
    return bool(numba.config.CACHE_DIR) or Path(__file__).parent in place.parents or is_private(str(place))


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
        others = os.lstat(folder).st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    except OSError:
        return None
    return folder if not others and is_private(folder) else None


@functools.cache
def is_private(folder: str) -> bool:
    """Whether only this user and the superuser can change what is in a folder, or put another one in its place."""
    if not hasattr(os, "getuid"):
        return True
    path = os.path.realpath(folder)
    return _is_ours(path) and all(_is_ours(str(above), may_be_sticky=True) for above in Path(path).parents)


def _is_ours(path: str, *, may_be_sticky: bool = False) -> bool:
    """Whether nobody else can add to a folder; in a sticky one (/tmp) others cannot replace what is ours."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    others_write = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return (
        stat.S_ISDIR(found.st_mode)
        and found.st_uid in (0, os.getuid())
        and (not others_write or (may_be_sticky and bool(found.st_mode & stat.S_ISVTX)))
    )


__all__ = ["is_private", "njit", "private_folder"]
