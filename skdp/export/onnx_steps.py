"""Predictions and transformers in a graph.

A model has scores, and predictions that are computed from them: tensors by the name of the method. A transformer maps
rows to rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skdp._dpsgd.targets import REGRESSION_LOSSES
from skdp.export.onnx_graph import OnnxGraph, OnnxRows, RowColumn
from skdp.export.onnx_tables import as_columns, codes_of, leaves, plain_levels, scores_of_places


class OnnxOutput(NamedTuple):
    """A tensor of shape (N,), or (N, width), and its dtype."""

    tensor: str
    width: int | None = None
    dtype: Any = np.float64


OnnxOutputs = dict[str, OnnxOutput]


# --- scores, of shape (N, n_outputs) ---


def linear_scores(graph: OnnxGraph, model: Any, rows: OnnxRows) -> str:
    """Scores of a linear model, whose rows are clipped to norm `data_norm_`."""
    scaled = graph.scaled_down(rows.numbers(graph, model), float(model.data_norm_))
    return graph.linear(scaled, np.atleast_2d(model.coef_).T, np.atleast_1d(getattr(model, "intercept_", 0.0)))


def network_scores(graph: OnnxGraph, model: Any, rows: OnnxRows) -> str:
    """Scores of a dense network, whose rows are clipped to norm `data_norm_`."""
    values = graph.scaled_down(rows.numbers(graph, model), float(model.data_norm_))
    for layer, (coef, intercept) in enumerate(zip(model.coefs_, model.intercepts_, strict=True)):
        values = graph.linear(values, coef, intercept)
        if layer < len(model.coefs_) - 1 and model.activation != "identity":
            values = graph.op({"relu": "Relu", "tanh": "Tanh", "logistic": "Sigmoid"}[model.activation], values)
    return values


def trees_scores(graph: OnnxGraph, model: Any, rows: OnnxRows) -> str:
    """Scores of a linear model over plain columns and the leaves of random trees."""
    embedding = model.embedding_
    trees = embedding._fitted_trees
    codes, levels = plain_levels(graph, embedding, rows)
    first = np.arange(trees.n_trees) * trees.n_leaves  # place of the first leaf of each tree
    places = [*levels, graph.op("Add", leaves(graph, embedding, codes), first)]
    widths = [block.width for block in embedding._fitted_plain]
    return scores_of_places(graph, places, [*widths, trees.n_trees * trees.n_leaves], model.coef_, model.intercept_)


def bayes_scores(graph: OnnxGraph, model: Any, rows: OnnxRows) -> str:
    """Joint log-likelihood of a row and each class, except for a term that is the same for all classes."""
    constants, means, inverses, slopes = model._likelihood_terms()
    numbers = rows.numbers(graph, model)
    apart = _apart_from(graph, numbers, model.bounds_, means)
    sums = graph.column_sum(graph.op("Mul", graph.op("Mul", apart, apart), inverses), axis=2)
    scores = graph.op("Sub", constants, graph.op("Mul", sums, 0.5))
    if not slopes.any():
        return scores
    return graph.op("Add", scores, graph.op("MatMul", graph.between(numbers, 0.0, 1.0), slopes.T))


# --- predictions from scores ---


def classified(graph: OnnxGraph, model: Any, scores: str) -> OnnxOutputs:
    """Return class, probabilities and decision from scores: one per row (binary) or one per class (multiclass)."""
    n_classes = len(model.classes_)
    if getattr(model, "out_activation_", "") == "logistic" and model.n_outputs_ > 1:
        return _labelled(graph, scores, model.n_outputs_)
    if n_classes > 2:
        decision, probabilities = OnnxOutput(scores, n_classes), graph.op("Softmax", scores, axis=1)
        best = graph.op("ArgMax", scores, axis=1, keepdims=0)
    else:
        decision = OnnxOutput(graph.op("Squeeze", scores, np.array([1])))
        probabilities = graph.op("Sigmoid", graph.op("Concat", graph.op("Neg", scores), scores, axis=1))
        best = graph.as_whole(graph.op("Greater", decision.tensor, 0.0))
    return {
        "predict": class_at(graph, model.classes_, best, scores),
        "predict_proba": OnnxOutput(probabilities, n_classes),
        "decision_function": decision,
    }


def _labelled(graph: OnnxGraph, scores: str, n_labels: int) -> OnnxOutputs:
    """Each output is a label of its own, 0 or 1."""
    places = graph.as_whole(graph.op("Greater", scores, 0.0))
    guarded = graph.op("Where", graph.op("IsNaN", scores), np.array(2), places)
    return {
        "predict": OnnxOutput(graph.op("Gather", np.array([0, 1]), guarded), n_labels, np.int64),
        "predict_proba": OnnxOutput(graph.op("Sigmoid", scores), n_labels),
        "decision_function": OnnxOutput(scores, n_labels),
    }


def class_at(graph: OnnxGraph, classes: Any, place: str, scores: str) -> OnnxOutput:
    """Return the class of each row. A NaN score has an index without a class, which stops the run."""
    values = np.asarray(classes)
    if values.dtype.kind == "O" and not all(isinstance(each, str) for each in values.tolist()):
        raise TypeError("`classes_` must all be strings, or numbers of one dtype, for ONNX. Fit with such classes.")
    dtypes = {"i": np.int64, "u": np.int64, "f": np.float64, "b": np.bool_}
    values = values.astype(dtypes.get(values.dtype.kind, object))
    lost = graph.column_sum(graph.as_whole(graph.op("IsNaN", scores)))
    guarded = graph.op("Where", graph.op("Greater", lost, np.array(0)), np.array(len(values)), place)
    return OnnxOutput(graph.op("Gather", values, guarded), None, values.dtype)


def most_likely(graph: OnnxGraph, model: Any, likelihoods: str) -> OnnxOutputs:
    """Return class and probabilities of joint log-likelihoods."""
    best = graph.op("ArgMax", likelihoods, axis=1, keepdims=0)
    return {
        "predict": class_at(graph, model.classes_, best, likelihoods),
        "predict_proba": OnnxOutput(graph.op("Softmax", likelihoods, axis=1), len(model.classes_)),
    }


def bounded(graph: OnnxGraph, model: Any, scores: str) -> OnnxOutputs:
    """Return targets clipped to their bounds; least squares have no other scale, gradient descent does."""
    values = graph.op("Squeeze", scores, np.array([1]))
    scale = getattr(model, "_fitted_scale", None)
    if scale is not None:
        values = graph.op("Exp", values) if REGRESSION_LOSSES[model._fitted_loss].are_counts else values
        values = graph.op("Add", graph.op("Mul", values, float(scale.half)), float(scale.middle))
        values = graph.op("Exp", values) if scale.is_log else values
    return {"predict": OnnxOutput(graph.between(values, *map(float, model.y_bounds_)))}


def ordered(graph: OnnxGraph, model: Any, scores: str) -> OnnxOutputs:
    """Return class and probabilities of scores between thresholds."""
    ends = np.r_[-np.inf, model.thresholds_, np.inf]
    low, high = (graph.op("Sub", part, scores) for part in (ends[:-1], ends[1:]))
    above, below = (graph.op("Sigmoid", graph.op("Neg", each)) for each in (low, high))
    upper = graph.op("Sub", above, below)
    lower = graph.op("Sub", graph.op("Sigmoid", high), graph.op("Sigmoid", low))
    chances = graph.op("Where", graph.op("Greater", graph.op("Add", low, high), 0.0), upper, lower)
    best = graph.op("ArgMax", chances, axis=1, keepdims=0)
    by_class = graph.op("Gather", chances, np.argsort(model.levels_), axis=1)
    return {
        "predict": class_at(graph, model.levels_, best, scores),
        "predict_proba": OnnxOutput(by_class, len(model.levels_)),
    }


def squared_distances(graph: OnnxGraph, model: Any, rows: OnnxRows) -> str:
    """Squared distances of rows to the centers, for columns clipped to their bounds and scaled to [-1, 1]."""
    apart = _apart_from(graph, rows.numbers(graph, model), model.bounds_, model._fitted_centers)
    return graph.column_sum(graph.op("Mul", apart, apart), axis=2)


def _apart_from(graph: OnnxGraph, numbers: str, bounds: np.ndarray, points: np.ndarray) -> str:
    """Differences of rows, clipped and scaled to [-1, 1], from points, of shape (N, n_points, n_columns)."""
    low, high = bounds.T
    inside = graph.between(numbers, low, high)
    shares = graph.op("Div", graph.op("Sub", inside, low), 0.5 * high - 0.5 * low)
    scaled = graph.between(graph.op("Sub", shares, 1.0), -1.0, 1.0)
    return graph.op("Sub", graph.op("Unsqueeze", scaled, np.array([1])), points)


def clustered(graph: OnnxGraph, model: Any, squares: str) -> OnnxOutputs:
    """Return the nearest center, and the distances to all of them."""
    n_clusters = len(model._fitted_centers)
    best = graph.op("ArgMin", squares, axis=1, keepdims=0)
    return {
        "predict": class_at(graph, np.arange(n_clusters), best, squares),
        "transform": OnnxOutput(graph.op("Sqrt", squares), n_clusters),
    }


_KINDS = {
    "skdp.linear_model.logistic.DPLogisticRegression": (linear_scores, classified),
    "skdp.linear_model.least_squares.DPLinearRegression": (linear_scores, bounded),
    "skdp.linear_model.least_squares.DPRidge": (linear_scores, bounded),
    "skdp.linear_model.ordinal.DPOrdinalLogisticRegression": (linear_scores, ordered),
    "skdp.linear_model.poisson.DPPoissonRegressor": (linear_scores, bounded),
    "skdp.neural_network.classifier.DPMLPClassifier": (network_scores, classified),
    "skdp.neural_network.regressor.DPMLPRegressor": (network_scores, bounded),
    "skdp.ensemble.classifier.DPRandomTreesClassifier": (trees_scores, classified),
    "skdp.ensemble.regressor.DPRandomTreesRegressor": (trees_scores, bounded),
    "skdp.naive_bayes.DPGaussianNB": (bayes_scores, most_likely),
    "skdp.cluster.kmeans.DPKMeans": (squared_distances, clustered),
}
"""Supported models by class; a subclass can predict in another way."""


def predict(graph: OnnxGraph, model: Any, rows: OnnxRows, kind: str) -> OnnxOutputs | None:
    """Return the outputs of a model of this class; None if it is not supported."""
    if kind not in _KINDS:
        return None
    scores, outputs = _KINDS[kind]
    found = outputs(graph, model, scores(graph, model, rows))
    return {method: made for method, made in found.items() if hasattr(model, method)}


def vectorized(graph: OnnxGraph, step: Any, rows: OnnxRows) -> OnnxRows:
    """`DPTableVectorizer`: the columns of all blocks."""
    parts = []
    for block in step._fitted_blocks:
        parts += as_columns(graph, block, codes_of(graph, block, rows.column(graph, block.position)))
    made = graph.op("Concat", *parts, axis=1)
    is_rounded = step.dtype == "float32" and step.numbers_ != "codes"
    return OnnxRows(step._n_features_out, graph.rounded(made) if is_rounded else made)


def binned(graph: OnnxGraph, step: Any, rows: OnnxRows) -> OnnxRows:
    """`DPOneHotEncoder`, `DPQuantileBinner`: their vectorizer, or indices of bins."""
    if getattr(step, "encode", "") != "ordinal":
        return vectorized(graph, step._fitted_rows, rows)
    parts = []
    for j, edges in enumerate(step.bin_edges_):
        values = _numbers(graph, step, rows, j)
        bins = graph.as_doubles(graph.count_passed(values, np.asarray(edges)))
        parts.append(graph.op("Where", graph.op("IsNaN", values), -1.0, bins))
    return OnnxRows(rows.width, graph.op("Concat", *parts, axis=1))


def scaled(graph: OnnxGraph, step: Any, rows: OnnxRows) -> OnnxRows:
    """`DPStandardScaler`: numbers are clipped to their bounds first."""
    low, high = np.array([tuple(each) for each in step.bounds_], np.float64).T
    made = graph.between(rows.numbers(graph, step), low, high)
    if step.with_mean:
        made = graph.op("Sub", made, step.mean_)
    if step.with_std:
        made = graph.op("Div", made, step.scale_)
    return OnnxRows(rows.width, made)


def filled(graph: OnnxGraph, step: Any, rows: OnnxRows) -> OnnxRows:
    """`DPSimpleImputer`: strings or numbers, a constant for each missing value."""
    columns = {}
    for j, is_text in enumerate(step._fitted_words):
        column, constant = rows.column(graph, j), step.statistics_[j]
        if is_text != column.is_text:
            raise TypeError(f"Column {j} of {type(step).__name__} must have the type that it had in the fit.")
        if is_text:
            is_gap = graph.op("Equal", column.tensor, np.array([""], object))
            columns[j] = RowColumn(graph.op("Where", is_gap, np.array([constant], object), column.tensor), True)
        else:
            is_gap = graph.op("IsNaN", column.tensor)
            columns[j] = RowColumn(graph.op("Where", is_gap, float(constant), column.tensor), False)
    return OnnxRows(rows.width, columns=columns)


def projected(graph: OnnxGraph, step: Any, rows: OnnxRows) -> OnnxRows:
    """`DPPCA`: clipped rows, projected on the components."""
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
        raise TypeError(
            f"{type(step).__name__} requires numeric columns, got string columns. Encode them before the fit."
        )
    return column.tensor


_STEPS = {
    "skdp.preprocessing.vectorizer.DPTableVectorizer": vectorized,
    "skdp.preprocessing.categories.DPOneHotEncoder": binned,
    "skdp.preprocessing.quantiles.DPQuantileBinner": binned,
    "skdp.preprocessing.scaler.DPStandardScaler": scaled,
    "skdp.preprocessing.imputer.DPSimpleImputer": filled,
    "skdp.decomposition.DPPCA": projected,
    "skdp.ensemble.embedding.PublicTreesEmbedding": embedded,
    "skdp.cluster.kmeans.DPKMeans": distances,
}
"""Supported steps by class; a subclass can transform in another way."""


def transform(graph: OnnxGraph, step: Any, rows: OnnxRows, kind: str) -> OnnxRows | None:
    """Return the output rows of a step of this class; None if it is not supported."""
    return _STEPS[kind](graph, step, rows) if kind in _STEPS else None
