"""The log in a SQLite file with one transaction per charge, shared by threads, processes and scripts.

**Charges.** The cost of a charge is computed from the present content of the file, without a lock. Then one `BEGIN
IMMEDIATE` reads later charges of other processes. If there are none, the entry is written and COMMIT stores it on disk;
otherwise the cost is computed again. Slow computations therefore never block other processes. A process that dies
before COMMIT has charged nothing and read no data.

**Creation.** The file is written completely under a temporary name and then linked to its final name, so it is never
visible half-written. On file systems without hard links, the final name is created exclusively and the first bytes are
written last. Until then it is not a valid SQLite file, so it cannot be charged.

**Validation.** Damage to the table definitions, or to the page tree of the tables, can hide entries with correct
hashes. Therefore three checks precede the use of the entries. The definitions must equal those below, the tree must be
consistent (`PRAGMA quick_check`), and the last entry must equal `last_entry`, which has a separate page. A single page
that is damaged, outdated or misplaced cannot change both in the same way.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

from skdp.accounting.ledger.admission import LOCK, Turn, admit
from skdp.accounting.ledger.charges import Charge, Terms
from skdp.accounting.ledger.filters import REMOVED_FAMILIES
from skdp.accounting.ledger.ledger import Ledger
from skdp.accounting.ledger.serial import charge_from_fields, charge_to_fields, link
from skdp.accounting.ledger.sqlite import (
    JOURNALS,
    absolute,
    describe_damage,
    publish,
    statements,
    transaction,
    translate_errors,
    wait_until_made,
)
from skdp.exceptions import BudgetFileError, warn

# Schema of the file (`PRAGMA user_version`); this one and the previous one can be read.
FILE_SCHEMA = 5

_LATER = ", method TEXT, adjacency TEXT"  # columns of the header that the previous schema lacks

_APPLICATION = 0x736B6470  # "skdp", which identifies budget files

_FOREVER = "BEGIN SELECT RAISE(ABORT, 'a budget is never altered, charges are added at its end'); END"
# SQL that creates the tables of a new file.
SCRIPT = f"""
CREATE TABLE header (
    version INTEGER NOT NULL, id TEXT NOT NULL, created TEXT NOT NULL, epsilon REAL, delta REAL, unit TEXT NOT NULL,
    filter_family TEXT NOT NULL, hash TEXT NOT NULL{_LATER});
CREATE TABLE charges (
    seq INTEGER PRIMARY KEY, time TEXT NOT NULL, label TEXT NOT NULL, parameters TEXT NOT NULL, event TEXT NOT NULL,
    adjacency TEXT NOT NULL, note TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL, kind TEXT, rule TEXT,
    partition TEXT, partition_rule TEXT);
CREATE TRIGGER header_update BEFORE UPDATE ON header {_FOREVER};
CREATE TRIGGER header_delete BEFORE DELETE ON header {_FOREVER};
CREATE TRIGGER header_insert BEFORE INSERT ON header WHEN EXISTS (SELECT 1 FROM header) {_FOREVER};
CREATE TRIGGER charges_update BEFORE UPDATE ON charges {_FOREVER};
CREATE TRIGGER charges_delete BEFORE DELETE ON charges {_FOREVER};
CREATE TRIGGER charges_insert BEFORE INSERT ON charges
    WHEN NEW.seq IS NOT (SELECT COALESCE(MAX(seq), 0) + 1 FROM charges) {_FOREVER};
CREATE TABLE last_entry (seq INTEGER NOT NULL, hash TEXT NOT NULL);
CREATE TRIGGER last_entry_update BEFORE UPDATE ON last_entry
    WHEN NEW.seq IS NOT OLD.seq + 1 OR NEW.hash IS NOT (SELECT hash FROM charges WHERE seq = NEW.seq) {_FOREVER};
