"""Transactions on a SQLite file, with one-line error messages.

Each transaction opens and closes the file. Therefore no connection outlives a fork or is shared by threads, a removed
or replaced file is detected, and no journal remains beside the file between charges.

The journal is a rollback journal, so all committed data are in the file itself. A write-ahead log could hold charges
that would be lost with the log.

A new file gets its name only when it is complete, and never replaces another file.
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

# Suffixes of the journals that SQLite keeps beside a file; without them the file may be incomplete.
JOURNALS = ("-journal", "-wal")

_WAIT = 60.0  # seconds for the lock


def transaction(path: str, begin: str, work: Callable[[sqlite3.Connection], T]) -> T:
    """Return ``work(connection)``, run inside a transaction that is committed at the end or rolled back on exceptions.

    No Python context manager takes a database lock on entry, because an interrupt could occur before its block starts.
    """
    with LOCK, translate_errors(path), contextlib.closing(_Opened(path)) as opened:
        connection = opened.begin(begin)
        with connection:
            return work(connection)


class _Opened:
    """A connection that is always closed: it is stored here before it takes a lock.

    Parameters
    ----------
    path : str
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    def close(self) -> None:
        """Roll back and close the connection, if there is one."""
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.rollback()
            self._connection.close()

    def begin(self, begin: str) -> sqlite3.Connection:
        """Open a transaction. Retry while another process recovers or closes the file."""
        deadline = time.monotonic() + _WAIT
        while True:
            try:
                return self._connect(begin, deadline - time.monotonic())
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or time.monotonic() > deadline:
                    raise
            time.sleep(0.01)

    def _connect(self, begin: str, wait: float) -> sqlite3.Connection:
        """Try once. Without write permission or free space, the file is opened for reading."""
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
                raise last  # the file without its journal can lack charges
        return self._connect_as("mode=ro&immutable=1", begin, wait)

    def _connect_as(self, mode: str, begin: str, wait: float) -> sqlite3.Connection:
        self.close()
        address = f"{pathlib.Path(self._path).as_uri()}?{mode}"
        self._connection = sqlite3.connect(address, uri=True, timeout=max(wait, 0.0), isolation_level=None)
        connection = self._connection
        connection.row_factory = sqlite3.Row
        connection.text_factory = lambda text: text.decode("utf-8", "replace")  # invalid text fails the hash check
        connection.execute("PRAGMA synchronous = EXTRA")  # FULL, plus the directory of the journal
        connection.execute("PRAGMA fullfsync = ON")
        if begin != "BEGIN":
            with contextlib.suppress(sqlite3.OperationalError):  # another connection is open: a later charge does it
                connection.execute("PRAGMA journal_mode = DELETE")  # another program may have changed it
        connection.execute(begin)
        connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()  # takes the read lock now
        return connection


def _check_file(path: str) -> None:
    if not os.path.exists(path):
        raise BudgetFileError(
            f"path={path!r} does not exist. No budget was consumed. Correct the path, or restore the file."
        )
    if not os.path.isfile(path):
        raise BudgetFileError(f"path={path!r} is not a file. No budget was consumed. Pass the path of a budget file.")
    if os.path.getsize(path) == 0:
        raise describe_damage(path, "it is empty")


def _is(error: sqlite3.Error, *names: str) -> bool:
    found = getattr(error, "sqlite_errorname", None) or ""
    return any(found == name or found.startswith(name + "_") for name in names)


def _is_busy(error: sqlite3.Error) -> bool:
    return _is(error, "SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL")


def describe_damage(path: str, why: str) -> BudgetFileError:
    """Return the error for a damaged or altered file."""
    return BudgetFileError(
        f"path={path!r} is damaged or was altered ({why}). No budget was consumed. Restore an intact copy that "
        "contains all charges. Otherwise create a new budget file and charge to it the largest spent epsilon that can "
        "still be read, or the whole budget."
    )


@contextlib.contextmanager
def translate_errors(path: str) -> Iterator[None]:
    """Convert errors of SQLite and the file system into a one-line `BudgetFileError`."""
    try:
        yield
    except sqlite3.Error as error:
        why = f"({' '.join(str(error).split())}). No budget was consumed."
        if _is_busy(error):
            message = f"has been locked by another process for {_WAIT:.0f} s {why} Wait for that process, or stop it."
        elif _is(error, "SQLITE_FULL", "SQLITE_IOERR"):
            message = f"could not be written {why} Check the disk for space and errors, then repeat the fit."
        elif _is(error, "SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH"):
            message = f"cannot be opened or written {why} Set write permission for the file and its directory."
        elif _is(error, "SQLITE_NOTADB"):
            message = f"is not a budget file {why} Use another path."
        else:
            raise describe_damage(path, " ".join(str(error).split())) from error
        raise BudgetFileError(f"path={path!r} {message}") from error
    except UnicodeDecodeError as error:
        raise describe_damage(path, "it contains invalid text") from error
    except OSError as error:
        raise BudgetFileError(
            f"path={path!r} cannot be used ({error.strerror or error}). No budget was consumed. Check the disk and the "
            "permissions."
        ) from error


def statements(script: str) -> Iterator[str]:
    """Yield the statements of a script; executescript would commit first."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


# --- the name of a new file ---

_HEADER = 100  # bytes; a file without this header is not a SQLite file
_MADE_WITHIN = 1.0  # seconds


def publish(made: str, path: str) -> None:
    """Rename a complete file to its final name, which must not exist."""
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
    """Create the file exclusively and write its content, the first bytes last.

    The content is written to the open file only, so it never replaces a file that another process created meanwhile. A
    process that dies here leaves a file without a header, which is rejected.
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
                    os.unlink(path)  # our own incomplete file
            raise


def wait_until_made(path: str) -> None:
    """Wait while another process writes a new file on a file system without hard links."""
    deadline = time.monotonic() + _MADE_WITHIN
    while os.path.isfile(path) and time.monotonic() < deadline:
        try:
            with LOCK, open(path, "rb") as file:  # POSIX: closing a file releases all locks of this process on it
                begun = file.read(1) in (b"", b"\0")
            if not begun or time.time() - os.path.getmtime(path) > _MADE_WITHIN:
                return
        except OSError:
            return  # the transaction reports it
        time.sleep(0.005)


def absolute(path: Any) -> str:
    """Return an absolute path without symbolic links; reject dangling links, whose target would be created."""
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(name, str) or not name or "\0" in name:
        kind = ValueError if isinstance(name, str) and name else TypeError
        raise kind(f"`path` must be a non-empty string or path-like, such as 'census.budget', got {path!r}.")
    if os.path.islink(name) and not os.path.exists(name):
        raise BudgetFileError(
            f"path={name!r} is a symbolic link without a target. No budget was consumed. Restore the target, or remove "
            "the link."
        )
    return os.path.realpath(name)
