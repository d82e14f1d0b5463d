"""Issues of a composition before it is fitted: data read outside the guarantee, repeated use of the budget."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

from sklearn import get_config
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.metadata_routing import get_routing_for_object

from skdp._checks.groups import GROUP, ROW
from skdp._checks.parameters import check_delta, delta_for, is_private, public_n, settle_adjacency
from skdp.accounting import DpEvent, SelfComposedDpEvent, compose, get_epsilon, resolve_accountant
from skdp.accounting.calibration import calibrate_to
from skdp.accounting.statements.targets import target_of
from skdp.base import public_steps

Count = Callable[[Any, str], int | None] | int | str | None
"""Fits of one part (by the name of its parameter) in one fit of a composition: a function, a number, or a parameter.

None where it depends on the data.
"""


class Known(NamedTuple):
    """Data that a composition reads outside the privacy guarantee, and what to use instead.

    Attributes
    ----------
    reads : str
    remedy : str
        Follows the word "Use".
    fits : Count
        How often a part is fitted, at most.
    mixes : bool or str
        Whether a row may influence several fits or other rows, so that the costs cannot be composed; or the name of the
        parameter that decides it.
    prefit : str
        Remedy if the parts are already fitted; "" if the composition then reads no rows.
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
    "scores of private rows, and the choice based on them, are not covered by the privacy guarantee",
    "skdp.DPGridSearchCV or skdp.model_selection.cross_validate, or score on public rows and ignore this warning",
    _searched,
)
EACH_CLASS = Known(
    "each class or pair of classes is a fit that consumes the budget again, and the classes are read from y",
    "the private classifier alone with classes=[...], which learns several classes with one budget",
)
_EACH_OUTPUT = Known(
    "each output is a fit that consumes the budget again",
    "skdp.DPMLPClassifier, which learns several labels with one budget",
)
_VOTING = Known(
    "each private estimator consumes a separate budget, and other estimators read private data and classes outside "
    "the privacy guarantee",
    "one private estimator",
    1,
)
_STACKING = Known(
    "the final estimator is fitted to private predictions outside the privacy guarantee, and each of the cv + 1 fits "
    "consumes the budget again",
    "one private estimator",
    _stacked,
    True,
)
_BAGGING = Known(
    "each of the n_estimators fits consumes the budget again, and bootstrap=True multiplies the influence of a row",
    "one private estimator, which already averages",
    "n_estimators",
    "bootstrap",
)
_BY_PUBLIC_KNOWLEDGE = "columns chosen with public knowledge, or skdp.DPPCA"
_CALIBRATED = Known(
    "calibration on private rows is not covered by the privacy guarantee, and each fold consumes the budget again",
    "skdp.DPCalibratedClassifier, or CalibratedClassifierCV(FrozenEstimator(fitted)) on public rows",
    _calibrated,
    prefit="skdp.DPCalibratedClassifier, or public rows",
)
_PREDICTIONS = Known(
    "each fold consumes the budget again, and results computed from private predictions are not covered by the "
    "privacy guarantee",
    "a single fit, and predict public rows",
)
KNOWN = {
    "BaseSearchCV": SCORED,
    "CalibratedClassifierCV": _CALIBRATED,
    "TunedThresholdClassifierCV": Known(
        "the threshold is chosen on private rows outside the privacy guarantee, and each fold consumes the budget "
        "again",
        "skdp.DPThresholdClassifier, or FixedThresholdClassifier with a threshold found on public rows",
        _tuned,
        prefit="skdp.DPThresholdClassifier, or public rows",
    ),
    "RFE": Known(
        "each elimination round consumes the budget again, but epsilon_ includes only the last fit",
        _BY_PUBLIC_KNOWLEDGE,
    ),
    "RFECV": Known(
        "columns are chosen by private scores outside the privacy guarantee, and each round of each fold consumes "
        "the budget again",
        _BY_PUBLIC_KNOWLEDGE,
    ),
    "SequentialFeatureSelector": Known(
        "columns are chosen by private scores outside the privacy guarantee, and each candidate column consumes the "
        "budget cv times",
        _BY_PUBLIC_KNOWLEDGE,
    ),
    "SelectFromModel": Known(
        "its fit consumes a budget that epsilon_ of later steps does not include, and a callable max_features reads "
        "the rows",
        _BY_PUBLIC_KNOWLEDGE,
        lambda owner, name: 0 if owner.prefit else 1,
        prefit="",
    ),
    **dict.fromkeys(("VotingClassifier", "VotingRegressor"), _VOTING),
    **dict.fromkeys(("StackingClassifier", "StackingRegressor"), _STACKING),
    **dict.fromkeys(("OneVsRestClassifier", "OneVsOneClassifier", "OutputCodeClassifier"), EACH_CLASS),
    **dict.fromkeys(("MultiOutputClassifier", "MultiOutputRegressor"), _EACH_OUTPUT),
    **dict.fromkeys(("ClassifierChain", "RegressorChain"), _EACH_OUTPUT),
    **dict.fromkeys(("BaggingClassifier", "BaggingRegressor"), _BAGGING),
    "AdaBoostClassifier": Known(
        "row weights depend on errors outside the privacy guarantee, and each of the n_estimators fits consumes the "
        "budget again",
        "one private estimator",
        "n_estimators",
        True,
    ),
    "SelfTrainingClassifier": Known(
        "predicted labels let one row influence others beyond the privacy cost, and each round consumes the budget "
        "again",
        "one private estimator",
        lambda owner, name: None if owner.max_iter is None else owner.max_iter + 1,
        True,
    ),
    "TransformedTargetRegressor": Known(
        "the transformation of the target is fitted to y, which is not covered by the privacy guarantee",
        "public func and inverse_func with check_inverse=False, such as np.log1p and np.expm1",
        1,
    ),
}
"""Compositions by the name of their class in scikit-learn."""