CREATE TRIGGER last_entry_delete BEFORE DELETE ON last_entry {_FOREVER};
CREATE TRIGGER last_entry_insert BEFORE INSERT ON last_entry WHEN EXISTS (SELECT 1 FROM last_entry) {_FOREVER};
CREATE TRIGGER charges_inserted AFTER INSERT ON charges
    BEGIN UPDATE last_entry SET seq = NEW.seq, hash = NEW.hash; END;
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {FILE_SCHEMA};
"""


def check_schema(path: str, connection: sqlite3.Connection) -> None:
    """Raise if the file is not a budget file, or has an unsupported schema."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != _APPLICATION:
        raise BudgetFileError(f"path={path!r} is not a budget file. No budget was consumed. Use another path.")
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if found not in (FILE_SCHEMA - 1, FILE_SCHEMA):
        raise BudgetFileError(
            f"path={path!r} must have schema {FILE_SCHEMA - 1} or {FILE_SCHEMA}, got {found}. No budget was consumed. "
            "Use the version of skdp that wrote the file, or restore an intact copy."
        )


def check_tables(path: str, connection: sqlite3.Connection) -> None:
    """Raise if the table definitions were changed, or the pages are inconsistent."""
    if _definitions(connection) not in (_made(SCRIPT), _made(SCRIPT.replace(_LATER, ""))):
        raise describe_damage(path, "its table definitions were changed")
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise describe_damage(path, " ".join(str(found).split()))


