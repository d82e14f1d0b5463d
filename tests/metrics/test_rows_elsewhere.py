"""Evaluations of rows that are not in memory: the same counts, read after the charge."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from watched import Watched

from skdp import BudgetExceededError, PrivacyAccountant
from skdp.metrics import evaluate

N = 500
X = np.random.default_rng(0).uniform(-1, 1, size=(N, 3))
Y = (X[:, 0] > 0).astype(int)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
MODEL = LogisticRegression().fit(FRAME[["a", "b"]], Y)


def parquet(path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    from skdp.datasets import TableRows

    pq.write_table(pa.Table.from_pandas(FRAME), path / "rows.parquet", row_group_size=70)
    return TableRows(str(path / "rows.parquet"))


def dask(path):
    return pytest.importorskip("dask.dataframe").from_pandas(FRAME, npartitions=3)


@pytest.mark.parametrize("kind", [HistGradientBoostingClassifier, LogisticRegression])
def test_gaps_of_a_file_are_those_of_a_frame(kind, exact, tmp_path):
    """For a model that takes them, and for one that rejects them: nothing is rejected after the charge."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    from skdp.datasets import TableRows

    frame = FRAME.assign(a=FRAME["a"].mask(Y == 1), b=FRAME["b"].where(FRAME["b"] < 0.9, np.inf), c=Y == 1)
    columns = {name: pa.array(frame[name], from_pandas=True) for name in "ab"}
    columns["c"] = pa.array([None if each else False for each in frame["c"]])
    pq.write_table(pa.table(columns), tmp_path / "gaps.parquet")
    frame["c"] = np.where(frame["c"], np.nan, 0.0)
    model = kind().fit(FRAME, Y)
    for rows in (TableRows(str(tmp_path / "gaps.parquet")), frame):
        evaluate(model, rows, Y, epsilon=1.0, n_bins=8)
    np.testing.assert_array_equal(*exact)


BESIDE = {"y": "answer", "sample_weight": "weight", "groups": "home", "by": "sex"}
TERMS = {"categories": [True, False], "weight_bound": 1.5, "epsilon": 1.0, "n_bins": 8}


@pytest.fixture(scope="module")
def people():
    """The same rows with a label, a weight, a unit, and a subgroup that has gaps."""
    beside = {
        "answer": np.where(Y == 1, "yes", "no"),
        "weight": np.linspace(0.1, 2, N),
        "home": np.arange(N) % 99,
        "sex": pd.array([None if k % 7 == 0 else k % 3 == 0 for k in range(N)], "boolean"),
    }
    return FRAME.assign(**beside)


@pytest.mark.parametrize("kind", ["parquet", "dask", "frame"])
def test_all_that_belongs_to_a_row_may_be_a_column(kind, people, exact, tmp_path):
    """Counts are those of arrays beside the rows, also where a gap makes Arrow or pandas store labels otherwise."""
    rows, model = people, LogisticRegression().fit(FRAME[["a", "b"]], people["answer"])
    if kind == "parquet":
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        from skdp.datasets import TableRows

        pq.write_table(pa.Table.from_pandas(people), tmp_path / "rows.parquet", row_group_size=5)
        rows = TableRows(str(tmp_path / "rows.parquet"))
    if kind == "dask":
        rows = pytest.importorskip("dask.dataframe").from_pandas(people, npartitions=9)
    beside = {name: people[column] for name, column in BESIDE.items()}
    evaluate(model, FRAME, beside.pop("y"), **beside, **TERMS)
    found = evaluate(model, rows, **BESIDE, **TERMS)
    np.testing.assert_array_equal(*exact)
    assert exact[0].sum(axis=(1, 2)).min() > 0
    assert found.privacy_unit_ == "group"
    assert list(found.subgroups) == ["True", "False", "other"]


@pytest.mark.parametrize("rows", [parquet, dask])
def test_rows_are_read_after_the_charge(rows, tmp_path):
    accountant = PrivacyAccountant(1.0, 1e-6)
    model = Watched(accountant)
    evaluate(model, rows(tmp_path), Y, epsilon=0.7, accountant=accountant)
    assert set(model.charges) == {1}
    model.charges.clear()
    with pytest.raises(BudgetExceededError):
        evaluate(model, rows(tmp_path), Y, epsilon=0.7, accountant=accountant)
    assert not model.charges


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"y": Y[:-1]}, "y"),
        ({"y": "d"}, "y='d'"),
        ({"y": "a"}, "`columns` must not contain 'a', which is used as `y`"),
        ({"groups": "a"}, "`columns` must not contain 'a', which is used as `groups`"),
        ({"by": "e", "categories": ["x"]}, "by='e'"),
    ],
)
def test_what_does_not_fit_is_rejected_and_not_charged(given, message, tmp_path):
    accountant = PrivacyAccountant(1.0, 1e-6)
    terms = {"model": MODEL, "y": Y, "epsilon": 0.5, "accountant": accountant, **given}
    with pytest.raises(ValueError, match=message) as rejected:
        evaluate(terms.pop("model"), parquet(tmp_path), terms.pop("y"), **terms)
    assert "\n" not in str(rejected.value)
    assert accountant.get_epsilon(1e-6) == 0.0
