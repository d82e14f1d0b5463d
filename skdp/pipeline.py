"""One budget over a pipeline of private steps."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdp._validation import check_real
from skdp.accounting import DpEvent, calibrate_jointly, compose, get_epsilon
from skdp.base import PrivateEstimator, StepPlan, report_unpaid_scores

TRANSFORMER_SHARE = 0.15
"""Part of the budget's mu**2 that a transformer gets if nothing is said."""

_PUBLIC_BOUNDS = "a FunctionTransformer that scales by public bounds"
COUNTERPARTS = {
    "PCA": "skdp.DPPCA",
    "TruncatedSVD": "skdp.DPPCA(center=False)",
    "IncrementalPCA": "skdp.DPPCA",
    "LogisticRegression": "skdp.DPLogisticRegression",
    "LogisticRegressionCV": "skdp.DPLogisticRegression",
    "SGDClassifier": "skdp.DPLogisticRegression",
    "MLPClassifier": "skdp.DPMLPClassifier",
    "StandardScaler": _PUBLIC_BOUNDS,
    "MinMaxScaler": _PUBLIC_BOUNDS,
    "MaxAbsScaler": _PUBLIC_BOUNDS,
    "RobustScaler": _PUBLIC_BOUNDS,
    "KBinsDiscretizer": "a FunctionTransformer with public edges",
    "SimpleImputer": "a FunctionTransformer that fills in a public constant",
    "OneHotEncoder": "OneHotEncoder(categories=[...]) with public lists",
    "OrdinalEncoder": "OrdinalEncoder(categories=[...]) with public lists",
}
"""What to use in the place of a step that reads its rows without paying."""

_READ_THE_SHAPE_ONLY = {"PolynomialFeatures", "GaussianRandomProjection", "SparseRandomProjection"}
_ENCODERS = {"OneHotEncoder", "OrdinalEncoder"}


def check_pipeline(pipeline: Any) -> None:
    """Refuse a pipeline in which a step reads its rows without paying.

    Allowed are private estimators, transformers that learn nothing (by scikit-learn's tag ``requires_fit=False``, such
    as ``FunctionTransformer`` and ``Normalizer``), those that look at nothing but the shape, encoders with given
    categories, and unions of these.

    Parameters
    ----------
    pipeline : Pipeline

    Raises
    ------
    TypeError
        `pipeline` is none.
    ValueError
        Naming the step and what to use instead.
    """
    if not isinstance(pipeline, Pipeline):
        raise TypeError(f"pipeline={pipeline!r} is not a Pipeline: give sklearn.pipeline.Pipeline([...]).")
    for name, step in pipeline.steps:
        if not isinstance(step, PrivateEstimator):
            _refuse_reader(name, step)


def _refuse_reader(name: str, step: Any) -> None:
    if step is None or isinstance(step, str):  # passthrough or drop
        return
    kind = type(step).__name__
    parts = _parts(step)
    if parts is not None:
        for part_name, part in parts:
            _refuse_reader(f"{name}__{part_name}", part)
    elif isinstance(step, PrivateEstimator):
        raise ValueError(f"step {name!r}: {kind} is inside another step; make it a step of the pipeline itself.")
    elif not _reads_nothing(step):
        remedy = COUNTERPARTS.get(kind, "a private estimator or a transformer that learns nothing")
        raise ValueError(f"step {name!r}: {kind} reads the rows without paying; use {remedy} instead.")


def _parts(step: Any) -> list[tuple[str, Any]] | None:
    """What a step is made of, None for one that is no composition."""
    if isinstance(step, Pipeline):
        return list(step.steps)
    if isinstance(step, FeatureUnion):
        return list(step.transformer_list)
    if isinstance(step, ColumnTransformer):
        return [*((name, part) for name, part, _ in step.transformers), ("remainder", step.remainder)]
    return None


def _reads_nothing(step: Any) -> bool:
    kind = type(step).__name__
    if kind in _ENCODERS:
        given = not isinstance(step.categories, str)
        return given and step.min_frequency is None and getattr(step, "max_categories", None) is None
    if kind in _READ_THE_SHAPE_ONLY:
        return not isinstance(getattr(step, "n_components", 1), str) or step.n_components != "auto"
    return not get_tags(step).requires_fit


