"""Checkpoint of a training run: its latest state on disk, from which an interrupted run resumes.

A file contains the parameters, the optimizer and the average after some step, the releases before the first step, and a
description of the run. All of these are functions of noisy releases. It contains no gradient and no row. It contains
the state of a random generator only if the run was seeded, in which case the noise is not secret.

Between two files a run publishes nothing. A killed run that resumes from its last file has therefore released one
result per step of its plan. An interrupted or complete run writes a file before it returns its model, so the same steps
are never released again. If a process dies after writing a file and before renaming it, that file contains later steps,
which may have been read. The run then resumes from the latest state on disk.

The first file, before the first step, is written before the charge, so a full disk costs no budget. A process that dies
between the two leaves a file whose receipt no accountant has recorded: a run that resumes from it is charged.

Two runs that resume from the same file would release the same steps twice, for one charge. A lock excludes this. It is
an operating system lock on a separate file, which excludes threads and processes alike and disappears when its process
dies. The checkpoint itself cannot be locked, because each new state replaces the file.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import secrets
import sys
import weakref
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from skdp._checks.sources import read_arrays
from skdp.exceptions import warn
from skdp.mechanisms.streams import SecretStream

_SCHEMA = 1

Streams = tuple[SecretStream, ...]


class TrainingState(NamedTuple):
    """State of a run after `n_done` steps; `positions` are those of the streams, for a seeded run with a file."""

    n_done: int
    theta: np.ndarray
    optimizer: Any
    average: Any
    positions: Any = None


class Checkpoint:
    """Checkpoint file of one run. The run holds the lock, so files left by killed processes can be removed.

    Parameters
    ----------
    path : str or path-like
    seeded : bool
        Whether to store the positions of the streams, so that the run resumes with the same noise.

    Attributes
    ----------
    begun : bool
        Whether there is a file to resume from.
    receipt : str
        Id of the release, which the note of the charge contains.
    noisy_sums : dict of str to list of float
        Releases before the first step, by name; each file contains them.
    """

    def __init__(self, path: Any, *, seeded: bool) -> None:
        self.path, self._seeded = Path(os.fspath(path)).resolve(), seeded
        self._run: dict[str, Any] = {}
        self._every = 1
        self.receipt = secrets.token_hex(16)
        self._header: dict[str, Any] = {}
        self._leaves: list[Any] = []
        with _told(self.path, "cannot be used", _UNCHARGED):
            _keep_the_latest(self.path)
            self.begun = self.path.exists()
        if self.begun:
            self._header, self._leaves = _read(self.path)
            self.receipt = self._header["receipt"]
        self.noisy_sums: dict[str, list[float]] = dict(self._header["noisy_sums"]) if self.begun else {}

    @property
    def note(self) -> str:
        """Note of the charge, by which a resumed run finds it."""
        return f"checkpoint {self.receipt}"

    def continues(self, releases: tuple[Any, ...]) -> bool:
        """Return whether a state that depends on `releases` is an interrupted state of this run."""
        return bool(releases) and releases[-1].id == self.receipt

    def check_run(self, run: dict[str, Any], n_steps: int) -> None:
        """Reject a file of another run; `run` describes this one in plain, public values."""
        self._run, self._every = run, max(1, n_steps // 20)  # some twenty files a run
        if not self.begun:
            return
        found, wanted = self._header["run"], json.loads(json.dumps(self._run))
        if self._header["schema"] != _SCHEMA or found != wanted:
            raise ValueError(
                f"checkpoint={str(self.path)!r} belongs to another run ({_describe_difference(found, wanted)}). Use "
                "the parameters and data of that run, pass another path, or remove the file."
            )

    def resume(self, start: TrainingState, streams: Streams) -> TrainingState:
        """Return the state in the file and set the streams to its positions; without steps in it, return `start`.

        A file without steps was written before the charge, and so before the releases on which a start depends.
        """
        if not self.begun:
            return start._replace(positions=self.positions(streams))
        if self._seeded:
            for stream, position in zip(streams, self._header["positions"], strict=True):
                stream.seek(tuple(position))
        like = start.theta, start.optimizer, start.average
        expected = [(np.shape(leaf), np.result_type(leaf)) for leaf in _flatten(like)]
        if expected != [(np.shape(leaf), np.result_type(leaf)) for leaf in self._leaves]:
            raise ValueError(f"checkpoint={str(self.path)!r} is damaged. Remove the file and fit again.")
        if not self._header["n_done"]:
            return start._replace(positions=self._header["positions"])
        parts = _fill(like, iter(self._leaves))
        return TrainingState(self._header["n_done"], parts[0], parts[1], parts[2], self._header["positions"])

    def positions(self, streams: Streams) -> list[tuple[int, int]] | None:
        """Return the positions of the streams, if they may be stored."""
        return [stream.position for stream in streams] if self._seeded else None

    def begin(self, state: TrainingState) -> None:
        """Write the state from which a run starts or resumes, before it is charged."""
        self._write(state, _UNCHARGED)

    def keep(self, state: TrainingState, *, now: bool = False) -> None:
        """Write the state, every few steps or `now`."""
        if now or state.n_done % self._every == 0:
            self._write(state, _CHARGED)

    def keep_noisy_sums(self, name: str, found: list[float]) -> None:
        """Write a release before the first step, with the initial state of the file."""
        self.noisy_sums[name] = found
        self._write(self._state, _CHARGED)

    def check_noisy_sums(self, names: Iterable[str], planned: Collection[str]) -> None:
        """Reject a file with releases that are not planned, or with steps but without the releases they depend on."""
        if self.begun and (others := sorted(set(self.noisy_sums) - set(planned))):
            raise ValueError(
                f"checkpoint={str(self.path)!r} belongs to a run that released {', '.join(others)}, which is not part "
                "of this run. Use the parameters of that run (such as classes), pass another path, or remove the "
                "file."
            )
        if self.begun and self._header["n_done"] and any(name not in self.noisy_sums for name in names):
            raise ValueError(
                f"checkpoint={str(self.path)!r} lacks the releases made before its first step. Pass another path, or "
                "remove the file."
            )

    def _write(self, state: TrainingState, charge: str) -> None:
        """Replace the file atomically; `charge` is the part of the message of an error."""
        self._state = state
        header = {
            "schema": _SCHEMA, "run": self._run, "receipt": self.receipt, "n_done": state.n_done,
            "positions": state.positions, "noisy_sums": self.noisy_sums,
        }  # fmt: skip
        leaves = _flatten((state.theta, state.optimizer, state.average))
        # In the same folder, so that the replacement below is a rename within one file system, which is atomic.
        made = self.path.with_name(f"{self.path.name}.{secrets.token_hex(6)}.part")
        with _told(self.path, "could not be written", charge):
            try:
                with open(made, "wb") as file:
                    named = {f"leaf_{number}": leaf for number, leaf in enumerate(leaves)}
                    np.savez(file, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **named)
                    file.flush()
                    os.fsync(file.fileno())  # the contents are on disk before the name points to them
                os.replace(made, self.path)
            finally:
                made.unlink(missing_ok=True)

    def finish(self) -> None:
        """Remove the file when the run is complete and its model is published."""
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            warn(
                f"checkpoint={str(self.path)!r} of a completed fit could not be removed ({_reason(error)}). Remove "
                "the file; otherwise the next fit returns the same model."
            )

    def discard(self) -> None:
        """Remove a file that this run created, because its charge was rejected."""
        if not self.begun:
            with contextlib.suppress(OSError):
                self.path.unlink(missing_ok=True)


_UNCHARGED = "No budget was charged. Free disk space, make the folder writable, or pass another path"
_CHARGED = (
    "The budget was already charged. Free disk space and fit again: the fit resumes from the last written file and "
    "is not charged again"
)


@contextlib.contextmanager
def _told(path: Path, what: str, charge: str) -> Iterator[None]:
    """Say in one line which file failed, and whether the charge stands."""
    try:
        yield
    except OSError as error:
        failure = OSError(f"checkpoint={str(path)!r} {what} ({_reason(error)}). {charge}.")
        failure.errno = error.errno
        raise failure from None


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__


def _read(path: Path) -> tuple[dict[str, Any], list[Any]]:
    """Read the header and the arrays of a file."""
    with contextlib.suppress(KeyError, TypeError, ValueError, RecursionError):  # which is no checkpoint
        arrays = read_arrays(path, None, path.stat().st_size)  # nothing in it is compressed
        header: dict[str, Any] = json.loads(bytes(arrays[0])) if arrays else {}
        if arrays and _is_header(header):
            return header, [leaf if leaf.ndim else leaf.item() for leaf in arrays[1:]]
    raise ValueError(f"checkpoint={str(path)!r} is not a checkpoint file. Pass another path, or remove the file.")


def _is_header(found: Any) -> bool:
    """Whether it holds what a run looks up; what a run is has to be equal anyway."""
    if not (isinstance(found, dict) and {"schema", "run", "positions"} <= found.keys()):
        return False
    n_done, noisy_sums = found["n_done"], found["noisy_sums"]
    lists = isinstance(noisy_sums, dict) and all(isinstance(each, list) for each in noisy_sums.values())
    finite = lists and all(np.isfinite(np.array(each, np.float64)).all() for each in noisy_sums.values())
    return bool(finite and type(n_done) is int and n_done >= 0 and isinstance(found["receipt"], str))


def _keep_the_latest(path: Path) -> None:
    """Remove the leftovers of killed processes, or keep one if it holds later steps of the same run."""
    for part in sorted(path.parent.glob(f"{glob.escape(path.name)}.*.part")):
        try:
            headers = [_read(each)[0] for each in ((part, path) if path.exists() else (part,))]
            # Of the same run, with later releases: of steps, or beside them.
            n_done = [(each["n_done"], len(each["noisy_sums"])) for each in headers]
            latest = len({each["receipt"] for each in headers}) == 1 and n_done[1:] < n_done[:1]
        except ValueError:  # cut short; a damaged main file is rejected later
            latest = False
        if latest:
            os.replace(part, path)
        else:
            part.unlink(missing_ok=True)


def _describe_difference(found: Any, wanted: dict[str, Any]) -> str:
    if not isinstance(found, dict):
        return "unknown schema"
    return next((f"different {name}" for name in wanted if found.get(name) != wanted[name]), "different schema")


def _flatten(tree: Any) -> list[Any]:
    """List the arrays and numbers of a state, in order."""
    if isinstance(tree, tuple):
        return [leaf for part in tree for leaf in _flatten(part)]
    return [] if tree is None else [tree]


def _fill(like: Any, leaves: Any) -> Any:
    """Build a state of the structure of `like` from its leaves."""
    if isinstance(like, tuple):
        parts = [_fill(part, leaves) for part in like]
        return type(like)(*parts) if hasattr(like, "_fields") else tuple(parts)  # the states of optimizers have names
    if like is None:
        return None
    leaf = next(leaves)
    return leaf if isinstance(like, np.ndarray) else type(like)(leaf)


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class RunLock:
    """Exclusive lock on ``<path>.lock``, a file that exists only while the lock is held, or after a kill.

    Parameters
    ----------
    path : str or path-like
        Checkpoint of the run.

    Notes
    -----
    Entering the context does not take the lock. Call `take` inside the block, so that no interrupt can occur between
    taking the lock and entering the block that releases it. A forked child drops its copy, and the parent keeps the
    lock.
    """

    def __init__(self, path: Any) -> None:
        self._path = Path(os.fspath(path)).resolve()
        self._file: Any = None
        self._is_held = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def take(self) -> None:
        """Take the lock, or raise ValueError."""
        lock_path = self._path.with_name(self._path.name + ".lock")
        _ALL.add(self)
        try:
            # The last holder may remove the file between opening and locking it: then try again with a new file.
            while not self._is_held:
                self._file = open(lock_path, "ab", buffering=0)  # noqa: SIM115
                self._take(lock_path)
        except OSError as error:
            raise ValueError(
                f"checkpoint={str(self._path)!r} cannot be locked ({error.strerror or error}). Pass a path in an "
                "existing, writable folder that supports file locks."
            ) from None

    def _take(self, lock_path: Path) -> None:
        """Lock the open file. The lock is valid only if its last holder has not removed the file meanwhile."""
        try:
            _lock(self._file.fileno())
        except (BlockingIOError, PermissionError):
            raise ValueError(
                f"checkpoint={str(self._path)!r} is in use by another run. Wait until that run ends, or pass another "
                "path."
            ) from None
        with contextlib.suppress(FileNotFoundError):
            self._is_held = os.path.samestat(os.fstat(self._file.fileno()), os.stat(lock_path))

    def release(self) -> None:
        """Remove the file under its lock, and release the lock."""
        if self._file is None:
            return
        try:
            # Removed while locked: a run that opens the file later creates a new one.
            if self._is_held and sys.platform != "win32":
                os.unlink(self._file.name)
        except OSError:  # removed by hand, or not to be removed any more: a file that nobody locks is no hindrance
            pass
        finally:
            self._file.close()
        if self._is_held and sys.platform == "win32":  # no open file can be removed there, be it ours or another run's
            with contextlib.suppress(OSError):
                os.unlink(self._file.name)
        self._file, self._is_held = None, False

    def let_go(self) -> None:
        """Close the file in a forked child, without releasing the lock of the parent."""
        if self._file is not None:
            self._file.close()
        self._file, self._is_held = None, False


_ALL: weakref.WeakSet[RunLock] = weakref.WeakSet()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: list(map(RunLock.let_go, list(_ALL))))