SILENT = "FixedThresholdClassifier"
"""A composition that reads nothing itself and fits its part once."""
UNLISTED = Known("", "")


def is_silent(owner: Any) -> bool:
    """Whether a composition of scikit-learn itself reads nothing, and fits its part once."""
    name = known_name(owner) if is_of_sklearn(owner) else None
    if name != "TransformedTargetRegressor":
        return name == SILENT
    # Targets are transformed one by one, by a function that is listed or marked; inverses see predictions.
    step = FunctionTransformer(owner.func, owner.inverse_func, check_inverse=owner.check_inverse)
    faults = public_steps.find_faults(step, "")
    return owner.transformer is None and owner.check_inverse is False and next(faults, None) is None


STEPS = {"Pipeline", "FeatureUnion", "ColumnTransformer"}
FUNCTIONS = {
    **dict.fromkeys(("cross_validate", "cross_val_score", "_fit_and_score"), ("a search or cross-validation", SCORED)),
    **{name: (name, SCORED) for name in ("validation_curve", "learning_curve", "permutation_test_score")},
    **dict.fromkeys(("cross_val_predict", "_fit_and_predict"), ("cross_val_predict", _PREDICTIONS)),
    "_fit_classifier_calibrator_pair": ("CalibratedClassifierCV", _CALIBRATED),
    "_fit_binary": ("a classifier of classes one by one", EACH_CLASS),
}
"""Title and entry of functions of scikit-learn that fit, by name."""


