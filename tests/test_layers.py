"""The floors of the house: who may import whom, read from the import statements (docs/architecture.md).

A room is a file or a folder directly under a package. Those of skdp and of accounting have floors; in every package
imports make no circle. Run with ``-s`` to see the floors, and for each package how many rooms there are, how deep they
lie and how many arrows (pairs of rooms with an import) join them.
"""

from __future__ import annotations

import ast
import functools
import pathlib

import skdp

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


def test_the_house_stays_small():
    """Rooms, depth and arrows are written down: what adds to them changes this line, and is seen in a review."""
    found = {package: (len(rooms(package)), depth(package), len(edges(package))) for package in ("", "accounting")}
    assert found == {"": (29, 9, 112), "accounting": (11, 9, 37)}


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
