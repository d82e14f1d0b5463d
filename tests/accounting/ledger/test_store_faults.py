"""What can be wrong with a budget's file: damage, other files, no room, no permission, tampering."""

import os
import pathlib
import pickle
import shutil
import sqlite3
import tempfile
from dataclasses import replace

import pytest
from ledger_files import (
    THIRD,
    THREE,
    admitted,
    fresh,
    one_line,
    rejected,
    rewritten,
    start,
    tampered,
    with_three_charges,
)

from skdp import PrivacyAccountant
from skdp.accounting import GaussianDpEvent
from skdp.accounting.ledger import file_log, sqlite
from skdp.exceptions import BudgetFileError

# --- what can be wrong with a file ------------------------------------------------------------------------------------


def test_removed_and_exchanged_files(path, budget, rows):
    budget.spend(THIRD)
    shutil.copy(path, path + ".old")
    budget.spend(THIRD)
    shutil.copy(path, path + ".now")
    os.unlink(path)
    rejected(path, rows, "does not exist", budget)
    other = PrivacyAccountant(**THREE, path=path)
    assert other.history == ()
    rejected(path, rows, "another budget", budget)
    shutil.copy(path + ".old", path)
    rejected(path, rows, "entry 2, which was read before, is missing", budget)
    sent = pickle.dumps(budget)
    file_log._STORES.clear()
    rejected(path, rows, "entry 2, which was read before, is missing", pickle.loads(sent))
    shutil.copy(path + ".now", path)
    budget.spend(THIRD)
    assert budget.verify() == 3


def test_budget_file_missing_beside_journal_raises(path):
    """SQLite would take the journal for that of the new file, and play it back."""
    for journal in ("-wal", "-journal"):
        pathlib.Path(path + journal).write_bytes(b"charges")
        with pytest.raises(BudgetFileError, match=rf"census.budget{journal} exists") as error:
            PrivacyAccountant(**THREE, path=path)
        one_line(error)
        assert not os.path.exists(path)
        os.unlink(path + journal)


def test_truncated_files(tmp_path, path, rows):
    accountant = PrivacyAccountant(20.0, 1e-5, path=path)
    for _ in range(30):
        accountant.spend(THIRD, note="x" * 300)
    whole = pathlib.Path(path).read_bytes()
    assert len(whole) >= 8 * 4096
    for size in (0, 1, 99, 100, 4096, 5 * 4096, len(whole) - 4096, len(whole) - 2048):
        pathlib.Path(path).write_bytes(whole[:size])
        rejected(path, rows, "damaged|not a budget file")
        with pytest.raises(BudgetFileError):
            PrivacyAccountant(20.0, 1e-5, path=path).verify()
        assert pathlib.Path(path).read_bytes() == whole[:size]  # and is not overwritten
    assert os.listdir(tmp_path) == ["census.budget"]


def test_other_files_and_folders_are_left_alone(tmp_path, path, rows):
    for content in (b"age,income\n31,40000\n" * 400, b"\x00" * 8192):
        pathlib.Path(path).write_bytes(content)
        rejected(path, rows, "not a budget file")
        with pytest.raises(BudgetFileError, match="not a budget file"):
            PrivacyAccountant(**THREE, path=path)
        assert pathlib.Path(path).read_bytes() == content
    os.unlink(path)
    rewritten(path, "CREATE TABLE charges (a)")
    rejected(path, rows, "not a budget file")
    with pytest.raises(BudgetFileError, match="is not a file") as error:
        PrivacyAccountant(**THREE, path=tmp_path)
    one_line(error)
    with pytest.raises(BudgetFileError, match="Create the directory") as error:
        PrivacyAccountant(**THREE, path=tmp_path / "no" / "such.budget")
    one_line(error)


@pytest.mark.parametrize("schema", [3, 9])
def test_another_schema_is_rejected(path, budget, rows, schema):
    rewritten(path, user_version=schema)
    rejected(path, rows, f"must have schema 4 or 5, got {schema}.* Use the version of skdp that wrote the file", budget)
    rejected(path, rows, f"got {schema}")


def test_a_first_charge_under_a_ceiling_without_its_rule_is_rejected(path, rows):
    """By which further charges are admitted; it is no choice to be made once outputs were seen."""
    accountant = PrivacyAccountant(**THREE)
    accountant.spend(THIRD)
    (charge,) = accountant.history
    file_log.Store.begin(path, accountant._log.terms, [replace(charge, rule=None)])
    rejected(path, rows, "entry 1: The first charge under a budget lacks its rule")