def describe_unknown(name: str) -> Known:
    """Return the entry of a composition or function that is not in the table."""
    return Known(
        f"skdp does not recognize {name} and cannot account for what it reads, and each fit consumes the budget again",
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


def is_estimator(value: Any) -> bool:
    """Whether a value is an estimator, and no class."""
    return hasattr(type(value), "fit") and not inspect.isclass(value)


def children_of(owner: Any) -> Iterator[tuple[str, Any, int | None]]:
    """Iterate over the estimators that are parts or parameters of another: name, estimator, and how often it is fitted.

    Of a class that is not in the table it is not known how often.
    """
    if public_steps.parts_of(owner):
        yield from ((str(name), part, 1) for name, part in public_steps.parts_of(owner) if is_estimator(part))
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


class Total(NamedTuple):
    """An upper bound on the number of fits, and their composed privacy cost; None for unknown values."""

    n_fits: int | None = None
    epsilon: float | None = None
    delta: float | None = None

    def __str__(self) -> str:
        if self.n_fits is None or self.n_fits < 2:
            return ""
        if self.epsilon is None:
            return f"up to {self.n_fits} fits in total"
        return (
            f"up to {self.n_fits} fits in total, with a composed privacy cost of epsilon={self.epsilon:.3g} "
            f"(delta={self.delta:g})"
        )


class FitCost(NamedTuple):
    """One fit: its event, how its privacy cost is computed, and its privacy unit, a row or a group."""

    event: DpEvent
    delta: float
    adjacency: str
    unit: str = ROW


def add_fits(fits: Iterable[tuple[Any, int | None]], cost: FitCost | None = None) -> Total:
    """Return the total of private estimators, each with its number of fits.

    Costs at different deltas, neighboring relations or privacy units are not composed. `cost` is that of one fit, if
    there is a single estimator and it is known; by default it is planned without data.
    """
    listed = list(fits)
    if any(times is None for _, times in listed):
        return Total()
    n_fits = sum(times or 0 for _, times in listed)
    costs = [cost] if cost is not None and len(listed) == 1 else [plan_without_data(leaf) for leaf, _ in listed]
    known = [each for each in costs if each is not None]
    if n_fits < 1 or len(known) < len(costs) or len({each[1:] for each in known}) != 1:
        return Total(n_fits)
    events = [SelfComposedDpEvent(each.event, n) for each, (_, n) in zip(known, listed, strict=True) if n]
    try:
        epsilon = get_epsilon(compose(events), known[0].delta, adjacency=known[0].adjacency)
    except Exception:  # an event without a cost by this method
        return Total(n_fits)
    return Total(n_fits, epsilon, known[0].delta)


def plan_without_data(estimator: Any) -> FitCost | None:
    """Return the privacy cost of a fit that is the same for tables of any shape, or None.

    A delta that depends on the number of rows is computed for a single row, where it is largest.
    """
    try:
        unit = GROUP if asks_for_groups(estimator) else ROW
        ledger, n = resolve_accountant(estimator.accountant), public_n(estimator, 1)
        copied = copy(estimator)
        settle_adjacency(copied)
        copied.set_params(accountant=None)
        copied.set_params(delta=delta_for(check_delta(copied.delta), ledger, n))
        first, *others = (copied._plan_step(*shape).event_at for shape in ((50, 3), (997, 41), (1_000_003, 7)))
        if any(event_at(1.0) != first(1.0) for event_at in others):
            return None
        noise = copied.noise_multiplier
        if noise is None:
            target = target_of(copied.epsilon, copied.delta)
            noise = calibrate_to(first, target, adjacency=copied.adjacency)
        return FitCost(first(noise), float(copied.delta), str(copied.adjacency), unit)
    except Exception:  # a private pipeline, a search, or parameters that fit will reject
        return None


def asks_for_groups(estimator: Any) -> bool:
    """Return whether scikit-learn's metadata routing passes groups to the ``fit`` of an estimator."""
    if not get_config()["enable_metadata_routing"]:
        return False
    routing = get_routing_for_object(estimator)
    given = getattr(getattr(routing, "fit", None), "requests", {}).get("groups")
    return bool(routing.consumes("fit", ["groups"])) or (isinstance(given, str) and given.isidentifier())  # an alias


FIT_TELLS = {"classes": "classes=[...], a public list", "y_bounds": "y_bounds=(low, high), public numbers"}
"""What each fit reports itself, by the parameter that was not set."""


@dataclass(frozen=True)
class PipelineIssue:
    """Private data that a composition reads without accounting for it, or a budget that it consumes more than once.

    Returned by `skdp.check_pipeline`. ``str(issue)`` is one line.

    Parameters
    ----------
    step : str
        Path of the step, such as ``"estimator__scaler"``. Empty for the composition itself.
    kind : str
        Class name of the step.
    reads : str
        What it reads outside the privacy guarantee, or how often it consumes the budget.
    counterpart : str
        What to use instead.
    n_fits : int or None, default=None
        Upper bound on the fits of private estimators in one fit of the step. None if it depends on the data or is not
        relevant.
    epsilon : float or None, default=None
        Composed privacy cost of these fits at `delta`, in nats. None if it cannot be known without the data.
    delta : float or None, default=None
        Delta at which `epsilon` is computed.
    """

    step: str
    kind: str
    reads: str
    counterpart: str
    n_fits: int | None = None
    epsilon: float | None = None
    delta: float | None = None

    def __str__(self) -> str:
        where = f"step {self.step!r} ({self.kind})" if self.step else self.kind
        total = str(Total(self.n_fits, self.epsilon, self.delta))
        return f"{where}: {self.reads}{total and f'; {total}'}. Use {self.counterpart}."


# --- any composition ---


def find(composition: Any) -> list[PipelineIssue]:
    """Return all issues of a composition, from its parameters alone.

    Parameters
    ----------
    composition : estimator

    Returns
    -------
    list of PipelineIssue

    Raises
    ------
    TypeError
        The composition, or a step of it, is not an estimator.
    ValueError
        Names of steps are not unique, or a step before the last one has no ``transform``.
    """
    if not is_estimator(composition):
        raise TypeError(
            "`composition` must be a Pipeline, another meta-estimator or a private estimator, got "
            f"{type(composition).__name__}."
        )
    return list(_walk(composition, ""))


def _walk(node: Any, path: str) -> Iterator[PipelineIssue]:
    """Find what a node of a composition and all below it read."""
    if is_charged(node):
        yield from _of_ours(node, path)
    elif public_steps.parts_of(node):
        yield from _of_steps(node, path, node)
    elif not holds_private(node):
        if not _holds_frozen(node):
            yield from (PipelineIssue(*fault) for fault in public_steps.find_faults(node, path))
    else:
        known = KNOWN.get(str(known_name(node)))
        if not is_silent(node):
            yield _finding(node, path, known or describe_unknown(type(node).__name__))
        for name, child, _ in children_of(node):
            yield from _walk(child, join(path, name))


def _finding(node: Any, path: str, known: Known) -> PipelineIssue:
    reads = "; ".join(filter(None, [known.reads, *(fault_of_split(node, cv) for cv in splitters_of(node))]))
    return PipelineIssue(path, type(node).__name__, reads, known.remedy, *total_of(node))


def splitters_of(node: Any) -> list[Any]:
    """Return the splitters of the rows of a composition, if any; None is scikit-learn's default."""
    return [node.cv] if hasattr(node, "cv") else []


def fault_of_split(node: Any, cv: Any, unit: str = "") -> str:
    """Return what a splitter does wrong with groups: only it receives them, or it may split one; "" for neither."""
    splits_by_groups = hasattr(cv, "split") and bool(get_routing_for_object(cv).consumes("split", ["groups"]))
    asked = [unit == GROUP] if unit else [asks_for_groups(leaf) for leaf, _ in private_fits(node)]
    if splits_by_groups and not all(asked):
        return (
            "groups are passed to its splitter but not to its private fits, which protect rows instead of groups "
            "(use set_fit_request(groups=True) and sklearn.set_config(enable_metadata_routing=True))"
        )
    if any(asked) and not splits_by_groups:
        return "its splitter may put rows of one group on both sides of a split (use cv=GroupKFold())"
    return ""


def _of_ours(node: Any, path: str) -> Iterator[PipelineIssue]:
    """Find what is read around a private estimator, and within a private pipeline or a search."""
    if isinstance(node, Pipeline):
        check_structure(node)
        yield from _of_parts(node, path)
    elif is_estimator(inner := getattr(node, "estimator", None)):  # a search, which charges its scores
        is_pipeline = isinstance(inner, Pipeline)
        yield from _of_parts(inner, join(path, "estimator")) if is_pipeline else _walk(inner, join(path, "estimator"))
    elif read := [name for name in FIT_TELLS if getattr(node, name, ()) is None]:
        reads = f"reads its {read[0]} from y, which is not covered by the privacy guarantee"
        yield PipelineIssue(path, type(node).__name__, reads, FIT_TELLS[read[0]])


def _of_steps(node: Any, path: str, outermost: Any) -> Iterator[PipelineIssue]:
    """Find what a pipeline, a union or a column transformer reads; several budgets are reported for the outermost."""
    if isinstance(node, Pipeline):
        check_structure(node)
    names = _private_parts(node)
    if node is outermost and len(names) > 1:
        reads = (
            f"the private steps {names} consume one budget each, and epsilon_ of the last step does not include the "
            "others"
        )
        remedy = "skdp.allocate_budget(pipeline, ...), which accounts for all of them"
        yield PipelineIssue(path, type(node).__name__, reads, remedy, *total_of(node))
    if not is_of_sklearn(node) and holds_private(node):
        yield _finding(node, path, describe_unknown(type(node).__name__))
    else:
        yield from (PipelineIssue(path, type(node).__name__, *fault) for fault in public_steps.find_own_faults(node))
    yield from _of_parts(node, path, outermost)


def _of_parts(node: Any, path: str, outermost: Any = None) -> Iterator[PipelineIssue]:
    """Find what the steps of a pipeline, or the parts of a union, read."""
    charged = False
    for name, part in public_steps.parts_of(node):
        below = join(path, str(name))
        if public_steps.passes_rows(part):
            continue
        if not (is_estimator(part) or hasattr(part, "transform")):
            raise TypeError(f"Step {below!r} must be an estimator or 'passthrough', got {type(part).__name__}.")
        inner = public_steps.parts_of(part) and not is_charged(part)
        yield from _of_steps(part, below, outermost or part) if inner else _walk(part, below)
        if isinstance(node, Pipeline):
            public = charged and not holds_private(part)
            yield from (PipelineIssue(*fault) for fault in public_steps.value_rejections(part, below)) if public else ()
            charged = charged or holds_private(part)


def check_structure(pipeline: Pipeline) -> None:
    """Raise for a pipeline with two steps of one name, or a step without ``transform`` before the last one."""
    names = [name for name, _ in pipeline.steps]
    if len(set(names)) < len(names):
        raise ValueError(f"The names of the steps must be unique, got {names}.")
    for name, step in pipeline.steps[:-1]:
        if not public_steps.passes_rows(step) and not hasattr(step, "transform"):
            raise ValueError(
                f"Step {name!r} ({type(step).__name__}) has no transform method. Only the last step may lack it."
            )


# --- what is charged, and how often ---


def join(path: str, name: str) -> str:
    """Path of a part, as in names of parameters of scikit-learn."""
    return f"{path}__{name}" if path else name


def is_charged(node: Any) -> bool:
    """Return whether an estimator accounts for the data it reads: a private estimator, pipeline or search."""
    return is_private(node) or (public_steps.is_ours(node) and type(node) not in public_steps.RULES)


def holds_private(node: Any) -> bool:
    """Whether a fit of an estimator fits a private one, at any depth."""
    if isinstance(node, FrozenEstimator) or not is_estimator(node):
        return False
    return is_charged(node) or any(holds_private(child) for _, child, _ in children_of(node))


def _holds_frozen(node: Any) -> bool:
    """Whether a frozen private estimator is all that a listed composition has: its rows are declared public."""
    parts = [child for _, child, _ in children_of(node)] if known_name(node) else [node]
    are_frozen = all(isinstance(each, FrozenEstimator) and public_steps.is_ours(each.estimator) for each in parts)
    return bool(parts) and are_frozen


def private_fits(node: Any) -> list[tuple[Any, int | None]]:
    """Return the private estimators that a fit of a composition fits, each with an upper bound on its fits, or None."""
    if isinstance(node, FrozenEstimator) or not is_estimator(node):
        return []
    if is_charged(node):
        return [(node, 1)]
    listed = ((leaf, times, n) for _, child, times in children_of(node) for leaf, n in private_fits(child))
    return [(leaf, None if times is None or n is None else times * n) for leaf, times, n in listed]


def total_of(node: Any, cost: FitCost | None = None, times: int = 1) -> Total:
    """Return the number of private fits in `times` fits of a composition, and their composed cost; see `add_fits`."""
    fits = [(leaf, None if each is None else times * each) for leaf, each in private_fits(node)]
    total = add_fits(fits, cost)
    return Total(total.n_fits) if _mixes_rows(node) else total


def _mixes_rows(node: Any) -> bool:
    """Return whether a row may influence the fits of a composition beyond their privacy cost."""
    mixes = KNOWN.get(str(known_name(node)), UNLISTED).mixes
    if bool(getattr(node, mixes)) if isinstance(mixes, str) else mixes:
        return True
    return any(_mixes_rows(child) for _, child, _ in children_of(node) if holds_private(child))


def _private_parts(owner: Any) -> list[str]:
    """Return the paths of the parts of a pipeline or union that fit a private estimator."""
    listed = list(public_steps.walk(owner, ""))
    if len(listed) == 1:  # a subclass of a composition, which is not listed itself: list its parts
        listed = [each for name, part in public_steps.parts_of(owner) for each in public_steps.walk(part, name)]
    return [
        path
        for path, part, _ in listed
        if is_charged(part) or (not public_steps.parts_of(part) and holds_private(part))
    ]
