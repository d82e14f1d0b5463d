"""Mistakes with weights: before the clip, of other rows, by bounds of the rows."""

from mutant import BY_PROPERTY, mutant
from paths import (
    BUYER,
    COLUMN_SUMS,
    COUNTS,
    DENSE,
    KERNEL,
    LEAST_SQUARES,
    LOSSES,
    MEASUREMENT,
    PART_ROWS,
    PCA,
    PURCHASE,
    SCORES,
    SPANS,
    TABLE_SUMS,
    WEIGHT_BOUND,
    WEIGHTS,
)

DIVIDED = "np.minimum(weights / self.bound, 1.0)"

MUTANTS = [
    mutant(
        "weights that are not cut",
        (WEIGHTS, DIVIDED, "weights / self.bound"),
        tests="weights private_checks",
        select="check_weights or toggling or shares",
    ),
    mutant(
        "the bound on weights read from the rows",
        (WEIGHTS, DIVIDED, "np.minimum(weights / min(self.bound, np.max(weights)), 1.0)"),
        tests="weights",
        select="toggling",
    ),
    mutant(
        "weights divided by their sum",
        (WEIGHTS, DIVIDED, "np.minimum(weights * len(weights) / np.sum(weights), 1.0)"),
        tests="weights",
        select="toggling",
    ),
    mutant(
        "weights of a scaler left out of its counts",
        (
            COLUMN_SUMS,
            "weight * each for each in (1.0, scaled",
            "each * (weight if k else weight**0) for k, each in enumerate((1.0, scaled",
        ),
        (COLUMN_SUMS, "squares)[: 1 + n_moments]]", "squares)[: 1 + n_moments])]"),
        tests="weights",
        select="toggling or mean_and_the_variance",
    ),
    mutant(
        "PCA: weight before the clip",
        (
            PCA,
            "            z = self._vectors(rows[part])\n",
            "            z = self._vectors(rows[part] * each[part, None])\n",
        ),
        (
            PCA,
            "            z *= np.sqrt(each[part, None]).astype(z.dtype)  # after the clip: z is in the unit ball\n",
            "",
        ),
        tests="decomposition",
        select="components_of_the_population or no_two_weighted",
    ),
    mutant(
        "PCA: weights, not their roots",
        (PCA, "z *= np.sqrt(each[part, None])", "z *= each[part, None]"),
        tests="decomposition",
        select="components_of_the_population",
    ),
    mutant(
        "PCA: weight left out of the total",
        (PCA, "total = min(max(float(gram[d, d])", "total = min(max(float(len(rows)) * WEIGHED_ENTRY**2"),
        tests="decomposition",
        select="components_of_the_population",
    ),
    mutant(
        "PCA: the exact sum of weights",
        (PCA, "total = min(max(float(gram[d, d])", "total = min(max(float(shares.sum()) * WEIGHED_ENTRY**2"),
        tests="weights",
        select="toggling and components",
    ),
    mutant(
        "synthesizer: weights left out of the sum of weights",
        (MEASUREMENT, "n = sums.total(noisy, most, deviation)", "n = self.n"),
        tests="weights",
        select="samples_have_the_distribution",
    ),
    mutant(
        "synthesizer: the exact sum of weights",
        (
            MEASUREMENT,
            "n = sums.total(noisy, most, deviation)",
            "n = self.n if rows.shares is None else max(float(rows.shares.sum()), 1.0)",
        ),
        tests="weights",
        select="toggling and synthesizer",
    ),
    mutant(
        "synthesizer: the sum of weights unpaid",
        (
            TABLE_SUMS,
            "sum(square * squared_norm(",
            "sum(bool(columns) * square * squared_norm(",
        ),
        tests="synthesizer",
        select="weighted_rows",
    ),
    mutant(
        "synthesizer: weights left out of the scores",
        (MEASUREMENT, "open_sets, levels, expected, self._shares(rows))", "open_sets, levels, expected)"),
        tests="weights",
        select="weight_0_holds and synthesizer",
    ),
    mutant(
        "weights of bins that are not cut",
        (BUYER, "rows._replace(weights=exactly_summable(shares))", "rows._replace(weights=np.multiply(shares, 2.0))"),
        tests="weights",
        select="toggling and bins",
    ),
    mutant(
        "weights of a column in the order of its numbers without gaps",
        (COUNTS, "weights[present] if np.ndim(weights)", "weights[: present.sum()] if np.ndim(weights)"),
        tests="weights",
        select="gaps",
    ),
    mutant(
        "shares that are rounded up",
        (WEIGHTS, "np.floor(np.asarray(shares) * _GRID)", "np.ceil(np.asarray(shares) * _GRID)"),
        tests="weights",
        select="summed_exactly",
    ),
    mutant(
        "a bought bound that counts the null record",
        (WEIGHT_BOUND, "np.where(weights > 0.0, weights, np.nan)", "weights + 0.0"),
        tests="weights",
        select="bought_bound_by_its_sensitivity",
    ),
    mutant(
        "a bound that is bought and not paid",
        (
            PURCHASE,
            "return compose([*(each.event_at(noise_multiplier) for each in purchases), event_at(noise_multiplier)])",
            "return event_at(noise_multiplier)",
        ),
        tests="weights",
        select="part_of_the_price",
    ),
    mutant(
        "the bound on weights their largest, and not bought",
        (WEIGHT_BOUND, "max(bought.bounds[0][1], _LEAST)", "max(float(np.max(weights)), _LEAST)"),
        tests="weights",
        select="bought_bound_by_its_sensitivity",
    ),
    mutant(
        "weights in scores of a search as they are",
        (PART_ROWS, "return cls(weights, reader.shares(weights))", "return cls(weights, weights)"),
        tests="weights",
        select="fits_and_scores",
    ),
    mutant(
        "weights left out of the scores of a search",
        (SCORES, "np.ones(len(moves)) if shares is None else shares", "np.ones(len(moves))"),
        tests="weights",
        select="weigh_rows",
    ),
    mutant(
        "a try that refuses weights",
        (PART_ROWS, "np.maximum(self.given[rows], np.finfo(np.float64).tiny)", "self.given[rows]"),
        tests="weights",
        select="no_refusal",
    ),
    mutant(
        "a warning of weights that are cut, and of no others",
        (
            WEIGHTS,
            "weight_bound is None and sample_weight is not None",
            "weight_bound is None and np.any(np.asarray(1.0 if sample_weight is None else sample_weight) > 1.0)",
        ),
        tests="weights",
        select="warning",
    ),
    mutant(
        "weight after the cut but before the clip, two classes",
        (KERNEL, "_clip_factor(reach * length[i]", "_clip_factor(weight[i] * reach * length[i]"),
        tests="linear",
        select="weight_scales",
    ),
    mutant(
        "weight after the cut but before the clip, several classes",
        (KERNEL, "_clip_factor(math.sqrt(square[i])", "_clip_factor(weight[i] * math.sqrt(square[i])"),
        tests="linear",
        select="weight_scales",
    ),
    mutant(
        "weight after the cut but before the clip, one-hot rows",
        (LOSSES, "size *= lengths[i] * room", "size *= weights[i] * lengths[i] * room"),
        tests="losses",
        select="weights_act",
    ),
    mutant(
        "weight after the cut but before the clip, networks",
        (
            DENSE,
            "    n_layers, m = len(deltas), len(first)\n",
            "    n_layers, m = len(deltas), len(first)\n    for k in range(n_layers):\n"
            "        for i in range(m):\n            deltas[k][begin + i] *= weights[i]\n",
        ),
        (DENSE, "factor = factors[k, i] * weights[i]", "factor = factors[k, i]"),
        tests="network dense",
        select="weight_multiplies or layer_by_layer",
    ),
    mutant(
        "weights of one-hot rows left out",
        (LOSSES, "residuals[k, i] * factor * weights[i] if kept", "residuals[k, i] * factor if kept"),
        tests="losses",
        select="weights_act",
    ),
    mutant(
        "weights of another row in a network",
        (SPANS, "weights[rows[start:stop]]", "weights[start:stop]"),
        tests="network",
        select=BY_PROPERTY,
    ),
    mutant(
        "weights of least squares, not their roots",
        (LEAST_SQUARES, "np.sqrt(weights) if", "weights if"),
        tests="least_squares",
        select="plain_reading",
    ),
]
