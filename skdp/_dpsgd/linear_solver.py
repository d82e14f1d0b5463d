"""Solvers of linear models trained with DP-SGD."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from skdp._checks.groups import ROW
from skdp._checks.parameters import check_real, count_threads, radius_of
from skdp._checks.weights import weight_of_each
from skdp._dpsgd import defaults
from skdp._dpsgd.loop import Optimizer, last_iterate, momentum_sgd, tail_average
from skdp._dpsgd.models.linear import LinearGeometry, LinearModel, Model
from skdp._dpsgd.models.linear_layouts import MOST_PARAMETERS, ColumnModel, WideLinearModel, is_wide
from skdp._dpsgd.models.one_hot import OneHotForm, OneHotGeometry, OneHotModel, rows_of_sparse
from skdp._dpsgd.plan import DPSGDPlan, PlannedReleases
from skdp._dpsgd.solver import DescentSolver, Run, Targets
from skdp._kernels.losses import LOSSES
from skdp.mechanisms.sampling import Sampling


class LinearSteps(DescentSolver):
    """What solvers of linear models share, whatever their rows.

    The model has the parameters ``learning_rate, momentum, average, alpha, n_jobs``.
    """

    _n_threads: int  # once a run is planned

    def _read_optimizer(
        self, plan: DPSGDPlan, rate_by_rule: float, penalty: np.ndarray, n_columns: float
    ) -> tuple[float, Optimizer, float]:
        """Return the step size, the optimizer, and the factor of the coefficients that is kept after the last step.

        `penalty` is the second derivative of the penalty of strength 1. `n_columns` is the number of columns of a table
        that the rows came from, each with one entry in a row; 0 where none is known.
        """
        given = self.model.learning_rate
        if isinstance(given, str) and given == "auto":
            given = None
        else:
            given = check_real("learning_rate", given, above=0, constraint="a number above 0, or 'auto'")
        learning_rate, kept = given or rate_by_rule, 1.0
        if given is None and n_columns and self.target.parameter == "classes":
            kept = defaults.kept_of_coef(plan.noise_multiplier, plan.expected_lot_size, plan.n_steps, n_columns)
        momentum = check_real("momentum", self.model.momentum, at_least=0, below=1, constraint="a number in [0, 1)")
        alpha = check_real(
            "alpha", self.model.alpha, at_least=0, constraint="a number of at least 0 (0 disables the penalty)"
        )
        optimizer = momentum_sgd(lambda step: learning_rate, momentum, alpha * penalty if alpha else 0.0)
        self._n_threads = count_threads(self.model.n_jobs)
        return learning_rate, optimizer, kept

    def averaging(self, n_steps: int) -> Any:
        return tail_average(n_steps) if self.model.average else last_iterate()

    def _rows_by_work(self, n: int, work: int, n_steps: int, affordable: float) -> tuple[Sampling, int]:
        """Return the sampling of rows, where a row takes so much work a step, and the steps: `n_steps` by default."""
        epochs = None if self.model.max_iter is None else self._check_max_iter()
        sampling = self.model._chosen_sampling(n) or defaults.default_sampling(n, work, epochs or n_steps, affordable)
        return sampling, n_steps if epochs is None else math.ceil(epochs / sampling.rate)

    def _resumes(self, run: Run) -> bool:
        """Tell whether the run starts from where the current parameters' run first did, rather than from them."""
        return run.earlier is not None and run.earlier.counts == getattr(self.model, "_fitted_before", None)

    def moved(self, offset: np.ndarray) -> dict[str, Any]:
        return {"intercept_": self.model.intercept_ + offset}

    def _line(self, run: Run, coef: np.ndarray, intercept: np.ndarray, noise: np.ndarray, start: Any) -> dict[str, Any]:
        """Return the attributes of a line; coefficients are multiplied by the factor that is kept of them.

        `start` is the noise of the coefficients from which the run started.
        """
        kept = run.kept_of_coef if self.anew else 1.0  # a first run may resume from a file
        return {
            "coef_": kept * coef, "intercept_": intercept, "coef_noise_": kept * noise,
            "learning_rate_": run.learning_rate, "_fitted_start_noise": start,
        }  # fmt: skip

    def _carried(self, run: Run, n_done: int, curvature: float) -> tuple[float, float]:
        """Return what a parameter keeps of its start, and the standard deviation that noise alone gives it.

        `curvature` is the second derivative of the penalty of strength 1.
        """
        middle = run.plan.n_steps // 2
        first = middle if self.model.average and n_done > middle else n_done - 1
        return run.plan.carried(run.learning_rate, self.model.momentum, self.model.alpha * curvature, n_done, first)


