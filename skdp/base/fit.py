"""The fit object, whose methods a private ``fit`` calls in order: begin, plan, read, charge, release, publish.

Only the fit object charges the accountant. It enforces the order: noise and privacy cost follow from public numbers and
the budget is checked before a value is read, rows are checked before the charge, the charge precedes learning, and
each release is made once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache, cached_property, partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from skdp._checks.frames import in_memory
from skdp._checks.groups import GROUP, ROW, UNIT_FACTS, CountedUnits, Units, read_units, split_labels
from skdp._checks.leaks import NOT_KEPT, note_leaks
from skdp._checks.notices import notices_of, tell_now
from skdp._checks.numbers import shape_of
from skdp._checks.parameters import delta_for, with_n_public
from skdp._checks.rows import check_schema, check_shape
from skdp._checks.sources import RowSource, reject_rows_elsewhere
from skdp._kernels.threads import WorkerPool
from skdp.accounting import DpEvent, GaussianDpEvent, compose, flatten
from skdp.base.budget import Budget, PrivacyCost, Release, charged_by, cost_of, read_budget, root_stream, solve_noise
from skdp.base.foreign_fits import report_foreign_fit
from skdp.base.pipeline_issues import FitCost
from skdp.exceptions import BudgetExceededError, FitInterruptedWarning, QualityWarning, warn
from skdp.mechanisms.gaussian import GaussianMechanism

Learner = TypeVar("Learner")


# --- what is learned, and its releases ---


PUBLICATION = threading.RLock()
"""Held while parameters are set and while a pipeline's steps are replaced, so that neither undoes the other."""


def publish(target: Any, fitted: Any, **parameters: Any) -> None:
    """Move all learned attributes of `fitted`, a copy of `target`, to `target`, and keep its parameters.

    A single dictionary update does this, which cannot be interrupted. After an error or an interrupt, and in another
    thread, the state is either the old or the new one, each with its own privacy cost. Attributes that `fitted` no
    longer has, such as column names, are removed afterwards.
    """
    learned = dict(parameters)
    for name, value in fitted.__dict__.items():
        if _is_learned(name):
            learned[name] = value
    # `dict.update` of string keys runs in C without calling Python code, so no signal handler runs within it.
    target.__dict__.update(learned)
    for name in tuple(target.__dict__):
        if _is_learned(name) and name not in learned:
            target.__dict__.pop(name, None)


def fit_publicly(target: Learner, learn: Callable[[Learner], object]) -> Learner:
    """Fit an estimator that reads no private data: `learn` sets attributes of a copy, which are published together."""
    work = copy_to_fit(target)
    learn(work)
    publish(target, work)
    return target


def copy_to_fit(target: Learner, *, keep_learned: bool = False) -> Learner:
    """Return a shallow copy for learning, without the attributes learned by `target`.

    Pickling hooks are not called.
    """
    copied = object.__new__(type(target))
    vars(copied).update(vars(target))  # in C: no thread publishes in between
    if not keep_learned:
        for name in list(filter(_is_learned, vars(copied))):
            del vars(copied)[name]
    return copied


def _is_learned(name: str) -> bool:
    """Return whether an attribute of this name is a result of ``fit``, by the conventions of scikit-learn or skdp."""
    return name.startswith("_fitted") or (name.endswith("_") and not name.endswith("__"))


# --- a fit ---


class NoisySum(NamedTuple):
    """A released sum, as returned by its query.

    `deviation` is the standard deviation of the noise of each value. `n_rows` is the number of summed rows; it is
    public, except under ``add_remove``.
    """

    value: Any
    deviation: float
    n_rows: int


class Paused(BaseException):
    """Ends a pass of a fit that a pipeline runs only up to a stage. It never leaves `skdp.base.private_step`."""


BEGUN, PLANNED, READ, CHARGED, RELEASED, PUBLISHED, ENDED = range(7)
_STEPS = "stream of steps"
_STAGES = "begin", "plan", "read", "charge", "release", "publish", "the end of the fit"


