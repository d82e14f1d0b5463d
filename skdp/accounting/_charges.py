"""One entry of a bill, and the price of everything on it."""

from __future__ import annotations

from dataclasses import dataclass

from ._composition import releases
from ._methods import check_method, get_epsilon
from ._refusals import refusal
from ._report import sampling_of
from .events import DpEvent

__all__ = ["Charge", "joint_price"]


@dataclass(frozen=True)
class Charge:
    """One entry of an accountant's history."""

    event: DpEvent
    label: str
    adjacency: str
    unit: str = "row"

    @property
    def sampling(self) -> str:
        """How rows were sampled."""
        return sampling_of(self.event)


def joint_price(event: DpEvent, delta: float, adjacency: str, method: str | None = None) -> float:
    """Price by `method`, or by the tightest method that prices the event: PLD, else Rényi.

    Parameters
    ----------
    event : DpEvent
    delta : float
        In (0, 1).
    adjacency : str
    method : str, optional
        A guarantee; approximations are refused.

    Returns
    -------
    float
        In nats.
    """
    if method is None:
        found, replace = releases(event), adjacency == "replace_one"
        method = next((each for each in ("pld", "rdp") if refusal(found, each, replace) is None), "pld")
    return get_epsilon(event, delta, method=check_method(method), adjacency=adjacency)
