"""Plain values of public results: what the digest of computations records and compares.

A fact is a number, a text, or a record of an array: its type and shape, a hash of its bits, and a few numbers that
show how far two arrays are apart.
"""

from __future__ import annotations

import hashlib
import platform
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from skdp.accounting import PrivacyAccountant

_CPU = Path("/proc/cpuinfo")
_CORE = (_CPU.read_text() if _CPU.exists() else platform.processor()).partition("\n\n")[0]
_NAMES = "vendor_id", "cpu family", "model", "stepping", "flags"
_KIND = [line for line in _CORE.splitlines() if line.startswith(_NAMES)]
PLATFORM = {
    "processor": hashlib.sha256("\n".join(_KIND or [_CORE]).encode()).hexdigest()[:16],
    **{name: version(name) for name in ("numpy", "scipy", "numba", "llvmlite", "scikit-learn", "pandas")},
}
"""What the last bits of sums depend on."""

OUTPUTS = "predict", "predict_proba", "decision_function", "transform", "score_samples"
PLACES = 8  # numbers of an array that are kept
HIDDEN = "fit_params_", "accountant_"


def facts_of(value: Any, depth: int = 0) -> Any:
    """Return a result as facts that JSON can hold."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, float, np.number, np.bool_)):
        return {"number": float(value)}
    if scipy.sparse.issparse(value):
        return facts_of(value.toarray(), depth)
    if hasattr(value, "__dataframe__") or type(value).__name__ == "Series":
        frame = value.to_frame() if type(value).__name__ == "Series" else value
        return {str(name): facts_of(np.asarray(frame[name]), depth) for name in frame.columns}
    if isinstance(value, np.ndarray):
        return _facts_of_array(value)
    if isinstance(value, dict):
        return {str(key): facts_of(each, depth) for key, each in sorted(value.items(), key=lambda pair: str(pair[0]))}
    if isinstance(value, (list, tuple, set, frozenset)):
        items = sorted(value, key=str) if isinstance(value, (set, frozenset)) else value
        return [facts_of(each, depth) for each in items]
    if hasattr(value, "get_params") and depth < 2:
        return {"class": type(value).__name__, **facts_of(attributes_of(value), depth + 1)}
    text = str(value) if type(value).__str__ is not object.__str__ else type(value).__name__
    return text if " at 0x" not in text else type(value).__name__


def _facts_of_array(values: np.ndarray[Any, Any]) -> Any:
    shape = list(values.shape)
    if values.dtype.kind not in "biuf":
        return {"shape": shape, "values": [facts_of(each) for each in values.ravel()[:PLACES].tolist()]}
    values = np.ascontiguousarray(values)
    numbers = values.astype(np.float64).ravel()
    places = np.unique(np.linspace(0, max(len(numbers) - 1, 0), min(PLACES, len(numbers))).astype(int))
    return {
        "shape": shape,
        "type": values.dtype.str,
        "bits": hashlib.sha256(values.tobytes()).hexdigest()[:16],
        "norm": float(np.linalg.norm(numbers[np.isfinite(numbers)])),
        "values": [float(each) for each in numbers[places]] if len(numbers) else [],
    }


def attributes_of(model: Any) -> dict[str, Any]:
    """Return the public attributes of a fitted model: those whose names end in an underscore."""
    names = {name for name in [*vars(model), *dir(type(model))] if name.endswith("_") and not name.startswith("_")}
    found = {}
    for name in sorted(names - set(HIDDEN)):
        try:
            found[name] = getattr(model, name)
        except (AttributeError, NotImplementedError, ValueError):
            continue
    return {name: each for name, each in found.items() if not callable(each) or hasattr(each, "get_params")}


def outputs_of(model: Any, rows: Any) -> dict[str, Any]:
    """Return what a fitted model says of some rows, and rows that it draws."""
    found = {name: getattr(model, name)(rows) for name in OUTPUTS if hasattr(model, name)}
    if hasattr(model, "sample"):
        found["sample"] = model.sample(50, random_state=0)
    return found


def facts_of_run(run: Any) -> dict[str, Any]:
    """Return the facts of a computation, which gets an accountant: results, charges, and categories of warnings."""
    accountant = PrivacyAccountant()
    with warnings.catch_warnings(record=True, action="always") as caught:
        found = run(accountant)
    charges = [
        {"event": str(each.event), "label": each.label, "unit": each.unit, "seeded": each.seeded}
        for each in accountant.history
    ]
    return {
        "results": {name: facts_of(each) for name, each in found.items()},
        "charges": charges,
        "warnings": sorted({each.category.__name__ for each in caught if "skdp" in each.category.__module__}),
    }
