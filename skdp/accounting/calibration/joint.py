"""Several events under one budget: noise for each, by given fractions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from skdp.exceptions import without_removed

from ..events.composition import compose
from ..events.specifications import DpEvent, read_real, show
from ..formulas.numeric import Secant
from ..methods import check_adjacency
from ..targets import BudgetTarget, Risk, target_of
from .noise import MOST_NOISE, calibrate_to, log_of

_NEAR = 6e-4  # accepted distance below the budget, relative


def _check_fractions(fractions: Sequence[float], number: int) -> list[float]:
    found = [read_real(share) for share in fractions]
    if len(found) != number or number == 0:
        raise ValueError(f"fractions={show(fractions)} are not {number} numbers; give one fraction for each event.")
    kept = [share for share in found if share is not None and 0.0 < share < math.inf]
    if len(kept) != number:
        wrong = next(given for given, share in zip(fractions, found, strict=True) if share not in kept)
        raise ValueError(f"fractions={show(wrong)} is not valid; give numbers above 0.")
    return [share / math.fsum(kept) for share in kept]


@without_removed
def calibrate_jointly(
    make_events: Sequence[Callable[[float], DpEvent]],
    epsilon: float | Risk,
    delta: float | None,
    fractions: Sequence[float],
    *,
    adjacency: str = "zero_out",
) -> tuple[float, ...]:
    """Noise multipliers of several events that together fit one budget.

    Parameters
    ----------
    make_events : sequence of callable
        Each `make_event(noise_multiplier)` gives one event; its price falls with the noise.
    epsilon : float or Risk
        Above 0, in nats: budget of all events, composed jointly by PLD.
    delta : float or None
        In (0, 1); of `epsilon`.
    fractions : sequence of float
        Above 0, one for each event, scaled to sum to 1: its part of mu^2. The size mu of an event is that of
        the Gaussian mechanism with the same epsilon at `delta`, or with the same risk; of plain Gaussians it is
        sqrt(count) / noise_multiplier and sums in squares (Dong, Roth & Su 2022).
    adjacency : {"zero_out", "add_remove", "replace_one"}

    Returns
    -------
    tuple of float
        The joint price is at most the budget and at most 0.1 % below it.
    """
    return calibrate_jointly_to(make_events, target_of(epsilon, delta), fractions, adjacency=adjacency)


def calibrate_jointly_to(
    make_events: Sequence[Callable[[float], DpEvent]],
    target: BudgetTarget,
    fractions: Sequence[float],
    *,
    adjacency: str = "zero_out",
) -> tuple[float, ...]:
    """`calibrate_jointly` for a target.

    Parameters
    ----------
    make_events : sequence of callable
    target : BudgetTarget
    fractions : sequence of float
    adjacency : str

    Returns
    -------
    tuple of float
    """
    adjacency, parts = check_adjacency(adjacency), _check_fractions(fractions, len(make_events))

    def noise(log_size: float) -> tuple[float, ...]:
        """Noise of each event when mu^2 sums to e^{2 log_size}."""
        found = []
        for make_event, part in zip(make_events, parts, strict=True):
            each = target.of_size(math.exp(log_size) * math.sqrt(part))
            if each.goal <= 0.0:
                raise ValueError(f"fractions: {part:.3g} of this budget is nothing at {target.place}; raise it.")
            found.append(calibrate_to(make_event, each, adjacency=adjacency))
        return tuple(found)

    def joint(noises: tuple[float, ...]) -> float:
        event = compose(make(sigma) for make, sigma in zip(make_events, noises, strict=True))
        return target.price(event, "pld", adjacency)

    at, goal = math.log(target.mu), math.log(target.goal) - 0.5 * _NEAR
    secant, noises = Secant(1.1, 0.5, 4.0, 1.0, 1e-6), noise(at)
    for _ in range(12):
        error = log_of(joint(noises)) - goal
        if abs(error) <= 0.4 * _NEAR:
            break
        at += secant.move(at, error)
        noises = noise(at)
    step = 2e-5
    while joint(noises) > target.goal:
        noises, step = tuple(sigma * (1.0 + step) for sigma in noises), 2.0 * step
        if max(noises) > MOST_NOISE:
            raise ValueError(
                f"{target.words} cannot be reached with noise_multiplier up to {MOST_NOISE:g}; "
                f"{target.remedy}, or make fewer releases."
            )
    return noises
