"""Whose code a private estimator is fitted by: other people's meta-estimators read rows that nobody pays for."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import weakref
from collections.abc import Iterator
from types import FrameType
from typing import Any, NamedTuple

import joblib

from skdp._config import leaks_are_errors, report_leak
from skdp._fitting.public_steps import is_ours, parts_of, walk

_SCORES = (
    "the scores of this search or cross-validation are computed on private rows and are not paid for, nor is a choice "
    "by them: use skdp.DPGridSearchCV, or score on public rows and ignore this warning"
)
_EACH_CLASS = (
    "one fit for each class or pair of classes, each of which spends the budget again, and classes are read from y: "
    "use the private classifier alone with classes=[...], which learns several classes for one budget"
)
_EACH_OUTPUT = (
    "one fit for each output, each of which spends the budget again: use skdp.DPMLPClassifier, which learns several "
    "labels for one budget"
)
_VOTING = (
    "each of its estimators that is private spends a budget of its own, which no epsilon_ adds up, and what the others "
    "read, the classes of y included, is not paid for: use one private estimator"
)
_STACKING = (
    "the final estimator is fitted to predictions of private rows, which is not paid for, and each of the cv + 1 fits "
    "of an estimator spends the budget again: use one private estimator"
)
_BAGGING = (
    "each of the n_estimators fits spends the budget again, and bootstrap=True draws a row several times, which "
    "multiplies its influence beyond the price: use one private estimator, whose averaging does the same"
)
_RFE = (
    "each round of the elimination is a fit that spends the budget again, and epsilon_ is that of the last one alone: "
    "choose columns by public knowledge, or use skdp.DPPCA"
)
_KNOWN = {
    "CalibratedClassifierCV": "it is calibrated by private rows, which is not paid for, and each fold is a fit "
    "that spends the budget again: fit the private classifier first and calibrate it on public rows with "
    "CalibratedClassifierCV(FrozenEstimator(fitted))",
    "TunedThresholdClassifierCV": "the threshold is chosen by scores of private rows, which is not paid for, and each "
    "fold is a fit that spends the budget again: use FixedThresholdClassifier with a threshold found on public rows",
    "RFE": _RFE,
    "RFECV": "columns are chosen by scores of private rows, which is not paid for, and each round of each fold is a "
    "fit that spends the budget again: choose columns by public knowledge, or use skdp.DPPCA",
    "SequentialFeatureSelector": "columns are chosen by scores of private rows, which is not paid for, and each "
    "column tried is cv fits that spend the budget again: choose columns by public knowledge, or use skdp.DPPCA",
    "SelectFromModel": "its fit spends a whole budget, which no later step's epsilon_ includes, and a max_features "
    "that is a function reads the rows: choose columns by public knowledge, or use skdp.DPPCA",
    "cross_val_predict": "each fold is a fit that spends the budget again, and the predictions are of private rows: "
    "what is computed from them is not paid for; predict public rows",
    "permutation_test_score": _SCORES,
    "learning_curve": _SCORES,
    "VotingClassifier": _VOTING,
    "VotingRegressor": _VOTING,
    "StackingClassifier": _STACKING,
    "StackingRegressor": _STACKING,
    "OneVsRestClassifier": _EACH_CLASS,
    "OneVsOneClassifier": _EACH_CLASS,
    "OutputCodeClassifier": _EACH_CLASS,
    "MultiOutputClassifier": _EACH_OUTPUT,
    "MultiOutputRegressor": _EACH_OUTPUT,
    "ClassifierChain": _EACH_OUTPUT,
    "RegressorChain": _EACH_OUTPUT,
    "BaggingClassifier": _BAGGING,
    "BaggingRegressor": _BAGGING,
    "AdaBoostClassifier": "rows are weighted by their errors, which is not paid for, and each of the n_estimators fits "
    "spends the budget again: use one private estimator",
    "SelfTrainingClassifier": "labels are made by predictions of private rows, so one row changes those of others "
    "beyond the price, and each round is a fit that spends the budget again: use one private estimator",
    "TransformedTargetRegressor": "the target is transformed by what is read from y, which is not paid for: transform "
    "y by a public function first",
}
"""What is read for nothing and how often the budget is spent, by the name of a class or function of scikit-learn's."""

