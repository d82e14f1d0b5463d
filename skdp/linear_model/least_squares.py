"""Private linear and ridge regression."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

from skdp._checks.parameters import check_real
from skdp.base.estimator import with_parameters
from skdp.linear_model.normal_equations import AUTO_ALPHA, MomentsRegressor


@with_parameters
class DPLinearRegression(MomentsRegressor):
    """Linear regression with differential privacy for each row.

    The second moments of rows, intercept and target are released once, with Gaussian noise, and the normal equations
    are solved from this release. Their eigenvalues are kept above the noise, whose size is public, so that they always
    have one solution. Nothing has to be tuned.

    Parameters
    ----------
    y_bounds : (float, float) or None, default=None
        Public bounds on the targets. Targets beyond them are moved to the nearest bound, and so are predictions. If
        None, they are read from y, which is not paid for, and a `PrivacyLeakWarning` is issued.
    epsilon : float, Risk or None, default=1.0
        Privacy budget of one ``fit``, to which the noise is calibrated. A number, or a bound on the risk of membership
        inference such as ``skdp.Risk(advantage=0.1)`` (``docs/membership_inference.md``). Must be None if
        `noise_multiplier` is given.
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
        mean weight. None is a bound of 1, and a fit with weights then warns that larger weights are clipped to it.
    rows_per_group : int or None, default=None
        With `groups`, the public maximum number k of rows per group. A group contributes at most as much as k rows of
        the largest norm: each row of a smaller group has full weight, the rows of a larger group share the weight of k
        rows, and the noise is k times larger. Choose a k that few groups exceed. None clips what the rows of a group
        add up to, to the norm of one row; with `inference` it is 1. Rows must be in memory.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    inference : bool, default=False
        Whether to buy what `summary` needs, for a tenth of mu**2. Rows must be in memory.
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
        value.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients, in the units of y and X.
    intercept_ : float
        Intercept; 0 without one.
    coef_std_ : ndarray of shape (n_features,)
        Standard errors of `coef_`: sampling and the known noise together, without the bias from the least eigenvalue
        and the ridge.
    intercept_std_ : float
        Standard error of `intercept_`; 0 without one.
    y_bounds_ : (float, float)
        Bounds on targets and predictions.
    data_norm_ : float
        Norm to which rows are scaled down.
    weight_bound_ : float
        Bound by which weights were divided; 1.0 for ``weight_bound=None``.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of columns seen during ``fit``. Defined only if all column names of `X` are strings.
    epsilon_ : float
        Price of the fit at `delta_`, at most `epsilon`.
    delta_ : float
        Delta at which `epsilon_` is computed.
    adjacency_ : str
        Neighbouring relation for which `epsilon_` holds.
    privacy_unit_ : {"row", "group"}
        What the guarantee is for: one row, or all rows with one label of `groups`.
    privacy_event_ : DpEvent
        Event that `epsilon_` is the price of.
    noise_multiplier_ : float
        Noise multiplier of the release.

    See Also
    --------
    DPRidge : The same with a ridge on the coefficients.
    DPLogisticRegression : Classifier.
    skdp.preprocessing.DPTableVectorizer : Rows from raw tables, with their norm.

    Notes
    -----
    **Guarantees.**

    - ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `random_state` is None
      and `y_bounds` is given.
    - All that is fitted is a function of one noisy release, or of two with `inference`, and of public quantities.
    - `accountant` is charged before the rows are summed. What is refused is refused before any charge, or after it in
      the block that holds it if the rows are not in memory.
    - Weights act after the clip, as numbers in [0, 1]: no weight raises what a row may change.
    - With `groups` all of this holds for all rows of one label together: what they add up to is clipped to what one
      row, or `rows_per_group` rows, may add.

    **Proof.** Let u be the row divided by `data_norm`, scaled down to norm 1 if it is longer, and t in [-1, 1] the
    target between its bounds. With public constants k for the intercept (0 without one) and b for the target, the
    vector z = (u, k, b t) / sqrt(1 + k**2 + b**2) has norm at most 1. A weight, by then a number in [0, 1], multiplies
    z by its root, which makes it no longer. One row adds z z' to the release, with \\|z z'\\|_F = \\|z\\|**2 <= 1,
    which is the sensitivity under ``zero_out`` and ``add_remove``. Replacing z by v changes the release by the root of
    \\|z\\|**4 + \\|v\\|**4 - 2 (z . v)**2 <= 2. Under ``replace_one`` the event is priced for a change of twice the
    sensitivity, which therefore is 1 / sqrt(2). What is released is the triangle of the sum, with entries off the
    diagonal multiplied by sqrt(2); rounding is in its price (`skdp.mechanisms.second_moments.MomentSum`).

    **Groups.** The rows of a group have their weights multiplied by one number in [0, 1], so that the sum of z z' over
    them has a Frobenius norm of at most 1 too (`skdp.mechanisms.bounded_sum.clip_groups`). Two such sums are positive
    semidefinite, their inner product is not negative, and they differ by at most sqrt(2). With ``rows_per_group=k`` the
    bounds on the norms of what its rows add, whatever their targets are, add up to at most k instead, and both bounds
    are k times larger. n is the number of groups.

    **Normal equations.** With u now including the entry of the intercept, the release holds A = sum of u u', c = sum of
    u t and the sum of t**2. The noise on A is symmetric, of standard deviation s on the diagonal and s / sqrt(2) off
    it, and its d eigenvalues lie within s sqrt(2 d) as d grows (Wigner's semicircle). Eigenvalues of the noisy A below
    0.7 times that edge are raised to it: A becomes positive definite, and directions in which rows say less than
    the noise are shrunk. AdaSSP (Wang 2018) adds a ridge of the same order, and buys the smallest eigenvalue to make it
    smaller; here the whole spectrum comes with the release, at no price. The constants were chosen on four fifths
    each of California housing, wine quality and elevators.

    **Standard errors.** With K the inverse of the matrix that is solved, theta = K c, residual variance v, noise of
    standard deviation s on A as above and r on c, the covariance is that of K (e + noise of c - noise of A times
    theta), to first order: K (v A + (r**2 + s**2 \\|theta\\|**2 / 2) I + s**2 theta theta' / 2) K. v is estimated from
    the same release, and held above its noise. Weights are taken as 1 in v.

    **Inference.** With ``inference=True`` a second release, of the same plan and charged with the first, has the
    moments of scores: of s = r u, summed over the rows of a unit, r being the residual at the coefficients that the
    first release gives. s is clipped at 4 times the root of the mean square that this release shows, times the largest
    weight of a unit over the mean weight that it shows. With one entry more, which says whether a row or target was cut
    at its bound, it is a vector x of norm at most 1. A unit adds x x', and the proof of the sensitivity is the one
    above. `summary` makes a sandwich of both releases
    (`skdp.linear_model.inference.infer`); it assumes neither equal variances nor, with `groups`, independent rows of
    one unit. Its coefficients are those of least squares over rows and targets as they are after the cut, without the
    least eigenvalue, a ridge, or the bias from the noise. A coefficient has no interval if the noise hides its
    direction. Directions are hidden if their eigenvalue is below 0.75 times the edge above, or below three standard
    deviations of the noise along one direction. What they may contribute to the other coefficients widens the
    intervals of these. No coefficient has an interval with fewer than 30 rows per coefficient, or if rows are
    clipped. Only released and public numbers decide.

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
    >>> y = X @ [3.0, -2.0, 0.0] + 1.0
    >>> model = DPLinearRegression(y_bounds=(-5, 7), epsilon=1.0).fit(X, y)
    >>> bool(model.epsilon_ <= 1.0), bool(model.score(X, y) > 0.9)
    (True, True)
    """

    y_bounds: Any = None


@with_parameters
class DPRidge(MomentsRegressor):
    """Ridge regression with differential privacy for each row.

    `DPLinearRegression` with a penalty on the coefficients, whose default follows from the noise. Only one release is
    made, so any number of `alpha` could be tried on it without a further price; which of them is best on private rows
    is a question that costs (`skdp.model_selection`).

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        The penalty ``alpha * ||coef||**2`` that is added to the sum of squared residuals, as in
        `sklearn.linear_model.Ridge`. "auto" is a rule in the public size of the noise: a tenth of the least eigenvalue
        that the noise permits. The intercept is not penalized.
    epsilon : float, Risk or None, default=1.0
        Privacy budget of one ``fit``, to which the noise is calibrated. A number, or a bound on the risk of membership
        inference such as ``skdp.Risk(advantage=0.1)`` (``docs/membership_inference.md``). Must be None if
        `noise_multiplier` is given.
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
        mean weight. None is a bound of 1, and a fit with weights then warns that larger weights are clipped to it.
    rows_per_group : int or None, default=None
        With `groups`, the public maximum number k of rows per group. A group contributes at most as much as k rows of
        the largest norm: each row of a smaller group has full weight, the rows of a larger group share the weight of k
        rows, and the noise is k times larger. Choose a k that few groups exceed. None clips what the rows of a group
        add up to, to the norm of one row; with `inference` it is 1. Rows must be in memory.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    inference : bool, default=False
        Whether to buy what `summary` needs, for a tenth of mu**2. Rows must be in memory.
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
        value.
    y_bounds : (float, float) or None, default=None
        Public bounds on the targets. Targets beyond them are moved to the nearest bound, and so are predictions. If
        None, they are read from y, which is not paid for, and a `PrivacyLeakWarning` is issued.

    Attributes
    ----------
    alpha_ : float
        The penalty.
    coef_ : ndarray of shape (n_features,)
        Coefficients, in the units of y and X.
    intercept_ : float
        Intercept; 0 without one.
    coef_std_ : ndarray of shape (n_features,)
        Standard errors of `coef_`: sampling and the known noise together, without the bias from the least eigenvalue
        and the ridge.
    intercept_std_ : float
        Standard error of `intercept_`; 0 without one.
    y_bounds_ : (float, float)
        Bounds on targets and predictions.
    data_norm_ : float
        Norm to which rows are scaled down.
    weight_bound_ : float
        Bound by which weights were divided; 1.0 for ``weight_bound=None``.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of columns seen during ``fit``. Defined only if all column names of `X` are strings.
    epsilon_ : float
        Price of the fit at `delta_`, at most `epsilon`.
    delta_ : float
        Delta at which `epsilon_` is computed.
    adjacency_ : str
        Neighbouring relation for which `epsilon_` holds.
    privacy_unit_ : {"row", "group"}
        What the guarantee is for: one row, or all rows with one label of `groups`.
    privacy_event_ : DpEvent
        Event that `epsilon_` is the price of.
    noise_multiplier_ : float
        Noise multiplier of the release.

    See Also
    --------
    DPLinearRegression : The same without a penalty. Its notes hold here too.
    DPLogisticRegression : Classifier.

    Notes
    -----
    **Guarantees.**

    - ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `random_state` is None
      and `y_bounds` is given.
    - All that is fitted is a function of one noisy release, or of two with `inference`, and of public quantities.
    - `accountant` is charged before the rows are summed. What is refused is refused before any charge, or after it in
      the block that holds it if the rows are not in memory.
    - Weights act after the clip, as numbers in [0, 1]: no weight raises what a row may change.
    - With `groups` all of this holds for all rows of one label together: what they add up to is clipped to what one
      row, or `rows_per_group` rows, may add.

    The release, the proof of its sensitivity, the least eigenvalue and the standard errors are those of
    `DPLinearRegression`. A ridge alone would have to outweigh the most negative eigenvalue of the noise in every
    direction. The least eigenvalue, which also holds here, acts where rows say less than the noise alone.

    References
    ----------
    Wang (2018), "Revisiting differentially private linear regression: optimal and adaptive prediction & estimation in
    unbounded domain".

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPRidge
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(20_000, 3))
    >>> y = X @ [3.0, -2.0, 0.0] + 1.0
    >>> model = DPRidge(y_bounds=(-5, 7), epsilon=1.0).fit(X, y)
    >>> bool(model.epsilon_ <= 1.0), bool(model.score(X, y) > 0.9)
    (True, True)
    """

    alpha: float | str = "auto"
    _: KW_ONLY
    y_bounds: Any = None

    def _ridge(self, least: float, radius: float) -> float:
        if isinstance(self.alpha, str) and self.alpha == "auto":
            return AUTO_ALPHA * least
        remedy = "choose a number from 0 to 1e30, or 'auto'"
        return check_real("alpha", self.alpha, at_least=0, at_most=1e30, remedy=remedy) / radius**2
