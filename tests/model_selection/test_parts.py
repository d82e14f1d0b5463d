"""`private_train_test_split`: one key a ledger, a part by number or label, one cost for both parts."""

import os
import signal
import subprocess

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from ledger_files import FIT, GAUSS, ROOT, fresh, one_line, together
from scipy.stats import binom

import skdp
from skdp import DPLogisticRegression, PrivacyAccountant, private_train_test_split
from skdp._checks.rows import row_norm_of, row_schema_of, with_row_norm, with_row_schema
from skdp._checks.sources import TableRows
from skdp.accounting import compose, get_epsilon
from skdp.exceptions import BudgetFileError

N = 400
X = np.arange(2.0 * N).reshape(N, 2)
Y = np.arange(N)


@pytest.fixture
def path(tmp_path):
    return os.fspath(tmp_path / "census.budget")


@pytest.fixture(params=[False, True])
def ledger(request, path):
    return PrivacyAccountant(2.0, 1e-5, path=path if request.param else None)


@pytest.fixture
def households(path):
    return PrivacyAccountant(2.0, 1e-5, unit="household", path=path)


def numbers(*parts):
    return [np.asarray(part.y).tolist() for part in parts]


def test_each_row_is_in_one_part_and_in_the_same_one_again(ledger):
    first = private_train_test_split(X, Y, accountant=ledger)
    train, test = numbers(*first)
    assert (len(train), len(test)) == (300, 100)
    assert sorted(train + test) == Y.tolist()
    assert train == sorted(train)
    np.testing.assert_array_equal(first[0].X, X[train])
    again = private_train_test_split(X, Y, accountant=fresh(ledger.path) if ledger.path else ledger)
    assert numbers(*again) == [train, test]
    assert len(ledger.entries) == 1


def test_the_parts_are_drawn_by_the_key():
    """Each ledger has a key of its own, and each row is as likely tested on as any other.

    The counts of 400 rows over 200 ledgers are binomial: one of them is outside of the bounds once in 1e6 runs.
    """
    drawn = [private_train_test_split(X, Y, accountant=PrivacyAccountant())[1].y for _ in range(200)]
    assert len({tuple(each) for each in drawn}) == 200
    counts = np.bincount(np.concatenate(drawn), minlength=N)
    low, high = binom.ppf([0.5e-6 / N, 1 - 0.5e-6 / N], 200, 0.25)
    assert low <= counts.min() <= counts.max() <= high
    runs = [np.count_nonzero(np.diff(each) == 1) for each in drawn]
    assert max(runs) < 60  # of 99 if cut by order; 25 expected, standard deviation 4


@pytest.mark.parametrize("kind", [list, pd.DataFrame, sp.coo_array, pl.DataFrame])
def test_tables_of_any_kind_keep_their_type(kind):
    ledger = PrivacyAccountant()
    plain = private_train_test_split(X, Y, accountant=ledger)
    table = kind(X.tolist() if kind is list else X)
    parts = private_train_test_split(table, Y, accountant=ledger, sample_weight=Y.tolist())
    for part, known in zip(parts, plain, strict=True):
        got = part.X.toarray() if sp.issparse(part.X) else np.asarray(part.X)
        np.testing.assert_array_equal(got, known.X)
        assert part.sample_weight == known.y.tolist()
    assert isinstance(parts[0].X, type(table)) or sp.issparse(table)


def test_parts_keep_norm_and_schema_of_rows():
    ledger = PrivacyAccountant()
    assert row_norm_of(private_train_test_split(with_row_norm(sp.csr_matrix(X), 7.0), accountant=ledger)[0].X) == 7.0
    assert row_schema_of(private_train_test_split(with_row_schema(X, "schema"), accountant=ledger)[0].X) == "schema"
    with pytest.raises(TypeError, match="not in memory"):
        private_train_test_split(TableRows("rows.parquet"), Y, accountant=ledger)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"X": X[1:], "y": Y[1:]}, "`n_rows` must be 400, as in the recorded split, got 399"),
        ({"X": np.vstack([X, X[:1]]), "y": np.append(Y, 0)}, "`n_rows` must be .* got 401"),
        ({"test_size": 0.3}, "`test_size` must be .* got 0.3"),
        ({"groups": Y}, "unit='group'"),
        ({"y": Y[1:]}, r"`y` must have one value per row \(400\), got 399"),
        ({"accountant": None}, "got None"),
        ({"accountant": "no.budget"}, "does not refer to an existing file"),
    ],
)
def test_rejected_in_one_line(ledger, change, match):
    private_train_test_split(X, Y, accountant=ledger)
    with pytest.raises((ValueError, TypeError, BudgetFileError), match=match) as error:
        private_train_test_split(**{"X": X, "y": Y, "accountant": ledger, **change})
    one_line(error)
    assert len(ledger.entries) == 1


