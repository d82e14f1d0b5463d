"""What a fit read without paying for it, and whether its noise can be foreseen, as facts of the fitted state.

A warning is gone once it is shown, and a parameter may be changed after the fit. The record stays with what was
learned, survives pickling, and holds no value: neither a seed nor a label.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import threading
import warnings
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple

from skdp.exceptions import PrivacyLeakWarning
from skdp.exceptions import warn as warn

_blocks: list[list[str]] = []
"""Settings of the open blocks. They apply to the process, so threads that a search starts obey them too."""


@contextlib.contextmanager
def config_context(*, on_leak: str = "warn") -> Iterator[None]:
    """Set options for all fits of this process, in all threads, within a ``with`` block.

    The block entered last takes precedence over blocks around it. A private estimator that is sent to a worker process
    (``n_jobs`` with loky) takes the setting along; fits of others there are not affected.

    Parameters
    ----------
    on_leak : {"warn", "raise"}, default="warn"
        Whether a privacy leak, such as reading the classes from the labels or using a known seed, issues a
        `PrivacyLeakWarning` or raises it as an error.

    Yields
    ------
    None

    Raises
    ------
    ValueError
        `on_leak` is not known.

    Examples
    --------
    >>> import skdp
    >>> with skdp.config_context(on_leak="raise"):
    ...     pass
    """
    if on_leak not in ("warn", "raise"):
        raise ValueError(f"on_leak={on_leak!r} is not known: use 'warn' or 'raise'.")
    block = [on_leak]
    _blocks.append(block)
    try:
        yield
    finally:
        _blocks[:] = [other for other in _blocks if other is not block]


def leaks_are_errors() -> bool:
    """Whether the innermost block turns leaks into errors; without one, that of the process that sent an estimator."""
    if _blocks:
        return _blocks[-1] == ["raise"]
    sent = received()
    return sent is not None and sent.on_leak == "raise"


class Sent(NamedTuple):
    """What a private estimator takes along to a worker process.

    Attributes
    ----------
    sender : int
        Process that sent it.
    on_leak : {"warn", "raise"}
        The setting there.
    told : tuple of str
        Compositions that were reported there.
    """

    sender: int
    on_leak: str
    told: tuple[str, ...]


_received: list[tuple[weakref.ref[Any], Sent]] = []
"""Estimators that were sent to this process. A task holds them, so settings end with their task."""


def receive(estimator: Any, sent: Sent) -> bool:
    """Obey the settings that an estimator brought along, as long as it lives, if this is a worker of the sender."""
    parent = multiprocessing.parent_process()
    if parent is None or parent.pid != sent.sender:
        return False
    _received.append((weakref.ref(estimator), sent))
    return True


def received() -> Sent | None:
    """Settings of the process that sent the last of the estimators that live, or None."""
    if _received:
        _received[:] = [each for each in _received if each[0]() is not None]
    return _received[-1][1] if _received else None


def report_leak(message: str, stacklevel: int | None = None) -> None:
    """Warn of a leak, or raise it where that was asked for; without a level, at the first line outside this package."""
    if leaks_are_errors():
        raise PrivacyLeakWarning(message)
    if stacklevel is None:
        warn(message, PrivacyLeakWarning)
    else:
        warnings.warn(message, PrivacyLeakWarning, stacklevel=stacklevel)


_filters_lock = threading.Lock()


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Ignore all warnings of this process, in any thread, within a block.

    A warning about rows would reveal that one of them has a gap, or how many trials a search made.
    ``warnings.catch_warnings`` restores the filters that it found. Of two such blocks that overlap in threads, the one
    that ends last restores the filters of the other for good. Here each block adds a filter of its own and removes
    only this one, in any order, so the filters are the initial ones once all blocks have ended.
    """
    mine = ("ignore", None, Warning, None, 0)
    found: Any = warnings.filters
    try:
        with _filters_lock:
            found.insert(0, mine)
        yield
    finally:
        with _filters_lock:
            present: Any = warnings.filters
            for filters in (found, present):  # a `catch_warnings` in between works on a copy
                filters[:] = [each for each in filters if each is not mine]


SEED, CLASSES, Y_BOUNDS, CALLER, UNKNOWN = "seed", "classes", "y_bounds", "caller", "unknown"


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
