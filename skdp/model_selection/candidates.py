"""Candidates of a private search: the privacy cost of each fit, and the fit at exactly that cost.

Each candidate is a `PrivatePipeline`; a single private estimator is its only step.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from skdp import accounting
from skdp._checks.groups import Units
from skdp._checks.parameters import is_private, with_n_public
from skdp.accounting import DpEvent, GaussianDpEvent, NumberOfTrials, compose
from skdp.accounting.calibration import calibrate_to
from skdp.accounting.formulas.numeric import bisect
from skdp.accounting.statements.targets import BudgetTarget, Risk, target_of
from skdp.base.private_step import private_steps
from skdp.model_selection.whole_fit import PartRows
from skdp.pipeline.joint_fit import Allocation, JointFit, check_budget, noises_of, take_fit, weighted_steps
from skdp.pipeline.private_pipeline import PrivatePipeline, allocate_budget

MOST_TRIES = 10
"""Default expected number of trials; twice as many cost more than they gain (benchmarks/README.md)."""
LAWS = (1.0, 0.0, math.inf)
"""Distributions of the number of trials, of which the one with the least noise is used: geometric, logarithmic,
Poisson."""
REFIT_SHARE = 0.75
"""Fraction of the budget's mu**2 for the final fit to all rows (measured: benchmarks/README.md)."""


class SearchTerms(NamedTuple):
    """The public parameters that determine the privacy cost of a search."""

    epsilon: float | Risk
    delta: float
    adjacency: str
    strategy: str
    n_trials: float | str
    refit: bool

    @property
    def target(self) -> BudgetTarget:
        """Budget of the whole search."""
        return target_of(self.epsilon, self.delta)


class SearchPlan(NamedTuple):
    """Fits of the trials and the final fits (the first is for the case of no trial), the noise, and the privacy cost.

    `trials` is None if every candidate is tried once.

    Notes
    -----
    **Guarantees.** `event` accounts for the whole search. The search splits the rows independently of their values.
    Each trial fits one of `tried` to the training part and releases it with a score, of noise multiplier `score_noise`,
    on the test part. The search selects the best trial by that score, and fits one of `finals` to all rows.

    Proof. Given the split, a record is in one part. In the training part it enters a trial through the fit alone,
    because the score is computed from the released fit and from other rows; in the test part, through the score alone.
    So a trial costs the larger of the two for every split, and a mixture over splits costs no more (joint convexity).
    The candidate of a trial is drawn without the data and is part of its output, so a trial costs no more than the
    worst candidate (`WorstOfDpEvent`). The best of a secret random number of independent trials is
    `RepeatAndSelectDpEvent` (Papernot & Steinke 2022). The final fit is a function of that release. The worst of
    `finals` dominates each possible final fit, which adaptive composition allows (Zhu, Dong & Wang 2022, theorem 10).

    With groups, a record is a group: all of its rows are in one part, each fit is private for groups, and the
    sensitivity of a score is the same for a group as for a row. A group that replaces another one can have another
    number, and more or fewer rows. Splits of both tables can be matched so that it takes the part of that group
    (`skdp.model_selection.private_split.draw_folds`).
    """

    tried: list[FitPlan]
    finals: list[FitPlan]
    score_noise: float
    scale: float
    trials: NumberOfTrials | None
    event: DpEvent
    adjacency: str

    @property
    def tuning(self) -> dict[str, DpEvent]:
        """Events of the selection and of the final fit, which compose to `event`; empty without a selection."""
        if len(self.tried) == 1:
            return {}
        choice = _tries_event(self.tried, self.scale, GaussianDpEvent(self.score_noise), self.trials)
        return {"choice": choice, "refit": _refit_event(self.finals, self.scale, self.trials)}


def plan_search(
    grid: list[dict[str, Any]], candidates: list[PrivatePipeline], sizes: tuple[int, int, int], terms: SearchTerms
) -> SearchPlan:
    """The plan for which the whole search costs epsilon.

    `candidates` begin with the default model; `sizes` are the numbers of training rows, all rows, and columns.
    """
    n_train, n, n_features = sizes
    if len(grid) == 1:
        (only,) = fit_plans(grid, candidates[1:], n, n_features, terms.target, terms.delta)
        return SearchPlan([only], [only], math.inf, 1.0, None, only.event(1.0), terms.adjacency)
    part = _share_of(1.0 - REFIT_SHARE if terms.refit else 1.0, terms)
    tried = fit_plans(grid, candidates[1:], n_train, n_features, part, terms.delta)
    finals = []
    if terms.refit:
        finals = fit_plans([{}, *grid], candidates, n, n_features, _share_of(REFIT_SHARE, terms), terms.delta)
    score = calibrate_to(GaussianDpEvent, part, adjacency=terms.adjacency)

    def event_at(trials: NumberOfTrials | None, scale: float) -> DpEvent:
        choice = _tries_event(tried, scale, GaussianDpEvent(scale * score), trials)
        return compose([choice, _refit_event(finals, scale, trials)])

    trials, scale = _solved(event_at, len(grid), terms)
    return SearchPlan(tried, finals, scale * score, scale, trials, event_at(trials, scale), terms.adjacency)


