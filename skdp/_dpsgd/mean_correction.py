"""Class counts at which a run starts, and the mean of predictions, which is corrected after the last step."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

import numpy as np
import scipy.linalg as sl
from scipy.special import expit, softmax

from skdp.mechanisms.bounded_sum import VectorQuery, VectorSum, column_sensitivity

OFFSET_SHARE = 0.02
"""Part of mu^2 of a fit that the means get. The steps then have 1% less of mu. In a first run of a classifier, the
counts of its classes have half of it."""

ENOUGH = 8.0
"""Standard deviations of the noise that rows, or those of a class, exceed, if a mean of them is to be used at all."""

LARGEST_ERROR = 2.0
"""Where errors of targets from -1 to 1 are cut at most: nowhere, as predictions are moved into the bounds."""

_NOISE_AT_ONE = 0.02
"""Noise of a mean error, in units of the cut, at which errors are cut at 1 (`TargetMean.at_noise`). On simulated
log-normal wages, incomes and house values, cutting then loses less of the mean than noise does."""

_PART = 0.5
"""Factor of the sums of probabilities, which need to be known less well than what is missing of them."""

_LEAST = 0.05
"""Least slope of a mean probability, relative to that of a model that gives all rows the same."""

_MOST = 10.0
"""Largest factor by which a mean is moved."""

_SMOOTHED = 8.0
"""Standard deviations of the noise of a count that each class is given in addition, before its log-odds are taken. A
start at equal scores is a shrinkage, which helps where noise decides: without it, trees of a class of 3.6% lost at
epsilon 0.1."""


class Means(VectorQuery, Protocol):
    """What rows add to the sums that are released, and the offsets of the scores that follow from these.

    Subclasses are public values, and can be pickled. `of_scores` says whether `vectors` depends on the scores.
    """

    of_scores: bool = True

    def at_noise(self, noise: float) -> Means:
        """Return the means that suit this noise, a public number: the noise of a sum, divided by the number of rows."""
        return self

    def vectors(self, scores: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return what each row adds, of shape (n, width).

        Parameters
        ----------
        scores : ndarray of shape (n, n_outputs)
            Of a model that is released. They may be infinite or NaN, if it diverged.
        values : ndarray of shape (n, ...)
            Targets as the loss reads them; private.
        """

    def offset(self, sums: np.ndarray, deviation: float) -> np.ndarray:
        """Return what is added to the score of each output, from noisy sums and the noise's standard deviation."""


class ScoredSum(VectorSum):
    """The sum of `Means` over rows, of which the scores are computed here.

    Parameters
    ----------
    means : Means
    adjacency : str
    score : callable or None
        Computes the scores of rows by the released model. None where `means` does not depend on them.
    pool : object
        Not used.
    """

    def __init__(self, means: Means, adjacency: str, score: Callable[[Any], Any] | None, pool: Any = None) -> None:
        super().__init__(means, adjacency)
        self._score = score

    def add(self, rows: Any, *targets_and_weights: Any, units: Any = None) -> None:
        """Add a block of rows, with their targets and weights. With units it has all rows of each."""
        with np.errstate(all="ignore"):
            scores = np.zeros((rows.shape[0], 0)) if self._score is None else np.asarray(self._score(rows), np.float64)
            super().add(scores, *targets_and_weights, units=units)


@dataclass(frozen=True)
class OfClasses(Means):
    """Sums over rows of classes.

    Parameters
    ----------
    n_outputs : int
        One for two classes; else one a class, or one a label.
    are_labels : bool
        Whether each output is a label of its own, of two classes.
    """

    n_outputs: int
    are_labels: bool = False
    shape: tuple[int, int] = field(init=False)  # number of labels a row, and of the classes of each
    width: int = field(init=False)
    row_limit: float = field(init=False)
    most_square: ClassVar[float]  # of the norm of what a row adds for a label
    has_products: ClassVar[bool]  # whether it adds k products, and a probability, for each of k classes too

    def __post_init__(self) -> None:
        n_labels, k = (self.n_outputs, 2) if self.n_outputs == 1 or self.are_labels else (1, self.n_outputs)
        width = n_labels * k * (k + 2 if self.has_products else 1)
        vars(self).update(shape=(n_labels, k), width=width, row_limit=math.sqrt(n_labels * self.most_square))

    def truth(self, values: np.ndarray) -> np.ndarray:
        """Return 1 at the class of each row and label and 0 elsewhere, of shape (n, n_labels, n_classes)."""
        n_labels, k = self.shape
        return np.eye(k)[values.reshape(len(values), n_labels).astype(np.intp)]

    def scores_of(self, odds: np.ndarray) -> np.ndarray:
        """Return the score of each output from log-odds of shape (n_labels, n_classes), of two classes or of mean 0."""
        if self.n_outputs > 1 and not self.are_labels:
            return odds[0] - odds[0].mean()
        return odds[:, 1] - odds[:, 0]


