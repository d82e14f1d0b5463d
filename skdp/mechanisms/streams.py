"""Source of randomness: keyed AES-256-CTR streams, from which independent named streams are spawned.

The words of a stream are the keystream of AES-256 in counter mode (NIST SP 800-38A, 6.5), with a separate key and a
counter from zero. Without a seed, the operating system provides the root key. The key of a child stream is HMAC-SHA-256
of its purpose under the parent's key. Streams with different purposes are therefore independent to anyone who knows
neither key.

**Normals with infinitely many bits, rounded to integers.** The ideal pair of normals is R cos(angle) and R sin(angle)
with R = sqrt(-2 log U), for a uniform U in (0, 1) and a uniform angle (Box & Muller 1958). The words that
`skdp._kernels.bits` reads are the first binary digits of 1 - U, and of the position of the angle within an eighth of
the circle on either side of an axis. `error_bound` bounds the difference between the doubles of the kernel and the
values with any further digits. If the nearest integer is undecided, `rounded_pair` draws further digits until it is
decided.

**Gaps of a Bernoulli sample with infinitely many bits.** A gap is floor(log U / log(1 - q)), with U uniform in (0, 1).
The word holds the first binary digits of 1 - U. `certainty` bounds the effect of rounding errors and further digits on
the gap, and `exact_gap` draws further digits until the gap is decided. So the sampling probability of a row is exactly
the double q.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Context, Decimal, localcontext
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
from skdp.mechanisms.release_log import RUNNING, Track

_WORDS = 2**64
LAST = _WORDS - 1
_TURN_BITS = 12  # trailing bits of the word of an angle; the last two choose axis and sign
_GUARD = 30  # additional decimal digits


def error_bound(least: int, most: int) -> float:
    """Return a bound on the error of a normal, for radius words from `least` to `most`.

    Notes
    -----
    Let u = 2**-53, and R the radius of the word itself.

    - Radius. U is held to u / 2 where it is at least 1/2, and to u of itself below. Its logarithm is exact to 4 u of
      itself: the quotient s = f / (2 + f), at most 0.18, and what multiplies it, at most 0.11, are exact to 2 u and
      4 u, and the last three operations round by u each, of numbers that are smaller than 1.2 times the logarithm
      where the exponent is 0, and of at most 0.42 otherwise, where the logarithm is above 0.34. So -2 log U is off by
      e, less than 2 u + 4 u R^2. Its root is off by e over the sum of both roots, and is rounded: less than
      1.1 u / R + 5 u R, where R is tiny (U then is held to u / 2) as well.
    - Further digits lower U by at most 2**-64, to U' at least, so they add at most 2**-64 / (U' R) to R: at most
      2**-63 / R where U' >= 1/2, and less than 2**-64 / U' below, where R > 1.17.
    - Angle. pi / 2 and the product with it are rounded: 1.6 u; further digits add pi / 2 * 2**-52, less than 3.2 u;
      sine and cosine are exact to 2 u. All is multiplied by R: 6.8 u R.
    - The product of both is rounded, and so is that with a scale: 2 u R.
    - The sum of that with a rest of at most 1/2 is rounded: u R + u / 2, for a scale of at least 1.

    In all less than 1.2 u / R + 15 u R + u / 2 + 2**-64 / U'. Returned is 2 u / R + 16 u R + 2**-63 / U'. Its first two
    terms are larger by 0.8 u / R + u R, at least 1.7 u, which leaves room for the rounding in this function.
    """
    if least == 0 or most == LAST:
        return math.inf
    shortest, longest = math.sqrt(-2.0 * log_of_rest(least)), math.sqrt(-2.0 * log_of_rest(most))
    return 2.0**-52 / shortest + 2.0**-49 * longest + 2.0 / (_WORDS - 1 - most)


def log_of_rest(word: int) -> float:
    """Return log U for 1 - U = word / 2**64, with an error of a few units in the last place."""
    return math.log1p(-word / _WORDS) if word < _WORDS // 2 else math.log((_WORDS - word) / _WORDS)


def rounded_pair(
    radius: int, angle: int, scale: float, rest: float, further: Iterable[tuple[int, int]]
) -> tuple[int, int]:
    """Round `rest` plus `scale` times the two ideal normals of two words to integers.

    Parameters
    ----------
    radius, angle : int
        Words of 64 bits.
    scale, rest : float
    further : iterable of (int, int)
        Further words of 64 bits: the next digits of radius and angle, as required.

    Returns
    -------
    first, second : int
        floor(rest + scale z + 1/2) of both normals z.
    """
    axis, angle, n_radius, n_angle = angle & 3, angle >> _TURN_BITS, 64, 64 - _TURN_BITS
    more = iter(further)
    while (found := decided_pair(radius, n_radius, angle, n_angle, axis, scale, rest)) is None:
        next_radius, next_angle = next(more)
        radius, n_radius = radius << 64 | next_radius, n_radius + 64
        angle, n_angle = angle << 64 | next_angle, n_angle + 64
    return found


def decided_pair(
    radius: int, n_radius: int, angle: int, n_angle: int, axis: int, scale: float, rest: float
) -> tuple[int, int] | None:
    """Return the integers that digits of radius and angle decide, or None if further digits can change one.

    Parameters
    ----------
    radius, n_radius : int
        1 - U is in radius + [0, 1], divided by 2**n_radius.
    angle, n_angle : int
        The angle is in angle + [0, 1], divided by 2**n_angle, less 1/2, in quarters of a turn.
    axis : int
        From 0 to 3: bit 0 is set if the cosine is negative, bit 1 if the cosine is the second number.
    scale, rest : float
        See `rounded_pair`.

    Notes
    -----
    Decimal arithmetic is correctly rounded, including logarithm and root. The numbers are below 10**4, and there are
    fewer than 10**4 operations with an error of at most one unit in the last place. Their total is less than `slack`.
    """
    digits = max(n_radius, n_angle) // 3 + _GUARD
    with localcontext(Context(prec=digits)):
        slack = Decimal(10) ** (12 - digits)
        size = 1 << n_radius
        if radius + 1 == size:  # U can be arbitrarily close to 0
            return None
        longest = _radius(size - radius - 1, n_radius, slack)
        shortest = _radius(size - radius, n_radius, -slack)
        middle, open_radius = (longest + shortest) / 2, (longest - shortest) / 2
        # The angle, and the uncertainty of angle and radius.
        quarter = _pi(digits) / 2
        x = (Decimal(2 * angle + 1) / (2 << n_angle) - Decimal("0.5")) * quarter
        error = open_radius + longest * quarter / (2 << n_angle) + slack
        # Taylor series for an angle of at most an eighth of a turn; the remainder is less than the last term.
        sums, term, k = [Decimal(1), x], x, 1
        while abs(term) > slack / 10**6:
            k += 1
            term = term * x / k
            sums[k % 2] += -term if k % 4 in (2, 3) else term
        cosine, sine = sums
        cosine = -cosine if axis & 1 else cosine
        # More digits are required unless both ends of the uncertainty interval give the same integer.
        found, shift = [], Decimal(rest) + Decimal("0.5")
        for each in (sine, cosine) if axis & 2 else (cosine, sine):
            low, high = (math.floor(Decimal(scale) * (middle * each + e) + shift) for e in (-error, error))
            if low != high:
                return None
            found.append(low)
    return found[0], found[1]


def _radius(unit: int, n_bits: int, slack: Decimal) -> Decimal:
    """Return an upper (positive slack) or lower (negative slack) bound of sqrt(-2 log(unit / 2**n_bits))."""
    square = 2 * (n_bits * Decimal(2).ln() - Decimal(unit).ln()) + slack
    return max(square, Decimal(0)).sqrt() + slack if square > 0 else Decimal(0)


@functools.lru_cache(maxsize=8)
def _pi(digits: int) -> Decimal:
    """Return pi by Machin's formula, 16 arctan(1/5) - 4 arctan(1/239)."""
    with localcontext(Context(prec=digits + 5)):
        return 16 * _arctan_of_inverse(5) - 4 * _arctan_of_inverse(239)


