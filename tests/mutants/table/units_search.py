"""Mistakes about units of several rows in a search."""

from mutant import mutant
from paths import ACCOUNTANT, CANDIDATES, PART_ROWS, PIPELINE, SCORES, SEARCH

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
        "bounds on weights of the last step alone",
        (
            PART_ROWS,
            "for _, step in private_steps(each.steps)]\n    weighted",
            "for _, step in private_steps(each.steps)[-1:]]\n    weighted",
        ),
        tests="units_in_compositions",
        select="one_public_bound",
    ),
    mutant(
        "groups dropped by a router: a budgeted pipeline",
        (PIPELINE, 'groups = self._params.pop("groups", None)', 'groups = self._params.pop("groups", None) and None'),
        tests="units_in_compositions",
        select="budgeted_pipeline",
    ),
    mutant(
        "groups dropped by a router: what it does not hand on is charged for rows",
        (ACCOUNTANT, '        if (unit == "row") == (self.unit == "row"):\n', "        if True:\n"),
        tests="units_in_compositions",
        select="without_their_groups",
    ),
    mutant(
        "groups for one step of a pipeline",
        (PIPELINE, 'if "groups" in each]:', "if False]:"),
        tests="units_in_compositions",
        select="budgeted_pipeline",
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
        (SEARCH, "given, train.units, train.like)", "given, None, train.like)"),
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
