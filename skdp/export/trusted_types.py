"""The types that files of skops consist of; see `skdp.base.saved_state` for their content."""

from __future__ import annotations

MODELS = {
    "model_selection.calibrated_classifier": ("DPCalibratedClassifier",),
    "model_selection.threshold_classifier": ("DPThresholdClassifier",),
    "cluster.kmeans": ("DPKMeans",),
    "decomposition": ("DPPCA",),
    "ensemble.classifier": ("DPRandomTreesClassifier",),
    "ensemble.embedding": ("PublicTreesEmbedding",),
    "ensemble.isolation_forest": ("DPIsolationForest",),
    "ensemble.regressor": ("DPRandomTreesRegressor",),
    "metrics.private_evaluation": ("PrivateEvaluation",),
    "image.transformers": ("PatchTransformer", "ScatteringTransformer"),
    "linear_model.least_squares": ("DPLinearRegression", "DPRidge"),
    "linear_model.logistic": ("DPLogisticRegression",),
    "linear_model.ordinal": ("DPOrdinalLogisticRegression",),
    "linear_model.poisson": ("DPPoissonRegressor",),
    "model_selection.search": ("DPGridSearchCV", "DPRandomizedSearchCV"),
    "naive_bayes": ("DPGaussianNB",),
    "neural_network.classifier": ("DPMLPClassifier",),
    "neural_network.regressor": ("DPMLPRegressor",),
    "pipeline.private_pipeline": ("PipelineSlice", "PrivatePipeline"),
    "preprocessing.categories": ("DPOneHotEncoder",),
    "preprocessing.imputer": ("DPSimpleImputer",),
    "preprocessing.quantiles": ("DPQuantileBinner",),
    "preprocessing.scaler": ("DPStandardScaler",),
    "preprocessing.vectorizer": ("DPTableVectorizer",),
    "synthesis.class_generator": ("DPClassMixtureGenerator",),
    "synthesis.wgan": ("DPWGAN",),
    "synthesis.marginals.synthesizer": ("DPMarginalSynthesizer",),
    "tabular": ("TabularPipeline",),
}
"""Classes whose objects skops writes, by module."""


def skops_types() -> list[str]:
    """Return the types that a saved model consists of, to be trusted by `skops.io.load`.

    Returns
    -------
    list of str
        Names of the public estimators of skdp. Types of scikit-learn and NumPy are known to skops. A model with objects
        of other classes, such as third-party transformers, needs their names in addition.

    See Also
    --------
    to_onnx : A graph that predicts without skdp.

    Notes
    -----
    **Guarantees.**

    - A file contains the fitted state, which is released already, at no additional privacy cost. It contains no
      accountant, no path and no seed. The loaded model has `accountant` and `random_state` None.
    - Loading calls and imports nothing that a file could choose, except constructors of these types and of the events.
    - An `epsilon_` below the privacy cost of the events in the file is rejected. A file whose events were replaced
      cannot be recognized: load files from a trusted source.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> import skops.io
    >>> from skdp import DPGaussianNB
    >>> from skdp.export import skops_types
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(1000, 2))
    >>> model = DPGaussianNB(classes=[0, 1], bounds=(-1, 1)).fit(X, (X[:, 0] > 0).astype(int))
    >>> again = skops.io.loads(skops.io.dumps(model), trusted=skops_types())
    >>> again.epsilon_ == model.epsilon_, bool((again.predict(X) == model.predict(X)).all())
    (True, True)
    """
    return [f"skdp.{module}.{name}" for module, names in MODELS.items() for name in names]
