"""Functions that transform rows one by one: the promise, and its test on made-up rows."""

from __future__ import annotations

import copy
import functools
import sys
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skdp._checks.leak_setting import silence
from skdp._guard.rehearsal_rows import made_up

_REMEDY = "write it row by row, or leave it out of the private pipeline"


class RowWiseError(ValueError):
    """A function breaks the promise of `row_wise`, or the promise cannot be tested. The message contains no row."""


class RowWise:
    """Function that is promised to transform rows one by one. Made by `row_wise`."""

    __wrapped__: Callable[..., Any]

    def __init__(self, function: Callable[..., Any], example: Any = None) -> None:
        functools.update_wrapper(self, function)
        self.example = example
        self._passed: set[Any] = set()

    def __call__(self, rows: Any, /, **keywords: Any) -> Any:
        """Call the function, after testing its promise on made-up rows with these columns and types."""
        schema = _schema(rows)
        if keywords or schema not in self._passed:
            check_row_wise(self, rows, keywords)
            self._passed.add(schema)
        made = self.__wrapped__(rows, **keywords)
        if _count(made) != _count(rows):
            raise RowWiseError(f"{_name(self)} changes the number of rows: {_REMEDY}.")
        if not _keeps_index(rows, made):  # a union of frames would join different rows
            raise RowWiseError(f"{_name(self)} changes the index, by which frames are joined: keep it as it was.")
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
    """Mark a function as one that transforms rows one by one, for a ``FunctionTransformer`` before a private step.

    The price of a pipeline holds only if no step mixes rows: ``lambda X: X - X.mean(0)`` changes every row when one row
    changes. The marked function is tested on made-up rows with gaps, extreme values and codes such as -999: alone, in
    blocks, in another order, and next to other rows. The test finds mistakes, not malice. The promise remains yours.

    Parameters
    ----------
    f : callable
        Function of a table, and of keyword arguments. It returns the same number of rows in the same order.
    example : table or None, default=None
        Public table of at least two rows on which `f` is tested. If None, made-up rows with the columns and types of
        the input are used. Required if `f` cannot run on such rows.

    Returns
    -------
    RowWise
        Callable with the signature of `f`. It can be pickled and cloned if `f` can. The first call with new column
        types tests `f`; every call checks the number of rows and the index of a pandas frame.

    Raises
    ------
    TypeError
        `f` is not callable.
    ValueError
        Raised by the call: `f` looks at more than one row, changes the number of rows, their index or its argument, or
        needs `example`.

    See Also
    --------
    check_pipeline : Check that no step of a pipeline reads its rows without paying.

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
    ...     print(str(error)[:40])
    <lambda> looks at more than one row, or
    """
    if not callable(f):
        raise TypeError(f"f={f!r} is not callable: give a function of a table.")
    return RowWise(f, example)


def check_row_wise(marked: RowWise, like: Any, keywords: dict[str, Any] | None = None) -> None:
    """Test a function on made-up rows, and refuse it if it does not transform them one by one.

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
        The function looks at more than one row, changes their number or works in place; or it needs ``example=``.
    """
    tested = False
    with silence(), np.errstate(all="ignore"):
        tables = [marked.example] if marked.example is not None else list(made_up(like))
        run = functools.partial(_run, marked.__wrapped__, keywords or {})
        for table in tables:
            given = copy.deepcopy(table)
            try:
                whole = marked.__wrapped__(given, **(keywords or {}))
            except Exception:  # some functions refuse gaps, or text
                continue
            tested = True
            if not (_same(table, given) and _keeps_index(table, given)):
                raise RowWiseError(f"{_name(marked)} works in place on the rows it is given: change a copy of them.")
            _compare(marked, run, table, whole)
    if not tested:
        raise RowWiseError(
            f"{_name(marked)} cannot be run on made-up rows: give skdp.row_wise(f, example=...) a public table of at "
            "least two rows that it can be run on."
        )


def _compare(marked: RowWise, run: Callable[[Any], Any], table: Any, whole: Any) -> None:
    """Compare the output for the whole table with that for single rows, blocks, another order and repeated rows."""
    n = _count(table)
    if n < 2:
        raise RowWiseError(f"example={marked.example!r} has fewer than two rows: give a public table of several rows.")
    if _count(whole) != n:
        raise RowWiseError(f"{_name(marked)} changes the number of rows: {_REMEDY}.")
    order = np.random.default_rng(1).permutation(n)
    blocks = [np.array([row]) for row in range(min(n, 50))]
    blocks += [np.arange(n // 3), np.arange(n // 3, n), order, np.arange(n)[::2], np.repeat(np.arange(n), 2)]
    for rows in filter(len, blocks):
        try:
            part = run(_take(table, rows))
        except Exception:
            part = None
        expected = _take(whole, rows)
        if part is not None and _types(expected) != _types(part):
            raise RowWiseError(
                f"{_name(marked)} looks at more than one row: what type it gives depends on the others, "
                "on a gap say; fix it, as by .astype(float)."
            )
        if part is None or not _same(expected, part):
            raise RowWiseError(f"{_name(marked)} looks at more than one row, or is random: {_REMEDY}.")


def _run(function: Callable[..., Any], keywords: dict[str, Any], table: Any) -> Any:
    return function(copy.deepcopy(table), **keywords)


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
    return [str(name) for name in table.columns] if hasattr(table, "columns") else None


def _types(table: Any) -> list[str]:
    types: Any = getattr(table, "dtypes", getattr(table, "dtype", None))
    return [repr(each) for each in types] if hasattr(types, "__iter__") else [repr(types)]


def _schema(table: Any) -> Any:
    return type(table), getattr(table, "shape", ())[1:], tuple(_types(table)), tuple(_columns(table) or ())


def _take(table: Any, rows: NDArray[Any]) -> Any:
    if hasattr(table, "iloc"):
        return table.iloc[rows]
    if sparse.issparse(table):
        return table.tocsr()[rows].asformat(table.format)
    return table[rows] if hasattr(table, "shape") else [table[row] for row in rows]


def _same(expected: Any, found: Any) -> bool:
    """Whether two tables are equal, up to the rounding of sums in another order."""
    if type(expected) is not type(found) or _columns(expected) != _columns(found) or _count(expected) != _count(found):
        return False
    if _columns(expected) is not None:
        pairs = zip(_split(expected), _split(found), strict=True)
        return _types(expected) == _types(found) and all(_same_values(a, b, None) for a, b in pairs)
    a, b = (each.toarray() if sparse.issparse(each) else np.asarray(each) for each in (expected, found))
    return _same_values(a, b, _lengths(a))


def _split(table: Any) -> list[NDArray[Any]]:
    if hasattr(table, "iloc"):
        return [np.asarray(table.iloc[:, position]) for position in range(table.shape[1])]
    return [column.to_numpy() for column in table.get_columns()]


def _lengths(values: NDArray[Any]) -> Any:
    """Return the largest finite magnitude of each row, to which rounding is relative."""
    if values.dtype.kind not in "fc" or values.ndim < 2 or not values.size:
        return None
    size = np.abs(values.reshape(len(values), -1))
    largest = np.where(np.isfinite(size), size, 0).max(axis=1, initial=0)
    return largest.reshape(-1, *[1] * (values.ndim - 1))


def _same_values(a: NDArray[Any], b: NDArray[Any], scale: Any) -> bool:
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
