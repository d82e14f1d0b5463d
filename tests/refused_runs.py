"""Runs of examples that end before any work, all in one process: to start Python is most of what such a run takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SCRIPT = """
import contextlib, io, json, runpy, sys
ends = []
for sys.argv in json.loads(sys.argv[1]):
    shown, code = io.StringIO(), 0
    with contextlib.redirect_stderr(shown), contextlib.redirect_stdout(io.StringIO()):
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
        except SystemExit as error:
            code = error.code
            if isinstance(code, str):  # as the interpreter ends on it
                print(code, file=sys.stderr)
                code = 1
    ends.append((code, shown.getvalue()))
print(json.dumps(ends))
"""


class End(NamedTuple):
    """How a run ended."""

    returncode: int
    stderr: str


def ends_of(runs, **environment):
    """Run scripts of the examples with arguments, each as if alone; an end for each, in order.

    Parameters
    ----------
    runs : iterable of sequences
        Name of a script, and its arguments.
    **environment : str or None
        Variables of the process; None: without that one.

    Returns
    -------
    list of End
    """
    folder = ROOT / "examples"
    path = os.pathsep.join([str(ROOT), str(folder)])
    variables = {**os.environ, "PYTHONPATH": path, "NUMBA_DISABLE_JIT": None, **environment}
    calls = [[str(folder / script), *map(str, arguments)] for script, *arguments in runs]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(calls)],
        env={name: value for name, value in variables.items() if value is not None},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return [End(*each) for each in json.loads(done.stdout)]
