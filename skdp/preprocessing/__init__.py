"""Table schemas, and transformers from raw tables to numeric features.

- `bounds`: `dp_bounds`, bounds of columns from a noisy histogram.
- `categories`: `DPOneHotEncoder`, one-hot encoding with private selection of categories.
- `cell_tree`: adaptive histograms of a column, and bins and bounds from them.
- `column_estimates`: private estimates for an incomplete schema.
- `column_sums`: means and variances of bounded columns, from one release.
- `formula`: `formula_rows`, features of a regression formula.
- `histogram_query`: noisy histograms of several columns, released jointly.
- `imputer`: `DPSimpleImputer`, imputation of missing values.
- `quantiles`: `DPQuantileBinner`, bins of nearly equal mass.
- `raw_columns`: reading of raw columns and matching with a schema.
- `scaler`: `DPStandardScaler`, standardization.
- `schema`: public descriptions of tables, and their encoding.
- `vectorizer`: `DPTableVectorizer`, encoding of raw tables.
"""

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
