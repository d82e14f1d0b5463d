"""Whole numbers of noise are those of ideal normals: by mpmath, and counted where words are short."""

import itertools
import math
from collections import Counter

import mpmath
import numpy as np
from combinations import over_rows
from keyed_streams import stream
from scipy.stats import norm

from skdp._kernels.bits import BLOCK, normals_from_words
from skdp.mechanisms import streams
from skdp.mechanisms.streams import decided_pair, error_bound, rounded_pair

HALF = BLOCK // 2
LAST = 2**64 - 1
SCALE = 1.37 * 2.0**26
NOTHING, EVERYTHING = itertools.repeat((0, 0)), itertools.repeat((LAST, LAST))


def ideal_pair(radius, n_radius, angle, n_angle, axis):
    """Box and Muller's two normals of 1 - U = radius / 2**n_radius, and of an angle likewise."""
    length = mpmath.sqrt(-2 * mpmath.log(1 - mpmath.mpf(radius) / 2**n_radius))
    turn = (mpmath.mpf(angle) / 2**n_angle - mpmath.mpf("0.5")) * mpmath.pi / 2
    cosine = -mpmath.cos(turn) if axis & 1 else mpmath.cos(turn)
    pair = (mpmath.sin(turn), cosine) if axis & 2 else (cosine, mpmath.sin(turn))
    return [length * each for each in pair]


def ends_of(radius, angle):
    """The ideal normals of two words of 64 bits if no further digit is 1, and if nearly all are."""
    with mpmath.workprec(300):
        low = ideal_pair(radius << 100, 164, (angle >> 12) << 100, 152, angle & 3)
        high = ideal_pair((radius + 1 << 100) - 1, 164, ((angle >> 12) + 1 << 100) - 1, 152, angle & 3)
    return list(zip(low, high, strict=True))


def words_with_extremes(n_random):
    """Pairs of words: all ends of words among themselves, and with random ones."""
    rng = np.random.default_rng(0)
    radii = [0, 1, 2, 2**12, 2**32, 2**52, 2**63 - 1, 2**63, 2**64 - 2**40, LAST - 2**12, LAST - 1]
    radii += [2**64 - int(2**64 * share) for share in (math.sqrt(0.5), 0.5, 0.25, 2.0**-20, 2.0**-40)]
    places = [0, 1, 2**51 - 1, 2**51, 2**51 + 1, 2**52 - 1]
    angles = [place << 12 | axis for place in places for axis in range(4)]
    drawn = rng.integers(0, 2**64, (n_random, 2), dtype=np.uint64).tolist()
    mixed = [(radius, drawn[k][1]) for k, radius in enumerate(radii)]
    return [*itertools.product(radii, angles), *mixed, *drawn]


