"""Faults in evaluation, calibration, searches and audits."""

from fault import faults_of

FAULTS = faults_of(
    {
        "skdp.model_selection.table_classifier": [
            ("calibration-fit-on-held-out-rows", "TableClassifier._learn", "rows.of_units(~held)", "rows"),
            (
                "calibration-charged-as-fit-alone",
                "TableClassifier._plan.event_at",
                "WorstOfDpEvent((fitting.event(scale), counting.cost.event))",
                "fitting.event(scale)",
            ),
        ],
        "skdp.metrics.histogram_evaluation": [
            (
                "evaluation-group-not-scaled",
                "amounts_of",
                "shares * GRID // np.maximum(sums, GRID)[units.codes]",
                "shares",
            ),
            ("evaluation-replace-one-half-sensitivity", "CountedEvaluation._noise_and_cost", "math.sqrt(0.5)", "0.5"),
        ],
        "skdp.metrics.multiclass": [
            (
                "evaluation-other-classes-not-charged",
                "OneVsRestEvaluation._cells_of_row",
                "3 * (len(self.classes_) - 1)",
                "2 * (len(self.classes_) - 1)",
            ),
            ("evaluation-multilabel-charged-as-one", "MultilabelEvaluation._cells_of_row", "len(self.labels_)", "1"),
        ],
        "skdp.metrics.regression": [
            (
                "evaluation-errors-without-target-sums",
                "RegressionEvaluation._cells_of_row",
                "ERROR_PARTS + 1",
                "ERROR_PARTS",
            ),
        ],
        "skdp.model_selection.cross_validation": [
            (
                "cross-validation-folds-charged-in-parallel",
                "CrossValidation._plan.event_at",
                "[*each[:j], *each[j + 1:], counting.cost.event]",
                "[each[j], counting.cost.event]",
            ),
            (
                "cross-validation-scores-not-charged",
                "CrossValidation._plan.event_at",
                "[*each[:j], *each[j + 1:], counting.cost.event]",
                "[*each[:j], *each[j + 1:]]",
            ),
            (
                "cross-validation-group-in-several-folds",
                "CrossValidation._learn",
                "folds if fit.units is None else folds[fit.units.codes]",
                "np.resize(folds, len(rows.y))",
            ),
        ],
        "skdp.model_selection.private_split": [
            (
                "data-split-group-on-both-sides",
                "_tested_units",
                "np.array(tested, bool)[units.codes]",
                "draw_by_number(SecretStream(key), n_rows, n_tested(share, n_rows))",
            ),
        ],
        "skdp.model_selection.scores": [
            (
                "search-contributions-not-clipped",
                "PrivateScore._moves",
                "np.clip(np.where(np.isfinite(found), found, self._worst), 0.0, self.bound)",
                "np.nan_to_num(found)",
            ),
            (
                "search-score-group-not-clipped",
                "PrivateScore._sum",
                "total.add(np.ldexp(moves, -power), 1.0 if shares is None else shares, units=units)",
                "total.add(np.ldexp(moves, -power), 1.0 if shares is None else shares)",
                "units_in_compositions",
            ),
            ("table-score-half-sensitivity", "TableScore", "sensitivity = 1.0", "sensitivity = 0.5"),
        ],
        "skdp.model_selection.search": [
            (
                "search-scores-without-noise",
                "PrivateSearch._try_all",
                "mechanism.release(np.array([total for _, total in totals]), fit.spawn('scores'))",
                "[total for _, total in totals]",
            ),
        ],
        "skdp.model_selection.candidates": [
            (
                "search-refit-not-charged",
                "plan_search.event_at",
                "compose([choice, _refit_event(finals, scale, trials)])",
                "choice",
            ),
            ("search-scores-not-charged", "_tries_event", "[*trained, scored]", "trained"),
        ],
        "skdp.audit.conformance": [
            (
                "checks-charge-not-compared",
                "check_releases_cost_what_is_charged",
                "fitted.model.epsilon_ * (1.0 + checking.RELATIVE_ERROR)",
                "9.0 * fitted.model.epsilon_ * (1.0 + checking.RELATIVE_ERROR)",
            ),
        ],
    }
)
