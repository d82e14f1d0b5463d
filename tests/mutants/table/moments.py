"""Mistakes in second moments and their release."""

from mutant import BY_PROPERTY, mutant
from paths import GRAM, GRAM_KERNEL, PCA, SPECTRUM

MUTANTS = [
    mutant(
        "PCA: sensitivity off by n",
        (PCA, "sensitivity(weight, self.adjacency))", "sensitivity(weight, self.adjacency) / max(n, 1))"),
        tests="decomposition private_checks",
        select=BY_PROPERTY,
    ),
    mutant(
        "PCA: rows not divided by their bound",
        (GRAM_KERNEL, "return 1.0 / norm if norm > radius else 1.0 / radius", "return min(1.0, radius / norm)"),
        tests="decomposition private_checks",
        select=BY_PROPERTY,
    ),
    mutant(
        "PCA: R where R squared belongs",
        (PCA, '"noise_scale_": noise * radius**2', '"noise_scale_": noise * radius'),
        (
            PCA,
            "variances = np.maximum(values, 0.0) * radius**2",
            "variances = np.maximum(values, 0.0) * radius",
        ),
        tests="decomposition private_checks",
        select=BY_PROPERTY,
    ),
    mutant(
        "PCA: unclipped rows multiplied",
        (GRAM_KERNEL, "return 1.0 / norm if norm > radius else 1.0 / radius", "return 1.0 / radius"),
        tests="decomposition private_checks",
        select=BY_PROPERTY,
    ),
    mutant(
        "PCA: norms clipped, the block as it came multiplied",
        (
            GRAM,
            "        self.ball.bring_in(block[part], rows[part])\n",
            "        rows[part, : block.shape[1]] = block[part]\n",
        ),
        tests="decomposition private_checks",
        select=BY_PROPERTY,
    ),
    mutant(
        "PCA: off-diagonal entries released at half their weight",
        (GRAM, "self._triangle * (math.sqrt(2.0) / self.rounding)", "self._triangle / self.rounding"),
        (GRAM, "triangle[_diagonal(len(self._total))] /= math.sqrt(2.0)", "pass"),
        (GRAM, "self.rounding / math.sqrt(2.0), out=", "self.rounding, out="),
        (GRAM, "        gram[np.diag_indices(d)] *= math.sqrt(2.0)\n", ""),
        tests="decomposition private_checks",
        select=BY_PROPERTY,
    ),
    mutant(
        "PCA: mean unpaid",
        (GRAM, "    return math.sqrt(1.0 + weight**2)\n", "    return 1.0\n"),
        (GRAM, "return (1.0 + weight**2 / 2.0) / math.sqrt(2.0)", "return 1.0 / math.sqrt(2.0)"),
        tests="decomposition private_checks",
        select=BY_PROPERTY,
    ),
    mutant(
        "PCA: mean without noise",
        (
            PCA,
            "        n = plan.n_public or sums.n_rows\n",
            "        n = plan.n_public or sums.n_rows\n        moments = moments._replace(total=sums._total)\n",
        ),
        tests="decomposition private_checks",
        select=BY_PROPERTY,
    ),
    mutant(
        "PCA: exact trace",
        (PCA, "total = max(trace * radius**2,", "total = max(getattr(self, '_exact_trace', trace) * radius**2,"),
        (
            PCA,
            "        n = plan.n_public or sums.n_rows\n",
            "        n = plan.n_public or sums.n_rows\n"
            "        self._exact_trace = float(np.trace(sums.moments(sums.isometric).gram)) / n\n",
        ),
        tests="private_checks",
        select="follows",
    ),
    mutant(
        "PCA: halved sensitivity under every adjacency",
        (GRAM, 'if adjacency == "replace_one":', "if adjacency:"),
        tests="decomposition private_checks",
        select=BY_PROPERTY,
    ),
    mutant(
        "PCA: float32 products where rows shift",
        (
            GRAM,
            "np.float32 if self._by_position and np.can_cast(X.dtype, np.float32)",
            "np.float32 if np.can_cast(X.dtype, np.float32)",
        ),
        tests="decomposition",
        select="shift",
    ),
    mutant(
        "PCA: rounding in float32 not paid for",
        (
            GRAM,
            "return (1.0 + theta) ** 2 * (1.0 + 2.0 * roundoff * (b * (b + 1) / 2 + b) * (1.0 + gamma))",
            "return 1.0 + 1e-9",
        ),
        tests="decomposition private_checks",
        select=BY_PROPERTY,
    ),
    mutant(
        "PCA: threads that add to the same sums",
        (
            GRAM,
            "(top, min(top + step, d)) for",
            "(top, min(top + step + 1, d)) for",
        ),
        tests="second_moments",
        select="threads",
    ),
    mutant(
        "PCA: rows at the end of a chunk read twice",
        (GRAM, "range(0, len(X), step)", "range(0, len(X), step - 1)"),
        tests="second_moments",
        select="threads",
    ),
    mutant(
        "PCA: the direction of the mean kept before one that varies more",
        (SPECTRUM, "values = np.append(values[:first], inner)", "values = np.append(values[:first] - np.inf, inner)"),
        tests="decomposition",
        select="one_decomposition",
    ),
    mutant(
        "PCA: a private n under add_remove",
        (PCA, "self._check_data_norm(), self._public_n_samples(n_samples)", "self._check_data_norm(), n_samples"),
        tests="decomposition private_checks",
        select=BY_PROPERTY,
    ),
    mutant(
        "PCA: eigenvectors of many columns that are not there yet",
        (SPECTRUM, "_ROUNDING = 2.0**-50", "_ROUNDING = 2.0**-10"),
        tests="decomposition",
        select="those_of_lapack",
    ),
    mutant(
        "PCA: eigenvalues above the edge left out of many columns",
        (SPECTRUM, "            n = max(least, n_above)\n", "            n = least\n"),
        tests="decomposition",
        select="those_of_lapack",
    ),
]
