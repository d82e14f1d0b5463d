"""A composition sorted by type of release, the input of the accounting methods."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from skdp.accounting.events.composition import flatten_own, group_event, parts_of
from skdp.accounting.events.kinds import FORMS, name_of, sampled_form
from skdp.accounting.events.specifications import (
    DpEvent,
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    RepeatAndSelectDpEvent,
    WorstOfDpEvent,
    ZCDpEvent,
    resolve,
)
from skdp.accounting.formulas.dominating import has_pair
from skdp.accounting.formulas.selection_law import NumberOfTrials

# fields of Releases whose entries have a number of repetitions
_COUNTED = (
    "sampled", "gaussian", "laplace", "epsilon_delta", "without_replacement", "sampled_pure", "selected", "others",
)  # fmt: skip


class PlainNoise(NamedTuple):
    """A Gaussian or Laplace release from all records: noise multiplier and number of repetitions."""

    noise: float
    times: int


class SampledGaussian(NamedTuple):
    """A Gaussian release from a sample: sampling rate, noise multiplier and number of repetitions."""

    rate: float
    noise: float
    times: int


class Statement(NamedTuple):
    """A release with a known (epsilon, delta) guarantee, and its number of repetitions."""

    epsilon: float
    delta: float
    times: int


class Concentrated(NamedTuple):
    """Zero-concentrated privacy: the Rényi divergence of every order alpha is at most xi + rho alpha."""

    rho: float
    xi: float


class OtherRelease(NamedTuple):
    """A release of another type: its event, sampled or not, and its number of repetitions."""

    event: DpEvent
    times: int


class Selection(NamedTuple):
    """Selection of one output of several releases.

    Attributes
    ----------
    runs : tuple of Releases
        Trial of each type; the largest privacy cost counts.
    trials : NumberOfTrials or None
        Number of trials, of which the best output is released. None for one trial without a selection, whose type is
        drawn at random or fixed in advance.
    times : int
    """

    runs: tuple[Releases, ...]
    trials: NumberOfTrials | None
    times: int

    @property
    def mean(self) -> float:
        """Expected number of trials."""
        return 1.0 if self.trials is None else self.trials.mean


# Entries are sorted by their text, and the last digits of sums depend on the order. A text without the names of classes
# and fields does not change if these are renamed.
for _entry in (PlainNoise, SampledGaussian, Statement, Concentrated, OtherRelease, Selection):
    _entry.__repr__ = tuple.__repr__  # type: ignore[method-assign]


_NOT_CONCENTRATED = Concentrated(0.0, 0.0)


@dataclass(frozen=True)
class Releases:
    """A composition in the form that the accounting methods read; the order does not matter.

    Attributes
    ----------
    mu_squared : float
        Sum of 1 / noise_multiplier^2 over the plain Gaussian releases. Their composition is a Gaussian mechanism with
        this squared mean shift (Dong, Roth & Su 2022, Corollary 3.3).
    sampled : tuple of SampledGaussian
        Sorted, as are all tuples here.
    non_private : bool
        Whether anything was released without a guarantee.
    gaussian : tuple of PlainNoise
        Plain Gaussian releases one by one, for methods that compute the cost of each step.
    laplace : tuple of PlainNoise
    epsilon_delta : tuple of Statement
    zcdp : Concentrated
        Sums over all `ZCDpEvent`s, which add up (Bun & Steinke 2016, Lemma 1.7); (0, 0) without any.
    without_replacement : tuple of SampledGaussian
        Gaussian releases from samples of fixed size.
    sampled_pure : tuple of OtherRelease
        Laplace and (epsilon, delta) releases from samples of both kinds.
    selected : tuple of Selection
    others : tuple of OtherRelease
    """

    mu_squared: float
    sampled: tuple[SampledGaussian, ...] = ()
    non_private: bool = False
    gaussian: tuple[PlainNoise, ...] = ()
    laplace: tuple[PlainNoise, ...] = ()
    epsilon_delta: tuple[Statement, ...] = ()
    zcdp: Concentrated = _NOT_CONCENTRATED
    without_replacement: tuple[SampledGaussian, ...] = ()
    sampled_pure: tuple[OtherRelease, ...] = ()
    selected: tuple[Selection, ...] = ()
    others: tuple[OtherRelease, ...] = ()

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """Names of the non-empty fields, in order, which `FORMS` compares with the supported ones of each method."""
        return tuple(kind for kind in FORMS if any(getattr(self, kind)))

    @property
    def kinds_of_steps(self) -> int:
        """Number of different steps, for methods that compute a guarantee for each."""
        return sum(len(getattr(self, name)) for name in _COUNTED)

    def adjacency_rejection(self, replace_one: bool) -> Exception | None:
        """Return the error if no method supports the adjacency, without a remedy; None otherwise."""
        fixed = ["SampledWithoutReplacementDpEvent"] if self.without_replacement else []
        fixed += [name_of(each.event) for each in self.paired if sampled_form(each.event)[0] == "fixed"]
        if not fixed or replace_one:
            return None
        return ValueError(f"{fixed[0]} requires adjacency='replace_one'")

    @property
    def paired(self) -> tuple[OtherRelease, ...]:
        """Releases whose event has a dominating pair: the `others`, and the `sampled_pure`."""
        return (*self.others, *self.sampled_pure)

    @property
    def most(self) -> int:
        """Largest number of repetitions of a release, in total or within a trial."""
        own = [entry.times for name in _COUNTED for entry in getattr(self, name)]
        return max(own + [run.most for each in self.selected for run in each.runs], default=0)

    @property
    def empty(self) -> bool:
        """Whether nothing at all was released."""
        return not self.kinds and not self.non_private

    @property
    def plain(self) -> bool:
        """Whether every release is a plain Gaussian."""
        return not self.non_private and set(self.kinds) <= {"gaussian"}


Runs = tuple[Releases, ...]


def _add_up(parts: list[Concentrated]) -> Concentrated:
    return Concentrated(*map(math.fsum, zip(*parts, strict=True))) if parts else _NOT_CONCENTRATED


def _field_and_entry(event: DpEvent, count: int) -> tuple[str, Any]:
    """Return the field of `Releases` for a basic event, and its entry; raise for unsupported events."""
    kind, share, inner = sampled_form(event)
    if isinstance(inner, GaussianDpEvent):
        noise = inner.noise_multiplier
        if kind == "all":
            return "gaussian", PlainNoise(noise, count)
        return "sampled" if kind == "poisson" else "without_replacement", SampledGaussian(share, noise, count)
    if isinstance(event, LaplaceDpEvent):
        return "laplace", PlainNoise(event.noise_multiplier, count)
    if isinstance(event, EpsilonDeltaDpEvent):
        return "epsilon_delta", Statement(event.epsilon, event.delta, count)
    if kind != "all" and isinstance(inner, (LaplaceDpEvent, EpsilonDeltaDpEvent)):
        return "sampled_pure", OtherRelease(event, count)
    if isinstance(event, ZCDpEvent):
        return "zcdp", Concentrated(count * event.rho, count * event.xi)
    if isinstance(event, RepeatAndSelectDpEvent):
        return "selected", Selection(_runs((event.event,)), NumberOfTrials(event.mean, event.shape), count)
    if isinstance(event, WorstOfDpEvent):
        return "selected", Selection(_runs(event.events), None, count)
    if has_pair(event):
        return "others", OtherRelease(event, count)
    raise TypeError(
        f"event={name_of(event)} is not supported by any accounting method. Sample and select only events listed in "
        f"docs/accounting.md, got {event!r}."
    )


def _runs(events: tuple[DpEvent, ...]) -> Runs:
    """Return the distinct events, sorted; a `WorstOfDpEvent` is replaced by its parts."""
    runs = set[Releases]()
    for found in map(_sort, events):
        # only the worst of several: replace it by its parts
        only = found.selected[0] if found.kinds == ("selected",) and len(found.selected) == 1 else None
        runs |= set(only.runs) if only and only.trials is None and only.times == 1 else {found}
    return tuple(sorted(runs, key=repr))


def releases(event: DpEvent) -> Releases:
    """Sort a composition by type of release; raise for unsupported events.

    Parameters
    ----------
    event : DpEvent

    Returns
    -------
    Releases
    """
    return _sort(resolve(event))


def releases_of_group(event: DpEvent, k: int) -> tuple[Releases, int]:
    """Sort a composition for groups of several records.

    Parameters
    ----------
    event : DpEvent
    k : int
        Number of records in which neighbors differ, at least 1.

    Returns
    -------
    found : Releases
        Releases of the event whose cost for one record is that for the group, or of `event` if there is no such event.
    left : int
        Group size for which the cost of `found` must still be computed: 1, or `k`.
    """
    event = resolve(event)
    grouped = group_event(event, k)
    return (_sort(event), k) if grouped is None else (_sort(grouped), 1)


@lru_cache(maxsize=4096)
def _sort(event: DpEvent) -> Releases:
    """Return `releases` of a resolved event; the cache compares events of this package only."""
    found: dict[str, list[Any]] = defaultdict(list)
    non_private = False
    for basic, count in flatten_own(event).items():
        if isinstance(basic, NonPrivateDpEvent):
            non_private = True
            continue
        if isinstance(basic, (RepeatAndSelectDpEvent, WorstOfDpEvent)):
            non_private |= any(_sort(part).non_private for part in parts_of(basic))
        kind, entry = _field_and_entry(basic, count)
        found[kind].append(entry)
    # events and compositions are not ordered: sort their entries by text
    by_text = ("sampled_pure", "selected", "others")
    entries: dict[str, Any] = {
        kind: tuple(sorted(found[kind], key=repr if kind in by_text else None)) for kind in _COUNTED
    }
    squares = sum(each.times / each.noise**2 for each in found["gaussian"])
    return Releases(squares, non_private=non_private, zcdp=_add_up(found["zcdp"]), **entries)


def pure_of_sample(event: DpEvent, change: float) -> tuple[float, float, float, bool]:
    """Return epsilon and delta of the event on a sample if neighbors differ by `change` times C, the sampling rate, and
    whether the output can reveal that the record was drawn, for replaced records (see `dominating`)."""
    kind, share, inner = sampled_form(event)
    if isinstance(inner, LaplaceDpEvent):
        return change / inner.noise_multiplier, 0.0, share, False
    assert isinstance(inner, EpsilonDeltaDpEvent)  # as `releases` sorts them
    return inner.epsilon, inner.delta, share, change > 1.0 and kind == "poisson"


def repeat(found: Releases, count: int) -> Releases:
    """Return the releases repeated `count` times."""

    def times(entries: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(entry._replace(times=entry.times * count) for entry in entries)

    counted: dict[str, Any] = {name: times(getattr(found, name)) for name in _COUNTED}
    zcdp = Concentrated(found.zcdp.rho * count, found.zcdp.xi * count)
    return replace(found, mu_squared=found.mu_squared * count, zcdp=zcdp, **counted)


def without_failures(found: Releases) -> Releases:
    """Return the releases with each (epsilon, delta) event replaced by its pure part."""
    if not found.epsilon_delta:
        return found
    return replace(found, epsilon_delta=tuple(each._replace(delta=0.0) for each in found.epsilon_delta))


def join(parts: Iterable[Releases]) -> Releases:
    """Return the composition of several compositions."""
    parts = tuple(parts)
    entries: dict[str, Any] = {
        name: tuple(sorted((e for p in parts for e in getattr(p, name)), key=repr)) for name in _COUNTED
    }
    return Releases(
        math.fsum(part.mu_squared for part in parts),
        non_private=any(part.non_private for part in parts),
        zcdp=_add_up([part.zcdp for part in parts]),
        **entries,
    )
