"""Faults in histograms, bounds, categories and descriptions."""

from fault import faults_of

FAULTS = faults_of(
    {
        "skdp.preprocessing.formula": [
            ("formula-spline-norm-of-one-column", "_Encoder.squared_norm", "max(self.factors[name].degree, 1)", "1"),
        ],
        "skdp.preprocessing.column_sums": [
            ("bounds-of-moments-not-charged", "EstimatedBounds.event_beside", "not self._n_open", "True"),
            (
                "column-sums-sensitivity-of-counts",
                "ColumnSums.__init__",
                "math.sqrt((1 + n_moments) * len(bounds))",
                "math.sqrt(len(bounds))",
            ),
            (
                "column-sums-replace-one-as-removal",
                "ColumnSums.sensitivity",
                "math.sqrt(len(self.low))",
                "math.sqrt(len(self.low) / 2)",
            ),
        ],
        "skdp.preprocessing.histogram_query": [
            (
                "histogram-group-not-clipped",
                "CountedColumns._clipped",
                "(units := self.units) is None",
                "True",
                "guarantees_units",
            ),
            (
                "quantile-edges-from-exact-counts",
                "_refine",
                "released(mechanism, columns.counts(breaks), stream)",
                "columns.counts(breaks)",
            ),
            ("threshold-delta-not-charged", "HistogramQuery.event_at", "self.n_words", "False"),
            ("threshold-group-counted-by-row", "HistogramQuery._locate", "columns.units", "None", "guarantees_units"),
            (
                "threshold-delta-per-column",
                "stability_threshold",
                "-math.expm1(math.log1p(-delta) / n_columns)",
                "delta",
            ),
            (
                "threshold-ignores-own-count",
                "stability_threshold",
                "1.0 + deviation * (float(norm.isf(each)) + 2.0 ** (-27))",
                "0.0 + deviation * (float(norm.isf(each)) + 2.0 ** (-27))",
            ),
        ],
        "skdp.preprocessing.column_estimates": [
            ("vectorizer-bins-sensitivity-of-one-column", "estimated_columns", "len(numbers)", "1"),
            (
                "vectorizer-less-noise-than-charged",
                "estimated_columns",
                "(list(numbers.values()), list(words.values()), noise_multiplier, n_public, stream)",
                "(list(numbers.values()), list(words.values()), noise_multiplier / 2, n_public, stream)",
            ),
        ],
        "skdp.statistics.describer": [
            ("description-group-by-row", "_weights_of", "clip_groups(fit.units, shares, row_limit)", "shares"),
        ],
        "skdp.statistics.table_release": [
            ("description-groups-not-counted", "TableRelease._counts", "len(codes) + several", "len(codes)"),
            (
                "description-sums-replace-one-as-removal",
                "pairs_sensitivity",
                "n_tables / 2.0 + n_sums",
                "(n_tables + n_sums) / 2.0",
            ),
            (
                "description-release-noise-of-whole-budget",
                "TableRelease._mechanism",
                "self.noise_multiplier / math.sqrt(share)",
                "self.noise_multiplier",
            ),
            ("description-noise-of-one-row-a-group", "TableRelease._mechanism", "self.weight_limit * bound", "bound"),
        ],
    }
)
