"""Random trees, drawn from public knowledge and from noisy counts, and one linear model over their leaves.

- `marginal_counts`: where people are along each column: noisy counts of cells, from which trees are
  grown
- `trees`: trees drawn from a public seed and from what is known of the columns, as arrays
- `embedding`: the transformer from a raw table to leaves of random trees, by a public schema and a public seed
- `trees_of_tables`: estimators that grow random trees over the columns of a raw table: what is public of these, and
  how they are read
- `isolation_forest`: private isolation forest
- `leaf_model`: a private linear model over the leaves of random trees: what its classifier and its regressor share
- `classifier`: private classifier of random trees
- `regressor`: private regressor of random trees
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
