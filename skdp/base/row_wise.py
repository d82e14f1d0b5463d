"""Functions that transform rows one by one, and their test on simulated rows.

The simulated rows have the columns and types of a table. They contain missing values in every column whose type allows
them, negative and extreme numbers, and codes that represent a missing value. Only the kind and the types of the table
are used, never a row.
"""

from __future__ import annotations

import copy
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
from narwhals.stable.v2.dependencies import is_into_dataframe, is_pyarrow_table
from scipy import sparse

from skdp._checks.frames import column_of, letter_of, library_of, new_frame, types_of
from skdp._checks.leaks import silence
from skdp._checks.numbers import decoded
from skdp._checks.rows import indexable, take_rows

_REMEDY = "Transform the rows one by one, or move the function out of the private pipeline"


class RowWiseError(ValueError):
    """A function is not row-wise, or this cannot be tested. The message contains no row."""


class RowWise:
    """Function that is declared to transform rows one by one. Created by `row_wise`."""

    __wrapped__: Callable[..., Any]

    def __init__(self, function: Callable[..., Any], example: Any = None) -> None:
        functools.update_wrapper(self, function)
        self.example = example
        self._passed: set[Any] = set()

    def __call__(self, rows: Any, /, **keywords: Any) -> Any:
        """Call the function, after testing it on simulated rows with these columns and types."""
        schema = _schema(rows)
        if keywords or schema not in self._passed:
            check_row_wise(self, rows, keywords)
            self._passed.add(schema)
        made = self.__wrapped__(rows, **keywords)
        if _count(made) != _count(rows):
            raise RowWiseError(f"{_name(self)} changes the number of rows. {_REMEDY}.")
        if not _keeps_index(rows, made):  # a union of frames would join different rows
            raise RowWiseError(
                f"{_name(self)} changes the index, by which data frames are joined. Keep the index unchanged."
            )
        return made

    def __deepcopy__(self, memo: Any) -> Self:
        return self  # nothing in it changes; scikit-learn's clone copies parameters

    def __reduce__(self) -> Any:
        name = vars(self).get("__qualname__", "")  # ufuncs have none before numpy 2
        found: Any = sys.modules.get(self.__module__)
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is self:  # a decorated function is pickled by name, like plain functions
            return name
        return RowWise, (self.__wrapped__, self.example)

    def __repr__(self) -> str:
        return f"row_wise({_name(self)})"


def row_wise(f: Callable[..., Any], example: Any = None) -> RowWise:
    """Mark a function that transforms rows one by one, for a ``FunctionTransformer`` before a private step.

    The guarantee of a pipeline holds only if no stateless step mixes rows. For example, ``lambda X: X - X.mean(0)``
    changes every row if one row changes. The marked function is tested on simulated rows with missing values, extreme
    values and codes such as -999: alone, in blocks, in another order, and next to other rows. The test detects
    mistakes, but it cannot prove that the function is row-wise.

    Parameters
    ----------
    f : callable
        Function of a table, and of keyword arguments. It returns the same number of rows in the same order.
    example : table or None, default=None
        Public table of at least two rows on which `f` is tested. None uses simulated rows with the columns and types of
        the input. Required if `f` fails on simulated rows.

    Returns
    -------
    RowWise
        Callable with the signature of `f`. It can be pickled and cloned if `f` can. The first call with new column
        types tests `f`; every call checks the number of rows and the index of a pandas data frame.

    Raises
    ------
    TypeError
        `f` is not callable.
    ValueError
        Raised by the call: `f` reads more than one row, changes the number of rows, their index or its input, or
        requires `example`.

    See Also
    --------
    check_pipeline : Find private data that a composition reads without accounting for it.

    Examples
    --------
    >>> import numpy as np
    >>> import skdp
    >>> half = skdp.row_wise(lambda X: X / 2)
    >>> half(np.array([[1.0, 2.0]]))
    array([[0.5, 1. ]])
    >>> try:
    ...     skdp.row_wise(lambda X: X - X.mean(axis=0))(np.ones((3, 2)))
    ... except ValueError as error:
    ...     print(str(error)[:33])
    <lambda> reads more than one row,
    """
    if not callable(f):
        raise TypeError(f"`f` must be a function of a table, got {f!r}.")
    return RowWise(f, example)


