"""Differentially private neural network regressors."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Self

from numpy.typing import ArrayLike

from skdp._dpsgd.network_solver import NetworkSolver, network_scorer
from skdp._dpsgd.solver import fit_run
from skdp._dpsgd.targets import REGRESSION_LOSSES, GradientRegressor
from skdp.base.estimator import with_parameters


@with_parameters
class DPMLPRegressor(GradientRegressor):
    """Differentially private multi-layer perceptron regressor.

    A network for targets between public bounds, trained with DP-SGD (Abadi et al. 2016): each step samples rows, clips
    the gradient of each row and adds Gaussian noise to their sum. All defaults depend on public quantities, so
    `epsilon` and `y_bounds` are often the only parameters to set. A tight `data_norm` helps most.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int or int, default=(32,)
        Number of units in each hidden layer.
    activation : {"identity", "logistic", "tanh", "relu"}, default="relu"
        Activation function of the hidden layers.
    loss : {"squared_error", "huber", "poisson"}, default="squared_error"
        "huber" is linear for errors beyond 5% of the range of `y_bounds`; "poisson" is for counts.
    y_bounds : (float, float) or None, default=None
        Public bounds on the targets. Targets beyond them are moved to the nearest bound, and so are predictions. If
        None, they are read from `y`; this is not covered by the guarantee, and a `PrivacyLeakWarning` is issued.
    y_transform : {"log"} or None, default=None
        "log" fits the logarithm of the targets, with public `y_bounds` above 0. Predictions then estimate a median.
    epsilon : float, Risk or None, default=1.0
        Privacy budget of one ``fit``, or a bound on the risk of membership inference such as
        ``skdp.Risk(advantage=0.1)`` (``docs/membership_inference.md``). None if `noise_multiplier` is set.
    delta : float or "auto", default="auto"
        The delta of the (epsilon, delta) guarantee; it must be well below 1/n, where n is the public number of rows.
        "auto" uses the delta of the accountant if it has one. Otherwise it is 1e-5 for at most 10,000 rows and 1/(10n),
        rounded down to a power of ten, for more.
    noise_multiplier : float or None, default=None
        Standard deviation of the noise of one step, divided by the clipping norm. If None, it is calibrated to
        `epsilon`.
    max_grad_norm : float, sequence of float or "auto", default="auto"
        Clipping norm C of the gradient of each row; a sequence sets one bound per layer (``clipping="per_layer"``).
        "auto" selects C for the loss.
    clipping : {"flat", "per_layer", "automatic"}, default="flat"
        Clip the whole gradient, the part of each layer separately, or scale each gradient to nearly C (Bu et al. 2023).
    data_norm : float or None, default=None
        Public bound on the Euclidean norm of a row. Rows are clipped to it. None uses the norm of rows transformed by
        `skdp.preprocessing.DPTableVectorizer`, and otherwise sqrt(n_features), which suits columns in [-1, 1].
    input_norm : float or "auto", default="auto"
        Norm to which a row of norm `data_norm` is scaled. "auto" is 3.
    lot_size : float or None, default=None
        Expected number of rows in one step. Each row is drawn independently (Poisson sampling). None selects it.
    sampling_rate : float or None, default=None
        `lot_size` as a fraction of the number of rows. Set at most one of the two.
    max_iter : int or None, default=None
        Number of epochs. None selects it.
    solver : {"sgd", "adam"}, default="sgd"
        Optimizer. DP-Adam is that of Schwabedal, Michel & Riontino (2020).
    learning_rate : {"constant", "linear", "cosine"}, default="linear"
        Schedule of the step size.
    learning_rate_init : float or "auto", default="auto"
        Initial step size. "auto" selects it.
    learning_rate_end : float, tuple (float, float) or None, default=None
        Final step size, or a pair with the number of epochs after which it is reached. None is half of the initial
        step size for "linear" and 0 for "cosine".
    momentum : float, default=0.9
        Momentum in [0, 1), with dampening: ``v = momentum * v + (1 - momentum) * gradient``.
    beta_1, beta_2 : float, default=0.9, 0.999
        Decay rates of Adam, in [0, 1).
    adam_epsilon : float, default=1e-8
        Value added to the denominator of Adam.
    average : {"ema", "tail"} or None, default="ema"
        Exponential moving average of the iterates ("ema"), mean over the second half of the steps ("tail"), or the
        last iterate (None).
    alpha : float, default=0.0
        Strength of the L2 penalty ``alpha / 2 * ||coefs_||**2``.
    batch_size : int or "auto", default="auto"
        Number of rows that are processed at once.
    weight_bound : float or None, default=None
        Public upper bound of `sample_weight`. Weights are clipped to it and divided by it. Choose the largest weight
        that can occur, or a value that few weights exceed: the effect of the noise grows with the bound divided by the
        mean weight. None is a bound of 1.
    adjacency : {"zero_out", "replace_one"}, AddRemove or None, default=None
        Neighboring relation: how two neighboring tables differ in one row, or in all rows of one group: it is replaced
        by a zeroed-out record ("zero_out"), replaced by another one ("replace_one"), or added or removed, with a
        private number of rows (``skdp.AddRemove(n_public=10_000)``). None uses the relation of `accountant`, otherwise
        "zero_out".
    accountant : PrivacyAccountant, str, path-like or None, default=None
        Accountant that records the privacy cost of each fit, before anything is learned from the rows, and rejects a
        fit that exceeds its budget. A path refers to an existing budget file (see ``python -m skdp.accounting create``)
        and is made absolute.
    checkpoint : str, path-like or None, default=None
        File that stores the state until the fit completes. An interrupted ``fit`` with the same parameters and rows
        resumes from it at no privacy cost.
    warm_start : bool, default=False
        If True, ``fit`` starts from the current coefficients, and `epsilon_` covers all calls.
    merge_equal_rows : {"auto", True, False}, default="auto"
        Whether equal rows, with equal targets and weights, are found once and then computed once a step
        (``docs/limitations.md``).
    random_state : int, RandomState or Generator instance or None, default=None
        Source of the initial weights, sampling and noise. None draws a fresh secret key from the operating system. Any
        other value makes the fit reproducible and issues a `PrivacyLeakWarning`, because the guarantee does not hold
        against anyone who knows the value.
    verbose : int, default=0
        If 1, show a progress bar with the privacy cost so far.

    Attributes
    ----------
    coefs_ : list of ndarray of shape (n_inputs, n_outputs)
        Weights of the layers, for the original rows and scaled targets.
    intercepts_ : list of ndarray of shape (n_outputs,)
        Intercepts of the layers.
    n_layers_ : int
        Number of layers, including the input.
    n_outputs_ : int
        Number of outputs.
    out_activation_ : {"identity", "exp"}
        Activation function of the output layer; "exp" for ``loss="poisson"``.
    y_bounds_ : (float, float)
        Bounds of targets and predictions.
    weight_bound_ : float
        Bound of the weights in the last run.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of columns, if all are strings.
    epsilon_ : float
        Privacy cost of the fitted state at `delta_`, over all calls of ``fit`` with `warm_start` and of
        ``partial_fit``.
    delta_ : float
        Delta at which `epsilon_` is computed.
    adjacency_ : str
        Neighboring relation for which `epsilon_` holds.
    privacy_unit_ : {"row", "group"}
        Privacy unit: one row, or all rows of one group.
    privacy_event_ : DpEvent
        Event whose privacy cost is `epsilon_`.
    noise_multiplier_ : float
        Noise multiplier of the last run; if it varies, the constant value of equal privacy cost.
    sampling_rate_ : float
        Sampling rate of the last run.
    max_grad_norm_ : float
        Clipping norm of the last run.
    data_norm_ : float
        Norm to which rows were clipped in the last run.
    learning_rate_init_ : float
        Initial step size of the last run.
    n_iter_ : int
        Number of epochs over all runs.
    n_steps_ : int
        Number of steps over all runs.

    See Also
    --------
    DPMLPClassifier : Classifier trained in the same way.
    DPGridSearchCV : Private hyperparameter search.
    allocate_budget : One budget for a pipeline.

    Notes
    -----
    **Guarantees.**

    - ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `y_bounds` is given and
      `random_state` is None.
    - One row changes the sum of a step by at most `max_grad_norm_`, for any row and weight, including the rounding of
      the sum.
    - The noisy sum is divided by a public constant.
    - With `groups` all of this holds for all rows of one group: the sum of their clipped gradients, and each other sum
      over them, is clipped again.
    - `intercepts_` are corrected by a function of noisy sums over the rows, which are released once, after the last
      step. These sums use 2% of the squared mu of a fit to all rows and are part of `privacy_event_`.
    - `accountant` is charged before the rows are read; an interrupted fit keeps its charge and the model of the
      completed steps.
    - Invalid input (NaN, infinity, negative counts, negative weights) is rejected before any charge; data that are not
      in memory are checked after it. Such an error depends on the data and is not covered.
    - The initial weights are random and do not depend on the rows.

    The network fits ``(y - middle) / half`` for the center and half of the range of
    `y_bounds`. For "poisson" it fits the logarithm of the mean of ``y / r``, where ``r`` is the square root of the
    largest count.

    See ``docs/choosing_an_estimator.md`` and ``docs/limitations.md``.

    References
    ----------
    Abadi et al. (2016), "Deep learning with differential privacy".

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPMLPRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(20_000, 3))
    >>> y = X[:, 0] * X[:, 1] + X[:, 2]
    >>> model = DPMLPRegressor(y_bounds=(-2, 2), epsilon=1.0).fit(X, y)
    >>> print(f"{model.score(X, y):.1f}")
    1.0
    """

    _streams = True

    hidden_layer_sizes: Any = (32,)
    activation: str = "relu"
    _: KW_ONLY
    loss: str = "squared_error"
    y_bounds: Any = None
    y_transform: str | None = None
    epsilon: Any = 1.0
    delta: float | str = "auto"
    noise_multiplier: float | None = None
    max_grad_norm: Any = "auto"
    clipping: str = "flat"
    data_norm: float | None = None
    input_norm: float | str = "auto"
    lot_size: float | None = None
    sampling_rate: float | None = None
    max_iter: int | None = None
    solver: str = "sgd"
    learning_rate: str = "linear"
    learning_rate_init: float | str = "auto"
    learning_rate_end: float | tuple[float, float] | None = None
    momentum: float = 0.9
    beta_1: float = 0.9
    beta_2: float = 0.999
    adam_epsilon: float = 1e-8
    average: str | None = "ema"
    alpha: float = 0.0
    batch_size: int | str = "auto"
    weight_bound: Any = None
    adjacency: Any = None
    accountant: Any = None
    checkpoint: Any = None
    warm_start: bool = False
    merge_equal_rows: bool | str = "auto"
    random_state: Any = None
    verbose: int = 0

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: Any = None) -> Self:
        """Fit the regressor.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Private rows. float32 input is kept as float32. C-ordered arrays and CSR matrices are not copied. Data that
            are not in memory (memory maps and `skdp.datasets.TableRows`) are also accepted; `y` and `sample_weight` can
            then be column names.
        y : array-like of shape (n_samples,)
            Private targets. Those beyond `y_bounds` are moved to the nearest bound.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Private, nonnegative weights. They are divided by `weight_bound` and clipped to [0, 1], and then multiply
            the clipped gradients. So no weight raises a row above the clipping norm, and a row of weight 0 has no
            influence.
        groups : array-like of shape (n_samples,), str or None, default=None
            Private group identifier of each row, such as a person or a household, or the name of a column of `X`, which
            is then not used as a feature. The guarantee then holds for all rows of one group together.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            A parameter or the input is invalid. No budget was charged, unless the message says so: data that are not in
            memory are read after the charge.
        BudgetExceededError
            The fit exceeds the budget of the accountant. No budget was charged, and no step was made.
        """
        return fit_run(self, X, y, sample_weight, groups, warm=bool(self.warm_start) and self._has_run())

    def _solver(self, target: Any, n_features: int, *, anew: bool = True) -> NetworkSolver:
        return NetworkSolver(self, target, lambda n_outputs: REGRESSION_LOSSES[self.loss].rule, anew=anew)

    _scorer = network_scorer