def _definitions(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
    return sorted(repr(tuple(row)) for row in rows)


@lru_cache
def _made(script: str) -> list[str]:
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(script)
        return _definitions(connection)


def read_last(path: str, connection: sqlite3.Connection) -> tuple[int, str]:
    """Return the number and hash of the last entry, from their separate table."""
    found = connection.execute("SELECT seq, hash FROM last_entry").fetchall()
    if len(found) != 1:
        raise describe_damage(path, "its last entry is not recorded")
    return found[0][0], found[0][1]


# Attempts to write an entry; each failure means that another process has written one.
_ATTEMPTS = 1000


# Rows of entries, with the number and hash of the last entry.
Fetched = tuple[list[dict[str, Any]], tuple[int, str]]


class Store:
    """Log in a SQLite file, see the module.

    Parameters
    ----------
    path : str
        Absolute path.
    terms : Terms
        Terms of the file.
    genesis : str
        Hash of its header.
    """

    is_copy = False

    def __init__(self, path: str, terms: Terms, genesis: str) -> None:
        self.path, self.terms = path, terms
        self._ledger, self._heads = Ledger(terms), [genesis]
        self._turn = Turn()
        self._noted = (0, genesis)  # last entry seen by this process, or by the one that sent the handle
        self._sound = False  # whether this process has validated the whole file

    @classmethod
    def at(cls, path: Any, wanted: Terms | None = None, asked: dict[str, Any] | None = None) -> Store:
        """Return the store of a file.

        Parameters
        ----------
        path : str or path-like
        wanted : Terms, optional
            Terms of a file to create if none exists. If None, the file must exist.
        asked : dict, optional
            Required terms, with the names of `Terms.to_dict`.

        Returns
        -------
        Store
            The same object for each file and process, so that entries are read once.
        """
        path = absolute(path)
        if wanted is not None and not os.path.lexists(path):
            if wanted.epsilon is None:
                warn(
                    f"path={path!r} did not exist, and a budget file without a budget was created. Set `epsilon` and "
                    "`delta`, or use PrivacyAccountant.open(path) for an existing file."
                )
            _create(path, wanted)
        wait_until_made(path)
        terms, genesis = transaction(path, "BEGIN", partial(_header, path))
        for name, value in (asked or {}).items():
            found = terms.to_dict()[name]
            if value is not None and value != found:
                raise ValueError(
                    f"{name}={value!r} contradicts {name}={found!r}, with which {path} was created. Remove `{name}`, "
                    "or use another file."
                )
        return _handle(path, terms, genesis)

    @classmethod
    def begin(cls, path: Any, terms: Terms, charges: Sequence[Charge]) -> Store:
        """Create a file with these terms and charges."""
        path = absolute(path)
        if os.path.lexists(path) or not _create(path, terms, charges):
            raise ValueError(f"path={path!r} already exists and is not overwritten. Use a new path.")
        return cls.at(path)

    def read(self) -> Ledger:
        """Return all entries so far, by any process."""
        with LOCK:
            self._enter(transaction(self.path, "BEGIN", self._fetch))
            return self._ledger.snapshot()

    def check(self, charge: Charge) -> None:
        """Raise what `append` would raise, without writing."""
        admit(self.read(), charge)
        transaction(self.path, "BEGIN IMMEDIATE", self._catch_up)

    def append(self, charge: Charge) -> None:
        """Admit an entry and write it in one transaction, or raise without writing."""
        with self._turn.lock():
            for _ in range(_ATTEMPTS):
                seen = self.read()
                if self._try_to_write(admit(seen, charge), len(seen.entries)):
                    return
        raise BudgetFileError(
            f"path={self.path!r} was charged by other processes {_ATTEMPTS} times while the cost of this charge was "
            "computed. No budget was consumed. Repeat the fit while fewer processes run."
        )

    def _try_to_write(self, entry: Charge, known: int) -> bool:
        """Write an entry if the file has no entries beyond the `known` ones; return whether it was written."""
        with LOCK:
            head = transaction(self.path, "BEGIN IMMEDIATE", partial(self._write, entry, known))
            if head is not None:
                self._noted = len(self._heads), head  # checked with the next read
        return head is not None

    def _write(self, entry: Charge, known: int, connection: sqlite3.Connection) -> str | None:
        """Return the hash of the written entry, or None if another process wrote first."""
        self._catch_up(connection)
        if len(self._ledger.entries) != known:
            return None
        return _insert(connection, "charges", charge_to_fields(entry, len(self._heads), self._heads[-1]))

    def verify(self) -> list[str]:
        """Recompute the hashes of the chain from the whole file; raise at the first mismatch."""
        with LOCK:
            self._forget()
            self.read()
            return list(self._heads)

    def _catch_up(self, connection: sqlite3.Connection) -> None:
        self._enter(self._fetch(connection))

    def _fetch(self, connection: sqlite3.Connection) -> Fetched:
        """Return the new entries and the recorded last entry; validate the file on the first call."""
        if _header(self.path, connection)[1] != self._heads[0]:
            raise BudgetFileError(
                f"path={self.path!r} was replaced by another budget file after it was opened. No budget was consumed. "
                "Restore the first file, or open the new one with PrivacyAccountant.open."
            )
        if not self._sound:
            check_tables(self.path, connection)
        rows = _rows(connection, "SELECT * FROM charges WHERE seq >= ? ORDER BY seq", len(self._heads) - 1)
        return rows, read_last(self.path, connection)

    def _enter(self, fetched: Fetched) -> None:
        try:
            _read_on(self.path, fetched, self._ledger, self._heads)
        except BaseException:  # Ctrl-C too: discard a partial read and read again
            self._forget()
            raise
        count, head = self._noted
        if self._heads[count : count + 1] != [head]:
            raise describe_damage(self.path, f"entry {count}, which was read before, is missing or altered")
        self._noted, self._sound = (len(self._heads) - 1, self._heads[-1]), True

    def _forget(self) -> None:
        """Discard the state, so that the next call reads and validates the whole file."""
        self._ledger, self._heads, self._sound = Ledger(self.terms), self._heads[:1], False

    def __reduce__(self) -> tuple[Callable[..., Store], tuple[Any, ...]]:
        return _handle, (self.path, self.terms, self._heads[0], *self._noted)


_STORES: dict[tuple[str, str], Store] = {}


def _handle(path: str, terms: Terms, genesis: str, count: int = 0, head: str = "") -> Store:
    """Return the store of this process for a file; the file is opened on first use."""
    with LOCK:
        store = _STORES.setdefault((path, genesis), Store(path, terms, genesis))
        if count > store._noted[0]:
            store._noted = (count, head)
        return store


# --- reading ----------------------------------------------------------------------------------------------


def _rows(connection: sqlite3.Connection, query: str, *values: Any) -> list[dict[str, Any]]:
    """Fetch all rows at once: a cursor that Ctrl-C interrupts would keep its lock."""
    return [dict(row) for row in connection.execute(query, values).fetchall()]


def _hash(row: dict[str, Any]) -> str | None:
    """Return the hash of a row, or None if its types are invalid."""
    try:
        return link(row)
    except TypeError:  # text that became bytes
        return None


def _header(path: str, connection: sqlite3.Connection) -> tuple[Terms, str]:
    """Return the terms of the file and the verified hash of its header."""
    check_schema(path, connection)
    rows = _rows(connection, "SELECT * FROM header")
    written = rows[0].pop("hash", None) if len(rows) == 1 else None
    if written is None or written != _hash(rows[0]):
        raise describe_damage(path, "its header was altered")
    (row,) = rows
    family = row.get("filter_family")
    if family in REMOVED_FAMILIES:
        raise BudgetFileError(
            f"path={path!r} states filter_family={family!r}, which was removed. No budget was consumed. Start a new "
            f"budget file: {REMOVED_FAMILIES[family]}."
        )
    try:
        return Terms.read(row), link(row)
    except (KeyError, TypeError, ValueError) as error:
        raise describe_damage(path, f"header: {error}") from error


def _read_on(path: str, fetched: Fetched, ledger: Ledger, heads: list[str]) -> None:
    """Add the new entries, each verified against the hash chain."""
    (rows, last), known = fetched, len(heads) - 1
    if known and (not rows or rows[0].get("hash") != heads[-1]):
        raise describe_damage(path, f"entry {known}, which was read before, is missing or altered")
    for row in rows[1 if known else 0 :]:
        seq, written = len(heads), row.pop("hash", None)
        if (row.get("seq"), row.get("previous"), written) != (seq, heads[-1], _hash(row)):
            raise describe_damage(path, f"entry {seq} was altered")
        try:
            ledger.add(charge_from_fields(row, ledger.terms))
        except (KeyError, TypeError, ValueError) as error:
            raise describe_damage(path, f"entry {seq}: {error}") from error
        heads.append(written)
    if last != (len(heads) - 1, heads[-1]):
        raise describe_damage(path, f"{len(heads) - 1} entries can be read, but {last[0]!r} were written")


# --- making -----------------------------------------------------------------------------------------------


def _create(path: str, terms: Terms, charges: Sequence[Charge] = ()) -> bool:
    """Create the file under a temporary name and link it; return False if another process was first."""
    for journal in JOURNALS:  # SQLite would apply it to the new file
        if os.path.exists(path + journal):
            raise BudgetFileError(
                f"path={path!r} is missing, but its journal {os.path.basename(path)}{journal} exists. No budget was "
                "consumed. Restore the file, or move the journal away."
            )
    if not os.path.isdir(os.path.dirname(path)):
        raise BudgetFileError(
            f"The directory of path={path!r} does not exist. No budget was consumed. Create the directory."
        )
    made = f"{path}.{secrets.token_hex(6)}.new"
    with LOCK, translate_errors(path):
        try:
            _write_new(made, terms, charges)
            publish(made, path)
        except FileExistsError:  # another process was first
            return False
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(made)
        if os.name == "posix":  # so that the name survives a power failure; Windows does this itself
            directory = os.open(os.path.dirname(path), os.O_RDONLY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)
    return True


def _write_new(made: str, terms: Terms, charges: Sequence[Charge]) -> None:
    connection = sqlite3.connect(made, isolation_level=None)
    try:
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("BEGIN")
        for statement in statements(SCRIPT):
            connection.execute(statement)
        head = _insert(connection, "header", terms.to_dict())
        # triggers of the file update it from now on
        connection.execute("INSERT INTO last_entry SELECT 0, hash FROM header")
        for seq, charge in enumerate(charges, start=1):
            head = _insert(connection, "charges", charge_to_fields(charge, seq, head))
        connection.execute("COMMIT")
    finally:
        connection.close()


def _insert(connection: sqlite3.Connection, table: str, row: dict[str, Any]) -> str:
    """Insert a row with its hash and return the hash."""
    row = {**row, "hash": link(row)}
    marks = ", ".join(f":{name}" for name in row)
    connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", row)
    return str(row["hash"])
