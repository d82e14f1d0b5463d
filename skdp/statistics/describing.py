"""The description of a table, by one release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skdp.statistics.describer import MOST_BINS, TableDescriber
from skdp.statistics.description import PrivateDescription


def describe(
    table: Any,
    *,
    schema: Any = None,
    epsilon: float | None = 1.0,
    delta: float | str = "auto",
    by: str | None = None,
    groups: Any = None,
    sample_weight: Any = None,
    weight_bound: float | None = None,
    rows_per_group: int | None = None,
    quantiles: Any = (0.05, 0.25, 0.5, 0.75, 0.95),
    correlation: bool = True,
    crosstabs: Any = (),
    n_bins: int = MOST_BINS,
    noise: str = "rounded",
    noise_multiplier: float | None = None,
    risk: Mapping[str, float] | None = None,
    adjacency: str = "zero_out",
    accounting: str = "pld",
    accountant: Any = None,
    n_samples_public: int | None = None,
    n_groups_public: int | None = None,
    random_state: Any = None,
) -> PrivateDescription:
    """Describe a private table: counts, gaps, means, quantiles, histograms, what goes with what.

    All of it comes from one release, and costs what one release costs. Counts of the cells of every column, the second
    moments of all numbers and, for correlations, tables of pairs share its noise by a public rule. What is asked of
    the description later is free.

    Parameters
    ----------
    table : array-like or frame of shape (n_samples, n_features)
        Private rows.
    schema : TableSchema, mapping or None, default=None
        What is public of each column; a mapping is what `skdp.preprocessing.TableSchema` takes. Numbers beyond their
        bounds are moved to them, and categories that are not listed are "(other)". Bounds and categories that are left
        out are bought, for a tenth of the budget's mu^2. If None, only names and types of the columns are public.
        Estimates are then of values clipped to privately estimated bounds, and are marked as such.
    epsilon : float or None, default=1.0
        Privacy budget of the description. The noise is calibrated to it. Must be None if `noise_multiplier` is given.
    delta : float or "auto", default="auto"
        Probability with which the guarantee may fail. Choose it well below 1/n. "auto" is the delta of the accountant
        if it has one, else 1e-5 for up to 10,000 rows and 1/(10 n), rounded down to a power of ten, for more, n being
        the public number of rows.
    by : str or None, default=None
        Column of categories, listed in the schema, for each of which the table is described too. The list is public,
        and who belongs to which is private; what is not listed, and gaps, are one more subgroup, "(other)". Subgroups
        cost nothing: they share the release.
    groups : array-like of shape (n_samples,), str or None, default=None
        Private label of the unit of each row, such as a person or a household, or the name of a column of `table`,
        which is not described then. The guarantee is then for all rows of one label together, else for one row. A group
        has the weight of one row, divided evenly among its rows: figures are those of a row drawn from a group drawn at
        random, and counts are numbers of groups.
    sample_weight : array-like of shape (n_samples,), str or None, default=None
        Private weights of the rows, such as those of a survey, or the name of a column of `table`, which is not
        described then. Figures are those of rows that count as much as their
        weights say, and counts are sums of weights, in units of the bound. The sum of all weights is private, and is
        estimated from the counts. What the schema leaves out is bought without weights.
    weight_bound : float or None, default=None
        Public number by which weights are divided, and at which they are cut. None is 1.
    rows_per_group : int or None, default=None
        With `groups`, public number of rows k that a group counts as at most: each row of a smaller group has the
        weight of one row, and those of a larger one share the weight of k. Estimates are of rows, counts are numbers of
        rows, and the noise is k times larger. The weight of all rows is private, and is estimated from the counts.
        Choose a k that few groups exceed. None gives each group the weight of one row; the number of groups is public.
    quantiles : sequence of float, default=(0.05, 0.25, 0.5, 0.75, 0.95)
        Shares of the numbers that lie below, between 0 and 1.
    correlation : bool, default=True
        Whether to measure what goes with what. Without, all other figures have less noise.
    crosstabs : sequence of (str, str), default=()
        Pairs of columns whose counts are wanted with all levels; a number has 8 bins there.
    n_bins : int, default=64
        Cells of a number or a date. The bounds have a cell each, for values that lie at them or beyond. Whole numbers,
        if the type of the column says so, have one cell each where there are less than twice as many.
    noise : {"rounded", "discrete"}, default="rounded"
        Kind of the noise: normal noise, rounded to a public grid as if it had infinitely many bits; or discrete
        Gaussian noise (Canonne, Kamath & Steinke 2020), drawn by whole numbers alone. The latter is for counts in
        public cells: of categories that the schema lists, with ``correlation=False`` and without `by` and `groups`.
        Under ``replace_one`` it is larger, by a factor of up to sqrt(2).
    noise_multiplier : float or None, default=None
        Standard deviation of the noise of one release, divided by its sensitivity. If None, it is calibrated to
        `epsilon`.
    risk : dict or None, default=None
        Budget stated as what an attacker may gain, instead of `epsilon`: ``{"advantage": a}``, or ``{"tpr": t, "fpr":
        f}``. See ``docs/risk.md``.
    adjacency : {"zero_out", "add_remove", "replace_one"}, default="zero_out"
        How neighbouring tables differ:

        - "zero_out": one row is replaced by a null row, which adds nothing to any sum. The number of rows is public.
        - "add_remove": one row is added or removed. The number of rows is private, and released with the counts.
        - "replace_one": one row is replaced by another. The number of rows is public.
    accounting : {"pld", "rdp", "moments", "optimal_exact", "optimal", "strong", "naive"}, default="pld"
        Accounting method that prices the description. See ``docs/accounting.md``.
    accountant : PrivacyAccountant, str, path-like or None, default=None
        Ledger to which the description is charged before anything is learned from the rows. A path names the file of an
        existing ledger.
    n_samples_public : int or None, default=None
        Public number of rows, used instead of n in every rule. Required if ``adjacency="add_remove"``. The number of
        rows is then estimated from the counts.
    n_groups_public : int or None, default=None
        The same for the number of groups, where `groups` are given.
    random_state : int, RandomState or Generator instance or None, default=None
        Source of the noise. None draws a fresh secret key from the operating system. Any other value makes the
        description reproducible and issues a `PrivacyLeakWarning`.

    Returns
    -------
    description : PrivateDescription
        Figures with intervals for the noise, as frames and as HTML.

    Raises
    ------
    ValueError
        A parameter, the schema or the table is invalid. Nothing was charged.
    BudgetExceededError
        The budget of the accountant does not admit the description. Nothing was charged.

    Warns
    -----
    QualityWarning
        Columns have privately estimated bounds, with an upper limit of the rows beyond, or are not estimated.

    See Also
    --------
    skdp.preprocessing.TableSchema : What is public of the columns of a table.
    skdp.statistics.private_mean : One figure alone.

    Notes
    -----
    **Guarantees.** The description is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if
    `random_state` is None. With `groups` it is so for all rows of one label together: their weights add up to 1, or to
    `rows_per_group`, at most. With `sample_weight` a row weighs 1 at most, and what all weigh together is in no figure
    but through noise.
    All of it is a function of noisy releases, whose sensitivities are proved in the notes of
    `skdp.statistics.table_release.TableRelease` and `skdp.preprocessing.histograms.purchase.Purchase`, and of what is
    public: parameters, names and types of the columns, and the number of rows but under ``add_remove``. The accountant
    is charged before the rows are counted. Refusals are one line without a cell and are not charged; no number, text or
    date is refused or warned of. A column with a cell of another kind, such as a list or a complex number, is refused.

    **Figures.** Counts of a column are projected to be nonnegative and to add up to the number of rows. Quantiles are
    read from them. Means and standard deviations are the better of what counts and moments say, each weighted by the
    precision that the noise leaves it; the largest bias that bins may cause is added to their intervals. Correlations
    come from the moments, and the matrix is made positive semidefinite. The noise of squares is subtracted from
    Cramér's V and from the correlation ratio.

    **Intervals** follow from the public size of the noise, and hold before figures are projected. Those of quantiles,
    and of counts near zero, hold more often than they say. Of associations they are for the levels as they were
    merged. Where bounds are privately estimated, means, standard deviations and quantiles, with their intervals, are
    of the values clipped to them (``clipped_low`` and ``clipped_high`` of an `Estimate`), since values beyond may have
    any size. A column in which no values are distinguishable from the noise has NaN.

    References
    ----------
    Canonne, Kamath & Steinke (2020), "The discrete Gaussian for differential privacy".

    Dong, Roth & Su (2022), "Gaussian differential privacy", for the composition of Gaussian releases.

    Hay, Rastogi, Miklau & Suciu (2010), "Boosting the accuracy of differentially private histograms through
    consistency".

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import skdp
    >>> rng = np.random.default_rng(0)
    >>> people = pd.DataFrame({"age": rng.integers(18, 90, 5000), "job": rng.choice(["clerk", "nurse"], 5000)})
    >>> found = skdp.describe(people, schema={"age": (18, 90), "job": ["clerk", "nurse"]}, epsilon=1.0)
    >>> mean = found.estimates("age")["mean"]
    >>> bool(mean.low < mean.value < mean.high), bool(abs(mean.value - people["age"].mean()) < 2)
    (True, True)
    >>> found.to_frame()[["count", "mean", "50%"]].shape
    (2, 3)
    """
    describer = TableDescriber(
        schema,
        by=by,
        correlation=correlation,
        crosstabs=crosstabs,
        quantiles=quantiles,
        n_bins=n_bins,
        weight_bound=weight_bound,
        rows_per_group=rows_per_group,
        noise=noise,
        epsilon=epsilon,
        delta=delta,
        noise_multiplier=noise_multiplier,
        risk=risk,
        adjacency=adjacency,
        accounting=accounting,
        accountant=accountant,
        n_samples_public=n_samples_public,
        n_groups_public=n_groups_public,
        random_state=random_state,
    )
    return PrivateDescription.of(describer.fit(table, groups=groups, sample_weight=sample_weight))
