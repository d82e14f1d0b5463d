"""Every number, text and array within a fitted estimator, by its place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from skdp._fit.releases import Release


def leaves(value: Any, place: str = "", seen: frozenset[int] = frozenset()) -> Iterator[tuple[str, Any]]:
    """Generate places and what stands there, so that equal states give equal pairs and no others do.

    Arrays stand as their type, shape and bytes, functions as their names. Random names of releases are left out.
    """
    if id(value) in seen:
        return
    seen |= {id(value)}
    if isinstance(value, Release):
        yield place, (value.event, value.adjacency)  # and not the random name
    elif sp.issparse(value):
        for name in ("data", "indices", "indptr"):
            yield from leaves(getattr(value, name), f"{place}.{name}", seen)
    elif isinstance(value, np.ndarray) and value.dtype != object:
        yield place, (value.dtype.str, value.shape, value.tobytes())
    elif isinstance(value, dict):
        yield place, [repr(key) for key in value]
        for key, each in value.items():
            yield from leaves(each, f"{place}[{key!r}]", seen)
    elif isinstance(value, frozenset) and place.endswith("['_fitted_inside']"):
        yield place, len(value)  # random names of releases
    elif isinstance(value, list | tuple | np.ndarray):
        yield place, len(value)
        for number, each in enumerate(value):
            yield from leaves(each, f"{place}[{number}]", seen)
    elif hasattr(value, "__dict__") and not isinstance(value, type) and not callable(value):
        yield place, type(value).__name__
        yield from leaves(vars(value), place, seen)
    elif callable(value):
        yield place, getattr(value, "__qualname__", type(value).__name__)
    else:
        yield place, (type(value).__name__, repr(value))
