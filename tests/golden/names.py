"""Public names that were renamed, as recorded -> as they are now: the only place that a renaming has to edit.

Of parameters, attributes, classes, functions, labels and events. Recorded facts and computations use the names that
were current when they were recorded.
"""

from __future__ import annotations

import importlib
from typing import Any

from skdp import AddRemove, Risk

PARAMETERS: dict[str, str] = {}
CLASSES: dict[str, str] = {}
FACTS: dict[str, str] = {
    "label_shares_": "class_prevalences_",
    "noise_share": "noise_fraction",
    "gaps": "missing",
    "gaps_low": "missing_low",
    "gaps_high": "missing_high",
}
"""Attributes, labels of charges, events and columns of tables, as they occur in facts."""


def public(path: str) -> Any:
    """Return a class or function by the dotted name that it had, such as "skdp.DPRidge"."""
    module, _, name = CLASSES.get(path, path).rpartition(".")
    return getattr(importlib.import_module(module), name)


def made(path: str, *given: Any, **parameters: Any) -> Any:
    """Make an estimator, or call a function, by the names that class and parameters had."""
    if "risk" in parameters:
        parameters["epsilon"] = Risk(**parameters.pop("risk"))
    if parameters.get("adjacency") == "add_remove":
        parameters["adjacency"] = AddRemove(parameters.pop("n_samples_public"))
    return public(path)(*given, **{PARAMETERS.get(name, name): each for name, each in parameters.items()})


def renamed(facts: Any) -> Any:
    """Return recorded facts with the names that are current."""
    if isinstance(facts, dict):
        return {FACTS.get(name, name): renamed(each) for name, each in facts.items()}
    if isinstance(facts, list):
        return [renamed(each) for each in facts]
    if isinstance(facts, str):
        for old, new in FACTS.items():
            facts = facts.replace(old, new)
    return facts
