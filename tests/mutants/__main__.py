"""Plant known mistakes, one at a time, and show that a test goes red for each.

    python tests/mutants                run all
    python tests/mutants --check        every mutant still fits the code and its tests exist; runs no test
    python tests/mutants --list         names and what they plant
    python tests/mutants --only NAME    one of them (may be repeated)
    python tests/mutants --jobs 2       two at a time
    python tests/mutants --audits FILE  how many of those that audits should hear are heard; goes on where it ended

Each mutant is a copy of the package and its tests in a temporary directory, with an empty Numba cache, in which some
text is replaced. Text that is not found exactly once is an error, so a mutant cannot quietly become a no-op when the
code changes. Only the tests that are meant to catch it are run. Tests that fail without any mutant are no catch: they
are left out, and reported.

The table is in `table/`, by subject; the paths of the files that it changes are in `paths.py`. What audits should hear
is in `audits.py`; they are made in a random order, so that those made so far are a fair sample.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import importlib
import json
import os
import pathlib
import pkgutil
import queue
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Any, NamedTuple

import table
from audits import concerned, why_beyond
from mutant import DoesNotPlant, Mutant, planted_texts
from table import MUTANTS

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Outcome(NamedTuple):
    verdict: str
    seconds: float


def copy_project(target: pathlib.Path) -> None:
    ignore = shutil.ignore_patterns("__pycache__", ".hypothesis", ".pytest_cache")
    for name in ("skdp", "tests", "examples", "docs"):
        if (ROOT / name).exists():
            shutil.copytree(ROOT / name, target / name, ignore=ignore)
    for name in ("pyproject.toml", "setup.py", "README.md", "CITATION.cff"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, target / name)


def faults(mutants: list[Mutant]) -> list[str]:
    """What is wrong with a table, a line each: names that are not unique, mutants that do not plant."""
    names = [each.name for each in mutants]
    found = [f"two mutants are called {name!r}" for name in sorted(set(names)) if names.count(name) > 1]
    for each in mutants:
        try:
            planted_texts(ROOT, each)
        except DoesNotPlant as error:
            found.append(str(error))
    return found


def environment_of(target: pathlib.Path) -> dict[str, str]:
    return os.environ | {
        "NUMBA_CACHE_DIR": str(target / "numba"),
        "PYTHONPATH": str(target),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def run_tests(target: pathlib.Path, tests: list[str], *options: str) -> tuple[int, str]:
    """pytest's return code and output, on the copy alone: its own package, an empty Numba cache, one thread."""
    environment = environment_of(target)
    where = [sys.executable, "-c", "import skdp; print(skdp.__file__)"]
    found = subprocess.run(where, cwd=target, env=environment, capture_output=True, text=True, check=True).stdout
    if not found.startswith(str(target)):
        raise SystemExit(f"the tests would run on {found.strip()} and not on the copy in {target}")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", *options, *tests]
    done = subprocess.run(command, cwd=target, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def failures(output: str) -> list[str]:
    return re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, flags=re.MULTILINE)


def red_without_mutant(tests: list[str]) -> list[str]:
    with tempfile.TemporaryDirectory() as place:
        target = pathlib.Path(place).resolve()
        copy_project(target)
        code, output = run_tests(target, tests, "--tb=no")
        if code not in (0, 1):
            raise SystemExit(f"the tests do not run at all without a mutant:\n{output[-3000:]}")
        return failures(output)


def judge(planted: Mutant, known_red: list[str]) -> Outcome:
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        target = pathlib.Path(place).resolve()
        copy_project(target)
        for path, text in planted_texts(ROOT, planted).items():
            (target / path).write_text(text)
        options = ["-x", "--tb=line", *(f"--deselect={test}" for test in known_red)]
        options += ["-k", planted.select] if planted.select else []
        code, output = run_tests(target, list(planted.tests), *options)
    seconds = time.perf_counter() - started
    if code == 1:
        return Outcome(f"red: {failures(output)[0]}", seconds)
    if code == 0:
        return Outcome("SURVIVED", seconds)
    return Outcome(f"BROKEN (pytest ended with {code}): {' / '.join(output.splitlines()[-4:])}", seconds)


# --- audits -----------------------------------------------------------------------------------------------------------

AUDIT_SECONDS = 600


