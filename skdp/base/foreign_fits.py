"""Warnings about third-party compositions that use private estimators and read rows without accounting for them.

One function finds the outermost composition on the stack of the current thread. It is called whenever a private
estimator is fitted, cloned or asked for its tags, which ``check_is_fitted`` does in each prediction. Compositions clone
their parts, or read their tags, before they start workers, so stacks of other threads are not needed. An estimator that
is sent to a worker process carries the titles of the compositions that were reported.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import weakref
from collections.abc import Iterator
from multiprocessing import parent_process
from types import FrameType
from typing import Any, NamedTuple, Self

from sklearn.frozen import FrozenEstimator

from skdp._checks.groups import GROUP
from skdp._checks.leaks import CALLER, Leak, Sent, leaks_are_errors, receive, report_leak
from skdp.base import pipeline_issues
from skdp.base.public_steps import is_ours

_BETWEEN = {"joblib", "threading", "multiprocessing", "concurrent", "contextlib", "functools", "queue", "warnings"}
_FITS = ("fit", "_fit", "partial_fit", "_partial_fit")
_OF_UNIONS = ("_fit_one", "_fit_transform_one")  # a worker cannot see the other parts

_PREDICTED = "it computes from predictions and labels of private rows, which is not covered by the privacy guarantee"
_TOOLS = {"partial_dependence", "permutation_importance", "_calculate_permutation_scores", "from_estimator"}
_INSPECTED = pipeline_issues.Known(
    "averages over private rows or shows their range, which is not covered by the privacy guarantee", "Pass public data"
)
_AUTOLOG = "mlflow.sklearn.autolog"
_LOGGED = pipeline_issues.Known(
    "logs exact metrics of the training rows, which are not covered by the privacy guarantee",
    f"Use {_AUTOLOG}(disable=True)",
)


class Outermost(NamedTuple):
    """The outermost composition on a stack.

    Attributes
    ----------
    title : str
        Its name.
    owner : object
        The estimator that it is, or that a function was given.
    known : Known
        What it reads, and the remedy.
    entry : str, default=""
        Name of the function that it is; "" for an estimator.
    cv : object, default=None
        How a function splits rows.
    gives_groups : bool, default=False
        Whether a function passes group identifiers to the fits.
    is_part : bool, default=False
        Whether it is a task of a composition that runs in another thread or process.
    estimator : object, default=None
        The private estimator, pipeline or search that it uses.
    """

    title: str
    owner: Any
    known: pipeline_issues.Known
    entry: str = ""
    cv: Any = None
    gives_groups: bool = False
    is_part: bool = False
    estimator: Any = None


def _outward(frame: FrameType | None) -> Iterator[FrameType]:
    """Iterate over a frame and its callers, the innermost first."""
    while frame is not None:
        yield frame
        frame = frame.f_back


@functools.cache
def _is_entry(name: str) -> bool:
    """Whether the name of a function may be that of a composition."""
    return name.startswith(_FITS) or name in pipeline_issues.FUNCTIONS or name in _TOOLS


def _may_find(stack: list[FrameType]) -> bool:
    """Whether a function on the stack has the name of a composition; most predictions need no further search."""
    for each in stack:
        if _is_entry(each.f_code.co_name):
            return True
        if each.f_code is _READS_TAGS:  # a pipeline, which has searched the stack, reads the tags of its steps
            return False
    return False


def find_outermost(estimator: Any, stack: list[FrameType]) -> Outermost | None:
    """Find the outermost composition on the stack of this thread that reads rows without accounting for it.

    Private estimators account for whatever they call.

    Parameters
    ----------
    estimator : object
        Private estimator that is fitted, cloned or asked for its tags.
    stack : list of frame
        Those to consider, the innermost first. It is changed.

    Returns
    -------
    Outermost or None
    """
    owner: Any = None
    found: Outermost | None = None
    unsure: Outermost | None = None
    around: Any
    is_part = by_user = False
    # From the outermost frame inward: the first composition that is known for sure, else the first that may be one.
    while stack and found is None:
        frame = stack.pop()
        kind, name = _kind_of(frame), frame.f_code.co_name
        around, is_fit, by_user = owner, name.startswith(_FITS), by_user or kind == "other"
        owner = _owner_of(frame) if kind == "sklearn" or (kind == "other" and is_fit) else None
        if kind == "ours" or (kind == "sklearn" and is_ours(owner)):
            break
        # A function of scikit-learn, or one that only predicts.
        if owner is None and kind in ("sklearn", "tool"):
            is_part = is_part or (around is unsure is None and name.startswith("_"))
            if name in pipeline_issues.FUNCTIONS:
                found = _describe_function(frame, *pipeline_issues.FUNCTIONS[name])
            elif kind == "tool":
                unsure = unsure or _describe_tool(frame)
            elif is_fit and around is None and not name.startswith(_OF_UNIONS):
                unsure = unsure or _describe_function(
                    frame, f"{name} of scikit-learn", pipeline_issues.describe_unknown(name)
                )
        elif is_fit and owner is not None and owner is not around:
            found = _describe_estimator(owner)
        owner = owner if is_fit and owner is not None else around
    if (found := found or unsure) is None:
        return None
    if found.entry and (not by_user or parent_process() is not None):  # a task may be a public function too
        is_part = True
    # What it uses is the outermost of ours within.
    whole = next((inner for inner in map(_owner_of, reversed(stack)) if is_ours(inner)), estimator)
    return found._replace(is_part=is_part, estimator=whole, owner=whole if found.owner is None else found.owner)


def _kind_of(frame: FrameType) -> str:
    """Return whose code a frame runs: "ours", "sklearn", "tool" (only predicts), "between" (wrappers) or "other"."""
    module = frame.f_globals.get("__name__")
    return _kind_of_module(module) if isinstance(module, str) else "other"


@functools.cache
def _kind_of_module(module: str) -> str:
    top, part, *_ = f"{module}..".split(".")
    if (top, part) in (("sklearn", "inspection"), ("mlflow", "sklearn")):
        return "tool"
    if top in _BETWEEN or (top == "sklearn" and part in ("utils", "base", "callback")):
        return "between"
    return {"skdp": "ours", "sklearn": "sklearn"}.get(top, "other")


def _owner_of(frame: FrameType) -> Any:
    """Return the estimator whose method a frame runs, or None."""
    try:
        code, values = frame.f_code, frame.f_locals
        scope = code.co_qualname.split(".")
        is_method = len(scope) > 1 and scope[-2] != "<locals>" and code.co_argcount > 0
        # Wrapped methods may name their first argument otherwise; nested functions are not methods.
        owner = values.get("self", values.get(code.co_varnames[0]) if is_method else None)
        return owner if hasattr(type(owner), "fit") and hasattr(type(owner), "get_params") else None
    except Exception:  # attribute access may run code of other classes, and must not end the fit
        return None


# --- what they read ---


def _describe_estimator(owner: Any) -> Outermost | None:
    """Describe what an estimator reads while it fits or reads private ones; None if all of it is accounted for."""
    if is_ours(owner) or isinstance(owner, FrozenEstimator):
        return None
    title, name = type(owner).__name__, str(pipeline_issues.known_name(owner))
    try:
        if pipeline_issues.is_silent(owner) or (name in pipeline_issues.STEPS and pipeline_issues.is_of_sklearn(owner)):
            inside = _findings(owner)
            if not inside:
                return None
            known = pipeline_issues.Known(_line(inside[0]), inside[0].counterpart)
        elif name not in pipeline_issues.KNOWN or any(times != 0 for _, times in pipeline_issues.private_fits(owner)):
            known = pipeline_issues.KNOWN.get(name) or pipeline_issues.describe_unknown(title)
        elif pipeline_issues.KNOWN[name].prefit:
            known = pipeline_issues.Known(_PREDICTED, pipeline_issues.KNOWN[name].prefit)
        else:
            return None
    except Exception:  # attribute access may run code of other classes, and must not end the fit
        known = pipeline_issues.describe_unknown(title)
    return Outermost(title, owner, known)


def _describe_function(frame: FrameType, title: str, known: pipeline_issues.Known) -> Outermost:
    """Describe a function of scikit-learn that fits."""
    values = frame.f_locals
    gives_groups = "groups" in (values.get("params") or ())
    return Outermost(title, values.get("estimator"), known, frame.f_code.co_name, values.get("cv"), gives_groups)


def _describe_tool(frame: FrameType) -> Outermost | None:
    """Describe a function that only predicts: of ``sklearn.inspection``, or the one that MLflow puts around ``fit``."""
    name, module, values = frame.f_code.co_name, frame.f_globals["__name__"], frame.f_locals
    if module.startswith("mlflow"):  # it serves models too
        return Outermost(_AUTOLOG, values.get("self"), _LOGGED, entry="tool") if name.startswith("fit_") else None
    title, cls = name, values.get("cls")
    if isinstance(cls, type):
        title = f"{cls.__name__}.{name}"
    elif name.startswith("_"):
        title = module.rpartition(".")[2].lstrip("_")
    return Outermost(f"sklearn.inspection.{title}", values.get("estimator"), _INSPECTED, entry="tool")


def _findings(owner: Any) -> list[pipeline_issues.PipelineIssue]:
    """Find what a composition reads, but for what each fit reports itself."""
    return [each for each in pipeline_issues.find(owner) if each.counterpart not in pipeline_issues.FIT_TELLS.values()]


def _line(finding: pipeline_issues.PipelineIssue) -> str:
    return f"its step {finding.step!r} ({finding.kind}) {finding.reads}" if finding.step else finding.reads


# --- the warning ---


def report_foreign_fit(estimator: Any, cost: pipeline_issues.FitCost | None = None) -> tuple[Leak, ...]:
    """Warn, once for each composition, of the outermost one that uses a private estimator, and return it as a record.

    Parameters
    ----------
    estimator : object
        Private estimator that is fitted, cloned or asked for its tags.
    cost : FitCost or None, default=None
        Privacy cost of this fit, if one is planned.

    Returns
    -------
    tuple of Leak

    Warns
    -----
    PrivacyLeakWarning
        Under ``config_context(on_leak="raise")`` it is raised, each time.
    """
    frame = sys._getframe(2)
    stack = list(_outward(frame))
    found = find_outermost(estimator, stack) if _may_find(stack) else None
    if found is None or not is_ours(found.estimator):  # some of ours read nothing
        return ()
    if leaks_are_errors() or not _was_reported(found):
        # Up to the line of the user.
        levels = next((level for level, each in enumerate(_outward(frame)) if _kind_of(each) == "other"), 0)
        report_leak(_message(found, cost), stacklevel=4 + levels)
    _mark_reported(found)
    return (Leak(CALLER, f"It was fitted inside {found.title}: {found.known.reads}. Use {found.known.remedy}."),)


def _message(found: Outermost, cost: pipeline_issues.FitCost | None) -> str:
    """Return the message, with the number of fits and their joint privacy cost if these are known."""
    name, known, owner = type(found.estimator).__name__, found.known, found.owner
    if found.entry == "tool":
        return f"{name} predicts for {found.title}, which {known.reads}. {known.remedy}."
    try:
        times = (pipeline_issues.count_folds(found.cv) or 1) if found.entry.startswith("cross_val") else 1
        unit = (GROUP if found.gives_groups else "") if cost is None else cost.unit
        splitters = [found.cv] if found.entry else pipeline_issues.splitters_of(owner)
        facts = [pipeline_issues.fault_of_split(owner, cv, unit) for cv in splitters]
        facts.append(str(pipeline_issues.total_of(owner, cost, times)))
        by_step = not found.entry and str(pipeline_issues.known_name(owner)) not in pipeline_issues.STEPS
        inside = [each for each in _findings(owner) if (each.step or not by_step) and _line(each) != known.reads]
        facts += [f"{_line(each)} (use {each.counterpart})" for each in inside]
    except Exception:  # attribute access may run code of other classes, and must not end the fit
        facts = []
    verb = "predicts" if known.reads == _PREDICTED else "is fitted"
    reads = "; ".join(filter(None, [known.reads, *facts]))
    return f"{name} {verb} inside {found.title}: {reads}. Use {known.remedy}."


_told: dict[int, tuple[Any, set[tuple[str, str]]]] = {}


def _was_reported(found: Outermost) -> bool:
    """Whether a composition was reported; for a task, whether one was that uses the same estimator."""
    if found.is_part:
        # One-vs-rest neither clones nor reads tags before it starts workers.
        titles = lineage_of(found.estimator)
        if found.entry != "_fit_binary":
            return bool(titles)
        return any(
            each == found.title or pipeline_issues.KNOWN.get(each) is pipeline_issues.EACH_CLASS for each in titles
        )
    return (found.title, found.known.reads) in _told.get(id(found.owner), (None, ()))[1]


def _mark_reported(found: Outermost) -> None:
    """Remember a composition as long as it lives; the end of its reference frees the id."""
    lineage_of(found.estimator).add(found.title)
    key = id(found.owner)
    with contextlib.suppress(TypeError):  # without a weak reference it is reported each time
        ref = weakref.ref(found.owner, lambda gone: _told.pop(key, None))
        _told.setdefault(key, (ref, set()))[1].add((found.title, found.known.reads))


class Lineage(set[str]):
    """Titles of the compositions that were reported for an estimator or its clones, which share this set."""

    def __reduce__(self) -> Any:
        return Lineage, ()


def lineage_of(estimator: Any) -> Lineage:
    """Return the set that an estimator and its clones share."""
    return vars(estimator).setdefault("_lineage", Lineage())


class Watched:
    """Base class of all that look for compositions when they are cloned or asked for their tags."""

    def __sklearn_clone__(self) -> Self:
        report_foreign_fit(self)
        made: Self = super().__sklearn_clone__()  # type: ignore[misc]
        made._lineage = lineage_of(self)  # type: ignore[attr-defined]
        return made

    def __sklearn_tags__(self) -> Any:
        report_foreign_fit(self)
        return super().__sklearn_tags__()  # type: ignore[misc]

    def __getstate__(self) -> dict[str, Any]:
        """Return the state that is pickled, with the setting of leaks if it is pickled for another process.

        A state hook is the one place that every way to a worker passes: joblib's multiprocessing backend pickles by a
        table of its own, so that a reducer that is registered elsewhere would not be called.
        """
        state: Any = super().__getstate__()
        # By multiprocessing, concurrent.futures, or joblib.
        modules = (str(each.f_globals.get("__name__")) for each in _outward(sys._getframe()))
        pools = ("multiprocessing.reduction", "joblib.pool")
        if not any(each in pools or each.endswith("loky.backend.reduction") for each in modules):
            return state
        setting = "raise" if leaks_are_errors() else "warn"
        return {**state, "_sent": Sent(os.getpid(), setting, tuple(state.get("_lineage", ())))}

    def __setstate__(self, state: dict[str, Any]) -> None:
        sent = state.pop("_sent", None)
        super().__setstate__(state)  # type: ignore[misc]
        if sent is not None and receive(self, sent):
            lineage_of(self).update(sent.told)


_READS_TAGS = Watched.__sklearn_tags__.__code__
