"""Discrete Laplace noise: the exact law, and the cost of the very noise that is drawn."""

import math
from fractions import Fraction

import numpy as np
import pytest
from combinations import over_rows
from keyed_streams import FALSE_ALARM, stream
from scipy.stats import chi2

from skdp import PrivacyAccountant
from skdp.accounting import DiscreteLaplaceDpEvent, get_epsilon
from skdp.accounting.formulas.dominating import discrete_laplace as pair_of
from skdp.mechanisms import DiscreteGaussianMechanism, DiscreteLaplaceMechanism, discrete_noise


def assert_law(drawn, probabilities):
    """Pearson's chi-square of whole numbers from 0 on; rare ones are taken together with the last that is not."""
    expected = len(drawn) * np.asarray(probabilities)
    last = np.flatnonzero(expected >= 10)[-1]
    seen = np.bincount(np.minimum(drawn, last), minlength=last + 1)
    expected = np.append(expected[:last], len(drawn) - expected[:last].sum())
    assert ((seen - expected) ** 2 / expected).sum() < chi2.isf(FALSE_ALARM, last)


@over_rows("scale", [Fraction(n, d) for n, d in ((1, 3), (1, 1), (7, 3), (20, 1), (2**41 + 1, 2**38))])
def test_noise_has_exactly_the_law_that_is_priced(scale):
    m, a = 60_000, 1.0 / float(scale)
    noise = DiscreteLaplaceMechanism(scale).release(np.zeros(m, int), stream(str(scale)))
    sizes = np.arange(1000)
    assert_law(np.abs(noise), math.tanh(a / 2) * np.exp(-a * sizes) * np.where(sizes, 2.0, 1.0))
    assert_law((noise[noise != 0] > 0).astype(int), [0.5, 0.5])


def test_noise_of_a_large_scale_falls_on_every_residue():
    """A number that was made in floating point would have holes, or a rhythm, in its last digits."""
    noise = DiscreteLaplaceMechanism(Fraction(10**13 + 1, 7)).release(np.zeros(100_000, int), stream("large"))
    for modulus in (2, 3, 64):
        assert_law(noise % modulus, np.full(modulus, 1.0 / modulus))
    assert_law(np.minimum(np.abs(noise) // 10**12, 20), [*-np.diff(np.exp(-0.7 * np.arange(21))), math.exp(-0.7 * 20)])


@over_rows("n", [3, 2**40 + 1, 2**62 - 1])
def test_uniform_numbers_are_uniform(n):
    drawn = discrete_noise._uniform(stream(str(n)), n, 30_000)
    assert 0 <= drawn.min() <= drawn.max() < n
    cells = min(n, 50)
    shares = np.diff([(i * n) // cells for i in range(cells + 1)]) / n
    edges = np.array([(i * n) // cells for i in range(1, cells)])
    assert_law(np.searchsorted(edges, drawn, side="right"), shares)


@over_rows(("above", "below"), [(0, 1), (2, 3), (1, 1), (10**12 - 1, 10**12)])
def test_trials_have_exponential_probabilities(above, below):
    numerators = np.full(100_000, above)
    source = stream(f"{above}/{below}")
    passed = discrete_noise.exp_trials(source, 100_000, discrete_noise._shares_of(source, numerators, below))
    p = math.exp(-above / below)
    if above == 0:
        assert passed.all()
    else:
        assert_law(passed.astype(int), [1.0 - p, p])


@over_rows(("epsilon", "sensitivity"), [(1e-5, 2**20), (1.0, 1), (7.3, 3), (1e6, 1)])
def test_the_scale_is_rounded_up_and_priced_as_rounded(epsilon, sensitivity):
    mechanism = DiscreteLaplaceMechanism.for_epsilon(epsilon, sensitivity)
    spent = sensitivity / mechanism.scale
    assert spent <= Fraction(epsilon)
    assert spent >= Fraction(epsilon) * (1 - Fraction(1, 10**5))
    assert Fraction(epsilon) >= Fraction(mechanism.epsilon) >= spent
    event = mechanism.event
    assert Fraction(event.noise_parameter) * event.sensitivity >= spent


@over_rows("adjacency", ["zero_out", "add_remove", "replace_one"])
def test_its_price_is_that_of_its_event(adjacency):
    mechanism = DiscreteLaplaceMechanism.for_epsilon(0.7, 2**20)
    pure = mechanism.epsilon * (2 if adjacency == "replace_one" else 1)
    assert get_epsilon(mechanism.event, 1e-100, adjacency=adjacency) == pytest.approx(pure, rel=1e-9)


@over_rows(("sensitivity", "steps"), [(1, 1), (24, 24), (1031, 1), (2**20, 1024)])
def test_the_event_states_no_less_than_the_noise(sensitivity, steps):
    """Exact deltas of the true steps never exceed those of the fewer ones that are stated."""
    mechanism = DiscreteLaplaceMechanism(Fraction(sensitivity), sensitivity)
    assert mechanism.event == DiscreteLaplaceDpEvent(discrete_noise._rounded_up(Fraction(1, steps)), steps)

    def delta(pair, epsilon):
        counted = pair.loss > epsilon
        return float(np.sum(np.exp(pair.log_weight[counted]) * -np.expm1(epsilon - pair.loss[counted])))

    step = 4096 if sensitivity == 2**20 else sensitivity  # of the true noise, cut finely enough to be listed
    true, stated = pair_of(1.0 / step, step), pair_of(1.0 / steps, steps)
    for epsilon in np.linspace(0.0, 0.99, 23):
        assert delta(true, epsilon) <= delta(stated, epsilon) + 1e-12


def test_the_deviation_is_that_of_the_noise():
    mechanism = DiscreteLaplaceMechanism.for_epsilon(1.0)
    assert mechanism.standard_deviation == pytest.approx(1.357, abs=5e-4)
    noise = mechanism.release(np.zeros(200_000, int), stream("deviation")).astype(float)
    assert noise.std() == pytest.approx(mechanism.standard_deviation, rel=0.02)
    assert DiscreteLaplaceMechanism(Fraction(1, 10**4)).standard_deviation == 0.0


@pytest.mark.parametrize("mechanism", [DiscreteLaplaceMechanism(Fraction(1)), DiscreteGaussianMechanism(1.0)])
@pytest.mark.parametrize("bad", [1.0, [0.5], "3", None, [[1], [2, 3]], 2**60, np.ma.masked_array([1], [True])])
def test_what_is_no_whole_number_is_rejected_without_its_value(bad, mechanism):
    accountant = PrivacyAccountant()
    with pytest.raises(ValueError, match="`value` must hold only integers up to"):
        mechanism.release(bad, accountant=accountant)
    assert not accountant.history
