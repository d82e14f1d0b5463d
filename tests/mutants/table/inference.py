"""Mistakes in inference: of least squares, of Newton steps, and in tests of two columns."""

from mutant import mutant
from paths import FORMULA, HYPOTHESIS_TESTS, INFERENCE, LEAST_SQUARES, LIKELIHOODS, NEWTON, NEWTON_STEPS, SCORES_FILE

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
        (SCORES_FILE, "np.maximum(np.linalg.norm(scores, axis=1), clip)", "np.full(len(scores), clip)"),
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
        (
            INFERENCE,
            "hidden = values < max((3.5 if unsure else 1.0)",
            "hidden = values < -1e99 + 0.0 * max((3.5 if unsure else 1.0)",
        ),
        tests="inference",
    ),
    mutant(
        "inference: intervals where noise may have added all events",
        (INFERENCE, "uncertain > MOST_UNCERTAIN", "uncertain > np.inf"),
        tests="rare_events",
    ),
    mutant(
        "inference: errors of sampling alone",
        (INFERENCE, "form @ theta, sampling, by_noise, bias", "form @ theta, sampling, 0.0 * by_noise, bias"),
        tests="inference",
    ),
    mutant(
        "inference: errors of the noise alone",
        (INFERENCE, "sampling = np.linalg.norm(root, axis=1)", "sampling = 0.0 * np.linalg.norm(root, axis=1)"),
        tests="inference",
    ),
    mutant(
        "inference: the bias of the noise is kept",
        (INFERENCE, "return inverse, np.eye(d) - half * inverse", "return inverse, np.eye(d) - 0.0 * inverse"),
        tests="inference",
    ),
    mutant(
        "inference: scores by a product of matrices",
        (SCORES_FILE, "row_products(z[:, :-1], self.theta)", "z[:, :-1] @ self.theta"),
        tests="inference",
        select="last_bit",
    ),
    mutant(
        "newton: a curvature of classes that is not free",
        (LIKELIHOODS, "curvature_weight = math.sqrt(11.0)", "curvature_weight = math.sqrt(14.0)"),
        tests="newton",
        select="no_longer_than_one",
    ),
    mutant(
        "newton: means of counts up to the largest",
        (LIKELIHOODS, "np.exp(np.minimum(eta, self.first_eta))", "np.exp(np.minimum(eta, 0.0))"),
        tests="newton",
        select="no_longer_than_one",
    ),
    mutant(
        "newton: rows that are not brought to their bound",
        (NEWTON, "z[:, : block.shape[1]] = inside", "z[:, : block.shape[1]] = block / self._ball.radius"),
        tests="newton",
        select="one_row_moves_all",
    ),
    mutant(
        "newton: a curvature without the weight of its row",
        (
            LIKELIHOODS,
            "(z * (weights * slopes[:, one, other])[:, None]).T @ z",
            "(z * slopes[:, one, other][:, None]).T @ z",
        ),
        tests="newton",
        select="weight_0",
    ),
    mutant(
        "newton: rows of a household that each count as one",
        (NEWTON, "self.weights = self.weights * self._shares(units)[units.codes]", "self.weights = self.weights * 1.0"),
        tests="newton",
        select="weighted_by_its_rows",
    ),
    mutant(
        "newton: the noise of one step in all of them",
        (NEWTON, "mechanism_at(number)", "mechanism_at(plan.run.plan.n_steps - 1)"),
        tests="newton",
        select="noise_of_each",
    ),
    mutant(
        "newton: a step that is released without noise",
        (NEWTON, "released = mechanism.release(bound.sums(theta), stream)", "released = bound.sums(theta)"),
        tests="newton",
        select="noise_of_each or one_row_moves_all",
    ),
    mutant(
        "newton: moments of scores for nothing",
        (NEWTON, "            _SCORES: SideRelease.beside_steps(SCORES_SHARE, sampling.rate, n_steps),", ""),
        (
            NEWTON,
            "price = plan.purchases[_SCORES]",
            "price = SideRelease.beside_steps(SCORES_SHARE, 1.0, len(STEP_SHARES))",
        ),
        tests="newton",
        select="noise_of_each",
    ),
    mutant(
        "newton: intervals wherever the steps end",
        (NEWTON, "elif not settled:", "elif False:"),
        tests="newton",
        select="separated",
    ),
    mutant(
        "tests: the noise left out of the null distribution",
        (
            HYPOTHESIS_TESTS,
            "noisy = drawn + table.deviation * rng.standard_normal(drawn.shape)",
            "noisy = drawn.astype(float)",
        ),
        tests="hypothesis_tests",
        select="level",
    ),
    mutant(
        "tests: a difference of means without the error of its noise",
        (HYPOTHESIS_TESTS, "math.sqrt(by_noise / self.n**2 + ", "math.sqrt("),
        tests="hypothesis_tests",
        select="law",
    ),
    mutant(
        "tests: gaps cut at 0, whose noise is taken for the whole",
        (HYPOTHESIS_TESTS, "min(float(tally.counts[0][-1]), ", "min(max(float(tally.counts[0][-1]), 0.0), "),
        tests="hypothesis_tests",
        select="null_hypothesis",
    ),
    mutant(
        "tests: the error of a mean that is large by noise, under the null hypothesis",
        (
            HYPOTHESIS_TESTS,
            "z = difference / math.hypot(first.error(common), second.error(common))",
            "z = difference / math.hypot(first.error(first.mean), second.error(second.mean))",
        ),
        tests="hypothesis_tests",
        select="null_hypothesis",
    ),
    mutant(
        "inference: errors that are not scaled back with coefficients",
        (INFERENCE, 'for name in ("estimate", "sampling", "noise", "bias")', 'for name in ("estimate", "bias")'),
        tests="inference",
    ),
    mutant(
        "formula: numbers that are not cut at their bounds",
        (FORMULA, "np.clip(as_numbers(cells), *column.bounds)", "as_numbers(cells)"),
        (
            FORMULA,
            "np.clip((values - low) / ((high - low) / 2.0) - 1.0, -1.0, 1.0)",
            "(values - low) / ((high - low) / 2.0) - 1.0",
        ),
        tests="formula",
    ),
    mutant(
        "formula: categories that are read from the rows",
        (
            FORMULA,
            "place = {key: k for k, key in enumerate(column.categories or ())}",
            "place = {key: k for k, key in enumerate(keys)}",
        ),
        tests="formula",
    ),
    mutant(
        "formula: numbers at their place between those of the table",
        (FORMULA, "low, high = self.ends", "low, high = np.nanmin(numbers), np.nanmax(numbers)"),
        tests="formula",
    ),
    mutant(
        "formula: cells that are not listed, taken for the reference",
        (FORMULA, "np.where(levels < 0, np.nan, 1.0)", "np.where(levels < 0, 1.0, 1.0)"),
        tests="formula",
    ),
    mutant(
        "formula: a norm of rows that some exceed",
        (FORMULA, "math.sqrt(encoder.squared_norm()))", "math.sqrt(len(named)))"),
        tests="formula",
    ),
    mutant(
        "formula: a curve that is no longer than one column",
        (FORMULA, "return max(self.degree, 1)", "return 1"),
        tests="formula",
    ),
    mutant(
        "formula: an even power that is as far from 0 as at its ends",
        (FORMULA, "[low, 0.0, high] if low < 0.0 < high else [low, high]", "[low, high]"),
        tests="formula",
    ),
    mutant(
        "formula: bounds of a function that are those of its column",
        (FORMULA, "_replace(function=function, ends=ends)", "_replace(function=function)"),
        tests="formula",
    ),
    mutant(
        "newton: a curvature of many classes with the factor of two",
        (
            LIKELIHOODS,
            "curvature_weight = 2.0\n    first_eta",
            "curvature_weight = math.sqrt(11.0)\n    first_eta",
        ),
        tests="newton_many_classes",
        select="no_longer_than_one",
    ),
    mutant(
        "newton: scores of many classes that are as long as the square root of two",
        (LIKELIHOODS, "-basis / math.sqrt(2.0)", "-basis"),
        tests="newton_many_classes",
        select="no_longer_than_one or moves_all",
    ),
    mutant(
        "newton: classes whose curvatures do not touch",
        (LIKELIHOODS, "itertools.product(range(k), repeat=2)", "zip(range(k), range(k), strict=True)"),
        (LIKELIHOODS, "curvature = np.empty((k, width, k, width))", "curvature = np.zeros((k, width, k, width))"),
        tests="newton_many_classes",
        select="maximum_likelihood or repeated",
    ),
    mutant(
        "newton: errors of the lines that were released in place of those of classes",
        (
            NEWTON,
            "infer(pool.equations, theta - pool.theta, found, form, grounds,",
            "infer(pool.equations, theta - pool.theta, found, np.diag(np.linalg.norm(form, axis=1)), grounds,",
        ),
        tests="newton_many_classes",
        select="maximum_likelihood",
    ),
    mutant(
        "newton: a rare class that is counted with the others",
        (LIKELIHOODS, "float(np.linalg.eigvalsh(block)[0])", "float(np.linalg.eigvalsh(block)[-1])"),
        tests="newton_many_classes",
        select="hardly_occurs",
    ),
    mutant(
        "newton: classes of any slope",
        (NEWTON_STEPS, "> likelihood.steepest**2 * n", "> 1e9 * n"),
        tests="newton_many_classes",
        select="steep_slopes",
    ),
    mutant(
        "newton: steps of many classes of the length of a parabola's",
        (NEWTON_STEPS, "return -math.log1p(-rate) / rate", "return 1.0"),
        tests="newton_many_classes",
        select="curvature_falls or are_reached",
    ),
    mutant(
        "newton: a curvature of ordered classes with the factor of two",
        (
            LIKELIHOODS,
            "curvature_weight = 2.0\n    count_weight",
            "curvature_weight = math.sqrt(11.0)\n    count_weight",
        ),
        tests="newton_ordinal",
        select="no_more_than_one or bound_is_reached",
    ),
    mutant(
        "newton: classes that are counted for nothing",
        (
            NEWTON,
            "np.concatenate(whole) / how.longest",
            "np.concatenate(whole)",
        ),
        (NEWTON_STEPS, "np.split(likelihood.longest * released,", "np.split(released,"),
        tests="newton_ordinal",
        select="one_row_moves_all or no_more_than_one",
    ),
    mutant(
        "newton: thresholds that are out of order",
        (LIKELIHOODS, "np.minimum(np.sum(below * expit(eta), axis=1), 1.0 - s)", "np.sum(below * expit(eta), axis=1)"),
        tests="newton_ordinal",
        select="no_more_than_one",
    ),
    mutant(
        "newton: lengths of a household's rows without their classes",
        (
            NEWTON,
            "np.hypot(np.linalg.norm(self._vectors(part), axis=1), how.count_weight) / how.longest",
            "np.linalg.norm(self._vectors(part), axis=1)",
        ),
        tests="newton_ordinal",
        select="unit_of_many_rows",
    ),
    mutant(
        "newton: counts of classes without the weight of their rows",
        (NEWTON, "counts += weights @ how.counted(targets)", "counts += np.sum(how.counted(targets), axis=0)"),
        tests="newton_ordinal",
        select="weight_0",
    ),
    mutant(
        "newton: thresholds without the noise of counts",
        (NEWTON, "grounds, bound.likelihood.spread(theta))", "grounds)"),
        tests="newton_ordinal",
        select="noise_of_counts",
    ),
    mutant(
        "newton: scores of ordered classes without the gaps",
        (
            LIKELIHOODS,
            "np.c_[np.eye(len(self.theta)), self.likelihood.spread(self.theta)]",
            "np.eye(len(self.theta), self.width)",
        ),
        tests="newton_ordinal",
        select="maximum_likelihood",
    ),
]
