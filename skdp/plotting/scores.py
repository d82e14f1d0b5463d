"""Displays of private evaluations: curves and confusion matrix with intervals, and metrics of subgroups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from skdp.base.estimates import Estimate, EstimatedCurve
from skdp.plotting import _axes


@dataclass(kw_only=True, eq=False, repr=False)
class _CurveDisplay:
    """Base of displays of a curve with a confidence band.

    Parameters
    ----------
    curve : EstimatedCurve
        Points, and the band.
    name : str, default=""
        Name in the legend.
    note : str, default=""
        Note below the axes.
    """

    _reference = ""
    _labels = "", ""
    _marker: ClassVar[str | None] = None

    curve: EstimatedCurve
    name: str = ""
    note: str = ""

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Plot the curve and its band.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to plot on. If None, a new figure is created.
        **kwargs : dict
            Keyword arguments of `matplotlib.axes.Axes.plot` for the curve.

        Returns
        -------
        display : object
            The display itself, with `ax_`, `figure_`, `line_`, `band_` and `reference_`.
        """
        ax = _axes.axes_for(self, ax, (5.2, 4.8))
        (self.reference_,) = ax.plot([0, 1], [0, 1], color=_axes.GRAY, linestyle=":", linewidth=1.0)
        style = {"color": _axes.BLUE, "marker": self._marker, "markersize": 4, **kwargs}
        (self.line_,) = ax.plot(self.curve.x, self.curve.y, **style)
        order = np.argsort(self.curve.x, kind="stable")
        low, high = self.curve.low[order], self.curve.high[order]
        style = {"color": self.line_.get_color(), "alpha": 0.2, "linewidth": 0}
        self.band_ = ax.fill_between(self.curve.x[order], low, high, **style)
        ax.set(xlabel=self._labels[0], ylabel=self._labels[1], xlim=(0, 1), ylim=(0, 1.005))
        _axes.clear_frame(ax)
        named = [(self.line_, _axes.in_a_line(self.name))] if self.name else []
        self.line_.set_label(_axes.in_a_line(self.name) or "_")
        self.reference_.set_label(self._reference)
        _axes.draw_legend(ax, [*named, (self.reference_, self._reference)], fontsize="small", loc="best")
        _axes.finish(self, ax, self.note, 72)
        return self


class PrivateRocCurveDisplay(_CurveDisplay):
    """Private ROC curve with a confidence band that accounts for noise and sampling.

    It is recommended to use `from_evaluation` to create a display. All parameters are stored as attributes.

    Parameters
    ----------
    curve : EstimatedCurve
        True positive rate against false positive rate.
    name : str, default=""
        Name in the legend.
    note : str, default=""
        Note below the axes.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the curve.
    figure_ : matplotlib.figure.Figure
        Figure of the axes.
    line_ : matplotlib.lines.Line2D
        The curve.
    band_ : matplotlib.collections.PolyCollection
        The band.
    reference_ : matplotlib.lines.Line2D
        The chance level.
    """

    _reference = "guessing"
    _labels = "false positive rate", "true positive rate"

    @classmethod
    def from_evaluation(
        cls, evaluation: Any, *, pos_label: Any = None, name: str = "", ax: Any = None, **kwargs: Any
    ) -> Self:
        """Plot the ROC curve of an evaluation, at no additional privacy cost.

        Parameters
        ----------
        evaluation : PrivateEvaluation, OneVsRestEvaluation or MultilabelEvaluation
            Evaluation of a binary, multiclass or multilabel classifier.
        pos_label : int, str or None, default=None
            Class to compare with all others, or label of a multilabel classifier.
        name : str, default=""
            Name of the model, before its area under the curve.
        ax : matplotlib axes, optional
            Axes to plot on. If None, a new figure is created.
        **kwargs : dict
            Keyword arguments of `plot`.

        Returns
        -------
        display : PrivateRocCurveDisplay
            The display with its plot.
        """
        found = _of_one(evaluation, pos_label)
        area = f"AUC = {found.roc_auc}"
        display = cls(curve=found.roc_curve(), name=f"{name}, {area}" if name else area, note=_note(evaluation))
        return display.plot(ax=ax, **kwargs)


