"""Private synthetic numeric rows with labels, such as images."""

from __future__ import annotations

from dataclasses import KW_ONLY, field
from typing import Any

import numpy as np

from skdp._checks.parameters import check_count, public_bounds
from skdp._checks.rows import check_table
from skdp._checks.weights import WeightReader, weight_of_each
from skdp.accounting import GaussianDpEvent
from skdp.base.estimator import with_parameters
from skdp.base.fit import Fit
from skdp.base.private_step import StepPlan
from skdp.mechanisms.bounded_sum import clip_groups
from skdp.synthesis.class_mixture import Box, ClassMixture, ClassRows
from skdp.synthesis.class_moments import ClassMeasurement
from skdp.synthesis.generator import ClassesAndCodes, PrivateGenerator


@with_parameters
class DPClassMixtureGenerator(PrivateGenerator):
    """Differentially private synthesizer of numeric rows with labels, such as images.

    Each class is a mixture of clipped Gaussian distributions. The fit releases with Gaussian noise: the mean of all
    rows, the class means, the main directions of the residuals, and counts, means and covariances of the components
    along these directions. Any number of rows can then be sampled. See ``docs/synthetic_data.md``.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Number of components of each class. "auto" is the public number of rows, divided by the noise multiplier, by the
        number of classes and by 1,500, rounded, from 1 to 10.
    epsilon : float, Risk or None, default=1.0
        Privacy budget of one ``fit``. A number, or a bound on membership-inference risk such as
        ``skdp.Risk(advantage=0.1)`` (``docs/membership_inference.md``). Must be None if `noise_multiplier` is set.
    delta : float or "auto", default="auto"
        The delta of the (epsilon, delta) guarantee; it must be well below 1/n, where n is the public number of rows.
        "auto" uses the delta of the accountant if it has one. Otherwise it is 1e-5 for at most 10,000 rows and 1/(10n),
        rounded down to a power of ten, for more.
    noise_multiplier : float or None, default=None
        Standard deviation of the noise of a single release, divided by its sensitivity. If None, it is calibrated to
        `epsilon`. The budget is divided among the releases: their squared inverse noise multipliers sum to that of this
        one.
    adjacency : {"zero_out", "replace_one"}, AddRemove or None, default=None
        Neighboring relation: how two neighboring tables differ in one row, or in all rows of one group:

        - "zero_out": it is replaced by a zeroed-out record, which adds nothing to any sum. The number of rows is
          public.
        - "replace_one": it is replaced by another one. The number of rows is public.
        - ``skdp.AddRemove(n_public=10_000)``: it is added or removed. The number of rows is private, and every rule
          uses `n_public`, a public number near it.

        None uses the relation of `accountant`, otherwise "zero_out".
    accountant : PrivacyAccountant, str, path-like or None, default=None
        Accountant that records the privacy cost of each fit, before anything is learned from the rows, and rejects a
        fit that exceeds its budget. A path refers to an existing budget file (see ``python -m skdp.accounting create``)
        and is made absolute.
    random_state : int, RandomState or Generator instance or None, default=None
        Source of the noise. None draws a fresh secret key from the operating system. Any other value makes the fit
        reproducible and issues a `PrivacyLeakWarning`, because the guarantee does not hold against anyone who knows the
        value. The `random_state` of ``sample`` is independent of it and does not affect the guarantee.
    bounds : (float, float), list of (float, float) or None, default=None
        Public bounds of all columns, or of each column, for example (0, 1) for images. Rows and samples are clipped to
        them. Required.
    classes : sequence or None, default=None
        All classes that can occur in `y`. If None, they are read from `y`; this is not covered by the guarantee, and a
        `PrivacyLeakWarning` is issued. Ignored without labels.
    class_prevalences : {"estimate", "uniform"} or sequence of float, default="estimate"
        Class prevalences of the samples: "estimate" uses the noisy counts, "uniform" equal prevalences. A sequence has
        a public prevalence for each class in ascending order.
    weight_bound : float or None, default=None
        Public upper bound of `sample_weight`. Weights are clipped to it and divided by it. Choose the largest weight
        that can occur, or a value that few weights exceed: the effect of the noise grows with the bound divided by the
        mean weight. None is a bound of 1, and a fit with weights then warns that larger weights are clipped to it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels. Defined only if the generator was fitted with labels.
    class_prevalences_ : ndarray of shape (n_classes,)
        Class prevalences of the samples. Defined only if the generator was fitted with labels.
    class_count_ : ndarray of shape (n_classes,)
        Noisy number of rows (or sum of weights) of each class, or of all rows if there are no labels; at least 0. With
        `groups`, each group counts as at most 1, before multiplication by the bound on weights.
    mixture_ : ClassMixture
        Weights, locations, scales and factors of the components of each class, and the directions. Columns are scaled
        to [-1/2, 1/2].
    bounds_ : ndarray of shape (n_features, 2)
        Public bounds of the columns.
    n_components_ : int
        Components of each class.
    n_directions_ : int
        Number of directions in which rows of a component differ from its mean: 100, or n_features if that is less.
    noise_multiplier_ : float
        Noise multiplier of the whole fit.
    n_samples_ : int
        Public number n of rows, or of groups.
    weight_bound_ : float
        Bound by which weights were divided; 1.0 for ``weight_bound=None``.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of columns seen during ``fit``. Defined only if all column names of `X` are strings.
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
    DPMarginalSynthesizer : Synthetic tables with columns of any type.

    Notes
    -----
    **Guarantees.**

    - ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row, including its label, under `adjacency`, if
      `random_state` is None, and `classes` is set or there are no labels.
    - All fitted attributes are functions of noisy releases and of public quantities.
    - Weights multiply the contribution of a row by a number in [0, 1], so no weight increases the sensitivity.
    - With `groups`, all of this holds for all rows of one group: their contribution is an average of contributions of
      rows.
    - `accountant` is charged before the rows are summed, and invalid input is rejected before any charge.
    - ``sample`` has no additional privacy cost, and a saved generator contains no row and no exact sum.
    - Labels of samples are drawn with noisy or public class prevalences, and samples lie within the bounds.
    - The numbers of components and of directions are functions of public numbers.

    Sums over rows are float64. Their rounding is not covered (``docs/limitations.md``), except for the Gram matrix of
    the directions.

    **Weights.** Samples are unweighted draws from the weighted distribution. The sum of the weights is private, and is
    released with the mean of the rows, for a tenth of its budget. The weights of a group are scaled to a sum of at most
    1.

    **Post-processing.** Means are shrunk by the size of their noise. Eigenvalues of a covariance below the edge of the
    noise are replaced by their mean. Clipping Gaussian samples to the bounds changes their means and variances; the
    parameters before clipping are chosen so that they are correct after it.

    References
    ----------
    Dong, Roth & Su (2022), "Gaussian differential privacy", for adaptive composition.

    Su, Cao, Li, Bertino & Jin (2016), "Differentially private k-means clustering".

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.synthesis import DPClassMixtureGenerator
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 5000)
    >>> X = np.clip(rng.normal(0.3 + 0.4 * y[:, None], 0.1, size=(5000, 16)), 0, 1)
    >>> model = DPClassMixtureGenerator(bounds=(0, 1), classes=[0, 1], epsilon=1.0).fit(X, y)
    >>> made, labels = model.sample(1000, random_state=0)
    >>> made.shape, bool(made[labels == 1].mean() > made[labels == 0].mean() + 0.3)
    ((1000, 16), True)
    """

    mixture_: ClassMixture = field(init=False)
    class_count_: np.ndarray = field(init=False)
    bounds_: np.ndarray = field(init=False)
    _fitted_dtype: str = field(init=False)

    n_components: int | str = "auto"
    _: KW_ONLY
    bounds: Any = None
    classes: Any = None
    class_prevalences: Any = "estimate"
    weight_bound: Any = None

    # --- the fit ---

    def _plan_step(self, n_samples: int, n_features: int) -> StepPlan:
        """See `PrivateEstimator`: as much as one Gaussian release."""
        return StepPlan(GaussianDpEvent, {})

    def _read_parameters(self, n_features: int | None) -> None:
        public_bounds(self.bounds, n_features)
        if not _is_auto(self.n_components):
            check_count("n_components", self.n_components, constraint="a positive integer, or 'auto'")

    def _read_rows(self, X: Any, *, reset: bool) -> np.ndarray:
        return check_table(self, X, reset=reset, by_blocks=True)

    def _read_labels(self, y: Any, n_samples: int, n_public: int) -> ClassesAndCodes | None:
        found = super()._read_labels(y, n_samples, n_public)
        n_classes = 0 if found is None else len(found[0])
        if n_public < n_classes:
            what = self._units_in_words()
            raise ValueError(
                f"`X` must have at least one row per class ({n_classes}), got {n_public} {what}. Pass more rows or "
                "fewer classes."
            )
        return found

    def _learn(self, fit: Fit, rows: np.ndarray, labels: ClassesAndCodes | None, weights: Any) -> None:
        n, d = rows.shape
        n_classes, codes = 1, np.zeros(n, np.int64)
        if labels is not None:
            self.classes_, codes = labels
            n_classes = len(self.classes_)
        self.bounds_ = public_bounds(self.bounds, d)
        if _is_auto(self.n_components):  # one per 1,500 rows of a class over the noise multiplier, at most 10
            found = fit.n / (fit.noise_multiplier * n_classes * 1500.0)
            self.n_components_ = max(1, round(min(found, 10)))
        else:
            self.n_components_ = int(self.n_components)
        self.n_directions_ = min(d, 100)
        measurement = ClassMeasurement(
            fit.noise_multiplier, self.n_components_, self.n_directions_, self.adjacency, fit.n
        )
        each = None if weights is None else clip_groups(fit.units, weight_of_each(weights, n), 1.0)
        blocks = ClassRows(rows, codes, Box.of(self.bounds_), each)
        self.mixture_, counts = measurement.measure(blocks, n_classes, fit.spawn("class mixture"))
        self.class_count_ = WeightReader.of(self.weight_bound).bound * counts.of_classes
        self._fitted_dtype = np.dtype(blocks.dtype).name
        if labels is not None:
            total = self.class_count_.sum()
            noisy = self.class_count_ / total if total > 0.0 else np.full(n_classes, 1.0 / n_classes)
            self.class_prevalences_ = self._chosen_shares(noisy)

    # --- samples ---

    def _draw(self, n: int, labels: np.ndarray | None, rng: np.random.Generator) -> tuple[Any, np.ndarray | None]:
        with np.errstate(under="ignore"):
            made = self.mixture_.draw(np.zeros(n, np.int64) if labels is None else labels, rng)
            made = made.astype(self._fitted_dtype, copy=False)
            Box.of(self.bounds_).restore(made)
        return made, labels


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"
