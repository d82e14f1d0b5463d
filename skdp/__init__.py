"""Differentially private estimators for scikit-learn.

Public names are imported when they are first used (PEP 562), so that importing the package is fast.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

__version__ = "1.0.0"

_NAMES = {
    "_checks.leaks": ("config_context",),
    "accounting": ("AddRemove", "PrivacyAccountant", "Risk"),
    "base.pipeline_issues": ("PipelineIssue",),
    "base.row_wise": ("row_wise",),
    "cluster": ("DPKMeans",),
    "decomposition": ("DPPCA",),
    "ensemble": ("DPIsolationForest", "DPRandomTreesClassifier", "DPRandomTreesRegressor", "PublicTreesEmbedding"),
    "exceptions": ("AccountantDetachedError", "BudgetExceededError", "BudgetFileError", "PrivacyLeakWarning"),
    "image": ("PatchTransformer", "ScatteringTransformer"),
    "linear_model": (
        "DPLinearRegression",
        "DPLogisticRegression",
        "DPOrdinalLogisticRegression",
        "DPPoissonRegressor",
        "DPRidge",
    ),
    "metrics": ("evaluate",),
    "model_selection": (
        "DPCalibratedClassifier",
        "DPGridSearchCV",
        "DPRandomizedSearchCV",
        "DPThresholdClassifier",
        "private_train_test_split",
    ),
    "model_selection.rehearsal": ("rehearse",),
    "naive_bayes": ("DPGaussianNB",),
    "neural_network": ("DPMLPClassifier", "DPMLPRegressor"),
    "pipeline": ("allocate_budget", "check_pipeline"),
    "preprocessing": (
        "DPOneHotEncoder",
        "DPQuantileBinner",
        "DPSimpleImputer",
        "DPStandardScaler",
        "DPTableVectorizer",
        "TableSchema",
    ),
    "report": ("PrivacyReport", "privacy_report"),
    "statistics": ("describe",),
    "synthesis": ("DPClassMixtureGenerator", "DPMarginalSynthesizer", "DPWGAN", "synthesize"),
    "tabular": ("tabular_pipeline",),
}
"""Public names by the module that each is imported from."""
_PUBLIC = {name: f"skdp.{module}" for module, names in _NAMES.items() for name in names}
_MODULES = (
    "accounting", "audit", "cluster", "datasets", "decomposition", "ensemble", "exceptions", "export", "image",
    "inspection", "linear_model", "mechanisms", "metrics", "model_selection", "naive_bayes", "neural_network",
    "pipeline", "plotting", "preprocessing", "report", "statistics", "synthesis", "testing",
)  # fmt: skip
_MOVED = {"calibration": "model_selection", "effects": "inspection", "evaluation": "metrics"}


def lazy_face(
    package: str, public: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    public : mapping of str to str
        The module of each public name.
    """

    def load(name: str) -> Any:
        if name not in public:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(public[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *public})

    return load, names, list(public)


_load, _, __all__ = lazy_face(__name__, _PUBLIC)
__all__ += ["__version__"]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return _load(name)
    if name in _MODULES:
        return importlib.import_module(f"skdp.{name}")
    raise AttributeError(f"module 'skdp' has no attribute {name!r}{_suggest(name)}", name=name)


def _suggest(name: str) -> str:
    """Return a suggestion for a misspelled name, or "". The prefix "DP" is ignored, as scikit-learn does not use it."""
    from difflib import get_close_matches

    if moved := _MOVED.get(name):
        return f". It was moved to skdp.{moved}"
    known = {public.lower().removeprefix("dp"): public for public in (*_PUBLIC, *_MODULES)}
    near = get_close_matches(name.lower().removeprefix("dp"), known, n=1, cutoff=0.6)
    return f". Did you mean {known[near[0]]!r}?" if near else ""


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC, *_MODULES})
