"""Private neural networks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp import _defaults as rule
from skdp._averaging import Averaging, ema_average, last_iterate, tail_average
from skdp._classifier import GradientClassifier, Labels, Run
from skdp._networks import ACTIVATIONS, CLIPPINGS, Architecture, Clip, NetworkModel, network_scores
from skdp._optimizers import Optimizer, Schedule, Vector, adam, constant, cosine_decay, linear_decay, momentum_sgd
from skdp._plan import DPSGDPlan
from skdp._random import SecretStream
from skdp._validation import check_choice, check_count, check_real
from skdp.base import Budget


class _Shape(NamedTuple):
    """The network, how its gradients are bounded, and what clipped rows are multiplied by."""

    architecture: Architecture
    clip: Clip
    unit: float
    batch_size: int


class DPMLPClassifier(GradientClassifier):
    n_layers_: int

    def __init__(
        self,
        hidden_layer_sizes: Any = (100,),
        activation: str = "relu",
        *,
        epsilon: float | None = 1.0,
        delta: float = 1e-5,
        noise_multiplier: float | None = None,
        max_grad_norm: Any = "auto",
        clipping: str = "flat",
        data_norm: float | None = None,
        input_norm: float | str = "auto",
        lot_size: float | None = None,
        sampling_rate: float | None = None,
        n_samples_public: int | None = None,
        max_iter: int | None = None,
        solver: str = "sgd",
        learning_rate: str = "linear",
        learning_rate_init: float | str = "auto",
        learning_rate_end: float | None = None,
        decay_epochs: float | None = None,
        momentum: float = 0.9,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        adam_epsilon: float = 1e-8,
        adam_noise_floor: float | None = None,
        average: str | None = "ema",
        alpha: float = 0.0,
        batch_size: int | str = "auto",
        classes: Any = None,
        adjacency: str = "zero_out",
        accounting: str = "pld",
        accountant: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.epsilon = epsilon
        self.delta = delta
        self.noise_multiplier = noise_multiplier
        self.max_grad_norm = max_grad_norm
        self.clipping = clipping
        self.data_norm = data_norm
        self.input_norm = input_norm
        self.lot_size = lot_size
        self.sampling_rate = sampling_rate
        self.n_samples_public = n_samples_public
        self.max_iter = max_iter
        self.solver = solver
        self.learning_rate = learning_rate
        self.learning_rate_init = learning_rate_init
        self.learning_rate_end = learning_rate_end
        self.decay_epochs = decay_epochs
        self.momentum = momentum
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.adam_epsilon = adam_epsilon
        self.adam_noise_floor = adam_noise_floor
        self.average = average
        self.alpha = alpha
        self.batch_size = batch_size
        self.classes = classes
        self.adjacency = adjacency
        self.accounting = accounting
        self.accountant = accountant
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    _takes_labels = True

    # --- what is trained ---

    def _plan_run(self, budget: Budget, n: int, n_features: int, labels: Labels) -> Run:
        architecture = self._architecture(n_features, labels)
        radius = self._check_radius(n_features)
        shape = _Shape(
            architecture, self._check_clipping(architecture.n_layers), self._input_norm() / radius, self._batch()
        )
        sampling = self._chosen_sampling(n)
        if sampling is None:
            sampling = rule.network_sampling(n)
        n_steps = (
            math.ceil(self._check_max_iter() / sampling.rate)
            if self.max_iter is not None
            else rule.network_steps(n, sampling)
        )
        sigma = self._noise(budget, sampling, n_steps)
        max_norm = self._max_norm()
        plan = DPSGDPlan(sampling, max_norm, sigma, n_steps, sampling.rate * n)
        rate = self._rate(plan, architecture.n_parameters)
        optimizer = self._optimizer(plan, self._schedule(rate, plan), shape)
        return Run(plan, shape, radius, rate, optimizer, self._averaging(n_steps))

    def _architecture(self, n_features: int, labels: Labels) -> Architecture:
        sizes = self.hidden_layer_sizes
        hidden = list(sizes) if isinstance(sizes, Sequence | np.ndarray) else [sizes]
        remedy = "give whole numbers of hidden units above 0, one a layer, such as (100,)"
        widths = [check_count("hidden_layer_sizes", each, remedy=remedy) for each in hidden]
        check_choice("activation", self.activation, tuple(ACTIVATIONS))
        several = labels.n_outputs > 1 and not labels.multilabel
        return Architecture(
            (n_features, *widths, labels.n_outputs), self.activation, "softmax" if several else "logistic"
        )

    def _input_norm(self) -> float:
        if isinstance(self.input_norm, str) and self.input_norm == "auto":
            return rule.INPUT_NORM
        return check_real(
            "input_norm", self.input_norm, at_least=1e-6, at_most=1e6, remedy="choose a number, such as 8, or 'auto'"
        )

    def _batch(self) -> int:
        if isinstance(self.batch_size, str) and self.batch_size == "auto":
            return rule.BATCH_SIZE
        return check_count("batch_size", self.batch_size, remedy="choose a whole number of rows, or 'auto'")

    def _bounds(self) -> NDArray[np.float64] | None:
        """The layers' own bounds, if they were given."""
        if isinstance(self.max_grad_norm, Sequence | np.ndarray) and not isinstance(self.max_grad_norm, str):
            remedy = "give one number from 1e-30 to 1e30 a layer"
            return np.array(
                [
                    check_real("max_grad_norm", c, at_least=1e-30, at_most=1e30, remedy=remedy)
                    for c in self.max_grad_norm
                ]
            )
        return None

    def _max_norm(self) -> float:
        bounds = self._bounds()
        if bounds is not None:
            return float(np.linalg.norm(bounds))
        return self._check_clip() or rule.NETWORK_CLIP

    def _check_clipping(self, n_layers: int) -> Clip:
        check_choice("clipping", self.clipping, tuple(CLIPPINGS))
        bounds = self._bounds()
        if bounds is None:
            return Clip(self.clipping, (1.0 / math.sqrt(n_layers),) * n_layers)
        if self.clipping != "per_layer" or len(bounds) != n_layers:
            raise ValueError(
                f"max_grad_norm={self.max_grad_norm!r}: several bounds go with clipping='per_layer' and {n_layers} "
                "layers; give one bound a layer, or one number."
            )
        return Clip(self.clipping, tuple(bounds / np.linalg.norm(bounds)))

    def _rate(self, plan: DPSGDPlan, n_parameters: int) -> float:
        if isinstance(self.learning_rate_init, str) and self.learning_rate_init == "auto":
            return rule.network_learning_rate(
                plan.noise_multiplier, plan.max_grad_norm, plan.expected_lot_size, plan.n_steps
            )
        return check_real(
            "learning_rate_init", self.learning_rate_init, above=0, remedy="choose a number above 0, or 'auto'"
        )

    def _schedule(self, start: float, plan: DPSGDPlan) -> Schedule:
        check_choice("learning_rate", self.learning_rate, ("constant", "linear", "cosine"))
        if self.learning_rate == "constant":
            return constant(start)
        end = start / 2 if self.learning_rate == "linear" else 0.0
        if self.learning_rate_end is not None:
            end = check_real("learning_rate_end", self.learning_rate_end, at_least=0, remedy="choose a number from 0")
        n_steps = float(plan.n_steps)
        if self.decay_epochs is not None:
            n_steps = (
                check_real("decay_epochs", self.decay_epochs, above=0, remedy="choose a number of epochs above 0")
                / plan.sampling.rate
            )
        return (linear_decay if self.learning_rate == "linear" else cosine_decay)(start, end, n_steps)

    def _optimizer(self, plan: DPSGDPlan, schedule: Schedule, shape: _Shape) -> Optimizer:
        check_choice("solver", self.solver, ("sgd", "adam"))
        alpha = check_real("alpha", self.alpha, at_least=0, remedy="choose 0 (no penalty) or a number above it")
        penalty: Any = 0.0
        if alpha:
            penalty = np.zeros(shape.architecture.n_parameters)
            for layer, table in enumerate(shape.architecture.tables(penalty)):
                table[:-1] = alpha * (shape.unit**2 if layer == 0 else 1.0)
        if self.solver == "sgd":
            momentum = check_real("momentum", self.momentum, at_least=0, below=1, remedy="choose a number in [0, 1)")
            return momentum_sgd(schedule, momentum, penalty)
        beta_1, beta_2 = [
            check_real(name, getattr(self, name), at_least=0, below=1, remedy="choose a number in [0, 1)")
            for name in ("beta_1", "beta_2")
        ]
        adam_epsilon = check_real(
            "adam_epsilon", self.adam_epsilon, at_least=0, remedy="choose a small number, such as 1e-8"
        )
        noise = floor = 0.0
        if self.adam_noise_floor is not None:
            noise = (plan.mechanism.standard_deviation / plan.expected_lot_size) ** 2
            floor = noise * check_real(
                "adam_noise_floor",
                self.adam_noise_floor,
                above=0,
                remedy="choose a share of the noise's variance, or None",
            )
        return adam(schedule, beta_1, beta_2, adam_epsilon, noise_variance=noise, floor=floor, penalty=penalty)

    def _averaging(self, n_steps: int) -> Averaging:
        if self.average is None:
            return last_iterate()
        check_choice("average", self.average, ("tail", "ema"))
        return tail_average(n_steps) if self.average == "tail" else ema_average(n_steps)

    def _start(self, run: Run, labels: Labels, dtype: Any, stream: SecretStream, *, go_on: bool) -> Vector:
        architecture = run.shape.architecture
        theta = np.zeros(architecture.n_parameters, self._arithmetic(dtype))
        tables = architecture.tables(theta)
        if go_on:
            for layer, (table, coef, intercept) in enumerate(zip(tables, self.coefs_, self.intercepts_, strict=True)):
                table[:-1] = coef / (run.shape.unit if layer == 0 else 1.0)
                table[-1] = intercept
            return theta
        weights = stream.spawn("initial weights")
        gain = 2.0 if self.activation == "relu" else 1.0
        for table in tables[:-1]:
            table[:-1] = weights.normal(table[:-1].size).reshape(table[:-1].shape) * math.sqrt(gain / len(table[:-1]))
        return theta

    def _arithmetic(self, dtype: Any) -> Any:
        """The dtype of products: where a row more shifts all others to other places, rounding asks for float64."""
        return np.float64 if self.adjacency == "add_remove" else dtype

    def _bind(self, X: Any, labels: Labels, weights: Any, run: Run) -> NetworkModel:
        shape: _Shape = run.shape
        targets = labels.targets
        if shape.architecture.out_activation == "logistic":
            targets = targets.reshape(len(targets), labels.n_outputs).astype(np.float32)
        return NetworkModel(
            X, targets, weights, shape.architecture, shape.clip,
            radius=run.radius, unit=shape.unit, dtype=self._arithmetic(X.dtype), batch_size=shape.batch_size,
        )  # fmt: skip

    def _publish_parameters(self, theta: Vector, labels: Labels, run: Run) -> None:
        tables = run.shape.architecture.tables(theta)
        units = [run.shape.unit] + [1.0] * (len(tables) - 1)
        self.coefs_ = [table[:-1] * unit for table, unit in zip(tables, units, strict=True)]
        self.intercepts_ = [table[-1].copy() for table in tables]
        self.n_layers_ = len(tables) + 1
        self.n_outputs_ = labels.n_outputs
        self.out_activation_ = run.shape.architecture.out_activation
        self.learning_rate_init_ = run.learning_rate

    def _scores(self, X: Any) -> NDArray[np.floating]:
        return network_scores(X, self.data_norm_, self.coefs_, self.intercepts_, self.activation)
