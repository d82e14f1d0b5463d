"""Import rules between the packages of skdp, and which modules draw noise and charge, read from their syntax trees.

A module is a file or a folder directly in a package. The modules of skdp and of accounting have layers; no package has
cyclic imports. Run with ``-s`` to print the layers, and for each package the number of modules, the depth of the import
graph and its number of edges.
"""

import ast
import functools
import pathlib
import re
import sys

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
DIRECT_RELEASES = {
    "_dpsgd.loop", "_dpsgd.solver", "base.fit", "cluster.noisy_tree", "linear_model.newton",
    "metrics.histogram_evaluation", "model_selection.search", "preprocessing.column_sums",
    "preprocessing.histogram_query", "synthesis.class_moments", "synthesis.marginals.noisy_tables",
    "synthesis.pair_quality", "synthesis.wgan",
}  # fmt: skip
"""Modules that call a mechanism themselves; all others release by the fit object or by one of these."""
PRIVATE_CALLS = {
    "add noise": (
        {"_add_noise", "add_normals", "noisy", "normals_from_words"},
        {"mechanisms.gaussian", "mechanisms.streams"}
        | {"synthesis.class_moments", "synthesis.marginals.noisy_tables"},  # their `_add_noise` calls a mechanism
    ),
    "create a mechanism": (
        {"DiscreteGaussianMechanism", "DiscreteLaplaceMechanism", "GaussianMechanism", "for_epsilon", "near"},
        DIRECT_RELEASES - {"_dpsgd.loop", "linear_model.newton"}
        | {"_dpsgd.plan", "preprocessing.bounds", "statistics.table_release"},
    ),
    "release a value": (
        {"release", "released"},
        DIRECT_RELEASES
        | {"cluster.kmeans", "decomposition", "ensemble.isolation_forest", "ensemble.leaf_model", "ensemble.regressor"}
        | {"linear_model.normal_equations", "mechanisms.gaussian", "naive_bayes", "preprocessing.bounds"}
        | {"preprocessing.categories", "preprocessing.column_estimates", "preprocessing.imputer"}
        | {"preprocessing.quantiles", "statistics.table_release"}
        | {"_dpsgd.checkpoint", "accounting.ledger.admission"},  # locks
    ),
    "make a root stream": (
        {"SecretStream", "from_random_state", "root_stream"},
        {"_dpsgd.dask.partitions", "_dpsgd.models.duplicate_rows", "base.budget", "base.fit", "mechanisms.gaussian"}
        | {"mechanisms.streams", "model_selection.private_split", "model_selection.whole_fit"}
        | {"synthesis.marginals.sampled_tables"},  # post-processing: the sampling error of synthetic rows
    ),
    "draw secret words": (
        {"add_counts", "poisson_rows", "subkey", "words"},
        {"_dpsgd.dask.partitions", "_dpsgd.models.duplicate_rows", "cluster.kmeans", "ensemble.isolation_forest"}
        | {"mechanisms.discrete_noise", "mechanisms.sampling", "mechanisms.streams", "model_selection.private_split"}
        | {"model_selection.search", "model_selection.whole_fit", "preprocessing.histogram_query"}
        | {"synthesis.adversaries", "synthesis.class_moments", "synthesis.critic", "synthesis.marginals.noisy_tables"},
    ),
    "charge an accountant": (
        {"keep_split", "record_rejection", "spend"},
        {"base.fit", "mechanisms.gaussian", "model_selection.private_split"}
        | {"plotting.budget", "plotting.utility"},  # accountants of their own, which compute a privacy cost
    ),
    "charge a fit": (
        {"charge"},
        {"_dpsgd.solver", "base.fit", "cluster.kmeans", "decomposition", "ensemble.isolation_forest"}
        | {"linear_model.normal_equations", "metrics.histogram_evaluation", "model_selection.cross_validation"}
        | {"model_selection.search", "model_selection.table_classifier", "naive_bayes", "pipeline.private_pipeline"}
        | {"plotting.utility", "preprocessing.bounds", "preprocessing.categories", "preprocessing.imputer"}
        | {"preprocessing.quantiles", "preprocessing.scaler", "preprocessing.vectorizer", "statistics.describer"}
        | {"synthesis.generator", "synthesis.pair_quality", "synthesis.wgan"},
    ),
    "state an event": (
        {f"{kind}DpEvent" for kind in ("DiscreteGaussian", "DiscreteLaplace", "EpsilonDelta", "Gaussian", "NoOp")}
        | {f"{kind}DpEvent" for kind in ("PoissonSampled", "RepeatAndSelect", "SelfComposed", "WorstOf")},
        {"_dpsgd.plan", "cluster.kmeans", "linear_model.normal_equations", "mechanisms.discrete_noise"}
        | {"mechanisms.gaussian", "mechanisms.sampling", "model_selection.candidates"}
        | {"model_selection.cross_validation", "model_selection.table_classifier", "plotting.utility"}
        | {"preprocessing.histogram_query", "preprocessing.imputer", "preprocessing.vectorizer"}
        | {"statistics.describer", "synthesis.marginals.noisy_tables", "synthesis.wgan"}
        | {"base.pipeline_issues"},  # of a message
    ),
    "record releases, with known keys": ({"RUNNING", "Transcript", "running"}, set()),
    "use another generator": (
        {"default_rng", "Generator", "RandomState", "SeedSequence", "urandom", "token_bytes", "token_hex"},
        {"_kernels.caching", "_checks.groups", "_dpsgd.checkpoint", "base.budget"}  # names and keys, no noise
        | {"mechanisms.release_log", "mechanisms.streams"}
        # Public seeds, simulated records, or post-processing of releases.
        | {"base.row_wise", "cluster.kmeans", "ensemble.embedding", "ensemble.isolation_forest", "ensemble.trees"}
        | {"image.features", "image.reading", "inspection", "mechanisms.second_moments", "metrics.regression"}
        | {"metrics.replicates", "pipeline.joint_fit", "statistics.hypothesis_tests", "statistics.survival"}
        | {
            "synthesis.class_moments",
            "synthesis.generator",
            "synthesis.marginals.noisy_tables",
            "synthesis.marginals.table_form",
            "warm_up",
        }
        | {"model_selection.rehearsal", "synthesis.marginals.column_levels"},
    ),
}
"""Operations of the trusted modules: names that are called or handed on, and the only modules that do so.

Audits and simulated data are exempt. See docs/trusted_modules.md.
"""
IN_ACCOUNTING = {"charge an accountant", "state an event", "use another generator"}
"""Operations of which `skdp.accounting` is exempt, too."""
ALSO_DATA = {"noisy", "released", "words"}
"""Names that attributes with data have as well."""
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


