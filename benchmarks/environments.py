#!/usr/bin/env python3
"""Virtual environments of other libraries.

    python benchmarks/environments.py [--folder FOLDER] [NAME ...]

Versions are pinned in ``benchmarks/peers/requirements-NAME.txt``; an environment is made anew when its file changes. A
library that cannot be installed is reported in the table of benchmarks, with no figure in its place. The folder is that
of ``--folder``, of the variable SKDP_PEERS, or ``.venv/peers`` of this project.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PEERS = ROOT / "benchmarks" / "peers"
HERE = "here"
"""The environment that runs the harness, with skdp, NumPy and scikit-learn."""


def names() -> list[str]:
    """Environments that have a file of requirements."""
    return sorted(path.stem.removeprefix("requirements-") for path in PEERS.glob("requirements-*.txt"))


def default_folder() -> Path:
    return Path(os.environ.get("SKDP_PEERS") or ROOT / ".venv" / "peers")


def requirements(name: str) -> Path:
    return PEERS / f"requirements-{name}.txt"


def python_of(name: str, folder: Path) -> Path | None:
    """The interpreter of an environment, or None if it is not there or of other requirements."""
    if name == HERE:
        return Path(sys.executable)
    home = folder / name
    stamp, python = home / "requirements.sha256", home / "bin" / "python"
    return python if stamp.exists() and stamp.read_text() == _stamp(name) and python.exists() else None


def _stamp(name: str) -> str:
    return hashlib.sha256(requirements(name).read_bytes()).hexdigest()


def make(name: str, folder: Path) -> bool:
    """Make an environment unless it is there; return whether it is there now."""
    if python_of(name, folder):
        return True
    home = folder / name
    venv.create(home, with_pip=True, clear=True)
    command = [home / "bin" / "python", "-m", "pip", "install", "--quiet", "--requirement", requirements(name)]
    if subprocess.run(command, check=False).returncode:
        return False
    (home / "requirements.sha256").write_text(_stamp(name))
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=default_folder())
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names())}; all by default")
    given = parser.parse_args()
    for name in given.names or names():
        print(f"{name}: {'ready' if make(name, given.folder) else 'cannot be installed here'}", flush=True)


if __name__ == "__main__":
    main()
