"""Random trees from public information and noisy counts, and linear models on their leaves.

- `marginal_counts`: noisy marginal counts of the columns, from which trees are grown
- `trees`: random trees from a public seed and marginal distributions, as arrays
- `embedding`: transformer from a raw table to leaves of random trees
- `trees_of_tables`: base class of estimators with random trees over the columns of a raw table
- `isolation_forest`: differentially private isolation forest
- `leaf_model`: linear model on the leaves of random trees, shared by classifier and regressor
- `classifier`: differentially private random trees classifier
- `regressor`: differentially private random trees regressor
"""

from __future__ import annotations

from skdp import lazy_face

__getattr__, __dir__, __all__ = lazy_face(
    __name__,
    {
        "DPIsolationForest": "skdp.ensemble.isolation_forest",
        "DPRandomTreesClassifier": "skdp.ensemble.classifier",
        "DPRandomTreesRegressor": "skdp.ensemble.regressor",
        "PublicTreesEmbedding": "skdp.ensemble.embedding",
    },
)
