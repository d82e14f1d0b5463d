"""Mistakes in private synthetic tables."""

from mutant import BY_PROPERTY, mutant
from paths import COMBINING, MARGINALS, MEASUREMENT, METRICS, REDRAWN, SELECTION, SYNTHETIC_FRAMES, TABLE_SUMS

TESTS = "synthesizer generator private_checks"

MUTANTS = [
    mutant(
        "synthesis: the sensitivity of one set of columns",
        (TABLE_SUMS, "        return math.sqrt(total)\n", "        return math.sqrt(total / len(self.sets))\n"),
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
        (TABLE_SUMS, "math.prod(parts[1:]) / 2.0 if adjacency", "math.prod(parts) / 2.0 if adjacency"),
        tests=TESTS,
        select=BY_PROPERTY,
    ),
    mutant(
        "synthesis: an added row priced as one that is exchanged",
        (TABLE_SUMS, 'if adjacency == "replace_one" else math.prod(parts)', "if True else math.prod(parts)"),
        tests=TESTS,
        select=BY_PROPERTY,
    ),
    mutant(
        "synthesis: scores with the sensitivity of one pair",
        (SELECTION, "    return math.sqrt(n_pairs)\n", "    return 1.0\n"),
        tests=TESTS,
        select=BY_PROPERTY,
    ),
    mutant(
        "synthesis: pairs selected by exact scores",
        (MEASUREMENT, "selection.best_pairs(found, open_pairs", "selection.best_pairs(exact, open_pairs"),
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
            "            self.marginals_[-1] = np.bincount(targets[1], minlength=2) / len(targets[1])\n"
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
]
