"""From a budget back to the noise that fits it."""

from __future__ import annotations

import math
from collections.abc import Callable

from ._composition import releases
from ._gaussian import gaussian_mu
from ._methods import check_adjacency, check_delta, check_epsilon, check_method, get_epsilon, rough_epsilon
from .events import DpEvent

__all__ = ["calibrate_noise_multiplier"]

_LEAST, _MOST = 1e-3, 1e7
_NEAR = 2e-4  # accepted distance below the target, relative
_ROUGH = 3e-3  # accepted distance of the first search, on either side

Price = Callable[[float], float]


def _search(price: Price, goal: float, below: float, above: float, start: float, slope: float) -> tuple[float, float]:
    """Log noise multiplier whose log price is in [goal - below, goal + above], and the slope there.

    Secant steps kept inside a bracket; `price` falls with the noise. Returns an end of the admitted range
    if the goal lies beyond it.
    """
    low, high = math.log(_LEAST), math.log(_MOST)
    at = min(max(start, low), high)
    last: tuple[float, float] | None = None
    for _ in range(80):
        error = math.log(price(math.exp(at))) - goal
        if -below <= error <= above or high - low < 1e-12:
            return at, slope
        if last is not None and at != last[0]:
            secant = (error - last[1]) / (at - last[0])
            slope = min(max(secant, -8.0), -0.02) if secant < 0.0 else slope
        last = (at, error)
        if (at == low and error < 0.0) or (at == high and error > 0.0):
            return at, slope
        low, high = (at, high) if error > 0.0 else (low, at)
        nxt = at - min(max(error / slope, -2.5), 2.5)
        bounds = math.log(_LEAST), math.log(_MOST)
        if nxt <= low or nxt >= high:
            untried = (low if nxt <= low else high) in bounds
            nxt = (low if nxt <= low else high) if untried else 0.5 * (low + high)
        at = nxt
    return high, slope


def _plain(make_event: Callable[[float], DpEvent], epsilon: float, delta: float, doubled: bool) -> float:
    """Log noise multiplier for plain Gaussian releases, by the closed form and bisection on mu."""
    goal = gaussian_mu(epsilon, delta) / (2.0 if doubled else 1.0)

    def fits(at: float) -> bool:
        return releases(make_event(math.exp(at))).mu_squared <= goal * goal

    low, high = math.log(_LEAST), math.log(_MOST)
    if fits(low):
        return low
    guess = 0.5 * math.log(releases(make_event(1.0)).mu_squared) - math.log(goal)
    for at in (guess * (1.0 - 1e-12) - 1e-12, guess + 1e-12 + abs(guess) * 1e-12):
        if low < at < high:
            low, high = (low, at) if fits(at) else (at, high)
    while high - low > 1e-11:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def calibrate_noise_multiplier(
    make_event: Callable[[float], DpEvent],
    epsilon: float,
    delta: float,
    *,
    method: str = "pld",
    adjacency: str = "zero_out",
) -> float:
    """Least noise multiplier whose event fits a budget.

    Parameters
    ----------
    make_event : callable
        `make_event(noise_multiplier)` gives the event to be priced; its price falls with the noise.
    epsilon : float
        Above 0, in nats.
    delta : float
        In (0, 1).
    method, adjacency : str
        As in `get_epsilon`.

    Returns
    -------
    float
        Between 1e-3 and 1e7. The price of its event is at most `epsilon` and, unless the result is 1e-3,
        at most 0.02 % below.
    """
    epsilon, delta = check_epsilon(epsilon, positive=True), check_delta(delta)
    method, adjacency = check_method(method), check_adjacency(adjacency)

    def price(noise_multiplier: float) -> float:
        return get_epsilon(make_event(noise_multiplier), delta, method=method, adjacency=adjacency)

    def rough(noise_multiplier: float) -> float:
        return rough_epsilon(make_event(noise_multiplier), delta, method=method, adjacency=adjacency)

    if method == "pld" and releases(make_event(1.0)).plain:
        at = _plain(make_event, epsilon, delta, adjacency == "replace_one")
    else:
        goal = math.log(epsilon) + math.log1p(-0.5 * _NEAR)
        at, slope = _search(rough, goal, _ROUGH, _ROUGH, 0.0, -1.2)
        at, _ = _search(price, goal, 0.5 * _NEAR, 0.5 * _NEAR, at, slope)
    result = math.exp(at)
    while price(result) > epsilon and result < _MOST:
        result *= 1.0 + 1e-5
    if price(result) > epsilon:
        raise ValueError(
            f"epsilon={epsilon!r}, delta={delta!r} cannot be reached with noise_multiplier up to {_MOST:g}; "
            "raise epsilon or delta, or make fewer releases."
        )
    return result
