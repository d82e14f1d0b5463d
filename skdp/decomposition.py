"""Differentially private principal component analysis."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from itertools import chain
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from skdp._checks.parameters import check_count, check_data_norm, silent_arithmetic
from skdp._checks.rows import check_table
from skdp._checks.sources import RowSource, map_rows, source_of
from skdp._checks.weights import WeightReader
from skdp._kernels.threads import blas_within_quota, single_threaded_blas
from skdp.accounting import GaussianDpEvent
from skdp.base.estimator import PrivateEstimator, with_parameters
from skdp.base.fit import NoisySum, begin, warn_of_weak_delta
from skdp.base.private_step import StepPlan, StepTraits
from skdp.mechanisms import second_moments
from skdp.mechanisms.second_moments import BallMoments, Moments, ProductQuery, UnitBall

MEAN_SHARE = 0.03
"""Fraction of mu squared for the mean of ``center="private"``.

A mean has d entries and a Gram matrix d (d + 1) / 2, so a small fraction suffices. The best one is 0.02 for MNIST with
60 components (0.001 more of the variance), and 0.1 for tables with few components and a large mean
(benchmarks/README.md).
"""

WEIGHED_ENTRY = 0.25
"""Additional entry of a weighted row, after division by `data_norm`.

It increases the noise by 6%. The noise of the sum of weights is 17 times that of a diagonal entry of the Gram matrix,
and that of an entry of the weighted sum of rows 3 times.
"""
_N_COMPONENTS_CONSTRAINT = "an integer from 1 to the number of columns, 'auto', or None for all"


class _Sums(NamedTuple):
    """Noisy moments of rows in the unit ball, the number of rows or the sum of their weights, and the noise.

    `noise` is the standard deviation of a diagonal entry of the Gram matrix, `n` the public number of rows.
    """

    moments: Moments
    total: float
    noise: float
    n: int
    ball: UnitBall


@with_parameters
class DPPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):
    """Differentially private principal component analysis (PCA).

    Rows are clipped to norm `data_norm`. The sum of their outer products (the Gram matrix) is released once, with
    symmetric Gaussian noise, and all fitted attributes are computed from this release. Rows are read once, in chunks,
    so memory maps, Parquet files and iterators can be larger than memory.

    Parameters
    ----------
    n_components : int, "auto" or None, default=None
        Number of components to keep; None keeps all. "auto" keeps all components whose noisy eigenvalues exceed the
        noise, and at least one, as post-processing. A number above n_features that a pipeline detects only after the
        charge keeps all.
    weight_bound : float or None, default=None
        Public upper bound of `sample_weight`. Weights are clipped to it and divided by it. Choose the largest weight
        that can occur, or a value that few weights exceed: the effect of the noise grows with the bound divided by the
        mean weight. None is 1.
    epsilon : float, Risk or None, default=1.0
        Privacy budget of one ``fit``: a number, or a `skdp.Risk`. Must be None if `noise_multiplier` is set.
    delta : float or "auto", default="auto"
        The delta of the (epsilon, delta) guarantee; it must be well below 1/n, where n is the public number of rows.
        "auto" uses the delta of the accountant if it has one. Otherwise it is 1e-5 for at most 10,000 rows and 1/(10n),
        rounded down to a power of ten, for more. For an iterator of unknown length, "auto" requires an accountant with
        a delta or `skdp.AddRemove`.
    noise_multiplier : float or None, default=None
        Standard deviation of the noise, divided by the sensitivity of the release. If None, it is calibrated to
        `epsilon`.
    data_norm : float or None, default=None
        Public bound R on the Euclidean norm of a row, after a public `center` is subtracted. Rows are clipped to it, in
        ``fit`` and in ``transform``, without a warning, which would depend on the rows. None uses the public norm of
        rows that `skdp.preprocessing.DPTableVectorizer` has transformed, and otherwise sqrt(n_features), which suits
        columns in [-1, 1] and reads no data.
    normalize : bool, default=False
        Whether to scale every row to norm 1, in ``fit`` and in ``transform``. Zero rows are unchanged. Requires
        ``data_norm=None``.
    center : "private", False or array-like of shape (n_features,), default="private"
        Centering of the rows:

        - "private" releases the mean together with the Gram matrix, with 3% of the budget, as in standard PCA.
        - False does not center. The components are eigenvectors of the second moments about zero; the first one usually
          points to the mean.
        - An array is a public mean, which is subtracted before rows are clipped.
    whiten : bool, default=False
        Whether ``transform`` divides each output column by the standard deviation of its component, which is at least
        sqrt(`noise_scale_`).
    adjacency : {"zero_out", "replace_one"}, AddRemove or None, default=None
        Neighboring relation: how two neighboring tables differ in one row, or in all rows of one group:

        - "zero_out": it is zeroed out and adds nothing to any sum.
        - "replace_one": it is replaced by another one.
        - ``skdp.AddRemove(n_public=10_000)``: it is added or removed; every rule uses the public number `n_public`.

        None uses that of `accountant`, otherwise "zero_out".
    accountant : PrivacyAccountant, str, path-like or None, default=None
        Accountant that records the privacy cost of each fit, before anything is learned from the rows, and rejects a
        fit that exceeds its budget. A path refers to an existing budget file (see ``python -m skdp.accounting create``)
        and is made absolute.
    random_state : int, RandomState or Generator instance or None, default=None
        Source of the noise. None draws a fresh secret key from the operating system. Any other value makes the fit
        reproducible and issues a `PrivacyLeakWarning`, because the guarantee does not hold against anyone who knows the
        value.

    Attributes
    ----------
    components_ : ndarray of shape (`n_components_`, n_features)
        Principal axes, as orthonormal rows by decreasing eigenvalue. The entry of largest magnitude in each row is
        positive.
    explained_variance_ : ndarray of shape (`n_components_`,)
        Eigenvalues of the noisy second moments (about the mean or zero, see `center`), divided by n, with negative
        values replaced by 0.
    explained_variance_ratio_ : ndarray of shape (`n_components_`,)
        `explained_variance_` divided by the noisy trace, or by its own sum if that is larger.
    singular_values_ : ndarray of shape (`n_components_`,)
        Equal to ``sqrt(n_samples_ * explained_variance_)``.
    mean_ : ndarray of shape (n_features,)
        Noisy mean of the clipped rows (see Notes), or the public mean, or zeros.
    noise_variance_ : float
        Average variance of the discarded directions by the noisy trace, or 0 if that is negative.
    noise_scale_ : float
        Standard deviation of the noise on the variance of a single column.
    n_components_ : int
        Number of components kept.
    n_samples_ : int
        Public number n of rows.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of columns seen during ``fit``, if all are strings.
    weight_bound_ : float
        Bound to which weights were clipped.
    epsilon_ : float
        Privacy cost of the fit (epsilon at `delta_`), at most `epsilon`.
    delta_ : float
        Delta at which `epsilon_` is computed.
    adjacency_ : str
        Neighboring relation for which `epsilon_` holds.
    privacy_unit_ : {"row", "group"}
        Privacy unit of the guarantee.
    privacy_event_ : DpEvent
        Privacy event from which `epsilon_` is computed.
    noise_multiplier_ : float
        Noise multiplier of the release.
    data_norm_ : float
        Norm to which rows are clipped.

    See Also
    --------
    DPLogisticRegression : Classifier that can follow in a pipeline.
    allocate_budget : One budget for a pipeline of private steps.

    Notes
    -----
    **Guarantees.**

    - ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `random_state` is None.
    - All fitted attributes are functions of one noisy release and of public quantities.
    - The noise on the Gram matrix has standard deviation sigma R**2 on the diagonal and sigma R**2 / sqrt(2) off it, up
      to the factors below.
    - Weights are applied after clipping, as numbers in [0, 1], so they do not raise the sensitivity.
    - With `groups`, the guarantee holds for all rows of one group together: their contribution is clipped to that of
      one row.
    - The accountant is charged before the first chunk of an iterator is drawn, and before the rows of an array are
      summed.
    - An array with NaN or infinity raises an error before the charge. An invalid chunk of an iterator raises an error
      after the charge. Whether an error is raised depends on the data and is not covered.

    **Sensitivity.** Divide the rows by R. A symmetric matrix is released as its lower triangle, with entries off the
    diagonal multiplied by sqrt(2), so that the Euclidean norm of this vector is the Frobenius norm of the matrix. One
    row adds x x', whose norm \\|x\\|**2 <= 1 is the sensitivity under ``zero_out`` and ``add_remove``.

    With a private mean, w times the sum of the rows is appended. One row adds (x x', w x), of norm at most sqrt(1 +
    w**2). 3% of mu squared is w**2 / (1 + w**2).

    Under ``replace_one``, the sensitivity is half of the largest change. With t = x . y, replacing x by y changes the
    vector by the square root of \\|x\\|**4 + \\|y\\|**4 - 2 t**2 + w**2 (\\|x\\|**2 + \\|y\\|**2 - 2 t). This is
    largest for norms of 1 and t = -w**2 / 2, where it equals 2 (1 + w**2 / 2)**2. The sensitivity is (1 + w**2 / 2) /
    sqrt(2), or 1 / sqrt(2) without a mean.

    With weights, their private sum is released too. A row gets an additional entry k: z = (x, k) / sqrt(1 + k**2) has
    norm at most 1. A weight v in [0, 1] multiplies z by its square root. The release is the Gram matrix of z, with the
    sensitivity above, and contains the sums of v x x', v k x and v k**2. Means and variances are divided by the noisy
    sum of weights.

    With `groups`, the weights of a group are multiplied by one number in [0, 1], so that the Frobenius norm of its sum
    of z z' is at most 1. Two such sums are positive semidefinite and differ by at most sqrt(2). n is the number of
    groups.

    Except under ``add_remove``, float32 rows are multiplied in float32 and summed in float64. The noise is then 0.1%
    larger, which covers the rounding.

    **Eigenvalues of the noise.** The eigenvalues of noise of standard deviation s lie within s sqrt(2 d) for large d
    (Wigner's semicircle). ``n_components="auto"`` keeps eigenvalues above 1.1 times this edge. The noisy mean is
    projected onto the leading eigenvectors of the second moments about zero, which removes noise.

    References
    ----------
    Dwork, Talwar, Thakurta & Zhang (2014), "Analyze Gauss: optimal bounds for privacy-preserving principal component
    analysis".

    Balle & Wang (2018), "Improving the Gaussian mechanism".

    Abadi et al. (2016), "Deep learning with differential privacy", section 4, for `normalize` and ``center=False``.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPPCA
    >>> X = np.random.default_rng(0).normal(size=(20_000, 10)) * np.linspace(1, 0.1, 10) / 4
    >>> model = DPPCA(3, epsilon=1.0, data_norm=1.0).fit(X)
    >>> model.explained_variance_ratio_.round(1)
    array([0.3, 0.2, 0.2])
    """

    n_components: int | str | None = None
    _: KW_ONLY
    weight_bound: Any = None
    epsilon: Any = 1.0
    delta: float | str = "auto"
    noise_multiplier: float | None = None
    data_norm: float | None = None
    normalize: bool = False
    center: Any = "private"
    whiten: bool = False
    adjacency: Any = None
    accountant: Any = None
    random_state: Any = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit the components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), iterator of such blocks, or `skdp.datasets.TableRows`
            Private rows. Arrays in memory are checked for NaN before the accountant is charged; memory maps, files and
            iterators are read only once, after the charge.
        y : str or None
            Name of a column of `TableRows` to exclude from the features. Otherwise ignored.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Private, nonnegative weights of the rows of an array. They are clipped to `weight_bound` and divided by it.
            The result, a number in [0, 1], multiplies the contribution of the row, so no weight raises the sensitivity.
            A row of weight 0 has no effect.
        groups : array-like of shape (n_samples,), str or None, default=None
            Private group identifier of each row, such as a person or household, or the name of a column of `X`, which
            is then not used as a feature. With `groups`, the guarantee holds for all rows of one group together,
            otherwise for one row.

        Returns
        -------
        self : DPPCA
            Fitted estimator.

        Raises
        ------
        ValueError
            A parameter or the input is invalid. No budget is consumed, unless the message states it: iterators and rows
            that are not in memory are read after the charge.
        BudgetExceededError
            The fit exceeds the budget of the accountant. No budget is consumed.
        """
        fit = begin(self, _rows_to_fit(X, y, sample_weight, groups), groups)
        model, d, weight_reader = fit.model, fit.n_features, WeightReader.of(fit.model.weight_bound)
        center, has_mean, norm = model._read_parameters(d if fit.precedes_charge else None)
        of_groups, by_position = fit.units is not None, not model._shifts_rows()
        fit.plan()

        rows, weights = fit.rows, 1.0
        if not isinstance(rows, RowSource | Iterator):
            rows = fit.read_rows(check_table, by_blocks=True)
            weights = fit.read(weight_reader.read, sample_weight, fit.n_rows)
        fit.charge()

        # Blocks of an iterator are validated one by one, after the charge.
        if isinstance(rows, Iterator):
            rows, d = model._check_blocks(rows, center)
        ball = _ball(center, norm, d or 1)
        query: WeightedMoments | UnweightedMoments
        if of_groups or sample_weight is not None:
            query = WeightedMoments(ball, by_position, has_mean, of_groups)
        else:
            query = UnweightedMoments(ball, second_moments.mean_weight(MEAN_SHARE) if has_mean else 0.0, by_position)
        noisy = fit.release(query, rows, weights=weights)
        sums = query.sums_of(noisy, fit.n or noisy.n_rows)
        fit.publish(weight_bound_=weight_reader.bound, **model._decompose(sums))
        if isinstance(fit.rows, Iterator):  # whose number of rows is not known before it ends
            warn_of_weak_delta(self.delta_, self.n_samples_)
        return self

    def fit_transform(self, X: ArrayLike, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Any:
        """Fit the components, and transform the same rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Private rows. Iterators are rejected, because they can be read only once.
        y : str or None
            As for ``fit``.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            As for ``fit``.
        groups : array-like of shape (n_samples,), str or None, default=None
            As for ``fit``.

        Returns
        -------
        X_new : ndarray of shape (n_samples, `n_components_`)
            Transformed rows. Unlike the fitted attributes, they are not covered by the guarantee.
        """
        _reject_iterator(X, "fit_transform")
        return self.fit(X, y, sample_weight, groups).transform(X)

    def _plan_step(self, n_samples: int, n_features: int) -> StepPlan:
        """See `PrivateEstimator`: one Gaussian release."""
        return StepPlan(GaussianDpEvent, {})

    def _check_blocks(self, blocks: Iterator[Any], center: Any) -> tuple[Iterator[np.ndarray], int]:
        """Return blocks that are checked as they are read, after the charge, and their number of columns."""

        def checked() -> Iterator[np.ndarray]:
            for number, block in enumerate(blocks):
                rejection = ""
                try:
                    rows = check_table(self, block, reset=number == 0, by_blocks=True)
                    self._check_width(rows.shape[1], center)
                except (TypeError, ValueError) as error:
                    rejection = f"Chunk {number} of the iterator is invalid (the fit was already charged): {error}"
                if rejection:
                    raise ValueError(rejection)
                yield rows

        found = checked()
        if (first := next(found, None)) is None:
            raise ValueError(
                "The iterator is empty (the fit was already charged). Pass an iterator with at least one chunk."
            )
        return chain([first], found), first.shape[1]

    def _read_parameters(self, n_features: int | None) -> tuple[np.ndarray | None, bool, float | None]:
        """Check parameters, and return the public mean, whether one is released, and the bound on the norm of rows."""
        center, norm = self._check_center(), self._check_data_norm()
        if self.n_components is not None and not self._by_edge():
            check_count("n_components", self.n_components, constraint=_N_COMPONENTS_CONSTRAINT)
        if n_features is not None:
            self._check_width(n_features, center)
        return center, isinstance(self.center, str), norm

    def __step_traits__(self) -> StepTraits:
        known, sets_width = not self._by_edge(), not self._by_edge() and self.n_components is not None
        return replace(super().__step_traits__(), width_is_public=known, sets_width=sets_width)

    def _by_edge(self) -> bool:
        return isinstance(self.n_components, str) and self.n_components == "auto"

    def _check_width(self, n_features: int, center: np.ndarray | None) -> None:
        k = self.n_components
        if k is not None and not self._by_edge() and int(k) > n_features:
            raise ValueError(f"`n_components` must be at most the number of columns of X, {n_features}, got {k}.")
        if center is not None and len(center) != n_features:
            raise ValueError(f"`center` must have {n_features} entries, one per column of X, got {len(center)}.")

    def _check_center(self) -> np.ndarray | None:
        """Return the public mean, None where there is none."""
        center = self.center
        if (isinstance(center, bool | np.bool_) and not center) or (isinstance(center, str) and center == "private"):
            return None
        if isinstance(center, str | bool | np.bool_) or center is None:
            raise ValueError(
                f"`center` must be 'private', False or a public mean with one number per column, got {center!r}."
            )
        mean = check_array(center, ensure_2d=False, dtype=np.float64, copy=True, input_name="center")
        if mean.ndim != 1:
            raise ValueError(f"`center` must be one-dimensional, with one number per column, got shape {mean.shape}.")
        return mean

    def _check_data_norm(self) -> float | None:
        if self.data_norm is None:
            if self.normalize:
                return 0.0
            # The bound that came with the rows, of what is left of them after centering by a public mean.
            center, known = self._check_center(), self._fitted_row_norm
            return known if known is None or center is None else known + float(np.linalg.norm(center))
        if self.normalize:
            raise ValueError(
                f"`data_norm` must be None with normalize=True, because rows then have norm 1, got {self.data_norm!r}."
            )
        return check_data_norm(self.data_norm)

    @silent_arithmetic
    def _decompose(self, sums: _Sums) -> dict[str, Any]:
        """Compute the fitted attributes.

        The matrix of the moments is used up: of many columns a copy takes as much memory as all else.
        """
        (moments, total_weight, _, n, ball), noise = sums, sums.noise / sums.total
        d = len(ball.center)
        edge = 1.1 * noise * math.sqrt(2.0 * d)  # significant eigenvalues exceed the edge of the noise spectrum
        wanted = 1 if self._by_edge() else min(int(self.n_components or d), d)
        trace = float(np.trace(moments.gram)) / total_weight
        gram = np.divide(moments.gram, total_weight, out=moments.gram)
        with single_threaded_blas() if d <= second_moments.FEW_COLUMNS else blas_within_quota():
            found = second_moments.about_mean(
                moments.total / total_weight, gram, edge, wanted, and_above=self._by_edge()
            )
        mean, values, vectors = found
        k, radius = len(values), ball.radius or 1.0
        # The sign of an eigenvector is arbitrary: the entry of largest magnitude is positive.
        components = vectors.T
        largest = np.abs(components).argmax(axis=1)
        components = components * np.sign(components[np.arange(k), largest])[:, None]
        variances = np.maximum(values, 0.0) * radius**2
        trace -= float(mean @ mean)
        total = max(trace * radius**2, float(variances.sum()))
        return {
            "components_": components,
            "explained_variance_": variances,
            "explained_variance_ratio_": variances / total if total > 0.0 else np.zeros(k),
            "singular_values_": np.sqrt(n * variances),
            "mean_": ball.center + mean * radius,
            "noise_variance_": (total - float(variances.sum())) / (d - k) if k < d else 0.0,
            "noise_scale_": noise * radius**2,
            "n_components_": k,
            "n_samples_": n,
            "data_norm_": radius,
            "_fitted_ball": ball,
        }

    @silent_arithmetic
    def transform(self, X: Any) -> np.ndarray:
        """Project rows onto the components.

        Rows are clipped to `data_norm_`, or scaled to norm 1 with `normalize`, as in ``fit``. For rows within the norm,
        the result is ``(X - mean_) @ components_.T``, divided by standard deviations with `whiten`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to transform.

        Returns
        -------
        X_new : ndarray of shape (n_samples, `n_components_`)
            Transformed rows, float32 for float32 input.
        """
        check_is_fitted(self)
        _reject_iterator(X, "transform")
        return map_rows(self, X, self._project, by_blocks=True)

    def _project(self, X: np.ndarray) -> np.ndarray:
        """Transform checked rows."""
        dtype = np.float32 if X.dtype == np.float32 else np.float64
        ball, scale = self._fitted_ball, self._whitening()
        axes = (self.components_.T * (self.data_norm_ / scale)).astype(dtype)
        # Projecting the mean once replaces subtracting it from every row.
        origin = ((self.mean_ - ball.center) @ self.components_.T / scale).astype(dtype)
        X_new = np.empty((X.shape[0], self.n_components_), dtype)
        for start in range(0, X.shape[0], 4096):
            block = X[start : start + 4096]
            ball.bring_in(block, rows := np.empty(block.shape, dtype))
            X_new[start : start + len(rows)] = rows @ axes - origin
        return X_new

    @silent_arithmetic
    def inverse_transform(self, X: Any) -> np.ndarray:
        """Transform coordinates back to the space of the rows.

        The result lies in the span of the components. Clipping and normalization are not undone.

        Parameters
        ----------
        X : array-like of shape (n_samples, `n_components_`)
            Transformed rows.

        Returns
        -------
        X_original : ndarray of shape (n_samples, n_features)
            Rows in the original space.
        """
        check_is_fitted(self)
        X = check_array(X, dtype=[np.float64, np.float32])
        if X.shape[1] != self.n_components_:
            raise ValueError(f"X must have {self.n_components_} columns, as the output of transform, got {X.shape[1]}.")
        axes = (self.components_ * self._whitening()[:, None]).astype(X.dtype)
        return X @ axes + self.mean_.astype(X.dtype)

    def _whitening(self) -> np.ndarray:
        """Divisors of the coordinates. Variances are held above their noise, below which they are not known."""
        if not self.whiten:
            return np.ones(self.n_components_)
        return np.sqrt(np.maximum(self.explained_variance_, self.noise_scale_))

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class UnweightedMoments(BallMoments):
    """Second moments and sum of unweighted rows, whose number is public."""

    def sums_of(self, noisy: NoisySum, n: int) -> _Sums:
        """Return the noisy moments of n rows."""
        return _Sums(noisy.value, n, noisy.deviation, n, self.ball)


@dataclass(frozen=True, eq=False)
class WeightedMoments(ProductQuery):
    """Second moments of z = (x, k) / sqrt(1 + k**2) over rows x in a ball, where k is `WEIGHED_ENTRY`.

    They include the sum of weights and the weighted sum of rows.
    """

    ball: UnitBall
    by_position: bool
    has_mean: bool
    of_groups: bool

    @property
    def width(self) -> int:
        return len(self.ball.center) + 1

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        dtype = np.float32 if self.by_position and np.can_cast(rows.dtype, np.float32) else np.float64
        self.ball.bring_in(rows, inside := np.empty(rows.shape, dtype))
        z = np.full((len(inside), self.width), WEIGHED_ENTRY, dtype)
        z[:, :-1] = inside
        z *= dtype(1.0 / math.sqrt(1.0 + WEIGHED_ENTRY**2))
        return z

    def sums_of(self, noisy: NoisySum, n: int) -> _Sums:
        """Return the moments of x, the sum of weights, and the noise; n is the number of rows or groups."""
        d, size, k = self.width - 1, 1.0 + WEIGHED_ENTRY**2, WEIGHED_ENTRY
        gram, noise = size * noisy.value.gram, noisy.deviation * size
        # A row weighs 1 at most; of a group, k**2 times its weight is bounded by 1 + k**2.
        most = n * (size / k**2 if self.of_groups else 1.0)
        total = min(max(float(gram[d, d]) / k**2, noise / k**2, 1.0), float(most))
        mean = gram[d, :d] / k if self.has_mean else np.zeros(d)
        return _Sums(Moments(np.ascontiguousarray(gram[:d, :d]), mean), total, noise, n, self.ball)


def _ball(center: np.ndarray | None, norm: float | None, n_features: int) -> UnitBall:
    radius = math.sqrt(n_features) if norm is None else norm
    return UnitBall(np.zeros(n_features) if center is None else center, radius)


def _rows_to_fit(X: Any, y: Any, sample_weight: Any, groups: Any) -> Any:
    """Return rows in memory as they are, an iterator of blocks, or the source of rows that are not in memory."""
    is_iterator = isinstance(X, Iterator)
    source = None if is_iterator else source_of(X, y if isinstance(y, str) else None, None, groups)
    if source is None and not is_iterator:
        return X
    if is_iterator and groups is not None:
        raise ValueError(
            "`groups` is not supported for iterators, whose groups cannot be checked before the charge. Pass an array, "
            "a memory map or a file, or remove `groups`."
        )
    if sample_weight is not None:
        raise ValueError("`sample_weight` requires rows in memory. Pass X as an array, or remove `sample_weight`.")
    return X if source is None else source.of_features()


def _reject_iterator(X: Any, method: str) -> None:
    if isinstance(X, Iterator):
        raise TypeError(f"{method} does not support iterators. Call fit, then call transform for each chunk.")


__all__ = ["DPPCA"]
