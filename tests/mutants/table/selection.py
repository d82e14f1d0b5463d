"""Mistakes in the price of a private selection."""

from mutant import mutant
from paths import (
    AVERAGING,
    CALIBRATION,
    COMPOSITION,
    CURVES,
    DIRECTIONS,
    GRID,
    MLP,
    PROFILES,
    RENYI,
    RENYI_EVENTS,
    RENYI_SAMPLED,
    REPEATS,
    RESOLUTION,
    STRONG,
    UPDATES,
)

MUTANTS = [
    mutant(
        "selection that shifts the profile by half of what it must",
        (PROFILES, "x = np.exp(-width * np.arange(count + 1))", "x = np.exp(-0.5 * width * np.arange(count + 1))"),
        tests="accounting_selection",
        select="exact_law or reveals",
    ),
    mutant(
        "selection priced as if every order of scores were harmless",
        (PROFILES, "low = np.where(coarse, b[1], b - lift)", "low = np.where(coarse, a, a)"),
        tests="accounting_selection",
        select="exact_law or reveals or published",
    ),
    mutant(
        "expected number of tries left out of the profile",
        (PROFILES, "jumps = _jumps(lines, width, count, tries.mean)", "jumps = _jumps(lines, width, count, 1.0)"),
        (PROFILES, '"valid") * _SAFE', '"valid") * (_SAFE / tries.mean)'),
        tests="accounting_selection",
        select="exact_law or reveals or published",
    ),
    mutant(
        "shape of the number of tries off by one",
        (REPEATS, "** -(self.shape + 1.0)", "** -(self.shape + 0.0)"),
        tests="accounting_selection",
        select="one_law or exact_law",
    ),
    mutant(
        "a tail of the number of tries cut off",
        (REPEATS, "_DEEPEST = 100.0", "_DEEPEST = 10.0"),
        tests="accounting_selection",
        select="invert",
    ),
    mutant(
        "no try where there is no chance of none",
        (
            REPEATS,
            'np.searchsorted(below, value / (1 << bits), side="right")',
            "np.searchsorted(below, value / (1 << bits))",
        ),
        tests="accounting_selection",
        select="invert",
    ),
    mutant(
        "expected number of tries left out of the Rényi price",
        (
            RENYI,
            "_worst(runs, alpha, replace_one) + math.log(tries.mean) / (alpha - 1.0) + added",
            "_worst(runs, alpha, replace_one) + added",
        ),
        tests="accounting_selection",
        select="all_its_parts",
    ),
    mutant(
        "a replaced record of a sampled step priced as a removed one, by Rényi",
        (
            RENYI,
            "log_moment(alpha, q, noise_multiplier, replace_one=replace_one)",
            "log_moment(alpha, q, noise_multiplier)",
        ),
        tests="accounting_rdp",
        select="replaced_record",
    ),
    mutant(
        "a replaced record of a sampled step leaves its place empty",
        (RENYI_SAMPLED, "loss, log_q = loss - mirrored, log_q + mirrored", "loss, log_q = loss, log_q"),
        tests="accounting_rdp",
        select="replaced_record",
    ),
    mutant(
        "delta read below the window of the grid",
        (GRID, "    if epsilon < found.floor:\n        return 1.0\n", ""),
        tests="accounting_limits",
        select="window or at_the_cap",
    ),
    mutant(
        "deltas of a try read below the window of the grid",
        (GRID, "np.where(epsilons < found.floor, 1.0, result)", "result"),
        tests="accounting_limits",
        select="window or at_the_cap",
    ),
    mutant(
        "nested counts without a cap",
        (COMPOSITION, "            _check_count(node, found[node])\n", ""),
        tests="accounting_limits",
        select="nested",
    ),
    mutant(
        "a tiny bounded loss on a grid as fine as itself",
        (RESOLUTION, "if len(sizes) == 1 and allowed < max(sizes):", "if len(sizes) == 1:"),
        tests="accounting_limits",
        select="tiny_loss and base0",
    ),
    mutant(
        "a budget out of reach is looked for all the same",
        (
            CALIBRATION,
            "        if price(place) <= epsilon:",
            "        if price(place) < math.inf:",
        ),
        tests="accounting_calibration",
        select="out_of_reach or unreachable",
    ),
    mutant(
        "a calibration returns what was not seen to fit",
        (CALIBRATION, "    return _in_reach(price, epsilon, (most,), refusal)", "    return min(parameter, most)"),
        tests="accounting_calibration",
        select="seen_to_fit",
    ),
    mutant(
        "a calibration looks at the end of the range alone",
        (CALIBRATION, "_TRIED = (MOST_NOISE, 1e5, 1e3, 1e2)", "_TRIED = (MOST_NOISE,)"),
        tests="accounting_calibration",
        select="loose_at_the_end",
    ),
    mutant(
        "a short profile is moved as far as the law of the number of tries allows",
        (PROFILES, "min(shift, largest + rounding) * _SAFE", "shift * _SAFE"),
        tests="accounting_selection",
        select="vanish or short_profile",
    ),
    mutant(
        "Rényi divergences not rounded up",
        (RENYI, "_UP = 1.0 + 1e-11", "_UP = 1.0 - 1e-15"),
        tests="accounting_rounding",
        select="divergences",
    ),
    mutant(
        "repeated randomised response not rounded up",
        (STRONG, "_ROUNDING = 1e-9", "_ROUNDING = -1e-9"),
        tests="accounting_rounding",
        select="randomised_response",
    ),
    mutant(
        "differences of a fixed-size sample without the bound of high powers",
        (RENYI_EVENTS, "bounds = math.log(2.0) + 0.5 * j", "bounds = -700.0 + 0.5 * j"),
        tests="accounting_rounding accounting_rdp",
        select="fixed_size_bounds or without_replacement",
    ),
    mutant(
        "the mildest candidate priced instead of the worst",
        (
            DIRECTIONS,
            "np.max([read(grid) for _, read in curves], axis=0)",
            "np.min([read(grid) for _, read in curves], axis=0)",
        ),
        tests="accounting_selection",
        select="worst_of",
    ),
    mutant(
        "the mildest candidate priced instead of the worst, by Rényi",
        (
            RENYI,
            "return max(rdp(run, alpha, replace_one=replace_one) for run in runs)",
            "return min(rdp(run, alpha, replace_one=replace_one) for run in runs)",
        ),
        tests="accounting_selection",
        select="worst_of",
    ),
    mutant(
        "looks at a try without a bound on their work",
        (CURVES, "min(WORK, max(work // (steps * len(directed)), _LEAST_LOOK))", "WORK"),
        tests="accounting_limits",
        select="work_and_the_memory",
    ),
    mutant(
        "one direction of a try's profile",
        (CURVES, "result: Floats = np.max(lowest, axis=0)", "result: Floats = np.min(lowest, axis=0)"),
        tests="accounting_selection",
        select="direction or one_try",
    ),
    mutant(
        "a pair without the lower half of its losses",
        (PROFILES, "np.exp(-loss[start:]) * mass", "np.exp(-loss[start:]) * mass * 1e-9"),
        tests="accounting_selection",
        select="pair_is_a_distribution",
    ),
    mutant(
        "an instalment interrupted at once forgets those before it",
        (AVERAGING, "        return mean if weight else theta", "        return mean"),
        tests="neural_network",
    ),
    mutant(
        "the noise's variance taken off Adam's second moment without the clip in it",
        (MLP, "noise_variance = (plan.mechanism.standard_deviation /", "noise_variance = (plan.noise_multiplier /"),
        tests="neural_network",
        select="adam",
    ),
    mutant(
        "the floor of the second moment left out",
        (UPDATES, "np.sqrt(max(v * unbias_2 - noise, floor))", "np.sqrt(abs(v * unbias_2 - noise))"),
        tests="optimizers",
    ),
    mutant(
        "the first moment left biased",
        (UPDATES, "rate * (m * unbias_1) / spread", "rate * m / spread"),
        tests="optimizers",
    ),
]
