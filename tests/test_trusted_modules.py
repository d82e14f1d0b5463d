"""The page docs/trusted_modules.md: its numbers, and that it has each function on which a guarantee depends."""

import ast
import re

import numpy as np
import pytest
import trusted_modules
from sklearn.pipeline import make_pipeline
from test_layers import PRIVATE_CALLS, callers

from skdp import DPMarginalSynthesizer, DPRidge, DPStandardScaler, PrivacyAccountant, allocate_budget
from skdp.accounting import calibration
from skdp.pipeline import joint_fit

MODULES = {each.name: each for each in trusted_modules.trusted_modules()}
TESTS = trusted_modules.ROOT / "tests"
UNTRUSTED_CALLERS = {
    ("_dpsgd.plan", "DPSGDPlan.carried"): "computes a standard deviation",
    ("base.pipeline_issues", "add_fits"): "states the privacy cost in a message",
    ("plotting.budget", "_running_totals"): "computes a privacy cost with an accountant of its own",
    ("synthesis.marginals.sampled_tables", "Redrawing.measure_again"): "post-processing: measures synthetic records",
}
"""Functions that call a name of `PRIVATE_CALLS` and are not trusted."""
UNTRUSTED_FAULTS = {
    "accounting.calibration": "epsilon is computed from the event after calibration",
    "audit.conformance": "a check",
}
"""Modules with injected faults that are not trusted."""
UNTRUSTED_GUARANTEES = {
    # They choose parameters of trusted code, or call it.
    "image.transformers.PatchTransformer", "image.transformers.ScatteringTransformer",
    "linear_model.least_squares.DPLinearRegression", "linear_model.least_squares.DPRidge",
    "model_selection.cross_validation.cross_validate", "model_selection.search.DPGridSearchCV",
    "plotting.utility.PrivacyUtilityDisplay.from_estimator", "preprocessing.bounds.dp_bounds",
    "statistics.describer.describe", "statistics.survival.private_survival",
    "synthesis.linking.HouseholdSynthesizer", "tabular.TabularPipeline",
    # They create an unfitted estimator, whose fit charges itself, or end a fit before it reads records.
    "export.plans.plan_cost", "export.plans.plan_from_json",
    # They receive released values, or attributes of fitted models.
    "export.onnx_model.to_onnx", "export.trusted_types.skops_types", "inspection.column_effects",
    "inspection.make_monotonic", "model_selection.calibrated_classifier.DPCalibratedClassifier",
    "model_selection.threshold_classifier.DPThresholdClassifier", "report.document.privacy_report",
    "synthesis.marginals.sampled_tables.Redrawing",
}  # fmt: skip
"""Objects whose docstrings have guarantees and that are not trusted."""


def is_trusted(name):
    """Whether a function or class, such as "base.fit.Fit.charge", is on the page."""
    module = max((each for each in MODULES if f"{name}.".startswith(f"{each}.")), key=len, default=None)
    if module is None:
        return False
    own = name[len(module) + 1 :]
    each = MODULES[module]
    # A class is on the page if one of its methods is.
    return each.trusts(own) or any(part.startswith(f"{own}.") for part in each.names)


def test_modules_and_names_on_the_page_exist_once():
    listed = trusted_modules.trusted_modules()
    assert len(listed) == len(MODULES) > 100
    for each in listed:
        missing = each.names - trusted_modules.scopes_of(each.name).keys()
        assert not missing, f"{each.name} has no {missing}"


def test_numbers_of_lines_are_those_of_the_code():
    wrong = {each.name: (each.lines, each.counted) for each in MODULES.values()}
    wrong = {name: (page, code) for name, (page, code) in wrong.items() if abs(page - code) > max(5, 0.02 * code)}
    assert not wrong, "run python tests/trusted_modules.py, which updates the page"
    page = trusted_modules.PAGE.read_text(encoding="utf-8")
    written, present = (
        [[float(number) for number in re.findall(r"[\d.]+", row.replace(",", ""))] for row in text.split("\n") if row]
        for text in (trusted_modules.MARKERS.search(page)[0], trusted_modules.summary(list(MODULES.values())))
    )
    assert len(written) == len(present)
    for before, now in zip(written, present, strict=True):
        assert before == pytest.approx(now, rel=0.02, abs=0.2), (
            "run python tests/trusted_modules.py, which updates the page"
        )


def test_lines_of_code_are_counted_without_docstrings_and_comments():
    own = trusted_modules.code_lines("testing")
    text = trusted_modules.text_of("testing").splitlines()
    assert 5 < len(own) < len(text)
    assert not [text[line - 1] for line in own if not text[line - 1].strip() or text[line - 1].startswith(("#", '"""'))]


def test_tests_on_the_page_exist():
    present = {path.name for path in TESTS.rglob("test_*.py")}
    assert not {test for each in MODULES.values() for test in each.tests} - present


def test_functions_that_draw_release_or_charge_are_on_the_page():
    operations = PRIVATE_CALLS.keys() - {"use another generator"}  # of which the list in test_layers.py has the reasons
    found = {caller for operation in operations for caller in callers(operation)}
    untrusted = {caller for caller in found if not is_trusted(".".join(filter(None, caller)))}
    assert untrusted == UNTRUSTED_CALLERS.keys()


def test_functions_with_injected_faults_are_on_the_page():
    found = set()
    for path in (TESTS / "mutants" / "table").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for key, rows in zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else ():
                module = ast.literal_eval(key).removeprefix("skdp.")
                found |= {(module, ast.literal_eval(row.elts[1])) for row in rows.elts}
    assert len(found) > 150
    untrusted = {module for module, name in found if not is_trusted(f"{module}.{name}".rstrip("."))}
    assert untrusted == UNTRUSTED_FAULTS.keys(), "add the function to docs/trusted_modules.md, or state the reason here"


def test_objects_with_guarantees_are_on_the_page():
    names = re.findall(r"^skdp\.(\S+)$", (TESTS / "guarantees.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(names) > 100
    untrusted = {name for name in names if not is_trusted(name)}
    assert untrusted == UNTRUSTED_GUARANTEES


def ridge(accountant):
    return DPRidge(y_bounds=(-1, 1), delta=1e-6, accountant=accountant)


MODELS = {
    "one release": ridge,
    "several releases": lambda accountant: DPMarginalSynthesizer(
        classes=[0, 1], bounds=(-1, 1), max_iter=2, delta=1e-6, accountant=accountant
    ),
    "pipeline": lambda accountant: allocate_budget(
        make_pipeline(DPStandardScaler(bounds=(-1, 1), accountant=accountant), ridge(accountant)), 1.0, delta=1e-6
    ),
}


@pytest.mark.parametrize("kind", MODELS)
def test_faults_of_calibration_are_in_epsilon(kind, monkeypatch):
    """Calibration is not trusted: with half of its noise, the fit and the accountant state the larger epsilon."""
    affordable, jointly = calibration._affordable, joint_fit.calibrate_jointly_to
    monkeypatch.setattr(calibration, "_memory", {})
    monkeypatch.setattr(calibration, "_affordable", lambda *given: affordable(*given) / 2.0)
    monkeypatch.setattr(joint_fit, "calibrate_jointly_to", lambda *a, **k: tuple(s / 2.0 for s in jointly(*a, **k)))
    X, accountant = np.random.default_rng(0).uniform(-1, 1, (200, 2)), PrivacyAccountant()
    model = MODELS[kind](accountant).fit(X, np.arange(200) % 2)
    assert model.epsilon_ > 1.9
    assert accountant.get_epsilon(1e-6) == pytest.approx(model.epsilon_)
