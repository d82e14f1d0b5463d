"""Bounds of columns, estimated privately."""

from __future__ import annotations

from typing import Any, Self

from skdp._checks.parameters import without_removed
from skdp.base.estimator import BudgetedEstimator
from skdp.base.fit import Fit, begin
from skdp.mechanisms.bounded_sum import column_sensitivity
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.preprocessing.cell_tree import OCTAVES, bounds_of_mass, occupied_octaves
from skdp.preprocessing.histogram_query import NOWHERE, CountedColumns, released
from skdp.preprocessing.raw_columns import ColumnsRead, read_columns


class ColumnBounds(BudgetedEstimator):
    """Estimator behind `dp_bounds`."""

    _public_name = "dp_bounds"

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Estimate the bounds."""
        fit = begin(self, X, groups)
        fit.plan()
        rows = fit.read_rows(read_columns)
        fit.charge()
        return fit.publish(bounds_=fit.learn(_release_bounds, fit, rows))


def _release_bounds(fit: Fit, rows: ColumnsRead) -> list[tuple[float, float]]:
    mechanism = GaussianMechanism(fit.noise_multiplier, column_sensitivity(rows.shape[1], fit.model.adjacency))
    exact = CountedColumns.of(rows.columns, units=fit.units).counts([OCTAVES] * len(rows.columns))
    noisy = released(mechanism, exact, fit.spawn("columns"))
    found = [occupied_octaves(counts, mechanism.standard_deviation) for counts in noisy]
    return [NOWHERE if cells is None else bounds_of_mass(cells) for cells in found]


@without_removed
def dp_bounds(
    X: Any,
    *,
    groups: Any = None,
    epsilon: Any = 1.0,
    delta: float | str = "auto",
    noise_multiplier: float | None = None,
    adjacency: Any = None,
    accountant: Any = None,
    random_state: Any = None,
) -> list[tuple[float, float]]:
    """Estimate the bounds of columns privately.

    Nearly all numbers of a column lie within its bounds. They are computed from one noisy histogram over signed powers
    of two, so each bound is zero or a power of two.

    Parameters
    ----------
    X : array-like or frame of shape (n_samples, n_features)
        Private rows. Missing values are ignored.
    groups : array-like of shape (n_samples,), str or None, default=None
        Private group identifier of each row, such as a person or household, or the name of a column of `X`, which is
        then not used as a feature. With `groups`, the guarantee holds for all rows of one group together, otherwise for
        one row.
    epsilon : float, Risk or None, default=1.0
        Privacy budget of one ``fit``, to which the noise is calibrated. A number, or a bound on the risk of membership
        inference such as ``skdp.Risk(advantage=0.1)`` (``docs/membership_inference.md``). Must be None if
        `noise_multiplier` is given.
    delta : float or "auto", default="auto"
        The delta of the (epsilon, delta) guarantee; it must be well below 1/n, where n is the public number of rows.
        "auto" uses the delta of the accountant if it has one. Otherwise it is 1e-5 for at most 10,000 rows and 1/(10n),
        rounded down to a power of ten, for more.
    noise_multiplier : float or None, default=None
        Standard deviation of the noise of all releases together, divided by their sensitivity. If None, it is
        calibrated to `epsilon`.
    adjacency : {"zero_out", "replace_one"}, AddRemove or None, default=None
        Neighboring relation: how two neighboring tables differ in one row, or in all rows of one group:

        - "zero_out": it is replaced by a zeroed-out record, which adds nothing to any sum. The number of rows is
          public.
        - "replace_one": it is replaced by another one. The number of rows is public.
        - ``skdp.AddRemove(n_public=10_000)``: it is added or removed. The number of rows is private, and every rule
          uses `n_public`, a public number near it.

        None uses the relation of `accountant`, otherwise "zero_out".
    accountant : PrivacyAccountant, str, path-like or None, default=None
        Accountant that records the privacy cost before anything is released, and rejects a release that exceeds its
        budget. A path refers to an existing budget file (see ``python -m skdp.accounting create``).
    random_state : int, RandomState or Generator instance or None, default=None
        Source of the noise. None draws a fresh secret key from the operating system. Any other value makes the fit
        reproducible and issues a `PrivacyLeakWarning`.

    Returns
    -------
    bounds : list of (float, float)
        Lower and upper bound of each column, with lower < upper; (-1, 1) if no count exceeds the noise.

    Raises
    ------
    ValueError
        A parameter or the table is invalid. No budget is consumed.
    BudgetExceededError
        The release exceeds the budget of the accountant. No budget is consumed.

    See Also
    --------
    DPQuantileBinner : Bins of equal mass, without known bounds.

    Notes
    -----
    **Guarantees.** The result is (epsilon, delta)-differentially private for one row, if `random_state` is None. A row
    adds 1 to one count of each of d columns, or nothing for a missing value. The sensitivity is sqrt(d), and sqrt(d /
    2), half of the largest change, under ``replace_one``. The noise is Gaussian; all else is post-processing. The
    accountant is charged before the noise is drawn. With `groups`, the guarantee holds for all rows of one group
    together: their contribution is clipped to that of one row.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import dp_bounds
    >>> ages = np.random.default_rng(0).integers(18, 90, (10_000, 1))
    >>> ((low, high),) = dp_bounds(ages, epsilon=1.0)
    >>> print(low, high)
    16.0 128.0
    """
    finder = ColumnBounds(
        epsilon=epsilon, delta=delta, noise_multiplier=noise_multiplier, adjacency=adjacency, accountant=accountant,
        random_state=random_state,
    )  # fmt: skip
    return finder.fit(X, groups=groups).bounds_
