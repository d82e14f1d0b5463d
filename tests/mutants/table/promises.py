"""Mistakes in the checks of private estimators, and in what reads files that anybody may have written."""

from mutant import mutant
from paths import (
    ARCHIVES,
    AUDIT_PARTS,
    CHECKPOINT,
    FUNCTIONS,
    MANY_RUNS,
    ONE_RUN,
    REPLAY,
    REPORT_DOCUMENT,
    SCHEMA_YAML,
    SERIAL,
    TAPE,
    TESTED_CHARGES,
    TESTED_COPIES,
    TESTED_REFUSALS,
    TESTED_RELEASES,
)

MUTANTS = [
    mutant(
        "a check that lets a sealed table be read",
        (TESTED_CHARGES, "not X.was_read and not", "True or not"),
        (TESTED_CHARGES, "isinstance(error, BudgetExceededError)", "True"),
        tests="private_checks",
        select="ReadsBefore",
    ),
    mutant(
        "a check that takes any price for that of the releases",
        (TESTED_CHARGES, "cost <= fitted.model.epsilon_ *", "cost <= 9.0 * fitted.model.epsilon_ *"),
        tests="private_checks",
        select="ReleasesWithLess or ReleasesTwice",
    ),
    mutant(
        "a check that looks for no cell in a message",
        (TESTED_REFUSALS, "any(each in shown for each in SHOWN)", "False"),
        tests="private_checks",
        select="LeaksACell",
    ),
    mutant(
        "a check that lets a row move a release by any amount",
        (
            TESTED_RELEASES,
            'far <= 2.0 * (1.0 + RELATIVE_ERROR),\n        f"{what} moves',
            'far > -1.0,\n        f"{what} moves',
        ),
        tests="private_checks",
        select="ClipsNothing",
    ),
    mutant(
        "a check that lets a far row be refused",
        (TESTED_RELEASES, "what in MAY_BE_REFUSED,", "True,"),
        tests="private_checks",
        select="RefusesFarRows",
    ),
    mutant(
        "a check that counts no charge of a copy",
        (TESTED_COPIES, "error is not None or charged == 1", "True"),
        tests="private_checks",
        select="LosesItsLedger",
    ),
    mutant(
        "the size that an array says it has believed",
        (ARCHIVES, " or math.prod(shape) * dtype.itemsize != size - file.tell()", ""),
        (ARCHIVES, "return np.frombuffer(bytearray(file.read()), dtype)", "return np.zeros(math.prod(shape), dtype)"),
        tests="hostile_files",
        select="says_it_is_large or says",
    ),
    mutant(
        "a checkpoint of any shapes resumed from",
        (CHECKPOINT, "if expected != [(np.shape", "if False and expected != [(np.shape"),
        tests="hostile_files",
        select="other_shapes",
    ),
    mutant(
        "aliases of aliases in a schema",
        (SCHEMA_YAML, "if is_alias and self.n_anchors:", "if False:"),
        tests="hostile_files",
        select="aliases",
    ),
    mutant(
        "a log of lists in lists",
        (SERIAL, "(TypeError, ValueError, RecursionError)", "(TypeError, ValueError)"),
        tests="hostile_files",
        select="ledger",
    ),
    mutant(
        "a report that lacks facts read",
        (REPORT_DOCUMENT, "str(report), report.to_html()", "report"),
        tests="hostile_files",
        select="report",
    ),
    # --- what an audit hears and prices ---
    mutant(
        "counts priced by the sum of moves",
        (REPLAY, "[math.inf if each.norm_order == 1", "[1 if each.norm_order == 1"),
        tests="audit",
        select="bound_of_counts",
    ),
    mutant(
        "counts of a lot priced as those of all rows",
        (REPLAY, "+ _ROUNDING) if rate == 1.0 else 0", "+ _ROUNDING)"),
        tests="audit",
        select="counts_of_a_lot",
    ),
    mutant(
        "discrete noise not forced",
        (
            TAPE,
            "if self._forced is not None and len",
            "if mechanism.norm_order == 2 and self._forced is not None and len",
        ),
        tests="audit",
        select="forced_release",
    ),
    mutant(
        "scores of a hidden number of tries priced as one part",
        (AUDIT_PARTS, "alone=hidden", "alone=False"),
        tests="audit",
        select="each_score_of_a_hidden",
    ),
    mutant(
        "counts that repeat looked at in the same places",
        (TAPE, "[*self.place, *self.noisy.tobytes()]", "[*self.noisy.tobytes()]"),
        tests="audit",
        select="counts_that_repeat",
    ),
    mutant(
        "guesses of one run judged as if all of the level were for each",
        (ONE_RUN, "(1.0 - confidence) / len(guesses)", "1.0 - confidence"),
        tests="audit",
        select="level_of_one_run",
    ),
    mutant(
        "a score judged by the fits that it was learned from",
        (
            FUNCTIONS,
            "model.decision_function(without[n:]), model.decision_function(with_[n:])",
            "model.decision_function(without[:n]), model.decision_function(with_[:n])",
        ),
        tests="functions",
        select="not_judged",
    ),
    mutant(
        "a perfect threshold is a sure one",
        (MANY_RUNS, "float(stats.beta.isf(level, k + 1, n - k))", "k / n"),
        tests="audit",
        select="no_wrong_guess",
    ),
]