def of_kernel(pairs):
    """The two normals that the kernel makes of each pair of words."""
    words = np.zeros((-(-len(pairs) // HALF), 2, HALF), np.uint64)
    for which in range(2):
        filled = np.zeros(words.shape[0] * HALF, np.uint64)
        filled[: len(pairs)] = [pair[which] for pair in pairs]
        words[:, which] = filled.reshape(-1, HALF)
    out = np.empty(words.size)
    normals_from_words(words.ravel(), out)
    return out.reshape(-1, 2, HALF).transpose(0, 2, 1).reshape(-1, 2)[: len(pairs)].tolist()


def check_bound(pairs):
    """The largest part of its bound that the distance of a normal from its ideal takes, in units of 1."""
    largest = 0.0
    for (radius, angle), found in zip(pairs, of_kernel(pairs), strict=True):
        bound = error_bound(radius, radius)
        for z, ends in zip(found, ends_of(radius, angle), strict=True):
            distance = max(abs(mpmath.mpf(z) - end) for end in ends)
            # the product with a scale is rounded too, which the bound has room for
            largest = max(largest, (float(distance) + 2.0**-53 * abs(z)) / bound)
    assert largest <= 1.0
    return largest


def test_no_normal_is_further_from_the_ideal_than_the_bound():
    """Whatever the further digits: normals are monotone in them but near the axes, where they are flat."""
    assert check_bound(words_with_extremes(200)) > 0.15  # the bound is no idle one


def test_the_bound_holds_for_all_words_between_two():
    pairs = [(100, 10**19), (2**40, 2**63), (2**63, 2**63 + 1), (2**62, 2**64 - 2**30)]
    for least, most in pairs:
        inner = [least, most, *(least + (most - least) * k // 7 for k in range(7))]
        assert all(error_bound(word, word) <= error_bound(least, most) for word in inner)


def test_words_at_the_ends_are_certain_of_nothing():
    """A radius may be as short, or as long, as further digits make it."""
    assert error_bound(0, 2**63) == error_bound(5, LAST) == error_bound(0, LAST) == math.inf


@over_rows("rest", [0.0, 0.5, -1e-320])
def test_what_the_kernel_rounds_stands_whatever_the_further_digits(rest):
    pairs = words_with_extremes(60)
    n_certain = 0
    for (radius, angle), found in zip(pairs, of_kernel(pairs), strict=True):
        limit = 0.5 - SCALE * error_bound(radius, radius)
        sums = SCALE * np.array(found) + rest
        if not np.all(np.abs(sums - np.rint(sums)) <= limit):
            continue
        n_certain += 1
        rounded = tuple(np.rint(sums).astype(int).tolist())
        assert rounded_pair(radius, angle, SCALE, rest, NOTHING) == rounded
        assert rounded_pair(radius, angle, SCALE, rest, EVERYTHING) == rounded
    assert n_certain > 150


@over_rows("rest", [0.0, -0.4999])
@over_rows("scale", [1.0, SCALE, 2.0**53, 2.0**80])
def test_further_digits_are_those_of_the_same_two_numbers(scale, rest):
    """Against mpmath with the digits that follow, also where the rounding needs many of them, and in the tail.

    At 2**53 it is the angle alone that is open.
    """
    rng = np.random.default_rng(1)
    digits = rng.integers(0, 2**64, (4, 2), dtype=np.uint64).tolist()
    pairs = [*rng.integers(0, 2**64, (6, 2), dtype=np.uint64).tolist(), (0, 5), (LAST, 2**63 + 2), (LAST, 3)]
    for radius, angle in pairs:
        long_radius, long_angle = radius, angle >> 12
        for first, second in digits:
            long_radius, long_angle = long_radius << 64 | first, long_angle << 64 | second
        with mpmath.workprec(600):
            ideal = ideal_pair(long_radius, 320, long_angle, 308, angle & 3)
            shift = mpmath.mpf(rest) + mpmath.mpf("0.5")
            expected = tuple(int(mpmath.floor(mpmath.mpf(scale) * z + shift)) for z in ideal)
        assert rounded_pair(radius, angle, scale, rest, digits) == expected


def test_errors_of_radius_and_angle_add_up():
    """Each leaves the sum open by 0.32 here, so that two whole numbers are possible for every angle."""
    assert all(decided_pair(109, 8, angle, 8, axis, 100.0, 0.0) is None for angle in range(256) for axis in range(4))


def all_counts(n_radius, n_angle, scale):
    """How many of all pairs of words of so many bits decide each pair of numbers; None counts those that do not."""
    digits = itertools.product(range(1 << n_radius), range(1 << n_angle), range(4))
    return Counter(decided_pair(radius, n_radius, angle, n_angle, axis, scale, 0.0) for radius, angle, axis in digits)


def check_law(pairs):
    """The law of both numbers is normal but for what is open, of which the share is returned."""
    pairs, total = Counter(pairs), pairs.total()
    n_open = pairs.pop(None)
    for which in range(2):
        count = Counter()
        for pair, n in pairs.items():
            count[pair[which]] += n
        for number in range(min(count) - 2, max(count) + 3):
            mass = norm.cdf((number + 0.5) / SHORT_SCALE) - norm.cdf((number - 0.5) / SHORT_SCALE)
            assert count[number] / total <= mass + 1e-12
            assert mass <= (count[number] + n_open) / total + 1e-12
    return n_open / total


SHORT_SCALE = 0.8


def test_short_words_have_the_law_of_a_rounded_normal():
    counts = all_counts(5, 4, SHORT_SCALE)
    assert check_law(counts) < 0.4


# --- in a stream ------------------------------------------------------------------------------------------------------


def noisy(source, size, scale, grid=1.0):
    """Noise on values of which half are multiples of the grid."""
    return source.noisy(np.arange(size) * grid * 0.75, scale, grid)


@over_rows(("scale", "sizes"), [(SCALE, (0, 1, 700, 8_192, 8_193, 3)), (2.0**46, (3, 1, 20))])
def test_noise_does_not_depend_on_how_values_are_split(scale, sizes):
    """At the largest scale nearly every number needs further digits."""
    value = np.arange(sum(sizes)) * 0.75
    found, cut = stream().noisy(value, scale, 1.0), stream()
    parts = np.split(value, np.cumsum(sizes)[:-1])
    np.testing.assert_array_equal(np.concatenate([cut.noisy(part, scale, 1.0) for part in parts]), found)


@over_rows("scale", [SCALE, 2.0**44])
def test_a_sum_near_a_half_takes_digits_for_its_own_value(scale):
    """Values are chosen so that every sum is within the kernel's error of a half; against mpmath, by 300 bits."""
    n = 100
    words = stream().words(2 * HALF).reshape(2, HALF)[:, :n].T.tolist()
    z = stream().normal(BLOCK)[:n]
    value = np.round(scale * z) + 0.5 - scale * z
    found = stream().noisy(np.concatenate([value, np.zeros(BLOCK - n)]), scale, 1.0)[:n]
    for (radius, angle), v, whole in zip(words, value.tolist(), found.tolist(), strict=True):
        for end in ends_of(radius, angle)[0]:
            with mpmath.workprec(300):
                ideal = mpmath.mpf(scale) * end + mpmath.mpf(v)
                assert abs(ideal - whole) <= 0.5 + scale * error_bound(radius, radius)


def test_both_normals_of_a_pair_go_on_with_the_same_digits(monkeypatch):
    """Else they would be cosine and sine of two angles. Other pairs, in other blocks too, have digits of their own."""
    seen = []

    def recorded(radius, angle, scale, rest, further):
        seen.append((radius, angle, *next(iter(further))))
        return 0, 0

    monkeypatch.setattr(streams, "rounded_pair", recorded)
    monkeypatch.setattr(streams, "error_bound", lambda least, most: math.inf)
    source = stream()
    noisy(source, 100, 1.0)
    source.words(6)  # other words in between change nothing
    noisy(source, 2 * BLOCK - 100, 1.0)
    blocks = [seen[:BLOCK], seen[BLOCK:]]
    assert all(block[:HALF] == block[HALF:] for block in blocks)
    digits = {pair[2:] for block in blocks for pair in block}
    assert len(digits) == len({pair[2] for pair in seen}) == 2 * HALF
    words = stream().words(2 * BLOCK).reshape(2, 2, HALF)
    assert [pair[:2] for block in blocks for pair in block[:HALF]] == [
        pair for block in words for pair in zip(*block.tolist(), strict=True)
    ]


def test_noise_takes_digits_where_the_bound_asks_for_them(monkeypatch):
    """Where the bound is that of a batch and not of the pair, the kernel's number stands; else the digits decide."""
    asked = []
    monkeypatch.setattr(streams, "rounded_pair", lambda *given: asked.append(given) or (10**6, 10**6))
    scale = 2.0**40
    z = stream().normal(BLOCK)
    words = stream().words(BLOCK)
    bounds = np.array([error_bound(word, word) for word in words[:HALF].tolist() * 2])
    whole = stream().noisy(np.zeros(BLOCK), scale, 1.0)
    open_ones = np.abs(z * scale - np.rint(z * scale)) > 0.5 - scale * bounds
    np.testing.assert_array_equal(whole == 10**6, open_ones)
    assert len(asked) == open_ones.sum() > 0
