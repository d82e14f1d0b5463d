"""Records of data that a fit read outside the privacy guarantee, and of known seeds, in the fitted state.

A warning is shown only once, and parameters may change after the fit. The record is stored with the fitted state,
survives pickling, and contains neither a seed nor a label.
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

    The innermost block takes precedence. Private estimators that are sent to worker processes (``n_jobs`` with loky)
    keep the setting; other fits in these processes are not affected.

    Parameters
    ----------
    on_leak : {"warn", "raise"}, default="warn"
        Whether a privacy leak issues a `PrivacyLeakWarning` or raises it as an error. Examples of leaks are classes
        that are read from the labels, and a known seed.

    Yields
    ------
    None

    Raises
    ------
    ValueError
        `on_leak` is invalid.

    Examples
    --------
    >>> import skdp
    >>> with skdp.config_context(on_leak="raise"):
    ...     try:
    ...         skdp.DPLogisticRegression(classes=[0, 1], random_state=0).fit([[0.0], [1.0]], [0, 1])
    ...     except skdp.PrivacyLeakWarning as error:
    ...         print(str(error)[:39])
    random_state=0 makes the noise reproduc
    """
    if on_leak not in ("warn", "raise"):
        raise ValueError(f"`on_leak` must be 'warn' or 'raise', got {on_leak!r}.")
    block = [on_leak]
    _blocks.append(block)
    try:
        yield
    finally:
        _blocks[:] = [other for other in _blocks if other is not block]


def leaks_are_errors() -> bool:
    """Return whether leaks raise errors, by the innermost block or by the process that sent an estimator."""
    if _blocks:
        return _blocks[-1] == ["raise"]
    sent = received()
    return sent is not None and sent.on_leak == "raise"


class Sent(NamedTuple):
    """Settings that a private estimator carries to a worker process.

    Attributes
    ----------
    sender : int
        Process that sent it.
    on_leak : {"warn", "raise"}
        The setting of that process.
    told : tuple of str
        Compositions that were already reported there.
    """

    sender: int
    on_leak: str
    told: tuple[str, ...]


_received: list[tuple[weakref.ref[Any], Sent]] = []
"""Estimators that were sent to this process. A task holds them, so settings end with their task."""


def receive(estimator: Any, sent: Sent) -> bool:
    """Apply the settings of a received estimator while it exists, if this is a worker of the sender."""
    parent = multiprocessing.parent_process()
    if parent is None or parent.pid != sent.sender:
        return False
    _received.append((weakref.ref(estimator), sent))
    return True


def received() -> Sent | None:
    """Return the settings that came with the last existing received estimator, or None."""
    if _received:
        _received[:] = [each for each in _received if each[0]() is not None]
    return _received[-1][1] if _received else None


def report_leak(message: str, stacklevel: int | None = None) -> None:
    """Warn of a leak, or raise it if requested. Without `stacklevel`, at the first line outside this package."""
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

    A warning about rows would reveal, for example, that a row has a missing value. ``warnings.catch_warnings`` restores
    the filters that it found, so of two blocks that overlap in threads the last one restores the filters of the other.
    Here each block adds its own filter and removes only this filter, so the initial filters are restored when all
    blocks end.
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
    """A fact that the privacy cost does not cover: its kind, and a sentence without private values."""

    kind: str
    text: str


SEEDED = Leak(
    SEED,
    "The noise was drawn with a fixed random_state. The guarantee does not hold against anyone who knows the seed.",
)
CLASSES_READ = Leak(CLASSES, "The classes were read from the labels. This is not covered by the privacy guarantee.")
Y_BOUNDS_READ = Leak(
    Y_BOUNDS, "The bounds of the targets were read from `y`. This is not covered by the privacy guarantee."
)
NOT_KEPT = Leak(
    UNKNOWN,
    "There is no record of data that were read outside the privacy guarantee, or of whether the noise was secret.",
)


def note_leaks(fitted: Any, *leaks: Leak) -> None:
    """Add leaks to the record, each only once."""
    fitted._fitted_leaks = tuple(dict.fromkeys([*fitted.__dict__.get("_fitted_leaks", ()), *leaks]))


def report_classes_read(estimator: Any) -> None:
    """Report and record that an estimator without `classes` reads them from the labels."""
    report_leak(
        "`classes` was not set, so the classes were read from `y`. This is not covered by the privacy "
        "guarantee. Pass all possible classes, e.g. classes=[0, 1]."
    )
    note_leaks(estimator, CLASSES_READ)


def leaks_of(fitted: Any) -> tuple[Leak, ...]:
    """Return the leaks of an estimator, a pipeline or a search, and of its private parts."""
    found = dict.fromkeys(fitted.__dict__.get("_fitted_leaks", (NOT_KEPT,)))
    for part in fitted._private_parts():
        found.update(dict.fromkeys(leaks_of(part)))
    return tuple(found)
