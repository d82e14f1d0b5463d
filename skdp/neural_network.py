"""Private neural networks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp._classifier import GradientClassifier, Outputs, Run, Targets
from skdp._random import SecretStream
from skdp._sampling import Sampling
from skdp._training import defaults as rule
from skdp._training.averaging import Averaging, ema_average, last_iterate, tail_average
from skdp._training.network import ACTIVATIONS, CLIPPINGS, Architecture, Clip, NetworkModel, network_scores
from skdp._training.optimizers import (
    Optimizer,
    Schedule,
    Vector,
    adam,
    constant,
    cosine_decay,
    linear_decay,
    momentum_sgd,
)
from skdp._training.plan import DPSGDPlan
from skdp._validation import absolute_path, check_choice, check_count, check_real
from skdp.base import Budget


class _Shape(NamedTuple):
    """The network, how its gradients are bounded, and what clipped rows are multiplied by."""

    architecture: Architecture
    clip: Clip
    unit: float
    batch_size: int


class DPMLPClassifier(GradientClassifier):
    """Dense neural network by noisy gradient descent, with differential privacy for each row.

    The logistic loss for two classes and for several labels a row, the multinomial one for more classes. Every row's
    gradient, over all layers together, is clipped; the clipped gradients of a randomly drawn lot are summed and noise
    is added to the sum (DP-SGD, Abadi et al. 2016). The defaults follow rules in public quantities, so that `epsilon`
    is all that has to be chosen; `data_norm`, where a true bound on the rows' norm is known, helps most.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int or int, default=(100,)
        Units of the hidden layers.
    activation : {"identity", "logistic", "tanh", "relu"}, default="relu"
    epsilon : float or None, default=1.0
        The budget of one ``fit``; the noise is solved for. None if `noise_multiplier` is given.
    delta : float, default=1e-5
        Probability with which the guarantee may fail, well below 1/n.
    noise_multiplier : float or None, default=None
        Standard deviation of a step's noise divided by the clip. None: solved for `epsilon`.
    max_grad_norm : float, sequence of float or "auto", default="auto"
        C, the Euclidean norm to which each row's gradient is clipped. With ``clipping="per_layer"``: one bound a layer,
        whose root of the sum of squares is C, or C, shared equally.
    clipping : {"flat", "per_layer", "automatic"}, default="flat"
        "flat" bounds the whole gradient, "per_layer" each layer's part, "automatic" scales every gradient to nearly C
        (Bu et al. 2023).
    data_norm : float or None, default=None
        Public bound on the Euclidean norm of a row; longer rows are scaled down to it, here and in predictions.
        None: sqrt(n_features), which is right for columns in [-1, 1] and reads nothing.
    input_norm : float or "auto", default="auto"
        What `data_norm` becomes at the network's input: rows are multiplied by ``input_norm / data_norm``. Under noise
        the length of the input matters more than any other choice.
    lot_size : float or None, default=None
        Expected number of rows of a step, each row being drawn independently (Poisson sampling). A privacy parameter.
        None, like `sampling_rate`: by rule.
    sampling_rate : float or None, default=None
        `lot_size` as a share of the rows, in (0, 1].
    n_samples_public : int or None, default=None
        Public number of rows, used wherever a rule speaks of n. Required by ``adjacency="add_remove"``.
    max_iter : int or None, default=None
        Epochs. None: by rule.
    solver : {"sgd", "adam"}, default="sgd"
    learning_rate : {"constant", "linear", "cosine"}, default="linear"
        Schedule: from `learning_rate_init` to `learning_rate_end`.
    learning_rate_init : float or "auto", default="auto"
        Step length for scaled rows and the mean gradient.
    learning_rate_end : float or None, default=None
        None: half of the start for "linear", 0 for "cosine".
    decay_epochs : float or None, default=None
        Epochs until `learning_rate_end` is reached. None: all of them.
    momentum : float, default=0.9
        In [0, 1), dampened: v = momentum * v + (1 - momentum) * gradient. For "sgd".
    beta_1, beta_2 : float, default=0.9, 0.999
        Memories of the first and second moment, in [0, 1). For "adam".
    adam_epsilon : float, default=1e-8
        Added to the root of the second moment.
    adam_noise_floor : float or None, default=None
        A number makes Adam DP-AdamBC: the variance (sigma C / L)**2 of the noise is taken off the second moment, of
        which at least this share of that variance is left. It scales with C, so the updates do not depend on C.
    average : {"ema", "tail"} or None, default="ema"
        Average of the iterates that is kept: exponential with the memory of a tenth of the steps, or of the second
        half. Costs no privacy.
    alpha : float, default=0.0
        Weight of the penalty alpha / 2 * ||coefs_||**2 on the mean loss.
    batch_size : int or "auto", default="auto"
        Rows that go through the network at once: memory and speed, nothing else.
    classes : sequence or None, default=None
        All classes that can occur. None: read from y, unpaid, with a `PrivacyLeakWarning`; with several labels a row,
        their numbers.
    adjacency : {"zero_out", "add_remove", "replace_one"}, default="zero_out"
        What a neighbour differs in: one row made void (a row of weight 0; the number of rows is public), one row more
        or less, one row exchanged for another. "add_remove" computes in float64.
    accounting : {"pld", "rdp", "moments", "optimal_exact", "optimal", "strong", "naive"}, default="pld"
        Method that prices the run; ``docs/accounting.md`` tells them apart. The default is the tightest.
    accountant : PrivacyAccountant, str, path-like or None, default=None
        Shared ledger that every fit is charged to, before it reads the rows. A path names the file of one, which has to
        exist (``python -m skdp.budget create``) and is made absolute here.
    checkpoint : str, path-like or None, default=None
        File in which a run is kept while it lasts. A ``fit`` that was interrupted or killed goes on from it when it is
        called again with the same parameters and rows, and is not charged again to an accountant that holds its charge.
        It is removed when the run is complete. While a run lasts, another one on the same
        file is refused before any charge, by a lock on ``<checkpoint>.lock``.
    warm_start : bool, default=False
        Go on from the present coefficients. The ledger goes on too: `epsilon_` covers all instalments.
    random_state : int, RandomState or Generator instance or None, default=None
        None: noise from a fresh secret key. An int makes a run reproducible and its noise no secret.
    verbose : int, default=0
        1 shows a progress bar with the epsilon of the steps so far, on standard error.

    Attributes
    ----------
    coefs_ : list of ndarray of shape (n_inputs, n_outputs)
        Weights of the layers, of the dtype of X; the first for rows as they are given.
    intercepts_ : list of ndarray of shape (n_outputs,)
    n_layers_, n_outputs_ : int
    out_activation_ : {"logistic", "softmax"}
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only if X has string column names.
    epsilon_ : float
        Price at `delta_` of all that the fitted state depends on, earlier instalments of ``warm_start`` and
        ``partial_fit`` included. At most `epsilon` after a single fit.
    delta_ : float
    adjacency_ : str
        Kind of neighbours that `epsilon_` speaks of.
    privacy_event_ : DpEvent
        What `epsilon_` is the price of.
    noise_multiplier_, sampling_rate_, max_grad_norm_, data_norm_, learning_rate_init_ : float
        As used by the last instalment.
    n_iter_, n_steps_ : int
        Epochs and steps done in all.

    Notes
    -----
    **Guarantees.**

    - ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `classes` is given and
      `random_state` is None.
    - One row moves the sum of a step by at most `max_grad_norm_`, whatever it and its weight contain, the rounding of
      the sum included.
    - Sum and noise are divided by a public constant, the expected number of rows of a step.
    - `accountant` is charged before the rows are read; an interrupted fit keeps its charge, and the model of the
      steps done.
    - Input that is refused (NaN, infinity, unknown labels, negative weights) is refused before any charge. Such a
      refusal depends on the data and is not covered.
    - The initial weights are random and depend on no row.

    Not offered because they read private data for nothing: ``early_stopping``, ``tol``, ``loss_curve_``. sklearn's
    ``epsilon`` (of Adam) is `adam_epsilon` here. What ``docs/pitfalls.md`` says of rounding and time holds here too.

    References
    ----------
    Abadi et al. (2016), "Deep learning with differential privacy". Bu, Wang, Zha & Karypis (2023), "Automatic
    clipping". Tang, Shpilevskiy & Lecuyer (2024), "DP-AdamBC". Schwabedal, Michel & Riontino (2020), "Differentially
    private generation of small images", for DP-Adam.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPMLPClassifier
    >>> from skdp.datasets import make_census
    >>> people = make_census(20_000, random_state=0)
    >>> low, high = np.array([people.bounds[name] for name in people.feature_names]).T
    >>> X = (people.data - low) / (high - low)
    >>> model = DPMLPClassifier((20,), epsilon=1.0, classes=people.classes).fit(X, people.target)
    >>> bool(0.99 < model.epsilon_ <= 1.0)
    True
    """

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
        checkpoint: Any = None,
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
        self.accountant = absolute_path(accountant)
        self.checkpoint = checkpoint
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    _takes_labels = True

    # --- labels ---

    def _label_outputs(self, n_columns: int, classes: Any, *, go_on: bool) -> Outputs:
        known = self.classes_ if go_on else np.arange(n_columns)
        labels = known if classes is None else np.asarray(list(classes) if isinstance(classes, Iterable) else [])
        if len(labels) != n_columns or (go_on and not np.array_equal(labels, known)):
            raise ValueError(
                f"classes={classes!r} does not name the {n_columns} columns of y as earlier instalments did: give one "
                "name a column, or None."
            )
        return Outputs(labels, n_columns, multilabel=True)

    # --- what is trained ---

    def _sampling_and_steps(self, n: int, n_features: int, n_outputs: int) -> tuple[Sampling, int]:
        sampling = self._chosen_sampling(n) or rule.network_sampling(n)
        if self.max_iter is None:
            return sampling, rule.network_steps(n, sampling)
        return sampling, math.ceil(self._check_max_iter() / sampling.rate)

    def _plan_run(self, budget: Budget, n: int, n_features: int, outputs: Outputs) -> Run:
        architecture = self._architecture(n_features, outputs)
        radius = self._check_radius(n_features)
        max_norm, clip = self._clip(architecture.n_layers)
        shape = _Shape(architecture, clip, self._input_norm() / radius, self._rows_at_once(max(architecture.widths)))
        sampling, n_steps = self._sampling_and_steps(n, n_features, outputs.n_outputs)
        plan = DPSGDPlan(sampling, max_norm, self._noise(budget, sampling, n_steps), n_steps, sampling.rate * n)
        rate = self._first_rate(plan)
        optimizer = self._optimizer(plan, self._schedule(rate, plan), shape)
        return Run(plan, shape, radius, rate, optimizer, self._averaging(n_steps))

    def _architecture(self, n_features: int, outputs: Outputs) -> Architecture:
        sizes = _listed(self.hidden_layer_sizes)
        hidden = list(sizes) if isinstance(sizes, Sequence) and not isinstance(sizes, str) else [sizes]
        remedy = "give whole numbers of units above 0, one a hidden layer, such as (100,)"
        widths = [check_count("hidden_layer_sizes", each, remedy=remedy) for each in hidden]
        check_choice("activation", self.activation, tuple(ACTIVATIONS))
        softmax = outputs.n_outputs > 1 and not outputs.multilabel
        return Architecture(
            (n_features, *widths, outputs.n_outputs), self.activation, "softmax" if softmax else "logistic"
        )

    def _clip(self, n_layers: int) -> tuple[float, Clip]:
        """C, and how it bounds gradients."""
        check_choice("clipping", self.clipping, tuple(CLIPPINGS))
        given = _listed(self.max_grad_norm)
        if isinstance(given, str) or not isinstance(given, Sequence):
            equal = (1.0 / math.sqrt(n_layers),) * n_layers
            return self._check_clip() or rule.NETWORK_CLIP, Clip(self.clipping, equal)
        if self.clipping != "per_layer" or len(given) != n_layers:
            raise ValueError(
                f"max_grad_norm={given!r}: several bounds go with clipping='per_layer' and {n_layers} layers; give one "
                "bound a layer, or one number."
            )
        remedy = "give one number from 1e-30 to 1e30 a layer"
        bounds = [check_real("max_grad_norm", each, at_least=1e-30, at_most=1e30, remedy=remedy) for each in given]
        max_norm = math.hypot(*bounds)
        return max_norm, Clip(self.clipping, tuple(bound / max_norm for bound in bounds))

    def _input_norm(self) -> float:
        if isinstance(self.input_norm, str) and self.input_norm == "auto":
            return rule.INPUT_NORM
        remedy = "choose a length from 1e-6 to 1e6, such as 8, or 'auto'"
        return check_real("input_norm", self.input_norm, at_least=1e-6, at_most=1e6, remedy=remedy)

    def _rows_at_once(self, widest: int) -> int:
        if isinstance(self.batch_size, str) and self.batch_size == "auto":
            return rule.network_batch(widest)
        return check_count("batch_size", self.batch_size, remedy="choose a whole number of rows, or 'auto'")

    def _first_rate(self, plan: DPSGDPlan) -> float:
        if isinstance(self.learning_rate_init, str) and self.learning_rate_init == "auto":
            return rule.ADAM_STEP if self.solver == "adam" else rule.network_learning_rate(plan)
        remedy = "choose a number above 0, or 'auto'"
        return check_real("learning_rate_init", self.learning_rate_init, above=0, remedy=remedy)

    def _schedule(self, start: float, plan: DPSGDPlan) -> Schedule:
        check_choice("learning_rate", self.learning_rate, ("constant", "linear", "cosine"))
        linear = self.learning_rate == "linear"
        end, n_steps = 0.5 * start if linear else 0.0, float(plan.n_steps)
        if self.learning_rate_end is not None:
            remedy = "choose a number from 0 up, or None"
            end = check_real("learning_rate_end", self.learning_rate_end, at_least=0, remedy=remedy)
        if self.decay_epochs is not None:
            remedy = "choose a number of epochs above 0, or None"
            n_steps = check_real("decay_epochs", self.decay_epochs, above=0, remedy=remedy) / plan.sampling.rate
        if self.learning_rate == "constant":
            return constant(start)
        return linear_decay(start, end, n_steps) if linear else cosine_decay(start, end, n_steps)

    def _optimizer(self, plan: DPSGDPlan, schedule: Schedule, shape: _Shape) -> Optimizer:
        check_choice("solver", self.solver, ("sgd", "adam"))
        penalty = self._penalty(shape)
        momentum, beta_1, beta_2 = (
            check_real(name, getattr(self, name), at_least=0, below=1, remedy="choose a number in [0, 1)")
            for name in ("momentum", "beta_1", "beta_2")
        )
        adam_epsilon = check_real(
            "adam_epsilon", self.adam_epsilon, at_least=0, remedy="choose a small number, such as 1e-8"
        )
        noise_variance = floor = 0.0
        if self.adam_noise_floor is not None:
            remedy = "choose a share of the noise's variance, such as 0.1, or None"
            share = check_real("adam_noise_floor", self.adam_noise_floor, above=0, remedy=remedy)
            noise_variance = (plan.mechanism.standard_deviation / plan.expected_lot_size) ** 2
            floor = share * noise_variance
        if self.solver == "sgd":
            return momentum_sgd(schedule, momentum, penalty)
        return adam(
            schedule, beta_1, beta_2, adam_epsilon,
            noise_variance=noise_variance, floor=floor, penalty=penalty,
        )  # fmt: skip

    def _penalty(self, shape: _Shape) -> Vector | float:
        alpha = check_real("alpha", self.alpha, at_least=0, remedy="choose 0 (no penalty) or a number above it")
        if alpha == 0.0:
            return 0.0
        penalty = np.zeros(shape.architecture.n_parameters)
        for layer, table in enumerate(shape.architecture.tables(penalty)):
            table[:-1] = alpha * (
                shape.unit**2 if layer == 0 else 1.0
            )  # the user's coefficients, as scaled rows see them
        return penalty

    def _averaging(self, n_steps: int) -> Averaging:
        if self.average is None:
            return last_iterate()
        check_choice("average", self.average, ("ema", "tail"))
        return tail_average(n_steps) if self.average == "tail" else ema_average(n_steps)

    # --- parameters of scaled rows, and of the user's ---

    def _start(self, run: Run, outputs: Outputs, dtype: Any, stream: SecretStream, *, go_on: bool) -> Vector:
        architecture: Architecture = run.shape.architecture
        theta = np.zeros(architecture.n_parameters, self._arithmetic(dtype))
        tables = architecture.tables(theta)
        if go_on:
            for layer, table in enumerate(tables):
                table[:-1] = self.coefs_[layer] / (run.shape.unit if layer == 0 else 1.0)
                table[-1] = self.intercepts_[layer]
            return theta
        draws = stream.spawn("initial weights")
        gain = 2.0 if self.activation == "relu" else 1.0  # He et al. 2015; the last layer starts at zero
        for table in tables[:-1]:
            weights = table[:-1]
            weights[:] = draws.normal(weights.size).reshape(weights.shape) * math.sqrt(gain / len(weights))
        return theta

    def _check_present(self, run: Run, outputs: Outputs) -> None:
        architecture: Architecture = run.shape.architecture
        out_activation = architecture.out_activation
        if out_activation != self.out_activation_:
            raise ValueError(
                f"y asks for {out_activation!r} outputs where those of earlier instalments are "
                f"{self.out_activation_!r}: give one class a row, or one column a label, as before, or start again "
                "with fit and warm_start=False."
            )
        present = [coef.shape for coef in self.coefs_]
        if present != list(zip(architecture.widths, architecture.widths[1:], strict=False)):
            raise ValueError(
                f"hidden_layer_sizes={self.hidden_layer_sizes!r} does not fit the layers of earlier instalments, "
                f"{present}: use the same, or start again with fit and warm_start=False."
            )

    def _arithmetic(self, dtype: Any) -> Any:
        """The dtype of products: where a row more shifts all others to other places, rounding asks for float64."""
        return np.float64 if self.adjacency == "add_remove" else dtype

    def _bind(self, X: Any, targets: Targets, weights: Any, run: Run) -> NetworkModel:
        shape: _Shape = run.shape
        labels = targets.labels
        if shape.architecture.out_activation == "logistic":
            labels = labels.reshape(len(labels), targets.outputs.n_outputs).astype(np.float32)
        return NetworkModel(
            X, labels, weights, shape.architecture, shape.clip,
            radius=run.radius, unit=shape.unit, dtype=self._arithmetic(X.dtype), batch_size=shape.batch_size,
        )  # fmt: skip

    def _set_parameters(self, theta: Vector, outputs: Outputs, run: Run) -> None:
        tables = run.shape.architecture.tables(theta)
        units = [run.shape.unit] + [1.0] * (len(tables) - 1)
        self.coefs_ = [table[:-1] * table.dtype.type(unit) for table, unit in zip(tables, units, strict=True)]
        self.intercepts_ = [table[-1].copy() for table in tables]
        self.n_layers_ = len(tables) + 1
        self.n_outputs_ = outputs.n_outputs
        self.out_activation_ = run.shape.architecture.out_activation
        self.learning_rate_init_ = run.learning_rate

    # --- predictions ---

    def _scores(self, X: Any) -> NDArray[np.floating]:
        return network_scores(X, self.data_norm_, self.coefs_, self.intercepts_, self.activation)

    def _outputs_are_labels(self, scores: NDArray[np.floating]) -> bool:
        return scores.shape[1] > 1 and self.out_activation_ == "logistic"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


def _listed(value: Any) -> Any:
    """An array as a list, or as the number that one without dimensions holds; anything else as it is."""
    return value.tolist() if isinstance(value, np.ndarray) else value