def check_row_wise(marked: RowWise, like: Any, keywords: dict[str, Any] | None = None) -> None:
    """Test a function on simulated rows, and reject it if it does not transform them one by one.

    Parameters
    ----------
    marked : RowWise
        Function to test.
    like : table
        Table of which only the kind, columns and types are used, never the rows.
    keywords : dict or None
        Keyword arguments of the function.

    Raises
    ------
    ValueError
        The function reads more than one row, changes their number or modifies its input; or it requires ``example=``.
    """
    tested = False
    with silence(), np.errstate(all="ignore"):
        tables = [marked.example] if marked.example is not None else list(made_up(like))
        run = functools.partial(marked.__wrapped__, **(keywords or {}))
        for table in tables:
            given = copy.deepcopy(table)
            try:
                whole = run(given)
            except Exception:  # some functions reject missing values, or text
                continue
            tested = True
            if not (_same(table, given) and _keeps_index(table, given)):
                raise RowWiseError(f"{_name(marked)} modifies its input in place. Modify a copy instead.")
            _compare(marked, run, table, whole)
    if not tested:
        raise RowWiseError(
            f"{_name(marked)} failed on simulated rows. Pass skdp.row_wise(f, example=...) a public table of at least "
            "two rows on which the function works."
        )


def _compare(marked: RowWise, run: Callable[[Any], Any], table: Any, whole: Any) -> None:
    """Compare the output for the whole table with that for single rows, blocks, another order and repeated rows."""
    n = _count(table)
    if n < 2:
        raise RowWiseError(f"`example` must be a public table of at least two rows, got {marked.example!r}.")
    if _count(whole) != n:
        raise RowWiseError(f"{_name(marked)} changes the number of rows. {_REMEDY}.")
    order = np.random.default_rng(1).permutation(n)
    blocks = [np.array([row]) for row in range(min(n, 50))]
    blocks += [np.arange(n // 3), np.arange(n // 3, n), order, np.arange(n)[::2], np.repeat(np.arange(n), 2)]
    for rows in filter(len, blocks):
        try:
            part = run(copy.deepcopy(_take(table, rows)))
        except Exception:
            part = None
        expected = _take(whole, rows)
        if part is not None and _types(expected) != _types(part):
            raise RowWiseError(
                f"{_name(marked)} reads more than one row: the type of its output depends on other rows, for example "
                "on a missing value. Fix the type, for example with .astype(float)."
            )
        if part is None or not _same(expected, part):
            raise RowWiseError(f"{_name(marked)} reads more than one row, or is random. {_REMEDY}.")


# --- tables of any kind ---


def _name(marked: RowWise) -> str:
    return str(getattr(marked, "__name__", type(marked.__wrapped__).__name__))


def _count(table: Any) -> int:
    shape = getattr(table, "shape", None)
    return int(shape[0]) if shape else len(table)


def _keeps_index(rows: Any, made: Any) -> bool:
    """Whether a frame of pandas has the index of `rows`, or 0, 1, ... if these have none."""
    if not hasattr(made, "iloc"):
        return True
    if hasattr(rows, "iloc"):
        return bool(made.index.equals(rows.index))
    return bool(np.array_equal(np.asarray(made.index), np.arange(_count(rows))))


def _columns(table: Any) -> list[str] | None:
    names = table.column_names if is_pyarrow_table(table) else getattr(table, "columns", None)
    return None if names is None else [str(name) for name in names]


def _types(table: Any) -> list[str]:
    return [repr(each) for each in types_of(table)]


def _schema(table: Any) -> Any:
    return type(table), getattr(table, "shape", ())[1:], tuple(_types(table)), tuple(_columns(table) or ())


def _take(table: Any, rows: np.ndarray) -> Any:
    taken = take_rows(indexable(table), rows)
    return taken.asformat(table.format) if sparse.issparse(table) else taken


def _same(expected: Any, found: Any) -> bool:
    """Whether two tables are equal, up to the rounding of sums in another order."""
    if type(expected) is not type(found) or _columns(expected) != _columns(found) or _count(expected) != _count(found):
        return False
    if _columns(expected) is not None:
        pairs = ([np.asarray(decoded(column_of(each, j))) for each in (expected, found)] for j in range(found.shape[1]))
        return _types(expected) == _types(found) and all(_same_values(a, b, None) for a, b in pairs)
    a, b = (each.toarray() if sparse.issparse(each) else np.asarray(each) for each in (expected, found))
    return _same_values(a, b, _lengths(a))


def _lengths(values: np.ndarray) -> Any:
    """Return the largest finite magnitude of each row, to which rounding is relative."""
    if values.dtype.kind not in "fc" or values.ndim < 2 or not values.size:
        return None
    size = np.abs(values.reshape(len(values), -1))
    largest = np.where(np.isfinite(size), size, 0).max(axis=1, initial=0)
    return largest.reshape(-1, *[1] * (values.ndim - 1))


def _same_values(a: np.ndarray, b: np.ndarray, scale: Any) -> bool:
    if a.shape != b.shape or a.dtype.kind != b.dtype.kind or (a.dtype != b.dtype and a.dtype.kind not in "US"):
        return False
    if a.dtype.kind in "fc":
        tolerance = np.sqrt(np.finfo(a.dtype).eps)
        with np.errstate(all="ignore"):
            near = np.abs(a - b) <= tolerance * (np.abs(a) if scale is None else scale)
        return bool(np.all(near | (a == b) | (np.isnan(a) & np.isnan(b))))
    if a.dtype.kind == "O":
        return all(x is y or _equal(x, y) for x, y in zip(a.ravel(), b.ravel(), strict=True))
    return bool(np.all((a == b) | ((a != a) & (b != b))))


def _equal(x: Any, y: Any) -> bool:
    if type(x) is not type(y):
        return False
    try:
        return bool(x == y) or bool(x != x and y != y)
    except (TypeError, ValueError):
        return bool(np.array_equal(x, y))


# --- simulated rows with the columns and types of a table, on which `skdp.row_wise` tests a function ---

N_ROWS = 16
CODES = (-99999, -9999, -999, -99, -9, -1, 0, 99, 999, 9999, 99999)
_WORDS = ("a", "b", "Ab c", "7", "x@y.org", "2001-01-01")

Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


def made_up(like: Any) -> Iterator[Any]:
    """Generate tables of simulated rows: moderate values, signed values, codes, missing values, and extremes.

    Parameters
    ----------
    like : table
        Array, sparse matrix, data frame or column of pandas or polars, Arrow table, or list. Only its kind is used.

    Yields
    ------
    table
        Table of `N_ROWS` rows. Nothing is generated for an unknown type.
    """
    for text in (True, False):  # columns of objects may hold either
        signed = functools.partial(_values, _around_zero)
        for values in (_draw_tame, signed, _draw_coded, _draw_gapped, _draw_wild):
            rng = np.random.default_rng(0)
            try:
                with np.errstate(all="ignore"):  # of single precision
                    made = _table(like, functools.partial(values, rng, text))
            except Exception:  # an unknown type, for which each library has errors of its own
                continue
            yield made


# --- tables of any kind ---


def _table(like: Any, values: Callable[[Any, tuple[int, ...]], Any]) -> Any:
    if hasattr(like, "to_frame") and not hasattr(like, "columns"):  # one column
        return column_of(_table(like.to_frame(), values), 0)
    if hasattr(like, "iloc"):
        return _pandas_table(like, values)
    if is_into_dataframe(like):  # of polars or Arrow
        types, columns = dict(zip(_columns(like) or (), types_of(like), strict=True)), {}
        for name, dtype in types.items():
            drawn = values(dtype, (N_ROWS,))
            columns[name] = drawn.astype(f"{drawn.dtype.kind}8[us]") if drawn.dtype.kind in "mM" else drawn.tolist()
        return new_frame(library_of(like), columns, types)
    if sparse.issparse(like):
        drawn = values(like.dtype, (N_ROWS, like.shape[1]))
        drawn[np.random.default_rng(2).random(drawn.shape) < 0.5] = 0
        return type(like)(sparse.csr_array(drawn))
    if isinstance(like, np.ndarray):
        return values(like.dtype, (N_ROWS, *like.shape[1:]))
    return list(values(np.asarray(like).dtype, (N_ROWS, *np.shape(like)[1:])))


def _pandas_table(like: Any, values: Callable[[Any, tuple[int, ...]], Any]) -> Any:
    import pandas as pd

    columns = []
    for dtype in like.dtypes:
        drawn = values(dtype, (N_ROWS,))
        column = pd.Series(drawn, dtype=drawn.dtype)  # without a type, pandas makes NaN of None
        columns.append((column.dt.tz_localize("UTC") if hasattr(dtype, "tz") else column).astype(dtype))
    made = pd.concat(columns, axis=1) if columns else pd.DataFrame(index=range(N_ROWS))
    made.columns = like.columns
    return made


# --- values of a column's type ---


def _draw_tame(rng: np.random.Generator, text: bool, dtype: Any, shape: tuple[int, ...]) -> Any:
    """Positive numbers, words, days; no missing values."""
    return _values(_positive, rng, text, dtype, shape)


def _draw_coded(rng: np.random.Generator, text: bool, dtype: Any, shape: tuple[int, ...]) -> Any:
    """Tame values, with every code for a missing value once in each column, clipped to the range of its type."""
    drawn = _draw_tame(rng, text, dtype, shape)
    kind = "" if _is_listed(dtype) else _kind(dtype)
    if kind in ("", "b"):
        return drawn
    codes: np.ndarray = np.array(CODES)
    if kind in "Mm":
        days = np.array(["1900-01-01", "1970-01-01", "2099-12-31"], "M8[s]")  # within the range of nanoseconds
        codes = days if kind == "M" else codes.astype("m8[s]")
    elif kind == "t" or (kind == "O" and text):
        codes = np.array(["", "?", "NA", "nan", "None", "unknown"], dtype=object)
    elif kind in "iu":
        codes = np.unique(np.clip(codes, *_narrow_limits(dtype)))
    # Each code is in a row of its own, in different rows of each column.
    columns = drawn.reshape(len(drawn), -1)
    for column in range(columns.shape[1]):
        columns[rng.permutation(len(drawn))[: len(codes)], column] = codes
    return columns.reshape(drawn.shape)


def _draw_gapped(rng: np.random.Generator, text: bool, dtype: Any, shape: tuple[int, ...]) -> Any:
    """Tame values with missing values, if the type can hold them: the first row, and some others."""
    return _add_gaps(rng, dtype, _draw_tame(rng, text, dtype, shape))


def _draw_wild(rng: np.random.Generator, text: bool, dtype: Any, shape: tuple[int, ...]) -> Any:
    """Extreme values, a row of missing values, and a row of zeros."""
    drawn = _values(_around_zero, rng, text, dtype, shape)
    kind = "" if _is_listed(dtype) else _kind(dtype)
    extremes: tuple[float, ...] = ()
    if kind in ("i", "u"):
        extremes = (0, *_limits(dtype))
    elif kind in ("f", "c") or (kind == "O" and not text):
        extremes = (0.0, np.inf, -np.inf, 1e300, -1e-300)
    for extreme in extremes:
        drawn[rng.random(shape) < 0.08] = extreme
    drawn = _add_gaps(rng, dtype, drawn, share=0.08)
    if extremes and len(drawn) > 1:
        drawn[1] = extremes[0]
    return drawn


def _values(draw: Draw, rng: np.random.Generator, text: bool, dtype: Any, shape: tuple[int, ...]) -> Any:
    if _is_listed(dtype):  # the list of categories belongs to the type
        listed = np.asarray(dtype.categories, dtype=object)
        return listed[rng.integers(len(listed), size=shape)] if len(listed) else np.full(shape, None)
    kind = _kind(dtype)
    if kind == "b":
        return rng.random(shape) < 0.5
    if kind == "M":
        days = np.datetime64("2001-01-01", "s") + rng.integers(0, 10**8, shape).astype("timedelta64[s]")
        return _cast(dtype, days, "M")
    if kind == "m":
        return _cast(dtype, rng.integers(0, 10**6, shape).astype("timedelta64[s]"), "m")
    if kind == "t" or (kind == "O" and text):
        return _cast(dtype, np.array(_WORDS, dtype=object)[rng.integers(len(_WORDS), size=shape)], "US")
    numbers = draw(rng, shape)
    if kind in "iu":
        whole = np.round(numbers * (100 if draw is _positive else 1)).astype(np.int64)
        return np.clip(whole, *_narrow_limits(dtype)).astype(_numpy_type(dtype))
    return _cast(dtype, numbers, "fcO")


def _positive(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.uniform(0.01, 1.0, shape)


def _around_zero(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return np.round(rng.normal(0.0, 30.0, shape), rng.integers(0, 3))


def _add_gaps(rng: np.random.Generator, dtype: Any, drawn: Any, share: float = 0.3) -> Any:
    """Replace a share of the values, and the whole first row, by missing values."""
    gap = _gap(dtype)
    if gap is _NO_GAP:
        return drawn
    made = drawn.astype(object) if gap is None else drawn
    made[rng.random(made.shape) < share] = gap
    if dtype == np.dtype(object):  # pandas takes either for one
        made[rng.random(made.shape) < share / 2] = np.nan
    made[0] = gap
    return made


_NO_GAP = object()


def _gap(dtype: Any) -> Any:
    """Return the missing value of a column of this type, or `_NO_GAP` if it cannot hold one."""
    if _is_listed(dtype):
        return None
    kind = _kind(dtype)
    if kind in "Mm":
        return np.datetime64("NaT") if kind == "M" else np.timedelta64("NaT")
    if isinstance(dtype, np.dtype):
        return {"f": np.nan, "c": np.nan, "O": None}.get(kind, _NO_GAP)
    return None


def _is_listed(dtype: Any) -> bool:
    return hasattr(getattr(dtype, "categories", None), "__len__")


def _cast(dtype: Any, drawn: Any, kinds: str) -> Any:
    return drawn.astype(dtype) if isinstance(dtype, np.dtype) and dtype.kind in kinds else drawn


def _numpy_type(dtype: Any) -> Any:
    """Return NumPy's integer type for an integer type of any library."""
    return dtype if isinstance(dtype, np.dtype) else np.dtype(str(dtype).lower().partition("[")[0])


def _limits(dtype: Any) -> tuple[int, int]:
    limits = np.iinfo(_numpy_type(dtype))
    return int(limits.min), int(limits.max)


def _narrow_limits(dtype: Any) -> tuple[int, int]:
    """Return these limits, clipped to a range in which int64 arithmetic does not overflow."""
    low, high = _limits(dtype)
    return max(low, -(2**62)), min(high, 2**62)


def _kind(dtype: Any) -> str:
    """Return the letter of a type; "t" for text."""
    is_text = str(dtype).lower().startswith(("str", "large_str", "utf8", "categorical", "dictionary"))
    return "t" if is_text or letter_of(dtype) in "US" else letter_of(dtype)
