"""From a raw table to a private model in one line."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from skdp._checks.protocols import is_private
from skdp._fit.step_traits import traits_of
from skdp._guard.public_steps import takes_sparse
from skdp.ensemble import DPRandomTreesClassifier, DPRandomTreesRegressor
from skdp.linear_model.least_squares import DPLinearRegression, DPRidge
from skdp.neural_network import DPMLPRegressor
from skdp.pipeline import PrivatePipeline, allocate_budget
from skdp.preprocessing import DPTableVectorizer
from skdp.preprocessing.schema.matching import read_schema

_OF_THE_MODEL = ("adjacency", "n_samples_public", "random_state")
"""Parameters that the vectorizer shares with the model."""


def tabular_pipeline(
    estimator: Any = "classifier",
    *,
    schema: Any = None,
    epsilon: float = 1.0,
    delta: float | str = "auto",
    classes: Any = None,
    y_bounds: Any = None,
    weight_bound: Any = None,
    accountant: Any = None,
) -> PrivatePipeline:
    """Make a pipeline that takes a raw table: a vectorizer and a private model under one budget.

    The pipeline takes frames with numbers, words, dates and gaps. What `schema` says about the columns is public and
    costs nothing. What it leaves out (bounds, categories) is bought from the budget.

    Parameters
    ----------
    estimator : "classifier", "regressor" or estimator instance, default="classifier"
        "classifier" is a `skdp.ensemble.DPRandomTreesClassifier`, "regressor" a
        `skdp.ensemble.DPRandomTreesRegressor`, or a `DPMLPRegressor` of scaled numbers where `schema` says that all
        columns are numbers. An instance is a private estimator; it is copied. Its `epsilon`, `delta` and
        `noise_multiplier` are not used; its `adjacency`, `n_samples_public` and `random_state` hold for the whole
        pipeline. Before other regressors numbers are scaled, and before `DPRidge` and `DPLinearRegression` they have
        bins beside that where rows and budget are enough for them (``numbers="auto"`` of the vectorizer). Models of
        random trees get codes (``numbers="codes"``) and their schema.
    schema : TableSchema, dict or None, default=None
        Public description of the columns. If None, names and kinds of the columns are all that is taken as public, and
        15 % of the budget buys bounds, bins and categories.
    epsilon : float, default=1.0
        Privacy budget of one ``fit`` of the whole pipeline.
    delta : float or "auto", default="auto"
        Probability with which the guarantee may fail. "auto" is the accountant's delta, if it has one, and otherwise
        chosen from the public number of rows: at most 1e-5, and below 1/(10 n).
    classes : sequence or None, default=None
        All classes that can occur in the labels. If None, they are read from the labels, which is not paid for, and
        ``fit`` issues a `PrivacyLeakWarning`. An instance may have its own instead.
    y_bounds : (float, float) or None, default=None
        Public bounds on the targets of a regressor. Targets beyond them are moved to the nearest bound. If None, they
        are read from the targets, which is not paid for, and ``fit`` issues a `PrivacyLeakWarning`. An instance may
        have its own instead.
    weight_bound : float, "private" or None, default=None
        Bound on the weights that ``fit(X, y, sample_weight=...)`` is given, as for the model, which alone takes them:
        they are divided by it and cut at it. "private" buys one in every fit; None is a bound of 1. An instance may
        have its own instead. Bounds, bins and categories are those of the rows, without weights.
    accountant : PrivacyAccountant, str, path-like or None, default=None
        Ledger to which each fit is charged. An instance may have its own instead.

    Returns
    -------
    PrivatePipeline
        Pipeline that is not fitted, of the steps "vectorizer" and "model".

    Raises
    ------
    TypeError
        `estimator` is neither "classifier" nor "regressor" nor a private estimator.
    ValueError
        A parameter is invalid, or given twice. Nothing was charged.

    See Also
    --------
    skdp.preprocessing.TableSchema : What is public about a table.
    skdp.preprocessing.DPTableVectorizer : The first step.
    allocate_budget : One budget for a pipeline of your own.

    Examples
    --------
    >>> import skdp
    >>> from skdp.datasets import make_census
    >>> people = make_census(5_000, as_frame=True, random_state=0)
    >>> model = skdp.tabular_pipeline(epsilon=1.0, classes=people.classes).fit(people.data, people.target)
    >>> bool(model.epsilon_ <= 1.0)
    True

    >>> hours = people.data["age"] * 0.5
    >>> model = skdp.tabular_pipeline("regressor", y_bounds=(0, 50)).fit(people.data, hours)
    >>> bool(model.score(people.data, hours) > 0.9)
    True
    """
    own = {"classes": classes, "y_bounds": y_bounds, "weight_bound": weight_bound, "accountant": accountant}
    model = _make_model(estimator, schema, own)
    shared = {name: value for name, value in model.get_params(deep=False).items() if name in _OF_THE_MODEL}
    takes_codes = traits_of(model).takes_codes
    if not takes_sparse(model):
        shared["sparse_output"] = False
    if isinstance(model, DPLinearRegression | DPRidge):
        shared["numbers"] = "auto"
    elif isinstance(model, DPMLPRegressor):
        shared["numbers"] = "scale"
    elif takes_codes:
        shared["numbers"] = "codes"
    vectorizer = DPTableVectorizer(schema, **shared)
    if takes_codes:
        vectorizer.set_output(transform="default")  # no frame carries the schema, whatever sklearn.set_config says
    return allocate_budget(PrivatePipeline([("vectorizer", vectorizer), ("model", model)]), epsilon, delta)


def _default_model(name: str, schema: Any) -> Any:
    """The model that a name represents, by what is public.

    Where all columns are numbers a target may follow a sum of many of them, which trees, that look at one column at a
    time, take many splits for (`docs/which_estimator.md`).
    """
    if name == "classifier":
        return DPRandomTreesClassifier()
    return DPMLPRegressor() if _has_numbers_alone(schema) else DPRandomTreesRegressor()


def _has_numbers_alone(schema: Any) -> bool:
    """Whether a schema says that all columns are numbers. One that cannot be read is refused by the vectorizer."""
    try:
        known = read_schema({} if schema is None else schema, "or None")
    except (TypeError, ValueError):
        return False
    kinds = {column.kind for _, column in known.items() if column.kind != "drop"}
    return kinds == {"number"} and known.others != "buy"


def _make_model(estimator: Any, schema: Any, parameters: dict[str, Any]) -> Any:
    """The last step, with those of the parameters that are given."""
    if isinstance(estimator, str) and estimator in ("classifier", "regressor"):
        shown, model = repr(estimator), _default_model(estimator, schema)
    elif is_private(estimator) and not isinstance(estimator, type):
        shown, model = "this estimator", clone(estimator)
    else:
        raise TypeError(
            f"estimator={estimator!r} is neither 'classifier' nor 'regressor' nor a private estimator: give an "
            "instance such as skdp.DPLogisticRegression(classes=[0, 1])."
        )
    given = {name: value for name, value in parameters.items() if value is not None}
    for name, value in given.items():
        if getattr(model, name, value) is not None:
            raise ValueError(
                f"{name}={value!r} is not for {shown}, which has its own or takes none: leave it out here."
            )
    return model.set_params(**given)


__all__ = ["tabular_pipeline"]
