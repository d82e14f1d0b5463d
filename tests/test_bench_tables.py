"""The tables of the benchmarks, where the data sets are: what is public of them, and the fifth that is held out."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from skdp.ensemble import PublicTreesEmbedding
from skdp.preprocessing import DPTableVectorizer, TableSchema

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


def module(name):
    """A script of the benchmarks, which are no package."""
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    made = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


tables = module("tables")
SIZES = {
    "adult": 32_561, "fulton": 25_766, "fulton_employed": 25_766, "colorado": 31_306, "credit": 30_000,
    "housing": 20_640, "wine": 6_497, "elevators": 16_499,
}  # fmt: skip


@pytest.fixture(scope="module", params=SIZES)
def named(request):
    folder = os.environ.get("SKDP_DATA")
    if not folder:
        pytest.skip("SKDP_DATA is not set: the folder of the public data sets (pums_fulton_ga.csv.gz ...)")
    return request.param, tables.load(request.param, folder)


@pytest.mark.parametrize("name", SIZES)
def test_the_held_out_fifth_is_the_seeded_draw(name):
    assert set(SIZES) == set(tables.TABLES)
    rows = tables.held_out(name)
    np.testing.assert_array_equal(rows, tables.draw_held_out(SIZES[name]))
    assert len(np.unique(rows)) == SIZES[name] // 5
    assert rows.max() < SIZES[name]


def test_sizes_and_labels(named):
    name, table = named
    assert table.X.shape == (SIZES[name], len(table.schema))
    assert table.y.shape == (SIZES[name],)
    if table.is_regression:
        low, high = table.y_bounds
        assert np.mean((table.y < low) | (table.y > high)) < 0.06  # houses are capped at a dollar above
    else:
        assert set(table.y) == set(table.classes) == {0, 1}


def test_the_schema_is_complete_and_names_every_category(named):
    _, table = named
    assert TableSchema(table.schema).is_complete
    vectorizer = DPTableVectorizer(table.schema).fit(table.X)
    rows = vectorizer.transform(table.X)
    assert vectorizer.epsilon_ == 0.0
    others = [i for i, each in enumerate(vectorizer.get_feature_names_out()) if each.endswith("=other")]
    assert not rows[:, others].sum()
    trees = PublicTreesEmbedding(4, schema=table.schema, random_state=0).fit(table.X)
    assert trees.transform(table.X.head(100)).shape[0] == 100
