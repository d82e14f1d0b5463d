"""Injected faults, and how one is found in the code and made: by structure, whatever the layout and local names are."""

from __future__ import annotations

import ast
import builtins
import copy
import pathlib
import re
from typing import Any, NamedTuple

from places import FOR_ALL, tests_of

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Fault(NamedTuple):
    """A change of the code that at least one test must detect.

    Parameters
    ----------
    name : str
    module : str
    function : str
        Qualified name of the function or class that holds the pattern; empty for statements of the module.
    pattern : str
        An expression or statements that occur exactly once there.
    replacement : str
    tests : str, default=""
        Names of test files, such as "loop", that run before those of the package.
    """

    name: str
    module: str
    function: str
    pattern: str
    replacement: str
    tests: str = ""

    @property
    def changes_kernel(self) -> bool:
        return self.module.startswith("skdp._kernels.")


class NotInCode(Exception):
    """The pattern of a fault does not occur exactly once, or a test file is missing."""


def faults_of(table: dict[str, list[tuple[str, ...]]]) -> list[Fault]:
    """Return the faults of a table: for each module tuples of a name, a function, a pattern and a replacement."""
    return [Fault(row[0], module, *row[1:]) for module, rows in table.items() for row in rows]


def path_of(module: str) -> str:
    """Return the path of a module within the project."""
    path = module.replace(".", "/")
    return f"{path}/__init__.py" if (ROOT / path).is_dir() else f"{path}.py"


def test_files(fault: Fault) -> list[str]:
    """Return the test files that must detect a fault: those that it names, those of its package, and `FOR_ALL`.

    Of its package, files whose names share a word with that of the module come first.
    """
    named = [_paths(fault, f"tests/**/test_{name}.py") for name in fault.tests.split()]
    words = set(fault.module.rpartition(".")[2].split("_"))
    of_package = [path for place in tests_of(fault.module) for path in _paths(fault, place)]
    of_package.sort(key=lambda path: not words & set(pathlib.Path(path).stem.split("_")))
    return list(dict.fromkeys([*(path for paths in named for path in paths), *of_package, FOR_ALL]))


def _paths(fault: Fault, pattern: str) -> list[str]:
    found = sorted(each.relative_to(ROOT).as_posix() for each in ROOT.glob(pattern))
    if not found:
        raise NotInCode(f"{fault.name}: there is no test file {pattern}")
    return found


def inject(fault: Fault) -> tuple[str, str]:
    """Return the path of the file that a fault changes, and its new text.

    Raises
    ------
    NotInCode
        If the pattern does not occur exactly once in the function, or if nothing would change.
    """
    path = path_of(fault.module)
    if not (ROOT / path).is_file():
        raise NotInCode(f"{fault.name}: there is no module {fault.module}")
    return path, changed_text((ROOT / path).read_text(), fault)


def changed_text(text: str, fault: Fault) -> str:
    """Return the text of a module with a fault."""
    tree, names = _parsed(text)
    scopes = list(_scopes(tree, fault.function))
    old, new = _read(fault.pattern), _read(fault.replacement)
    if isinstance(old, ast.expr) != isinstance(new, ast.expr):
        old, new = ast.parse(fault.pattern).body, ast.parse(fault.replacement).body
    found = [each for scope in scopes for each in _matches(old, scope, names)]
    if len(found) != 1:
        where = f"{fault.module}:{fault.function}"
        raise NotInCode(f"{fault.name}: {where} contains the pattern {len(found)} times: {fault.pattern!r}")
    scope, place, bound = found[0]
    new = _with_names(new, bound)
    if _dump(new) == _dump(_with_names(old, bound)):
        raise NotInCode(f"{fault.name}: the replacement is the pattern")
    return _spliced(text, scope, place, new)


