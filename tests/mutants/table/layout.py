"""Mistakes in who imports whom."""

from mutant import mutant
from paths import CACHING, KERNEL, METHODS

MUTANTS = [
    mutant(
        "a kernel that calls one in another file",
        (KERNEL, "import njit\n", "import njit\nfrom skdp._kernels.bits import BLOCK\n"),
        tests="linear",
        select="hold_the_texts",
    ),
    mutant(
        "accounting that leans on the top floor",
        (METHODS, "import sys\n", "import sys\nfrom skdp.exceptions import BudgetExceededError\nimport numba\n"),
        tests="layers",
    ),
    mutant(
        "machine code from a folder of another user",
        (CACHING, "found.st_uid in (0, os.getuid()) and not", "not"),
        tests="caching",
        select="another_user",
    ),
    mutant(
        "machine code from a folder that others can write to",
        (CACHING, " & _OTHERS_WRITE & ~ignored", " & 0"),
        tests="caching",
        select="private",
    ),
    mutant(
        "machine code from a folder that others can enter",
        (CACHING, " and not found.st_mode & _OTHERS\n", "\n"),
        tests="caching",
        select="others_can_enter",
    ),
    mutant(
        "machine code from a folder that others can replace",
        (CACHING, " and all(map(_is_kept, _way(folder)))", ""),
        tests="caching",
        select="private or replace",
    ),
    mutant(
        "machine code from a folder that was ours at the second look",
        (CACHING, " and found.st_uid == os.getuid()", ""),
        tests="caching",
        select="replaced_while",
    ),
    mutant(
        "machine code from a folder that another thread seems to have chosen",
        (CACHING, "        with _lock:", "        if _lock:"),
        tests="caching",
        select="another_thread",
    ),
    mutant(
        "machine code by way of a link of another user",
        (
            CACHING,
            "                left.append(os.path.join(os.path.dirname(path), os.readlink(path)))\n",
            "                pass\n",
        ),
        tests="caching",
        select="links",
    ),
    mutant(
        "machine code from a file that others can write to",
        (CACHING, "return is_private(place) and _files_are_closed(place)", "return is_private(place)"),
        tests="caching",
        select="files_that_others",
    ),
    mutant(
        "machine code of the package from a file that others can write to",
        (CACHING, "return _files_are_closed(place, os.stat(__file__).st_mode)", "return True"),
        tests="caching",
        select="files_that_others",
    ),
    mutant(
        "machine code from a cache directory that others can write to",
        (CACHING, "is_kept = _enable(kernel) and _is_trusted(kernel)", "is_kept = _enable(kernel)"),
        tests="caching",
        select="home",
    ),
    mutant(
        "no kernel where Numba can write nowhere",
        (CACHING, "    except (RuntimeError, OSError):", "    except ZeroDivisionError:"),
        tests="caching",
        select="home",
    ),
]
