"""Cases of several parameters, in which any few of their values meet, instead of all combinations of all of them.

A fault that shows for two or three values at once, whatever the other parameters are, is found by such a covering array
as by the whole product (Kuhn, Kacker & Lei 2010, NIST SP 800-142).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest


def covering(axes: Sequence[Sequence[Any]], strength: int) -> list[tuple[int, ...]]:
    """Positions of values, one for each axis, so that any values of `strength` axes meet in a case; always the same."""
    strength = min(strength, len(axes))
    groups = list(itertools.combinations(range(len(axes)), strength))
    candidates = list(itertools.product(*(range(len(axis)) for axis in axes)))
    missing = {(group, tuple(case[i] for i in group)) for case in candidates for group in groups}
    found = []
    while missing:
        best, covered = (), set()
        for case in candidates:
            new = {(group, tuple(case[i] for i in group)) for group in groups} & missing
            if len(new) > len(covered):
                best, covered = case, new
            if len(new) == len(groups):
                break
        found.append(best)
        missing -= covered
    return found


def crossed(strength: int = 2, **axes: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Cases in which any values of `strength` parameters meet."""
    values = [list(axis) for axis in axes.values()]
    return [tuple(axis[i] for axis, i in zip(values, case, strict=True)) for case in covering(values, strength)]


def combined(strength: int = 2, **axes: Sequence[Any]) -> pytest.MarkDecorator:
    """Parametrize a test by cases in which any values of `strength` parameters meet."""
    return pytest.mark.parametrize(tuple(axes), crossed(strength, **axes))
