"""Plans: unfitted estimators as JSON, and their privacy cost without records.

The classes that a plan can contain are listed here. Their constructors only store parameters. Each fit has one source
of its privacy cost, the event that it plans, so `plan_cost` lets the estimator itself plan a fit and ends it there.
"""

from __future__ import annotations

import importlib
import inspect
import json
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from skdp import __version__
from skdp._checks.leaks import silence
from skdp._checks.parameters import check_count
from skdp.accounting import AddRemove, PrivacyAccountant, Risk, get_epsilon, resolve_accountant
from skdp.base.pipeline_issues import find, is_charged
from skdp.base.private_step import private_steps
from skdp.base.public_steps import RULES
from skdp.export.trusted_types import MODELS
from skdp.preprocessing.schema.table_schema import TableSchema, once_each

_VERSION = ".".join(__version__.split(".")[:2])
_OWNED = ("accountant", "checkpoint", "memory", "public_images", "random_state")
"""Parameters that the owner of the data sets, or that would carry data."""
_FITTED = ("PipelineSlice", "PrivateEvaluation")  # parts of fitted models
_MODULES = {name: f"skdp.{module}" for module, names in MODELS.items() for name in names if name not in _FITTED}
_MODULES |= {cls.__name__: cls.__module__ for cls in (AddRemove, Risk, *RULES)}
"""Classes that a plan can contain, and their modules, beside `TableSchema`."""


class PlanCost(NamedTuple):
    """Privacy cost of one fit of a plan.

    Parameters
    ----------
    epsilon : float
        Epsilon under composition of all private steps, at `delta`.
    delta : float
        Delta of the guarantee.
    adjacency : {"zero_out", "add_remove", "replace_one"}
        Neighboring relation of the guarantee.
    steps : dict of str to float
        Epsilon of each private step of a pipeline alone, at `delta`. Empty for other estimators.
    """

    epsilon: float
    delta: float
    adjacency: str
    steps: dict[str, float]


def plan_to_json(plan: Any) -> str:
    """Return an unfitted estimator as JSON, for the owner of the data.

    Parameters
    ----------
    plan : estimator
        Private estimator, search or pipeline with one budget, such as `skdp.allocate_budget` returns. Its other steps
        are those that `skdp.check_pipeline` permits. Fitted attributes are not written.

    Returns
    -------
    text : str
        JSON with the class and the parameters of each estimator, without parameters that have their default value.

    Raises
    ------
    ValueError
        The plan contains another class, an array, a function, or a parameter of the owner of the data (`accountant`,
        `checkpoint`, `memory`, `public_images`, `random_state`). Or the privacy guarantee does not cover all of it.

    See Also
    --------
    plan_from_json : Read the plan.
    plan_cost : Compute the privacy cost of the plan.

    Notes
    -----
    Settings that are not parameters are not written, such as those of ``set_output`` and ``set_fit_request``.

    Examples
    --------
    >>> import skdp
    >>> from skdp.export import plan_cost, plan_from_json, plan_to_json
    >>> model = skdp.tabular_pipeline(schema={"age": (18, 90), "job": "category"}, classes=["no", "yes"])
    >>> plan = plan_from_json(plan_to_json(model))
    >>> cost = plan_cost(plan, n_samples=5_000, n_features=2)
    >>> bool(0.999 < cost.epsilon <= 1.0), cost.delta
    (True, 1e-05)
    """
    _check(plan)
    content = {"skdp_plan": _VERSION, "estimator": _write(plan, "`plan`")}
    _read_plan(content)
    return json.dumps(content, indent=1)


def plan_from_json(text: str, accountant: Any = None) -> Any:
    """Return the unfitted estimator that a plan describes.

    Two kinds of plans read classes from labels and issue a `PrivacyLeakWarning` only in ``fit``: generators without
    `classes` that are fitted to labels, and candidates of a search without `classes`.

    Parameters
    ----------
    text : str
        Text that `plan_to_json` returned.
    accountant : PrivacyAccountant, str, path-like or None, default=None
        Privacy accountant to which each fit is charged.

    Returns
    -------
    plan : estimator
        Unfitted estimator.

    Raises
    ------
    ValueError
        The text is damaged or from another version, or it contains a class or a parameter that is not permitted.

    See Also
    --------
    plan_cost : Compute the privacy cost of the plan before a fit.

    Notes
    -----
    **Guarantees.**

    - Reading a plan runs no code except the constructors of the public estimators of skdp, of the steps that
      `skdp.check_pipeline` permits, and of `TableSchema`, `AddRemove` and `Risk`.
    - The estimator has no seed, no path and no other accountant.
    - A plan that reads records without accounting for them is rejected.

    The analyst chooses `epsilon`, `delta` and `adjacency`. Compute `plan_cost`, and use an accountant with a budget.
    The run time of a plan is not limited.
    """
    try:
        plan = _read_plan(json.loads(text, object_pairs_hook=once_each))
    except Exception as error:  # of any kind, as the text may contain anything
        fault = " ".join(str(error).split())
        raise ValueError(f"`text` must be a plan that skdp.export.plan_to_json returned: {fault}") from None
    return plan if accountant is None else _with_accountant(plan, accountant)


