"""Two tables that differ in one record, the canary: the worst ones for an estimator's kind, or those of the user."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier, is_regressor

WIDTH, N_ROWS = 20, 300


class Canary(NamedTuple):
    """The rows of one record, with their targets and labels of units, None where there are none."""

    X: Any
    y: Any = None
    groups: Any = None


class Neighbours(NamedTuple):
    """What both tables have, and canaries, of which one table has one and the other none."""

    X: Any
    y: Any
    groups: Any
    canaries: list[Canary]


def parameter(estimator: Any, name: str) -> Any:
    """The value of a parameter in the last step that sets it; None if no step does."""
    found = [
        value for path, value in estimator.get_params(deep=True).items()
        if path.rpartition("__")[2] == name and value is not None
    ]  # fmt: skip
    return found[-1] if found else None


def worst_case(estimator: Any) -> Neighbours:
    """Tables on which the canaries move all that they may: all rows agree, and the canaries contradict them.

    Rows are at two opposite corners of the bounds, each with a target of its own; a canary has the target of the other.
    Of models that learn no target each record moves as much as any other does.
    """
    low, high = _corners(estimator)
    one, other = _targets(estimator)
    n = max(N_ROWS, 2 * int(parameter(estimator, "lot_size") or 0))
    X = np.where(np.arange(n)[:, None] % 2 == 0, high, low)
    mixed = np.where(np.arange(len(low)) % 2 == 0, high, low)
    if one is None:
        return Neighbours(X, None, None, [Canary(high[None]), Canary(mixed[None])])
    if parameter(estimator, "adjacency") == "replace_one":  # each record is as far from the one as from the other
        y = np.where(np.arange(n) // 2 % 2 == 0, one, other)
    else:
        y = np.where(np.arange(n) % 2 == 0, one, other)
    pairs = [(high, other), (mixed, other), (mixed, one)]
    return Neighbours(X, y, None, [Canary(row[None], np.array([target])) for row, target in pairs])


def _corners(estimator: Any) -> tuple[Any, Any]:
    """Opposite corners of the public bounds of the rows, each of shape (n_features,)."""
    shape, bounds = parameter(estimator, "image_shape"), parameter(estimator, "bounds")
    width = WIDTH if shape is None else math.prod(shape)
    if bounds is not None and not isinstance(bounds, str):
        pairs = np.asarray(bounds, float)
        pairs = np.broadcast_to(pairs, (width if pairs.ndim == 1 else len(pairs), 2))
        return pairs[:, 0].copy(), pairs[:, 1].copy()
    norm = parameter(estimator, "data_norm")
    corner = np.ones(width) * (1.0 if norm is None else float(norm) / math.sqrt(width))
    return -corner, corner


def _targets(estimator: Any) -> tuple[Any, Any]:
    """Two targets that are as far from each other as may be; None for what learns without targets."""
    classes = parameter(estimator, "classes")
    if is_regressor(estimator):
        bounds = parameter(estimator, "y_bounds")
        return (0.0, 1.0) if bounds is None else (float(bounds[0]), float(bounds[1]))
    if not is_classifier(estimator) and classes is None:
        return None, None
    known = [0, 1] if classes is None or len(classes) < 2 else list(classes)
    return known[0], known[1]


__all__ = ["Canary", "Neighbours", "parameter", "worst_case"]
