"""One entry of a ledger, the terms of a ledger, and the price of everything in it."""

from __future__ import annotations

import math
import numbers
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import numpy as np

from skdp.accounting.events.specifications import DpEvent, show
from skdp.accounting.ledger.filters import FAMILIES, REMOVED_FAMILIES, Rule
from skdp.accounting.ledger.report import sampling_of
from skdp.accounting.methods import (
    AddRemove,
    check_adjacency,
    check_delta,
    check_epsilon,
    check_known,
    check_method,
    get_delta,
    get_epsilon,
    refusal,
)
from skdp.accounting.releases import Releases, releases
from skdp.accounting.statements.targets import Risk

# Of entries: a charge has a price; a refusal of rows has none; a raise of the budget has the new one as parameter; a
# split of the data set has its key.
ENTRY_KINDS = ("charge", "refusal", "raise", "split")

_VERSION = 2  # of the rules by which ledgers admit charges
_MOST_VALUES = 64  # of a sequence that is written out
_DEEPEST = 4


@dataclass(frozen=True)
class Charge:
    """One entry of an accountant's ledger.

    Parameters
    ----------
    event : DpEvent
        What was charged; `NoOpDpEvent` for all other entries.
    label : str
        What the charge was for.
    adjacency : {"zero_out", "add_remove", "replace_one"}
        Neighbouring relation for which the event holds.
    unit : str, default="row"
        What one record is.
    parameters : mapping, optional
        Public parameters of what was run; the new `epsilon` of a raise; what a split keeps.
    note : str, default=""
        Anything else worth keeping.
    time : str, default=""
        Time of the entry, ISO 8601 in UTC.
    kind : {"charge", "refusal", "raise", "split"}, default="charge"
        Kind of entry.
    rule : Rule or None, default=None
        Rule by which further charges are admitted, with the charge that fixed it.
    partition : str or None, default=None
        The only units that the charge concerns; None: all.
    partition_rule : str or None, default=None
        How units are assigned to partitions, with the charge that told it.
    """

    event: DpEvent
    label: str
    adjacency: str
    unit: str = "row"
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)
    note: str = ""
    time: str = field(default="", compare=False)
    kind: str = "charge"
    rule: Rule | None = field(default=None, compare=False, repr=False)
    partition: str | None = None
    partition_rule: str | None = field(default=None, compare=False, repr=False)

    @property
    def seeded(self) -> bool | None:
        """Whether `random_state` was set; None if that was not recorded. A seed repeats the noise of a class."""
        found = self.parameters.get("seeded")
        return found if isinstance(found, bool) else None

    @property
    def sampling(self) -> str:
        """How rows were sampled."""
        return sampling_of(self.event)


@dataclass(frozen=True)
class Terms:
    """What an accountant was opened with, and never changes: its budget, its unit, the family of its filter.

    `method` and `adjacency` are None where nothing was stated: PLD, and the adjacency of the first charge. `id` tells
    two logs begun with the same terms apart.
    """

    epsilon: float | None
    delta: float | None
    unit: str = "row"
    family: str = "auto"
    created: str = ""
    id: str = ""
    method: str | None = None
    adjacency: str | None = None

    @classmethod
    def create(
        cls, epsilon: Any, delta: Any, unit: Any = None, family: Any = None, method: Any = None, adjacency: Any = None
    ) -> Terms:
        """New terms, each of them checked; unit and family by default "row" and "auto"."""
        unit, family = "row" if unit is None else unit, "auto" if family is None else family
        if (epsilon is None) != (delta is None):
            raise ValueError(
                f"epsilon={show(epsilon)}, delta={show(delta)}: a budget needs both; give both or neither."
            )
        if not isinstance(unit, str) or not unit:
            raise ValueError(f"unit={show(unit)} is not valid; give a word such as 'row' or 'person'.")
        if isinstance(family, str) and family in REMOVED_FAMILIES:
            raise ValueError(f"filter_family={family!r} was removed: {REMOVED_FAMILIES[family]}.")
        check_known("filter_family", family, FAMILIES)
        epsilon = None if epsilon is None else check_epsilon(epsilon, positive=True)
        delta = None if delta is None else check_delta(delta)
        method = None if method is None else check_method(method)
        adjacency = None if adjacency is None else check_adjacency(adjacency)
        return cls(epsilon, delta, check_text("unit", unit), family, now(), secrets.token_hex(8), method, adjacency)

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> Terms:
        """Terms by the names that `to_dict` gives them, each of them checked; older records state no later ones."""
        later = content.get("method"), content.get("adjacency")
        checked = cls.create(content["epsilon"], content["delta"], content["unit"], content["filter_family"], *later)
        created, identity = (check_text(name, content[name]) for name in ("created", "id"))
        if content["version"] != _VERSION:
            raise ValueError(f"version={show(content['version'])} is not known; use the skdp that wrote the ledger.")
        return replace(checked, created=created, id=identity)

    def to_dict(self) -> dict[str, Any]:
        """The terms by the names that the JSON and the file give them."""
        named = {"epsilon": self.epsilon, "delta": self.delta, "unit": self.unit, "filter_family": self.family}
        named |= {"method": self.method, "adjacency": self.adjacency}
        return {"version": _VERSION, "id": self.id, "created": self.created, **named}


def now() -> str:
    """The time as ISO 8601, in UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def check_text(name: str, value: Any) -> str:
    """`value` if it is a string that can be written down."""
    if not isinstance(value, str):
        raise TypeError(f"{name}={show(value)} is not valid; give a string.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name}={value!r} is not valid; give a string that UTF-8 can write.") from None
    return value


def check_name(name: str, value: Any) -> str | None:
    """`value` if it is a string that says something, or None."""
    if value is None:
        return None
    if not check_text(name, value).strip() or value != value.strip():
        raise ValueError(f"{name}={value!r} is not valid; give a text without white space at its ends, or None.")
    return str(value)


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
    if isinstance(value, Risk | AddRemove):
        value = {name: each for name, each in vars(value).items() if each is not None}
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


# Methods in the order in which they are tried; between them they price all that any method with a guarantee does.
_TIGHTEST = ("pld", "rdp", "optimal")


@lru_cache(maxsize=4096)
def methods_for(found: Releases, adjacency: str) -> frozenset[str]:
    """Which of them price a composition: those that price each of its parts."""
    replace_one = adjacency == "replace_one"
    return frozenset(each for each in _TIGHTEST if refusal(found, each, replace_one, remedy=False) is None)


def joint_price(event: DpEvent, delta: float, adjacency: str, method: str | None = None) -> float:
    """Price by `method`, or by the tightest method that prices the event: PLD, else Rényi, else composed statements.

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
    return get_epsilon(event, delta, method=_method(event, adjacency, method), adjacency=adjacency)


def joint_delta(event: DpEvent, epsilon: float, adjacency: str, method: str | None = None) -> float:
    """The delta of the same at an epsilon, by the method that `joint_price` takes."""
    return get_delta(event, epsilon, method=_method(event, adjacency, method), adjacency=adjacency)


def _method(event: DpEvent, adjacency: str, method: str | None) -> str:
    if method is not None:
        return check_method(method)
    found = methods_for(releases(event), adjacency)
    return next((each for each in _TIGHTEST if each in found), "pld")
