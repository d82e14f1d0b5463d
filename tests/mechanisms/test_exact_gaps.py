"""Gaps of a sample are those of ideal numbers: by mpmath, and counted where words are short."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from combinations import over_rows
from keyed_streams import stream

from skdp._kernels.bits import gaps_from_words
from skdp.mechanisms import streams
from skdp.mechanisms.streams import certainty, decided_gap, exact_gap

LAST = 2**64 - 1
NOTHING, EVERYTHING = itertools.repeat(0), itertools.repeat(LAST)
RATES = [1e-9, 0.01, 0.999]


def ideal_quotient(digits, n_bits, rate):
    """log U / log(1 - q) for 1 - U = digits / 2**n_bits."""
    with mpmath.workprec(600):
        return mpmath.log1p(-mpmath.mpf(digits) / 2**n_bits) / mpmath.log1p(-mpmath.mpf(rate))


def words_near_whole_numbers(rate):
    """Words at which the quotient passes a whole number, with their neighbors, random ones and the ends."""
    found = {0, 1, 2**11, 2**63, LAST - 2**39, LAST - 2**41, LAST - 1, LAST}
    with mpmath.workprec(300):
        for k in (1, 2, 3, 10, 1000):
            edge = int((1 - (1 - mpmath.mpf(rate)) ** k) * 2**64)
            found |= {edge + step for step in (-(2**26), -(2**12), -1, 0, 1, 2**12, 2**26)}
    drawn = np.random.default_rng(0).integers(0, 2**64, 80, dtype=np.uint64).tolist()
    return [each for each in [*sorted(found), *drawn] if 0 <= each <= LAST]


@over_rows("rate", RATES)
def test_what_the_kernel_rounds_stands_whatever_the_further_digits(rate):
    words = words_near_whole_numbers(rate)
    log_survival, gaps, limit = -math.log1p(-rate), np.empty(len(words), np.int64), 10**11
    n_open = gaps_from_words(np.array(words, np.uint64), log_survival, float(limit), *certainty(log_survival), gaps)
    assert n_open == (gaps < 0).sum() > 0
    assert n_open < len(words) / 2
    for word, gap in zip(words, gaps.tolist(), strict=True):
        ends = [ideal_quotient(word, 64, rate), ideal_quotient((word + 1 << 100) - 1, 164, rate)]
        if gap >= 0:
            assert [min(int(mpmath.floor(end)), limit) for end in ends] == [gap, gap]
            assert exact_gap(word, rate, limit, NOTHING) == exact_gap(word, rate, limit, EVERYTHING) == gap


@over_rows("rate", RATES)
def test_further_digits_are_those_of_the_same_number(rate):
    digits = np.random.default_rng(1).integers(0, 2**64, 4, dtype=np.uint64).tolist()
    for word in words_near_whole_numbers(rate)[:60]:
        long = word
        for each in digits:
            long = long << 64 | each
        expected = int(mpmath.floor(ideal_quotient(long, 320, rate)))
        assert exact_gap(word, rate, 10**12, digits) == min(expected, 10**12)


def test_a_number_at_the_end_takes_digits_until_they_decide():
    found = exact_gap(LAST, 0.5, 10**6, further := iter([LAST, LAST - 2, 5, 7]))
    assert found == 190  # U is a little less than 3 / 2**192
    assert list(further) == [7]
    assert exact_gap(LAST, 0.5, 63, iter(())) == 63  # all that is left is beyond the last row
    assert exact_gap(0, 1e-300, 10**12, EVERYTHING) == 10**12


@pytest.mark.parametrize(("n_bits", "rate"), [(8, 0.3), (8, 0.9), pytest.param(12, 0.05, marks=pytest.mark.slow)])
def test_short_words_have_the_geometric_law(n_bits, rate):
    """Of all words of so many bits, those that decide a gap are no more than its chances, and with the open ones no
    less: in fractions, without any tolerance."""
    counts = Counter(decided_gap(word, n_bits, rate, 10**6) for word in range(1 << n_bits))
    n_open, q = counts.pop(None), Fraction(rate)
    for gap in range(max(counts) + 2):
        mass = (1 - q) ** gap * q
        assert Fraction(counts[gap], 1 << n_bits) <= mass <= Fraction(counts[gap] + n_open, 1 << n_bits)
    assert n_open < 0.07 * (1 << n_bits)


def test_a_stream_takes_digits_where_a_gap_is_uncertain(monkeypatch):
    """Each of them has digits of its own, whatever the lot, and the certain ones none."""
    asked = []

    def decided(word, rate, limit, further):
        asked.append((word, next(iter(further))))
        return 5

    monkeypatch.setattr(streams, "certainty", lambda log_survival: (0.25, math.inf))
    monkeypatch.setattr(streams, "exact_gap", decided)
    source = stream()
    lots = [source.poisson_rows(1_000, 0.1) for _ in range(2)]
    words = stream().words(1_000).tolist()
    assert [word in words for word, _ in asked] == [True] * len(asked)
    assert len({digits for _, digits in asked}) == len(asked) > 50
    assert all(5 in np.diff(lot, prepend=-1) - 1 for lot in lots)


def test_a_lot_is_that_of_exact_gaps():
    """Also where next to every gap is uncertain."""
    rate, n = 1e-12, 10**13
    found = stream().poisson_rows(n, rate)
    source, rows, last = stream(), [], -1
    words = source.words(60).tolist()
    for place, word in enumerate(words):
        key = streams.hmac.digest(source._key, repr(("further bits of a gap", place)).encode(), "sha256")
        last += 1 + exact_gap(word, rate, n, streams._words_of(streams._Draws(key, 0)))
        if last >= n:
            break
        rows.append(last)
    assert found.tolist() == rows