def _arctan_of_inverse(n: int) -> Decimal:
    """Return arctan(1 / n) in the precision of the context, by its series."""
    power = total = Decimal(1) / n
    k = 1
    while total + power != total:
        k, power = k + 2, -power / (n * n)
        total += power / k
    return total


_FAR, _LONGEST = 16.6, 2**64 - 2**40  # -log U, less than 24 log 2; the word with U = 2**-24


def certainty(log_survival: float) -> tuple[float, float]:
    """Return the distance from an integer below which a quotient is uncertain, and the size from which it always is."""
    return _uncertainty(_LONGEST, log_survival), _FAR / log_survival


def _uncertainty(word: int, log_survival: float) -> float:
    """Return a bound on the error of a quotient, for words up to this one.

    Notes
    -----
    Let u = 2**-53, L = -log U for the U of the word, and S = `log_survival`.

    - U is held to u / 2 where it is at least 1/2, and to u of itself below; its logarithm is exact to 4 u of itself
      (`skdp.mechanisms.streams.error_bound`). So L is off by less than u + 4 u L.
    - Further digits lower U by at most 2**-64, to U' at least, and raise L by at most 2**-64 / U'.
    - S is that of the double q to 4 u of itself, four times what a C library rounds it by, and the quotient is rounded.

    In all less than (u + 9 u L + 2**-64 / U') / S. Returned is twice as much, or more.
    """
    length = -log_of_rest(word)
    return (2.0**-52 + 2.0**-48 * length + 2.0 / (LAST - word)) / log_survival


