"""Warnings about fits inside other meta-estimators, which read rows without paying for them.

The callers of a fit are found on the stack, from the inside out. A frame of scikit-learn or of another package that
runs a method of an estimator is a composition, such as a search or an ensemble. A function of scikit-learn that fits
stands for a composition whose object is on the stack of another thread or process.
"""

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
from skdp._fitting.leaks import CALLER, Leak
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
"""What is read without paying and how often the budget is spent, by name of a class or function of scikit-learn."""

_PARTS = "other parts of a FeatureUnion or ColumnTransformer may read rows without paying: use skdp.allocate_budget"
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
"""Functions of scikit-learn that fit, by name: in a worker thread no other frame of the composition is on the stack."""

_TITLES = {title for title, _ in _FUNCTIONS.values()}
_SEARCHES, _SILENT, _STEPS = (
    {"BaseSearchCV"},
    {"FixedThresholdClassifier"},
    {"Pipeline", "FeatureUnion", "ColumnTransformer"},
)
_ABSORBED = {"RFECV": {"RFE"}}  # compositions that are reported as part of another one
_PASSES_ON = {"joblib", "threading", "multiprocessing", "concurrent", "contextlib", "functools", "queue"}
_FITS = ("fit", "_fit", "partial_fit", "_partial_fit")


class _Layer(NamedTuple):
    """A composition on the stack: its name, the warning (None: no warning), and the object that identifies it."""

    title: str
    text: str | None
    owner: Any


def report_foreign_fit(estimator: Any) -> tuple[Leak, ...]:
    """Warn, once per composition, that a private estimator is fitted inside code that reads rows without paying.

    Called inside ``fit``, before the charge. It searches the stack for methods of estimators, and for functions of
    scikit-learn, that are not private. A private pipeline or search pays for what it calls.

    Parameters
    ----------
    estimator : object
        Estimator that is being fitted.

    Returns
    -------
    tuple of Leak
        What the compositions read, for the record of the fit, whether or not it was warned of before.

    Warns
    -----
    PrivacyLeakWarning
        A composition reads rows without paying. Under ``config_context(on_leak="raise")`` the warning is raised, each
        time.
    """
    frames = list(_iterate_frames(sys._getframe().f_back))
    layers = _find_layers(frames, estimator)
    if not layers:
        return ()
    kind = type(estimator).__name__
    level = next((i for i, frame in enumerate(frames) if _origin(frame) == "other"), 0)
    for layer in layers:
        if layer.text is None:
            continue
        token = _find_token(layer, layers)
        with _lock:
            if _was_reported(token, layer.title) and not leaks_are_errors():
                continue
            report_leak(f"{kind} is fitted inside {layer.title}: {layer.text}.", stacklevel=3 + level)
            _mark_reported(token, layer.title)
    # A search warns at the fits that it scores. The last one, of its best estimator, depends on the scores as well.
    texts = [(each.title, each.text or (_SCORES if _known_name(each.owner) in _SEARCHES else None)) for each in layers]
    return tuple(Leak(CALLER, f"It was fitted inside {title}: {text}.") for title, text in texts if text is not None)


# --- the stack ---


def _iterate_frames(frame: FrameType | None) -> Iterator[FrameType]:
    """Iterate over the stack, from the inside out."""
    while frame is not None:
        yield frame
        frame = frame.f_back


_origins: dict[str, str] = {}


def _origin(frame: FrameType) -> str:
    """Return the origin of a frame's code: "ours", "sklearn", "between" (wrappers, threads), or "other"."""
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


def _find_layers(frames: list[FrameType], estimator: Any) -> list[_Layer]:
    """Find the compositions on the stack, from the inside out."""
    found: list[_Layer] = []
    function: _Layer | None = None  # a function of scikit-learn whose caller is not known yet
    for frame in frames:
        origin = _origin(frame)
        if origin == "between":
            function = _identify_run(frame, function)
            continue
        # Our searches and pipelines pay for what they call through scikit-learn.
        if origin == "ours":
            function = None
            continue
        owner = _owner(frame) if origin == "sklearn" or frame.f_code.co_name.startswith(_FITS) else None
        ours = owner is not None and (owner is estimator or is_ours(owner))
        if ours and origin == "sklearn":  # a private pipeline runs scikit-learn's code
            function = None
        elif owner is not None and not ours:
            found = _add_object(found, function, owner)
            function = None
        elif origin == "sklearn":
            function = _match_function(frame, function)
        elif function is not None:  # user code called the function: the composition ends here
            found, function = _add_around(found, function), None
    return found if function is None else _add_around(found, function)


def _owner(frame: FrameType) -> Any:
    """Return the estimator whose method a frame runs, or None."""
    try:
        code = frame.f_code
        scope = code.co_qualname.split(".")
        is_method = len(scope) > 1 and scope[-2] != "<locals>" and code.co_argcount > 0
        values = frame.f_locals
        # Wrapped methods may name their first argument otherwise; nested functions are no methods.
        owner = values.get("self", values.get(code.co_varnames[0]) if is_method else None)
        return owner if hasattr(type(owner), "fit") else None
    except Exception:  # attribute access may run code of other classes, and must not end the fit
        return None


def _match_function(frame: FrameType, inner: _Layer | None) -> _Layer | None:
    """Return the innermost function of scikit-learn that is known to fit, or else the innermost of all."""
    name = frame.f_code.co_name
    if inner is not None and inner.title in _TITLES:
        return inner
    if name in _FUNCTIONS:
        return _Layer(*_FUNCTIONS[name], frame.f_locals.get("scorer"))
    if inner is not None or name.startswith("<"):
        return inner
    return _Layer(f"{name} of scikit-learn", _describe_unknown(name), None)


