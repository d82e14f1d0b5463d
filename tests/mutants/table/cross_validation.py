"""Mistakes in a cross-validation."""

from mutant import mutant
from paths import CROSS_VALIDATION, FOLDS

MUTANTS = [
    mutant(
        "fits to overlapping folds charged in parallel",
        (
            CROSS_VALIDATION,
            "compose([*fits[:j], *fits[j + 1 :], self._counting.event])",
            "compose([fits[j], self._counting.event])",
        ),
        tests="cross_validation",
        select="all_fits_but_one or unequal_size",
    ),
    mutant(
        "scores of a cross-validation not charged",
        (
            CROSS_VALIDATION,
            "compose([*fits[:j], *fits[j + 1 :], self._counting.event])",
            "compose([*fits[:j], *fits[j + 1 :]])",
        ),
        tests="cross_validation",
        select="all_fits_but_one",
    ),
    mutant(
        "the smallest fold left out of the price of a cross-validation",
        (CROSS_VALIDATION, "for j in range(self._cv)])\n\n    def payment", "for j in [0]])\n\n    def payment"),
        tests="cross_validation",
        select="unequal_size",
    ),
    mutant(
        "folds cut by order",
        (FOLDS, 'ranks[np.argsort(words, kind="stable")] = np.arange(n)', "ranks[:] = np.arange(n)"),
        tests="cross_validation",
        select="in_no_order",
    ),
    mutant(
        "folds of an even size where the number of rows is private",
        (FOLDS, '    if adjacency == "add_remove":\n        return ((', "    if False:\n        return (("),
        tests="cross_validation",
        select="has_a_coin",
    ),
    mutant(
        "stratified folds",
        (
            CROSS_VALIDATION,
            "            self.models = [self._fitted(j,",
            "            folds = (np.argsort(np.argsort(self._rows.y, kind='stable')) % self._cv)[: len(folds)]\n"
            "            self.models = [self._fitted(j,",
        ),
        tests="cross_validation",
        select="labels_move_nobody or the_fits_that_read_it",
    ),
    mutant(
        "a unit scored in several folds",
        (
            CROSS_VALIDATION,
            "folds if self.units is None else folds[self.units.codes]",
            "np.resize(folds, len(self._rows.y))",
        ),
        tests="cross_validation",
        select="unit",
    ),
    mutant(
        "a unit split over folds",
        (
            CROSS_VALIDATION,
            "PartRows(self._X, self._labels, weights, self.units)",
            "PartRows(self._X, self._labels, weights, self.units and Units(np.arange(n_rows), n_rows))",
        ),
        (CROSS_VALIDATION, "import ROW, take_unit", "import ROW, Units, take_unit"),
        tests="cross_validation",
        select="unit",
    ),
    mutant(
        "a fold scored by a model that has seen it",
        (CROSS_VALIDATION, "self._rows.of_units(folds != j)", "self._rows.of_units(folds >= 0)"),
        tests="cross_validation",
        select="has_not_seen or the_fits_that_read_it",
    ),
    mutant(
        "a row scored by every model, and counted as often",
        (CROSS_VALIDATION, "rows = np.flatnonzero(self._folds == fold)", "rows = np.arange(len(self._folds))"),
        tests="cross_validation",
        select="several_tables",
    ),
    mutant(
        "the price of the scores as that of a cross-validation",
        (CROSS_VALIDATION, "        self.work._set_price(Price(self.event, epsilon, self.delta))\n", ""),
        tests="cross_validation",
        select="all_fits_but_one",
    ),
]
