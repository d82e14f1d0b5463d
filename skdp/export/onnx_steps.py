"""Transformers in a graph. Every function takes a fitted step and rows, and returns rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from skdp.export.onnx_graph import OnnxGraph
from skdp.export.onnx_models import squared_distances
from skdp.export.onnx_rows import OnnxRows, RowColumn
from skdp.export.onnx_table import as_columns, codes_of
from skdp.export.onnx_trees import leaves, plain_levels


def vectorized(graph: OnnxGraph, step: Any, rows: OnnxRows) -> OnnxRows:
    """`DPTableVectorizer`: the columns of all blocks."""
    parts = []
    for block in step._fitted_blocks:
        parts += as_columns(graph, block, codes_of(graph, block, rows.column(graph, block.position)))
    made = graph.op("Concat", *parts, axis=1)
    is_rounded = step.dtype == "float32" and step.numbers_ != "codes"
    return OnnxRows(step._n_features_out, graph.rounded(made) if is_rounded else made)


def encoded(graph: OnnxGraph, step: Any, rows: OnnxRows) -> OnnxRows:
    """`DPOneHotEncoder`: a vectorizer of its own."""
    return vectorized(graph, step._fitted_rows, rows)


def binned(graph: OnnxGraph, step: Any, rows: OnnxRows) -> OnnxRows:
    """`DPQuantileBinner`: numbers of bins, or a vectorizer of its own."""
    if step.encode != "ordinal":
        return vectorized(graph, step._fitted_rows, rows)
    parts = []
    for j, edges in enumerate(step.bin_edges_):
        values = _numbers(graph, step, rows, j)
        bins = graph.as_doubles(graph.count_passed(values, np.asarray(edges)))
        parts.append(graph.op("Where", graph.op("IsNaN", values), -1.0, bins))
    return OnnxRows(rows.width, graph.op("Concat", *parts, axis=1))


def scaled(graph: OnnxGraph, step: Any, rows: OnnxRows) -> OnnxRows:
    """`DPStandardScaler`: numbers moved between their bounds first."""
    low, high = np.array([tuple(each) for each in step.bounds_], np.float64).T
    made = graph.between(rows.numbers(graph, step), low, high)
    if step.with_mean:
        made = graph.op("Sub", made, step.mean_)
    if step.with_std:
        made = graph.op("Div", made, step.scale_)
    return OnnxRows(rows.width, made)


def filled(graph: OnnxGraph, step: Any, rows: OnnxRows) -> OnnxRows:
    """`DPSimpleImputer`: text or numbers, a constant for each gap."""
    columns = {}
    for j, is_text in enumerate(step._fitted_words):
        column, constant = rows.column(graph, j), step.statistics_[j]
        if is_text != column.is_text:
            raise TypeError(f"column {j} of {type(step).__name__} was of another type in the fit: give it that type.")
        if is_text:
            is_gap = graph.op("Equal", column.tensor, np.array([""], object))
            columns[j] = RowColumn(graph.op("Where", is_gap, np.array([constant], object), column.tensor), True)
        else:
            is_gap = graph.op("IsNaN", column.tensor)
            columns[j] = RowColumn(graph.op("Where", is_gap, float(constant), column.tensor), False)
    return OnnxRows(rows.width, columns=columns)


def projected(graph: OnnxGraph, step: Any, rows: OnnxRows) -> OnnxRows:
    """`DPPCA`: rows in the ball, on the components."""
    ball, scale = step._fitted_ball, step._whitening()
    apart = graph.op("Sub", rows.numbers(graph, step), ball.center)
    norms = graph.row_norms(apart)
    divisor = graph.op("Where", graph.op("LessOrEqual", norms, ball.radius), ball.radius or 1.0, norms)
    inside = graph.op("Div", apart, divisor)
    axes = step.components_.T * (step.data_norm_ / scale)
    origin = (step.mean_ - ball.center) @ step.components_.T / scale
    return OnnxRows(step.n_components_, graph.linear(inside, axes, -origin))


def embedded(graph: OnnxGraph, step: Any, rows: OnnxRows) -> OnnxRows:
    """`PublicTreesEmbedding`: levels and leaves, of the weights of their blocks."""
    trees, plain = step._fitted_trees, step._fitted_plain
    codes, levels = plain_levels(graph, step, rows)
    weights = step._encoder.form.weights
    parts = [
        graph.op("Mul", graph.one_hot(level, block.width), weight)
        for level, block, weight in zip(levels, plain, weights, strict=False)
    ]
    each = graph.op("Unsqueeze", leaves(graph, step, codes), np.array([2]))
    hits = graph.as_doubles(graph.op("Equal", each, np.arange(trees.n_leaves)))
    weighted = graph.op("Mul", hits, np.array(weights[len(plain) :])[:, None])
    parts.append(graph.op("Reshape", weighted, np.array([-1, trees.n_trees * trees.n_leaves])))
    return OnnxRows(step._n_features_out, graph.op("Concat", *parts, axis=1))


def distances(graph: OnnxGraph, step: Any, rows: OnnxRows) -> OnnxRows:
    """`DPKMeans`: distances to the centers."""
    return OnnxRows(step._n_features_out, graph.op("Sqrt", squared_distances(graph, step, rows)))


def _numbers(graph: OnnxGraph, step: Any, rows: OnnxRows, j: int) -> str:
    column = rows.column(graph, j)
    if column.is_text:
        raise TypeError(f"{type(step).__name__} is given columns of text: make them numbers before the fit.")
    return column.tensor


_STEPS = {
    "skdp.preprocessing.vectorizer.DPTableVectorizer": vectorized,
    "skdp.preprocessing.categories.DPOneHotEncoder": encoded,
    "skdp.preprocessing.quantiles.DPQuantileBinner": binned,
    "skdp.preprocessing.scaler.DPStandardScaler": scaled,
    "skdp.preprocessing.imputer.DPSimpleImputer": filled,
    "skdp.decomposition.DPPCA": projected,
    "skdp.ensemble.embedding.PublicTreesEmbedding": embedded,
    "skdp.cluster.kmeans.DPKMeans": distances,
}
"""Steps that have a formula here, by class: one that derives from them may transform in a way of its own."""


def transform(graph: OnnxGraph, step: Any, rows: OnnxRows, kind: str) -> OnnxRows | None:
    """Return the rows that a step of this class makes, None if it has no formula here."""
    return _STEPS[kind](graph, step, rows) if kind in _STEPS else None
