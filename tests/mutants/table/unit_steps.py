"""Mutants of units of several rows in steps of gradient descent, in labels and in ledgers."""

from mutant import mutant
from paths import (
    ACCOUNTANT,
    BASE,
    BOUND_ROWS,
    DENSE,
    FINDINGS,
    KERNEL,
    LABELS,
    LEDGER,
    NETWORKS,
    OFFSET,
    ONE_HOT,
    ONE_HOT_KERNEL,
    PEOPLE,
    RUN_FIT,
    TOTALS,
    UNIT_LAYOUT,
    UNIT_SHARES,
    UNITS,
)

MUTANTS = [
    mutant(
        "units: rows clipped and their sum not",
        (KERNEL, "    _repeat(factors, feature_part, icpt_part)\n", "    pass\n"),
        tests="guarantees_units",
        select="moves_no_release and linear and copies",
    ),
    mutant(
        "units: sums of units of a model of trees not clipped",
        (ONE_HOT, "residuals *= self._unit_factors(residuals, lot, units, chosen.start, max_norm)", "pass"),
        tests="guarantees_units",
        select="moves_no_release and trees and copies",
    ),
    mutant(
        "units: sums of units of a network not clipped",
        (NETWORKS, "            if lot is not None:\n", "            if False:\n"),
        tests="guarantees_units",
        select="moves_no_release and network and copies",
    ),
    mutant(
        "units: the last unit of a share of a network not clipped",
        (NETWORKS, "starts[begin : end + 1]", "starts[begin:end]"),
        tests="unit_layout",
        select="shares_of_a_chunk or sums_agree",
    ),
    mutant(
        "units: long units not clipped",
        (UNIT_LAYOUT, "if size > max_norm else found", "if False else found"),
        tests="guarantees_units",
        select="moves_no_release and copies and 1000",
    ),
    mutant(
        "units: long units left out",
        (UNIT_LAYOUT, "        add_clipped(total, sum_of(start, stop), max_norm)\n", "        pass\n"),
        tests="unit_layout",
        select="sums_agree",
    ),
    mutant(
        "units: products of pairs without the intercept",
        (
            KERNEL,
            "total = icpt * icpt\n                for c in range(X",
            "total = 0.0\n                for c in range(X",
        ),
        tests="unit_layout",
        select="moves_the_sum and linear",
    ),
    mutant(
        "units: no room for the rounding of products",
        (KERNEL, "math.sqrt(max(square, 0.0) + room * reach * reach)", "math.sqrt(max(square, 0.0)) * 0.999"),
        tests="unit_layout",
        select="moves_the_sum and linear",
    ),
    mutant(
        "units: levels of a code that are compared as one",
        (ONE_HOT_KERNEL, "if left % widths[b] == right % widths[b]:", "if left == right:"),
        tests="unit_layout",
        select="sums_agree and trees",
    ),
    mutant(
        "units: a unit split over two segments",
        (
            UNIT_LAYOUT,
            "low, high = (self.starts[np.searchsorted(self.starts, each)] for each in (begin, end))",
            "low, high = begin, end",
        ),
        tests="unit_layout",
        select="blocks_and_shares",
    ),
    mutant(
        "units: a unit split over two chunks",
        (
            UNIT_LAYOUT,
            "        while unit < last:\n"
            '            end = int(np.searchsorted(self.starts, self.starts[unit] + most, side="right")) - 1\n'
            "            end = min(max(end, unit + 1), last)\n"
            "            yield slice(int(self.starts[unit]), int(self.starts[end])), slice(unit, end)\n"
            "            unit = end\n",
            "        for low in range(start, stop, most):\n"
            "            end = min(low + most, stop)\n"
            '            unit = int(np.searchsorted(self.starts, low, side="right")) - 1\n'
            "            yield slice(low, end), slice(unit, int(np.searchsorted(self.starts, end)))\n",
        ),
        (
            NETWORKS,
            "starts, first = lot.starts[units.start : units.stop + 1], lot.first[units]",
            "starts, first = lot.starts[units.start : units.stop + 1].clip(start, chunk.stop), lot.first[units]",
        ),
        (
            ONE_HOT,
            "starts, room = lot.starts[units.start : units.stop + 1], unit_room",
            "starts, room = lot.starts[units.start : units.stop + 1].clip(low, low + residuals.shape[1]), unit_room",
        ),
        tests="unit_layout",
        select="blocks_and_shares",
    ),
    mutant(
        "units: the number of rows as that of units",
        (RUN_FIT, "shape = shape if self.units is None else (self.units.n_units, shape[1])", "pass"),
        tests="guarantees_units",
        select="price_is_that or moves_no_release",
    ),
    mutant(
        "units: rows drawn, not units",
        (
            BOUND_ROWS,
            "        return self.units.numbers_of(sampling.rows(self.units.n_units, stream))",
            "        rows = sampling.rows(self.n_rows, stream)\n"
            "        if rows is None:\n            return None\n"
            '        return np.unique(np.searchsorted(self.units.starts, rows, side="right") - 1)',
        ),
        tests="unit_layout",
        select="units_are_drawn",
    ),
    mutant(
        "units: counts of people by row",
        (PEOPLE, "    weights = clip_counts(units, cells, weights)\n", ""),
        tests="guarantees_units",
        select="moves_no_release and trees and copies",
    ),
    mutant(
        "units: sums of targets by row",
        (UNITS, "    weights = clip_vectors(units, powers, weights, SUMS_SENSITIVITY)\n", ""),
        tests="guarantees_units",
        select="moves_no_release and regressor and copies",
    ),
    mutant(
        "units: means of predictions by row",
        (OFFSET, "            sums *= shares_of_units(", "            1.0 * shares_of_units("),
        tests="guarantees_units",
        select="moves_no_release and copies",
    ),
    mutant(
        "units: shares that leave twice the norm",
        (UNIT_SHARES, "np.divide(limit, norms, out=shares", "np.divide(2 * limit, norms, out=shares"),
        tests="guarantees_units",
        select="moves_no_release and trees and copies",
    ),
    mutant(
        "units: single precision where rows shift",
        (BASE, 'self.adjacency == "add_remove" or self._unit() == GROUP)', 'self.adjacency == "add_remove")'),
        tests="guarantees_units",
        select="where_rows_shift",
    ),
    mutant(
        "units: a ledger of households that takes rows",
        (ACCOUNTANT, '        if (unit == "row") == (self.unit == "row"):\n', "        if True:\n"),
        tests="guarantees_units",
        select="another_unit",
    ),
    mutant(
        "units: a ledger of households that takes persons",
        (LEDGER, "if groups and self.groups and groups != self.groups:", "if False:"),
        tests="guarantees_units",
        select="another_column",
    ),
    mutant(
        "units: runs for rows and for units in one price",
        (RUN_FIT, "        if earlier != now:\n", "        if False:\n"),
        tests="guarantees_units",
        select="instalments or joint_price",
    ),
    mutant(
        "units: runs for households and for persons in one price",
        (RUN_FIT, "if all(names) and names[0] != names[1]:", "if False:"),
        tests="guarantees_units",
        select="two_columns",
    ),
    mutant(
        "units: prices of fits for rows and for groups added",
        (TOTALS, "len({each[1:] for each in known}) != 1", "len({each[1:3] for each in known}) != 1"),
        tests="findings",
        select="joint_price",
    ),
    mutant(
        "units: a splitter that alone knows groups is not named",
        (FINDINGS, "if splits_by_groups and not all(asked):", "if False:"),
        tests="findings units_in_compositions",
        select="splitters or say_so",
    ),
    mutant(
        "units: labels compared by their text alone",
        (LABELS, "        return _value_of(label)\n", "        return key_of(label)\n"),
        tests="units",
        select="one_unit",
    ),
    mutant(
        "units: labels of another index",
        (LABELS, "and not indexes[0].equals(indexes[1])", "and False"),
        tests="units",
        select="index",
    ),
    mutant(
        "units: labels of gaps are one unit",
        (LABELS, "    if any(key is None for key in keys):\n", "    if False:\n"),
        tests="units",
        select="bad_labels",
    ),
    mutant(
        "units: whole numbers compared as floats",
        (LABELS, "return str(int(label)) if is_whole else key_of(label)", "return key_of(label)"),
        tests="units",
        select="one_unit or changes_no_unit",
    ),
    mutant(
        "units: norms of gradients of a network without the first layer",
        (DENSE, "        if k > 0 or not are_known:\n", "        if k > 0:\n"),
        tests="unit_layout",
        select="moves_the_sum and network",
    ),
    mutant(
        "units: norms of gradients of a wide network without the first layer",
        (DENSE, "_add_known_products(squares, first, pairs, deltas[0], widths[1], starts, low, products)", "pass"),
        tests="unit_layout",
        select="moves_the_sum and network",
    ),
    mutant(
        "units: products of rows that were not clipped yet",
        (NETWORKS, "architecture.widths[0] + 1 > architecture.widths[1]", "architecture.widths[0] > 0"),
        tests="unit_layout",
        select="network",
    ),
    mutant(
        "units: products of another unit of a lot",
        (NETWORKS, "(squares, first[begin:end], self._pairs)", "(squares, first, self._pairs)"),
        tests="unit_layout",
        select="shares_of_a_chunk or (sums_agree and network)",
    ),
    mutant(
        "units: products of rows as they came, not as they are scaled",
        (DENSE, "np.float64(X[i, c] * scale[i]) * np.float64(X[j, c] * scale[j])", "np.float64(X[i, c]) * X[j, c]"),
        tests="unit_layout",
        select="network",
    ),
]
