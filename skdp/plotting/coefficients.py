"""`CoefficientDisplay`: what the coefficients are, and what noise alone could make of them; or importances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp._checks.parameters import check_count, check_real, without_removed
from skdp._checks.protocols import last_step

from ._axes import AS_IT_IS, BLACK, BLUE, PALE, axes_for, clear_frame, draw_legend, in_a_line, small_print, width_beside


@without_removed
@dataclass(kw_only=True, eq=False, repr=False)
class CoefficientDisplay:
    """Display of the coefficients of a private linear model, beside what noise alone could make of them.

    The noise of a private fit is known, so a coefficient that the rows do not call for can be distinguished from one
    that they do. Of a model of random trees, whose coefficients are those of thousands of leaves, the importances of
    the columns of the table are drawn, from which the part of the noise is subtracted. It is recommended to use
    `from_estimator` to create a display. All parameters are stored as attributes.

    Parameters
    ----------
    coef : array-like of shape (n_features,)
        Coefficients, or importances.
    coef_noise : array-like of shape (n_features,) or None
        Standard deviation of each coefficient by the noise alone. None draws no band, as for importances.
    feature_names : sequence of str of length n_features
        Names of the columns.
    level : float, default=0.95
        Share of coefficients, in (0, 1), that noise alone leaves within the band.
    max_features : int, default=20
        Most columns that are drawn: those whose coefficients are largest, measured by their noise if it is given.
    xlabel : str, default="coefficient"
        Label of the x axis.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the bars.
    figure_ : matplotlib.figure.Figure
        Figure of the axes.
    bars_ : matplotlib.container.BarContainer
        Bars of the coefficients, the largest first, measured by their noise if it is given.
    bands_ : matplotlib.container.BarContainer or None
        What noise alone makes of a coefficient of 0, for the same columns; None without `coef_noise`.
    features_ : ndarray of shape (n_drawn,)
        Numbers of the columns that are drawn, in the order of the bars.
    note_ : matplotlib.text.Annotation or None
        Small print; None if all columns are drawn.

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
        cls,
        estimator: Any,
        *,
        feature_names: Sequence[str] | None = None,
        class_label: Any = None,
        level: float = 0.95,
        max_features: int = 20,
        ax: Any = None,
        **kwargs: Any,
    ) -> CoefficientDisplay:
        """Plot the coefficients of a fitted model. No data are read, and nothing is charged.

        Parameters
        ----------
        estimator : estimator or Pipeline
            Fitted model with `feature_importances_`, or with `coef_` and `coef_noise_`, such as
            `skdp.DPLogisticRegression`, or a pipeline that ends in one.
        feature_names : sequence of str, optional
            Names of the columns. By default those that the model saw, or that the steps before it give.
        class_label : object, optional
            Class whose coefficients are drawn. Required for more than two classes; importances are of all classes.
        level : float, default=0.95
            Share of coefficients, in (0, 1), that noise alone leaves within the band.
        max_features : int, default=20
            Most columns that are drawn: those whose coefficients are largest, measured by their noise.
        ax : matplotlib axes, optional
            Axes to plot on. If None, a new figure is created.
        **kwargs : dict
            Keyword arguments of `plot`.

        Returns
        -------
        display : CoefficientDisplay
            Display that holds the plot.

        Raises
        ------
        ValueError
            The model has no known noise in its coefficients, or several rows of them and no `class_label`.
        """
        model = last_step(estimator)
        drawn: dict[str, Any] = {"level": level, "max_features": max_features}
        if (importances := getattr(model, "feature_importances_", None)) is not None:
            names = _names_of(estimator, model) if feature_names is None else feature_names
            display = cls(coef=importances, coef_noise=None, feature_names=list(names), xlabel="importance", **drawn)
            return display.plot(ax=ax, **kwargs)
        coef, noise = getattr(model, "coef_", None), getattr(model, "coef_noise_", None)
        if coef is None or noise is None:
            missing = "coef_" if coef is None else "coef_noise_"
            raise ValueError(
                f"estimator: {type(model).__name__} has no {missing}: give a fitted DPLogisticRegression, or a "
                "pipeline that ends in one."
            )
        row, of_class = _row_of(model, class_label)
        if feature_names is None:
            feature_names = _names_of(estimator, model)
        return cls(
            coef=np.asarray(coef)[row], coef_noise=np.asarray(noise)[row], feature_names=list(feature_names),
            xlabel=f"coefficient, in favour of {of_class}", **drawn,
        ).plot(ax=ax, **kwargs)  # fmt: skip

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Plot the coefficients as bars, each on the band of its noise if that is given.

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
                f"coef has the shape {coef.shape}, coef_noise {noise.shape} and feature_names {len(names)} names: give "
                "one of each a column."
            )
        level = check_real("level", self.level, above=0, below=1, remedy="choose a share such as 0.95")
        self.features_ = self._largest(coef, noise)
        reach = NormalDist().inv_cdf(0.5 + level / 2) * noise[self.features_]
        rows = np.arange(len(self.features_))
        ticks = [in_a_line(names[number]) for number in self.features_]
        ax = axes_for(self, ax, size=(width_beside(ticks), 1.6 + 0.26 * len(rows)))
        self.bands_ = None
        if self.coef_noise is not None:
            band = f"noise alone, for a coefficient of 0 ({level:.0%})"
            self.bands_ = ax.barh(rows, 2 * reach, left=-reach, height=0.82, color=PALE, label=band)
        style = {"color": BLUE, "height": 0.4, "label": "coefficient", **kwargs}
        self.bars_ = ax.barh(rows, coef[self.features_], **style)
        ax.axvline(0.0, color=BLACK, linewidth=0.8)
        ax.set_yticks(rows, ticks, **AS_IT_IS)
        ax.set_ylim(len(rows) - 0.4, -0.6)
        ax.set_xlabel(self.xlabel, **AS_IT_IS)
        clear_frame(ax, "x")
        ax.tick_params(axis="y", length=0)
        text = f"{len(rows)} of {len(coef)} columns, the most important ones."
        if self.bands_ is not None:
            corner: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2}
            draw_legend(ax, [], ncols=2, fontsize="small", **corner)
            text = f"{len(rows)} of {len(coef)} columns, those that stand out most from the noise."
        self.note_ = small_print(ax, text) if len(rows) < len(coef) else None
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _largest(self, coef: NDArray[np.float64], noise: NDArray[np.float64]) -> NDArray[np.intp]:
        """Numbers of the columns to draw, the largest coefficient first, measured by its noise."""
        n_drawn = check_count("max_features", self.max_features, remedy="choose a whole number of columns above 0")
        size = np.abs(coef) / np.maximum(noise, np.finfo(float).tiny)
        return np.argsort(-size, kind="stable")[:n_drawn]


def _row_of(model: Any, class_label: Any) -> tuple[int, str]:
    """The row of `coef_` for a class, and the class in words."""
    classes = np.asarray(model.classes_)
    if len(classes) == 2:
        if class_label is not None and class_label != classes[1]:
            raise ValueError(f"class_label: of two classes the coefficients are those of {classes[1]}: leave it out.")
        return 0, f"class {in_a_line(classes[1])}"
    found = [] if class_label is None else np.flatnonzero(classes == class_label).tolist()
    if not found:
        raise ValueError(f"class_label={class_label!r} with {len(classes)} classes: give one of classes_.")
    return found[0], f"class {in_a_line(classes[found[0]])}"


def _names_of(estimator: Any, model: Any) -> Sequence[str]:
    """Names of the columns that the model saw."""
    if hasattr(estimator, "steps") and len(estimator.steps) > 1:
        try:
            return list(estimator[:-1].get_feature_names_out())
        except (AttributeError, ValueError):  # a step that gives no names
            pass
    given = getattr(model, "feature_names_in_", None)
    return [f"x{number}" for number in range(model.n_features_in_)] if given is None else list(given)
