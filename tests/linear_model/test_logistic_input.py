"""What DPLogisticRegression rejects, before any charge."""

import math
import pathlib

import numpy as np
import pytest
import scipy.sparse as sp
from combinations import over_rows
from logistic import binary
from rejections import assert_rejected
from sklearn.base import clone

from skdp import BudgetFileError, PrivacyAccountant

X_GOOD = np.linspace(-1.0, 1.0, 80).reshape(40, 2)
Y_GOOD = np.arange(40) % 2


def spoilt(value):
    X = X_GOOD.copy()
    X[3, 1] = value
    return X


def weights_with(value):
    weights = np.ones(40)
    weights[7] = value
    return weights


# What is changed, and what the message must contain: the parameter, its value (data are not quoted), the remedy.
BAD_INPUT = [
    ({"epsilon": 0}, ["`epsilon` must be a number above 0", "got 0"]),
    ({"delta": 0}, ["`delta` must be a number in (0, 1)", "got 0"]),
    ({"noise_multiplier": 1.0}, ["epsilon=1.0 and noise_multiplier=1.0", "Exactly one of"]),
    ({"epsilon": None}, ["epsilon=None and noise_multiplier=None", "Exactly one of"]),
    ({"epsilon": 1e-12, "delta": 1e-15}, ["epsilon=1e-12, delta=1e-15", "cannot be reached", "Raise epsilon or delta"]),
    ({"lot_size": 41}, ["`lot_size` must be ", "a number from 1 to 40", "got 41"]),
    ({"sampling_rate": 1.5}, ["`sampling_rate` must be a probability from 1e-9 to 1", "got 1.5"]),
    ({"lot_size": 20, "sampling_rate": 0.5}, ["lot_size=20 and sampling_rate=0.5", "At most one"]),
    ({"max_iter": 0}, ["`max_iter` must be ", "got 0"]),
    ({"momentum": 1}, ["`momentum` must be a number in [0, 1)", "got 1"]),
    ({"learning_rate": "x"}, ["`learning_rate` must be a number above 0, or 'auto'", "got 'x'"]),
    ({"max_grad_norm": "x"}, ["`max_grad_norm` must be a number from 1e-30 to 1e30, or 'auto'", "got 'x'"]),
    ({"data_norm": 0}, ["`data_norm` must be a public number from 1e-30 to 1e30", "got 0"]),
    ({"alpha": -1}, ["`alpha` must be a number of at least 0", "got -1"]),
    ({"adjacency": "x"}, ["`adjacency` must be 'zero_out', 'replace_one' or skdp.AddRemove", "got 'x'"]),
    ({"adjacency": "add_remove"}, ["adjacency='add_remove'", "Set adjacency=skdp.AddRemove(n_public=...)"]),
    ({"random_state": "x"}, ["`random_state` must be None, an int", "got 'x'"]),
    (
        {"classes": None, "y": np.ones(40)},
        ["y contains only one class, and `classes` was not set", "all possible classes"],
    ),
    ({"y": np.array(["a", "b"])[Y_GOOD]}, ["not in classes=[0, 1]", "same type as y"]),
    ({"y": Y_GOOD + np.array([0] * 39 + [7])}, ["not in classes=[0, 1]", "ass all possible classes"]),
    ({"classes": [1, 1]}, ["`classes` must contain at least two classes", "got [1, 1]"]),
    ({"classes": 2}, ["`classes` must be a sequence", "got 2"]),
    (
        {"epsilon": None, "noise_multiplier": 1e-160},
        ["`noise_multiplier` must be a number from 1e-3 to 1e9", "got 1e-160"],
    ),
    ({"w": weights_with(-1.0)}, ["Negative values in data passed to `sample_weight`", "0 (no influence) or larger"]),
    ({"w": np.zeros(40)}, ["`sample_weight` is zero for all rows", "Pass at least one"]),
    ({"w": np.ones(39)}, ["`sample_weight` must have shape (40,), one weight per row", "got (39,)"]),
    ({"w": weights_with(math.nan)}, ["sample_weight", "NaN"]),
    ({"y": Y_GOOD[:39]}, ["inconsistent numbers of samples", "[40, 39]"]),
]
# scikit-learn's own validation speaks here, in its own words: it names X, some of its messages have several lines.
BAD_X = [
    ({"X": spoilt(math.nan)}, ["Input X contains NaN"]),
    ({"X": sp.csr_array(spoilt(math.nan))}, ["Input X contains NaN"]),
    ({"X": X_GOOD[:, 0]}, ["Expected 2D array, got 1D array"]),
    ({"X": np.full((40, 2), "a")}, ["strings in column 0"]),
    ({"y": np.column_stack([Y_GOOD, Y_GOOD])}, ["y should be a 1d array"]),
]


REJECTIONS = [
    (method, *each)
    for rows in (BAD_INPUT, BAD_X)
    for number, each in enumerate(rows)
    for method in ("fit", "partial_fit")  # which asks for classes before it looks at y; else both go one way
    if method == "fit" or (number % 4 == 0 and each[0].get("classes", 0) is not None)
]


@over_rows("method, changes, fragments", REJECTIONS)
def test_bad_input_is_rejected_in_one_line_before_any_charge(method, changes, fragments):
    parameters = {key: value for key, value in changes.items() if key not in "Xyw"}
    given = {"X": changes.get("X", X_GOOD), "y": changes.get("y", Y_GOOD), "sample_weight": changes.get("w")}
    assert_rejected(binary, parameters, given, fragments, method=method, errors=(ValueError,))


@over_rows("accountant", [1.0, b"x", PrivacyAccountant])
def test_an_accountant_of_another_kind_is_rejected(accountant):
    with pytest.raises(TypeError, match=r"`accountant` must be a PrivacyAccountant, a path of a budget file or None"):
        binary(accountant=accountant).fit(X_GOOD, Y_GOOD)


def test_a_path_names_the_ledger_of_a_file_that_exists(tmp_path, monkeypatch):
    """It is made absolute where it is given: a later change of folder does not change what is charged."""
    monkeypatch.chdir(tmp_path)
    model = binary(accountant="census.budget")
    assert model.accountant == str(tmp_path / "census.budget")
    assert clone(model).accountant == model.accountant
    with pytest.raises(BudgetFileError, match=r"does not refer to .* `python -m skdp.accounting create"):
        model.fit(X_GOOD, Y_GOOD)
    ledger = PrivacyAccountant(3.0, 1e-5, path="census.budget")
    monkeypatch.chdir("/")
    for _ in range(2):
        model.fit(X_GOOD, Y_GOOD)
    assert [charge.event for charge in ledger.history] == [model.privacy_event_] * 2
    assert binary(accountant=pathlib.Path(ledger.path)).fit(X_GOOD, Y_GOOD).epsilon_ > 0.9
    assert len(ledger.history) == 3


def test_one_bill_holds_one_adjacency():
    accountant = PrivacyAccountant()
    binary(accountant=accountant).fit(X_GOOD, Y_GOOD)
    with pytest.raises(ValueError, match="adjacency='replace_one' cannot be mixed with 'zero_out'"):
        binary(accountant=accountant, adjacency="replace_one").fit(X_GOOD, Y_GOOD)
    assert len(accountant.history) == 1
