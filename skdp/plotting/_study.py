"""Fits of one model at several budgets: planned together, charged at once, scored on rows that are public."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import check_scoring
from sklearn.pipeline import Pipeline

from skdp._checks.default_delta import check_delta, delta_for
from skdp._checks.leak_setting import report_leak, silence
from skdp._checks.parameters import show
from skdp._checks.protocols import is_private
from skdp._checks.rows import column_names, table_shape
from skdp._checks.units import ROW, Units, split_labels
from skdp._fit.conductor import PhasedFit
from skdp._fit.fit import units_of
from skdp._fit.payment import Payment
from skdp._fit.private_step import private_steps
from skdp.accounting import DpEvent, PrivacyAccountant, SelfComposedDpEvent, compose
from skdp.accounting.targets import EpsilonTarget
from skdp.mechanisms.streams import SecretStream
from skdp.model_selection.candidates import FitPlan, fit_plans, make_candidate, private_template, seen_by_the_user
from skdp.model_selection.part_rows import PartRows, PartWeights
from skdp.pipeline import PrivatePipeline, public_rows_of, weighted_steps

Scorer = Callable[..., float]


class Study(PhasedFit):
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
    models : list of list of estimator
        The fitted models, by budget and repeat.
    baseline_score : float
    epsilon : float
        Joint price of `event`, which is what all fits cost together, at `delta`.
    adjacency : str

    Notes
    -----
    **Guarantees.** The models and their scores on public rows, all of them together, are private at the price of
    `event`, which is known before a row is read.

    With `groups` the same holds for all rows of one label together.

    Proof. Each fit reads the rows and noise of its own and costs ``fit.event(1.0)``; `event` composes ``n_repeats``
    times each of the fits. A score on public rows is a function of what a fit released.
    """

    def __init__(
        self, estimator: Any, epsilons: list[float], n_repeats: int, rows: tuple[Any, Any], test: tuple[Any, Any],
        *, scorer: Scorer, baseline: Any, random_state: Any, sample_weight: Any = None, groups: Any = None,
        sample_weight_test: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(estimator, None)
        self.n_repeats, self.baseline_score = n_repeats, math.nan
        self._epsilons, self._rows, self._test = epsilons, rows, test
        self._scorer, self._baseline = scorer, baseline
        self._weights, self._groups = sample_weight, groups
        self._of_scores = {} if sample_weight_test is None else {"sample_weight": sample_weight_test}
        self._stream, self._is_seeded = root_stream(random_state), random_state is not None

    def plan(self) -> None:
        """See `PhasedFit`: from the shape of the rows, and public numbers alone."""
        given = getattr(self.target, "delta", "auto")
        self.work = template = private_template(self.target, self._epsilons[0], given)
        steps = [step for _, step in private_steps(template.steps)]
        self._accountant = next((step.accountant for step in steps if step.accountant is not None), None)
        delta: Any = check_delta(given)
        self.adjacency, self.delta = steps[0].adjacency, delta
        if self._weights is not None and not weighted_steps(template):
            raise ValueError(f"sample_weight is not taken by {type(self.target).__name__}: leave it out.")
        n_samples, n_features = self._find_units()
        self.n_public = public_rows_of(template, n_samples)
        self.delta = delta_for(delta, self._accountant, self.n_public)
        template.set_params(delta=self.delta)
        self._fits: list[FitPlan] = []
        for epsilon in self._epsilons:
            made = make_candidate(_with_budget(template, epsilon), {}, self._rows[0], n_samples)
            self._fits += fit_plans(
                [{}], [made], self.n_public, n_features, EpsilonTarget(epsilon, self.delta), self.delta
            )
        self.event = compose([SelfComposedDpEvent(fit.event(1.0), self.n_repeats) for fit in self._fits])
        self.epsilon = joint_epsilon(self.event, self.delta, self.adjacency)

    def _find_units(self) -> tuple[int, int]:
        """Take the labels of units out of the tables; the number of units, each row being one without, and of columns.

        Test rows are public, and may have that column or not.
        """
        (X, y), (X_test, y_test) = self._rows, self._test
        X, self.units = units_of(self.work, X, self._groups, self.payment())
        self.work._note_unit()
        if isinstance(self._groups, str) and self._groups in (column_names(X_test) or ()):
            X_test, _ = split_labels(X_test, self._groups)
        self._rows, self._test = (X, y), (X_test, y_test)
        n_rows, n_features = table_shape(X)
        return n_rows if self.units is None else self.units.n_units, n_features

    def payment(self) -> Payment:
        """See `PhasedFit`."""
        kept = {
            "estimator": type(seen_by_the_user(self.work)).__name__,
            "epsilons": self._epsilons,
            "n_repeats": self.n_repeats,
            "delta": self.delta,
            "seeded": self._is_seeded,
        }
        if name := self.work.__dict__.get("_fitted_group_name"):
            kept["groups"] = name
        unit = self.work.__dict__.get("privacy_unit_", ROW)
        return Payment(self._accountant, "PrivacyUtilityDisplay", self.adjacency, kept, unit)

    def read(self) -> None:
        """See `PhasedFit`."""
        self._fits[0].check_rows(*self._rows, self.units, self._weights)

    def prepare(self) -> None:
        """See `PhasedFit`: test rows, a scorer or a baseline that would fail after the charge are refused."""
        self._rehearse(*self._test)
        if self._baseline is not None:
            self.baseline_score = score_baseline(self._baseline, self.score, self._rows, self._weights)

    def _rehearse(self, X_test: Any, y_test: Any) -> None:
        """Refuse test rows or a scorer that would fail, by a fit to the test rows."""
        width, n_features = table_shape(X_test)[1], table_shape(self._rows[0])[1]
        if width != n_features:
            raise ValueError(f"X_test has {width} columns and X has {n_features}: give both the same columns.")
        refused, score = "", math.nan
        try:
            with silence():
                score = self.score(self._rehearsed(X_test, y_test))
        except Exception as error:  # its message may show a cell
            refused = f"a {type(error).__name__}; fit and score a model on them alone to see why"
        if not refused and not math.isfinite(score):
            refused = f"the score is {score}; give rows of every class"
        if refused:
            raise ValueError(f"X_test and y_test cannot be scored: {refused}.")

    def _rehearsed(self, X: Any, y: Any) -> Any:
        """A model that is fitted to public rows instead, as many as there may be; nothing is charged."""
        fit, n = self._fits[0], table_shape(X)[0]
        pipeline, name = fit.pipeline._copied(), "n_samples_public" if self.units is None else "n_groups_public"
        for _, step in private_steps(pipeline.steps):
            step.estimator.set_params(**{name: fit.n})  # of lots: they were planned for the private rows
        weights = None if self._weights is None else np.ones(n)
        units = None if self.units is None else Units(np.arange(n), n)
        return seen_by_the_user(fit._replace(pipeline=pipeline).run(1.0, None, _rows_to_fit(X, y, weights, units)))

    def learn(self) -> str:
        """See `PhasedFit`. What a fit would say was said before, once for all of them."""
        seeds = range(len(self._fits)), range(self.n_repeats)
        self.models = [[self._fitted(self._fits[i], self._seed(i, j)) for j in seeds[1]] for i in seeds[0]]
        return ""

    def _fitted(self, fit: FitPlan, seed: int | None) -> Any:
        with silence():
            model = fit.run(1.0, seed, _rows_to_fit(*self._rows, self._weights, self.units))
        for _, step in private_steps(model.steps):
            step.estimator.set_params(accountant=self._accountant)
        return seen_by_the_user(model)

    def score(self, model: Any) -> float:
        """The score of a model on the public rows."""
        return float(self._scorer(model, *self._test, **self._of_scores))

    def _seed(self, *numbers: int) -> int | None:
        return int(self._stream.spawn("study", *numbers).words(1)[0] >> np.uint64(2)) if self._is_seeded else None


def _rows_to_fit(X: Any, y: Any, weights: Any, units: Units | None) -> PartRows:
    return PartRows(X, y, None if weights is None else PartWeights(weights, weights), units)


def check_model(estimator: Any) -> None:
    """Refuse a pipeline without a budget."""
    if isinstance(estimator, Pipeline) and not isinstance(estimator, PrivatePipeline):
        raise ValueError("estimator is a Pipeline without a budget: give it one by skdp.allocate_budget.")


def _with_budget(template: PrivatePipeline, epsilon: float) -> PrivatePipeline:
    """A copy with this budget, which an estimator that is studied alone has as a parameter of its own too."""
    made = template._copied().set_params(epsilon=epsilon)
    if (seen := seen_by_the_user(made)) is not made:
        budget = {"epsilon": epsilon, "noise_multiplier": None, "risk": None}
        seen.set_params(**{name: value for name, value in budget.items() if hasattr(seen, name)})
    return made


def joint_epsilon(event: DpEvent, delta: float, adjacency: str) -> float:
    """The price of an event, by whichever method a ledger takes for it."""
    ledger = PrivacyAccountant()
    ledger.spend(event, adjacency=adjacency)
    return ledger.get_epsilon(delta)


def root_stream(random_state: Any) -> SecretStream:
    """The source of all seeds."""
    stream = SecretStream.from_random_state(random_state, "PrivacyUtilityDisplay")
    if random_state is not None:
        report_leak(
            f"random_state={random_state!r} makes the noise of all fits reproducible. The guarantee does not hold "
            "against those who know the seed. If it is used twice, anyone can subtract the noise: use "
            "random_state=None for a plot that you publish."
        )
    return stream


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
    found: Scorer = check_scoring(estimator, scoring)
    return found


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
