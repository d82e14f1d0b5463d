"""`AccountantComparisonDisplay`: epsilon of one computation by several accounting methods; `TradeOffDisplay`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from skdp.accounting import DpEvent, NoOpDpEvent, PrivacyProfile, get_epsilon
from skdp.accounting.methods import APPROXIMATIONS, METHOD_NAMES, METHODS
from skdp.plotting import _axes

_METHOD_COLORS = {
    "naive": _axes.GRAY, "strong": _axes.VERMILION, "strong_2016": _axes.VERMILION, "optimal": _axes.PURPLE,
    "optimal_exact": _axes.PURPLE, "moments": _axes.BLUE, "moments_asymptotic": _axes.BLUE, "rdp": _axes.GREEN,
    "pld": _axes.BLACK,
}  # fmt: skip


@dataclass(kw_only=True, eq=False, repr=False)
class AccountantComparisonDisplay:
    """Epsilon against the length of a computation, with one line per accounting method.

    It is recommended to use `from_event` to create a display. All parameters are stored as attributes.

    Parameters
    ----------
    steps : sequence of numbers
        Lengths at which epsilon was computed, such as steps or epochs.
    epsilons : mapping of str to sequence of float
        Epsilon at each of `steps`, by method.
    delta : float
        Delta at which epsilon was computed, in (0, 1).
    xlabel : str, default="step"
        Label of the x axis, the unit of `steps`.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the lines.
    figure_ : matplotlib.figure.Figure
        Figure of the axes.
    lines_ : dict of str to matplotlib.lines.Line2D
        One line for each method.
    """

    steps: Sequence[float]
    epsilons: Mapping[str, Sequence[float]]
    delta: float
    xlabel: str = "step"

    @classmethod
    def from_event(
        cls, event_of_steps: Callable[[Any], DpEvent], steps: Iterable[float], delta: float, *,
        methods: Sequence[str] = ("naive", "strong", "moments", "rdp", "pld"), adjacency: str = "zero_out",
        xlabel: str = "step", ax: Any = None, **kwargs: Any,
    ) -> AccountantComparisonDisplay:  # fmt: skip
        """Compute epsilon of an event at several lengths by several accounting methods, and plot it.

        Parameters
        ----------
        event_of_steps : callable
            Function such that ``event_of_steps(step)`` is the event of the computation up to `step`.
        steps : iterable of numbers
            Arguments of `event_of_steps`, such as steps or epochs.
        delta : float
            Delta at which epsilon is computed, in (0, 1).
        methods : sequence of str
            Methods of `skdp.accounting.get_epsilon`. Methods that are not guarantees have dashed lines.
        adjacency : {"zero_out", "add_remove", "replace_one"}, default="zero_out"
            Neighboring relation.
        xlabel : str, default="step"
            Label of the x axis, the unit of `steps`.
        ax : matplotlib axes, optional
            Axes to plot on. If None, a new figure is created.
        **kwargs : dict
            Keyword arguments of `plot`.

        Returns
        -------
        display : AccountantComparisonDisplay
            The display with its plot.
        """
        unknown = [method for method in methods if method not in METHODS + APPROXIMATIONS]
        if unknown:
            known = ", ".join(METHODS + APPROXIMATIONS)
            raise ValueError(f"`methods` must be among {known}, got {unknown[0]!r} in {list(methods)!r}.")
        at = list(steps)
        events = [event_of_steps(step) for step in at]
        epsilons = {
            method: [get_epsilon(event, delta, method=method, adjacency=adjacency) for event in events]
            for method in methods
        }
        return cls(steps=at, epsilons=epsilons, delta=delta, xlabel=xlabel).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Plot the lines.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to plot on. If None, a new figure is created.
        **kwargs : dict
            Keyword arguments of every call of `matplotlib.axes.Axes.plot`.

        Returns
        -------
        display : AccountantComparisonDisplay
            The display itself, with `ax_`, `figure_` and `lines_`.
        """
        ax = _axes.axes_for(self, ax)
        self.lines_: dict[str, Any] = {}
        known = {method: name.partition(" (")[0] for method, name in METHOD_NAMES.items()}
        names = {method: known.get(method, _axes.in_a_line(method)) for method in self.epsilons}
        for method, epsilons in self.epsilons.items():
            style: dict[str, Any] = {"linestyle": "--" if method in APPROXIMATIONS else "-"}
            style |= {"label": names[method], "color": _METHOD_COLORS.get(method, _axes.PURPLE)}
            finite = [epsilon if epsilon < math.inf else math.nan for epsilon in epsilons]
            (self.lines_[method],) = ax.plot(self.steps, finite, **{**style, **kwargs})
        ax.set_xlabel(self.xlabel, **_axes.AS_IT_IS)
        ax.set_ylabel(f"epsilon at delta = {self.delta:g}")
        if ax.get_yscale() == "linear":
            ax.set_ylim(bottom=0)
        _axes.clear_frame(ax)
        _axes.draw_legend(ax, [(self.lines_[method], name) for method, name in names.items()], fontsize="small")
        _axes.finish(self, ax)
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class TradeOffDisplay:
    """Trade-off functions: the smallest false negative rate against the false positive rate of a test for one record.

    It is recommended to use `from_events` or `from_audit` to create a display. All parameters are stored as attributes.

    Parameters
    ----------
    type_1 : sequence of float
        False positive rates, in [0, 1].
    type_2 : mapping of str to sequence of float
        Smallest false negative rate at each of `type_1`, by name.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the lines.
    figure_ : matplotlib.figure.Figure
        Figure of the axes.
    lines_ : dict of str to matplotlib.lines.Line2D
        One line for each name.
    chance_level_ : matplotlib.lines.Line2D
        The line of random guessing, which is perfect privacy.
    """

    type_1: Sequence[float]
    type_2: Mapping[str, Sequence[float]]

    @classmethod
    def from_events(
        cls, events: DpEvent | Mapping[str, DpEvent], *, adjacency: str = "zero_out", method: str = "pld",
        group_size: int = 1, ax: Any = None, **kwargs: Any,
    ) -> TradeOffDisplay:  # fmt: skip
        """Compute the trade-off functions of events, and plot them.

        Parameters
        ----------
        events : DpEvent or mapping of str to DpEvent
            One event, or several by their names in the legend.
        adjacency : {"zero_out", "add_remove", "replace_one"}, default="zero_out"
            Neighboring relation.
        method : str, default="pld"
            Method of `skdp.accounting.get_epsilon`.
        group_size : int, default=1
            Number of records in which neighbors differ.
        ax : matplotlib axes, optional
            Axes to plot on. If None, a new figure is created.
        **kwargs : dict
            Keyword arguments of `plot`.

        Returns
        -------
        display : TradeOffDisplay
            The display with its plot.
        """
        named = {"": events} if isinstance(events, DpEvent) else dict(events)
        half = 0.5 * np.linspace(0.0, 1.0, 201) ** 3  # most points in the steep part of the curves
        type_1 = np.concatenate([half, 1.0 - half[-2::-1]])
        options: dict[str, Any] = {"adjacency": adjacency, "method": method, "group_size": group_size}
        type_2 = {name: PrivacyProfile(event, **options).trade_off(type_1) for name, event in named.items()}
        return cls(type_1=type_1.tolist(), type_2=type_2).plot(ax=ax, **kwargs)

    @classmethod
    def from_audit(cls, audit: Any, *, ax: Any = None, **kwargs: Any) -> TradeOffDisplay:
        """Plot the claimed trade-off function of an audit, and that of the detected releases.

        Parameters
        ----------
        audit : AuditResult
            Result of `skdp.audit.audit_estimator`.
        ax : matplotlib axes, optional
            Axes to plot on. If None, a new figure is created.
        **kwargs : dict
            Keyword arguments of `plot`.

        Returns
        -------
        display : TradeOffDisplay
            The display with its plot. A curve below the claimed one is a violation. Without an event for the canary,
            there is only the claimed curve.
        """
        named = {"claimed": audit.claimed_event, "detected by the audit": audit.event}
        events = {name: event for name, event in named.items() if not isinstance(event, NoOpDpEvent)}
        return cls.from_events(events, adjacency=audit.adjacency, ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Plot the lines.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to plot on. If None, a new figure is created.
        **kwargs : dict
            Keyword arguments of every call of `matplotlib.axes.Axes.plot` except that for the chance level.

        Returns
        -------
        display : TradeOffDisplay
            The display itself, with `ax_`, `figure_`, `lines_` and `chance_level_`.
        """
        ax = _axes.axes_for(self, ax, (5.2, 4.6))
        (self.chance_level_,) = ax.plot(
            [0, 1], [1, 0], color=_axes.GRAY, linestyle=":", linewidth=1.0, label="guessing"
        )
        self.lines_: dict[str, Any] = {}
        for place, (name, values) in enumerate(self.type_2.items()):
            color = _axes.COLORS[place % len(_axes.COLORS)]
            style: dict[str, Any] = {"color": color, "label": _axes.in_a_line(name) or None}
            (self.lines_[name],) = ax.plot(self.type_1, values, **{**style, **kwargs})
        ax.set(xlabel="false positive rate", ylabel="smallest false negative rate", xlim=(0, 1), ylim=(0, 1))
        _axes.clear_frame(ax)
        named = [(line, _axes.in_a_line(name)) for name, line in self.lines_.items()]
        _axes.draw_legend(ax, [(self.chance_level_, "guessing"), *named], fontsize="small")
        _axes.finish(self, ax)
        return self
