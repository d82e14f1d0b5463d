"""Mistakes in what a display charges, reads and tells."""

from mutant import mutant
from paths import (
    DISPLAY_OF_BUDGETS,
    DISPLAY_OF_UTILITY,
    EFFECT_SCORES,
    MONOTONIC,
    STUDY,
)

MUTANTS = [
    mutant(
        "repeats of a study charged once",
        (STUDY, "SelfComposedDpEvent(fit.event(1.0), self.n_repeats)", "SelfComposedDpEvent(fit.event(1.0), 1)"),
        tests="displays",
        select="charged",
    ),
    mutant(
        "only the largest budget of a study charged",
        (STUDY, "for fit in self._fits])\n", "for fit in self._fits[-1:]])\n"),
        tests="displays",
        select="charged",
    ),
    mutant(
        "rows of a study read before its accountant is asked",
        (STUDY, "        self.event =", "        self._fits[0].check_rows(*self._rows)\n        self.event ="),
        tests="displays",
        select="ceiling",
    ),
    mutant(
        "a study priced without its adjacency",
        (STUDY, "ledger.spend(event, adjacency=adjacency)", "ledger.spend(event)"),
        tests="displays",
        select="charged",
    ),
    mutant(
        "a study rehearsed on its private rows",
        (STUDY, "self._rehearse(*self._test)", "self._rehearse(*self._rows)"),
        tests="displays",
        select="moves_what_is_released",
    ),
    mutant(
        "a study that is not rehearsed",
        (STUDY, "        self._rehearse(*self._test)\n", ""),
        tests="displays",
        select="costs_nothing",
    ),
    mutant(
        "fits of a study without its weights",
        (
            STUDY,
            "fit.run(1.0, seed, *self._rows, self._weights, self.units)",
            "fit.run(1.0, seed, *self._rows, None, self.units)",
        ),
        tests="displays",
        select="moves_what_is_released",
    ),
    mutant(
        "fits of a study for rows where it was charged for groups",
        (
            STUDY,
            "fit.run(1.0, seed, *self._rows, self._weights, self.units)",
            "fit.run(1.0, seed, *self._rows, self._weights)",
        ),
        tests="displays",
        select="moves_what_is_released",
    ),
    mutant(
        "a study for groups charged for rows",
        (STUDY, "self.adjacency, kept, unit)", "self.adjacency, kept)"),
        tests="displays",
        select="households",
    ),
    mutant(
        "weights of a study that are refused after the charge",
        (
            STUDY,
            "self._fits[0].check_rows(*self._rows, self.units, self._weights)",
            "self._fits[0].check_rows(*self._rows, self.units)",
        ),
        tests="displays",
        select="costs_nothing or told_once",
    ),
    mutant(
        "exact scores of undeclared rows not told",
        (STUDY, "    if not test_is_public:\n", "    if False:\n"),
        tests="displays",
        select="leak",
    ),
    mutant(
        "a baseline that is not told",
        (DISPLAY_OF_UTILITY, "            _study.report_baseline(baseline)\n", "            pass\n"),
        tests="displays",
        select="leak",
    ),
    mutant(
        "a private baseline outside of the total",
        (
            STUDY,
            "    if any(is_private(part) for part in (baseline, *baseline.get_params().values())):\n",
            "    if False:\n",
        ),
        tests="displays",
        select="costs_nothing",
    ),
    mutant(
        "the message of a baseline shown",
        (STUDY, "refused = type(error).__name__", "refused = str(error)"),
        tests="displays",
        select="costs_nothing",
    ),
    mutant(
        "one noise for all repeats of a seeded study",
        (STUDY, "self._seed(i, j)", "self._seed(i)"),
        tests="displays",
        select="noise_of_its_own",
    ),
    mutant(
        "a display of a budget that leaves out the earlier charges",
        (
            DISPLAY_OF_BUDGETS,
            "        if number < n_together:\n",
            "        if number < n_together and (again := PrivacyAccountant()):\n",
        ),
        tests="displays",
        select="none_is_lost",
    ),
    mutant(
        "what remains rounded up in a picture",
        (DISPLAY_OF_BUDGETS, "to_digits(float(remaining), 3)", "to_digits(float(remaining), 3, up=True)"),
        tests="displays",
        select="each_charge_added",
    ),
    mutant(
        "what was spent rounded down in a picture",
        (DISPLAY_OF_BUDGETS, "0.0), 3, up=True)", "0.0), 3)"),
        tests="displays",
        select="each_charge_added",
    ),
    mutant(
        "the total of a study rounded down in its small print",
        (DISPLAY_OF_UTILITY, "to_digits(epsilon, 3, up=True)", "to_digits(epsilon, 3)"),
        tests="displays",
        select="small_print",
    ),
    mutant(
        "the noise of an effect of trees as if leaves were not projected",
        (
            EFFECT_SCORES,
            "self._variance = noise**2 / np.repeat(1.0 - 1.0 / np.maximum(widths, 2), widths)",
            "self._variance = noise**2",
        ),
        tests="column_effects",
        select="projected",
    ),
    mutant(
        "an effect over rows of one cell for all",
        (EFFECT_SCORES, "codes[k] = np.repeat(each, _PUBLIC_ROWS)", "codes[k] = np.tile(each, _PUBLIC_ROWS)"),
        tests="column_effects",
        select="mean_score_over_public_rows",
    ),
    mutant(
        "gaps that are made monotone too",
        (MONOTONIC, "n = len(block.edges()) - 1 if block.is_line", "n = len(block.edges()) if block.is_line"),
        tests="monotonic",
        select="nothing_else_changes",
    ),
]