@functools.cache
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
    "imports between modules of skdp": (115, lambda: len(edges(""))),
    "modules of accounting": (11, lambda: len(modules_of("accounting"))),
    "levels of accounting": (9, lambda: depth("accounting")),
    "import arrows of accounting": (37, lambda: len(edges("accounting"))),
    "files": (256, lambda: len(FILES)),  # the adapter of data frames
    "lines of code": (39_728, n_lines_of_code),  # survival curves, plans, warnings of unsuitable schemas and bounds
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
    """Also imports within functions; dp-accounting is for conversions, and pandas for a frame that is asked for."""
    others = {"numpy", "scipy", "dp_accounting", "pandas", *sys.stdlib_module_names}
    for parts in FILES:
        if parts[0] == "accounting":
            for name in imports(parts):
                first, second, *_ = [*name.split("."), ""]
                inside = first == "skdp" and second in ("accounting", "exceptions")
                assert inside or first in others, f"{'/'.join(parts)} imports {name}"


def test_importing_skdp_imports_nothing_of_it():
    assert not [name for name in imports(("__init__",), at_import_time=True) if name.startswith("skdp")]


def calls_in(node, scope=()):
    """Enclosing function and names of each call: what is called, and methods that are its arguments."""
    for each in ast.iter_child_nodes(node):
        if isinstance(each, ast.Call):
            given = [*each.args, *(keyword.value for keyword in each.keywords)]
            names = {value.attr for value in given if isinstance(value, ast.Attribute)} - ALSO_DATA
            yield ".".join(scope), names | {getattr(each.func, "attr", getattr(each.func, "id", ""))}
        yield from calls_in(each, (*scope, each.name) if isinstance(each, ast.ClassDef | ast.FunctionDef) else scope)


@functools.cache
def calls():
    found = [(parts, tree) for parts, tree in zip(FILES, trees(), strict=True) if parts[0] not in ("audit", "datasets")]
    return [(".".join(parts), *call) for parts, tree in found for call in calls_in(tree)]


def callers(operation):
    """Modules and functions that call a name of an operation."""
    names, _ = PRIVATE_CALLS[operation]
    exempt = "accounting." if operation in IN_ACCOUNTING else " "
    return {(module, scope) for module, scope, used in calls() if names & used and not module.startswith(exempt)}


@pytest.mark.parametrize("operation", PRIVATE_CALLS)
def test_only_listed_modules_draw_noise_release_and_charge(operation):
    found = {module for module, _ in callers(operation)}
    assert found == PRIVATE_CALLS[operation][1], "review the caller; update this list and docs/trusted_modules.md"


@pytest.mark.parametrize("name", sorted(set.union(*(names for names, _ in PRIVATE_CALLS.values()))))
def test_calls_are_found_wherever_they_are(name):
    texts = [f"x.{name}(1)", f"{name}(1)", f"y = [x().{name}(each) for each in z]", f"lambda: x.{name}()"]
    texts += [] if name in ALSO_DATA else [f"partial(x.{name}, 1)", f"submit(key=x.{name})"]
    for text in texts:
        found = list(calls_in(ast.parse(f"class A:\n    def f(self):\n        {text}")))
        assert [scope for scope, names in found if name in names] == ["A.f"], text


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
