"""Events and entries as JSON, and the hash chain of the entries.

The hash of the terms is the first link. The hash of an entry covers its fields, its position and the previous hash, so
it covers all earlier entries.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from skdp.accounting.events.kinds import BY_NAME, REMOVED_EVENTS
from skdp.accounting.events.specifications import DpEvent, resolve
from skdp.accounting.ledger.charges import ENTRY_KINDS, Charge, Terms, check_name, check_text, plain_parameters
from skdp.accounting.ledger.filters import Rule
from skdp.accounting.methods import check_adjacency
from skdp.exceptions import BudgetFileError

# Schema of the JSON; no other schema can be read.
JSON_SCHEMA = 4


def _plain(value: Any) -> Any:
    if isinstance(value, DpEvent):
        return event_to_dict(value)
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value


def event_to_dict(event: DpEvent) -> dict[str, Any]:
    """Return an event as a dictionary of plain values.

    Parameters
    ----------
    event : DpEvent

    Returns
    -------
    dict
        `{"event": name, field: value, ...}`; field `event` of a wrapping event is called `inner`.
    """
    event = resolve(event)
    name = type(event).__name__
    if BY_NAME.get(name) is not type(event):
        raise TypeError(f"event={event!r} cannot be written as JSON. Use the events of skdp.accounting.")
    content = {"inner" if f.name == "event" else f.name: _plain(getattr(event, f.name)) for f in fields(event)}
    return {"event": name, **content}


def _read(value: Any) -> Any:
    if isinstance(value, dict):
        return event_from_dict(value)
    if isinstance(value, list):
        return tuple(_read(part) for part in value)
    return value


def event_from_dict(content: Any) -> DpEvent:
    """Return an event from the output of `event_to_dict`.

    Parameters
    ----------
    content : dict

    Returns
    -------
    DpEvent
        Its constructor checks every field.
    """
    name = content.get("event") if isinstance(content, dict) else None
    if isinstance(name, str) and name in REMOVED_EVENTS:
        raise BudgetFileError(
            f"event={name!r} is not supported by this version. No budget was consumed. Create a new budget file and "
            "charge the epsilon and delta spent so far as EpsilonDeltaDpEvent(epsilon, delta)."
        )
    if not isinstance(name, str) or name not in BY_NAME:
        raise ValueError(f"event={name!r} is not supported. Pass the output of `to_json` of this version.")
    given = {"event" if key == "inner" else key: _read(value) for key, value in content.items() if key != "event"}
    known = {field.name for field in fields(BY_NAME[name])}
    if set(given) - known:
        raise ValueError(
            f"event={name!r} has no field {sorted(set(given) - known)[0]!r}. Pass the output of `to_json`."
        )
    try:
        return BY_NAME[name](**given)
    except TypeError as error:
        raise ValueError(f"event={name!r} cannot be read ({error}). Pass the output of `to_json`.") from None


def canonical(content: Any) -> str:
    """Return the canonical JSON of a value."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def link(fields_of_entry: dict[str, Any]) -> str:
    """Return the hexadecimal SHA-256 of an entry. Fields that are None are omitted, so that schemas can add fields."""
    content = {name: value for name, value in fields_of_entry.items() if value is not None}
    return hashlib.sha256(canonical(content).encode()).hexdigest()


# Dictionary fields, which files store as text.
_TEXTS = ("parameters", "event", "rule")


def charge_to_fields(charge: Charge, seq: int, previous: str) -> dict[str, Any]:
    """Return an entry with the field names of the file, without its hash; event, parameters and rule are text.

    The kind of a charge is None. The rules are None if the entry does not fix them.
    """
    return {
        "seq": seq,
        "time": charge.time,
        "label": charge.label,
        "parameters": canonical(charge.parameters),
        "event": canonical(event_to_dict(charge.event)),
        "adjacency": charge.adjacency,
        "note": charge.note,
        "previous": previous,
        "kind": None if charge.kind == "charge" else charge.kind,
        "rule": None if charge.rule is None else canonical(charge.rule.to_dict()),
        "partition": charge.partition,
        "partition_rule": charge.partition_rule,
    }


