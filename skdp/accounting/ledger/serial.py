"""Events, entries and ledgers as JSON, and the hashes that chain the entries of a ledger.

The hash of the terms is the first link; the hash of an entry covers its fields, its place and the hash before it.
So a hash represents everything up to it.
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

# Of the JSON; no other one is read.
JSON_SCHEMA = 4


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
    event = resolve(event)
    name = type(event).__name__
    if BY_NAME.get(name) is not type(event):
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
    if isinstance(name, str) and name in REMOVED_EVENTS:
        raise BudgetFileError(
            f"event={name!r} is not supported by this version, so its record has no sum; nothing was charged: start a "
            "new record with the epsilon and delta spent so far as EpsilonDeltaDpEvent(epsilon, delta)."
        )
    if not isinstance(name, str) or name not in BY_NAME:
        raise ValueError(f"event={name!r} is not known; use a log written by to_json of this version.")
    given = {"event" if key == "inner" else key: _read(value) for key, value in content.items() if key != "event"}
    known = {field.name for field in fields(BY_NAME[name])}
    if set(given) - known:
        raise ValueError(f"event={name!r} has no field {sorted(set(given) - known)[0]!r}; use a log by to_json.")
    try:
        return BY_NAME[name](**given)
    except TypeError as error:
        raise ValueError(f"event={name!r} cannot be read ({error}); use a log written by to_json.") from None


def canonical(content: Any) -> str:
    """The one way in which we write this content as JSON."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def link(fields_of_entry: dict[str, Any]) -> str:
    """SHA-256 of an entry, in hexadecimal. Fields that are None are left out: a later schema may add some."""
    content = {name: value for name, value in fields_of_entry.items() if value is not None}
    return hashlib.sha256(canonical(content).encode()).hexdigest()


# Fields that are dictionaries, as text in a file.
_TEXTS = ("parameters", "event", "rule")


def charge_to_fields(charge: Charge, seq: int, previous: str) -> dict[str, Any]:
    """An entry by the names that the file gives its fields, event, parameters and rule as text, without its hash.

    The kind is None of a charge, the rules of what fixes none.
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
    """The entry that `charge_to_fields` wrote, each field checked."""
    time, label, note = (check_text(name, content[name]) for name in ("time", "label", "note"))
    event, parameters = event_from_dict(json.loads(content["event"])), json.loads(content["parameters"])
    adjacency = check_adjacency(content["adjacency"])
    kind, rule = content.get("kind"), content.get("rule")
    kind = "charge" if kind is None else kind
    if kind not in ENTRY_KINDS:
        raise ValueError(f"kind={kind!r} is not known; update skdp.")
    kept = None if rule is None else Rule.read(json.loads(rule), terms.delta)
    partition, told = (check_name(name, content.get(name)) for name in ("partition", "partition_rule"))
    parameters = plain_parameters(parameters)
    return Charge(event, label, adjacency, terms.unit, parameters, note, time, kind, kept, partition, told)


def chain(terms: Terms, charges: Iterable[Charge]) -> list[str]:
    """The hash of the terms and that of each entry.

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
    """A ledger as JSON.

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
        # without its place, which the list tells, and texts as what they say
        written = {name: value for name, value in charge_to_fields(charge, 0, "").items() if value is not None}
        del written["seq"], written["previous"]
        parsed = {name: json.loads(written[name]) for name in _TEXTS if name in written}
        entries.append({**written, **parsed, "hash": head})
    return json.dumps({"schema": JSON_SCHEMA, **terms.to_dict(), "charges": entries, "head": heads[-1]})


def _content(text: Any) -> dict[str, Any]:
    """The dictionary in a log, of the present schema and with all its keys."""
    try:
        content = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"text is not JSON ({error}); give what to_json returned.") from None
    schema = content.get("schema") if isinstance(content, dict) else None
    if schema != JSON_SCHEMA:
        raise ValueError(f"schema={schema!r} is not known; give a log of schema {JSON_SCHEMA}, as to_json returns.")
    names = ("unit", "filter_family", "charges", "version", "id", "created", "head")
    missing = [name for name in names if content.get(name) is None]
    missing += [name for name in ("epsilon", "delta") if name not in content]  # null: without a budget
    if missing or not isinstance(content["charges"], list):
        raise ValueError(f"{(missing or ['charges'])[0]!r} is missing, null or not a list; give what to_json returned.")
    return content


def ledger_from_json(text: Any) -> tuple[Terms, list[Charge]]:
    """The ledger in a log that `ledger_to_json` wrote.

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
            raise ValueError(f"charge {seq} of the log is not what was written; give what to_json returned.")
    if content["head"] != heads[-1]:
        raise ValueError(f"head={content['head']!r} is not that of the last charge; give what to_json returned.")
    return terms, charges


def _charge(content: Any, terms: Terms) -> Charge:
    names = ("time", "label", "parameters", "event", "adjacency", "note")
    if not isinstance(content, dict) or any(name not in content for name in names) or None in content.values():
        raise ValueError(f"charge={content!r} lacks a field, or one is null; give what to_json returned.")
    texts = {name: canonical(content[name]) for name in _TEXTS if name in content}
    try:
        return charge_from_fields({**content, **texts}, terms)
    except TypeError as error:  # JSON has numbers where texts belong
        refusal = str(error)
    raise ValueError(refusal)
