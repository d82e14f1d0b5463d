"""`make_private_scorer`: scores of searches that follow from a noisy table of scores, such as the AUROC."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from skdp._checks.parameters import check_count, show
from skdp._checks.rows import encode_labels
from skdp._checks.units import Units
from skdp._typing import Doubles
from skdp.evaluation import binary_metrics
from skdp.evaluation.amounts import GRID, amounts_of
from skdp.evaluation.counted import RowsOfCounts, count_cells
from skdp.evaluation.replicates import Metric, project
from skdp.evaluation.scored_rows import ScoredRows, bins_of

_HALF = np.array([0.5])


def _f1(tables: Doubles) -> Doubles:
    return binary_metrics.f1(tables, _HALF)[..., 0]


def _minus(metric: Metric, tables: Doubles) -> Doubles:
    return -metric(tables)


METRICS: dict[str, Metric] = {
    "roc_auc": binary_metrics.roc_auc,
    "average_precision": binary_metrics.average_precision,
    "f1": _f1,
    "neg_brier_score": partial(_minus, binary_metrics.brier_score),
}
"""Scores that `make_private_scorer` knows by name, larger for a better model."""


@dataclass(frozen=True)
class TableScore:
    """A figure of a table of scores, which one row moves by one count. Made by `make_private_scorer`.

    Parameters
    ----------
    name : str
        Name of the score, used in messages and in the ledger.
    metric : callable
        Maps tables of shape (n_tables, 2, n_bins), negatives and then positives in bins of the score, to one number a
        table, larger for a better model.
    n_bins : int
        Number of bins of the score.

    Notes
    -----
    **Guarantees.** One row, or one unit of several rows, that is replaced by a null row, added or removed moves `total`
    by at most 1 in Euclidean norm; replaced by any other, by at most twice that.

    Proof. A row has one score and one class, so it is in one cell, and adds 1 to it, or its share of the weight, which
    is in [0, 1]. What the rows of a unit add is not negative and has a sum of at most 1 (`amounts_of`), so its
    Euclidean norm is at most 1. A null row adds nothing.
    """

    name: str
    metric: Callable[[Any], Any]
    n_bins: int

    sensitivity = 1.0

    def total(self, estimator: Any, X: Any, y: Any, shares: Any = None, units: Units | None = None) -> Doubles:
        """Count rows, or units, by class and score.

        Parameters
        ----------
        estimator : estimator
            Fitted estimator.
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Private rows. A row that the estimator refuses has the score 0.
        y : ndarray of shape (n_samples,)
            Private labels.
        shares : ndarray of shape (n_samples,) or None, default=None
            Private weights, divided by their bound and cut at it.
        units : Units or None, default=None
            Private units of the rows. None: each row is one.

        Returns
        -------
        ndarray of shape (2, n_bins)
            Exact counts, which a mechanism has to release.
        """
        amounts = amounts_of(1.0 if shares is None else shares, units, len(y))
        rows = RowsOfCounts(encode_labels(y, estimator.classes_), amounts, None)
        return count_cells(ScoredRows(estimator, X), rows, (1, 2, self.n_bins), bins_of)[0] / GRID

    total_of_all = total

    def value(self, total: Any, n: float) -> float:
        """Convert a table to a score.

        Parameters
        ----------
        total : ndarray of shape (2, n_bins)
            Exact or noisy counts.
        n : float
            Not used: the table has its own number of rows.

        Returns
        -------
        float
            Score, larger for a better model.
        """
        return float(np.asarray(self.metric(project(np.asarray(total, np.float64)[None], None)))[0])

    def refuse_other_classes(self, estimator: Any) -> None:
        """Refuse an estimator of which it is known that its classes are not two.

        Parameters
        ----------
        estimator : estimator
            Private estimator whose parameters were checked.
        """
        classes = getattr(estimator, "classes", None)
        if classes is None or len(classes) != 2:
            raise ValueError(
                f"scoring={self.name!r} is for two classes and {type(estimator).__name__} has others: use 'accuracy'."
            )


def make_private_scorer(metric: str | Metric, *, n_bins: int = 16, name: str | None = None) -> TableScore:
    """Make a score of searches from a figure that follows from a table of counts.

    A row contributes no bounded term to an AUROC, so a search cannot release the AUROC itself with little noise. It can
    release a table of how many rows of either class have a score in each of some bins, at the price of one score: the
    AUROC follows from it. There is more noise in it than in "accuracy", which is one number.

    Parameters
    ----------
    metric : {"roc_auc", "average_precision", "f1", "neg_brier_score"} or callable
        What follows from the table: by name, or a function of tables of shape (n_tables, 2, n_bins), negatives and then
        positives in bins of the score, to one number a table, larger for a better model.
    n_bins : int, default=16
        Number of bins of the score, which are finer near 0 and 1 (`skdp.evaluation.scale.scores_at`).
    name : str or None, default=None
        Name of the score in messages and in the ledger. None takes that of `metric`.

    Returns
    -------
    TableScore
        A value of `scoring`, for classifiers of two classes.

    Raises
    ------
    ValueError
        `metric` is no name that is known.

    See Also
    --------
    PrivateScore : A mean of bounded contributions of rows.

    Examples
    --------
    >>> from skdp import DPGridSearchCV, DPLogisticRegression
    >>> from skdp.model_selection import make_private_scorer
    >>> search = DPGridSearchCV(
    ...     DPLogisticRegression(classes=[0, 1]), {"alpha": [0.0, 0.1]}, scoring=make_private_scorer("roc_auc")
    ... )
    >>> search.scoring.name
    'roc_auc'
    """
    bins = check_count("n_bins", n_bins, at_least=2, remedy="choose a whole number above 1, such as 16")
    if isinstance(metric, str) and metric in METRICS:
        return TableScore(metric if name is None else name, METRICS[metric], bins)
    if callable(metric):
        return TableScore(str(getattr(metric, "__name__", "score")) if name is None else name, metric, bins)
    raise ValueError(f"metric={show(metric)} is not known: use one of {', '.join(map(repr, METRICS))}, or a function.")
