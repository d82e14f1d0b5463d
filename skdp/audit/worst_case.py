"""Neighboring tables that differ in one record, the canary: worst-case tables, or those of the user."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier, is_regressor

from skdp._checks.rows import indexable, take_rows
from skdp.base.budget import Release


def leaves(value: Any, place: str = "", seen: frozenset[int] = frozenset()) -> Iterator[tuple[str, Any]]:
    """Generate attribute paths with values, such that two states are equal if and only if their pairs are equal.

    Arrays are represented by type, shape and bytes, functions by names. Random names of releases are left out.
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


_WIDE, _MANY = 40, 4000  # many rows let estimates of columns find it; a fit of few steps is quick


class GivenRows(NamedTuple):
    """Rows, with targets, group identifiers and weights; None for absent ones."""

    X: Any
    y: Any = None
    groups: Any = None
    sample_weight: Any = None

    def given(self) -> dict[str, Any]:
        """Arguments of ``fit`` in addition to X and y."""
        return {name: value for name, value in self._asdict().items() if name not in "Xy" and value is not None}

    def chosen(self, numbers: Any) -> GivenRows:
        """Return some of the rows, with their targets, groups and weights."""
        return GivenRows(*(None if each is None else take(each, numbers) for each in self))


class Neighbors(NamedTuple):
    """Common part of two tables, and canaries, which only one of the tables contains."""

    X: Any
    y: Any
    groups: Any
    canaries: list[GivenRows]


def parameter(estimator: Any, name: str) -> Any:
    """Return the value of a parameter in the last step that sets it; None if no step does."""
    found = [
        value for path, value in estimator.get_params(deep=True).items()
        if path.rpartition("__")[2] == name and value is not None
    ]  # fmt: skip
    return found[-1] if found else None


def worst_case(estimator: Any) -> Neighbors:
    """Return tables on which the canaries have the largest effect: all rows agree, and the canaries contradict them.

    The rows are at two opposite corners of the bounds, each with its own target; a canary has the target of the other
    corner. For models without targets all records have the same effect. The first canary is far outside the public
    bounds, to which a correct estimator clips it.

    A replacement has its full effect only if both records change a sum by the whole clipping norm, in opposite
    directions. For linear models trained in steps, both canaries therefore contradict the rows: all rows have one
    target, and the canaries the other; the cosine of the angle of their gradients is about -(d - 1) / (d + 1). Other
    models cannot learn anything from rows at one place with either target; there the canaries have the two targets.
    """
    if parameter(estimator, "n_clusters") is not None:
        return _of_clusters(estimator)
    is_exchange = parameter(estimator, "adjacency") == "replace_one"
    is_stepwise = is_exchange and _has(estimator, "sampling_rate")
    is_of_leaves = _has(estimator, "n_estimators")
    is_linear = not is_of_leaves and not _has(estimator, "hidden_layer_sizes")
    is_of_radius = is_exchange and not is_stepwise and _has(estimator, "n_components") and _has(estimator, "classes")
    is_wide = is_stepwise or hasattr(estimator, "transform")
    # Columns are more where a record takes the place of another, as their gradients are the more opposite.
    low, high = corners(estimator, 100 if is_stepwise and is_linear else _WIDE if is_wide else 20)
    one, other = targets(estimator)
    is_many = is_stepwise or is_of_radius or _has_columns(estimator)
    # The noise of leaves moves scores of many rows less.
    n_rows = 6000 if is_stepwise and is_of_leaves else _MANY if is_many else 300
    n = max(n_rows, 2 * int(parameter(estimator, "lot_size") or 0))
    mixed, numbers = np.where(np.arange(len(low)) % 2 == 0, high, low), np.arange(n)
    X, y = np.where(numbers[:, None] % 2 == 0, high, low), np.where(numbers % 2 == 0, one, other)
    # The first canary contradicts all rows; the others are for parts that see one side alone.
    far = high if _may_estimate(estimator) else _beyond(low, high)
    if one is None:
        return Neighbors(X, None, None, [GivenRows(row[None]) for row in (far, mixed, *([low] if is_exchange else []))])
    pairs = [(far, _beyond(one, other) if is_regressor(estimator) else other)]
    pairs += [(low, other)] if is_exchange else [(high, one)]
    pairs += [(mixed, one), (mixed, other)] + ([(low, one)] if is_exchange else [])
    if is_of_radius:
        X = (low + high) / 2.0 + 0.15 * (X - (low + high) / 2.0)  # rows beyond the radius of close ones are cut to it
    if is_stepwise and is_linear:
        y = np.full(n, one)
    elif is_stepwise:
        X[:] = mixed
        y = np.full(n, (one + other) / 2.0) if is_regressor(estimator) else y
    return Neighbors(X, y, None, [GivenRows(row[None], np.array([target])) for row, target in pairs])


