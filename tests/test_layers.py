"""The floors of the house: who may import whom, read from the import statements (docs/architecture.md).

A room is a file or a folder directly under a package. Those of skdp and of accounting have floors; in every package
imports make no circle. Run with ``-s`` to see the floors, and for each package how many rooms there are, how deep they
lie and how many arrows (pairs of rooms with an import) join them.
"""

from __future__ import annotations

import ast
import functools
import pathlib
import re

import pytest

import skdp.base

ROOT = pathlib.Path(skdp.__file__).parent
FLOORS = {
    "": (
        ("_kernels", "exceptions", "testing", "warm_up"),
        ("accounting",),
        ("_checks",),
        ("mechanisms", "report"),
        ("base",),
        ("_dpsgd", "decomposition", "image", "metrics", "naive_bayes", "pipeline", "preprocessing"),
        ("cluster", "datasets", "export", "inspection", "model_selection", "neural_network", "statistics", "synthesis"),
        ("ensemble", "linear_model", "plotting"),
        ("audit", "tabular"),
    ),
    "accounting": (
        ("events",),
        ("formulas",),
        ("releases",),
        ("rdp",),
        ("classic", "pld"),
        ("methods",),
        ("statements",),
        ("calibration", "ledger"),
        ("__main__",),
    ),
}
ONLY = {
    "numba": "_kernels",
    "llvmlite": "_kernels",
    "cryptography": "mechanisms.streams",
    "dask": "_dpsgd.dask",
    "onnx": "export",
    "skl2onnx": "export",
}
WITHOUT_SKLEARN = {"exceptions", "_kernels", "accounting", "mechanisms"}
FILES = {path.relative_to(ROOT).with_suffix("").parts: path for path in sorted(ROOT.rglob("*.py"))}
PACKAGES = sorted({".".join(parts[:-1]) for parts in FILES if parts[-1] == "__init__"})


@functools.cache
def imports(parts, *, at_import_time=False):
    """Dotted names of what a file imports, relative ones resolved; `from a import b` gives a.b."""
    tree, found = ast.parse(FILES[parts].read_text()), []
    for node in ast.walk(tree) if not at_import_time else tree.body:
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ("skdp", *parts)[: -node.level] if node.level else ()
            found += [".".join([*base, *filter(None, [node.module]), alias.name]) for alias in node.names]
    return found


def edges(package):
    """Who imports whom among the rooms of a package; ours to others outside of it are no matter here."""
    inside = tuple(filter(None, package.split(".")))
    prefix, found = [*("skdp", *inside)], set()
    for parts in FILES:
        if parts[: len(inside)] != inside or parts[len(inside)] == "__init__":
            continue
        for name in imports(parts):
            used = name.split(".")
            if used[: len(prefix)] == prefix and len(used) > len(prefix) and used[len(prefix)] in rooms(package):
                found.add((parts[len(inside)], used[len(prefix)]))
    return {(user, used) for user, used in found if user != used}


def rooms(package):
    inside = tuple(filter(None, package.split(".")))
    below = {parts[len(inside)] for parts in FILES if parts[: len(inside)] == inside and len(parts) > len(inside)}
    return below - {"__init__"}


def depth(package):
    """Rooms on the longest path of imports; raises RecursionError where there is a circle."""
    uses = edges(package)

    @functools.cache
    def below(room):
        return 1 + max((below(used) for user, used in uses if user == room), default=0)

    return max(below(room) for room in rooms(package))


def test_every_room_has_a_floor():
    for package in PACKAGES:
        print(f"\nskdp{'.' * bool(package)}{package}: {len(rooms(package))} rooms, depth {depth(package)}, "
              f"{len(edges(package))} arrows")  # fmt: skip
    for package in FLOORS:
        listed = [room for floor in FLOORS[package] for room in floor]
        assert sorted(listed) == sorted(rooms(package)), "place it on a floor of this test and of docs/architecture.md"
        for level, floor in reversed(list(enumerate(FLOORS[package]))):
            print(f"  {level:2} {'  '.join(floor)}")


def test_rooms_import_downward_or_within_their_floor():
    for package in FLOORS:
        level = {room: number for number, floor in enumerate(FLOORS[package]) for room in floor}
        upward = [f"{user} imports {used}" for user, used in sorted(edges(package)) if level[user] < level[used]]
        assert not upward, package


def test_there_is_no_circle():
    for package in PACKAGES:
        remaining, graph = rooms(package), edges(package)
        while free := {
            name for name in remaining if not any(user == name and used in remaining for user, used in graph)
        }:
            remaining -= free
        assert not remaining, f"a circle among {sorted(remaining)} of {package}"


def trees():
    return [ast.parse(path.read_text()) for path in FILES.values()]


def nodes(kind):
    return [node for tree in trees() for node in ast.walk(tree) if isinstance(node, kind)]


def n_methods(found):
    return sum(isinstance(node, ast.FunctionDef) for node in found.body)


