"""The charge of one fit, of an estimator, a pipeline or a search, and the record of refusals."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from skdp._checks.units import ROW
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
    unit : {"row", "group"}
        What the event is private for; a ledger of another unit refuses it.
    """

    accountant: PrivacyAccountant | None
    label: str
    adjacency: str
    parameters: dict[str, Any]
    unit: str = ROW

    def check(self, event: DpEvent) -> None:
        """Raise what `charge` would raise; nothing is charged."""
        if self.accountant is not None:
            self.accountant.check(event, self.adjacency, parameters=self.parameters, unit=self.unit)

    def charge(self, event: DpEvent, note: str = "") -> None:
        """Charge `event`, or raise and charge nothing."""
        if self.accountant is not None:
            given: dict[str, Any] = {"adjacency": self.adjacency, "parameters": self.parameters, "unit": self.unit}
            self.accountant.spend(event, self.label, note=note, **given)

    def record_rejection(self) -> None:
        """Record on the ledger that rows were refused: that is a query, which costs nothing here."""
        if self.accountant is not None:
            self.accountant.record_rejection(self.label, adjacency=self.adjacency)


@contextlib.contextmanager
def recording_refusals(find_payment: Callable[[], Payment]) -> Iterator[None]:
    """Record that rows were refused within, by the payment of the fit, which is found if one is needed."""
    try:
        yield
    except Warning:  # a leak that was turned into an error
        raise
    except Exception:
        find_payment().record_rejection()
        raise


__all__ = ["Payment", "recording_refusals"]
