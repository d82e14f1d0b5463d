"""Stateless steps of a pipeline, which read no private data and transform rows one by one.

Steps are listed by class and parameters. scikit-learn's tag ``requires_fit=False`` is not sufficient: for example,
``GaussianProcessRegressor`` has it, and keeps every row. A stateless step

- is fitted with the shape, the names and the types of a table only;
- returns one row for each row, in the same order, as a function of that row and of its parameters;
- returns a table whose width, type, sparsity and names, and messages, do not depend on the rows.

It may reject a table because of one row. The error goes to the caller, who has the data. Warnings (about the logarithm
of a negative number or the mean of an empty row) reveal single rows: run steps `quietly`.
"""

from __future__ import annotations

import contextlib
import datetime
import numbers
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import joblib
import numpy as np
import scipy.special
from sklearn import get_config
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import AdditiveChi2Sampler, PolynomialCountSketch, RBFSampler, SkewedChi2Sampler
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.utils import get_tags

from skdp._checks.frames import letter_of, types_of
from skdp._checks.leaks import silence
from skdp._checks.numbers import shape_of
from skdp._checks.parameters import is_private
from skdp._checks.rows import column_names
from skdp.accounting import AddRemove, Risk
from skdp.base.row_wise import RowWise

_VECTORIZER = "skdp.preprocessing.DPTableVectorizer with public bounds (no privacy cost)"
_PUBLIC_CONSTANT = (
    "SimpleImputer(strategy='constant', fill_value=..., keep_empty_features=True) (no privacy cost) or "
    "skdp.preprocessing.DPSimpleImputer (consumes budget)"
)
COUNTERPARTS = {
    **dict.fromkeys(("PCA", "IncrementalPCA", "KernelPCA", "SparsePCA", "FactorAnalysis", "FastICA"), "skdp.DPPCA"),
    "TruncatedSVD": "skdp.DPPCA(center=False)",
    **dict.fromkeys(
        ("LogisticRegression", "LogisticRegressionCV", "SGDClassifier", "LinearSVC", "SVC", "RidgeClassifier",
         "RidgeClassifierCV", "Perceptron", "PassiveAggressiveClassifier", "GaussianNB", "KNeighborsClassifier",
         "LinearDiscriminantAnalysis"),
        "skdp.DPLogisticRegression",
    ),
    **dict.fromkeys(
        ("MLPClassifier", "RandomForestClassifier", "ExtraTreesClassifier", "DecisionTreeClassifier",
         "GradientBoostingClassifier", "HistGradientBoostingClassifier", "AdaBoostClassifier"),
        "skdp.DPMLPClassifier",
    ),
    **dict.fromkeys(
        ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "PowerTransformer", "QuantileTransformer"),
        f"{_VECTORIZER} or DPStandardScaler (consumes budget)",
    ),
    "KBinsDiscretizer": f"{_VECTORIZER} or DPQuantileBinner (consumes budget)",
    **dict.fromkeys(("SimpleImputer", "KNNImputer", "IterativeImputer"), _PUBLIC_CONSTANT),
    "MissingIndicator": "MissingIndicator(features='all')",
    "OneHotEncoder": ("OneHotEncoder(categories=[...]) with public lists (no privacy cost) or "
    "skdp.preprocessing.DPOneHotEncoder (consumes budget)"),
    "OrdinalEncoder": "OrdinalEncoder(categories=[...]) with public lists",
    "TargetEncoder": "OneHotEncoder(categories=[...]) with public lists",
    "LabelEncoder": "classes=[...] of the private classifier",
    "LabelBinarizer": "classes=[...] of the private classifier",
    "SplineTransformer": "SplineTransformer(knots=array) with public knots",
    "Nystroem": "RBFSampler(gamma=number)",
    "CountVectorizer": "HashingVectorizer",
    "TfidfVectorizer": "HashingVectorizer",
    "DictVectorizer": "FeatureHasher",
    **dict.fromkeys(("GridSearchCV", "HalvingGridSearchCV"), "skdp.DPGridSearchCV"),
    **dict.fromkeys(("RandomizedSearchCV", "HalvingRandomSearchCV"), "skdp.DPRandomizedSearchCV"),
}  # fmt: skip
"""Replacement of a step that reads its rows without accounting for them, by the name of its class."""


