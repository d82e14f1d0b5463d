"""`PrivacyAccountant`: the ledger of one data set, and its budget."""

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
    """Return the largest epsilon at which the filters of a family hold a risk.

    Plain Gaussian releases, however they are chosen, are sqrt(B)-GDP if the sum of their mu^2 never passes B (Smith &
    Thakurta 2022): under the Gaussian filter, which admits nothing else, epsilon is that of the mu of the risk. Other
    filters hold an epsilon at its delta for noise of any shape: epsilon is the largest one at which every (epsilon,
    delta)-private release has the risk (`RiskTarget.implied_by`), which is far less. ValueError if there is none, or no
    delta.
    """
    if delta is None:
        raise ValueError(
            f"PrivacyAccountant: delta must be set with epsilon={risk!r}, as it keeps an epsilon at a delta. Pass a "
            "number well below 1/n, for example delta=1e-6."
        )
    target, delta = RiskTarget.of(risk), check_delta(delta)
    # a little less than mu covers the rounding of epsilon, which is upwards
    found = target.of_size(target.mu * (1.0 - 1e-9)).epsilon(delta) if family == GAUSSIAN else target.implied_by(delta)
    if found <= 0.0:
        raise ValueError(f"{target.words} follows from no epsilon at delta={delta!r}; lower delta, or raise the risk.")
    return found


