"""Candidates of a private search: what each fit will cost, and the fit at exactly that cost.

Each candidate is a `PrivatePipeline`; a private estimator that is searched alone is the only step of one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from skdp._checks.adjacency import with_n_public
from skdp._checks.protocols import is_private
from skdp._checks.units import Units
from skdp._fit.joint_fit import Allocation, JointFit
from skdp._fit.private_step import PrivateStep, StepPlan, private_steps
from skdp.accounting import DpEvent
from skdp.accounting.calibration.noise import calibrate_to
from skdp.accounting.targets import BudgetTarget
from skdp.model_selection.whole_fit import PartRows
from skdp.pipeline import PrivatePipeline, allocate_budget, check_budget, noises_of, take_fit, weighted_steps

_OF_THE_SEARCH = {
    "epsilon", "delta", "noise_multiplier", "accountant", "adjacency", "random_state", "fractions",
    "warm_start", "classes", "weight_bound", "memory", "verbose",
}  # fmt: skip


def refuse_terms_of_the_budget(grid: list[dict[str, Any]]) -> None:
    """What the search decides for all candidates cannot differ between them."""
    for name in sorted({name for each in grid for name in each}):
        if name.split("__")[-1] in _OF_THE_SEARCH:
            raise ValueError(
                f"parameter {name!r} cannot be searched: budget, seed and schema are those of the search; leave it out."
            )


def private_template(estimator: Any, epsilon: Any, delta: float | str, adjacency: Any = None) -> PrivatePipeline:
    """A copy of what is searched over, as a pipeline of private steps with one budget.

    `adjacency` is the neighboring relation of a whole, for steps that state none.
    """
    template = clone(estimator)
    if is_private(template):
        template = PrivatePipeline([(_ALONE, template)])
    if isinstance(template, Pipeline) and not isinstance(template, PrivatePipeline):
        template = allocate_budget(template, epsilon, delta)
    if isinstance(template, PrivatePipeline) and private_steps(template.steps):
        _state_adjacency(template, adjacency)
        return template.set_params(epsilon=epsilon, delta=delta, verbose=False)
    raise ValueError(
        f"estimator is a {type(estimator).__name__}, neither a private estimator nor a Pipeline of them: use one of "
        "skdp, such as DPLogisticRegression."
    )


_ALONE = "alone"


def _state_adjacency(pipeline: PrivatePipeline, adjacency: Any) -> None:
    for _, step in private_steps(pipeline.steps):
        if step.estimator.adjacency is None:
            step.estimator.adjacency = adjacency
    pipeline._state_adjacency()


def seen_by_the_user(candidate: PrivatePipeline) -> Any:
    """The pipeline, or the private estimator that is its only step."""
    (name, step), *others = candidate.steps
    return step if name == _ALONE and not others else candidate


def make_candidate(template: PrivatePipeline, parameters: dict[str, Any], X: Any, n_samples: int) -> PrivatePipeline:
    """The template with these parameters, checked, and without what would spend, speak or repeat outside the search.

    Names and types of the columns of `X` may decide what it is (`PrivatePipeline._settle_steps`). `n_samples` is the
    number of rows, or of units.
    """
    made = template._copied()
    seen_by_the_user(made).set_params(**{name: clone(value, safe=False) for name, value in parameters.items()})
    steps, known = private_steps(made.steps), private_steps(template.steps)
    _state_adjacency(made, known[0][1].estimator.adjacency)
    if {_id_of_ledger(step) for _, step in steps} - {_id_of_ledger(step) for _, step in known} - {None}:
        raise ValueError("accountant differs between the candidates: give it to the estimator that is searched.")
    for _, step in steps:
        own = step.estimator.get_params(deep=False)
        if step.estimator.adjacency != known[0][1].estimator.adjacency:
            raise ValueError(
                f"adjacency={step.estimator.adjacency!r} differs between the candidates: give all of them one."
            )
        if own.get("checkpoint") is not None:
            path = own["checkpoint"]
            raise ValueError(f"checkpoint={path!r} is the file of one run: set checkpoint=None in a search.")
        step.estimator.set_params(**{name: value for name, value in _SILENT.items() if name in own})
    loud = [name for name in made.get_params() if name.split("__")[-1] == "verbose"]
    made.set_params(**dict.fromkeys(loud, 0))
    check_budget(made)
    made._note_unit()  # to steps that are parameters
    made._settle_steps(X, n_samples)
    return made._take_unit(template)


_SILENT = {"accountant": None, "random_state": None, "warm_start": False}


def _id_of_ledger(step: PrivateStep) -> Any:
    """What tells one ledger from another; None without one."""
    return None if step.accountant is None else step.accountant.identity


class FitPlan(NamedTuple):
    """A fit to `n` rows, or units: the candidate's parameters, the pipeline that has them, the noise of each private
    step. What it is private for is noted on the pipeline.

    The noise is for a fit that costs as much as the others that it is compared with; all are scaled alike.
    """

    parameters: dict[str, Any]
    pipeline: PrivatePipeline
    n: int
    allocation: Allocation

    def event(self, scale: float) -> DpEvent:
        """What the fit costs with its noise times `scale`."""
        return self.allocation.scaled(scale).event

    def check_parameters(self, n_features: int) -> None:
        """Before the charge: an error in the middle would tell that this candidate was tried."""
        self._fit(1.0, None).check_parameters(self.n, n_features)

    def check_rows(self, X: Any, y: Any, units: Units | None = None, weights: Any = None) -> None:
        """Before the charge: refuse rows, labels and weights that the fit would refuse."""
        self._fit(1.0, None, weights, units).prepare(X, y)

    def run(self, scale: float, seed: int | None, rows: PartRows) -> PrivatePipeline:
        """A copy of the pipeline, fitted with its noise times `scale`; its parameters are the candidate's own."""
        whole, fit = self.pipeline._copied(), self._fit(scale, seed, rows.given_weights, rows.units)
        fit.prepare(rows.X, rows.y, rows.like)
        _, interrupted = fit.learn()
        if interrupted:  # Ctrl-C ends the search, and not one trial of it
            raise KeyboardInterrupt
        take_fit(whole, fit, self.event(scale))
        return whole

    def _fit(self, scale: float, seed: int | None, weights: Any = None, units: Units | None = None) -> JointFit:
        """A fit with a public number of rows of its own."""
        pipeline = with_public_rows(self.pipeline, self.n)
        given = {} if weights is None else {name: {"sample_weight": weights} for name in weighted_steps(pipeline)}
        return JointFit(pipeline.steps, self.allocation.scaled(scale), pipeline.delta, given, seed=seed, units=units)


