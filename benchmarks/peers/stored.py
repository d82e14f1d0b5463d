"""Rows that are not in memory: in files, and with the workers of a Dask cluster."""

from __future__ import annotations

import atexit
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from peers.registry import contestant
from peers.tasks import Task
from peers.with_skdp import Fits, by_steps

_folder = tempfile.TemporaryDirectory()
"""For the files of this process, as long as it lives."""


@contestant("reading a file", "stored", role="limit")
def read(task: Task, X: Any, y: Any) -> Any:
    """The bytes of the rows, by blocks of 16 MB."""
    path, block = Path(_folder.name) / "rows", bytearray(1 << 24)
    X.tofile(path)

    def step() -> None:
        with path.open("rb", buffering=0) as file:
            while file.readinto(block):
                pass

    return step


@contestant("reading Parquet", "stored", role="limit")
def read_parquet(task: Task, X: Any, y: Any) -> Any:
    """The rows of a Parquet file, decoded by pyarrow and not looked at."""
    dataset = parquet(X, y)

    def step() -> None:
        for _ in dataset.to_batches():
            pass

    return step


@contestant("skdp, from Parquet", "stored", role="ours")
def from_parquet(task: Task, X: Any, y: Any) -> Any:
    return Fits(by_steps(task, sampling_rate=1.0), parquet(X, y), "y")


@contestant("skdp, from a memory map", "stored", role="ours")
def from_memory_map(task: Task, X: Any, y: Any) -> Any:
    path = Path(_folder.name) / "rows"
    X.tofile(path)
    return Fits(by_steps(task, sampling_rate=1.0), np.memmap(path, X.dtype, "r", shape=X.shape), y)


def parquet(X: Any, y: Any) -> Any:
    """A dataset of one file, in groups of 2**20 rows."""
    import pyarrow as pa
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    path = Path(_folder.name) / "rows.parquet"
    columns = {f"x{j}": pa.array(np.ascontiguousarray(X[:, j])) for j in range(X.shape[1])}
    table = pa.table({**columns, "y": pa.array(y.astype(np.int8))})
    pq.write_table(table, path, row_group_size=1 << 20, compression="none")
    return ds.dataset(path)


@contestant("skdp, Dask, one worker", "dask", role="limit")
def one_worker(task: Task, X: Any, y: Any) -> Any:
    return on_cluster(task, X, y, 1)


@contestant("skdp, Dask, two workers", "dask", role="ours")
def two_workers(task: Task, X: Any, y: Any) -> Any:
    return on_cluster(task, X, y, 2)


def on_cluster(task: Task, X: Any, y: Any, n_workers: int) -> Any:
    """Fits on workers of one thread each, which hold the rows."""
    import dask.array as da
    from distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None)
    client = Client(cluster)
    atexit.register(cluster.close)
    atexit.register(client.close)
    rows = -(-len(X) // 8)
    X, y = client.persist([da.from_array(X, (rows, X.shape[1])), da.from_array(y, rows)])
    return Fits(by_steps(task, sampling_rate=1.0), X, y)
