"""Prices down to deltas of 1e-100, and the bound on the error of a quadrature on which they rest."""

from __future__ import annotations

import math

import mpmath
import numpy as np
from accounting_digits import DIGITS, beside_responses, kinds, of_one
from combinations import over_rows

from skdp.accounting import (
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    compose,
    get_delta,
    get_epsilon,
    get_epsilon_bounds,
)
from skdp.accounting.formulas.dominating import LossAtoms
from skdp.accounting.formulas.numeric import ERROR, MOST
from skdp.accounting.pld.grid import _on_grid, _rounding, _times_power
from skdp.accounting.pld.pairs import AtomsPair, Pair
from skdp.accounting.pld.reading import hockey_stick

RNG = np.random.default_rng(12)


def drawn(number: int, *ranges: tuple[float, float]) -> list[list[float]]:
    """Powers of ten, by the ranges of their exponents."""
    low, high = np.array(ranges).T
    return (10.0 ** RNG.uniform(low, high, (number, len(ranges)))).tolist()


RARE = [
    (2.0267733613047e-12, 0.08943048764551358, 1.644493088713715e-28),
    (5.593251861054504e-10, 0.18163074435803397, 1.1357599450973245e-27),
    (1.032167473520837e-06, 0.6207951400998727, 1.2437891615121732e-37),
]


def check(event, delta: float, replace_one: bool, exact, loose: float = 1e-3) -> None:
    """Not below the truth, and not far above; `exact` gives delta at an epsilon. The bracket holds it."""
    adjacency = "replace_one" if replace_one else "add_remove"
    epsilon = get_epsilon(event, delta, adjacency=adjacency)
    low, high = get_epsilon_bounds(event, delta, adjacency=adjacency)
    assert low <= high == epsilon
    assert epsilon == 5e-324 or exact(epsilon * (1.0 + 1e-14)) <= delta * (1.0 + 1e-9)
    if epsilon > 1e-5:
        assert exact(max(0.0, epsilon * (1.0 - loose) - 1e-5)) > delta
    if low > 0.0:
        assert exact(low * (1.0 - 1e-9)) >= delta * (1.0 - 1e-9)


@over_rows("replace_one", [False, True])
@over_rows(("q", "sigma", "delta"), [*RARE, *drawn(4, (-8, -0.1), (-0.8, 0.6), (-100, -3))])
def test_one_sampled_gaussian(q, sigma, delta, replace_one):
    event = PoissonSampledDpEvent(q, GaussianDpEvent(sigma))
    # in the digits of doubles a Gaussian's threshold is known to 1e-11 of epsilon
    check(event, delta, replace_one, lambda e: exact_one(q, sigma, e * (1.0 + 1e-11), replace_one))


def exact_one(q, sigma, epsilon, replace_one):
    with mpmath.workdps(DIGITS):
        return max(of_one(kind, q, sigma, mpmath.mpf(epsilon)) for kind in kinds(replace_one))


@over_rows("replace_one", [False, True])
@over_rows(
    ("q", "sigma", "size", "delta"),
    [
        *drawn(2, (-4, -0.1), (-0.4, 0.6), (-1.5, 0.3), (-100, -3)),
        *drawn(1, (-14, -4), (-0.6, 0.7), (-1.5, 0.7), (-30, -3)),
    ],
)
def test_one_sampled_gaussian_beside_responses(q, sigma, size, delta, replace_one):
    """Where one label of the grid is hundreds of nats of tilted mass above the next: loose perhaps, never below."""
    count, adjacency = 4, "replace_one" if replace_one else "add_remove"
    responses = SelfComposedDpEvent(EpsilonDeltaDpEvent(size, 0.0), count)
    event = compose([PoissonSampledDpEvent(q, GaussianDpEvent(sigma)), responses])
    exact = lambda e: beside_responses(q, sigma, size, count, e, replace_one)  # noqa: E731
    rare = q < 1e-3 and delta < 1e-10  # then the bound on the rounding of the transform shows
    check(event, delta, replace_one, exact, 1.0 if q < 1e-4 else 0.1 if rare else 1e-3)
    epsilon = get_epsilon(event, delta, adjacency=adjacency)
    for at in (epsilon, 0.5 * epsilon):
        assert get_delta(event, at, adjacency=adjacency) >= exact(at * (1.0 + 1e-14)) * (1.0 - 1e-9)


