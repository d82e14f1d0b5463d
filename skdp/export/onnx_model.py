"""`to_onnx`: a fitted model as one ONNX graph, from raw columns to predictions.

Public scikit-learn steps in a graph are converted by skl2onnx, except three steps whose graphs differ from the steps in
float64, turn a row of zeros into NaN, or are not supported by a runtime.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

import skdp
from skdp._checks.leaks import SEED, UNKNOWN, leaks_of
from skdp.accounting.ledger.serial import event_to_dict
from skdp.export.onnx_graph import OPSETS, OnnxGraph, OnnxRows, declare_inputs
from skdp.export.onnx_steps import OnnxOutput, OnnxOutputs, class_at, predict, transform

FACTS = ("class", "epsilon", "delta", "unit", "adjacency", "event", "noise")
"""Exported facts of each private part. The accountant is not read: its paths, labels, notes and charges stay there."""


def facts_of(model: Any) -> dict[str, Any]:
    """Return the exported facts of a fitted model, in a form for JSON.

    Parameters
    ----------
    model : estimator
        Private, or a composition. One with its own privacy budget is one part.

    Returns
    -------
    dict
        The version of skdp, and the `FACTS` of each private part. "noise" is "secret", "seeded" or "not recorded".
    """
    return {"skdp": skdp.__version__, "privacy": [_facts_of_part(part) for part in _parts_with_cost(model)]}


def _parts_with_cost(model: Any) -> list[Any]:
    if hasattr(type(model), "_private_parts"):
        is_around = isinstance(getattr(model, "estimator", None), FrozenEstimator)  # fitted to other rows
        return [model, *_parts_with_cost(model.estimator_)] if is_around else [model]
    inner = [step for _, step in getattr(model, "steps", ())] or [getattr(model, "estimator_", None)]
    return [part for each in inner if each is not None and not isinstance(each, str) for part in _parts_with_cost(each)]


def _facts_of_part(part: Any) -> dict[str, Any]:
    kinds = {leak.kind for leak in leaks_of(part)}
    noise = "seeded" if SEED in kinds else "not recorded" if UNKNOWN in kinds else "secret"
    unit, event = getattr(part, "privacy_unit_", "row"), event_to_dict(part.privacy_event_)
    found = (type(part).__name__, float(part.epsilon_), float(part.delta_), unit, part.adjacency_, event, noise)
    return dict(zip(FACTS, found, strict=True))


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
"""Classes whose skl2onnx graphs are compared with them in the tests."""


def normalized(graph: OnnxGraph, step: Any, rows: str) -> str:
    """Divide rows by their norms, except rows with a norm close to zero."""
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
    """Replace NaN by the value of its column."""
    is_plain = isinstance(step.missing_values, float) and math.isnan(step.missing_values) and not step.add_indicator
    if not is_plain or len(step.statistics_) != step.n_features_in_ or np.isnan(step.statistics_.astype(float)).any():
        raise TypeError("SimpleImputer must have missing_values=nan and add_indicator=False for ONNX.")
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
    """Return the output rows of a scikit-learn step; None if it is not supported."""
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
        raise ImportError(f'{name} of scikit-learn requires skl2onnx. Run `pip install ".[onnx]"`.') from None
    made = None
    with contextlib.suppress(Exception):  # its message has many lines
        made = convert_sklearn(step, initial_types=[("rows", DoubleTensorType([None, width]))], target_opset=OPSETS)
    if made is None:
        raise TypeError(f"skl2onnx does not support {name} with these parameters. Remove or replace the step.")
    return graph.as_doubles(graph.inline(made.graph, rows))


LEAST_SCORE = 1e-12
"""See `skdp.model_selection.calibrated_classifier`."""

_PIPELINE_KINDS = frozenset(
    {
        "sklearn.pipeline.Pipeline",
        "skdp.pipeline.private_pipeline.PrivatePipeline",
        "skdp.pipeline.private_pipeline.PipelineSlice",
        "skdp.tabular.TabularPipeline",
    }
)
_SEARCH_KINDS = frozenset(
    {"skdp.model_selection.search.DPGridSearchCV", "skdp.model_selection.search.DPRandomizedSearchCV"}
)


def to_onnx(model: Any, *, integers: Iterable[str] = ()) -> Any:
    """Convert a fitted model to ONNX, for predictions without skdp.

    The graph takes raw columns and processes them as the model does: missing values, unlisted categories, numbers
    beyond bounds, and rows longer than `data_norm_`. It computes in float64. See ``docs/deployment.md``.

    Parameters
    ----------
    model : estimator
        Fitted classifier, regressor, clustering or transformer of skdp; a pipeline or a search of them; or a
        `DPCalibratedClassifier`, a `DPThresholdClassifier` without subgroups, or a ``FixedThresholdClassifier`` of
        scikit-learn with one of them. A pipeline can contain the scikit-learn steps ``Normalizer``, ``Binarizer``,
        ``StandardScaler``, ``MinMaxScaler``, ``MaxAbsScaler``, ``PolynomialFeatures`` and ``SimpleImputer``, which
        skl2onnx converts.
    integers : iterable of str, default=()
        Names of inputs, numeric columns or "X", that are int64 in deployment. The graph casts them, so that integer
        columns of a frame can be passed directly.

    Returns
    -------
    onnx.ModelProto
        Each output has the name of the corresponding method: "predict", "predict_proba", "decision_function", or
        "transform". If the columns had names in ``fit``, or some contain strings or dates, each is an input with its
        name, of shape (N, 1). Numbers and dates are float64, dates as days since 1970 in UTC, and NaN is a missing
        value. Categories are strings, ``""`` is a missing value, or float64 if the type of the column was numeric in
        ``fit``. Otherwise there is one input "X", of shape (N, `n_features_in_`). The metadata entry "skdp" is JSON:
        version, privacy parameters and noise of the fit, and the content of each input.

    Raises
    ------
    ImportError
        onnx is not installed, or skl2onnx, which scikit-learn steps require.
    TypeError, ValueError
        The model, or one of its steps, is not supported. The message names it.
    NotFittedError
        The model is not fitted.

    See Also
    --------
    skops_types : Files of fitted models, to be loaded without pickle.

    Notes
    -----
    **Guarantees.**

    - The graph is a function of the released fitted state, at no additional privacy cost.
    - Nothing of an accountant is written: no path, label, note, rejection or other charge. The metadata contain the
      facts that ``skdp.export.onnx_model.FACTS`` lists.

    Rows for which the model raises an error, such as rows with NaN for a linear model, have NaN as probabilities and
    targets. Their predicted class does not exist, so the run fails.

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
    taken = ("predict", "predict_proba", "decision_function", "transform")  # names of outputs
    rows, inputs = declare_inputs(graph, first_step(model), taken, integers)
    for name, made in _outputs_of(graph, model, rows).items():
        graph.output(name, made.tensor, ["N"] if made.width is None else ["N", made.width], made.dtype)
    facts = {**facts_of(model), "inputs": inputs}
    return graph.model({"skdp": json.dumps(facts)})


