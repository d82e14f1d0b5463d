"""The one source of randomness: keyed AES-256-CTR streams, spawned into independent named streams.

A stream's words are the keystream of AES-256 in counter mode (NIST SP 800-38A, 6.5) under a key of its own, with the
counter from zero. Without a seed the root key comes from the operating system. A child's key is HMAC-SHA-256 of its
purpose under the parent's key, so streams of different purposes are independent to anyone who knows neither key.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from operator import getitem
from typing import Any, NoReturn

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import DTypeLike, NDArray

from skdp._kernels.bits import (
    BLOCK,
    add_normals,
    extreme_radii,
    gaps_from_words,
    normals_from_words,
    parts_of_sums,
    rows_from_gaps,
)
from skdp.mechanisms.exact_gaps import certainty, exact_gap
from skdp.mechanisms.rounded_normals import error_bound, rounded_pair
from skdp.mechanisms.tape import Track, running_tape

_ZEROS = memoryview(bytes(1 << 16))
_NORMALS_AHEAD = 16 * BLOCK  # made at once: few calls to OpenSSL for a small model, no more than fits in cache

_PROCESS = [object()]  # another object in a forked child

_FORKED = (
    "this process was forked after a stream of noise was made, and its parent draws the same numbers: start the fit in "
    "the child."
)

_Words = NDArray[np.uint64]


@dataclass(slots=True, eq=False, repr=False)
class _Draws:
    """Where a stream stands: the number of words used, and the normals that are made of them and not used yet."""

    _key: bytes
    n_words: int
    track: Track | None = None  # that of the stream, while it draws
    _cipher: Any = None
    normals: np.ndarray = field(default_factory=partial(np.empty, 0))
    _batch: tuple[int, _Words] = 0, np.empty(0, np.uint64)  # of the normals: place of their words, and these
    _bound: float = math.inf  # on what the normals of the batch are away from the ideal ones

    def words(self, count: int) -> _Words:
        """The next words."""
        if self._cipher is None:  # AES encrypts blocks of 16 bytes, two words, and its counter counts blocks
            counter = (self.n_words // 2).to_bytes(16, "big")
            self._cipher = Cipher(algorithms.AES256(self._key), modes.CTR(counter)).encryptor()
            self._cipher.update(bytes(8 * (self.n_words % 2)))  # skip the first word of a block
        if self.track is not None:
            self.track.words.add(self._key, self.n_words, count)
        size = 8 * count
        words = np.empty(count + 2, "<u8")  # update_into needs room for one more block
        view = words.data.cast("B")
        for start in range(0, size, len(_ZEROS)):
            # Encrypting zeros gives the keystream itself.
            self._cipher.update_into(_ZEROS[: size - start], view[start:])
        self.n_words += count
        return words[:count]

    def fill(self, out: NDArray[np.floating]) -> None:
        """Fill `out` with the next normals."""
        filled = min(len(out), len(self.normals))
        out[:filled] = self.normals[:filled]
        self.normals = self.normals[filled:]
        while filled < len(out):
            part = out[filled : filled + _NORMALS_AHEAD]
            if len(part) == _NORMALS_AHEAD and out.dtype == np.float64:
                normals_from_words(self.words(_NORMALS_AHEAD), part)
            else:
                self.refill()
                part[:] = self.normals[: len(part)]
                self.normals = self.normals[len(part) :]
            filled += len(part)

    def refill(self) -> None:
        """Make one batch of normals."""
        self._batch = self.n_words, self.words(_NORMALS_AHEAD)
        normals = np.empty(_NORMALS_AHEAD)
        normals_from_words(self._batch[1], normals)
        self._bound = error_bound(*map(int, extreme_radii(self._batch[1])))
        self.normals = normals

    def fill_noisy(self, out: np.ndarray, value: np.ndarray, scale: float, grid: float) -> None:
        """Fill `out` with `value` plus `scale` times `grid` times the next normals, rounded as the ideal sums are."""
        filled = 0
        while filled < len(out):
            if not len(self.normals):
                self.refill()
            part = out[filled : filled + len(self.normals)]
            exact = value[filled : filled + len(part)]
            limit = 0.5 - scale * self._bound
            if add_normals(exact, self.normals[: len(part)], scale, grid, limit, part):
                self._decide(part, exact, scale, grid, limit)
            self.normals = self.normals[len(part) :]
            filled += len(part)

    def _decide(self, part: np.ndarray, value: np.ndarray, scale: float, grid: float, limit: float) -> None:
        """Correct the uncertain sums in `part`, which are those of the first of the remaining normals."""
        first = _NORMALS_AHEAD - len(self.normals)
        nearest, rest, distance = np.empty((3, len(part)))
        parts_of_sums(value, self.normals[: len(part)], scale, grid, nearest, rest, distance)
        for i in np.flatnonzero(~(distance <= limit)).tolist():
            if (whole := self._decided(first + i, scale, float(rest[i]), distance[i])) is not None:
                part[i] = whole * grid + nearest[i]

    def _decided(self, place: int, scale: float, rest: float, distance: float) -> int | None:
        """The whole number of a sum, by as many bits as it takes; None if that of the kernel is right."""
        start, words = self._batch
        block, number = divmod(place, BLOCK)
        which, pair = divmod(number, BLOCK // 2)
        radius, angle = words[block * BLOCK :][[pair, pair + BLOCK // 2]].tolist()
        if distance <= 0.5 - scale * error_bound(radius, radius):
            return None
        # Both normals of a pair go on with the same bits, whatever the calls and scales they are drawn with.
        key = hmac.digest(self._key, repr(("further bits", start, block, pair)).encode(), "sha256")
        further = _words_of(_Draws(key, 0))
        return rounded_pair(radius, angle, scale, rest, zip(further, further, strict=True))[which]


def _words_of(draws: _Draws) -> Iterator[int]:
    while True:
        yield from draws.words(2).tolist()


@dataclass(eq=False, repr=False)
class SecretStream:
    """A stream of random words, normals and row samples under one secret key.

    Parameters
    ----------
    _key : bytes of length 32
    track : Track or None, default=None
        Where an audit hears what is released and drawn by this stream and its children (`skdp.mechanisms.tape`).

    Notes
    -----
    **Guarantees.** A stream gives no number twice, unless `seek` takes it back, which seeded runs alone do. Whoever
    draws takes the state away in one step, and puts it back afterwards. A second caller in between (a thread, the
    handler of a signal) is refused, and so is every caller after an interrupt or an error in the middle of a draw. A
    forked process is refused too, since its parent draws the same numbers. A stream is never pickled, printed or stored
    on an estimator: its state would reveal the noise that it made.
    """

    _key: bytes
    track: Track | None = None
    _process: object = field(init=False, default_factory=partial(getitem, _PROCESS, 0))
    # The state is made when needed: most streams are only spawned from.
    _at_rest: list[_Draws | None] = field(init=False, default_factory=list[_Draws | None]([None]).copy)

    def _take(self) -> _Draws:
        """Take the state away: the one entry of `_at_rest`, where it is put back."""
        if self._process is not _PROCESS[0]:
            raise RuntimeError(_FORKED)
        try:
            draws = self._at_rest.pop()  # one call into C: no thread or interrupt comes between look and removal
        except IndexError:
            raise RuntimeError(
                "a stream of noise has another caller, or a draw was interrupted: spawn a stream for each caller."
            ) from None
        draws = draws or _Draws(self._key, 0)
        draws.track = self.track
        return draws

    @property
    def position(self) -> tuple[int, int]:
        """Number of words used so far, and number of normals made of the last of them that are not used yet."""
        draws = self._take()
        position = draws.n_words, len(draws.normals)
        self._at_rest.append(draws)
        return position

    def seek(self, position: tuple[int, int]) -> None:
        """Continue from a `position` of a stream with the same key; only for seeded runs."""
        self._take()
        n_words, n_normals = position
        draws = _Draws(self._key, n_words - _NORMALS_AHEAD if n_normals else n_words)
        if n_normals:  # the last batch was used in part: make it again
            draws.refill()
            draws.normals = draws.normals[_NORMALS_AHEAD - n_normals :]
        self._at_rest.append(draws)

    @classmethod
    def from_random_state(cls, random_state: object, name: str) -> SecretStream:
        """The root stream: a fresh key from the operating system for None, a reproducible one otherwise.

        Parameters
        ----------
        random_state : int, numpy.random.RandomState, numpy.random.Generator or None
            Anything but None makes the noise predictable for anyone who knows it.
        name : str
            Public name of the class or function that releases, without its module. Different names give independent
            streams under one seed: noise that two releases share is subtracted without knowing the seed.
        """
        tape = running_tape()
        if random_state is None:
            # A key that is not secret exists on the tape of an audit alone.
            key = None if tape is None else tape.root_key()
            secret = os.urandom(32) if key is None else key  # the operating system's generator, seeded with entropy
            return cls(secret, None if tape is None else tape.new_track())
        if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
            seed = str(int(random_state)).encode()
        elif isinstance(random_state, np.random.RandomState | np.random.Generator):
            seed = b"generator:" + random_state.bytes(32)
        else:
            raise ValueError(
                f"random_state={random_state!r} is not an int, a RandomState, a Generator or None: "
                "pass None for secret noise or an int for a reproducible run."
            )
        # The prefix separates these keys from those of other uses of the same seed.
        key = hashlib.sha256(f"skdp seed 2:{name!r}:".encode() + seed).digest()
        return cls(key, None if tape is None else tape.new_track())

    def spawn(self, *purpose: str | int) -> SecretStream:
        """The independent stream of this purpose; the same purpose gives the same stream again."""
        if self._process is not _PROCESS[0]:
            raise RuntimeError(_FORKED)
        # HMAC is a pseudorandom function: keys of different purposes look independent without the parent's key.
        return SecretStream(hmac.digest(self._key, repr(purpose).encode(), "sha256"), self.track)

    def subkey(self, *purpose: str | int) -> bytes:
        """The key of the stream that `spawn` gives for this purpose, to be sent to a process that may know no other."""
        return self.spawn(*purpose)._key

    def words(self, count: int) -> _Words:
        """The next `count` uniform 64-bit words, little-endian from the keystream."""
        return self._placed_words(count)[1]

    def _placed_words(self, count: int) -> tuple[int, _Words]:
        """The same, and the place of the first one, which no other word has."""
        draws = self._take()
        start, words = draws.n_words, draws.words(count)
        self._at_rest.append(draws)
        return start, words.astype(np.uint64, copy=False)

    def normal(self, size: int, dtype: DTypeLike = np.float64) -> NDArray[np.floating]:
        """The next `size` independent standard normals.

        The sequence of normals does not depend on how it is split into calls: normals are made in batches, and the rest
        of a batch is kept for the next call.
        """
        out = np.empty(size, dtype)  # before the state is taken: a size that fits in no memory costs no stream
        draws = self._take()
        draws.fill(out)
        self._at_rest.append(draws)
        return out

    def noisy(self, value: np.ndarray, scale: float, grid: float) -> np.ndarray:
        """Each value plus `scale` times `grid` times the next normal, rounded to the nearest multiple of `grid`.

        Sums are rounded as if normals had all their infinitely many bits (`skdp.mechanisms.rounded_normals`). The
        normals are those that `normal` would give. `scale` is from 1 to 2**46, and `grid` a power of two.
        """
        out = np.empty(len(value))
        draws = self._take()
        draws.fill_noisy(out, value, scale, grid)
        self._at_rest.append(draws)
        return out

    def poisson_rows(self, n: int, rate: float) -> NDArray[np.int64]:
        """Each of `n` rows independently with probability `rate` in (0, 1), ascending, at a cost of O(rows drawn).

        The rate is exactly this double: words are read as if they had infinitely many bits
        (`skdp.mechanisms.exact_gaps`).
        """
        expected = n * rate
        batch = int(expected + 4.0 * math.sqrt(expected)) + 8  # four standard deviations: one call mostly suffices
        last, parts = -1, []
        while last < n:
            rows = self._gaps(batch, n, rate)
            count, last = rows_from_gaps(rows, n, last)
            parts.append(rows[:count])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _gaps(self, count: int, n: int, rate: float) -> NDArray[np.int64]:
        """Numbers of rows that are passed over before the next one is drawn; n stands for n and more."""
        start, words = self._placed_words(count)
        log_survival, gaps = -math.log1p(-rate), np.empty(count, np.int64)
        if gaps_from_words(words, log_survival, float(n), *certainty(log_survival), gaps):
            for i in np.flatnonzero(gaps < 0).tolist():
                key = hmac.digest(self._key, repr(("further bits of a gap", start + i)).encode(), "sha256")
                gaps[i] = exact_gap(int(words[i]), rate, n, _words_of(_Draws(key, 0)))
        return gaps

    def __reduce__(self) -> NoReturn:
        raise TypeError("A SecretStream cannot be pickled or copied: its key would reveal the noise that it made.")


def _mark_child() -> None:
    _PROCESS[0] = object()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_mark_child)
