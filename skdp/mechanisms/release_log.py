"""Record (transcript) of all releases and lots of a fit in their order, for audits.

Root streams that are created while a transcript runs have a track of it, as do the streams spawned from them, in all
threads. Other streams have no track, so an audit neither records nor changes fits that it did not start.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri


class RecordedLot(NamedTuple):
    """One lot: the sampled `rows` of `n_rows` at a `rate`; with `copies`, the number of sampled copies of each."""

    rate: float
    n_rows: int
    rows: np.ndarray
    copies: NDArray[np.int64] | None = None


class RecordedRelease(NamedTuple):
    """One release, the declared parameters of its mechanism, and its lot; None for a release from all rows.

    `is_whole` is True for integer-valued noise; `place` holds the numbers of seed, track and release. `names` identify
    the values of a release with a private length, such as one value for each distinct string; None for a public length.
    """

    exact: np.ndarray
    noisy: np.ndarray
    noise_multiplier: float
    sensitivity: float
    lot: RecordedLot | None
    norm_order: int = 2
    is_whole: bool = False
    place: tuple[int, ...] = ()
    names: tuple[Any, ...] | None = None

    def of_names(
        self, names: tuple[Any, ...] | None, values: np.ndarray, missing: np.ndarray | None = None
    ) -> np.ndarray:
        """Return values of this release in the order of `names`; `missing` or 0 for names that it lacks."""
        if names is None or self.names is None:
            return np.ravel(values)
        known = dict(zip(self.names, values, strict=True))
        others = np.zeros(len(names)) if missing is None else missing
        return np.array([known.get(name, other) for name, other in zip(names, others, strict=True)])

    @property
    def noise(self) -> NDArray[np.float64]:
        """Added noise in declared standard deviations, of shape (p,).

        Integer-valued noise is converted to normal numbers with the same tail probabilities, drawn uniformly within the
        interval of each integer. They are independent and normal if the noise has its declared distribution. Their seed
        includes the `place` of the release, as two releases can be equal.
        """
        scale = self.noise_multiplier * self.sensitivity
        added = np.ravel(self.noisy - self.exact)
        if self.norm_order == 2 and not self.is_whole:
            return added / scale
        sizes, rng = np.abs(added), np.random.default_rng([*self.place, *self.noisy.tobytes()])
        here, beyond = (_laplace_tails if self.norm_order == 1 else _gaussian_tails)(sizes, scale)
        tail = beyond + rng.random(sizes.size) * (here - beyond)
        return np.where(added < 0, ndtri(tail), -ndtri(tail))


def _laplace_tails(sizes: np.ndarray, scale: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the probabilities that a discrete Laplace number is at least, or exceeds, each size."""
    whole = 1.0 + math.exp(-1.0 / scale)
    return np.exp(-sizes / scale) / whole, np.exp(-(sizes + 1.0) / scale) / whole