class OutcomeCounts(OfClasses):
    """Numbers of rows of each class, from which a run starts: at the log-odds of the classes.

    Notes
    -----
    **Guarantees.** A row of class y and weight w in [0, 1] adds w to the count of y, and a row of weight 0, the
    zeroed-out record, adds nothing; with d labels, one such count each: a vector of norm sqrt(d) at most. If a row is
    replaced, the counts move by sqrt(2 d) at most.

    Proof. The vector has at most d entries other than 0, which are w. Two such vectors have no negative entry, so
    |a - b|^2 <= |a|^2 + |b|^2 <= 2 d. The same holds for sums over the rows of two units, each clipped to sqrt(d).

    **The start.** Where all rows have the same scores, the loss is least at the log-odds of the classes. From equal
    scores, the rows of a frequent class move the scores of all leaves beyond those of a rare class, where gradients
    vanish. `_SMOOTHED` standard deviations of the noise are added to each count, and one row at least. Scores stay
    equal where all rows are too few to be told from the noise.
    """

    of_scores, most_square, has_products = False, 1.0, False

    def sensitivity(self, adjacency: str) -> float:
        return column_sensitivity(self.shape[0], adjacency)

    def group_limits(self, adjacency: str) -> tuple[float, float]:
        return self.row_limit, np.inf

    def vectors(self, scores: np.ndarray, values: np.ndarray) -> np.ndarray:
        """See `Means`. The scores do not matter."""
        return self.truth(values).reshape(len(values), -1)

    def offset(self, sums: np.ndarray, deviation: float) -> np.ndarray:
        """See `Means`: the scores at which a run starts."""
        counts = sums.reshape(self.shape)
        smoothed = np.maximum(counts, deviation) + max(_SMOOTHED * deviation, 1.0)
        are_enough = counts.sum(axis=1, keepdims=True) > ENOUGH * deviation
        return self.scores_of(np.where(are_enough, np.log(smoothed), 0.0))

    def rarest(self, sums: np.ndarray) -> np.ndarray:
        """Return the noisy count of each class, or of the rarer value of each label."""
        counts = sums.reshape(self.shape)
        return counts.min(axis=1) if self.are_labels else counts[0]


class ClassMeans(OfClasses):
    """Mean probabilities of classes, moved to the shares of the classes.

    Notes
    -----
    **Guarantees.** A row of class y and probabilities p adds e - p, where e is 1 at y and 0 elsewhere, the matrix
    D = diag(p) - p p^T, and p / 2: a vector of norm 3/2 at most. Several labels a row add one such vector each.

    Proof. Let s = |p|^2, which is at most 1. Then |e - p|^2 = 1 - 2 p_y + s <= 1 + s. The squared norm of D is
    s - 2 sum_k p_k^3 + s^2, and sum_k p_k^3 >= s^2, as the mean of squares under p is no less than the square of the
    mean; so it is at most s - s^2. Together with s / 4 this is at most 1 + 2.25 s - s^2, which grows up to s = 1, where
    it is 2.25.

    **The step.** Let m be the mean probabilities, t those that are wanted and D the mean of the matrices, from noisy
    sums. A model whose mean probability was softmax(log m + R b) at an offset of b would have the slope C R there,
    C = diag(m) - m m^T. With R = C^-1 D it has the slope that the model has, D, and its mean is t at
    b = D^-1 C log(t / m). So the error is of second order in b, and none if all rows have the same probabilities. For
    two classes b is the difference of log-odds, divided by the share of C that the probabilities do not explain.
    """

    most_square, has_products = 2.0 + _PART**2, True

    def vectors(self, scores: np.ndarray, values: np.ndarray) -> np.ndarray:
        """See `Means`. A row of which a score is no number adds nothing."""
        n, (n_labels, k), truth = len(scores), self.shape, self.truth(values)
        found = np.stack([expit(-scores), expit(scores)], axis=-1) if k == 2 else softmax(scores, axis=1)[:, None, :]
        spread = found[..., :, None] * (np.eye(k) - found[..., None, :])
        terms = np.concatenate([truth - found, spread.reshape(n, n_labels, k * k), _PART * found], axis=-1)
        terms[~np.isfinite(found).all(axis=(1, 2))] = 0.0
        return terms.reshape(n, self.width)

    def offset(self, sums: np.ndarray, deviation: float) -> np.ndarray:
        n_labels, k = self.shape
        return self.scores_of(np.array([_move(each, k, deviation) for each in sums.reshape(n_labels, -1)]))


