"""Coupled runs with a shared transcript: two fits with the same releases, one with the canary and one without.

The fit without the canary is recorded first. The fit with it receives the noisy values and the lots of the first fit
instead of its own, with the canary in each lot. So both follow one trajectory, and the difference of the exact values
is the contribution of the canary to each release, its shift. The accountant computes the privacy loss of the shifts,
with the observed noise and not with the declared one. Everything else that the fits return must be bit-identical.
"""

from __future__ import annotations

import itertools
import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from skdp import accounting
from skdp.accounting import DpEvent, GaussianDpEvent, NoOpDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from skdp.accounting.formulas.numeric import bisect
from skdp.audit.checks import LEVEL, AuditFinding, check_release_noise, check_sampling, scale_interval
from skdp.audit.subjects import Attack, AuditedFit, Claim, Claims, Subject, parts_of
from skdp.audit.worst_case import GivenRows
from skdp.mechanisms.release_log import RecordedLot, RecordedRelease

_BEYOND, _N_THRESHOLDS = 12.0, 4001  # deviations beyond which nothing is sought, and where is
_LEAST_MASS = 1e-18

_Lots = tuple[float, float, int]  # rate, noise multiplier, and how many there are


def least_delta(event: DpEvent, epsilon: float, adjacency: str) -> float:
    """Return a lower bound on the delta of a composition at an epsilon, computed without the accountant.

    Parameters
    ----------
    event : DpEvent
        Gaussian releases, with or without Poisson sampling, each changed by its sensitivity, and counts with discrete
        Laplace noise. Other events are ignored.
    epsilon : float
    adjacency : {"zero_out", "add_remove", "replace_one"}

    Returns
    -------
    float
        In [0, 1]. 0.0 if `event` contains no such release.

    Notes
    -----
    The attack compares a weighted sum of the changes in the Gaussian releases with a threshold. It uses the full
    batches and the lots with the largest ratio of mean to standard deviation, with weights proportional to the means.
    If the record is in K lots, K binomial, the sum is Gaussian, so both error rates are sums over K. At any threshold,
    delta is at least the probability that one table exceeds it, minus ``exp(epsilon)`` times that of the other table
    (Dwork et al. 2006). For full batches alone this bound is exact (Balle & Wang 2018, theorem 8). Truncated
    probabilities decrease the first term and increase the second.

    A count that changes by k steps of a nats exceeds its new value with probability 1 / (1 + exp(-a)), and exp(-k a)
    times that from its old value. So delta is at least this probability times the delta of all other releases at
    epsilon - k a. ``"replace_one"`` has no smaller cost.
    """
    lots, full, mass, loss = defaultdict[tuple[float, float], int](int), 0.0, 1.0, 0.0
    for kind, count in _releases_of(event, 1):
        if isinstance(kind, GaussianDpEvent):
            full += count / kind.noise_multiplier**2
        elif isinstance(kind, PoissonSampledDpEvent) and isinstance(kind.event, GaussianDpEvent):
            lots[kind.sampling_probability, kind.event.noise_multiplier] += count
        elif isinstance(kind, accounting.DiscreteLaplaceDpEvent):
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
    thresholds = np.linspace(
        min(one.min(), other.min()) - _BEYOND, max(one.max(), other.max()) + _BEYOND, _N_THRESHOLDS
    )
    missing = max(0.0, 1.0 - float(masses.sum()))
    passed, raised = (masses @ stats.norm.sf(thresholds - each[:, None]) for each in (one, other))
    return max(0.0, float(np.max(passed - math.exp(epsilon) * (raised + missing))))


def _releases_of(event: DpEvent, times: int) -> Iterator[tuple[DpEvent, int]]:
    """The single releases of a composition, and how often there are."""
    if isinstance(event, accounting.ComposedDpEvent):
        for each in event.events:
            yield from _releases_of(each, times)
    elif isinstance(event, SelfComposedDpEvent):
        yield from _releases_of(event.event, times * event.count)
    else:
        yield event, times


LEAST_DELTA = 1e-12
"""Stands for a delta of 0, at which the bound is no less."""

