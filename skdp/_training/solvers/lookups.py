"""The solver of linear models over one-hot rows of plain columns and trees: rules, parameters and their noise."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._checks.weights import weight_of_each
from skdp._kernels.losses import LOSSES
from skdp._training import defaults as rules
from skdp._training.models.bound_rows import Model
from skdp._training.models.one_hot import OneHotForm, OneHotGeometry, OneHotModel, rows_of_sparse
from skdp._training.plan import DPSGDPlan
from skdp._training.run import PlannedReleases, Run, Targets
from skdp._training.solvers.linear_solver import LinearSteps, refuse_another_form
from skdp.mechanisms.sampling import Sampling


class LookupSolver(LinearSteps):
    """One-hot rows of a public form: an intercept and one coefficient a level or leaf for each output.

    The shape of its runs is a `OneHotGeometry`.
    """

    def _weigh(self, form: OneHotForm, signal: float) -> OneHotForm:
        """Return the form with the weights that blocks are to have at this signal: by default those that it has."""
        return form

    def _scale(self, geometry: OneHotGeometry) -> NDArray[np.float64]:
        """Return the factors that turn parameters of columns into coefficients.

        By default a score is the sum of the coefficients of a row's levels.
        """
        return geometry.entries_of_columns

    def _sampling_by_lookups(self, n: int, n_lookups: int) -> tuple[Sampling, int]:
        """Return the sampling of rows and the number of steps, where a row takes `n_lookups` lookups a step."""
        return self._rows_by_work(n, n_lookups, rules.TREES_STEPS, rules.AFFORDABLE_LOOKUPS)

    def _plan_one_hot(self, releases: PlannedReleases, noise: float, n: int, form: OneHotForm, outputs: Any) -> Run:
        """Decide everything that precedes reading the data; `n` is the public number of rows."""
        lot_size, n_steps = releases.sampling.rate * n, releases.n_steps
        signal = rules.signal_of(noise, lot_size, n_steps, outputs.n_outputs * (form.n_free + 1))
        by_rule = rules.RULES[self.target.loss_of(outputs)[0]]
        clip = self._check_clip() or by_rule.max_grad_norm(signal)
        plan = DPSGDPlan(releases.sampling, clip, noise, n_steps, lot_size, releases.stages)
        geometry = OneHotGeometry(
            self._weigh(form, signal), rules.ENTRY_OF_INTERCEPT if self.model.fit_intercept else 0.0
        )
        rate = by_rule.learning_rate(plan, signal)
        penalty = np.zeros((outputs.n_outputs, geometry.width))
        penalty[:, : form.blocks.n_columns] = self._scale(geometry) ** 2
        return self._linear_run(releases, plan, outputs, n, geometry, 1.0, rate, penalty.ravel(), float(form.n_plain))

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
        noise = np.tile(self._noise_of_columns(run, start, n_done), (len(table), 1))
        return self._line(run, coef, intercept, noise, start)

    def _noise_of_columns(self, run: Run, start: NDArray[np.float64], n_done: int) -> NDArray[np.float64]:
        """Standard deviations of coefficients by noise alone; `start` has those that the run starts from."""
        scales = self._scale(run.shape)
        noise, deviations = np.empty(len(scales)), scales * run.shape.deviations
        for scale in np.unique(scales):
            found, each = self._carried(run, n_done, scale**2), scales == scale
            noise[each] = np.hypot(found.start * start[:, each], found.noise * deviations[each]).max(axis=0)
        return noise


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
        refuse_another_form(self.model, self.form)

    def describe_rows(self) -> dict[str, Any]:
        form = self.form
        return super().describe_rows() | {"row_form": [list(form.blocks.widths), list(form.weights), form.n_plain]}

    def _scale(self, geometry: OneHotGeometry) -> NDArray[np.float64]:
        """See `LookupSolver`: entries of rows are weights of blocks, so that coefficients are free of them."""
        return np.full(geometry.blocks.n_columns, geometry.unit)

    def before_steps(self, run: Run, rows: Any, targets: Targets) -> tuple[Any, Targets]:
        """See `Solver`. A row of a CSR matrix that does not fit the form is a null row."""
        _, fits = rows_of_sparse(rows, self.form)
        targets = targets._replace(weights=weight_of_each(targets.weights, rows.shape[0]) * fits)
        return super().before_steps(run, rows, targets)

    def bind(self, X: Any, targets: Targets, weights: Any, run: Run) -> Any:
        rows, _ = rows_of_sparse(X, run.shape.form)
        return super().bind(rows, targets, weights, run)

    def learned(self, theta: np.ndarray, run: Run, n_done: int) -> dict[str, Any]:
        return {**super().learned(theta, run, n_done), "_fitted_form_of_coef": run.shape.form}


__all__ = ["FormSolver", "LookupSolver"]
