"""Mistakes with units of rows that are not in memory."""

from mutant import mutant
from paths import (
    CONDUCTOR,
    GRADIENT,
    GRAM,
    LINEAR_RECIPE,
    OFFSET,
    PARTITIONS,
    PCA,
    ROW_BLOCKS,
    ROWS_OF_DASK,
    RUN_FIT,
    STREAMED,
    UNIT_LAYOUT,
    UNIT_RUNS,
)

MOVES = "moves_no_release or exchanged_unit"
AS_IN_MEMORY = "in_memory or equal_array or change_no_bit"

MUTANTS = [
    mutant(
        "units elsewhere: a unit that blocks cut is clipped part by part",
        (STREAMED, "    if units.ends:\n        add_clipped", "    if units.head:\n        add_clipped"),
        tests="streamed_units",
        select=f"{MOVES} or {AS_IN_MEMORY}",
    ),
    mutant(
        "units elsewhere: a unit that blocks cut is not clipped",
        (STREAMED, "        add_clipped(total, cut, max_norm)\n", "        total += cut\n"),
        tests="streamed_units",
        select=MOVES,
    ),
    mutant(
        "units elsewhere: a unit that blocks cut is left out",
        (STREAMED, "        add_clipped(total, cut, max_norm)\n", "        pass\n"),
        tests="streamed_units",
        select=AS_IN_MEMORY,
    ),
    mutant(
        "units elsewhere: a unit that blocks cut is in every lot",
        (STREAMED, "if units.head and (lot is None or _holds(lot, units.first - 1)):", "if units.head:"),
        tests="streamed_units",
        select="drawn_in_memory",
    ),
    mutant(
        "units elsewhere: what blocks cut of a unit is added to the next one",
        (STREAMED, "        cut[:] = 0.0\n", "        pass\n"),
        tests="streamed_units",
        select=f"{MOVES} or {AS_IN_MEMORY}",
    ),
    mutant(
        "units elsewhere: sums of a unit that blocks cut are not clipped",
        (ROW_BLOCKS, "                        cut.clip()\n", ""),
        tests="streamed_units",
        select=MOVES,
    ),
    mutant(
        "units elsewhere: sums of a unit are clipped in each block",
        (ROW_BLOCKS, "                    if units.ends:\n", "                    if True:\n"),
        tests="streamed_units",
        select="exchanged_unit or moves_no_release or sums_equal",
    ),
    mutant(
        "units elsewhere: sums of whole units by row",
        (ROW_BLOCKS, "total.add(*whole, units=units.whole)", "total.add(*whole)"),
        tests="streamed_units",
        select=MOVES,
    ),
    mutant(
        "units elsewhere: means of predictions of a unit that blocks cut are twice as long",
        (
            OFFSET,
            "share_of_sum(self.total, self._means.sensitivity)",
            "share_of_sum(0.5 * self.total, self._means.sensitivity)",
        ),
        tests="streamed_units",
        select=MOVES,
    ),
    mutant(
        "units elsewhere: moments of a unit that blocks cut are longer than those of a row",
        (
            GRAM,
            "share_of_sum(self.rounding * self.isometric, math.hypot",
            "share_of_sum(self.isometric, 2 * math.hypot",
        ),
        tests="streamed_units",
        select=MOVES,
    ),
    mutant(
        "units elsewhere: components by row",
        (PCA, "if weights.are_given or self._unit() == GROUP:", "if weights.are_given:"),
        tests="streamed_units dask_units",
        select=MOVES,
    ),
    mutant(
        "units elsewhere: columns that know no units",
        (LINEAR_RECIPE, "source.n_units is not None or ", ""),
        tests="streamed_units",
        select="in_memory",
    ),
    mutant(
        "units elsewhere: rows are drawn, and not units",
        (
            STREAMED,
            "sampling.rows(self.n_rows if self._runs is None else self._runs.n_units, stream)",
            "sampling.rows(self.n_rows, stream)",
        ),
        tests="streamed_units",
        select="drawn_in_memory",
    ),
    mutant(
        "units elsewhere: which units are drawn depends on how many rows they have",
        (UNIT_LAYOUT, 'return None if lot is None else np.sort(self.place[lot], kind="stable")', "return lot"),
        tests="unit_layout streamed_units",
        select="depend_on_their_rows or moves_no_release",
    ),
    mutant(
        "units elsewhere: a later run of a unit is trusted",
        (UNIT_RUNS, "        if self.hashes.repeat():\n", "        if False:\n"),
        tests="unit_runs streamed_units",
        select="two_runs or refusal_of_data",
    ),
    mutant(
        "units elsewhere: a later run of labels in memory is trusted",
        (UNIT_RUNS, "    if len(np.unique(labels[starts])) < len(starts):\n", "    if False:\n"),
        tests="unit_runs streamed_units",
        select="two_runs or refusal_of_data",
    ),
    mutant(
        "units elsewhere: hashes on disk are compared within their pieces alone",
        (
            UNIT_RUNS,
            "            found = np.sort(np.concatenate(pieces))\n            if (found[1:] == found[:-1]).any():",
            "            if any((each[1:] == each[:-1]).any() for each in pieces):",
        ),
        tests="unit_runs",
        select="two_runs or in_pieces",
    ),
    mutant(
        "units elsewhere: a label that goes on in the next part begins a run",
        (UNIT_RUNS, "goes_on = texts[0] == self._last", "goes_on = False"),
        tests="unit_runs",
        select="label_changes",
    ),
    mutant(
        "units elsewhere: a part whose first label is new has it not hashed",
        (UNIT_RUNS, "goes_on = texts[0] == self._last", "goes_on = self._last is not None"),
        tests="unit_runs",
        select="label_changes or two_runs",
    ),
    mutant(
        "units elsewhere: one key for the hashes of all passes",
        (UNIT_RUNS, "self.key = secrets.token_bytes(32)", "self.key = bytes(32)"),
        tests="unit_runs",
        select="no_other_pass",
    ),
    mutant(
        "units elsewhere: labels are read after the charge",
        (
            CONDUCTOR,
            "            units: Units | CountedUnits = X.find_units()\n",
            "            units: Units | CountedUnits = CountedUnits(X.n_rows)\n",
        ),
        (
            STREAMED,
            "self.n_rows, self._runs = source.n_rows, source.runs",
            "self.n_rows = source.n_rows\n        source.find_units()\n        self._runs = source.runs",
        ),
        tests="streamed_units",
        select="precedes_the_charge or refusal_of_data",
    ),
    mutant(
        "units elsewhere: refused labels are not on the ledger",
        (
            CONDUCTOR,
            "    with (payment or work._payment()).recording_refusals():\n        if isinstance",
            "    if True:\n        if isinstance",
        ),
        tests="streamed_units",
        select="refusal_of_data",
    ),
    mutant(
        "units elsewhere: the number of rows as that of units",
        (RUN_FIT, "shape = shape if self.units is None else (self.units.n_units, shape[1])", "pass"),
        tests="streamed_units",
        select="rules_take",
    ),
    mutant(
        "units elsewhere: a file of a run that knows no unit",
        (GRADIENT, '            "unit": [self._unit(), self.__dict__.get("_fitted_group_name", "")],\n', ""),
        tests="streamed_units",
        select="file_of_a_run",
    ),
    mutant(
        "units elsewhere: a file of a run that knows no name of labels",
        (GRADIENT, '"unit": [self._unit(), self.__dict__.get("_fitted_group_name", "")]', '"unit": [self._unit()]'),
        tests="streamed_units",
        select="file_of_a_run",
    ),
    mutant(
        "units elsewhere: a unit in two partitions",
        (ROWS_OF_DASK, "        if hashes.repeat():\n", "        if False:\n"),
        tests="dask_units",
        select="two_partitions",
    ),
    mutant(
        "units elsewhere: rows of partitions are drawn, and not units",
        (
            PARTITIONS,
            "rows if self._layout is None else self._layout.numbers_of(rows)",
            "lot.rows(self.n_rows)",
        ),
        tests="dask_units",
        select="lots_are",
    ),
    mutant(
        "units elsewhere: labels of a partition that changed are bound",
        (PARTITIONS, "digest_of(found) == self.digest", "True"),
        tests="dask_units",
        select="labels_that_change",
    ),
    mutant(
        "units elsewhere: dates in categories are compared by what each partition writes",
        (PARTITIONS, 'in "mM" and kind == "category"', 'in "mM" and False'),
        tests="dask_units",
        select="dates_in_categories",
    ),
    mutant(
        "units elsewhere: partitions add up rows",
        (PARTITIONS, '**({} if units is None else {"units": units})', "**{}"),
        tests="dask_units",
        select="moves_no_release",
    ),
    mutant(
        "units elsewhere: partitions are bound by row",
        (
            PARTITIONS,
            "    return BoundPartition(recipe, rows, labels, weights, units)\n",
            "    return BoundPartition(recipe, rows, labels, weights)\n",
        ),
        tests="dask_units",
        select="moves_no_release",
    ),
]
