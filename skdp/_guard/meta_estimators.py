"""What compositions of scikit-learn read without paying, and how often they fit: one table for all warnings of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from sklearn.model_selection import ParameterGrid
from sklearn.preprocessing import FunctionTransformer

from skdp._guard.public_steps import find_faults, parts_of

Count = Callable[[Any, str], int | None] | int | str | None
"""Fits of one part (by the name of its parameter) in one fit of a composition: a function, a number, or a parameter.

None where it depends on the data.
"""


class Known(NamedTuple):
    """What a composition reads without paying, and what to use instead.

    Attributes
    ----------
    reads : str
    remedy : str
        Follows the word "use".
    fits : Count
        How often a part is fitted, at most.
    mixes : bool or str
        Whether a row may influence a fit through copies of it or through other rows, so that fits have no joint privacy
        cost; or the name of the parameter that decides it.
    prefit : str
        Remedy where the parts are fitted already; "" if the composition then reads no rows.
    """

    reads: str
    remedy: str
    fits: Count = None
    mixes: bool | str = False
    prefit: str = "public rows"


# --- how often a part is fitted, at most ---


def count_folds(cv: Any) -> int | None:
    """Number of folds of a `cv` parameter, or None if the data decide it."""
    if cv is None:
        return 5
    if isinstance(cv, int) and not isinstance(cv, bool):
        return cv
    if isinstance(cv, list | tuple):
        return len(cv)
    try:
        return int(cv.get_n_splits())
    except Exception:  # folds by groups or by rows cannot be counted without them
        return None


def _sum(first: int | None, second: int) -> int | None:
    return None if first is None else first + second


def _calibrated(owner: Any, name: str) -> int | None:
    return 0 if owner.cv == "prefit" else _sum(count_folds(owner.cv), owner.ensemble is False)


def _tuned(owner: Any, name: str) -> int | None:
    folds = 1 if isinstance(owner.cv, float) else count_folds(owner.cv)
    return 0 if owner.cv == "prefit" else _sum(folds, bool(owner.refit))


def _stacked(owner: Any, name: str) -> int | None:
    if name == "final_estimator":
        return 1
    return 0 if owner.cv == "prefit" else _sum(count_folds(owner.cv), 1)


def _selected(owner: Any, name: str) -> int | None:
    return 0 if owner.prefit else 1


def _self_trained(owner: Any, name: str) -> int | None:
    return None if owner.max_iter is None else owner.max_iter + 1


def _searched(owner: Any, name: str) -> int | None:
    folds = count_folds(owner.cv)
    if folds is None or hasattr(owner, "factor"):  # halving goes by the number of rows
        return None
    if hasattr(owner, "param_grid"):
        candidates = len(ParameterGrid(owner.param_grid))
    elif hasattr(owner, "param_distributions"):
        candidates = int(owner.n_iter)
    else:
        return None
    return folds * candidates + bool(owner.refit)


# --- the table ---

SCORED = Known(
    "the scores of this search or cross-validation are computed on private rows and are not paid for, nor is a choice "
    "by them",
    "skdp.DPGridSearchCV or skdp.model_selection.cross_validate, or score on public rows and ignore this warning",
    _searched,
)
EACH_CLASS = Known(
    "one fit for each class or pair of classes, each of which spends the budget again, and classes are read from y",
    "the private classifier alone with classes=[...], which learns several classes for one budget",
)
_EACH_OUTPUT = Known(
    "one fit for each output, each of which spends the budget again",
    "skdp.DPMLPClassifier, which learns several labels for one budget",
)
_VOTING = Known(
    "each of its estimators that is private spends a budget of its own, which no epsilon_ adds up, and what the others "
    "read, the classes of y included, is not paid for",
    "one private estimator",
    1,
)
_STACKING = Known(
    "the final estimator is fitted to predictions of private rows, which is not paid for, and each of the cv + 1 fits "
    "of an estimator spends the budget again",
    "one private estimator",
    _stacked,
    True,
)
_BAGGING = Known(
    "each of the n_estimators fits spends the budget again, and bootstrap=True draws a row several times, which "
    "multiplies its influence beyond the price",
    "one private estimator, whose averaging does the same",
    "n_estimators",
    "bootstrap",
)
_BY_PUBLIC_KNOWLEDGE = "columns chosen by public knowledge, or skdp.DPPCA"
_CALIBRATED = Known(
    "it is calibrated by private rows, which is not paid for, and each fold is a fit that spends the budget again",
    "skdp.DPCalibratedClassifier, or CalibratedClassifierCV(FrozenEstimator(fitted)) on public rows",
    _calibrated,
    prefit="skdp.DPCalibratedClassifier, or public rows",
)
_PREDICTIONS = Known(
    "each fold is a fit that spends the budget again, and the predictions are of private rows: what is computed from "
    "them is not paid for",
    "one fit, and predict public rows",
)
KNOWN = {
    "BaseSearchCV": SCORED,
    "CalibratedClassifierCV": _CALIBRATED,
    "TunedThresholdClassifierCV": Known(
        "the threshold is chosen by scores of private rows, which is not paid for, and each fold is a fit that spends "
        "the budget again",
        "skdp.DPThresholdClassifier, or FixedThresholdClassifier with a threshold found on public rows",
        _tuned,
        prefit="skdp.DPThresholdClassifier, or public rows",
    ),
    "RFE": Known(
        "each round of the elimination is a fit that spends the budget again, and epsilon_ is that of the last one "
        "alone",
        _BY_PUBLIC_KNOWLEDGE,
    ),
    "RFECV": Known(
        "columns are chosen by scores of private rows, which is not paid for, and each round of each fold is a fit "
        "that spends the budget again",
        _BY_PUBLIC_KNOWLEDGE,
    ),
    "SequentialFeatureSelector": Known(
        "columns are chosen by scores of private rows, which is not paid for, and each column tried is cv fits that "
        "spend the budget again",
        _BY_PUBLIC_KNOWLEDGE,
    ),
    "SelectFromModel": Known(
        "its fit spends a whole budget, which no later step's epsilon_ includes, and a max_features that is a function "
        "reads the rows",
        _BY_PUBLIC_KNOWLEDGE,
        _selected,
        prefit="",
    ),
    "VotingClassifier": _VOTING,
    "VotingRegressor": _VOTING,
    "StackingClassifier": _STACKING,
    "StackingRegressor": _STACKING,
    "OneVsRestClassifier": EACH_CLASS,
    "OneVsOneClassifier": EACH_CLASS,
    "OutputCodeClassifier": EACH_CLASS,
    "MultiOutputClassifier": _EACH_OUTPUT,
    "MultiOutputRegressor": _EACH_OUTPUT,
    "ClassifierChain": _EACH_OUTPUT,
    "RegressorChain": _EACH_OUTPUT,
    "BaggingClassifier": _BAGGING,
    "BaggingRegressor": _BAGGING,
    "AdaBoostClassifier": Known(
        "rows are weighted by their errors, which is not paid for, and each of the n_estimators fits spends the budget "
        "again",
        "one private estimator",
        "n_estimators",
        True,
    ),
    "SelfTrainingClassifier": Known(
        "labels are made by predictions of private rows, so one row changes those of others beyond the price, and each "
        "round is a fit that spends the budget again",
        "one private estimator",
        _self_trained,
        True,
    ),
    "TransformedTargetRegressor": Known(
        "the target is transformed by what is read from y, which is not paid for",
        "a public func and inverse_func with check_inverse=False, such as np.log1p and np.expm1",
        1,
    ),
}
"""Compositions by the name of their class in scikit-learn."""

SILENT = "FixedThresholdClassifier"
"""A composition that reads nothing itself and fits its part once."""


def is_silent(owner: Any) -> bool:
    """Whether a composition of scikit-learn itself reads nothing, and fits its part once."""
    name = known_name(owner) if is_of_sklearn(owner) else None
    return name == SILENT or (name == "TransformedTargetRegressor" and _transforms_publicly(owner))


def _transforms_publicly(owner: Any) -> bool:
    """Whether targets are transformed one by one, by a function that is listed or marked; inverses see predictions."""
    step = FunctionTransformer(owner.func, owner.inverse_func, check_inverse=owner.check_inverse)
    return owner.transformer is None and owner.check_inverse is False and next(find_faults(step, ""), None) is None


STEPS = {"Pipeline", "FeatureUnion", "ColumnTransformer"}
FUNCTIONS = {
    **dict.fromkeys(("cross_validate", "cross_val_score", "_fit_and_score"), ("a search or cross-validation", SCORED)),
    **{name: (name, SCORED) for name in ("validation_curve", "learning_curve", "permutation_test_score")},
    **dict.fromkeys(("cross_val_predict", "_fit_and_predict"), ("cross_val_predict", _PREDICTIONS)),
    "_fit_classifier_calibrator_pair": ("CalibratedClassifierCV", _CALIBRATED),
    "_fit_binary": ("a classifier of classes one by one", EACH_CLASS),
}
"""Title and entry of functions of scikit-learn that fit, by name."""


UNLISTED = Known("", "")


def describe_unknown(name: str) -> Known:
    """Return the entry of a composition or function that is not in the table."""
    return Known(
        f"skdp does not know what {name} reads of the rows; it is not paid for, and each fit spends the budget again",
        "the private estimator alone, or skdp.allocate_budget",
    )


def known_name(owner: Any) -> str | None:
    """Return the name of the listed class of scikit-learn of which an estimator is an instance, or None."""
    for cls in type(owner).__mro__:
        name = cls.__name__
        if str(cls.__module__).startswith("sklearn.") and (name in KNOWN or name == SILENT or name in STEPS):
            return name
    return None


def is_of_sklearn(owner: Any) -> bool:
    """Whether the class of an estimator is scikit-learn's own: a subclass may do anything."""
    return str(type(owner).__module__).startswith("sklearn.")


