"""Data that are not in memory: how a fit detects them, what is public about them, and how they are read.

A `RowSource` provides the public number of rows and the names and types of the columns, without reading values. A fit
plans with these, is charged, and then passes the source a `BlockRecipe`, which makes a model of a block of rows, or a
sum to which blocks are added. The source decides whether blocks come from a file or from several machines.
"""

from __future__ import annotations

import importlib
import math
import os
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.lib import format as npy

from skdp._checks.numbers import format_names
from skdp._checks.parameters import number_is_private, show
from skdp._checks.rows import check_schema, check_table, read_cells

_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # others may unpack a few bytes to gigabytes at a time
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def read_arrays(path: Path, names: Iterable[str] | None, most_bytes: int) -> list[np.ndarray] | None:
    """Return arrays of an archive, or None if one is missing, damaged, of objects, or larger than it should be.

    Parameters
    ----------
    path : Path
    names : iterable of str or None
        None is all, in their order.
    most_bytes : int
        Largest size of an array and its header, so that a small file does not fill the memory.
    """
    found = []
    try:
        with zipfile.ZipFile(path) as archive:  # and not `np.load`, which also takes what is no archive
            chosen = archive.namelist() if names is None else [f"{name}.npy" for name in names]
            for entry in [archive.getinfo(name) for name in chosen]:
                if entry.file_size > most_bytes or entry.compress_type not in _METHODS:
                    return None
                if entry.compress_size > path.stat().st_size:  # room is made for so many bytes before they are read
                    return None
                with archive.open(entry) as file:
                    found.append(_read_array(file, entry.file_size))
    except Exception:  # a damaged archive raises almost anything
        return None
    return found


def _read_array(file: IO[bytes], size: int) -> np.ndarray:
    """Read an array whose header agrees with its size: NumPy itself makes room for what the header says, and reads."""
    shape, by_columns, dtype = _HEADERS[npy.read_magic(file)](file)
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != size - file.tell():
        raise ValueError("an array of objects, or of another size")
    return np.frombuffer(bytearray(file.read()), dtype).reshape(shape, order="F" if by_columns else "C")


_READERS = {
    "numpy": "skdp._dpsgd.streamed.blocks",
    "pyarrow": "skdp._dpsgd.streamed.arrow",
    "dask": "skdp._dpsgd.dask.dask_rows",
}
"""Modules whose ``source_of_rows(X, columns, y, sample_weight, groups)`` returns a `RowSource`, by the package of X.

They are imported when such rows are seen, so that nothing of pyarrow or Dask is imported otherwise.
"""


_FOLDER_OF_JOBLIB = "joblib_memmapping_folder"
"""In the names of the maps by which joblib sends large arrays to its processes. These are rows in memory as they are
everywhere else: what a fit checks, and when, does not depend on ``n_jobs``."""


class TableRows:
    """Table that is not in memory, and the columns of it that are features.

    Parameters
    ----------
    source : str, path-like, sequence of these, pyarrow.dataset.Dataset, pyarrow.Table or Dask dataframe
        Table, path of a Parquet file or of a folder of such files, or a list of paths of files. The values are private.
        The number of rows and the names and types of the columns are public.
    columns : sequence of str or None, default=None
        Names of the feature columns, in this order. None uses all columns except those that are passed to ``fit`` as
        `y`, `sample_weight` and `groups`, in the order of the table.

    See Also
    --------
    skdp.DPLogisticRegression : Its ``fit`` accepts such rows, with a column name as `y`.

    Notes
    -----
    Before a fit is charged, only metadata and the group identifiers (`groups`) are read.
    """

    def __init__(self, source: Any, columns: Sequence[str] | None = None) -> None:
        self.source = source
        self.columns = columns

    def __repr__(self) -> str:
        return f"TableRows({show(self.source)}, columns={self.columns!r})"


TargetReading = Callable[[Any, Any, int], tuple[Any, Any]]
"""Makes target values and weights of (labels, weights or None, number of rows), or rejects them. It can be pickled."""


