"""The log in a file: SQLite, one transaction a charge, on one balance for threads, processes and scripts.

A charge is priced against what the file holds, without a lock. Then comes one `BEGIN IMMEDIATE`: what others charged
meanwhile is read, and if it is nothing the entry is written, and COMMIT has it on the disk; otherwise it is priced
again. So no price, however long it takes, keeps others waiting. A process that dies before COMMIT has charged nothing
and read nothing of the data.

The file is created complete under another name and linked to its own, so there is no moment at which it is half made,
and an empty file is never mistaken for a new one. Where the file system has no hard links, its own name is claimed by
an exclusive creation and the content written there, the first bytes last: until then it is not a file of SQLite, and
nobody charges it.

The tables of a ledger's file, and whether a file has them whole.

What a file holds is read through its tables, so damage to their definitions, or to the tree of pages that holds them,
can hide entries whose hashes are right. Three things are compared before the entries are believed: the definitions
with those written here, the tree with itself (`PRAGMA quick_check`), and the entries with `last_entry`, which has a
page of its own. A single page that is damaged, of an older moment, or in the place of another cannot change entries
and `last_entry` alike.
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

# Of the file, as `PRAGMA user_version`; no other one is read but the one before.
FILE_SCHEMA = 5

_LATER = ", method TEXT, adjacency TEXT"  # columns of the header that the schema before does not have

_APPLICATION = 0x736B6470  # "skdp", which marks a file as ours

_FOREVER = "BEGIN SELECT RAISE(ABORT, 'a budget is never altered, charges are added at its end'); END"
# SQL that makes the tables of a new file, and marks it.
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
    """Raise if the file is none of ours, or of another schema."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != _APPLICATION:
        raise BudgetFileError(f"path={path!r} is not a budget file; nothing was charged: give another path.")
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if found not in (FILE_SCHEMA - 1, FILE_SCHEMA):
        raise BudgetFileError(
            f"path={path!r} has schema {found}, this skdp reads {FILE_SCHEMA - 1} and {FILE_SCHEMA}; nothing was "
            "charged: use the skdp that wrote it, or bring back an unharmed copy."
        )


def check_tables(path: str, connection: sqlite3.Connection) -> None:
    """Raise if the tables are not those that were made, or the pages that hold them do not fit together."""
    if _definitions(connection) not in (_made(SCRIPT), _made(SCRIPT.replace(_LATER, ""))):
        raise describe_damage(path, "its tables are not as they were made")
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
    """Number and hash of the last entry, as kept apart from the entries."""
    found = connection.execute("SELECT seq, hash FROM last_entry").fetchall()
    if len(found) != 1:
        raise describe_damage(path, "it does not tell its last entry")
    return found[0][0], found[0][1]


# To write an entry; each failed one means that somebody else has written theirs.
_ATTEMPTS = 1000


# Rows of entries, and the number and hash of the last one.
Fetched = tuple[list[dict[str, Any]], tuple[int, str]]


