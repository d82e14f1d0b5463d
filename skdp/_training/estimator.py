"""Base of estimators trained by noisy gradient descent: runs, charge, training and publication."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from skdp._checks.arithmetic import silent_arithmetic
from skdp._checks.notices import note_notice, tell_now
from skdp._checks.parameters import show
from skdp._checks.rows import check_schema, check_table, read_cells
from skdp._checks.sources import (
    source_to_predict,
)
from skdp._checks.weights import WeightReader, warn_of_no_bound
from skdp._fit.releases import Release, releases_of
from skdp._training.checkpoint import Checkpoint
from skdp._training.loop import start_of_run
from skdp._training.progress import StepProgress
from skdp._training.recipe import Recipe
from skdp._training.run import Plan, Run, Targets
from skdp._training.task import Task
from skdp._typing import Vector
from skdp.accounting import compose
from skdp.base import (
    FitTerms,
    PrivateEstimator,
    StepPlan,
    refuse_fit_params,
)


class GradientEstimator(PrivateEstimator):
    """Base class of estimators trained by DP-SGD; it knows neither the model nor what its outputs mean.

    Subclasses have the constructor parameters of `PrivateEstimator` and ``checkpoint, data_norm, max_grad_norm,
    lot_size, sampling_rate, max_iter, warm_start, merge_equal_rows, verbose, weight_bound``. They are handed a recipe,
    which says how parameters are planned, trained and published, and a task, which says what outputs mean.
    """

    _has_phases = True
    _streams = False  # whether a model is a function of rows and targets alone, so that blocks may be bound apart

    merge_equal_rows: Any
    weight_bound: Any

    n_steps_: int
    n_iter_: int
    _fitted_before: tuple[int, int]  # steps and epochs of all runs but the last

    def _recipe(self, n_features: int, *, anew: bool = True) -> Recipe:
        """Return how a model of `n_features` columns is trained; `anew` says whether the run is the first one."""
        raise NotImplementedError

    def _task(self) -> Task:
        """Return the task, which defines the outputs."""
        raise NotImplementedError

    def _take_over(self) -> None:
        """Take over from earlier runs, on a copy made for a warm start, what the rows do not say anew."""

    def _scorer(self) -> Callable[[Any], NDArray[np.floating]]:
        """Return what computes the scores of checked rows, of shape (n_samples, n_outputs). It can be pickled.

        It is a function of fitted parameters alone, and holds no estimator.
        """
        raise NotImplementedError

    def _scores(self, X: Any) -> NDArray[np.floating]:
        return self._scorer()(X)

    # --- a fit ---

    def _has_run(self) -> bool:
        return hasattr(self, "n_steps_")

    # --- the phases ---

    def _check_targets(self, y: Any, n_samples: int, **fit_params: Any) -> Targets:
        """See `PrivateEstimator`."""
        sample_weight, units = fit_params.pop("sample_weight", None), fit_params.pop("groups", None)
        refuse_fit_params(fit_params, type(self).__name__)
        warn_of_no_bound(self.weight_bound, sample_weight)
        task = self._task()
        targets = task.encode(y, sample_weight, n_samples, task.resolve(y, None, warm=False))
        return targets._replace(units=units)

    def _check_parameters(self, terms: FitTerms, n_samples: int, n_features: int | None) -> None:
        """See `PrivateEstimator`. Asked by pipelines and searches alone, whose runs have no file and no earlier run."""
        if self.checkpoint is not None or self.warm_start:
            raise ValueError(
                f"checkpoint={self.checkpoint!r}, warm_start={self.warm_start!r}: a pipeline or a search starts each "
                "fit anew; set checkpoint=None and warm_start=False."
            )
        self._check_merge_equal_rows()
        self._weight_reader()
        task = self._task()
        named = task.named()
        outputs, n = task.assumed() if named is None else named, self._public_n_samples(n_samples)
        if named is not None:
            task.check(named)
        run = self._recipe(n_features or 1).plan_run(terms.budget, n, n_features or 1, outputs)
        if n_features is not None:
            tell_now(self, self._weak_signal(run, n, n_features))

    def _weak_signal(self, run: Run, n: int, n_features: int) -> str:
        """Return the notice of rows that are too few; outputs that are read from the targets have no say in it."""
        task = self._task()
        named = task.named()
        return run.recipe.weak_signal(run, n, n_features, task.assumed() if named is None else named)

    def _plan_fit(self, terms: FitTerms, n_samples: int, n_features: int, targets: Targets) -> Plan:
        """See `PrivateEstimator`."""
        return self._plan_next_run(terms, (n_samples, n_features), targets.outputs, warm=False)

    def _plan_next_run(self, terms: FitTerms, shape: tuple[int, int], outputs: Any, *, warm: bool) -> Plan:
        """Return the plan of a run, the first one or, if `warm`, one that starts from the current parameters."""
        if warm and self.adjacency != self.adjacency_:
            raise ValueError(
                f"adjacency={self.adjacency!r} differs from the {self.adjacency_!r} of earlier runs, and two "
                "kinds of neighbours have no joint price: use the same, or start again with fit and warm_start=False."
            )
        self._check_merge_equal_rows()
        self._weight_reader()
        terms = self._settle_delta(terms, shape[0], self.delta_ if warm else None)
        self._task().check(outputs)
        n = self._public_n_samples(shape[0])
        if warm:
            self._take_over()
        recipe = self._recipe(shape[1], anew=not warm or self._continues_the_first_run())
        run = recipe.plan_run(terms.budget, n, shape[1], outputs)
        earlier = releases_of(self) if warm else ()
        before = (self.n_steps_, self.n_iter_) if warm else (0, 0)
        checkpoint = self._make_checkpoint(run, outputs, earlier)
        if checkpoint is not None and checkpoint.continues(earlier):
            earlier, before = earlier[:-1], self._fitted_before  # the current state is of this run, interrupted
        if warm:
            recipe.check_present(run, outputs)
        paid = compose(release.event for release in earlier) if earlier else None
        event = run.releases.with_purchases(run.plan.event, run.plan.noise_multiplier)
        price = self._price(event, paid, self.delta)  # a run without a price is refused here
        stream = terms.stream.spawn("from step", before[0])
        return Plan(run, outputs, n, stream, price, earlier, before, checkpoint, warm, event)

    def _continues_the_first_run(self) -> bool:
        """Whether the current parameters are those of a first run that was interrupted, and whose file is there."""
        earlier = releases_of(self)
        if self.checkpoint is None or len(earlier) > 1:
            return False
        return Checkpoint(self.checkpoint, {}, (), 1, seeded=False).continues(earlier)

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
            "estimator": type(self).__name__, **self._task().describe(outputs),
            "unit": [self._unit(), self.__dict__.get("_fitted_group_name", "")],
            "random_state": int(self.random_state) if seeded else None, "privacy_event": repr(run.plan.event),
            **run.recipe.describe_rows(),
        }  # fmt: skip
        return Checkpoint(self.checkpoint, described, earlier, run.plan.n_steps, seeded=seeded)

    def _is_seeded(self) -> bool:
        return isinstance(self.random_state, int | np.integer)

    def _begin_file(self, plan: Plan, dtype: Any) -> None:
        """Write the file of the run before the charge, with the state that training will start from."""
        run, theta = plan.run, plan.run.recipe.start(plan.run, plan.outputs, dtype, plan.stream, warm=plan.warm)
        state, _ = start_of_run(run.optimizer, theta, plan.stream, run.averaging, plan.checkpoint)
        cast(Checkpoint, plan.checkpoint).begin(state)

    def _learn(self, plan: Plan, rows: Any, targets: Targets) -> str:
        """See `PrivateEstimator`."""
        self.weight_bound_ = self._weight_reader().bound
        run, recipe = plan.run, plan.run.recipe
        rows, targets = recipe.buy(plan, rows, targets)
        if not plan.warm:  # a width that was bought was not known before
            note_notice(self, self._weak_signal(run, plan.n_public, rows.shape[1]))
        theta, n_done = recipe.train(plan, rows, targets)
        try:
            self._publish_run(plan, targets.outputs, theta, n_done)
            if n_done == run.plan.n_steps:
                recipe.correct(plan, rows, targets)
        except KeyboardInterrupt:  # what is left is post-processing of steps that were charged
            self._publish_run(plan, targets.outputs, theta, n_done)
            return f"after {n_done} of {run.plan.n_steps} steps, before {recipe.last_release}"
        return f"after {n_done} of {run.plan.n_steps} steps" if n_done < run.plan.n_steps else ""

    def _publish_run(self, plan: Plan, outputs: Any, theta: Vector, n_done: int) -> None:
        """Set all that a run learned in its first `n_done` steps; a second call sets the same again."""
        run, (steps, epochs) = plan.run, plan.before
        run.recipe.publish(theta, plan, n_done)
        self._task().publish(outputs)
        self.noise_multiplier_ = run.plan.noise_multiplier
        self.sampling_rate_ = run.plan.sampling.rate
        self.max_grad_norm_ = run.plan.max_grad_norm
        self.data_norm_ = run.radius
        self._fitted_before, self._fitted_n_public = plan.before, plan.n_public
        self._fitted_noise_falls = bool(run.plan.stages)
        self.n_steps_ = n_done + steps
        # The small number undoes rounding: 20 steps at rate 0.05 are one epoch.
        self.n_iter_ = math.ceil(n_done * run.plan.sampling.rate - 1e-9) + epochs
        self._set_price(plan.price, (*plan.earlier, plan.release(self.adjacency, self._unit())))

    # --- checks of parameters ---

    def _plan_step(self, n_samples: int, n_features: int) -> StepPlan:
        """See `PrivateEstimator`. The sampling is fixed, since its rule may depend on the final number of columns.

        A model that has no such parameters has one way to sample.
        """
        n = self._public_n_samples(n_samples)
        recipe = self._recipe(n_features)
        sampling, n_steps = recipe.sampling_and_steps(n, n_features, self._task().n_of_step())
        fixed = {"lot_size": None, "sampling_rate": sampling.rate}
        known = self.get_params(deep=False)
        return StepPlan(
            recipe.planned_releases(sampling, n_steps).event_at,
            {name: value for name, value in fixed.items() if name in known},
        )

    def _check_merge_equal_rows(self) -> bool | str:
        """Return `merge_equal_rows`: True, False or "auto"."""
        if isinstance(self.merge_equal_rows, bool | np.bool_):
            return bool(self.merge_equal_rows)
        if isinstance(self.merge_equal_rows, str) and self.merge_equal_rows == "auto":
            return "auto"
        raise ValueError(f"merge_equal_rows={show(self.merge_equal_rows)} is not known: use True, False or 'auto'.")

    def _weight_reader(self) -> WeightReader:
        """Return a reader of the weights of rows, or refuse `weight_bound`."""
        return WeightReader.of(self.weight_bound)

    def _make_progress(self, plan: Plan) -> StepProgress | None:
        """Return the progress bar of a run, or None."""
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
        source = source_to_predict(X, getattr(self, "feature_names_in_", None)) if self._streams else None
        if source is None:
            return self._scores(self._check_rows(X, reset=False))
        check_schema(self, source.like(), reset=False)
        return source.map_blocks(lambda rows: self._scores(read_cells(rows, source.names)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


__all__ = ["GradientEstimator"]
