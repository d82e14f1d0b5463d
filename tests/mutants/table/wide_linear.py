"""Mistakes in linear models by matrix products: room for rounding, places of rows, dtypes."""

from mutant import BY_PROPERTY, mutant
from paths import (
    BLAS,
    KERNEL,
    LINEAR_RECIPE,
    MODELS,
    SPARSE_PRODUCTS,
    WIDE,
)

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
        select="not_normal",
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
        (LINEAR_RECIPE, "np.float64 if self.model._shifts_rows() else dtype", "dtype"),
        tests="wide_linear",
        select="wide or moves",
    ),
    mutant(
        "wide: threads of BLAS decide on bits",
        (BLAS, "return _at_most(1)", "return _at_most(3)"),
        tests="wide_linear",
        select="thread",
    ),
    mutant(
        "a fit that was interrupted as it left keeps BLAS to its limit",
        (BLAS, "weakref.WeakSet[_Limit] = weakref.WeakSet()", "set[_Limit] = set()"),
        tests="threads",
        select="interrupt",
    ),
    mutant(
        "one fit lifts the limit of another",
        (BLAS, "_LIMITS.discard(limit)", "_LIMITS.clear()"),
        tests="threads",
        select="limit",
    ),
    mutant(
        "wide: sparse rows of the table in the place of those of the lot",
        (
            SPARSE_PRODUCTS,
            "row, each = start + i if rows is None else rows[start + i], scores[i]",
            "row, each = start + i, scores[i]",
        ),
        tests="wide_linear",
    ),
    mutant(
        "records: facts read where the features are",
        (
            MODELS,
            "self._X, self._facts, self._first_fact = records, records, self.n_features",
            "self._X = self._facts = records",
        ),
        tests="models",
        select=BY_PROPERTY,
    ),
    mutant(
        "records: lost rows copied as they are",
        (MODELS, "records[:, : self.n_features] = self._X", "records[:, : self.n_features] = X"),
        tests="models",
        select=BY_PROPERTY,
    ),
]