class Store:
    """A log in a file; see the module.

    Parameters
    ----------
    path : str
        Absolute.
    terms : Terms
        Those of the file.
    genesis : str
        The hash of its header.
    """

    is_copy = False

    def __init__(self, path: str, terms: Terms, genesis: str) -> None:
        self.path, self.terms = path, terms
        self._ledger, self._heads = Ledger(terms), [genesis]
        self._turn = Turn()
        self._noted = (0, genesis)  # the last entry that was seen here, or by the process that sent the handle
        self._sound = False  # whether this process has found the whole file sound

    @classmethod
    def at(cls, path: Any, wanted: Terms | None = None, asked: dict[str, Any] | None = None) -> Store:
        """The budget in a file.

        Parameters
        ----------
        path : str or path-like
        wanted : Terms, optional
            A file that does not exist is created with these terms. None: there has to be one, and it is only read.
        asked : dict, optional
            Terms that the file has to have, by the names of `Terms.to_dict`.

        Returns
        -------
        Store
            One per file and process, so that an entry is read once.
        """
        path = absolute(path)
        if wanted is not None and not os.path.lexists(path):
            if wanted.epsilon is None:
                warn(
                    f"path={path!r}: there was no such file, and an accountant without a budget was created; give "
                    "epsilon and delta, or PrivacyAccountant.open(path) for a file that exists."
                )
            _create(path, wanted)
        wait_until_made(path)
        terms, genesis = transaction(path, "BEGIN", partial(_header, path))
        for name, value in (asked or {}).items():
            found = terms.to_dict()[name]
            if value is not None and value != found:
                raise ValueError(
                    f"{name}={value!r} contradicts the {name}={found!r} that {path} was created with and keeps; leave "
                    "it out, or start another file."
                )
        return _handle(path, terms, genesis)

    @classmethod
    def begin(cls, path: Any, terms: Terms, charges: Sequence[Charge]) -> Store:
        """A new file with these terms and charges."""
        path = absolute(path)
        if os.path.lexists(path) or not _create(path, terms, charges):
            raise ValueError(f"path={path!r} exists, and a budget is not written over; give a new path.")
        return cls.at(path)

    def read(self) -> Ledger:
        """Everything charged until now, by any process."""
        with LOCK:
            self._enter(transaction(self.path, "BEGIN", self._fetch))
            return self._ledger.snapshot()

    def check(self, charge: Charge) -> None:
        """Raise what `append` would raise, and write nothing."""
        admit(self.read(), charge)
        transaction(self.path, "BEGIN IMMEDIATE", self._catch_up)

    def append(self, charge: Charge) -> None:
        """Admit an entry, then write it down in one transaction, or raise and write nothing."""
        with self._turn.lock():
            for _ in range(_ATTEMPTS):
                seen = self.read()
                if self._try_to_write(admit(seen, charge), len(seen.entries)):
                    return
        raise BudgetFileError(
            f"path={self.path!r} was charged by others {_ATTEMPTS} times while this charge was priced; nothing was "
            "charged: start the fit again when fewer processes run."
        )

    def _try_to_write(self, entry: Charge, known: int) -> bool:
        """Write an entry if the file still holds those that were `known`; whether it did."""
        with LOCK:
            head = transaction(self.path, "BEGIN IMMEDIATE", partial(self._write, entry, known))
            if head is not None:
                self._noted = len(self._heads), head  # it is read with the next ones, and has to be there
        return head is not None

    def _write(self, entry: Charge, known: int, connection: sqlite3.Connection) -> str | None:
        """The hash of the entry that was written, None if others came first."""
        self._catch_up(connection)
        if len(self._ledger.entries) != known:
            return None
        return _insert(connection, "charges", charge_to_fields(entry, len(self._heads), self._heads[-1]))

    def verify(self) -> list[str]:
        """The hashes of the chain, computed anew from the whole file; raise at the first that is not as written."""
        with LOCK:
            self._forget()
            self.read()
            return list(self._heads)

    def _catch_up(self, connection: sqlite3.Connection) -> None:
        self._enter(self._fetch(connection))

    def _fetch(self, connection: sqlite3.Connection) -> Fetched:
        """What was written since, and what the file says was written last; the first time, of a file that is sound."""
        if _header(self.path, connection)[1] != self._heads[0]:
            raise BudgetFileError(
                f"path={self.path!r} is another budget than the one that was opened there; nothing was charged: "
                "bring the first file back, or open this one as a new PrivacyAccountant."
            )
        if not self._sound:
            check_tables(self.path, connection)
        rows = _rows(connection, "SELECT * FROM charges WHERE seq >= ? ORDER BY seq", len(self._heads) - 1)
        return rows, read_last(self.path, connection)

    def _enter(self, fetched: Fetched) -> None:
        try:
            _read_on(self.path, fetched, self._ledger, self._heads)
        except BaseException:  # Ctrl-C too: what may be half entered is forgotten, and read again
            self._forget()
            raise
        count, head = self._noted
        if self._heads[count : count + 1] != [head]:
            raise describe_damage(self.path, f"entry {count}, which was there before, is gone or altered")
        self._noted, self._sound = (len(self._heads) - 1, self._heads[-1]), True

    def _forget(self) -> None:
        """Read and check the whole file again, the next time."""
        self._ledger, self._heads, self._sound = Ledger(self.terms), self._heads[:1], False

    def __reduce__(self) -> tuple[Callable[..., Store], tuple[Any, ...]]:
        return _handle, (self.path, self.terms, self._heads[0], *self._noted)


