"""What is left of the columns that were bought: by releases alone, and so free to say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from skdp.preprocessing.histograms.purchase import Held

_NOTHING, _HALF = 0.05, 0.5
"""A column is lost that holds less than the first share of its cells; less than the second is told of categories."""


class Remains(NamedTuple):
    """What is left of a column.

    Attributes
    ----------
    kind : {"number", "date", "category"}
    share : float
        Of the cells: those that are read as numbers or dates, or whose category is named. Noisy, from 0 to 1.
    deviation : float
        Standard deviation of its noise.
    """

    kind: str
    share: float
    deviation: float

    @property
    def is_lost(self) -> bool:
        """Whether next to nothing is left."""
        return self.share == 0.0 or self.share + 2.0 * self.deviation < _NOTHING

    @property
    def is_mostly_other(self) -> bool:
        """Whether most cells of a column of categories, but not all, are of none that is named."""
        return self.kind == "category" and not self.is_lost and self.share + 2.0 * self.deviation < _HALF

    def describe(self) -> str:
        """What is left, in a few words."""
        rest = "other or gaps" if self.kind == "category" else "gaps or unreadable"
        return f"{1.0 - self.share:.1%} {rest} (noise {self.deviation:.1%})"


def remains_of(kind: str, held: Held, n_public: int) -> Remains:
    """Return what is left of a column of a public number of cells."""
    return Remains(kind, min(max(held.cells / n_public, 0.0), 1.0), held.deviation / n_public)


def notices_of_remains(remains: Mapping[str, Remains]) -> Iterator[str]:
    """Yield the notices of columns that are lost, or nearly so, each with all of them and a remedy."""
    words = [name for name, each in remains.items() if each.is_lost and each.kind == "category"]
    lines = [name for name, each in remains.items() if each.is_lost and each.kind != "category"]
    mostly = [name for name, each in remains.items() if each.is_mostly_other]
    if words:
        yield (
            f"No information in {listed(words)}: every category is too rare to be released privately. Declare types "
            "or categories in `schema` ('number' or 'date' for numbers or dates that are text), or drop identifiers, "
            f"for example {_dropped(words[0])}."
        )
    if lines:
        yield (
            f"No information in {listed(lines)}: no number or date could be estimated privately, and unreadable cells "
            "are missing. Declare bounds, types or date formats in `schema` ('category' for strings), or drop "
            f"identifiers, for example {_dropped(lines[0])}. More rows or a larger epsilon can help as well."
        )
    if mostly:
        yield (
            f"More than half of {listed(mostly)} is 'other' or missing: the other categories are too rare to be "
            "released privately. Declare types or categories in `schema` ('number' or 'date' for numbers or dates that "
            "are text), or merge rare categories, for example postcodes by their first digits."
        )


def listed(names: list[str]) -> str:
    """Name all columns in one line."""
    shown = ", ".join(" ".join(repr(name).split()) for name in names)
    return f"column {shown}" if len(names) == 1 else f"columns {shown}"


def _dropped(name: str) -> str:
    return f"TableSchema({{{' '.join(repr(name).split())}: 'drop'}}, others='estimate')"
