"""The figures of a report: epsilon with its bracket, and what a membership guess is worth."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from sklearn.exceptions import NotFittedError

from skdp.accounting import DpEvent, PrivacyProfile, get_delta, get_epsilon, get_epsilon_bounds
from skdp.accounting.methods import METHODS
from skdp.report.values import number


class Priced(NamedTuple):
    """What a fitted state costs; `method` is None if no method gives `epsilon` today."""

    event: DpEvent
    epsilon: float
    delta: float
    adjacency: str
    method: str | None
    bounds: tuple[float, float] | None


def price_of(model: Any) -> Priced:
    """Read the price of a fitted private estimator, pipeline or search.

    Raises
    ------
    TypeError
        The object has no price of its own.
    NotFittedError
        It is not fitted.
    ValueError
        Its ``epsilon_`` is below what ``privacy_event_`` costs at least: it was not written by its fit.
    """
    if not hasattr(type(model), "_private_parts"):
        raise TypeError(
            f"model is a {type(model).__name__}, which has no privacy budget of its own: give a private estimator, "
            "a pipeline from skdp.allocate_budget or a private search."
        )
    if not {"privacy_event_", "_fitted_releases"} & model.__dict__.keys():
        raise NotFittedError(f"This {type(model).__name__} instance is not fitted yet: call fit first.")
    event, epsilon, delta, adjacency = model.privacy_event_, model.epsilon_, model.delta_, model.adjacency_
    bounds = bracket(event, delta, adjacency)
    if bounds is not None and epsilon < bounds[0]:
        raise ValueError(
            f"epsilon_={epsilon!r} is below the least that privacy_event_ costs at delta_={delta!r}: fit the model "
            "again."
        )
    return Priced(event, epsilon, delta, adjacency, _method_of(event, epsilon, delta, adjacency), bounds)


PURE = "pure"
"""How an epsilon at a delta of 0 was found."""

_TINY = 1e-300


def bracket(event: DpEvent, delta: float, adjacency: str) -> tuple[float, float] | None:
    """Certified bounds of epsilon; None if PLD cannot price the event. A delta of 0 is taken for a tiny one."""
    try:
        return get_epsilon_bounds(event, delta or _TINY, adjacency=adjacency)
    except (TypeError, ValueError):
        return None


def _method_of(event: DpEvent, epsilon: float, delta: float, adjacency: str) -> str | None:
    """The method that gives `epsilon`; the accountant may have been changed after the fit."""
    if delta == 0.0:
        bounds = bracket(event, delta, adjacency)
        return PURE if bounds is not None and epsilon <= bounds[1] else None
    for method in METHODS:
        try:
            if get_epsilon(event, delta, method=method, adjacency=adjacency) == epsilon:
                return method
        except (TypeError, ValueError):
            continue
    return None


def guess_at(epsilon: float, delta: float) -> float:
    """Largest probability with which a guess at even odds is right, under (`epsilon`, `delta`)-privacy.

    Let a test of "in" against "out" have the errors a and b, so that it is right with probability 1 - (a + b) / 2.
    Privacy gives a + e^epsilon b >= 1 - delta and b + e^epsilon a >= 1 - delta (Wasserman & Zhou 2010; Kairouz, Oh &
    Viswanath 2015, theorem 2.1). Their sum is (1 + e^epsilon) (a + b) >= 2 (1 - delta), so the test is right with
    probability at most 1 - (1 - delta) / (1 + e^epsilon) = (e^epsilon + delta) / (1 + e^epsilon).
    """
    return 1.0 - (1.0 - delta) * math.exp(-epsilon) / (1.0 + math.exp(-epsilon))


def attacker_accuracy_by_profile(priced: Priced) -> float | None:
    """The same, by all pairs (epsilon, delta) of the event; None if PLD cannot price it.

    At epsilon = 0 the bound is (1 + delta(0)) / 2. The best test against the worst pair of tables reaches it, as
    delta(0) is their total variation distance. Where the profile at 0 is loose, as for a choice among trials, a larger
    epsilon may give less. Each pair is a guarantee, so the least bound is one.
    """
    bound = guess_at(priced.epsilon, priced.delta)
    try:
        for share in (0.0, 0.25, 0.5, 0.75):
            epsilon = share * priced.epsilon if share else 0.0
            delta = get_delta(priced.event, epsilon, adjacency=priced.adjacency)
            bound = min(bound, guess_at(epsilon, delta))
            if share == 0.0 and bound < guess_at(priced.epsilon, priced.delta):
                break  # the profile at 0 is tight where it is not trivial
    except (TypeError, ValueError):
        return None
    return bound


def attack_figures(priced: Priced) -> dict[str, float | str | None]:
    """What an attacker gains, beside epsilon: mu, the advantage, and what is found at 1 % and .1 % of false positives.

    The advantage alone does not bound rare guesses that are certain. Each is None if PLD cannot price the event.
    """
    try:
        profile = PrivacyProfile(priced.event, adjacency=priced.adjacency)
    except (TypeError, ValueError):
        return dict.fromkeys(("mu", "advantage", "tpr_at_1_percent_fpr", "tpr_at_01_percent_fpr"))
    return {
        "mu": number(profile.mu()),
        "advantage": profile.advantage(),
        "tpr_at_1_percent_fpr": float(profile.true_positive_rate(0.01)),
        "tpr_at_01_percent_fpr": float(profile.true_positive_rate(0.001)),
    }