_STORES: dict[tuple[str, str], Store] = {}


def _handle(path: str, terms: Terms, genesis: str, count: int = 0, head: str = "") -> Store:
    """The store of this process for a file; the file itself is opened when it is first used."""
    with LOCK:
        store = _STORES.setdefault((path, genesis), Store(path, terms, genesis))
        if count > store._noted[0]:
            store._noted = (count, head)
        return store


# --- reading ----------------------------------------------------------------------------------------------


def _rows(connection: sqlite3.Connection, query: str, *values: Any) -> list[dict[str, Any]]:
    """All rows at once, by a cursor without a name: one that Ctrl-C leaves half-way keeps its lock while it lives."""
    return [dict(row) for row in connection.execute(query, values).fetchall()]


def _hash(row: dict[str, Any]) -> str | None:
    """The hash of what was read; None if it is nothing that is ever written."""
    try:
        return link(row)
    except TypeError:  # text that became bytes
        return None


def _header(path: str, connection: sqlite3.Connection) -> tuple[Terms, str]:
    """Terms of the file and the hash of its header, which has to be right."""
    check_schema(path, connection)
    rows = _rows(connection, "SELECT * FROM header")
    written = rows[0].pop("hash", None) if len(rows) == 1 else None
    if written is None or written != _hash(rows[0]):
        raise describe_damage(path, "its header is not as it was written")
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
    """Enter what was appended since, each entry checked against the chain, from the last one known to the last one."""
    (rows, last), known = fetched, len(heads) - 1
    if known and (not rows or rows[0].get("hash") != heads[-1]):
        raise describe_damage(path, f"entry {known}, which was there before, is gone or altered")
    for row in rows[1 if known else 0 :]:
        seq, written = len(heads), row.pop("hash", None)
        if (row.get("seq"), row.get("previous"), written) != (seq, heads[-1], _hash(row)):
            raise describe_damage(path, f"entry {seq} is not as it was written")
        try:
            ledger.add(charge_from_fields(row, ledger.terms))
        except (KeyError, TypeError, ValueError) as error:
            raise describe_damage(path, f"entry {seq}: {error}") from error
        heads.append(written)
    if last != (len(heads) - 1, heads[-1]):
        raise describe_damage(path, f"{len(heads) - 1} entries can be read, and {last[0]!r} were written")


# --- making -----------------------------------------------------------------------------------------------


def _create(path: str, terms: Terms, charges: Sequence[Charge] = ()) -> bool:
    """Make the file under another name and link it to its own, which only one process can; whether it was this one."""
    for journal in JOURNALS:  # SQLite would play it back into the new file
        if os.path.exists(path + journal):
            raise BudgetFileError(
                f"path={path!r} has lost its file, as {os.path.basename(path)}{journal} is there and belongs to it; "
                "nothing was charged: bring the file back, or move that one away."
            )
    if not os.path.isdir(os.path.dirname(path)):
        raise BudgetFileError(f"path={path!r} is in no folder that exists; nothing was charged: make the folder.")
    made = f"{path}.{secrets.token_hex(6)}.new"
    with LOCK, translate_errors(path):
        try:
            _write_new(made, terms, charges)
            publish(made, path)
        except FileExistsError:  # somebody else was first: theirs counts
            return False
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(made)
        if os.name == "posix":  # so that the name survives a power cut too; Windows does that by itself
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
        # what is last, once the header is written; from then on the file enters it itself
        connection.execute("INSERT INTO last_entry SELECT 0, hash FROM header")
        for seq, charge in enumerate(charges, start=1):
            head = _insert(connection, "charges", charge_to_fields(charge, seq, head))
        connection.execute("COMMIT")
    finally:
        connection.close()


def _insert(connection: sqlite3.Connection, table: str, row: dict[str, Any]) -> str:
    """Write an entry with its hash, which is returned."""
    row = {**row, "hash": link(row)}
    marks = ", ".join(f":{name}" for name in row)
    connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", row)
    return str(row["hash"])
