"""Mistakes in what follows from a noisy table of scores."""

from mutant import mutant
from paths import CALIBRATED

_TABLE = "        work._follow(self._table)\n"
_EXACT = (
    "        exact = self._table._count(self._table._check_rows(rows.X), counted, self._table_plan.n_bins)\n"
    "        self._table._fitted_replicates = self._table._replicates_of(exact, self._table_plan)\n"
)

MUTANTS = [
    mutant(
        "an estimator fitted to the rows that are counted too",
        (CALIBRATED, "self._fitted(rows.take(np.flatnonzero(~held)))", "self._fitted(rows)"),
        tests="table_classifier",
        select="fit_or_in_the_table",
    ),
    mutant(
        "scores counted of the rows of the fit too",
        (
            CALIBRATED,
            "            rows = rows.take(np.flatnonzero(held))\n",
            "            held = np.ones_like(held)\n",
        ),
        tests="table_classifier",
        select="fit_or_in_the_table",
    ),
    mutant(
        "thresholds and maps by exact counts",
        (CALIBRATED, _TABLE, _EXACT + _TABLE),
        tests="table_classifier",
        select="fit_or_in_the_table",
    ),
    mutant(
        "a fit and a table priced as the fit alone",
        (
            CALIBRATED,
            "            return WorstOfDpEvent((fitting.event(scale), self._table_plan.event))",
            "            return fitting.event(scale)",
        ),
        tests="table_classifier",
        select="cost_epsilon_together",
    ),
    mutant(
        "parts of a calibration cut by order",
        (
            CALIBRATED,
            "            held = draw_by_number(stream, n, n_tested(share, n, self.work.privacy_unit_))",
            "            held = np.arange(n) < n_tested(share, n, self.work.privacy_unit_)",
        ),
        tests="table_classifier",
        select="move_nobody",
    ),
    mutant(
        "a unit of a calibration in both parts",
        (
            CALIBRATED,
            "        n = len(self._rows.y) if self.units is None else self.units.n_units\n",
            "        n = len(self._rows.y)\n",
        ),
        (CALIBRATED, "return held if self.units is None else held[self.units.codes]", "return held"),
        tests="table_classifier",
        select="as_a_whole",
    ),
    mutant(
        "a split of a calibration under add_remove by the number of rows",
        (CALIBRATED, 'if self.work.adjacency == "add_remove":\n            held', "if False:\n            held"),
        tests="table_classifier",
        select="coin_of_its_own",
    ),
]