@dataclass(frozen=True)
class BlockRecipe:
    """Recipe that makes a model of a block of rows. It can be pickled, and contains nothing secret.

    Parameters
    ----------
    make : callable
        Makes a model of validated (rows, target values, weights), and of the keyword `units` if rows have groups.
    read_targets : TargetReading
    dtype : dtype
        Dtype of the rows.
    names : list of str or None
        Column names for error messages.
    order : {"C", "F"}
        Memory order of the rows for `make`.
    finite : bool
        Whether NaN and infinity are rejected here; otherwise the model rejects them when it reads the rows.
    """

    make: Callable[..., Any]
    read_targets: TargetReading
    dtype: np.dtype[Any]
    names: list[str] | None = None
    order: Literal["C", "F"] = "C"
    finite: bool = True

    def __call__(self, rows: Any, labels: Any, weights: Any = None, units: Any = None) -> Any:
        """Return the model of a block, which is a context manager; reject NaN, infinity and unknown labels.

        Parameters
        ----------
        rows : array-like or frame of shape (m, d)
        labels : array-like of shape (m,)
        weights : array-like of shape (m,) or None
        units : UnitLayout or None
            Order of the rows in the model.
        """
        table = read_cells(rows, self.names, self.dtype, self.order, finite=self.finite)
        values, weights = self.read_targets(labels, weights, len(table))
        weights = cast_weights(weights, self.dtype)
        if units is None:
            return self.make(table, values, weights)
        return self.make(table[units.order], values[units.order], units.in_order(weights), units=units)


class RowSource:
    """Base class of data that are not in memory, with their targets and weights, if any.

    Attributes
    ----------
    n_rows : int or None
        None if it is not known before the rows are read; estimators then require `skdp.AddRemove`.
    n_features : int
    dtype : dtype
        float32 or float64, the dtype of blocks for models.
    names : list of str or None
        Names of the feature columns.
    binds_once : bool
        Whether blocks stay bound for all steps, instead of being read and bound again in each.
    n_units : int or None
        Number of the groups that `find_units` found; None without groups.
    """

    n_rows: int | None
    n_features: int
    dtype: np.dtype[Any]
    names: list[str] | None = None
    binds_once = False
    n_units: int | None = None

    find_units: ClassVar[Callable[[Any], Any]]
    """Reads the labels of units once, before the charge, and keeps which rows are of one unit. It raises ValueError, in
    one line without a label, if there are missing values, or a unit does not lie in one run of rows or one
    partition."""

    bind: ClassVar[Callable[[Any, BlockRecipe, Any], Any]]
    """Takes a recipe and a plan, and returns a context manager that gives the model of all rows, for the steps of a
    `DPSGDPlan`. Called after the charge, like what follows."""

    add_up: ClassVar[Callable[..., Any]]
    """Takes `new_sum`, which can be pickled and makes an empty sum, and returns the sum over all rows.

    It may be given `pool`, threads that share the work of adding up. Blocks of rows are added by its `add`, other such
    sums by `merge`, and `n_rows` counts the rows. With `read_targets`, as of `BlockRecipe`, targets and weights of the
    rows are added with them. Where rows have units, blocks of whole ones are added with the keyword `units`, and `clip`
    clips a sum of all rows of one unit to what a unit may add.
    """

    map_blocks: ClassVar[Callable[[Any, Callable[[Any], np.ndarray]], np.ndarray]]
    """Takes a function of a block of rows, and returns its results one after the other in the order of the rows."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns, 0 for an unknown number of rows."""
        return self.n_rows or 0, self.n_features

    def like(self) -> Any:
        """Return an object with the names and number of columns, for scikit-learn: by default the source itself."""
        return self

    def check_targets(self) -> None:
        """Reject labels and weights whose types, which are public, are not supported."""

    def read_column(self, parameter: str, column: str) -> np.ndarray:
        """Read a single column before the charge: labels, weights, groups or subgroups named by a parameter.

        Missing values are rejected, except in ``by``, where they are subgroups that are not listed.
        """
        raise ValueError(
            f"{parameter}={column!r} is a column name, but these rows have no column names. Pass an array."
        )

    def of_features(self) -> RowSource:
        """Return these rows without labels and weights, which are then not read."""
        return self


class Found(NamedTuple):
    """Data that may not be in memory: their kind, the data, and the selected columns."""

    kind: str
    rows: Any
    columns: Sequence[str] | None


def found_rows(X: Any) -> Found | None:
    """Return data that by their type are not in memory, otherwise None. Nothing is read."""
    if type(X) is np.ndarray:
        return None
    if isinstance(X, TableRows):
        kind = "pyarrow" if isinstance(X.source, str | os.PathLike | list | tuple) else _package(X.source)
        if kind not in ("pyarrow", "dask"):
            raise TypeError(
                "TableRows: `source` must be a path, a pyarrow Dataset or a pyarrow Table, got "
                f"{type(X.source).__name__}."
            )
        return Found(kind, X.source, X.columns)
    kind = _package(X)
    if kind == "dask" or (kind == "pyarrow" and "dataset" in type(X).__module__ + type(X).__name__.lower()):
        return Found(kind, X, None)
    return None


