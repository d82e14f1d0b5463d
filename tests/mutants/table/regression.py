"""Mistakes in private least squares."""

from mutant import BY_PROPERTY, mutant
from paths import (
    BOUNDED_TARGETS,
    EQUATIONS,
    LEAST_SQUARES,
    MLP_REGRESSOR,
    REGRESSOR,
    ROW_BLOCKS,
    ROWS_OF_DASK,
    SEARCH,
)

MUTANTS = [
    mutant(
        "regression: an exchanged row's sensitivity under every adjacency",
        (LEAST_SQUARES, "sensitivity(0.0, self.adjacency), self", 'sensitivity(0.0, "replace_one"), self'),
        tests="least_squares private_checks",
        select=BY_PROPERTY,
    ),
    mutant(
        "regression: the target outside of the ball",
        (LEAST_SQUARES, "self.of_z.add(z)\n", "z[:, -1] *= 2.0\n            self.of_z.add(z)\n"),
        (LEAST_SQUARES, "MomentSum(UnitBall(np.zeros(width), 1.0)", "_Unclipped(UnitBall(np.zeros(width), 1.0)"),
        (
            LEAST_SQUARES,
            "class SumOfRows:",
            """class _Unclipped(MomentSum):
    def add(self, X):
        self._triangle += (X.T.astype(float) @ X)[np.tri(X.shape[1], dtype=bool)]
        self.n_rows += len(X)


class SumOfRows:""",
        ),
        tests="least_squares private_checks",
        select=BY_PROPERTY,
    ),
    mutant(
        "regression: weights after the clip",
        (LEAST_SQUARES, "MomentSum(UnitBall(np.zeros(width), 1.0)", "_Unclipped(UnitBall(np.zeros(width), 1.0)"),
        (
            LEAST_SQUARES,
            "class SumOfRows:",
            """class _Unclipped(MomentSum):
    def add(self, X):
        with np.errstate(over="ignore"):
            X = np.minimum(X.astype(float), 1e100)
            self._triangle += (X.T @ X)[np.tri(X.shape[1], dtype=bool)]
        self.n_rows += len(X)


class SumOfRows:""",
        ),
        tests="least_squares private_checks",
        select=BY_PROPERTY,
    ),
    mutant(
        "regression: rows longer than their bound as they came",
        (LEAST_SQUARES, "self._ball.bring_in(block, inside)", "np.divide(block, self._ball.radius, out=inside)"),
        tests="least_squares private_checks",
    ),
    mutant(
        "regression: weights of a file are not used",
        (
            ROW_BLOCKS,
            "read_targets, block.labels, block.weights, len(rows))",
            "read_targets, block.labels, None, len(rows))",
        ),
        tests="streaming",
        select="least_squares",
    ),
    mutant(
        "regression: targets in a file beyond their bounds as they came",
        (BOUNDED_TARGETS, "        values, _ = bring_into_bounds(values, self.bounds)\n", ""),
        tests="streaming",
        select="least_squares",
    ),
    mutant(
        "regression: a collection whose rows are fewer than was planned with",
        (ROWS_OF_DASK, "        self._check_number(total.n_rows)\n", ""),
        tests="dask_rows",
        select="likewise",
    ),
    mutant(
        "regression: targets beyond their bounds as they came",
        (BOUNDED_TARGETS, "return np.clip(targets, *bounds), bounds", "return targets, bounds"),
        tests="least_squares private_checks",
        select=BY_PROPERTY,
    ),
    mutant(
        "regression: released without noise",
        (LEAST_SQUARES, "sums.moments(plan.release(sums.isometric))", "sums.moments(sums.isometric)"),
        tests="least_squares private_checks",
        select=BY_PROPERTY,
    ),
    mutant(
        "regression: a private n under add_remove",
        (
            LEAST_SQUARES,
            "n = self._public_n_samples(n_units or targets.weights.n_units(rows.shape[0]))",
            "n = rows.shape[0]",
        ),
        tests="least_squares private_checks",
        select=BY_PROPERTY,
    ),
    mutant(
        "regression: bounds read from y in silence",
        (BOUNDED_TARGETS, "    note_leaks(estimator, Y_BOUNDS_READ)\n", ""),
        tests="least_squares private_checks",
        select=BY_PROPERTY,
    ),
    mutant(
        "regression: a search whose tries read bounds",
        (SEARCH, "        check_bounds_are_given(made)\n", ""),
        tests="least_squares private_checks",
        select=BY_PROPERTY,
    ),
    mutant(
        "regression: eigenvalues of the noise kept",
        (EQUATIONS, "(vectors * np.maximum(values, least)) @ vectors.T", "(vectors * values) @ vectors.T"),
        tests="least_squares private_checks",
        select=BY_PROPERTY,
    ),
    mutant(
        "regression: standard errors of sampling alone",
        (EQUATIONS, "variances += (noise.product**2 +", "variances += 0.0 * (noise.product**2 +"),
        tests="least_squares private_checks",
        select=BY_PROPERTY,
    ),
    mutant(
        "regression: standard errors of the noise alone",
        (EQUATIONS, "variances = residual * np.einsum(", "variances = 0.0 * np.einsum("),
        tests="least_squares private_checks",
        select=BY_PROPERTY,
    ),
    mutant(
        "regression: predictions beyond the bounds",
        (LEAST_SQUARES, "return np.clip(scores + self.intercept_, *self.y_bounds_)", "return scores + self.intercept_"),
        tests="least_squares private_checks",
        select=BY_PROPERTY,
    ),
    # --- by gradient descent ---
    mutant(
        "regressor: targets beyond their bounds as they came",
        (BOUNDED_TARGETS, "return np.clip(targets, *bounds), bounds", "return targets, bounds"),
        tests="regressor",
        select="beyond_their_bounds",
    ),
    mutant(
        "regressor: logarithms of targets beyond their bounds",
        (
            BOUNDED_TARGETS,
            "targets = np.clip(np.log(targets), self.middle - self.half, self.middle + self.half)",
            "targets = np.log(targets)",
        ),
        tests="target_scale",
        select="unit_interval",
    ),
    mutant(
        "regressor: logarithms for bounds that have none",
        (BOUNDED_TARGETS, "if not (low > 0.0 and math.log(high) > math.log(low)):", "if low < 0.0:"),
        tests="target_scale",
        select="no_logarithm",
    ),
    mutant(
        "regressor: predictions beyond the bounds",
        (
            REGRESSOR,
            "return np.clip(scale.restored(values), *self.y_bounds_)",
            "return scale.restored(values)",
        ),
        tests="regressor",
        select="stay_within",
    ),
    mutant(
        "regressor: bounds read from y though others are given",
        (
            REGRESSOR,
            "bring_into_bounds(values, None if outputs is None else outputs.bounds)",
            "bring_into_bounds(values, None)",
        ),
        tests="guarantees_neighbours regressor",
        select="(regression and muting) or beyond_their_bounds",
    ),
    mutant(
        "regressor: bounds of an instalment read anew",
        (REGRESSOR, "            return BoundedOutput(self.model.y_bounds_)\n", "            return outputs\n"),
        tests="regressor",
        select="instalment_keeps",
    ),
    mutant(
        "regressor: bounds read from y in silence",
        (REGRESSOR, "            report_bounds_read(self.model)\n", "            pass\n"),
        tests="regressor guarantees_neighbours",
        select="bounds_that_are_read or refusals_that_lie",
    ),
    mutant(
        "regressor: negative counts taken",
        (BOUNDED_TARGETS, "    if (counts < 0.0).any():\n", "    if False:\n"),
        tests="regressor",
        select="refused",
    ),
    mutant(
        "regressor: a refusal that shows a target",
        (BOUNDED_TARGETS, '"y has negative targets with', 'f"{counts.min()} in y has negative targets with'),
        tests="regressor",
        select="refused",
    ),
    mutant(
        "regressor: an instalment with outputs of another kind",
        (MLP_REGRESSOR, "if OUT_ACTIVATIONS[run.shape.architecture.loss] != present:", "if False:"),
        tests="regressor",
        select="do_not_fit",
    ),
]
