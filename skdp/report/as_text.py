"""A report as plain text of 100 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from skdp.accounting.ledger.report import without_empty_columns
from skdp.report.sections import Listing, Section, sections, title
from skdp.report.sentences import Facts
from skdp.report.values import one_line

_WIDTH, _LEAST = 100, 8


def text_of(facts: Facts) -> str:
    """All sections, one line feed between lines; names hold none."""
    head = one_line(title(facts))
    lines = [head, "=" * len(head)]
    for section in sections(facts):
        lines += ["", *_section(section)]
    return "\n".join(lines) + "\n"


def _section(section: Section) -> Iterator[str]:
    yield from (section.title, "-" * len(section.title))
    for notice in section.notices:
        yield from textwrap.wrap(one_line(notice), _WIDTH, initial_indent="! ", subsequent_indent="  ")
    for number, paragraph in enumerate(section.paragraphs):
        yield from ([""] if number or section.notices else [])
        yield from textwrap.wrap(one_line(paragraph), _WIDTH)
    for table in section.tables:
        yield from ("", f"{one_line(table.caption)}:", *_table(table))


def _table(table: Listing) -> Iterator[str]:
    rows = [[one_line(cell) for cell in row] for row in without_empty_columns(table.header, table.rows)]
    widths = _widths([max(map(len, column)) for column in zip(*rows, strict=True)])
    for row in rows:
        cells = [textwrap.wrap(cell, width) or [""] for cell, width in zip(row, widths, strict=True)]
        for k in range(max(map(len, cells))):
            parts = [(cell[k] if k < len(cell) else "").ljust(width) for cell, width in zip(cells, widths, strict=True)]
            yield ("  " + "  ".join(parts)).rstrip()


def _widths(wanted: list[int]) -> list[int]:
    """Widths of columns that fit in a line; the widest ones give way."""
    widths = list(wanted)
    while widths and sum(widths) + 2 * len(widths) > _WIDTH and max(widths) > _LEAST:
        widths[widths.index(max(widths))] -= 1
    return widths
