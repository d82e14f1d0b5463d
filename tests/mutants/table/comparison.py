"""Mistakes in the comparison of two models."""

from mutant import mutant
from paths import COMPARISON

MUTANTS = [
    mutant(
        "scores of two models in a table of the first alone",
        (
            COMPARISON,
            "bins_of(scores[:, 0], bins) * bins + bins_of(scores[:, 1], bins)",
            "bins_of(scores[:, 0], n_bins)",
        ),
        tests="comparison",
        select="table_of_pairs or those_of_the_rows",
    ),
    mutant(
        "rows compared before the charge",
        (
            COMPARISON,
            "        self._first, self._second, self.shape = first, second, first.shape\n",
            "        self._first, self._second, self.shape = first, second, first.shape\n        list(self.blocks())\n",
        ),
        tests="comparison",
        select="after_the_charge",
    ),
    mutant(
        "models compared with the wrong sign",
        (
            COMPARISON,
            "metric(_of_model(each, 0)) - metric(_of_model(each, 1))",
            "metric(_of_model(each, 1)) - metric(_of_model(each, 0))",
        ),
        tests="comparison",
        select="those_of_the_rows",
    ),
]
