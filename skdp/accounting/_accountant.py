"""`PrivacyAccountant`: the running bill of one data set, and its ceiling."""

from __future__ import annotations

import json
import math
import os
import threading
from typing import Any

from skdp.exceptions import AccountantDetachedError, BudgetExceededError

from ._charges import Charge, joint_price
from ._composition import Releases, compose, releases
from ._filters import FAMILIES, Filter, filter_for
from ._methods import check_adjacency, check_delta, check_epsilon, check_method, get_delta
from ._odometer import odometer_epsilon, total_cost
from ._report import Rows, as_html, as_text, charge_rows
from ._serial import SCHEMA, bill_from_json, event_from_dict, event_to_dict
from .events import DpEvent, SelfComposedDpEvent

__all__ = ["Charge", "PrivacyAccountant"]


class PrivacyAccountant:
    """Adds up what has been done to one data set, and refuses what would pass a ceiling.

    Cloning and copying give the same accountant, so that every clone of an estimator charges one bill.
    A pickled copy (another process) can be read, but refuses to spend.

    Parameters
    ----------
    epsilon, delta : float, optional
        The ceiling: both or neither.
    unit : str
        What one record is: whose presence is protected, such as "row" or "person". Shown in the bill.
    filter_family : {"auto", "gaussian", "renyi"}
        Under a ceiling, the theorem by which charges after the first are admitted. "auto": the Gaussian
        filter if the first charge is plain Gaussian, and then nothing else is admitted; otherwise Rényi.
        "renyi" from the start, for a run that begins with a plain Gaussian charge and goes on with others.

    Notes
    -----
    Under a ceiling the first charge is a plan declared before any output was seen and is admitted by its
    joint price. Further charges may have been chosen after seeing outputs and are admitted by a privacy
    filter (see `skdp.accounting._filters`), which is stricter than the joint price. Plans that are known
    together are better charged together, as one `ComposedDpEvent`. There are no refunds.

    Two figures tell how much was spent so far. `get_epsilon` is the joint price of everything charged,
    valid for plans fixed in advance. `get_epsilon(adaptive=True)` is valid also where charges, or the end
    of the run, were chosen after seeing outputs, by the theorem in `skdp.accounting._odometer`. With a
    ceiling the run as a whole is (epsilon, delta)-private at the ceiling, however charges were chosen.
    """

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        unit: str = "row",
        filter_family: str = "auto",
    ) -> None:
        if (epsilon is None) != (delta is None):
            raise ValueError(f"epsilon={epsilon!r}, delta={delta!r}: a ceiling needs both; give both or neither.")
        if not isinstance(unit, str) or not unit:
            raise ValueError(f"unit={unit!r} is not valid; give a word such as 'row' or 'person'.")
        if filter_family not in FAMILIES:
            raise ValueError(f"filter_family={filter_family!r} is not known; choose one of {', '.join(FAMILIES)}.")
        self._unit, self._family = unit, filter_family
        self._epsilon = None if epsilon is None else check_epsilon(epsilon, positive=True)
        self._delta = None if delta is None else check_delta(delta)
        self._adjacency: str | None = None
        self._history: list[Charge] = []
        self._runs: list[tuple[DpEvent, int]] = []
        self._counts: dict[DpEvent, int] = {}
        self._first: Releases | None = None
        self._detached = False
        self._process = os.getpid()
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
    def unit(self) -> str:
        """What one record is."""
        return self._unit

    @property
    def filter_family(self) -> str:
        """Family of the filter, as given."""
        return self._family

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
            self._record(event, found, Charge(event, label, adjacency, self._unit))

    def get_epsilon(self, delta: float | None = None, *, method: str | None = None, adaptive: bool = False) -> float:
        """What everything charged so far costs.

        Parameters
        ----------
        delta : float, optional
            In (0, 1); the ceiling's if left out. For the adaptive figure, one that was named in advance.
        method : str, optional
            As in `skdp.accounting.get_epsilon`, guarantees only. Left out: PLD, or Rényi where that alone
            has a price. Not for the adaptive figure.
        adaptive : bool
            False: the joint price, valid for plans fixed in advance. True: an odometer's, valid also for
            charges and an end that were chosen after seeing outputs; never less than about the joint price.

        Returns
        -------
        float
            In nats; 0.0 if nothing was charged. The adaptive figure is inf where no theorem covers a charge.
        """
        delta = self._delta if delta is None else check_delta(delta)
        if delta is None:
            raise ValueError("delta=None is not valid without a ceiling; give a number such as get_epsilon(1e-5).")
        if not adaptive:
            return joint_price(self.event, delta, self._adjacency or "zero_out", method)
        if method is not None:
            raise ValueError(f"method={method!r} has no odometer; leave it out with adaptive=True.")
        with self._lock:
            return self._odometer(delta)

    def _odometer(self, delta: float) -> float:
        adjacency, charges = self._adjacency or "zero_out", [(releases(e), n) for e, n in self._counts.items()]
        if not charges:
            return 0.0
        once = next(iter(self._counts)) if sum(self._counts.values()) == 1 else None
        first = None if once is None else (lambda share: joint_price(once, share, adjacency))
        found = odometer_epsilon(lambda limit: total_cost(limit, charges), first, delta, adjacency == "replace_one")
        return max(found, joint_price(self.event, delta, adjacency))

    def get_delta(self, epsilon: float, *, method: str = "pld") -> float:
        """Delta of everything charged so far at `epsilon`; 0.0 if nothing was charged."""
        return get_delta(self.event, epsilon, method=check_method(method), adjacency=self._adjacency or "zero_out")

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
            if self._first is None and joint_price(event, self._delta, adjacency) > self._epsilon:
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
        return filter_for(first, self._epsilon, self._delta, adjacency == "replace_one", self._family)

    def _cost(self, limit: Filter, event: DpEvent | None = None, count: int = 1) -> float:
        """Cost of everything charged, and of `count` times `event`, rounded up."""
        counts = dict(self._counts)
        if event is not None:
            counts[event] = counts.get(event, 0) + count
        return total_cost(limit, ((releases(each), number) for each, number in counts.items()))

    @property
    def _is_copy(self) -> bool:
        """Whether the balance lives elsewhere: after pickling, in JSON, or in the process that this one forked from."""
        return self._detached or self._process != os.getpid()

    def _refuse_detached(self) -> None:
        if self._is_copy:
            raise AccountantDetachedError(
                "this accountant is a copy (pickled, forked, or from_json without resume=True) and cannot spend; "
                "the balance lives where it came from; run with n_jobs=1 or with threads "
                "(joblib.parallel_backend('threading'))."
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
            price = joint_price(event, self._delta, adjacency)
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
                "together as one ComposedDpEvent, or mix kinds in PrivacyAccountant(epsilon, delta, "
                "filter_family='renyi')."
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

    def to_json(self) -> str:
        """The bill as JSON: schema version, ceiling, unit, and every charge with its event.

        Returns
        -------
        str
        """
        with self._lock:
            charges = [
                {"label": c.label, "adjacency": c.adjacency, "unit": c.unit, "event": event_to_dict(c.event)}
                for c in self._history
            ]
            ceiling = {"epsilon": self._epsilon, "delta": self._delta}
        content = {"schema": SCHEMA, **ceiling, "unit": self._unit, "filter_family": self._family, "charges": charges}
        return json.dumps(content)

    @classmethod
    def from_json(cls, text: str, *, resume: bool = False) -> PrivacyAccountant:
        """The bill that `to_json` wrote.

        Parameters
        ----------
        text : str
        resume : bool
            False: a copy that can be read but refuses to spend, as two copies that spend would each miss what
            the other spends. True: this copy carries the bill on; say so only if no other one will.

        Returns
        -------
        PrivacyAccountant
        """
        content = bill_from_json(text)
        family = content["filter_family"]
        result = cls(content["epsilon"], content["delta"], unit=content["unit"], filter_family=family)
        for each in content["charges"]:
            if not isinstance(each, dict) or not isinstance(each.get("label"), str) or each.get("unit") != result.unit:
                raise ValueError(f"charge={each!r} is not one of unit {result.unit!r}; give what to_json returned.")
            event, adjacency = event_from_dict(each.get("event")), check_adjacency(each.get("adjacency"))
            result._refuse_mixed(adjacency)
            result._record(event, releases(event), Charge(event, each["label"], adjacency, result.unit))
        result._detached = not resume
        return result

    def _figures(self, delta: float | None) -> Rows:
        """The figures under the table, each with what it is valid for."""
        figures = []
        if self._epsilon is not None:
            figures.append(("ceiling", f"epsilon={self._epsilon:g} at delta={self._delta:g}"))
        delta = self._delta if delta is None else check_delta(delta)
        if delta is None:
            return [*figures, ("spent", "give a delta, as in table(delta=1e-5)")]
        for name, adaptive in (("plans fixed in advance", False), ("charges chosen adaptively", True)):
            value = self.get_epsilon(delta, adaptive=adaptive)
            figures.append((f"spent, valid for {name}", f"epsilon={value:.6g} at delta={delta:g}"))
        return figures

    def _rows(self) -> Rows:
        return charge_rows([(charge.event, charge.label, charge.adjacency, charge.unit) for charge in self.history])

    def table(self, delta: float | None = None) -> str:
        """The bill as text: its charges, and what they cost so far by both figures.

        Parameters
        ----------
        delta : float, optional
            In (0, 1); the ceiling's if left out.

        Returns
        -------
        str
        """
        return as_text(f"PrivacyAccountant, {len(self._history)} charges", self._rows(), self._figures(delta))

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        return as_html(repr(self), self._rows(), self._figures(None))

    def __repr__(self) -> str:
        parts = []
        if self._epsilon is not None:
            spent, adaptive = self.get_epsilon(), self.get_epsilon(adaptive=True)
            parts.append(
                f"epsilon={self._epsilon:g}, delta={self._delta:g}, spent={spent:.4g}, adaptive={adaptive:.4g}"
            )
        parts.append(f"charges={len(self._history)}")
        if self._adjacency is not None:
            parts.append(f"adjacency={self._adjacency!r}")
        if self._unit != "row":
            parts.append(f"unit={self._unit!r}")
        if self._is_copy:
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
