"""A budget in a file: the same accountant, but kept."""

import copy
import json
import os
import pathlib
import pickle

import numpy as np
import pytest
from ledger_files import FIT, STEP, THIRD, THREE, admitted, fresh, model, one_line
from sklearn.base import clone

import skdp
import skdp._dpsgd.estimator
from skdp import PrivacyAccountant
from skdp.accounting import GaussianDpEvent, LaplaceDpEvent
from skdp.accounting.ledger import file_log, sqlite
from skdp.accounting.ledger import ledger as _ledger
from skdp.exceptions import BudgetExceededError, BudgetFileError

# --- the same accountant, but kept ------------------------------------------------------------------------------------


def test_a_file_behaves_as_memory_does(path):
    in_memory, in_file = (PrivacyAccountant(2.0, 1e-5, unit="person", path=p) for p in (None, path))
    for accountant in (in_memory, in_file):
        accountant.spend(FIT, "first", note="why", parameters={"alpha": np.float64(0.5), "classes": np.array([0, 1])})
        accountant.spend(STEP, "second")
        with pytest.raises(BudgetExceededError, match="No budget was consumed"):
            accountant.spend(LaplaceDpEvent(0.1))
        with pytest.raises(ValueError, match="cannot be mixed"):
            accountant.spend(STEP, adjacency="replace_one")
    again = fresh(path)
    for each in (in_file, again):
        assert each.history == in_memory.history
        assert each.get_epsilon(adaptive=True) == in_memory.get_epsilon(adaptive=True)
        assert each.remaining(STEP) == in_memory.remaining(STEP)
        assert (each.epsilon, each.delta, each.unit, each.adjacency) == (2.0, 1e-5, "person", "zero_out")
    first = again.history[0]
    assert (first.label, first.note, first.parameters) == ("first", "why", {"alpha": 0.5, "classes": [0, 1]})
    assert first.time[:2] == "20"
    assert first.time.endswith("+00:00")
    assert again.to_json() == in_file.to_json()
    assert json.loads(again.to_json())["head"] == again.head
    assert path in repr(again)
    assert "second" in again._repr_html_()


def test_a_pickle_is_a_handle(budget):
    budget.spend(THIRD)
    sent = pickle.dumps(budget)
    assert len(sent) < 1000
    received = pickle.loads(sent)
    received.spend(THIRD)
    for each in (clone(budget), copy.copy(budget), copy.deepcopy({"a": budget})["a"]):
        assert each is budget
    assert budget.verify() == received.verify() == 2
    file_log._STORES.clear()  # as in another process
    elsewhere = pickle.loads(sent)
    elsewhere.spend(THIRD)
    assert admitted(elsewhere, THIRD) == 0
    assert len(budget.history) == 3


def test_a_relative_path_is_made_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    accountant = PrivacyAccountant(**THREE, path="a b%20?#.budget")
    monkeypatch.chdir("/")
    accountant.spend(THIRD)
    assert accountant.path == str(tmp_path / "a b%20?#.budget")
    assert os.listdir(tmp_path) == ["a b%20?#.budget"]
    os.symlink(accountant.path, tmp_path / "link")
    assert PrivacyAccountant(path=tmp_path / "link").path == accountant.path


def test_terms_are_kept_and_not_contradicted(path):
    PrivacyAccountant(2.0, 1e-5, unit="person", filter_family="renyi", path=path)
    found = PrivacyAccountant(path=path)
    assert (found.epsilon, found.delta, found.unit, found.filter_family) == (2.0, 1e-5, "person", "renyi")
    for given, named in (
        ({"epsilon": 3.0, "delta": 1e-5}, r"epsilon=3.0 contradicts epsilon=2.0"),
        ({"unit": "row"}, r"unit='row' contradicts unit='person'"),
        ({"filter_family": "auto"}, r"filter_family='auto' contradicts filter_family='renyi'"),
    ):
        with pytest.raises(ValueError, match=named) as error:
            PrivacyAccountant(**given, path=path)
        one_line(error)


def test_no_budget_is_begun_by_a_slip(tmp_path, path):
    with pytest.raises(BudgetFileError, match="does not exist") as error:
        PrivacyAccountant.open(path)
    one_line(error)
    assert os.listdir(tmp_path) == []
    with pytest.warns(UserWarning, match="without a budget"):
        unlimited = PrivacyAccountant(path=path)
    unlimited.spend(FIT)
    with pytest.raises(ValueError, match=r"epsilon=1\.0 contradicts epsilon=None"):
        PrivacyAccountant(1.0, 1e-5, path=path)


def test_what_a_fit_leaves_on_the_bill(path, rows):
    accountant = PrivacyAccountant(8.0, 1e-5, path=path)
    with pytest.warns(skdp.PrivacyLeakWarning):
        model(accountant, random_state=71_203_118, n_jobs=1, data_norm=1.5).fit(*rows)
    (charge,) = accountant.history
    assert charge.label == "DPLogisticRegression"
    assert charge.parameters["noise_multiplier"] == 38.0
    assert not {"random_state", "accountant", "n_jobs", "verbose"} & set(charge.parameters)
    assert "71203118" not in json.dumps(charge.parameters)
    assert b"71203118" not in pathlib.Path(path).read_bytes()[4096:].replace(charge.time.encode(), b"")


