"""How good synthetic rows are, for the eyes of whoever owns the real ones.

All but `inception_score` read real rows, and none of it is paid for: what they return must not be published along with
the synthetic rows. They say so by a `PrivacyLeakWarning`.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, special, stats
from sklearn.base import clone
from sklearn.metrics import get_scorer
from sklearn.neighbors import NearestNeighbors

from skdp._checks.cells import NUMBER, numbers_of, values_of
from skdp._checks.leak_setting import report_leak
from skdp._checks.parameters import check_count, read_real, show
from skdp._checks.table import CellValues, Table, as_keys
from skdp._typing import Doubles
from skdp.synthesis.marginals.column_levels import Levels
from skdp.synthesis.marginals.contingency_tables import count

_MOST_SETS = 500
_SQUARED = 1e150  # squares of larger features, summed, may be infinite


def marginal_error(
    real: Any,
    synthetic: Any,
    order: int = 2,
    *,
    bins: Any = 16,
    max_sets: int | None = None,
    random_state: int = 0,
) -> float:
    """Mean total variation between the marginals of real and of synthetic rows.

    For each set of `order` columns, half the sum of the absolute differences between the shares of rows in its cells.
    This reads the real rows, is not paid for, and warns of it.

    Parameters
    ----------
    real : table of shape (n, d)
        Rows of frames or arrays. Private.
    synthetic : table of shape (m, d)
        Rows with the same columns, in the same order.
    order : int, default=2
        Number of columns of a marginal.
    bins : int or sequence of (sequence of float or None), default=16
        Numbers and dates with more distinct values than this are cut into this many bins of about equal mass in the
        real rows. Or the ascending inner edges of the bins of each column, of dates in days since 1970; None for a
        column whose values are compared as they are.
    max_sets : int or None, default=None
        Largest number of sets that are looked at; of more, this many are drawn at random. If None, all pairs, and 500
        sets of other orders.
    random_state : int, default=0
        Seed of that draw.

    Returns
    -------
    error : float
        From 0, equal, to 1.

    Warns
    -----
    PrivacyLeakWarning
        Always: the result tells of the real rows. Under ``config_context(on_leak="raise")`` it is raised.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from skdp.synthesis.metrics import marginal_error
    >>> X = np.random.default_rng(0).integers(0, 2, (1000, 3))
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     marginal_error(X, X)
    0.0
    """
    _report_reading("marginal_error")
    check_count("order", order, remedy="choose a whole number of columns, such as 2")
    (one, other), levels = _as_levels(bins, real, synthetic)
    d = len(levels)
    if order > d:
        raise ValueError(f"order={order} with {d} columns: choose at most {d}.")
    sets = list(itertools.combinations(range(d), order)) if math.comb(d, order) <= 10**6 else []
    most = max_sets if max_sets is not None else (len(sets) if order == 2 and sets else _MOST_SETS)
    check_count("max_sets", most, remedy="choose a whole number above 0, or None")
    if not sets or len(sets) > most:
        rng = np.random.default_rng(random_state)
        sets = [tuple(sorted(rng.choice(d, order, replace=False).tolist())) for _ in range(most)]
    return float(np.mean([_total_variation(one, other, each, levels) for each in sets]))


def _total_variation(one: list[Levels], other: list[Levels], columns: tuple[int, ...], levels: list[int]) -> float:
    """Return half the sum of the absolute differences between shares, in memory for the rows or for the cells."""
    n, m = len(one[0]), len(other[0])
    if math.prod(levels[j] for j in columns) <= n + m:
        shares = count(one, columns, levels) / n - count(other, columns, levels) / m
    else:
        place = np.zeros(n + m, np.int64)
        for j in columns:  # combinations that occur are numbered anew: products of many levels fit into no integer
            place = place * levels[j] + np.concatenate([one[j], other[j]])
            place = np.unique(place, return_inverse=True)[1].ravel()
        size = int(place.max()) + 1
        shares = np.bincount(place[:n], minlength=size) / n - np.bincount(place[n:], minlength=size) / m
    return min(1.0, 0.5 * float(np.abs(shares).sum()))


def train_on_synthetic_test_on_real(
    estimator: Any, synthetic: tuple[Any, Any], real: tuple[Any, Any], *, scoring: Any = "roc_auc"
) -> float:
    """Score on real rows of a copy of an estimator that is trained on synthetic ones.

    This reads the real rows, is not paid for, and warns of it.

    Parameters
    ----------
    estimator : estimator instance
        It is cloned. A pipeline may come first with what turns rows into numbers.
    synthetic : (X, y)
        Synthetic rows and their labels, as ``sample`` returns them.
    real : (X, y)
        Real rows and labels that the generator was not fitted to. Private.
    scoring : str or callable, default="roc_auc"
        What `sklearn.metrics.get_scorer` takes.

    Returns
    -------
    score : float
        Score of the trained copy on the real rows.

    Warns
    -----
    PrivacyLeakWarning
        Always: the result tells of the real rows. Under ``config_context(on_leak="raise")`` it is raised.
    """
    _report_reading("train_on_synthetic_test_on_real")
    X, y = _pair("synthetic", synthetic)
    real_X, real_y = _pair("real", real)
    fitted = clone(estimator).fit(X, y)
    scorer = get_scorer(scoring)
    return float(scorer(fitted, real_X, real_y))


class InceptionScore(NamedTuple):
    """What `inception_score` finds.

    Parameters
    ----------
    mean : float
        Mean of the scores of the parts, from 1 to the number of classes.
    std : float
        Their standard deviation.
    """

    mean: float
    std: float


def inception_score(probabilities: Any, n_splits: int = 10) -> InceptionScore:
    """Inception score of synthetic rows, by the probabilities of classes that a judge gives them.

    High where the judge is sure of each row and the rows are of all classes. It reads no real row, so it costs nothing
    and does not warn; but the judge has read some. A score by a judge that was trained on private rows without privacy
    must not be published: train it with a budget of its own, such as a `DPMLPClassifier`, or on public rows.

    Parameters
    ----------
    probabilities : array-like of shape (n_samples, n_classes)
        What ``predict_proba`` of the judge says of the synthetic rows. Each row sums to 1.
    n_splits : int, default=10
        Number of consecutive parts of about equal size that are scored apart. The score of a part is less the smaller
        it is: compare scores of as many rows in as many parts.

    Returns
    -------
    score : InceptionScore
        Mean and standard deviation over the parts.

    Raises
    ------
    ValueError
        The rows are no probabilities, or there are fewer of them than parts.

    Notes
    -----
    The score of a part is ``exp(mean of KL(p(y | x) || p(y)))``, where p(y) is the mean of p(y | x) over the part
    (Salimans et al. 2016, "Improved techniques for training GANs", section 4). That the judge must be private too is
    said by Schwabedal et al. (2020), "Differentially private generation of small images".

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.synthesis.metrics import inception_score
    >>> sure_of_ten_classes = np.tile(np.eye(10), (100, 1))
    >>> round(inception_score(sure_of_ten_classes).mean, 6)
    10.0
    """
    P = np.asarray(probabilities, dtype=np.float64)
    if P.ndim != 2 or not (P >= 0).all() or not np.allclose(P.sum(axis=1), 1.0, atol=1e-4):
        raise ValueError(
            f"probabilities of shape {P.shape} are no probabilities of classes: give what predict_proba returns."
        )
    parts = check_count("n_splits", n_splits, remedy="choose a whole number above 0")
    if len(P) < parts:
        raise ValueError(f"n_splits={parts} with {len(P)} rows: choose at most one part a row.")
    scores = [np.exp(special.rel_entr(part, part.mean(axis=0)).sum(axis=1).mean()) for part in np.array_split(P, parts)]
    return InceptionScore(float(np.mean(scores)), float(np.std(scores)))


def frechet_distance(real: Any, synthetic: Any) -> float:
    """Fréchet distance between Gaussians with the means and covariances of real and of synthetic rows.

    This reads the real rows, is not paid for, and warns of it.

    Parameters
    ----------
    real : array-like of shape (n, d)
        Features of real rows, such as pixels, or what a judge computes of them. Private.
    synthetic : array-like of shape (m, d)
        The same features of synthetic rows.

    Returns
    -------
    distance : float
        Squared Wasserstein distance of the two Gaussians, 0 or more, in squared units of the features.

    Raises
    ------
    ValueError
        The features are not finite numbers, not of the same columns, or of fewer than 2 rows.

    Warns
    -----
    PrivacyLeakWarning
        Always: the result tells of the real rows. Under ``config_context(on_leak="raise")`` it is raised.

    Notes
    -----
    ``|m - m'|² + tr(S + S' - 2 (S^½ S' S^½)^½)`` (Dowson & Landau 1982, "The Fréchet distance between multivariate
    normal distributions"). With features of an Inception network it is the FID of Heusel et al. (2017). It falls with
    the number of rows: compare distances of as many.
    """
    _report_reading("frechet_distance")
    A, B = (_features(name, each) for name, each in (("real", real), ("synthetic", synthetic)))
    if A.shape[1] != B.shape[1]:
        raise ValueError(f"synthetic has {B.shape[1]} columns for {A.shape[1]} of real: give the same features.")
    one, other = (np.atleast_2d(np.cov(each, rowvar=False)) for each in (A, B))
    values, vectors = linalg.eigh(one)
    root = vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
    overlap = np.sqrt(np.maximum(linalg.eigvalsh(root @ other @ root), 0.0)).sum()
    shift = A.mean(axis=0) - B.mean(axis=0)
    return max(0.0, float(shift @ shift + np.trace(one) + np.trace(other) - 2.0 * overlap))


class MembershipCheck(NamedTuple):
    """What `membership_check` finds.

    Parameters
    ----------
    advantage : float
        How much better than chance distances to synthetic rows tell training rows from held-out ones: twice the area
        under the curve, less one. 0 if they do not.
    p_value : float
        Of that area, one-sided, if training rows are no closer (Mann-Whitney).
    n_copies : int
        Synthetic rows whose levels are those of one of the training rows that are looked at.
    expected_copies : float
        The same of held-out rows, scaled to the number of training rows.
    nearest : tuple of float
        Median distance of training and of held-out rows to the nearest synthetic row.
    """

    advantage: float
    p_value: float
    n_copies: int
    expected_copies: float
    nearest: tuple[float, float]


def membership_check(
    train: Any, held_out: Any, synthetic: Any, *, bins: Any = 16, max_rows: int = 2000, random_state: int = 0
) -> MembershipCheck:
    """Tell whether synthetic rows are closer to the rows that were trained on than to others of the same kind.

    A generator that copies its rows is seen here. One that is not seen may leak nevertheless: the guarantee is
    `epsilon_`, and not this. It reads the real rows, is not paid for, and warns of it.

    Parameters
    ----------
    train : table of shape (n, d)
        Rows that the generator was fitted to. Private.
    held_out : table of shape (m, d)
        Rows of the same kind that it has not seen. Private.
    synthetic : table of shape (k, d)
        Synthetic rows.
    bins : int or sequence of (sequence of float or None), default=16
        As for `marginal_error`, by the training rows. The distance of two rows is the number of columns in which their
        levels differ.
    max_rows : int, default=2000
        Training and held-out rows that are looked at, each.
    random_state : int, default=0
        Seed of the choice of these rows.

    Returns
    -------
    check : MembershipCheck
        Figures for the owner's eyes.

    Warns
    -----
    PrivacyLeakWarning
        Always: the result tells of the real rows. Under ``config_context(on_leak="raise")`` it is raised.
    """
    _report_reading("membership_check")
    most = check_count("max_rows", max_rows, remedy="choose a whole number of rows above 0")
    tables, _ = _as_levels(bins, train, held_out, synthetic)
    rng = np.random.default_rng(random_state)
    inside, outside, made = (np.column_stack(columns) for columns in tables)
    inside, outside = (rows[rng.permutation(len(rows))[:most]] for rows in (inside, outside))
    search = NearestNeighbors(n_neighbors=1, metric="hamming", algorithm="brute").fit(made)
    near, far = (made.shape[1] * search.kneighbors(each)[0][:, 0] for each in (inside, outside))
    test = stats.mannwhitneyu(near, far, alternative="less")
    area = 1.0 - float(test.statistic) / (len(near) * len(far))
    return MembershipCheck(
        2.0 * area - 1.0,
        float(test.pvalue),
        _n_copies(made, inside),
        _n_copies(made, outside) * len(inside) / len(outside),
        (float(np.median(near)), float(np.median(far))),
    )


def _n_copies(made: NDArray[Any], rows: NDArray[Any]) -> int:
    """Return how many rows of `made` are among `rows`."""
    known = {row.tobytes() for row in rows}
    return sum(row.tobytes() in known for row in made)


def _as_levels(bins: Any, *tables: Any) -> tuple[list[list[Levels]], list[int]]:
    """Return the columns of each table as levels, and their numbers; the first table decides on bins."""
    read = [Table(table) for table in tables]
    d = read[0].shape[1]
    if any(table.shape[1] != d for table in read):
        shown = " and ".join(str(table.shape[1]) for table in read)
        raise ValueError(f"the tables have {shown} columns: give tables of the same columns, in the same order.")
    if any(table.names != read[0].names and sorted(table.names) == sorted(read[0].names) for table in read):
        raise ValueError("the tables have the same columns in another order: give them in one order.")
    if isinstance(bins, int | np.integer):
        check_count("bins", bins, remedy="choose a whole number, or inner edges, one list a column")
    elif not isinstance(bins, list | tuple) or len(bins) != d:
        raise ValueError(f"bins={show(bins)} is no number: give one, or a list of inner edges for each of {d} columns.")
    columns = [
        _levels_of([table.cells(j) for table in read], bins if isinstance(bins, int | np.integer) else bins[j])
        for j in range(d)
    ]
    return [[column[k] for column, _ in columns] for k in range(len(read))], [size for _, size in columns]


def _levels_of(cells: list[CellValues], bins: Any) -> tuple[list[Levels], int]:
    """Return one column of each table as levels, and how many there are; the last level is that of gaps."""
    kinds = {each.kind for each in cells}
    if bins is not None and kinds in ({"number"}, {"date"}):
        numbers = [each.values for each in cells]  # dates as days
        inner = _inner_edges(numbers[0], int(bins)) if isinstance(bins, int | np.integer) else _given_edges(bins)
        if inner is not None:
            gap = len(inner) + 1
            binned = [np.where(np.isnan(each), gap, np.searchsorted(inner, each, side="right")) for each in numbers]
            return [each.astype(np.int32) for each in binned], gap + 1
    keyed = [as_keys(each) for each in cells]
    index = {key: place for place, key in enumerate(dict.fromkeys(key for _, keys in keyed for key in keys))}
    gap = len(index)
    return [np.array([*(index[key] for key in keys), gap], np.int32)[codes] for codes, keys in keyed], gap + 1


def _inner_edges(values: Doubles, bins: int) -> Doubles | None:
    """Return inner edges of bins of about equal mass; None if the values are few enough to be compared as such."""
    values = values[np.isfinite(values)]
    if len(np.unique(values)) <= bins:
        return None
    return np.unique(np.quantile(values, np.linspace(0.0, 1.0, bins + 1)[1:-1]))


def _given_edges(given: Any) -> Doubles:
    """Return the inner edges of the bins of a column."""
    values = given.tolist() if isinstance(given, np.ndarray) else given
    listed = values if isinstance(values, list | tuple) else [None]
    edges = np.array([math.nan if edge is None else edge for edge in map(read_real, listed)])
    if not np.isfinite(edges).all() or not (np.diff(edges) > 0).all():
        raise ValueError(f"bins holds {show(given)} for a column: give ascending inner edges for each, or None.")
    return edges


def _features(name: str, given: Any) -> Doubles:
    """Return rows of finite numbers; what is wrong is not quoted."""
    kind, rows = numbers_of(values_of(name, given))
    if rows.ndim != 2 or kind != NUMBER or len(rows) < 2 or not (np.abs(rows) < _SQUARED).all():
        raise ValueError(
            f"{name} is no table of finite numbers, below {_SQUARED:g}, with 2 rows or more: give features, one row a "
            "sample."
        )
    return rows.astype(np.float64)


def _pair(name: str, given: Any) -> tuple[Any, Any]:
    if isinstance(given, tuple | list) and len(given) == 2:
        return given[0], given[1]
    raise ValueError(f"{name}={show(given)} is no pair (X, y): give rows and their labels.")


def _report_reading(name: str) -> None:
    report_leak(
        f"{name} reads real rows, and what it returns is not paid for: keep it to those who may see the rows, or give "
        "public rows."
    )


__all__ = [
    "InceptionScore",
    "MembershipCheck",
    "frechet_distance",
    "inception_score",
    "marginal_error",
    "membership_check",
    "train_on_synthetic_test_on_real",
]