def hear(planted: Mutant, cases: list[str], target: pathlib.Path) -> list[dict[str, Any]]:
    """What audits say of a mutant in a copy, which is as before afterwards.

    A planted kernel is compiled anew, and others are left as they were: the compiler's cache goes by the time at which
    a file was written, and the key of a kernel that calls those of other files holds their texts.
    """
    texts, environment = planted_texts(ROOT, planted), environment_of(target)
    command = [sys.executable, str(target / "tests" / "mutants" / "audits.py"), *cases]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with tempfile.TemporaryDirectory() as cold:
        if any("_kernels" in path for path in texts):
            environment["NUMBA_CACHE_DIR"] = cold
            if (target / "numba").exists():
                shutil.copytree(target / "numba", cold, dirs_exist_ok=True)
        for path, text in texts.items():
            (target / path).write_text(text)
        try:
            with subprocess.Popen(command, cwd=target, env=environment, **pipes) as process:
                try:
                    said = process.communicate(timeout=AUDIT_SECONDS)[0]
                except subprocess.TimeoutExpired:
                    process.kill()
                    said = process.communicate()[0] + json.dumps({"error": f"nothing within {AUDIT_SECONDS} s"})
        finally:
            for path in texts:
                shutil.copy2(ROOT / path, target / path)
    return [json.loads(line) for line in said.splitlines() if line.startswith("{")]


def run_audits(kept: pathlib.Path, only: list[str], jobs: int) -> int:
    """Audit mutants in a random order, a line of the file for each; those that it has are left out."""
    parts = {
        each.name: importlib.import_module(f"table.{each.name}").MUTANTS
        for each in pkgutil.iter_modules(table.__path__)
    }
    cases, by_name = concerned(parts), {each.name: each for each in MUTANTS}
    order = sorted(cases)
    random.Random(0).shuffle(order)
    done = {each["mutant"]: each for each in map(json.loads, kept.read_text().splitlines())} if kept.exists() else {}
    copies: queue.Queue[pathlib.Path] = queue.Queue()

    def heard(name: str) -> dict[str, Any]:
        target = copies.get()
        try:
            return {"mutant": name, "audits": hear(by_name[name], cases[name], target)}
        finally:
            copies.put(target)

    with tempfile.TemporaryDirectory() as place, kept.open("a") as written:
        for number in range(jobs):
            copies.put(pathlib.Path(place).resolve() / str(number))
            copy_project(copies.queue[-1])
        left = [each for each in order if each not in done and each in (only or order)]
        left.sort(key=lambda name: bool(why_beyond(name)))  # those that should be heard before the others
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for each in concurrent.futures.as_completed([pool.submit(heard, name) for name in left]):
                found = each.result()
                done[found["mutant"]] = found
                written.write(json.dumps(found) + "\n")
                written.flush()
    heard_of = {name for name, each in done.items() if any(audit.get("heard") for audit in each["audits"])}
    for name in (each for each in order if each in done and each not in heard_of):
        said = [each.get("error") or f"{each['case']}: {each['share']:.3f}" for each in done[name]["audits"]]
        reason = why_beyond(name) or "; ".join(said)
        print(f"not heard: {name} ({reason}); by {', '.join(by_name[name].tests)}")
    audible = [name for name in order if not why_beyond(name)]
    made = [name for name in audible if name in done]
    n_heard, n_others = len(heard_of & set(made)), len(done) - len(made)
    print(f"{n_heard} of {len(made)} that audits should hear are heard, of {len(audible)} in all;")
    print(f"{len(heard_of) - n_heard} of {n_others} others, of {len(order) - len(audible)}.")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only check that each edit fits the code exactly once")
    parser.add_argument("--list", action="store_true", help="name the mutants and end")
    parser.add_argument("--only", action="append", metavar="NAME", help="run this one; may be repeated")
    parser.add_argument(
        "--audits", type=pathlib.Path, metavar="FILE", help="audit mutants, and keep in a file what is heard"
    )
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time")
    arguments = parser.parse_args()
    chosen = [each for each in MUTANTS if not arguments.only or each.name in arguments.only]
    if unknown := set(arguments.only or ()) - {each.name for each in MUTANTS}:
        parser.error(f"no mutant is called {', '.join(sorted(unknown))}; see --list")
    if arguments.list:
        for each in chosen:
            print(f"{each.name:58} {', '.join(sorted({edit.path for edit in each.edits}))}")
        return 0

    if arguments.audits:
        return run_audits(arguments.audits, arguments.only, arguments.jobs)
    if found := faults(chosen):  # all of them fit the code, before any time is spent
        print("\n".join(found))
        return 1
    if arguments.check:
        print(f"All of {len(chosen)} mutants plant.")
        return 0
    known_red = red_without_mutant(sorted({test for each in chosen for test in each.tests}))
    for test in known_red:
        print(f"red without any mutant, left out: {test}")

    survived = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for each, outcome in zip(chosen, pool.map(lambda each: judge(each, known_red), chosen), strict=True):
            survived += not outcome.verdict.startswith("red")
            print(f"{each.name:58} {outcome.seconds:6.1f} s  {outcome.verdict}", flush=True)
    print(f"{len(chosen) - survived} of {len(chosen)} mutants were caught.")
    return 1 if survived or known_red else 0


if __name__ == "__main__":
    sys.exit(main())
