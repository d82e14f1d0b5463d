"""Inject faults, one at a time, and show that a test fails for each.

    python tests/mutants                  run all
    python tests/mutants --check          every pattern occurs exactly once and the test files exist; runs no test
    python tests/mutants --list           names, and the functions that are changed
    python tests/mutants --only NAME      one of them (may be repeated)
    python tests/mutants --sample N SEED  N of them, drawn at random
    python tests/mutants --jobs 2         two at a time
    python tests/mutants --audits         audit the faults that `audits.py` lists, instead of running tests

The faults are in `table/`, by part of the package. `places.py` has the tests of each package. A fault is made in a
copy of the project, where the tests of its package and `test_private_checks.py` run until one fails. At the end the
tests that failed run once more without any fault: one that fails then detects nothing.
"""

from __future__ import annotations

import argparse
import compileall
import concurrent.futures
import contextlib
import functools
import os
import pathlib
import queue
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import NamedTuple

from audits import CASES_OF, audited
from fault import ROOT, Fault, NotInCode, inject, test_files
from table import FAULTS

COPIED = ("skdp", "tests", "examples", "docs", "pyproject.toml", "setup.py", "README.md", "CITATION.cff")


class Outcome(NamedTuple):
    """What became of a fault: the test that detected it, or else why none did."""

    detected_by: str
    remark: str
    seconds: float


class Copies:
    """Copies of the project, each of which one thread has at a time, with their bytecode and a cache of kernels."""

    def __init__(self, place: pathlib.Path, number: int) -> None:
        self._free: queue.Queue[pathlib.Path] = queue.Queue()
        ignore = shutil.ignore_patterns("__pycache__", ".hypothesis", ".pytest_cache")
        for target in (place.resolve() / str(k) for k in range(number)):
            target.mkdir()
            for source in (ROOT / name for name in COPIED if (ROOT / name).exists()):
                if source.is_dir():
                    shutil.copytree(source, target / source.name, ignore=ignore)
                else:
                    shutil.copy2(source, target)
            compileall.compile_dir(target / "skdp", quiet=2)
            self._free.put(target)

    @contextlib.contextmanager
    def one(self) -> Iterator[pathlib.Path]:
        target = self._free.get()
        try:
            yield target
        finally:
            self._free.put(target)

    @contextlib.contextmanager
    def with_fault(self, fault: Fault) -> Iterator[tuple[pathlib.Path, dict[str, str]]]:
        """A copy with a fault, and the environment for it; the copy is as before afterwards.

        Numba's cache goes by the time at which a file was written, and the file gets its own back. Faults of kernels
        are compiled into an empty cache, since kernels of other files may have their code within.
        """
        path, text = inject(fault)
        with self.one() as target, tempfile.TemporaryDirectory() as empty:
            (target / path).write_text(text)
            try:
                yield target, environment_of(target, empty if fault.changes_kernel else "")
            finally:
                shutil.copy2(ROOT / path, target / path)


