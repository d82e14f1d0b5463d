"""`EffectDisplay`: what columns do to the score of a private model, with bands of its noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from skdp._checks.parameters import check_count, check_real, without_removed

from ._axes import AS_IT_IS, BLUE, GREY, in_a_line, require_matplotlib, small_print

if TYPE_CHECKING:
    from skdp.effects.columns import ColumnEffect

_MOST_TICKS = 5
_MOST_LEVELS = 8
_COLUMNS = 3


@without_removed
@dataclass(kw_only=True, eq=False, repr=False)
class EffectDisplay:
    """Display of what columns do to the score of a private model, each beside what its noise could make of it.

    A curve is the mean of the score at a value of the column, over public values of the others, less its mean. The band
    is that of the noise of the fit, which is known. It tells nothing of the rows that happened to be there. A pair of
    columns is a map of what both do beyond each alone; cells that noise alone could make are hatched. It is recommended
    to use `from_estimator` to create a display. All parameters are stored as attributes.

    Parameters
    ----------
    effects : list of ColumnEffect
        Of `skdp.effects.column_effects`.
    level : float, default=0.95
        Share of values, in (0, 1), that noise alone leaves within the band.

    Attributes
    ----------
    axes_ : ndarray of matplotlib.axes.Axes of shape (n_effects,)
        Axes with one effect each.
    figure_ : matplotlib.figure.Figure
        Figure of the axes.
    note_ : matplotlib.text.Annotation or None
        Small print below the last axes; None where no effect has known noise.

    See Also
    --------
    skdp.effects.column_effects : The numbers.
    CoefficientDisplay : Coefficients or importances as bars.

    Examples
    --------
    >>> import skdp
    >>> from skdp.datasets import make_census
    >>> from skdp.plotting import EffectDisplay
    >>> people = make_census(5_000, as_frame=True, random_state=0)
    >>> model = skdp.tabular_pipeline(schema=people.schema, classes=people.classes).fit(people.data, people.target)
    >>> display = EffectDisplay.from_estimator(model, features=["age", ("age", "sex")])
    >>> len(display.axes_)
    2
    """

    effects: Sequence[ColumnEffect]
    level: float = 0.95

    @classmethod
    @without_removed
    def from_estimator(
        cls, estimator: Any, *, features: Sequence[Any] | None = None, class_label: Any = None,
        level: float = 0.95, max_features: int = 6, ax: Any = None, **kwargs: Any,
    ) -> EffectDisplay:  # fmt: skip
        """Plot what columns of a fitted model do. No row is read, and nothing is charged.

        Parameters
        ----------
        estimator : estimator or Pipeline
            Fitted model, as for `skdp.effects.column_effects`.
        features : list of str or (str, str), optional
            Columns, and pairs of columns. By default the columns that do most.
        class_label : object, optional
            Class whose score it is. Required for more than two classes.
        level : float, default=0.95
            Share of values, in (0, 1), that noise alone leaves within the band.
        max_features : int, default=6
            Number of columns that are drawn where `features` is None.
        ax : matplotlib axes or array of them, optional
            Axes to plot on, one for each effect. If None, a new figure is created.
        **kwargs : dict
            Keyword arguments of `plot`.

        Returns
        -------
        display : EffectDisplay
            Display that holds the plot.

        Raises
        ------
        ValueError
            The model has no such curves, a name is unknown, or `class_label` is missing.
        """
        n = check_count("max_features", max_features, remedy="choose a whole number of columns above 0")
        from skdp.effects.columns import column_effects  # loads scikit-learn

        effects = column_effects(estimator, features=features, class_label=class_label)
        if features is None:
            effects = sorted(effects, key=_size)[:n]
        return cls(effects=effects, level=level).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Plot the effects, each on axes of its own.

        Parameters
        ----------
        ax : matplotlib axes or array of them, optional
            Axes to plot on, one for each effect. If None, a new figure is created.
        **kwargs : dict
            Keyword arguments of `matplotlib.axes.Axes.plot` for curves.

        Returns
        -------
        display : EffectDisplay
            The display itself, with `axes_`, `figure_` and `note_`.
        """
        require_matplotlib(self)
        remedy = "choose a share such as 0.95"
        share = check_real("level", self.level, above=0, below=1, remedy=remedy)
        effects, reach = list(self.effects), NormalDist().inv_cdf(0.5 + share / 2)
        self.axes_ = self._axes(ax, len(effects))
        self.figure_ = self.axes_[0].figure
        single = [each for each in effects if len(each.names) == 1]
        limits = _limits(single, reach)
        for axes, effect in zip(self.axes_, effects, strict=True):
            if len(effect.names) == 2:
                _draw_pair(axes, effect, reach)
            else:
                _draw_curve(axes, effect, reach, limits, {"color": BLUE, **kwargs})
        has_noise = any(each.noise is not None for each in effects)
        text = f"Bands: {share:.0%} of the noise of the fit alone, without that of who happened to be there."
        self.note_ = small_print(self.axes_[-1], text, 60) if has_noise else None
        return self

    def _axes(self, ax: Any, n: int) -> Any:
        if n == 0:
            raise ValueError("effects is empty: give one effect or more.")
        if ax is None:
            import matplotlib.pyplot as plt

            n_columns = min(n, _COLUMNS)
            size, shape = (3.6 * n_columns + 0.4, 2.9 * -(-n // n_columns) + 0.3), (-(-n // n_columns), n_columns)
            found = plt.subplots(*shape, figsize=size, layout="constrained", squeeze=False)[1].ravel()
            for each in found[n:]:
                each.remove()
            return found[:n]
        given = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
        if len(given) != n:
            raise ValueError(f"ax has {len(given)} axes for {n} effects: give one for each, or None.")
        return given


def _size(effect: ColumnEffect) -> float:
    """Sorts the columns that do most first."""
    assert effect.difference is not None  # a single column
    return -effect.difference[2]


def _limits(effects: list[ColumnEffect], reach: float) -> tuple[float, float]:
    """Limits of the y axes of all curves, so that they can be compared."""
    spans = [(each.effect, 0.0 if each.noise is None else reach * each.noise) for each in effects]
    low = min((float(np.min(effect - band)) for effect, band in spans), default=-1.0)
    high = max((float(np.max(effect + band)) for effect, band in spans), default=1.0)
    slack = 0.05 * (high - low) or 1.0
    return low - slack, high + slack


def _draw_curve(ax: Any, effect: ColumnEffect, reach: float, limits: tuple[float, float], style: Any) -> None:
    n, labels = effect.n_ordered[0], effect.labels[0]
    band = np.zeros_like(effect.effect) if effect.noise is None else reach * effect.noise
    colour = style["color"]
    ax.axhline(0.0, color=GREY, linewidth=0.8, linestyle=":")
    if n:
        at = np.arange(n)
        ax.fill_between(at, (effect.effect - band)[:n], (effect.effect + band)[:n], step="mid", alpha=0.2,
                        color=colour, linewidth=0)  # fmt: skip
        ax.plot(at, effect.effect[:n], drawstyle="steps-mid", **style)
        others = np.arange(n, len(labels))
    else:
        others = _standing_out(effect.effect, band)
    places = n + np.arange(len(others)) + (max(0.3, n / 16) if n else 0.0)
    ax.errorbar(places, effect.effect[others], band[others], fmt="o", markersize=4, color=GREY if n else colour,
                elinewidth=1.2, capsize=2)  # fmt: skip
    shown = np.unique(np.linspace(0, n - 1, min(n, _MOST_TICKS)).round().astype(int)) if n else others[:0]
    ticks = [*shown.tolist(), *places.tolist()]
    names = [in_a_line(labels[k]) for k in [*shown.tolist(), *others.tolist()]]
    _name_ticks(ax, ticks, names)
    ax.set_ylim(limits)
    ax.set_title(in_a_line(effect.names[0]), fontsize="medium", **AS_IT_IS)
    ax.set_ylabel(in_a_line(effect.unit), fontsize="small", **AS_IT_IS)
    ax.spines[["top", "right"]].set_visible(False)


def _standing_out(effect: Any, band: Any) -> Any:
    """The levels that are drawn, in their order: those that stand out most where there are many."""
    rank = np.argsort(-np.abs(effect) / np.where(band > 0.0, band, 1.0), kind="stable")
    return np.sort(rank[:_MOST_LEVELS])


def _draw_pair(ax: Any, effect: ColumnEffect, reach: float) -> None:
    from matplotlib.patches import Rectangle

    values = effect.effect
    most = float(np.abs(values).max()) or 1.0
    image = ax.imshow(values.T, cmap="RdBu_r", vmin=-most, vmax=most, origin="lower", aspect="auto")
    for i, j in zip(*np.nonzero(np.abs(values) < reach * (0.0 if effect.noise is None else effect.noise)), strict=True):
        ax.add_patch(Rectangle((i - 0.5, j - 0.5), 1, 1, fill=False, hatch="////", edgecolor=GREY, linewidth=0))
    ax.figure.colorbar(image, ax=ax, shrink=0.85).set_label(in_a_line(effect.unit), fontsize="small", **AS_IT_IS)
    for axis, labels in (("x", effect.labels[0]), ("y", effect.labels[1])):
        at = np.unique(np.linspace(0, len(labels) - 1, min(len(labels), _MOST_TICKS)).round().astype(int)).tolist()
        names = [in_a_line(labels[k]) for k in at]
        _name_ticks(ax, at, names) if axis == "x" else ax.set_yticks(at, names, fontsize="x-small", **AS_IT_IS)
    ax.set_title(" x ".join(map(in_a_line, effect.names)), fontsize="medium", **AS_IT_IS)


def _name_ticks(ax: Any, ticks: list[Any], names: list[str]) -> None:
    turned = sum(map(len, names)) > 30
    style: dict[str, Any] = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"} if turned else {}
    ax.set_xticks(ticks, [each if len(each) <= 16 else each[:15] + "…" for each in names], fontsize="x-small",
                  **style, **AS_IT_IS)  # fmt: skip
