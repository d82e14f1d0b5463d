"""One entry of a bill, the terms of a bill, and the price of everything on it."""

from __future__ import annotations

import math
import numbers
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from ._composition import releases
from ._filters import FAMILIES
from ._methods import check_delta, check_epsilon, check_method, get_epsilon
from ._refusals import refusal
from ._report import sampling_of
from .events import DpEvent

__all__ = ["Charge", "Terms", "check_text", "joint_price", "now", "plain_parameters"]

_MOST_VALUES = 64  # of a sequence that is written out
_DEEPEST = 4


@dataclass(frozen=True)
class Charge:
    """One entry of an accountant's history."""

    event: DpEvent
    label: str
    adjacency: str
    unit: str = "row"
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)
    note: str = ""
    time: str = field(default="", compare=False)

    @property
    def sampling(self) -> str:
        """How rows were sampled."""
        return sampling_of(self.event)


@dataclass(frozen=True)
class Terms:
    """What an accountant was opened with, and never changes: its ceiling, its unit, the family of its filter.

    `version` is the schema of the log when it was begun; `id` tells two logs begun with the same terms apart.
    """

    epsilon: float | None
    delta: float | None
    unit: str = "row"
    family: str = "auto"
    created: str = ""
    id: str = ""
    version: int = 1

    @classmethod
    def checked(cls, epsilon: Any, delta: Any, unit: Any = None, family: Any = None) -> Terms:
        """New terms, each of them checked; unit and family by default "row" and "auto"."""
        unit, family = "row" if unit is None else unit, "auto" if family is None else family
        if (epsilon is None) != (delta is None):
            raise ValueError(f"epsilon={epsilon!r}, delta={delta!r}: a ceiling needs both; give both or neither.")
        if not isinstance(unit, str) or not unit:
            raise ValueError(f"unit={unit!r} is not valid; give a word such as 'row' or 'person'.")
        if family not in FAMILIES:
            raise ValueError(f"filter_family={family!r} is not known; choose one of {', '.join(FAMILIES)}.")
        epsilon = None if epsilon is None else check_epsilon(epsilon, positive=True)
        delta = None if delta is None else check_delta(delta)
        return cls(epsilon, delta, check_text("unit", unit), family, now(), secrets.token_hex(8))

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> Terms:
        """Terms by the names that `written` gives them, each of them checked."""
        checked = cls.checked(content["epsilon"], content["delta"], content["unit"], content["filter_family"])
        created, identity = (check_text(name, content[name]) for name in ("created", "id"))
        return replace(checked, created=created, id=identity, version=int(content["version"]))

    def written(self) -> dict[str, Any]:
        """The terms by the names that the JSON and the file give them."""
        named = {"epsilon": self.epsilon, "delta": self.delta, "unit": self.unit, "filter_family": self.family}
        return {"version": self.version, "id": self.id, "created": self.created, **named}


def now() -> str:
    """The time as ISO 8601, in UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def check_text(name: str, value: Any) -> str:
    """`value` if it is a string that can be written down."""
    if not isinstance(value, str):
        raise TypeError(f"{name}={value!r} is not valid; give a string.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name}={value!r} is not valid; give a string that UTF-8 can write.") from None
    return value


def plain_parameters(parameters: Any) -> dict[str, Any]:
    """Parameters as JSON can hold them.

    Parameters
    ----------
    parameters : mapping of str to anything, or None
        Numbers, strings, and short sequences and mappings of these are kept. Of anything else the name of its
        type is kept and nothing more, as it might hold data.

    Returns
    -------
    dict
    """
    if parameters is None:
        return {}
    if not isinstance(parameters, Mapping) or not all(isinstance(name, str) for name in parameters):
        raise TypeError(f"parameters={type(parameters).__name__} is not valid; give a dictionary with names as keys.")
    return {check_text("parameters", name): _plain(value, 0) for name, value in parameters.items()}


def _plain(value: Any, depth: int) -> Any:
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.size <= _MOST_VALUES):
        value = value.tolist()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if depth == _DEEPEST or not isinstance(value, list | tuple | range | Mapping) or len(value) > _MOST_VALUES:
        return f"<{type(value).__name__}>"
    if isinstance(value, Mapping):
        return {_plain(str(name), depth): _plain(part, depth + 1) for name, part in value.items()}
    return [_plain(part, depth + 1) for part in value]


def joint_price(event: DpEvent, delta: float, adjacency: str, method: str | None = None) -> float:
    """Price by `method`, or by the tightest method that prices the event: PLD, else Rényi.

    Parameters
    ----------
    event : DpEvent
    delta : float
        In (0, 1).
    adjacency : str
    method : str, optional
        A guarantee; approximations are refused.

    Returns
    -------
    float
        In nats.
    """
    if method is None:
        found, replace = releases(event), adjacency == "replace_one"
        method = next((each for each in ("pld", "rdp") if refusal(found, each, replace) is None), "pld")
    return get_epsilon(event, delta, method=check_method(method), adjacency=adjacency)
