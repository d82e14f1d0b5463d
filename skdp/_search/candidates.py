"""Candidates of a private search: what each fit will cost, and the fit at exactly that cost.

Each candidate is a `PrivatePipeline`; a private estimator that is searched alone is the only step of one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from skdp._fitting.running import table_shape
from skdp.accounting import DpEvent, calibrate_jointly, calibrate_noise_multiplier, compose, resolve_accountant
from skdp.base import PrivateEstimator, StepPlan
from skdp.pipeline import Allocation, PrivatePipeline, allocate_budget

_OF_THE_SEARCH = {
    "epsilon", "delta", "noise_multiplier", "accountant", "adjacency", "accounting", "random_state", "shares",
    "n_samples_public", "warm_start", "classes", "memory", "verbose",
}  # fmt: skip


def refuse_terms_of_the_budget(grid: list[dict[str, Any]]) -> None:
    """What the search decides for all candidates cannot differ between them."""
    for name in sorted({name for each in grid for name in each}):
        if name.split("__")[-1] in _OF_THE_SEARCH:
            raise ValueError(
                f"parameter {name!r} cannot be searched: budget, seed and schema are those of the search; leave it out."
            )


def private_template(estimator: Any, epsilon: float, delta: float) -> PrivatePipeline:
    """A copy of what is searched over, as a pipeline of private steps with one budget."""
    template = clone(estimator)
    if isinstance(template, PrivateEstimator):
        template = PrivatePipeline([(_ALONE, template)])
    if isinstance(template, Pipeline) and not isinstance(template, PrivatePipeline):
        template = allocate_budget(template, epsilon, delta)
    if isinstance(template, PrivatePipeline) and template._private_parts():
        return template.set_params(epsilon=epsilon, delta=delta, verbose=False)
    raise ValueError(
        f"estimator is a {type(estimator).__name__}, neither a private estimator nor a Pipeline of them: use one of "
        "skdp, such as DPLogisticRegression."
    )


_ALONE = "alone"


def seen_by_the_user(candidate: PrivatePipeline) -> Any:
    """The pipeline, or the private estimator that is its only step."""
    (name, step), *others = candidate.steps
    return step if name == _ALONE and not others else candidate


def candidate(template: PrivatePipeline, parameters: dict[str, Any]) -> PrivatePipeline:
    """The template with these parameters, checked, and without what would spend, speak or repeat outside the search."""
    made = clone(template)
    seen_by_the_user(made).set_params(**{name: clone(value, safe=False) for name, value in parameters.items()})
    ledgers, known = ({id_of_ledger(part) for part in each._private_parts()} for each in (made, template))
    if ledgers - known - {None}:
        raise ValueError("accountant differs between the candidates: give it to the estimator that is searched.")
    adjacency = template._private_parts()[0].adjacency
    for part in made._private_parts():
        own = part.get_params(deep=False)
        if part.adjacency != adjacency:
            raise ValueError(f"adjacency={part.adjacency!r} differs between the candidates: give all of them one.")
        if own.get("checkpoint") is not None:
            raise ValueError(f"checkpoint={part.checkpoint!r} is the file of one run: set checkpoint=None in a search.")
        part.set_params(**{name: value for name, value in _SILENT.items() if name in own})
    loud = [name for name in made.get_params() if name.split("__")[-1] == "verbose"]
    made.set_params(**dict.fromkeys(loud, 0))
    made._check()
    return made


_SILENT = {"accountant": None, "random_state": None, "warm_start": False}


def id_of_ledger(part: Any) -> Any:
    """What tells one ledger from another; None without one."""
    accountant = resolve_accountant(part.accountant)
    return None if accountant is None else accountant.path or id(accountant)


class FitPlan(NamedTuple):
    """A fit to `n` rows: the candidate's parameters, the pipeline that has them, and the noise of each private step.

    The noise is for a fit that costs as much as the others that it is compared with; all are scaled alike.
    """

    parameters: dict[str, Any]
    pipeline: PrivatePipeline
    n: int
    steps: list[StepPlan]
    noises: tuple[float, ...]

    def event(self, scale: float) -> DpEvent:
        """What the fit costs with its noise times `scale`."""
        return compose(step.event_at(scale * sigma) for step, sigma in zip(self.steps, self.noises, strict=True))

    @property
    def has_public_steps(self) -> bool:
        """Whether some steps are public."""
        return any(not isinstance(step, PrivateEstimator) for _, step in self.pipeline.steps)

    def check_parameters(self, n_features: int) -> None:
        """Before the charge: an error in the middle would tell that this candidate was tried."""
        for number, (_, step) in enumerate(self._copies(1.0, None)):
            if isinstance(step, PrivateEstimator):
                step._check_parameters(step._check_terms(), self.n, n_features if number == 0 else None)

    def check_rows(self, X: Any, y: Any) -> None:
        """Before the charge: refuse rows and labels that the fit would refuse."""
        copies = self._copies(1.0, None)
        self.pipeline._prepared(copies, self.pipeline._terms_of(copies), X, y, {}, table_shape(X)[0])

    def fitted(self, scale: float, seed: int | None, X: Any, y: Any) -> PrivatePipeline:
        """A copy of the pipeline, fitted with its noise times `scale`; its parameters are the candidate's own."""
        whole, n = clone(self.pipeline), table_shape(X)[0]
        copies = self._copies(scale, seed)
        _, interrupted = whole._learned(whole._prepared(copies, whole._terms_of(copies), X, y, {}, n), y, {}, n)
        if interrupted:  # Ctrl-C ends the search, and not one try of it
            raise KeyboardInterrupt
        whole._note(copies, self.event(scale))
        return whole

    def _copies(self, scale: float, seed: int | None) -> list[tuple[str, Any]]:
        """The steps with the noise of this fit, and a stream and a public number of rows of its own."""
        noises = tuple(scale * sigma for sigma in self.noises)
        copies = with_public_rows(self.pipeline, self.n)._allotted(Allocation(self.steps, noises, self.event(scale)))
        if seed is not None:
            for number, (_, step) in enumerate(self.pipeline._private_of(copies)):
                step.set_params(random_state=seed + number)
        return copies


