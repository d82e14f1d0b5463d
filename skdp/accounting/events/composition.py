"""How events combine: `compose` joins them, `flatten` lists the basic releases they consist of.

`walk` visits all that an event is made of; `group_event` and `of_parts` make of it what follows from its parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, cast

from skdp.accounting.events.kinds import EVENT_KINDS, kind_of
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

# Of one kind, in a run or a trial. Beyond it neither a grid nor doubles distinguish the loss of one release from 0.
MOST_RELEASES = 10**12


def compose(events: Iterable[DpEvent]) -> DpEvent:
    """Join events into one, counting equal neighbours instead of listing them.

    Parameters
    ----------
    events : iterable of DpEvent
        Events to join, in order.

    Returns
    -------
    DpEvent
        `NoOpDpEvent` for none, the event itself for one, otherwise `SelfComposedDpEvent` or
        `ComposedDpEvent`. Events without effect are left out.
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
    """An event that is applied to one sample, in its simplest equal form.

    Several Gaussian releases from the same sample are one Gaussian release: rescale and stack them
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
    """A sampled event in its simplest equal form."""
    inner = _simplify_inner(event.event)
    if isinstance(event, SampledWithoutReplacementDpEvent):
        share = event.sample_size / event.source_dataset_size
    else:
        share = event.sampling_probability
        while isinstance(inner, PoissonSampledDpEvent):
            share, inner = share * inner.sampling_probability, _simplify_inner(inner.event)
    if share == 0.0 or isinstance(inner, NoOpDpEvent):
        return NoOpDpEvent()
    if share == 1.0 or isinstance(inner, NonPrivateDpEvent):
        return inner
    if isinstance(event, SampledWithoutReplacementDpEvent):
        return SampledWithoutReplacementDpEvent(event.source_dataset_size, event.sample_size, inner)
    return PoissonSampledDpEvent(share, inner)


def _simplify_basic(event: DpEvent) -> DpEvent:
    """An event without parts, or nothing if it is without effect."""
    return event if kind_of(event).has_effect(event) else NoOpDpEvent()


def _simplify_once(event: DpEvent) -> DpEvent:
    """A basic event in its simplest equal form; `NoOpDpEvent` if it is without effect."""
    if isinstance(event, (PoissonSampledDpEvent, SampledWithoutReplacementDpEvent)):
        return _simplify_sampled(event)
    if isinstance(event, RepeatAndSelectDpEvent):
        if event.mean == 1.0 and event.shape < math.inf:
            return event.event  # one trial, for certain
        return event if flatten_own(event.event) else NoOpDpEvent()
    if isinstance(event, WorstOfDpEvent):  # each once, none without effect
        kept = tuple(part for part in dict.fromkeys(event.events) if flatten_own(part))
        if not kept:
            return NoOpDpEvent()
        return kept[0] if len(kept) == 1 else WorstOfDpEvent(kept)
    return _simplify_basic(event)


def flatten(event: DpEvent) -> dict[DpEvent, int]:
    """Basic events of a composition and how often each occurs.

    Parameters
    ----------
    event : DpEvent
        Event to take apart.

    Returns
    -------
    dict of DpEvent to int
        Keys are neither compositions nor without effect; sampling with probability 1 is undone. No count is above
        `MOST_RELEASES`: more are refused here, however they are nested.
    """
    return flatten_own(resolve(event))


def flatten_own(event: DpEvent) -> dict[DpEvent, int]:
    """`flatten` of an event of this package's own types."""
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
                    f"count: {type(node).__name__} about 10^{math.log10(found[node]):.1f} times in all is not priced; "
                    f"make at most 10^{math.log10(MOST_RELEASES):.0f} releases of a kind."
                )
    return found


def parts_of(event: DpEvent) -> tuple[DpEvent, ...]:
    """What an event is made of, each part once; nothing of a basic one."""
    whole: Any = event
    if hasattr(event, "events"):
        return cast(tuple[DpEvent, ...], whole.events)
    return (whole.event,) if hasattr(event, "event") else ()


def walk(event: DpEvent) -> Iterator[DpEvent]:
    """An event and all that it is made of, down to basic ones: those of samples, of trials and of possibilities too.

    Parameters
    ----------
    event : DpEvent

    Yields
    ------
    DpEvent
        Of a type in this package.
    """
    stack = [resolve(event)]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(parts_of(node)))


def of_parts(event: DpEvent, change: Callable[[DpEvent], DpEvent | None]) -> DpEvent | None:
    """An event with `change` made to each of its parts; None if it has none, or one of them has no change."""
    whole: Any = event
    several, changed = hasattr(event, "events"), tuple(change(part) for part in parts_of(event))
    if None in changed or not (several or changed):
        return None
    return cast(DpEvent, replace(whole, events=changed) if several else replace(whole, event=changed[0]))


def group_event(event: DpEvent, k: int) -> DpEvent | None:
    """The event whose price for one record is that of `event` for a group of k; see `kinds`, with proofs.

    Parameters
    ----------
    event : DpEvent
        Of a type in this package.
    k : int
        Records in which neighbours differ, 1 or more.

    Returns
    -------
    DpEvent or None
        None where no event says it.
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