def allocate_budget(
    pipeline: Pipeline, epsilon: float, delta: float, shares: Mapping[str, float] | None = None
) -> PrivatePipeline:
    """A copy of a pipeline whose private steps together spend one budget.

    Parameters
    ----------
    pipeline : Pipeline
        Of private steps and of steps that read nothing. Epsilon, delta and noise of its steps are set aside.
    epsilon, delta : float
        The budget of one ``fit`` of the whole pipeline.
    shares : mapping of str to float or None, default=None
        Parts of the budget's mu**2 by name of a step, in (0, 1). Steps that are not named share the rest; if nothing is
        said a transformer gets 0.15. Of several Gaussian releases the mu**2 add up (Dong, Roth & Su 2022), so a
        share is what a step contributes to the whole.

    Returns
    -------
    PrivatePipeline
        Not fitted.

    Raises
    ------
    ValueError
        A step reads its rows without paying (it is named, with what to use instead), or a parameter is not usable.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from skdp import DPPCA, DPLogisticRegression, allocate_budget
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(5000, 20))
    >>> y = (X[:, 0] + X[:, 1] > 0).astype(int)
    >>> pipe = make_pipeline(DPPCA(5, center=False), DPLogisticRegression(classes=[0, 1]))
    >>> pipe = allocate_budget(pipe, epsilon=2.0, delta=1e-6, shares={"dppca": 0.2}).fit(X, y)
    >>> bool(1.99 < pipe.epsilon_ <= 2.0)
    True
    """
    check_pipeline(pipeline)
    own = {"memory": pipeline.memory, "verbose": pipeline.verbose, "transform_input": pipeline.transform_input}
    budgeted = PrivatePipeline(clone(pipeline).steps, epsilon=epsilon, delta=delta, shares=shares, **own)
    budgeted._check()
    return budgeted


class Allocation(NamedTuple):
    """Plans of the private steps, the noise multiplier of each, and what all of them cost together."""

    plans: list[StepPlan]
    noises: tuple[float, ...]
    event: DpEvent


