"""An ONNX graph under construction: nodes, constants, and shared formulas.

Numbers are float64 throughout. NaN stays NaN: a failed comparison never selects a bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

OPSETS = {"": 19, "ai.onnx.ml": 3}
"""Operator versions: the first ones with string comparison, and with trees of float64."""


class OnnxGraph:
    """Nodes in the order of computation.

    Names of internal tensors begin with ``skdp/``.
    """

    def __init__(self) -> None:
        self._onnx = import_onnx()
        self._nodes, self._constants, self._inputs, self._outputs = (list[Any]() for _ in range(4))
        self._n_names = 0

    def new_name(self) -> str:
        """Return an unused tensor name."""
        self._n_names += 1
        return f"skdp/{self._n_names}"

    def constant(self, value: Any) -> str:
        """Return a tensor of numbers, whole numbers, truth values or text."""
        array = np.asarray(value)
        if array.dtype.kind == "U":
            array = array.astype(object)
        elif array.dtype.kind == "f":
            array = array.astype(np.float64)
        name = self.new_name()
        self._constants.append(self._onnx.numpy_helper.from_array(np.array(array, order="C"), name))
        return name

    def op(self, kind: str, *operands: Any, **attributes: Any) -> str:
        """Return the result of a node; operands other than names become constants."""
        named = [each if isinstance(each, str) else self.constant(each) for each in operands]
        result = self.new_name()
        domain = "ai.onnx.ml" if kind in ("LabelEncoder", "TreeEnsembleRegressor") else ""
        self._nodes.append(self._onnx.helper.make_node(kind, named, [result], domain=domain, **attributes))
        return result

    def attribute(self, value: Any) -> Any:
        """Return a tensor of numbers as an attribute of a node."""
        return self._onnx.numpy_helper.from_array(np.asarray(value, np.float64))

    def input(self, name: str, width: int, about: str, holds: str) -> str:
        """Declare an input of shape (N, width), and return its tensor: text, or float64."""
        types = self._onnx.TensorProto
        kind = {"text": types.STRING, "integer": types.INT64}.get(holds, types.DOUBLE)
        self._inputs.append(self._onnx.helper.make_tensor_value_info(name, kind, ["N", width], about))
        return self.as_doubles(name) if holds == "integer" else name

    def output(self, name: str, tensor: str, shape: Sequence[Any], dtype: Any = np.float64) -> None:
        """Declare a tensor as an output."""
        self._nodes.append(self._onnx.helper.make_node("Identity", [tensor], [name]))
        is_text, helper = np.dtype(dtype).kind == "O", self._onnx.helper
        kind = self._onnx.TensorProto.STRING if is_text else helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self._outputs.append(helper.make_tensor_value_info(name, kind, list(shape)))

    def inline(self, graph: Any, tensor: str) -> str:
        """Take over the nodes of another graph of one input and one output, and return its output."""
        prefix = self.new_name() + "/"
        own = {graph.input[0].name: tensor}

        def renamed(name: str) -> str:
            return name and own.get(name, prefix + name)

        for constant in graph.initializer:
            constant.name = renamed(constant.name)
            self._constants.append(constant)
        for node in graph.node:
            node.name = ""
            node.input[:] = [renamed(name) for name in node.input]
            node.output[:] = [renamed(name) for name in node.output]
            self._nodes.append(node)
        return renamed(graph.output[0].name)

    def model(self, metadata: dict[str, str]) -> Any:
        """Return the checked model."""
        helper = self._onnx.helper
        graph = helper.make_graph(self._nodes, "skdp", self._inputs, self._outputs, self._constants)
        versions = [helper.make_opsetid(domain, version) for domain, version in OPSETS.items()]
        made = helper.make_model(graph, opset_imports=versions, ir_version=10, producer_name="skdp")
        helper.set_model_props(made, metadata)
        self._onnx.checker.check_model(made)
        return made

    # --- formulas ---

    def between(self, values: str, low: Any, high: Any) -> str:
        """Clip values to bounds."""
        raised = self.op("Where", self.op("Less", values, low), low, values)
        return self.op("Where", self.op("Greater", raised, high), high, raised)

    def column_sum(self, values: str, axis: int = 1, *, keep: bool = False) -> str:
        """Add up along an axis."""
        return self.op("ReduceSum", values, np.array([axis]), keepdims=int(keep))

    def row_norms(self, rows: str) -> str:
        """Norms of rows, of shape (N, 1), without intermediate overflow; NaN if a number is not finite."""
        top = self.op("ReduceMax", self.op("Abs", rows), np.array([1]), keepdims=1)
        unit = self.op("Where", self.op("Equal", top, 0.0), 1.0, top)
        scaled = self.op("Div", rows, unit)
        return self.op("Mul", unit, self.op("Sqrt", self.column_sum(self.op("Mul", scaled, scaled), keep=True)))

    def scaled_down(self, rows: str, radius: float) -> str:
        """Clip rows to norm `radius`; rows with a norm beyond float64 become zero."""
        norms = self.row_norms(rows)
        factor = self.op("Where", self.op("LessOrEqual", norms, radius), 1.0, self.op("Div", radius, norms))
        return self.op("Mul", rows, factor)

    def linear(self, rows: str, table: Any, intercept: Any) -> str:
        """Multiply rows by a table of shape (inputs, outputs), and add the intercepts."""
        return self.op("Add", self.op("MatMul", rows, np.asarray(table, np.float64)), np.asarray(intercept, np.float64))

    def count_passed(self, values: str, edges: Any) -> str:
        """Count the edges at or below each value, of shape (N, 1); none for NaN."""
        # An edge above all numbers represents no edge.
        reached = self.op("GreaterOrEqual", values, np.append(edges, np.nan))
        return self.column_sum(self.as_whole(reached), keep=True)

    def one_hot(self, places: str, width: int) -> str:
        """Return 1 at the place of each row, of shape (N, 1), and 0 elsewhere, of shape (N, width)."""
        return self.as_doubles(self.op("Equal", places, np.arange(width)))

    def as_doubles(self, values: str) -> str:
        """Return values as numbers."""
        return self.op("Cast", values, to=self._onnx.TensorProto.DOUBLE)

    def as_whole(self, values: str) -> str:
        """Return numbers as whole ones."""
        return self.op("Cast", values, to=self._onnx.TensorProto.INT64)

    def rounded(self, values: str) -> str:
        """Round numbers to float32."""
        return self.as_doubles(self.op("Cast", values, to=self._onnx.TensorProto.FLOAT))


def import_onnx() -> Any:
    """Return the package, or raise an error with the installation command."""
    try:
        import onnx
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        raise ImportError('to_onnx requires onnx. Run `pip install ".[onnx]"`.') from None
    return onnx


ABOUT = {
    "number": "a number; NaN is a missing value",
    "integer": "an integer, without missing values",
    "days": "a date as days since 1970-01-01 in UTC, with fractions; NaN is a missing value",
    "text": "a string; an integer as '1', a truth value as 'True'; '' is a missing value",
}
"""Content of an input."""


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
        """Return all columns as a matrix, or raise an error for string columns, as `owner` does."""
        if self.matrix:
            return self.matrix
        if any(column.is_text for column in self.columns.values()):
            raise TypeError(f"{type(owner).__name__} requires numeric columns, got string columns. Encode them first.")
        return graph.op("Concat", *(self.columns[j].tensor for j in range(self.width)), axis=1)


def declare_inputs(
    graph: OnnxGraph, step: Any, taken: tuple[str, ...], integers: Iterable[str]
) -> tuple[OnnxRows, list[dict[str, str]]]:
    """Declare the inputs of the first step; return the rows, and name and content of each input.

    Names in `taken` are those of outputs. The `integers` are integer inputs.
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
            raise ValueError(f"Column {named[j]!r} cannot be an input of this name. Rename it before the fit.")
        held = inputs[named[j]]
        columns[j] = RowColumn(graph.input(named[j], 1, ABOUT[held], held), held == "text")
    return OnnxRows(width, columns=columns), _listed(inputs)


