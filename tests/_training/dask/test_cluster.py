"""A cluster of two processes: the model of one machine, whatever becomes of workers and scheduler."""

from __future__ import annotations

import asyncio
import os
import signal
import threading

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster
from distributed.client import futures_of

from skdp import DPPCA, DPLogisticRegression, DPMLPClassifier, PrivacyAccountant
from skdp._training.dask import distributed_model as _model
from skdp._training.dask import engine
from skdp._training.dask.dask_rows import source_of_rows
from skdp._training.dask.distributed_model import DistributedModel
from skdp.mechanisms import GaussianMechanism

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyLeakWarning", "ignore:.*rows are few"),
]
N, CHUNKS = 1200, (300, 250, 350, 300)


@pytest.fixture(autouse=True)
def partitions_apart(monkeypatch):
    """These tables are small, and would be gathered to one partition."""
    monkeypatch.setattr(_model, "_FEW_VALUES", 0)


@pytest.fixture(scope="module")
def client():
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50)
    # A local cluster gives up a worker that is not back so long after it was lost, however busy the machine is.
    with cluster, Client(cluster) as client, dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"}):
        yield client


def make_people(dtype=np.float64):
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (N, 4)).astype(dtype)
    return X, (X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=N) > 0).astype(int)


def split(values):
    return da.from_array(values, chunks=(CHUNKS, *values.shape[1:]))


def classifier(**changed):
    return DPLogisticRegression(**{"epsilon": 1.0, "classes": [0, 1], "random_state": 4} | changed)


@pytest.fixture
def noised(monkeypatch):
    """Values to which noise was added."""
    values, add = [], GaussianMechanism._add_noise

    def noted(mechanism, value, stream):
        values.append(value.copy())
        return add(mechanism, value, stream)

    monkeypatch.setattr(GaussianMechanism, "_add_noise", noted)
    return values


def before_step(monkeypatch, number, action):
    """Do something just before the sum of a step is asked for."""
    ask, asked = DistributedModel.clipped_gradient_sum, []

    def asking(model, *given):
        asked.append(1)
        if len(asked) == number:
            action()
        return ask(model, *given)

    monkeypatch.setattr(DistributedModel, "clipped_gradient_sum", asking)


def test_full_batches_give_the_parameters_of_one_machine(client):
    X, y = make_people()
    here = classifier(max_iter=6).fit(X, y)
    there = classifier(max_iter=6).fit(split(X).persist(), split(y).persist())
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=0, atol=1e-13)
    with dask.config.set(scheduler="synchronous"):
        again = classifier(max_iter=6).fit(split(X), split(y))
    np.testing.assert_array_equal(again.coef_, there.coef_)


def test_components_are_those_of_one_machine(client):
    X, _ = make_people(np.float32)
    here, there = DPPCA(2, random_state=1).fit(X), DPPCA(2, random_state=1).fit(split(X))
    np.testing.assert_allclose(there.components_, here.components_, rtol=0, atol=1e-4)


