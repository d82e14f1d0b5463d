"""Manage the budget file of a data set.

    python -m skdp.accounting create FILE --epsilon E --delta D [--unit U] [--filter-family F]
                                   create a budget file; instead of --epsilon, the budget can be
                                   a membership-inference risk: --advantage A, or --tpr T --fpr F
    python -m skdp.accounting show FILE [--delta D] [--json]
                                   print the entries, the spent budget and the remaining budget
    python -m skdp.accounting verify FILE [--head HASH]
                                   check that no entry was altered
    python -m skdp.accounting export FILE
                                   print the budget and all entries as JSON
    python -m skdp.accounting increase FILE --epsilon E [--note TEXT] [--yes]
                                   increase the budget

The commands show, verify and export do not write to the file. Exit codes: 0 success; 1 the file cannot be read or
verified; 2 invalid arguments (for example, the file does not exist).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Sequence
from typing import Any

from skdp.accounting import PrivacyAccountant, Risk
from skdp.accounting.ledger.report import parameter_lines, to_digits
from skdp.exceptions import BudgetFileError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Arguments. If None, ``sys.argv[1:]``.

    Returns
    -------
    int
        Exit code.
    """
    parser = _parser()
    given = parser.parse_args(arguments)
    exists = os.path.lexists(given.file)
    if given.command is _create and exists:
        parser.error(f"file={given.file!r} already exists. Use another name.")
    if given.command is not _create and not os.path.isfile(given.file):
        fault = "is not a file. Pass" if exists else "does not exist. Create it, or pass"
        parser.error(f"file={given.file!r} {fault} an existing budget file.")
    try:
        _print(given.command(given))
    except BudgetFileError as error:
        print(f"skdp.accounting: {error}", file=sys.stderr)
        return 1
    except ValueError as error:
        parser.error(str(error))
    return 0


def _print(text: str) -> None:
    """Print, and ignore a closed pipe, as by `head`."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m skdp.accounting", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    subs = {}
    for command in (_create, _show, _verify, _export, _increase):
        name = command.__name__[1:]
        subs[name] = sub = commands.add_parser(name, description=command.__doc__)
        sub.add_argument("file", metavar="FILE")
        sub.set_defaults(command=command)
    subs["create"].add_argument("--epsilon", type=float, help="budget")
    subs["create"].add_argument("--advantage", type=float, help="budget as membership inference advantage (TPR - FPR)")
    subs["create"].add_argument("--tpr", type=float, help="budget as true positive rate at --fpr")
    subs["create"].add_argument("--fpr", type=float, help="false positive rate of --tpr")
    subs["create"].add_argument("--delta", type=float, required=True, help="delta of the budget")
    subs["create"].add_argument("--unit", help="privacy unit, such as person (default: row)")
    subs["create"].add_argument("--method", help="accounting method of the fits (default: pld)")
    subs["create"].add_argument("--adjacency", help="neighboring relation (default: that of the first charge)")
    subs["create"].add_argument(
        "--filter-family", metavar="F", help="privacy filter: auto, gaussian or renyi (default: auto)"
    )
    subs["show"].add_argument("--delta", type=float, help="delta of the spent epsilon (default: that of the budget)")
    subs["show"].add_argument("--json", action="store_true", help="print JSON")
    subs["verify"].add_argument("--head", help="hash stored earlier, which must occur in the file")
    subs["increase"].add_argument("--epsilon", type=float, required=True, help="new budget")
    subs["increase"].add_argument("--delta", type=float, help="delta of the budget, which cannot be changed")
    subs["increase"].add_argument("--note", default="", help="reason for the increase")
    subs["increase"].add_argument(
        "--yes", action="store_true", help="increase even if this lowers the remaining budget"
    )
    return parser


def _create(given: argparse.Namespace) -> str:
    """Create a budget file."""
    risk = {name: getattr(given, name) for name in ("advantage", "tpr", "fpr") if getattr(given, name) is not None}
    if (given.epsilon is None) != bool(risk):
        raise ValueError("Expected exactly one budget. Set --epsilon, or --advantage, or --tpr and --fpr.")
    terms = {name: getattr(given, name) for name in ("unit", "method", "adjacency", "filter_family")}
    epsilon = Risk(**risk) if risk else given.epsilon
    accountant = PrivacyAccountant(epsilon, given.delta, **terms, path=given.file)
    budget = f"epsilon={accountant.epsilon:g} at delta={accountant.delta:g}"
    return f"{accountant.path}: {budget}, unit={accountant.unit}, filter_family={accountant.filter_family}"


def _show(given: argparse.Namespace) -> str:
    """Print the entries, the spent budget and the remaining budget."""
    accountant = PrivacyAccountant.open(given.file)
    text = accountant.to_json()
    content, read = json.loads(text), PrivacyAccountant.from_json(text)  # read once, while others may charge
    if given.json:
        whose = "partition_rule" if read.split else "partition_rule_assumed_by_the_owner"
        rule = {} if read.partition_rule is None else {whose: read.partition_rule}
        return json.dumps({"path": accountant.path, **content, **rule, **_figures(read, given.delta)}, indent=2)
    lines = [f"{accountant.path}, created {content['created']}", read.table(given.delta)]
    return "\n".join([*lines, *parameter_lines(read.entries), f"head: {content['head']}"])


def _figures(read: PrivacyAccountant, delta: float | None) -> dict[str, Any]:
    """Return the spent and the remaining budget; without a budget, the spent epsilon at a delta."""
    at = read.delta if delta is None else delta
    spent = {"delta": at, "plans_fixed_in_advance": None if at is None else _finite(read.get_epsilon(at))}
    if read.epsilon is None:
        adaptive = None if delta is None else _finite(read.get_epsilon(delta, adaptive=True))
        return {"spent": {**spent, "charges_chosen_adaptively": adaptive}}
    left = read.affordable()
    budget = {"epsilon": read.epsilon, "delta": read.delta, "spent": read.spent, "remaining": left.epsilon}
    return {"budget": {**budget, "remaining_delta": left.delta}, "spent": spent}


def _finite(value: float) -> float | str:
    """Convert infinity, which JSON does not have, to a string."""
    return value if math.isfinite(value) else str(value)


def _verify(given: argparse.Namespace) -> str:
    """Check that no entry was altered; print the number of entries and the last hash."""
    accountant = PrivacyAccountant.open(given.file)
    number = accountant.verify(given.head)
    return f"{accountant.path}: {number} entries, none altered\nhead: {accountant.head}"


def _export(given: argparse.Namespace) -> str:
    """Print the budget and all entries as JSON, the input of PrivacyAccountant.from_json."""
    return json.dumps(json.loads(PrivacyAccountant.open(given.file).to_json()), indent=2)


def _increase(given: argparse.Namespace) -> str:
    """Increase the budget. After the first charge, this can lower the remaining budget; then --yes is required."""
    accountant = PrivacyAccountant.open(given.file)
    before = accountant.remaining()
    accountant.increase_budget(given.epsilon, delta=given.delta, note=given.note, allow_less=given.yes)
    left = f"remaining={to_digits(accountant.remaining(), 3)}, before {to_digits(before, 3)}"
    budget = f"epsilon={accountant.epsilon:g} at delta={accountant.delta:g}"
    return f"{accountant.path}: {budget}, spent={accountant.spent:g}, {left}"


if __name__ == "__main__":
    sys.exit(main())