def begin(estimator: Any, X: Any, groups: Any = None, earlier_of: Callable[[Any], Any] | None = None) -> Fit:
    """Begin a fit: copy the estimator, check its budget, and find the public shape of the rows. No value is read.

    Inside a private pipeline or a search, this returns the fit that the pipeline planned and accounts for. `earlier_of`
    returns the `EarlierRuns` of an estimator, for a fit that continues from the current parameters.
    """
    allotted: Fit | None = estimator.__dict__.get("_allotted_fit")
    fit = Fit(estimator, earlier_of=earlier_of) if allotted is None else allotted
    fit.read_shape(X, groups)
    return fit


class Fit:
    """One fit of one estimator.

    Parameters
    ----------
    estimator : PrivateEstimator
    *place : (str, int)
        Identifies the noise streams of several fits that share a seed, such as those of the steps of a pipeline.
    earlier : EarlierRuns or None
        Earlier runs that the fit continues.

    Attributes
    ----------
    model : PrivateEstimator
        A copy of the estimator that learns. ``fit`` reads its parameters, so parameters that are set during the fit
        have no effect.
    rows : object
        The input rows, without the column of groups.
    n_rows, n_features : int
        Shape of the rows. `n_features` is None if it is not known before the charge.
    units : Units, CountedUnits or None
        The group of each row. None without groups.
    n, n_units : int
        Number of rows or groups: the public one, and that of the data, which is private under ``add_remove``.
    noise_multiplier : float
        Set by `plan`, as is `cost`; `plan_at` sets none.
    cost : PrivacyCost
        With `earlier`, the composed cost of all runs.
    file : Checkpoint or None
        Checkpoint from which an interrupted fit resumes.

    Notes
    -----
    **Guarantees.**

    - `plan` checks the budget of the accountant before a row is read. `charge` charges it before `release` reads a row.
    - `release` raises an error if all releases together have less noise than the charge covers, for charges of Gaussian
      releases alone.
    - A rejection in `read_rows` and `read` is recorded. A fit that fails or is interrupted after `charge` keeps its
      charge.
    - `publish` moves everything that was learned to the estimator in one assignment, with its privacy cost.

    The table lists the steps that each state allows. Any other step raises a RuntimeError. A charge that fails ends the
    fit.

    ========  ===========================================
    state     steps
    ========  ===========================================
    begun     resume, read_before_plan, plan
    planned   read, run_stream, charge
    read      read, run_stream, charge
    charged   release, spawn, run_stream, learn
    released  release, spawn, run_stream, learn, publish
    ========  ===========================================
    """

    precedes_charge = True  # whether ``fit`` may still reject what it finds: a pipeline ends it after the charge
    is_whole = True  # and not a step of a pipeline or a search
    _read_budget: Callable[[Any], Budget] = staticmethod(read_budget)
    _publish: Callable[[Any, Any], None] = staticmethod(publish)
    file: Any = None
    earlier: Any = None

    def __init__(self, estimator: Any, *place: tuple[str, int], earlier_of: Callable[[Any], Any] | None = None) -> None:
        self.estimator, self.model = estimator, copy_to_fit(estimator, keep_learned=earlier_of is not None)
        # Of the copy, whose parameters the run starts from: another thread may publish a run meanwhile.
        self.earlier = None if earlier_of is None else earlier_of(self.model)
        # The record of leaks starts with those of the state that the fit starts from.
        leaks = () if self.earlier is None else self.earlier.leaks
        self.model._fitted_leaks = (NOT_KEPT,) if leaks is None else leaks
        self.model._fitted_notices = {}
        self.budget = self._read_budget(self.model)
        self.model.adjacency = self.budget.adjacency
        if self.budget.n_public is not None:
            self.model._n_public = self.budget.n_public
        self._stage, self._released = BEGUN, dict[str, float]()
        root = root_stream(self.model, remedy="random_state=None for a result that you publish")
        for name, number in place:
            root = root.spawn(name, number)
        self._root = root

    @cached_property
    def _stream(self) -> Any:
        """Stream of the main release."""
        return self._root.spawn("release")

    def _find_account(self) -> Account:
        return account_of(self.model, self.budget)

    def read_shape(self, X: Any, groups: Any) -> None:
        """Record public facts about the rows. Group identifiers are read, and a rejection of them is recorded."""
        if not isinstance(X, RowSource | Iterator):
            reject_rows_elsewhere(type(self.model).__name__, X)
        self.rows, self.units = units_of(self.model, X, groups, self._find_account)
        if self.earlier is not None:
            self.earlier.check(self.model)
        self.n_rows, self.n_features = self._public_shape()
        self._settle(self.n_rows if self.units is None else self.units.n_units)

    def _public_shape(self) -> tuple[int, int | None]:
        """Return the number of rows and of columns, without reading a value."""
        X, model = self.rows, self.model
        if isinstance(X, Iterator):  # of blocks: nothing is known of them before the charge
            return 0, None
        if isinstance(X, RowSource):
            check_schema(model, X.like(), reset=self.earlier is None)
            return X.shape
        model._note_rows(X)
        with recording_rejections(self._find_account):
            shape = shape_of("X", X)
            check_shape(shape, model)
        return int(shape[0]), int(shape[1])

    def _settle(self, n: int) -> None:
        """Set delta and the account, given the number of rows or groups."""
        given, n_public = self.budget.delta, self.budget.n_public
        self.n_units, self.n = n, n if n_public is None else n_public
        if given is None and self.earlier is not None:  # a joint cost needs one delta
            given = self.earlier.delta
        self.model.delta = delta_for(given, self.budget.accountant, self.n)
        self.budget = self.budget._replace(delta=self.model.delta)
        self._account = self._find_account()  # the accountant keeps this number, and not "auto"

    # --- plan ---

    def resume(self, file: Any, earlier: Any) -> None:
        """Set the checkpoint of the fit and the state before it, for an interrupted fit that resumes."""
        self._advance(BEGUN, BEGUN)
        self.file, self.earlier = file, earlier

    def read_before_plan(self, reader: Callable[..., Any], *given: Any) -> Any:
        """Return ``reader(*given)``: labels, if the plan depends on their type. A rejection is recorded.

        In a pipeline, whose plan does not depend on labels, this returns None until there are labels.
        """
        self._advance(BEGUN, BEGUN)
        return self.recorded(reader, *given)

    def plan(self, event_at: Callable[[float], DpEvent] = GaussianDpEvent) -> None:
        """Compute the noise and the privacy cost from public numbers, and check the budget. Nothing is charged.

        Parameters
        ----------
        event_at : callable
            Function of a noise multiplier that returns the event of the fit, including all of its releases.
        """
        event_at = cache(event_at)  # calibration ends with the event of the fit
        self.noise_multiplier = solve_noise(self.budget, event_at)
        self.model.noise_multiplier_, event = self.noise_multiplier, event_at(self.noise_multiplier)
        before = () if self.earlier is None else self.earlier.releases
        of_all_runs = compose([*(each.event for each in before), event]) if before else event
        self.plan_at(cost_of(self.budget, of_all_runs), event)

    def plan_at(self, cost: PrivacyCost, event: DpEvent | None = None) -> None:
        """Plan a fit whose privacy cost is already known from public numbers, and check the budget. Nothing is charged.

        `event` is the event of this fit, if the cost also includes earlier runs.
        """
        self._advance(PLANNED, BEGUN)
        self.cost, self.event = cost, cost.event if event is None else event
        self._admit()

    def _admit(self) -> None:
        """Report leaks, and raise the errors that the charge would raise."""
        account, cost = self._account, None
        accountant = self._account.accountant
        # A fit that resumes from its file may be on the record of the accountant.
        self._was_charged = False
        if accountant is not None and self.file is not None and self.file.begun:
            note, partition = self.file.note, accountant.partition_name
            charges = (each for each in accountant.history if each.partition in (None, partition))
            self._was_charged = any(each.note == note and each.event == self.event for each in charges)
        if not self._was_charged:
            cost = FitCost(self.event, self.cost.delta, account.adjacency, account.unit)
        if leaks := report_foreign_fit(self.estimator, cost):
            note_leaks(self.model, *leaks)
        if not self._was_charged:
            account.check(self.event)

    def warn(self, notice: str) -> None:
        """Issue a quality warning, which depends only on public numbers, once. "" issues none."""
        if notice:
            tell_now(self.model, notice)

    # --- read ---

    def read_rows(self, reader: Callable[..., Any], **how: Any) -> Any:
        """Return ``reader(model, rows, reset=True, **how)``: the validated rows. A rejection is recorded.

        A pipeline checks the labels of all its steps before the rows of later steps exist. In this case it returns
        None, and ``fit`` must use `n_rows` instead of the rows until the charge.
        """
        return self.read(reader, self.model, self.rows, reset=True, **how)

    def read(self, reader: Callable[..., Any], *given: Any, **how: Any) -> Any:
        """Return ``reader(*given, **how)``: validated labels or weights. A rejection is recorded."""
        self._advance(READ, PLANNED, READ)
        return self.recorded(reader, *given, **how)

    def recorded(self, reader: Callable[..., Any], *given: Any, **how: Any) -> Any:
        """Return ``reader(*given, **how)`` for data that were read before. A rejection is recorded."""
        with recording_rejections(self._find_account), np.errstate(all="ignore"):
            return reader(*given, **how)

    # --- charge ---

    def charge(self) -> None:
        """Charge the accountant, or raise and charge nothing. Data that are not in memory are read after the charge.

        A resumed fit that was already charged is not charged again.
        """
        self._advance(ENDED, PLANNED, READ)  # until the charge is made
        if not isinstance(self.rows, Iterator):
            warn_of_weak_delta(self.cost.delta, self.n, self.units is not None)
            self.model._fitted_n_public = self.n
        if not self._was_charged:
            try:
                self._account.charge(self.event, "" if self.file is None else self.file.note)
            except BudgetExceededError:  # others charged since the accountant was asked
                if self.file is not None:
                    self.file.discard()
                raise
        self._advance(CHARGED, ENDED)

    # --- release ---

    def spawn(self, part: str, *numbers: int) -> Any:
        """Return the stream of an additional release, once; the event of the fit includes it."""
        self._begin_part(" ".join(map(str, (part, *numbers))))
        return self._stream.spawn(part, *numbers)

    def _begin_part(self, part: str) -> None:
        """Record a part, or raise if it was already released: it would have the same noise."""
        self._advance(RELEASED, CHARGED, RELEASED)
        if part in self._released:
            raise RuntimeError("release was called twice, but the charge covers one release. Plan another fit.")
        self._released[part] = 0.0

    def run_stream(self, first: int) -> Any:
        """Return the stream of a run of steps, once; its first step has the number `first` among all runs."""
        self._advance(self._stage, PLANNED, READ, CHARGED, RELEASED)
        if _STEPS in self._released:
            raise RuntimeError(
                "run_stream was called twice, but two runs of one stream have the same noise. Plan another fit."
            )
        self._released[_STEPS] = 0.0
        return self._root.spawn("from step", first)

    def learn(self, function: Callable[..., Any], *given: Any, part: str = "") -> Any:
        """Return ``function(*given)``, which reads rows after the charge, in addition to `release`.

        With `part`, the function makes the releases of that name itself, once, for example those of steps by
        `run_stream`. No floating-point warnings are issued, and a MemoryError does not contain the shape of the array,
        which may be private.
        """
        if part:
            self._begin_part(part)
        else:
            self._advance(self._stage, CHARGED, RELEASED)
        try:
            with np.errstate(all="ignore"):
                return function(*given)
        except MemoryError:
            pass
        raise MemoryError(
            "Memory ran out after the budget was charged for this fit. Provide more memory, or use a smaller model "
            "or smaller lots."
        )

    def release(
        self,
        query: Any,
        rows: Any,
        *targets: Any,
        weights: Any = 1.0,
        noise_multiplier: float | None = None,
        part: str = "",
    ) -> NoisySum:
        """Return the noisy sum of the contributions of the rows by `query`. Each part of a fit is released once.

        Parameters
        ----------
        query : object as described in ``skdp.mechanisms.bounded_sum``
        rows, *targets : object
            Input of the query. Data that are not in memory are read here.
        weights : ndarray of shape (n_rows,) or 1.0
            Private numbers in [0, 1].
        noise_multiplier : float or None
            Noise multiplier of this release. None is that of the fit.
        part : str
            Name of this release, if the fit makes several.
        """
        self._begin_part(part)
        noise_multiplier = self.noise_multiplier if noise_multiplier is None else noise_multiplier
        mechanism = GaussianMechanism(noise_multiplier, query.sensitivity(self.model.adjacency))
        self._released[part] = 1.0 / noise_multiplier**2
        self._check_released()
        stream = self._stream.spawn(part) if part else self._stream
        total = self.learn(self._add_up, query, rows, targets, weights)
        with np.errstate(all="ignore"):
            noisy = total.read(mechanism.release(total.vector, stream))
        return NoisySum(noisy, mechanism.standard_deviation * total.rounding, total.n_rows)

    def _check_released(self) -> None:
        """Raise an error if the Gaussian releases together have less noise than the charge covers."""
        planned = flatten(self.event)
        gaussian = [n / each.noise_multiplier**2 for each, n in planned.items() if isinstance(each, GaussianDpEvent)]
        if len(gaussian) == len(planned) and sum(self._released.values()) > sum(gaussian) * (1.0 + 1e-9):
            raise RuntimeError("A release has less noise than the fit was charged for. Plan the event of all releases.")

    def _add_up(self, query: Any, rows: Any, targets: tuple[Any, ...], weights: Any) -> Any:
        new_sum = partial(query.new_sum, self.model.adjacency)
        if isinstance(rows, RowSource):
            return rows.add_up(new_sum, *targets)
        with closing(WorkerPool()) as pool:
            total = new_sum(pool=pool)
            if isinstance(rows, Iterator):
                for block in rows:
                    total.add(block)
            elif self.units is None:
                total.add(rows, *targets, weights)
            else:
                total.add(rows, *targets, weights, units=self.units)
        return total

    # --- publish ---

    def publish(self, *, interrupted: str = "", **learned: Any) -> Any:
        """Publish the learned state and its privacy cost in one assignment, and return the estimator.

        `interrupted` describes where an interrupt ended the fit early, if one did.
        """
        self._advance(PUBLISHED, RELEASED)
        self.model.__dict__.update(learned)
        self._note_cost()
        with PUBLICATION:
            self._publish(self.estimator, self.model)
        self._tell(interrupted)
        return self.estimator

    def _note_cost(self) -> None:
        model, earlier = self.model, () if self.earlier is None else self.earlier.releases
        given = {} if self.file is None else {"id": self.file.receipt}  # which a fit that resumes keeps
        release = Release(self.event, model.adjacency, model.privacy_unit_, **given)
        model.privacy_event_, model.epsilon_, model.delta_ = self.cost
        model.adjacency_, model._fitted_releases = model.adjacency, (*earlier, release)

    def _tell(self, interrupted: str) -> None:
        if interrupted:
            text = (
                f"The fit was interrupted {interrupted}. The model up to this point is kept, and the full privacy "
                "cost remains charged."
            )
            warn(text, FitInterruptedWarning)
        for text, was_told in notices_of(self.estimator).items():
            if not was_told:
                warn(text, QualityWarning)

    # --- the order ---

    def _advance(self, stage: int, *allowed: int) -> None:
        """Go to a stage, or raise an error if it cannot follow the current one."""
        if self._stage not in allowed:
            raise RuntimeError(
                f"a fit goes through {', '.join(_STAGES)} in this order: {_STAGES[stage]} cannot follow "
                f"{_STAGES[self._stage]}."
            )
        self._stage = stage


