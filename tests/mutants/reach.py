"""Which audits run the lines that a mutant changes, and how long they take."""

from __future__ import annotations

import ast
import difflib
import json
import pathlib

from mutant import Mutant, planted_texts

Lines = dict[str, set[int]]
"""Numbers of lines by the path of their file."""


class Reach:
    """Lines of each case, as `audits.py --lines` tells them.

    Parameters
    ----------
    root : pathlib.Path
        Of the project.
    told : list of dict
        For each case its name, its seconds, and its lines by file.
    """

    def __init__(self, root: pathlib.Path, told: list[dict]) -> None:
        self._root = root
        self._told = sorted((each for each in told if "lines" in each), key=lambda each: each["seconds"])
        self._lines = {each["case"]: {path: set(lines) for path, lines in each["lines"].items()} for each in self._told}

    def cases(self, planted: Mutant) -> list[str]:
        """The cases that run what a mutant changes, the quickest first.

        A kernel counts as run where a compiled function has the line; one that compiled functions alone call, where any
        function of its file is called.
        """
        changed = changed_lines(self._root, planted)
        found = [case for case, lines in self._lines.items() if _meet(lines, changed)]
        if not found and any("_kernels" in path for path in changed):
            found = [case for case, lines in self._lines.items() if any(path in lines for path in changed)]
        return found


def _meet(lines: Lines, changed: Lines) -> bool:
    return any(lines.get(path, set()) & numbers for path, numbers in changed.items())


def changed_lines(root: pathlib.Path, planted: Mutant) -> Lines:
    """The lines of the statements that the edits of a mutant change, as they are before."""
    found: Lines = {}
    for path, text in planted_texts(root, planted).items():
        before = (root / path).read_text()
        matcher = difflib.SequenceMatcher(None, before.splitlines(), text.splitlines(), autojunk=False)
        changes = [(start, stop) for tag, start, stop, _, _ in matcher.get_opcodes() if tag != "equal"]
        lines = {line for start, stop in changes for line in range(start + 1, max(stop, start + 1) + 1)}
        spans = _statements(before)
        found[path] = set().union(*(_within(line, spans) for line in lines))
    return found


def _within(line: int, spans: list[range]) -> set[int]:
    """The lines of the smallest statement that has a line."""
    return set(min((span for span in spans if line in span), key=len, default=[line]))


def _statements(text: str) -> list[range]:
    """The lines of each statement; of those that hold others, what stands before them."""
    spans = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef | ast.ClassDef):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno
            spans.append(range(node.lineno, max(last or 0, node.lineno) + 1))
    return spans


def reach_of(root: pathlib.Path, kept: pathlib.Path) -> Reach:
    """What a file of lines tells, a case a line."""
    return Reach(root, [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else [])
