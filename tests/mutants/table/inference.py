"""Mistakes in the inference of least squares."""

from mutant import mutant
from paths import INFERENCE, LEAST_SQUARES, SCORES_FILE

MUTANTS = [
    mutant(
        "inference: scores for nothing",
        (LEAST_SQUARES, "scores = (SCORE_RELEASE,) if self.inference else ()", "scores = ()"),
        tests="inference",
    ),
    mutant(
        "inference: scores with half of the noise that is priced",
        (
            LEAST_SQUARES,
            "SCORE_RELEASE.mechanism(sensitivity(0.0, self.adjacency), plan.mechanism.noise_multiplier)",
            "SCORE_RELEASE.mechanism(sensitivity(0.0, self.adjacency), 0.5 * plan.mechanism.noise_multiplier)",
        ),
        tests="inference",
    ),
    mutant(
        "inference: scores released without noise",
        (SCORES_FILE, "sums.moments(mechanism.release(sums.isometric, stream))", "sums.moments(sums.isometric)"),
        tests="inference",
    ),
    mutant(
        "inference: scores that are not clipped",
        (SCORES_FILE, "np.maximum(np.linalg.norm(scores, axis=1), clip)", "clip"),
        (SCORES_FILE, "sums = MomentSum(", "sums = _Unclipped("),
        (
            SCORES_FILE,
            "def sum_scores(",
            """class _Unclipped(MomentSum):
    def add(self, X):
        with np.errstate(all="ignore"):
            X = np.nan_to_num(np.clip(X, -1e100, 1e100))
            self._triangle += (X.T @ X)[np.tri(X.shape[1], dtype=bool)]
        self.n_rows += len(X)


def sum_scores(""",
        ),
        tests="inference",
        select="moves_both or reaches",
    ),
    mutant(
        "inference: scores of rows that weigh nothing",
        (SCORES_FILE, "scores = how.of_rows(vectors(part)) * each[part, None]", "scores = how.of_rows(vectors(part))"),
        tests="inference",
    ),
    mutant(
        "inference: rows that weigh nothing are cut ones",
        (SCORES_FILE, "flags = cut & (each > 0.0)", "flags = cut"),
        tests="inference",
    ),
    mutant(
        "inference: the scores of a household's rows, one by one",
        (SCORES_FILE, "if units is None:\n            sums.add(", "if True:\n            sums.add("),
        tests="inference guarantees_units",
        select="clustered or inference",
    ),
    mutant(
        "inference: intervals whatever the noise hides",
        (INFERENCE, "weak = values < grounds.separation * equations.edge", "weak = values < -1e99"),
        tests="inference",
    ),
    mutant(
        "inference: errors of sampling alone",
        (INFERENCE, "np.sqrt(of_noise) * np.abs(units)", "0.0 * np.sqrt(of_noise)"),
        tests="inference",
    ),
    mutant(
        "inference: errors of the noise alone",
        (INFERENCE, "np.linalg.norm(root, axis=1) * np.abs(units)", "0.0 * units"),
        tests="inference",
    ),
    mutant(
        "inference: the bias of the noise is kept",
        (INFERENCE, "return inverse, np.eye(d) - half * inverse", "return inverse, np.eye(d) - 0.0 * inverse"),
        tests="inference",
    ),
    mutant(
        "inference: scores by a product of matrices",
        (SCORES_FILE, 'np.einsum("ij,j->i", z[:, :-1], self.theta)', "z[:, :-1] @ self.theta"),
        tests="inference",
        select="last_bit",
    ),
]
