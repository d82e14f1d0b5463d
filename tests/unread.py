"""Tables and cells that fail a test when they are read."""

from __future__ import annotations


class UnreadTable:
    """A table of a public shape whose rows may not be read."""

    def __init__(self, *shape: int) -> None:
        self.shape = shape

    def _reject(self, *arguments, **keywords):
        raise AssertionError("the rows were read")

    __array__ = __getitem__ = _reject

    def __len__(self) -> int:
        return self.shape[0]


class UnreadCell:
    """A cell that may not be looked at."""

    def _reject(self, *_):
        raise AssertionError("a cell was read")

    __hash__ = __eq__ = __str__ = __repr__ = __float__ = __bool__ = _reject  # type: ignore[assignment]
