"""How a model is trained by noisy gradient descent: what a solver states, and what all solvers share."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np

from skdp._checks.notices import LEAST_SIGNAL, few_a_column_notice, few_rows_notice, note_notice, rare_classes_notice
from skdp._checks.parameters import check_count, check_real
from skdp._checks.sources import BlockRecipe, RowSource, cast_weights
from skdp._checks.weights import WeightReader
from skdp._dpsgd import defaults
from skdp._dpsgd.loop import Averaging, run_dpsgd
from skdp._dpsgd.mean_correction import OFFSET_SHARE, Means, ScoredSum
from skdp._dpsgd.models.bound_rows import Model, UnitLayout
from skdp._dpsgd.models.duplicate_rows import GroupedModel, GroupLimit, find_groups, taken
from skdp._dpsgd.plan import Stage, falling_noise
from skdp._dpsgd.run import OFFSET, START, PlannedReleases, Run, Targets
from skdp._kernels.threads import blas_within_quota
from skdp.mechanisms.gaussian import noise_ratio
from skdp.mechanisms.sampling import Sampling


class Target(Protocol):
    """What is learned: how outputs are named, how targets become what a loss reads, and what is published of them.

    Outputs are described by a public value that has `n_outputs`, the number of outputs.

    Parameters
    ----------
    weights : WeightReader
        Of the rows.
    """

    weights: WeightReader

    parameter: ClassVar[str] = ""  # of an estimator, that names the outputs
    least_signal: ClassVar[float] = LEAST_SIGNAL  # below it rows are few
    fits_means: ClassVar[bool] = (
        True  # whether the loss is least where the mean of the predictions is that of the targets
    )
    starts_at_counts: ClassVar[bool] = False  # whether a first run starts at the log-odds of classes, by `counts`

    @property
    def named(self) -> Any:
        """The outputs that the constructor names, or None if they have to be read from the targets."""

    def assumed(self) -> Any:
        """Return the outputs to plan with where none are named and no target was read."""

    def n_of_step(self) -> int:
        """Return the number of outputs for which the sampling of a pipeline's step is chosen."""

    def resolve(self, y: Any, given: Any, fitted: Any) -> Any:
        """Return the public outputs, or None if they have to be read from the targets.

        `given` is what the call itself states about them, and `fitted` the estimator of earlier runs, None in the
        first one. Reads no more than the shape of `y`.
        """

    def report_read(self, model: Any) -> None:
        """Report and note that an estimator reads the outputs from the targets."""

    def loss_of(self, outputs: Any) -> tuple[str, float]:
        """Return the name of the loss of the outputs, and its limit, if it has one (`skdp._kernels.losses`)."""

    def means(self, outputs: Any) -> Means:
        """Return what is bought of the means of targets and predictions, if `fits_means`."""

    def encode(self, y: Any, sample_weight: Any, n_samples: int, outputs: Any) -> Targets:
        """Return the targets as the loss reads them; `outputs` of None are read from them."""

    def reader(self, outputs: Any) -> Callable[[Any, Any, int], tuple[Any, Any]]:
        """Return a reader of the targets and weights of a block of rows. It can be pickled."""

    def describe(self, outputs: Any) -> dict[str, str]:
        """Return the facts about the outputs that a checkpoint records."""

    def learned(self, outputs: Any) -> dict[str, Any]:
        """Return the attributes of a fitted estimator that describe the outputs."""


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
        """Refuse a warm start if the current parameters do not fit the run."""
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

    def _check_radius(self, n_features: int) -> float:
        """Return the norm to which rows are clipped."""
        if self.model.data_norm is None:
            return self.model._fitted_row_norm or math.sqrt(n_features)
        remedy = "choose a public bound from 1e-30 to 1e30, or None"
        return check_real("data_norm", self.model.data_norm, at_least=1e-30, at_most=1e30, remedy=remedy)