def sampled(q, sigma):
    return PoissonSampledDpEvent(q, GaussianDpEvent(sigma))


# One release may lose what lies above epsilon in the transform, or wrap around; the bracket is then beside these.
PARTS = [
    ([sampled(1.5919891926336934e-11, 0.29904866424184334), sampled(9.92882241515323e-15, 3.95)], 1.19e-29, False),
    (
        [
            sampled(1.7984889652995437e-12, 0.37678472871046537),
            SelfComposedDpEvent(EpsilonDeltaDpEvent(1.9155985056417943, 0.0), 2),
            GaussianDpEvent(324.89522281369966),
        ],
        2.361236067742277e-33,
        True,
    ),
    ([EpsilonDeltaDpEvent(1e10, 0.0)] * 10, 1e-5, False),
]


@over_rows(("parts", "delta", "replace_one"), PARTS)
def test_bracket_is_between_the_largest_part_and_basic_composition(parts, delta, replace_one):
    options = {"adjacency": "replace_one" if replace_one else "add_remove"}
    low, high = get_epsilon_bounds(compose(parts), delta, **options)
    assert low <= high
    assert low <= sum(get_epsilon(each, delta / len(parts), **options) for each in parts) * (1.0 + 1e-12)
    most = max(get_epsilon(each, delta, **options) for each in parts)
    assert high >= most * (1.0 - 1e-9)
    at = 0.998 * most
    found = [get_delta(each, at, **options) for each in parts]
    assert get_delta(compose(parts), at, **options) >= max(found) * (1.0 - 1e-9)


def beside_a_gaussian(q, sigma, other, epsilon):
    """Exact delta of a sampled Gaussian and a Gaussian, of replaced records: an integral over the second."""
    with mpmath.workdps(50):
        mu = 2 / mpmath.mpf(other)

        def at(z):
            left = mpmath.mpf(epsilon) - mu * z + mu * mu / 2
            return mpmath.npdf(z - mu) * of_one("replace", q, sigma, left)

        return mpmath.quad(at, [mpmath.mpf(3 * k) / 2 for k in range(-10, 11)])


def test_rare_sampled_gaussian_beside_gaussian_is_bracketed():
    """Fourier coefficients of 1e-8 were once taken as 0, and 1.002 of the delta was true."""
    q, sigma, other, delta = 1e-6, 0.5, 20.0, 1e-18
    event = compose([sampled(q, sigma), GaussianDpEvent(other)])
    low, epsilon = get_epsilon_bounds(event, delta, adjacency="replace_one")
    assert beside_a_gaussian(q, sigma, other, epsilon) <= delta * (1 + 1e-9)
    assert low == 0.0 or beside_a_gaussian(q, sigma, other, low * (1 - 1e-9)) >= delta * (1 - 1e-9)


