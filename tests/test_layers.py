"""The floors of the house: who may import whom, read from the import statements (docs/architecture.md).

A room is a file or a folder directly under a package. Run with ``-s`` to see the floors of each, and how many rooms
there are, how deep they lie and how many arrows (pairs of rooms with an import) join them.
"""

from __future__ import annotations

import ast
import functools
import pathlib

import pytest

import skdp

ROOT = pathlib.Path(skdp.__file__).parent
FLOORS = {
    "": (
        ("exceptions",),
        ("_config", "_validation", "accounting"),
        ("_blas", "budget", "_kernels", "_random"),
        ("mechanisms", "_sampling", "_gram", "_spectrum"),
        ("_fitting",),
        ("_training", "_report"),
        ("_distributed", "_streaming", "report"),
        ("base",),
        ("_gradient", "_least_squares", "decomposition", "preprocessing"),
        ("datasets", "ensemble", "image", "linear_model", "naive_bayes", "neural_network", "pipeline", "synthesis"),
        ("_search", "tabular"),
        ("metrics", "model_selection", "plotting"),
    ),
    "accounting": (
        ("events", "numeric"),
        ("gaussian", "noise_events", "quadrature", "response", "sampling_events", "tries"),
        ("composition", "dominating", "groups", "interop"),
        ("releases",),
        ("rdp",),
        ("pld", "classic"),
        ("refusals",),
        ("methods",),
        ("calibration", "compare", "curves", "ledger"),
    ),
    "accounting.pld": (
        ("pairs", "stick"),
        ("discrete", "profiles", "single"),
        ("simple",),
        ("bounded",),
        ("tilting",),
        ("saddle",),
        ("grid",),
        ("lower_bounds", "resolution"),
        ("curves",),
        ("directions",),
        ("grouped", "reading"),
        ("epsilon",),
        ("interval",),
    ),
    "accounting.dominating": (("atoms",), ("cells",), ("noise",), ("pairs",)),
    "accounting.rdp": (("mechanisms", "selection"), ("allocation", "sampled"), ("others",), ("rdp",)),
    "accounting.classic": (("composition", "gdp", "moments"),),
    "accounting.calibration": (("noise",), ("joint", "selection")),
    "accounting.ledger": (
        ("filters", "report", "rounding"),
        ("charges", "odometer"),
        ("ledger", "serial"),
        ("affordable",),
        ("admission",),
        ("log",),
        ("figures", "placing", "sqlite", "tables"),
        ("store",),
        ("accountant",),
        ("resolve",),
    ),
    "_kernels": (
        ("caching",),
        (
            "binomial",
            "bits",
            "critic",
            "dense",
            "gram",
            "grouping",
            "linear",
            "losses",
            "one_hot",
            "row_scales",
            "scattering",
            "sparse_products",
            "tiles",
            "trees",
            "updates",
        ),
        ("columns", "spans"),
    ),
    "_training": (
        (
            "averaging",
            "defaults",
            "generator",
            "grouped",
            "groups",
            "linear",
            "model",
            "network",
            "noise",
            "noise_stages",
            "one_hot",
            "one_hot_defaults",
            "optimizers",
            "plan",
            "progress",
            "run_lock",
            "threads",
            "wide_linear",
        ),
        ("checkpoint", "columns", "critic"),
        ("convolutions", "loop"),
        ("adversarial",),
    ),
    "_gradient": (("plan",), ("estimator",), ("classifier", "linear", "regressor"), ("one_hot",)),
    "neural_network": (("network",), ("classifier", "regressor")),
    "_least_squares": (("moments",), ("estimators",)),
    "_search": (("scores",), ("candidates",), ("plan",), ("search",)),
    "_fitting": (
        (
            "arithmetic",
            "cells",
            "class_weight",
            "default_delta",
            "foreign_parameters",
            "leaks",
            "made_up",
            "norms",
            "payment",
            "protocols",
            "weights",
        ),
        ("private_step", "releases", "row_wise"),
        ("public_rules", "rows", "totals"),
        ("bounded_targets", "public_steps", "sources"),
        ("compositions", "running"),
        ("findings", "joint_fit"),
        ("stack",),
        ("callers",),
        ("inspections",),
    ),
    "_distributed": (("engine", "graphs", "lots"), ("partitions",), ("model",), ("rows",)),
    "_streaming": (("ahead", "columns", "files", "model", "parquet"), ("blocks",), ("memory_map",), ("arrow",)),
    "_report": (
        ("values", "price"),
        ("releases",),
        ("facts", "wording"),
        ("checklists",),
        ("sections",),
        ("as_text", "as_html"),
        ("document",),
        ("reported",),
    ),
    "ensemble": (
        ("growth", "offset", "people", "target_units"),
        ("trees",),
        ("importances",),
        ("embedding",),
        ("linear",),
        ("classifier", "regressor"),
    ),
    "datasets": (("_archives", "_pickles", "_tables"), ("cifar", "mnist"), ("census",)),
    "image": (
        ("filters", "public_images", "reading"),
        ("base", "scattering"),
        ("rows",),
        ("features", "patches"),
        ("patch_transformer", "transformer"),
    ),
    "synthesis": (
        ("adversaries", "clipped_normals", "generator", "levels", "row_blocks", "tables"),
        ("class_mixture", "denoising", "frames", "row_sums", "selection"),
        ("class_measurement", "mixture", "wgan"),
        ("measurement",),
        ("class_generator", "marginals"),
    ),
    "plotting": (("_axes", "_study"), ("accountants", "budget", "coefficients", "trade_off", "utility")),
    "preprocessing": (
        ("cells", "readings", "threshold", "yaml_text"),
        ("columns", "edges", "kinds", "octaves"),
        ("buying", "combinations", "draft"),
        ("blocks", "purchase", "schema"),
        ("bounds", "matching", "sums", "weight_bound"),
        ("vectorizer",),
        ("categories", "imputer", "quantiles", "scaler"),
    ),
}
SKLEARN = {
    *("_training", "_fitting", "base", "_gradient", "_least_squares", "decomposition", "linear_model"),
    *("neural_network", "pipeline", "_search", "model_selection", "datasets", "ensemble", "plotting", "preprocessing"),
    *("tabular", "_report", "naive_bayes", "synthesis", "metrics", "image"),
}
ONLY = {
    "numba": {"_kernels"},
    "llvmlite": {"_kernels"},
    "cryptography": {"_random"},
    "sklearn": SKLEARN,
    "dask": {"_distributed"},
}
FILES = {path.relative_to(ROOT).with_suffix("").parts: path for path in sorted(ROOT.rglob("*.py"))}


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


