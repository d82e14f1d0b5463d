"""Rows on many machines: which collections are accepted, what is sent, and that the model is that of one machine."""

import operator
import pickle
from functools import partial

import cloudpickle
import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from combinations import over_combinations, over_rows
from dask._task_spec import List, Task, TaskRef
from dask.array import chunk
from interrupts import interrupt_after

from skdp import (
    DPPCA,
    AddRemove,
    DPGaussianNB,
    DPGridSearchCV,
    DPLinearRegression,
    DPLogisticRegression,
    DPRidge,
    PrivacyAccountant,
)
from skdp._checks.sources import BlockRecipe
from skdp._checks.weights import WeightReader
from skdp._dpsgd.dask import dask_rows as model
from skdp._dpsgd.dask import engine
from skdp._dpsgd.dask.dask_rows import DistributedModel, source_of_rows
from skdp._dpsgd.dask.engine import check_graph, in_a_tree
from skdp._dpsgd.dask.partitions import add_sums, lots_of_step, merge_sums, recorded_lots
from skdp._dpsgd.mean_correction import ClassMeans, OutcomeCounts
from skdp._dpsgd.models.linear import LinearGeometry, LinearModel
from skdp._dpsgd.targets import ClassReader
from skdp.datasets import TableRows
from skdp.exceptions import FitInterruptedWarning
from skdp.mechanisms.release_log import Track
from skdp.mechanisms.sampling import FullBatch, PoissonSampling
from skdp.mechanisms.second_moments import MomentSum
from skdp.mechanisms.streams import SecretStream
from skdp.preprocessing import DPTableVectorizer

pytestmark = pytest.mark.filterwarnings(
    "ignore::skdp.exceptions.PrivacyLeakWarning",
    "ignore:.*rows are too few",
    "ignore:The inplace keyword",  # of pandas, about what Dask does
)

SIZES = (300, 0, 450, 250)
N = sum(SIZES)
NAMES = list("abcd")
READER = ClassReader(np.arange(2), None, WeightReader(1.0))


def make_people(dtype=np.float64, n=N):
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (n, len(NAMES))).astype(dtype)
    return X, (X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=n) > 0).astype(int)


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def collection(name, pieces, sizes, n_columns=None):
    """A Dask array of these pieces in memory, which says that they have these sizes."""
    chunks = (tuple(sizes),) if n_columns is None else (tuple(sizes), (n_columns,))
    rest = (0,) * (len(chunks) - 1)
    graph = {(name, number, *rest): piece for number, piece in enumerate(pieces)}
    return da.Array(graph, name, chunks=chunks, dtype=pieces[0].dtype)


def split(values, sizes=SIZES):
    """A Dask array of partitions of these sizes, in memory."""
    pieces = np.split(values, np.cumsum(sizes)[:-1])
    return collection(f"split-{values.ndim}-{id(values)}", pieces, sizes, *values.shape[1:])


def frame(X, y, n_partitions=3):
    return dd.from_pandas(pd.DataFrame(X, columns=NAMES).assign(y=y), npartitions=n_partitions)


def classifier(**changed):
    return DPLogisticRegression(**{"epsilon": 1.0, "classes": [0, 1], "random_state": 4} | changed)


# --- the same model as on one machine ---


@over_rows("dtype", [np.float32, np.float64])
def test_full_batches_give_the_parameters_of_one_machine(dtype):
    X, y = make_people(dtype)
    here, there = classifier().fit(X, y), classifier().fit(split(X), split(y))
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=0, atol=1e-13)
    np.testing.assert_allclose(there.intercept_, here.intercept_, rtol=0, atol=1e-13)
    assert (there.epsilon_, there.privacy_event_) == (here.epsilon_, here.privacy_event_)
    assert (there.n_steps_, there.data_norm_) == (here.n_steps_, here.data_norm_)