def charge_from_fields(content: dict[str, Any], terms: Terms) -> Charge:
    """Return a validated entry from the output of `charge_to_fields`."""
    time, label, note = (check_text(name, content[name]) for name in ("time", "label", "note"))
    event, parameters = event_from_dict(json.loads(content["event"])), json.loads(content["parameters"])
    adjacency = check_adjacency(content["adjacency"])
    kind, rule = content.get("kind"), content.get("rule")
    kind = "charge" if kind is None else kind
    if kind not in ENTRY_KINDS:
        raise ValueError(f"kind={kind!r} is not supported by this version. Update skdp.")
    kept = None if rule is None else Rule.read(json.loads(rule), terms.delta)
    partition, told = (check_name(name, content.get(name)) for name in ("partition", "partition_rule"))
    parameters = plain_parameters(parameters)
    return Charge(event, label, adjacency, terms.unit, parameters, note, time, kind, kept, partition, told)


def chain(terms: Terms, charges: Iterable[Charge]) -> list[str]:
    """Return the hash of the terms and the hash of each entry.

    Parameters
    ----------
    terms : Terms
    charges : iterable of Charge

    Returns
    -------
    list of str
    """
    heads = [link(terms.to_dict())]
    for seq, charge in enumerate(charges, start=1):
        heads.append(link(charge_to_fields(charge, seq, heads[-1])))
    return heads


def ledger_to_json(terms: Terms, charges: Iterable[Charge]) -> str:
    """Return terms and entries as JSON.

    Parameters
    ----------
    terms : Terms
    charges : iterable of Charge

    Returns
    -------
    str
    """
    charges = list(charges)
    heads = chain(terms, charges)
    entries = []
    for charge, head in zip(charges, heads[1:], strict=True):
        # without its position, and with parsed texts
        written = {name: value for name, value in charge_to_fields(charge, 0, "").items() if value is not None}
        del written["seq"], written["previous"]
        parsed = {name: json.loads(written[name]) for name in _TEXTS if name in written}
        entries.append({**written, **parsed, "hash": head})
    return json.dumps({"schema": JSON_SCHEMA, **terms.to_dict(), "charges": entries, "head": heads[-1]})


def _content(text: Any) -> dict[str, Any]:
    """Return the dictionary in a log after checking its schema and its keys."""
    try:
        content = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"`text` must be JSON ({error}). Pass the output of `to_json`.") from None
    schema = content.get("schema") if isinstance(content, dict) else None
    if schema != JSON_SCHEMA:
        raise ValueError(
            f"`text` must have schema {JSON_SCHEMA}, got {schema!r}. Pass the output of `to_json` of this version."
        )
    names = ("unit", "filter_family", "charges", "version", "id", "created", "head")
    missing = [name for name in names if content.get(name) is None]
    missing += [name for name in ("epsilon", "delta") if name not in content]  # null: without a budget
    if missing or not isinstance(content["charges"], list):
        raise ValueError(f"{(missing or ['charges'])[0]!r} is missing or invalid. Pass the output of `to_json`.")
    return content


def ledger_from_json(text: Any) -> tuple[Terms, list[Charge]]:
    """Return terms and charges from the output of `ledger_to_json`.

    Parameters
    ----------
    text : str

    Returns
    -------
    terms : Terms
    charges : list of Charge
    """
    content = _content(text)
    terms = Terms.read(content)
    charges = [_charge(each, terms) for each in content["charges"]]
    heads, written = chain(terms, charges), [each.get("hash") for each in content["charges"]]
    for seq, (computed, found) in enumerate(zip(heads[1:], written, strict=True), start=1):
        if computed != found:
            raise ValueError(f"Charge {seq} of the log was altered. Pass the output of `to_json`.")
    if content["head"] != heads[-1]:
        raise ValueError(f"head={content['head']!r} is not the hash of the last charge. Pass the output of `to_json`.")
    return terms, charges


def _charge(content: Any, terms: Terms) -> Charge:
    names = ("time", "label", "parameters", "event", "adjacency", "note")
    if not isinstance(content, dict) or any(name not in content for name in names) or None in content.values():
        raise ValueError(f"charge={content!r} has a missing or null field. Pass the output of `to_json`.")
    texts = {name: canonical(content[name]) for name in _TEXTS if name in content}
    try:
        return charge_from_fields({**content, **texts}, terms)
    except TypeError as error:  # the JSON has numbers instead of texts
        raise ValueError(str(error)) from None
