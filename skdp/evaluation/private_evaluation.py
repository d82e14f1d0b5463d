"""`evaluate`: how good a model is on private rows, privately."""

from __future__ import annotations

import html
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from skdp.evaluation.binary_figures import BinaryFigures, SubgroupFigures
from skdp.evaluation.counted import CountedEvaluation
from skdp.evaluation.replicates import Replicates
from skdp.report.reported import price_caption

OTHER = "other"
"""The subgroup of rows whose category is not listed."""


class PrivateEvaluation(CountedEvaluation, BinaryFigures):
    """Figures of a model of two classes on private rows, all from one noisy table of counts. Made by `evaluate`.

    Attributes
    ----------
    epsilon_, delta_ : float
        Price of all figures together.
    privacy_event_ : DpEvent
        What was released.
    privacy_unit_ : {"row", "group"}
        What the price is for.
    classes_ : ndarray of shape (2,)
        Classes, that of the scores last.
    noisy_counts_ : ndarray of shape (n_subgroups, 2, n_bins_)
        Released counts, in rows or units, as they were drawn: some may be negative.
    noise_deviation_ : float
        Standard deviation of the noise of a count, in the same unit.
    n_bins_ : int
        Number of bins of the score.

    See Also
    --------
    evaluate : Make one.
    """

    @property
    def subgroups(self) -> dict[str, BinaryFigures]:
        """Figures of each of `categories`, and of all other rows, by name; empty without `categories`."""
        names = [*self.categories_, OTHER] if self.categories_ else []
        parts = (self._fitted_replicates.map(partial(np.take, indices=k, axis=1)) for k in range(len(names)))
        return {name: SubgroupFigures(part, self._level) for name, part in zip(names, parts, strict=True)}

    @property
    def _replicates(self) -> Replicates:
        return self._fitted_replicates.map(lambda tables: tables.sum(axis=1))

    @property
    def _level(self) -> float:
        return float(self.level)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        if "_fitted_replicates" not in self.__dict__:
            return super().__repr__(N_CHAR_MAX)
        return f"{type(self).__name__}, epsilon={self.epsilon_:.6g}, {self._level:.0%} intervals\n{self}"

    @property
    def _repr_html_(self) -> Callable[[], str]:
        def draw() -> str:
            if "_fitted_replicates" not in self.__dict__:
                return f"<pre>{html.escape(repr(self))}</pre>"
            return price_caption(self) + self._figures_as_html()

        return draw


def evaluate(
    model: Any,
    X: Any,
    y: Any,
    *,
    epsilon: float,
    delta: float | str = 0,
    groups: Any = None,
    sample_weight: Any = None,
    weight_bound: float | None = None,
    by: Any = None,
    categories: Any = None,
    classes: Any = None,
    noise: str = "laplace",
    n_bins: int | str = "auto",
    level: float = 0.95,
    adjacency: str = "zero_out",
    n_samples_public: int | None = None,
    n_groups_public: int | None = None,
    accountant: Any = None,
    random_state: Any = None,
) -> PrivateEvaluation:
    """Evaluate a model of two classes on private rows.

    One table is released: how many rows of either class have a score in each of some bins, with noise. ROC curve and
    AUROC, precision and recall, accuracy and confusion matrix at any threshold, calibration, Brier score, log loss,
    lift, and the best threshold for a cost follow from it, each with an interval for noise and sampling, and no figure
    costs anything more.

    Parameters
    ----------
    model : estimator or None
        Fitted classifier of two classes, of any library, with ``predict_proba``, or ``decision_function``, whose
        logistic function is the score then. It was not fitted to these rows, and scores each row for itself. None: `X`
        holds the scores.
    X : table of shape (n_samples, n_features), or array-like of shape (n_samples,) if `model` is None
        Private rows; or private scores, probabilities of the second class. Scores are cut to [0, 1]; NaN counts as 0,
        and so does a row that the model refuses.
    y : array-like of shape (n_samples,)
        Private labels.
    epsilon : float
        Privacy budget of all figures together, in nats.
    delta : float or "auto", default=0
        Probability with which the guarantee may fail: 0 with Laplace noise. See `skdp.DPLogisticRegression` for "auto".
    groups : array-like of shape (n_samples,), str or None, default=None
        Private label of the unit of each row, such as a person or a household, or the name of a column of `X`, which
        is no feature then. The guarantee is then for all rows of one label together, else for one row, and each unit
        counts once: its rows share a weight of 1.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Private weights of the rows.
    weight_bound : float or None, default=None
        Public number by which weights are divided, and at which they are cut. None is 1.
    by : array-like of shape (n_samples,), str or None, default=None
        Private subgroup of each row, or the name of a column of `X`. All subgroups are in the one table.
    categories : list or None, default=None
        Public list of the subgroups. Rows of others are in "other".
    classes : array-like of shape (2,) or None, default=None
        Public classes. None takes those of the model, or 0 and 1.
    noise : {"laplace", "gaussian"}, default="laplace"
        Discrete Laplace noise, which has the smaller deviation for a table in which a row is counted once; or normal
        noise, which needs a `delta`, and leaves a ledger all-Gaussian.
    n_bins : int or "auto", default="auto"
        Number of bins of the score. "auto" takes a power of two near the root of n times epsilon, from 8 to 256.
    level : float, default=0.95
        Probability with which an interval covers the figure of the population.
    adjacency : {"zero_out", "add_remove", "replace_one"}, default="zero_out"
        How neighbouring tables differ: one row, or unit, is replaced by a null one, which is counted nowhere; is added
        or removed; or is replaced by another.
    n_samples_public, n_groups_public : int or None, default=None
        Public number of rows, or of units, used in place of the real one. Required if ``adjacency="add_remove"``.
    accountant : PrivacyAccountant, str, path-like or None, default=None
        Ledger to which the release is charged. These rows are another data set than those that the model was fitted
        to, and have a ledger of their own, unless they are charged as one.
    random_state : int, RandomState or Generator instance or None, default=None
        Source of the noise. None draws a fresh secret key from the operating system. Any other value makes the result
        reproducible and issues a `PrivacyLeakWarning`.

    Returns
    -------
    PrivateEvaluation
        Figures with intervals.

    Raises
    ------
    ValueError
        A parameter, label or weight is invalid. Nothing was charged.
    BudgetExceededError
        The ceiling of the accountant does not admit the release. Nothing was charged.

    Notes
    -----
    Intervals come from a parametric bootstrap: tables are drawn from the noisy one, noise and all. They are for the
    population that the rows are an independent sample of. A rare class of which the noise leaves nothing has an
    interval that is wide.

    Examples
    --------
    >>> import numpy as np
    >>> import skdp
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=10_000)
    >>> labels = rng.uniform(size=10_000) < scores
    >>> evaluation = skdp.evaluate(None, scores, labels, epsilon=0.5)
    >>> round(evaluation.roc_auc.value, 1), evaluation.epsilon_
    (0.8, 0.5)
    """
    evaluation = PrivateEvaluation(
        model,
        epsilon=epsilon,
        delta=delta,
        noise=noise,
        classes=classes,
        categories=categories,
        n_bins=n_bins,
        weight_bound=weight_bound,
        level=level,
        adjacency=adjacency,
        n_samples_public=n_samples_public,
        n_groups_public=n_groups_public,
        accountant=accountant,
        random_state=random_state,
    )
    return evaluation.fit(X, y, groups=groups, sample_weight=sample_weight, by=by)


__all__ = ["OTHER", "PrivateEvaluation", "evaluate"]
