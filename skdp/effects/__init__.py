"""What the columns of a table do to the score of a private model, and what they are allowed to do. Both are free."""

from __future__ import annotations

from skdp.effects.columns import ColumnEffect, column_effects
from skdp.effects.monotonic import make_monotonic

__all__ = ["ColumnEffect", "column_effects", "make_monotonic"]
