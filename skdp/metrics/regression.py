"""`RegressionEvaluation`: evaluation of a regressor on private rows, from counts of errors and two sums of targets.

Metrics of regressors, from counts of absolute errors in bins, and from two sums of the targets.

Bins of absolute errors span about the same number of octaves. The contribution of noise to a squared error decreases
with the square of the size, so fine bins of small errors add little noise. A histogram has the shape (n_tables, n_bins
+ 2): counts of errors from small to large, then the sum of the targets, scaled to [-1, 1] by their bounds, and that of
their squares.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np

from skdp._checks.parameters import check_real, last_step
from skdp._checks.rows import check_targets
from skdp._checks.targets import check_y_bounds
from skdp.base.estimates import Estimate
from skdp.metrics.histogram_evaluation import GRID, CountedEvaluation, CountingPlan, RowsOfCounts
from skdp.metrics.replicates import N_DRAWS, Replicates, TableEstimates, project, rows_like, sides, simulated_noise
from skdp.metrics.scored_rows import ScoredRows

OCTAVES = 14
SUMS = 2
_PARTS = 16


def edges(n_bins: int) -> np.ndarray:
    """Edges of the bins: 0, then 2^-14 to 1 times the range of the targets, by steps that are finer for large sizes.

    The bins of the smallest sizes span three times as many octaves as those of the largest.
    """
    inward = np.linspace(1.0, 0.0, n_bins)
    return np.concatenate([[0.0], 2.0 ** (-OCTAVES * (3.0 * inward + 2.0 * inward**3) / 5.0)])


def clipped(tables: np.ndarray, deviation: float) -> np.ndarray:
    """Counts of errors without the far bins that contain only noise; their sum goes to the last kept bin.

    From the far end inwards, a bin is kept when the sum of the counts up to it is above the standard deviation of
    its noise. Otherwise, noise in empty bins would dominate the squared error.

    Parameters
    ----------
    tables : ndarray of shape (n_tables, n_bins + 2)
    deviation : float
        Standard deviation of the noise of a count.

    Returns
    -------
    ndarray of shape (n_tables, n_bins)
    """
    counts = tables[:, :-SUMS][:, ::-1]
    tails = np.cumsum(counts, axis=1)
    reached = tails > deviation * np.sqrt(np.arange(1, counts.shape[1] + 1))
    reached[:, -1] = True
    first = np.argmax(reached, axis=1)[:, None]
    places = np.arange(counts.shape[1])
    kept = np.where(places < first, 0.0, np.where(places == first, np.take_along_axis(tails, first, 1), counts))
    return kept[:, ::-1]


def refined(counts: np.ndarray, tied_at: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Spread counts over finer cells by a linear density within each bin.

    Parameters
    ----------
    counts : ndarray of shape (n_tables, n_bins)
    tied_at : {0, 1} or None
        End of its bin at which tied errors lie: all beyond twice the count of the larger neighbor. None spreads them
        too.

    Returns
    -------
    fine : ndarray of shape (n_tables, n_bins * 16)
    edges : ndarray of shape (n_bins * 16 + 1,)
    """
    at = edges(counts.shape[1])
    tied = np.zeros_like(counts) if tied_at is None else _tied(counts)
    rest, width = counts - tied, np.diff(at)
    rise = np.gradient(rest / width, (at[:-1] + at[1:]) / 2, axis=1) * width**2
    rise = np.clip(rise, -2.0 * np.abs(rest), 2.0 * np.abs(rest))  # densities do not change their sign
    places = (np.arange(_PARTS) + 0.5) / _PARTS
    fine = (rest[..., None] + rise[..., None] * (places - 0.5)) / _PARTS
    fine[..., -(tied_at or 0)] += tied
    inner = at[:-1, None] + width[:, None] * np.arange(_PARTS) / _PARTS
    return fine.reshape(len(counts), -1), np.append(inner.ravel(), at[-1])


def _tied(counts: np.ndarray) -> np.ndarray:
    """Counts beyond twice that of the larger neighboring bin."""
    padded = np.pad(counts, [(0, 0), (1, 1)], mode="reflect")
    most = 2.0 * np.maximum(np.maximum(padded[:, :-2], padded[:, 2:]), 0.0)
    return np.maximum(counts - most, 0.0)


