"""Rows in a graph: one matrix of numbers, or columns of numbers and text; and the inputs that a first step needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from skdp.export.onnx_graph import OnnxGraph

ABOUT = {
    "number": "a number; NaN is a gap",
    "integer": "a whole number, without gaps",
    "days": "a date as days since 1970-01-01 in UTC, with fractions; NaN is a gap",
    "text": "text; a whole number as '1', a truth value as 'True'; '' is a gap",
}
"""What an input holds."""


class RowColumn(NamedTuple):
    """A tensor of shape (N, 1)."""

    tensor: str
    is_text: bool


@dataclass(frozen=True)
class OnnxRows:
    """Rows as a matrix of numbers, of shape (N, width), or as columns by their position, without those not needed."""

    width: int
    matrix: str = ""
    columns: Mapping[int, RowColumn] = field(default_factory=dict)

    def column(self, graph: OnnxGraph, j: int) -> RowColumn:
        """Return a column."""
        if not self.matrix:
            return self.columns[j]
        return RowColumn(graph.op("Gather", self.matrix, np.array([j]), axis=1), False)

    def numbers(self, graph: OnnxGraph, owner: Any) -> str:
        """Return all columns as a matrix, or refuse text, which `owner` refuses too."""
        if self.matrix:
            return self.matrix
        if any(column.is_text for column in self.columns.values()):
            raise TypeError(f"{type(owner).__name__} is given columns of text, which it refuses: encode them first.")
        return graph.op("Concat", *(self.columns[j].tensor for j in range(self.width)), axis=1)


def declare_inputs(
    graph: OnnxGraph, step: Any, taken: tuple[str, ...], integers: Iterable[str]
) -> tuple[OnnxRows, list[dict[str, str]]]:
    """Declare what a first step reads of a table; return it, and name and content of each input.

    Names that are `taken` are those of outputs. The `integers` are inputs of whole numbers.
    """
    width, names = int(step.n_features_in_), getattr(step, "feature_names_in_", None)
    holds = _what_columns_hold(step)
    if names is None and set(holds.values()) == {"number"}:
        inputs = _with_integers({"X": "number"}, integers)
        tensor = graph.input("X", width, ABOUT[inputs["X"]], inputs["X"])
        return OnnxRows(width, tensor), _listed(inputs)
    named = [f"x{j}" for j in range(width)] if names is None else [str(name) for name in names]
    inputs = _with_integers({named[j]: held for j, held in holds.items()}, integers)
    columns = {}
    for j in holds:
        if not named[j] or named[j] in taken or named[j].startswith("skdp/"):
            raise ValueError(f"the column {named[j]!r} cannot be an input of that name: rename it before the fit.")
        held = inputs[named[j]]
        columns[j] = RowColumn(graph.input(named[j], 1, ABOUT[held], held), held == "text")
    return OnnxRows(width, columns=columns), _listed(inputs)


def _with_integers(inputs: dict[str, str], integers: Iterable[str]) -> dict[str, str]:
    """Return what inputs hold, by name, after some numbers were declared whole."""
    asked = dict.fromkeys(integers, "integer")
    for name in asked:
        if inputs.get(name) != "number":
            numbers = [each for each, held in inputs.items() if held == "number"]
            raise ValueError(f"integers={name!r} must be among the inputs of numbers, {numbers}.")
    return {**inputs, **asked}


def _listed(inputs: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "holds": held} for name, held in inputs.items()]


def _what_columns_hold(step: Any) -> dict[int, str]:
    """Return what the columns that a step reads hold, by position."""
    if (words := getattr(step, "_fitted_words", None)) is not None:
        return {j: "text" if is_text else "number" for j, is_text in enumerate(words)}
    reader = getattr(step, "embedding_", getattr(step, "_fitted_rows", step))
    blocks = getattr(reader, "_fitted_blocks", None)
    if blocks is None:
        return dict.fromkeys(range(int(step.n_features_in_)), "number")
    kinds = getattr(reader, "_fitted_kinds", {})
    return {block.position: _held(block, kinds.get(block.name, "")) for block in blocks}


def _held(block: Any, kind: str) -> str:
    """Return what a column of a schema holds; `kind` is that of its type in the fit."""
    if block.is_line or block.part:
        return "days" if block.part or block.column.kind == "date" else "number"
    if kind == "date":
        raise TypeError(f"column {block.name!r} has levels and is of a type of dates: make it text before the fit.")
    return "number" if kind == "number" else "text"