def mixes_rows(owner: Any) -> bool:
    """Whether a row may influence the fits of a composition beyond their price."""
    mixes = KNOWN.get(str(known_name(owner)), UNLISTED).mixes
    return bool(getattr(owner, mixes)) if isinstance(mixes, str) else mixes


def is_estimator(value: Any) -> bool:
    """Whether a value is an estimator, and no class."""
    return hasattr(type(value), "fit") and not inspect.isclass(value)


def children_of(owner: Any) -> Iterator[tuple[str, Any, int | None]]:
    """Iterate over the estimators that are parts or parameters of another: name, estimator, and how often it is fitted.

    Of a class that is not in the table it is not known how often.
    """
    if parts_of(owner):
        yield from ((str(name), part, 1) for name, part in parts_of(owner) if is_estimator(part))
        return
    name = known_name(owner)
    count = 1 if name == SILENT else KNOWN.get(str(name), UNLISTED).fits
    if isinstance(count, str):
        count = int(getattr(owner, count))
    for parameter, value in owner.get_params(deep=False).items() if hasattr(owner, "get_params") else ():
        named = value if isinstance(value, list | tuple) else [(parameter, value)]
        for each in named:
            if isinstance(each, tuple) and len(each) == 2 and is_estimator(each[1]):
                yield str(each[0]), each[1], count(owner, parameter) if callable(count) else count
