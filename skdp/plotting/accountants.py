"""`AccountantComparisonDisplay`: what one computation costs by several methods of accounting."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from skdp.accounting import DpEvent, get_epsilon
from skdp.accounting.methods import APPROXIMATIONS, METHOD_NAMES, METHODS

from ._axes import AS_IT_IS, BLACK, BLUE, GREEN, GREY, PURPLE, VERMILION, axes_for, clear_frame, draw_legend, in_a_line

_COLOURS = {
    "naive": GREY,
    "strong": VERMILION,
    "strong_2016": VERMILION,
    "optimal": PURPLE,
    "optimal_exact": PURPLE,
    "moments": BLUE,
    "moments_asymptotic": BLUE,
    "rdp": GREEN,
    "pld": BLACK,
}


@dataclass(kw_only=True, eq=False, repr=False)
class AccountantComparisonDisplay:
    """Display of epsilon against the length of a computation, with one line per accounting method.

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
        Label of the x axis, which says what `steps` counts.

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
        cls,
        event_of_steps: Callable[[Any], DpEvent],
        steps: Iterable[float],
        delta: float,
        *,
        methods: Sequence[str] = ("naive", "strong", "moments", "rdp", "pld"),
        adjacency: str = "zero_out",
        xlabel: str = "step",
        ax: Any = None,
        **kwargs: Any,
    ) -> AccountantComparisonDisplay:
        """Price an event at several lengths by several methods, and plot the result.

        Parameters
        ----------
        event_of_steps : callable
            Function such that ``event_of_steps(step)`` is the event of the computation up to `step`.
        steps : iterable of numbers
            Arguments of `event_of_steps`, such as steps or epochs.
        delta : float
            Delta at which epsilon is computed, in (0, 1).
        methods : sequence of str
            Methods of `skdp.accounting.get_epsilon`. Methods that are not guarantees are drawn dashed.
        adjacency : {"zero_out", "add_remove", "replace_one"}, default="zero_out"
            Neighbouring relation.
        xlabel : str, default="step"
            Label of the x axis, which says what `steps` counts.
        ax : matplotlib axes, optional
            Axes to plot on. If None, a new figure is created.
        **kwargs : dict
            Keyword arguments of `plot`.

        Returns
        -------
        display : AccountantComparisonDisplay
            Display that holds the plot.
        """
        unknown = [method for method in methods if method not in METHODS + APPROXIMATIONS]
        if unknown:
            known = ", ".join(METHODS + APPROXIMATIONS)
            raise ValueError(f"methods={list(methods)!r}: {unknown[0]!r} is not known; choose from {known}.")
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
        ax = axes_for(self, ax)
        self.lines_: dict[str, Any] = {}
        known = {method: name.partition(" (")[0] for method, name in METHOD_NAMES.items()}
        names = {method: known.get(method, in_a_line(method)) for method in self.epsilons}
        for method, epsilons in self.epsilons.items():
            style: dict[str, Any] = {"linestyle": "--" if method in APPROXIMATIONS else "-"}
            style |= {"label": names[method], "color": _COLOURS.get(method, PURPLE)}
            finite = [epsilon if epsilon < math.inf else math.nan for epsilon in epsilons]
            (self.lines_[method],) = ax.plot(self.steps, finite, **{**style, **kwargs})
        ax.set_xlabel(self.xlabel, **AS_IT_IS)
        ax.set_ylabel(f"epsilon at delta = {self.delta:g}")
        if ax.get_yscale() == "linear":
            ax.set_ylim(bottom=0)
        clear_frame(ax)
        draw_legend(ax, [(self.lines_[method], name) for method, name in names.items()], fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self
