"""A composition sorted by kind of release, as the methods read it."""

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

# fields of Releases whose entries are made a number of times
_COUNTED = (
    "sampled", "gaussian", "laplace", "epsilon_delta", "without_replacement", "sampled_pure", "selected", "others",
)  # fmt: skip


class PlainNoise(NamedTuple):
    """A Gaussian or Laplace release from all records: noise multiplier, times it is made."""

    noise: float
    times: int


class SampledGaussian(NamedTuple):
    """A Gaussian release from a sample: sampling probability or sample size / source size, noise multiplier, times."""

    rate: float
    noise: float
    times: int


class Statement(NamedTuple):
    """A release of which only (epsilon, delta)-privacy is known, and times it is made."""

    epsilon: float
    delta: float
    times: int


class Concentrated(NamedTuple):
    """Zero-concentrated privacy: the Rényi divergence of every order alpha is at most xi + rho alpha."""

    rho: float
    xi: float


class OtherRelease(NamedTuple):
    """A release that no other entry holds: its event, sampled or not, and times it is made."""

    event: DpEvent
    times: int


class Selection(NamedTuple):
    """Releases of which one output is released.

    Attributes
    ----------
    runs : tuple of Releases
        One try, of each kind; the worst of them counts.
    trials : NumberOfTrials or None
        How often one is tried, the best output being released; None where nothing is selected and one of the
        kinds, which one being drawn at random or fixed beforehand, is all that happens.
    times : int
    """

    runs: tuple[Releases, ...]
    trials: NumberOfTrials | None
    times: int

    @property
    def mean(self) -> float:
        """Expected number of trials."""
        return 1.0 if self.trials is None else self.trials.mean


# Entries are sorted by their text, and sums over them have the last digits of that order: a text without names of
# classes and fields keeps both, whatever those are called.
for _entry in (PlainNoise, SampledGaussian, Statement, Concentrated, OtherRelease, Selection):
    _entry.__repr__ = tuple.__repr__  # type: ignore[method-assign]


_NOT_CONCENTRATED = Concentrated(0.0, 0.0)


