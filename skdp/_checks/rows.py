"""Validation of private input: tables, labels and targets.

An error message is one line with the column and the kind of error. Neither the message nor a chained exception contains
a cell, a label or a weight. So no error is raised while another exception is handled, and scikit-learn's own checks,
which quote values, receive neither rows nor labels. Messages may contain shapes and column names.

Rows carry public facts from the step that returned them: a bound on their norm, indicator columns, their form, a
schema. These attributes are lost in slices, copies and arithmetic. Norm and schema are only defaults of the parameters
`data_norm` and `schema`, so a wrong one affects utility, never privacy. Each row is compared with its form.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import validation

from skdp._checks import numbers
from skdp._checks.frames import column_of, in_memory
from skdp._checks.leaks import warn
from skdp._checks.numbers import NUMBER, all_finite, format_names, numbers_of, reject, reject_not_finite, values_of
from skdp._checks.parameters import number_is_private


def check_table(estimator: Any, X: Any, *, reset: bool, sparse: bool = False, by_blocks: bool = False) -> Any:
    """Return the rows of X as an array or a CSR matrix of finite numbers.

    Parameters
    ----------
    estimator : estimator instance
        Its `n_features_in_` and `feature_names_in_` are set or checked last, so an error sets nothing.
    X : array-like, frame or sparse matrix of shape (n, d)
        Private.
    reset : bool
        Whether to set the number and names of features of `estimator`; otherwise X must match them.
    sparse : bool
        Whether sparse matrices are accepted.
    by_blocks : bool
        Whether the caller converts the rows block by block. Any real dtype and memory order is then kept, without a
        copy.

    Returns
    -------
    ndarray of shape (n, d) or csr_matrix
        float32 for float32, otherwise float64, in C order; without duplicate entries if sparse.

    Raises
    ------
    TypeError
        X is sparse but sparse rows are not accepted, or it has cells that are neither numbers nor strings.
    ValueError
        Any other error.
    """
    X = in_memory(X) if reset else without_labels(estimator, X)
    names = column_names(X)
    # A frame of pandas is sparse if all of its columns are.
    frame_types = X.dtypes if names and hasattr(X, "sparse") else ()
    if sp.issparse(X) or (len(frame_types) and all(map(_is_sparse_number, frame_types))):
        if not sparse:
            raise TypeError("X is sparse, but sparse data are not supported here. Pass X.toarray().")
        table = sparse_table(X, estimator)
    else:
        table = _dense_table(X, names, by_blocks=by_blocks, reader=estimator)
    check_finite(table, names)
    check_schema(estimator, table if names is None else X, reset=reset)
    return table


def read_cells(
    X: Any, names: list[Any] | None = None, dtype: Any = None, order: Any = "C", *, finite: bool = True
) -> np.ndarray:
    """Return a block of rows as an array of finite numbers, as `check_table` does, without checking names.

    `names` are the column names of an array. Without `finite`, the caller must check that all numbers are finite.
    """
    names_of_frame = column_names(X)
    table = _dense_table(X, names_of_frame, by_blocks=True)
    with np.errstate(all="ignore"):
        table = np.asarray(table, dtype=_float_dtype(table.dtype) if dtype is None else dtype, order=order)
    if finite:
        check_finite(table, names if names_of_frame is None else names_of_frame)
    return table


def column_names(X: Any) -> list[Any] | None:
    """Return the column names of a data frame, None for anything else."""
    of_pandas_or_polars = hasattr(X, "iloc") or hasattr(X, "to_series")
    names = getattr(X, "columns" if of_pandas_or_polars else "column_names", None)
    if names is None or callable(names):
        return None
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(
            f"X has duplicate column names: {format_names(repeated)}. Rename them, so that each name is unique."
        )
    return list(names)


def without_column(X: Any, name: str) -> Any:
    """Return a data frame without one of its columns."""
    return nw.from_native(X).drop(name).to_native()


def split_column(X: Any, parameter: str, given: Any) -> tuple[Any, Any]:
    """Return a table without the column that a parameter names, and that column; or both unchanged."""
    if not isinstance(given, str):
        return X, given
    X = in_memory(X)
    names = column_names(X)
    if names is None or given not in names:
        raise ValueError(
            f"{parameter}={given!r} is not a column of X. Pass a column name of X, or an array with one entry per row."
        )
    return without_column(X, given), X[given]


def without_labels(fitted: Any, X: Any) -> Any:
    """Return rows in memory without the column of group identifiers of ``fit``, unless it was a feature in ``fit``."""
    X = in_memory(X)
    name = fitted.__dict__.get("_fitted_group_name")
    if name is None or name in getattr(fitted, "feature_names_in_", ()) or name not in (column_names(X) or ()):
        return X
    return without_column(X, name)


def _is_sparse_number(dtype: Any) -> bool:
    return type(dtype).__name__ == "SparseDtype" and dtype.kind in "buif" and dtype.fill_value == 0


def sparse_table(X: Any, reader: Any) -> Any:
    """Return a sparse matrix, or a data frame of sparse columns, as a numeric CSR matrix, which may not be finite."""
    if hasattr(X, "iloc"):
        X = X.sparse.to_coo()
    check_shape(X.shape, reader)
    if X.dtype.kind not in "buif":
        reject(numbers.COMPLEX if X.dtype.kind == "c" else numbers.OTHER, "X")
    intact = True
    try:
        X = _check_csr(X)
    except (ValueError, IndexError):
        intact = False
    if not intact:
        raise ValueError("X is a damaged sparse matrix: its indices do not match its shape. Build it again.")
    with np.errstate(all="ignore"):
        data = X.data.astype(_float_dtype(X.dtype), copy=False)
        table = sp.csr_matrix((data, X.indices, X.indptr), X.shape)  # forgets what X believes of its own format
        if not table.has_canonical_format:
            table = table.copy()
            table.sum_duplicates()
    return table


def _check_csr(X: Any) -> Any:
    """Return X in CSR format. Indices beyond its shape are rejected: kernels would read and write out of bounds."""
    if X.format == "coo":
        return sp.coo_matrix((X.data, (X.row, X.col)), shape=X.shape).tocsr()
    if X.format in ("csr", "csc", "bsr"):
        X = getattr(sp, f"{X.format}_matrix")((X.data, X.indices, X.indptr), shape=X.shape)
        X.check_format(full_check=True)
    table = X.tocsr()
    if table is not X:
        table.check_format(full_check=True)
    return table


def _dense_table(X: Any, names: list[Any] | None, *, by_blocks: bool, reader: Any = None) -> np.ndarray:
    types = list(X.dtypes) if hasattr(X, "iloc") else []
    if names is None:
        values = values_of("X", X)
    elif types and all(isinstance(dtype, np.dtype) and dtype.kind in "buif" for dtype in types):
        values = X.to_numpy(dtype=np.result_type(*types))
    else:  # an empty stand-in of its shape
        values = np.broadcast_to(np.array(None), X.shape)
    check_shape(values.shape, reader)
    if values.dtype.kind not in "buif":
        values = _convert_columns(values if names is None else X, values.shape, names)
    # rows of a list have no type but that of their cells, and one cell must not decide on it
    dtype = values.dtype if names is not None or hasattr(X, "dtype") else np.dtype(np.float64)
    if not by_blocks or dtype.itemsize > 8:
        dtype = _float_dtype(dtype)
    with np.errstate(all="ignore"):  # a number too large for float64 becomes infinite, and is rejected as that
        return np.asarray(values, dtype=dtype, order=None if by_blocks else "C")


def _float_dtype(dtype: Any) -> Any:
    return np.float32 if dtype == np.float32 else np.float64


def check_shape(shape: tuple[int, ...], reader: Any = None) -> None:
    """Reject tables without two dimensions, columns or rows. Under add_remove, tables may have no rows."""
    if len(shape) < 2:
        found = "1D array" if shape else "scalar array"
        raise ValueError(
            f"Expected 2D array, got {found} instead. Reshape your data: use X.reshape(-1, 1) for a single "
            "column, or X.reshape(1, -1) for a single row."
        )
    if len(shape) > 2:
        raise ValueError(f"Found array with dim {len(shape)}. Expected two dimensions, rows and columns.")
    for count, what in zip(shape, ("sample", "feature"), strict=True):
        if count == 0 and not (what == "sample" and number_is_private(reader)):
            raise ValueError(f"Found array with 0 {what}(s) (shape={shape}) while a minimum of 1 is required.")


def _convert_columns(X: Any, shape: tuple[int, ...], names: list[Any] | None) -> np.ndarray:
    """Convert the columns of a frame, or of an array of objects, to numbers; a missing value becomes NaN."""
    columns = []
    for j in range(shape[1]):
        cells = _column(X, j)
        fault, column = numbers_of(cells) if cells.ndim == 1 else (numbers.OTHER, cells)
        if fault != NUMBER:
            reject(fault, "X", f" in column {format_names([j if names is None else names[j]])}")
        columns.append(column)
    return np.column_stack(columns)


def _column(X: Any, j: int) -> np.ndarray:
    if isinstance(X, np.ndarray):
        return X[:, j]
    column = column_of(X, j)
    if not hasattr(column, "iloc") or isinstance(column.dtype, np.dtype) or column.dtype.kind not in "buif":
        return values_of("X", column)
    return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))


def check_finite(table: Any, names: list[Any] | None) -> None:
    """Reject NaN and infinity in a table, with the names of their columns."""
    values = table.data if sp.issparse(table) else table
    if all_finite(values):
        return
    # Which columns hold NaN, and which infinity.
    found = np.zeros((2, table.shape[1]), bool)
    for kind, test in zip(found, (np.isnan, np.isinf), strict=True):
        if sp.issparse(table):
            kind[table.indices[test(values)]] = True
        else:
            for block in numbers.blocks(values):
                kind |= test(block).any(axis=0)
    columns = np.flatnonzero(found[0] if found[0].any() else found[1]).tolist()
    where = f" in column {format_names([j if names is None else names[j] for j in columns])}"
    reject_not_finite("X", nan=bool(found[0].any()), where=where)


def check_schema(estimator: Any, X: Any, *, reset: bool) -> None:
    """Set or check the number and names of features with scikit-learn, with one-line messages."""
    fault = None
    try:
        # What validate_data does to X here. It would also read the tags, which `check_is_fitted` has done.
        validation._check_feature_names(estimator, X, reset=reset)
        validation._check_n_features(estimator, X, reset=reset)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        fault = kind(" ".join(str(error).split()))
    if fault is not None:  # raised outside the handler, so that no context is chained to it
        raise fault


# --- labels ---


def check_labels(y: Any, n_rows: int, *, classes: Any = None, columns: bool = False) -> np.ndarray:
    """Return the labels as an array, one label per row.

    Parameters
    ----------
    y : array-like of shape (n_rows,) or (n_rows, 1), or (n_rows, k) if `columns`
        Private numbers or strings.
    classes : sequence or None
        None if the classes will be read from y; continuous labels are then rejected.
    columns : bool
        Whether several columns of one label each are accepted. They may be sparse.

    Returns
    -------
    ndarray of shape (n_rows,), or (n_rows, k) for k > 1 columns
        Objects if y has no dtype. Numbers then have the types ``int`` and ``float``, so a single ``1.0`` changes no
        other label.
    """
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None. Pass one label per row.")
    if columns and sp.issparse(y):
        y = y.toarray()
    labels = values_of("y", y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        warn("A column-vector y was passed when a 1d array was expected. Pass y.ravel().", DataConversionWarning)
        labels = labels[:, 0]
    elif labels.ndim != 1 and not (columns and labels.ndim == 2 and labels.shape[1] > 1):
        raise ValueError(f"y should be a 1d array, got shape {labels.shape}. Pass one label per row.")
    if len(labels) != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: [{n_rows}, {len(labels)}] for X and "
            "y. Pass one label per row."
        )
    # Types first, then values, whose errors name the kind of fault alone.
    labels = _check_label_types(labels)
    floats = _floats_among(labels)
    if not all_finite(floats):
        reject_not_finite("y", nan=bool(np.isnan(floats).any()))
    if classes is None and labels.ndim == 1 and is_continuous(labels):
        raise ValueError(
            "Unknown label type: y is continuous (numbers with a fractional part), but a classifier requires "
            "classes. Bin y into public classes, or use a regressor."
        )
    return np.ascontiguousarray(labels)


def _check_label_types(labels: np.ndarray) -> np.ndarray:
    """Return labels that are all numbers, or all strings."""
    if labels.dtype.kind in "buifU":
        return labels
    # Cells of objects and texts are looked at one by one, others by their dtype.
    cells = labels.astype(object).ravel().tolist() if labels.dtype.kind in "OST" else []
    types = set(map(type, cells))
    kinds = set(map(numbers.kind_of_cell, types)) or {numbers.KIND_OF_DTYPE.get(labels.dtype.kind, numbers.OTHER)}
    if numbers.GAP in kinds or any(isinstance(cell, float | np.floating) and np.isnan(cell) for cell in cells):
        reject_not_finite("y", nan=True)
    if numbers.COMPLEX in kinds or numbers.TIME in kinds:
        reject(numbers.COMPLEX if numbers.COMPLEX in kinds else numbers.TIME, "y")
    if kinds == {NUMBER, numbers.STRING}:
        raise ValueError("y contains labels of several types, numbers and strings. Convert all of them to one type.")
    if kinds == {numbers.STRING} and not all(isinstance(cell, str) for cell in cells):
        raise ValueError("y contains labels of type bytes. Decode them to strings first.")
    if kinds == {numbers.STRING}:
        return np.fromiter(map(str.__str__, cells), object, len(cells)).reshape(labels.shape)
    if kinds == {NUMBER}:
        return _label_numbers(cells, types).reshape(labels.shape)
    raise ValueError(
        "Unknown label type: y contains labels that are neither numbers nor strings. Convert them to "
        "numbers or strings."
    )


def _label_numbers(cells: list[Any], types: set[type]) -> np.ndarray:
    """Return labels that are numbers as an array if all are of one type, else as objects that keep their values."""
    if types <= {bool, np.bool_}:
        return np.array(cells, np.bool_)
    if not types <= {int, float}:
        cells = list(map(_number_of_label, cells))
        types = set(map(type, cells))
    alike = numbers.typed_cells(cells, types)
    return np.fromiter(cells, object, len(cells)) if alike is None else alike


def _number_of_label(cell: Any) -> int | float:
    """Return a number as a whole number of Python, of any size, or as a float."""
    try:
        return int(cell) if isinstance(cell, Integral | np.bool_) else numbers.float_of(cell)
    except Exception:  # somebody's own number, whose message may quote it
        return math.nan


def _floats_among(labels: np.ndarray) -> np.ndarray:
    """Return the labels that are floats."""
    if labels.dtype.kind == "O":
        return np.array([label for label in labels.ravel().tolist() if type(label) is float], np.float64)
    return labels if labels.dtype.kind == "f" else np.empty(0)


def is_continuous(labels: np.ndarray) -> bool:
    """Return whether some labels are numbers with a fractional part."""
    floats = _floats_among(labels)
    return bool((floats != np.floor(floats)).any())


def classes_of(labels: np.ndarray) -> np.ndarray:
    """Return the distinct values of labels, at least two."""
    values = np.unique(labels)
    if len(values) < 2:
        raise ValueError(
            "y contains only one class, and `classes` was not set. Pass all possible classes, e.g. classes=[0, 1]."
        )
    if values.dtype.kind == "O" and not isinstance(values[0], str):
        narrowed = np.asarray(values.tolist())
        return narrowed if narrowed.tolist() == values.tolist() else values
    return values


def encode_labels(y: np.ndarray, classes: np.ndarray, name: str = "y") -> np.ndarray:
    """Return the positions of the labels `y` in the sorted `classes`. Other labels are rejected.

    Labels are compared by value: integers above 2**53 are not rounded to floats.
    """
    kinds = {y.dtype.kind, classes.dtype.kind}
    # NumPy compares labels with classes as they are, by their public types and the classes alone.
    are_exact = kinds <= set("biuf") and bool((np.abs(classes.astype(np.float64)) < 2.0**53).all())
    if kinds in ({"U"}, {"f"}) or are_exact:
        # A label beyond the last class gets the last position, and fails the comparison.
        codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
        codes = np.where(classes[codes] == y, codes, -1)
    else:
        found = map(
            {label: k for k, label in enumerate(classes.tolist())}.get, y.ravel().tolist(), itertools.repeat(-1)
        )
        codes = np.fromiter(found, np.int64, y.size).reshape(y.shape)
    if (codes < 0).any():
        remedy = f"Pass all possible classes, with the same type as {name}"
        if classes.dtype.kind in "OU" and y.dtype.kind in "iu":
            remedy += ". VotingClassifier and similar meta-estimators encode y as 0, 1, ...: pass such classes there"
        if is_continuous(y):
            remedy = f"{name} is continuous (numbers with a fractional part): bin it into classes, or use a regressor"
        raise ValueError(f"{name} contains labels that are not in classes={classes.tolist()!r}. {remedy}.")
    return codes


def check_targets(y: Any, n_rows: int) -> np.ndarray:
    """Return the targets of a regressor, one finite number per row."""
    if (n_columns := number_of_columns(y)) > 1:
        raise ValueError(
            f"y should be a 1d array, got shape ({n_rows}, {n_columns}). Fit one model per target with a shared "
            "accountant, each with a fraction of the budget."
        )
    fault, targets = numbers_of(check_labels(y, n_rows, classes=()))
    if fault != NUMBER:
        reject(fault, "y")
    with np.errstate(all="ignore"):
        targets = targets.astype(np.float64)
    if not all_finite(targets):  # of longdouble
        reject_not_finite("y", nan=False)
    return targets


def check_classes(name: str, classes: Any) -> np.ndarray:
    """Return public `classes`, a sequence of at least two distinct values, as a sorted array."""
    if not isinstance(classes, Iterable) or isinstance(classes, str | bytes):
        raise ValueError(f"`{name}` must be a sequence of all possible classes, got {classes!r}.")
    given = classes.tolist() if isinstance(classes, np.ndarray) else list(classes)
    shown = f"got {' '.join(repr(given).split())}"
    kinds = set(map(numbers.kind_of_cell, map(type, given)))
    if len(kinds) > 1 or not kinds <= {NUMBER, numbers.STRING}:
        raise ValueError(f"`{name}` must contain only numbers or only strings, {shown}.")
    values = np.asarray(given)
    if values.dtype.kind == "f" and not all_finite(values):
        raise ValueError(f"`{name}` must contain finite numbers, {shown}.")
    if values.dtype.kind == "f" and values.tolist() != given:
        raise ValueError(
            f"`{name}` must not mix floats with integers above 2**53, which would be rounded, {shown}. Pass strings."
        )
    distinct = np.unique(values)
    if len(distinct) < 2:
        raise ValueError(f"`{name}` must contain at least two classes, {shown}. Pass all possible classes.")
    if len(distinct) < len(given):
        raise ValueError(f"`{name}` must not contain duplicates, {shown}.")
    return distinct


def table_shape(X: Any) -> tuple[int, int]:
    """Return the number of rows and columns of a table of any kind."""
    shape = numbers.shape_of("X", X)
    if len(shape) == 0:
        raise TypeError(f"X must be a table with rows and columns, got {type(X).__name__}.")
    return int(shape[0]), int(shape[1]) if len(shape) > 1 else 1


def number_of_columns(y: Any) -> int:
    """Return the number of labels per row, from the shape only."""
    shape = numbers.shape_of("y", y)
    return int(shape[1]) if len(shape) == 2 else 1


class NormedRows(np.ndarray):
    """View of rows with a bounded norm or a public schema. Results computed from it are plain arrays."""

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
    """Return rows that carry a bound on their norm: a view of an array, a sparse matrix; other rows unchanged."""
    if norm is None:
        return rows
    if sp.issparse(rows):
        rows._row_norm = float(norm)
    elif isinstance(rows, np.ndarray):
        rows = rows.view(NormedRows)
        rows._row_norm, rows._row_indicators = float(norm), indicators
    return rows


def row_norm_of(rows: Any) -> float | None:
    """Return the bound that rows carry, or None."""
    if not sp.issparse(rows) and not isinstance(rows, NormedRows):
        return None
    norm = getattr(rows, "_row_norm", None)
    return norm if isinstance(norm, float) and 1e-30 <= norm <= 1e30 else None


def row_indicators_of(rows: Any) -> Any:
    """Return the public weights of the indicator columns of an array, 0 for other columns; None if it carries none.

    A row has one 1 among the indicators of each of the k columns of the table, with weight 1 / sqrt(k).
    """
    return rows._row_indicators if isinstance(rows, NormedRows) else None


def with_row_form(rows: Any, form: Any) -> Any:
    """Return sparse rows with their public pattern: a `skdp._dpsgd.models.one_hot.OneHotForm`."""
    rows._row_form = form
    return rows


def row_form_of(rows: Any) -> Any:
    """Return the form that sparse rows carry, or None."""
    return getattr(rows, "_row_form", None) if sp.issparse(rows) else None


def with_row_schema(rows: np.ndarray, schema: Any, names: Sequence[str] = ()) -> Any:
    """Return a view of an array that carries the public `TableSchema` of its columns, if that is not None.

    The columns are named x0, x1, and so on; `names` are their original names.
    """
    if schema is None:
        return rows
    made = rows.view(NormedRows)
    made._row_schema, made._row_names = schema, tuple(names)
    return made


def row_schema_of(rows: Any) -> Any:
    """Return the schema that rows carry, or None."""
    return rows._row_schema if isinstance(rows, NormedRows) else None


def row_names_of(rows: Any) -> tuple[str, ...]:
    """Return the original column names of rows with a schema, or an empty tuple."""
    return rows._row_names if isinstance(rows, NormedRows) else ()


def forget_row_norm(rows: Any) -> None:
    """Remove norm, indicators, schema and names from rows that are modified."""
    if isinstance(rows, NormedRows):
        rows._row_norm, rows._row_indicators, rows._row_schema, rows._row_names = None, None, None, ()


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, NormedRows) else value


def indexable(X: Any) -> Any:
    """Return a table or column whose rows can be selected by number. A list stays a list."""
    X = in_memory(X)
    if hasattr(X, "tocsr"):
        return X.tocsr()
    if hasattr(X, "shape") or type(X).__module__.startswith("pyarrow"):
        return X
    return np.asarray(X) if hasattr(X, "__array__") else list(X)


def take_rows(X: Any, rows: np.ndarray) -> Any:
    """Return some rows of an `indexable` table, with the public facts that all rows carry.

    For an empty selection of a list, the columns are kept by an array.
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
