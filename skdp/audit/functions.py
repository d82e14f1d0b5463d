"""`audit_functions`: fits of any library, told apart by what they publish."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from skdp._checks.leak_setting import report_leak
from skdp._checks.parameters import check_choice, check_count, check_real
from skdp._typing import Doubles
from skdp.accounting import ADJACENCIES, EpsilonDeltaDpEvent
from skdp.audit.checks import beyond
from skdp.audit.many_runs import check_pairs, told_apart
from skdp.audit.replay import LEAST_DELTA
from skdp.audit.result import AuditResult

_LEAST_PAIRS = 60  # a third of them teaches the score
_LARGEST = 1e300
_ASSUMED = "nothing is assumed"


def audit_functions(
    fit: Callable[..., Any],
    publish: Callable[[Any], Any],
    without: tuple[Any, ...],
    with_canary: tuple[Any, ...],
    *,
    epsilon: float,
    delta: float = 0.0,
    adjacency: str = "add_remove",
    confidence: float = 0.95,
    max_runs: int = 10_000,
    max_seconds: float = 60.0,
    random_state: int = 0,
) -> AuditResult:
    """Attack one record of what any function is fitted to, and set what was found beside a claim.

    The function is fitted to two neighbouring tables, in turns, and a classifier learns to tell which of them it was
    from what is published. Nothing of the inside is heard, so the fit may be of any library, or of another process.

    Parameters
    ----------
    fit : callable
        ``fit(*table)`` returns whatever `publish` takes. Its noise has to be fresh in each call.
    publish : callable
        ``publish(fitted)`` returns the numbers that are published, an array-like of any shape that is always the same.
        Where one number tells the most, such as the loss of the canary, it may return that alone.
    without, with_canary : tuple
        Arguments of `fit`, such as ``(X, y)``: two tables that differ in one record. They must be public or made up:
        they are read many times, and no charge pays for that. So a `PrivacyLeakWarning` is issued, an error under
        ``on_leak="raise"``.
    epsilon : float
        Claimed for one fit, in nats.
    delta : float, default=0.0
        Claimed, in [0, 1).
    adjacency : {"add_remove", "zero_out", "replace_one"}, default="add_remove"
        What the claim means by neighbours, and the two tables differ in.
    confidence : float, default=0.95
        Probability at which the bounds hold.
    max_runs : int, default=10000
        Fits to each of the tables at most.
    max_seconds : float, default=60.0
        No fit begins after this time.
    random_state : int, default=0
        Seed of the classifier. The noise is that of `fit`.

    Returns
    -------
    AuditResult
        What this attack found. It is not the privacy of the function: another attack may find more.

    Raises
    ------
    TypeError
        `fit` or `publish` is not callable.
    ValueError
        A parameter is out of range, what is published are not numbers, or as many of them each time, or the time does
        not suffice for a bound.

    Notes
    -----
    The first third of the fits teaches the score, gradient boosted trees on the published numbers; of the others one
    half chooses a threshold and the other one is judged, as `threshold_epsilon` says. So the bound holds whatever was
    learned (Jagielski, Ullman & Oprea 2020; Bichsel et al. 2021 learn the attack, too). With n fits judged of each
    kind no bound exceeds about log(n/4), however much is published: 10,000 fits find up to 6.7.

    Examples
    --------
    A sum with half of its noise:

    >>> import warnings
    >>> import numpy as np
    >>> from skdp.audit import audit_functions
    >>> rng = np.random.default_rng(0)
    >>> def noisy_sum(x):
    ...     return x.sum() + rng.laplace(scale=0.5)  # 1 / epsilon would be right
    >>> with warnings.catch_warnings(action="ignore"):
    ...     audit = audit_functions(noisy_sum, float, (np.zeros(9),), (np.eye(9)[0],), epsilon=1.0, max_runs=3000)
    >>> bool(1.0 < audit.epsilon_lower_bound <= 2.0)
    True
    >>> print(*audit.findings)  # doctest: +ELLIPSIS
    bound: epsilon is at least 1..., and 1 is claimed.
    """
    for name, function in (("fit", fit), ("publish", publish)):
        if not callable(function):
            raise TypeError(f"{name} is of type {type(function).__name__}: give a function.")
    for name, table in (("without", without), ("with_canary", with_canary)):
        if not isinstance(table, tuple):
            raise TypeError(f"{name} is of type {type(table).__name__}: give the arguments of fit as a tuple, (X, y).")
    check_real("epsilon", epsilon, above=0, remedy="give what is claimed")
    check_real("delta", delta, at_least=0, below=1, remedy="give what is claimed, or 0")
    check_choice("adjacency", adjacency, ADJACENCIES)
    check_real("confidence", confidence, above=0, below=1, remedy="choose a probability such as 0.95")
    check_count("max_runs", max_runs, at_least=_LEAST_PAIRS, remedy="give more fits")
    until = time.monotonic() + check_real(
        "max_seconds", max_seconds, above=0, remedy="give the seconds after which no fit begins"
    )
    seed = check_count("random_state", random_state, at_least=0, remedy="give a whole number, the seed of the audit")
    report_leak(
        "without and with_canary are read many times without a charge: they must be public or made up, and what is "
        "found of them is not for others."
    )
    published: tuple[list[Doubles], list[Doubles]] = [], []
    while len(published[1]) < max_runs and (time.monotonic() < until or not published[1]):
        for table, rows in zip((without, with_canary), published, strict=True):
            rows.append(_numbers(publish(fit(*table)), rows or published[0]))
    check_pairs(len(published[1]), _LEAST_PAIRS)
    scores = _learned_scores(np.stack(published[0]), np.stack(published[1]), seed)
    found = told_apart(*scores, delta or LEAST_DELTA, confidence)
    return AuditResult(
        estimator=getattr(fit, "__qualname__", type(fit).__name__),
        method="functions",
        epsilon_lower_bound=found["bounds"][_ASSUMED],
        epsilon_claimed=epsilon,
        delta=delta,
        adjacency=adjacency,
        confidence=confidence,
        bounds={_ASSUMED: found["bounds"][_ASSUMED]},  # nobody knows whether the noise is Gaussian
        findings=tuple(beyond(found["sure_epsilon"], epsilon)),
        n_fits=2 * len(published[1]),
        claimed_event=EpsilonDeltaDpEvent(epsilon, delta),
        points=found["points"],
    )


def _numbers(given: Any, earlier: list[Doubles]) -> Doubles:
    """What is published after one fit, as one row; infinities and NaN as large numbers."""
    try:
        row = np.asarray(given, np.float64).ravel()
    except (TypeError, ValueError):
        raise ValueError("publish returned what is no array of numbers: return numbers, of one shape.") from None
    if not row.size or (earlier and len(row) != len(earlier[0])):
        raise ValueError(
            f"publish returned {len(row)} numbers after one fit, and {len(earlier[0]) if earlier else 'none'} after "
            "another: return as many of them each time, at least one."
        )
    return np.where(np.isnan(row), -2.0 * _LARGEST, np.clip(row, -_LARGEST, _LARGEST))


def _learned_scores(without: Doubles, with_: Doubles, seed: int) -> tuple[Doubles, Doubles]:
    """Scores of all fits but the first third, which teaches what to look at."""
    n = len(with_) // 3
    model = HistGradientBoostingClassifier(max_iter=50, early_stopping=False, random_state=seed)
    with threadpool_limits(1, user_api="openmp"):  # so few rows are quicker on one thread
        model.fit(np.concatenate([without[:n], with_[:n]]), np.repeat([0, 1], n))
        return model.decision_function(without[n:]), model.decision_function(with_[n:])


__all__ = ["audit_functions"]
