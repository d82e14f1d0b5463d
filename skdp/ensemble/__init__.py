"""Random trees, drawn from public knowledge and from noisy counts, and one linear model over their leaves.

A public name is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import Any

_PUBLIC = {
    "DPRandomTreesClassifier": "classifier",
    "DPRandomTreesRegressor": "regressor",
    "PublicTreesEmbedding": "embedding",
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