def _gaussian_tails(sizes: np.ndarray, scale: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the same probabilities for a discrete Gaussian number."""
    places = sizes.astype(np.int64)
    masses = np.exp(-0.5 * (np.arange(max(int(places.max(initial=0)), math.ceil(40.0 * scale)) + 2) / scale) ** 2)
    tails = np.cumsum(masses[::-1])[::-1]
    whole = 2.0 * tails[0] - masses[0]
    return tails[places] / whole, tails[places + 1] / whole


class DrawnWords:
    """Words drawn from secret streams, by key, and whether a word was drawn twice."""

    def __init__(self) -> None:
        self.are_repeated = False
        self._spans: dict[bytes, list[tuple[int, int]]] = defaultdict(list)

    def add(self, key: bytes, start: int, count: int) -> None:
        """Record that `count` words from `start` on were drawn from the stream of a key."""
        spans, stop = self._spans[key], start + count
        self.are_repeated |= any(max(first, start) < min(last, stop) for first, last in spans)
        if spans and spans[-1][1] == start:
            start = spans.pop()[0]
        spans.append((start, stop))


class Track:
    """Releases and lots of one root stream and its children.

    Parameters
    ----------
    forced : Track or None
        Track of an earlier fit to a table without the last rows of this one. Its noisy values replace those of this
        fit, and its lots, plus the additional rows, replace the lots. Both fits then have the same transcript.
    """

    def __init__(self, forced: Track | None = None) -> None:
        self.releases: list[RecordedRelease] = []
        self.lots: list[RecordedLot] = []
        self.place: tuple[int, ...] = ()
        self.names: tuple[Any, ...] | None = None  # of the values of the next release, see `RecordedRelease`
        self.words = DrawnWords()  # of all tracks of a transcript
        self._forced = forced
        self._waiting: deque[RecordedLot] = deque()  # lots without a release so far: some are drawn in advance

    def release(self, mechanism: Any, exact: np.ndarray, noisy: np.ndarray) -> np.ndarray:
        """Record a release and return its noisy value."""
        names, self.names = self.names, None
        if self._forced is not None and len(self.releases) < len(self._forced.releases):
            earlier = self._forced.releases[len(self.releases)]
            if names is not None:
                noisy = earlier.of_names(names, earlier.noisy, noisy)
            elif earlier.noisy.shape == noisy.shape:
                noisy = earlier.noisy.copy()
        declared = mechanism.noise_multiplier, mechanism.sensitivity
        law, place = (mechanism.norm_order, mechanism.is_whole), (*self.place, len(self.releases))
        recorded = RecordedRelease(exact.copy(), noisy.copy(), *declared, self._lot_of_release(), *law, place, names)
        self.releases.append(recorded)
        return noisy

    def rows(self, rate: float, n_rows: int, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Record the rows of a lot and return them."""
        if (earlier := self._next_lot()) is not None:
            rows = np.concatenate([earlier.rows, np.arange(earlier.n_rows, n_rows)])
        self._record_lot(RecordedLot(rate, n_rows, rows))
        return rows

    def counts(self, rate: float, copies: NDArray[np.int64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Record and return the number of copies of each row in a lot. New groups come last."""
        if (earlier := self._next_lot()) is not None and earlier.copies is not None:
            counts, added = np.zeros(len(copies)), copies.copy()
            counts[: len(earlier.rows)] = earlier.rows
            added[: len(earlier.copies)] -= earlier.copies
            counts += added
        self._record_lot(RecordedLot(rate, int(copies.sum()), counts, copies))
        return counts

    def _next_lot(self) -> RecordedLot | None:
        """Return the lot of the earlier fit at this place."""
        lots = [] if self._forced is None else self._forced.lots
        return lots[len(self.lots)] if len(self.lots) < len(lots) else None

    def _lot_of_release(self) -> RecordedLot | None:
        """Return the first lot without a release; None for a release from all rows."""
        return self._waiting.popleft() if self._waiting else None

    def _record_lot(self, lot: RecordedLot) -> None:
        self._waiting.append(lot)
        self.lots.append(lot)


class Transcript:
    """Tracks of a fit, one for each root stream, in order.

    Parameters
    ----------
    seed : int or None, default=None
        Seed of the root streams that have no seed; None leaves them secret.
    forced : Transcript or None, default=None
        Transcript of an earlier fit with the same seed, whose tracks force those of this one (`Track`).
    track_type : type of Track, default=Track
        Type of the tracks.
    """

    def __init__(
        self, seed: int | None = None, forced: Transcript | None = None, track_type: type[Track] = Track
    ) -> None:
        self.tracks: list[Track] = []
        self.words = DrawnWords()
        self._track_type = track_type
        self._seed, self._forced = seed, [] if forced is None else forced.tracks

    def root_key(self) -> bytes | None:
        """Return the key of the next root stream; None leaves it secret."""
        text = f"skdp transcript 1:{self._seed}:{len(self.tracks)}"
        return None if self._seed is None else hashlib.sha256(text.encode()).digest()

    def new_track(self) -> Track:
        """Return the track of the next root stream."""
        number = len(self.tracks)
        self.tracks.append(self._track_type(self._forced[number] if number < len(self._forced) else None))
        self.tracks[-1].place, self.tracks[-1].words = (abs(self._seed or 0), number), self.words
        return self.tracks[-1]


RUNNING: ContextVar[Transcript | None] = ContextVar("transcript of an audit", default=None)
"""Transcript that records new root streams; None if no audit runs."""


@contextmanager
def running(transcript: Transcript) -> Iterator[None]:
    """Record the root streams that this thread creates within the block on a transcript."""
    token = RUNNING.set(transcript)
    try:
        yield
    finally:
        RUNNING.reset(token)
