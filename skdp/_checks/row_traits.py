"""What is public of rows, handed on with them by the step that made them: a bound on their norm, their indicator
columns, their form, a schema.
Rows by number, of a table of any kind.

An attribute carries it, which slices, copies and the results of arithmetic do not have. Norm and schema are defaults of
parameters, `data_norm` and `schema`, and no more: rows are clipped to the norm like to any other, and read by the
schema like by any other, so a wrong one costs utility and never privacy. Nor does a wrong form: who uses it compares
each row with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

_ATTRIBUTE, _FORM = "_row_norm", "_row_form"


class NormedRows(np.ndarray):
    """View of rows of bounded norm, or of a public schema. Whatever is computed or cut from it is a plain array."""

    _row_norm: float | None = None
    _row_indicators: Any = None
    _row_schema: Any = None
    _row_names: tuple[str, ...] = ()

    def __array_finalize__(self, source: Any) -> None:
        forget_row_norm(self)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if "out" in kwargs:  # what is written into is no longer what was bounded
            for each in kwargs["out"]:
                forget_row_norm(each)
            kwargs["out"] = tuple(_plain(each) for each in kwargs["out"])
        return getattr(ufunc, method)(*map(_plain, inputs), **kwargs)

    def __getitem__(self, key: Any) -> Any:
        return np.asarray(self)[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        forget_row_norm(self)
        np.asarray(self)[key] = value

    def __reduce__(self) -> Any:
        if self._row_schema is not None:
            return with_row_schema, (np.array(self), self._row_schema, self._row_names)
        return with_row_norm, (np.array(self), self._row_norm, self._row_indicators)


def with_row_norm(rows: Any, norm: float | None, indicators: Any = None) -> Any:
    """Return rows that carry a bound on their norm: a view of an array, the sparse matrix itself.

    Parameters
    ----------
    rows : ndarray, sparse matrix or frame
        A frame carries nothing.
    norm : float or None
        No row is longer. None carries nothing.
    indicators : ndarray of shape (n_features,) or None, default=None
        What an array carries beside that: see `row_indicators_of`.

    Returns
    -------
    ndarray, sparse matrix or frame
    """
    if norm is None:
        return rows
    if sp.issparse(rows):
        setattr(rows, _ATTRIBUTE, float(norm))
    elif isinstance(rows, np.ndarray):
        rows = rows.view(NormedRows)
        rows._row_norm, rows._row_indicators = float(norm), indicators
    return rows


def row_norm_of(rows: Any) -> float | None:
    """Return the bound that rows carry, None if they carry none."""
    if not sp.issparse(rows) and not isinstance(rows, NormedRows):
        return None
    norm = getattr(rows, _ATTRIBUTE, None)
    return norm if isinstance(norm, float) and 1e-30 <= norm <= 1e30 else None


def row_indicators_of(rows: Any) -> Any:
    """Return the public weights of the indicator columns of an array, 0 for other columns; None if it carries none.

    A row has one 1 among the indicators of a column of the table. The weight is 1 / sqrt(k) for k columns of the table.
    """
    return rows._row_indicators if isinstance(rows, NormedRows) else None


def with_row_form(rows: Any, form: Any) -> Any:
    """Return sparse rows that carry what is public of the pattern of each of them.

    Parameters
    ----------
    rows : sparse matrix
        Changed.
    form : skdp._training.models.one_hot.OneHotForm

    Returns
    -------
    sparse matrix
    """
    setattr(rows, _FORM, form)
    return rows


def row_form_of(rows: Any) -> Any:
    """Return the form that sparse rows carry, None if they carry none."""
    return getattr(rows, _FORM, None) if sp.issparse(rows) else None


def with_row_schema(rows: np.ndarray, schema: Any, names: Sequence[str] = ()) -> Any:
    """Return a view of rows that carries the public schema of its columns, which are named x0, x1, and so on.

    Parameters
    ----------
    rows : ndarray
    schema : skdp.preprocessing.TableSchema or None
        None carries nothing.
    names : sequence of str
        What the columns are called where they come from, for whoever speaks of them.

    Returns
    -------
    ndarray
    """
    if schema is None:
        return rows
    made = rows.view(NormedRows)
    made._row_schema, made._row_names = schema, tuple(names)
    return made


def row_schema_of(rows: Any) -> Any:
    """Return the schema that rows carry, None if they carry none."""
    return rows._row_schema if isinstance(rows, NormedRows) else None


def row_names_of(rows: Any) -> tuple[str, ...]:
    """Return what the columns of rows with a schema are called where they come from, nothing if that is not known."""
    return rows._row_names if isinstance(rows, NormedRows) else ()


def forget_row_norm(rows: Any) -> None:
    """Take norm, indicators, schema and names away from rows that are written into."""
    if isinstance(rows, NormedRows):
        rows._row_norm, rows._row_indicators, rows._row_schema, rows._row_names = None, None, None, ()


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, NormedRows) else value


def indexable(X: Any) -> Any:
    """A table or a column whose rows can be taken by number. A list stays one, as an array has one type of cells."""
    if hasattr(X, "tocsr"):
        return X.tocsr()
    if hasattr(X, "shape") or type(X).__module__.startswith("pyarrow"):
        return X
    return np.asarray(X) if hasattr(X, "__array__") else list(X)


def take_rows(X: Any, rows: NDArray[np.intp]) -> Any:
    """Some rows of what is `indexable`, with what all rows carry: it holds of each of them.

    Of a list of rows that none is taken of, the columns are kept, by an array.
    """
    if isinstance(X, list):
        has_columns = bool(X) and isinstance(X[0], list | tuple | np.ndarray)
        taken = [X[row] for row in rows.tolist()]
        return taken if taken or not has_columns else np.empty((0, len(X[0])), object)
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if type(X).__module__.startswith("pyarrow"):
        return X.take(rows)
    taken = with_row_norm(X[rows], row_norm_of(X), row_indicators_of(X))
    if row_form_of(X) is not None:
        taken = with_row_form(taken, row_form_of(X))
    return taken if row_schema_of(X) is None else with_row_schema(taken, row_schema_of(X), row_names_of(X))


def first_row(X: Any, n_rows: int) -> Any:
    """The first row of what is `indexable`, as a table, which has none where there is none."""
    return take_rows(X, np.arange(min(1, n_rows)))
