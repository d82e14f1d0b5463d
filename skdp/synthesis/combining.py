"""Estimates on several synthetic tables as one, with an interval that holds what noise and sampling did to them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from skdp._checks.parameters import check_real


class CombinedEstimates(NamedTuple):
    """Estimates from synthetic tables, with intervals for what the private rows are drawn from.

    Parameters
    ----------
    estimate : ndarray
        Without the bias that fits to noisy tables have.
    std_err : ndarray
        Standard error, of sampling, noise and synthesis.
    low, high : ndarray
        Ends of the intervals.
    df : ndarray
        Degrees of freedom of `std_err`.
    """

    estimate: np.ndarray
    std_err: np.ndarray
    low: np.ndarray
    high: np.ndarray
    df: np.ndarray


def combine_estimates(estimates: ArrayLike, variances: ArrayLike, *, level: float = 0.95) -> CombinedEstimates:
    """Combine estimates on the tables of ``sample_sets``. This costs nothing.

    Parameters
    ----------
    estimates : array-like of shape (n_sets + 1,) or (n_sets + 1, k)
        Of each table, such as a mean or coefficients of a regression; that of the fitted model is the first, as
        ``sample_sets`` gives it.
    variances : array-like of the shape of `estimates`
        Squared standard errors of `estimates`, as if each table were of real rows.
    level : float, default=0.95
        Probability with which an interval holds.

    Returns
    -------
    combined : CombinedEstimates
        Arrays of shape () or (k,).

    Raises
    ------
    ValueError
        Shapes do not agree, there are fewer than three tables, or a variance is negative.

    See Also
    --------
    DPMarginalSynthesizer.sample_sets : The tables.

    Notes
    -----
    Let q be the first estimate and u its variance, m the number of the others, a and b their mean and variance, and v
    the mean of their own variances. Their models are as far from the fitted one as this is from the truth. So the
    estimate is 2 q - a, and its variance is (1 + 1/m) b - v + 4 u + c. Of these, (1 + 1/m) b - v is the variance of
    Raghunathan, Reiter & Rubin (2003) for fully synthetic tables, which may come out too small: it is held above v,
    which it exceeds where tables are no smaller than the private one. And c is the square of the bias a - q, less its
    own variance: the bias is not the same where estimates are other ones, so that its correction adds to their spread.
    The interval is of Student's t, with (m - 1) times the square of the variance over (1 + 1/m) b degrees of freedom.

    It is about what the model of the tables can hold. What pairs of columns do not tell, such as an effect that three
    columns have together, is not there, and values of numbers are uniform within their bins.

    References
    ----------
    Räisä, Jälkö, Kaski & Honkela (2023), "Noise-aware statistical inference with differentially private synthetic
    data", for tables of the posterior of noisy marginals, which the redrawn ones stand for.

    Raghunathan, Reiter & Rubin (2003), "Multiple imputation for statistical disclosure limitation".

    Examples
    --------
    >>> from skdp.synthesis import combine_estimates
    >>> found = combine_estimates([5.0, 5.1, 4.8, 5.3, 5.0], [0.001, 0.01, 0.01, 0.01, 0.01])
    >>> bool(found.low < found.estimate < found.high), round(float(found.estimate), 2)
    (True, 4.95)
    """
    level = check_real("level", level, above=0, below=1, remedy="choose a probability, such as 0.95")
    given, own = _read("estimates", estimates), _read("variances", variances)
    if given.shape != own.shape or given.ndim not in (1, 2) or len(given) < 3:
        raise ValueError(
            f"estimates of shape {given.shape} and variances of shape {own.shape}: give one of each for each table of "
            "sample_sets, 3 tables at least."
        )
    if not (own >= 0.0).all():
        raise ValueError("variances has negative ones: give squared standard errors.")
    others, m = given[1:], len(given) - 1
    between, within = (1.0 + 1.0 / m) * others.var(axis=0, ddof=1), own[1:].mean(axis=0)
    bias = np.maximum((others.mean(axis=0) - given[0]) ** 2 - others.var(axis=0, ddof=1) / m - own[0], 0.0)
    variance = np.maximum(between - within, within) + 4.0 * own[0] + bias
    with np.errstate(divide="ignore", invalid="ignore"):
        df = np.where(between > 0.0, (m - 1) * (variance / between) ** 2, np.inf)
    estimate, error = 2.0 * given[0] - others.mean(axis=0), np.sqrt(variance)
    reach = stats.t.isf((1.0 - level) / 2.0, df) * error
    return CombinedEstimates(estimate, error, estimate - reach, estimate + reach, df)


def _read(name: str, given: ArrayLike) -> np.ndarray:
    try:
        found = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        found = np.full(0, np.nan)
    if not np.isfinite(found).all() or not found.size:
        raise ValueError(f"{name} is no array of finite numbers: give one for each table of sample_sets.")
    return found