def _parsed(text: str) -> tuple[ast.Module, frozenset[str]]:
    """Return the tree of a module, and the names that are global in it."""
    tree = ast.parse(text)
    names = set(dir(builtins))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(each.asname or each.name).partition(".")[0] for each in node.names}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        else:
            names |= {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return tree, frozenset(names)


def _scopes(tree: ast.Module, function: str) -> Any:
    """Iterate over the functions or classes of a qualified name: a property and its setter share one."""
    scopes: list[Any] = [tree]
    for name in filter(None, function.split(".")):
        inner = [each for scope in scopes for each in _own_definitions(scope)]
        scopes = [each for each in inner if each.name == name]
    return scopes


def _own_definitions(scope: Any) -> Any:
    """Iterate over the functions and classes that a scope defines, within its other statements too."""
    for each in ast.iter_child_nodes(scope):
        if isinstance(each, ast.FunctionDef | ast.ClassDef):
            yield each
        elif isinstance(each, ast.stmt | ast.ExceptHandler):
            yield from _own_definitions(each)


def _read(text: str) -> Any:
    """Return an expression, or else a list of statements."""
    body = ast.parse(text).body
    return body[0].value if len(body) == 1 and isinstance(body[0], ast.Expr) else body


# --- matching ---------------------------------------------------------------------------------------------------------


def _matches(pattern: Any, scope: Any, names: frozenset[str]) -> Any:
    """Iterate over (scope, place, names bound) where a pattern occurs.

    A place is a (parent, field, index, count). Names of the pattern that the scope does not use, and that are not
    global, match any local name: a local variable may be renamed. `_1`, `_2` match any expression.
    """
    used = {each.id for each in ast.walk(scope) if isinstance(each, ast.Name)}
    used |= {each.arg for each in ast.walk(scope) if isinstance(each, ast.arg)}
    known = used | names
    for parent in ast.walk(scope):
        for field, value in ast.iter_fields(parent):
            if isinstance(pattern, list):
                if field not in ("body", "orelse", "finalbody") or not isinstance(value, list):
                    continue
                places = [(i, value[i : i + len(pattern)]) for i in range(len(value) - len(pattern) + 1)]
            else:
                places = list(enumerate(value)) if isinstance(value, list) else [(None, value)]
            for index, node in places:
                bound: dict[str, ast.expr] = {}
                if _fits(pattern, node, bound, known, names):
                    yield scope, (parent, field, index, len(pattern) if isinstance(pattern, list) else 1), bound


def _fits(pattern: Any, node: Any, bound: dict[str, ast.expr], known: set[str], names: frozenset[str]) -> bool:
    if isinstance(pattern, ast.Name) and (re.fullmatch(r"_\d+", pattern.id) or pattern.id not in known):
        if not isinstance(node, ast.expr):
            return False
        if not re.fullmatch(r"_\d+", pattern.id) and not (isinstance(node, ast.Name) and node.id not in names):
            return False
        plain = ast.Name(node.id, ast.Load()) if isinstance(node, ast.Name) else node
        if pattern.id in bound:
            return _dump(bound[pattern.id]) == _dump(plain)
        bound[pattern.id] = plain
        return True
    if isinstance(pattern, list):
        return (
            isinstance(node, list)
            and len(pattern) == len(node)
            and all(_fits(a, b, bound, known, names) for a, b in zip(pattern, node, strict=True))
        )
    if isinstance(pattern, ast.AST):
        return type(pattern) is type(node) and all(
            _fits(getattr(pattern, field, None), getattr(node, field, None), bound, known, names)
            for field in pattern._fields
            if field not in ("ctx", "kind", "type_comment")
        )
    return type(pattern) is type(node) and pattern == node


def _with_names(new: Any, bound: dict[str, ast.expr]) -> Any:
    """Return what replaces a pattern, with the names and expressions that the pattern has met."""

    class Names(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            met = bound.get(node.id)
            return ast.Name(met.id, node.ctx) if isinstance(met, ast.Name) else (met or node)

    new = copy.deepcopy(new)
    return [Names().visit(each) for each in new] if isinstance(new, list) else Names().visit(new)


def _dump(node: Any) -> Any:
    return [ast.dump(each) for each in node] if isinstance(node, list) else ast.dump(node)


# --- writing ----------------------------------------------------------------------------------------------------------


def _spliced(text: str, scope: Any, place: tuple[Any, str, int | None, int], new: Any) -> str:
    """Return the text with the function, or the statement of a module or class, written anew; all else is as it was."""
    parent, field, index, count = place
    holder = scope
    if not isinstance(scope, ast.FunctionDef):
        holder = next((each for each in scope.body if any(node is parent for node in ast.walk(each))), None)
    if holder is None:  # a statement of the module or class itself
        replaced = scope.body[index : index + count]
        first, last, written = replaced[0].lineno, replaced[-1].end_lineno, new
    else:
        if index is None:
            setattr(parent, field, new)
        else:
            getattr(parent, field)[index : index + count] = new if isinstance(new, list) else [new]
        first, last, written = holder.lineno, holder.end_lineno, [holder]
        holder.decorator_list = []  # they stand above the first line
    lines = text.splitlines()
    indent = lines[first - 1][: len(lines[first - 1]) - len(lines[first - 1].lstrip())]
    block = "\n".join(ast.unparse(ast.fix_missing_locations(each)) for each in written).split("\n")
    found = "\n".join([*lines[: first - 1], *(indent + line if line else line for line in block), *lines[last:], ""])
    compile(found, "<fault>", "exec")
    return found
