"""The contract that every estimator of the package signs: scikit-learn's own checks.

A newcomer is one more line of `ESTIMATORS`. Settings that fit in another way are lines of `SETTINGS`.
"""

import pytest
from sklearn.utils.estimator_checks import check_estimator

import skdp
from skdp.ensemble import DPRandomTreesClassifier, DPRandomTreesRegressor, PublicTreesEmbedding
from skdp.preprocessing import DPOneHotEncoder, DPQuantileBinner, DPSimpleImputer, DPStandardScaler, DPTableVectorizer
from skdp.synthesis import DPWGAN, DPClassMixtureGenerator, DPMarginalSynthesizer
from skdp.synthesis.generator import PrivateGenerator

ESTIMATORS = [
    skdp.DPLogisticRegression(epsilon=4.0),  # at 1, noise decides two fits of ten to the 50 rows of some checks
    skdp.DPMLPClassifier((8,), epsilon=50.0),  # at 1, noise decides half of the fits to 50 rows
    skdp.DPMLPRegressor((8,)),
    skdp.DPPCA(),
    skdp.DPRidge(),
    skdp.DPLinearRegression(),
    skdp.DPOrdinalLogisticRegression(epsilon=4.0),
    # More noise takes all predictions on 15 rows to a bound.
    skdp.DPPoissonRegressor(epsilon=None, noise_multiplier=0.001),
    skdp.DPGaussianNB(),
    skdp.DPKMeans(),
    skdp.DPIsolationForest(20, bounds=(-10.0, 10.0), epsilon=8.0),
    skdp.DPGridSearchCV(skdp.DPLogisticRegression(max_iter=5), {"alpha": [0.0, 0.1]}, epsilon=50.0, random_state=0),
    skdp.DPRandomizedSearchCV(
        skdp.DPLogisticRegression(max_iter=5),
        {"alpha": [0.0, 0.1, 0.2]},
        n_iter=2,
        epsilon=50.0,
        strategy="compose",
        scoring="neg_log_loss",
        refit=False,
        random_state=0,
    ),
    skdp.DPCalibratedClassifier(skdp.DPLogisticRegression(max_iter=5), epsilon=50.0, random_state=0),
    skdp.DPThresholdClassifier(skdp.DPLogisticRegression(max_iter=5), epsilon=50.0, random_state=0),
    DPQuantileBinner(),
    DPOneHotEncoder(),
    DPStandardScaler(),
    DPSimpleImputer(),
    PublicTreesEmbedding(5, bounds=(-5.0, 5.0)),
    DPRandomTreesClassifier(20, bounds=(-5.0, 5.0), epsilon=8.0),
    DPRandomTreesRegressor(20, bounds=(-5.0, 5.0), y_bounds=(-300.0, 300.0)),
    DPMarginalSynthesizer(bounds=(-5.0, 5.0), n_components=10, max_iter=20),
    DPClassMixtureGenerator(bounds=(-5.0, 5.0)),
    DPWGAN((-5.0, 5.0), critic_layer_sizes=8, generator_layer_sizes=8, n_latent=2, max_iter=2),
    DPTableVectorizer(),
]
ONE_FOR_ANOTHER = {"adjacency": "replace_one"}
NOISE = {"epsilon": None, "noise_multiplier": 0.5}
SETTINGS = [
    skdp.DPLogisticRegression(
        epsilon=8.0, sampling_rate=0.5, max_iter=50, fit_intercept=False, average=False, n_jobs=2, **ONE_FOR_ANOTHER
    ),
    skdp.DPMLPClassifier(
        (8, 4), "tanh", solver="adam", clipping="per_layer", average=None, adjacency="replace_one",
        epsilon=None, noise_multiplier=0.1,
    ),
    skdp.DPLinearRegression((-5.0, 5.0), fit_intercept=False, **ONE_FOR_ANOTHER),
    skdp.DPPCA("auto", center=False, normalize=True, whiten=True, **ONE_FOR_ANOTHER),
    DPQuantileBinner(4, bounds=(-5.0, 5.0), encode="ordinal", **ONE_FOR_ANOTHER),
    DPOneHotEncoder(3, sparse_output=False, **NOISE),
    DPSimpleImputer("median", bounds=(-5.0, 5.0)),
    DPMarginalSynthesizer(bounds=(-5.0, 5.0), n_bins=4, pairs="select", max_iter=20, **NOISE, **ONE_FOR_ANOTHER),
    DPClassMixtureGenerator(
        3, bounds=(-5.0, 5.0), class_prevalences="uniform", **NOISE, **ONE_FOR_ANOTHER
    ),
    DPTableVectorizer(numbers="both", sparse_output=False, dtype="float64", **NOISE),
]  # fmt: skip
_WEIGHTS = "weights are cut at a bound and noise is drawn anew: weight 2 is not two rows, weight 0 not one row fewer"
EXPECTED_FAILED_CHECKS = {
    "check_sample_weight_equivalence_on_dense_data": _WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": _WEIGHTS,
}
WITHOUT_INTERCEPT = {
    "check_class_weight_classifiers": "no weight makes all rows one class without an intercept: scikit-learn's own "
    "LogisticRegression(fit_intercept=False) fails as well",
}

ANOTHER_THRESHOLD = {
    "check_classifiers_train": "another threshold than 1/2 is what it is for: scikit-learn's own "
    "TunedThresholdClassifierCV fails as well",
    "check_classifiers_classes": "it compares predict with the sign of decision_function, which is a threshold of 1/2",
}


WITHOUT_FIT_TRANSFORM = {
    f"check_transformer_{each}": "there is no fit_transform: distances of private rows are private"
    for each in ("data_not_an_array", "general")
}


OUTLIERS_BY_NOISY_COUNTS = {
    "check_outliers_train": "which share of the rows predict calls outliers is an exact figure of them; contamination "
    "is met by noisy counts, roughly",
}


def expected_failures(estimator):
    # Few rows make one bin, whatever their weights are; generators have no outputs that the checks compare.
    if isinstance(estimator, DPQuantileBinner | PrivateGenerator):
        return {}
    if isinstance(estimator, skdp.DPKMeans):
        return EXPECTED_FAILED_CHECKS | WITHOUT_FIT_TRANSFORM
    if isinstance(estimator, skdp.DPIsolationForest):
        return EXPECTED_FAILED_CHECKS | OUTLIERS_BY_NOISY_COUNTS
    if isinstance(estimator, skdp.DPThresholdClassifier):
        return EXPECTED_FAILED_CHECKS | ANOTHER_THRESHOLD
    return EXPECTED_FAILED_CHECKS | ({} if getattr(estimator, "fit_intercept", True) else WITHOUT_INTERCEPT)


# The checks leave `classes` to be read from y and seed the estimator: both are leaks, and warned of.


@pytest.mark.parametrize("estimator", [*ESTIMATORS, *SETTINGS], ids=lambda each: type(each).__name__)
def test_sklearn_checks(estimator):
    """All pass but those that are expected to fail, and these fail."""
    found = check_estimator(estimator, expected_failed_checks=expected_failures(estimator), on_fail=None, on_skip=None)
    wrong = {
        each["check_name"]: each["exception"]
        for each in found
        if each["status"] == "failed" or (each["status"] == "passed" and each["expected_to_fail"])
    }
    assert wrong == {}


def test_at_most_two_checks_may_fail():
    assert len(EXPECTED_FAILED_CHECKS) <= 2
