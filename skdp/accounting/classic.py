"""Composition of (epsilon, delta) guarantees (naive, strong, optimal, strong of 2016), and the moments accountant.

First, each release is converted to an (epsilon_i, delta_i) guarantee. A Gaussian release has the analytic epsilon at a
chosen delta_i (Balle & Wang 2018, Theorem 8). A release from a sample of rate q is amplified to (log(1 + q (e^epsilon -
1)), q delta) (Balle, Barthe & Gaboardi 2018, Theorems 8 and 9; for Poisson samples under `replace_one` by their Theorem
2 and joint convexity, as neighbors without the record and with another record both differ by at most 2 C). Then a
composition theorem combines the guarantees. The fraction of delta that it uses itself is optimized by a simple search,
because any fraction is valid.

**The moments accountant** as published (Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar & Zhang 2016).

With mu0 = N(0, s^2), mu = (1 - q) N(0, s^2) + q N(1, s^2), the log moment of one step is

    alpha(lambda) = log max(E1, E2),  E1 = E_{mu0}[(mu0 / mu)^lambda],  E2 = E_{mu}[(mu / mu0)^lambda]

(their Section 3.2), by numerical integration at whole lambda up to 32. E2 is the larger of both at every lambda
(Mironov, Talwar & Zhang 2019). Log moments add up over steps (Theorem 2, composability) and give delta = min
over lambda of exp(alpha(lambda) - lambda epsilon) (tail bound).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from skdp.accounting.formulas.gaussian import gaussian_epsilon, randomized_response_epsilon
from skdp.accounting.formulas.numeric import minimize
from skdp.accounting.rdp.mechanisms import log_moment
from skdp.accounting.releases import Releases, SampledGaussian, Statement, pure_of_sample


def _amplify(epsilon: float, share: float) -> float:
    """Return log(1 + share (e^epsilon - 1))."""
    if epsilon < 600.0:  # beyond, log share does not affect epsilon
        return math.log1p(share * math.expm1(epsilon))
    return epsilon + math.log(share) + math.log1p((1.0 - share) / share * math.exp(-epsilon))


def _noisy(found: Releases) -> list[SampledGaussian]:
    """Return the releases whose delta must be chosen; those without sampling have rate 1."""
    plain = [SampledGaussian(1.0, noise, count) for noise, count in found.gaussian]
    return [*plain, *found.sampled, *found.without_replacement]


def _fixed(found: Releases, change: float) -> list[Statement]:
    """Return the guarantees of releases whose delta is fixed."""
    steps = [Statement(change / noise, 0.0, count) for noise, count in found.laplace]
    steps += found.epsilon_delta
    for event, times in found.sampled_pure:
        epsilon, delta, share, shown = pure_of_sample(event, change)
        steps.append(Statement(epsilon if shown else _amplify(epsilon, share), share * delta, times))
    return steps


def _choose(noisy: list[SampledGaussian], delta: float, change: float) -> list[Statement]:
    """Return guarantees of the Gaussian releases at `delta` each; a sample of rate q has epsilon 0 at delta = q."""
    steps = []
    for share, noise, count in noisy:
        inner = delta / share
        epsilon = gaussian_epsilon(inner, change / noise) if inner < 1.0 else 0.0
        steps.append(Statement(_amplify(epsilon, share), min(delta, share), count))
    return steps


def composed_epsilon(
    theorem: Callable[[list[Statement], float], float], found: Releases, delta: float, *, replace_one: bool = False
) -> float:
    """Return the smallest epsilon at `delta` by a composition theorem, over the parts of delta for the Gaussian steps.

    Parameters
    ----------
    theorem : {strong, optimal, optimal_exact}
        Function of the guarantees of all steps, and of delta, that returns epsilon.
    found : Releases
    delta : float
        In (0, 1).
    replace_one : bool
        Whether neighbors replace a record.

    Returns
    -------
    float
        Epsilon in nats; inf if the deltas exceed `delta`.
    """
    change = 2.0 if replace_one else 1.0
    fixed, noisy = _fixed(found, change), _noisy(found)
    left = _slack(fixed, delta)
    if left <= 0.0:
        return math.inf
    number = sum(each.times for each in noisy)
    if number == 0:
        return theorem(fixed, delta)

    def at(logit: float) -> float:
        each = left / (1.0 + math.exp(-logit)) / number
        return theorem(fixed + _choose(noisy, each, change), delta) if each > 1e-305 else math.inf

    return minimize(at, -16.0, 16.0)


def _slack(steps: list[Statement], delta: float) -> float:
    """Return the remaining delta after subtracting all deltas; rounded down if there are several."""
    total = math.fsum(step.delta * step.times for step in steps)
    return delta - total * (1.0 if sum(step.times for step in steps) == 1 else 1.0 + 1e-14)


def naive_epsilon(found: Releases, delta: float, *, replace_one: bool = False) -> float:
    """Return epsilon at `delta` as the sum of epsilons (Dwork & Roth 2014, Theorem 3.16).

    Parameters
    ----------
    found : Releases
    delta : float
        Delta in (0, 1). The remainder after (epsilon, delta) events is divided equally among the Gaussian releases.
    replace_one : bool
        Whether neighbors replace a record.

    Returns
    -------
    float
        Epsilon in nats; inf if the deltas exceed `delta`.
    """
    change = 2.0 if replace_one else 1.0
    fixed, noisy = _fixed(found, change), _noisy(found)
    left = _slack(fixed, delta)
    if left < 0.0 or (left == 0.0 and noisy):
        return math.inf
    steps = fixed + (_choose(noisy, left / sum(each.times for each in noisy), change) if noisy else [])
    return math.fsum(step.times * step.epsilon for step in steps)


def strong(steps: list[Statement], delta: float) -> float:
    """Return epsilon by strong composition (Dwork, Rothblum & Vadhan 2010, Theorem III.3).

    Epsilon is sum epsilon_i (e^epsilon_i - 1) + sqrt(2 log(1/delta') sum epsilon_i^2) at delta' + sum delta_i. The
    proof, by Azuma's inequality, uses only the range epsilon_i and the mean epsilon_i (e^epsilon_i - 1) of each step,
    so steps can differ. The result can exceed the naive sum for few or large steps.
    """
    left = _slack(steps, delta)
    if left <= 0.0 or max(step.epsilon for step in steps) > 300.0:
        return math.inf
    mean = math.fsum(step.times * step.epsilon * math.expm1(step.epsilon) for step in steps)
    return mean + math.sqrt(-2.0 * math.log(left) * math.fsum(step.times * step.epsilon**2 for step in steps))


def _heterogeneous(steps: list[Statement], delta: float) -> float:
    """Return the bound of Kairouz, Oh & Viswanath 2017, Theorem 3.5: the smallest of its three terms."""
    total = math.fsum(step.times * step.epsilon for step in steps)
    if total > 1e150:
        return total
    mean = math.fsum(step.times * step.epsilon * math.tanh(0.5 * step.epsilon) for step in steps)
    squares = math.fsum(step.times * step.epsilon**2 for step in steps)
    first = math.log(math.e + math.sqrt(squares) / delta)
    return min(total, mean + math.sqrt(2.0 * squares * min(first, -math.log(delta))))


def _left(steps: list[Statement], delta: float) -> float:
    """Return delta' with 1 - (1 - delta') prod (1 - delta_i) = delta, rounded down."""
    taken = math.fsum(step.times * math.log1p(-step.delta) for step in steps) * (1.0 + 1e-14)
    return -math.expm1(math.log1p(-delta) - taken) * (1.0 - 1e-14) - 1e-15 * delta


def optimal(steps: list[Statement], delta: float) -> float:
    """Return epsilon by Kairouz, Oh & Viswanath 2017, Theorem 3.5, for equal and unequal steps."""
    left = _left(steps, delta)
    return _heterogeneous(steps, left) if left > 0.0 else math.inf


def optimal_exact(steps: list[Statement], delta: float) -> float:
    """Return epsilon by exact composition of equal steps (Kairouz, Oh & Viswanath 2017, Theorem 3.3).

    The exact value for unequal steps is #P-hard (Murtagh & Vadhan 2016). For more than 10^6 steps the bound of
    `optimal` is used.
    """
    (step,), left = steps, _left(steps, delta)
    if left <= 0.0 or step.epsilon > 300.0:
        return math.inf
    if step.times > 10**6:  # a sum over more losses takes too long
        return _heterogeneous(steps, left)
    return randomized_response_epsilon(step.epsilon, step.times, left)


def exact_rejection(found: Releases, replace_one: bool) -> Exception | None:
    """Return why `optimal_exact` does not support a composition, without a remedy; None if it does."""
    if found.kinds_of_steps > 1:
        return TypeError("event=ComposedDpEvent of unequal steps is not supported by method='optimal_exact'")
    return None


def strong_2016_epsilon(found: Releases, delta: float, *, replace_one: bool = False) -> float:
    """Return the strong-composition value of Abadi et al. 2016, Section 5.1, which is NOT a guarantee.

    It reproduces 9.34 for q = 0.01, sigma = 4, T = 10,000, delta = 1e-5. It uses sigma = sqrt(2 log(1.25/delta0)) /
    epsilon0, which holds for epsilon0 < 1 and is used at 1.5, and amplification to q epsilon0, which holds only to
    first order in epsilon0. Both underestimate epsilon.

    Parameters
    ----------
    found : Releases
        Gaussian releases with and without Poisson sampling.
    delta : float
        In (0, 1).
    replace_one : bool
        Whether neighbors replace a record.

    Returns
    -------
    float
        Epsilon in nats, less than the proven bound of strong composition.
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
        return strong(steps, delta)

    return minimize(at, -16.0, 16.0)


_LAMBDAS = np.arange(1.0, 33.0)


@lru_cache(maxsize=1024)
def _sampled(q: float, noise_multiplier: float) -> np.ndarray:
    """Return log E2 of one sampled step, which is the moment of order lambda + 1 under mu0."""
    return np.array([log_moment(1.0 + lam, q, noise_multiplier) for lam in _LAMBDAS])


def _pure(epsilon: float) -> np.ndarray:
    """Return a bound on the log moments of an epsilon-private mechanism, from the mean and range of its loss."""
    if epsilon > 300.0:
        return np.full(_LAMBDAS.size, math.inf)
    grown = math.expm1(epsilon)
    return _LAMBDAS * epsilon * grown + 0.5 * (_LAMBDAS * epsilon * math.exp(epsilon)) ** 2


def log_moments(found: Releases, *, replace_one: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return lambda = 1, ..., 32, and alpha(lambda) of a composition.

    Parameters
    ----------
    found : Releases
        Gaussians, with and without Poisson sampling, and pure mechanisms.
    replace_one : bool
        Whether neighbors replace a record; not with sampling.

    Returns
    -------
    tuple of ndarray of shape (32,)
        In nats.
    """
    change = 2.0 if replace_one else 1.0
    total = 0.5 * _LAMBDAS * (_LAMBDAS + 1.0) * change * change * found.mu_squared
    for rate, noise, count in found.sampled:
        total = total + count * _sampled(rate, noise)
    for noise, count in found.laplace:
        total = total + count * _pure(change / noise)
    for statement in found.epsilon_delta:
        total = total + statement.times * _pure(statement.epsilon)
    # covers the rounding of a moment; the tail bound on delta cancels and has its own
    return _LAMBDAS, total * (1.0 + 1e-11)


# Lambdas, and the log moments of a composition there.
MomentsOf = Callable[..., tuple[np.ndarray, np.ndarray]]


def tail_epsilon(moments_of: MomentsOf, found: Releases, delta: float, *, replace_one: bool = False) -> float:
    """Return epsilon at `delta` by the tail bound, solved for epsilon.

    Parameters
    ----------
    moments_of : {log_moments, asymptotic_moments}
    found : Releases
    delta : float
        In (0, 1).
    replace_one : bool
        Whether neighbors replace a record; not with sampling.

    Returns
    -------
    float
        In nats, at least 0.
    """
    lambdas, moments = moments_of(found, replace_one=replace_one)
    return max(0.0, float(np.min((moments - math.log(delta)) / lambdas)))


def tail_delta(moments_of: MomentsOf, found: Releases, epsilon: float, *, replace_one: bool = False) -> float:
    """Return delta at `epsilon` by the tail bound; see `tail_epsilon`."""
    lambdas, moments = moments_of(found, replace_one=replace_one)
    exponent = moments - lambdas * epsilon + 9e-16 * (moments + lambdas * epsilon)
    return math.exp(min(0.0, float(np.min(exponent))))


def moments_rejection(found: Releases, replace_one: bool) -> Exception | None:
    """Return why log moments do not support a composition, without a remedy; None if they do."""
    if any(statement.delta > 0.0 for statement in found.epsilon_delta):
        return TypeError("event=EpsilonDeltaDpEvent with delta > 0 is not supported by method='moments'")
    return None


def asymptotic_rejection(found: Releases, replace_one: bool) -> Exception | None:
    """Return the condition of Lemma 3 that a composition violates, without a remedy; None if it satisfies all."""
    for rate, noise, _ in found.sampled:
        if noise < 1.0:
            return ValueError(
                f"noise_multiplier={noise:g} violates the condition sigma >= 1 of method='moments_asymptotic'"
            )
        if not rate < 1.0 / (16.0 * noise):
            return ValueError(
                f"sampling_probability={rate:g} violates the condition q < 1 / (16 sigma) = {1.0 / (16.0 * noise):g} "
                "of method='moments_asymptotic'"
            )
    return None


def asymptotic_moments(found: Releases, *, replace_one: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return the lambdas that Lemma 3 admits, and the leading term of their log moments, which is not a guarantee.

    The lemma's bound is q^2 lambda (lambda + 1) / ((1 - q) sigma^2) + O(q^3 lambda^3 / sigma^3) for sigma >= 1,
    q < 1 / (16 sigma) and lambda <= sigma^2 log(1 / (q sigma)); the remainder has no constant and is omitted.
    `asymptotic_rejection` must return None for the releases.
    """
    change = 2.0 if replace_one else 1.0
    # q < 1/(16 sigma) and sigma >= 1 admit at least lambda = 2
    most = min((s * s * -math.log(q * s) for q, s, _ in found.sampled), default=1e4)
    lambdas = np.arange(1.0, min(math.floor(most), 100_000) + 1.0)
    total = 0.5 * lambdas * (lambdas + 1.0) * change * change * found.mu_squared
    for q, s, count in found.sampled:
        total = total + count * q * q * lambdas * (lambdas + 1.0) / ((1.0 - q) * s * s)
    return lambdas, total
