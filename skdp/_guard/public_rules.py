"""Rules of public steps, one per listed class: what it reads with its parameters, and which parameters to use."""

from __future__ import annotations

import datetime
import numbers
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.special
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

from skdp._guard.row_wise import RowWise
from skdp.accounting import AddRemove, Risk

_VECTORIZER = "skdp.preprocessing.DPTableVectorizer with public bounds (free)"
_PUBLIC_BOUNDS = f"{_VECTORIZER} or DPStandardScaler (paid)"
_PUBLIC_EDGES = f"{_VECTORIZER} or DPQuantileBinner (paid)"
_PUBLIC_CONSTANT = (
    "SimpleImputer(strategy='constant', fill_value=..., keep_empty_features=True) (free) or "
    "skdp.preprocessing.DPSimpleImputer (paid)"
)
_PROJECTION = "skdp.DPPCA"
_LINEAR = "skdp.DPLogisticRegression"
COUNTERPARTS = {
    **dict.fromkeys(("PCA", "IncrementalPCA", "KernelPCA", "SparsePCA", "FactorAnalysis", "FastICA"), _PROJECTION),
    "TruncatedSVD": "skdp.DPPCA(center=False)",
    **dict.fromkeys(
        ("LogisticRegression", "LogisticRegressionCV", "SGDClassifier", "LinearSVC", "SVC", "RidgeClassifier",
         "RidgeClassifierCV", "Perceptron", "PassiveAggressiveClassifier", "GaussianNB", "KNeighborsClassifier",
         "LinearDiscriminantAnalysis"),
        _LINEAR,
    ),
    **dict.fromkeys(
        ("MLPClassifier", "RandomForestClassifier", "ExtraTreesClassifier", "DecisionTreeClassifier",
         "GradientBoostingClassifier", "HistGradientBoostingClassifier", "AdaBoostClassifier"),
        "skdp.DPMLPClassifier",
    ),
    **dict.fromkeys(
        ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "PowerTransformer", "QuantileTransformer"),
        _PUBLIC_BOUNDS,
    ),
    "KBinsDiscretizer": _PUBLIC_EDGES,
    **dict.fromkeys(("SimpleImputer", "KNNImputer", "IterativeImputer"), _PUBLIC_CONSTANT),
    "MissingIndicator": "MissingIndicator(features='all')",
    "OneHotEncoder": "OneHotEncoder(categories=[...]) with public lists (free) or "
    "skdp.preprocessing.DPOneHotEncoder (paid)",
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
"""Replacement of a step that reads its rows without paying, by the name of its class."""


def _nothing(step: Any) -> Iterator[tuple[str, str]]:
    yield from ()


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


_ELEMENTWISE = frozenset(
    f
    for module in (np, scipy.special)
    for f in vars(module).values()
    if isinstance(f, np.ufunc) and f.nin == f.nout == 1 and f.signature is None
)
"""Ufuncs of numpy and scipy.special only: ``np.frompyfunc`` makes a ufunc of any function, which may keep state."""


def _in_place(step: Any) -> Iterator[tuple[str, str]]:
    if step.copy is not True:  # a search would try the next candidate on what this one made
        yield "works in place on the rows", f"{type(step).__name__}(copy=True)"


def _function(step: Any) -> Iterator[tuple[str, str]]:
    func = step.func
    if any(func is ufunc for ufunc in _ELEMENTWISE):
        if step.kw_args:  # `where` and `out` bring values of other rows
            yield "passes kw_args to a ufunc", "mark a function of your own with skdp.row_wise"
    elif func is not None and type(func) is not RowWise:
        yield (
            "calls a function that may look at more than one row",
            "an element-wise ufunc of numpy, or skdp.row_wise(f) for a function that treats rows one by one",
        )
    if func is not None and step.inverse_func is not None and step.check_inverse is not False:
        yield "compares some rows with their inverse and warns of it", "FunctionTransformer(check_inverse=False)"


