"""Differentially private descriptive statistics and hypothesis tests.

- `cells`: cells of a column for its histogram.
- `column_estimates`: estimates for columns and pairs of columns from noisy sums, with intervals.
- `describer`: `describe`, and the fit behind it.
- `description`: `PrivateDescription`, as frames, text and HTML.
- `hypothesis_tests`: tests whose null distributions have the noise.
- `single_statistics`: a count, mean, quantile, histogram or another statistic alone.
- `survival`: survival curves, and a log-rank test.
- `table_release`: the releases of a description, and their sensitivities.
"""

from __future__ import annotations

from skdp import lazy_face

__getattr__, __dir__, __all__ = lazy_face(
    __name__,
    {
        "PrivateTest": "skdp.statistics.hypothesis_tests",
        "PrivateDescription": "skdp.statistics.description",
        "SurvivalEstimate": "skdp.statistics.survival",
        "describe": "skdp.statistics.describer",
        "private_chi2_test": "skdp.statistics.hypothesis_tests",
        "private_correlation": "skdp.statistics.single_statistics",
        "private_count": "skdp.statistics.single_statistics",
        "private_crosstab": "skdp.statistics.single_statistics",
        "private_histogram": "skdp.statistics.single_statistics",
        "private_mean": "skdp.statistics.single_statistics",
        "private_mean_difference": "skdp.statistics.hypothesis_tests",
        "private_quantile": "skdp.statistics.single_statistics",
        "private_sum": "skdp.statistics.single_statistics",
        "private_survival": "skdp.statistics.survival",
        "private_top_k": "skdp.statistics.single_statistics",
        "private_two_sample_test": "skdp.statistics.hypothesis_tests",
    },
)
