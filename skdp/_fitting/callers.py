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
from skdp._fitting.compositions import (
    FUNCTIONS,
    KNOWN,
    SCORED,
    SILENT,
    STEPS,
    Known,
    describe_unknown,
    is_of_sklearn,
    known_name,
)
from skdp._fitting.findings import sort_parts, total_of
from skdp._fitting.leaks import CALLER, Leak
from skdp._fitting.public_steps import is_ours
from skdp._fitting.totals import FitPrice

_TITLES = {title for title, _ in FUNCTIONS.values()}
_SEARCHES = {"BaseSearchCV"}
_ABSORBED = {"RFECV": {"RFE"}}  # compositions that are reported as part of another one
_PASSES_ON = {"joblib", "threading", "multiprocessing", "concurrent", "contextlib", "functools", "queue"}
_FITS = ("fit", "_fit", "partial_fit", "_partial_fit")


class _Layer(NamedTuple):
    """A composition on the stack: its name, its entry (None: no warning), and the object that identifies it."""

    title: str
    known: Known | None
    owner: Any


def report_foreign_fit(estimator: Any, price: FitPrice | None = None) -> tuple[Leak, ...]:
    """Warn, once per composition, that a private estimator is fitted inside code that reads rows without paying.

    Called inside ``fit``, before the charge. It searches the stack for methods of estimators, and for functions of
    scikit-learn, that are not private. A private pipeline or search pays for what it calls.

    Parameters
    ----------
    estimator : object
        Estimator that is being fitted.
    price : FitPrice or None, default=None
        What this fit costs. The warning states the joint price of all fits of a composition where their number can be
        known.

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
    level = next((i for i, frame in enumerate(frames) if _origin(frame) == "other"), 0)
    for number, layer in enumerate(layers):
        if layer.known is None:
            continue
        token = _find_token(layer, layers)
        with _lock:
            if _was_reported(token, layer.title) and not leaks_are_errors():
                continue
            report_leak(_describe(estimator, number, layers, price), stacklevel=3 + level)
            _mark_reported(token, layer.title)
    # A search warns at the fits that it scores. The last one, of its best estimator, depends on the scores as well.
    facts = [(each.title, each.known or (SCORED if known_name(each.owner) in _SEARCHES else None)) for each in layers]
    return tuple(
        Leak(CALLER, f"It was fitted inside {title}: {known.reads}: use {known.remedy}.")
        for title, known in facts
        if known is not None
    )


def _describe(estimator: Any, number: int, layers: list[_Layer], price: FitPrice | None) -> str:
    """Message about one of the layers, with the total of its fits where that can be known."""
    title, known, owner = layers[number]
    if known is SCORED and number + 1 < len(layers) and layers[number + 1].known is None:
        owner = layers[number + 1].owner  # the search that computes the scores
    try:
        total = str(total_of(owner, price))
    except Exception:  # attribute access may run code of other classes, and must not end the fit
        total = ""
    reads = f"{known.reads}; {total}" if known and total else known and known.reads
    return f"{type(estimator).__name__} is fitted inside {title}: {reads}: use {known and known.remedy}."


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
    if name in FUNCTIONS:
        return _Layer(*FUNCTIONS[name], frame.f_locals.get("scorer"))
    if inner is not None or name.startswith("<"):
        return inner
    return _Layer(f"{name} of scikit-learn", describe_unknown(name), None)


def _identify_run(frame: FrameType, function: _Layer | None) -> _Layer | None:
    """Identify a function by its run of joblib, as it may have no object of its own.

    All tasks of one run share its ``Parallel`` or, in threads, the queue of their pool.
    """
    if function is None or frame.f_code.co_name not in ("__call__", "worker"):
        return function
    caller, queue = frame.f_locals.get("self"), frame.f_locals.get("inqueue")
    run = caller if isinstance(caller, joblib.Parallel) else queue
    return function if run is None else function._replace(owner=run)


def _add_object(found: list[_Layer], function: _Layer | None, owner: Any) -> list[_Layer]:
    """Add the layer of an estimator, which stands for the functions that it calls."""
    if found and found[-1].owner is owner:
        return found
    name, kind = known_name(owner), type(owner).__name__
    if name in _SEARCHES:
        return [*(_add_around(found, function) if function else found), _Layer(kind, None, owner)]
    if name in STEPS:
        # Of nested pipelines and unions the outermost is reported, which contains all steps.
        inner = found[:-1] if found and known_name(found[-1].owner) in STEPS else found
        known = _describe_steps(owner) or (None if is_of_sklearn(owner) else describe_unknown(kind))
        return [*inner, _Layer(kind, known, owner)]
    if name in SILENT and is_of_sklearn(owner):
        return [*found, _Layer(kind, None, owner)]
    return _add_around(found, _Layer(kind, KNOWN.get(str(name)) or describe_unknown(kind), owner))


def _add_around(found: list[_Layer], layer: _Layer) -> list[_Layer]:
    """Add a layer around the others, without those that are reported as part of it."""
    absorbed = _ABSORBED.get(layer.title, set())
    return [*(each for each in found if each.title not in absorbed), layer]


def _describe_steps(owner: Any) -> Known | None:
    """Describe what the parts of a composition read without paying; None if they read nothing and one of them pays."""
    try:
        private, faults = sort_parts(owner)
    except Exception:  # a subclass may change what its parts are
        return describe_unknown(type(owner).__name__)
    texts = []
    if faults:
        path, kind, reads, remedy = faults[0]
        what = f"its step {path!r} ({kind}) {reads}" if path else f"it {reads}"
        texts.append(f"{what}, and that is not paid for; use {remedy}")
    if len(private) > 1:
        names = [path for path, _ in private]
        texts.append(
            f"its private steps {names} spend a budget each, and the last one's epsilon_ does not include the others'"
        )
    remedy = "skdp.allocate_budget(pipeline, ...), which checks and pays for all"
    return Known("; ".join(texts), remedy) if texts else None


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
    warned = [each for each in layers if each.known is not None]
    first = [layer] if layer is warned[-1] and layer.known is SCORED else []
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
