"""Mistakes with rows that repeat: how they are found, counted, drawn and added up, and what tells of them."""

from mutant import mutant
from paths import (
    BINOMIAL,
    GROUPED,
    GROUPING_KERNEL,
    GROUPS,
    KERNEL,
    MLP,
    ONE_HOT,
    RECIPE,
    SAMPLING,
    SPANS,
    TRAINING,
    WORDING,
)

ONE_COPY = "one_copy_less"
PAIRS = "differ_in_one_thing"

MUTANTS = [
    mutant(
        "counts that multiply gradients before the clip",
        (
            KERNEL,
            "    residuals(several, z, label, weight, scale, length, max_norm, icpt, feature_part, icpt_part)\n"
            "    if counts is not None:\n        _repeat(counts, feature_part, icpt_part)\n"
            "    if units is not None:\n        _clip_units(units, low, low + m, z, length,",
            "    if counts is not None:\n        _repeat(counts, length.reshape(1, -1), weight.reshape(1, -1))\n"
            "    residuals(several, z, label, weight, scale, length, max_norm, icpt, feature_part, icpt_part)\n"
            "    if units is not None:\n        _clip_units(units, low, low + m, z, length,",
        ),
        tests="grouped",
        select="full_batch_has_the_sum",
    ),
    mutant(
        "counts of rows stored by columns that are left out",
        (
            KERNEL,
            "            _repeat(counts[low:high], feature_part, icpt_part)\n",
            "            pass\n",
        ),
        tests="grouped",
        select="full_batch_has_the_sum",
    ),
    mutant(
        "counts of one-hot rows that are cut at 1",
        (
            ONE_HOT,
            "                    residuals *= counts[chosen]\n",
            "                    residuals *= np.minimum(counts[chosen], 1.0)\n",
        ),
        tests="grouped",
        select=ONE_COPY,
    ),
    mutant(
        "a clip that grows with the largest count",
        (GROUPED, "numbers, max_norm, counts\n", "numbers, max_norm * counts.max(initial=1.0), counts\n"),
        tests="grouped",
        select=ONE_COPY,
    ),
    mutant(
        "counts that a network forgets",
        (SPANS, "deltas[k][i, j] *= counts[offset + i]", "deltas[k][i, j] *= 1.0"),
        tests="grouped",
        select=ONE_COPY,
    ),
    mutant(
        "counts in single precision",
        (SAMPLING, "        counts = copies.astype(np.float64)\n", "        counts = copies.astype(np.float32)\n"),
        tests="grouped",
        select=ONE_COPY,
    ),
    mutant(
        "networks that group float32 rows in single precision",
        (
            MLP,
            "        return bool(self._arithmetic(dtype) != np.float64)\n",
            "        return False\n",
        ),
        tests="grouped",
        select="rounding_is_that_of_float64",
    ),
    mutant(
        "a divisor of the number of groups",
        (
            TRAINING,
            "            gradient /= plan.expected_lot_size\n",
            '            gradient /= len(getattr(model, "_copies", range(int(plan.expected_lot_size))))\n',
        ),
        tests="grouped",
        select="noise_and_divisor",
    ),
    mutant(
        "the number of groups as that of rows",
        (GROUPED, "        self.n_rows = int(copies.sum())\n", "        self.n_rows = len(copies)\n"),
        tests="grouped",
        select="full_batch_has_the_sum",
    ),
    mutant(
        "rows of different weights in one group",
        (GROUPS, "for each in (values, weights) if", "for each in (values,) if"),
        tests="groups",
        select=PAIRS,
    ),
    mutant(
        "rows of different labels in one group",
        (GROUPS, "for each in (values, weights) if", "for each in (weights,) if"),
        tests="groups",
        select=PAIRS,
    ),
    mutant(
        "rows compared by their hash alone",
        (GROUPING_KERNEL, "    return difference == 0\n", "    return True\n"),
        (GROUPING_KERNEL, "    return np.uint32(total >> np.uint64(32))\n", "    return np.uint32(words[0])\n"),
        tests="groups",
        select=PAIRS,
    ),
    mutant(
        "rows compared but for their last words",
        (GROUPING_KERNEL, "in range(np.uint64(stop - start)):", "in range(np.uint64(stop - start - 5)):"),
        (
            GROUPING_KERNEL,
            "    for j in range(len(words)):\n        total",
            "    for j in range(len(words) - 5):\n        total",
        ),
        tests="groups",
        select="differ_in_one_thing and column",
    ),
    mutant(
        "sparse rows without any entry that end the fit",
        (GROUPS, "len(values), width)", "len(values), -1)"),
        tests="groups",
        select="no_entry",
    ),
    mutant(
        "sparse rows without their length",
        (GROUPING_KERNEL, "        packed[place] = high - low\n", "        packed[place] = 0\n"),
        (GROUPING_KERNEL, "    if stop - start != high - low:\n        return False\n", ""),
        tests="groups",
        select="begins_like",
    ),
    mutant(
        "a hash without keys",
        (
            GROUPS,
            'SecretStream.from_random_state(None, "keys of a hash").words(longest + 1)',
            "np.ones(longest + 1, np.uint64)",
        ),
        tests="groups",
        select="share_a_bucket or operating_system",
    ),
    mutant(
        "a hash whose keys follow from a seed",
        (GROUPS, "SecretStream.from_random_state(None, ", "SecretStream.from_random_state(0, "),
        tests="groups",
        select="operating_system",
    ),
    mutant(
        "a search that never gives up",
        (GROUPS, "        if state.n_groups > limit.most", "        if False and state.n_groups > limit.most"),
        tests="groups",
        select="pay or no_row_repeats",
    ),
    mutant(
        "counts of one copy more",
        (SAMPLING, "[1 << j for j in used]", "[(1 << j) + (j == 3) for j in used]"),
        tests="binomial",
        select="binomial_law or independently",
    ),
    mutant(
        "counts that forget copies beyond the largest table",
        (SAMPLING, "copies >> LARGEST_POWER))", "0 * copies))"),
        tests="binomial",
        select="binomial_law",
    ),
    mutant(
        "counts by 64 bits of a number",
        (BINOMIAL, "while high[k] < word or (high[k] == word and low[k] < lower[i]):", "while high[k] < word:"),
        tests="binomial",
        select="a_draw_is",
    ),
    mutant(
        "one number for all groups of a table",
        (BINOMIAL, "            word = upper[i]\n", "            word = upper[first_draw[t]]\n"),
        tests="binomial",
        select="independently",
    ),
    mutant(
        "lots drawn from the stream whose position is kept",
        (GROUPED, 'self._draw(stream.spawn("step", step))', "self._draw(stream)"),
        tests="grouped",
        select="streams_of_their_steps or does_not_tell",
    ),
    mutant(
        "one lot for all steps",
        (GROUPED, 'stream.spawn("step", step)', 'stream.spawn("step")'),
        tests="grouped",
        select="streams_of_their_steps",
    ),
    mutant(
        "files that tell whether rows were grouped",
        (
            RECIPE,
            "if sampling.rate < 1.0 and self.model.checkpoint is not None and self.model._is_seeded():",
            "if False:",
        ),
        tests="grouped",
        select="does_not_tell",
    ),
    mutant(
        "a number of groups that is published",
        (
            RECIPE,
            "        dtype = np.float64 if by_place else X.dtype\n",
            "        dtype = np.float64 if by_place else X.dtype\n"
            "        self.model._fitted_n_groups = len(groups.first)\n",
        ),
        tests="grouped",
        select="nothing_tells",
    ),
    mutant(
        "a report that is silent on time",
        (WORDING, '    if any(value != "False" for value in chosen):\n', "    if False:\n"),
        tests="document",
        select="time_depends_on_rows",
    ),
]
