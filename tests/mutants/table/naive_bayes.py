"""Mistakes in private naive Bayes."""

from mutant import BY_PROPERTY, mutant
from paths import NAIVE_BAYES

MUTANTS = [
    mutant(
        "naive Bayes: an exchanged row priced as one that is added",
        (NAIVE_BAYES, "return math.sqrt(n_features)\n", "return math.sqrt(n_features / 2)\n"),
        tests="naive_bayes private_checks",
        select=BY_PROPERTY,
    ),
    mutant(
        "naive Bayes: an added row priced as one that is exchanged",
        (NAIVE_BAYES, '    if adjacency == "replace_one":\n', "    if True:\n"),
        tests="naive_bayes private_checks",
        select=BY_PROPERTY,
    ),
    mutant(
        "naive Bayes: the sensitivity of one column",
        (NAIVE_BAYES, "math.sqrt((COUNT_SHARE + 1.25) * n_features)", "math.sqrt(COUNT_SHARE + 1.25)"),
        tests="naive_bayes private_checks",
        select=BY_PROPERTY,
    ),
    mutant(
        "naive Bayes: squares outside of the sensitivity",
        (NAIVE_BAYES, "math.sqrt((COUNT_SHARE + 1.25) * n_features)", "math.sqrt((COUNT_SHARE + 1.0) * n_features)"),
        tests="naive_bayes private_checks",
        select=BY_PROPERTY,
    ),
    mutant(
        "naive Bayes: exact counts",
        (
            NAIVE_BAYES,
            "math.sqrt(COUNT_SHARE * d) * np.bincount(part",
            "1e6 * math.sqrt(COUNT_SHARE * d) * np.bincount(part",
        ),
        (NAIVE_BAYES, "noisy[:, 0] / weight, max", "noisy[:, 0] / (1e6 * weight), max"),
        tests="naive_bayes private_checks",
        select=BY_PROPERTY,
    ),
    mutant(
        "naive Bayes: values beyond their bounds as they came",
        (
            NAIVE_BAYES,
            "np.clip((np.clip(X, low, high) - low) / half - 1.0, -1.0, 1.0)",
            "(np.minimum(np.maximum(X, -1e50), 1e50) - low) / half - 1.0",
        ),
        tests="naive_bayes private_checks",
        select=BY_PROPERTY,
    ),
    mutant(
        "naive Bayes: released without noise",
        (
            NAIVE_BAYES,
            "noisy = plan.release(sum_of_rows(rows, targets.codes, weights, n_classes, self.bounds_))",
            "noisy = sum_of_rows(rows, targets.codes, weights, n_classes, self.bounds_)",
        ),
        tests="naive_bayes private_checks",
        select=BY_PROPERTY,
    ),
    mutant(
        "naive Bayes: counts without weights",
        (NAIVE_BAYES, "np.bincount(part, shares, minlength=n_classes)", "np.bincount(part, minlength=n_classes)"),
        tests="weights",
        select="naive and population",
    ),
    mutant(
        "naive Bayes: classes read in silence",
        (NAIVE_BAYES, "        report_classes_read(self)\n", ""),
        tests="naive_bayes private_checks",
        select=BY_PROPERTY,
    ),
    mutant(
        "naive Bayes: exact priors",
        (
            NAIVE_BAYES,
            "        self.classes_, self.noise_multiplier_ =",
            "        self.class_prior_ = np.bincount(targets.codes, minlength=n_classes) / len(rows)\n"
            "        self.classes_, self.noise_multiplier_ =",
        ),
        tests="naive_bayes private_checks",
        select=BY_PROPERTY,
    ),
    mutant(
        "naive Bayes: variances that the noise decides",
        (NAIVE_BAYES, "least = np.maximum(deviation / counts, LEAST_VARIANCE)[:, None]", "least = LEAST_VARIANCE"),
        tests="naive_bayes private_checks",
        select=BY_PROPERTY,
    ),
    mutant(
        "naive Bayes: proportions of indicators that the noise decides",
        (NAIVE_BAYES, "(found + noise) / (pooled + noise)", "np.maximum(found, 1e-9) / (pooled + noise)"),
        tests="naive_bayes",
        select="log_loss_near",
    ),
]
