"""Mistakes in private synthetic rows of classes."""

from mutant import BY_PROPERTY, mutant
from paths import ARITHMETIC, CLASS_GENERATOR, CLASS_MEASUREMENT, CLASS_MIXTURE, CLASS_ROWS, CLASS_SUMS, GENERATOR

TESTS = "class_generator generator private_checks"


def planted(name, *changes):
    return mutant(f"class mixture: {name}", *changes, tests=TESTS, select=BY_PROPERTY)


MUTANTS = [
    planted(
        "labels drawn by shares of the parameters of now",
        (GENERATOR, "n, p=self.label_shares_)", "n, p=self._chosen_shares())"),
    ),
    planted("the sensitivity of one column", (CLASS_SUMS, "return math.sqrt(d) / 2.0 *", "return 0.5 *")),
    planted(
        "the sum of weights without its sensitivity",
        (CLASS_SUMS, "1.0 if alone else math.sqrt(1.0 + COUNTED**2)", "1.0"),
    ),
    mutant(
        "class mixture: an exact sum of weights",
        (
            CLASS_MEASUREMENT,
            "n = min(max(float(noisy[d]), deviation) / row_sums.weight_in_total(d), n)",
            "n = rows.weights.sum()",
        ),
        tests="weights",
        select="toggling",
    ),
    planted(
        "the number of rows for that of groups", (CLASS_GENERATOR, "found.weights.n_units(n_samples)", "n_samples")
    ),
    mutant(
        "class mixture: means of classes by rows without weights",
        (
            CLASS_SUMS,
            "_chosen(rows.codes[where], n_classes, rows.weights[where])",
            "_chosen(rows.codes[where], n_classes, np.ones(len(part)))",
        ),
        tests="weights",
        select="weight_0_holds or toggling",
    ),
    mutant(
        "class mixture: weights that multiply rows and not their moments",
        (CLASS_SUMS, "part *= np.sqrt(rows.weights[where, None])", "part *= rows.weights[where, None]"),
        tests="class_generator",
        select="plain_reading",
    ),
    mutant(
        "class mixture: weights before the ball",
        (
            CLASS_SUMS,
            "            ball.bring_in(part, part)\n            part *= np.sqrt(rows.weights[where, None])",
            "            part *= np.sqrt(rows.weights[where, None])\n            ball.bring_in(part, part)",
        ),
        tests="class_generator",
        select="plain_reading",
    ),
    planted(
        "the sensitivity of a count of one table of two",
        (CLASS_SUMS, 'return 1.0 if adjacency == "replace_one" else math.sqrt(2.0)', "return 1.0"),
    ),
    planted(
        "an exchanged row counted once",
        (CLASS_SUMS, 'return 1.0 if adjacency == "replace_one" else', 'return 0.5 if adjacency == "replace_one" else'),
    ),
    planted(
        "class sums of rows that are not clipped",
        (CLASS_SUMS, "        ball.bring_in(part[:, :d], part)\n", "        part /= radius\n"),
    ),
    planted(
        "coordinates that are not clipped",
        (CLASS_SUMS, "        ball.bring_in(part, found[where])\n", "        found[where] = part / radius\n"),
    ),
    planted(
        "a group's sum without its count in the sensitivity",
        (CLASS_SUMS, "both = 1.0 + self.weight**2", "both = 1.0"),
    ),
    planted(
        "an exchange between groups priced as one within",
        (CLASS_SUMS, "ROUNDING * max(1.0, within) / math.sqrt(2.0)", "ROUNDING * within / math.sqrt(2.0)"),
    ),
    planted(
        "an exchange within a group priced as one between groups",
        (CLASS_SUMS, "ROUNDING * max(1.0, within) / math.sqrt(2.0)", "ROUNDING / math.sqrt(2.0)"),
    ),
    planted(
        "second moments with entries off the diagonal counted once",
        (CLASS_SUMS, "c * sums.isometric, b", "c * sums.isometric / math.sqrt(2.0), b"),
    ),
    planted(
        "coordinates that depend on the place of a row",
        (
            CLASS_ROWS,
            "        multiply(rows, self._packed, self.depth, self.width, out)\n",
            "        multiply(rows, self._packed, self.depth, self.width, out)\n"
            "        out[::2] *= out.dtype.type(1.0000005)\n",
        ),
    ),
    planted(
        "a round of k-means that is not paid for",
        (CLASS_MEASUREMENT, "[OF_ROUNDS / MEANS_ROUNDS] * MEANS_ROUNDS", "[OF_ROUNDS] * MEANS_ROUNDS"),
        (CLASS_MEASUREMENT, "1.0 - sum(first)]", "1.0 - sum(first[:5])]"),
    ),
    planted(
        "one noise for all rounds",
        (CLASS_MEASUREMENT, 'stream.spawn("k-means", t)', 'stream.spawn("k-means")'),
    ),
    planted(
        "the noise of the whole budget in each release",
        (
            CLASS_MEASUREMENT,
            "GaussianMechanism(self.noise_multiplier / math.sqrt(share), most)",
            "GaussianMechanism(self.noise_multiplier, most)",
        ),
    ),
    planted(
        "released without noise",
        (
            CLASS_MEASUREMENT,
            "return mechanism.release(vector, stream), mechanism.standard_deviation",
            "return vector, mechanism.standard_deviation",
        ),
    ),
    planted(
        "a radius from exact counts",
        (
            CLASS_MEASUREMENT,
            "        bins = np.where(noisy[n_classes:] >",
            "        noisy = exact\n        bins = np.where(noisy[n_classes:] >",
        ),
    ),
    planted(
        "exact counts of the classes",
        (CLASS_MEASUREMENT, "np.maximum(noisy[:n_classes], 0.0), deviation", "exact[:n_classes], deviation"),
    ),
    planted(
        "the number of rows of the table in the rules",
        (
            CLASS_GENERATOR,
            "return _Plan(noise, self._public_n_samples(n_samples), price",
            "return _Plan(noise, n_samples, price",
        ),
    ),
    planted(
        "warnings of NumPy that tell of a cell",
        (ARITHMETIC, 'with np.errstate(all="ignore"):', "with np.errstate():"),
        (CLASS_ROWS, '        with np.errstate(all="ignore"):  #', "        with np.errstate():  #"),
    ),
    planted(
        "a single row that is refused after the charge",
        (GENERATOR, "        if n_samples < 2:  #", "        if False:  #"),
        (
            CLASS_GENERATOR,
            "        return rows\n",
            '        if len(rows) < 2:\n            raise ValueError("1 sample, not 2 rows")\n        return rows\n',
        ),
    ),
    planted(
        "the private number of rows in a refusal",
        (CLASS_GENERATOR, "n = self._public_n_samples(found.weights", "n = (found.weights"),
    ),
    planted(
        "centers of k-means that start at rows",
        (
            CLASS_MEASUREMENT,
            "        for t, share in enumerate(shares[4:-1]):\n",
            "        centers[..., :] = points[: centers.shape[1]]\n        for t, share in enumerate(shares[4:-1]):\n",
        ),
    ),
    planted(
        "samples beyond the bounds",
        (CLASS_ROWS, "        np.clip(rows, -0.5, 0.5, out=rows)\n", ""),
        (CLASS_ROWS, "        np.clip(rows, *self._inner_bounds(rows.dtype), out=rows)\n", ""),
    ),
    planted(
        "eigenvalues of the noise are kept",
        (CLASS_MIXTURE, "values[below] = values[below].mean()", "values[below] = values[below]"),
    ),
]
