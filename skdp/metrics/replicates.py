"""Noisy histograms, their projections, and intervals by a parametric bootstrap."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from statistics import NormalDist
from typing import Any, NamedTuple, Self

import numpy as np

from skdp.accounting.ledger.report import html_table
from skdp.base.estimates import Estimate
from skdp.mechanisms.discrete_noise import DiscreteLaplaceMechanism
from skdp.mechanisms.gaussian import GaussianMechanism

Mechanism = DiscreteLaplaceMechanism | GaussianMechanism
Metric = Callable[[np.ndarray], np.ndarray]
"""From histograms of shape (n_tables, ...) to numbers of shape (n_tables,) or (n_tables, n_points)."""

N_DRAWS = 400


class Replicates(NamedTuple):
    """A projected noisy histogram, and bootstrap replicates of it.

    Attributes
    ----------
    released : ndarray of shape (1, n_subgroups, n_classes, n_bins)
        The noisy histogram, projected.
    center : ndarray of shape (1, n_subgroups, n_classes, n_bins)
        Center of the draws: the same, minus the bias of noise in empty cells.
    both, noise, sampling : ndarray of shape (n_draws, n_subgroups, n_classes, n_bins)
        Replicates: with sampling and noise, noise alone, sampling alone.
    estimand : str
        Of all estimates, see `skdp._checks.groups.estimand_of`.

    Notes
    -----
    All of it is post-processing of one noisy histogram. Replicates of rows are multinomial, with as many rows as the
    histogram has weight. A row of weight w < 1, or a group whose rows share a weight of 1, has a smaller variance: its
    contribution to a linear metric has a second moment of at most that of one row in one cell (Jensen). Intervals are
    therefore conservative.
    """

    released: np.ndarray
    center: np.ndarray
    both: np.ndarray
    noise: np.ndarray
    sampling: np.ndarray
    variance: np.ndarray
    gathered: Any = None
    estimand: str = ""

    @classmethod
    def of(cls, noisy: np.ndarray, mechanism: Mechanism, unit: int, total: float | None) -> Self:
        """Project a noisy histogram, and draw replicates.

        Parameters
        ----------
        noisy : ndarray of shape (n_subgroups, n_classes, n_bins)
            Released counts, in rows.
        mechanism : DiscreteLaplaceMechanism or GaussianMechanism
            Mechanism of the noise.
        unit : int
            Contribution of a row of weight 1.
        total : float or None
            Public total of the histogram in rows; None if it is private.
        """
        least = LEAST_TAIL * mechanism.standard_deviation / unit

        def projected(tables: np.ndarray) -> np.ndarray:
            return project(tails_gathered(tables, least), total)

        gathered = cls.made(noisy, mechanism, unit, projected, rows_like)
        plain = cls.made(noisy, mechanism, unit, lambda tables: project(tables, total), rows_like)
        return plain._replace(gathered=gathered)

    @classmethod
    def made(
        cls, noisy: np.ndarray, mechanism: Mechanism, unit: Any, projected: Callable[[np.ndarray], np.ndarray],
        drawn: Callable[[np.ndarray, np.random.Generator], np.ndarray], starts: Sequence[int] = (0,),
    ) -> Self:  # fmt: skip
        """Draw replicates with other projections.

        Parameters
        ----------
        noisy : ndarray of shape (n_subgroups, ...)
            Released counts, in rows.
        mechanism : DiscreteLaplaceMechanism or GaussianMechanism
            Mechanism of the noise.
        unit : int, or ndarray that broadcasts to `noisy`
            Contribution of a row of weight 1 to a cell.
        projected : callable
            Maps histograms of shape (n_tables, n_subgroups, ...) to the nearest valid ones.
        drawn : callable
            Maps one of them, (1, n_subgroups, ...), and a generator to `N_DRAWS` histograms of as many rows.
        starts : sequence of int
            Index, among the last cells, of the first count of each class; by default there is one class.
        """
        rng = np.random.default_rng(0)  # public: it reads only the noisy histogram
        released = projected(noisy[None])
        noise = [simulated_noise(mechanism, rng, (N_DRAWS, *noisy.shape)) / unit for _ in range(2)]
        center = centered(released, lambda table: projected(table + noise[1]), starts)
        rows = drawn(center, rng)
        variance = np.broadcast_to((mechanism.standard_deviation / np.asarray(unit)) ** 2, released.shape)
        return cls(released, center, projected(rows + noise[0]), projected(center + noise[1]), rows, variance)

    def map(self, function: Callable[[np.ndarray], np.ndarray]) -> Self:
        """Return the replicates with a function of all histograms applied, such as a choice of subgroups."""
        tables: dict[str, Any] = {name: function(getattr(self, name)) for name in self._fields[:-2]}
        return self._replace(**tables, gathered=self.gathered and self.gathered.map(function))

    def stated(self, estimand: str) -> Self:
        """Return the replicates with the estimand of its estimates."""
        return self._replace(gathered=self.gathered and self.gathered.stated(estimand), estimand=estimand)

    def estimate(
        self, metric: Metric, level: float, low: float = 0.0, high: float = 1.0, sampling: float | None = None
    ) -> Estimate:
        """Return the `Estimate` of a metric between `low` and `high`, of arrays for a metric of several points.

        `sampling` is the standard deviation due to sampling, or a bound on it, if the draws of `both` do not include
        it.

        Projected noise is biased in empty cells, by about as much in the draws as in the release. The interval contains
        two Gaussian intervals: around the value, with the variance of the draws plus their squared bias, and around the
        value minus that bias, with their variance. Each alone has too low coverage with large noise
        (`benchmarks/bench_evaluate.py`).
        """
        value, drawn, noisy = metric(self.released)[0], metric(self.both), metric(self.noise)
        middle = metric(self.center)[0]
        bias, deviation = drawn.mean(axis=0) - middle, drawn.std(axis=0)
        if sampling is not None:
            deviation = np.hypot(noisy.std(axis=0), sampling)
        spread, z = np.hypot(bias, deviation), NormalDist().inv_cdf(0.5 + level / 2)
        low_end = np.minimum(value - z * spread, value - bias - z * deviation)
        high_end = np.maximum(value + z * spread, value - bias + z * deviation)
        by_rows = np.sqrt(np.mean((metric(self.sampling) - middle) ** 2, axis=0)) if sampling is None else sampling
        errors = np.sqrt(np.mean((noisy - middle) ** 2, axis=0)), by_rows
        figures = (np.clip(each, low, high) for each in (value, low_end, high_end))
        numbers = (float(each) if np.ndim(each) == 0 else each for each in (*figures, spread, *errors))
        return Estimate(*numbers).with_notes(estimand=self.estimand)


def centered(released: np.ndarray, with_noise: Callable[[np.ndarray], np.ndarray], starts: Sequence[int]) -> np.ndarray:
    """Return a histogram whose projected noisy versions have about the released class sizes.

    Noise that is clipped at 0 adds to a class, most to a rare one. Draws from the released histogram itself would have
    too many rows, and intervals would be too narrow (`benchmarks/bench_evaluate.py`). Each class of each subgroup is
    therefore divided by its relative excess in the draws, twice.

    Parameters
    ----------
    released : ndarray of shape (1, ..., n_cells)
    with_noise : callable
        Maps a histogram to draws of it with noise, projected, of shape (n_draws, ..., n_cells).
    starts : sequence of int
        Index of the first count of each class among the cells.
    """
    widths, center = np.diff([*starts, released.shape[-1]]), released
    held = np.add.reduceat(released, starts, axis=-1)
    for _ in range(2):
        drawn = np.add.reduceat(with_noise(center), starts, axis=-1).mean(axis=0, keepdims=True)
        factors = np.divide(held, drawn, out=np.ones(held.shape), where=drawn > 0)
        center = center * np.repeat(factors, widths, axis=-1)
    return center


def rows_like(released: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw multinomial histograms with the total and the cell proportions of one histogram.

    Parameters
    ----------
    released : ndarray of shape (1, ...)
    rng : Generator

    Returns
    -------
    ndarray of shape (N_DRAWS, ...)
    """
    n = int(np.rint(released.sum()))
    shares = released.ravel() / released.sum() if n else np.full(released.size, 1.0 / released.size)
    return rng.multinomial(n, shares, N_DRAWS).reshape(N_DRAWS, *released.shape[1:]).astype(np.float64)