class DescentSolver(Solver, Protocol):
    """What solvers by noisy gradient descent share, whatever the model."""

    last_release: ClassVar[str] = "the correction of the mean"
    _origin: np.ndarray | None = None  # scores at which a first run starts, if they are not 0

    def sampling_and_steps(self, n: int, n_features: int, n_outputs: int) -> tuple[Sampling, int]:
        """Return the sampling of rows and the number of steps; `n` is the public number of rows."""

    def averaging(self, n_steps: int) -> Averaging:
        """Return the average of the iterates that is the result of a run."""

    def planned_releases(self, n: int, n_features: int, n_outputs: int) -> PlannedReleases:
        """See `Solver`. Noise is not spread over the steps where rows are sampled or it was given."""
        sampling, n_steps = self.sampling_and_steps(n, n_features, n_outputs)
        averaging, stages = self.averaging(n_steps), tuple[Stage, ...]()
        by_us = self.model.noise_multiplier is None or self.model._noise_is_allotted
        if by_us and sampling.rate == 1.0 and n_steps <= _MOST_FALLING and averaging.kept is not None:
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

    def factory(self, run: Run, dtype: Any) -> Callable[..., Model]:
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
        limit = _limit_of_groups(self.model, X.shape[0], run.plan.sampling, by_place)
        groups = None if limit is None else find_groups(X, targets.values, weights, limit)
        if groups is None:
            return self.factory(run, X.dtype)(X, targets.values, weights)
        dtype = np.float64 if by_place else X.dtype
        make = self.factory(run, dtype)
        return GroupedModel.of_groups(make, groups, taken(X, groups.first, dtype), targets.values, weights)

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
            self._origin = self._count_classes(run, rows, targets)
        return rows, targets

    def _count_classes(self, run: Run, rows: Any, targets: Targets) -> np.ndarray:
        """Release the counts of the classes, and return the scores at which the run starts (`START`)."""
        counts = self.target.counts(run.outputs)
        mechanism = run.mechanism(START, counts.sensitivity(self.model.adjacency))
        noisy = run.released(START, mechanism, partial(self.sum_terms, counts, run, rows, targets))
        names, deviation = run.outputs.classes.tolist(), mechanism.standard_deviation
        if notice := rare_classes_notice(names, counts.rarest(noisy), run.epsilon, deviation):
            note_notice(self.model, notice)
        return counts.offset(noisy, deviation)

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
        means = self.target.means(run.outputs)
        mechanism = run.mechanism(OFFSET, means.sensitivity(self.model.adjacency))
        deviation = mechanism.standard_deviation
        means = means.at_noise(deviation / run.n_public)
        noisy = run.released(OFFSET, mechanism, partial(self.sum_terms, means, run, rows, targets))
        return self.moved(means.offset(noisy, deviation))

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
        remedy = "choose a number from 1e-30 to 1e30, or 'auto'"
        return check_real("max_grad_norm", self.model.max_grad_norm, at_least=1e-30, at_most=1e30, remedy=remedy)

    def _check_max_iter(self) -> int:
        return check_count(
            "max_iter", self.model.max_iter, remedy="choose a whole number of epochs, or None for the rule"
        )


_MOST_FALLING = 10**6  # steps: the shares are an array of that length


def weak_signal(solver: Solver, run: Run, n_features: int, outputs: Any) -> str:
    """Return a notice where noise decides much of the model, from public numbers alone, else ""."""
    plan, n_parameters = run.plan, solver.n_free(run, n_features, outputs)
    signal = defaults.signal_of(plan.noise_multiplier, plan.expected_lot_size, plan.n_steps, n_parameters)
    given = solver.model, plan.noise_multiplier, run.n_public
    few = few_rows_notice(*given, n_parameters, signal, solver.target.least_signal)
    few_a_column = few_a_column_notice(*given, run.kept_of_coef) if run.kept_of_coef < 1.0 else ""
    return " ".join(filter(None, (few, few_a_column)))


def _limit_of_groups(model: Any, n_rows: int, sampling: Sampling, by_place: bool) -> GroupLimit | None:
    """Return how many groups equal rows may have if they are to be grouped, None where they are not."""
    if model.merge_equal_rows != "auto":
        return GroupLimit.none() if model.merge_equal_rows else None
    if by_place:
        return None  # groups are computed in float64: the choice would change the rounding of every row
    if sampling.rate < 1.0 and model.checkpoint is not None and model._is_seeded():
        return None  # positions in the file would tell of the choice
    return GroupLimit.where_it_pays(n_rows, sampling)
