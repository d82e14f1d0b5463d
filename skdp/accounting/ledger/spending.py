"""A ledger as it is shown, and the figures under it: what was spent, what is left, what each figure is valid for."""

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
    """How many entries there are of each kind."""
    charges = len(ledger.history)
    others = [
        f"{number} {kind}{'s' * (number != 1)}"
        for kind in ("refusal", "raise", "split")
        if (number := sum(entry.kind == kind for entry in ledger.entries))
    ]
    return ", ".join([f"{charges} charge{'s' * (charges != 1)}", *others])


def figures(ledger: Ledger, delta: float | None) -> list[tuple[str, str]]:
    """Names and values, each with what it is valid for.

    Parameters
    ----------
    ledger : Ledger
    delta : float or None
        The budget's if None.

    Returns
    -------
    list of (name, value)
    """
    return [*_amounts(ledger, None if delta is None else check_delta(delta)), *_of_partitions(ledger)]


def _amounts(ledger: Ledger, delta: float | None) -> list[tuple[str, str]]:
    """What was spent at a delta, and what is left."""
    found = [] if ledger.epsilon is None else _under_a_ceiling(ledger)
    if ledger.epsilon is None and delta is None:
        return [("spent", "give a delta, as in table(delta=1e-5)")]
    if delta is None or (ledger.epsilon is not None and delta == ledger.delta):
        return found
    found.append(("spent, valid for plans fixed in advance", f"epsilon={ledger.price(delta):.6g} at delta={delta:g}"))
    if ledger.epsilon is None:
        adaptive = f"epsilon={ledger.adaptive_price(delta):.6g} at delta={delta:g}"
        found.append(("spent, valid for charges chosen adaptively", adaptive))
    return found


def _under_a_ceiling(ledger: Ledger) -> list[tuple[str, str]]:
    """The budget, what was spent of it, and what decides: what is left."""
    raised = f", raised from {ledger.terms.epsilon:g}" if ledger.raised else ""
    spent = "what is guaranteed however charges were chosen" if ledger.raised else "joint price of the charges"
    like = " for a Gaussian release" if ledger.shape is None else " for a fit like the last one"
    like = like if any(each.counts for each in ledger.balances) else ""
    if any(failures_of(each.counts) > 0.0 for each in ledger.balances):
        like += f"; delta={to_digits(ledger.failures_left(), 3)} for failure probabilities"
    return [
        ("budget", f"epsilon={ledger.epsilon:g} at delta={ledger.delta:g}{raised}"),
        ("spent", f"epsilon={ledger.spent():.6g} ({spent})"),
        ("remaining", f"epsilon={to_digits(affordable(ledger, None, None, None).epsilon, 3)}{like}"),
    ]


def _of_partitions(ledger: Ledger) -> list[tuple[str, str]]:
    """What the figures assume where charges name partitions."""
    if ledger.scope.partition_rule is None:
        return []
    whose = f"the largest over {len(ledger.partitions)} partitions" if ledger.partitions else "those of one partition"
    split = ledger.scope.split
    known = "an assumption of the owner, not checked" if split is None else "the split of this ledger sees to it"
    return [
        ("figures", f"{whose}; each unit is in one, whatever its record: {known}"),
        ("rule of partitions", " ".join(ledger.scope.partition_rule.split())),
    ]


