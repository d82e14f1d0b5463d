"""Spent and remaining budget of an accountant, and its representation as a table."""

from __future__ import annotations

from skdp.accounting.events.specifications import DpEvent, resolve
from skdp.accounting.ledger.admission import Affordable, Log, affordable
from skdp.accounting.ledger.charges import check_name, joint_delta
from skdp.accounting.ledger.filters import failures_of
from skdp.accounting.ledger.ledger import Ledger
from skdp.accounting.ledger.report import as_html, as_text, entry_rows, to_digits
from skdp.accounting.methods import check_adjacency, check_delta
from skdp.accounting.releases import releases
from skdp.exceptions import BudgetFileError


def _count_entries(ledger: Ledger) -> str:
    """Return the number of entries of each kind."""
    charges = len(ledger.history)
    others = [
        f"{number} {name}{'s' * (number != 1)}"
        for kind, name in (("rejection", "rejected input"), ("raise", "budget increase"), ("split", "split"))
        if (number := sum(entry.kind == kind for entry in ledger.entries))
    ]
    return ", ".join([f"{charges} charge{'s' * (charges != 1)}", *others])


def figures(ledger: Ledger, delta: float | None) -> list[tuple[str, str]]:
    """Return the names and values below the table of entries.

    Parameters
    ----------
    ledger : Ledger
    delta : float or None
        If None, that of the budget.

    Returns
    -------
    list of (name, value)
    """
    return [*_amounts(ledger, None if delta is None else check_delta(delta)), *_of_partitions(ledger)]


def _amounts(ledger: Ledger, delta: float | None) -> list[tuple[str, str]]:
    """Return the spent budget at a delta, and the remaining budget."""
    found = [] if ledger.epsilon is None else _within_the_budget(ledger)
    if ledger.epsilon is None and delta is None:
        return [("spent", "requires a delta, for example table(delta=1e-5)")]
    if delta is None or (ledger.epsilon is not None and delta == ledger.delta):
        return found
    planned = f"epsilon={ledger.cost(delta):.6g} at delta={delta:g}"
    found.append(("spent (non-adaptive composition: plans fixed in advance)", planned))
    if ledger.epsilon is None:
        adaptive = f"epsilon={ledger.adaptive_cost(delta):.6g} at delta={delta:g}"
        found.append(("spent (fully adaptive composition)", adaptive))
    return found


def _within_the_budget(ledger: Ledger) -> list[tuple[str, str]]:
    """Return the budget, the spent budget and the remaining budget."""
    raised = f", increased from {ledger.terms.epsilon:g}" if ledger.raised else ""
    spent = "fully adaptive composition" if ledger.raised else "composition of all charges"
    like = " for a Gaussian release" if ledger.shape is None else " for a fit like the last one"
    like = like if any(each.counts for each in ledger.balances) else ""
    if any(failures_of(each.counts) > 0.0 for each in ledger.balances):
        like += f"; delta={to_digits(ledger.failures_left(), 3)} for partition selection"
    return [
        ("budget", f"epsilon={ledger.epsilon:g} at delta={ledger.delta:g}{raised}"),
        ("spent", f"epsilon={ledger.spent():.6g} ({spent})"),
        ("remaining", f"epsilon={to_digits(affordable(ledger, None, None, None).epsilon, 3)}{like}"),
    ]


def _of_partitions(ledger: Ledger) -> list[tuple[str, str]]:
    """Return the assumption about partitions."""
    if ledger.scope.partition_rule is None:
        return []
    n = len(ledger.partitions)
    whose = f"maximum over {n} partition{'s' * (n != 1)}" if n else "values of one partition"
    split = ledger.scope.split
    known = "an assumption that skdp cannot verify" if split is None else "ensured by private_train_test_split"
    return [
        ("partitions", f"{whose}; each unit is in one, whatever its record contains ({known})"),
        ("partition rule", " ".join(ledger.scope.partition_rule.split())),
    ]


