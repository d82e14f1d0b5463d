"""Every fit asks the accountant, reads rows, charges and then learns, in this order."""

import numpy as np
import pandas as pd
import pytest
from combinations import over_rows
from test_replay import FITS, WORDS, People, people

from skdp import DPLogisticRegression, PrivacyAccountant
from skdp.base.fit import Account, Fit
from skdp.base.private_step import StepFit


@pytest.fixture
def phases(monkeypatch):
    """What is asked of ledgers, and which phases of fits run, in their order."""
    seen = []

    def recorded(owner, name, phase=None):
        method, phase = vars(owner)[name], phase or name

        def recorded(self, *given, **named):
            of_whole = not isinstance(self, StepFit)  # the fits of steps rehearse
            if of_whole and seen[-1:] != [phase]:  # and not a phase that calls that of its base
                seen.append(phase)
            return method(self, *given, **named)

        monkeypatch.setattr(owner, name, recorded)

    recorded(Fit, "read")
    recorded(Fit, "learn")
    recorded(Fit, "release", "learn")
    recorded(Fit, "spawn", "learn")
    recorded(Account, "check")
    recorded(Account, "charge")
    return seen


def assert_paid_before_it_learned(seen, n_fits=1):
    asked = ["check", "read", "charge", "learn"]
    # The cost of some fits follows from what is read first: they are charged all the same before they learn.
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


def test_fit_with_largest_noise_is_released():
    """No noise multiplier that a fit takes is rejected by a release after the charge, for any number of columns."""
    X, y = np.random.default_rng(0).uniform(-1, 1, size=(40, 6_000)), np.arange(40) % 2
    given = {"epsilon": None, "delta": 1e-9, "max_iter": 1, "sampling_rate": 1.0, "classes": [0, 1]}
    model = DPLogisticRegression(noise_multiplier=1e9, accountant=PrivacyAccountant(), **given).fit(X, y)
    assert np.isfinite(model.coef_).all()
