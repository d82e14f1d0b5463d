"""Private choice among candidates: a search whose epsilon is that of the whole search."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid, ParameterSampler

from skdp._checks.parameters import check_count
from skdp.base import with_parameters
from skdp.mechanisms.streams import SecretStream
from skdp.model_selection.search import PrivateSearch


@with_parameters
class DPGridSearchCV(PrivateSearch):
    """Differentially private search over a grid of parameters.

    One total budget (`epsilon`, `delta`) covers the trials, their scores, the choice and the final fit. The noise of
    all of them is calibrated jointly.

    Parameters
    ----------
    estimator : private estimator or Pipeline
        Estimator to search over. A Pipeline of private steps gets one joint budget per fit (see
        `skdp.allocate_budget`). Its own budget and seed are not used. An accountant that it carries is charged once,
        for the whole search.
    param_grid : dict or list of dict
        Grid of parameters, as for ``sklearn.model_selection.GridSearchCV``. Budgets, seeds and classes cannot be
        searched.
    epsilon : float or Risk, default=1.0
        Privacy budget of one ``fit``, which is the whole search. A number, or a risk such as
        ``skdp.Risk(advantage=0.1)`` (``docs/risk.md``).
    delta : float or "auto", default="auto"
        Probability with which the guarantee may fail. Choose it well below 1/n. "auto" is the delta of the accountant
        if it has one, else 1e-5 for up to 10,000 rows and 1/(10 n), rounded down to a power of ten, for more, n being
        the public number of rows.
    strategy : {"random_stopping", "compose"}, default="random_stopping"
        How candidates are tried:

        - "random_stopping": a secret random number of candidates is tried, each drawn at random, and the best is kept
          (Papernot & Steinke 2022). However many candidates there are, this costs little more than one trial.
        - "compose": every candidate is tried once and paid for. All noisy scores are published.
    n_trials : float or "auto", default="auto"
        Expected number of trials under random stopping. "auto" means the number of candidates, at most 10. The number
        of trials is geometric, logarithmic or Poisson. The geometric law has this mean; another law is used if it needs
        less noise for the same probability to try one of the best tenth of the candidates.
    scoring : str, PrivateScore, TableScore or None, default=None
        Score by which candidates are compared: "accuracy" (None) or "neg_log_loss" of classifiers,
        "neg_mean_absolute_error" (None) or "neg_mean_squared_error" of regressors. The log-loss of a row is cut off at
        5, targets and errors at the public `y_bounds` of the regressor. Scores to which a row does not contribute a
        bounded term, such as "r2", are refused; `make_private_scorer` makes one of "roc_auc".
    refit : bool, default=True
        Whether to fit the winner again to all rows, with three quarters of the budget (in mu**2). False keeps the
        winner as trained on its part of the rows, and leaves the whole budget to the trials.
    test_size : float, default=0.2
        Fraction of the rows that score the candidates. The split depends on the number of rows and a secret seed only.
        There are no folds and no stratification.
    n_jobs : int or None, default=None
        Number of trials that run in parallel, as in joblib.
    random_state : int, RandomState or Generator instance or None, default=None
        Source of the split, the number of trials and the noise. None draws a fresh secret key from the operating
        system. Any other value makes the fit reproducible and issues a `PrivacyLeakWarning`: the guarantee does not
        hold against anyone who knows the value.
    verbose : int, default=0
        Verbosity of joblib if ``strategy="compose"``. Ignored under random stopping, where progress would reveal the
        number of trials.

    Attributes
    ----------
    best_estimator_ : estimator
        Winning estimator. Its `epsilon_` and `privacy_event_` are those of the whole search.
    best_params_ : dict
        Parameters of the winner. Empty if no candidate was tried, which is possible under the Poisson law: the
        estimator is then fitted with its own parameters.
    best_index_ : int
        Index of the winner in ``cv_results_["params"]``, or -1 if no candidate was tried.
    best_score_ : float
        Noisy score of the winner as trained on its part of the rows, or NaN if there is none.
    score_noise_ : float
        Standard deviation of the noise in a score; where it follows from a table, of a count, as a share of the rows.
    cv_results_ : dict
        Dictionary with ``params`` of all candidates and their ``mean_test_score``. Under random stopping the scores of
        all candidates but the winner are NaN, whether tried or not.
    scorer_ : PrivateScore or TableScore
        Score by which candidates were compared.
    epsilon_ : float
        Price of the whole search at `delta_`, at most `epsilon`.
    delta_ : float
        Delta at which `epsilon_` is computed.
    adjacency_ : str
        Neighbouring relation for which `epsilon_` holds.
    privacy_unit_ : {"row", "group"}
        What the guarantee is for: one row, or all rows with one label of `groups`.
    privacy_event_ : DpEvent
        Event that `epsilon_` is the price of.
    classes_ : ndarray of shape (n_classes,)
        Class labels known to the best estimator. Defined only for classifiers.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of columns seen during ``fit``. Defined only if all column names of `X` are strings.

    See Also
    --------
    DPRandomizedSearchCV : Search over settings that are drawn at random.
    allocate_budget : One budget for a pipeline of private steps.

    Notes
    -----
    **Guarantees.**

    - ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row, the choice and the final fit included, if
      the estimator names its classes and `random_state` is None.
    - A row is in the part that trains or in the part that scores, and no label moves another row.
    - With `groups` all of this holds for all rows of one label together: they are in one part, and what they add to a
      score is cut off together, where one row would be.
    - Parameters of all candidates are checked and the accountant is asked before a row is read; rows and labels are
      checked, for all candidates alike, before the charge; the accountant is charged once, for all of it.
    - Under random stopping nothing reveals the candidates that lost, nor how many were tried: no attribute, no entry of
      the ledger, no warning, no progress.
    - A search over one candidate skips choice and score and costs one fit.

    The time that ``fit`` takes reveals the number of trials and is not covered (see ``docs/pitfalls.md``).
    The proof is in the docstring of ``skdp.model_selection.search_plan.SearchPlan``.

    References
    ----------
    Papernot & Steinke (2022), "Hyperparameter tuning with Renyi differential privacy".

    Koskela, Redberg & Wang (2024), "Privacy profiles for private selection".

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPGridSearchCV, DPLogisticRegression
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(5000, 4))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> grid = {"max_grad_norm": [0.1, 0.5], "alpha": [0.0, 0.1]}
    >>> search = DPGridSearchCV(DPLogisticRegression(classes=[0, 1]), grid, epsilon=1.0).fit(X, y)
    >>> bool(0.999 < search.epsilon_ <= 1.0)
    True
    """

    param_grid: Any

    def _candidates(self, stream: SecretStream) -> list[dict[str, Any]]:
        return list(ParameterGrid(self.param_grid))


@with_parameters
class DPRandomizedSearchCV(PrivateSearch):
    """Differentially private search over parameters that are drawn at random.

    The candidates are `n_iter` settings, drawn before the data are read. The guarantees are those of `DPGridSearchCV`.

    Parameters
    ----------
    estimator : private estimator or Pipeline
        Estimator to search over. A Pipeline of private steps gets one joint budget per fit (see
        `skdp.allocate_budget`). Its own budget and seed are not used. An accountant that it carries is charged once,
        for the whole search.
    param_distributions : dict or list of dict
        Distributions of parameters, as for ``sklearn.model_selection.RandomizedSearchCV``. Budgets, seeds and classes
        cannot be searched.
    epsilon : float or Risk, default=1.0
        Privacy budget of one ``fit``, which is the whole search. A number, or a risk such as
        ``skdp.Risk(advantage=0.1)`` (``docs/risk.md``).
    delta : float or "auto", default="auto"
        Probability with which the guarantee may fail. Choose it well below 1/n. "auto" is the delta of the accountant
        if it has one, else 1e-5 for up to 10,000 rows and 1/(10 n), rounded down to a power of ten, for more, n being
        the public number of rows.
    strategy : {"random_stopping", "compose"}, default="random_stopping"
        How candidates are tried:

        - "random_stopping": a secret random number of candidates is tried, each drawn at random, and the best is kept
          (Papernot & Steinke 2022). However many candidates there are, this costs little more than one trial.
        - "compose": every candidate is tried once and paid for. All noisy scores are published.
    n_trials : float or "auto", default="auto"
        Expected number of trials under random stopping. "auto" means `n_iter`, at most 10. The number of trials is
        geometric, logarithmic or Poisson. The geometric law has this mean; another law is used if it needs less noise
        for the same probability to try one of the best tenth of the candidates.
    scoring : str, PrivateScore, TableScore or None, default=None
        Score by which candidates are compared: "accuracy" (None) or "neg_log_loss" of classifiers,
        "neg_mean_absolute_error" (None) or "neg_mean_squared_error" of regressors. The log-loss of a row is cut off at
        5, targets and errors at the public `y_bounds` of the regressor. Scores to which a row does not contribute a
        bounded term, such as "r2", are refused; `make_private_scorer` makes one of "roc_auc".
    refit : bool, default=True
        Whether to fit the winner again to all rows, with three quarters of the budget (in mu**2). False keeps the
        winner as trained on its part of the rows, and leaves the whole budget to the trials.
    test_size : float, default=0.2
        Fraction of the rows that score the candidates. The split depends on the number of rows and a secret seed only.
        There are no folds and no stratification.
    n_jobs : int or None, default=None
        Number of trials that run in parallel, as in joblib.
    random_state : int, RandomState or Generator instance or None, default=None
        Source of the split, the number of trials and the noise. None draws a fresh secret key from the operating
        system. Any other value makes the fit reproducible and issues a `PrivacyLeakWarning`: the guarantee does not
        hold against anyone who knows the value.
    verbose : int, default=0
        Verbosity of joblib if ``strategy="compose"``. Ignored under random stopping, where progress would reveal the
        number of trials.
    n_iter : int, default=10
        Number of settings. All settings are published; under random stopping it remains secret which of them were
        tried.

    Attributes
    ----------
    best_estimator_ : estimator
        Winning estimator. Its `epsilon_` and `privacy_event_` are those of the whole search.
    best_params_ : dict
        Parameters of the winner. Empty if no candidate was tried, which is possible under the Poisson law: the
        estimator is then fitted with its own parameters.
    best_index_ : int
        Index of the winner in ``cv_results_["params"]``, or -1 if no candidate was tried.
    best_score_ : float
        Noisy score of the winner as trained on its part of the rows, or NaN if there is none.
    score_noise_ : float
        Standard deviation of the noise in a score; where it follows from a table, of a count, as a share of the rows.
    cv_results_ : dict
        Dictionary with ``params`` of all candidates and their ``mean_test_score``. Under random stopping the scores of
        all candidates but the winner are NaN, whether tried or not.
    scorer_ : PrivateScore or TableScore
        Score by which candidates were compared.
    epsilon_ : float
        Price of the whole search at `delta_`, at most `epsilon`.
    delta_ : float
        Delta at which `epsilon_` is computed.
    adjacency_ : str
        Neighbouring relation for which `epsilon_` holds.
    privacy_unit_ : {"row", "group"}
        What the guarantee is for: one row, or all rows with one label of `groups`.
    privacy_event_ : DpEvent
        Event that `epsilon_` is the price of.
    classes_ : ndarray of shape (n_classes,)
        Class labels known to the best estimator. Defined only for classifiers.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of columns seen during ``fit``. Defined only if all column names of `X` are strings.

    See Also
    --------
    DPGridSearchCV : Search over all points of a grid, with the guarantees in full.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import loguniform
    >>> from skdp import DPLogisticRegression, DPRandomizedSearchCV
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(5000, 4))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> model = DPLogisticRegression(classes=[0, 1])
    >>> search = DPRandomizedSearchCV(model, {"max_grad_norm": loguniform(0.05, 2.0)}, n_iter=4).fit(X, y)
    >>> len(search.cv_results_["params"])
    4
    """

    param_distributions: Any
    _: KW_ONLY
    n_iter: int = 10

    def _candidates(self, stream: SecretStream) -> list[dict[str, Any]]:
        n_iter = check_count("n_iter", self.n_iter, remedy="choose a whole number of settings above 0")
        seed = int(stream.words(1)[0] >> np.uint64(32))
        return list(ParameterSampler(self.param_distributions, n_iter, random_state=seed))