class Figures:
    """Methods of `PrivacyAccountant` that report the spent and the remaining budget."""

    _log: Log
    _partition: str | None

    def _read(self, partition: str | None = None) -> Ledger:
        """Return the entries that affect a partition: the given one, this accountant's, or all."""
        return self._log.read().of(self._partition if partition is None else partition)

    def get_epsilon(
        self,
        delta: float | None = None,
        *,
        method: str | None = None,
        adaptive: bool = False,
        partition: str | None = None,
    ) -> float:
        """Return the epsilon of all charges so far.

        Parameters
        ----------
        delta : float, optional
            Delta in (0, 1). By default, that of the budget. With ``adaptive=True``, it must have been fixed in advance.
        method : str, optional
            Accounting method, as in `skdp.accounting.get_epsilon`. By default, PLD, or Rényi accounting if only that
            method covers all charges. Not available with ``adaptive=True``.
        adaptive : bool
            If False, the charges are composed jointly; this is valid for plans fixed in advance. If True, a privacy
            odometer is used; it is also valid for charges and stopping times chosen after seeing outputs, and larger.
        partition : str, optional
            Partition of the units. By default, that of this accountant, or the maximum over all partitions.

        Returns
        -------
        float
            Epsilon in nats; 0.0 without charges. The adaptive value is inf if no theorem covers a charge.
        """
        delta = self._log.terms.delta if delta is None else check_delta(delta)
        if delta is None:
            raise ValueError(
                "`delta` must be set if the accountant has no budget. Pass a number, for example get_epsilon(1e-5)."
            )
        ledger = self._read(check_name("partition", partition))
        if not adaptive:
            return ledger.cost(delta, method)
        if method is not None:
            raise ValueError(f"`method` must be None if adaptive=True, got {method!r}. Remove `method`.")
        return ledger.adaptive_cost(delta)

    def get_delta(self, epsilon: float, *, method: str | None = None) -> float:
        """Return the delta of all charges so far.

        Parameters
        ----------
        epsilon : float
            Epsilon in nats.
        method : str, optional
            As in `get_epsilon`.

        Returns
        -------
        float
            Delta; 0.0 without charges.
        """
        ledger = self._read()
        adjacency = ledger.scope.adjacency or "zero_out"
        return max(joint_delta(event, epsilon, adjacency, method) for event in ledger.events())

    @property
    def spent(self) -> float | None:
        """Spent budget: epsilon at the delta of the budget, or None without a budget.

        It is the epsilon of the composition of all charges, at most the budget. After a budget increase, it is the
        odometer's epsilon, which then determines whether a charge is admitted.
        """
        ledger = self._read()
        return None if ledger.epsilon is None else ledger.spent()

    def affordable(
        self, event: DpEvent | None = None, *, delta: float | None = None, adjacency: str | None = None
    ) -> Affordable:
        """Return the remaining budget for a fit of a given type.

        Parameters
        ----------
        event : DpEvent, optional
            Event of a similar fit. Its sampling and composition matter, because a privacy filter depends on them; its
            noise does not. By default, the last charge that was not a selection.
        delta : float, optional
            Delta of the returned epsilon, such as the estimator's. By default, that of the budget.
        adjacency : str, optional
            Neighboring relation. By default, that of the accountant.

        Returns
        -------
        epsilon : float
            Largest epsilon, up to rounding, of such a fit at `delta` that the accountant admits. 0.0 if the budget is
            exhausted, `math.inf` without a budget.
        delta : float
            Remaining part of delta for events with a failure probability, such as partition selection.
        """
        if event is not None:
            event = resolve(event)
            releases(event)  # raises if no method covers the event
        delta = None if delta is None else check_delta(delta)
        adjacency = None if adjacency is None else check_adjacency(adjacency)
        return affordable(self._read(), event, delta, adjacency)

    def remaining(self, event: DpEvent | None = None) -> float:
        """Return the remaining budget, or the number of further charges of an event.

        Parameters
        ----------
        event : DpEvent, optional
            Event to be charged repeatedly.

        Returns
        -------
        float or int
            Without `event`: remaining epsilon, ``affordable().epsilon``. With `event`: number of further charges of
            this event that the budget admits, limited to 10^12 releases in total. `math.inf` without a budget, and for
            an event without privacy cost.
        """
        if event is None:
            return self.affordable().epsilon
        return min(each.remaining(resolve(event)) for each in self._read().balances)

    def table(self, delta: float | None = None) -> str:
        """Return a table of all entries, with the spent and the remaining budget, as text.

        Parameters
        ----------
        delta : float, optional
            Delta in (0, 1) of the spent epsilon. By default, that of the budget.

        Returns
        -------
        str
            Table of the entries, followed by one value per line.
        """
        ledger = self._read()
        return as_text(
            f"PrivacyAccountant, {_count_entries(ledger)}", entry_rows(ledger.entries), figures(ledger, delta)
        )

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        ledger = self._read()
        return as_html(repr(self), entry_rows(ledger.entries), figures(ledger, None))

    def __repr__(self) -> str:
        return f"PrivacyAccountant({', '.join(self._parts())})"

    def _parts(self) -> list[str]:
        where = [] if self._log.path is None else [f"path={self._log.path!r}"]
        try:
            ledger = self._read()
        except BudgetFileError:  # an estimator with this accountant can still be displayed
            return [*where, "cannot be read"]
        parts = []
        if ledger.epsilon is not None:
            parts.append(f"epsilon={ledger.epsilon:g}, delta={ledger.delta:g}, spent={ledger.spent():.4g}")
            parts.append(f"remaining={to_digits(affordable(ledger, None, None, None).epsilon, 3)}")
        if self._partition is not None:
            parts.append(f"partition={self._partition!r}")
        parts.append(f"charges={len(ledger.history)}")
        if len(ledger.entries) > len(ledger.history):
            parts.append(f"entries={len(ledger.entries)}")
        if ledger.scope.adjacency is not None:
            parts.append(f"adjacency={ledger.scope.adjacency!r}")
        if self._log.terms.unit != "row":
            parts.append(f"unit={self._log.terms.unit!r}")
        if self._log.is_copy:
            parts.append("detached copy")
        return [*parts, *where]
