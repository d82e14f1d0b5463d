"""Private choice among candidates: a search whose epsilon is that of the whole search."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid, ParameterSampler

from skdp._random import SecretStream
from skdp._search.scores import SCORES, PrivateScore
from skdp._search.search import PrivateSearch
from skdp._validation import check_count


class DPGridSearchCV(PrivateSearch):
    """Private choice among the points of a grid.

    One total (`epsilon`, `delta`) covers everything: the tries, the choice, the score and the final fit. The noise of
    all of them is solved for together.

    Parameters
    ----------
    estimator : private estimator or Pipeline
        What is searched over. A Pipeline of private steps gets one joint budget a fit (`skdp.allocate_budget`). An
        accountant that it carries is charged once, for the whole search. Its own budget and seed are not used.
    param_grid : dict or list of dict
        As for ``sklearn.model_selection.GridSearchCV``. Budgets, seeds and classes cannot be searched.
    epsilon, delta : float
        Budget of the whole search.
    strategy : {"random_stopping", "compose"}, default="random_stopping"
        "random_stopping": a secret random number of candidates, each drawn at random, is tried and the best is kept
        (Papernot & Steinke 2022). However many candidates there are, this costs little more than one try. "compose":
        every candidate is tried once and paid for, and all noisy scores are shown.
    n_tries : float or "auto", default="auto"
        Expected number of tries under random stopping. "auto": the number of candidates, 10 at most. It is that of the
        geometric law; the logarithmic or the Poisson law is taken where it needs less noise for the same chance that
        one of the best tenth of the candidates is tried.
    scoring : {"accuracy", "neg_log_loss"}, PrivateScore or None, default=None
        None: accuracy. Log-losses of rows are cut off at 5. Scores of which a row is no bounded part, such as
        "roc_auc", are refused.
    refit : bool, default=True
        Fit the winner again to all rows, at three quarters of the budget (in mu**2). False keeps the winner as it was
        trained on its part of the rows, and leaves the whole budget to the tries.
    test_size : float, default=0.2
        Share of the rows that score. Which rows do is decided by their number and a secret seed alone; there are no
        folds, and nothing is stratified.
    n_jobs : int or None, default=None
        Tries at a time, as in joblib.
    random_state : int, RandomState or Generator instance or None, default=None
        None: fresh secret keys. Anything else makes the search reproducible, and its noise no secret.
    verbose : int, default=0
        joblib's progress under "compose". No effect under random stopping, where it would tell the number of tries.

    Attributes
    ----------
    best_estimator_ : estimator
        The winner; its `epsilon_` and `privacy_event_` are those of the whole search.
    best_params_ : dict
        Empty if no candidate was tried, which the Poisson law allows: the estimator is then fitted as it was given.
    best_index_ : int
        In ``cv_results_["params"]``; -1 if no candidate was tried.
    best_score_ : float
        Noisy score of the winner, as trained on its part of the rows; NaN without one.
    score_noise_ : float
        Standard deviation of the noise in a score.
    cv_results_ : dict
        ``params`` of all candidates, and ``mean_test_score``: of the winner alone under random stopping (NaN for the
        others, tried or not), of all under "compose".
    scorer_ : PrivateScore
    epsilon_, delta_ : float
        Price of the whole search, by PLD; at most `epsilon`.
    adjacency_ : str
    privacy_event_ : DpEvent
        What `epsilon_` is the price of.
    classes_ : ndarray
    n_features_in_ : int
    feature_names_in_ : ndarray
        Only if X has string column names.

    Notes
    -----
    **Guarantees.**

    - ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row, the choice and the final fit included, if
      the estimator names its classes and `random_state` is None.
    - A row is in the part that trains or in the part that scores, and no label moves another row.
    - Parameters of all candidates are checked and the accountant is asked before a row is read; rows and labels are
      checked, for all candidates alike, before the charge; the accountant is charged once, for all of it.
    - Under random stopping nothing is said of candidates that lost, nor of how many were tried: no attribute, no entry
      of the ledger, no warning, no progress.
    - A search over one candidate skips choice and score and costs one fit.

    How long ``fit`` takes does tell the number of tries; it is not covered (see ``docs/pitfalls.md``). `sample_weight`
    is not supported. The proof stands in ``skdp._search.plan.SearchPlan``.

    References
    ----------
    Papernot & Steinke (2022), "Hyperparameter tuning with Renyi differential privacy". Koskela, Redberg & Wang (2024),
    "Privacy profiles for private selection".

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

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        strategy: str = "random_stopping",
        n_tries: float | str = "auto",
        scoring: Any = None,
        refit: bool = True,
        test_size: float = 0.2,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.epsilon = epsilon
        self.delta = delta
        self.strategy = strategy
        self.n_tries = n_tries
        self.scoring = scoring
        self.refit = refit
        self.test_size = test_size
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _candidates(self, stream: SecretStream) -> list[dict[str, Any]]:
        return list(ParameterGrid(self.param_grid))


class DPRandomizedSearchCV(PrivateSearch):
    """Private choice among settings that are drawn at random.

    As `DPGridSearchCV`, whose attributes and guarantees it has; the candidates are `n_iter` settings that are drawn
    before the data are read.

    Parameters
    ----------
    estimator : private estimator or Pipeline
    param_distributions : dict or list of dict
        As for ``sklearn.model_selection.RandomizedSearchCV``. Budgets, seeds and classes cannot be searched.
    n_iter : int, default=10
        Number of settings. All of them are shown; under random stopping, which of them were tried is not.
    epsilon, delta : float
        Budget of the whole search.
    strategy : {"random_stopping", "compose"}, default="random_stopping"
    n_tries : float or "auto", default="auto"
        Expected number of tries under random stopping. "auto": `n_iter`, 10 at most.
    scoring : {"accuracy", "neg_log_loss"}, PrivateScore or None, default=None
    refit : bool, default=True
    test_size : float, default=0.2
    n_jobs : int or None, default=None
    random_state : int, RandomState or Generator instance or None, default=None
    verbose : int, default=0
        These six as for `DPGridSearchCV`.

    Attributes
    ----------
    best_estimator_, best_params_, best_index_, best_score_, score_noise_, cv_results_, scorer_
        As of `DPGridSearchCV`.
    epsilon_, delta_, adjacency_, privacy_event_, classes_, n_features_in_, feature_names_in_
        As of `DPGridSearchCV`.

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

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        n_iter: int = 10,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        strategy: str = "random_stopping",
        n_tries: float | str = "auto",
        scoring: Any = None,
        refit: bool = True,
        test_size: float = 0.2,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.param_distributions = param_distributions
        self.n_iter = n_iter
        self.epsilon = epsilon
        self.delta = delta
        self.strategy = strategy
        self.n_tries = n_tries
        self.scoring = scoring
        self.refit = refit
        self.test_size = test_size
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _candidates(self, stream: SecretStream) -> list[dict[str, Any]]:
        n_iter = check_count("n_iter", self.n_iter, remedy="choose a whole number of settings above 0")
        seed = int(stream.spawn("settings").words(1)[0] >> np.uint64(32))
        return list(ParameterSampler(self.param_distributions, n_iter, random_state=seed))


__all__ = ["SCORES", "DPGridSearchCV", "DPRandomizedSearchCV", "PrivateScore"]
