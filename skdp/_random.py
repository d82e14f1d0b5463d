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
from typing import NoReturn

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import DTypeLike, NDArray

from skdp._kernels.bits import BLOCK, normals_from_words, rows_from_words

_ZEROS = memoryview(bytes(1 << 16))
_NORMALS_AHEAD = 16 * BLOCK  # made at once: few calls to OpenSSL for a small model, no more than fits in cache


class SecretStream:
    """A stream of random words, normals and row samples under one secret key.

    Parameters
    ----------
    key : bytes of length 32

    Notes
    -----
    A stream is never pickled, printed or stored on an estimator: its state would reveal the noise that it made.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._start_at(0)
        self._normals: NDArray[np.float64] = np.empty(0)

    def _start_at(self, n_words: int) -> None:
        """Set the position of the keystream."""
        # AES encrypts blocks of 16 bytes, two words, and its counter counts blocks.
        counter = (n_words // 2).to_bytes(16, "big")
        self._keystream = Cipher(algorithms.AES256(self._key), modes.CTR(counter)).encryptor()
        self._keystream.update(bytes(8 * (n_words % 2)))  # skip the first word of a block
        self._n_words = n_words

    @property
    def position(self) -> tuple[int, int]:
        """Number of words drawn so far, and number of normals made of the last of them that are not used yet."""
        return self._n_words, len(self._normals)

    def seek(self, position: tuple[int, int]) -> None:
        """Continue from a `position` of a stream with the same key; only for seeded runs."""
        n_words, n_normals = position
        self._normals = np.empty(0)
        if n_normals:  # the last batch was used in part: make it again
            self._start_at(n_words - _NORMALS_AHEAD)
            self._refill()
            self._normals = self._normals[_NORMALS_AHEAD - n_normals :]
        else:
            self._start_at(n_words)

    @classmethod
    def from_random_state(cls, random_state: object = None) -> SecretStream:
        """The root stream: a fresh key from the operating system for None, a reproducible one otherwise.

        Parameters
        ----------
        random_state : int, numpy.random.RandomState, numpy.random.Generator or None
            Anything but None makes the noise predictable for anyone who knows it.
        """
        if random_state is None:
            return cls(os.urandom(32))  # the operating system's generator, seeded with entropy
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
        return cls(hashlib.sha256(b"skdp seed 1:" + seed).digest())

    def spawn(self, *purpose: str | int) -> SecretStream:
        """The independent stream of this purpose; the same purpose gives the same stream again."""
        return SecretStream(self.subkey(*purpose))

    def subkey(self, *purpose: str | int) -> bytes:
        """The key of the stream that `spawn` gives for this purpose, to be sent to a process that may know no other."""
        # HMAC is a pseudorandom function: keys of different purposes look independent without the parent's key.
        return hmac.digest(self._key, repr(purpose).encode(), "sha256")

    def words(self, count: int) -> NDArray[np.uint64]:
        """The next `count` uniform 64-bit words, little-endian from the keystream."""
        size = 8 * count
        self._n_words += count
        buffer = bytearray(size + 15)  # update_into needs room for one more block, less a byte
        view = memoryview(buffer)
        for start in range(0, size, len(_ZEROS)):
            # Encrypting zeros gives the keystream itself.
            self._keystream.update_into(_ZEROS[: size - start], view[start:])
        return np.frombuffer(buffer, "<u8", count).astype(np.uint64, copy=False)

    def normal(self, size: int, dtype: DTypeLike = np.float64) -> NDArray[np.floating]:
        """The next `size` independent standard normals.

        The sequence of normals does not depend on how it is split into calls: normals are made in batches, and the rest
        of a batch is kept for the next call.
        """
        out = np.empty(size, dtype)
        filled = 0
        while filled < size:
            if not len(self._normals):
                self._refill()
            taken = min(size - filled, len(self._normals))
            out[filled : filled + taken] = self._normals[:taken]
            self._normals = self._normals[taken:]
            filled += taken
        return out

    def _refill(self) -> None:
        self._normals = np.empty(_NORMALS_AHEAD)
        normals_from_words(self.words(_NORMALS_AHEAD), self._normals)

    def poisson_rows(self, n: int, rate: float) -> NDArray[np.int64]:
        """Each of `n` rows independently with probability `rate` in (0, 1), ascending, at a cost of O(rows drawn)."""
        expected = n * rate
        batch = int(expected + 4.0 * math.sqrt(expected)) + 8  # four standard deviations: one call mostly suffices
        log_survival, last, parts = -math.log1p(-rate), -1, []
        while last < n:
            rows = np.empty(batch, np.int64)
            count, last = rows_from_words(self.words(batch), log_survival, n, last, rows)
            parts.append(rows[:count])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def __reduce__(self) -> NoReturn:
        raise TypeError("A SecretStream cannot be pickled or copied: its key would reveal the noise that it made.")
