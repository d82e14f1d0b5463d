"""`to_onnx`: a fitted model as one ONNX graph, from raw columns to predictions."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdp.export.facts import facts_of
from skdp.export.onnx_foreign import convert
from skdp.export.onnx_graph import OnnxGraph
from skdp.export.onnx_models import OnnxOutput, OnnxOutputs, class_at, predict
from skdp.export.onnx_rows import OnnxRows, declare_inputs
from skdp.export.onnx_steps import transform

LEAST_SCORE = 1e-12
"""See `skdp.calibration.calibrated_classifier`."""

_PIPELINE_KINDS = frozenset(
    {
        "sklearn.pipeline.Pipeline",
        "skdp.pipeline.PrivatePipeline",
        "skdp.pipeline.PipelineSlice",
        "skdp.tabular.TabularPipeline",
    }
)
_SEARCH_KINDS = frozenset(
    {"skdp.model_selection.searches.DPGridSearchCV", "skdp.model_selection.searches.DPRandomizedSearchCV"}
)
_THRESHOLD_KIND = "sklearn.model_selection._classification_threshold.FixedThresholdClassifier"
_CALIBRATED_KIND = "skdp.calibration.calibrated_classifier.DPCalibratedClassifier"
_PURPOSE_KIND = "skdp.calibration.threshold_classifier.DPThresholdClassifier"
_AROUND_KINDS = frozenset({_THRESHOLD_KIND, _CALIBRATED_KIND, _PURPOSE_KIND})
"""Classifiers around one that was fitted, `estimator_`, whose scores they follow."""

METHODS_OF_OUTPUTS = ("predict", "predict_proba", "decision_function", "transform")


def to_onnx(model: Any, *, integers: Iterable[str] = ()) -> Any:
    """Convert a fitted model to ONNX, so that it predicts without skdp.

    The graph takes raw columns and treats them as the model does: gaps, categories that are not listed, numbers beyond
    bounds, rows longer than `data_norm_`. It computes in float64.

    Parameters
    ----------
    model : estimator
        Fitted classifier, regressor, clustering or transformer of skdp; a pipeline or a search of them; around one of
        them a `DPCalibratedClassifier`, a `DPThresholdClassifier` without subgroups, or a ``FixedThresholdClassifier``
        of scikit-learn. Before, behind and between them may stand a few steps
        of scikit-learn (``Normalizer``, ``Binarizer``, ``StandardScaler``, ``MinMaxScaler``, ``MaxAbsScaler``,
        ``PolynomialFeatures``, ``SimpleImputer``), which skl2onnx converts.
    integers : iterable of str, default=()
        Names of inputs, columns of numbers or "X", that are int64 where the model is served. The graph casts them, so
        that it takes integer columns of a frame as they are.

    Returns
    -------
    onnx.ModelProto
        Each output has the name of the method whose result it is: "predict", "predict_proba", "decision_function", or
        "transform". If the columns had names in ``fit``, or some of them hold text or dates, each is an input of its
        name, of shape (N, 1): numbers and dates are float64, dates as days since 1970 in UTC, NaN is a gap; levels are
        text, ``""`` a gap, or float64 if the type of the column was one of numbers in ``fit``. All else is one input
        "X", of shape (N, `n_features_in_`). The metadata entry "skdp" is JSON: version, price and noise of the
        fit, and what each input holds.

    Raises
    ------
    ImportError
        onnx is not there, or skl2onnx, where a step of scikit-learn needs it.
    TypeError, ValueError
        The model, or a step of it, has no such form. The message names it.
    NotFittedError
        The model is not fitted.

    See Also
    --------
    skops_types : Files of fitted models, to be loaded without pickle.

    Notes
    -----
    **Guarantees.**

    - The graph is a function of the fitted state, which is released already: it costs nothing.
    - Of a ledger nothing is written: no path, label, note, refusal or other charge. The metadata hold what
      `skdp.export.facts.FACTS` lists.

    Rows that the model refuses, such as rows with NaN for a linear model, get NaN as probabilities and targets; a class
    is asked for at a place where there is none, so that the run fails.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLogisticRegression
    >>> from skdp.export import to_onnx
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(1000, 2))
    >>> model = DPLogisticRegression(classes=[0, 1]).fit(X, (X[:, 0] > 0).astype(int))
    >>> [output.name for output in to_onnx(model).graph.output]
    ['predict', 'predict_proba', 'decision_function']
    """
    check_is_fitted(model)
    graph = OnnxGraph()
    rows, inputs = declare_inputs(graph, first_step(model), METHODS_OF_OUTPUTS, integers)
    for name, made in _outputs_of(graph, model, rows).items():
        graph.output(name, made.tensor, ["N"] if made.width is None else ["N", made.width], made.dtype)
    facts = {**facts_of(model), "inputs": inputs}
    return graph.model({"skdp": json.dumps(facts)})


def first_step(model: Any) -> Any:
    """Return the fitted step that raw columns come to."""
    kind = _kind_of(model)
    if kind in _SEARCH_KINDS:
        return first_step(model.best_estimator_)
    if kind in _AROUND_KINDS:
        return first_step(model.estimator_)
    if kind in _PIPELINE_KINDS:
        return first_step(next((step for _, step in model.steps if not _passes(step)), model.steps[-1][1]))
    return model


def _kind_of(model: Any) -> str:
    """Name of the class that an object is exactly of: one that derives from a listed class may do more, and is none."""
    return f"{type(model).__module__}.{type(model).__qualname__}"


def _passes(step: Any) -> bool:
    """Whether a step of a pipeline hands rows on as they are."""
    return step is None or (isinstance(step, str) and step == "passthrough")


def _outputs_of(graph: OnnxGraph, model: Any, rows: OnnxRows) -> OnnxOutputs:
    kind = _kind_of(model)
    if kind in _SEARCH_KINDS:
        return _outputs_of(graph, model.best_estimator_, rows)
    if kind in _AROUND_KINDS:
        return _AROUND[kind](graph, model, _outputs_of(graph, model.estimator_, rows))
    if kind in _PIPELINE_KINDS:
        for _, step in model.steps[:-1]:
            rows = rows if _passes(step) else _transformed(graph, step, rows)
        return _outputs_of(graph, model.steps[-1][1], rows)
    found = None if _passes(model) else predict(graph, model, rows, kind)
    return _named_columns(graph, model, rows) if found is None else found


def _transformed(graph: OnnxGraph, step: Any, rows: OnnxRows) -> OnnxRows:
    kind = _kind_of(step)
    if kind in _PIPELINE_KINDS:
        for _, each in step.steps:
            rows = rows if _passes(each) else _transformed(graph, each, rows)
        return rows
    made = transform(graph, step, rows, kind)
    made = convert(graph, step, rows, kind) if made is None else made
    if made is None:
        raise TypeError(f"{type(step).__name__} has no ONNX form here: leave it out, or replace it by a step that has.")
    return made


def _named_columns(graph: OnnxGraph, model: Any, rows: OnnxRows) -> OnnxOutputs:
    """Return what a transformer makes: a matrix, or one output a column if some hold text."""
    made = rows if _passes(model) else _transformed(graph, model, rows)
    if any(column.is_text for column in made.columns.values()):
        return {
            f"transform_{j}": OnnxOutput(column.tensor, 1, object if column.is_text else np.float64)
            for j, column in made.columns.items()
        }
    return {"transform": OnnxOutput(made.numbers(graph, model), made.width)}


def _at_threshold(graph: OnnxGraph, model: Any, found: OnnxOutputs) -> OnnxOutputs:
    """Return the outputs of a classifier whose class is chosen by a threshold of scikit-learn's."""
    classes = model.classes_
    if len(classes) != 2 or ("decision_function" not in found and model.response_method == "decision_function"):
        raise TypeError(f"{type(model).__name__} is around no classifier of two classes: convert its estimator_.")
    positive = 1 if model.pos_label is None else int(np.flatnonzero(classes == model.pos_label)[0])
    by_probability = model.response_method == "predict_proba" or (
        model.response_method == "auto" and "predict_proba" in found
    )
    if by_probability:
        scores = graph.op("Gather", found["predict_proba"].tensor, np.array(positive), axis=1)
    else:
        decision = found["decision_function"].tensor
        scores = decision if positive else graph.op("Neg", decision)
    threshold = (0.5 if by_probability else 0.0) if model.threshold == "auto" else float(model.threshold)
    reached = graph.as_whole(graph.op("GreaterOrEqual", scores, threshold))
    place = reached if positive else graph.op("Sub", np.array(1), reached)
    column = graph.op("Unsqueeze", scores, np.array([1]))
    return {**found, "predict": class_at(graph, classes, place, column)}


