"""Import rules between the packages of skdp, read from the import statements (docs/architecture.md).

A module is a file or a folder directly in a package. The modules of skdp and of accounting have layers; no package has
cyclic imports. Run with ``-s`` to print the layers, and for each package the number of modules, the depth of the import
graph and its number of edges.
"""

from __future__ import annotations

import ast
import functools
import pathlib
import re

import pytest

import skdp.base

ROOT = pathlib.Path(skdp.__file__).parent
LAYERS = {
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
    """Imports between the modules of a package, without imports from outside of it."""
    inside = tuple(filter(None, package.split(".")))
    prefix, found = [*("skdp", *inside)], set()
    for parts in FILES:
        if parts[: len(inside)] != inside or parts[len(inside)] == "__init__":
            continue
        for name in imports(parts):
            used = name.split(".")
            if used[: len(prefix)] == prefix and len(used) > len(prefix) and used[len(prefix)] in modules_of(package):
                found.add((parts[len(inside)], used[len(prefix)]))
    return {(user, used) for user, used in found if user != used}


def modules_of(package):
    inside = tuple(filter(None, package.split(".")))
    below = {parts[len(inside)] for parts in FILES if parts[: len(inside)] == inside and len(parts) > len(inside)}
    return below - {"__init__"}


def depth(package):
    """Modules on the longest path of imports; raises RecursionError for cyclic imports."""
    uses = edges(package)

    @functools.cache
    def below(module):
        return 1 + max((below(used) for user, used in uses if user == module), default=0)

    return max(below(module) for module in modules_of(package))


def test_every_module_has_a_layer():
    for package in PACKAGES:
        print(f"\nskdp{'.' * bool(package)}{package}: {len(modules_of(package))} modules, depth {depth(package)}, "
              f"{len(edges(package))} edges")  # fmt: skip
    for package in LAYERS:
        listed = [module for layer in LAYERS[package] for module in layer]
        assert sorted(listed) == sorted(modules_of(package)), (
            "add the module to a layer of this test and to docs/architecture.md"
        )
        for level, layer in reversed(list(enumerate(LAYERS[package]))):
            print(f"  {level:2} {'  '.join(layer)}")


def test_modules_import_downward_or_within_layer():
    for package in LAYERS:
        level = {module: number for number, layer in enumerate(LAYERS[package]) for module in layer}
        upward = [f"{user} imports {used}" for user, used in sorted(edges(package)) if level[user] < level[used]]
        assert not upward, package


def test_packages_have_no_cyclic_imports():
    for package in PACKAGES:
        remaining, graph = modules_of(package), edges(package)
        while free := {
            name for name in remaining if not any(user == name and used in remaining for user, used in graph)
        }:
            remaining -= free
        assert not remaining, f"cyclic imports among {sorted(remaining)} of {package}"


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
    "packages and modules of skdp": (29, lambda: len(modules_of(""))),
    "levels of skdp": (9, lambda: depth("")),
    "imports between modules of skdp": (112, lambda: len(edges(""))),
    "modules of accounting": (11, lambda: len(modules_of("accounting"))),
    "levels of accounting": (9, lambda: depth("accounting")),
    "imports between modules of accounting": (37, lambda: len(edges("accounting"))),
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
"""Size limits of the design. Most of them are reached, so an addition must replace something."""


@pytest.mark.parametrize("rule", RULES)
def test_design_count_does_not_grow(rule):
    most, count = RULES[rule]
    found = count()
    assert found <= most, f"{rule}: {found}, at most {most}: remove some, or increase the limit and state the reason"


def test_the_docstring_of_a_package_names_its_modules():
    """A line "- `name`: ..." for each module, in packages with more than three modules."""
    for package in filter(None, PACKAGES):
        text = ast.get_docstring(ast.parse(FILES[(*package.split("."), "__init__")].read_text()))
        named = re.findall(r"^- `(\w+)`", text, re.MULTILINE)
        modules = modules_of(package) - {"__main__"}
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
