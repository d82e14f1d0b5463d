"""What can be wrong with a budget's file: damage, other files, no room, no permission, tampering."""

from __future__ import annotations

import os
import pathlib
import pickle
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from dataclasses import replace

import pytest
from ledger_files import (
    READY,
    ROOT,
    THIRD,
    THREE,
    admitted,
    fresh,
    one_line,
    refused,
    rewritten,
    start,
    tampered,
    with_three_charges,
)

from skdp import PrivacyAccountant
from skdp.accounting import GaussianDpEvent
from skdp.accounting.ledger import sqlite as _sqlite
from skdp.accounting.ledger import store as _store
from skdp.exceptions import BudgetFileError

FULL_DISK = """
mount -t tmpfs -o size=200k tmpfs "$1" || exit 77
cp "$2" "$1/census.budget"
"$3" -c "$4" "$1/census.budget" -
code=$?
cp "$1/census.budget" "$2"
exit $code
"""


FILL = """
accountant = PrivacyAccountant.open(path)
spent = 0
with open(path + ".filler", "wb", buffering=0) as filler:
    try:
        while True:
            filler.write(b"x" * 1024)
    except OSError:
        pass
try:
    while True:
        accountant.spend(GaussianDpEvent(380.0), note="x" * 200)
        spent += 1
except BudgetFileError as error:
    assert len(accountant.history) == spent
    os.unlink(path + ".filler")
    accountant.spend(GaussianDpEvent(380.0), note="x" * 200)
    print(spent + 1, error)
"""

# --- what can be wrong with a file ------------------------------------------------------------------------------------


def test_removed_and_exchanged_files(path, budget, rows):
    budget.spend(THIRD)
    shutil.copy(path, path + ".old")
    budget.spend(THIRD)
    shutil.copy(path, path + ".now")
    os.unlink(path)
    refused(path, rows, "does not exist", budget)
    other = PrivacyAccountant(**THREE, path=path)
    assert other.history == ()
    refused(path, rows, "another budget", budget)
    shutil.copy(path + ".old", path)
    refused(path, rows, "entry 2, which was there before, is gone", budget)
    sent = pickle.dumps(budget)
    _store._STORES.clear()
    refused(path, rows, "entry 2, which was there before, is gone", pickle.loads(sent))
    shutil.copy(path + ".now", path)
    budget.spend(THIRD)
    assert budget.verify() == 3


@pytest.mark.parametrize("journal", ["-wal", "-journal"])
def test_a_journal_without_its_file_is_not_forgotten(path, journal):
    """SQLite would take it for that of the new file, and play it back."""
    pathlib.Path(path + journal).write_bytes(b"charges")
    with pytest.raises(BudgetFileError, match=rf"census.budget{journal} is there") as error:
        PrivacyAccountant(**THREE, path=path)
    one_line(error)
    assert not os.path.exists(path)


def test_truncated_files(tmp_path, path, rows):
    accountant = PrivacyAccountant(20.0, 1e-5, path=path)
    for _ in range(30):
        accountant.spend(THIRD, note="x" * 300)
    whole = pathlib.Path(path).read_bytes()
    assert len(whole) >= 8 * 4096
    for size in sorted({0, 1, 50, 99, 100, 1000, *range(4096, len(whole), 4096), len(whole) - 4000, len(whole) - 2048}):
        pathlib.Path(path).write_bytes(whole[:size])
        refused(path, rows, "damaged|not a budget file")
        with pytest.raises(BudgetFileError):
            PrivacyAccountant(20.0, 1e-5, path=path).verify()
        assert pathlib.Path(path).read_bytes() == whole[:size]  # and is not overwritten
    assert os.listdir(tmp_path) == ["census.budget"]


@pytest.mark.parametrize("content", [b"age,income\n31,40000\n" * 400, b"\x00" * 8192])
def test_other_files_are_left_alone(path, rows, content):
    pathlib.Path(path).write_bytes(content)
    refused(path, rows, "not a budget file")
    with pytest.raises(BudgetFileError, match="not a budget file"):
        PrivacyAccountant(**THREE, path=path)
    assert pathlib.Path(path).read_bytes() == content


def test_other_databases_and_folders_are_left_alone(tmp_path, path, rows):
    rewritten(path, "CREATE TABLE charges (a)")
    refused(path, rows, "not a budget file")
    with pytest.raises(BudgetFileError, match="is not a file") as error:
        PrivacyAccountant(**THREE, path=tmp_path)
    one_line(error)
    with pytest.raises(BudgetFileError, match="make the folder") as error:
        PrivacyAccountant(**THREE, path=tmp_path / "no" / "such.budget")
    one_line(error)


@pytest.mark.parametrize("schema", [0, 1, 2, 3, 9])
def test_another_schema_is_refused(path, budget, rows, schema):
    rewritten(path, user_version=schema)
    refused(path, rows, f"has schema {schema}, this skdp reads 4 alone; .* use the skdp that wrote it", budget)
    refused(path, rows, f"has schema {schema}")


