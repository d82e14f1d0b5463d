"""Mistakes about units of several rows in a search."""

from mutant import mutant
from paths import CANDIDATES, SCORES, SEARCH

MUTANTS = [
    mutant(
        "a unit split between training and scores",
        (
            SEARCH,
            "scored = self._split(rows.n_units,",
            "rows = rows._replace(units=None)\n        scored = self._split(rows.n_units,",
        ),
        tests="units_in_compositions",
        select="trains_or_scores",
    ),
    mutant(
        "the score of a unit not clipped",
        (SCORES, "moves * clip_vectors(units, moves[:, None], weights, self.sensitivity)", "moves * weights"),
        tests="units_in_compositions",
        select="cut_off_together",
    ),
    mutant(
        "the number of rows as the divisor of a score of units",
        (SEARCH, "        n_scored = self._n_scored(n)\n", "        n_scored = self._n_scored(len(rows.y))\n"),
        tests="units_in_compositions",
        select="mean_over_units",
    ),
    mutant(
        "groups not handed to a try",
        (SEARCH, "train.weights and train.weights.given, train.units)", "train.weights and train.weights.given)"),
        tests="units_in_compositions",
        select="trains_or_scores",
    ),
    mutant(
        "a clone of a candidate that loses its unit",
        (CANDIDATES, "return made._take_unit(template)", "return clone(made)"),
        tests="units_in_compositions",
        select="price_is_that",
    ),
]