def test_a_locked_file(path, budget, rows, monkeypatch):
    monkeypatch.setattr(sqlite, "_WAIT", 0.2)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    rejected(path, rows, "locked by another process for", budget)
    assert budget.history == ()  # reading goes on
    holder.execute("ROLLBACK")
    holder.close()
    assert admitted(budget, THIRD) == 1


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
@pytest.mark.parametrize("modes", [(0o444, 0o777), (0o666, 0o555)])
def test_read_only_file_or_folder_is_read_and_not_charged(read_only, modes):
    folder, protect = read_only
    path = os.path.join(folder, "census.budget")
    PrivacyAccountant(**THREE, path=path).spend(THIRD)
    protect(folder, *modes)
    accountant = fresh(path)
    assert accountant.verify() == len(accountant.history) == 1
    with pytest.raises(BudgetFileError, match=r"No budget was consumed. Set write permission for the file") as error:
        accountant.spend(THIRD)
    assert path in one_line(error)
    assert len(fresh(path).history) == 1


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_read_only_file_beside_journal_raises(read_only):
    """The file alone would show fewer charges than were made."""
    folder, protect = read_only
    path = os.path.join(folder, "census.budget")
    PrivacyAccountant(**THREE, path=path).spend(THIRD)
    pathlib.Path(path + "-journal").write_bytes(b"charges that are not in the file yet")
    protect(folder)
    with pytest.raises(BudgetFileError, match="cannot be opened or written") as error:
        fresh(path)
    assert path in one_line(error)


FULL = """
import resource
accountant = PrivacyAccountant.open(path)
limit = os.path.getsize(path) + 40000
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
spent = 0
try:
    while True:
        accountant.spend(GaussianDpEvent(380.0), note="x" * 200)
        spent += 1
except BudgetFileError as error:
    print(spent, error)
"""


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
def test_file_that_may_not_grow_keeps_earlier_charges(path):
    """A limit on the size of files stands for a full disk: charges go on until one cannot be written."""
    accountant = PrivacyAccountant(20.0, 1e-5, path=path)
    accountant.spend(GaussianDpEvent(380.0))
    spent, _, message = start(FULL, path, "-").communicate(timeout=600)[0].partition(" ")
    assert "\n" not in message.strip()
    assert "Check the disk" in message
    assert "No budget was consumed" in message
    assert int(spent) > 20
    assert fresh(path).verify() == 1 + int(spent)
    accountant.spend(GaussianDpEvent(380.0))
    assert accountant.verify() == 2 + int(spent)


# --- tampering --------------------------------------------------------------------------------------------------------


def test_the_database_itself_forbids_changes(path):
    accountant = with_three_charges(path)
    for statement in (
        "UPDATE charges SET label = 'z' WHERE seq = 2",
        "DELETE FROM charges WHERE seq = 3",
        "INSERT OR REPLACE INTO charges SELECT * FROM charges WHERE seq = 2",
        "UPDATE header SET epsilon = 90",
        "DELETE FROM header",
        "INSERT INTO header SELECT * FROM header",
        "UPDATE last_entry SET seq = 2",
        "DELETE FROM last_entry",
        "INSERT INTO last_entry SELECT * FROM last_entry",
    ):
        with pytest.raises(sqlite3.IntegrityError, match="a budget is never altered"):
            rewritten(path, statement)
    assert accountant.verify() == 3


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        *((f"UPDATE charges SET {c} = 'x' WHERE seq = 2", "entry 2") for c in ("time", "hash")),
        *((f"UPDATE charges SET {c} = '1' WHERE seq = 1", "entry 1") for c in ("event", "adjacency")),
        ("UPDATE charges SET previous = 'x' WHERE seq = 3", "entry 3"),
        ("UPDATE charges SET seq = 7 WHERE seq = 3", "entry 3"),
        ("DELETE FROM charges WHERE seq = 2", "entry 2"),
        *((f"UPDATE header SET {c} = 90" , "header") for c in ("epsilon", "unit", "id")),
        ("DELETE FROM header", "header"),
        ("UPDATE charges SET label = CAST(label AS BLOB) WHERE seq = 1", "damaged"),  # bytes, where text was
        ("DELETE FROM charges WHERE seq = 3", "2 entries can be read, but 3 were written"),
        ("UPDATE last_entry SET seq = 2", "3 entries can be read, but 2 were written"),
        ("DELETE FROM last_entry", "its last entry is not recorded"),
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
    with pytest.raises(BudgetFileError, match="altered or lost since the hash was stored") as error:
        fresh(path).verify(head=noted)
    one_line(error)
    with pytest.raises(BudgetFileError, match="entry 3, which was read before"):
        accountant.verify()


@pytest.mark.parametrize("statement", ["DROP TRIGGER charges_update", "CREATE TABLE more (text TEXT)"])
def test_other_tables_than_those_that_were_made_are_rejected(path, rows, statement):
    with_three_charges(path)
    rewritten(path, statement)
    rejected(path, rows, "its table definitions were changed")
