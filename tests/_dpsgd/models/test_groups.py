"""Equal rows are found: against a plain reading, whatever the rows, in linear time, and not where it does not pay."""

import itertools
import math

import numpy as np
import reference
import scipy.sparse as sp
from combinations import over_combinations, over_rows

from skdp._dpsgd.models.duplicate_rows import _Found, find_groups, taken
from skdp._dpsgd.models.one_hot import Blocks, OneHotRows
from skdp.mechanisms.streams import SecretStream

ALL = math.inf


def of_levels(levels, widths):
    blocks = Blocks(tuple(widths))
    codes = blocks.empty_codes(len(levels[0]))
    blocks.encode(levels, codes)
    return OneHotRows(blocks, codes, len(widths))


def table(form, n, seed=0):
    """Rows that repeat, in one of the forms that models take."""
    rng = np.random.default_rng(seed)
    if form in ("bytes", "integers"):
        widths = (3, 2, 300) if form == "integers" else (2, 3, 2, 16, 1)
        return of_levels([rng.integers(0, min(width, 3), n) for width in widths], widths)
    values = rng.integers(0, 2, (n, 5)) * rng.choice([1.0, -0.5], (n, 1))
    if form == "wide integers":
        found = sp.csr_matrix(values)
        found.indices, found.indptr = found.indices.astype(np.int64), found.indptr.astype(np.int64)
        return found
    dtype = np.float32 if "float32" in form else np.float64
    return sp.csr_matrix(values.astype(dtype)) if "sparse" in form else values.astype(dtype)


FORMS = ["float32", "float64", "sparse float32", "sparse float64", "wide integers", "bytes", "integers"]


def keys_of(X, values, weights):
    """What distinguishes each row, as bytes."""
    n = X.shape[0]
    parts = [values] + ([weights] if np.ndim(weights) else [])
    if isinstance(X, OneHotRows):
        rows = [X.codes[:, i].tobytes() for i in range(n)]
    elif isinstance(X, np.ndarray):
        rows = [X[i].tobytes() for i in range(n)]
    else:
        ends = X.indptr
        rows = [
            X.indices[ends[i] : ends[i + 1]].astype(np.int64).tobytes() + b"|" + X.data[ends[i] : ends[i + 1]].tobytes()
            for i in range(n)
        ]
    return [row + b"|" + b"|".join(part[i].tobytes() for part in parts) for i, row in enumerate(rows)]


@over_combinations(form=FORMS, targets=["classes", "numbers", "labels"], weighted=[False, True], n=[1, 5_000])
def test_groups_are_those_of_the_plain_reading(form, targets, weighted, n):
    """Also over several blocks, of more groups than buckets to start with."""
    X, rng = table(form, n), np.random.default_rng(1)
    values = {
        "classes": rng.integers(0, 3, n), "numbers": rng.integers(0, 4_000, n) / 2.0,
        "labels": rng.integers(0, 2, (n, 2)).astype(np.float32),
    }[targets]  # fmt: skip
    weights = rng.choice([0.0, 1.0, 2.0], n) if weighted else 1.0
    groups, keys = find_groups(X, values, weights, ALL), keys_of(X, values, weights)
    first, copies = reference.groups_of_rows(keys)
    assert groups.first.tolist() == first
    assert groups.copies.tolist() == copies
    distinct = taken(X, groups.first, X.dtype)
    assert distinct.shape == (len(groups.first), X.shape[1])
    own = weights[groups.first] if weighted else weights
    assert keys_of(distinct, values[groups.first], own) == list(dict.fromkeys(keys))


PAIRS = {
    "the last column": (lambda X, y, w: X.__setitem__((1, -1), 9.0)),
    "the last bit of a value": (lambda X, y, w: X.__setitem__((1, 0), np.nextafter(X[0, 0], X.dtype.type(9)))),
    "the sign of a zero": (lambda X, y, w: X.__setitem__((1, 1), -X[1, 1])),
    "the label": (lambda X, y, w: y.__setitem__(1, 1)),
    "the weight": (lambda X, y, w: w.__setitem__(1, 0.0)),
    "nothing": (lambda X, y, w: None),
}