def _spline(step: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(step.knots, np.ndarray | list | tuple):
        yield "places its knots by the rows", COUNTERPARTS["SplineTransformer"]
    if step.sparse_output is not False:
        yield "stores zeros of a row or not as other rows demand", "SplineTransformer(sparse_output=False)"


def _categories(step: Any) -> Iterator[tuple[str, str]]:
    given = step.categories
    if type(given) not in (list, tuple, np.ndarray) or any(type(each) not in _LISTS for each in given):
        yield "reads its categories from the rows", COUNTERPARTS[type(step).__name__]
    if step.min_frequency is not None or step.max_categories is not None:
        yield "counts its categories", f"{type(step).__name__}(min_frequency=None, max_categories=None)"


def _one_hot(step: Any) -> Iterator[tuple[str, str]]:
    yield from _categories(step)
    if step.handle_unknown not in ("error", "ignore", "infrequent_if_exist"):
        yield "warns of one row's unknown category", "OneHotEncoder(handle_unknown='ignore')"
    elif step.drop is not None and step.handle_unknown != "error":
        yield "warns of one row's unknown category", "OneHotEncoder(drop=None), or handle_unknown='error'"


def _ordinal(step: Any) -> Iterator[tuple[str, str]]:
    yield from _categories(step)
    if step.handle_unknown not in ("error", "use_encoded_value"):
        yield "treats unknown categories in a way that is not known", "OrdinalEncoder(handle_unknown='error')"


def _imputer(step: Any) -> Iterator[tuple[str, str]]:
    yield from _in_place(step)
    if step.strategy != "constant":
        yield "computes what it fills in from the rows", _PUBLIC_CONSTANT
    if step.keep_empty_features is not True:
        yield "drops a column that is empty in all rows", "SimpleImputer(keep_empty_features=True)"
    if step.add_indicator is not False:
        yield "adds a column where a row has a gap", "add_indicator=False, and MissingIndicator(features='all')"


def _indicator(step: Any) -> Iterator[tuple[str, str]]:
    if step.features != "all":
        yield "keeps the columns in which a row has a gap", COUNTERPARTS["MissingIndicator"]


def _projection(step: Any) -> Iterator[tuple[str, str]]:
    if not _is_whole(step.n_components):
        yield "chooses its width by the number of rows", f"{type(step).__name__}(n_components=number)"


def _kernel(step: Any) -> Iterator[tuple[str, str]]:
    if not _is_number(step.gamma):
        yield "computes gamma from the rows", f"{type(step).__name__}(gamma=number)"


def _text(step: Any) -> Iterator[tuple[str, str]]:
    named = [
        name for name in ("preprocessor", "tokenizer", "analyzer", "strip_accents") if callable(getattr(step, name))
    ]
    if named:
        yield (
            f"calls a function of yours ({', '.join(named)})",
            "HashingVectorizer(token_pattern=...) without functions",
        )
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
        yield "compares the exact share of nonzero entries with a threshold", "ColumnTransformer(sparse_threshold=0)"
    if any(callable(columns) for _, _, columns in step.transformers):
        yield "chooses columns by a function of the rows", "the names of the columns"
    elif any(not is_plain(columns) for _, _, columns in step.transformers):
        yield "chooses columns by an object that may read the rows", "a list of the names of the columns"
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


_LISTS = (list, tuple, np.ndarray)


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
            yield (
                f"has a parameter {name} of type {type(value).__name__}, which may be handed the rows",
                f"a plain number, string or list for {name}",
            )


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
    """Add a class of this package to the list of public steps.

    It takes columns of any types, each cell for itself, so `check_types` does not look at what it is given; and no
    message of its refusals shows a cell, so `run_publicly` passes them on.

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
    """Whether a public step reads each cell for itself, whatever the types of the columns, and shows none."""
    return type(step) in _ANY_TYPES
