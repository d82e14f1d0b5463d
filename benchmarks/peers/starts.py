"""What a process waits for before its first step: imports, and what a first fit compiles or loads."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from peers.registry import contestant

_CLOCK = "import time; start = time.perf_counter()\n{}\nprint(time.perf_counter() - start)"
_FIT = """\
import numpy as np
X = np.random.default_rng(0).random((1000, 11), dtype=np.float32); y = (X[:, 0] > .5).astype(int)
from skdp import DPLogisticRegression
{}DPLogisticRegression(classes=[0, 1]).fit(X, y)"""


class Starts:
    """Processes one after another, each of which prints its seconds."""

    warms_up = False

    def __init__(self, code: str, environment: Callable[[], Mapping[str, str]] = dict) -> None:
        self._code, self._environment = code, environment

    def turn(self, seconds: float) -> list[float]:
        taken: list[float] = []
        while not taken or sum(taken) < seconds:
            taken.append(self._once())
        return taken

    def _once(self) -> float:
        command = [sys.executable, "-W", "ignore", "-c", self._code]
        given = {**os.environ, **self._environment()}
        return float(subprocess.run(command, capture_output=True, text=True, check=True, env=given).stdout)


def _import(statement: str) -> Starts:
    return Starts(_CLOCK.format(statement))


def _first_fit(environment: Callable[[], Mapping[str, str]] = dict) -> Starts:
    """Seconds of the first fit, imports of skdp left out."""
    return Starts(_FIT.format("import time; start = time.perf_counter()\n") + "\nprint(time.perf_counter() - start)",
                  environment)  # fmt: skip


@contestant("import skdp", "start", role="ours")
def package(*_: Any) -> Any:
    return _import("import skdp")


@contestant("from skdp import DPLogisticRegression", "start", role="ours")
def estimator(*_: Any) -> Any:
    return _import("from skdp import DPLogisticRegression")


@contestant("import sklearn.linear_model", "start", role="plain")
def sklearn(*_: Any) -> Any:
    return _import("import sklearn.linear_model")


@contestant("import opacus", "start", role="private", home="torch")
def opacus(*_: Any) -> Any:
    return _import("import opacus")


@contestant("import jax_privacy", "start", role="private", home="jax")
def jax_privacy(*_: Any) -> Any:
    return _import("import jax_privacy")


@contestant("import diffprivlib.models", "start", role="private", home="diffprivlib")
def diffprivlib(*_: Any) -> Any:
    return _import("import diffprivlib.models")


@contestant("skdp, first fit after install, which compiles", "start", role="ours")
def first_ever(*_: Any) -> Any:
    return _first_fit(lambda: {"NUMBA_CACHE_DIR": _empty_folder()})


@contestant("skdp, first fit of a process", "start", role="ours")
def first_of_process(*_: Any) -> Any:
    return _first_fit()


@contestant("skdp, the same, read-only install without a home", "start", role="ours")
def first_of_read_only_install(*_: Any) -> Any:
    """The first process compiles, and is not counted."""
    place = Path(_empty_folder())
    install_read_only(place)
    return _first_fit(lambda: homeless(place))


def install_read_only(place: Path) -> None:
    """Copy the package to a folder in which Numba cannot write, whoever runs this."""
    import skdp

    shutil.copytree(Path(skdp.__file__).parent, place / "skdp", ignore=shutil.ignore_patterns("__pycache__"))
    (place / "skdp" / "_kernels" / "__pycache__").touch()  # a file: no folder can be made in its place
    for path in place.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)


def homeless(place: Path) -> dict[str, str]:
    """Variables of a process that uses the package at `place`, has no home and may write to a temporary folder."""
    (place / "tmp").mkdir(mode=0o700, exist_ok=True)
    return {
        "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1", "HOME": os.devnull, "XDG_CACHE_HOME": os.devnull,
        "NUMBA_CACHE_DIR": "", "TMPDIR": str(place / "tmp"),
    }  # fmt: skip


_kept: list[tempfile.TemporaryDirectory[str]] = []
"""Folders that live as long as this process."""


def _empty_folder() -> str:
    _kept.append(tempfile.TemporaryDirectory())
    return _kept[-1].name
