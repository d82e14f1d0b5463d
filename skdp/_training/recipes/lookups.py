"""Private linear models over one-hot rows of plain columns and trees: rules, parameters and their noise."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._checks.parameters import count_threads
from skdp._kernels.losses import LOSSES
from skdp._training import defaults as linear_rule
from skdp._training import defaults as rules
from skdp._training.models.bound_rows import Model
from skdp._training.models.one_hot import OneHotForm, OneHotGeometry, OneHotModel, rows_of_sparse
from skdp._training.plan import DPSGDPlan
from skdp._training.recipes.linear_recipe import LinearRuns
from skdp._training.run import Plan, Run, Targets
from skdp._typing import Vector
from skdp.base import Budget, FitTerms, StepPlan
from skdp.mechanisms.sampling import Sampling
from skdp.mechanisms.streams import SecretStream


class OneHotRuns(LinearRuns):
    """Base class of linear models whose runs are over one-hot rows of a public form, all of them or some.

    Subclasses have the parameters of linear models. Wherever a method below is given a run, its shape is a
    `OneHotGeometry`.
    """

    fit_intercept: Any

    coef_: NDArray[np.float64]
    intercept_: NDArray[np.float64]
    coef_noise_: NDArray[np.float64]
    _fitted_start_noise: Any  # of coefficients that the last run started from

    def _weigh(self, form: OneHotForm, signal: float) -> OneHotForm:
        """Return the form with the weights that blocks are to have at this signal: by default those that it has."""
        return form

    def _scale(self, geometry: OneHotGeometry) -> NDArray[np.float64]:
        """Return what a parameter of each column is multiplied by to be its coefficient.

        By default a score is the sum of the coefficients of a row's levels.
        """
        return geometry.entries_of_columns

    # --- the plan of a run ---

    def _sampling_by_lookups(self, n: int, n_lookups: int) -> tuple[Sampling, int]:
        """Return the sampling of rows and the number of steps, where a row takes so many lookups a step."""
        return self._rows_by_work(n, n_lookups, rules.TREES_STEPS, rules.AFFORDABLE_LOOKUPS)

    def _plan_one_hot(self, budget: Budget, n: int, n_features: int, form: OneHotForm, outputs: Any) -> Run:
        """Decide everything that precedes reading the data; `n` is the public number of rows."""
        sampling, n_steps = self._sampling_and_steps(n, n_features, outputs.n_outputs)
        sigma = self._calibrate_noise(budget, sampling, n_steps)
        lot_size = sampling.rate * n
        signal = linear_rule.signal_of(sigma, lot_size, n_steps, outputs.n_outputs * (form.n_free + 1))
        by_rule = rules.RULES[self._loss_of(outputs)[0]]
        clip = self._check_clip() or by_rule.max_grad_norm(signal)
        geometry = OneHotGeometry(self._weigh(form, signal), rules.ENTRY_OF_INTERCEPT if self.fit_intercept else 0.0)
        plan = DPSGDPlan(sampling, clip, sigma, n_steps, lot_size, self._stages(sampling, n_steps))
        rate = self._check_learning_rate() or by_rule.learning_rate(plan, signal)
        penalty = np.zeros((outputs.n_outputs, geometry.width))
        penalty[:, : form.blocks.n_columns] = self._scale(geometry) ** 2
        return self._linear_run(plan, geometry, 1.0, rate, penalty.ravel())

    def _n_free(self, run: Run, n_features: int, outputs: Any) -> int:
        """See `LinearRuns`."""
        return int(outputs.n_outputs) * (run.shape.form.n_free + 1)

    # --- parameters of rows of norm 1, and of levels and leaves ---

    def _start(self, run: Run, outputs: Any, dtype: Any, stream: SecretStream, *, warm: bool) -> Vector:
        """See `GradientEstimator`."""
        geometry: OneHotGeometry = run.shape
        theta = np.zeros((outputs.n_outputs, geometry.width))
        if warm:
            theta[:, : geometry.blocks.n_columns] = self.coef_ / self._scale(geometry)
            if geometry.fit_intercept:
                theta[:, -1] = self.intercept_ / geometry.icpt
        return theta.ravel()

    def _model_of(self, run: Run, outputs: Any, dtype: Any) -> Callable[[Any, Any, Any], Model]:
        """See `GradientEstimator`. Rows are `OneHotRows`."""
        name, limit = self._loss_of(outputs)
        return partial(
            OneHotModel, n_outputs=outputs.n_outputs, geometry=run.shape,
            loss=LOSSES[name], limit=limit, n_threads=count_threads(self.n_jobs),
        )  # fmt: skip

    def _set_parameters(self, theta: Vector, plan: Plan, n_done: int) -> None:
        """See `GradientEstimator`."""
        run, geometry = plan.run, plan.run.shape
        self.learning_rate_ = run.learning_rate
        start = np.zeros((1, geometry.blocks.n_columns))
        if plan.warm:
            start = self._fitted_start_noise if self._resumes(plan) else self.coef_noise_
        table = theta.reshape(plan.outputs.n_outputs, -1)
        self.coef_ = geometry.projected(table[:, : geometry.blocks.n_columns]) * self._scale(geometry)
        self.intercept_ = table[:, -1] * geometry.icpt if geometry.fit_intercept else np.zeros(len(table))
        self.coef_noise_ = np.tile(self._noise_of_columns(run, start, n_done), (len(table), 1))
        self._fitted_start_noise = start

    def _noise_of_columns(self, run: Run, start: NDArray[np.float64], n_done: int) -> NDArray[np.float64]:
        """Standard deviations of coefficients by noise alone; `start` has those that the run starts from."""
        scales = self._scale(run.shape)
        noise, deviations = np.empty(len(scales)), scales * run.shape.deviations
        for scale in np.unique(scales):
            found, each = self._carried(run, n_done, scale**2), scales == scale
            noise[each] = np.hypot(found.start * start[:, each], found.noise * deviations[each]).max(axis=0)
        return noise


class PerhapsOneHotRuns(OneHotRuns):
    """Base class of linear models of which a run is over one-hot rows where these carry their form.

    Subclasses call the methods of this class where `_form` gives a form, or where the shape of a run is a
    `OneHotGeometry`. For all other rows they have methods of their own.
    """

    _fitted_row_form: OneHotForm | None = None
    _fitted_form_of_coef: OneHotForm | None = None  # of the rows of all runs

    def _note_row_form(self, form: Any) -> None:
        """See `PrivateEstimator`."""
        self.__dict__.pop("_fitted_row_form", None)
        if type(form) is OneHotForm and self.data_norm is None:
            self._fitted_row_form = form

    def _form(self, n_features: int) -> OneHotForm | None:
        """Return the form of rows with so many columns, None for all rows without one."""
        form = self._fitted_row_form
        return form if form is not None and form.blocks.n_columns == n_features else None

    def _plan_step(self, n_samples: int, n_features: int) -> StepPlan:
        """See `PrivateEstimator`."""
        form = self._fitted_row_form
        plan = super()._plan_step(n_samples, n_features if form is None else form.blocks.n_columns)
        return plan._replace(row_form=form)

    def _plan_next_run(self, terms: FitTerms, shape: tuple[int, int], outputs: Any, *, warm: bool) -> Plan:
        """See `GradientEstimator`. What began without a form goes on without one."""
        if warm and self._fitted_form_of_coef is None:
            self._note_row_form(None)
        return super()._plan_next_run(terms, shape, outputs, warm=warm)

    def _check_present(self, run: Run, outputs: Any) -> None:
        """See `GradientEstimator`."""
        if self._fitted_form_of_coef not in (None, self._fitted_row_form):
            raise ValueError(
                "the rows are not of the public form that those of earlier runs had, whose steps were their own: give "
                "rows just as PublicTreesEmbedding.transform returns them, by the same parameters and data_norm=None, "
                "or start again with fit and warm_start=False."
            )

    def _describe_rows(self) -> dict[str, Any]:
        """See `GradientEstimator`."""
        form = self._fitted_row_form
        described = {} if form is None else {"row_form": [list(form.blocks.widths), list(form.weights), form.n_plain]}
        return super()._describe_rows() | described

    def _scale(self, geometry: OneHotGeometry) -> NDArray[np.float64]:
        """See `OneHotRuns`: entries of rows are weights of blocks, so that coefficients are free of them."""
        return np.full(geometry.blocks.n_columns, geometry.unit)

    def _bind(self, X: Any, targets: Targets, weights: Any, run: Run) -> Any:
        """See `GradientEstimator`. A row of a CSR matrix that does not fit the form, if there is one, is a null row."""
        if not isinstance(run.shape, OneHotGeometry):
            return super()._bind(X, targets, weights, run)
        rows, fits = rows_of_sparse(X, run.shape.form)
        return super()._bind(rows, targets, weights * fits, run)

    def _set_parameters(self, theta: Vector, plan: Plan, n_done: int) -> None:
        """See `GradientEstimator`."""
        self._fitted_form_of_coef = plan.run.shape.form
        super()._set_parameters(theta, plan, n_done)


__all__ = ["OneHotRuns", "PerhapsOneHotRuns"]
