"""Mistakes in linear models by matrix products: room for rounding, places of rows, dtypes."""

from mutant import BY_PROPERTY, mutant
from paths import KERNEL, LINEAR_MODEL, WIDE

MUTANTS = [
    mutant(
        "wide: no room for rounding in the clip",
        (WIDE, "(1.0 + u) * (1.0 + 2.0 * b * gamma) * (1.0 + 32.0 * 2.0**-53)", "1.0"),
        tests="wide_linear",
        select="rounding",
    ),
    mutant(
        "wide: room for the rounding of residuals alone",
        (WIDE, "(1.0 + 2.0 * b * gamma) * ", ""),
        tests="wide_linear",
        select="rounding",
    ),
    mutant(
        "wide: blocks longer than the room for their rounding",
        (WIDE, "b, u = self._block, 0.5", "b, u = 8, 0.5"),
        tests="wide_linear",
        select="rounding",
    ),
    mutant(
        "wide: numbers that are not normal kept",
        (KERNEL, "value if tiny <= abs(value) <= 1.0 / tiny else 0.0", "value"),
        tests="wide_linear",
        select=BY_PROPERTY,
    ),
    mutant(
        "wide: sums of blocks in the dtype of the products",
        (WIDE, "np.zeros((parts, d, self.n_outputs))", "np.zeros((parts, d, self.n_outputs), self._dtype)"),
        tests="wide_linear",
        select="rounding",
    ),
    mutant(
        "wide: facts of the first rows in the place of those of the lot",
        (KERNEL, "        row = start + i if rows is None else rows[start + i]\n", "        row = start + i\n"),
        tests="wide_linear",
    ),
    mutant(
        "wide: single precision where rows shift",
        (LINEAR_MODEL, 'np.float64 if self.adjacency == "add_remove" else dtype', "dtype"),
        tests="wide_linear",
        select="wide or moves",
    ),
    mutant(
        "wide: threads of BLAS decide on bits",
        (WIDE, "_blas().limit(limits=1)", "_blas().limit(limits=3)"),
        tests="wide_linear",
        select="thread",
    ),
]
