"""A cluster of two processes: the model of one machine, whatever becomes of workers and scheduler."""

import asyncio
import os
import signal
import threading

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

from skdp import DPLogisticRegression, PrivacyAccountant
from skdp._dpsgd.dask import dask_rows, engine
from skdp._dpsgd.dask.dask_rows import DistributedModel

N, CHUNKS = 1200, (300, 250, 350, 300)


@pytest.fixture(autouse=True)
def partitions_apart(monkeypatch):
    """These tables are small, and would be gathered to one partition."""
    monkeypatch.setattr(dask_rows, "_FEW_VALUES", 0)


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


def before_step(monkeypatch, number, action):
    """Do something just before the sum of a step is asked for."""
    ask, asked = DistributedModel.clipped_gradient_sum, []

    def asking(model, *given):
        asked.append(1)
        if len(asked) == number:
            action()
        return ask(model, *given)

    monkeypatch.setattr(DistributedModel, "clipped_gradient_sum", asking)


def kill_a_worker(client):
    worker = min(client.run(os.getpid).values())
    os.kill(worker, signal.SIGKILL)


@pytest.mark.usefixtures("steps_alone")
@pytest.mark.parametrize(("disturb", "persisted"), [("kill", True), ("restart", False)])
def test_steps_of_workers_that_die_are_computed_again_from_the_same_sample(
    client, monkeypatch, released, disturb, persisted
):
    """A restart forgets all results: the lots of the step are those that were drawn, and it is released once."""
    X, y = make_people()
    accountant, settings = PrivacyAccountant(), {"sampling_rate": 0.5, "max_iter": 3}
    monkeypatch.setattr(dask_rows, "_FEW_VALUES", 600 * 4 if disturb == "restart" else 0)  # pairs of partitions
    with dask.config.set(scheduler="synchronous"):
        calm = classifier(**settings).fit(split(X), split(y))
    before = [value for value, _ in released]
    released.clear()
    before_step(monkeypatch, 3, client.restart if disturb == "restart" else lambda: kill_a_worker(client))
    A, Y = (split(X).persist(), split(y).persist()) if persisted else (split(X), split(y))
    model = classifier(accountant=accountant, **settings).fit(A, Y)
    assert len(released) == model.n_steps_ == 6
    np.testing.assert_array_equal([value for value, _ in released], before)
    np.testing.assert_array_equal(model.coef_, calm.coef_)
    assert len(accountant.history) == 1


def test_a_restart_forgets_rows_that_were_persisted_and_says_so(client, monkeypatch):
    X, y = make_people()
    accountant = PrivacyAccountant()
    A, Y = split(X).persist(), split(y).persist()
    before_step(monkeypatch, 3, client.restart)
    with pytest.raises(RuntimeError, match=r"after the budget was charged.* It was restarted, and persisted data"):
        classifier(accountant=accountant, max_iter=6).fit(A, Y)
    assert len(accountant.history) == 1


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
    assert found.startswith("skdp: a step has waited for Dask for 0 s (it has no worker). See the Dask dashboard, or")
    assert found.count("\n") == 1


def test_rows_of_a_client_that_is_not_in_use_are_rejected_before_the_charge(client):
    X, y = make_people()
    accountant = PrivacyAccountant()
    for rows, labels in ((split(X).persist(), y), (split(X), split(y).persist())):
        with dask.config.set(scheduler="synchronous"), pytest.raises(ValueError, match="that is not active"):
            classifier(accountant=accountant).fit(rows, labels)
    assert not accountant.history


def test_an_asynchronous_client_is_rejected_before_the_charge():
    X, y = make_people()
    accountant = PrivacyAccountant()

    async def fit():
        cluster = LocalCluster(n_workers=1, processes=False, dashboard_address=":0", asynchronous=True)
        async with cluster, Client(cluster, asynchronous=True):
            for target in (split(y), y):
                with pytest.raises(ValueError, match="the client is asynchronous"):
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
        with pytest.raises(RuntimeError, match="after the budget was charged") as caught:
            model.fit(split(X), split(y))
    assert "\n" not in str(caught.value)
    assert len(accountant.history) == 1
    assert not hasattr(model, "coef_")
