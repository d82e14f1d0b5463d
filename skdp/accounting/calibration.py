"""Calibration of the noise to a privacy budget.

Every result is safe: the privacy cost of its event is computed and is within the budget. The search starts from the
central limit of Bu, Dong, Long & Su 2020, mu^2 = T q^2 (e^{1/sigma^2} - 1), continues with coarse grids, and requires
two or three computations at full accuracy. A budget out of reach is rejected after a few computations at distant
values, because a bound can be loose at the end of the range and tight before it. If the search ends just above the
budget, the parameter is increased in growing steps until the cost is within the budget.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from skdp.accounting.events.composition import compose
from skdp.accounting.events.specifications import DpEvent, read_real, resolve, show
from skdp.accounting.formulas.numeric import Secant, bisect
from skdp.accounting.formulas.selection_law import NumberOfTrials
from skdp.accounting.methods import check_adjacency, check_method, get_epsilon
from skdp.accounting.releases import Releases, releases
from skdp.accounting.statements.targets import BudgetTarget, Risk, target_of
from skdp.exceptions import without_removed

_LEAST, MOST_NOISE = 1e-3, 1e7
_NEAR = 2e-4  # accepted distance below the target, relative
_ROUGH = 3e-3  # accepted distance of the first search, on either side

Cost = Callable[[float], float]
Range = tuple[float, float]
_memory: dict[tuple[Any, ...], tuple[float, DpEvent]] = {}


def log_of(cost: float) -> float:
    """Return the log of a privacy cost; the log of the smallest float for a cost of 0."""
    return math.log(max(cost, sys.float_info.min))


def _search(cost: Cost, goal: float, off: float, start: float, slope: float, ends: Range) -> tuple[float, float]:
    """Return the log of a noise multiplier whose log cost is within `off` of `goal`, and the slope there.

    The search uses secant steps inside a bracket; the cost decreases with the noise. If the goal is out of range, an
    end of the range is returned.
    """
    low, high = ends
    at = min(max(start, low), high)
    secant = Secant(slope, 0.02, 8.0, 2.5)
    for _ in range(80):
        error = log_of(cost(math.exp(at))) - goal
        if abs(error) <= off:
            return at, secant.slope
        if high - low < 1e-7:  # the cost jumps over the goal, as it does if delta covers the event
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
    """Return the log noise multiplier of plain Gaussian releases, by the closed form and bisection on mu."""
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
    """Return mu of a composition in the central limit, as a first guess."""
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
    """Return the log of the noise multiplier that meets the budget in the central limit."""
    goal = target.mu
    return 0.5 * sum(
        bisect(lambda at: _limit_mu(releases(make_event(math.exp(at))), replace_one) > goal, *ends, steps=20)
    )


def _in_reach(cost: Cost, goal: float, places: Sequence[float], rejection: str) -> float:
    """Return the first parameter whose cost is at most `goal`, or raise a ValueError."""
    for place in places:
        if cost(place) <= goal:
            return place
    raise ValueError(rejection)


def _affordable(parameter: float, cost: Cost, goal: float, most: float, rejection: str) -> float:
    """Return the parameter, increased in growing steps up to `most` until its cost is at most `goal`."""
    step = 1e-5
    while parameter < most:
        if cost(parameter) <= goal:
            return parameter
        parameter, step = parameter * (1.0 + step), 2.0 * step
    return _in_reach(cost, goal, (most,), rejection)


def _out_of_reach(target: BudgetTarget) -> str:
    """Return the message for a budget that the largest noise does not meet."""
    limit = f"cannot be reached with noise_multiplier up to {MOST_NOISE:g}"
    return f"{target.words} {limit}. {target.remedy}, or make fewer releases."


@without_removed
def calibrate_noise_multiplier(
    make_event: Callable[[float], DpEvent],
    epsilon: float | Risk,
    delta: float | None = None,
    *,
    method: str = "pld",
    adjacency: str = "zero_out",
) -> float:
    """Compute the smallest noise multiplier that meets a privacy budget.

    Parameters
    ----------
    make_event : callable
        Function ``make_event(noise_multiplier)`` that returns an event, whose privacy cost decreases with the noise.
    epsilon : float or Risk
        Budget: epsilon above 0 in nats, or a membership-inference risk.
    delta : float, optional
        Delta in (0, 1). Not used for a risk.
    method, adjacency : str
        Accounting method and neighboring relation, see `get_epsilon`.

    Returns
    -------
    float
        Noise multiplier between 1e-3 and 1e7. The privacy cost of its event is at most the budget and, unless the
        result is 1e-3, at most 0.02% below it.

    Examples
    --------
    >>> from skdp.accounting import GaussianDpEvent, calibrate_noise_multiplier
    >>> round(calibrate_noise_multiplier(GaussianDpEvent, epsilon=1.0, delta=1e-5), 2)
    3.73
    """
    method, adjacency = check_method(method), check_adjacency(adjacency)
    return calibrate_to(make_event, target_of(epsilon, delta), method=method, adjacency=adjacency)


def calibrate_to(
    make_event: Callable[[float], DpEvent], target: BudgetTarget, *, method: str = "pld", adjacency: str = "zero_out"
) -> float:
    """Return `calibrate_noise_multiplier` for a target and validated parameters.

    Parameters
    ----------
    make_event : callable
    target : BudgetTarget
    method, adjacency : str

    Returns
    -------
    float
    """
    # functions cannot be compared: one is identified by its events at two values and at the result
    key = (resolve(make_event(1.0)), resolve(make_event(2.5)), target, method, adjacency)
    known = _memory.get(key)
    if known is not None and resolve(make_event(known[0])) == known[1]:
        return known[0]

    def rough(noise_multiplier: float) -> float:
        return target.rough(make_event(noise_multiplier), method, adjacency)

    def cost(noise_multiplier: float) -> float:
        return target.cost(make_event(noise_multiplier), method, adjacency)

    replace_one = adjacency == "replace_one"
    rejection = _out_of_reach(target)
    # the bound may be loose at the end of the range and tight before it
    most = _in_reach(cost, target.goal, (MOST_NOISE, 1e5, 1e3, 1e2), rejection)
    if method == "pld" and releases(make_event(1.0)).plain:
        at = _plain(make_event, target, replace_one)
    else:
        ends, goal = (math.log(_LEAST), math.log(most)), math.log(target.goal) + math.log1p(-0.5 * _NEAR)
        at, slope = _search(rough, goal, _ROUGH, _guess(make_event, target, replace_one, ends), -1.2, ends)
        at, _ = _search(cost, goal, 0.5 * _NEAR, at, slope, ends)
    result = _affordable(math.exp(at), cost, target.goal, most, rejection)
    if len(_memory) >= 1024:
        _memory.clear()
    _memory[key] = (result, resolve(make_event(result)))
    return result


_NEAR_JOINT = 6e-4  # accepted distance below the budget, relative


def _check_fractions(fractions: Sequence[float], number: int) -> list[float]:
    found = [read_real(share) for share in fractions]
    if len(found) != number or number == 0:
        raise ValueError(f"`fractions` must have one number for each of the {number} events, got {show(fractions)}.")
    kept = [share for share in found if share is not None and 0.0 < share < math.inf]
    if len(kept) != number:
        wrong = next(given for given, share in zip(fractions, found, strict=True) if share not in kept)
        raise ValueError(f"`fractions` must be finite numbers above 0, got {show(wrong)}.")
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
    """Compute noise multipliers of several events that meet one budget together.

    Parameters
    ----------
    make_events : sequence of callable
        Functions ``make_event(noise_multiplier)`` that return an event, whose privacy cost decreases with the noise.
    epsilon : float or Risk
        Budget of the composition of all events (by PLD): epsilon above 0 in nats, or a membership-inference risk.
    delta : float or None
        Delta in (0, 1). Not used for a risk.
    fractions : sequence of float
        Positive fraction of the budget (of mu^2) for each event; the fractions are scaled to sum to 1. The mu of an
        event is the mu of the Gaussian mechanism with the same epsilon at `delta`, or with the same risk. For plain
        Gaussian releases it is sqrt(count) / noise_multiplier, and the squares add up (Dong, Roth & Su 2022).
    adjacency : {"zero_out", "add_remove", "replace_one"}
        Neighboring relation.

    Returns
    -------
    tuple of float
        Noise multiplier of each event. The composed privacy cost is at most the budget and at most 0.1% below it.
    """
    return calibrate_jointly_to(make_events, target_of(epsilon, delta), fractions, adjacency=adjacency)


def calibrate_jointly_to(
    make_events: Sequence[Callable[[float], DpEvent]],
    target: BudgetTarget,
    fractions: Sequence[float],
    *,
    adjacency: str = "zero_out",
) -> tuple[float, ...]:
    """Return `calibrate_jointly` for a target.

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
        """Return the noise of each event if mu^2 sums to e^{2 log_size}."""
        found = []
        for make_event, part in zip(make_events, parts, strict=True):
            each = target.of_size(math.exp(log_size) * math.sqrt(part))
            if each.goal <= 0.0:
                raise ValueError(
                    f"`fractions` must leave each event a positive budget at {target.place}, got {part:.3g}."
                )
            found.append(calibrate_to(make_event, each, adjacency=adjacency))
        return tuple(found)

    def joint(noises: tuple[float, ...]) -> float:
        event = compose(make(sigma) for make, sigma in zip(make_events, noises, strict=True))
        return target.cost(event, "pld", adjacency)

    at, goal = math.log(target.mu), math.log(target.goal) - 0.5 * _NEAR_JOINT
    secant, noises = Secant(1.1, 0.5, 4.0, 1.0, 1e-6), noise(at)
    for _ in range(12):
        error = log_of(joint(noises)) - goal
        if abs(error) <= 0.4 * _NEAR_JOINT:
            break
        at += secant.move(at, error)
        noises = noise(at)
    step = 2e-5
    while joint(noises) > target.goal:
        noises, step = tuple(sigma * (1.0 + step) for sigma in noises), 2.0 * step
        if max(noises) > MOST_NOISE:
            raise ValueError(_out_of_reach(target))
    return noises


