"""Mistakes in what is bought of columns: counts, thresholds, sums, and their failures in a ledger."""

from mutant import mutant
from paths import BOUGHT_BOUNDS, COLUMN_SUMS, COUNTS, FILTERS, ODOMETER, PURCHASE, SIMPLE, THRESHOLD

WIDTH = 'return math.sqrt(n_columns / 2.0 if adjacency == "replace_one" else n_columns)'
BY_ROW = "sensitivity or attained"

MUTANTS = [
    mutant(
        "counts of several columns with the sensitivity of one",
        (PURCHASE, WIDTH, 'return math.sqrt(1 / 2.0 if adjacency == "replace_one" else 1)'),
        tests="purchase purchasing_transformer",
        select=BY_ROW,
    ),
    mutant(
        "a replaced row that changes one cell of a column",
        (PURCHASE, WIDTH, 'return math.sqrt(n_columns / 4.0 if adjacency == "replace_one" else n_columns)'),
        tests="purchase purchasing_transformer",
        select=BY_ROW,
    ),
    mutant(
        "edges from exact counts",
        (PURCHASE, "noisy = released(mechanism, columns.counts(breaks), stream)", "noisy = columns.counts(breaks)"),
        tests="purchase purchasing_transformer",
        select="noise_is or noise_that_is or sensitivity",
    ),
    mutant(
        "one noise for two rounds",
        (PURCHASE, 'stream.spawn("refine", number)', 'stream.spawn("refine")'),
        tests="purchase",
        select="rounds_have",
    ),
    mutant(
        "a gap counted as a number",
        (
            COUNTS,
            "present = ~np.isnan(values)",
            "values = np.nan_to_num(values, posinf=np.inf, neginf=-np.inf)\n    present = ~np.isnan(values)",
        ),
        tests="purchase purchasing_transformer",
        select="a_gap or null_row",
    ),
    mutant(
        "a gap counted twice, for itself and for its column",
        (
            THRESHOLD,
            "np.bincount(codes[codes >= 0], minlength=len(keys))",
            "np.bincount(np.maximum(codes, 0), minlength=len(keys))",
        ),
        tests="purchase purchasing_transformer",
        select="a_gap or null_row or nobody",
    ),
    mutant(
        "a threshold for each column by itself",
        (THRESHOLD, "each = -math.expm1(math.log1p(-delta) / n_columns)", "each = delta"),
        tests="purchase",
        select="together or rarely",
    ),
    mutant(
        "a threshold for rows without a word of their own",
        (THRESHOLD, "return (1.0 + deviation", "return (0.0 + deviation"),
        tests="purchase",
        select="together or rarely",
    ),
    mutant(
        "a threshold from a smaller standard deviation than is drawn",
        (
            PURCHASE,
            "stability_threshold(deviation, self.threshold_delta",
            "stability_threshold(mechanism.noise_multiplier * mechanism.sensitivity, self.threshold_delta",
        ),
        (
            PURCHASE,
            "stability_threshold(locate.standard_deviation, self",
            "stability_threshold(locate.noise_multiplier * locate.sensitivity, self",
        ),
        tests="purchase",
        select="drawn_noise",
    ),
    mutant(
        "a threshold that costs nothing",
        (
            PURCHASE,
            "        if self.n_words:\n            events.append(",
            "        if False:\n            events.append(",
        ),
        tests="purchase purchasing_transformer",
        select="cost or price or event",
    ),
    mutant(
        "categories named in the order of their counts",
        (THRESHOLD, "return sorted(keys[i] for i in frequent.tolist())", "return [keys[i] for i in frequent.tolist()]"),
        tests="purchase",
        select="sorted or most_frequent",
    ),
    mutant(
        "noise given to words in the order in which they appear",
        (
            THRESHOLD,
            "found = sorted((keys[i], i) for i in np.flatnonzero(counts).tolist())",
            "found = [(keys[i], i) for i in np.flatnonzero(counts).tolist()]",
        ),
        tests="purchase",
        select="order_of_rows",
    ),
    mutant(
        "words counted that no row has",
        (THRESHOLD, "for i in np.flatnonzero(counts).tolist())", "for i in range(len(keys)))"),
        tests="purchase",
        select="nobody_has",
    ),
    mutant(
        "sums with the sensitivity of their counts",
        (COLUMN_SUMS, "else (1 + n_moments) * n_columns)", "else n_columns)"),
        tests="purchasing_transformer",
        select="sensitivity",
    ),
    mutant(
        "a replaced row that changes sums as a missing one does",
        (COLUMN_SUMS, 'n_columns if adjacency == "replace_one"', 'n_columns / 2 if adjacency == "replace_one"'),
        tests="purchasing_transformer",
        select="sensitivity",
    ),
    mutant(
        "sums that are rounded",
        (
            COLUMN_SUMS,
            "scaled = np.rint(_GRID * np.clip((present - low) / (0.5 * high - 0.5 * low) - 1.0, -1.0, 1.0)) / _GRID",
            "scaled = np.clip((present - low) / (0.5 * high - 0.5 * low) - 1.0, -1.0, 1.0)",
        ),
        tests="purchasing_transformer",
        select="exact",
    ),
    mutant(
        "bounds of moments bought and not charged",
        (
            BOUGHT_BOUNDS,
            "        if not self._n_open:\n            return event_at",
            "        if True:\n            return event_at",
        ),
        tests="purchasing_transformer",
        select="noise_that_is",
    ),
    mutant(
        "one failure for all tries of a search",
        (FILTERS, "(n * each.times * each.mean, worst)", "(n * each.times, worst)"),
        tests="filters",
        select="tries or search_that_buys",
    ),
    mutant(
        "failures of tries that are not counted",
        (FILTERS, "if worst > 0.0 else []", "if False else []"),
        tests="filters",
        select="tries or search_that_buys",
    ),
    mutant(
        "delta of failures spent twice",
        (FILTERS, "    renyi = delta - gaussian - failures\n", "    renyi = delta - gaussian\n"),
        tests="filters",
        select="spent_once or repeated",
    ),
    mutant(
        "a larger share of failures that the odometer does not pay",
        (ODOMETER, "delta * ((1.0 - failures) / (1.0 - FAILURES))", "delta * 1.0"),
        tests="filters",
        select="odometer_pays",
    ),
    mutant(
        "a closed form that forgets what is revealed",
        (SIMPLE, "        if self.closed and self.revealed == 0.0:\n", "        if self.closed:\n"),
        tests="epsilon",
        select="revealed or threshold",
    ),
]
