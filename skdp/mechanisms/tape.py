"""A tape of what a fit draws, for audits: every release and every lot, in their order.

Root streams that are made while a tape runs carry a track of it, and so do the streams that are spawned from them, in
whatever thread. No other stream has one: a fit that an audit did not start is neither heard nor changed.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

Numbers = NDArray[Any]


class HeardLot(NamedTuple):
    """One lot: `rows` of a table of `n_rows`, each drawn at `rate`; of equal rows, how many of the `copies` of each."""

    rate: float
    n_rows: int
    rows: Numbers
    copies: NDArray[np.int64] | None = None


class HeardRelease(NamedTuple):
    """One release, what its mechanism declares, and the lot that it is of; None if it is of all rows.

    `places` are uniform numbers, one for each that was released in whole numbers: where in the chance of it to look.
    """

    exact: Numbers
    noisy: Numbers
    noise_multiplier: float
    sensitivity: float
    lot: HeardLot | None
    norm_order: int = 2
    places: NDArray[np.float64] | None = None

    @property
    def noise(self) -> NDArray[np.float64]:
        """What was added, in declared standard deviations, of shape (p,).

        Of discrete Laplace noise the normal numbers of the same chances, each drawn evenly among those of a whole
        number: they are independent and normal where the noise has its law.
        """
        scale = self.noise_multiplier * self.sensitivity
        added = np.ravel(self.noisy - self.exact)
        if self.norm_order == 2:
            return added / scale
        sizes = np.abs(added)
        beyond, here = np.exp(-(sizes + 1.0) / scale), np.exp(-sizes / scale)
        tail = (beyond + self.places * (here - beyond)) / (1.0 + math.exp(-1.0 / scale))
        return np.where(added < 0, ndtri(tail), -ndtri(tail))


class Track:
    """What was drawn from one root stream and its children.

    Parameters
    ----------
    forced : Track or None
        Track of an earlier fit, to a table without the last rows of this one. Its noisy values take the place of those
        of this fit, and so do its lots, each with the further rows: both fits then see the same releases.
    seed : sequence of int or None, default=None
        Of the places that are drawn for releases in whole numbers. They are the track's own: what is released often
        repeats, and its places must not.
    """

    def __init__(self, forced: Track | None = None, seed: Any = None) -> None:
        self._places = np.random.default_rng(seed)
        self.releases: list[HeardRelease] = []
        self.lots: list[HeardLot] = []
        self._forced = forced
        self._lot: HeardLot | None = None

    def release(self, mechanism: Any, exact: Numbers, noisy: Numbers) -> Numbers:
        """Hear a release, and return the noisy value of it."""
        if self._forced is not None and len(self.releases) < len(self._forced.releases):
            earlier = self._forced.releases[len(self.releases)].noisy
            noisy = earlier.copy() if earlier.shape == noisy.shape else noisy
        declared = mechanism.noise_multiplier, mechanism.sensitivity
        places = self._places.random(exact.size) if mechanism.norm_order == 1 else None
        heard = HeardRelease(exact.copy(), noisy.copy(), *declared, self._lot, mechanism.norm_order, places)
        self.releases.append(heard)
        self._lot = None  # what is released next without a lot of its own is of all rows
        return noisy

    def rows(self, rate: float, n_rows: int, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Hear the rows of a lot, and return them."""
        if (earlier := self._next_lot()) is not None:
            rows = np.concatenate([earlier.rows, np.arange(earlier.n_rows, n_rows)])
        self._hear(HeardLot(rate, n_rows, rows))
        return rows

    def counts(self, rate: float, copies: NDArray[np.int64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Hear how many of the copies of each row are in a lot, and return the numbers. New groups come last."""
        if (earlier := self._next_lot()) is not None and earlier.copies is not None:
            counts, added = np.zeros(len(copies)), copies.copy()
            counts[: len(earlier.rows)] = earlier.rows
            added[: len(earlier.copies)] -= earlier.copies
            counts += added
        self._hear(HeardLot(rate, int(copies.sum()), counts, copies))
        return counts

    def _next_lot(self) -> HeardLot | None:
        """The lot of the other fit at this place."""
        lots = [] if self._forced is None else self._forced.lots
        return lots[len(self.lots)] if len(self.lots) < len(lots) else None

    def _hear(self, lot: HeardLot) -> None:
        self._lot = lot
        self.lots.append(lot)


class Tape:
    """The tracks of a fit, one for each root stream, in the order of these.

    Parameters
    ----------
    seed : int or None, default=None
        Root streams without a seed of their own are made of it; None leaves them secret.
    forced : Tape or None, default=None
        That of an earlier fit with the same seed, whose tracks force those of this one (`Track`).
    track_type : type of Track, default=Track
        What the tracks keep.
    """

    def __init__(self, seed: int | None = None, forced: Tape | None = None, track_type: type[Track] = Track) -> None:
        self.tracks: list[Track] = []
        self._track_type = track_type
        self._seed, self._forced = seed, [] if forced is None else forced.tracks

    def root_key(self) -> bytes | None:
        """The key of the next root stream; None leaves it secret."""
        if self._seed is None:
            return None
        return hashlib.sha256(f"skdp tape 1:{self._seed}:{len(self.tracks)}".encode()).digest()

    def new_track(self) -> Track:
        """The track of the next root stream."""
        number = len(self.tracks)
        forced = self._forced[number] if number < len(self._forced) else None
        self.tracks.append(self._track_type(forced, None if self._seed is None else [self._seed, number]))
        return self.tracks[-1]


_RUNNING: ContextVar[Tape | None] = ContextVar("tape of an audit", default=None)


@contextmanager
def running(tape: Tape) -> Iterator[None]:
    """Give root streams that this thread makes within the block tracks of a tape."""
    token = _RUNNING.set(tape)
    try:
        yield
    finally:
        _RUNNING.reset(token)


def running_tape() -> Tape | None:
    """The tape on which a root stream that is being made is heard; None wherever no audit runs."""
    return _RUNNING.get()


__all__ = ["HeardLot", "HeardRelease", "Tape", "Track", "running", "running_tape"]
