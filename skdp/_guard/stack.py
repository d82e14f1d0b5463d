"""The compositions that call a fit, as their frames on the stack show them, from the inside out.

A frame of scikit-learn or of another package that runs a method of an estimator is a composition, such as a search or
an ensemble. A function of scikit-learn that fits represents a composition whose object is on the stack of another
thread or process.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType
from typing import Any, NamedTuple

import joblib

from skdp._guard.findings import sort_parts
from skdp._guard.meta_estimators import (
    FUNCTIONS,
    KNOWN,
    SCORED,
    SEARCH,
    STEPS,
    Known,
    count_folds,
    describe_unknown,
    is_of_sklearn,
    is_silent,
    known_name,
)
from skdp._guard.public_steps import is_ours

_TITLES = {title for title, _ in FUNCTIONS.values()}
SEARCHES = {"BaseSearchCV"}
_ABSORBED = {"RFECV": {"RFE"}}  # compositions that are reported as part of another one
_PASSES_ON = {"joblib", "threading", "multiprocessing", "concurrent", "contextlib", "functools", "queue"}
_FITS = ("fit", "_fit", "partial_fit", "_partial_fit")


class Layer(NamedTuple):
    """A composition on the stack.

    Attributes
    ----------
    title : str
        Its name.
    known : Known or None
        What it reads; None causes no warning.
    owner : object
        The object that identifies it.
    part : estimator or None
        What a function was given to fit.
    times : int
        How often it does so.
    splitters : tuple
        What splits rows for it, if anything does.
    """

    title: str
    known: Known | None
    owner: Any
    part: Any = None
    times: int = 1
    splitters: tuple[Any, ...] = ()


def iterate_frames(frame: FrameType | None) -> Iterator[FrameType]:
    """Iterate over the stack, from the inside out."""
    while frame is not None:
        yield frame
        frame = frame.f_back


_origins: dict[str, str] = {}


def origin_of(frame: FrameType) -> str:
    """Return the origin of a frame's code: "ours", "sklearn", "between" (wrappers, threads), or "other"."""
    module = frame.f_globals.get("__name__")
    if not isinstance(module, str):
        return "other"
    if module not in _origins:
        _origins[module] = _origin_of_module(module)
    return _origins[module]


def is_inspection(frame: FrameType) -> bool:
    """Whether a frame runs a tool of ``sklearn.inspection``, which predicts with fitted estimators and fits none."""
    return f"{frame.f_globals.get('__name__')}.".startswith("sklearn.inspection.")


def _origin_of_module(module: str) -> str:
    top, *rest = module.split(".")
    if top == "sklearn":
        return "between" if rest[:1] in (["utils"], ["base"], ["callback"]) else "sklearn"
    if top == "skdp":
        return "ours"
    return "between" if top in _PASSES_ON else "other"


def find_layers(frames: list[FrameType], estimator: Any, run: joblib.Parallel | None = None) -> list[Layer]:
    """Find the compositions on the stack, from the inside out.

    Parameters
    ----------
    frames : list of frame
        From the inside out.
    estimator : estimator
        The one that is fitted.
    run : joblib.Parallel or None, default=None
        The run that the frames wait for, where fits are in other processes.

    Returns
    -------
    list of Layer
    """
    found: list[Layer] = []
    function: Layer | None = None  # a function of scikit-learn whose caller is not known yet
    for frame in frames:
        origin = origin_of(frame)
        if origin == "between":
            function = _identify_run(frame, function)
            continue
        # Our searches and pipelines pay for what they call through scikit-learn.
        if origin == "ours":
            function = None
            continue
        owner = owner_of(frame) if origin == "sklearn" or frame.f_code.co_name.startswith(_FITS) else None
        ours = owner is not None and (owner is estimator or is_ours(owner))
        if ours and origin == "sklearn":  # a private pipeline runs scikit-learn's code
            function = None
        elif owner is not None and not ours:
            if run is not None and function is None and not found and known_name(owner) in SEARCHES:
                function = Layer(SEARCH, SCORED, run)
            found = add_object(found, function, owner)
            function = None
        elif origin == "sklearn":
            function = _match_function(frame, function, run)
        elif function is not None:  # user code called the function: the composition ends here
            found, function = _add_around(found, function), None
    return found if function is None else _add_around(found, function)


def owner_of(frame: FrameType) -> Any:
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


def _match_function(frame: FrameType, inner: Layer | None, run: Any) -> Layer | None:
    """Return the innermost function of scikit-learn that is known to fit, or else the innermost of all."""
    name = frame.f_code.co_name
    if inner is not None and inner.title in _TITLES:
        return _count_folds(frame, inner)
    if name in FUNCTIONS:
        return _count_folds(frame, Layer(*FUNCTIONS[name], run or frame.f_locals.get("scorer")))
    if inner is not None or name.startswith("<"):
        return inner
    return Layer(f"{name} of scikit-learn", describe_unknown(name), run)


def _count_folds(frame: FrameType, layer: Layer) -> Layer:
    """Add what a cross-validation fits, and how often, where that is known without its rows."""
    if frame.f_code.co_name not in ("cross_validate", "cross_val_predict"):
        return layer
    cv, part = frame.f_locals.get("cv"), frame.f_locals.get("estimator")
    return layer._replace(part=part, times=count_folds(cv) or 1, splitters=(cv,))


def _identify_run(frame: FrameType, function: Layer | None) -> Layer | None:
    """Identify a function by its run of joblib, as it may have no object of its own.

    All tasks of one run share its ``Parallel`` or, in threads, the queue of their pool.
    """
    if function is None or frame.f_code.co_name not in ("__call__", "worker"):
        return function
    caller, queue = frame.f_locals.get("self"), frame.f_locals.get("inqueue")
    run = caller if isinstance(caller, joblib.Parallel) else queue
    return function if run is None else function._replace(owner=run)


def add_object(found: list[Layer], function: Layer | None, owner: Any) -> list[Layer]:
    """Add the layer of an estimator, which represents the functions that it calls."""
    if found and found[-1].owner is owner:
        return found
    name, kind = known_name(owner), type(owner).__name__
    if name in SEARCHES:
        return [*(_add_around(found, function) if function else found), Layer(kind, None, owner)]
    if name in STEPS:
        # Of nested pipelines and unions the outermost is reported, which contains all steps.
        inner = found[:-1] if found and known_name(found[-1].owner) in STEPS else found
        known = _describe_steps(owner) or (None if is_of_sklearn(owner) else describe_unknown(kind))
        return [*inner, Layer(kind, known, owner)]
    if is_silent(owner):
        return [*found, Layer(kind, None, owner)]
    return _add_around(found, Layer(kind, KNOWN.get(str(name)) or describe_unknown(kind), owner))


def _add_around(found: list[Layer], layer: Layer) -> list[Layer]:
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
    for path, kind, reads, remedy in faults:
        what = f"its step {path!r} ({kind}) {reads}" if path else f"it {reads}"
        texts.append(f"{what}, and that is not paid for (use {remedy} instead)")
    if len(private) > 1:
        names = [path for path, _ in private]
        texts.append(
            f"its private steps {names} spend a budget each, and the last one's epsilon_ does not include the others'"
        )
    remedy = "skdp.allocate_budget(pipeline, ...), which checks and pays for all"
    return Known("; ".join(texts), remedy) if texts else None


__all__ = ["SEARCHES", "Layer", "add_object", "find_layers", "iterate_frames", "origin_of", "owner_of"]
