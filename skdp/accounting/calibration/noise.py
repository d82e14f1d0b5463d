"""From a budget back to the noise that fits it.

Every result is on the safe side: the price of its event is computed and is within the budget. A search starts from
the central limit of Bu, Dong, Long & Su 2020, mu^2 = T q^2 (e^{1/sigma^2} - 1), continues on coarse grids, and needs
two or three prices of full accuracy. A budget out of reach is refused after a few prices, at places far apart, because
a bound may be loose at the end of the range and tight before it. If the search ends just above the budget, the
parameter grows in increasing steps until a price fits.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

from skdp.exceptions import without_removed

from ..events.specifications import DpEvent, resolve
from ..formulas.numeric import Secant, bisect
from ..methods import check_adjacency, check_method
from ..releases import Releases, releases
from ..targets import BudgetTarget, Risk, target_of

_LEAST, MOST_NOISE = 1e-3, 1e7
_NEAR = 2e-4  # accepted distance below the target, relative
_ROUGH = 3e-3  # accepted distance of the first search, on either side

# In a bracket of the log this narrow the price jumps over the goal, as it does where delta covers the event.
_JUMP = 1e-7
_REMEMBERED = 1024

PriceOf = Callable[[float], float]
Range = tuple[float, float]

_TRIED = (MOST_NOISE, 1e5, 1e3, 1e2)  # noises at which a budget may turn out to be in reach
_memory: dict[tuple[Any, ...], tuple[float, DpEvent]] = {}


def log_of(price: float) -> float:
    """Log of a price; what is without effect costs less than anything else."""
    return math.log(max(price, sys.float_info.min))


def _search(price: PriceOf, goal: float, off: float, start: float, slope: float, ends: Range) -> tuple[float, float]:
    """Log of a noise multiplier whose log price is within `off` of `goal`, and the slope there.

    Secant steps kept inside a bracket; `price` falls with the noise. Returns an end of the admitted
    range if the goal lies beyond it.
    """
    low, high = ends
    at = min(max(start, low), high)
    secant = Secant(slope, 0.02, 8.0, 2.5)
    for _ in range(80):
        error = log_of(price(math.exp(at))) - goal
        if abs(error) <= off:
            return at, secant.slope
        if high - low < _JUMP:
            return high, secant.slope
        nxt = at + secant.move(at, error)
        if (at == ends[0] and error < 0.0) or (at == ends[1] and error > 0.0):
            return at, secant.slope
        low, high = (at, high) if error > 0.0 else (low, at)
        if nxt <= low or nxt >= high:
            untried = (low if nxt <= low else high) in ends
            nxt = (low if nxt <= low else high) if untried else 0.5 * (low + high)
        at = nxt
    return high, secant.slope


def _plain(make_event: Callable[[float], DpEvent], target: BudgetTarget, replace_one: bool) -> float:
    """Log noise multiplier for plain Gaussian releases, by the closed form and bisection on mu."""
    goal = target.mu / (2.0 if replace_one else 1.0)

    def fits(at: float) -> bool:
        return releases(make_event(math.exp(at))).mu_squared <= goal * goal

    low, high = math.log(_LEAST), math.log(MOST_NOISE)
    if fits(low):
        return low
    guess = 0.5 * math.log(releases(make_event(1.0)).mu_squared) - math.log(goal)
    for at in (guess * (1.0 - 1e-12) - 1e-12, guess + 1e-12 + abs(guess) * 1e-12):
        if low < at < high:
            low, high = (low, at) if fits(at) else (at, high)
    return bisect(lambda at: not fits(at), low, high, absolute=1e-11)[1]


def _limit_mu(found: Releases, replace_one: bool) -> float:
    """Size mu of a composition in the central limit; for a first guess only."""
    total = found.mu_squared
    for rate, noise, count in found.sampled:
        inverse = min(noise**-2.0, 1e12)
        total += count * min(rate * rate * math.expm1(min(inverse, 60.0)), inverse)
    total += sum(2.0 * count / noise**2 for noise, count in found.laplace)
    size = math.sqrt(total) * (2.0 if replace_one else 1.0)
    for each in found.selected:
        one = (1.0 + 0.2 * math.log(each.mean)) * _limit_mu(each.runs[0], replace_one)
        size = math.hypot(size, math.sqrt(each.times) * one)
    return size


def _guess(make_event: Callable[[float], DpEvent], target: BudgetTarget, replace_one: bool, ends: Range) -> float:
    """Log of the noise multiplier at which the central limit would meet the budget."""
    goal = target.mu

    def is_below(at: float) -> bool:
        return _limit_mu(releases(make_event(math.exp(at))), replace_one) > goal

    low, high = bisect(is_below, *ends, steps=20)
    return 0.5 * (low + high)


def _in_reach(price: PriceOf, goal: float, places: Sequence[float], refusal: str) -> float:
    """The first of some parameters whose price is at most `goal`, or a ValueError."""
    for place in places:
        if price(place) <= goal:
            return place
    raise ValueError(refusal)


def _affordable(parameter: float, price: PriceOf, goal: float, most: float, refusal: str) -> float:
    """The parameter, raised in growing steps up to `most` until its price is at most `goal`."""
    step = 1e-5
    while parameter < most:
        if price(parameter) <= goal:
            return parameter
        parameter, step = parameter * (1.0 + step), 2.0 * step
    return _in_reach(price, goal, (most,), refusal)


@without_removed
def calibrate_noise_multiplier(
    make_event: Callable[[float], DpEvent],
    epsilon: float | Risk,
    delta: float | None = None,
    *,
    method: str = "pld",
    adjacency: str = "zero_out",
) -> float:
    """Least noise multiplier whose event fits a budget.

    Parameters
    ----------
    make_event : callable
        `make_event(noise_multiplier)` gives the event to be priced; its price falls with the noise.
    epsilon : float or Risk
        Above 0, in nats.
    delta : float, optional
        In (0, 1); of `epsilon`.
    method, adjacency : str
        As in `get_epsilon`.

    Returns
    -------
    float
        Between 1e-3 and 1e7. The price of its event is at most the budget and, unless the result is 1e-3,
        at most 0.02 % below.
    """
    method, adjacency = check_method(method), check_adjacency(adjacency)
    return calibrate_to(make_event, target_of(epsilon, delta), method=method, adjacency=adjacency)


def calibrate_to(
    make_event: Callable[[float], DpEvent], target: BudgetTarget, *, method: str = "pld", adjacency: str = "zero_out"
) -> float:
    """`calibrate_noise_multiplier` for a target, by parameters that were checked.

    Parameters
    ----------
    make_event : callable
    target : BudgetTarget
    method, adjacency : str

    Returns
    -------
    float
    """
    # functions have no equality: one is recognised by the events that it makes, at two places and at the result
    key = (resolve(make_event(1.0)), resolve(make_event(2.5)), target, method, adjacency)
    known = _memory.get(key)
    if known is not None and resolve(make_event(known[0])) == known[1]:
        return known[0]

    def rough(noise_multiplier: float) -> float:
        return target.rough(make_event(noise_multiplier), method, adjacency)

    def price(noise_multiplier: float) -> float:
        return target.price(make_event(noise_multiplier), method, adjacency)

    replace_one = adjacency == "replace_one"
    refusal = (
        f"{target.words} cannot be reached with noise_multiplier up to {MOST_NOISE:g}; "
        f"{target.remedy}, or make fewer releases."
    )
    most = _in_reach(price, target.goal, _TRIED, refusal)
    if method == "pld" and releases(make_event(1.0)).plain:
        at = _plain(make_event, target, replace_one)
    else:
        ends, goal = (math.log(_LEAST), math.log(most)), math.log(target.goal) + math.log1p(-0.5 * _NEAR)
        at, slope = _search(rough, goal, _ROUGH, _guess(make_event, target, replace_one, ends), -1.2, ends)
        at, _ = _search(price, goal, 0.5 * _NEAR, at, slope, ends)
    result = _affordable(math.exp(at), price, target.goal, most, refusal)
    if len(_memory) >= _REMEMBERED:
        _memory.clear()
    _memory[key] = (result, resolve(make_event(result)))
    return result
