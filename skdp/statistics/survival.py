"""Survival curves from one noisy histogram, with intervals that account for noise and sampling."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from skdp._checks.numbers import number_of
from skdp._checks.parameters import read_real, show
from skdp.base.estimates import EstimatedCurve
from skdp.exceptions import QualityWarning, warn
from skdp.statistics import single_statistics
from skdp.statistics.cells import OTHER
from skdp.statistics.description import PrivateDescription
from skdp.statistics.hypothesis_tests import PrivateTest

_DISTINGUISHABLE = 3.0
"""Numbers at risk below this many standard deviations of their noise give no estimate."""

_MOST_LOST = 0.1


@dataclass(frozen=True, eq=False)
class SurvivalEstimate:
    """Estimated survival function of one group of records.

    Everything is post-processing of one noisy histogram, so it has no additional privacy cost.

    Parameters
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Public edges of the time bins.
    counts : ndarray of shape (2 * n_bins + 1,)
        Noisy numbers of records that are censored in each bin, that have the event in each bin, and that are observed
        beyond the last edge.
    noise : float
        Standard deviation of the noise of each count.
    description : PrivateDescription
        The release, with its guarantee and `privacy_event_`.
    subgroups : dict of str to SurvivalEstimate
        Estimates of the categories of `by`; empty without `by`.
    """

    edges: np.ndarray
    counts: np.ndarray
    noise: float
    description: PrivateDescription
    subgroups: dict[str, SurvivalEstimate]

    @property
    def log_rank(self) -> PrivateTest | None:
        """Test whether all subgroups have the same survival function.

        Returns
        -------
        test : PrivateTest or None
            The statistic sums, over subgroups, the squared difference of observed and expected events over its
            variance. None without subgroups.
        """
        if len(self.subgroups) < 2:
            return None
        parts = list(self.subgroups.values())
        test = log_rank_test(np.array([each.counts for each in parts]), parts[0].noise)
        return test._replace(estimand=self.description._estimand)

    @property
    def epsilon_(self) -> float:
        """Epsilon of the release at `delta_`.

        Returns
        -------
        epsilon : float
        """
        return self.description.epsilon_

    @property
    def delta_(self) -> float:
        """Delta at which `epsilon_` is computed.

        Returns
        -------
        delta : float
        """
        return self.description.delta_

    def survival(self, *, level: float = 0.95) -> EstimatedCurve:
        """Return the Kaplan-Meier estimate of the survival function at the edges of the bins.

        Parameters
        ----------
        level : float, default=0.95
            Probability with which each interval contains the survival probability of the population.

        Returns
        -------
        curve : EstimatedCurve
            Time and survival probability, with intervals. Probabilities do not increase; they are NaN where the number
            at risk is not distinguishable from the noise.
        """
        lines = kaplan_meier(self.counts, self.noise, level)
        y, low, high = (np.concatenate([[1.0], line]) for line in lines)
        return EstimatedCurve(self.edges, y, low, high, self.edges)

    def cumulative_hazard(self, *, level: float = 0.95) -> EstimatedCurve:
        """Return the Nelson-Aalen estimate of the cumulative hazard at the edges of the bins.

        Parameters
        ----------
        level : float, default=0.95
            Probability with which each interval contains the cumulative hazard of the population.

        Returns
        -------
        curve : EstimatedCurve
            Time and cumulative hazard, with intervals. An end is infinite where the survival probability may be 0.
        """
        return self._hazard_of(self.survival(level=level))

    def _hazard_of(self, survival: EstimatedCurve) -> EstimatedCurve:
        """Return the cumulative hazard, whose interval is that of the survival function."""
        at_risk, survivors = _at_risk(self.counts)
        hazards = np.clip(2.0 * (at_risk - survivors) / np.maximum(at_risk + survivors, 1.0), 0.0, 2.0)
        with np.errstate(divide="ignore"):
            low, high = 0.0 - np.log(survival.high), 0.0 - np.log(survival.low)
        y = np.clip(np.cumsum([0.0, *hazards]), low, high)
        return EstimatedCurve(self.edges, np.where(np.isnan(survival.y), np.nan, y), low, high, self.edges)

    def to_frame(self, *, level: float = 0.95) -> Any:
        """Return both curves as a frame with one row for each edge, and for each subgroup.

        Parameters
        ----------
        level : float, default=0.95
            Probability with which each interval contains its quantity.

        Returns
        -------
        frame : pandas.DataFrame
            Columns ``survival`` and ``cumulative_hazard``, each followed by ``_low`` and ``_high``. The index is the
            time; with `by`, the subgroup comes first.
        """
        import pandas as pd

        if self.subgroups:
            frames = {name: each.to_frame(level=level) for name, each in self.subgroups.items()}
            return pd.concat(frames, names=["subgroup"])
        columns: dict[str, np.ndarray] = {}
        survival = self.survival(level=level)
        for name, curve in (("survival", survival), ("cumulative_hazard", self._hazard_of(survival))):
            columns |= {name: curve.y, f"{name}_low": curve.low, f"{name}_high": curve.high}
        return pd.DataFrame(columns, index=pd.Index(self.edges, name="time"))

    def __repr__(self) -> str:
        release = self.description
        guarantee = f"epsilon={self.epsilon_:.4g} at delta={self.delta_:g} for one {release.privacy_unit_}"
        text = f"<SurvivalEstimate at {len(self.edges) - 1} times: {guarantee} ({release.adjacency_})>"
        return f"{text}\n{release._estimand}".rstrip()


def private_survival(
    time: Any, event: Any, *, bins: Any, by: Any = None, categories: Any = None, **settings: Any
) -> SurvivalEstimate:
    """Estimate survival functions of censored times with differential privacy.

    Each record falls into one cell of time bin and event. One noisy histogram of these cells is released.

    Parameters
    ----------
    time : array-like of shape (n_samples,)
        Private time to the event or to censoring. Records without a number are left out.
    event : array-like of shape (n_samples,)
        Private indicator: 1 or True if the event occurred at `time`, 0 or False if the record is censored. Records
        with another value are left out.
    bins : array-like of shape (n_bins + 1,)
        Public edges of the time bins, ascending. The first is the start of observation; times at or below it are in the
        first bin. Records with a larger time than the last edge count as event-free up to it.
    by : array-like of shape (n_samples,) or None, default=None
        Private subgroup of each record.
    categories : list or None, default=None
        Public names of the subgroups; required with `by`. Records of other subgroups are left out of them.
    **settings : dict of str to object
        `epsilon`, `delta`, `groups`, `sample_weight`, `weight_bound`, `adjacency`, `accountant` and others of
        `skdp.describe`. With `groups`, each group has the weight of one record.

    Returns
    -------
    estimate : SurvivalEstimate
        Survival function, cumulative hazard, and with `by` those of each subgroup and a log-rank test.

    Raises
    ------
    ValueError
        A parameter or the input is invalid. No budget was consumed.
    BudgetExceededError
        The release exceeds the budget of the accountant. No budget was consumed.

    Notes
    -----
    **Guarantees.** The histogram is a release of `skdp.describe` with its sensitivity: one record changes one count by
    at most its weight. The estimates are post-processing.

    **Estimates.** Records that are censored within a bin count as at risk for half of it (the actuarial estimate), so
    there is no bias for censoring that is uniform within bins. Intervals combine two parts: the noise, by the delta
    method, and sampling, by Greenwood's formula with the binomial interval of an effective sample size (Korn & Graubard
    1998; Zou & Donner 2008 for the combination). From the first time on at which the number at risk is not
    distinguishable from the noise, the interval extends to 0. With `sample_weight` and `groups`, the intervals for
    sampling are conservative.

    References
    ----------
    Kaplan & Meier (1958), "Nonparametric estimation from incomplete observations".

    Korn & Graubard (1998), "Confidence intervals for proportions with small expected number of positive counts".

    Zou & Donner (2008), "Construction of confidence limits about effect measures: a general approach".

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.statistics import private_survival
    >>> rng = np.random.default_rng(0)
    >>> months, end = rng.exponential(20.0, 5_000), rng.uniform(6.0, 36.0, 5_000)
    >>> found = private_survival(np.minimum(months, end), months <= end, bins=range(0, 37, 6), epsilon=1.0)
    >>> curve = found.survival()
    >>> bool(abs(curve.y[2] - np.exp(-12 / 20)) < 0.05)
    True
    """
    edges = _read_bins(bins)
    if (by is None) != (categories is None):
        raise ValueError("`by` and `categories` must be passed together, got one of them. Pass the public subgroups.")
    if by is not None and not isinstance(categories, list | tuple | np.ndarray):
        raise ValueError(f"`categories` must be a list of the public subgroups, got {show(categories)}. Pass a list.")
    size = 2 * (len(edges) - 1) + 1
    columns, kinds = [_cells_of(time, event, edges)], [single_statistics.kind_of_words(list(range(size)))]
    asked: dict[str, Any] = {"shares": single_statistics.OF_CELLS}
    if by is not None:
        columns, kinds = [*columns, by], [*kinds, single_statistics.kind_of_words(list(categories))]
        asked["by"] = "y"
    found = single_statistics.described("private_survival", columns, kinds, settings, **asked)
    _warn_of_lost_records(found)
    parts = {name: _estimate(edges, each, {}) for name, each in found.subgroups.items() if name != OTHER}
    return _estimate(edges, found, parts)


def _warn_of_lost_records(found: PrivateDescription) -> None:
    """Warn by released counts if a tenth of the records, or more, have no valid time and event."""
    counts, noise = found._tally.counts[0], found._tally.deviation
    lost, total = float(counts[-1] - _DISTINGUISHABLE * noise), float(counts.sum())
    if lost > _MOST_LOST * max(total, 1.0):
        warn(
            f"More than {_MOST_LOST:.0%} of the records have no valid `time` and `event` and are left out. `time` must "
            "be a number, and `event` must be 1 (event) or 0 (censored).",
            QualityWarning,
        )


def _estimate(edges: np.ndarray, found: PrivateDescription, subgroups: dict[str, SurvivalEstimate]) -> SurvivalEstimate:
    tally = found._tally
    return SurvivalEstimate(edges, tally.counts[0][: 2 * len(edges) - 1], tally.deviation, found, subgroups)


def _read_bins(bins: Any) -> np.ndarray:
    edges = [read_real(each) for each in bins] if isinstance(bins, list | tuple | range | np.ndarray) else []
    found = np.array([math.nan if each is None else each for each in edges])
    if len(found) < 2 or not np.all(np.isfinite(found)) or not np.all(np.diff(found) > 0.0):
        raise ValueError(f"`bins` must be at least two ascending numbers, got {show(bins)}. Pass e.g. bins=[0, 6, 12].")
    return found


def _cells_of(time: Any, event: Any, edges: np.ndarray) -> np.ndarray:
    """Return the cell of each record, NaN for a record without a time or an event."""
    times, events = (_numbers_of(name, each) for name, each in (("time", time), ("event", event)))
    if times.shape != events.shape or times.ndim != 1:
        raise ValueError(
            f"`time` and `event` must be columns of one length, got shapes {times.shape} and {events.shape}. Pass one "
            "time and one event for each record."
        )
    k = len(edges) - 1
    place = np.clip(np.searchsorted(edges, times, side="left") - 1, 0, k)
    cells = np.where(place == k, 2 * k, place + k * (events == 1.0))
    return np.where(np.isnan(times) | ~np.isin(events, (0.0, 1.0)), np.nan, cells)


def _numbers_of(name: str, given: Any) -> np.ndarray:
    """Return the numbers of a column, NaN for all other cells: each cell is read alone, and none is rejected."""
    if not hasattr(given, "dtype"):
        return np.array([number_of(each) for each in given], np.float64)
    values = np.asarray(np.ma.filled(given.astype(object), None) if np.ma.isMaskedArray(given) else given)
    kinds = {"m": "durations", "M": "dates", "U": "strings", "S": "bytes", "c": "complex numbers", "V": "records"}
    if values.dtype.kind in kinds:
        kind = kinds[values.dtype.kind]
        raise ValueError(f"`{name}` must contain numbers, got {kind}. Convert it, e.g. to days since a start.")
    if values.dtype.kind == "O":
        return np.array([number_of(each) for each in values.ravel()], np.float64).reshape(values.shape)
    with np.errstate(all="ignore"):
        return values.astype(np.float64)


def _exposure(k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the matrices that map counts to the numbers at risk in each bin and to those without an event in it."""
    later, own = np.triu(np.ones((k, k))), np.eye(k)
    at_risk = np.hstack([later - 0.5 * own, later, np.ones((k, 1))])
    return at_risk, at_risk - np.hstack([np.zeros((k, k)), own, np.zeros((k, 1))])


