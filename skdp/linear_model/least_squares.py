"""Differentially private linear and ridge regression."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

from skdp._checks.parameters import check_real
from skdp.base.estimator import with_parameters
from skdp.linear_model.normal_equations import AUTO_ALPHA, MomentsRegressor


@with_parameters
class DPLinearRegression(MomentsRegressor):
    """Differentially private linear regression.

    The second moments of features, intercept and target are released once with Gaussian noise, and the normal equations
    are solved from this release. Eigenvalues below the public noise level are raised to it, so a unique solution always
    exists. No parameter has to be tuned.

    Parameters
    ----------
    y_bounds : (float, float) or None, default=None
        Public bounds on the targets. Targets beyond them are moved to the nearest bound, and so are predictions. If
        None, they are read from `y`; this is not covered by the guarantee, and a `PrivacyLeakWarning` is issued.
    epsilon : float, Risk or None, default=1.0
        Privacy budget of one ``fit``: a number, or a bound on the risk of membership inference such as
        ``skdp.Risk(advantage=0.1)``. Must be None if `noise_multiplier` is set.
    delta : float or "auto", default="auto"
        The delta of the (epsilon, delta) guarantee; it must be well below 1/n, where n is the public number of rows.
        "auto" uses the delta of the accountant if it has one. Otherwise it is 1e-5 for at most 10,000 rows and 1/(10n),
        rounded down to a power of ten, for more.
    noise_multiplier : float or None, default=None
        Standard deviation of the noise, divided by the sensitivity of the release. If None, it is calibrated to
        `epsilon`.
    data_norm : float or None, default=None
        Public bound on the Euclidean norm of a row. Rows are clipped to it, in ``fit`` and in predictions. None uses
        the public norm of rows that `skdp.preprocessing.DPTableVectorizer` has transformed, and otherwise
        sqrt(n_features), which suits columns in [-1, 1] and reads no data.
    weight_bound : float or None, default=None
        Public upper bound of `sample_weight`. Weights are clipped to it and divided by it. Choose the largest weight
        that can occur, or a value that few weights exceed: the effect of the noise grows with the bound divided by the
        mean weight. None is 1, with a warning.
    rows_per_group : int or None, default=None
        With `groups`, the public maximum number k of rows per group. A group contributes at most as much as k rows of
        the largest norm: each row of a smaller group has full weight, the rows of a larger group share the weight of k
        rows, and the noise is k times larger. Choose a k that few groups exceed. None clips the sum over the rows of a
        group to the norm of one row; with `inference`, it is 1. Rows must be in memory.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    inference : bool, default=False
        Whether to release the sums that `summary` requires, with 10% of the budget (of mu squared). Rows must be in
        memory.
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
    coef_ : ndarray of shape (n_features,)
        Coefficients, in units of `y` per unit of `X`.
    intercept_ : float
        Intercept; 0 for ``fit_intercept=False``.
    coef_std_ : ndarray of shape (n_features,)
        Standard errors of `coef_`. They include the sampling error and the noise, but not the bias from regularization.
    intercept_std_ : float
        Standard error of `intercept_`; 0 for ``fit_intercept=False``.
    y_bounds_ : (float, float)
        Bounds on targets and predictions.
    data_norm_ : float
        Norm to which rows are clipped.
    weight_bound_ : float
        Bound to which weights were clipped, 1.0 for None.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of columns seen during ``fit``. Defined only if all column names of `X` are strings.
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

    See Also
    --------
    DPRidge : Linear regression with an L2 penalty.
    DPLogisticRegression : Classifier.
    skdp.preprocessing.DPTableVectorizer : Numeric features of a raw table, with a known norm.

    Notes
    -----
    **Guarantees.**

    - ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `y_bounds` is set and
      `random_state` is None.
    - All fitted attributes are functions of one noisy release (two with `inference`) and of public quantities.
    - The accountant is charged before the rows are summed. Invalid input raises an error before the charge, or after it
      if the rows are not in memory.
    - Weights are applied after clipping, as numbers in [0, 1], so they do not raise the sensitivity.
    - With `groups`, the guarantee holds for all rows of one group together: their contribution is clipped to that of
      one row, or of `rows_per_group` rows.

    **Sensitivity.** Let u be the row divided by `data_norm` and clipped to norm 1, and t in [-1, 1] the scaled target.
    With public constants k for the intercept and b for the target, z = (u, k, b t) / sqrt(1 + k**2 + b**2) has norm at
    most 1. A weight in [0, 1] multiplies z by its square root. One row adds z z' to the release, whose Frobenius norm
    \\|z\\|**2 <= 1 is the sensitivity under ``zero_out`` and ``add_remove``. Replacing z by v changes the release by
    the square root of \\|z\\|**4 + \\|v\\|**4 - 2 (z . v)**2 <= 2, and the sensitivity under ``replace_one``, half of
    it, is 1 / sqrt(2). The lower triangle is released, with entries off the diagonal multiplied by sqrt(2). The privacy
    cost covers rounding.

    **Groups.** The weights of a group are multiplied by one number in [0, 1], so that the Frobenius norm of its sum of
    z z' is at most 1. The sums of two groups are positive semidefinite, so they differ by at most sqrt(2). With
    ``rows_per_group=k``, both bounds are k times larger, and the scaling does not depend on the targets. n is the
    number of groups.

    **Normal equations.** With the intercept included in u, the release contains A = sum of u u', c = sum of u t and the
    sum of t**2. The noise on A has standard deviation s on the diagonal and s / sqrt(2) off it. Its d eigenvalues lie
    within s sqrt(2 d) for large d (Wigner's semicircle). Eigenvalues of the noisy A below 0.7 times this edge are
    raised to it. This makes A positive definite and shrinks directions that the noise dominates. AdaSSP (Wang 2018)
    instead spends budget on the smallest eigenvalue. The constants were chosen on 80% of California housing, wine
    quality and elevators.

    **Standard errors.** With K the inverse of the regularized matrix, theta = K c, residual variance v and noise of
    standard deviation r on c, the covariance is, to first order, K (v A + (r**2 + s**2 \\|theta\\|**2 / 2) I + s**2
    theta theta' / 2) K. v is estimated from the same release, with weights taken as 1, and is at least the standard
    deviation of its noise.

    **Inference.** With ``inference=True``, a second release, charged together with the first, contains the second
    moments of the scores r u, summed per row or group, where r is the residual. Scores are clipped at 4 times their
    root mean square, which the first release shows. `summary` computes a sandwich estimator from both releases. It
    assumes neither equal variances nor, with `groups`, independent rows within a group. Its coefficients are
    unregularized and corrected for the bias due to the noise. A coefficient has no interval if the noise hides its
    direction. No coefficient has an interval if there are fewer than 30 rows per coefficient or if rows are clipped.
    These decisions use only released and public numbers (``docs/inference.md``).

    References
    ----------
    Wang (2018), "Revisiting differentially private linear regression: optimal and adaptive prediction & estimation in
    unbounded domain".

    Dwork, Talwar, Thakurta & Zhang (2014), "Analyze Gauss: optimal bounds for privacy-preserving principal component
    analysis".

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLinearRegression
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(20_000, 3))
    >>> y = X @ [3.0, -2.0, 1.0] + 1.0
    >>> model = DPLinearRegression(y_bounds=(-5, 7), epsilon=1.0).fit(X, y)
    >>> model.coef_.round()
    array([ 3., -2.,  1.])
    """

    y_bounds: Any = None


@with_parameters
class DPRidge(MomentsRegressor):
    """Differentially private ridge regression.

    `DPLinearRegression` with an L2 penalty, whose default follows from the noise. Only one release is made, so trying
    several values of `alpha` on it is post-processing. Choosing among them by a score on private rows consumes budget
    (``skdp.model_selection``).

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        The penalty ``alpha * ||coef||**2`` that is added to the sum of squared residuals, as in
        `sklearn.linear_model.Ridge`. "auto" uses a tenth of the smallest eigenvalue that the noise permits, a public
        quantity. The intercept is not penalized.
    epsilon : float, Risk or None, default=1.0
        Privacy budget of one ``fit``: a number, or a bound on the risk of membership inference such as
        ``skdp.Risk(advantage=0.1)``. Must be None if `noise_multiplier` is set.
    delta : float or "auto", default="auto"
        The delta of the (epsilon, delta) guarantee; it must be well below 1/n, where n is the public number of rows.
        "auto" uses the delta of the accountant if it has one. Otherwise it is 1e-5 for at most 10,000 rows and 1/(10n),
        rounded down to a power of ten, for more.
    noise_multiplier : float or None, default=None
        Standard deviation of the noise, divided by the sensitivity of the release. If None, it is calibrated to
        `epsilon`.
    data_norm : float or None, default=None
        Public bound on the Euclidean norm of a row. Rows are clipped to it, in ``fit`` and in predictions. None uses
        the public norm of rows that `skdp.preprocessing.DPTableVectorizer` has transformed, and otherwise
        sqrt(n_features), which suits columns in [-1, 1] and reads no data.
    weight_bound : float or None, default=None
        Public upper bound of `sample_weight`. Weights are clipped to it and divided by it. Choose the largest weight
        that can occur, or a value that few weights exceed: the effect of the noise grows with the bound divided by the
        mean weight. None is 1, with a warning.
    rows_per_group : int or None, default=None
        With `groups`, the public maximum number k of rows per group. A group contributes at most as much as k rows of
        the largest norm: each row of a smaller group has full weight, the rows of a larger group share the weight of k
        rows, and the noise is k times larger. Choose a k that few groups exceed. None clips the sum over the rows of a
        group to the norm of one row; with `inference`, it is 1. Rows must be in memory.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    inference : bool, default=False
        Whether to release the sums that `summary` requires, with 10% of the budget (of mu squared). Rows must be in
        memory.
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
    y_bounds : (float, float) or None, default=None
        Public bounds on the targets. Targets beyond them are moved to the nearest bound, and so are predictions. If
        None, they are read from `y`; this is not covered by the guarantee, and a `PrivacyLeakWarning` is issued.

    Attributes
    ----------
    alpha_ : float
        The penalty.
    coef_ : ndarray of shape (n_features,)
        Coefficients, in units of `y` per unit of `X`.
    intercept_ : float
        Intercept; 0 for ``fit_intercept=False``.
    coef_std_ : ndarray of shape (n_features,)
        Standard errors of `coef_`. They include the sampling error and the noise, but not the bias from regularization.
    intercept_std_ : float
        Standard error of `intercept_`; 0 for ``fit_intercept=False``.
    y_bounds_ : (float, float)
        Bounds on targets and predictions.
    data_norm_ : float
        Norm to which rows are clipped.
    weight_bound_ : float
        Bound to which weights were clipped, 1.0 for None.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of columns seen during ``fit``. Defined only if all column names of `X` are strings.
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

    See Also
    --------
    DPLinearRegression : Linear regression without a penalty. Its notes hold for `DPRidge` too.
    DPLogisticRegression : Classifier.

    Notes
    -----
    **Guarantees.**

    - ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `y_bounds` is set and
      `random_state` is None.
    - All fitted attributes are functions of one noisy release (two with `inference`) and of public quantities.
    - The accountant is charged before the rows are summed. Invalid input raises an error before the charge, or after it
      if the rows are not in memory.
    - Weights are applied after clipping, as numbers in [0, 1], so they do not raise the sensitivity.
    - With `groups`, the guarantee holds for all rows of one group together: their contribution is clipped to that of
      one row, or of `rows_per_group` rows.

    The release, its sensitivity and the standard errors are those of `DPLinearRegression`. Small eigenvalues are raised
    as in that class, because a penalty alone would have to exceed the most negative eigenvalue of the noise.

    References
    ----------
    Wang (2018), "Revisiting differentially private linear regression: optimal and adaptive prediction & estimation in
    unbounded domain".

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPRidge
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(20_000, 3))
    >>> y = X @ [3.0, -2.0, 1.0] + 1.0
    >>> model = DPRidge(y_bounds=(-5, 7), epsilon=1.0).fit(X, y)
    >>> model.coef_.round()
    array([ 3., -2.,  1.])
    """

    alpha: float | str = "auto"
    _: KW_ONLY
    y_bounds: Any = None

    def _ridge(self, least: float, radius: float) -> float:
        if isinstance(self.alpha, str) and self.alpha == "auto":
            return AUTO_ALPHA * least
        constraint = "a number in [0, 1e30], or 'auto'"
        return check_real("alpha", self.alpha, at_least=0, at_most=1e30, constraint=constraint) / radius**2