def test_parameters_hold_no_data():
    accountant = PrivacyAccountant()
    frame, deep = np.zeros((100, 2)), [[[[[[1]]]]]]
    odd = {"frame": frame, "f": len, "nan": np.nan, "deep": deep, "set": {3}, "no\ud800": 1}
    with pytest.raises(ValueError, match="UTF-8"):
        accountant.spend(STEP, parameters=odd)
    with pytest.raises(TypeError, match="`parameters` must be"):
        accountant.spend(STEP, parameters=[1])
    with pytest.raises(ValueError, match="`note` must be"):
        accountant.spend(STEP, note="\ud800")
    odd.pop("no\ud800")
    accountant.spend(STEP, parameters=odd)
    kept = accountant.history[0].parameters
    assert (kept["frame"], kept["f"], kept["nan"]) == ("<ndarray>", "<builtin_function_or_method>", "nan")
    assert (kept["set"], kept["deep"]) == ("<set>", [[[["<list>"]]]])


def test_a_bill_moves_from_memory_to_a_file(path, rows):
    in_memory = PrivacyAccountant(**THREE)
    for _ in range(2):
        in_memory.spend(THIRD, "in memory")
    text = in_memory.to_json()
    with pytest.raises(ValueError, match="resume=True"):
        PrivacyAccountant.from_json(text, path=path)
    moved = PrivacyAccountant.from_json(text, resume=True, path=path)
    assert moved.to_json() == text
    assert moved.verify(head=in_memory.head) == 2
    assert (admitted(moved, THIRD), admitted(fresh(path), THIRD)) == (1, 0)
    with pytest.raises(ValueError, match="already exists"):
        PrivacyAccountant.from_json(text, resume=True, path=path)
    assert fresh(path).verify() == 3


# --- how it is kept ---------------------------------------------------------------------------------------------------


def test_a_charge_is_on_the_disk_when_it_returns(path, budget):
    def asked(connection):
        return [tuple(connection.execute(f"PRAGMA {name}").fetchone()) for name in ("journal_mode", "synchronous")]

    # EXTRA: FULL, and the directory
    assert sqlite.transaction(path, "BEGIN IMMEDIATE", asked) == [("delete",), (3,)]


def test_symbolic_link_that_leads_nowhere_raises(tmp_path):
    link = tmp_path / "link"
    os.symlink("gone", link)
    carried = PrivacyAccountant(**THREE).to_json()
    for begin in (
        lambda: PrivacyAccountant(**THREE, path=link),
        lambda: PrivacyAccountant.open(link),
        lambda: PrivacyAccountant.from_json(carried, resume=True, path=link),
    ):
        with pytest.raises(BudgetFileError, match=r"link' is a symbolic link without a target") as error:
            begin()
        assert "\n" not in str(error.value)
    assert os.listdir(tmp_path) == ["link"]


def test_path_that_is_not_valid_raises(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for wrong in (123, b"x.budget", "", "a\0b"):
        with pytest.raises((TypeError, ValueError)) as error:
            PrivacyAccountant(**THREE, path=wrong)
        assert str(error.value).startswith("`path` must be a non-empty string")
    assert os.listdir(tmp_path) == []


def test_an_interrupt_while_reading_leaves_nothing_half_entered(path, budget, monkeypatch):
    for _ in range(2):
        budget.spend(THIRD)
    elsewhere, original = fresh(path), _ledger.Ledger.add

    def interrupted(ledger, charge):
        original(ledger, charge)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_ledger.Ledger, "add", interrupted)
        with pytest.raises(KeyboardInterrupt):
            elsewhere.spend(THIRD)
    assert len(elsewhere.history) == 2
    assert (admitted(elsewhere, THIRD), admitted(elsewhere, THIRD)) == (1, 0)


# --- paths ------------------------------------------------------------------------------------------------------------


def test_what_an_accountant_parameter_stands_for(tmp_path, path, budget, monkeypatch):
    from skdp.accounting import resolve_accountant

    budget.spend(THIRD)
    monkeypatch.chdir(tmp_path)
    assert resolve_accountant(None) is None
    assert resolve_accountant(budget) is budget
    for value in (pathlib.Path(path), "./census.budget"):
        assert resolve_accountant(value).path == path
    with pytest.raises(BudgetFileError, match=r"python -m skdp\.accounting create .* --epsilon E --delta D") as error:
        resolve_accountant("cen sus.budget")
    assert f"'{tmp_path}/cen sus.budget'" in str(error.value)
    assert os.listdir(tmp_path) == ["census.budget"]
    with pytest.raises(TypeError, match="`accountant` must be"):
        resolve_accountant(3)


def test_stated_adjacency_and_method_are_kept_and_enforced(tmp_path):
    path = tmp_path / "stated.budget"
    stated = PrivacyAccountant(1.0, 1e-6, adjacency="add_remove", method="rdp", path=path)
    read = PrivacyAccountant.from_json(stated.to_json())
    assert (read.adjacency, read.method) == ("add_remove", "rdp")
    for ledger in (stated, PrivacyAccountant.open(path)):
        assert (ledger.adjacency, ledger.method) == ("add_remove", "rdp")
        with pytest.raises(ValueError, match="adjacency='zero_out' cannot be mixed with 'add_remove'"):
            ledger.check(GaussianDpEvent(50.0))
    for other in ({"adjacency": "zero_out"}, {"method": "pld"}):
        with pytest.raises(ValueError, match="contradicts"):
            PrivacyAccountant(path=path, **other)
    for unknown in ({"adjacency": "swap"}, {"method": "gdp"}):
        with pytest.raises(ValueError, match="must be one of"):
            PrivacyAccountant(**unknown)
