"""Scores that can be released: sums over rows of bounded contributions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

LOSS_BOUND = 5.0
"""Where a row's log-loss is cut off: at a probability of 0.7 % for what is true."""


@dataclass(frozen=True)
class PrivateScore:
    """A score that is a mean over rows of bounded contributions, so that one row moves it by a known amount.

    Parameters
    ----------
    name : str
    contributions : callable
        ``contributions(estimator, X, y)`` gives one number a row, of shape (n,), in [0, `bound`], that depends on this
        row and the estimator alone. What lies outside is cut off.
    bound : float
        Finite, above 0.
    greater_is_better : bool, default=True
        If not, the score is the mean times -1.

    Notes
    -----
    **Guarantees.** One row that is made void, added or removed moves `total` by at most `sensitivity`, half of `bound`;
    exchanged for another, by at most twice that.

    Contributions are counted from the middle of their range, where a void row is as well, which halves the noise.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.model_selection import PrivateScore
    >>> def squared_errors(model, X, y):
    ...     return (model.predict_proba(X)[:, 1] - y) ** 2
    >>> brier = PrivateScore("neg_brier", squared_errors, bound=1.0, greater_is_better=False)
    >>> brier.sensitivity
    0.5
    """

    name: str
    contributions: Callable[[Any, Any, Any], NDArray[Any]]
    bound: float
    greater_is_better: bool = True

    def __post_init__(self) -> None:
        if not 0.0 < self.bound < math.inf:
            raise ValueError(f"bound={self.bound!r} is out of range: give the largest contribution of a row, above 0.")

    @property
    def sensitivity(self) -> float:
        """C: the largest move of `total` by one row; an exchange is priced as a move by 2 C."""
        return 0.5 * self.bound

    def total(self, estimator: Any, X: Any, y: Any) -> float:
        """Sum of contributions, counted from the middle of their range; one that is not a number is 0 before that."""
        if len(y) == 0:
            return 0.0
        found = np.asarray(self.contributions(estimator, X, y), dtype=np.float64)
        if found.shape != (len(y),):
            raise ValueError(f"scoring={self.name!r} gave shape {found.shape} for so many rows: give one number a row.")
        return float(np.sum(np.clip(np.nan_to_num(found, nan=0.0), 0.0, self.bound) - self.sensitivity))

    def value(self, total: float, n: float) -> float:
        """The score that a (noisy) total over `n` rows, a public number, stands for."""
        mean = total / n + self.sensitivity
        return mean if self.greater_is_better else -mean


def _hits(estimator: Any, X: Any, y: Any) -> NDArray[np.float64]:
    right = np.asarray(estimator.predict(X)) == y
    return right.reshape(len(y), -1).all(axis=1).astype(np.float64)


def _log_losses(estimator: Any, X: Any, y: Any) -> NDArray[np.float64]:
    chances = estimator.predict_proba(X)[np.arange(len(y)), np.searchsorted(estimator.classes_, y)]
    return -np.log(np.maximum(chances, math.exp(-LOSS_BOUND)))


SCORES = {
    "accuracy": PrivateScore("accuracy", _hits, 1.0),
    "neg_log_loss": PrivateScore("neg_log_loss", _log_losses, LOSS_BOUND, greater_is_better=False),
}


def score_of(scoring: Any) -> PrivateScore:
    """The score that `scoring` names; accuracy for None."""
    if isinstance(scoring, PrivateScore):
        return scoring
    name = "accuracy" if scoring is None else scoring
    if isinstance(name, str) and name in SCORES:
        return SCORES[name]
    raise ValueError(
        f"scoring={scoring!r} has no private mechanism here (of roc_auc and the like a row is no bounded part): use "
        f"one of {', '.join(map(repr, SCORES))}, or give a skdp.model_selection.PrivateScore."
    )


__all__ = ["LOSS_BOUND", "SCORES", "PrivateScore", "score_of"]
