"""`private_train_test_split`: two parts of a data set, drawn once by a key that the accountant stores."""

from __future__ import annotations

import hmac
import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skdp._checks.groups import GROUP, ROW, keys_of_units, read_units, split_labels
from skdp._checks.parameters import check_real, without_removed
from skdp._checks.rows import indexable, table_shape, take_rows
from skdp._checks.sources import reject_rows_elsewhere
from skdp.accounting import PrivacyAccountant
from skdp.accounting.ledger import resolve_accountant
from skdp.accounting.ledger.balance import PARTS
from skdp.mechanisms.streams import SecretStream

_OUTCOMES = 2.0**64


@dataclass(frozen=True, eq=False)
class Part:
    """One part of a data set, and the accountant of its fits and scores.

    Attributes
    ----------
    X : {array-like, sparse matrix, dataframe}
        Private rows, in their original order and type.
    y : array-like or None
        Private labels or targets.
    groups : array-like or None
        Private group identifiers.
    sample_weight : array-like or None
        Private weights.
    accountant : PrivacyAccountant
        Accountant of this part, a partition of the accountant that was split.
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
    """Split private rows into a training part and a test part with one accountant each.

    The assignment of a row, or of all rows of a group, depends on its index or group identifier and on a secret key,
    not on other values. The accountant stores the key, so that a second call returns the same parts, with a budget file
    also in another process. Each part contains its own records only, so the accountant adds the larger privacy cost of
    the two parts, not their sum (parallel composition). See ``docs/evaluation.md``.

    Parameters
    ----------
    X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
        All private rows, in memory. Without `groups`, they must be in the same order in each call.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
        Private labels or targets.
    accountant : PrivacyAccountant, str or path-like
        Accountant of the whole data set, or the path of its budget file. An accountant in memory keeps the parts for
        its lifetime.
    test_size : float, default=0.25
        Fraction of the rows, or expected fraction of the groups, in the test part.
    groups : array-like of shape (n_samples,), str or None, default=None
        Private group identifier of each row, or the name of a column of `X`, which is then not a feature. Required if
        the unit of the accountant is a group, otherwise not allowed. A group stays in the same part if rows are added
        or reordered, because the part depends only on the identifier and the key.
    sample_weight : array-like of shape (n_samples,), default=None
        Private weights.

    Returns
    -------
    train, test : Part
        Both have the attributes `X`, `y`, `groups`, `sample_weight` and `accountant`.

    Raises
    ------
    ValueError
        The accountant has another split, for example of a table of another length. It is also raised if the lengths of
        the arrays differ, if `groups` is missing for a group-level accountant, or if `groups` is set for a row-level
        accountant.
    BudgetFileError
        The budget file does not exist, cannot be read or written, or is not trusted.

    Notes
    -----
    **Guarantees.**

    - Changing a record, within the neighboring relation of the charges to a part, does not change the part of any other
      record.
    - An accountant has one split. No call, in any process, assigns a group to both parts.

    Without `groups`, the test part has exactly the fraction `test_size` of the rows, rounded to an integer. Charges to
    a part are then rejected under ``add_remove``, because removing a row would move later rows to another part. With
    `groups`, the part of each group is drawn independently. Charges to a part are then rejected under ``replace_one``,
    because a group could be replaced by one of the other part. A changed order of the rows is not detected, because the
    accountant stores nothing about their values.

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
    share = check_real("test_size", test_size, above=0, below=1, constraint="a number in (0, 1), such as 0.25")
    shared = resolve_accountant(accountant)
    if shared is None:
        raise TypeError("`accountant` must be a skdp.PrivacyAccountant or the path of a budget file, got None.")
    reject_rows_elsewhere("private_train_test_split", X)
    X, groups = split_labels(X, groups)
    given = {"X": X, "y": y, "groups": groups, "sample_weight": sample_weight}
    columns = {name: None if each is None else indexable(each) for name, each in given.items()}
    n_rows = table_shape(columns["X"])[0]
    for name, column in columns.items():
        found = n_rows if column is None else int(column.shape[0]) if hasattr(column, "shape") else len(column)
        if found != n_rows:
            raise ValueError(f"`{name}` must have one value per row ({n_rows}), got {found}.")
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
    """Whether each row is in the test part, by a hash of its group identifier under the key (HMAC-SHA-256)."""
    units = read_units(groups, n_rows)
    key = accountant.keep_split(share, groups=units.name, unit=GROUP).key
    texts = (each.encode("utf-8", "backslashreplace") for each in keys_of_units(groups, units))
    coins = (hmac.digest(key, text, "sha256") for text in texts)
    tested = [int.from_bytes(coin[:8], "big") < share * _OUTCOMES for coin in coins]
    return np.array(tested, bool)[units.codes]


def n_tested(test_size: float, n: int, unit: str = ROW) -> int:
    """Number of test rows or groups of `n`, at least one and at most n - 1."""
    count = round(test_size * n)
    if not 0 < count < n:
        size = "n_samples" if unit == ROW else "n_groups"
        raise ValueError(
            f"`test_size` must leave at least one {unit} for training and one for testing, got {test_size!r} with "
            f"{size}={n}. Change `test_size`, or use more {unit}s."
        )
    return count


def draw_by_number(stream: SecretStream, n: int, count: int) -> np.ndarray:
    """Mark `count` of `n` rows or groups, drawn by their index."""
    drawn = np.zeros(n, bool)
    drawn[np.argsort(stream.words(n), kind="stable")[:count]] = True
    return drawn


def draw_tested(stream: SecretStream, n: int, test_size: float, adjacency: str, unit: str = ROW) -> np.ndarray:
    """Mark the rows or groups of the test part, by index, or under add_remove independently.

    The marks do not depend on any record. Drawn independently, an absent record does not change the marks of others.
    """
    if adjacency == "add_remove":
        return stream.words(n) < np.uint64(test_size * _OUTCOMES)
    return draw_by_number(stream, n, n_tested(test_size, n, unit))


def draw_folds(stream: SecretStream, n: int, n_folds: int, adjacency: str) -> np.ndarray:
    """Return the fold of each of `n` rows or groups, by its index, or under add_remove drawn independently.

    By index, fold j has ``size_of_fold(n, n_folds, j)`` of them, independent of their values. Drawn independently, an
    absent record does not change the folds of others.

    Groups are numbered in the order of their identifiers. A group that replaces another one under its own identifier
    can thus have another number, and so can the groups between both. Let p map the numbers of one table to those of the
    other. All orders of n numbers are equally likely, so folds f and f after p have the same distribution. For matched
    draws the new group has the fold of the group that it replaces, and all others keep theirs. Any bound that holds for
    each pair of matched draws holds for the mixture over them (joint convexity).
    """
    words = stream.words(n)
    if adjacency == "add_remove":
        return ((words >> np.uint64(32)) * np.uint64(n_folds) >> np.uint64(32)).astype(np.int64)
    ranks = np.empty(n, np.int64)
    ranks[np.argsort(words, kind="stable")] = np.arange(n)
    return ranks * n_folds // n


def size_of_fold(n: int, n_folds: int, fold: int) -> int:
    """Number of rows or groups in a fold that is drawn by index."""
    return -(-n * (fold + 1) // n_folds) + -n * fold // n_folds
