"""The state of a model as skops writes and reads it: plain values, arrays and nested estimators.

`skops.io` calls ``__getstate__`` and ``__setstate__`` of an object of a trusted type, recursively. So that the public
classes are the only types to be trusted, the private classes of a state are written as plain values under their names,
and events as in a budget file. Only classes that are listed here are read again. No value of a file is called or
imported. Pickle and copy use ``__reduce_ex__``, which keeps the complete state, as a `CompleteState`.
"""

from __future__ import annotations

import warnings
from contextvars import ContextVar
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.exceptions import InconsistentVersionWarning

from skdp import __version__
from skdp._checks.groups import ROW
from skdp._checks.parameters import is_private, show
from skdp.accounting import DpEvent, compose, flatten, get_epsilon
from skdp.accounting.ledger.serial import event_from_dict, event_to_dict

_PARTS = {
    name: f"skdp.{module}"
    for module, names in {
        "_checks.leaks": ("Leak",),
        "_checks.targets": ("TargetScale",),
        "base.budget": ("Release",),
        "accounting.methods": ("AddRemove",),
        "accounting.statements.targets": ("Risk",),
        "model_selection.calibrated_classifier": ("LogitMap",),
        "ensemble.regressor": ("TargetUnits",),
        "ensemble.trees": ("Trees",),
        "metrics.replicates": ("Replicates",),
        "image.features": ("ImageFeatures", "PatchFeatures", "Whitening", "Path", "Scattering"),
        "image.reading": ("ImageLayout",),
        "linear_model.inference": ("Inference", "NewtonPath"),
        "mechanisms.second_moments": ("UnitBall",),
        "model_selection.scores": ("Errors", "PrivateScore"),
        "preprocessing.column_estimates": ("Remains",),
        "preprocessing.schema.blocks": ("Block",),
        "preprocessing.schema.column": ("Column",),
        "synthesis.class_mixture": ("ClassMixture",),
        "synthesis.marginals.column_levels": ("BinShapes", "LevelColumn"),
        "synthesis.marginals.contingency_tables": ("Interaction",),
        "synthesis.marginals.noisy_tables": ("Measurement", "ModelTerms"),
        "synthesis.marginals.sampled_tables": ("Redrawing",),
        "synthesis.marginals.table_form": ("TableForm",),
    }.items()
    for name in names
}
"""Private classes of values in a state, and their modules; read by their fields, without a constructor."""

_SEQUENCES = {"frozenset": frozenset, "range": range, "set": set}
_LEFT_OUT = ("accountant", "checkpoint", "memory", "random_state")
"""Parameters that are written as None: the accountant, paths and the seed."""
_OTHER_NAMES = ("_has_weights", "_noise_is_allotted", "_sklearn_output_config")

_KIND, _VALUE = "skdp", "value"
_FORMAT = "state of format 1"
_LEAST_DELTA = 1e-100  # at which the epsilon of a pure guarantee is compared

_is_pickled: ContextVar[bool] = ContextVar("_is_pickled", default=False)


class CompleteState(dict[str, Any]):
    """The state that is pickled and copied. It is not a trusted type, so that no file of skops can contain it."""


class PlainState:
    """Mixin of public estimators, to stand before ``BaseEstimator`` among the bases of a class."""

    def __getstate__(self) -> dict[str, Any]:
        """Return the state that skops writes; to pickle and copy, the complete one."""
        state: Any = super().__getstate__()
        return state if _is_pickled.get() else plain_state(state)

    def __reduce_ex__(self, protocol: Any) -> Any:
        token = _is_pickled.set(True)
        try:
            reduced: Any = super().__reduce_ex__(protocol)
        finally:
            _is_pickled.reset(token)
        make, given, state, *rest = reduced
        return make, given, CompleteState(state, _skdp_version=__version__), *rest

    def __setstate__(self, state: dict[str, Any]) -> None:
        name = type(self).__name__
        if isinstance(state, CompleteState):
            written = state.pop("_skdp_version", "before 1.0")
            if written != __version__:
                told = InconsistentVersionWarning(
                    estimator_name=name, current_sklearn_version=__version__, original_sklearn_version=written
                )
                warnings.warn(told, stacklevel=2)
            super().__setstate__(state)  # type: ignore[misc]
            return
        if set(state) != {_KIND, _VALUE} or state[_KIND] != _FORMAT:
            raise ValueError(
                f"The saved state of a {name} must be a {_FORMAT!r}, got {show(state.get(_KIND))}. "
                "Load the file with the version of skdp that saved it."
            )
        vars(self).update(read_state(self, state))
        check_epsilon(self)


