"""Single statistics: a description of one or two columns, with the whole budget for one statistic."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from skdp._checks.numbers import values_of
from skdp._checks.parameters import read_real, show
from skdp.base.estimates import Estimate
from skdp.base.fit import account_of, recording_rejections
from skdp.statistics.column_estimates import Intervals
from skdp.statistics.describer import MOST_BINS, TableDescriber
from skdp.statistics.description import PrivateDescription
from skdp.statistics.table_release import Shares

_X, _Y = "x", "y"

OF_CELLS = Shares.of(1.0, 0.0, 0.0)
OF_MOMENTS = Shares.of(0.1, 0.9, 0.0)
OF_TABLE = Shares.of(0.1, 0.0, 0.9)

_INTERVALS = Intervals.of(0.95, False)


def private_count(x: Any, **settings: Any) -> Estimate:
    """Release a noisy count of true values.

    Parameters
    ----------
    x : array-like of shape (n_samples,)
        Private truth values. Missing values and other types are not counted.
    **settings : dict of str to object
        `epsilon`, `delta`, `noise`, `groups`, `adjacency`, `accountant` and other parameters of `skdp.describe`. With
        `groups`, a group counts as the fraction of its rows that are true.

    Returns
    -------
    figure : Estimate
        Value, 95% interval that accounts for the noise, and standard error.

    Raises
    ------
    ValueError
        A parameter or the input is invalid. No budget was consumed.
    BudgetExceededError
        The budget of the accountant does not permit the release. No budget was consumed.
    """
    found = described("private_count", [x], ["flag"], settings, shares=OF_CELLS)
    return found._stated(found._of(_X).counts_of_cells(_INTERVALS)[1])


def private_mean(x: Any, *, bounds: Any = None, **settings: Any) -> Estimate:
    """Release a noisy mean.

    Parameters
    ----------
    x : array-like of shape (n_samples,)
        Private numbers. Missing values are ignored.
    bounds : (float, float) or None, default=None
        Public bounds, to which numbers are clipped. If None, they are privately estimated, and the estimate describes
        values clipped to them.
    **settings : dict of str to object
        `epsilon`, `delta`, `groups`, `adjacency`, `accountant` and other parameters of `skdp.describe`. With `groups`,
        a group has the weight of one row, or of `rows_per_group` rows.

    Returns
    -------
    figure : Estimate
        Value, 95% interval that accounts for the noise, and standard error.

    Raises
    ------
    ValueError
        A parameter or the input is invalid. No budget was consumed.
    BudgetExceededError
        The budget of the accountant does not permit the release. No budget was consumed.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.statistics import private_mean
    >>> ages = np.random.default_rng(0).integers(18, 90, 10_000)
    >>> mean = private_mean(ages, bounds=(18, 90), epsilon=1.0)
    >>> round(mean.value, -1)
    50.0
    """
    return _of_moments("private_mean", [x], [bounds], settings).estimates(_X)["mean"]


def private_sum(x: Any, *, bounds: Any = None, **settings: Any) -> Estimate:
    """Release a noisy sum.

    Parameters
    ----------
    x : array-like of shape (n_samples,)
        Private numbers. Missing values are ignored.
    bounds : (float, float) or None, default=None
        Public bounds, to which numbers are clipped. If None, they are privately estimated, and the estimate describes
        values clipped to them.
    **settings : dict of str to object
        `epsilon`, `delta`, `groups`, `adjacency`, `accountant` and other parameters of `skdp.describe`. With `groups`,
        a group contributes the mean of its rows.

    Returns
    -------
    figure : Estimate
        Value, 95% interval that accounts for the noise, and standard error.

    Raises
    ------
    ValueError
        A parameter or the input is invalid. No budget was consumed.
    BudgetExceededError
        The budget of the accountant does not permit the release. No budget was consumed.
    """
    found = _of_moments("private_sum", [x], [bounds], settings).estimates(_X)
    mean, count = found["mean"], found["count"]
    error = math.hypot(count.value * mean.standard_error, mean.value * count.standard_error)
    return _INTERVALS.around(count.value * mean.value, error).with_notes(**vars(mean))


def private_quantile(x: Any, q: Any = 0.5, *, bounds: Any = None, **settings: Any) -> Any:
    """Release noisy quantiles.

    Parameters
    ----------
    x : array-like of shape (n_samples,)
        Private numbers. Missing values are ignored.
    q : float or list of float, default=0.5
        Orders of the quantiles, between 0 and 1. Several have the privacy cost of one.
    bounds : (float, float) or None, default=None
        Public bounds, to which numbers are clipped. If None, they are privately estimated, and the estimate describes
        values clipped to them.
    **settings : dict of str to object
        `epsilon`, `delta`, `groups`, `adjacency`, `accountant` and other parameters of `skdp.describe`. With `groups`,
        a group has the weight of one row, or of `rows_per_group` rows.

    Returns
    -------
    figures : Estimate or list of Estimate
        One for each of `q`, monotone in `q`.

    Raises
    ------
    ValueError
        A parameter or the input is invalid. No budget was consumed.
    BudgetExceededError
        The budget of the accountant does not permit the release. No budget was consumed.
    """
    several = isinstance(q, list | tuple | np.ndarray)
    asked = list(q) if several else [q]
    kinds = [kind_of_number(bounds)]
    found = described("private_quantile", [x], kinds, settings, shares=OF_CELLS, quantiles=asked)
    figures = [found._stated(found._of(_X).quantile(float(each), _INTERVALS)) for each in asked]
    return figures if several else figures[0]


def private_histogram(
    x: Any, *, bounds: Any = None, categories: Any = None, n_bins: int = MOST_BINS, **settings: Any
) -> Any:
    """Release a noisy histogram of numbers or categories.

    Parameters
    ----------
    x : array-like of shape (n_samples,)
        Private numbers or categories.
    bounds : (float, float) or None, default=None
        Public bounds, to which numbers are clipped. If None, they are privately estimated.
    categories : list or None, default=None
        Public categories; all others are "(other)". If neither `categories` nor `bounds` is set, the type of `x`
        determines which of them is privately estimated.
    n_bins : int, default=64
        Number of bins; integers have one bin per value if there are fewer than twice as many values.
    **settings : dict of str to object
        `epsilon`, `delta`, `noise`, `groups`, `adjacency`, `accountant` and other parameters of `skdp.describe`. With
        `groups`, a group has the weight of one row, or of `rows_per_group` rows.

    Returns
    -------
    frame : pandas.DataFrame
        One row for each bin or category, with ``count``, ``low`` and ``high``; the last row is for missing values. The
        counts sum to the number of rows.

    Raises
    ------
    ValueError
        A parameter or the input is invalid. No budget was consumed.
    BudgetExceededError
        The budget of the accountant does not permit the release. No budget was consumed.
    """
    if bounds is not None and categories is not None:
        raise ValueError(f"`bounds` must be None with `categories`, got {show(bounds)}. Bounds are for numbers only.")
    given = kind_of_words(categories) if categories is not None else None if bounds is None else kind_of_number(bounds)
    return described("private_histogram", [x], [given], settings, shares=OF_CELLS, n_bins=n_bins).histogram(_X)


def private_top_k(x: Any, k: int = 5, *, categories: Any = None, **settings: Any) -> Any:
    """Release the k most frequent categories and their noisy counts.

    Parameters
    ----------
    x : array-like of shape (n_samples,)
        Private categories.
    k : int, default=5
        Number of categories.
    categories : list or None, default=None
        Public categories; all others are "(other)". If None, they are privately estimated.
    **settings : dict of str to object
        `epsilon`, `delta`, `noise`, `groups`, `adjacency`, `accountant` and other parameters of `skdp.describe`. With
        `groups`, a group has the weight of one row, or of `rows_per_group` rows.

    Returns
    -------
    frame : pandas.DataFrame
        In descending order of ``count``, with ``low`` and ``high``, which hold for all categories jointly.

    Raises
    ------
    ValueError
        A parameter or the input is invalid. No budget was consumed.
    BudgetExceededError
        The budget of the accountant does not permit the release. No budget was consumed.
    """
    return described("private_top_k", [x], [kind_of_words(categories)], settings, shares=OF_CELLS).top(_X, k)


def private_correlation(x: Any, y: Any, *, bounds: Any = None, **settings: Any) -> Estimate:
    """Release the noisy correlation of two numeric columns; missing values are replaced by the mean.

    Parameters
    ----------
    x, y : array-like of shape (n_samples,)
        Private numbers.
    bounds : list of two (float, float) or None, default=None
        Public bounds of `x` and of `y`, to which numbers are clipped. If None, they are privately estimated.
    **settings : dict of str to object
        `epsilon`, `delta`, `groups`, `adjacency`, `accountant` and other parameters of `skdp.describe`. With `groups`,
        a group has the weight of one row, or of `rows_per_group` rows.

    Returns
    -------
    figure : Estimate
        Value, 95% interval that accounts for the noise, and standard error.

    Raises
    ------
    ValueError
        A parameter or the input is invalid. No budget was consumed.
    BudgetExceededError
        The budget of the accountant does not permit the release. No budget was consumed.
    """
    pairs = [None, None] if bounds is None else bounds
    if not isinstance(pairs, list | tuple) or len(pairs) != 2 or any(read_real(each) is not None for each in pairs):
        raise ValueError(f"`bounds` must be two pairs of numbers, for x and for y, or None, got {show(bounds)}.")
    found = _of_moments("private_correlation", [x, y], list(pairs), settings, correlation=True)
    return found._stated(found._pair(_X, _Y, _INTERVALS))


def private_crosstab(x: Any, y: Any, *, categories: Any = None, **settings: Any) -> Any:
    """Release a noisy contingency table of two categorical columns.

    Parameters
    ----------
    x, y : array-like of shape (n_samples,)
        Private categories.
    categories : list of two lists or None, default=None
        Public categories of `x` and of `y`; all others are "(other)". If None, they are privately estimated.
    **settings : dict of str to object
        `epsilon`, `delta`, `noise`, `groups`, `adjacency`, `accountant` and other parameters of `skdp.describe`. With
        `groups`, a group has the weight of one row, or of `rows_per_group` rows.

    Returns
    -------
    frame : pandas.DataFrame
        Counts, which sum to the number of rows. The last row and column are missing values. The noise of a cell before
        projection has the standard deviation ``frame.attrs["noise"]``.

    Raises
    ------
    ValueError
        A parameter or the input is invalid. No budget was consumed.
    BudgetExceededError
        The budget of the accountant does not permit the release. No budget was consumed.
    """
    kinds = kinds_of_two(categories)
    found = described("private_crosstab", [x, y], kinds, settings, shares=OF_TABLE, crosstabs=[(_X, _Y)])
    return found.crosstab(_X, _Y)


def kind_of_number(bounds: Any) -> Any:
    """Entry of a schema for a numeric column."""
    return "number" if bounds is None else {"kind": "number", "bounds": bounds}


def kind_of_words(categories: Any) -> Any:
    """Entry of a schema for a categorical column."""
    return "category" if categories is None else {"kind": "category", "categories": categories}


def kinds_of_two(categories: Any) -> list[Any]:
    """Entries of a schema for two categorical columns."""
    pairs = [None, None] if categories is None else categories
    if not isinstance(pairs, list | tuple) or len(pairs) != 2:
        raise ValueError("`categories` must be a pair of lists, for x and for y, or None.")
    return [kind_of_words(each) for each in pairs]


def _of_moments(
    function: str, columns: list[Any], bounds: list[Any], settings: dict[str, Any], correlation: bool = False
) -> PrivateDescription:
    kinds = [kind_of_number(each) for each in bounds]
    return described(function, columns, kinds, settings, shares=OF_MOMENTS, n_bins=1, correlation=correlation)


def described(
    function: str, columns: list[Any], kinds: list[Any], settings: dict[str, Any], **asked: Any
) -> PrivateDescription:
    """Describe one or two columns for the public `function`; the type of the column is used if its kind is None."""
    import pandas as pd

    if internal := settings.keys() & {"shares", *asked}:
        raise TypeError(f"{function} has no parameter {min(internal)!r}. Remove it.")
    others = dict(settings)
    private = {name: others.pop(name, None) for name in ("groups", "sample_weight")}
    schema = None if None in kinds else dict(zip((_X, _Y), kinds, strict=False))
    describer = TableDescriber(schema, **{"correlation": False, **asked, **others})
    describer._public_name, describer._notes_lost_cells = function, function != "private_survival"
    with recording_rejections(partial(account_of, describer)):
        given = _columns_of(columns)
    frame = pd.DataFrame(dict(zip((_X, _Y), given, strict=False)))
    return PrivateDescription.of(describer.fit(frame, **private))


def _columns_of(columns: list[Any]) -> list[np.ndarray]:
    """Return the columns as arrays of one dimension and equal length."""
    # A list becomes an array of objects, because its type would depend on its cells.
    given = [values_of(name, each) for name, each in zip((_X, _Y), columns, strict=False)]
    typed = [hasattr(each, "dtype") for each in columns]
    given = [each if is_typed else each.astype(object) for each, is_typed in zip(given, typed, strict=True)]
    if any(each.ndim != 1 for each in given) or len({len(each) for each in given}) > 1:
        shapes = " and ".join(str(each.shape) for each in given)
        raise ValueError(f"The input must be one-dimensional columns of equal length, got shape {shapes}.")
    return given
