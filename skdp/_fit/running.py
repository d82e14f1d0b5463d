"""Run public steps inside a private pipeline: without warnings or messages of rows, and with one row for each row."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import config_context

from skdp._checks.notices import repeat_notices
from skdp._checks.row_traits import row_indicators_of, row_norm_of, take_rows, with_row_norm
from skdp._checks.rows import column_names, table_shape
from skdp._guard.public_rules import takes_any_types
from skdp._guard.public_steps import passes_rows, quietly
from skdp._guard.row_wise import RowWiseError


def run_publicly(name: str, step: Any, X: Any, y: Any, params: dict[str, Any]) -> Any:
    """Transform rows by a public step, without showing the message of a refusal."""
    if passes_rows(step):
        return X
    refused, made = "", None
    try:
        with quietly():
            made = step.fit_transform(X, y, **params)
    except RowWiseError as error:
        refused = str(error)
    except Exception as error:  # its message, and its context, may show a cell
        refused = (
            f"{type(step).__name__} refuses the rows with a {type(error).__name__}; fit it to them alone to see why, "
            "and let it take every value (unknown categories, gaps)."
        )
        if takes_any_types(step) and isinstance(error, TypeError | ValueError):
            refused = str(error)
    if refused:
        raise ValueError(f"step {name!r}: {refused}")
    repeat_notices(step)
    if table_shape(made)[0] != table_shape(X)[0]:
        raise ValueError(f"step {name!r}: {type(step).__name__} changes the number of rows: keep them one for one.")
    return made


def run_after_the_charge(name: str, step: Any, X: Any, y: Any, params: dict[str, Any]) -> Any:
    """Transform rows by a public step after a private one, where a refusal would be a query that is not paid for.

    scikit-learn's own check for NaN is skipped. A row that comes out with NaN, infinity or what is no number becomes a
    row of zeros, which is a function of that row only. A table without rows, which scikit-learn refuses, is given a row
    of zeros for the step, and loses it again.
    """
    is_empty = table_shape(X)[0] == 0
    with config_context(assume_finite=True):
        made = zero_wild_rows(run_publicly(name, step, _zero_row_like(X) if is_empty else X, y, params))
    return take_rows(made, np.empty(0, np.intp)) if is_empty else made


def _zero_row_like(X: Any) -> Any:
    """A row of zeros with the columns and the types of a table of numbers."""
    if hasattr(X, "iloc"):
        return _taken_or_zero(X, np.array([-1]))
    if column_names(X) is not None:
        return type(X)({name: np.zeros(1) for name in X.columns}).cast(X.schema)
    made = type(X)((1, X.shape[1]), dtype=X.dtype) if sp.issparse(X) else np.zeros((1, *X.shape[1:]), X.dtype)
    return with_row_norm(made, row_norm_of(X))


def rehearse(name: str, step: Any, X: Any, y: Any, params: dict[str, Any]) -> Any:
    """Transform made-up rows by a public step before the charge. The message of a refusal may be shown."""
    if passes_rows(step):
        return X
    try:
        with quietly(), config_context(assume_finite=True):
            made = step.fit_transform(X, y, **params)
            _refuse_objects(made)
            return zero_wild_rows(made)
    except Exception as error:
        reason = " ".join(str(error).split())
        raise ValueError(
            f"step {name!r}: {type(step).__name__} cannot be run on made-up rows of the width that it will be given "
            f"({type(error).__name__}: {reason}): fix it, as behind a private step it is run after the charge."
        ) from None


def _refuse_objects(made: Any) -> None:
    """Refuse cells without a type of their own: whether the next step can read them would depend on the rows."""
    if np.dtype(object) in (list(made.dtypes) if hasattr(made, "iloc") else [getattr(made, "dtype", None)]):
        raise TypeError("it returns objects where the next step needs numbers or a type of text")


def zero_wild_rows(made: Any) -> Any:
    """Replace rows that hold NaN, infinity or what is no number by rows of zeros."""
    traits = row_norm_of(made), row_indicators_of(made)  # hold for what is zeroed too
    return with_row_norm(_zero_wild(made), *traits)


def _zero_wild(made: Any) -> Any:
    if sp.issparse(made):
        made = made.tocsr(copy=True)
        wild = ~np.isfinite(made.data)
        if wild.any():
            rows = np.repeat(np.arange(made.shape[0]), np.diff(made.indptr))
            made.data[np.isin(rows, rows[wild])] = 0.0
        return made
    made = _without_objects(made)
    rows = _find_wild_rows(made)  # decided row by row, so no row depends on another
    if not rows.any():
        return made
    if isinstance(made, np.ndarray):
        return np.where(rows.reshape(-1, *[1] * (made.ndim - 1)), made.dtype.type(0), made)
    places = np.arange(len(rows))
    if hasattr(made, "iloc"):
        return _taken_or_zero(made, np.where(rows, -1, places)).set_axis(made.index)
    return made.vstack(_zero_row_like(made))[np.where(rows, len(rows), places)]


def _taken_or_zero(frame: Any, places: NDArray[np.intp]) -> Any:
    """Rows of a frame of pandas at these places, rows of zeros for -1; as objects, for which pandas has no warning."""
    return frame.astype(object).reset_index(drop=True).reindex(places, fill_value=0).astype(frame.dtypes)


def _without_objects(made: Any) -> Any:
    """Cells that are objects as doubles, each by itself; NaN where it is no number."""
    if isinstance(made, np.ndarray) and made.dtype == object:
        return np.frompyfunc(_number_of, 1, 1)(made).astype(np.float64)
    if hasattr(made, "iloc") and np.dtype(object) in list(made.dtypes):
        places = [place for place, dtype in enumerate(made.dtypes) if dtype == np.dtype(object)]
        made = made.copy(deep=False)
        for place in places:
            made.isetitem(place, _without_objects(made.iloc[:, place].to_numpy()))
    return made


def _number_of(cell: Any) -> float:
    try:
        return float(cell)
    except Exception:  # of whatever kind, its message may show the cell
        return np.nan


def _find_wild_rows(made: Any) -> NDArray[np.bool_]:
    """Rows of an array or a frame of numbers that hold NaN, infinity or a gap."""
    values = np.asarray(made)
    if values.dtype.kind == "f":
        return ~np.isfinite(values).all(axis=tuple(range(1, values.ndim)))
    wild = np.zeros(len(values), bool)
    if values.dtype.kind == "O" and column_names(made) is not None:  # columns have types of their own
        for column in made.columns:
            wild |= _find_wild_cells(made[column])
    return wild


def _find_wild_cells(column: Any) -> NDArray[np.bool_]:
    gaps = np.array(column.isna() if hasattr(column, "isna") else column.is_null(), bool)
    cells = np.array(column, object)
    cells[gaps] = 0
    try:
        return gaps | ~np.isfinite(cells.astype(np.float64))
    except (TypeError, ValueError):  # texts
        return gaps