def plain_state(state: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a model as plain values, without seed, paths and accountant."""
    plain = {name: None if name in _LEFT_OUT else to_plain(value) for name, value in state.items()}
    return {_KIND: _FORMAT, _VALUE: {name: value for name, value in plain.items() if name != "_lineage"}}


def read_state(model: Any, content: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes that `plain_state` wrote; any name that a fit does not set is rejected."""
    parameters = set(model._get_param_names())
    state = {name: from_plain(value) for name, value in content[_VALUE].items()}
    for name, value in state.items():
        is_learned = name.startswith("_fitted") or (name.endswith("_") and name[0] != "_")
        if not (is_learned or name in parameters or name in _OTHER_NAMES):
            raise ValueError(f"{name!r} is not an attribute of a fitted {type(model).__name__}. The file was altered.")
        if name in _LEFT_OUT and value is not None:
            raise ValueError(f"{name!r} is never saved. The file was altered.")
    return state


def check_epsilon(model: Any) -> None:
    """Reject a model whose epsilon is below the cost of its events, or whose guarantee differs from its releases."""
    state = vars(model)
    releases = state.get("_fitted_releases", ())
    stated = state.get("adjacency_"), state.get("privacy_unit_", ROW)
    if any((each.adjacency, each.unit) != stated for each in releases):
        raise ValueError(
            f"The guarantee of this {type(model).__name__} does not match its releases. The file was altered."
        )
    if "privacy_event_" not in state and ("epsilon_" not in state or not is_private(model)):
        return  # without a privacy cost, or computed from the releases whenever it is read
    event = state.get("privacy_event_")
    if compose(each.event for each in releases) != event:
        raise ValueError(
            f"privacy_event_ of this {type(model).__name__} does not match its releases. The file was altered."
        )
    if not flatten(event):
        return
    delta = max(model.delta_, _LEAST_DELTA)
    found = get_epsilon(event, delta, adjacency=model.adjacency_)
    if not state["epsilon_"] >= found * (1.0 - 1e-6):
        raise ValueError(
            f"epsilon_={state['epsilon_']:.6g} of this {type(model).__name__} is below the privacy cost {found:.6g} "
            "of its events. The file was altered."
        )


# --- values ---


def to_plain(value: Any) -> Any:
    """Return a value without private classes; classes that are not of skdp are left to skops."""
    kind = type(value)
    if isinstance(value, DpEvent):
        return _named("event", event_to_dict(value))
    if kind in (list, tuple):
        return kind(map(to_plain, value))
    if kind is dict:
        if all(isinstance(key, str) for key in value) and _KIND not in value:
            return {key: to_plain(each) for key, each in value.items()}
        return _named("dict", [[to_plain(key), to_plain(each)] for key, each in value.items()])
    if kind is range:
        return _named("range", [value.start, value.stop, value.step])
    if kind in (set, frozenset):
        return _named(kind.__name__, sorted(map(to_plain, value)))
    if isinstance(value, np.dtype):
        return _named("dtype", value.str)
    if kind.__module__.startswith("skdp."):
        return _part_to_plain(value)
    if kind.__module__.partition(".")[0] == "pandas" and kind.__name__.endswith("Dtype"):
        return _named("pandas dtype", str(value))
    return value


def _part_to_plain(value: Any) -> Any:
    name = type(value).__name__
    if name == "TableSchema":
        return _named("schema", value.to_json())
    if _PARTS.get(name) != type(value).__module__:
        return value  # an estimator, which has a state of its own
    if name == "PrivateScore" and import_module("skdp.model_selection.scores").SCORES.get(value.name) == value:
        return _named("score", value.name)
    fields = list(value) if isinstance(value, tuple) else [[key, each] for key, each in vars(value).items()]
    return _named(name, to_plain(fields))


def _named(kind: str, value: Any) -> dict[str, Any]:
    return {_KIND: kind, _VALUE: value}


def from_plain(content: Any) -> Any:
    """Return the value that `to_plain` wrote."""
    kind = type(content)
    if kind in (list, tuple):
        return kind(map(from_plain, content))
    if kind is not dict:
        return content
    if _KIND not in content:
        return {key: from_plain(each) for key, each in content.items()}
    named, value = content[_KIND], content[_VALUE]
    if named == "event":
        return event_from_dict(value)
    if named == "dict":
        return {from_plain(key): from_plain(each) for key, each in value}
    if named == "schema":
        return import_module("skdp.preprocessing.schema.table_schema").TableSchema.from_json(value)
    if named == "score":
        return import_module("skdp.model_selection.scores").SCORES[value]
    if named == "dtype":
        return np.dtype(value)
    if named == "pandas dtype":
        return import_module("pandas").api.types.pandas_dtype(value)
    if named in _SEQUENCES:
        return range(*value) if named == "range" else _SEQUENCES[named](map(from_plain, value))
    if named in _PARTS:
        return _part_of(getattr(import_module(_PARTS[named]), named), from_plain(value))
    raise ValueError(f"{named!r} is not an allowed type in a saved model. The file was altered.")


def _part_of(made_of: type, fields: Any) -> Any:
    if issubclass(made_of, tuple):
        return made_of(*fields)
    made = object.__new__(made_of)
    for name, value in fields:
        if not name.isidentifier() or (hasattr(made_of, name) and callable(getattr(made_of, name))):
            raise ValueError(f"{name!r} is not a field of {made_of.__name__}. The file was altered.")
        object.__setattr__(made, name, value)
    return made
