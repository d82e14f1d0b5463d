"""Mistakes in who imports whom."""

from mutant import mutant
from paths import KERNEL, METHODS

MUTANTS = [
    mutant(
        "a kernel that calls one in another file",
        (KERNEL, "from numba import njit\n", "from numba import njit\n\nfrom skdp._kernels.bits import BLOCK\n"),
        tests="linear_kernels",
        select="stand_alone",
    ),
    mutant(
        "accounting that leans on the top floor",
        (METHODS, "import sys\n", "import sys\nfrom skdp.exceptions import BudgetExceededError\nimport numba\n"),
        tests="layers",
    ),
]
