"""The fit of an estimator in one run of DP-SGD, and the base classes of solvers."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np

from skdp._checks.notices import few_a_column_notice, few_rows_notice, note_notice, rare_classes_notice
from skdp._checks.parameters import check_count, check_real
from skdp._checks.sources import BlockRecipe, RowSource, cast_weights, found_to_fit, source_to_fit
from skdp._checks.weights import warn_of_no_bound
from skdp._dpsgd import defaults
from skdp._dpsgd.checkpoint import Checkpoint, RunLock
from skdp._dpsgd.loop import run_dpsgd, start_of_run
from skdp._dpsgd.mean_correction import OFFSET_SHARE, Means, ScoredSum
from skdp._dpsgd.models.duplicate_rows import GroupedModel, find_groups, taken
from skdp._dpsgd.models.linear import UnitLayout
from skdp._dpsgd.plan import OFFSET, START, DPSGDPlan, PlannedReleases, Stage, falling_noise
from skdp._kernels.threads import blas_within_quota
from skdp.accounting import DpEvent, compose
from skdp.base.budget import releases_of
from skdp.base.fit import Fit, begin
from skdp.mechanisms.gaussian import GaussianMechanism, noise_ratio
from skdp.mechanisms.sampling import Sampling


class EarlierRuns(NamedTuple):
    """The runs on which the current parameters of an estimator depend, and what the next one must have in common.

    Attributes
    ----------
    releases : tuple of Release
    counts : (int, int)
        Steps and epochs.
    before_last : (int, int)
        Those of all runs but the last.
    leaks : tuple of Leak or None
        None if they were not kept.
    delta : float
    adjacency, unit, group_name : str
    """

    releases: tuple[Any, ...]
    counts: tuple[int, int]
    before_last: tuple[int, int]
    leaks: tuple[Any, ...] | None
    delta: float
    adjacency: str
    unit: str
    group_name: str

    @classmethod
    def of(cls, estimator: Any) -> Self:
        """Return those of a fitted estimator."""
        learned = estimator.__dict__
        return cls(
            releases_of(estimator), (estimator.n_steps_, estimator.n_iter_), estimator._fitted_before,
            learned.get("_fitted_leaks"), estimator.delta_, estimator.adjacency_, estimator.privacy_unit_,
            learned.get("_fitted_group_name", ""),
        )  # fmt: skip

    @property
    def event(self) -> DpEvent | None:
        """Composed event of the runs, None if there are none."""
        return compose(release.event for release in self.releases) if self.releases else None

    def check(self, model: Any) -> None:
        """Reject a run whose privacy unit, groups or neighboring relation differ from those of earlier runs.

        `model` is the copy that learns: it keeps the name of the column of groups.
        """
        now, name = model.privacy_unit_, model.__dict__.get("_fitted_group_name", "")
        if self.unit != now:
            raise ValueError(
                f"The privacy unit of earlier runs is a {self.unit}, but this run would protect a {now}. Pass "
                "`groups` to all runs or to none, or start a new fit with warm_start=False."
            )
        if self.group_name and name not in ("", self.group_name):
            raise ValueError(
                f"groups={name!r} differs from {self.group_name!r} in earlier runs. Costs of different groups cannot "
                "be composed. Pass the same column, or start a new fit with warm_start=False."
            )
        if self.group_name:
            model._fitted_group_name = self.group_name
        if self.adjacency != model.adjacency:
            raise ValueError(
                f"adjacency={model.adjacency!r} differs from {self.adjacency!r} in earlier runs. Costs under "
                "different neighboring relations cannot be composed. Use the same relation, or start a new fit with "
                "warm_start=False."
            )


class Targets(NamedTuple):
    """Targets and weights of the rows, checked, as the loss reads them.

    `outputs` is public: it has a number of outputs, `n_outputs`, and what predictions need beside the model, such as
    the classes. Weights are an array of shape (n,) of numbers in [0, 1], or 1.0. `units` says which
    rows are of one unit; None where each row is its own.
    """

    outputs: Any
    values: Any
    weights: Any
    units: Any = None


class Run(NamedTuple):
    """Everything that is decided about a run before its rows are read.

    The epsilon is that of all runs, the earlier ones included. `kept_of_coef` is the factor of the coefficients of a
    first run, from public numbers: below 1 where noise rules.
    """

    releases: PlannedReleases
    plan: DPSGDPlan
    outputs: Any
    n_public: int
    shape: Any
    radius: float
    learning_rate: float
    optimizer: Any
    kept_of_coef: float = 1.0
    stream: Any = None
    file: Checkpoint | None = None
    epsilon: float = math.nan
    earlier: EarlierRuns | None = None

    def mechanism(self, name: str, sensitivity: float) -> GaussianMechanism:
        """Return what adds noise to a release beside the steps, by its name."""
        return GaussianMechanism(self.releases.beside[name] * self.plan.noise_multiplier, sensitivity)

    def released(self, name: str, mechanism: GaussianMechanism, add_up: Callable[[], np.ndarray]) -> np.ndarray:
        """Return a release beside the steps: from the file of the run, or the sums of `add_up` with noise.

        A file gets it at once: whatever ends the run from now on, the one that resumes does not release it again.
        """
        found = None if self.file is None else self.file.noisy_sums.get(name)
        if found is None:
            found = mechanism.release(add_up(), self.stream.spawn(name)).tolist()
            if self.file is not None:
                self.file.keep_noisy_sums(name, found)
        return np.array(found)


class Solver(Protocol):
    """What a run asks of a solver: how the parameters of a model are planned and trained.

    Parameters
    ----------
    model : GradientEstimator
        Its constructor parameters are read, and those that a run starts from.
    target : Target
        What the outputs of the model mean.
    anew : bool, default=True
        Whether the run is the first one.
    """

    model: Any
    target: Any
    anew: bool
    last_release: ClassVar[str]  # `corrected` makes it, after the last step

    def __init__(self, model: Any, target: Any, *, anew: bool = True) -> None:
        self.model, self.target, self.anew = model, target, anew

    def planned_releases(self, n: int, n_features: int, n_outputs: int) -> PlannedReleases:
        """Return the releases of a run, from public quantities."""

    def plan_run(
        self, releases: PlannedReleases, noise_multiplier: float, n: int, n_features: int, outputs: Any
    ) -> Run:
        """Decide everything that precedes reading the data; `n` is the public number of rows."""

    def n_free(self, run: Run, n_features: int, outputs: Any) -> int:
        """Return how many parameters the noise is to be compared with."""

    def check_present(self, run: Run) -> None:
        """Reject a warm start if the current parameters do not fit the run."""
        return

    def describe_rows(self) -> dict[str, Any]:
        """Return the public facts about the rows that a checkpoint records."""
        return {"row_norm": self.model._fitted_row_norm} if self.model._fitted_row_norm else {}

    def before_steps(self, run: Run, rows: Any, targets: Targets) -> tuple[Any, Targets]:
        """Make the releases before the first step, and return rows and targets as the steps read them."""
        return rows, targets

    def train(self, run: Run, rows: Any, targets: Targets) -> tuple[np.ndarray, int]:
        """Run the plan; return the parameters and the number of steps done, fewer if it was interrupted."""

    def learned(self, theta: np.ndarray, run: Run, n_done: int) -> dict[str, Any]:
        """Return the attributes that are the result of a run, of which `n_done` steps were made."""

    def corrected(self, run: Run, rows: Any, targets: Targets) -> dict[str, Any]:
        """Make the last release, and return what it changes. The model has what was learned in the steps."""


class DescentSolver(Solver, Protocol):
    """What solvers by noisy gradient descent share, whatever the model."""

    last_release: ClassVar[str] = "the correction of the mean"
    _origin: np.ndarray | None = None  # scores at which a first run starts, if they are not 0

    def sampling_and_steps(self, n: int, n_features: int, n_outputs: int) -> tuple[Sampling, int]:
        """Return the sampling of rows and the number of steps; `n` is the public number of rows."""

    def averaging(self, n_steps: int) -> Any:
        """Return the average of the iterates that is the result of a run."""

    def planned_releases(self, n: int, n_features: int, n_outputs: int) -> PlannedReleases:
        """See `Solver`. Noise is not spread over the steps where rows are sampled or it was given."""
        sampling, n_steps = self.sampling_and_steps(n, n_features, n_outputs)
        averaging, stages = self.averaging(n_steps), tuple[Stage, ...]()
        by_us = self.model.noise_multiplier is None or self.model._noise_is_allotted
        # What is kept of each step is an array of their number.
        if by_us and sampling.rate == 1.0 and n_steps <= 10**6 and averaging.kept is not None:
            stages = falling_noise(averaging.kept())
        return PlannedReleases(sampling, n_steps, stages, self.beside_steps(sampling, n_steps), averaging)

    def beside_steps(self, sampling: Sampling, n_steps: int) -> dict[str, float]:
        """Return the noise multipliers of the releases beside the steps over that of the steps, by name.

        A model without an intercept has nothing to correct, and starts at scores of 0.
        """
        found: dict[str, float] = {}
        if getattr(self.model, "fit_intercept", True) and self.target.fits_means:
            share = OFFSET_SHARE
            if self.anew and self.target.starts_at_counts:
                share /= 2.0
                found[START] = noise_ratio(share, sampling.rate, n_steps)
            found[OFFSET] = noise_ratio(share, sampling.rate, n_steps)
        return found

    def start(self, run: Run, dtype: Any) -> np.ndarray:
        """Return the initial parameters: the current ones of a run that continues others."""

    def shift(self, theta: np.ndarray, run: Run, origin: np.ndarray) -> None:
        """Add the scores at which a first run starts to the intercepts of its initial parameters."""

    def factory(self, run: Run, dtype: Any) -> Callable[..., Any]:
        """Return a factory of models of rows of this dtype: ``make(X, targets, weights)``. It can be pickled.

        It also takes `units`, the layout of rows that are in the order of their units.
        """

    def bind(self, X: Any, targets: Targets, weights: Any, run: Run) -> Any:
        """Return a context manager that gives the model of these rows."""
        if isinstance(X, RowSource):
            return X.bind(self.block_recipe(run, X), run.plan)
        if targets.units is not None:
            layout = UnitLayout(targets.units)
            rows, values = taken(X, layout.order, X.dtype), targets.values[layout.order]
            return self.factory(run, X.dtype)(rows, values, layout.in_order(weights), units=layout)
        by_place = self.rounds_by_place(run, X.dtype)
        lot_size = _lot_of_groups(self.model, X.shape[0], run.plan.sampling, by_place)
        groups = None if lot_size is None else find_groups(X, targets.values, weights, lot_size)
        if groups is None:
            return self.factory(run, X.dtype)(X, targets.values, weights)
        dtype = np.float64 if by_place else X.dtype
        make = self.factory(run, dtype)
        return GroupedModel(make, groups, taken(X, groups.first, dtype), targets.values, weights)

    def rounds_by_place(self, run: Run, dtype: Any) -> bool:
        """Whether the gradient of a row of this dtype is rounded in single precision, and otherwise at another place.

        Such rows are grouped in float64 (`skdp._dpsgd.models.duplicate_rows`).
        """
        return False

    def block_recipe(self, run: Run, source: RowSource) -> BlockRecipe:
        """Return a factory of models of blocks of rows that are not in memory."""
        make = self.factory(run, source.dtype)
        return BlockRecipe(make, self.target.reader(run.outputs), source.dtype, source.names)

    def before_steps(self, run: Run, rows: Any, targets: Targets) -> tuple[Any, Targets]:
        """See `Solver`: classes are counted."""
        # Current parameters, of a run that resumes, started at the counts.
        if START in run.releases.beside and run.earlier is None:
            counts = self.target.counts(run.outputs)
            _, noisy, deviation = self._release_means(START, counts, run, rows, targets)
            names = run.outputs.classes.tolist()
            if notice := rare_classes_notice(names, counts.rarest(noisy), run.epsilon, deviation):
                note_notice(self.model, notice)
            self._origin = counts.offset(noisy, deviation)
        return rows, targets

    def train(self, run: Run, rows: Any, targets: Targets) -> tuple[np.ndarray, int]:
        theta = self.start(run, rows.dtype)
        if self._origin is not None:
            self.shift(theta, run, self._origin)
        progress = self.model._make_progress(run)
        result = theta, 0
        try:
            weights = cast_weights(targets.weights, rows.dtype)
            with blas_within_quota(), self.bind(rows, targets, weights, run) as model:
                result = run_dpsgd(
                    model, run.plan, run.optimizer, theta, run.stream,
                    averaging=run.releases.averaging, on_step=progress, checkpoint=run.file,
                )  # fmt: skip
        except KeyboardInterrupt:  # before the first step, or after the run
            pass
        finally:
            if progress is not None:
                progress.close()
        return result

    def corrected(self, run: Run, rows: Any, targets: Targets) -> dict[str, Any]:
        """See `Solver`: the mean of the predictions is moved to that of the targets (`OFFSET`)."""
        if OFFSET not in run.releases.beside:
            return {}
        means, noisy, deviation = self._release_means(OFFSET, self.target.means(run.outputs), run, rows, targets)
        return self.moved(means.offset(noisy, deviation))

    def _release_means(self, name: str, means: Means, run: Run, rows: Any, targets: Targets) -> tuple[Any, Any, float]:
        """Return the means as they suit their noise, their noisy sums, and the standard deviation of the noise."""
        mechanism = run.mechanism(name, means.sensitivity(self.model.adjacency))
        means = means.at_noise(mechanism.standard_deviation / run.n_public)
        noisy = run.released(name, mechanism, partial(self.sum_terms, means, run, rows, targets))
        return means, noisy, mechanism.standard_deviation

    def sum_terms(self, means: Means, run: Run, rows: Any, targets: Targets) -> np.ndarray:
        """Return the sums over all rows that are released; rows that are not in memory are read once more."""
        score = self.model._scorer() if means.of_scores else None
        new_sum = partial(ScoredSum, means, self.model.adjacency, score)
        if isinstance(rows, RowSource):
            return rows.add_up(new_sum, self.target.reader(run.outputs)).vector
        (total := new_sum()).add(rows, targets.values, targets.weights, units=targets.units)
        return total.vector

    def moved(self, offset: np.ndarray) -> dict[str, Any]:
        """Return what changes as these offsets are added to the scores of the outputs."""

    def _check_clip(self) -> float | None:
        """Return `max_grad_norm`, or None for the rule."""
        if isinstance(self.model.max_grad_norm, str) and self.model.max_grad_norm == "auto":
            return None
        constraint = "a number from 1e-30 to 1e30, or 'auto'"
        return check_real(
            "max_grad_norm", self.model.max_grad_norm, at_least=1e-30, at_most=1e30, constraint=constraint
        )

    def _check_max_iter(self) -> int:
        return check_count(
            "max_iter", self.model.max_iter, constraint="an integer number of epochs, or None for the default"
        )


def weak_signal(solver: Solver, run: Run, n_features: int, outputs: Any) -> str:
    """Return a notice where noise decides much of the model, from public numbers alone, else ""."""
    plan, n_parameters = run.plan, solver.n_free(run, n_features, outputs)
    signal = defaults.signal_of(plan.noise_multiplier, plan.expected_lot_size, plan.n_steps, n_parameters)
    given = solver.model, plan.noise_multiplier, run.n_public
    few = few_rows_notice(*given, n_parameters, signal, solver.target.least_signal)
    few_a_column = few_a_column_notice(*given, run.kept_of_coef) if run.kept_of_coef < 1.0 else ""
    return " ".join(filter(None, (few, few_a_column)))


_LEAST_LOT = 4096  # lots of fewer rows have no time to lose


def _lot_of_groups(model: Any, n_rows: int, sampling: Sampling, by_place: bool) -> float | None:
    """Return the lot size by which `find_groups` limits the groups of equal rows, None where rows are not grouped."""
    if model.merge_equal_rows != "auto":
        return math.inf if model.merge_equal_rows else None
    if by_place:
        return None  # groups are computed in float64: the choice would change the rounding of every row
    if sampling.rate < 1.0 and model.checkpoint is not None and model._is_seeded():
        return None  # positions in the file would tell of the choice
    lot_size = sampling.rate * n_rows
    return lot_size if lot_size >= _LEAST_LOT else None


# --- a fit by one run ---


def fit_run(estimator: Any, X: Any, y: Any, sample_weight: Any, groups: Any, *, given: Any = None, warm: bool) -> Any:
    """Fit a `GradientEstimator` by one run, and return it.

    Parameters
    ----------
    estimator : GradientEstimator
    X, y, sample_weight, groups : object
        Rows, targets, weights and group identifiers; private.
    given : object
        What the call itself states about the outputs; public.
    warm : bool
        Whether the run starts from the current parameters.
    """
    source = _find_source(estimator, X, y, sample_weight, groups, are_named=warm or given is not None)
    fit = begin(estimator, X if source is None else source, groups, EarlierRuns.of if warm else None)
    if fit.model.checkpoint is None or not fit.is_whole:
        _fit(fit, y, sample_weight, given)
        return estimator
    with RunLock(fit.model.checkpoint) as lock:
        lock.take()
        file, earlier = Checkpoint(fit.model.checkpoint, seeded=fit.model._is_seeded()), fit.earlier
        if earlier is not None and file.continues(earlier.releases):
            # The current state is of this run, which was interrupted and goes on.
            earlier = earlier._replace(releases=earlier.releases[:-1], counts=earlier.before_last)
        fit.resume(file, earlier)
        _fit(fit, y, sample_weight, given)
    return estimator


def _fit(fit: Fit, y: Any, sample_weight: Any, given: Any) -> None:
    model, earlier, targets = fit.model, fit.earlier, None
    model._check_run_parameters(fit)
    # The outputs, which are read from the targets where neither the call nor the parameters state them.
    target = model._target()
    d = model.n_features_in_ if earlier is not None else fit.n_features or model._assumed_width()
    outputs = target.resolve(y, given, None if earlier is None else model)
    if outputs is None:
        targets = fit.read_before_plan(_read_outputs, model, target, y, sample_weight, fit.n_rows)
        outputs = None if targets is None else targets.outputs
    # The plan, from public numbers; the accountant is asked.
    solver = model._solver(target, d, anew=earlier is None or not earlier.releases)
    to_plan = outputs or target.assumed()
    releases = solver.planned_releases(fit.n, d, to_plan.n_outputs)
    fit.plan(releases.event_at)
    # A rejection of outputs that were read from the targets is recorded too.
    planned = solver.plan_run if targets is None else partial(fit.recorded, solver.plan_run)
    run = planned(releases, fit.noise_multiplier, fit.n, d, to_plan)
    if earlier is not None:
        solver.check_present(run)
    elif fit.n_features is not None:
        # Outputs that are read from the targets do not affect the warning.
        fit.warn(weak_signal(solver, run, d, target.named or target.assumed()))
    stream = fit.run_stream(0 if earlier is None else earlier.counts[0])
    run = run._replace(stream=stream, file=fit.file, epsilon=fit.cost.epsilon, earlier=earlier)

    # Rows and targets in memory are checked before the charge; those of a source are read after it.
    rows = fit.rows
    if isinstance(rows, RowSource):
        targets = Targets(outputs, None, 1.0)
    else:
        rows = fit.read(model._read_rows, rows, reset=earlier is None)
        targets = targets or fit.read(target.encode, y, sample_weight, fit.n_rows, outputs)
    if fit.file is not None:
        _begin_file(fit, solver, run, rows)
    fit.charge()

    # The steps, and the release after them.
    targets = targets._replace(units=fit.units)
    learned, interrupted = fit.learn(_run_steps, model, solver, run, rows, targets, part="steps")
    fit.publish(interrupted=interrupted, **learned)
    if fit.file is not None and not interrupted:
        fit.file.finish()


def _read_outputs(model: Any, target: Any, y: Any, sample_weight: Any, n_rows: int) -> Targets:
    """Return the targets, and the outputs as they are read from them, which is reported."""
    target.report_read(model)
    return target.encode(y, sample_weight, n_rows, None)


def _find_source(
    estimator: Any, X: Any, y: Any, sample_weight: Any, groups: Any, *, are_named: bool
) -> RowSource | None:
    """Return the source of rows that are not in memory, which are read after the charge; None for all others."""
    if not estimator._streams or found_to_fit(X, y) is None:
        return None
    target = estimator._target()
    source = source_to_fit(
        X, y, sample_weight, groups, target.parameter, are_named=are_named or target.named is not None,
        reader=estimator,
    )  # fmt: skip
    if source is None:
        return None
    if getattr(estimator, "inference", False):
        raise ValueError(
            "inference=True is not supported for data that are not in memory, because they are read once. Set "
            "inference=False, or pass an array."
        )
    if estimator._check_merge_equal_rows() is True:
        raise ValueError("merge_equal_rows=True is not supported for data that are not in memory. Set 'auto' or False.")
    warn_of_no_bound(estimator.weight_bound, sample_weight)
    return source


# --- a run with a file ---


def _begin_file(fit: Fit, solver: DescentSolver, run: Run, rows: Any) -> None:
    """Write the file of the run before the charge, with the state that training starts from."""
    model = fit.model
    described = {
        **{name: repr(value) for name, value in model._public_parameters().items()},
        "estimator": type(model).__name__, **solver.target.describe(run.outputs),
        "unit": [model._unit(), model.__dict__.get("_fitted_group_name", "")],
        "random_state": int(model.random_state) if model._is_seeded() else None,
        "privacy_event": repr(run.plan.event), **solver.describe_rows(),
        "earlier events": [] if fit.earlier is None else [repr(each.event) for each in fit.earlier.releases],
        "table": repr((fit.n, *rows.shape[1:], str(rows.dtype))),
    }  # fmt: skip
    fit.file.check_run(described, run.plan.n_steps)
    beside = run.releases.beside
    fit.file.check_noisy_sums([name for name in beside if name != OFFSET], beside)
    theta = solver.start(run, rows.dtype)
    state, _ = start_of_run(run.optimizer, theta, run.stream, run.releases.averaging, fit.file)
    fit.file.begin(state)


# --- training ---


def _run_steps(model: Any, solver: Solver, run: Run, rows: Any, targets: Targets) -> tuple[dict[str, Any], str]:
    """Return what a run learns, and where an interrupt cut it short, or ""."""
    n_steps = run.plan.n_steps
    rows, targets = solver.before_steps(run, rows, targets)
    theta, n_done = solver.train(run, rows, targets)
    learned, where = dict[str, Any](), f"after {n_done} of {n_steps} steps"
    try:
        learned = _learned(solver, run, theta, n_done)
        if n_done < n_steps:
            return learned, where
        vars(model).update(learned)  # by whose scores the last release is made
        return {**learned, **solver.corrected(run, rows, targets)}, ""
    except KeyboardInterrupt:  # what is left is post-processing of steps that were charged
        # Once the model has what was learned, it is no longer what the run started from.
        return learned or _learned(solver, run, theta, n_done), f"{where}, before {solver.last_release}"


def _learned(solver: Solver, run: Run, theta: np.ndarray, n_done: int) -> dict[str, Any]:
    """Return all that a run learned in its first `n_done` steps."""
    plan, (steps, epochs) = run.plan, (0, 0) if run.earlier is None else run.earlier.counts
    return {
        **solver.learned(theta, run, n_done),
        **solver.target.learned(run.outputs),
        "sampling_rate_": plan.sampling.rate,
        "max_grad_norm_": plan.max_grad_norm,
        "data_norm_": run.radius,
        "n_steps_": n_done + steps,
        # The small number undoes rounding: 20 steps at rate 0.05 are one epoch.
        "n_iter_": math.ceil(n_done * plan.sampling.rate - 1e-9) + epochs,
        "weight_bound_": solver.target.weights.bound,
        "_fitted_before": (steps, epochs),
        "_fitted_n_public": run.n_public,
        "_fitted_noise_falls": bool(plan.stages),
    }