def project(tables: np.ndarray, total: float | np.ndarray | None) -> np.ndarray:
    """Return the nearest histograms without negative counts, each with the public total if there is one.

    Parameters
    ----------
    tables : ndarray of shape (n_tables, ...)
    total : float, ndarray of shape (n_tables, 1) or None
        Above 0.
    """
    if total is None:
        return np.maximum(tables, 0.0)
    flat = tables.reshape(len(tables), -1)
    falling = -np.sort(-flat, axis=1)
    shift = (np.cumsum(falling, axis=1) - total) / np.arange(1, flat.shape[1] + 1)
    n_above = (falling > shift).sum(axis=1)
    return np.maximum(flat - shift[np.arange(len(flat)), n_above - 1][:, None], 0.0).reshape(tables.shape)


LEAST_TAIL = 4.0
"""A run of end bins is only noise if its sum is below this number of standard deviations of its noise."""


def tails_gathered(tables: np.ndarray, least: float) -> np.ndarray:
    """Gather end bins that contain only noise, of all classes, in the first bin with a larger sum.

    If there is no such bin, all stay as they are.

    Parameters
    ----------
    tables : ndarray of shape (..., n_classes, n_bins)
    least : float
        `LEAST_TAIL` standard deviations of the noise of one cell.
    """
    at = np.arange(tables.shape[-1])
    for _ in range(2):
        sums = np.cumsum(tables, axis=-1)
        stands = sums.sum(axis=-2) > least * np.sqrt(tables.shape[-2] * (at + 1.0))
        first = np.argmax(stands, axis=-1)[..., None, None]  # 0 where there is none
        tables = np.where(at < first, 0.0, np.where(at == first, sums, tables))[..., ::-1]
    return tables


