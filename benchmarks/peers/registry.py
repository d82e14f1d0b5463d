"""Contestants: one function each."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any, NamedTuple

import peers
from peers.tasks import Task


class Contestant(NamedTuple):
    """Who takes part, and where.

    Attributes
    ----------
    name : str
    make : callable
        ``make(task, X, y)`` imports the library and returns a step: a function without arguments that does one, or an
        object whose ``turn(seconds)`` does some and returns the seconds of each.
    kinds : tuple of str
        Kinds of tasks, or names of tasks, that it takes.
    home : str
        The environment, see `environments.py`.
    module : str
        File of `make`.
    role : {"limit", "plain", "private", "ours"}
        "limit" is part of the work only, "plain" is without privacy.
    draws : bool
        Whether a step draws its lot and gathers the rows. Others get batches that were gathered beforehand.
    """

    name: str
    make: Callable[[Task, Any, Any], Any]
    kinds: tuple[str, ...]
    home: str
    module: str
    role: str
    draws: bool

    def takes(self, key: str, task: Task) -> bool:
        """Whether this contestant is for the task of this name."""
        return key in self.kinds or task.kind in self.kinds


CONTESTANTS: dict[str, Contestant] = {}


def contestant(
    name: str, *kinds: str, role: str, home: str = "here", draws: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function as a contestant."""

    def enter(make: Callable[..., Any]) -> Callable[..., Any]:
        CONTESTANTS[name] = Contestant(name, make, kinds, home, make.__module__, role, draws)
        return make

    return enter


def load_all() -> dict[str, Contestant]:
    """Read every file of contestants; none imports its library before it takes part."""
    for part in pkgutil.iter_modules(peers.__path__):
        if part.name != "worker":
            importlib.import_module(f"peers.{part.name}")
    return CONTESTANTS