def _identify_run(frame: FrameType, function: _Layer | None) -> _Layer | None:
    """Identify a function by its run of joblib, as it may have no object of its own.

    All tasks of one run share its ``Parallel`` or, in threads, the queue of their pool.
    """
    if function is None or frame.f_code.co_name not in ("__call__", "worker"):
        return function
    caller, queue = frame.f_locals.get("self"), frame.f_locals.get("inqueue")
    run = caller if isinstance(caller, joblib.Parallel) else queue
    return function if run is None else function._replace(owner=run)


def _describe_unknown(name: str) -> str:
    return (
        f"skdp does not know what {name} reads of the rows; it is not paid for, and each fit spends the budget again: "
        "fit the private estimator directly, or in skdp.allocate_budget"
    )


def _add_object(found: list[_Layer], function: _Layer | None, owner: Any) -> list[_Layer]:
    """Add the layer of an estimator, which stands for the functions that it calls."""
    if found and found[-1].owner is owner:
        return found
    name, kind = _known_name(owner), type(owner).__name__
    is_known = str(type(owner).__module__).startswith("sklearn.")  # a subclass may do anything
    if name in _SEARCHES:
        return [*(_add_around(found, function) if function else found), _Layer(kind, None, owner)]
    if name in _STEPS:
        # Of nested pipelines and unions the outermost is reported, which contains all steps.
        inner = found[:-1] if found and _known_name(found[-1].owner) in _STEPS else found
        text = _describe_steps(owner) or (None if is_known else _describe_unknown(kind))
        return [*inner, _Layer(kind, text, owner)]
    if name in _SILENT and is_known:
        return [*found, _Layer(kind, None, owner)]
    return _add_around(found, _Layer(kind, _KNOWN.get(str(name)) or _describe_unknown(kind), owner))


def _add_around(found: list[_Layer], layer: _Layer) -> list[_Layer]:
    """Add a layer around the others, without those that are reported as part of it."""
    absorbed = _ABSORBED.get(layer.title, set())
    return [*(each for each in found if each.title not in absorbed), layer]


def _known_name(owner: Any) -> str | None:
    """Return the name of the listed class of scikit-learn of which an estimator is an instance, or None."""
    for cls in type(owner).__mro__:
        if str(cls.__module__).startswith("sklearn."):
            name = cls.__name__
            if name in _KNOWN or name in _SEARCHES or name in _SILENT or name in _STEPS:
                return name
    return None


# --- pipelines and unions ---


def _describe_steps(owner: Any) -> str | None:
    """Describe what the parts of a composition read without paying; None if they read nothing and one of them pays."""
    try:
        private, faults = _sort_parts(owner)
    except Exception:  # a subclass may change what its parts are
        return _describe_unknown(type(owner).__name__)
    texts = []
    if faults:
        path, kind, reads, remedy = faults[0]
        what = f"its step {path!r} ({kind}) {reads}" if path else f"it {reads}"
        texts.append(f"{what}, and that is not paid for; use {remedy}")
    if len(private) > 1:
        texts.append(
            f"its private steps {private} spend a budget each, and the last one's epsilon_ does not include the others'"
        )
    return (
        f"{'; '.join(texts)}: use skdp.allocate_budget(pipeline, ...), which checks and pays for all" if texts else None
    )


def _sort_parts(owner: Any) -> tuple[list[str], list[tuple[str, str, str, str]]]:
    """Return the paths of the private parts, and the faults of the others."""
    private, faults = [], []
    listed = list(walk(owner, ""))
    if len(listed) == 1:  # a subclass of a composition, which is not listed itself: list its parts
        listed = [each for name, part in parts_of(owner) for each in walk(part, name)]
    for path, part, alone in listed:
        if is_ours(part) or (not parts_of(part) and _holds_ours(part)):
            private.append(path)
        else:
            faults += [(path, type(part).__name__, *fault) for fault in alone]
    return private, faults


def _holds_ours(part: Any) -> bool:
    """Whether a parameter of an estimator, at any depth, is a private estimator."""
    return hasattr(part, "get_params") and any(is_ours(value) for value in part.get_params(deep=True).values())


# --- compositions that were reported ---

_reported: dict[int, tuple[weakref.ref[Any], set[str]]] = {}
_lock = threading.RLock()


def _renew_lock() -> None:
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)  # a thread that held it does not live on in a child


def _find_token(layer: _Layer, layers: list[_Layer]) -> Any:
    """Return the object that identifies a composition: the outermost one, as inner ones are often cloned for each fit.

    A search that is fitted again is reported again: it is identified by its run of joblib.
    """
    warned = [each for each in layers if each.text is not None]
    first = [layer] if layer is warned[-1] and layer.text is _SCORES else []
    for each in [*first, *reversed(layers)]:
        with contextlib.suppress(TypeError):
            weakref.ref(each.owner)
            return each.owner
    return None


def _was_reported(token: Any, title: str) -> bool:
    """Whether a composition was reported. The weak reference detects an id that is used again."""
    entry = _reported.get(id(token))
    return entry is not None and entry[0]() is token is not None and title in entry[1]


def _mark_reported(token: Any, title: str) -> None:
    if token is None:
        return
    key = id(token)
    entry = _reported.get(key)
    if entry is None or entry[0]() is not token:
        with contextlib.suppress(TypeError):  # without a weak reference it is reported each time
            _reported[key] = weakref.ref(token, lambda gone: _forget(key, gone)), {title}
    else:
        entry[1].add(title)


def _forget(key: int, gone: weakref.ref[Any]) -> None:
    if key in _reported and _reported[key][0] is gone:
        del _reported[key]


__all__ = ["report_foreign_fit"]
