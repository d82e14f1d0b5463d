"""A report as HTML: one file without scripts, links or other resources; light, dark and for paper."""

from __future__ import annotations

from skdp.accounting.ledger.html import escaped, html_table
from skdp.report.sections import Listing, Section, sections, title
from skdp.report.sentences import Facts

_STYLE = """
.skdp-report { --ink: #1b1f24; --soft: #57606a; --line: #d0d7de; --ground: #ffffff; --band: #f3f5f8;
  --accent: #0b5394; --warn-ink: #7a2e00; --warn: #fff3e6;
  color: var(--ink); background: var(--ground); font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto,
  "Liberation Sans", Arial, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 3rem;
  overflow-wrap: anywhere; }
@media (prefers-color-scheme: dark) { .skdp-report { --ink: #e6e9ed; --soft: #aab3bd; --line: #3d444d;
  --ground: #14171b; --band: #20252b; --accent: #8cc4ff; --warn-ink: #ffd7ad; --warn: #3b2410; } }
.skdp-report h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .25rem; }
.skdp-report h2 { font-size: 1.2rem; margin: 2.2rem 0 .5rem; padding-bottom: .2rem;
  border-bottom: 2px solid var(--line); }
.skdp-report p { margin: .5rem 0; max-width: 46rem; }
.skdp-report .skdp-price { font-size: 1.15rem; color: var(--accent); font-weight: 600; }
.skdp-report .skdp-notice { background: var(--warn); color: var(--warn-ink); border-left: 4px solid currentColor;
  padding: .6rem .9rem; margin: .8rem 0; }
.skdp-report table { border-collapse: collapse; width: 100%; margin: .9rem 0; font-size: .92rem; text-align: left;
  background: transparent; color: inherit; }
.skdp-report caption { text-align: left; font-weight: 600; color: var(--soft); padding: .3rem 0; }
.skdp-report th, .skdp-report td { border-bottom: 1px solid var(--line); padding: .35rem .6rem; vertical-align: top;
  text-align: left; min-width: 4.5em; overflow-wrap: break-word; }
.skdp-report thead th { background: var(--band); border-bottom-width: 2px; }
.skdp-report tbody th { font-weight: 600; max-width: 18em; }
.skdp-report .skdp-wide { overflow-x: auto; }
@media (max-width: 34rem) { .skdp-report { font-size: 15px; padding: 1rem .7rem 2rem; }
  .skdp-report th, .skdp-report td { padding: .3rem .35rem; } }
@media print { .skdp-report { --ink: #000000; --soft: #333333; --line: #999999; --ground: #ffffff; --band: #eeeeee;
  --accent: #000000; --warn-ink: #000000; --warn: #ffffff; font-size: 10.5pt; max-width: none; padding: 0; }
  .skdp-report h2 { break-after: avoid; } .skdp-report tr { break-inside: avoid; }
  .skdp-report .skdp-wide { overflow: visible; } }
"""


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
    used = [k for k in range(len(table.header)) if any(row[k] for row in table.rows)]
    rows = [[row[k] for k in used] for row in table.rows]
    shown = html_table([table.header[k] for k in used], rows, table.caption)
    return f'<div class="skdp-wide" role="region" aria-label="{escaped(table.caption)}" tabindex="0">{shown}</div>\n'
