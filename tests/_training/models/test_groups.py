"""Equal rows are found: against a plain reading, whatever the rows, in linear time, and not where it does not pay."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from combinations import over_combinations, over_rows

import skdp._training.models.equal_rows
from skdp._training.models.equal_rows import GroupLimit, find_groups, taken
from skdp._training.models.one_hot import Blocks, OneHotRows
from skdp.mechanisms.sampling import FullBatch, PoissonSampling
from skdp.mechanisms.streams import SecretStream

ALL = GroupLimit.none()


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


def assert_groups(groups, keys):
    first, copies = reference.groups_of_rows(keys)
    assert groups.first.tolist() == first
    assert groups.copies.tolist() == copies


@over_combinations(form=FORMS, targets=["classes", "numbers", "labels"], weighted=[False, True], n=[1, 700])
def test_groups_are_those_of_the_plain_reading(form, targets, weighted, n):
    X, rng = table(form, n), np.random.default_rng(1)
    values = {
        "classes": rng.integers(0, 3, n), "numbers": rng.choice([0.5, -0.5], n),
        "labels": rng.integers(0, 2, (n, 2)).astype(np.float32),
    }[targets]  # fmt: skip
    weights = rng.choice([0.0, 1.0, 2.0], n) if weighted else 1.0
    groups = find_groups(X, values, weights, ALL)
    assert_groups(groups, keys_of(X, values, weights))
    assert groups.copies.sum() == n
    distinct = taken(X, groups.first, X.dtype)
    assert distinct.shape == (len(groups.first), X.shape[1])
    own = weights[groups.first] if weighted else weights
    assert keys_of(distinct, values[groups.first], own) == list(dict.fromkeys(keys_of(X, values, weights)))


@pytest.mark.compiled  # many rows
@over_rows("form", ["float64", "sparse float32", "bytes"])
def test_many_groups_over_many_blocks(form):
    """More groups than buckets to start with, and rows that come again long after."""
    n = 30_000
    rng = np.random.default_rng(2)
    values = rng.integers(0, 9_000, n)
    assert_few_groups(table(form, n), values, n)


def assert_few_groups(X, values, n):
    groups = find_groups(X, values, 1.0, ALL)
    seen = {}
    for number, key in enumerate(keys_of(X, values, 1.0)):
        seen.setdefault(key, []).append(number)
    assert groups.first.tolist() == [numbers[0] for numbers in seen.values()]
    assert groups.copies.tolist() == [len(numbers) for numbers in seen.values()]
    assert 9_000 < len(groups.first) < n


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


@over_rows("dtype", [np.float32, np.float64])
def test_sparse_rows_with_no_entry_at_all_are_one_group(dtype):
    """A search that failed here, and not where one row has an entry, would tell two neighbours apart."""
    y, X = np.array([0, 1, 0]), sp.csr_matrix((3, 4), dtype=dtype)
    assert find_groups(X, y, 1.0, ALL).copies.tolist() == [2, 1]
    assert find_groups(X, y, np.ones(3, dtype), ALL).copies.tolist() == [2, 1]


# --- linear time, whatever the rows ---


def buckets(found):
    """Sizes of the chains."""
    sizes = []
    for head in found._heads:
        sizes.append(0)
        while head >= 0:
            sizes[-1] += 1
            head = found._following[head]
    return np.array(sizes)


def found_in(X, monkeypatch):
    made, init = [], skdp._training.models.equal_rows._Found.__init__

    def recorded(self, *arguments):
        made.append(self)
        init(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(skdp._training.models.equal_rows._Found, "__init__", recorded)
        find_groups(X, np.zeros(len(X)), 1.0, ALL)
    return made[0]


def permutations(dtype):
    """Rows of the same numbers in every order: one sum of words for all."""
    return np.array(list(itertools.permutations([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]))).astype(dtype)


ADVERSARIES = {
    "permutations": permutations(np.float64),
    "permutations in float32": permutations(np.float32),
    "words that differ by powers of two": np.array(
        [[1 << k, 1 << j] for k in range(32) for j in range(32)] * 3, np.uint32
    ).view(np.float32),
    "high bits alone": (np.arange(4000, dtype=np.uint64)[:, None] << np.uint64(48)).view(np.float64),
    "low bits alone": np.arange(4000, dtype=np.uint64)[:, None].view(np.float64),
    "an arithmetic progression": np.arange(4000.0)[:, None] * np.ones((1, 3)),
    "sums that agree": np.array([[k, 4000 - k] for k in range(4000)], np.uint32).view(np.float32),
}


@pytest.mark.parametrize("name", ADVERSARIES)
def test_nobody_can_choose_rows_that_share_a_bucket(name, monkeypatch):
    """The number of pairs of rows that share a bucket is as small as if each pair did with the same probability.

    The keys make each pair share a bucket with probability 1 / (number of buckets). Pairs are not independent, so by
    Markov's inequality at most a quarter of all keys give four times the expected number. More than 25 of 40 keys do
    with a probability below 1.2e-7, and in one of the seven cases below 1e-6.
    """
    n_many = 0
    for stream in [SecretStream.from_random_state(seed, "test") for seed in range(40)]:
        monkeypatch.setattr(SecretStream, "from_random_state", lambda *given, stream=stream: stream)
        found = found_in(ADVERSARIES[name], monkeypatch)
        sizes = buckets(found)
        assert sizes.sum() == found.n_groups == len(np.unique(ADVERSARIES[name], axis=0))
        expected = found.n_groups * (found.n_groups - 1) / len(sizes)
        n_many += (sizes * (sizes - 1)).sum() >= 4 * expected
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


@over_rows(
    ("n", "sampling", "limit"),
    [
        (4095, FullBatch(), None), (4096, FullBatch(), 512.0), (100_000, FullBatch(), 12_500.0),
        (100_000, PoissonSampling(0.04), None), (100_000, PoissonSampling(0.05), 625.0),
    ],
)  # fmt: skip
def test_an_eighth_of_a_lot_may_be_groups(n, sampling, limit):
    found = GroupLimit.where_it_pays(n, sampling)
    assert (None if found is None else found.most(n, 10)) == limit


def test_an_eighth_of_the_rows_that_were_read_may_be_groups():
    """But of 2**25 words at least, as rows that repeat are new at first."""
    limit = GroupLimit.where_it_pays(10**8, FullBatch())
    assert limit.most(1000, 32) == limit.most(2**20, 32) == 2**20 / 8
    assert limit.most(2**21, 32) == 2**21 / 8
    assert limit.most(10**8, 32) == 10**8 / 8
    assert GroupLimit.none().most(1, 32) == np.inf


@over_rows("n_groups", [1000, 1001])
def test_more_groups_than_pay_are_no_groups(n_groups):
    X = np.repeat(np.arange(n_groups, dtype=np.float64), 8)[: 8 * 1000, None]
    X = np.concatenate([X, X[:1].repeat(8 * 1000 - len(X), axis=0)])
    if n_groups == 1001:
        X[-1] = -1.0
    groups = find_groups(X, np.zeros(8000), 1.0, GroupLimit.where_it_pays(8000, FullBatch()))
    assert (groups is None) == (n_groups == 1001)


def test_the_search_ends_where_no_row_repeats(monkeypatch):
    """It reads an eighth of the rows and what is left of a block, or less where rows are many."""
    n = 200_000
    X, read = np.arange(n, dtype=np.float64)[:, None], []
    add = skdp._training.models.equal_rows._Found.add

    def recorded(self, packed, ends, first_row):
        read.append(len(ends) - 1)
        add(self, packed, ends, first_row)

    monkeypatch.setattr(skdp._training.models.equal_rows._Found, "add", recorded)
    limit = GroupLimit.where_it_pays(n, FullBatch())
    assert find_groups(X, np.zeros(n), 1.0, limit) is None
    assert n / 8 < sum(read) < n / 8 + 4097
    read.clear()
    monkeypatch.setattr(skdp._training.models.equal_rows, "_WORDS_READ", 4 * 40_000)
    assert find_groups(X, np.zeros(n), 1.0, limit) is None
    assert 5_000 < sum(read) <= 2 * 4096


def test_a_common_weight_distinguishes_no_row():
    X = np.ones((5, 2))
    assert find_groups(X, np.zeros(5), 1.0, ALL).copies.tolist() == [5]
    assert find_groups(X, np.zeros(5), np.full(5, 3.0), ALL).copies.tolist() == [5]


def test_rows_are_only_read():
    X, y = np.ones((5, 2)), np.zeros(5)
    X.setflags(write=False)
    y.setflags(write=False)
    assert find_groups(X, y, 1.0, ALL).copies.tolist() == [5]
