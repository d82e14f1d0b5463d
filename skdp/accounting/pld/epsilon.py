"""Tight upper bounds of epsilon and delta of a composition, by privacy loss distributions.

`closed_forms` is used if possible. Otherwise `directions` returns the pairs to compose for each direction of neighbors,
and `reading` composes them and computes the result. For groups of several records, the profile of one record is used.

For a selection, the profile of a trial is computed like that of any release. `profiles` converts it to the profile of
the best trial, and to a pair that is composed with the other releases.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial

import numpy as np

from skdp.accounting.events.kinds import FORMS
from skdp.accounting.formulas.gaussian import gaussian_delta, gaussian_epsilon
from skdp.accounting.formulas.numeric import least_delta
from skdp.accounting.formulas.selection_law import NumberOfTrials
from skdp.accounting.pld.closed_forms import MAX_SHIFT, Simple, closed_delta, closed_epsilon
from skdp.accounting.pld.pairs import AtomsPair, LaplacePair, Pair, ResponsePair, atoms_pairs
from skdp.accounting.pld.profiles import AnyPair, Directed, Profile, ProfilePair, group_profile, select_best
from skdp.accounting.pld.reading import (
    ROUGH,
    Curve,
    compose_curve,
    delta_of_atoms,
    epsilon_of_atoms,
    is_negligible,
    read_delta,
    read_epsilon,
    total_variation,
)
from skdp.accounting.pld.tilting import find_tilt
from skdp.accounting.rdp.rdp import rdp_rejection, renyi_delta, renyi_epsilon
from skdp.accounting.releases import Releases, Runs


def curve_of(found: Releases, replace_one: bool, log_floor: float, accuracy: float, work: int) -> Curve:
    """Profile of one trial, read until it is e^log_floor above what is revealed outright."""
    simple = Simple.of(found, replace_one)
    if simple.closed and simple.revealed == 0.0:
        mu = simple.mu
        return gaussian_epsilon(math.exp(log_floor), mu), lambda at: np.array([gaussian_delta(e, mu) for e in at])
    if not found.selected and simple.mu == 0.0 and simple.pure == 0.0:
        return 0.0, lambda at: np.full(at.shape, simple.revealed)
    if simple.revealed >= 1.0 or simple.steep:
        return 0.0, lambda at: np.ones(at.shape)
    return compose_curve(directions(found, replace_one, log_floor, accuracy), log_floor, accuracy, work)


@lru_cache(maxsize=512)
def _selected_profile(
    runs: Runs, trials: NumberOfTrials | None, replace_one: bool, log_floor: float, accuracy: float
) -> Profile:
    """Profile of the best of several trials, each the worst of `runs`; of one of them where there are no trials."""
    floor = log_floor if trials is None else max(log_floor - math.log(trials.mean), -700.0)
    curves = [curve_of(run, replace_one, floor, accuracy, (12 << 20) // len(runs)) for run in runs]
    points = 1000 if accuracy < 5e-4 else 250
    grid = np.linspace(0.0, max(1e-9, *(top for top, _ in curves)), points + 1)
    delta = np.minimum(np.max([read(grid) for _, read in curves], axis=0), 1.0)
    # a bound at one place is one above it
    delta = np.minimum.accumulate(delta)
    profile = Profile(grid, delta)
    return profile if trials is None else select_best(profile, trials)


def profile_pair(found: Releases, replace_one: bool, log_floor: float, accuracy: float = 1e-5) -> ProfilePair:
    """The profile of a composition, convex: the larger of both directions.

    Parameters
    ----------
    found : Releases
    replace_one : bool
        Whether neighbors replace a record.
    log_floor : float
        Log of the delta down to which it is followed.
    accuracy : float
        Relative error of epsilon aimed at.

    Returns
    -------
    ProfilePair
    """
    return ProfilePair.of(_selected_profile((found,), None, replace_one, log_floor, accuracy), 1)


def directions(found: Releases, replace_one: bool, log_floor: float = -30.0, accuracy: float = 1e-6) -> Directed:
    """The pairs to compose, for each direction; one if both are the same.

    Parameters
    ----------
    found : Releases
    replace_one : bool
        Whether neighbors replace a record.
    log_floor : float
        Log of a delta that does not matter: how far profiles of selections are followed.
    accuracy : float
        Relative error of epsilon aimed at.

    Returns
    -------
    list of tuple of pairs
    """
    twice = 2.0 if replace_one else 1.0
    sampled = [(rate, 1.0 / noise, count) for rate, noise, count in found.sampled]
    gaussian = found.mu_squared + sum(count * m * m for _, m, count in sampled if m > MAX_SHIFT)
    others: list[AnyPair] = [Pair("remove", 1.0, math.sqrt(gaussian) * twice, 1)] if gaussian > 0.0 else []
    others += [LaplacePair(twice / noise, count) for noise, count in found.laplace]
    others += [ResponsePair(epsilon, delta, count) for epsilon, delta, count in found.epsilon_delta]
    for runs, trials, count in found.selected:
        floor = log_floor - math.log(count)
        others.append(ProfilePair.of(_selected_profile(runs, trials, replace_one, floor, accuracy), count))
    result: Directed = []
    weighted = atoms_pairs(found, replace_one)
    for direction, kind in enumerate(("replace",) if replace_one else ("remove", "add")):
        pairs: list[AnyPair] = [Pair(kind, q, m, count) for q, m, count in sampled if m <= MAX_SHIFT]
        result.append((*pairs, *others, *weighted[direction]))
    return result[:1] if all(pair.symmetric for pair in result[0]) else result


FINE = 2e-6  # relative error of epsilon aimed at
_PROFILE = 1e-5  # relative error of the profile of one trial
_NEGLIGIBLE = 14.0  # log of how far below delta a profile is followed
_FLOORS = 4.0  # nats between floors: costs at deltas that are close to each other are read off the same profiles
_DEPTHS = (-32.0, -60.0, -200.0, -700.0)  # floors where delta is looked for roughly, one after the other
_ROUGHLY = 6.0  # log of how far below delta a rough profile is followed
_LARGE = 0.01  # delta of a selection from which on Rényi divergences may be the better bound
_LEAST_DELTA, _MOST_DELTA = 1e-300, 1.0 - 1e-9  # within which a grid is laid
_MANY = 10**9  # releases from which on the grid is so coarse that Rényi divergences may be the better bound
_DEEPEST = -690.0  # log of the delta down to which profiles of groups are followed, at most
_MANY_SELECTED = 10**7  # the same within a selection, which is looked at in many places on smaller grids


def _is_by_renyi(found: Releases) -> bool:
    """Return whether to compute Rényi divergences, too, which can be tighter than a coarse grid."""
    return found.most > (_MANY_SELECTED if found.selected else _MANY)


def least_with_renyi(value: float, found: Releases, delta: float, replace_one: bool) -> float:
    """Return the smaller of an epsilon from a coarse grid and the epsilon by Rényi divergences."""
    if not _is_by_renyi(found) or rdp_rejection(found, replace_one=replace_one) is not None:
        return value
    return min(value, renyi_epsilon(found, delta, replace_one=replace_one))


def check_kinds(found: Releases) -> None:
    """Raise if privacy loss distributions do not support a release."""
    strange = [kind for kind in found.kinds if "pld" not in FORMS[kind].methods]
    if strange:
        raise TypeError(f"method='pld' does not support {', '.join(strange)}. Use method='rdp'.")


def _alone(directed: Directed) -> ProfilePair | None:
    """Return the profile of a single selection without other releases, or None."""
    pair = directed[0][0]
    return pair if len(directed[0]) == 1 and isinstance(pair, ProfilePair) and pair.count == 1 else None


def _infinite(revealed: float, pairs: tuple[AnyPair, ...]) -> float:
    """Return the probability of infinite loss, including the truncation of profiles."""
    cut = math.fsum(p.count * math.log1p(-p.infinite) for p in pairs if isinstance(p, ProfilePair) and p.infinite < 1.0)
    if any(isinstance(pair, ProfilePair) and pair.infinite >= 1.0 for pair in pairs):
        return 1.0
    return revealed - (1.0 - revealed) * math.expm1(cut) * (1.0 + 1e-14)


def _floor(delta: float) -> float:
    """Return the log of the delta down to which profiles of trials are followed for a bound near `delta`."""
    return max(math.floor((math.log(delta) - _NEGLIGIBLE) / _FLOORS) * _FLOORS, _DEPTHS[-1])


def _selected_epsilon(found: Releases, delta: float, replace_one: bool, accuracy: float) -> float:
    """Return epsilon of a composition with a selection."""
    directed = directions(found, replace_one, _floor(delta), max(accuracy, _PROFILE))
    alone, infinite = _alone(directed), _infinite(Simple.of(found, replace_one).revealed, directed[0])
    if alone is not None:
        return alone.epsilon_at(delta)
    if infinite >= delta:
        return math.inf
    return read_epsilon(directed, infinite, delta, accuracy)


def pld_epsilon(found: Releases, delta: float, *, replace_one: bool = False, accuracy: float = FINE) -> float:
    """Return an upper bound of epsilon at `delta`.

    Parameters
    ----------
    found : Releases
    delta : float
        In (0, 1).
    replace_one : bool
        Whether neighbors replace a record.
    accuracy : float
        Target relative error; a coarser grid is faster and remains an upper bound.

    Returns
    -------
    float
        In nats, at least 0.
    """
    check_kinds(found)
    return least_with_renyi(_grid_epsilon(found, delta, replace_one, accuracy), found, delta, replace_one)


def _weighted_alone(directed: Directed) -> list[AtomsPair] | None:
    """Return the weighted losses of each direction for a single release, or None."""
    alone = [pairs[0] for pairs in directed if len(pairs) == 1 and isinstance(pairs[0], AtomsPair)]
    return alone if len(alone) == len(directed) and all(pair.count == 1 for pair in alone) else None


def _grid_epsilon(found: Releases, delta: float, replace_one: bool, accuracy: float) -> float:
    if found.selected:
        return _selected_epsilon(found, delta, replace_one, accuracy)
    simple = Simple.of(found, replace_one)
    known = simple.known_epsilon(delta)
    if known is not None:
        return known
    closed = closed_epsilon(found, simple, delta, replace_one)
    if closed is not None:
        return closed
    directed = directions(found, replace_one)
    if simple.steep:
        return 0.0 if is_negligible(directed, delta) else simple.epsilon_at(delta)
    weighted = _weighted_alone(directed)
    if weighted is not None:
        return max(epsilon_of_atoms(pair, delta) for pair in weighted)
    return min(simple.epsilon_at(delta), read_epsilon(directed, simple.revealed, delta, accuracy))


def pld_delta(found: Releases, epsilon: float, *, replace_one: bool = False, accuracy: float = FINE) -> float:
    """Return an upper bound of delta at `epsilon`.

    Parameters
    ----------
    found : Releases
    epsilon : float
        In nats, at least 0.
    replace_one : bool
        Whether neighbors replace a record.
    accuracy : float
        Target relative error.

    Returns
    -------
    float
        In [0, 1].
    """
    check_kinds(found)
    known = known_delta(found, epsilon, replace_one)
    return _composed_delta(found, epsilon, replace_one, accuracy) if known is None else known


def known_delta(found: Releases, epsilon: float, replace_one: bool) -> float | None:
    """Return delta if there is a formula, else None."""
    simple = Simple.of(found, replace_one)
    if simple.revealed >= 1.0:
        return 1.0
    if found.selected:
        return None
    if simple.closed and (simple.mu > 0.0 or simple.revealed == 0.0):
        return simple.closed_delta(epsilon)
    if epsilon >= simple.pure and simple.mu == 0.0:
        return min(1.0, simple.revealed * (1.0 + 1e-12))
    closed = closed_delta(found, simple, epsilon, replace_one)
    if closed is not None:
        return closed
    directed = directions(found, replace_one)
    if simple.steep:
        return min(simple.delta_at(epsilon), total_variation(directed[0]))
    weighted = _weighted_alone(directed)
    return None if weighted is None else max(delta_of_atoms(pair, epsilon) for pair in weighted)


def _composed_delta(found: Releases, epsilon: float, replace_one: bool, accuracy: float) -> float:
    """Return delta by iteration from a guess, on coarse grids and with coarse profiles of trials first.

    Every value is an upper bound, whatever the guess, the grid and the floor, and the least of them is returned.
    """
    revealed, best = Simple.of(found, replace_one).revealed, 1.0
    rough = max(ROUGH, accuracy)
    delta = 1e-6  # a first guess
    if not found.selected:
        delta = math.exp(max(find_tilt(pairs, None, epsilon).log_delta for pairs in directions(found, replace_one)))
    for _ in range(12):
        delta = max(delta, _LEAST_DELTA)
        floor = _floor(delta)
        if rough > accuracy:
            floor = next((depth for depth in _DEPTHS if depth <= math.log(delta) - _ROUGHLY), _DEPTHS[-1])
        directed = directions(found, replace_one, floor, max(rough, _PROFILE))
        alone = _alone(directed)
        if alone is not None:
            value = guess = alone.delta_at(epsilon)
        else:
            infinite = _infinite(revealed, directed[0])
            if infinite >= _MOST_DELTA:
                break
            delta = min(max(delta, infinite * (1.0 + ROUGH)), _MOST_DELTA)
            value, guess = read_delta(directed, infinite, epsilon, delta, rough)
        best, off = min(best, value), abs(math.log(max(guess, _LEAST_DELTA) / delta))
        if off < 0.02:
            if rough == accuracy or guess >= _MOST_DELTA:
                break
            rough = accuracy
        delta = guess
    loose = _is_by_renyi(found) or (found.selected and best > _LARGE)
    if loose and rdp_rejection(found, replace_one=replace_one) is None:
        best = min(best, renyi_delta(found, epsilon, replace_one=replace_one))
    cost = partial(pld_epsilon, found, replace_one=replace_one, accuracy=accuracy)
    # what rounding adds may keep a grid that is centered too low where it is
    far = _LEAST_DELTA < best < _MOST_DELTA and cost(best) < epsilon * (1.0 - 1e-5) - 1e-8
    return min(best, least_delta(cost, epsilon)) if far else best


def group_epsilon(found: Releases, delta: float, k: int, replace_one: bool) -> float:
    """Return epsilon at `delta` for groups of k records.

    Parameters
    ----------
    found : Releases
    delta : float
        In (0, 1).
    k : int
    replace_one : bool

    Returns
    -------
    float
        Epsilon in nats; inf if the profile is too short.
    """
    floor = max(math.log(delta) - _NEGLIGIBLE, _DEEPEST)
    while True:
        epsilon = group_profile(profile_pair(found, replace_one, floor), k).epsilon_at(delta)
        # what is left of a profile at its end counts e^epsilon times at most
        needed = max(math.log(delta) - _NEGLIGIBLE - min(epsilon, 2.0 * k * abs(floor)), _DEEPEST)
        if floor <= needed:
            return epsilon
        floor = max(2.0 * floor, needed, _DEEPEST) if epsilon == math.inf else needed


def group_delta(found: Releases, epsilon: float, k: int, replace_one: bool) -> float:
    """Return delta at `epsilon` for groups of k records; see `group_epsilon`."""
    floor = max(-40.0 - epsilon, _DEEPEST)
    return group_profile(profile_pair(found, replace_one, floor), k).delta_at(epsilon)
