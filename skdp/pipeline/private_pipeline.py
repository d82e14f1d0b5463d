"""Pipelines whose private steps share one privacy budget."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from sklearn import get_config
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from skdp._checks import parameters
from skdp._checks.groups import ROW, take_unit
from skdp._checks.leaks import report_leak
from skdp._checks.rows import table_shape, without_labels
from skdp._checks.sources import reject_rows_elsewhere
from skdp.accounting.statements.targets import target_of
from skdp.base.budget import PrivacyCost
from skdp.base.estimator import JointPrivacyCost
from skdp.base.fit import BEGUN, PUBLICATION, Account, Fit, publish, recording_rejections, units_of
from skdp.base.pipeline_issues import PipelineIssue as PipelineIssue
from skdp.base.pipeline_issues import find
from skdp.base.private_step import private_steps, traits_of
from skdp.base.public_steps import passes_rows
from skdp.pipeline import joint_fit

TRANSFORMER_SHARE = 0.15
"""Fraction of the squared mu of the budget that each transformer uses by default."""


def check_pipeline(composition: Any) -> list[PipelineIssue]:
    """Find private data that a composition of estimators reads without accounting for it.

    The check inspects the composition at any depth, without fitting it. A private composition consists of private
    estimators and of stateless steps, which learn nothing from the data and transform rows one by one. Examples of
    stateless steps are ``Normalizer``, ``OneHotEncoder(categories=[...])``, a ``FunctionTransformer`` of an
    element-wise ufunc or of a function marked by `skdp.row_wise`, and unions of such steps. `allocate_budget` rejects
    all other steps.

    Parameters
    ----------
    composition : estimator
        A private estimator, a ``Pipeline``, ``ColumnTransformer`` or ``FeatureUnion``, or any meta-estimator with a
        private estimator, such as ``CalibratedClassifierCV``, ``RFE``, ``VotingClassifier``, ``BaggingClassifier`` or
        ``GridSearchCV``. It is not changed.

    Returns
    -------
    list of PipelineIssue
        Empty if the composition is private. Each issue has the step, what it reads and what to use instead. It also has
        the number of fits and their composed privacy cost, if these are known without the data. Each prints as one
        line.

    Raises
    ------
    TypeError
        `composition`, or one of its steps, is not an estimator.
    ValueError
        Names of steps are not unique, or a step before the last one has no ``transform``.

    Warns
    -----
    PrivacyLeakWarning
        There are issues; the message contains all of them. Under ``config_context(on_leak="raise")`` it is raised.

    See Also
    --------
    allocate_budget : Share one privacy budget between the private steps of a pipeline.
    row_wise : Mark a function that transforms rows one by one.

    Examples
    --------
    >>> import warnings
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import Normalizer, StandardScaler
    >>> from skdp import DPLogisticRegression, check_pipeline
    >>> model = DPLogisticRegression(classes=[0, 1])
    >>> check_pipeline(make_pipeline(Normalizer(), model))
    []
    >>> with warnings.catch_warnings(action="ignore"):
    ...     issues = check_pipeline(make_pipeline(StandardScaler(), model))
    >>> [(issue.step, issue.reads) for issue in issues]
    [('standardscaler', 'learns from its rows')]
    """
    findings = find(composition)
    if findings:
        report_leak(f"{type(composition).__name__} as a whole is not private. {' '.join(map(str, findings))}")
    return findings


def _keep_row_traits(steps: list[tuple[str, Any]]) -> None:
    """Let steps right before a private one give arrays, which carry their norm as no frame does.

    That is for ``sklearn.set_config(transform_output=...)``; the output that a step itself was given stays.
    """
    for (_, before), (_, step) in itertools.pairwise(steps):
        asked = "transform" in getattr(before, "_sklearn_output_config", {})
        if parameters.is_private(step) and traits_of(before).gives_norms and not asked:
            before.set_output(transform="default")


@parameters.without_removed
def allocate_budget(
    pipeline: Pipeline, epsilon: Any = None, delta: float | str = "auto", fractions: Mapping[str, float] | None = None
) -> PrivatePipeline:
    """Return a copy of a pipeline whose private steps share one privacy budget.

    Parameters
    ----------
    pipeline : Pipeline
        Pipeline of private estimators and stateless steps. The parameters `epsilon`, `delta` and `noise_multiplier` of
        its steps are ignored.
    epsilon : float or Risk, default=None
        Privacy budget of one ``fit`` of the whole pipeline. A number, or a bound on the risk of membership inference
        such as ``skdp.Risk(advantage=0.1)`` (``docs/membership_inference.md``).
    delta : float or "auto", default="auto"
        The delta of the (epsilon, delta) guarantee; it must be well below 1/n, where n is the public number of rows.
        "auto" uses the delta of the accountant if it has one. Otherwise it is 1e-5 for at most 10,000 rows and 1/(10n),
        rounded down to a power of ten, for more.
    fractions : mapping of str to float or None, default=None
        Fraction of the budget for each step, by name, in (0, 1). The remaining steps share the rest equally. None gives
        each transformer 0.15. Fractions refer to the squared mu of Gaussian differential privacy, which adds up under
        composition (Dong, Roth & Su 2022).

    Returns
    -------
    PrivatePipeline
        Unfitted pipeline.

    Raises
    ------
    TypeError
        `pipeline` is not a ``sklearn.pipeline.Pipeline``.
    ValueError
        A step reads private data without accounting for it, or a parameter is invalid. The message contains the remedy.

    See Also
    --------
    check_pipeline : List what the steps of a composition read.
    DPGridSearchCV : Search over the parameters of a pipeline with one budget.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from skdp import DPPCA, DPLogisticRegression, allocate_budget
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(5000, 20))
    >>> y = (X[:, 0] + X[:, 1] > 0).astype(int)
    >>> pipe = make_pipeline(DPPCA(5, center=False), DPLogisticRegression(classes=[0, 1]))
    >>> pipe = allocate_budget(pipe, epsilon=2.0, delta=1e-6, fractions={"dppca": 0.2}).fit(X, y)
    >>> print(f"{pipe.epsilon_:.2f}")
    2.00
    """
    joint_fit.reject_findings(pipeline)
    own = {"memory": pipeline.memory, "verbose": pipeline.verbose, "transform_input": pipeline.transform_input}
    given: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "fractions": fractions}
    budgeted = PrivatePipeline(clone(pipeline).steps, **given, **own)
    _keep_row_traits(budgeted.steps)
    joint_fit.check_budget(budgeted)
    return budgeted


def _on_features(name: str) -> Any:
    """A method of scikit-learn's pipelines, on the same conditions, for rows that may have labels of units still.

    Its steps run under silent arithmetic.
    """
    method = vars(Pipeline)[name]

    @functools.wraps(method.fn)
    def run(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        return method.fn(self, without_labels(self, X), *args, **kwargs)

    return available_if(method.check)(parameters.silent_arithmetic(run))


class _FittedSteps(Pipeline):
    """Methods for rows to predict: of stateless steps too, which know neither labels nor `silent_arithmetic`."""

    predict = _on_features("predict")
    predict_proba = _on_features("predict_proba")
    predict_log_proba = _on_features("predict_log_proba")
    decision_function = _on_features("decision_function")
    score_samples = _on_features("score_samples")
    score = _on_features("score")
    transform = _on_features("transform")
    inverse_transform = _on_features("inverse_transform")


@parameters.without_removed
class PrivatePipeline(JointPrivacyCost, _FittedSteps):
    """Pipeline whose private steps share one privacy budget.

    Use `allocate_budget` to create one.

    Parameters
    ----------
    steps : list of (str, estimator)
        Names and steps, as for ``sklearn.pipeline.Pipeline``.
    epsilon : float or Risk, default=1.0
        Privacy budget of one ``fit``. A number, or a bound on the risk of membership inference such as
        ``skdp.Risk(advantage=0.1)`` (``docs/membership_inference.md``).
    delta : float or "auto", default="auto"
        The delta of the (epsilon, delta) guarantee; it must be well below 1/n, where n is the public number of rows.
        "auto" uses the delta of the accountant if it has one. Otherwise it is 1e-5 for at most 10,000 rows and 1/(10n),
        rounded down to a power of ten, for more.
    fractions : mapping of str to float or None, default=None
        Fractions of the budget by step name, as for `allocate_budget`.
    transform_input : None
        Not supported: no step accepts a second table.
    memory : None
        Not supported: a cache would store private rows on disk.
    verbose : bool, default=False
        Whether to print the run time of each step.

    Attributes
    ----------
    epsilon_ : float
        Composed privacy cost of the current state of all steps at `delta_`. After ``fit`` it is at most `epsilon` and
        at most 0.1% smaller. It is not the sum of the `epsilon_` of the steps. A later fit of a single step, for
        example with ``pipe[-1].partial_fit``, increases it.
    delta_ : float
        Delta at which `epsilon_` is computed.
    privacy_event_ : DpEvent
        Event whose privacy cost is `epsilon_`.
    adjacency_ : str
        Neighboring relation for which `epsilon_` holds.
    privacy_unit_ : {"row", "group"}
        Privacy unit of the guarantee: one row, or all rows of one group.
    step_epsilons_ : dict of str to float
        Privacy cost of each private step alone.
    classes_ : ndarray of shape (n_classes,)
        Class labels of the last step. Defined only if it is a classifier.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of columns seen during ``fit``. Defined only if all column names of `X` are strings.

    See Also
    --------
    check_pipeline : List what the steps of a composition read.

    Notes
    -----
    **Guarantees.**

    - ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row as the composition of its steps, each of
      which may depend on the releases of earlier steps (adaptive composition).
    - With `groups` all of this holds for all rows of one group together: every private step receives the group
      identifiers, or the fit is rejected.
    - Parameters of all steps are checked and the budget is checked before a row is read. The leading stateless steps
      run, and rows and labels are checked, before the charge. The accountant is charged once, with the composed event.
    - A step is rejected unless it is known to be stateless and to transform rows one by one. Every private step
      receives one row for each input row.
    - ``fit`` works on copies of the steps, which replace the steps all at once when the last one is fitted. After an
      error or an interrupt, or while another thread fits it, the pipeline keeps its previous state and privacy cost.

    The noise is calibrated in ``fit``, when the number of rows is known. The parameters `epsilon`, `delta` and
    `noise_multiplier` of the steps are ignored. A slice such as ``pipe[:-1]`` can transform but cannot be fitted.
    """

    steps: Any
    delta: Any  # a number or "auto"; in the copy that a fit works on, a number

    def __init__(
        self,
        steps: Any,
        *,
        epsilon: Any = 1.0,
        delta: float | str = "auto",
        fractions: Mapping[str, float] | None = None,
        transform_input: Any = None,
        memory: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(steps, transform_input=transform_input, memory=memory, verbose=verbose)
        self.epsilon, self.delta, self.fractions = epsilon, delta, fractions

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Fit the steps one after the other, with one privacy budget.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Private rows.
        y : array-like of shape (n_samples,) or None, default=None
            Private labels.
        **params : dict of str to object
            Parameters of the ``fit`` methods of the steps, as for ``sklearn.pipeline.Pipeline.fit``. `sample_weight`
            without a step name is passed to all private steps that support it, transformers included; set
            `weight_bound` of each. `groups`, the group identifiers or a column name, applies to the whole pipeline.

        Returns
        -------
        self : PrivatePipeline
            Fitted pipeline.

        Raises
        ------
        ValueError
            A parameter, the rows or the labels are invalid. No budget was charged, unless the message says so.
        BudgetExceededError
            The fit exceeds the budget of the accountant. No budget was charged, and no row was read.
        """
        self._fit_under_one_budget(X, y, params)
        return self

    @available_if(lambda self: passes_rows(self.steps[-1][1]) or hasattr(self.steps[-1][1], "transform"))  # type: ignore[untyped-decorator]
    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit the steps with one privacy budget, and transform the rows with the last step.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Private rows.
        y : array-like of shape (n_samples,) or None, default=None
            Private labels.
        **params : dict of str to object
            Parameters of the ``fit`` methods of the steps.

        Returns
        -------
        X_new : ndarray of shape (n_samples, n_features_out)
            Transformed rows. Unlike the fitted attributes, they are not private.
        """
        rows = self._fit_under_one_budget(X, y, params)
        last = self.steps[-1][1]
        return rows if passes_rows(last) else last.transform(rows)

    @available_if(lambda self: False)  # type: ignore[untyped-decorator]
    def fit_predict(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Not supported: raises AttributeError. Call ``fit`` and then ``predict``.

        Parameters
        ----------
        X : object
            Ignored.
        y : object
            Ignored.
        **params : dict of str to object
            Ignored.
        """

    def __getitem__(self, ind: Any) -> Any:
        if isinstance(ind, slice):
            taken = PipelineSlice(Pipeline(self.steps)[ind].steps)
            take_unit(taken, self)
            return taken
        return super().__getitem__(ind)

    # --- the budget ---

    def _private_parts(self) -> list[Any]:
        return [step.estimator for _, step in private_steps(self.steps)]

    def _state_adjacency(self) -> None:
        """State the neighboring relation of all steps of a copy made for a fit, whose steps charge nothing."""
        steps = private_steps(self.steps)
        ledger = next((step.accountant for _, step in steps if step.accountant is not None), None)
        for _, step in steps:
            step.estimator.adjacency = parameters.stated_adjacency(step.estimator, ledger)

    def _check_fractions(self, names: list[str]) -> dict[str, float]:
        """Part of mu**2 of each private step, summing to one."""
        given = dict(self.fractions or {})
        unknown = set(given) - set(names)
        if unknown:
            raise ValueError(
                f"`fractions` must only contain private steps, got {sorted(unknown)[0]!r}. Expected names from {names}."
            )
        found = {
            name: parameters.check_real(
                f"fractions[{name!r}]", part, above=0, at_most=1, constraint="a number in (0, 1]"
            )
            for name, part in given.items()
        }
        if self.fractions is None and len(names) > 1:
            parts = [(name, step.estimator) for name, step in private_steps(self.steps)]
            transformers = [(name, traits_of(part).fraction) for name, part in parts if hasattr(part, "transform")]
            most = 0.5 / len(names)
            found = {name: min(share or TRANSFORMER_SHARE, most) for name, share in transformers[: len(names) - 1]}
        left = [name for name in names if name not in found]
        rest = 1.0 - sum(found.values())
        if left and rest <= 0:
            raise ValueError(f"fractions={given!r} leaves no budget for {left}. The fractions must sum to less than 1.")
        found.update(dict.fromkeys(left, rest / max(1, len(left))))
        return {name: found[name] / sum(found.values()) for name in names}

    def _note_unit(self) -> None:
        """Say to the private steps of a copy made for a fit what that is private for."""
        for _, step in private_steps(self.steps):
            step.note_unit(self)

    def _take_unit(self, other: Any) -> Self:
        """Be private for what `other` is, of which the fit that this copy is made for is a part."""
        take_unit(self, other)
        self._note_unit()
        return self

    def _copied(self) -> Self:
        """A clone that is private for what this one is."""
        copied: Self = clone(self)
        return copied._take_unit(self)

    def _settle_steps(self, X: Any, n_samples: int) -> None:
        """Settle what follows from names and types of the columns, on a copy made for a fit to this table.

        `n_samples` is the number of rows, or of units.
        """

    # --- the fit ---

    def _fit_under_one_budget(self, X: Any, y: Any, params: dict[str, Any]) -> Any:
        """Fit, and return the rows that the last step was fitted to."""
        fit, given = PipelineFit(self), dict(params)
        whole, groups = fit.model, given.pop("groups", None)
        joint_fit.check_budget(whole)
        of_steps = whole._split_params(given)
        if named := [name for name, each in of_steps.items() if "groups" in each]:
            raise ValueError(
                f"`groups` must be passed for the whole pipeline, got groups for step {named[0]!r}. Pass them as "
                "fit(X, y, groups=...)."
            )
        fit.read_shape(X, groups)
        allocation = whole._allocate(fit.n_units, fit.n_features)
        steps = joint_fit.JointFit(whole.steps, allocation, whole.delta, of_steps, units=fit.units)
        steps.check_parameters(fit.n_units)
        fit.plan_at(PrivacyCost(allocation.event, math.nan, whole.delta))

        fit.read(steps.prepare, fit.rows, y)
        fit.charge()

        rows, interrupted = fit.learn(steps.learn, whole._timed, part="steps")
        joint_fit.take_fit(whole, steps, allocation.event)
        fit.publish(interrupted=interrupted)
        return rows

    def _allocate(self, n_samples: int, n_features: int) -> joint_fit.Allocation:
        """Settle the noise of the private steps for a table of this shape; `delta` is a number."""
        plans = [step.plan(n_samples, n_features, self.delta) for _, step in private_steps(self.steps)]
        return joint_fit.Allocation(plans, joint_fit.noises_of(self, plans, target_of(self.epsilon, self.delta)))

    def _account(self) -> Account:
        """Where a fit of this pipeline is charged: the accountant that the steps share, if they have one."""
        steps = private_steps(self.steps)
        accountant = next((step.accountant for _, step in steps if step.accountant is not None), None)
        kept: dict[str, Any] = {"epsilon": self.epsilon, "delta": self.delta, "fractions": self.fractions}
        kept["steps"] = {name: type(step).__name__ for name, step in self.steps}
        kept["seeded"] = any(getattr(step.estimator, "random_state", None) is not None for _, step in steps)
        if name := self.__dict__.get("_fitted_group_name"):
            kept["groups"] = name
        unit = self.__dict__.get("privacy_unit_", ROW)
        return Account(accountant, type(self).__name__, steps[0][1].adjacency, kept, unit)

    def _with_learned(self, fitted: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
        """The steps as they are now, with an accountant that was given meanwhile, and what the fitted ones learned."""
        if [(name, type(step)) for name, step in self.steps] != [(name, type(step)) for name, step in fitted]:
            raise RuntimeError(
                "The steps were replaced during the fit. The budget was already charged for this fit. Fit the "
                "pipeline again."
            )
        return joint_fit.merge_steps(self.steps, fitted, copied=True)

    def set_params(self, **kwargs: Any) -> Self:
        """Set parameters of the pipeline and of its steps.

        Parameters
        ----------
        **kwargs : dict of str to object
            Parameters of the pipeline, or of a step as ``step__parameter``.

        Returns
        -------
        self : PrivatePipeline
            The pipeline itself.
        """
        parameters.reject_removed(type(self), kwargs.keys() - {name for name, *_ in self.steps})
        if "steps" not in kwargs:
            _reject_unknown(self, kwargs)
        with PUBLICATION:
            return super().set_params(**kwargs)

    def _split_params(self, params: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Parameters of ``fit`` by the step that they are for."""
        given: dict[str, dict[str, Any]] = {name: {} for name, _ in self.steps}
        if params and get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", **params)
            for name in given:
                given[name] = {**routed[name].get("fit", {}), **routed[name].get("fit_transform", {})}
            return given
        for key, value in params.items():
            weighted = joint_fit.weighted_steps(self) if key == "sample_weight" else []
            for name in weighted:
                given[name][key] = value
            if weighted:
                continue
            name, _, parameter = key.partition("__")
            if name not in given or not parameter:
                raise ValueError(f"fit got an unexpected parameter {key!r}. {_such_as(self.steps, key)}.")
            if parameter == "sample_weight" and name not in (takers := joint_fit.weighted_steps(self)):
                remedy = f"Pass it as {takers[-1]}__{parameter}" if takers else "Remove it"
                raise TypeError(
                    f"fit got an unexpected parameter {key!r}: step {name!r} does not support sample weights. {remedy}."
                )
            given[name][parameter] = value
        return given

    @contextlib.contextmanager
    def _timed(self, number: int, name: str) -> Iterator[None]:
        """Say how long a step took, if that is wanted."""
        start = time.perf_counter()
        yield
        if self.verbose:
            where = f"[{type(self).__name__}] (step {number + 1} of {len(self.steps)})"
            print(f"{where} {name}, {time.perf_counter() - start:.1f} s")

    @property
    def step_epsilons_(self) -> dict[str, float]:
        """Privacy cost of each private step alone, at its own delta. The composed cost is smaller than their sum."""
        check_is_fitted(self)
        return {name: step.estimator.epsilon_ for name, step in private_steps(self.steps)}


class PipelineFit(Fit):
    """The fit of a pipeline: one charge for all steps, which are fitted as copies and replaced together."""

    n_features: int

    def __init__(self, pipeline: PrivatePipeline) -> None:
        self.estimator, self.model = pipeline, clone(pipeline)
        self._stage, self._released = BEGUN, {}

    def _find_account(self) -> Account:
        return self.model._account()

    def read_shape(self, X: Any, groups: Any) -> None:
        """See `Fit`: the shape of the rows is that of what the first step takes."""
        reject_rows_elsewhere("a pipeline", X)
        self.model._state_adjacency()
        self.rows, self.units = units_of(self.model, X, groups, self._find_account)
        self.model._note_unit()
        with recording_rejections(self._find_account):
            self.n_rows, self.n_features = table_shape(self.rows)
        self.n_units = self.n_rows if self.units is None else self.units.n_units
        n, accountant = joint_fit.public_rows_of(self.model, self.n_units), self._find_account().accountant
        self.model.delta = parameters.delta_for(parameters.check_delta(self.model.delta), accountant, n)
        self.model._settle_steps(self.rows, self.n_units)
        self.model._note_unit()  # to a model that was chosen
        self.n = joint_fit.public_rows_of(self.model, self.n_units)
        self._account = self._find_account()

    def _note_cost(self) -> None:
        """See `Fit`: epsilon and event follow from the releases, which `take_fit` set."""

    def _publish(self, target: Any, fitted: Any) -> None:
        """See `Fit`: the steps as they are now, with what the fitted ones learned."""
        publish(target, fitted, steps=target._with_learned(fitted.steps))


def _reject_unknown(pipeline: PrivatePipeline, keys: Iterable[str]) -> None:
    """Raise an error for a parameter of neither the pipeline nor a step, with the steps that have one of this name."""
    known = [*pipeline.get_params(deep=False), *(name for name, _ in pipeline.steps)]
    for key in keys:
        if key.partition("__")[0] not in known:
            own = key.rpartition("__")[2]
            found = [f"{name}__{own}" for name, _ in pipeline.steps if f"{name}__{own}" in pipeline.get_params()]
            remedy = f"Use {' or '.join(map(repr, found))}" if found else f"Use step__parameter, or one of {known}"
            raise ValueError(f"Invalid parameter {key!r} for estimator {type(pipeline).__name__}. {remedy}.")


def _such_as(steps: list[tuple[str, Any]], key: str) -> str:
    """How a parameter is named by its step, by an example of this pipeline."""
    names = [name for name, step in steps if has_fit_parameter(step, key)]
    if key == "sample_weight" and not names:
        return "No private step supports sample weights. Remove it"
    return f"Prefix it with the step name, for example {(names or [steps[-1][0]])[-1]}__{key}"


class PipelineSlice(_FittedSteps):
    """Consecutive steps of a private pipeline, which can transform and predict but not be fitted."""

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Raise a TypeError: a slice has no privacy budget."""
        raise TypeError(
            "A slice of a private pipeline cannot be fitted, because it has no budget. Use "
            "skdp.allocate_budget(Pipeline(pipe.steps[:-1]), epsilon, delta)."
        )

    fit_transform = fit_predict = fit
