"""From a raw table to numbers that private estimators take: public schemas, and what is bought where they end."""

from __future__ import annotations

from skdp import lazy_face

__getattr__, __dir__, __all__ = lazy_face(
    __name__,
    {
        "DPOneHotEncoder": "skdp.preprocessing.categories",
        "DPQuantileBinner": "skdp.preprocessing.quantiles",
        "DPSimpleImputer": "skdp.preprocessing.imputer",
        "DPStandardScaler": "skdp.preprocessing.scaler",
        "DPTableVectorizer": "skdp.preprocessing.vectorizer",
        "FormulaRows": "skdp.preprocessing.formula",
        "TableSchema": "skdp.preprocessing.schema.table_schema",
        "dp_bounds": "skdp.preprocessing.bounds",
        "formula_rows": "skdp.preprocessing.formula",
    },
)
