"""Findings about a composition before it is fitted: what it reads without paying, how often it spends, what to use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

from sklearn import get_config
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import get_routing_for_object

from skdp._checks.adjacency import public_n, settle_adjacency
from skdp._checks.default_delta import check_delta, delta_for
from skdp._checks.protocols import is_private
from skdp._checks.units import GROUP, ROW
from skdp._guard.meta_estimators import (
    KNOWN,
    Known,
    children_of,
    describe_unknown,
    is_estimator,
    is_of_sklearn,
    is_silent,
    known_name,
    mixes_rows,
)
from skdp._guard.public_rules import RULES
from skdp._guard.public_steps import (
    find_faults,
    find_own_faults,
    is_ours,
    parts_of,
    passes_rows,
    value_refusals,
    walk,
)
from skdp.accounting import (
    DpEvent,
    SelfComposedDpEvent,
    compose,
    get_epsilon,
    resolve_accountant,
)
from skdp.accounting.calibration.noise import calibrate_to
from skdp.accounting.targets import target_of

_SHAPES = ((50, 3), (997, 41), (1_000_003, 7))


class Total(NamedTuple):
    """An upper bound on the number of fits, and their joint price, each None where it is not known."""

    n_fits: int | None = None
    epsilon: float | None = None
    delta: float | None = None

    def __str__(self) -> str:
        if self.n_fits is None or self.n_fits < 2:
            return ""
        if self.epsilon is None:
            return f"up to {self.n_fits} fits in all"
        return f"up to {self.n_fits} fits in all, which alone cost epsilon={self.epsilon:.3g} (delta={self.delta:g})"


class FitPrice(NamedTuple):
    """One fit: its event, what it is priced with, and what it is private for, a row or a group."""

    event: DpEvent
    delta: float
    adjacency: str
    unit: str = ROW


def add_fits(fits: Iterable[tuple[Any, int | None]], price: FitPrice | None = None) -> Total:
    """Return the total of private estimators that are fitted several times.

    Prices at two deltas, adjacencies or units are not added: fits for rows and fits for groups have no joint price.

    Parameters
    ----------
    fits : iterable of (estimator, int or None)
        Estimators, and how often each is fitted.
    price : FitPrice or None, default=None
        The price of one fit, if there is one estimator and it is known. By default it is planned without data.

    Returns
    -------
    Total
    """
    listed = list(fits)
    if any(times is None for _, times in listed):
        return Total()
    n_fits = sum(times or 0 for _, times in listed)
    prices = [price] if price is not None and len(listed) == 1 else [plan_without_data(leaf) for leaf, _ in listed]
    known = [each for each in prices if each is not None]
    if n_fits < 1 or len(known) < len(prices) or len({each[1:] for each in known}) != 1:
        return Total(n_fits)
    events = [SelfComposedDpEvent(each.event, n) for each, (_, n) in zip(known, listed, strict=True) if n]
    try:
        epsilon = get_epsilon(compose(events), known[0].delta, adjacency=known[0].adjacency)
    except Exception:  # an event without a price by this method
        return Total(n_fits)
    return Total(n_fits, epsilon, known[0].delta)


def plan_without_data(estimator: Any) -> FitPrice | None:
    """Return the price of a fit that costs the same for tables of any shape, or None.

    A delta that follows from the number of rows is taken for a single row, where it is largest: at that delta, a fit to
    more rows costs no more.
    """
    try:
        unit = GROUP if asks_for_groups(estimator) else ROW
        ledger, n = resolve_accountant(estimator.accountant), public_n(estimator, 1)
        copied = copy(estimator)
        settle_adjacency(copied)
        copied.set_params(accountant=None)
        copied.set_params(delta=delta_for(check_delta(copied.delta), ledger, n))
        first, *others = (copied._plan_step(*shape).event_at for shape in _SHAPES)
        if any(event_at(1.0) != first(1.0) for event_at in others):
            return None
        noise = copied.noise_multiplier
        if noise is None:
            target = target_of(copied.epsilon, copied.delta)
            noise = calibrate_to(first, target, adjacency=copied.adjacency)
        return FitPrice(first(noise), float(copied.delta), str(copied.adjacency), unit)
    except Exception:  # a budgeted pipeline, a search, or parameters that fit will refuse
        return None


def asks_for_groups(estimator: Any) -> bool:
    """Whether scikit-learn's routing of metadata hands labels of units to the ``fit`` of an estimator."""
    if not get_config()["enable_metadata_routing"]:
        return False
    routing = get_routing_for_object(estimator)
    given = getattr(getattr(routing, "fit", None), "requests", {}).get("groups")
    return bool(routing.consumes("fit", ["groups"])) or (isinstance(given, str) and given.isidentifier())  # an alias