class LinearSolver(LinearSteps):
    """Rows of numbers: an intercept and one coefficient a column for each output."""

    def sampling_and_steps(self, n: int, n_features: int, n_outputs: int) -> tuple[Sampling, int]:
        n_parameters = n_outputs * (n_features + int(bool(self.model.fit_intercept)))
        return self._rows_by_work(n, n_parameters, defaults.N_STEPS, defaults.AFFORDABLE)

    def plan_run(self, releases: PlannedReleases, noise: float, n: int, n_features: int, outputs: Any) -> Run:
        geometry = LinearGeometry(radius_of(self.model, n_features), bool(self.model.fit_intercept))
        width, row_norm = n_features + geometry.fit_intercept, self.model._fitted_row_norm
        lot_size, n_steps = releases.sampling.rate * n, releases.n_steps
        if outputs.n_outputs == 1:
            by_rule = defaults.TWO_CLASSES_CLIP
        elif row_norm is not None:
            by_rule = defaults.TABLE_CLIP
        else:
            by_rule = defaults.default_max_grad_norm(noise, lot_size, n_steps, outputs.n_outputs * width)
        clip = self._check_clip() or by_rule
        plan = DPSGDPlan(releases.sampling, clip, noise, n_steps, lot_size, releases.stages)
        rate = defaults.default_learning_rate(noise, clip, lot_size, n_steps)
        penalty = np.zeros((outputs.n_outputs, width))
        penalty[:, :n_features] = geometry.unit**2  # on coefficients of unscaled rows; `unit` scales theta
        learning = self._read_optimizer(plan, rate, penalty.ravel(), (row_norm or 0.0) ** 2)
        return Run(releases, plan, outputs, n, geometry, geometry.radius, *learning)

    def n_free(self, run: Run, n_features: int, outputs: Any) -> int:
        return int(outputs.n_outputs * (n_features + run.shape.fit_intercept))

    def start(self, run: Run, dtype: Any) -> np.ndarray:
        geometry: LinearGeometry = run.shape
        if run.earlier is None:
            return np.zeros(run.outputs.n_outputs * (self.model.n_features_in_ + geometry.fit_intercept))
        columns = [self.model.coef_, self.model.intercept_[:, None]] if geometry.fit_intercept else [self.model.coef_]
        return np.hstack(columns).ravel() / geometry.unit

    def shift(self, theta: np.ndarray, run: Run, origin: np.ndarray) -> None:
        theta.reshape(len(origin), -1)[:, -1] += origin / run.shape.unit

    def rounds_by_place(self, run: Run, dtype: Any) -> bool:
        """See `Solver`: products of wide models are BLAS's."""
        narrow = dtype == np.float64 or not is_wide(self.model.n_features_in_, run.outputs.n_outputs)
        return not (narrow or self.model._shifts_rows())

    def factory(self, run: Run, dtype: Any) -> Callable[[Any, Any, Any], Model]:
        n_outputs, n_threads = run.outputs.n_outputs, self._n_threads
        if is_wide(self.model.n_features_in_, n_outputs) and self.model._unit() == ROW:
            # If one row shifts the places of all others, their rounding requires float64.
            dtype = np.float64 if self.model._shifts_rows() else dtype
            return partial(WideLinearModel, n_outputs=n_outputs, geometry=run.shape, dtype=dtype, n_threads=n_threads)
        return partial(
            LinearModel, n_outputs=n_outputs, geometry=run.shape, by_lot=run.plan.sampling.rate < 1.0,
            n_threads=n_threads,
        )  # fmt: skip

    def block_recipe(self, run: Run, source: Any) -> Any:
        recipe = super().block_recipe(run, source)
        by_lot, n_parameters = run.plan.sampling.rate < 1.0, source.n_features * run.outputs.n_outputs
        if by_lot or source.binds_once or source.n_units is not None or n_parameters > MOST_PARAMETERS:
            return recipe
        # All rows are read in every step, and by columns there is nothing to keep of them.
        make = partial(ColumnModel, n_outputs=run.outputs.n_outputs, geometry=run.shape, names=source.names)
        return replace(recipe, make=make, order="F", finite=False)

    def learned(self, theta: np.ndarray, run: Run, n_done: int) -> dict[str, Any]:
        n_outputs, d = run.outputs.n_outputs, self.model.n_features_in_
        start = 0.0
        if run.earlier is not None:
            start = float(self.model._fitted_start_noise if self._resumes(run) else self.model.coef_noise_[0, 0])
        table = theta.reshape(n_outputs, -1) * run.shape.unit
        intercept = table[:, d].copy() if run.shape.fit_intercept else np.zeros(n_outputs)
        kept, deviation = self._carried(run, n_done, run.shape.unit**2)
        noise = np.full((n_outputs, d), math.hypot(kept * start, deviation * run.shape.unit))
        return self._line(run, table[:, :d], intercept, noise, start)

    def check_present(self, run: Run) -> None:
        reject_another_form(self.model, None)


