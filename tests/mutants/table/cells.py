"""Mistakes by which one cell decides how another one is read."""

from mutant import mutant
from paths import ARITHMETIC, CELLS, COLUMNS, IMAGE_BASE, INPUT, NORMS, PIPELINE, PUBLIC, READINGS

MUTANTS = [
    mutant(
        "numbers without their fractions are keys",
        (COLUMNS, "if np.array_equal(levels, values):", "if True:"),
        tests="cells",
        select="sorting",
    ),
    mutant(
        "NumPy chooses one type for the cells of a list",
        (CELLS, "else _array_of_cells(given)", "else np.asarray(given)"),
        tests="cells",
        select="changes or gap_in_a_list",
    ),
    mutant(
        "whole numbers beside floats are floats",
        (CELLS, "if kinds == {float}:", "if kinds <= {float, int}:"),
        tests="cells",
        select="label",
    ),
    mutant(
        "truth values are whole numbers",
        (CELLS, "if kinds == {int} else None", "if kinds <= {int, bool} else None"),
        tests="cells",
        select="no_cell",
    ),
    mutant(
        "arrays of several types beside each other are one",
        (CELLS, "len({np.asarray(each).dtype for each in given}) == 1", "given"),
        tests="cells",
        select="no_cell",
    ),
    mutant(
        "moments in an array among lists become integers",
        (CELLS, "return list(values) if values.ndim == 1 else", "return values.tolist() if values.ndim == 1 else"),
        tests="cells",
        select="no_cell",
    ),
    mutant(
        "labels beyond 2**53 are compared as floats",
        (INPUT, "if _are_compared_exactly(y, classes) else", "if True else"),
        tests="cells",
        select="label",
    ),
    mutant(
        "a label that is a float makes floats of all",
        (INPUT, "alike = typed_cells(cells, types)\n    return _as", "alike = np.asarray(cells)\n    return _as"),
        tests="cells",
        select="label",
    ),
    mutant(
        "spans of Python keep what those of NumPy lose",
        (READINGS, "return span.days + (span.seconds * 1_000_000 + span.microseconds) / MICROSECONDS",
         "return span / datetime.timedelta(days=1)"),
        tests="cells",
        select="python_are_read",
    ),
    mutant(
        "spans are text where cells are objects",
        (READINGS, "return _number_key(_days_of_span(cell))", "return str(cell)"),
        tests="cells",
        select="alike",
    ),
    mutant(
        "spans that NumPy calls equal share a reading",
        (COLUMNS, "    object, np.void, np.datetime64, np.timedelta64\n", "    object, np.void\n"),
        tests="cells",
        select="no_cell",
    ),
    mutant(
        "a search makes an array of a list",
        (NORMS, 'np.asarray(X) if hasattr(X, "__array__") else list(X)', "np.asarray(X)"),
        tests="cells",
        select="moves_a_fit",
    ),
    mutant(
        "settings of NumPy's arithmetic reach what reads rows",
        (ARITHMETIC, 'with np.errstate(all="ignore"):', "with np.errstate():"),
        tests="replay private_checks",
        select="settings_of_arithmetic",
    ),
    mutant(
        "a list goes to public steps, which choose a type",
        (PUBLIC, 'if types is None and len(shape_of("X", X)) != 1:', "if False:"),
        tests="cells",
        select="public_steps",
    ),
    mutant(
        "public steps of a pipeline keep the caller's arithmetic",
        (PIPELINE, "available_if(method.check)(silent_arithmetic(run))", "available_if(method.check)(run)"),
        tests="replay",
        select="by_public_steps",
    ),
    mutant(
        "a pixel of a list makes all of them floats",
        (IMAGE_BASE, "table.astype(np.uint8, copy=False) if len(types) == 1 else table", "table.astype(np.float64)"),
        tests="scattering",
        select="another_type or in_lists",
    ),
]  # fmt: skip