@pytest.mark.parametrize("package", FLOORS)
def test_every_room_has_a_floor(package):
    listed = [room for floor in FLOORS[package] for room in floor]
    assert sorted(listed) == sorted(rooms(package)), "place it on a floor of this test and of docs/architecture.md"
    print(f"\nskdp{'.' * bool(package)}{package}: {len(listed)} rooms, depth {depth(package)}, "
          f"{len(edges(package))} arrows")  # fmt: skip
    for level, floor in reversed(list(enumerate(FLOORS[package]))):
        print(f"  {level:2} {'  '.join(floor)}")


def test_every_package_has_floors():
    packages = {".".join(parts[:-1]) for parts in FILES if parts[-1] == "__init__"}
    assert packages == set(FLOORS)


@pytest.mark.parametrize("package", FLOORS)
def test_rooms_import_downward_or_within_their_floor(package):
    level = {room: number for number, floor in enumerate(FLOORS[package]) for room in floor}
    upward = [f"{user} imports {used}" for user, used in sorted(edges(package)) if level[user] < level[used]]
    assert not upward


@pytest.mark.parametrize("package", FLOORS)
def test_there_is_no_circle(package):
    remaining, graph = rooms(package), edges(package)
    while free := {name for name in remaining if not any(user == name and used in remaining for user, used in graph)}:
        remaining -= free
    assert not remaining, f"a circle among {sorted(remaining)}"


def test_the_house_stays_small():
    """Rooms, depth and arrows are written down: what adds to them changes this line, and is seen in a review."""
    found = {package: (len(rooms(package)), depth(package), len(edges(package))) for package in ("", "accounting")}
    assert found == {"": (36, 9, 170), "accounting": (22, 9, 86)}


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