def first_step(model: Any) -> Any:
    """Return the fitted step that reads the raw columns."""
    kind = _kind_of(model)
    if kind in _SEARCH_KINDS:
        return first_step(model.best_estimator_)
    if kind in _AROUND:
        return first_step(model.estimator_)
    if kind in _PIPELINE_KINDS:
        return first_step(next((step for _, step in model.steps if not _passes(step)), model.steps[-1][1]))
    return model


def _kind_of(model: Any) -> str:
    """Name of the exact class of an object; a subclass of a supported class can differ, and is not supported."""
    return f"{type(model).__module__}.{type(model).__qualname__}"


def _passes(step: Any) -> bool:
    """Whether a step of a pipeline is an identity."""
    return step is None or (isinstance(step, str) and step == "passthrough")


def _outputs_of(graph: OnnxGraph, model: Any, rows: OnnxRows) -> OnnxOutputs:
    kind = _kind_of(model)
    if kind in _SEARCH_KINDS:
        return _outputs_of(graph, model.best_estimator_, rows)
    if kind in _AROUND:
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
        raise TypeError(f"{type(step).__name__} is not supported by to_onnx. Remove or replace the step.")
    return made


def _named_columns(graph: OnnxGraph, model: Any, rows: OnnxRows) -> OnnxOutputs:
    """Return the output of a transformer: a matrix, or one output per column if some are strings."""
    made = rows if _passes(model) else _transformed(graph, model, rows)
    if any(column.is_text for column in made.columns.values()):
        columns = ((j, column.tensor, object if column.is_text else np.float64) for j, column in made.columns.items())
        return {f"transform_{j}": OnnxOutput(tensor, 1, dtype) for j, tensor, dtype in columns}
    return {"transform": OnnxOutput(made.numbers(graph, model), made.width)}