def source_of(X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> RowSource | None:
    """Return the source of data that are not in memory, with their targets and weights; None for all other rows.

    A memory map is a source, and so is a table in memory if `y` is a column name. Only metadata are read.
    """
    found = found_to_fit(X, y)
    return None if found is None else _read(found, found.columns, y, sample_weight, groups)


def source_to_fit(
    X: Any, y: Any, sample_weight: Any, groups: Any, outputs: str, *, are_named: bool, reader: Any
) -> RowSource | None:
    """Return the source of rows with targets, as `source_of` does, or reject data that would have to be read first.

    Parameters
    ----------
    X, y, sample_weight, groups : object
        Arguments of ``fit``.
    outputs : str
        The parameter that sets classes or bounds of targets.
    are_named : bool
        Whether it is set; if not, a memory map is treated like any other array.
    reader : object
        The estimator.

    Raises
    ------
    ValueError
        One-line message, before anything but metadata is read.
    """
    found = found_to_fit(X, y)
    if found is None:
        return None
    if isinstance(X, np.memmap) and (not are_named or getattr(y, "ndim", 1) != 1):
        return None  # an array like any other, of which classes are read, or of several labels a row
    if not are_named:
        raise ValueError(
            f"`{outputs}` must be set for data that are not in memory, because nothing is read before the "
            f"budget is charged. Pass the public {outputs}."
        )
    # Metadata are read; targets are judged by their types.
    source = _read(found, found.columns, y, sample_weight, groups)
    if y is None:
        raise ValueError("`y` must be a column name or an array with one target per row, got None.")
    source.check_targets()
    if source.n_rows is None and not number_is_private(reader):
        raise ValueError(
            "The number of rows is unknown until they are read. Set adjacency=skdp.AddRemove(n_public=...), "
            "with a rounded public number of rows."
        )
    return source


def found_to_fit(X: Any, y: Any = None) -> Found | None:
    """Return rows that are read by a source: those not in memory, maps, and tables with a column named `y`."""
    if isinstance(X, np.memmap) and _FOLDER_OF_JOBLIB not in str(X.filename):
        return Found("numpy", X, None)
    if isinstance(y, str) and _package(X) == "pyarrow":
        return Found("pyarrow", X, None)
    return found_rows(X)


def _read(found: Found, columns: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> RowSource:
    try:
        reader = importlib.import_module(_READERS[found.kind])
    except ImportError:
        raise ImportError(f'Reading these rows requires {found.kind}. Install it with pip install ".[data]".') from None
    return reader.source_of_rows(found.rows, columns, y, sample_weight, groups)


def source_to_predict(X: Any, names: Any, **named: str) -> RowSource | None:
    """Return the source of rows to predict, by default with these columns; None for rows in memory.

    `named` are columns of labels, weights and groups, which are not features.
    """
    found = found_rows(X)
    if found is None:
        return None
    return _read(found, names if found.columns is None else found.columns, **named)


def map_rows(fitted: Any, X: Any, function: Callable[[Any], np.ndarray], **how: Any) -> np.ndarray:
    """Return the results of a function of rows as ``predict`` reads them, by blocks if they are not in memory."""
    source = source_to_predict(X, getattr(fitted, "feature_names_in_", None))
    if source is None:
        return function(check_table(fitted, X, reset=False, **how))
    check_schema(fitted, source.like(), reset=False)
    return source.map_blocks(lambda rows: function(read_cells(rows, source.names)))


def reject_unknown_column(parameter: str, name: str, names: list[str]) -> None:
    """Reject a parameter that does not name a column of data that are not in memory."""
    if name not in names:
        raise ValueError(f"{parameter}={name!r} is not a column of X. Expected one of {format_names(names)}.")


def reject_rows_elsewhere(who: str, X: Any) -> None:
    """Reject data that are not in memory, in one line, if they cannot be read in chunks."""
    if found_rows(X) is not None:
        raise TypeError(
            f"X is a {type(X).__name__}, which is not in memory, and {who} does not support such data. Pass an "
            "array or a data frame, or use a linear model, a neural network or DPPCA."
        )


def after_the_charge(what: str, function: Callable[..., Any], *given: Any) -> Any:
    """Return ``function(*given)``; an error states that the budget was charged, without a chained exception."""
    rejection = ""
    try:
        return function(*given)
    except (TypeError, ValueError) as error:
        rejection = " ".join(str(error).split())
    raise ValueError(f"{what}: {rejection} The budget was already charged for this fit.")


def cast_weights(weights: Any, dtype: Any) -> Any:
    """Cast weights, numbers in [0, 1], to the dtype of the rows."""
    if not isinstance(weights, np.ndarray):
        return weights
    with np.errstate(all="ignore"):  # a floating-point warning would reveal a weight
        return weights.astype(dtype)


def _package(X: Any) -> str:
    """Return the package of the type of X; "dask" for all that is a Dask collection."""
    return "dask" if hasattr(X, "__dask_graph__") else type(X).__module__.partition(".")[0]