class PrivateCalibrationDisplay(_CurveDisplay):
    """Private calibration curve with a confidence band that accounts for noise and sampling.

    It is recommended to use `from_evaluation` to create a display. All parameters are stored as attributes.

    Parameters
    ----------
    curve : EstimatedCurve
        Fraction of the positive class against the mean score.
    name : str, default=""
        Name in the legend.
    note : str, default=""
        Note below the axes.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the curve.
    figure_ : matplotlib.figure.Figure
        Figure of the axes.
    line_ : matplotlib.lines.Line2D
        The curve.
    band_ : matplotlib.collections.PolyCollection
        The band.
    reference_ : matplotlib.lines.Line2D
        The line of perfect calibration.
    """

    _reference = "perfectly calibrated"
    _labels = "mean score", "fraction of positives"
    _marker = "o"

    @classmethod
    def from_evaluation(
        cls, evaluation: Any, *, n_bins: int = 8, pos_label: Any = None, name: str = "", ax: Any = None, **kwargs: Any
    ) -> Self:
        """Plot the calibration curve of an evaluation, at no additional privacy cost.

        Parameters
        ----------
        evaluation : PrivateEvaluation, OneVsRestEvaluation or MultilabelEvaluation
            Evaluation of a binary, multiclass or multilabel classifier.
        n_bins : int, default=8
            Number of points.
        pos_label : int, str or None, default=None
            Class to compare with all others, or label of a multilabel classifier.
        name : str, default=""
            Name of the model, before its Brier score.
        ax : matplotlib axes, optional
            Axes to plot on. If None, a new figure is created.
        **kwargs : dict
            Keyword arguments of `plot`.

        Returns
        -------
        display : PrivateCalibrationDisplay
            The display with its plot.
        """
        found = _of_one(evaluation, pos_label)
        score = f"Brier score = {found.brier_score}"
        curve, shown = found.calibration_curve(n_bins), f"{name}, {score}" if name else score
        return cls(curve=curve, name=shown, note=_note(evaluation)).plot(ax=ax, **kwargs)


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateConfusionMatrixDisplay:
    """Private confusion matrix, with half the width of the interval of each count.

    It is recommended to use `from_evaluation` to create a display. All parameters are stored as attributes.

    Parameters
    ----------
    confusion_matrix : Estimate
        Arrays of shape (n_classes, n_classes).
    display_labels : sequence of str
        Names of the classes.
    note : str, default=""
        Note below the axes.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the matrix.
    figure_ : matplotlib.figure.Figure
        Figure of the axes.
    im_ : matplotlib.image.AxesImage
        Fractions within each true class.
    text_ : ndarray of shape (n_classes, n_classes)
        Texts of the cells.
    """

    confusion_matrix: Estimate
    display_labels: Any
    note: str = ""

    @classmethod
    def from_evaluation(
        cls, evaluation: Any, *, threshold: float = 0.5, pos_label: Any = None, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Plot the confusion matrix of an evaluation, at no additional privacy cost.

        Parameters
        ----------
        evaluation : PrivateEvaluation, MulticlassEvaluation or MultilabelEvaluation
            Evaluation of a binary, multiclass or multilabel classifier.
        threshold : float, default=0.5
            Smallest score for which the positive class is predicted.
        pos_label : int, str or None, default=None
            Label of a multilabel classifier; None for the matrix of all classes.
        ax : matplotlib axes, optional
            Axes to plot on. If None, a new figure is created.
        **kwargs : dict
            Keyword arguments of `plot`.

        Returns
        -------
        display : PrivateConfusionMatrixDisplay
            The display with its plot.
        """
        one = evaluation if hasattr(evaluation, "confusion_matrix") else _of_one(evaluation, pos_label)
        found, classes = one.confusion_matrix, getattr(evaluation, "classes_", np.arange(2))
        counts = found(threshold) if callable(found) else found
        note = _note(evaluation).replace("bands: ", "±: half of ")
        return cls(confusion_matrix=counts, display_labels=classes.tolist(), note=note).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Plot the matrix: colors are fractions within each true class, texts are counts.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to plot on. If None, a new figure is created.
        **kwargs : dict
            Keyword arguments of `matplotlib.axes.Axes.imshow`.

        Returns
        -------
        display : PrivateConfusionMatrixDisplay
            The display itself, with `ax_`, `figure_`, `im_` and `text_`.
        """
        counts, n = np.asarray(self.confusion_matrix.value), len(self.display_labels)
        ax = _axes.axes_for(self, ax, (3.2 + 0.7 * n, 2.8 + 0.6 * n))
        shares = counts / np.maximum(counts.sum(1, keepdims=True), 1e-9)
        self.im_ = ax.imshow(shares, **{"cmap": "Blues", "vmin": 0.0, "vmax": 1.0, **kwargs})
        reach = (np.asarray(self.confusion_matrix.high) - np.asarray(self.confusion_matrix.low)) / 2
        self.text_ = np.empty((n, n), object)
        for i, j in np.ndindex(n, n):
            color = "white" if shares[i, j] > 0.6 else "black"
            text = f"{counts[i, j]:.0f}\n±{reach[i, j]:.0f}"
            self.text_[i, j] = ax.text(j, i, text, ha="center", va="center", color=color, fontsize="small")
        names = [_axes.in_a_line(each) for each in self.display_labels]
        ax.set_xticks(range(n), names, **_axes.AS_IT_IS)
        ax.set_yticks(range(n), names, **_axes.AS_IT_IS)
        ax.set(xlabel="predicted class", ylabel="true class")
        _axes.finish(self, ax, self.note, 56)
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateSubgroupDisplay:
    """Metric of each subgroup, with its confidence interval.

    Small subgroups have wide intervals, because noise and sampling affect them most. It is recommended to use
    `from_evaluation` to create a display. All parameters are stored as attributes.

    Parameters
    ----------
    estimates : dict of str to Estimate
        Metric of each subgroup.
    overall : Estimate
        Metric of all rows.
    metric : str, default=""
        Name of the metric.
    note : str, default=""
        Note below the axes.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the metrics.
    figure_ : matplotlib.figure.Figure
        Figure of the axes.
    bars_ : matplotlib.container.ErrorbarContainer
        Metrics of the subgroups, and their intervals.
    overall_ : matplotlib.lines.Line2D
        Metric of all rows.
    """

    estimates: dict[str, Estimate]
    overall: Estimate
    metric: str = ""
    note: str = ""

    @classmethod
    def from_evaluation(cls, evaluation: Any, *, metric: str = "roc_auc", ax: Any = None, **kwargs: Any) -> Self:
        """Plot a metric of the subgroups of an evaluation with `by`, at no additional privacy cost.

        Parameters
        ----------
        evaluation : PrivateEvaluation, MulticlassEvaluation or RegressionEvaluation
            Evaluation with subgroups.
        metric : str, default="roc_auc"
            Name of an attribute of the evaluation, such as "accuracy", "recall" or "r2". Metrics with a threshold use
            1/2.
        ax : matplotlib axes, optional
            Axes to plot on. If None, a new figure is created.
        **kwargs : dict
            Keyword arguments of `plot`.

        Returns
        -------
        display : PrivateSubgroupDisplay
            The display with its plot.
        """
        if not evaluation.subgroups:
            raise ValueError("`evaluation` must have subgroups. Pass `by` and `categories` to skdp.evaluate.")
        found = {name: _figure_of(part, metric) for name, part in evaluation.subgroups.items()}
        overall, note = _figure_of(evaluation, metric), _note(evaluation).replace("bands", "bars")
        return cls(estimates=found, overall=overall, metric=metric.replace("_", " "), note=note).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Plot the metrics, one row for each subgroup.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to plot on. If None, a new figure is created.
        **kwargs : dict
            Keyword arguments of `matplotlib.axes.Axes.errorbar`.

        Returns
        -------
        display : PrivateSubgroupDisplay
            The display itself, with `ax_`, `figure_`, `bars_` and `overall_`.
        """
        names, found = [_axes.in_a_line(each) for each in self.estimates], list(self.estimates.values())
        ax = _axes.axes_for(self, ax, (5.2, 1.8 + 0.35 * len(names)))
        value, low, high = (np.array([float(getattr(each, k)) for each in found]) for k in ("value", "low", "high"))
        self.overall_ = ax.axvline(float(self.overall.value), color=_axes.GRAY, linestyle=":", linewidth=1.0)
        style = {"fmt": "o", "color": _axes.BLUE, "markersize": 5, "capsize": 3, **kwargs}
        reach = np.maximum(np.stack([value - low, high - value]), 0.0)
        self.bars_ = ax.errorbar(value, np.arange(len(names)), xerr=reach, **style)
        ax.set_yticks(range(len(names)), names, **_axes.AS_IT_IS)
        ax.invert_yaxis()
        ax.set_xlabel(_axes.in_a_line(self.metric))
        _axes.clear_frame(ax)
        self.overall_.set_label("all rows")
        _axes.draw_legend(ax, [(self.overall_, "all rows")], fontsize="small", loc="best")
        _axes.finish(self, ax, self.note, 72)
        return self


def _of_one(evaluation: Any, pos_label: Any) -> Any:
    """Binary metrics: of one class against all others, or of one label."""
    several = getattr(evaluation, "each", {})
    if not several and not hasattr(evaluation, "roc_curve"):
        raise ValueError("`evaluation` must contain scores of each class. Pass one_vs_rest=True to skdp.evaluate.")
    if several and pos_label not in several:
        raise ValueError(f"`pos_label` must be one of {list(several)!r}, got {pos_label!r}.")
    if not several and pos_label is not None:
        raise ValueError(f"`pos_label` must be None for the evaluation of a binary classifier, got {pos_label!r}.")
    return several[pos_label] if several else evaluation


def _figure_of(part: Any, metric: str) -> Estimate:
    """A metric by its name, one number."""
    found = getattr(part, metric, None) if not metric.startswith("_") else None
    found = found() if callable(found) and not isinstance(found, Estimate) else found
    if not isinstance(found, Estimate) or np.ndim(found.value):
        raise ValueError(f"`metric` must be a metric of this evaluation, such as 'accuracy', got {metric!r}.")
    return found


def _note(evaluation: Any) -> str:
    level, epsilon = float(evaluation.level), evaluation.epsilon_
    return f"bands: {level:.0%} intervals that account for noise and sampling, epsilon={epsilon:.3g}"
