"""The tables of a ledger's file, of the present schema and of older ones, and whether a file has them whole.

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

from .sqlite import describe_damage, statements

__all__ = ["BEGIN_LAST_ENTRY", "FILE_SCHEMA", "MIGRATIONS", "check_tables", "migrate", "read_last", "script", "version"]

FILE_SCHEMA = 3
"""Of the file, as `PRAGMA user_version`. 1 had neither kinds of entries nor rules, 2 no `last_entry`."""

_APPLICATION = 0x736B6470  # "skdp", which marks a file as ours

_FOREVER = "BEGIN SELECT RAISE(ABORT, 'a budget is never altered, charges are added at its end'); END"
_KINDS = ", kind TEXT, rule TEXT"
_ENTRIES = f"""
CREATE TABLE header (
    version INTEGER NOT NULL, id TEXT NOT NULL, created TEXT NOT NULL, epsilon REAL, delta REAL, unit TEXT NOT NULL,
    filter_family TEXT NOT NULL, hash TEXT NOT NULL);
CREATE TABLE charges (
    seq INTEGER PRIMARY KEY, time TEXT NOT NULL, label TEXT NOT NULL, parameters TEXT NOT NULL, event TEXT NOT NULL,
    adjacency TEXT NOT NULL, note TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL{_KINDS});
CREATE TRIGGER header_update BEFORE UPDATE ON header {_FOREVER};
CREATE TRIGGER header_delete BEFORE DELETE ON header {_FOREVER};
CREATE TRIGGER header_insert BEFORE INSERT ON header WHEN EXISTS (SELECT 1 FROM header) {_FOREVER};
CREATE TRIGGER charges_update BEFORE UPDATE ON charges {_FOREVER};
CREATE TRIGGER charges_delete BEFORE DELETE ON charges {_FOREVER};
CREATE TRIGGER charges_insert BEFORE INSERT ON charges
    WHEN NEW.seq IS NOT (SELECT COALESCE(MAX(seq), 0) + 1 FROM charges) {_FOREVER};
"""
_LAST_ENTRY = f"""
CREATE TABLE last_entry (seq INTEGER NOT NULL, hash TEXT NOT NULL);
CREATE TRIGGER last_entry_update BEFORE UPDATE ON last_entry
    WHEN NEW.seq IS NOT OLD.seq + 1 OR NEW.hash IS NOT (SELECT hash FROM charges WHERE seq = NEW.seq) {_FOREVER};
CREATE TRIGGER last_entry_delete BEFORE DELETE ON last_entry {_FOREVER};
CREATE TRIGGER last_entry_insert BEFORE INSERT ON last_entry WHEN EXISTS (SELECT 1 FROM last_entry) {_FOREVER};
CREATE TRIGGER charges_inserted AFTER INSERT ON charges
    BEGIN UPDATE last_entry SET seq = NEW.seq, hash = NEW.hash; END;
"""

BEGIN_LAST_ENTRY = """
INSERT INTO last_entry SELECT 0, hash FROM header UNION ALL SELECT seq, hash FROM charges ORDER BY 1 DESC LIMIT 1;
"""
"""SQL that enters what is last, of a file whose header is written; from then on the file does so itself."""

MIGRATIONS = {
    1: "ALTER TABLE charges ADD COLUMN kind TEXT;\nALTER TABLE charges ADD COLUMN rule TEXT;\n",
    2: _LAST_ENTRY + BEGIN_LAST_ENTRY,
}
"""SQL that takes a file of one schema to the next. Columns may be added, entries stay as they are."""


def script(schema: int) -> str:
    """SQL that makes the tables of a file of this schema, and marks it."""
    entries = _ENTRIES.replace(_KINDS, "") if schema == 1 else _ENTRIES
    last = _LAST_ENTRY if schema > 2 else ""
    return f"{entries}{last}PRAGMA application_id = {_APPLICATION};\nPRAGMA user_version = {schema};\n"


def version(path: str, connection: sqlite3.Connection) -> int:
    """The schema of the file, one that we know."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != _APPLICATION:
        raise BudgetFileError(f"path={path!r} is not a budget file; nothing was charged: give another path.")
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if found < 1:
        raise describe_damage(path, f"schema {found}")
    if found > FILE_SCHEMA:
        raise BudgetFileError(
            f"path={path!r} has schema {found}, this skdp writes {FILE_SCHEMA}; nothing was charged: update skdp."
        )
    return int(found)


def check_tables(path: str, connection: sqlite3.Connection) -> None:
    """Raise if the tables are not those that were made, or the pages that hold them do not fit together."""
    if _definitions(connection) != _made(version(path, connection)):
        raise describe_damage(path, "its tables are not as they were made")
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise describe_damage(path, " ".join(str(found).split()))


def _definitions(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
    return sorted(repr(tuple(row)) for row in rows)


@lru_cache
def _made(schema: int) -> list[str]:
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(script(schema))
        return _definitions(connection)


def read_last(path: str, connection: sqlite3.Connection) -> tuple[int, str] | None:
    """Number and hash of the last entry, as kept apart from the entries; None in an older file, which does not."""
    if version(path, connection) < 3:
        return None
    found = connection.execute("SELECT seq, hash FROM last_entry").fetchall()
    if len(found) != 1:
        raise describe_damage(path, "it does not tell its last entry")
    return found[0][0], found[0][1]


def migrate(path: str, connection: sqlite3.Connection) -> None:
    """Bring an older file to the present schema, in the transaction of the entry that needs it."""
    found = version(path, connection)
    for schema in range(found, FILE_SCHEMA):
        for statement in statements(MIGRATIONS[schema]):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {schema + 1}")
    if found < FILE_SCHEMA:
        check_tables(path, connection)
