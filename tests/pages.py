"""The Python of a page, run from its first line to its last as a reader would type it.

A statement may end in a comment that is held to its word. No other statement may warn.

- ``# 0.947``: the value, to the digits shown, whatever follows;
- ``# raises BudgetExceededError``, ``# warns PrivacyLeakWarning``: the statement does.

A block of text behind a block of Python is what its last statement prints; ``...`` stands for more lines.
``python tests/pages.py README.md`` runs one page, with the standard library and what the page imports.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import sys
import types
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGES = ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]

_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_PROMISE = re.compile(r"  # (raises|warns) (\w+)")
_FIGURE = re.compile(r"  # (-?\d+(?:\.(\d+))?(?:e(-?\d+))?)(?![\w.]*\w)")


def run_page(page: str, module: str = "page") -> dict[str, Any]:
    """Run a page as a module of this name, which stays in `sys.modules`, and return the names that it defines."""
    return run_text((ROOT / page).read_text(encoding="utf-8"), page, module)


def run_text(text: str, page: str, module: str = "page") -> dict[str, Any]:
    """Run the code of a text, one statement after the other."""
    names = vars(sys.modules.setdefault(module, types.ModuleType(module)))
    lines = text.splitlines()
    for statement in ast.parse(_code_of(text), page).body:
        end = statement.end_lineno
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                _run_statement(statement, lines[end - 1], page, names)
            _check_output(printed.getvalue().splitlines(), lines[end:])
        except Exception as error:
            error.add_note(f"{page}, line {statement.lineno}")
            raise
    return names


def _code_of(text: str) -> str:
    """The code of a page, with empty lines for its text: errors name the lines of the page."""
    lines, end = [], 0
    for block in _BLOCK.finditer(text):
        lines += ["\n" * text.count("\n", end, block.start(1)), block[1]]
        end = block.end(1)
    return "".join(lines)


def _check_output(printed: list[str], following: list[str]) -> None:
    """Compare what the last statement of a block has printed with the output that is shown behind it, if any."""
    if following[:3] != ["```", "", "```text"]:
        return
    shown = following[3 : following.index("```", 3)]
    if shown[-1] == "...":
        shown, printed = shown[:-1], printed[: len(shown) - 1]
    assert printed == shown, "the output is " + "\n".join(printed)


def _run_statement(statement: ast.stmt, line: str, page: str, names: dict[str, Any]) -> None:
    promise, figure = _PROMISE.search(line), _FIGURE.search(line)
    raises = promise[2] if promise and promise[1] == "raises" else None
    warns = {promise[2]} if promise and promise[1] == "warns" else set()
    with warnings.catch_warnings(record=bool(warns), action="always" if warns else "error") as caught:
        try:
            value = _value_of(statement, page, names)
        except Exception as error:
            if type(error).__name__ != raises:
                raise
            return
    assert raises is None, f"{raises} was not raised"
    found = {each.category.__name__ for each in caught or ()}
    assert found == warns, f"warned {found or None} and not {warns or None}"
    if figure and isinstance(statement, ast.Expr):
        unit = 10.0 ** (int(figure[3] or 0) - len(figure[2] or ""))
        assert abs(value - float(figure[1])) <= 0.5000001 * unit, f"{value!r} is shown as {figure[1]}"


def _value_of(statement: ast.stmt, page: str, names: dict[str, Any]) -> Any:
    if isinstance(statement, ast.Expr):
        return eval(compile(ast.Expression(statement.value), page, "eval"), names)
    exec(compile(ast.Module([statement], []), page, "exec"), names)


if __name__ == "__main__":
    run_page(sys.argv[1])
