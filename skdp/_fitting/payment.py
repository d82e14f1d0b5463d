"""The charge of one fit, of an estimator, a pipeline or a search, and the record of refusals."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from skdp.accounting import DpEvent, PrivacyAccountant


class Payment(NamedTuple):
    """Where a fit is charged, and what the ledger keeps with the charge.

    Attributes
    ----------
    accountant : PrivacyAccountant or None
        None: nothing is charged anywhere.
    label : str
    adjacency : str
    parameters : dict
        Public ones alone.
    """

    accountant: PrivacyAccountant | None
    label: str
    adjacency: str
    parameters: dict[str, Any]

    def check(self, event: DpEvent) -> None:
        """Raise what `charge` would raise; nothing is charged."""
        if self.accountant is not None:
            self.accountant.check(event, self.adjacency, parameters=self.parameters)

    def charge(self, event: DpEvent, note: str = "") -> None:
        """Charge `event`, or raise and charge nothing."""
        if self.accountant is not None:
            self.accountant.spend(event, self.label, adjacency=self.adjacency, parameters=self.parameters, note=note)

    @contextlib.contextmanager
    def recording_refusals(self) -> Iterator[None]:
        """Record on the ledger that rows were refused within: that is a query, which costs nothing here."""
        try:
            yield
        except Warning:  # a leak that was turned into an error
            raise
        except Exception:
            if self.accountant is not None:
                self.accountant.record_refusal(self.label, adjacency=self.adjacency)
            raise


__all__ = ["Payment"]
