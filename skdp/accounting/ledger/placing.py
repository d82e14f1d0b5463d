"""Give a new file of a ledger its name: complete or not at all, and never in the place of another file."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from typing import Any

from skdp.exceptions import BudgetFileError

from .log import LOCK

__all__ = ["absolute", "publish", "wait_until_made"]

_NO_LINKS = {errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EMLINK, errno.EOPNOTSUPP, errno.ENOTSUP}
_HEADER = 100  # bytes at the beginning of a file of SQLite, without which it is none
_MADE_WITHIN = 1.0  # seconds


def publish(made: str, path: str) -> None:
    """Give a complete file its own name, which must not be there."""
    try:
        os.link(made, path)
    except FileExistsError:
        raise
    except (AttributeError, OSError) as error:
        if isinstance(error, OSError) and error.errno not in _NO_LINKS:
            raise
        _copy(made, path)


def _copy(made: str, path: str) -> None:
    """Claim the name, and write the content, its first bytes last.

    The content goes to the file that was claimed and to no other: nothing is put in place of what somebody else may
    have begun there after removing this one. A process that dies here leaves a file without a header, which is refused.
    """
    with open(made, "rb") as source:
        content = source.read()
    with open(path, "xb") as claimed:
        try:
            claimed.seek(_HEADER)
            claimed.write(content[_HEADER:])
            claimed.flush()
            os.fsync(claimed.fileno())
            claimed.seek(0)
            claimed.write(content[:_HEADER])
            claimed.flush()
            os.fsync(claimed.fileno())
        except OSError:
            with contextlib.suppress(OSError):
                if os.path.samestat(os.fstat(claimed.fileno()), os.stat(path)):
                    os.unlink(path)  # ours, and never complete
            raise


def wait_until_made(path: str) -> None:
    """Where there are no hard links, somebody may be writing a new file: give them a moment."""
    deadline = time.monotonic() + _MADE_WITHIN
    while os.path.isfile(path) and time.monotonic() < deadline:
        try:
            with LOCK, open(path, "rb") as file:  # POSIX: to close it ends all locks that this process has on it
                begun = file.read(1) in (b"", b"\0")
            if not begun or time.time() - os.path.getmtime(path) > _MADE_WITHIN:
                return
        except OSError:
            return  # the transaction reports it
        time.sleep(0.005)


def absolute(path: Any) -> str:
    """An absolute path without symbolic links; one that leads nowhere is refused, as its target would be created."""
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(name, str) or not name or "\0" in name:
        kind = ValueError if isinstance(name, str) and name else TypeError
        raise kind(f"path={path!r} is not valid; give a string or a path-like of one, such as 'census.budget'.")
    if os.path.islink(name) and not os.path.exists(name):
        raise BudgetFileError(
            f"path={name!r} is a symbolic link that leads to no file; nothing was charged: bring its target back, or "
            "remove the link."
        )
    return os.path.realpath(name)