class PrivatePipeline(Pipeline):
    """A pipeline whose private steps are given their noise so that all of them together cost `epsilon`.

    Parameters
    ----------
    steps : list of (str, estimator)
        As for ``sklearn.pipeline.Pipeline``.
    epsilon, delta : float
        The budget of one ``fit``.
    shares : mapping of str to float or None, default=None
        As for `allocate_budget`.
    transform_input, memory, verbose
        As for ``sklearn.pipeline.Pipeline``.

    Attributes
    ----------
    epsilon_ : float
        Joint price at `delta_` of all private steps, by PLD: at most `epsilon`, at most 0.1 % below it, and never the
        sum of the steps' own ``epsilon_``.
    delta_ : float
    privacy_event_ : DpEvent
        What `epsilon_` is the price of.
    adjacency_ : str

    Notes
    -----
    **Guarantees.**

    - ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row as the whole of its steps, each of which may
      depend on what the ones before it released (adaptive composition).
    - The steps' accountant is charged once, with the joint event, before the first row is read.
    - A step that reads its rows without paying is refused.

    The noise is solved for when ``fit`` knows the number of rows; the steps' own `epsilon`, `delta` and
    `noise_multiplier` are as before when it returns.
    """

    def __init__(
        self,
        steps: Any,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        shares: Mapping[str, float] | None = None,
        transform_input: Any = None,
        memory: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(steps, transform_input=transform_input, memory=memory, verbose=verbose)
        self.epsilon = epsilon
        self.delta = delta
        self.shares = shares

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Fit the steps, one after the other, under one budget.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or None
        **params
            As for ``sklearn.pipeline.Pipeline.fit``.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            A parameter is not usable; nothing was charged. Or the rows are refused by a step; the charge stays.
        BudgetExceededError
            The accountant's ceiling does not allow the fit; nothing was charged, and no row was read.
        """
        with self._under_one_budget(X):
            super().fit(X, y, **params)
        return self

    def _ends_in_a_transformer(self) -> bool:
        last = self.steps[-1][1]
        return last is None or isinstance(last, str) or hasattr(last, "transform")

    @available_if(_ends_in_a_transformer)  # type: ignore[untyped-decorator]
    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """`fit`, and the rows as the last step transforms them."""
        with self._under_one_budget(X):
            return super().fit_transform(X, y, **params)

    # --- the budget ---

    def _private_steps(self) -> list[tuple[str, PrivateEstimator]]:
        return [(name, step) for name, step in self.steps if isinstance(step, PrivateEstimator)]

    def _check(self) -> None:
        """All that can be refused before there are rows."""
        check_pipeline(self)
        check_real("epsilon", self.epsilon, above=0, remedy="choose a number above 0, such as 1.0")
        check_real("delta", self.delta, above=0, below=1, remedy="choose a number in (0, 1), well below 1/n")
        steps = self._private_steps()
        if not steps:
            raise ValueError("the pipeline has no private step: there is nothing to spend the budget on; add one.")
        self._check_shares([name for name, _ in steps])
        for name, step in steps:
            if getattr(step, "warm_start", False):
                raise ValueError(f"step {name!r}: warm_start=True has no joint price with new steps; set it to False.")
            if getattr(step, "checkpoint", None) is not None:  # it would go on from what an earlier fit's steps gave it
                raise ValueError(f"step {name!r}: checkpoint={step.checkpoint!r} knows one step only; set it to None.")
        for parameter in ("adjacency", "accountant"):
            values = {id(v): v for _, s in steps if (v := getattr(s, parameter)) is not None}.values()
            if len({v if isinstance(v, str) else id(v) for v in values}) > 1:
                raise ValueError(
                    f"{parameter} differs between the steps {[n for n, _ in steps]}: give all of them one."
                )

    def _check_shares(self, names: list[str]) -> dict[str, float]:
        """Part of mu**2 of each private step, summing to one."""
        given = dict(self.shares or {})
        unknown = set(given) - set(names)
        if unknown:
            raise ValueError(f"shares={given!r} names {sorted(unknown)[0]!r}; the private steps are {names}.")
        found = {
            name: check_real(f"shares[{name!r}]", part, above=0, at_most=1, remedy="choose a part in (0, 1)")
            for name, part in given.items()
        }
        if self.shares is None and len(names) > 1:
            transformers = [name for name, step in self._private_steps() if hasattr(step, "transform")]
            found = {name: min(TRANSFORMER_SHARE, 0.5 / len(names)) for name in transformers[: len(names) - 1]}
        left = [name for name in names if name not in found]
        rest = 1.0 - sum(found.values())
        if left and rest <= 0:
            raise ValueError(f"shares={given!r} leaves nothing for {left}: let the named parts sum to less than 1.")
        found.update(dict.fromkeys(left, rest / max(1, len(left))))
        return {name: found[name] / sum(found.values()) for name in names}

    def _solve(self, n_samples: int, n_features: int) -> Allocation:
        """The noise of each private step for a table of this shape, and what all of them will cost."""
        steps = self._private_steps()
        plans = [step._plan_step(n_samples, n_features) for _, step in steps]
        shares = self._check_shares([name for name, _ in steps])
        noises = calibrate_jointly(
            [plan.event_at for plan in plans], self.epsilon, self.delta, list(shares.values()),
            adjacency=steps[0][1].adjacency,
        )  # fmt: skip
        event = compose(plan.event_at(sigma) for plan, sigma in zip(plans, noises, strict=True))
        return Allocation(plans, noises, event)

    @contextlib.contextmanager
    def _under_one_budget(self, X: Any) -> Iterator[None]:
        """Solve for the noise, charge, and let the steps be fitted with that noise; then publish what was spent."""
        self._check()
        steps = self._private_steps()
        adjacency = steps[0][1].adjacency
        allocation = self._solve(*table_shape(X))
        epsilon = get_epsilon(allocation.event, self.delta, adjacency=adjacency)
        accountant = next((s.accountant for _, s in steps if s.accountant is not None), None)
        report_unpaid_scores()
        if accountant is not None:
            kept: dict[str, Any] = {"epsilon": self.epsilon, "delta": self.delta, "shares": self.shares}
            kept["steps"] = {name: type(step).__name__ for name, step in self.steps}
            accountant.spend(allocation.event, type(self).__name__, adjacency=adjacency, parameters=kept)
        with self._steps_allotted(steps, allocation):
            yield
        spent = compose(step.privacy_event_ for _, step in self._private_steps())
        if spent != allocation.event:
            raise RuntimeError(f"spent {spent!r} where {allocation.event!r} was planned: please report this as a bug.")
        self.privacy_event_, self.epsilon_, self.delta_ = allocation.event, epsilon, self.delta
        self.adjacency_ = adjacency

    def _fit_allotted(self, allocation: Allocation, X: Any, y: Any) -> None:
        """Fit with noise that was solved, and charged, elsewhere."""
        with self._steps_allotted(self._private_steps(), allocation):
            super().fit(X, y)

    @contextlib.contextmanager
    def _steps_allotted(self, steps: list[tuple[str, PrivateEstimator]], allocation: Allocation) -> Iterator[None]:
        """The steps' parameters are the allotted ones inside, and the user's own after."""
        own = {}
        for (name, step), plan, sigma in zip(steps, allocation.plans, allocation.noises, strict=True):
            allotted = {
                **plan.parameters, "epsilon": None, "noise_multiplier": sigma, "delta": self.delta, "accountant": None,
            }  # fmt: skip
            own[name] = {key: getattr(step, key) for key in allotted}
            step.set_params(**allotted)
        try:
            yield
        finally:
            for name, step in self._private_steps():
                step.set_params(**own[name])

    @property
    def step_epsilons_(self) -> dict[str, float]:
        """Price of each private step alone, at `delta_`; the total is less than their sum."""
        check_is_fitted(self)
        return {name: step.epsilon_ for name, step in self._private_steps()}


def table_shape(X: Any) -> tuple[int, int]:
    """Rows and columns of a table of any kind."""
    shape = X.shape if hasattr(X, "shape") else np.shape(X)
    return int(shape[0]), int(shape[1]) if len(shape) > 1 else 1
