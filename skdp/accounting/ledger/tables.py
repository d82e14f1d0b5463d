"""The tables of a ledger's file, and whether a file has them whole.

What a file holds is read through its tables, so damage to their definitions, or to the tree of pages that holds them,
can hide entries whose hashes are right. Three things are compared before the entries are believed: the definitions
with those written here, the tree with itself (`PRAGMA quick_check`), and the entries with `last_entry`, which has a
page of its own. A single page that is damaged, of an older moment, or in the place of another cannot change entries
and `last_entry` alike.
"""

from __future__ import annotations

import contextlib
import sqlite3
from functools import lru_cache

from skdp.exceptions import BudgetFileError

from .sqlite import describe_damage

FILE_SCHEMA = 5
"""Of the file, as `PRAGMA user_version`; no other one is read but the one before."""

_LATER = ", method TEXT, adjacency TEXT"  # columns of the header that the schema before does not have

_APPLICATION = 0x736B6470  # "skdp", which marks a file as ours

_FOREVER = "BEGIN SELECT RAISE(ABORT, 'a budget is never altered, charges are added at its end'); END"
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
"""SQL that makes the tables of a new file, and marks it."""

BEGIN_LAST_ENTRY = "INSERT INTO last_entry SELECT 0, hash FROM header"
"""SQL that enters what is last, once the header is written; from then on the file does so itself."""


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
