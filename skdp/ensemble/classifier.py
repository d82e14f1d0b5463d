"""Differentially private random trees classifier."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from skdp._dpsgd.solver import fit_run
from skdp._dpsgd.targets import GradientClassifier
from skdp.base.estimator import with_parameters
from skdp.ensemble.leaf_model import RandomTreesModel


@with_parameters
class DPRandomTreesClassifier(RandomTreesModel, GradientClassifier):
    """Differentially private random trees classifier.

    The splits of the trees depend on a public seed and on noisy marginal counts, which have 3% of the budget. A private
    logistic regression on the leaves and the plain columns uses the rest. The trees add interactions to the linear
    model.

    `X` is a raw table of numbers, strings, dates and missing values. Often, only `schema`, `classes` and `epsilon` have
    to be set.

    Parameters
    ----------
    n_estimators : int, default=300
        Number of trees.
    max_depth : int, default=8
        Maximum depth of a tree.
    max_leaf_nodes : int, default=16
        Maximum number of leaves of a tree. The largest node is split next.
    schema : TableSchema, mapping or None, default=None
        Public bounds or categories of all columns: a `skdp.preprocessing.TableSchema`, or a mapping. If None, `bounds`
        and `categories` are used, or the schema of ``DPTableVectorizer(numbers="codes")``.
    bounds : (float, float), list of (float, float) or None, or None, default=None
        Public bounds of all columns, or of each; None for a column with `categories`.
    categories : list of (list or None) or None, default=None
        Public categories of each column; None for numeric columns.
    n_bins : int, default=16
        Number of equal-width bins of a number or date. If its schema has more, a second block splits each bin into
        four.
    trees_random_state : int, default=0
        Public seed of the trees. Choosing it by a score on private rows consumes budget.
    epsilon : float, Risk or None, default=1.0
        Privacy budget of one ``fit``: a number, or a `skdp.Risk`. Must be None if `noise_multiplier` is set.
    delta : float or "auto", default="auto"
        The delta of the (epsilon, delta) guarantee; it must be well below 1/n, where n is the public number of rows.
        "auto" uses the delta of the accountant if it has one. Otherwise it is 1e-5 for at most 10,000 rows and 1/(10n),
        rounded down to a power of ten, for more.
    noise_multiplier : float or None, default=None
        Standard deviation of the noise of one step, divided by the clipping norm. If None, it is calibrated to
        `epsilon`.
    max_grad_norm : float or "auto", default="auto"
        Euclidean norm to which the gradient of each row is clipped. "auto" is 1/2 for binary and 1 for multiclass
        problems.
    lot_size : float or None, default=None
        Expected number of rows in one step. Each row is drawn independently (Poisson sampling). By default, all rows
        are used if affordable.
    sampling_rate : float or None, default=None
        `lot_size` as a fraction of the number of rows, in (0, 1]. Set at most one of the two.
    max_iter : int or None, default=None
        Number of epochs. None makes 100 steps.
    learning_rate : float or "auto", default="auto"
        Step size. "auto" computes it from public quantities.
    momentum : float, default=0.9
        Momentum in [0, 1), with dampening: ``v = momentum * v + (1 - momentum) * gradient``.
    average : bool, default=True
        Whether to average the iterates of the second half of the steps.
    alpha : float, default=0.0
        Strength of the L2 penalty ``alpha / 2 * ||coef_||**2``, which is added to the mean loss.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    weight_bound : float or None, default=None
        Public upper bound of `sample_weight`. Weights are clipped to it and divided by it. Choose the largest weight
        that can occur, or a value that few weights exceed: the effect of the noise grows with the bound divided by the
        mean weight. None is 1.
    adjacency : {"zero_out", "replace_one"}, AddRemove or None, default=None
        Neighboring relation: how two neighboring tables differ in one row, or in all rows of one group:

        - "zero_out": it is zeroed out and adds nothing to any sum.
        - "replace_one": it is replaced by another one.
        - ``skdp.AddRemove(n_public=10_000)``: it is added or removed; every rule uses the public number `n_public`.

        None uses that of `accountant`, otherwise "zero_out".
    accountant : PrivacyAccountant, str, path-like or None, default=None
        Accountant that records the privacy cost of each fit, before anything is learned from the rows, and rejects a
        fit that exceeds its budget. A path refers to an existing budget file (see ``python -m skdp.accounting create``)
        and is made absolute.
    checkpoint : str, path-like or None, default=None
        File from which an interrupted ``fit`` resumes, as in `skdp.DPLogisticRegression`.
    warm_start : bool, default=False
        If True, ``fit`` starts from the current coefficients, and `epsilon_` covers all calls.
    merge_equal_rows : {"auto", True, False}, default="auto"
        Whether equal rows, with equal targets and weights, are found once and then computed once a step, which is
        faster. "auto" does so for large lots of mostly repeated rows. The run time then depends on them
        (``docs/limitations.md``).
    n_jobs : int or None, default=None
        Number of threads, as in scikit-learn. The result does not depend on it.
    random_state : int, RandomState or Generator instance or None, default=None
        Source of sampling and noise. None draws a fresh secret key from the operating system. Any other value makes the
        fit reproducible and issues a `PrivacyLeakWarning`, because the guarantee does not hold against anyone who knows
        the value.
    verbose : int, default=0
        If 1, show a progress bar with the current epsilon.
    classes : sequence or None, default=None
        All classes that can occur in `y`. If None, they are read from `y`; this is not covered by the guarantee, and a
        `PrivacyLeakWarning` is issued.
    class_weight : dict of class to float, or None, default=None
        Public weights of the classes; a class that is not named has weight 1. Only their ratios matter. "balanced"
        would read the labels and is rejected: pass ``1 / prevalence`` with public prevalences.

    Attributes
    ----------
    embedding_ : PublicTreesEmbedding
        The fitted trees.
    coef_ : ndarray of shape (1, n_columns) or (n_classes, n_columns)
        Contribution of each bin, category and leaf to the score, with sum zero over each column and tree.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts, zero if ``fit_intercept=False``.
    coef_noise_ : ndarray of the shape of `coef_`
        Standard deviation of each coefficient due to the noise, from public quantities.
    feature_importances_ : ndarray of shape (`n_features_in_`,)
        Importance of each column of the table, from coefficients and public quantities.
    classes_ : ndarray of shape (n_classes,)
        Class labels known to the classifier.
    weight_bound_ : float
        Bound to which weights were clipped.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of columns seen during ``fit``, if all are strings.
    epsilon_ : float
        Privacy cost (epsilon at `delta_`) of all runs since the last fit from scratch.
    delta_ : float
        Delta at which `epsilon_` is computed.
    adjacency_ : str
        Neighboring relation for which `epsilon_` holds.
    privacy_unit_ : {"row", "group"}
        Privacy unit of the guarantee.
    privacy_event_ : DpEvent
        Privacy event from which `epsilon_` is computed.
    noise_multiplier_ : float
        Noise multiplier of the last run, as in `skdp.DPLogisticRegression`.
    sampling_rate_ : float
        Sampling rate of the last run.
    max_grad_norm_ : float
        Clipping norm of the last run.
    data_norm_ : float
        Norm of every row, 1.0.
    learning_rate_ : float
        Step size of the last run.
    n_iter_ : int
        Number of epochs over all runs.
    n_steps_ : int
        Number of steps over all runs.

    See Also
    --------
    PublicTreesEmbedding : Random trees as a transformer.
    DPRandomTreesRegressor : Regression with the same trees.
    skdp.DPLogisticRegression : Linear model for numeric columns.
    skdp.tabular_pipeline : Pipeline that estimates an incomplete schema privately.

    Notes
    -----
    **Trees.** Trees are grown from noisy counts of each column's cells: the node with the largest expected count is
    split next, and half of the thresholds follow these counts. All rows have the norm 1. Later runs keep the trees.

    **Guarantees.**

    - ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `classes` is set and
      `random_state` is None.
    - One row changes the sum of gradients of a step by at most `max_grad_norm_`. The noisy sum is divided by a public
      constant, the expected number of rows.
    - With `groups`, the guarantee holds for all rows of one group together: sums over a group are clipped to the
      contribution of one row.
    - Noisy class counts, released before the first step, set the starting point. Noisy sums, released after the last
      step, correct `intercept_`. Each has 1% of mu squared of a fit to all rows (2% for the sums without counts) and is
      part of `privacy_event_`.
    - The accountant is charged before the rows are read. An interrupted fit stays charged.
    - Errors for invalid input are raised before the charge. They depend on the data and are not covered.
    - `embedding_` depends on public quantities and on the noisy counts, which have 3% of mu squared of a fit to all
      rows and are part of `privacy_event_`.
    - `feature_importances_` are post-processing.

    Run times and the rounding of sums of more than 2^20 rows are not covered (``docs/limitations.md``).

    References
    ----------

    Geurts, Ernst & Wehenkel (2006), "Extremely randomized trees".

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.ensemble import DPRandomTreesClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, (20_000, 2))
    >>> y = (X[:, 0] * X[:, 1] > 0).astype(int)
    >>> model = DPRandomTreesClassifier(100, bounds=(-1, 1), classes=[0, 1], epsilon=1.0).fit(X, y)
    >>> model.score(X, y)
    0.9...
    """

    _: KW_ONLY
    classes: Any = None
    class_weight: Any = None

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: Any = None) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Private rows.
        y : array-like of shape (n_samples,)
            Private labels.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Private, nonnegative weights. They are clipped to `weight_bound` and divided by it. The result, a number in
            [0, 1], multiplies the clipped gradient of the row, so no weight raises the sensitivity. A row of weight 0
            has no effect.

        groups : array-like of shape (n_samples,), str or None, default=None
            Private group identifier of each row, such as a person or household, or the name of a column of `X`, which
            is then not used as a feature. With `groups`, the guarantee holds for all rows of one group together,
            otherwise for one row.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            A parameter or the input is invalid. No budget is consumed.
        BudgetExceededError
            The fit exceeds the budget of the accountant. No budget is consumed.
        """
        return fit_run(self, X, y, sample_weight, groups, warm=bool(self.warm_start) and self._has_run())

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Predict confidence scores for samples.

        The score of a sample is the log-odds of ``classes_[1]`` for binary problems, and there is one score per class
        for multiclass problems.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Confidence scores.
        """
        scores = self._score_rows(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores
