"""Tables and lines of HTML, with every text escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any


def one_line(text: Any) -> str:
    """Return text without line breaks and with invisible characters spelled out, so that no name looks like another."""
    words = " ".join(str(text).split())
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in words)


def escaped(text: Any) -> str:
    """Return text that can stand between tags and in attributes."""
    return html.escape(one_line(text))


def html_table(header: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """Return a table; the first cell of a row is its heading."""
    head = "".join(f'<th scope="col">{escaped(cell)}</th>' for cell in header)
    body = "".join(
        f'<tr><th scope="row">{escaped(first)}</th>{"".join(f"<td>{escaped(cell)}</td>" for cell in others)}</tr>'
        for first, *others in rows
    )
    above = f"<caption>{escaped(caption)}</caption>" if caption else ""
    return f"<table>{above}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def caption_of(text: str, *, warns: bool) -> str:
    """Return a line above scikit-learn's diagram of an estimator, or above a list."""
    ink = "#8a3a00" if warns else "#0b5394"
    return (
        '<div style="background: #ffffff; color: #1b1f24; font: 14px/1.5 system-ui, sans-serif; padding: .2em .6em; '
        f'border-left: 4px solid {ink}; margin-bottom: .4em; display: table;">{escaped(text)}</div>'
    )
