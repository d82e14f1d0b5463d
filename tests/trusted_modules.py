"""The trusted modules of docs/trusted_modules.md, and their lines of code.

``python tests/trusted_modules.py`` writes the present numbers of lines into the page.
"""

from __future__ import annotations

import ast
import functools
import io
import re
import tokenize
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "trusted_modules.md"
MARKERS = re.compile(r"(?<=<!-- begin counted -->\n).*?(?=<!-- end counted -->)", re.DOTALL)
LAYOUT = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.COMMENT}
SCOPES = ast.ClassDef, ast.FunctionDef


class Module(NamedTuple):
    """A row of the tables of the page: section, module, names of the trusted part, lines, and test files."""

    section: str
    name: str
    part: str
    lines: int
    tests: list[str]

    @property
    def names(self) -> set[str]:
        return set(re.findall(r"`([\w.]+)`", self.part))

    def trusts(self, name: str) -> bool:
        """Whether a function or class of the module is trusted."""
        is_named = any(f"{name}.".startswith(f"{each}.") for each in self.names)
        return self.part == "all" or is_named != self.part.startswith("all but")

    @property
    def counted(self) -> int:
        """Lines of code of the trusted part; imports and constants of the module are in it."""
        code, scopes = code_lines(self.name), scopes_of(self.name)
        named = {line for name in self.names for line in scopes[name]}
        if self.part == "all" or self.part.startswith("all but"):
            return len(code - named)
        return len(code - {line for lines in scopes.values() for line in lines} | code & named)


@functools.cache
def code_lines(module: str) -> frozenset[int]:
    """Numbers of the lines of a module that have code: no comments, docstrings and blank lines."""
    text, found = text_of(module), set[int]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT:
            found.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            found.difference_update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return frozenset(found)


@functools.cache
def scopes_of(module: str) -> dict[str, range]:
    """Lines of each function, class and method of a module, by qualified name."""
    found, tree = {}, ast.parse(text_of(module))
    scopes = [(node.name, node) for node in ast.walk(tree) if isinstance(node, SCOPES) and node.col_offset == 0]
    for name, node in scopes:
        found[name] = range(min(each.lineno for each in [node, *node.decorator_list]), node.end_lineno + 1)
        if isinstance(node, ast.ClassDef):
            scopes += [(f"{name}.{each.name}", each) for each in node.body if isinstance(each, SCOPES)]
    return found


def text_of(module: str) -> str:
    path = ROOT.joinpath("skdp", *module.split("."))
    return (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text(encoding="utf-8")


def all_modules() -> list[str]:
    """All modules of skdp, such as "mechanisms.gaussian", packages included."""
    paths = [path.relative_to(ROOT / "skdp").with_suffix("").parts for path in (ROOT / "skdp").rglob("*.py")]
    return sorted(".".join(parts[:-1] if parts[-1] == "__init__" else parts) for parts in paths)


def trusted_modules(page: str | None = None) -> list[Module]:
    """Rows of the page, or of a text of it."""
    found, section = [], ""
    for line in (PAGE.read_text(encoding="utf-8") if page is None else page).splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        elif match := re.match(r"\| `([\w.]+)` \| ([^|]+) \| (\d+) \|[^|]*\| ([^|]+) \|$", line):
            found.append(Module(section, match[1], match[2], int(match[3]), match[4].split(", ")))
    return found


def summary(modules: list[Module]) -> str:
    """The table of sections with their numbers of modules and lines."""
    n_all = sum(len(code_lines(module)) for module in all_modules())
    rows = ["| Part | Modules | Lines of code | Share of `skdp/` |", "|---|---:|---:|---:|"]

    def add(name: str, chosen: list[Module]) -> None:
        lines = sum(each.counted for each in chosen)
        rows.append(f"| {name} | {len(chosen)} | {lines:,} | {lines / n_all:.1%} |")

    for section in dict.fromkeys(each.section for each in modules):
        add(section, [each for each in modules if each.section == section])
    add("**Core**", [each for each in modules if each.section.startswith("Core: ")])
    add("**All trusted parts**", modules)
    rows.append(f"| `skdp/` | {len(all_modules())} | {n_all:,} | 100% |")
    return "\n".join(rows) + "\n"


def updated(page: str) -> str:
    """The page with the present numbers."""
    modules = trusted_modules(page)
    for each in modules:
        page = page.replace(
            f"| `{each.name}` | {each.part} | {each.lines} |", f"| `{each.name}` | {each.part} | {each.counted} |"
        )
    return MARKERS.sub(lambda _: f"\n{summary(modules)}\n", page)


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
