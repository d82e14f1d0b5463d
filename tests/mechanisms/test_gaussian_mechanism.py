"""The Gaussian mechanism: the noise that it adds is the noise that it costs."""

import math
from fractions import Fraction

import numpy as np
import pytest
from combinations import over_rows
from keyed_streams import FALSE_ALARM, stream
from scipy.stats import chi2, norm

from skdp import PrivacyAccountant
from skdp.accounting import GaussianDpEvent
from skdp.mechanisms import GaussianMechanism


def added_alone(values, name):
    """A naive mechanism: a double added to a double."""
    return values + 0.7 * stream(name).normal(len(values))


def on_our_grid(values, name):
    return GaussianMechanism(0.7, 1.0).release(values, stream(name))


def added_up(values):
    """The sum of doubles, one after the other."""
    return Fraction(float(np.add.accumulate(values)[-1]))


@over_rows(("noise_multiplier", "sensitivity"), [(0.3, 7.0), (1.0, 1e-3), (40.0, 0.25)])
def test_noise_has_the_standard_deviation_that_is_priced(noise_multiplier, sensitivity):
    """Property 2: sigma C, sigma being that of the event. Chi-square, two-sided."""
    mechanism = GaussianMechanism(noise_multiplier, sensitivity)
    assert mechanism.event == GaussianDpEvent(noise_multiplier)
    m = 20_000
    noise = mechanism.release(np.zeros(m), stream(f"{noise_multiplier} {sensitivity}"))
    score = np.sum((noise / (mechanism.event.noise_multiplier * sensitivity)) ** 2)
    assert chi2.isf(1 - FALSE_ALARM / 2, m) < score < chi2.isf(FALSE_ALARM / 2, m)


@over_rows("sigma", [0.3, 40.0, 1e6, 1e12])
def test_noise_does_not_depend_on_the_number_of_values(sigma):
    """The same stream adds the same noise to the first values, bit for bit, whatever follows them."""
    mechanism = GaussianMechanism(sigma, 1.0)
    longest = mechanism.release(np.arange(4**8 + 1), stream())
    for n in (1, 2, 100, 4**8 - 1, 4**8):
        np.testing.assert_array_equal(mechanism.release(np.arange(n), stream()), longest[:n])


# --- a mechanism alone ------------------------------------------------------------------------------------------------


@over_rows(
    ("value", "kind", "shape"),
    [
        (3.0, float, ()),
        (7, float, ()),
        (np.float32(2.5), float, ()),
        ([1, 2, 3], np.ndarray, (3,)),
        (np.ones((2, 3), np.float32), np.ndarray, (2, 3)),
        (np.array([True, False]), np.ndarray, (2,)),
    ],
)
def test_a_number_or_an_array_is_released_in_its_shape(value, kind, shape):
    released = GaussianMechanism(1e-6, 1e-3).release(value)
    assert isinstance(released, kind)
    assert np.shape(released) == shape
    np.testing.assert_allclose(released, np.asarray(value, float), atol=1e-7)


@pytest.mark.parametrize(
    "bad",
    [
        *(float("nan"), [1.0, np.inf], "17", ["17"], None, 1 + 2j, [[1.0], [2.0, 3.0]]),
        pytest.param([object()], id="object"),
        *(
            np.ma.masked_array([17.0, 18.0], [True, False]),
            np.longdouble("1e4000"),
            2**53 + 1,
            np.uint64(2**60),
            10**400,
        ),
    ],
    ids=repr,
)
def test_what_is_no_finite_number_is_rejected_without_its_value(bad):
    accountant = PrivacyAccountant()
    with pytest.raises(
        ValueError, match=r"^`value` must hold only finite real numbers in double precision\. [A-Za-z ]+\.$"
    ) as rejected:
        GaussianMechanism(1.0, 1.0).release(bad, accountant=accountant)
    assert rejected.value.__suppress_context__ or rejected.value.__context__ is None
    assert not accountant.history


@over_rows(
    ("noise_multiplier", "sensitivity", "expected"),
    [
        (2, np.uint8(128), 256.0),
        (np.int32(65536), np.int32(65536), 2.0**32),
        (np.int64(16), np.int64(2**60), 2.0**64),
        (np.float16(1.0), 1e-8, 1e-8),
        (np.float32(1.0), 1e-46, 1e-46),
        (Fraction(1, 2), Fraction(3), 1.5),
    ],
)
def test_the_noise_is_computed_in_doubles_whatever_it_was_given_in(noise_multiplier, sensitivity, expected):
    mechanism = GaussianMechanism(noise_multiplier, sensitivity)
    assert type(mechanism.standard_deviation) is float
    assert mechanism.standard_deviation == pytest.approx(expected * (1.0 + 1.01 * 2.0**-12), rel=1e-14)
    assert mechanism.release(0.0) != 0.0