def n_raised(name):
    return sum(name in ast.unparse(node.exc) for node in nodes(ast.Raise) if node.exc is not None)


def n_small_files_of_one_importer():
    users = {}
    for parts in FILES:
        for name in {imported.removeprefix("skdp.").rpartition(".")[0] for imported in imports(parts)}:
            users.setdefault(name, set()).add(parts)
    small = [parts for parts, path in FILES.items() if path.read_text().count("\n") < 60 and parts[-1] != "__init__"]
    return sum(len(users.get(".".join(parts), ())) == 1 for parts in small)


def parameters():
    public = [getattr(skdp, name) for name in dir(skdp)]
    return [len(each._get_param_names()) for each in public if isinstance(each, type) and hasattr(each, "get_params")]


def n_lines_of_code():
    """Lines that are neither blank nor comments nor docstrings."""
    n = 0
    for path in FILES.values():
        text = path.read_text()
        strings = [
            node for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        ]  # fmt: skip
        skipped = {line for node in strings for line in range(node.lineno, node.end_lineno + 1)}
        lines = enumerate(text.splitlines(), 1)
        n += sum(number not in skipped and bool(line.strip()) and line.strip()[0] != "#" for number, line in lines)
    return n


RULES = {
    "packages and modules of skdp": (29, lambda: len(rooms(""))),
    "levels of skdp": (9, lambda: depth("")),
    "import arrows of skdp": (112, lambda: len(edges(""))),
    "modules of accounting": (11, lambda: len(rooms("accounting"))),
    "levels of accounting": (9, lambda: depth("accounting")),
    "import arrows of accounting": (37, lambda: len(edges("accounting"))),
    "files": (252, lambda: len(FILES)),
    "lines of code": (39_200, n_lines_of_code),
    "files of more than 600 lines": (3, lambda: sum(path.read_text().count("\n") > 600 for path in FILES.values())),
    "files of fewer than 60 lines that one file imports": (3, n_small_files_of_one_importer),
    "classes of more than 20 methods": (5, lambda: sum(n_methods(node) > 20 for node in nodes(ast.ClassDef))),
    "places that raise NotImplementedError": (10, lambda: n_raised("NotImplementedError")),
    "parameters of a constructor": (34, lambda: max(parameters())),
    "estimators with more than 20 parameters": (6, lambda: sum(n > 20 for n in parameters())),
    "names of skdp.base": (25, lambda: len(skdp.base.__all__)),
}
"""What is counted, with the most that is allowed. Most of these are reached: what is added replaces something."""


@pytest.mark.parametrize("rule", RULES)
def test_a_count_of_the_design_does_not_grow(rule):
    most, count = RULES[rule]
    found = count()
    assert found <= most, f"{rule}: {found}, at most {most}: remove some, or raise the number here and say why"


def test_the_docstring_of_a_package_names_its_modules():
    """`- `name`: what it has`, in each package of more than three; a reader looks there first."""
    for package in filter(None, PACKAGES):
        text = ast.get_docstring(ast.parse(FILES[(*package.split("."), "__init__")].read_text()))
        named = re.findall(r"^- `(\w+)`", text, re.MULTILINE)
        modules = rooms(package) - {"__main__"}
        assert sorted(named) == sorted(modules) or len(modules) <= 3, package


def test_heavy_imports_stay_where_they_belong():
    for parts in FILES:
        for name in imports(parts):
            package, where = name.split(".")[0], ".".join(parts)
            assert f"{where}.".startswith(f"{ONLY.get(package, where)}."), f"{where} imports {package}"
            assert package != "sklearn" or parts[0] not in WITHOUT_SKLEARN, f"{where} imports {package}"


def test_accounting_could_stand_alone():
    for parts in FILES:
        if parts[0] == "accounting":
            for name in imports(parts):
                if name.startswith("skdp"):
                    assert name.split(".")[1] in ("accounting", "exceptions"), f"{'/'.join(parts)} imports {name}"


def test_importing_skdp_imports_nothing_of_it():
    assert not [name for name in imports(("__init__",), at_import_time=True) if name.startswith("skdp")]


def test_no_private_import_of_sklearn():
    for parts in FILES:
        for name in imports(parts):
            top, *rest = name.split(".")
            assert top != "sklearn" or not any(part.startswith("_") for part in rest), f"{'/'.join(parts)}: {name}"


def test_classes_and_aliases_have_one_name_each():
    """No class, type alias or public constant is defined twice in the library."""
    places = {}
    for parts, path in FILES.items():
        for node in ast.parse(path.read_text()).body:
            names = []
            if isinstance(node, ast.ClassDef):
                names = [node.name]
            elif isinstance(node, ast.Assign):
                names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            for name in names:
                if not name.startswith("_"):
                    places.setdefault(name, []).append("/".join(parts))
    assert not {name: found for name, found in places.items() if len(found) > 1}