def exact_gap(word: int, rate: float, limit: int, further: Iterable[int]) -> int:
    """Return the gap of a word and its further digits, at most `limit`.

    Parameters
    ----------
    word : int
        Word of 64 bits: the first digits of 1 - U.
    rate : float
        q in (0, 1).
    limit : int
    further : iterable of int
        Further words of 64 bits, as required.
    """
    log_survival = -math.log1p(-rate)
    quotient = -log_of_rest(word) / log_survival
    if word < LAST and abs(quotient - round(min(quotient, 2.0**60))) > _uncertainty(word, log_survival):
        return min(math.floor(min(quotient, 2.0**60)), limit)
    n_bits, more = 64, iter(further)
    while (found := decided_gap(word, n_bits, rate, limit)) is None:
        word, n_bits = word << 64 | next(more), n_bits + 64
    return found


def decided_gap(word: int, n_bits: int, rate: float, limit: int) -> int | None:
    """Return the gap that digits decide, or None if further ones can change it; 2**n_bits (1 - U) is in word + [0, 1].

    Notes
    -----
    Decimal arithmetic is correctly rounded, including the logarithm. With d digits, 1 - q and its logarithm S have an
    error below 10**(1 - d), and log U one below 10**(4 - d). So a quotient k has an error below (k + 1) 10**(5 - d) /
    S; the slack is 10**5 times as large.
    """
    digits = max(n_bits, 2048 if rate < 2.0**-64 else 128) // 3 + _GUARD
    with localcontext(Context(prec=digits)):
        step, bits = -(1 - Decimal(rate)).ln(), n_bits * Decimal(2).ln()
        slack = Decimal(10) ** (10 - digits) / min(step, Decimal(1))
        size = (1 << n_bits) - word  # U is between size - 1 and size steps
        shortest = (bits - Decimal(size).ln()) / step
        least = max(0, math.floor(shortest - (shortest + 1) * slack))
        if least >= limit:
            return limit
        if size == 1:  # U can be arbitrarily close to 0
            return None
        longest = (bits - Decimal(size - 1).ln()) / step
        return least if least == math.floor(longest + (longest + 1) * slack) else None


_ZEROS = memoryview(bytes(1 << 16))
_NORMALS_AHEAD = 16 * BLOCK  # per batch: few calls to OpenSSL for a small model, and small enough for the cache

_PROCESS = [object()]  # another object in a forked child

_FORKED = (
    "This process was forked after a random stream was created, and its parent draws the same numbers. Start the fit "
    "in the child process."
)

_Words = NDArray[np.uint64]