_ROUNDING = 1e-6
_LEVELS = np.array([0.1, 0.3, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 1.0])  # of the largest shift
_ENOUGH = 100_000  # normals, of which the standard deviation is known to 1.1 percent at a level of 1e-6
_LOTS = 400
_FAR = 12  # deviations from which on nothing is left
_PATIENCE = 4.0
_SPLITS = 20  # of a search, until the canary was in each part of the rows


class World(NamedTuple):
    """One trajectory: a fit without a canary, and the changes of its releases for each view of the canaries.

    A view is a canary that is removed, or under ``"replace_one"`` a pair of canaries of which one replaces the other.
    `moves` has an array for each view and track, in units of the contribution of one record.
    """

    fitted: AuditedFit
    parts: Claims
    moves: list[list[np.ndarray]]


class RecordedLots:
    """Recorded noise by its kind, and lots by their distribution, over all fits."""

    def __init__(self) -> None:
        self.noise: dict[tuple[int, float], list[np.ndarray]] = defaultdict(list)
        self.lots: dict[tuple[float, int], list[np.ndarray]] = defaultdict(list)
        self.n_normals = 0
        self._are_words_repeated = False
        self._rng = np.random.default_rng(0)
        self._start = time.monotonic()

    def add(self, fitted: AuditedFit) -> None:
        """Record the noise and the lots of one fit."""
        self._are_words_repeated |= fitted.transcript.words.are_repeated
        for number, track in enumerate(fitted.tracks):
            for release in (each for each in track.releases if each.exact.size and np.isfinite(each.noisy).all()):
                self.noise[number, release.noise_multiplier].append(release.noise)
                self.n_normals += release.noise.size
            for lot in track.lots:
                if lot.rate < 1.0:
                    self.lots[lot.rate, lot.n_rows].append(lot.rows if lot.copies is None else self._rows_of(lot))

    def _rows_of(self, lot: RecordedLot) -> np.ndarray:
        """Numbers of rows of which equal ones are counted: any of the copies, evenly, make them those of a sample."""
        copies = lot.copies
        assert copies is not None
        group = np.repeat(np.arange(len(copies)), copies)
        order = np.lexsort((self._rng.random(lot.n_rows), group))
        place = np.arange(lot.n_rows) - (np.cumsum(copies) - copies)[group]
        return order[place < lot.rows[group]]

    def is_enough(self) -> bool:
        """Whether the distributions are known well enough; after some seconds less is enough."""
        patient = time.monotonic() - self._start < _PATIENCE
        enough, lots = (_ENOUGH, _LOTS) if patient else (_ENOUGH // 4, _LOTS // 4)
        of_rate: Counter[float] = Counter()  # a search draws lots of tables of many sizes
        for (rate, _), each in self.lots.items():
            of_rate[rate] += len(each)
        return self.n_normals >= enough and all(n_lots >= lots for n_lots in of_rate.values())

    def scale(self) -> float:
        """Upper bound on the standard deviation of the noise, relative to the declared one."""
        if not self.noise:
            return 1.0
        return scale_interval(np.concatenate([each for parts in self.noise.values() for each in parts]), 2 * LEVEL)[1]

    def findings(self) -> Iterator[AuditFinding]:
        """Violations of the declared noise and lots; releases of several scales may share their noise."""
        if self._are_words_repeated:
            yield AuditFinding(
                "noise", "A secret random word is drawn twice, so the noise computed from it is not independent."
            )
        n_tests = len(self.noise) + (len(self.noise) > 1)
        for parts in self.noise.values():
            yield from check_release_noise(parts, level=LEVEL / n_tests)
        if len(self.noise) > 1:
            # The first noise of each kind, then the second of each, and so on.
            turns = itertools.zip_longest(*self.noise.values())
            mixed = [each for turn in turns for each in turn if each is not None]
            yield from check_release_noise(mixed, level=LEVEL / n_tests)
        for (rate, n_rows), lots in self.lots.items():
            yield from check_sampling(lots, n_rows, rate, level=LEVEL / len(self.lots))


def replay(subject: Subject, seed: int, until: float) -> Attack:
    """Audit by coupled runs; no fit begins after the time `until` of the monotonic clock, except for the second.

    The first trajectory is run with every canary. The bound is the smallest epsilon over this and further trajectories.
    """
    recorded, found = RecordedLots(), []
    worlds: list[World] = []
    first = subject.fit(None, seed)
    if not first.tracks:
        return _without_releases(subject, first, seed)
    if time.monotonic() > until:
        raise ValueError(
            "`max_seconds` is shorter than one fit, but a bound requires two fits. Increase `max_seconds`."
        )
    parts, canaries = parts_of(first), subject.tables.canaries
    of_a_view = canaries_of_a_view(first, canaries)
    is_exchange = of_a_view == 2
    all_of_them = parts.given or is_exchange  # of which one may take the other's place
    if parts.given:
        canaries = canaries[:of_a_view]
    slow = until if all_of_them else min(until, time.monotonic() + _PATIENCE)  # further canaries are for quick fits
    n_splits = _SPLITS if parts.given and not is_exchange else 0  # those by number leave the last row where it is
    # Two trajectories, or those of a search until the canary was in each part of the rows.
    while (number := len(worlds)) < 2 or (number < n_splits and not _all_seen(worlds)):
        without = first if number == 0 else subject.fit(None, seed + number)
        recorded.add(without)
        shifts, reference = [], None if is_exchange else without  # a table with one row less is no neighbor
        for canary in canaries:
            fitted = subject.fit(canary, seed + number, without.transcript)
            reference = reference or fitted
            told = differences(reference, fitted)
            if not (without.is_finite() and fitted.is_finite()):
                told.append(
                    AuditFinding("shift", "A release contains a value that is not finite, which noise cannot hide.")
                )
            found += told
            if any(each.kind in ("post-processing", "shift") for each in told):
                break
            shifts.append(shifts_of(without, fitted))
            found += _counts_too_far(reference, fitted, 2.0 if is_exchange else 1.0)
            found += _drawn_more_than_once(without, fitted)
            if len(shifts) >= of_a_view and time.monotonic() > slow:
                break
        if is_seen := len(shifts) >= of_a_view:
            worlds.append(World(without, parts_of(without), views_of(shifts, without)))
            found += _too_far(worlds[-1])
        if not is_seen or time.monotonic() > slow:
            break
    further = seed + _SPLITS
    while first.is_finite() and not (recorded.is_enough() or time.monotonic() > until):
        recorded.add(subject.fit(None, further))
        further += 1
    return _read(first, worlds, recorded, subject.n_fits, [*dict.fromkeys(found), *recorded.findings()])


def canaries_of_a_view(first: AuditedFit, canaries: list[GivenRows]) -> int:
    """Return how many canaries make neighboring tables: two if one replaces the other, otherwise one."""
    n = 2 if first.model.adjacency_ == "replace_one" else 1
    if len(canaries) < n:
        raise ValueError(
            "adjacency='replace_one' requires two canaries, but X has only one. Pass two rows and two targets as "
            "`canary`, or set X=None."
        )
    return n


def _without_releases(subject: Subject, first: AuditedFit, seed: int) -> Attack:
    """What depends on a record although nothing was released.

    A fit that draws its noise elsewhere, where no seed reaches it, differs from a second fit to the same rows too, and
    nothing is known of it. Without such noise what depends on the record is private by nothing.
    """
    found, canaries = [], subject.tables.canaries
    if not differences(first, subject.fit(None, seed)):
        is_exchange = canaries_of_a_view(first, canaries) == 2  # a table with one row less is no neighbor
        reference = subject.fit(canaries[0], seed) if is_exchange else first
        found = [each for canary in canaries for each in differences(reference, subject.fit(canary, seed))]
    if not found:
        raise ValueError(
            f"{type(first.model).__name__} releases nothing through a mechanism, so there is nothing to audit."
        )
    assumed = {"nothing was released through a mechanism": 0.0}
    return Attack(first.model, assumed, 0.0, subject.n_fits, list(dict.fromkeys(found)))


# --- what the fits left behind ---


def differences(without: AuditedFit, fitted: AuditedFit) -> list[AuditFinding]:
    """Return results that are not a function of the releases."""
    if _declared(without) != _declared(fitted):
        text = "The number, shape, noise or sensitivity of releases depends on the record."
        return [AuditFinding("post-processing", text)]
    found = []
    one, other = without.published(), fitted.published()
    places = [place for place in {**one, **other} if one.get(place) != other.get(place)]
    if places:
        found.append(
            AuditFinding("post-processing", f"fit{places[0]} depends on the record, and not only through the releases.")
        )
    if without.messages != fitted.messages:
        found.append(AuditFinding("post-processing", "Messages of the fit depend on the record."))
    return found


def _too_far(world: World) -> list[AuditFinding]:
    """What moved by more than a sensitivity."""
    largest = max((float(moves.max()) for view in world.moves for moves in view if moves.size), default=0.0)
    text = f"The record changes a release by {largest:.4g} times its sensitivity."
    return [AuditFinding("shift", text)] if largest > 1.0 + _ROUNDING else []


def _declared(fitted: AuditedFit) -> list[list[tuple[Any, ...]]]:
    """What can be known of releases and lots without the rows."""
    return [
        [(e.names is None and e.exact.shape, e.noise_multiplier, e.sensitivity, e.lot and e.lot.rate) for e in releases]
        for releases in (track.releases for track in fitted.tracks)
    ]


def shifts_of(without: AuditedFit, fitted: AuditedFit) -> list[list[np.ndarray]]:
    """Return the change of each release of each track by the canary, in units of the sensitivity.

    Numbers that only the release with the canary has are ignored: their publication depends on the noisy threshold, so
    they are not part of a lower bound.
    """
    return [
        [
            (b.of_names(a.names, b.exact) - np.ravel(a.exact)) / a.sensitivity
            for a, b in zip(one.releases, other.releases, strict=True)
        ]
        for one, other in zip(without.tracks, fitted.tracks, strict=True)
    ]


def change(one: RecordedRelease, other: RecordedRelease) -> float:
    """Return the norm of the difference of two releases, in units of the sensitivity; missing names count as 0."""
    names = None if one.names is None or other.names is None else (*dict.fromkeys([*one.names, *other.names]),)
    moved = one.of_names(names, one.exact) - other.of_names(names, other.exact)
    return float(np.linalg.norm(moved, one.norm_order)) / one.sensitivity


def _counts_too_far(without: AuditedFit, fitted: AuditedFit, most: float) -> Iterator[AuditFinding]:
    """What moved by more than `most` of a sensitivity that is a sum of sizes, or a count that moved by more than 1."""
    for one, other, shifts in zip(without.tracks, fitted.tracks, shifts_of(without, fitted), strict=True):
        for release, near, shift in zip(one.releases, other.releases, shifts, strict=True):
            if release.names is not None and (far := change(release, near)) > most * (1.0 + _ROUNDING):
                yield AuditFinding("shift", f"The record changes a release by {far:.4g} times its sensitivity.")
            by = np.abs(shift).max(initial=0.0) * release.sensitivity
            if release.norm_order == 2 and release.is_whole and by > 1.0 + _ROUNDING:
                yield AuditFinding("shift", f"The record changes a count by {by:.4g}.")
            if release.norm_order == 1 and np.abs(shift).sum() > most + _ROUNDING:
                yield AuditFinding(
                    "shift", f"The record changes counts by {np.abs(shift).sum():.4g} times the sensitivity."
                )


def _drawn_more_than_once(without: AuditedFit, fitted: AuditedFit) -> Iterator[AuditFinding]:
    """Lots of rows where a record has several: some row of it is drawn more often than the rate says."""
    lots = [(one.lots, other.lots) for one, other in zip(without.tracks, fitted.tracks, strict=True)]
    pairs = [pair for each in lots for pair in zip(*each, strict=False) if pair[0].rate < 1.0]
    if (added := max((other.n_rows - one.n_rows for one, other in pairs), default=0)) > 1:
        yield AuditFinding(
            "sampling",
            f"A lot samples each of {added} rows of the record, but the record is accounted for as a single row.",
        )


# --- what the shifts are worth ---


def views_of(shifts: list[list[list[np.ndarray]]], without: AuditedFit) -> list[list[np.ndarray]]:
    """Return how far each view changes each release, from the shifts of each canary.

    A replacement changes a release by half of the difference, as ``"replace_one"`` counts it. In a lot, with shifts a
    and -b along their difference, the smaller one of a and b counts, because the best tests compare a sum with a
    threshold. For counts with discrete Laplace noise and a removed record, only the count that changes most is used.
    """
    is_exchange = without.model.adjacency_ == "replace_one"
    of_counts = 1 if is_exchange else math.inf
    orders = [[of_counts if each.norm_order == 1 else 2 for each in track.releases] for track in without.tracks]
    if not is_exchange:
        return [
            [
                np.array([np.linalg.norm(*each) if each[0].size else 0.0 for each in zip(*track, strict=True)])
                for track in zip(canary, orders, strict=True)
            ]
            for canary in shifts
        ]
    sampled = [[each.lot is not None and each.lot.rate < 1.0 for each in track.releases] for track in without.tracks]
    return [
        [
            np.array([_exchange(*four) for four in zip(*tracks, strict=True)])
            for tracks in zip(one, other, sampled, orders, strict=True)
        ]
        for one, other in itertools.combinations(shifts, 2)
    ]


def _exchange(one: np.ndarray, other: np.ndarray, is_sampled: bool, order: float) -> float:
    """How far an exchange of two shifts moves a release, in halves of the change."""
    distance = float(np.linalg.norm(one - other, order)) if one.size else 0.0
    if not is_sampled or distance == 0.0:
        return distance / 2.0
    along = (one - other) / distance
    return max(0.0, min(float(one @ along), -float(other @ along)))


def _read(
    first: AuditedFit, worlds: list[World], recorded: RecordedLots, n_fits: int, found: list[AuditFinding]
) -> Attack:
    """Compute the cost of what the canaries saw: of each view the least of its trajectories, of these the most."""
    model, scale = first.model, recorded.scale()
    parts = parts_of(first)
    epsilon, event = _bound(worlds, Claim("", parts.whole, model.epsilon_, model.delta_), scale)
    steps = {each.name: (_bound(worlds, each, scale)[0], each.claimed) for each in parts.parts}
    whole = [] if hasattr(model, "_fitted_tuning") else [Claim("", parts.whole, model.epsilon_, model.delta_)]
    for part in [*whole, *parts.parts]:
        found += itertools.islice((each for world in worlds for each in _undercharged(world, part)), 1)
    if isinstance(asked := getattr(model, "epsilon", None), float | int) and model.epsilon_ > asked * (1.0 + LEVEL):
        found.append(AuditFinding("charge", f"{model.epsilon_:.4g} is charged, but epsilon={asked:.4g} was set."))
    for name, (bound, claim) in steps.items():
        if bound > claim * (1.0 + LEVEL):
            found.append(AuditFinding("bound", f"{name}: epsilon is at least {bound:.4g}, but {claim:.4g} is claimed."))
    assumed = {"noise is normal with the observed scale, and lots have the stated rate": epsilon}
    return Attack(model, assumed, epsilon, n_fits, found, steps, event)


def _undercharged(world: World, claim: Claim) -> Iterator[AuditFinding]:
    """What costs more than is claimed if all that the canaries move at all moves as far as it may."""
    adjacency, name = world.fitted.model.adjacency_, claim.name and f"{claim.name}: "
    moved = [np.max(each, axis=0) > 0.0 for each in zip(*world.moves, strict=True)]
    moved = [_farthest(each) for each in moved] if claim.alone else moved
    declared = event_of(world.fitted, world.parts.tracks_of(claim.name), moved, 1.0)
    if (cost := least_epsilon(declared, claim.delta, adjacency)) > claim.claimed * (1.0 + LEVEL):
        yield AuditFinding("charge", f"{name}the releases cost {cost:.4g}, but {claim.claimed:.4g} is charged.")
    if least_delta(declared, claim.claimed, adjacency) > claim.delta * (1.0 + LEVEL) + LEAST_DELTA:
        yield AuditFinding("charge", f"{name}a noisy threshold reveals more than epsilon={claim.claimed:.4g} allows.")


def least_epsilon(event: DpEvent, delta: float, adjacency: str) -> float:
    """Return a lower bound on the privacy cost of an event.

    If one count changes by k steps of a nats, all numbers on one side have the privacy loss k a, and their probability
    is 1 / (1 + exp(-a)). So delta is at least that times 1 - exp(epsilon - k a). Under ``"replace_one"`` counts change
    by 2 k in total: at most 2 k counts, whose losses add up if each number is on its side. With discrete Gaussian noise
    the cost is no smaller than that of a removed record.
    """
    if isinstance(event, accounting.DiscreteLaplaceDpEvent):
        a, twice = event.noise_parameter, 2.0 * event.sensitivity
        loss, sides = (a * twice, twice) if adjacency == "replace_one" else (a * event.sensitivity, 1.0)
        missed = delta * math.exp(min(sides * math.log1p(math.exp(-a)), 700.0))
        return max(0.0, loss + math.log1p(-missed)) if missed < 1.0 else 0.0
    if isinstance(event, SelfComposedDpEvent) and isinstance(event.event, accounting.DiscreteGaussianDpEvent):
        return _least_of_counts(event.event.standard_deviation, event.count, delta)
    return accounting.get_epsilon_bounds(event, max(delta, LEAST_DELTA), adjacency=adjacency)[0]


def _least_of_counts(s: float, k: int, delta: float) -> float:
    """What k counts with discrete Gaussian noise cost at least that move by 1 each.

    The likelihood ratio depends on the sum of the counts alone, so delta is that of two laws of a sum, one of which is
    moved by k. The law is cut far out and computed to 1e-15; larger numbers than those of the one law, and a larger
    delta than the given one, make up for that.
    """
    reach = math.ceil(_FAR * s * math.sqrt(k)) + _FAR + k
    length = 1 << (2 * reach).bit_length()
    x = np.minimum(np.arange(length), length - np.arange(length))
    masses = np.exp(-0.5 * (x / s) ** 2)
    law = np.maximum(np.fft.irfft(np.fft.rfft(masses / masses.sum()) ** k, length), 0.0)
    one, other = law[: reach + 1], law[k : reach + 1 + k]  # losses fall with the sum; those above 0 are at the left
    one, other = np.concatenate([law[-reach:], one]), np.concatenate([law[-reach + k :], law[:k], other])
    target = max(delta, 1e-9) + length * 1e-15  # a law that is computed by sums can be read to this delta

    def spare(epsilon: float) -> float:
        return float(np.maximum(other - math.exp(epsilon) * (one + 1e-15), 0.0).sum()) - target

    return bisect(lambda epsilon: spare(epsilon) > 0.0, 0.0, 700.0, steps=60)[0] if spare(0.0) > 0.0 else 0.0


def _bound(worlds: list[World], part: Claim, scale: float) -> tuple[float, DpEvent]:
    """Epsilon of the view that sees the most of a part, the least of its trajectories, and the event that it sees.

    Of a search the most: which rows train is drawn without the data, and given.
    """
    # Of each trajectory, the releases that the claim is about, and the canaries that move them most.
    tracks = [(world, numbers) for world in worlds if (numbers := world.parts.tracks_of(part.name))]
    if not tracks:
        return 0.0, NoOpDpEvent()
    views = range(min(len(world.moves) for world, _ in tracks))
    best = max(views, key=lambda view: min(_strength(*each, view) for each in tracks), default=None)
    if best is None:
        return 0.0, NoOpDpEvent()
    moves = [list(map(_farthest, world.moves[best])) if part.alone else world.moves[best] for world, _ in tracks]
    events = [
        event_of(world.fitted, numbers, seen, scale) for (world, numbers), seen in zip(tracks, moves, strict=True)
    ]
    bounds = [least_epsilon(event, part.delta, worlds[0].fitted.model.adjacency_) for event in events]
    chosen = int(np.argmax(bounds) if worlds[0].parts.given else np.argmin(bounds))
    return bounds[chosen], events[chosen]


def _farthest(moves: np.ndarray) -> np.ndarray:
    """The moves of releases of which one alone is seen: that which moves farthest. All have the same noise."""
    return np.where(np.arange(len(moves)) == np.argmax(moves), moves, 0.0) if len(moves) else moves


def _all_seen(worlds: list[World]) -> bool:
    """Whether some world moves a score, and some a trial; or, of a fit in two parts, each of them some track."""
    seen = [{track for track, moves in enumerate(world.moves[0]) if np.any(moves)} for world in worlds]
    n_tracks, found = max((len(world.moves[0]) for world in worlds), default=0), set[int]().union(*seen)
    if worlds and hasattr(worlds[0].fitted.model, "_fitted_tuning"):
        return 0 in found and any(0 < track < n_tracks - 1 for track in found)
    return len(found) == n_tracks


def _strength(world: World, tracks: tuple[int, ...], view: int) -> float:
    """About the mu^2 of what is seen."""
    return sum(
        (move / release.noise_multiplier * (release.lot.rate if release.lot else 1.0)) ** 2
        for track in tracks
        for release, move in zip(world.fitted.tracks[track].releases, world.moves[view][track].tolist(), strict=True)
    )


def event_of(fitted: AuditedFit, tracks: tuple[int, ...], moves: list[Any], scale: float) -> DpEvent:
    """Return the event of the releases of some tracks with these changes, and noise of `scale` times the declared one.

    Changes under sampling are rounded down to few levels, each of which is one event. Counts of a lot are ignored. If a
    record replaces another, counts with discrete Gaussian noise, and counts in addition to other releases, are ignored
    too.
    """
    is_exchange = fitted.model.adjacency_ == "replace_one"
    squares, sampled, counts = 0.0, defaultdict(list), list[DpEvent]()
    for track in tracks:
        for release, move in zip(fitted.tracks[track].releases, moves[track].tolist(), strict=True):
            noise, move = release.noise_multiplier * scale, min(move, 1e90)  # the most that is computed
            rate = 1.0 if release.lot is None else release.lot.rate
            if release.is_whole and release.norm_order == 2:
                k = int((move * release.sensitivity) ** 2 + _ROUNDING)
                is_seen = rate == 1.0 and not is_exchange
                counts.append(_moved_counts(noise * release.sensitivity, k if is_seen else 0))
            elif release.norm_order == 1:
                steps = int(move * release.sensitivity + _ROUNDING) if rate == 1.0 else 0
                counts.append(_counting(1.0 / (noise * release.sensitivity), steps))
            elif rate == 1.0:
                squares += (move / noise) ** 2
            else:
                sampled[rate, noise].append(move)
    if is_exchange and (squares or sampled or len(counts) > 1):
        counts = []
    # Full batches are one release; lots of one rate and noise are rounded down to few levels of their moves.
    events = ([GaussianDpEvent(1.0 / math.sqrt(squares))] if squares else []) + counts
    for (rate, noise), found in sampled.items():
        levels = max(found) * _LEVELS
        numbers = np.bincount(np.digitize(np.array(found) * (1.0 + _ROUNDING), levels), minlength=len(levels) + 1)
        for level, count in zip(levels, numbers[1:].tolist(), strict=True):
            if count and level:
                events.append(SelfComposedDpEvent(PoissonSampledDpEvent(rate, GaussianDpEvent(noise / level)), count))
    return accounting.compose(events) if events else NoOpDpEvent()


def _moved_counts(standard_deviation: float, k: int) -> DpEvent:
    """Some counts that move by 1 each, with discrete Gaussian noise, where that has a privacy cost."""
    if not k or standard_deviation > 2e4:  # the most that is computed
        return NoOpDpEvent()
    return SelfComposedDpEvent(accounting.DiscreteGaussianDpEvent(standard_deviation), k)


def _counting(per_step: float, steps: int) -> DpEvent:
    """A count that moves by `steps`; of many steps the limit, which is told apart no better."""
    if steps > 1024:
        return accounting.LaplaceDpEvent(1.0 / (steps * per_step))
    return accounting.DiscreteLaplaceDpEvent(per_step, steps) if steps else NoOpDpEvent()
