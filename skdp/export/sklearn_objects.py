"""`to_sklearn`: plain scikit-learn objects that predict alike, where there are any."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from skdp.export.kinds import PIPELINE_KINDS, SEARCH_KINDS, is_of_sklearn, kind_of, passes

_LONG_ROWS = (
    "it scales rows down to data_norm_, which no step of scikit-learn does; with rows_are_short=True it is left out"
)
_TABLES = "no step of scikit-learn reads bounds, gaps and other categories of a table alike"
_TARGETS = "it moves predictions between y_bounds_, which no regressor of scikit-learn does"
_LEAVES = "no estimator of scikit-learn takes its trees"
_REASONS = {
    "DPLinearRegression": _TARGETS, "DPRidge": _TARGETS, "DPMLPRegressor": _TARGETS, "DPRandomTreesRegressor": _TARGETS,
    "DPLogisticRegression": _LONG_ROWS, "DPPCA": _LONG_ROWS, "DPRandomTreesClassifier": _LEAVES,
    "PublicTreesEmbedding": _LEAVES, "DPMLPClassifier": "MLPClassifier keeps its classes in private attributes",
    "DPTableVectorizer": _TABLES, "DPOneHotEncoder": _TABLES, "DPQuantileBinner": _TABLES, "DPSimpleImputer": _TABLES,
}  # fmt: skip


def to_sklearn(model: Any, *, rows_are_short: bool = False) -> Any:
    """Return fitted objects of scikit-learn that predict as a model does, up to rounding.

    Parameters
    ----------
    model : estimator
        Fitted `DPStandardScaler`, `DPGaussianNB`, `DPLogisticRegression`, `DPPCA`, or a pipeline or a search of these
        and of steps of scikit-learn. It is not changed.
    rows_are_short : bool, default=False
        Whether no row to predict is longer than `data_norm_` (of `DPPCA`, from its center on). Linear models and
        `DPPCA` scale longer rows down to it. Only if there are none, or it does not matter to you, are scikit-learn's
        equal.

    Returns
    -------
    estimator
        ``LogisticRegression``, ``PCA``, or a ``Pipeline``. ``MinMaxScaler(clip=True)`` stands where values are moved
        between bounds.

    Raises
    ------
    TypeError
        No objects of scikit-learn are equal. The message names the class, and says why.
    NotFittedError
        The model is not fitted.

    See Also
    --------
    to_onnx : Any model, with all that it does to rows.

    Notes
    -----
    **Guarantees.**

    - The result is a function of fitted attributes, which are released already: it costs nothing. It holds neither
      ledger, nor seed, nor budget.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPGaussianNB
    >>> from skdp.export import to_sklearn
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(1000, 2))
    >>> model = DPGaussianNB(classes=[0, 1], bounds=(-1, 1)).fit(X, (X[:, 0] > 0).astype(int))
    >>> bool(np.allclose(to_sklearn(model).predict_proba(X), model.predict_proba(X)))
    True
    """
    check_is_fitted(model)
    kind, name = kind_of(model), type(model).__name__
    if kind in SEARCH_KINDS:
        return to_sklearn(model.best_estimator_, rows_are_short=rows_are_short)
    if kind in PIPELINE_KINDS:
        return Pipeline([(each, _step(step, rows_are_short)) for each, step in model.steps])
    if kind in _ALWAYS:
        return _ALWAYS[kind](model)
    if kind in _OF_SHORT_ROWS and rows_are_short:
        return _OF_SHORT_ROWS[kind](model)
    reason = _REASONS.get(name, "none is equal to it") if kind.startswith("skdp.") else "it is not of skdp"
    raise TypeError(f"{name} has no counterpart in scikit-learn: {reason}; to_onnx converts models with what they do.")


def _step(step: Any, rows_are_short: bool) -> Any:
    if passes(step) or is_of_sklearn(step):
        return deepcopy(step)
    return to_sklearn(step, rows_are_short=rows_are_short)


def _scaler(model: Any) -> Pipeline:
    """Values are moved between their bounds and standardized."""
    low, high = np.array([tuple(each) for each in model.bounds_], np.float64).T
    between, width = _between(model, low, high, (0.0, 1.0)), high - low
    scaler = StandardScaler(with_mean=model.with_mean, with_std=model.with_std)
    mean, scale = (model.mean_ - low) / width, model.scale_ / width
    if not model.with_mean:  # zero of the cells is elsewhere on [0, 1]
        scaler.set_params(with_mean=True)
        mean = -low / width
    if not model.with_std:
        scaler.set_params(with_std=True)
        scale = 1.0 / width
    return _behind(between, _fitted(scaler, model, mean_=mean, scale_=scale, var_=scale**2, n_samples_seen_=1))


def _bayes(model: Any) -> Pipeline:
    """Values are moved between their bounds and scaled to [-1, 1], where means and variances are taken."""
    if model.indicator_weights_.any():
        raise TypeError(
            "DPGaussianNB has no counterpart in scikit-learn where it has indicator columns of a DPTableVectorizer: no "
            "naive Bayes of scikit-learn has Gaussian and categorical columns; use to_onnx."
        )
    low, high = model.bounds_.T
    half = 0.5 * high - 0.5 * low
    bayes = _fitted(
        GaussianNB(), model, classes_=model.classes_, class_prior_=model.class_prior_,
        class_count_=model.class_count_, theta_=(model.theta_ - low) / half - 1.0, var_=model.var_ / half**2,
        epsilon_=0.0,
    )  # fmt: skip
    return _behind(_between(model, low, high, (-1.0, 1.0)), bayes)


def _logistic(model: Any) -> LogisticRegression:
    return _fitted(
        LogisticRegression(), model, classes_=model.classes_, coef_=np.array(model.coef_, np.float64),
        intercept_=np.array(model.intercept_, np.float64), n_iter_=np.array([model.n_iter_]),
    )  # fmt: skip


def _pca(model: Any) -> PCA:
    if model.normalize:
        raise TypeError("DPPCA has no counterpart in scikit-learn: it scales every row to norm 1; use to_onnx.")
    variances = np.maximum(model.explained_variance_, model.noise_scale_) if model.whiten else model.explained_variance_
    return _fitted(
        PCA(int(model.n_components_), whiten=bool(model.whiten)), model,
        components_=model.components_.copy(), mean_=np.array(model.mean_), explained_variance_=variances.copy(),
        explained_variance_ratio_=model.explained_variance_ratio_.copy(), n_components_=model.n_components_,
        singular_values_=model.singular_values_.copy(), noise_variance_=float(model.noise_variance_),
        n_samples_=model.n_samples_,
    )  # fmt: skip


def _between(model: Any, low: Any, high: Any, ends: tuple[float, float]) -> MinMaxScaler:
    width = high - low
    scale = (ends[1] - ends[0]) / width
    return _fitted(
        MinMaxScaler(feature_range=ends, clip=True), model, scale_=scale, min_=ends[0] - low * scale, data_min_=low,
        data_max_=high, data_range_=width, n_samples_seen_=1,
    )  # fmt: skip


def _fitted(made: Any, model: Any, **attributes: Any) -> Any:
    """Set what is fitted, and the columns."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(model, name):
            setattr(made, name, getattr(model, name))
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def _behind(first: Any, second: Any) -> Pipeline:
    """Return two steps, of which the second is given an array, without names."""
    second.__dict__.pop("feature_names_in_", None)
    return make_pipeline(first, second)


_ALWAYS = {
    "skdp.preprocessing.scaler.DPStandardScaler": _scaler,
    "skdp.naive_bayes.DPGaussianNB": _bayes,
}
_OF_SHORT_ROWS = {
    "skdp.linear_model.logistic.DPLogisticRegression": _logistic,
    "skdp.decomposition.DPPCA": _pca,
}

__all__ = ["to_sklearn"]
