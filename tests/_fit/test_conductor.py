"""Every fit goes through one function: what it asks, reads, charges and publishes, in that order."""

import numpy as np
import pandas as pd
import pytest
from combinations import over_rows
from test_replay import FITS, WORDS, People, people

import skdp
from skdp import DPLogisticRegression, PrivacyAccountant
from skdp._fit.conductor import PhasedFit, conduct, fit_publicly
from skdp._fit.fit import Fit
from skdp._fit.payment import Payment
from skdp._fit.private_step import StepFit
from skdp.accounting import GaussianDpEvent
from skdp.exceptions import BudgetExceededError, FitInterruptedWarning

PHASES = ("plan", "read", "prepare", "charge", "learn", "parameters", "finish")


@pytest.fixture
def phases(monkeypatch):
    """What is asked of ledgers, and which phases of fits run, in their order."""
    seen = []

    def heard(owner, name, phase=None):
        method, phase = vars(owner)[name], phase or name

        def recorded(self, *given, **named):
            of_whole = not isinstance(self, StepFit)  # the fits of steps rehearse
            if of_whole and seen[-1:] != [phase]:  # and not a phase that calls that of its base
                seen.append(phase)
            return method(self, *given, **named)

        monkeypatch.setattr(owner, name, recorded)

    def below(owner):
        return [owner, *(each for child in owner.__subclasses__() for each in below(child))]

    for owner in below(PhasedFit):
        for name in {"read", "learn"} & set(vars(owner)):
            heard(owner, name)
    heard(Fit, "read")
    heard(Fit, "release", "learn")
    heard(Fit, "spawn", "learn")
    heard(Payment, "check")
    heard(Payment, "charge")
    return seen


def assert_paid_before_it_learned(seen, n_fits=1):
    asked = ["check", "read", "charge", "learn"]
    # The price of some fits follows from what is read first: they are charged all the same before they learn.
    assert seen in (asked * n_fits, ["read", "check", "charge", "learn"] * n_fits)


@over_rows("name", FITS)
def test_every_fit_asks_and_pays_before_a_row_is_learned_from(name, phases):
    phases.clear()
    FITS[name](people())
    assert_paid_before_it_learned(phases)


@over_rows("name", WORDS)
def test_every_fit_to_words_asks_and_pays_before_a_row_is_learned_from(name, phases):
    phases.clear()
    WORDS[name](People(pd.DataFrame({"word": ["a", "b"] * 60}), None, None))
    assert_paid_before_it_learned(phases)


class Estimator(skdp.base.PrivateEstimator):
    """One with the parameters of all, of which no phase is used."""

    def __init__(self, accountant=None):
        self.accountant = accountant
        self.epsilon, self.noise_multiplier, self.delta = None, 1.0, 1e-6
        self.adjacency, self.accounting, self.random_state, self.n_samples_public = "zero_out", "pld", None, None

    def get_params(self, deep=True):
        return {"accountant": self.accountant}


class Recorded(PhasedFit):
    """A fit that notes its phases, and fails in one of them."""

    def __init__(self, target, fails=None, error=ValueError, interrupted=""):
        super().__init__(target, Estimator(target.accountant))
        self.seen, self._fails, self._error, self._interrupted = [], fails, error, interrupted

    def _note(self, phase):
        self.seen.append(phase)
        if phase == self._fails:
            raise self._error("as planned")

    def plan(self):
        self._note("plan")
        self.event, self.delta, self.n_public = GaussianDpEvent(5.0), 1e-6, 1000

    def read(self):
        self._note("read")

    def prepare(self):
        self._note("prepare")

    def charge(self):
        self._note("charge")
        super().charge()

    def learn(self):
        self._note("learn")
        self.work.coef_ = 1.0
        return self._interrupted

    def parameters(self):
        self._note("parameters")
        return {}

    def finish(self):
        self._note("finish")


def new_target():
    return Estimator(PrivacyAccountant(10.0, 1e-5))


@pytest.fixture
def target():
    return new_target()


def test_the_phases_run_once_each_in_their_order(target):
    fit = Recorded(target)
    conduct(fit)
    assert tuple(fit.seen) == PHASES
    assert target.coef_ == 1.0
    assert [charge.event for charge in target.accountant.history] == [GaussianDpEvent(5.0)]


@over_rows("error", [ValueError, KeyboardInterrupt])
@over_rows("phase", PHASES[:-1])
def test_a_fit_that_fails_is_charged_if_it_may_have_learned_and_publishes_nothing(phase, error):
    target = new_target()
    with pytest.raises(error):
        conduct(Recorded(target, phase, error))
    assert len(target.accountant.history) == (phase in ("learn", "parameters"))
    assert "coef_" not in vars(target)


@over_rows(("phase", "n_refusals"), [("plan", 0), ("read", 1), ("prepare", 0), ("learn", 0)])
def test_a_refusal_of_rows_is_recorded(phase, n_refusals):
    target = new_target()
    with pytest.raises(ValueError, match="as planned"):
        conduct(Recorded(target, phase))
    entries = target.accountant.entries
    assert len(entries) - len(target.accountant.history) == n_refusals


def test_above_the_ceiling_no_row_is_read(target):
    target.accountant = PrivacyAccountant(0.01, 1e-5)
    fit = Recorded(target)
    with pytest.raises(BudgetExceededError):
        conduct(fit)
    assert fit.seen == ["plan"]


def test_an_interrupted_fit_is_published_and_says_so(target):
    fit = Recorded(target, interrupted="after 3 of 5 steps")
    with pytest.warns(FitInterruptedWarning, match="after 3 of 5 steps: the model up to there is kept"):
        conduct(fit)
    assert target.coef_ == 1.0
    assert "finish" not in fit.seen


def test_a_public_fit_publishes_what_it_sets_or_nothing(target):
    target.old_ = np.ones(2)

    def learn(work):
        assert "old_" not in vars(work)
        work.new_ = 1

    assert fit_publicly(target, learn) is target
    assert (target.new_, "old_" in vars(target)) == (1, False)

    def fail(work):
        work.new_ = 2
        raise ValueError("as planned")

    with pytest.raises(ValueError, match="as planned"):
        fit_publicly(target, fail)
    assert target.new_ == 1


def test_fit_with_largest_noise_is_released():
    """No noise multiplier that a fit takes is rejected by a release after the charge, for any number of columns."""
    X, y = np.random.default_rng(0).uniform(-1, 1, size=(40, 6_000)), np.arange(40) % 2
    given = {"epsilon": None, "delta": 1e-9, "max_iter": 1, "sampling_rate": 1.0, "classes": [0, 1]}
    model = DPLogisticRegression(noise_multiplier=1e9, accountant=PrivacyAccountant(), **given).fit(X, y)
    assert np.isfinite(model.coef_).all()
