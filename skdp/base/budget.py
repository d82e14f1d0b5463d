"""The privacy parameters of an estimator: budget, noise, privacy cost, payment, and the randomness of a fit."""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from skdp._checks.groups import ROW
from skdp._checks.leaks import SEEDED, note_leaks, report_leak
from skdp._checks.parameters import check_delta, check_real, stated_adjacency, with_n_public
from skdp.accounting import AddRemove, DpEvent, PrivacyAccountant, resolve_accountant
from skdp.accounting.calibration import calibrate_to
from skdp.accounting.methods import epsilon_of
from skdp.accounting.releases import releases
from skdp.accounting.statements.targets import EpsilonTarget, Risk, RiskTarget
from skdp.mechanisms.streams import SecretStream

Learner = TypeVar("Learner")


@dataclass(frozen=True)
class Release:
    """One charged event. Its random `id` distinguishes it from all others, so that a union counts it once.

    `unit` says what it is private for: a row, or all rows of a group.
    """

    id: str = field(compare=False, repr=False)
    event: DpEvent
    adjacency: str
    unit: str = ROW


def new_release(event: DpEvent, adjacency: str, unit: str = ROW) -> Release:
    """Return a release with a new id, on which no other state depends yet."""
    return Release(secrets.token_hex(8), event, adjacency, unit)


def releases_of(fitted: Any) -> tuple[Release, ...]:
    """Return all releases on which the current state of an estimator, a pipeline or a search depends.

    Its own releases come first; there are none before a fit. A part that was fitted on its own later, for example by
    ``partial_fit``, adds the releases that the whole does not include.
    """
    own = fitted.__dict__.get("_fitted_releases", ())
    if not own and "privacy_event_" in fitted.__dict__:
        raise ValueError(f"this {type(fitted).__name__} does not tell its releases: fit a clone of it.")
    if not own:
        return ()
    # A joint release of the whole represents those of its parts at that time, which must not be counted again.
    found = {release.id: release for release in own}
    known = {*found, *fitted.__dict__.get("_fitted_inside", ())}
    for part in fitted._private_parts():
        found.update({release.id: release for release in releases_of(part) if release.id not in known})
    return tuple(found.values())


def ids_of(parts: Iterable[Any]) -> frozenset[str]:
    """Ids of the releases of parts, for which a joint release of the whole stands."""
    return frozenset(release.id for part in parts for release in releases_of(part))


PUBLICATION = threading.RLock()
"""Held while parameters are set and while a pipeline's steps are replaced, so that neither undoes the other."""


def publish(target: Any, fitted: Any, **parameters: Any) -> None:
    """Move everything that `fitted`, a copy of `target`, has learned to `target`, and keep its parameters.

    A single update of a dictionary does this. It cannot be interrupted: after an interrupt or an error, and in another
    thread, the state is the old one or the new one, each with its own price. Attributes that `fitted` no longer has,
    such as names of columns, are removed afterwards.
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
    """Fit what reads nothing private: `learn` sets the attributes of a copy, and they are published together."""
    work = copy_to_fit(target)
    learn(work)
    publish(target, work)
    return target


def copy_to_fit(target: Learner, *, keep_learned: bool = False) -> Learner:
    """Return a shallow copy that learns in the place of `target`, without what was learned earlier.

    The hooks of pickling are not called.
    """
    copied, present = object.__new__(type(target)), vars(target).copy()  # in C: no thread publishes in between
    vars(copied).update({name: value for name, value in present.items() if keep_learned or not _is_learned(name)})
    return copied


def _is_learned(name: str) -> bool:
    """Whether an attribute of this name is a result of ``fit``, by scikit-learn's convention or ours."""
    return name.startswith("_fitted") or (name.endswith("_") and not name.endswith("__"))


class Budget(NamedTuple):
    """The privacy parameters of an estimator, checked. One of epsilon and noise_multiplier is not None.

    A `delta` of None is not known before the number of rows is; wherever a fit is planned it is a number. `adjacency`
    is the name of the neighboring relation, and `n_public` the number of rows or groups that rules use, None for that
    of the data. `method` is the accounting method: that of the accountant, else PLD.
    """

    epsilon: float | Risk | None
    noise_multiplier: float | None
    delta: Any
    accountant: PrivacyAccountant | None
    adjacency: str
    n_public: int | None = None
    method: str = "pld"


class PrivacyCost(NamedTuple):
    """An event and its epsilon at delta."""

    event: DpEvent
    epsilon: float
    delta: float


def read_budget(model: Any, read_delta: Callable[[Any], float | None] = check_delta) -> Budget:
    """Return the privacy parameters of an estimator, or reject them."""
    epsilon, noise = model.epsilon, getattr(model, "noise_multiplier", None)
    if (epsilon is None) == (noise is None):
        told = f"epsilon={epsilon!r} and noise_multiplier={noise!r}"
        raise ValueError(f"{told}: set exactly one of them (epsilon=None frees noise_multiplier).")
    accountant, relation, n_public = _charged_by(model)
    delta = read_delta(model.delta)
    if epsilon is not None:
        epsilon = read_epsilon(epsilon)
    if noise is not None:
        remedy = "choose a number from 1e-3 to 1e9"
        noise = check_real("noise_multiplier", noise, at_least=1e-3, at_most=1e9, remedy=remedy)
    method = "pld" if accountant is None else accountant.method
    return Budget(epsilon, noise, delta, accountant, relation, n_public, method)


