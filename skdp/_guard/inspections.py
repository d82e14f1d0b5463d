"""Warnings about tools that average predictions over rows: what they show of private rows is not paid for."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from skdp._checks.leak_setting import received
from skdp._guard.foreign_fits import report_once
from skdp._guard.stack import is_inspection, iterate_frames, origin_of

_TOOLS = "sklearn.inspection"


def report_inspection(estimator: Any) -> None:
    """Warn, once for each tool, that a private estimator predicts for a tool of ``sklearn.inspection``.

    Called inside predictions. A prediction is a function of the released model and of one row, and is that row's
    business; averages over rows, such as those of ``partial_dependence`` and ``permutation_importance``, tell of all of
    them. Nobody sees whether rows are public, so the warning comes either way.

    Parameters
    ----------
    estimator : object
        Estimator that predicts.

    Warns
    -----
    PrivacyLeakWarning
        Under ``config_context(on_leak="raise")`` it is raised, each time.
    """
    frames = list(iterate_frames(sys._getframe().f_back))
    tools = [frame for frame in frames if is_inspection(frame)]
    if not tools or received() is not None:  # the process that sent it has reported it
        return
    title = _title_of(tools[-1])  # the outermost, which the user called
    message = (
        f"{type(estimator).__name__} predicts for {title}, which averages over rows or shows their range, and what it "
        "tells of private rows is not paid for: give public rows."
    )
    level = next((i for i, frame in enumerate(frames) if origin_of(frame) == "other"), 0)
    report_once(estimator, title, message, stacklevel=3 + level)


def _title_of(frame: FrameType) -> str:
    """Name of a tool by its frame: a method of a display, a function, or a part of one that runs in a thread."""
    cls, name = frame.f_locals.get("cls"), frame.f_code.co_name
    if isinstance(cls, type):
        return f"{_TOOLS}.{cls.__name__}.{name}"
    if name.startswith("_"):
        name = frame.f_globals["__name__"].rpartition(".")[2].lstrip("_")
    return f"{_TOOLS}.{name}"


__all__ = ["report_inspection"]
