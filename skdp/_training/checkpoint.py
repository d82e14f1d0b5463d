"""A training run on disk: what has been released so far, so that a run that was stopped can be resumed.

A file holds parameters, optimiser and average after some step, all of which are functions of noisy releases, and what
the run was. It holds no gradient, no row, and no state of a generator unless the run was seeded, which is no secret.

Between two files a run releases nothing that outlives it, so a killed run that resumes from its last file has still
released one result per step of its plan. An interrupted or complete one writes a file before its model is handed out,
so that the same steps are never released again. A file that was written but not yet moved to its name when the process
died holds later steps, which somebody may have read: the run resumes from the latest state there is.
"""

from __future__ import annotations

import glob
import json
import os
import secrets
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from skdp._fitting.releases import Release
from skdp._random import SecretStream
from skdp._training.optimizers import Vector

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
    """The file of one run, which holds its lock: what is beside the file is of no living process, and is swept up.

    Parameters
    ----------
    path : str or path-like
    run : dict
        What the run is, of plain values: a file of another run is refused.
    earlier : tuple of Release
        What the state that the run starts from depends on, the run itself included if it was interrupted there.
    n_steps : int
    seeded : bool
        Whether the positions of the streams are kept, so that the run resumes with the very same noise.

    Attributes
    ----------
    begun : bool
        Whether there is a file to resume from.
    receipt : str
        What the run's charge bears as a note, and the id of its release.
    """

    def __init__(
        self, path: Any, run: dict[str, Any], earlier: tuple[Release, ...], n_steps: int, *, seeded: bool
    ) -> None:
        self.path, self._run, self._seeded = Path(os.fspath(path)).resolve(), run, seeded
        self._every = max(1, n_steps // _FILES_A_RUN)
        self.receipt = secrets.token_hex(16)
        self._header: dict[str, Any] = {}
        self._leaves: list[Any] = []
        _keep_the_latest(self.path)
        self.begun = self.path.exists()
        if self.begun:
            self._header, self._leaves = _read(self.path)
            self.receipt = self._header["receipt"]
        if self.goes_on_in(earlier):
            earlier = earlier[:-1]
        self._run["earlier events"] = [repr(release.event) for release in earlier]

    def goes_on_in(self, releases: tuple[Release, ...]) -> bool:
        """Whether a state that depends on `releases` is that of this very run, interrupted."""
        return bool(releases) and releases[-1].id == self.receipt

    def check_run(self, table: tuple[Any, ...]) -> None:
        """Refuse a file of another run; `table` is what is public of the rows."""
        self._run["table"] = repr(table)
        if not self.begun:
            return
        found, wanted = _of_today(self._header["run"]), json.loads(json.dumps(self._run))
        if self._header["schema"] != _SCHEMA or found != wanted:
            raise ValueError(
                f"checkpoint={str(self.path)!r} is of another run ({_difference(found, wanted)}): give the "
                "parameters, the first phase and the table of that run, another path, or remove the file."
            )

    def resumed(self, start: TrainingState, streams: Streams) -> TrainingState:
        """The state in the file, its streams set to where they were; `start`, a state of that shape, without a file."""
        if not self.begun:
            return start._replace(positions=self.positions(streams))
        if self._seeded:
            for stream, position in zip(streams, self._header["positions"], strict=True):
                stream.seek(tuple(position))
        parts = _fill((start.theta, start.optimizer, start.average), iter(self._leaves))
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
        leaves = _flatten((state.theta, state.optimizer, state.average))
        made = self.path.with_name(f"{self.path.name}.{secrets.token_hex(6)}.part")
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
        """The run is complete and its model handed out: there is nothing to resume."""
        self.path.unlink(missing_ok=True)


def _read(path: Path) -> tuple[dict[str, Any], list[Any]]:
    """Header and arrays of a file."""
    try:
        with np.load(path, allow_pickle=False) as file:
            header = json.loads(bytes(file["header"]))
            leaves = [file[f"leaf_{number}"] for number in range(len(file.files) - 1)]
        for name in ("schema", "run", "receipt", "n_done"):
            header[name]
        return header, leaves
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"checkpoint={str(path)!r} is no checkpoint ({error}): give another path, or remove the file."
        ) from None


def _keep_the_latest(path: Path) -> None:
    """Sweep up what a killed process left beside the file, and keep it where it holds later steps of the same run."""
    for part in sorted(path.parent.glob(f"{glob.escape(path.name)}.*.part")):
        try:
            header = _read(part)[0]
            latest = not path.exists() or _is_later(header, _read(path)[0])
        except ValueError:  # cut short; a damaged main file is refused later
            latest = False
        if latest:
            os.replace(part, path)
        else:
            part.unlink(missing_ok=True)


def _is_later(header: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether a file holds later steps of the same run."""
    return bool(header["receipt"] == other["receipt"] and header["n_done"] > other["n_done"])


def _of_today(run: Any) -> Any:
    """What a run is, as today's files have it: the first ones had the number of earlier steps and not their events."""
    if isinstance(run, dict) and run.get("earlier steps") == 0:
        return {**{name: run[name] for name in run if name != "earlier steps"}, "earlier events": []}
    return run


def _difference(found: Any, wanted: dict[str, Any]) -> str:
    if not isinstance(found, dict):
        return "its schema is not known"
    return next((f"its {name} differs" for name in wanted if found.get(name) != wanted[name]), "its schema differs")


def _flatten(tree: Any) -> list[Any]:
    """Arrays and numbers of a state, in order."""
    if isinstance(tree, tuple):
        return [leaf for part in tree for leaf in _flatten(part)]
    return [] if tree is None else [tree]


def _fill(like: Any, leaves: Any) -> Any:
    """A state of the shape of `like`, with these leaves."""
    if isinstance(like, tuple):
        parts = [_fill(part, leaves) for part in like]
        return type(like)(*parts) if hasattr(like, "_fields") else tuple(parts)  # the states of optimizers have names
    if like is None:
        return None
    leaf = next(leaves)
    return leaf if isinstance(like, np.ndarray) else type(like)(leaf)
