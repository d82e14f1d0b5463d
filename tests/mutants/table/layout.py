"""Mistakes in who imports whom."""

from mutant import mutant
from paths import CACHING, KERNEL, METHODS

MUTANTS = [
    mutant(
        "a kernel that calls one in another file",
        (KERNEL, "import njit\n", "import njit\nfrom skdp._kernels.bits import BLOCK\n"),
        tests="linear_kernels",
        select="stand_alone",
    ),
    mutant(
        "accounting that leans on the top floor",
        (METHODS, "import sys\n", "import sys\nfrom skdp.exceptions import BudgetExceededError\nimport numba\n"),
        tests="layers",
    ),
    mutant(
        "machine code from a folder of another user",
        (CACHING, "        and found.st_uid in (0, os.getuid())\n", ""),
        tests="caching",
        select="another_user",
    ),
    mutant(
        "machine code from a folder that others can write to",
        (CACHING, "(not others_write or (", "(True or ("),
        tests="caching",
        select="private",
    ),
    mutant(
        "machine code from a folder that others can enter",
        (CACHING, "if not others and is_private(folder)", "if is_private(folder)"),
        tests="caching",
        select="others_can_enter",
    ),
    mutant(
        "machine code from a folder that others can replace",
        (CACHING, " and all(_is_ours(str(above), may_be_sticky=True) for above in Path(path).parents)", ""),
        tests="caching",
        select="private or replace",
    ),
    mutant(
        "machine code from a cache directory that others can write to",
        (CACHING, "if _enable(kernel) and _is_trusted(kernel):", "if _enable(kernel):"),
        tests="caching",
        select="home",
    ),
    mutant(
        "no kernel where Numba can write nowhere",
        (CACHING, "        except RuntimeError:", "        except ZeroDivisionError:"),
        tests="caching",
        select="home",
    ),
]
