"""`AuditDisplay`: what was claimed of a record, and what an attack saw of it."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from skdp.accounting import NoOpDpEvent, PrivacyProfile

from ._axes import BLUE, GREY, VERMILION, axes_for, clear_frame, draw_legend

_POINTS = 201


class AuditDisplay:
    """Display of an audit: the trade-off curve that is claimed, and what was observed.

    It is recommended to use `from_audit` to create a display. All parameters are stored as attributes.

    Parameters
    ----------
    type_1 : sequence of float
        Shares of false positives, in [0, 1].
    claimed : sequence of float
        Least share of false negatives at each of `type_1` that the claim admits.
    seen : sequence of float or None
        The same of what the canary saw, where that was an event. A curve below the claimed one is a violation.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the curves.
    figure_ : matplotlib.figure.Figure
        Figure of the axes.
    """

    def __init__(self, *, type_1: Any, claimed: Any, seen: Any = None) -> None:
        self.type_1 = type_1
        self.claimed = claimed
        self.seen = seen

    @classmethod
    def from_audit(cls, audit: Any, *, ax: Any = None, **kwargs: Any) -> AuditDisplay:
        """Compute the curves of an audit, and plot them.

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
        display : AuditDisplay
            Display that holds the plot.
        """
        half = 0.5 * np.linspace(0.0, 1.0, _POINTS // 2 + 1) ** 3  # most points where curves are steep
        type_1 = np.concatenate([half, 1.0 - half[-2::-1]])
        events = [audit.claimed_event, audit.event]
        claimed, seen = (
            None
            if isinstance(event, NoOpDpEvent)
            else PrivacyProfile(event, adjacency=audit.adjacency).trade_off(type_1).tolist()
            for event in events
        )
        return cls(type_1=type_1.tolist(), claimed=claimed, seen=seen).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Plot the curves.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to plot on. If None, a new figure is created.
        **kwargs : dict
            Keyword arguments of the call of `matplotlib.axes.Axes.plot` for the claimed curve.

        Returns
        -------
        display : AuditDisplay
            The display itself, with `ax_` and `figure_`.
        """
        ax = axes_for(self, ax, (5.2, 4.6))
        named = [(ax.plot([0, 1], [1, 0], color=GREY, linestyle=":", linewidth=1.0)[0], "guessing")]
        named.append((ax.plot(self.type_1, self.claimed, **{"color": BLUE, **kwargs})[0], "claimed"))
        if self.seen is not None:
            named.append((ax.plot(self.type_1, self.seen, color=VERMILION, linestyle="--")[0], "seen by the canary"))
        ax.set(xlabel="false positives", ylabel="false negatives, at least", xlim=(0, 1), ylim=(0, 1))
        clear_frame(ax)
        draw_legend(ax, named, fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self
