"""The front door: what an import costs, which names there are, and whether the written examples run."""

import doctest
import importlib
import importlib.metadata
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import skdp

ROOT = Path(__file__).parents[1]


HEAVY = ("numpy", "scipy", "sklearn", "numba", "cryptography")
HEAVY += ("pandas", "polars", "matplotlib", "tqdm", "dp_accounting", "scipy.optimize", "scipy.stats")
STEPS = f"""
import json, sys
def heavy():
    return [name for name in {HEAVY!r} if name in sys.modules]
found = {{}}
import skdp; dir(skdp); skdp.__version__
found["package"] = heavy()
import skdp.accounting as a; skdp.PrivacyAccountant; a.get_epsilon(a.GaussianDpEvent(3.0), 1e-5)
import skdp.plotting
found["accounting and plots"] = heavy()
import sklearn.linear_model
found["sklearn"] = heavy()
from skdp import DPLogisticRegression, PrivacyAccountant
import skdp
found["estimators"] = heavy()
found["asked for"] = [DPLogisticRegression.__module__, repr(PrivacyAccountant().history), skdp.datasets.__name__]
import importlib, pkgutil
import skdp.linear_model
import skdp._kernels
from numba.core.dispatcher import Dispatcher
found["signatures"] = {{
    name: len(kernel.signatures)
    for part in pkgutil.iter_modules(skdp._kernels.__path__)
    for name, kernel in vars(importlib.import_module("skdp._kernels." + part.name)).items()
    if isinstance(kernel, Dispatcher)
}}
names = {{}}
exec("from skdp import *", names)
found["star"] = list(names)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found():
    """What a fresh interpreter has loaded, and which names there are, as more and more is imported."""
    done = subprocess.run(
        [sys.executable, "-c", STEPS], cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_importing_the_package_loads_nothing_else(found):
    assert found["package"] == []


def test_importing_accounting_and_plots_loads_numpy_and_scipy_only(found):
    assert set(found["accounting and plots"]) <= {"numpy", "scipy"}


def test_importing_the_estimators_loads_no_extra(found):
    """What scikit-learn itself loads where it is there (pandas, for one) is no doing of ours."""
    assert set(found["estimators"]) <= {"numba", "cryptography", *found["sklearn"]}


def test_importing_the_estimators_compiles_nothing(found):
    assert len(found["signatures"]) > 5
    assert set(found["signatures"].values()) == {0}


def test_public_names_load_when_asked_for(found):
    assert found["asked for"] == ["skdp.linear_model.logistic", "()", "skdp.datasets"]


def test_every_public_name_is_what_the_table_says():
    for name in skdp._PUBLIC:
        value = getattr(skdp, name)
        assert value is getattr(importlib.import_module(skdp._PUBLIC[name]), name)
        assert value.__name__ == name
        assert name in skdp.__all__
        assert name in dir(skdp)


def test_modules_can_be_reached_from_the_package():
    for name in skdp._MODULES:
        assert getattr(skdp, name) is importlib.import_module(f"skdp.{name}")
        assert name in dir(skdp)


def test_star_import_gives_the_public_names(found):
    assert set(found["star"]) >= {name for name in skdp.__all__ if not name.startswith("_")}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("LogisticRegression", "DPLogisticRegression"),
        ("DPRandomForestClassifier", "DPRandomTreesClassifier"),
        ("PrivacyAcountant", "PrivacyAccountant"),
        ("modelselection", "model_selection"),
        ("numpy", None),
    ],
)
def test_an_unknown_name_brings_the_one_that_was_meant(name, meant):
    told = "" if meant is None else f". Did you mean '{meant}'?"
    with pytest.raises(AttributeError, match=rf"\Amodule 'skdp' has no attribute '{name}'{re.escape(told)}\Z"):
        getattr(skdp, name)
    with pytest.raises(ImportError, match="DPRandomForest"):
        from skdp import DPRandomForest  # noqa: F401


def test_every_estimator_has_a_name_at_the_top():
    """Found in the modules, so that a new one is missed here."""
    from sklearn.base import BaseEstimator

    modules = [importlib.import_module(f"skdp.{name}") for name in skdp._MODULES]
    public = {name: getattr(module, name) for module in modules for name in getattr(module, "__all__", ())}
    found = {name for name, value in public.items() if isinstance(value, type) and issubclass(value, BaseEstimator)}
    made = ("Pipeline", "Evaluation", "Comparison")  # by functions
    estimators = {name for name in found if not name.endswith(made)}
    assert estimators >= {"DPPCA", "DPRandomTreesClassifier", "ScatteringTransformer"}
    assert estimators <= set(skdp.__all__)


OLD_WORDS = {
    "bought", "buy", "ceiling", "figures", "gaps", "heard", "ledger", "paid", "price", "prices", "purchase", "refusal",
    "refuse", "share", "shares", "tries", "unpaid",
}  # fmt: skip
"""Words in names for which the field has terms."""


def parameters_of(value):
    try:
        return inspect.signature(getattr(value, "__func__", value)).parameters
    except (TypeError, ValueError):
        return ()


def test_public_names_have_the_terms_of_the_field():
    """Of functions and classes, their parameters, and the methods of classes with theirs."""
    modules = [skdp, *(importlib.import_module(f"skdp.{name}") for name in ("base", *skdp._MODULES))]
    public = {name: getattr(module, name) for module in modules for name in module.__all__}
    names = {each for name, value in public.items() for each in (name, *parameters_of(value))}
    for value in filter(inspect.isclass, public.values()):
        members = {name: inspect.getattr_static(value, name) for name in dir(value) if not name.startswith("_")}
        names |= {each for name, member in members.items() for each in (name, *parameters_of(member))}
    assert len(names) > 500
    assert not [name for name in names if OLD_WORDS & set(name.lower().split("_"))]


def test_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+\w*", skdp.__version__)
    try:
        installed = importlib.metadata.version("skdp")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("skdp is not installed here, only importable")
    assert installed == skdp.__version__


# --- docstrings -------------------------------------------------------------------------------------------------------


def module_names():
    """Every module of the package."""
    files = sorted((ROOT / "skdp").rglob("*.py"))
    return [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in files]


def with_examples():
    """Modules in which examples are written."""
    return [name for name in module_names() if ">>> " in inspect.getsource(importlib.import_module(name))]


@pytest.mark.parametrize("first", range(6))
def test_written_examples_run(first):
    for name in with_examples()[first::6]:
        module = importlib.import_module(name)
        failed, tried = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        assert failed == 0 < tried, name


def test_every_module_has_a_docstring():
    assert [name for name in module_names() if not importlib.import_module(name).__doc__] == []


def test_the_oldest_versions_are_tested():
    """`make oldest` installs what setup.py calls the oldest."""
    required = (ROOT / "setup.py").read_text().split("install_requires=[")[1].split("]")[0]
    floors = dict(re.findall(r'"([a-z-]+)>=([0-9.]+)', required))
    pins = dict(re.findall(r"^([a-z-]+)==([0-9.]+)$", (ROOT / "tests" / "oldest.txt").read_text(), flags=re.MULTILINE))
    assert len(floors) == 8
    for name, floor in floors.items():
        assert f"{pins[name]}.".startswith(f"{floor}."), f"{name}: setup.py says {floor}, oldest.txt {pins[name]}"


def test_workflows_install_what_has_a_hash():
    """All that setup.py names, of one version each for a system and a Python, with hashes."""
    pins = ROOT / ".github" / "requirements.txt"
    if not pins.exists():
        pytest.skip("an installed package has no workflows")
    lines = re.split(r"\n(?=\S)", pins.read_text(encoding="utf-8").strip())
    assert all(re.match(r"[\w.-]+==\S+ ", line) and "--hash=sha256:" in line for line in lines)
    pinned = {line.partition("==")[0] for line in lines}
    named = re.findall(r'"([A-Za-z][\w.-]*)(?:\[[\w,]+\])?[<>=]=', (ROOT / "setup.py").read_text(encoding="utf-8"))
    assert len(named) > 20
    assert {re.sub(r"[-_.]+", "-", each).lower() for each in named} <= pinned
