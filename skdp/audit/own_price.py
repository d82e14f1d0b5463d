"""What releases cost at least, by a test that anybody can reckon, without the accountant."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from scipy import stats

from skdp.accounting import (
    ComposedDpEvent,
    DiscreteLaplaceDpEvent,
    DpEvent,
    GaussianDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
)

_FAR, _N_THRESHOLDS = 12.0, 4001  # deviations beyond which nothing is sought, and where is
_LEAST_MASS = 1e-18

_Lots = tuple[float, float, int]  # rate, noise multiplier, and how many there are


def least_delta(event: DpEvent, epsilon: float, adjacency: str) -> float:
    """Delta that a composition has at least at an epsilon, found without the accountant.

    Parameters
    ----------
    event : DpEvent
        Gaussian releases, Poisson-sampled ones among them, each moved by what it declares, and counts with discrete
        Laplace noise. What else is in it is left out.
    epsilon : float
    adjacency : {"zero_out", "add_remove", "replace_one"}

    Returns
    -------
    float
        In [0, 1]. 0.0 where nothing of `event` is such a release.

    Notes
    -----
    An attacker adds up what the record moves in all Gaussian releases, full batches and the kind of lots that has the
    largest mean over its deviation, in proportion to the means, and compares with a threshold. Where the record is in K
    lots, K binomial, the sum is normal, so both of its error rates are sums over K; delta is no less than the
    probability that one table passes, less ``exp(epsilon)`` times that of the other, at any threshold (Dwork et al.
    2006). Of full batches alone it is exact (Balle & Wang 2018, theorem 8). Masses that are left out make the first
    smaller, and the second is raised by them.

    A count that moves by k steps of a nats is on the far side of what it moves to with probability 1 / (1 + exp(-a)),
    and with exp(-k a) times that from where it was. So delta is that probability times the delta of all else at
    epsilon - k a, or more; ``"replace_one"`` costs no less.
    """
    lots, full, mass, loss = defaultdict[tuple[float, float], int](int), 0.0, 1.0, 0.0
    for kind, count in _releases_of(event, 1):
        if isinstance(kind, GaussianDpEvent):
            full += count / kind.noise_multiplier**2
        elif isinstance(kind, PoissonSampledDpEvent) and isinstance(kind.event, GaussianDpEvent):
            lots[kind.sampling_probability, kind.event.noise_multiplier] += count
        elif isinstance(kind, DiscreteLaplaceDpEvent):
            mass /= (1.0 + math.exp(-kind.noise_parameter)) ** count
            loss += kind.noise_parameter * kind.sensitivity * count
    first, masses = _means(full, max(((*kind, n) for kind, n in lots.items()), key=_mean, default=None))
    second = -first if adjacency == "replace_one" else np.zeros(len(first))
    return max(
        part * max(_spare(first, second, masses, left), _spare(-second, -first, masses, left))
        for part, left in ((1.0, epsilon), (mass, epsilon - loss))
    )


def _means(full: float, lots: _Lots | None) -> tuple[np.ndarray, np.ndarray]:
    """Means of the sum, in its standard deviation, and their probabilities; `full` is the mu^2 of full batches."""
    if lots is None:
        return np.array([math.sqrt(full)]), np.ones(1)
    rate, noise, count = lots
    k = np.arange(count + 1)
    masses = stats.binom.pmf(k, count, rate)
    k, masses = k[masses > _LEAST_MASS], masses[masses > _LEAST_MASS]
    of_lots = k / (noise * math.sqrt(count))
    return (full + _mean(lots) * of_lots) / math.hypot(math.sqrt(full), _mean(lots)), masses


def _mean(lots: _Lots) -> float:
    """Mean of the sum of lots over its deviation."""
    rate, noise, count = lots
    return rate * math.sqrt(count) / noise


def _spare(one: np.ndarray, other: np.ndarray, masses: np.ndarray, epsilon: float) -> float:
    """The most of P(one > c) - exp(epsilon) P(other > c), of mixtures of normals with these means."""
    thresholds = np.linspace(min(one.min(), other.min()) - _FAR, max(one.max(), other.max()) + _FAR, _N_THRESHOLDS)
    missing = max(0.0, 1.0 - float(masses.sum()))
    passed, raised = (masses @ stats.norm.sf(thresholds - each[:, None]) for each in (one, other))
    return max(0.0, float(np.max(passed - math.exp(epsilon) * (raised + missing))))


def _releases_of(event: DpEvent, times: int) -> Iterator[tuple[DpEvent, int]]:
    """The single releases of a composition, and how often there are."""
    if isinstance(event, ComposedDpEvent):
        for each in event.events:
            yield from _releases_of(each, times)
    elif isinstance(event, SelfComposedDpEvent):
        yield from _releases_of(event.event, times * event.count)
    else:
        yield event, times
