"""`TradeOffDisplay`: what an attacker can tell who tests whether a record is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from skdp.accounting import DpEvent, NoOpDpEvent, PrivacyProfile

from ._axes import BLACK, BLUE, GREEN, GREY, PURPLE, VERMILION, axes_for, clear_frame, draw_legend, in_a_line

_COLOURS = (BLUE, VERMILION, GREEN, PURPLE, BLACK)
_POINTS = 401


@dataclass(kw_only=True, eq=False, repr=False)
class TradeOffDisplay:
    """Display of trade-off functions: false negatives against false positives of the best test for one record.

    It is recommended to use `from_events` or `from_audit` to create a display. All parameters are stored as attributes.

    Parameters
    ----------
    type_1 : sequence of float
        Shares of false positives, in [0, 1].
    type_2 : mapping of str to sequence of float
        Least share of false negatives at each of `type_1`, by name.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the lines.
    figure_ : matplotlib.figure.Figure
        Figure of the axes.
    lines_ : dict of str to matplotlib.lines.Line2D
        One line for each name.
    chance_level_ : matplotlib.lines.Line2D
        The line of guessing, the most private there is.
    """

    type_1: Sequence[float]
    type_2: Mapping[str, Sequence[float]]

    @classmethod
    def from_events(
        cls,
        events: DpEvent | Mapping[str, DpEvent],
        *,
        adjacency: str = "zero_out",
        method: str = "pld",
        group_size: int = 1,
        ax: Any = None,
        **kwargs: Any,
    ) -> TradeOffDisplay:
        """Compute the trade-off functions of events, and plot them.

        Parameters
        ----------
        events : DpEvent or mapping of str to DpEvent
            One event, or several by the names that the legend shows.
        adjacency : {"zero_out", "add_remove", "replace_one"}, default="zero_out"
            Neighbouring relation.
        method : str, default="pld"
            Method of `skdp.accounting.get_epsilon`.
        group_size : int, default=1
            In how many records neighbours differ.
        ax : matplotlib axes, optional
            Axes to plot on. If None, a new figure is created.
        **kwargs : dict
            Keyword arguments of `plot`.

        Returns
        -------
        display : TradeOffDisplay
            Display that holds the plot.
        """
        named = {"": events} if isinstance(events, DpEvent) else dict(events)
        half = 0.5 * np.linspace(0.0, 1.0, _POINTS // 2 + 1) ** 3  # most points where curves are steep
        type_1 = np.concatenate([half, 1.0 - half[-2::-1]])
        options: dict[str, Any] = {"adjacency": adjacency, "method": method, "group_size": group_size}
        type_2 = {name: PrivacyProfile(event, **options).trade_off(type_1) for name, event in named.items()}
        return cls(type_1=type_1.tolist(), type_2=type_2).plot(ax=ax, **kwargs)

    @classmethod
    def from_audit(cls, audit: Any, *, ax: Any = None, **kwargs: Any) -> TradeOffDisplay:
        """Plot what an audit compares: the curve that is claimed, and that of what the canary saw.

        Parameters
        ----------
        audit : AuditResult
            What `skdp.audit.audit_estimator` returned.
        ax : matplotlib axes, optional
            Axes to plot on. If None, a new figure is created.
        **kwargs : dict
            Keyword arguments of `plot`.

        Returns
        -------
        display : TradeOffDisplay
            Display that holds the plot. A curve below the claimed one is a violation. Where the canary saw no event,
            there is no curve of it.
        """
        named = {"claimed": audit.claimed_event, "seen by the canary": audit.event}
        events = {name: event for name, event in named.items() if not isinstance(event, NoOpDpEvent)}
        return cls.from_events(events, adjacency=audit.adjacency, ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Plot the lines.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to plot on. If None, a new figure is created.
        **kwargs : dict
            Keyword arguments of every call of `matplotlib.axes.Axes.plot` but that for the line of guessing.

        Returns
        -------
        display : TradeOffDisplay
            The display itself, with `ax_`, `figure_`, `lines_` and `chance_level_`.
        """
        ax = axes_for(self, ax, (5.2, 4.6))
        (self.chance_level_,) = ax.plot([0, 1], [1, 0], color=GREY, linestyle=":", linewidth=1.0, label="guessing")
        self.lines_: dict[str, Any] = {}
        for place, (name, values) in enumerate(self.type_2.items()):
            style: dict[str, Any] = {"color": _COLOURS[place % len(_COLOURS)], "label": in_a_line(name) or None}
            (self.lines_[name],) = ax.plot(self.type_1, values, **{**style, **kwargs})
        ax.set(xlabel="false positives", ylabel="false negatives, at least", xlim=(0, 1), ylim=(0, 1))
        clear_frame(ax)
        named = [(line, in_a_line(name)) for name, line in self.lines_.items()]
        draw_legend(ax, [(self.chance_level_, "guessing"), *named], fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self