def test_an_array_that_raises_tells_nothing():
    class Talkative:
        def __array__(self, *arguments, **keywords):
            raise RuntimeError("the value is 17")

    with pytest.raises(ValueError, match=r"^`value` must hold only finite real numbers") as rejected:
        GaussianMechanism(1.0, 1.0).release(Talkative())
    assert rejected.value.__suppress_context__


# --- on a grid --------------------------------------------------------------------------------------------------------


def public_grid(mechanism):
    return mechanism._grid_and_scale


@over_rows("value", [-0.0, 1 / 3, 1e-300, 12345.678])
def test_outputs_are_multiples_of_one_grid_whatever_the_value(value):
    """With the same noise, outputs are those of 0, moved by the value and rounded."""
    mechanism, p = GaussianMechanism(1.3, 2.0), 500
    grid, _ = public_grid(mechanism)
    out = mechanism.release(np.full(p, value), stream()) / grid
    moved = out - mechanism.release(np.zeros(p), stream()) / grid
    shift = Fraction(value) / Fraction(grid)
    assert set(moved.tolist()) <= {math.floor(shift), math.ceil(shift)}
    assert abs(moved.mean() - float(shift)) < norm.isf(FALSE_ALARM / 2) * 0.5 / math.sqrt(p)
    assert np.all(out == np.rint(out))
    assert not np.signbit(out[out == 0.0]).any()


@over_rows("sigma", [1e-3, 0.3, 1e12])
@over_rows("sensitivity", [1e-200, 2.5, 1e200])
def test_noise_has_room_for_rounded_sums(sigma, sensitivity):
    """The grid is a power of two, and the noise is that of a norm of C and all that two sums may differ by. Exact."""
    grid, scale = public_grid(GaussianMechanism(sigma, sensitivity))
    assert np.frexp(grid)[0] == 0.5
    assert 2.0**26 <= scale < 2.0**28
    raised = Fraction(scale) * Fraction(grid) / (Fraction(sigma) * Fraction(sensitivity))
    assert 1 + Fraction(101, 100 * 2**12) <= raised <= 1 + Fraction(1, 4055)


def test_a_sum_in_the_worst_order_moves_by_no_more_than_the_noise_has_room_for():
    """A million numbers, none above C = 1. The first half make the sum so large that each of the others, of a little
    more than half a unit of its last place, is rounded up to that unit; without the first number none of them is. So
    the sum moves by more than C, and by less than the noise was raised for, in this order and in others."""
    half = 2**19
    values = np.repeat([1.0, 2.0**-34 * (1 + 1e-6)], half)
    grid, scale = public_grid(GaussianMechanism(1.0, 1.0))
    raised = Fraction(scale) * Fraction(grid)
    assert added_up(values) - added_up(values[1:]) == 1 + Fraction(1, 2**15) < raised
    shuffled = np.random.default_rng(0).permutation(values)
    for ordered in (values[::-1], shuffled, np.ravel(values.reshape(2, half), order="F")):
        moved = added_up(ordered) - added_up(np.where(np.arange(2 * half) == ordered.argmax(), 0.0, ordered))
        assert abs(moved) <= raised
    exact = sum(map(Fraction, np.unique(values).tolist())) * half
    assert abs(added_up(values) - exact) <= (raised - 1) / 2  # the proof's bound on either sum


@pytest.mark.parametrize("release", [added_alone, on_our_grid])
def test_low_bits_tell_which_value_a_naive_mechanism_had_and_not_which_ours_had(release):
    """The attack of Mironov (2012) and of Haney et al. (2022): the sum of 1 and a double is a multiple of 2**-53, that
    of 0 and a double near 0 mostly is not. Outputs from -1/4 to 1/4, where finer doubles are many."""
    n = 4_000
    shares = []
    for value in (0.0, 1.0):
        out = release(np.full(n, value), f"attack {value}")
        out = out[np.abs(out) < 0.25]
        assert len(out) > 300
        shares.append(np.mean(out * 2.0**53 % 1.0 == 0.0))
    if release is added_alone:
        assert shares[0] < 0.5 < shares[1] == 1.0
    else:
        assert shares == [1.0, 1.0]
