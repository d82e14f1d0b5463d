"""Where a bill is kept: what a log can do, and the log that lives in memory."""

from __future__ import annotations

import os
import threading
from typing import Any, Protocol

from skdp.exceptions import AccountantDetachedError

from ._bill import Bill
from ._charges import Charge, Terms
from ._serial import chain

__all__ = ["LOCK", "Log", "MemoryLog"]

LOCK = threading.RLock()
"""Held while any log of this process is read or written. One for all, and held across a fork: so no child inherits a
log half written, an open connection, or a lock whose owner does not exist there."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release)


class Log(Protocol):
    """A bill that is kept somewhere. Entries are added at its end and never altered."""

    @property
    def terms(self) -> Terms:
        """The ceiling and what else never changes."""

    @property
    def path(self) -> str | None:
        """The file, or None."""

    @property
    def is_copy(self) -> bool:
        """Whether the balance lives elsewhere, so that this one cannot be charged."""

    def bill(self) -> Bill:
        """Everything charged until now, by whomever."""

    def append(self, charge: Charge) -> None:
        """Admit a charge and write it down as one step, or raise and write nothing."""

    def verify(self) -> list[str]:
        """The hashes of the chain, computed anew; raise if they are not those that were written."""


class MemoryLog:
    """A log in memory, of one process.

    Parameters
    ----------
    bill : Bill
    detached : bool
        Whether it can be read only.
    """

    path = None

    def __init__(self, bill: Bill, *, detached: bool = False) -> None:
        self.terms = bill.terms
        self._bill, self._detached, self._process = bill, detached, os.getpid()

    @property
    def is_copy(self) -> bool:
        """Whether the balance lives elsewhere: after pickling, in JSON, or in the process that this one forked from."""
        return self._detached or self._process != os.getpid()

    def bill(self) -> Bill:
        """Everything charged until now."""
        with LOCK:
            return self._bill.snapshot()

    def append(self, charge: Charge) -> None:
        """Admit a charge and write it down, or raise."""
        if self.is_copy:
            raise AccountantDetachedError(
                "this accountant is a copy (pickled, forked, or from_json without resume=True) and cannot spend; the "
                "balance lives where it came from; keep it in a file, PrivacyAccountant(path=...), or run with "
                "n_jobs=1 or with threads (joblib.parallel_backend('threading'))."
            )
        with LOCK:
            self._bill.refuse(charge)
            self._bill.add(charge)

    def verify(self) -> list[str]:
        """The hashes of the chain; nothing in memory can differ from them."""
        return chain(self.terms, self.bill().history)

    def __getstate__(self) -> dict[str, Any]:
        return {"terms": self.terms, "_bill": self.bill(), "_process": self._process}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._detached = True
