"""The floors of the house: who may import whom, read from the import statements (docs/architecture.md)."""

from __future__ import annotations

import ast
import pathlib

import skdp

ROOT = pathlib.Path(skdp.__file__).parent
FLOORS = (
    ("exceptions", "_config", "_validation", "accounting", "budget"),
    ("_kernels", "_random", "mechanisms", "_sampling"),
    (
        "_plan",
        "_models",
        "_networks",
        "_gram",
        "_optimizers",
        "_averaging",
        "_checkpoint",
        "_run_lock",
        "_training",
        "_defaults",
        "_progress",
        "_releases",
    ),
    (
        *("_made_up", "_row_wise", "_public_rules", "_public_steps", "_running", "_callers"),
        *("_cells", "_input", "base", "_classifier", "linear_model", "neural_network", "decomposition", "pipeline"),
        *("_scores", "_candidates", "_search_plan", "_search", "model_selection"),
        *("datasets", "_census_tables", "_mnist", "plotting"),
    ),
)
FLOOR = {name: level for level, names in enumerate(FLOORS) for name in names}
ONLY = {"numba": {"_kernels"}, "cryptography": {"_random"}, "sklearn": set(FLOORS[-1])}
FILES = {path.relative_to(ROOT).with_suffix("").parts: path for path in sorted(ROOT.rglob("*.py"))}


def imports(parts, *, at_import_time=False):
    """Dotted names of what a file imports, relative ones resolved; `from a import b` gives a.b."""
    tree = ast.parse(FILES[parts].read_text())
    nodes = ast.walk(tree) if not at_import_time else iter(tree.body)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ("skdp", *parts)[: -node.level] if node.level else ()
            yield from (".".join([*base, *filter(None, [node.module]), alias.name]) for alias in node.names)


def edges():
    """Who imports whom among our modules; a package counts as one module."""
    for parts in FILES:
        for name in imports(parts):
            top, *rest = name.split(".")
            used = rest[0] if rest else "__init__"
            if top == "skdp" and parts != ("__init__",) and used != parts[0]:
                yield parts[0], used


def test_every_module_has_a_floor():
    unknown = {parts[0] for parts in FILES} - {"__init__"} - set(FLOOR)
    assert not unknown, f"place {sorted(unknown)} on a floor of this test and of docs/architecture.md"


def test_files_import_downward_or_within_their_floor():
    upward = [f"{user} imports {used}" for user, used in edges() if FLOOR[user] < FLOOR.get(used, len(FLOORS))]
    assert not upward


def test_there_is_no_circle():
    remaining, graph = set(FLOOR), set(edges())
    while free := {name for name in remaining if not any(user == name and used in remaining for user, used in graph)}:
        remaining -= free
    assert not remaining, f"a circle among {sorted(remaining)}"


def test_files_within_a_package_make_no_circle():
    for package in ("accounting", "_kernels"):
        inside = {parts for parts in FILES if parts[0] == package and parts[-1] != "__init__"}
        graph = {(parts[-1], name.split(".")[2]) for parts in inside for name in imports(parts)
                 if name.startswith(f"skdp.{package}.")}  # fmt: skip
        remaining = {parts[-1] for parts in inside}
        while free := {
            name for name in remaining if not any(user == name and used in remaining for user, used in graph)
        }:
            remaining -= free
        assert not remaining, f"a circle among {sorted(remaining)}"


def test_heavy_imports_stay_where_they_belong():
    for parts in FILES:
        for name in imports(parts):
            package = name.split(".")[0]
            assert parts[0] in ONLY.get(package, {parts[0]}), f"{'/'.join(parts)} imports {package}"


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
