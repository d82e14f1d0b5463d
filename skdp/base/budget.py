"""Privacy parameters of an estimator: budget, noise, privacy cost, releases, and the randomness of a fit."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from skdp._checks.groups import ROW
from skdp._checks.leaks import SEEDED, note_leaks, report_leak
from skdp._checks.parameters import check_delta, check_real, stated_adjacency
from skdp.accounting import AddRemove, DpEvent, PrivacyAccountant, resolve_accountant
from skdp.accounting.calibration import calibrate_to
from skdp.accounting.methods import epsilon_of
from skdp.accounting.releases import releases
from skdp.accounting.statements.targets import EpsilonTarget, Risk, RiskTarget
from skdp.mechanisms.streams import SecretStream


@dataclass(frozen=True)
class Release:
    """One charged event. Its random `id` identifies it, so that a union counts it once.

    `unit` is the privacy unit: a row, or all rows of a group.
    """

    event: DpEvent
    adjacency: str
    unit: str = ROW
    id: str = field(default_factory=partial(secrets.token_hex, 8), compare=False, repr=False)


def releases_of(fitted: Any) -> tuple[Release, ...]:
    """Return all releases on which the current state of an estimator, a pipeline or a search depends.

    Its own releases come first; there are none before a fit. If a part was fitted separately later, for example with
    ``partial_fit``, the releases of that fit are added.
    """
    own = fitted.__dict__.get("_fitted_releases", ())
    if not own and "privacy_event_" in fitted.__dict__:
        raise ValueError(f"This {type(fitted).__name__} has no record of its releases. Fit a clone of it.")
    if not own:
        return ()
    # A joint release of the whole represents those of its parts at that time, which must not be counted again.
    found = {release.id: release for release in own}
    known = {*found, *fitted.__dict__.get("_fitted_inside", ())}
    for part in fitted._private_parts():
        found.update({release.id: release for release in releases_of(part) if release.id not in known})
    return tuple(found.values())


def ids_of(parts: Iterable[Any]) -> frozenset[str]:
    """Return the ids of the releases of parts that a joint release of the whole includes."""
    return frozenset(release.id for part in parts for release in releases_of(part))


class Budget(NamedTuple):
    """Validated privacy parameters of an estimator. Exactly one of epsilon and noise_multiplier is not None.

    A `delta` of None is unknown until the number of rows is known; when a fit is planned it is a number. `adjacency` is
    the name of the neighboring relation. `n_public` is the number of rows or groups that defaults use, or None for the
    number in the data. `method` is the accounting method of the accountant, otherwise PLD.
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
    has_noise = noise is not None or "noise_multiplier" in vars(model)  # an evaluation has an epsilon alone
    if has_noise and (epsilon is None) == (noise is None):
        raise ValueError(
            "Exactly one of `epsilon` and `noise_multiplier` must be set, got "
            f"epsilon={epsilon!r} and noise_multiplier={noise!r}. Set epsilon=None to use `noise_multiplier`."
        )
    accountant, relation, n_public = charged_by(model)
    delta = read_delta(model.delta)
    if noise is None:
        epsilon = read_epsilon(epsilon)
    else:
        constraint = "a number from 1e-3 to 1e9"
        noise = check_real("noise_multiplier", noise, at_least=1e-3, at_most=1e9, constraint=constraint)
    method = "pld" if accountant is None else accountant.method
    return Budget(epsilon, noise, delta, accountant, relation, n_public, method)


def charged_by(model: Any) -> tuple[PrivacyAccountant | None, str, int | None]:
    """Return the accountant of an estimator, its neighboring relation, and the public number of records, or None."""
    accountant = resolve_accountant(model.accountant)
    relation, n_public = stated_adjacency(model, accountant), vars(model).get("_n_public")
    if isinstance(relation, AddRemove):
        return accountant, "add_remove", relation.n_public
    return accountant, relation, n_public


def read_epsilon(epsilon: Any) -> float | Risk:
    """Return the parameter epsilon of an estimator, a pipeline or a search, or reject it."""
    if isinstance(epsilon, Risk):
        return epsilon
    constraint = "a number above 0, such as 1.0, or skdp.Risk(advantage=0.1)"
    return check_real("epsilon", epsilon, above=0, constraint=constraint)


def solve_noise(budget: Budget, event_at: Callable[[float], DpEvent]) -> float:
    """Return the noise multiplier that was set, or the one at which the privacy cost of `event_at` is epsilon."""
    if budget.noise_multiplier is not None:
        return budget.noise_multiplier
    epsilon: Any = budget.epsilon
    target = RiskTarget.of(epsilon) if isinstance(epsilon, Risk) else EpsilonTarget(epsilon, budget.delta)
    return calibrate_to(event_at, target, method=budget.method, adjacency=budget.adjacency)


def cost_of(budget: Budget, event: DpEvent) -> PrivacyCost:
    """Return the privacy cost of an event with the accounting parameters of an estimator, whose delta is a number."""
    return PrivacyCost(event, epsilon_of(releases(event), budget.delta, budget.method, budget.adjacency), budget.delta)


def root_stream(estimator: Any, drawn: str = "the noise", *, remedy: str = "random_state=None") -> SecretStream:
    """Return the noise stream of a fit. A seed makes the quantity `drawn` reproducible, which is reported as a leak."""
    name = getattr(estimator, "_public_name", "") or type(estimator).__name__
    stream = SecretStream.from_random_state(estimator.random_state, name)
    if estimator.random_state is not None:
        report_leak(
            f"random_state={estimator.random_state!r} makes {drawn} reproducible. The guarantee does not hold against "
            "anyone who knows the seed. If two fits use the same seed, the exact difference of their outputs is "
            f"revealed. Use {remedy}."
        )
        note_leaks(estimator, SEEDED)
    return stream
