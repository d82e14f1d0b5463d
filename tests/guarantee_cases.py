"""Estimators by gradient descent, what they publish, and comparisons of their fits."""

import pickle

import numpy as np

from skdp import (
    DPPCA,
    DPWGAN,
    DPClassMixtureGenerator,
    DPGaussianNB,
    DPIsolationForest,
    DPKMeans,
    DPLinearRegression,
    DPLogisticRegression,
    DPMarginalSynthesizer,
    DPMLPClassifier,
    DPMLPRegressor,
    DPOrdinalLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
)
from skdp._dpsgd.models.linear import LinearModel
from skdp._dpsgd.models.network import NetworkModel
from skdp._dpsgd.models.one_hot import OneHotModel
from skdp.ensemble import DPRandomTreesClassifier, DPRandomTreesRegressor

FALSE_ALARM = 1e-6
POISSON = {"sampling_rate": 0.5, "max_iter": 20}
FULL = {"max_iter": 30}
TREES = {"n_estimators": 9, "max_depth": 3, "bounds": (-1.0, 1.0)}
ESTIMATORS = {
    "linear": (DPLogisticRegression, LinearModel, {}),
    "network": (DPMLPClassifier, NetworkModel, {"hidden_layer_sizes": (5,), "sampling_rate": 1.0, "max_iter": 30}),
    "trees": (DPRandomTreesClassifier, OneHotModel, TREES),
    "regression": (DPMLPRegressor, NetworkModel, {"hidden_layer_sizes": (5,), "sampling_rate": 1.0, "max_iter": 30}),
    "trees regression": (DPRandomTreesRegressor, OneHotModel, TREES),
}
REGRESSORS = ("regression", "trees regression")


def seeded(n_classes=2, kind="linear", **parameters):
    estimator, _, defaults = ESTIMATORS[kind]
    if parameters.get("lot_size"):
        defaults = {**defaults, "sampling_rate": None}
    # A regressor is given the numbers of the classes as targets.
    public = {"y_bounds": (0, n_classes - 1)} if kind in REGRESSORS else {"classes": range(n_classes)}
    return estimator(**{**public, "random_state": 0, **defaults, **parameters})


PROPERTIES = {"feature_importances_"}  # computed from other attributes whenever they are asked for


def released(model):
    """The names of the attributes that noise is in."""
    names = ("coef_", "intercept_", "coefs_", "intercepts_", "embedding_", "target_center_", "target_scale_")
    return {name for name in vars(model) if name in names} | PROPERTIES


def assert_same_value(name, one, other):
    assert type(one) is type(other), name
    if isinstance(one, list) and one and isinstance(one[0], np.ndarray):
        for each, its_other in zip(one, other, strict=True):
            assert_same_value(name, each, its_other)
    elif isinstance(one, np.ndarray):
        assert (one.shape, one.dtype) == (other.shape, other.dtype), name
        np.testing.assert_array_equal(one, other, err_msg=name)
    else:
        assert one == other or pickle.dumps(one) == pickle.dumps(other), name


