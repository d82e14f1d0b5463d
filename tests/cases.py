"""One test over the rows of a table."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any


def over(names: str, rows: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test for each row of a table, as one case; the row is in the message of a failure.

    The names of the columns are separated by commas; with one name, a row is a value. Fixtures are shared by all rows.
    """
    keys, table = [each.strip() for each in names.split(",")], list(rows)
    assert table

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def walk(**fixtures: Any) -> None:
            for row in table:
                values = row if len(keys) > 1 else (row,)
                try:
                    test(**fixtures, **dict(zip(keys, values, strict=True)))
                except BaseException as error:
                    error.add_note(
                        "row: "
                        + ", ".join(f"{key}={str(value)[:100]}" for key, value in zip(keys, values, strict=True))
                    )
                    raise

        signature = inspect.signature(test)
        kept = [each for name, each in signature.parameters.items() if name not in keys]
        walk.__signature__ = signature.replace(parameters=kept)
        return walk

    return decorate
