"""How events combine: `compose` joins them, `flatten` lists the basic releases they consist of."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, cast

from .events import (
    ComposedDpEvent,
    DpEvent,
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    RepeatAndSelectDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
    WorstOfDpEvent,
    ZCDpEvent,
)

__all__ = ["MOST_RELEASES", "Releases", "compose", "flatten", "joined", "releases", "repeated"]

# Of one kind, in a run or a try. Beyond it neither a grid nor doubles tell the loss of one release from nothing.
MOST_RELEASES = 10**12

# fields of Releases whose entries end with a count
_COUNTED = ("sampled", "gaussian", "laplace", "epsilon_delta", "without_replacement", "sampled_pure", "selected")


def _counted(event: DpEvent) -> tuple[DpEvent, int]:
    """An event without its self-compositions, and how often it occurs in them."""
    count = 1
    while isinstance(event, SelfComposedDpEvent):
        count *= event.count
        event = event.event
    return event, count


def _check_is_event(event: object) -> None:
    if not isinstance(event, DpEvent):
        raise TypeError(f"event={event!r} is not a DpEvent; give an event such as GaussianDpEvent(1.0).")


def compose(events: Iterable[DpEvent]) -> DpEvent:
    """Join events into one, counting equal neighbours instead of listing them.

    Parameters
    ----------
    events : iterable of DpEvent

    Returns
    -------
    DpEvent
        `NoOpDpEvent` for none, the event itself for one, otherwise `SelfComposedDpEvent` or
        `ComposedDpEvent`. Events without effect are left out.
    """
    runs: list[tuple[DpEvent, int]] = []
    for item in events:
        _check_is_event(item)
        event, count = _counted(item)
        if count == 0 or isinstance(event, NoOpDpEvent):
            continue
        if runs and runs[-1][0] == event:
            count += runs.pop()[1]
        runs.append((event, count))
    parts = tuple(event if count == 1 else SelfComposedDpEvent(event, count) for event, count in runs)
    if not parts:
        return NoOpDpEvent()
    return parts[0] if len(parts) == 1 else ComposedDpEvent(parts)


def _single(event: DpEvent) -> DpEvent:
    """An event that is applied to one sample, in its simplest equal form.

    Several Gaussian releases from the same sample are one Gaussian release: rescale and stack them
    (McMahan et al. 2018, arXiv:1812.06210, Section 3).
    """
    if not isinstance(event, (SelfComposedDpEvent, ComposedDpEvent)):
        return event
    found = flatten(event)
    if not found:
        return NoOpDpEvent()
    if any(isinstance(basic, NonPrivateDpEvent) for basic in found):
        return NonPrivateDpEvent()
    if len(found) == 1 and sum(found.values()) == 1:
        return next(iter(found))
    if all(isinstance(basic, GaussianDpEvent) for basic in found):
        squares = [count / cast(GaussianDpEvent, basic).noise_multiplier ** 2 for basic, count in found.items()]
        return GaussianDpEvent(1.0 / math.sqrt(math.fsum(squares)))
    return event


def _sampled(event: PoissonSampledDpEvent | SampledWithoutReplacementDpEvent) -> DpEvent:
    """A sampled event in its simplest equal form."""
    inner = _single(event.event)
    if isinstance(event, SampledWithoutReplacementDpEvent):
        share = event.sample_size / event.source_dataset_size
    else:
        share = event.sampling_probability
        while isinstance(inner, PoissonSampledDpEvent):
            share, inner = share * inner.sampling_probability, _single(inner.event)
    if share == 0.0 or isinstance(inner, NoOpDpEvent):
        return NoOpDpEvent()
    if share == 1.0 or isinstance(inner, NonPrivateDpEvent):
        return inner
    if isinstance(event, SampledWithoutReplacementDpEvent):
        return SampledWithoutReplacementDpEvent(event.source_dataset_size, event.sample_size, inner)
    return PoissonSampledDpEvent(share, inner)


def _worst(event: WorstOfDpEvent) -> DpEvent:
    """The worst of several events in its simplest equal form: each once, none without effect."""
    kept = tuple(part for part in dict.fromkeys(event.events) if flatten(part))
    if not kept:
        return NoOpDpEvent()
    return kept[0] if len(kept) == 1 else WorstOfDpEvent(kept)


def _simplified(event: DpEvent) -> DpEvent:
    """A basic event in its simplest equal form; `NoOpDpEvent` if it is without effect."""
    if isinstance(event, (PoissonSampledDpEvent, SampledWithoutReplacementDpEvent)):
        return _sampled(event)
    if isinstance(event, RepeatAndSelectDpEvent):
        if event.mean == 1.0 and event.shape < math.inf:
            return event.event  # one try, for certain
        return event if flatten(event.event) else NoOpDpEvent()
    if isinstance(event, WorstOfDpEvent):
        return _worst(event)
    if isinstance(event, EpsilonDeltaDpEvent) and event.epsilon == event.delta == 0.0:
        return NoOpDpEvent()
    if isinstance(event, ZCDpEvent) and event.rho == event.xi == 0.0:
        return NoOpDpEvent()
    return event


def _simplest(event: DpEvent) -> DpEvent:
    """Simplified until nothing changes."""
    while (simpler := _simplified(event)) is not event and simpler != event:
        event = simpler
    return event


def flatten(event: DpEvent) -> dict[DpEvent, int]:
    """Basic events of a composition and how often each occurs.

    Parameters
    ----------
    event : DpEvent

    Returns
    -------
    dict of DpEvent to int
        Keys are neither compositions nor without effect; sampling with probability 1 is undone. No count is above
        `MOST_RELEASES`: more are refused here, however they are nested.
    """
    found: dict[DpEvent, int] = {}
    stack: list[tuple[DpEvent, int]] = [(event, 1)]
    while stack:
        node, count = stack.pop()
        node = _simplest(node) if count > 0 else node
        if count == 0 or isinstance(node, NoOpDpEvent):
            continue
        if isinstance(node, SelfComposedDpEvent):
            stack.append((node.event, count * node.count))
        elif isinstance(node, ComposedDpEvent):
            stack.extend((part, count) for part in reversed(node.events))
        else:
            found[node] = found.get(node, 0) + count
            _check_count(node, found[node])
    return found


def _check_count(event: DpEvent, count: int) -> None:
    if count > MOST_RELEASES:
        raise ValueError(
            f"count: {type(event).__name__} about 10^{math.log10(count):.1f} times in all is not priced; make at most "
            f"10^{math.log10(MOST_RELEASES):.0f} releases of a kind."
        )


@dataclass(frozen=True)
class Releases:
    """A composition as the methods read it; order does not matter to any of them.

    Attributes
    ----------
    mu_squared : float
        Sum of 1 / noise_multiplier^2 over the plain Gaussian releases: together they are one Gaussian
        mechanism with this squared mean shift (Dong, Roth & Su 2022, Corollary 3.3).
    sampled : tuple of (sampling probability, noise multiplier, count)
        The Poisson-sampled Gaussian releases, sorted.
    non_private : bool
        Whether anything was released without a guarantee.
    gaussian : tuple of (noise multiplier, count)
        The plain Gaussian releases one by one, for methods that price each step on its own.
    laplace : tuple of (noise multiplier, count)
    epsilon_delta : tuple of (epsilon, delta, count)
    zcdp : tuple of (rho, xi)
        Sums over all `ZCDpEvent`s, which compose by addition (Bun & Steinke 2016, Lemma 1.7); (0, 0) for none.
    without_replacement : tuple of (sample size / source size, noise multiplier, count)
        Gaussian releases from samples of fixed size.
    sampled_pure : tuple of (kind, share, event, count)
        Laplace and (epsilon, delta) events on samples; `kind` is "poisson" or "fixed".
    selected : tuple of (runs, mean, shape, count)
        Selections, `runs` being the releases of one try of each kind, of which the worst counts. Mean 1 and
        shape 0 stand for no selection, just the worst of several.
    """

    mu_squared: float
    sampled: tuple[tuple[float, float, int], ...]
    non_private: bool
    gaussian: tuple[tuple[float, int], ...] = ()
    laplace: tuple[tuple[float, int], ...] = ()
    epsilon_delta: tuple[tuple[float, float, int], ...] = ()
    zcdp: tuple[float, float] = (0.0, 0.0)
    without_replacement: tuple[tuple[float, float, int], ...] = ()
    sampled_pure: tuple[tuple[str, float, DpEvent, int], ...] = ()
    selected: tuple[tuple[tuple[Releases, ...], float, float, int], ...] = ()

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the fields that hold something, in order; the methods say which of them they can price."""
        held = {
            "gaussian": self.mu_squared > 0.0,
            "sampled": bool(self.sampled),
            "laplace": bool(self.laplace),
            "epsilon_delta": bool(self.epsilon_delta),
            "zcdp": self.zcdp != (0.0, 0.0),
            "without_replacement": bool(self.without_replacement),
            "sampled_pure": bool(self.sampled_pure),
            "selected": bool(self.selected),
        }
        return tuple(kind for kind, present in held.items() if present)

    @property
    def most(self) -> int:
        """How often the most frequent release is made, in all or within a try."""
        own = [entry[-1] for name in _COUNTED for entry in getattr(self, name)]
        return max(own + [run.most for runs, *_ in self.selected for run in runs], default=0)

    @property
    def empty(self) -> bool:
        """Whether nothing at all was released."""
        return not self.kinds and not self.non_private

    @property
    def only_worst(self) -> tuple[Releases, ...] | None:
        """The parts, if this is the worst of several and nothing else."""
        if self.kinds != ("selected",) or len(self.selected) != 1:
            return None
        runs, mean, shape, count = self.selected[0]
        return runs if (mean, shape, count) == (1.0, 0.0, 1) else None

    @property
    def plain(self) -> bool:
        """Whether every release is a plain Gaussian."""
        return not self.non_private and set(self.kinds) <= {"gaussian"}


