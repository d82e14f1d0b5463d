"""Tables of cases, and cases of several parameters in which any few of their values meet.

A fault that shows for two or three values at once, whatever the other parameters are, is found by such a covering array
as by the whole product (Kuhn, Kacker & Lei 2010, NIST SP 800-142).
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Sequence
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


def crossed(strength: int = 2, **axes: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Cases in which any values of `strength` parameters meet."""
    values = [list(axis) for axis in axes.values()]
    return [tuple(axis[i] for axis, i in zip(values, case, strict=True)) for case in covering(values, strength)]


def combined(strength: int = 2, **axes: Sequence[Any]) -> pytest.MarkDecorator:
    """Parametrize a test by cases in which any values of `strength` parameters meet."""
    return pytest.mark.parametrize(tuple(axes), crossed(strength, **axes))


def over_combinations(strength: int = 2, **axes: Iterable[Any]) -> Callable[[Callable], Callable]:
    """Run a test once, on all cases in which any values of `strength` parameters meet; see `over_rows`."""
    return over_rows(tuple(axes), crossed(strength, **axes))


def over_rows(names: str | Sequence[str], rows: Iterable[Any]) -> Callable[[Callable], Callable]:
    """Run a test once, on all rows of a table; its failure lists all rows that failed.

    The arguments are those of `pytest.mark.parametrize`. Use it where the rows walk the same code, so that a case for
    each of them would say no more. Fixtures are made once, not for each row.
    """
    names = names.replace(" ", "").split(",") if isinstance(names, str) else tuple(names)
    rows = list(rows)

    def of_test(test: Callable) -> Callable:
        @functools.wraps(test)
        def of_all_rows(**given: Any) -> None:
            failed = []
            for row in rows:
                values = dict(zip(names, (row,) if len(names) == 1 else row, strict=True))
                try:
                    test(**given, **values)
                except (Exception, pytest.fail.Exception) as error:  # the latter is of `pytest.raises`
                    failed.append((values, error))
            if failed:
                lines = [f"{values}: {type(error).__name__}: {error}" for values, error in failed]
                raise AssertionError(f"{len(failed)} of {len(rows)} rows failed\n" + "\n".join(lines)) from failed[0][1]

        signature = inspect.signature(test)
        kept = [parameter for name, parameter in signature.parameters.items() if name not in names]
        of_all_rows.__signature__ = signature.replace(parameters=kept)
        return of_all_rows

    return of_test
