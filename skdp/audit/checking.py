"""Helpers of the conformance checks: tables, neighboring tables, and the results of a fit.

A check demands something, or is `Inapplicable` if the estimator does not support what it tests.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any
from unittest import SkipTest

import numpy as np
from sklearn.base import clone

from skdp.audit.replay import change
from skdp.audit.subjects import AuditedFit, prepared, recorded_fit, stacked, states_its_cost
from skdp.audit.worst_case import GivenRows, contradicting, corners, leaves, parameter, take, targets
from skdp.exceptions import PrivacyLeakWarning
from skdp.mechanisms.release_log import Track, Transcript

RELATIVE_ERROR = 1e-6
"""Relative error of a sum of rows, and of a privacy cost."""

ROW = 7
"""The number of the row that neighbors differ in."""

MAY_BE_REJECTED = ("gaps", "infinite numbers")
"Rows with values that are not numbers."

SECRET_NUMBER, SECRET_WORD = 4711.0625, "zebra"
"Values that no message may contain."

SHOWN = ("4711", SECRET_WORD)

BAD_PARAMETERS: dict[str, tuple[Any, ...]] = {
    "epsilon": (-1.0, 0.0, float("nan"), "one"),
    "delta": (-1.0, 1.5, float("nan"), "small"),
    "adjacency": ("neighbor",),
}
"Values that every private estimator must reject, if it has the parameter."


class Inapplicable(SkipTest):
    """The estimator does not support what a check tests: pytest skips the test."""


def demand(condition: bool, wrong: str, remedy: str) -> None:
    """Raise an `AssertionError` with the violation and the fix, unless the condition holds."""
    if not condition:
        raise AssertionError(f"{wrong.rstrip('.')}. {remedy}.")


def made_up(estimator: Any, seed: int = 0) -> GivenRows:
    """Return simulated rows within the public bounds of an estimator, with targets that are independent of the rows."""
    n = max(80, 2 * int(parameter(estimator, "lot_size") or 0))
    rng = np.random.default_rng(seed)
    low, high = corners(estimator, 4)
    X, known = rng.uniform(low, high, (n, len(low))), targets(estimator)
    if known[0] is None:
        return GivenRows(X)
    return GivenRows(X, rng.uniform(*known, n) if isinstance(known[0], float) else np.resize(np.array(known), n))


def other_than(table: GivenRows, seed: int = 1) -> GivenRows:
    """Return a table of the same shape, whose rows and targets are resampled from this one."""
    rng, n = np.random.default_rng(seed), table.X.shape[0]
    y = None if table.y is None else take(table.y, rng.integers(0, n, n))
    return GivenRows(take(table.X, rng.integers(0, n, n)), y)


def far_rows(table: GivenRows) -> Iterator[tuple[str, Any]]:
    """Generate extreme rows, with a description; for data frames, other values of a column."""
    if hasattr(table.X, "iloc"):
        column = table.X.iloc[:, 0]
        yield "gaps", None
        yield "another value of its column", next((each for each in column if each != column.iloc[ROW]), None)
        return
    # Cells change their sign from column to column, so that no row is along all columns alike.
    signs = np.where(np.arange(table.X.shape[1]) % 2 == 0, 1.0, -1.0)
    cells = {
        "zeros": 0.0,
        "ones": 1.0,
        "denormal numbers": 5e-324,
        "numbers of 1e-40": 1e-40,
        "numbers of 1e6": 1e6,
        "numbers of 1e300": 1e300,
        "the largest numbers": np.finfo(np.float64).max,
        "gaps": np.nan,
        "infinite numbers": np.inf,
    }
    for name, cell in cells.items():
        yield name, cell * signs


def with_row(table: GivenRows, row: Any) -> GivenRows:
    """Return the neighboring table with another row, whose target is farthest from that of the original row."""
    if hasattr(table.X, "iloc"):
        X = table.X.astype(object)
        X.iloc[ROW, 0] = row
    else:
        X = np.array(table.X)
        X[ROW] = row
    y = table.y
    if y is not None:
        y = np.array(y)
        y[ROW] = contradicting(y, ROW)[0]
    return table._replace(X=X, y=y)


def with_strings(table: GivenRows, rows: list[int]) -> GivenRows | None:
    """Return the table with unique strings in some rows of the last string column."""
    columns = {name: table.X[name].astype(object) for name in getattr(table.X, "columns", ())}
    names = [name for name, column in columns.items() if all(isinstance(each, str) for each in column)]
    if not names:
        return None
    X, column = table.X.copy(), columns[names[-1]]
    column.iloc[rows] = [f"{max(column)}~{i}" for i in rows]
    X[names[-1]] = column
    return table._replace(X=X)


def with_units(table: GivenRows, size: int, row: int) -> GivenRows:
    """Return the table with pairs of rows as groups, and one more group of `size` copies of a row."""
    n = table.X.shape[0]
    rows = take(table.X, [row] * size)
    y = None if table.y is None else np.concatenate([np.asarray(table.y), np.asarray(take(table.y, [row] * size))])
    labels = np.concatenate([np.arange(n) // 2, np.full(size, n)])
    return GivenRows(stacked(table.X, rows), y, labels)


class Sealed:
    """Table, or targets, of a public shape, that record an access to their values."""

    def __init__(self, like: Any) -> None:
        self.shape, self.ndim, self.was_read = tuple(like.shape), len(like.shape), False
        if hasattr(like, "columns"):
            self.columns, self.dtypes = like.columns, like.dtypes

    def _look(self, *_: Any, **__: Any) -> Any:
        self.was_read = True
        raise AssertionError("a cell was read")

    __array__ = __getitem__ = __iter__ = _look

    def __len__(self) -> int:
        return int(self.shape[0])


def bad_tables(table: GivenRows, *, n_is_private: bool = False) -> Iterator[tuple[str, bool, GivenRows]]:
    """Generate invalid tables: a description, whether rejection is required, and the table, with a secret value.

    If the number of rows is private, a table may be empty.
    """
    # Rows of numbers, whose shape or cells are wrong; a frame has types of its own.
    X = table.X
    if not hasattr(X, "iloc"):
        X = np.array(X, np.float64)
        X[ROW, 0] = SECRET_NUMBER
        words = X.astype(object)
        words[ROW, 0] = SECRET_WORD
        gap = X.copy()
        gap[ROW + 1, 0] = np.nan
        yield "a one-dimensional X", True, table._replace(X=X[:, 0])
        yield "a three-dimensional X", True, table._replace(X=X[:, :, None])
        yield "an X without rows", not n_is_private, table._replace(X=X[:0], y=None if table.y is None else table.y[:0])
        yield "an X of complex numbers", True, table._replace(X=X * 1j)
        yield "an X that is a string", True, table._replace(X=SECRET_WORD)
        yield "an X with rows of different lengths", True, table._replace(X=[*X[:-1].tolist(), [SECRET_NUMBER]])
        yield "an X with a string", False, table._replace(X=words)
        yield "an X with a missing value", False, table._replace(X=gap)
    if table.y is None:
        return
    # Targets.
    y = np.asarray(table.y)
    yield "a y that is too short", True, table._replace(y=y[:-1])
    yield "a y with two columns", False, table._replace(y=np.column_stack([y, y]))
    unknown = y.astype(object)
    unknown[ROW] = SECRET_WORD
    yield "a y with an unknown label", False, table._replace(y=unknown)
    if y.dtype.kind == "f":
        spoilt = y.copy()
        spoilt[ROW], spoilt[ROW + 1] = SECRET_NUMBER, np.nan
        yield "a y with a missing value", True, table._replace(y=spoilt)


class CheckedEstimator:
    """Estimator under test, and the tables to which it is fitted.

    Parameters
    ----------
    estimator : object
        It is cloned, and neither fitted nor charged to its own accountant.
    X, y : array-like or None, default=None
        Public or simulated data that it accepts. None simulates data.
    """

    def __init__(self, estimator: Any, X: Any = None, y: Any = None) -> None:
        if isinstance(estimator, type) or not states_its_cost(estimator):
            raise TypeError(f"`estimator` must be an instance of a private estimator, got {estimator!r}.")
        self.name = type(estimator).__name__
        self.table = made_up(estimator) if X is None else GivenRows(X, y)
        self.other = made_up(estimator, seed=1) if X is None else other_than(self.table)
        self._template = prepared(estimator)

    def make(self, ledger: Any = None, **parameters: Any) -> Any:
        """Return a clone with an accountant, with other values of some of its own parameters."""
        model = clone(self._template).set_params(**parameters)
        return model if ledger is None else model.set_params(**dict.fromkeys(self.places("accountant"), ledger))

    def places(self, name: str) -> list[str]:
        """Return where a parameter can be set: on the estimator itself, or else on its private parts."""
        own = self._template.get_params(deep=False)
        if name in own:
            return [name]
        everything = self._template.get_params(deep=True)
        return [
            path for path in everything
            if path.endswith(f"__{name}") and states_its_cost(everything[path.rpartition("__")[0]])
        ]  # fmt: skip

    def takes(self, name: str) -> bool:
        """Return whether ``fit`` has an argument of this name."""
        return name in inspect.signature(self._template.fit).parameters

    def fit(self, table: GivenRows, /, forced: AuditedFit | None = None, **parameters: Any) -> AuditedFit:
        """Fit a clone with a known seed; the releases of a `forced` fit replace its own."""
        return recorded_fit(
            self.make(**parameters), table, Transcript(0, None if forced is None else forced.transcript)
        )


def transcript_that_calls(hook: Callable[[], None]) -> Transcript:
    """Return a recorder that calls a function before each release; its noise is secret."""

    class Calling(Track):
        def release(self, mechanism: Any, exact: Any, noisy: Any) -> Any:
            hook()
            return super().release(mechanism, exact, noisy)

    return Transcript(track_type=Calling)


def learned(model: Any) -> dict[str, Any]:
    """Return all published attributes of a fit, except the schema of the rows and accountants."""
    names = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    names -= {"n_features_in_", "feature_names_in_", *model.get_params(deep=False)}
    return {
        name: {place: leaf for place, leaf in leaves(vars(model)[name]) if "['accountant']" not in place}
        for name in sorted(names)
    }


def answers(model: Any, X: Any) -> dict[str, Any]:
    """Return the output of the methods of a fitted model, by method name."""
    methods = ("predict", "predict_proba", "decision_function", "transform")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = take(X, range(min(9, X.shape[0])))
        return {name: getattr(model, name)(first) for name in methods if hasattr(model, name)}


def rejection(act: Callable[[], Any]) -> Exception | None:
    """Return the error by which something is rejected, or None. Leaks issue warnings, which other checks test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        try:
            act()
        except Exception as error:
            return error
    return None


def said_by(error: BaseException | None) -> str:
    """Return the text of an error and of the errors from which it was raised."""
    words: list[str] = []
    while error is not None:
        words += [*map(str, error.args), str(error), *getattr(error, "__notes__", ())]
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return " ".join(words)


def moves(one: AuditedFit, other: AuditedFit) -> list[float]:
    """Return the change of each release from that of the other fit, relative to its sensitivity."""
    pairs = zip(
        (each for track in one.transcript.tracks for each in track.releases),
        (each for track in other.transcript.tracks for each in track.releases),
        strict=True,
    )
    return [change(*pair) for pair in pairs]
