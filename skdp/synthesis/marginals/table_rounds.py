"""Tables of three columns, or of three and the label: which of them are looked at, and what is learned of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from skdp._typing import Doubles
from skdp.synthesis.marginals.contingency_tables import ColumnSet, Interaction, centred, noise_per_cell
from skdp.synthesis.marginals.denoising import shrunk
from skdp.synthesis.marginals.pair_selection import sensitivity

SCORE_SHARE, TABLE_SHARE = 0.02, 0.08
"""Shares of mu**2 of the scores and of the tables of all rounds, where there are any."""
LARGEST_NOISE = 0.1
"""Total variation of the noise of a table that is measured alone, up to which it is looked at; and of what the noise of
all scores may hide, up to which there are rounds."""


def tables_worth_it(
    levels: Sequence[int], has_label: bool, n: float, noise_multiplier: float, rounds: int
) -> tuple[ColumnSet, ...]:
    """Return the sets of three columns, and of three and the label, whose noise is small, by public numbers.

    None if the noise of all of their scores would hide the tables.
    """
    if not rounds:
        return ()
    d = len(levels) - has_label
    columns = [j for j in range(d) if levels[j] > 1]
    of_label = (d,) if has_label and levels[d] > 1 else None
    found: list[ColumnSet] = []
    for three in itertools.combinations(columns, 3):
        for each in (three,) if of_label is None else (three, (*three, *of_label)):
            deviation = noise_multiplier / math.sqrt(TABLE_SHARE / rounds)
            if noise_per_cell(levels, parts_of([each]), n, deviation) <= LARGEST_NOISE:
                found.append(each)
    of_scores = noise_multiplier / math.sqrt(SCORE_SHARE / rounds) * sensitivity(max(len(found), 1))
    return tuple(found) if 0.5 * doubt(len(found)) * of_scores / n <= LARGEST_NOISE else ()


def parts_of(chosen: Sequence[ColumnSet]) -> list[ColumnSet]:
    """Return the interactions that are measured of some tables: their own, and of four columns that of the first three.

    All others are known from the first tables.
    """
    return sorted({each[:size] for each in chosen for size in (3, len(each))})


def doubt(n_scores: int) -> float:
    """Return about how many deviations the noise of the largest of so many scores has."""
    return math.sqrt(2.0 * math.log(max(n_scores, 2)))


def corrected(model: Doubles, columns: ColumnSet, found: Mapping[ColumnSet, Interaction]) -> Doubles:
    """Return a model's table of some columns with the interactions that were measured, shrunk towards the model's."""
    first = model if len(columns) == 3 else model.sum(axis=3)
    part = _beyond(first, found[columns[:3]])
    if len(columns) == 3:
        return model + part
    return model + part[..., None] / model.shape[3] + _beyond(model, found[columns])


def _beyond(model: Doubles, found: Interaction) -> Doubles:
    return shrunk(found.values - centred(model), found.deviation)


__all__ = ["SCORE_SHARE", "TABLE_SHARE", "corrected", "doubt", "parts_of", "tables_worth_it"]
