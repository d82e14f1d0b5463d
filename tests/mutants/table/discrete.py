"""Mistakes in noise of whole numbers."""

from mutant import mutant
from paths import DISCRETE

MUTANTS = [
    mutant(
        "noise scale of counts rounded down",
        (DISCRETE, "cls(Fraction(math.ceil(exact * denominator)", "cls(Fraction(math.floor(exact * denominator)"),
        tests="discrete_laplace",
        select="rounded_up",
    ),
    mutant(
        "counts priced by a rounded scale",
        (DISCRETE, "return found if Fraction(found) >= exact else math.nextafter(found, math.inf)", "return found"),
        tests="discrete_laplace",
        select="rounded_up",
    ),
    mutant(
        "both zeros of discrete noise kept",
        (DISCRETE, "good = ~(negative & (sizes == 0))", "good = np.ones(sizes.size, bool)"),
        tests="discrete_laplace",
        select="law",
    ),
    mutant(
        "remainders of discrete noise not thinned",
        (DISCRETE, "kept = _exp_trials(stream, below, t)", "kept = np.ones(below.size, bool)"),
        tests="discrete_laplace",
        select="law",
    ),
    mutant(
        "words of discrete noise folded by their remainder",
        (DISCRETE, "missing = missing[drawn >= n]", "break"),
        (DISCRETE, "found[missing] = drawn\n", "found[missing] = drawn % n\n"),
        tests="discrete_laplace",
        select="uniform",
    ),
    mutant(
        "discrete noise of more steps than are stated",
        (DISCRETE, "if self.sensitivity % k == 0)", "if self.sensitivity >= k)"),
        tests="discrete_laplace",
        select="rounded_up or states_no_less",
    ),
]
