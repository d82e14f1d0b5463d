"""Candidates of a private search: what each fit will cost, and the fit at exactly that cost."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from skdp._classifier import GradientClassifier, Labels
from skdp.accounting import DpEvent, calibrate_jointly, calibrate_noise_multiplier, compose
from skdp.base import Budget, PrivateEstimator, StepPlan, distinct_classes
from skdp.pipeline import Allocation, PrivatePipeline, allocate_budget

_OF_THE_SEARCH = {
    "epsilon", "delta", "noise_multiplier", "accountant", "adjacency", "accounting", "random_state", "shares",
    "n_samples_public", "warm_start", "classes", "memory", "verbose",
}  # fmt: skip


def private_parts(estimator: Any) -> list[Any]:
    """The private estimators that an estimator or a pipeline is made of."""
    if isinstance(estimator, PrivatePipeline):
        return [step for _, step in estimator._private_steps()]
    return [estimator]


def refuse_terms_of_the_budget(grid: list[dict[str, Any]]) -> None:
    """What the search decides for all candidates cannot differ between them."""
    for name in sorted({name for each in grid for name in each}):
        if name.split("__")[-1] in _OF_THE_SEARCH:
            raise ValueError(
                f"parameter {name!r} cannot be searched: budget, seed and schema are those of the search; leave it out."
            )


def private_template(estimator: Any, epsilon: float, delta: float) -> Any:
    """A copy of what is searched over: a private estimator, or a pipeline of private steps with one budget."""
    template = clone(estimator)
    if isinstance(template, Pipeline) and not isinstance(template, PrivatePipeline):
        template = allocate_budget(template, epsilon, delta)
    if isinstance(template, PrivatePipeline):
        return template.set_params(epsilon=epsilon, delta=delta, verbose=False)
    if isinstance(template, PrivateEstimator):
        return template
    raise ValueError(
        f"estimator={estimator!r} is neither a private estimator nor a Pipeline of them: use one of skdp, such as "
        "DPLogisticRegression."
    )


def candidate(template: Any, parameters: dict[str, Any], accountant: Any) -> Any:
    """The template with these parameters, checked, and without what would spend, speak or repeat outside the search."""
    estimator = clone(template)
    estimator.set_params(**{name: clone(value, safe=False) for name, value in parameters.items()})
    if isinstance(estimator, PrivatePipeline):
        if estimator.memory is not None:
            raise ValueError(
                f"memory={estimator.memory!r} would hand the noise of one try to another: set memory=None in a search."
            )
        estimator._check()
    adjacency = private_parts(template)[0].adjacency
    for part in private_parts(estimator):
        if part.accountant is not None and part.accountant is not accountant:
            raise ValueError("accountant differs between the candidates: give it to the estimator that is searched.")
        if part.adjacency != adjacency:
            raise ValueError(f"adjacency={part.adjacency!r} differs between the candidates: give all of them one.")
        own = part.get_params(deep=False)
        if own.get("checkpoint") is not None:
            raise ValueError(f"checkpoint={part.checkpoint!r} is the file of one run: set checkpoint=None in a search.")
        part.set_params(**{name: value for name, value in _SILENT.items() if name in own})
    return estimator


_SILENT = {"accountant": None, "random_state": None, "verbose": 0, "warm_start": False}


class FitPlan(NamedTuple):
    """A fit to `n` rows: the candidate's parameters, the estimator that has them, and the noise of each private step.

    The noise is for a fit that costs as much as the others that it is compared with; all are scaled alike.
    """

    parameters: dict[str, Any]
    estimator: Any
    n: int
    steps: list[StepPlan]
    noises: tuple[float, ...]

    def event(self, scale: float) -> DpEvent:
        """What the fit costs with its noise times `scale`."""
        return compose(step.event_at(scale * sigma) for step, sigma in zip(self.steps, self.noises, strict=True))

    def fitted(self, scale: float, delta: float, seed: int | None, X: Any, y: Any) -> Any:
        """A copy of the estimator, fitted with its noise times `scale`; its parameters are the user's own again."""
        estimator, event = clone(self.estimator), self.event(scale)
        noises = tuple(scale * sigma for sigma in self.noises)
        with contextlib.ExitStack() as stack:
            for number, part in enumerate(private_parts(estimator)):
                stack.enter_context(_public_rows(part, self.n))
                stack.enter_context(_set_for_now(part, random_state=None if seed is None else seed + number))
            if isinstance(estimator, PrivatePipeline):
                estimator._fit_allotted(Allocation(self.steps, noises, event), X, y)
            else:
                budget = {"epsilon": None, "noise_multiplier": noises[0], "delta": delta}
                stack.enter_context(_set_for_now(estimator, **self.steps[0].parameters, **budget))
                estimator.fit(X, y)
        spent = compose(part.privacy_event_ for part in private_parts(estimator))
        if spent != event:
            raise RuntimeError(f"spent {spent!r} where {event!r} was planned: please report this as a bug.")
        return estimator


