"""Mistakes with units of several rows."""

from mutant import mutant
from paths import COLUMN_SUMS, COUNTS, MEASUREMENT, PRIVATE_STEP, PURCHASE, THRESHOLD

BOUGHT = "no_count_and_no_sum"

MUTANTS = [
    mutant(
        "counts of rows of a unit that are not clipped together",
        (
            COUNTS,
            "if units is None:\n            return [column.weights",
            "if True:\n            return [column.weights",
        ),
        tests="guarantees_units",
        select=BOUGHT,
    ),
    mutant(
        "units clipped to the norm of one row in each column",
        (COUNTS, "shares_of_units(units, squares, reach, norm)", "shares_of_units(units, squares, reach, norm**2)"),
        tests="guarantees_units",
        select=BOUGHT,
    ),
    mutant(
        "shares of units that are rounded up",
        (
            COUNTS,
            "[exactly_summable(weights * shares[of.codes])",
            "[np.ceil(2.0**9 * weights * shares[of.codes]) / 2.0**9",
        ),
        tests="guarantees_units",
        select=BOUGHT,
    ),
    mutant(
        "sums of a unit that are not clipped",
        (COLUMN_SUMS, "(shares * each)) / _GRID**2", "(each)) / _GRID**2"),
        tests="guarantees_units",
        select=BOUGHT,
    ),
    mutant(
        "sums of units clipped to their norm where one is replaced by another",
        (COLUMN_SUMS, "reach, mechanism.sensitivity)", "reach, norm)"),
        tests="guarantees_units",
        select=BOUGHT,
    ),
    mutant(
        "all rows of a unit counted under a threshold for one",
        (PURCHASE, "keep_one_row(codes, columns.units,", "keep_one_row(codes, None,"),
        tests="guarantees_units",
        select="one_word",
    ),
    mutant(
        "one row of each word of a unit kept",
        (THRESHOLD, "of = units.codes[held]", "of = units.codes[held] + units.n_units * codes[held]"),
        tests="guarantees_units",
        select="one_word or drawn_evenly",
    ),
    mutant(
        "the first row of a unit kept",
        (THRESHOLD, "np.lexsort((stream.words(len(held)), of))", "np.argsort(of, kind='stable')"),
        tests="guarantees_units",
        select="drawn_evenly",
    ),
    mutant(
        "noise not widened with the reach of units",
        (MEASUREMENT, "self.reach * sensitivity", "sensitivity"),
        tests="guarantees_units",
        select="sums_by_no_more and noise",
    ),
    mutant(
        "units that reach further in tables than their noise",
        (MEASUREMENT, "rows.codes, rows.shares, self.reach)", "rows.codes, rows.shares, 2.0 * self.reach)"),
        tests="guarantees_units",
        select="sums_by_no_more and noise",
    ),
    mutant(
        "averages that reach further than their noise",
        (
            MEASUREMENT,
            "average_units(rows.units, rows.shares, self.reach)",
            "average_units(rows.units, rows.shares, 2 * self.reach)",
        ),
        tests="guarantees_units",
        select="row_may and noise",
    ),
    mutant(
        "rehearsed steps that know no unit",
        (PRIVATE_STEP, "        take_unit(stand_in, self.estimator)\n", ""),
        tests="units_in_compositions",
        select="public_number_of_groups",
    ),
]