_BUDGET = "skdp.allocate_budget(pipeline, ...), which pays for all of them"
_CLASSES = "classes=[...], a public list"
_Y_BOUNDS = "y_bounds=(low, high), public numbers"
FIT_TELLS = {_CLASSES, _Y_BOUNDS}


@dataclass(frozen=True)
class PipelineIssue:
    """Something that a composition reads of its rows without paying, or a budget that it spends more than once.

    `skdp.check_pipeline` returns findings. ``str(finding)`` is one line.

    Parameters
    ----------
    step : str
        Path of the step, such as ``"estimator__scaler"``. It is empty for the composition itself.
    kind : str
        Name of the class of the step.
    reads : str
        What it reads without paying, or how often it spends.
    counterpart : str
        What to use instead.
    n_fits : int or None, default=None
        Upper bound on the fits of private estimators in one fit of the step. None if the data decide it, or if the
        number does not matter to the finding.
    epsilon : float or None, default=None
        Joint price of these fits at `delta`, in nats. None if it cannot be known without the data.
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
        return f"{where}: {self.reads}{total and f'; {total}'}; use {self.counterpart}."


# --- any composition ---


def find(composition: Any) -> list[PipelineIssue]:
    """Return all findings about a composition, from its parameters alone.

    Parameters
    ----------
    composition : estimator

    Returns
    -------
    list of PipelineIssue

    Raises
    ------
    TypeError
        The composition, or a step of it, is no estimator.
    ValueError
        Names of steps are not unique, or a step before the last one has no ``transform``.
    """
    if not is_estimator(composition):
        raise TypeError(
            f"composition is a {type(composition).__name__} and no estimator: give a Pipeline, another meta-estimator "
            "or a private estimator."
        )
    return list(_walk(composition, ""))


def _walk(node: Any, path: str) -> Iterator[PipelineIssue]:
    """Find what a node of a composition and all below it read."""
    if pays(node):
        yield from _of_ours(node, path)
    elif parts_of(node):
        yield from _of_steps(node, path, node)
    elif not holds_private(node):
        if not _holds_frozen(node):
            yield from (PipelineIssue(*fault) for fault in find_faults(node, path))
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
    """What splits the rows of a composition, if anything does; None is scikit-learn's default."""
    return [node.cv] if hasattr(node, "cv") else []


def fault_of_split(node: Any, cv: Any, unit: str = "") -> str:
    """Say what a splitter does to units: it alone knows them, or it does not and may split one; "" for neither.

    `unit` is what the private fits of `node` are private for; left out, it follows from what they ask for.
    """
    splits_by_groups = hasattr(cv, "split") and bool(get_routing_for_object(cv).consumes("split", ["groups"]))
    asked = [unit == GROUP] if unit else [asks_for_groups(leaf) for leaf, _ in private_fits(node)]
    if splits_by_groups and not all(asked):
        return (
            "groups go to its splitter and not to its fits, which are private for a row and not for a group (use "
            "set_fit_request(groups=True) and sklearn.set_config(enable_metadata_routing=True))"
        )
    if any(asked) and not splits_by_groups:
        return "its splitter may split a group, whose rows are then on both sides (use cv=GroupKFold())"
    return ""


def _of_ours(node: Any, path: str) -> Iterator[PipelineIssue]:
    """Find what is read around a private estimator, and within a budgeted pipeline or a search."""
    if isinstance(node, Pipeline):
        check_structure(node)
        yield from _of_parts(node, path)
    elif is_estimator(inner := getattr(node, "estimator", None)):  # a search, which pays for its scores
        is_pipeline = isinstance(inner, Pipeline)
        yield from _of_parts(inner, join(path, "estimator")) if is_pipeline else _walk(inner, join(path, "estimator"))
    elif getattr(node, "classes", ()) is None:
        yield PipelineIssue(path, type(node).__name__, "reads its classes from y, which is not paid for", _CLASSES)
    elif getattr(node, "y_bounds", ()) is None:
        yield PipelineIssue(path, type(node).__name__, "reads its y_bounds from y, which is not paid for", _Y_BOUNDS)


