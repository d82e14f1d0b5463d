"""A training run on disk: what has been released so far, so that a run that was stopped can go on.

A file holds parameters, optimiser and average after some step, all of which are functions of noisy releases, and what
the run was. It holds no gradient, no row, and no state of a generator unless the run was seeded, which is no secret.

Between two files a run releases nothing that outlives it, so a killed run that goes on from its last file has still
released one result per step of its plan. An interrupted one writes a file before its model is handed out.
"""

from __future__ import annotations

import json
import os
import secrets
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from skdp._optimizers import Vector
from skdp._random import SecretStream

_SCHEMA = 1
_FILES_A_RUN = 20

Streams = tuple[SecretStream, ...]


class TrainingState(NamedTuple):
    """Where a run stands after `n_done` steps; `positions` are those of the streams of a seeded run with a file."""

    n_done: int
    theta: Vector
    optimizer: Any
    average: Any
    positions: Any = None


class Checkpoint:
    """The file of one run.

    Parameters
    ----------
    path : str or path-like
    run : dict
        What the run is, of plain values: a file of another run is refused.
    n_steps : int
    seeded : bool
        Whether the positions of the streams are kept, so that the run goes on with the very same noise.

    Attributes
    ----------
    begun : bool
        Whether there is a file to go on from.
    receipt : str
        What the run's charge bears as a note.
    """

    def __init__(self, path: Any, run: dict[str, Any], n_steps: int, *, seeded: bool) -> None:
        self.path, self._run, self._seeded = Path(os.fspath(path)).resolve(), run, seeded
        self._every = max(1, n_steps // _FILES_A_RUN)
        self.begun, self.receipt = self.path.exists(), secrets.token_hex(16)
        self._header: dict[str, Any] = {}
        self._leaves: list[Any] = []
        if self.begun:
            self._read()

    def resumed(self, start: TrainingState, streams: Streams) -> TrainingState:
        """The state in the file, its streams set to where they were; `start`, a state of that shape, without a file."""
        if not self.begun:
            return start._replace(positions=self.positions(streams))
        if self._seeded:
            for stream, position in zip(streams, self._header["positions"], strict=True):
                stream.seek(tuple(position))
        parts = _filled((start.theta, start.optimizer, start.average), iter(self._leaves))
        return TrainingState(self._header["n_done"], parts[0], parts[1], parts[2], self._header["positions"])

    def positions(self, streams: Streams) -> list[tuple[int, int]] | None:
        """Where the streams stand, if that may be kept."""
        return [stream.position for stream in streams] if self._seeded else None

    def keep(self, state: TrainingState, *, now: bool = False) -> None:
        """Write the state, if its turn has come or it is asked for `now`; the file is the old one or the new one."""
        if not now and state.n_done % self._every:
            return
        header = {
            "schema": _SCHEMA, "run": self._run, "receipt": self.receipt, "n_done": state.n_done,
            "positions": state.positions,
        }  # fmt: skip
        leaves = _flat((state.theta, state.optimizer, state.average))
        made = self.path.with_name(f"{self.path.name}.{os.getpid()}.part")
        try:
            with open(made, "wb") as file:
                named = {f"leaf_{number}": leaf for number, leaf in enumerate(leaves)}
                np.savez(file, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **named)
                file.flush()
                os.fsync(file.fileno())
            os.replace(made, self.path)
        finally:
            made.unlink(missing_ok=True)

    def finish(self) -> None:
        """The run is complete: there is nothing to go on with."""
        self.path.unlink(missing_ok=True)

    def _read(self) -> None:
        try:
            with np.load(self.path, allow_pickle=False) as file:
                self._header = json.loads(bytes(file["header"]))
                self._leaves = [file[f"leaf_{number}"] for number in range(len(file.files) - 1)]
            found = self._header["schema"], self._header["run"]
        except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(
                f"checkpoint={str(self.path)!r} is no checkpoint ({error}): give another path, or remove the file."
            ) from None
        if found != (_SCHEMA, json.loads(json.dumps(self._run))):
            raise ValueError(
                f"checkpoint={str(self.path)!r} is of another run ({_difference(found[1], self._run)}): give the "
                "parameters and the table of that run, another path, or remove the file."
            )
        self.receipt = self._header["receipt"]


def _difference(found: Any, wanted: dict[str, Any]) -> str:
    if not isinstance(found, dict):
        return "its schema is not known"
    return next((f"its {name} differs" for name in wanted if found.get(name) != wanted[name]), "its schema differs")


def _flat(tree: Any) -> list[Any]:
    """Arrays and numbers of a state, in order."""
    if isinstance(tree, tuple):
        return [leaf for part in tree for leaf in _flat(part)]
    return [] if tree is None else [tree]


def _filled(like: Any, leaves: Any) -> Any:
    """A state of the shape of `like`, with these leaves."""
    if isinstance(like, tuple):
        return tuple(_filled(part, leaves) for part in like)
    if like is None:
        return None
    leaf = next(leaves)
    return leaf if isinstance(like, np.ndarray) else type(like)(leaf)
