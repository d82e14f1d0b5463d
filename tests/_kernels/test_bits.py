"""Words to normals and to rows: the two kernels of `_bits` against their plain reading and against exact tails."""

import math

import numpy as np
import pytest
import reference
from combinations import over_rows
from scipy.stats import norm, rayleigh

from skdp._kernels.bits import (
    BLOCK,
    add_normals,
    extreme_radii,
    gaps_from_words,
    normals_from_words,
    parts_of_sums,
    rows_from_gaps,
)

HALF = BLOCK // 2
EPS = np.finfo(np.float64).eps
STRAIGHT = 1 << 63  # an angle word of 0 degrees: cosine 1, sine 0


def words_of(numbers):
    return np.array([int(number) for number in numbers], dtype=np.uint64)


def random_words(count, seed=0):
    return np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64)


def normals(words, dtype=np.float64):
    out = np.empty(len(words), dtype)
    normals_from_words(words, out)
    return out


def radii(radius_words):
    """What the kernel makes of radius words: the normals at angle 0. The number of words is arbitrary."""
    radius_words = np.asarray(radius_words, np.uint64)
    blocks = -(-len(radius_words) // HALF)
    words = np.full((blocks, 2, HALF), STRAIGHT, np.uint64)
    words[:, 0].flat[: len(radius_words)] = radius_words
    return normals(words.ravel()).reshape(blocks, 2, HALF)[:, 0].ravel()[: len(radius_words)]


def projections(radius_words, angle_words):
    """First and second normals of pairs of words, each of a shape (m,) with m a multiple of half a block."""
    words = np.stack([radius_words.reshape(-1, HALF), angle_words.reshape(-1, HALF)], axis=1)
    out = normals(words.ravel()).reshape(-1, 2, HALF)
    return out[:, 0].ravel(), out[:, 1].ravel()


EDGE_WORDS = sorted(
    {(2**k + off) % 2**64 for k in range(65) for off in (-1, 0, 1)}
    | {(2**64 - 2**k + off) % 2**64 for k in range(65) for off in (-1, 0, 1)}
)


@over_rows("grid", [2.0**-987, 1.0, 2.0**963])
def test_noisy_sums_match_exact_fractions(grid):
    """Values of all sizes up to where doubles are further apart than the grid, and signs of 0."""
    rng = np.random.default_rng(0)
    sizes = np.array([0.0, -0.0, 0.5, -0.5, 1.5, 2.5, 2.0**51 - 0.5, 2.0**52 - 0.5, 0.5 - 2.0**52, 2.0**52 + 1.0, 1e17])
    value = np.concatenate([sizes, rng.normal(size=2_000) * 2.0 ** rng.integers(-60, 58, 2_000)]) * grid
    z, scale = normals(random_words(4 * BLOCK))[: len(value)], 2.0**26 * 1.7
    noisy, *parts = np.empty((4, len(value)))
    count = add_normals(value, z, scale, grid, 0.49, noisy)
    expected, distance = reference.noisy(value, z, scale, grid)
    np.testing.assert_array_equal(noisy, expected)
    parts_of_sums(value, z, scale, grid, *parts)
    np.testing.assert_allclose(parts[2], distance, rtol=0, atol=2.0**-25)
    assert count == np.sum(parts[2] > 0.49) > 10
    np.testing.assert_array_equal(parts[0] + parts[1] * grid, value)
    assert np.abs(parts[1]).max() <= 0.5
    for limit in (-math.inf, math.nan):
        assert add_normals(value, z, scale, grid, limit, noisy) == len(z)


def test_extreme_radii_hold_all_radius_words_and_no_other():
    words = random_words(2 * BLOCK).reshape(2, 2, HALF)
    words[:, 1] = np.array([0, 2**64 - 1], np.uint64).repeat(HALF // 2)  # of angles
    least, largest = (int(each) for each in extreme_radii(words.ravel()))
    assert 0 <= int(words[:, 0].min()) - least <= 1
    assert 0 <= largest - int(words[:, 0].max()) <= 1
    words[0, 0, 3], words[1, 0, -1] = 0, 2**64 - 1
    assert [int(each) for each in extreme_radii(words.ravel())] == [0, 2**64 - 1]


def test_radii_are_those_of_the_plain_reading():
    """-2 log U to a few ulp, and to the 2**-53 to which U itself is held near 1."""
    words = words_of(EDGE_WORDS + list(random_words(5_000)))
    found = radii(words) ** 2
    exact = np.array([-2.0 * reference.log_unit(word) for word in words])
    np.testing.assert_array_less(np.abs(found - exact), 2 * EPS + 6 * EPS * exact)


def test_normals_are_those_of_the_plain_reading():
    words = random_words(20 * BLOCK)
    # absolute: an angle that is a rounded multiple of pi / 2**54, times a radius of at most 9.42
    np.testing.assert_allclose(normals(words), reference.normals(words), rtol=0, atol=10 * 4 * EPS)


def test_normals_at_the_edges_of_the_octants():
    angles = [(high << 12) | low for high in (0, 1, 2**51 - 1, 2**51, 2**51 + 1, 2**52 - 1) for low in range(4)]
    words = np.zeros(BLOCK, np.uint64)
    words[:HALF] = 2**63
    words[HALF : HALF + len(angles)] = words_of(angles)
    np.testing.assert_allclose(normals(words), reference.normals(words), rtol=0, atol=10 * EPS)


def test_float32_is_the_rounded_float64():
    words = random_words(20 * BLOCK)
    np.testing.assert_array_equal(normals(words, np.float32), normals(words).astype(np.float32))


# --- property 9: extreme words ---


def test_radius_at_chosen_extreme_words():
    """U = 2**-40 ... 2**-64 gives sqrt(-2 log U) to 4 ulp, and |z| = 8.2 and more is reached."""
    exponents = np.arange(40, 65)
    found = radii(words_of(2**64 - 2 ** (64 - int(k)) for k in exponents))
    exact = np.array([math.sqrt(2.0 * k * math.log(2.0)) for k in exponents.tolist()])
    np.testing.assert_allclose(found, exact, rtol=4 * EPS)
    np.testing.assert_allclose(found, rayleigh.isf(2.0**-exponents), rtol=1e-12)
    assert found[-1] > 9.4
    assert found[exponents == 53][0] > 8.2


def test_radius_falls_with_the_word():
    """Needed by the bisection below, and by the tails: no word jumps out of order."""
    words = np.sort(np.concatenate([random_words(20_000), words_of(EDGE_WORDS)]))
    assert np.all(np.diff(radii(words)) >= 0)


def tail_probability(t, axis, n_angles=4 * 1024):
    """P(z > t) over both words: the exact count of radius words above t, averaged over a grid of angles.

    The grid is even over the whole circle (1,024 midpoints of each of the four sectors), and the integrand periodic
    and analytic there, so the midpoint rule converges faster than any power. The count is found by bisection on the
    radius word through the kernel.
    """
    cells = np.arange(n_angles // 4, dtype=np.uint64)
    cell = np.uint64(2**64 // (n_angles // 4))
    middle = cells * cell + cell // np.uint64(2)
    angles = np.concatenate([middle + np.uint64(sector) for sector in range(4)])
    low = np.zeros(n_angles, np.uint64)  # smallest word with z > t lies in (low, high], or there is none
    high = np.full(n_angles, 2**64 - 1, np.uint64)
    reached = projections(high, angles)[axis] > t
    for _ in range(64):
        middle_word = low + (high - low) // np.uint64(2)
        above = projections(middle_word, angles)[axis] > t
        high = np.where(above, middle_word, high)
        low = np.where(above, low, middle_word)
    counts = [2**64 - int(word) if hit else 0 for word, hit in zip(high, reached, strict=True)]
    return sum(counts) / n_angles / 2**64


@over_rows(("k", "axis"), [(40, 0), (53, 1)])
def test_tail_agrees_with_isf(k, axis):
    """Property 9: P(z > norm.isf(2**-k)) is 2**-k (Craig 1991), for k = 40 to 53, that is t = 7.05 to 8.2.

    1e-3 relative allows for whole numbers of words: at k = 53 one part in 2**11 at an angle, less in the mean.
    """
    t = norm.isf(2.0**-k)
    assert tail_probability(t, axis) == pytest.approx(norm.sf(t), rel=1e-3)


# --- rows ---


def rows(words, n, rate, last=-1):
    out = np.empty(len(words), np.int64)
    assert gaps_from_words(words, -math.log1p(-rate), float(n), -1.0, math.inf, out) == 0
    count, last = rows_from_gaps(out, n, last)
    return out[:count].tolist(), last


@over_rows("rate", [1e-9, 0.2, 0.999999])
@over_rows("n", [1, 1_000, 10**12])
def test_rows_are_those_of_the_plain_reading(n, rate):
    words = random_words(4_000)
    expected = reference.poisson_rows([*words, *[2**64 - 1] * 10**6], n, rate) if n < 10**12 else None
    found, last = rows(words, n, rate)
    if expected is None:  # more rows than words: the kernel stops where the words end
        assert len(found) == len(words) or last >= n
        expected = reference.poisson_rows([*words[: len(found)], *[2**64 - 1] * 2], found[-1] + 1, rate) + found[-1:]
        assert found == sorted(set(expected))
        return
    assert found == expected
    assert last >= n


def test_rows_go_on_where_they_stopped():
    """Property 3: how the words are cut changes nothing."""
    words = random_words(300)
    whole, _ = rows(words, 10_000, 0.05)
    parts, last = [], -1
    for start in range(0, 300, 7):
        part, last = rows(words[start : start + 7], 10_000, 0.05, last)
        parts += part
        if last >= 10_000:
            break
    assert parts == whole


def test_rows_at_extreme_words():
    """Word 0 (U = 1) passes over no row, the last word (U = 2**-64) over floor(44.36 / -log(1 - q))."""
    assert rows(words_of([0, 0, 0, 2**64 - 1]), 1_000, 0.5)[0] == [0, 1, 2, 3 + 64]  # 64 halvings
    assert rows(words_of([2**64 - 1, 0]), 1_000, 0.01) == ([], 1_000)


@over_rows("rate", [1e-17, 1e-20, 1e-300])
def test_no_rate_is_so_small_that_a_gap_overflows(rate):
    """A gap beyond 2**63 ends the sample like any other: no row may lie outside range(n)."""
    assert rows(words_of([2**64 - 1, 2**63, 1]), 5, rate)[0] == []
