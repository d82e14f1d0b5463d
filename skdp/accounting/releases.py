"""A composition sorted by kind of release, as the methods read it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from .composition import check_is_event, flatten
from .events import (
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
)

__all__ = ["Releases", "Runs", "joined", "releases", "repeated"]

# fields of Releases whose entries end with a count
_COUNTED = ("sampled", "gaussian", "laplace", "epsilon_delta", "without_replacement", "sampled_pure", "selected")


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


Runs = tuple[Releases, ...]


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
    check_is_event(event)
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
