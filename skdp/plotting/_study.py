"""Fits of one model at several budgets: planned together, charged at once, scored on rows that are public."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.metrics import check_scoring
from sklearn.pipeline import Pipeline

from skdp._checks.default_delta import check_delta, delta_for
from skdp._checks.leak_setting import report_leak, silence
from skdp._checks.parameters import show
from skdp._checks.protocols import is_private
from skdp._checks.rows import table_shape
from skdp._fit.payment import Payment, charged
from skdp._fit.private_step import private_steps
from skdp._guard.foreign_fits import report_foreign_fit
from skdp.accounting import DpEvent, PrivacyAccountant, SelfComposedDpEvent, compose
from skdp.base import warn_of_weak_delta
from skdp.mechanisms.streams import SecretStream
from skdp.model_selection.candidates import FitPlan, fit_plans, make_candidate, private_template, seen_by_the_user
from skdp.pipeline import PrivatePipeline, public_rows_of


class Study(NamedTuple):
    """Fits of one model at several budgets, each repeated with fresh noise, all of it decided before a row is read.

    Attributes
    ----------
    fits : list of FitPlan
        One for each budget.
    n_repeats : int
    n_features : int
    accountant : PrivacyAccountant or None
    event : DpEvent
        What all fits cost together.
    epsilon : float
        Joint price of `event` at `delta`.
    delta : float
    adjacency : str

    Notes
    -----
    **Guarantees.** The models and their scores on public rows, all of them together, are private at the price of
    `event`, which is known before a row is read.

    Proof. Each fit reads the rows and noise of its own and costs ``fit.event(1.0)``; `event` composes ``n_repeats``
    times each of `fits`. A score on public rows is a function of what a fit released.
    """

    fits: list[FitPlan]
    n_repeats: int
    n_features: int
    accountant: PrivacyAccountant | None
    event: DpEvent
    epsilon: float
    delta: float
    adjacency: str

    def check_rows(self, X: Any, y: Any) -> None:
        """Refuse what a fit would refuse; a refusal of private rows is recorded."""
        with self._payment().recording_refusals():
            self.fits[0].check_rows(X, y)

    def admit(self) -> None:
        """Raise what `charge` would raise; nothing is charged."""
        self._payment().check(self.event)

    def charge(self) -> None:
        """Charge all fits at once, or raise and charge nothing."""
        self._payment().charge(self.event)

    def run(self, X: Any, y: Any, stream: SecretStream, seeded: bool) -> list[list[Any]]:
        """The fitted models, by budget and repeat. What a fit would say was said before, once for all of them."""
        return [
            [charged(self._fitted, fit, X, y, _seed(stream, i, j) if seeded else None) for j in range(self.n_repeats)]
            for i, fit in enumerate(self.fits)
        ]

    def _fitted(self, fit: FitPlan, X: Any, y: Any, seed: int | None) -> Any:
        with silence():
            model = fit.run(1.0, seed, X, y)
        for _, step in private_steps(model.steps):
            step.estimator.set_params(accountant=self.accountant)
        return seen_by_the_user(model)

    def rehearsed(self, X: Any, y: Any) -> Any:
        """A model that is fitted to public rows instead, as many as there may be; nothing is charged."""
        fit = self.fits[0]
        pipeline = clone(fit.pipeline)
        for _, step in private_steps(pipeline.steps):
            step.estimator.set_params(n_samples_public=fit.n)  # of lots: they were planned for the private rows
        return seen_by_the_user(fit._replace(pipeline=pipeline).run(1.0, None, X, y))

    def _payment(self) -> Payment:
        model = type(seen_by_the_user(self.fits[0].pipeline)).__name__
        kept = {
            "estimator": model,
            "epsilons": [fit.pipeline.epsilon for fit in self.fits],
            "n_repeats": self.n_repeats,
        }
        return Payment(self.accountant, "PrivacyUtilityDisplay", self.adjacency, {**kept, "delta": self.delta})


Scorer = Callable[[Any, Any, Any], float]


def plan_study(estimator: Any, epsilons: list[float], n_repeats: int, X: Any) -> Study:
    """The study of a model on a table of the shape of `X`, from public numbers alone."""
    if isinstance(estimator, Pipeline) and not isinstance(estimator, PrivatePipeline):
        raise ValueError("estimator is a Pipeline without a budget: give it one by skdp.allocate_budget.")
    report_foreign_fit(estimator)
    n_samples, n_features = table_shape(X)
    given = getattr(estimator, "delta", "auto")
    template = private_template(estimator, epsilons[0], given)
    steps = [step for _, step in private_steps(template.steps)]
    accountant = next((step.accountant for step in steps if step.accountant is not None), None)
    n = public_rows_of(template, n_samples)
    delta = delta_for(check_delta(given), accountant, n)
    template.set_params(delta=delta)
    fits = []
    for epsilon in epsilons:
        made = make_candidate(_with_budget(template, epsilon), {})
        fits += fit_plans([{}], [made], n, n_features, epsilon, delta)
    event = compose([SelfComposedDpEvent(fit.event(1.0), n_repeats) for fit in fits])
    warn_of_weak_delta(delta, n)
    price = joint_epsilon(event, delta, steps[0].adjacency)
    return Study(fits, n_repeats, n_features, accountant, event, price, delta, steps[0].adjacency)


def _with_budget(template: PrivatePipeline, epsilon: float) -> PrivatePipeline:
    """A copy with this budget, which an estimator that is studied alone has as a parameter of its own too."""
    made = clone(template).set_params(epsilon=epsilon)
    if (seen := seen_by_the_user(made)) is not made:
        seen.set_params(epsilon=epsilon, noise_multiplier=None)
    return made


def joint_epsilon(event: DpEvent, delta: float, adjacency: str) -> float:
    """The price of an event, by whichever method a ledger takes for it."""
    ledger = PrivacyAccountant()
    ledger.spend(event, adjacency=adjacency)
    return ledger.get_epsilon(delta)


def root_stream(random_state: Any) -> SecretStream:
    """The source of all seeds."""
    stream = SecretStream.from_random_state(random_state)
    if random_state is not None:
        report_leak(
            f"random_state={random_state!r} makes the noise of all fits reproducible, so the guarantee does not hold "
            "against those who know the seed: use random_state=None for a picture that you publish."
        )
    return stream


def _seed(stream: SecretStream, *numbers: int) -> int:
    return int(stream.spawn("study", *numbers).words(1)[0] >> np.uint64(2))


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


def rehearse(study: Study, scorer: Scorer, X_test: Any, y_test: Any) -> None:
    """Refuse, before the charge, test rows or a scorer that would fail after it, by a fit to the test rows."""
    if (width := table_shape(X_test)[1]) != study.n_features:
        raise ValueError(f"X_test has {width} columns and X has {study.n_features}: give both the same columns.")
    refused, score = "", math.nan
    try:
        with silence():
            score = float(scorer(study.rehearsed(X_test, y_test), X_test, y_test))
    except Exception as error:  # its message may show a cell
        refused = f"a {type(error).__name__}; fit and score a model on them alone to see why"
    if not refused and not math.isfinite(score):
        refused = f"the score is {score}; give rows of every class"
    if refused:
        raise ValueError(f"X_test and y_test cannot be scored: {refused}.")


def report_baseline(baseline: Any) -> None:
    """Report that an estimator without privacy reads all rows for nothing, and refuse one that is private."""
    if any(is_private(part) for part in (baseline, *baseline.get_params().values())):
        raise ValueError("baseline is private, and its fit would not be in the total: give an estimator without noise.")
    report_leak(
        f"baseline={type(baseline).__name__} reads all rows and labels without paying: what is drawn of it is not "
        "private; leave it out of a picture that you publish."
    )


def score_baseline(baseline: Any, scorer: Scorer, rows: tuple[Any, Any], test: tuple[Any, Any]) -> float:
    """The score of an estimator without privacy."""
    refused, score = "", math.nan
    try:
        score = float(scorer(clone(baseline).fit(*rows), *test))
    except Exception as error:  # its message may show a cell
        refused = type(error).__name__
    if refused:
        raise ValueError(f"baseline={type(baseline).__name__} fails with a {refused}: fit it alone to see why.")
    return score
