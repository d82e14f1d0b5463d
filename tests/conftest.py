"""What several test files share."""

import os

import numba
import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from ledger_files import THREE

from skdp import PrivacyAccountant
from skdp._dpsgd.solver import DescentSolver
from skdp.mechanisms import DiscreteGaussianMechanism, DiscreteLaplaceMechanism, GaussianMechanism

os.environ["SKDP_COMPILES"] = "1"  # a cold cache says nothing in tests of what processes write

# The same examples in every run, however long one of them takes.
settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("same")


def pytest_configure(config):
    # Seeds make a test repeatable, and few rows make it fast. `pytest.warns` sees these warnings nevertheless.
    config.addinivalue_line("filterwarnings", "ignore:.*the noise hides most metrics:UserWarning")
    for category in ("PrivacyLeakWarning", "QualityWarning", "FitInterruptedWarning"):
        config.addinivalue_line("filterwarnings", f"ignore::skdp.exceptions.{category}")
    if numba.config.DISABLE_JIT:  # Python's floats warn of what compiled kernels let overflow on purpose
        config.addinivalue_line("filterwarnings", "ignore::RuntimeWarning:skdp._kernels")


@pytest.fixture(scope="session")
def draw():
    """A function that draws rows in [-1, 1] and labels 0, 1, ... of a (multinomial) logistic model."""

    def rows_and_labels(n=400, d=4, n_classes=2, seed=0):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1.0, 1.0, (n, d))
        truth = 3.0 * rng.standard_normal((n_classes, d))
        return X, np.argmax(X @ truth.T + rng.gumbel(size=(n, n_classes)), axis=1)

    return rows_and_labels


@pytest.fixture(scope="module")
def table(draw):
    """The rows and labels of most tests of a classifier."""
    return draw()


@pytest.fixture(scope="module")
def rows():
    """Sixty rows and labels, for fits that a ledger is charged for."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (60, 2))
    return X, (X[:, 0] > 0).astype(int)


@pytest.fixture
def steps_alone(monkeypatch):
    """Models of steps from scores of 0: what is released beside them is accounted for, and neither made nor used."""
    monkeypatch.setattr(DescentSolver, "corrected", lambda *given: {})
    monkeypatch.setattr(DescentSolver, "before_steps", lambda self, run, rows, targets: (rows, targets))


@pytest.fixture
def released(monkeypatch):
    """What went into each release, and the mechanism that made it."""
    seen = []
    release = GaussianMechanism.release

    def recorded(mechanism, value, stream):
        seen.append((np.array(value), mechanism))
        return release(mechanism, value, stream)

    monkeypatch.setattr(GaussianMechanism, "release", recorded)
    return seen


@pytest.fixture
def exact(monkeypatch):
    """The exact tables that noise was added to; the noise is left out."""
    seen = []
    for kind in (DiscreteGaussianMechanism, DiscreteLaplaceMechanism, GaussianMechanism):
        monkeypatch.setattr(kind, "_add_noise", lambda self, value, stream: seen.append(value.copy()) or value)
    return seen


@pytest.fixture
def path(tmp_path):
    """Where a ledger's file may be made."""
    return str(tmp_path / "census.budget")


@pytest.fixture
def budget(path):
    """An accountant in a new file, with a budget for three."""
    return PrivacyAccountant(**THREE, path=path)
