"""Mistakes with units of several rows."""

from mutant import mutant
from paths import CLASS_GENERATOR, LEAST_SQUARES, MARGINALS, MEASUREMENT, NAIVE_BAYES, PCA, TABLE_SUMS, UNIT_NORMS

REPLAY = "moves_sums or bit_for_bit"

MUTANTS = [
    mutant(
        "units: naive Bayes clips rows and not their sum",
        (NAIVE_BAYES, "return weights * shares[units.codes]\n", "return weights\n"),
        tests="guarantees_units",
        select=REPLAY,
    ),
    mutant(
        "units: naive Bayes clips each class of a unit for itself",
        (
            NAIVE_BAYES,
            "return np.bincount(found // n_classes, squares, minlength=units.n_units) + room",
            "most = np.zeros(units.n_units)\n    np.maximum.at(most, found // n_classes, squares)\n"
            "    return most + room",
        ),
        tests="guarantees_units",
        select=REPLAY,
    ),
    mutant(
        "units: an exchanged unit as long as a row, and no average of rows",
        (
            NAIVE_BAYES,
            'if self.adjacency == "replace_one":\n            return average',
            "if False:\n            return average",
        ),
        (NAIVE_BAYES, "limit = sensitivity(rows.shape[1], self.adjacency)", 'limit = sensitivity(rows.shape[1], "")'),
        tests="guarantees_units",
        select=REPLAY,
    ),
    mutant(
        "units: weights of a unit that add up to more than one",
        (UNIT_NORMS, "shares_of_units(units, total**2, total, limit)", "shares_of_units(units, total, total, limit)"),
        tests="guarantees_units unit_norms",
        select=REPLAY,
    ),
    mutant(
        "units: moments clipped row by row",
        (
            UNIT_NORMS,
            "shares_of_units(units, squares, reach, 1.0)",
            "shares_of_units(units, 0.0 * squares, reach, 1e9)",
        ),
        tests="guarantees_units",
        select=REPLAY,
    ),
    mutant(
        "units: products of vectors for those of matrices",
        (UNIT_NORMS, "products = (z @ z.transpose(0, 2, 1)) ** 2", "products = z @ z.transpose(0, 2, 1)"),
        tests="unit_norms",
    ),
    mutant(
        "units: long units that are left out",
        (UNIT_NORMS, "squares[chosen] = _square_of_long_unit(rows[0], vectors, width, weights)", "pass"),
        tests="guarantees_units unit_norms",
        select="moves_sums or squares",
    ),
    mutant(
        "units: the number of rows divides residuals",
        (
            LEAST_SQUARES,
            "n = self._public_n_samples(n_units or targets.weights.n_units(rows.shape[0]))",
            "n = rows.shape[0]",
        ),
        tests="guarantees_units",
        select=REPLAY,
    ),
    mutant(
        "units: components of units by the weights of rows",
        (PCA, "each = clip_moments(units,", "each = clip_moments(None,"),
        tests="guarantees_units",
        select=REPLAY,
    ),
    mutant(
        "units: tables by the weights of rows",
        (TABLE_SUMS, "exactly_summable(shares * found[units.codes])", "shares"),
        tests="guarantees_units",
        select=REPLAY,
    ),
    mutant(
        "units: tables clipped without what columns have in common",
        (TABLE_SUMS, "range(len(columns) + 1)", "range(1, len(columns) + 1)"),
        tests="synthesizer",
        select="units_add",
    ),
    mutant(
        "units: scores by the norms of tables",
        (
            MEASUREMENT,
            "expected, self._shares(rows))",
            "expected, self._shares(rows, weighted(levels, [(open_sets, 1.0)])))",
        ),
        tests="guarantees_units",
        select=REPLAY,
    ),
    mutant(
        "units: exchanged tables by norms",
        (MEASUREMENT, 'self.adjacency != "replace_one"', "True"),
        tests="guarantees_units",
        select="opposite_of",
    ),
    mutant(
        "units: rows of images by their own weights",
        (CLASS_GENERATOR, "average_units(given.units,", "average_units(None,"),
        tests="guarantees_units",
        select=REPLAY,
    ),
    mutant(
        "units: a synthesizer that forgets its units",
        (MARGINALS, "LevelRows(codes, exact, units)", "LevelRows(codes, None, None)"),
        tests="guarantees_units",
        select=REPLAY,
    ),
]
