"""The fit object: its order is enforced, and nothing is charged, learned or published out of turn."""

import contextlib
import warnings

import numpy as np
import pytest

from skdp import BudgetExceededError, PrivacyAccountant
from skdp._checks.rows import check_table
from skdp.accounting import GaussianDpEvent, SelfComposedDpEvent
from skdp.base.fit import begin
from skdp.base.private_step import PrivateStep
from skdp.exceptions import FitInterruptedWarning
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.naive_bayes import ClassMoments, DPGaussianNB

X, CODES = np.zeros((50, 2)), np.zeros(50, np.int64)
QUERY = ClassMoments(np.array([(-1.0, 1.0)] * 2), 2)
STEPS = {
    "resume": lambda fit: fit.resume(None, None),
    "labels": lambda fit: fit.read_before_plan(int),
    "plan": lambda fit: fit.plan(),
    "read": lambda fit: fit.read_rows(check_table),
    "charge": lambda fit: fit.charge(),
    "stream": lambda fit: fit.run_stream(0),
    "spawn": lambda fit: fit.spawn("bounds"),
    "train": lambda fit: fit.learn(int, part="steps"),
    "release": lambda fit: fit.release(QUERY, X, CODES),
    "publish": lambda fit: fit.publish(),
}
# The steps by which a fit gets into a state, and those that it allows then: the table in the docstring of `Fit`.
STATES = [
    ("", "resume labels plan"),
    ("labels", "resume labels plan"),
    ("plan", "read stream charge"),
    ("plan read", "read stream charge"),
    ("plan stream", "read charge"),  # positions in the stream are known before the charge
    ("plan charge", "stream spawn train release"),
    ("plan read charge", "stream spawn train release"),
    ("plan charge spawn", "stream train release publish"),  # each part is released once
    ("plan charge train", "stream spawn release publish"),
    ("plan charge release", "stream spawn train publish"),
    ("plan charge release publish", ""),
]


def fit_after(steps):
    accountant = PrivacyAccountant()
    fit = begin(DPGaussianNB([0, 1], accountant=accountant), X)
    for step in steps.split():
        STEPS[step](fit)
    return fit, accountant


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(("before", "allowed"), STATES)
def test_fit_step_is_allowed_in_its_states_alone(before, allowed, step):
    fit, accountant = fit_after(before)
    if step in allowed.split():
        STEPS[step](fit)
        return
    n_charges, state = len(accountant.history), dict(vars(fit.estimator))
    with pytest.raises(RuntimeError):
        STEPS[step](fit)
    assert len(accountant.history) == n_charges
    assert vars(fit.estimator) == state


@pytest.mark.parametrize("noise", [(0.9,), (1.0, 100.0), (1.5, 1.3)])
def test_release_with_less_noise_than_charged_raises_before_noise(noise, monkeypatch):
    fit = begin(DPGaussianNB([0, 1], epsilon=None, noise_multiplier=1.0), X)
    fit.plan()
    fit.charge()
    *admitted, last = noise
    for number, each in enumerate(admitted):
        fit.release(QUERY, X, CODES, noise_multiplier=each, part=str(number))
    monkeypatch.setattr(GaussianMechanism, "release", None)
    with pytest.raises(RuntimeError, match="less noise than the fit was charged for"):
        fit.release(QUERY, X, CODES, noise_multiplier=last, part="last")


def test_fit_is_charged_once_and_published_last():
    fit, accountant = fit_after("")
    for step in ("plan", "read", "charge", "release"):
        STEPS[step](fit)
        assert len(accountant.history) == (step in ("charge", "release"))
        assert "epsilon_" not in vars(fit.estimator)
    model = fit.publish(classes_=np.array([0, 1]))
    assert model is fit.estimator
    assert model.privacy_event_ == accountant.history[0].event
    assert accountant.history[0].parameters["delta"] == model.delta_ == 1e-5
    assert model.classes_.tolist() == [0, 1]


