"""Warnings about fits inside other meta-estimators, which read rows without paying for them.

In a worker process no frame of the composition is on the stack, and warnings are lost. An estimator that is sent to
one is therefore reported in the process that sends it, and takes the setting of leaks along.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import warnings
import weakref
from collections.abc import Iterator
from types import FrameType
from typing import Any

import joblib

from skdp._checks.leak_setting import Sent, leaks_are_errors, received, report_leak
from skdp._checks.leaks import CALLER, Leak
from skdp._guard.findings import fault_of_split, holds_private, pays, sort_parts, splitters_of, total_of
from skdp._guard.meta_estimators import SCORED, children_of, known_name
from skdp._guard.public_steps import parts_of
from skdp._guard.stack import (
    SEARCHES,
    Layer,
    add_object,
    find_layers,
    is_inspection,
    iterate_frames,
    origin_of,
    owner_of,
)
from skdp._guard.totals import FitPrice
from skdp.exceptions import PrivacyLeakWarning


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
        time. So it is in a worker process where that is the setting of the process that sent the estimator.
    """
    sent = received()
    if sent is not None and sent.verdict:
        raise PrivacyLeakWarning(sent.verdict)
    frames = list(iterate_frames(sys._getframe().f_back))
    layers = find_layers(frames, estimator)
    if not layers:
        return ()
    if sent is None or sent.verdict is None:  # else the process that sent it has reported them
        _report(estimator, layers, frames, price)
    # A search warns at the fits that it scores. The last one, of its best estimator, depends on the scores as well.
    facts = [(each.title, each.known or (SCORED if known_name(each.owner) in SEARCHES else None)) for each in layers]
    return tuple(
        Leak(CALLER, f"It was fitted inside {title}: {known.reads}: use {known.remedy}.")
        for title, known in facts
        if known is not None
    )


def _report(estimator: Any, layers: list[Layer], frames: list[FrameType], price: FitPrice | None) -> None:
    """Warn of layers at the line of the user, once each, or raise the first."""
    level = next((i for i, frame in enumerate(frames) if origin_of(frame) == "other"), 0)
    for number, layer in enumerate(layers):
        if layer.known is None:
            continue
        token = _find_token(layer, layers)
        with _lock:
            if _was_reported(token, layer.title) and not leaks_are_errors():
                continue
            report_leak(_describe(estimator, number, layers, price), stacklevel=4 + level)
            _mark_reported(token, layer.title)


def _describe(estimator: Any, number: int, layers: list[Layer], price: FitPrice | None) -> str:
    """Message about one of the layers, with the total of its fits where that can be known."""
    layer = layers[number]
    title, known, owner = layer.title, layer.known, layer.owner if layer.part is None else layer.part
    if known is SCORED and number + 1 < len(layers) and layers[number + 1].known is None:
        owner = layers[number + 1].owner  # the search that computes the scores
    try:
        total = str(total_of(owner, price, layer.times))
        unit = "" if price is None else price.unit
        split = [fault_of_split(owner, cv, unit) for cv in layer.splitters or splitters_of(owner)]
    except Exception:  # attribute access may run code of other classes, and must not end the fit
        total, split = "", []
    reads = "; ".join(filter(None, [known and known.reads, *split, total]))
    return f"{type(estimator).__name__} is fitted inside {title}: {reads}: use {known and known.remedy}."


# --- estimators that are sent to worker processes ---


def settings_to_send(estimator: Any) -> Sent | None:
    """Return the settings for an estimator that is pickled for another process, and report its composition here.

    Processes are fed by a thread of their own, so the composition is looked for among the threads that wait for a run
    of joblib.

    Parameters
    ----------
    estimator : estimator

    Returns
    -------
    Sent or None
        None if it is pickled for another purpose, such as a file.
    """
    if not any(_sends(frame) for frame in iterate_frames(sys._getframe().f_back)):
        return None
    setting = "raise" if leaks_are_errors() else "warn"
    try:
        return Sent(os.getpid(), setting, _judge(estimator))
    except Exception:  # code of other classes, looked at while it runs: the worker looks at its own stack
        return Sent(os.getpid(), setting, None)


