"""Entries of an accountant, its fixed terms, and the privacy cost of a composition."""

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
    rejection,
)
from skdp.accounting.releases import Releases, releases
from skdp.accounting.statements.targets import Risk

# Kinds of entries. A charge has a privacy cost, a rejection (rejected input) has none. A raise (budget increase) holds
# the new budget as a parameter, and a split of the data set its key.
ENTRY_KINDS = ("charge", "rejection", "raise", "split")

_VERSION = 2  # of the rules of admission
_MOST_VALUES = 64  # of a recorded sequence
_DEEPEST = 4


@dataclass(frozen=True)
class Charge:
    """One entry in the record of a `skdp.PrivacyAccountant`.

    Parameters
    ----------
    event : DpEvent
        Charged event; `NoOpDpEvent` for entries of another kind.
    label : str
        Purpose of the charge.
    adjacency : {"zero_out", "add_remove", "replace_one"}
        Neighboring relation of the event.
    unit : str, default="row"
        Privacy unit.
    parameters : mapping, optional
        Public parameters of the charged computation; the new `epsilon` of a budget increase; the key of a split.
    note : str, default=""
        Free text.
    time : str, default=""
        Time of the entry, ISO 8601 in UTC.
    kind : {"charge", "rejection", "raise", "split"}, default="charge"
        Kind of entry: a charge, a rejected input, a budget increase or a train/test split.
    rule : Rule or None, default=None
        Rule that admits later charges; recorded with the charge that fixed it.
    partition : str or None, default=None
        Partition of the units that the charge reads; None for all units.
    partition_rule : str or None, default=None
        Rule that assigns units to partitions; recorded with the first charge of a partition.
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
        """Whether `random_state` was set, or None if this was not recorded. A seed makes the noise reproducible."""
        found = self.parameters.get("seeded")
        return found if isinstance(found, bool) else None

    @property
    def sampling(self) -> str:
        """Sampling of the rows, such as "Poisson(0.01)"."""
        return sampling_of(self.event)


@dataclass(frozen=True)
class Terms:
    """Fixed settings of an accountant: its budget, its privacy unit and its filter family.

    `method` and `adjacency` are None if they were not set: PLD, and the adjacency of the first charge. `id`
    distinguishes logs with equal terms.
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
        """Return new, validated terms; the default unit is "row" and the default family "auto"."""
        unit, family = "row" if unit is None else unit, "auto" if family is None else family
        if (epsilon is None) != (delta is None):
            raise ValueError(
                f"`epsilon` and `delta` must both be set or both be None, got {show(epsilon)} and {show(delta)}."
            )
        if not isinstance(unit, str) or not unit:
            raise ValueError(f"`unit` must be a non-empty string such as 'row' or 'person', got {show(unit)}.")
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
        """Return validated terms from the output of `to_dict`; older records lack the later fields."""
        later = content.get("method"), content.get("adjacency")
        checked = cls.create(content["epsilon"], content["delta"], content["unit"], content["filter_family"], *later)
        created, identity = (check_text(name, content[name]) for name in ("created", "id"))
        if content["version"] != _VERSION:
            raise ValueError(
                f"version={show(content['version'])} is not supported. Use the version of skdp that wrote the record."
            )
        return replace(checked, created=created, id=identity)

    def to_dict(self) -> dict[str, Any]:
        """Return the terms as a dictionary with the names used in JSON and in the file."""
        named = {"epsilon": self.epsilon, "delta": self.delta, "unit": self.unit, "filter_family": self.family}
        named |= {"method": self.method, "adjacency": self.adjacency}
        return {"version": _VERSION, "id": self.id, "created": self.created, **named}


def now() -> str:
    """Return the current time in UTC as ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def check_text(name: str, value: Any) -> str:
    """Return `value` if it is a string that can be encoded."""
    if not isinstance(value, str):
        raise TypeError(f"`{name}` must be a string, got {show(value)}.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"`{name}` must be a string that UTF-8 can encode, got {value!r}.") from None
    return value


def check_name(name: str, value: Any) -> str | None:
    """Return `value` if it is a non-blank string or None."""
    if value is None:
        return None
    if not check_text(name, value).strip() or value != value.strip():
        raise ValueError(f"`{name}` must be None or a string without leading or trailing white space, got {value!r}.")
    return str(value)


def plain_parameters(parameters: Any) -> dict[str, Any]:
    """Return parameters in a form that JSON can represent.

    Parameters
    ----------
    parameters : mapping of str to anything, or None
        Numbers, strings, and short sequences and mappings of them are kept. Any other value is replaced by the name
        of its type, because it might contain data.

    Returns
    -------
    dict
    """
    if parameters is None:
        return {}
    if not isinstance(parameters, Mapping) or not all(isinstance(name, str) for name in parameters):
        raise TypeError(f"`parameters` must be a dictionary with string keys, got {type(parameters).__name__}.")
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


# Methods in the order of preference; together they cover every event that some method covers.
_TIGHTEST = ("pld", "rdp", "optimal")


@lru_cache(maxsize=4096)
def methods_for(found: Releases, adjacency: str) -> frozenset[str]:
    """Return the methods that cover every part of a composition."""
    replace_one = adjacency == "replace_one"
    return frozenset(each for each in _TIGHTEST if rejection(found, each, replace_one, remedy=False) is None)


def joint_cost(event: DpEvent, delta: float, adjacency: str, method: str | None = None) -> float:
    """Return epsilon by `method`, or by the tightest method that covers the event: PLD, Rényi, or (epsilon, delta).

    Parameters
    ----------
    event : DpEvent
    delta : float
        In (0, 1).
    adjacency : str
    method : str, optional
        Accounting method; approximations are rejected.

    Returns
    -------
    float
        In nats.
    """
    return get_epsilon(event, delta, method=_method(event, adjacency, method), adjacency=adjacency)


def joint_delta(event: DpEvent, epsilon: float, adjacency: str, method: str | None = None) -> float:
    """Return delta at an epsilon, by the same method as `joint_cost`."""
    return get_delta(event, epsilon, method=_method(event, adjacency, method), adjacency=adjacency)


def _method(event: DpEvent, adjacency: str, method: str | None) -> str:
    if method is not None:
        return check_method(method)
    found = methods_for(releases(event), adjacency)
    return next((each for each in _TIGHTEST if each in found), "pld")
