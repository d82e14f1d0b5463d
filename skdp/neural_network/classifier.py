"""Private neural network classifiers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from skdp._checks.parameters import show
from skdp._checks.rows import number_of_columns
from skdp._checks.weights import WeightReader
from skdp._dpsgd import defaults as rule
from skdp._dpsgd.models.network import network_scores
from skdp._dpsgd.network_solver import NetworkSolver
from skdp._dpsgd.solver import fit_run
from skdp._dpsgd.targets import Classification, GradientClassifier, Outputs
from skdp.base.estimator import with_parameters


@with_parameters
class DPMLPClassifier(GradientClassifier):
    """Differentially private multi-layer perceptron classifier.

    The model minimizes the logistic loss for two classes and for several labels per row, and the multinomial loss for
    more than two classes. It is trained by noisy gradient descent (DP-SGD, Abadi et al. 2016): each step draws rows at
    random, clips the gradient of every row over all layers, sums the clipped gradients and adds Gaussian noise to the
    sum. The defaults depend on public quantities only, so `epsilon` is often the only parameter to set. If a tight
    bound on the norm of the rows is known, setting `data_norm` helps most.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int or int, default=(100,)
        Number of units in each hidden layer.
    activation : {"identity", "logistic", "tanh", "relu"}, default="relu"
        Activation function of the hidden layers.
    epsilon : float, Risk or None, default=1.0
        Privacy budget of one ``fit``, to which the noise is calibrated. A number, or a bound on the risk of membership
        inference such as ``skdp.Risk(advantage=0.1)`` (``docs/membership_inference.md``). Must be None if
        `noise_multiplier` is given.
    delta : float or "auto", default="auto"
        The delta of the (epsilon, delta) guarantee; it must be well below 1/n, where n is the public number of rows.
        "auto" uses the delta of the accountant if it has one. Otherwise it is 1e-5 for at most 10,000 rows and 1/(10n),
        rounded down to a power of ten, for more. Later instalments (`warm_start`, ``partial_fit``) keep the first.
    noise_multiplier : float or None, default=None
        Standard deviation of the noise of one step, divided by the clipping norm. If None, it is calibrated to
        `epsilon`.
    max_grad_norm : float, sequence of float or "auto", default="auto"
        Euclidean norm C to which the gradient of each row is clipped. With ``clipping="per_layer"`` a sequence gives
        one bound per layer, and C is the root of the sum of their squares; a number is C and is split equally. With two
        classes a row is shortened by the factor that the longer of the gradients of both labels needs, so that the clip
        moves no probability; with more, or several labels, a small C makes probabilities extreme and rare classes
        rarer. If "auto", C is 2 for two classes and 6 otherwise.
    clipping : {"flat", "per_layer", "automatic"}, default="flat"
        How gradients are clipped:

        - "flat" bounds the whole gradient.
        - "per_layer" bounds the part of each layer.
        - "automatic" scales every gradient to a norm of nearly C (Bu et al. 2023).
    data_norm : float or None, default=None
        Public bound on the Euclidean norm of a row. Rows are clipped to it, in ``fit`` and in predictions. None uses
        the public norm of rows that `skdp.preprocessing.DPTableVectorizer` has transformed, and otherwise
        sqrt(n_features), which suits columns in [-1, 1] and reads no data.
    input_norm : float or "auto", default="auto"
        Norm of an input row that has norm `data_norm`: rows are multiplied by ``input_norm / data_norm``. Under noise
        this scale matters more than any other choice. "auto" is 8, or 4 for rows of
        `skdp.preprocessing.DPTableVectorizer`, which bring their exact norm along.
    lot_size : float or None, default=None
        Expected number of rows in one step. Each row is drawn independently (Poisson sampling). This is a privacy
        parameter. If `lot_size` and `sampling_rate` are both None, the rate is chosen by rule.
    sampling_rate : float or None, default=None
        `lot_size` as a fraction of the number of rows, in (0, 1]. Set at most one of the two.
    max_iter : int or None, default=None
        Number of epochs. If None, it is chosen by rule.
    solver : {"sgd", "adam"}, default="sgd"
        Optimizer of the noisy gradients.
    learning_rate : {"constant", "linear", "cosine"}, default="linear"
        Schedule that leads from `learning_rate_init` to `learning_rate_end`.
    learning_rate_init : float or "auto", default="auto"
        Initial step size for the scaled rows and the mean gradient. If "auto", it is chosen from public quantities.
    learning_rate_end : float, tuple (float, float) or None, default=None
        Final step size. A pair is the final step size and the number of epochs after which it is reached; otherwise it
        is reached after all epochs. If None, half of the initial one for "linear" and 0 for "cosine".
    momentum : float, default=0.9
        Momentum in [0, 1), with dampening: ``v = momentum * v + (1 - momentum) * gradient``. Only used if
        ``solver="sgd"``.
    beta_1 : float, default=0.9
        Decay rate of the first moment, in [0, 1). Only used if ``solver="adam"``.
    beta_2 : float, default=0.999
        Decay rate of the second moment, in [0, 1). Only used if ``solver="adam"``.
    adam_epsilon : float, default=1e-8
        Value added to the root of the second moment. Only used if ``solver="adam"``.
    average : {"ema", "tail"} or None, default="ema"
        Average of the iterates that is returned: an exponential moving average over about a tenth of the steps ("ema"),
        or the mean over the second half of the steps ("tail"). Averaging is post-processing and costs no privacy. None
        returns the last iterate.
    alpha : float, default=0.0
        Strength of the L2 penalty ``alpha / 2 * ||coefs_||**2``, which is added to the mean loss.
    batch_size : int or "auto", default="auto"
        Number of rows that pass through the network at once. It affects memory and speed only.
    classes : sequence or None, default=None
        All classes that can occur in `y`. If None, they are read from `y`; this is not covered by the guarantee, and a
        `PrivacyLeakWarning` is issued. With several labels per row, names of the labels.
    class_weight : dict of class to float, or None, default=None
        Public weights of the classes; a class that is not named has weight 1. They are divided by the largest, so only
        their ratios count, and multiply clipped gradients, as weights of rows do. "balanced" would read the labels and
        is refused: give ``1 / share`` with public shares of the classes. Refused with several labels per row.
    weight_bound : float or None, default=None
        Public upper bound of `sample_weight`. Weights are clipped to it and divided by it. Choose the largest weight
        that can occur, or a value that few weights exceed: the effect of the noise grows with the bound divided by the
        mean weight. None is a bound of 1, and a fit with weights then warns that larger weights are clipped to it.
    adjacency : {"zero_out", "replace_one"}, AddRemove or None, default=None
        Neighboring relation: how two neighboring tables differ in one row, or in all rows of one group:

        - "zero_out": it is replaced by a zeroed-out record, which adds nothing to any sum. The number of rows is
          public.
        - "replace_one": it is replaced by another one. The number of rows is public.
        - ``skdp.AddRemove(n_public=10_000)``: it is added or removed. The number of rows is private, and the arithmetic
          is float64, and every rule uses `n_public`, a public number near it.

        None uses the relation of `accountant`, otherwise "zero_out".
    accountant : PrivacyAccountant, str, path-like or None, default=None
        Accountant that records the privacy cost of each fit, before anything is learned from the rows, and rejects a
        fit that exceeds its budget. A path refers to an existing budget file (see ``python -m skdp.accounting create``)
        and is made absolute.
    checkpoint : str, path-like or None, default=None
        File that stores the state of the fit until it completes. An interrupted ``fit`` resumes from it when it is
        called again with the same parameters and rows, and an accountant that already recorded the fit is not charged
        again. The file is removed when the fit completes. While a fit uses the file, a lock on ``<checkpoint>.lock``
        rejects any other fit that uses it, before that fit is charged.
    warm_start : bool, default=False
        If True, ``fit`` starts from the current coefficients, and `epsilon_` covers all calls.
    merge_equal_rows : {"auto", True, False}, default="auto"
        Whether equal rows, with equal targets and weights, are found once and then computed once a step: the same
        mechanism in less time, except for rounding. "auto" does so where a lot is expected to have 4,096 rows or more
        and eight times as many as there are distinct ones, and where rows are float64: those that are grouped are
        computed in float64. True does so in any case. How long a fit takes then depends on how rows repeat (see
        ``docs/limitations.md``).
    random_state : int, RandomState or Generator instance or None, default=None
        Source of the initial weights, sampling and noise. None draws a fresh secret key from the operating system. Any
        other value makes the fit reproducible and issues a `PrivacyLeakWarning`, because the guarantee does not hold
        against anyone who knows the value.
    verbose : int, default=0
        If 1, show a progress bar on standard error, with the epsilon of the steps so far.

    Attributes
    ----------
    coefs_ : list of ndarray of shape (n_inputs, n_outputs)
        Weights of the layers. The first layer applies to rows as they are passed, before scaling by `input_norm`.
    intercepts_ : list of ndarray of shape (n_outputs,)
        Intercepts of the layers.
    n_layers_ : int
        Number of layers, including the input layer.
    n_outputs_ : int
        Number of outputs.
    out_activation_ : {"logistic", "softmax"}
        Activation function of the output layer.
    classes_ : ndarray of shape (n_classes,)
        Class labels known to the classifier, or the names of the labels.
    weight_bound_ : float
        Bound by which weights were divided in the last run; 1.0 for ``weight_bound=None``.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of columns seen during ``fit``. Defined only if all column names of `X` are strings.
    epsilon_ : float
        Joint price, at `delta_`, of everything on which the fitted state depends: all calls of ``fit`` with
        `warm_start` and of ``partial_fit``. At most `epsilon` after a single fit.
    delta_ : float
        Delta at which `epsilon_` is computed.
    adjacency_ : str
        Neighbouring relation for which `epsilon_` holds.
    privacy_unit_ : {"row", "group"}
        What the guarantee is for: one row, or all rows with one label of `groups`.
    privacy_event_ : DpEvent
        Event that `epsilon_` is the price of.
    noise_multiplier_ : float
        Noise multiplier of the last run, or of constant noise of the same price where early steps have less noise than
        late ones, as in `skdp.DPLogisticRegression`.
    sampling_rate_ : float
        Sampling rate of the last run.
    max_grad_norm_ : float
        Clipping norm of the last run.
    data_norm_ : float
        Bound to which rows were scaled down in the last run.
    learning_rate_init_ : float
        Initial step size of the last run.
    n_iter_ : int
        Number of epochs over all runs.
    n_steps_ : int
        Number of steps over all runs.

    See Also
    --------
    DPLogisticRegression : Linear classifier trained in the same way.
    DPGridSearchCV : Private choice of parameters.
    allocate_budget : One budget for a pipeline of private steps.

    Notes
    -----
    **Guarantees.**

    - ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `classes` is given and
      `random_state` is None.
    - One row moves the sum of a step by at most `max_grad_norm_`, whatever it and its weight contain, the rounding of
      the sum included.
    - Sum and noise are divided by a public constant, the expected number of rows of a step.
    - With `groups` all of this holds for all rows of one label together: their clipped gradients are added up, and the
      sum is clipped to `max_grad_norm_` again. So are other sums over rows, each to what one row may add.
    - `intercepts_` are those of the last step, moved by a function of sums over the rows, of probabilities and of what
      these lack, which are released once, with noise, after the last step.
    - A first run starts at scores that are a function of the counts of the classes, which are released once, with
      noise, before the first step, unless the constructor names three classes or labels, or more. Counts and
      sums have 1 % of mu**2 of a fit to all rows each, sums without counts 2 %, and are part of `privacy_event_`.
    - `accountant` is charged before the rows are read; an interrupted fit keeps its charge, and the model of the steps
      done.
    - Input that is refused (NaN, infinity, unknown labels, negative weights) is refused before any charge, or after it
      in the block that holds it if the rows are not in memory. Such a refusal depends on the data and is not covered.
    - The initial weights are random and depend on no row.

    **When to use it.** On tables `skdp.DPRandomTreesClassifier` is ahead, and so is `DPLogisticRegression`
    unless columns interact and the budget is not tiny.
    With the defaults and rows of `skdp.preprocessing.DPTableVectorizer`, AUROC at epsilon .1, 1 and 4 was .756, .792
    and .802 on Fulton (who is married; linear .765, .785 and .785), .874, .912 and .916 on Adult (.887, .914 and .917),
    and .734, .759 and .768 on credit default (.740, .763 and .772): means of three splits of four fifths each.

    The parameters and attributes ``early_stopping``, ``tol`` and ``loss_curve_`` of scikit-learn are not offered: they
    read private data without paying. Its ``epsilon``, a parameter of Adam, is called `adam_epsilon` here. The guarantee
    does not cover floating-point rounding of the noise, nor the time that a fit takes (see ``docs/limitations.md``).

    References
    ----------
    Abadi et al. (2016), "Deep learning with differential privacy".

    Bu, Wang, Zha & Karypis (2023), "Automatic clipping".

    Schwabedal, Michel & Riontino (2020), "Differentially private generation of small images", for DP-Adam.

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

    _streams = True

    hidden_layer_sizes: Any = (100,)
    activation: str = "relu"
    _: KW_ONLY
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
    classes: Any = None
    class_weight: Any = None
    weight_bound: Any = None
    adjacency: Any = None
    accountant: Any = None
    checkpoint: Any = None
    warm_start: bool = False
    merge_equal_rows: bool | str = "auto"
    random_state: Any = None
    verbose: int = 0

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: Any = None) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Private rows. float32 input is kept as float32. C-ordered arrays and CSR matrices are not copied. Rows that
            are not in memory, memory maps and `skdp.datasets.TableRows`, are taken too, and then the name of a column
            as `y` and as `sample_weight`.
        y : array-like of shape (n_samples,)
            Private labels.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Private, nonnegative weights, which are divided by `weight_bound` and cut at it. The gradient of a row is
            clipped first and then multiplied by the result, a number in [0, 1]: no weight raises a row above the
            clipping norm, and proportions are kept. A row of weight 0 is a null row.

        groups : array-like of shape (n_samples,), str or None, default=None
            Private label of the unit of each row, such as a person or a household, or the name of a column of `X`,
            which is no feature then. The guarantee is then for all rows of one label together, else for one row.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            A parameter or the input is invalid. Nothing was charged, unless the message says so: rows that are not in
            memory are read after the charge.
        BudgetExceededError
            The budget of the accountant does not admit the fit. Nothing was charged, and no step was made.
        """
        return fit_run(self, X, y, sample_weight, groups, warm=bool(self.warm_start) and self._has_run())

    def _solver(self, target: Any, n_features: int, *, anew: bool = True) -> NetworkSolver:
        return NetworkSolver(self, target, self._rule_of, np.float32, anew=anew)  # 0 and 1 are exact in any dtype

    def _rule_of(self, n_outputs: int) -> rule.NetworkRule:
        found = rule.ONE_OUTPUT if n_outputs == 1 else rule.SEVERAL_OUTPUTS
        return found if self._fitted_row_norm is None else found._replace(input_norm=rule.TABLE_INPUT_NORM)

    def _target(self) -> ClassesOrLabels:
        return ClassesOrLabels(WeightReader.of(self.weight_bound), self.classes, self.class_weight)

    # --- predictions ---

    def _scorer(self) -> Callable[[Any], np.ndarray]:
        return partial(
            network_scores, radius=self.data_norm_, coefs=self.coefs_, intercepts=self.intercepts_,
            activation=self.activation,
        )  # fmt: skip

    def _outputs_are_labels(self, scores: np.ndarray) -> bool:
        return scores.shape[1] > 1 and self.out_activation_ == "logistic"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


@dataclass(frozen=True)
class ClassesOrLabels(Classification):
    """One class a row, or several labels a row, as columns of 0 and 1."""

    takes_labels: ClassVar[bool] = True

    @property
    def starts_at_counts(self) -> bool:  # type: ignore[override]
        """See `Target`. Networks of several outputs gain nothing by it, where the constructor names these."""
        return self.named is None or self.named.n_outputs == 1

    def resolve(self, y: Any, given: Any, fitted: Any) -> Outputs | None:
        n_columns = 1 if y is None else number_of_columns(y)
        if n_columns == 1:
            return super().resolve(y, given, fitted)
        classes = self.classes if given is None else given
        known = np.arange(n_columns) if fitted is None else fitted.classes_
        labels = known if classes is None else np.asarray(list(classes) if isinstance(classes, Iterable) else [])
        if len(labels) != n_columns or (fitted is not None and not np.array_equal(labels, known)):
            raise ValueError(
                f"classes={classes!r} does not name the {n_columns} columns of y as earlier runs did: give one "
                "name a column, or None."
            )
        if self.class_weight is not None:
            raise ValueError(
                f"class_weight={show(self.class_weight)} with several labels a row, of which none is its "
                "class: set class_weight=None, or give sample_weight."
            )
        return Outputs(labels, n_columns, multilabel=True)