def _of_steps(node: Any, path: str, outermost: Any) -> Iterator[PipelineIssue]:
    """Find what a pipeline, a union or a column transformer reads; several budgets are reported for the outermost."""
    if isinstance(node, Pipeline):
        check_structure(node)
    names = _private_parts(node)
    if node is outermost and len(names) > 1:
        reads = f"the private steps {names} spend a budget each, and the last one's epsilon_ leaves out the others'"
        yield PipelineIssue(path, type(node).__name__, reads, _BUDGET, *total_of(node))
    if not is_of_sklearn(node) and holds_private(node):
        yield _finding(node, path, describe_unknown(type(node).__name__))
    else:
        yield from (PipelineIssue(path, type(node).__name__, *fault) for fault in find_own_faults(node))
    yield from _of_parts(node, path, outermost)


def _of_parts(node: Any, path: str, outermost: Any = None) -> Iterator[PipelineIssue]:
    """Find what the steps of a pipeline, or the parts of a union, read."""
    charged = False
    for name, part in parts_of(node):
        below = join(path, str(name))
        if passes_rows(part):
            continue
        if not (is_estimator(part) or hasattr(part, "transform")):
            raise TypeError(f"step {below!r} is a {type(part).__name__} and no estimator: give one, or 'passthrough'.")
        inner = parts_of(part) and not pays(part)
        yield from _of_steps(part, below, outermost or part) if inner else _walk(part, below)
        if isinstance(node, Pipeline):
            public = charged and not holds_private(part)
            yield from (PipelineIssue(*fault) for fault in value_refusals(part, below)) if public else ()
            charged = charged or holds_private(part)


def check_structure(pipeline: Pipeline) -> None:
    """Raise for a pipeline with two steps of one name, or a step without ``transform`` before the last one."""
    names = [name for name, _ in pipeline.steps]
    if len(set(names)) < len(names):
        raise ValueError(f"the names of the steps {names} are not unique: give each step a name of its own.")
    for name, step in pipeline.steps[:-1]:
        if not passes_rows(step) and not hasattr(step, "transform"):
            raise ValueError(f"step {name!r}: {type(step).__name__} has no transform: put it last.")


# --- what pays, and how often ---


def join(path: str, name: str) -> str:
    """Path of a part, as in names of parameters of scikit-learn."""
    return f"{path}__{name}" if path else name


def pays(node: Any) -> bool:
    """Whether an estimator pays for what it reads: a private estimator, a budgeted pipeline or a private search."""
    return is_private(node) or (is_ours(node) and type(node) not in RULES)


def holds_private(node: Any) -> bool:
    """Whether a fit of an estimator fits a private one, at any depth."""
    if isinstance(node, FrozenEstimator) or not is_estimator(node):
        return False
    return pays(node) or any(holds_private(child) for _, child, _ in children_of(node))


def _holds_frozen(node: Any) -> bool:
    """Whether a frozen private estimator is all that a listed composition has: its rows are declared public."""
    if isinstance(node, FrozenEstimator):
        return is_ours(node.estimator)
    children = [child for _, child, _ in children_of(node)] if known_name(node) else []
    return bool(children) and all(isinstance(child, FrozenEstimator) and is_ours(child.estimator) for child in children)


def private_fits(node: Any) -> list[tuple[Any, int | None]]:
    """Return the private estimators that a fit of a composition fits, each with an upper bound on its fits, or None."""
    if isinstance(node, FrozenEstimator) or not is_estimator(node):
        return []
    if pays(node):
        return [(node, 1)]
    found = []
    for _, child, times in children_of(node):
        for leaf, inner in private_fits(child):
            found.append((leaf, None if times is None or inner is None else times * inner))
    return found


def total_of(node: Any, price: FitPrice | None = None, times: int = 1) -> Total:
    """Return how often private estimators are fitted in fits of a composition, and the joint price of that.

    Parameters
    ----------
    node : estimator
    price : FitPrice or None, default=None
        Price of a fit of its only private estimator, where it is known. By default it is planned without data.
    times : int, default=1
        Fits of the composition.
    """
    fits = [(leaf, None if each is None else times * each) for leaf, each in private_fits(node)]
    total = add_fits(fits, price)
    return Total(total.n_fits) if _mixes_rows(node) else total


def _mixes_rows(node: Any) -> bool:
    return mixes_rows(node) or any(_mixes_rows(child) for _, child, _ in children_of(node) if holds_private(child))


def _private_parts(owner: Any) -> list[str]:
    """Return the paths of the parts of a pipeline or union that fit a private estimator."""
    listed = list(walk(owner, ""))
    if len(listed) == 1:  # a subclass of a composition, which is not listed itself: list its parts
        listed = [each for name, part in parts_of(owner) for each in walk(part, name)]
    return [path for path, part, _ in listed if pays(part) or (not parts_of(part) and holds_private(part))]
