"""`PrivacyUtilityDisplay`: score of a model against its privacy budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.metrics import check_scoring
from sklearn.pipeline import Pipeline

from skdp._checks.groups import Units, split_labels
from skdp._checks.leaks import report_leak, silence
from skdp._checks.parameters import check_count, check_real, is_private, last_step, show, silent_arithmetic
from skdp._checks.rows import column_names, table_shape
from skdp.accounting import AddRemove, PrivacyAccountant, SelfComposedDpEvent, compose
from skdp.accounting.ledger.report import to_digits
from skdp.accounting.statements.targets import EpsilonTarget
from skdp.base.budget import PrivacyCost
from skdp.base.private_step import private_steps
from skdp.model_selection.candidates import FitPlan, fit_plans, make_candidate, private_template, seen_by_the_user
from skdp.model_selection.whole_fit import PartRows, PartWeights, WholeFit
from skdp.pipeline.joint_fit import weighted_steps
from skdp.pipeline.private_pipeline import PrivatePipeline
from skdp.plotting import _axes

Scorer = Callable[..., float]


class Study:
    """Fits of one model at several budgets, each repeated with independent noise, all planned before a row is read.

    Parameters
    ----------
    estimator : estimator
        Private estimator, pipeline or search.
    epsilons : list of float
    n_repeats : int
    rows : tuple of (X, y)
        Private rows and targets.
    test : tuple of (X, y)
        Public rows and targets, for the scores.
    sample_weight, groups : array-like, or the name of a column for groups, or None
        Private weights and group identifiers of `rows`, for every fit.
    sample_weight_test : array-like or None
        Public weights of the test rows, for the scorer.
    scorer : callable
        A model's score, ``scorer(model, X, y)``.
    baseline : estimator or None
        Non-private estimator for comparison.
    random_state : int or None

    Attributes
    ----------
    models_ : list of list of estimator
        The fitted models, by budget and repeat.
    baseline_score_ : float
    privacy_cost_ : PrivacyCost
        Privacy cost of all fits under composition.
    adjacency_ : str

    Notes
    -----
    **Guarantees.** All models and their scores on public rows together have the privacy cost `privacy_cost_`, which is
    known before a row is read. With `groups`, the same holds for all rows of one group.

    Proof. Each fit reads the rows, has independent noise, and costs ``fit.event(1.0)``; the privacy cost composes
    ``n_repeats`` times each of the fits. A score on public rows is a function of a released fit.
    """

    _public_name = "PrivacyUtilityDisplay"
    models_: list[list[Any]]
    baseline_score_: float
    privacy_cost_: PrivacyCost
    adjacency_: str

    def __init__(
        self, estimator: Any, epsilons: list[float], n_repeats: int, rows: tuple[Any, Any], test: tuple[Any, Any],
        *, scorer: Scorer, baseline: Any, random_state: Any, sample_weight: Any = None, groups: Any = None,
        sample_weight_test: Any = None,
    ) -> None:  # fmt: skip
        self.estimator, self.n_repeats, self.random_state = estimator, n_repeats, random_state
        self.delta = getattr(estimator, "delta", "auto")
        X_test, y_test = test
        if isinstance(groups, str) and groups in (column_names(X_test) or ()):  # public rows need not have it
            X_test, _ = split_labels(X_test, groups)
        self._epsilons, self._rows, self._test = epsilons, rows, (X_test, y_test)
        self._scorer, self._baseline = scorer, baseline
        self._weights, self._groups = sample_weight, groups
        self._of_scores = {} if sample_weight_test is None else {"sample_weight": sample_weight_test}

    @silent_arithmetic
    def fit(self) -> Any:
        """Plan and charge all fits together, and run them."""
        fit = WholeFit(self, "the noise of all fits")
        model, (X, y) = fit.model, self._rows
        template = private_template(model.estimator, model._epsilons[0], model.delta)
        if model._weights is not None and not weighted_steps(template):
            raise ValueError(f"`sample_weight` is not supported by {type(model.estimator).__name__}. Remove it.")
        fit.read_shape(X, model._groups, template)
        plans = model._plan(fit, template)
        event = compose([SelfComposedDpEvent(each.event(1.0), model.n_repeats) for each in plans])
        name = type(seen_by_the_user(template)).__name__
        fit.keep(estimator=name, epsilons=model._epsilons, n_repeats=model.n_repeats, delta=fit.delta)
        ledger = PrivacyAccountant()  # with the default accounting method
        ledger.spend(event, adjacency=fit.adjacency)
        fit.plan_at(PrivacyCost(event, ledger.get_epsilon(fit.delta), fit.delta))

        rows = PartRows(fit.rows, y, _weights_to_fit(model._weights), fit.units)
        fit.read(plans[0].check_rows, rows.X, y, fit.units, model._weights)
        model._rehearse(plans[0], rows)  # test rows, scorer or baseline must not fail after the charge
        scored = math.nan
        if model._baseline is not None:
            scored = fit.read(score_baseline, model._baseline, model.score, (rows.X, y), model._weights)
        fit.charge()

        models = fit.learn(model._fit_all, fit, plans, rows)
        return fit.publish(models_=models, baseline_score_=scored, privacy_cost_=fit.cost)

    def _private_parts(self) -> list[Any]:
        return []  # diagnostics of a fit about its rows are not published

    def _plan(self, fit: WholeFit, template: PrivatePipeline) -> list[FitPlan]:
        """Plan a fit at each budget, from the shape of the rows and public numbers alone."""
        template.set_params(delta=fit.delta)
        plans: list[FitPlan] = []
        for epsilon in self._epsilons:
            given = template._copied().set_params(epsilon=epsilon)
            if (seen := seen_by_the_user(given)) is not given:  # a single estimator has its own budget too
                budget = {"epsilon": epsilon, "noise_multiplier": None}
                seen.set_params(**{name: value for name, value in budget.items() if hasattr(seen, name)})
            made = make_candidate(given, {}, fit.rows, fit.n_units)
            plans += fit_plans([{}], [made], fit.n, fit.n_features, EpsilonTarget(epsilon, fit.delta), fit.delta)
        return plans

    def _rehearse(self, plan: FitPlan, rows: PartRows) -> None:
        """Reject test rows or a scorer that would fail, by a fit to the test rows."""
        width, n_features = table_shape(self._test[0])[1], table_shape(rows.X)[1]
        if width != n_features:
            raise ValueError(f"`X_test` must have the {n_features} columns of X, got {width}.")
        rejected, score = "", math.nan
        try:
            with silence():
                score = self.score(self._rehearsed(plan, rows))
        except Exception as error:  # its message can contain a cell
            rejected = f"a {type(error).__name__}; fit and score a model on them alone to see the cause"
        if not rejected and not math.isfinite(score):
            rejected = f"the score is {score}; use rows of every class"
        if rejected:
            raise ValueError(f"`X_test` and `y_test` must be valid for a fit and the scorer: {rejected}.")

    def _rehearsed(self, plan: FitPlan, rows: PartRows) -> Any:
        """A model that is fitted to public rows instead; nothing is charged."""
        X, y = self._test
        n = table_shape(X)[0]
        pipeline = plan.pipeline._copied()
        for _, step in private_steps(pipeline.steps):
            step.estimator.set_params(adjacency=AddRemove(plan.n))  # lots were planned for the private rows
        weights = None if rows.weights is None else _weights_to_fit(np.ones(n))
        public = PartRows(X, y, weights, None if rows.units is None else Units(np.arange(n), n))
        return seen_by_the_user(plan._replace(pipeline=pipeline).run(1.0, None, public))

    def _fit_all(self, fit: WholeFit, plans: list[FitPlan], rows: PartRows) -> list[list[Any]]:
        """Fit at each budget, each time with independent noise. Warnings are issued once, before the fits."""
        repeats, given = range(self.n_repeats), (rows, fit.accountant)
        with silence():
            return [[plan.model(1.0, fit.seed(i, j), *given) for j in repeats] for i, plan in enumerate(plans)]

    def score(self, model: Any) -> float:
        """The score of a model on the public rows."""
        return float(self._scorer(model, *self._test, **self._of_scores))


def _weights_to_fit(weights: Any) -> PartWeights | None:
    return None if weights is None else PartWeights(weights, weights)


def report_baseline(baseline: Any) -> None:
    """Report that a non-private estimator reads all rows without accounting, and reject a private one."""
    if any(is_private(part) for part in (baseline, *baseline.get_params().values())):
        raise ValueError("`baseline` must be non-private, because the total does not include its fit.")
    report_leak(
        f"baseline={type(baseline).__name__} reads all rows and labels without noise. Its score is not covered by the "
        "privacy guarantee. Remove `baseline` from plots that you publish."
    )


def score_baseline(baseline: Any, score_of: Callable[[Any], float], rows: tuple[Any, Any], weights: Any) -> float:
    """The score of a non-private estimator; the last step of a pipeline uses the weights."""
    rejected, score = "", math.nan
    name = f"{baseline.steps[-1][0]}__sample_weight" if isinstance(baseline, Pipeline) else "sample_weight"
    try:
        score = score_of(clone(baseline).fit(*rows, **({} if weights is None else {name: weights})))
    except Exception as error:  # its message can contain a cell
        rejected = type(error).__name__
    if rejected:
        raise ValueError(f"baseline={type(baseline).__name__} raises {rejected}. Fit it alone to see the cause.")
    return score


@dataclass(kw_only=True, eq=False, repr=False)
class PrivacyUtilityDisplay:
    """Score of a private model against its privacy budget, with one point per epsilon.

    It is recommended to use `from_estimator` to fit and draw, or `from_scores` to draw existing scores. All parameters
    are stored as attributes.

    Parameters
    ----------
    epsilons : array-like of shape (n_epsilons,)
        Privacy budget of one fit, in nats.
    scores : array-like of shape (n_epsilons,) or (n_epsilons, n_repeats)
        Score of each fit. The line shows the means, the band plus and minus one standard deviation.
    baseline_score : float or array-like of shape (n_baselines,), default=None
        Score without privacy. For several scores, the mean and a band are drawn.
    score_name : str, default="score"
        Label of the y axis.
    model_name : str, default="private"
        Name of the private model in the legend.
    baseline_name : str, default="not private"
        Name of the baseline in the legend.
    note : str, default=""
        Note below the axes, such as the privacy cost of all fits together.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes with the line.
    figure_ : matplotlib.figure.Figure
        Figure of the axes.
    line_ : matplotlib.lines.Line2D
        Line of the mean scores.
    band_ : matplotlib.collections.PolyCollection or None
        Band of one standard deviation; None without repeats.
    baseline_line_ : matplotlib.lines.Line2D or None
        Line of the baseline; None without one.
    note_ : matplotlib.text.Annotation or None
        Note below the axes; None if it is empty.
    epsilon_total_ : float
        Epsilon of all fits of `from_estimator` under composition, at `delta_`. Defined by `from_estimator` only.
    delta_ : float
        Delta at which `epsilon_total_` is computed. Defined by `from_estimator` only.
    adjacency_ : str
        Neighboring relation for which `epsilon_total_` holds. Defined by `from_estimator` only.
    privacy_event_ : DpEvent
        Event of all fits, from which `epsilon_total_` is computed. Defined by `from_estimator` only.
    estimators_ : list of list of estimator
        Fitted models by epsilon and repeat; `epsilon_total_` includes them. Defined by `from_estimator` only.

    See Also
    --------
    BudgetDisplay : Charges of an accountant.
    """

    epsilons: ArrayLike
    scores: ArrayLike
    baseline_score: ArrayLike | None = None
    score_name: str = "score"
    model_name: str = "private"
    baseline_name: str = "not private"
    note: str = ""

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, X_test: Any, y_test: Any, *,
        epsilons: Sequence[float] = (0.1, 0.3, 1.0, 3.0, 10.0), n_repeats: int = 3, baseline: Any = None,
        scoring: Any = None, score_name: str | None = None, test_is_public: bool = False, sample_weight: Any = None,
        sample_weight_test: Any = None, groups: Any = None, random_state: Any = None, ax: Any = None, **kwargs: Any,
    ) -> PrivacyUtilityDisplay:  # fmt: skip
        """Fit a private model at several budgets, score it on public rows, and plot the scores.

        Every fit has its own privacy cost, including repeats. All fits are planned before a row is read and are charged
        together, as `epsilon_total_`, which is stated below the plot. If the question is only how the score depends on
        epsilon, use simulated or public rows.

        Parameters
        ----------
        estimator : private estimator or PrivatePipeline
            Model to fit. It is not changed. Its `epsilon`, `noise_multiplier` and `random_state` are ignored; its
            `delta` is that of each fit, and its accountant is charged.
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Private rows.
        y : array-like of shape (n_samples,)
            Private labels.
        X_test : {array-like, sparse matrix, dataframe} of shape (n_test, n_features)
            Public rows, which must not be in `X`. The column of `groups` is removed if present.
        y_test : array-like of shape (n_test,)
            Public labels.
        epsilons : sequence of float, default=(0.1, 0.3, 1.0, 3.0, 10.0)
            Budgets of one fit.
        n_repeats : int, default=3
            Number of fits at each budget, with independent noise on the same rows. The band shows their standard
            deviation, which is due to the noise alone.
        baseline : estimator, default=None
            Non-private estimator, fitted once to `X` and `y`. The guarantee does not cover it, and a warning is issued.
        scoring : str, callable or None, default=None
            Score, as for ``sklearn.metrics.check_scoring``. None is the score of the estimator: accuracy or R².
        score_name : str or None, default=None
            Label of the y axis; by default the name of the score.
        test_is_public : bool, default=False
            Declares that `X_test` is public. The scores are exact and unaccounted, so a `PrivacyLeakWarning` is issued
            without this declaration.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Private weights of the rows of `X`, for every fit and the baseline. The `weight_bound` of the estimator
            bounds them.
        sample_weight_test : array-like of shape (n_test,) or None, default=None
            Public weights of the test rows, for the score.
        groups : array-like of shape (n_samples,), str or None, default=None
            Private group identifier of each row of `X`, such as a person or a household, or the name of a column, which
            is then not a feature. If set, the guarantee of all fits together is for all rows of one group, otherwise
            for one row.
        random_state : int, RandomState or Generator instance or None, default=None
            Source of the noise. None draws fresh secret keys from the operating system. Any other value makes the plot
            reproducible and issues a `PrivacyLeakWarning`.
        ax : matplotlib axes, optional
            Axes to plot on. If None, a new figure is created.
        **kwargs : dict
            Keyword arguments of `plot`.

        Returns
        -------
        display : PrivacyUtilityDisplay
            The display with its plot, the fitted models and their total privacy cost.

        Raises
        ------
        ValueError
            A parameter, the rows or the labels are invalid. No budget was consumed.
        BudgetExceededError
            The budget of the accountant does not permit all fits. No budget was consumed, and no row was read.

        Warns
        -----
        PrivacyLeakWarning
            `test_is_public` is False, or `baseline` or `random_state` is set. Raised as an error, before any charge,
            under ``skdp.config_context(on_leak="raise")``.

        Notes
        -----
        **Guarantees.**

        - All models and scores together are (`epsilon_total_`, `delta_`)-differentially private for one row of `X` and
          `y`, if `baseline` and `random_state` are None and `classes` of the estimator is set. `privacy_event_`
          composes every fit, including repeats.
        - With `groups`, all of this holds for all rows of one group.
        - The remaining budget is checked before a row is read. The accountant is charged once, for all fits, before
          training reads the rows.
        - Parameters, rows, test rows and scorer are checked before the charge; the scorer is tried on a model that is
          fitted to the test rows.
        """
        display = cls(epsilons=_check_epsilons(epsilons), scores=np.empty(0))
        display._check_drawing(ax, kwargs)
        return display._measure(
            estimator, (X, y), (X_test, y_test),
            n_repeats=check_count("n_repeats", n_repeats, constraint="a positive integer"),
            baseline=baseline, scoring=scoring, score_name=score_name, test_is_public=test_is_public,
            random_state=random_state, sample_weight=sample_weight, sample_weight_test=sample_weight_test,
            groups=groups,
        ).plot(ax=ax, **kwargs)  # fmt: skip

    @classmethod
    def from_scores(
        cls, epsilons: ArrayLike, scores: ArrayLike, *, baseline_score: ArrayLike | None = None,
        score_name: str = "score", model_name: str = "private", baseline_name: str = "not private", note: str = "",
        ax: Any = None, **kwargs: Any,
    ) -> PrivacyUtilityDisplay:  # fmt: skip
        """Plot existing scores. Nothing is fitted or charged.

        Parameters
        ----------
        epsilons : array-like of shape (n_epsilons,)
            Privacy budget of one fit, in nats.
        scores : array-like of shape (n_epsilons,) or (n_epsilons, n_repeats)
            Score of each fit.
        baseline_score : float or array-like of shape (n_baselines,), default=None
            Score without privacy.
        score_name : str, default="score"
            Label of the y axis.
        model_name : str, default="private"
            Name of the private model in the legend.
        baseline_name : str, default="not private"
            Name of the baseline in the legend.
        note : str, default=""
            Note below the axes.
        ax : matplotlib axes, optional
            Axes to plot on. If None, a new figure is created.
        **kwargs : dict
            Keyword arguments of `plot`.

        Returns
        -------
        display : PrivacyUtilityDisplay
            The display with its plot.
        """
        budgets, table = np.asarray(epsilons, float), np.asarray(scores, float)
        if table.ndim not in (1, 2) or budgets.ndim != 1 or len(table) != len(budgets):
            raise ValueError(f"`scores` must have one row per epsilon, got shapes {table.shape} and {budgets.shape}.")
        named = {"score_name": score_name, "model_name": model_name, "baseline_name": baseline_name, "note": note}
        return cls(epsilons=epsilons, scores=scores, baseline_score=baseline_score, **named).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Plot the line of scores, its band and the baseline.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to plot on. If None, a new figure is created.
        **kwargs : dict
            Keyword arguments of `matplotlib.axes.Axes.plot` for the line.

        Returns
        -------
        display : PrivacyUtilityDisplay
            The display itself, with `ax_`, `figure_`, `line_`, `band_`, `baseline_line_` and `note_`.
        """
        ax = _axes.axes_for(self, ax)
        epsilons, scores = np.asarray(self.epsilons, float), np.asarray(self.scores, float)
        scores = scores[:, None] if scores.ndim == 1 else scores
        mean = scores.mean(axis=1)
        label = _axes.in_a_line(self.model_name)
        self.band_ = None
        if scores.shape[1] > 1:
            spread = scores.std(axis=1, ddof=1)
            color = kwargs.get("color", _axes.BLUE)
            self.band_ = ax.fill_between(epsilons, mean - spread, mean + spread, color=color, alpha=0.2, linewidth=0)
            label += f", mean ± standard deviation of {scores.shape[1]} fits"
        (self.line_,) = ax.plot(epsilons, mean, **{"color": _axes.BLUE, "marker": "o", "label": label, **kwargs})
        self.baseline_line_ = self._draw_baseline(ax)
        _axes.log_axis_of_epsilon(ax, epsilons.tolist())
        # At least a twentieth of the largest score; otherwise noise would look like a loss.
        _axes.keep_small_differences_small(ax, 0.05 * float(np.nanmax(np.abs(mean))))
        ax.set_ylabel(self.score_name, **_axes.AS_IT_IS)
        _axes.clear_frame(ax)
        named = [(self.line_, label), (self.baseline_line_, _axes.in_a_line(self.baseline_name))]
        _axes.draw_legend(ax, named[: 1 + (self.baseline_line_ is not None)], loc="best", fontsize="small")
        self.note_ = _axes.finish(self, ax, self.note, 114)
        return self

    def _draw_baseline(self, ax: Any) -> Any:
        if self.baseline_score is None:
            return None
        found = np.atleast_1d(np.asarray(self.baseline_score, float))
        mean, label = found.mean(), _axes.in_a_line(self.baseline_name)
        if len(found) > 1:
            spread = found.std(ddof=1)
            ax.axhspan(mean - spread, mean + spread, color=_axes.VERMILION, alpha=0.15, linewidth=0)
        return ax.axhline(mean, color=_axes.VERMILION, linestyle="--", label=label)

    # --- steps of `from_estimator` before drawing ---

    def _check_drawing(self, ax: Any, kwargs: dict[str, Any]) -> None:
        """Reject invalid axes or options before the charge."""
        _axes.require_matplotlib(self)
        if ax is not None and not hasattr(ax, "fill_between"):
            raise TypeError(f"`ax` must be axes of matplotlib or None, got {type(ax).__name__}.")
        from matplotlib.lines import Line2D

        Line2D([], [], **kwargs)

    def _measure(
        self, estimator: Any, rows: tuple[Any, Any], test: tuple[Any, Any], *, n_repeats: int, baseline: Any,
        scoring: Any, score_name: str | None, test_is_public: bool, **given: Any,
    ) -> Self:  # fmt: skip
        """Fit, score and store the privacy cost. All validation is before the charge."""

        if isinstance(estimator, Pipeline) and not isinstance(estimator, PrivatePipeline):
            raise ValueError("`estimator` must be a pipeline with a privacy budget. Use skdp.allocate_budget.")
        if scoring is not None and not isinstance(scoring, str) and not callable(scoring):
            raise ValueError(
                f"`scoring` must be a name of a scikit-learn scorer, a function or None, got {show(scoring)}."
            )
        scorer = check_scoring(estimator, scoring)
        if not test_is_public:
            report_leak(
                "test_is_public=False: the scores on X_test and y_test are exact, and the privacy guarantee does not "
                "cover them. Use public test rows and set test_is_public=True."
            )
        if baseline is not None:
            report_baseline(baseline)
        # All fits, under one charge.
        epsilons: Any = self.epsilons
        study = Study(estimator, epsilons, n_repeats, rows, test, scorer=scorer, baseline=baseline, **given)
        study.fit()
        if baseline is not None:
            self.baseline_score, self.baseline_name = study.baseline_score_, f"not private ({_model_name(baseline)})"
        # Their scores on public rows, and the privacy cost of all fits.
        self.estimators_ = study.models_
        self.scores = np.array([[study.score(model) for model in models] for models in self.estimators_])
        self.model_name = f"private ({_model_name(estimator)})"
        self.score_name = _name_of(scoring, estimator) if score_name is None else score_name
        self.privacy_event_, self.epsilon_total_, self.delta_ = study.privacy_cost_
        self.adjacency_ = study.adjacency_
        total = to_digits(self.epsilon_total_, 3, up=True)
        self.note = f"All {self.scores.size} private fits together have epsilon {total} at delta {self.delta_:g}."
        if baseline is not None:
            self.note += " The baseline is not private and not included."
        return self


def _check_epsilons(epsilons: Any) -> list[float]:
    """The budgets in increasing order, each once."""
    constraint = "numbers above 0, such as (0.1, 1.0, 10.0)"
    listed = [epsilons] if isinstance(epsilons, str) or not hasattr(epsilons, "__iter__") else list(epsilons)
    found = sorted({check_real("epsilons", epsilon, above=0, constraint=constraint) for epsilon in listed})
    if not found:
        raise ValueError("`epsilons` must contain at least one number above 0, such as (0.1, 1.0, 10.0).")
    return found


def _model_name(estimator: Any) -> str:
    """The class of an estimator, or of the last step of a pipeline."""
    return type(last_step(estimator)).__name__


def _name_of(scoring: Any, estimator: Any) -> str:
    """The name of the score as text, with the test data."""
    if scoring is None:
        from sklearn.base import is_classifier

        name = "accuracy" if is_classifier(estimator) else "score"
    else:
        name = scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "score")
    names = {"roc_auc": "ROC AUC", "neg_log_loss": "negative log loss", "r2": "R²"}
    return f"{names.get(name, name.replace('_', ' '))} on public rows"