_PARTS = (
    "other parts of a FeatureUnion or ColumnTransformer may read rows that nobody pays for: use skdp.allocate_budget"
)
_FUNCTIONS = {
    "_fit_and_score": ("a search or cross-validation", _SCORES),
    "_permutation_test_score": ("permutation_test_score", _SCORES),
    "_incremental_fit_estimator": ("learning_curve", _SCORES),
    "_fit_and_predict": ("cross_val_predict", _KNOWN["cross_val_predict"]),
    "_rfe_single_fit": ("RFECV", _KNOWN["RFECV"]),
    "_fit_and_score_over_thresholds": ("TunedThresholdClassifierCV", _KNOWN["TunedThresholdClassifierCV"]),
    "_fit_classifier_calibrator_pair": ("CalibratedClassifierCV", _KNOWN["CalibratedClassifierCV"]),
    "_fit_single_estimator": ("an ensemble", _VOTING),
    "_fit_binary": ("a classifier of classes one by one", _EACH_CLASS),
    "_partial_fit_binary": ("a classifier of classes one by one", _EACH_CLASS),
    "_fit_estimator": ("an estimator of outputs one by one", _EACH_OUTPUT),
    "_partial_fit_estimator": ("an estimator of outputs one by one", _EACH_OUTPUT),
    "_parallel_build_estimators": ("a bagging ensemble", _BAGGING),
    "_fit_transform_one": ("FeatureUnion or ColumnTransformer", _PARTS),
}
"""Functions of scikit-learn's that fit, by name: in a worker thread nothing else of the composition is on the stack."""

_TITLES = {title for title, _ in _FUNCTIONS.values()}
_SEARCHES, _SILENT, _STEPS = (
    {"BaseSearchCV"},
    {"FixedThresholdClassifier"},
    {"Pipeline", "FeatureUnion", "ColumnTransformer"},
)
_ABSORBED = {"RFECV": {"RFE"}}
_PASSES_ON = {"joblib", "threading", "multiprocessing", "concurrent", "contextlib", "functools", "queue"}
_FITS = ("fit", "_fit", "partial_fit", "_partial_fit")


class _Layer(NamedTuple):
    """A composition on the stack: its name, what is to be told (None: nothing), and the object it is known by."""

    title: str
    text: str | None
    owner: Any


def report_foreign_fit(estimator: Any) -> None:
    """Say, once a composition, that a private estimator is fitted inside code that reads rows for nothing.

    To be called inside ``fit``, before the charge. Looks up the stack for methods of estimators, and functions of
    scikit-learn's, that are not private; a private pipeline or search pays for what it calls.

    Parameters
    ----------
    estimator : object
        The one that is being fitted.

    Warns
    -----
    PrivacyLeakWarning
        Or raises it, each time, under ``config_context(on_leak="raise")``.
    """
    frames = list(_frames(sys._getframe().f_back))
    layers = _layers(frames, estimator)
    if not layers:
        return
    level = next((i for i, frame in enumerate(frames) if _origin(frame) == "other"), 0)
    for layer in layers:
        if layer.text is None:
            continue
        token = _token(layer, layers)
        with _lock:
            if _was_told(token, layer.title) and not leaks_are_errors():
                continue
            kind = type(estimator).__name__
            report_leak(f"{kind} is fitted inside {layer.title}: {layer.text}.", stacklevel=3 + level)
            _note(token, layer.title)


# --- the stack ---


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


_origins: dict[str, str] = {}


