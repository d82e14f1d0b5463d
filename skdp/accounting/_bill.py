"""`Bill`: what was charged, what it costs, and what the ceiling still admits."""

from __future__ import annotations

import math
from copy import copy

from skdp.exceptions import BudgetExceededError

from ._charges import Charge, Terms, joint_price
from ._composition import Releases, compose, releases
from ._filters import Filter, filter_for
from ._odometer import odometer_epsilon, rounded_up, total_cost
from .events import DpEvent, SelfComposedDpEvent

__all__ = ["Bill"]


class Bill:
    """Charges in order, and what has to be known to admit another one without pricing them all again.

    Parameters
    ----------
    terms : Terms

    Attributes
    ----------
    history : list of Charge
    adjacency : str or None
        Of all charges; None before the first.
    """

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.adjacency: str | None = None
        self.history: list[Charge] = []
        self._runs: list[tuple[DpEvent, int]] = []
        self._counts: dict[DpEvent, int] = {}
        self._takes: dict[DpEvent, float] = {}  # what one charge takes from the filter; keys in the order of _counts
        self._first: Releases | None = None

    def snapshot(self) -> Bill:
        """A copy that later charges leave alone."""
        other = copy(self)
        other.history, other._runs = list(self.history), list(self._runs)
        other._counts, other._takes = dict(self._counts), dict(self._takes)
        return other

    @property
    def event(self) -> DpEvent:
        """Everything charged as one event, equal neighbours counted."""
        return compose(SelfComposedDpEvent(event, count) for event, count in self._runs)

    def add(self, charge: Charge) -> None:
        """Enter a charge, admitted or read from a log."""
        self.refuse_mixed(charge.adjacency)
        event, found = charge.event, releases(charge.event)
        first = self._first if found.empty else self._first or found
        if not found.empty and event not in self._takes:
            limited = first is not None and self.terms.epsilon is not None
            self._takes[event] = self._filter(first, charge.adjacency).cost(found) if limited else math.nan
        self._first, self.adjacency = first, charge.adjacency
        self.history.append(charge)
        if found.empty:
            return
        self._counts[event] = self._counts.get(event, 0) + 1
        if self._runs and self._runs[-1][0] == event:
            self._runs[-1] = (event, self._runs[-1][1] + 1)
        else:
            self._runs.append((event, 1))

    # --- what is refused ---

    def refuse(self, charge: Charge) -> None:
        """Raise if the charge mixes adjacencies or is not admitted by the ceiling."""
        self.refuse_mixed(charge.adjacency)
        found = releases(charge.event)
        if not found.empty and self.terms.epsilon is not None:
            self._refuse_excess(charge.event, found, charge.adjacency)

    def refuse_mixed(self, adjacency: str) -> None:
        """Raise if the bill holds another adjacency."""
        if self.adjacency not in (None, adjacency):
            raise ValueError(
                f"adjacency={adjacency!r} cannot be mixed with {self.adjacency!r}, which this accountant already "
                "holds; use one adjacency, or a second accountant."
            )

    def _refuse_excess(self, event: DpEvent, found: Releases, adjacency: str) -> None:
        """Raise if the ceiling does not admit the event. No slack: calibrated plans lie at or below it."""
        epsilon, delta = self.ceiling
        ceiling = f"ceiling epsilon={epsilon!r} at delta={delta!r}"
        if self._first is None:
            price = joint_price(event, delta, adjacency)
            if price > epsilon:
                raise BudgetExceededError(
                    f"the plan costs epsilon={price:.6g}, above the {ceiling} (spent 0); nothing was charged: "
                    "raise noise_multiplier, take fewer steps or raise the ceiling."
                )
            return
        limit = self._filter(self._first, adjacency)
        if not limit.covers(found):
            raise BudgetExceededError(
                f"{type(event).__name__} after a first charge of another kind has no adaptive guarantee under the "
                f"{ceiling}; nothing was charged: charge plans that are known together as one ComposedDpEvent, or mix "
                "kinds in PrivacyAccountant(epsilon, delta, filter_family='renyi')."
            )
        if self._spent(event, limit.cost(found)) > limit.budget:
            raise BudgetExceededError(
                f"the event takes {limit.cost(found):.6g} and {self._spent():.6g} of {limit.budget:.6g} is spent "
                f"(adaptive budget of the {ceiling}); nothing was charged: raise noise_multiplier, take fewer steps, "
                "raise the ceiling or charge plans together."
            )

    @property
    def ceiling(self) -> tuple[float, float]:
        """Epsilon and delta of the ceiling."""
        if self.terms.epsilon is None or self.terms.delta is None:
            raise ValueError("an accountant without a ceiling has no filter; give epsilon and delta.")
        return self.terms.epsilon, self.terms.delta

    def _filter(self, first: Releases | None, adjacency: str) -> Filter:
        if first is None:
            raise ValueError("before its first charge an accountant has no filter.")
        return filter_for(first, *self.ceiling, adjacency == "replace_one", self.terms.family)

    def _spent(self, event: DpEvent | None = None, cost: float = 0.0, count: int = 1) -> float:
        """What everything charged takes from the filter, and `count` times `event` of that cost, rounded up."""
        counts, takes = self._counts, self._takes
        if event is not None:
            counts, takes = {**counts, event: counts.get(event, 0) + count}, {**takes, event: cost}
        return rounded_up([number * each for number, each in zip(counts.values(), takes.values(), strict=True)])

    # --- what it costs ---

    def price(self, delta: float, method: str | None = None) -> float:
        """Joint price of everything charged, in nats."""
        return joint_price(self.event, delta, self.adjacency or "zero_out", method)

    def adaptive_price(self, delta: float) -> float:
        """The odometer's figure, valid however charges were chosen, in nats."""
        adjacency, charges = self.adjacency or "zero_out", [(releases(e), n) for e, n in self._counts.items()]
        if not charges:
            return 0.0
        once = next(iter(self._counts)) if sum(self._counts.values()) == 1 else None
        first = None if once is None else (lambda share: joint_price(once, share, adjacency))
        found = odometer_epsilon(lambda limit: total_cost(limit, charges), first, delta, adjacency == "replace_one")
        return max(found, self.price(delta))

    def remaining(self, event: DpEvent) -> float:
        """How many more charges of exactly that event the ceiling would admit."""
        found = releases(event)
        if found.empty or self.terms.epsilon is None:
            return math.inf
        epsilon, delta = self.ceiling
        adjacency = self.adjacency or "zero_out"
        if self._first is None and joint_price(event, delta, adjacency) > epsilon:
            return 0
        limit = self._filter(self._first or found, adjacency)
        cost, least = limit.cost(found), 1 if self._first is None else 0
        if not cost < math.inf or cost <= 0.0:
            return least
        count = max(0, int((limit.budget - self._spent()) / cost) + 2)
        while count > 0 and self._spent(event, cost, count) > limit.budget:
            count -= 1
        return max(count, least)
