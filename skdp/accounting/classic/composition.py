"""Composition of (epsilon, delta) statements: naive, strong, optimal, and the strong bound as published in 2016.

Each release becomes an (epsilon_i, delta_i) statement first. A Gaussian gets the analytic epsilon at a delta_i
that is chosen (Balle & Wang 2018, Theorem 8), one that works on a sample of share q is amplified to
(log(1 + q (e^epsilon - 1)), q delta) (Balle, Barthe & Gaboardi 2018, Theorems 8 and 9; for Poisson samples under
`replace_one` by their Theorem 2 and joint convexity, the neighbours without and with another record being both
at most 2 C away). Then a composition theorem joins the statements; the share of delta that it
keeps for itself is optimised. Any share is valid, so the optimum is found by a plain search.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..formulas.gaussian import gaussian_epsilon
from ..formulas.numeric import minimize
from ..formulas.response import randomised_response_epsilon
from ..releases import FixedSample, Releases, SampledGaussian, Statement

_MOST_EXACT = 10**6  # equal steps; a sum over the losses of more grows with the root of their number


def _amplify(epsilon: float, share: float) -> float:
    """log(1 + share (e^epsilon - 1))."""
    if epsilon < 600.0:  # beyond it, log share cannot cancel epsilon
        return math.log1p(share * math.expm1(epsilon))
    return epsilon + math.log(share) + math.log1p((1.0 - share) / share * math.exp(-epsilon))


def _noisy(found: Releases) -> list[SampledGaussian | FixedSample]:
    """Releases whose delta is to be chosen, those without sampling as if all records were sampled."""
    plain = [SampledGaussian(1.0, noise, count) for noise, count in found.gaussian]
    return [*plain, *found.sampled, *found.without_replacement]


def _fixed(found: Releases, change: float) -> list[Statement]:
    """Statements that are what they are."""
    steps = [Statement(change / noise, 0.0, count) for noise, count in found.laplace]
    steps += found.epsilon_delta
    for each in found.sampled_pure:
        epsilon, delta = each.statement(change)
        # of replaced records alone: whether the record was drawn may show (`dominating.pairs`)
        unseen = change > 1.0 and each.kind == "poisson" and each.is_statement
        steps.append(Statement(epsilon if unseen else _amplify(epsilon, each.share), each.share * delta, each.times))
    return steps


def _choose(noisy: list[SampledGaussian | FixedSample], delta: float, change: float) -> list[Statement]:
    """The Gaussian releases as statements at `delta` each; a sample of share q is private at delta = q already."""
    steps = []
    for share, noise, count in noisy:
        inner = delta / share
        epsilon = gaussian_epsilon(inner, change / noise) if inner < 1.0 else 0.0
        steps.append(Statement(_amplify(epsilon, share), min(delta, share), count))
    return steps


Composition = Callable[[list[Statement], float], float]


def _best(found: Releases, delta: float, change: float, join: Composition) -> float:
    """Least of `join(steps, delta)` over how much of delta the Gaussian steps take in all."""
    fixed, noisy = _fixed(found, change), _noisy(found)
    left = _slack(fixed, delta)
    if left <= 0.0:
        return math.inf
    number = sum(each.times for each in noisy)
    if number == 0:
        return join(fixed, delta)

    def at(logit: float) -> float:
        each = left / (1.0 + math.exp(-logit)) / number
        return join(fixed + _choose(noisy, each, change), delta) if each > 1e-305 else math.inf

    return minimize(at, -16.0, 16.0)


def _slack(steps: list[Statement], delta: float) -> float:
    """What the steps leave of delta when deltas are added up; rounded down unless there is a single one."""
    total = math.fsum(step.delta * step.times for step in steps)
    return delta - total * (1.0 if sum(step.times for step in steps) == 1 else 1.0 + 1e-14)


def naive_epsilon(found: Releases, delta: float, *, replace_one: bool = False) -> float:
    """Epsilon at `delta` by adding up epsilons and deltas (Dwork & Roth 2014, Theorem 3.16).

    Parameters
    ----------
    found : Releases
    delta : float
        In (0, 1). What is left after (epsilon, delta) events is shared equally among the Gaussian releases.
    replace_one : bool
        Whether neighbours replace a record.

    Returns
    -------
    float
        In nats; inf where the deltas alone exceed `delta`.
    """
    change = 2.0 if replace_one else 1.0
    fixed, noisy = _fixed(found, change), _noisy(found)
    left = _slack(fixed, delta)
    if left < 0.0 or (left == 0.0 and noisy):
        return math.inf
    steps = fixed + (_choose(noisy, left / sum(each.times for each in noisy), change) if noisy else [])
    return math.fsum(step.times * step.epsilon for step in steps)


def _strong(steps: list[Statement], delta: float) -> float:
    left = _slack(steps, delta)
    if left <= 0.0 or max(step.epsilon for step in steps) > 300.0:
        return math.inf
    mean = math.fsum(step.times * step.epsilon * math.expm1(step.epsilon) for step in steps)
    return mean + math.sqrt(-2.0 * math.log(left) * math.fsum(step.times * step.epsilon**2 for step in steps))


def strong_epsilon(found: Releases, delta: float, *, replace_one: bool = False) -> float:
    """Epsilon at `delta` by strong composition (Dwork, Rothblum & Vadhan 2010, Theorem III.3).

    sum epsilon_i (e^epsilon_i - 1) + sqrt(2 log(1/delta') sum epsilon_i^2) at delta' + sum delta_i. Their proof, by
    Azuma's inequality, needs of each step only its own range epsilon_i and mean epsilon_i (e^epsilon_i - 1), so
    that steps may differ.

    Parameters
    ----------
    found : Releases
    delta : float
        In (0, 1).
    replace_one : bool
        Whether neighbours replace a record.

    Returns
    -------
    float
        In nats; inf where the deltas alone exceed `delta`. May exceed the naive sum for few or large steps.
    """
    return _best(found, delta, 2.0 if replace_one else 1.0, _strong)


def _heterogeneous(steps: list[Statement], delta: float) -> float:
    """Kairouz, Oh & Viswanath 2017, Theorem 3.5: the least of its three terms."""
    total = math.fsum(step.times * step.epsilon for step in steps)
    if total > 1e150:
        return total
    mean = math.fsum(step.times * step.epsilon * math.tanh(0.5 * step.epsilon) for step in steps)
    squares = math.fsum(step.times * step.epsilon**2 for step in steps)
    first = math.log(math.e + math.sqrt(squares) / delta)
    return min(total, mean + math.sqrt(2.0 * squares * min(first, -math.log(delta))))


def _left(steps: list[Statement], delta: float) -> float:
    """delta' with 1 - (1 - delta') prod (1 - delta_i) = delta, rounded down."""
    taken = math.fsum(step.times * math.log1p(-step.delta) for step in steps) * (1.0 + 1e-14)
    return -math.expm1(math.log1p(-delta) - taken) * (1.0 - 1e-14) - 1e-15 * delta


def _optimal(steps: list[Statement], delta: float) -> float:
    left = _left(steps, delta)
    return _heterogeneous(steps, left) if left > 0.0 else math.inf


def _exact(steps: list[Statement], delta: float) -> float:
    (step,), left = steps, _left(steps, delta)
    if left <= 0.0 or step.epsilon > 300.0:
        return math.inf
    if step.times > _MOST_EXACT:
        return _heterogeneous(steps, left)
    return randomised_response_epsilon(step.epsilon, step.times, left)


def optimal_epsilon(found: Releases, delta: float, *, replace_one: bool = False) -> float:
    """Epsilon at `delta` by the bound of Kairouz, Oh & Viswanath 2017, Theorem 3.5, for equal and unequal steps.

    Parameters
    ----------
    found : Releases
    delta : float
        In (0, 1).
    replace_one : bool
        Whether neighbours replace a record.

    Returns
    -------
    float
        In nats; inf where the deltas alone exceed `delta`.
    """
    return _best(found, delta, 2.0 if replace_one else 1.0, _optimal)


def optimal_exact_epsilon(found: Releases, delta: float, *, replace_one: bool = False) -> float:
    """Epsilon at `delta` by exact composition of equal steps (Kairouz, Oh & Viswanath 2017, Theorem 3.3).

    Parameters
    ----------
    found : Releases
        Of one kind, repeated: the exact value for unequal steps is #P-hard (Murtagh & Vadhan 2016). Of more than
        10^6 steps the bound of `optimal_epsilon` is taken.
    delta : float
        In (0, 1).
    replace_one : bool
        Whether neighbours replace a record.

    Returns
    -------
    float
        In nats; inf where the deltas alone exceed `delta`.
    """
    return _best(found, delta, 2.0 if replace_one else 1.0, _exact)


def exact_refusal(found: Releases, replace_one: bool) -> Exception | None:
    """Why `optimal_exact_epsilon` has no price, without a remedy; None if it has one."""
    if found.kinds_of_steps > 1:
        return TypeError("event=ComposedDpEvent of unequal steps has no price here by method='optimal_exact'")
    return None


def strong_2016_epsilon(found: Releases, delta: float, *, replace_one: bool = False) -> float:
    """The strong-composition figure of Abadi et al. 2016, Section 5.1: NOT a guarantee.

    9.34 for q = 0.01, sigma = 4, T = 10,000, delta = 1e-5 comes back from sigma = sqrt(2 log(1.25/delta0)) / epsilon0,
    which holds for epsilon0 < 1 and is used at 1.5, and amplification to q epsilon0, which holds to first order
    in epsilon0 only. Both err to the small side.

    Parameters
    ----------
    found : Releases
        Gaussian releases with and without Poisson sampling.
    delta : float
        In (0, 1).
    replace_one : bool
        Whether neighbours replace a record.

    Returns
    -------
    float
        In nats; below what strong composition can prove.
    """
    change = 2.0 if replace_one else 1.0
    noisy = _noisy(found)
    number = sum(each.times for each in noisy)

    def at(logit: float) -> float:
        each = delta / (1.0 + math.exp(-logit)) / number
        steps = []
        for share, noise, count in noisy:
            inner = min(each / share, 1.0)
            steps.append(Statement(share * change * math.sqrt(2.0 * math.log(1.25 / inner)) / noise, each, count))
        return _strong(steps, delta)

    return minimize(at, -16.0, 16.0)
