"""The charge of one fit, of an estimator, a pipeline or a search, and the record of refusals."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

from skdp._checks.units import ROW
from skdp.accounting import DpEvent, PrivacyAccountant

Learned = TypeVar("Learned")


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


def charged(learn: Callable[..., Learned], *given: Any) -> Learned:
    """Return ``learn(*given)``, of which the charge was made; an error for want of memory says that it stands.

    NumPy's own error names the shape of an array, which may be that of a lot: it is neither shown nor chained.
    """
    try:
        return learn(*given)
    except MemoryError:
        pass
    raise MemoryError(
        "memory ran out after the fit was charged, which stands: give it more, or choose a smaller model or lots."
    )


__all__ = ["Payment", "charged"]
