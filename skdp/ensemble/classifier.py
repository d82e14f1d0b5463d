"""Private classifier of random trees."""

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
    """Differentially private classifier over the leaves of random trees.

    The trees are totally random. They grow best-first where people are, by one noisy count of the cells of each column,
    which has 3 % of the budget, and by a public seed (`PublicTreesEmbedding`). A private logistic regression over their
    leaves and over the plain columns has the rest. The trees give it interactions of columns, which a linear model of
    the columns alone cannot have. There is neither bagging nor a private search for splits: the private part is one
    linear model.

    Rows are those of a raw table: numbers, words, dates and gaps. The defaults depend on public quantities only, so
    `schema`, `classes` and `epsilon` are often all that has to be set.

    Parameters
    ----------
    n_estimators : int, default=300
        Number of trees.
    max_depth : int, default=8
        Largest depth of a tree.
    max_leaf_nodes : int, default=16
        Largest number of leaves of a tree, which grows best-first: the node in which most people are expected is split
        next.
    schema : TableSchema, mapping or None, default=None
        What is public of each column; a mapping is what `skdp.preprocessing.TableSchema` takes. It has to be complete:
        bounds of all numbers and dates, categories of all else. If None, `bounds` and `categories` say it; and if they
        are None too, the schema that the rows carry, as those of ``DPTableVectorizer(numbers="codes")`` do.
    bounds : (float, float), list of (float, float) or None, or None, default=None
        Public bounds of all columns, or of each. None is for a column with `categories`.
    categories : list of (list or None) or None, default=None
        Public categories of each column. None is for a column of numbers.
    n_bins : int, default=16
        Number of bins of a plain column of numbers or dates, of equal width between public bounds. One whose schema has
        more bins than that has a second block, in which each bin is cut into four.
    trees_random_state : int, default=0
        Seed of the trees, which is public: a whole number from 0 on. It has nothing to do with the noise, and neither
        seed is derived from the other. To choose among seeds by a score on private rows is a search, and is paid for.
    epsilon : float, Risk or None, default=1.0
        Privacy budget of one ``fit``, to which the noise is calibrated. A number, or a bound on the risk of membership
        inference such as ``skdp.Risk(advantage=0.1)`` (``docs/membership_inference.md``). Must be None if
        `noise_multiplier` is given.
    delta : float or "auto", default="auto"
        The delta of the (epsilon, delta) guarantee; it must be well below 1/n, where n is the public number of rows.
        "auto" uses the delta of the accountant if it has one. Otherwise it is 1e-5 for at most 10,000 rows and 1/(10n),
        rounded down to a power of ten, for more. Later instalments (`warm_start`, ``partial_fit``) keep the first.
    noise_multiplier : float or None, default=None
        Standard deviation of the noise of one step, divided by the clipping norm. If None, it is calibrated to
        `epsilon`.
    max_grad_norm : float or "auto", default="auto"
        Euclidean norm C to which the gradient of each row is clipped. Rows have norm 1, the entry of the intercept
        included, so gradients have norm at most 1 (sqrt(2) with more than two classes). With two classes a row is
        shortened by the factor that the longer of its gradients with either label needs, so that the clip is a weight
        of the row that no label changes, and moves no probability. If "auto", C is 1/2, with more classes 1.
    lot_size : float or None, default=None
        Expected number of rows in one step. Each row is drawn independently (Poisson sampling). This is a privacy
        parameter. If `lot_size` and `sampling_rate` are both None, all rows are used where that is affordable.
    sampling_rate : float or None, default=None
        `lot_size` as a fraction of the number of rows, in (0, 1]. Set at most one of the two.
    max_iter : int or None, default=None
        Number of epochs. If None, the run makes 100 steps.
    learning_rate : float or "auto", default="auto"
        Step size for rows of norm 1 and the mean gradient. If "auto", it is chosen from public quantities.
    momentum : float, default=0.9
        Momentum in [0, 1), with dampening: ``v = momentum * v + (1 - momentum) * gradient``.
    average : bool, default=True
        Whether to average the iterates of the second half of the steps. Averaging is post-processing and costs no
        privacy.
    alpha : float, default=0.0
        Strength of the L2 penalty ``alpha / 2 * ||coef_||**2``, which is added to the mean loss.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    weight_bound : float or None, default=None
        Public upper bound of `sample_weight`. Weights are clipped to it and divided by it. Choose the largest weight
        that can occur, or a value that few weights exceed: the effect of the noise grows with the bound divided by the
        mean weight. None is a bound of 1, and a fit with weights then warns that larger weights are clipped to it.
    adjacency : {"zero_out", "replace_one"}, AddRemove or None, default=None
        Neighboring relation: how two neighboring tables differ in one row, or in all rows of one group:

        - "zero_out": it is replaced by a zeroed-out record, which adds nothing to any sum. The number of rows is
          public.
        - "replace_one": it is replaced by another one. The number of rows is public.
        - ``skdp.AddRemove(n_public=10_000)``: it is added or removed. The number of rows is private, and every rule
          uses `n_public`, a public number near it.

        None uses the relation of `accountant`, otherwise "zero_out".
    accountant : PrivacyAccountant, str, path-like or None, default=None
        Accountant that records the privacy cost of each fit, before anything is learned from the rows, and rejects a
        fit that exceeds its budget. A path refers to an existing budget file (see ``python -m skdp.accounting create``)
        and is made absolute.
    checkpoint : str, path-like or None, default=None
        File that stores the state of the fit until it completes. An interrupted ``fit`` resumes from it when it is
        called again with the same parameters and rows, and an accountant that already recorded the fit is not charged
        again. The file is removed when the fit completes. While a fit uses the file, a lock on ``<checkpoint>.lock``
        rejects any other fit that uses it, before that fit is charged.
    warm_start : bool, default=False
        If True, ``fit`` starts from the current coefficients, and `epsilon_` covers all calls.
    merge_equal_rows : {"auto", True, False}, default="auto"
        Whether equal rows, with equal targets and weights, are found once and then computed once a step: the same
        mechanism in less time, except for rounding. "auto" does so where a lot is expected to have 4,096 rows or more
        and eight times as many as there are distinct ones. True does so in any case. How long a fit takes then depends
        on how rows repeat (see ``docs/limitations.md``).
    n_jobs : int or None, default=None
        Number of threads. The result does not depend on it. None means 1 unless in a ``joblib.parallel_config``
        context. -1 means using all processors.
    random_state : int, RandomState or Generator instance or None, default=None
        Source of sampling and noise. None draws a fresh secret key from the operating system. Any other value makes the
        fit reproducible and issues a `PrivacyLeakWarning`, because the guarantee does not hold against anyone who knows
        the value.
    verbose : int, default=0
        If 1, show a progress bar on standard error, with the epsilon of the steps so far.
    classes : sequence or None, default=None
        All classes that can occur in `y`. If None, they are read from `y`; this is not covered by the guarantee, and a
        `PrivacyLeakWarning` is issued.
    class_weight : dict of class to float, or None, default=None
        Public weights of the classes; a class that is not named has weight 1. They are divided by the largest, so only
        their ratios count, and multiply clipped gradients, as weights of rows do. "balanced" would read the labels and
        is refused: give ``1 / share`` with public shares of the classes.

    Attributes
    ----------
    embedding_ : PublicTreesEmbedding
        The trees, and the columns of `coef_`: ``embedding_.get_feature_names_out()`` names them.
    coef_ : ndarray of shape (1, n_columns) or (n_classes, n_columns)
        What each bin, level and leaf of a row adds to its score. They sum to zero over each plain column and each tree.
        Where columns are too many, coefficients are shrunk (``docs/scaling_and_binning.md``).
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts, zero if ``fit_intercept=False``.
    coef_noise_ : ndarray of the shape of `coef_`
        Standard deviation that the noise alone gives to each coefficient: exactly that of a fit to null records. It is
        computed from public quantities.
    feature_importances_ : ndarray of shape (`n_features_in_`,)
        Share of each column in the variance of the score, from coefficients and public quantities.
    classes_ : ndarray of shape (n_classes,)
        Class labels known to the classifier.
    weight_bound_ : float
        Bound by which weights were divided in the last run; 1.0 for ``weight_bound=None``.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of columns seen during ``fit``. Defined only if all column names of `X` are strings.
    epsilon_ : float
        Joint price, at `delta_`, of everything on which the fitted state depends: all calls of ``fit`` with
        `warm_start` and of ``partial_fit``. At most `epsilon` after a single fit.
    delta_ : float
        Delta at which `epsilon_` is computed.
    adjacency_ : str
        Neighbouring relation for which `epsilon_` holds.
    privacy_unit_ : {"row", "group"}
        What the guarantee is for: one row, or all rows with one label of `groups`.
    privacy_event_ : DpEvent
        Event that `epsilon_` is the price of.
    noise_multiplier_ : float
        Noise multiplier of the last run, or of constant noise of the same price where early steps have less noise than
        late ones, as in `skdp.DPLogisticRegression`.
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
    PublicTreesEmbedding : The trees alone, as a transformer.
    DPRandomTreesRegressor : The same for numbers as targets.
    skdp.DPLogisticRegression : Linear model of numeric columns.
    skdp.tabular_pipeline : The same where the schema is not known and is bought.

    Notes
    -----
    **Rows.** In each plain column a row has one level (a bin, a category, a gap), and one leaf in each tree. Levels and
    leaves have public weights: the trees together have two thirds of the squared norm, or less where noise rules, down
    to one third, and the plain columns the rest. In each column and tree the row is projected so that its entries sum
    to zero, which leaves one and the same norm to all rows.

    **Trees.** Before the first step, rows are counted in 32 cells of each number and in the levels of each other
    column. The noisy counts say how many people a node holds, as if columns were independent: the node that is split
    next is the largest one, and half of the thresholds follow the counts. ``embedding_.marginals`` has them as shares.
    Later runs (`warm_start`, ``partial_fit``) keep the trees and buy no counts.

    **Random trees elsewhere.** Jagannathan et al. draw such trees too, and release noisy counts of the
    classes in every leaf, so that each tree has a share of the budget. Fletcher & Islam give each tree rows of its
    own, and release the majority class of each leaf. There trees vote. Here nothing is released of a leaf by
    itself: the leaves of all trees, with the plain columns, are the columns of one linear model, which is trained
    on all rows. More trees take no budget from each other.

    **Guarantees.**

    - ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `classes` is given and
      `random_state` is None.
    - One row moves the sum of a step by at most `max_grad_norm_`, whatever it and its weight contain.
    - Sum and noise are divided by a public constant, the expected number of rows of a step.
    - With `groups` all of this holds for all rows of one label together: their clipped gradients are added up, and the
      sum is clipped to `max_grad_norm_` again. So are other sums over rows, each to what one row may add.
    - `intercept_` is that of the last step, moved by a function of sums over the rows, of probabilities and of what
      these lack, which are released once, with noise, after the last step.
    - A first run starts at scores that are a function of the counts of the classes, which are released once, with
      noise, before the first step. Counts and sums have 1 % of mu**2 of a fit to all rows each, sums without counts
      2 %, and are part of `privacy_event_`.
    - `accountant` is charged before the rows are read; an interrupted fit keeps its charge, and the model of the steps
      done.
    - Input that is refused (cells that cannot be read, unknown labels, negative weights) is refused before any charge.
      Such a refusal depends on the data and is not covered.
    - `embedding_` is a function of the schema, of the seed of the trees, and of counts of people in the cells of each
      column, which are released once, with noise, before the first step. They have 3 % of mu**2 of a fit to all rows,
      and are part of `privacy_event_`.
    - `feature_importances_` cost nothing: they are a function of `embedding_` and of the coefficients.

    The guarantee covers the *values* released. It does not cover the time that a fit takes, nor the rounding of sums of
    more than 2^20 rows (see ``docs/limitations.md``). Predictions for private rows are private themselves; tools that
    average them, such as `sklearn.inspection.partial_dependence`, publish what nobody paid for unless they are given
    public rows, and a `PrivacyLeakWarning` says so.

    References
    ----------
    Abadi et al. (2016), "Deep learning with differential privacy".

    Geurts, Ernst & Wehenkel (2006), "Extremely randomized trees".

    Jagannathan, Pillaipakkamnatt & Wright (2009), "A practical differentially private random decision tree classifier".

    Fletcher & Islam (2016), "Differentially private random decision forests using smooth sensitivity".

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.ensemble import DPRandomTreesClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, (20_000, 2))
    >>> y = (X[:, 0] * X[:, 1] > 0).astype(int)
    >>> model = DPRandomTreesClassifier(100, bounds=(-1, 1), classes=[0, 1], epsilon=1.0).fit(X, y)
    >>> bool(model.epsilon_ <= 1.0), bool(model.score(X, y) > 0.9)
    (True, True)
    """

    _: KW_ONLY
    classes: Any = None
    class_weight: Any = None

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: Any = None) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Private rows. No table of one column a level or leaf is built of them.
        y : array-like of shape (n_samples,)
            Private labels.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Private, nonnegative weights, which are divided by `weight_bound` and cut at it. The gradient of a row is
            clipped first and then multiplied by the result, a number in [0, 1]: no weight raises a row above the
            clipping norm, and proportions are kept. A row of weight 0 is a null row.

        groups : array-like of shape (n_samples,), str or None, default=None
            Private label of the unit of each row, such as a person or a household, or the name of a column of `X`,
            which is no feature then. The guarantee is then for all rows of one label together, else for one row.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            A parameter or the input is invalid. Nothing was charged.
        BudgetExceededError
            The budget of the accountant does not admit the fit. Nothing was charged, and no step was made.
        """
        return fit_run(self, X, y, sample_weight, groups, warm=bool(self.warm_start) and self._has_run())

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Predict confidence scores for samples.

        The score of a sample is the log-odds of ``classes_[1]`` for two classes, and one score per class for more.

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
