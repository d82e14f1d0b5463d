"""An ONNX graph while it is written: nodes, constants, and formulas that several models share.

Numbers are float64 throughout. NaN stays NaN: a comparison that it fails never chooses a bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

OPSETS = {"": 19, "ai.onnx.ml": 3}
"""Versions of the operators: the first ones that compare text, and trees of float64."""

_IR_VERSION = 10
_ML = ("LabelEncoder", "TreeEnsembleRegressor")


class OnnxGraph:
    """Nodes in the order in which they are computed.

    Names of tensors within begin with ``skdp/``.
    """

    def __init__(self) -> None:
        self._onnx = import_onnx()
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._n_names = 0

    def new_name(self) -> str:
        """Return a name that no tensor has."""
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
        """Return the result of a node; operands that are no names become constants."""
        named = [each if isinstance(each, str) else self.constant(each) for each in operands]
        result = self.new_name()
        domain = "ai.onnx.ml" if kind in _ML else ""
        self._nodes.append(self._onnx.helper.make_node(kind, named, [result], domain=domain, **attributes))
        return result

    def attribute(self, value: Any, dtype: Any = np.float64) -> Any:
        """Return a tensor as an attribute of a node."""
        return self._onnx.numpy_helper.from_array(np.asarray(value, dtype))

    def input(self, name: str, width: int, about: str, holds: str) -> str:
        """Declare an input of shape (N, width), and return its tensor: text, or float64."""
        types = self._onnx.TensorProto
        kind = {"text": types.STRING, "integer": types.INT64}.get(holds, types.DOUBLE)
        self._inputs.append(self._onnx.helper.make_tensor_value_info(name, kind, ["N", width], about))
        return self.as_doubles(name) if holds == "integer" else name

    def output(self, name: str, tensor: str, shape: Sequence[Any], dtype: Any = np.float64) -> None:
        """Declare a tensor as an output."""
        self._nodes.append(self._onnx.helper.make_node("Identity", [tensor], [name]))
        is_text = np.dtype(dtype).kind == "O"
        types, helper = self._onnx.TensorProto, self._onnx.helper
        kind = types.STRING if is_text else helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self._outputs.append(self._onnx.helper.make_tensor_value_info(name, kind, list(shape)))

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
        made = helper.make_model(graph, opset_imports=versions, ir_version=_IR_VERSION, producer_name="skdp")
        helper.set_model_props(made, metadata)
        self._onnx.checker.check_model(made)
        return made

    # --- formulas ---

    def between(self, values: str, low: Any, high: Any) -> str:
        """Move values between bounds."""
        raised = self.op("Where", self.op("Less", values, low), low, values)
        return self.op("Where", self.op("Greater", raised, high), high, raised)

    def column_sum(self, values: str, axis: int = 1, *, keep: bool = False) -> str:
        """Add up along an axis."""
        return self.op("ReduceSum", values, np.array([axis]), keepdims=int(keep))

    def row_norms(self, rows: str) -> str:
        """Norms of rows, of shape (N, 1), without overflow on the way; NaN where a number is not finite."""
        top = self.op("ReduceMax", self.op("Abs", rows), np.array([1]), keepdims=1)
        unit = self.op("Where", self.op("Equal", top, 0.0), 1.0, top)
        scaled = self.op("Div", rows, unit)
        return self.op("Mul", unit, self.op("Sqrt", self.column_sum(self.op("Mul", scaled, scaled), keep=True)))

    def scaled_down(self, rows: str, radius: float) -> str:
        """Scale longer rows down to norm `radius`; to zero those whose norm is beyond float64."""
        norms = self.row_norms(rows)
        factor = self.op("Where", self.op("LessOrEqual", norms, radius), 1.0, self.op("Div", radius, norms))
        return self.op("Mul", rows, factor)

    def linear(self, rows: str, table: Any, intercept: Any) -> str:
        """Multiply rows by a table of shape (inputs, outputs), and add the intercepts."""
        return self.op("Add", self.op("MatMul", rows, np.asarray(table, np.float64)), np.asarray(intercept, np.float64))

    def count_passed(self, values: str, edges: Any) -> str:
        """Count the edges that each value, of shape (N, 1), reaches; none for NaN."""
        # An edge that no number reaches stands for none at all.
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
    """Return the package, or say how to get it."""
    try:
        import onnx
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        raise ImportError('to_onnx needs onnx; run `pip install "skdp[onnx]"`.') from None
    return onnx