def _calibrated(graph: OnnxGraph, model: Any, found: OnnxOutputs) -> OnnxOutputs:
    """Return the outputs of `DPCalibratedClassifier`: mapped scores. NaN is of a row that the estimator refuses."""
    chances = _mapped(graph, model.map_, graph.between(_score_of_two(graph, model, found), 0.0, 1.0))
    rest = graph.op("Sub", 1.0, chances)
    best = graph.as_whole(graph.op("Squeeze", graph.op("Greater", chances, rest), np.array([1])))
    return {
        "predict": class_at(graph, model.classes_, best, chances),
        "predict_proba": OnnxOutput(graph.op("Concat", rest, chances, axis=1), 2),
    }


def _mapped(graph: OnnxGraph, each: Any, scores: str) -> str:
    """Return what a map of `skdp.calibration.calibrated_classifier` makes of scores in [0, 1], of shape (N, 1)."""
    if hasattr(each, "slope"):
        kept = graph.between(scores, LEAST_SCORE, 1.0 - LEAST_SCORE)
        logit = graph.op("Sub", graph.op("Log", kept), graph.op("Log", graph.op("Sub", 1.0, kept)))
        return graph.op("Sigmoid", graph.op("Add", graph.op("Mul", logit, float(each.slope)), float(each.offset)))
    x, y = np.asarray(each.x, np.float64), np.asarray(each.y, np.float64)
    place = graph.count_passed(scores, x)  # 0 before the first point, and from the last one on their number
    slopes = np.concatenate([[0.0], np.diff(y) / np.diff(x), [0.0]])

    def here(values: Any) -> str:
        return graph.op("Gather", values, place)

    from_point = graph.op("Sub", scores, here(np.concatenate([x[:1], x])))
    return graph.op("Add", here(np.concatenate([y[:1], y])), graph.op("Mul", here(slopes), from_point))