def account_of(model: Any, budget: Budget | None = None) -> Account:
    """Return where a fit of an estimator is charged. Without `budget`, the budget of the estimator may be invalid.

    A rejection of rows is recorded in any case, so that it cannot be repeated unseen.
    """
    parameters = dict[str, Any]()
    stated = charged_by(model) if budget is None else (budget.accountant, budget.adjacency, budget.n_public)
    accountant, adjacency, n_public = stated
    if accountant is not None:
        parameters = {**model._public_parameters(), "seeded": model.random_state is not None}
        parameters["adjacency"] = with_n_public(adjacency, n_public)
    if name := model.__dict__.get("_fitted_group_name"):
        parameters["groups"] = name
    return Account(accountant, type(model).__name__, adjacency, parameters, unit_of(model))


def unit_of(model: Any) -> str:
    """Return the privacy unit of a fit of an estimator: a row, or a group of rows."""
    return str(model.__dict__.get("privacy_unit_", ROW))


class Account(NamedTuple):
    """Where a fit is charged, and what the accountant records with the charge.

    Attributes
    ----------
    accountant : PrivacyAccountant or None
        None if nothing is charged.
    label : str
    adjacency : str
    parameters : dict
        Public parameters only.
    unit : {"row", "group"}
        Privacy unit of the event; an accountant of another unit rejects it.
    """

    accountant: Any
    label: str
    adjacency: str
    parameters: dict[str, Any]
    unit: str = ROW

    def check(self, event: DpEvent) -> None:
        """Raise the errors that `charge` would raise; nothing is charged."""
        if self.accountant is not None:
            self.accountant.check(event, self.adjacency, parameters=self.parameters, unit=self.unit)

    def charge(self, event: DpEvent, note: str = "") -> None:
        """Charge `event`, or raise and charge nothing."""
        if self.accountant is not None:
            given: dict[str, Any] = {"adjacency": self.adjacency, "parameters": self.parameters, "unit": self.unit}
            self.accountant.spend(event, self.label, note=note, **given)

    def record_rejection(self) -> None:
        """Record on the accountant that rows were rejected: this is a query, at no privacy cost here."""
        if self.accountant is not None:
            self.accountant.record_rejection(self.label, adjacency=self.adjacency)