def _origin(frame: FrameType) -> str:
    """Whose code a frame runs: "ours", "sklearn", "between" (wrappers, threads), or "other"."""
    module = frame.f_globals.get("__name__")
    if not isinstance(module, str):
        return "other"
    if module not in _origins:
        _origins[module] = _origin_of(module)
    return _origins[module]


def _origin_of(module: str) -> str:
    top, *rest = module.split(".")
    if top == "sklearn":
        return "between" if rest[:1] in (["utils"], ["base"], ["callback"]) else "sklearn"
    if top == "skdp":
        return "ours"
    return "between" if top in _PASSES_ON else "other"


def _layers(frames: list[FrameType], estimator: Any) -> list[_Layer]:
    """The compositions on the stack, from the inside out."""
    found: list[_Layer] = []
    function: _Layer | None = None  # one of scikit-learn's whose caller is not known yet
    for frame in frames:
        origin = _origin(frame)
        if origin == "between":
            function = _of_one_run(frame, function)
            continue
        if origin == "ours":
            function = None
            continue
        owner = _owner(frame) if origin == "sklearn" or frame.f_code.co_name.startswith(_FITS) else None
        ours = owner is not None and (owner is estimator or is_ours(owner))
        if ours and origin == "sklearn":  # a private pipeline runs scikit-learn's code
            function = None
        elif owner is not None and not ours:
            found = _with_object(found, function, owner)
            function = None
        elif origin == "sklearn":
            function = _of_function(frame, function)
        elif function is not None:
            found, function = _around(found, function), None
    return found if function is None else _around(found, function)


def _owner(frame: FrameType) -> Any:
    """The estimator whose method a frame runs, or None."""
    try:
        code = frame.f_code
        scope = code.co_qualname.split(".")
        is_method = len(scope) > 1 and scope[-2] != "<locals>" and code.co_argcount > 0
        values = frame.f_locals
        owner = values.get("self", values.get(code.co_varnames[0]) if is_method else None)
        return owner if hasattr(type(owner), "fit") else None
    except Exception:  # whatever other people's classes do when they are looked at
        return None


def _of_function(frame: FrameType, inner: _Layer | None) -> _Layer | None:
    """The innermost function of scikit-learn's that is known to fit; failing that, the innermost of all."""
    name = frame.f_code.co_name
    if inner is not None and inner.title in _TITLES:
        return inner
    if name in _FUNCTIONS:
        return _Layer(*_FUNCTIONS[name], frame.f_locals.get("scorer"))
    if inner is not None or name.startswith("<"):
        return inner
    return _Layer(f"{name} of scikit-learn", _unknown_text(name), None)


def _of_one_run(frame: FrameType, function: _Layer | None) -> _Layer | None:
    """All tasks of one run of joblib share its ``Parallel`` or, in threads, the queue of their pool."""
    if function is None or frame.f_code.co_name not in ("__call__", "worker"):
        return function
    caller, queue = frame.f_locals.get("self"), frame.f_locals.get("inqueue")
    run = caller if isinstance(caller, joblib.Parallel) else queue
    return function if run is None else function._replace(owner=run)


def _unknown_text(name: str) -> str:
    return (
        f"skdp does not know what {name} reads of the rows; it is not paid for, and each fit spends the budget again: "
        "fit the private estimator directly, or in skdp.allocate_budget"
    )


def _with_object(found: list[_Layer], function: _Layer | None, owner: Any) -> list[_Layer]:
    """The layers, and that of an estimator around them; it speaks for the functions it calls."""
    if found and found[-1].owner is owner:
        return found
    name, kind = _known_name(owner), type(owner).__name__
    is_known = str(type(owner).__module__).startswith("sklearn.")  # a subclass may do anything
    if name in _SEARCHES:
        return [*(_around(found, function) if function else found), _Layer(kind, None, owner)]
    if name in _STEPS:
        inner = found[:-1] if found and _known_name(found[-1].owner) in _STEPS else found
        text = _text_of_steps(owner) or (None if is_known else _unknown_text(kind))
        return [*inner, _Layer(kind, text, owner)]
    if name in _SILENT and is_known:
        return [*found, _Layer(kind, None, owner)]
    return _around(found, _Layer(kind, _KNOWN.get(str(name)) or _unknown_text(kind), owner))


