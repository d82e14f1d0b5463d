"""Fits of any library: a peer's mistake is found, and what is right raises no alarm."""

from __future__ import annotations

import numpy as np
import pytest

import skdp
from skdp.audit import audit_functions
from skdp.exceptions import PrivacyLeakWarning

pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyLeakWarning")

ONE, TWO = ([[1.0]], [0.0]), ([[1.0], [100.0]], [0.0, 0.0])


class NoisySums:
    """Least squares of one column with bounds (0, 100) and targets in (0, 1), from sums with Laplace noise.

    `is_wrong` takes the lower bound for the larger one, as a library does whose sum of squares has no noise then.
    """

    def __init__(self, epsilon, is_wrong):
        self.epsilon, self.is_wrong, self.rng = epsilon, is_wrong, np.random.default_rng(0)

    def fit(self, X, y):
        x, y = np.ravel(X), np.asarray(y)
        largest = 0.0 if self.is_wrong else 100.0
        share = self.epsilon / 2
        products = x @ y + self.rng.laplace(scale=100.0 / share)
        squares = x @ x + self.rng.laplace(scale=largest**2 / share)
        return {"coef": products / squares, "squares": squares}


def audit_of(is_wrong, publish=lambda model: model["coef"], **given):
    given = {"epsilon": 1.0, "max_runs": 1500, "max_seconds": 600.0, **given}
    return audit_functions(NoisySums(1.0, is_wrong).fit, publish, ONE, TWO, **given)


def test_a_peers_mistake_is_found_by_what_it_publishes():
    """Of 500 judged fits of each kind with no wrong guess, log(500 / 14.5) = 3.5 is sure at 1e-6."""
    audit = audit_of(is_wrong=True)
    assert audit.epsilon_lower_bound > 4.0
    assert [finding.kind for finding in audit.findings] == ["bound"]
    with pytest.raises(AssertionError, match=r"NoisySums\.fit: bound: epsilon is at least 3\.[0-9]+, and 1 is claimed"):
        audit.raise_if_violated()
    assert audit.n_fits == 3000


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_the_right_noise_raises_no_alarm(delta):
    """Whatever is published. A bound exceeds the claim in one of twenty audits at most; that of this seed does not."""
    audit = audit_of(False, lambda model: [model["coef"], model["squares"], np.inf, np.nan], delta=delta)
    assert audit.findings == ()
    assert 0.0 < audit.epsilon_lower_bound <= audit.epsilon_claimed
    assert audit.delta == delta
    assert "nothing is assumed" in str(audit)


def test_the_score_is_learned_from_fits_that_are_not_judged():
    """Noise of 30 numbers, which trees learn by heart: of fits that they were taught with they would tell all."""
    rng = np.random.default_rng(0)
    audit = audit_functions(lambda: rng.normal(size=30), np.ravel, (), (), epsilon=0.1, max_runs=300, max_seconds=600.0)
    assert audit.findings == ()
    assert audit.epsilon_lower_bound <= 0.1


def test_the_tables_are_a_leak():
    with pytest.warns(PrivacyLeakWarning, match="must be public or made up"):
        audit_of(is_wrong=False, max_runs=60)
    with skdp.config_context(on_leak="raise"), pytest.raises(PrivacyLeakWarning):
        audit_functions(never_called, float, ONE, TWO, epsilon=1.0)


def never_called(*table):
    raise AssertionError("fitted before the leak was refused")


REFUSED = {
    "fit": (lambda: audit_functions(3, float, ONE, TWO, epsilon=1.0), "fit is of type int"),
    "publish": (lambda: audit_functions(len, None, ONE, TWO, epsilon=1.0), "publish is of type NoneType"),
    "a table": (lambda: audit_functions(len, float, [1.0], TWO, epsilon=1.0), "without is of type list"),
    "epsilon": (lambda: audit_of(False, epsilon=0.0), "epsilon=0.0"),
    "delta": (lambda: audit_of(False, delta=1.0), "delta=1.0"),
    "adjacency": (lambda: audit_of(False, adjacency="any"), "adjacency='any'"),
    "confidence": (lambda: audit_of(False, confidence=0.0), "confidence=0.0"),
    "runs": (lambda: audit_of(False, max_runs=10), "max_runs=10"),
    "seconds": (lambda: audit_of(False, max_seconds=1e-9), "max_seconds sufficed for 1 pairs of fits"),
    "seed": (lambda: audit_of(False, random_state=None), "random_state=None"),
    "words": (lambda: audit_of(False, lambda model: "coef"), "no array of numbers"),
    "nothing": (lambda: audit_of(False, lambda model: []), "0 numbers"),
    "other numbers": (lambda: audit_of(False, lambda model: [0.0] * (1 + (model["coef"] > 0))), "as many of them"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_audit_is_refused_in_one_line(case):
    call, said = REFUSED[case]
    with pytest.raises((TypeError, ValueError), match=said) as refusal:
        call()
    assert "\n" not in str(refusal.value)