def test_dataframes_give_the_parameters_of_one_machine():
    X, y = make_people()
    table = frame(X, y)
    here, there = classifier().fit(X, y), classifier().fit(table, "y")
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=0, atol=1e-13)
    assert list(there.feature_names_in_) == NAMES
    np.testing.assert_array_equal(classifier().fit(table[NAMES], table["y"]).coef_, there.coef_)
    some = classifier().fit(TableRows(table, ["c", "a"]), "y")
    np.testing.assert_allclose(some.coef_, classifier().fit(X[:, [2, 0]], y).coef_, rtol=0, atol=1e-13)
    expected = some.predict(pd.DataFrame(X[:, [2, 0]], columns=["c", "a"]))
    np.testing.assert_array_equal(some.predict(table), expected)


@over_rows(("estimator", "dtype"), [(DPRidge, np.float32), (DPLinearRegression, np.float64)])
def test_least_squares_are_one_map_and_one_sum(estimator, dtype):
    X, _ = make_people(dtype)
    y, weights = X[:, 0] - 2.0 * X[:, 1], np.linspace(0.0, 2.0, N)
    make = partial(estimator, y_bounds=(-2, 1), random_state=2)
    rounding = 1e-4 if dtype == np.float32 else 1e-10
    here, plain = make().fit(X, y, weights), make().fit(X, y)
    for expected, given in (
        (here, (split(X), split(y), split(weights))),
        (here, (split(X), y, weights)),
        (plain, (frame(X, y), "y")),
    ):
        there = make().fit(*given)
        for name in ("coef_", "intercept_", "coef_std_"):
            np.testing.assert_allclose(getattr(there, name), getattr(expected, name), rtol=rounding, atol=rounding)
        assert (there.epsilon_, there.privacy_event_) == (expected.epsilon_, expected.privacy_event_)
    np.testing.assert_array_equal(here.predict(split(X)), here.predict(X))


# --- lots ---


class OneMachine(LinearModel):
    """All rows here, in lots of the partitions that they would have."""

    def draw_lot(self, sampling, stream, step):
        rows, first = [], 0
        for lot, size in zip(lots_of_step(sampling, stream, step, len(SIZES)), SIZES, strict=True):
            rows.append(first + lot.rows(size))
            first += size
        return np.concatenate(rows)


