"""Streams of fixed keys: a statistical test on one of them is either red always or never."""

from __future__ import annotations

import hashlib

from skdp.mechanisms.streams import SecretStream

FALSE_ALARM = 1e-6


def stream(name: str = "test") -> SecretStream:
    return SecretStream(hashlib.sha256(name.encode()).digest())