def _tries_event(tried: list[FitPlan], scale: float, scored: DpEvent, trials: NumberOfTrials | None) -> DpEvent:
    """Event of all trials; a row is in the training part or in the test part."""
    trained = [each.event(scale) for each in tried]
    if trials is None:
        return worst_of([compose(trained), compose([scored] * len(tried))])
    return trials.event(worst_of([*trained, scored]))


def _refit_event(finals: list[FitPlan], scale: float, trials: NumberOfTrials | None) -> DpEvent:
    """Event of the fit to all rows, if there is one; the default model is needed only if there can be no trial."""
    possible = finals if trials is not None and trials.poisson else finals[1:]
    return worst_of([each.event(scale) for each in possible]) if finals else accounting.NoOpDpEvent()


def _solved(event_at: Any, n_candidates: int, terms: SearchTerms) -> tuple[NumberOfTrials | None, float]:
    """The distribution of the number of trials and the scale of all noise for which the search costs epsilon."""
    budget: dict[str, Any] = {"epsilon": terms.epsilon, "delta": terms.delta, "adjacency": terms.adjacency}
    if terms.strategy == "compose":
        return None, accounting.calibrate_noise_multiplier(lambda scale: event_at(None, scale), **budget)
    n_trials = float(min(MOST_TRIES, n_candidates) if terms.n_trials == "auto" else terms.n_trials)
    # Poisson can draw no trial. The default model is then the result, and only a refit fits it.
    shapes = [shape for shape in LAWS if terms.refit or math.isfinite(shape)]
    means = {shape: _mean_of_equal_chance(shape, n_trials, n_candidates) for shape in shapes}
    calibrate = accounting.calibrate_selection
    found = [calibrate(event_at, mean, shapes=(shape,), **budget) for shape, mean in means.items() if mean is not None]
    best = min(found, key=lambda each: each.noise_multiplier)
    return best.trials, best.noise_multiplier


def _mean_of_equal_chance(shape: float, n_trials: float, n_candidates: int) -> float | None:
    """Mean for which a distribution is as likely as the geometric one to try one of the best tenth of candidates.

    None if it would be too large. Distributions of equal mean are not equally useful: the logarithmic distribution is
    the least expensive because it mostly draws a single trial, which is no selection.
    """
    if shape == 1.0 or (n_trials == 1.0 and math.isfinite(shape)):
        return n_trials
    missed = 1.0 - max(0.1, 1.0 / n_candidates)
    goal = NumberOfTrials(n_trials, 1.0).pgf(missed)
    low, high = 1.0, 1e4  # range of possible means
    if NumberOfTrials(high, shape).pgf(missed) > goal:
        return None
    return bisect(lambda mean: NumberOfTrials(mean, shape).pgf(missed) > goal, low, high, relative=1e-6)[1]


def _share_of(share: float, terms: SearchTerms) -> BudgetTarget:
    """This fraction of mu**2 of the whole budget as a start; all noise is scaled together later."""
    return terms.target.of_size(terms.target.mu * math.sqrt(share))


def worst_of(events: list[DpEvent]) -> DpEvent:
    different = list(dict.fromkeys(events))
    return different[0] if len(different) == 1 else accounting.WorstOfDpEvent(tuple(different))


def reject_terms_of_the_budget(grid: list[dict[str, Any]]) -> None:
    """Reject parameters of the whole search, which cannot differ between candidates."""
    of_the_search = {
        "epsilon", "delta", "noise_multiplier", "accountant", "adjacency", "random_state", "fractions",
        "warm_start", "classes", "weight_bound", "memory", "verbose",
    }  # fmt: skip
    for name in sorted({name for each in grid for name in each}):
        if name.split("__")[-1] in of_the_search:
            raise ValueError(
                f"`{name}` must be the same for all candidates (budget, seed, schema). Remove it from the search, and "
                "set it on the estimator."
            )