def _nothing(step: Any) -> Iterator[tuple[str, str]]:
    yield from ()


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


_ELEMENTWISE = frozenset(
    f
    for module in (np, scipy.special)
    for f in vars(module).values()
    if isinstance(f, np.ufunc) and f.nin == f.nout == 1 and f.signature is None
)
"""Ufuncs of numpy and scipy.special only: ``np.frompyfunc`` makes a ufunc of any function, which may keep state."""


def _in_place(step: Any) -> Iterator[tuple[str, str]]:
    if step.copy is not True:  # a search would try the next candidate on what this one made
        yield "modifies the rows in place", f"{type(step).__name__}(copy=True)"


def _function(step: Any) -> Iterator[tuple[str, str]]:
    func = step.func
    if any(func is ufunc for ufunc in _ELEMENTWISE):
        if step.kw_args:  # `where` and `out` bring values of other rows
            yield "passes kw_args to a ufunc", "skdp.row_wise(f) with a function of your own"
    elif func is not None and type(func) is not RowWise:
        remedy = "an element-wise ufunc of numpy, or skdp.row_wise(f) for a function that transforms rows one by one"
        yield "calls a function that may read more than one row", remedy
    if func is not None and step.inverse_func is not None and step.check_inverse is not False:
        yield (
            "compares some rows with their inverse and warns about differences",
            "FunctionTransformer(check_inverse=False)",
        )