RELEASED = "post-processing of the releases"
# The allow-list. A new attribute needs a line here and a reason why it may be seen.
EACH_PUBLISHES = {
    **dict.fromkeys(("n_features_in_", "feature_names_in_"), "the schema is public"),
    "epsilon_": "function of the plan",
    "delta_": "the parameter `delta`",
    "adjacency_": "the parameter `adjacency`",
    "privacy_unit_": "whether `groups` were given",
    "privacy_event_": "the plan",
    "noise_multiplier_": "solved from epsilon, delta, accounting and adjacency, sampling and steps",
}
EACH_KEEPS = {
    "_fitted_leaks": "what was read without account, by kind; no value of it",
    "_fitted_n_public": "the number of rows where that is public, else `n_public`",
    "_fitted_releases": "the plans, each with a random name",
    "_fitted_group_name": "the name of the labels of units, which names a column",
    "_fitted_notices": "notices of quality: public numbers, releases and names of columns, and whether they were told",
    "_lineage": "titles of the compositions that were reported for the estimator and its clones: class names",
}
ALL_PUBLISH = {
    **EACH_PUBLISHES,
    "sampling_rate_": "from public n",
    "max_grad_norm_": "rule in public n, d, epsilon, delta",
    "data_norm_": "the parameter `data_norm`, the norm that rows bring along, or sqrt(n_features)",
    "weight_bound_": "the parameter `weight_bound`, or a release that the plan costs",
    **dict.fromkeys(("n_iter_", "n_steps_"), "the plan's; fewer only after an interrupt from outside"),
}
ALL_KEEP = {
    **EACH_KEEPS,
    "_fitted_noise_falls": "the plan",
    "_fitted_before": "`n_steps_` and `n_iter_` of earlier runs",
    "_fitted_row_norm": "of rows from DPTableVectorizer: a function of its schema",
}
CLASSES = {"classes_": "the parameter `classes`; read from y only with a warning"}
NETWORK = {
    **dict.fromkeys(("coefs_", "intercepts_"), RELEASED),
    "learning_rate_init_": "the parameter, or a rule in public n, epsilon, delta",
    "n_layers_": "the parameter `hidden_layer_sizes`",
}
TREES_KEEP = {
    **ALL_KEEP,
    "_fitted_start_noise": "function of the plans of earlier runs",
    "_fitted_row_schema": "of rows from DPTableVectorizer: its schema",
    "_fitted_row_names": "of rows from DPTableVectorizer: names of its columns",
}
TREES_PUBLISH = {
    **ALL_PUBLISH,
    "data_norm_": "1.0",
    "embedding_": "a function of the schema, of the public seed of the trees and of noisy counts",
    **dict.fromkeys(("coef_", "intercept_"), RELEASED),
    "coef_noise_": "function of the plan",
    "feature_importances_": "a property: function of `coef_`, `coef_noise_` and `embedding_`",
    "learning_rate_": "rule in public n, epsilon, delta",
}
LEAST_SQUARES = {
    **EACH_PUBLISHES,
    **dict.fromkeys(("coef_", "coef_std_", "intercept_std_"), RELEASED),
    "intercept_": "post-processing of the release, or of `y_bounds` and `fit_intercept`",
    "y_bounds_": "the parameter `y_bounds`; read from y only with a warning",
    "data_norm_": "the parameter `data_norm`, the norm that came with the rows, or sqrt(n_features)",
    "weight_bound_": "the parameter `weight_bound`, or a release that is part of the event",
}
LEAST_SQUARES_KEEP = {**EACH_KEEPS, "_fitted_inference": "post-processing of two releases; None for one"}
GENERATORS = {
    **EACH_PUBLISHES,
    **CLASSES,
    "class_prevalences_": "public shares, or post-processing of a release",
    "n_samples_": "public n",
}
GENERATORS_KEEP = {**EACH_KEEPS, "_fitted_with_labels": "whether y was given is public"}
OF_TARGETS = {
    "_fitted_scale": "function of `y_bounds`, `loss` and `fit_intercept`",
    "_fitted_loss": "the parameter `loss`",
}
UNDOCUMENTED = {
    DPLogisticRegression: {
        **ALL_KEEP,
        "_fitted_start_noise": "function of the plans of earlier runs",
        "_fitted_row_form": "of rows from PublicTreesEmbedding: a function of its schema and parameters",
        "_fitted_form_of_coef": "the same",
        "_fitted_inference": RELEASED,
    },
    DPPoissonRegressor: {
        **ALL_KEEP,
        **OF_TARGETS,
        "_fitted_inference": RELEASED,
        "_fitted_form_of_coef": "None",
    },
    DPOrdinalLogisticRegression: {
        **ALL_KEEP,
        "_fitted_inference": RELEASED,
        "_fitted_form_of_coef": "None",
    },
    DPMLPClassifier: ALL_KEEP,
    DPRandomTreesClassifier: TREES_KEEP,
    DPRandomTreesRegressor: {
        **TREES_KEEP,
        **OF_TARGETS,
        "_fitted_scale": "`target_center_` and `target_scale_`",
        "_fitted_units": RELEASED,
        "_fitted_with_intercept": "the parameter `fit_intercept`",
    },
    DPMLPRegressor: {**ALL_KEEP, **OF_TARGETS},
    DPGaussianNB: EACH_KEEPS,
    DPIsolationForest: {
        **EACH_KEEPS,
        "_fitted_row_schema": "of rows from DPTableVectorizer: its schema",
        "_fitted_row_names": "of rows from DPTableVectorizer: names of its columns",
        **dict.fromkeys(("_fitted_lengths", "_fitted_scale"), RELEASED),
    },
    DPKMeans: {**EACH_KEEPS, "_fitted_centers": RELEASED},
    DPLinearRegression: LEAST_SQUARES_KEEP,
    DPRidge: LEAST_SQUARES_KEEP,
    DPPCA: {
        **EACH_KEEPS,
        "_fitted_ball": "the parameters `center`, `data_norm` and `normalize` as they were at the fit",
    },
    DPClassMixtureGenerator: {**GENERATORS_KEEP, "_fitted_dtype": "the type of the rows is public"},
    DPWGAN: {**GENERATORS_KEEP, "_fitted_dtype": "the type of the rows is public"},
    DPMarginalSynthesizer: {
        **GENERATORS_KEEP,
        "_fitted_form": "schema, names and types of the columns, and noisy shares of cells within bins",
        "_fitted_levels": "numbers of levels of the schema and of the classes",
        "_fitted_exclusions": "the schema",
        "_fitted_n_columns": "the number of columns that are not dropped",
        "_fitted_remains": "post-processing of the query",
        "_fitted_redrawing": "the releases, the plan and numbers of levels; None where weights or groups were given",
    },
}
PUBLISHED = {
    DPLogisticRegression: {
        **ALL_PUBLISH,
        **CLASSES,
        **dict.fromkeys(("coef_", "intercept_"), RELEASED),
        "coef_noise_": "function of the plan, or post-processing of the releases",
        "learning_rate_": "rule in public n, epsilon, delta",
    },
    DPPoissonRegressor: {
        **ALL_PUBLISH,
        "y_bounds_": "the parameter `y_bounds`; read from y only with a warning",
        **dict.fromkeys(("coef_", "intercept_", "coef_noise_"), RELEASED),
        "learning_rate_": "1.0",
    },
    DPOrdinalLogisticRegression: {
        **ALL_PUBLISH,
        **CLASSES,
        "levels_": "the parameter `classes`; read from y only with a warning",
        **dict.fromkeys(("coef_", "thresholds_", "coef_noise_"), RELEASED),
        "learning_rate_": "1.0",
    },
    DPMLPClassifier: {
        **ALL_PUBLISH,
        **CLASSES,
        **NETWORK,
        "n_outputs_": "the number of classes, or of columns of y",
        "out_activation_": "the number of columns of y, and of the classes",
    },
    DPRandomTreesClassifier: {**TREES_PUBLISH, **CLASSES},
    DPRandomTreesRegressor: {
        **TREES_PUBLISH,
        "y_bounds_": "the parameter `y_bounds`; read from y only with a warning",
        **dict.fromkeys(("target_center_", "target_scale_"), RELEASED),
    },
    DPMLPRegressor: {
        **ALL_PUBLISH,
        **NETWORK,
        "n_outputs_": "one",
        "out_activation_": "the parameter `loss`",
        "y_bounds_": "the parameter `y_bounds`; read from y only with a warning",
    },
    DPGaussianNB: {
        **EACH_PUBLISHES,
        **CLASSES,
        **dict.fromkeys(("class_count_", "class_prior_", "theta_", "var_"), RELEASED),
        "indicator_weights_": "of rows from DPTableVectorizer: a function of its schema",
        "bounds_": "the parameter `bounds`",
        "weight_bound_": "the parameter `weight_bound`, or post-processing of a release",
    },
    DPIsolationForest: {
        **EACH_PUBLISHES,
        "embedding_": "a function of the schema and of the public seed of the trees",
        **dict.fromkeys(("leaf_counts_", "n_rows_"), RELEASED),
        "offset_": "-0.5, or post-processing of the release",
        "weight_bound_": "the parameter `weight_bound`, or a release that the plan costs",
    },
    DPKMeans: {
        **EACH_PUBLISHES,
        **dict.fromkeys(("cluster_centers_", "counts_", "inertia_"), RELEASED),
        "n_iter_": "the parameter `max_iter`",
        "bounds_": "the parameter `bounds`, or post-processing of a release",
        "weight_bound_": "the parameter `weight_bound`, or post-processing of a release",
    },
    DPLinearRegression: LEAST_SQUARES,
    DPRidge: {**LEAST_SQUARES, "alpha_": "the parameter `alpha`, or from the noise and the width"},
    DPPCA: {
        **EACH_PUBLISHES,
        **dict.fromkeys(
            ("components_", "explained_variance_", "explained_variance_ratio_", "singular_values_", "noise_variance_"),
            RELEASED,
        ),
        "mean_": "post-processing of the release, or the parameter `center`",
        "n_components_": "the parameter `n_components`, or post-processing of the release",
        "noise_scale_": "from sigma, the public n, R, dtype and width",
        "n_samples_": "the public n",
        "data_norm_": "the parameter `data_norm`, sqrt(n_features), or 1 with `normalize`",
        "weight_bound_": "the parameter `weight_bound`, or a release that the plan costs",
    },
    DPClassMixtureGenerator: {
        **GENERATORS,
        **dict.fromkeys(("class_count_", "mixture_"), RELEASED),
        "bounds_": "the parameter `bounds`",
        "n_components_": "the parameter, or a rule in public numbers",
        "n_directions_": "a rule in public numbers",
        "weight_bound_": "the parameter `weight_bound`, or a release that the plan costs",
    },
    DPWGAN: {
        **GENERATORS,
        **dict.fromkeys(("coefs_", "intercepts_"), RELEASED),
        "bounds_": "the parameter `bounds`",
        **dict.fromkeys(("sampling_rate_", "critic_steps_"), "a rule in public numbers"),
        **dict.fromkeys(("n_steps_", "n_iter_"), "the plan, or where the user interrupted it"),
    },
    DPMarginalSynthesizer: {
        **GENERATORS,
        "schema_": "the parameter `schema` or `bounds`",
        **dict.fromkeys(("marginals_", "components_"), RELEASED),
        "pairs_": "all of them, or post-processing of the releases",
        "has_triples_": "a rule in public numbers",
        "weight_bound_": "the parameter `weight_bound`, or a release that the plan costs",
    },
}
