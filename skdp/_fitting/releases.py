"""What a fitted state depends on, and how it becomes visible: in one step."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from skdp.accounting import DpEvent


@dataclass(frozen=True)
class Release:
    """One charged event. Its `id`, drawn at random, tells it from all others, so that a union counts it once."""

    id: str = field(compare=False, repr=False)
    event: DpEvent
    adjacency: str


def new_release(event: DpEvent, adjacency: str) -> Release:
    """A release that no other state depends on yet."""
    return Release(secrets.token_hex(8), event, adjacency)


def releases_of(fitted: Any) -> tuple[Release, ...]:
    """All releases on which the present state of an estimator, a pipeline or a search depends; none before a fit.

    Those that it made itself come first. A part that was fitted on its own since, by ``partial_fit`` say, adds what is
    not among the releases of the whole.
    """
    own = fitted.__dict__.get("_fitted_releases")
    if own is None:  # pickled before releases were kept
        event = fitted.__dict__.get("privacy_event_")
        own = () if event is None else (Release(f"of {id(fitted)}", event, fitted.__dict__["adjacency_"]),)
    if not own:
        return ()
    found = {release.id: release for release in own}
    known = {*found, *fitted.__dict__.get("_fitted_inside", ())}
    for part in fitted._private_parts():
        found.update({release.id: release for release in releases_of(part) if release.id not in known})
    return tuple(found.values())


def ids_of(parts: Iterable[Any]) -> frozenset[str]:
    """Releases of parts, which a joint release of the whole stands for."""
    return frozenset(release.id for part in parts for release in releases_of(part))


PUBLICATION = threading.RLock()
"""Held while parameters are set and while a pipeline's steps are replaced, so that neither undoes the other."""


def publish(target: Any, fitted: Any, **parameters: Any) -> None:
    """Give `target` all that `fitted`, a copy that was worked on, has learned; its parameters stay as they are.

    One update of a dictionary does it, which nothing interrupts: an interrupt, an error or another thread finds the old
    state or the new one, each with its own price. Names that `fitted` no longer has, those of columns, go last.
    """
    learned = {name: value for name, value in fitted.__dict__.items() if _is_learned(name)}
    target.__dict__.update({**parameters, **learned})
    for name in [name for name in target.__dict__ if _is_learned(name) and name not in learned]:
        target.__dict__.pop(name, None)


def _is_learned(name: str) -> bool:
    return name.startswith("_fitted") or (name.endswith("_") and not name.endswith("__"))


__all__ = ["PUBLICATION", "Release", "ids_of", "new_release", "publish", "releases_of"]
