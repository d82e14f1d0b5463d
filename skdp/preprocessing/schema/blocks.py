"""Encoding of one column as a block of features: bins, categories, a scaled number, a missing value.

Each row has a fixed number of nonzero entries in a block: a 1 for its bin, category or missing value, or a scaled
number in [-1, 1], or both. The norm of a row is therefore at most the square root of the number of its entries, with
equality if nothing is scaled. Codes are not encoded: they are numbers or indices of categories, for a step with the
schema.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skdp._checks.numbers import day_text
from skdp._checks.table import CellValues, as_days, as_keys, as_numbers, as_truth
from skdp.preprocessing.schema.column import DATE_PARTS, Column, levels_of_days, read_column

NUMBERS = ("bins", "scale", "both", "codes")
"""Encodings of a number."""

BINS_WORTH = 3.0
"""Rows times epsilon, divided by the squared number of bins, above which a regressor uses bins."""


@dataclass(frozen=True)
class NumberLine:
    """Range of a numeric column: its bounds, its scale and its edges, if they are given.

    Attributes
    ----------
    column : Column
        Complete column, with bounds or categories.
    """

    column: Column

    @property
    def bounds(self) -> tuple[float, float]:
        """Ends of the range."""
        if self.column.kind == "ordinal":
            return 0.0, max(1.0, len(self.column.categories or ()) - 1.0)
        assert self.column.bounds is not None  # a block is made of complete columns
        return self.column.bounds

    @property
    def bent_bounds(self) -> tuple[float, float]:
        """Ends of the range on the scale of the column."""
        low, high = self.bounds
        return float(self.bend(low)), float(self.bend(high))

    def bend(self, values: Any) -> Any:
        """Transform numbers to the scale of the column."""
        return np.sign(values) * np.log1p(np.abs(values)) if self.column.scale == "log" else np.asarray(values)

    def unbend(self, values: Any) -> Any:
        """Invert `bend`."""
        return np.sign(values) * np.expm1(np.abs(values)) if self.column.scale == "log" else values

    def scaled(self, values: np.ndarray) -> np.ndarray:
        """Numbers between the bounds as numbers in [-1, 1]; NaN for NaN."""
        first, last = self.bent_bounds
        bent = self.bend(np.clip(values, *self.bounds))
        width = (last - first) or 1.0  # logarithms of large bounds may be equal
        return np.clip((bent - first) / width * 2.0 - 1.0, -1.0, 1.0)

    def unscaled(self, scaled: np.ndarray) -> np.ndarray:
        """Invert `scaled`, within the bounds."""
        first, last = self.bent_bounds
        return np.clip(self.unbend(first + (np.clip(scaled, -1.0, 1.0) + 1.0) / 2.0 * (last - first)), *self.bounds)

    def at(self, share: np.ndarray) -> np.ndarray:
        """Return the numbers at these fractions, from 0 to 1, of the range: by bins if edges are given."""
        if self.column.edges is not None:
            return np.interp(share, np.linspace(0.0, 1.0, len(self.column.edges)), self.column.edges)
        return self.unscaled(2.0 * share - 1.0)

    def share_at(self, values: np.ndarray) -> np.ndarray:
        """Return the fractions of the range, from 0 to 1, of these numbers: the inverse of `at`."""
        if self.column.edges is not None:
            return np.interp(values, self.column.edges, np.linspace(0.0, 1.0, len(self.column.edges)))
        return (self.scaled(values) + 1.0) / 2.0


@dataclass(frozen=True)
class Block:
    """Encoding of one column.

    Attributes
    ----------
    name : str
    position : int
        Position of the column in the table.
    column : Column
        Complete column, with bounds or categories.
    numbers : {"bins", "scale", "both", "codes"}
    n_bins : int
        Number of bins of a number without edges.
    part : str
        Part of a date whose levels these are; "" for the column itself.
    date : Column or None
        That date.
    """

    name: str
    position: int
    column: Column
    numbers: str
    n_bins: int
    part: str = ""
    date: Column | None = None

    @property
    def is_line(self) -> bool:
        """Whether cells are numbers or dates instead of categories."""
        return self.column.kind in ("number", "date")

    @property
    def _has_levels(self) -> bool:
        return self.numbers != "scale" or self.column.kind in ("category", "flag")

    @property
    def _is_scaled(self) -> bool:
        return self.numbers in ("scale", "both") and (self.is_line or self.column.kind == "ordinal")

    @property
    def line(self) -> NumberLine:
        """Range of numbers and dates, and of the levels of an ordinal column."""
        return NumberLine(self.column)

    @property
    def n_listed(self) -> int:
        """Number of listed levels: categories, or false and true. "other" (not of a flag) and "missing" follow."""
        return 2 if self.column.kind == "flag" else len(self.column.categories or ())

    @property
    def n_entries(self) -> int:
        """Number of nonzero entries of a row in this block."""
        return 1 if self.numbers == "codes" else int(self._has_levels) + int(self._is_scaled)

    @property
    def width(self) -> int:
        """Number of columns of this block."""
        return len(self.feature_names())

    def feature_names(self) -> list[str]:
        """Names of the columns of this block."""
        if self.numbers == "codes":
            return [self.name]
        names = [f"{self.name}={level}" for level in self._level_names()]
        if not self._is_scaled:
            return names
        return [*names, self.name] if self._has_levels else [self.name, *names]

    def _level_names(self) -> list[str]:
        """Names of the levels; where there is none but a scaled number, of those that have no number."""
        column = self.column
        if self.is_line:
            if not self._has_levels:
                return ["missing"]
            ends = [day_text(end) if column.kind == "date" else f"{end:.6g}" for end in self.edges().tolist()]
            return [*(f"{low}..{high}" for low, high in itertools.pairwise(ends)), "missing"]
        if column.kind == "flag":
            return ["false", "true", "missing"]
        return [*((column.categories or ()) if self._has_levels else ()), "other", "missing"]

    # --- numbers and dates ---

    def edges(self) -> np.ndarray:
        """Ends of the bins of a number or a date, of shape (n_bins + 1,)."""
        if self.column.edges is not None:
            return np.array(self.column.edges)
        edges = self.line.unbend(np.linspace(*self.line.bent_bounds, self.n_bins + 1))
        edges[0], edges[-1] = self.line.bounds
        return edges

    def finer(self, parts: int) -> Block:
        """Return a finer block of a column with edges, with each bin split into parts of equal width."""
        edges = np.array(self.column.edges)
        places = np.arange(parts * (len(edges) - 1) + 1) / parts
        cut = np.unique(np.interp(places, np.arange(len(edges)), edges))  # bins may be as narrow as doubles are
        return replace(self, column=replace(self.column, edges=tuple(cut.tolist())))

    # --- cells to entries ---

    def codes(self, cells: CellValues) -> np.ndarray:
        """Return one code per row: a number or days, NaN if missing; or the level as an int32, the last if missing."""
        if self.date is not None:
            return levels_of_days(self.part, read_line(cells, self.date))
        if self.is_line:
            return read_line(cells, self.column)
        if self.column.kind == "flag":
            truth = as_truth(cells, self.column.missing_values)
            return np.where(truth < 0, 2, truth).astype(np.int32)
        codes, keys = as_keys(cells, self.column.missing_values)
        known = {key: level for level, key in enumerate(self.column.categories or ())}
        n = len(known)  # "other", and n + 1 is "missing"
        return np.array([*(known.get(key, n) for key in keys), n + 1], np.int32)[codes]

    def entries(self, codes: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        """Generate the entries of each row: columns within the block, ascending, and values (None: all are 1)."""
        return self._entries_of_line(codes) if self.is_line else self._entries_of_levels(codes)

    def _entries_of_line(self, values: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        missing = np.isnan(values)
        if self._has_levels:
            inner = self.edges()[1:-1]
            levels = np.searchsorted(inner, values, side="right").astype(np.int32)
            levels[missing] = len(inner) + 1
            yield levels, None
        if self._is_scaled:
            scaled = np.where(missing, 0.0 if self._has_levels else 1.0, self.line.scaled(values))
            yield self._places_of_scaled(missing.astype(np.int32)), scaled

    def _entries_of_levels(self, levels: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        n = self.n_listed
        if self._has_levels:
            yield levels, None
        if self._is_scaled:
            without = np.maximum(levels - (n - 1), 0).astype(np.int32)  # 1 for "other", 2 for "missing"
            empty = 0.0 if self._has_levels else 1.0
            yield (
                self._places_of_scaled(without),
                np.where(without > 0, empty, self.line.scaled(levels.astype(np.float64))),
            )

    # --- codes as numbers ---

    def as_doubles(self, codes: np.ndarray) -> np.ndarray:
        """Return codes as floats: a number or days, or the index of a level, NaN if missing."""
        return codes if self.is_line else np.where(codes == len(self._level_names()) - 1, np.nan, codes)

    def coded_column(self) -> Column:
        """Return the public description of these codes. Unlisted categories ("other") keep their level."""
        if self.is_line:
            return replace(self.column, kind="number", missing_values=(), form="", features=())
        listed = None if self.column.kind == "flag" else tuple(map(str, range(self.n_listed)))
        return replace(self.column, categories=listed, missing_values=(), other=None)

    def _places_of_scaled(self, without: np.ndarray) -> np.ndarray:
        """Column of the scaled number, which stands last behind levels, or first; then that of what has no number."""
        return np.full(len(without), self.width - 1, np.int32) if self._has_levels else without

    # --- and back ---

    def cells_of(self, rows: np.ndarray) -> np.ndarray:
        """Return the most likely cells for rows of this block, of shape (n, width); None if missing."""
        if self.is_line:
            return self._cells_of_line(rows)
        names = self._level_names()
        if self.numbers == "codes":
            rows = np.nan_to_num(rows, nan=len(names) - 1.0) == np.arange(len(names))
        levels = rows.argmax(axis=1)
        if self._has_levels:
            kept: list[Any] = [False, True, None] if self.column.kind == "flag" else [*names[:-1], None]
            return np.array(kept, dtype=object)[levels]
        listed = np.array([*(self.column.categories or ()), "other", None], dtype=object)
        ranks = np.rint(self.line.unscaled(rows[:, 0])).astype(np.int64)
        without = rows[:, 1:].argmax(axis=1) + len(listed) - 2
        return listed[np.where(rows[:, 1:].max(axis=1) > 0.5, without, ranks)]

    def _cells_of_line(self, rows: np.ndarray) -> np.ndarray:
        if self.numbers == "codes":
            values = rows[:, 0].copy()
            missing = np.isnan(values)
        elif self._is_scaled:
            values = self.line.unscaled(rows[:, -1] if self._has_levels else rows[:, 0])
            missing = rows[:, -2 if self._has_levels else 1] > 0.5
        else:
            bent = self.line.bend(self.edges())
            middles = np.append(self.line.unbend((bent[1:] + bent[:-1]) / 2.0), np.nan)
            values = middles[rows.argmax(axis=1)]
            missing = np.isnan(values)
        made = values.astype(object)
        if self.column.kind == "date":
            made[~missing] = [day_text(day) for day in values[~missing].tolist()]
        made[missing] = None
        return made


def date_parts_of(block: Block) -> list[Block]:
    """Return a block for each part of a date that the schema requests."""
    column = block.column
    return [
        replace(block, name=f"{block.name}_{part}", column=Column("category", categories=DATE_PARTS[part]), part=part,
                date=column)
        for part in column.features
    ]  # fmt: skip


def read_line(cells: CellValues, column: Column) -> np.ndarray:
    """Read the cells of a numeric column, or of dates as days; NaN if missing."""
    return (
        as_days(cells, column.missing_values, column.form)
        if column.kind == "date"
        else as_numbers(cells, column.missing_values)
    )


def numbers_by_rule(columns: Iterable[Column], n_bins: int, n_public: int, epsilon: float) -> str:
    """Return "both" if rows and budget suffice for a regressor to learn from bins too, otherwise "scale".

    Bins can represent curves. Their number enters squared, because the second moments of all columns are noisy. The
    constant was chosen on 80% of California housing, wine quality, elevators and Fulton.

    Parameters
    ----------
    columns : iterable of Column
        Complete columns.
    n_bins : int
        Number of bins of a number without edges.
    n_public : int
        Public number of rows.
    epsilon : float
        Epsilon of the whole pipeline.

    Returns
    -------
    str
    """
    blocks = [Block("", 0, column, "both", n_bins) for column in columns if column.kind != "drop"]
    total = sum(block.width - replace(block, numbers="scale").width for block in blocks)
    return "both" if n_public * epsilon >= BINS_WORTH * total**2 else "scale"


def row_norm(blocks: list[Block]) -> float:
    """Return the bound on the norm of rows of these blocks: the square root of the number of their entries.

    In each block, a row has one entry 1, or one entry in [-1, 1], or (for ``"both"``) one of each. Codes are unbounded.
    """
    if any(block.numbers == "codes" for block in blocks):
        return math.inf
    return math.sqrt(sum(block.n_entries for block in blocks))


def unique_names(names: list[str]) -> list[str]:
    """Return unique names: repeated names get a number."""
    seen: set[str] = set()
    made = []
    for name in names:
        number, found = 2, name
        while found in seen:
            found, number = f"{name}_{number}", number + 1
        seen.add(found)
        made.append(found)
    return made


@dataclass(frozen=True)
class Combination:
    """Conditions on two or more columns that no row satisfies jointly.

    Attributes
    ----------
    conditions : tuple of (str, tuple)
        Column names, each with the keys of its categories, or with a range (low, high) of numbers or days.
    """

    conditions: tuple[tuple[str, tuple[Any, ...]], ...]

    def describe(self, columns: Mapping[str, Column]) -> dict[str, list[Any]]:
        """Return the conditions as JSON can hold them."""
        return {
            name: [day_text(end) for end in ends] if columns[name].kind == "date" else list(ends)
            for name, ends in self.conditions
        }


def read_combinations(given: Any, columns: Mapping[str, Column]) -> tuple[Combination, ...]:
    """Return the combinations from user input, for columns of these names and types."""
    if isinstance(given, Mapping | str) or not hasattr(given, "__iter__"):
        raise ValueError("`impossible` must be a list of dicts, such as [{'age': (0, 14), 'job': ['nurse']}].")
    return tuple(_read(each, columns) for each in given)


def combinations_left(given: tuple[Combination, ...], columns: Mapping[str, Column]) -> tuple[Combination, ...]:
    """Return the combinations whose cells still exist after categories were estimated."""
    made = []
    for each in given:
        conditions = tuple((name, _left(condition, columns[name])) for name, condition in each.conditions)
        if all(condition for _, condition in conditions):
            made.append(Combination(conditions))
    return tuple(made)


def _left(condition: tuple[Any, ...], column: Column) -> tuple[Any, ...]:
    if column.kind == "drop":
        return ()
    return condition if column.categories is None else tuple(key for key in condition if key in column.categories)


def _read(given: Any, columns: Mapping[str, Column]) -> Combination:
    if isinstance(given, Combination):
        given = dict(given.conditions)
    if not isinstance(given, Mapping) or len(given) < 2:
        raise ValueError(
            "Each entry of `impossible` must be a dict with at least two columns, such as {'age': (0, 14), 'job': "
            "['nurse']}."
        )
    return Combination(tuple((name, _condition(name, each, columns)) for name, each in given.items()))


def _condition(name: Any, given: Any, columns: Mapping[str, Column]) -> tuple[Any, ...]:
    column = columns.get(name)
    if column is None or column.kind == "drop":
        raise ValueError(f"`impossible` has {name!r}, which is not a column of the schema. Use columns of the schema.")
    if column.kind in ("number", "date"):
        if not isinstance(given, tuple | list) or len(given) != 2:
            raise ValueError(f"`impossible` must have a pair (low, high) for the {column.kind} column {name!r}.")
        days = column.kind == "date" and all(isinstance(end, float | int) for end in given)
        ends = read_column(name, {"kind": "number" if days else column.kind, "bounds": tuple(given)}).bounds
        return ends or (-math.inf, math.inf)
    listed = read_column(name, {"kind": "category", "categories": given}).categories or ()
    known = ("True", "False") if column.kind == "flag" else column.categories
    if known is not None and not set(listed) <= set(known):
        raise ValueError(f"`impossible` has unknown categories of column {name!r}. Use categories of the schema.")
    return listed
