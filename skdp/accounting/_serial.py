"""Events and bills as JSON: an event by its name and fields, a bill with a schema version."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from . import events as _events
from .events import DpEvent

__all__ = ["SCHEMA", "bill_from_json", "event_from_dict", "event_to_dict"]

SCHEMA = 1

_KNOWN: dict[str, type[DpEvent]] = {
    name: each for name, each in vars(_events).items() if isinstance(each, type) and issubclass(each, DpEvent)
}


def _plain(value: Any) -> Any:
    if isinstance(value, DpEvent):
        return event_to_dict(value)
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value


def event_to_dict(event: DpEvent) -> dict[str, Any]:
    """An event as a dictionary of plain values.

    Parameters
    ----------
    event : DpEvent

    Returns
    -------
    dict
        `{"event": name, field: value, ...}`; field `event` of a wrapping event is called `inner`.
    """
    name = type(event).__name__
    if _KNOWN.get(name) is not type(event):
        raise TypeError(f"event={event!r} cannot be written as JSON; use the events of skdp.accounting.")
    content = {"inner" if f.name == "event" else f.name: _plain(getattr(event, f.name)) for f in fields(event)}
    return {"event": name, **content}


def _read(value: Any) -> Any:
    if isinstance(value, dict):
        return event_from_dict(value)
    if isinstance(value, list):
        return tuple(_read(part) for part in value)
    return value


def event_from_dict(content: Any) -> DpEvent:
    """The event that `event_to_dict` wrote.

    Parameters
    ----------
    content : dict

    Returns
    -------
    DpEvent
        Its constructor checks every field.
    """
    name = content.get("event") if isinstance(content, dict) else None
    if not isinstance(name, str) or name not in _KNOWN:
        raise ValueError(f"event={name!r} is not known; use a log written by to_json of this version.")
    given = {"event" if key == "inner" else key: _read(value) for key, value in content.items() if key != "event"}
    known = {field.name for field in fields(_KNOWN[name])}
    if set(given) - known:
        raise ValueError(f"event={name!r} has no field {sorted(set(given) - known)[0]!r}; use a log by to_json.")
    try:
        return _KNOWN[name](**given)
    except TypeError as error:
        raise ValueError(f"event={name!r} cannot be read ({error}); use a log written by to_json.") from None


def bill_from_json(text: Any) -> dict[str, Any]:
    """The dictionary in a log, its schema checked.

    Parameters
    ----------
    text : str

    Returns
    -------
    dict
    """
    try:
        content = json.loads(text)
    except (TypeError, ValueError) as error:
        raise ValueError(f"text is not JSON ({error}); give what to_json returned.") from None
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        found = content.get("schema") if isinstance(content, dict) else None
        raise ValueError(f"schema={found!r} is not known; give a log of schema {SCHEMA}, as to_json returns.")
    missing = [key for key in ("epsilon", "delta", "unit", "filter_family", "charges") if key not in content]
    if missing or not isinstance(content["charges"], list):
        raise ValueError(f"{(missing or ['charges'])[0]!r} is missing or not a list; give what to_json returned.")
    return content
