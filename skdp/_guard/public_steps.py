"""Which steps of a pipeline read nothing of their rows and treat them one by one.

The list is of classes and parameters, by identity: scikit-learn's tag ``requires_fit=False`` says how an estimator may
be used and not what it keeps (``GaussianProcessRegressor`` has it, and keeps every row). A step that passes

- is fitted with the shape, the names and the types of a table, and with nothing of its rows;
- gives one row for each, in their order, a function of that row and of its parameters;
- gives a table whose width, type, sparsity and names, and messages, are no function of the rows.

It may refuse a table because of one row. A refusal goes to the caller, who holds the data.
Warnings (about the logarithm of a negative number or the mean of an empty row) reveal single rows: run steps `quietly`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import joblib
import numpy as np
from sklearn import get_config
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.kernel_approximation import AdditiveChi2Sampler, PolynomialCountSketch, RBFSampler, SkewedChi2Sampler
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, SplineTransformer
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.utils import get_tags

from skdp._checks.cells import shape_of
from skdp._checks.leaks import silence
from skdp._checks.protocols import is_private
from skdp._guard.public_rules import COUNTERPARTS, RULES, find_not_plain
from skdp._guard.row_wise import RowWise


class Fault(NamedTuple):
    """A step that is not allowed in a private pipeline: its path, its class, what it reads, and a remedy."""

    path: str
    kind: str
    reads: str
    remedy: str


ANYTHING_ELSE = "a private estimator or a transformer that learns nothing (see docs/pitfalls.md)"
_UNLISTED = "is not on the list of steps that read nothing of their rows"
_LEARNS = "learns from its rows"


def find_faults(step: Any, name: str) -> Iterator[Fault]:
    """Find the parts of a step that read rows without paying, or may do so.

    Parameters
    ----------
    step : object
        A step of a pipeline that is no private estimator itself.
    name : str
        Its name; parts of it are named ``name__part``.

    Yields
    ------
    Fault
        None for a step that reads nothing and treats rows one by one.
    """
    for path, part, alone in walk(step, name):
        if is_ours(part):
            yield Fault(path, type(part).__name__, "is inside another step", "make it a step of the pipeline itself")
            continue
        for reads, remedy in alone:
            yield Fault(path, type(part).__name__, reads, remedy)


def walk(step: Any, name: str) -> Iterator[tuple[str, Any, list[tuple[str, str]]]]:
    """Iterate over a step and all its parts: path, part, and what the part itself reads, with remedies."""
    if step is None or (type(step) is str and step in ("passthrough", "drop")):
        return
    if type(step) not in RULES:
        yield name, step, find_own_faults(step)
        return
    yield name, step, find_own_faults(step)
    for part_name, part in parts_of(step):
        yield from walk(part, f"{name}__{part_name}" if name else str(part_name))


def find_own_faults(step: Any) -> list[tuple[str, str]]:
    """Return what a step itself reads, its parts aside, with remedies."""
    rule = RULES.get(type(step))
    if rule is None:
        remedy = COUNTERPARTS.get(type(step).__name__)
        known = remedy is not None and type(step).__module__.partition(".")[0] == "sklearn"
        return [(_LEARNS if known else _UNLISTED, remedy or ANYTHING_ELSE)]
    found = [*_find_changes(step), *rule(step), *_find_joins(step)]
    return found or list(find_not_plain(step))


def is_ours(step: Any) -> bool:
    """Whether an estimator is private: of this package or derived from one of it, and not set to read nothing."""
    return not (type(step) in RULES and not is_private(step)) and any(
        str(cls.__module__).partition(".")[0] == "skdp" for cls in type(step).__mro__
    )


def parts_of(step: Any) -> list[tuple[str, Any]]:
    """Return the parts of a composition of scikit-learn, and nothing for anything else."""
    if isinstance(step, Pipeline):
        return [(name, part) for name, part in step.steps]
    if isinstance(step, FeatureUnion):
        return [(name, part) for name, part in step.transformer_list]
    if isinstance(step, ColumnTransformer):
        return [*((name, part) for name, part, _ in step.transformers), ("remainder", step.remainder)]
    return []


def _find_changes(step: Any) -> Iterator[tuple[str, str]]:
    """Find what an object carries in addition to its class and parameters."""
    if any(callable(getattr(type(step), name, None)) for name in vars(step)):
        yield "has a method that was replaced on the object", "a new object"
    if vars(step).get("_skl_callbacks"):  # since scikit-learn 1.9; clones keep them
        yield "hands its rows to callbacks", "set_callbacks() without any"


def _find_joins(step: Any) -> Iterator[tuple[str, str]]:
    """Find joins of pandas frames by index where a part makes arrays, which lose the index and count from 0."""
    if isinstance(step, FeatureUnion | ColumnTransformer) and output_of(step) == "pandas":
        parts = [part for _, part in _leaves(step)]
        if any(output_of(part) != "pandas" for part in parts):
            yield "joins by index what its parts may have renumbered", "set_output(transform='pandas') on all of it"


def _leaves(step: Any) -> Iterator[tuple[str, Any]]:
    for name, part in parts_of(step):
        if parts_of(part):
            yield from _leaves(part)
        elif part is not None and not isinstance(part, str):
            yield name, part


def output_of(step: Any) -> Any:
    """Return what `set_output` chose for a step: "default", "pandas" or "polars"."""
    chosen = vars(step).get("_sklearn_output_config", {}) if hasattr(step, "__dict__") else {}
    return chosen.get("transform", get_config()["transform_output"])


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Run public steps without warnings of Python or of NumPy's arithmetic, which reveal single rows.

    NumPy's settings apply to one thread, so ``n_jobs`` is ignored: other threads and processes would warn.
    """
    with silence(), np.errstate(all="ignore"), joblib.parallel_config(backend="sequential"):
        yield