def _unknown(event: DpEvent) -> TypeError:
    inner = getattr(event, "event", None)
    name = type(event).__name__ + (f" of {type(inner).__name__}" if isinstance(inner, DpEvent) else "")
    return TypeError(
        f"event={name} has no price here by any method; sample and select only what is listed in docs/accounting.md: "
        f"{event!r}."
    )


class _Sorted:
    """Basic events on their way into `Releases`."""

    def __init__(self) -> None:
        self.gaussian: list[tuple[float, int]] = []
        self.sampled: list[tuple[float, float, int]] = []
        self.laplace: list[tuple[float, int]] = []
        self.epsilon_delta: list[tuple[float, float, int]] = []
        self.zcdp: list[tuple[float, float]] = []
        self.without_replacement: list[tuple[float, float, int]] = []
        self.sampled_pure: list[tuple[str, float, DpEvent, int]] = []
        self.selected: list[tuple[tuple[Releases, ...], float, float, int]] = []
        self.non_private = False

    def add(self, event: DpEvent, count: int) -> None:
        """Take in one kind of basic event, or refuse it by name."""
        if isinstance(event, GaussianDpEvent):
            self.gaussian.append((event.noise_multiplier, count))
        elif isinstance(event, LaplaceDpEvent):
            self.laplace.append((event.noise_multiplier, count))
        elif isinstance(event, EpsilonDeltaDpEvent):
            self.epsilon_delta.append((event.epsilon, event.delta, count))
        elif isinstance(event, ZCDpEvent):
            self.zcdp.append((count * event.rho, count * event.xi))
        elif isinstance(event, NonPrivateDpEvent):
            self.non_private = True
        elif isinstance(event, RepeatAndSelectDpEvent):
            self._add_selected((event.event,), event.mean, event.shape, count)
        elif isinstance(event, WorstOfDpEvent):
            self._add_selected(event.events, 1.0, 0.0, count)
        elif isinstance(event, (PoissonSampledDpEvent, SampledWithoutReplacementDpEvent)):
            self._add_sampled(event, count)
        else:
            raise _unknown(event)

    def _add_selected(self, events: tuple[DpEvent, ...], mean: float, shape: float, count: int) -> None:
        runs: list[Releases] = []
        for event in events:
            found = releases(event)
            self.non_private |= found.non_private
            worst = found.only_worst
            runs.extend((found,) if worst is None else worst)
        self.selected.append((tuple(sorted(set(runs), key=repr)), mean, shape, count))

    def _add_sampled(self, event: PoissonSampledDpEvent | SampledWithoutReplacementDpEvent, count: int) -> None:
        inner = event.event
        if isinstance(event, PoissonSampledDpEvent):
            kind, share, gaussian = "poisson", event.sampling_probability, self.sampled
        else:
            share = event.sample_size / event.source_dataset_size
            kind, gaussian = "fixed", self.without_replacement
        if isinstance(inner, GaussianDpEvent):
            gaussian.append((share, inner.noise_multiplier, count))
        elif isinstance(inner, (LaplaceDpEvent, EpsilonDeltaDpEvent)):
            self.sampled_pure.append((kind, share, inner, count))
        else:
            raise _unknown(event)

    def result(self) -> Releases:
        """What was taken in; sorted, so that equal compositions give equal releases."""
        return Releases(
            sum(count / noise**2 for noise, count in self.gaussian),
            tuple(sorted(self.sampled)),
            self.non_private,
            tuple(sorted(self.gaussian)),
            tuple(sorted(self.laplace)),
            tuple(sorted(self.epsilon_delta)),
            (math.fsum(rho for rho, _ in self.zcdp), math.fsum(xi for _, xi in self.zcdp)),
            tuple(sorted(self.without_replacement)),
            tuple(sorted(self.sampled_pure, key=repr)),
            tuple(sorted(self.selected, key=repr)),
        )


