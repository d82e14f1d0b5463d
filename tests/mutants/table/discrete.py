"""Mistakes in noise of whole numbers."""

from mutant import mutant
from paths import DESCRIBER, DISCRETE, DISCRETE_GAUSSIAN, TABLE_RELEASE, TAPE

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
        (
            DISCRETE,
            "kept = exp_trials(stream, below.size, _shares_of(stream, below, t))",
            "kept = np.ones(below.size, bool)",
        ),
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
    mutant(
        "discrete Gaussian noise that is Laplace noise",
        (DISCRETE_GAUSSIAN, "kept = _exp_of_fractions(stream, exponents, which)", "kept = np.ones(which.size, bool)"),
        tests="discrete_gaussian",
        select="law",
    ),
    mutant(
        "exponents of discrete Gaussian noise without their whole part",
        (DISCRETE_GAUSSIAN, "succeeded[left] = trials_before_a_failure(stream, left.size) >= wholes[which[left]]", ""),
        tests="discrete_gaussian",
        select="law or exponential",
    ),
    mutant(
        "discrete Gaussian noise drawn with another deviation than is priced",
        (
            DISCRETE_GAUSSIAN,
            "discrete_gaussian(stream, value.size, self.standard_deviation)",
            "discrete_gaussian(stream, value.size, self.noise_multiplier)",
        ),
        tests="discrete_gaussian",
        select="one_deviation",
    ),
    mutant(
        "discrete Gaussian noise of several counts priced as of one",
        (
            DISCRETE_GAUSSIAN,
            "return one if self.n_counts == 1 else SelfComposedDpEvent(one, self.n_counts)",
            "return one",
        ),
        tests="discrete_gaussian",
        select="very_pair",
    ),
    mutant(
        "comparisons with a fraction that end with 64 bits",
        (DISCRETE_GAUSSIAN, "for i in np.flatnonzero(words == bits).tolist():", "for i in []:"),
        tests="discrete_gaussian",
        select="open",
    ),
    mutant(
        "discrete noise on groups of rows",
        (DESCRIBER, "if self.noise == DISCRETE and not (groups is None and sample_weight is None):", "if False:"),
        tests="single_figures",
        select="no_counts",
    ),
    mutant(
        "discrete noise on more columns than are priced",
        (DESCRIBER, "len(there) != self._n_columns()", "len(there) < self._n_columns()"),
        tests="single_figures",
        select="not_those",
    ),
    mutant(
        "discrete noise of two columns priced as of one",
        (TABLE_RELEASE, "return [(shares.counts, n_columns),", "return [(shares.counts, 1),"),
        tests="single_figures",
        select="discrete",
    ),
    mutant(
        "a ledger that asks for discrete noise and takes any",
        ("skdp/accounting/ledger/admission.py", "if ledger.terms.family == DISCRETE and", "if False and"),
        ("skdp/accounting/ledger/balance.py", "if self.terms.family == DISCRETE and", "if False and"),
        tests="accountant",
        select="whole_numbers",
    ),
    mutant(
        "discrete noise on a sample taken for whole numbers alone",
        (
            "skdp/accounting/releases.py",
            "isinstance(each.event, DiscreteGaussianDpEvent | DiscreteLaplaceDpEvent) for",
            "True for",
        ),
        tests="accountant",
        select="whole_numbers",
    ),
    mutant(
        "discrete Gaussian noise heard as if it were normal",
        (TAPE, "if self.norm_order == 2 and not self.is_whole:", "if self.norm_order == 2:"),
        tests="audit",
        select="heard_as_normal",
    ),
    mutant(
        "discrete Gaussian noise of a replaced record priced as of one that leaves",
        (
            "skdp/accounting/dominating/pairs.py",
            "discrete_gaussian(event.standard_deviation, change *",
            "discrete_gaussian(event.standard_deviation, 1 *",
        ),
        tests="discrete_gaussian",
        select="replaced",
    ),
]
