"""Base of estimators trained by noisy gradient descent: runs, charge, training and publication."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from skdp._checks.arithmetic import silent_arithmetic
from skdp._checks.parameters import check_count, check_real, show
from skdp._checks.rows import check_schema, check_table, read_cells
from skdp._checks.sources import (
    BlockRecipe,
    RowSource,
    cast_weights,
    is_elsewhere,
    refuse_rows_elsewhere,
    source_to_fit,
    source_to_predict,
)
from skdp._checks.weights import WeightReader, is_bought, warn_of_no_bound
from skdp._fit.conductor import conduct
from skdp._fit.releases import Release, releases_of
from skdp._guard.inspections import report_inspection
from skdp._threads import blas_within_quota
from skdp._training.averaging import Averaging
from skdp._training.checkpoint import Checkpoint
from skdp._training.loop import run_dpsgd, start_of_run
from skdp._training.models.bound_rows import Model
from skdp._training.models.equal_rows import GroupLimit, find_groups, taken
from skdp._training.models.merged_rows import GroupedModel
from skdp._training.noise_stages import Stage, falling_noise
from skdp._training.plan import event_of_steps
from skdp._training.progress import StepProgress
from skdp._training.run import Plan, Run, Targets
from skdp._training.run_fit import RunFit
from skdp._training.run_lock import RunLock
from skdp._typing import Vector
from skdp.accounting import DpEvent, calibrate_noise_multiplier, compose
from skdp.base import (
    Budget,
    FitTerms,
    PrivateEstimator,
    StepPlan,
    refuse_fit_params,
)
from skdp.mechanisms.sampling import Sampling
from skdp.mechanisms.streams import SecretStream
from skdp.preprocessing.histograms.purchase import event_with
from skdp.preprocessing.histograms.weight_bound import WeightPurchase


class GradientEstimator(PrivateEstimator):
    """Base class of estimators trained by DP-SGD; it knows neither the model nor what its outputs mean.

    Subclasses have the constructor parameters of `PrivateEstimator` and ``checkpoint, data_norm, max_grad_norm,
    lot_size, sampling_rate, max_iter, warm_start, merge_equal_rows, verbose, weight_bound``. They define the model and
    its outputs by the methods below. Outputs are described by a public value that has `n_outputs`, the number of
    outputs.
    """

    _streams = False  # whether a model is a function of rows and targets alone, so that blocks may be bound apart
    _outputs_parameter = ""  # that names the outputs

    merge_equal_rows: Any
    weight_bound: Any
    _starts_anew = True  # while a run is planned: whether it is the first one

    n_steps_: int
    n_iter_: int
    _fitted_before: tuple[int, int]  # steps and epochs of all runs but the last

    # --- methods of subclasses: the model ---

    def _sampling_and_steps(self, n: int, n_features: int, n_outputs: int) -> tuple[Sampling, int]:
        """Return the sampling of rows and the number of steps; `n` is the public number of rows."""
        raise NotImplementedError

    def _plan_run(self, budget: Budget, n: int, n_features: int, outputs: Any) -> Run:
        """Decide everything that precedes reading the data; `n` is the public number of rows."""
        raise NotImplementedError

    def _warn_of_weak_signal(self, run: Run, n: int, n_features: int, outputs: Any) -> None:
        """Warn where noise decides much of the model, from public numbers alone."""

    def _check_present(self, run: Run, outputs: Any) -> None:
        """Refuse a warm start if the current parameters do not fit the run."""

    def _start(self, run: Run, outputs: Any, dtype: Any, stream: SecretStream, *, warm: bool) -> Vector:
        """Return the initial parameters: the current ones if `warm`."""
        raise NotImplementedError

    def _model_of(self, run: Run, outputs: Any, dtype: Any) -> Callable[[Any, Any, Any], Model]:
        """Return what makes a model of rows of this dtype, of targets and of weights. It can be pickled."""
        raise NotImplementedError

    def _bind(self, X: Any, targets: Targets, weights: Any, run: Run) -> Any:
        """Return a context manager that gives the model of these rows."""
        if isinstance(X, RowSource):
            return X.bind(self._recipe(run, targets.outputs, X), run.plan)
        by_place = self._rounds_by_place(X.dtype, targets.outputs)
        limit = self._limit_of_groups(X.shape[0], run, by_place=by_place)
        groups = None if limit is None else find_groups(X, targets.values, weights, limit)
        if groups is None:
            return self._model_of(run, targets.outputs, X.dtype)(X, targets.values, weights)
        dtype = np.float64 if by_place else X.dtype
        make = self._model_of(run, targets.outputs, dtype)
        return GroupedModel.of_groups(make, groups, taken(X, groups.first, dtype), targets.values, weights)

    def _limit_of_groups(self, n_rows: int, run: Run, *, by_place: bool) -> GroupLimit | None:
        """Return how many groups equal rows may have if they are to be grouped, None where they are not."""
        chosen, sampling = self._check_merge_equal_rows(), run.plan.sampling
        if chosen != "auto":
            return GroupLimit.none() if chosen else None
        if by_place:
            return None  # groups are computed in float64: the choice would change the rounding of every row
        if sampling.rate < 1.0 and self.checkpoint is not None and self._is_seeded():
            return None  # positions in the file would tell of the choice
        return GroupLimit.where_it_pays(n_rows, sampling)

    def _rounds_by_place(self, dtype: Any, outputs: Any) -> bool:
        """Whether the gradient of a row of this dtype is rounded in single precision, and otherwise at another place.

        Such rows are grouped in float64 (`skdp._training.models.merged_rows`).
        """
        return False

    def _recipe(self, run: Run, outputs: Any, source: RowSource) -> BlockRecipe:
        """Return what makes models of blocks of rows that are not in memory."""
        make = self._model_of(run, outputs, source.dtype)
        return BlockRecipe(make, self._target_reader(outputs), source.dtype, source.names)

    def _set_parameters(self, theta: Vector, plan: Plan, n_done: int) -> None:
        """Publish the result of a run, of which `n_done` steps were made."""
        raise NotImplementedError

    def _scores(self, X: Any) -> NDArray[np.floating]:
        """Scores of the outputs, of shape (n_samples, n_outputs)."""
        raise NotImplementedError

    def _averaging(self, n_steps: int) -> Averaging:
        """Return the average of the iterates that is the result of a run."""
        raise NotImplementedError

    # --- methods of subclasses: the outputs ---

    def _named_outputs(self) -> Any:
        """Return the outputs that the constructor names, or None if they have to be read from the targets."""
        raise NotImplementedError

    def _assumed_outputs(self) -> Any:
        """Return the outputs to plan with where none are named and no target was read."""
        raise NotImplementedError

    def _n_outputs_of_step(self) -> int:
        """Return the number of outputs for which the sampling of a pipeline's step is chosen."""
        raise NotImplementedError

    def _resolve_outputs(self, y: Any, named: Any, *, warm: bool) -> Any:
        """Return the public outputs, or None if they have to be read from the targets: report that leak.

        `named` is what the call itself says of them. Reads no more than the shape of `y`.
        """
        raise NotImplementedError

    def _check_outputs(self, outputs: Any) -> None:
        """Refuse parameters that do not fit the outputs."""

    def _loss_of(self, outputs: Any) -> tuple[str, float]:
        """Return the name of the loss of the outputs, and its limit, if it has one (`skdp._kernels.losses`)."""
        raise NotImplementedError

    def _encode_targets(self, y: Any, sample_weight: Any, n_samples: int, outputs: Any) -> Targets:
        """Return the targets as the loss reads them; `outputs` of None are read from them."""
        raise NotImplementedError

    def _target_reader(self, outputs: Any) -> Callable[[Any, Any, int], tuple[Any, Any]]:
        """Return what makes target values and weights of those of a block of rows. It can be pickled."""
        raise NotImplementedError

    def _describe_outputs(self, outputs: Any) -> dict[str, str]:
        """Return what a checkpoint says of the outputs."""
        raise NotImplementedError

    def _set_outputs(self, outputs: Any) -> None:
        """Publish the outputs."""
        raise NotImplementedError

    # --- a fit ---

    def _has_run(self) -> bool:
        return hasattr(self, "n_steps_")

    def _fit_run(self, X: Any, y: Any, sample_weight: Any, *, named: Any = None, warm: bool) -> Self:
        """Fit a copy and publish what it learned, under the lock of the checkpoint."""
        fit = RunFit(self, X, y, sample_weight, named=named, warm=warm)
        with RunLock(fit.work.checkpoint) as lock:
            lock.take()
            conduct(fit)
        return self

    def _source_of(self, X: Any, y: Any, sample_weight: Any, *, named: Any, warm: bool) -> RowSource | None:
        """Return the source of rows that are not in memory, which are read after the charge; None for all others."""
        if not self._streams:
            refuse_rows_elsewhere(type(self).__name__, X)
            return None
        if not is_elsewhere(X, y):
            return None  # before the outputs are looked at, which rows in memory may decide
        are_named = warm or named is not None or self._named_outputs() is not None
        source = source_to_fit(
            X, y, sample_weight, self._outputs_parameter, are_named=are_named, n_samples_public=self.n_samples_public
        )
        if source is not None and is_bought(self.weight_bound):
            raise ValueError(
                "weight_bound='private' with rows that are not in memory, of which no bound is bought: give a public "
                "weight_bound."
            )
        if source is not None and self._check_merge_equal_rows() is True:
            raise ValueError(
                "merge_equal_rows=True with rows that are not in memory, which are not merged: choose 'auto' or False."
            )
        return source

    # --- the phases ---

    def _check_targets(self, y: Any, n_samples: int, **fit_params: Any) -> Targets:
        """See `PrivateEstimator`."""
        sample_weight = fit_params.pop("sample_weight", None)
        refuse_fit_params(fit_params)
        warn_of_no_bound(self.weight_bound, sample_weight)
        return self._encode_targets(y, sample_weight, n_samples, self._resolve_outputs(y, None, warm=False))

    def _check_parameters(self, terms: FitTerms, n_samples: int, n_features: int | None) -> None:
        """See `PrivateEstimator`. Asked by pipelines and searches alone, whose runs have no file and no earlier run."""
        if self.checkpoint is not None or self.warm_start:
            raise ValueError(
                f"checkpoint={self.checkpoint!r}, warm_start={self.warm_start!r}: a pipeline or a search starts each "
                "fit anew; set checkpoint=None and warm_start=False."
            )
        self._check_merge_equal_rows()
        self._weight_reader()
        named = self._named_outputs()
        outputs, n = self._assumed_outputs() if named is None else named, self._public_n_samples(n_samples)
        if named is not None:
            self._check_outputs(named)
        run = self._plan_run(terms.budget, n, n_features or 1, outputs)
        if n_features is not None and named is not None:
            self._warn_of_weak_signal(run, n, n_features, outputs)

    def _plan_fit(self, terms: FitTerms, n_samples: int, n_features: int, targets: Targets) -> Plan:
        """See `PrivateEstimator`."""
        return self._plan_next_run(terms, (n_samples, n_features), targets.outputs, warm=False)

    def _plan_next_run(self, terms: FitTerms, shape: tuple[int, int], outputs: Any, *, warm: bool) -> Plan:
        """Return the plan of a run, the first one or, if `warm`, one that starts from the current parameters."""
        self._starts_anew = not warm or self._continues_the_first_run()
        try:
            return self._plan_run_after(terms, shape, outputs, warm=warm)
        finally:
            del self._starts_anew

    def _continues_the_first_run(self) -> bool:
        """Whether the current parameters are those of a first run that was interrupted, and whose file is there."""
        earlier = releases_of(self)
        if self.checkpoint is None or len(earlier) > 1:
            return False
        return Checkpoint(self.checkpoint, {}, (), 1, seeded=False).continues(earlier)

    def _plan_run_after(self, terms: FitTerms, shape: tuple[int, int], outputs: Any, *, warm: bool) -> Plan:
        if warm and self.adjacency != self.adjacency_:
            raise ValueError(
                f"adjacency={self.adjacency!r} differs from the {self.adjacency_!r} of earlier runs, and two "
                "kinds of neighbours have no joint price: use the same, or start again with fit and warm_start=False."
            )
        self._check_merge_equal_rows()
        self._weight_reader()
        terms = self._settle_delta(terms, shape[0], self.delta_ if warm else None)
        self._check_outputs(outputs)
        n = self._public_n_samples(shape[0])
        run = self._plan_run(terms.budget, n, shape[1], outputs)
        earlier = releases_of(self) if warm else ()
        before = (self.n_steps_, self.n_iter_) if warm else (0, 0)
        purchases = self._purchases(run.plan.sampling, run.plan.n_steps)
        checkpoint = self._make_checkpoint(run, outputs, earlier)
        if checkpoint is not None and checkpoint.continues(earlier):
            earlier, before = earlier[:-1], self._fitted_before  # the current state is of this run, interrupted
        if warm:
            self._check_present(run, outputs)
        paid = compose(release.event for release in earlier) if earlier else None
        event = self._event_at(run.plan.sampling, run.plan.n_steps)(run.plan.noise_multiplier)
        price = self._price(event, paid, self.delta)  # a run without a price is refused here
        stream = terms.stream.spawn("from step", before[0])
        return Plan(run, outputs, n, stream, price, earlier, before, checkpoint, warm, purchases)

    def _check_rows(self, X: Any, *, reset: bool = True) -> Any:
        """See `PrivateEstimator`. What is returned has `shape` and `dtype`; `reset` is False after the first fit."""
        return check_table(self, X, reset=reset, sparse=True)

    def _make_checkpoint(self, run: Run, outputs: Any, earlier: tuple[Release, ...]) -> Checkpoint | None:
        """Return the checkpoint of this run, if one was asked for."""
        if self.checkpoint is None:
            return None
        seeded = self._is_seeded()
        described = {
            **{name: repr(value) for name, value in self._public_parameters().items()},
            "estimator": type(self).__name__, **self._describe_outputs(outputs),
            "random_state": int(self.random_state) if seeded else None, "privacy_event": repr(run.plan.event),
            **self._describe_rows(),
        }  # fmt: skip
        return Checkpoint(self.checkpoint, described, earlier, run.plan.n_steps, seeded=seeded)

    def _is_seeded(self) -> bool:
        return isinstance(self.random_state, int | np.integer)

    def _describe_rows(self) -> dict[str, Any]:
        """Return what a checkpoint says of what is public of the rows and came with them."""
        return {"row_norm": self._fitted_row_norm} if self._fitted_row_norm else {}

    def _begin_file(self, plan: Plan, dtype: Any) -> None:
        """Write the file of the run before the charge, with the state that training will start from."""
        run, theta = plan.run, self._start(plan.run, plan.outputs, dtype, plan.stream, warm=plan.warm)
        state, _ = start_of_run(run.optimizer, theta, plan.stream, run.averaging, plan.checkpoint)
        cast(Checkpoint, plan.checkpoint).begin(state)

    def _learn(self, plan: Plan, rows: Any, targets: Targets) -> str:
        """See `PrivateEstimator`."""
        self.weight_bound_ = self._weight_reader().bound
        rows, targets = self._buy(plan, rows, targets)
        theta, n_done = self._train(plan, rows, targets)
        run, (steps, epochs) = plan.run, plan.before
        self._set_parameters(theta, plan, n_done)
        self._set_outputs(targets.outputs)
        if n_done == run.plan.n_steps:
            self._correct(plan, rows, targets)
        self.noise_multiplier_ = run.plan.noise_multiplier
        self.sampling_rate_ = run.plan.sampling.rate
        self.max_grad_norm_ = run.plan.max_grad_norm
        self.data_norm_ = run.radius
        self._fitted_before, self._fitted_n_public = plan.before, plan.n_public
        self._fitted_noise_falls = bool(run.plan.stages)
        self.n_steps_ = n_done + steps
        # The small number undoes rounding: 20 steps at rate 0.05 are one epoch.
        self.n_iter_ = math.ceil(n_done * run.plan.sampling.rate - 1e-9) + epochs
        self._set_price(plan.price, (*plan.earlier, plan.release(self.adjacency)))
        return f"after {n_done} of {run.plan.n_steps} steps" if n_done < run.plan.n_steps else ""

    def _buy(self, plan: Plan, rows: Any, targets: Targets) -> tuple[Any, Targets]:
        """Buy what is bought before the first step, and return rows and targets as the steps read them."""
        purchase = plan.purchases.get(_WEIGHT_BOUND)
        if purchase is None:
            return rows, targets
        given = targets.to_bound, plan.run.plan.noise_multiplier, plan.n_public
        (self.weight_bound_,) = plan.bought(_WEIGHT_BOUND, lambda stream: [purchase.buy(*given, stream)])
        shares = WeightReader(self.weight_bound_).shares(targets.to_bound)
        return rows, targets._replace(weights=shares * targets.weights, to_bound=None)

    def _correct(self, plan: Plan, rows: Any, targets: Targets) -> None:
        """Buy what is bought after the last step, and correct the model by it (`OFFSET`)."""

    def _train(self, plan: Plan, rows: Any, targets: Targets) -> tuple[Vector, int]:
        """Run the plan; return the parameters and the number of steps done, fewer if it was interrupted."""
        run = plan.run
        theta = self._start(run, plan.outputs, rows.dtype, plan.stream, warm=plan.warm)
        progress = self._make_progress(plan)
        result = theta, 0
        try:
            weights = cast_weights(targets.weights, rows.dtype)
            with blas_within_quota(), self._bind(rows, targets, weights, run) as model:
                result = run_dpsgd(
                    model, run.plan, run.optimizer, theta, plan.stream,
                    averaging=run.averaging, on_step=progress or _ignore, checkpoint=plan.checkpoint,
                )  # fmt: skip
        except KeyboardInterrupt:  # before the first step, or after the run
            pass
        finally:
            if progress is not None:
                progress.close()
        return result

    # --- checks of parameters ---

    def _check_radius(self, n_features: int) -> float:
        """Return the norm to which rows are clipped."""
        if self.data_norm is None:
            return self._fitted_row_norm or math.sqrt(n_features)
        remedy = "choose a public bound from 1e-30 to 1e30, or None"
        return check_real("data_norm", self.data_norm, at_least=1e-30, at_most=1e30, remedy=remedy)

    def _check_clip(self) -> float | None:
        """Return `max_grad_norm`, or None for the rule."""
        if isinstance(self.max_grad_norm, str) and self.max_grad_norm == "auto":
            return None
        remedy = "choose a number from 1e-30 to 1e30, or 'auto'"
        return check_real("max_grad_norm", self.max_grad_norm, at_least=1e-30, at_most=1e30, remedy=remedy)

    def _plan_step(self, n_samples: int, n_features: int) -> StepPlan:
        """See `PrivateEstimator`. The sampling is fixed, since its rule may depend on the final number of columns."""
        n = self._public_n_samples(n_samples)
        sampling, n_steps = self._sampling_and_steps(n, n_features, self._n_outputs_of_step())
        fixed = {"lot_size": None, "sampling_rate": sampling.rate}
        return StepPlan(self._event_at(sampling, n_steps), fixed)

    def _calibrate_noise(self, budget: Budget, sampling: Sampling, n_steps: int) -> float:
        """Return the given noise multiplier, or the one that spends epsilon."""
        if budget.noise_multiplier is not None:
            return budget.noise_multiplier
        epsilon, delta = cast(float, budget.epsilon), cast(float, budget.delta)  # given, and settled
        event_at = self._event_at(sampling, n_steps)
        return calibrate_noise_multiplier(event_at, epsilon, delta, method=self.accounting, adjacency=self.adjacency)

    def _event_at(self, sampling: Sampling, n_steps: int) -> Callable[[float], DpEvent]:
        """Return what a run costs at a noise multiplier: its steps, and what is bought beside them."""
        steps = partial(event_of_steps, sampling, n_steps, stages=self._stages(sampling, n_steps))
        purchases = tuple(self._purchases(sampling, n_steps).values())
        return partial(event_with, purchases, steps) if purchases else steps

    def _stages(self, sampling: Sampling, n_steps: int) -> tuple[Stage, ...]:
        """Return how the noise is spread over the steps: not at all where rows are sampled or it was given."""
        if sampling.rate < 1.0 or n_steps > _MOST_FALLING:
            return ()
        kept = self._averaging(n_steps).kept
        by_us = self.noise_multiplier is None or self._noise_is_allotted
        return falling_noise(kept()) if by_us and kept is not None else ()

    def _purchases(self, sampling: Sampling, n_steps: int) -> dict[str, Any]:
        """Return what is bought beside the steps, by name (`Plan`); it follows from public quantities.

        Each has the method ``event_at(noise_multiplier)``. The first one is a bound on weights, if that is bought.
        """
        if not is_bought(self.weight_bound):
            return {}
        return {_WEIGHT_BOUND: WeightPurchase.beside_steps(self.adjacency, sampling.rate, n_steps)}

    def _check_merge_equal_rows(self) -> bool | str:
        """Return `merge_equal_rows`: True, False or "auto"."""
        if isinstance(self.merge_equal_rows, bool | np.bool_):
            return bool(self.merge_equal_rows)
        if isinstance(self.merge_equal_rows, str) and self.merge_equal_rows == "auto":
            return "auto"
        raise ValueError(f"merge_equal_rows={show(self.merge_equal_rows)} is not known: use True, False or 'auto'.")

    def _weight_reader(self) -> WeightReader:
        """Return what reads weights of rows, or refuse `weight_bound`."""
        return WeightReader.of(self.weight_bound)

    def _check_max_iter(self) -> int:
        return check_count("max_iter", self.max_iter, remedy="choose a whole number of epochs, or None for the rule")

    def _make_progress(self, plan: Plan) -> StepProgress | None:
        if not self.verbose:
            return None
        paid = compose(release.event for release in plan.earlier) if plan.earlier else None

        def epsilon_of(n_steps: int) -> float:
            return self._price(plan.event_of(n_steps), paid, plan.price.delta).epsilon

        return StepProgress(plan.run.plan.n_steps, epsilon_of)

    # --- predictions ---

    @silent_arithmetic
    def _score_rows(self, X: Any) -> NDArray[np.floating]:
        check_is_fitted(self)
        report_inspection(self)
        source = source_to_predict(X, getattr(self, "feature_names_in_", None)) if self._streams else None
        if source is None:
            return self._scores(self._check_rows(X, reset=False))
        check_schema(self, source.like(), reset=False)
        return source.map_blocks(lambda rows: self._scores(read_cells(rows, source.names)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


_WEIGHT_BOUND = "weight bound"
_MOST_FALLING = 10**6  # steps: the shares of so many are an array


def _ignore(n_done: int) -> None:
    """Observe a step without doing anything."""


__all__ = ["GradientEstimator"]
