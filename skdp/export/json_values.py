"""Parameters and fitted attributes as JSON: plain values as such, all else under the name of its kind."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from skdp.accounting import DpEvent
from skdp.accounting.ledger.serial import event_from_dict, event_to_dict

_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_DTYPES = "biuf"


def to_plain(name: str, value: Any) -> Any:
    """Return a value as JSON can hold it, so that `from_plain` gives an equal one; `name` is for a refusal."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.generic):
        return to_plain(name, value.item())
    if isinstance(value, int | float):
        return value if math.isfinite(value) else {"float": str(float(value))}
    if isinstance(value, list):
        return [to_plain(name, each) for each in value]
    if isinstance(value, tuple):
        return {"tuple": [to_plain(name, each) for each in value]}
    if isinstance(value, range):
        return {"range": [value.start, value.stop, value.step]}
    if type(value) is dict:
        return {"pairs": [[to_plain(name, key), to_plain(name, each)] for key, each in value.items()]}
    if type(value) is np.ndarray:
        return _array_to_plain(name, value)
    if isinstance(value, DpEvent):
        return {"privacy_event": event_to_dict(value)}
    if hasattr(value, "to_json") and type(value).__name__ == "TableSchema":
        return {"schema": value.to_json()}
    raise TypeError(f"{name} holds a {type(value).__name__}, which JSON has no form for: give a plain value.")


def _array_to_plain(name: str, value: Any) -> Any:
    kind = value.dtype.kind
    if kind not in _DTYPES and kind not in "UO":
        raise TypeError(f"{name} is an array of dtype {value.dtype}, which JSON has no form for: give numbers or text.")
    dtype = value.dtype.str.lstrip("<>=|") if kind in _DTYPES else kind
    items = [to_plain(name, each) for each in value.ravel().tolist()]
    return {"array": items, "dtype": dtype, "shape": list(value.shape)}


def from_plain(content: Any, schema_of: Any) -> Any:
    """Return the value that `to_plain` wrote; `schema_of` makes a schema of its text."""
    if isinstance(content, list):
        return [from_plain(each, schema_of) for each in content]
    if not isinstance(content, dict):
        return content
    if set(content) == {"array", "dtype", "shape"}:
        return _array_of(content, schema_of)
    ((kind, value),) = content.items()
    if kind == "float":
        return _NOT_FINITE[value]
    if kind == "tuple":
        return tuple(from_plain(each, schema_of) for each in value)
    if kind == "range":
        return range(*value)
    if kind == "pairs":
        return {from_plain(key, schema_of): from_plain(each, schema_of) for key, each in value}
    if kind == "privacy_event":
        return event_from_dict(value)
    if kind == "schema":
        return schema_of(value)
    raise ValueError(kind)


def _array_of(content: dict[str, Any], schema_of: Any) -> Any:
    items, dtype = [from_plain(each, schema_of) for each in content["array"]], content["dtype"]
    if dtype not in ("U", "O") and np.dtype(dtype).kind not in _DTYPES:
        raise ValueError(dtype)
    if dtype == "O":  # NumPy would look at what is in the cells
        return np.fromiter(items, object, len(items)).reshape(content["shape"])
    return np.array(items, np.dtype(dtype)).reshape(content["shape"])


__all__ = ["from_plain", "to_plain"]