def _sends(frame: FrameType) -> bool:
    """Whether a frame pickles for another process: of multiprocessing, of concurrent.futures, or of joblib."""
    module = str(frame.f_globals.get("__name__"))
    return module in ("multiprocessing.reduction", "joblib.pool") or module.endswith("loky.backend.reduction")


def _judge(estimator: Any) -> str | None:
    """Report the composition that sends an estimator; what its fit has to raise, "" for nothing, None if there is none.

    Compositions inside the one that sends are reported here too.
    """
    for frames, run in _iterate_runs():
        if any(is_inspection(frame) for frame in frames):
            continue  # it is sent for predictions
        roots = _find_roots(frames)
        layers = find_layers(frames, estimator, run) if any(holds_private(root) for root in roots) else []
        if not layers:
            continue
        inside = [layer for root in roots[:1] for layer in _find_inside(root, layers)]
        return _report_from_afar(estimator, [*inside, *layers], frames)
    return None


def _iterate_runs() -> Iterator[tuple[list[FrameType], joblib.Parallel]]:
    """Iterate over other threads that wait for a run of joblib: the frames around the run, and the run."""
    for thread, innermost in sys._current_frames().items():
        if thread == threading.get_ident():
            continue
        frames = list(iterate_frames(innermost))
        for number, frame in enumerate(frames):
            run = frame.f_locals.get("self") if frame.f_code.co_name == "__call__" else None
            if isinstance(run, joblib.Parallel):
                yield frames[number:], run
                break


def _find_roots(frames: list[FrameType]) -> list[Any]:
    """Return the estimators whose methods frames run, or that they were given, from the inside out."""
    found = []
    for frame in frames:
        if origin_of(frame) in ("sklearn", "other"):
            owner = owner_of(frame)
            found.append(frame.f_locals.get("estimator") if owner is None else owner)
    return [each for each in found if each is not None]


def _find_inside(root: Any, layers: list[Layer]) -> Iterator[Layer]:
    """Find the compositions inside one, which its workers will run; those on the stack are in `layers`."""
    if pays(root) or not holds_private(root):
        return
    below = sort_parts(root).private if parts_of(root) else [(name, child) for name, child, _ in children_of(root)]
    for _, child in below:
        yield from _find_inside(child, layers)
    if not any(layer.owner is root for layer in layers):
        yield from add_object([], None, root)


def _report_from_afar(estimator: Any, layers: list[Layer], frames: list[FrameType]) -> str:
    """Warn of layers at the line of another thread, once each; the first message if it is an error there."""
    line = next((frame for frame in frames if origin_of(frame) == "other"), frames[-1])
    for number, layer in enumerate(layers):
        if layer.known is None:
            continue
        message, token = _describe(estimator, number, layers, None), _find_token(layer, layers)
        if leaks_are_errors():
            return message
        with _lock:
            if _was_reported(token, layer.title):
                continue
            try:
                _warn_at(line, message)
            except PrivacyLeakWarning:  # a filter makes it an error, which has no place in this thread
                return message
            _mark_reported(token, layer.title)
    return ""


def _warn_at(frame: FrameType, message: str) -> None:
    """Warn at the line that a frame of another thread runs."""
    module, registry = frame.f_globals.get("__name__"), frame.f_globals.setdefault("__warningregistry__", {})
    place = frame.f_code.co_filename, frame.f_lineno
    warnings.warn_explicit(message, PrivacyLeakWarning, *place, module=module, registry=registry)


# --- compositions that were reported ---

_reported: dict[int, tuple[weakref.ref[Any], set[str]]] = {}
_lock = threading.RLock()


def _renew_lock() -> None:
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)  # a thread that held it does not live on in a child


def _find_token(layer: Layer, layers: list[Layer]) -> Any:
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


def report_once(token: Any, title: str, message: str, stacklevel: int) -> None:
    """Report a leak of an object under a title, once, or raise it each time; `stacklevel` is that of the caller."""
    with _lock:
        if not _was_reported(token, title) or leaks_are_errors():
            report_leak(message, stacklevel=stacklevel + 1)
            _mark_reported(token, title)


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


__all__ = ["report_foreign_fit", "report_once", "settings_to_send"]
