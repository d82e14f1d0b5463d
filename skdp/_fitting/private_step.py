"""The protocol by which pipelines and searches fit private estimators whose noise they allot themselves.

A private step has a method ``__private_step__`` that returns a `PrivateStep`, or another object with its methods.
Nothing else tells it from a public step (docs/extending.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from typing import Any, NamedTuple, Self

from sklearn.base import clone

from skdp.accounting import DpEvent, PrivacyAccountant, resolve_accountant


class StepPlan(NamedTuple):
    """What a fit will cost as a function of its noise multiplier, and the parameters that make it cost just that."""

    event_at: Callable[[float], DpEvent]
    parameters: dict[str, Any]


class FitTerms(NamedTuple):
    """What is known of a fit from its parameters alone: the budget as the estimator checked it, and its randomness."""

    budget: Any
    stream: Any


class PrivateStep:
    """A private estimator in the fit of a pipeline or a search: its price, then the phases of its fit, in order.

    Parameters
    ----------
    estimator : PrivateEstimator
        It is changed by `set_params`, `begin` and what follows.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        self._terms: Any = None
        self._targets: Any = None

    # --- what is public of it ---

    @property
    def adjacency(self) -> str:
        """What neighbours differ in; all steps of a pipeline have the same."""
        return str(self.estimator.adjacency)

    @property
    def accountant(self) -> PrivacyAccountant | None:
        """The ledger that the estimator was given."""
        return resolve_accountant(self.estimator.accountant)

    @property
    def width_is_public(self) -> bool:
        """Whether the number of columns that it returns is known before the fit."""
        return bool(self.estimator._width_is_public())

    def public_n_samples(self, n_samples: int) -> int:
        """The number of rows that rules may use."""
        return int(self.estimator._public_n_samples(n_samples))

    def plan(self, n_samples: int, n_features: int, delta: float) -> StepPlan:
        """What a fit to a table of this shape costs, at any noise multiplier; `delta` is that of the whole."""
        plan: StepPlan = copy(self.estimator).set_params(delta=delta)._plan_step(n_samples, n_features)
        return plan

    def allot(self, plan: StepPlan, noise_multiplier: float, delta: float) -> Self:
        """A step with a copy of the estimator that has this noise and no ledger, so that its fit costs as planned."""
        noise = {"epsilon": None, "noise_multiplier": noise_multiplier, "delta": delta, "accountant": None}
        return type(self)(clone(self.estimator).set_params(**plan.parameters, **noise))

    # --- the phases of a fit ---

    def begin(self) -> None:
        """Refuse what can be refused without knowing the table."""
        self._terms = self.estimator._check_terms()

    def check_parameters(self, n_samples: int, n_features: int | None) -> None:
        """Refuse what can be refused before a row or label is read; a width of None is not known yet."""
        self.estimator._check_parameters(self._terms, n_samples, n_features)

    def check_rows(self, X: Any) -> Any:
        """The rows as a table of numbers, refused if they are unusable; reads private data."""
        self.estimator._note_rows(X)
        return self.estimator._check_rows(X)

    def check_targets(self, y: Any, n_samples: int, **fit_params: Any) -> None:
        """Keep labels and weights for `learn`, refused if they are unusable; reads private data."""
        self._targets = self.estimator._check_targets(y, n_samples, **fit_params)

    def rehearse(self, rows: Any, n_samples: int) -> Any:
        """Made-up rows as a copy transforms them that is fitted to them, with randomness of its own."""
        stand_in = clone(self.estimator)
        stand_in._note_rows(rows)
        checked = stand_in._check_rows(rows)
        terms = self._terms._replace(stream=self._terms.stream.spawn("rehearsal"))
        stand_in._learn(stand_in._plan_fit(terms, n_samples, checked.shape[1], None), checked, None)
        return stand_in.transform(rows)

    def learn(self, rows: Any, n_samples: int) -> str:
        """Train on checked rows; where an interrupt cut it short, or "" if none did."""
        plan = self.estimator._plan_fit(self._terms, n_samples, rows.shape[1], self._targets)
        return str(self.estimator._learn(plan, rows, self._targets))

    def set_price(self, price: Any, releases: tuple[Any, ...]) -> None:
        """State what the fitted estimator costs within a whole, such as a search."""
        self.estimator._set_price(price, releases)


def is_private(step: Any) -> bool:
    """Whether a step pays for what it reads; one whose ``__private_step__`` returns None reads nothing as it is set."""
    return hasattr(type(step), "__private_step__") and step.__private_step__() is not None


def step_of(estimator: Any) -> PrivateStep:
    """The private step that an estimator is."""
    step: PrivateStep = estimator.__private_step__()
    return step


def private_steps(steps: Iterable[tuple[str, Any]]) -> list[tuple[str, PrivateStep]]:
    """The private ones among named steps, in order."""
    return [(name, step_of(step)) for name, step in steps if is_private(step)]


__all__ = ["FitTerms", "PrivateStep", "StepPlan", "is_private", "private_steps", "step_of"]