def _of_clusters(estimator: Any) -> Neighbors:
    """Most rows in the middle, so that radii are small, and a few at each of some corners, for a center each.

    Rows like the canary are at the first corner, beside others on the way to it: these share a center, from which the
    canary remains far. Two canaries of which one takes the other's place are at two more corners, at right angles to
    the first and to the one opposite to it: so the middle is nearest to both, and they are on opposite sides of it.
    Some rows are there, too, for nodes of the tree that hold one canary only. A third canary, at the first corner, is
    nearest to another center than these.
    """
    low, high = corners(estimator, 8)  # noise of more columns would be taken for spread
    middle, n = (low + high) / 2.0, 5 * _MANY
    X = np.tile(middle, (n, 1))
    if parameter(estimator, "adjacency") == "replace_one":
        across, back = (np.where(np.arange(len(low)) % 2 == k, high, low) for k in (0, 1))
        X[::16], X[1::16], X[2::32], X[3::32] = high, low, across, back
        pairs = [(back, across), (across, back), (low, high)]
        return Neighbors(X, None, None, [GivenRows(_beyond(*ends)[None]) for ends in pairs])
    for number in range(1, int(parameter(estimator, "n_clusters")) - 1):  # opposite to the first corner, and others
        signs = np.where(np.arange(len(low)) & (number - 1), 1.0, -1.0)
        X[number + 7 :: 32] = middle + signs * (high - middle)
    X[::32], X[1::64], X[2::64], X[3::64] = high, *[(middle + high) / 2.0] * 3
    return Neighbors(X, None, None, [GivenRows(_beyond(*ends)[None]) for ends in ((low, high), (high, low))])


def given_case(X: Any, y: Any, groups: Any, canary: Any, is_exchange: bool = False) -> Neighbors:
    """Return tables of the user with a canary of the user, or with a row of the table with another target.

    Parameters
    ----------
    X, y, groups : array-like
        Public or simulated data.
    canary : "contradict", int, (int, int), row, or pair of a row and its target
        A number is a row number: this row, or with groups all rows of its group, is in only one of the tables. There
        may be two rows and two targets, or with groups two row numbers.
    is_exchange : bool, default=False
        Whether one canary replaces another: the contradicting row then replaces the same row with its own target, or,
        without targets, the row that is farthest from it.
    """
    X = X if hasattr(X, "shape") else np.asarray(X)
    if isinstance(canary, numbers.Integral):
        return _left_out(X, y, groups, [int(canary)])
    if groups is not None:
        is_pair = isinstance(canary, tuple) and len(canary) == 2
        if not is_pair or not all(isinstance(each, numbers.Integral) for each in canary):
            raise ValueError(
                "`canary` must be a row number with groups (its whole group is the canary), or a pair of row "
                f"numbers, got {canary!r}."
            )
        return _left_out(X, y, groups, [int(each) for each in canary])
    if not isinstance(canary, str):
        return Neighbors(X, y, None, _given_canaries(X, y, canary))
    number = 0 if not hasattr(X, "astype") or hasattr(X, "iloc") else int(np.argmax(_squares(X)))
    row = take(X, [number])
    canaries = [GivenRows(row, None if y is None else contradicting(np.asarray(y), number))]
    if is_exchange:
        other = row if y is not None else take(X, [_farthest_from(X, number)])
        canaries.append(GivenRows(other, None if y is None else np.asarray(y)[[number]]))
    return Neighbors(X, y, None, canaries)


def _given_canaries(X: Any, y: Any, canary: Any) -> list[GivenRows]:
    """One row like those of X or two, with as many targets where X has any."""
    rows, given = canary if isinstance(canary, tuple) else (canary, None)
    rows = rows if hasattr(rows, "iloc") or sp.issparse(rows) else np.atleast_2d(np.asarray(rows))
    targets = None if given is None else np.atleast_1d(np.asarray(given))
    is_right = len(rows.shape) == 2 and rows.shape[0] in (1, 2) and rows.shape[1] == X.shape[1]
    if not is_right or (y is None) != (targets is None) or (targets is not None and len(targets) != rows.shape[0]):
        with_targets = "without a target" if targets is None else f"with {len(targets)} target(s)"
        raise ValueError(
            f"`canary` must be a row like those of X ({X.shape[1]} columns, {'with' if y is not None else 'without'} "
            f"targets), or two rows, got shape {rows.shape} {with_targets}."
        )
    table = GivenRows(rows, targets)
    return [table.chosen([number]) for number in range(rows.shape[0])]


