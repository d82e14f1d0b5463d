"""Tests of recorded noise and lots against the declared distributions, and audit findings."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize, special, stats

from skdp._checks.parameters import check_count, check_real

LEVEL = 1e-6
"""Rate of false alarms of each test."""

_LEAST_LENGTH, _MOST_RELEASES = 8, 512  # of directions that are compared; of shorter ones the angle tells little
_RANGE = -14.0, 5.0  # of the logarithm of s, in its scale
_MIXERS = [np.uint64(each) for each in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93)]
"""Odd numbers that make one of several cells; two sets of cells are the same number once in 2**64."""


@dataclass(frozen=True)
class AuditFinding:
    """A violation that an audit found. False alarms occur at most once in a million audits.

    Parameters
    ----------
    kind : {"noise", "shift", "sampling", "charge", "post-processing", "bound"}
        Assumption of the privacy guarantee that is violated.
    message : str
        One-line description without private values.
    """

    kind: str
    message: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


def beyond(sure: float, claimed: float) -> list[AuditFinding]:
    """A finding where an epsilon that is sure at a confidence of 1 - 1e-6 is more than what is claimed."""
    text = f"Epsilon is at least {sure:.4g}, but {claimed:.4g} is claimed."
    return [AuditFinding("bound", text)] if sure > claimed * (1.0 + LEVEL) else []


# --- noise ---


def check_release_noise(
    noise: Sequence[Any], standard_deviation: float = 1.0, *, level: float = LEVEL
) -> list[AuditFinding]:
    """Test whether the noise of releases is independent Gaussian noise with a given standard deviation.

    Parameters
    ----------
    noise : sequence of array-like
        Noise of each release, that is, the noisy value minus the exact value. Arrays of any shape. It must be kept
        secret.
    standard_deviation : float, default=1.0
        Declared standard deviation of each coordinate, in the units of the noise.
    level : float, default=1e-6
        False alarm rate of each of the five tests.

    Returns
    -------
    list of AuditFinding
        Findings of kind "noise". Empty if nothing was found.

    Notes
    -----
    Five tests are made:

    - A chi-square test of the sum of squares, which is the most powerful test of the scale.
    - A test of the sum against its Gaussian distribution.
    - The Kolmogorov-Smirnov test of the distribution function.
    - A test whether four consecutive values occur twice, with a union bound.
    - A test of the angles between releases of equal length, with a union bound over all pairs. The squared cosine of p
      independent Gaussian coordinates follows Beta(1/2, (p - 1)/2) (Muirhead 1982, theorem 1.5.7).

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.audit import check_release_noise
    >>> rng = np.random.default_rng(0)
    >>> check_release_noise(rng.normal(scale=2.0, size=(100, 20)), 2.0)
    []
    >>> print(*check_release_noise(rng.normal(scale=1.0, size=(100, 20)), 2.0), sep="\\n")  # doctest: +ELLIPSIS
    noise: The standard deviation is ... times the declared value...
    """
    check_real("level", level, above=0, below=1, constraint="a number in (0, 1), such as 1e-6")
    scale = check_real(
        "standard_deviation",
        standard_deviation,
        above=0,
        constraint="a number above 0, the standard deviation of each coordinate",
    )
    parts = [np.ravel(np.asarray(each, np.float64)) / scale for each in noise]
    values = np.concatenate(parts) if parts else np.zeros(0)
    n, found = len(values), []
    if not n or not np.isfinite(values).all():
        raise ValueError(
            "`noise` must contain only finite numbers, and at least one. Pass the noise that was added to each release."
        )
    # Scale and law of the single numbers, then whether they depend on each other.
    low, high = scale_interval(values, level)
    if not low <= 1.0 <= high:
        found.append(f"The standard deviation is {low:.3g} to {high:.3g} times the declared value.")
    if 2.0 * stats.norm.sf(abs(values.sum()) / math.sqrt(n)) < level:
        found.append("The mean is not 0.")
    if stats.kstest(values, "norm").pvalue < level:
        found.append("The distribution is not Gaussian with the declared standard deviation.")
    if _are_repeated(values, level):
        found.append("The same noise values occur at two places.")
    if _are_aligned(parts, level):
        found.append("The noise of one release depends on that of another.")
    return [AuditFinding("noise", text) for text in found]


def scale_interval(values: np.ndarray, level: float = LEVEL) -> tuple[float, float]:
    """Interval for the standard deviation of independent normals of mean 0, missed at either end at level/2."""
    squares, n = float(values @ values), len(values)
    return math.sqrt(squares / stats.chi2.isf(level / 2, n)), math.sqrt(squares / stats.chi2.ppf(level / 2, n))


def _are_repeated(values: np.ndarray, level: float) -> bool:
    """Look for four numbers, one after the other, that stand in a second place as well, at whatever distance.

    Numbers are compared in cells of width w. The density of a normal is below 0.4, so four are in the cells of four
    others with a probability of (0.4 w)^4 at most, whether some of them are the same or not. There are n^2 / 2 pairs of
    places, and w is such that all of it is `level`.
    """
    n = len(values)
    width = (2.0 * level / n**2) ** 0.25 / 0.4
    if n < 2 * len(_MIXERS) or not np.abs(values).max() < width * 2.0**62:
        return False
    cells = np.floor(values / width).astype(np.int64).view(np.uint64)
    m = n - len(_MIXERS) + 1
    windows = sum(cells[k : k + m] * mixer for k, mixer in enumerate(_MIXERS))
    return len(np.unique(windows)) < m


def _are_aligned(parts: list[np.ndarray], level: float) -> bool:
    """Whether two releases of one length have directions that are closer than those of independent noise."""
    by_length: dict[int, list[np.ndarray]] = defaultdict(list)
    for part in parts:
        if len(part) >= _LEAST_LENGTH and len(by_length[len(part)]) < _MOST_RELEASES:
            by_length[len(part)].append(part)
    for length, same in by_length.items():
        if len(same) < 2:
            continue
        rows = np.stack(same)
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(float).tiny)
        cosines = np.abs((rows @ rows.T)[np.triu_indices(len(rows), 1)])
        tail = stats.beta.sf(min(cosines.max() ** 2, 1.0), 0.5, 0.5 * (length - 1))
        if tail * len(cosines) * len(by_length) < level:
            return True
    return False


# --- lots ---


def check_sampling(lots: Sequence[Any], n_rows: int, rate: float, *, level: float = LEVEL) -> list[AuditFinding]:
    """Test whether lots are Poisson samples: each row is in each lot independently, with the same probability.

    Parameters
    ----------
    lots : sequence of array-like of int
        Row numbers of each lot, starting at 0.
    n_rows : int
        Number of rows of the data.
    rate : float
        Declared probability that a row is in a lot, in (0, 1).
    level : float, default=1e-6
        Upper bound on the false alarm rate of all tests together.

    Returns
    -------
    list of AuditFinding
        Findings of kind "sampling". Empty if nothing was found.

    Notes
    -----
    The lots are a 0-1 matrix with one row per lot. Five statistics are tested: the number of ones (exact binomial
    test), the variance of the lot sizes, the variance of the number of lots per row, and how often adjacent entries of
    a row or of a column are both one. The last four use Chernoff bounds (1952), which also hold for few ones. The tests
    detect lots of a fixed size, epochs of shuffled rows, blocks of consecutive rows and lots that are used for several
    steps.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.audit import check_sampling
    >>> rng = np.random.default_rng(0)
    >>> check_sampling([np.flatnonzero(rng.random(500) < 0.1) for _ in range(200)], 500, 0.1)
    []
    >>> print(*check_sampling([rng.permutation(500)[:50] for _ in range(200)], 500, 0.1))
    sampling: The lot sizes vary less than those of independently sampled rows.
    """
    n_lots = len(lots)
    n = check_count("n_rows", n_rows, constraint="a positive integer, the number of rows of the data")
    check_real("level", level, above=0, below=1, constraint="a number in (0, 1), such as 1e-6")
    q = check_real("rate", rate, above=0, below=1, constraint="a number in (0, 1), the sampling probability of a row")
    rows = [np.sort(np.ravel(np.asarray(each)).astype(np.int64)) for each in lots]
    if not rows or any(len(each) and (each[0] < 0 or each[-1] >= n) for each in rows):
        raise ValueError(
            f"`lots` must contain row numbers from 0 to {n - 1}, with at least one lot. Pass the rows of each lot."
        )
    if any((np.diff(each) == 0).any() for each in rows):
        return [AuditFinding("sampling", "A row is in the same lot more than once.")]
    level, sizes, numbers = level / 5, np.array([len(each) for each in rows]), np.concatenate(rows)
    total, cells, found = len(numbers), n_lots * n, []
    if stats.binomtest(total, cells, q).pvalue < level:
        found.append(f"Rows are sampled at a rate of {total / cells:.4g}, but {q:.4g} is accounted for.")
    # Rows that are in lots together, or lots that share rows, make sizes and counts vary more.
    counts = np.bincount(numbers, minlength=n)
    found += _dispersion(sizes, n, q, level, "The lot sizes vary", "those of independently sampled rows")
    found += _dispersion(counts, n_lots, q, level, "The numbers of lots per row vary", "those of independent lots")
    # Neighbors in a lot, and of a row in the next lot.
    keys = np.concatenate([number * (n + 1) + each for number, each in enumerate(rows)])  # n + 1: no row has a next lot
    beside = int(np.isin(keys + 1, keys, assume_unique=True).sum())
    found += _pairs(beside, n, n_lots, q, level, "Neighboring rows share lots")
    again = int(np.isin(keys + n + 1, keys, assume_unique=True).sum())
    found += _pairs(again, n_lots, n, q, level, "Rows are in consecutive lots")
    return [AuditFinding("sampling", text) for text in found]


def _dispersion(counts: np.ndarray, trials: int, q: float, level: float, what: str, than: str) -> list[str]:
    """Test counts that are independent and Binomial(trials, q) by their sum of squared deviations.

    Counts that hardly ever occur are left out of the law of one, and their probability is taken off the level.
    """
    law, n, rest = stats.binom(trials, q), len(counts), 1e-3 * level  # for counts that are too rare to be looked at
    likely = np.arange(law.ppf(rest / (2 * n)), law.isf(rest / (2 * n)) + 1.0)
    masses, squares = law.logpmf(likely), (likely - trials * q) ** 2
    statistic, variance = float(((counts - trials * q) ** 2).sum()), trials * q * (1 - q)

    def log_mean(s: float) -> float:
        return n * float(special.logsumexp(masses + s * squares))

    side = _side(statistic, n * variance, 1.0 / variance, log_mean, level - rest)
    return [f"{what} {side} than {than}."] if side else []


def _pairs(count: int, length: int, n_lines: int, q: float, level: float, what: str) -> list[str]:
    """Test how many of the neighbors along lines of independent ones are both one.

    The mean of exp(s times their number in a line) is a product of matrices, one for each number and the next.
    """
    if length < 3:
        return []

    def log_mean(s: float) -> float:
        p, more = 1.0 - q, q * math.exp(s)
        root = math.sqrt((p - more) ** 2 + 4.0 * p * q)
        first, second = (p + more + root) / 2.0, (p + more - root) / 2.0
        part = (p + q * (p + more) - second) / root  # that of the larger eigenvalue
        tail = math.log(part + (1.0 - part) * (second / first) ** (length - 1))
        return n_lines * ((length - 1) * math.log(first) + tail)

    side = _side(count, n_lines * (length - 1) * q**2, 1.0, log_mean, level)
    return [f"{what} {side} often than independently sampled rows."] if side else []


def _side(statistic: float, mean: float, scale: float, log_mean: Callable[[float], float], level: float) -> str:
    """Return whether a statistic is "more" or "less" than its law of this mean admits at a level, or nothing.

    `log_mean` is the logarithm of the mean of exp(s times it), by which Chernoff bounds its tail for any s of the sign;
    `scale` is about that of s.
    """
    sign = 1.0 if statistic > mean else -1.0

    def exponent(log_s: float) -> float:
        s = sign * scale * math.exp(log_s)
        return log_mean(s) - s * statistic

    least = optimize.minimize_scalar(exponent, bounds=_RANGE, method="bounded").fun
    return ("more" if sign > 0 else "less") if 2.0 * math.exp(min(least, 0.0)) < level else ""
