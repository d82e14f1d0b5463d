"""Runs of DPLogisticRegression: instalments, labels, seeds, progress and interruption."""

import io
import math
import sys
import warnings

import joblib
import numpy as np
import pytest
from combinations import over_rows
from logistic import binary

from skdp import PrivacyAccountant
from skdp._dpsgd import estimator
from skdp._dpsgd.models.linear import LinearModel
from skdp.accounting import compose, flatten, get_epsilon
from skdp.base import fit

# --- instalments (property 20) ----------------------------------------------------------------------------------------


def by_partial_fit(model, X, y, weights=None):
    return model.partial_fit(X, y, sample_weight=weights)


def by_warm_start(model, X, y, weights=None):
    return model.set_params(warm_start=True).fit(X, y, sample_weight=weights)


def test_run_that_is_published_meanwhile_is_in_the_cost(table, monkeypatch):
    """By another thread, after ``partial_fit`` began and before it copies the parameters that it starts from."""
    model, copy, seen = binary().partial_fit(*table), fit.copy_to_fit, []

    def copy_late(target, **how):
        if not seen:
            seen.append(target)
            model.partial_fit(*table)
        return copy(target, **how)

    event, n_steps = model.privacy_event_, model.n_steps_
    monkeypatch.setattr(fit, "copy_to_fit", copy_late)
    model.partial_fit(*table)
    assert model.n_steps_ == 3 * n_steps
    assert model.epsilon_ > get_epsilon(compose([event, event]), 1e-5)


@over_rows("again", [by_partial_fit, by_warm_start])
def test_instalments_of_one_seed_have_different_noise(draw, again):
    """Rows that weigh next to nothing leave the noise alone: the way from zero, and then the way from there."""
    X, y = draw(n=100, d=100)
    model = binary(max_iter=1, momentum=0.0, average=False, learning_rate=1.0, random_state=0)
    first = again(model, X, y, np.full(100, 1e-300)).coef_[0].copy()
    second = again(model, X, y, np.full(100, 1e-300)).coef_[0] - first
    # Of 100 independent pairs the correlation is beyond 0.47 once in a million: t = r sqrt(98 / (1 - r^2)) = 5.24.
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.47


# --- randomness -------------------------------------------------------------------------------------------------------


@over_rows("sampling, dtype", [({}, np.float64), ({"sampling_rate": 0.6, "max_iter": 6}, np.float32)])
def test_a_seed_fixes_every_bit_for_any_number_of_threads(draw, sampling, dtype):
    X, y = draw(30_000, 12)  # large enough for several segments, and for threads to be used
    X = X.astype(dtype)
    first, again, threads = (binary(random_state=5, n_jobs=j, **sampling).fit(X, y) for j in (1, 1, 2))
    for other in (again, threads):
        assert other.coef_.tobytes() == first.coef_.tobytes()
        assert other.intercept_.tobytes() == first.intercept_.tobytes()
    with joblib.parallel_config("threading", n_jobs=2):
        assert binary(random_state=5, **sampling).fit(X, y).coef_.tobytes() == first.coef_.tobytes()


@over_rows("delta, warns", [(1 / 400, True), (0.1, True), (1 / 401, False)])
def test_weak_delta(table, delta, warns):
    with warnings.catch_warnings(record=True, action="always") as caught:
        binary(delta=delta).fit(*table)
    assert len(caught) == warns
    assert all(str(w.message).startswith(f"delta={delta!r} is at least 1/n for n=400 rows") for w in caught)


# --- progress and interruption ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("with_tqdm", [True, False])
def test_progress_shows_the_price_and_changes_nothing(table, with_tqdm, capsys, monkeypatch):
    if with_tqdm:
        pytest.importorskip("tqdm")
    else:
        monkeypatch.setitem(sys.modules, "tqdm.auto", None)  # what an import then does: ImportError
    quiet = binary(random_state=0).fit(*table)
    assert capsys.readouterr() == ("", "")
    loud = binary(random_state=0, verbose=1).fit(*table)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"epsilon so far {loud.epsilon_:.4g}" in shown.err
    assert "200/200" in shown.err
    assert loud.coef_.tobytes() == quiet.coef_.tobytes()


@pytest.fixture
def lines_by_steps(monkeypatch):
    """Progress lines without tqdm, each after a number of steps, however long these take."""
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setattr(estimator, "_LONG", math.inf)


class StderrThat(io.StringIO):
    """A standard error that does something at one of the writes of the progress line."""

    def __init__(self, at, action):
        super().__init__()
        self.remaining, self.action = at, action

    def write(self, text):
        self.remaining -= bool(text)
        if self.remaining == 0 and text:
            self.action()
        return super().write(text)


def interrupt():
    raise KeyboardInterrupt


@over_rows("readings", (1, 15))
def test_interrupted_fit_keeps_model_and_full_charge(table, readings, lines_by_steps, monkeypatch):
    """The progress line is written at every 10th of 200 steps; at one of these writes the user presses Ctrl-C."""
    X, y = table
    accountant = PrivacyAccountant()
    model = binary(accountant=accountant, random_state=0, verbose=1)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", StderrThat(readings, interrupt))
        with pytest.warns(UserWarning, match="interrupted after .* full privacy cost"):
            model.fit(X, y)
    planned = binary().fit(X, y)
    assert model.n_steps_ == model.n_iter_ == 10 * readings < 200
    assert sum(flatten(model.privacy_event_).values()) == planned.n_steps_ + 2 == 202
    assert model.epsilon_ == planned.epsilon_ == accountant.get_epsilon(1e-5)
    assert len(accountant.history) == 1
    assert np.all(np.isfinite(model.coef_))
    assert np.any(model.coef_ != 0)
    assert model.predict_proba(X).shape == (400, 2)
    model.partial_fit(X, y)
    assert model.n_steps_ == 10 * readings + 200
    assert sum(flatten(model.privacy_event_).values()) == 403  # class counts once


@pytest.mark.parametrize("weight", [1e-300, 1e300])
def test_a_weight_beyond_the_range_of_the_rows_is_cast_in_silence(table, weight):
    """Also where the user has NumPy raise: the error would tell of the weight, after the charge."""
    X, y = table
    weights = np.ones(len(y))
    weights[3] = weight
    with np.errstate(all="raise"):
        found = binary(random_state=0).fit(X.astype(np.float32), y, sample_weight=weights)
    assert np.all(np.isfinite(found.coef_))


def test_an_interrupt_after_the_last_step_takes_nothing_back(table, monkeypatch):
    """As the threads of the run end: all steps are done, and paid for."""
    whole = binary(random_state=0).fit(*table)
    monkeypatch.setattr(LinearModel, "__exit__", lambda *arguments: interrupt())
    found = binary(random_state=0).fit(*table)  # and there is nothing to warn of
    assert found.n_steps_ == whole.n_steps_
    np.testing.assert_array_equal(found.coef_, whole.coef_)
