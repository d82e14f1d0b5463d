"""What a budget's file holds, on the command line.

    python -m skdp.budget show FILE [--delta D] [--json]   the charges, and what they cost by both figures
    python -m skdp.budget verify FILE [--head HASH]        whether every charge is as it was written
    python -m skdp.budget export FILE                      everything as JSON, with the hash to note elsewhere

The file is read and never written, created or migrated. Exit codes: 0 all is well, 1 the file cannot be read or
trusted, 2 the call is not right (such as no file of that name).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from skdp.exceptions import BudgetFileError

if TYPE_CHECKING:
    from skdp.accounting import PrivacyAccountant

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of the process if left out.

    Returns
    -------
    int
        The exit code.
    """
    parser = _parser()
    given = parser.parse_args(arguments)
    if not os.path.isfile(given.file):
        parser.error(f"file={given.file!r} does not exist: give the file of a budget.")
    from skdp.accounting import PrivacyAccountant

    try:
        print(given.command(PrivacyAccountant.open(given.file), given))
    except BudgetFileError as error:
        print(f"skdp.budget: {error}", file=sys.stderr)
        return 1
    except ValueError as error:
        parser.error(str(error))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m skdp.budget", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    for name, command in (("show", _show), ("verify", _verify), ("export", _export)):
        sub = commands.add_parser(name, description=command.__doc__)
        sub.add_argument("file", metavar="FILE")
        sub.set_defaults(command=command)
        if name == "show":
            sub.add_argument("--delta", type=float, help="delta of the figures; the ceiling's if left out")
            sub.add_argument("--json", action="store_true", help="print JSON")
        if name == "verify":
            sub.add_argument("--head", help="a hash noted earlier, which has to be among those of the file")
    return parser


def _show(accountant: PrivacyAccountant, given: argparse.Namespace) -> str:
    """Print the charges, and what they cost so far by both figures."""
    text = accountant.to_json()
    content, read = json.loads(text), type(accountant).from_json(text)  # read once, while others may charge
    if not given.json:
        figures = f"{read.table(given.delta)}\nhead: {content['head']}"
        return f"{accountant.path}, created {content['created']}\n{figures}"
    delta = read.delta if given.delta is None else given.delta
    spent = {"delta": delta, "plans_fixed_in_advance": None, "charges_chosen_adaptively": None}
    if delta is not None:
        spent["plans_fixed_in_advance"] = _finite(read.get_epsilon(delta))
        spent["charges_chosen_adaptively"] = _finite(read.get_epsilon(delta, adaptive=True))
    return json.dumps({"path": accountant.path, **content, "spent": spent}, indent=2)


def _finite(value: float) -> float | str:
    """JSON has no infinity."""
    return value if math.isfinite(value) else str(value)


def _verify(accountant: PrivacyAccountant, given: argparse.Namespace) -> str:
    """Check the file and the chain of its charges; print how many there are and the last hash."""
    return (
        f"{accountant.path}: {accountant.verify(given.head)} charges, each as it was written\nhead: {accountant.head}"
    )


def _export(accountant: PrivacyAccountant, given: argparse.Namespace) -> str:
    """Print the budget as JSON, as PrivacyAccountant.from_json reads it."""
    return json.dumps(json.loads(accountant.to_json()), indent=2)


if __name__ == "__main__":
    sys.exit(main())
