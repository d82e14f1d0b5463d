"""Mistakes in a privacy report, and in the record of what a fit read."""

from mutant import mutant
from paths import (
    BASE,
    CALLERS,
    GRADIENT,
    LEAKS,
    REPORT,
    RUN_FIT,
    SEARCH,
    SEARCH_PLAN,
)

FACTS, FIGURES, HTML = REPORT + "report_data.py", REPORT + "price.py", REPORT + "as_html.py"
VALUES, WORDING = REPORT + "values.py", REPORT + "sentences.py"

MUTANTS = [
    # --- figures ---
    mutant(
        "a guess without delta",
        (FIGURES, "return 1.0 - (1.0 - delta) * math.exp(-epsilon)", "return 1.0 - math.exp(-epsilon)"),
        tests="document",
        select="worst_mechanism",
    ),
    mutant(
        "the advantage of a guess in place of its chance",
        (FIGURES, "bound = min(bound, guess_at(epsilon, delta))", "bound = min(bound, guess_at(epsilon, delta) - 0.5)"),
        tests="document",
        select="exact_chance",
    ),
    mutant(
        "an epsilon that is changed by hand reported",
        (FIGURES, "if bounds is not None and epsilon < bounds[0]:", "if bounds is not None and epsilon < 0:"),
        tests="document",
        select="below_its_event",
    ),
    mutant(
        "figures rounded down",
        (WORDING, "to_digits(value, 5, up=up)", "to_digits(value, 5)"),
        tests="document",
        select="never_below",
    ),
    mutant(
        "a chance rounded to the nearest",
        (WORDING, "math.ceil(probability * 1000.0) / 10.0", "round(probability * 1000.0) / 10.0"),
        tests="document",
        select="percentages_round_up",
    ),
    mutant(
        "the price of a search reported as that of its refit",
        (SEARCH_PLAN, 'return {"choice": choice, "refit"', 'return {"choice": NoOpDpEvent(), "refit"'),
        tests="document",
        select="compose_to_the_whole_search",
    ),
    # --- what was read, and whose the noise is ---
    mutant(
        "a seed not recorded",
        (BASE, "        note_leaks(estimator, SEEDED)\n", ""),
        tests="document",
        select="seeded_noise",
    ),
    mutant(
        "the seed of a search not recorded",
        (
            SEARCH,
            'root_stream(work, "split, noise and number of tries")',
            "SecretStream.from_random_state(work.random_state, type(work).__name__)",
        ),
        tests="document",
        select="seeded_noise",
    ),
    mutant(
        "classes that were read not recorded",
        (LEAKS, "    note_leaks(estimator, CLASSES_READ)\n", ""),
        tests="document",
        select="classes_that_were_read",
    ),
    mutant(
        "the record of earlier instalments lost",
        (RUN_FIT, "        if warm:  # the state depends on earlier runs too\n", "        if False:\n"),
        tests="document",
        select="instalment_continues",
    ),
    mutant(
        "a record that outlives its fit",
        (LEAKS, "else tuple(earlier)", "else (*fitted.__dict__.get('_fitted_leaks', ()), *earlier)"),
        tests="document",
        select="new_fit_starts",
    ),
    mutant(
        "a state without a record taken for a clean one",
        (LEAKS, 'fitted.__dict__.get("_fitted_leaks", (NOT_KEPT,))', 'fitted.__dict__.get("_fitted_leaks", ())'),
        tests="document",
        select="without_a_record",
    ),
    mutant(
        "the record of a part left out of the whole",
        (LEAKS, "for part in fitted._private_parts():", "for part in []:"),
        tests="document",
        select="fitted_alone_later or classes_that_were_read",
    ),
    mutant(
        "a composition is recorded at its first fit only",
        (
            CALLERS,
            "    _mark_told(found)\n    return",
            "    elif True:\n        return ()\n    _mark_told(found)\n    return",
        ),
        tests="document",
        select="compositions_around",
    ),
    # --- what must not be shown ---
    mutant(
        "classes that were read shown as parameters",
        (FACTS, '_parameters(model, {"classes"} if read else set())', "_parameters(model, set())"),
        tests="document",
        select="best_estimator_of_a_search",
    ),
    mutant(
        "classes that were read shown",
        (
            FACTS,
            'classes = None if read else getattr(parts[-1][1], "classes_", None)',
            'classes = getattr(parts[-1][1], "classes_", None)',
        ),
        tests="document",
        select="classes_that_were_read",
    ),
    mutant(
        "a seed shown",
        (VALUES, '"n_jobs", "random_state", "seed", "verbose"', '"n_jobs", "seed", "verbose"'),
        tests="document",
        select="seed",
    ),
    mutant(
        "paths shown",
        (VALUES, '"accountant", "checkpoint", "memory", ', '"memory", '),
        tests="document",
        select="no_path",
    ),
    mutant(
        "the private number of rows kept",
        (
            GRADIENT,
            "self._fitted_before, self._fitted_n_public = plan.before, plan.n_public",
            "self._fitted_before, self._fitted_n_public = plan.before, rows.shape[0]",
        ),
        tests="document",
        select="neighbouring or number_of_rows",
    ),
    # --- names ---
    mutant(
        "names not escaped",
        (HTML, "return html.escape(one_line(text))", "return one_line(text)"),
        tests="report_forms",
    ),
    mutant(
        "line breaks left in names",
        (VALUES, 'words = " ".join(str(text).split())', "words = str(text)"),
        (VALUES, "each if each.isprintable() else", "each if each.isprintable() or each.isspace() else"),
        tests="report_forms",
    ),
    mutant(
        "invisible characters left in names",
        (VALUES, "each if each.isprintable() else each", "each if True else each"),
        tests="report_forms",
    ),
    mutant(
        "JSON that can end a script",
        (REPORT + "document.py", 'for each in "<>&":', 'for each in "":'),
        tests="report_forms",
    ),
]