def test_a_table_too_short_and_a_part_split_again(ledger):
    with pytest.raises(ValueError, match="must leave at least one row"):
        private_train_test_split(X[:1], Y[:1], accountant=ledger)
    assert ledger.split is None
    train, _ = private_train_test_split(X, Y, accountant=ledger)
    with pytest.raises(ValueError, match="must not be restricted to a partition"):
        private_train_test_split(train.X, train.y, accountant=train.accountant)


def test_all_pay_and_then_the_larger_of_the_two_parts(ledger):
    ledger.spend(GAUSS)
    train, test = private_train_test_split(X, Y, accountant=ledger)
    train.accountant.spend(FIT)
    test.accountant.spend(GAUSS)
    assert ledger.get_epsilon() == get_epsilon(compose([GAUSS, FIT]), 1e-5)
    assert test.accountant.get_epsilon() == get_epsilon(compose([GAUSS, GAUSS]), 1e-5)
    assert "ensured by private_train_test_split" in ledger.table()
    again = PrivacyAccountant.from_json(ledger.to_json(), resume=True)
    assert again.get_epsilon(partition="test") == test.accountant.get_epsilon()
    assert numbers(*private_train_test_split(X, Y, accountant=again)) == numbers(train, test)


def test_an_estimator_is_charged_to_its_part(ledger):
    rows = np.random.default_rng(0).uniform(-1, 1, (N, 2))
    train, test = private_train_test_split(rows, Y % 2, accountant=ledger)
    model = DPLogisticRegression(epsilon=1.0, delta=1e-5, classes=[0, 1], accountant=train.accountant)
    model.fit(train.X, train.y)
    assert [charge.partition for charge in ledger.history] == ["train"]
    assert (test.accountant.remaining(), ledger.spent) == (2.0, train.accountant.spent)
    skdp.plotting.BudgetDisplay.from_accountant(ledger)