def test_a_first_charge_under_a_ceiling_without_its_rule_is_refused(path, rows):
    """By which further charges are admitted; it is no choice to be made once outputs were seen."""
    accountant = PrivacyAccountant(**THREE)
    accountant.spend(THIRD)
    (charge,) = accountant.history
    _store.Store.begin(path, accountant._log.terms, [replace(charge, rule=None)])
    refused(path, rows, "entry 1: rule=None with the first charge")


def test_a_journal_that_another_program_chose_goes_with_the_next_charge(path, budget):
    rewritten(path, journal_mode="WAL")
    budget.spend(THIRD)
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    connection.close()


def test_a_locked_file(path, budget, rows, monkeypatch):
    monkeypatch.setattr(_sqlite, "_WAIT", 0.2)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    refused(path, rows, "locked by another process for", budget)
    assert budget.history == ()  # reading goes on
    holder.execute("ROLLBACK")
    holder.close()
    assert admitted(budget, THIRD) == 1


def test_a_file_that_nobody_else_may_read_is_waited_for_and_refused(path, budget, monkeypatch):
    budget.spend(THIRD)
    monkeypatch.setattr(_sqlite, "_WAIT", 0.3)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(BudgetFileError, match="locked by another process") as error:
        fresh(path)
    assert path in one_line(error)
    other.execute("ROLLBACK")
    other.close()
    assert len(fresh(path).history) == 1


@pytest.fixture
def read_only():
    """A function that makes a folder and its files read-only, also for root; undone at the end."""
    user, made = os.geteuid(), []

    def protect(folder, of_files=0o444, of_folder=0o555):
        made.append(folder)
        for name in os.listdir(folder):
            os.chmod(os.path.join(folder, name), of_files)
        os.chmod(folder, of_folder)
        if user == 0:
            os.seteuid(65534)  # permissions do not bind root

    with tempfile.TemporaryDirectory() as folder:  # pytest's own are closed to other users
        yield folder, protect
        os.seteuid(user)
        for each in made:
            os.chmod(each, 0o755)


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
@pytest.mark.parametrize("modes", [(0o444, 0o777), (0o666, 0o555), (0o444, 0o555)])
def test_read_only_file_or_folder_is_read_and_not_charged(read_only, modes):
    folder, protect = read_only
    path = os.path.join(folder, "census.budget")
    PrivacyAccountant(**THREE, path=path).spend(THIRD)
    protect(folder, *modes)
    accountant = fresh(path)
    assert accountant.verify() == len(accountant.history) == 1
    with pytest.raises(BudgetFileError, match="nothing was charged: allow writing to the file") as error:
        accountant.spend(THIRD)
    assert path in one_line(error)
    assert len(fresh(path).history) == 1


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
@pytest.mark.parametrize("journal", ["-wal", "-journal"])
def test_a_read_only_file_beside_a_journal_is_refused(read_only, journal):
    """The file alone would show fewer charges than were made."""
    folder, protect = read_only
    path = os.path.join(folder, "census.budget")
    PrivacyAccountant(**THREE, path=path).spend(THIRD)
    pathlib.Path(path + journal).write_bytes(b"charges that are not in the file yet")
    protect(folder)
    with pytest.raises(BudgetFileError, match="cannot be opened or written") as error:
        fresh(path)
    assert path in one_line(error)


FULL = """
import resource
accountant = PrivacyAccountant.open(path)
limit = os.path.getsize(path) + int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
spent = 0
try:
    while True:
        accountant.spend(GaussianDpEvent(380.0), note="x" * 200)
        spent += 1
except BudgetFileError as error:
    print(spent, error)
"""


def full(out):
    spent, _, told = out.partition(" ")
    assert "\n" not in told.strip()
    assert "disk is full" in told
    assert "nothing was charged" in told
    return int(spent)


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
@pytest.mark.parametrize("room", [-40000, 40000])
def test_a_file_that_may_not_grow(path, room):
    """A limit on the size of files stands for a full disk: charges go on until one cannot be written."""
    accountant = PrivacyAccountant(20.0, 1e-5, path=path)
    for _ in range(100):
        accountant.spend(GaussianDpEvent(380.0), note="y" * 200)
    child = start(FULL, path, "-", room)
    spent = full(child.communicate(timeout=600)[0])
    assert fresh(path).verify() == 100 + spent
    accountant.spend(GaussianDpEvent(380.0))
    assert accountant.verify() == 101 + spent


