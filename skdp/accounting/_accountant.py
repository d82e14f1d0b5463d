"""`PrivacyAccountant`: the running bill of one data set, and its ceiling."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

from skdp.exceptions import BudgetFileError

from ._bill import Bill
from ._charges import Charge, Terms, check_text, now, plain_parameters
from ._composition import releases
from ._log import Log, MemoryLog
from ._methods import check_adjacency, check_delta, check_method, get_delta
from ._report import Rows, as_html, as_text, charge_rows
from ._serial import bill_from_json, bill_to_json
from .events import DpEvent

__all__ = ["Charge", "PrivacyAccountant"]


class PrivacyAccountant:
    """Adds up what has been done to one data set, and refuses what would pass a ceiling.

    Cloning and copying give the same accountant, so that every clone of an estimator charges one bill. With `path` the
    bill is kept in a file, and whoever opens it (threads, processes of ``n_jobs``, other scripts) draws on one balance.
    Without, it lives in memory: a pickled copy (another process) can be read, but refuses to spend.

    Parameters
    ----------
    epsilon, delta : float, optional
        The ceiling: both or neither. A file that exists keeps the one that it was created with.
    unit : str, optional
        What one record is: whose presence is protected, such as "row" (if left out) or "person". Shown in the bill.
    filter_family : {"auto", "gaussian", "renyi"}, optional
        Under a ceiling, the theorem by which charges after the first are admitted. "auto": the Gaussian
        filter if the first charge is plain Gaussian, and then nothing else is admitted; otherwise Rényi.
        "renyi" from the start, for a run that begins with a plain Gaussian charge and goes on with others.
        Left out: "auto", or what the file has.
    path : str or path-like, optional
        A file of SQLite; created where there is none. What is given beside it must not contradict the file.

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
        unit: str | None = None,
        filter_family: str | None = None,
        path: str | os.PathLike[str] | None = None,
    ) -> None:
        terms = Terms.checked(epsilon, delta, unit, filter_family)
        self._log: Log = MemoryLog(Bill(terms))
        if path is not None:
            from ._store import Store  # SQLite is not loaded for a bill in memory

            asked = {"epsilon": epsilon, "delta": delta, "unit": unit, "filter_family": filter_family}
            self._log = Store.at(path, terms, asked)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> PrivacyAccountant:
        """The budget of a file that exists: a path that is spelt wrong is an error, not a new budget.

        Parameters
        ----------
        path : str or path-like

        Returns
        -------
        PrivacyAccountant

        Raises
        ------
        BudgetFileError
            If there is no such file, or it cannot be read or trusted.
        """
        from ._store import Store

        return cls._of(Store.at(path))

    @classmethod
    def _of(cls, log: Log) -> PrivacyAccountant:
        self = cls.__new__(cls)
        self._log = log
        return self

    @property
    def epsilon(self) -> float | None:
        """Ceiling on epsilon, or None."""
        return self._log.terms.epsilon

    @property
    def delta(self) -> float | None:
        """Delta of the ceiling, or None."""
        return self._log.terms.delta

    @property
    def unit(self) -> str:
        """What one record is."""
        return self._log.terms.unit

    @property
    def filter_family(self) -> str:
        """Family of the filter."""
        return self._log.terms.family

    @property
    def path(self) -> str | None:
        """The file, absolute; None in memory."""
        return self._log.path

    @property
    def adjacency(self) -> str | None:
        """Adjacency of all charges so far; None before the first."""
        return self._log.bill().adjacency

    @property
    def history(self) -> tuple[Charge, ...]:
        """All charges, in order."""
        return tuple(self._log.bill().history)

    @property
    def event(self) -> DpEvent:
        """Everything charged so far as one event, equal neighbours counted."""
        return self._log.bill().event

    def spend(
        self,
        event: DpEvent,
        label: str = "",
        *,
        adjacency: str = "zero_out",
        parameters: Mapping[str, Any] | None = None,
        note: str = "",
    ) -> None:
        """Charge an event, before the data are touched.

        When this returns, the charge is on the bill; with a file, on the disk.

        Parameters
        ----------
        event : DpEvent
        label : str
            What it was for, as shown in `history`.
        adjacency : {"zero_out", "add_remove", "replace_one"}
            The same for all charges of an accountant.
        parameters : mapping, optional
            Public parameters of what was run, to be kept with the charge. No seeds, and nothing of the data.
        note : str
            Anything else worth keeping.

        Raises
        ------
        BudgetExceededError
            If the ceiling would be passed. Nothing is charged then.
        BudgetFileError
            If the file cannot be read, written or trusted. Nothing is charged then.
        AccountantDetachedError
            On a copy of an accountant that lives in memory.
        """
        releases(event)  # refuses what is no event
        adjacency, kept = check_adjacency(adjacency), plain_parameters(parameters)
        label, note = check_text("label", label), check_text("note", note)
        self._log.append(Charge(event, label, adjacency, self.unit, kept, note, now()))

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
        delta = self.delta if delta is None else check_delta(delta)
        if delta is None:
            raise ValueError("delta=None is not valid without a ceiling; give a number such as get_epsilon(1e-5).")
        if not adaptive:
            return self._log.bill().price(delta, method)
        if method is not None:
            raise ValueError(f"method={method!r} has no odometer; leave it out with adaptive=True.")
        return self._log.bill().adaptive_price(delta)

    def get_delta(self, epsilon: float, *, method: str = "pld") -> float:
        """Delta of everything charged so far at `epsilon`; 0.0 if nothing was charged."""
        bill = self._log.bill()
        return get_delta(bill.event, epsilon, method=check_method(method), adjacency=bill.adjacency or "zero_out")

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
        if self.epsilon is None:
            return math.inf
        if event is None:
            return max(0.0, self.epsilon - self.get_epsilon())
        return self._log.bill().remaining(event)

    @property
    def head(self) -> str:
        """The hash of the last charge, which stands for all before it; to be noted elsewhere, for `verify`."""
        return self._log.verify()[-1]

    def verify(self, head: str | None = None) -> int:
        """Check that no charge was altered: the file is whole, each hash is right, each charge can be priced.

        Parameters
        ----------
        head : str, optional
            A `head` that was noted earlier: it has to be among the hashes still. Without it, a file rewritten from
            its beginning and one that lost its last charges look sound.

        Returns
        -------
        int
            The number of charges.

        Raises
        ------
        BudgetFileError
            Naming the first charge that is not as it was written.
        """
        heads = self._log.verify()
        if head is not None and head not in heads:
            raise BudgetFileError(
                f"head={head!r} is not among the {len(heads)} hashes of path={self.path!r}: charges were altered or "
                "lost since it was noted; bring back an unharmed copy."
            )
        return len(heads) - 1

    def to_json(self) -> str:
        """The bill as JSON: its terms, every charge with its event and its hash, and the last hash as `head`.

        Returns
        -------
        str
        """
        bill = self._log.bill()
        return bill_to_json(bill.terms, bill.history)

    @classmethod
    def from_json(
        cls, text: str, *, resume: bool = False, path: str | os.PathLike[str] | None = None
    ) -> PrivacyAccountant:
        """The bill that `to_json` wrote.

        Parameters
        ----------
        text : str
        resume : bool
            False: a copy that can be read but refuses to spend, as two copies that spend would each miss what
            the other spends. True: this copy carries the bill on; say so only if no other one will.
        path : str or path-like, optional
            A new file to carry the bill on in.

        Returns
        -------
        PrivacyAccountant
        """
        terms, charges = bill_from_json(text)
        bill = Bill(terms)
        for charge in charges:
            bill.add(charge)
        if path is not None:
            if not resume:
                raise ValueError(
                    f"path={path!r} with resume=False: a file can be charged; give resume=True or no path."
                )
            from ._store import Store

            return cls._of(Store.begun(path, terms, charges))
        return cls._of(MemoryLog(bill, detached=not resume))

    def _figures(self, bill: Bill, delta: float | None) -> Rows:
        """The figures under the table, each with what it is valid for."""
        figures = []
        if self.epsilon is not None:
            figures.append(("ceiling", f"epsilon={self.epsilon:g} at delta={self.delta:g}"))
        delta = self.delta if delta is None else check_delta(delta)
        if delta is None:
            return [*figures, ("spent", "give a delta, as in table(delta=1e-5)")]
        for name, value in (
            ("plans fixed in advance", bill.price(delta)),
            ("charges chosen adaptively", bill.adaptive_price(delta)),
        ):
            figures.append((f"spent, valid for {name}", f"epsilon={value:.6g} at delta={delta:g}"))
        return figures

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
        bill = self._log.bill()
        title = f"PrivacyAccountant, {len(bill.history)} charges"
        return as_text(title, charge_rows(bill.history), self._figures(bill, delta))

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        bill = self._log.bill()
        return as_html(repr(self), charge_rows(bill.history), self._figures(bill, None))

    def __repr__(self) -> str:
        return f"PrivacyAccountant({', '.join(self._parts())})"

    def _parts(self) -> list[str]:
        where = [] if self.path is None else [f"path={self.path!r}"]
        try:
            bill = self._log.bill()
        except BudgetFileError:  # an estimator that holds this accountant can be shown all the same
            return [*where, "cannot be read"]
        parts = []
        if self.epsilon is not None and self.delta is not None:
            spent, adaptive = bill.price(self.delta), bill.adaptive_price(self.delta)
            parts.append(f"epsilon={self.epsilon:g}, delta={self.delta:g}, spent={spent:.4g}, adaptive={adaptive:.4g}")
        parts.append(f"charges={len(bill.history)}")
        if bill.adjacency is not None:
            parts.append(f"adjacency={bill.adjacency!r}")
        if self.unit != "row":
            parts.append(f"unit={self.unit!r}")
        if self._log.is_copy:
            parts.append("detached copy")
        return [*parts, *where]

    def __sklearn_clone__(self) -> PrivacyAccountant:
        return self

    def __copy__(self) -> PrivacyAccountant:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> PrivacyAccountant:
        return self
