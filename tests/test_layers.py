"""The floors of the house: who may import whom, read from the import statements (docs/architecture.md).

A room is a file or a folder directly under a package. Run with ``-s`` to see the floors of each, and how many rooms
there are, how deep they lie and how many arrows (pairs of rooms with an import) join them.
"""

from __future__ import annotations

import ast
import functools
import pathlib

import skdp

ROOT = pathlib.Path(skdp.__file__).parent
FLOORS = {
    "": (
        ("_kernels", "_lazy", "_threads", "_typing", "exceptions"),
        ("accounting",),
        ("_checks", "budget"),
        ("_guard", "export", "mechanisms", "report"),
        ("_fit",),
        ("base", "image"),
        ("decomposition", "effects", "pipeline", "preprocessing"),
        ("_training", "cluster", "datasets", "evaluation", "model_selection", "naive_bayes"),
        ("audit", "calibration", "ensemble", "linear_model", "neural_network", "plotting", "synthesis"),
        ("metrics", "statistics", "tabular", "testing", "warm_up"),
    ),
    "_checks": (
        ("archives", "arithmetic", "cells", "leak_setting", "parameters", "protocols", "row_traits"),
        ("class_weight", "default_delta", "leaks", "readings", "rows", "weights"),
        ("notices", "sources", "table", "targets", "unit_runs", "units"),
        ("row_weights",),
    ),
    "_fit": (
        ("payment", "releases", "running", "saved_state", "step_traits"),
        ("conductor", "private_step"),
        ("joint_fit",),
    ),
    "_guard": (
        ("foreign_parameters", "rehearsal_rows", "totals"),
        ("row_wise",),
        ("public_rules",),
        ("public_steps",),
        ("meta_estimators",),
        ("findings",),
        ("foreign_fits",),
    ),
    "_kernels": (
        ("caching",),
        (
            "binomial",
            "bits",
            "columns",
            "critic",
            "dense",
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
        ("gram", "spans"),
    ),
    "_training": (
        (
            "averaging",
            "checkpoint",
            "models",
            "noise_kept",
            "noise_stages",
            "offset",
            "optimizers",
            "progress",
            "run_lock",
        ),
        ("dask", "plan", "streamed"),
        ("defaults", "loop", "run"),
        ("recipe", "run_fit", "task"),
        ("estimator", "recipes"),
        ("outputs",),
    ),
    "_training.dask": (("engine", "graphs", "lots"), ("partitions",), ("distributed_model",), ("dask_rows",)),
    "_training.models": (
        ("unit_layout",),
        ("bound_rows",),
        ("linear",),
        ("columns", "network", "one_hot", "wide_linear"),
        ("equal_rows",),
        ("merged_rows",),
    ),
    "_training.outputs": (("bounded", "classes"),),
    "_training.recipes": (("linear_recipe", "network_recipe"), ("lookups",)),
    "_training.streamed": (
        ("files", "named_columns", "prefetch", "streamed_model"),
        ("blocks", "parquet"),
        ("memory_map",),
        ("arrow",),
    ),
    "accounting": (
        ("events",),
        ("formulas",),
        ("dominating", "releases"),
        ("rdp",),
        ("classic", "pld"),
        ("methods",),
        ("curves",),
        ("targets",),
        ("calibration", "ledger"),
    ),
    "accounting.calibration": (("noise",), ("joint", "selection")),
    "accounting.classic": (("composition", "gdp", "moments"),),
    "accounting.dominating": (("atoms",), ("noise",), ("pairs",)),
    "accounting.events": (
        ("specifications",),
        ("noise_events",),
        ("groups",),
        ("kinds",),
        ("composition", "interop"),
    ),
    "accounting.formulas": (("numeric", "quadrature", "response"), ("gaussian", "selection_law")),
    "accounting.ledger": (
        ("filters", "report", "split"),
        ("charges", "odometer"),
        ("balance", "serial"),
        ("ledger",),
        ("admission",),
        ("log",),
        ("figures", "risk", "sqlite"),
        ("tables",),
        ("store",),
        ("accountant",),
    ),
    "accounting.pld": (
        ("pairs",),
        ("closed_forms", "profiles", "tilting"),
        ("grid",),
        ("reading",),
        ("directions",),
        ("epsilon",),
        ("lower_bounds",),
        ("label_tests",),
        ("trade_off",),
    ),
    "accounting.rdp": (("mechanisms", "selection"), ("sampled",), ("others",), ("rdp",)),
    "audit": (
        ("attack", "checks", "own_price", "published", "worst_case"),
        ("one_run", "result", "subjects"),
        ("parts",),
        ("replay",),
        ("many_runs",),
        ("auditor", "functions"),
    ),
    "datasets": (("_pickles", "_tables"), ("census", "cifar", "made_up", "mnist"), ("rehearsal",)),
    "effects": (("scores",), ("columns", "monotonic")),
    "ensemble": (
        ("growth", "people", "target_units"),
        ("trees",),
        ("importances", "leaf_tables"),
        ("embedding", "isolation"),
        ("trees_of_tables",),
        ("leaf_model",),
        ("classifier", "isolation_forest", "regressor"),
    ),
    "calibration": (
        ("score_maps", "table_classifier", "threshold_choice"),
        ("calibrated_classifier", "threshold_classifier"),
    ),
    "evaluation": (
        ("amounts", "error_metrics", "estimates", "scale"),
        ("binary_metrics", "replicates", "scored_rows"),
        ("figures",),
        ("binary_figures", "counted"),
        ("comparison", "multiclass", "regression"),
        ("one_vs_rest",),
        ("private_evaluation",),
    ),
    "export": (
        ("facts", "kinds", "onnx_graph", "skops_types"),
        ("onnx_foreign", "onnx_rows", "sklearn_objects"),
        ("onnx_table",),
        ("onnx_trees",),
        ("onnx_models", "onnx_steps"),
        ("onnx_model",),
        ("exported",),
    ),
    "image": (
        ("filters", "public_images", "reading"),
        ("base", "scattering"),
        ("rows",),
        ("features", "patches"),
        ("patch_transformer", "transformer"),
    ),
    "linear_model": (
        ("equations", "likelihoods"),
        ("scores",),
        ("inference",),
        ("coefficient_table", "newton_steps"),
        ("newton",),
        ("logistic", "normal_equations", "ordinal", "poisson"),
        ("least_squares",),
    ),
    "mechanisms": (
        ("exact_gaps", "rounded_normals", "row_products", "second_moments", "spectrum", "tape", "unit_shares"),
        ("streams",),
        ("additive", "sampling"),
        ("discrete_laplace", "gaussian"),
        ("discrete_gaussian", "unit_norms"),
    ),
    "model_selection": (
        ("candidates", "part_rows", "parts", "table_scores"),
        ("scores",),
        ("search_plan",),
        ("cross_validation", "search"),
        ("searches",),
    ),
    "cluster": (("rows",), ("noisy_moments", "noisy_steps"), ("noisy_tree",), ("clustering",), ("kmeans",)),
    "neural_network": (("classifier", "regressor"),),
    "plotting": (
        ("_axes", "_study"),
        ("accountants", "audit", "budget", "coefficients", "effects", "risk", "scores", "trade_off", "utility"),
    ),
    "preprocessing": (
        ("histograms", "schema"),
        ("purchasing_transformer", "remains"),
        ("bounds", "imputer", "scaler", "schema_buyer"),
        ("categories", "formula", "quantiles", "vectorizer"),
    ),
    "preprocessing.histograms": (
        ("cell_tree", "counts", "threshold"),
        ("edges", "powers_of_two"),
        ("purchase",),
        ("bought_bounds",),
        ("sums",),
    ),
    "preprocessing.schema": (
        ("date_parts", "draft", "yaml_text"),
        ("kinds",),
        ("blocks", "combinations"),
        ("table_schema",),
        ("matching",),
    ),
    "report": (
        ("price", "sentences", "values"),
        ("release_table", "sections"),
        ("as_html", "as_text", "report_data"),
        ("document",),
        ("reported",),
    ),
    "statistics": (
        ("cells", "pictures"),
        ("table_release",),
        ("column_figures", "describer"),
        ("pair_figures",),
        ("description",),
        ("describing", "single_figures"),
        ("hypothesis_tests",),
    ),
    "testing": (
        ("demands", "tables"),
        ("subjects",),
        ("charges", "copies", "refusals", "releases"),
        ("suite",),
    ),
    "synthesis": (
        ("combining", "generator"),
        ("class_mixture", "marginals"),
        ("gan", "linking", "metrics", "pair_quality", "synthesizing"),
    ),
    "synthesis.class_mixture": (
        ("clipped_normals", "row_blocks"),
        ("mixture", "row_sums"),
        ("noisy_moments",),
        ("class_generator",),
    ),
    "synthesis.gan": (
        ("generated_rows",),
        ("critic",),
        ("convolutions",),
        ("adversarial",),
        ("adversaries",),
        ("wgan",),
    ),
    "synthesis.marginals": (
        ("exchanges",),
        ("bin_shapes", "contingency_tables"),
        ("column_levels",),
        ("denoising", "pair_selection", "table_form"),
        ("conditions", "product_mixture"),
        ("noisy_tables",),
        ("bought_table", "redrawn_tables"),
        ("sampled_tables",),
        ("synthesizer",),
    ),
}
ONLY = {
    "numba": "_kernels",
    "llvmlite": "_kernels",
    "cryptography": "mechanisms.streams",
    "dask": "_training.dask",
    "onnx": "export.onnx_graph",
    "skl2onnx": "export.onnx_foreign",
}
WITHOUT_SKLEARN = {"exceptions", "_lazy", "_typing", "_threads", "_kernels", "accounting", "budget", "mechanisms"}
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


def test_every_room_has_a_floor():
    for package in FLOORS:
        listed = [room for floor in FLOORS[package] for room in floor]
        assert sorted(listed) == sorted(rooms(package)), "place it on a floor of this test and of docs/architecture.md"
        print(f"\nskdp{'.' * bool(package)}{package}: {len(listed)} rooms, depth {depth(package)}, "
              f"{len(edges(package))} arrows")  # fmt: skip
        for level, floor in reversed(list(enumerate(FLOORS[package]))):
            print(f"  {level:2} {'  '.join(floor)}")


def test_every_package_has_floors():
    packages = {".".join(parts[:-1]) for parts in FILES if parts[-1] == "__init__"}
    assert packages == set(FLOORS)


def test_rooms_import_downward_or_within_their_floor():
    for package in FLOORS:
        level = {room: number for number, floor in enumerate(FLOORS[package]) for room in floor}
        upward = [f"{user} imports {used}" for user, used in sorted(edges(package)) if level[user] < level[used]]
        assert not upward, package


def test_there_is_no_circle():
    for package in FLOORS:
        remaining, graph = rooms(package), edges(package)
        while free := {
            name for name in remaining if not any(user == name and used in remaining for user, used in graph)
        }:
            remaining -= free
        assert not remaining, f"a circle among {sorted(remaining)} of {package}"


def test_the_house_stays_small():
    """Rooms, depth and arrows are written down: what adds to them changes this line, and is seen in a review."""
    found = {package: (len(rooms(package)), depth(package), len(edges(package))) for package in ("", "accounting")}
    assert found == {"": (37, 11, 197), "accounting": (12, 9, 44)}


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
                    assert name.split(".")[1] in ("accounting", "exceptions", "_typing"), (
                        f"{'/'.join(parts)} imports {name}"
                    )


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
