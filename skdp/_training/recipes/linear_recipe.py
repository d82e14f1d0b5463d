"""What linear models trained by noisy gradient descent share, whatever their rows: steps, penalty, noise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._checks.parameters import check_real, count_threads
from skdp._training import defaults as rule
from skdp._training.averaging import Averaging, last_iterate, tail_average
from skdp._training.estimator import GradientEstimator
from skdp._training.noise_kept import Carried, carried
from skdp._training.optimizers import constant, momentum_sgd
from skdp._training.plan import DPSGDPlan
from skdp._training.run import Plan, Run
from skdp.exceptions import warn
from skdp.mechanisms.sampling import Sampling


class LinearRuns(GradientEstimator):
    """Part of estimators that have the parameters ``learning_rate, momentum, average, alpha, n_jobs``."""

    learning_rate: Any
    momentum: Any
    average: Any
    alpha: Any

    def _n_free(self, run: Run, n_features: int, outputs: Any) -> int:
        """Return the number of parameters that noise and rows compete for."""
        raise NotImplementedError

    def _linear_run(
        self, plan: DPSGDPlan, geometry: Any, radius: float, learning_rate: float, penalty: NDArray[np.float64]
    ) -> Run:
        """Return the run of a plan; `penalty` is the second derivative of the penalty of strength 1."""
        momentum = check_real("momentum", self.momentum, at_least=0, below=1, remedy="choose a number in [0, 1)")
        alpha = check_real("alpha", self.alpha, at_least=0, remedy="choose 0 (no penalty) or a number above it")
        optimizer = momentum_sgd(constant(learning_rate), momentum, alpha * penalty if alpha else 0.0)
        averaging = self._averaging(plan.n_steps)
        count_threads(self.n_jobs)
        return Run(plan, geometry, radius, learning_rate, optimizer, averaging)

    def _averaging(self, n_steps: int) -> Averaging:
        """See `GradientEstimator`."""
        return tail_average(n_steps) if self.average else last_iterate()

    def _rows_by_work(self, n: int, work: int, n_steps: int, affordable: float) -> tuple[Sampling, int]:
        """Return the sampling of rows, where a row takes so much work a step, and the steps: `n_steps` by default."""
        epochs = None if self.max_iter is None else self._check_max_iter()
        sampling = self._chosen_sampling(n) or rule.default_sampling(n, work, epochs or n_steps, affordable)
        return sampling, n_steps if epochs is None else math.ceil(epochs / sampling.rate)

    def _check_learning_rate(self) -> float | None:
        """Return `learning_rate`, or None for the rule."""
        if isinstance(self.learning_rate, str) and self.learning_rate == "auto":
            return None
        return check_real("learning_rate", self.learning_rate, above=0, remedy="choose a number above 0, or 'auto'")

    def _resumes(self, plan: Plan) -> bool:
        """Tell whether the run starts from where the current parameters' run first did, rather than from them."""
        return plan.warm and plan.before == getattr(self, "_fitted_before", None)

    def _warn_of_weak_signal(self, run: Run, n: int, n_features: int, outputs: Any) -> None:
        """See `GradientEstimator`."""
        plan, n_parameters = run.plan, self._n_free(run, n_features, outputs)
        signal = rule.signal_of(plan.noise_multiplier, plan.expected_lot_size, plan.n_steps, n_parameters)
        if signal < rule.LEAST_SIGNAL:
            budget = f"epsilon={self.epsilon!r}" if self.epsilon is not None else f"noise={plan.noise_multiplier:g}"
            warn(
                f"{n} rows are few for {n_parameters} parameters at {budget}: noise decides much of the model, and "
                f"another fit to the same rows may differ widely (signal {signal:.2g}, where {rule.LEAST_SIGNAL:g} is "
                "little); give more rows, fewer columns or a larger epsilon."
            )

    def _carried(self, run: Run, n_done: int, curvature: float) -> Carried:
        """What a parameter keeps of its start, and the standard deviation that noise alone gives it.

        `curvature` is the second derivative of the penalty of strength 1.
        """
        n_steps = run.plan.n_steps
        first = n_steps // 2 if self.average and n_done > n_steps // 2 else n_done - 1
        factors = run.plan.noise_factors
        found = carried(run.learning_rate, self.momentum, self.alpha * curvature, n_done, first, factors)
        step = run.plan.mechanism.standard_deviation / run.plan.expected_lot_size
        return found._replace(noise=found.noise * step)


__all__ = ["LinearRuns"]
