"""Mistakes in scores of searches that follow from a table."""

from mutant import mutant
from paths import TABLE_SCORES

MUTANTS = [
    mutant(
        "a table of a search with the sensitivity of an accuracy",
        (TABLE_SCORES, "    sensitivity = 1.0\n", "    sensitivity = 0.5\n"),
        tests="table_scores",
        select="one_count or releases",
    ),
    mutant(
        "rows of a unit counted in a table of a search as rows",
        (
            TABLE_SCORES,
            "1.0 if shares is None else shares, units, len(y)",
            "1.0 if shares is None else shares, None, len(y)",
        ),
        tests="table_scores",
        select="a_unit_moves",
    ),
]