@over_combinations(sparse=[False, True], dtype=[np.float32, np.float64], change=PAIRS)
def test_rows_that_differ_in_one_thing_are_two_groups(change, dtype, sparse):
    X, y, w = np.full((3, 4), 0.25, dtype), np.zeros(3, np.int64), np.ones(3, dtype)
    X[:, 1] = 0.0
    PAIRS[change](X, y, w)
    rows = sp.csr_matrix(X) if sparse else X
    unseen = change == "nothing" or (change == "the sign of a zero" and sparse)  # no zero is stored
    assert find_groups(rows, y, w, ALL).copies.tolist() == ([3] if unseen else [2, 1])


def test_sparse_rows_of_which_one_begins_like_the_other_are_two_groups():
    """Also where a longer row has zeros in the place of what follows the shorter one."""
    X = sp.csr_matrix(np.array([[1.0, 0, 0], [1.0, 2.0, 0], [1.0, 0, 0], [0, 0, 0]]))
    assert find_groups(X, np.zeros(4), 1.0, ALL).copies.tolist() == [2, 1, 1]
    stored = sp.csr_matrix((np.array([0.0, 0.0, 0.0]), np.array([0, 0, 1]), np.array([0, 1, 3, 3])), shape=(3, 2))
    assert find_groups(stored, np.zeros(3), 1.0, ALL).copies.tolist() == [1, 1, 1]
    assert find_groups(sp.csr_matrix((3, 4)), np.array([0, 1, 0]), 1.0, ALL).copies.tolist() == [2, 1]  # no entry


# --- linear time, whatever the rows ---

POWERS = [1 << k for k in range(32)]
ADVERSARIES = {
    "one sum of words for all": np.array(list(itertools.permutations([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]))),
    "powers of two": np.array([[a, b] for a in POWERS for b in POWERS] * 3, np.uint32).view(np.float32),
    "high bits alone": (np.arange(4000, dtype=np.uint64)[:, None] << np.uint64(48)).view(np.float64),
    "low bits alone": np.arange(4000, dtype=np.uint64)[:, None].view(np.float64),
}


@over_rows("name", ADVERSARIES)
def test_no_rows_share_buckets_by_choice(name, monkeypatch):
    """The number of pairs of rows that share a bucket is as small as if each pair did with the same probability.

    The keys make each pair share a bucket with probability 1 / (number of buckets). Pairs are not independent, so by
    Markov's inequality at most a quarter of all keys give four times the expected number. More than 25 of 40 keys do
    with a probability below 1.2e-7, and in one of the four cases below 1e-6.
    """
    made, begin, n_many = [], _Found.__init__, 0
    monkeypatch.setattr(_Found, "__init__", lambda self, *given: (made.append(self), begin(self, *given))[1])
    rows = ADVERSARIES[name]
    for stream in [SecretStream.from_random_state(seed, "test") for seed in range(40)]:
        with monkeypatch.context() as patch:
            patch.setattr(SecretStream, "from_random_state", lambda *given, stream=stream: stream)
            find_groups(rows, np.zeros(len(rows)), 1.0, ALL)
        found = made[-1]
        sizes = np.bincount(found._hashes[: found.n_groups] % len(found._heads))
        assert found.n_groups == len(np.unique(rows, axis=0))
        n_many += (sizes * (sizes - 1)).sum() >= 4 * found.n_groups * (found.n_groups - 1) / len(found._heads)
    assert n_many <= 25


def test_keys_come_from_the_operating_system(monkeypatch):
    """Not from the seed of the run, which others may know; and groups do not depend on them."""
    X = np.ones((3, 2))
    drawn, words = [], SecretStream.words

    def recorded(self, count):
        drawn.append(words(self, count))
        return drawn[-1]

    monkeypatch.setattr(SecretStream, "words", recorded)
    for _ in range(2):
        find_groups(X, np.zeros(3), 1.0, ALL)
    assert len(drawn[0]) == 7  # of four words of the row, two of the target, and one more
    assert not (drawn[0] == drawn[1]).any()


# --- where it pays ---


@over_rows("n_groups", [1000, 1001])
def test_more_groups_than_pay_are_no_groups(n_groups):
    X = np.repeat(np.arange(n_groups, dtype=np.float64), 8)[: 8 * 1000, None]
    X = np.concatenate([X, X[:1].repeat(8 * 1000 - len(X), axis=0)])
    if n_groups == 1001:
        X[-1] = -1.0
    groups = find_groups(X, np.zeros(8000), 1.0, 8000.0)
    assert (groups is None) == (n_groups == 1001)