def plan_cost(plan: Any, n_samples: int, n_features: int) -> PlanCost:
    """Compute the privacy cost of one fit of a plan, without records.

    Parameters
    ----------
    plan : estimator
        Estimator as for `plan_to_json`. If it has an accountant, its delta, adjacency and accounting method apply.
    n_samples : int
        Public number of records, or of groups if ``fit`` is called with `groups`.
    n_features : int
        Number of columns of the table.

    Returns
    -------
    cost : PlanCost
        Epsilon and delta of the plan, and the epsilon of each private step.

    Raises
    ------
    ValueError
        The plan is not private as a whole, or a parameter is invalid.

    Notes
    -----
    **Guarantees.**

    - The cost is the `epsilon_` and `delta_` of a fit to a table of this shape. If ``fit`` selects the model by the
      types of the columns, as a ``tabular_pipeline("regressor")`` does, `epsilon_` can differ by less than 0.1%.
    - No record is read, and no accountant is charged.
    """
    _check(plan)
    n = check_count("n_samples", n_samples, constraint="the public number of records")
    d = check_count("n_features", n_features, constraint="the number of columns")
    planned = clone(plan)
    given = map(planned.get_params().get, _accountants(planned))
    owner = next(filter(None, map(resolve_accountant, given)), PrivacyAccountant())
    recorder = _Recorder(owner.epsilon, owner.delta, method=owner.method, adjacency=owner.adjacency)
    try:
        with silence():
            _with_accountant(planned, recorder).fit(np.broadcast_to(0.0, (n, d)), np.broadcast_to(0, n))
    except _Planned as found:
        event, delta, adjacency = found.args
    cost = partial(get_epsilon, delta=delta, method=owner.method, adjacency=adjacency)
    steps = private_steps(planned.set_params(delta=delta).steps) if hasattr(planned, "_allocate") else []
    alone = zip(steps, planned._allocate(n, d).events, strict=True) if steps else ()
    return PlanCost(cost(event), delta, adjacency, {name: cost(each) for (name, _), each in alone})


class _Planned(Exception):
    """Ends a fit that is planned."""


class _Recorder(PrivacyAccountant):
    """Accountant that ends a fit when the fit asks it, which is before a record is read."""

    def check(self, event: Any, adjacency: str = "zero_out", *, parameters: Any = None, **place: Any) -> None:
        """Raise the event of the fit, its delta and its adjacency."""
        raise _Planned(event, parameters["delta"], adjacency)


def _accountants(plan: Any) -> list[str]:
    """Return the parameters that name an accountant: that of the plan itself, or those of its parts."""
    deep = "accountant" not in plan.get_params(deep=False)
    return [name for name in plan.get_params(deep) if name.rpartition("__")[2] == "accountant"]


def _with_accountant(plan: Any, accountant: Any) -> Any:
    return plan.set_params(**dict.fromkeys(_accountants(plan), accountant))


def _check(plan: Any) -> None:
    """Reject a plan that is not private as a whole."""
    if not is_charged(plan):
        raise ValueError(f"`plan` must be private, got {type(plan).__name__}. Use skdp.allocate_budget for a pipeline.")
    if findings := [] if hasattr(plan, "sample") else find(plan):  # without labels, a generator reads no classes
        raise ValueError(f"`plan` must be private as a whole: {findings[0]}")


# --- values ---


def _class_of(name: str) -> Any:
    return getattr(importlib.import_module(_MODULES[name]), name) if name in _MODULES else None


def _write(value: Any, where: str) -> Any:
    """Return a value as JSON. Beside lists, an object has one key, its kind."""
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind in (list, tuple):
        listed = [_write(each, where) for each in value]
        return listed if kind is list else {"tuple": listed}
    if kind is dict:
        return {"dict": [[_write(each, where) for each in pair] for pair in value.items()]}
    if kind is TableSchema:
        return {"TableSchema": json.loads(value.to_json())}
    if _class_of(kind.__name__) is not kind:
        raise ValueError(
            f"{where} must be a plain value or a listed class, got {kind.__name__}. Use lists, not arrays, and "
            "pass an accountant to `plan_from_json`."
        )
    known = inspect.signature(kind).parameters
    given = {name: getattr(value, name) for name in known if getattr(value, name) is not known[name].default}
    return {kind.__name__: {name: _write(each, f"`{name}` of {kind.__name__}") for name, each in given.items()}}


def _read_plan(content: Any) -> Any:
    if content != {"skdp_plan": _VERSION, "estimator": content["estimator"]}:
        raise ValueError(f"expected 'estimator' and 'skdp_plan': {_VERSION!r}. Write it with this version of skdp.")
    plan = _read(content["estimator"])
    _check(plan)
    return plan


def _read(content: Any) -> Any:
    """Return the value that `_write` wrote."""
    if isinstance(content, list):
        return [_read(each) for each in content]
    if not isinstance(content, dict):
        return content
    ((kind, given),) = content.items()
    if kind == "tuple":
        return tuple(_read(each) for each in given)
    if kind == "dict":
        return {_read(key): _read(each) for key, each in given}
    if kind == "TableSchema":
        return TableSchema._of_file(given)
    if (cls := _class_of(kind)) is None:
        raise ValueError(f"{kind!r} must be a public estimator of skdp or a permitted step of scikit-learn. Remove it.")
    values, known = {name: _read(each) for name, each in given.items()}, inspect.signature(cls).parameters
    for name, each in values.items():
        if name not in known or (name in _OWNED and each is not None):
            reason = "None, because the owner of the data sets it" if name in known else f"a parameter of {kind}"
            raise ValueError(f"{name!r} of {kind} must be {reason}. Remove it.")
    return cls(**values)
