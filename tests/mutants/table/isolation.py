"""Mistakes in the private isolation forest."""

from mutant import mutant
from paths import ISOLATION_FOREST

MUTANTS = [
    mutant(
        "isolation: trees that share the noise of one count",
        (ISOLATION_FOREST, "column_sensitivity(int(self.n_estimators), self.adjacency)", "1.0"),
        tests="isolation_forest",
        select="sensitivity",
    ),
    mutant(
        "isolation: an exchanged row priced as half of one that is added",
        (
            ISOLATION_FOREST,
            "column_sensitivity(int(self.n_estimators), self.adjacency)",
            "column_sensitivity(int(self.n_estimators), 'zero_out') * (0.5 if self.adjacency == 'replace_one' else 1)",
        ),
        tests="isolation_forest",
        select="sensitivity",
    ),
    mutant(
        "isolation: units that count as often as they have rows",
        (ISOLATION_FOREST, "clip_counts(targets.units, list(leaves.T), weights)", "weights"),
        tests="guarantees_units",
        select="isolation",
    ),
    mutant(
        "isolation: a threshold of the scores of the rows",
        (
            ISOLATION_FOREST,
            "        self.offset_ = self._offset(plan.mechanism.standard_deviation, coins)\n",
            "        leaves = self.embedding_._leaves(rows.codes)\n"
            "        self.offset_ = float(np.quantile(self._scores(leaves), self._check_contamination() or 0.1))\n",
        ),
        tests="isolation_forest",
        select="sensitivity",
    ),
    mutant(
        "isolation: exact numbers of rows",
        (
            ISOLATION_FOREST,
            "max(self.leaf_counts_.sum(axis=1).mean(), deviation, 2.0)",
            "self._n_exact",
        ),
        (
            ISOLATION_FOREST,
            "        self._set_counts(noisy, sigma)\n",
            "        self._n_exact = float(n)\n        self._set_counts(noisy, sigma)\n",
        ),
        tests="isolation_forest",
        select="sensitivity",
    ),
    mutant(
        "isolation: paths as long as those of exact counts",
        (
            ISOLATION_FOREST,
            "        noisy = plan.release(self._count(rows, weight_of_each(shares, n), targets))\n",
            "        exact = self._count(rows, weight_of_each(shares, n), targets)\n"
            "        noisy = plan.release(exact)\n",
        ),
        (
            ISOLATION_FOREST,
            "        coins = np.random",
            "        self._fitted_lengths = path_lengths(self.embedding_._fitted_trees, exact)\n"
            "        coins = np.random",
        ),
        tests="private_checks",
        select="Isolation",
    ),
]