def _at_risk(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers at risk, and those without an event, in each bin."""
    at_risk, survivors = _exposure(counts.shape[-1] // 2)
    return counts @ at_risk.T, counts @ survivors.T


def _is_at_risk_known(counts: np.ndarray, noise: float) -> np.ndarray:
    """Return whether the number at risk is distinguishable from the noise, in each bin and all bins before it."""
    at_risk, survivors = _exposure(counts.shape[-1] // 2)
    least = np.minimum(counts @ at_risk.T, counts @ survivors.T)
    return np.logical_and.accumulate(least > _DISTINGUISHABLE * noise * np.linalg.norm(at_risk, axis=1), axis=-1)


def kaplan_meier(counts: np.ndarray, noise: float, level: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return survival probabilities at the ends of the bins, and the ends of their intervals."""
    at_risk, survivors = _exposure(len(counts) // 2)
    is_known = _is_at_risk_known(counts, noise)
    m, s = (np.where(is_known, each @ counts, 1.0) for each in (at_risk, survivors))
    value = np.exp(np.cumsum(np.log(s / m)))
    gradient = np.cumsum(survivors / s[:, None] - at_risk / m[:, None], axis=0)
    by_noise = value * noise * np.linalg.norm(gradient, axis=1)
    hazard = np.clip(1.0 - s / m, 0.0, 1.0)
    greenwood = np.cumsum(hazard / np.maximum((1.0 - hazard) * m, 1e-9))
    value = np.minimum.accumulate(np.clip(value, 0.0, 1.0))
    n = np.clip((1.0 - value) / np.maximum(value * greenwood, 1e-12), 1.0, max(m[0], 1.0))
    n = np.where(greenwood > 0.0, n, max(m[0], 1.0))
    events, tail = n * value, (1.0 - level) / 2.0
    low = np.where(events > 0.0, stats.beta.ppf(tail, np.maximum(events, 1e-9), n - events + 1.0), 0.0)
    high = np.where(events < n, stats.beta.isf(tail, events + 1.0, np.maximum(n - events, 1e-9)), 1.0)
    reach = stats.norm.isf(tail) * by_noise
    low, high = value - np.hypot(value - low, reach), value + np.hypot(high - value, reach)
    low, high = np.where(is_known, low, 0.0), np.minimum.accumulate(np.where(is_known, high, 1.0))
    return np.where(is_known, value, np.nan), np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def log_rank_test(counts: np.ndarray, noise: float, n_draws: int = 2_000) -> PrivateTest:
    """Test whether subgroups have the same hazards, by counts of shape (n_subgroups, 2 * n_bins + 1).

    Bins in which a number at risk is not distinguishable from the noise are not used. The statistic is compared with
    that of tables drawn from the pooled hazards and the censoring of each subgroup, with the noise of the release. The
    draws have a public seed, as they depend on released counts alone.
    """
    bins = counts.shape[1] // 2
    k = int(np.sum(np.all([_is_at_risk_known(each, noise) for each in counts], axis=0)))
    if k == 0:
        return PrivateTest(0.0, 1.0)
    beyond = counts[:, k:bins].sum(axis=1) + counts[:, bins + k :].sum(axis=1)
    used = np.hstack([counts[:, :k], counts[:, bins : bins + k], beyond[:, None]])
    deviations = noise * np.sqrt([*[1.0] * (2 * k), 2.0 * (bins - k) + 1.0])
    kept = np.maximum(used, 0.0)
    at_risk, survivors = (np.maximum(each, 1e-9) for each in _at_risk(kept))
    hazard = 1.0 - survivors.sum(axis=0) / at_risk.sum(axis=0)
    censored = np.clip(kept[:, :k] / np.maximum(survivors + 0.5 * kept[:, :k], 1e-9), 0.0, 1.0)
    stay = np.cumprod((1.0 - hazard) * (1.0 - censored), axis=1)
    before = np.hstack([np.ones((len(counts), 1)), stay[:, :-1]])
    cells = np.hstack([before * (1.0 - hazard) * censored, before * hazard, stay[:, -1:]])
    rng = np.random.default_rng(0)
    sizes = np.round(kept.sum(axis=1)).astype(int)
    drawn = np.stack([rng.multinomial(n, p / p.sum(), n_draws) for n, p in zip(sizes, cells, strict=True)], axis=1)
    noisy = drawn + deviations * rng.standard_normal(drawn.shape)
    statistic = float(_log_rank_statistic(used[None], noise)[0])
    by_chance = _log_rank_statistic(noisy, noise)
    return PrivateTest(statistic, (1.0 + float(np.sum(by_chance >= statistic))) / (1.0 + n_draws))


def _log_rank_statistic(counts: np.ndarray, noise: float) -> np.ndarray:
    """Return sums of squared differences of observed and expected events, over their variances, for each table."""
    k = counts.shape[-1] // 2
    at_risk = np.maximum(_at_risk(counts)[0], 0.0)
    total = np.maximum(at_risk.sum(axis=1, keepdims=True), 1.0)
    events, fraction = counts[..., k : 2 * k], at_risk / total
    pooled = events.sum(axis=1, keepdims=True)
    difference = (events - fraction * pooled).sum(axis=2)
    variance = (fraction * (1.0 - fraction) * np.maximum(pooled, 0.0)).sum(axis=2) + k * noise**2
    return np.asarray((difference**2 / variance).sum(axis=1))