def _left_out(X: Any, y: Any, groups: Any, chosen: list[int]) -> Neighbors:
    """The tables without some rows, or without all rows of their groups, and these as canaries."""
    for number in chosen:
        if not 0 <= number < X.shape[0]:
            raise ValueError(f"`canary` must be a row number from 0 to {X.shape[0] - 1}, got {number}.")
    labels = np.arange(X.shape[0]) if groups is None else np.asarray(groups)
    records = [labels == labels[number] for number in chosen]
    if len(records) > 1 and (records[0] & records[1]).any():
        raise ValueError(f"`canary` must contain rows of two different groups, got {tuple(chosen)}.")
    rest = np.flatnonzero(~np.any(records, axis=0))
    table = GivenRows(X, y, groups)
    common, canaries = table.chosen(rest), [table.chosen(np.flatnonzero(out)) for out in records]
    if groups is not None:  # units are numbered by their labels, and the canary has to be the last of them
        known, labels = np.unique(common.groups, return_inverse=True)
        common = common._replace(groups=labels)
        canaries = [each._replace(groups=np.full(each.X.shape[0], len(known))) for each in canaries]
    return Neighbors(*common[:3], canaries)


def _farthest_from(X: Any, number: int) -> int:
    """The number of the row that is farthest from another one; the second of a table that is no array of numbers."""
    if not hasattr(X, "astype") or hasattr(X, "iloc"):
        return 1
    away = _squares(X) - 2.0 * np.asarray((X @ X[number].T).todense() if sp.issparse(X) else X @ X[number]).ravel()
    return int(np.argmax(away))


def _squares(X: Any) -> Any:
    """Squared norms of the rows of an array or a sparse matrix of numbers."""
    squares = X.multiply(X) if hasattr(X, "tocsr") else np.nan_to_num(np.asarray(X, float)) ** 2
    return np.asarray(squares.sum(axis=1)).ravel()


def contradicting(y: Any, number: int) -> Any:
    """Return the target that is farthest from that of a row; for labels, the first other one."""
    others = y[y != y[number]]
    if not len(others):
        raise ValueError(
            "y contains only one target value, so no contradicting target can be chosen. Pass `canary` as (row, "
            "target)."
        )
    return others[[np.argmax(np.abs(others - y[number]))]] if others.dtype.kind == "f" else others[:1]


def take(rows: Any, numbers: Any) -> Any:
    """Return some rows of a table of any kind."""
    return take_rows(indexable(rows if hasattr(rows, "shape") else np.asarray(rows)), np.asarray(numbers, np.intp))


def _beyond(low: Any, high: Any) -> Any:
    """What lies beyond the second of two ends, far enough to be seen where nothing brings it back."""
    # A canary counts as one on its bounds, eight half widths from their middle.
    return (low + high) / 2.0 + 8.0 * (high - (low + high) / 2.0)


def _may_estimate(estimator: Any) -> bool:
    """Whether a step may estimate bounds or categories: a far row then is the only one of its kind."""
    names = [name for name in ("bounds", "categories", "schema") if _has(estimator, name)]
    if not names:
        return _has_columns(estimator) and not _has(estimator, "data_norm")
    return all(isinstance(parameter(estimator, name), str | None) for name in names)


def _has(estimator: Any, name: str) -> bool:
    """Whether a step has a parameter."""
    return any(path.rpartition("__")[2] == name for path in estimator.get_params(deep=True))


def _has_columns(estimator: Any) -> bool:
    """Whether it may estimate facts about columns: a transformer, or a composition, whose first step may be one."""
    return hasattr(estimator, "transform") or hasattr(estimator, "steps") or hasattr(estimator, "estimator")


def corners(estimator: Any, width: int) -> tuple[Any, Any]:
    """Return opposite corners of the public bounds of the rows, each of shape (n_features,); `width` if it is free."""
    shape, bounds = parameter(estimator, "image_shape"), parameter(estimator, "bounds")
    width = width if shape is None else math.prod(shape)
    if bounds is not None and not isinstance(bounds, str):
        pairs = np.asarray(bounds, float)
        pairs = np.broadcast_to(pairs, (width if pairs.ndim == 1 else len(pairs), 2))
        return pairs[:, 0].copy(), pairs[:, 1].copy()
    norm = parameter(estimator, "data_norm")
    corner = np.ones(width) * (1.0 if norm is None else float(norm) / math.sqrt(width))
    return -corner, corner


def targets(estimator: Any) -> tuple[Any, Any]:
    """Return two targets with the largest possible distance; None for estimators without targets."""
    classes = parameter(estimator, "classes")
    if is_regressor(estimator):
        bounds = parameter(estimator, "y_bounds")
        return (0.0, 1.0) if bounds is None else (float(bounds[0]), float(bounds[1]))
    if not is_classifier(estimator) and classes is None:
        return None, None
    known = [0, 1] if classes is None or len(classes) < 2 else list(classes)
    return known[0], known[1]