@dataclass(slots=True, eq=False, repr=False)
class _Draws:
    """State of a stream: the number of used words, and the generated but unused normals."""

    _key: bytes
    n_words: int
    track: Track | None = None  # of the stream, while it draws
    _cipher: Any = None
    normals: np.ndarray = field(default_factory=partial(np.empty, 0))
    _batch: tuple[int, _Words] = 0, np.empty(0, np.uint64)  # of the normals: position of their words, and the words
    bound: float = math.inf  # of the errors of the normals in the batch

    def words(self, count: int) -> _Words:
        """Return the next words."""
        if self._cipher is None:  # AES encrypts blocks of 16 bytes, two words, and its counter counts blocks
            counter = (self.n_words // 2).to_bytes(16, "big")
            self._cipher = Cipher(algorithms.AES256(self._key), modes.CTR(counter)).encryptor()
            self._cipher.update(bytes(8 * (self.n_words % 2)))  # skip the first word of a block
        if self.track is not None:
            self.track.words.add(self._key, self.n_words, count)
        size = 8 * count
        words = np.empty(count + 2, "<u8")  # update_into requires space for one more block
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
        """Generate one batch of normals."""
        self._batch = self.n_words, self.words(_NORMALS_AHEAD)
        normals = np.empty(_NORMALS_AHEAD)
        normals_from_words(self._batch[1], normals)
        self.bound = error_bound(*map(int, extreme_radii(self._batch[1])))
        self.normals = normals

    def decide(self, part: np.ndarray, value: np.ndarray, scale: float, grid: float, limit: float) -> None:
        """Correct the undecided sums in `part`, which belong to the first of the remaining normals."""
        first = _NORMALS_AHEAD - len(self.normals)
        nearest, rest, distance = np.empty((3, len(part)))
        parts_of_sums(value, self.normals[: len(part)], scale, grid, nearest, rest, distance)
        for i in np.flatnonzero(~(distance <= limit)).tolist():
            if (whole := self._decided(first + i, scale, float(rest[i]), distance[i])) is not None:
                part[i] = whole * grid + nearest[i]

    def _decided(self, place: int, scale: float, rest: float, distance: float) -> int | None:
        """Return the integer of a sum with as many bits as required; None if the kernel is correct."""
        start, words = self._batch
        block, number = divmod(place, BLOCK)
        which, pair = divmod(number, BLOCK // 2)
        radius, angle = words[block * BLOCK :][[pair, pair + BLOCK // 2]].tolist()
        if distance <= 0.5 - scale * error_bound(radius, radius):
            return None
        # Both normals of a pair use the same further bits, independently of the calls and scales.
        key = hmac.digest(self._key, repr(("further bits", start, block, pair)).encode(), "sha256")
        further = _words_of(_Draws(key, 0))
        return rounded_pair(radius, angle, scale, rest, zip(further, further, strict=True))[which]


def _words_of(draws: _Draws) -> Iterator[int]:
    while True:
        yield from draws.words(2).tolist()


@dataclass(eq=False, repr=False)
class SecretStream:
    """Stream of random words, normals and row samples with one secret key.

    Parameters
    ----------
    _key : bytes of length 32
    track : Track or None, default=None
        Record of the releases and lots of this stream and its children, for audits (`skdp.mechanisms.release_log`).

    Notes
    -----
    **Guarantees.** A stream returns no number twice, except after `seek`, which only seeded runs use. Each draw removes
    the state in one step and puts it back afterwards. A concurrent caller (a thread or a signal handler) raises an
    error, as does any caller after an interrupted draw. A forked process raises an error, too, because its parent draws
    the same numbers. A stream is never pickled, printed or stored on an estimator, because its state reveals the noise.
    """

    _key: bytes
    track: Track | None = None
    _process: object = field(init=False, default_factory=partial(getitem, _PROCESS, 0))
    # The state is created when required: most streams only spawn other streams.
    _at_rest: list[_Draws | None] = field(init=False, default_factory=list[_Draws | None]([None]).copy)

    def _take(self) -> _Draws:
        """Remove and return the state, the only entry of `_at_rest`."""
        if self._process is not _PROCESS[0]:
            raise RuntimeError(_FORKED)
        try:
            draws = self._at_rest.pop()  # one call into C: no thread or interrupt comes between check and removal
        except IndexError:
            raise RuntimeError(
                "The random stream has another caller, or a draw was interrupted. Spawn a stream for each caller."
            ) from None
        draws = draws or _Draws(self._key, 0)
        draws.track = self.track
        return draws

    @property
    def position(self) -> tuple[int, int]:
        """Number of used words, and number of generated but unused normals."""
        draws = self._take()
        position = draws.n_words, len(draws.normals)
        self._at_rest.append(draws)
        return position

    def seek(self, position: tuple[int, int]) -> None:
        """Continue from a `position` of a stream with the same key; for seeded runs only."""
        self._take()
        n_words, n_normals = position
        draws = _Draws(self._key, n_words - _NORMALS_AHEAD if n_normals else n_words)
        if n_normals:  # the last batch was partly used: generate it again
            draws.refill()
            draws.normals = draws.normals[_NORMALS_AHEAD - n_normals :]
        self._at_rest.append(draws)

    @classmethod
    def from_random_state(cls, random_state: object, name: str) -> SecretStream:
        """Return a root stream with a new key from the operating system (None) or a reproducible one.

        Parameters
        ----------
        random_state : int, numpy.random.RandomState, numpy.random.Generator or None
            Any value except None makes the noise predictable for anyone who knows it.
        name : str
            Public name of the releasing class or function, without its module. Different names give independent streams
            with the same seed, because noise that two releases share can be subtracted without knowing the seed.
        """
        transcript = RUNNING.get()
        if random_state is None:
            # Only the transcript of an audit has a key that is not secret.
            key = None if transcript is None else transcript.root_key()
            secret = os.urandom(32) if key is None else key  # the operating system's generator, seeded with entropy
            return cls(secret, None if transcript is None else transcript.new_track())
        if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
            seed = str(int(random_state)).encode()
        elif isinstance(random_state, np.random.RandomState | np.random.Generator):
            seed = b"generator:" + random_state.bytes(32)
        else:
            raise ValueError(
                f"`random_state` must be None, an int, a RandomState or a Generator, got {random_state!r}. Use None "
                "for secret noise, or an int for a reproducible run."
            )
        # The prefix separates these keys from those of other uses of the same seed.
        key = hashlib.sha256(f"skdp seed 2:{name!r}:".encode() + seed).digest()
        return cls(key, None if transcript is None else transcript.new_track())

    def spawn(self, *purpose: str | int) -> SecretStream:
        """Return an independent stream for a purpose; the same purpose returns the same stream again."""
        if self._process is not _PROCESS[0]:
            raise RuntimeError(_FORKED)
        # HMAC is a pseudorandom function: keys of different purposes look independent without the parent's key.
        return SecretStream(hmac.digest(self._key, repr(purpose).encode(), "sha256"), self.track)

    def subkey(self, *purpose: str | int) -> bytes:
        """Return the key of the stream of `spawn` for a purpose, to send it to another process."""
        return self.spawn(*purpose)._key

    def words(self, count: int) -> _Words:
        """Return the next `count` uniform 64-bit words, little-endian from the keystream."""
        return self._placed_words(count)[1]

    def _placed_words(self, count: int) -> tuple[int, _Words]:
        """Return the next words, and the unique position of the first one."""
        draws = self._take()
        start, words = draws.n_words, draws.words(count)
        self._at_rest.append(draws)
        return start, words.astype(np.uint64, copy=False)

    def normal(self, size: int, dtype: DTypeLike = np.float64) -> NDArray[np.floating]:
        """Return the next `size` independent standard normals.

        The sequence does not depend on how it is split into calls. Normals are generated in batches, and the rest of a
        batch is kept for the next call.
        """
        out = np.empty(size, dtype)  # before the state is removed: a memory error leaves the stream usable
        draws = self._take()
        draws.fill(out)
        self._at_rest.append(draws)
        return out

    def noisy(self, value: np.ndarray, scale: float, grid: float) -> np.ndarray:
        """Return each value plus `scale` * `grid` times the next normal, rounded to the nearest multiple of `grid`.

        Sums are rounded as if normals had infinitely many bits. The normals are those that `normal` would return.
        `scale` must be from 1 to 2**46, and `grid` a power of two.
        """
        out = np.empty(len(value))
        draws = self._take()
        filled = 0
        while filled < len(out):
            if not len(draws.normals):
                draws.refill()
            part = out[filled : filled + len(draws.normals)]
            exact, normals = value[filled : filled + len(part)], draws.normals[: len(part)]
            limit = 0.5 - scale * draws.bound
            if add_normals(exact, normals, scale, grid, limit, part):
                draws.decide(part, exact, scale, grid, limit)
            draws.normals = draws.normals[len(part) :]
            filled += len(part)
        self._at_rest.append(draws)
        return out

    def poisson_rows(self, n: int, rate: float) -> NDArray[np.int64]:
        """Draw each of `n` rows independently with probability `rate` in (0, 1), in time O(rows drawn).

        The rows are in increasing order. The probability is exactly this double, as if words had infinitely many bits.
        """
        expected = n * rate
        batch = int(expected + 4.0 * math.sqrt(expected)) + 8  # four standard deviations: one call usually suffices
        last, parts = -1, []
        while last < n:
            rows = self._gaps(batch, n, rate)
            count, last = rows_from_gaps(rows, n, last)
            parts.append(rows[:count])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _gaps(self, count: int, n: int, rate: float) -> NDArray[np.int64]:
        """Return the numbers of rows that are skipped before the next one is drawn, at most n."""
        start, words = self._placed_words(count)
        log_survival, gaps = -math.log1p(-rate), np.empty(count, np.int64)
        if gaps_from_words(words, log_survival, float(n), *certainty(log_survival), gaps):
            for i in np.flatnonzero(gaps < 0).tolist():
                key = hmac.digest(self._key, repr(("further bits of a gap", start + i)).encode(), "sha256")
                gaps[i] = exact_gap(int(words[i]), rate, n, _words_of(_Draws(key, 0)))
        return gaps

    def __reduce__(self) -> NoReturn:
        raise TypeError("A SecretStream cannot be pickled or copied, because its key reveals the noise.")


def _mark_child() -> None:
    _PROCESS[0] = object()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_mark_child)
