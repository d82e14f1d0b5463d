"""The digest of computations: what the public interface computes from seeds is what was recorded.

`python tests/golden/record.py` records it anew. Do so only in a commit that changes a computation on purpose, and say
so there. A renamed parameter, class or attribute is one line in `names.py` instead.

What may differ: the last bits of sums, as the order of additions follows from the vector units of the processor and
from the version of NumPy, its BLAS and LLVM. On the recorded platform (`platform` in the file) arrays have the same
bits. On others numbers, those of events included, agree to 1e-6, relative to the largest of an array, and texts,
shapes, types and warnings are equal.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden.computations import RUNS
from golden.facts import PLATFORM, facts_of_run
from golden.names import renamed

RECORD = json.loads((Path(__file__).parent / "record.json").read_text())
SAME_PLATFORM = RECORD["platform"] == PLATFORM
RELATIVE = 1e-6


def differences(old: Any, new: Any, place: str = "") -> list[str]:
    """Return the places where two facts differ."""
    if type(old) is not type(new):
        return [f"{place}: {old!r} is now {new!r}"]
    if isinstance(old, dict) and "bits" in old and "bits" in new:
        return _of_arrays(old, new, place)
    if isinstance(old, dict):
        names = dict.fromkeys([*old, *new])
        return [each for name in names for each in differences(old.get(name), new.get(name), f"{place}.{name}")]
    if isinstance(old, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [each for k, (one, other) in pairs for each in differences(one, other, f"{place}[{k}]")]
    if isinstance(old, float):
        same = old == new if SAME_PLATFORM else bool(np.isclose(old, new, rtol=RELATIVE, atol=0.0, equal_nan=True))
        return [] if same or (old != old and new != new) else [f"{place}: {old!r} is now {new!r}"]
    same = _are_same_texts(old, new) if isinstance(old, str) else old == new
    return [] if same else [f"{place}: {old!r} is now {new!r}"]


def _are_same_texts(old: str, new: str) -> bool:
    """Whether texts are equal; of another platform, but for the last digits of the numbers in them, as of events."""
    if old == new or SAME_PLATFORM:
        return old == new
    numbers = r"(\d+\.\d+(?:e-?\d+)?)"
    (words, olds), (others, news) = ((parts[::2], parts[1::2]) for parts in (re.split(numbers, t) for t in (old, new)))
    return words == others and np.allclose([*map(float, news)], [*map(float, olds)], rtol=RELATIVE, atol=0.0)


def _of_arrays(old: dict[str, Any], new: dict[str, Any], place: str) -> list[str]:
    if (old["shape"], old["type"]) != (new["shape"], new["type"]):
        return [f"{place}: {old['shape']} of {old['type']} is now {new['shape']} of {new['type']}"]
    near = np.allclose(new["values"], old["values"], rtol=RELATIVE, atol=RELATIVE * old["norm"], equal_nan=True)
    if old["bits"] == new["bits"] or (near and not SAME_PLATFORM):
        return []
    return [f"{place}: other bits, {old['values'][:3]} is now {new['values'][:3]}"]


@pytest.mark.parametrize("name", RUNS)
def test_computation_is_as_recorded(name):
    assert differences(renamed(RECORD["facts"][name]), json.loads(json.dumps(facts_of_run(RUNS[name])))) == []


def test_every_record_has_a_computation():
    assert RECORD["facts"].keys() == RUNS.keys()
    assert len(RUNS) >= 150