def fit_plans(
    grid: list[dict[str, Any]], estimators: list[Any], n: int, n_features: int, epsilon: float, delta: float
) -> list[FitPlan]:
    """Fits to n rows that cost epsilon each; candidates that are planned alike share their noise."""
    known: dict[Any, tuple[float, ...]] = {}
    made = []
    for parameters, estimator in zip(grid, estimators, strict=True):
        with contextlib.ExitStack() as stack:
            parts = private_parts(estimator)
            for part in parts:
                stack.enter_context(_public_rows(part, n))
            steps = [part._plan_step(n, n_features) for part in parts]
            key = tuple(step.event_at(1.0) for step in steps)
            if key not in known:
                known[key] = _noises_of(estimator, steps, epsilon, delta)
            for part, sigma in zip(parts, known[key], strict=True):
                _refuse_bad_parameters(part, Budget(None, sigma, delta), n, n_features)
        made.append(FitPlan(parameters, estimator, n, steps, known[key]))
    return made


def _noises_of(estimator: Any, steps: list[StepPlan], epsilon: float, delta: float) -> tuple[float, ...]:
    """Noise of each private step at which a fit costs epsilon."""
    adjacency = private_parts(estimator)[0].adjacency
    if not isinstance(estimator, PrivatePipeline):
        return (calibrate_noise_multiplier(steps[0].event_at, epsilon, delta, adjacency=adjacency),)
    shares = estimator._check_shares([name for name, _ in estimator._private_steps()])
    events = [step.event_at for step in steps]
    return calibrate_jointly(events, epsilon, delta, list(shares.values()), adjacency=adjacency)


def _refuse_bad_parameters(part: Any, budget: Budget, n: int, n_features: int) -> None:
    """Before the charge: an error in the middle would tell that this candidate was tried."""
    if isinstance(part, GradientClassifier) and part.classes is not None:
        classes = distinct_classes("classes", part.classes)
        nobody: NDArray[np.int64] = np.zeros(0, np.int64)
        part._plan_run(budget, n, n_features, Labels(classes, nobody, 1 if len(classes) == 2 else len(classes)))


@contextlib.contextmanager
def _set_for_now(part: Any, **given: Any) -> Iterator[None]:
    own = {name: getattr(part, name) for name in given}
    part.set_params(**given)
    try:
        yield
    finally:
        part.set_params(**own)


def _public_rows(part: Any, n: int) -> contextlib.AbstractContextManager[None]:
    """A part of the rows has a public number of its own, where the whole has one."""
    if part.n_samples_public is None and part.adjacency != "add_remove":
        return contextlib.nullcontext()
    return _set_for_now(part, n_samples_public=n)


__all__ = ["FitPlan", "candidate", "fit_plans", "private_parts", "private_template", "refuse_terms_of_the_budget"]
