"""Discrete Gaussian noise: the exact law, and the cost of the very noise that is drawn."""

import math
from fractions import Fraction

import numpy as np
import pytest
from combinations import over_rows
from keyed_streams import FALSE_ALARM, stream
from scipy.stats import chi2

from skdp.accounting import DiscreteGaussianDpEvent, SelfComposedDpEvent, get_epsilon
from skdp.mechanisms import DiscreteGaussianMechanism, discrete_noise


def is_large(outputs):
    """Guess whether the value was large, from its last bits alone: a sum of doubles has the steps of its size."""
    return bool(np.all(np.asarray(outputs, float) * 2.0**22 % 1.0 == 0.0))


def masses(s, reach):
    """The law of whole numbers from -reach to reach."""
    found = np.exp(-0.5 * (np.arange(-reach, reach + 1) / s) ** 2)
    return found / found.sum()


def assert_law(drawn, probabilities):
    """Pearson's chi-square of whole numbers from 0 on; rare ones are taken together."""
    expected = len(drawn) * np.asarray(probabilities)
    seen, often = np.bincount(drawn, minlength=len(expected)), expected >= 10
    expected = np.append(expected[often], max(len(drawn) - expected[often].sum(), 10.0))  # of rare ones 10 or less
    seen = np.append(seen[often], len(drawn) - seen[often].sum())
    assert ((seen - expected) ** 2 / expected).sum() < chi2.isf(FALSE_ALARM, len(expected) - 1) + 10.0


@over_rows("s", [0.3, 1.0, 36.3])
def test_noise_has_exactly_the_law_that_is_priced(s):
    mechanism = DiscreteGaussianMechanism(s)
    noise = mechanism.release(np.zeros(60_000, int), stream(str(s)))
    reach = int(np.abs(noise).max()) + 1
    assert_law(noise + reach, masses(mechanism.event.standard_deviation, reach))


def test_noise_of_a_large_deviation_falls_on_every_residue():
    """A number that was made in floating point would have holes, or a rhythm, in its last digits."""
    noise = DiscreteGaussianMechanism(2e4).release(np.zeros(8_000, int), stream("large"))
    for modulus in (2, 3, 64):
        assert_law(noise % modulus, np.full(modulus, 1.0 / modulus))
    assert abs(noise.std() / 2e4 - 1.0) < 5.0 / math.sqrt(2 * 8_000)


@over_rows("g", [Fraction(0), Fraction(1, 3), Fraction(13, 7)])
def test_trials_have_exponential_probabilities(g):
    kept = discrete_noise._exp_of_fractions(stream(str(g)), [g, Fraction(0)], np.arange(60_000) % 2)
    assert kept[1::2].all()
    p = math.exp(-g)
    assert_law(kept[::2].astype(int), [1.0 - p, p])


def test_a_comparison_goes_on_where_64_bits_leave_it_open(monkeypatch):
    """The words are those of the fraction, and then its further ones: what is below the last of them is below it."""
    g = Fraction(5, 7)
    first, second = (math.floor(g * 2**64), math.floor(g * 2**128) % 2**64)
    for last, expected in ((second - 1, True), (second + 1, False)):
        given = iter([first, last])
        source = stream()
        monkeypatch.setattr(source, "words", lambda n, given=given: np.array([next(given)], np.uint64))
        assert discrete_noise.below_fractions(source, [g], np.zeros(1, int)).tolist() == [expected]


@over_rows("k", [1, 3])
def test_the_event_is_the_very_pair_of_laws(k):
    """Delta of k counts that move by 1, summed over all outputs, is what the accountant says, and no more."""
    mechanism, reach = DiscreteGaussianMechanism(1.3, k), 14
    one = masses(1.3, reach)
    p = q = np.ones(1)
    for _ in range(k):
        p, q = np.multiply.outer(p, np.append(one, 0.0)).ravel(), np.multiply.outer(q, np.append(0.0, one)).ravel()
    for epsilon in (0.2, 1.0, 2.5):
        delta = float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())
        found = get_epsilon(mechanism.event, delta)
        assert epsilon - 1e-6 <= found <= epsilon * 1.002


def test_a_record_that_is_replaced_is_told_apart_no_better_than_is_priced():
    """One count less and another more: delta, summed over all pairs of outputs, is that of its cost or less."""
    mechanism, reach = DiscreteGaussianMechanism(1.3), 14
    one = masses(1.3, reach)
    there, gone = np.append(one, 0.0), np.append(0.0, one)
    p, q = np.multiply.outer(there, gone), np.multiply.outer(gone, there)
    for epsilon in (0.2, 1.0, 2.5):
        delta = float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())
        assert get_epsilon(mechanism.event, delta, adjacency="replace_one") >= epsilon


def test_the_event_and_the_noise_have_one_deviation(monkeypatch):
    drawn = []
    monkeypatch.setattr(
        discrete_noise, "discrete_gaussian", lambda stream, size, s: drawn.append(s) or np.zeros(size, int)
    )
    for mechanism in (DiscreteGaussianMechanism(2.7), DiscreteGaussianMechanism.near(0.9, 9)):
        mechanism.release(np.array([1, 2]), stream())
        event = mechanism.event
        one = event.event if isinstance(event, SelfComposedDpEvent) else event
        assert one == DiscreteGaussianDpEvent(drawn[-1], 1)
        assert mechanism.noise_multiplier * mechanism.sensitivity == pytest.approx(2.7)
    assert event.count == 9
    assert [DiscreteGaussianMechanism.near(x, 4).standard_deviation for x in (1e-9, 3.0, 1e9)] == [0.01, 6.0, 2e4]


def test_the_same_outputs_come_of_every_value():
    """Doubles on doubles tell the size of the value by their last bits (Mironov 2012). Whole numbers reach all numbers
    from each value, so that no set of outputs is one of a value alone."""
    z = np.random.default_rng(0).standard_normal(500)
    assert [is_large(x + 1.7 * z) for x in (0.0, 1.5 * 2.0**30)] == [False, True]
    drawn = {
        x: DiscreteGaussianMechanism(1.7).release(np.full(20_000, x), stream(f"attack {x}")) for x in (0, 1, 2**30)
    }
    assert {is_large(each) for each in drawn.values()} == {True}
    assert {*drawn[0].tolist()} >= {*range(-5, 6)} <= {*drawn[1].tolist()}