def test_which_neighbors_a_part_is_charged_for(households):
    by_number, by_label = PrivacyAccountant(), households
    rows = private_train_test_split(X, Y, accountant=by_number)[0].accountant
    units = private_train_test_split(X, Y, accountant=by_label, groups=Y // 3)[0].accountant
    rows.check(GAUSS, "zero_out")
    rows.check(GAUSS, "replace_one")
    units.check(GAUSS, "zero_out")
    units.check(GAUSS, "add_remove")
    with pytest.raises(ValueError, match="of a split by row number cannot be used with adjacency='add_remove'"):
        rows.spend(GAUSS, adjacency="add_remove")
    with pytest.raises(ValueError, match="of a split by group cannot be used with adjacency='replace_one'"):
        units.spend(GAUSS, adjacency="replace_one")
    with pytest.raises(ValueError, match="must be 'train' or 'test'"):
        by_number.partition("2026-01").spend(GAUSS)
    by_number.spend(GAUSS, adjacency="add_remove")
    with pytest.raises(ValueError, match="cannot be mixed"):
        rows.spend(GAUSS)


def test_a_ledger_that_contradicts_a_split():
    for adjacency, groups, unit in (("add_remove", None, "row"), ("replace_one", Y, "person")):
        ledger = PrivacyAccountant(unit=unit)
        ledger.spend(GAUSS, adjacency=adjacency)
        with pytest.raises(ValueError, match=f"A split by .* cannot be used with adjacency={adjacency!r}"):
            private_train_test_split(X, Y, accountant=ledger, groups=groups)
    ledger = PrivacyAccountant()
    ledger.partition("2026-01", rule="month").spend(GAUSS)
    with pytest.raises(ValueError, match="cannot be mixed with 'month'"):
        private_train_test_split(X, Y, accountant=ledger)
    assert ledger.split is None


def test_a_replaced_row_moves_no_other(ledger):
    """Under zero_out and replace_one a record changes, its number stays: the same rows are in the same parts."""
    before = numbers(*private_train_test_split(X, Y, accountant=ledger))
    for value in (0.0, np.inf):
        other = X.copy()
        other[17] = value
        after = private_train_test_split(other, Y, accountant=ledger)
        assert numbers(*after) == before


# --- units ---


def test_a_unit_is_on_one_side_in_any_table(households):
    """In another order, grown, of another type of labels, without a unit: each unit stays where it was."""
    labels = np.random.default_rng(1).integers(0, 90, N)
    train, test = private_train_test_split(X, Y, accountant=households, groups=labels)
    assert set(train.groups).isdisjoint(test.groups)
    tested = set(test.groups.tolist())
    assert len(tested) > 2
    order = np.random.default_rng(2).permutation(N)
    for rows, given in (
        (order, labels[order].astype(float)),
        (order, [str(label) for label in labels[order]]),
        (np.flatnonzero(labels != labels[0]), labels[labels != labels[0]]),
        (np.append(np.arange(N), [0, 1]), np.append(labels, [1000, 1001])),
    ):
        again = private_train_test_split(X[rows], Y[rows], accountant=fresh(households.path), groups=given)
        here = {int(float(label)) for label in again[1].groups}
        assert here - {1000, 1001} == tested & {int(float(label)) for label in given}
    assert len(households.entries) == 1


@pytest.mark.parametrize("dtype", ["datetime64[ns]", "datetime64[us]", "datetime64[s]", object])
@pytest.mark.parametrize("kind", ["datetime64[D]", "timedelta64[D]"])
def test_a_moment_is_on_one_side_whatever_it_is_counted_in(households, kind, dtype):
    days = np.arange(N).astype(kind)
    dtype = dtype if dtype is object else np.dtype(str(dtype).replace("datetime64", kind[:-3]))
    parts = [private_train_test_split(X, Y, accountant=households, groups=each) for each in (days, days.astype(dtype))]
    assert numbers(*parts[0]) == numbers(*parts[1])


def test_the_coin_of_a_unit():
    """A quarter of 20,000 units, by a coin each: the count is binomial, within its bounds but once in 1e6 runs."""
    labels = np.arange(20_000)
    ledger = PrivacyAccountant(unit="person")
    _, test = private_train_test_split(labels[:, None], labels, accountant=ledger, groups=labels)
    low, high = binom.ppf([0.5e-6, 1 - 0.5e-6], 20_000, 0.25)
    assert low <= len(test.y) <= high


def test_labels_as_a_column_and_by_name(households):
    frame = pd.DataFrame({"a": X[:, 0], "serialno": Y // 4})
    train, test = private_train_test_split(frame, Y, accountant=households, groups="serialno")
    assert list(train.X) == ["a"]
    assert train.groups.name == "serialno"
    assert set(train.groups).isdisjoint(test.groups)
    with pytest.raises(ValueError, match=r"`groups` must be .* as in the recorded split, got 'person'"):
        private_train_test_split(frame, Y, accountant=households, groups=pd.Series(Y, name="person"))
    with pytest.raises(ValueError, match="cannot be mixed with 'serialno'"):
        train.accountant.spend(GAUSS, parameters={"groups": "person"}, unit="group")
    with pytest.raises(ValueError, match="unit='row'"):
        private_train_test_split(frame, Y, accountant=households)


# --- processes ---

SPLIT = """
from skdp import private_train_test_split
accountant = PrivacyAccountant.open(path)
ready()
rows = list(range(400))
_, test = private_train_test_split([[row] for row in rows], rows, accountant=accountant)
print(sum(1 << row for row in test.y))
"""


def test_two_processes_at_once_get_the_same_parts(path, tmp_path):
    accountant = PrivacyAccountant(2.0, 1e-5, path=path)
    found = together(tmp_path, path, SPLIT, 2, 0)
    assert set(found) == {sum(1 << row for row in private_train_test_split(X, Y, accountant=accountant)[1].y.tolist())}
    assert [entry.kind for entry in accountant.entries] == ["split"]


def test_a_process_killed_between_key_and_use(path):
    PrivacyAccountant(2.0, 1e-5, path=path)
    code = (
        "import os, signal, sys; from skdp import PrivacyAccountant; "
        "print(PrivacyAccountant.open(sys.argv[1]).keep_split(.25, n_rows=400).key.hex(), flush=True); "
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    command = [os.sys.executable, "-c", code, path]
    child = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=False)
    assert child.returncode == -signal.SIGKILL
    kept = fresh(path)
    private_train_test_split(X, Y, accountant=kept)
    assert kept.split.key.hex() == child.stdout.decode().strip()
    assert kept.verify() == 1


def test_the_first_key_counts_of_two_that_are_written_at_once(ledger, monkeypatch):
    """Another thread or process writes its key between our look and our entry."""
    original, late = PrivacyAccountant._make_split, []

    def make(self, asked):
        if not late:
            late.append(True)
            late.append(original(self, asked))
        return original(self, asked)

    monkeypatch.setattr(PrivacyAccountant, "_make_split", make)
    found = ledger.keep_split(0.25, n_rows=N)
    assert found.key == late[1].key == ledger.split.key
    assert len(ledger.entries) == 1


def test_the_key_is_no_part_of_what_is_shown(ledger):
    private_train_test_split(X, Y, accountant=ledger)
    key = ledger.split.key.hex()
    assert key not in ledger.table() + repr(ledger) + ledger._repr_html_() + repr(ledger.split)
    assert key in ledger.to_json()
    if ledger.path:
        command = [os.sys.executable, "-m", "skdp.accounting", "show", ledger.path]
        shown = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout.decode()
        assert "test_size=0.25" in shown
        assert key not in shown
