"""A composition sorted by kind of release, as the methods read it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

from .events.composition import flatten_own, group_event
from .events.kinds import adjacency_refusal, is_priced, name_of, sampled_form
from .events.specifications import (
    DpEvent,
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    PoissonSampledDpEvent,
    RepeatAndSelectDpEvent,
    SampledWithoutReplacementDpEvent,
    WorstOfDpEvent,
    ZCDpEvent,
    resolve,
)
from .formulas.selection_law import NumberOfTrials

# fields of Releases whose entries are made a number of times
_COUNTED = (
    "sampled", "gaussian", "laplace", "epsilon_delta", "without_replacement", "sampled_pure", "selected", "others",
)  # fmt: skip


class PlainGaussian(NamedTuple):
    """A Gaussian release from all records, by its noise multiplier, and how many times it is made."""

    noise: float
    times: int


class SampledGaussian(NamedTuple):
    """A Gaussian release from a Poisson sample: sampling probability, noise multiplier, times it is made."""

    rate: float
    noise: float
    times: int


class FixedSample(NamedTuple):
    """A Gaussian release from a sample of fixed size: sample size / source size, noise multiplier, times it is made."""

    share: float
    noise: float
    times: int


class LaplaceRelease(NamedTuple):
    """A Laplace release from all records: scale of the noise / bound on one record, times it is made."""

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


class SampledPure(NamedTuple):
    """A Laplace or (epsilon, delta) release from a sample.

    Attributes
    ----------
    whole : PoissonSampledDpEvent or SampledWithoutReplacementDpEvent
        The event, sample and all.
    times : int
    """

    whole: PoissonSampledDpEvent | SampledWithoutReplacementDpEvent
    times: int

    @property
    def kind(self) -> str:
        """How records are sampled, "poisson" or "fixed"."""
        return sampled_form(self.whole)[0]

    @property
    def share(self) -> float:
        """Sampling probability, or sample size / source size."""
        return sampled_form(self.whole)[1]

    @property
    def event(self) -> DpEvent:
        """What is done to the sample."""
        return self.whole.event

    @property
    def name(self) -> str:
        """The event as messages name it."""
        return name_of(self.whole)

    @property
    def is_statement(self) -> bool:
        """Whether only (epsilon, delta)-privacy is known of what is done to the sample."""
        return isinstance(self.event, EpsilonDeltaDpEvent)

    def statement(self, change: float) -> tuple[float, float]:
        """Epsilon and delta of what is done to the sample, if neighbours differ by `change` times C."""
        if isinstance(self.event, LaplaceDpEvent):
            return change / self.event.noise_multiplier, 0.0
        assert isinstance(self.event, EpsilonDeltaDpEvent)  # as `releases` sorts them
        return self.event.epsilon, self.event.delta


class OtherRelease(NamedTuple):
    """A release by its event, sampled or not, and how many times it is made: what no other entry holds."""

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
for _entry in (
    PlainGaussian, SampledGaussian, FixedSample, LaplaceRelease, Statement, Concentrated, SampledPure, Selection,
    OtherRelease,
):  # fmt: skip
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
    gaussian : tuple of PlainGaussian
        The plain Gaussian releases one by one, for methods that price each step on its own.
    laplace : tuple of LaplaceRelease
    epsilon_delta : tuple of Statement
    zcdp : Concentrated
        Sums over all `ZCDpEvent`s, which compose by addition (Bun & Steinke 2016, Lemma 1.7); (0, 0) for none.
    without_replacement : tuple of FixedSample
    sampled_pure : tuple of SampledPure
    selected : tuple of Selection
    others : tuple of OtherRelease
    """

    mu_squared: float
    sampled: tuple[SampledGaussian, ...] = ()
    non_private: bool = False
    gaussian: tuple[PlainGaussian, ...] = ()
    laplace: tuple[LaplaceRelease, ...] = ()
    epsilon_delta: tuple[Statement, ...] = ()
    zcdp: Concentrated = _NOT_CONCENTRATED
    without_replacement: tuple[FixedSample, ...] = ()
    sampled_pure: tuple[SampledPure, ...] = ()
    selected: tuple[Selection, ...] = ()
    others: tuple[OtherRelease, ...] = ()

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the fields that hold something, in order; the methods say which of them they can price."""
        held = {
            "gaussian": self.mu_squared > 0.0,
            "sampled": bool(self.sampled),
            "laplace": bool(self.laplace),
            "epsilon_delta": bool(self.epsilon_delta),
            "zcdp": self.zcdp != _NOT_CONCENTRATED,
            "without_replacement": bool(self.without_replacement),
            "sampled_pure": bool(self.sampled_pure),
            "selected": bool(self.selected),
            "others": bool(self.others),
        }
        return tuple(kind for kind, present in held.items() if present)

    @property
    def kinds_of_steps(self) -> int:
        """How many different steps there are, for methods that make a statement of each; they price no other kinds."""
        return sum(len(getattr(self, name)) for name in _COUNTED)

    def adjacency_refusal(self, replace_one: bool) -> Exception | None:
        """Why there is no price under an adjacency, by any method and without a remedy; None if there may be one."""
        if self.without_replacement and not replace_one:
            return ValueError("SampledWithoutReplacementDpEvent has a price under adjacency='replace_one' alone")
        for each in self.paired:
            reason = adjacency_refusal(each.event, replace_one)
            if reason is not None:
                return ValueError(f"{name_of(each.event)} has a price {reason}")
        return None

    @property
    def paired(self) -> tuple[OtherRelease, ...]:
        """What has a dominating pair by its event: the `others`, and what is pure in a sample."""
        return (*self.others, *(OtherRelease(each.whole, each.times) for each in self.sampled_pure))

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
    def only_worst(self) -> tuple[Releases, ...] | None:
        """The parts, if this is the worst of several and nothing else."""
        if self.kinds != ("selected",) or len(self.selected) != 1:
            return None
        (only,) = self.selected
        return only.runs if only.trials is None and only.times == 1 else None

    @property
    def plain(self) -> bool:
        """Whether every release is a plain Gaussian."""
        return not self.non_private and set(self.kinds) <= {"gaussian"}


Runs = tuple[Releases, ...]


def _unknown(event: DpEvent) -> TypeError:
    return TypeError(
        f"event={name_of(event)} has no price here by any method; sample and select only what is listed in "
        f"docs/accounting.md: {event!r}."
    )


def _add_up(parts: list[Concentrated]) -> Concentrated:
    return Concentrated(*map(math.fsum, zip(*parts, strict=True))) if parts else _NOT_CONCENTRATED


class _Sorted:
    """Basic events on their way into `Releases`."""

    def __init__(self) -> None:
        self.gaussian: list[PlainGaussian] = []
        self.sampled: list[SampledGaussian] = []
        self.laplace: list[LaplaceRelease] = []
        self.epsilon_delta: list[Statement] = []
        self.zcdp: list[Concentrated] = []
        self.without_replacement: list[FixedSample] = []
        self.sampled_pure: list[SampledPure] = []
        self.selected: list[Selection] = []
        self.others: list[OtherRelease] = []
        self.non_private = False

    def add(self, event: DpEvent, count: int) -> None:
        """Take in one kind of basic event, or refuse it by name."""
        if isinstance(event, GaussianDpEvent):
            self.gaussian.append(PlainGaussian(event.noise_multiplier, count))
        elif isinstance(event, (PoissonSampledDpEvent, SampledWithoutReplacementDpEvent)):
            self._add_sampled(event, count)
        elif isinstance(event, LaplaceDpEvent):
            self.laplace.append(LaplaceRelease(event.noise_multiplier, count))
        elif isinstance(event, EpsilonDeltaDpEvent):
            self.epsilon_delta.append(Statement(event.epsilon, event.delta, count))
        elif isinstance(event, ZCDpEvent):
            self.zcdp.append(Concentrated(count * event.rho, count * event.xi))
        elif isinstance(event, NonPrivateDpEvent):
            self.non_private = True
        elif isinstance(event, RepeatAndSelectDpEvent):
            self._add_selected((event.event,), NumberOfTrials(event.mean, event.shape), count)
        elif isinstance(event, WorstOfDpEvent):
            self._add_selected(event.events, None, count)
        elif is_priced(event):
            self.others.append(OtherRelease(event, count))
        else:
            raise _unknown(event)

    def _add_selected(self, events: tuple[DpEvent, ...], trials: NumberOfTrials | None, count: int) -> None:
        runs: list[Releases] = []
        for event in events:
            found = _sort(event)
            self.non_private |= found.non_private
            worst = found.only_worst
            runs.extend((found,) if worst is None else worst)
        self.selected.append(Selection(tuple(sorted(set(runs), key=repr)), trials, count))

    def _add_sampled(self, event: PoissonSampledDpEvent | SampledWithoutReplacementDpEvent, count: int) -> None:
        kind, share, inner = sampled_form(event)
        if isinstance(inner, (LaplaceDpEvent, EpsilonDeltaDpEvent)):
            self.sampled_pure.append(SampledPure(event, count))
        elif not isinstance(inner, GaussianDpEvent):
            if not is_priced(event):
                raise _unknown(event)
            self.others.append(OtherRelease(event, count))
        elif kind == "poisson":
            self.sampled.append(SampledGaussian(share, inner.noise_multiplier, count))
        else:
            self.without_replacement.append(FixedSample(share, inner.noise_multiplier, count))

    def result(self) -> Releases:
        """What was taken in; sorted, so that equal compositions give equal releases."""
        return Releases(
            sum(each.times / each.noise**2 for each in self.gaussian),
            tuple(sorted(self.sampled)),
            self.non_private,
            tuple(sorted(self.gaussian)),
            tuple(sorted(self.laplace)),
            tuple(sorted(self.epsilon_delta)),
            _add_up(self.zcdp),
            tuple(sorted(self.without_replacement)),
            tuple(sorted(self.sampled_pure, key=repr)),
            tuple(sorted(self.selected, key=repr)),
            tuple(sorted(self.others, key=repr)),
        )


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
    found = _Sorted()
    for basic, count in flatten_own(event).items():
        found.add(basic, count)
    return found.result()


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