def _spline(step: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(step.knots, np.ndarray | list | tuple):
        yield "places its knots according to the rows", COUNTERPARTS["SplineTransformer"]
    if step.sparse_output is not False:
        yield "decides by all rows whether zeros of a row are stored", "SplineTransformer(sparse_output=False)"


def _categories(step: Any) -> Iterator[tuple[str, str]]:
    given, lists = step.categories, (list, tuple, np.ndarray)
    if type(given) not in lists or any(type(each) not in lists for each in given):
        yield "reads its categories from the rows", COUNTERPARTS[type(step).__name__]
    if step.min_frequency is not None or step.max_categories is not None:
        yield "counts its categories in the rows", f"{type(step).__name__}(min_frequency=None, max_categories=None)"


def _one_hot(step: Any) -> Iterator[tuple[str, str]]:
    yield from _categories(step)
    if step.handle_unknown not in ("error", "ignore", "infrequent_if_exist"):
        yield "warns about an unknown category of a single row", "OneHotEncoder(handle_unknown='ignore')"
    elif step.drop is not None and step.handle_unknown != "error":
        yield "warns about an unknown category of a single row", "OneHotEncoder(drop=None), or handle_unknown='error'"


def _ordinal(step: Any) -> Iterator[tuple[str, str]]:
    yield from _categories(step)
    if step.handle_unknown not in ("error", "use_encoded_value"):
        yield "handles unknown categories in an unsupported way", "OrdinalEncoder(handle_unknown='error')"


def _imputer(step: Any) -> Iterator[tuple[str, str]]:
    yield from _in_place(step)
    if step.strategy != "constant":
        yield "computes the fill values from the rows", _PUBLIC_CONSTANT
    if step.keep_empty_features is not True:
        yield "drops a column that is empty in all rows", "SimpleImputer(keep_empty_features=True)"
    if step.add_indicator is not False:
        yield "adds a column if a row has a missing value", "add_indicator=False, and MissingIndicator(features='all')"


def _indicator(step: Any) -> Iterator[tuple[str, str]]:
    if step.features != "all":
        yield "keeps the columns in which a row has a missing value", COUNTERPARTS["MissingIndicator"]


def _projection(step: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(step.n_components, numbers.Integral) or isinstance(step.n_components, bool):
        yield "chooses the number of components by the number of rows", f"{type(step).__name__}(n_components=number)"


def _kernel(step: Any) -> Iterator[tuple[str, str]]:
    if not _is_number(step.gamma):
        yield "computes gamma from the rows", f"{type(step).__name__}(gamma=number)"


def _text(step: Any) -> Iterator[tuple[str, str]]:
    given = ("preprocessor", "tokenizer", "analyzer", "strip_accents")
    if named := [name for name in given if callable(getattr(step, name))]:
        reads = f"calls a user-defined function ({', '.join(named)})"
        yield reads, "HashingVectorizer(token_pattern=...) without functions"
    if step.input != "content":
        yield "reads files", "HashingVectorizer(input='content')"


def _cache(step: Any) -> Iterator[tuple[str, str]]:
    if step.memory is not None:
        yield "writes its rows to a cache", "memory=None"


def _weights(step: Any) -> Iterator[tuple[str, str]]:
    weights = {} if step.transformer_weights is None else step.transformer_weights
    if type(weights) is not dict or any(type(each) not in _NUMBERS for each in weights.values()):
        yield "multiplies its rows by weights that are not plain numbers", "transformer_weights={'name': 2.0}"


def _columns(step: Any) -> Iterator[tuple[str, str]]:
    if not _is_number(step.sparse_threshold) or step.sparse_threshold != 0:
        yield "compares the exact fraction of nonzero entries with a threshold", "ColumnTransformer(sparse_threshold=0)"
    if any(callable(columns) for _, _, columns in step.transformers):
        yield "chooses columns with a function of the rows", "the names of the columns"
    elif any(not is_plain(columns) for _, _, columns in step.transformers):
        yield "chooses columns with an object that may read the rows", "a list of the names of the columns"
    yield from _weights(step)


# --- parameters that are what they say, and no objects that are handed the rows ---

_WHOLE = (int, *(kind for kind in np.sctypeDict.values() if issubclass(kind, np.integer)))
_NUMBERS = frozenset((float, *_WHOLE, *(kind for kind in np.sctypeDict.values() if issubclass(kind, np.floating))))
_ATOMS = frozenset(
    (bool, complex, str, bytes, type(None), datetime.date, datetime.datetime, datetime.timedelta, np.random.RandomState,
     AddRemove, Risk)
) | _NUMBERS | frozenset(np.sctypeDict.values())  # fmt: skip
_TYPES = (bool, int, float, complex, str, object, *np.sctypeDict.values())
_OF_NAMES = ("feature_names_out", "feature_name_combiner", "verbose_feature_names_out")
_BY_RULE: dict[type, tuple[str, ...]] = {
    FunctionTransformer: ("func", "inverse_func"),
    Pipeline: ("steps",),
    FeatureUnion: ("transformer_list",),
    ColumnTransformer: ("transformers", "remainder"),
}


def _of_pandas(name: str) -> Any:
    return getattr(sys.modules.get("pandas"), name, is_plain)  # what no parameter is


def is_plain(value: Any) -> bool:
    """Whether a parameter is a number, a string, or a list, mapping or array of these.

    Types are compared exactly: NumPy lets a subclass of float compute with all rows (``__array_ufunc__``), and a custom
    sequence may compute its items on access.
    """
    kind = type(value)
    if kind in (list, tuple, set, frozenset):
        return all(is_plain(each) for each in value)
    if kind is dict:
        return all(is_plain(each) for pair in value.items() for each in pair)
    if kind is slice:
        return all(is_plain(each) for each in (value.start, value.stop, value.step))
    if kind is np.ndarray:
        return value.dtype.kind in "biufcUSmM" or (value.dtype.kind == "O" and all(map(is_plain, value.flat)))
    if isinstance(value, type):
        return any(value is each for each in _TYPES)
    if kind is _of_pandas("Index"):
        return is_plain(value.to_numpy())
    return kind in _ATOMS or kind is range or isinstance(value, np.dtype) or value is _of_pandas("NA")


def find_not_plain(step: Any) -> Iterator[tuple[str, str]]:
    """Find parameters of a listed step that are not plain values, except its parts and those that its rule checks."""
    known = _BY_RULE.get(type(step), ())
    for name, value in step.get_params(deep=False).items():
        if name in known or (name in _OF_NAMES and callable(value)):  # these are given names, never rows
            continue
        if name == "kw_args" and type(step.func) is RowWise:  # part of a function that is tested with them
            continue
        if not is_plain(value):
            reads = f"has a parameter {name} of type {type(value).__name__}, which may receive the rows"
            yield reads, f"a plain number, string or list for {name}"


RULES: dict[type, Callable[[Any], Iterator[tuple[str, str]]]] = {
    FunctionTransformer: _function,
    Normalizer: _in_place,
    Binarizer: _in_place,
    PolynomialFeatures: _nothing,
    SplineTransformer: _spline,
    OneHotEncoder: _one_hot,
    OrdinalEncoder: _ordinal,
    SimpleImputer: _imputer,
    MissingIndicator: _indicator,
    GaussianRandomProjection: _projection,
    SparseRandomProjection: _projection,
    RBFSampler: _kernel,
    PolynomialCountSketch: _kernel,
    AdditiveChi2Sampler: _nothing,
    SkewedChi2Sampler: _nothing,
    FeatureHasher: _nothing,
    HashingVectorizer: _text,
    Pipeline: _cache,
    FeatureUnion: _weights,
    ColumnTransformer: _columns,
}

_ANY_TYPES: set[type] = set()


def register(cls: type, rule: Callable[[Any], Iterator[tuple[str, str]]], checked: tuple[str, ...] = ()) -> None:
    """Add a class of this package to the list of stateless steps.

    It takes columns of any types, each cell for itself, so `check_types` does not look at what it is given; and no
    message of its errors shows a cell, so `run_publicly` passes them on.

    Parameters
    ----------
    cls : type
        The class itself; classes that derive from it are not on the list.
    rule : callable
        Takes a step, and yields what it reads and what to use instead.
    checked : tuple of str
        Parameters that the rule checks, which need not be plain values.
    """
    RULES[cls] = rule
    _BY_RULE[cls] = checked
    _ANY_TYPES.add(cls)


def takes_any_types(step: Any) -> bool:
    """Whether a stateless step reads each cell for itself, whatever the types of the columns, and shows none."""
    return type(step) in _ANY_TYPES


class Fault(NamedTuple):
    """A step that is not allowed in a private pipeline: its path, its class, what it reads, and a remedy."""

    path: str
    kind: str
    reads: str
    remedy: str


ANYTHING_ELSE = "a private estimator or a transformer that learns nothing from the data (see docs/limitations.md)"


def find_faults(step: Any, name: str) -> Iterator[Fault]:
    """Find the parts of a step that read rows without accounting for them, or may do so.

    Parameters
    ----------
    step : object
        A step of a pipeline that is not itself a private estimator.
    name : str
        Its name; parts of it are named ``name__part``.

    Yields
    ------
    Fault
        Nothing for a stateless step.
    """
    for path, part, alone in walk(step, name):
        if is_ours(part):
            alone = [("is nested inside another step", "it as a step of the pipeline itself")]
        yield from (Fault(path, type(part).__name__, *each) for each in alone)


def walk(step: Any, name: str) -> Iterator[tuple[str, Any, list[tuple[str, str]]]]:
    """Iterate over a step and all its parts: path, part, and what the part itself reads, with remedies."""
    if step is None or (type(step) is str and step in ("passthrough", "drop")):
        return
    yield name, step, find_own_faults(step)
    for part_name, part in parts_of(step) if type(step) in RULES else ():
        yield from walk(part, f"{name}__{part_name}" if name else str(part_name))


def find_own_faults(step: Any) -> list[tuple[str, str]]:
    """Return what a step itself reads, its parts aside, with remedies."""
    rule = RULES.get(type(step))
    if rule is None:
        remedy = COUNTERPARTS.get(type(step).__name__)
        known = remedy is not None and type(step).__module__.partition(".")[0] == "sklearn"
        reads = "learns from its rows" if known else "is not on the list of stateless steps"
        return [(reads, remedy or ANYTHING_ELSE)]
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
        yield "has a method that was replaced on the instance", "a new object"
    if vars(step).get("_skl_callbacks"):  # since scikit-learn 1.9; clones keep them
        yield "passes its rows to callbacks", "set_callbacks() without callbacks"


def _find_joins(step: Any) -> Iterator[tuple[str, str]]:
    """Find joins of pandas frames by index where a part makes arrays, which lose the index and count from 0."""
    joins = isinstance(step, FeatureUnion | ColumnTransformer) and output_of(step) == "pandas"
    if joins and any(output_of(part) != "pandas" for part in _leaves(step)):
        yield "joins by an index that its parts may have reset", "set_output(transform='pandas') on all of it"


def _leaves(step: Any) -> Iterator[Any]:
    for _, part in parts_of(step):
        if parts_of(part):
            yield from _leaves(part)
        elif not passes_rows(part):
            yield part


def output_of(step: Any) -> Any:
    """Return what `set_output` chose for a step: "default", "pandas" or "polars"."""
    chosen = vars(step).get("_sklearn_output_config", {}) if hasattr(step, "__dict__") else {}
    return chosen.get("transform", get_config()["transform_output"])


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Run stateless steps without warnings of Python or of NumPy's arithmetic, which reveal single rows.

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
    """Reject a table whose converted type may depend on a single row.

    Only columns and types are read, before stateless steps run.

    Parameters
    ----------
    X : table
    double : bool, default=False
        Whether numbers must have double precision: under ``add_remove``, if a step `rounds_by_place`.

    Raises
    ------
    ValueError
        X is a list, an array of bytes, a polars or Arrow frame with integer or boolean columns, or a pandas data frame
        with such categories. One missing value would change the type of all values.
    """
    types = types_of(X)
    if double and any(str(each).lower() in ("float32", "float16", "float", "halffloat") for each in types):
        raise ValueError(
            "X has single precision, so removing a row can change the rounding of other rows. Pass X.astype(float), or "
            "use adjacency='zero_out'."
        )
    if types and types[0] is None and len(shape_of("X", X)) != 1:  # rows of text may be listed
        raise ValueError(
            "X must be an array or a data frame, got a list of rows, whose dtype depends on private values."
        )
    if getattr(getattr(X, "dtype", None), "kind", None) == "S":
        raise ValueError("X is an array of bytes, whose dtype depends on its longest value. Pass X.astype(object).")
    for number, kind in enumerate(types):
        listed = getattr(getattr(kind, "categories", None), "dtype", None)
        if getattr(listed, "kind", None) in ("i", "u", "b"):
            name = X.columns[number] if hasattr(X, "columns") else X.name
            raise ValueError(
                f"Column {name!r} has categories of dtype {listed}, and a missing value would change this dtype. Cast "
                "the column to float, or its categories to strings."
            )
        if not hasattr(kind, "kind") and letter_of(kind) in "iub":  # of polars or Arrow
            name = (column_names(X) or [getattr(X, "name", None)])[number]
            raise ValueError(
                f"Column {name!r} has the {type(X).__module__.partition('.')[0]} type {kind}, and a missing value "
                "would change this type. Cast it to Float64."
            )


def passes_rows(step: Any) -> bool:
    """Whether a step is None or "passthrough", so that rows pass unchanged."""
    return step is None or isinstance(step, str)


def takes_sparse(step: Any) -> bool:
    """Whether a step takes sparse rows, by its tags; a function without validation is handed what there is."""
    without_checks = type(step) is FunctionTransformer and not step.validate
    return passes_rows(step) or without_checks or bool(get_tags(step).input_tags.sparse)


def value_rejections(step: Any, name: str) -> Iterator[Fault]:
    """Find the parts of a stateless step that reject some values, which is not allowed after a private step."""
    for path, part, _ in walk(step, name):
        kind = type(part)
        if kind in _REJECTING or any(kind is cls and getattr(part, key) == bad for cls, key, bad in _REJECTING_WITH):
            reads = "rejects some values, which after a private step would end the fit after its charge"
            remedy = (
                "it before the private step, or let it accept all values (handle_unknown='ignore', "
                "extrapolation='constant')"
            )
            yield Fault(path, kind.__name__, reads, remedy)


_REJECTING = (AdditiveChi2Sampler, SkewedChi2Sampler, FeatureHasher, HashingVectorizer)
_REJECTING_WITH = (
    (OneHotEncoder, "handle_unknown", "error"),
    (OrdinalEncoder, "handle_unknown", "error"),
    (SplineTransformer, "extrapolation", "error"),
)
