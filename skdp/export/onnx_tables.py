"""Columns of a schema in a graph: `Block` in ONNX."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from skdp._checks.numbers import days_of, key_of, number_of, truth_of
from skdp.export.onnx_graph import OnnxGraph, OnnxRows, RowColumn

_TRUTHS = ("1", "true", "yes", "y", "t", "on", "0", "false", "no", "n", "f", "off")


def codes_of(graph: OnnxGraph, block: Any, column: RowColumn) -> str:
    """Read one number per row, of shape (N, 1): a float64 or NaN; or a level, the last for a missing value."""
    if block.part:
        date = replace(block, column=block.date, part="", date=None)
        return _levels_of_days(graph, block, codes_of(graph, date, column))
    gaps = block.column.missing_values
    if block.is_line:
        if column.is_text:
            raise TypeError(
                f"Column {block.name!r} must be numeric, got strings. Convert it to numbers before the fit."
            )
        read = partial(days_of, form=block.column.form) if block.column.kind == "date" else number_of
        return _without(graph, column.tensor, [read(gap) for gap in gaps])
    if block.column.kind == "flag":
        levels = _levels_of_flag(gaps)
    else:
        levels = {key: level for level, key in enumerate(block.column.categories or ())}
    other, gap = (2, 2) if block.column.kind == "flag" else (block.n_listed, block.n_listed + 1)
    if column.is_text:
        keys = {**levels, **dict.fromkeys((*gaps, ""), gap)}
        return graph.op(
            "LabelEncoder", column.tensor,
            keys_strings=list(keys), values_int64s=list(keys.values()), default_int64=other,
        )  # fmt: skip
    # A flag compares its missing values as numbers, a category as keys, and "01" is the key of no number.
    read_gaps = [number_of(each) for each in gaps if block.column.kind == "flag" or _is_of_number(each)]
    return _levels_of_numbers(graph, column.tensor, levels, read_gaps, other, gap)


def _levels_of_days(graph: OnnxGraph, block: Any, days: str) -> str:
    """Return the month or weekday of days since 1970 as a level.

    Months by whole numbers of the Gregorian calendar (Hinnant 2013, "chrono-compatible low-level date algorithms"):
    eras of 400 years, and years that begin in March.
    """

    def floor(value: str, divisor: float) -> str:
        return graph.op("Floor", graph.op("Div", value, divisor))

    def less(value: str, times: float, whole: str) -> str:
        return graph.op("Sub", value, graph.op("Mul", whole, times))

    missing = graph.op("IsNaN", days)
    day = graph.op("Floor", graph.op("Where", missing, 0.0, days))
    if block.part == "weekday":
        day = graph.op("Add", day, 3.0)
        level = less(day, 7.0, floor(day, 7.0))
    else:
        day = graph.op("Add", day, 719468.0)  # from 0000-03-01 on
        day = less(day, 146097.0, floor(day, 146097.0))
        without = graph.op("Add", less(day, 1.0, floor(day, 1460.0)), floor(day, 36524.0))  # leap days
        year = floor(less(without, 1.0, floor(day, 146096.0)), 365.0)
        day = graph.op("Add", less(less(day, 365.0, year), 1.0, floor(year, 4.0)), floor(year, 100.0))
        month = floor(graph.op("Add", graph.op("Mul", day, 5.0), 2.0), 153.0)  # 0 is March
        is_early = graph.op("Less", month, 10.0)
        level = graph.op("Where", is_early, graph.op("Add", month, 2.0), graph.op("Sub", month, 10.0))
    return graph.op("Where", missing, np.array(block.n_listed + 1), graph.as_whole(level))


def _is_of_number(key: str) -> bool:
    """Whether a number has this key."""
    return key_of(number_of(key)) == key


def _levels_of_flag(gaps: Any) -> dict[str, int]:
    """Return every spelling of true and false, in upper and lower case."""
    cases = (itertools.product(*({letter, letter.upper()} for letter in word)) for word in _TRUTHS)
    words = ("".join(letters) for case in cases for letters in case)
    return {word: truth_of(word) for word in words if word not in gaps}


def _levels_of_numbers(
    graph: OnnxGraph, numbers: str, levels: dict[str, int], gaps: list[float], other: int, gap: int
) -> str:
    """Read categories from numbers: those with the key of a category, which is a string."""
    known = {number_of(key): level for key, level in levels.items() if _is_of_number(key)}
    numbers = _without(graph, numbers, gaps)
    fits = graph.op("Equal", numbers, np.array([*known, math.nan]))  # no number is the last one
    shifts = np.array([*known.values(), other]) - other
    shift = graph.column_sum(graph.op("Where", fits, shifts, np.array(0)), keep=True)
    return graph.op("Where", graph.op("IsNaN", numbers), np.array(gap), graph.op("Add", shift, np.array(other)))


def _without(graph: OnnxGraph, numbers: str, gaps: list[float]) -> str:
    """Return NaN for numbers that represent a missing value."""
    known = [gap for gap in gaps if not math.isnan(gap)]
    if not known:
        return numbers
    hits = graph.column_sum(graph.as_whole(graph.op("Equal", numbers, np.array(known))), keep=True)
    return graph.op("Where", graph.op("Greater", hits, np.array(0)), math.nan, numbers)


# --- codes to columns of numbers ---


def levels_of(graph: OnnxGraph, block: Any, codes: str) -> str:
    """Return the bin or the category of each row, of shape (N, 1): the last one is for missing values."""
    if not block.is_line:
        return codes
    inner = block.edges()[1:-1]
    return graph.op("Where", graph.op("IsNaN", codes), np.array(len(inner) + 1), graph.count_passed(codes, inner))


def as_columns(graph: OnnxGraph, block: Any, codes: str) -> list[str]:
    """Return the columns of a block, tensors of shape (N, some), in their order."""
    if block.numbers == "codes":
        return [_as_doubles(graph, block, codes)]
    has_levels, is_scaled = block._has_levels, block._is_scaled
    if not is_scaled:
        return [graph.one_hot(levels_of(graph, block, codes), block.width)]
    scaled, without = _scaled(graph, block, codes)
    if has_levels:
        return [graph.one_hot(levels_of(graph, block, codes), block.width - 1), scaled]
    places = graph.one_hot(without, block.width)
    rest = graph.op("Slice", places, np.array([1]), np.array([block.width]), np.array([1]))
    return [scaled, rest]


def _scaled(graph: OnnxGraph, block: Any, codes: str) -> tuple[str, str]:
    """Return numbers in [-1, 1], 0 for missing ones; and 0, or from 1 on the index of the reason for a missing one."""
    values, missing = codes, graph.op("IsNaN", codes) if block.is_line else ""
    if block.is_line:
        without = graph.as_whole(missing)
    else:
        last = block.n_listed - 1
        without = graph.op("Max", graph.op("Sub", codes, np.array(last)), np.array(0))
        missing = graph.op("Greater", without, np.array(0))
        values = graph.as_doubles(codes)
    low, high = block.line.bounds
    first, end = block.line.bent_bounds
    bent = _bent(graph, block, graph.between(values, low, high))
    width = (end - first) or 1.0
    shares = graph.op("Div", graph.op("Sub", bent, first), width)
    scaled = graph.between(graph.op("Sub", graph.op("Mul", shares, 2.0), 1.0), -1.0, 1.0)
    return graph.op("Where", missing, 0.0, scaled), without


def _bent(graph: OnnxGraph, block: Any, values: str) -> str:
    """Return the sign times log(1 + |x|) of numbers on a log scale.

    log(1 + x) is computed as x log(u) / (u - 1) with u = 1 + x as rounded, which loses no digits (Higham 2002,
    "Accuracy and stability of numerical algorithms", section 1.14.1).
    """
    if block.column.scale != "log":
        return values
    size = graph.op("Abs", values)
    shifted = graph.op("Add", size, 1.0)
    rest = graph.op("Sub", shifted, 1.0)
    is_small = graph.op("Equal", rest, 0.0)
    exact = graph.op("Div", graph.op("Mul", size, graph.op("Log", shifted)), graph.op("Where", is_small, 1.0, rest))
    return graph.op("Mul", graph.op("Sign", values), graph.op("Where", is_small, size, exact))


def _as_doubles(graph: OnnxGraph, block: Any, codes: str) -> str:
    if block.is_line:
        return codes
    is_gap = graph.op("Equal", codes, np.array(len(block._level_names()) - 1))
    return graph.op("Where", is_gap, math.nan, graph.as_doubles(codes))


_WORD = 64


def plain_levels(graph: OnnxGraph, embedding: Any, rows: OnnxRows) -> tuple[list[str], list[str]]:
    """Return the codes of the columns, and the bins and levels of the plain blocks, each of shape (N, 1)."""
    codes, at = [], {}
    for block in embedding._fitted_blocks:
        codes.append(codes_of(graph, block, rows.column(graph, block.position)))
        at[block.position] = codes[-1]
    return codes, [levels_of(graph, block, at[block.position]) for block in embedding._fitted_plain]


def leaves(graph: OnnxGraph, embedding: Any, codes: list[str]) -> str:
    """Return the leaf of each row in each tree, of shape (N, n_trees), counted from the left from 0 on."""
    nodes = TreeNodes(embedding._fitted_trees, embedding._fitted_blocks)
    pairs = zip(embedding._fitted_blocks, codes, strict=True)
    columns = [code if block.is_line else graph.as_doubles(code) for block, code in pairs]
    tree, number, mode, feature, value, gaps_true, true, false = zip(*nodes.rows, strict=True)
    tree_of_leaf, number_of_leaf, leaf = zip(*nodes.leaves, strict=True)
    found = graph.op(  # float32, in which numbers of leaves are exact
        "TreeEnsembleRegressor", graph.op("Concat", *columns, axis=1),
        n_targets=embedding._fitted_trees.n_trees, aggregate_function="SUM", post_transform="NONE",
        nodes_treeids=tree, nodes_nodeids=number, nodes_modes=mode, nodes_featureids=feature,
        nodes_values_as_tensor=graph.attribute(value), nodes_missing_value_tracks_true=gaps_true,
        nodes_truenodeids=true, nodes_falsenodeids=false, target_treeids=tree_of_leaf,
        target_nodeids=number_of_leaf, target_ids=tree_of_leaf, target_weights_as_tensor=graph.attribute(leaf),
    )  # fmt: skip
    return graph.as_whole(found)


def scores_of_places(graph: OnnxGraph, places: list[str], widths: list[int], coef: np.ndarray, intercept: Any) -> str:
    """Add up the coefficients of places, tensors of shape (N, k) of one block each or of k blocks of one width.

    `coef` has the shape (n_outputs, n_columns).
    """
    shifted, start = [], 0
    for each, width in zip(places, widths, strict=True):
        shifted.append(graph.op("Add", each, np.array(start)))
        start += width
    found = graph.op("Gather", np.asarray(coef, np.float64).T, graph.op("Concat", *shifted, axis=1))
    return graph.op("Add", graph.column_sum(found), np.asarray(intercept, np.float64))


class TreeNodes:
    """Nodes of all trees as ONNX lists them.

    A split by a set of levels is a chain of thresholds, one at each end of a run of levels that go to one side. The
    nodes of a chain share two children. Modes for sets would be shorter, but onnxruntime 1.21 reads them wrongly.
    """

    def __init__(self, trees: Any, blocks: list[Any]) -> None:
        self._trees, self._blocks = trees, blocks
        # Tree, number within it, mode, column, threshold, whether missing values are true, and both children.
        self.rows: list[list[Any]] = []
        self.leaves: list[tuple[int, int, float]] = []  # tree, number of the node, and of the leaf
        for t in range(trees.n_trees):
            self._first = len(self.rows)
            self._add(t, 0)

    def _add(self, t: int, node: int) -> int:
        """Add a node and all below it, and return its number."""
        trees = self._trees
        if not trees.is_split[t, node]:
            number: int = self._row(t, "LEAF")[1]
            self.leaves.append((t, number, float(trees.leaf[t, node])))
            return number
        j, left = int(trees.column[t, node]), int(trees.left[t, node])
        if self._blocks[j].is_line:
            row = self._row(t, "BRANCH_GTE", j, float(trees.threshold[t, node]), int(trees.gaps_right[t, node]))
            row[-2:] = self._add(t, left + 1), self._add(t, left)
            return int(row[1])
        sides = self._sides_of_levels(t, node, self._blocks[j].width)
        ends = [level for level in range(len(sides) - 1, 0, -1) if sides[level] != sides[level - 1]]
        rows = [self._row(t, "BRANCH_GTE", j, float(level)) for level in ends]
        children = self._add(t, left), self._add(t, left + 1)
        after = [*(row[1] for row in rows[1:]), children[sides[0]]]
        for row, level, below in zip(rows, ends, after, strict=True):
            row[-2:] = children[sides[level]], below
        return int(rows[0][1])

    def _row(self, t: int, mode: str, j: int = 0, value: float = 0.0, gaps_true: int = 0) -> list[Any]:
        """Add a node without children."""
        self.rows.append([t, len(self.rows) - self._first, mode, j, value, gaps_true, 0, 0])
        return self.rows[-1]

    def _sides_of_levels(self, t: int, node: int, n_levels: int) -> list[int]:
        """Return 1 for each level that goes to the right, see `skdp._kernels.fixed_features.write_leaves`."""
        words, first = self._trees.words, int(self._trees.first_word[t, node])
        return [int(words[first + v // _WORD]) >> v % _WORD & 1 for v in range(n_levels)]
