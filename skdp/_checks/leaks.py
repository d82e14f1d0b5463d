"""What a fit read without paying for it, and whether its noise can be foreseen, as facts of the fitted state.

A warning is gone once it is shown, and a parameter may be changed after the fit. The record stays with what was
learned, survives pickling, and holds no value: neither a seed nor a label.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from skdp._checks.leak_setting import report_leak

SEED = "seed"
CLASSES = "classes"
Y_BOUNDS = "y_bounds"
CALLER = "caller"
UNKNOWN = "unknown"


class Leak(NamedTuple):
    """One thing that the price does not cover: its kind, and a sentence without a value of the data."""

    kind: str
    text: str


SEEDED = Leak(
    SEED, "The noise was drawn from a given random_state: the guarantee does not hold against those who know it."
)
CLASSES_READ = Leak(CLASSES, "The classes were read from the labels, which is not paid for.")
Y_BOUNDS_READ = Leak(Y_BOUNDS, "The bounds of the targets were read from y, which is not paid for.")
NOT_KEPT = Leak(UNKNOWN, "No record was kept of what was read without payment, nor of whether the noise was secret.")


def begin_record(fitted: Any, earlier: Iterable[Leak] | None = ()) -> None:
    """Start the record of a fit, with the leaks of the state that it starts from; None if these were not kept."""
    fitted._fitted_leaks = (NOT_KEPT,) if earlier is None else tuple(earlier)


def note_leaks(fitted: Any, *leaks: Leak) -> None:
    """Add leaks to the record, each once."""
    fitted._fitted_leaks = tuple(dict.fromkeys([*fitted.__dict__.get("_fitted_leaks", ()), *leaks]))


def report_classes_read(estimator: Any) -> None:
    """Report and note that an estimator without `classes` reads them from the labels."""
    report_leak(
        "classes=None: the classes were read from the labels, which is not paid for; name all classes that can occur, "
        "e.g. classes=[0, 1]."
    )
    note_leaks(estimator, CLASSES_READ)


def leaks_of(fitted: Any) -> tuple[Leak, ...]:
    """Return the leaks of an estimator, a pipeline or a search, and of its private parts."""
    found = dict.fromkeys(fitted.__dict__.get("_fitted_leaks", (NOT_KEPT,)))
    for part in fitted._private_parts():
        found.update(dict.fromkeys(leaks_of(part)))
    return tuple(found)
