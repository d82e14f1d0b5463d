"""From a raw table to numbers that private estimators take: public schemas, and what is bought where they end.

A public name is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import Any

_PUBLIC = {
    "DPOneHotEncoder": "categories",
    "DPQuantileBinner": "quantiles",
    "DPSimpleImputer": "imputer",
    "DPStandardScaler": "scaler",
    "DPTableVectorizer": "vectorizer",
    "TableSchema": "schema",
    "dp_bounds": "bounds",
}

__all__ = list(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_PUBLIC[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
