"""Mistakes in private k-means."""

from mutant import mutant
from paths import CLUSTER_MOMENTS, CLUSTER_ROWS, CLUSTER_STEPS, CLUSTER_TREE, CLUSTERING, KMEANS

MUTANTS = [
    mutant(
        "clusters: offsets that are not clipped",
        (CLUSTER_ROWS, "    longest = np.maximum(lengths, radius)\n", "    longest = np.full(len(offsets), radius)\n"),
        tests="kmeans",
    ),
    mutant(
        "clusters: counts outside of the sensitivity of a step",
        (CLUSTER_STEPS, "[of_counts * counts, ", "[counts, "),
        tests="kmeans",
    ),
    mutant(
        "clusters: an exchanged row priced as half of one that is added",
        (
            CLUSTER_STEPS,
            'return math.sqrt(step_parts(adjacency).sums) if adjacency == "replace_one"',
            'return 0.5 if adjacency == "replace_one"',
        ),
        tests="kmeans",
    ),
    mutant(
        "clusters: counts of exchanged rows larger than their sums",
        (CLUSTER_STEPS, "StepParts(1 / 3, 1 / 3, 1 / 3) if", "StepParts(0.6, 0.3, 0.1) if"),
        tests="kmeans",
    ),
    mutant(
        "clusters: counts of leaves outside of the sensitivity",
        (CLUSTER_TREE, "[of_counts * counts, ", "[counts, "),
        tests="kmeans",
    ),
    mutant(
        "clusters: sums of leaves of exchanged rows larger than their counts",
        (CLUSTER_TREE, "counts = 0.5 if", "counts = 0.3 if"),
        tests="kmeans",
    ),
    mutant(
        "clusters: sparse rows whose bounds are bought after the charge",
        (KMEANS, "if sp.issparse(rows) and None in bounds_of_columns(", "if False and None in bounds_of_columns("),
        tests="kmeans",
    ),
    mutant(
        "clusters: counts of exchanged rows with half of their noise",
        (CLUSTER_TREE, "math.sqrt(0.5) if adjacency", "0.5 if adjacency"),
        tests="kmeans",
    ),
    mutant(
        "clusters: leaves chosen by exact counts",
        (CLUSTER_TREE, 'releases.release(of_levels[level], exact, of_count, "level", level).value', "exact"),
        tests="kmeans",
    ),
    mutant(
        "clusters: one noise for all steps",
        (CLUSTER_STEPS, '"step", step)', '"step")'),
        tests="kmeans",
    ),
    mutant(
        "clusters: more levels than are paid for",
        (CLUSTERING, "*noisy_tree.shares(TREE, levels),", "*noisy_tree.shares(TREE, levels)[1:],"),
        tests="kmeans",
    ),
    mutant(
        "clusters: weights that are not those of the moments",
        (CLUSTER_MOMENTS, "        z *= np.sqrt(rows.weights[part, None])\n", ""),
        tests="private_checks",
        select="KMeans",
    ),
    mutant(
        "clusters: exact inertia",
        (
            KMEANS,
            "        self._derive_state()\n        self._set_price",
            "        self._derive_state()\n        self.inertia_ = -self.score(rows)\n        self._set_price",
        ),
        tests="private_checks",
        select="KMeans",
    ),
    mutant(
        "clusters: units that count as often as they have rows",
        (KMEANS, "average_units(targets.units, weight_of_each(shares, n))", "weight_of_each(shares, n)"),
        tests="guarantees_units",
        select="clusters",
    ),
    mutant(
        "clusters: values beyond their bounds as they came",
        (CLUSTER_ROWS, "values = np.clip(np.asarray(X, np.float64), low, high)", "values = np.array(X, np.float64)"),
        (CLUSTER_ROWS, "return np.clip(values, -1.0, 1.0, out=values)", "return values"),
        tests="kmeans",
    ),
]
