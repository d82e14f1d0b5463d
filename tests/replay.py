"""Replay: what two neighboring tables put into the releases of a fit, when both see the same noisy outputs.

A fit on D records every value that noise is added to, and what came out. A fit on D', with the same seed, is handed the
outputs of the first in the place of its own. Both then see the same history, so each value may differ by what its
mechanism declares, and all else that the fit leaves behind has to be equal bit for bit.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from skdp.base.budget import Release
from skdp.mechanisms import DiscreteGaussianMechanism, DiscreteLaplaceMechanism, GaussianMechanism

MECHANISMS = GaussianMechanism, DiscreteGaussianMechanism, DiscreteLaplaceMechanism


class Recorded(NamedTuple):
    """One release: exact and noisy value, the sensitivity that is charged, the order of its norm, and the noise."""

    exact: np.ndarray
    noisy: np.ndarray
    sensitivity: float
    order: int
    noise: np.ndarray


class Run(NamedTuple):
    """What a fit put into its releases, and all that it left behind."""

    releases: list[Recorded]
    state: dict[str, Any]
    messages: list[tuple[type, str]]


@contextlib.contextmanager
def recording(forced: list[Recorded]) -> Iterator[list[Recorded]]:
    """Record all releases; those that `forced` has get its noisy values."""
    add_noise, seen = {kind: kind._add_noise for kind in MECHANISMS}, []

    def recorded(mechanism: Any, value: np.ndarray, stream: Any) -> np.ndarray:
        exact, noisy = value.copy(), add_noise[type(mechanism)](mechanism, value, stream)
        noise = noisy - exact
        if len(seen) < len(forced):
            noisy = lengthened(forced[len(seen)].noisy, noisy)
        seen.append(Recorded(exact, noisy.copy(), mechanism.sensitivity, mechanism.norm_order, noise))
        return noisy

    for kind in MECHANISMS:
        kind._add_noise = recorded
    try:
        yield seen
    finally:
        for kind in MECHANISMS:
            kind._add_noise = add_noise[kind]


def lengthened(value: np.ndarray, other: np.ndarray) -> np.ndarray:
    """A value with zeros for numbers that only the other one has, at the end: one string more has one count more."""
    return np.pad(value, (0, max(0, other.size - value.size))) if value.ndim == 1 else value.copy()


def run(fit: Callable[[Any], Any], table: Any, forced: list[Recorded] | tuple[()] = ()) -> Run:
    """Fit on a table, with the noisy values of `forced`."""
    with warnings.catch_warnings(record=True, action="always") as caught, recording(list(forced)) as seen:
        fitted = fit(table)
    return Run(seen, dict(leaves(vars(fitted))), [(each.category, str(each.message)) for each in caught])


def replay(fit: Callable[[Any], Any], one: Any, other: Any) -> tuple[Run, Run]:
    """Fit on two tables, the second time with what was released the first time."""
    first = run(fit, one)
    return first, run(fit, other, first.releases)


def moves(one: Run, other: Run) -> list[float]:
    """How far each release moved, in times of its sensitivity."""
    assert [each.exact.shape for each in one.releases] == [each.exact.shape for each in other.releases]
    assert [each.sensitivity for each in one.releases] == [each.sensitivity for each in other.releases]
    pairs = zip(one.releases, other.releases, strict=True)
    return [float(np.linalg.norm((a.exact - b.exact).ravel(), a.order)) / a.sensitivity for a, b in pairs]


def assert_one_string_more_is_not_revealed(one: Run, other: Run) -> None:
    """The release with one number more has the same noise as the other one, and all else is equal."""
    longer = [(a, b) for a, b in zip(one.releases, other.releases, strict=True) if b.exact.size == a.exact.size + 1]
    assert len(longer) == 1
    for a, b in longer:
        np.testing.assert_array_equal(a.noise, b.noise[:-1])
        moved = np.linalg.norm(b.exact - lengthened(a.exact, b.exact), a.order)
        assert a.sensitivity == b.sensitivity
        assert 0.0 < moved <= 2.0 * a.sensitivity * (1 + 1e-9)
    assert_all_else_is_equal(one, other)


def assert_all_else_is_equal(one: Run, other: Run) -> None:
    """The second fit leaves behind what the first does, bit for bit."""
    assert one.state.keys() == other.state.keys()
    for place, value in one.state.items():
        assert value == other.state[place], place
    assert one.messages == other.messages


def leaves(value: Any, place: str = "", seen: frozenset[int] = frozenset()) -> Iterator[tuple[str, Any]]:
    """Every number, text and array within an object, by its place, arrays as their type, shape and bytes."""
    if id(value) in seen:
        return
    seen |= {id(value)}
    if isinstance(value, Release):
        yield place, (value.event, value.adjacency)  # and not the random name
    elif sp.issparse(value):
        for name in ("data", "indices", "indptr"):
            yield from leaves(getattr(value, name), f"{place}.{name}", seen)
    elif isinstance(value, np.ndarray) and value.dtype != object:
        yield place, (value.dtype.str, value.shape, value.tobytes())
    elif isinstance(value, dict):
        yield place, [repr(key) for key in value]
        for key, each in value.items():
            yield from leaves(each, f"{place}[{key!r}]", seen)
    elif isinstance(value, frozenset) and place == "['_fitted_inside']":
        yield place, len(value)  # random names of releases
    elif isinstance(value, list | tuple | np.ndarray):
        yield place, len(value)
        for number, each in enumerate(value):
            yield from leaves(each, f"{place}[{number}]", seen)
    elif hasattr(value, "__dict__") and not isinstance(value, type) and not callable(value):
        yield place, type(value).__name__
        yield from leaves(vars(value), place, seen)
    elif callable(value):
        yield place, getattr(value, "__qualname__", type(value).__name__)
    else:
        yield place, (type(value).__name__, repr(value))