def _at_purpose(graph: OnnxGraph, model: Any, found: OnnxOutputs) -> OnnxOutputs:
    """Return the outputs of `DPThresholdClassifier`, whose thresholds are of all rows alike here."""
    if model.by is not None:
        raise TypeError(
            f"{type(model).__name__} with by={model.by!r} reads subgroups, which no graph does here: convert its "
            "estimator_, and compare scores with thresholds_."
        )
    scores = _score_of_two(graph, model, found)
    reached = graph.as_whole(graph.op("GreaterOrEqual", scores, float(model.thresholds_["all"])))
    return {**found, "predict": class_at(graph, model.classes_, graph.op("Squeeze", reached, np.array([1])), scores)}


def _score_of_two(graph: OnnxGraph, model: Any, found: OnnxOutputs) -> str:
    """Return scores as `skdp.evaluation` counts them, of shape (N, 1)."""
    if "predict_proba" not in found:
        raise TypeError(f"{type(model).__name__} is around a classifier without probabilities: convert its estimator_.")
    return graph.op("Gather", found["predict_proba"].tensor, np.array([1]), axis=1)


_AROUND = {_THRESHOLD_KIND: _at_threshold, _CALIBRATED_KIND: _calibrated, _PURPOSE_KIND: _at_purpose}
