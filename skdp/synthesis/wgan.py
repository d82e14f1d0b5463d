"""Private synthetic rows from a generative adversarial network."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, field
from functools import partial
from typing import Any, Self

import numpy as np

from skdp._checks.parameters import check_count, check_real, public_bounds, public_n, reject_fit_params
from skdp._checks.rows import check_table
from skdp._dpsgd.estimator import StepProgress
from skdp._dpsgd.plan import DPSGDPlan, event_of_steps
from skdp.accounting import DpEvent, GaussianDpEvent, compose
from skdp.base.budget import cost_of, read_budget
from skdp.base.estimator import with_parameters
from skdp.base.fit import begin
from skdp.base.private_step import StepPlan, traits_of
from skdp.mechanisms.bounded_sum import onto_simplex
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.sampling import Sampling, sampling_at
from skdp.mechanisms.streams import SecretStream
from skdp.synthesis.adversaries import LOT_SIZE, Adversaries
from skdp.synthesis.generator import ClassesAndCodes, GeneratorNetwork, PrivateGenerator

COUNT_NOISE = 10.0
"""Noise multiplier of the class counts, divided by that of the steps: they have a hundredth of the budget."""

_STEPS = 5_000
_DRAWN_ROWS = 8192


@with_parameters
class DPWGAN(PrivateGenerator):
    """Differentially private generative adversarial network (Wasserstein GAN with gradient penalty).

    A critic learns to distinguish private rows from generated ones, by DP-SGD with Adam. The generator learns from the
    critic, which is post-processing. For tables, `DPMarginalSynthesizer` has better quality at the same privacy cost.
    This class implements the method of Schwabedal et al. (2020) with correct accounting. See
    ``docs/synthetic_data.md``.

    Parameters
    ----------
    bounds : (float, float) or list of (float, float), default=None
        Public bounds of all columns, or of each column. Values are clipped to them. Required.
    epsilon : float, Risk or None, default=1.0
        Privacy budget of one ``fit``. A number, or a bound on membership-inference risk such as
        ``skdp.Risk(advantage=0.1)`` (``docs/membership_inference.md``). Must be None if `noise_multiplier` is set.
    delta : float or "auto", default="auto"
        The delta of the (epsilon, delta) guarantee; it must be well below 1/n, where n is the public number of rows.
        "auto" uses the delta of the accountant if it has one. Otherwise it is 1e-5 for at most 10,000 rows and 1/(10n),
        rounded down to a power of ten, for more.
    noise_multiplier : float or None, default=None
        Standard deviation of the noise of one step, divided by the clipping norm. If None, it is calibrated to
        `epsilon`.
    adjacency : {"zero_out", "replace_one"}, AddRemove or None, default=None
        Neighboring relation: how two neighboring tables differ in one row, or in all rows of one group:

        - "zero_out": it is replaced by a zeroed-out record, which adds nothing to any sum. The number of rows is
          public.
        - "replace_one": it is replaced by another one. The number of rows is public.
        - ``skdp.AddRemove(n_public=10_000)``: it is added or removed. The number of rows is private, and every rule
          uses `n_public`, a public number near it. The arithmetic is float64.

        None uses the relation of `accountant`, otherwise "zero_out".
    accountant : PrivacyAccountant, str, path-like or None, default=None
        Accountant that records the privacy cost of each fit, before anything is learned from the rows, and rejects a
        fit that exceeds its budget. A path refers to an existing budget file (see ``python -m skdp.accounting create``)
        and is made absolute.
    random_state : int, RandomState or Generator instance or None, default=None
        Source of the initial weights, sampling and noise. None draws a fresh secret key from the operating system. Any
        other value makes the fit reproducible and issues a `PrivacyLeakWarning`, because the guarantee does not hold
        against anyone who knows the value. It is independent of the `random_state` of ``sample``.
    classes : sequence or None, default=None
        All classes that can occur in `y`. If None, they are read from `y`; this is not covered by the guarantee, and a
        `PrivacyLeakWarning` is issued. Ignored without labels.
    critic_layer_sizes : sequence of int or int, default=(128,)
        Number of units in each hidden layer of a dense critic.
    image_shape : (int, int) or None, default=None
        Height and width of grayscale images, whose pixels are the columns in row-major order. If set, the critic is
        convolutional, with three layers of 5 x 5 patches and a stride of 2. A step takes about forty times as long.
    capacity : int, default=32
        Number of channels of the first layer of a convolutional critic.
    generator_layer_sizes : sequence of int or int, default=(256, 256)
        Number of units in each hidden layer of the generator.
    n_latent : int, default=64
        Dimension of the noise from which a row is generated.
    class_prevalences : {"estimate", "uniform"} or sequence of float, default="estimate"
        Class prevalences of samples and of generated rows in training: noisy counts, which consume about a hundredth of
        the budget; equal prevalences; or a public prevalence for each class in ascending order. Without labels, set
        "uniform" to save this part of the budget.
    critic_steps : int or "auto", default="auto"
        Number of critic steps for each generator step. "auto" is 5, or 10 for a noise multiplier of 1.5 or more.
    gradient_penalty : float, default=10.0
        Weight lambda of the gradient penalty.
    max_grad_norm : float, default=0.1
        Euclidean norm C to which the gradient of each row is clipped, over all layers.
    lot_size : float or None, default=None
        Expected number of rows in one step. Each row is drawn independently (Poisson sampling). This is a privacy
        parameter. If `lot_size` and `sampling_rate` are both None, it is 512, or a quarter of fewer than 2,048 rows.
    sampling_rate : float or None, default=None
        `lot_size` as a fraction of the number of rows, in (0, 1]. Set at most one of the two.
    max_iter : int or None, default=None
        Number of epochs of the critic. If None, the number of epochs that gives 5,000 steps.
    learning_rate_init : float, default=1e-3
        Step size of Adam for the critic.
    generator_learning_rate_init : float, default=1e-3
        Step size of Adam for the generator.
    weight_decay : float, default=0.1
        Weight decay of both networks: each step divides the parameters by 1 + step size x `weight_decay` (AdamW).
        Images need a larger value than tables (see Notes).
    beta_1 : float, default=0.5
        Decay rate of the first moment of Adam, in [0, 1).
    beta_2 : float, default=0.9
        Decay rate of the second moment of Adam, in [0, 1).
    adam_epsilon : float, default=1e-8
        Value added to the square root of the second moment of Adam.
    average : {"ema"} or None, default="ema"
        "ema" keeps an exponential moving average of the generator's iterates, over about a tenth of the steps; None
        keeps the last iterate.
    verbose : int, default=0
        If 1, show a progress bar on standard error, with the epsilon of the steps so far.

    Attributes
    ----------
    coefs_ : list of ndarray of shape (n_inputs, n_outputs)
        Weights of the generator's layers.
    intercepts_ : list of ndarray of shape (n_outputs,)
        Intercepts of the generator's layers.
    bounds_ : ndarray of shape (n_features, 2)
        Public bounds of the columns.
    classes_ : ndarray of shape (n_classes,)
        Class labels. Defined only if the generator was fitted with labels.
    class_prevalences_ : ndarray of shape (n_classes,)
        Class prevalences of the samples. Defined only if the generator was fitted with labels.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of columns seen during ``fit``. Defined only if all column names of `X` are strings.
    n_samples_ : int
        Public number n of rows.
    n_steps_ : int
        Number of steps of the critic.
    n_iter_ : int
        Number of epochs of the critic.
    noise_multiplier_ : float
        Noise multiplier of a step.
    sampling_rate_ : float
        Probability that a row is in the lot of a step.
    critic_steps_ : int
        Number of critic steps for each generator step.
    epsilon_ : float
        Epsilon of the fit at `delta_`, at most `epsilon`.
    delta_ : float
        Delta at which `epsilon_` is computed.
    adjacency_ : str
        Neighboring relation for which `epsilon_` holds.
    privacy_unit_ : {"row", "group"}
        Privacy unit: one row, or all rows of one group of `groups`.
    privacy_event_ : DpEvent
        Event of the fit, from which `epsilon_` is computed.

    See Also
    --------
    DPMarginalSynthesizer : Synthetic tables by noisy marginals.

    Notes
    -----
    **Guarantees.**

    - ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row, including its label, under `adjacency`, if
      `random_state` is None, and `classes` is set or there are no labels.
    - One row changes the sum of a step by at most `max_grad_norm`, including rounding within a block. Its label enters
      its own gradient alone, and the generated row of its pair is a function of noise and of this label. There is no
      batch normalization.
    - Sum and noise are divided by a public constant, the expected number of rows of a step.
    - The generator learns from the critic's noisy parameters, and from labels drawn with noisy or public class
      prevalences. It reads no private row.
    - `accountant` is charged before training reads the rows, and invalid input is rejected before any charge. An
      interrupted fit keeps its charge and the generator of the completed steps.
    - ``sample`` has no additional privacy cost, and a saved generator contains no row and no exact count.

    **Proof.** A fit makes one Gaussian release of the class counts, to which a row adds 1, if `class_prevalences` is
    "estimate"; then DP-SGD steps with clipping norm C. The privacy cost composes both.

    **Images.** On MNIST at epsilon 10, ``weight_decay=0.5, generator_learning_rate_init=4e-3, n_latent=24`` and
    ``max_iter=68`` increase the inception score from 0.58 to 0.83 of that of real digits. On tables of about a hundred
    columns these settings reduce the quality.

    The paper's code shuffles fixed batches, but accounts for them as Poisson samples. Here rows are drawn
    independently.

    References
    ----------
    Schwabedal, Michel & Riontino (2020), "Differentially private generation of small images".

    Gulrajani, Ahmed, Arjovsky, Dumoulin & Courville (2017), "Improved training of Wasserstein GANs".

    Abadi et al. (2016), "Deep learning with differential privacy".

    Loshchilov & Hutter (2019), "Decoupled weight decay regularization".

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.synthesis import DPWGAN
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 2000)
    >>> X = np.clip(rng.normal(0.3 + 0.4 * y[:, None], 0.1, (2000, 2)), 0, 1)
    >>> model = DPWGAN(bounds=(0, 1), classes=[0, 1], epsilon=4.0, max_iter=20, critic_layer_sizes=16).fit(X, y)
    >>> made, labels = model.sample(100, random_state=0)
    >>> made.shape, labels.shape, bool(model.epsilon_ <= 4.0)
    ((100, 2), (100,), True)
    """

    coefs_: list[np.ndarray] = field(init=False)
    intercepts_: list[np.ndarray] = field(init=False)
    bounds_: np.ndarray = field(init=False)
    _fitted_dtype: Any = field(init=False)

    bounds: Any = None
    _: KW_ONLY
    classes: Any = None
    critic_layer_sizes: Any = (128,)
    image_shape: Any = None
    capacity: int = 32
    generator_layer_sizes: Any = (256, 256)
    n_latent: int = 64
    class_prevalences: Any = "estimate"
    critic_steps: int | str = "auto"
    gradient_penalty: float = 10.0
    max_grad_norm: float = 0.1
    lot_size: float | None = None
    sampling_rate: float | None = None
    max_iter: int | None = None
    learning_rate_init: float = 1e-3
    generator_learning_rate_init: float = 1e-3
    weight_decay: float = 0.1
    beta_1: float = 0.5
    beta_2: float = 0.9
    adam_epsilon: float = 1e-8
    average: str | None = "ema"
    verbose: int = 0

    def fit(self, X: Any, y: Any = None, **fit_params: Any) -> Self:  # type: ignore[override]
        """Fit the generator.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Private rows.
        y : array-like of shape (n_samples,) or None, default=None
            Private labels. With them, ``sample`` returns labels too.
        **fit_params : dict of str to object
            Rejected: `sample_weight` and `groups` are not supported.

        Returns
        -------
        self : object
            Fitted generator.

        Raises
        ------
        TypeError, ValueError
            A parameter or the input is invalid. No budget was consumed.
        BudgetExceededError
            The budget of the accountant does not permit the fit. No budget was consumed.
        """
        reject_fit_params(fit_params, type(self).__name__)
        fit = begin(self, X)
        model = fit.model
        sampling, n_steps = model._read_run_parameters(fit.n, fit.n_features)
        fit.plan(partial(model._event_of_steps, sampling, n_steps))

        rows = fit.read_rows(check_table)
        labels = fit.read(model._read_labels, y, fit.n_rows, fit.n)
        fit.charge()

        steps = DPSGDPlan(sampling, model._check_clip(), fit.noise_multiplier, n_steps, sampling.rate * fit.n)
        n_done = fit.learn(model._train, steps, rows, labels, fit.run_stream(0), fit.n, part="steps")
        interrupted = f"after {n_done} of {n_steps} steps" if n_done < n_steps else ""
        return fit.publish(
            interrupted=interrupted, sampling_rate_=sampling.rate, n_samples_=fit.n, n_steps_=n_done,
            n_iter_=math.ceil(n_done * sampling.rate - 1e-9),
        )  # fmt: skip

    def _plan_step(self, n_samples: int, n_features: int) -> StepPlan:
        """See `PrivateEstimator`. The sampling is fixed, as it depends on the number of rows."""
        sampling, n_steps = self._sampling_and_steps(public_n(self, n_samples))
        return StepPlan(
            partial(self._event_of_steps, sampling, n_steps), {"lot_size": None, "sampling_rate": sampling.rate}
        )

    def _fault_of_lists(self, before: Any) -> str:
        """See `PrivateEstimator`: an image has a width of its own."""
        if self.image_shape is not None and not traits_of(before).width_is_public:
            return (
                "image_shape requires a known number of columns, but the previous step sets it. Set image_shape=None."
            )
        return super()._fault_of_lists(before)

    def _read_run_parameters(self, n: int, n_features: int | None) -> tuple[Sampling, int]:
        """Reject parameters that are unusable for a table with so many columns; return the sampling and the steps."""
        self._check_label_parameters()
        found = self._sampling_and_steps(n)
        Adversaries.of(self, n_features, 0, 1.0)
        public_bounds(self.bounds, n_features)
        self._check_clip()
        return found

    def _read_labels(self, y: Any, n_samples: int, n_public: int) -> ClassesAndCodes | None:
        found = super()._read_labels(y, n_samples, n_public)
        if found is not None and n_public < len(found[0]):
            raise ValueError(
                f"`X` must have at least one row per class ({len(found[0])}). Use more rows, or fit without labels."
            )
        return found

    def _train(
        self, steps: DPSGDPlan, rows: np.ndarray, labels: ClassesAndCodes | None, stream: SecretStream, n_public: int
    ) -> int:
        """Train the networks, and return the number of steps made, fewer if it was interrupted."""
        # Classes and their prevalences come first, if there are labels.
        codes, shares = np.zeros(0, np.int64), np.zeros(0)
        if labels is not None:
            self.classes_, codes = labels
            shares = self._settle_shares(steps, codes, stream, n_public)
        networks = Adversaries.of(self, rows.shape[1], len(shares), steps.noise_multiplier)
        self.bounds_, self.critic_steps_ = public_bounds(self.bounds, rows.shape[1]), networks.critic_steps
        progress = self._make_progress(steps)
        # If one row shifts the places of all others, rounding requires float64.
        dtype = np.float64 if self.adjacency == "add_remove" else np.float32
        try:
            tables, n_done = networks.train(steps, rows, codes, self.bounds_, shares, stream, progress, dtype=dtype)
        finally:
            if progress is not None:
                progress.close()
        self.coefs_ = [table[:-1].copy() for table in tables]
        self.intercepts_ = [table[-1].copy() for table in tables]
        self._fitted_dtype = rows.dtype
        return n_done

    def _settle_shares(self, steps: DPSGDPlan, codes: np.ndarray, stream: SecretStream, n_public: int) -> np.ndarray:
        """Release the class counts if they are estimated, and store the class prevalences."""
        estimated = np.zeros(0)
        if self._estimates_shares():
            counts = np.bincount(codes, minlength=len(self.classes_)).astype(np.float64)
            noisy = GaussianMechanism(COUNT_NOISE * steps.noise_multiplier, 1.0).release(counts, stream.spawn("counts"))
            estimated = onto_simplex(noisy / n_public)
        self.class_prevalences_ = self._chosen_shares(estimated)
        return self.class_prevalences_

    # --- rules in public quantities, and checks ---

    def _event_of_steps(self, sampling: Sampling, n_steps: int, noise_multiplier: float) -> DpEvent:
        """Event of a fit: the steps, and the class counts if they are estimated."""
        steps = event_of_steps(sampling, n_steps, noise_multiplier)
        if not self._estimates_shares():
            return steps
        return compose([GaussianDpEvent(COUNT_NOISE * noise_multiplier), steps])

    def _sampling_and_steps(self, n: int) -> tuple[Sampling, int]:
        sampling = self._chosen_sampling(n) or sampling_at(min(LOT_SIZE / n, 0.25))
        if self.max_iter is None:
            return sampling, _STEPS
        constraint = "a positive integer number of epochs, or None for the default"
        n_epochs = check_count("max_iter", self.max_iter, constraint=constraint)
        return sampling, math.ceil(n_epochs / sampling.rate)

    def _check_clip(self) -> float:
        constraint = "a number from 1e-10 to 1e10, such as 0.1"
        return check_real("max_grad_norm", self.max_grad_norm, at_least=1e-10, at_most=1e10, constraint=constraint)

    def _make_progress(self, steps: DPSGDPlan) -> StepProgress | None:
        if not self.verbose:
            return None
        budget = read_budget(self)

        def epsilon_of(n_steps: int) -> float:
            event = self._event_of_steps(steps.sampling, n_steps, steps.noise_multiplier)
            return cost_of(budget, event).epsilon

        return StepProgress(steps.n_steps, epsilon_of)

    # --- samples ---

    def _draw(self, n: int, labels: np.ndarray | None, rng: np.random.Generator) -> tuple[Any, np.ndarray | None]:
        n_classes, hidden = 0 if labels is None else len(self.classes_), tuple(map(len, self.intercepts_[:-1]))
        generator = GeneratorNetwork(len(self.coefs_[0]) - n_classes, n_classes, hidden, self.n_features_in_)
        tables = [np.vstack(pair) for pair in zip(self.coefs_, self.intercepts_, strict=True)]
        theta = np.concatenate([table.ravel() for table in tables])
        low, high = self.bounds_.T
        X = np.empty((n, self.n_features_in_), self._fitted_dtype)
        for start in range(0, n, _DRAWN_ROWS):
            part = X[start : start + _DRAWN_ROWS]
            latent = rng.standard_normal((len(part), generator.n_latent), np.float32)
            codes = None if labels is None else labels[start : start + _DRAWN_ROWS]
            part[:] = low + (generator.rows(theta, latent, codes) + 1.0) * (0.5 * (high - low))
        return np.clip(X, low, high, out=X), labels
