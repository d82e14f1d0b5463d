"""Bounds of epsilon from scores of many fits with a record and without it, by a threshold."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import stats

from skdp._checks.parameters import check_real
from skdp._typing import Doubles
from skdp.accounting import GaussianDpEvent, get_epsilon
from skdp.audit.checks import LEVEL

_LEAST_RUNS = 40
_GAUSSIAN = "the trade-off is Gaussian"


def threshold_epsilon(
    scores_without: Any, scores_with: Any, delta: float, *, confidence: float = 0.95
) -> dict[str, float]:
    """Lower bounds of epsilon from scores of fits without a record and of fits with it.

    Parameters
    ----------
    scores_without, scores_with : array-like of shape (n_runs,)
        Any function of what was released, in the order of the fits. Higher ones speak for the record.
    delta : float
        In (0, 1).
    confidence : float, default=0.95
        Probability at which each bound holds.

    Returns
    -------
    dict of str to float
        By what is assumed: nothing, or that the trade-off is Gaussian.

    Notes
    -----
    The first half of the fits chooses a threshold, the other half is judged by it: Clopper & Pearson (1934) bound its
    false positives and false negatives. No (epsilon, delta)-private fit has 1 - fn > exp(epsilon) fp + delta, nor
    1 - fp > exp(epsilon) fn + delta (Kairouz, Oh & Viswanath 2015); a Gaussian one of shift mu has Phi^-1(1 - fp) -
    Phi^-1(fn) <= mu (Dong, Roth & Su 2022).

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.audit import threshold_epsilon
    >>> rng = np.random.default_rng(0)
    >>> found = threshold_epsilon(rng.normal(0, 1, 5000), rng.normal(2, 1, 5000), 1e-5)
    >>> {text: round(epsilon, 1) for text, epsilon in found.items()}
    {'nothing is assumed': 4.0, 'the trade-off is Gaussian': 9.1}
    """
    delta = check_real("delta", delta, above=0, below=1, remedy="give that of the claim")
    check_real("confidence", confidence, above=0, below=1, remedy="choose a probability such as 0.95")
    halves = [np.array_split(np.asarray(each, np.float64).ravel(), 2) for each in (scores_without, scores_with)]
    if min(len(half) for pair in halves for half in pair) < _LEAST_RUNS // 4 or any(
        np.isnan(p).any() for h in halves for p in h
    ):
        raise ValueError(f"scores of {_LEAST_RUNS // 2} fits of each kind at least, and no NaN, are needed: give more.")
    level = (1.0 - confidence) / 2.0  # one for each of the two rates
    (tried_without, judged_without), (tried_with, judged_with) = halves
    places = np.unique(np.quantile(np.concatenate([tried_without, tried_with]), np.linspace(0.01, 0.99, 199)))
    at = max(places, key=lambda place: _any_law(*_rates(tried_without, tried_with, place, level)[2:], delta))
    any_law = _any_law(*_rates(judged_without, judged_with, at, level)[2:], delta)
    at = max(places, key=lambda place: _shift(*_rates(tried_without, tried_with, place, level)[2:]))
    shift = _shift(*_rates(judged_without, judged_with, at, level)[2:])
    gaussian = get_epsilon(GaussianDpEvent(1.0 / shift), delta) if shift > 1e-6 else 0.0
    return {"nothing is assumed": any_law, _GAUSSIAN: gaussian}


def _rates(without: Doubles, with_: Doubles, place: float, level: float) -> tuple[float, float, float, float]:
    """Rates of false positives and of false negatives at a threshold, and the largest that are likely."""
    counts = [(int((without > place).sum()), len(without)), (int((with_ <= place).sum()), len(with_))]
    upper = [1.0 if k == n else float(stats.beta.isf(level, k + 1, n - k)) for k, n in counts]
    return counts[0][0] / counts[0][1], counts[1][0] / counts[1][1], upper[0], upper[1]


def _any_law(false_positives: float, false_negatives: float, delta: float) -> float:
    """Epsilon that these rates exclude, of any law."""
    pairs = (false_positives, false_negatives), (false_negatives, false_positives)
    return max(0.0, *(math.log((1 - other - delta) / one) for one, other in pairs if 1 - other - delta > 0))


def _shift(false_positives: float, false_negatives: float) -> float:
    """Shift of the Gaussian law that these rates exclude."""
    return float(stats.norm.isf(false_positives) - stats.norm.ppf(false_negatives))


def told_apart(without: Doubles, with_: Doubles, delta: float, confidence: float) -> dict[str, Any]:
    """Bounds, the bound at a confidence of 1 - 1e-6, and points, as `Attack` has them."""
    places = np.quantile(np.concatenate([without, with_]), np.linspace(0.05, 0.95, 19))
    return {
        "bounds": threshold_epsilon(without, with_, delta, confidence=confidence),
        "sure_epsilon": threshold_epsilon(without, with_, delta, confidence=1.0 - LEVEL)["nothing is assumed"],
        "points": tuple(_rates(without, with_, place, (1.0 - confidence) / 2.0) for place in places),
    }


def check_pairs(n_pairs: int, least: int) -> None:
    """Refuse fits that are too few for any bound."""
    if n_pairs < least:
        raise ValueError(f"max_seconds sufficed for {n_pairs} pairs of fits, and a bound takes {least}: give more.")


__all__ = ["check_pairs", "threshold_epsilon", "told_apart"]
