"""`CoefficientDisplay`: coefficients and their noise, or importances; `EffectDisplay`: effects of columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from skdp._checks.parameters import check_count, check_real, last_step, without_removed
from skdp.plotting import _axes

if TYPE_CHECKING:
    from skdp.inspection import ColumnEffect


@without_removed
@dataclass(kw_only=True, eq=False, repr=False)
class CoefficientDisplay:
    """Coefficients of a private linear model with noise intervals, or feature importances.

    The noise of a private fit has a known standard deviation. The display shows which coefficients are statistically
    distinguishable from the noise. For a model of random trees, it draws the importances of the columns, from which the
    contribution of the noise is subtracted. It is recommended to use `from_estimator` to create a display. All
    parameters are stored as attributes.

    Parameters
    ----------
    coef : array-like of shape (n_features,)
        Coefficients, or importances.
    coef_noise : array-like of shape (n_features,) or None
        Standard deviation of each coefficient due to noise. If None, there are no intervals, as for importances.
    feature_names : sequence of str of length n_features
        Names of the columns.
    level : float, default=0.95
        Probability, in (0, 1), that noise alone leaves a coefficient within its interval.
    max_features : int, default=20
        Largest number of columns to draw: those with the largest coefficients, divided by their noise if it is known.
    xlabel : str, default="coefficient"
        Label of the x axis.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the bars.
    figure_ : matplotlib.figure.Figure
        Figure of the axes.
    bars_ : matplotlib.container.BarContainer
        Bars of the coefficients, the largest first, divided by their noise if it is known.
    bands_ : matplotlib.container.BarContainer or None
        Noise intervals of a coefficient of 0, for the same columns; None without `coef_noise`.
    features_ : ndarray of shape (n_drawn,)
        Indices of the columns that are drawn, in the order of the bars.
    note_ : matplotlib.text.Annotation or None
        Note below the axes; None if all columns are drawn.

    See Also
    --------
    skdp.DPLogisticRegression : A model with `coef_` and `coef_noise_`.
    skdp.DPRandomTreesClassifier : A model with `feature_importances_`.
    """

    coef: ArrayLike
    coef_noise: ArrayLike | None
    feature_names: Sequence[str]
    level: float = 0.95
    max_features: int = 20
    xlabel: str = "coefficient"

    @classmethod
    @without_removed
    def from_estimator(
        cls, estimator: Any, *, feature_names: Sequence[str] | None = None, class_label: Any = None,
        level: float = 0.95, max_features: int = 20, ax: Any = None, **kwargs: Any,
    ) -> CoefficientDisplay:  # fmt: skip
        """Plot the coefficients of a fitted model, at no additional privacy cost.

        Parameters
        ----------
        estimator : estimator or Pipeline
            Fitted model with `feature_importances_`, or with `coef_` and `coef_noise_`, such as
            `skdp.DPLogisticRegression`, or a pipeline that ends in one.
        feature_names : sequence of str, optional
            Names of the columns. By default the feature names of the fit, or of the steps before the model.
        class_label : object, optional
            Class whose coefficients are drawn. Required for multiclass models; importances are for all classes.
        level : float, default=0.95
            Probability, in (0, 1), that noise alone leaves a coefficient within its interval.
        max_features : int, default=20
            Largest number of columns to draw: those with the largest coefficients, divided by their noise.
        ax : matplotlib axes, optional
            Axes to plot on. If None, a new figure is created.
        **kwargs : dict
            Keyword arguments of `plot`.

        Returns
        -------
        display : CoefficientDisplay
            The display with its plot.

        Raises
        ------
        ValueError
            The noise of the coefficients is unknown, or the model is multiclass and `class_label` is not set.
        """
        model = last_step(estimator)
        drawn: dict[str, Any] = {"level": level, "max_features": max_features}
        importances = getattr(model, "feature_importances_", None)
        coef, noise = getattr(model, "coef_", None), getattr(model, "coef_noise_", None)
        if importances is None and (coef is None or noise is None):
            missing = "coef_" if coef is None else "coef_noise_"
            raise ValueError(
                f"`estimator` must be a fitted DPLogisticRegression or a pipeline that ends in one; "
                f"{type(model).__name__} has no {missing}."
            )
        names = _names_of(estimator, model) if feature_names is None else list(feature_names)
        if importances is not None:
            display = cls(coef=importances, coef_noise=None, feature_names=names, xlabel="importance", **drawn)
            return display.plot(ax=ax, **kwargs)
        row, of_class = _row_of(model, class_label)
        return cls(
            coef=np.asarray(coef)[row], coef_noise=np.asarray(noise)[row], feature_names=names,
            xlabel=f"coefficient for class {of_class}", **drawn,
        ).plot(ax=ax, **kwargs)  # fmt: skip

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Plot the coefficients as bars, with noise intervals if they are known.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to plot on. If None, a new figure is created.
        **kwargs : dict
            Keyword arguments of `matplotlib.axes.Axes.barh` for the coefficients.

        Returns
        -------
        display : CoefficientDisplay
            The display itself, with `ax_`, `figure_`, `bars_`, `bands_`, `features_` and `note_`.
        """
        coef = np.asarray(self.coef, float)
        noise = np.ones_like(coef) if self.coef_noise is None else np.asarray(self.coef_noise, float)
        names = list(self.feature_names)
        if not coef.ndim == noise.ndim == 1 or not len(coef) == len(noise) == len(names):
            raise ValueError(
                f"`coef`, `coef_noise` and `feature_names` must have one entry per column, got shapes {coef.shape}, "
                f"{noise.shape} and {len(names)} names."
            )
        level = check_real("level", self.level, above=0, below=1, constraint="a number in (0, 1), such as 0.95")
        # The columns with the largest coefficients, and their noise intervals.
        self.features_ = self._largest(coef, noise)
        reach = NormalDist().inv_cdf(0.5 + level / 2) * noise[self.features_]
        rows = np.arange(len(self.features_))
        ticks = [_axes.in_a_line(names[number]) for number in self.features_]
        ax = _axes.axes_for(self, ax, size=(_axes.width_beside(ticks), 1.6 + 0.26 * len(rows)))
        # Bars on their intervals.
        self.bands_ = None
        if self.coef_noise is not None:
            band = f"{level:.0%} noise interval of a zero coefficient"
            self.bands_ = ax.barh(rows, 2 * reach, left=-reach, height=0.82, color=_axes.PALE, label=band)
        style = {"color": _axes.BLUE, "height": 0.4, "label": "coefficient", **kwargs}
        self.bars_ = ax.barh(rows, coef[self.features_], **style)
        ax.axvline(0.0, color=_axes.BLACK, linewidth=0.8)
        ax.set_yticks(rows, ticks, **_axes.AS_IT_IS)
        ax.set_ylim(len(rows) - 0.4, -0.6)
        ax.set_xlabel(self.xlabel, **_axes.AS_IT_IS)
        _axes.clear_frame(ax, "x")
        ax.tick_params(axis="y", length=0)
        # A legend for the intervals, and a note if columns are omitted.
        text = f"{len(rows)} of {len(coef)} columns, the most important ones."
        if self.bands_ is not None:
            corner: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2}
            _axes.draw_legend(ax, [], ncols=2, fontsize="small", **corner)
            text = f"{len(rows)} of {len(coef)} columns, with the largest coefficients relative to their noise."
        self.note_ = _axes.finish(self, ax, text if len(rows) < len(coef) else "")
        return self

    def _largest(self, coef: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """Indices of the columns to draw, the largest coefficient first, divided by its noise."""
        n_drawn = check_count("max_features", self.max_features, constraint="a positive integer")
        size = np.abs(coef) / np.maximum(noise, np.finfo(float).tiny)
        return np.argsort(-size, kind="stable")[:n_drawn]


def _row_of(model: Any, class_label: Any) -> tuple[int, str]:
    """The row of `coef_` for a class, and the class as text."""
    classes = np.asarray(model.classes_)
    if len(classes) == 2:
        if class_label is not None and class_label != classes[1]:
            raise ValueError(f"`class_label` must be None or {classes[1]} for binary models, got {class_label!r}.")
        return 0, f"class {_axes.in_a_line(classes[1])}"
    found = [] if class_label is None else np.flatnonzero(classes == class_label).tolist()
    if not found:
        raise ValueError(f"`class_label` must be one of the {len(classes)} values of classes_, got {class_label!r}.")
    return found[0], f"class {_axes.in_a_line(classes[found[0]])}"


def _names_of(estimator: Any, model: Any) -> list[str]:
    """Feature names of the model."""
    if hasattr(estimator, "steps") and len(estimator.steps) > 1:
        try:
            return list(estimator[:-1].get_feature_names_out())
        except (AttributeError, ValueError):  # a step without feature names
            pass
    given = getattr(model, "feature_names_in_", None)
    return [f"x{number}" for number in range(model.n_features_in_)] if given is None else list(given)


_MOST_TICKS = 5


@without_removed
@dataclass(kw_only=True, eq=False, repr=False)
class EffectDisplay:
    """Effects of columns on the score of a private model, with noise intervals.

    A curve is the mean score at a value of the column, over public values of the other columns, minus its mean. The
    band accounts for the noise of the fit, and not for the sampling of the rows. The effect of a pair of columns is a
    heat map of their interaction; cells that are not distinguishable from the noise are hatched. It is recommended to
    use `from_estimator` to create a display. All parameters are stored as attributes.

    Parameters
    ----------
    effects : list of ColumnEffect
        Result of `skdp.inspection.column_effects`.
    level : float, default=0.95
        Probability, in (0, 1), that noise alone leaves a value within its band.

    Attributes
    ----------
    axes_ : ndarray of matplotlib.axes.Axes of shape (n_effects,)
        Axes with one effect each.
    figure_ : matplotlib.figure.Figure
        Figure of the axes.
    note_ : matplotlib.text.Annotation or None
        Note below the last axes; None if the noise of all effects is unknown.

    See Also
    --------
    skdp.inspection.column_effects : The effects as numbers.
    CoefficientDisplay : Coefficients or importances as bars.

    Examples
    --------
    >>> import skdp
    >>> from skdp.datasets import make_census
    >>> from skdp.plotting import EffectDisplay
    >>> census = make_census(5_000, as_frame=True, random_state=0)
    >>> model = skdp.tabular_pipeline(schema=census.schema, classes=census.classes).fit(census.data, census.target)
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
        """Plot the effects of columns of a fitted model, at no additional privacy cost.

        Parameters
        ----------
        estimator : estimator or Pipeline
            Fitted model, as for `skdp.inspection.column_effects`.
        features : list of str or (str, str), optional
            Columns, and pairs of columns. By default the columns with the largest effects.
        class_label : object, optional
            Class whose score is plotted. Required for multiclass models.
        level : float, default=0.95
            Probability, in (0, 1), that noise alone leaves a value within its band.
        max_features : int, default=6
            Number of columns to draw if `features` is None.
        ax : matplotlib axes or array of them, optional
            Axes to plot on, one for each effect. If None, a new figure is created.
        **kwargs : dict
            Keyword arguments of `plot`.

        Returns
        -------
        display : EffectDisplay
            The display with its plot.

        Raises
        ------
        ValueError
            The model does not support column effects, a name is unknown, or `class_label` is missing.
        """
        n = check_count("max_features", max_features, constraint="a positive integer")
        from skdp.inspection import column_effects  # loads scikit-learn

        effects = column_effects(estimator, features=features, class_label=class_label)
        if features is None:
            effects = sorted(effects, key=lambda each: -cast("Any", each.difference)[2])[:n]
        return cls(effects=effects, level=level).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Plot the effects, each on separate axes.

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
        _axes.require_matplotlib(self)
        share = check_real("level", self.level, above=0, below=1, constraint="a number in (0, 1), such as 0.95")
        effects, reach = list(self.effects), NormalDist().inv_cdf(0.5 + share / 2)
        self.axes_ = self._axes(ax, len(effects))
        self.figure_ = self.axes_[0].figure
        limits = _limits([each for each in effects if len(each.names) == 1], reach)
        for axes, effect in zip(self.axes_, effects, strict=True):
            if len(effect.names) == 2:
                _draw_pair(axes, effect, reach)
            else:
                _draw_curve(axes, effect, reach, limits, {"color": _axes.BLUE, **kwargs})
        has_noise = any(each.noise is not None for each in effects)
        text = f"Bands: {share:.0%} intervals that account for the privacy noise, not for sampling."
        self.note_ = _axes.small_print(self.axes_[-1], text, 60) if has_noise else None
        return self

    def _axes(self, ax: Any, n: int) -> Any:
        if n == 0:
            raise ValueError("`effects` must contain at least one effect.")
        if ax is None:
            import matplotlib.pyplot as plt

            n_columns = min(n, 3)
            size, shape = (3.6 * n_columns + 0.4, 2.9 * -(-n // n_columns) + 0.3), (-(-n // n_columns), n_columns)
            found = plt.subplots(*shape, figsize=size, layout="constrained", squeeze=False)[1].ravel()
            for each in found[n:]:
                each.remove()
            return found[:n]
        given = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
        if len(given) != n:
            raise ValueError(f"`ax` must have one axes for each of the {n} effects, or be None, got {len(given)}.")
        return given


def _limits(effects: list[ColumnEffect], reach: float) -> tuple[float, float]:
    """Limits of the y axes of all curves, for comparison."""
    spans = [(each.effect, 0.0 if each.noise is None else reach * each.noise) for each in effects]
    low = min((float(np.min(effect - band)) for effect, band in spans), default=-1.0)
    high = max((float(np.max(effect + band)) for effect, band in spans), default=1.0)
    slack = 0.05 * (high - low) or 1.0
    return low - slack, high + slack


def _draw_curve(ax: Any, effect: ColumnEffect, reach: float, limits: tuple[float, float], style: Any) -> None:
    n, labels = effect.n_ordered[0], effect.labels[0]
    band = np.zeros_like(effect.effect) if effect.noise is None else reach * effect.noise
    color = style["color"]
    ax.axhline(0.0, color=_axes.GRAY, linewidth=0.8, linestyle=":")
    if n:
        at = np.arange(n)
        ax.fill_between(at, (effect.effect - band)[:n], (effect.effect + band)[:n], step="mid", alpha=0.2,
                        color=color, linewidth=0)  # fmt: skip
        ax.plot(at, effect.effect[:n], drawstyle="steps-mid", **style)
        others = np.arange(n, len(labels))
    else:
        # The categories in their order: those with the largest effects if there are many.
        rank = np.argsort(-np.abs(effect.effect) / np.where(band > 0.0, band, 1.0), kind="stable")
        others = np.sort(rank[:8])
    places = n + np.arange(len(others)) + (max(0.3, n / 16) if n else 0.0)
    ax.errorbar(places, effect.effect[others], band[others], fmt="o", markersize=4, color=_axes.GRAY if n else color,
                elinewidth=1.2, capsize=2)  # fmt: skip
    shown = np.unique(np.linspace(0, n - 1, min(n, _MOST_TICKS)).round().astype(int)) if n else others[:0]
    ticks = [*shown.tolist(), *places.tolist()]
    names = [_axes.in_a_line(labels[k]) for k in [*shown.tolist(), *others.tolist()]]
    _name_ticks(ax, ticks, names)
    ax.set_ylim(limits)
    ax.set_title(_axes.in_a_line(effect.names[0]), fontsize="medium", **_axes.AS_IT_IS)
    ax.set_ylabel(_axes.in_a_line(effect.unit), fontsize="small", **_axes.AS_IT_IS)
    ax.spines[["top", "right"]].set_visible(False)


def _draw_pair(ax: Any, effect: ColumnEffect, reach: float) -> None:
    from matplotlib.patches import Rectangle

    values = effect.effect
    most = float(np.abs(values).max()) or 1.0
    image = ax.imshow(values.T, cmap="RdBu_r", vmin=-most, vmax=most, origin="lower", aspect="auto")
    for i, j in zip(*np.nonzero(np.abs(values) < reach * (0.0 if effect.noise is None else effect.noise)), strict=True):
        ax.add_patch(Rectangle((i - 0.5, j - 0.5), 1, 1, fill=False, hatch="////", edgecolor=_axes.GRAY, linewidth=0))
    ax.figure.colorbar(image, ax=ax, shrink=0.85).set_label(
        _axes.in_a_line(effect.unit), fontsize="small", **_axes.AS_IT_IS
    )
    for axis, labels in (("x", effect.labels[0]), ("y", effect.labels[1])):
        at = np.unique(np.linspace(0, len(labels) - 1, min(len(labels), _MOST_TICKS)).round().astype(int)).tolist()
        names = [_axes.in_a_line(labels[k]) for k in at]
        _name_ticks(ax, at, names) if axis == "x" else ax.set_yticks(at, names, fontsize="x-small", **_axes.AS_IT_IS)
    ax.set_title(" x ".join(map(_axes.in_a_line, effect.names)), fontsize="medium", **_axes.AS_IT_IS)


def _name_ticks(ax: Any, ticks: list[Any], names: list[str]) -> None:
    turned = sum(map(len, names)) > 30
    style: dict[str, Any] = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"} if turned else {}
    ax.set_xticks(ticks, [each if len(each) <= 16 else each[:15] + "…" for each in names], fontsize="x-small",
                  **style, **_axes.AS_IT_IS)  # fmt: skip
