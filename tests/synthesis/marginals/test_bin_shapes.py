"""Numbers within bins: public cells, what is released of them, and what is drawn."""

import math

import numpy as np
import pandas as pd
import pytest
from combinations import over_rows
from replay import recording
from scipy import stats

from skdp import AddRemove
from skdp.synthesis import DPMarginalSynthesizer
from skdp.synthesis.marginals import noisy_tables
from skdp.synthesis.marginals.column_levels import CELLS_OF_A_BIN, BinShapes

SCHEMA = {
    "pay": {"bounds": (-100, 1500), "missing_values": [None]},
    "age": {"edges": [0, 20, 65, 100]},
    "job": ["a", "b"],
}
FAST = {"n_bins": 4, "n_components": 20, "max_iter": 60, "random_state": 0}


def people(n=600, seed=0):
    """Half of the pay is zero, a tenth is a gap, and the rest lies near 200."""
    rng = np.random.default_rng(seed)
    pay = np.where(rng.random(n) < 0.5, 0.0, rng.normal(200.0, 20.0, n))
    pay[rng.random(n) < 0.1] = np.nan
    return pd.DataFrame({"pay": pay, "age": rng.choice([18, 30, 31, 70], n), "job": rng.choice(["a", "b"], n)})


def cut(edges, whole, n_cells=CELLS_OF_A_BIN):
    edges = np.array(edges, float)
    inner = np.interp(np.arange(1, n_cells * (len(edges) - 1)) / n_cells, np.arange(len(edges)), edges)
    return BinShapes.between(edges, inner, whole)


@over_rows("whole", [False, True])
@over_rows("edges", [[0, 1, 10, 100], [-5.5, -0.2, 0.3, 2], [0, 1e-320, 1], [1e300, 1.5e300, 1.7e308]])
def test_cells_are_parts_of_bins(edges, whole):
    """All ends of bins are ends of cells, and each number is in a cell of its bin."""
    with np.errstate(over="ignore"):
        shapes = cut(edges, whole)
    assert set(np.array(edges, float)) <= set(shapes.edges)
    assert (np.diff(shapes.edges) > 0).all()
    np.testing.assert_allclose(np.bincount(shapes.bins, shapes.widths), 1.0)
    numbers = np.random.default_rng(0).uniform(edges[0], edges[-1], 500)
    cells = shapes.read(np.append(numbers, np.nan))
    assert cells[-1] == len(shapes.bins)
    np.testing.assert_array_equal(shapes.bins[cells[:-1]], np.searchsorted(edges[1:-1], numbers, side="right"))


@pytest.fixture(scope="module")
def exact():
    """A fit with next to no noise, the rows, and what was released."""
    frame = people()
    with recording([]) as released, pytest.warns():
        model = DPMarginalSynthesizer(SCHEMA, epsilon=None, noise_multiplier=1e-3, **FAST).fit(frame)
    return model, frame, released


def test_the_release_is_that_of_the_plain_reading(exact):
    """Row by row: a count of each cell, and of gaps, centered, with which a row adds a vector of length 1."""
    model, frame, released = exact
    vector, found = released[-2].exact, []  # before the counts of whole numbers
    for name, column in zip(("pay", "age"), model._fitted_form.columns, strict=False):
        ends, counts = column.shapes.edges, np.zeros(column.n_cells)
        for number in frame[name].tolist():
            cell = len(ends) - 1 if math.isnan(number) else int(np.sum(number >= ends[1:-1]))
            counts[cell] += 1.0
        found.append(counts - counts.mean())
    norm = math.sqrt(sum(1.0 - 1.0 / len(each) for each in found))
    np.testing.assert_allclose(vector, np.concatenate(found) / norm)
    assert released[-2].sensitivity == pytest.approx(1.0)


def test_whole_release_is_plain_count(exact):
    """Whole numbers, other numbers and gaps of the column of floats, centered and of length 1 per row."""
    _, frame, released = exact
    pay = frame["pay"]
    counts = np.array([(pay % 1 == 0).sum(), (pay % 1 > 0).sum(), pay.isna().sum()], float)
    np.testing.assert_allclose(released[-1].exact, (counts - counts.mean()) / math.sqrt(2.0 / 3.0))
    assert released[-1].sensitivity == pytest.approx(1.0)


def test_samples_have_the_numbers_of_the_rows(exact):
    """Zeros are zeros again, gaps are gaps, and what lies together lies together."""
    model, frame, _ = exact
    made, real = model.sample(4000, random_state=0), frame["pay"].dropna()
    pay = made["pay"].dropna()
    assert abs(made["pay"].isna().mean() - frame["pay"].isna().mean()) < 0.05
    assert abs((pay == 0.0).mean() - (real == 0.0).mean()) < 0.05
    assert stats.ks_2samp(pay, real).statistic < 0.06
    assert made["age"].isin([18, 30, 31, 70]).mean() > 0.99
    evenly = DPMarginalSynthesizer(SCHEMA, epsilon=None, noise_multiplier=1e-3, within_bins="uniform", **FAST)
    other = evenly.fit(frame).sample(4000, random_state=0)["pay"].dropna()
    assert not (other == 0.0).any()
    assert stats.ks_2samp(other, real).statistic > 0.2


def test_conditions_within_bins_are_met_with_their_share(exact):
    model = exact[0]
    X = model.sample(2000, random_state=0, conditions={"pay": (0, 0)})
    assert (X["pay"] == 0.0).all()
    X = model.sample(500, random_state=0, conditions={"pay": (190, 205), "age": (30, 30)})
    assert X["pay"].between(190, 205).all()
    assert (X["age"] == 30).all()
    with pytest.raises(ValueError, match="a number of its bins"):
        model.sample(5, conditions={"age": (20.5, 20.9)})


def test_whether_cells_are_measured_is_decided_by_public_numbers():
    assert noisy_tables.shapes_are_worth_it([16, 16], 1e5, 4.0)
    assert not noisy_tables.shapes_are_worth_it([16, 16], 1e3, 4.0)
    assert not noisy_tables.shapes_are_worth_it([16] * 4000, 1e5, 4.0)
    assert not noisy_tables.shapes_are_worth_it([], 1e9, 0.0)
    frame = people(100)
    for n, has_shapes in ((10**6, True), (100, False)):
        given = {**FAST, "max_iter": 2, "adjacency": AddRemove(n)}
        model = DPMarginalSynthesizer(SCHEMA, **given).fit(frame)
        assert [column.shapes is not None for column in model._fitted_form.columns] == [has_shapes, has_shapes, False]


def test_a_column_of_a_single_number_and_one_without_cells():
    frame = pd.DataFrame({"x": [0, 1] * 50, "z": ["a", "b"] * 50})
    fast = {**FAST, "n_bins": 1, "max_iter": 2, "adjacency": AddRemove(10**6)}
    made = DPMarginalSynthesizer({"x": (0, 1), "z": ["a", "b"]}, **fast).fit(frame).sample(50, random_state=0)
    assert set(made["x"]) <= {0, 1}
