"""The Gaussian mechanism: the noise that it adds is the noise that it prices."""

from __future__ import annotations

import dataclasses
import hashlib

import numpy as np
import pytest
from scipy.stats import chi2

from skdp._random import SecretStream
from skdp.accounting import GaussianDpEvent
from skdp.mechanisms import GaussianMechanism

FALSE_ALARM = 1e-6


def stream(name="mechanism"):
    return SecretStream(hashlib.sha256(name.encode()).digest())


@pytest.mark.parametrize("noise_multiplier", [0.3, 1.0, 40.0])
@pytest.mark.parametrize("sensitivity", [1e-3, 0.25, 7.0])
def test_noise_has_the_standard_deviation_that_is_priced(noise_multiplier, sensitivity):
    """Property 2: sigma C, sigma being that of the event. Chi-square, two-sided."""
    mechanism = GaussianMechanism(noise_multiplier, sensitivity)
    assert mechanism.event == GaussianDpEvent(noise_multiplier)
    m = 20_000
    noise = mechanism.release(np.zeros(m), stream(f"{noise_multiplier} {sensitivity}"))
    score = np.sum((noise / (mechanism.event.noise_multiplier * sensitivity)) ** 2)
    assert chi2.isf(1 - FALSE_ALARM / 2, m) < score < chi2.isf(FALSE_ALARM / 2, m)


def test_noise_is_added_once_to_the_value():
    """Frozen randomness: a release is the value plus the noise of its stream, whatever the value."""
    mechanism, values = GaussianMechanism(2.0, 0.5), np.linspace(-5, 5, 100)
    noise = mechanism.release(np.zeros(100), stream())
    np.testing.assert_array_equal(noise, stream().normal(100) * mechanism.standard_deviation)
    np.testing.assert_array_equal(mechanism.release(values, stream()), values + noise)
    assert mechanism.standard_deviation == 1.0


def test_each_release_has_fresh_noise():
    mechanism, source = GaussianMechanism(1.0, 1.0), stream()
    first, second = (mechanism.release(np.zeros(100), source) for _ in range(2))
    assert not np.any(first == second)


def test_release_leaves_the_value_alone():
    value = np.zeros(5)
    GaussianMechanism(1.0, 1.0).release(value, stream())
    assert np.all(value == 0.0)


def test_mechanism_is_frozen():
    """What was priced cannot be changed afterwards."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        GaussianMechanism(1.0, 1.0).noise_multiplier = 0.1


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_noise_without_a_price_is_refused(bad):
    with pytest.raises(ValueError, match="noise_multiplier"):
        _ = GaussianMechanism(bad, 1.0).event
