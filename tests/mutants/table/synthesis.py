"""Mistakes in private synthetic tables."""

from mutant import BY_PROPERTY, mutant
from paths import (
    BIN_SHAPES,
    COMBINING,
    DENOISING,
    EXCHANGES,
    LEVEL_COLUMNS,
    LINKING,
    MARGINALS,
    MEASUREMENT,
    METRICS,
    MIXTURE_OF_PRODUCTS,
    PAIR_QUALITY,
    PARITY_SUMS,
    REDRAWN,
    SELECTION,
    SYNTHETIC_FRAMES,
    TABLE_SUMS,
)

TESTS = "synthesizer generator private_checks"

MUTANTS = [
    mutant(
        "synthesis: the sensitivity of one set of columns",
        (TABLE_SUMS, "return math.sqrt(added)\n", "return math.sqrt(added / len(self.sets))\n"),
        tests=TESTS,
        select=BY_PROPERTY,
    ),
    mutant(
        "synthesis: the sensitivity of centred tables for counts as they are",
        (
            TABLE_SUMS,
            "weight * centred(count(codes, columns, self.levels, shares)).ravel()",
            "weight * count(codes, columns, self.levels, shares).ravel()",
        ),
        tests=TESTS,
        select=BY_PROPERTY,
    ),
    mutant(
        "synthesis: an exchanged row priced as half of one that is added",
        (TABLE_SUMS, "max(2.0 * farthest", "max(farthest"),
        tests=TESTS,
        select=BY_PROPERTY,
    ),
    mutant(
        "synthesis: an added row priced as one that is exchanged",
        (TABLE_SUMS, 'if adjacency != "replace_one":', "if False:"),
        tests=TESTS,
        select=BY_PROPERTY,
    ),
    mutant(
        "synthesis: exchanged rows that agree in a common column",
        (EXCHANGES, "state in (0.0, 1.0)", "state in (0.0,)"),
        tests=TESTS,
        select="every_difference",
    ),
    mutant(
        "synthesis: exchanged rows by a quadratic without its shift",
        (EXCHANGES, "slope, concave = linear + shift,", "slope, concave = linear,"),
        tests=TESTS,
        select="every_difference",
    ),
    mutant(
        "synthesis: exchanged rows by fewer columns than differ",
        (EXCHANGES, "np.arange(len(factors))[:, None]", "np.arange(len(factors))[:, None] // 2"),
        tests=TESTS,
        select=BY_PROPERTY,
    ),
    mutant(
        "synthesis: scores with the sensitivity of one pair",
        (SELECTION, "    return math.sqrt(n_sets)\n", "    return 1.0\n"),
        tests=TESTS,
        select=BY_PROPERTY,
    ),
    mutant(
        "synthesis: pairs selected by exact scores",
        (MEASUREMENT, "selection.best_pairs(found - doubt", "selection.best_pairs(exact - doubt"),
        tests=TESTS,
        select=BY_PROPERTY,
    ),
    mutant(
        "synthesis: scores that are not paid for",
        (
            MEASUREMENT,
            "of_tables = (1.0 - sum(ROUND_SHARES)) / self.n_rounds\n",
            "of_tables = (1.0 - ROUND_SHARES[0]) / self.n_rounds\n",
        ),
        tests=TESTS,
        select=BY_PROPERTY,
    ),
    mutant(
        "synthesis: tables released with the noise of the whole budget in each round",
        (MEASUREMENT, "noisy |= self._interactions(of_tables, sums", "noisy |= self._interactions(1.0, sums"),
        tests=TESTS,
        select=BY_PROPERTY,
    ),
    mutant(
        "synthesis: rounds that the first tables do not pay for",
        (MEASUREMENT, "- of_shapes - share_of_search(terms)", "- of_shapes"),
        tests="synthesizer table_rounds",
        select=BY_PROPERTY,
    ),
    mutant(
        "synthesis: scores of a round with the noise of the whole budget",
        (MEASUREMENT, "self._release(shares[0], exact", "self._release(1.0, exact"),
        tests="synthesizer table_rounds",
        select=BY_PROPERTY,
    ),
    mutant(
        "synthesis: tables of a round with the noise of the whole budget",
        (
            MEASUREMENT,
            "found = self._interactions(of_tables, sums, rows, stream.spawn(",
            "found = self._interactions(1.0, sums, rows, stream.spawn(",
        ),
        tests="synthesizer table_rounds",
        select=BY_PROPERTY,
    ),
    mutant(
        "synthesis: tables of a round with the noise of the first tables again",
        (MEASUREMENT, 'stream.spawn("selected tables", t)', 'stream.spawn("tables")'),
        tests="synthesizer table_rounds",
        select=BY_PROPERTY,
    ),
    mutant(
        "synthesis: scores that the noise of all others makes large are taken for tables",
        (MEASUREMENT, "selection.best_pairs(found - doubt * of_scores", "selection.best_pairs(found"),
        tests="table_rounds",
    ),
    mutant(
        "synthesis: a pair shrunk along directions of its own noise",
        (DENOISING, "self._squares[column].items() if columns != pair)", "self._squares[column].items())"),
        tests="denoising",
    ),
    mutant(
        "synthesis: all parities with the sensitivity of one",
        (PARITY_SUMS, "math.sqrt(_n_sets(self.sets) * _squared_norm", "math.sqrt(1 * _squared_norm"),
        tests="parities synthesizer",
        select=BY_PROPERTY,
    ),
    mutant(
        "synthesis: parities by class as they are for centred ones",
        (PARITY_SUMS, "found = _centred(parities[places]).ravel()", "found = parities[places].ravel()"),
        tests="parities synthesizer",
        select=BY_PROPERTY,
    ),
    mutant(
        "synthesis: the sum of weights beside parities is not in their sensitivity",
        (PARITY_SUMS, " + self.with_total)", ")"),
        tests="parities synthesizer",
        select=BY_PROPERTY,
    ),
    mutant(
        "synthesis: parities with the noise of the whole budget",
        (MEASUREMENT, "self._release(PARITY_SHARE, vector", "self._release(1.0, vector"),
        tests="parities synthesizer",
        select=BY_PROPERTY,
    ),
    mutant(
        "synthesis: parities that the tables do not pay for",
        (MEASUREMENT, "1.0 - (PARITY_SHARE if terms.parities else 0.0)", "1.0"),
        tests="parities synthesizer",
        select=BY_PROPERTY,
    ),
    mutant(
        "synthesis: parities kept by exact ones",
        (MEASUREMENT, "return sums.unexpected(released, self.n", "return sums.unexpected(vector, self.n"),
        tests="parities synthesizer",
        select=BY_PROPERTY,
    ),
    mutant(
        "synthesis: parities of units that are not averaged",
        (
            MEASUREMENT,
            "vector = sums.vector(rows.codes, self._shares(rows))",
            "vector = sums.vector(rows.codes, rows.shares)",
        ),
        tests="parities synthesizer guarantees_units",
        select=BY_PROPERTY,
    ),
    mutant(
        "synthesis: parities with the noise of the tables again",
        (MEASUREMENT, 'stream.spawn("parities")', 'stream.spawn("tables")'),
        tests="parities synthesizer",
        select=BY_PROPERTY,
    ),
    mutant(
        "synthesis: chance taken for a parity",
        (PARITY_SUMS, "chance = 1.0 / math.sqrt(self.n_classes * n)", "chance = 0.0"),
        tests="parities",
    ),
    mutant(
        "synthesis: parities of a column of many levels, which the model misses",
        ("skdp/synthesis/marginals/noisy_tables.py", "max(levels) <= MOST_ESTIMATED", "max(levels) <= MOST_LEVELS"),
        tests="synthesizer",
        select="pairs_auto",
    ),
    mutant(
        "synthesis: balanced rows in sets whose rule of combination needs independent ones",
        ("skdp/synthesis/marginals/sampled_tables.py", "other._drawn(n, rng, balanced=False)", "other._drawn(n, rng)"),
        tests="conditions",
        select="sample_sets_are",
    ),
    mutant(
        "synthesis: labels of conditions by the shares of all rows",
        (
            "skdp/synthesis/marginals/sampled_tables.py",
            "shares = self.label_shares_ * (met @ by_label)",
            "shares = self.label_shares_ * by_label.sum(axis=0)",
        ),
        tests="conditions",
    ),
    mutant(
        "synthesis: components of conditions as likely as those of all rows",
        (
            MIXTURE_OF_PRODUCTS,
            "shares = met if self.shares is None else met * self.shares",
            "shares = np.ones(len(met))",
        ),
        tests="conditions",
    ),
    mutant(
        "synthesis: bins of a range drawn whole",
        (LEVEL_COLUMNS, "found[: self.n_listed] = end - start", "found[: self.n_listed] = end > start"),
        tests="conditions",
    ),
    mutant(
        "synthesis: a quality whose units are as heavy as their rows",
        (
            PAIR_QUALITY,
            "        if targets.units is not None:\n            weights",
            "        if False:\n            weights",
        ),
        tests="pair_quality",
    ),
    mutant(
        "synthesis: a quality of so many pairs at the price of one",
        (PAIR_QUALITY, "sensitivity(math.comb(d, 2))", "sensitivity(1)"),
        tests="pair_quality",
    ),
    mutant(
        "synthesis: an exact mean beside noisy qualities",
        (
            PAIR_QUALITY,
            "        noisy = plan.release(scores(rows.codes, pairs, levels, expected, weights)) / (2.0 * n)\n",
            "        noisy = plan.release(scores(rows.codes, pairs, levels, expected, weights)) / (2.0 * n)\n"
            "        noisy += (scores(rows.codes, pairs, levels, expected, weights) / (2.0 * n) - noisy).mean()\n",
        ),
        tests="pair_quality",
    ),
    mutant(
        "synthesis: a quality relative to the number of rows there are",
        (PAIR_QUALITY, "float(self._public_n_samples(targets.n_units(rows.shape[0])))", "float(rows.shape[0])"),
        tests="pair_quality",
    ),
    mutant(
        "synthesis: one noise for all releases",
        (MEASUREMENT, 'stream.spawn("scores", t)', "stream"),
        (MEASUREMENT, 'stream.spawn("tables", t)', 'stream.spawn("tables")'),
        tests=TESTS,
        select=BY_PROPERTY,
    ),
    mutant(
        "synthesis: released without noise",
        (
            MEASUREMENT,
            "return mechanism.release(vector, stream), mechanism.standard_deviation",
            "return vector, mechanism.standard_deviation",
        ),
        tests=TESTS,
        select=BY_PROPERTY,
    ),
    mutant(
        "synthesis: the number of rows of the table in the rules",
        (
            MARGINALS,
            "n = self._public_n_samples(n_samples)\n        reach",
            "n = n_samples\n        reach",
        ),
        tests=TESTS,
        select=BY_PROPERTY,
    ),
    mutant(
        "synthesis: labels drawn by exact shares",
        (
            MARGINALS,
            "        self.noise_multiplier_, self.n_samples_ =",
            "        if targets is not None:\n"
            "            self.marginals_[-1] = np.bincount(targets.labels[1], minlength=2) / len(targets.labels[1])\n"
            "        self.noise_multiplier_, self.n_samples_ =",
        ),
        tests=TESTS,
        select=BY_PROPERTY,
    ),
    mutant(
        "synthesis: categories of a type are kept",
        (SYNTHETIC_FRAMES, 'return "category" if hasattr(dtype, "categories") else dtype', "return dtype"),
        tests=TESTS,
        select=BY_PROPERTY,
    ),
    mutant(
        "synthesis: one cell of a list decides on the type",
        (
            SYNTHETIC_FRAMES,
            "_dtype_of(table.source, library, j) if table.is_typed else of_lists",
            "_dtype_of(table.source, library, j)",
        ),
        tests=TESTS,
        select=BY_PROPERTY,
    ),
    mutant(
        "synthesis: the longest cell decides on the width of text",
        (
            SYNTHETIC_FRAMES,
            'np.dtype(source.dtype.kind) if source.dtype.kind in "US" else source.dtype',
            "source.dtype",
        ),
        tests=TESTS,
        select=BY_PROPERTY,
    ),
    mutant(
        "synthesis: releases planned by one width and made by another",
        (MARGINALS, '{"pairs": "select" if n_rounds else "all"}', "{}"),
        tests=TESTS,
        select=BY_PROPERTY,
    ),
    mutant(
        "synthesis: a schema behind a private step, refused after the charge",
        (
            MARGINALS,
            '        if self.schema is not None:\n            return "a schema',
            '        if False:\n            return "a schema',
        ),
        tests=TESTS,
        select=BY_PROPERTY,
    ),
    mutant(
        "metrics: real rows read in silence",
        (METRICS, '    _report_reading("membership_check")\n', ""),
        tests="metrics",
    ),
    mutant(
        "synthesis: tables that are drawn again without noise",
        (
            REDRAWN,
            "self.measurement.measure(codes, terms",
            "self.measurement._replace(noise_multiplier=1e-3).measure(codes, terms",
        ),
        tests="redrawn_tables",
    ),
    mutant(
        "synthesis: tables that are drawn again of more rows than there were",
        (REDRAWN, "n = round(self.measurement.n)", "n = 10 * round(self.measurement.n)"),
        tests="redrawn_tables",
    ),
    mutant(
        "synthesis: tables that are drawn again and shrunk",
        (REDRAWN, "each._replace(deviation=0.0)", "each"),
        tests="redrawn_tables",
    ),
    mutant(
        "synthesis: several tables of weighted rows, as if each weighed 1",
        (MARGINALS, "None if has_weights else Redrawing(", "Redrawing("),
        tests="redrawn_tables",
    ),
    mutant(
        "synthesis: estimates with the bias of fits",
        (COMBINING, "2.0 * given[0] - others.mean(axis=0)", "given[0]"),
        tests="combining",
    ),
    mutant(
        "synthesis: intervals without the spread of models",
        (COMBINING, "np.maximum(between - within, within) + 4.0 * own[0] + bias", "within + 4.0 * own[0] + bias"),
        tests="combining",
    ),
    mutant(
        "synthesis: cells of numbers for nothing",
        (MEASUREMENT, "of_shapes = SHAPE_SHARE * terms.with_shapes + ", "of_shapes = "),
        tests="synthesizer",
        select="noise_is_as_priced",
    ),
    mutant(
        "synthesis: counts of whole numbers that are unaccounted",
        (MEASUREMENT, " + WHOLE_SHARE * terms.with_wholes", ""),
        tests="synthesizer",
        select="noise_is_as_priced",
    ),
    mutant(
        "synthesis: counts of whole numbers with the noise of the whole budget",
        (MEASUREMENT, "self._columns(WHOLE_SHARE, fractions", "self._columns(1.0, fractions"),
        tests="synthesizer",
        select="noise_is_as_priced",
    ),
    mutant(
        "synthesis: whole numbers by exact cells",
        (
            "skdp/synthesis/marginals/bought_table.py",
            "zip(self.fractions, found, strict=True) if is_whole",
            "zip(self.fractions, [(each == 1).sum() % 2 == 0 for each in self.fractions.values()]) if is_whole",
        ),
        tests="synthesizer",
        select="one_row_moves",
    ),
    mutant(
        "synthesis: cells of numbers with the noise of all tables",
        (MEASUREMENT, "self._columns(SHAPE_SHARE, cells", "self._columns(1.0, cells"),
        tests="synthesizer",
        select="noise_is_as_priced",
    ),
    mutant(
        "synthesis: cells of numbers of whole units",
        (
            "skdp/synthesis/marginals/bought_table.py",
            "weighted._replace(codes=list(self.cells.values()))",
            "LevelRows(list(self.cells.values()))",
        ),
        tests="guarantees_units",
        select="moves_sums and synthesizer",
    ),
    mutant(
        "synthesis: cells of numbers are worth it by the rows that there are",
        (MEASUREMENT, "shapes_are_worth_it(bins_of_lines, self.n, ", "shapes_are_worth_it(bins_of_lines, 1e9, "),
        tests="bin_shapes",
    ),
    mutant(
        "synthesis: halves of bins by noise",
        (BIN_SHAPES, "moved**2 > LEAST_DIFFERENCE * variance", "moved**2 > 0.0"),
        (BIN_SHAPES, "(1.0 - LEAST_DIFFERENCE * variance / moved**2)", "1.0"),
        tests="bin_shapes",
    ),
    mutant(
        "synthesis: zero among other numbers",
        (BIN_SHAPES, "np.concatenate([cuts, [0.0, _AFTER_ZERO]])", "np.array(cuts)"),
        tests="bin_shapes",
    ),
    mutant(
        "synthesis: households whose persons are units",
        (LINKING, "sample_weight=rows.weights, groups=rows.households)", "sample_weight=rows.weights)"),
        tests="linking",
        select="moves or noise",
    ),
    mutant(
        "synthesis: households that reach as far as other units",
        (LINKING, "_largest_reach = 1.0", "_largest_reach = 3.0"),
        tests="linking",
        select="moves or noise",
    ),
    mutant(
        "synthesis: households by the number of their persons",
        (LINKING, "key), 1.0 / sizes, first", "key), np.ones(len(homes)), first"),
        tests="linking",
        select="kept",
    ),
    mutant(
        "synthesis: persons are as many households",
        (LINKING, "n_groups_public=_number_of(households,", "n_groups_public=_number_of(persons,"),
        tests="linking",
        select="moves or noise",
    ),
    mutant(
        "synthesis: keys that are refused and not recorded",
        (LINKING, "with model._payment().recording_refusals():\n        rows", "if True:\n        rows"),
        tests="linking",
        select="refused",
    ),
    mutant(
        "synthesis: persons who are drawn without their households",
        (
            LINKING,
            "mixture.filled(levels, range(n_first + 1), rng)",
            "mixture.filled(levels, range(n_first, n_first + 1), rng)",
        ),
        tests="linking",
        select="kept",
    ),
]