def fitted_here(model, X, y):
    """The model that a fit in lots gives when the same lots are drawn on one machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("skdp._dpsgd.linear_solver.LinearModel", OneMachine)
        return model.fit(X, y)


def test_lots_of_partitions_are_the_lots_that_are_drawn_here_again():
    X, y = make_people()
    settings = {"sampling_rate": 0.1, "max_iter": 4, "random_state": 9}
    there = classifier(**settings).fit(split(X), split(y))
    here = fitted_here(classifier(**settings), X, y)
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=0, atol=1e-13)
    assert there.privacy_event_ == here.privacy_event_


def drawn(rate, n_steps, sizes, key=b"k" * 32):
    """Which of the rows are in which lots, of shape (n_steps, n)."""
    stream, found = SecretStream(key), np.zeros((n_steps, sum(sizes)))
    starts = np.cumsum([0, *sizes])
    for step in range(n_steps):
        lots = lots_of_step(PoissonSampling(rate), stream, step, len(sizes))
        for lot, start, size in zip(lots, starts, sizes, strict=False):
            found[step, start + lot.rows(size)] = 1.0
    return found


def test_rows_of_all_partitions_are_drawn_independently_at_the_rate():
    # Bernoulli means and covariances of 3,000 steps: normal to a part in a thousand; false alarms 1e-6 in all.
    rate, n_steps, sizes = 0.3, 3000, (40, 0, 40, 40)
    found = drawn(rate, n_steps, sizes)
    n, variance = sum(sizes), rate * (1 - rate)
    off = (found.mean(axis=0) - rate) * np.sqrt(n_steps / variance)
    assert np.abs(off).max() < 5.9  # 120 of them
    centered = (found - rate) / np.sqrt(variance)
    pairs = (centered.T @ centered / np.sqrt(n_steps))[np.triu_indices(n, 1)]
    assert np.abs(pairs).max() < 7.0  # 7,140 of them, with room for their longer tails
    following = (centered[:-1] * centered[1:]).sum(axis=0) / np.sqrt(n_steps - 1)
    assert np.abs(following).max() < 6.5


def test_a_lot_is_the_same_whenever_it_is_drawn_and_others_differ():
    stream = SecretStream(b"s" * 32)
    lots = [lot for step in range(3) for lot in lots_of_step(PoissonSampling(0.5), stream, step, 4)]
    assert len({lot.key for lot in lots}) == 12
    assert stream.position == (0, 0)
    assert repr(lots[0]) == "PartitionLot(sampling=PoissonSampling(rate=0.5))"  # which shows no key
    for lot in lots:
        sent = pickle.loads(pickle.dumps(lot))
        np.testing.assert_array_equal(sent.rows(1000), lot.rows(1000))


def test_an_audit_hears_the_lots_of_partitions_as_one_and_forces_them_on_another_fit():
    """What is recorded is what is drawn; the other fit has the same lots, and its last partition is in all of them."""
    stream, sizes, first = SecretStream(b"h" * 32), [10, 0, 25], Track()
    lots = lots_of_step(PoissonSampling(0.3), stream, 0, 3)
    recorded = recorded_lots(lots, sizes, first)
    for lot, told, size in zip(lots, recorded, sizes, strict=True):
        np.testing.assert_array_equal(lot.rows(size), told.rows(size))
    (whole,) = first.lots
    assert (whole.rate, whole.n_rows) == (0.3, 35)
    np.testing.assert_array_equal(whole.rows, np.concatenate([recorded[0].rows(10), 10 + recorded[2].rows(25)]))
    others = lots_of_step(PoissonSampling(0.3), SecretStream(b"o" * 32), 0, 4)
    forced = recorded_lots(others, [*sizes, 2], Track(first))
    for lot, told, size in zip(lots, forced, sizes, strict=False):
        np.testing.assert_array_equal(lot.rows(size), told.rows(size))
    assert forced[3].rows(2).tolist() == [0, 1]
    full = lots_of_step(FullBatch(), stream, 0, 2)
    assert recorded_lots(full, [3, 4], Track()) is full


# --- what is sent ---


class Sent:
    """A scheduler that keeps what it is given, as bytes, and computes it."""

    def __init__(self):
        self.graphs = []

    def __call__(self, graph, keys, **options):
        self.graphs.append(cloudpickle.dumps(graph))
        return dask.get(graph, keys)


def keys_of_fit(monkeypatch, model, X, y):
    """What is sent in a fit, and all keys of streams that exist meanwhile."""
    made, started = [], SecretStream.__init__

    def noted(stream, key, *track):
        made.append(key)
        started(stream, key, *track)

    sent = Sent()
    X, y = split(X), split(y)
    monkeypatch.setattr(SecretStream, "__init__", noted)
    with dask.config.set(scheduler=sent):
        model.fit(X, y)
    monkeypatch.undo()
    return sent.graphs, set(made)


def test_a_worker_is_sent_the_keys_of_its_lots_and_no_other(monkeypatch):
    X, y = make_people()
    model = classifier(sampling_rate=0.25, max_iter=1, random_state=77123456789, noise_multiplier=2.0, epsilon=None)
    graphs, keys = keys_of_fit(monkeypatch, model, X, y)
    root = SecretStream.from_random_state(77123456789, "DPLogisticRegression")
    sampling = root.spawn("from step", 0).spawn("sampling")
    lots = [[sampling.spawn("step", step).subkey("partition", p) for p in range(len(SIZES))] for step in range(4)]
    assert len({key for step in lots for key in step}) == 4 * len(SIZES)
    steps = [graph for graph in graphs if b"sum_partition" in graph]
    assert len(steps) == 4
    for graph, expected in zip(steps, lots, strict=True):
        assert {key for step in lots for key in step if key in graph} == set(expected)
    secret = keys - {key for step in lots for key in step}
    assert len(secret) >= 5  # root, run, sampling, noise, steps
    assert not [key for key in secret for graph in graphs if key in graph]
    assert not [graph for graph in graphs if b"77123456789" in graph or b"random_state" in graph]


def test_nothing_secret_is_sent_with_full_batches(monkeypatch):
    X, y = make_people()
    graphs, keys = keys_of_fit(monkeypatch, classifier(max_iter=2), X, y)
    assert len([graph for graph in graphs if b"sum_partition" in graph]) == 2
    assert not [key for key in keys for graph in graphs if key in graph]


def test_sums_of_moments_are_sent_without_the_rows_in_their_buffers():
    X, _ = make_people()
    ball = DPPCA(random_state=0).fit(X)._fitted_ball
    sums = MomentSum(ball, 0.5, by_position=True)
    sums.add(np.tile(X[:7], (100, 1)))
    image = pickle.dumps(sums)
    there = pickle.loads(image)
    assert len(image) < 2000
    np.testing.assert_array_equal(there.vector, sums.vector)
    assert there.rounding == sums.rounding


# --- noise, charge, sensitivity ---


def test_one_release_a_step_and_one_charge_a_fit(released):
    X, y = make_people()
    accountant = PrivacyAccountant()
    model = classifier(max_iter=5, accountant=accountant).fit(split(X), split(y))
    assert (len(released), model.n_steps_) == (1 + 5 + 1, 5)  # class counts come first, and the offset last
    assert len(accountant.history) == 1
    assert accountant.history[0].event == model.privacy_event_


def test_a_run_resumes_on_the_same_lots(tmp_path):
    X, y = make_people()
    settings = {"sampling_rate": 0.25, "max_iter": 3}
    whole = classifier(**settings).fit(split(X), split(y))
    interrupt_after(model := classifier(checkpoint=tmp_path / "run", **settings), 5)
    with pytest.warns(FitInterruptedWarning, match="after 5 of 12 steps"):
        model.fit(split(X), split(y))
    np.testing.assert_array_equal(model.fit(split(X), split(y)).coef_, whole.coef_)


@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_one_row_moves_no_sum_by_more_than_the_clip(released, rate, monkeypatch):
    X, y = make_people()
    weights = np.ones(N)
    # At the rate 0.3 there are 40 steps: the row is in no lot of them with a probability of 0.7**40 < 1e-6.
    settings = {"sampling_rate": rate, "max_iter": 2 if rate == 1.0 else 12, "max_grad_norm": 0.5}
    monkeypatch.setattr(OutcomeCounts, "offset", lambda *given: np.zeros(1))  # the same start, as from equal releases
    for each in (0.0, 1e6):
        weights[310] = each  # of the third partition, as the second is empty
        classifier(**settings, learning_rate=1e-12).fit(split(X), split(y), split(weights))
    half = len(released) // 2
    pairs = zip(released[:half], released[half:], strict=True)
    counts, *moved, offset = [np.linalg.norm(one - other) for (one, _), (other, _) in pairs]
    assert counts == 1.0
    assert 0.5 < offset <= ClassMeans(1).row_limit
    assert max(moved) <= 0.5 * (1 + 1e-9)
    assert max(moved) > 0.2  # the whole gradient, which the clip does not shorten


def test_a_distributed_model_adds_up_what_one_machine_does():
    X, y = make_people()
    geometry, theta = LinearGeometry(2.0, True), np.linspace(-1, 1, 5)
    here = LinearModel(X, y, 1.0, 1, geometry, by_lot=True)
    source = source_of_rows(split(X), None, split(y), None)
    make = partial(LinearModel, n_outputs=1, geometry=geometry, by_lot=True)
    lots = lots_of_step(PoissonSampling(0.2), SecretStream(b"q" * 32), 3, len(SIZES))
    rows = [start + lot.rows(size) for lot, start, size in zip(lots, np.cumsum([0, *SIZES]), SIZES, strict=False)]
    with source.bind(BlockRecipe(make, READER, source.dtype), None) as there:
        assert isinstance(there, DistributedModel)
        assert there.n_rows == N
        expected = here.clipped_gradient_sum(theta, np.concatenate(rows), 0.3)
        np.testing.assert_allclose(there.clipped_gradient_sum(theta, lots, 0.3), expected, rtol=1e-12)


def test_small_partitions_are_gathered_and_each_keeps_its_lot(monkeypatch, released):
    """The sums of a step are those of the partitions apart; what is asked for is one sum for all of them."""
    X, y = make_people()
    sizes, asked, fits = [10] * 29 + [N - 290], [], []
    monkeypatch.setattr(engine, "in_a_tree", lambda add, parts: asked.append(len(parts)) or in_a_tree(add, parts))
    for few in (0, 1 << 18):
        monkeypatch.setattr(model, "_FEW_VALUES", few)
        fits.append(classifier(max_iter=1, sampling_rate=0.3).fit(split(X, sizes), split(y, sizes)))
    half = len(released) // 2
    for (one, _), (other, _) in zip(released[:half], released[half:], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(fits[0].coef_, fits[1].coef_, rtol=1e-10)
    assert asked == [30] * half + [30, *[1] * (half - 2), 30]  # steps, between class counts and the offset


def test_sums_of_many_partitions_are_those_of_one_machine():
    """More than are added up at once, and than their sums."""
    X, y = make_people()
    sizes = [len(part) for part in np.array_split(y, 70)]
    here, there = classifier(max_iter=2).fit(X, y), classifier(max_iter=2).fit(split(X, sizes), split(y, sizes))
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=0, atol=1e-13)
    here, there = DPPCA(2, random_state=1).fit(X), DPPCA(2, random_state=1).fit(split(X, sizes))
    np.testing.assert_allclose(there.explained_variance_, here.explained_variance_, rtol=0, atol=1e-12)
    assert there.n_samples_ == N


def test_parts_of_a_sum_are_left_as_they_are():
    """Dask may need a result again when a worker is lost."""
    parts = [np.ones(3), None, np.full(3, 2.0)]
    np.testing.assert_array_equal(add_sums(parts), np.full(3, 3.0))
    np.testing.assert_array_equal(parts[0], np.ones(3))
    assert add_sums([None, None]) is None
    X, _ = make_people()
    new_sum = partial(MomentSum, DPPCA(random_state=0).fit(X)._fitted_ball, 0.5, by_position=True)
    moments = [new_sum(), new_sum()]
    for each in moments:
        each.add(X[:5])
    before = moments[0].vector
    assert merge_sums(new_sum, moments).n_rows == 10
    np.testing.assert_array_equal(moments[0].vector, before)


# --- which collections are accepted ---


def mapped(path, X):
    held = np.lib.format.open_memmap(path / "rows.npy", mode="w+", shape=X.shape, dtype=X.dtype)
    held[:] = X
    return da.from_array(held, chunks=(300, X.shape[1]))


def parquet(path, X, y):
    frame(X, y).to_parquet(path / "rows")
    return dd.read_parquet(path / "rows")


ARRAYS = {
    "an array in memory": lambda X: X,
    "some columns": lambda X: X[:, 1:3],
    "some rows": lambda X: X[200:500],
    "a threshold": lambda X: X[:, 0] > 0.5,
    "public bounds": lambda X: (X - 20) / 4,
    "functions of a cell": lambda X: np.sqrt(abs(X.astype("f4"))).clip(0, 1),
}
MIXING = {
    "divided by its largest": lambda X: X / X.max(),
    "its own rows added": lambda X: X + X[::-1],
    "random noise added": lambda X: X + da.random.random(X.shape, chunks=X.chunks),
    "an unknown function": lambda X: X.map_blocks(lambda rows: rows - rows.mean(axis=0)),
    "cumulated": lambda X: X.cumsum(axis=0),
    "twice": lambda X: da.concatenate([X, X]),
    "shuffled": lambda X: X[np.random.default_rng(0).permutation(len(X))],
    "overlapping": lambda X: da.concatenate([X[:400], X[300:]]),
    "other chunks": lambda X: X.rechunk((123, X.shape[1])),
    "a product of rows": lambda X: X @ X.T @ X,
    "a ufunc of one's own": lambda X: X.map_blocks(np.frompyfunc(lambda cell: cell, 1, 1), dtype=object).astype(float),
}
FRAMES = {
    "a frame": lambda D: D,
    "columns": lambda D: D.drop(columns=["a"])[["c", "b"]],
    "a column": lambda D: D["y"],
    "another dtype and other names": lambda D: D.astype("float32").rename(columns={"a": "z"}),
}
MIXING_FRAMES = {
    "an unknown function": lambda D: D.map_partitions(lambda rows: rows - rows.mean()),
    "filled by its mean": lambda D: D.fillna(D.mean()),
    "one partition twice": lambda D: D.partitions[[0, 0, 1]],
    "sampled": lambda D: D.sample(frac=0.5),
    "shifted": lambda D: D.shift(1),
    "filtered": lambda D: D[D["a"] > 0],
    "partitions of X changed": lambda D: D.repartition(npartitions=2),
}


@over_rows(("how", "held"), [*((how, "memory") for how in ARRAYS), ("public bounds", "file")])
def test_arrays_that_are_made_row_by_row_are_accepted(how, held, tmp_path):
    X, _ = make_people()
    array = da.from_array(X, chunks=(300, 4)) if held == "memory" else mapped(tmp_path, X)
    check_graph("X", ARRAYS[how](array))


@over_combinations(1, how=FRAMES, held=["memory", "file", "workers"])
def test_frames_that_are_made_row_by_row_are_accepted(how, held, tmp_path):
    X, y = make_people()
    table = parquet(tmp_path, X, y) if held == "file" else frame(X, y)
    check_graph("X", FRAMES[how](table.persist() if held == "workers" else table))


@over_rows(
    ("how", "held"), [*((how, "memory") for how in MIXING | MIXING_FRAMES), ("twice", "file"), ("sampled", "file")]
)
def test_collections_that_may_mix_rows_must_be_persisted(how, held, tmp_path):
    X, y = make_people()
    if how in MIXING:
        made = MIXING[how](da.from_array(X, chunks=(300, 4)) if held == "memory" else mapped(tmp_path, X))
    else:
        made = MIXING_FRAMES[how](frame(X, y) if held == "memory" else parquet(tmp_path, X, y))
    with pytest.raises(ValueError, match=r"^X is a lazy collection with .*pass X\.persist\(\)\.$"):
        check_graph("X", made)
    check_graph("X", made.persist())


def test_rows_that_a_reader_filters_are_rejected(tmp_path):
    X, y = make_people()
    parquet(tmp_path, X, y)
    with pytest.raises(ValueError, match="with filters at the source"):
        check_graph("X", dd.read_parquet(tmp_path / "rows", filters=[("a", ">", 0)]))


def test_a_file_that_a_list_names_twice_is_rejected(tmp_path):
    """Its rows would be rows of one person twice."""
    X, y = make_people()
    frame(X, y).to_parquet(tmp_path / "rows")
    one, two, *_ = sorted(map(str, (tmp_path / "rows").glob("*.parquet")))
    check_graph("X", dd.read_parquet([one, two]))
    (tmp_path / "link").symlink_to(one)
    for again in (one, str(tmp_path / "link")):
        accountant = PrivacyAccountant()
        with pytest.raises(ValueError, match="X is a lazy collection with duplicate rows"):
            classifier(accountant=accountant).fit(dd.read_parquet([one, two, again]), "y")
        assert not accountant.history


def test_what_is_hidden_in_a_task_is_found():
    """Optimized graphs have tasks within tasks, and containers of tasks."""
    X, _ = make_people()
    source, all_of_it = ("rows", 0, 0), (slice(None), slice(None))
    hidden = [
        Task(None, chunk.getitem, Task(None, np.sort, TaskRef(source)), all_of_it),
        Task(None, chunk.astype, Task(None, np.cumsum, TaskRef(source)), astype_dtype=np.dtype("f4")),
        Task(None, operator.sub, TaskRef(source), Task(None, np.mean, TaskRef(source))),
        List(TaskRef(source)),
        Task(None, chunk.getitem, TaskRef(source), all_of_it),
    ]
    for number, task in enumerate(hidden):
        task.key = (f"made-{number}", 0, 0)
        array = da.Array({task.key: task, source: X}, task.key[0], chunks=((N,), (4,)), dtype=float)
        if number == len(hidden) - 1:
            check_graph("X", array)
        else:
            with pytest.raises(ValueError, match="lazy collection with the operation"):
                check_graph("X", array)


def test_labels_and_weights_are_checked_like_rows():
    X, y = make_people()
    A, Y = split(X), split(y)
    for given in ({"y": Y - Y.min()}, {"y": Y, "sample_weight": da.random.random(N, chunks=A.chunks[0])}):
        accountant = PrivacyAccountant()
        with pytest.raises(ValueError, match="is a lazy collection with"):
            classifier(accountant=accountant).fit(A, **given)
        assert not accountant.history


# --- rejections ---


def shifted(X):
    return da.concatenate([X[:, :2], X[:, 2:]], axis=1).rechunk({1: 2}).persist()


REJECTED = {
    "columns in chunks": (lambda X, y: (shifted(X), y), "has 2 chunks of columns"),
    "one dimension": (lambda X, y: (X[:, 0], y), "Expected 2D array"),
    "labels of other chunks": (lambda X, y: (X, y.rechunk(500).persist()), "y must have the same partitions as X"),
    "too few labels": (
        lambda X, y: (X, y.compute()[:-1]),
        r"must have shape \(1000,\), one entry per row of X, got \(999,\)",
    ),
    "complex numbers": (lambda X, y: (X.astype(complex), y), "X must have a real numeric dtype, got complex128"),
    "sparse chunks": (
        lambda X, y: (X.map_blocks(sp.csr_matrix).persist(), y),
        "must be a dask array of NumPy chunks, got chunks of type csr_matrix",
    ),
    "words as weights": (
        lambda X, y: (X, y, y.compute().astype("U1")),
        "sample_weight must contain numbers, got dtype <U1",
    ),
    "no labels": (lambda X, y: (X, None), "`y` must be a column name or an array"),
}


@over_rows("how", REJECTED)
def test_what_cannot_be_read_is_rejected_in_one_line_before_the_charge(how):
    X, y = make_people()
    change, message = REJECTED[how]
    given, accountant = change(split(X), split(y)), PrivacyAccountant()
    with pytest.raises((TypeError, ValueError), match=message) as caught:
        classifier(accountant=accountant).fit(*given)
    assert "\n" not in str(caught.value)
    assert not accountant.history


def test_columns_that_are_no_numbers_or_not_there_are_rejected_before_the_charge():
    X, y = make_people()
    table, accountant = frame(X, y).assign(town="x", day=pd.Timestamp("2020-01-01")).persist(), PrivacyAccountant()
    for rows, target, message in [
        (TableRows(table, NAMES), "day", "y must contain numbers or strings, got dtype datetime64"),
        (table, "y", "'town'"),
        (table, "z", "X has no column 'z'"),
        (
            TableRows(table, ["a", "y"]),
            "y",
            "`columns` must not contain 'y', which is used as y, sample_weight or groups",
        ),
        (table["a"], y, "got a dask series"),
    ]:
        with pytest.raises(ValueError, match=message):
            classifier(accountant=accountant).fit(rows, target)
    assert not accountant.history


def test_a_scheduler_that_is_not_there_is_rejected_before_the_charge():
    X, y = make_people()
    accountant = PrivacyAccountant()
    with dask.config.set(scheduler="nobody's"), pytest.raises(ValueError, match="no scheduler that a fit can wait for"):
        classifier(accountant=accountant).fit(split(X), split(y))
    assert not accountant.history


def changed_people(kind):
    X, y = make_people()
    pieces = np.split(X, np.cumsum(SIZES)[:-1])
    labels = np.split(y, np.cumsum(SIZES)[:-1])
    if kind == "NaN":
        pieces[2][7, 1] = np.nan
    if kind == "label":
        labels[3][0] = 12345
    if kind == "dtype":
        pieces[3] = pieces[3].astype(np.float32)
    if kind == "width":
        pieces[3] = pieces[3][:, :2]
    if kind == "rows":
        pieces[3], labels[3] = pieces[3][:-1], labels[3][:-1]
    if kind == "labels":
        labels[3] = labels[3][:-1]
    return collection(f"rows-{kind}", pieces, SIZES, 4), collection(f"labels-{kind}", labels, SIZES)


@over_rows(
    ("make", "kind", "message"),
    [
        (classifier, "NaN", "Partition 2 of .*NaN"),
        (classifier, "label", "Partition 3 of .*not in classes"),
        (classifier, "dtype", "Partition 3 of .*types"),
        (classifier, "rows", "X has 999 rows, but 1000 were planned"),
        (DPRidge, "width", r"Partition 3 of .*shape \(250, 2\)"),
        (DPRidge, "labels", "Partition 3 of .*249 entries"),
        (DPPCA, "NaN", "NaN"),
        (DPPCA, "rows", "999 rows"),
    ],
)
def test_a_bad_partition_is_rejected_in_one_line_and_the_charge_stands(make, kind, message):
    accountant = PrivacyAccountant()
    model = make(**{"y_bounds": (0, 1)} if make is DPRidge else {}).set_params(accountant=accountant)
    with pytest.raises(ValueError, match=message) as caught:
        model.fit(*changed_people(kind))
    assert "The budget was already charged" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "12345" not in str(caught.value)
    assert caught.value.__context__ is None
    assert len(accountant.history) == 1
    assert not hasattr(model, "n_features_in_")


def test_an_engine_that_fails_is_one_line_without_its_text():
    X, y = make_people()
    accountant, calls = PrivacyAccountant(), []

    def failing(graph, keys, **options):
        calls.append(1)
        if len(calls) > 3:
            raise OSError("row 17 is 0.12345")
        return dask.get(graph, keys)

    A, Y = split(X), split(y)
    with (
        dask.config.set(scheduler=failing),
        pytest.raises(RuntimeError, match=r"Dask failed while .* \(OSError\)") as caught,
    ):
        classifier(accountant=accountant).fit(A, Y)
    assert "0.12345" not in str(caught.value)
    assert "charge" in str(caught.value)
    assert caught.value.__context__ is None
    assert len(accountant.history) == 1


def test_rows_of_unknown_numbers_are_counted():
    X, y = make_people()
    A = split(X)
    unknown = A[A[:, 0] > -2].persist()
    assert np.isnan(unknown.chunks[0]).all()
    there, here = classifier().fit(unknown, split(y)), classifier().fit(A, split(y))
    np.testing.assert_array_equal(there.coef_, here.coef_)


def test_under_add_remove_the_public_number_rules():
    X, y = make_people()
    settings = {"adjacency": AddRemove(1100), "sampling_rate": 0.5, "max_iter": 1}
    there = classifier(**settings).fit(split(X), split(y))
    less = classifier(**settings).fit(split(X[:-1], (300, 0, 450, 249)), split(y[:-1], (300, 0, 450, 249)))
    assert there.privacy_event_ == less.privacy_event_
    assert there.delta_ == less.delta_


def test_other_estimators_reject_collections_before_charge():
    X, y = make_people()
    accountant = PrivacyAccountant()
    for other in (
        DPGaussianNB(bounds=(-1.0, 1.0), classes=[0, 1], accountant=accountant),
        DPGridSearchCV(classifier(accountant=accountant), {"max_iter": [1, 2]}),
    ):
        with pytest.raises(TypeError, match="not in memory"):
            other.fit(split(X), split(y))
    assert not accountant.history
    step = DPTableVectorizer({name: (-1, 1) for name in NAMES}).fit(pd.DataFrame(X, columns=NAMES))
    for act in (step.fit, step.transform):
        with pytest.raises(TypeError, match=r"map_partitions\(step.transform\)"):
            act(frame(X, y)[NAMES])


def test_rows_of_a_step_that_is_mapped_train_like_those_of_one_machine():
    X, y = make_people()
    people = pd.DataFrame(X, columns=NAMES)
    step = DPTableVectorizer({name: (-1, 1) for name in NAMES}, numbers="scale").fit(people)
    like = step.transform(people.head())[:0]
    rows = frame(X, y)[NAMES].map_partitions(step.transform, meta=like).persist()
    there = classifier(data_norm=step.row_norm_).fit(rows, frame(X, y)["y"])
    here = classifier(data_norm=step.row_norm_).fit(np.asarray(step.transform(people)), y)
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=0, atol=1e-13)
