"""Where a ledger is kept: what a log can do, and the log that lives in memory."""

from __future__ import annotations

import os
import threading
from typing import Any, Protocol

from skdp.accounting.ledger.admission import admit
from skdp.accounting.ledger.charges import Charge, Terms
from skdp.accounting.ledger.ledger import Ledger
from skdp.accounting.ledger.serial import chain
from skdp.exceptions import AccountantDetachedError

# Held while any log of this process is read or written. One for all, and held across a fork: so no child inherits a log
# half written, an open connection, or a lock whose owner does not exist there.
LOCK = threading.RLock()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release)


class Turn:
    """Whose turn it is to charge a ledger, among the threads of one process.

    Held while a charge is priced and written, so that threads do not price against a state that another is about to
    change; reading is not blocked. A child of a fork has a lock of its own, as the owner of the old one is not there.
    """

    def __init__(self) -> None:
        self._process, self._lock = os.getpid(), threading.Lock()

    def lock(self) -> threading.Lock:
        """The lock of this process. An interrupt cannot come between its acquisition and the block that it guards."""
        with LOCK:
            if self._process != os.getpid():
                self._process, self._lock = os.getpid(), threading.Lock()
            return self._lock


class Log(Protocol):
    """A ledger that is kept somewhere. Entries are added at its end and never altered."""

    @property
    def terms(self) -> Terms:
        """The budget and what else never changes."""

    @property
    def path(self) -> str | None:
        """The file, or None."""

    @property
    def is_copy(self) -> bool:
        """Whether the balance lives elsewhere, so that this one cannot be charged."""

    def read(self) -> Ledger:
        """Everything charged until now, by any process."""

    def check(self, charge: Charge) -> None:
        """Raise what `append` would raise, and write nothing."""

    def append(self, charge: Charge) -> None:
        """Admit an entry and write it down as one step, or raise and write nothing."""

    def verify(self) -> list[str]:
        """The hashes of the chain, computed anew; raise if they are not those that were written."""


class MemoryLog:
    """A log in memory, of one process.

    Parameters
    ----------
    ledger : Ledger
    detached : bool
        Whether it can be read only.
    """

    path = None

    def __init__(self, ledger: Ledger, *, detached: bool = False) -> None:
        self.terms = ledger.terms
        self._ledger, self._detached, self._process, self._turn = ledger, detached, os.getpid(), Turn()

    @property
    def is_copy(self) -> bool:
        """Whether the balance lives elsewhere: after pickling, in JSON, or in the process that this one forked from."""
        return self._detached or self._process != os.getpid()

    def read(self) -> Ledger:
        """Everything charged until now."""
        with LOCK:
            return self._ledger.snapshot()

    def _refuse_copy(self) -> None:
        if self.is_copy:
            raise AccountantDetachedError(
                "this accountant is a copy (pickled, forked, or from_json without resume=True) and cannot spend; the "
                "balance lives where it came from; keep it in a file, PrivacyAccountant(path=...), or run with "
                "n_jobs=1 or with threads (joblib.parallel_backend('threading'))."
            )

    def check(self, charge: Charge) -> None:
        """Raise what `append` would raise."""
        self._refuse_copy()
        admit(self.read(), charge)

    def append(self, charge: Charge) -> None:
        """Admit an entry and write it down, or raise.

        The entry is priced before the lock is taken, so that readers do not wait. It is added to a copy, and one
        assignment puts the copy in place: Ctrl-C leaves the ledger without the entry, or with the whole of it.
        """
        self._refuse_copy()
        with self._turn.lock():
            ledger = self.read()
            ledger.add(admit(ledger, charge))
            with LOCK:
                self._ledger = ledger

    def verify(self) -> list[str]:
        """The hashes of the chain; nothing in memory can differ from them."""
        return chain(self.terms, self.read().entries)

    def __getstate__(self) -> dict[str, Any]:
        return {"terms": self.terms, "_ledger": self.read(), "_process": self._process}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.terms, self._ledger, self._process = state["terms"], state["_ledger"], state["_process"]
        self._detached = True
        self._turn = Turn()
