"""The privacy parameters of an estimator: budget, noise, privacy cost, payment, and the randomness of a fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from skdp._checks.adjacency import stated_adjacency, with_n_public
from skdp._checks.default_delta import check_delta
from skdp._checks.leaks import SEEDED, note_leaks, report_leak
from skdp._checks.parameters import check_real
from skdp._checks.units import ROW
from skdp._fit.payment import Payment
from skdp.accounting import AddRemove, DpEvent, PrivacyAccountant, resolve_accountant
from skdp.accounting.calibration.noise import calibrate_to
from skdp.accounting.methods import epsilon_of
from skdp.accounting.releases import releases
from skdp.accounting.targets import EpsilonTarget, Risk, RiskTarget
from skdp.mechanisms.streams import SecretStream


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
    accountant = resolve_accountant(model.accountant)
    relation, n_public = stated_adjacency(model, accountant), vars(model).get("_n_public")
    if isinstance(relation, AddRemove):
        n_public, relation = relation.n_public, "add_remove"
    delta = read_delta(model.delta)
    if epsilon is not None:
        epsilon = read_epsilon(epsilon)
    if noise is not None:
        remedy = "choose a number from 1e-3 to 1e9"
        noise = check_real("noise_multiplier", noise, at_least=1e-3, at_most=1e9, remedy=remedy)
    method = "pld" if accountant is None else accountant.method
    return Budget(epsilon, noise, delta, accountant, relation, n_public, method)


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
    """Return where a fit of an estimator is charged; `budget` is that of the fit, by default the estimator's."""
    budget, parameters = budget or read_budget(model), dict[str, Any]()
    if budget.accountant is not None:
        parameters = {**model._public_parameters(), "seeded": model.random_state is not None}
        parameters["adjacency"] = with_n_public(budget.adjacency, budget.n_public)
    if name := model.__dict__.get("_fitted_group_name"):
        parameters["groups"] = name
    return Payment(budget.accountant, type(model).__name__, budget.adjacency, parameters, unit_of(model))


def unit_of(model: Any) -> str:
    """Return what a fit of an estimator is private for: a row, or a group of rows."""
    return str(model.__dict__.get("privacy_unit_", ROW))