class Figures:
    """What a `PrivacyAccountant` tells of its ledger."""

    _log: Log
    _partition: str | None

    def _read(self, partition: str | None = None) -> Ledger:
        """The ledger, as units of a partition have paid it: one that is given, or this accountant's, or the largest."""
        return self._log.read().of(self._partition if partition is None else partition)

    def get_epsilon(
        self,
        delta: float | None = None,
        *,
        method: str | None = None,
        adaptive: bool = False,
        partition: str | None = None,
    ) -> float:
        """What everything charged so far costs.

        Parameters
        ----------
        delta : float, optional
            In (0, 1); the budget's if left out. For the adaptive figure, one that was named in advance.
        method : str, optional
            As in `skdp.accounting.get_epsilon`, guarantees only. Left out: PLD, or Rényi where that alone
            has a price. Not for the adaptive figure.
        adaptive : bool
            False: the joint price, valid for plans fixed in advance. True: an odometer's, valid also for
            charges and an end that were chosen after seeing outputs; never less than about the joint price.
        partition : str, optional
            What units of this partition have paid. Left out: those that have paid most, or those of the partition whose
            accountant this is.

        Returns
        -------
        float
            In nats; 0.0 if nothing was charged. The adaptive figure is inf where no theorem covers a charge.
        """
        delta = self._log.terms.delta if delta is None else check_delta(delta)
        if delta is None:
            raise ValueError("delta=None is not valid without a budget; give a number such as get_epsilon(1e-5).")
        ledger = self._read(check_name("partition", partition))
        if not adaptive:
            return ledger.price(delta, method)
        if method is not None:
            raise ValueError(f"method={method!r} has no odometer; leave it out with adaptive=True.")
        return ledger.adaptive_price(delta)

    def get_delta(self, epsilon: float, *, method: str | None = None) -> float:
        """Compute the delta of everything charged so far.

        Parameters
        ----------
        epsilon : float
            Epsilon at which delta is computed, in nats.
        method : str, optional
            As in `get_epsilon`.

        Returns
        -------
        float
            Delta; 0.0 if nothing was charged.
        """
        ledger = self._read()
        adjacency = ledger.scope.adjacency or "zero_out"
        return max(joint_delta(event, epsilon, adjacency, method) for event in ledger.events())

    @property
    def spent(self) -> float | None:
        """Epsilon spent under the budget, at its delta and never above it; None without a budget.

        The joint price of everything charged. Once the budget was raised: the odometer's figure, which decides then.
        """
        ledger = self._read()
        return None if ledger.epsilon is None else ledger.spent()

    def affordable(
        self, event: DpEvent | None = None, *, delta: float | None = None, adjacency: str | None = None
    ) -> Affordable:
        """What the next fit may cost under the budget.

        Parameters
        ----------
        event : DpEvent, optional
            A fit of the same kind: its sampling and its composition count, its noise does not. Left out: the last
            charge that was no selection. What is left depends on the kind, which a filter counts differently than a
            price does.
        delta : float, optional
            Delta of the epsilon that is returned, such as the estimator's; the budget's if left out.
        adjacency : str, optional
            That of the ledger if left out.

        Returns
        -------
        epsilon : float
            A fit of that kind, calibrated to that epsilon at `delta`, is admitted, and one that costs noticeably more
            is not. 0.0 if nothing is left, `math.inf` without a budget.
        delta : float
            What is left for the failure probabilities of events of known epsilon and delta.
        """
        if event is not None:
            releases(event)
        delta = None if delta is None else check_delta(delta)
        adjacency = None if adjacency is None else check_adjacency(adjacency)
        event = None if event is None else resolve(event)
        return affordable(self._read(), event, delta, adjacency)

    def remaining(self, event: DpEvent | None = None) -> float:
        """What the budget still admits.

        Parameters
        ----------
        event : DpEvent, optional
            Event to be charged again.

        Returns
        -------
        float or int
            Without `event`: `affordable().epsilon`. With `event`: how many more charges of exactly that event would be
            admitted, an int of at most 10^12 releases in all. `math.inf` without a budget, and for an event that
            costs nothing.
        """
        if event is None:
            return self.affordable().epsilon
        return min(each.remaining(resolve(event)) for each in self._read().balances)

    def table(self, delta: float | None = None) -> str:
        """The ledger as text: its entries, and what was spent and is left.

        Parameters
        ----------
        delta : float, optional
            In (0, 1); the budget's if left out.

        Returns
        -------
        str
            Table of the entries, and lines with the figures.
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
        except BudgetFileError:  # an estimator that holds this accountant can be shown all the same
            return [*where, "cannot be read"]
        parts = []
        if ledger.epsilon is not None:
            parts.append(f"epsilon={ledger.epsilon:g}, delta={ledger.delta:g}, spent={ledger.spent():.4g}")
            parts.append(f"left={to_digits(affordable(ledger, None, None, None).epsilon, 3)}")
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