def _at_threshold(graph: OnnxGraph, model: Any, found: OnnxOutputs) -> OnnxOutputs:
    """Return the outputs of a classifier whose class is chosen by a threshold of scikit-learn's."""
    classes = model.classes_
    if len(classes) != 2 or ("decision_function" not in found and model.response_method == "decision_function"):
        raise TypeError(f"{type(model).__name__} must contain a binary classifier. Convert its estimator_ instead.")
    positive = 1 if model.pos_label is None else int(np.flatnonzero(classes == model.pos_label)[0])
    method = model.response_method
    by_probability = method == "predict_proba" or (method == "auto" and "predict_proba" in found)
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
    """Return the outputs of `DPCalibratedClassifier`: mapped scores. NaN marks a row that the estimator rejects."""
    chances = _mapped(graph, model.map_, graph.between(_score_of_two(graph, model, found), 0.0, 1.0))
    rest = graph.op("Sub", 1.0, chances)
    best = graph.as_whole(graph.op("Squeeze", graph.op("Greater", chances, rest), np.array([1])))
    return {
        "predict": class_at(graph, model.classes_, best, chances),
        "predict_proba": OnnxOutput(graph.op("Concat", rest, chances, axis=1), 2),
    }


def _mapped(graph: OnnxGraph, each: Any, scores: str) -> str:
    """Return the values of a calibration map for scores in [0, 1], of shape (N, 1)."""
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
    """Return the outputs of `DPThresholdClassifier`, with one threshold for all rows."""
    if model.by is not None:
        raise TypeError(
            f"{type(model).__name__} must not have subgroups for ONNX, got by={model.by!r}. Convert its estimator_, "
            "and compare scores with thresholds_."
        )
    scores = _score_of_two(graph, model, found)
    reached = graph.as_whole(graph.op("GreaterOrEqual", scores, float(model.thresholds_["all"])))
    return {**found, "predict": class_at(graph, model.classes_, graph.op("Squeeze", reached, np.array([1])), scores)}


def _score_of_two(graph: OnnxGraph, model: Any, found: OnnxOutputs) -> str:
    """Return scores as in `skdp.metrics`, of shape (N, 1)."""
    if "predict_proba" not in found:
        raise TypeError(f"{type(model).__name__} must contain a classifier with probabilities. Convert its estimator_.")
    return graph.op("Gather", found["predict_proba"].tensor, np.array([1]), axis=1)


_AROUND = {
    "sklearn.model_selection._classification_threshold.FixedThresholdClassifier": _at_threshold,
    "skdp.model_selection.calibrated_classifier.DPCalibratedClassifier": _calibrated,
    "skdp.model_selection.threshold_classifier.DPThresholdClassifier": _at_purpose,
}
"""Classifiers around one that was fitted, `estimator_`, whose scores they follow."""
