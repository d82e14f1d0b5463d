"""How events combine: `compose` joins them, `flatten` lists the basic releases they consist of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from .events import (
    ComposedDpEvent,
    DpEvent,
    GaussianDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
)

__all__ = ["Releases", "compose", "flatten", "releases"]


def _counted(event: DpEvent) -> tuple[DpEvent, int]:
    """An event without its self-compositions, and how often it occurs in them."""
    count = 1
    while isinstance(event, SelfComposedDpEvent):
        count *= event.count
        event = event.event
    return event, count


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


def _sampled(event: PoissonSampledDpEvent) -> DpEvent:
    """A sampled event in its simplest equal form."""
    q, inner = event.sampling_probability, event.event
    while isinstance(inner, (SelfComposedDpEvent, PoissonSampledDpEvent)):
        if isinstance(inner, PoissonSampledDpEvent):
            q, inner = q * inner.sampling_probability, inner.event
        elif inner.count == 1:
            inner = inner.event
        elif inner.count == 0:
            return NoOpDpEvent()
        else:
            break
    if q == 0.0 or isinstance(inner, NoOpDpEvent):
        return NoOpDpEvent()
    if q == 1.0 or isinstance(inner, NonPrivateDpEvent):
        return inner
    return PoissonSampledDpEvent(q, inner)


def flatten(event: DpEvent) -> dict[DpEvent, int]:
    """Basic events of a composition and how often each occurs.

    Parameters
    ----------
    event : DpEvent

    Returns
    -------
    dict of DpEvent to int
        Keys are neither compositions nor without effect; sampling with probability 1 is undone.
    """
    found: dict[DpEvent, int] = {}
    stack: list[tuple[DpEvent, int]] = [(event, 1)]
    while stack:
        node, count = stack.pop()
        if isinstance(node, PoissonSampledDpEvent):
            node = _sampled(node)
        if count == 0 or isinstance(node, NoOpDpEvent):
            continue
        if isinstance(node, SelfComposedDpEvent):
            stack.append((node.event, count * node.count))
        elif isinstance(node, ComposedDpEvent):
            stack.extend((part, count) for part in reversed(node.events))
        else:
            found[node] = found.get(node, 0) + count
    return found


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
    """

    mu_squared: float
    sampled: tuple[tuple[float, float, int], ...]
    non_private: bool

    @property
    def empty(self) -> bool:
        """Whether nothing at all was released."""
        return not self.sampled and self.mu_squared == 0.0 and not self.non_private

    @property
    def plain(self) -> bool:
        """Whether every release is a plain Gaussian."""
        return not self.sampled and not self.non_private


def _unknown(event: DpEvent) -> TypeError:
    return TypeError(
        f"event={event!r} has no price here; use Gaussian or Poisson-sampled Gaussian events and their compositions."
    )


@lru_cache(maxsize=4096)
def releases(event: DpEvent) -> Releases:
    """Sort a composition into what the methods can price; refuse any other event by name.

    Parameters
    ----------
    event : DpEvent

    Returns
    -------
    Releases
    """
    if not isinstance(cast(object, event), DpEvent):
        raise TypeError(f"event={event!r} is not a DpEvent; give an event such as GaussianDpEvent(1.0).")
    mu_squared, non_private = 0.0, False
    sampled: list[tuple[float, float, int]] = []
    for basic, count in flatten(event).items():
        if isinstance(basic, GaussianDpEvent):
            mu_squared += count / basic.noise_multiplier**2
        elif isinstance(basic, NonPrivateDpEvent):
            non_private = True
        elif isinstance(basic, PoissonSampledDpEvent) and isinstance(basic.event, GaussianDpEvent):
            sampled.append((basic.sampling_probability, basic.event.noise_multiplier, count))
        else:
            raise _unknown(basic)
    return Releases(mu_squared, tuple(sorted(sampled)), non_private)
