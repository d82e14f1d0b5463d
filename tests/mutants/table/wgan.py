"""Mistakes in generative adversarial networks, those of published code first."""

from mutant import BY_PROPERTY, mutant
from paths import CONVOLUTIONS, CRITIC, CRITIC_KERNEL, MADE_OF_NOISE, WGAN

NORMALISED = "            values[:, :-1] -= values[:, :-1].mean(axis=0)\n"
FACTOR = "        factor = bound / longest if longest > bound else 1.0\n"
SUM = "        return total\n\n    def _add_chunk"
STEPS = "        steps = DPSGDPlan(sampling, self._check_clip(), noise, n_steps, sampling.rate * n)\n"

MUTANTS = [
    mutant(
        "wgan: batch statistics in the step of the critic",
        (
            MADE_OF_NOISE,
            "            np.matmul(outputs[-1], table, out=values[:, :-1])\n",
            "            np.matmul(outputs[-1], table, out=values[:, :-1])\n" + NORMALISED,
        ),
        tests="critic",
        select="label_of_a_row",
    ),
    mutant(
        "wgan: the mean clipped, not the rows",
        (CRITIC_KERNEL, FACTOR, "        factor = 1.0\n"),
        (
            CRITIC,
            SUM,
            "        total *= min(1.0, max_norm * len(lot.rows) / max(np.linalg.norm(total), 1e-300))\n" + SUM,
        ),
        tests="critic",
        select="exchanged",
    ),
    mutant(
        "wgan: the size of the lot in the noise",
        (WGAN, STEPS, STEPS.replace(", noise, ", ", noise / (sampling.rate * n), ")),
        tests="wgan",
        select="noise_is_as_priced",
    ),
    mutant(
        "wgan: the layers clipped each by its own norm",
        (
            CRITIC_KERNEL,
            "        squares[i] += a00 * b00 + a11 * b11 + a22 * b22 + 2.0 * (a02 * b02 - a01 * b01 - a12 * b12)\n"
            "        longest = np.sqrt(a00 * b00)",
            "        squares[i] = max(\n"
            "            squares[i], a00 * b00 + a11 * b11 + a22 * b22 + 2.0 * (a02 * b02 - a01 * b01 - a12 * b12)\n"
            "        )\n"
            "        longest = np.sqrt(a00 * b00)",
        ),
        tests="critic",
        select="exchanged or no_row_is_longer",
    ),
    mutant(
        "wgan: weights clipped and gradients not, at the noise of a clip",
        (CRITIC_KERNEL, FACTOR, "        factor = 1.0\n"),
        (
            CRITIC,
            "        tables = split_tables(theta, self.critic.widths)\n        totals",
            "        tables = split_tables(np.clip(theta, -0.1, 0.1), self.critic.widths)\n        totals",
        ),
        tests="critic",
        select="exchanged",
    ),
    mutant(
        "wgan: the label of a row for what is made up for the next",
        (
            CRITIC,
            "self._codes[rows] if critic.n_classes else None",
            "np.roll(self._codes[rows], 1) if critic.n_classes else None",
        ),
        tests="critic",
        select="label_of_a_row",
    ),
    mutant(
        "wgan: sums divided by the private number of rows",
        (WGAN, STEPS, STEPS.replace("sampling.rate * n)", "sampling.rate * n_samples)")),
        tests="wgan",
        select="divided",
    ),
    mutant(
        "wgan: rows that are not finite let through",
        (CRITIC_KERNEL, "            pairs[i, 1, :d] = np.nan\n", "            pairs[i, 1, :d] = 1.0\n"),
        tests="critic",
        select="not_finite",
    ),
    mutant(
        "wgan: a norm that is not a number let through",
        (
            CRITIC_KERNEL,
            "        if not (squares[i] < np.inf and lengths[i] < np.inf and factor >= least):\n",
            "        if squares[i] == np.inf or lengths[i] == np.inf or factor < least:\n",
        ),
        tests="critic",
        select="not_finite or out_of_range or overflow",
    ),
    mutant(
        "wgan: the penalty left out of the norm",
        (CRITIC_KERNEL, "factor * factor * max(gradients[i], 0.0)\n", "0.0 * factor\n"),
        tests="critic",
        select="exchanged or no_row_is_longer",
    ),
    mutant(
        "wgan: no room for rounding",
        (CRITIC, "max_norm / self._slack, totals", "max_norm, totals"),
        tests="critic",
        select=BY_PROPERTY + " and not own_whole_norm",
    ),
    mutant(
        "wgan: products that cancel clipped by their sum alone",
        (CRITIC_KERNEL, "max(norm, np.sqrt(lengths[i]) / most)", "norm"),
        tests="critic",
        select="cancel",
    ),
    mutant(
        "wgan: single precision where rows shift",
        (WGAN, 'np.float64 if self.adjacency == "add_remove" else np.float32', "np.float32"),
        tests="wgan",
        select="rows_that_shift",
    ),
    mutant(
        "wgan: labels by exact shares",
        (WGAN, 'noisy = plan.counts.release(counts, plan.stream.spawn("counts"))', "noisy = counts"),
        tests="wgan",
        select="one_row_moves or exact_count",
    ),
    mutant(
        "wgan: counts that are not paid for",
        (WGAN, "        if not self._buys_shares():\n            return steps\n", "        return steps\n"),
        tests="wgan",
        select="price_is_that or noise_is_as_priced",
    ),
    mutant(
        "wgan: convolutions with batch statistics",
        (
            CONVOLUTIONS,
            "            scores += table[-1]\n",
            "            scores += table[-1] - scores.mean(axis=(0, 1))\n",
        ),
        tests="convolutions",
        select="exchanged",
    ),
    mutant(
        "wgan: gradients of convolutions that are not clipped",
        (
            CRITIC_KERNEL,
            "        factor = bound / norm if norm > bound else 1.0\n        if norm < np.inf",
            "        factor = 1.0\n        if norm < np.inf",
        ),
        tests="convolutions",
        select="exchanged",
    ),
    mutant(
        "wgan: images that are not finite let through",
        (CRITIC_KERNEL, "        if norm < np.inf and factor >= least:\n", "        if not norm == np.inf:\n"),
        tests="convolutions",
        select="not_finite",
    ),
    mutant(
        "wgan: a penalty of products that underflow",
        (CRITIC_KERNEL, "_SHORT = 1e-24\n", "_SHORT = 0.0\n"),
        tests="critic",
        select="underflow",
    ),
    mutant(
        "wgan: inputs of any length against factors that round",
        (CRITIC_KERNEL, "_LARGEST = 1e40 ", "_LARGEST = np.inf "),
        tests="critic",
        select="nothing_mute",
    ),
]