def _around(found: list[_Layer], layer: _Layer) -> list[_Layer]:
    absorbed = _ABSORBED.get(layer.title, set())
    return [*(each for each in found if each.title not in absorbed), layer]


def _known_name(owner: Any) -> str | None:
    """The class of scikit-learn's, by name, that an estimator is of or derives from, if it is in a table."""
    for cls in type(owner).__mro__:
        if str(cls.__module__).startswith("sklearn."):
            name = cls.__name__
            if name in _KNOWN or name in _SEARCHES or name in _SILENT or name in _STEPS:
                return name
    return None


# --- pipelines and unions ---


def _text_of_steps(owner: Any) -> str | None:
    """What the parts of a composition read for nothing, None if they read nothing and one of them pays."""
    try:
        private, faults = _sort_parts(owner)
    except Exception:  # other people's subclasses
        return _unknown_text(type(owner).__name__)
    told = []
    if faults:
        path, kind, reads, remedy = faults[0]
        what = f"its step {path!r} ({kind}) {reads}" if path else f"it {reads}"
        told.append(f"{what}, and that is not paid for; use {remedy}")
    if len(private) > 1:
        told.append(
            f"its private steps {private} spend a budget each, and the last one's epsilon_ does not include the others'"
        )
    return (
        f"{'; '.join(told)}: use skdp.allocate_budget(pipeline, ...), which checks and pays for all" if told else None
    )


def _sort_parts(owner: Any) -> tuple[list[str], list[tuple[str, str, str, str]]]:
    """Paths of the private parts, and faults of the others."""
    private, faults = [], []
    listed = list(walk(owner, ""))
    if len(listed) == 1:  # a subclass of a composition of scikit-learn's
        listed = [each for name, part in parts_of(owner) for each in walk(part, name)]
    for path, part, alone in listed:
        if is_ours(part) or (not parts_of(part) and _holds_ours(part)):
            private.append(path)
        else:
            faults += [(path, type(part).__name__, *fault) for fault in alone]
    return private, faults


def _holds_ours(part: Any) -> bool:
    return hasattr(part, "get_params") and any(is_ours(value) for value in part.get_params(deep=True).values())


# --- who has been told ---

_told: dict[int, tuple[weakref.ref[Any], set[str]]] = {}
_lock = threading.RLock()


def _renew_lock() -> None:
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)  # a thread that held it does not live on in a child


def _token(layer: _Layer, layers: list[_Layer]) -> Any:
    """What tells one composition from the next: the outermost object, as what is inside is often cloned for each fit.

    But a search that is fitted again is told of again: it is known by its run of joblib.
    """
    spoken = [each for each in layers if each.text is not None]
    first = [layer] if layer is spoken[-1] and layer.text is _SCORES else []
    for each in [*first, *reversed(layers)]:
        with contextlib.suppress(TypeError):
            weakref.ref(each.owner)
            return each.owner
    return None


def _was_told(token: Any, title: str) -> bool:
    entry = _told.get(id(token))
    return entry is not None and entry[0]() is token is not None and title in entry[1]


def _note(token: Any, title: str) -> None:
    if token is None:
        return
    key = id(token)
    entry = _told.get(key)
    if entry is None or entry[0]() is not token:
        with contextlib.suppress(TypeError):  # what cannot be referred to weakly is told of each time
            _told[key] = weakref.ref(token, lambda gone: _forget(key, gone)), {title}
    else:
        entry[1].add(title)


def _forget(key: int, gone: weakref.ref[Any]) -> None:
    if key in _told and _told[key][0] is gone:
        del _told[key]


__all__ = ["report_foreign_fit"]
