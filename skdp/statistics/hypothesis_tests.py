"""Tests of private columns, in whose null distributions the noise is."""

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
    """What a test says.

    Parameters
    ----------
    statistic : float
        What is large where the null hypothesis is wrong.
    p_value : float
        Probability of one as large, where the null hypothesis holds.
    difference : Estimate or None
        What was compared, with its 95 % interval for the population; None if it is not a single number.
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
    """Test whether two subgroups have the same mean; of truth values, the same proportion.

    Parameters
    ----------
    x : array-like of shape (n_samples,)
        Private numbers, or truth values with ``bounds=(0, 1)``. NaN and other gaps are left out.
    by : array-like of shape (n_samples,)
        Private subgroup of each row. Rows of others than `categories` are left out.
    categories : list of two
        Public names of the subgroups. The difference is the mean of the second less that of the first.
    bounds : (float, float)
        Public bounds, to which numbers beyond are moved.
    **settings : dict of str to object
        `epsilon`, `delta`, `groups`, `adjacency`, `accountant` and others of `skdp.describe`. With `groups` a group has
        the weight of one row, and each mean has an error as if rows were independent of those in the other subgroup.

    Returns
    -------
    test : PrivateTest
        With the difference. The statistic is the difference over its standard error, of sampling and noise, without
        equal variances being assumed. What the noise does depends on the means: it is that of two equal ones, as the
        null hypothesis has it, and in the interval that of the means as they are.

    Raises
    ------
    ValueError
        A parameter or the input is invalid. Nothing was charged.
    BudgetExceededError
        The budget of the accountant does not admit the release. Nothing was charged.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.statistics import private_mean_difference
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 20_000)
    >>> hours = rng.normal(38, 8, 20_000) + 2.0 * (sex == "m")
    >>> found = private_mean_difference(hours, sex, categories=["f", "m"], bounds=(0, 80), epsilon=1.0)
    >>> found.p_value < 0.01, bool(found.difference.low < 2.0 < found.difference.high)
    (True, True)
    """
    if bounds is None:
        raise ValueError("bounds=None: give public bounds of the numbers, as subgroups have none that are bought.")
    if not isinstance(categories, list | tuple | np.ndarray) or len(categories) != 2:
        raise ValueError(
            f"categories={show(categories)}: give the public names of the two subgroups, such as ['f', 'm']."
        )
    _refuse_several_rows(settings)
    kinds = [single_statistics.kind_of_number(bounds), single_statistics.kind_of_words(list(categories))]
    # A gap counts as the middle of the mass, near the mean, so it matters little how many bins tell of it.
    asked = {"shares": single_statistics.OF_MOMENTS, "n_bins": 16, "by": "y"}
    numbers = np.asarray(x, np.float64) if getattr(getattr(x, "dtype", None), "kind", "") == "b" else x
    found = single_statistics.described("private_mean_difference", [numbers, by], kinds, settings, **asked)
    first, second = (_mean_of(found.subgroups[str(each)]) for each in categories)
    return _compare(first, second, found._cells("x").scale[1])._replace(estimand=found._estimand)


def private_chi2_test(x: Any, y: Any, *, categories: Any = None, **settings: Any) -> PrivateTest:
    """Test whether two columns of categories are independent.

    Parameters
    ----------
    x, y : array-like of shape (n_samples,)
        Private categories. Rows with a gap in either are left out.
    categories : list of two lists or None, default=None
        Public categories of `x` and of `y`; all others are "(other)". If None, they are privately estimated.
    **settings : dict of str to object
        `epsilon`, `delta`, `groups`, `adjacency`, `accountant` and others of `skdp.describe`. With `groups` a group has
        the weight of one row.

    Returns
    -------
    test : PrivateTest
        The p-value is the share of 2,000 tables, drawn with the noise of the release from independent columns of the
        margins that were released, whose statistic is as large.

    Raises
    ------
    ValueError
        A parameter or the input is invalid. Nothing was charged.
    BudgetExceededError
        The budget of the accountant does not admit the release. Nothing was charged.

    Notes
    -----
    The statistic is that of Pearson with the variance of the noise added to each expected count. The law of chi-squared
    would reject far too often, as the noise is no part of it (Gaboardi, Lim, Rogers & Vadhan 2016).

    References
    ----------
    Gaboardi, Lim, Rogers & Vadhan (2016), "Differentially private chi-squared hypothesis testing: goodness of fit and
    independence testing".
    """
    return _of_independence("private_chi2_test", [x, y], single_statistics.kinds_of_two(categories), settings)


def private_two_sample_test(
    x: Any, by: Any, *, categories: Any = None, bounds: Any = None, **settings: Any
) -> PrivateTest:
    """Test whether subgroups have the same distribution of a number.

    Parameters
    ----------
    x : array-like of shape (n_samples,)
        Private numbers. Rows with a gap are left out.
    by : array-like of shape (n_samples,)
        Private subgroup of each row.
    categories : list or None, default=None
        Public names of the subgroups; all others are "(other)". If None, they are privately estimated.
    bounds : (float, float) or None, default=None
        Public bounds, to which numbers beyond are moved. If None, they are privately estimated.
    **settings : dict of str to object
        `epsilon`, `delta`, `groups`, `adjacency`, `accountant` and others of `skdp.describe`. With `groups` a group has
        the weight of one row.

    Returns
    -------
    test : PrivateTest
        That of `private_chi2_test` of subgroups and some 8 bins of the numbers.

    Raises
    ------
    ValueError
        A parameter or the input is invalid. Nothing was charged.
    BudgetExceededError
        The budget of the accountant does not admit the release. Nothing was charged.
    """
    kinds = [single_statistics.kind_of_number(bounds), single_statistics.kind_of_words(categories)]
    return _of_independence("private_two_sample_test", [x, by], kinds, settings)


class _MeanOfNumbers(NamedTuple):
    """Mean of the scaled numbers of a subgroup, of which there are about `n`.

    Attributes
    ----------
    n, mean : float
    by_sampling : float
        Variance of the mean, without noise.
    of_sum, of_n, of_gaps, gap : float
        Standard deviations of the noise of their sum, of the number of rows and of that of gaps; what a gap counts as.
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
    """Mean of a subgroup, with what gaps counted as taken off.

    The number of rows is that of the moments, whose noise is independent of the other subgroup's. That of gaps may be
    negative: cut at 0 it would have half of its noise where there are no gaps, which the release does not tell.
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
    """Test whether two means are the same, `half` being what a unit of the scaled numbers stands for."""
    difference = second.mean - first.mean
    common = (first.n * first.mean + second.n * second.mean) / (first.n + second.n)
    z = difference / math.hypot(first.error(common), second.error(common))
    error = math.hypot(first.error(first.mean), second.error(second.mean))
    reach = float(stats.norm.isf(0.025)) * error
    ends = half * (difference - reach), half * (difference + reach)
    return PrivateTest(z, float(2.0 * stats.norm.sf(abs(z))), Estimate(half * difference, *ends, half * error))


def _refuse_several_rows(settings: dict[str, Any]) -> None:
    if settings.get("rows_per_group") is not None:
        raise ValueError(
            f"rows_per_group={show(settings['rows_per_group'])} in a test, which takes rows as independent, and those "
            "of a group are not: use rows_per_group=None."
        )


def _of_independence(function: str, columns: list[Any], kinds: list[Any], settings: dict[str, Any]) -> PrivateTest:
    _refuse_several_rows(settings)
    asked = {"shares": single_statistics.OF_TABLE, "crosstabs": [("x", "y")]}
    found = single_statistics.described(function, columns, kinds, settings, **asked)
    return independence_test(found._table("x", "y"))._replace(estimand=found._estimand)


def independence_test(table: NoisyTable, n_draws: int = 2_000) -> PrivateTest:
    """Test a table that was released; this costs nothing more. Its draws have a seed, as they are public."""
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
