"""Units that have to lie in one run of rows: found in one pass over their labels, or rejected without one."""

import datetime
import itertools
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from combinations import over_combinations, over_rows

from skdp._checks import groups
from skdp._checks.groups import RunReader, UnitRuns, runs_of

SIZES = np.array([1, 3, 1, 200, 2, 7, 1])
LABELS = {
    "numbers": np.array([40, -3, 2**62, 0, 7, 11, 5]),
    "unsigned": np.array([40, 3, 2**64 - 1, 2**64 - 2, 7, 11, 5], np.uint64),
    "reals": np.array([0.5, -3.0, np.inf, 0.0, 1e300, 0.1, 5.0]),
    "words": np.array(["b", "a", "\ud800", "A", "é", "ba", "ab"], object),
    "moments": np.datetime64("2020-01-01T00:00:00.000000001") + np.array([4, 1, 7, 0, 3, 2, 9]),
    "objects": np.array([Decimal(1), True, "True ", 2**80, datetime.date(2020, 1, 1), "x", 5.5], object),
}


def read(labels, step):
    reader = RunReader()
    for start in range(0, len(labels), step):
        reader.add(labels[start : start + step])
    return reader.finish("home")


HELD = [1 << 26, 64]  # bytes that stay in memory: all hashes, and next to none


@over_combinations(held=HELD, kind=LABELS, step=[1, 5, 1000])
def test_units_start_where_the_label_changes(monkeypatch, held, kind, step):
    monkeypatch.setattr(groups, "MOST_HELD", held)
    labels = np.repeat(LABELS[kind], SIZES)
    for found in (read(labels, step), runs_of(labels, len(labels))):
        assert found.starts.tolist() == np.concatenate([[0], np.cumsum(SIZES)]).tolist()
        assert found.n_units == len(SIZES)
    assert (read(labels, step).name, runs_of(pd.Series([1, 1, 2], name="home"), 3).name) == ("home", "home")


@over_combinations(held=HELD, kind=LABELS, step=[1, 5, 1000], again=[0, 3])
def test_a_unit_in_two_runs_is_rejected_without_its_label(monkeypatch, held, kind, step, again):
    """Whatever lies between the runs, and wherever the parts are cut."""
    monkeypatch.setattr(groups, "MOST_HELD", held)
    labels = np.repeat(np.append(LABELS[kind], LABELS[kind][again]), [*SIZES, 2])
    with pytest.raises(ValueError, match="`groups` must keep the rows of each group together") as rejected:
        read(labels, step)
    assert "\n" not in str(rejected.value)
    assert str(LABELS[kind][again]) not in str(rejected.value).split()
    assert rejected.value.__context__ is None
    with pytest.raises(ValueError, match="keep the rows of each group together"):
        runs_of(labels, len(labels))


def test_many_units_on_disk_are_compared_in_pieces(monkeypatch):
    monkeypatch.setattr(groups, "MOST_HELD", 1 << 10)
    labels = np.arange(3000)
    assert read(labels, 70).n_units == 3000
    labels[2999] = 1234
    with pytest.raises(ValueError, match="keep the rows of each group together"):
        read(labels, 70)


@over_rows("labels", [np.array([1.0, np.nan]), np.array(["a", None], object)])
def test_gaps_are_rejected(labels):
    with pytest.raises(ValueError, match="`groups` contains missing values"):
        read(labels, 5)


def test_hashes_are_those_of_no_other_pass():
    """Nobody who sees a file of hashes can look for a label in it, or make labels whose hashes are equal."""
    one, other = (groups.RepeatedHashes() for _ in range(2))
    assert one.key != other.key
    hashes = [groups.hashes_of(["a", "b"], each.key) for each in (one, other)]
    assert hashes[0].dtype.itemsize == 16
    assert not set(hashes[0].tolist()) & set(hashes[1].tolist())


@over_rows(("start", "stop"), list(itertools.combinations(range(17), 2)))
def test_rows_have_whole_units_and_parts_of_others(start, stop):
    runs = UnitRuns(np.array([0, 4, 5, 9, 16]))
    found = runs.within(start, stop)
    assert found.head + found.n_rows + found.tail == stop - start
    whole = [u for u in range(4) if start <= runs.starts[u] and runs.starts[u + 1] <= stop]
    assert found.sizes.tolist() == [int(runs.starts[u + 1] - runs.starts[u]) for u in whole]
    assert not whole or found.first == whole[0]
    of_row = np.repeat(range(4), np.diff(runs.starts))
    first, last = of_row[start], of_row[stop - 1]
    begun_before = start > runs.starts[first]
    assert bool(found.head) == begun_before
    assert found.ends == (not begun_before or stop >= runs.starts[first + 1])
    assert bool(found.tail) == (stop < runs.starts[last + 1] and not (begun_before and first == last))


def test_rows_of_units_are_side_by_side():
    runs = UnitRuns(np.cumsum([0, 1, 9, 2, 8, 3]))
    assert runs.rows_of(np.array([1, 4])).tolist() == [*range(1, 10), *range(20, 23)]
    assert runs.rows_of(np.empty(0, np.int64)).tolist() == []