def private_template(estimator: Any, epsilon: Any, delta: float | str, adjacency: Any = None) -> PrivatePipeline:
    """A copy of the estimator, as a pipeline of private steps with one budget.

    `adjacency` is the neighboring relation of the whole search, for steps without one.
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
        f"`estimator` must be a private estimator such as DPLogisticRegression, or a Pipeline of them, got "
        f"{type(estimator).__name__}."
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
    """The template with these parameters, checked, without accountant, output or checkpoint of its own.

    The names and types of the columns of `X` may determine it (`PrivatePipeline._settle_steps`). `n_samples` is the
    number of rows, or of groups.
    """
    made = template._copied()
    silent = {"accountant": None, "random_state": None, "warm_start": False}
    seen_by_the_user(made).set_params(**{name: clone(value, safe=False) for name, value in parameters.items()})
    steps, known = private_steps(made.steps), private_steps(template.steps)
    _state_adjacency(made, known[0][1].estimator.adjacency)
    ours, theirs = ({each.accountant and each.accountant.identity for _, each in pairs} for pairs in (steps, known))
    if ours - theirs - {None}:
        raise ValueError("`accountant` must not differ between candidates. Set it on the estimator of the search.")
    for _, step in steps:
        own = step.estimator.get_params(deep=False)
        if step.estimator.adjacency != known[0][1].estimator.adjacency:
            raise ValueError(
                f"`adjacency` must be the same for all candidates, got {step.estimator.adjacency!r} for one of them."
            )
        if (path := own.get("checkpoint")) is not None:
            raise ValueError(f"`checkpoint` must be None in a search, got {path!r}. It is the file of a single fit.")
        step.estimator.set_params(**{name: value for name, value in silent.items() if name in own})
    loud = {name: value for name, value in made.get_params().items() if name.split("__")[-1] == "verbose"}
    made.set_params(**{name: type(value)() for name, value in loud.items()})  # 0, or False for steps of scikit-learn
    check_budget(made)
    made._note_unit()  # for steps that are parameters
    made._settle_steps(X, n_samples)
    return made._take_unit(template)


class FitPlan(NamedTuple):
    """A fit to `n` rows, or groups: the parameters of the candidate, its pipeline, and the noise of each private step.

    The privacy unit is stored on the pipeline. The noise is for a fit of the same cost as the other candidates; all
    noise is scaled by the same factor.
    """

    parameters: dict[str, Any]
    pipeline: PrivatePipeline
    n: int
    allocation: Allocation

    def event(self, scale: float) -> DpEvent:
        """Event of the fit with its noise times `scale`."""
        return self.allocation.scaled(scale).event

    def check_parameters(self, n_features: int) -> None:
        """Check before the charge: a later error would reveal that this candidate was tried."""
        self._fit(1.0, None).check_parameters(self.n, n_features)

    def check_rows(self, X: Any, y: Any, units: Units | None = None, weights: Any = None) -> None:
        """Reject rows, labels and weights before the charge that the fit would reject."""
        self._fit(1.0, None, weights, units).prepare(X, y)

    def run(self, scale: float, seed: int | None, rows: PartRows) -> PrivatePipeline:
        """A copy of the pipeline, fitted with its noise times `scale`; its parameters are the candidate's own."""
        whole, fit = self.pipeline._copied(), self._fit(scale, seed, rows.given_weights, rows.units)
        fit.prepare(rows.X, rows.y, rows.like)
        _, interrupted = fit.learn()
        if interrupted:  # Ctrl-C ends the whole search, not one trial
            raise KeyboardInterrupt
        take_fit(whole, fit, self.event(scale))
        return whole

    def model(self, scale: float, seed: int | None, rows: PartRows, accountant: Any) -> Any:
        """The fitted pipeline of `run`, or the private estimator that is its only step, with this accountant."""
        made = self.run(scale, seed, rows)
        for _, step in private_steps(made.steps):
            step.estimator.set_params(accountant=accountant)
        return seen_by_the_user(made)

    def _fit(self, scale: float, seed: int | None, weights: Any = None, units: Units | None = None) -> JointFit:
        """Fit with its own public number of rows."""
        pipeline = with_public_rows(self.pipeline, self.n)
        given = {} if weights is None else {name: {"sample_weight": weights} for name in weighted_steps(pipeline)}
        return JointFit(pipeline.steps, self.allocation.scaled(scale), pipeline.delta, given, seed=seed, units=units)


def with_public_rows(pipeline: PrivatePipeline, n: int) -> PrivatePipeline:
    """A copy for a part of the rows, or groups, with the public number of that part if the number is public."""
    copied = pipeline._copied()
    for _, step in private_steps(copied.steps):
        step.estimator.set_params(adjacency=with_n_public(step.adjacency, n))
    return copied


def fit_plans(
    grid: list[dict[str, Any]], candidates: list[PrivatePipeline], n: int, n_features: int, target: BudgetTarget,
    delta: float,
) -> list[FitPlan]:  # fmt: skip
    """Plans of fits to n rows, or groups, that meet the target each; equal candidates share their noise."""
    known: dict[Any, tuple[float, ...]] = {}
    made = []
    for parameters, pipeline in zip(grid, candidates, strict=True):
        steps = private_steps(with_public_rows(pipeline, n).steps)
        plans = [step.plan(n, n_features, delta) for _, step in steps]
        key = tuple(plan.event_at(1.0) for plan in plans)
        if key not in known and len(plans) > 1:
            known[key] = noises_of(pipeline, plans, target)
        elif key not in known:  # the noise of a single step is solved more accurately
            adjacency = private_steps(pipeline.steps)[0][1].adjacency
            known[key] = (calibrate_to(plans[0].event_at, target, adjacency=adjacency),)
        plan = FitPlan(parameters, pipeline, n, Allocation(plans, known[key]))
        plan.check_parameters(n_features)
        made.append(plan)
    return made
