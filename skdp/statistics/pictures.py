"""A description as HTML with small pictures: one element without scripts, links or other resources."""

from __future__ import annotations

from typing import Any

import numpy as np

from skdp.accounting.ledger.report import escaped, to_digits
from skdp.base.estimates import shown

_WIDTH, _HEIGHT, _MOST_BARS = 180, 40, 24

_STYLE = """
.skdp-description { font: 14px/1.4 system-ui, sans-serif; color: inherit; max-width: 70rem; }
.skdp-description table { border-collapse: collapse; }
.skdp-description th, .skdp-description td { text-align: right; padding: .25rem .6rem; border-bottom: 1px solid #8884; }
.skdp-description th:first-child, .skdp-description td:last-child { text-align: left; }
.skdp-description small { opacity: .7; display: block; }
.skdp-description svg { fill: currentColor; opacity: .8; vertical-align: middle; }
"""


def page_of(description: Any) -> str:
    """Return the description, and those of its subgroups, as one element with its style."""
    parts = [_section(description, "")]
    parts += [_section(each, name) for name, each in description.subgroups.items()]
    unit = escaped(description.privacy_unit_)
    price = (
        f"ε = {to_digits(description.epsilon_, 5, up=True)} at δ = {description.delta_:g} for one {unit} "
        f"({escaped(description.adjacency_)}). Small print: intervals of 95% for the noise."
        + f" {escaped(description._estimand)}".rstrip()
    )
    return f'<div class="skdp-description"><style>{_STYLE}</style><p>{price}</p>{"".join(parts)}</div>'


def _section(description: Any, name: str) -> str:
    rows = {column: description.estimates(column) for column in description.columns}
    heads = list(next(iter(rows.values()))) if rows else []
    head = "".join(f"<th>{escaped(each)}</th>" for each in ["column", *heads, "distribution"])
    body = "".join(
        f"<tr><th>{escaped(column)}<small>{escaped(description._note(column))}</small></th>"
        f"{''.join(_cell(each) for each in figures.values())}"
        f"<td>{_bars(description, column)}</td></tr>"
        for column, figures in rows.items()
    )
    title = f"<h4>{escaped(name)}</h4>" if name else ""
    return f"{title}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(each: Any) -> str:
    if each.value != each.value:  # NaN
        return "<td></td>"
    return f"<td>{shown(each.value)}<small>{shown(each.low)} to {shown(each.high)}</small></td>"


def _bars(description: Any, column: str) -> str:
    """Return the distribution as bars: densities of bins, or counts of the most frequent categories."""
    frame = description.histogram(column)
    if "left" in frame:
        frame = frame.iloc[:-1]
        groups = np.array_split(np.arange(len(frame)), min(_MOST_BARS, len(frame)))
        counts, labels = frame["count"].to_numpy(), list(frame.index)
        heights = [float(counts[each].mean()) for each in groups]
        names = [labels[each[0]] if len(each) == 1 else f"{labels[each[0]]} to {labels[each[-1]]}" for each in groups]
    else:
        top = description.top(column, _MOST_BARS)
        heights, names = top["count"].tolist(), list(top.index)
    most, step = max([*heights, 1e-300]), _WIDTH / max(len(heights), 1)
    bars = "".join(
        f'<rect x="{i * step:.1f}" y="{_HEIGHT * (1 - h / most):.1f}" width="{max(step - 1, 0.5):.1f}" '
        f'height="{_HEIGHT * h / most:.1f}"><title>{escaped(name)}: {h:.0f}</title></rect>'
        for i, (h, name) in enumerate(zip(heights, names, strict=True))
    )
    return f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{escaped(column)}">{bars}</svg>'
