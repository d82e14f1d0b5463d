"""Mistakes in what is released of a table that is described."""

from mutant import mutant
from paths import DESCRIBER, TABLE_RELEASE

MUTANTS = [
    mutant(
        "the column of subgroups counted for nothing",
        (
            TABLE_RELEASE,
            "column_sensitivity(len(codes) + several, self.adjacency)",
            "column_sensitivity(len(codes), self.adjacency)",
        ),
        tests="table_release",
        select="one_row_moves",
    ),
    mutant(
        "an exchanged number in sums moved by as little as one that leaves",
        (TABLE_RELEASE, "n_tables / 2.0 + n_sums if", "(n_tables + n_sums) / 2.0 if"),
        tests="table_release",
        select="of_pairs_is_that",
    ),
    mutant(
        "each release of a description with the noise of all",
        (TABLE_RELEASE, "self.noise_multiplier / math.sqrt(share), bound", "self.noise_multiplier, bound"),
        tests="table_release",
        select="noise_of_all_releases",
    ),
    mutant(
        "gaps imputed by the exact mean",
        (
            TABLE_RELEASE,
            "_middle_of_mass(cells, whole.shares(j)) for",
            "float(np.nan_to_num(np.nanmean(cells.scaled(rows.values[j], np.nan)))) for",
        ),
        tests="table_release",
        select="one_row_moves or imputed",
    ),
    mutant(
        "levels merged by exact counts",
        (
            TABLE_RELEASE,
            "tables, sums = _levels_of_tables(asked, whole, deviation),",
            "whole = replace(\n"
            "            whole, counts=[np.bincount(each, minlength=c.size) for each, c in zip(codes, asked.cells)]\n"
            "        )\n"
            "        tables, sums = _levels_of_tables(asked, whole, deviation),",
        ),
        tests="table_release",
        select="one_row_moves",
    ),
    mutant(
        "numbers added up by category without weights",
        (TABLE_RELEASE, "values if rows.weights is None else values * rows.weights", "values"),
        tests="table_release",
        select="one_unit_moves",
    ),
    mutant(
        "moments of a description without weights",
        (TABLE_RELEASE, "u *= np.sqrt(rows.weights[part, None])", "u *= 1.0"),
        tests="table_release",
        select="one_unit_moves",
    ),
    mutant(
        "every row of a unit described as one of its own",
        (DESCRIBER, "average_units(rows.units, shares)", "shares"),
        tests="table_release",
        select="one_unit_moves",
    ),
    mutant(
        "a description with the private sum of weights",
        (
            DESCRIBER,
            "self._public_total(plan) if rows.weights is None else None,",
            "self._public_total(plan) if rows.weights is None else float(rows.weights.sum()),",
        ),
        tests="table_release describe",
        select="one_weight_moves or as_much_as_its_weight",
    ),
    mutant(
        "a description with the private number of rows",
        (DESCRIBER, "self._public_total(plan) if", "float(rows.shape[0]) if"),
        tests="table_release describe",
        select="one_row_moves or where_it_is_private",
    ),
    mutant(
        "a purchase for a description with less noise than was priced",
        (DESCRIBER, "noise = _PURCHASE_RATIO * plan.noise_multiplier", "noise = plan.noise_multiplier"),
        tests="table_release",
        select="noise_that_is_paid",
    ),
]
