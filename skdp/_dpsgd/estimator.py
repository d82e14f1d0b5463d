"""Base class of estimators trained with DP-SGD, and the progress bar."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdp._checks.parameters import public_n, show, silent_arithmetic
from skdp._checks.rows import check_table
from skdp._checks.sources import map_rows
from skdp.accounting import compose
from skdp.base.budget import cost_of, read_budget
from skdp.base.estimator import PrivateEstimator
from skdp.base.private_step import StepPlan

_READINGS = 20  # pricing takes milliseconds, so the figure is not refreshed at every step
_LONG = 2.0  # seconds after which it is: a step may be a pass over a large file


class StepProgress:
    """Show the number of completed steps and their epsilon on standard error, when called with that number.

    Parameters
    ----------
    n_steps : int
    epsilon_of : callable
        Function that returns the epsilon of the first k steps.
    """

    def __init__(self, n_steps: int, epsilon_of: Callable[[int], float]) -> None:
        self._n_steps, self._epsilon_of = n_steps, epsilon_of
        self._every = max(1, n_steps // _READINGS)
        try:
            from tqdm.auto import tqdm
        except ImportError:
            self._bar: Any = None
        else:
            self._bar = tqdm(total=n_steps, unit="step", desc="skdp")
        self._shown = self._begun = time.monotonic()
        self._first: int | None = None

    def __call__(self, n_done: int) -> None:
        now = time.monotonic()
        if self._first is None:  # a run that resumes has made steps before
            self._first = n_done - 1
        if n_done % self._every and n_done != self._n_steps and now - self._shown < _LONG:
            return
        self._shown = now
        cost = f"epsilon so far {self._epsilon_of(n_done):.4g}"
        if self._bar is None:
            seconds = (now - self._begun) / (n_done - self._first) * (self._n_steps - n_done)
            done = f"step {n_done}/{self._n_steps} ({_format(seconds)} left)"
            print(f"\r{done}, {cost}  ", end="", file=sys.stderr, flush=True)
        else:
            self._bar.set_postfix_str(cost, refresh=False)
            self._bar.update(n_done - self._bar.n)

    def close(self) -> None:
        if self._bar is None:
            print(file=sys.stderr)
        else:
            self._bar.close()


def _format(seconds: float) -> str:
    """Format a time in the unit that suits it, in round numbers."""
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 2.0 * size:
            return f"{seconds / size:3.0f} {unit}"
    return f"{seconds:3.0f} s"


class GradientEstimator(PrivateEstimator):
    """Base class of estimators trained with DP-SGD, independent of the model and of the prediction task.

    Subclasses have the constructor parameters of `PrivateEstimator` and ``checkpoint, data_norm, max_grad_norm,
    lot_size, sampling_rate, max_iter, warm_start, merge_equal_rows, verbose, weight_bound``. They provide a solver,
    which plans, trains and publishes the parameters, and a target, which describes the outputs.
    """

    _streams = False  # whether a model is a function of rows and targets alone, so that blocks may be bound apart

    merge_equal_rows: Any
    weight_bound: Any

    n_steps_: int
    n_iter_: int
    _fitted_before: tuple[int, int]  # steps and epochs of all runs but the last

    _target: Callable[[], Any]
    """Return what the outputs mean, by the parameters."""
    _solver: Callable[..., Any]
    """Return how a model is trained, of (target, number of columns). `anew` states whether the run is the first one."""
    _scorer: Callable[[], Callable[[Any], np.ndarray]]
    """Return what computes the scores of checked rows, of shape (n_samples, n_outputs). It can be pickled.

    It is a function of fitted parameters alone, and holds no estimator.
    """

    def _scores(self, X: Any) -> np.ndarray:
        return self._scorer()(X)

    # --- a fit ---

    def _has_run(self) -> bool:
        return hasattr(self, "n_steps_")

    def _read_rows(self, X: Any, *, reset: bool) -> Any:
        """Return the checked rows, which have `shape` and `dtype`; `reset` is False after the first fit."""
        return check_table(self, X, reset=reset, sparse=True)

    def _assumed_width(self) -> int:
        """Return the number of columns to plan with before the rows of a pipeline are there."""
        return 1

    def _is_seeded(self) -> bool:
        return isinstance(self.random_state, int | np.integer)

    # --- checks of parameters ---

    def _plan_step(self, n_samples: int, n_features: int) -> StepPlan:
        """See `PrivateEstimator`. The sampling is fixed, since its rule may depend on the final number of columns.

        A model that has no such parameters has one way to sample.
        """
        n = public_n(self, n_samples)
        target = self._target()
        releases = self._solver(target, n_features).planned_releases(n, n_features, target.n_of_step())
        fixed = {"lot_size": None, "sampling_rate": releases.sampling.rate}
        known = self.get_params(deep=False)
        return StepPlan(releases.event_at, {name: value for name, value in fixed.items() if name in known})

    def _check_run_parameters(self, fit: Any) -> None:
        """Reject parameters that do not fit the kind of fit."""
        if not fit.is_whole and (self.checkpoint is not None or self.warm_start):
            raise ValueError(
                "A pipeline or a search starts each fit anew, so `checkpoint` must be None and `warm_start` must be "
                f"False, got checkpoint={self.checkpoint!r}, warm_start={self.warm_start!r}."
            )
        self.merge_equal_rows = self._check_merge_equal_rows()
        if self.merge_equal_rows is True and fit.units is not None:
            raise ValueError("merge_equal_rows=True is not supported with groups. Set 'auto' or False.")

    def _check_merge_equal_rows(self) -> bool | str:
        """Return `merge_equal_rows`: True, False or "auto"."""
        if isinstance(self.merge_equal_rows, bool | np.bool_):
            return bool(self.merge_equal_rows)
        if isinstance(self.merge_equal_rows, str) and self.merge_equal_rows == "auto":
            return "auto"
        raise ValueError(f"`merge_equal_rows` must be True, False or 'auto', got {show(self.merge_equal_rows)}.")

    def _make_progress(self, run: Any) -> StepProgress | None:
        """Return the progress bar of a run, or None."""
        if not self.verbose:
            return None
        budget, earlier = read_budget(self), None if run.earlier is None else run.earlier.event

        def epsilon_of(n_steps: int) -> float:
            event = run.releases.event_at(run.plan.noise_multiplier, n_steps)
            return cost_of(budget, event if earlier is None else compose([earlier, event])).epsilon

        return StepProgress(run.plan.n_steps, epsilon_of)

    # --- predictions ---

    @silent_arithmetic
    def _score_rows(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        if self._streams:
            return map_rows(self, X, self._scores, sparse=True)
        return self._scores(self._read_rows(X, reset=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