def simulated_noise(mechanism: Mechanism, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Noise with the distribution of a mechanism, in its units, from a public generator."""
    if isinstance(mechanism, GaussianMechanism):
        return mechanism.standard_deviation * rng.standard_normal(shape)
    p = -math.expm1(-1.0 / float(mechanism.scale))
    return (rng.geometric(p, shape) - rng.geometric(p, shape)).astype(np.float64)


ENOUGH_CASES = 7.0
"""Intervals span the whole range if a class has fewer rows than this number of standard deviations of its noise."""


class TableEstimates:
    """Metrics computed from one noisy histogram at no additional privacy cost."""

    _summary: tuple[str, ...] = ()
    level: float  # of the intervals
    _fitted_tables: Replicates

    def __init__(self, tables: Replicates, level: float, **facts: Any) -> None:
        """Metrics of a part of all rows, such as a subgroup; `facts` are additional data."""
        self._fitted_tables, self.level = tables, level
        vars(self).update(facts)

    def estimate(self, metric: Metric, low: float = -np.inf, high: float = np.inf) -> Estimate:
        """Estimate any metric from the histogram.

        Parameters
        ----------
        metric : callable
            Maps histograms of shape (n_tables, ...) to one number, or one array, for each histogram. Binary histograms
            have the shape (n_tables, 2, n_bins): negatives and then positives, in bins of the score.
        low, high : float
            Bounds of the metric.

        Returns
        -------
        Estimate
            The metric with an interval, numbers or arrays.
        """
        return self._fitted_tables.estimate(metric, float(self.level), low, high)

    def _share(self, metric: Metric) -> Estimate:
        return self.estimate(metric, 0.0, 1.0)

    def _spanning(
        self, metric: Metric, ends: list[Metric], least: float = 0.0, most: float = 1.0, found: Estimate | None = None
    ) -> Estimate:
        """Widen an interval by the effect of the positions of rows within bins, which the histogram does not contain.

        The interval is that of `metric`, or of `found`.

        With d the difference that `ends` make, an end is z sqrt(s^2 + d^2) away if it was z s, or z s + d if that is
        less: an error of at most d, in addition to a Gaussian one, keeps the coverage.
        """
        found = self.estimate(metric, least, most) if found is None else found
        z, released = NormalDist().inv_cdf(0.5 + float(self.level) / 2), self._fitted_tables.released
        moved = [float(each(released)[0] - metric(released)[0]) for each in ends]

        def away(distance: float, d: float) -> float:
            return min(math.hypot(distance, z * d), distance + d)

        low = found.value - away(found.value - found.low, -min(0.0, *moved))
        high = found.value + away(found.high - found.value, max(0.0, *moved))
        return found._replace(low=max(low, least), high=min(high, most))

    def _hidden_if_few(self, found: Estimate, least: float = 0.0, most: float = 1.0) -> Estimate:
        """Replace the interval by the whole range if the rarer class is not distinguishable from the noise."""
        tables = self._fitted_tables
        few = tables.released.sum(-1) < ENOUGH_CASES * np.sqrt(tables.variance.sum(-1))
        return found._replace(low=least, high=most) if few.any() else found

    # --- output ---

    def summary(self) -> dict[str, Estimate]:
        """Return the usual metrics by name.

        Returns
        -------
        dict of str to Estimate
            Metrics with intervals.
        """
        found = {name: getattr(self, name) for name in self._summary}
        return {name: each() if callable(each) else each for name, each in found.items()}

    def __str__(self) -> str:
        lines = [f"{name.replace('_', ' '):18} {each.with_notes(estimand='')}" for name, each in self.summary().items()]
        return "\n".join([*lines, *filter(None, [self._fitted_tables.estimand])])

    def _metrics_as_html(self) -> str:
        found, estimand = self.summary().items(), self._fitted_tables.estimand
        rows = [(name.replace("_", " "), f"{x.value:.4g}", f"{x.low:.4g} to {x.high:.4g}") for name, x in found]
        table = html_table(("", "value", f"{self.level:.0%} interval"), rows)
        return table + (estimand and f"<p>{estimand}</p>")


def sides(metric: Any, **sides: tuple[Any, Any]) -> list[Metric]:
    """The metric at each of two values of a parameter, the extremes that the bins do not resolve."""
    return [partial(metric, **{name: side}) for name, pair in sides.items() for side in pair]
