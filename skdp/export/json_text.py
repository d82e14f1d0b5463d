"""`to_json` and `from_json`: the fitted state as text, of public attributes alone."""

from __future__ import annotations

import importlib
import json
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdp._checks.leaks import Leak
from skdp._checks.notices import note_notice
from skdp.export.facts import facts_of
from skdp.export.json_values import from_plain, to_plain
from skdp.export.kinds import SEARCH_KINDS, kind_of, passes

JSON_FORMAT = "skdp.export 1"

_CLASSES = {
    name: f"skdp.{module}"
    for module, names in {
        "linear_model.logistic": ("DPLogisticRegression",),
        "linear_model.least_squares": ("DPLinearRegression", "DPRidge"),
        "linear_model.ordinal": ("DPOrdinalLogisticRegression",),
        "linear_model.poisson": ("DPPoissonRegressor",),
        "neural_network.classifier": ("DPMLPClassifier",),
        "neural_network.regressor": ("DPMLPRegressor",),
        "ensemble.classifier": ("DPRandomTreesClassifier",),
        "ensemble.regressor": ("DPRandomTreesRegressor",),
        "ensemble.embedding": ("PublicTreesEmbedding",),
        "ensemble.isolation_forest": ("DPIsolationForest",),
        "naive_bayes": ("DPGaussianNB",),
        "cluster.kmeans": ("DPKMeans",),
        "decomposition": ("DPPCA",),
        "preprocessing.vectorizer": ("DPTableVectorizer",),
        "preprocessing.categories": ("DPOneHotEncoder",),
        "preprocessing.quantiles": ("DPQuantileBinner",),
        "preprocessing.scaler": ("DPStandardScaler",),
        "preprocessing.imputer": ("DPSimpleImputer",),
        "pipeline": ("PrivatePipeline",),
        "tabular": ("TabularPipeline",),
    }.items()
    for name in names
}
"""Classes that are written and read, and the module of each: no other name in a text is looked up."""

_LEFT_OUT = ("accountant", "checkpoint", "memory", "n_jobs", "random_state", "steps", "verbose")
"""Parameters that are not written: paths, the seed, and what is no matter of the model."""

_DERIVED = ("_fitted_blocks", "_fitted_plain", "_fitted_ball", "_fitted_scale", "_fitted_words", "_fitted_centers")
"""State that is computed anew from public attributes."""

_INSIDE = ("embedding_", "_fitted_rows")
"""Fitted estimators that some estimators consist of."""


def to_json(model: Any) -> str:
    """Return a fitted model as JSON: class, constructor parameters, public fitted attributes, and its price.

    Parameters
    ----------
    model : estimator
        Fitted estimator or transformer of skdp (generators and image transformers excepted), or a budgeted pipeline of
        these. Of a search its best estimator is written.

    Returns
    -------
    str
        JSON, without a seed, a path, or anything of a ledger but the price of the model itself.

    Raises
    ------
    TypeError
        The class, a step or a parameter has no form in JSON. The message names it.
    ValueError
        Parameters were changed after the fit, so that the attributes do not follow from them.
    NotFittedError
        The model is not fitted.

    See Also
    --------
    from_json : Read it.
    to_onnx : A graph that predicts without skdp.

    Notes
    -----
    **Guarantees.**

    - The text is a function of the fitted state, which is released already: it costs nothing.
    - Of a ledger nothing is written but the event of the model itself: no path, label, note, refusal or other charge.
      No seed is written.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPGaussianNB
    >>> from skdp.export import from_json, to_json
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(1000, 2))
    >>> model = DPGaussianNB(classes=[0, 1], bounds=(-1, 1)).fit(X, (X[:, 0] > 0).astype(int))
    >>> again = from_json(to_json(model))
    >>> bool((again.predict_proba(X) == model.predict_proba(X)).all()), again.epsilon_ == model.epsilon_
    (True, True)
    """
    check_is_fitted(model)
    if kind_of(model) in SEARCH_KINDS:
        return to_json(model.best_estimator_)
    node = _node_of(model)
    if not _is_the_same(model, _model_of(json.loads(json.dumps(node)))):
        raise ValueError(
            f"{type(model).__name__} has parameters that were changed after the fit: set them back, or fit again."
        )
    whole = {"format": JSON_FORMAT, **facts_of(model), "model": node}
    return json.dumps(whole, allow_nan=False)


def from_json(text: str) -> Any:
    """Read a fitted model from JSON.

    No code is run that a text could choose. Its figures, epsilon too, are what it says: read texts that you trust.

    Parameters
    ----------
    text : str
        What `to_json` returns.

    Returns
    -------
    estimator
        Fitted, equal to the one that was written; without accountant and seed.

    Raises
    ------
    ValueError
        The text is no JSON of that form.

    See Also
    --------
    to_json : Write it.
    """
    model = None
    try:
        found = json.loads(text)
        if found["format"] == JSON_FORMAT:
            model = _model_of(found["model"])
    except Exception:  # whatever is wrong with it
        pass
    if model is None:
        raise ValueError(f"text is no model of the form {JSON_FORMAT!r}: give what to_json returns.")
    return model