def with_public_rows(pipeline: PrivatePipeline, n: int) -> PrivatePipeline:
    """A copy for a part of the rows, which has a public number of its own where the whole has one."""
    copied = clone(pipeline)
    for part in copied._private_parts():
        if part.n_samples_public is not None or part.adjacency == "add_remove":
            part.set_params(n_samples_public=n)
    return copied


def fit_plans(
    grid: list[dict[str, Any]], candidates: list[PrivatePipeline], n: int, n_features: int, epsilon: float, delta: float
) -> list[FitPlan]:
    """Fits to n rows that cost epsilon each; candidates that are planned alike share their noise."""
    known: dict[Any, tuple[float, ...]] = {}
    made = []
    for parameters, pipeline in zip(grid, candidates, strict=True):
        steps = [part._plan_step(n, n_features) for part in with_public_rows(pipeline, n)._private_parts()]
        key = tuple(step.event_at(1.0) for step in steps)
        if key not in known:
            known[key] = _noises_of(pipeline, steps, epsilon, delta)
        plan = FitPlan(parameters, pipeline, n, steps, known[key])
        plan.check_parameters(n_features)
        made.append(plan)
    return made


def _noises_of(pipeline: PrivatePipeline, steps: list[StepPlan], epsilon: float, delta: float) -> tuple[float, ...]:
    """Noise of each private step at which a fit costs epsilon."""
    private = pipeline._private_steps()
    adjacency = private[0][1].adjacency
    if len(steps) == 1:
        return (calibrate_noise_multiplier(steps[0].event_at, epsilon, delta, adjacency=adjacency),)
    shares = pipeline._check_shares([name for name, _ in private])
    events = [step.event_at for step in steps]
    return calibrate_jointly(events, epsilon, delta, list(shares.values()), adjacency=adjacency)


__all__ = ["FitPlan", "candidate", "fit_plans", "private_template", "refuse_terms_of_the_budget", "seen_by_the_user"]
