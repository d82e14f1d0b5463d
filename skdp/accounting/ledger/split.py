"""`DataSplit`: the key by which a data set is cut into two parts, once, as its ledger keeps it.

The parts are the partitions "train" and "test" of the ledger, so a unit pays what is charged to all and to its own part
(`balance`, where the proof is). That proof needs *each unit is in one part, whatever its record*, which the rule of the
split gives. No owner has to assume it:

- **By row number**: row i is in a part by i, the key and the public number of rows. A row that becomes null
  (``zero_out``), or another one (``replace_one``), keeps its number, and all others theirs. One that leaves
  (``add_remove``) would move the numbers, and so the parts, of all rows after it: such charges are refused.
- **By label**: a unit is in a part by a hash of its label under the key, which is a coin of its own. No other unit and
  no number of rows has a say, so a unit that becomes null under its label, is added or removed moves no other. One that
  is exchanged for a unit of another label (``replace_one``) may change sides: such charges are refused.

Both hold for each value of the key. It is drawn from the operating system, so it tells nothing of the data, and no
guarantee rests upon its being unknown: whoever reads the file of a ledger may know who is in which part. A second key
would put some units into both parts, each charged for one. So a ledger takes one key, for good.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PARTS = ("train", "test")
"""Names of the partitions."""

_KEY_BYTES = 32
_BY_NUMBER = "number of the row, under the key of the split"
_BY_LABEL = "label of the unit, hashed under the key of the split"


@dataclass(frozen=True)
class DataSplit:
    """How a data set is cut into two parts.

    Parameters
    ----------
    test_size : float
        Share of the part "test", in (0, 1).
    n_rows : int or None, default=None
        Public number of rows if they are drawn by number; None: units are drawn by label.
    groups : str, default=""
        Name of the column of labels, "" if it has none.
    key : bytes, default=b""
        Of 32 bytes; b"" of a split that is asked for and has none yet.
    """

    test_size: float
    n_rows: int | None = None
    groups: str = ""
    key: bytes = field(default=b"", repr=False, compare=False)

    @property
    def rule(self) -> str:
        """By what rule a unit is in a part, as the ledger has it for its partitions."""
        return _BY_LABEL if self.n_rows is None else _BY_NUMBER

    @property
    def refused_adjacency(self) -> str:
        """The neighbouring relation under which a unit may change sides, or move others."""
        return "replace_one" if self.n_rows is None else "add_remove"

    def with_new_key(self) -> DataSplit:
        """The same with a key from the operating system."""
        return DataSplit(self.test_size, self.n_rows, self.groups, os.urandom(_KEY_BYTES))

    def to_parameters(self) -> dict[str, Any]:
        """What the entry of a ledger keeps."""
        rows = {} if self.n_rows is None else {"n_rows": self.n_rows}
        return {"test_size": self.test_size, **rows, "groups": self.groups, "key": self.key.hex()}

    @classmethod
    def read(cls, kept: Mapping[str, Any]) -> DataSplit:
        """The split that `to_parameters` gave, each field checked."""
        test_size, n_rows, groups = float(kept["test_size"]), kept.get("n_rows"), kept["groups"]
        key = bytes.fromhex(kept["key"])
        if not 0.0 < test_size < 1.0 or len(key) != _KEY_BYTES or not isinstance(n_rows, int | None):
            raise ValueError("a split has a share outside (0, 1), or a key or a number of rows that is none")
        return cls(test_size, n_rows, str(groups), key)

    def refuse_other(self, asked: DataSplit) -> None:
        """Raise if another split is asked for: it would put units into both parts."""
        if asked == self:
            return
        for name, remedy in (
            ("n_rows", "give the table that was split, all its rows in the same order"),
            ("test_size", "give the same share"),
            ("groups", "give the labels of the same column"),
        ):
            kept, given = getattr(self, name), getattr(asked, name)
            if kept != given:
                raise ValueError(
                    f"{name}={given!r} is not that of the split that this ledger keeps, {name}={kept!r}, and a second "
                    f"split would put units into both parts: {remedy}, or use a ledger of its own for other data."
                )
