"""`private_train_test_split`: two parts of a data set, drawn once by a key that its accountant keeps."""

from __future__ import annotations

import hmac
import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skdp._checks.groups import GROUP, ROW, keys_of_units, read_units, split_labels
from skdp._checks.parameters import check_real, without_removed
from skdp._checks.rows import indexable, table_shape, take_rows
from skdp._checks.sources import refuse_rows_elsewhere
from skdp.accounting import PrivacyAccountant
from skdp.accounting.ledger import resolve_accountant
from skdp.accounting.ledger.balance import PARTS
from skdp.mechanisms.streams import SecretStream

_OUTCOMES = 2.0**64


@dataclass(frozen=True, eq=False)
class Part:
    """One part of a data set, and the accountant that its fits and scores are charged to.

    Attributes
    ----------
    X : {array-like, sparse matrix, dataframe}
        Private rows, in the order in which they came, of the type that they had.
    y : array-like or None
        Private labels or targets.
    groups : array-like or None
        Private labels of units.
    sample_weight : array-like or None
        Private weights.
    accountant : PrivacyAccountant
        Of this part: the partition of the accountant that was split.
    """

    X: Any = field(repr=False)
    y: Any = field(repr=False)
    groups: Any = field(repr=False)
    sample_weight: Any = field(repr=False)
    accountant: PrivacyAccountant


@without_removed
def private_train_test_split(
    X: Any,
    y: Any = None,
    *,
    accountant: PrivacyAccountant | str | os.PathLike[str],
    test_size: float = 0.25,
    groups: Any = None,
    sample_weight: Any = None,
) -> tuple[Part, Part]:
    """Split private rows into a part to train on and a part to test on, once and for all.

    Each row, or all rows of a unit, are in one part by a number and a key, never by what they say. The key is made once
    and kept in the ledger: with a ledger in a file a second call gives the same parts, in any process. What is charged
    to the ledger of a part concerns its units alone, so that one ledger prices both: what all rows paid, and then the
    larger of the two parts.

    Parameters
    ----------
    X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
        Private rows, in memory: all of them, and without `groups` in the same order each time.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
        Private labels or targets.
    accountant : PrivacyAccountant, str or path-like
        Ledger of the whole data set, or the path of its file. One in memory keeps the parts as long as it lives.
    test_size : float, default=0.25
        Share of the rows, or expected share of the units, in the part to test on.
    groups : array-like of shape (n_samples,), str or None, default=None
        Private label of the unit of each row, or the name of a column of `X`, which is no feature then. Needed by a
        ledger of units, and taken by no other. A unit is in one part, as its label says: also in a table that has
        grown, or is in another order.
    sample_weight : array-like of shape (n_samples,), default=None
        Private weights.

    Returns
    -------
    train, test : Part
        Each with `X`, `y`, `groups`, `sample_weight` and `accountant`.

    Raises
    ------
    ValueError
        If the ledger keeps another split, such as that of a table of another length; if it is one of units and there
        are no `groups`, or the other way round; if lengths differ.
    BudgetFileError
        If there is no such file, or it cannot be read, written or trusted.

    Notes
    -----
    **Guarantees.**

    - A record that changes, within the neighbouring relation of the charges to a part, moves no other to another part.
    - A ledger takes one split. No call, in any process, puts a unit into both parts.

    Without `groups` exactly `test_size` of the rows, to the nearest whole number, are tested on. Charges to a part are
    refused under ``add_remove`` then, where a row that leaves would move all after it. With `groups` each unit has a
    coin of its own, and charges to a part are refused under ``replace_one``, where a unit may be exchanged for one of
    the other part. The proof is in `skdp.accounting.ledger.balance`. Rows in another order cannot be noticed: the
    ledger keeps nothing of what they say.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLogisticRegression, PrivacyAccountant
    >>> from skdp.model_selection import private_train_test_split
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(5000, 4))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> accountant = PrivacyAccountant(epsilon=1.0, delta=1e-5)
    >>> train, test = private_train_test_split(X, y, accountant=accountant)
    >>> model = DPLogisticRegression(epsilon=1.0, classes=[0, 1], accountant=train.accountant).fit(train.X, train.y)
    >>> test.X.shape, test.accountant.remaining()
    ((1250, 4), 1.0)
    """
    share = check_real("test_size", test_size, above=0, below=1, remedy="choose a share of the rows, such as 0.25")
    shared = resolve_accountant(accountant)
    if shared is None:
        raise TypeError("accountant=None keeps no split: pass a skdp.PrivacyAccountant, or the path of a budget file.")
    refuse_rows_elsewhere("private_train_test_split", X)
    X, groups = split_labels(X, groups)
    given = {"X": X, "y": y, "groups": groups, "sample_weight": sample_weight}
    columns = {name: None if each is None else indexable(each) for name, each in given.items()}
    n_rows = table_shape(columns["X"])[0]
    for name, column in columns.items():
        found = n_rows if column is None else int(column.shape[0]) if hasattr(column, "shape") else len(column)
        if found != n_rows:
            raise ValueError(f"{name} has {found} rows where X has {n_rows}: give one for each row.")
    # Rows are drawn by their number, units by a coin of their label. Both follow from a key that the accountant keeps.
    if groups is None:
        count = n_tested(share, n_rows)
        key = shared.keep_split(share, n_rows=n_rows, unit=ROW).key
        tested = draw_by_number(SecretStream(key), n_rows, count)
    else:
        tested = _tested_units(shared, share, groups, n_rows)

    # Each part has an accountant of its own, a partition of the shared one.
    def part(marked: np.ndarray, name: str) -> Part:
        rows = np.flatnonzero(marked)
        taken = {name: each if each is None else take_rows(each, rows) for name, each in columns.items()}
        return Part(**taken, accountant=shared.partition(name))

    return part(~tested, PARTS[0]), part(tested, PARTS[1])


