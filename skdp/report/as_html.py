"""A report as HTML: one file without scripts, links or other resources; light, dark and for paper."""

from __future__ import annotations

import importlib.resources

from skdp.accounting.ledger.html import escaped, html_table
from skdp.accounting.ledger.report import without_empty_columns
from skdp.report.sections import Listing, Section, sections, title
from skdp.report.sentences import Facts

_STYLE = "\n" + importlib.resources.files("skdp.report").joinpath("report.css").read_text("utf-8")


def fragment_of(facts: Facts) -> str:
    """The report as one element with its style, for a notebook."""
    body = "".join(_section(each) for each in sections(facts))
    return (
        f'<div class="skdp-report"><style>{_STYLE}</style><main><header><h1>{escaped(title(facts))}</h1></header>'
        f"{body}</main></div>"
    )


def document_of(facts: Facts) -> str:
    """The report as a document."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escaped(title(facts))}</title>\n"
        "<style>body { margin: 0; } @media (prefers-color-scheme: dark) { body { background: #14171b; } } "
        "@media print { body { background: #ffffff; } }</style>\n"
        f"</head>\n<body>\n{fragment_of(facts)}\n</body>\n</html>\n"
    )


def _section(section: Section) -> str:
    name = f"skdp-{escaped(section.key)}"
    notices = "".join(f"<p>{escaped(each)}</p>" for each in section.notices)
    parts = [f'<div class="skdp-notice" role="note">{notices}</div>' if notices else ""]
    parts += [f"<p>{escaped(each)}</p>" for each in section.paragraphs]
    parts += [_table(each) for each in section.tables]
    return (
        f'<section aria-labelledby="{name}"><h2 id="{name}">{escaped(section.title)}</h2>{"".join(parts)}</section>\n'
    )


def _table(table: Listing) -> str:
    head, *rows = without_empty_columns(table.header, table.rows)
    shown = html_table(head, rows, table.caption)
    return f'<div class="skdp-wide" role="region" aria-label="{escaped(table.caption)}" tabindex="0">{shown}</div>\n'
