"""Made-up rows with the columns and types of a table, on which `skdp.row_wise` tests a function.

They contain what common mistakes react to: gaps in every column whose type can hold one, negative and extreme numbers,
and codes that represent a missing value. Only the kind and the types of the table are used, never a row.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

N_ROWS = 16
CODES = (-99999, -9999, -999, -99, -9, -1, 0, 99, 999, 9999, 99999)
WORD_CODES = ("", "?", "NA", "nan", "None", "unknown")
DAY_CODES = ("1900-01-01", "1970-01-01", "2099-12-31")  # within the range of nanoseconds
_WORDS = ("a", "b", "Ab c", "7", "x@y.org", "2001-01-01")

Draw = Callable[[np.random.Generator, tuple[int, ...]], NDArray[np.float64]]


def made_up(like: Any) -> Iterator[Any]:
    """Generate tables of made-up rows: tame ones first, then signed ones, codes, gaps, and extremes with gaps.

    Parameters
    ----------
    like : table
        Array, sparse matrix, frame or column of pandas or polars, or list. Only its kind is used.

    Yields
    ------
    table
        Table of `N_ROWS` rows. Nothing is generated for a type that is not known.
    """
    for text in (True, False):  # columns of objects may hold either
        for values in (_draw_tame, _draw_signed, _draw_coded, _draw_gapped, _draw_wild):
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
        made = _table(like.to_frame(), values)
        return made.iloc[:, 0] if hasattr(made, "iloc") else made.to_series()
    if hasattr(like, "iloc"):
        return _pandas_table(like, values)
    if hasattr(like, "get_columns"):
        return _polars_table(like, values)
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


def _polars_table(like: Any, values: Callable[[Any, tuple[int, ...]], Any]) -> Any:
    import polars as pl

    columns = []
    for name, kind in like.schema.items():
        drawn = values(kind, (N_ROWS,))
        column = drawn.astype(f"{drawn.dtype.kind}8[us]") if drawn.dtype.kind in "mM" else drawn.tolist()
        columns.append(pl.Series(name, column).cast(kind))
    return pl.DataFrame(columns)


# --- values of a column's type ---


def _draw_tame(rng: np.random.Generator, text: bool, dtype: Any, shape: tuple[int, ...]) -> Any:
    """Positive numbers, words, days; no gaps."""
    return _values(_positive, rng, text, dtype, shape)


def _draw_signed(rng: np.random.Generator, text: bool, dtype: Any, shape: tuple[int, ...]) -> Any:
    """Numbers around zero, with few decimals."""
    return _values(_around_zero, rng, text, dtype, shape)


def _draw_coded(rng: np.random.Generator, text: bool, dtype: Any, shape: tuple[int, ...]) -> Any:
    """Tame values, with every code for a missing value once in each column, clipped to the range of its type."""
    drawn = _draw_tame(rng, text, dtype, shape)
    kind = "" if _is_listed(dtype) else _kind(dtype)
    if kind in ("", "b"):
        return drawn
    codes: NDArray[Any] = np.array(CODES)
    if kind in "Mm":
        codes = np.array(DAY_CODES, "M8[s]") if kind == "M" else codes.astype("m8[s]")
    elif kind == "t" or (kind == "O" and text):
        codes = np.array(WORD_CODES, dtype=object)
    elif kind in "iu":
        codes = np.unique(np.clip(codes, *_narrow_limits(dtype)))
    return _scatter(rng, drawn, codes)


def _draw_gapped(rng: np.random.Generator, text: bool, dtype: Any, shape: tuple[int, ...]) -> Any:
    """Tame values with gaps, if the type can hold them: the first row, and some others."""
    return _add_gaps(rng, dtype, _draw_tame(rng, text, dtype, shape))


def _draw_wild(rng: np.random.Generator, text: bool, dtype: Any, shape: tuple[int, ...]) -> Any:
    """Extreme values, a row of gaps, and a row of zeros."""
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


def _positive(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    return rng.uniform(0.01, 1.0, shape)


def _around_zero(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    return np.round(rng.normal(0.0, 30.0, shape), rng.integers(0, 3))


def _scatter(rng: np.random.Generator, drawn: Any, codes: NDArray[Any]) -> Any:
    """Place each code in a row of its own, with different rows in each column."""
    columns = drawn.reshape(len(drawn), -1)
    for column in range(columns.shape[1]):
        columns[rng.permutation(len(drawn))[: len(codes)], column] = codes
    return columns.reshape(drawn.shape)


def _add_gaps(rng: np.random.Generator, dtype: Any, drawn: Any, share: float = 0.3) -> Any:
    """Replace a share of the values, and the whole first row, by gaps."""
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
    """Return NumPy's integer type for an integer type of NumPy, pandas or polars."""
    return dtype if isinstance(dtype, np.dtype) else np.dtype(str(dtype).lower().partition("[")[0])


def _limits(dtype: Any) -> tuple[int, int]:
    limits = np.iinfo(_numpy_type(dtype))
    return int(limits.min), int(limits.max)


def _narrow_limits(dtype: Any) -> tuple[int, int]:
    """Return these limits, clipped to a range in which int64 arithmetic does not overflow."""
    low, high = _limits(dtype)
    return max(low, -(2**62)), min(high, 2**62)


def _kind(dtype: Any) -> str:
    """Return the kind of a type of NumPy, pandas or polars; "t" for text."""
    kind = getattr(dtype, "kind", None)
    name = str(dtype).lower()
    if isinstance(kind, str) and not name.startswith("str"):
        return "t" if kind in "US" else kind
    starts = {"str": "t", "utf8": "t", "categorical": "t", "bool": "b", "int": "i", "uint": "i", "float": "f",
              "date": "M", "duration": "m", "object": "O"}  # fmt: skip
    found = next((made for start, made in starts.items() if name.startswith(start)), None)
    if found is None:
        raise TypeError(name)
    return found