def mean_power(counts: np.ndarray, power: int, tied_at: int | None = None) -> np.ndarray:
    """Mean of a power of the absolute errors."""
    fine, at = refined(counts, tied_at)
    return np.maximum(fine @ ((at[:-1] + at[1:]) / 2) ** power / np.maximum(counts.sum(1), 1e-9), 0.0)


def moments(tables: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the targets, scaled to [-1, 1] by their bounds. With noise the variance can be negative."""
    mean, square = tables[:, -SUMS:].T / np.maximum(tables[:, :-SUMS].sum(1), 1.0)
    return np.clip(mean, -1.0, 1.0), square - mean**2


def quantile(tables: np.ndarray, deviation: float, order: float, tied_at: int | None = None) -> np.ndarray:
    """Quantile of the absolute errors."""
    fine, at = refined(np.maximum(clipped(tables, deviation), 0.0), tied_at)
    below = np.concatenate([np.zeros((len(fine), 1)), np.cumsum(fine, axis=1)], axis=1)
    below /= np.maximum(below[:, -1:], 1e-9)
    return np.array([np.interp(order, each, at) for each in below])


def conformal_order(n: float, alpha: float) -> float:
    """Order of the quantile for coverage 1 - alpha of a new row, 1 if n is too small."""
    return 1.0 if n < 1.0 else min(1.0, float(np.ceil((n + 1.0) * (1.0 - alpha))) / n)


ERROR_PARTS = 4
"""Contribution of a row to the count of its error, relative to its contribution of one to both sums of targets."""


class ErrorMetrics(TableEstimates):
    """Metrics of a regressor, computed from one noisy histogram at no additional privacy cost."""

    _summary = "r2", "root_mean_squared_error", "mean_absolute_error", "median_absolute_error", "mean_target"

    _fitted_terms: tuple[float, float, float]  # public bounds of the targets, and the deviation of the noise in a count

    @property
    def r2(self) -> Estimate:
        """Coefficient of determination, 1 - mean squared error / variance of the targets.

        The interval is Fieller's interval for a ratio (1954). It has no lower end if the noise is larger than the
        variance.
        """
        above = self._of_power(2, lambda mean: 4.0 * mean, 4.0)
        below = self.estimate(lambda tables: moments(tables)[1], high=1.0)
        ratio, low, high = _ratio(above, below, float(self.level))
        errors = (math.hypot(a, ratio * b) / max(below.value, 1e-9) for a, b in zip(above[3:], below[3:], strict=True))
        return Estimate(1.0 - ratio, 1.0 - high, 1.0 - low, *errors).with_notes(**vars(above))

    @property
    def mean_squared_error(self) -> Estimate:
        """Mean squared error."""
        return self._of_power(2, lambda mean: self._range**2 * mean, self._range**2)

    @property
    def root_mean_squared_error(self) -> Estimate:
        """Root mean squared error."""
        return self._of_power(2, lambda mean: self._range * np.sqrt(mean), self._range)

    @property
    def mean_absolute_error(self) -> Estimate:
        """Mean absolute error."""
        return self._of_power(1, lambda mean: self._range * mean, self._range)

    @property
    def median_absolute_error(self) -> Estimate:
        """Median absolute error."""
        return self.error_quantile(0.5)

    @property
    def mean_target(self) -> Estimate:
        """Mean of the targets."""
        low, high, _ = self._fitted_terms
        return self.estimate(lambda tables: low + (1.0 + moments(tables)[0]) * self._range / 2, low, high)

    def error_quantile(self, order: float) -> Estimate:
        """Quantile of the absolute errors.

        Parameters
        ----------
        order : float
            Order of the quantile, in [0, 1].

        Returns
        -------
        Estimate
            The quantile with an interval.
        """
        at = check_real("order", order, at_least=0, at_most=1, constraint="a number in [0, 1], such as 0.9")

        def metric(tables: np.ndarray, tied_at: int | None = None) -> np.ndarray:
            return self._range * quantile(tables, self._fitted_terms[2], at, tied_at)

        return self._spanning(metric, sides(metric, tied_at=(0, 1)), most=self._range)

    def prediction_interval(self, alpha: float = 0.1) -> Estimate:
        """Half-width of prediction intervals with coverage 1 - alpha.

        Use `high` instead of `value` to account for the privacy noise and for sampling.

        Parameters
        ----------
        alpha : float, default=0.1
            Largest fraction of rows, in (0, 1), whose target is outside the interval.

        Returns
        -------
        Estimate
            The half-width with an interval.
        """
        share = check_real("alpha", alpha, above=0, below=1, constraint="a number in (0, 1), such as 0.1")
        n = float(self._fitted_tables.released[:, :-SUMS].sum())
        return self.error_quantile(conformal_order(n, share))

    @property
    def _range(self) -> float:
        return self._fitted_terms[1] - self._fitted_terms[0]

    def _of_power(self, power: int, form: Any, high: float) -> Estimate:
        def metric(tables: np.ndarray, tied_at: int | None = None) -> np.ndarray:
            counts = clipped(tables, self._fitted_terms[2])
            return np.asarray(form(mean_power(counts, power, tied_at)))

        return self._spanning(metric, sides(metric, tied_at=(0, 1)), most=high)


class RegressionEvaluation(CountedEvaluation, ErrorMetrics):
    """Evaluation of a regressor on private rows, computed from one noisy release. `skdp.evaluate` creates it.

    Attributes
    ----------
    epsilon_, delta_ : float
        Guarantee of all metrics together.
    privacy_event_ : DpEvent
        Event of the release.
    privacy_unit_ : {"row", "group"}
        Privacy unit.
    y_bounds_ : tuple of float
        Public bounds, to which targets and predictions are clipped.
    noisy_counts_ : ndarray of shape (n_subgroups, n_bins + 2)
        Released values: counts of absolute errors, in rows or groups, and two sums over targets t, scaled to [-1, 1] by
        their bounds: of t / 2, and of t^2 - 1/2.
    noise_deviation_ : float
        Standard deviation of the noise of a count.
    n_bins_ : int
        Number of bins of the absolute error.

    See Also
    --------
    skdp.evaluate : Create an evaluation.

    Notes
    -----
    **Guarantees.** One row, or one group, contributes at most 4 units to the counts of errors and one to the sums of
    targets, in absolute values and over all cells together. A unit is ``GRID``. That is the sensitivity of the release.

    Proof. A row of amount a (at most ``GRID``, and at most ``GRID`` in sum over a group) has one error, and contributes
    4 a to its cell. Its target t in [-1, 1] contributes a t / 2 and a (t^2 - 1/2), both rounded towards 0. With s =
    ``|t|``, ``s / 2 + |s**2 - 1/2|`` is at most 9/16 up to the root of 1/2 (at s = 1/4), and rises to 1 from there.
    Both absolute values therefore sum to at most a, and so do the integers. A group contributes at most 5 ``GRID`` in
    sum. The accounting of Gaussian noise uses the Euclidean norm, which is not larger. Replacing a group changes the
    release by at most 6 units, the root of 4^2 + 4^2 for the counts and 2^2 for the sums, which is below 5 sqrt(2).

    The sampling variance of the variance of the targets is replaced by its largest possible value for their mean and
    variance. Errors and targets are assumed to vary independently. The interval of R^2 is therefore conservative.
    """

    _methods = ("predict",)
    _part = ErrorMetrics

    def _check_targets_known(self) -> None:
        """See `CountedEvaluation`: bounds of the targets, those of the model if it has some."""
        given = self.y_bounds if self.y_bounds is not None else getattr(last_step(self.model), "y_bounds", None)
        bounds = check_y_bounds(given)
        if bounds is None:
            raise ValueError(
                "`y_bounds` must be set to evaluate this regressor. Pass public bounds on the targets, e.g. "
                "y_bounds=(0, 100)."
            )
        self.y_bounds_ = bounds

    def _read_targets(self, y: Any, n_samples: int) -> np.ndarray:
        """See `CountedEvaluation`: targets, clipped to their bounds."""
        return np.clip(check_targets(y, n_samples), *self.y_bounds_)

    def _adds_parts(self) -> bool:
        return True

    def _cells_of_row(self) -> int:
        return ERROR_PARTS + 1

    def _default_bins(self, strength: float) -> int:
        """26 or 51 bins, which span a third or a sixth of an octave of the largest errors."""
        return 26 if strength < 1e5 else 51

    def _score(self, model: Any, rows: Any) -> np.ndarray:
        return np.asarray(model.predict(rows), np.float64)

    def _count(self, rows: ScoredRows, targets: RowsOfCounts, n_bins: int) -> np.ndarray:
        low, high = self.y_bounds_
        inner, half = edges(n_bins)[1:-1], (high - low) / 2
        table = np.zeros((self._n_parts(), n_bins + 2), np.int64)
        for block, predicted in rows.blocks():
            y, amounts, group = targets.take(block)
            error = np.abs(np.clip(predicted, low, high) - y) / (high - low)
            places = np.where(np.isnan(error), n_bins - 1, np.searchsorted(inner, error, side="right"))
            t = np.clip((y - low) / half - 1.0, -1.0, 1.0)
            np.add.at(table, (group, places), ERROR_PARTS * amounts)
            np.add.at(table[:, n_bins], group, np.trunc(amounts * (t / 2)).astype(np.int64))
            np.add.at(table[:, n_bins + 1], group, np.trunc(amounts * (t**2 - 0.5)).astype(np.int64))
        return table

    def _replicates_of(self, noisy: np.ndarray, plan: CountingPlan) -> Replicates:
        """See `CountedEvaluation`: histograms without a projection, which would bias means."""
        self.noise_deviation_ = plan.mechanism.standard_deviation / (ERROR_PARTS * GRID)
        self._fitted_terms = (*self.y_bounds_, float(self.noise_deviation_) * len(noisy) ** 0.5)
        self.noisy_counts_ = np.concatenate([noisy[:, :-2] / ERROR_PARTS, noisy[:, -2:]], axis=1) / GRID
        rng = np.random.default_rng(0)  # public: it reads only the noisy release
        released = _tables(self.noisy_counts_[None], plan.total)
        rows, noise = _rows_like(released, rng), []
        for _ in range(2):
            drawn = simulated_noise(plan.mechanism, rng, (N_DRAWS, *noisy.shape)) / GRID
            drawn[..., :-2] /= ERROR_PARTS
            noise.append(_tables(drawn, None if plan.total is None else 0.0))
        return Replicates(released, released, rows + noise[0], released + noise[1], rows, np.zeros(released.shape))

    def _facts_of_parts(self) -> dict[str, Any]:
        return {"_fitted_terms": (*self.y_bounds_, float(self.noise_deviation_))}


def _tables(released: np.ndarray, total: float | None) -> np.ndarray:
    """Counts of errors and both sums of targets, in the form of the metric functions: linear in the release.

    Counts of errors have the public total, if there is one.
    """
    errors = released[..., :-2]
    if total is not None:
        missing = total - errors.sum((-2, -1), keepdims=True)
        errors = errors + missing / (errors.shape[-2] * errors.shape[-1])
    first, second = 2.0 * released[..., -2:-1], released[..., -1:] + errors.sum(-1, keepdims=True) / 2.0
    return np.concatenate([errors, first, second], axis=-1)


def _rows_like(released: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw histograms of the same number of rows: errors by their counts, and Gaussian sums of the targets.

    With m and v the mean and variance of t, (t - m)^2 is at most (1 + |m|)^2, so its variance is at most v times that.
    """
    counts = rows_like(project(released[..., :-2], None), rng)
    n = np.maximum(released[..., :-2].sum(-1), 1.0)
    first, second = np.moveaxis(released[..., -2:], -1, 0)
    mean = np.clip(first / n, -1.0, 1.0)
    variance = np.clip(second / n - mean**2, 0.0, 1.0 - mean**2)
    normal = rng.standard_normal((2, N_DRAWS, *n.shape[1:]))
    moved = np.sqrt(n * variance) * normal[0]
    squares = 2.0 * mean * moved + np.sqrt(n * variance * ((1.0 + np.abs(mean)) ** 2 - variance)) * normal[1]
    return np.concatenate([counts, (first + moved)[..., None], (second + squares)[..., None]], axis=-1)


def _ratio(above: Estimate, below: Estimate, level: float) -> tuple[float, float, float]:
    """A ratio of two independent estimates, and the ends of its interval by Fieller (1954), 0 or above.

    The interval contains the ratios r for which ``above - r * below`` does not differ from 0 significantly.
    """
    z, a, b = NormalDist().inv_cdf(0.5 + level / 2), above.value, below.value
    first, last = a**2 - (z * above.standard_error) ** 2, b**2 - (z * below.standard_error) ** 2
    root = a * b + math.sqrt(max((a * b) ** 2 - first * last, 0.0))
    low = max(first, 0.0) / root if root > 0 else 0.0
    high = root / last if b > 0 and last > 0 else math.inf
    ratio = a / max(b, 1e-4)
    return ratio, min(low, ratio), max(high, ratio)
