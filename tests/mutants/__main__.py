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
import compileall
import concurrent.futures
import contextlib
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
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import table
from audits import cases as audit_cases
from audits import concerned, why_beyond
from mutant import DoesNotPlant, Mutant, planted_texts
from reach import reach_of
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

AUDIT_SECONDS, MOST_AUDITS = 300, 8


def told_by_audits(target: pathlib.Path, arguments: list[str], environment: dict[str, str]) -> list[dict[str, Any]]:
    """What `audits.py` prints in a copy."""
    command = [sys.executable, str(target / "tests" / "mutants" / "audits.py"), *arguments]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen(command, cwd=target, env=environment, **pipes) as process:
        try:
            said = process.communicate(timeout=AUDIT_SECONDS)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            said = process.communicate()[0] + json.dumps({"error": f"nothing within {AUDIT_SECONDS} s"})
    return [json.loads(line) for line in said.splitlines() if line.startswith("{")]


def hear(planted: Mutant, cases: list[str], target: pathlib.Path) -> list[dict[str, Any]]:
    """What audits say of a mutant in a copy, which is as before afterwards.

    A planted kernel is compiled anew, and others are left as they were: the compiler's cache goes by the time at which
    a file was written, and the key of a kernel that calls those of other files holds their texts.
    """
    texts, environment = planted_texts(ROOT, planted), environment_of(target)
    with tempfile.TemporaryDirectory() as cold:
        if any("_kernels" in path for path in texts):
            environment["NUMBA_CACHE_DIR"] = cold
            if (target / "numba").exists():
                shutil.copytree(target / "numba", cold, dirs_exist_ok=True)
        for path, text in texts.items():
            (target / path).write_text(text)
        try:
            return told_by_audits(target, cases, environment)
        finally:
            for path in texts:
                shutil.copy2(ROOT / path, target / path)


class Copies:
    """Warm copies of the project, each of which one thread has at a time: bytecode and kernels are compiled once."""

    def __init__(self, place: pathlib.Path, number: int) -> None:
        self._free: queue.Queue[pathlib.Path] = queue.Queue()
        for each in (place.resolve() / str(k) for k in range(number)):
            for old in (path for path in each.glob("*") if path.name != "numba"):
                shutil.rmtree(old) if old.is_dir() else old.unlink()
            copy_project(each)
            compileall.compile_dir(each / "skdp", quiet=2)
            self._free.put(each)

    @contextlib.contextmanager
    def one(self) -> Iterator[pathlib.Path]:
        target = self._free.get()
        try:
            yield target
        finally:
            self._free.put(target)


def made(kept: pathlib.Path, key: str, names: list[str], jobs: int, make: Callable[[str], dict[str, Any]]) -> Any:
    """What is told of names, a line of a file for each; those that the file has are left out."""
    done = {each[key]: each for each in map(json.loads, kept.read_text().splitlines())} if kept.exists() else {}
    left = [name for name in names if name not in done]
    with kept.open("a") as written, concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for each in concurrent.futures.as_completed([pool.submit(make, name) for name in left]):
            found = each.result()
            done[found[key]] = found
            written.write(json.dumps(found) + "\n")
            written.flush()
    return done


def run_audits(kept: pathlib.Path, only: list[str], jobs: int) -> int:
    """Audit mutants in a random order, a line of the file for each; those that it has are left out.

    First the lines that each audit runs are found, unless they are known. A mutant is audited by the cases that are
    named for it, and then by others that run what it changes, the quickest first.
    """
    parts = {
        each.name: importlib.import_module(f"table.{each.name}").MUTANTS
        for each in pkgutil.iter_modules(table.__path__)
    }
    named, by_name = concerned(parts), {each.name: each for each in MUTANTS}
    order = sorted(named)
    random.Random(0).shuffle(order)
    copies = Copies(kept.with_suffix(".copies"), jobs)
    lines = kept.with_suffix(".lines")

    def lines_of(case: str) -> dict[str, Any]:
        with copies.one() as target:
            return (told_by_audits(target, ["--lines", case], environment_of(target)) or [{"case": case}])[0]

    made(lines, "case", audit_cases(), jobs, lines_of)
    reach = reach_of(ROOT, lines)

    def heard(name: str) -> dict[str, Any]:
        reached = reach.cases(by_name[name])
        chosen = sorted(named[name], key=lambda case: case not in reached)
        chosen += [case for case in reached if case not in chosen]
        with copies.one() as target:
            return {
                "mutant": name,
                "reached": len(reached),
                "audits": hear(by_name[name], chosen[:MOST_AUDITS], target),
            }

    wanted = [name for name in order if name in (only or order)]
    wanted.sort(key=lambda name: bool(why_beyond(name)))  # those that should be heard before the others
    done = made(kept, "mutant", wanted, jobs, heard)
    return tell(order, done, by_name)


def tell(order: list[str], done: dict[str, Any], by_name: dict[str, Mutant]) -> int:
    """Print what was not heard, and how much was: of those that audits should hear, and of others by their reason."""
    of = {name: verdict_of(done[name]) for name in order if name in done}
    for name in (name for name, verdict in of.items() if verdict != "heard" and not why_beyond(name)):
        said = [each.get("error") or f"{each['case']}: {each['share']:.3f}" for each in done[name]["audits"]]
        print(f"{of[name]}: {name} ({'; '.join(said)}); by {', '.join(by_name[name].tests)}")
    for reason in dict.fromkeys(sorted(map(why_beyond, order))):
        names = [name for name in order if why_beyond(name) == reason]
        verdicts = [of[name] for name in names if name in of]
        counts = ", ".join(f"{verdicts.count(each)} {each}" for each in ("heard", "error", "not heard"))
        print(f"{len(names)} {reason or 'that audits should hear'}: {counts} of {len(verdicts)}")
    return 0


def verdict_of(done: dict[str, Any]) -> str:
    """Whether some audit found something; or else whether one ended in an error, as an honest fit does not."""
    if any(each.get("heard") for each in done["audits"]):
        return "heard"
    return "error" if any(each.get("error") for each in done["audits"]) else "not heard"


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
