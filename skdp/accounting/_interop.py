"""Conversion of events to those of Google's dp-accounting."""

from __future__ import annotations

from typing import Any

from .events import (
    ComposedDpEvent,
    DpEvent,
    GaussianDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
)

__all__ = ["to_dp_accounting"]


def to_dp_accounting(event: DpEvent) -> Any:
    """The same event as an object of the `dp_accounting` package.

    Parameters
    ----------
    event : DpEvent

    Returns
    -------
    dp_accounting.DpEvent
    """
    try:
        import dp_accounting as other
    except ImportError as error:
        raise ImportError("to_dp_accounting needs dp-accounting; run `pip install dp-accounting`.") from error
    if isinstance(event, (NoOpDpEvent, NonPrivateDpEvent)):
        return getattr(other, type(event).__name__)()
    if isinstance(event, GaussianDpEvent):
        return other.GaussianDpEvent(event.noise_multiplier)
    if isinstance(event, PoissonSampledDpEvent):
        return other.PoissonSampledDpEvent(event.sampling_probability, to_dp_accounting(event.event))
    if isinstance(event, SelfComposedDpEvent):
        return other.SelfComposedDpEvent(to_dp_accounting(event.event), event.count)
    if isinstance(event, ComposedDpEvent):
        return other.ComposedDpEvent([to_dp_accounting(part) for part in event.events])
    raise TypeError(f"event={event!r} has no counterpart in dp-accounting; convert its parts by hand.")
