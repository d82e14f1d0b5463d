"""`PrivacyAccountant`: records the charges to one data set and enforces its budget."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from skdp.accounting.events.specifications import DpEvent, NoOpDpEvent, resolve
from skdp.accounting.ledger.admission import Log, MemoryLog
from skdp.accounting.ledger.balance import DataSplit
from skdp.accounting.ledger.charges import Charge, Terms, check_name, check_text, now, plain_parameters
from skdp.accounting.ledger.filters import GAUSSIAN
from skdp.accounting.ledger.ledger import Ledger
from skdp.accounting.ledger.serial import ledger_from_json, ledger_to_json
from skdp.accounting.ledger.spending import Figures
from skdp.accounting.methods import check_adjacency, check_delta, check_epsilon, check_known
from skdp.accounting.releases import releases
from skdp.accounting.statements.targets import Risk, RiskTarget
from skdp.exceptions import AccountantDetachedError, BudgetFileError, without_removed


def epsilon_of_risk(risk: Risk, delta: Any, family: str | None) -> float:
    """Return the largest epsilon for which a filter family guarantees a risk.

    The Gaussian filter admits only plain Gaussian releases. They are sqrt(B)-GDP, even if chosen adaptively, if the sum
    of mu^2 never exceeds B (Smith & Thakurta 2022). Epsilon therefore follows from the mu of the risk. Other filters
    guarantee (epsilon, delta) for any noise distribution. Then epsilon is the largest value for which every (epsilon,
    delta)-private release has the risk (`RiskTarget.implied_by`), which is much smaller.
    """
    if delta is None:
        raise ValueError(
            f"PrivacyAccountant: `delta` must be set with epsilon={risk!r}. Pass a number well below 1/n, for example "
            "delta=1e-6."
        )
    target, delta = RiskTarget.of(risk), check_delta(delta)
    # a little less than mu covers the rounding of epsilon, which is upwards
    found = target.of_size(target.mu * (1.0 - 1e-9)).epsilon(delta) if family == GAUSSIAN else target.implied_by(delta)
    if found <= 0.0:
        raise ValueError(f"{target.words} cannot be guaranteed at delta={delta!r}. Lower `delta`, or raise the risk.")
    return found


@without_removed
class PrivacyAccountant(Figures):
    """Privacy accountant that records the charges to one data set and enforces a budget.

    A charge that would exceed the budget raises `skdp.BudgetExceededError` before any data are read. Clones and copies
    are the same accountant, so all clones of an estimator share one budget.

    Without `path` it is kept in memory, and its pickled copies (in other processes) are read-only. With `path` it is
    stored in a budget file, which processes of ``n_jobs`` and other scripts share. See ``docs/budgets.md``.

    Parameters
    ----------
    epsilon, delta : float, optional
        Privacy budget. Set both or neither; without a budget, charges are only recorded. An existing budget file keeps
        its budget. A risk as `epsilon`, such as ``skdp.Risk(advantage=0.1)``, is converted to the largest epsilon that
        guarantees this risk for all charges or, with ``filter_family="gaussian"``, for plain Gaussian releases.
    unit : str, optional
        Privacy unit: "row" (default), or the entity that `groups` identify, such as "person" or "household". An
        accountant with unit "row" accepts only fits without `groups`; any other unit accepts only fits with `groups`.
    method : {"pld", "rdp", "moments", "optimal_exact", "optimal", "strong", "naive"}, optional
        Accounting method by which estimators with this accountant calibrate their noise and compute `epsilon_`. The
        default, "pld", is the tightest; pipelines and searches always use it. See ``docs/accounting.md``.
    adjacency : {"zero_out", "add_remove", "replace_one"}, optional
        Neighboring relation of all charges. Estimators with ``adjacency=None`` use it. By default, it is the relation
        of the first charge.
    filter_family : {"auto", "gaussian", "renyi"}, optional
        Privacy filter that admits all charges after the first. The default, "auto", admits a charge if the Gaussian or
        the Rényi filter does, in any order of mechanisms. If the first charge is plain Gaussian, half of delta is
        reserved for the Gaussian filter. "gaussian" and "renyi" use one filter with all of delta; "gaussian" rejects
        every charge that is not a plain Gaussian release, including the first.
    path : str or path-like, optional
        Budget file (SQLite), created if it does not exist. Other parameters must not contradict an existing file.

    Notes
    -----
    **Guarantees.** With a budget, all charges together are (epsilon, delta)-differentially private, even if each charge
    was chosen after seeing earlier outputs. The first charge is fixed before any output, so it is admitted if its
    epsilon under joint composition is within the budget. A privacy filter admits later charges; it accounts for
    adaptive choices and is stricter. To save budget, charge fits that are planned together as one `ComposedDpEvent`.
    Charges are never refunded. `remaining` and `affordable` return the remaining budget. After `increase_budget`, a
    privacy odometer replaces the filter, and its value, `spent`, is the guarantee.

    Without a budget, ``get_epsilon(delta)`` is valid for plans that were fixed in advance, and ``get_epsilon(delta,
    adaptive=True)`` also for adaptively chosen charges and stopping times. See ``docs/accounting.md`` for the theorems.

    **Partitions.** A charge can be restricted to a *partition* of the units, such as patients first admitted in one
    month. By parallel composition, a unit is affected only by charges to all units and to its own partition. The
    accountant reports the largest privacy loss over partitions, and the smallest remaining budget. Each unit must be in
    one partition, by a rule that no change of its record can affect: the month of the first admission qualifies, the
    month of each transaction does not. skdp cannot verify this rule. The split of
    `skdp.model_selection.private_train_test_split` satisfies it by construction.
    """

    def __init__(
        self,
        epsilon: float | Risk | None = None,
        delta: float | None = None,
        *,
        unit: str | None = None,
        method: str | None = None,
        adjacency: str | None = None,
        filter_family: str | None = None,
        path: str | os.PathLike[str] | None = None,
    ) -> None:
        if isinstance(epsilon, Risk):
            epsilon = epsilon_of_risk(epsilon, delta, filter_family)
        terms = Terms.create(epsilon, delta, unit, filter_family, method, adjacency)
        self._log: Log = MemoryLog(Ledger(terms))
        self._partition: str | None = None
        self._partition_rule: str | None = None
        if path is not None:
            from skdp.accounting.ledger.file_log import Store  # SQLite is not loaded for a ledger in memory

            asked = {"epsilon": epsilon, "delta": delta, "unit": unit, "filter_family": filter_family}
            asked |= {"method": method, "adjacency": adjacency}
            self._log = Store.at(path, terms, asked)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> PrivacyAccountant:
        """Open an existing budget file; unlike the constructor, this never creates a file.

        Parameters
        ----------
        path : str or path-like
            Existing budget file.

        Returns
        -------
        PrivacyAccountant

        Raises
        ------
        BudgetFileError
            If the file does not exist, cannot be read or fails verification.
        """
        from skdp.accounting.ledger.file_log import Store

        return cls._of(Store.at(path))

    @classmethod
    def _of(cls, log: Log, partition: str | None = None, partition_rule: str | None = None) -> PrivacyAccountant:
        self = cls.__new__(cls)
        self._log, self._partition, self._partition_rule = log, partition, partition_rule
        return self

    def partition(self, name: str, *, rule: str | None = None) -> PrivacyAccountant:
        """Return an accountant for fits to the units of one partition.

        It charges the same budget, restricted to the partition. `history`, `entries` and all values refer to charges to
        the partition and to all units. The `epsilon_` of an estimator is still the
        epsilon of all its releases. If calls of `partial_fit` read different partitions, this is an upper bound.

        Parameters
        ----------
        name : str
            Public name of the partition, such as "2026-01".
        rule : str, optional
            Rule that assigns units to partitions, such as "month of first admission". Each unit must be in one
            partition, whatever its record contains; skdp cannot verify this. The rule is recorded with the first charge
            of a partition and cannot be changed. By default, the recorded rule is used.

        Returns
        -------
        PrivacyAccountant
            It shares all state with this accountant.
        """
        if check_name("name", name) is None:
            raise TypeError("`name` must be a string, got None. Pass the name of a partition, such as '2026-01'.")
        rule = check_name("rule", rule)
        return self._of(self._log, name, self._partition_rule if rule is None else rule)

    def keep_split(
        self, test_size: float, *, n_rows: int | None = None, groups: str = "", unit: str | None = None
    ) -> DataSplit:
        """Return the split into the partitions "train" and "test"; the first call creates and records it.

        `skdp.model_selection.private_train_test_split` uses it. Concurrent processes obtain the same split.

        Parameters
        ----------
        test_size : float
            Fraction of the test set, in (0, 1).
        n_rows : int, optional
            Public number of rows, for a split by row number. If None, units are split by group identifier.
        groups : str
            Column name of the group identifiers, "" if they have no name.
        unit : {"row", "group"} or None
            Unit of the split. If None, the unit of this accountant.

        Returns
        -------
        DataSplit
            The split with its key.

        Raises
        ------
        ValueError
            If another split, partition, identifier column or charge was recorded that contradicts this split.
        BudgetFileError, AccountantDetachedError
            If a new split cannot be recorded.
        """
        self._reject_other_unit(unit)
        asked = DataSplit(float(test_size), n_rows, groups)
        if self._partition is not None:
            raise ValueError(
                f"`accountant` must not be restricted to a partition, got partition={self._partition!r}. Pass the "
                "accountant of the whole data set."
            )
        found = self.split or self._make_split(asked)
        found.reject_other(asked)
        return found

    def _make_split(self, asked: DataSplit) -> DataSplit:
        """Record a split with a new key, or return the one that another process recorded first."""
        adjacency, made = self.adjacency or "zero_out", asked.with_new_key()
        entry = self._entry(NoOpDpEvent(), "private_train_test_split", adjacency, made.to_parameters(), "", "split")
        try:
            self._log.append(replace(entry, partition_rule=made.rule))
        except ValueError:
            found = self.split
            if found is None:
                raise
            return found
        return made

    @property
    def split(self) -> DataSplit | None:
        """Recorded split of the data set, or None."""
        return self._log.read().scope.split

    @property
    def partition_name(self) -> str | None:
        """Partition that this accountant charges, or None for all units."""
        return self._partition

    @property
    def partition_rule(self) -> str | None:
        """Rule that assigns units to partitions, or None. skdp cannot verify that the data follow it."""
        return self._log.read().scope.partition_rule or self._partition_rule

    @property
    def identity(self) -> tuple[str | int, str | None]:
        """Value that is equal for accountants that share one budget and one partition."""
        return self.path or id(self._log), self._partition

    @property
    def epsilon(self) -> float | None:
        """Epsilon of the present budget, or None."""
        return None if self._log.terms.epsilon is None else self._log.read().epsilon

    @property
    def delta(self) -> float | None:
        """Delta of the budget, or None."""
        return self._log.terms.delta

    @property
    def unit(self) -> str:
        """Privacy unit."""
        return self._log.terms.unit

    @property
    def method(self) -> str:
        """Accounting method of estimators with this accountant."""
        return self._log.terms.method or "pld"

    @property
    def filter_family(self) -> str:
        """Family of the privacy filter."""
        return self._log.terms.family

    @property
    def path(self) -> str | None:
        """Absolute path of the budget file, or None."""
        return self._log.path

    @property
    def adjacency(self) -> str | None:
        """Neighboring relation of all charges; None before the first charge if none was set."""
        return self._log.read().scope.adjacency

    @property
    def history(self) -> tuple[Charge, ...]:
        """All charges, in order."""
        return tuple(self._read().history)

    @property
    def entries(self) -> tuple[Charge, ...]:
        """All recorded entries, in order: charges, rejected inputs, budget increases and a data split."""
        return tuple(self._read().entries)

    @property
    def event(self) -> DpEvent:
        """Composition of all charges so far, over all partitions unless this accountant is restricted to one."""
        return self._read().event

    def spend(
        self,
        event: DpEvent,
        label: str = "",
        *,
        adjacency: str = "zero_out",
        parameters: Mapping[str, Any] | None = None,
        note: str = "",
        unit: str | None = None,
        partition: str | None = None,
        partition_rule: str | None = None,
    ) -> None:
        """Charge an event; call this before the data are read.

        When this method returns, the charge is recorded; with a budget file, it is on disk.

        Parameters
        ----------
        event : DpEvent
            Event to charge.
        label : str
            Purpose of the charge, as shown in `history`.
        adjacency : {"zero_out", "add_remove", "replace_one"}
            Neighboring relation, which must be the same for all charges.
        parameters : mapping, optional
            Public parameters to record with the charge. Do not include seeds or private values.
        note : str
            Free text to record.
        unit : {"row", "group"} or None
            Whether the event protects one row or all rows of one group. `parameters` can hold the column name of the
            group identifiers as "groups". If None, the unit of this accountant.
        partition : str, optional
            Partition of the units that the event reads. By default, that of this accountant, or all units.
        partition_rule : str, optional
            Rule that assigns units to partitions, see `partition`. Required with the first charge of a partition.

        Raises
        ------
        BudgetExceededError
            If the charge would exceed the budget. No budget is consumed.
        TypeError, ValueError
            If no accounting method covers the event composed with the earlier charges; if the adjacency, the unit or
            the partition rule differs; if a partition has no rule, or the adjacency "replace_one".
        BudgetFileError
            If the budget file cannot be read, written or verified. No budget is consumed.
        AccountantDetachedError
            If this is a copy of an in-memory accountant.
        """
        self._reject_other_unit(unit)
        named = self._name_partition(partition, partition_rule)
        self._log.append(replace(self._entry(event, label, adjacency, parameters, note), **named))

    def check(
        self,
        event: DpEvent,
        adjacency: str = "zero_out",
        *,
        parameters: Mapping[str, Any] | None = None,
        unit: str | None = None,
        partition: str | None = None,
        partition_rule: str | None = None,
    ) -> None:
        """Raise the exception that `spend` would raise, without charging anything.

        A later `spend` can still raise if another process charges the budget in between.

        Parameters
        ----------
        event : DpEvent
            Event that would be charged.
        adjacency : {"zero_out", "add_remove", "replace_one"}
        parameters : mapping, optional
            Parameters of the charge. Error messages report epsilon at their `delta`.
        unit : {"row", "group"} or None
        partition, partition_rule : str, optional
            As for `spend`.
        """
        self._reject_other_unit(unit)
        named = self._name_partition(partition, partition_rule)
        self._log.check(replace(self._entry(event, "", adjacency, parameters, ""), **named))

    def record_rejection(self, label: str, *, adjacency: str = "zero_out", note: str = "") -> bool:
        """Record that the validation of private rows failed; the entry has no privacy cost.

        Validation errors depend on private data, so the record shows how often they occurred. If the entry cannot be
        written, this method returns False instead of raising, so that the validation error remains visible.

        Parameters
        ----------
        label : str
            Name of the object that rejected the rows.
        adjacency : {"zero_out", "add_remove", "replace_one"}
        note : str
            Kind of error, without private values.

        Returns
        -------
        bool
            Whether the entry was recorded.
        """
        entry = self._entry(NoOpDpEvent(), label, adjacency, None, note, "rejection")
        try:
            self._log.append(entry)
        except (AccountantDetachedError, BudgetFileError):
            return False
        return True

    def increase_budget(
        self, epsilon: float, *, delta: float | None = None, note: str = "", allow_less: bool = False
    ) -> None:
        """Increase the budget and record the increase.

        Before the first charge, the new budget simply replaces the old one. Afterwards, a privacy odometer replaces the
        privacy filter: a charge is admitted if the odometer's epsilon, `spent`, stays within the new budget, and this
        epsilon is guaranteed instead of the first budget. An odometer is more conservative than a filter, so a small
        increase can permanently lower the remaining budget.

        Parameters
        ----------
        epsilon : float
            New budget. It must exceed the present budget and must not be below the odometer's epsilon.
        delta : float, optional
            Delta of the budget. It cannot be changed, because the odometer requires a delta that was fixed in advance.
        note : str
            Reason for the increase.
        allow_less : bool
            Whether to increase the budget even if this lowers the remaining budget of a fit like the last one.

        Raises
        ------
        ValueError
            If the new budget is too small, or lowers the remaining budget and `allow_less` is False.
        """
        epsilon = check_epsilon(epsilon, positive=True)
        if not isinstance(allow_less, bool):
            raise TypeError(f"`allow_less` must be True or False, got {allow_less!r}.")
        if delta is not None and check_delta(delta) != self.delta:
            raise ValueError(
                f"`delta` of a budget cannot be changed from {self.delta!r}, got {delta!r}. Remove `delta`, or create "
                "a new accountant."
            )
        given = {"epsilon": epsilon, **({"allow_less": True} if allow_less else {})}
        self._log.append(self._entry(NoOpDpEvent(), "", self.adjacency or "zero_out", given, note, "raise"))

    def _name_partition(self, partition: str | None, rule: str | None) -> dict[str, Any]:
        """Return the partition of a charge and its rule, by default those of this accountant."""
        partition, rule = check_name("partition", partition), check_name("partition_rule", rule)
        if self._partition is not None and partition not in (None, self._partition):
            raise ValueError(
                f"partition={partition!r} cannot be charged to an accountant of partition={self._partition!r}. Use "
                "the accountant of the whole data set, or its method `partition`."
            )
        partition = self._partition if partition is None else partition
        if partition is None and rule is not None:
            raise ValueError(
                f"`partition_rule` requires `partition`, got partition_rule={rule!r}. Set `partition` too."
            )
        return {"partition": partition, "partition_rule": self._partition_rule if rule is None else rule}

    def _reject_other_unit(self, unit: str | None) -> None:
        """Raise if a row-level charge is made to a group-level accountant, or vice versa."""
        if unit is None:
            return
        check_known("unit", unit, ("row", "group"))
        if (unit == "row") == (self.unit == "row"):
            return
        if unit == "row":
            raise ValueError(
                f"unit='row' cannot be charged to an accountant of unit={self.unit!r}, which protects all rows of a "
                "group. Pass `groups` to fit, or use another accountant."
            )
        raise ValueError(
            "unit='group' cannot be charged to an accountant of unit='row'. Use an accountant whose unit is the entity "
            "of the group identifiers, for example PrivacyAccountant(unit='household')."
        )

    def _entry(
        self, event: DpEvent, label: str, adjacency: str, parameters: Any, note: str, kind: str = "charge"
    ) -> Charge:
        event = resolve(event)
        releases(event)  # raises if no method covers the event
        adjacency, kept = check_adjacency(adjacency), plain_parameters(parameters)
        label, note = check_text("label", label), check_text("note", note)
        return Charge(event, label, adjacency, self.unit, kept, note, now(), kind)

    @property
    def head(self) -> str:
        """Hash of the last entry, which covers all entries before it. Store it elsewhere and pass it to `verify`."""
        return self._log.verify()[-1]

    def verify(self, head: str | None = None) -> int:
        """Check that no entry was altered: the file is complete, and each hash and event is valid.

        Parameters
        ----------
        head : str, optional
            Value of `head` at an earlier time, which must still occur among the hashes. Without it, `verify` cannot
            detect a file that was rewritten completely or that lost its last charges.

        Returns
        -------
        int
            Number of entries.

        Raises
        ------
        BudgetFileError
            At the first entry that was altered.
        """
        heads = self._log.verify()
        if head is not None and head not in heads:
            raise BudgetFileError(
                f"head={head!r} is not among the {len(heads)} hashes of path={self.path!r}. Entries were altered or "
                "lost since the hash was stored. Restore an intact copy of the file."
            )
        return len(heads) - 1

    def to_json(self) -> str:
        """Return the budget, all entries with their events and hashes, and the last hash (`head`) as JSON.

        Returns
        -------
        str
            Input of `from_json`.
        """
        return ledger_to_json(self._log.terms, self._log.read().entries)

    @classmethod
    def from_json(
        cls, text: str, *, resume: bool = False, path: str | os.PathLike[str] | None = None
    ) -> PrivacyAccountant:
        """Create an accountant from the output of `to_json`.

        Parameters
        ----------
        text : str
            Output of `to_json`.
        resume : bool
            Whether the accountant can be charged. Two copies do not record each other's charges, so set this to True
            for one copy only. If False, the accountant is read-only.
        path : str or path-like, optional
            New budget file to create; requires ``resume=True``.

        Returns
        -------
        PrivacyAccountant
        """
        terms, charges = ledger_from_json(text)
        ledger = Ledger(terms)
        for charge in charges:
            ledger.add(charge)
        if path is not None:
            if not resume:
                raise ValueError(
                    f"`path` requires resume=True, got path={path!r}, resume=False. Set resume=True, or remove `path`."
                )
            from skdp.accounting.ledger.file_log import Store

            return cls._of(Store.begin(path, terms, charges))
        return cls._of(MemoryLog(ledger, detached=not resume))

    def __copy__(self) -> PrivacyAccountant:
        return self

    __sklearn_clone__ = __copy__

    def __deepcopy__(self, memo: dict[int, Any]) -> PrivacyAccountant:
        return self


def resolve_accountant(value: Any) -> PrivacyAccountant | None:
    """Return the accountant that a parameter `accountant` refers to.

    Parameters
    ----------
    value : PrivacyAccountant, str, path-like or None
        A path must refer to an existing budget file; it is made absolute.

    Returns
    -------
    PrivacyAccountant or None
    """
    if value is None or isinstance(value, PrivacyAccountant):
        return value
    name = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(name, str):
        raise TypeError(
            f"`accountant` must be a PrivacyAccountant, a path of a budget file or None, got {type(value).__name__}."
        )
    if not name:
        raise ValueError(
            "`accountant` must not be an empty string. Pass the path of a budget file, such as 'census.budget'."
        )
    path = os.path.abspath(name)
    if not os.path.lexists(path):
        raise BudgetFileError(
            f"accountant={name!r} does not refer to an existing file ({path}). Correct the path, or create the file by "
            f"`python -m skdp.accounting create {shlex.quote(path)} --epsilon E --delta D`."
        )
    return PrivacyAccountant.open(path)