def _move(sums: np.ndarray, k: int, deviation: float) -> np.ndarray:
    """Return the offsets of the scores of k classes, of mean 0, from noisy sums (`ClassMeans`).

    Classes of few rows have the share that the model gives them, which says more of it than the sums do.
    """
    missing, spread, found = np.split(sums, [k, k + k * k])
    missing, deviation = missing - missing.mean(), deviation * math.sqrt(1.0 - 1.0 / k)
    found = np.maximum(found / _PART, deviation)
    are_few = np.maximum(found, found + missing) < ENOUGH * deviation
    missing = np.where(are_few, 0.0, shrunk(missing, deviation))
    wanted = np.clip(found + missing, found / _MOST, found * _MOST)
    m, t = found / found.sum(), wanted / wanted.sum()
    centered = np.eye(k) - 1.0 / k
    D = centered @ spread.reshape(k, k) @ centered / found.sum()
    C = np.diag(m) - np.outer(m, m)
    odds = np.log(t / m)
    slopes, V = sl.eigh((D + D.T)[1:, 1:] / 2.0, C[1:, 1:])  # the offset of the first class is 0
    least = min(max(_LEAST, 2.0 * deviation / found.min()), 1.0)  # twice the noise of a slope
    b = V @ ((V.T @ (C[1:, 1:] @ (odds[1:] - odds[0]))) / np.clip(slopes, least, 1.0))  # D <= C
    return np.concatenate([[0.0], b]) - b.sum() / k


@dataclass(frozen=True)
class TargetMean(Means):
    """The mean of targets: the mean error of the predictions is added to them.

    Parameters
    ----------
    low, high : float
        Bounds into which predictions are moved, in units of targets.
    largest : float
        Where errors are cut, in these units; at most this where `at_noise` chooses the cut.
    doubted : float
        Standard deviations of the noise by which the mean error is shrunk. Where the spread of targets is not known,
        which may be far less than their bounds, noise may exceed it, and one is too few.

    Notes
    -----
    **Guarantees.** A row of the error e, cut to [-1, 1] in units of `largest`, adds (1, e), whose norm is at most
    sqrt(2). The cut of `at_noise` is a function of public numbers, and the norm does not depend on it.

    **The cut.** At a cut of c the noise of the mean error is c times r, the noise of a sum divided by the number of
    rows. If errors have the third absolute moment m, cutting moves their mean by at most 4 m / (27 c^2), as
    (e - c) / e^3 is largest at e = 1.5 c. The sum of both is least at a c proportional to r^(-1/3).
    """

    low: float = -1.0
    high: float = 1.0
    largest: float = LARGEST_ERROR
    doubted: float = 1.5

    row_limit = math.sqrt(2.0)
    width = 2

    def at_noise(self, noise: float) -> TargetMean:
        """See `Means`: errors are cut where noise and cutting move the mean by as little as can be."""
        return replace(self, largest=min(self.largest, math.cbrt(_NOISE_AT_ONE / noise)))

    def vectors(self, scores: np.ndarray, values: np.ndarray) -> np.ndarray:
        """See `Means`. An error that is NaN counts as none."""
        errors = values - np.clip(scores[:, 0], self.low, self.high)
        cut = np.clip(np.where(np.isnan(errors), 0.0, errors) / self.largest, -1.0, 1.0)
        return np.column_stack([np.ones(len(cut)), cut])

    def offset(self, sums: np.ndarray, deviation: float) -> np.ndarray:
        """See `Means`: the mean error in units of targets, shrunk where noise may have made it."""
        total, errors = sums
        if total < ENOUGH * deviation:
            return np.zeros(1)
        errors = shrunk(sums[1:], deviation, self.doubted)
        return self.largest * np.clip(errors / total, -1.0, 1.0)


@dataclass(frozen=True)
class CountMean(Means):
    """The mean of counts, which the exponentials of the scores predict.

    Parameters
    ----------
    largest : float
        Bound of targets, which are from 0 on, and of predictions.

    Notes
    -----
    **Guarantees.** A row of the target y and the prediction m, both in [0, 1] in units of `largest`, adds (m, y - m),
    whose norm is at most sqrt(2): its square is convex in y and in m, and at most 2 where both are 0 or 1.
    """

    largest: float

    row_limit = math.sqrt(2.0)
    width = 2

    def vectors(self, scores: np.ndarray, values: np.ndarray) -> np.ndarray:
        """See `Means`. A score that is NaN predicts a count of 0."""
        with np.errstate(over="ignore"):
            predicted = np.exp(scores[:, 0])
        predicted = np.clip(np.where(np.isnan(predicted), 0.0, predicted) / self.largest, 0.0, 1.0)
        return np.column_stack([predicted, np.clip(values / self.largest, 0.0, 1.0) - predicted])

    def offset(self, sums: np.ndarray, deviation: float) -> np.ndarray:
        """See `Means`: the logarithm of the ratio of the means."""
        if sums[0] < ENOUGH * deviation:
            return np.zeros(1)
        ratio = 1.0 + shrunk(sums[1:], deviation, doubted=2.0) / sums[0]
        return np.log(np.clip(ratio, 1.0 / _MOST, _MOST))


def shrunk(values: np.ndarray, deviation: float, doubted: float = 1.0) -> np.ndarray:
    """Return noisy values, moved towards 0, which they are within `doubted` standard deviations of the noise."""
    doubt = doubted * deviation
    return values * np.maximum(0.0, 1.0 - np.square(doubt / np.where(values == 0.0, doubt, values)))
