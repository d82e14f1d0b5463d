"""Pipelines from raw tables to private models."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any, Self

from sklearn.base import clone

from skdp._checks.parameters import is_private, without_removed
from skdp._checks.table import Table
from skdp.accounting.statements.targets import Risk, RiskTarget
from skdp.base.private_step import traits_of
from skdp.base.public_steps import takes_sparse
from skdp.ensemble import DPRandomTreesClassifier, DPRandomTreesRegressor
from skdp.linear_model.coefficient_table import HasCoefficientTable
from skdp.linear_model.least_squares import DPLinearRegression, DPRidge
from skdp.neural_network import DPMLPRegressor
from skdp.pipeline.joint_fit import public_rows_of
from skdp.pipeline.private_pipeline import PrivatePipeline, allocate_budget
from skdp.preprocessing import DPTableVectorizer, formula_rows
from skdp.preprocessing.raw_columns import match_columns, read_schema

_OF_THE_FIT = {
    "accountant", "adjacency", "delta", "epsilon",
    "noise_multiplier", "random_state", "verbose", "weight_bound", "y_bounds", "y_transform",
}  # fmt: skip
"""Parameters with the same meaning for each regressor."""


@without_removed
def tabular_pipeline(
    estimator: Any = "classifier",
    *,
    schema: Any = None,
    epsilon: Any = 1.0,
    delta: float | str = "auto",
    classes: Any = None,
    y_bounds: Any = None,
    y_transform: str | None = None,
    weight_bound: Any = None,
    class_weight: Any = None,
    adjacency: Any = None,
    accountant: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    random_state: Any = None,
) -> PrivatePipeline:
    """Create a private pipeline for a raw table: a vectorizer and a model under one privacy budget.

    `X` is a frame with numbers, strings, dates and missing values. The column descriptions in `schema` are public.
    Bounds, categories, and bins within wide bounds that `schema` does not declare are estimated privately.

    Parameters
    ----------
    estimator : "classifier", "regressor" or estimator instance, default="classifier"
        The model:

        - "classifier" is a `skdp.DPRandomTreesClassifier`.
        - "regressor" is a `skdp.DPRandomTreesRegressor`, or a `DPMLPRegressor` if all columns are numbers, or most are
          and the noise is large. Each ``fit`` chooses it by `schema`, column names and types, unless parameters of the
          model are set.
        - An instance is a private estimator, which is copied. Its `epsilon`, `delta` and `noise_multiplier` are
          ignored; its `adjacency` and `random_state` apply to the whole pipeline.

        The model determines the encoding of numbers (`skdp.preprocessing.DPTableVectorizer`): "codes" for random trees,
        "auto" for `DPRidge` and `DPLinearRegression`, "scale" for `DPMLPRegressor` and "bins" for other models.

        Models with ``inference=True`` use `skdp.preprocessing.formula_rows` with the formula ``"."`` instead, and so do
        `DPPoissonRegressor` and `DPOrdinalLogisticRegression` if `schema` is complete. This omits a reference category
        of each column, so that ``summary`` can state intervals. With ``inference=True``, `schema` must declare bounds
        or categories of all columns.
    schema : TableSchema, dict or None, default=None
        Public description of the columns. If None, only column names and types are public, and 15% of the budget is
        used to estimate bounds, bins and categories. With a complete schema, 5% is used for bins of numbers whose
        bounds are much wider than most of the values; set ``vectorizer__fit_bins=False`` to avoid this. Models of
        scaled numbers have no bins.
    epsilon : float or Risk, default=1.0
        Privacy budget of one ``fit`` of the whole pipeline. A number, or a bound on the risk of membership inference
        such as ``skdp.Risk(advantage=0.1)`` (``docs/membership_inference.md``). The noise of both steps follows from
        this budget.
    delta : float or "auto", default="auto"
        The delta of the (epsilon, delta) guarantee. "auto" uses the delta of the accountant if it has one. Otherwise,
        it is chosen from the public number of rows: at most 1e-5, and below 1/(10n).
    classes : sequence or None, default=None
        All classes that can occur in `y`. If None, they are read from `y`; this is not covered by the guarantee, and
        ``fit`` issues a `PrivacyLeakWarning`. This and the following parameters must be None if `estimator` sets them.
    y_bounds : (float, float) or None, default=None
        Public bounds on the targets of a regressor. Targets beyond them are moved to the nearest bound. If None, they
        are read from `y`; this is not covered by the guarantee, and ``fit`` issues a `PrivacyLeakWarning`.
    y_transform : {"log"} or None, default=None
        Transformation of the targets, as for `skdp.DPRandomTreesRegressor`. "log" is for amounts with relative errors
        and requires positive `y_bounds`. Predictions are on the original scale, near the median, so their mean is below
        that of skewed targets.
    weight_bound : float or None, default=None
        Public upper bound of `sample_weight`, which only the model uses. Weights are clipped to it and divided by it.
        None is equivalent to 1. Bounds, bins and categories are estimated without weights.
    class_weight : dict of class to float, or None, default=None
        Public weights of the classes, as for the model.
    adjacency : {"zero_out", "replace_one"}, AddRemove or None, default=None
        Neighboring relation of both steps, as for `skdp.DPLogisticRegression`.
    accountant : PrivacyAccountant, str, path-like or None, default=None
        Accountant that records the privacy cost of each fit, as for `skdp.DPLogisticRegression`.
    n_jobs : int or None, default=None
        Number of threads of the model, if it supports threads. The result does not depend on it.
    verbose : int, default=0
        If 1, show a progress bar of the model on standard error.
    random_state : int, RandomState or Generator instance or None, default=None
        Source of sampling and noise of both steps. None draws a fresh secret key from the operating system. Any other
        value makes the fit reproducible and issues a `PrivacyLeakWarning`, because the guarantee does not hold against
        anyone who knows the value.

    Returns
    -------
    PrivatePipeline
        Unfitted pipeline with the steps "vectorizer" and "model". For "regressor", it is a ``TabularPipeline``, whose
        model can change at each fit.

    Raises
    ------
    TypeError
        `estimator` is not "classifier", "regressor" or a private estimator.
    ValueError
        A parameter is invalid, or set both here and in `estimator`. No budget is consumed.

    See Also
    --------
    skdp.preprocessing.TableSchema : Public description of the columns.
    skdp.preprocessing.DPTableVectorizer : The first step.
    allocate_budget : One budget for a custom pipeline.

    Examples
    --------
    >>> import skdp
    >>> from skdp.datasets import make_census
    >>> people = make_census(5_000, as_frame=True, random_state=0)
    >>> model = skdp.tabular_pipeline(epsilon=1.0, classes=people.classes).fit(people.data, people.target)
    >>> model.score(people.data, people.target)
    0.7...

    >>> hours = people.data["age"] * 0.5
    >>> model = skdp.tabular_pipeline("regressor", y_bounds=(0, 50)).fit(people.data, hours)
    >>> model.score(people.data, hours)
    0.9...
    """
    own = {
        "classes": classes, "y_bounds": y_bounds, "y_transform": y_transform, "weight_bound": weight_bound,
        "class_weight": class_weight, "adjacency": adjacency, "accountant": accountant, "n_jobs": n_jobs,
        "verbose": verbose or None, "random_state": random_state,
    }  # fmt: skip
    model = _make_model(estimator, schema, own)
    given = model.get_params(deep=False)
    has_table = isinstance(model, HasCoefficientTable) and "inference" not in given
    if given.get("inference") is True or (has_table and _makes_a_formula(schema)):
        rows = _rows_of_regression(model, schema)
    else:
        shared = {name: given[name] for name in ("adjacency", "random_state") if name in given}
        rows = _rows_for(model, DPTableVectorizer(schema, **shared))
    budgeted = allocate_budget(PrivatePipeline([("vectorizer", rows), ("model", model)]), epsilon, delta)
    chooses = isinstance(estimator, str) and estimator == "regressor"
    return TabularPipeline(budgeted.steps, epsilon=epsilon, delta=delta) if chooses else budgeted


def _makes_a_formula(schema: Any) -> bool:
    """Return whether the schema declares everything that the formula of all columns needs."""
    try:
        formula_rows(".", schema)
    except (TypeError, ValueError):
        return False
    return read_schema(schema, "or None").is_complete


def _rows_of_regression(model: Any, schema: Any) -> Any:
    """Return the formula step without collinear columns, and set its norm for the model."""
    if schema is None:
        raise ValueError(
            "`schema` must be set with inference=True, because intervals require features that do not depend on the "
            "data. Pass a schema with bounds or categories of all columns, or set inference=False."
        )
    rows = formula_rows(".", schema)
    if model.data_norm is None:
        model.set_params(data_norm=rows.data_norm)
    return rows.step.set_output(transform="pandas")  # column names of a frame contain the reference levels


def _rows_for(model: Any, vectorizer: DPTableVectorizer) -> DPTableVectorizer:
    """Return the vectorizer with the encoding that suits the model."""
    vectorizer.set_params(sparse_output="auto" if takes_sparse(model) else False)
    if isinstance(model, DPLinearRegression | DPRidge):
        vectorizer.set_params(numbers="auto")
    elif isinstance(model, DPMLPRegressor):
        vectorizer.set_params(numbers="scale")
    elif traits_of(model).takes_codes:
        vectorizer.set_params(numbers="codes")
        vectorizer.set_output(transform="default")  # frames do not carry the schema, so ignore sklearn.set_config
    vectorizer.set_params(fit_bins=vectorizer.numbers in ("bins", "codes"))
    return vectorizer


@without_removed
class TabularPipeline(PrivatePipeline):
    """Pipeline of a vectorizer and a regressor that is chosen at each fit by public information.

    Use `tabular_pipeline` to create one.

    Parameters
    ----------
    steps : list of (str, estimator)
        "vectorizer" and "model": a `DPTableVectorizer`, and a `skdp.DPRandomTreesRegressor` or a `DPMLPRegressor`. If a
        fit chooses the other model, it keeps `y_bounds`, `weight_bound`, `accountant` and other parameters of the
        target and the budget.
    chooses_model : bool, default=True
        Whether each fit chooses the model. Setting parameters of the model, or the encoding of the vectorizer, fixes
        the current model: ``set_params(model__max_depth=4)`` sets this to False.
    epsilon : float or Risk, default=1.0
        Privacy budget of one ``fit``. A number, or a bound on the risk of membership inference such as
        ``skdp.Risk(advantage=0.1)`` (``docs/membership_inference.md``).
    delta : float or "auto", default="auto"
        The delta of the (epsilon, delta) guarantee, as for `skdp.pipeline.PrivatePipeline`.
    fractions : mapping of str to float or None, default=None
        Fractions of the budget by step name, as for `allocate_budget`.
    transform_input : None
        Not supported.
    memory : None
        Not supported: a cache would store private rows on disk.
    verbose : bool, default=False
        Whether to print the elapsed time of each step.

    See Also
    --------
    skdp.pipeline.PrivatePipeline : Attributes and guarantees.

    Notes
    -----
    A neural network is chosen if all columns are numbers, because targets often depend on sums of many of them, which
    trees approximate poorly. It is also chosen if at least 75% of the columns are numbers and the number of rows times
    epsilon is below 2,000 (``docs/choosing_an_estimator.md``). Integer columns that `schema` does not declare can be
    codes, so at least 75% of the columns must be declared as numbers or have a floating-point dtype.

    **Guarantees.**

    - The model depends on the schema, column names and types, `epsilon` and the public number of rows. No cell is used
      to choose it, and the privacy cost is that of the chosen model.
    """

    def __init__(
        self,
        steps: Any,
        *,
        chooses_model: bool = True,
        epsilon: Any = 1.0,
        delta: float | str = "auto",
        fractions: Mapping[str, float] | None = None,
        transform_input: Any = None,
        memory: Any = None,
        verbose: bool = False,
    ) -> None:
        own = {"transform_input": transform_input, "memory": memory, "verbose": verbose}
        super().__init__(steps, epsilon=epsilon, delta=delta, fractions=fractions, **own)
        self.chooses_model = chooses_model

    def set_params(self, **kwargs: Any) -> Self:
        """Set parameters of the pipeline and of its steps.

        Parameters
        ----------
        **kwargs : dict of str to object
            Parameters of the pipeline, or of a step as ``step__parameter``. Parameters of the model, and the encoding
            of the vectorizer, fix the current model.

        Returns
        -------
        self : TabularPipeline
            The pipeline.
        """
        if any(map(_is_of_one_model, kwargs)):
            kwargs = {"chooses_model": False, **kwargs}
        return super().set_params(**kwargs)

    def _settle_steps(self, X: Any, n_samples: int) -> None:
        """See `PrivatePipeline`. The vectorizer raises errors for unreadable tables."""
        if not self.chooses_model or not _are_default(self.steps):
            return
        try:
            schema, table = self.steps[0][1]._given_schema(), Table(X)
            columns = match_columns(schema, table)
            n_public = public_rows_of(self, n_samples)
        except (TypeError, ValueError):
            return
        named = {name for name, _ in schema.items()}
        kinds = [
            "whole" if column.kind == "number" and name not in named and table.is_whole(j) else column.kind
            for name, j, column in columns
        ]
        # Of a risk, the epsilon of one Gaussian release with it.
        is_risk = isinstance(self.epsilon, Risk)
        epsilon = RiskTarget.of(self.epsilon).epsilon(self.delta) if is_risk else self.epsilon
        self.steps = _with_model(self.steps, _model_for(kinds, n_public * epsilon))

    def _with_learned(self, fitted: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
        """See `PrivatePipeline`: the current steps, with the model that the fit chose."""
        settled = copy(self)
        settled.steps = _with_model(self.steps, type(fitted[-1][1]))
        return PrivatePipeline._with_learned(settled, fitted)


def _is_of_one_model(parameter: str) -> bool:
    """Return whether a parameter of the pipeline is specific to the current model."""
    step, _, name = parameter.partition("__")
    if step == "vectorizer":
        return name in ("", "numbers", "sparse_output")
    return step == "steps" or (step == "model" and name not in _OF_THE_FIT)


def _are_default(steps: list[tuple[str, Any]]) -> bool:
    """Return whether the steps are the default ones, without parameters that only one model has."""
    *before, (_, model) = steps
    if [type(step) for _, step in before] != [DPTableVectorizer] or type(model) not in (
        DPMLPRegressor,
        DPRandomTreesRegressor,
    ):
        return False
    default = type(model)().get_params(deep=False)
    own = {name: value for name, value in model.get_params(deep=False).items() if name not in _OF_THE_FIT}
    are_same = all(type(value) is type(default[name]) and value == default[name] for name, value in own.items())
    return are_same and before[0][1].numbers in ("codes", "scale")


def _with_model(steps: list[tuple[str, Any]], kind: type) -> list[tuple[str, Any]]:
    """Return the steps with a model of this type, which keeps the parameters of the target and the budget."""
    if type(steps[-1][1]) is kind or not _are_default(steps):
        return steps
    (before, vectorizer), (name, model) = steps
    made = kind(**{name: value for name, value in model.get_params(deep=False).items() if name in _OF_THE_FIT})
    return [(before, _rows_for(made, clone(vectorizer))), (name, made)]


def _model_for(kinds: Iterable[str], rows_times_epsilon: float) -> type:
    """Return the type of regressor for columns of these types; "whole" are integers that can be codes."""
    kept = [kind for kind in kinds if kind != "drop"]
    if kept.count("number") < 0.75 * max(1, len(kept)):
        return DPRandomTreesRegressor
    # With few rows times epsilon, noise decides which splits of trees are learned (benchmarks/README.md).
    are_numbers = set(kept) <= {"number", "whole"}
    return DPMLPRegressor if are_numbers or rows_times_epsilon < 2_000.0 else DPRandomTreesRegressor


def _default_model(name: str, schema: Any) -> Any:
    """Return the model of a name, as far as the schema determines it. The vectorizer rejects invalid schemas."""
    if name == "classifier":
        return DPRandomTreesClassifier()
    try:
        known = read_schema({} if schema is None else schema, "or None")
    except (TypeError, ValueError):
        return DPRandomTreesRegressor()
    kinds = [column.kind for _, column in known.items()]
    return DPRandomTreesRegressor() if known.others == "estimate" else _model_for(kinds, math.inf)()


def _make_model(estimator: Any, schema: Any, parameters: dict[str, Any]) -> Any:
    """Return the last step with the given parameters."""
    if isinstance(estimator, str) and estimator in ("classifier", "regressor"):
        shown, model = repr(estimator), _default_model(estimator, schema)
    elif is_private(estimator) and not isinstance(estimator, type):
        shown, model = "this estimator", clone(estimator)
    else:
        raise TypeError(
            "`estimator` must be 'classifier', 'regressor' or an instance of a private estimator, such as "
            f"skdp.DPLogisticRegression(classes=[0, 1]), got {estimator!r}."
        )
    given = {name: value for name, value in parameters.items() if value is not None}
    for name, value in given.items():
        present = getattr(model, name, value)
        if present is not None and (present or name != "verbose"):
            raise ValueError(
                f"{name}={value!r} is not supported for {shown}, which sets it itself or does not have it. Remove it "
                "here."
            )
    return model.set_params(**given)


__all__ = ["TabularPipeline", "tabular_pipeline"]
