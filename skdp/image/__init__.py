"""Features of images that are computed from each image alone.

A public name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_PLACES = {"PatchTransformer": "patch_transformer", "ScatteringTransformer": "transformer"}

__all__ = ["PatchTransformer", "ScatteringTransformer"]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
