"""How much work a call is, in what does not depend on the machine: where a test would otherwise look at the clock."""

import sys
from contextlib import contextmanager

import pytest


@contextmanager
def calls_at_most(limit):
    """Fail as soon as more functions are called in this block, of Python or of C (NumPy's ufuncs are not counted).

    Yields a list whose one entry is their number so far.
    """
    count = [0]

    def on_event(frame, event, what):
        if event in ("call", "c_call"):
            count[0] += 1
            if count[0] > limit:
                sys.setprofile(before)
                pytest.fail(f"more than {limit:,} calls")  # no `Exception`: what is tested does not catch it

    before = sys.getprofile()
    sys.setprofile(on_event)
    try:
        yield count
    finally:
        sys.setprofile(before)