@without_removed
class PrivacyAccountant(Figures):
    """Adds up what has been done to one data set, and refuses what would pass a budget.

    Cloning and copying give the same accountant, so that every clone of an estimator charges one ledger. With `path`
    the ledger is kept in a file, and all who open it (threads, processes of ``n_jobs``, other scripts) share one
    balance. Without, it lives in memory: a pickled copy (another process) can be read, but refuses to spend.

    Parameters
    ----------
    epsilon, delta : float, optional
        The budget: both or neither. A file that exists keeps the one that it was created with. A risk as `epsilon`,
        such as ``skdp.Risk(advantage=0.1)``, becomes a number when the accountant is created: the largest one that
        implies the risk for any charges, or, with ``filter_family="gaussian"``, for plain Gaussian releases.
    unit : str, optional
        Whose presence is protected: "row" (if left out), or what all rows with one label of `groups` are, such as
        "person" or "household". Fits without `groups` are charged to ledgers of rows alone, others to the rest.
    method : {"pld", "rdp", "moments", "optimal_exact", "optimal", "strong", "naive"}, optional
        Accounting method by which estimators that have this accountant calibrate their noise and compute `epsilon_`;
        "pld" if left out, which is the tightest. Pipelines and searches always use it. See ``docs/accounting.md``.
    adjacency : {"zero_out", "add_remove", "replace_one"}, optional
        Neighboring relation of all charges, which estimators with ``adjacency=None`` take. Left out: that of the first
        charge.
    filter_family : {"auto", "gaussian", "renyi"}, optional
        Under a budget, the theorem by which charges after the first are admitted. "auto": whatever the Gaussian
        filter or the Rényi filter admits, each with half of delta if the first charge is plain Gaussian; kinds mix in
        any order. "gaussian" or "renyi": that filter alone, with all of delta. "gaussian" admits plain Gaussian
        releases alone, the first charge included. Left out: "auto", or what the file has.
    path : str or path-like, optional
        A file of SQLite; created where there is none. Other parameters must not contradict the file.

    Notes
    -----
    Under a budget the first charge is a plan declared before any output was seen and is admitted by its
    joint price. Further charges may have been chosen after seeing outputs and are admitted by a privacy
    filter (see `skdp.accounting.ledger.filters`), which is stricter than the joint price. Plans that are known
    together are better charged together, as one `ComposedDpEvent`. There are no refunds. The run as a whole is
    (epsilon, delta)-private at the budget, however charges were chosen; what decides is what is left, which
    `affordable` and `remaining` tell. Once `increase_budget` raised it after a charge, the odometer's figure decides
    and is what is guaranteed.

    Without a budget two figures tell how much was spent so far. `get_epsilon` is the joint price of everything
    charged, valid for plans fixed in advance. `get_epsilon(adaptive=True)` is valid also where charges, or the end of
    the run, were chosen after seeing outputs, by the theorem in `skdp.accounting.ledger.balance`.

    A charge may name a *partition*: the only units that it concerns, such as people first admitted in one month. A
    partition has paid what was charged to all and its own, together; the ledger's figures are the largest over
    partitions, and what is left the least. The proof (`skdp.accounting.ledger.balance`) needs that each unit is in one
    partition by a rule that its record cannot change: the month of the first admission, not that of each transaction.
    The library cannot check the rule, and keeps it as an assumption of the owner. It needs none for the two parts of
    `skdp.model_selection.private_train_test_split`, whose rule is its own.
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
        """The budget of a file that exists: a path that is spelt wrong is an error, not a new budget.

        Parameters
        ----------
        path : str or path-like
            File of an existing ledger.

        Returns
        -------
        PrivacyAccountant

        Raises
        ------
        BudgetFileError
            If there is no such file, or it cannot be read or trusted.
        """
        from skdp.accounting.ledger.file_log import Store

        return cls._of(Store.at(path))

    @classmethod
    def _of(cls, log: Log, partition: str | None = None, partition_rule: str | None = None) -> PrivacyAccountant:
        self = cls.__new__(cls)
        self._log, self._partition, self._partition_rule = log, partition, partition_rule
        return self

    def partition(self, name: str, *, rule: str | None = None) -> PrivacyAccountant:
        """The same ledger, for fits to the units of one partition.

        Its charges name the partition, and `history`, `entries` and all figures are those of a unit of it. A partition
        that was not charged yet has paid what was charged to all. An estimator's own `epsilon_` remains the joint price
        of all its releases, also where instalments read different partitions: an upper bound.

        Parameters
        ----------
        name : str
            Public name of the partition, such as "2026-01".
        rule : str, optional
            By what rule a unit is in a partition, such as "month of first admission". Each unit is in one, and nothing
            in its record can change in which: an assumption of the owner, kept in the ledger with the first charge that
            names a partition, and never changed. Left out: the one that the ledger has.

        Returns
        -------
        PrivacyAccountant
            It shares everything with this one, and is cloned, copied, pickled and sent to processes in the same way.
        """
        if check_name("name", name) is None:
            raise TypeError("name=None is not valid; give the name of a partition, such as '2026-01'.")
        rule = check_name("rule", rule)
        return self._of(self._log, name, self._partition_rule if rule is None else rule)

    def keep_split(
        self, test_size: float, *, n_rows: int | None = None, groups: str = "", unit: str | None = None
    ) -> DataSplit:
        """The split of the data set into the partitions "train" and "test": the one that is kept, or a new one.

        `skdp.model_selection.private_train_test_split` draws the parts by it. Of several processes at once one makes
        it, and all get the same.

        Parameters
        ----------
        test_size : float
            Share of the part "test", in (0, 1).
        n_rows : int, optional
            Public number of rows, which are drawn by number; left out: units are drawn by label.
        groups : str
            Name of the labels, "" if they have none.
        unit : {"row", "group"} or None
            What is drawn. None is the unit of this accountant.

        Returns
        -------
        DataSplit
            With its key.

        Raises
        ------
        ValueError
            If the ledger keeps another split, or partitions, labels or charges that contradict this one.
        BudgetFileError, AccountantDetachedError
            If there is none yet and it cannot be kept.
        """
        self._refuse_other_unit(unit)
        asked = DataSplit(float(test_size), n_rows, groups)
        if self._partition is not None:
            raise ValueError(
                f"ledger is that of partition={self._partition!r}, and parts are not split again: give the accountant "
                "of the whole ledger."
            )
        found = self.split or self._make_split(asked)
        found.refuse_other(asked)
        return found

    def _make_split(self, asked: DataSplit) -> DataSplit:
        """Write a new key down, unless another process did so first; the one that is kept."""
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
        """The split of the data set that is kept; None where there is none."""
        return self._log.read().scope.split

    @property
    def partition_name(self) -> str | None:
        """The partition whose units this accountant charges; None: all units."""
        return self._partition

    @property
    def partition_rule(self) -> str | None:
        """By what rule a unit is in one partition, an assumption of the owner; None where there is none."""
        return self._log.read().scope.partition_rule or self._partition_rule

    @property
    def identity(self) -> tuple[str | int, str | None]:
        """What two accountants have in common that charge the same units in the same ledger."""
        return self.path or id(self._log), self._partition

    @property
    def epsilon(self) -> float | None:
        """Budget on epsilon, raised ones included, or None."""
        return None if self._log.terms.epsilon is None else self._log.read().epsilon

    @property
    def delta(self) -> float | None:
        """Delta of the budget, or None."""
        return self._log.terms.delta

    @property
    def unit(self) -> str:
        """What one record is."""
        return self._log.terms.unit

    @property
    def method(self) -> str:
        """Accounting method of the fits that are charged."""
        return self._log.terms.method or "pld"

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
        """Adjacency of all charges; None before the first, where none was stated."""
        return self._log.read().scope.adjacency

    @property
    def history(self) -> tuple[Charge, ...]:
        """All charges, in order."""
        return tuple(self._read().history)

    @property
    def entries(self) -> tuple[Charge, ...]:
        """The whole ledger, in order: charges, refusals that were recorded, and raises of the budget."""
        return tuple(self._read().entries)

    @property
    def event(self) -> DpEvent:
        """Everything charged so far as one event, equal neighbours counted; of all partitions, unless one is named."""
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
        """Charge an event, before the data are touched.

        When this returns, the charge is in the ledger; with a file, on the disk.

        Parameters
        ----------
        event : DpEvent
            Event to charge.
        label : str
            What it was for, as shown in `history`.
        adjacency : {"zero_out", "add_remove", "replace_one"}
            The same for all charges of an accountant.
        parameters : mapping, optional
            Public parameters of what was run, to be kept with the charge. No seeds, and nothing of the data.
        note : str
            Anything else worth keeping.
        unit : {"row", "group"} or None
            What the event is private for: one row, or all rows with one label; `parameters` may name the column of the
            labels as "groups". None is the unit of this accountant.
        partition : str, optional
            The only units that the event concerns. Left out: that of this accountant, or all units.
        partition_rule : str, optional
            By what rule a unit is in a partition, as for `partition`; with the first charge of a partition.

        Raises
        ------
        BudgetExceededError
            If the budget would be passed. Nothing is charged then.
        TypeError, ValueError
            If no method prices the event together with what the ledger holds; if the adjacency, the unit or the rule of
            partitions is another one; if a partition has no rule, or `replace_one` as adjacency.
        BudgetFileError
            If the file cannot be read, written or trusted. Nothing is charged then.
        AccountantDetachedError
            On a copy of an accountant that lives in memory.
        """
        self._refuse_other_unit(unit)
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
        """Raise exactly what `spend` would raise; charge and write nothing.

        Another process may charge in between, so `spend` can still refuse.

        Parameters
        ----------
        event : DpEvent
            Event that would be charged.
        adjacency : {"zero_out", "add_remove", "replace_one"}
        parameters : mapping, optional
            Those of the charge: a refusal tells its epsilon at their `delta`.
        unit : {"row", "group"} or None
        partition, partition_rule : str, optional
            As for `spend`.
        """
        self._refuse_other_unit(unit)
        named = self._name_partition(partition, partition_rule)
        self._log.check(replace(self._entry(event, "", adjacency, parameters, ""), **named))

    def record_rejection(self, label: str, *, adjacency: str = "zero_out", note: str = "") -> bool:
        """Write down that rows were refused: an entry without a price.

        A refusal that can be repeated for nothing is a query; the ledger shows how often it was made. This is for the
        path of an exception, so a failure to write is returned and never raised: neither a budget,
        nor a detached copy, nor a file that cannot be written, hides the refusal itself.

        Parameters
        ----------
        label : str
            What refused them.
        adjacency : {"zero_out", "add_remove", "replace_one"}
        note : str
            The kind of fault. Nothing of the data: the ledger is no place for private values.

        Returns
        -------
        bool
            Whether it is in the ledger.
        """
        entry = self._entry(NoOpDpEvent(), label, adjacency, None, note, "refusal")
        try:
            self._log.append(entry)
        except (AccountantDetachedError, BudgetFileError):
            return False
        return True

    def increase_budget(
        self, epsilon: float, *, delta: float | None = None, note: str = "", allow_less: bool = False
    ) -> None:
        """Raise the budget, as an entry of the ledger.

        A budget raised after outputs were seen is no filter. From then on a charge is admitted only while the
        odometer's figure, with it, is within the new budget, and that figure, `spent`, is what is guaranteed: it
        replaces the promise of the first budget (`skdp.accounting.ledger.balance`). The figure counts more than a
        filter does, so a small raise can lower what is left, for good. Before the first charge nothing was seen, and
        the new budget is like one from the start.

        Parameters
        ----------
        epsilon : float
            The new budget: above the present one, and not below the odometer's figure.
        delta : float, optional
            The ledger's, or left out. It cannot be raised: the odometer holds at a delta named in advance.
        note : str
            Why.
        allow_less : bool
            Whether to raise it even if less is left then for a fit like the last one; kept with the entry.

        Raises
        ------
        ValueError
            If this is no raise, does not cover what was charged, or lowers what is left without `allow_less`.
        """
        epsilon = check_epsilon(epsilon, positive=True)
        if not isinstance(allow_less, bool):
            raise TypeError(f"allow_less={allow_less!r} is not valid; give True or False.")
        if delta is not None and check_delta(delta) != self.delta:
            raise ValueError(
                f"delta={delta!r} is not the ledger's delta={self.delta!r}, which cannot be raised: what holds after "
                "outputs were seen holds at a delta named before; leave delta out, or begin another ledger."
            )
        given = {"epsilon": epsilon, **({"allow_less": True} if allow_less else {})}
        self._log.append(self._entry(NoOpDpEvent(), "", self.adjacency or "zero_out", given, note, "raise"))

    def _name_partition(self, partition: str | None, rule: str | None) -> dict[str, Any]:
        """The partition of a charge and its rule: those that are given, or those of this accountant."""
        partition, rule = check_name("partition", partition), check_name("partition_rule", rule)
        if self._partition is not None and partition not in (None, self._partition):
            raise ValueError(
                f"partition={partition!r} cannot be charged to an accountant of partition={self._partition!r}; use "
                "the accountant of the whole ledger, or its partition(name)."
            )
        partition = self._partition if partition is None else partition
        if partition is None and rule is not None:
            raise ValueError(f"partition_rule={rule!r} is for charges of a partition; give partition, or leave it out.")
        return {"partition": partition, "partition_rule": self._partition_rule if rule is None else rule}

    def _refuse_other_unit(self, unit: str | None) -> None:
        """Refuse a charge for rows on a ledger of groups, and the other way round."""
        if unit is None:
            return
        check_known("unit", unit, ("row", "group"))
        if (unit == "row") == (self.unit == "row"):
            return
        if unit == "row":
            raise ValueError(
                f"unit='row' cannot be charged to an accountant of unit={self.unit!r}, which protects all rows of one "
                "unit: give fit the label of each row as groups, or use another accountant."
            )
        raise ValueError(
            "unit='group' cannot be charged to an accountant of unit='row': begin one with "
            "PrivacyAccountant(unit='household'), or whatever all rows with one label are."
        )

    def _entry(
        self, event: DpEvent, label: str, adjacency: str, parameters: Any, note: str, kind: str = "charge"
    ) -> Charge:
        event = resolve(event)
        releases(event)  # refuses what has no price
        adjacency, kept = check_adjacency(adjacency), plain_parameters(parameters)
        label, note = check_text("label", label), check_text("note", note)
        return Charge(event, label, adjacency, self.unit, kept, note, now(), kind)

    @property
    def head(self) -> str:
        """The hash of the last entry, which represents all before it; to be noted elsewhere, for `verify`."""
        return self._log.verify()[-1]

    def verify(self, head: str | None = None) -> int:
        """Check that no entry was altered: the file is whole, each hash is right, each event is known.

        Parameters
        ----------
        head : str, optional
            A `head` that was noted earlier: it has to be among the hashes still. Without it, a file rewritten from
            its beginning and one that lost its last charges look sound.

        Returns
        -------
        int
            The number of entries.

        Raises
        ------
        BudgetFileError
            Naming the first entry that is not as it was written.
        """
        heads = self._log.verify()
        if head is not None and head not in heads:
            raise BudgetFileError(
                f"head={head!r} is not among the {len(heads)} hashes of path={self.path!r}: entries were altered or "
                "lost since it was noted; bring back an unharmed copy."
            )
        return len(heads) - 1

    def to_json(self) -> str:
        """The ledger as JSON: its terms, every entry with its event and its hash, and the last hash as `head`.

        Returns
        -------
        str
            Text that `from_json` reads.
        """
        return ledger_to_json(self._log.terms, self._log.read().entries)

    @classmethod
    def from_json(
        cls, text: str, *, resume: bool = False, path: str | os.PathLike[str] | None = None
    ) -> PrivacyAccountant:
        """The ledger that `to_json` wrote.

        Parameters
        ----------
        text : str
            What `to_json` returned.
        resume : bool
            False: a copy that can be read but refuses to spend, as two copies that spend would each miss what
            the other spends. If True, the copy can be charged. Use this for one copy only.
        path : str or path-like, optional
            A new file to carry the ledger on in.

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
                    f"path={path!r} with resume=False: a file can be charged; give resume=True or no path."
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
    """The accountant that a parameter `accountant` represents.

    Parameters
    ----------
    value : PrivacyAccountant, str, path-like or None
        A path names the file of a ledger that exists; it is made absolute here.

    Returns
    -------
    PrivacyAccountant or None
    """
    if value is None or isinstance(value, PrivacyAccountant):
        return value
    name = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(name, str):
        raise TypeError(
            f"accountant={type(value).__name__} is not valid; give a PrivacyAccountant, the path of a ledger's file, "
            "or None."
        )
    if not name:
        raise ValueError("accountant='' is not valid; give the path of a ledger's file, such as 'census.budget'.")
    path = os.path.abspath(name)
    if not os.path.lexists(path):
        raise BudgetFileError(
            f"accountant={name!r} names no file ({path}); create it by `python -m skdp.accounting create "
            f"{shlex.quote(path)} --epsilon E --delta D`, or correct the path."
        )
    return PrivacyAccountant.open(path)
