"""The solver of dense networks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from skdp._checks.parameters import check_choice, check_count, check_real, radius_of
from skdp._dpsgd import defaults, loop
from skdp._dpsgd.models.network import ACTIVATIONS, CLIPPINGS, Architecture, Clip, NetworkModel, network_scores
from skdp._dpsgd.plan import DPSGDPlan, PlannedReleases
from skdp._dpsgd.solver import DescentSolver, Run
from skdp._dpsgd.targets import REGRESSION_LOSSES


class _Shape(NamedTuple):
    """Network, rule of clipping, factor of clipped rows, and rows per chunk."""

    architecture: Architecture
    clip: Clip
    unit: float
    batch_size: int


class NetworkSolver(DescentSolver):
    """Dense networks; the model has the parameters of `DPMLPClassifier` for network, clipping and optimizer.

    Parameters
    ----------
    model, target, anew : object
        As of `Solver`.
    rule_of : callable
        Returns the rules for a network of so many outputs, where parameters are "auto".
    target_dtype : dtype or None, default=None
        In which targets are kept. None is that of the arithmetic.
    """

    def __init__(
        self,
        model: Any,
        target: Any,
        rule_of: Callable[[int], defaults.NetworkRule],
        target_dtype: Any = None,
        *,
        anew: bool = True,
    ) -> None:
        super().__init__(model, target, anew=anew)
        self.rule_of, self.target_dtype = rule_of, target_dtype

    def sampling_and_steps(self, n: int, n_features: int, n_outputs: int) -> tuple[Any, int]:
        sampling = self.model._chosen_sampling(n) or defaults.network_sampling(n)
        if self.model.max_iter is None:
            return sampling, defaults.network_steps(n, sampling)
        return sampling, math.ceil(self._check_max_iter() / sampling.rate)

    def plan_run(self, releases: PlannedReleases, noise: float, n: int, n_features: int, outputs: Any) -> Run:
        architecture = self._architecture(n_features, outputs)
        radius = radius_of(self.model, n_features)
        by_rule = self.rule_of(outputs.n_outputs)
        max_norm, clip = self._clip(architecture.n_layers, by_rule)
        unit = self._input_norm(by_rule) / radius
        shape = _Shape(architecture, clip, unit, self._rows_at_once(max(architecture.widths)))
        lot_size = releases.sampling.rate * n
        plan = DPSGDPlan(releases.sampling, max_norm, noise, releases.n_steps, lot_size, releases.stages)
        rate = self._first_rate(plan, by_rule)
        optimizer = self._make_optimizer(self._schedule(rate, plan), shape)
        return Run(releases, plan, outputs, n, shape, radius, rate, optimizer)

    def n_free(self, run: Run, n_features: int, outputs: Any) -> int:
        """See `Solver`: those of a linear model of the columns, which a network has to learn first."""
        return int(outputs.n_outputs) * (n_features + 1)

    def _architecture(self, n_features: int, outputs: Any) -> Architecture:
        sizes = _to_list(self.model.hidden_layer_sizes)
        hidden = list(sizes) if isinstance(sizes, Sequence) and not isinstance(sizes, str) else [sizes]
        constraint = "a sequence of integers above 0, one per hidden layer, such as (100,)"
        widths = [check_count("hidden_layer_sizes", each, constraint=constraint) for each in hidden]
        check_choice("activation", self.model.activation, tuple(ACTIVATIONS))
        loss, limit = self.target.loss_of(outputs)
        return Architecture((n_features, *widths, outputs.n_outputs), self.model.activation, loss, limit)

    def _clip(self, n_layers: int, by_rule: defaults.NetworkRule) -> tuple[float, Clip]:
        """Return C, and the rule by which it bounds gradients."""
        check_choice("clipping", self.model.clipping, tuple(CLIPPINGS))
        given = _to_list(self.model.max_grad_norm)
        if isinstance(given, str) or not isinstance(given, Sequence):
            equal = (1.0 / math.sqrt(n_layers),) * n_layers
            return self._check_clip() or by_rule.clip, Clip(self.model.clipping, equal)
        if self.model.clipping != "per_layer" or len(given) != n_layers:
            raise ValueError(
                f"max_grad_norm={given!r} requires clipping='per_layer' and one bound for each of the {n_layers} "
                "layers. Pass one bound per layer, or a single number."
            )
        constraint = "numbers from 1e-30 to 1e30, one per layer"
        bounds = [
            check_real("max_grad_norm", each, at_least=1e-30, at_most=1e30, constraint=constraint) for each in given
        ]
        max_norm = math.hypot(*bounds)
        return max_norm, Clip(self.model.clipping, tuple(bound / max_norm for bound in bounds))

    def _input_norm(self, by_rule: defaults.NetworkRule) -> float:
        if isinstance(self.model.input_norm, str) and self.model.input_norm == "auto":
            return by_rule.input_norm
        constraint = "a number from 1e-6 to 1e6, such as 8, or 'auto'"
        return check_real("input_norm", self.model.input_norm, at_least=1e-6, at_most=1e6, constraint=constraint)

    def _rows_at_once(self, widest: int) -> int:
        if isinstance(self.model.batch_size, str) and self.model.batch_size == "auto":
            return defaults.network_batch(widest)
        return check_count(
            "batch_size", self.model.batch_size, constraint="an integer number of rows above 0, or 'auto'"
        )

    def _first_rate(self, plan: DPSGDPlan, by_rule: defaults.NetworkRule) -> float:
        if isinstance(self.model.learning_rate_init, str) and self.model.learning_rate_init == "auto":
            if self.model.solver == "adam":
                return defaults.ADAM_STEP
            return defaults.network_learning_rate(plan, by_rule)
        constraint = "a number above 0, or 'auto'"
        return check_real("learning_rate_init", self.model.learning_rate_init, above=0, constraint=constraint)

    def _schedule(self, start: float, plan: DPSGDPlan) -> loop.Schedule:
        check_choice("learning_rate", self.model.learning_rate, ("constant", "linear", "cosine"))
        linear = self.model.learning_rate == "linear"
        end, n_steps = 0.5 * start if linear else 0.0, float(plan.n_steps)
        given = self.model.learning_rate_end
        if isinstance(given, tuple | list):
            if len(given) != 2:
                raise ValueError(f"`learning_rate_end` must be a number, a pair (end, epochs) or None, got {given!r}.")
            given, epochs = given
            constraint = "a pair with a number of epochs above 0"
            n_steps = check_real("learning_rate_end", epochs, above=0, constraint=constraint) / plan.sampling.rate
        if given is not None:
            constraint = "a number of at least 0, or None"
            end = check_real("learning_rate_end", given, at_least=0, constraint=constraint)
        if self.model.learning_rate == "constant":
            return loop.constant(start)
        return loop.linear_decay(start, end, n_steps) if linear else loop.cosine_decay(start, end, n_steps)

    def _make_optimizer(self, schedule: loop.Schedule, shape: _Shape) -> loop.Optimizer:
        check_choice("solver", self.model.solver, ("sgd", "adam"))
        alpha = check_real(
            "alpha", self.model.alpha, at_least=0, constraint="a number of at least 0 (0 disables the penalty)"
        )
        penalty: Any = 0.0
        if alpha:  # the second derivative of the penalty of each parameter
            penalty = np.zeros(shape.architecture.n_parameters)
            for layer, table in enumerate(shape.architecture.tables(penalty)):
                # The penalty is on coefficients of unscaled rows; those of the first layer are scaled by `unit`.
                table[:-1] = alpha * (shape.unit**2 if layer == 0 else 1.0)
        momentum, beta_1, beta_2 = (
            check_real(name, getattr(self.model, name), at_least=0, below=1, constraint="a number in [0, 1)")
            for name in ("momentum", "beta_1", "beta_2")
        )
        adam_epsilon = check_real(
            "adam_epsilon", self.model.adam_epsilon, at_least=0, constraint="a number of at least 0, such as 1e-8"
        )
        if self.model.solver == "sgd":
            return loop.momentum_sgd(schedule, momentum, penalty)
        return loop.adam(schedule, beta_1, beta_2, adam_epsilon, penalty)

    def averaging(self, n_steps: int) -> loop.Averaging:
        """See `Solver`. All steps of Adam have the same noise, since its second moment averages over steps."""
        if self.model.average is None:
            return loop.last_iterate()
        check_choice("average", self.model.average, ("ema", "tail"))
        found = loop.tail_average(n_steps) if self.model.average == "tail" else loop.ema_average(n_steps)
        return found._replace(kept=None) if self.model.solver == "adam" else found

    def start(self, run: Run, dtype: Any) -> np.ndarray:
        architecture: Architecture = run.shape.architecture
        theta = np.zeros(architecture.n_parameters, self._arithmetic(dtype))
        tables = architecture.tables(theta)
        if run.earlier is not None:
            for layer, table in enumerate(tables):
                table[:-1] = self.model.coefs_[layer] / (run.shape.unit if layer == 0 else 1.0)
                table[-1] = self.model.intercepts_[layer]
            return theta
        draws = run.stream.spawn("initial weights")
        gain = 2.0 if self.model.activation == "relu" else 1.0  # He et al. 2015
        # The last layer starts at zero, so all scores are 0 before the first step.
        for table in tables[:-1]:
            weights = table[:-1]
            weights[:] = draws.normal(weights.size).reshape(weights.shape) * math.sqrt(gain / len(weights))
        return theta

    def shift(self, theta: np.ndarray, run: Run, origin: np.ndarray) -> None:
        run.shape.architecture.tables(theta)[-1][-1] += origin.astype(theta.dtype)

    def check_present(self, run: Run) -> None:
        architecture: Architecture = run.shape.architecture
        asked, fitted = _out_activation(architecture.loss), self.model.out_activation_
        if asked != fitted:
            raise ValueError(
                f"The outputs of this run are {asked!r}, but those of earlier runs are {fitted!r}. Use targets of the "
                "same type and the same loss, or start a new fit with warm_start=False."
            )
        present = [coef.shape for coef in self.model.coefs_]
        if present != list(zip(architecture.widths, architecture.widths[1:], strict=False)):
            raise ValueError(
                f"hidden_layer_sizes={self.model.hidden_layer_sizes!r} does not match the layers of earlier runs, "
                f"{present}. Use the same sizes, or start a new fit with warm_start=False."
            )

    def _arithmetic(self, dtype: Any) -> Any:
        """Return the dtype of products. If one row shifts the places of all others, rounding requires float64."""
        return np.float64 if self.model._shifts_rows() else dtype

    def rounds_by_place(self, run: Run, dtype: Any) -> bool:
        """See `Solver`: copies of a row are added up in the dtype of the rows."""
        return bool(self._arithmetic(dtype) != np.float64)

    def factory(self, run: Run, dtype: Any) -> Callable[[Any, Any, Any], NetworkModel]:
        shape: _Shape = run.shape
        dtype = self._arithmetic(dtype)
        return partial(
            NetworkModel, architecture=shape.architecture, clip=shape.clip,
            radius=run.radius, unit=shape.unit, dtype=dtype, target_dtype=self.target_dtype or dtype,
            batch_size=shape.batch_size,
        )  # fmt: skip

    def learned(self, theta: np.ndarray, run: Run, n_done: int) -> dict[str, Any]:
        tables = run.shape.architecture.tables(theta)
        units = [run.shape.unit] + [1.0] * (len(tables) - 1)
        return {
            "coefs_": [table[:-1] * table.dtype.type(unit) for table, unit in zip(tables, units, strict=True)],
            "intercepts_": [table[-1].copy() for table in tables],
            "n_layers_": len(tables) + 1,
            "n_outputs_": run.outputs.n_outputs,
            "out_activation_": _out_activation(run.shape.architecture.loss),
            "learning_rate_init_": run.learning_rate,
        }

    def moved(self, offset: np.ndarray) -> dict[str, Any]:
        *hidden, last = self.model.intercepts_
        return {"intercepts_": [*hidden, (last + offset).astype(last.dtype)]}


def network_scorer(model: Any) -> Callable[[Any], np.ndarray]:
    """Return what computes the scores of checked rows by a fitted network; see `GradientEstimator`."""
    return partial(
        network_scores, radius=model.data_norm_, coefs=model.coefs_, intercepts=model.intercepts_,
        activation=model.activation,
    )  # fmt: skip


def _out_activation(loss: str) -> str:
    """Return the activation of the output layer that goes with a loss: of classes it has the same name."""
    known = REGRESSION_LOSSES.get(loss)
    return loss if known is None else "exp" if known.are_counts else "identity"


def _to_list(value: Any) -> Any:
    """Convert an array to a list, or to a number if it has no dimensions; return anything else unchanged."""
    return value.tolist() if isinstance(value, np.ndarray) else value
