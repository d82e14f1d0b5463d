"""Releases on which a fitted state depends, and the publication of that state in one step."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from skdp._checks.units import ROW
from skdp.accounting import DpEvent

Learner = TypeVar("Learner")


@dataclass(frozen=True)
class Release:
    """One charged event. Its random `id` distinguishes it from all others, so that a union counts it once.

    `unit` says what it is private for: a row, or all rows of a group.
    """

    id: str = field(compare=False, repr=False)
    event: DpEvent
    adjacency: str
    unit: str = ROW


def new_release(event: DpEvent, adjacency: str, unit: str = ROW) -> Release:
    """Return a release with a new id, on which no other state depends yet."""
    return Release(secrets.token_hex(8), event, adjacency, unit)


def releases_of(fitted: Any) -> tuple[Release, ...]:
    """Return all releases on which the current state of an estimator, a pipeline or a search depends.

    Its own releases come first; there are none before a fit. A part that was fitted on its own later, for example by
    ``partial_fit``, adds the releases that the whole does not include.
    """
    own = fitted.__dict__.get("_fitted_releases", ())
    if not own and "privacy_event_" in fitted.__dict__:
        raise ValueError(f"this {type(fitted).__name__} does not tell its releases: fit a clone of it.")
    if not own:
        return ()
    # A joint release of the whole represents those of its parts at that time, which must not be counted again.
    found = {release.id: release for release in own}
    known = {*found, *fitted.__dict__.get("_fitted_inside", ())}
    for part in fitted._private_parts():
        found.update({release.id: release for release in releases_of(part) if release.id not in known})
    return tuple(found.values())


def ids_of(parts: Iterable[Any]) -> frozenset[str]:
    """Ids of the releases of parts, for which a joint release of the whole stands."""
    return frozenset(release.id for part in parts for release in releases_of(part))


PUBLICATION = threading.RLock()
"""Held while parameters are set and while a pipeline's steps are replaced, so that neither undoes the other."""


def publish(target: Any, fitted: Any, **parameters: Any) -> None:
    """Move everything that `fitted`, a copy of `target`, has learned to `target`, and keep its parameters.

    A single update of a dictionary does this. It cannot be interrupted: after an interrupt or an error, and in another
    thread, the state is the old one or the new one, each with its own price. Attributes that `fitted` no longer has,
    such as names of columns, are removed afterwards.
    """
    learned = dict(parameters)
    for name, value in fitted.__dict__.items():
        if _is_learned(name):
            learned[name] = value
    # `dict.update` of string keys runs in C without calling Python code, so no signal handler runs within it.
    target.__dict__.update(learned)
    for name in tuple(target.__dict__):
        if _is_learned(name) and name not in learned:
            target.__dict__.pop(name, None)


def fit_publicly(target: Learner, learn: Callable[[Learner], object]) -> Learner:
    """Fit what reads nothing private: `learn` sets the attributes of a copy, and they are published together."""
    work = copy_to_fit(target)
    learn(work)
    publish(target, work)
    return target


def copy_to_fit(target: Learner, *, keep_learned: bool = False) -> Learner:
    """Return a shallow copy that learns in the place of `target`, without what was learned earlier.

    The hooks of pickling are not called.
    """
    copied, present = object.__new__(type(target)), vars(target).copy()  # in C: no thread publishes in between
    vars(copied).update({name: value for name, value in present.items() if keep_learned or not _is_learned(name)})
    return copied


def _is_learned(name: str) -> bool:
    """Whether an attribute of this name is a result of ``fit``, by scikit-learn's convention or ours."""
    return name.startswith("_fitted") or (name.endswith("_") and not name.endswith("__"))


__all__ = ["PUBLICATION", "Release", "copy_to_fit", "fit_publicly", "ids_of", "new_release", "publish", "releases_of"]