# --- writing ---


def _node_of(model: Any) -> dict[str, Any]:
    name = type(model).__name__
    if kind_of(model) != f"{_CLASSES.get(name, '')}.{name}":
        raise TypeError(f"{name} has no form in JSON here: export its parts, or use to_onnx.")
    given = {key: value for key, value in model.get_params(deep=False).items() if key not in _LEFT_OUT}
    node: dict[str, Any] = {
        "class": name,
        "parameters": {key: to_plain(f"{name}.{key}", value) for key, value in given.items()},
        "attributes": {
            key: to_plain(f"{name}.{key}", value)
            for key, value in vars(model).items()
            if _is_public_result(key) and key not in _INSIDE
        },
        "leaks": [list(leak) for leak in vars(model).get("_fitted_leaks", ())] or None,
        "groups": vars(model).get("_fitted_group_name"),
        "types": vars(model).get("_fitted_kinds"),
        "bought": list(vars(model).get("_fitted_bought", ())),
        "remains": {key: list(each) for key, each in vars(model).get("_fitted_remains", {}).items()},
        "notices": list(vars(model).get("_fitted_notices", {})),
    }
    if hasattr(model, "steps"):
        node["steps"] = [[key, step if passes(step) else _node_of(step)] for key, step in model.steps]
        node["event"] = to_plain(name, model.privacy_event_)
    inside = {key: vars(model)[key] for key in _INSIDE if key in vars(model)}
    return {**node, "inside": {key: _node_of(each) for key, each in inside.items()}}


def _is_public_result(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_")


def _is_the_same(model: Any, again: Any) -> bool:
    """Whether what was computed anew is what the model has."""
    if hasattr(model, "steps"):
        pairs = [(one, other) for (_, one), (_, other) in zip(model.steps, again.steps, strict=True)]
        return all(_is_the_same(one, other) for one, other in pairs if not passes(one))
    if any(repr(vars(model).get(name)) != repr(vars(again).get(name)) for name in _DERIVED):
        return False
    if "_fitted_trees" in vars(model):
        drawn = vars(again._fitted_trees)
        return all(np.array_equal(each, drawn[key], equal_nan=True) for key, each in vars(model._fitted_trees).items())
    return all(_is_the_same(vars(model)[key], vars(again)[key]) for key in _INSIDE if key in vars(model))


# --- reading ---


def _model_of(node: dict[str, Any]) -> Any:
    name = node["class"]
    made_of = getattr(importlib.import_module(_CLASSES[name]), name)
    if set(node["parameters"]) & set(_LEFT_OUT):
        raise ValueError(name)
    parameters = {key: from_plain(value, _schema_of) for key, value in node["parameters"].items()}
    if "steps" in node:
        parameters["steps"] = [(key, step if passes(step) else _model_of(step)) for key, step in node["steps"]]
    model = made_of(**parameters)
    for key, value in node["attributes"].items():
        if not _is_public_result(key):
            raise ValueError(key)
        setattr(model, key, from_plain(value, _schema_of))
    for key, inside in node["inside"].items():
        if key not in _INSIDE:
            raise ValueError(key)
        setattr(model, key, _model_of(inside))
    if node["leaks"] is not None:
        model._fitted_leaks = tuple(Leak(*map(str, leak)) for leak in node["leaks"])
    if node["groups"] is not None:
        model._fitted_group_name = str(node["groups"])
    if node["types"] is not None:
        model._fitted_kinds = {str(key): str(value) for key, value in node["types"].items()}
    if node["bought"]:
        model._fitted_bought = tuple(map(str, node["bought"]))
    if node["remains"]:
        left = importlib.import_module("skdp.preprocessing.remains").Remains  # of a room above this one, as all classes
        model._fitted_remains = {
            str(key): left(str(kind), float(share), float(deviation))
            for key, (kind, share, deviation) in node["remains"].items()
        }
    for text in reversed(node["notices"]):  # the latest is the first
        note_notice(model, str(text))
    if hasattr(model, "_derive_state"):
        model._derive_state()
    event = from_plain(node["event"], _schema_of) if "event" in node else vars(model).get("privacy_event_")
    if event is not None:
        model._depend_on(event)
    return model


def _schema_of(text: str) -> Any:
    return importlib.import_module("skdp.preprocessing.schema.table_schema").TableSchema.from_json(text)


__all__ = ["JSON_FORMAT", "from_json", "to_json"]
