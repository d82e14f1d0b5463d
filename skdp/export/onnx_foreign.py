"""Public steps of scikit-learn in a graph.

skl2onnx converts them, but for three whose graphs differ from the steps in float64: a row of zeros becomes NaN, or no
runtime takes them.
"""

from __future__ import annotations

import contextlib
import math
from typing import Any

import numpy as np

from skdp.export.onnx_graph import OPSETS, OnnxGraph
from skdp.export.onnx_rows import OnnxRows

_CONVERTED = {
    "sklearn.preprocessing._data.Binarizer",
    "sklearn.preprocessing._data.MaxAbsScaler",
    "sklearn.preprocessing._data.MinMaxScaler",
    "sklearn.preprocessing._data.RobustScaler",
    "sklearn.preprocessing._data.StandardScaler",
    "sklearn.preprocessing._encoders.OneHotEncoder",
    "sklearn.preprocessing._encoders.OrdinalEncoder",
    "sklearn.random_projection.GaussianRandomProjection",
}
"""Classes whose graphs by skl2onnx the tests compare with them."""


def normalized(graph: OnnxGraph, step: Any, rows: str) -> str:
    """Divide rows by their norms, but for rows of next to nothing."""
    size = graph.op("Abs", rows)
    if step.norm == "l2":
        norms = graph.row_norms(rows)
    elif step.norm == "l1":
        norms = graph.column_sum(size, keep=True)
    else:
        norms = graph.op("ReduceMax", size, np.array([1]), keepdims=1)
    tiny = 10.0 * np.finfo(np.float64).eps  # scikit-learn's bound, below which rows stay as they are
    return graph.op("Div", rows, graph.op("Where", graph.op("Less", norms, tiny), 1.0, norms))


def filled_by_constants(graph: OnnxGraph, step: Any, rows: str) -> str:
    """Put the value of its column in the place of NaN."""
    is_plain = isinstance(step.missing_values, float) and math.isnan(step.missing_values) and not step.add_indicator
    if not is_plain or len(step.statistics_) != step.n_features_in_ or np.isnan(step.statistics_.astype(float)).any():
        raise TypeError("SimpleImputer has an ONNX form for NaN alone: missing_values=nan, add_indicator=False.")
    return graph.op("Where", graph.op("IsNaN", rows), step.statistics_.astype(np.float64), rows)


def multiplied(graph: OnnxGraph, step: Any, rows: str) -> str:
    """Multiply columns, by their powers in each column of the output."""
    most = max(int(step.powers_.sum(axis=1).max(initial=0)), 1)
    ones = step.n_features_in_  # the place of a column of 1, behind the others
    factors = [
        [j for j, power in enumerate(powers) for _ in range(power)] + [ones] * (most - sum(powers))
        for powers in step.powers_.tolist()
    ]
    widened = graph.op("Pad", rows, np.array([0, 0, 0, 1]), 1.0)
    return graph.op("ReduceProd", graph.op("Gather", widened, np.array(factors), axis=1), np.array([2]), keepdims=0)


_OWN = {
    "sklearn.preprocessing._data.Normalizer": normalized,
    "sklearn.impute._base.SimpleImputer": filled_by_constants,
    "sklearn.preprocessing._polynomial.PolynomialFeatures": multiplied,
}


def convert(graph: OnnxGraph, step: Any, rows: OnnxRows, kind: str) -> OnnxRows | None:
    """Return the rows that a step of scikit-learn makes, None if it is not listed."""
    if kind not in _CONVERTED and kind not in _OWN:
        return None
    given = rows.numbers(graph, step)
    made = _OWN[kind](graph, step, given) if kind in _OWN else _by_skl2onnx(graph, step, given, rows.width)
    return OnnxRows(len(step.get_feature_names_out()), made)


def _by_skl2onnx(graph: OnnxGraph, step: Any, rows: str, width: int) -> str:
    name = type(step).__name__
    try:
        from skl2onnx import convert_sklearn
        from skl2onnx.common.data_types import DoubleTensorType
    except ImportError:
        raise ImportError(f'{name} of scikit-learn needs skl2onnx; run `pip install "skdp[onnx]"`.') from None
    made = None
    with contextlib.suppress(Exception):  # its message has many lines
        made = convert_sklearn(step, initial_types=[("rows", DoubleTensorType([None, width]))], target_opset=OPSETS)
    if made is None:
        raise TypeError(f"{name} with these parameters has no ONNX form by skl2onnx: leave it out, or replace it.")
    return graph.as_doubles(graph.inline(made.graph, rows))
