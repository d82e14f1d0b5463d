"""What all mechanisms promise of a release alone: charged before noise is drawn, added once, rejected in silence."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest
from combinations import over_rows
from keyed_streams import stream

from skdp import BudgetExceededError, PrivacyAccountant, PrivacyLeakWarning, config_context
from skdp.mechanisms import DiscreteGaussianMechanism, DiscreteLaplaceMechanism, GaussianMechanism
from skdp.mechanisms.streams import SecretStream

# A mechanism, and one whose release costs more than epsilon = 2.
MECHANISMS = {
    GaussianMechanism: (GaussianMechanism(8.0, 1.0), GaussianMechanism(0.3, 1.0)),
    DiscreteGaussianMechanism: (DiscreteGaussianMechanism(3.0, 2), DiscreteGaussianMechanism(0.3)),
    DiscreteLaplaceMechanism: (DiscreteLaplaceMechanism.for_epsilon(1.0), DiscreteLaplaceMechanism.for_epsilon(9.0)),
}
NOT_FINITE = (math.nan, math.inf)
all_mechanisms = pytest.mark.parametrize("kind", MECHANISMS, ids=lambda kind: kind.__name__)


@all_mechanisms
@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
def test_release_is_charged_before_it_draws(kind, adjacency, monkeypatch):
    mechanism, expensive = MECHANISMS[kind]
    accountant, seen = PrivacyAccountant(8.0, 1e-5), []
    name = "noisy" if kind is GaussianMechanism else "words"
    draw = getattr(SecretStream, name)
    monkeypatch.setattr(SecretStream, name, lambda *given: seen.append(len(accountant.history)) or draw(*given))
    mechanism.release([3, 4], accountant=accountant, adjacency=adjacency)
    assert set(seen) == {1}
    (charge,) = accountant.history
    assert (charge.event, charge.label, charge.adjacency) == (mechanism.event, kind.__name__, adjacency)
    seen.clear()
    with pytest.raises(BudgetExceededError):
        expensive.release([3, 4], accountant=accountant, adjacency=adjacency)
    assert not seen
    assert len(accountant.history) == 1


@all_mechanisms
def test_release_adds_fresh_noise_once_and_keeps_the_value(kind):
    mechanism, value = MECHANISMS[kind][0], np.arange(-50, 50).reshape(4, 25)
    noise = mechanism.release(np.zeros((4, 25), int), stream())
    kept, source = value.copy(), stream()
    np.testing.assert_allclose(mechanism.release(value, source), value + noise, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(value, kept)
    assert len(np.unique(noise)) > 3
    assert not np.array_equal(mechanism.release(value, source), mechanism.release(value, source))


@over_rows(
    ("make", "message"),
    [
        *((lambda bad=bad: GaussianMechanism(bad, 1.0).event, "noise_multiplier") for bad in (0.0, -1.0, *NOT_FINITE)),
        *((lambda bad=bad: GaussianMechanism(1.0, bad), "sensitivity") for bad in (0.0, -1.0, *NOT_FINITE, "1")),
        *(
            (lambda pair=pair: GaussianMechanism(*pair), r"noise_multiplier=[^\n]*\. Rescale the value\.$")
            for pair in ((0.5, 5e-324), (1e-100, 1e-300), (1e100, 1e300))  # noise that no double holds
        ),
        *(
            (lambda bad=bad: DiscreteGaussianMechanism(bad, 1), "`standard_deviation` must be a number from 0")
            for bad in (0.0, -1.0, 2.1e4, math.nan, "1")
        ),
        *(
            (
                lambda bad=bad: DiscreteGaussianMechanism(1.0, bad),
                "`n_counts` must be a positive integer, the number of counts that one",
            )
            for bad in (0, 1.5)
        ),
        *(
            (lambda bad=bad: DiscreteLaplaceMechanism(Fraction(bad)), "`scale` must be")
            for bad in (0, -1, 2**53, Fraction(1, 2**53))
        ),
        *(
            (lambda bad=bad: DiscreteLaplaceMechanism(Fraction(1), bad), "`sensitivity` must be")
            for bad in (0, -1, 1.5, 2**54)
        ),
    ],
)
def test_noise_that_cannot_be_drawn_or_priced_is_rejected(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@all_mechanisms
def test_unknown_adjacency_is_rejected_without_accountant_too(kind):
    for accountant in (None, PrivacyAccountant()):
        with pytest.raises(ValueError, match="`adjacency` must be one of 'zero_out', 'add_remove', 'replace_one'"):
            MECHANISMS[kind][0].release(1, accountant=accountant, adjacency="typo")


@all_mechanisms
def test_seed_is_reported_and_mechanism_is_frozen(kind):
    mechanism, value = MECHANISMS[kind][0], np.zeros(50, int)
    with pytest.warns(PrivacyLeakWarning, match="random_state=3"):
        first = mechanism.release(value, random_state=3)
    with pytest.warns(PrivacyLeakWarning):
        np.testing.assert_array_equal(mechanism.release(value, 3), first)
    assert not np.array_equal(mechanism.release(value), first)
    with config_context(on_leak="raise"), pytest.raises(PrivacyLeakWarning):
        mechanism.release(value, random_state=3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        mechanism.scale = Fraction(1)
