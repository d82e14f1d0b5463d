"""Tables that estimators are fitted to in checks: made up, hostile, sealed and bad. None of them is private."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from skdp.audit.subjects import stacked
from skdp.audit.worst_case import corners, parameter, take, targets

ROW = 7
"""The number of the row that neighbours differ in."""

_WIDTH, _N_ROWS = 4, 80


MAY_BE_REFUSED = ("gaps", "infinite numbers")
"""Far rows that are no numbers."""


class GivenRows(NamedTuple):
    """Rows, with targets, labels of units and weights, None where there are none."""

    X: Any
    y: Any = None
    groups: Any = None
    sample_weight: Any = None

    def given(self) -> dict[str, Any]:
        """What ``fit`` is given beside X and y."""
        return {name: value for name, value in self._asdict().items() if name not in "Xy" and value is not None}

    def chosen(self, numbers: Any) -> GivenRows:
        """Some of the rows, with all that belongs to them."""
        return GivenRows(*(None if each is None else take(each, numbers) for each in self))


def made_up(estimator: Any, seed: int = 0) -> GivenRows:
    """Rows within the public bounds of an estimator, with targets that it takes and that none of them decides."""
    n = max(_N_ROWS, 2 * int(parameter(estimator, "lot_size") or 0))
    rng = np.random.default_rng(seed)
    low, high = corners(estimator, _WIDTH)
    X = rng.uniform(low, high, (n, len(low)))
    known = targets(estimator)
    if known[0] is None:
        return GivenRows(X)
    return GivenRows(X, rng.uniform(*known, n) if isinstance(known[0], float) else np.resize(np.array(known), n))


def other_than(table: GivenRows, seed: int = 1) -> GivenRows:
    """A table of the same shape, whose rows and targets are drawn anew among those of this one."""
    rng, n = np.random.default_rng(seed), table.X.shape[0]
    y = None if table.y is None else take(table.y, rng.integers(0, n, n))
    return GivenRows(take(table.X, rng.integers(0, n, n)), y)


def far_rows(table: GivenRows) -> Iterator[tuple[str, Any]]:
    """Rows that could move a sum too far, by what they are; of rows of numbers, else cells of other kinds."""
    if hasattr(table.X, "iloc"):
        column = table.X.iloc[:, 0]
        yield "gaps", None
        yield "another cell of its column", next((each for each in column if each != column.iloc[ROW]), None)
        return
    width = table.X.shape[1]
    largest = np.finfo(np.float64).max
    cells = {
        "zeros": 0.0,
        "ones": 1.0,
        "denormal numbers": 5e-324,
        "numbers of 1e-40": 1e-40,
        "numbers of 1e6": 1e6,
        "numbers of 1e300": 1e300,
        "the largest numbers": largest,
        "gaps": np.nan,
        "infinite numbers": np.inf,
    }
    for name, cell in cells.items():
        yield name, cell * np.where(np.arange(width) % 2 == 0, 1.0, -1.0)


def with_row(table: GivenRows, row: Any) -> GivenRows:
    """The neighbour that has another row, and the target that is farthest from that of the row which was there."""
    if hasattr(table.X, "iloc"):
        X = table.X.astype(object)
        X.iloc[ROW, 0] = row
    else:
        X = np.array(table.X)
        X[ROW] = row
    y = table.y
    if y is not None:
        y = np.array(y)
        others = y[y != y[ROW]]
        y[ROW] = others[np.argmax(np.abs(others - y[ROW]))] if others.dtype.kind == "f" else others[0]
    return table._replace(X=X, y=y)


def with_strings(table: GivenRows, rows: Sequence[int]) -> GivenRows | None:
    """Return the table with a string of its own in some rows, the last in order, of the last column of strings."""
    columns = {name: table.X[name].astype(object) for name in getattr(table.X, "columns", ())}
    names = [name for name, column in columns.items() if all(isinstance(each, str) for each in column)]
    if not names:
        return None
    X, column = table.X.copy(), columns[names[-1]]
    column.iloc[rows] = [f"{max(column)}~{i}" for i in rows]
    X[names[-1]] = column
    return table._replace(X=X)


def with_units(table: GivenRows, size: int, row: int) -> GivenRows:
    """Pairs of rows as units, and one more unit, of `size` copies of a row."""
    n = table.X.shape[0]
    rows = take(table.X, [row] * size)
    y = None if table.y is None else np.concatenate([np.asarray(table.y), np.asarray(take(table.y, [row] * size))])
    labels = np.concatenate([np.arange(n) // 2, np.full(size, n)])
    return GivenRows(stacked(table.X, rows), y, labels)


class Sealed:
    """A table, or targets, of a public shape, that note when somebody looks at a cell."""

    def __init__(self, like: Any) -> None:
        self.shape, self.ndim, self.was_read = tuple(like.shape), len(like.shape), False
        if hasattr(like, "columns"):
            self.columns, self.dtypes = like.columns, like.dtypes

    def _look(self) -> None:
        self.was_read = True
        raise AssertionError("a cell was read")

    def __len__(self) -> int:
        return int(self.shape[0])

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        self._look()

    def __getitem__(self, place: Any) -> Any:
        self._look()

    def __iter__(self) -> Any:
        self._look()


SECRET_NUMBER, SECRET_WORD = 4711.0625, "zebra"
"""What no message may show."""

SHOWN = ("4711", SECRET_WORD)


def bad_tables(table: GivenRows, *, n_is_private: bool = False) -> Iterator[tuple[str, bool, GivenRows]]:
    """What is wrong, whether it has to be refused, and the table, which has a cell that no message may show.

    Where the number of rows is private, a table may have none.
    """
    X = table.X
    if not hasattr(X, "iloc"):
        X = np.array(X, np.float64)
        X[ROW, 0] = SECRET_NUMBER
        words = X.astype(object)
        words[ROW, 0] = SECRET_WORD
        gap = X.copy()
        gap[ROW + 1, 0] = np.nan
        yield "X has one dimension", True, table._replace(X=X[:, 0])
        yield "X has three dimensions", True, table._replace(X=X[:, :, None])
        yield "X has no rows", not n_is_private, table._replace(X=X[:0], y=None if table.y is None else table.y[:0])
        yield "X has complex numbers", True, table._replace(X=X * 1j)
        yield "X is a text", True, table._replace(X=SECRET_WORD)
        yield "X has rows of two lengths", True, table._replace(X=[*X[:-1].tolist(), [SECRET_NUMBER]])
        yield "X has a word", False, table._replace(X=words)
        yield "X has a gap", False, table._replace(X=gap)
    if table.y is None:
        return
    y = np.asarray(table.y)
    yield "y is too short", True, table._replace(y=y[:-1])
    yield "y has two columns", False, table._replace(y=np.column_stack([y, y]))
    unknown = y.astype(object)
    unknown[ROW] = SECRET_WORD
    yield "y has an unknown label", False, table._replace(y=unknown)
    if y.dtype.kind == "f":
        spoilt = y.copy()
        spoilt[ROW], spoilt[ROW + 1] = SECRET_NUMBER, np.nan
        yield "y has a gap", True, table._replace(y=spoilt)


BAD_PARAMETERS: dict[str, tuple[Any, ...]] = {
    "epsilon": (-1.0, 0.0, float("nan"), "one"),
    "delta": (-1.0, 1.5, float("nan"), "small"),
    "adjacency": ("neighbour",),
}
"""Values that every private estimator refuses, if it has the parameter."""