@contextmanager
def recording_rejections(find_account: Callable[[], Account]) -> Iterator[None]:
    """Record errors in the block as rejected rows, with the account of the fit, which is found if needed."""
    try:
        yield
    except Warning:  # a leak that was turned into an error
        raise
    except Exception:
        find_account().record_rejection()
        raise


def units_of(work: Any, X: Any, groups: Any, find_account: Callable[[], Account] | None = None) -> tuple[Any, Any]:
    """Return a table in memory without its group column, and the groups; None without groups.

    For a `RowSource`, which keeps its groups, their public facts are returned. The privacy unit is set on `work`, a
    copy made for the fit. The account, by default that of `work`, records a rejection of the table or the identifiers.
    """
    for name in UNIT_FACTS:
        work.__dict__.pop(name, None)
    work.privacy_unit_ = ROW if groups is None else GROUP
    with recording_rejections(find_account or partial(account_of, work)):
        X = in_memory(X)
        if groups is None:
            return X, None
        if isinstance(X, RowSource):
            units: Units | CountedUnits = X.find_units()
        else:
            X, labels = split_labels(X, groups)
            units = read_units(labels, int(shape_of("X", X)[0]), groups if isinstance(groups, str) else None)
    if units.name:
        work._fitted_group_name = units.name
    return X, units


def warn_of_weak_delta(delta: float, n: int, of_groups: bool = False) -> None:
    """Warn if publishing a whole record, of n public rows or groups, would satisfy delta."""
    if delta * n >= 1:
        what = "groups" if of_groups else "rows"
        warn(
            f"delta={delta!r} is at least 1/n for n={n} {what}, so it permits publishing a whole record. Set `delta` "
            f"well below {1 / n:.1g}."
        )
