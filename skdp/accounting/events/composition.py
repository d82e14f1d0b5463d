"""Composition of events: `compose` joins events, and `flatten` lists the basic releases of an event.

`walk` yields an event and all its parts; `of_parts` and `group_event` transform an event by transforming its parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, cast

from skdp.accounting.events.kinds import EVENT_KINDS, kind_of, sampled_form
from skdp.accounting.events.specifications import (
    ComposedDpEvent,
    DpEvent,
    GaussianDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    RepeatAndSelectDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
    WorstOfDpEvent,
    resolve,
)

# Limit for one type of release, in a run or a trial. Beyond it, the loss of one release is numerically 0.
MOST_RELEASES = 10**12


def compose(events: Iterable[DpEvent]) -> DpEvent:
    """Compose events into one event.

    Equal consecutive events are counted instead of listed.

    Parameters
    ----------
    events : iterable of DpEvent
        Events to join, in order.

    Returns
    -------
    DpEvent
        `NoOpDpEvent` without events, the event itself for one, otherwise `SelfComposedDpEvent` or `ComposedDpEvent`.
        Events without effect are omitted.

    Examples
    --------
    >>> from skdp.accounting import GaussianDpEvent, compose
    >>> compose([GaussianDpEvent(2.0), GaussianDpEvent(2.0)])
    SelfComposedDpEvent(event=GaussianDpEvent(noise_multiplier=2.0), count=2)
    """
    runs: list[tuple[DpEvent, int]] = []
    for item in events:
        event: DpEvent = resolve(item)
        count = 1
        while isinstance(event, SelfComposedDpEvent):
            count *= event.count
            event = event.event
        if count == 0 or isinstance(event, NoOpDpEvent):
            continue
        if runs and runs[-1][0] == event:
            count += runs.pop()[1]
        runs.append((event, count))
    parts = [event if count == 1 else SelfComposedDpEvent(event, count) for event, count in runs]
    if not parts:
        return NoOpDpEvent()
    return parts[0] if len(parts) == 1 else ComposedDpEvent(tuple(parts))


def _simplify_inner(event: DpEvent) -> DpEvent:
    """Simplify an event that is applied to one sample.

    Several Gaussian releases from the same sample equal one Gaussian release, after rescaling and stacking
    (McMahan et al. 2018, arXiv:1812.06210, Section 3).
    """
    if not isinstance(event, (SelfComposedDpEvent, ComposedDpEvent)):
        return _simplify_basic(event)
    found = flatten_own(event)
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


def _simplify_sampled(event: PoissonSampledDpEvent | SampledWithoutReplacementDpEvent) -> DpEvent:
    """Simplify a sampled event."""
    kind, share, sampled = sampled_form(event)
    inner = _simplify_inner(sampled)
    while kind == "poisson" and isinstance(inner, PoissonSampledDpEvent):
        share, inner = share * inner.sampling_probability, _simplify_inner(inner.event)
    if share == 0.0 or isinstance(inner, NoOpDpEvent):
        return NoOpDpEvent()
    if share == 1.0 or isinstance(inner, NonPrivateDpEvent):
        return inner
    return PoissonSampledDpEvent(share, inner) if kind == "poisson" else replace(event, event=inner)


def _simplify_basic(event: DpEvent) -> DpEvent:
    """Return an event without parts; `NoOpDpEvent` if it has no effect."""
    return event if kind_of(event).has_effect(event) else NoOpDpEvent()


def _simplify_once(event: DpEvent) -> DpEvent:
    """Simplify a basic event; return `NoOpDpEvent` if it has no effect."""
    if isinstance(event, (PoissonSampledDpEvent, SampledWithoutReplacementDpEvent)):
        return _simplify_sampled(event)
    if isinstance(event, RepeatAndSelectDpEvent):
        if event.mean == 1.0 and event.shape < math.inf:
            return event.event  # always one trial
        return event if flatten_own(event.event) else NoOpDpEvent()
    if isinstance(event, WorstOfDpEvent):  # without duplicates and events without effect
        kept = tuple(part for part in dict.fromkeys(event.events) if flatten_own(part))
        if not kept:
            return NoOpDpEvent()
        return kept[0] if len(kept) == 1 else WorstOfDpEvent(kept)
    return _simplify_basic(event)


def flatten(event: DpEvent) -> dict[DpEvent, int]:
    """Return the basic events of a composition and their numbers.

    Parameters
    ----------
    event : DpEvent
        Event to decompose.

    Returns
    -------
    dict of DpEvent to int
        Number of each basic event. Compositions are expanded, events without effect are omitted, and sampling with
        probability 1 is removed.

    Raises
    ------
    ValueError
        If an event occurs more than 10^12 times.
    """
    return flatten_own(resolve(event))


def flatten_own(event: DpEvent) -> dict[DpEvent, int]:
    """Return `flatten` of a resolved event."""
    found: dict[DpEvent, int] = {}
    stack: list[tuple[DpEvent, int]] = [(event, 1)]
    while stack:
        node, count = stack.pop()
        # until nothing changes
        while count > 0 and (simpler := _simplify_once(node)) is not node and simpler != node:
            node = simpler
        if count == 0 or isinstance(node, NoOpDpEvent):
            continue
        if isinstance(node, SelfComposedDpEvent):
            stack.append((node.event, count * node.count))
        elif isinstance(node, ComposedDpEvent):
            stack.extend((part, count) for part in reversed(node.events))
        else:
            found[node] = found.get(node, 0) + count
            if found[node] > MOST_RELEASES:
                raise ValueError(
                    f"The number of {type(node).__name__}s must be at most 10^{math.log10(MOST_RELEASES):.0f}, "
                    f"got about 10^{math.log10(found[node]):.1f}."
                )
    return found


def parts_of(event: DpEvent) -> tuple[DpEvent, ...]:
    """Return the parts of an event; empty for a basic event."""
    whole: Any = event
    if hasattr(event, "events"):
        return cast(tuple[DpEvent, ...], whole.events)
    return (whole.event,) if hasattr(event, "event") else ()


def walk(event: DpEvent) -> Iterator[DpEvent]:
    """Yield an event and all its parts, including those of samples, trials and alternatives.

    Parameters
    ----------
    event : DpEvent

    Yields
    ------
    DpEvent
        Event of a type in this package.
    """
    stack = [resolve(event)]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(parts_of(node)))


def of_parts(event: DpEvent, change: Callable[[DpEvent], DpEvent | None]) -> DpEvent | None:
    """Return an event with `change` applied to each part; None without parts, or if a change is None."""
    whole: Any = event
    several, changed = hasattr(event, "events"), tuple(change(part) for part in parts_of(event))
    if None in changed or not (several or changed):
        return None
    return cast(DpEvent, replace(whole, events=changed) if several else replace(whole, event=changed[0]))


def group_event(event: DpEvent, k: int) -> DpEvent | None:
    """Return an event whose privacy cost for one record is that of `event` for a group of k; see `kinds` for proofs.

    Parameters
    ----------
    event : DpEvent
        Event of a type in this package.
    k : int
        Number of records in which neighbors differ, at least 1.

    Returns
    -------
    DpEvent or None
        None if there is no such event.
    """
    if k == 1:
        return event
    if type(event) not in EVENT_KINDS:
        return None
    if isinstance(event, PoissonSampledDpEvent) and event.sampling_probability in (0.0, 1.0):
        return group_event(event.event if event.sampling_probability == 1.0 else NoOpDpEvent(), k)
    kind = kind_of(event)
    if kind.grouped is not None:
        return kind.grouped(event, k)
    return of_parts(event, lambda part: group_event(part, k)) if kind.sample is None else None
