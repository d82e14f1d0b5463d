"""Mistakes in private least squares."""

from mutant import BY_PROPERTY, mutant
from paths import BOUNDED_TARGETS, LEAST_SQUARES, SEARCH

MUTANTS = [
    mutant(
        "regression: an exchanged row's sensitivity under every adjacency",
        (LEAST_SQUARES, "sensitivity(0.0, self.adjacency))", 'sensitivity(0.0, "replace_one"))'),
        tests="least_squares",
        select=BY_PROPERTY,
    ),
    mutant(
        "regression: the target outside of the ball",
        (LEAST_SQUARES, "        sums.add(z)\n", "        z[:, -1] *= 2.0\n        sums.add(z)\n"),
        (LEAST_SQUARES, "MomentSum(UnitBall(np.zeros(width), 1.0)", "_Unclipped(UnitBall(np.zeros(width), 1.0)"),
        (
            LEAST_SQUARES,
            "def _sum_of_rows(",
            """class _Unclipped(MomentSum):
    def add(self, X):
        self._triangle += (X.T.astype(float) @ X)[np.tri(X.shape[1], dtype=bool)]
        self.n_rows += len(X)


def _sum_of_rows(""",
        ),
        tests="least_squares",
        select=BY_PROPERTY,
    ),
    mutant(
        "regression: weights after the clip",
        (LEAST_SQUARES, "MomentSum(UnitBall(np.zeros(width), 1.0)", "_Unclipped(UnitBall(np.zeros(width), 1.0)"),
        (
            LEAST_SQUARES,
            "def _sum_of_rows(",
            """class _Unclipped(MomentSum):
    def add(self, X):
        with np.errstate(over="ignore"):
            X = np.minimum(X.astype(float), 1e100)
            self._triangle += (X.T @ X)[np.tri(X.shape[1], dtype=bool)]
        self.n_rows += len(X)


def _sum_of_rows(""",
        ),
        tests="least_squares",
        select=BY_PROPERTY,
    ),
    mutant(
        "regression: rows longer than their bound as they came",
        (LEAST_SQUARES, "        ball.bring_in(block, inside)\n", "        np.divide(block, radius, out=inside)\n"),
        tests="least_squares",
    ),
    mutant(
        "regression: targets beyond their bounds as they came",
        (BOUNDED_TARGETS, "return np.clip(values, *bounds), bounds", "return values, bounds"),
        tests="least_squares",
        select=BY_PROPERTY,
    ),
    mutant(
        "regression: released without noise",
        (LEAST_SQUARES, "sums.moments(plan.release(sums.isometric))", "sums.moments(sums.isometric)"),
        tests="least_squares",
        select=BY_PROPERTY,
    ),
    mutant(
        "regression: a private n under add_remove",
        (LEAST_SQUARES, "n, radius = self._public_n_samples(rows.shape[0]), self", "n, radius = rows.shape[0], self"),
        tests="least_squares",
        select=BY_PROPERTY,
    ),
    mutant(
        "regression: bounds read from y in silence",
        (BOUNDED_TARGETS, "    note_leaks(estimator, Y_BOUNDS_READ)\n", ""),
        tests="least_squares",
        select=BY_PROPERTY,
    ),
    mutant(
        "regression: a search whose tries read bounds",
        (SEARCH, "        _check_bounds_are_given(made)\n", ""),
        tests="least_squares",
        select=BY_PROPERTY,
    ),
    mutant(
        "regression: eigenvalues of the noise kept",
        (LEAST_SQUARES, "(vectors * np.maximum(values, least)) @ vectors.T", "(vectors * values) @ vectors.T"),
        tests="least_squares",
        select=BY_PROPERTY,
    ),
    mutant(
        "regression: standard errors of sampling alone",
        (LEAST_SQUARES, "variances += (noise.product**2 +", "variances += 0.0 * (noise.product**2 +"),
        tests="least_squares",
        select=BY_PROPERTY,
    ),
    mutant(
        "regression: standard errors of the noise alone",
        (LEAST_SQUARES, "variances = residual * np.einsum(", "variances = 0.0 * np.einsum("),
        tests="least_squares",
        select=BY_PROPERTY,
    ),
    mutant(
        "regression: predictions beyond the bounds",
        (LEAST_SQUARES, "return np.clip(scores + self.intercept_, *self.y_bounds_)", "return scores + self.intercept_"),
        tests="least_squares",
        select=BY_PROPERTY,
    ),
]
