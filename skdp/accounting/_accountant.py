"""`PrivacyAccountant`: the running bill of one data set, and its ceiling."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import Any

from skdp.exceptions import AccountantDetachedError, BudgetExceededError

from ._composition import Releases, compose, releases
from ._filters import Filter, filter_for
from ._methods import check_adjacency, check_delta, check_epsilon, get_delta, get_epsilon
from .events import DpEvent, SelfComposedDpEvent

__all__ = ["Charge", "PrivacyAccountant"]


@dataclass(frozen=True)
class Charge:
    """One entry of an accountant's history."""

    event: DpEvent
    label: str
    adjacency: str


class PrivacyAccountant:
    """Adds up what has been done to one data set, and refuses what would pass a ceiling.

    Cloning and copying give the same accountant, so that every clone of an estimator charges one bill.
    A pickled copy (another process) can be read, but refuses to spend.

    Parameters
    ----------
    epsilon, delta : float, optional
        The ceiling: both or neither.

    Notes
    -----
    Under a ceiling the first charge is a plan declared before any output was seen and is admitted by its
    PLD price. Further charges may have been chosen after seeing outputs and are admitted by a privacy
    filter (see `skdp.accounting._filters`), which is stricter than the joint PLD price. Plans that are
    known together are better charged together, as one `ComposedDpEvent`. There are no refunds.

    `get_epsilon` is the joint price of everything charged, valid for plans fixed in advance. With a
    ceiling the run as a whole is (epsilon, delta)-private at the ceiling, however charges were chosen.
    """

    def __init__(self, epsilon: float | None = None, delta: float | None = None) -> None:
        if (epsilon is None) != (delta is None):
            raise ValueError(f"epsilon={epsilon!r}, delta={delta!r}: a ceiling needs both; give both or neither.")
        self._epsilon = None if epsilon is None else check_epsilon(epsilon, positive=True)
        self._delta = None if delta is None else check_delta(delta)
        self._adjacency: str | None = None
        self._history: list[Charge] = []
        self._runs: list[tuple[DpEvent, int]] = []
        self._counts: dict[DpEvent, int] = {}
        self._first: Releases | None = None
        self._detached = False
        self._lock = threading.RLock()

    @property
    def epsilon(self) -> float | None:
        """Ceiling on epsilon, or None."""
        return self._epsilon

    @property
    def delta(self) -> float | None:
        """Delta of the ceiling, or None."""
        return self._delta

    @property
    def adjacency(self) -> str | None:
        """Adjacency of all charges so far; None before the first."""
        return self._adjacency

    @property
    def history(self) -> tuple[Charge, ...]:
        """All charges, in order."""
        with self._lock:
            return tuple(self._history)

    @property
    def event(self) -> DpEvent:
        """Everything charged so far as one event, equal neighbours counted."""
        with self._lock:
            return compose(SelfComposedDpEvent(event, count) for event, count in self._runs)

    def spend(self, event: DpEvent, label: str = "", *, adjacency: str = "zero_out") -> None:
        """Charge an event, before the data are touched.

        Parameters
        ----------
        event : DpEvent
        label : str
            What it was for, as shown in `history`.
        adjacency : {"zero_out", "add_remove", "replace_one"}
            The same for all charges of an accountant.

        Raises
        ------
        BudgetExceededError
            If the ceiling would be passed. Nothing is charged then.
        AccountantDetachedError
            On a pickled copy.
        """
        found, adjacency = releases(event), check_adjacency(adjacency)
        if not isinstance(label, str):
            raise TypeError(f"label={label!r} is not valid; give a string.")
        with self._lock:
            self._refuse_detached()
            self._refuse_mixed(adjacency)
            if not found.empty and self._epsilon is not None:
                self._refuse_excess(event, found, adjacency)
            self._record(event, found, Charge(event, label, adjacency))

    def get_epsilon(self, delta: float | None = None, *, method: str = "pld") -> float:
        """Joint price of everything charged so far, as for a plan fixed in advance.

        Parameters
        ----------
        delta : float, optional
            In (0, 1); the ceiling's if left out.
        method : {"pld", "rdp"}

        Returns
        -------
        float
            In nats; 0.0 if nothing was charged.
        """
        delta = self._delta if delta is None else delta
        if delta is None:
            raise ValueError("delta=None is not valid without a ceiling; give a number such as get_epsilon(1e-5).")
        return get_epsilon(self.event, delta, method=method, adjacency=self._adjacency or "zero_out")

    def get_delta(self, epsilon: float, *, method: str = "pld") -> float:
        """Delta of everything charged so far at `epsilon`; 0.0 if nothing was charged."""
        return get_delta(self.event, epsilon, method=method, adjacency=self._adjacency or "zero_out")

    def remaining(self, event: DpEvent | None = None) -> float:
        """What the ceiling still admits.

        Parameters
        ----------
        event : DpEvent, optional

        Returns
        -------
        float or int
            Without `event`: epsilon of the ceiling less `get_epsilon()`. With `event`: how many more
            charges of exactly that event would be admitted, an int. `math.inf` without a ceiling, and for
            an event that costs nothing.
        """
        if self._epsilon is None or self._delta is None:
            return math.inf
        if event is None:
            return max(0.0, self._epsilon - self.get_epsilon())
        found = releases(event)
        if found.empty:
            return math.inf
        with self._lock:
            adjacency = self._adjacency or "zero_out"
            if self._first is None and get_epsilon(event, self._delta, adjacency=adjacency) > self._epsilon:
                return 0
            limit = self._filter(self._first or found, adjacency)
            cost, spent = limit.cost(found), self._cost(limit)
            if not cost < math.inf or cost <= 0.0:
                return 1 if self._first is None else 0
            count = max(0, int((limit.budget - spent) / cost) + 2)
            while count > 0 and self._cost(limit, event, count) > limit.budget:
                count -= 1
            return max(count, 1) if self._first is None else count

    def _filter(self, first: Releases, adjacency: str) -> Filter:
        if self._epsilon is None or self._delta is None:
            raise ValueError("an accountant without a ceiling has no filter; give epsilon and delta.")
        return filter_for(first, self._epsilon, self._delta, adjacency == "replace_one")

    def _cost(self, limit: Filter, event: DpEvent | None = None, count: int = 1) -> float:
        """Cost of everything charged, and of `count` times `event`, rounded up."""
        counts = dict(self._counts)
        if event is not None:
            counts[event] = counts.get(event, 0) + count
        total = math.fsum(number * limit.cost(releases(each)) for each, number in counts.items())
        return total * (1.0 + 4e-16 * len(counts))

    def _refuse_detached(self) -> None:
        if self._detached:
            raise AccountantDetachedError(
                "this PrivacyAccountant is a pickled copy and cannot spend: the balance lives in the process it came "
                "from; run with n_jobs=1 or with threads (joblib.parallel_backend('threading'))."
            )

    def _refuse_mixed(self, adjacency: str) -> None:
        if self._adjacency not in (None, adjacency):
            raise ValueError(
                f"adjacency={adjacency!r} cannot be mixed with {self._adjacency!r}, which this accountant already "
                "holds; use one adjacency, or a second accountant."
            )

    def _refuse_excess(self, event: DpEvent, found: Releases, adjacency: str) -> None:
        """Raise if the ceiling does not admit the event. No slack: calibrated plans lie at or below it."""
        ceiling = f"ceiling epsilon={self._epsilon!r} at delta={self._delta!r}"
        if self._epsilon is None or self._delta is None:
            return
        if self._first is None:
            price = get_epsilon(event, self._delta, adjacency=adjacency)
            if price > self._epsilon:
                raise BudgetExceededError(
                    f"the plan costs epsilon={price:.6g}, above the {ceiling} (spent 0); nothing was charged: "
                    "raise noise_multiplier, take fewer steps or raise the ceiling."
                )
            return
        limit = self._filter(self._first, adjacency)
        if not limit.covers(found):
            raise BudgetExceededError(
                f"{type(event).__name__} after a first charge of another kind has no adaptive guarantee under the "
                f"{ceiling} (spent epsilon={self.get_epsilon():.6g}); nothing was charged: charge plans that are known "
                "together as one ComposedDpEvent."
            )
        if self._cost(limit, event) > limit.budget:
            raise BudgetExceededError(
                f"the event takes {limit.cost(found):.6g} and {self._cost(limit):.6g} of {limit.budget:.6g} is spent "
                f"(adaptive budget of the {ceiling}; joint epsilon so far {self.get_epsilon():.6g}); nothing was "
                "charged: raise noise_multiplier, take fewer steps, raise the ceiling or charge plans together."
            )

    def _record(self, event: DpEvent, found: Releases, charge: Charge) -> None:
        self._history.append(charge)
        self._adjacency = charge.adjacency
        if found.empty:
            return
        self._first = self._first or found
        self._counts[event] = self._counts.get(event, 0) + 1
        if self._runs and self._runs[-1][0] == event:
            self._runs[-1] = (event, self._runs[-1][1] + 1)
        else:
            self._runs.append((event, 1))

    def __repr__(self) -> str:
        parts = []
        if self._epsilon is not None:
            spent = self.get_epsilon()
            parts.append(f"epsilon={self._epsilon:g}, delta={self._delta:g}, spent={spent:.4g}")
        parts.append(f"charges={len(self._history)}")
        if self._adjacency is not None:
            parts.append(f"adjacency={self._adjacency!r}")
        if self._detached:
            parts.append("detached copy")
        return f"PrivacyAccountant({', '.join(parts)})"

    def __sklearn_clone__(self) -> PrivacyAccountant:
        return self

    def __copy__(self) -> PrivacyAccountant:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> PrivacyAccountant:
        return self

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            state = {name: value for name, value in self.__dict__.items() if name != "_lock"}
            return {**state, "_history": list(self._history), "_runs": list(self._runs), "_counts": dict(self._counts)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._detached = True
        self._lock = threading.RLock()