def with_public_rows(pipeline: PrivatePipeline, n: int) -> PrivatePipeline:
    """A copy for a part of the rows, or units, which has a public number of its own where the whole has one."""
    copied = pipeline._copied()
    for _, step in private_steps(copied.steps):
        step.estimator.set_params(adjacency=with_n_public(step.adjacency, n))
    return copied


def fit_plans(
    grid: list[dict[str, Any]],
    candidates: list[PrivatePipeline],
    n: int,
    n_features: int,
    target: BudgetTarget,
    delta: float,
) -> list[FitPlan]:
    """Fits to n rows, or units, that meet the target each; candidates that are planned alike share their noise."""
    known: dict[Any, tuple[float, ...]] = {}
    made = []
    for parameters, pipeline in zip(grid, candidates, strict=True):
        steps = private_steps(with_public_rows(pipeline, n).steps)
        plans = [step.plan(n, n_features, delta) for _, step in steps]
        key = tuple(plan.event_at(1.0) for plan in plans)
        if key not in known:
            known[key] = _noises(pipeline, plans, target)
        plan = FitPlan(parameters, pipeline, n, Allocation(plans, known[key]))
        plan.check_parameters(n_features)
        made.append(plan)
    return made


def _noises(pipeline: PrivatePipeline, plans: list[StepPlan], target: BudgetTarget) -> tuple[float, ...]:
    """Noise of each private step at which a fit meets the target; a single one is solved for more closely."""
    if len(plans) > 1:
        return noises_of(pipeline, plans, target)
    adjacency = private_steps(pipeline.steps)[0][1].adjacency
    return (calibrate_to(plans[0].event_at, target, adjacency=adjacency),)
