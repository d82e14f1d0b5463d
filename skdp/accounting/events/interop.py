"""Conversion of events to and from those of Google's dp-accounting, which bear the same names and fields.

What can be converted is asked of the version that is installed.
"""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Any, cast

from .kinds import BY_NAME, REMOVED_EVENTS, kind_of
from .specifications import ComposedDpEvent, DpEvent, show


def _other(caller: str) -> Any:
    try:
        from dp_accounting import dp_event
    except ImportError as error:
        raise ImportError(f"{caller} needs dp-accounting; run `pip install dp-accounting`.") from error
    return dp_event


def _counterpart(other: Any, name: str) -> Any:
    """The class of that name in the version that is installed, if it has the fields of ours; None elsewhere."""
    theirs, ours = getattr(other, name, None), BY_NAME.get(name)
    if ours is None or not isinstance(theirs, type):
        return None
    same = set(inspect.signature(theirs).parameters) == {field.name for field in fields(cast(Any, ours))}
    return theirs if same else None


def to_dp_accounting(event: DpEvent) -> Any:
    """The same event as an object of the `dp_accounting` package.

    Parameters
    ----------
    event : DpEvent
        Event to convert.

    Returns
    -------
    dp_accounting.DpEvent
        With `noise_multiplier` unchanged: relative to the contribution of one record, whatever the adjacency.
        Its Rényi accountant does not double that under REPLACE_ONE, as `skdp` does.
    """
    other = _other("to_dp_accounting")
    name = type(event).__name__
    theirs = _counterpart(other, name)
    if theirs is None or type(event) is not BY_NAME[name]:
        remedy = kind_of(event).substitute or "give an event of skdp.accounting, or what dominates this one"
        raise TypeError(f"event={event!r} has no counterpart in dp-accounting; {remedy}.")
    if isinstance(event, ComposedDpEvent):
        return other.ComposedDpEvent([to_dp_accounting(part) for part in event.events])
    values = {field.name: getattr(event, field.name) for field in fields(event)}
    if "event" in values:
        values["event"] = to_dp_accounting(values["event"])
    return theirs(**values)


def from_dp_accounting(event: Any) -> DpEvent:
    """An event of the `dp_accounting` package as one of ours.

    Parameters
    ----------
    event : dp_accounting.DpEvent
        Event to convert.

    Returns
    -------
    DpEvent
        Validated as if it had been written here.

    Raises
    ------
    TypeError
        The event has no counterpart. The message names it and a substitute.
    """
    other = _other("from_dp_accounting")
    name = type(event).__name__
    theirs = _counterpart(other, name)
    if theirs is None or type(event) is not theirs:
        use = REMOVED_EVENTS.get(name, "EpsilonDeltaDpEvent(epsilon, delta) or ZCDpEvent(rho), whichever is known")
        raise TypeError(f"event={show(event)} has no counterpart in skdp.accounting; use {use}.")
    if name == "ComposedDpEvent":
        return ComposedDpEvent(tuple(from_dp_accounting(part) for part in event.events))
    ours: Any = BY_NAME[name]
    values = {field.name: getattr(event, field.name) for field in fields(ours)}
    if "event" in values:
        values["event"] = from_dp_accounting(values["event"])
    return ours(**values)