def test_powers_of_a_transform_are_those_of_a_convolution():
    """Tilted masses, folded into the window, within the bound on their rounding; direct sums have no cancellation."""
    counts = (3, 1, 2)
    rng, size = np.random.default_rng(3), 1 << 12
    power, apart, direct = np.ones(size // 2 + 1, complex), 1.0, np.array([1.0])
    for count, width in zip(counts, (0.5, 40.0, 0.0), strict=True):
        center = size // 8
        spread = np.exp(-0.5 * ((np.arange(size // 4) - center) / 3.0) ** 2) if width == 0.0 else np.zeros(size // 4)
        spread[center] += width
        spread += 1e-9 * rng.random(size // 4)
        spread /= spread.sum()
        padded = np.zeros(size)
        padded[(np.arange(size // 4) - center) % size] = spread
        power, share = _times_power(power, padded, count)
        apart += count * share
        for _ in range(count):
            direct = np.convolve(direct, spread)
    start = -sum(count * (size // 8) for count in counts)
    folded = np.zeros(size)
    np.add.at(folded, (np.arange(len(direct)) + start) % size, direct)
    off, (one, norm) = np.fft.irfft(power, size) - folded, _rounding(power, apart, size)
    assert np.abs(off).max() <= one
    assert np.linalg.norm(off) <= norm


def test_rounding_is_upwards_at_the_ends_of_closed_forms():
    """A release that tells all that is sampled; the largest loss of repeated responses; a rate of next to nothing."""
    q, sigma, epsilon = 0.010542738304879111, 0.0065, 1.8e-6
    found = get_delta(sampled(q, sigma), epsilon, adjacency="replace_one")
    assert found >= of_one("replace", q, sigma, mpmath.mpf(epsilon)) * (1 - mpmath.mpf(10) ** -15)
    assert found == q
    responses = SelfComposedDpEvent(EpsilonDeltaDpEvent(0.4860562781396441, 0.0), 7)
    assert mpmath.mpf(get_epsilon(responses, 8.5e-57)) >= 7 * mpmath.mpf(0.4860562781396441)


def test_weighted_losses_keep_their_mass_within_a_span():
    """Losses below the span are raised to its first; those above it are counted as infinite."""
    pair = AtomsPair(LossAtoms.of(np.array([-1.0, 0.0, 1.0, 2.0]), np.log([0.1, 0.3, 0.35, 0.2]), 0.05), 1, False)
    found = pair.atoms(0.0, 1.0)
    assert found.low == 0.0
    assert 0.25 <= found.lost < 0.25 * (1 + 1e-12)
    masses = np.exp(found.log_weight)
    assert (masses >= [0.4, 0.35]).all()
    np.testing.assert_allclose(masses, [0.4, 0.35], rtol=1e-12)
    assert (found.loss >= [0.0, 1.0]).all()


# --- the theorem ------------------------------------------------------------------------------------------------


def exact_profile(pair: Pair, loss: float) -> mpmath.mpf:
    with mpmath.workdps(60):
        return of_one(pair.kind, pair.q, 1 / mpmath.mpf(pair.m), mpmath.mpf(loss))


@over_rows("kind", ["remove", "add", "replace"])
@over_rows(("q", "m", "h"), [*drawn(1, (-6, -0.01), (-1, 0.7), (-3, -0.5)), [1e-9, 0.7, 1e-4]])
def test_a_release_on_the_grid_dominates_the_exact_one(kind, q, m, h):
    """At every label its profile is no smaller, but for what the sum of the test itself rounds; nor is it much larger.

    Spans begin far up in the losses, too, where nearly all of the mass is below.
    """
    pair = Pair(kind, q, m, 1)
    for low, high in ((-9.0, 9.0 + m), (2.0, 14.0), (8.0, 20.0)):
        span = float(pair.loss(np.array([low]))[0]), float(pair.loss(np.array([high]))[0])
        extent = span[1] - span[0]
        if extent == 0.0:
            continue  # losses that do not differ from the largest
        width = max(min(h * min(1.0, q * 10.0), extent / 50.0), extent / 2e4)
        release = _on_grid(pair, (low, high), width, span[0])
        loss, mass = release.offset + width * release.position, np.exp(release.log_mass)
        for at in np.unique(np.linspace(2, loss.size - 2, 6).astype(int)):
            exact = exact_profile(pair, float(loss[at]))
            found = mpmath.mpf(hockey_stick(loss, mass, float(loss[at]))) + release.lost
            scale = float(mass[at:].sum()) + release.lost
            assert found >= exact - 1e-15 * scale * width
            if release.lost < 1e-9 * found:
                assert found <= exact + 1e-11 * scale


# --- delta is what epsilon is at --------------------------------------------------------------------------------


@over_rows("k", MOST)
def test_the_bound_on_the_error_of_a_quadrature(k):
    """By its formula, with the best of many rho."""
    s = MOST[k]
    rho = np.geomspace(1.001, 1e9, 100_001)
    a, b = (rho + 1 / rho) / 2, (rho - 1 / rho) / 2
    logs = math.log(32 / 15) - 2 * k * np.log(rho) - np.log1p(-(rho**-2.0)) + s * a + (s / 3) ** 2 * (b * b / 2 + 1 / 6)
    assert logs.min() <= math.log(ERROR)