def test_fit_releases_each_part_once_with_its_own_noise():
    fit = begin(DPGaussianNB([0, 1], random_state=0), X)
    fit.plan(lambda noise: SelfComposedDpEvent(GaussianDpEvent(noise), 2))
    fit.charge()
    first, second = (fit.release(QUERY, X, CODES, part=part).value for part in ("first", "second"))
    assert (first != second).all()
    with pytest.raises(RuntimeError, match="release"):
        fit.release(QUERY, X, CODES, part="first")


def test_release_of_a_spawned_part_is_rejected():
    fit, _ = fit_after("plan charge spawn")
    with pytest.raises(RuntimeError, match="release was called twice"):
        fit.release(QUERY, X, CODES, part="bounds")


def test_failed_charge_ends_fit():
    accountant = PrivacyAccountant(1.0, 1e-5)
    fit, other = (begin(DPGaussianNB([0, 1], epsilon=0.9, accountant=accountant), X) for _ in range(2))
    for each in (fit, other):
        each.plan()  # the budget admits each of them, and not both
    other.charge()
    with pytest.raises(BudgetExceededError):
        fit.charge()
    for step in STEPS.values():
        with pytest.raises(RuntimeError):
            step(fit)


def test_warning_that_is_an_error_ends_fit_without_charge():
    accountant = PrivacyAccountant()
    fit = begin(DPGaussianNB([0, 1], delta=0.5, accountant=accountant), X)
    fit.plan()
    with warnings.catch_warnings(action="error"), pytest.raises(UserWarning, match="at least 1/n"):
        fit.charge()
    with pytest.raises(RuntimeError):
        fit.release(QUERY, X, CODES)
    assert accountant.history == ()


@pytest.mark.parametrize("swallows", [False, True])
def test_step_that_catches_its_pause_releases_nothing_before_charge(swallows):
    found = []

    class Greedy(DPGaussianNB):
        def fit(self, X, y=None):
            fit = begin(self, X)
            fit.plan()
            for step in (lambda: fit.read_rows(check_table), fit.charge):
                with contextlib.suppress(BaseException):
                    step()
            with contextlib.suppress(BaseException if swallows else ()):
                found.append(fit.release(QUERY, np.zeros((50, 2)), CODES))
            return self

    step = PrivateStep(Greedy([0, 1]))
    step.begin(0)
    with pytest.raises(RuntimeError):
        step.check_targets(CODES, 50)
    assert not found


def test_fit_over_budget_is_rejected_in_plan():
    fit = begin(DPGaussianNB([0, 1], accountant=PrivacyAccountant(0.5, 1e-5)), X)
    with pytest.raises(BudgetExceededError):
        fit.plan()


def test_fit_records_rejected_rows_and_releases_nothing():
    accountant = PrivacyAccountant()
    fit = begin(DPGaussianNB([0, 1], accountant=accountant), np.full((50, 2), np.nan))
    fit.plan()
    with pytest.raises(ValueError, match="NaN"):
        fit.read_rows(check_table)
    assert [entry.kind for entry in accountant.entries] == ["rejection"]
    with pytest.raises(RuntimeError):
        fit.release(QUERY, X, CODES)


def test_fit_ignores_parameters_set_meanwhile():
    fit, _ = fit_after("")
    fit.estimator.set_params(epsilon=100.0)
    fit.plan()
    assert fit.cost.epsilon <= 1.0


def test_interrupted_fit_publishes_with_warning():
    fit, _ = fit_after("plan charge release")
    with pytest.warns(FitInterruptedWarning, match="interrupted after its first part"):
        fit.publish(interrupted="after its first part")
    assert fit.estimator.epsilon_ <= 1.0


def test_learning_is_silent_and_shows_no_shape_of_rows():
    fit, _ = fit_after("plan charge")
    with np.errstate(all="raise"):
        assert fit.learn(np.square, np.array([1e-300])) == 0.0
    with pytest.raises(MemoryError, match="after the budget was charged for this fit") as error:
        fit.learn(np.empty, (2**40, 2**17))
    assert error.value.__context__ is None
    with pytest.raises(RuntimeError):
        fit_after("plan")[0].learn(len, ())
