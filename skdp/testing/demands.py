"""What a check does: demand something, or say that the estimator does not offer what it is about."""

from __future__ import annotations

from unittest import SkipTest

RELATIVE_ERROR = 1e-6
"""Relative error of a sum of rows, and of a price."""


class Inapplicable(SkipTest):
    """The estimator does not offer what a check is about: pytest skips the test."""


def demand(condition: bool, wrong: str, mend: str) -> None:
    """Raise an `AssertionError` that says what is wrong, and what to mend."""
    if not condition:
        raise AssertionError(f"{wrong.rstrip('.')}. {mend}.")
