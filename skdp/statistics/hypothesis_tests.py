"""Hypothesis tests for private columns, whose null distributions include the noise."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, cast

import numpy as np
from scipy import stats

from skdp._checks.parameters import show
from skdp.base.estimates import Estimate
from skdp.statistics import single_statistics
from skdp.statistics.description import PrivateDescription
from skdp.statistics.table_release import MomentsOfNumbers, NoisyTable


class PrivateTest(NamedTuple):
    """Result of a hypothesis test.

    Parameters
    ----------
    statistic : float
        Test statistic; large values contradict the null hypothesis.
    p_value : float
        Probability of a value at least as large under the null hypothesis.
    difference : Estimate or None
        Estimated difference with its 95% interval for the population; None if it is not a single number.
    estimand : str
        With `groups`: one line on the weight of a group. Otherwise empty.
    """

    statistic: float
    p_value: float
    difference: Estimate | None = None
    estimand: str = ""


def private_mean_difference(
    x: Any, by: Any, *, categories: Any = None, bounds: Any = None, **settings: Any
) -> PrivateTest:
    """Test whether two subgroups have the same mean; for truth values, the same proportion.

    Parameters
    ----------
    x : array-like of shape (n_samples,)
        Private numbers, or truth values with ``bounds=(0, 1)``. Missing values are ignored.
    by : array-like of shape (n_samples,)
        Private subgroup of each row. Rows of subgroups outside of `categories` are ignored.
    categories : list of two
        Public names of the subgroups. The difference is the mean of the second minus that of the first.
    bounds : (float, float)
        Public bounds, to which numbers are clipped.
    **settings : dict of str to object
        `epsilon`, `delta`, `groups`, `adjacency`, `accountant` and other parameters of `skdp.describe`. With `groups`,
        a group has the weight of one row, and the means of both subgroups are treated as independent.

    Returns
    -------
    test : PrivateTest
        With the difference. The statistic is the difference divided by its standard error, which includes sampling and
        noise; equal variances are not assumed. The effect of the noise depends on the means: the test uses equal means,
        as under the null hypothesis, and the interval uses the estimated means.

    Raises
    ------
    ValueError
        A parameter or the input is invalid. No budget was consumed.
    BudgetExceededError
        The budget of the accountant does not permit the release. No budget was consumed.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.statistics import private_mean_difference
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 20_000)
    >>> hours = rng.normal(38, 8, 20_000) + 2.0 * (sex == "m")
    >>> test = private_mean_difference(hours, sex, categories=["f", "m"], bounds=(0, 80), epsilon=1.0)
    >>> round(test.difference.value), round(test.p_value, 3)
    (2, 0.0)
    """
    if bounds is None:
        raise ValueError("`bounds` must be public bounds of the numbers, such as (0, 100), got None.")
    if not isinstance(categories, list | tuple | np.ndarray) or len(categories) != 2:
        raise ValueError(
            f"`categories` must be the public names of two subgroups, such as ['f', 'm'], got {show(categories)}."
        )
    _reject_several_rows(settings)
    kinds = [single_statistics.kind_of_number(bounds), single_statistics.kind_of_words(list(categories))]
    # Missing values count as the center of the mass, near the mean, so the number of bins matters little.
    asked = {"shares": single_statistics.OF_MOMENTS, "n_bins": 16, "by": "y"}
    numbers = np.asarray(x, np.float64) if getattr(getattr(x, "dtype", None), "kind", "") == "b" else x
    found = single_statistics.described("private_mean_difference", [numbers, by], kinds, settings, **asked)
    first, second = (_mean_of(found.subgroups[str(each)]) for each in categories)
    return _compare(first, second, found._cells("x").scale[1])._replace(estimand=found._estimand)


def private_chi2_test(x: Any, y: Any, *, categories: Any = None, **settings: Any) -> PrivateTest:
    """Test whether two categorical columns are independent.

    Parameters
    ----------
    x, y : array-like of shape (n_samples,)
        Private categories. Rows with a missing value in either are ignored.
    categories : list of two lists or None, default=None
        Public categories of `x` and of `y`; all others are "(other)". If None, they are privately estimated.
    **settings : dict of str to object
        `epsilon`, `delta`, `groups`, `adjacency`, `accountant` and other parameters of `skdp.describe`. With `groups`,
        a group has the weight of one row.

    Returns
    -------
    test : PrivateTest
        The p-value is the fraction of 2,000 simulated tables with a statistic at least as large. The tables are drawn
        from independent columns with the released margins, with the noise of the release.

    Raises
    ------
    ValueError
        A parameter or the input is invalid. No budget was consumed.
    BudgetExceededError
        The budget of the accountant does not permit the release. No budget was consumed.

    Notes
    -----
    The statistic is Pearson's with the variance of the noise added to each expected count. The chi-squared distribution
    would reject far too often, because it does not include the noise (Gaboardi, Lim, Rogers & Vadhan 2016).

    References
    ----------
    Gaboardi, Lim, Rogers & Vadhan (2016), "Differentially private chi-squared hypothesis testing: goodness of fit and
    independence testing".
    """
    return _of_independence("private_chi2_test", [x, y], single_statistics.kinds_of_two(categories), settings)


def private_two_sample_test(
    x: Any, by: Any, *, categories: Any = None, bounds: Any = None, **settings: Any
) -> PrivateTest:
    """Test whether a numeric column has the same distribution in all subgroups.

    Parameters
    ----------
    x : array-like of shape (n_samples,)
        Private numbers. Rows with a missing value are ignored.
    by : array-like of shape (n_samples,)
        Private subgroup of each row.
    categories : list or None, default=None
        Public names of the subgroups; all others are "(other)". If None, they are privately estimated.
    bounds : (float, float) or None, default=None
        Public bounds, to which numbers are clipped. If None, they are privately estimated.
    **settings : dict of str to object
        `epsilon`, `delta`, `groups`, `adjacency`, `accountant` and other parameters of `skdp.describe`. With `groups`,
        a group has the weight of one row.

    Returns
    -------
    test : PrivateTest
        The test of `private_chi2_test` for the subgroups and about 8 bins of the numbers.

    Raises
    ------
    ValueError
        A parameter or the input is invalid. No budget was consumed.
    BudgetExceededError
        The budget of the accountant does not permit the release. No budget was consumed.
    """
    kinds = [single_statistics.kind_of_number(bounds), single_statistics.kind_of_words(categories)]
    return _of_independence("private_two_sample_test", [x, by], kinds, settings)


class _MeanOfNumbers(NamedTuple):
    """Mean of the scaled numbers of a subgroup of about `n` rows.

    Attributes
    ----------
    n, mean : float
    by_sampling : float
        Variance of the mean, without noise.
    of_sum, of_n, of_gaps, gap : float
        Standard deviations of the noise of their sum, of the number of rows and of that of missing values; the value
        that replaces a missing value.
    """

    n: float
    mean: float
    by_sampling: float
    of_sum: float
    of_n: float
    of_gaps: float
    gap: float

    def error(self, mean: float) -> float:
        """Standard error, of sampling and of the noise to first order, if the numbers have this mean."""
        by_noise = self.of_sum**2 + (mean * self.of_n) ** 2 + ((self.gap - mean) * self.of_gaps) ** 2
        return math.sqrt(by_noise / self.n**2 + self.by_sampling)


def _mean_of(part: PrivateDescription) -> _MeanOfNumbers:
    """Mean of a subgroup, without the values that replaced missing values.

    The number of rows is that of the moments, whose noise is independent of the other subgroup's. The number of missing
    values can be negative: clipping at 0 would halve its noise without missing values, which the release does not
    contain.
    """
    tally = part._tally
    moments = cast(MomentsOfNumbers, tally.moments)
    scale, weight, gap, n = moments.scale, moments.weight, float(moments.of_gaps[0]), float(moments.sums[0, 0])
    gaps = min(float(tally.counts[0][-1]), max(n - 1.0, 0.0))
    present = max(n - gaps, 1.0)
    mean = float(moments.sums[0, 1] - gaps * gap) / present
    variance = float(moments.sums[1, 1] - gaps * gap**2) / present - mean**2
    noise = scale / weight / math.sqrt(2.0), scale / weight**2, tally.deviation
    return _MeanOfNumbers(present, mean, min(max(variance, 0.0), 1.0) / present, *noise, gap)


def _compare(first: _MeanOfNumbers, second: _MeanOfNumbers, half: float) -> PrivateTest:
    """Test whether two means are equal; `half` is the scale of the scaled numbers."""
    difference = second.mean - first.mean
    common = (first.n * first.mean + second.n * second.mean) / (first.n + second.n)
    z = difference / math.hypot(first.error(common), second.error(common))
    error = math.hypot(first.error(first.mean), second.error(second.mean))
    reach = float(stats.norm.isf(0.025)) * error
    ends = half * (difference - reach), half * (difference + reach)
    return PrivateTest(z, float(2.0 * stats.norm.sf(abs(z))), Estimate(half * difference, *ends, half * error))


def _reject_several_rows(settings: dict[str, Any]) -> None:
    if settings.get("rows_per_group") is not None:
        raise ValueError(
            f"`rows_per_group` must be None in a test, which assumes independent rows, got "
            f"{show(settings['rows_per_group'])}."
        )


def _of_independence(function: str, columns: list[Any], kinds: list[Any], settings: dict[str, Any]) -> PrivateTest:
    _reject_several_rows(settings)
    asked = {"shares": single_statistics.OF_TABLE, "crosstabs": [("x", "y")]}
    found = single_statistics.described(function, columns, kinds, settings, **asked)
    return independence_test(found._table("x", "y"))._replace(estimand=found._estimand)


def independence_test(table: NoisyTable, n_draws: int = 2_000) -> PrivateTest:
    """Test a released table, at no additional privacy cost. Its draws have a public seed."""
    counts = table.counts[:-1, :-1]
    rng = np.random.default_rng(0)
    rows, columns = (_shares(counts.sum(axis=axis)) for axis in (1, 0))
    n = max(0, round(float(counts.sum())))
    drawn = rng.multinomial(n, np.outer(rows, columns).ravel(), n_draws).reshape(n_draws, *counts.shape)
    noisy = drawn + table.deviation * rng.standard_normal(drawn.shape)
    statistic = float(_pearson(counts[None], table.deviation)[0])
    by_chance = _pearson(noisy, table.deviation)
    return PrivateTest(statistic, (1.0 + float(np.sum(by_chance >= statistic))) / (1.0 + n_draws))


def _shares(margin: np.ndarray) -> np.ndarray:
    """Probabilities by noisy counts."""
    kept = np.maximum(margin, 0.0)
    return kept / kept.sum() if kept.sum() > 0.0 else np.full(len(margin), 1.0 / len(margin))


def _pearson(tables: np.ndarray, deviation: float) -> np.ndarray:
    """The statistic of each of several tables, of shape (k, rows, columns), with noise of this deviation."""
    rows, columns = tables.sum(axis=2), tables.sum(axis=1)
    total = np.maximum(tables.sum(axis=(1, 2)), 1.0)
    expected = np.maximum(rows, 0.0)[:, :, None] * np.maximum(columns, 0.0)[:, None, :] / total[:, None, None]
    return np.sum((tables - expected) ** 2 / (expected + deviation**2), axis=(1, 2))
