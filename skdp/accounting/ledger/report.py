"""Text and HTML tables of the entries of a `PrivacyAccountant`.

`to_digits` rounds displayed values conservatively.
"""

from __future__ import annotations

import decimal
import html
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from itertools import groupby
from typing import Any

from skdp.accounting.events.composition import parts_of
from skdp.accounting.events.kinds import kind_of
from skdp.accounting.events.specifications import ComposedDpEvent, DpEvent, PoissonSampledDpEvent, SelfComposedDpEvent


def one_line(text: Any) -> str:
    """Return text without line breaks and with escaped invisible characters, so that different names look different."""
    words = " ".join(str(text).split())
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in words)


def escaped(text: Any) -> str:
    """Return text escaped for HTML content and attributes."""
    return html.escape(one_line(text))


def html_table(header: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """Return an HTML table; the first cell of each row is a header cell."""
    head = "".join(f'<th scope="col">{escaped(cell)}</th>' for cell in header)
    body = "".join(
        f'<tr><th scope="row">{escaped(first)}</th>{"".join(f"<td>{escaped(cell)}</td>" for cell in others)}</tr>'
        for first, *others in rows
    )
    above = f"<caption>{escaped(caption)}</caption>" if caption else ""
    return f"<table>{above}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def caption_of(text: str, *, warns: bool) -> str:
    """Return a caption for scikit-learn's estimator diagram or for a list."""
    ink = "#8a3a00" if warns else "#0b5394"
    return (
        '<div style="background: #ffffff; color: #1b1f24; font: 14px/1.5 system-ui, sans-serif; padding: .2em .6em; '
        f'border-left: 4px solid {ink}; margin-bottom: .4em; display: table;">{escaped(text)}</div>'
    )


ReportRows = Sequence[Sequence[str]]

_LONGEST = 72
_MOST_NUMBERS = 4
_COLUMNS = (
    "entry", "time", "label", "event", "requested", "sampling", "adjacency", "unit", "partition", "noise", "note",
)  # fmt: skip
_KINDS = {"rejection": "input rejected (no cost)", "raise": "budget increased", "split": "train/test split (no cost)"}
_NOISE = {None: "", True: "seeded", False: "secret"}
_UNSHOWN = ("key",)  # of a split: it is in the file and in JSON, and no guarantee depends on its secrecy


def describe(event: DpEvent) -> str:
    """Return a short description of an event, such as `10000 x Poisson(0.01) Gaussian(4)`.

    Parameters
    ----------
    event : DpEvent

    Returns
    -------
    str
    """
    if isinstance(event, SelfComposedDpEvent):
        return f"{event.count} x {describe(event.event)}"
    if isinstance(event, ComposedDpEvent):
        return "(" + " + ".join(describe(part) for part in event.events) + ")"
    if isinstance(event, PoissonSampledDpEvent):
        return f"Poisson({event.sampling_probability:.6g}) {describe(event.event)}"
    name = type(event).__name__.removesuffix("DpEvent")
    inner = [describe(getattr(event, f.name)) for f in fields(event) if isinstance(getattr(event, f.name), DpEvent)]
    values = [getattr(event, f.name) for f in fields(event)]
    numbers = ", ".join(text for value in values if (text := _number(value)))
    return " ".join([f"{name}({numbers})" if numbers else name, *inner])


def _number(value: object) -> str:
    """Return one or several numbers with few digits; "" for other values."""
    if isinstance(value, tuple) and all(isinstance(each, int | float) for each in value):
        shown = [f"{each:.6g}" for each in value[:_MOST_NUMBERS]]
        return "[" + ", ".join(shown + ["..."] * (len(value) > _MOST_NUMBERS)) + "]"
    return f"{value:.6g}" if isinstance(value, int | float) else ""


def sampling_of(event: DpEvent) -> str:
    """Return the sampling of an event: `none`, `Poisson(q)`, a fixed size, or several of these.

    Parameters
    ----------
    event : DpEvent

    Returns
    -------
    str
    """
    sample = kind_of(event).sample
    if sample is not None:
        return sample(event).short
    found = {sampling_of(part): None for part in parts_of(event)}
    return ", ".join(found) or "none"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."


def _groups(entries: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Group equal consecutive entries: yield their numbers and the first entry."""
    number = 0
    for _, same in groupby(entries, _group_key):
        first, *others = same
        yield f"{number + 1}" if not others else f"{number + 1}-{number + 1 + len(others)}", first
        number += 1 + len(others)


def _group_key(entry: Any) -> tuple[Any, ...]:
    parameters = json.dumps(entry.parameters, sort_keys=True)
    return entry.kind, entry.event, entry.label, entry.adjacency, entry.unit, entry.partition, entry.note, parameters


def entry_rows(entries: Sequence[Any]) -> list[list[str]]:
    """Return the rows of the table; equal consecutive entries share a row with the time of the first.

    Parameters
    ----------
    entries : sequence of Charge

    Returns
    -------
    list of list of str
    """
    rows: list[list[str]] = []
    for which, entry in _groups(entries):
        event = _KINDS.get(entry.kind) or _short(describe(entry.event))
        sampling = _short(sampling_of(entry.event)) if entry.kind == "charge" else ""
        what = [_short(entry.label), event, _asked(entry), sampling, entry.adjacency, entry.unit]
        what += [_short(entry.partition or ""), _NOISE[entry.seeded], _short(entry.note)]
        rows.append([which, _time(entry.time), *what])
    return rows


def _time(text: str) -> str:
    """Return an ISO time without fractions of a second, with its time zone."""
    zone = "UTC" if text.endswith("+00:00") else text[23:]
    return f"{text[:19].replace('T', ' ')} {zone}".strip()


def _asked(entry: Any) -> str:
    """Return the requested epsilon and delta, if the recorded parameters contain them."""
    found = {name: entry.parameters.get(name) for name in ("epsilon", "delta")}
    numbers = {name: value for name, value in found.items() if isinstance(value, int | float)}
    return ", ".join(f"{name}={value:g}" for name, value in numbers.items()) if "epsilon" in numbers else ""


def parameter_lines(entries: Sequence[Any]) -> list[str]:
    """Return the recorded parameters of each entry; equal consecutive entries are grouped.

    Parameters
    ----------
    entries : sequence of Charge

    Returns
    -------
    list of str
    """
    lines = []
    for which, entry in _groups(entries):
        if entry.parameters:
            shown = {name: value for name, value in entry.parameters.items() if name not in _UNSHOWN}
            listed = ", ".join(f"{name}={value!r}" for name, value in shown.items())
            lines.append(f"parameters of {which}: {listed}")
    return lines


def without_empty_columns(header: Sequence[str], rows: ReportRows) -> list[Sequence[str]]:
    """Return header and rows without empty columns."""
    used = [k for k in range(len(header)) if any(row[k] for row in rows)]
    return [[row[k] for k in used] for row in (header, *rows)]


def as_text(title: str, rows: ReportRows, figures: ReportRows) -> str:
    """Return the title, the table of entries, and one value per line as text.

    Parameters
    ----------
    title : str
    rows : sequence of rows
    figures : sequence of (name, value)

    Returns
    -------
    str
    """
    table = without_empty_columns(_COLUMNS, rows) if rows else []
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ["  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip() for row in table]
    return "\n".join([title, *lines, *(f"{name}: {value}" for name, value in figures)])


def as_html(title: str, rows: ReportRows, figures: ReportRows) -> str:
    """Return the same content as an escaped HTML fragment.

    Parameters
    ----------
    title : str
    rows : sequence of rows
    figures : sequence of (name, value)

    Returns
    -------
    str
    """

    head, *body = without_empty_columns(_COLUMNS, rows)
    notes = "".join(f"<li>{escaped(name)}: {escaped(value)}</li>" for name, value in figures)
    return f"<div><p><code>{escaped(title)}</code></p>{html_table(head, body) if rows else ''}<ul>{notes}</ul></div>"


def to_digits(value: float, digits: int, *, up: bool = False) -> str:
    """Return a non-negative number rounded to this many digits, down or up.

    Parameters
    ----------
    value : float
    digits : int
    up : bool
        Whether to round up.

    Returns
    -------
    str
    """
    if value in (0.0, math.inf):
        return f"{value:g}"
    rounding = decimal.ROUND_CEILING if up else decimal.ROUND_FLOOR
    return f"{float(decimal.Context(digits, rounding).create_decimal(repr(value))):.{digits}g}"