def _tested_units(accountant: PrivacyAccountant, share: float, groups: Any, n_rows: int) -> np.ndarray:
    """Which rows are tested on, by the coin of their unit: a hash of its label under the key (HMAC-SHA-256)."""
    units = read_units(groups, n_rows)
    key = accountant.keep_split(share, groups=units.name, unit=GROUP).key
    texts = (each.encode("utf-8", "backslashreplace") for each in keys_of_units(groups, units))
    coins = (hmac.digest(key, text, "sha256") for text in texts)
    tested = [int.from_bytes(coin[:8], "big") < share * _OUTCOMES for coin in coins]
    return np.array(tested, bool)[units.codes]


def n_tested(test_size: float, n: int, unit: str = ROW) -> int:
    """How many of `n` rows or units are tested on, at least one, and not all."""
    count = round(test_size * n)
    if not 0 < count < n:
        size = "n_samples" if unit == ROW else "n_groups"
        raise ValueError(
            f"test_size={test_size!r} leaves no {unit} to train or to score of {size}={n}: "
            f"choose another share, or give more {unit}s."
        )
    return count


def draw_by_number(stream: SecretStream, n: int, count: int) -> np.ndarray:
    """Mark `count` of `n` rows or units, drawn by their number."""
    drawn = np.zeros(n, bool)
    drawn[np.argsort(stream.words(n), kind="stable")[:count]] = True
    return drawn


def draw_tested(stream: SecretStream, n: int, test_size: float, adjacency: str, unit: str = ROW) -> np.ndarray:
    """Mark the rows or units that are tested on, by number, or under add_remove by a coin of each.

    No record has a say in it. By coins, one that is not there moves no other.
    """
    if adjacency == "add_remove":
        return stream.words(n) < np.uint64(test_size * _OUTCOMES)
    return draw_by_number(stream, n, n_tested(test_size, n, unit))


def draw_folds(stream: SecretStream, n: int, n_folds: int, adjacency: str) -> np.ndarray:
    """Return the fold of each of `n` rows or units, by its number, or under add_remove by a coin of its own.

    By number, fold j has ``size_of_fold(n, n_folds, j)`` of them, whatever they say. By coins, one that is not there
    moves no other.

    Units are numbered in the order of their labels. A unit that replaces another one under a label of its own can thus
    have another number, and so can the units between both. Let p map the numbers of one table to those of the other.
    All orders of n numbers are equally likely, so folds f and f after p have the same distribution. For matched draws
    the new unit has the fold of the unit that it replaces, and all others keep theirs. What holds for each pair of
    matched draws holds for the mixture over them (joint convexity).
    """
    words = stream.words(n)
    if adjacency == "add_remove":
        return ((words >> np.uint64(32)) * np.uint64(n_folds) >> np.uint64(32)).astype(np.int64)
    ranks = np.empty(n, np.int64)
    ranks[np.argsort(words, kind="stable")] = np.arange(n)
    return ranks * n_folds // n


def size_of_fold(n: int, n_folds: int, fold: int) -> int:
    """Number of rows or units in a fold that is drawn by number."""
    return -(-n * (fold + 1) // n_folds) + -n * fold // n_folds