def reject_another_form(model: Any, form: Any) -> None:
    """Reject a warm start whose rows do not have the public form of those of earlier runs, or that follows no run."""
    if getattr(model, "_fitted_inference", None) is not None:
        raise ValueError("A fit with inference=True cannot be continued. Start a new fit with warm_start=False.")
    if model._fitted_form_of_coef not in (None, form):
        raise ValueError(
            "The rows do not have the public form of earlier runs. Pass the output of PublicTreesEmbedding.transform "
            "with the same parameters and data_norm=None, or start a new fit with warm_start=False."
        )


class LookupSolver(LinearSteps):
    """One-hot rows of a public form: an intercept and one coefficient a level or leaf for each output.

    The shape of its runs is a `OneHotGeometry`.
    """

    def _weigh(self, form: OneHotForm, signal: float) -> OneHotForm:
        """Return the form with the weights that blocks are to have at this signal: by default those that it has."""
        return form

    def _scale(self, geometry: OneHotGeometry) -> np.ndarray:
        """Return the factors that turn parameters of columns into coefficients.

        By default a score is the sum of the coefficients of a row's levels.
        """
        return geometry.entries_of_columns

    def _sampling_by_lookups(self, n: int, n_lookups: int) -> tuple[Sampling, int]:
        """Return the sampling of rows and the number of steps, where a row takes `n_lookups` lookups a step."""
        return self._rows_by_work(n, n_lookups, defaults.TREES_STEPS, defaults.AFFORDABLE_LOOKUPS)

    def _plan_one_hot(self, releases: PlannedReleases, noise: float, n: int, form: OneHotForm, outputs: Any) -> Run:
        """Decide everything that precedes reading the data; `n` is the public number of rows."""
        lot_size, n_steps = releases.sampling.rate * n, releases.n_steps
        signal = defaults.signal_of(noise, lot_size, n_steps, outputs.n_outputs * (form.n_free + 1))
        by_rule = defaults.RULES[self.target.loss_of(outputs)[0]]
        clip = self._check_clip() or by_rule.max_grad_norm(signal)
        plan = DPSGDPlan(releases.sampling, clip, noise, n_steps, lot_size, releases.stages)
        geometry = OneHotGeometry(
            self._weigh(form, signal), defaults.ENTRY_OF_INTERCEPT if self.model.fit_intercept else 0.0
        )
        rate = by_rule.learning_rate(plan, signal)
        penalty = np.zeros((outputs.n_outputs, geometry.width))
        penalty[:, : form.blocks.n_columns] = self._scale(geometry) ** 2
        learning = self._read_optimizer(plan, rate, penalty.ravel(), float(form.n_plain))
        return Run(releases, plan, outputs, n, geometry, 1.0, *learning)

    def n_free(self, run: Run, n_features: int, outputs: Any) -> int:
        return int(outputs.n_outputs) * (run.shape.form.n_free + 1)

    def start(self, run: Run, dtype: Any) -> np.ndarray:
        geometry: OneHotGeometry = run.shape
        theta = np.zeros((run.outputs.n_outputs, geometry.width))
        if run.earlier is not None:
            theta[:, : geometry.blocks.n_columns] = self.model.coef_ / self._scale(geometry)
            if geometry.fit_intercept:
                theta[:, -1] = self.model.intercept_ / geometry.icpt
        return theta.ravel()

    def shift(self, theta: np.ndarray, run: Run, origin: np.ndarray) -> None:
        theta.reshape(len(origin), -1)[:, -1] += origin / run.shape.icpt

    def factory(self, run: Run, dtype: Any) -> Callable[[Any, Any, Any], Model]:
        """See `Solver`. Rows are `OneHotRows`."""
        name, limit = self.target.loss_of(run.outputs)
        return partial(
            OneHotModel, n_outputs=run.outputs.n_outputs, geometry=run.shape,
            loss=LOSSES[name], limit=limit, n_threads=self._n_threads,
        )  # fmt: skip

    def learned(self, theta: np.ndarray, run: Run, n_done: int) -> dict[str, Any]:
        geometry = run.shape
        start = np.zeros((1, geometry.blocks.n_columns))
        if run.earlier is not None:
            start = self.model._fitted_start_noise if self._resumes(run) else self.model.coef_noise_
        table = theta.reshape(run.outputs.n_outputs, -1)
        coef = geometry.projected(table[:, : geometry.blocks.n_columns]) * self._scale(geometry)
        intercept = table[:, -1] * geometry.icpt if geometry.fit_intercept else np.zeros(len(table))
        # Standard deviations by noise alone, of the start and of the steps.
        scales = self._scale(geometry)
        noise, deviations = np.empty(len(scales)), scales * geometry.deviations
        for scale in np.unique(scales):
            (kept, deviation), each = self._carried(run, n_done, scale**2), scales == scale
            noise[each] = np.hypot(kept * start[:, each], deviation * deviations[each]).max(axis=0)
        return self._line(run, coef, intercept, np.tile(noise, (len(table), 1)), start)


