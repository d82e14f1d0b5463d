"""The bill of a `PrivacyAccountant` as text and as HTML."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import fields
from itertools import groupby
from typing import Any

from .events import (
    ComposedDpEvent,
    DpEvent,
    PoissonSampledDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
)

__all__ = ["Rows", "as_html", "as_text", "charge_rows", "describe", "sampling_of"]

Rows = Sequence[Sequence[str]]

_LONGEST = 72
_COLUMNS = ("charge", "time", "label", "event", "sampling", "adjacency", "unit", "note")


def describe(event: DpEvent) -> str:
    """An event in a few words, such as `10000 x Poisson(0.01) Gaussian(4)`.

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
    numbers = ", ".join(f"{value:.6g}" for value in values if isinstance(value, (int, float)))
    return " ".join([f"{name}({numbers})" if numbers else name, *inner])


def sampling_of(event: DpEvent) -> str:
    """How the rows of an event are sampled: `none`, `Poisson(q)`, a fixed size, or several of these.

    Parameters
    ----------
    event : DpEvent

    Returns
    -------
    str
    """
    if isinstance(event, PoissonSampledDpEvent):
        return f"Poisson({event.sampling_probability:.6g})"
    if isinstance(event, SampledWithoutReplacementDpEvent):
        return f"{event.sample_size} of {event.source_dataset_size}"
    parts = event.events if isinstance(event, ComposedDpEvent) else (getattr(event, "event", None),)
    found = {sampling_of(part): None for part in parts if isinstance(part, DpEvent)}
    return ", ".join(found) or "none"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."


def charge_rows(charges: Sequence[Any]) -> list[list[str]]:
    """Rows of the table; equal neighbours share one, which shows the time of the first.

    Parameters
    ----------
    charges : sequence of Charge

    Returns
    -------
    list of list of str
    """
    rows: list[list[str]] = []
    number = 0
    for (event, label, adjacency, unit, note), same in groupby(charges, _shown):
        first, *others = same
        which = f"{number + 1}" if not others else f"{number + 1}-{number + 1 + len(others)}"
        number += 1 + len(others)
        what = [_short(label), _short(describe(event)), _short(sampling_of(event)), adjacency, unit, _short(note)]
        rows.append([which, first.time[:19].replace("T", " "), *what])
    return rows


def _shown(charge: Any) -> tuple[DpEvent, str, str, str, str]:
    return charge.event, charge.label, charge.adjacency, charge.unit, charge.note


def _filled(rows: Rows) -> list[Sequence[str]]:
    """Head and rows without the columns in which no row has anything."""
    used = [k for k in range(len(_COLUMNS)) if any(row[k] for row in rows)]
    return [[row[k] for k in used] for row in (_COLUMNS, *rows)] if rows else []


def as_text(title: str, rows: Rows, figures: Rows) -> str:
    """Title, charges in columns, then one figure a line.

    Parameters
    ----------
    title : str
    rows : sequence of rows
    figures : sequence of (name, value)

    Returns
    -------
    str
    """
    table = _filled(rows)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ["  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip() for row in table]
    return "\n".join([title, *lines, *(f"{name}: {value}" for name, value in figures)])


def as_html(title: str, rows: Rows, figures: Rows) -> str:
    """The same as an HTML fragment, every text escaped.

    Parameters
    ----------
    title : str
    rows : sequence of rows
    figures : sequence of (name, value)

    Returns
    -------
    str
    """

    def line(tag: str, cells: Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    head, *body = _filled(rows) or [()]
    lines = "".join(line("td", row) for row in body)
    table = f"<table><thead>{line('th', head)}</thead><tbody>{lines}</tbody></table>" if rows else ""
    notes = "".join(f"<li>{html.escape(name)}: {html.escape(value)}</li>" for name, value in figures)
    return f"<div><p><code>{html.escape(title)}</code></p>{table}<ul>{notes}</ul></div>"