def environment_of(target: pathlib.Path, cache: str = "") -> dict[str, str]:
    return os.environ | {
        "NUMBA_CACHE_DIR": cache or str(target / "numba"),
        "PYTHONPATH": str(target),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def run_tests(target: pathlib.Path, environment: dict[str, str], tests: list[str], *options: str) -> tuple[int, str]:
    """Return pytest's return code and output."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", *options, *tests]
    done = subprocess.run(command, cwd=target, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def failures(output: str) -> list[str]:
    return re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, flags=re.MULTILINE)


def outcome_of(copies: Copies, fault: Fault) -> Outcome:
    """Run the tests of a fault until one fails."""
    started = time.perf_counter()
    with copies.with_fault(fault) as (target, environment):
        code, output = run_tests(target, environment, test_files(fault), "-x", "--tb=no")
    found = failures(output)
    remark = "not detected" if code == 0 else "" if code in (1, 2) and found else f"pytest ended with {code}"
    if remark.startswith("pytest"):
        remark += ": " + " / ".join(output.splitlines()[-4:])
    return Outcome("" if remark else found[0], remark, time.perf_counter() - started)


def fail_without_fault(copies: Copies, tests: set[str]) -> set[str]:
    """Return the tests, of those that have detected a fault, that fail without any."""
    with copies.one() as target:
        code, output = run_tests(target, environment_of(target), sorted(tests), "--tb=no") if tests else (0, "")
    if code not in (0, 1):
        print(f"the tests that failed do not run without a fault, and are not checked:\n{output[-3000:]}")
    return set(failures(output))


def run(chosen: list[Fault], jobs: int) -> int:
    """Run the tests of faults, print what becomes of each, and return the number of faults that are not detected."""
    with tempfile.TemporaryDirectory() as place, concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        copies, outcomes = Copies(pathlib.Path(place), jobs), {}
        where = [sys.executable, "-c", "import skdp; print(skdp.__file__)"]
        with copies.one() as target:
            found = subprocess.check_output(where, cwd=target, env=environment_of(target), text=True)
            if not found.startswith(str(target)):
                raise SystemExit(f"the tests would run on {found.strip()} and not on the copy in {target}")
        for fault, outcome in zip(chosen, pool.map(functools.partial(outcome_of, copies), chosen), strict=True):
            outcomes[fault.name] = outcome
            print(f"{fault.name:50} {outcome.seconds:6.1f} s  {outcome.detected_by or outcome.remark}", flush=True)
        always = fail_without_fault(copies, {each.detected_by for each in outcomes.values()} - {""})
    missed = [name for name, each in outcomes.items() if not each.detected_by or each.detected_by in always]
    for name in missed:
        print(f"{name}: {outcomes[name].remark or 'its test fails without the fault: ' + outcomes[name].detected_by}")
    print(f"{len(chosen) - len(missed)} of {len(chosen)} faults were detected.")
    return len(missed)


def run_audits(chosen: list[Fault], jobs: int) -> int:
    """Audit the faults that audits should detect, and return the number of those that none detects."""
    chosen = [fault for fault in chosen if fault.name in CASES_OF]
    with tempfile.TemporaryDirectory() as place, concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        copies = Copies(pathlib.Path(place), jobs)

        def of(fault: Fault) -> str:
            with copies.with_fault(fault) as (target, environment):
                return audited(target, environment, CASES_OF[fault.name])

        missed = 0
        for fault, found in zip(chosen, pool.map(of, chosen), strict=True):
            missed += not found.startswith("detected")
            print(f"{fault.name:50} {found}", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} faults were detected by audits.")
    return missed


def errors_of(faults: list[Fault]) -> list[str]:
    """Return the errors of a table: names that are not unique, patterns that do not occur once, missing tests."""
    names = [each.name for each in faults]
    found = [f"two faults are called {name}" for name in sorted(set(names)) if names.count(name) > 1]
    found += [f"audits.py lists {name}, which is not a fault" for name in sorted(CASES_OF.keys() - set(names))]
    for fault in faults:
        try:
            inject(fault), test_files(fault)
        except NotInCode as error:
            found.append(str(error))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only check that each pattern occurs exactly once")
    parser.add_argument("--list", action="store_true", help="list the faults")
    parser.add_argument("--only", action="append", metavar="NAME", help="run this one; may be repeated")
    parser.add_argument("--sample", nargs=2, type=int, metavar=("N", "SEED"), help="run N of them, drawn at random")
    parser.add_argument("--audits", action="store_true", help="audit the faults instead of running tests")
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time")
    arguments = parser.parse_args()
    if unknown := set(arguments.only or ()) - {each.name for each in FAULTS}:
        parser.error(f"no fault is called {', '.join(sorted(unknown))}; see --list")
    if found := errors_of(FAULTS):  # before any time is spent
        print("\n".join(found))
        return 1
    chosen = [each for each in FAULTS if not arguments.only or each.name in arguments.only]
    if arguments.sample:
        number, seed = arguments.sample
        chosen = random.Random(seed).sample(chosen, min(number, len(chosen)))
    if arguments.list:
        print("\n".join(f"{each.name:50} {each.module}:{each.function}" for each in chosen))
        return 0
    if arguments.check:
        print(f"All of {len(FAULTS)} faults occur in the code.")
        return 0
    return 1 if (run_audits if arguments.audits else run)(chosen, arguments.jobs) else 0


if __name__ == "__main__":
    sys.exit(main())