def _with_integers(inputs: dict[str, str], integers: Iterable[str]) -> dict[str, str]:
    """Return the content of inputs, by name, after some were declared as integers."""
    asked = dict.fromkeys(integers, "integer")
    for name in asked:
        if inputs.get(name) != "number":
            numbers = [each for each, held in inputs.items() if held == "number"]
            raise ValueError(f"`integers` must be among the numeric inputs, {numbers}, got {name!r}.")
    return {**inputs, **asked}


def _listed(inputs: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "holds": held} for name, held in inputs.items()]


def _what_columns_hold(step: Any) -> dict[int, str]:
    """Return the content of the columns that a step reads, by position."""
    if (words := getattr(step, "_fitted_words", None)) is not None:
        return {j: "text" if is_text else "number" for j, is_text in enumerate(words)}
    reader = getattr(step, "embedding_", getattr(step, "_fitted_rows", step))
    blocks = getattr(reader, "_fitted_blocks", None)
    if blocks is None:
        return dict.fromkeys(range(int(step.n_features_in_)), "number")
    kinds = getattr(reader, "_fitted_kinds", {})
    return {block.position: _held(block, kinds.get(block.name, "")) for block in blocks}


def _held(block: Any, kind: str) -> str:
    """Return the content of a column of a schema; `kind` is that of its type in the fit."""
    if block.is_line or block.part:
        return "days" if block.part or block.column.kind == "date" else "number"
    if kind == "date":
        raise TypeError(f"Column {block.name!r} is categorical with a date type. Convert it to strings before the fit.")
    return "number" if kind == "number" else "text"