def test_a_network_by_lots_has_the_same_bits_on_any_engine(client):
    X, y = make_people(np.float32)
    settings = {"hidden_layer_sizes": (4,), "lot_size": 300, "max_iter": 1, "classes": [0, 1], "random_state": 3}
    there = DPMLPClassifier(**settings).fit(split(X), split(y))
    with dask.config.set(scheduler="synchronous"):
        again = DPMLPClassifier(**settings).fit(split(X), split(y))
    for ours, theirs in zip(there.coefs_, again.coefs_, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_bound_partitions_stay_where_they_are(client, monkeypatch):
    """In all steps of two fits: of tasks that it takes for readers a scheduler says where, and their rows follow."""
    X, y = make_people()
    places, end = [], DistributedModel.__exit__

    def ending(model, *exception):
        places.extend(client.who_has(futures_of(model._partitions)).values())
        end(model, *exception)

    monkeypatch.setattr(DistributedModel, "__exit__", ending)
    A, Y = split(X).persist(), split(y).persist()
    for _ in range(2):
        classifier(max_iter=20).fit(A, Y)
    assert [len(workers) for workers in places] == [1] * 2 * len(CHUNKS)


def test_collections_that_nobody_else_holds_are_kept_for_the_fit(client):
    X, y = make_people()
    for number in range(10):
        A, Y = split(X + number).persist(), split(y).persist()
        assert classifier(max_iter=1).fit(A, Y).n_steps_ == 1
        source = source_of_rows(split(X - number).persist(), None, None, None)
        assert source.n_rows == N
        assert source.add_up(Rows).n_rows == N


class Rows:
    """A sum that counts."""

    def __init__(self):
        self.n_rows = 0

    def add(self, X):
        self.n_rows += len(X)

    def merge(self, other):
        self.n_rows += other.n_rows


def kill_a_worker(client):
    worker = min(client.run(os.getpid).values())
    os.kill(worker, signal.SIGKILL)


@pytest.mark.usefixtures("steps_alone")
@pytest.mark.parametrize("persisted", [True, False])
def test_steps_of_workers_that_die_are_computed_again_from_the_same_sample(client, monkeypatch, noised, persisted):
    X, y = make_people()
    accountant = PrivacyAccountant()
    settings = {"sampling_rate": 0.5, "max_iter": 3}
    with dask.config.set(scheduler="synchronous"):
        calm = classifier(**settings).fit(split(X), split(y))
    before = [value.copy() for value in noised]
    noised.clear()
    before_step(monkeypatch, 3, lambda: kill_a_worker(client))
    A, Y = (split(X).persist(), split(y).persist()) if persisted else (split(X), split(y))
    model = classifier(accountant=accountant, **settings).fit(A, Y)
    assert len(noised) == model.n_steps_ == 6
    np.testing.assert_array_equal(noised, before)
    np.testing.assert_array_equal(model.coef_, calm.coef_)
    assert len(accountant.history) == 1


@pytest.mark.usefixtures("steps_alone")
def test_a_worker_that_dies_within_a_step_is_no_matter_either(client, monkeypatch, noised):
    X, y = make_people()
    with dask.config.set(scheduler="synchronous"):
        calm = classifier(max_iter=6).fit(split(X), split(y))
    noised.clear()
    before_step(monkeypatch, 3, lambda: threading.Timer(0.02, kill_a_worker, [client]).start())
    model = classifier(max_iter=6).fit(split(X), split(y))
    assert len(noised) == 6
    np.testing.assert_array_equal(model.coef_, calm.coef_)


@pytest.mark.usefixtures("steps_alone")
def test_a_restart_of_the_cluster_reads_lazy_rows_again(client, monkeypatch, noised):
    """It forgets all results; the lots of the step are those that were drawn, and it is released once."""
    X, y = make_people()
    accountant, settings = PrivacyAccountant(), {"sampling_rate": 0.5, "max_iter": 3}
    monkeypatch.setattr(_model, "_FEW_VALUES", 600 * 4)  # two pairs of partitions are gathered
    with dask.config.set(scheduler="synchronous"):
        calm = classifier(**settings).fit(split(X), split(y))
    before = [value.copy() for value in noised]
    noised.clear()
    before_step(monkeypatch, 3, client.restart)
    model = classifier(accountant=accountant, **settings).fit(split(X), split(y))
    assert len(noised) == model.n_steps_ == 6
    np.testing.assert_array_equal(noised, before)
    np.testing.assert_array_equal(model.coef_, calm.coef_)
    assert len(accountant.history) == 1


def test_a_restart_forgets_rows_that_were_persisted_and_says_so(client, monkeypatch):
    X, y = make_people()
    accountant = PrivacyAccountant()
    A, Y = split(X).persist(), split(y).persist()
    before_step(monkeypatch, 3, client.restart)
    with pytest.raises(RuntimeError, match=r"which stands, failed .*: it was restarted, and rows that were persisted"):
        classifier(accountant=accountant, max_iter=6).fit(A, Y)
    assert len(accountant.history) == 1


def test_second_moments_survive_a_restart(client, monkeypatch):
    X, _ = make_people()
    calm, results, restarted = DPPCA(2, random_state=1).fit(split(X)), engine.results, []

    def disturbed(what, tasks, **given):
        if restarted:
            return results(what, tasks, **given)
        restarted.append(client.compute(list(tasks)))
        client.restart()
        return engine.on_engine(what, lambda: client.gather(restarted[0]))

    monkeypatch.setattr("skdp._training.dask.dask_rows.results", disturbed)
    np.testing.assert_array_equal(DPPCA(2, random_state=1).fit(split(X)).components_, calm.components_)
    assert restarted


def test_a_worker_that_stands_still_is_told_of(client, monkeypatch, capfd):
    """The stopped worker goes on when the line is there."""
    X, y = make_people()
    here = classifier(max_iter=6).fit(X, y)
    stopped = min(client.run(os.getpid).values())
    monkeypatch.setattr(engine, "_PATIENCE", 0.2)
    tell, lines = engine._tell_of_waiting, []

    def told(*given):
        tell(*given)
        lines.append(capfd.readouterr().err)
        os.kill(stopped, signal.SIGCONT)

    monkeypatch.setattr(engine, "_tell_of_waiting", told)
    before_step(monkeypatch, 3, lambda: os.kill(stopped, signal.SIGSTOP))
    in_the_end = threading.Timer(300, os.kill, (stopped, signal.SIGCONT))  # if nothing is told, so that this fails
    in_the_end.start()
    try:
        model = classifier(max_iter=6).fit(split(X).persist(), split(y).persist())
    finally:
        in_the_end.cancel()
        os.kill(stopped, signal.SIGCONT)
    np.testing.assert_allclose(model.coef_, here.coef_, rtol=0, atol=1e-13)
    of_steps = [line for line in lines if line.startswith("skdp: a step, after the fit was charged, which stands, has")]
    assert of_steps
    assert all(line.count("\n") == 1 and "(2 workers, with tasks at " in line for line in of_steps)


def test_a_cluster_without_workers_is_told_of(monkeypatch, capfd):
    monkeypatch.setattr(engine, "_PATIENCE", 0.05)
    tell, told = engine._tell_of_waiting, threading.Event()

    def telling(*given):
        tell(*given)
        told.set()

    monkeypatch.setattr(engine, "_tell_of_waiting", telling)
    cluster = LocalCluster(n_workers=0, processes=False, dashboard_address=":0", silence_logs=50)
    with cluster, Client(cluster):
        assert engine.on_engine("a step", lambda: told.wait(60))
    found = capfd.readouterr().err
    assert found.startswith("skdp: a step has waited for Dask for 0 s (it has no worker): see its dashboard, or")
    assert found.count("\n") == 1


def test_rows_of_a_client_that_is_not_in_use_are_refused_before_the_charge(client):
    X, y = make_people()
    accountant = PrivacyAccountant()
    for rows, labels in ((split(X).persist(), y), (split(X), split(y).persist())):
        with (
            dask.config.set(scheduler="synchronous"),
            pytest.raises(ValueError, match="is not the one in use"),
        ):
            classifier(accountant=accountant).fit(rows, labels)
    assert not accountant.history


def test_an_asynchronous_client_is_refused_before_the_charge():
    X, y = make_people()
    accountant = PrivacyAccountant()

    async def fit():
        cluster = LocalCluster(n_workers=1, processes=False, dashboard_address=":0", asynchronous=True)
        async with cluster, Client(cluster, asynchronous=True):
            for target in (split(y), y):
                with pytest.raises(ValueError, match="its client is asynchronous"):
                    classifier(accountant=accountant).fit(split(X), target)

    asyncio.run(fit())
    assert not accountant.history


def test_without_a_scheduler_there_is_one_error_and_the_charge_stands(monkeypatch):
    X, y = make_people()
    accountant = PrivacyAccountant()
    cluster = LocalCluster(n_workers=1, processes=False, dashboard_address=":0", silence_logs=50)
    with cluster, Client(cluster, timeout="30s"):
        before_step(monkeypatch, 3, cluster.close)
        model = classifier(accountant=accountant, max_iter=6)
        with pytest.raises(RuntimeError, match="after the fit was charged, which stands,") as caught:
            model.fit(split(X), split(y))
    assert "\n" not in str(caught.value)
    assert len(accountant.history) == 1
    assert not hasattr(model, "coef_")
