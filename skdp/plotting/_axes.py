"""Shared axes, colors and notes of the displays. Axes that are passed are used without pyplot."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

BLACK, BLUE, VERMILION, GREEN, PURPLE = "#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7"
"""Colors that color-blind readers can distinguish (Okabe & Ito 2008)."""
COLORS = (BLUE, VERMILION, GREEN, PURPLE, BLACK)
GRAY, PALE = "#666666", "#D9D9D9"

AS_IT_IS = {"parse_math": False, "usetex": False}
"""Style of texts from a table or a user; otherwise matplotlib interprets "$" as TeX."""

_MOST_TICKS = 8
_LONGEST = 48  # characters of a name


def require_matplotlib(display: Any) -> None:
    """Raise an error if matplotlib is not installed, before any computation."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(f'{type(display).__name__} requires matplotlib. Run `pip install ".[plot]"`.') from error


def axes_for(display: Any, ax: Any, size: tuple[float, float] = (6.4, 4.4)) -> Any:
    """The axes that were passed, or those of a new figure of this size in inches."""
    require_matplotlib(display)
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


def clear_frame(ax: Any, grid: str = "both") -> None:
    """Remove the upper and right border, and draw a faint grid in the background."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis=grid, alpha=0.25)
    ax.set_axisbelow(True)


def width_beside(names: Iterable[str]) -> float:
    """The width of a figure in inches with these names to the left of the axes."""
    return 6.4 + 0.08 * max(0, max(map(len, names), default=0) - 20)


def in_a_line(name: Any) -> str:
    """A name as one line; the middle of a long one is removed."""
    text = _printable(str(name))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2 - 1]}…{text[-(_LONGEST // 2) :]}"


def _printable(text: str) -> str:
    """Line breaks, and characters without a glyph, as Python escapes."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def draw_legend(ax: Any, named: Iterable[tuple[Any, str]], **style: Any) -> None:
    """Draw a legend of the existing artists of the axes, then of these artists, with names drawn literally.

    Otherwise matplotlib omits artists whose labels begin with an underscore, which marks those without a label. Artists
    with a label of the user are treated as in matplotlib. The names are stored with the axes, for a second display on
    them.
    """
    there = ax.get_children()
    ours = ax.skdp_names = [pair for pair in (*getattr(ax, "skdp_names", ()), *named) if pair[0] in there]
    found = zip(*ax.get_legend_handles_labels(), strict=True)
    shown: list[tuple[Any, str, dict[str, bool]]]
    shown = [(artist, label, {}) for artist, label in found if not any(artist is each for each, _ in ours)]
    for artist, name in ours:
        label = str(artist.get_label())
        if label == name:
            shown.append((artist, label, AS_IT_IS))
        elif not label.startswith("_"):
            shown.append((artist, label, {}))
    if shown:
        legend = ax.legend([artist for artist, *_ in shown], ["to be set"] * len(shown), frameon=False, **style)
        for text, (_, label, reading) in zip(legend.get_texts(), shown, strict=True):
            text.set(text=label, **reading)


def small_print(ax: Any, text: str, width: int = 92) -> Any:
    """Write a note below the label of the x axis, as an annotation for which layouts leave room."""
    lines = textwrap.fill(_printable(" ".join(text.split())), width)
    return ax.annotate(
        lines, (0.0, 0.0), (0.0, -5.0), xycoords=("axes fraction", ax.xaxis.label), textcoords="offset points",
        va="top", ha="left", fontsize="x-small", color=GRAY, annotation_clip=False, **AS_IT_IS,
    )  # fmt: skip


def finish(display: Any, ax: Any, note: str = "", width: int = 92) -> Any:
    """Store the axes of a display, and write a note if there is one, which is returned."""
    display.ax_, display.figure_ = ax, ax.figure
    return small_print(ax, note, width) if note else None


def log_axis_of_epsilon(ax: Any, epsilons: Sequence[float]) -> None:
    """A logarithmic x axis, with a tick for each budget if there is room."""
    ax.set_xscale("log")
    if len(epsilons) <= _MOST_TICKS:
        ax.set_xticks(list(epsilons), [f"{epsilon:g}" for epsilon in epsilons])
        ax.set_xticks([], minor=True)
    ax.set_xlabel("epsilon of one fit (log scale; smaller is more private)")


def keep_small_differences_small(ax: Any, least: float) -> None:
    """Let the y axis span `least` or more: stretched over a difference of 0.001 it would look like a loss.

    The limits of the data are widened, not those of the axes, which adapt to later artists.
    """
    (x, low), (_, high) = ax.dataLim.get_points()
    slack = max(0.0, least - (high - low)) / 2
    down = max(0.0, high + slack - 1.0) if high <= 1.0 else 0.0  # most scores end at 1
    ax.update_datalim([(x, low - slack - down), (x, high + slack - down)])
    ax.autoscale_view()
