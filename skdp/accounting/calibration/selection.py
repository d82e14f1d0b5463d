"""Noise for a whole search (trials, choice, scores, refit) under one budget, and the law of the number of trials."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from skdp.exceptions import without_removed

from ..events.specifications import DpEvent
from ..formulas.selection_law import NumberOfTrials
from ..methods import check_adjacency, check_method, get_epsilon
from ..targets import Risk, target_of
from .noise import calibrate_to

SHAPES = (0.0, 1.0, math.inf)


class CalibratedSelection(NamedTuple):
    """Law of the number of trials and noise of a trial, as found by `calibrate_selection`.

    Parameters
    ----------
    trials : NumberOfTrials
        Law of the number of trials.
    noise_multiplier : float
        Noise multiplier of one trial.
    """

    trials: NumberOfTrials
    noise_multiplier: float


def fewest_trials(
    make_event: Callable[[NumberOfTrials], DpEvent],
    expected: float,
    delta: float,
    *,
    method: str = "pld",
    adjacency: str = "zero_out",
) -> tuple[NumberOfTrials, float]:
    """The cheapest law of the number of trials, for runs whose noise is given.

    Parameters
    ----------
    make_event : callable
        `make_event(trials)` gives the event of the whole search, for instance
        `compose([trials.event(run), score, refit])`.
    expected : float
        Expected number of trials, at least 1.
    delta : float
        In (0, 1).
    method, adjacency : str
        As in `get_epsilon`.

    Returns
    -------
    trials : NumberOfTrials
        Logarithmic, geometric or Poisson; the first of them if prices are equal.
    epsilon : float
        Price of its event, in nats.
    """
    laws = [NumberOfTrials(expected, shape) for shape in SHAPES]
    prices = [get_epsilon(make_event(law), delta, method=method, adjacency=adjacency) for law in laws]
    best = min(range(len(laws)), key=prices.__getitem__)
    return laws[best], prices[best]


@without_removed
def calibrate_selection(
    make_event: Callable[[NumberOfTrials, float], DpEvent],
    expected: float,
    epsilon: float | Risk,
    delta: float | None = None,
    *,
    method: str = "pld",
    adjacency: str = "zero_out",
    shapes: Sequence[float] = SHAPES,
) -> CalibratedSelection:
    """The law of the number of trials that needs least noise, and that noise.

    Parameters
    ----------
    make_event : callable
        `make_event(trials, noise_multiplier)` gives the event of the whole search; its price falls with the noise.
    expected : float
        Expected number of trials, at least 1.
    epsilon : float or Risk
        Above 0, in nats: budget of everything in the event.
    delta : float, optional
        In (0, 1); of `epsilon`.
    method, adjacency : str
        As in `get_epsilon`.
    shapes : sequence of float
        The laws to choose from, as `NumberOfTrials` names them.

    Returns
    -------
    CalibratedSelection
        The price of its event is at most the budget. Laws of the same mean are compared by price alone.
    """
    target, method, adjacency = target_of(epsilon, delta), check_method(method), check_adjacency(adjacency)
    best: CalibratedSelection | None = None
    for shape in shapes:
        law = NumberOfTrials(expected, shape)

        def made(noise_multiplier: float, law: NumberOfTrials = law) -> DpEvent:
            return make_event(law, noise_multiplier)

        if best is not None:
            price = target.price(made(best.noise_multiplier), method, adjacency)
            if price >= target.goal * (1.0 - 2e-4):  # it needs as much noise or more
                continue
        noise = calibrate_to(made, target, method=method, adjacency=adjacency)
        if best is None or noise < best.noise_multiplier:
            best = CalibratedSelection(law, noise)
    assert best is not None
    return best
