"""Transactions on a file of SQLite, whose errors become one line with a remedy.

Each transaction opens the file anew and closes it: no connection outlives a fork or is shared by threads, a file that
was removed or exchanged is noticed, and between charges the file stands alone, without a journal beside it.

The journal is one for rolling back. What was committed is in the file itself, from that moment on, and a journal that a
killed process leaves holds no charge: with a write-ahead log it could, and to lose or damage that log would lose them.

A new file gets its name when it is complete or not at all, and never in the place of another file.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pathlib
import sqlite3
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from skdp.accounting.ledger.admission import LOCK
from skdp.exceptions import BudgetFileError

T = TypeVar("T")

# Ends of the names of what SQLite keeps beside a file, without which the file may not be what was written.
JOURNALS = ("-journal", "-wal")

_WAIT = 60.0  # seconds for the lock


def transaction(path: str, begin: str, work: Callable[[sqlite3.Connection], T]) -> T:
    """What `work` returns of a connection inside a transaction: committed at the end, rolled back by any exception.

    No context of Python's own takes a lock while it is entered, as an interrupt could come before the block that it
    guards has begun. SQLite's ends the transaction as one step, so the one that closes has no lock left to lose.
    """
    with LOCK, translate_errors(path), _Opened(path) as opened:
        connection = opened.begin(begin)
        with connection:
            return work(connection)


class _Opened:
    """A connection that is closed whatever happens: it is kept here before it takes a lock.

    Parameters
    ----------
    path : str
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    def __enter__(self) -> _Opened:
        return self

    def __exit__(self, *error: object) -> None:
        self._close()

    def _close(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.rollback()
            self._connection.close()

    def begin(self, begin: str) -> sqlite3.Connection:
        """SQLite waits for most locks itself; while another process recovers or closes the file, ask again."""
        deadline = time.monotonic() + _WAIT
        while True:
            try:
                return self._connect(begin, deadline - time.monotonic())
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or time.monotonic() > deadline:
                    raise
            time.sleep(0.01)

    def _connect(self, begin: str, wait: float) -> sqlite3.Connection:
        """One attempt. Without the right or the room to write, the file can still be read."""
        _check_file(self._path)
        if begin != "BEGIN":
            return self._connect_as("mode=rw", begin, wait)
        for mode in ("mode=rw", "mode=ro"):
            try:
                return self._connect_as(mode, begin, wait)
            except sqlite3.OperationalError as error:
                if not _is(error, "SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_IOERR", "SQLITE_FULL"):
                    raise
                last = error
        for journal in (self._path + each for each in JOURNALS):
            if os.path.exists(journal) and os.path.getsize(journal) > 0:
                raise last  # the file alone does not show what was charged
        return self._connect_as("mode=ro&immutable=1", begin, wait)

    def _connect_as(self, mode: str, begin: str, wait: float) -> sqlite3.Connection:
        self._close()
        address = f"{pathlib.Path(self._path).as_uri()}?{mode}"
        self._connection = sqlite3.connect(address, uri=True, timeout=max(wait, 0.0), isolation_level=None)
        connection = self._connection
        connection.row_factory = sqlite3.Row
        connection.text_factory = lambda text: text.decode("utf-8", "replace")  # what is no text has no right hash
        connection.execute("PRAGMA synchronous = EXTRA")  # FULL, and the directory too, where the journal was
        connection.execute("PRAGMA fullfsync = ON")
        if begin != "BEGIN":
            with contextlib.suppress(sqlite3.OperationalError):  # others have it open: one of the next charges does it
                connection.execute("PRAGMA journal_mode = DELETE")  # another program may have changed it
        connection.execute(begin)
        connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()  # takes the read lock now
        return connection


def _check_file(path: str) -> None:
    if not os.path.exists(path):
        raise BudgetFileError(f"path={path!r} does not exist (any more); nothing was charged: bring the file back.")
    if not os.path.isfile(path):
        raise BudgetFileError(f"path={path!r} is not a file; nothing was charged: give the name of a file.")
    if os.path.getsize(path) == 0:
        raise describe_damage(path, "it is empty")


def _is(error: sqlite3.Error, *names: str) -> bool:
    found = getattr(error, "sqlite_errorname", None) or ""
    return any(found == name or found.startswith(name + "_") for name in names)


def _is_busy(error: sqlite3.Error) -> bool:
    return _is(error, "SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL")


def describe_damage(path: str, why: str) -> BudgetFileError:
    """The error for a file that is not as it was written."""
    return BudgetFileError(
        f"path={path!r} is damaged or was altered ({why}); nothing was charged: bring back an unharmed copy, with the "
        "charges made since, or begin a new ledger that starts with the largest sum that can be read, or with the "
        "budget, as spent."
    )


@contextlib.contextmanager
def translate_errors(path: str) -> Iterator[None]:
    """Turn errors of SQLite and of the file system into a `BudgetFileError` of one line."""
    try:
        yield
    except sqlite3.Error as error:
        why = f"({' '.join(str(error).split())}); nothing was charged:"
        if _is_busy(error):
            message = f"has been locked by another process for {_WAIT:.0f} s {why} wait for that process, or end it."
        elif _is(error, "SQLITE_FULL", "SQLITE_IOERR"):
            message = f"could not be written {why} see whether the disk is full or failing, and start the fit again."
        elif _is(error, "SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH"):
            message = f"cannot be opened or written {why} allow writing to the file and to its directory."
        elif _is(error, "SQLITE_NOTADB"):
            message = f"is not a budget file {why} give another path."
        else:
            raise describe_damage(path, " ".join(str(error).split())) from error
        raise BudgetFileError(f"path={path!r} {message}") from error
    except UnicodeDecodeError as error:
        raise describe_damage(path, "names in it are no text") from error
    except OSError as error:
        raise BudgetFileError(
            f"path={path!r} cannot be used ({error.strerror or error}); nothing was charged: see to the "
            "disk and to the permissions."
        ) from error


def statements(script: str) -> Iterator[str]:
    """The statements of a script one by one; executescript would commit before them."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


# --- the name of a new file ---

_HEADER = 100  # bytes at the beginning of a file of SQLite, without which it is none
_MADE_WITHIN = 1.0  # seconds


def publish(made: str, path: str) -> None:
    """Give a complete file its own name, which must not be there."""
    try:
        os.link(made, path)
    except FileExistsError:
        raise
    except (AttributeError, OSError) as error:
        # where the file system has no hard links, the name is claimed
        no_links = (errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EMLINK, errno.EOPNOTSUPP, errno.ENOTSUP)
        if isinstance(error, OSError) and error.errno not in no_links:
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
