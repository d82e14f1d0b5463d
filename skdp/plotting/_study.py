"""Fits of one model at several budgets: planned together, charged at once, scored on rows that are public."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import check_scoring
from sklearn.pipeline import Pipeline

from skdp._checks.arithmetic import silent_arithmetic
from skdp._checks.leaks import report_leak, silence
from skdp._checks.parameters import show
from skdp._checks.protocols import is_private
from skdp._checks.rows import column_names, table_shape
from skdp._checks.units import Units, split_labels
from skdp._fit.private_step import private_steps
from skdp.accounting import AddRemove, DpEvent, PrivacyAccountant, SelfComposedDpEvent, compose
from skdp.accounting.targets import EpsilonTarget
from skdp.base import PrivacyCost
from skdp.model_selection.candidates import FitPlan, fit_plans, make_candidate, private_template, seen_by_the_user
from skdp.model_selection.whole_fit import PartRows, PartWeights, WholeFit
from skdp.pipeline import PrivatePipeline, weighted_steps

Scorer = Callable[..., float]


class Study:
    """Fits of one model at several budgets, each repeated with fresh noise, all of it decided before a row is read.

    Parameters
    ----------
    estimator : estimator
        Private one, pipeline or search.
    epsilons : list of float
    n_repeats : int
    rows : tuple of (X, y)
        Private rows and targets.
    test : tuple of (X, y)
        Public ones, to which scores are computed.
    sample_weight, groups : array-like, or the name of a column for groups, or None
        Private weights and labels of units of `rows`, which every fit is given.
    sample_weight_test : array-like or None
        Public weights of the test rows, which the scorer is given.
    scorer : callable
        A model's score, ``scorer(model, X, y)``.
    baseline : estimator or None
        One without privacy, scored for comparison.
    random_state : int or None

    Attributes
    ----------
    models_ : list of list of estimator
        The fitted models, by budget and repeat.
    baseline_score_ : float
    price_ : PrivacyCost
        Joint one of all fits.
    adjacency_ : str

    Notes
    -----
    **Guarantees.** The models and their scores on public rows, all of them together, are private at the price of
    `price_`, which is known before a row is read.

    With `groups` the same holds for all rows of one label together.

    Proof. Each fit reads the rows and noise of its own and costs ``fit.event(1.0)``; the price composes ``n_repeats``
    times each of the fits. A score on public rows is a function of what a fit released.
    """

    _public_name = "PrivacyUtilityDisplay"
    models_: list[list[Any]]
    baseline_score_: float
    price_: PrivacyCost
    adjacency_: str

    def __init__(
        self, estimator: Any, epsilons: list[float], n_repeats: int, rows: tuple[Any, Any], test: tuple[Any, Any],
        *, scorer: Scorer, baseline: Any, random_state: Any, sample_weight: Any = None, groups: Any = None,
        sample_weight_test: Any = None,
    ) -> None:  # fmt: skip
        self.estimator, self.n_repeats, self.random_state = estimator, n_repeats, random_state
        self.delta = getattr(estimator, "delta", "auto")
        X_test, y_test = test
        if isinstance(groups, str) and groups in (column_names(X_test) or ()):  # public rows may have it or not
            X_test, _ = split_labels(X_test, groups)
        self._epsilons, self._rows, self._test = epsilons, rows, (X_test, y_test)
        self._scorer, self._baseline = scorer, baseline
        self._weights, self._groups = sample_weight, groups
        self._of_scores = {} if sample_weight_test is None else {"sample_weight": sample_weight_test}

    @silent_arithmetic
    def fit(self) -> Any:
        """Plan and charge all fits together, and make them."""
        fit = WholeFit(self, "the noise of all fits")
        model, (X, y) = fit.model, self._rows
        template = private_template(model.estimator, model._epsilons[0], model.delta)
        if model._weights is not None and not weighted_steps(template):
            raise ValueError(f"sample_weight is not taken by {type(model.estimator).__name__}: leave it out.")
        fit.read_shape(X, model._groups, template)
        plans = model._plan(fit, template)
        event = compose([SelfComposedDpEvent(each.event(1.0), model.n_repeats) for each in plans])
        name = type(seen_by_the_user(template)).__name__
        fit.keep(estimator=name, epsilons=model._epsilons, n_repeats=model.n_repeats, delta=fit.delta)
        fit.plan_at(PrivacyCost(event, joint_epsilon(event, fit.delta, fit.adjacency), fit.delta))

        rows = PartRows(fit.rows, y, _weights_to_fit(model._weights), fit.units)
        fit.read(plans[0].check_rows, rows.X, y, fit.units, model._weights)
        model._rehearse(plans[0], rows)  # test rows, a scorer or a baseline that would fail after the charge
        scored = math.nan
        if model._baseline is not None:
            scored = fit.read(score_baseline, model._baseline, model.score, (rows.X, y), model._weights)
        fit.charge()

        models = fit.learn(model._fit_all, fit, plans, rows)
        return fit.publish(models_=models, baseline_score_=scored, price_=fit.cost)

    def _private_parts(self) -> list[Any]:
        return []  # what a fit would say is not told

    def _plan(self, fit: WholeFit, template: PrivatePipeline) -> list[FitPlan]:
        """Plan a fit at each budget, from the shape of the rows, and public numbers alone."""
        template.set_params(delta=fit.delta)
        plans: list[FitPlan] = []
        for epsilon in self._epsilons:
            made = make_candidate(_with_budget(template, epsilon), {}, fit.rows, fit.n_units)
            plans += fit_plans([{}], [made], fit.n, fit.n_features, EpsilonTarget(epsilon, fit.delta), fit.delta)
        return plans

    def _rehearse(self, plan: FitPlan, rows: PartRows) -> None:
        """Refuse test rows or a scorer that would fail, by a fit to the test rows."""
        width, n_features = table_shape(self._test[0])[1], table_shape(rows.X)[1]
        if width != n_features:
            raise ValueError(f"X_test has {width} columns and X has {n_features}: give both the same columns.")
        refused, score = "", math.nan
        try:
            with silence():
                score = self.score(self._rehearsed(plan, rows))
        except Exception as error:  # its message may show a cell
            refused = f"a {type(error).__name__}; fit and score a model on them alone to see why"
        if not refused and not math.isfinite(score):
            refused = f"the score is {score}; give rows of every class"
        if refused:
            raise ValueError(f"X_test and y_test cannot be scored: {refused}.")

    def _rehearsed(self, plan: FitPlan, rows: PartRows) -> Any:
        """A model that is fitted to public rows instead, as many as there may be; nothing is charged."""
        X, y = self._test
        n = table_shape(X)[0]
        pipeline = plan.pipeline._copied()
        for _, step in private_steps(pipeline.steps):
            step.estimator.set_params(adjacency=AddRemove(plan.n))  # of lots: they were planned for the private rows
        weights = None if rows.weights is None else _weights_to_fit(np.ones(n))
        public = PartRows(X, y, weights, None if rows.units is None else Units(np.arange(n), n))
        return seen_by_the_user(plan._replace(pipeline=pipeline).run(1.0, None, public))

    def _fit_all(self, fit: WholeFit, plans: list[FitPlan], rows: PartRows) -> list[list[Any]]:
        """Fit at each budget, each time with other noise. What a fit would say was said before, once for all."""
        return [
            [self._fitted(fit, plan, fit.seed(i, j), rows) for j in range(self.n_repeats)]
            for i, plan in enumerate(plans)
        ]

    def _fitted(self, fit: WholeFit, plan: FitPlan, seed: int | None, rows: PartRows) -> Any:
        with silence():
            made = plan.run(1.0, seed, rows)
        for _, step in private_steps(made.steps):
            step.estimator.set_params(accountant=fit.accountant)
        return seen_by_the_user(made)

    def score(self, model: Any) -> float:
        """The score of a model on the public rows."""
        return float(self._scorer(model, *self._test, **self._of_scores))


def _weights_to_fit(weights: Any) -> PartWeights | None:
    return None if weights is None else PartWeights(weights, weights)


def check_model(estimator: Any) -> None:
    """Refuse a pipeline without a budget."""
    if isinstance(estimator, Pipeline) and not isinstance(estimator, PrivatePipeline):
        raise ValueError("estimator is a Pipeline without a budget: give it one by skdp.allocate_budget.")


def _with_budget(template: PrivatePipeline, epsilon: float) -> PrivatePipeline:
    """A copy with this budget, which an estimator that is studied alone has as a parameter of its own too."""
    made = template._copied().set_params(epsilon=epsilon)
    if (seen := seen_by_the_user(made)) is not made:
        budget = {"epsilon": epsilon, "noise_multiplier": None}
        seen.set_params(**{name: value for name, value in budget.items() if hasattr(seen, name)})
    return made


def joint_epsilon(event: DpEvent, delta: float, adjacency: str) -> float:
    """The price of an event, by whichever method a ledger takes for it."""
    ledger = PrivacyAccountant()
    ledger.spend(event, adjacency=adjacency)
    return ledger.get_epsilon(delta)


# --- scores on rows that are public ---


def report_unpaid_scores(test_is_public: bool) -> None:
    """Report that scores are exact, unless the rows that they are computed on are declared public."""
    if not test_is_public:
        report_leak(
            "test_is_public=False: scores on X_test and y_test are exact and not paid for: score rows that are public "
            "and say so by test_is_public=True."
        )


def scorer_of(estimator: Any, scoring: Any) -> Scorer:
    """The function (model, X, y) that `scoring` names; None means the method ``score``."""
    if scoring is not None and not isinstance(scoring, str) and not callable(scoring):
        raise ValueError(f"scoring={show(scoring)} is not valid: give one name of scikit-learn's, a function or None.")
    return check_scoring(estimator, scoring)


def report_baseline(baseline: Any) -> None:
    """Report that an estimator without privacy reads all rows for nothing, and refuse one that is private."""
    if any(is_private(part) for part in (baseline, *baseline.get_params().values())):
        raise ValueError("baseline is private, and its fit would not be in the total: give an estimator without noise.")
    report_leak(
        f"baseline={type(baseline).__name__} reads all rows and labels without paying: what is drawn of it is not "
        "private; leave it out of a picture that you publish."
    )


def score_baseline(baseline: Any, score_of: Callable[[Any], float], rows: tuple[Any, Any], weights: Any) -> float:
    """The score of an estimator without privacy; the last step of a pipeline is given the weights."""
    refused, score = "", math.nan
    name = f"{baseline.steps[-1][0]}__sample_weight" if isinstance(baseline, Pipeline) else "sample_weight"
    try:
        score = score_of(clone(baseline).fit(*rows, **({} if weights is None else {name: weights})))
    except Exception as error:  # its message may show a cell
        refused = type(error).__name__
    if refused:
        raise ValueError(f"baseline={type(baseline).__name__} fails with a {refused}: fit it alone to see why.")
    return score
