"""Numbers far within their public bounds, and what is estimated where rows are too few."""

import numpy as np
import pandas as pd
import pytest
from combinations import over_rows
from relations import with_n_public

from skdp import DPLogisticRegression, tabular_pipeline
from skdp.accounting import GaussianDpEvent, get_epsilon
from skdp.exceptions import QualityWarning
from skdp.preprocessing import DPTableVectorizer, TableSchema, histogram_query
from skdp.preprocessing.cell_tree import Cells

SCHEMA = {"amount": (0, 1e7), "age": (18, 90), "income": {"bounds": (0, 1e7), "scale": "log"}, "job": ["a", "b"]}


def frame(n=4_000, seed=0):
    rng = np.random.default_rng(seed)
    amount = np.exp(rng.normal(6.0, 1.0, n))
    columns = {"amount": amount, "age": rng.integers(18, 91, n), "income": amount, "job": rng.choice(["a", "b"], n)}
    return pd.DataFrame(columns), (amount > 400.0).astype(int)


def test_cells_between_wide_bounds_have_octaves():
    cells = Cells.between(-3.0, 1e7)
    assert cells.breaks[[0, -1]].tolist() == [-3.0, 1e7]
    assert (np.diff(cells.breaks) > 0.0).all()
    assert set(2.0 ** np.arange(7, 24)) <= set(cells.breaks.tolist())
    assert cells.counts.sum() == pytest.approx(1.0)
    assert (cells.counts[1:-1] > 0.0).all()
    below = cells.counts[1:-1][cells.breaks[:-1] < 2.0**15].sum()
    assert below > 0.2  # though it is a part of 1/300 of the range


def test_only_skewed_columns_get_estimated_bins():
    X, _ = frame()
    vectorizer = DPTableVectorizer(SCHEMA, fit_bins=True, epsilon=1.0, random_state=0)
    with pytest.warns(QualityWarning, match="Nearly all values of 'amount' lie within 1/32"):
        vectorizer.fit(X)
    known = vectorizer.schema_
    assert known["amount"].edges is not None
    assert known["amount"].bounds == (0.0, 1e7)
    inner = np.array(known["amount"].edges[1:-1])
    masses = np.diff(np.searchsorted(np.sort(X["amount"]), [0.0, *inner, 1e7])) / len(X)
    assert len(masses) >= 8
    assert masses.max() < 0.25  # where one of equal width has all
    assert [known[name] for name in ("age", "income", "job")] == [
        TableSchema(SCHEMA)[n] for n in ("age", "income", "job")
    ]
    assert vectorizer._fitted_remains == {}
    assert vectorizer.transform(X).shape[0] == len(X)
    assert get_epsilon(GaussianDpEvent(vectorizer.noise_multiplier_), vectorizer.delta_) == pytest.approx(1.0, rel=1e-3)


@over_rows("adjacency", ["zero_out", "replace_one"])
def test_one_record_changes_bin_counts_by_the_sensitivity(adjacency, monkeypatch):
    """The counts that get noise: both columns of SCHEMA change, and no more than was charged for."""
    X, _ = frame(300)
    other = X.drop(index=7) if adjacency == "zero_out" else X.assign(amount=X["amount"].where(X.index != 7, 9e6),
                                                                     age=X["age"].where(X.index != 7, 30))  # fmt: skip
    seen = []

    def first_release(mechanism, counts, stream):
        seen.append((mechanism, np.concatenate(counts)))
        return released(mechanism, counts, stream)

    released = histogram_query.released
    monkeypatch.setattr(histogram_query, "released", first_release)
    for rows in (X, other):
        DPTableVectorizer(
            SCHEMA, fit_bins=True, adjacency=with_n_public(adjacency, 300), noise_multiplier=20.0,
            epsilon=None, delta=1e-5, random_state=0,
        ).fit(rows)  # fmt: skip
    (mechanism, one), (_, two) = seen[0], seen[len(seen) // 2]  # cells of the first round are public
    factor = 2.0 if adjacency == "replace_one" else 1.0
    assert np.linalg.norm(one - two) == pytest.approx(factor * mechanism.sensitivity)
    assert mechanism.sensitivity == pytest.approx(np.sqrt(2.0 / (2.0 if adjacency == "replace_one" else 1.0)))
    total = sum(each.noise_multiplier**-2 for each, _ in seen[: len(seen) // 2])
    assert total == pytest.approx(20.0**-2)


def test_pipeline_learns_from_a_column_far_within_its_bounds():
    X, y = frame()
    schema = {name: SCHEMA[name] for name in ("amount", "age", "job")}
    fitted = tabular_pipeline(DPLogisticRegression(), schema=schema, epsilon=2.0, classes=[0, 1], random_state=0)
    right = fitted.fit(X[["amount", "age", "job"]], y).score(X[["amount", "age", "job"]], y)
    assert right > 0.85  # 0.5 with bins of equal width
    assert 1.99 < fitted.epsilon_ <= 2.0
    assert 0.2 < fitted.step_epsilons_["vectorizer"] < 0.5  # 5% of mu^2


def test_few_rows_drop_categories_beside_numbers():
    """A rule in public numbers: the same columns at the same cost, whatever the cells."""
    X, _ = frame(300)
    X = X.drop(columns="age")
    vectorizer = DPTableVectorizer(epsilon=0.3, random_state=0)
    with pytest.warns(QualityWarning) as told:
        vectorizer.fit(X)
    texts = [str(each.message) for each in told]
    assert any("Set bounds of columns 'amount', 'income' in `schema`, which helps most." in text for text in texts)
    assert vectorizer.schema_["job"].kind == "drop"
    assert any("No information in" in text and "'job'" in text for text in texts)
    many = DPTableVectorizer(epsilon=30.0, random_state=0).fit(X)
    alone = DPTableVectorizer(epsilon=0.3, random_state=0).fit(X[["job"]])
    assert many.schema_["job"].categories == ("a", "b")
    assert alone.schema_["job"].kind == "category"


def test_few_rows_estimate_no_bins_within_bounds():
    X, _ = frame(600)
    schema = TableSchema({"amount": (0, 1e7), "age": (18, 90)}, others="estimate")
    few = DPTableVectorizer(schema, fit_bins=True, epsilon=0.3, random_state=0).fit(X)
    many = DPTableVectorizer(schema, fit_bins=True, epsilon=30.0, random_state=0).fit(X)
    assert few.schema_["amount"].edges is None
    assert many.schema_["amount"].edges is not None
