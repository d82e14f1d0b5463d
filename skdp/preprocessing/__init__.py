"""Schemas of tables, and transformers from a raw table to numbers that private estimators take.

- `bounds`: `dp_bounds`, bounds of columns from a noisy histogram.
- `categories`: `DPOneHotEncoder`, categories that are selected privately.
- `cell_tree`: cells of a column that are split where the noisy mass is, and bins and bounds from them.
- `column_estimates`: what a schema leaves out of a table, estimated privately.
- `column_sums`: means and variances of columns between bounds, from one release.
- `formula`: `formula_rows`, rows of a regression formula by a public schema.
- `histogram_query`: noisy histograms of several columns, released jointly.
- `imputer`: `DPSimpleImputer`, values that take the place of missing ones.
- `quantiles`: `DPQuantileBinner`, bins of nearly equal mass.
- `raw_columns`: columns of a raw table, read or matched with a schema.
- `scaler`: `DPStandardScaler`, standardization by means and variances.
- `schema`: what is public of a table, and a column as a block of numbers.
- `vectorizer`: `DPTableVectorizer`, any table to numbers.
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
