"""Public values as text of one line, in a fixed form: no address in memory, no seed, no path, no table."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from skdp.accounting.ledger.html import one_line as one_line

_HIDDEN = {"accountant", "checkpoint", "memory", "n_jobs", "random_state", "seed", "verbose"}
_MOST_ENTRIES, _LONGEST = 20, 240
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def shown(value: Any) -> str:
    """Return a constructor parameter as text: of arrays and frames with many entries the shape alone."""
    text = one_line(_ADDRESS.sub("", _text_of(value)))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _text_of(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size <= _MOST_ENTRIES:
        return _text_of(value.tolist())
    if hasattr(value, "shape") and not isinstance(value, np.generic):
        return f"{type(value).__name__} of shape {tuple(value.shape)}"
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, type):
        return value.__qualname__
    if hasattr(value, "get_params"):  # its parameters may hold a seed
        return type(value).__name__
    if isinstance(value, Mapping):
        return _entries("{}", [f"{_text_of(key)}: {_text_of(each)}" for key, each in _first(value.items())], len(value))
    if isinstance(value, list | tuple | set | frozenset):
        return _entries("()" if isinstance(value, tuple) else "[]", list(map(_text_of, _first(value))), len(value))
    if callable(value):
        return str(getattr(value, "__qualname__", type(value).__name__))
    try:
        return repr(value)
    except Exception:  # somebody's own class
        return type(value).__name__


def _first(values: Any) -> list[Any]:
    return [each for _, each in zip(range(_MOST_ENTRIES), values, strict=False)]


def _entries(brackets: str, texts: list[str], number: int) -> str:
    if number > len(texts):
        texts = [*texts, f"... ({number} in all)"]
    return brackets[0] + ", ".join(texts) + brackets[1]


def is_hidden(name: str) -> bool:
    """Whether a parameter is a seed, a path or of no matter to the result."""
    return name.rpartition("__")[2] in _HIDDEN


def number(value: Any) -> float | str:
    """Return a float that JSON can hold."""
    value = float(value)
    return value if math.isfinite(value) else "infinity" if value > 0 else "undefined"
