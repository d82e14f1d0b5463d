"""A damaged file shows no fewer charges than were made: it is rejected, or the damage is harmless.

One bit is flipped, one page is of an earlier moment or in the wrong place. A whole file of an earlier moment cannot be
told, but by a `head` that was noted (`test_store_faults.py`).
"""

import random

import pytest
from ledger_damage import PAGE, flipped_bits, misplaced_pages, outcomes, stale_pages, written


@pytest.fixture(scope="module")
def five(tmp_path_factory):
    """Five charges under a budget."""
    return written(str(tmp_path_factory.mktemp("five") / "a.budget"), 0, 5, (20.0, 1e-5))


def all_bits(pages):
    return range(8 * PAGE * len(pages))


def structure(pages):
    """The bytes by which SQLite finds its way: the first page, heads of pages, pointers, and heads of cells."""
    places = {*range(PAGE)}
    for number, page in enumerate(pages[1:], start=1):
        start, kind, cells = number * PAGE, page[0], int.from_bytes(page[3:5], "big")
        head = 12 if kind == 5 else 8
        places.update(range(start, start + head + 2 * cells))
        for cell in range(cells):
            at = int.from_bytes(page[head + 2 * cell : head + 2 * cell + 2], "big")
            places.update(range(start + at, start + min(at + 24, PAGE)))
    return sorted(places)


def test_pages_of_another_moment_or_place_in_a_file_of_five_charges(path, five):
    history, moments = five
    stale = outcomes(path, history, stale_pages(moments))
    assert stale["rejected"] >= 4 + 4 + 4  # charges and the last entry at four moments; no page at all
    misplaced = outcomes(path, history, misplaced_pages(moments[-1]))
    assert misplaced == {"rejected": 18}


def test_some_flipped_bits_of_a_file_of_five_charges(path, five):
    """Of the bytes by which SQLite finds its way, one bit in 150; of all, one in 4,000."""
    history, moments = five
    rng, places = random.Random(0), structure(moments[-1])
    bits = rng.sample([8 * place + bit for place in places for bit in range(8)], len(places) * 8 // 150)
    bits += rng.sample(all_bits(moments[-1]), len(all_bits(moments[-1])) // 4000)
    found = outcomes(path, history, flipped_bits(moments[-1], bits))
    assert found["rejected"] > len(bits) / 5
    assert found["harmless"] > len(bits) / 5


def test_bits_that_hid_charges(path, five):
    """In the definition of the charges, where it says their name and page, and in the head of that page: every bit."""
    history, moments = five
    whole = b"".join(moments[-1])
    first = whole.index(b"CREATE TABLE charges")
    places = [*range(first - 16, first + 21), *range(2 * PAGE, 2 * PAGE + 8)]
    bits = [8 * place + bit for place in places for bit in range(8)]
    found = outcomes(path, history, flipped_bits(moments[-1], bits))
    assert found["rejected"] > 0.9 * len(bits)


def test_pages_and_bits_of_a_file_of_two_thousand_charges(path, tmp_path):
    """A sample of 90; the rest are in the slow tests."""
    history, moments = written(str(tmp_path / "many.budget"), 1960, 40)
    rng, pages = random.Random(1), moments[-1]
    stale = outcomes(path, history, rng.sample(list(stale_pages(moments)), 30))
    assert stale["rejected"] >= 10  # the others are the first page, which tells how many there are, of the same number
    assert outcomes(path, history, rng.sample(list(misplaced_pages(pages[:30])), 30)) == {"rejected": 30}
    bits = [8 * place + rng.randrange(8) for place in rng.sample(structure(pages), 30)]
    assert outcomes(path, history, flipped_bits(pages, bits))["rejected"] >= 20
