"""Lock of a run that has a checkpoint: no other run resumes from the file before this run ends.

Two runs that resume from one file would release the same steps twice, for one charge. The lock is a lock of the
operating system on a separate file. It excludes threads and processes alike, and disappears when its process dies, even
if it is killed. The checkpoint itself cannot be locked, because each state that is written replaces that file.
"""

from __future__ import annotations

import contextlib
import os
import sys
import weakref
from pathlib import Path
from typing import Any, Self

__all__ = ["RunLock"]

if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class RunLock:
    """An exclusive lock on ``<path>.lock``, which is there only while the lock is held, or after a kill.

    Parameters
    ----------
    path : str or path-like
        Checkpoint of the run.

    Notes
    -----
    Entering the context does not take the lock. Call `take` inside the block: then no interrupt can come between taking
    the lock and entering the block that releases it. A forked child drops its copy, and the lock stays with the parent.
    """

    def __init__(self, path: Any) -> None:
        self._path = Path(os.fspath(path)).resolve()
        self._file: Any = None
        self._is_held = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def take(self) -> None:
        """Take the lock, or raise ValueError."""
        lock_path = self._path.with_name(self._path.name + ".lock")
        _ALL.add(self)
        try:
            # The last holder may remove the file between opening and locking it: then try again with a new file.
            while not self._is_held:
                self._file = open(lock_path, "ab", buffering=0)  # noqa: SIM115
                self._take(lock_path)
        except OSError as error:
            raise ValueError(
                f"checkpoint={str(self._path)!r} cannot be locked ({error.strerror or error}): give a path in a folder "
                "that exists, can be written and has file locks."
            ) from None

    def _take(self, lock_path: Path) -> None:
        """Lock the open file. The lock is valid only if its last holder has not removed the file meanwhile."""
        try:
            _lock(self._file.fileno())
        except (BlockingIOError, PermissionError):
            raise ValueError(
                f"checkpoint={str(self._path)!r} is in use by another run: wait for it, or give another path."
            ) from None
        with contextlib.suppress(FileNotFoundError):
            self._is_held = os.path.samestat(os.fstat(self._file.fileno()), os.stat(lock_path))

    def release(self) -> None:
        """Remove the file under its lock, and release the lock."""
        if self._file is None:
            return
        try:
            # Removed while locked: a run that opens the file later creates a new one.
            if self._is_held and sys.platform != "win32":
                os.unlink(self._file.name)
        except OSError:  # removed by hand, or not to be removed any more: a file that nobody locks is no hindrance
            pass
        finally:
            self._file.close()
        if self._is_held and sys.platform == "win32":  # no open file can be removed there, be it ours or another run's
            with contextlib.suppress(OSError):
                os.unlink(self._file.name)
        self._file, self._is_held = None, False

    def let_go(self) -> None:
        """Close the file in a forked child, without releasing the lock of the parent."""
        if self._file is not None:
            self._file.close()
        self._file, self._is_held = None, False


_ALL: weakref.WeakSet[RunLock] = weakref.WeakSet()


def _let_go_of_all() -> None:
    for lock in list(_ALL):
        lock.let_go()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_of_all)