def _charged_by(model: Any) -> tuple[PrivacyAccountant | None, str, int | None]:
    """Return the accountant of an estimator, its neighboring relation, and the public number of records, if stated."""
    accountant = resolve_accountant(model.accountant)
    relation, n_public = stated_adjacency(model, accountant), vars(model).get("_n_public")
    if isinstance(relation, AddRemove):
        return accountant, "add_remove", relation.n_public
    return accountant, relation, n_public


def read_epsilon(epsilon: Any) -> float | Risk:
    """Return the parameter epsilon of an estimator, a pipeline or a search, or reject it."""
    if isinstance(epsilon, Risk):
        return epsilon
    remedy = "choose a number above 0, such as 1.0, or skdp.Risk(advantage=0.1)"
    return check_real("epsilon", epsilon, above=0, remedy=remedy)


def solve_noise(budget: Budget, event_at: Callable[[float], DpEvent]) -> float:
    """Return the noise multiplier that was given, or the one at which `event_at` costs epsilon."""
    if budget.noise_multiplier is not None:
        return budget.noise_multiplier
    epsilon: Any = budget.epsilon
    target = RiskTarget.of(epsilon) if isinstance(epsilon, Risk) else EpsilonTarget(epsilon, budget.delta)
    return calibrate_to(event_at, target, method=budget.method, adjacency=budget.adjacency)


def cost_of(budget: Budget, event: DpEvent) -> PrivacyCost:
    """Return an event with its epsilon by the privacy parameters of an estimator, whose delta is a number."""
    return PrivacyCost(event, epsilon_of(releases(event), budget.delta, budget.method, budget.adjacency), budget.delta)


def root_stream(estimator: Any, drawn: str = "the noise", *, remedy: str = "random_state=None") -> SecretStream:
    """Return the stream of a fit, by its public name. A seed makes what is `drawn` reproducible: a leak, reported."""
    name = getattr(estimator, "_public_name", "") or type(estimator).__name__
    stream = SecretStream.from_random_state(estimator.random_state, name)
    if estimator.random_state is not None:
        report_leak(
            f"random_state={estimator.random_state!r} makes {drawn} reproducible. The guarantee does not hold against "
            "those who know the seed. If it is used for two fits, anyone can subtract their noise, as the difference "
            f"of the outputs is exact: use {remedy}."
        )
        note_leaks(estimator, SEEDED)
    return stream


def payment_of(model: Any, budget: Budget | None = None) -> Payment:
    """Return where a fit of an estimator is charged; without its `budget`, of an estimator whose budget may be invalid.

    A rejection of rows is recorded whatever the budget, so that it cannot be repeated unseen.
    """
    parameters = dict[str, Any]()
    stated = _charged_by(model) if budget is None else (budget.accountant, budget.adjacency, budget.n_public)
    accountant, adjacency, n_public = stated
    if accountant is not None:
        parameters = {**model._public_parameters(), "seeded": model.random_state is not None}
        parameters["adjacency"] = with_n_public(adjacency, n_public)
    if name := model.__dict__.get("_fitted_group_name"):
        parameters["groups"] = name
    return Payment(accountant, type(model).__name__, adjacency, parameters, unit_of(model))


def unit_of(model: Any) -> str:
    """Return what a fit of an estimator is private for: a row, or a group of rows."""
    return str(model.__dict__.get("privacy_unit_", ROW))


class Payment(NamedTuple):
    """Where a fit is charged, and what the ledger keeps with the charge.

    Attributes
    ----------
    accountant : PrivacyAccountant or None
        None: nothing is charged anywhere.
    label : str
    adjacency : str
    parameters : dict
        Public ones alone.
    unit : {"row", "group"}
        What the event is private for; a ledger of another unit refuses it.
    """

    accountant: PrivacyAccountant | None
    label: str
    adjacency: str
    parameters: dict[str, Any]
    unit: str = ROW

    def check(self, event: DpEvent) -> None:
        """Raise what `charge` would raise; nothing is charged."""
        if self.accountant is not None:
            self.accountant.check(event, self.adjacency, parameters=self.parameters, unit=self.unit)

    def charge(self, event: DpEvent, note: str = "") -> None:
        """Charge `event`, or raise and charge nothing."""
        if self.accountant is not None:
            given: dict[str, Any] = {"adjacency": self.adjacency, "parameters": self.parameters, "unit": self.unit}
            self.accountant.spend(event, self.label, note=note, **given)

    def record_rejection(self) -> None:
        """Record on the ledger that rows were refused: that is a query, which costs nothing here."""
        if self.accountant is not None:
            self.accountant.record_rejection(self.label, adjacency=self.adjacency)


@contextlib.contextmanager
def recording_refusals(find_payment: Callable[[], Payment]) -> Iterator[None]:
    """Record that rows were refused within, by the payment of the fit, which is found if one is needed."""
    try:
        yield
    except Warning:  # a leak that was turned into an error
        raise
    except Exception:
        find_payment().record_rejection()
        raise