_BY_PLACE = (GaussianRandomProjection, SparseRandomProjection, RBFSampler, PolynomialCountSketch, SkewedChi2Sampler)


def rounds_by_place(step: Any) -> bool:
    """Whether the rounding of a row may depend on its place: BLAS treats rows at the end of a block differently.

    Replacing a row in its place changes no other row. Removing a row shifts the others, and the rounding of all of them
    adds up: 1e-14 of each row in float64, 1e-5 in float32.
    """
    parts = [part for _, part, _ in walk(step, "")]
    return any(type(p) in _BY_PLACE or (type(p) is FunctionTransformer and type(p.func) is RowWise) for p in parts)


def check_types(X: Any, *, double: bool = False) -> None:
    """Refuse a table whose converted type may depend on a single row.

    Only columns and types are read, before public steps run.

    Parameters
    ----------
    X : table
    double : bool, default=False
        Whether numbers have to be of double precision: under ``add_remove``, if a step `rounds_by_place`.

    Raises
    ------
    ValueError
        X is a list (its type is found by looking at all rows), an array of bytes (as wide as the longest, to which
        categories are cut), a frame of polars with a column of integers or booleans, or one of pandas with a category
        of these (one gap makes all floats).
    """
    types: Any = getattr(X, "dtypes", getattr(X, "dtype", None))
    kinds = [str(each).lower() for each in (types if hasattr(types, "__iter__") else [types])]
    if double and any(kind in ("float32", "float16") for kind in kinds):
        raise ValueError(
            "X is of single precision, in which a row that leaves changes how others are rounded: give "
            "X.astype(float), or use adjacency='zero_out'."
        )
    if types is None and len(shape_of("X", X)) != 1:  # rows of text may be listed
        raise ValueError("X is a list of rows, whose type is that of its values: give an array or a frame.")
    if getattr(getattr(X, "dtype", None), "kind", None) == "S":
        raise ValueError("X is an array of bytes, as wide as its longest value: give X.astype(object).")
    for number, kind in enumerate(types if hasattr(types, "__iter__") else [types]):
        listed = getattr(getattr(kind, "categories", None), "dtype", None)
        if getattr(listed, "kind", None) in ("i", "u", "b"):
            name = X.columns[number] if hasattr(X, "columns") else X.name
            raise ValueError(
                f"column {name!r} is of pandas' type category of {listed}, which a gap turns into another: cast it to "
                "float, or its categories to text."
            )
    schema = getattr(X, "schema", None) if hasattr(X, "get_columns") else None
    for name, kind in (schema or {}).items():
        if str(kind).startswith(("Int", "UInt", "Boolean")):
            raise ValueError(
                f"column {name!r} is of polars' type {kind}, which a gap turns into another: cast it to Float64."
            )


def passes_rows(step: Any) -> bool:
    """Whether a step is None or "passthrough", so that rows pass unchanged."""
    return step is None or isinstance(step, str)


def takes_sparse(step: Any) -> bool:
    """Whether a step takes sparse rows, by its tags; a function without validation is handed what there is."""
    without_checks = type(step) is FunctionTransformer and not step.validate
    return passes_rows(step) or without_checks or bool(get_tags(step).input_tags.sparse)


def value_refusals(step: Any, name: str) -> Iterator[Fault]:
    """Find the parts of a public step that refuse some values, which is not allowed after a private step."""
    for path, part, _ in walk(step, name):
        kind = type(part)
        if kind in _REFUSING or any(kind is cls and getattr(part, key) == bad for cls, key, bad in _REFUSING_WITH):
            yield Fault(
                path,
                kind.__name__,
                "refuses some values, which behind a private step would cost the whole fit",
                "it in front, or let it take every value (handle_unknown='ignore', extrapolation='constant')",
            )


_REFUSING = (AdditiveChi2Sampler, SkewedChi2Sampler, FeatureHasher, HashingVectorizer)
_REFUSING_WITH = (
    (OneHotEncoder, "handle_unknown", "error"),
    (OrdinalEncoder, "handle_unknown", "error"),
    (SplineTransformer, "extrapolation", "error"),
)