@lru_cache(maxsize=4096)
def releases(event: DpEvent) -> Releases:
    """Sort a composition by what the methods can price; refuse any other event by name.

    Parameters
    ----------
    event : DpEvent

    Returns
    -------
    Releases
    """
    _check_is_event(event)
    found = _Sorted()
    for basic, count in flatten(event).items():
        found.add(basic, count)
    return found.result()


def repeated(found: Releases, count: int) -> Releases:
    """The same releases, `count` times."""

    def times(entries: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple((*entry[:-1], entry[-1] * count) for entry in entries)

    counted: dict[str, Any] = {name: times(getattr(found, name)) for name in _COUNTED}
    rho, xi = found.zcdp
    return replace(found, mu_squared=found.mu_squared * count, zcdp=(rho * count, xi * count), **counted)


def joined(parts: Iterable[Releases]) -> Releases:
    """Several compositions as one."""
    parts = tuple(parts)
    entries: dict[str, Any] = {
        name: tuple(sorted((e for p in parts for e in getattr(p, name)), key=repr)) for name in _COUNTED
    }
    return Releases(
        math.fsum(part.mu_squared for part in parts),
        non_private=any(part.non_private for part in parts),
        zcdp=(math.fsum(part.zcdp[0] for part in parts), math.fsum(part.zcdp[1] for part in parts)),
        **entries,
    )
