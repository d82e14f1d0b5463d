"""Display of private survival curves with their intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from skdp.base.estimates import EstimatedCurve
from skdp.plotting import _axes


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateSurvivalDisplay:
    """Display of private survival curves with bands of pointwise intervals.

    It is recommended to use `from_estimate` to create a display. All parameters are stored as attributes.

    Parameters
    ----------
    curves : dict of str to EstimatedCurve
        Survival function of each subgroup, by its name in the legend.
    note : str, default=""
        Note below the plot.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the curves.
    figure_ : matplotlib.figure.Figure
        Figure of the axes.
    lines_ : list of matplotlib.lines.Line2D
        The curves.
    """

    curves: dict[str, EstimatedCurve]
    note: str = ""

    @classmethod
    def from_estimate(cls, estimate: Any, *, level: float = 0.95, ax: Any = None, **kwargs: Any) -> Self:
        """Plot the survival function of an estimate, or of its subgroups, at no additional privacy cost.

        Parameters
        ----------
        estimate : SurvivalEstimate
            Result of `skdp.statistics.private_survival`.
        level : float, default=0.95
            Level of the pointwise intervals.
        ax : matplotlib axes, optional
            Axes to plot on. If None, a new figure is created.
        **kwargs : dict
            Keyword arguments of `plot`.

        Returns
        -------
        display : PrivateSurvivalDisplay
        """
        curves = {name: each.survival(level=level) for name, each in (estimate.subgroups or {"": estimate}).items()}
        relation = estimate.description.adjacency_
        guarantee = f"epsilon = {estimate.epsilon_:.3g} at delta = {estimate.delta_:.3g} ({relation})"
        note = f"{guarantee}; bands: {level:.0%} intervals for noise and sampling"
        return cls(curves=curves, note=note).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Plot the curves and their bands.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to plot on. If None, a new figure is created.
        **kwargs : dict
            Keyword arguments of `matplotlib.axes.Axes.plot` for the curves.

        Returns
        -------
        display : PrivateSurvivalDisplay
            The display itself, with `ax_`, `figure_` and `lines_`.
        """
        ax = _axes.axes_for(self, ax, (5.6, 4.2))
        self.lines_ = []
        for j, (name, curve) in enumerate(self.curves.items()):
            style = {"color": _axes.COLORS[j % len(_axes.COLORS)], "drawstyle": "steps-post", **kwargs}
            self.lines_ += ax.plot(curve.x, curve.y, label=_axes.in_a_line(name) or "_", **style)
            band = {"color": self.lines_[-1].get_color(), "alpha": 0.2, "linewidth": 0, "step": "post"}
            ax.fill_between(curve.x, curve.low, curve.high, **band)
        ax.set(xlabel="time", ylabel="survival probability", ylim=(0, 1.005))
        _axes.clear_frame(ax)
        named = [(line, line.get_label()) for line in self.lines_ if line.get_label() != "_"]
        if named:
            _axes.draw_legend(ax, named, fontsize="small", loc="best")
        _axes.finish(self, ax, self.note, 72)
        return self