SHAPES = (0.0, 1.0, math.inf)


class CalibratedSelection(NamedTuple):
    """Result of `calibrate_selection`.

    Parameters
    ----------
    trials : NumberOfTrials
        Distribution of the number of trials.
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
    """Compute the distribution of the number of trials with the smallest epsilon, for given noise.

    Parameters
    ----------
    make_event : callable
        Function ``make_event(trials)`` that returns the event of the whole search, for example
        ``compose([trials.event(run), score, refit])``.
    expected : float
        Expected number of trials, at least 1.
    delta : float
        Delta in (0, 1).
    method, adjacency : str
        Accounting method and neighboring relation, see `get_epsilon`.

    Returns
    -------
    trials : NumberOfTrials
        Logarithmic, geometric or Poisson distribution; the first of them in case of ties.
    epsilon : float
        Epsilon of its event, in nats.
    """
    laws = [NumberOfTrials(expected, shape) for shape in SHAPES]
    costs = [get_epsilon(make_event(law), delta, method=method, adjacency=adjacency) for law in laws]
    best = min(range(len(laws)), key=costs.__getitem__)
    return laws[best], costs[best]


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
    """Find the distribution of the number of trials that requires the least noise, and compute this noise.

    Parameters
    ----------
    make_event : callable
        Function ``make_event(trials, noise_multiplier)`` that returns the event of the whole search. Its privacy cost
        decreases with the noise.
    expected : float
        Expected number of trials, at least 1.
    epsilon : float or Risk
        Budget of the whole event: epsilon above 0 in nats, or a membership-inference risk.
    delta : float, optional
        Delta in (0, 1). Not used for a risk.
    method, adjacency : str
        Accounting method and neighboring relation, see `get_epsilon`.
    shapes : sequence of float
        Candidate distributions, as the parameter `shape` of `NumberOfTrials`.

    Returns
    -------
    CalibratedSelection
        Distribution and noise multiplier. The privacy cost of the event is at most the budget. The candidates have the
        same mean and are compared by their noise only.
    """
    target, method, adjacency = target_of(epsilon, delta), check_method(method), check_adjacency(adjacency)
    best: CalibratedSelection | None = None
    for shape in shapes:
        law = NumberOfTrials(expected, shape)

        def made(noise_multiplier: float, law: NumberOfTrials = law) -> DpEvent:
            return make_event(law, noise_multiplier)

        if best is not None:
            cost = target.cost(made(best.noise_multiplier), method, adjacency)
            if cost >= target.goal * (1.0 - 2e-4):  # it requires at least as much noise
                continue
        noise = calibrate_to(made, target, method=method, adjacency=adjacency)
        if best is None or noise < best.noise_multiplier:
            best = CalibratedSelection(law, noise)
    assert best is not None
    return best