@dataclass(frozen=True)
class Releases:
    """A composition as the methods read it; order does not matter to any of them.

    Attributes
    ----------
    mu_squared : float
        Sum of 1 / noise_multiplier^2 over the plain Gaussian releases: together they are one Gaussian
        mechanism with this squared mean shift (Dong, Roth & Su 2022, Corollary 3.3).
    sampled : tuple of SampledGaussian
        Sorted, as are all tuples here.
    non_private : bool
        Whether anything was released without a guarantee.
    gaussian : tuple of PlainNoise
        The plain Gaussian releases one by one, for methods that compute a cost for each step on its own.
    laplace : tuple of PlainNoise
    epsilon_delta : tuple of Statement
    zcdp : Concentrated
        Sums over all `ZCDpEvent`s, which compose by addition (Bun & Steinke 2016, Lemma 1.7); (0, 0) for none.
    without_replacement : tuple of SampledGaussian
        From samples of fixed size.
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
        """Names of the fields that hold something, in order; the methods say which of them they can price."""
        return tuple(kind for kind in FORMS if any(getattr(self, kind)))

    @property
    def kinds_of_steps(self) -> int:
        """How many different steps there are, for methods that make a statement of each; they price no other kinds."""
        return sum(len(getattr(self, name)) for name in _COUNTED)

    def adjacency_refusal(self, replace_one: bool) -> Exception | None:
        """Why there is no price under an adjacency, by any method and without a remedy; None if there may be one."""
        fixed = ["SampledWithoutReplacementDpEvent"] if self.without_replacement else []
        fixed += [name_of(each.event) for each in self.paired if sampled_form(each.event)[0] == "fixed"]
        if not fixed or replace_one:
            return None
        return ValueError(f"{fixed[0]} has a price under adjacency='replace_one' alone")

    @property
    def paired(self) -> tuple[OtherRelease, ...]:
        """What has a dominating pair by its event: the `others`, and what is pure in a sample."""
        return (*self.others, *self.sampled_pure)

    @property
    def most(self) -> int:
        """How often the most frequent release is made, in all or within a trial."""
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
    """The field of `Releases` that holds a basic event, and its entry there; refuse any other event by name."""
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
        f"event={name_of(event)} has no price here by any method; sample and select only what is listed in "
        f"docs/accounting.md: {event!r}."
    )


def _runs(events: tuple[DpEvent, ...]) -> Runs:
    """Each of several events once, sorted; of the worst of several its parts."""
    runs = set[Releases]()
    for found in map(_sort, events):
        # the worst of several and nothing else: its parts stand in its place
        only = found.selected[0] if found.kinds == ("selected",) and len(found.selected) == 1 else None
        runs |= set(only.runs) if only and only.trials is None and only.times == 1 else {found}
    return tuple(sorted(runs, key=repr))


def releases(event: DpEvent) -> Releases:
    """Sort a composition by what the methods can price; refuse any other event by name.

    Parameters
    ----------
    event : DpEvent

    Returns
    -------
    Releases
    """
    return _sort(resolve(event))


def releases_of_group(event: DpEvent, k: int) -> tuple[Releases, int]:
    """Sort what a composition is for groups of several records.

    Parameters
    ----------
    event : DpEvent
    k : int
        Records in which neighbours differ, 1 or more.

    Returns
    -------
    found : Releases
        Of the event whose price for one record is that for the group; of `event` itself where no event says it.
    left : int
        For groups of how many records `found` has still to be priced: 1, or `k`.
    """
    event = resolve(event)
    grouped = group_event(event, k)
    return (_sort(event), k) if grouped is None else (_sort(grouped), 1)


@lru_cache(maxsize=4096)
def _sort(event: DpEvent) -> Releases:
    """`releases` of an event that is resolved: what is cached is compared by types of our own alone."""
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
    # events and compositions have no order of their own: their entries are sorted by text
    by_text = ("sampled_pure", "selected", "others")
    entries: dict[str, Any] = {
        kind: tuple(sorted(found[kind], key=repr if kind in by_text else None)) for kind in _COUNTED
    }
    squares = sum(each.times / each.noise**2 for each in found["gaussian"])
    return Releases(squares, non_private=non_private, zcdp=_add_up(found["zcdp"]), **entries)


def pure_of_sample(event: DpEvent, change: float) -> tuple[float, float, float, bool]:
    """Epsilon and delta of what is done to a sample if neighbors differ by `change` times C, the share of the sample,
    and whether the output may show that the record was drawn: of replaced records (see `dominating`)."""
    kind, share, inner = sampled_form(event)
    if isinstance(inner, LaplaceDpEvent):
        return change / inner.noise_multiplier, 0.0, share, False
    assert isinstance(inner, EpsilonDeltaDpEvent)  # as `releases` sorts them
    return inner.epsilon, inner.delta, share, change > 1.0 and kind == "poisson"


def repeat(found: Releases, count: int) -> Releases:
    """The same releases, `count` times."""

    def times(entries: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(entry._replace(times=entry.times * count) for entry in entries)

    counted: dict[str, Any] = {name: times(getattr(found, name)) for name in _COUNTED}
    zcdp = Concentrated(found.zcdp.rho * count, found.zcdp.xi * count)
    return replace(found, mu_squared=found.mu_squared * count, zcdp=zcdp, **counted)


def without_failures(found: Releases) -> Releases:
    """The releases with each (epsilon, delta) event replaced by its pure part."""
    if not found.epsilon_delta:
        return found
    return replace(found, epsilon_delta=tuple(each._replace(delta=0.0) for each in found.epsilon_delta))


def join(parts: Iterable[Releases]) -> Releases:
    """Several compositions as one."""
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
