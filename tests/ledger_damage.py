"""Ways in which a disk or a bad copy damages the file of a ledger: one bit, one page, or two that change places."""

import itertools
import pathlib
from collections import Counter

from ledger_files import fresh

from skdp import PrivacyAccountant
from skdp.accounting import GaussianDpEvent
from skdp.exceptions import BudgetFileError

PAGE = 4096
AFTER = GaussianDpEvent(900.0)


def written(path, at_once, one_by_one, budget=()):
    """The history of a file, and what it held after each charge of the second part, as pages; equal ones are one."""
    memory, known, moments = PrivacyAccountant(*budget), {}, []
    for k in range(at_once):
        charge(memory, k)
    accountant = PrivacyAccountant.from_json(memory.to_json(), resume=True, path=path)
    for k in range(at_once, at_once + one_by_one):
        charge(accountant, k)
        whole = pathlib.Path(path).read_bytes()
        pages = [whole[at : at + PAGE] for at in range(0, len(whole), PAGE)]
        moments.append([known.setdefault(page, page) for page in pages])
    return accountant.history, moments


def charge(accountant, k):
    accountant.spend(GaussianDpEvent(20.0 + k % 5), "mean", note="n" * (k % 7))


def put(pages, *changes):
    """The file with some of its pages exchanged: pairs of a place and a content."""
    changed = dict(changes)
    return b"".join(changed.get(place, page) for place, page in enumerate(pages))


def stale_pages(moments):
    """Each page as it was at each earlier moment, and one of zeros, as a write that was lost leaves it."""
    now, told = moments[-1], set()
    for moment in moments:
        for place, page in enumerate(moment):
            known = place, page if place else without_counters(page)
            if page is not now[place] and known not in told:
                told.add(known)
                yield f"page {place + 1} of an earlier moment", put(now, (place, page))
    for place in range(len(now)):
        yield f"page {place + 1} of zeros", put(now, (place, bytes(PAGE)))


def without_counters(first_page):
    """The first page but for the number of changes, which it tells twice: who opens a file anew does not look at it."""
    return first_page[:24] + first_page[28:92] + first_page[96:]


def misplaced_pages(pages):
    """Any two pages in each other's place, and any page in the place of another too."""
    for i, j in itertools.permutations(range(len(pages)), 2):
        if i < j:
            yield f"pages {i + 1} and {j + 1} swapped", put(pages, (i, pages[j]), (j, pages[i]))
        yield f"page {i + 1} in the place of {j + 1} too", put(pages, (j, pages[i]))


def flipped_bits(pages, bits):
    """The file with each of these bits flipped, counted from its beginning."""
    whole = b"".join(pages)
    for bit in bits:
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        yield f"bit {bit % 8} of byte {bit // 8}", bytes(changed)


def outcomes(path, history, damages):
    """How often a damaged file was rejected, and how often the damage was harmless; anything else is an error.

    Harmless: the same charges are seen, and one that is made afterwards is there too.
    """
    found = Counter()
    for name, content in damages:
        for end in ("-journal", "-wal", "-shm"):
            pathlib.Path(path + end).unlink(missing_ok=True)
        pathlib.Path(path).write_bytes(content)
        seen = seen_afresh(path)
        if seen is not None:
            assert seen == history, name
            try:
                fresh(path).spend(AFTER, "after")
                assert [each.event for each in seen_afresh(path)] == [*(each.event for each in history), AFTER], name
            except BudgetFileError:
                assert seen_afresh(path) in (history, None), name
                seen = None
        found["rejected" if seen is None else "harmless"] += 1
    return found


def seen_afresh(path):
    """What is seen by somebody who opens the file for the first time; None if it is rejected."""
    try:
        return fresh(path).history
    except BudgetFileError:
        return None