# --- tampering --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE charges SET label = 'z' WHERE seq = 2",
        "DELETE FROM charges WHERE seq = 3",
        "INSERT OR REPLACE INTO charges SELECT * FROM charges WHERE seq = 2",
        "INSERT INTO charges SELECT 9, time, '', parameters, event, adjacency, '', previous, hash, '', '', '', '' "
        "FROM charges",
        "UPDATE header SET epsilon = 90",
        "DELETE FROM header",
        "INSERT INTO header SELECT * FROM header",
        "UPDATE last_entry SET seq = 2",
        "UPDATE last_entry SET hash = 'x'",
        "DELETE FROM last_entry",
        "INSERT INTO last_entry SELECT * FROM last_entry",
    ],
)
def test_the_database_itself_forbids_changes(path, statement):
    accountant = with_three_charges(path)
    with pytest.raises(sqlite3.IntegrityError, match="a budget is never altered"):
        rewritten(path, statement)
    assert accountant.verify() == 3


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        *((f"UPDATE charges SET {c} = 'x' WHERE seq = 2", "entry 2") for c in ("time", "label", "note", "hash")),
        *((f"UPDATE charges SET {c} = '1' WHERE seq = 1", "entry 1") for c in ("parameters", "event", "adjacency")),
        ("UPDATE charges SET event = replace(event, '3.8', '380.0') WHERE seq = 3", "entry 3"),
        ("UPDATE charges SET previous = 'x' WHERE seq = 3", "entry 3"),
        ("UPDATE charges SET seq = 7 WHERE seq = 3", "entry 3"),
        ("DELETE FROM charges WHERE seq = 1", "entry 1"),
        ("DELETE FROM charges WHERE seq = 2", "entry 2"),
        *((f"UPDATE header SET {c} = 90" , "header") for c in ("epsilon", "delta", "unit", "created", "id")),
        ("DELETE FROM header", "header"),
        ("UPDATE charges SET label = CAST(label AS BLOB) WHERE seq = 1", "damaged"),  # bytes, where text was
        ("UPDATE header SET unit = CAST(unit AS BLOB)", "damaged"),
        ("DELETE FROM charges WHERE seq = 3", "2 entries can be read, and 3 were written"),
        ("UPDATE last_entry SET seq = 2", "3 entries can be read, and 2 were written"),
        ("UPDATE last_entry SET hash = 'x'", "3 entries can be read, and 3 were written"),
        ("DELETE FROM last_entry", "does not tell its last entry"),
        ("INSERT INTO last_entry SELECT * FROM last_entry", "does not tell its last entry"),
    ],
)  # fmt: skip
def test_tampering_is_seen(path, statement, named):
    with_three_charges(path)
    tampered(path, statement)
    for use in (lambda: fresh(path).verify(), lambda: fresh(path).spend(THIRD)):
        with pytest.raises(BudgetFileError, match=named) as error:
            use()
        one_line(error)


def test_lost_last_charges_are_seen_by_a_head_that_was_noted(path):
    accountant = with_three_charges(path)
    noted = accountant.head
    accountant = fresh(path)
    assert accountant.verify(head=noted) == 3
    hidden = "UPDATE last_entry SET seq = 2, hash = (SELECT hash FROM charges WHERE seq = 2)"
    tampered(path, "DELETE FROM charges WHERE seq = 3", hidden)
    assert fresh(path).verify() == 2  # a chain says nothing of what comes after its end
    with pytest.raises(BudgetFileError, match="altered or lost since it was noted") as error:
        fresh(path).verify(head=noted)
    one_line(error)
    with pytest.raises(BudgetFileError, match="entry 3, which was there before"):
        accountant.verify()


def test_a_charge_that_this_version_cannot_price_is_refused(path, rows):
    with_three_charges(path)
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    row = dict(connection.execute("SELECT * FROM charges WHERE seq = 3").fetchone())
    connection.close()
    row.pop("hash")
    row["event"] = row["event"].replace("Gaussian", "Uniform")
    changed = f"UPDATE charges SET event = '{row['event']}', hash = '{_store.link(row)}' WHERE seq = 3"
    tampered(path, changed, f"UPDATE last_entry SET hash = '{_store.link(row)}'")
    refused(path, rows, "entry 3: event='UniformDpEvent' is not known")


@pytest.mark.parametrize(
    "statement",
    ["DROP TRIGGER charges_update", "CREATE TABLE more (text TEXT)", "ALTER TABLE charges ADD COLUMN site TEXT"],
)
def test_other_tables_than_those_that_were_made_are_refused(path, rows, statement):
    with_three_charges(path)
    rewritten(path, statement)
    refused(path, rows, "its tables are not as they were made")


def test_no_room_for_a_transaction_is_told_and_rolled_back(path, budget):
    def grow(connection):
        connection.execute("PRAGMA max_page_count = 1")  # as it is, and no more
        connection.execute("CREATE TABLE more AS SELECT zeroblob(1000000)")

    with pytest.raises(BudgetFileError, match=r"could not be written .*: see whether the disk is full") as error:
        _sqlite.transaction(path, "BEGIN IMMEDIATE", grow)
    assert path in one_line(error)
    assert fresh(path).verify() == 0


@pytest.mark.skipif(shutil.which("unshare") is None, reason="no user namespaces here")
def test_a_disk_that_is_full(tmp_path, path):
    """A disk of 200 kB in a namespace of its own, filled to the last byte."""
    PrivacyAccountant(20.0, 1e-5, path=path)
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["unshare", "-rm", "sh", "-c", FULL_DISK, "sh", disk, path, sys.executable, READY + FILL]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode == 77 or "unshare:" in done.stderr:
        pytest.skip("no mounts in user namespaces here")
    assert done.returncode == 0, done.stderr
    assert fresh(path).verify() == full(done.stdout)