class FormSolver(LookupSolver):
    """One-hot rows that carry their public form, such as those of `PublicTreesEmbedding`, as matrices of numbers."""

    def __init__(self, model: Any, target: Any, form: OneHotForm, *, anew: bool = True) -> None:
        super().__init__(model, target, anew=anew)
        self.form = form

    def sampling_and_steps(self, n: int, n_features: int, n_outputs: int) -> tuple[Sampling, int]:
        return self._sampling_by_lookups(n, n_outputs * len(self.form.weights))

    def plan_run(self, releases: PlannedReleases, noise: float, n: int, n_features: int, outputs: Any) -> Run:
        return self._plan_one_hot(releases, noise, n, self.form, outputs)

    def check_present(self, run: Run) -> None:
        reject_another_form(self.model, self.form)

    def describe_rows(self) -> dict[str, Any]:
        form = self.form
        return super().describe_rows() | {"row_form": [list(form.blocks.widths), list(form.weights), form.n_plain]}

    def _scale(self, geometry: OneHotGeometry) -> np.ndarray:
        """See `LookupSolver`: entries of rows are weights of blocks, so that coefficients are free of them."""
        return np.full(geometry.blocks.n_columns, geometry.unit)

    def before_steps(self, run: Run, rows: Any, targets: Targets) -> tuple[Any, Targets]:
        """See `Solver`. A row of a CSR matrix that does not fit the form is a zeroed-out record."""
        _, fits = rows_of_sparse(rows, self.form)
        targets = targets._replace(weights=weight_of_each(targets.weights, rows.shape[0]) * fits)
        return super().before_steps(run, rows, targets)

    def bind(self, X: Any, targets: Targets, weights: Any, run: Run) -> Any:
        rows, _ = rows_of_sparse(X, run.shape.form)
        return super().bind(rows, targets, weights, run)

    def learned(self, theta: np.ndarray, run: Run, n_done: int) -> dict[str, Any]:
        return {**super().learned(theta, run, n_done), "_fitted_form_of_coef": run.shape.form}
